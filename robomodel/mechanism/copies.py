"""Copies of a linkage, moved and turned or mirrored: which joint positions of one are another's.

The fingers of a hand and both legs of a walker are one mechanism, but for a placement or a
reflection and for the digits that a file writes. An isometry T of what carries them takes each
joint's frame of one to the other's, Qₚ A = B Q, where Q and Qₚ are isometries of the bodies' axes
that leave the joint's motion what it is: a hinge turns as much or the other way, a ball by the
rotation in turned axes. Joints and loops may be in another order, and the ends of loops the other
way round: joints correspond that T takes to each other, on trees of one shape. So closed
configurations of one nearly close the other. They are where Newton's method starts there, and no
more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from robomodel.arrays import Array
from robomodel.mechanism.closure import Geometry, LinearCoupling
from robomodel.mechanism.constraints import (
    OUTSIDE,
    LoopCondition,
    LoopJoint,
    Perpendicular,
)
from robomodel.mechanism.continuation import Limits
from robomodel.mechanism.joints import Prismatic, Revolute, Spherical
from robomodel.spatial import ZERO, Transform
from robomodel.tolerances import WRITTEN

# what chains of written numbers, and frames that follow from them, differ by
ALIKE = 10.0 * WRITTEN
# maps that are compared, and joints that are, for each two joints: many of them, on one axis, could
# take each other's places
MOST_MAPS, MOST_TRIES = 64, 20


@dataclass(frozen=True, eq=False)
class Image:
    """The map of positions and velocities to a copy.

    ``links``: the copy's link of each of the original's, and ``there`` its velocity of each, ball
    by ball in their order. ``ways`` (nv, nv): velocities of the copy by those of the original.
    ``places`` and ``columns``: of joints of one freedom in q and v of the original and the copy,
    with the signs of their motions. ``balls``: of each ball its places in q, and the orthogonal
    matrix of its rotations' vectors. ``bodies`` (links, 4, 4): isometries from the axes of the
    original's bodies to those of the copy's.
    """

    links: tuple[int, ...]
    there: tuple[int, ...]
    ways: Array
    places: tuple[tuple[int, int, float], ...]
    columns: tuple[tuple[int, int, float], ...]
    balls: tuple[tuple[int, int, Array], ...]
    bodies: Array

    def positions(self, q: Array) -> Array:
        """The copy's spanning positions (..., nq) from the original's."""
        result = np.empty_like(q)
        for place, there, sign in self.places:
            result[..., there] = sign * q[..., place]
        for place, there, turn in self.balls:
            result[..., there : there + 3] = q[..., place : place + 3] @ turn.T
            result[..., there + 3] = q[..., place + 3]
        return result

    def taken(self, columns: Sequence[int]) -> tuple[int, ...]:
        """The copy's columns of velocities, sorted, to which these of the original go."""
        return tuple(sorted(self.there[c] for c in columns))

    def takes(self, limits: Limits, others: Limits, size: float) -> bool:
        """True if limits of the original's places are those of the copy's, numbers of this size."""
        taken = {place: (there, sign) for place, there, sign in self.places}
        there, signs = np.array([taken[place] for place in limits.places.tolist()]).reshape(-1, 2).T
        ends = np.sort(signs * np.stack([limits.low, limits.high]), axis=0)
        mine, theirs = (
            np.vstack([places, low, high])[:, np.argsort(places, kind="stable")]
            for places, low, high in ((there, *ends), (others.places, others.low, others.high))
        )
        return mine.shape == theirs.shape and as_written(mine, theirs, size)

    def keeps(self, limits: tuple[Array, Array], others: tuple[Array, Array]) -> bool:
        """True if the copy's limits of velocity columns are the original's; balls have none."""
        low, high = limits
        ends = np.stack([np.full(len(low), -np.inf), np.full(len(low), np.inf)])
        for column, there, sign in self.columns:
            mine = low[column], high[column]
            ends[:, there] = mine if sign > 0.0 else (-mine[1], -mine[0])
        return as_written(ends, np.stack(others))


def as_written(one: Array, other: Array, size: float = 1.0) -> bool:
    """True if numbers of this size are the same but for the digits that files write."""
    return bool(np.allclose(one, other, rtol=0.0, atol=WRITTEN * size))


def images(one: Geometry, other: Geometry) -> Iterator[Image]:
    """The maps from one geometry to another; none if it is no copy. Those in order come first.

    A planar linkage is its own mirror image, and has several.
    """
    if not _alike(one, other):
        return
    old, new = _frames(one), _frames(other)
    search, left = _Search(one, other, old, new), iter(range(MOST_MAPS))
    for in_order in (True, False):
        tries = iter(range(MOST_TRIES * len(one.links) ** 2))
        for carried in search.isometries(in_order=in_order):
            for found in search.mapped(carried, tries, in_order=in_order):
                if next(left, None) is None:
                    return
                if _opens_alike(one, other, found):
                    yield found


def _alike(one: Geometry, other: Geometry) -> bool:
    """True if joints and conditions are of the same kinds, in whatever order."""
    kinds = []
    for geometry in (one, other):
        links = geometry.links
        joints = Counter(
            (type(link.joint), None if link.parent == OUTSIDE else type(links[link.parent].joint))
            for link in links
        )
        loops = Counter((_kinds(loop), frozenset(map(len, loop.branches)))
                        for loop in geometry.loops)  # fmt: skip
        kinds.append((joints, loops, Counter(len(each.terms) for each in geometry.linear)))
    return kinds[0] == kinds[1] and {type(link.joint) for link in one.links} <= {
        Revolute, Prismatic, Spherical
    }  # fmt: skip


def _kinds(loop: LoopCondition) -> tuple[type, ...]:
    return (type(loop), *(type(row) for row in loop.rows))


def _frames(geometry: Geometry) -> Array:
    """The frames (links, 4, 4) of joints at zero on what carries them."""
    frames = np.tile(np.eye(4), (len(geometry.links), 1, 1))
    for frame, link in zip(frames, geometry.links, strict=True):
        turned, shift = link.joint.placement(link.joint.neutral())
        x = Transform((*turned, *link.rotations), ZERO).matrix()
        frame[:3, :3], frame[:3, 3] = np.array(x, float), np.array(link.offset, float)
        frame[:3, 3] += frame[:3, :3] @ np.array(shift, float)
    return frames


@dataclass(frozen=True, eq=False)
class _Search:
    """Joints of two geometries that an isometry takes to each other, with their frames at zero."""

    one: Geometry
    other: Geometry
    old: Array
    new: Array

    def isometries(self, *, in_order: bool) -> Iterator[Array]:
        """Isometries (4, 4) of what carries the cluster: the first joint's frame to an image of it.

        With its axes as they are, then with some of them turned round.
        """
        first = next(n for n, link in enumerate(self.one.links) if link.parent == OUTSIDE)
        back = np.linalg.inv(self.old[first])
        for m, link in enumerate(self.other.links):
            if link.parent == OUTSIDE and (m == first or not in_order):
                for signs in product((1.0, -1.0), repeat=3):
                    yield self.new[m] @ np.diag([*signs, 1.0]) @ back

    def mapped(self, carried: Array, tries: Iterator[int], *, in_order: bool) -> Iterator[Image]:
        """The maps of joints by which an isometry takes frames to frames.

        ``in_order``: the one that keeps their order, else those that do not, while there are
        ``tries``.
        """
        every = range(len(self.one.links))
        for links, bodies in self._taken(carried, tries, [], [], in_order=in_order):
            if in_order or links != [*every]:
                yield self._image(links, bodies)

    def _taken(
        self, carried: Array, tries: Iterator[int], links: list[int], bodies: list[Array], *,
        in_order: bool,
    ) -> Iterator[tuple[list[int], list[Array]]]:  # fmt: skip
        """Links of the copy, and isometries of bodies, for those of the original that are left."""
        n = len(links)
        if n == len(self.one.links):
            yield links, bodies
            return
        parent = self.one.links[n].parent
        above, there = (carried, OUTSIDE) if parent == OUTSIDE else (bodies[parent], links[parent])
        for m in (n,) if in_order else range(len(self.other.links)):
            if m not in links and self.other.links[m].parent == there:
                if next(tries, None) is None:
                    return
                own = np.linalg.solve(self.new[m], above @ self.old[n])
                if self._fits(n, m, own):
                    more = [*links, m], [*bodies, own]
                    yield from self._taken(carried, tries, *more, in_order=in_order)

    def _fits(self, n: int, m: int, own: Array) -> bool:
        """True if an isometry between the axes of two links leaves the joint's motion as it is."""
        joint, other = self.one.links[n].joint, self.other.links[m].joint
        if type(joint) is not type(other):
            return False
        shift = own[:3, 3].copy()
        if isinstance(joint, (Revolute, Prismatic)) and isinstance(other, (Revolute, Prismatic)):
            if 1.0 - abs(own[other.k, joint.k]) > ALIKE:
                return False
            shift[other.k] = 0.0  # a frame may be anywhere along an axis
            shift *= isinstance(joint, Revolute)
        return bool(np.max(np.abs(shift)) <= ALIKE * self.one.scale)

    def _image(self, links: list[int], bodies: list[Array]) -> Image:
        """The map of joints to these links."""
        ways, balls = np.zeros((self.one.nv, self.one.nv)), list[tuple[int, int, Array]]()
        goes = dict[int, int]()
        places, columns = list[tuple[int, int, float]](), list[tuple[int, int, float]]()
        for link, m, own in zip(self.one.links, links, bodies, strict=True):
            there, turn = self.other.links[m], own[:3, :3]
            goes |= zip(link.freedoms, there.freedoms, strict=True)
            side = float(np.sign(np.linalg.det(turn)))
            if isinstance(there.joint, (Revolute, Prismatic)) and isinstance(
                link.joint, (Revolute, Prismatic)
            ):
                sign = float(np.sign(turn[there.joint.k, link.joint.k]))
                sign *= side if isinstance(link.joint, Revolute) else 1.0
                places.append((link.q, there.q, sign))
                columns.append((link.v, there.v, sign))
                ways[there.v, link.v] = sign
            else:
                balls.append((link.q, there.q, side * turn))
                ways[there.velocities, link.velocities] = side * turn
        taken = tuple(goes[c] for c in range(self.one.nv))
        found = tuple(places), tuple(columns), tuple(balls)
        return Image(tuple(links), taken, ways, *found, np.array(bodies))


def _opens_alike(one: Geometry, other: Geometry, found: Image) -> bool:
    """True if each condition, or those of one kind of a loop together, are as open at images."""
    ordered = _ordered(one, other, found.links)
    if ordered is None:
        return False
    away = np.random.default_rng(20261130).uniform(-1.0, 1.0, (4, one.nv))  # random positions
    q = one.integrate(np.tile(one.zero(), (len(away), 1)), away)
    gaps = [_gaps(geometry, at) for geometry, at in ((one, q), (ordered, found.positions(q)))]
    return bool(np.max(np.abs(gaps[0] - gaps[1]), initial=0.0) <= ALIKE * max(1.0, one.scale))


def _ordered(one: Geometry, other: Geometry, links: Sequence[int]) -> Geometry | None:
    """The copy with its conditions in the original's order; None if they are on other links."""
    loops, linear = [*other.loops], [*other.linear]
    result: tuple[list[LoopCondition], list[LinearCoupling]] = [], []
    for loop in one.loops:
        ends = {tuple(links[n] for n in branch) for branch in loop.branches}
        alike = (each for each in loops if {*each.branches} == ends)
        found = next((each for each in alike if _kinds(each) == _kinds(loop)), None)
        if found is None:
            return None
        result[0].append(found)
        loops.remove(found)
    for coupling in one.linear:
        mine = {links[n] for n, _ in coupling.terms}
        same = next((each for each in linear if {n for n, _ in each.terms} == mine), None)
        if same is None:
            return None
        result[1].append(same)
        linear.remove(same)
    return Geometry(other.links, tuple(result[0]), tuple(result[1]))


def _gaps(geometry: Geometry, q: Array) -> Array:
    """The sizes (n, ·) of each loop's gaps and turns at q (n, nq), and those of couplings.

    A turn is the sine between two axes, or the sum of cosines between three: these are the same
    from either end, and for frames that are fixed to the bodies another way.
    """
    geometry = Geometry(geometry.links, tuple(map(_turning, geometry.loops)), geometry.linear)
    values = geometry.evaluate(q)[0]
    sizes, n = list[Array](), 0
    for loop in geometry.loops:
        mine = values[:, n : n + len(loop.rows)]
        turns = np.array([isinstance(row, Perpendicular) for row in loop.rows])
        if np.sum(turns) == 3:
            sizes.append(np.sum(mine[:, turns], axis=1))
        elif turns.any():
            sizes.append(np.linalg.norm(mine[:, turns], axis=1))
        if not turns.all():
            sizes.append(np.linalg.norm(mine[:, ~turns], axis=1))
        n += len(loop.rows)
    return np.stack([*sizes, *np.abs(values[:, n:]).T], axis=1)


def _turning(loop: LoopCondition) -> LoopCondition:
    """A loop that lets nothing turn, with cosines between like axes for sines; others as are."""
    if not isinstance(loop, LoopJoint):
        return loop
    others = [row for row in loop.rows if not isinstance(row, Perpendicular)]
    if len(loop.rows) - len(others) < 3:
        return loop
    return replace(loop, rows=(*others, *(Perpendicular(k, k) for k in range(3))))
