"""The open tree of a robot, as it is written for simulators without loops and couplings.

What :mod:`robomodel.model.approximate` makes of masses, here with the springs, damping, friction,
limits and motors that joints have behind rotors, gears and linkages.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np

from robomodel.description import (
    ONE_DOF,
    Description,
    Joint,
    JointCoupling,
    Motor,
    Transmission,
    TransmittedJoint,
)
from robomodel.description import Actuator as ActuatorEnd
from robomodel.description.transmissions import SIMPLE, actuator_terms
from robomodel.dynamics.actuators.envelopes import JointEnvelope, joint_envelopes
from robomodel.dynamics.baselines.open_tree import NOTHING, with_reflected
from robomodel.errors import DescriptionWarning, warn_at
from robomodel.model.actuators import Actuator
from robomodel.model.approximate import approximate, select, with_tendons
from robomodel.model.build import build
from robomodel.model.model import Model

__all__ = ["approximate_tree"]

_LISTED = 4  # of what is between joints


def approximate_tree(model: Model) -> Model:
    """The open tree that stands for a robot, reflected inertia between joints included.

    Of each cluster as many joints move as it has freedoms; the others are locked at
    :meth:`Model.neutral`, where ratios that vary are taken, too. The reflected inertia of rotors
    and linkages, Gᵀ H G less that of the locked joints, is armature of joints, and where several
    joints turn a rotor the armature of a massless joint that turns with them, which MJCF calls a
    fixed tendon. The spin of rotors on moving carriers is left out. The mass matrix is exact where
    all couplings have constant ratios and all rotors are on the base. Actuators are the model's;
    limits, springs, damping and friction act on the joints that move.

    What ``write_mjcf(approximate=True)`` writes. The tree takes the positions and velocities of the
    joints that it has in common with the model, q̇ₜ = Gₜ v; forces tau on the model act on it as
    those with tau = Gₜᵀ tauₜ. :func:`correction_force` is what it lacks.

    Args:
        model: The robot.

    Returns:
        tree: A model without loops; its couplings are those of such massless joints.

    Raises:
        ValueError: A cluster has freedoms that no joints of it have as a whole.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        return build(open_tree_description(model, tendons=True))


def open_tree_description(model: Model, *, tendons: bool) -> Description:
    """The open tree; with ``tendons`` the inertia between joints and the actuators are in it, too.

    For formats without tendons joints keep the efforts that motors give them, and what is between
    joints is left out, with a warning.
    """
    if tendons:
        tree = with_limits(model, with_reflected(model, with_tendons(model)))
        return _with_motors_at_neutral(model, tree)
    _tell_of_tendons(model)
    return with_limits(model, with_reflected(model, approximate(model)))


def inertia_between_joints(model: Model) -> dict[tuple[str, str], float]:
    """What the tendons of a robot's open tree have off the diagonal of its mass matrix."""
    tree = with_tendons(model)
    armature = {joint.name: joint.armature for joint in tree.joints}
    between: dict[tuple[str, str], float] = defaultdict(float)
    largest = 0.0
    for each in tree.couplings:
        assert isinstance(each, JointCoupling)
        (rotor, _), *terms = each.terms
        for (one, k), (other, m) in combinations(terms, 2):
            between[one, other] += k * m * armature[rotor]
            largest = max(largest, abs(k * m * armature[rotor]))
    return {pair: x for pair, x in between.items() if abs(x) > NOTHING * largest}


def _tell_of_tendons(model: Model) -> None:
    between = inertia_between_joints(model)
    lost = [f"{x:g} kg m² between {one} and {other}" for (one, other), x in between.items()]
    if lost:
        more = f" and {len(lost) - _LISTED} more" if len(lost) > _LISTED else ""
        warn_at(
            "reflected inertia between joints is not written, for which only MJCF has a word, the "
            f"armature of a fixed tendon: {'; '.join(lost[:_LISTED])}{more}",
            model.description.source,
            strict=False,
        )


# --- actuators ------------------------------------------------------------------------------------


def with_actuators(model: Model, description: Description) -> Description:
    """The description with a transmission for each actuator of the model, with its limits.

    Those of the file stay, where there are any. Otherwise an actuator acts where its own force
    does: at the rotor's joint if there is a rotor, else at the joint that it drives, and one that
    gives no effort is left out.
    """
    actuators = {each.name: each for each in model.actuators}
    if any(each.actuators for each in description.transmissions):
        return replace(
            description,
            transmissions=tuple(
                replace(each, actuators=tuple(_limited_end(each, end, actuators)
                                              for end in each.actuators))
                for each in description.transmissions
            ),
        )  # fmt: skip
    names = {joint.name for joint in description.joints}
    motors = {joint.name: joint.motor for joint in description.joints if joint.motor}
    added = []
    for each in model.actuators:
        if each.joint in names and each.effort_limit > 0.0:
            motor = motors.get(each.name, Motor())
            effort, velocity = each.effort_limit, each.velocity_limit
            own = replace(motor, effort=effort, velocity=velocity)
            ends = (TransmittedJoint(each.joint),), (ActuatorEnd(each.name, motor=own),)
            added.append(Transmission(each.name, SIMPLE, *ends))
    return replace(description, transmissions=(*description.transmissions, *added))


def _limited_end(
    transmission: Transmission, end: ActuatorEnd, actuators: Mapping[str, Actuator]
) -> ActuatorEnd:
    """An actuator with the limits that joints behind it give it where the file gives none."""
    first = transmission.joints[0].name if transmission.joints else ""
    if (actuator := actuators.get(end.name or first)) is None:
        return end
    effort, velocity = actuator.effort_limit, actuator.velocity_limit
    motor = replace(end.motor or _motor(actuator), effort=effort, velocity=velocity)
    return end if motor == Motor() else replace(end, motor=motor)


def _with_motors_at_neutral(model: Model, tree: Description) -> Description:
    """The open tree with the model's actuators on the joints that move, by ratios at neutral."""
    moving = sorted(select(model).moving)
    g = model.constraint_jacobian(model.neutral())
    labels = [model.joints[body].name for body in moving for _ in model.nodes[body].freedoms]
    back = np.linalg.inv(g[[v for body in moving for v in model.nodes[body].freedoms]])
    scalar = {joint.name for joint in tree.joints if joint.type in ONE_DOF}
    drives: dict[str, list[int]] = {}  # of each joint, how many joints each of its actuators moves
    added = []
    for each in model.actuators:
        row = sum((k * g[v] for v, k in each.rows), np.zeros(model.nv)) @ back
        used = np.flatnonzero(np.abs(row) > NOTHING * np.abs(row).max(initial=0.0)).tolist()
        if not used or not {labels[i] for i in used} <= scalar:
            warn_at(
                f"the actuator '{each.name}' is not in the open tree: it "
                + ("drives a joint of several freedoms" if used else "moves none of its joints"),
                model.description.source,
                strict=False,
            )
            continue
        ends = tuple(TransmittedJoint(labels[i], reduction=float(row[i])) for i in used)
        for end in ends:
            drives.setdefault(end.name, []).append(len(ends))
        if each.effort_limit > 0.0:
            motor = ActuatorEnd(each.name, motor=_motor(each))
            added.append(Transmission(each.name, "motor", ends, (motor,)))
    added += _motors_of_joints(model, tree, drives)
    own = {joint.name: joint.limits.effort for joint in model.description.joints}
    joints = tuple(
        replace(
            joint,
            motor=None,
            limits=joint.limits
            if drives[joint.name] == [1]
            else replace(joint.limits, effort=own[joint.name]),
        )
        if joint.name in drives
        else joint
        for joint in tree.joints
    )
    return replace(tree, joints=joints, transmissions=tuple(added))


def _motors_of_joints(
    model: Model, tree: Description, driven: Collection[str]
) -> Iterator[Transmission]:
    """One for each joint with a limit of its effort that the model's actuators do not drive."""
    for each in model.description.transmissions:
        if each.actuators and each.joints and not any(actuator_terms(each)):
            warn_at(
                f"a transmission of the type '{each.type}' is not written; each of its joints with "
                "a limit of its effort has a motor of its own",
                each.source,
                strict=False,
            )
    for joint in tree.joints:
        effort = joint.limits.effort
        if joint.type in ONE_DOF and joint.name not in driven and 0.0 < effort < math.inf:
            ends = (TransmittedJoint(joint.name),), (ActuatorEnd(joint.name),)
            yield Transmission(joint.name, "motor", *ends)


def _motor(actuator: Actuator) -> Motor:
    return Motor(
        effort=actuator.effort_limit,
        velocity=actuator.velocity_limit,
        stall_torque=actuator.stall_torque,
        no_load_speed=actuator.no_load_speed,
        torque_constant=actuator.torque_constant,
        resistance=actuator.resistance,
    )


# --- limits of open trees -------------------------------------------------------------------------


def with_limits(model: Model, tree: Description) -> Description:
    """The open tree with the limits that joints have behind rotors, gears and linkages.

    Of effort and velocity what motors give them everywhere in their range; the range as far as all
    limits of the linkage let it go; each time the file's own where that is tighter. A motor's own
    numbers go with its rotor: a torque-speed curve by a constant ratio is carried to the joint.
    """
    if not any(joint.motor for joint in tree.joints) and not _limits_anything(model):
        return tree
    found = {each.joint: each for each in joint_envelopes(model) if each.tree}
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


def _limited(model: Model, joint: Joint, reach: JointEnvelope, tied: bool) -> Joint:
    limits = reach.limits
    bounded = math.isfinite(limits.lower) and math.isfinite(limits.upper)
    kind = "revolute" if joint.type == "continuous" and bounded else joint.type
    if kind == "continuous":  # a turn that something ends on one side only has no word
        limits = replace(limits, lower=joint.limits.lower, upper=joint.limits.upper)
    motor = _behind(model, reach) if tied else joint.motor
    return replace(joint, type=kind, limits=limits, motor=motor)


def _behind(model: Model, reach: JointEnvelope) -> Motor | None:
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
