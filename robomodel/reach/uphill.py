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
from dataclasses import dataclass

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
    low, high = (_Climb(part, column, sign, start).end(further) for sign in (-1.0, 1.0))
    return low, high


@dataclass(frozen=True, eq=False)
class _Top:
    """A configuration from which no way leads up, and what forbids it."""

    q: Array
    height: float
    kind: Kind
    by: str


class _Climb:
    """Raises a joint, or lowers it, from a start."""

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

    def end(self, further: Callable[[], Array]) -> RangeEnd:
        """The end of the range."""
        best = self._top(self.start)
        if not self._farthest(best):
            tops = [self._top(q) for q in self._farther(further())]
            best = max(best, *tops, key=lambda top: top.height)
        searched = not self._farthest(best)
        return RangeEnd(self.sign * best.height, best.kind, best.by, searched=searched)

    def _farthest(self, top: _Top) -> bool:
        """True if nothing ends it, or the joint's own limit: no other way leads farther."""
        own = top.kind == "limit" and top.by == self.part.names[self.column]
        return not top.kind or own

    def _top(self, q: Array) -> _Top:
        """Uphill as far as it goes: along the gradient, then by Newton's method."""
        chart = Chart.at(self.part, q)
        stride, begun, dead = CLIMB_STRIDE, self.height(self.start), False
        for _ in range(300):  # 30 radians of the longest strides
            if self.height(q) - begun > self.endless:
                return _Top(q, math.inf, "", "")
            slopes, names = self._slopes(q, chart, self._met(q), dead)
            force, direction = _projected(slopes[0], slopes[1:])
            held = [self.limited[k] for k, f in zip(names, force, strict=True)
                    if k is not None and f > 0.0]  # fmt: skip
            size = float(np.linalg.norm(direction))
            way = direction * (stride / max(size, stride * TINY))
            newton = None
            if chart is not None and stride < CLIMB_STRIDE:  # the gradient overshoots
                newton = self._newton(chart, force, direction, dead)
            if newton is not None and np.linalg.norm(newton) <= stride:
                way, size = newton, float(np.linalg.norm(newton))
            # what is left of the height is the square of so short a stride
            if size <= CONVERGED or stride < 1e-5:
                return self._named(q, chart, force, names)
            motions = self._motions(q) if chart is None else chart.basis
            ahead = self._ahead(q, motions @ way, held, chart)
            if ahead is None or self.height(ahead[0]) < self.height(q) - NOTHING:
                stride *= 0.5
                continue
            q, chart, dead = ahead
            stride = min(CLIMB_STRIDE, 1.5 * stride)
        return self._named(q, chart, np.zeros(0), [])

    def _motions(self, q: Array) -> Array:
        """Orthonormal motions that joints of one freedom take part in."""
        return without_idle(self.part.null(q), self.interest)

    def _met(self, q: Array) -> list[tuple[int, float]]:
        """Which limits are met, and on which side."""
        at = q[self.place]
        below = np.flatnonzero(at <= self.low + WITHIN).tolist()
        above = np.flatnonzero(at >= self.high - WITHIN).tolist()
        return [(k, -1.0) for k in below] + [(k, 1.0) for k in above]

    def _slopes(
        self, q: Array, chart: Chart | None, met: Sequence[tuple[int, float]], dead: bool
    ) -> tuple[Array, list[int | None]]:
        """The height's derivatives by motions, those of limits outwards and of a dead point's.

        (..., rows, motions). The names are of all but the height: which limit, or None of the dead
        point.
        """
        motions = self._motions(q) if chart is None else chart.basis
        rows = [self.sign * motions[..., self.column, :]]
        rows += [side * motions[..., self.limited[k], :] for k, side in met]
        names: list[int | None] = [k for k, _ in met]
        if chart is not None and dead:
            rows.append(-chart.slope)
            names.append(None)
        return np.stack(rows, axis=-2), names

    def _newton(self, chart: Chart, force: Array, direction: Array, dead: bool) -> Array | None:
        """The way to where what pushes leaves no slope; None where that is no top.

        It is Newton's step for the Lagrangian on what pushing limits and dead points leave.
        """
        part, met = self.part, self._met(chart.q)
        dead = dead and bool(force[-1] > 0.0)
        pushing = [each for each, f in zip(met, force, strict=False) if f > 0.0]
        weights = np.array([1.0, *(-force[force > 0.0])])
        rows = self._slopes(chart.q, chart, pushing, dead)[0][1:]
        left = np.eye(chart.basis.shape[1])
        if len(rows):
            _, singular, right = np.linalg.svd(rows)
            left = right[int(np.sum(singular > SINGULAR)) :].T
        if not left.shape[1]:
            return None
        ways = VARIED * (chart.basis @ left).T * part.unit
        around = part.geometry.integrate(chart.q, np.stack([ways, -ways]))
        slopes, _ = self._slopes(around, chart.turned(around), pushing, dead)
        ahead, behind = weights @ slopes
        curvature = left.T @ (ahead - behind).T / (2.0 * VARIED)
        values, axes = np.linalg.eigh(0.5 * (curvature + curvature.T))
        along = axes.T @ left.T @ direction
        flat = np.abs(values) <= CURVED
        if np.any(values > CURVED) or np.any(np.abs(along[flat]) > CURVED):
            return None
        newton: Array = -left @ axes @ np.where(flat, 0.0, along / np.where(flat, 1.0, values))
        return newton

    def _ahead(
        self, q: Array, motion: Array, held: list[int], chart: Chart | None
    ) -> tuple[Array, Chart | None, bool] | None:
        """A step up to where a limit or a dead point is met, and whether the latter is."""
        share, start = 1.0, self.part.at(q, held)
        moved: Array | None
        for _ in range(60):
            moved = self.part.moved(start, share * motion, held)
            if moved is None:
                return None
            at, before = moved[self.place], q[self.place]
            over = np.maximum(at - self.high, self.low - at)
            over[[self.limited.index(c) for c in held]] = 0.0
            if not len(over) or np.max(over) <= NOTHING:
                break
            k = int(np.argmax(over))
            if abs(at[k] - before[k]) <= NOTHING:
                return None
            limit = self.high[k] if at[k] > self.high[k] else self.low[k]
            share *= float(np.clip((limit - before[k]) / (at[k] - before[k]), 0.0, 1.0))
            if share < 1e-11:
                return None
        else:
            return None
        if chart is None:
            return moved, None, False
        there = chart.turned(moved)
        if there.value > SINGULAR:
            return moved, there, False
        if there.value > -SINGULAR or chart.value < SINGULAR:  # along dead points: back to them
            return self._back(there, held)
        share *= self._crossing(start, share * motion, held, chart)
        moved = self.part.moved(start, share * motion, held)
        return None if moved is None else self._back(chart.turned(moved), held)

    def _crossing(self, start: Points, motion: Array, held: list[int], chart: Chart) -> float:
        """The share of a step at which independent velocities come to a dead point."""

        def value(share: float) -> float:
            moved = self.part.moved(start, share * motion, held)
            return -1.0 if moved is None else chart.turned(moved).value

        return root(value, (0.0, 1.0), (chart.value, value(1.0)), 1e-6)

    def _back(self, chart: Chart, held: list[int]) -> tuple[Array, Chart, bool] | None:
        """To the nearest dead point, by Newton's method."""
        for _ in range(8):
            if abs(chart.value) < NOTHING:
                break
            resting = chart.basis[held]
            slope = chart.slope - np.linalg.pinv(resting) @ (resting @ chart.slope)
            size = float(slope @ slope)
            if not size:
                return None
            way = chart.basis @ slope * (-chart.value / size)
            moved = self.part.moved(self.part.at(chart.q, held), way, held)
            if moved is None:
                return None
            chart = chart.turned(moved)
        return (chart.q, chart, True) if abs(chart.value) < SINGULAR else None

    def _named(
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

    def _farther(self, reached: Array) -> list[Array]:
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
