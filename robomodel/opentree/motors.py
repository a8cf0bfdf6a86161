"""Motors and limits of an open tree's joints, as its robot's motors and linkages have them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import numpy as np

from robomodel.description import (
    ONE_DOF,
    Description,
    Joint,
    Limits,
    Motor,
    Transmission,
    TransmittedJoint,
)
from robomodel.description import Actuator as ActuatorEnd
from robomodel.description.transmissions import (
    SIMPLE,
    actuator_terms,
    both_ways,
    carried,
    without_zeros,
)
from robomodel.dynamics.actuators.efforts import pooled
from robomodel.dynamics.actuators.envelopes import JointLimits, carrying, follow, joint_limits
from robomodel.dynamics.actuators.limbs import file_efforts, is_driven
from robomodel.dynamics.functions.actuators import actuator_map
from robomodel.dynamics.kinematics.state import neutral_jacobian
from robomodel.dynamics.lumped import select
from robomodel.errors import few, warn_at
from robomodel.model.actuators import Actuator
from robomodel.model.derived import cached_on_model
from robomodel.model.model import Model
from robomodel.opentree.passive import moving_joints, rates_of
from robomodel.reach.ranges import JointRange, limb_ranges
from robomodel.tolerances import SAME

# --- actuators ------------------------------------------------------------------------------------


def with_actuators(model: Model, description: Description) -> Description:
    """The description with a transmission for each actuator of the model, with its limits.

    Transmissions of the file stay, if it has any. Otherwise an actuator acts where its force does:
    at the rotor's joint if there is a rotor, else at the joint that it drives. Actuators without
    effort are left out. Limits of joints on which its actuator does not act, where simulators have
    no clamp, are the actuator's.
    """
    filed = any(each.actuators for each in description.transmissions)
    limited_by_joints = _within_joints(model, at_rotors=not filed)
    actuators = {each.name: each for each in limited_by_joints}
    if filed:
        limited = (
            replace(each, actuators=tuple(_limited_end(each, end, actuators)
                                          for end in each.actuators))
            for each in description.transmissions
        )  # fmt: skip
        transmissions = (x for each in limited for x in _as_rotors_turn(each, actuators))
        return replace(description, transmissions=tuple(transmissions))
    names = {joint.name for joint in description.joints}
    motors = {joint.name: joint.motor for joint in description.joints if joint.motor}
    added = []
    for each in limited_by_joints:
        if each.joint in names and each.pushes:
            motor = motors.get(each.name, Motor())
            motor = _limited_as(motor, each)
            ends = (TransmittedJoint(each.joint),), (ActuatorEnd(each.name, motor=motor),)
            added.append(Transmission(each.name, SIMPLE, *ends))
    return replace(description, transmissions=(*description.transmissions, *added))


def _within_joints(model: Model, *, at_rotors: bool) -> tuple[Actuator, ...]:
    """The actuators, within limits of effort of joints that they drive from other joints.

    ``at_rotors``: actuators with rotors act on these. Warns of limits that several have together.
    """
    result = list(model.actuators)
    for each in pooled(model):
        its = [result[n] for n in each.motors]
        if each.coordinate is None and not (at_rotors and any(x.joint != each.joint for x in its)):
            continue
        if len(its) > 1:
            warn_at(
                f"the limit of effort of the joint '{each.joint}' bounds what "
                f"{few([x.name for x in its])} give together, which act on other joints, where "
                "simulators do not clamp it",
                model.description.source,
                strict=False,
            )
            continue
        (n,), (actuator,) = each.motors, its
        gear = actuator.terms[0][1]
        if each.coordinate is not None:
            gear = float(actuator_map(model, model.neutral())[each.coordinate, n])
        low, high = sorted((each.least / gear, each.most / gear))
        weakest, most = both_ways(max(low, actuator.least_effort), min(high, actuator.effort_limit))
        result[n] = replace(actuator, effort_limit=most, effort_lower=weakest)
    return tuple(result)


def _as_rotors_turn(
    transmission: Transmission, actuators: Mapping[str, Actuator]
) -> Iterator[Transmission]:
    """The transmission, or one for each actuator if rotors' ratios stand for its reductions."""
    terms = [*actuator_terms(transmission)]
    turns = [actuators[end.name or named[0][0]] for end, named in terms
             if (end.name or named[0][0]) in actuators]  # fmt: skip
    if len(turns) < len(terms) or all(
        _alike(dict(each.terms), {name: k for name, k in named if k})
        for each, (_, named) in zip(turns, terms, strict=True)
    ):
        yield transmission
        return
    for each, (end, _) in zip(turns, terms, strict=True):
        joints = tuple(TransmittedJoint(name, reduction=k) for name, k in each.terms)
        alone = (replace(end, role="", reduction=None),)
        yield Transmission(each.name, SIMPLE if len(joints) == 1 else "motor", joints, alone)


def _alike(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """True if these are the same ratios of the same joints, but for rounding."""
    return one.keys() == other.keys() and all(
        math.isclose(k, other[name], rel_tol=SAME) for name, k in one.items()
    )


def _limited_end(
    transmission: Transmission, end: ActuatorEnd, actuators: Mapping[str, Actuator]
) -> ActuatorEnd:
    """An actuator with the limits that joints behind it give it where the file gives none."""
    first = transmission.joints[0].name if transmission.joints else ""
    if (actuator := actuators.get(end.name or first)) is None:
        return end
    motor = _limited_as(end.motor or _motor(actuator), actuator)
    return end if motor == Motor() else replace(end, motor=motor)


def with_motors_at_neutral(model: Model, tree: Description) -> Description:
    """The open tree with the model's actuators on the joints that move, by ratios at neutral.

    Joints that motors share, on tendons, keep the file's limits of effort, and what motors of
    followers give beside: motors have their own, and the least over the range would clip what they
    give together where ratios are larger.
    """
    scalar = {joint.name for joint in tree.joints if joint.type in ONE_DOF}
    drives: dict[str, list[int]] = {}  # for each joint, the numbers of joints its actuators move
    added = []
    for each, terms in zip(model.actuators, _ratios_at_neutral(model), strict=True):
        if not terms or not terms.keys() <= scalar:
            warn_at(
                f"the actuator '{each.name}' is not in the open tree: it "
                + ("drives a joint of several freedoms" if terms else "moves none of its joints"),
                model.description.source,
                strict=False,
            )
            continue
        ends = tuple(TransmittedJoint(name, reduction=ratio) for name, ratio in terms.items())
        for name in terms:
            drives.setdefault(name, []).append(len(terms))
        if each.pushes:
            motor = ActuatorEnd(each.name, motor=_motor(each))
            added.append(Transmission(each.name, "motor", ends, (motor,)))
    added += _motors_of_joints(model, tree, drives)
    joints = tuple(
        replace(
            joint,
            motor=None,
            limits=joint.limits
            if drives[joint.name] == [1]
            else _with_effort_of_file(model, joint),
        )
        if joint.name in drives
        else joint
        for joint in tree.joints
    )
    return replace(tree, joints=joints, transmissions=tuple(added))


def _with_effort_of_file(model: Model, joint: Joint) -> Limits:
    """The limits of a joint, with those of effort that the file leaves it."""
    back, most = file_efforts(model, model.joint_names.index(joint.name))
    return replace(joint.limits, effort=most, effort_lower=None if back == most else 0.0 - back)


@cached_on_model
def _ratios_at_neutral(model: Model) -> tuple[Mapping[str, float], ...]:
    """The rate of each actuator for unit velocities of the joints that move, by joint."""
    _, names, independent_rates = moving_joints(model)
    rates = neutral_jacobian(model) @ independent_rates
    return tuple(
        rates_of(sum((k * rates[v] for v, k in each.rows), np.zeros(model.nv)), names)
        for each in model.actuators
    )


def with_motors_of_followers(model: Model, tree: Description) -> Description:
    """The open tree with the transmissions of joints that it locks, or that follow others.

    Where a constant ratio ties their motor to one joint that moves, that joint has it, by this
    ratio; other joints that they move have one motor each, with their limits. Motors with a rotor,
    which the tree has not, are on their joints by its ratio. A tree without transmissions has a
    motor on each joint with a limit of effort.
    """
    actuators = {each.name: n for n, each in enumerate(model.actuators)}
    named = {each.name: each for each in model.actuators}
    kept = {each: [*_as_rotors_turn(each, named)] for each in tree.transmissions}
    if all(each in kept for each in model.description.transmissions):
        return replace(tree, transmissions=tuple(itertools.chain.from_iterable(kept.values())))
    ratios, constant = _ratios_at_neutral(model), _by_constant_ratios(model)
    types = {joint.name: joint.type for joint in tree.joints}
    result, moved = list[Transmission](), dict[str, None]()
    for each in model.description.transmissions:
        if each in kept:
            result += kept[each]
            continue
        for end in each.actuators:
            n = actuators.get(end.name or each.joints[0].name if each.joints else end.name)
            if n is None:
                continue
            actuator, terms = model.actuators[n], ratios[n]
            if len(terms) == 1 and constant[n] and actuator.pushes:
                ((name, ratio),) = terms.items()
                motor = ActuatorEnd(actuator.name, motor=_motor(actuator))
                ends = (TransmittedJoint(name, reduction=ratio),)
                called = each.name if len(each.actuators) == 1 else actuator.name
                result.append(Transmission(called, SIMPLE, ends, (motor,)))
            else:
                moved |= dict.fromkeys(terms)
    if not result:
        drives = {joint.name: is_driven(model, model.joint_names.index(joint.name))
                for joint in tree.joints
                if joint.type in ONE_DOF and not joint.mimic and joint.limits.pushes}  # fmt: skip
        if all(drives.values()):
            return tree
        moved |= {name: None for name, has_motor in drives.items() if has_motor}
    driven = {end.name for each in result for end in each.joints}
    for name in moved:
        if types[name] in ONE_DOF and name not in driven:
            alone = (TransmittedJoint(name),), (ActuatorEnd(name),)
            result.append(Transmission(name, SIMPLE, *alone))
    return replace(tree, transmissions=tuple(result))


def _by_constant_ratios(model: Model) -> tuple[bool, ...]:
    """For each actuator, True if its ratios to the joints that move are the same everywhere."""
    selection = select(model)
    fixed = {model.joints[body].name for body in selection.moving}
    fixed |= {model.joints[x.body].name for x in selection.followers if x.exact and x.linear}
    fixed |= {name for each in model.clusters if not each.varies for name in each.joints}
    return tuple(all(name in fixed for name, _ in each.terms) for each in model.actuators)


def _motors_of_joints(
    model: Model, tree: Description, driven: Collection[str]
) -> Iterator[Transmission]:
    """A motor for each joint with an effort limit above zero that no actuator of the tree drives.

    Joints without a motor in the robot have none.
    """
    for each in model.description.transmissions:
        if each.actuators and each.joints and not any(actuator_terms(each)):
            warn_at(
                f"a transmission of the type '{each.type}' is not written; each of its joints with "
                "a limit of its effort has a motor of its own",
                each.source,
                strict=False,
            )
    follow = {model.joints[body].name for body in select(model).following}
    for joint in tree.joints:
        moved = joint.name in driven or joint.name in follow
        if joint.type not in ONE_DOF or moved or not joint.limits.pushes:
            continue
        if is_driven(model, model.joint_names.index(joint.name)):
            ends = (TransmittedJoint(joint.name),), (ActuatorEnd(joint.name),)
            yield Transmission(joint.name, "motor", *ends)


def _limited_as(motor: Motor, actuator: Actuator) -> Motor:
    """The motor with the limits of an actuator."""
    return replace(
        motor,
        effort=actuator.effort_limit,
        velocity=actuator.velocity_limit,
        effort_lower=actuator.effort_lower,
        velocity_lower=actuator.velocity_lower,
    )


def _motor(actuator: Actuator) -> Motor:
    return Motor(
        effort=actuator.effort_limit,
        velocity=actuator.velocity_limit,
        effort_lower=actuator.effort_lower,
        velocity_lower=actuator.velocity_lower,
        stall_torque=actuator.stall_torque,
        no_load_speed=actuator.no_load_speed,
        torque_constant=actuator.torque_constant,
        resistance=actuator.resistance,
    )


# --- limits of open trees -------------------------------------------------------------------------


def with_limits(model: Model, view: Model, tree: Description) -> Description:
    """The open tree of a view with the limits that its robot's motors and linkages give joints.

    Effort and velocity limits are what motors give everywhere in the range, which ends at limits
    and dead points of the linkage. Tighter limits of the file stay. A motor's own numbers go with
    its rotor; a torque-speed curve behind a constant ratio is converted to the joint.
    """
    if not any(joint.motor for joint in tree.joints) and not _limits_anything(model):
        looped = {name for cluster in model.clusters if cluster.varies for name in cluster.joints}
        names = [x.name for x in tree.joints if x.name in looped and x.type in ONE_DOF]
        reaches = dict(zip(names, limb_ranges(model, names), strict=True))
        joints = [_reaching(joint, reaches.get(joint.name)) for joint in tree.joints]
        return replace(tree, joints=tuple(joints))
    carriers = {model.joints[body].name: body for body in carrying(model)}
    bodies = {joint.name: carriers[joint.name] for joint in tree.joints
              if joint.name in carriers and joint.type in ONE_DOF}  # fmt: skip
    follow(model, [*bodies.values()])
    joints = [
        _limited(view, joint, joint_limits(model, bodies[joint.name]))
        if joint.name in bodies
        else joint
        for joint in tree.joints
    ]
    return replace(tree, joints=tuple(joints))


def _limits_anything(model: Model) -> bool:
    """True if any motor or position has a limit: else dead points alone end ranges."""
    ends = [x for joint in model.joints for x in (joint.lower, joint.upper)]
    for each in model.actuators:
        ends += [each.effort_limit, each.velocity_limit]
        ends += [x for x in (each.stall_torque, each.no_load_speed) if x is not None]
    return any(map(math.isfinite, ends))


def _limited(view: Model, joint: Joint, behind: JointLimits) -> Joint:
    kind_of_cluster = next(c.kind for c in view.clusters if joint.name in c.joints)
    motor = joint.motor if kind_of_cluster == "joint" else _motor_at_joint(view, behind)
    return ending(replace(joint, motor=motor), behind.limits)


def _reaching(joint: Joint, reach: JointRange | None) -> Joint:
    """A joint with the limits of its range, if it has one."""
    if reach is None:
        return joint
    return ending(joint, replace(joint.limits, lower=reach.lower, upper=reach.upper))


def ending(joint: Joint, limits: Limits) -> Joint:
    """A joint with limits; a continuous joint bounded on one side only stays unbounded."""
    bounded = math.isfinite(limits.lower) and math.isfinite(limits.upper)
    kind = "revolute" if joint.type == "continuous" and bounded else joint.type
    if kind == "continuous":
        limits = replace(limits, lower=joint.limits.lower, upper=joint.limits.upper)
    return replace(joint, type=kind, limits=limits)


def _motor_at_joint(view: Model, behind: JointLimits) -> Motor | None:
    """The torque-speed curve of a joint's motor, at the joint; None if several motors drive it."""
    driving = [
        (each, terms[behind.joint])
        for each, terms in zip(view.actuators, _ratios_at_neutral(view), strict=True)
        if each.name in behind.actuators and behind.joint in terms
    ]
    if len(driving) != 1 or len(behind.actuators) != 1 or not behind.constant:
        return None
    ((actuator, ratio),) = driving
    if actuator.stall_torque is None or not math.isfinite(behind.effort):
        return None
    motor = replace(_motor(actuator), torque_constant=None, resistance=None)
    return without_zeros(carried(motor, ratio))  # the joint's limits say these
