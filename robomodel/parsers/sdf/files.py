"""The files of an SDF robot: the document itself, and what its ``<include>`` elements name.

A file may name others beside it, so that what is read is bounded: files within the folder of the
file that names them, and ``model://NAME`` in that folder or beside it, where model folders stand.
No absolute path, no network, no way out through ``..`` or a symbolic link.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import PurePosixPath

from robomodel.errors import DescriptionError
from robomodel.files import SCHEMES, Resources, contents, is_within
from robomodel.parsers import xml
from robomodel.parsers.sdf.document import NEWEST, SdfDocument
from robomodel.parsers.xml import Document, Element, shown, spelled

MAX_INCLUDES = 1000
"""How many includes are followed, those of included files counted each time."""
MAX_DEPTH = 16
"""How deep includes may be nested."""

_OLDEST = (1, 2)
_VERSION = re.compile(r"\s*(\d{1,3})\.(\d{1,3})(\.\d+)?\s*")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)


def opened(document: Document) -> SdfDocument:
    """The document as one of SDF, with its version."""
    root = document.root
    sdf = SdfDocument.of(document, _version(document))
    if root.get("version") is None:
        sdf.warn_at(root, f"<sdf> has no version; it is read as {_shown(NEWEST)}")
    elif sdf.version > NEWEST:
        sdf.warn_at(
            root,
            f"SDF {_shown(sdf.version)} is not known yet; it is read as {_shown(NEWEST)}",
        )
    return sdf


def _version(document: Document) -> tuple[int, int]:
    root = document.root
    if root.tag != "sdf":
        raise DescriptionError(
            f"SDF has the root element <sdf>, not <{shown(root)}>",
            document.source(root, f"<{shown(root)}>"),
        )
    text = root.get("version")
    if text is None:
        return NEWEST
    if not (match := _VERSION.fullmatch(text)):
        raise DescriptionError(
            f'the version is {spelled(text)}; write it as in version="{_shown(NEWEST)}"',
            document.source(root, "<sdf>"),
        )
    version = int(match[1]), int(match[2])
    if version < _OLDEST:
        raise DescriptionError(
            f"SDF {text.strip()} is from before {_shown(_OLDEST)}, and is not read; "
            "convert it with 'gz sdf -p'",
            document.source(root, "<sdf>"),
        )
    return version


def _shown(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


class Library:
    """The files that a document may include, each parsed once."""

    def __init__(self, main: SdfDocument, resources: Resources) -> None:
        self._resources = resources
        self._strict = main.strict
        self._issues = main.issues
        self._documents: dict[str, SdfDocument] = {}
        self._count = 0
        self._bytes = 0
        self._sizes: dict[str, int] = {}
        # a name that is no file is what a text or a stream is called
        place = os.path.realpath(main.file) if _is_file(main.file) else None
        self._places = {main.file: place}
        self.start = (place,) if place else ()
        """The files in which the document stands: itself."""
        self._folder, self._real_folder = os.path.dirname(main.file), os.path.dirname(place or "")

    def included(self, document: SdfDocument, include: Element, open_files: tuple[str, ...]) -> str:
        """The path of what an ``<include>`` of ``document`` names; counts how much that is.

        ``open_files`` are the files in which the include stands, the outermost first.
        """
        uri = document.required(include, "uri")
        path = self._resolved(document, include, uri)
        if path in open_files:
            raise document.error(include, f"{spelled(uri)} includes itself")
        if len(open_files) > MAX_DEPTH:
            raise document.error(include, f"includes are nested more than {MAX_DEPTH} deep")
        self._count += 1
        if self._count > MAX_INCLUDES:
            raise document.error(include, f"the robot has more than {MAX_INCLUDES} includes")
        return path

    def read(self, path: str, document: SdfDocument, include: Element) -> SdfDocument:
        """The document at a path that :meth:`included` gave."""
        if path not in self._documents:
            text, self._sizes[path] = _text(path, document, include)
            name = os.path.join(self._folder, os.path.relpath(path, self._real_folder))
            name = os.path.normpath(name)  # as the user would write it
            parsed = xml.parse(text, name, strict=self._strict, issues=self._issues)
            self._documents[path] = opened(parsed)
            self._places[name] = path
        self._bytes += self._sizes[path]
        if self._bytes > xml.MAX_BYTES:
            raise document.error(
                include, f"the included files are larger than {xml.MAX_BYTES // 2**20} MiB"
            )
        return self._documents[path]

    def has(self, document: SdfDocument, uri: str) -> bool:
        """Whether a ``model://NAME`` is known, in the folder of the document, or beside it."""
        place = self._places[document.file]
        name = uri.removeprefix("model://")
        if self._resources.find(name.partition("/")[0]) is not None:
            return True
        folders = (os.path.dirname(place), os.path.dirname(os.path.dirname(place))) if place else ()
        return any(os.path.exists(os.path.join(folder, name)) for folder in folders)

    # ---- which file

    def _resolved(self, document: SdfDocument, include: Element, uri: str) -> str:
        def refused(message: str) -> DescriptionError:
            return document.error(include, f"{spelled(uri)} {message}")

        place = self._places[document.file]
        scheme, rest = "", uri
        if match := _SCHEME.fullmatch(uri):
            scheme, rest = match[1].lower(), match[2]
        parts = PurePosixPath(rest).parts
        package = self._resources.find(parts[0]) if scheme in SCHEMES and parts else None
        if package is None and scheme not in ("", "file", "model"):
            raise refused(
                "is not read: includes are files within the folder of the file that names them, "
                "and model://NAME beside it; copy the model there, or name its folder by resources="
            )
        if package is None and place is None:
            raise refused(
                "cannot be included, for a text has no folder; save it as a file, beside what it "
                "includes, and load that"
            )
        if not parts or "\0" in rest or "\\" in rest or rest.startswith("/") or ".." in parts:
            raise refused(
                "is not read: includes stay within the folder of the file that names them, so "
                "write no absolute path and no '..'"
            )
        homes: dict[str, str] = {}  # where to look, and what must not be left
        if package is not None:
            top = os.path.realpath(package)
            homes[top], parts = top, parts[1:]
        elif place is not None:
            folder = os.path.dirname(place)
            homes[folder] = folder
            if scheme == "model":
                above = os.path.dirname(folder)
                homes.setdefault(above, os.path.join(above, parts[0]))
        for home, limit in homes.items():
            target = os.path.join(home, *parts)
            if not os.path.exists(target):
                continue
            path = os.path.realpath(target)
            if os.path.isdir(path) and is_within(path, limit):
                path = os.path.realpath(self._model_file(path, document, include, uri))
            if not is_within(path, limit):
                raise refused("leads out of the folder by a symbolic link, and is not read")
            if not _is_file(path):
                raise refused("is no file")
            return path
        where = "the folder of this file" if package is None else f"the folder {package}"
        beside = " or beside it; name another by resources=" if scheme == "model" else ""
        raise document.error(
            include, f"there is no {spelled(uri)} in {where}{'' if package else beside}"
        )

    def _model_file(self, folder: str, document: SdfDocument, include: Element, uri: str) -> str:
        """The newest file of a model's folder that model.config lists, else model.sdf."""
        config = os.path.join(folder, "model.config")
        if not _is_file(config) or os.path.realpath(config) != config:
            return os.path.join(folder, "model.sdf")
        text, _ = _text(config, document, include)
        listed = xml.parse(text, config).root.findall("sdf")
        newest, name = (0, 0), ""
        for entry in listed:
            match = _VERSION.fullmatch(entry.get("version", "1.0"))
            version = (int(match[1]), int(match[2])) if match else (0, 0)
            if newest <= version <= NEWEST:
                newest, name = version, (entry.text or "").strip()
        if not name or name != os.path.basename(name) or name in (".", ".."):
            raise document.error(
                include, f"model.config of {spelled(uri)} names no SDF file of its folder"
            )
        return os.path.join(folder, name)


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _text(path: str, document: SdfDocument, include: Element) -> tuple[str, int]:
    """The text of a file, and its size."""
    what = spelled(os.path.basename(path))
    data = contents(path, what, document.place(include), most=xml.MAX_BYTES)
    return xml.decode(data, path), len(data)
