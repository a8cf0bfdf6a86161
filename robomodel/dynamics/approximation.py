"""The open tree of a robot, as it is written for simulators without loops and couplings.

What :mod:`robomodel.model.approximate` makes of masses, here with the springs, damping, friction,
limits and motors that joints have behind rotors, gears and linkages.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from robomodel.description import (
    ONE_DOF,
    Description,
    Joint,
    JointCoupling,
    JointSpring,
    Motor,
    Spring,
    Transmission,
    TransmittedJoint,
)
from robomodel.description import Actuator as ActuatorEnd
from robomodel.description.transmissions import SIMPLE, actuator_terms
from robomodel.dynamics.actuators.envelopes import JointEnvelope, joint_envelopes
from robomodel.dynamics.kinematics.state import Configuration
from robomodel.dynamics.recursions.passive import Element, elements
from robomodel.errors import DescriptionWarning, Source, warn_at
from robomodel.model.actuators import Actuator
from robomodel.model.approximate import approximate, select, with_tendons
from robomodel.model.build import build
from robomodel.model.graph import WORLD, path
from robomodel.model.joints import Array
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
    _warn_of_tendons(model)
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


def _warn_of_tendons(model: Model) -> None:
    between = inertia_between_joints(model)
    entries = [f"{x:g} kg m² between {one} and {other}" for (one, other), x in between.items()]
    if entries:
        more = f" and {len(entries) - _LISTED} more" if len(entries) > _LISTED else ""
        warn_at(
            "reflected inertia between joints is not written, for which only MJCF has a word, the "
            f"armature of a fixed tendon: {'; '.join(entries[:_LISTED])}{more}",
            model.description.source,
            strict=False,
        )


# --- springs, dampers and friction ---------------------------------------------------------------

# The tree locks the dependent joints of every cluster, rotors too. What acts there, a coordinate x
# with its row J at the neutral configuration, is linear in the joints that move: damping d JᵀJ,
# friction at most f |J|, and a spring about the position at which x is at rest. For gears that is
# exact; for linkages it is right near neutral, as armature is.

NOTHING = 1e-12  # of the largest entry of a row


def with_reflected(model: Model, opened: Description) -> Description:
    """The open tree of a model with what its locked joints and cut loops have of such forces.

    A coordinate that one joint moves becomes that joint's damping, friction and spring; one that
    several move, a spring over them. What moves a ball, planar or floating joint is warned of: no
    word says it.
    """
    moving, names, independent_rates = _moving_joints(model)
    neutral = [float(x) for x in model.neutral()]
    spanning = model.spanning_positions(neutral)
    positions = {
        model.joints[body].name: float(spanning[model.nodes[body].q])
        for body in moving
        if model.joints[body].type in ONE_DOF
    }
    joints = {joint.name: joint for joint in opened.joints}
    springs = {spring.name: spring for spring in opened.springs if _remains(model, spring, moving)}
    sources = {joint.name: joint.source for joint in model.description.joints}
    sources |= {each.name: each.source for each in (*model.description.loops,
                                                    *model.description.springs)}  # fmt: skip
    kinds = {spring.name: spring for spring in model.springs}
    for element in elements(Configuration(model, neutral)):
        if element.name in springs or (element.name in names and element.name not in kinds):
            continue
        row = np.zeros(model.nv)
        row[list(element.row)] = [float(x) for x in element.row.values()]
        terms = _terms(row @ independent_rates, names)
        if not terms:
            continue
        if not terms.keys() <= positions.keys():
            warn_at(
                "its spring, damping and friction are not in the open tree: they act on a joint of "
                "several freedoms, for which no word says it",
                sources[element.name],
                strict=False,
            )
            continue
        sprung = joints[next(iter(terms))] if len(terms) == 1 else None
        shared = sprung is None or (sprung.stiffness and element.stiffness)
        if shared and (element.deadband or (sprung and sprung.deadband)):
            warn_at(
                "the play of its spring is not in the open tree: it acts on several joints, or "
                "beside another spring of one, for which no word says it",
                sources[element.name],
                strict=False,
            )
        if sprung:
            (ratio,) = terms.values()
            joints[sprung.name] = _folded(sprung, element, positions[sprung.name], ratio)
        else:
            name = element.name
            while name in springs or name in kinds:
                name += "_"
            springs[name] = _linear(name, element, terms, positions, sources[element.name])
    return replace(opened, joints=tuple(joints.values()), springs=tuple(springs.values()))


def _moving_joints(model: Model) -> tuple[list[int], list[str], Array]:
    """The bodies whose joints move in the open tree, the joint's name of each of their velocities.

    Also the independent velocities (nv, nv) for unit velocities of these joints at neutral.
    """
    moving = sorted(select(model).moving)
    names = [model.joints[body].name for body in moving for _ in model.nodes[body].freedoms]
    rows = [v for body in moving for v in model.nodes[body].freedoms]
    rates = model.constraint_jacobian(model.neutral())[rows]
    return moving, names, np.asarray(np.linalg.inv(rates))


def _terms(row: Array, names: Sequence[str]) -> dict[str, float]:
    """The entries of a row over the joints that move, by joint; without those that are rounding."""
    used = np.abs(row) > NOTHING * np.abs(row).max(initial=0.0)
    return {name: float(x) for name, x, on in zip(names, row, used, strict=True) if on}


def _remains(model: Model, spring: Spring | JointSpring, moving: list[int]) -> bool:
    """Whether a spring is in the open tree what it is in the robot."""
    if isinstance(spring, JointSpring):
        return True  # over joints that move, or it is none of the open tree's
    bodies = {link: n for n, body in enumerate(model.bodies) for link in body.links}
    ends = (bodies.get(end.link, WORLD) for end in (spring.predecessor, spring.successor))
    one, other = (set(path(model.parents, body)) for body in ends)
    return one ^ other <= set(moving)


def _folded(joint: Joint, element: Element, at: float, ratio: float) -> Joint:
    """A joint with an element of which only it moves the coordinate."""
    element_stiffness = element.stiffness * ratio * ratio
    stiffness = joint.stiffness + element_stiffness
    reference, play = joint.reference, joint.deadband
    if element_stiffness:
        element_reference = at - (float(element.x) - element.reference) / ratio
        moment = joint.stiffness * joint.reference + element_stiffness * element_reference
        reference = moment / stiffness
        play = 0.0 if joint.stiffness else element.deadband / abs(ratio)
    return replace(
        joint,
        damping=joint.damping + element.damping * ratio * ratio,
        friction=joint.friction + element.friction * abs(ratio),
        stiffness=stiffness,
        reference=reference,
        deadband=play,
    )


def _linear(
    name: str,
    element: Element,
    terms: Mapping[str, float],
    positions: Mapping[str, float],
    source: Source,
) -> JointSpring:
    """An element as one over several joints."""
    reference = 0.0
    if element.stiffness:
        at_neutral = sum(ratio * positions[joint] for joint, ratio in terms.items())
        reference = at_neutral - (float(element.x) - element.reference)
    return JointSpring(
        name, tuple(terms.items()), element.stiffness, reference, element.damping,
        element.friction, source=source,
    )  # fmt: skip


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
            motor = replace(motor, effort=effort, velocity=velocity)
            ends = (TransmittedJoint(each.joint),), (ActuatorEnd(each.name, motor=motor),)
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
    _, names, independent_rates = _moving_joints(model)
    rates = model.constraint_jacobian(model.neutral()) @ independent_rates
    scalar = {joint.name for joint in tree.joints if joint.type in ONE_DOF}
    drives: dict[str, list[int]] = {}  # of each joint, how many joints each of its actuators moves
    added = []
    for each in model.actuators:
        terms = _terms(sum((k * rates[v] for v, k in each.rows), np.zeros(model.nv)), names)
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
        if each.effort_limit > 0.0:
            motor = ActuatorEnd(each.name, motor=_motor(each))
            added.append(Transmission(each.name, "motor", ends, (motor,)))
    added += _motors_of_joints(model, tree, drives)
    file_efforts = {joint.name: joint.limits.effort for joint in model.description.joints}
    joints = tuple(
        replace(
            joint,
            motor=None,
            limits=joint.limits
            if drives[joint.name] == [1]
            else replace(joint.limits, effort=file_efforts[joint.name]),
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
    envelopes = {each.joint: each for each in joint_envelopes(model) if each.tree}
    joints = tuple(
        _limited(model, joint, envelopes[joint.name]) if joint.name in envelopes else joint
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


def _limited(model: Model, joint: Joint, envelope: JointEnvelope) -> Joint:
    limits = envelope.limits
    bounded = math.isfinite(limits.lower) and math.isfinite(limits.upper)
    kind = "revolute" if joint.type == "continuous" and bounded else joint.type
    if kind == "continuous":  # a turn that something ends on one side only has no word
        limits = replace(limits, lower=joint.limits.lower, upper=joint.limits.upper)
    kind_of_cluster = next(c.kind for c in model.clusters if c.name == envelope.cluster)
    motor = joint.motor if kind_of_cluster == "joint" else _motor_at_joint(model, envelope)
    return replace(joint, type=kind, limits=limits, motor=motor)


def _motor_at_joint(model: Model, envelope: JointEnvelope) -> Motor | None:
    """The torque-speed curve of the one motor of a joint, at the joint."""
    actuators = [each for each in model.actuators if each.name in envelope.actuators]
    if len(actuators) != 1 or not envelope.constant or not math.isfinite(envelope.effort):
        return None
    (actuator,) = actuators
    if actuator.stall_torque is None or actuator.no_load_speed is None:
        return None
    ratio = envelope.effort / min(actuator.effort_limit, actuator.stall_torque)
    return Motor(
        effort=actuator.effort_limit * ratio,
        velocity=actuator.velocity_limit / ratio,
        stall_torque=actuator.stall_torque * ratio,
        no_load_speed=actuator.no_load_speed / ratio,
    )
