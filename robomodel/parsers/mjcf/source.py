"""From an MJCF document to MuJoCo's compiled model: files, safety, and a line for every complaint.

MuJoCo itself never sees a file or a path. The document and what it includes are read here into one
tree of :class:`Node`, which keeps what mechanics needs; that is written as a text with one element
a line, so that a line in MuJoCo's message is an element of the file. Meshes are replaced by a small
solid; only where the inertia of a body turns out to depend on a mesh is its file read, and handed
over as bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

from robomodel.description import Sensor
from robomodel.errors import DescriptionError, Doubt, MissingPackageError, Source
from robomodel.files import MAX_MESH_BYTES, Allowance
from robomodel.locks import Turn
from robomodel.parsers.mjcf.files import MARK, Folder, Node, Reader
from robomodel.parsers.mjcf.prepared import Mesh, Preparation, Whole, element_named
from robomodel.parsers.xml import Document, spelled

_MESHES = (".stl", ".obj", ".msh")
_MESH_GEOM = 7  # mjtGeom


@dataclass(frozen=True, slots=True)
class Compiled:
    """MuJoCo's model, what each of its elements was in the file, and what is suspicious.

    ``standing`` is the same model with stand-ins for all meshes, in which geoms are placed as the
    file places them. The inertias of the bodies ``unweighed`` depend on meshes that could not be
    read. ``custom`` are the file's ``<custom>`` texts and numbers.
    """

    model: Any
    standing: Any
    root: Node
    names: Mapping[tuple[str, str], Node]
    meshes: Mapping[str, Mesh]
    unweighed: frozenset[int]
    custom: Mapping[str, str]
    sensors: tuple[Sensor, ...] = ()

    def node(self, kind: str, name: str) -> Node | None:
        """The element of the file that the compiled one came from, however renamed by copying."""
        return element_named(self.names, kind, name)

    def mesh(self, name: str) -> Mesh | None:
        """The mesh asset that the compiled one came from."""
        node = self.node("mesh", name)
        return self.meshes[node.attributes["name"]] if node else None

    def source(self, kind: str, name: str, label: str) -> Source:
        """Where the compiled element stands, called ``label``."""
        node = self.node(kind, name)
        place = node.source if node else self.root.source
        return Source(place.file, place.line, label)

    def given(self, name: str) -> str:
        """The name, if the file gave it; else nothing."""
        return "" if MARK in name else name


_ALONE = Turn()  # MuJoCo has one handler of warnings for all threads
_LINE = re.compile(r",? line (\d+)")
_HEAD = re.compile(r"^((XML )?Error: |could not parse model file with error: )+")
_Parts = tuple[dict[str, str], dict[str, bytes]]  # a mesh's attributes, and the files they name


def compile_mjcf(document: Document) -> Compiled:
    """MuJoCo's compiled model of the document.

    Raises :class:`DescriptionError` for what cannot be read or compiled, and ImportError where
    MuJoCo is not installed. What is suspicious is added to the document's doubts.
    """
    folder = Folder.of(document.file)
    reader = Reader(document.strict, document.doubts)
    if folder.path is not None:
        reader.seen.add(os.path.realpath(document.file))
    root = reader.tree(document, folder)
    custom = {
        node.attributes["name"]: node.attributes["data"]
        for section in root.find("custom")
        for node in section.children
        if {"name", "data"} <= node.attributes.keys()
    }
    whole = Whole(reader)
    Preparation(whole, folder).prepare(root)
    compiler = _Compiler(root, whole)
    standing = compiler.model({})
    model, unweighed = compiler.weighed(standing, folder) if whole.meshes else (standing, _NONE)
    document.doubts.extend((*whole.doubts, *compiler.doubts))
    sensors = tuple(whole.sensors)
    return Compiled(model, standing, root, whole.names, whole.meshes, unweighed, custom, sensors)


_NONE: frozenset[int] = frozenset()


class _Compiler:
    """Writes the tree with one element a line, has MuJoCo compile it, and finds what it means."""

    def __init__(self, root: Node, whole: Whole) -> None:
        try:
            import mujoco
        except ImportError as error:
            raise MissingPackageError(
                "MJCF files are read by MuJoCo's own compiler, and need", "mujoco", "mujoco",
                root.source,
            ) from error  # fmt: skip
        self.mujoco: Any = mujoco
        self.root = root
        self.whole = whole
        self.doubts: list[Doubt] = []

    def model(self, meshes: Mapping[Node, _Parts]) -> Any:
        """The compiled model; ``meshes`` are these in place of their stand-ins."""
        lines: list[Node | None] = []
        texts = {
            model.attributes["file"]: _text(tree, meshes, lines).encode()
            for model, tree in self.whole.attached
        }
        text = _text(self.root, meshes, lines)
        for _, files in meshes.values():
            texts |= files
        with _ALONE:
            before = self.mujoco.get_mju_user_warning()
            said: list[str] = []
            self.mujoco.set_mju_user_warning(said.append)
            try:
                model = self.mujoco.MjModel.from_xml_string(text, texts)
            except (
                ValueError,
                RuntimeError,
                self.mujoco.FatalError,
                self.mujoco.UnexpectedError,
            ) as error:
                what, source = self._explained(str(error), lines)
                raise DescriptionError(f"MuJoCo refuses the model: {what}", source) from None
            finally:
                self.mujoco.set_mju_user_warning(before)
        self.doubts = [
            Doubt(f"MuJoCo warns: {what}", source)
            for what, source in (self._explained(warning, lines) for warning in said)
            if "deprecated" not in what  # a matter of words, not of mechanics
        ]
        return model

    def _explained(self, message: str, lines: Sequence[Node | None]) -> tuple[str, Source]:
        """What MuJoCo complains of, and the element of the file that it is about."""
        number = _LINE.search(message)
        node = lines[int(number[1]) - 1] if number and int(number[1]) <= len(lines) else None
        what = _HEAD.sub("", message.strip().splitlines()[0] if message.strip() else "")
        return re.sub(f"'[^']*{MARK}[^']*'", "''", what), (node or self.root).source

    def weighed(self, standing: Any, folder: Folder) -> tuple[Any, frozenset[int]]:
        """The model with those meshes real on which inertias depend.

        The bodies are told whose inertia remains unknown, for the want of a file; only such as are
        fixed to the world may.
        """
        meshes = self.whole.meshes
        changed = self._changed(standing, {}, meshes)
        if not changed:
            return standing, _NONE
        real: dict[Node, _Parts] = {}
        unread: list[str] = []
        allowance = Allowance()
        for name in self._on(standing, changed):
            mesh = meshes[name]
            try:
                real[mesh.stand_in] = _real(mesh, folder, self.whole.fresh(), allowance)
            except DescriptionError:
                if any(standing.body_weldid[i] for i in self._changed(standing, {}, [name])):
                    raise
                unread.append(name)
        model = self.model(real)
        return model, frozenset(self._changed(model, real, unread) if unread else ())

    def _changed(self, model: Any, real: Mapping[Node, _Parts], names: Iterable[str]) -> list[int]:
        """The bodies whose inertia changes when the stand-ins of these meshes are made larger."""
        larger = {}
        for name in names:
            node = self.whole.meshes[name].stand_in
            larger[node] = (node.attributes | {"scale": "2 2 2"}, dict[str, bytes]())
        other = self.model({**real, **larger})
        parts = ("body_mass", "body_inertia", "body_ipos", "body_iquat")
        pairs = [(getattr(model, part), getattr(other, part)) for part in parts]
        return [i for i in range(model.nbody) if any((a[i] != b[i]).any() for a, b in pairs)]

    def _on(self, standing: Any, bodies: Iterable[int]) -> list[str]:
        """The meshes on these bodies, and those of which the model does not tell where they are."""
        meshes, used = self.whole.meshes, dict[int, set[str]]()
        for geom in range(standing.ngeom):
            number, name = int(standing.geom_dataid[geom]), ""
            node = self.whole.named("geom", str(standing.geom(geom).name))
            if int(standing.geom_type[geom]) == _MESH_GEOM:
                name = str(standing.mesh(number).name)
                known = self.whole.named("mesh", name)
                name = known.attributes["name"] if known else ""
            elif node is not None:  # a box, say, that is fitted to a mesh
                name = node.attributes.get("mesh", "")
            used.setdefault(int(standing.geom_bodyid[geom]), set()).add(name)
        here = set().union(*(used.get(body, ()) for body in bodies))
        known_names = set().union(*used.values())
        return [name for name in meshes if name in here or name not in known_names]


def _real(mesh: Mesh, folder: Folder, fresh: str, allowance: Allowance) -> _Parts:
    """A mesh as the file has it, with the content of its own file."""
    dropped = ("content_type", "material", "file")
    attributes = {k: v for k, v in mesh.node.attributes.items() if k not in dropped}
    attributes["name"] = mesh.stand_in.attributes["name"]
    if mesh.path is None:
        return attributes, {}
    try:
        data, _ = folder.read(mesh.path, mesh.node, _MESHES, MAX_MESH_BYTES)
    except FileNotFoundError:
        raise mesh.node.error(
            f"there is no file {spelled(mesh.path)}, and the inertia of a body depends on it; give "
            "the body an <inertial>, or put the file beside the model"
        ) from None
    allowance.spend(len(data), f"the file {spelled(mesh.path)}", mesh.node.source)
    file = fresh + os.path.splitext(mesh.path)[1].lower()
    return attributes | {"file": file}, {file: data}


def _text(root: Node, meshes: Mapping[Node, _Parts], lines: list[Node | None]) -> str:
    """The tree as XML, an element a line, after as many empty lines as ``lines`` has.

    ``lines`` is continued by the elements, so that a line tells an element, of whichever model.
    """
    written = ["\n" * len(lines)]
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, ends = stack.pop()
        lines.append(node)
        if ends:
            written.append(f"</{node.tag}>\n")
            continue
        attributes = meshes[node][0] if node in meshes else node.attributes
        inside = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
        written.append(f"<{node.tag}{inside}{'' if node.children else '/'}>\n")
        if node.children:
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children))
    return "".join(written)
