"""MuJoCo's actuators as transmissions and motors; armature and damping of actuators and tendons.

Sources: MuJoCo's XML reference, ``actuator``, and its computation of actuator forces.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from robomodel.description import (
    Actuator,
    Joint,
    JointCoupling,
    JointSpring,
    Link,
    Motor,
    PolynomialCoupling,
    Transmission,
    TransmittedJoint,
    least,
)
from robomodel.description.transmissions import both_ways
from robomodel.errors import DescriptionError, Source, few
from robomodel.parsers.mjcf.compiled import CompiledSection
from robomodel.parsers.mjcf.constraints import EqualityConstraints, Terms
from robomodel.tolerances import ROUNDING
from robomodel.vocabulary.motors import motor_fault
from robomodel.vocabulary.schema import MOTOR, Names

ACTUATOR_MOTOR, JOINT_MOTOR = "robomodel_actuator_motor:", "robomodel_motor:"
"""Prefixes of ``<custom>`` texts with the numbers of an actuator's or a joint's motor."""

Span: TypeAlias = tuple[float, float]
"""The least and the greatest force."""

_DRIVES_JOINT, _TENDON = (0, 1), 3  # mjtTrn
_STATELESS = "mjDYN_NONE"
_INTEGRATES = ("mjDYN_INTEGRATOR", "mjDYN_PID", "mjDYN_MUSCLE", "mjDYN_USER")


@dataclass
class Motors(CompiledSection):
    """The motors of a model's actuators and joints."""

    ties: EqualityConstraints

    def drives(self, actuator: int) -> tuple[Terms | None, float]:
        """The joints that an actuator moves, with their coefficients; and its gear."""
        model = self.model
        kind, driven = int(model.actuator_trntype[actuator]), int(model.actuator_trnid[actuator, 0])
        gear = float(model.actuator_gear[actuator, 0])
        if kind in _DRIVES_JOINT:
            return ((driven, 1.0),), gear
        return self.ties.terms(driven) if kind == _TENDON else None, gear

    def noted(self, key: str, source: Source) -> Motor | None:
        """The motor in the ``<custom>`` text ``key``; None without such a text."""
        words = self.elements.compiled.custom.get(key, "").split()
        if not words:
            return None
        try:
            numbers = {name: float(x) for name, _, x in (word.partition("=") for word in words)}
        except ValueError:
            numbers = {"": math.nan}
        if not numbers.keys() <= MOTOR.names:
            raise DescriptionError(
                f"the text '{key}' in <custom> is no list of NAME=NUMBER with the names "
                f"{', '.join(sorted(MOTOR.names))}; correct it or take it out",
                source,
            )
        if fault := motor_fault(numbers):
            raise DescriptionError(fault, source)
        return Motor(**numbers, source=source)

    def of_actuator(
        self, number: int, name: str, terms: Terms | None, gear: float, source: Source
    ) -> Motor | None:
        """The motor of an actuator, before its gear; None if the file gives no limits for it."""
        if not terms or not gear:
            return None
        noted = self.noted(ACTUATOR_MOTOR + name, source)
        motor = noted or replace(self._dc(number) or Motor(), source=source)
        low, high = self._efforts(number, source)
        let = self._let_through(number, terms, gear, source, (low, high))
        if self._on_tendon(number):  # one without a limit would have its first joint's
            low, high = max(low, let[0]), min(high, let[1])
        if high < math.inf and not (noted and (low, high) == noted.at_rest):
            low, high = max(low, let[0], motor.least_effort), min(high, let[1], motor.effort)
            weakest, effort = both_ways(low, high)
            motor = replace(motor, effort=effort, effort_lower=weakest)
        return motor if MOTOR.of(motor) else None

    @cached_property
    def _spans(self) -> dict[int, Span]:
        """Least and greatest forces by actuators, as they are asked for: warnings come once."""
        return {}

    def _efforts(self, number: int, source: Source) -> Span:
        """Least and greatest force: limits of force, or those of control times a plain gain."""
        if number not in self._spans:
            self._spans[number] = self._own_efforts(number, source)
        return self._spans[number]

    def _own_efforts(self, number: int, source: Source) -> Span:
        import mujoco

        model = self.model
        low, high = -math.inf, math.inf
        if model.actuator_forcelimited[number]:
            low, high = self._span(model.actuator_forcerange[number], "force", source)
        bias, constants = model.actuator_biastype[number], model.actuator_biasprm[number]
        constant = float(constants[0]) if bias == mujoco.mjtBias.mjBIAS_AFFINE else 0.0
        plain = model.actuator_gaintype[number] == mujoco.mjtGain.mjGAIN_FIXED and (
            bias == mujoco.mjtBias.mjBIAS_NONE
            or (bias == mujoco.mjtBias.mjBIAS_AFFINE and not constants[1:3].any())
        )
        if not plain:
            return low, high
        dynamics = mujoco.mjtDyn(model.actuator_dyntype[number]).name
        kinds = ["act"] if dynamics != _STATELESS else []
        kinds += ["ctrl"] if dynamics not in _INTEGRATES else []
        for kind in kinds:  # what a filter gives lies within both
            if getattr(model, f"actuator_{kind}limited")[number]:
                gain = float(model.actuator_gainprm[number, 0])
                span = getattr(model, f"actuator_{kind}range")[number]
                ends = self._span(gain * span + constant, "control", source)
                low, high = max(low, ends[0]), min(high, ends[1])
        return (low, high) if low < high else (-math.inf, math.inf)

    def gains(self, number: int) -> tuple[float, float]:
        """Position and velocity gain of a servo at the actuator's shaft; zeros without one."""
        import mujoco

        if self.model.actuator_biastype[number] != mujoco.mjtBias.mjBIAS_AFFINE:
            return 0.0, 0.0
        _, position, velocity = (-float(x) for x in self.model.actuator_biasprm[number, :3])
        return position + 0.0, velocity + 0.0

    def _span(self, span: Any, what: str, source: Source) -> Span:
        """A range of force; one that does not hold zero is widened to the same both ways."""
        low, high = sorted(map(float, span))
        if not (low <= 0.0 <= high and low < high):
            if high != 0.0 or low != 0.0:
                self.elements.warn_at(
                    f"its range of {what}, {low:g} to {high:g}, does not hold zero; the larger end "
                    "is its limit of effort both ways",
                    source,
                    "uneven range",
                )
            high = max(abs(low), abs(high))
            low = -high
        return low, high

    def _let_through(
        self, number: int, terms: Terms, gear: float, source: Source, force: Span
    ) -> Span:
        """Limits that joints and a tendon put on their actuator's force; infinite without them.

        MuJoCo clamps what a joint gets behind gears, and what a tendon's actuators give before, of
        several together. Of a joint that is then the joint's limit, without tendons of several
        joints on it.
        ``force``: the actuator's own limits.
        """
        low, high = -math.inf, math.inf
        tendon = int(self.model.actuator_trnid[number, 0])
        if self._on_tendon(number) and self.elements.has("tendon_actfrclimited", tendon):
            driven = zip(self.model.actuator_trntype, self.model.actuator_trnid[:, 0], strict=True)
            rivals = [n for n, each in enumerate(driven) if each == (_TENDON, tendon)]
            self._tell_of_rivals("tendon", tendon, number, rivals)
            low, high = self._clamp("tendon", tendon)
        within, cut = (max(low, force[0]), min(high, force[1])), []
        for joint, k in terms:
            if joint in self.ties.locked or not self.elements.has("jnt_actfrclimited", joint):
                continue
            rivals = [n for n, moved in enumerate(self._moved) if joint in moved]
            clamp = self._clamp("jnt", joint)
            alone = all(len(self._moved[n]) == 1 for n in rivals)  # it is the joint's own limit
            if len(rivals) > 1 and (alone or self._within(joint, rivals, clamp)):
                continue
            self._tell_of_rivals("jnt", joint, number, rivals)
            ends = sorted(x / (gear * k) for x in clamp)
            if len(terms) > 1 and not ends[0] <= within[0] <= within[1] <= ends[1]:
                cut.append(self.elements.joints[joint])
            low, high = max(low, ends[0]), min(high, ends[1])
        if cut:
            message = (
                f"in MuJoCo the actuatorfrcrange of {few(cut)} cuts what its tendon gives such a "
                "joint alone; here it limits the actuator's force, and so what the tendon's other "
                "joints get"
            )
            self.elements.warn_at(message, source, "joint's limit on a tendon")
        return low, high

    def _clamp(self, kind: str, row: int) -> Span:
        """The ``actuatorfrcrange`` of a joint or a tendon."""
        weakest, most = both_ways(*map(float, getattr(self.model, f"{kind}_actfrcrange")[row]))
        return least(most, weakest), most

    def _within(self, joint: int, rivals: Sequence[int], clamp: Span) -> bool:
        """True if actuators by their own limits give a joint no more together than its clamp."""
        low, high = 0.0, 0.0
        for n in rivals:
            terms, gear = self.drives(n)
            place = self.elements.called("actuator", n)[1]
            force = self._efforts(n, place)
            for k in (k for each, k in terms or () if each == joint):
                ends = sorted(gear * k * x for x in force)
                low, high = low + ends[0], high + ends[1]
        room = ROUNDING * max(map(abs, clamp))
        return clamp[0] - room <= low and high <= clamp[1] + room

    def _tell_of_rivals(self, kind: str, row: int, number: int, rivals: Sequence[int]) -> None:
        """Warn once of a limit of a joint or a tendon that several actuators have each alone."""
        if len(rivals) > 1 and number == rivals[0]:
            names = [self.elements.called("actuator", n)[0] for n in rivals]
            place = self.elements.called("tendon" if kind == "tendon" else "joint", row)[1]
            message = (
                f"its actuatorfrcrange limits what {few(names)} give together; here "
                "it limits each of them, as a tendon is among them, and they may give more together"
            )
            self.elements.warn_at(message, place, "several actuators")

    def _on_tendon(self, number: int) -> bool:
        return int(self.model.actuator_trntype[number]) == _TENDON

    @cached_property
    def _moved(self) -> list[frozenset[int]]:
        """The joints that each actuator moves by itself or through a fixed tendon."""
        numbers = range(len(self.model.actuator_trntype))
        return [frozenset(joint for joint, _ in self.drives(n)[0] or ()) for n in numbers]

    def _dc(self, number: int) -> Motor | None:
        """The constants and voltage of a ``<dcmotor>``, which only some releases have."""
        import mujoco

        model = self.model
        kind = getattr(mujoco.mjtGain, "mjGAIN_DCMOTOR", None)
        if kind is None or model.actuator_gaintype[number] != kind:
            return None
        resistance, constant = (float(x) for x in model.actuator_gainprm[number, :2])
        voltage = None
        if model.actuator_ctrllimited[number]:
            voltage = float(max(abs(model.actuator_ctrlrange[number])))
        return Motor(torque_constant=constant, resistance=resistance, voltage=voltage)


_DRIVES_BODIES = {2: "sites by a crank", 4: "a site", 5: "what touches a body"}

_Amount: TypeAlias = tuple[str, Source, Terms, float]
"""A quantity that acts on joints: name, location, the joints' coefficients, amount."""


@dataclass
class Actuators(CompiledSection):
    """The actuators of a model, and the inertia and damping that they add to joints."""

    ties: EqualityConstraints

    @cached_property
    def motors(self) -> Motors:
        """The motors of actuators and joints."""
        return Motors(self.elements, self.ties)

    def _tag(self, actuator: int) -> str:
        """The actuator's tag in the file."""
        node = self.elements.node("actuator", actuator)
        return node.tag if node else ""

    def _of_actuators(self, quantity: str) -> Iterator[tuple[str, Source, Terms | None, float]]:
        """Armature or damping of actuators, times gear², if the release of MuJoCo has it."""
        for actuator, value in enumerate(getattr(self.model, f"actuator_{quantity}", ())):
            if value:
                name, source = self.elements.called("actuator", actuator, self._tag(actuator))
                terms, gear = self.motors.drives(actuator)
                yield name, source, terms, float(value) * gear**2

    def _of_tendons(self) -> Iterator[tuple[str, Source, Terms | None, float]]:
        """The armature of tendons."""
        for tendon, armature in enumerate(getattr(self.model, "tendon_armature", ())):
            if armature:
                name, source = self.elements.called("tendon", tendon)
                yield name, source, self.ties.terms(tendon), float(armature)

    def _applied(
        self, amounts: Iterable[tuple[str, Source, Terms | None, float]], what: str, kind: str
    ) -> list[_Amount]:
        """The amounts that act on joints of one freedom, without joints that a constraint locks."""
        applied = []
        for name, source, terms, amount in amounts:
            moved = tuple((joint, k) for joint, k in terms or () if joint not in self.ties.locked)
            if terms is None or not all(self.elements.is_scalar(joint) for joint, _ in moved):
                self.elements.warn_at(
                    f"its {what} is not applied: that is done for hinges, slides and fixed tendons",
                    source,
                    kind,
                )
            elif moved:
                applied.append((name, source, moved, amount))
        return applied

    @cached_property
    def _spinning(self) -> list[_Amount]:
        """The armature of tendons and of actuators."""
        amounts = (*self._of_tendons(), *self._of_actuators("armature"))
        return self._applied(amounts, "armature", "armature")

    @cached_property
    def _damped(self) -> list[_Amount]:
        """The damping of actuators."""
        return self._applied(self._of_actuators("damping"), "damping", "damping of an actuator")

    @cached_property
    def added(self) -> dict[str, dict[int, float]]:
        """The armature and damping that actuators of single joints add, by quantity and joint."""
        amounts = {"armature": self._spinning, "damping": self._damped}
        return {quantity: _of_single_joints(each) for quantity, each in amounts.items()}

    def dampers(self) -> Iterator[JointSpring]:
        """The damping of actuators that move several joints through a tendon."""
        for actuator, source, terms, damping in self._damped:
            if len(terms) > 1:
                names = tuple((self.elements.joints[joint], k) for joint, k in terms)
                yield JointSpring(f"{actuator}_damping", names, damping=damping, source=source)

    def rotors(
        self,
    ) -> tuple[list[Link], list[Joint], list[JointCoupling | PolynomialCoupling]]:
        """Massless rotors for tendons over several joints that have armature, or that curves tie.

        A rotor turns with the tendon's length, on the body that carries all of these joints; the
        armature is that of its joint.
        """
        links: list[Link] = []
        joints: list[Joint] = []
        couplings: list[JointCoupling | PolynomialCoupling] = []
        names = Names((*self.elements.link_names.used, *self.elements.joint_names.used))

        def turned(tendon: str, source: Source, terms: Terms, inertia: float) -> str:
            name = names.fresh(f"{tendon}_rotor")
            links.append(Link(name, None, source))
            joints.append(
                Joint(
                    name, "continuous", self._carrier(terms), name, independent=False,
                    source=source, armature=inertia,
                )
            )  # fmt: skip
            relation = ((name, 1.0), *((self.elements.joints[joint], -k) for joint, k in terms))
            couplings.append(JointCoupling(name, relation, 0.0, source))
            return name

        for tendon, source, terms, inertia in self._spinning:
            if len(terms) == 1:
                continue
            if not self._in_line(terms):
                self.elements.warn_at(
                    "its armature couples joints on different branches: that is kept, as a rotor "
                    "has it, but MuJoCo's mass matrix leaves it out (MJX has it)",
                    source,
                    "armature between branches",
                )
            turned(tendon, source, terms, inertia)
        for curve in self.ties.curves:
            y, x = (turned(*self.elements.called("tendon", tendon), self.ties.terms(tendon) or (),
                           0.0) for tendon in curve.tendons)  # fmt: skip
            tie = PolynomialCoupling(curve.name, y, x, curve.coefficients, curve.source)
            couplings.append(tie)
        return links, joints, couplings

    def _in_line(self, terms: Terms) -> bool:
        """True if each of these joints moves those after it, as entries of MuJoCo's matrix need."""
        model = self.model
        dofs = sorted(int(model.jnt_dofadr[joint]) for joint, _ in terms)
        above = [dofs[-1]]
        while (parent := int(model.dof_parentid[above[-1]])) >= 0:
            above.append(parent)
        return set(dofs) <= set(above)

    def _carrier(self, terms: Terms) -> str:
        """The nearest body that carries the bodies of these joints."""
        parents = self.model.body_parentid
        bodies = {int(parents[self.model.jnt_bodyid[joint]]) for joint, _ in terms}
        while len(bodies) > 1:  # parents have smaller numbers
            bodies.add(int(parents[last := max(bodies)]))
            bodies.remove(last)
        return self.elements.bodies[bodies.pop()]

    def _why_none(self, actuator: int) -> str:
        """Why an actuator is left out; empty for one that is kept."""
        kind = int(self.model.actuator_trntype[actuator])
        terms, gear = self.motors.drives(actuator)
        if kind in _DRIVES_BODIES:
            return f"it acts on {_DRIVES_BODIES[kind]}"
        if terms is None:
            return "it pulls a spatial tendon"
        if not all(self.elements.is_scalar(joint) for joint, _ in terms):
            return "it acts on a ball or free joint"
        if not gear or not terms:
            return "its gear is 0" if terms else "the coefficients of its tendon are 0"
        if all(joint in self.ties.locked for joint, _ in terms):
            return "a constraint holds all that it acts on in one position"
        return ""

    def transmissions(self) -> Iterator[Transmission]:
        """Every actuator, with the joints of one freedom that it moves, if any."""
        for number in range(self.model.actuator_trnid.shape[0]):
            tag = self._tag(number)
            name, source = self.elements.called("actuator", number, tag)
            terms, gear = self.motors.drives(number)
            why, motor = self._why_none(number), None
            if not why:
                motor = self.motors.of_actuator(number, name, terms, gear, source)
            if motor is not None and not motor.least_effort < motor.effort:
                why, motor = "its limits and those of what it acts on leave it no force", None
            if why:
                terms = None
                self.elements.warn_at(
                    f"it is not among the robot's actuators: {why}; those act on hinges, slides "
                    "and fixed tendons that move",
                    source,
                    f"actuator: {why}",
                )
            ends = tuple(
                TransmittedJoint(self.elements.joints[joint], reduction=k)
                for joint, k in terms or ()
                if joint not in self.ties.locked
            )
            reduction = gear if terms else None
            gains = self.motors.gains(number) if terms else (0.0, 0.0)
            actuator = Actuator(name, reduction=reduction, motor=motor, gains=gains)
            yield Transmission(name, tag, ends, (actuator,), source)


def _of_single_joints(amounts: Iterable[_Amount]) -> dict[int, float]:
    """The amount on each joint, from those that act on a single joint."""
    added: dict[int, float] = defaultdict(float)
    for _, _, terms, amount in amounts:
        if len(terms) == 1:
            ((joint, coefficient),) = terms
            added[joint] += amount * coefficient**2
    return added
