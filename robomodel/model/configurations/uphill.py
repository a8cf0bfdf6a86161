"""The greatest positions of a joint among closed configurations of several freedoms, within limits.

From a start the joint's position is raised along the projection of its gradient on the motions that
loops and met limits leave (Rosen, The gradient projection method for nonlinear programming, 1961),
until none is left: the end of a range, which a limit or a dead point is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.model.closure import Held, close
from robomodel.model.configurations.following import enough
from robomodel.model.configurations.paths import (
    EXACT,
    INSIDE,
    VARIED,
    Chart,
    Kind,
    Part,
    RangeEnd,
    without_idle,
)
from robomodel.model.joints import Array

STRIDE = 0.1  # radians, or cluster sizes
SHORTEST = 1e-5  # strides below are none
ROUNDS = 300
LOOSE = 1e-9  # of the determinant of a chart: it is at a dead point
FLAT = 1e-10  # rad, sizes: Newton's steps below are none, and so are gradients
CURVED = 1e-6  # curvatures below are none
ROUNDING = 1e-12  # rad, m: of heights
TRIES = 200  # configurations drawn for further starts
STARTS = 4
BETTER = 1e-4  # rad, sizes: starts that are this much farther are tried
SEED = 20241126


def extremes(part: Part, column: int, start: Array) -> tuple[RangeEnd, RangeEnd]:
    """The ends of the range of a joint with one freedom, by its column, and what they are.

    Uphill from the start, and from drawn configurations farther on that a way leads to from there
    without leaving limits or the branch of the loops. Joints that the start has beyond a limit go
    no further.
    """
    low, high = (_Climb(part, column, sign, start).end() for sign in (-1.0, 1.0))
    if column not in part.limited and high.position - low.position >= part.endless(column):
        return RangeEnd(-math.inf, "", ""), RangeEnd(math.inf, "", "")
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
        self.interest = tuple(c for c in part.columns if c in part.place)
        self.endless = part.endless(column)

    def height(self, q: Array) -> float:
        """How far up the joint is."""
        return self.sign * self.part.position(q, self.column)

    def end(self) -> RangeEnd:
        """The end of the range."""
        chart = Chart.at(self.part, self.start)
        best = self._top(self.start, chart)
        if best.kind:
            for q in self._farther(best.height):
                reached = self._reached(q, chart)
                if reached is not None and self.height(reached[0]) > best.height:
                    best = max(best, self._top(*reached), key=lambda top: top.height)
        return RangeEnd(self.sign * best.height, best.kind, best.by)

    def _top(self, q: Array, chart: Chart | None) -> _Top:
        """Uphill as far as it goes: along the gradient, then by Newton's method."""
        stride, begun, dead = STRIDE, self.height(q), False
        for _ in range(ROUNDS):
            if self.height(q) - begun > self.endless:
                return _Top(q, math.inf, "", "")
            slopes, names = self._slopes(q, chart, self._met(q), dead)
            force, direction = _projected(slopes[0], slopes[1:])
            held = [self.limited[k] for k, f in zip(names, force, strict=True)
                    if k is not None and f > 0.0]  # fmt: skip
            size = float(np.linalg.norm(direction))
            way = direction * (stride / max(size, stride * 1e-300))
            newton = None
            if chart is not None and stride < STRIDE:  # the gradient overshoots
                newton = self._newton(chart, force, direction, dead)
            if newton is not None and np.linalg.norm(newton) <= stride:
                way, size = newton, float(np.linalg.norm(newton))
            if size <= FLAT or stride < SHORTEST:
                return self._named(q, chart, force, names)
            motions = self._motions(q) if chart is None else chart.basis
            ahead = self._ahead(q, motions @ way, held, chart)
            if ahead is None or self.height(ahead[0]) < self.height(q) - ROUNDING:
                stride *= 0.5
                continue
            q, chart, dead = ahead
            stride = min(STRIDE, 1.5 * stride)
        return self._named(q, chart, np.zeros(0), [])

    def _motions(self, q: Array) -> Array:
        """Orthonormal motions that joints of one freedom take part in."""
        return without_idle(self.part.null(q), self.interest)

    def _met(self, q: Array) -> list[tuple[int, float]]:
        """Which limits are met, and on which side."""
        at = q[self.place]
        below = np.flatnonzero(at <= self.low + INSIDE).tolist()
        above = np.flatnonzero(at >= self.high - INSIDE).tolist()
        return [(k, -1.0) for k in below] + [(k, 1.0) for k in above]

    def _slopes(
        self, q: Array, chart: Chart | None, met: Sequence[tuple[int, float]], dead: bool
    ) -> tuple[Array, list[int | None]]:
        """The height's derivatives by motions, those of limits outwards and of a dead point's.

        The names are of all but the height: which limit, or None of the dead point.
        """
        motions = self._motions(q) if chart is None else chart.basis
        rows = [self.sign * motions[self.column]]
        rows += [side * motions[self.limited[k]] for k, side in met]
        names: list[int | None] = [k for k, _ in met]
        if chart is not None and dead:
            rows.append(-chart.slope)
            names.append(None)
        return np.array(rows), names

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
            left = right[int(np.sum(singular > 1e-9)) :].T
        if not left.shape[1]:
            return None
        curvature = np.zeros((left.shape[1], left.shape[1]))
        for n, way in enumerate(chart.basis @ left.T[:, :, None]):
            step = VARIED * way[:, 0] * part.unit
            ahead, behind = (
                weights @ self._slopes(q, chart.turned(q), pushing, dead)[0]
                for q in (part.geometry.integrate(chart.q, s * step) for s in (1.0, -1.0))
            )
            curvature[:, n] = left.T @ (ahead - behind) / (2.0 * VARIED)
        values, axes = np.linalg.eigh(0.5 * (curvature + curvature.T))
        slopes = axes.T @ left.T @ direction
        flat = np.abs(values) <= CURVED
        if np.any(values > CURVED) or np.any(np.abs(slopes[flat]) > CURVED):
            return None
        newton: Array = -left @ axes @ np.where(flat, 0.0, slopes / np.where(flat, 1.0, values))
        return newton

    def _ahead(
        self, q: Array, motion: Array, held: list[int], chart: Chart | None
    ) -> tuple[Array, Chart | None, bool] | None:
        """A step up to where a limit or a dead point is met, and whether the latter is."""
        share = 1.0
        moved: Array | None
        for _ in range(60):
            moved = self.part.moved(q, share * motion, held)
            if moved is None:
                return None
            at, before = moved[self.place], q[self.place]
            over = np.maximum(at - self.high, self.low - at)
            over[[self.limited.index(c) for c in held]] = 0.0
            if not len(over) or np.max(over) <= EXACT:
                break
            k = int(np.argmax(over))
            if abs(at[k] - before[k]) <= EXACT:
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
        if there.value > LOOSE:
            return moved, there, False
        if there.value > -LOOSE or chart.value < LOOSE:  # along dead points: back to them
            return self._back(there, held)
        share *= self._crossing(q, share * motion, held, chart)
        moved = self.part.moved(q, share * motion, held)
        return None if moved is None else self._back(chart.turned(moved), held)

    def _crossing(self, q: Array, motion: Array, held: list[int], chart: Chart) -> float:
        """The share of a step at which independent velocities come to a dead point."""
        from scipy.optimize import brentq

        def value(share: float) -> float:
            moved = self.part.moved(q, share * motion, held)
            return -1.0 if moved is None else chart.turned(moved).value

        return float(brentq(value, 0.0, 1.0, xtol=1e-6, disp=False))

    def _back(self, chart: Chart, held: list[int]) -> tuple[Array, Chart, bool] | None:
        """To the nearest dead point, by Newton's method."""
        for _ in range(8):
            if abs(chart.value) < EXACT:
                break
            resting = chart.basis[held]
            slope = chart.slope - np.linalg.pinv(resting) @ (resting @ chart.slope)
            size = float(slope @ slope)
            if not size:
                return None
            moved = self.part.moved(chart.q, chart.basis @ slope * (-chart.value / size), held)
            if moved is None:
                return None
            chart = chart.turned(moved)
        return (chart.q, chart, True) if abs(chart.value) < LOOSE else None

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

    def _farther(self, height: float) -> list[Array]:
        """Drawn configurations within the limits that are farther, the farthest first."""
        part, rng = self.part, np.random.default_rng(SEED)
        moves = np.zeros((TRIES, len(part.unit)))
        for c in part.columns:
            low, high = -math.pi * part.unit[c], math.pi * part.unit[c]
            if c in self.limited:
                k = self.limited.index(c)
                at = self.start[self.place[k]]
                low, high = max(low, self.low[k] - at), min(high, self.high[k] - at)
            moves[:, c] = rng.uniform(low, high, TRIES)
        geometry, mine = part.geometry, set(part.columns)
        guesses = geometry.integrate(np.tile(self.start, (TRIES, 1)), moves)
        still = [c for c in range(geometry.nv) if c not in mine]
        q, gap = close(geometry, guesses, Held(still), rows=part.rows, iterations=20)
        at = q[:, self.place]
        fine = (gap <= enough(q)) & ~geometry.flipped(q)
        fine &= np.all((at >= self.low - INSIDE) & (at <= self.high + INSIDE), axis=1)
        heights = self.sign * q[:, part.place[self.column]]
        order = np.argsort(-heights, kind="stable")
        order = order[fine[order] & (heights[order] > height + BETTER)]
        return list(q[order[:STARTS]])

    def _reached(self, goal: Array, chart: Chart | None) -> tuple[Array, Chart | None] | None:
        """As near to a goal as a straight way from the start leads within limits."""
        part, q = self.part, self.start
        for _ in range(ROUNDS):
            away = part.geometry.difference(q, goal) / part.unit
            motions = without_idle(part.null(q), self.interest)
            along = motions.T @ away
            size = float(np.linalg.norm(along))
            if size < 1e-6:
                return q, chart
            ahead = self._ahead(q, motions @ along * min(STRIDE / size, 1.0), [], chart)
            if (
                ahead is None
                or ahead[2]
                or np.linalg.norm(part.geometry.difference(ahead[0], goal) / part.unit)
                >= np.linalg.norm(away)
            ):
                return q, chart
            q, chart, _ = ahead
        return q, chart


def _projected(gradient: Array, rows: Sequence[Array]) -> tuple[Array, Array]:
    """Forces of one-sided rows against a gradient, and what they leave of it."""
    from scipy.optimize import nnls

    if not len(rows):
        return np.zeros(0), gradient
    matrix = np.array(rows).T
    force = nnls(matrix, gradient)[0]
    return force, gradient - matrix @ force
