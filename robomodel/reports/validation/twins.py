"""Twins: limbs that are mirror images, turned or moved copies of each other.

Legs, arms, fingers and wheels come in pairs, threes, fours and sixes. Two limbs of one body are
twins if an isometry takes the joints, centres of mass and inertias of one to those of the other, in
most of their quantities: so a few wrong numbers neither hide a pair nor make one.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robomodel.arrays import Array, Indices
from robomodel.description import ONE_DOF, Description, Joint, Link, Pose
from robomodel.description.poses import about, link_poses
from robomodel.reports.comparison.differences import MassProperties
from robomodel.reports.comparison.match import assigned
from robomodel.reports.validation.bounds import BOUNDS
from robomodel.tolerances import SAME

ROOT = -1  # the segment of the root link and what is fixed to it


# ---- the skeleton --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Part:
    """A link of a segment: its place in the root's axes, and its mass properties there.

    ``turn`` (3, 3) is the link's frame. ``place`` and ``com`` are relative to the segment's joint,
    the centre in ``properties`` to the link's origin, and ``step`` is the link's place relative to
    that of its parent. ``joint``: the one above it.
    """

    link: Link
    joint: Joint
    place: Array
    turn: Array
    step: Array
    properties: MassProperties
    com: Array

    @property
    def mass(self) -> float:
        """The mass [kg], 0 without an inertial."""
        return self.properties.mass

    @property
    def inertia(self) -> Array:
        """The inertia (3, 3) about the centre of mass."""
        return self.properties.inertia


@dataclass(frozen=True, eq=False)
class Segment:
    """A joint that moves, with the links that it moves and those fixed to them, at zero.

    In the root's axes: ``place`` (3,) and ``turn`` (3, 3) of its frame, the unit ``axis`` (zeros
    without one), ``mass``, ``com`` relative to the place, ``inertia`` about it.
    """

    joint: Joint
    parent: int
    children: tuple[int, ...]
    place: Array
    turn: Array
    axis: Array
    parts: tuple[Part, ...]
    mass: float
    com: Array
    inertia: Array
    composed: bool

    @property
    def kind(self) -> str:
        """The joint's type; a continuous one is revolute."""
        return "revolute" if self.joint.type == "continuous" else self.joint.type

    @property
    def slides(self) -> bool:
        """True if the joint is prismatic."""
        return self.joint.type == "prismatic"


@dataclass(frozen=True, eq=False)
class Skeleton:
    """All joints of a file that move, as segments; ``size`` of the robot [m]."""

    segments: tuple[Segment, ...]
    roots: tuple[int, ...]
    base: tuple[str, ...]
    size: float

    @classmethod
    def of(cls, description: Description) -> Skeleton:
        """The segments of a description, at the zero positions of its joints."""
        poses = link_poses(description)
        below: dict[str, list[Joint]] = defaultdict(list)
        for joint in description.joints:
            below[joint.parent].append(joint)
        links = {link.name: link for link in description.links}
        above = {joint.child: joint for joint in description.joints}
        root = next(link.name for link in description.links if link.name not in above)
        heads: list[tuple[Joint | None, int]] = [(None, ROOT)]
        found: list[tuple[Joint, int, list[str]]] = []
        base: list[str] = []
        while heads:
            head, parent = heads.pop(0)
            number = len(found) if head is not None else ROOT
            body = [root if head is None else head.child]
            for name in body:
                for each in below[name]:
                    if each.type == "fixed":
                        body.append(each.child)
                    else:
                        heads.append((each, number))
            if head is None:
                base = body
            else:
                found.append((head, parent, body))
        children: dict[int, list[int]] = defaultdict(list)
        for number, (_, parent, _) in enumerate(found):
            children[parent].append(number)
        places = [np.array(poses[joint.child].xyz) for joint, _, _ in found]
        size = _size(places, [parent for _, parent, _ in found])
        segments: list[Segment] = []
        for number, (joint, parent, body) in enumerate(found):
            turn = np.array(poses[joint.child].rotation)
            place = np.array(poses[joint.child].xyz)
            axis = turn @ np.array(joint.axis) if joint.type in ONE_DOF else np.zeros(3)
            parts = tuple(_part(links[name], above[name], poses, place) for name in body)
            mass, com, inertia = _together(parts)
            carrier = None if parent == ROOT else segments[parent]
            segments.append(
                Segment(
                    joint,
                    parent,
                    tuple(children[number]),
                    place,
                    turn,
                    axis / (np.linalg.norm(axis) or 1.0),
                    parts,
                    mass,
                    com,
                    inertia,
                    carrier is not None
                    and not carrier.mass
                    and float(np.linalg.norm(place - carrier.place)) < BOUNDS.same_centre * size,
                )
            )
        return cls(tuple(segments), tuple(children[ROOT]), tuple(base), size)

    def below(self, number: int) -> tuple[int, ...]:
        """The children of a segment or of the root."""
        return self.roots if number == ROOT else self.segments[number].children

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The number of segments of each subtree."""
        counts = [1] * len(self.segments)
        for number in reversed(range(len(self.segments))):
            parent = self.segments[number].parent
            if parent != ROOT:
                counts[parent] += counts[number]
        return tuple(counts)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The segment of each joint that moves."""
        return {each.joint.name: number for number, each in enumerate(self.segments)}

    @cached_property
    def bodies(self) -> dict[str, int]:
        """The segment of each link."""
        bodies = dict.fromkeys(self.base, ROOT)
        for number, each in enumerate(self.segments):
            bodies |= {part.link.name: number for part in each.parts}
        return bodies


def _size(places: Sequence[Array], parents: Sequence[int]) -> float:
    """The third longest distance from joint to joint [m], by which one wrong number has no say.

    Joints on the root link are taken from their middle, since the root's origin may be anywhere.
    """
    heads = [place for place, parent in zip(places, parents, strict=True) if parent == ROOT]
    middle = np.mean(heads, axis=0) if heads else np.zeros(3)
    steps = [_norm(place - (middle if parent == ROOT else places[parent]))
             for place, parent in zip(places, parents, strict=True)]  # fmt: skip
    longest = [step for step in sorted(steps)[-3:] if step > 0.0]
    return longest[(len(longest) - 1) // 2] if longest else 1.0


def _part(link: Link, joint: Joint, poses: Mapping[str, Pose], place: Array) -> Part:
    at, turn = np.array(poses[link.name].xyz), np.array(poses[link.name].rotation)
    properties = (
        MassProperties(0.0, np.zeros(3), np.zeros((3, 3)))
        if link.inertial is None
        else MassProperties.of(link.inertial, turn)
    )
    step = at - np.array(poses[joint.parent].xyz)
    return Part(link, joint, at - place, turn, step, properties, properties.com + at - place)


def _together(parts: Sequence[Part]) -> tuple[float, Array, Array]:
    """Mass, centre and inertia about it of parts as one."""
    mass = sum(part.mass for part in parts)
    com = sum((part.mass * part.com for part in parts), start=np.zeros(3)) / (mass or 1.0)
    inertia = np.zeros((3, 3))
    for part in parts:
        off = part.com - com
        inertia += part.inertia + part.mass * (off @ off * np.eye(3) - np.outer(off, off))
    return mass, com, inertia


# ---- twins ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Twins:
    """Two limbs of one body, and the maps of directions from one to the other.

    Attributes:
        parent: The segment that carries both.
        pairs: Segments of one limb and those that correspond to them in the other, roots first.
        maps: An orthogonal matrix for each pair, (pairs, 3, 3), in the root's axes: one for all,
            unless the zero position of a joint is another one in the other limb, which turns what
            is beyond it about its axis.
        share: The share of their quantities that agree.
        placed: The map takes the first joint's place to that of the other, about the origin of the
            body that carries both.
    """

    skeleton: Skeleton
    parent: int
    pairs: tuple[tuple[int, int], ...]
    maps: Array
    share: float
    placed: bool

    @property
    def map(self) -> Array:
        """The map of the first pair."""
        first: Array = self.maps[0]
        return first

    @cached_property
    def before(self) -> tuple[int, ...]:
        """For each pair the number of that of the bodies that carry it; the first pair's is 0."""
        at = {one: number for number, (one, _) in enumerate(self.pairs)}
        segments = self.skeleton.segments
        return (0, *(at[segments[one].parent] for one, _ in self.pairs[1:]))

    @cached_property
    def slides(self) -> Array:
        """Displacements (pairs, 3) of the counterparts' joints along their motion, which have no
        effect: a hinge's frame may be anywhere on its axis, and a slide's anywhere.

        Where the centre of mass and the next joints are the image only thus.
        """
        segments, size = self.skeleton.segments, self.skeleton.size
        slides = np.zeros((len(self.pairs), 3))
        below: dict[int, list[int]] = defaultdict(list)
        for number in range(1, len(self.pairs)):
            below[self.before[number]].append(number)
        for number, (one, other) in enumerate(self.pairs):
            a, b = segments[one], segments[other]
            by = self.maps[number]
            gaps = [by @ a.com - b.com] if a.mass and b.mass else []
            for each in below[number]:
                c, d = (segments[n] for n in self.pairs[each])
                gaps.append(by @ (c.place - a.place) - (d.place - b.place))
            if not gaps:
                continue
            if number:
                parents = segments[a.parent].place, segments[b.parent].place
                before = self.before[number]
                off = self.maps[before] @ (a.place - parents[0]) - (b.place - parents[1])
                off = off + slides[before]
            else:
                off = -gaps[0]
            along = off if b.slides else b.axis * (b.axis @ off)
            if (
                _norm(along) > BOUNDS.same_centre * size > _norm(off - along)
                and len(gaps) + bool(number) > 1
                and all(_norm(gap + along) < 0.5 * _norm(along) for gap in gaps)
            ):
                slides[number] = along
        return slides

    def turned(self, number: int) -> bool:
        """True if a pair's joints have different zero positions."""
        return not np.allclose(self.maps[number], self.maps[self.before[number]], atol=1e-6)

    def sign(self, number: int) -> float:
        """How the position of a joint goes over to its counterpart's: 1, -1; 0 for other axes."""
        one, other = (self.skeleton.segments[n] for n in self.pairs[number])
        return sign_of(self.maps[number], one, other)


def sign_of(by: Array, one: Segment, other: Segment) -> float:
    """How a map takes the position of a joint to that of another: 1, -1; 0 for other axes."""
    along = float((by @ one.axis) @ other.axis)
    if abs(along) < 0.5:
        return 0.0
    proper = 1.0 if one.slides else float(np.linalg.det(by))
    return math.copysign(1.0, along * proper)


def find_twins(skeleton: Skeleton, leave_out: frozenset[int] = frozenset()) -> list[Twins]:
    """All pairs of limbs of one body that are twins, under the map that fits best.

    Of several maps that fit nearly as well, as for a leg in one plane, one that suits the body that
    carries both, and most other limbs.
    """
    candidates: list[list[Twins]] = []
    for parent in (ROOT, *range(len(skeleton.segments))):
        heads = [n for n in skeleton.below(parent) if n not in leave_out]
        for one, other in itertools.combinations(heads, 2):
            if _similar(skeleton, one, other):
                found = _plausible(_under_maps(skeleton, parent, one, other, leave_out))
                candidates += [found] if found and not _superposed(skeleton, found) else []
    votes: dict[tuple[int, ...], float] = defaultdict(float)
    for found in candidates:
        most = max(each.share for each in found)
        best = [each for each in found if each.share > most - SAME]
        for each in best:
            votes[_key(each.map)] += 1.0 / len(best)

    def rank(twins: Twins) -> float:
        others = min(votes[_key(twins.map)], 3.0)
        placed = BOUNDS.placed_weight * twins.placed
        return round(twins.share + placed + BOUNDS.voted_weight * others, 6)

    return [max(found, key=rank) for found in candidates]


def _plausible(found: Iterable[Twins]) -> list[Twins]:
    """Twins under several maps; short limbs that are placed otherwise only if they are exactly
    alike thus, and those as the body has them are not.
    """
    twins = list(found)
    placed = [each.share for each in twins if each.placed]
    poor = bool(placed) and max(placed) < BOUNDS.copies_alike
    least = BOUNDS.copied_joints
    return [each for each in twins if each.placed or len(each.pairs) >= least or poor]


def _superposed(skeleton: Skeleton, found: Sequence[Twins]) -> bool:
    """True if two limbs are at one place and the same as they stand: a model's, not a robot's."""
    one, other = (skeleton.segments[head] for head in found[0].pairs[0])
    same = [each.share for each in found if np.allclose(each.map, np.eye(3), atol=1e-6)]
    together = _norm(one.place - other.place) < BOUNDS.same_centre * skeleton.size
    least = max(each.share for each in found) - BOUNDS.placed_weight
    return together and bool(same) and same[0] > least


def _key(by: Array) -> tuple[int, ...]:
    return tuple(np.round(1e3 * by).astype(int).ravel().tolist())


def _similar(skeleton: Skeleton, one: int, other: int) -> bool:
    a, b = skeleton.segments[one], skeleton.segments[other]
    few, many = sorted((skeleton.counts[one], skeleton.counts[other]))
    return a.kind == b.kind and few >= BOUNDS.limbs_similar * many


def _under_maps(
    skeleton: Skeleton, parent: int, one: int, other: int, leave_out: frozenset[int]
) -> Iterator[Twins]:
    """Two limbs under each map that makes twins of them."""
    segments = skeleton.segments
    origin = np.zeros(3) if parent == ROOT else segments[parent].place
    turn = np.eye(3) if parent == ROOT else segments[parent].turn
    maps = np.array(_maps(turn, segments[one], segments[other]))
    sizes = [_count(skeleton, head, leave_out) for head in (one, other)]
    matched: dict[tuple[tuple[int, int], ...], list[int]] = defaultdict(list)
    for number, by in enumerate(maps):
        matched[tuple(_matched(skeleton, one, other, by, leave_out))].append(number)
    for pairs, heads in matched.items():
        agreement = _Agreement.of(skeleton, pairs, maps, origin)
        for number in heads:
            chosen, share = agreement.from_head(number)
            share *= len(pairs) / max(sizes)
            placed = bool(agreement.placed[number] > 0.5)
            least = BOUNDS.copies_alike if len(pairs) >= BOUNDS.copied_joints else BOUNDS.rods_alike
            if share >= (BOUNDS.limbs_alike if placed else least):
                yield Twins(skeleton, parent, pairs, maps[chosen], share, placed)


def _count(skeleton: Skeleton, number: int, leave_out: frozenset[int]) -> int:
    """The number of segments of a subtree."""
    below = (n for n in skeleton.segments[number].children if n not in leave_out)
    return 1 + sum(_count(skeleton, each, leave_out) for each in below)


ANGLES = (math.pi, math.pi / 2, -math.pi / 2, math.pi / 3, -math.pi / 3, 2 * math.pi / 3,
          -2 * math.pi / 3)  # fmt: skip
SIGNS = tuple(np.diag(signs) for signs in itertools.product((1.0, -1.0), repeat=3))
TURNS = tuple(np.array(about(axis, angle))
              for axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
              for angle in ANGLES)  # fmt: skip


def _maps(turn: Array, one: Segment, other: Segment) -> list[Array]:
    """Isometries that may take one limb to another.

    Reflections, half turns and turns by 60°, 90° and 120° about the axes of the body that carries
    both and of the root; the reflection that exchanges their places; and copies and mirror images
    as their own frames have them.
    """
    maps = [axes @ by @ axes.T for axes in (turn, np.eye(3)) for by in (*SIGNS, *TURNS)]
    apart = other.place - one.place
    if (length := float(np.linalg.norm(apart))) > 0.0:
        normal = apart / length
        maps.append(np.eye(3) - 2.0 * np.outer(normal, normal))
    maps += [other.turn @ by @ one.turn.T for by in SIGNS]
    return list({_key(by): by for by in reversed(maps)}.values())[::-1]


def _matched(
    skeleton: Skeleton, one: int, other: int, by: Array, leave_out: frozenset[int]
) -> Iterator[tuple[int, int]]:
    """Segments of two limbs that correspond, if the map takes one to the other."""
    segments, counts = skeleton.segments, skeleton.counts
    yield one, other
    here = [n for n in segments[one].children if n not in leave_out]
    there = [n for n in segments[other].children if n not in leave_out]
    if not here or not there:
        return
    if len(here) == len(there) == 1:
        if segments[here[0]].kind == segments[there[0]].kind:
            yield from _matched(skeleton, here[0], there[0], by, leave_out)
        return
    far = np.full((len(here), len(there)), 10.0 * BOUNDS.image_distance)
    for i, a in enumerate(here):
        for j, b in enumerate(there):
            if segments[a].kind == segments[b].kind:
                off = by @ (segments[a].place - segments[one].place)
                off -= segments[b].place - segments[other].place
                centre = by @ segments[a].com - segments[b].com
                few, many = sorted((counts[a], counts[b]))
                far[i, j] = float(np.linalg.norm(off) + 0.1 * np.linalg.norm(centre))
                fewer = BOUNDS.fewer_distance * BOUNDS.image_distance * (1.0 - few / many)
                far[i, j] = far[i, j] / skeleton.size + fewer
    for i, j in assigned(far):
        if far[i, j] < BOUNDS.image_distance:
            yield from _matched(skeleton, here[i], there[j], by, leave_out)


@dataclass(frozen=True, eq=False)
class _Agreement:
    """How far two limbs agree under k maps, for each of their n pairs of segments.

    Attributes:
        before: For each pair that of the bodies that carry it.
        whole: (n,) the number of quantities; ``kinematic`` (n,) of places and axes.
        steps, seen, good: (k, n) those that agree: of places in the pair before, of axes, and of
            all of the pair itself.
        placed: (k,) agreement of the first joints' places on the body that carries them.
        along: (k, n, 3) images of the axes.
    """

    before: tuple[int, ...]
    whole: Array
    kinematic: Array
    steps: Array
    seen: Array
    good: Array
    placed: Array
    along: Array

    @classmethod
    def of(
        cls, skeleton: Skeleton, pairs: Sequence[tuple[int, int]], maps: Array, origin: Array
    ) -> _Agreement:
        """Compare places, axes, limits, masses, centres of mass and inertias."""
        segments, size = skeleton.segments, skeleton.size
        at = {one: number for number, (one, _) in enumerate(pairs)}
        before = (0, *(at[segments[one].parent] for one, _ in pairs[1:]))
        sides = [[segments[pair[side]] for pair in pairs] for side in (0, 1)]

        def both(name: str) -> tuple[Array, Array]:
            one, other = (np.array([getattr(each, name) for each in side]) for side in sides)
            return one, other

        def moved(of: Array) -> Array:
            return np.asarray(np.einsum("kij,nj->kni", maps, of))

        def counted(off: Array, least: Array | float) -> Array:
            return np.asarray(np.clip(1.0 - off / least, 0.0, 1.0))

        least = BOUNDS.same_centre * size
        steps = [
            np.array(
                [np.zeros(3), *(each.place - segments[each.parent].place for each in side[1:])]
            )
            for side in sides
        ]
        long = _longest(*steps) > least
        stepped = long * counted(_apart(moved(steps[0]), steps[1]), BOUNDS.agreeing_place * size)
        masses = both("mass")
        heavy = np.maximum(*masses)
        axes = both("axis")
        along = moved(axes[0])
        sines = np.linalg.norm(np.cross(along, axes[1][None]), axis=-1)
        telling = (_longest(*axes) > 0.0) * np.where(long | (heavy > 0.0), 0.5, 0.1)
        aligned = telling * counted(sines, BOUNDS.agreeing)
        bounds, bounded = _limits_agree(sides, maps, along, axes[1])
        weighed = (heavy > 0.0) * counted(
            np.abs(masses[0] - masses[1]) / np.where(heavy > 0.0, heavy, 1.0), BOUNDS.agreeing
        )
        inertias, centres = both("inertia"), both("com")
        traces = np.maximum(*(np.abs(np.trace(each, axis1=1, axis2=2)) for each in inertias))
        gyration = np.sqrt(traces / np.where(heavy > 0.0, heavy, 1.0))
        scale = np.maximum(_longest(*centres), gyration)
        centred = (_longest(*centres) > least) & (heavy > 0.0)
        near = centred * counted(
            _apart(moved(centres[0]), centres[1]),
            BOUNDS.agreeing * np.where(scale > 0.0, scale, 1.0),
        )
        turned = np.einsum("kij,njl,kml->knim", maps, inertias[0], maps)
        gaps = np.linalg.norm(turned - inertias[1][None], axis=(-2, -1))
        like = (traces > 0.0) * counted(gaps, BOUNDS.agreeing * np.where(traces > 0.0, traces, 1.0))
        places = [side[0].place - origin for side in sides]
        off = np.linalg.norm(np.einsum("kij,j->ki", maps, places[0]) - places[1], axis=-1)
        elsewhere = float(_norm(places[0] - places[1])) > least
        placed = counted(off, BOUNDS.agreeing_place * size) * elsewhere
        kinematic = np.asarray(long + telling, dtype=float)
        return cls(
            before,
            np.asarray(kinematic + bounds + (heavy > 0.0) + centred + (traces > 0.0), dtype=float),
            kinematic,
            stepped,
            aligned,
            aligned + bounded + weighed[None] + near + like,
            placed,
            along,
        )

    def from_head(self, first: int) -> tuple[list[int], float]:
        """The maps of all pairs from that of the first one, and the share that agrees.

        The sum of what agrees is the largest, less ``BOUNDS.other_map`` for each change of the map,
        which turns about the axis of the joint where it changes. The share is zero if places and
        axes do not agree, or too little does.
        """
        best, chosen = self._best
        maps = [first]
        for number in range(1, len(self.before)):
            maps.append(int(chosen[number][maps[self.before[number]]]))
        at = float(self.placed[first])
        parents = [maps[n] for n in self.before]
        numbers = np.arange(len(maps))
        seen = float(np.sum(self.seen[maps, numbers]) + np.sum(self.steps[parents, numbers])) + at
        there = float(np.sum(self.kinematic)) + at
        if seen < BOUNDS.kinematics_alike * there or best[first] + at < BOUNDS.evidence:
            return maps, 0.0
        return maps, (float(best[first]) + at) / (float(np.sum(self.whole)) + at)

    @cached_property
    def _best(self) -> tuple[Array, list[Indices]]:
        """The most that agrees (k,), by the map of the first pair, and each pair's best map by that
        of the pair before.
        """
        below = self.good.copy()
        chosen: list[Indices] = [np.arange(len(below))] * len(self.before)
        for number in range(len(self.before) - 1, 0, -1):
            axis = self.along[:, number]
            about = np.abs(axis @ axis.T) > 1.0 - 1e-6
            gain = np.where(about, below[None, :, number] - BOUNDS.other_map, -np.inf)
            np.fill_diagonal(gain, below[:, number])
            chosen[number] = np.argmax(gain, axis=1)
            most = np.max(gain, axis=1) + self.steps[:, number]
            below[:, self.before[number]] += most
        return below[:, 0], chosen


def _limits_agree(
    sides: Sequence[Sequence[Segment]], maps: Array, along: Array, axes: Array
) -> tuple[Array, Array]:
    """True if limits that tell a direction can agree (n,), and do under maps (k, n); half each."""
    proper = np.linalg.det(maps)[:, None]
    slides = np.array([each.slides for each in sides[0]])
    signs = np.sum(along * axes[None], axis=-1) * np.where(slides[None], 1.0, proper)
    by_sign = np.zeros((2, len(sides[0])))
    for n, (one, other) in enumerate(zip(*sides, strict=True)):
        limits = [each.joint.limits for each in (one, other)]
        ends = [(each.lower, each.upper) for each in limits]
        if not all(map(math.isfinite, (*ends[0], *ends[1]))):
            continue
        span = max(upper - lower for lower, upper in ends)
        if span > 0.0 and abs(sum(ends[0])) > BOUNDS.agreeing * span:
            for k, (lower, upper) in enumerate((ends[0], (-ends[0][1], -ends[0][0]))):
                off = max(abs(lower - ends[1][0]), abs(upper - ends[1][1]))
                by_sign[k, n] = 0.5 * (off < BOUNDS.agreeing * span)
    bounded = np.where(signs > 0.5, by_sign[0], np.where(signs < -0.5, by_sign[1], 0.0))
    return np.max(by_sign, axis=0), bounded


def _longest(one: Array, other: Array) -> Array:
    return np.asarray(np.maximum(np.linalg.norm(one, axis=-1), np.linalg.norm(other, axis=-1)))


def _apart(one: Array, other: Array) -> Array:
    return np.asarray(np.linalg.norm(one - other[None], axis=-1))


def _norm(x: Array) -> float:
    return float(np.linalg.norm(x))


def close_twins(twins: Sequence[Twins]) -> list[Twins]:
    """Twins without those that are much less alike than the best ones of both of their limbs."""
    best: dict[int, float] = defaultdict(float)
    for each in twins:
        for head in each.pairs[0]:
            best[head] = max(best[head], each.share)
    within = BOUNDS.judged_within
    return [
        each for each in twins if each.share >= min(best[head] for head in each.pairs[0]) - within
    ]
