"""Elements of MuJoCo's compiled model with names and places of the file, and their poses."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from robomodel.description import Pose
from robomodel.description.poses import rotation_of_quaternion, tidy, vec
from robomodel.errors import Issue, Source
from robomodel.parsers.mjcf.source import CompiledFile, SourceElement
from robomodel.vocabulary.schema import Names

JOINT_KINDS = ("free", "ball", "slide", "hinge")
"""MuJoCo's types of joints, by mjtJoint."""
LEAST_SCALAR = 2
"""Index of the first type with one freedom (slides and hinges)."""


@dataclass
class CompiledElements:
    """A compiled model with names of the file, and its warnings.

    Bodies are links; unnamed ones are named by number (``body_3``), unnamed joints by body and type
    (``shin_hinge``).
    """

    compiled: CompiledFile
    issues: list[Issue] = field(default_factory=list)

    @cached_property
    def model(self) -> Any:
        """MuJoCo's model."""
        return self.compiled.model

    def name(self, kind: str, number: int) -> str:
        """The compiled name; elements without a name have one from the reader."""
        return str(getattr(self.model, kind)(number).name)

    @cached_property
    def bodies(self) -> list[str]:
        """The link names of all bodies."""
        written = [self.compiled.written(self.name("body", i)) for i in range(self.model.nbody)]
        names = Names(written)
        return [name or names.fresh(f"body_{i}") for i, name in enumerate(written)]

    @cached_property
    def joints(self) -> list[str]:
        """The names of all joints."""
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
        """Generator of names of further links."""
        return Names(self.bodies)

    @cached_property
    def joint_names(self) -> Names:
        """Generator of names of further joints."""
        return Names(self.joints)

    def node(self, kind: str, number: int) -> SourceElement | None:
        """The element of the file."""
        return self.compiled.node(kind, self.name(kind, number))

    def source(self, kind: str, number: int, label: str) -> Source:
        """The location of an element in the file, under the name ``label``."""
        return self.compiled.source(kind, self.name(kind, number), label)

    def body_source(self, body: int) -> Source:
        """The location of a body in the file."""
        if body == 0:
            return replace(self.compiled.root.source, element="<worldbody>")
        return self.source("body", body, f"body '{self.bodies[body]}'")

    def joint_source(self, joint: int) -> Source:
        """The location of a joint in the file."""
        return self.source("joint", joint, f"joint '{self.joints[joint]}'")

    def called(self, kind: str, number: int, tag: str = "") -> tuple[str, Source]:
        """The name of an element, from tag and number if it has none, and its location."""
        tag = tag or kind
        name = self.compiled.written(self.name(kind, number)) or f"{tag}_{number}"
        return name, self.source(kind, number, f"{tag} '{name}'")

    def warn_at(self, message: str, source: Source, kind: str = "") -> None:
        """Record a warning."""
        self.issues.append(Issue(message, source, kind))

    def unapplied(self, what: str, source: Source, kind: str) -> None:
        """Warn of forces in the file that are neither kept nor applied."""
        self.warn_at(f"{what} not kept, and no function applies it", source, kind)

    def has(self, array: str, row: int) -> bool:
        """True if a row of an array is nonzero; False if the release does not have the array."""
        values = getattr(self.model, array, None)
        return values is not None and bool(values[row].any())

    def custom_number(self, key: str) -> float:
        """The ``<custom>`` number of this name; infinite without one."""
        found = self.custom_numbers(key)
        return found[0] if len(found) == 1 else math.inf

    def custom_numbers(self, key: str) -> list[float]:
        """The ``<custom>`` numbers of this name."""
        try:
            return [float(x) for x in self.compiled.custom.get(key, "").split()]
        except ValueError:
            return []

    def is_scalar(self, joint: int) -> bool:
        """True if a joint has one freedom."""
        return int(self.model.jnt_type[joint]) >= LEAST_SCALAR

    def reference(self, joint: int) -> float:
        """The position of the joint where the file places its body (``ref``) [m or rad]."""
        if JOINT_KINDS[int(self.model.jnt_type[joint])] == "ball":
            return 0.0
        return float(self.model.qpos0[self.model.jnt_qposadr[joint]])

    def disabled(self, *flags: str) -> bool:
        """True if ``<flag>`` disables one of these."""
        import mujoco

        bits = (getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}").value for flag in flags)
        return any(self.model.opt.disableflags & bit for bit in bits)


@dataclass
class CompiledSection:
    """Base of classes that read one part of a compiled model."""

    elements: CompiledElements

    @property
    def model(self) -> Any:
        """MuJoCo's model."""
        return self.elements.model


# ---- poses ---------------------------------------------------------------------------------------


def pose(position: Any, quaternion: Any) -> Pose:
    """The pose from a position [m] and a quaternion w, x, y, z."""
    w, x, y, z = (float(each) for each in quaternion)
    rotation = tidy(Pose(rotation=rotation_of_quaternion(x, y, z, w))).rotation
    return Pose(vec(position), rotation)
