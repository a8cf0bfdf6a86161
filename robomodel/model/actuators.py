"""Actuators: which motors drive which joints, with their ratios, rotors and limits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from robomodel.description import (
    Description,
    LinkCoupling,
    Motor,
    PolynomialCoupling,
    least,
    pushes,
)
from robomodel.description.inertias import centred
from robomodel.description.transmissions import (
    KINDS,
    actuator_terms,
    backdrive_of,
    carried,
    kind_of,
    loss_fault,
    rotor_name,
)
from robomodel.errors import DescriptionError
from robomodel.mechanism.joints import Revolute
from robomodel.scalars import Scalar, div, held, is_number, select, value_of
from robomodel.tolerances import NOTHING, SAME

if TYPE_CHECKING:
    from robomodel.model.elements import Coupling, Joint, Node

Terms = tuple[tuple[str, float], ...]
NO_MOTOR = Motor()
LEVER = 2.0  # rad for a radian: what turns faster is a rotor, and follows nothing
AXISYMMETRIC = 0.05  # how far a rotor's moments may differ across its axis, as a share


@dataclass(frozen=True, slots=True)
class Actuator:
    """A motor and the joints that it drives.

    Its rate is Σ coefficient · q̇(joint) over ``terms``, the driven joints, and its power is that
    times its force u. So u is the force before the reduction. The coefficients are a rotor's
    ratios, URDF's reductions, a transmission's matrix or MJCF's gear. ``joint`` is the rotor's
    joint; without a rotor, the first driven joint. Limits are the motor's, before the reduction,
    and infinite where the file gives none; ``effort_lower`` and ``velocity_lower`` those the other
    way, zero or negative (None: the same). ``efficiency`` and ``backdrive`` are the shares of the
    power that arrive through its gear while it drives and while it is driven; ``turns_rotor``: the
    gear is the coupling of its rotor. ``stall_torque`` and ``no_load_speed`` are those of its
    torque-speed curve (None without one), ``torque_constant`` [N m/A] and ``resistance`` [Ω] a DC
    motor's.
    """

    name: str
    joint: str
    terms: Terms
    effort_limit: float
    velocity_limit: float
    stall_torque: float | None = None
    no_load_speed: float | None = None
    torque_constant: float | None = None
    resistance: float | None = None
    rows: tuple[tuple[int, float], ...] = ()  # spanning velocity, coefficient: for the recursions
    carried: tuple[bool, bool] = (False, False)  # effort, velocity limit: of the first joint moved
    efficiency: float = 1.0
    backdrive: float = 1.0
    turns_rotor: bool = False
    effort_lower: float | None = None
    velocity_lower: float | None = None

    @property
    def least_effort(self) -> float:
        """Its least force."""
        return least(self.effort_limit, self.effort_lower)

    @property
    def least_velocity(self) -> float:
        """Its least rate."""
        return least(self.velocity_limit, self.velocity_lower)

    @property
    def pushes(self) -> bool:
        """True if its limits leave it any force."""
        return self.least_effort < self.effort_limit

    @property
    def backwards(self) -> Actuator:
        """The actuator with its limits the other way about: its least force is the greatest."""
        if self.effort_lower is None and self.velocity_lower is None:
            return self
        return replace(
            self,
            effort_limit=-self.least_effort,
            velocity_limit=-self.least_velocity,
            effort_lower=-self.effort_limit,
            velocity_lower=-self.velocity_limit,
        )

    @property
    def lossy(self) -> bool:
        """True if its gear loses power."""
        return not all(is_number(x) and x == 1.0 for x in (self.efficiency, self.backdrive))


@dataclass(frozen=True)
class _DrivenJoints:
    """The joints and couplings among which motors and rotors are found, by name.

    ``loaded`` joints carry other bodies.
    """

    joints: Mapping[str, Joint]
    nodes: Mapping[str, Node]
    couplings: Sequence[Coupling]
    loaded: frozenset[str]
    declared: Mapping[str, str]  # couplings that ``<rotor>`` wrote, with the rotors' joints

    def turns_alone(self, name: str) -> bool:
        """True if the joint turns one balanced body, as a rotor is: symmetric about its axis."""
        node = self.nodes.get(name)
        if node is None or not isinstance(node.joint, Revolute) or name in self.loaded:
            return False
        i, j = (node.joint.k + 1) % 3, (node.joint.k + 2) % 3
        moment, first = centred(node.inertia)[1], node.inertia.h
        across = (moment[i][i], moment[j][j])
        size = max(moment[n][n] for n in range(3))
        tilted = max(abs(moment[a][b]) for a, b in ((i, j), (i, node.joint.k), (j, node.joint.k)))
        return bool(
            size > 0.0
            and max(abs(value_of(first[i])), abs(value_of(first[j])))
            <= SAME * max(value_of(node.inertia.mass), NOTHING)
            and max(abs(across[0] - across[1]), tilted) <= AXISYMMETRIC * size
        )

    def rotors(self) -> dict[str, Terms]:
        """The rotors that couplings turn, each with the joints that turn it and their ratios."""
        rotors_of: dict[str, Terms] = {}
        coupled = Counter(name for each in self.couplings for name, k in each.terms if k)
        for coupling in self.couplings:
            if coupling.coefficients:  # no gear
                continue
            terms = {name: k for name, k in coupling.terms if k}
            rotors = [name for name, k in terms.items() if self.turns_alone(name)
                      and (not self.joints[name].independent
                           or max(map(abs, terms.values())) > LEVER * abs(k))]  # fmt: skip
            declared = self.declared.get(coupling.name)
            if declared in terms:  # however its mass lies
                rotors = [declared]
            elif len(rotors) > 1:  # a wheel that turns alone as well, and the rotor that drives it
                named = {rotor_name(name) for name in terms}
                dependent = [name for name in rotors if not self.joints[name].independent]
                ends = [name for name in dependent if coupled[name] == 1]  # an idler is in between
                rotors = [name for name in rotors if name in named] or (
                    ends if len(dependent) > 1 else dependent
                )
            if len(rotors) != 1 or len(terms) < 2:
                continue
            (rotor,) = rotors
            factor = terms.pop(rotor)
            rotors_of[rotor] = tuple((n, -k / factor) for n, k in terms.items())
        return rotors_of

    def shafts(self, driven: Mapping[str, Motor]) -> dict[str, Terms]:
        """The rotors without a motor in ``driven``, with the joints that turn them.

        Where a rotor turns a wheel that turns joints, the rotor is taken to turn these joints, and
        the wheel is left out.
        """
        shafts = self.rotors()
        for name in tuple(shafts):
            while wheels := [
                joint
                for joint, _ in shafts.get(name, ())
                if joint in shafts and joint not in driven and name not in dict(shafts[joint])
            ]:
                wheel, *_ = wheels
                terms = dict(shafts[name])
                ratio = terms.pop(wheel)
                for joint, k in shafts.pop(wheel):
                    terms[joint] = terms.get(joint, 0.0) + ratio * k
                shafts[name] = tuple((joint, k) for joint, k in terms.items() if k)
        return {name: terms for name, terms in shafts.items() if name not in driven}


def find_actuators(
    description: Description,
    joints: Sequence[Joint],
    nodes: Sequence[Node],
    couplings: Sequence[Coupling],
    loaded: Set[int],
    freedoms: Mapping[str, int],
) -> tuple[Actuator, ...]:
    """The actuators of the file's transmissions; if it has none, one for each driven joint.

    ``loaded``: bodies on which other bodies, loops or springs hang; ``freedoms`` of each cluster.
    Raises DescriptionError for losses at a coupling that is not that of a motor's rotor.
    """
    by_name = {joint.name: joint for joint in joints}
    carrying = {node.parent for node in nodes}
    tree = _DrivenJoints(
        by_name,
        {joint.name: node for joint, node in zip(joints, nodes, strict=True)},
        couplings,
        frozenset(joint.name for n, joint in enumerate(joints) if n in carrying),
        _declared(description),
    )
    motors = {joint.name: joint.motor for joint in description.joints if joint.motor}
    actuators = _of_transmissions(description, tree, motors)
    if not any(each.actuators for each in description.transmissions):
        actuators = _of_joints(tree, motors, freedoms)
    held = {joint.name for n, joint in enumerate(joints) if n in loaded or joint.stiffness}
    return tuple(_with_losses(actuators, description, tree, held))


def _with_losses(
    actuators: Sequence[Actuator], description: Description, tree: _DrivenJoints, held: Set[str]
) -> list[Actuator]:
    """The actuators with the losses of the couplings that their rotors turn."""
    ties = [each for each in tree.couplings if each.kind != "mimic"]
    result = list(actuators)
    turned = {each.joint: n for n, each in enumerate(actuators) if len(each.rows) == 1}
    for element, tie in zip(description.couplings, ties, strict=True):
        if isinstance(element, PolynomialCoupling):
            continue
        losses = element.efficiency, element.backdrive
        if losses == (1.0, None):
            continue
        if fault := loss_fault(*losses):
            raise DescriptionError(fault, element.source)
        joints = [name for name, k in tie.terms if k]
        rotors = [x for x in joints if x in turned and x not in held]
        if len(rotors) > 1:
            rotors = [name for name in rotors if tree.turns_alone(name)]
        others = [each.name for each in ties if each is not tie and rotors
                  and rotors[0] in dict(each.terms)]  # fmt: skip
        if len(rotors) != 1 or len(joints) < 2 or others:
            raise DescriptionError(
                f"has an efficiency, but {_not_driven(rotors, others)}: one side must be the rotor "
                "of a motor, which turns nothing else. Give the efficiency to the coupling of the "
                "rotor, or to a <rotor>",
                element.source,
            )
        at = turned[rotors[0]]
        if result[at].lossy:
            raise DescriptionError(
                f"has an efficiency, and so has the reduction of '{result[at].name}'; keep one",
                element.source,
            )
        result[at] = replace(
            result[at], efficiency=losses[0], backdrive=backdrive_of(*losses), turns_rotor=True
        )
    return result


def loss_notes(description: Description) -> list[str]:
    """Which efficiencies of driven motors a file leaves out, and what is taken for them."""
    elements: list[tuple[str, float, float | None]] = [
        (each.name, each.efficiency, each.backdrive)
        for each in description.couplings
        if not isinstance(each, PolynomialCoupling)
    ]
    elements += [
        (end.name, end.efficiency, end.backdrive)
        for each in description.transmissions
        for end in each.actuators
    ]
    taken = {
        f"{backdrive_of(efficiency, None):.3g} of '{name}'": None
        for name, efficiency, backdrive in elements
        if efficiency != 1.0 and backdrive is None
    }
    if not taken:
        return []
    return [
        "efficiencies while the joint drives the motor are left out: those of equal friction of "
        f"the teeth, 2 - 1/efficiency, are taken, {', '.join(taken)}"
    ]


def _not_driven(rotors: Sequence[str], others: Sequence[str]) -> str:
    if others:
        return f"its rotor '{rotors[0]}' turns '{others[0]}', too"
    return f"it has {'no motor at its sides' if not rotors else 'motors on several sides'}"


def _declared(description: Description) -> dict[str, str]:
    """Coupling → joint of the rotor that it turns, for couplings with the name of a rotor."""
    above = {joint.child: joint.name for joint in description.joints}
    ends = [actuator for each in description.transmissions for actuator in each.actuators]
    names = {rotor_name(name) for name in (*above.values(), *(end.name for end in ends))}
    return {
        coupling.name: above.get(coupling.successor, "")
        if isinstance(coupling, LinkCoupling)
        else coupling.terms[0][0]
        for coupling in description.couplings
        if coupling.name in names
    }


def _of_transmissions(
    description: Description, tree: _DrivenJoints, motors: Mapping[str, Motor]
) -> list[Actuator]:
    actuators: list[Actuator] = []
    turned = tree.rotors()
    for transmission in description.transmissions:
        for actuator, terms in actuator_terms(transmission):
            driven = tuple((name, k) for name, k in terms if name in tree.joints and k)
            if not driven:
                continue
            first, ratio = driven[0]
            name, motor = actuator.name or first, actuator.motor
            used = {each.joint for each in actuators}
            rotor, factor = _rotor(kind_of(transmission), (name, first), driven, tree, turned, used)
            if rotor is not None:
                motor = motor or motors.get(first, NO_MOTOR)
                turns = tuple((n, factor * k) for n, k in turned.get(rotor, driven))
                actuators.append(_actuator(name, rotor, turns, tree, motor, factor))
            else:  # a joint's motor has the joint's units
                motor = motor or carried(motors.get(first, NO_MOTOR), 1.0 / ratio)
                actuators.append(_actuator(name, first, driven, tree, motor))
            losses = actuator.efficiency, actuator.backdrive
            if losses != (1.0, None):
                if fault := loss_fault(*losses):
                    raise DescriptionError(fault, transmission.source)
                actuators[-1] = replace(
                    actuators[-1], efficiency=losses[0], backdrive=backdrive_of(*losses)
                )
    return actuators


def _rotor(
    kind: str,
    names: tuple[str, str],
    driven: Terms,
    tree: _DrivenJoints,
    turned: Mapping[str, Terms],
    used: Set[str],
) -> tuple[str | None, float]:
    """The rotor of an actuator, if it has one, and the actuator's turns for one of the rotor.

    These are 1 for transmissions of ros_control, where a rotor's ratio stands for the reduction.
    Other actuators (MJCF's) turn as their gear says, and their rotors in proportion.
    """
    for each in map(rotor_name, names):
        rotor = tree.declared.get(each, each)
        if rotor not in turned and not tree.turns_alone(rotor):
            continue
        if kind in KINDS:
            return rotor, 1.0
        for terms in (turned.get(rotor, ()), ((rotor, 1.0),)):
            if factor := _proportion(driven, terms):
                return rotor, factor
    for rotor, terms in turned.items():
        if rotor not in used and abs(factor := _proportion(driven, terms)) == 1.0:
            return rotor, 1.0 if kind in KINDS else factor
    return None, 1.0


def _proportion(one: Terms, other: Terms) -> float:
    """The factor f with one = f · other, over the same joints; 0 if there is none."""
    mine, its = dict(one), dict(other)
    if mine.keys() != its.keys():
        return 0.0
    factor = mine[one[0][0]] / its[one[0][0]]
    if not all(math.isclose(mine[name], factor * its[name], rel_tol=SAME) for name in mine):
        return 0.0
    return math.copysign(1.0, factor) if math.isclose(abs(factor), 1.0, rel_tol=SAME) else factor


def _of_joints(
    tree: _DrivenJoints, motors: Mapping[str, Motor], freedoms: Mapping[str, int]
) -> list[Actuator]:
    """An actuator for each joint with one freedom that has a motor.

    Independent joints with a rotor or an effort limit get one, too. An effort limit alone does not
    count in a linkage that has motors on other joints, as many as it has freedoms; and it counts on
    dependent joints where all these are no more than its freedoms. One of zero is that of a joint
    without a motor, or a placeholder: it counts as none. Where several rotors turn with
    several joints (differentials, parallel belts), each joint takes an unused rotor with the fewest
    other joints.
    """
    # an independent rotor without a file's motor has an actuator of its own, and no second one
    rotors = {name: terms for name, terms in tree.shafts(motors).items()
              if not tree.joints[name].independent or motors.keys() & dict(terms)}  # fmt: skip
    motorized = [joint.cluster for joint in tree.joints.values() if joint.name in motors]

    def driven_by_others(joint: Joint) -> bool:
        return motorized.count(joint.cluster) >= freedoms[joint.cluster]

    def turns_alone(joint: Joint) -> bool:
        return tree.turns_alone(joint.name) and any(
            joint.name in dict(coupling.terms) for coupling in tree.couplings
        )

    limited = {joint.name for joint in tree.joints.values()
               if pushes(joint.effort_limit, joint.effort_lower)}  # fmt: skip

    def alone(joint: Joint) -> bool:
        """If it has one whatever other joints have."""
        if joint.name in motors or not joint.independent:
            return joint.name in motors
        driven = any(joint.name in dict(terms) for terms in rotors.values())
        return driven or turns_alone(joint) or joint.name in limited

    likely = Counter(joint.cluster for joint in tree.joints.values()
                     if joint.nv == 1 and (joint.name in limited or alone(joint)))  # fmt: skip
    actuators = []
    for joint in tree.joints.values():
        few = joint.name in limited and likely[joint.cluster] <= freedoms[joint.cluster]
        if joint.nv != 1 or not (joint.independent or joint.name in motors or few):
            continue
        motor = motors.get(joint.name, NO_MOTOR)
        of_this = [name for name, terms in rotors.items() if joint.name in dict(terms)]
        spins = turns_alone(joint)
        named = rotor_name(joint.name)
        if of_this and (named in of_this or not spins):
            rotor = named if named in of_this else min(of_this, key=lambda name: len(rotors[name]))
            ratio = dict(rotors[rotor])[joint.name]
            driven = ((joint.name, ratio), *(t for t in rotors.pop(rotor) if t[0] != joint.name))
            actuators.append(_actuator(joint.name, rotor, driven, tree, motor))
        elif joint.name in motors or (
            (spins or joint.name in limited) and not driven_by_others(joint)
        ):
            actuators.append(_actuator(joint.name, joint.name, ((joint.name, 1.0),), tree, motor))
    return actuators


def _actuator(
    name: str, joint: str, driven: Terms, tree: _DrivenJoints, motor: Motor, factor: float = 1.0
) -> Actuator:
    """An actuator at ``joint`` that drives others by these terms.

    Its limits are the first that the file gives of: the motor's; its rotor's, times ``factor``, the
    actuator's turns for one of the rotor; those of the first joint that it drives, by the ratio.
    """
    first, ratio = driven[0]
    moved, rotating = tree.joints[first], joint not in dict(driven)
    forces = [(motor.least_effort, motor.effort)]
    rates = [(motor.least_velocity, motor.velocity)]
    moving = [(tree.joints[joint], factor)] if rotating else []
    for each, k in (*moving, (moved, ratio)):
        forces.append(_times(1.0 / k, each.least_effort, each.effort_limit))
        rates.append(_times(k, each.least_velocity, each.velocity_limit))
    (weakest, effort), (slowest, speed) = _first(*forces), _first(*rates)
    if motor.torque_constant and motor.current < math.inf:
        most = motor.torque_constant * motor.current
        weakest, effort = max(weakest, -most), min(effort, most)
    carried_on = [not _limited(*_first(*each[:-1])) for each in (forces, rates)]
    return Actuator(
        name, joint, driven, effort, speed, motor.stall, motor.free_speed,
        motor.torque_constant, motor.resistance,
        tuple((tree.nodes[n].v, k) for n, k in (((joint, factor),) if rotating else driven)),
        (carried_on[0], carried_on[1]),
        effort_lower=None if weakest == -effort else weakest,
        velocity_lower=None if slowest == -speed else slowest,
    )  # fmt: skip


def with_couplings(actuator: Actuator, couplings: Sequence[Coupling]) -> Actuator:
    """The actuator with the ratios of ``couplings``, which may be scalars of any kind.

    Limits that come from the first joint that it drives change with the ratio.
    """
    before = actuator.terms[0][1]
    for coupling in couplings:
        terms = dict(coupling.terms)
        if actuator.joint in terms and set(terms) == {actuator.joint, *dict(actuator.terms)}:
            factor = dict(actuator.rows).get(actuator.rows[0][0], 1.0)
            own = terms.pop(actuator.joint)
            turns = tuple((name, -factor * div(terms[name], own)) for name, _ in actuator.terms)
            sense = turns[0][1] * math.copysign(1.0, before)  # negative: it turns the other way
            share = div(select(sense, -sense, sense), abs(before))
            effort = actuator.effort_lower, actuator.effort_limit
            speed = actuator.velocity_lower, actuator.velocity_limit
            if actuator.carried[0]:
                effort = _turned(effort, sense, div(1.0, share))
            if actuator.carried[1]:
                speed = _turned(speed, sense, share)
            return replace(
                actuator, terms=turns, effort_lower=effort[0], effort_limit=effort[1],
                velocity_lower=speed[0], velocity_limit=speed[1],
            )  # fmt: skip
    return actuator


def _turned(
    ends: tuple[float | None, float], sense: Scalar, share: Scalar
) -> tuple[float | None, float]:
    """A share of limits below (None: as above) and above, which change places at a turned sense."""
    lower, upper = ends
    above = share * upper if math.isfinite(upper) else upper
    if lower is None:
        return None, held(above)
    below = share * lower if math.isfinite(lower) else lower
    return held(select(sense, -above, below)), held(select(sense, -below, above))


def _times(factor: float, low: float, high: float) -> tuple[float, float]:
    """An interval times a factor."""
    ends = sorted((factor * low + 0.0, factor * high + 0.0))  # none is -0
    return ends[0], ends[1]


def _limited(low: float, high: float) -> bool:
    return math.isfinite(low) or math.isfinite(high)


def _first(*limits: tuple[float, float]) -> tuple[float, float]:
    """The first of these intervals that is bounded on a side."""
    return next((each for each in limits if _limited(*each)), (-math.inf, math.inf))
