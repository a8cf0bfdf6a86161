"""Attributes of USD: numbers of joints with their units, and this package's own attributes.

A stage has its own units of length and mass, and angles in degrees. A :class:`Word` is an attribute
that holds a number of a joint, with its factor to SI units, for reading and writing. What USD
cannot express is in attributes of this package: on each prim the URDF+ element it represents, with
a digest of the prim's other attributes. If these were changed later, they count.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robomodel.description import Pose, Vec3
from robomodel.description.poses import quaternion_of_rotation, rotation_of_quaternion, vec
from robomodel.description.transmissions import both_ways
from robomodel.errors import DescriptionError, Issue, Source
from robomodel.tolerances import NO_LIMIT

DEGREE = math.pi / 180.0

AXES: dict[str, Vec3] = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
FREEDOMS = ("transX", "transY", "transZ", "rotX", "rotY", "rotZ")
"""Freedoms that a joint may leave: instances of LimitAPI."""

NO_VELOCITY_LIMIT = 1e6
"""Velocity limits from this value on are infinite, as PhysX writes it."""


@dataclass(frozen=True, slots=True)
class StageUnits:
    """Factors from a stage's units of length and mass, and MuJoCo's of angle, to SI units."""

    length: float = 1.0
    mass: float = 1.0
    mujoco_angle: float = DEGREE

    @property
    def inertia(self) -> float:
        """The factor of moments of inertia, torques and rotational stiffness."""
        return self.mass * self.length**2

    def angle(self, name: str) -> float:
        """The factor of angles in an attribute of this name, to rad."""
        return self.mujoco_angle if name.startswith("mjc") else DEGREE

    @property
    def density(self) -> float:
        """The factor of densities, to kg/m³."""
        return self.mass / self.length**3


@dataclass(frozen=True, slots=True)
class Word:
    """An attribute that holds a number of a joint.

    ``{axis}`` in ``name`` is replaced by the instance (angular, linear, rotX, …) of a schema that
    is applied several times. Attributes:
        field: Field of a joint, or of its limits.
        mass: Whether the unit contains a mass.
        degrees: Power of degrees in the unit, for rotations.
        length: Power of lengths in the unit, for translations; rotations with a mass have 2.
        most: Values from this one on are infinite.
        schema: Schema that is applied when the attribute is written; empty: it is only read.
    """

    name: str
    field: str
    mass: bool = False
    degrees: int = 0
    length: int = 0
    most: float = math.inf
    schema: str = ""

    def factor(self, units: StageUnits, *, turns: bool) -> float:
        """The factor to SI units; ``turns``: of a rotation."""
        power = (2 if self.mass else 0) if turns else self.length
        of_mass = units.mass if self.mass else 1.0
        return (
            of_mass
            * units.length**power
            * (units.angle(self.name) ** self.degrees if turns else 1.0)
        )


_NEWTON, _PHYSX, _MUJOCO = "NewtonJointAPI", "PhysxJointAPI", "MjcJointAPI"

WORDS = (
    Word("newton:armature", "armature", mass=True, schema=_NEWTON),
    Word("mjc:damping", "damping", mass=True),  # before Newton's, which one converter wrote per rad
    Word("newton:damping", "damping", mass=True, degrees=-1, schema=_NEWTON),
    Word("newton:friction", "friction", mass=True, length=1, schema=_NEWTON),
    Word("newton:velocityLimit", "velocity", degrees=1, length=1, schema=_NEWTON),
    Word("physxJointAxis:{axis}:armature", "armature", mass=True),
    Word("physxJointAxis:{axis}:viscousFrictionCoefficient", "damping", mass=True, degrees=-1),
    Word("physxJointAxis:{axis}:dynamicFrictionEffort", "friction", mass=True, length=1),
    Word(
        "physxJointAxis:{axis}:maxJointVelocity",
        "velocity",
        degrees=1,
        length=1,
        most=NO_VELOCITY_LIMIT,
    ),
    Word("physxJoint:armature", "armature", mass=True, schema=_PHYSX),
    Word(
        "physxJoint:maxJointVelocity",
        "velocity",
        degrees=1,
        length=1,
        most=NO_VELOCITY_LIMIT,
        schema=_PHYSX,
    ),
    Word("physxJoint:jointFriction", "friction", mass=True, length=1),
    Word("mjc:armature", "armature", mass=True),
    Word("mjc:frictionloss", "friction", mass=True, length=1),
    Word("mjc:stiffness", "stiffness", mass=True, schema=_MUJOCO),
    Word("mjc:springref", "reference", degrees=1, length=1, schema=_MUJOCO),
)
"""The first one that a prim has counts for a field; ``mjc`` has rad where others have degrees."""

DRIVE = Word("drive:{axis}:physics:maxForce", "effort", mass=True, length=1, most=NO_LIMIT)
URDF_EFFORT = "urdf:limit:effort"
"""The effort limit of a URDF file, in its own SI units, as urdf-usd-converter keeps it."""

_IN_RADIANS = (
    (re.compile(r"MuJoCo USD Converter v(\d+)\.(\d+)\.(\d+)"), (0, 4, 1)),
    (re.compile(r"URDF USD Converter v(\d+)\.(\d+)\.(\d+)"), (0, 3, 2)),
)
"""Exporters' signatures, and their first version that wrote ``newton:mimicCoef0`` in degrees."""


# --- this package's attributes --------------------------------------------------------------------

ELEMENT = "robomodel:urdf"
"""The URDF+ element that a prim represents."""
JOINT = "robomodel:joint"
"""On a link: the element of its joint if that has no prim (floating, or fixed and massless)."""
DIGEST = "robomodel:digest"
"""Hash of the attributes of other schemas on the prim when it was written."""
LINKS, JOINTS = "robomodel:links", "robomodel:joints"
"""On the robot: the names of its links and joints, in order."""
GROUND = "robomodel:ground"
"""On a joint: it holds the root link and is not a joint of the robot."""
MESH = "robomodel:file"
"""On a mesh: its file, with the scale."""
SCALE = "robomodel:scale"
NAME = "robomodel:name"
"""On a shape: its name."""

_COUNTED = ("physics", "newton", "physxJoint", "physxMimicJoint", "mjc", "drive", "limit")


def digest(prim: Any) -> str:
    """A hash of the physics attributes of a prim, to detect later changes."""
    words = [str(prim.GetTypeName())]
    for each in sorted(prim.GetAuthoredProperties(), key=lambda one: str(one.GetName())):
        name = str(each.GetName())
        if name.partition(":")[0] not in _COUNTED:
            continue
        if hasattr(each, "GetTargets"):
            targets = (path.MakeRelativePath(prim.GetPath()) for path in each.GetTargets())
            words.append(f"{name} {' '.join(map(str, targets))}")
        else:
            words.append(f"{name} {' '.join(_spelled(each.Get()))}")
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]


def _spelled(value: Any) -> Iterator[str]:
    """The numbers in a value, or its text."""
    if hasattr(value, "imaginary"):
        yield from _spelled((value.real, *value.imaginary))
    elif isinstance(value, str | bool) or value is None:
        yield str(value)
    elif hasattr(value, "__len__"):
        for n in range(len(value)):  # USD's vectors are not iterable
            yield from _spelled(value[n])
    else:
        yield repr(float(value)) if hasattr(value, "__float__") else str(value)


_SINGLE = ("float", "float2", "float3", "float4", "3f", "4f", "quatf")  # suffixes of type names


def _shortest(value: Any) -> float:
    """The shortest decimal that rounds to this number in single precision."""
    return float(str(np.float32(value)))


# --- values ---------------------------------------------------------------------------------------


@dataclass
class StageReader:
    """Reads values of prims: finite numbers, or an error that names the prim."""

    file: str
    units: StageUnits
    issues: list[Issue] = field(default_factory=list)
    auto_limits: bool = True  # MuJoCo's: a range limits where it is not empty

    def source(self, prim: Any) -> Source:
        """The location of a prim."""
        return Source(self.file, element=f"prim <{prim.GetPath()}>")

    def error(self, prim: Any, message: str) -> DescriptionError:
        """The error to raise for a fault of a prim."""
        return DescriptionError(message, self.source(prim))

    def warn(self, prim: Any, message: str, kind: str = "") -> None:
        """Record a warning about a prim."""
        self.issues.append(Issue(message, self.source(prim), kind))

    def written(self, prim: Any, name: str) -> Any:
        """The value of an attribute that the file sets; None if it does not."""
        attribute = prim.GetAttribute(name)
        return attribute.Get() if attribute and attribute.HasAuthoredValue() else None

    def array(self, prim: Any, name: str) -> list[Any]:
        """The entries of an array that the file sets; empty for other values."""
        value = self.written(prim, name)
        return list(value) if hasattr(value, "__len__") and not isinstance(value, str) else []

    def number(self, prim: Any, name: str, *, infinite: bool = False) -> float | None:
        """A number that the file sets, finite unless ``infinite``."""
        numbers = self.numbers(prim, name, 1, infinite=infinite)
        return None if numbers is None else numbers[0]

    def numbers(
        self, prim: Any, name: str, count: int, *, infinite: bool = False
    ) -> tuple[float, ...] | None:
        """The ``count`` numbers that the file sets; quaternions as x, y, z, w."""
        if (value := self.written(prim, name)) is None:
            return None
        single = str(prim.GetAttribute(name).GetTypeName()).removesuffix("[]").endswith(_SINGLE)
        parts = value if hasattr(value, "__len__") and not isinstance(value, str) else (value,)
        if hasattr(value, "imaginary"):
            parts = (*value.imaginary, value.real)
        try:
            numbers = tuple(_shortest(each) if single else float(each) for each in parts)
        except (TypeError, ValueError, OverflowError):
            numbers = ()
        if len(numbers) != count:
            what = "no number" if count == 1 else f"not {count} numbers"
            raise self.error(prim, f"{name} is {str(value)[:60]!r}, {what}")
        for each in numbers:
            if math.isnan(each) or (math.isinf(each) and not infinite):
                raise self.error(prim, f"{name} is {each}; write a finite number, or leave it out")
        return numbers

    def in_radians(self, prim: Any, name: str) -> str:
        """The converter that wrote an angle of Newton's in radians, if one did; else empty."""
        for spec in prim.GetAttribute(name).GetPropertyStack():
            creator = str(spec.layer.customLayerData.get("creator", ""))
            for signature, first in _IN_RADIANS:
                made_by = signature.match(creator)
                if made_by and tuple(map(int, made_by.groups())) < first:
                    return made_by[0]
            break  # the strongest opinion counts
        return ""

    def span(self, prim: Any, name: str, limited: str) -> tuple[float, float]:
        """A range of MuJoCo's, ``name:min`` to ``name:max``; infinite if off.

        ``limited`` is the attribute that switches it: true, false, or auto.
        """
        low, high = (self.number(prim, f"{name}:{end}") or 0.0 for end in ("min", "max"))
        switch = self.written(prim, limited)
        on = low < high and self.auto_limits if switch in (None, "auto") else switch == "true"
        if not on:
            return -math.inf, math.inf
        if low >= high:
            raise self.error(prim, f"{name} is from {low:g} to {high:g}; give a range, or set "
                             f"{limited} to false")  # fmt: skip
        return low, high

    def efforts(self, prim: Any, low: float, high: float) -> dict[str, float]:
        """Fields of the limits of effort, by a range of forces; none if it is unlimited."""
        if math.isinf(low) and math.isinf(high):
            return {}
        if not low <= 0.0 <= high:
            message = (
                f"its range of force, {low:g} to {high:g}, does not hold zero; the larger end is "
                "its limit of effort both ways"
            )
            self.warn(prim, message, "uneven range")
        weakest, effort = both_ways(low, high)
        return (
            {"effort": effort} if weakest is None else {"effort": effort, "effort_lower": weakest}
        )

    def pose(self, prim: Any, position: str, rotation: str) -> Pose:
        """The pose in two attributes, in the stage's units, without scale."""
        xyz = self.numbers(prim, position, 3) or (0.0, 0.0, 0.0)
        turn = self.numbers(prim, rotation, 4) or (0.0, 0.0, 0.0, 1.0)
        if not math.hypot(*turn) > 0.0:
            raise self.error(prim, f"{rotation} is zero; no rotation is (1, 0, 0, 0)")
        if tuple(turn) == (0.0, 0.0, 0.0, 1.0):
            return Pose(vec(xyz))
        return Pose(vec(xyz), rotation_of_quaternion(*turn))


def applies(prim: Any, schema: str) -> bool:
    """True if a schema that USD need not know is applied to a prim."""
    listed = prim.GetMetadata("apiSchemas")
    return listed is not None and schema in listed.GetAppliedItems()


def quaternion(pose: Pose, kind: Any) -> Any:
    """The rotation of a pose as a quaternion of USD's type ``kind``."""
    w, x, y, z = quaternion_of_rotation(pose.rotation)
    return kind(w, x, y, z)
