"""A description as MJCF.

Positions of joints keep their meaning: a joint's ``ref`` is its initial position, and its body is
placed accordingly. Positions of a free joint are in the world, as always in MuJoCo. A joint that
MuJoCo does not have becomes several joints of one body, and a loop several constraints between
sites. :func:`robomodel.parsers.mjcf.read_mjcf` restores all of them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

from lxml import etree
from numpy.polynomial import Polynomial

from robomodel.description import (
    AT_ORIGIN,
    FREEDOMS,
    GRAVITY,
    IDENTITY,
    ONE_DOF,
    Actuator,
    Anchor,
    Description,
    Joint,
    JointCoupling,
    JointSpring,
    Link,
    LinkCoupling,
    Loop,
    Motor,
    PolynomialCoupling,
    Pose,
    Rows3,
    Spring,
    Transmission,
    Vec3,
)
from robomodel.description.inertias import scaled
from robomodel.description.poses import (
    align,
    along,
    compose,
    distance,
    initial_positions,
    link_poses,
    placed,
    relative,
    rows3,
    second_axis,
    standing,
    unit,
)
from robomodel.description.transmissions import (
    actuator_terms,
    carried,
    rotor_name,
    without_zeros,
)
from robomodel.errors import warn_at
from robomodel.mechanism.tree_constraints import unmarked
from robomodel.parsers.mjcf.actuators import ACTUATOR_MOTOR, JOINT_MOTOR
from robomodel.parsers.mjcf.constraints import TOLERANCE
from robomodel.parsers.mjcf.draft import MjcfDraft, Shapes, pose_words, turn_words
from robomodel.parsers.mjcf.robot import EFFORT_LIMIT, INDEPENDENT, VELOCITY_LIMIT
from robomodel.spatial import apply, inner, matmul, transpose
from robomodel.tolerances import NO_LIMIT, NOTHING, SAME, WRITTEN
from robomodel.vocabulary.frames import WORLD, independent_text, path_terms, unwritable
from robomodel.vocabulary.inertias import (
    NEARLY_NOTHING,
    carriers,
    heavy,
    of_a_body,
    physical_inertias,
    principal,
)
from robomodel.vocabulary.schema import (
    ARMATURE,
    COUPLING,
    DYNAMICS,
    MOTOR,
    REDUCTION,
    SPRING,
    add,
    number,
    numbers,
    write_mjcf,
)
from robomodel.vocabulary.springs import evened, lost_law, rest_length


def with_sliders(description: Description) -> Description:
    """The description with a body, a joint and a fixed loop for each prismatic or planar loop."""
    links = {link.name: link for link in description.links}
    joints = list(description.joints)
    poses = link_poses(description, initial_positions(joints))
    used = {joint.name for joint in joints}
    loops = []
    for loop in description.loops:
        if loop.type not in ("prismatic", "planar"):
            loops.append(loop)
            continue
        carrier, lender = loop.predecessor, loop.successor
        if not heavy(links[lender.link].inertial):
            carrier, lender = lender, carrier
        name = loop.name
        while name in links or name in used:
            name += ".slider"
        links[name] = Link(name, None, loop.source)
        used.add(name)
        if (inertial := links[lender.link].inertial) is not None and heavy(inertial):
            half = scaled(inertial, 0.5)
            links[lender.link] = replace(links[lender.link], inertial=half)
            inside = relative(lender.origin, inertial.origin)
            links[name] = replace(links[name], inertial=replace(half, origin=inside))
        initial, rest = None, loop.reference if carrier is loop.predecessor else -loop.reference
        if loop.type == "prismatic":
            between = relative(placed(carrier, poses), placed(lender, poses))
            initial = float(inner(between.xyz, unit(loop.axis)))
        joints.append(
            Joint(
                name,
                "prismatic" if loop.type == "prismatic" else "planar",
                carrier.link,
                name,
                carrier.origin,
                loop.axis,
                independent=False,
                damping=loop.damping,
                friction=loop.friction,
                initial=initial,
                source=loop.source,
                stiffness=loop.stiffness,
                reference=rest,
            )
        )
        loops.append(
            Loop(
                loop.name, "fixed", Anchor(name), lender, source=loop.source,
                tolerance=loop.tolerance,
            )
        )  # fmt: skip
    return replace(
        description, links=tuple(links.values()), joints=tuple(joints), loops=tuple(loops)
    )


_DEGREE = 4  # limit of MuJoCo's polynomials
_SLIGHT = 0.1  # ratio of a coupling, below which MuJoCo holds a tendon better than two joints
_ARM = 0.1  # m: distance along an axis of the point that stands for the axis
_STIFF = "0.9999 0.9999 0.001 0.5 2"  # solimp: the stiffest constraints that MuJoCo allows
_YIELDS = (
    " Equality constraints of MuJoCo yield. Written as stiff as they can be, these let through a"
    " ten-thousandth or so of what they hold; docs/mjcf.md has the errors of accelerations. "
)

_Relation = Sequence[tuple[str, float]]  # joints and coefficients


def without_tendon_rotors(
    description: Description,
) -> tuple[Description, list[JointCoupling], list[PolynomialCoupling]]:
    """The description without massless rotors that turn with joints, their couplings, and curves.

    In MJCF they are fixed tendons over these joints, whose armature is theirs; a curve between two
    of them is an equality of tendons.
    """
    on_links = Counter(joint.parent for joint in description.joints)
    on_joints = Counter(joint.mimic.joint for joint in description.joints if joint.mimic)
    on_joints.update(end.name for each in description.transmissions for end in each.joints)
    tied = Counter[str]()
    for each in (*description.loops, *description.couplings, *description.springs):
        if isinstance(each, PolynomialCoupling):
            tied.update(name for name, _ in each.terms)
        elif isinstance(each, JointCoupling | JointSpring):
            on_joints.update(name for name, _ in each.terms)
        else:
            ends = (each.predecessor, each.successor)
            on_links.update(end if isinstance(end, str) else end.link for end in ends)
    links = {link.name: link for link in description.links}
    rotors = {}
    for joint in description.joints:
        plain = Joint(
            joint.name, "continuous", joint.parent, joint.child, joint.origin, joint.axis,
            independent=False, armature=joint.armature, source=joint.source,
        )  # fmt: skip
        link = Link(joint.child, None, links[joint.child].source)
        alone = on_joints[joint.name] == 1 and not on_links[joint.child]
        # one that has no inertia and is tied to nothing is a joint that the file has
        used = tied[joint.name] == 1 or (joint.armature > 0.0 and not tied[joint.name])
        if used and alone and (joint, links[joint.child]) == (plain, link):
            rotors[joint.name] = joint.child
    tendons = [
        each
        for each in description.couplings
        if isinstance(each, JointCoupling) and len(each.terms) > 1 and not each.offset
        and each.terms[0][0] in rotors and each.terms[0][1] == 1.0
    ]  # fmt: skip
    names = {each.terms[0][0] for each in tendons}
    polynomials = [x for x in description.couplings if isinstance(x, PolynomialCoupling)]
    curves = [x for x in polynomials if {x.joint, x.of} <= names and _degree(x) <= _DEGREE]
    whole = {name for each in curves for name in (each.joint, each.of)}
    names -= {name for name in names if tied[name] and name not in whole}
    tendons = [each for each in tendons if each.terms[0][0] in names]
    gone = {rotors[name] for name in names}
    rest = replace(
        description,
        links=tuple(link for link in description.links if link.name not in gone),
        joints=tuple(joint for joint in description.joints if joint.name not in names),
        couplings=tuple(x for x in description.couplings if x not in [*tendons, *curves]),
    )
    return rest, tendons, curves


def _degree(coupling: PolynomialCoupling) -> int:
    return int(Polynomial(coupling.coefficients).trim().degree())


@dataclass
class MjcfTies:
    """Writes the constraints, tendons and actuators of a document, after its bodies."""

    description: Description
    draft: MjcfDraft

    def __post_init__(self) -> None:
        self.moved_by = {joint.child: joint for joint in self.description.joints}
        self.at_zero = link_poses(self.description)
        self.placed = link_poses(self.description, initial_positions(self.description.joints))
        self.moved_as = {joint.name: joint for joint in self.description.joints}

    def write(self) -> None:
        """Write all, with the stiffness of constraints."""
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
        """Write a loop as point and rod constraints with the same freedoms."""
        if loop.damping or loop.friction or loop.stiffness:
            self.draft.lost.append(f"damping, friction and spring of the loop '{loop.name}'")
        if loop.tolerance is not None:
            key, tolerance = TOLERANCE + loop.name, number(loop.tolerance)
            self.draft.add("custom", "numeric", name=key, data=tolerance)
        name, ends = loop.name, (loop.predecessor, loop.successor)
        if loop.type == "fixed":
            self._tie("weld", name, *ends)
        elif loop.type == "rod":
            self._rod(name, *ends, rest_length(loop, self.at_zero))
        else:
            self._tie("connect", name, *ends)
            axis = unit(loop.axis)
            if loop.type in ("revolute", "continuous"):
                self._tie("connect", f"{name}.axis", *(_along(end, axis) for end in ends))
            elif loop.type == "universal":
                # equal arms from one point are perpendicular if their ends are √2 arms apart
                one, other = _along(ends[0], axis), _along(ends[1], unit(second_axis(loop)))
                self._rod(f"{name}.axes", one, other, math.sqrt(2.0) * _ARM)

    def _sites(self, tie: str, one: Anchor, other: Anchor) -> list[str]:
        """The two new sites at the ends of a constraint."""
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
        """A tendon between two new sites."""
        tendon = self.draft.add("tendon", "spatial", name=self.draft.unused("tendon", name))
        for site in self._sites(name, one, other):
            add(tendon, "site", site=site)
        return tendon

    def _rod(self, name: str, one: Anchor, other: Anchor, length: float) -> None:
        """A tendon of constant length; MuJoCo counts from the length at ``ref``."""
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
            if not isinstance(coupling, PolynomialCoupling) and COUPLING.of(coupling):
                self.draft.lost.append(f"the losses of the coupling '{coupling.name}'")
            if isinstance(coupling, LinkCoupling):
                terms = reversed(path_terms(coupling, self.moved_by))
                relation = [(joint.name, k) for joint, k in terms]
                couple(self.draft, coupling.name, relation, coupling.offset)
            elif isinstance(coupling, PolynomialCoupling) and any(coupling.coefficients[2:]):
                self._polynomial(coupling)
            else:
                relation = [(name, ratio) for name, ratio in coupling.terms if ratio]
                couple(self.draft, coupling.name, self._led(relation), coupling.offset)
        for joint in self.description.joints:
            if joint.mimic is not None:
                relation = [(joint.name, 1.0), (joint.mimic.joint, -joint.mimic.multiplier)]
                couple(self.draft, joint.name, relation, joint.mimic.offset)

    def _polynomial(self, coupling: PolynomialCoupling) -> None:
        """Write ``polycoef``, a polynomial in the joints' differences from ``ref``."""
        if (degree := _degree(coupling)) > _DEGREE:
            self.draft.lost.append(
                f"the coupling '{coupling.name}', a polynomial of degree {degree} "
                f"(MuJoCo's are of degree {_DEGREE})"
            )
            self.draft.untied.add(coupling.name)
            return
        joint, of = coupling.joint, coupling.of
        name = self.draft.unused("equality", coupling.name)
        self.draft.add("equality", "joint", name=name, joint1=joint, joint2=of,
                       polycoef=_polycoef(coupling, self.draft.refs))  # fmt: skip

    def _led(self, relation: _Relation) -> _Relation:
        """The relation with the dependent joint first, as the reader expects."""
        marks = {joint.name: joint.independent for joint in self.description.joints}

        def order(term: tuple[str, float]) -> tuple[int, float]:
            mark = marks[term[0]]
            return 1 if mark is None else 2 if mark else 0, -abs(term[1])

        return sorted(relation, key=order)

    # ---- actuators

    def _transmission(self, transmission: Transmission) -> None:
        """Motors on the joints, or on tendons of the joints, of a transmission."""
        driven = [
            (each, {k: x for k, x in terms if x}) for each, terms in actuator_terms(transmission)
        ]
        moves = driven and all(
            terms and terms.keys() <= self.draft.refs.keys() for _, terms in driven
        )
        if not moves or any(joint.offset for joint in transmission.joints):
            self.draft.lost.append(f"the transmission '{transmission.name}'")
            return
        for actuator, terms in driven:
            if REDUCTION.of(actuator):
                self.draft.lost.append(f"the losses of the actuator '{actuator.name}'")
            name = self.draft.unused("actuator", actuator.name or transmission.name)
            element = self.draft.add("actuator", "motor", name=name)
            if len(terms) == 1:
                ((joint, gear),) = terms.items()
                element.set("joint", joint)
            else:
                gear = 1.0 if actuator.reduction is None else actuator.reduction
                relation = {joint: turns / gear for joint, turns in terms.items()}
                tendon, sign = self._tendon(name, relation)
                element.set("tendon", tendon)
                gear *= sign
            if gear != 1.0:
                element.set("gear", number(gear))
            self._motor(element, name, actuator, terms)

    def _tendon(self, name: str, relation: Mapping[str, float]) -> tuple[str, float]:
        """A tendon over joints and the factor to it, one with armature if it is ± the same."""
        for terms, existing in self.draft.tendons:
            for sign in (1.0, -1.0):
                if terms.keys() == relation.keys() and all(
                    math.isclose(sign * terms[joint], k, rel_tol=SAME)
                    for joint, k in relation.items()
                ):
                    return existing, sign
        return fixed_tendon(self.draft, name, list(relation.items())).get("name", ""), 1.0

    def _motor(
        self, element: etree._Element, name: str, actuator: Actuator, terms: Mapping[str, float]
    ) -> None:
        """Write a motor: its effort as control range, its other numbers as ``<custom>`` text."""
        first, ratio = next(iter(terms.items()))
        motor = actuator.motor
        if motor is None and (motor := self.moved_as[first].motor) is not None:
            rotors = {rotor_name(actuator.name), rotor_name(first)}
            couplings = {coupling.name for coupling in self.description.couplings}
            if not rotors & (self.moved_as.keys() | couplings):  # the joint has the motor's numbers
                motor = carried(motor, 1.0 / ratio)
        low, high = (-math.inf, math.inf) if motor is None else (motor.least_effort, motor.effort)
        if len(terms) == 1 and low == -high == -math.inf:
            limits = self.moved_as[first].limits
            low, high = sorted(x / ratio for x in (limits.least_effort, limits.effort))
        bare = replace(motor or Motor(), effort=math.inf, effort_lower=None)
        span = max(low, bare.at_rest[0]), min(high, bare.at_rest[1])
        if _ranges(*span):
            element.set("ctrlrange", numbers(span))
            element.set("forcerange", numbers(span))
            if motor and span == (low, high) != bare.at_rest:  # else it is what the numbers say
                motor = bare
        elif high <= 0.0 > low:
            self.draft.lost.append(f"a force of the actuator '{actuator.name}' that only pulls")
        if motor is not None and MOTOR.of(motor := without_zeros(motor)):
            note_motor(self.draft, ACTUATOR_MOTOR + name, motor)


def _ranges(low: float, high: float) -> bool:
    """True if these forces are a range that MuJoCo takes: bounded both ways."""
    return -NO_LIMIT < low <= 0.0 <= high < NO_LIMIT and low < high


def note_motor(draft: MjcfDraft, key: str, motor: Motor) -> None:
    """Write a ``<custom>`` text with numbers of a motor that MJCF has no attributes for."""
    data = " ".join(f"{each.name}={number(x)}" for each, x in MOTOR.of(motor).items())
    draft.add("custom", "text", name=key, data=data)


def fixed_tendon(draft: MjcfDraft, name: str, relation: _Relation) -> etree._Element:
    """Append a tendon over joints."""
    tendon = draft.add("tendon", "fixed", name=draft.unused("tendon", name))
    for joint, coefficient in relation:
        add(tendon, "joint", joint=joint, coef=number(coefficient))
    return tendon


def keep(draft: MjcfDraft, name: str, tendon: etree._Element, constant: float) -> None:
    """Keep the length of a tendon at its length at ``ref`` plus ``constant``."""
    equality, line = draft.unused("equality", name), numbers((constant, 0, 0, 0, 0))
    tendon1 = tendon.get("name", "")
    draft.add("equality", "tendon", name=equality, tendon1=tendon1, polycoef=line)


def couple(draft: MjcfDraft, name: str, relation: _Relation, offset: float) -> None:
    """Tie joints by Σ coefficient · q = offset; MuJoCo counts positions from ``ref``.

    MuJoCo makes an equality of joints as soft as the sum of their inverse inertias says, whatever
    the ratio; where that is small, as of a rack by its pinion, only a tendon is held.
    """
    (first, k), *others = relation
    if len(others) > 1 or any(abs(c) < _SLIGHT * abs(k) for _, c in others):
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


def _polycoef(coupling: PolynomialCoupling, refs: Mapping[str, float]) -> str:
    """The polynomial in differences of both positions, or lengths, from those at ``ref``."""
    powers = Polynomial(coupling.coefficients).trim()
    powers = powers(Polynomial([refs[coupling.of], 1.0])) - refs[coupling.joint]
    return numbers([*powers.coef.tolist(), *[0.0] * _DEGREE][: _DEGREE + 1])


def _along(end: Anchor, axis: Vec3) -> Anchor:
    """The point that stands for an axis, at a fixed distance along it."""
    return replace(end, origin=along(end.origin, axis, _ARM))


_MOST_FREEDOMS = 6  # of a body: MuJoCo's own limit


def to_mjcf(description: Description) -> tuple[str, list[str]]:
    """The text of an MJCF file, and messages on what the file leaves out.

    Lengths are in metres and angles in radians. docs/mjcf.md lists how each element is written, and
    which names MJCF cannot keep.
    """
    draft = _drafted(description)
    if draft.untied:
        draft = _drafted(unmarked(description, draft.untied))
    return draft.text(), draft.lost


def _drafted(description: Description) -> MjcfDraft:
    armature = {joint.name: joint.armature for joint in description.joints}
    description, rotors, curves = without_tendon_rotors(description)
    description = with_sliders(physical_inertias(description))
    tree = _BodyWriter(description)
    tree.write()
    written, lengths = dict[str, str](), dict[str, float]()
    for coupling in rotors:
        if COUPLING.of(coupling):
            tree.draft.lost.append(f"the losses of the coupling '{coupling.name}'")
        (rotor, _), *terms = coupling.terms
        name, relation = rotor.removesuffix(rotor_name("")), {joint: -k for joint, k in terms}
        tendon = fixed_tendon(tree.draft, name, list(relation.items()))
        written[rotor] = tendon.get("name", "")
        lengths[rotor] = math.fsum(k * tree.draft.refs[joint] for joint, k in relation.items())
        if armature[rotor]:
            tendon.set("armature", number(armature[rotor]))
            tree.draft.tendons.append((relation, written[rotor]))
    for curve in curves:
        name = tree.draft.unused("equality", curve.name)
        tree.draft.add("equality", "tendon", name=name, tendon1=written[curve.joint],
                       tendon2=written[curve.of], polycoef=_polycoef(curve, lengths))  # fmt: skip
    MjcfTies(description, tree.draft).write()
    return tree.draft


@dataclass(frozen=True, slots=True)
class _Piece:
    """One of MuJoCo's joints, in the frame of the joint's child.

    ``ref`` is its position where the child is placed. ``leads``: it has the joint's own name,
    position and limits.
    """

    name: str
    kind: str
    joint: Joint
    axis: Vec3 | None = None
    ref: float = 0.0
    leads: bool = True


@dataclass
class _BodyWriter:
    """The bodies and joints of a description, and the document that they are written in."""

    description: Description

    def __post_init__(self) -> None:
        description = self.description
        self.draft = MjcfDraft(description.name)
        self.draft.option.set("gravity", numbers(description.gravity or GRAVITY))
        self.draft.names["body"].used.add(WORLD)
        self.draft.names["joint"].used.update(joint.name for joint in description.joints)
        self.shapes = Shapes(self.draft)
        self.links = {link.name: link for link in description.links}
        self.moved_by = {joint.child: joint for joint in description.joints}
        self.initial = initial_positions(description.joints)
        self.carriers = carriers(description)
        loops = description.loops
        self.tied = {end.link for loop in loops for end in (loop.predecessor, loop.successor)}
        for spring in description.springs:
            if not isinstance(spring, JointSpring):
                self.tied |= {spring.predecessor.link, spring.successor.link}
        self.children: dict[str, list[Joint]] = defaultdict(list)
        for joint in description.joints:
            self.children[joint.parent].append(joint)

    def write(self) -> None:
        """Write bodies of all links but the world and massless links within a row of joints."""
        world = self.draft.sections["worldbody"]
        root = next(link for link in self.description.links if link.name not in self.moved_by)
        if root.name == WORLD:
            self.draft.bodies[WORLD] = world
            self.shapes.write(root, world, moves=False)
            if root.inertial is not None:
                self.draft.lost.append("the inertia of the link 'world': MuJoCo's world has none")
        else:
            self.draft.bodies[root.name] = self._body(world, root, AT_ORIGIN, [], moves=False)
        fixed = {root.name: AT_ORIGIN}  # poses of links that do not move
        moving: set[str] = set()
        stack = list(reversed(self.children[root.name]))
        while stack:
            row = self._row(stack.pop())
            if self._is_site(row[-1]):
                site = self.draft.unused("site", row[-1].child)
                words = pose_words(self._placed(row))
                add(self.draft.bodies[row[0].parent], "site", name=site, **words)
                continue
            first, last = row[0], self.links[row[-1].child]
            parent, pose = self.draft.bodies[first.parent], self._placed(row)
            stands = fixed.get(first.parent)
            if first.type == "floating" and len(row) == 1 and stands is not None:
                pieces, parent = [_Piece(first.name, "free", first)], world
                pose = compose(stands, pose)
            else:
                pieces = [piece for joint in row for piece in self._pieces(joint)]
            if pieces or first.parent in moving:
                moving.add(last.name)
            elif stands is not None:
                fixed[last.name] = compose(stands, pose)
            below = self._body(parent, last, pose, pieces, moves=last.name in moving)
            self._write_pieces(below, row, pieces)
            self.draft.bodies[last.name] = below
            stack.extend(reversed(self.children[last.name]))

    def _placed(self, row: Sequence[Joint]) -> Pose:
        """The last child's frame in the first parent's; joints at their initial positions."""
        return reduce(compose, (standing(joint, self.initial) for joint in row), AT_ORIGIN)

    def _row(self, joint: Joint) -> list[Joint]:
        """The joint, and those that follow it across links that need no body of their own."""
        row = [joint]
        while self._passes(row[-1]):
            following = self.children[row[-1].child][0]
            balls = any(joint.type in ("spherical", "floating") for joint in row)
            freedoms = sum(
                2 if joint.type == "screw" else FREEDOMS[joint.type] for joint in (*row, following)
            )
            if freedoms > _MOST_FREEDOMS or (balls and following.type != "prismatic"):
                break  # MuJoCo's limit for one body, and it allows no rotation after a ball joint
            row.append(following)
        for n, each in enumerate(row):
            if (
                each.type in ("spherical", "floating")
                and self._placed(row[n + 1 :]).rotation != IDENTITY
            ):
                return row[: n + 1]  # its quaternion is not that of the body at the row's end
        return row

    def _is_site(self, joint: Joint) -> bool:
        """True if a joint leads to a frame: a fixed massless link without shapes and children."""
        link = self.links[joint.child]
        return (
            joint.type == "fixed"
            and link.inertial is None
            and not link.shapes
            and link.name not in self.tied
            and not self.children[joint.child]
        )

    def _passes(self, joint: Joint) -> bool:
        """True if a joint leads to a massless link that only carries the next joint."""
        link, below = self.links[joint.child], self.children[joint.child]
        return (
            joint.type != "fixed"
            and link.inertial is None
            and not link.shapes
            and link.name not in self.tied
            and len(below) == 1
            and below[0].type not in ("fixed", "floating")
        )

    def _pieces(self, joint: Joint) -> list[_Piece]:
        """MuJoCo's joints that compose one joint, in the order in which they act."""
        initial = joint.initial or 0.0

        def slide(suffix: str, axis: Vec3, ref: float = 0.0) -> _Piece:
            name = self.draft.unused("joint", f"{joint.name}.{suffix}")
            return _Piece(name, "slide", joint, axis, ref, leads=False)

        match joint.type:
            case "revolute" | "continuous":
                return [_Piece(joint.name, "hinge", joint, joint.axis, initial)]
            case "prismatic":
                return [_Piece(joint.name, "slide", joint, joint.axis, initial)]
            case "spherical":
                return [_Piece(joint.name, "ball", joint)]
            case "screw":
                hinge = _Piece(joint.name, "hinge", joint, joint.axis, initial)
                return [slide("advance", joint.axis, joint.pitch * initial), hinge]
            case "planar":
                k, images = align(unit(joint.axis))
                axes = transpose(images)
                x, y = axes[(k + 1) % 3], axes[(k + 2) % 3]
                hinge = _Piece(joint.name, "hinge", joint, axes[k])
                return [slide("x", x), slide("y", y), hinge]
            case "floating":
                slides = [slide(each, axis) for each, axis in zip("xyz", IDENTITY, strict=True)]
                return [*slides, _Piece(joint.name, "ball", joint)]
            case "fixed":
                return []
        raise unwritable(joint, "MJCF")

    def _write_pieces(
        self, body: etree._Element, row: Sequence[Joint], pieces: Sequence[_Piece]
    ) -> None:
        """Write the joints of a body, in the frame of the row's last child at its initial place."""
        after = {joint.name: self._placed(row[n + 1 :]) for n, joint in enumerate(row)}
        for piece in pieces:
            joint, back = piece.joint, transpose(after[piece.joint.name].rotation)
            self.draft.refs[piece.name] = piece.ref
            if piece.kind == "free" and not (joint.damping or joint.friction):
                add(body, "freejoint", name=piece.name)
            else:
                element = add(body, "joint", name=piece.name, type=piece.kind)
                if piece.kind in ("hinge", "ball"):
                    x, y, z = apply(back, after[joint.name].xyz)
                    if (x, y, z) != (0.0, 0.0, 0.0):
                        element.set("pos", numbers((-x, -y, -z)))
                if piece.axis is not None:
                    element.set("axis", numbers(apply(back, piece.axis)))
                if piece.ref:
                    element.set("ref", number(piece.ref))
                if piece.leads:
                    write_mjcf(element, DYNAMICS, evened(joint))
                    self.draft.lost += lost_law(joint)
                    if joint.deadband and joint.stiffness:
                        self.draft.lost.append(f"the play of the joint '{joint.name}'")
                    write_mjcf(element, ARMATURE, joint)
                    self._limits(element, joint, piece.kind)
                elif joint.type in ("planar", "floating"):
                    write_mjcf(element, DYNAMICS, joint, ("damping", "friction"))
            self._independent(piece)
            if piece.leads and math.isfinite(joint.limits.velocity):
                limit = number(joint.limits.velocity)
                self._custom("numeric", VELOCITY_LIMIT + joint.name, limit)
            if piece.leads and joint.limits.velocity_lower is not None:
                self.draft.lost.append(f"velocity_lower of the joint '{joint.name}'")
            if piece.leads and joint.motor is not None and MOTOR.of(joint.motor):
                note_motor(self.draft, JOINT_MOTOR + self._driven_at(joint), joint.motor)
        for joint in row:
            if joint.type == "screw":
                slide, hinge = (piece for piece in pieces if piece.joint is joint)
                couple(self.draft, joint.name, ((slide.name, 1.0), (hinge.name, -joint.pitch)), 0.0)

    def _driven_at(self, joint: Joint) -> str:
        """The joint on which its motor acts: the joint of its rotor if that is a link."""
        rotor = rotor_name(joint.name)
        if all(each.name != rotor for each in self.description.joints):
            for coupling in self.description.couplings:
                if isinstance(coupling, LinkCoupling) and coupling.name == rotor:
                    return self.moved_by[coupling.successor].name
        return joint.name

    def _limits(self, element: etree._Element, joint: Joint, kind: str) -> None:
        lower, upper, effort = joint.limits.lower, joint.limits.upper, joint.limits.effort
        if kind == "ball":
            lower = 0.0
        bounded = math.isfinite(upper) or (math.isfinite(lower) and kind != "ball")
        if bounded and joint.type not in ("continuous", "planar", "floating"):
            if lower < upper:
                ends = (max(lower, -NO_LIMIT), min(upper, NO_LIMIT))
                element.set("range", numbers(ends))
            else:
                self.draft.lost.append(
                    f"the limits of the joint '{joint.name}', which leave no room between them"
                )
        weakest = joint.limits.least_effort
        # MuJoCo would clamp there what actuators of other joints give this one through tendons
        clamped = joint.name not in self._pulled
        uneven, whole = joint.limits.effort_lower is not None, joint.type in ONE_DOF
        if clamped and _ranges(weakest, effort) and whole:
            element.set("actuatorfrcrange", numbers((weakest, effort)))
            return
        both = whole and uneven and math.isfinite(weakest)
        if math.isfinite(effort):
            data = numbers((effort, weakest)) if both else number(effort)
            self._custom("numeric", EFFORT_LIMIT + joint.name, data)
        if uneven and not (both and math.isfinite(effort)):
            self.draft.lost.append(f"effort_lower of the joint '{joint.name}'")

    @cached_property
    def _pulled(self) -> frozenset[str]:
        """The joints on which actuators of several joints act."""
        parts = self.description.transmissions
        terms = [x for each in parts for _, x in actuator_terms(each)]
        several = [[joint for joint, k in each if k] for each in terms]
        return frozenset(joint for each in several if len(each) > 1 for joint in each)

    def _independent(self, piece: _Piece) -> None:
        """Keep the flags ``independent``; only all or none if several joints stand for one."""
        joint, marks = piece.joint, piece.joint.independent
        several = joint.type in ("planar", "floating") and piece.kind != "free"
        if marks is None or not (piece.leads or several):
            return
        if isinstance(marks, tuple) and several:
            if len(set(marks)) > 1:
                if piece.leads:
                    self.draft.lost.append(
                        f"which freedoms of the {joint.type} joint '{joint.name}' are independent"
                    )
                return
            marks = marks[0]
        self._custom("text", INDEPENDENT + piece.name, independent_text(marks))

    def _custom(self, tag: str, name: str, data: str) -> None:
        self.draft.add("custom", tag, name=name, data=data)

    # ---- bodies

    def _body(
        self,
        parent: etree._Element,
        link: Link,
        pose: Pose,
        pieces: Sequence[_Piece],
        *,
        moves: bool,
    ) -> etree._Element:
        name = self.draft.unused("body", link.name)
        if name != link.name:
            self.draft.lost.append(
                f"the name '{link.name}' of a link, which is MuJoCo's own; it is '{name}'"
            )
        body = add(parent, "body", name=name, **pose_words(pose))
        self._inertial(body, link, needed=bool(pieces) and link.name not in self.carriers)
        self.shapes.write(link, body, moves=moves)
        return body

    def _inertial(self, body: etree._Element, link: Link, *, needed: bool) -> None:
        """Write the inertia of a link; if ``needed``, made positive as MuJoCo requires."""
        inertial = link.inertial
        if inertial is None:
            if needed:
                least = number(NEARLY_NOTHING)
                self.draft.lost.append(
                    f"that the link '{link.name}' moves without a mass ({least} kg stand for it, "
                    "and constraints of what is so light hardly hold in MuJoCo: give it some grams)"
                )
                thrice = " ".join([least] * 3)
                add(body, "inertial", pos="0 0 0", mass=least, diaginertia=thrice)
            return
        mass = max(inertial.mass, NEARLY_NOTHING)
        element = add(body, "inertial", pos=numbers(inertial.origin.xyz), mass=number(mass))
        moments, axes = principal(inertial)
        real = of_a_body(moments, moves=needed)
        if any(abs(a - b) > NOTHING * moments[2] for a, b in zip(real, moments, strict=True)):
            message = (
                f"the principal moments of inertia {', '.join(f'{m:.3g}' for m in moments)} of the "
                f"link '{link.name}', which MuJoCo takes only where all are positive and none is "
                f"larger than the others' sum ({', '.join(f'{m:.3g}' for m in real)} stand for "
                "them)"
            )
            if inertial.mass > NEARLY_NOTHING:
                self.draft.lost.append(message)
            else:  # a rotor, which what carries it cannot lend moments across its axis
                warn_at(f"not written: {message}", link.source, strict=False)
        xx, xy, xz, yy, yz, zz = inertial.inertia
        rotation = inertial.origin.rotation
        if real == moments and not (xy or xz or yz):
            real = (xx, yy, zz)
        else:  # not fullinertia, of which older versions lose digits
            rotation = matmul(rotation, rows3(axes.tolist()))
        if _taken_for_the_body(inertial.origin.xyz, rotation):  # the same axes in another order
            rotation = matmul(rotation, _NEXT_AXES)
            real = (real[1], real[2], real[0])
        for name, value in turn_words(rotation).items():
            element.set(name, value)
        element.set("diaginertia", numbers(real))


_NEXT_AXES = ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))


def _taken_for_the_body(xyz: Vec3, rotation: Rows3) -> bool:
    """True if MuJoCo takes a frame of inertia for that of its body, and loses the difference.

    It does so where quaternions are equal to a millionth, and lengths [m] if these are.
    """
    turn = max(abs(x - y) for one, other in zip(rotation, IDENTITY, strict=True)
               for x, y in zip(one, other, strict=True))  # fmt: skip
    return turn <= 3.0 * WRITTEN and (turn > 0.0 or 0.0 < max(map(abs, xyz)) <= WRITTEN)
