"""Continuation along closed configurations: a stride, and what refuses it.

φ(q) = 0 are conditions on n columns, of rank r, and K = ∂φ/∂q. In a configuration, C are r
combinations of rows that have this rank (all rows, where there are r), V and N orthonormal bases of
the columns that K moves, and of the m = n - r motions. A stride predicts q ⊕ N d and corrects by
Newton's method along V alone, so that its end depends on (q, d) only, and Nᵀ(q' ⊖ q) = d. It is
refused where loops stay open, where it ends far from the prediction, where motions have turned, and
where det C K V has changed its sign: there K has lost a rank on the way. That is a crossing of
branches, and passed straight on, if loops close there; else they miss each other, and shorter
strides follow the branch. Only the determinant tells the latter: what is beyond is straight ahead.

:mod:`robomodel.mechanism.walks` directs strides. Limits are their barriers, and no conditions. Rows
of batches do not influence each other. All is in comparable units: radians, and lengths in sizes of
the mechanism. Every end of a stride is reached by a closed path from its start; an exact proof
would need strides of a tenth of this length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.mechanism.strides import GAIN, GAP, STEPS, TURNED, Chart, Strides
from robomodel.tolerances import CLOSED, EXACTLY_CLOSED, MOVES, ROUNDING, TINY, WITHIN

MOST_CORRECTION = 0.35  # of a stride's length: what a correction adds at most
CROSSING = 1e-9  # sines, sizes: the gap between branches that cross; with more they miss each other
BISECTIONS, TO_CROSSING = 30, 5  # of a stride to where K loses a rank; steps that close loops there


class Ends(IntEnum):
    """Reasons for which a stride ends."""

    FINE = 0
    OPEN = 1
    FAR = 2
    TURNED = 3
    SINGULAR = 4  # between its ends K loses a rank
    SHEET = 5  # beyond a dead point of the joints that tell where the mechanism is
    LIMIT = 6


# numbers, which arrays are compared with
FINE, OPEN, FAR, TURN, SINGULAR, SHEET, LIMIT = (int(end) for end in Ends)


class Mechanism(Protocol):
    """Conditions on positions, and how these are moved.

    It may have several sets of columns, as while one joint or another is held; ``case`` (n,) says
    which each row has, by default the first.
    """

    @property
    def pattern(self) -> Mask:
        """Where K (rows, columns) may differ from zero, in any configuration and case."""

    @property
    def chart(self) -> Chart | None:
        """Columns for programs of strides; None where there can be none."""

    def spread(self, columns: Array, case: Indices) -> Array:
        """Numbers by columns (n, columns, …) as those by the chart's, which may be more."""

    def gathered(self, columns: Array, case: Indices) -> Array:
        """Numbers by the chart's columns as those by columns."""

    def step(self, q: Array, d: Array, case: Indices | None = None) -> tuple[Array, Array, Array]:
        """q (n, nq) moved along d (n, columns); φ (n, rows) and K (n, rows, columns) there."""

    def away(self, q0: Array, q1: Array, case: Indices | None = None) -> Array:
        """The d (n, columns) that lead from q0 to q1."""


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of joints: rows (k, columns) of their velocities, places in q, how far they go."""

    rows: Array
    places: Indices
    low: Array
    high: Array

    def beyond(self, q: Array) -> Array:
        """How far each joint is beyond its limits, negative within (n, limits)."""
        at = q[:, self.places]
        return np.asarray(np.maximum(at - self.high, self.low - at))

    def farthest(self, length: float) -> Array:
        """How far each joint goes by a stride of this length (limits,), at most."""
        longest = (1.0 + MOST_CORRECTION) * length + WITHIN
        return np.asarray(longest * np.linalg.norm(self.rows, axis=1) + WITHIN)


@dataclass(frozen=True, eq=False)
class Points:
    """Closed configurations q (n, nq) with C, V and N there, and their cases."""

    q: Array
    c: Array
    v: Array
    n: Array
    case: Indices

    def __getitem__(self, rows: Indices | Mask | Sequence[int]) -> Points:
        return Points(self.q[rows], self.c[rows], self.v[rows], self.n[rows], self.case[rows])

    def put(self, rows: Indices, others: Points) -> Points:
        """These points with others in some rows."""
        if len(rows) == len(self.q):
            return others
        found = Points(*(np.array(getattr(self, each.name)) for each in fields(self)))
        found.move(rows, others)
        return found

    def move(self, rows: Indices, others: Points) -> None:
        """Set some rows to others."""
        for each in fields(self):
            getattr(self, each.name)[rows] = getattr(others, each.name)


def joined(parts: Sequence[Points]) -> Points:
    """The points of several, one after the other."""
    names = [each.name for each in fields(Points)]
    return Points(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))


class Turn(NamedTuple):
    """How strides turned: least cosines between motions before and after, signs of det C K V by C
    and V before, how far ends are from predictions, and lengths of these.
    """

    cosine: Array
    signs: Array
    off: Array
    length: Array


@dataclass(frozen=True, eq=False)
class Continuation:
    """Strides of a mechanism of rank r with n columns.

    Attributes:
        mechanism: What moves.
        columns: n.
        rank: r.
        limits: Barriers; what is beyond them at its start needs limits there.
        crossing: Gap at which branches cross: the file's rounding, :data:`CROSSING` at least.
        slack: Gap that each row (rows,), or all, may have beside the r combinations.
        sheet: Rows (k, columns) of joints that shall tell where the mechanism is: strides through
            their dead points are refused.
        straight: Crossings of branches are passed straight on; else strides are refused there.
        also: Which configurations (n, nq) meet further conditions, beside φ.
        crossed: Configurations at crossings that were passed, as they are found.
    """

    mechanism: Mechanism
    columns: int
    rank: int
    limits: Limits
    crossing: float = CROSSING
    slack: float | Array = 0.0
    sheet: Array | None = None
    straight: bool = True
    also: Callable[[Array], Mask] | None = None
    crossed: list[Array] = field(default_factory=list)

    @property
    def freedoms(self) -> int:
        """m."""
        return self.columns - self.rank

    # ---- points

    def at(self, q: Array) -> Points:
        """Closed configurations (n, nq) as points."""
        return self.point(q, self.mechanism.step(q, np.zeros((len(q), self.columns)))[2])

    def point(self, q: Array, k: Array) -> Points:
        """Points with these Jacobians (n, rows, columns)."""
        r, rows, case = self.rank, k.shape[1], np.zeros(len(q), dtype=np.intp)
        if rows > r:
            u, _, right = np.linalg.svd(k, full_matrices=rows < self.columns)
            basis = np.swapaxes(right, 1, 2)
            return Points(q, np.swapaxes(u[:, :, :r], 1, 2), basis[:, :, :r], basis[:, :, r:], case)
        basis, triangle = np.linalg.qr(np.swapaxes(k, 1, 2), mode="complete")
        c, v, n = np.broadcast_to(np.eye(r), (len(q), r, r)), basis[:, :, :r], basis[:, :, r:]
        _flip(v, np.prod(np.sign(np.diagonal(triangle, axis1=1, axis2=2)), axis=1))
        return Points(q, c, v, n, case)

    def facing(self, p: Points, n: Array) -> Points:
        """Points with motions n (n, columns, m), also where K has lost a rank, and p has others."""
        if np.max(np.abs(np.swapaxes(p.v, 1, 2) @ n), initial=0.0) <= MOVES:
            return replace(p, n=n)
        return replace(p, n=n, v=np.linalg.qr(n, mode="complete")[0][:, :, n.shape[2] :])

    def turned(self, p: Points, q: Array, k: Array) -> tuple[Points, Array, Array]:
        """Points at q with Jacobians k, by the bases of p turned to there by the shortest way.

        Also the least cosines between motions, and the signs of det C K V by C and V of p.
        Motions are N + V X with K (N + V X) = 0, to be made orthonormal: by S⁻½, S = 1 + Xᵀ X;
        V becomes V - (N S⁻½ + V X (S + S½)⁻¹) Xᵀ, which is orthonormal, and so to motions.
        """
        ck = _times(p.c, k)
        square = ck @ p.v
        signs = np.linalg.slogdet(square)[0]
        v, n, c, least = p.v, p.n, p.c, np.ones(len(q))
        if self.freedoms and self.rank:
            x = -solved(square, ck @ n)
            away, back = v @ x, np.swapaxes(x, 1, 2)
            if self.freedoms == 1:
                long = np.sqrt(1.0 + back @ x)
                least = 1.0 / long[:, 0, 0]
                n, v = (n + away) / long, v - (n + away / (1.0 + long)) / long @ back
            else:
                squares, axes = np.linalg.eigh(back @ x)
                long = np.sqrt(1.0 + np.maximum(squares, 0.0))[:, None, :]
                least, other = 1.0 / long[:, 0, -1], np.swapaxes(axes, 1, 2)
                shorter, rest = axes / long @ other, axes / (long * (1.0 + long)) @ other
                n, v = (n + away) @ shorter, v - (n @ shorter + away @ rest) @ back
        if _all_rows(c):
            v = v.copy() if v is p.v else v
            _flip(v, signs)
        else:  # the rows' combinations turn, too
            columns, triangle = np.linalg.qr(k @ v)
            c = np.swapaxes(columns, 1, 2)
            _flip(v, np.prod(np.sign(np.diagonal(triangle, axis1=1, axis2=2)), axis=1))
        return Points(q, c, v, n, p.case), least, signs

    def through(self, p: Points, rows: Array) -> Array:
        """Rows (n, k, columns) of velocities times K⁺ at points (n, k, rows of K)."""
        k = self.mechanism.step(p.q, np.zeros((len(p.q), self.columns)), p.case)[2]
        square = _times(p.c, k) @ p.v
        found = solved(np.swapaxes(square, 1, 2), np.swapaxes(rows @ p.v, 1, 2))
        forces = np.swapaxes(found, 1, 2)
        return forces if _all_rows(p.c) else np.asarray(forces @ p.c)

    # ---- a stride

    def corrected(self, p: Points, way: Array) -> tuple[Array, Array, Mask]:
        """p moved along ``way`` (n, columns) and closed in its chart: q, K, which are closed."""
        q, phi, k = self.mechanism.step(p.q, way, p.case)
        residual = _combined(p.c, phi)
        gap = _worst(residual)
        going = np.flatnonzero(gap > GAP)
        for _ in range(STEPS):
            if not len(going):
                break
            # few rows are copied, of many all are moved: what is closed does not take the step
            some = going if 2 * len(going) < len(q) else slice(None)
            v, c, case, before = p.v[some], p.c[some], p.case[some], gap[some]
            step = v @ solved(_times(c, k[some]) @ v, residual[some][:, :, None])
            ahead, phi1, k1 = self.mechanism.step(q[some], -step[:, :, 0], case)
            after = _combined(c, phi1)
            size = _worst(after)
            better = (size < GAIN * before) & (before > GAP)
            if better.all() and len(better) == len(q):
                q, phi, k, residual, gap = ahead, phi1, k1, after, size
                on = going
            else:
                on = going[better] if some is going else np.flatnonzero(better)
                q[on], phi[on], k[on] = ahead[better], phi1[better], k1[better]
                residual[on], gap[on] = after[better], size[better]
            going = on[gap[on] > GAP]
        return q, k, self._closed(q, phi, gap)

    def _closed(self, q: Array, phi: Array, gap: Array) -> Mask:
        """Which q are closed, with these residuals of all rows, and of the r combinations."""
        far = np.maximum(1.0, _worst(q))  # numbers' rounding grows so
        closed = gap <= EXACTLY_CLOSED * far
        if phi.shape[1] > self.rank:
            least = np.maximum(EXACTLY_CLOSED, np.minimum(self.slack, CLOSED)) * far[:, None]
            closed &= np.all(np.abs(phi) <= np.maximum(least, self.slack), axis=1)
        return np.asarray(closed if self.also is None else closed & self.also(q))

    @cached_property
    def _compiled(self) -> Strides | None:
        chart = self.mechanism.chart
        return None if chart is None else Strides.of(chart, self.rank, self.freedoms)

    def stride(self, p: Points, d: Array) -> tuple[Points, Array]:
        """p moved by d (n, m) in its motions: the points there, and what each ends with (n,).

        Rows whose loops stay open remain where they are.
        """
        there, closed, turn = self.moved(p, (p.n @ d[:, :, None])[:, :, 0])
        ends = self._judged(p, there, turn)
        ends[~closed] = OPEN
        return there, ends

    def moved(self, p: Points, way: Array) -> tuple[Points, Mask, Turn]:
        """p moved along ``way`` (n, columns) and closed in its chart: which are closed, and how
        they turned; others remain where they are.
        """
        compiled, columns = self._compiled, self.mechanism
        if compiled is None:
            q, k, closed = self.corrected(p, way)
            open_ = ~closed
            if open_.any():
                q[open_] = p.q[open_]
                k[open_] = columns.step(q[open_], 0.0 * way[open_], p.case[open_])[2]
            there, turn = self._turned(p, way, q, k)
            return there, closed, turn
        along, v, n = (columns.spread(x, p.case) for x in (way, p.v, p.n))
        q, gap = compiled.closed(p.q, along, v, p.c)
        v, n, *c, signs, squares, least, most, phi, off, length = compiled.turned(
            p.q, q, along, v, n, p.c
        )
        there = Points(q, c[0] if c else p.c, columns.gathered(v, p.case),
                       columns.gathered(n, p.case), p.case)  # fmt: skip
        closed = self._closed(q, phi, gap)
        if not closed.all():
            there = there.put(np.flatnonzero(~closed), p[~closed])
        turn = Turn(_least_cosines(squares, least, most), signs, off, length)
        far = np.flatnonzero(closed & ~(turn.cosine >= TURNED))
        if len(far):  # beyond what the programs turn
            k = columns.step(q[far], 0.0 * way[far], p.case[far])[2]
            there = there.put(far, self.turned(p[far], q[far], k)[0])
        return there, closed, turn

    def led(self, p: Points, q: Array) -> tuple[Points, Array]:
        """Closed configurations q (n, nq) as ends of strides from p, wherever they come from."""
        k = self.mechanism.step(q, np.zeros((len(q), self.columns)), p.case)[2]
        away = self.mechanism.away(p.q, q, p.case)[:, :, None]
        way = (p.n @ (np.swapaxes(p.n, 1, 2) @ away))[:, :, 0]
        there, turn = self._turned(p, way, q, k)
        return there, self._judged(p, there, turn)

    def _turned(self, p: Points, way: Array, q: Array, k: Array) -> tuple[Points, Turn]:
        there, cosine, signs = self.turned(p, q, k)
        off = _lengths(self.mechanism.away(p.q, q, p.case) - way)
        return there, Turn(cosine, signs, off, _lengths(way))

    def _judged(self, p: Points, there: Points, turn: Turn) -> Array:
        """The ends of strides from p that are there."""
        ends = np.where(turn.cosine < TURNED, TURN, FINE)
        ends = np.where(turn.off > MOST_CORRECTION * turn.length + WITHIN, FAR, ends)
        flipped = np.flatnonzero((ends == FINE) & (turn.signs <= 0.0))
        if len(flipped):
            here, beyond = p[flipped], there[flipped]
            moved = self.mechanism.away(here.q, beyond.q, here.case)
            crosses = self._crosses(here, beyond, moved)
            ends[flipped[~(crosses & self.straight)]] = SINGULAR
        if self.sheet is not None:
            passed = self.along_sheet(p, there, self.sheet) <= 0.0
            ends = np.where((ends == FINE) & passed, SHEET, ends)
        return ends

    def along_sheet(self, p: Points, there: Points, rows: Array) -> Array:
        """How joints with these rows move there, by how they do at p: 0 at their dead points."""
        return np.asarray(np.linalg.det(rows @ there.n @ np.swapaxes(rows @ p.n, 1, 2)))

    def _orientation(self, p: Points, k: Array) -> Array:
        """The sign of det C K V: positive at p."""
        return np.asarray(np.linalg.slogdet(_times(p.c, k @ p.v))[0])

    def _crosses(self, p: Points, there: Points, moved: Array) -> Mask:
        """True if loops close, to ``crossing``, where K loses a rank between points.

        The way is Hermite's cubic between both; from where the determinant vanishes on it,
        Gauss–Newton steps without the condition that is lost there.
        """
        first, last = ((x.n @ (np.swapaxes(p.n, 1, 2) @ moved[:, :, None]))[:, :, 0]
                       for x in (p, there))  # fmt: skip

        def way(t: Array) -> Array:
            t, rest = t[:, None], 1.0 - t[:, None]
            bent = t * rest * (rest * first - t * last)
            return np.asarray(bent + t * t * (3.0 - 2.0 * t) * moved)

        low, high = np.zeros(len(moved)), np.ones(len(moved))
        for _ in range(BISECTIONS):
            t = 0.5 * (low + high)
            ahead = self._orientation(p, self.mechanism.step(p.q, way(t), p.case)[2]) > 0.0
            low, high = np.where(ahead, t, low), np.where(ahead, high, t)
        q, phi, k = self.mechanism.step(p.q, way(low), p.case)
        for _ in range(TO_CROSSING):
            u, s, right = (x[..., : self.rank - 1] for x in _svd(k))
            lost = np.einsum("nkr,nk->nr", u, phi) / np.maximum(s, TINY)
            back = -np.einsum("ncr,nr->nc", right, lost)
            q, phi, k = self.mechanism.step(q, back, p.case)
        crosses = np.all(np.abs(phi) <= np.maximum(self.crossing, self.slack), axis=1)
        self.crossed.extend(q[crosses])
        return np.asarray(crosses)

    def advance(self, p: Points, d: Array, longest: Array) -> tuple[Points, Array, Array]:
        """A stride along d (n, m), no longer than ``longest`` (n,), within limits.

        The points there, what each ends with, and how far limits are passed (n, limits).
        """
        size = np.linalg.norm(d, axis=1)
        share = np.minimum(1.0, longest / np.maximum(size, TINY))
        there, ends = self.stride(p, d * share[:, None])
        over = self.limits.beyond(there.q)
        passed = (ends == FINE) & np.any(over > WITHIN, axis=1)
        return there, np.where(passed, LIMIT, ends), over


def _combined(c: Array, phi: Array) -> Array:
    return np.asarray(phi.copy() if _all_rows(c) else np.einsum("nrk,nk->nr", c, phi))


def _times(c: Array, matrix: Array) -> Array:
    return matrix if _all_rows(c) else np.asarray(c @ matrix)


def _all_rows(c: Array) -> bool:
    """True if no conditions are repeated, of which C then has each as it is."""
    return bool(c.shape[1] == c.shape[2])


def _svd(k: Array) -> tuple[Array, Array, Array]:
    u, s, right = np.linalg.svd(k, full_matrices=False)
    return u, s, np.swapaxes(right, 1, 2)


def _worst(rows: Array) -> Array:
    """The greatest absolute value of each row; 0 without any."""
    return np.asarray(np.abs(rows).max(axis=1, initial=0.0))


def _least_cosines(squares: Array, least: Array, most: Array) -> Array:
    """1 / √(1 + the greatest eigenvalue of XᵀX), or what is on the same side of TURNED.

    ``least`` and ``most``: numbers between which it is.
    """
    turned = 1.0 / TURNED**2 - 1.0
    between = np.flatnonzero((most > turned) & (least < turned))
    if len(between):
        most[between] = np.linalg.eigvalsh(squares[between])[:, -1]
    cosine = 1.0 / np.sqrt(1.0 + most)
    return np.where(cosine > 0.0, cosine, 0.0)  # not-a-number where K has lost a rank


def _lengths(vectors: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("nc,nc->n", vectors, vectors)))


def _flip(v: Array, signs: Array) -> None:
    """The first of vectors (n, columns, r), where signs are negative, in place: det C K V > 0."""
    v[:, :, :1] *= np.where(signs < 0.0, -1.0, 1.0)[:, None, None]


def solved(a: Array, b: Array) -> Array:
    """a⁻¹ b of batches; where a is singular, a step so long that the stride is refused."""
    try:
        return np.asarray(np.linalg.solve(a, b))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.solve(a + ROUNDING * np.eye(a.shape[-1]), b))
