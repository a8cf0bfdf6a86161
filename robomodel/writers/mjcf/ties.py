"""Loops, couplings and transmissions as constraints, tendons and motors of MJCF."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lxml import etree

from robomodel.description import (
    Actuator,
    Description,
    JointSpring,
    LinkCoupling,
    Loop,
    Pose,
    Spring,
    Transmission,
    Vec3,
)
from robomodel.motors import carried, numbers_of
from robomodel.parsers.mjcf.bodies import NO_LIMIT
from robomodel.parsers.mjcf.motors import ACTUATOR_MOTOR
from robomodel.poses import along, branches, compose, initial_positions, link_poses, unit
from robomodel.text import number, numbers
from robomodel.transmissions import actuator_terms, rotor_name
from robomodel.writers.elements import add, rest_length, set_numbers
from robomodel.writers.mjcf.draft import Draft
from robomodel.writers.mjcf.poses import pose_words

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
        one, other = loop.predecessor.origin, loop.successor.origin
        if loop.type == "fixed":
            self._tie("weld", loop, "", one, other)
        elif loop.type == "rod":
            length = loop.length
            if length is None:
                length = self._distance(loop, one, other, self.at_zero)
            self._rod(loop, "", one, other, length)
        else:
            self._tie("connect", loop, "", one, other)
            axis = unit(loop.axis)
            if loop.type in ("revolute", "continuous"):
                self._tie(
                    "connect", loop, ".axis", along(one, axis, _ARM), along(other, axis, _ARM)
                )
            elif loop.type == "universal":
                # axes of one length from one point are at right angles where their ends are so far
                ends = along(one, axis, _ARM), along(other, _second_axis(loop, axis), _ARM)
                self._rod(loop, ".axes", *ends, math.sqrt(2.0) * _ARM)

    def _sites(self, loop: Loop, suffix: str, one: Pose, other: Pose) -> tuple[str, str]:
        names = []
        ends = (
            (loop.predecessor.link, "predecessor", one),
            (loop.successor.link, "successor", other),
        )
        for link, role, pose in ends:
            name = self.draft.unused("site", f"{loop.name}{suffix}.{role}")
            add(self.draft.bodies[link], "site", name=name, **pose_words(pose))
            names.append(name)
        return names[0], names[1]

    def _tie(self, tag: str, loop: Loop, suffix: str, one: Pose, other: Pose) -> None:
        name = self.draft.unused("equality", loop.name + suffix)
        site1, site2 = self._sites(loop, suffix, one, other)
        self.draft.add("equality", tag, name=name, site1=site1, site2=site2)

    def _rod(self, loop: Loop, suffix: str, one: Pose, other: Pose, length: float) -> None:
        """A tendon between two sites keeps its length; MuJoCo counts from that at ``ref``."""
        name = self.draft.unused("tendon", loop.name + suffix)
        spatial = self.draft.add("tendon", "spatial", name=name)
        for site in self._sites(loop, suffix, one, other):
            add(spatial, "site", site=site)
        begin = self._distance(loop, one, other, self.placed)
        equality = self.draft.unused("equality", loop.name + suffix)
        line = numbers((length - begin, 0, 0, 0, 0))
        self.draft.add("equality", "tendon", name=equality, tendon1=name, polycoef=line)

    def _distance(self, loop: Loop, one: Pose, other: Pose, poses: Mapping[str, Pose]) -> float:
        """The distance of two points of the loop's links."""
        ends = ((loop.predecessor.link, one), (loop.successor.link, other))
        return math.dist(*(compose(poses[link], pose).xyz for link, pose in ends))

    # ---- springs

    def _spring(self, spring: Spring | JointSpring) -> None:
        """A spring as a tendon: fixed, over joints, or straight between two sites."""
        name = self.draft.unused("tendon", spring.name)
        if isinstance(spring, JointSpring):
            tendon = self.draft.add("tendon", "fixed", name=name)
            for joint, ratio in spring.terms:
                add(tendon, "joint", joint=joint, coef=number(ratio))
            rest, friction = spring.reference, spring.friction
        else:
            tendon = self.draft.add("tendon", "spatial", name=name)
            ends = (("predecessor", spring.predecessor), ("successor", spring.successor))
            for role, anchor in ends:
                site = self.draft.unused("site", f"{spring.name}.{role}")
                body = self.draft.bodies[anchor.link]
                add(body, "site", name=site, **pose_words(anchor.origin))
                add(tendon, "site", site=site)
            rest, friction = rest_length(spring, self.at_zero), 0.0
        tendon.set("springlength", number(rest))
        set_numbers(
            tendon, stiffness=spring.stiffness, damping=spring.damping, frictionloss=friction
        )

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
                tendon = self.draft.unused("tendon", name)
                fixed = self.draft.add("tendon", "fixed", name=tendon)
                for joint, turns in terms.items():
                    add(fixed, "joint", joint=joint, coef=number(turns / gear))
                element.set("tendon", tendon)
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
        said = {} if motor is None else numbers_of(motor)
        effort = said.pop("effort", math.inf)
        if len(terms) == 1 and effort == math.inf:
            effort = self.moved_as[first].limits.effort / abs(ratio)
        if 0.0 < effort < NO_LIMIT:
            element.set("ctrlrange", numbers((-effort, effort)))
        if said:
            note_motor(self.draft, ACTUATOR_MOTOR + name, said)


def note_motor(draft: Draft, key: str, said: Mapping[str, float]) -> None:
    """What MJCF has no word for in what a motor can do."""
    data = " ".join(f"{name}={number(x)}" for name, x in said.items())
    draft.add("custom", "text", name=key, data=data)


def couple(draft: Draft, name: str, relation: _Relation, offset: float) -> None:
    """Tie joints by Σ coefficient · q = offset; MuJoCo counts positions from ``ref``."""
    equality = draft.unused("equality", name)
    (first, k), *others = relation
    if len(others) > 1:
        tendon = draft.unused("tendon", name)
        fixed = draft.add("tendon", "fixed", name=tendon)
        for joint, coefficient in relation:
            add(fixed, "joint", joint=joint, coef=number(coefficient))
        constant = offset - math.fsum(c * draft.refs[joint] for joint, c in relation)
        line = numbers((constant, 0, 0, 0, 0))
        draft.add("equality", "tendon", name=equality, tendon1=tendon, polycoef=line)
        return
    constant, slope = offset / k - draft.refs[first], 0.0
    element = draft.add("equality", "joint", name=equality, joint1=first)
    for second, coefficient in others:
        slope = -coefficient / k
        constant += slope * draft.refs[second]
        element.set("joint2", second)
    element.set("polycoef", numbers((constant, slope, 0, 0, 0)))


def _second_axis(loop: Loop, first: Vec3) -> Vec3:
    """The second axis of a universal loop: given, or the coordinate axis that follows, upright."""
    if loop.axis2 is not None:
        return unit(loop.axis2)
    k = max(range(3), key=lambda n: (abs(first[n]), -n))
    x, y, z = ((1.0 if n == (k + 1) % 3 else 0.0) - first[(k + 1) % 3] * first[n] for n in range(3))
    return unit((x, y, z))
