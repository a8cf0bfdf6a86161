"""Elements of MuJoCo's compiled model: their names, their places in the file, their poses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from robomodel.description import IDENTITY, Pose, Rows3, Vec3
from robomodel.errors import Doubt, Source
from robomodel.parsers.mjcf.source import Compiled

JOINT_KINDS = ("free", "ball", "slide", "hinge")
"""MuJoCo's joints, by mjtJoint."""

_ROUNDING = 1e-15


@dataclass
class Elements:
    """A compiled model by names of the file, and what is suspicious in it.

    Bodies are links; unnamed ones are called ``body_3`` after their number, and joints without a
    name after body and kind, as in ``shin_hinge``.
    """

    compiled: Compiled
    doubts: list[Doubt] = field(default_factory=list)

    @cached_property
    def model(self) -> Any:
        """MuJoCo's model."""
        return self.compiled.model

    def name(self, kind: str, number: int) -> str:
        """The compiled name; unnamed elements have one that the source file does not."""
        return str(getattr(self.model, kind)(number).name)

    @cached_property
    def bodies(self) -> list[str]:
        """The link of every body."""
        given = [self.compiled.given(self.name("body", i)) for i in range(self.model.nbody)]
        taken = set(given)
        return [name or unused(f"body_{i}", taken) for i, name in enumerate(given)]

    @cached_property
    def joints(self) -> list[str]:
        """The name of every joint."""
        given = [self.compiled.given(self.name("joint", i)) for i in range(self.model.njnt)]
        taken = set(given)
        return [
            name or unused(f"{self.bodies[body]}_{JOINT_KINDS[kind]}", taken)
            for name, body, kind in zip(
                given, self.model.jnt_bodyid, self.model.jnt_type, strict=True
            )
        ]

    @cached_property
    def taken_links(self) -> set[str]:
        """Names that no further link may have."""
        return set(self.bodies)

    @cached_property
    def taken_joints(self) -> set[str]:
        """Names that no further joint may have."""
        return set(self.joints)

    def body_source(self, body: int) -> Source:
        """Where the body stands in the file."""
        name = self.bodies[body]
        if body == 0:
            return replace(self.compiled.root.source, element="<worldbody>")
        return self.compiled.source("body", self.name("body", body), f"body '{name}'")

    def joint_source(self, joint: int) -> Source:
        """Where the joint stands in the file."""
        label = f"joint '{self.joints[joint]}'"
        return self.compiled.source("joint", self.name("joint", joint), label)

    def reference(self, joint: int) -> float:
        """The position at which the joint leaves its body where the file places it (``ref``)."""
        if JOINT_KINDS[int(self.model.jnt_type[joint])] == "ball":
            return 0.0
        return float(self.model.qpos0[self.model.jnt_qposadr[joint]])

    def disabled(self, *flags: str) -> bool:
        """Whether the file's ``<flag>`` disables one of these."""
        import mujoco

        bits = (getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}").value for flag in flags)
        return any(self.model.opt.disableflags & bit for bit in bits)


def unused(name: str, taken: set[str]) -> str:
    """The name, with a number if it is taken; it is taken then."""
    unused, n = name, 2
    while unused in taken:
        unused, n = f"{name}_{n}", n + 1
    taken.add(unused)
    return unused


# ---- poses ---------------------------------------------------------------------------------------


def vec(values: Any) -> Vec3:
    """Three numbers."""
    x, y, z = (float(value) + 0.0 for value in values)
    return x, y, z


def pose(position: Any, quaternion: Any) -> Pose:
    """The pose of a position and a quaternion w, x, y, z."""
    return Pose(vec(position), rotation(tuple(float(x) for x in quaternion)))


def rotation(quaternion: Sequence[float]) -> Rows3:
    """The rotation (rows) of a quaternion w, x, y, z, rid of what rounding left of 0 and 1."""
    w, x, y, z = quaternion
    if not (x or y or z):
        return IDENTITY
    k = 2.0 / (w * w + x * x + y * y + z * z)
    rows = (
        (1 - k * (y * y + z * z), k * (x * y - w * z), k * (x * z + w * y)),
        (k * (x * y + w * z), 1 - k * (x * x + z * z), k * (y * z - w * x)),
        (k * (x * z - w * y), k * (y * z + w * x), 1 - k * (x * x + y * y)),
    )
    a, b, c = ((clean(p), clean(q), clean(r)) for p, q, r in rows)
    return a, b, c


def clean(value: float) -> float:
    """A number rid of what rounding left of a whole one."""
    nearest = float(round(value))
    return nearest + 0.0 if abs(value - nearest) <= _ROUNDING else value
