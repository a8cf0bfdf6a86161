"""Comparison of all quantities of corresponding elements, and their effect on torques."""

from __future__ import annotations

import itertools
import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from robomodel.arrays import Array
from robomodel.description import (
    FREEDOMS,
    ONE_DOF,
    CouplingElement,
    Description,
    Inertial,
    JointCoupling,
    PolynomialCoupling,
    Pose,
)
from robomodel.description import Joint as JointElement
from robomodel.description import Link as LinkElement
from robomodel.description import Loop as LoopElement
from robomodel.description.poses import compose, vec
from robomodel.dynamics import rnea
from robomodel.errors import DescriptionError, few
from robomodel.loading import load
from robomodel.mechanism.graph import WORLD, spanning_tree
from robomodel.model import Model, build
from robomodel.reports.comparison.differences import Causes, Comparison, Difference, Value
from robomodel.reports.comparison.match import (
    Match,
    PlacedJoint,
    RobotAtZero,
    beside_axis,
    direction,
    inverse,
    kind_of,
    matrix_of,
    moved_point,
    pose_of,
)
from robomodel.tolerances import NOTHING, SAME
from robomodel.vocabulary.inertias import physical_inertias

LOOP_AXES = ("revolute", "prismatic", "planar", "universal")
TOLERANCE = 1e-6
COMPARED_STATES = 8  # random states at which torques are compared

JOINT_NUMBERS = (
    "lower", "upper", "velocity_limit", "effort_limit", "velocity_lower", "effort_lower",
    "damping", "friction", "armature", "stiffness", "reference", "deadband",
)  # fmt: skip
"""Attributes of :class:`~robomodel.model.elements.Joint` that are compared."""

ACTS_AS = {name: name for name in ("damping", "armature", "stiffness", "reference", "deadband")} | {
    "friction": "damping"
}
"""The attributes that take part in torques, with the one as which their change is computed."""

LOWER = {"velocity_lower": "least_velocity", "effort_lower": "least_effort"}
"""Limits that differ both ways, with what holds them where a file gives them for one way."""

UNSUPPORTED = {"mjcf": {"velocity_limit", "velocity_lower"}, "sdf": {"armature"}}
"""Quantities that a format cannot express: no difference if either file is of that format."""

_InertialChange = tuple[str, str, Value, Value, Inertial]
Change = Callable[[Description], Description]


def compare(a: object, b: object, *, tolerance: float = TOLERANCE) -> Comparison:
    """The differences between two files, or models, of one robot.

    Compared are links and joints (matched by name, or by place if names differ), masses, inertias,
    axes, origins, limits, dampings, armatures, couplings, loops, mobility and actuators. Quantities
    that a format cannot express (velocity limits in MJCF, armature in SDF), names of fixed joints
    and a link ``world`` do not count.

    Args:
        a: A :class:`~robomodel.model.Model`, or a file that :func:`robomodel.load` reads.
        b: Another one.
        tolerance: The difference up to which quantities are equal: relative for masses, inertias,
            limits and ratios; times the robot's size for positions; in rad for directions.

    Returns:
        comparison: The differences, those that change joint torques most first.

    Raises:
        DescriptionError: A file cannot be loaded.
        ValueError: ``tolerance`` is not positive.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> rm.compare(model, model).same
        True
    """
    if not tolerance > 0.0:
        raise ValueError(f"tolerance is positive, not {tolerance!r}")
    one, other = (each if isinstance(each, Model) else load(each) for each in (a, b))
    return compare_robots(RobotAtZero.of(one), RobotAtZero.of(other), tolerance)


def compare_robots(
    one: RobotAtZero, other: RobotAtZero, tolerance: float = TOLERANCE
) -> Comparison:
    """The differences between two robots, with the causes."""
    files = [each.description.source.file or each.model.name for each in (one, other)]
    one, other, welded = _with_welds(one, other)
    match = Match(one, other)
    renamed = [(x.name, y.name) for x, y in (*match.joints, *match.loops) if x.name != y.name]
    physical = _physical(match)
    found = [*welded, *_Differences(match, tolerance, physical).all()]
    causes = Causes(match, physical or match)
    return Comparison(
        files[0], files[1], tuple(map(causes.of, found)), tuple(renamed), tolerance,
        tuple(match.renamed_links),
    )  # fmt: skip


def _with_welds(
    one: RobotAtZero, other: RobotAtZero
) -> tuple[RobotAtZero, RobotAtZero, list[Difference]]:
    """The robots with joints fixed that the other one has not, and these as differences.

    A joint whose two links are one body of the other robot is missing there; what its bodies weigh,
    and what hangs on them, is then no other difference.
    """
    match, sides, differences = Match(one, other), [one, other], list[Difference]()
    for n, (side, beside) in enumerate(((one, other), (other, one))):
        matched = {pair[n].name for pair in (*match.joints, *match.loops)}
        places, fixed = beside.tree.places, list[JointElement]()
        for joint in side.model.description.joints:
            ends = [places.get(link) for link in (joint.parent, joint.child)]
            welds = None not in ends and len({place.body for place in ends if place}) == 1
            moves = joint.type in FREEDOMS and FREEDOMS[joint.type] and joint.type != "floating"
            if moves and welds and joint.name not in matched:
                fixed.append(joint)
        if not fixed or (welded := _welded(side, {joint.name for joint in fixed})) is None:
            continue
        sides[n] = welded
        named = {each.name for each in beside.model.description.joints if each.type == "fixed"}
        for joint in fixed:
            welds = joint.name in named
            quantity = "type" if welds else "missing"
            here, there = (kind_of(joint.type), "fixed") if welds else ("present", None)
            a, b = (here, there) if n == 0 else (there, here)
            differences.append(Difference(joint.name, "joint", quantity, a, b, math.inf))
    return sides[0], sides[1], differences


def _welded(side: RobotAtZero, joints: set[str]) -> RobotAtZero | None:
    """A robot with joints fixed at zero; None if it cannot be built so."""
    d = side.model.description
    welded = replace(
        d,
        joints=tuple(
            JointElement(x.name, "fixed", x.parent, x.child, x.origin, source=x.source)
            if x.name in joints
            else x
            for x in d.joints
        ),
        transmissions=tuple(
            x for x in d.transmissions if joints.isdisjoint(end.name for end in x.joints)
        ),
    )
    return _rebuilt(side, welded)


def _rebuilt(side: RobotAtZero, description: Description) -> RobotAtZero | None:
    """The robot of a changed description, on the same base; None if that cannot be built."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = build(description)
    except DescriptionError:
        return None
    return RobotAtZero(model, description if side.moves else side.description)


def _physical(match: Match) -> Match | None:
    """The robots with inertias as simulators accept them, if only one of the formats is theirs.

    Writers of such formats move moments between links where no motion can tell.
    """
    sides = match.a, match.b
    if len({side.model.description.format for side in sides}) == 1:
        return None
    physical = [_rebuilt(each, physical_inertias(each.model.description)) for each in sides]
    if physical[0] is None or physical[1] is None:
        return None
    same = all(
        old.model.joint_names == new.model.joint_names
        for old, new in zip(sides, filter(None, physical), strict=True)
    )
    return Match(physical[0], physical[1]) if same else None


def open_tree(description: Description) -> RobotAtZero | None:
    """A robot whose loops make no mechanism, with its loops open; None if that cannot be built."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return RobotAtZero(build(replace(description, loops=())), description)
    except DescriptionError:
        return None


# ---- differences ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Differences:
    """The differences of matched robots.

    ``physical``: the same with inertias as simulators accept them, if formats differ.
    """

    match: Match
    tolerance: float
    physical: Match | None = None

    def all(self) -> list[Difference]:
        """Every difference, those that change torques most first."""
        parts = (self.robot(), self.links(), self.joints(), self.couplings(), self.loops(),
                 self.actuators())  # fmt: skip
        differences = [each for part in parts for each in part]
        return sorted(differences, key=lambda each: -each.torque)

    @cached_property
    def torques(self) -> _Torques:
        return _Torques(self.match.a.model)

    @cached_property
    def formats_differ(self) -> bool:
        return self.match.a.model.description.format != self.match.b.model.description.format

    @cached_property
    def unsupported(self) -> set[str]:
        """The quantities that one of the formats cannot express."""
        files = (self.match.a.model.description, self.match.b.model.description)
        return {name for file in files for name in UNSUPPORTED.get(file.format, ())}

    def differ(self, a: float, b: float, scale: float = 0.0) -> bool:
        """True if two numbers differ, relative to themselves or to ``scale``."""
        if a == b or not math.isfinite(a - b):
            return a != b
        return not abs(a - b) <= self.tolerance * max(abs(a), abs(b), scale)

    def robot(self) -> Iterator[Difference]:
        a, b = self.match.a, self.match.b
        one, other = a.model, b.model
        based = [("fixed", "floating")[side.base != WORLD] for side in (a, b)]
        if based[0] != based[1]:
            yield Difference("robot", "robot", "base", based[0], based[1], math.inf)
        freedoms = [side.model.nv - 6 * (side.base != WORLD) for side in (a, b)]
        more = [
            sum(FREEDOMS.get(side.tree.joints[place.child].type, 0) for place in alone)
            for side, alone in zip((a, b), self.alone, strict=True)
        ]
        explained = freedoms[0] - freedoms[1] == more[0] - more[1]  # by joints that are missing
        if freedoms[0] != freedoms[1] and b.moves and not explained:
            yield Difference(
                "robot", "robot", "mobility", float(freedoms[0]), float(freedoms[1]), math.inf
            )
        if any(self.differ(x, y, 1.0) for x, y in zip(one.gravity, other.gravity, strict=True)):
            effect = self.torques.of(lambda d: replace(d, gravity=other.gravity))
            yield Difference("robot", "robot", "gravity", one.gravity, other.gravity, effect)

    def links(self) -> Iterator[Difference]:
        a, b, bodies = self.match.a, self.match.b, self.match.bodies
        yield from _missing("link", *(
            {side.label(body): math.inf for body in range(len(side.model.bodies))
             if body not in matched and not _carried(other, side.model.bodies[body].name)}
            for side, other, matched in ((a, b, bodies.keys()), (b, a, bodies.values()))
        ))  # fmt: skip
        renamed = {a.label(one) for one in bodies} | {b.label(other) for other in bodies.values()}
        renamed |= {name for pair in self.match.renamed_links for name in pair}
        yield from _missing("link", *(
            {link: 0.0 for link, place in side.tree.places.items()
             if link not in renamed and link not in other.tree.places and link != "world"
             and link != side.label(place.body)}
            for side, other in ((a, b), (b, a))
        ))  # fmt: skip
        changes = [change for pair in bodies.items() if WORLD not in pair
                   for change in self.inertial(pair[0])]  # fmt: skip
        whole = {name: inertial for name, quantity, _, _, inertial in changes if quantity == "all"}
        if self.formats_differ and whole:
            effect = self.torques.of(partial(_with_inertials, inertials=whole))
            if effect <= SAME:
                return  # inertials written differently for the other format, with the same dynamics
        if self.physical is not None and changes:
            left = _Differences(self.physical, self.tolerance)
            kept = {
                each[:2]
                for body in self.physical.bodies
                if body != WORLD and self.physical.bodies[body] != WORLD
                for each in left.inertial(body)
            }
            changes = [each for each in changes if each[:2] in kept]
        for name, quantity, x, y, inertial in changes:
            if quantity != "all":
                change = partial(_with_inertials, inertials={name: inertial})
                yield Difference(name, "link", quantity, x, y, self.torques.of(change))

    def inertial(self, body: int) -> Iterator[_InertialChange]:
        """The differences of a body's inertial, and all of it, in the axes of the link of ``a``."""
        a = self.match.a
        one = a.model.bodies[body]
        mass, centre, inertia = self.match.in_axes_of_a(body)
        com = vec(_tuple(centre))
        moments = [_moments(np.array(one.inertia)), _moments(inertia)]
        size = max(sum(m[k] for k in (0, 3, 5)) for m in moments)
        size = max(size, NOTHING * a.model.mass * self.match.size**2)
        values: dict[str, tuple[Value, Value]] = {}
        if self.differ(one.mass, mass):
            values["mass"] = one.mass, mass
        if (one.mass or mass) and math.dist(one.com, com) > self.tolerance * self.match.size:
            values["com"] = one.com, com
        if any(abs(x - y) > self.tolerance * size for x, y in zip(*moments, strict=True)):
            values["inertia"] = moments[0], moments[1]
        if values:
            values["all"] = None, None
        for quantity, (x, y) in values.items():
            everything = quantity == "all"
            inertial = Inertial(
                mass if everything or quantity == "mass" else one.mass,
                moments[everything or quantity == "inertia"],
                Pose(com if everything or quantity == "com" else one.com),
            )
            yield one.name, quantity, x, y, inertial

    @cached_property
    def alone(self) -> list[list[PlacedJoint]]:
        """The joints of either robot that the other one has not."""
        match, matched = self.match, [*self.match.joints, *self.match.loops]
        return [
            [place for place in side.joints if place.name not in {pair[n].name for pair in matched}]
            for n, side in enumerate((match.a, match.b))
        ]

    def joints(self) -> Iterator[Difference]:
        match, alone = self.match, self.alone
        fixed = [
            {joint.name for joint in side.model.description.joints if joint.type == "fixed"}
            for side in (match.a, match.b)
        ]
        for n in (0, 1):
            for place in alone[n]:
                if place.name in fixed[1 - n]:
                    types = (place.type, "fixed") if n == 0 else ("fixed", place.type)
                    yield Difference(place.name, "joint", "type", *types, math.inf)
        yield from _missing("joint", *(
            {place.name: math.inf for place in alone[n] if place.name not in fixed[1 - n]}
            for n in (0, 1)
        ))  # fmt: skip
        for one, other in match.joints:
            if one.type != other.type:
                yield Difference(one.name, "joint", "type", one.type, other.type, math.inf)
            elif match.bodies.get(one.parent) != other.parent:
                names = (match.a.label(one.parent), match.b.label(other.parent))
                yield Difference(one.name, "joint", "parent", names[0], names[1], math.inf)
            else:
                yield from self._place(one, other)
            yield from self._numbers(one, other)

    def _place(self, one: PlacedJoint, other: PlacedJoint) -> Iterator[Difference]:
        """Origin, orientation, zero and axis of a joint, in the axes of links of ``a``."""
        match, element = self.match, self.match.a.tree.joints[one.child]
        parent, child = match.shift[one.parent], match.shift[one.child]
        above, below = match.a.poses[one.parent], match.a.poses[one.child]
        moved = inverse(parent) @ child  # the child's shift relative to its parent's
        axis = direction(inverse(child), other.axis)
        point = moved_point(inverse(child), other.point)
        from scipy.spatial.transform import Rotation

        turn = Rotation.from_matrix(moved[:3, :3]).as_rotvec()
        gap = moved_point(moved, one.point) - one.point

        def placed(d: Description) -> Description:
            pose = pose_of(inverse(above) @ moved @ below)
            joint = next(each for each in d.joints if each.name == one.name)
            link_pose = match.a.tree.places[joint.parent].pose
            origin = pose_of(inverse(matrix_of(link_pose)) @ matrix_of(pose))
            return _with_joint(d, one.name, origin=origin)

        zero = 0.0
        if one.type in ONE_DOF:
            slides = one.type == "prismatic"
            zero = float(one.axis @ (gap if slides else turn))
            if slides:
                gap = gap - zero * one.axis
            else:
                turn = turn - zero * one.axis
        if one.type == "floating":
            return
        if float(np.linalg.norm(gap)) > self.tolerance * match.size:
            where = [moved_point(inverse(above), at) for at in (one.point, one.point + gap)]
            yield Difference(one.name, "joint", "origin", _tuple(where[0]), _tuple(where[1]),
                             self.torques.of(placed))  # fmt: skip
        if float(np.linalg.norm(turn)) > self.tolerance:
            tilt = _tuple(above[:3, :3].T @ turn)
            yield Difference(one.name, "joint", "orientation", (0.0, 0.0, 0.0), tilt,
                             self.torques.of(placed))  # fmt: skip
        if abs(zero) > self.tolerance * (match.size if one.type == "prismatic" else 1.0):
            yield Difference(one.name, "joint", "zero", 0.0, zero, self.torques.of(placed))
        if one.type not in (*ONE_DOF, "planar"):
            return
        beside = beside_axis(one.type, one.axis, point - one.point)
        if float(np.linalg.norm(beside)) > self.tolerance * match.size:
            where = [moved_point(inverse(below), at) for at in (one.point, one.point + beside)]
            effect = self.torques.of(lambda d: _with_axis_at(d, one.name, where[1]))
            yield Difference(
                one.name, "joint", "axis_point", _tuple(where[0]), _tuple(where[1]), effect
            )
        if float(np.linalg.norm(axis - one.axis)) > self.tolerance:
            axes = [_tuple(below[:3, :3].T @ each) for each in (one.axis, axis)]
            effect = self.torques.of(lambda d: _with_joint(d, one.name, axis=axes[1]))
            yield Difference(one.name, "joint", "axis", axes[0], axes[1], effect)
        if self.differ(element.pitch, match.b.tree.joints[other.child].pitch):
            pitch = match.b.tree.joints[other.child].pitch
            effect = self.torques.of(lambda d: _with_joint(d, one.name, pitch=pitch))
            yield Difference(one.name, "joint", "pitch", element.pitch, pitch, effect)

    def _numbers(self, one: PlacedJoint, other: PlacedJoint) -> Iterator[Difference]:
        """Limits, damping, friction, armature and spring of a joint."""
        a = self.match.a.model.joints[one.child]
        b = self.match.b.model.joints[other.child]
        for name in JOINT_NUMBERS:
            x, y = (getattr(each, LOWER.get(name, name)) for each in (a, b))
            unused = name in ("reference", "deadband") and not (a.stiffness and b.stiffness)
            unused = unused or (name in LOWER and getattr(a, name) is getattr(b, name) is None)
            scale = 1.0 if name in ("lower", "upper", "reference") else 0.0
            if name in self.unsupported or unused or not self.differ(x, y, scale):
                continue
            effect = 0.0
            if name in ACTS_AS:  # dry friction is compared as damping at 1 rad/s or m/s
                change = {ACTS_AS[name]: y - x + getattr(a, ACTS_AS[name])}
                effect = self.torques.of(partial(_with_joint, name=a.name, **change))
            yield Difference(a.name, "joint", name, x, y, effect)

    def couplings(self) -> Iterator[Difference]:
        """The ratios by which joints follow others, from any kind of relation."""
        names = {other.name: one.name for one, other in self.match.joints}
        a, b = self.match.a.model, self.match.b.model
        extra = [name for name in b.joint_names if name not in names]
        order = [joint.name for joint in sorted(a.joints, key=lambda joint: joint.independent)]
        single = {joint.name for joint, _ in self.match.joints}
        order = [f"b: {name}" for name in extra] + sorted(order, key=single.__contains__)
        ratios = [
            _follows(a, order, {name: name for name in a.joint_names}),
            _follows(b, order, names | {name: f"b: {name}" for name in extra}),
        ]
        for joint in dict.fromkeys([*ratios[0], *ratios[1]]):
            if joint not in single:  # missing in the other file
                continue
            one, other = (each.get(joint) for each in ratios)
            if one is None or other is None:
                of = [
                    None if each is None else few([n for n in each if n]) for each in (one, other)
                ]
                yield Difference(joint, "joint", "follows", of[0], of[1], math.inf)
                continue
            for name in dict.fromkeys([*one, *other]):
                x, y = one.get(name, 0.0), other.get(name, 0.0)
                if self.differ(x, y, 0.0 if name else 1.0):
                    changed = ratios[0] | {joint: one | {name: y}}
                    effect = self.torques.of(partial(_with_ratios, ratios=changed))
                    quantity = f"ratio to {name}" if name else "offset"
                    yield Difference(joint, "joint", quantity, x, y, effect)
        yield from self._polynomials(names)

    def _polynomials(self, names: Mapping[str, str]) -> Iterator[Difference]:
        """The coefficients of joints that are polynomials of others; ``names`` of b's joints."""
        in_a, in_b = (
            {
                tuple(renamed.get(name, name) for name, _ in each.terms): each.coefficients
                for each in side.model.couplings
                if each.coefficients
            }
            for side, renamed in ((self.match.a, {}), (self.match.b, names))
        )
        for joint, of in dict.fromkeys([*in_a, *in_b]):
            one, other = in_a.get((joint, of)), in_b.get((joint, of))
            if one is None or other is None:
                a, b = (each and f"a polynomial of {of}" for each in (one, other))
                yield Difference(joint, "joint", "follows", a, b, math.inf)
                continue
            for n, (x, y) in enumerate(itertools.zip_longest(one, other, fillvalue=0.0)):
                if self.differ(x, y, 0.0 if n else 1.0):
                    effect = self.torques.of(
                        partial(_with_polynomial, joint=joint, of=of, power=n, value=y)
                    )
                    yield Difference(joint, "joint", f"power {n} of {of}", x, y, effect)

    def loops(self) -> Iterator[Difference]:
        match = self.match
        yield from _missing("loop", *(
            {place.name: math.inf for place in side.loops
             if place.name not in {pair[n].name for pair in match.loops}}
            for n, side in enumerate((match.a, match.b))
        ))  # fmt: skip
        elements = [{loop.name: loop for loop in side.description.loops}
                    for side in (match.a, match.b)]  # fmt: skip
        for one, other in match.loops:
            if one.type != other.type:
                yield Difference(one.name, "loop", "type", one.type, other.type, math.inf)
            elif one.name in elements[0] and other.name in elements[1]:
                yield from self._loop(elements[0][one.name], elements[1][other.name])

    def _loop(self, one: LoopElement, other: LoopElement) -> Iterator[Difference]:
        """The ends of a loop, in the axes of the links of ``a`` that they are on."""
        match = self.match
        frames = [match.a.tree.places[end.link] for end in (one.predecessor, one.successor)]
        ends = [match.b.tree.places[end.link].body for end in (other.predecessor, other.successor)]
        bodies = [match.bodies.get(frame.body) for frame in frames]
        flipped = bodies == ends[::-1] != ends
        anchors = [other.predecessor, other.successor][:: -1 if flipped else 1]
        if bodies != ends and not flipped:
            names = [f"{a.label(x)}, {a.label(y)}" for a, (x, y) in (
                (match.a, [frame.body for frame in frames]), (match.b, ends))]  # fmt: skip
            yield Difference(one.name, "loop", "links", names[0], names[1], math.inf)
            return
        kind = kind_of(one.type)
        slide = 0.0  # along the axis; no difference if both ends slide as far
        for end, frame, anchor_b in zip(("predecessor", "successor"), frames, anchors, strict=True):
            anchor = getattr(one, end)
            link = match.a.poses[frame.body] @ matrix_of(frame.pose)
            pose = inverse(match.shift[frame.body] @ link) @ match.b.anchor(anchor_b)
            frame_a = matrix_of(anchor.origin)
            axis = [
                direction(each, axis) for each, axis in ((frame_a, one.axis), (pose, other.axis))
            ]
            if flipped or axis[0] @ axis[1] < 0.0:
                axis[1] = axis[1] * np.sign(axis[0] @ axis[1])
            offset = pose[:3, 3] - frame_a[:3, 3]
            gap = beside_axis(kind, axis[0], offset)
            if kind == "revolute":
                along, slide = float(axis[0] @ offset) - slide, float(axis[0] @ offset)
                gap = gap + along * axis[0] if end == "successor" else gap
            if float(np.linalg.norm(gap)) > self.tolerance * match.size:
                moved = frame_a.copy()
                moved[:3, 3] += gap
                moved_anchor = replace(anchor, origin=pose_of(moved))
                effect = self.torques.of(partial(_with_loop, name=one.name, **{end: moved_anchor}))
                values = (anchor.origin.xyz, _tuple(moved[:3, 3]))
                yield Difference(one.name, "loop", end, values[0], values[1], effect)
            if kind in LOOP_AXES and float(np.linalg.norm(axis[1] - axis[0])) > self.tolerance:
                yield Difference(
                    one.name, "loop", "axis", _tuple(axis[0]), _tuple(axis[1]), math.inf
                )
        lengths = [side.rod(loop) for side, loop in ((match.a, one), (match.b, other))]
        if one.type == "rod" and self.differ(lengths[0], lengths[1], match.size):
            effect = self.torques.of(lambda d: _with_loop(d, one.name, length=lengths[1]))
            yield Difference(one.name, "loop", "length", lengths[0], lengths[1], effect)

    def actuators(self) -> Iterator[Difference]:
        """Actuators of the files, matched by name or by the independent joints that they move."""
        if not any(s.model.description.transmissions for s in (self.match.a, self.match.b)):
            return  # without transmissions actuators are the joints'
        names = {other.name: one.name for one, other in self.match.joints}
        in_a, in_b = (
            {each.name: (each, _moved(each.terms, side.model, renamed))
             for each in side.model.actuators}
            for side, renamed in ((self.match.a, {}), (self.match.b, names))
        )  # fmt: skip
        same = {frozenset(terms): name for name, (_, terms) in in_b.items()}
        pairs = {name: name if name in in_b else same.get(frozenset(terms))
                 for name, (_, terms) in in_a.items()}  # fmt: skip
        yield from _missing(
            "actuator",
            {name: 0.0 for name, other in pairs.items() if other is None},
            {name: 0.0 for name in in_b if name not in pairs.values()},
        )
        for name, other in pairs.items():
            if other is None:
                continue
            (one, a), (two, b) = in_a[name], in_b[other]
            for joint in dict.fromkeys([*a, *b]):
                x, y = a.get(joint, 0.0), b.get(joint, 0.0)
                if self.differ(x, y):
                    yield Difference(name, "actuator", f"ratio to {joint}", x, y, 0.0)
            for limit in (
                "effort_limit", "velocity_limit", "effort_lower", "velocity_lower", "stall_torque",
                "no_load_speed",
            ):  # fmt: skip
                if limit in LOWER and getattr(one, limit) is getattr(two, limit) is None:
                    continue  # it is the same in both directions
                x, y = (math.inf if (value := getattr(each, LOWER.get(limit, limit))) is None
                        else value for each in (one, two))  # fmt: skip
                if limit not in self.unsupported and self.differ(x, y):
                    yield Difference(name, "actuator", limit, x, y, 0.0)


def _moved(
    terms: Sequence[tuple[str, float]], model: Model, names: Mapping[str, str]
) -> dict[str, float]:
    """An actuator's rates at unit rates of the joints that follow no other."""
    order = [joint.name for joint in sorted(model.joints, key=lambda joint: joint.independent)]
    follows = _follows(model, order, {name: name for name in order})
    result: dict[str, float] = defaultdict(float)
    for name, k in terms:
        for joint, ratio in follows.get(name, {name: 1.0}).items():
            if joint:
                result[names.get(joint, joint)] += k * ratio
    return result


def _carried(side: RobotAtZero, link: str) -> bool:
    """True if a robot has a link of this name that is fixed to another one."""
    place = side.tree.places.get(link)
    return place is not None and side.label(place.body) != link


def _missing(kind: str, a: Mapping[str, float], b: Mapping[str, float]) -> Iterator[Difference]:
    """Elements that only one file has, with their effect."""
    for name, effect in a.items():
        yield Difference(name, kind, "missing", "present", None, effect)
    for name, effect in b.items():
        yield Difference(name, kind, "missing", None, "present", effect)


def _follows(
    model: Model, order: Sequence[str], names: Mapping[str, str]
) -> dict[str, dict[str, float]]:
    """The coefficients of joints that follow others, by joint; the offset by "".

    The relations are solved for as many joints as there are relations, the first ones of ``order``.
    """
    column = {name: n for n, name in enumerate(order)}
    linear = [coupling for coupling in model.couplings if not coupling.coefficients]
    rows = np.zeros((len(linear), len(order) + 1))
    for row, coupling in zip(rows, linear, strict=True):
        for name, coefficient in coupling.terms:
            row[column[names[name]]] += coefficient
        row[-1] = coupling.offset
    result: dict[str, Array] = {}
    for n, name in enumerate(order):
        used = len(result)
        if used == len(rows):
            break
        pivot = used + int(np.argmax(np.abs(rows[used:, n])))
        if abs(rows[pivot, n]) <= NOTHING * np.abs(rows).max():
            continue
        rows[[used, pivot]] = rows[[pivot, used]]
        rows[used] /= rows[used, n]
        for other in range(len(rows)):
            if other != used:
                rows[other] -= rows[other, n] * rows[used]
        result[name] = rows[used]
    return {
        name: {order[n]: -float(row[n]) for n in np.flatnonzero(np.abs(row[:-1]) > NOTHING).tolist()
               if order[n] != name} | {"": float(row[-1])}
        for name, row in result.items()
    }  # fmt: skip


# ---- the effect of a difference on torques -------------------------------------------------------


class _Torques:
    """Joint torques of a robot at random states, and their relative change by changes of it."""

    def __init__(self, model: Model) -> None:
        rng = np.random.default_rng(0)
        self.description = model.description
        try:
            self.q = np.array(
                [
                    model.random_configuration(rng, base_pose="random")
                    for _ in range(COMPARED_STATES)
                ]
            )
        except ValueError:  # nowhere closed within the limits
            self.q = np.tile(model.neutral(), (COMPARED_STATES, 1))
        self.v, self.a = rng.normal(size=(2, COMPARED_STATES, model.nv))
        self.torques = self._torques(model)

    def _torques(self, model: Model) -> Array:
        q = model.close(self.q) if model.loops else self.q
        torques = rnea(model, q, self.v, self.a, passive=True, backend="numpy")
        return np.asarray(torques)

    def of(self, change: Change) -> float:
        """The relative change of torques; infinite for an invalid robot or another nv."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                changed = self._torques(build(change(self.description)))
        except ValueError:  # DescriptionError, ClosureError: the changed robot is another mechanism
            return math.inf
        same = changed.shape == self.torques.shape and np.all(np.isfinite(changed))
        if not same:
            return math.inf
        change, sizes = (
            np.sqrt(np.mean(x**2, axis=0)) for x in (changed - self.torques, self.torques)
        )
        return float(np.max(change / np.maximum(sizes, SAME * sizes.max()), initial=0.0))


def _with_joint(d: Description, name: str, **changes: Any) -> Description:
    joints = tuple(replace(each, **changes) if each.name == name else each for each in d.joints)
    return replace(d, joints=joints)


def _with_axis_at(d: Description, name: str, point: Array) -> Description:
    """The robot with a joint's axis moved to a point, given in its child's axes."""
    there, back = (Pose(vec((sign * point).tolist())) for sign in (1.0, -1.0))
    joint = next(each for each in d.joints if each.name == name)
    middle = f"{joint.child} of {name}"
    fixed = JointElement(f"{name} of {joint.child}", "fixed", middle, joint.child, back)
    d = _with_joint(d, name, origin=compose(joint.origin, there), child=middle)
    return replace(d, links=(*d.links, LinkElement(middle)), joints=(*d.joints, fixed))


def _with_inertials(d: Description, inertials: Mapping[str, Inertial]) -> Description:
    """The robot with these inertials of bodies, at the links that they are named after."""
    places = spanning_tree(d).places
    bodies = {places[name].body for name in inertials}
    return replace(d, links=tuple(
        replace(link, inertial=inertials.get(link.name))
        if places[link.name].body in bodies else link
        for link in d.links
    ))  # fmt: skip


def _with_ratios(d: Description, ratios: Mapping[str, Mapping[str, float]]) -> Description:
    """The robot with these ratios of joints that follow others, for all its linear couplings."""
    polynomials = [each for each in d.couplings if isinstance(each, PolynomialCoupling)]
    couplings = tuple(
        JointCoupling(f"{joint} follows", ((joint, 1.0), *((n, -k) for n, k in row.items() if n)),
                      row[""])
        for joint, row in ratios.items()
    )  # fmt: skip
    return replace(d, joints=tuple(replace(each, mimic=None) for each in d.joints),
                   couplings=(*polynomials, *couplings))  # fmt: skip


def _with_polynomial(d: Description, joint: str, of: str, power: int, value: float) -> Description:
    """The robot with another coefficient of a joint that is a polynomial of another."""

    def changed(each: CouplingElement) -> CouplingElement:
        if not isinstance(each, PolynomialCoupling) or (each.joint, each.of) != (joint, of):
            return each
        coefficients = [*each.coefficients, *[0.0] * (power + 1 - len(each.coefficients))]
        coefficients[power] = value
        return replace(each, coefficients=tuple(coefficients))

    return replace(d, couplings=tuple(map(changed, d.couplings)))


def _with_loop(d: Description, name: str, **changes: Any) -> Description:
    loops = tuple(replace(each, **changes) if each.name == name else each for each in d.loops)
    return replace(d, loops=loops)


def _moments(inertia: Array) -> tuple[float, float, float, float, float, float]:
    """Ixx, Ixy, Ixz, Iyy, Iyz, Izz."""
    xx, xy, xz, yy, yz, zz = _tuple(inertia[np.triu_indices(3)])
    return xx, xy, xz, yy, yz, zz


def _tuple(values: Array) -> tuple[float, ...]:
    return tuple((np.round(values, 15) + 0.0).tolist())
