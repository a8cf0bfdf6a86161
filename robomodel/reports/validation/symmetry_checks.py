"""Checks by symmetry: what a link has otherwise than its mirror image or its copy.

Legs, arms and fingers come in pairs or fours: mirrored, turned or moved. Where two links correspond
in place and in all numbers but one, that one is wrong on one of the two.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robomodel.description import ONE_DOF, Description, Joint, Link, Vec3
from robomodel.description.poses import link_poses
from robomodel.model.joints import Array
from robomodel.reports.comparison.differences import (
    Cause,
    MassProperties,
    inertia_cause,
    mass_cause,
)
from robomodel.reports.document import Finding, warning
from robomodel.reports.validation.context import CheckContext

PLACE = 2e-3  # of the robot's size: how far apart corresponding places are at most
EQUAL = 0.02  # relative: numbers of partners, which may be measured
DIFFERENT = 0.1  # relative: what partners do not have in common
SIGNS = 0.01  # relative: differences that signs of products explain
NOTHING = 1e-9  # of mass times the robot's size squared: inertias below are rounding
EXPLAINED = 0.1  # of a difference: what its cause leaves
MAPS = tuple(np.diag(signs) for signs in itertools.product((1.0, -1.0), repeat=3))
"""Maps of a limb to another, in the root's axes or its link's: moved, turned, mirrored."""


# ---- correspondence ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Limb:
    """A link with mass and the joint above it, at zero; directions are in the root's axes.

    ``com`` and ``tips`` (the joints and loops that it carries) are from its joint, which is at
    ``place``; ``turn`` (3, 3) is that of its frame; ``inertia`` is about the centre of mass.
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

    @property
    def name(self) -> str:
        """Of the link."""
        return self.link.name


def limbs(context: CheckContext) -> list[list[Limb]]:
    """Links by their distance from joint to joint on the way from the root, and what they carry."""
    description = context.model.description
    above = {joint.child: joint for joint in description.joints}
    below = _below(description)
    poses = link_poses(description)
    tips = _tips(description)
    step = PLACE * context.size
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
            )
        )
    return [group for group in groups.values() if len(group) > 1]


def _tips(description: Description) -> dict[str, list[Vec3]]:
    """Where each link carries joints that move and loops."""
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

    ``axis`` is the sine of the angle between the axes as lines. ``significant``: a small difference
    of centres of mass is evidence of symmetry; ``placed``: the map takes the position of the one
    limb to that of the other.
    """

    one: Limb
    other: Limb
    map: Array
    mass: float
    com: float
    inertia: float
    axis: float
    significant: bool
    placed: bool

    @property
    def total(self) -> float:
        """Of all differences, none of which counts for more than different."""
        return sum(min(x / DIFFERENT, 1.0) for x in (self.mass, self.com, self.inertia, self.axis))

    def only(self, aspect: str, most: float = DIFFERENT) -> bool:
        """Whether the limbs differ in this by more, and in nothing else."""
        others = {"mass", "com", "inertia", "axis"} - {aspect}
        return getattr(self, aspect) > most and all(getattr(self, x) < EQUAL for x in others)

    @property
    def differ(self) -> bool:
        """Whether the limbs are no mirror images or copies."""
        return self.mirrored or max(self.mass, self.com, self.inertia, self.axis) > DIFFERENT

    @property
    def mirrored(self) -> bool:
        """Whether signs of products of inertia are all that differs."""
        return (
            self.only("inertia", SIGNS) and self.cause is not None and self.cause.id == "mirrored"
        )

    @cached_property
    def cause(self) -> Cause | None:
        """What makes the inertia of the other of that of the one."""
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
    """The likeness of two limbs under a map; None where they carry joints in other places."""
    tips = one.tips @ by.T
    far = np.linalg.norm(tips[:, None] - other.tips[None], axis=2)
    if len(tips) != len(other.tips) or max(far.min(axis=0).max(), far.min(axis=1).max()) > (
        PLACE * size
    ):
        return None
    offset = max(float(np.linalg.norm(one.com)), float(np.linalg.norm(other.com)))
    com = by @ one.com - other.com
    mapped = by @ one.inertia @ by.T
    scale = max(float(np.trace(one.inertia)), float(np.trace(other.inertia)),
                NOTHING * max(one.mass, other.mass) * size**2)  # fmt: skip
    placed = _is_placed(one, other, by, size)
    sine = 0.0
    if one.joint.type in ONE_DOF:
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
        offset > PLACE * size or placed,
        placed,
    )


def _is_placed(one: Limb, other: Limb, by: Array, size: float) -> bool:
    """Whether the map takes the place of one limb to that of the other, and these are two."""
    apart = float(np.linalg.norm(one.place - other.place))
    return (
        apart > PLACE * size and float(np.linalg.norm(by @ one.place - other.place)) < PLACE * size
    )


# ---- differences ---------------------------------------------------------------------------------


def check_symmetry(context: CheckContext) -> Iterator[Finding]:
    """Links that differ from their mirror image or copy in their mass, inertia or axis alone."""
    groups = [(group, list(_pairs(group, context.size))) for group in limbs(context)]
    votes: dict[frozenset[int], Counter[int]] = defaultdict(Counter)
    for _, candidates in groups:
        for each in candidates:
            votes[each.places].update(each.fitting)
    for group, candidates in groups:
        pairs = [each.by_vote(votes[each.places]) for each in candidates]
        if 2 * len(_matched(pairs)) < len(group):
            pairs = [each.best for each in candidates]
        yield from _limits((pair.one, pair.other) for pair in pairs)
        matched = _matched(pairs)
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


@dataclass(frozen=True, eq=False)
class _LimbPair:
    """Two limbs, and their likeness under each map that takes one's centre to the other's.

    ``maps``: by their number, those in the root's axes first.
    """

    maps: dict[int, Likeness]

    @property
    def places(self) -> frozenset[int]:
        """The maps that take the place of the one to that of the other."""
        return frozenset(n for n, each in self.maps.items() if each.placed and n < len(MAPS))

    @property
    def fitting(self) -> list[int]:
        """The maps by which nothing differs."""
        return [n for n, each in self.maps.items() if n < len(MAPS) and not each.differ]

    def by_vote(self, votes: Counter[int]) -> Likeness:
        """By the map of most pairs that lie to one another as this one does.

        Where the limbs are alike neither by this map nor by another, by that which fits best.
        """
        voted = self.maps[min(self.maps, key=lambda n: (-votes[n], *self._order(n)))]
        return voted if not voted.differ or not self.best.differ else self.best

    @property
    def best(self) -> Likeness:
        """By the map by which least differs."""
        return self.maps[min(self.maps, key=lambda n: (self.maps[n].differ, *self._order(n)))]

    def _order(self, number: int) -> tuple[float, bool]:
        return round(self.maps[number].total, 3), not self.maps[number].placed


def _pairs(group: Sequence[Limb], size: float) -> Iterator[_LimbPair]:
    """The limbs of a group that have something in common, two and two."""
    for one, other in itertools.combinations(group, 2):
        maps = (*MAPS, *(other.turn @ by @ one.turn.T for by in MAPS))
        candidates = {n: likeness(one, other, by, size) for n, by in enumerate(maps)}
        mapped = {n: each for n, each in candidates.items() if each is not None}
        if any(each.significant for each in mapped.values()):
            most = max(min(each.com for each in mapped.values()), EQUAL)
            yield _LimbPair({n: each for n, each in mapped.items() if each.com <= most})


def _matched(pairs: Iterable[Likeness]) -> set[str]:
    """Links that are the image or copy of another."""
    return {limb.name for pair in pairs if not pair.differ for limb in (pair.one, pair.other)}


def _swapped(pair: Likeness) -> Likeness:
    """The same pair the other way round."""
    return replace(pair, one=pair.other, other=pair.one, map=pair.map.T)


def _differences(pair: Likeness) -> Iterator[Finding]:
    """Findings on a pair that differs in one property."""
    wrong, right = pair.other, pair.one
    assert wrong.link.inertial is not None
    if pair.only("mass"):
        cause = mass_cause(pair.image, _mass_properties(wrong), EQUAL) or Cause(
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


def _limits(pairs: Iterable[tuple[Limb, Limb]]) -> Iterator[Finding]:
    """Limits that are those of the counterpart in degrees."""
    for pair in pairs:
        small, large = sorted(pair, key=lambda each: _span(each.joint))
        ratio = _span(large.joint) / _span(small.joint) if _span(small.joint) > 0.0 else math.inf
        if abs(ratio * math.radians(1.0) - 1.0) < EQUAL:
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
