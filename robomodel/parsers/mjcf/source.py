"""From an MJCF document to MuJoCo's compiled model: files, safety, lines of errors.

MuJoCo itself sees no file and no path. The document and its includes are read here into one tree of
:class:`SourceElement` with the elements that mechanics needs. The tree is written as text with one
element a line, so that a line number in MuJoCo's message identifies an element of the file. Meshes
are replaced by a small solid; a mesh file is read, and passed as bytes, only if the inertia of a
body depends on it.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from robomodel.description import Sensor
from robomodel.description.shapes import MAX_COPIES
from robomodel.errors import DescriptionError, Issue, MissingPackageError, Source
from robomodel.files import (
    MAX_CLIMB,
    MAX_MESH_BYTES,
    Allowance,
    climb_of,
    contents,
    is_within,
    top_folder,
)
from robomodel.parsers.meshes import MUJOCO
from robomodel.running import Lock
from robomodel.vocabulary import xml
from robomodel.vocabulary.xml import Document, quoted, shown, spelled, words

_MAX_ELEMENT_DEPTH = 250  # of elements: MuJoCo's own readers recurse
_MODELS = (".xml", ".mjcf")

MARK = "\ue000"
"""Part of the names that the reader gives; files must not contain this private character."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder ``within`` the main file's folder ``path`` (None for a text), to resolve files.

    Paths are relative to the folder of the main file, also in models that it attaches.
    """

    path: str | None
    within: str = ""

    @staticmethod
    def of(file: str) -> Folder:
        """The folder of a document's file; :data:`NO_FOLDER` for a text."""
        return Folder(os.path.dirname(file) if os.path.isfile(file) else None)

    def joined(self, *steps: str) -> str:
        """The path of a file in this folder, relative to the main folder, with slashes only."""
        return posixpath.join(self.within, *(step.replace("\\", "/") for step in steps))

    def first(self, *paths: str) -> str:
        """The first of these paths that exists, else the first one."""
        here = () if self.path is None else paths
        return next((p for p in here if os.path.isfile(os.path.join(self.path or "", p))), paths[0])

    def read(
        self, path: str, node: SourceElement, endings: tuple[str, ...], most: int
    ) -> tuple[bytes, str]:
        """The content and the name of a file; refuses files that no model needs.

        ``most``: limit of its size [bytes].

        Raises :class:`DescriptionError` for paths that are not followed, FileNotFoundError for
        missing files.
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
        if (climb := climb_of(path)) > MAX_CLIMB:
            raise refused(
                f": it leads {climb} folders up from the model's own, and at most {MAX_CLIMB} are "
                "followed; keep a model's files together"
            )
        full = os.path.realpath(os.path.join(self.path, path))
        if not is_within(full, top_folder(os.path.realpath(self.path), path)):
            raise refused(": it leads out of the folders of the model")
        return contents(full, what, node.source, most=most), os.path.join(self.path, path)


NO_FOLDER = Folder(None)


@dataclass(slots=True, eq=False)
class SourceElement:
    """An element that is passed to MuJoCo, and its location in the file.

    ``folder`` is the folder of its own file, which the main file may include from elsewhere.
    """

    tag: str
    attributes: dict[str, str]
    source: Source
    folder: Folder = NO_FOLDER
    children: list[SourceElement] = field(default_factory=list)

    def error(self, message: str) -> DescriptionError:
        """The error to raise for a fault of the element."""
        return DescriptionError(message, self.source)

    def walk(self) -> Iterator[SourceElement]:
        """The element and all below it, in the order of the file."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def find(self, tag: str) -> Iterator[SourceElement]:
        """The children with this tag."""
        return (child for child in self.children if child.tag == tag)


@dataclass(slots=True)
class SourceReader:
    """Reads documents with their includes, each file once, up to a total size."""

    strict: bool
    issues: list[Issue]
    seen: set[str] = field(default_factory=set)
    remaining_bytes: int = xml.MAX_BYTES

    def tree(self, document: Document, folder: Folder) -> SourceElement:
        """The document's elements, with includes expanded."""
        root = _node(document, document.root, folder)
        self._add(document, document.root, root, (folder, folder), 1)
        return root

    def _add(
        self,
        document: Document,
        element: xml.Element,
        node: SourceElement,
        folders: tuple[Folder, Folder],
        depth: int,
    ) -> None:
        """Append the contents of an element; ``folders``: the model's, then this document's."""
        if depth > _MAX_ELEMENT_DEPTH:
            raise node.error(f"elements are nested more than {_MAX_ELEMENT_DEPTH} deep")
        for below in element:
            child = _node(document, below, folders[1])
            if child.tag == "include":
                included, beside = self.open(child, *folders)
                self._add(included, included.root, node, (folders[0], beside), depth + 1)
            else:
                node.children.append(child)
                self._add(document, below, child, folders, depth + 1)

    def open(self, node: SourceElement, *folders: Folder) -> tuple[Document, Folder]:
        """The document that ``node`` names in its ``file``, and its folder.

        Tries the folders in turn.
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
        self.remaining_bytes -= len(data)
        if self.remaining_bytes < 0:
            raise node.error(
                f"the files of the model are larger than {xml.MAX_BYTES // 2**20} MiB together"
            )
        text = xml.decode(data, file)
        document = xml.parse(text, file, strict=self.strict, issues=self.issues)
        return document, Folder(folders[0].path, posixpath.dirname(path))


def _node(document: Document, element: xml.Element, folder: Folder) -> SourceElement:
    tag, name = shown(element), element.get("name")
    source = document.source(element, f"{tag} '{name}'" if name else f"<{tag}>")
    node = SourceElement(
        tag, {str(key): str(value) for key, value in element.items()}, source, folder
    )
    if any(MARK in value for value in node.attributes.values()):
        raise node.error("holds the private character U+E000, which is kept for the reader")
    return node


UNNAMED = "MuJoCo Model"
"""MuJoCo's name for a model without one."""
_MAX_MESH_PARAMETER = 200.0  # of builtin meshes, whose size grows with its square


_BODIES = {"worldbody": "body", "frame": "body", "replicate": "body"}
_IRRELEVANT = {  # without mechanics; removed, as their size is not limited
    "mujoco": words("size statistic visual contact sensor keyframe custom extension"),
    "asset": words("texture skin"),
    "default": words("texture light pair"),
    "deformable": words("skin"),
    "body": words("light"),
    "material": words("layer"),
}
_DROPPED = {  # attributes that are not passed to MuJoCo
    "compiler": words(
        "meshdir texturedir assetdir strippath discardvisual fusestatic usethread saveinertial "
        "savecompiled savecanonical passthrough"
    ),
    "option": words(  # of solvers and contacts; some exist in some versions only
        "timestep apirate impratio tolerance ls_tolerance noslip_tolerance mpr_tolerance "
        "ccd_tolerance sleep_tolerance o_margin o_solref o_solimp o_friction integrator collision "
        "cone jacobian solver iterations ls_iterations noslip_iterations mpr_iterations "
        "ccd_iterations sdf_iterations sdf_initpoints actuatorgroupdisable"
    ),
    "flag": words(
        "frictionloss limit contact passive spring damper clampctrl warmstart filterparent "
        "actuation refsafe sensor midphase eulerdamp autoreset nativeccd island override energy "
        "fwdinv invdiscrete multiccd sleep"
    ),
}
_KEPT = {  # elements of which only these attributes are passed
    "material": words("name class rgba"),
    "hfield": words("name size"),
    "camera": words("name class pos quat axisangle xyaxes zaxis euler"),
    "plugin": words(  # of an actuator, which acts like any other one
        "name class joint jointinparent tendon site refsite body slidersite cranksite cranklength "
        "gear armature"
    ),
}
_SOFT = words("flex flexcomp flexvert flexstrain")
_KINDS = {
    "body": "body",
    "joint": "joint",
    "freejoint": "joint",
    "geom": "geom",
    "spatial": "tendon",
    "fixed": "tendon",
}
_WORDS = words(  # attributes with names or words, in which "nan" is not a number
    "name class childclass model prefix file mesh hfield material body body1 body2 site site1 "
    "site2 geom sidesite joint joint1 joint2 tendon tendon1 tendon2 cranksite slidersite refsite "
    "jointinparent frame target sep meshdir texturedir assetdir plugin instance"
)
_DIRECTIONS = words("quat axis axisangle xyaxes zaxis refquat")
_MAX_DIRECTION = 1e100  # squares of greater ones may overflow, and MuJoCo takes them for none
_NOT_A_NUMBER = re.compile(r"(^|\s)[-+]?nan", re.IGNORECASE)
_INFINITE = re.compile(r"(^|\s)[-+]?inf", re.IGNORECASE)
_STAND_IN = "1 0 0 -1 0 0 0 2 0 0 -2 0 0 0 3 0 0 -3"  # octahedron, centred, principal axes


@dataclass(frozen=True, slots=True)
class Mesh:
    """A mesh asset of the file; ``path`` is relative to the model's folder.

    ``path`` is None for a mesh without a file; ``node`` is the element as written, ``stand_in`` its
    replacement in the tree.
    """

    node: SourceElement
    stand_in: SourceElement
    path: str | None
    scale: tuple[float, float, float]

    @property
    def moved(self) -> bool:
        """True if the vertices of its file are translated or rotated before they are scaled."""
        return "refpos" in self.node.attributes or "refquat" in self.node.attributes


def element_named(
    names: Mapping[tuple[str, str], SourceElement], kind: str, name: str
) -> SourceElement | None:
    """The element of this name, else the longest name contained in it: copies get longer ones."""
    if (node := names.get((kind, name))) is not None:
        return node
    contained = [contained for of, contained in names if of == kind and contained in name]
    return names[kind, max(contained, key=len)] if contained else None


@dataclass(slots=True)
class Whole:
    """State shared by the models of a file: the main one, and those that it attaches."""

    reader: SourceReader
    issues: list[Issue] = field(default_factory=list)
    names: dict[tuple[str, str], SourceElement] = field(default_factory=dict)
    meshes: dict[str, Mesh] = field(default_factory=dict)
    attached: list[tuple[SourceElement, SourceElement]] = field(
        default_factory=list
    )  # <model> elements and their trees
    sensors: list[Sensor] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    serial: int = 0

    def named(self, kind: str, name: str) -> SourceElement | None:
        """The element of the file from which the compiled element of this name came."""
        return element_named(self.names, kind, name)

    def fresh(self) -> str:
        """A name that neither equals nor begins any other name."""
        self.serial += 1
        return f"{MARK}{self.serial}_"


@dataclass(slots=True)
class Preparation:
    """Prepares a model's tree for MuJoCo.

    Removes irrelevant elements, refuses dangerous ones, and names the unnamed.
    """

    whole: Whole
    folder: Folder
    sizes: dict[str, int] = field(default_factory=dict)  # number of elements of attached models
    copies: int = 0  # number of elements that replicate and attach make

    def prepare(self, root: SourceElement, *, attached: bool = False) -> None:
        """Change the tree in place; meshes of an attached model get unique names."""
        for section in () if attached else root.find("option"):
            self.whole.options |= section.attributes
        for section in root.find("sensor"):
            self.whole.sensors += [
                Sensor(node.attributes.get("name", ""), node.tag, node.source)
                for node in section.children
            ]
        for node in root.walk():  # visits only what is left
            node.children = [child for child in node.children if not self._drops(node, child)]
        if attached:
            mark = self.whole.fresh()
            for node in root.walk():
                if "mesh" in node.attributes:
                    node.attributes["mesh"] = mark + node.attributes["mesh"]
        else:
            mark = ""
        assets, scales = self._assets(root), _mesh_scales(root)
        for section in root.find("asset"):
            for mesh in section.find("mesh"):
                self._mesh(mesh, assets, scales, mark)
            for model in section.find("model"):
                self._model(model)
        self._clean(root, "", named=True, copies=1)
        # the length range of muscles would be computed by simulation
        none = SourceElement("lengthrange", {"mode": "none"}, root.source)
        root.children.append(SourceElement("compiler", {}, root.source, children=[none]))

    def _drops(self, node: SourceElement, child: SourceElement) -> bool:
        """True if a child is irrelevant to mechanics; raises for shapes from plugins."""
        where = _BODIES.get(node.tag, node.tag)
        if child.tag in _IRRELEVANT.get(where, ()):
            return True
        if child.tag != "plugin" or where == "actuator":
            return False
        if where not in ("body", "composite"):
            raise child.error(
                f"plugins are not run, and this <{node.tag}> takes its shape from one"
            )
        self.whole.issues.append(
            Issue("has a plugin, whose forces no function applies", node.source, "plugin")
        )
        return True

    def _clean(self, node: SourceElement, section: str, *, named: bool, copies: int) -> None:
        """Refuse, rewrite and name the elements of ``section`` one by one."""
        for child in node.children:
            where = section or child.tag
            if child.tag in _SOFT:
                raise child.error(f"<{child.tag}> is of a soft body; only rigid bodies are read")
            below = copies
            if child.tag in ("replicate", "composite"):
                below *= _count(child)
            self.copies += copies - 1
            if child.tag == "attach":
                self.copies += copies * self.sizes.get(child.attributes.get("model", ""), 0)
            if self.copies > MAX_COPIES or below > MAX_COPIES:
                raise child.error(f"makes more than {MAX_COPIES} copies of elements")
            self._without_empty(child)
            _rewrite(child, where)
            keeps = named and child.tag not in ("default", "composite")
            if keeps and child.tag != "mesh" and node.tag not in ("fixed", "spatial"):
                if where in ("equality", "actuator") and section:
                    self._name(child, where)
                elif child.tag in _KINDS and where in ("worldbody", "tendon"):
                    self._name(child, _KINDS[child.tag])
            self._clean(child, where, named=keeps, copies=below)

    def _without_empty(self, node: SourceElement) -> None:
        """Remove empty attributes: for required ones, MuJoCo would take arbitrary numbers."""
        for name, value in list(node.attributes.items()):
            if name not in _WORDS and not value.strip():
                self.whole.issues.append(
                    Issue(f"{name} is empty; it is read as if it were not there", node.source)
                )
                del node.attributes[name]

    def _name(self, node: SourceElement, kind: str) -> None:
        """Record the location of an element; give it a name if it has none."""
        name = node.attributes.get("name")
        if not name:
            name = node.attributes["name"] = self.whole.fresh()
        self.whole.names.setdefault((kind, name), node)

    # ---- assets

    @staticmethod
    def _assets(root: SourceElement) -> tuple[str, bool]:
        """The folder of meshes as written, and whether the folders of file names are stripped."""
        settings: dict[str, str] = {}
        for compiler in root.find("compiler"):
            settings |= compiler.attributes
        return settings.get("meshdir", settings.get("assetdir", "")), settings.get(
            "strippath"
        ) == "true"

    def _mesh(
        self, node: SourceElement, assets: tuple[str, bool], scales: Mapping[str, str], mark: str
    ) -> None:
        """Replace a mesh by a stand-in, and keep the element of the file."""
        _name_by_file(node)
        name = mark + node.attributes.get("name", "")
        mesh = SourceElement(node.tag, dict(node.attributes), node.source)
        path = None
        if file := node.attributes.get("file"):
            folder, strip = assets
            if strip:
                path = self.folder.joined(folder, file.replace("\\", "/").rpartition("/")[2])
            else:  # relative to the file that names it
                beside = node.folder.joined(file)
                path = self.folder.first(self.folder.joined(folder, file), beside)
        written = node.attributes.get("scale", scales.get(node.attributes.get("class", "main"), ""))
        scale = _numbers(written or "1 1 1", mesh, "scale")
        if len(scale) != 3:
            raise mesh.error(f"scale needs three numbers, got {spelled(written)}")
        for number in _numbers(node.attributes.get("params", ""), mesh, "params"):
            if not abs(number) <= _MAX_MESH_PARAMETER:
                raise mesh.error(f"params of a mesh are read up to {_MAX_MESH_PARAMETER:g}")
        node.attributes = {"name": name, "scale": "1 1 1", "vertex": _STAND_IN}
        node.children = []
        self.whole.meshes[name] = Mesh(mesh, node, path, (scale[0], scale[1], scale[2]))
        self.whole.names["mesh", name] = node

    def _model(self, node: SourceElement) -> None:
        """Prepare a model that this one attaches parts of."""
        document, folder = self.whole.reader.open(node, node.folder, self.folder)
        tree = self.whole.reader.tree(document, folder)
        inner = Preparation(self.whole, folder)
        inner.prepare(tree, attached=True)
        name = node.attributes.get("name") or tree.attributes.get("model") or UNNAMED
        self.sizes[name] = inner.copies + sum(1 for _ in tree.walk())
        node.attributes = {"name": name, "file": f"{self.whole.fresh()}.xml"}
        self.whole.attached.append((node, tree))


def _rewrite(node: SourceElement, section: str) -> None:
    """Remove or rewrite attributes for MuJoCo; raises for numbers that are not finite."""
    attributes, tag = node.attributes, node.tag
    if tag in _DROPPED:
        node.attributes = {k: v for k, v in attributes.items() if k not in _DROPPED[tag]}
    elif tag in _KEPT and (tag != "hfield" or section == "asset"):
        if tag == "hfield":
            _name_by_file(node)
        node.attributes = {k: v for k, v in attributes.items() if k in _KEPT[tag]}
        node.attributes |= {"nrow": "2", "ncol": "2"} if tag == "hfield" else {}
        node.tag = "general" if tag == "plugin" else tag
    elif "file" in attributes and tag != "model":
        raise node.error(f"the file of a <{tag}> is not read; remove it")
    if tag in ("compiler", "plugin"):
        node.children = []
    for name, value in node.attributes.items():
        if name not in _WORDS and (
            _NOT_A_NUMBER.search(value) or (_INFINITE.search(value) and not name.endswith("range"))
        ):
            raise node.error(f"{name} is {spelled(value)}, which is not a finite number")
        if name in _DIRECTIONS and "e" in value.lower():
            most = max(map(abs, _numbers(value, node, name)), default=0.0)
            if most > _MAX_DIRECTION:
                raise node.error(
                    f"{name} has the number {most:g}, whose square MuJoCo cannot compute; write "
                    "numbers near 1, as only their ratios count"
                )


def _name_by_file(node: SourceElement) -> None:
    """Name an asset without a name after its file, as MuJoCo does."""
    file = node.attributes.get("file", "").replace("\\", "/")
    if file and not node.attributes.get("name"):
        node.attributes["name"] = file.rpartition("/")[2].rpartition(".")[0]


def _mesh_scales(root: SourceElement) -> dict[str, str]:
    """The scales of meshes by default class."""
    scales: dict[str, str] = {}
    stack = [(node, "1 1 1") for node in root.find("default")]
    while stack:
        node, scale = stack.pop()
        for mesh in node.find("mesh"):
            scale = mesh.attributes.get("scale", scale)
        scales[node.attributes.get("class", "main")] = scale
        stack.extend((child, scale) for child in node.find("default"))
    return scales


def _count(node: SourceElement) -> int:
    """The number of copies that an element makes of its contents."""
    product = 1
    for value in _numbers(node.attributes.get("count", "1"), node, "count"):
        product *= max(1, int(min(max(value, 1.0), 1e9)))
    return product


def _numbers(text: str, node: SourceElement, name: str) -> list[float]:
    try:
        return [float(word) for word in text.split()]
    except ValueError:
        raise node.error(f"{name} is {spelled(text)}, which is not numbers") from None


_MESH_GEOM = 7  # mjtGeom


@dataclass(frozen=True, slots=True)
class CompiledFile:
    """MuJoCo's compiled model, and the elements of the file behind it.

    ``standing`` is the same model with stand-ins for all meshes, in which geoms have the poses of
    the file. The inertias of the bodies ``unweighed`` depend on meshes that could not be read.
    ``custom`` are the ``<custom>`` texts and numbers of the file, ``options`` the attributes of its
    ``<option>``.
    """

    model: Any
    standing: Any
    root: SourceElement
    names: Mapping[tuple[str, str], SourceElement]
    meshes: Mapping[str, Mesh]
    unweighed: frozenset[int]
    custom: Mapping[str, str]
    sensors: tuple[Sensor, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    def node(self, kind: str, name: str) -> SourceElement | None:
        """The element of the file from which a compiled element came, also if it is a copy."""
        return element_named(self.names, kind, name)

    def mesh(self, name: str) -> Mesh | None:
        """The mesh asset from which a compiled mesh came."""
        node = self.node("mesh", name)
        return self.meshes[node.attributes["name"]] if node else None

    def source(self, kind: str, name: str, label: str) -> Source:
        """The location of a compiled element, under the name ``label``."""
        node = self.node(kind, name)
        place = node.source if node else self.root.source
        return Source(place.file, place.line, label)

    def written(self, name: str) -> str:
        """The name if the file gives it; else empty."""
        return "" if MARK in name else name


_ALONE = Lock()  # MuJoCo has one handler of warnings for all threads
_LINE = re.compile(r",? line (\d+)")
_HEAD = re.compile(r"^((XML )?Error: |could not parse model file with error: )+")
_Parts = tuple[dict[str, str], dict[str, bytes]]  # a mesh's attributes, and its files


def compile_mjcf(document: Document) -> CompiledFile:
    """MuJoCo's compiled model of the document; warnings are added to the document's issues.

    Raises :class:`DescriptionError` for what cannot be read or compiled, and ImportError if MuJoCo
    is not installed.
    """
    folder = Folder.of(document.file)
    reader = SourceReader(document.strict, document.issues)
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
    document.issues.extend((*whole.issues, *compiler.issues, *_missing(whole.meshes, folder)))
    sensors = tuple(whole.sensors)
    return CompiledFile(
        model, standing, root, whole.names, whole.meshes, unweighed, custom, sensors, whole.options
    )


_NONE: frozenset[int] = frozenset()


def _missing(meshes: Mapping[str, Mesh], folder: Folder) -> Iterator[Issue]:
    """Issues about meshes that are not there, though no inertia depends on them."""
    for mesh in meshes.values() if folder.path is not None else ():
        if mesh.path and not os.path.isfile(os.path.join(folder.path or "", mesh.path)):
            yield Issue(
                f"there is no file {spelled(mesh.path)}, without which MuJoCo refuses the model; "
                "dynamics do not depend on it",
                mesh.node.source,
                "mesh missing",
            )


class _WhenUsed(ModuleType):
    """Stands for a module, which is imported when a name of it is first asked for."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def _mujoco() -> Any:
    """The module ``mujoco``, imported without what opens windows.

    MuJoCo's package imports glfw, for its renderer. That starts another Python and takes longer
    than MuJoCo itself, so it waits until the renderer, or another program, asks for it.
    """
    window = "glfw"
    if {"mujoco", window} & sys.modules.keys() or find_spec(window) is None:
        return import_module("mujoco")
    stand_in = sys.modules[window] = _WhenUsed(window)
    try:
        return import_module("mujoco")
    finally:
        if sys.modules.get(window) is stand_in:
            del sys.modules[window]


class _Compiler:
    """Writes the tree with one element a line, compiles it, and explains MuJoCo's errors."""

    def __init__(self, root: SourceElement, whole: Whole) -> None:
        try:
            self.mujoco = _mujoco()
        except ImportError as error:
            raise MissingPackageError(
                "MJCF files are read by MuJoCo's own compiler, and need", "mujoco", "mujoco",
                root.source,
            ) from error  # fmt: skip
        self.root = root
        self.whole = whole
        self.issues: list[Issue] = []

    def model(self, meshes: Mapping[SourceElement, _Parts]) -> Any:
        """The compiled model; ``meshes`` replace their stand-ins."""
        lines: list[SourceElement | None] = []
        texts = {
            model.attributes["file"]: _text(tree, meshes, lines).encode()
            for model, tree in self.whole.attached
        }
        text = _text(self.root, meshes, lines)
        for _, files in meshes.values():
            texts |= files
        with _ALONE:
            before = self.mujoco.get_mju_user_warning()
            warnings: list[str] = []
            self.mujoco.set_mju_user_warning(warnings.append)
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
        self.issues = [
            Issue(f"MuJoCo warns: {what}", source)
            for what, source in (self._explained(warning, lines) for warning in warnings)
            if "deprecated" not in what  # about syntax, not about mechanics
        ]
        return model

    def _explained(self, message: str, lines: Sequence[SourceElement | None]) -> tuple[str, Source]:
        """MuJoCo's error without the reader's names, and the element that it is about."""
        number = _LINE.search(message)
        node = lines[int(number[1]) - 1] if number and int(number[1]) <= len(lines) else None
        what = _HEAD.sub("", message.strip().splitlines()[0] if message.strip() else "")
        return re.sub(f"'[^']*{MARK}[^']*'", "''", what), (node or self.root).source

    def weighed(self, standing: Any, folder: Folder) -> tuple[Any, frozenset[int]]:
        """The model with the actual meshes on which inertias depend.

        Also returns the bodies whose inertia is unknown because a file is missing; these are fixed
        to the world, others raise.
        """
        meshes = self.whole.meshes
        changed = self._changed(standing, {}, meshes)
        if not changed:
            return standing, _NONE
        real: dict[SourceElement, _Parts] = {}
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

    def _changed(
        self, model: Any, real: Mapping[SourceElement, _Parts], names: Iterable[str]
    ) -> list[int]:
        """The bodies whose inertia changes if the stand-ins of these meshes are enlarged."""
        larger = {}
        for name in names:
            node = self.whole.meshes[name].stand_in
            larger[node] = (node.attributes | {"scale": "2 2 2"}, dict[str, bytes]())
        other = self.model({**real, **larger})
        parts = ("body_mass", "body_inertia", "body_ipos", "body_iquat")
        pairs = [(getattr(model, part), getattr(other, part)) for part in parts]
        return [i for i in range(model.nbody) if any((a[i] != b[i]).any() for a, b in pairs)]

    def _on(self, standing: Any, bodies: Iterable[int]) -> list[str]:
        """The meshes on these bodies, and those that no geom of the model names."""
        meshes, used = self.whole.meshes, dict[int, set[str]]()
        for geom in range(standing.ngeom):
            number, name = int(standing.geom_dataid[geom]), ""
            node = self.whole.named("geom", str(standing.geom(geom).name))
            if int(standing.geom_type[geom]) == _MESH_GEOM:
                name = str(standing.mesh(number).name)
                mesh = self.whole.named("mesh", name)
                name = mesh.attributes["name"] if mesh else ""
            elif node is not None:  # for example, a box that is fitted to a mesh
                name = node.attributes.get("mesh", "")
            used.setdefault(int(standing.geom_bodyid[geom]), set()).add(name)
        here = set().union(*(used.get(body, ()) for body in bodies))
        anywhere = set().union(*used.values())
        return [name for name in meshes if name in here or name not in anywhere]


def _real(mesh: Mesh, folder: Folder, fresh: str, allowance: Allowance) -> _Parts:
    """The attributes of a mesh in the file, with the content of its mesh file."""
    dropped = ("content_type", "material", "file")
    attributes = {k: v for k, v in mesh.node.attributes.items() if k not in dropped}
    attributes["name"] = mesh.stand_in.attributes["name"]
    if mesh.path is None:
        return attributes, {}
    try:
        data, _ = folder.read(mesh.path, mesh.node, MUJOCO, MAX_MESH_BYTES)
    except FileNotFoundError:
        raise mesh.node.error(
            f"there is no file {spelled(mesh.path)}, and the inertia of a body depends on it; give "
            "the body an <inertial>, or put the file beside the model"
        ) from None
    allowance.spend(len(data), f"the file {spelled(mesh.path)}", mesh.node.source)
    file = fresh + os.path.splitext(mesh.path)[1].lower()
    return attributes | {"file": file}, {file: data}


def _text(
    root: SourceElement, meshes: Mapping[SourceElement, _Parts], lines: list[SourceElement | None]
) -> str:
    """The tree as XML, an element a line, after as many empty lines as ``lines`` has.

    ``lines`` is continued by the elements, so that a line identifies an element of any model.
    """
    written = ["\n" * len(lines)]
    stack: list[tuple[SourceElement, bool]] = [(root, False)]
    while stack:
        node, ends = stack.pop()
        lines.append(node)
        if ends:
            written.append(f"</{node.tag}>\n")
            continue
        attributes = meshes[node][0] if node in meshes else node.attributes
        inside = "".join(f" {name}={quoted(value)}" for name, value in attributes.items())
        written.append(f"<{node.tag}{inside}{'' if node.children else '/'}>\n")
        if node.children:
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children))
    return "".join(written)
