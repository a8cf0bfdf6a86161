"""Paths of closed configurations of one freedom: followed to the first limit or dead point.

With joints of a part (:mod:`robomodel.reach.parts`) held so that one freedom is left (but for
freedoms that move no joint of one freedom, as spins of rods), its closed configurations are a
curve. It is followed along its tangent both ways, to where a joint meets a limit, to a dead point
of joints that shall tell where the loops are (these rest there while others move, and what is
beyond is on another sheet), or round to where it began.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.mechanism import closure as newton
from robomodel.mechanism.continuation import FINE, Points
from robomodel.mechanism.continuation import joined as joined_points
from robomodel.mechanism.roots import root
from robomodel.mechanism.walks import (
    LONGEST_PATH,
    ROUND_MISSED,
    TO_LIMITS,
    Positions,
    lead,
    nears_limit,
)
from robomodel.reach.charts import Chart, turned_charts, without_idle
from robomodel.reach.parts import Part
from robomodel.tolerances import MOVES, NOTHING, WITHIN

PATH_STEP = 0.08  # radians, or cluster sizes, along a path or curve
SHORTEST_PATH_STEP = 1e-5  # of these steps
AHEAD = 0.95  # cosine of the angle between tangents of neighbours
WEAK = 1e-3  # of the greatest singular value: rounding, 1e-6, parts ways that cross by its root

Kind = Literal["limit", "dead point", ""]


@dataclass(frozen=True, slots=True)
class RangeEnd:
    """The end of a joint's range: what ends it, and at which position.

    ``kind``: "limit" of the joint ``by``, "dead point" of the loop or coupling ``by``, or "" where
    nothing ends it. ``searched``: it is the farthest that searches among several freedoms have
    reached, or that a long path was followed; the joint may go farther.
    """

    position: float
    kind: Kind
    by: str
    searched: bool = False

    def __str__(self) -> str:
        words = {
            "limit": f"limit of '{self.by}'",
            "dead point": f"dead point of '{self.by}'",
            "": "no end was found" if self.searched else "nothing ends it",
        }
        return words[self.kind]


class End(NamedTuple):
    """Where a half of a path ends, and why."""

    q: Array
    kind: Kind
    by: str


@dataclass(frozen=True, eq=False)
class Path:
    """A curve of closed configurations of a part of a cluster.

    ``q`` (n, nq of the cluster's spanning positions), ``tangents`` (n, columns of the cluster, in
    comparable units) along it, ``start`` the index where it starts, ``ends`` what ends it.
    ``ring``: it comes back to where it began.
    """

    part: Part
    q: Array
    tangents: Array
    start: int
    ends: tuple[End, End]
    ring: bool
    held: tuple[int, ...]

    def range(self, column: int) -> tuple[RangeEnd, RangeEnd]:
        """How far a joint with one freedom goes along it."""
        part, place = self.part, self.part.place[column]
        at = self.q[:, place]
        net = float(at[-1] - at[0])
        if np.max(np.abs(self.tangents[:, column])) <= MOVES:  # it rests
            here = RangeEnd(float(at[self.start]), "", "")
            return here, here
        if self.ring and abs(net) > math.pi:
            return RangeEnd(-math.inf, "", ""), RangeEnd(math.inf, "", "")
        result = []
        for sign in (-1.0, 1.0):
            n = int(np.argmax(sign * at))
            x, kind, by = float(at[n]), *self._end(n)
            turned = self._turn(column, n)
            if turned is not None and sign * (turned[0] - x) >= -WITHIN:
                x, kind, by = round(turned[0], 12) + 0.0, "dead point", turned[1]
            if (
                not kind
                and not self.ring
                and self._unlimited(column, sign * float(at[n] - at[self.start]))
            ):
                x = sign * math.inf
            stopped = not kind and not self.ring and n in (0, len(self.q) - 1)
            own = part.high[column] if sign > 0.0 else part.low[column]
            mine = kind == "limit" and by == part.names[column]
            if math.isfinite(own) and (mine or abs(x - own) <= WITHIN):
                x, kind, by = float(own), "limit", part.names[column]
            result.append(RangeEnd(x, kind, by, not kind and stopped and math.isfinite(x)))
        return result[0], result[1]

    def _end(self, n: int) -> tuple[Kind, str]:
        """The cause that ends the path at a point of it: nothing within."""
        if self.ring or 0 < n < len(self.q) - 1:
            return "", ""
        end = self.ends[0] if n == 0 else self.ends[1]
        return end.kind, end.by

    def _unlimited(self, column: int, travel: float) -> bool:
        """True if a joint has gone so far without meeting anything that it goes on for ever."""
        return travel > self.part.endless(column)

    def _turn(self, column: int, n: int) -> tuple[float, str] | None:
        """Where a joint turns back beside a point of the path: its position, and which loop's."""
        count = len(self.q)
        pairs = [(n - 1, n), (n, n + 1)]
        if self.ring:  # the last point is the first one
            pairs = [((a if a >= 0 else count - 2), b if b < count else 1) for a, b in pairs]
        rates = self.tangents[:, column]
        for a, b in pairs:
            if a >= 0 and b < count and rates[a] * rates[b] <= 0.0:
                q, tangent = self._located(a, column)
                return self.part.position(q, column), self.part.loop_of(tangent, q, [column])
        return None

    def at(self, place: float) -> Array:
        """The spanning positions at a fractional index."""
        return np.asarray(self.among(np.array([place]))[0])

    def among(self, places: Array) -> Array:
        """The spanning positions (n, nq) at fractional indices (n,)."""
        part, along = self.part, self.part.strides(self.held)
        first = np.minimum(places.astype(int), len(self.q) - 2)
        shares = places - first
        result: Array = self.q[first + np.round(shares).astype(int)]
        between = np.flatnonzero((shares != 0.0) & (shares != 1.0))
        if len(between):
            first, q = first[between], self.q[first[between]]
            away = part.geometry.difference(q, self.q[first + 1]) / part.unit * part.free(self.held)
            lengths = shares[between] * np.linalg.norm(away, axis=1)
            ways = lengths[:, None] * part.among(self.tangents[first], self.held)
            moved, _, closed = along.corrected(along.at(q), ways)
            result[between] = part.completed(np.where(closed[:, None], moved, q))
        return result

    def turns(self, column: int) -> list[Array]:
        """Where a joint turns back; nowhere if it rests."""
        rates = self.tangents[:, column]
        if np.max(np.abs(rates)) <= MOVES:
            return []
        return [self._located(int(a), column)[0]
                for a in np.flatnonzero(rates[1:] * rates[:-1] < 0.0)]  # fmt: skip

    def within(self, column: int, free: float) -> list[Array]:
        """The points at which a joint is farthest; without ends up to ``free`` from the start."""
        at = self.q[:, self.part.place[column]]
        low, high = self.range(column)
        here = float(at[self.start])
        least = here - free if math.isinf(low.position) else low.position
        most = here + free if math.isinf(high.position) else high.position
        inside = (at >= least - WITHIN) & (at <= most + WITHIN)
        ends = (np.argmin(np.where(inside, at, np.inf)), np.argmax(np.where(inside, at, -np.inf)))
        return [self.q[n] for n in ends if n != self.start]

    def step(self, a: int) -> PathStep:
        """From a point to the next."""
        part, q, moved = self.part, self.q[a], self.q[a + 1]
        away = part.geometry.difference(q, moved) / part.unit * part.free(self.held)
        reach = float(np.linalg.norm(away))
        start = part.strides(self.held).at(q[None])
        return PathStep(
            part, self.held, start, self.tangents[a], reach, moved, self.tangents[a + 1]
        )

    def _located(self, a: int, column: int) -> tuple[Array, Array]:
        """The configuration between point a and the next at which a joint rests; its tangent."""
        step = self.step(a)
        return step.at(step.root(1.5 * step.length, lambda _, t: float(t[column])))


def halves_from(
    part: Part, q: Array, held: Sequence[int], column: int, telling: Sequence[int]
) -> tuple[Half, Half] | tuple[()]:
    """The path from q on which ``held`` columns rest and a joint of ``column`` moves.

    Its halves, back and forth, to be followed (:func:`walk`). They end at dead points of the
    columns ``telling``. Empty where more than one freedom is left beside spins of rods. Joints that
    q has beyond a limit may go back, but no further.
    """
    motions = without_idle(part.null(q, held), part.interest)
    if motions.shape[1] != 1:
        return ()
    ahead = motions[:, 0] * (1.0 if motions[column, 0] > 0.0 else -1.0)
    rows = part.rows_of(telling)
    back, forth = (Half(part, held, q, way, _Ends.at(part, q, rows)) for way in (-ahead, ahead))
    return back, forth


def joined(back: Half, forth: Half) -> Path:
    """Both halves of a path as one; where it comes round one half is the whole."""
    part = forth.part
    if forth.ring:
        q, tangents, start, ends = forth.q, forth.tangents, 0, (forth.end, forth.end)
    else:
        q = back.q[:0:-1] + forth.q
        tangents = [-x for x in back.tangents[:0:-1]] + forth.tangents
        start, ends = len(back.q) - 1, (back.end, forth.end)
    points = part.completed(np.array(q))
    return Path(part, points, np.array(tangents), start, ends, forth.ring, forth.held)


def walk(halves: Sequence[Half]) -> None:
    """Follow halves of paths at once, each to its end; what begins alike is walked once."""
    alike: dict[object, list[Half]] = {}
    for half in halves:  # also with other columns that are held, if these are as many
        part = half.part
        same = (id(part.geometry), part.rows, part.columns, part.rank, half.along.columns)
        alike.setdefault(same, []).append(half)
    for some in alike.values():
        side_by_side, going = _SideBySide(some), np.arange(len(some))
        while len(going):
            going = side_by_side.stride(going)


class Half:
    """One half of a path, from a start along a tangent, as far as it is followed.

    Up to the first of ``ends``; without them through limits and dead points, until the joint of
    ``column`` has turned by 2π. It ends in any case where it comes round, or is ``longest``, unless
    a joint nears its limit there.
    """

    def __init__(
        self, part: Part, held: Sequence[int], start: Array, ahead: Array,
        ends: _Ends | None = None, *, column: int | None = None, longest: float = LONGEST_PATH,
    ) -> None:  # fmt: skip
        self.part, self.held, self.along = part, tuple(held), part.strides(held)
        self.at = self.along.at(start[None])
        if self.along.freedoms == 1:  # also where K has lost a rank, and N says nothing
            self.at = self.along.facing(self.at, part.among(ahead, held)[None, :, None])
        self.way = part.ahead(self.at, part.among(ahead, held)[None], held)[0]
        self.q, self.tangents, self.lengths = [start], [ahead], [0.0]
        self.end, self.ring = End(start, "", ""), False
        self.ends, self.column, self.longest = ends, column, longest

    @property
    def beginning(self) -> object:
        """Halves in which it is equal go the same way, to ends of their own."""
        start, ahead = self.q[-1].tobytes(), self.tangents[-1].tobytes()
        return start, ahead, self.way.tobytes(), self.held, self.part.interest

    @property
    def turning(self) -> list[int]:
        """The columns of joints that may turn fully."""
        part = self.part
        return [c for c in part.columns if c in part.place and not part.lengths[c]
                and (self.ends is None or c not in part.limited)]  # fmt: skip

    @property
    def nears_limit(self) -> bool:
        """True if one of the limits that end it is ahead."""
        if self.ends is None:
            return False
        _, places, sides = self.part.sides
        at = sides * np.array(self.q)[:, places]
        return nears_limit(at, np.full(len(sides), -math.inf), self.ends.limits)

    def add(self, q: Array, tangent: Array, stride: float) -> None:
        """A point, so far from the last."""
        self.q.append(q)
        self.tangents.append(tangent)
        self.lengths.append(self.lengths[-1] + stride)

    def stop(self) -> None:
        """The end where no stride is short enough: loops do not close beyond."""
        q = self.q[-1]
        self.end = End(q, "dead point", self.part.loop_of(self.tangents[-1], q, self.held))


class _SideBySide:
    """Halves of paths that hold as many columns of one part.

    Their parts may differ in what tells where they are, not in what is related. Each half goes by a
    stride along its direction, half as long next where it is refused, or the direction turns.
    Halves on one ``track`` take the same strides, for which one of them stands.
    """

    def __init__(self, halves: Sequence[Half]) -> None:
        part, count = halves[0].part, len(halves)
        helds = [*dict.fromkeys(half.held for half in halves)]
        self.halves, self.part, self.along = halves, part, part.strides(*helds)
        tracks = dict[object, int]()
        self.track = np.array([tracks.setdefault(x.beginning, len(tracks)) for x in halves])
        case = np.array([helds.index(half.held) for half in halves], dtype=np.intp)
        self.points = replace(joined_points([half.at for half in halves]), case=case)
        self.ways = np.array([half.way for half in halves])
        self.tangents = np.array([half.tangents[-1] for half in halves])
        self.strides, self.lengths = np.full(count, PATH_STEP), np.zeros(count)
        self.longest = np.array([half.longest for half in halves])
        self.starts, self.first = self.points.q, self.tangents.copy()
        self.free = np.array([part.free_columns(half.held) for half in halves])
        self.turning = np.zeros((count, len(part.unit)))
        for mine, half in zip(self.turning, halves, strict=True):
            mine[half.turning] = 1.0
        self.limits = np.full((count, 2 * len(part.limited)), np.inf)
        self.charts = np.zeros((count, len(part.unit)))  # rows of those of one motion, the path's
        for n, half in enumerate(halves):
            if half.ends is not None:
                self.limits[n] = half.ends.limits
                if (chart := half.ends.chart) is not None and len(chart.rows) == 1:
                    self.charts[n] = chart.rows[0] * np.sign(chart.rows[0] @ half.tangents[0])

    def stride(self, rows: Indices) -> Indices:
        """A stride of each of these halves; which of them go on."""
        _, first, of = np.unique(self.track[rows], return_index=True, return_inverse=True)
        leading = rows[first]
        p, ways = self.points[leading], self.ways[leading]
        before = np.einsum("ncm,nm->nc", p.n, ways)
        there, ends = self.along.stride(p, ways * self.strides[leading, None])
        ways = self._ahead(leading, there, before)
        ahead = np.einsum("ncm,nm->nc", there.n, ways)
        fine = (np.einsum("nc,nc->n", ahead, before) > AHEAD) & (ends == FINE)
        there, ways, ahead, fine = there[of], ways[of], ahead[of], fine[of]
        refused, on = rows[~fine], rows[fine]
        self.strides[refused] *= 0.5
        lost = self.strides[refused] < SHORTEST_PATH_STEP * PATH_STEP
        for n in refused[lost]:
            self.halves[n].stop()
        if not len(on):
            return np.asarray(refused[~lost])
        there, ways = there[np.flatnonzero(fine)], ways[fine]
        tangents = np.zeros((len(on), len(self.part.unit)))
        tangents[np.arange(len(on))[:, None], self.free[on]] = ahead[fine]
        going = ~self._ended(on, there.q, tangents)
        on = on[going]
        self._take(on, there[np.flatnonzero(going)], ways[going], tangents[going])
        done = self._turned(on) | self._long(on) | self._round(on)
        return np.asarray(np.sort(np.concatenate([refused[~lost], on[~done]])))

    def _ahead(self, rows: Indices, there: Points, before: Array) -> Array:
        """:meth:`Part.ahead` of halves, whose columns that are held may differ."""
        if there.n.shape[2] == 1:
            return self.part.ahead(there, before)
        ways = np.zeros((len(rows), there.n.shape[2]))
        alike: dict[tuple[Part, tuple[int, ...]], list[int]] = {}
        for k, n in enumerate(rows.tolist()):
            half = self.halves[n]
            alike.setdefault((half.part, half.held), []).append(k)
        for (part, held), mine in alike.items():
            ways[mine] = part.ahead(there[mine], before[mine], held)
        return ways

    def _ended(self, rows: Indices, moved: Array, tangents: Array) -> Mask:
        """Which halves end on the way to where these are moved."""
        ended, halves = np.zeros(len(rows), dtype=bool), [self.halves[n] for n in rows]
        if not any(half.ends for half in halves):
            return ended
        values, charts = np.einsum("nc,nc->n", self.charts[rows], tangents), dict[int, Chart]()
        several = [half.ends.chart if half.ends else None for half in halves]
        several = [None if each is None or len(each.rows) == 1 else each for each in several]
        if any(several):
            charts = turned_charts(several, moved)
            values[[*charts]] = [chart.value for chart in charts.values()]
        near = self._near(rows, moved, tangents)
        met = near.any(axis=1) | (values < 0.0)
        for k, (n, half) in enumerate(zip(rows.tolist(), halves, strict=True)):
            if half.ends is None:
                continue
            if met[k]:
                limits = np.flatnonzero(near[k]).tolist()
                event = half.ends.first(
                    self._step(n, moved[k], tangents[k]), limits, bool(values[k] < 0.0)
                )
                if event is not None:
                    half.end, direction = event
                    ended[k] = True
                    if np.any(half.end.q != half.q[-1]):
                        half.add(half.end.q, direction, float(self.strides[n]))
            half.ends.chart = charts.get(k, half.ends.chart)
        return ended

    def _step(self, n: int, moved: Array, tangent: Array) -> PathStep:
        """A stride of a half, whose chart of one motion is brought to its start."""
        half, start = self.halves[n], self.tangents[n]
        chart = half.ends.chart if half.ends else None
        if half.ends and chart is not None and len(chart.rows) == 1:
            sign = 1.0 if self.charts[n] @ chart.rows[0] > 0.0 else -1.0
            value = np.abs(chart.rows[0] @ start)
            half.ends.chart = replace(
                chart, q=self.points.q[n], basis=sign * start[:, None], values=value
            )
        point = replace(self.points[[n]], case=np.zeros(1, dtype=np.intp))
        return PathStep(half.part, half.held, point, start, float(self.strides[n]), moved, tangent)

    def _near(self, rows: Indices, moved: Array, tangents: Array) -> Mask:
        """The limits (n, 2 limited) that joints may meet: beyond, or turning back on the way."""
        part = self.part
        columns, places, sides = part.sides
        rates, limits = sides * part.unit[columns], self.limits[rows]
        before, after = (rates * x[:, columns] for x in (self.tangents[rows], tangents))
        x, ahead = (sides * q[:, places] for q in (self.points.q[rows], moved))
        bulge = 0.25 * self.strides[rows, None] * np.maximum(before, -after)
        turning = (before > 0.0) & (after < 0.0) & (np.maximum(x, ahead) + bulge > limits)
        return np.asarray((ahead > limits + WITHIN) | turning)

    def _take(self, rows: Indices, there: Points, ways: Array, tangents: Array) -> None:
        """A stride; there halves go on along ``ways``."""
        for n, q, tangent in zip(rows.tolist(), there.q, tangents, strict=True):
            self.halves[n].add(q, tangent, float(self.strides[n]))
        self.points = self.points.put(rows, there)
        self.tangents[rows], self.ways[rows] = tangents, ways
        self.lengths[rows] += self.strides[rows]
        self.strides[rows] = np.minimum(PATH_STEP, 2.0 * self.strides[rows])

    def _long(self, rows: Indices) -> Mask:
        """Which halves are as long as they may be."""
        for n in rows[self.lengths[rows] >= self.longest[rows]].tolist():
            if self.halves[n].nears_limit and self.longest[n] < TO_LIMITS:
                self.longest[n] *= 2.0
        return np.asarray(self.lengths[rows] >= self.longest[rows])

    def _turned(self, rows: Indices) -> Mask:
        """Which joints of halves' columns have turned by 2π, or what drives these, by gears."""
        part, turned = self.part, np.zeros(len(rows), dtype=bool)
        for k, n in enumerate(rows.tolist()):
            c = self.halves[n].column
            if c is not None and c in part.place and not part.lengths[c]:
                place = part.place[c]
                way = abs(self.points.q[n, place] - self.starts[n, place])
                turned[k] = way >= math.tau * part.unit[c]
        return turned

    def _round(self, rows: Indices) -> Mask:
        """Which halves are back where they began, but for turns without limits, and spins of rods.

        Then the start itself, so many turns on, is the last point.
        """
        part, back = self.part, np.zeros(len(rows), dtype=bool)
        shown = np.ones(len(part.unit))
        if self.points.n.shape[2] > 1:
            shown[:] = np.isin(np.arange(len(shown)), part.interest)
        along = np.einsum("nc,nc->n", self.first[rows], self.tangents[rows])
        some = np.flatnonzero((self.lengths[rows] >= 10.0 * PATH_STEP) & (along >= 0.9))
        if not len(some):
            return back
        mine = rows[some]
        away = part.geometry.difference(self.starts[mine], self.points.q[mine])
        away *= part.free() * shown
        turns = self.turning[mine] * np.round(away / (2.0 * math.pi))
        away = (away - 2.0 * math.pi * turns) / part.unit
        far = np.linalg.norm(away, axis=1)
        back[some] = (far <= 1.1 * PATH_STEP) & (
            np.einsum("nc,nc->n", away, self.first[mine]) <= 0.0
        )
        for k in np.flatnonzero(back[some]).tolist():
            if not self._meets_start(mine[k], away[k], turns[k], shown):
                back[some[k]] = False
                continue
            half, start = self.halves[mine[k]], self.starts[mine[k]]
            q = start.copy() if shown.all() else self.points.q[mine[k]].copy()
            for c in part.interest:
                q[part.place[c]] = start[part.place[c]]
            for c in half.turning:
                q[part.place[c]] += 2.0 * math.pi * turns[k, c]
            if not shown.all():  # spins go on
                held = newton.Held(part.interest)
                q = newton.close(part.geometry, q, held, rows=list(part.rows))[0]
            half.ring = True
            half.add(q, half.tangents[0], float(far[k]))
        return back

    def _meets_start(self, n: int, away: Array, turns: Array, shown: Array) -> bool:
        """True if a half leads on to its start, from which it is ``away`` but for turns.

        Screws come by where they began, as do wheels whose ratio is nearly a whole number.
        """
        part, p, held = self.part, self.points[[n]], self.halves[n].held
        if shown.all():
            back = p.n[0] @ (p.n[0].T @ part.among(away, held))
            there = self.along.corrected(p, -back[None])[0]
        else:
            places = np.array([part.place[c] for c in part.interest], dtype=np.intp)
            rates = part.rates(held)[list(part.interest)]
            goal = self.starts[n].copy()
            goal[places] += math.tau * turns[list(part.interest)]
            there = lead(self.along, p, Positions(rates, places), goal[None, places])[0].q
        off = part.geometry.difference(self.starts[n], there[0]) * part.free() * shown
        missed = np.linalg.norm((off - math.tau * turns) / part.unit)
        return bool(missed <= max(ROUND_MISSED, part.crossing))


@dataclass(frozen=True, eq=False)
class PathStep:
    """From one point of a path to the next, of a length, while columns are held."""

    part: Part
    held: tuple[int, ...]
    start: Points
    tangent: Array
    length: float
    moved: Array
    along: Array

    def at(self, length: float) -> tuple[Array, Array]:
        """A point of the way, and the tangent there."""
        part, start, along = self.part, self.start, self.part.strides(self.held)
        before = part.among(self.tangent, self.held)[None]
        if length:
            there, closed, _ = along.moved(start, length * before)
            if closed[0]:
                way = part.ahead(there, before, self.held)[0]
                return there.q[0], part.whole(there.n[0] @ way, self.held)
        return start.q[0], self.tangent

    def across(self, value: Callable[[Array, Array], float]) -> Array:
        """About where a function changes its sign, next to where K loses rank.

        No step of Newton's closes loops there. So the way is interpolated (Hermite's cubic, between
        both ends and tangents).
        """
        part, unit, q = self.part, self.part.unit, self.start.q[0]
        chord = part.geometry.difference(q, self.moved) * part.free()
        first, last = (unit * self.length * t for t in (self.tangent, self.along))

        def point(share: float) -> Array:
            rest = 1.0 - share
            way = share * rest * rest * first - share * share * rest * last
            way += share * share * (3.0 - 2.0 * share) * chord
            return part.geometry.integrate(q, way)

        def signal(share: float) -> float:
            return value(point(share), (1.0 - share) * self.tangent + share * self.along)

        return point(root(signal, (0.0, 1.0), (signal(0.0), signal(1.0)), NOTHING))

    def closed(self, q: Array) -> Array:
        """A point of :meth:`across`, closed as far as K has its rank."""
        part = self.part
        held = newton.Held(np.flatnonzero(part.free(self.held) == 0.0).tolist())
        rows = list(part.rows)
        return newton.close(part.geometry, q, held, rows=rows, iterations=10, rank=WEAK)[0]

    def root(self, until: float, value: Callable[[Array, Array], float]) -> float:
        """The length up to ``until`` at which a function changes its sign; 0 where it does not."""

        def along(length: float) -> float:
            return value(*self.at(length))

        first = along(0.0)
        if abs(first) <= NOTHING or first * (last := along(until)) > 0.0:
            return 0.0
        return root(along, (0.0, until), (first, last), NOTHING)


@dataclass
class _Ends:
    """The ends of a half of a path: limits, and dead points of joints that a chart is of."""

    part: Part
    chart: Chart | None
    limits: Array

    @staticmethod
    def at(part: Part, start: Array, rows: Array) -> _Ends:
        """From a start; joints that it has beyond a limit go no further."""
        columns, places, sides = part.sides
        bounds = np.where(sides < 0.0, -part.low[columns], part.high[columns])
        limits = np.maximum(bounds, sides * start[places])
        return _Ends(part, Chart.at(part, start, rows), limits)

    def first(self, step: PathStep, near: Sequence[int], beyond: bool) -> tuple[End, Array] | None:
        """The end of the path on a step, and the tangent there.

        ``near``: the limits that joints may meet; ``beyond``: whether it ends beyond a dead point.
        """
        first, by, kind = math.inf, "", ""
        part, chart = self.part, self.chart
        for n in near:
            at = self._meets(step, n)
            if at < first - WITHIN:
                first, by, kind = at, part.names[part.sides[0][n]], "limit"
        if chart is not None and beyond:

            def orientation(p: Array, _: Array) -> float:
                return chart.turned(p).value

            at = step.root(step.length, orientation)
            if at < first:
                first, kind = at, "dead point"
        if math.isinf(first):
            return None
        if chart is not None:
            there = chart.turned(step.at(first)[0])
            if kind == "dead point" or there.dead:  # a limit that lies on one, too
                kind, by = "dead point", there.loop
        q, tangent = step.at(first)
        return End(q, "limit" if kind == "limit" else "dead point", by), tangent

    def _meets(self, step: PathStep, n: int) -> float:
        """The length at which a joint meets its limit; infinite where it does not on the way."""
        columns, places, sides = self.part.sides
        column, place, side = int(columns[n]), int(places[n]), float(sides[n])
        limit, until = float(self.limits[n]), step.length
        if side * step.moved[place] <= limit + WITHIN:
            until = step.root(until, lambda _, t: float(t[column]))
            if side * step.at(until)[0][place] <= limit + WITHIN:
                return math.inf
        return step.root(until, lambda p, _: float(p[place]) - side * limit)
