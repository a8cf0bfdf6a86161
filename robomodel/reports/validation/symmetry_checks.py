"""Checks by symmetry: differences of a link from its mirror image or its copy.

Legs, arms and fingers come in pairs or fours: mirrored, turned or moved. If two links correspond in
place and in all numbers but one, that one is wrong on one of them.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robomodel.arrays import Array
from robomodel.description import ONE_DOF, Description, Joint, Link, Vec3
from robomodel.description.poses import link_poses
from robomodel.reports.comparison.differences import (
    Cause,
    MassProperties,
    inertia_cause,
    mass_cause,
)
from robomodel.reports.document import Finding, warning
from robomodel.reports.validation.context import CheckContext
from robomodel.reports.validation.number_checks import DUMMY
from robomodel.tolerances import SAME

PLACE = 2e-3  # of the robot's size: largest distance of corresponding places
MEASURED_EQUAL = 0.02  # relative difference of partners' numbers, which may be measured
DIFFERENT = 0.1  # relative difference above which a number of partners differs
SIGNS = 0.01  # relative: differences that signs of products explain
FAULTY_PLACE = 0.05  # of the robot's size: largest distance of one place that counts as a fault
ASPECTS = ("mass", "com", "inertia", "axis", "tips")
ALIGNED = 0.99  # cosine of the angle between axes
FEWEST = 3  # pairs of joints from which one can stand out by the sign of its axis
EXPLAINED = 0.1  # of a difference: the most that its cause may leave
MAPS = tuple(np.diag(signs) for signs in itertools.product((1.0, -1.0), repeat=3))
"""Maps of a limb to another, in the root's axes or its link's: moved, turned, mirrored."""


# ---- correspondence ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Limb:
    """A link with mass and the joint above it, at zero; directions are in the root's axes.

    ``com`` and ``tips`` (the joints and loops that it carries) are relative to its joint, at
    ``place``; ``turn`` (3, 3) is the orientation of its frame; ``inertia`` is about the centre of
    mass. ``composed``: the joint is the last of several at a place, as of a ball written as three
    hinges, whose axes a file may choose.
    """

    link: Link
    joint: Joint
    turn: Array
    place: Array
    mass: float
    com: Array
    inertia: Array
    axis: Array
    tips: Array
    composed: bool

    @property
    def name(self) -> str:
        """The name of the link."""
        return self.link.name


def limbs(context: CheckContext) -> list[list[Limb]]:
    """Groups of links with like chains of joints from the root, and like carried joints."""
    description = context.model.description
    above = {joint.child: joint for joint in description.joints}
    below = _below(description)
    poses = link_poses(description)
    tips = _tips(description)
    step = PLACE * context.size
    least = DUMMY[0] * context.mass
    light = {x.name for x in description.links if x.inertial is None or x.inertial.mass < least}
    groups: dict[tuple[object, ...], list[Limb]] = defaultdict(list)
    for link in description.links:
        if link.inertial is None or not link.inertial.mass > 0.0 or link.name not in above:
            continue
        path: list[object] = []
        name = link.name
        while (joint := above.get(name)) is not None:
            path += [joint.type, round(math.hypot(*joint.origin.xyz) / step)]
            name = joint.parent
        turn = np.array(poses[link.name].rotation)
        properties = MassProperties.of(link.inertial, turn)
        groups[(*path, below[link.name])].append(
            Limb(
                link,
                above[link.name],
                turn,
                np.array(poses[link.name].xyz),
                properties.mass,
                properties.com,
                properties.inertia,
                turn @ np.array(above[link.name].axis),
                np.array(tips[link.name] or [(0.0, 0.0, 0.0)]) @ turn.T,
                above[link.name].parent in light
                and math.hypot(*above[link.name].origin.xyz) < step,
            )
        )
    return [group for group in groups.values() if len(group) > 1]


def _tips(description: Description) -> dict[str, list[Vec3]]:
    """The points at which each link carries moving joints and loops."""
    points: dict[str, list[Vec3]] = {link.name: [] for link in description.links}
    for joint in description.joints:
        if joint.type != "fixed":
            points[joint.parent].append(joint.origin.xyz)
    for loop in description.loops:
        for end in (loop.predecessor, loop.successor):
            points[end.link].append(end.origin.xyz)
    return points


def _below(description: Description) -> dict[str, tuple[object, ...]]:
    """The types of the joints that each link carries, down to the last."""
    children: dict[str, list[Joint]] = defaultdict(list)
    for joint in description.joints:
        if joint.type != "fixed":
            children[joint.parent].append(joint)

    result: dict[str, tuple[object, ...]] = {}
    stack = [(link.name, False) for link in description.links]
    while stack:
        name, ready = stack.pop()
        if name in result:
            continue
        if ready:
            result[name] = tuple(
                sorted(((j.type, result[j.child]) for j in children[name]), key=repr)
            )
        else:
            stack.append((name, True))
            stack += [(joint.child, False) for joint in children[name]]
    return result


@dataclass(frozen=True, eq=False)
class Likeness:
    """Two limbs and a map from one to the other; relative differences of their properties.

    ``axis`` is the sine of the angle between the axes as lines. ``tips``: distance of corresponding
    places of what they carry [sizes of the robot], 0 if they coincide. ``significant``: a small
    difference of centres of mass is evidence of symmetry; ``placed``: the map takes the position of
    one limb to that of the other.
    """

    one: Limb
    other: Limb
    map: Array
    mass: float
    com: float
    inertia: float
    axis: float
    tips: float
    significant: bool
    placed: bool

    @property
    def total(self) -> float:
        """The sum of all differences, each limited to a full difference."""
        return sum(min(float(getattr(self, x)) / DIFFERENT, 1.0) for x in ASPECTS)

    def only(self, aspect: str, most: float = DIFFERENT) -> bool:
        """Whether the limbs differ in this aspect by more, and in nothing else."""
        others = set(ASPECTS) - {aspect}
        most = 0.0 if aspect == "tips" else most
        alone = all(getattr(self, x) < MEASURED_EQUAL for x in others)
        return alone and bool(getattr(self, aspect) > most)

    @property
    def differ(self) -> bool:
        """Whether the limbs are no mirror images or copies."""
        different = max(self.mass, self.com, self.inertia, self.axis) > DIFFERENT
        return self.mirrored or different or self.tips > 0.0

    @property
    def mirrored(self) -> bool:
        """Whether only signs of products of inertia differ."""
        return (
            self.only("inertia", SIGNS) and self.cause is not None and self.cause.id == "mirrored"
        )

    @cached_property
    def cause(self) -> Cause | None:
        """The fault that turns the inertia of the one into that of the other."""
        return inertia_cause(self.image, _mass_properties(self.other), EXPLAINED)

    @property
    def image(self) -> MassProperties:
        """The mass properties of ``one``, mapped."""
        return _mass_properties(self.one, self.map)


def _mass_properties(limb: Limb, by: Array | None = None) -> MassProperties:
    assert limb.link.inertial is not None
    turn = limb.turn if by is None else by @ limb.turn
    return MassProperties.of(limb.link.inertial, turn)


def likeness(one: Limb, other: Limb, by: Array, size: float) -> Likeness | None:
    """The likeness of two limbs under a map; None if they carry joints at other places."""
    tips = one.tips @ by.T
    far = np.linalg.norm(tips[:, None] - other.tips[None], axis=2)
    if len(tips) != len(other.tips):
        return None
    off = float(max(far.min(axis=0).max(), far.min(axis=1).max()))
    if off > FAULTY_PLACE * size:
        return None
    offset = max(float(np.linalg.norm(one.com)), float(np.linalg.norm(other.com)))
    com = by @ one.com - other.com
    mapped = by @ one.inertia @ by.T
    scale = max(float(np.trace(one.inertia)), float(np.trace(other.inertia)),
                SAME * max(one.mass, other.mass) * size**2)  # fmt: skip
    placed = _is_placed(one, other, by, size)
    if off > PLACE * size and len(tips) < 2 and not (placed and offset > PLACE * size):
        return None
    sine = 0.0
    if one.joint.type in ONE_DOF and not (one.composed and other.composed):
        lengths = np.linalg.norm(one.axis) * np.linalg.norm(other.axis)
        sine = float(np.linalg.norm(np.cross(by @ one.axis, other.axis)) / lengths)
    return Likeness(
        one,
        other,
        by,
        abs(one.mass - other.mass) / max(one.mass, other.mass),
        float(np.linalg.norm(com)) / max(offset, PLACE * size),
        float(np.linalg.norm(mapped - other.inertia)) / scale,
        sine,
        off / size if off > PLACE * size else 0.0,
        offset > PLACE * size or placed,
        placed,
    )


def _is_placed(one: Limb, other: Limb, by: Array, size: float) -> bool:
    """Whether the map takes the place of one limb to that of the other, two different ones."""
    apart = float(np.linalg.norm(one.place - other.place))
    return (
        apart > PLACE * size and float(np.linalg.norm(by @ one.place - other.place)) < PLACE * size
    )


# ---- differences ---------------------------------------------------------------------------------


def check_symmetry(context: CheckContext) -> Iterator[Finding]:
    """Links that differ from their mirror image or copy in mass, inertia or axis alone."""
    groups = [(group, list(_pairs(group, context.size))) for group in limbs(context)]
    votes: dict[frozenset[int], Counter[int]] = defaultdict(Counter)
    for _, candidates in groups:
        for each in candidates:
            votes[each.places].update(each.fitting)
    driven = _driven(context)
    alike: list[_LimbPair] = []
    for group, candidates in groups:
        pairs = [each.by_vote(votes[each.places]) for each in candidates]
        if 2 * len(_matched(pairs)) < len(group):
            pairs = [each.best for each in candidates]
        yield from _limits((pair.one, pair.other) for pair in pairs)
        matched = _matched(pairs)
        yield from _motions(context, zip(pairs, candidates, strict=True))
        alike += [
            each
            for each in candidates
            if not each.best.differ and each.best.one.joint.name not in driven
        ]
        reported: set[str] = set()
        for pair in pairs:
            names = {pair.one.name, pair.other.name}
            if not (names <= matched or names & reported):
                findings = [
                    finding
                    for each in (pair, _swapped(pair))
                    if each.other.name not in matched
                    for finding in _differences(each)
                ]
                reported |= (names - matched) if findings else set()
                yield from findings
    yield from _senses(alike)


@dataclass(frozen=True, eq=False)
class _LimbPair:
    """Two limbs, and their likeness under each map that takes one centre to the other.

    ``maps``: by index, those in the root's axes first.
    """

    maps: dict[int, Likeness]

    @property
    def places(self) -> frozenset[int]:
        """The maps that take the place of one limb to that of the other."""
        return frozenset(n for n, each in self.maps.items() if each.placed and n < len(MAPS))

    @property
    def fitting(self) -> list[int]:
        """The maps under which nothing differs."""
        return [n for n, each in self.maps.items() if n < len(MAPS) and not each.differ]

    def by_vote(self, votes: Counter[int]) -> Likeness:
        """The likeness under the map of most pairs that are placed as this one.

        If the limbs are alike under no map, the one that fits best.
        """
        voted = self.maps[min(self.maps, key=lambda n: (-votes[n], *self._order(n)))]
        return voted if not voted.differ or not self.best.differ else self.best

    @property
    def best(self) -> Likeness:
        """The likeness under the map with the least difference."""
        return self.maps[min(self.maps, key=lambda n: (self.maps[n].differ, *self._order(n)))]

    def _order(self, number: int) -> tuple[float, bool]:
        return round(self.maps[number].total, 3), not self.maps[number].placed


def _pairs(group: Sequence[Limb], size: float) -> Iterator[_LimbPair]:
    """Pairs of limbs of a group that have something in common."""
    for one, other in itertools.combinations(group, 2):
        maps = (*MAPS, *(other.turn @ by @ one.turn.T for by in MAPS))
        candidates = {n: likeness(one, other, by, size) for n, by in enumerate(maps)}
        mapped = {n: each for n, each in candidates.items() if each is not None}
        if any(each.significant for each in mapped.values()):
            most = max(min(each.com for each in mapped.values()), MEASURED_EQUAL)
            yield _LimbPair({n: each for n, each in mapped.items() if each.com <= most})


def _matched(pairs: Iterable[Likeness]) -> set[str]:
    """Links that are the image or copy of another."""
    return {limb.name for pair in pairs if not pair.differ for limb in (pair.one, pair.other)}


def _swapped(pair: Likeness) -> Likeness:
    """The pair with its limbs swapped."""
    return replace(pair, one=pair.other, other=pair.one, map=pair.map.T)


def _differences(pair: Likeness) -> Iterator[Finding]:
    """Findings on a pair that differs in one property."""
    wrong, right = pair.other, pair.one
    assert wrong.link.inertial is not None
    if pair.only("mass"):
        cause = mass_cause(pair.image, _mass_properties(wrong), MEASURED_EQUAL) or Cause(
            "override", f"{wrong.mass / right.mass:.4g} times as large with the same inertia"
        )
        yield warning(
            cause.id,
            wrong.link.inertial.source,
            f"weighs {wrong.mass:.4g} kg and '{right.name}', its counterpart, {right.mass:.4g} kg, "
            f"with the same centre of mass: {cause.explanation}",
            "write the inertia that belongs to the mass: it grows with it",
            wrong.mass / right.mass,
            "ratio",
        )
    elif pair.mirrored or pair.only("inertia"):
        check, explanation = pair.cause or ("asymmetry", "")
        yield warning(
            check,
            wrong.link.inertial.source,
            f"has the mass and centre of mass of '{right.name}', its counterpart, but an inertia "
            f"that differs by {100 * pair.inertia:.3g} %{explanation and ': ' + explanation}",
            "check the inertias of both",
            pair.inertia,
            "relative",
        )
    elif pair.only("tips"):
        yield warning(
            "anchor",
            wrong.joint.source,
            f"carries a joint or loop at another place than '{right.name}', its counterpart, off "
            f"by {pair.tips:.3g} of the robot's size, with links that are the same in all else",
            "check the origins of what both carry",
            pair.tips,
            "sizes",
        )
    elif pair.only("axis"):
        yield warning(
            "axis",
            wrong.joint.source,
            f"its axis is {math.degrees(math.asin(min(1.0, pair.axis))):.3g}° off that of "
            f"'{right.joint.name}', its counterpart, with links that are the same in all else",
            "check the axes of both",
            pair.axis,
            "sine of an angle",
        )


def _motions(
    context: CheckContext, pairs: Iterable[tuple[Likeness, _LimbPair]]
) -> Iterator[Finding]:
    """Differences of joints from all of their counterparts."""
    found = [
        ({pair.one.name, pair.other.name}, pair.placed, list(_motion(context, pair, candidate)))
        for pair, candidate in pairs
        if not pair.differ
    ]
    agreeing = {name for names, _, findings in found if not findings for name in names}
    for names, placed, findings in found:
        if findings and placed and not names <= agreeing:
            agreeing |= names
            yield from findings


def _motion(context: CheckContext, pair: Likeness, candidate: _LimbPair) -> Iterator[Finding]:
    """Armatures, couplings and the signs of axes of limbs that are alike in all else."""
    one, other = pair.one.joint, pair.other.joint
    if one.type not in ONE_DOF or other.type not in ONE_DOF:
        return
    small, large = sorted((one.armature, other.armature))
    if large - small > DIFFERENT * large:
        yield warning(
            "armature",
            other.source,
            f"its armature is {other.armature:.4g}, that of '{one.name}', its counterpart, "
            f"{one.armature:.4g}",
            "check the armatures of both",
            other.armature,
            "kg m² or kg",
        )
    yield from _ratios(context, pair)
    fitting = [each for each in candidate.maps.values() if not each.differ]
    opposite = all(_limits_agree(each, -1.0) for each in fitting)
    if fitting and opposite and not any(_limits_agree(each, 1.0) for each in fitting):
        yield warning(
            "axis",
            other.source,
            f"its limits {_span_text(other)} are those of '{one.name}', its counterpart, "
            f"{_span_text(one)}, for the opposite sign of its axis",
            "check the axes and limits of both",
        )


def _senses(pairs: Iterable[_LimbPair]) -> Iterator[Finding]:
    """Joints that alone turn against their counterparts' images, or alone with them.

    Left and right axes are written as images of each other or as parallel; a file does one of both.
    """
    senses: dict[tuple[int, float, bool], list[tuple[Likeness, float]]] = defaultdict(list)
    for each in pairs:
        for n in each.places:
            pair = each.maps[n]
            one, other = pair.one.joint, pair.other.joint
            along = float(pair.one.axis @ pair.other.axis)
            same = one.type == other.type and one.type in ONE_DOF and not pair.differ
            if same and abs(along) > ALIGNED:
                sense = _sense(pair)
                kind = (n, math.copysign(1.0, sense * along), one.type == "prismatic")
                senses[kind].append((pair, sense))
    reported: set[str] = set()
    for voters in senses.values():
        for sense in (1.0, -1.0):
            odd = [pair for pair, each in voters if each == sense]
            if len(odd) != 1 or len(voters) < FEWEST:
                continue
            names = {odd[0].one.joint.name, odd[0].other.joint.name}
            if not names & reported:
                reported |= names
                yield warning(
                    "axis",
                    odd[0].other.joint.source,
                    f"its axis has the opposite sign of that of '{odd[0].one.joint.name}', its "
                    f"counterpart, by the rule that {len(voters) - 1} other pairs of joints follow",
                    "check the axes of both",
                )


def _driven(context: CheckContext) -> set[str]:
    """Joints that mimic, and motors, which carry nothing: their couplings may have either sign."""
    description = context.model.description
    carrying = {joint.parent for joint in description.joints if joint.type != "fixed"}
    carrying |= {end.link for x in description.loops for end in (x.predecessor, x.successor)}
    coupled = {name for coupling in context.model.couplings for name, _ in coupling.terms}
    return {
        x.name
        for x in description.joints
        if x.mimic or (x.child not in carrying and x.name in coupled)
    }


def _sense(pair: Likeness) -> float:
    """1 if a joint turns as the image of its counterpart, -1 if against it."""
    turn = float(np.linalg.det(pair.map)) if pair.one.joint.type != "prismatic" else 1.0
    return math.copysign(1.0, turn * float((pair.map @ pair.one.axis) @ pair.other.axis))


def _limits_agree(pair: Likeness, sign: float) -> bool:
    """Whether limits of counterparts correspond, with this sign of the axis."""
    one, other = pair.one.joint.limits, pair.other.joint.limits
    sign *= _sense(pair)
    ends = (one.lower, one.upper) if sign > 0.0 else (-one.upper, -one.lower)
    there = (other.lower, other.upper)
    if not all(map(math.isfinite, (*ends, *there))):
        return True
    size = max(map(abs, (*ends, *there))) or 1.0
    return all(abs(x - y) <= MEASURED_EQUAL * size for x, y in zip(ends, there, strict=True))


def _span_text(joint: Joint) -> str:
    return f"{joint.limits.lower:.4g} to {joint.limits.upper:.4g}"


def _ratios(context: CheckContext, pair: Likeness) -> Iterator[Finding]:
    """Couplings of one limb's joint that the other's lacks, or that have other ratios."""
    one, other = pair.one.joint, pair.other.joint
    here = _coupled(context, one.name, other.name)
    there = _coupled(context, other.name, one.name)
    if len(here) != len(there):
        fewer, more = (one, other) if len(here) < len(there) else (other, one)
        yield warning(
            "rotor-missing",
            fewer.source,
            f"{min(len(here), len(there))} couplings (rotors, mimics) move with it, and "
            f"{max(len(here), len(there))} with '{more.name}', its counterpart",
            "check the rotors and couplings of both",
            min(len(here), len(there)),
            "couplings",
        )
        return
    for (sizes, name), (others, other_name) in zip(here, there, strict=True):
        if len(sizes) != len(others):
            continue
        for x, y in zip(sizes, others, strict=True):
            same = abs(abs(x) - abs(y)) <= MEASURED_EQUAL * max(abs(x), abs(y))
            if same and x * y > 0.0:
                continue
            what = "the opposite sign of" if same else f"{abs(y / x):.4g} times"
            yield warning(
                "ratio",
                context.couplings.get(other_name, other.source),
                f"coupling '{other_name}' turns '{other.name}' by {what} the ratio that '{name}' "
                f"has for '{one.name}', its counterpart ({y:.4g} and {x:.4g}, along the axes)",
                "check the ratios of both",
                y,
                "ratio",
            )


def _coupled(context: CheckContext, joint: str, but: str) -> list[tuple[tuple[float, ...], str]]:
    """The couplings of a joint: their ratios, with signs along parallel axes; names.

    Without those that relate it to its counterpart. Ratios of differentials, where several motors
    drive together, have no signs: which of two equal motors is which one's counterpart is open.
    """
    couplings = []
    several = any(
        joint in c.joints and c.nv > 1 and c.kind == "loops" for c in context.model.clusters
    )
    for coupling in context.model.couplings:
        terms = dict(coupling.terms)
        if not terms.get(joint) or but in terms:
            continue
        own = terms.pop(joint)
        axis = _axis(context, joint)
        ratios = []
        for name, coefficient in terms.items():
            along = float(axis @ _axis(context, name))
            signed = abs(along) > ALIGNED and len(terms) == 1 and not several
            sign = math.copysign(1.0, along) if signed else 0.0
            ratio = coefficient / own
            ratios.append(ratio * sign if sign else abs(ratio))
        couplings.append(
            (tuple(sorted(ratios, key=lambda x: (round(abs(x), 9), x))), coupling.name)
        )
    return sorted(couplings, key=lambda each: [abs(x) for x in each[0]])


def _axis(context: CheckContext, joint: str) -> Array:
    """The direction of a joint's axis at neutral, as the file has it."""
    body = context.model.joint_names.index(joint)
    return context.axis(body)


def _limits(pairs: Iterable[tuple[Limb, Limb]]) -> Iterator[Finding]:
    """Limits that are those of the counterpart in degrees."""
    for pair in pairs:
        small, large = sorted(pair, key=lambda each: _span(each.joint))
        ratio = _span(large.joint) / _span(small.joint) if _span(small.joint) > 0.0 else math.inf
        if abs(ratio * math.radians(1.0) - 1.0) < MEASURED_EQUAL:
            yield warning(
                "degrees",
                large.joint.source,
                f"its limits are {ratio:.4g} times those of '{small.joint.name}', its counterpart",
                "write radians",
                ratio,
                "ratio",
            )


def _span(joint: Joint) -> float:
    """The size of a hinge's limits."""
    limits = [x for x in (joint.limits.lower, joint.limits.upper) if math.isfinite(x)]
    return max(map(abs, limits), default=0.0) if joint.type == "revolute" else 0.0
