"""Shapes as geoms, and the assets of their meshes."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field, replace

from lxml import etree

from robomodel.description import Link, Shape
from robomodel.parsers.meshes import MUJOCO
from robomodel.parsers.mjcf.draft import Draft
from robomodel.parsers.mjcf.poses import pose_words
from robomodel.parsers.schema import SIZES, add
from robomodel.text import number, numbers


@dataclass
class Shapes:
    """What writes the geoms of a document, and has the meshes that they name."""

    draft: Draft
    meshes: dict[tuple[str, tuple[float, ...]], str] = field(default_factory=dict)

    def write(self, link: Link, body: etree._Element, *, moves: bool) -> None:
        """The link's shapes; one that is seen and touches is a single geom."""
        left = list(link.shapes)
        while left:
            shape = left.pop(0)
            twin = next((other for other in left if _alike(shape, other)), None)
            if twin is not None:
                left.remove(twin)
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
        """The attributes that tell a shape's size; None for what MuJoCo does not have."""
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
        if not size or min(size) <= 0.0:
            self.draft.lost.append(f"a {shape.kind} of the link '{link.name}' without extent")
            return None
        return {"size": numbers(size)}

    def _mesh(self, file: str, scale: tuple[float, ...]) -> str:
        """The asset of a mesh file at a scale; it may be open or flat, as it weighs nothing."""
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
    """Whether two shapes are one geom, seen and touching."""
    as_other = replace(
        shape, role=other.role, source=other.source, friction=other.friction,
        restitution=other.restitution,
    )  # fmt: skip
    return shape.role != other.role and as_other == other
