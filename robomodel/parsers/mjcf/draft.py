"""A document of MJCF that is being written: its sections and names, geoms and meshes."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from dataclasses import dataclass, field, replace

from lxml import etree

from robomodel.description import IDENTITY, Link, Pose, Rows3, Shape
from robomodel.description.poses import quaternion_of_rotation
from robomodel.parsers.meshes import MUJOCO
from robomodel.vocabulary.schema import SIZES, Names, add, number, numbers

_SECTIONS = ("default", "asset", "worldbody", "tendon", "equality", "actuator", "custom")


@dataclass
class MjcfDraft:
    """A document. ``bodies`` are the elements of links, ``refs`` the joints' initial positions.

    ``tendons`` are those with armature, as joints and coefficients; actuators may act on them.
    ``untied`` are the couplings that ``lost`` tells of.
    """

    name: str
    lost: list[str] = field(default_factory=list)
    untied: set[str] = field(default_factory=set)
    bodies: dict[str, etree._Element] = field(default_factory=dict)
    refs: dict[str, float] = field(default_factory=dict)
    tendons: list[tuple[dict[str, float], str]] = field(default_factory=list)
    names: dict[str, Names] = field(default_factory=lambda: defaultdict(Names))

    def __post_init__(self) -> None:
        self.root = etree.Element("mujoco", model=self.name)
        add(self.root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
        self.option = add(self.root, "option")
        self.sections = {name: add(self.root, name) for name in _SECTIONS}

    def add(self, section: str, tag: str, **words: str) -> etree._Element:
        """Append a new element to a section."""
        return add(self.sections[section], tag, **words)

    def unused(self, kind: str, name: str) -> str:
        """A unique name for an element of this kind, with a number appended if needed."""
        return self.names[kind].fresh(name)

    def text(self) -> str:
        """The document as text, without empty sections."""
        for section in self.sections.values():
            if not len(section) and section.tag != "worldbody":
                self.root.remove(section)
        text: str = etree.tostring(self.root, pretty_print=True, encoding="unicode")
        return text


def pose_words(pose: Pose) -> dict[str, str]:
    """The attributes ``pos`` and ``quat`` of a pose, without default values."""
    words = {"pos": numbers(pose.xyz)} if any(pose.xyz) else {}
    return words | turn_words(pose.rotation)


def turn_words(rotation: Rows3) -> dict[str, str]:
    """The attribute ``quat`` of a rotation, unless it is the identity."""
    return {} if rotation == IDENTITY else {"quat": numbers(quaternion_of_rotation(rotation))}


@dataclass
class Shapes:
    """Writes the geoms of a document and the meshes that they name."""

    draft: MjcfDraft
    meshes: dict[tuple[str, tuple[float, ...]], str] = field(default_factory=dict)

    def write(self, link: Link, body: etree._Element, *, moves: bool) -> None:
        """Write the link's shapes; equal visual and collision shapes become one geom."""
        remaining = list(link.shapes)
        while remaining:
            shape = remaining.pop(0)
            twin = next((other for other in remaining if _alike(shape, other)), None)
            if twin is not None:
                remaining.remove(twin)
            size = self._size(shape, link, moves)
            if size is None:
                continue
            geom = add(body, "geom", type=shape.kind, **size, **pose_words(shape.origin))
            if shape.name:
                geom.set("name", self.draft.unused("geom", shape.name))
            if shape.rgba is not None:
                geom.set("rgba", numbers(shape.rgba))
            touching = shape if shape.role == "collision" else twin
            if touching is not None and touching.friction is not None:
                geom.set("friction", number(touching.friction))
            if touching is not None and touching.restitution:
                self.draft.lost.append(
                    f"the restitution {touching.restitution:g} of a {shape.kind} of the link "
                    f"'{link.name}': MuJoCo's contacts are soft"
                )
            if twin is None and shape.role == "visual":
                geom.set("contype", "0")
                geom.set("conaffinity", "0")
                geom.set("group", "2")
            elif twin is None:
                geom.set("group", "3")

    def _size(self, shape: Shape, link: Link, moves: bool) -> dict[str, str] | None:
        """The attributes of a shape's size; None if MuJoCo cannot have the shape."""
        if shape.kind == "mesh":
            file = (shape.file or "").replace("\\", "/")
            if not file.lower().endswith(MUJOCO) or ":" in file:
                self.draft.lost.append(
                    f"the mesh '{shape.file}' of the link '{link.name}': MuJoCo reads STL, OBJ and "
                    "MSH from plain paths"
                )
                return None
            return {"mesh": self._mesh(file, shape.size or (1.0, 1.0, 1.0))}
        if shape.kind == "plane":
            if moves:
                self.draft.lost.append(f"the plane of the link '{link.name}': one that moves")
                return None
            return {"size": "0 0 1"}
        size = tuple(a * b for a, b in zip(shape.size, SIZES[shape.kind].mjcf, strict=True))
        if size and not any(size):
            return None  # a point, as in dummy links, is neither visible nor in contact
        if not size or min(size) <= 0.0:
            self.draft.lost.append(f"a {shape.kind} of the link '{link.name}' without extent")
            return None
        return {"size": numbers(size)}

    def _mesh(self, file: str, scale: tuple[float, ...]) -> str:
        """The asset of a mesh file at a scale; it may be open or flat, as it has no mass."""
        if not self.meshes:
            self.draft.add("default", "mesh", inertia="shell")
        if (file, scale) not in self.meshes:
            name = self.draft.unused("mesh", posixpath.splitext(posixpath.basename(file))[0])
            mesh = self.draft.add("asset", "mesh", name=name, file=file)
            if scale != (1.0, 1.0, 1.0):
                mesh.set("scale", numbers(scale))
            self.meshes[file, scale] = name
        return self.meshes[file, scale]


def _alike(shape: Shape, other: Shape) -> bool:
    """True if a visual and a collision shape are one geom."""
    as_other = replace(
        shape, role=other.role, source=other.source, friction=other.friction,
        restitution=other.restitution,
    )  # fmt: skip
    return shape.role != other.role and as_other == other
