"""Bodies of a stage: poses, masses and shapes."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

from robomodel.description import (
    AT_ORIGIN,
    IDENTITY,
    Inertial,
    Pose,
    Rows3,
    Shape,
    ShapeKind,
    Vec3,
)
from robomodel.description import inertias as masses
from robomodel.description.poses import (
    compose,
    quaternion_of_rotation,
    relative,
    rotation_of_quaternion,
    rows3,
    tidy,
    vec,
)
from robomodel.description.shapes import shell, solid
from robomodel.errors import DescriptionError
from robomodel.files import BETWEEN, Allowance
from robomodel.parsers.usd.schema import MESH, NAME, SCALE, StageReader, applies
from robomodel.scalars import held
from robomodel.spatial import minus
from robomodel.tolerances import WRITTEN
from robomodel.vocabulary.schema import Fields

DENSITY = 1000.0
"""Default density of colliders [kg/m³]."""
_TENSOR = "newton:inertia"
_UPRIGHT: dict[str, Rows3] = {  # rotations from z to an axis
    "X": ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0)),
    "Y": ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, -1.0, 0.0)),
    "Z": IDENTITY,
}


Moments = tuple[float, float, float, float, float, float]
"""Ixx, Ixy, Ixz, Iyy, Iyz, Izz [kg m²]."""


@dataclass
class LinkPrim:
    """A prim that is a link: its pose in the world [m], and the scale of its contents.

    ``urdf`` is the URDF+ element that this package's writer attached, or None.
    """

    prim: Any
    name: str
    pose: Pose
    scale: Vec3
    urdf: Any = None
    shapes: list[Shape] = field(default_factory=list)
    colliders: list[tuple[Any, Shape]] = field(default_factory=list)


@dataclass
class Placements:
    """Poses of prims in the world."""

    reader: StageReader

    def __post_init__(self) -> None:
        from pxr import Usd, UsdGeom

        self.cache = UsdGeom.XformCache(Usd.TimeCode.EarliestTime())  # of motions

    def of(self, prim: Any) -> tuple[Pose, Vec3]:
        """The pose [m] and the scale of a prim; the scale of a mirrored prim is negative."""
        matrix = self.cache.GetLocalToWorldTransform(prim)
        rows = [[float(matrix[i][j]) for j in range(3)] for i in range(3)]
        xyz = [float(matrix[3][j]) * self.reader.units.length for j in range(3)]
        if not all(math.isfinite(x) for row in (*rows, xyz) for x in row):
            raise self.reader.error(prim, "its transform has numbers that are not finite")
        sizes = [math.hypot(*row) for row in rows]
        if min(sizes) <= 0.0:
            raise self.reader.error(prim, "its scale is zero; scale by a positive number")
        axes = [[x / size for x in row] for row, size in zip(rows, sizes, strict=True)]
        (a, b, c), (d, e, f), (g, h, i) = axes
        if (
            max(abs(a * d + b * e + c * f), abs(a * g + b * h + c * i), abs(d * g + e * h + f * i))
            > 1e-3  # cosine between axes from which on a transform counts as sheared
        ):
            self.reader.warn(prim, "its transform is sheared, which is left out", "shear")
        sign = 1.0 if a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g) > 0 else -1.0
        turn = rows3([sign * x for x in row] for row in zip(*axes, strict=True))
        w, x, y, z = quaternion_of_rotation(turn)
        return tidy(Pose(vec(xyz), rotation_of_quaternion(x, y, z, w))), vec(
            sign * s for s in sizes
        )


# --- shapes ---------------------------------------------------------------------------------------


def add_shapes(reader: StageReader, placements: Placements, prim: Any, body: LinkPrim) -> None:
    """Add the shapes of a geometric prim to its body: visual, collision, or both."""
    from pxr import UsdGeom

    collides = _collides(prim, body.prim)
    purpose = str(UsdGeom.Imageable(prim).ComputePurpose())
    visible = str(UsdGeom.Imageable(prim).ComputeVisibility()) != "invisible"
    seen = visible and purpose in ("default", "render")
    if not (collides or seen):
        return
    pose, scale = placements.of(prim)
    form = _form(reader, prim, scale)
    if form is None:
        kind = prim.GetTypeName()
        reader.warn(prim, f"a {kind} is no shape that is kept; it is left out", f"shape {kind}")
        return
    kind, size, turn = form
    origin = tidy(compose(relative(body.pose, pose), Pose(rotation=turn)))
    file = None
    if kind == "mesh":
        origin_file = reader.written(prim, MESH)
        file = (
            str(origin_file)
            if origin_file
            else f"{os.path.basename(reader.file)}{BETWEEN}{prim.GetPath()}"
        )
        if origin_file and (numbers := reader.numbers(prim, SCALE, 3)):
            size = vec(numbers)
    name = str(reader.written(prim, NAME) or "")
    shape = Shape(
        "visual", kind, size, origin, file, name, _colour(reader, prim), reader.source(prim)
    )
    if seen:
        body.shapes.append(shape)
    if collides:
        surface = replace(shape, role="collision", **_surface(reader, prim))
        body.shapes.append(surface)
        body.colliders.append((prim, surface))


def _collides(prim: Any, body: Any) -> bool:
    """True if a prim, or an ancestor of it within its body, is a collider."""
    from pxr import UsdPhysics

    while prim and not prim.IsPseudoRoot() and prim != body:
        if prim.HasAPI(UsdPhysics.CollisionAPI):
            return UsdPhysics.CollisionAPI(prim).GetCollisionEnabledAttr().Get() is not False
        prim = prim.GetParent()
    return body is not None and body.HasAPI(UsdPhysics.CollisionAPI)


def _form(
    reader: StageReader, prim: Any, scale: Vec3
) -> tuple[ShapeKind, tuple[float, ...], Rows3] | None:
    """The kind, size [m] and rotation of a shape; None for kinds that have no record."""
    unit = reader.units.length
    x, y, z = (abs(each) * unit for each in scale)

    def size(name: str, default: float) -> float:
        value = reader.number(prim, name)
        if (value := default if value is None else value) < 0.0:
            raise reader.error(prim, f"{name} is negative")
        return value

    kind = str(prim.GetTypeName())
    axis = str(reader.written(prim, "axis") or "Z")
    if axis not in _UPRIGHT:
        raise reader.error(prim, f"axis is {axis!r}; it is X, Y or Z")
    match kind:
        case "Cube":
            edge = size("size", 2.0)
            return "box", (edge * x, edge * y, edge * z), IDENTITY
        case "Sphere":
            radius = size("radius", 1.0)
            if max(x, y, z) - min(x, y, z) <= WRITTEN * max(x, y, z):
                return "sphere", (radius * x,), IDENTITY
            return "ellipsoid", (radius * x, radius * y, radius * z), IDENTITY
        case "Cylinder" | "Capsule":
            k = "XYZ".index(axis)
            along, across = (x, y, z)[k], sorted((x, y, z)[:k] + (x, y, z)[k + 1 :])
            if across[1] - across[0] > WRITTEN * across[1]:
                reader.warn(
                    prim, f"the {kind} is not round; its larger radius is read", "not round"
                )
            radius = size("radius", 1.0 if kind == "Cylinder" else 0.5) * across[1]
            height = size("height", 2.0 if kind == "Cylinder" else 1.0) * along
            return (
                ("cylinder" if kind == "Cylinder" else "capsule"),
                (radius, height),
                _UPRIGHT[axis],
            )
        case "Plane":
            return "plane", (), _UPRIGHT[axis]
        case "Mesh":
            sign = 1.0 if scale[0] > 0.0 else -1.0
            return "mesh", (sign * x, sign * y, sign * z), IDENTITY
    return None


def _colour(reader: StageReader, prim: Any) -> tuple[float, float, float, float] | None:
    """The colour of a shape, of its own or of its material."""
    from pxr import UsdShade

    colour = reader.array(prim, "primvars:displayColor")
    alpha = reader.array(prim, "primvars:displayOpacity")
    if not colour:
        material = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()[0]
        shader = material.ComputeSurfaceSource()[0] if material else None
        shown = shader.GetInput("diffuseColor") if shader else None
        colour = [shown.Get()] if shown else []
    if not colour or not hasattr(colour[0], "__len__") or len(colour[0]) != 3:
        return None
    red, green, blue = (round(float(each), 7) for each in colour[0])
    return red, green, blue, round(float(alpha[0]), 7) if alpha else 1.0


def _physics_material(prim: Any) -> Any:
    """The physics material of a collider; None if it has none."""
    from pxr import UsdPhysics, UsdShade

    material = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")[0]
    prim = material.GetPrim() if material else None
    return prim if prim and prim.HasAPI(UsdPhysics.MaterialAPI) else None


def _surface(reader: StageReader, prim: Any) -> Fields:
    """Friction and restitution of a collider, from its material."""
    if (material := _physics_material(prim)) is None:
        return {}
    words = {"friction": "physics:dynamicFriction", "restitution": "physics:restitution"}
    values = {each: reader.number(material, word) for each, word in words.items()}
    if values["friction"] is None:
        values["friction"] = reader.number(material, "physics:staticFriction")
    for each, value in values.items():
        if value is not None and not 0.0 <= value <= (math.inf if each == "friction" else 1.0):
            raise reader.error(material, f"{words[each]} is {value:g}, which is no {each}")
    return {each: value for each, value in values.items() if value is not None}


# --- masses ---------------------------------------------------------------------------------------


@dataclass
class Masses:
    """Inertias of bodies, from their prims' attributes, else from colliders and densities."""

    reader: StageReader
    allowance: Allowance = field(default_factory=Allowance)

    def of(self, body: LinkPrim) -> Inertial | None:
        """The inertial of a body; None if it is massless."""
        reader, prim, units = self.reader, body.prim, self.reader.units
        mass = self._positive(prim, "physics:mass", units.mass)
        if reader.written(prim, "mjc:body:gravcomp"):
            message = "gravity compensation of a body is not kept"
            reader.warn(prim, message, "gravity compensation")
        moments = self._moments(prim)
        centre = self._centre(body)
        if mass is not None and moments is not None and (centre or not body.colliders):
            whole = None
        else:
            whole = self._of_colliders(body)
        if whole is None and mass is None:
            if moments is None and body.urdf is None:
                reader.warn(
                    prim,
                    "it has no mass, and no colliders to weigh, and is read without a mass; give "
                    "it physics:mass and physics:diagonalInertia",
                    "no mass",
                )
            if moments is None:
                return None
        if whole is not None and mass is not None:
            whole = replace(masses.scaled(whole, mass / whole.mass), mass=mass)
        mass = whole.mass if mass is None and whole is not None else mass or 0.0
        origin = Pose(centre or (whole.origin.xyz if whole else (0.0, 0.0, 0.0)))
        if moments is None:
            if whole is None:
                reader.warn(
                    prim,
                    "it has a mass, but neither moments of inertia nor colliders; it is read as a "
                    "point; give it physics:diagonalInertia",
                    "no moments",
                )
                return Inertial(mass, (0.0,) * 6, origin, reader.source(prim))
            return whole if centre is None else _about(whole, centre)
        inertia, axes = moments
        return Inertial(mass, inertia, replace(origin, rotation=axes), reader.source(prim))

    def _moments(self, prim: Any) -> tuple[Moments, Rows3] | None:
        """The moments of inertia that a body gives, and their axes in it; None if it has none."""
        reader = self.reader
        tensor = self._tensor(prim)
        moments = reader.numbers(prim, "physics:diagonalInertia", 3)
        if not moments or not any(moments):
            return None if tensor is None else (tensor, IDENTITY)
        turn = reader.numbers(prim, "physics:principalAxes", 4)
        axes = rotation_of_quaternion(*turn) if turn and any(turn) else IDENTITY
        a, b, c = (reader.units.inertia * each for each in moments)
        if min(a, b, c) < 0.0:
            raise reader.error(prim, "physics:diagonalInertia is negative")
        of_usd: Moments = (a, 0.0, 0.0, b, 0.0, c)
        if tensor is None:
            return of_usd, axes
        there = masses.placed(Inertial(1.0, of_usd, Pose(rotation=axes)), AT_ORIGIN)
        apart = max(
            abs(x - y) for x, y in zip(masses.inertial_of(there).inertia, tensor, strict=True)
        )
        # single precision and unit quaternions leave 1e-6 of the largest moment
        if apart > 1e-4 * max(a, b, c):
            reader.warn(
                prim,
                f"{_TENSOR} and physics:diagonalInertia about physics:principalAxes are "
                f"{apart:.2g} kg m² apart; the first counts, by its schema",
                "two inertias",
            )
        return tensor, IDENTITY

    def _tensor(self, prim: Any) -> Moments | None:
        """Newton's tensor about the centre of mass in the body's axes; None without one.

        It is in place of USD's moments about principal axes, which writers add for other readers.
        """
        reader = self.reader
        if not reader.array(prim, _TENSOR):
            return None
        if not applies(prim, "NewtonMassAPI"):
            message = f"{_TENSOR} counts only where NewtonMassAPI is applied; it is left out"
            reader.warn(prim, message, "tensor without its schema")
            return None
        numbers = reader.numbers(prim, _TENSOR, 6) or (0.0,) * 6
        xx, yy, zz, xy, xz, yz = (reader.units.inertia * each for each in numbers)
        if min(xx, yy, zz) < 0.0:
            message = f"{_TENSOR} has a negative moment; it is Ixx Iyy Izz Ixy Ixz Iyz"
            raise reader.error(prim, message)
        return xx, xy, xz, yy, yz, zz

    def _positive(self, prim: Any, name: str, unit: float) -> float | None:
        """A positive number; None if it is zero, which USD ignores."""
        value = self.reader.number(prim, name)
        if value is not None and value < 0.0:
            raise self.reader.error(prim, f"{name} is negative; zero leaves it to the colliders")
        return value * unit if value else None

    def _centre(self, body: LinkPrim) -> Vec3 | None:
        """The centre of mass in the link's frame, if the prim gives it."""
        centre = self.reader.numbers(body.prim, "physics:centerOfMass", 3, infinite=True)
        if centre is None or any(map(math.isinf, centre)):
            return None  # minus infinity is the schema's default
        length = self.reader.units.length
        return vec(c * s * length for c, s in zip(centre, body.scale, strict=True))

    def _of_colliders(self, body: LinkPrim) -> Inertial | None:
        """The inertial of all colliders of a body, in the axes of the link."""
        density = self._positive(body.prim, "physics:density", self.reader.units.density)
        parts = []
        for prim, shape in body.colliders:
            mass = self._positive(prim, "physics:mass", self.reader.units.mass)
            if (thickness := self._wall(prim)) is None:
                part = solid(shape, self.reader.issues, self.allowance)
            else:
                given = mass is not None or self._is_weighed(body)
                part = self._shell(prim, shape, thickness, is_weighed=given)
            if not part.mass:
                continue
            factor = mass / part.mass if mass else self._density(prim, density)
            parts.append(masses.placed(masses.scaled(part, factor), shape.origin))
        if not parts:
            return None
        return masses.inertial_of(reduce(add, parts), self.reader.source(body.prim))

    def _is_weighed(self, body: LinkPrim) -> bool:
        """True if a body's mass is written, and shared by no other collider."""
        return len(body.colliders) == 1 and bool(self.reader.number(body.prim, "physics:mass"))

    def _wall(self, prim: Any) -> float | None:
        """The thickness [m] of the wall of a hollow collider, 0 if none is written; None: solid."""
        reader = self.reader
        model = str(reader.written(prim, "newton:massModel") or "")
        if model not in ("", "solid", "shell"):
            raise reader.error(prim, f"newton:massModel is {model!r}; it is solid or shell")
        hollow = model == "shell" or (
            not model
            and (
                reader.written(prim, "mjc:shellinertia") is True
                or reader.written(prim, "mjc:inertia") == "shell"
            )
        )
        if not hollow:
            return None
        thickness = reader.number(prim, "newton:shellThickness", infinite=True)
        if thickness is None or thickness == -math.inf:
            return 0.0
        if not 0.0 < thickness < math.inf:
            raise reader.error(prim, f"newton:shellThickness is {thickness:g}; it is positive")
        return thickness * reader.units.length

    def _shell(self, prim: Any, shape: Shape, thickness: float, *, is_weighed: bool) -> Inertial:
        """A hollow collider at a density of 1; without a thickness, by MuJoCo's rule."""
        if thickness == 0.0 and not is_weighed:
            self.reader.warn(
                prim,
                "is a shell without newton:shellThickness; its density is read as mass per area, "
                "as MuJoCo does",
                "shell without thickness",
            )
        unit = 1.0 if thickness else self.reader.units.length
        try:
            part = shell(shape, thickness, self.allowance)
        except ValueError as error:
            if isinstance(error, DescriptionError):
                raise
            raise self.reader.error(prim, f"newton:shellThickness: {error}") from error
        return masses.scaled(part, unit)

    def _density(self, prim: Any, of_body: float | None) -> float:
        """The density of a collider [kg/m³]: its own, its body's, or its material's."""
        unit = self.reader.units.density
        of_collider = self._positive(prim, "physics:density", unit) or of_body
        material = _physics_material(prim)
        if of_collider is None and material is not None:
            of_collider = self._positive(material, "physics:density", unit)
        return of_collider or DENSITY


def _about(whole: Inertial, centre: Vec3) -> Inertial:
    """An inertial with a given centre of mass, about which its moments are taken, as in USD."""
    there = masses.placed(replace(whole, origin=Pose(minus(whole.origin.xyz, centre))), AT_ORIGIN)
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = there.inertia
    return replace(
        whole,
        inertia=(held(xx), held(xy), held(xz), held(yy), held(yz), held(zz)),
        origin=Pose(centre),
    )
