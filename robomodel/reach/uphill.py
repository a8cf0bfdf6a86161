"""The greatest positions of a joint among closed configurations of several freedoms, within limits.

From a start the joint's position is raised along the projection of its gradient on the motions that
loops and met limits leave (Rosen, The gradient projection method for nonlinear programming, 1961),
then by Newton's method on the Lagrangian, until no slope is left: the end of a range, which a limit
or a dead point is. Tops are local: the climb begins again from configurations that random walks
reach, and a top behind a passage that none of them takes is missed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from robomodel.arrays import Array
from robomodel.mechanism.continuation import Points
from robomodel.mechanism.roots import root
from robomodel.reach.paths import (
    VARIED,
    Chart,
    Kind,
    Part,
    RangeEnd,
    turned_charts,
    without_idle,
)
from robomodel.tolerances import CONVERGED, NOTHING, SINGULAR, TINY, WITHIN

CLIMB_STRIDE = 0.1  # radians, or cluster sizes: loops bend a stride by its square half, 5 mrad
CURVED = 1e-6  # curvatures below are none: of differences by VARIED rounding leaves 1e-10


def extremes(
    part: Part, column: int, start: Array, further: Callable[[], Array]
) -> tuple[RangeEnd, RangeEnd]:
    """The ends of the range of a joint with one freedom, by its column, and what they are.

    Uphill from the start, and from ``further`` configurations, which paths lead to. Joints
    that the start has beyond a limit go no further.
    """
    climbs = [_Climb(part, column, sign, start) for sign in (-1.0, 1.0)]
    best = _tops([_Way(climb, start) for climb in climbs])
    others = [
        [_Way(climb, q) for q in climb.farther(further())] if not climb.farthest(top) else []
        for climb, top in zip(climbs, best, strict=True)
    ]
    found = iter(_tops([way for ways in others for way in ways]))
    low, high = (
        climb.end(max(top, *(next(found) for _ in ways), key=lambda each: each.height)
                  if ways else top)
        for climb, top, ways in zip(climbs, best, others, strict=True)
    )  # fmt: skip
    return low, high


@dataclass(frozen=True, eq=False)
class _Top:
    """A configuration from which no way leads up, and what forbids it."""

    q: Array
    height: float
    kind: Kind
    by: str


class _Step(NamedTuple):
    """Where a step ends, the chart there, and whether it is a dead point."""

    q: Array
    chart: Chart | None
    dead: bool


class _Climb:
    """Raises a joint, or lowers it, as far as from a start."""

    def __init__(self, part: Part, column: int, sign: float, start: Array) -> None:
        self.part, self.column, self.sign, self.start = part, column, sign, start
        self.limited = list(part.limited)
        self.place = [part.place[c] for c in self.limited]
        here = start[self.place]
        self.low = np.minimum(part.low[self.limited], here)
        self.high = np.maximum(part.high[self.limited], here)
        self.interest = part.interest
        self.endless = part.endless(column)

    def height(self, q: Array) -> float:
        """How far up the joint is."""
        return self.sign * self.part.position(q, self.column)

    def end(self, best: _Top) -> RangeEnd:
        """The end of the range, where its highest top is known."""
        searched = not self.farthest(best)
        return RangeEnd(self.sign * best.height, best.kind, best.by, searched=searched)

    def farthest(self, top: _Top) -> bool:
        """True if nothing ends it, or the joint's own limit: no other way leads farther."""
        own = top.kind == "limit" and top.by == self.part.names[self.column]
        return not top.kind or own

    def motions(self, q: Array) -> Array:
        """Orthonormal motions that joints of one freedom take part in."""
        return without_idle(self.part.null(q), self.interest)

    def met(self, q: Array) -> list[tuple[int, float]]:
        """Which limits are met, and on which side."""
        at = q[self.place]
        below = np.flatnonzero(at <= self.low + WITHIN).tolist()
        above = np.flatnonzero(at >= self.high - WITHIN).tolist()
        return [(k, -1.0) for k in below] + [(k, 1.0) for k in above]

    def slopes(
        self, q: Array, chart: Chart | None, met: Sequence[tuple[int, float]], dead: bool
    ) -> tuple[Array, list[int | None]]:
        """The height's derivatives by motions, those of limits outwards and of a dead point's.

        (..., rows, motions). The names are of all but the height: which limit, or None of the dead
        point.
        """
        motions = self.motions(q) if chart is None else chart.basis
        rows = [self.sign * motions[..., self.column, :]]
        rows += [side * motions[..., self.limited[k], :] for k, side in met]
        names: list[int | None] = [k for k, _ in met]
        if chart is not None and dead:
            rows.append(-chart.slope)
            names.append(None)
        return np.stack(rows, axis=-2), names

    def newton(self, chart: Chart, force: Array, direction: Array, dead: bool) -> Array | None:
        """The way to where what pushes leaves no slope; None where that is no top.

        It is Newton's step for the Lagrangian on what pushing limits and dead points leave.
        """
        part, met = self.part, self.met(chart.q)
        dead = dead and bool(force[-1] > 0.0)
        pushing = [each for each, f in zip(met, force, strict=False) if f > 0.0]
        weights = np.array([1.0, *(-force[force > 0.0])])
        rows = self.slopes(chart.q, chart, pushing, dead)[0][1:]
        left = np.eye(chart.basis.shape[1])
        if len(rows):
            _, singular, right = np.linalg.svd(rows)
            left = right[int(np.sum(singular > SINGULAR)) :].T
        if not left.shape[1]:
            return None
        ways = VARIED * (chart.basis @ left).T * part.unit
        around = part.geometry.integrate(chart.q, np.stack([ways, -ways]))
        slopes, _ = self.slopes(around, chart.turned(around), pushing, dead)
        ahead, behind = weights @ slopes
        curvature = left.T @ (ahead - behind).T / (2.0 * VARIED)
        values, axes = np.linalg.eigh(0.5 * (curvature + curvature.T))
        along = axes.T @ left.T @ direction
        flat = np.abs(values) <= CURVED
        if np.any(values > CURVED) or np.any(np.abs(along[flat]) > CURVED):
            return None
        newton: Array = -left @ axes @ np.where(flat, 0.0, along / np.where(flat, 1.0, values))
        return newton

    def met_on(self, q: Array, moved: Array, held: Sequence[int]) -> float | None:
        """The share of a way from q to where a limit is met, about; 1 within, None at once."""
        at, before = moved[self.place], q[self.place]
        over = np.maximum(at - self.high, self.low - at)
        over[[self.limited.index(c) for c in held]] = 0.0
        if not len(over) or np.max(over) <= NOTHING:
            return 1.0
        k = int(np.argmax(over))
        if abs(at[k] - before[k]) <= NOTHING:
            return None
        limit = self.high[k] if at[k] > self.high[k] else self.low[k]
        return float(np.clip((limit - before[k]) / (at[k] - before[k]), 0.0, 1.0))

    def before_dead_points(
        self, start: Points, motion: Array, held: tuple[int, ...], chart: Chart, there: Chart
    ) -> _Step | None:
        """A step that ends where the chart is ``there``, up to a dead point on it."""
        if there.value > SINGULAR:
            return _Step(there.q, there, False)
        if there.value > -SINGULAR or chart.value < SINGULAR:  # along dead points: back to them
            return self.back(there, held)
        share = self.crossing(start, motion, held, chart)
        moved = self.part.moved(start, share * motion, held)
        return None if moved is None else self.back(chart.turned(moved), held)

    def crossing(self, start: Points, motion: Array, held: tuple[int, ...], chart: Chart) -> float:
        """The share of a step at which independent velocities come to a dead point."""

        def value(share: float) -> float:
            moved = self.part.moved(start, share * motion, held)
            return -1.0 if moved is None else chart.turned(moved).value

        return root(value, (0.0, 1.0), (chart.value, value(1.0)), 1e-6)

    def back(self, chart: Chart, held: tuple[int, ...]) -> _Step | None:
        """To the nearest dead point, by Newton's method."""
        for _ in range(8):
            if abs(chart.value) < NOTHING:
                break
            resting = chart.basis[list(held)]
            slope = chart.slope - np.linalg.pinv(resting) @ (resting @ chart.slope)
            size = float(slope @ slope)
            if not size:
                return None
            way = chart.basis @ slope * (-chart.value / size)
            moved = self.part.moved(self.part.at(chart.q, held), way, held)
            if moved is None:
                return None
            chart = chart.turned(moved)
        return _Step(chart.q, chart, True) if abs(chart.value) < SINGULAR else None

    def named(
        self, q: Array, chart: Chart | None, force: Array, names: Sequence[int | None]
    ) -> _Top:
        part, height = self.part, self.height(q)
        pushed = [k for k, f in zip(names, force, strict=True) if f > 1e-6]
        own = [k for k in pushed if k is not None and self.limited[k] == self.column]
        if not pushed:
            motion = np.abs(part.null(q)).sum(axis=1)
            return _Top(q, height, "dead point", part.loop_of(motion, q, self.column))
        k = own[0] if own else names[int(np.argmax(force))]
        if k is None:
            assert chart is not None
            return _Top(q, height, "dead point", part.loop_of(chart.loose, q))
        if own:
            height = float(max(self.sign * self.low[k], self.sign * self.high[k]))
        return _Top(q, height, "limit", part.names[self.limited[k]])

    # ---- further starts

    def farther(self, reached: Array) -> list[Array]:
        """The farthest that is reached, the farthest away from it, and so on."""
        heights = self.sign * reached[:, self.part.place[self.column]]
        chosen: list[Array] = []
        for _ in range(4):  # further starts of a climb
            if not np.any(heights > -math.inf):
                break
            chosen.append(reached[int(np.argmax(heights))])
            away = self.part.geometry.difference(chosen[-1], reached) / self.part.unit
            # starts are half a radian, or half a cluster's size, apart
            near = np.linalg.norm(away[:, list(self.part.columns)], axis=1) < 0.5
            heights = np.where(near, -math.inf, heights)
        return chosen


class _Way:
    """One way uphill: along the gradient, then by Newton's method, step by step to its top."""

    def __init__(self, climb: _Climb, q: Array) -> None:
        self.climb, self.q, self.chart, self.dead = climb, q, Chart.at(climb.part, q), False
        self.stride, self.left = CLIMB_STRIDE, 300  # 30 radians of the longest strides
        self.motion, self.held = np.zeros(0), tuple[int, ...]()
        self.top: _Top | None = None

    def turn(self) -> None:
        """Where to step next; or the top, from which no way leads up."""
        climb, q, chart, stride = self.climb, self.q, self.chart, self.stride
        if not self.left:
            self.top = climb.named(q, chart, np.zeros(0), [])
            return
        self.left -= 1
        if climb.height(q) - climb.height(climb.start) > climb.endless:
            self.top = _Top(q, math.inf, "", "")
            return
        slopes, names = climb.slopes(q, chart, climb.met(q), self.dead)
        force, direction = _projected(slopes[0], slopes[1:])
        self.held = tuple(sorted({climb.limited[k] for k, f in zip(names, force, strict=True)
                                  if k is not None and f > 0.0}))  # fmt: skip
        size = float(np.linalg.norm(direction))
        way = direction * (stride / max(size, stride * TINY))
        newton = None
        if chart is not None and stride < CLIMB_STRIDE:  # the gradient overshoots
            newton = climb.newton(chart, force, direction, self.dead)
        if newton is not None and np.linalg.norm(newton) <= stride:
            way, size = newton, float(np.linalg.norm(newton))
        # what is left of the height is the square of so short a stride
        if size <= CONVERGED or stride < 1e-5:
            self.top = climb.named(q, chart, force, names)
            return
        self.motion = (climb.motions(q) if chart is None else chart.basis) @ way

    def take(self, step: _Step | None) -> None:
        """A step, if it leads up; a shorter one next, else."""
        if step is None or self.climb.height(step.q) < self.climb.height(self.q) - NOTHING:
            self.stride *= 0.5
            return
        self.q, self.chart, self.dead = step
        self.stride = min(CLIMB_STRIDE, 1.5 * self.stride)


def _tops(ways: Sequence[_Way]) -> list[_Top]:
    """The tops of ways of one part, which are gone side by side."""
    while going := [way for way in ways if way.top is None]:
        for way in going:
            way.turn()
        alike: dict[int, list[_Way]] = {}
        for way in going:
            if way.top is None:
                alike.setdefault(len(way.held), []).append(way)
        for some in alike.values():
            for way, step in zip(some, _steps(some), strict=True):
                way.take(step)
    return [way.top for way in ways if way.top is not None]


def _steps(ways: Sequence[_Way]) -> list[_Step | None]:
    """Steps of ways that hold as many joints, up to where a limit or a dead point is met."""
    part, found = ways[0].climb.part, dict[int, _Step | None]()
    starts, motions, shares = (
        part.points(np.array([way.q for way in ways]), [way.held for way in ways]),
        np.array([part.among(way.motion, way.held) for way in ways]),
        np.ones(len(ways)),
    )
    along, moved = part.strides(*dict.fromkeys(way.held for way in ways)), starts.q.copy()
    pending = list(range(len(ways)))
    for _ in range(60):
        if not pending:
            break
        there, _, closed = along.corrected(
            starts[pending], shares[pending, None] * motions[pending]
        )
        moved[pending], still = there, []
        for n, fine in zip(pending, closed.tolist(), strict=True):
            share = ways[n].climb.met_on(ways[n].q, moved[n], ways[n].held) if fine else None
            if share == 1.0:
                continue
            shares[n] *= share or 0.0
            if share is None or shares[n] < 1e-11:
                found[n] = None
            else:
                still.append(n)
        pending = still
    found |= dict.fromkeys(pending)
    charts = turned_charts([way.chart if n not in found else None for n, way in enumerate(ways)],
                           moved)  # fmt: skip
    for n, way in enumerate(ways):
        if n in found:
            continue
        if way.chart is None:
            found[n] = _Step(moved[n], None, False)
            continue
        start = replace(starts[[n]], case=np.zeros(1, dtype=np.intp))
        motion = shares[n] * way.motion
        found[n] = way.climb.before_dead_points(start, motion, way.held, way.chart, charts[n])
    return [found[n] for n in range(len(ways))]


def _projected(gradient: Array, rows: Array) -> tuple[Array, Array]:
    """Forces of one-sided rows against a gradient, and what they leave of it.

    Least squares with forces that only push (Lawson and Hanson, Solving least squares problems,
    1974).
    """
    force, pushing = np.zeros(len(rows)), list[int]()
    left, slopes = gradient, rows @ gradient
    least = NOTHING * np.linalg.norm(gradient)
    for _ in range(3 * len(rows)):
        slopes[pushing] = 0.0
        if not np.any(slopes > least):
            break
        pushing.append(int(np.argmax(slopes)))
        while True:
            wanted = np.linalg.lstsq(rows[pushing].T, gradient)[0]
            if np.all(wanted > 0.0):
                break
            now = force[pushing]
            shares = np.where(wanted > 0.0, 1.0, now / np.maximum(now - wanted, TINY))
            force[pushing] = now + np.min(shares) * (wanted - now)
            force[pushing.pop(int(np.argmin(shares)))] = 0.0
        force[:] = 0.0
        force[pushing] = wanted
        left = gradient - rows.T @ force
        slopes = rows @ left
    return force, left
