"""Motors of open trees: what drives their joints in simulators, and what is no motor there."""

from __future__ import annotations

import math
from dataclasses import replace

from robomodel.description import (
    ONE_DOF,
    Actuator,
    Description,
    Joint,
    Transmission,
    TransmittedJoint,
)
from robomodel.errors import suspect
from robomodel.transmissions import SIMPLE, actuator_terms, kind_of

_SIMPLE = f"transmission_interface/{SIMPLE}"


def with_motors(description: Description, *, simple: bool) -> Description:
    """The description with a simple transmission for each joint of known effort that has none.

    ``simple``: for readers that know no other ones, and an armature only as that of a motor. What
    is of no known kind is replaced by a motor on each of its joints, which is warned of.
    """
    joints = {joint.name: joint for joint in description.joints}
    kept, driven = [], set[str]()
    for each in description.transmissions:
        if simple and "/" not in each.type and _is_single(each):
            each = replace(each, type=_SIMPLE)  # noqa: PLW2901 - an actuator of MJCF
        ends = [joints.get(end.name) for end in each.joints]
        known = _is_single(each) and kind_of(each) == SIMPLE if simple else ends and _is_known(each)
        if known:
            driven.update(end.name for end in each.joints)
        elif not simple and ends and all(end and _has_effort(end) for end in ends):
            suspect(
                f"a transmission of the type '{each.type}' is not written; each of its joints has "
                "a motor of its own",
                each.source,
                strict=False,
            )
            continue
        kept.append(each)
    names = {each.name for each in kept}
    for joint in description.joints:
        needed = _has_effort(joint) or (simple and joint.armature > 0.0)
        if joint.type in ONE_DOF and joint.name not in driven and needed:
            name = f"{joint.name}_transmission" if simple else joint.name
            while name in names:
                name += "_"
            names.add(name)
            motor = Actuator(f"{joint.name}_motor")
            ends_ = (TransmittedJoint(joint.name),)
            kept.append(Transmission(name, _SIMPLE, ends_, (motor,), joint.source))
    return replace(description, transmissions=tuple(kept))


def _is_single(transmission: Transmission) -> bool:
    """Whether one motor drives one joint."""
    return len(transmission.actuators) == len(transmission.joints) == 1


def _is_known(transmission: Transmission) -> bool:
    """Whether it is known how its motors move its joints."""
    return any(True for _ in actuator_terms(transmission))


def _has_effort(joint: Joint) -> bool:
    return joint.type in ONE_DOF and 0.0 < joint.limits.effort < math.inf
