"""Points of a sheet that are uniform in the joints that tell where it is, each led to by a path.

Random walks cross a set in steps that are short in each of its joints, and the far parts of a large
one have too few of their points. On a sheet, where joints tell the configuration, straight ways of
these lead on through a place, both ways to where the sheet ends: a chord. A point anywhere on it
stands for the set as the place does (hit and run: Smith, 1984), so that places that are uniform in
the joints stay so, and those that begin at one place become so. Draws are led to from the nearest
of these places where the sheet has much of the box between its joints' ends, else they are on
chords.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.mechanism.continuation import Continuation, Points
from robomodel.mechanism.sheets import Places, Sheet, together
from robomodel.tolerances import TINY

if TYPE_CHECKING:
    from numpy.random import Generator

# walks at once, of which half begin at the origin; chords in turn, for each joint, until places are
# uniform; chords in turn from these, each of which ends with a draw
WALKS, SWEEPS, CHORDS = 96, 3, 2
OFTEN = 0.2  # of targets in a box: with less of them reached, draws are on chords


@dataclass(frozen=True, eq=False)
class Box:
    """Ends (k,) of joints, whose positions are ways from an ``origin`` (nq,).

    ``turns``: which are ways of balls, which have no ends but half a turn from where they are.
    """

    origin: Array
    low: Array
    high: Array
    turns: Mask

    @property
    def ranges(self) -> Array:
        """How far the joints go."""
        return np.maximum(self.high - self.low, TINY)

    def ends(self, y: Array, ways: Array) -> tuple[Array, Array]:
        """The least and greatest times (n,) that ways (n, k) from positions y stay in it."""
        still, y = np.abs(ways) <= TINY, np.where(self.turns, 0.0, y)
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.sort(np.stack([(self.low - y) / ways, (self.high - y) / ways]), axis=0)
        first = np.max(np.where(still, -np.inf, times[0]), axis=1)
        last = np.min(np.where(still, np.inf, times[1]), axis=1)
        moves = ~still.all(axis=1)
        return np.where(moves, np.minimum(first, 0.0), 0.0), np.where(
            moves, np.maximum(last, 0.0), 0.0
        )

    def targets(self, rng: Generator, count: int) -> Array:
        """Positions (count, k) in it."""
        return rng.uniform(self.low, self.high, (count, len(self.low)))


@dataclass(frozen=True, eq=False)
class Explored:
    """A sheet in a box of its joints: places that are uniform in these."""

    sheet: Sheet
    box: Box
    found: Places

    @classmethod
    def of(cls, along: Continuation, origin: Points, rows: Array, box: Box) -> Explored:
        """The part that chords lead to from an origin; ``rows`` (k, columns) of joints."""
        rng = np.random.default_rng(20261129)
        begun = cls.at(along, origin.q, rows, box)
        p, axes = begun.found, np.diag(box.ranges)
        for count in (WALKS // 2, *(WALKS,) * (SWEEPS - 1)):
            p = p[np.arange(count) % len(p.q)]
            ends = _Chords(begun, rng, p, _orthogonal(rng, axes, count)).followed()
            p, axes = ends[-1], replace(begun, found=together(ends))._axes
        return replace(begun, found=together(ends))

    @classmethod
    def at(cls, along: Continuation, q: Array, rows: Array, box: Box) -> Explored:
        """With places at configurations q (n, nq)."""
        sheet = Sheet(along, rows, box.ranges)
        return cls(sheet, box, sheet.at(q))

    @cached_property
    def points(self) -> Points:
        """The places as points."""
        return self.sheet.along.at(self.found.q)

    @cached_property
    def share(self) -> float:
        """The part of the box that is reached, about; 0 where there are balls."""
        if self.box.turns.any():
            return 0.0
        goals = self.box.targets(np.random.default_rng(20261129), WALKS)
        return float(np.mean(self._led(goals)[1]))

    def independent(self, count: int) -> int:
        """How many of so many draws are, at least: those on chords come from so many walks."""
        return count if self.share >= OFTEN else min(count, WALKS)

    def draw(self, rng: Generator, count: int) -> Points:
        """Points of it, uniform in the joints."""
        q, left = list[Array](), count
        while left > 0 and self.share >= OFTEN:
            there, arrived = self._led(self.box.targets(rng, 8 + math.ceil(left / self.share)))
            q.append(there.q[np.flatnonzero(arrived)[:left]])
            left -= len(q[-1])
        if left > 0:
            q.append(self._on_chords(rng, left).q)
        return self.sheet.along.at(np.concatenate(q))

    def known(self, rng: Generator, count: int) -> Points:
        """The like of :meth:`draw`, but the places themselves where draws are on chords of these.

        Such draws come from as many walks, and are no more independent of each other.
        """
        size = len(self.found.q)
        if count > size or self.share >= OFTEN:
            return self.draw(rng, count)
        return self.points[rng.permutation(size)[:count]]

    def _positions(self, q: Array) -> Array:
        """The joints' positions (n, k)."""
        away = self.sheet.along.mechanism.away(np.broadcast_to(self.box.origin, q.shape), q)
        return np.asarray(away @ self.sheet.rows.T)

    @cached_property
    def _at(self) -> Array:
        """The joints' positions at the places."""
        return self._positions(self.found.q)

    @cached_property
    def _axes(self) -> Array:
        """Columns (k, k) with which unit vectors are as long in any direction as places spread."""
        sizes, axes = np.linalg.eigh(np.cov(self._at.T))
        return np.asarray(axes * np.sqrt(np.maximum(sizes, 0.0)))

    def _led(self, goals: Array) -> tuple[Places, Mask]:
        """Where ways to ``goals`` (n, k) from the nearest places end, and which arrive."""
        at, nearest = self._at / self.box.ranges, list[Indices]()
        squares = 0.5 * np.sum(at**2, axis=1)
        for some in np.array_split(goals / self.box.ranges, math.ceil(len(goals) / 256)):
            nearest.append(np.argmin(squares - some @ at.T, axis=1))
        start = np.concatenate(nearest)
        there, arrived, _ = self.sheet.lead(self.found[start], goals - self._at[start])
        return there, arrived

    def _on_chords(self, rng: Generator, count: int) -> Places:
        """Places on chords, one after the other, from some of those that are known."""
        size, some = len(self.found.q), math.ceil(count / CHORDS)
        p = self.found[rng.permutation(size)[:some] if some <= size
                       else rng.integers(size, size=some)]  # fmt: skip
        ways = _orthogonal(rng, self._axes, some)[:CHORDS]
        return together(_Chords(self, rng, p, ways).followed())[:count]


class _Chords:
    """Walks along some chords each, one through a place anywhere on the one before.

    Places are tried on a chord in the box, then on what is left of it before where the sheet ended.
    Each walk goes on as soon as it can, whichever of its chords others are on.
    """

    def __init__(self, explored: Explored, rng: Generator, p: Places, ways: Array) -> None:
        """From p (n), along ``ways`` (chords, n, k)."""
        self.explored, self.rng, self.ways = explored, rng, ways
        every = np.arange(len(p.q))
        self.at, self.places = p[every], [p[every] for _ in ways]  # copies, whose rows are moved
        self.number, self.left = np.zeros(len(every), dtype=np.intp), np.zeros(len(every))
        self.first, self.last, self.t = (np.zeros(len(every)) for _ in range(3))

    def followed(self) -> list[Places]:
        """The places on their first chords, on their second, and so on."""
        ways = self._begun(np.arange(len(self.at.q)))
        self.explored.sheet.lead(self.at, ways, self._further)
        return self.places

    def _begun(self, rows: Indices) -> Array:
        """Ways (n, k) to places on chords of these walks that are new."""
        q, ways = self.at.q[rows], self.ways[self.number[rows], rows]
        self.first[rows], self.last[rows] = self.explored.box.ends(
            self.explored._positions(q), ways
        )
        self.left[rows] = 8  # both ends, and more where strides of another length are refused
        return self._tried(rows)

    def _tried(self, rows: Indices) -> Array:
        """Ways (n, k) to places on what is left of chords."""
        self.t[rows] = self.rng.uniform(self.first[rows], self.last[rows])
        return np.asarray(self.t[rows, None] * self.ways[self.number[rows], rows])

    def _further(
        self, rows: Indices, there: Places, arrived: Mask, until: Array
    ) -> tuple[Indices, Places, Array]:
        """As of :data:`robomodel.mechanism.sheets.Further`."""
        self.at.move(rows[arrived], there[np.flatnonzero(arrived)])
        others = rows[~arrived]
        t = self.t[others] * until[~arrived]
        self.first[others] = np.where(t < 0.0, t, self.first[others])
        self.last[others] = np.where(t > 0.0, t, self.last[others])
        self.left[others] -= 1
        over = arrived | (self.left[rows] == 0)
        again, rows = rows[~over], rows[over]
        for n in np.unique(self.number[rows]).tolist():
            mine = rows[self.number[rows] == n]
            self.places[n].move(mine, self.at[mine])
        self.number[rows] += 1
        rows = rows[self.number[rows] < len(self.ways)]
        ways = np.concatenate([self._tried(again), self._begun(rows)])
        rows = np.concatenate([again, rows])
        return rows, self.at[rows], ways


def _orthogonal(rng: Generator, axes: Array, count: int) -> Array:
    """Directions (k, count, k): for each row what axes make of random orthogonal ones, in turn."""
    turns = np.linalg.qr(rng.standard_normal((count, *axes.shape)))[0]
    return np.asarray(np.moveaxis(axes @ turns, 2, 0))
