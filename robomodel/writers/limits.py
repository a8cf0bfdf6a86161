"""Limits of open trees: those of motors and linkages as the joints that are left feel them."""

from __future__ import annotations

import math
from dataclasses import replace

from robomodel.description import Description, Joint, Motor
from robomodel.dynamics.actuators.reach import Reach, reaches
from robomodel.model import Model


def with_limits(model: Model, tree: Description) -> Description:
    """The open tree with the limits that joints have behind rotors, gears and linkages.

    Of effort and velocity what motors give them everywhere in their range; the range as far as all
    limits of the linkage let it go; each time the file's own where that is tighter. A motor's own
    numbers go with its rotor: a torque-speed curve by a constant ratio is carried to the joint.
    """
    if not any(joint.motor for joint in tree.joints) and not _limits_anything(model):
        return tree
    found = {each.joint: each for each in reaches(model) if each.tree}
    kinds = {cluster.name: cluster.kind for cluster in model.clusters}
    joints = tuple(
        _limited(model, joint, found[joint.name], kinds[found[joint.name].cluster] != "joint")
        if joint.name in found
        else joint
        for joint in tree.joints
    )
    return replace(tree, joints=joints)


def _limits_anything(model: Model) -> bool:
    """Whether any motor or position has a limit: else ranges need not be followed."""
    ends = [x for joint in model.joints for x in (joint.lower, joint.upper)]
    for each in model.actuators:
        ends += [each.effort_limit, each.velocity_limit]
        ends += [x for x in (each.stall_torque, each.no_load_speed) if x is not None]
    return any(map(math.isfinite, ends))


def _limited(model: Model, joint: Joint, reach: Reach, tied: bool) -> Joint:
    limits = reach.limits
    bounded = math.isfinite(limits.lower) and math.isfinite(limits.upper)
    kind = "revolute" if joint.type == "continuous" and bounded else joint.type
    if kind == "continuous":  # a turn that something ends on one side only has no word
        limits = replace(limits, lower=joint.limits.lower, upper=joint.limits.upper)
    motor = _behind(model, reach) if tied else joint.motor
    return replace(joint, type=kind, limits=limits, motor=motor)


def _behind(model: Model, reach: Reach) -> Motor | None:
    """The torque-speed curve of the one motor of a joint, at the joint."""
    own = [each for each in model.actuators if each.name in reach.actuators]
    if len(own) != 1 or not reach.constant or not math.isfinite(reach.effort):
        return None
    (actuator,) = own
    if actuator.stall_torque is None or actuator.no_load_speed is None:
        return None
    ratio = reach.effort / min(actuator.effort_limit, actuator.stall_torque)
    return Motor(
        effort=actuator.effort_limit * ratio,
        velocity=actuator.velocity_limit / ratio,
        stall_torque=actuator.stall_torque * ratio,
        no_load_speed=actuator.no_load_speed / ratio,
    )
