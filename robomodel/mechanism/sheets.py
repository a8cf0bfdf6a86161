"""Ways on a sheet, where the positions of some joints tell a mechanism's configuration.

Of the n columns of K, of rank r, m = n - r joints y have the rows Y of velocities, and Z is a basis
of the motions in which they rest. C K Z, with r combinations C of conditions, is regular but where
K loses a rank, and at dead points of y. A stride moves y straight towards its goal, all else by the
rates G = ∂q/∂y, and closes loops by Newton's method along Z alone, which leaves y where it shall
be. It is refused by what refuses strides of :mod:`robomodel.mechanism.continuation`, as rates at
both ends say: cosines between motions are the singular values of L⁻¹ Gᵀ G' L'⁻ᵀ, L Lᵀ = GᵀG, and
its determinant is negative beyond a dead point of y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.mechanism.continuation import (
    FAR,
    FINE,
    GAIN,
    GAP,
    LIMIT,
    MOST_CORRECTION,
    OPEN,
    SHEET,
    TURN,
    TURNED,
    Continuation,
    solved,
)
from robomodel.mechanism.walks import LONGEST_LEAD, Positions
from robomodel.tolerances import CLOSED, CONVERGED, EXACTLY_CLOSED, TINY, WITHIN

STRIDE = 0.4  # [rad, sizes] at most; a quarter of one that is refused is tried next
SHORTEST = 0.02  # [rad, sizes]: goals that a shorter one would lead towards are beyond the sheet


@dataclass(frozen=True, eq=False)
class Places:
    """Closed configurations q (n, nq) on a sheet.

    With the rates G (n, columns, m), the sign (n,) of det C K Z, and C (n, r, rows); without any
    where no conditions are repeated.
    """

    q: Array
    rates: Array
    signs: Array
    c: Array | None

    def __getitem__(self, rows: Indices | Mask | slice) -> Places:
        c = None if self.c is None else self.c[rows]
        return Places(self.q[rows], self.rates[rows], self.signs[rows], c)

    def move(self, rows: Indices, others: Places) -> None:
        """Set some rows to others."""
        self.q[rows], self.rates[rows], self.signs[rows] = others.q, others.rates, others.signs
        if self.c is not None and others.c is not None:
            self.c[rows] = others.c


def together(parts: Sequence[Places]) -> Places:
    """The places of several, one after the other."""
    some = [p.c for p in parts if p.c is not None]
    q, rates, signs = (np.concatenate([getattr(p, name) for p in parts])
                       for name in ("q", "rates", "signs"))  # fmt: skip
    return Places(q, rates, signs, np.concatenate(some) if some else None)


@dataclass(frozen=True, eq=False)
class Sheet:
    """A sheet of ``joints``, as many as a mechanism has freedoms, which ``along`` is refused to
    leave.
    """

    along: Continuation
    joints: Positions

    @cached_property
    def _pull(self) -> Array:
        """Motions (columns, m) of the joints, each alone."""
        return np.asarray(np.linalg.pinv(self.joints.rows))

    @cached_property
    def _rest(self) -> Array:
        """Z (columns, r): the columns in which no joint moves, where these are enough."""
        rows = self.joints.rows
        still = np.flatnonzero(~np.any(rows != 0.0, axis=0))
        if len(still) == self.along.rank:
            return np.eye(self.along.columns)[:, still]
        return np.asarray(np.linalg.svd(rows)[2][len(rows) :].T)

    @cached_property
    def _still(self) -> Indices | None:
        """The columns that Z has as they are."""
        places = np.argmax(self._rest, axis=0)
        return places if np.array_equal(np.eye(len(self._rest))[:, places], self._rest) else None

    def _resting(self, k: Array) -> Array:
        return np.asarray(k @ self._rest if self._still is None else k[:, :, self._still])

    def at(self, q: Array) -> Places:
        """Closed configurations (n, nq) as places."""
        return self._placed(q, self._step(q, np.zeros((len(q), self.along.columns)))[2])

    def _step(self, q: Array, d: Array) -> tuple[Array, Array, Array]:
        return self.along.mechanism.step(q, d)

    def _placed(self, q: Array, k: Array) -> Places:
        """Closed configurations with their K."""
        square, c = self._resting(k), None
        if k.shape[1] > self.along.rank:
            basis, square = np.linalg.qr(square)
            c = np.swapaxes(basis, 1, 2)
            k = c @ k
        rates = self._pull - self._rest @ solved(square, k @ self._pull)
        return Places(q, rates, np.linalg.slogdet(square)[0], c)

    # ---- a stride

    def _moved(self, p: Places, way: Array) -> tuple[Array, Array, Array]:
        """p moved along ``way`` (n, columns), then closed along Z: q, K, what each ends with.

        The corrections of a stride that is refused for their size are not taken to their end.
        """
        q, phi, k = self._step(p.q, way)
        left = _combined(p.c, phi)
        gap, added = _worst(left), np.zeros_like(way)
        most = MOST_CORRECTION * np.linalg.norm(way, axis=1) + WITHIN
        ends, going = np.full(len(q), FINE), np.flatnonzero(gap > GAP)
        for _ in range(10):  # steps of Newton's method: 3.3 are taken
            if not len(going):
                break
            c = None if p.c is None else p.c[going]
            square = self._resting(k[going] if c is None else c @ k[going])
            step = -solved(square, left[going][:, :, None])[:, :, 0] @ self._rest.T
            added[going] += step
            near = np.linalg.norm(added[going], axis=1) <= most[going]
            ends[going[~near]] = FAR
            going, step, c = going[near], step[near], None if c is None else c[near]
            ahead, phi1, k1 = self._step(q[going], step)
            after = _combined(c, phi1)
            size = _worst(after)
            better = size < GAIN * gap[going]
            going = going[better]
            q[going], phi[going], k[going] = ahead[better], phi1[better], k1[better]
            left[going], gap[going] = after[better], size[better]
            going = going[gap[going] > GAP]
        far = np.maximum(1.0, _worst(q))  # numbers' rounding grows so
        closed = gap <= EXACTLY_CLOSED * far
        if p.c is not None:
            slack = self.along.slack
            least = np.maximum(EXACTLY_CLOSED, np.minimum(slack, CLOSED)) * far[:, None]
            closed &= np.all(np.abs(phi) <= np.maximum(least, slack), axis=1)
        if self.along.also is not None:
            closed &= self.along.also(q)
        return q, k, np.where((ends == FINE) & ~closed, OPEN, ends)

    def _stride(self, p: Places, way: Array) -> tuple[Places, Array]:
        """Places that strides from p along ``way`` lead to, and what each ends with (n,)."""
        q, k, ends = self._moved(p, way)
        beyond = np.any(self.along.limits.beyond(q) > WITHIN, axis=1)
        ends = np.where((ends == FINE) & beyond, LIMIT, ends)
        fine = np.flatnonzero(ends == FINE)
        here, there = p[fine], self._placed(q[fine], k[fine])
        turns = _turns(here.rates, there.rates)
        passed = np.linalg.det(turns) <= 0.0
        cosines = np.linalg.svd(turns, compute_uv=False)[:, -1]
        ends[fine] = np.where(passed, SHEET, np.where(cosines < TURNED, TURN, FINE))
        flipped = np.flatnonzero((ends[fine] == FINE) & (here.signs * there.signs <= 0.0))
        if len(flipped):  # K has lost a rank on the way
            begun = self.along.at(here.q[flipped])
            ends[fine[flipped]] = self.along.led(begun, there.q[flipped])[1]
        return there[ends[fine] == FINE], ends

    def lead(self, p: Places, goals: Array) -> tuple[Places, Array]:
        """Places led straight to where the joints are at ``goals`` (n, m), or towards it.

        The last of each, and what stopped it, nothing where it arrived.
        """
        places, p = self.joints.places, p[np.arange(len(p.q))]  # a copy, whose rows are moved
        missing = goals - p.q[:, places]
        ends, longest = np.zeros(len(goals), dtype=int), np.full(len(goals), STRIDE)
        going = np.flatnonzero(np.linalg.norm(missing, axis=1) > CONVERGED)
        for _ in range(LONGEST_LEAD):
            if not len(going):
                break
            here = p[going]
            way = (here.rates @ missing[going][:, :, None])[:, :, 0]
            size = np.linalg.norm(way, axis=1, keepdims=True)
            way *= np.minimum(1.0, longest[going][:, None] / np.maximum(size, TINY))
            there, end = self._stride(here, way)
            ends[going], fine = end, end == FINE
            on = going[fine]
            p.move(on, there)
            missing[on] = goals[on] - there.q[:, places]
            longest[going] = np.where(fine, np.minimum(2.0 * longest[going], STRIDE),
                                      0.25 * longest[going])  # fmt: skip
            off = np.linalg.norm(missing[going], axis=1)
            going = going[(off > CONVERGED) & (longest[going] > SHORTEST)]
        arrived = np.linalg.norm(missing, axis=1) <= CONVERGED
        return p, np.where(arrived, FINE, np.where(ends, ends, FAR))


def _turns(g: Array, h: Array) -> Array:
    """Products (n, m, m) of orthonormal bases of the motions with rates G, and G'."""
    across = np.swapaxes(g, 1, 2)
    low, other = np.linalg.cholesky(across @ g), np.linalg.cholesky(np.swapaxes(h, 1, 2) @ h)
    half = np.swapaxes(np.linalg.solve(low, across @ h), 1, 2)
    return np.swapaxes(np.linalg.solve(other, half), 1, 2)


def _combined(c: Array | None, phi: Array) -> Array:
    return phi.copy() if c is None else np.asarray(np.einsum("nrk,nk->nr", c, phi))


def _worst(rows: Array) -> Array:
    """The greatest absolute value of each row; 0 without any."""
    return np.asarray(np.abs(rows).max(axis=1, initial=0.0))
