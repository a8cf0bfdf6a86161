"""The elements under ``<robot>`` read so far, and mimics that stand apart from their joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from robomodel.description import (
    ONE_DOF,
    Description,
    Joint,
    JointCoupling,
    JointSpring,
    Link,
    LinkCoupling,
    Loop,
    Mimic,
    Pose,
    Spring,
    Transmission,
    Vec3,
)
from robomodel.errors import did_you_mean
from robomodel.parsers.xml import Document, Element

_AXES: dict[str, Vec3] = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}


@dataclass(slots=True)
class Elements:
    """The elements of a file, in its order; ``mimics`` are those outside of their joint."""

    links: list[Link] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    couplings: list[LinkCoupling | JointCoupling] = field(default_factory=list)
    transmissions: list[Transmission] = field(default_factory=list)
    springs: list[Spring | JointSpring] = field(default_factory=list)
    mimics: list[tuple[str, Mimic, Element]] = field(default_factory=list)

    def added_to(self, base: Description) -> Description:
        """The description with all this, but for the mimics."""
        return replace(
            base,
            links=(*base.links, *self.links),
            joints=(*base.joints, *self.joints),
            loops=(*base.loops, *self.loops),
            couplings=(*base.couplings, *self.couplings),
            transmissions=(*base.transmissions, *self.transmissions),
            springs=(*base.springs, *self.springs),
        )


def has_duplicates(description: Description) -> bool:
    """Whether two links or two joints have one name."""
    things = (description.links, description.joints)
    return any(len(each) != len({thing.name for thing in each}) for each in things)


def with_mimics(
    document: Document,
    description: Description,
    mimics: Sequence[tuple[str, Mimic, Element]],
) -> Description:
    """The description with mimics of joints by name, as far as their joints say none themselves.

    They are what a file tells a simulator or a controller, so that one that cannot be is warned of.
    """
    if not mimics:
        return description
    joints = {joint.name: joint for joint in description.joints}
    for name, mimic, element in mimics:
        if missing := [each for each in (name, mimic.joint) if each not in joints]:
            message = f"the joint '{missing[0]}' is not in the robot"
            message += did_you_mean(missing[0], joints)
        elif fixed := [each for each in (name, mimic.joint) if joints[each].type not in ONE_DOF]:
            message = f"the joint '{fixed[0]}' is {joints[fixed[0]].type}, and cannot be mimicked"
        elif joints[name].mimic not in (None, mimic):
            message = f"the joint '{name}' says another <mimic> itself, which is read"
        else:
            joints[name] = replace(joints[name], mimic=mimic)
            continue
        document.suspect(element, f"this mimic is left out: {message}", message)
    return replace(description, joints=tuple(joints.values()))


def universal(joint: Joint, axes: str) -> tuple[Link, Joint, Joint]:
    """A joint as two about coordinate axes of its frame, named as in "XY", and what is between."""
    first, second = (f"{joint.name}_{axis.lower()}" for axis in axes)
    bare = replace(joint, type="continuous", independent=None, initial=None, mimic=None)
    return (
        Link(first, source=joint.source),
        replace(bare, name=first, child=first, axis=_AXES[axes[0]]),
        replace(bare, name=second, parent=first, origin=Pose(), axis=_AXES[axes[1]]),
    )
