"""Elements of MuJoCo's compiled model: their names, their places in the file, their poses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from robomodel.description import Pose
from robomodel.description.poses import rotation_of_quaternion, tidy, vec
from robomodel.errors import Issue, Source
from robomodel.parsers.mjcf.source import Compiled, Node
from robomodel.parsers.text import Names

JOINT_KINDS = ("free", "ball", "slide", "hinge")
"""MuJoCo's joints, by mjtJoint."""
LEAST_SCALAR = 2
"""The first of them that has one freedom: slides and hinges."""


@dataclass
class Elements:
    """A compiled model by names of the file, and what is suspicious in it.

    Bodies are links; unnamed ones are called ``body_3`` after their number, and joints without a
    name after body and kind, as in ``shin_hinge``.
    """

    compiled: Compiled
    issues: list[Issue] = field(default_factory=list)

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
        written = [self.compiled.written(self.name("body", i)) for i in range(self.model.nbody)]
        names = Names(written)
        return [name or names.fresh(f"body_{i}") for i, name in enumerate(written)]

    @cached_property
    def joints(self) -> list[str]:
        """The name of every joint."""
        written = [self.compiled.written(self.name("joint", i)) for i in range(self.model.njnt)]
        names = Names(written)
        return [
            name or names.fresh(f"{self.bodies[body]}_{JOINT_KINDS[kind]}")
            for name, body, kind in zip(
                written, self.model.jnt_bodyid, self.model.jnt_type, strict=True
            )
        ]

    @cached_property
    def link_names(self) -> Names:
        """Names for further links."""
        return Names(self.bodies)

    @cached_property
    def joint_names(self) -> Names:
        """Names for further joints."""
        return Names(self.joints)

    def node(self, kind: str, number: int) -> Node | None:
        """The element of the file."""
        return self.compiled.node(kind, self.name(kind, number))

    def source(self, kind: str, number: int, label: str) -> Source:
        """Where an element stands in the file, called ``label``."""
        return self.compiled.source(kind, self.name(kind, number), label)

    def body_source(self, body: int) -> Source:
        """Where the body stands in the file."""
        if body == 0:
            return replace(self.compiled.root.source, element="<worldbody>")
        return self.source("body", body, f"body '{self.bodies[body]}'")

    def joint_source(self, joint: int) -> Source:
        """Where the joint stands in the file."""
        return self.source("joint", joint, f"joint '{self.joints[joint]}'")

    def called(self, kind: str, number: int, tag: str = "") -> tuple[str, Source]:
        """The name of an element, of its tag and number if it has none, and its place."""
        tag = tag or kind
        name = self.compiled.written(self.name(kind, number)) or f"{tag}_{number}"
        return name, self.source(kind, number, f"{tag} '{name}'")

    def warn_at(self, message: str, source: Source, kind: str = "") -> None:
        """Note what is suspicious."""
        self.issues.append(Issue(message, source, kind))

    def unapplied(self, what: str, source: Source, kind: str) -> None:
        """Note forces of the file that no function applies and that are not kept."""
        self.warn_at(f"{what} not kept, and no function applies it", source, kind)

    def has(self, array: str, row: int) -> bool:
        """Whether an array of the model, which only some releases have, is nonzero in a row."""
        values = getattr(self.model, array, None)
        return values is not None and bool(values[row].any())

    def is_scalar(self, joint: int) -> bool:
        """Whether a joint has one freedom."""
        return int(self.model.jnt_type[joint]) >= LEAST_SCALAR

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


@dataclass
class Section:
    """What is read of a compiled model by itself."""

    elements: Elements

    @property
    def model(self) -> Any:
        """MuJoCo's model."""
        return self.elements.model


# ---- poses ---------------------------------------------------------------------------------------


def pose(position: Any, quaternion: Any) -> Pose:
    """The pose of a position and a quaternion w, x, y, z."""
    w, x, y, z = (float(each) for each in quaternion)
    rotation = tidy(Pose(rotation=rotation_of_quaternion(x, y, z, w))).rotation
    return Pose(vec(position), rotation)
