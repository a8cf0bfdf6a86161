"""The files of an MJCF model as one tree of elements; nothing is read but what the model names."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field

from robomodel.errors import DescriptionError, Doubt, Source
from robomodel.files import MAX_CLIMB, contents, is_within
from robomodel.parsers import xml
from robomodel.parsers.xml import Document, shown, spelled

_MAX_DEPTH = 250  # of elements: MuJoCo's own readers recurse
_MODELS = (".xml", ".mjcf")

MARK = "\ue000"
"""Within the names that are given by the reader; no file has this private character."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Where the files that a model names are: ``within`` its own folder ``path``, None for a text.

    Paths count from the folder of the main file, also those in the models that it attaches.
    """

    path: str | None
    within: str = ""

    @staticmethod
    def of(file: str) -> Folder:
        """The folder of a document's file, if it is one."""
        return Folder(os.path.dirname(file) if os.path.isfile(file) else None)

    def joined(self, *steps: str) -> str:
        """The path of a file here, from the main folder, with slashes only."""
        return posixpath.join(self.within, *(step.replace("\\", "/") for step in steps))

    def first(self, *paths: str) -> str:
        """The first of these paths that leads to a file here, else the first one."""
        here = () if self.path is None else paths
        return next((p for p in here if os.path.isfile(os.path.join(self.path or "", p))), paths[0])

    def read(self, path: str, node: Node, endings: tuple[str, ...], most: int) -> tuple[bytes, str]:
        """The content of a file and what to call it; refuses what no model needs.

        ``most``: bytes that it may have.

        Raises :class:`DescriptionError` for paths that are not followed, FileNotFoundError for
        files that are not there.
        """
        what = f"the file {spelled(path)}"

        def refused(why: str) -> DescriptionError:
            return node.error(f"{what} is not read{why}")

        if self.path is None:
            raise refused(", as a model given as text has no folder; load it from its path")
        if path.startswith(("/", "~")) or ":" in path or "\0" in path:
            raise refused(": write its path relative to the model, as in 'meshes/arm.stl'")
        if any(step[:1] == "." and step not in (".", "..") for step in path.split("/")):
            raise refused(": it is hidden, as no part of a model is")
        if not path.lower().endswith(endings):
            raise refused(f": it must end in {' or '.join(endings)}")
        climb = posixpath.normpath(path).split("/").count("..")
        if climb > MAX_CLIMB:
            raise refused(
                f": it leads {climb} folders up from the model's own, and at most {MAX_CLIMB} are "
                "followed; keep a model's files together"
            )
        top = os.path.realpath(os.path.join(self.path, *[".."] * climb))
        full = os.path.realpath(os.path.join(self.path, path))
        if os.path.dirname(top) == top or not is_within(full, top):
            raise refused(": it leads out of the folders of the model")
        return contents(full, what, node.source, most=most), os.path.join(self.path, path)


NO_FOLDER = Folder(None)


@dataclass(slots=True, eq=False)
class Node:
    """An element of the file that MuJoCo is to see, and where it stands.

    ``folder`` is that of its own file, which the main one may include from elsewhere.
    """

    tag: str
    attributes: dict[str, str]
    source: Source
    folder: Folder = NO_FOLDER
    children: list[Node] = field(default_factory=list)

    def error(self, message: str) -> DescriptionError:
        """The error to raise for what is wrong with it."""
        return DescriptionError(message, self.source)

    def walk(self) -> Iterator[Node]:
        """The element and all below it, in the file's order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def find(self, tag: str) -> Iterator[Node]:
        """The children of this tag."""
        return (child for child in self.children if child.tag == tag)


@dataclass(slots=True)
class Reader:
    """Reads documents with all that they include; each file once, and not endlessly much."""

    strict: bool
    doubts: list[Doubt]
    seen: set[str] = field(default_factory=set)
    left: int = xml.MAX_BYTES

    def tree(self, document: Document, folder: Folder) -> Node:
        """The document's elements, included ones in the place of their ``<include>``."""
        root = _node(document, document.root, folder)
        self._add(document, document.root, root, (folder, folder), 1)
        return root

    def _add(
        self,
        document: Document,
        element: xml.Element,
        node: Node,
        folders: tuple[Folder, Folder],
        depth: int,
    ) -> None:
        """Add what is in an element; ``folders`` are the model's and this document's own."""
        if depth > _MAX_DEPTH:
            raise node.error(f"elements are nested more than {_MAX_DEPTH} deep")
        for below in element:
            child = _node(document, below, folders[1])
            if child.tag == "include":
                included, beside = self.open(child, *folders)
                self._add(included, included.root, node, (folders[0], beside), depth + 1)
            else:
                node.children.append(child)
                self._add(document, below, child, folders, depth + 1)

    def open(self, node: Node, *folders: Folder) -> tuple[Document, Folder]:
        """The document that ``node`` names in its ``file``, and the folder it stands in.

        It is looked for in one folder after the other.
        """
        written = node.attributes.get("file")
        if not written:
            raise node.error(f"<{node.tag}> needs the attribute 'file'")
        path = folders[0].first(*(folder.joined(written) for folder in folders))
        try:
            data, file = folders[0].read(path, node, _MODELS, xml.MAX_BYTES)
        except FileNotFoundError:
            raise node.error(f"there is no file {spelled(path)} beside the model") from None
        real = os.path.realpath(file)
        if real in self.seen:
            raise node.error(
                f"the file {spelled(path)} is read already; a file is included once, and never "
                "within itself"
            )
        self.seen.add(real)
        self.left -= len(data)
        if self.left < 0:
            raise node.error(
                f"the files of the model are larger than {xml.MAX_BYTES // 2**20} MiB together"
            )
        text = xml.decode(data, file)
        document = xml.parse(text, file, strict=self.strict, doubts=self.doubts)
        return document, Folder(folders[0].path, posixpath.dirname(path))


def _node(document: Document, element: xml.Element, folder: Folder) -> Node:
    tag, name = shown(element), element.get("name")
    source = document.source(element, f"{tag} '{name}'" if name else f"<{tag}>")
    node = Node(tag, {str(key): str(value) for key, value in element.items()}, source, folder)
    if any(MARK in value for value in node.attributes.values()):
        raise node.error("holds the private character U+E000, which is kept for the reader")
    return node
