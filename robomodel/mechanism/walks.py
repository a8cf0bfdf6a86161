"""Directions of strides along closed configurations: a path of one freedom, chance, or a target."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from robomodel.arrays import Array, Indices
from robomodel.mechanism.continuation import (
    FAR,
    FINE,
    LIMIT,
    TURN,
    Continuation,
    Ends,
    Points,
    joined,
)
from robomodel.mechanism.roots import root
from robomodel.tolerances import CONVERGED, MOVES, NOTHING, ROUNDING, SINGULAR, TINY, WITHIN

if TYPE_CHECKING:
    from numpy.random import Generator

WALK_STRIDE = 0.15  # [rad, sizes] of several freedoms: of 768 none ended where smaller ones do not
WALK_ALONG = 0.1  # the same along paths of one freedom
SHORTEST_SHARE = 1e-4  # share of a stride below which halving does not go
LONGEST_LEAD = 200  # strides at most to a target
LONGEST_PATH = 60.0  # [rad, sizes] of each half of a path,
TO_LIMITS = 20.0 * LONGEST_PATH  # or up to this where a joint, as a screw, nears its limit
ROUND = 10.0 * WALK_ALONG  # of a path that comes back to where it began, at least
ROUND_MISSED = 1e-6  # [rad, sizes] by which it may miss its beginning, or the file's rounding
LONG_SHARE = 0.7  # of random strides; the others are shorter


# ---- chance --------------------------------------------------------------------------------------


def wander(
    along: Continuation,
    p: Points,
    rng: Generator,
    strides: int,
    d: Array | None = None,
    lengths: Array | None = None,
) -> tuple[Points, Array]:
    """Geodesics of so many strides from points, and their directions (n, m) at the end.

    They begin in directions d, or random ones, are reflected at limits, and go backwards where a
    stride is refused. That keeps the volume, so that points that are uniform by volume stay so;
    strides count, also those refused, not the way (billiard walks: Gryazina and Polyak,
    2014). ``lengths`` (n,) of strides are random by default, row by row: else ranges that are
    narrower than one would never be left.
    """
    d = rng.standard_normal((len(p.q), along.freedoms)) if d is None else d.copy()
    d /= np.maximum(np.linalg.norm(d, axis=1, keepdims=True), TINY)
    random = np.asarray(WALK_STRIDE * 0.5 ** (rng.geometric(LONG_SHARE, len(p.q)) - 1), dtype=float)
    for _ in range(strides):
        there, ends, over = along.advance(p, d, random if lengths is None else lengths)
        fine, met = ends == FINE, np.flatnonzero(ends == LIMIT)
        if len(met):
            by = along.limits.rows[np.argmax(over[met], axis=1)]
            normal = np.einsum("nc,ncm->nm", by, p.n[met])
            size = np.maximum(np.sum(normal**2, axis=1, keepdims=True), NOTHING)
            d[met] -= 2.0 * np.sum(normal * d[met], axis=1, keepdims=True) / size * normal
        d[~fine & (ends != LIMIT)] *= -1.0
        on = np.flatnonzero(fine)
        p = p.put(on, there[on])
    return p, d


# ---- a target ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Positions:
    """Joints of one freedom: rows (k, columns) of their velocities, and their places (k,) in q.

    Or those of each of n points: (n, k, columns) and (n, k).
    """

    rows: Array
    places: Indices


def lead(
    along: Continuation,
    p: Points,
    joints: Positions,
    goal: Array,
    alike: Indices | None = None,
    strides: int = LONGEST_LEAD,
) -> tuple[Points, Array, Array]:
    """Points led straight to where joints have the positions ``goal`` (n, k), or towards it.

    The nearest points; what stopped each, nothing where it arrived; how far limits were passed by
    the last stride of each (n, limits). ``alike``: numbers of rows of which one that arrives is
    enough; ``strides``: how many there are at most. On a sheet of as many joints as there are
    freedoms, :meth:`robomodel.mechanism.sheets.Sheet.lead` takes fewer.
    """
    count, places = len(p.q), np.broadcast_to(joints.places, goal.shape)
    rows = np.broadcast_to(joints.rows, (*goal.shape, joints.rows.shape[-1]))
    ends, over = np.zeros(count, dtype=int), np.zeros((count, len(along.limits.places)))
    missing = goal - np.take_along_axis(p.q, places, 1)
    off, longest = np.linalg.norm(missing, axis=1), np.full(count, WALK_STRIDE)
    going, p = np.flatnonzero(off > ROUNDING), p[np.arange(count)]  # a copy, whose rows are moved
    for _ in range(strides):
        if not len(going):
            break
        here = p[going]
        inverse = np.linalg.pinv(rows[going] @ here.n, rcond=SINGULAR)
        way = (inverse @ missing[going][:, :, None])[:, :, 0]
        there, end, over[going] = along.advance(here, way, longest[going])
        left = goal[going] - np.take_along_axis(there.q, places[going], 1)
        size = np.linalg.norm(left, axis=1)
        nearer = (end == FINE) & (size < off[going])
        ends[going] = np.where(nearer, FINE, np.where(end, end, TURN))
        on = going[nearer]
        p.move(on, there[np.flatnonzero(nearer)])
        missing[on], off[on] = left[nearer], size[nearer]
        longest[going] *= np.where(nearer, 2.0, 0.5)
        longest = np.minimum(longest, WALK_STRIDE)
        stuck = ~nearer & (off[going] <= CONVERGED)  # rounding is left
        short = longest[going] <= SHORTEST_SHARE * WALK_STRIDE
        going = going[(off[going] > ROUNDING) & ~short & ~stuck]
        if alike is not None:
            going = going[~np.isin(alike[going], alike[off <= CONVERGED])]
    arrived = off <= CONVERGED
    return p, np.where(arrived, FINE, np.where(ends, ends, FAR)), over


# ---- a path of one freedom -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Turning:
    """Hinges that may turn fully, and the ways (k, columns) for 1 rad of each alone."""

    joints: Positions
    ways: Array

    def turns(self, away: Array) -> Array:
        """Whole turns [rad] of each hinge on ways (..., columns)."""
        return np.asarray(math.tau * np.round(away @ self.joints.rows.T / math.tau))

    def apart(self, away: Array) -> Array:
        """Ways (..., columns) without whole turns."""
        return np.asarray(away - self.turns(away) @ self.ways)


class End(NamedTuple):
    """The end of a path, and by which limit (its number); nothing where it is long enough."""

    why: Ends
    limit: int = -1


def nears_limit(at: Array, low: Array, high: Array) -> bool:
    """True if a joint goes one way all along the later half of a path, towards a limit.

    ``at`` (points, joints): their positions, ``low`` and ``high`` their limits.
    """
    steps = np.diff(at[len(at) // 2 :], axis=0)
    up = np.all(steps > NOTHING, axis=0) & np.isfinite(high)
    down = np.all(steps < -NOTHING, axis=0) & np.isfinite(low)
    return bool(np.any(up | down))


@dataclass(frozen=True, eq=False)
class Path:
    """A path of one freedom: points, arc lengths from where it was begun, and what ends it.

    ``ring``: the last point is the first one, full turns on.
    """

    points: Points
    lengths: Array
    ends: tuple[End, End]
    ring: bool


def path(
    along: Continuation, start: Points, turning: Turning, longest: float = LONGEST_PATH
) -> Path:
    """The path through a point, both ways to their ends, or round.

    Each half ends at a limit, at a dead point of the sheet's joints, where strides are refused, or
    at its ``longest``.
    """
    halves = [_Half(along, turning, replace(start, n=sign * start.n), longest)
              for sign in (1.0, -1.0)]  # fmt: skip
    while (going := [half for half in halves if half.going]) and not any(h.ring for h in halves):
        p, lengths = joined([half.points[-1] for half in going]), [half.stride for half in going]
        there, ends, _ = along.advance(p, np.ones((len(going), 1)), np.array(lengths))
        for n, half in enumerate(going):
            half.take(there[[n]], Ends(int(ends[n])))
    for half in halves:
        if half.ring:
            return Path(joined(half.points), np.array(half.lengths), (half.end, half.end), True)
    forth, back = halves
    behind = [replace(p, n=-p.n) for p in back.points[:0:-1]]
    lengths = [-x for x in back.lengths[:0:-1]] + forth.lengths
    points = joined([*behind, *forth.points])
    return Path(points, np.array(lengths), (back.end, forth.end), False)


class _Half:
    """One way of a path, as far as it is followed."""

    def __init__(
        self, along: Continuation, turning: Turning, start: Points, longest: float
    ) -> None:
        self.along, self.turning, self.longest = along, turning, longest
        self.points, self.lengths, self.stride = [start], [0.0], WALK_ALONG
        self.end, self.going, self.ring = End(Ends.FINE), True, False

    def take(self, there: Points, ends: Ends) -> None:
        """A stride, up to what ends the path on it; shorter next where it was refused."""
        if ends == Ends.FINE:
            self._add(there, self.stride)
            self.stride = min(WALK_ALONG, 2.0 * self.stride)
            self.ring = self._round()
            if self.lengths[-1] >= self.longest and self._nears_limit():
                self.longest *= 2.0
            self.going = not self.ring and self.lengths[-1] < self.longest
        elif ends in (Ends.LIMIT, Ends.SHEET):
            self._end(ends)
        else:
            self.stride *= 0.5
            if self.stride < SHORTEST_SHARE * WALK_ALONG:
                self.going, self.end = False, End(ends)

    def _nears_limit(self) -> bool:
        limits = self.along.limits
        at = np.concatenate([p.q[:, limits.places] for p in self.points])
        return self.longest < TO_LIMITS and nears_limit(at, limits.low, limits.high)

    def _add(self, there: Points, length: float) -> None:
        self.points.append(there)
        self.lengths.append(self.lengths[-1] + length)

    def _end(self, ends: Ends) -> None:
        """Up to the first limit that is met, or to the dead point of the sheet's joints."""
        along, here = self.along, self.points[-1]

        def point(length: float) -> Points:
            return along.moved(here, length * here.n[:, :, 0])[0]

        def passed(length: float) -> float:
            there = point(length)
            if ends == Ends.LIMIT or along.sheet is None:
                return float(np.max(along.limits.beyond(there.q)))
            return -float(along.along_sheet(here, there, along.sheet)[0])

        length, now = 0.0, passed(0.0)
        if now < -ROUNDING:
            length = root(passed, (0.0, self.stride), (now, passed(self.stride)), ROUNDING)
        there = point(length)
        if ends == Ends.SHEET and float(np.max(along.limits.beyond(there.q), initial=0.0)) > WITHIN:
            self._end(Ends.LIMIT)  # which is met before
            return
        if ends == Ends.LIMIT and along.sheet is not None:
            rates = float(np.linalg.norm(along.sheet @ there.n[0]))
            ends = Ends.SHEET if rates <= MOVES else ends  # a limit that lies on one, too
        limit = int(np.argmax(along.limits.beyond(there.q)[0])) if ends == Ends.LIMIT else -1
        self.going, self.end = False, End(ends, limit)
        if length > 0.0:
            self._add(there, length)

    def _round(self) -> bool:
        """True if it is back where it began, but for full turns; these then are the last point."""
        first, last = self.points[0], self.points[-1]
        tangent = first.n[0, :, 0]
        if self.lengths[-1] < ROUND or float(tangent @ last.n[0, :, 0]) < 0.9:
            return False
        back = self.along.mechanism.away(first.q, last.q)[0]
        turns, back = self.turning.turns(back), self.turning.apart(back)
        size = float(np.linalg.norm(back))
        if size > 1.1 * WALK_ALONG or float(back @ tangent) > 0.0:
            return False
        # a screw comes by where it began, and so do wheels whose ratio is nearly a whole number
        along = self.along
        there, _, closed = along.corrected(last, last.n[:, :, 0] * -(last.n[:, :, 0] @ back))
        missed = self.turning.apart(along.mechanism.away(first.q, there))
        if not closed[0] or np.linalg.norm(missed) > max(ROUND_MISSED, along.crossing):
            return False
        q = first.q.copy()
        q[0, self.turning.joints.places] += turns
        self._add(replace(first, q=q), size)
        return True
