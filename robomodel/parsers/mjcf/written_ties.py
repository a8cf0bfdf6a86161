"""Loops, couplings and transmissions as constraints, tendons and motors of MJCF."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lxml import etree

from robomodel.description import (
    Actuator,
    Anchor,
    Description,
    JointSpring,
    LinkCoupling,
    Loop,
    Motor,
    Spring,
    Transmission,
    Vec3,
)
from robomodel.motors import carried
from robomodel.parsers.mjcf.bodies import NO_LIMIT
from robomodel.parsers.mjcf.draft import Draft
from robomodel.parsers.mjcf.motors import ACTUATOR_MOTOR
from robomodel.parsers.mjcf.poses import pose_words
from robomodel.parsers.schema import MOTOR, SPRING, add, write_mjcf
from robomodel.parsers.shared.springs import rest_length
from robomodel.poses import (
    along,
    branches,
    distance,
    initial_positions,
    link_poses,
    second_axis,
    unit,
)
from robomodel.text import number, numbers
from robomodel.transmissions import actuator_terms, rotor_name

_ARM = 0.1  # m: how far along an axis the point is that stands for it
_STIFF = "0.9999 0.9999 0.001 0.5 2"  # solimp: as little as MuJoCo lets its constraints yield
_YIELDS = (
    " Equality constraints of MuJoCo yield. Written as stiff as they can be, these let through a"
    " ten-thousandth or so of what they hold; docs/mjcf.md tells how far accelerations are off. "
)

_Relation = Sequence[tuple[str, float]]  # joints and coefficients


@dataclass
class Ties:
    """What ties the bodies of a document, once they are written."""

    description: Description
    draft: Draft

    def __post_init__(self) -> None:
        self.moved_by = {joint.child: joint for joint in self.description.joints}
        self.at_zero = link_poses(self.description)
        self.placed = link_poses(self.description, initial_positions(self.description.joints))
        self.moved_as = {joint.name: joint for joint in self.description.joints}

    def write(self) -> None:
        """Write all of it, and how stiff it is."""
        for loop in self.description.loops:
            self._loop(loop)
        self._couplings()
        for spring in self.description.springs:
            self._spring(spring)
        for transmission in self.description.transmissions:
            self._transmission(transmission)
        equality = self.draft.sections["equality"]
        if len(equality):
            equality.insert(0, etree.Comment(_YIELDS))
            self.draft.add("default", "equality", solimp=_STIFF)

    # ---- loops

    def _loop(self, loop: Loop) -> None:
        """A loop by the constraints between points that say the same of its two links."""
        if loop.damping or loop.friction or loop.stiffness:
            self.draft.lost.append(f"damping, friction and spring of the loop '{loop.name}'")
        name, ends = loop.name, (loop.predecessor, loop.successor)
        if loop.type == "fixed":
            self._tie("weld", name, *ends)
        elif loop.type == "rod":
            length = distance(*ends, self.at_zero) if loop.length is None else loop.length
            self._rod(name, *ends, length)
        else:
            self._tie("connect", name, *ends)
            axis = unit(loop.axis)
            if loop.type in ("revolute", "continuous"):
                self._tie("connect", f"{name}.axis", *(_along(end, axis) for end in ends))
            elif loop.type == "universal":
                # axes of one length from one point are at right angles where their ends are so far
                one, other = _along(ends[0], axis), _along(ends[1], unit(second_axis(loop)))
                self._rod(f"{name}.axes", one, other, math.sqrt(2.0) * _ARM)

    def _sites(self, tie: str, one: Anchor, other: Anchor) -> list[str]:
        """The sites at the ends of what is called so."""
        names = []
        for role, end in (("predecessor", one), ("successor", other)):
            names.append(self.draft.unused("site", f"{tie}.{role}"))
            add(self.draft.bodies[end.link], "site", name=names[-1], **pose_words(end.origin))
        return names

    def _tie(self, tag: str, name: str, one: Anchor, other: Anchor) -> None:
        site1, site2 = self._sites(name, one, other)
        name = self.draft.unused("equality", name)
        self.draft.add("equality", tag, name=name, site1=site1, site2=site2)

    def _spatial(self, name: str, one: Anchor, other: Anchor) -> etree._Element:
        """A tendon between two sites."""
        tendon = self.draft.add("tendon", "spatial", name=self.draft.unused("tendon", name))
        for site in self._sites(name, one, other):
            add(tendon, "site", site=site)
        return tendon

    def _rod(self, name: str, one: Anchor, other: Anchor, length: float) -> None:
        """A tendon between two sites keeps its length; MuJoCo counts from that at ``ref``."""
        tendon = self._spatial(name, one, other)
        keep(self.draft, name, tendon, length - distance(one, other, self.placed))

    # ---- springs

    def _spring(self, spring: Spring | JointSpring) -> None:
        """A spring as a tendon: fixed, over joints, or straight between two sites."""
        if isinstance(spring, JointSpring):
            tendon = fixed_tendon(self.draft, spring.name, spring.terms)
            rest = spring.reference
        else:
            tendon = self._spatial(spring.name, spring.predecessor, spring.successor)
            rest = rest_length(spring, self.at_zero)
        tendon.set("springlength", number(rest))
        write_mjcf(tendon, SPRING, spring)

    # ---- couplings

    def _couplings(self) -> None:
        for coupling in self.description.couplings:
            if isinstance(coupling, LinkCoupling):
                couple(self.draft, coupling.name, self._paths(coupling), coupling.offset)
            else:
                relation = [(name, ratio) for name, ratio in coupling.terms if ratio]
                couple(self.draft, coupling.name, self._led(relation), coupling.offset)
        for joint in self.description.joints:
            if joint.mimic is not None:
                relation = [(joint.name, 1.0), (joint.mimic.joint, -joint.mimic.multiplier)]
                couple(self.draft, joint.name, relation, joint.mimic.offset)

    def _paths(self, coupling: LinkCoupling) -> _Relation:
        """The joints from the common ancestor to either link, the successor's last one first."""
        one, other = branches(self.moved_by, coupling.predecessor, coupling.successor)
        ways = ((other, 1.0), (one, -coupling.ratio))
        return [(j.name, k) for path, k in ways for j in reversed(path) if j.type != "fixed"]

    def _led(self, relation: _Relation) -> _Relation:
        """The relation with that joint first that depends on the others: the reader takes it so."""
        marks = {joint.name: joint.independent for joint in self.description.joints}

        def order(term: tuple[str, float]) -> tuple[int, float]:
            mark = marks[term[0]]
            return 1 if mark is None else 2 if mark else 0, -abs(term[1])

        return sorted(relation, key=order)

    # ---- actuators

    def _transmission(self, transmission: Transmission) -> None:
        """Motors on the joints, or on tendons of the joints, of a transmission."""
        found = [
            (each, {k: x for k, x in terms if x}) for each, terms in actuator_terms(transmission)
        ]
        known = found and all(
            terms and terms.keys() <= self.draft.refs.keys() for _, terms in found
        )
        if not known or any(joint.offset for joint in transmission.joints):
            self.draft.lost.append(f"the transmission '{transmission.name}'")
            return
        for actuator, terms in found:
            called = actuator.name if len(found) > 1 else transmission.name
            name = self.draft.unused("actuator", called or transmission.name)
            element = self.draft.add("actuator", "motor", name=name)
            if len(terms) == 1:
                ((joint, gear),) = terms.items()
                element.set("joint", joint)
            else:
                gear = 1.0 if actuator.reduction is None else actuator.reduction
                relation = [(joint, turns / gear) for joint, turns in terms.items()]
                element.set("tendon", fixed_tendon(self.draft, name, relation).get("name", ""))
            if gear != 1.0:
                element.set("gear", number(gear))
            self._motor(element, name, actuator, terms)

    def _motor(
        self, element: etree._Element, name: str, actuator: Actuator, terms: Mapping[str, float]
    ) -> None:
        """What the motor can do: its effort as its range of control, the rest noted."""
        first, ratio = next(iter(terms.items()))
        motor = actuator.motor
        if motor is None and (motor := self.moved_as[first].motor) is not None:
            rotors = {rotor_name(actuator.name), rotor_name(first)}
            couplings = {coupling.name for coupling in self.description.couplings}
            if not rotors & (self.moved_as.keys() | couplings):  # its numbers are the joint's
                motor = carried(motor, 1.0 / abs(ratio))
        effort = math.inf if motor is None else motor.effort
        if len(terms) == 1 and effort == math.inf:
            effort = self.moved_as[first].limits.effort / abs(ratio)
        if 0.0 < effort < NO_LIMIT:
            element.set("ctrlrange", numbers((-effort, effort)))
        if motor is not None and MOTOR.of(rest := replace(motor, effort=math.inf)):
            note_motor(self.draft, ACTUATOR_MOTOR + name, rest)


def note_motor(draft: Draft, key: str, motor: Motor) -> None:
    """A ``<custom>`` text with the numbers of a motor that MJCF has no word for."""
    data = " ".join(f"{each.name}={number(x)}" for each, x in MOTOR.of(motor).items())
    draft.add("custom", "text", name=key, data=data)


def fixed_tendon(draft: Draft, name: str, relation: _Relation) -> etree._Element:
    """A tendon over joints."""
    tendon = draft.add("tendon", "fixed", name=draft.unused("tendon", name))
    for joint, coefficient in relation:
        add(tendon, "joint", joint=joint, coef=number(coefficient))
    return tendon


def keep(draft: Draft, name: str, tendon: etree._Element, constant: float) -> None:
    """Keep the length of a tendon, so much longer than at ``ref``."""
    equality, line = draft.unused("equality", name), numbers((constant, 0, 0, 0, 0))
    tendon1 = tendon.get("name", "")
    draft.add("equality", "tendon", name=equality, tendon1=tendon1, polycoef=line)


def couple(draft: Draft, name: str, relation: _Relation, offset: float) -> None:
    """Tie joints by Σ coefficient · q = offset; MuJoCo counts positions from ``ref``."""
    (first, k), *others = relation
    if len(others) > 1:
        constant = offset - math.fsum(c * draft.refs[joint] for joint, c in relation)
        keep(draft, name, fixed_tendon(draft, name, relation), constant)
        return
    constant, slope = offset / k - draft.refs[first], 0.0
    element = draft.add("equality", "joint", name=draft.unused("equality", name), joint1=first)
    for second, coefficient in others:
        slope = -coefficient / k
        constant += slope * draft.refs[second]
        element.set("joint2", second)
    element.set("polycoef", numbers((constant, slope, 0, 0, 0)))


def _along(end: Anchor, axis: Vec3) -> Anchor:
    """The point on an axis that stands for it."""
    return replace(end, origin=along(end.origin, axis, _ARM))
