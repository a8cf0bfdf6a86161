"""An MJCF model as MuJoCo is to see it: its mechanics alone, every element with a name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from robomodel.description import Sensor
from robomodel.errors import Doubt
from robomodel.parsers.mjcf.files import MARK, Folder, Node, Reader
from robomodel.parsers.xml import spelled, words

UNNAMED = "MuJoCo Model"
"""What MuJoCo calls a model without a name."""
MAX_COPIES = 10_000
"""How many copies the ``replicate`` and ``attach`` elements of a file may make."""
_MAX_MESH_PARAMETER = 200.0  # of builtin meshes: the size of what they make grows with its square


_BODIES = {"worldbody": "body", "frame": "body", "replicate": "body"}
_IRRELEVANT = {  # what has no mechanics, and may have what size a file likes
    "mujoco": words("size statistic visual contact sensor keyframe custom extension"),
    "asset": words("texture skin"),
    "default": words("texture camera light pair"),
    "deformable": words("skin"),
    "body": words("camera light"),
    "material": words("layer"),
}
_DROPPED = {  # attributes that MuJoCo is not to see
    "compiler": words(
        "meshdir texturedir assetdir strippath discardvisual fusestatic usethread saveinertial "
        "savecompiled savecanonical passthrough"
    ),
    "option": words(  # of solvers and contacts; some of any version is unknown to others
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
_KEPT = {  # and the only ones that it is to see
    "material": words("name class rgba"),
    "hfield": words("name size"),
    "plugin": words(  # of an actuator, which drives what any other one does
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
_WORDS = words(  # attributes that hold names or words; in others, "nan" is a number
    "name class childclass model prefix file mesh hfield material body body1 body2 site site1 "
    "site2 geom sidesite joint joint1 joint2 tendon tendon1 tendon2 cranksite slidersite refsite "
    "jointinparent frame target sep meshdir texturedir assetdir plugin instance"
)
_NOT_A_NUMBER = re.compile(r"(^|\s)[-+]?nan", re.IGNORECASE)
_INFINITE = re.compile(r"(^|\s)[-+]?inf", re.IGNORECASE)
_STAND_IN = "1 0 0 -1 0 0 0 2 0 0 -2 0 0 0 3 0 0 -3"  # an octahedron: centred, its axes principal


@dataclass(frozen=True, slots=True)
class Mesh:
    """A mesh asset as the file has it; ``path`` is relative to the model's folder.

    ``path`` is None for a mesh that is no file; ``node`` is the element as written, ``stand_in``
    the one in the tree.
    """

    node: Node
    stand_in: Node
    path: str | None
    scale: tuple[float, float, float]

    @property
    def moved(self) -> bool:
        """Whether the coordinates in its file are moved before they are scaled."""
        return "refpos" in self.node.attributes or "refquat" in self.node.attributes


def element_named(names: Mapping[tuple[str, str], Node], kind: str, name: str) -> Node | None:
    """The element of this name, else the one whose name is most of this one: copies get more."""
    if (node := names.get((kind, name))) is not None:
        return node
    known = [known for of, known in names if of == kind and known in name]
    return names[kind, max(known, key=len)] if known else None


@dataclass(slots=True)
class Whole:
    """What the models of a file share: the main one, and those that it attaches."""

    reader: Reader
    doubts: list[Doubt] = field(default_factory=list)
    names: dict[tuple[str, str], Node] = field(default_factory=dict)
    meshes: dict[str, Mesh] = field(default_factory=dict)
    attached: list[tuple[Node, Node]] = field(default_factory=list)  # a <model> and its tree
    sensors: list[Sensor] = field(default_factory=list)
    serial: int = 0

    def named(self, kind: str, name: str) -> Node | None:
        """The element that the compiled one of this name came from."""
        return element_named(self.names, kind, name)

    def fresh(self) -> str:
        """A name that no other element has, nor any with something added to it."""
        self.serial += 1
        return f"{MARK}{self.serial}_"


@dataclass(slots=True)
class Preparation:
    """Makes a model's tree what MuJoCo is to see.

    What is irrelevant goes, what is dangerous is refused, what has no name is given one.
    """

    whole: Whole
    folder: Folder
    sizes: dict[str, int] = field(default_factory=dict)  # elements of each model that is attached
    made: int = 0  # elements that replicate and attach make

    def prepare(self, root: Node, *, attached: bool = False) -> None:
        """Change the tree; an attached model's meshes are renamed, to be told from others."""
        for section in root.find("sensor"):
            self.whole.sensors += [
                Sensor(node.attributes.get("name", ""), node.tag, node.source)
                for node in section.children
            ]
        for node in root.walk():  # which goes no further than what is left
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
        # what muscles can reach would be found by simulating them
        none = Node("lengthrange", {"mode": "none"}, root.source)
        root.children.append(Node("compiler", {}, root.source, children=[none]))

    def _drops(self, node: Node, child: Node) -> bool:
        """Whether a child has nothing to do with mechanics."""
        where = _BODIES.get(node.tag, node.tag)
        if child.tag in _IRRELEVANT.get(where, ()):
            return True
        if child.tag != "plugin" or where == "actuator":
            return False
        if where not in ("body", "composite"):
            raise child.error(
                f"plugins are not run, and this <{node.tag}> takes its shape from one"
            )
        self.whole.doubts.append(
            Doubt("has a plugin, whose forces no function applies", node.source, "plugin")
        )
        return True

    def _clean(self, node: Node, section: str, *, named: bool, copies: int) -> None:
        """Refuse, rewrite and name, element by element; all these stand in ``section``."""
        for child in node.children:
            where = section or child.tag
            if child.tag in _SOFT:
                raise child.error(f"<{child.tag}> is of a soft body; only rigid bodies are read")
            below = copies
            if child.tag in ("replicate", "composite"):
                below *= _count(child)
            self.made += copies - 1
            if child.tag == "attach":
                self.made += copies * self.sizes.get(child.attributes.get("model", ""), 0)
            if self.made > MAX_COPIES or below > MAX_COPIES:
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

    def _without_empty(self, node: Node) -> None:
        """Remove numbers that are empty: of those that it requires MuJoCo takes any."""
        for name, value in list(node.attributes.items()):
            if name not in _WORDS and not value.strip():
                self.whole.doubts.append(
                    Doubt(f"{name} is empty; it is read as if it were not there", node.source)
                )
                del node.attributes[name]

    def _name(self, node: Node, kind: str) -> None:
        """Note where an element stands; give it a name if it has none."""
        name = node.attributes.get("name")
        if not name:
            name = node.attributes["name"] = self.whole.fresh()
        self.whole.names.setdefault((kind, name), node)

    # ---- assets

    @staticmethod
    def _assets(root: Node) -> tuple[str, bool]:
        """The folder of meshes as written, and whether file names lose their own path."""
        found: dict[str, str] = {}
        for compiler in root.find("compiler"):
            found |= compiler.attributes
        return found.get("meshdir", found.get("assetdir", "")), found.get("strippath") == "true"

    def _mesh(
        self, node: Node, assets: tuple[str, bool], scales: Mapping[str, str], mark: str
    ) -> None:
        """Put a stand-in into the tree, and keep what the file says."""
        _name_by_file(node)
        name = mark + node.attributes.get("name", "")
        kept = Node(node.tag, dict(node.attributes), node.source)
        path = None
        if file := node.attributes.get("file"):
            folder, strip = assets
            if strip:
                path = self.folder.joined(folder, file.replace("\\", "/").rpartition("/")[2])
            else:  # else beside the file that names it
                beside = node.folder.joined(file)
                path = self.folder.first(self.folder.joined(folder, file), beside)
        written = node.attributes.get("scale", scales.get(node.attributes.get("class", "main"), ""))
        scale = _numbers(written or "1 1 1", kept, "scale")
        if len(scale) != 3:
            raise kept.error(f"scale needs three numbers, got {spelled(written)}")
        for number in _numbers(node.attributes.get("params", ""), kept, "params"):
            if not abs(number) <= _MAX_MESH_PARAMETER:
                raise kept.error(f"params of a mesh are read up to {_MAX_MESH_PARAMETER:g}")
        node.attributes = {"name": name, "scale": "1 1 1", "vertex": _STAND_IN}
        node.children = []
        self.whole.meshes[name] = Mesh(kept, node, path, (scale[0], scale[1], scale[2]))
        self.whole.names["mesh", name] = node

    def _model(self, node: Node) -> None:
        """A model that this one attaches parts of is prepared as this one is."""
        document, folder = self.whole.reader.open(node, node.folder, self.folder)
        tree = self.whole.reader.tree(document, folder)
        inner = Preparation(self.whole, folder)
        inner.prepare(tree, attached=True)
        name = node.attributes.get("name") or tree.attributes.get("model") or UNNAMED
        self.sizes[name] = inner.made + sum(1 for _ in tree.walk())
        node.attributes = {"name": name, "file": f"{self.whole.fresh()}.xml"}
        self.whole.attached.append((node, tree))


def _rewrite(node: Node, section: str) -> None:
    """Attributes that MuJoCo is not to see, or to see otherwise; numbers that are none."""
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


def _name_by_file(node: Node) -> None:
    """An asset without a name is called after its file."""
    file = node.attributes.get("file", "").replace("\\", "/")
    if file and not node.attributes.get("name"):
        node.attributes["name"] = file.rpartition("/")[2].rpartition(".")[0]


def _mesh_scales(root: Node) -> dict[str, str]:
    """The scale of meshes, by default class."""
    scales: dict[str, str] = {}
    stack = [(node, "1 1 1") for node in root.find("default")]
    while stack:
        node, scale = stack.pop()
        for mesh in node.find("mesh"):
            scale = mesh.attributes.get("scale", scale)
        scales[node.attributes.get("class", "main")] = scale
        stack.extend((child, scale) for child in node.find("default"))
    return scales


def _count(node: Node) -> int:
    """How many copies an element makes of what is in it."""
    product = 1
    for value in _numbers(node.attributes.get("count", "1"), node, "count"):
        product *= max(1, int(min(max(value, 1.0), 1e9)))
    return product


def _numbers(text: str, node: Node, name: str) -> list[float]:
    try:
        return [float(word) for word in text.split()]
    except ValueError:
        raise node.error(f"{name} is {spelled(text)}, which is not numbers") from None
