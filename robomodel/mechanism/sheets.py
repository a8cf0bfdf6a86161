"""Ways on a sheet, where some joints tell a mechanism's configuration.

Of the n columns of K, of rank r, m = n - r velocities ẏ of joints have the rows Y, and Z is a basis
of the motions in which they rest. C K Z, with r combinations C of conditions, is regular but where
K loses a rank, and at dead points of y. A stride moves y straight on, all else by the rates
G = ∂q/∂y and by how these have changed, and closes loops by Newton's method along Z alone, which
leaves y where it shall be. It is refused by what refuses strides of
:mod:`robomodel.mechanism.continuation`, as rates at both ends say: squares of cosines between
motions are the eigenvalues of (GᵀG)⁻¹ GᵀG' (G'ᵀG')⁻¹ G'ᵀG, and det GᵀG' is negative beyond a dead
point of y.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TypeAlias

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.mechanism.blocks import BlockTriangular, blocks
from robomodel.mechanism.continuation import (
    FAR,
    FINE,
    LIMIT,
    MOST_CORRECTION,
    OPEN,
    SHEET,
    TURN,
    Continuation,
    solved,
)
from robomodel.mechanism.strides import GAIN, GAP, TURNED
from robomodel.mechanism.walks import LONGEST_LEAD
from robomodel.tolerances import CLOSED, EXACTLY_CLOSED, NEARLY_CLOSED, TINY, WITHIN

FIRST, STRIDE = 0.5, 1.0  # [rad, sizes]: at first, and at most
# of a stride's length: what Newton's method shall add to it; of joints' ranges: where strides can
# be no longer, a way has come to its end
CORRECTION, LEAST = 0.1, 3e-4


@dataclass(frozen=True, eq=False)
class Places:
    """Closed configurations q (n, nq) on a sheet.

    With the rates G (n, columns, m), ``squares`` (GᵀG)⁻¹ (n, m, m), the sign (n,) of det C K Z, and
    C (n, r, rows); without any where no conditions are repeated.
    """

    q: Array
    rates: Array
    squares: Array
    signs: Array
    c: Array | None

    def __getitem__(self, rows: Indices | Mask | slice) -> Places:
        c = None if self.c is None else self.c[rows]
        return Places(self.q[rows], self.rates[rows], self.squares[rows], self.signs[rows], c)

    def move(self, rows: Indices, others: Places) -> None:
        """Set some rows to others."""
        for each in fields(self):
            if (mine := getattr(self, each.name)) is not None:
                mine[rows] = getattr(others, each.name)


def together(parts: Sequence[Places]) -> Places:
    """The places of several, one after the other."""
    some = [p.c for p in parts if p.c is not None]
    q, rates, squares, signs = (np.concatenate([getattr(p, name) for p in parts])
                                for name in ("q", "rates", "squares", "signs"))  # fmt: skip
    return Places(q, rates, squares, signs, np.concatenate(some) if some else None)


Further: TypeAlias = Callable[[Indices, Places, Mask, Array], tuple[Indices, Places, Array]]
"""Takes rows whose ways are over, their places, which have arrived, and the times before which the
others have come to their ends; gives rows that go on, from where, and along which ways (n, m)."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """A sheet of joints with as many velocities as a mechanism has freedoms.

    ``along`` may not leave it. ``rows`` (m, columns) of these velocities; ``ranges`` (m,) over
    which they move joints, about.
    """

    along: Continuation
    rows: Array
    ranges: Array

    @cached_property
    def _pull(self) -> Array:
        """Motions (columns, m) of the joints, each alone."""
        return np.asarray(np.linalg.pinv(self.rows))

    @cached_property
    def _rest(self) -> Array:
        """Z (columns, r): the columns in which no joint moves, where these are enough."""
        still = np.flatnonzero(~np.any(self.rows != 0.0, axis=0))
        if len(still) == self.along.rank:
            return np.eye(self.along.columns)[:, still]
        return np.asarray(np.linalg.svd(self.rows)[2][len(self.rows) :].T)

    @cached_property
    def _still(self) -> Indices | None:
        """The columns that Z has as they are."""
        places = np.argmax(self._rest, axis=0)
        return places if np.array_equal(np.eye(len(self._rest))[:, places], self._rest) else None

    @cached_property
    def _blocks(self) -> BlockTriangular | None:
        """These columns of K block by block."""
        if self._still is None:
            return None
        pattern = self.along.mechanism.pattern
        return BlockTriangular(pattern, blocks(pattern, self._still.tolist()))

    def _resting(self, c: Array | None, k: Array) -> Array:
        """C K Z."""
        square = k @ self._rest if self._still is None else k[:, :, self._still]
        return np.asarray(square if c is None else c @ square)

    def _solved(self, c: Array | None, k: Array, right: Array) -> Array:
        """The motions x (n, columns, m) along Z with C K x = right (n, r, m)."""
        if c is None and self._blocks is not None:
            return self._blocks.solved(k, right)
        return np.asarray(self._rest @ solved(self._resting(c, k), right))

    def _signs(self, c: Array | None, k: Array) -> Array:
        """The signs (n,) of det C K Z, all of them the other way round or none."""
        if c is None and self._blocks is not None:
            return self._blocks.signs(k)
        return np.asarray(np.linalg.slogdet(self._resting(c, k))[0])

    def at(self, q: Array) -> Places:
        """Closed configurations (n, nq) as places."""
        return self._placed(q, self._step(q, np.zeros((len(q), self.along.columns)))[2])

    def _step(self, q: Array, d: Array) -> tuple[Array, Array, Array]:
        return self.along.mechanism.step(q, d)

    def _placed(self, q: Array, k: Array) -> Places:
        """Closed configurations with their K; det C K Z is positive where conditions repeat."""
        c = None
        if k.shape[1] > self.along.rank:
            basis, square = np.linalg.qr(self._resting(None, k))
            signs = np.prod(np.sign(np.diagonal(square, axis1=1, axis2=2)), axis=1)
            sides = np.where(signs < 0.0, -1.0, 1.0)[:, None]
            basis[:, :, 0] *= sides
            square[:, 0] *= sides
            c, signs = np.swapaxes(basis, 1, 2), np.ones(len(q))
            rates = self._pull - self._rest @ solved(square, c @ k @ self._pull)
        else:
            signs = self._signs(None, k)
            rates = self._pull - self._solved(None, k, k @ self._pull)
        squares = np.asarray(np.linalg.inv(np.swapaxes(rates, 1, 2) @ rates))
        return Places(q, rates, squares, signs, c)

    # ---- a stride

    def _moved(self, p: Places, way: Array, exact: Mask) -> tuple[Array, Array, Array, Array]:
        """p moved along ``way`` (n, columns), then closed along Z.

        q, K, what each ends with, and the lengths of corrections, as shares of the way's. Where it
        shall not be ``exact`` loops are nearly closed. The corrections of a stride that is refused
        for their size are not taken to their end.
        """
        q, phi, k = self._step(p.q, way)
        left = _combined(p.c, phi)
        gap, added = _worst(left), np.zeros_like(way)
        enough, size = np.where(exact, GAP, NEARLY_CLOSED), np.linalg.norm(way, axis=1)
        most = MOST_CORRECTION * size + WITHIN
        ends, going = np.full(len(q), FINE), np.flatnonzero(gap > enough)
        at, now, jacobian = q[going], left[going], k[going]
        for _ in range(10):  # steps of Newton's method: 1.7 are taken
            if not len(going):
                break
            c = None if p.c is None else p.c[going]
            step = -self._solved(c, jacobian, now[:, :, None])[:, :, 0]
            added[going] += step
            near = np.linalg.norm(added[going], axis=1) <= most[going]
            if not near.all():
                ends[going[~near]] = FAR
                going, step, at = going[near], step[near], at[near]
                c = None if c is None else c[near]
            at, phi1, jacobian = self._step(at, step)
            now = _combined(c, phi1)
            worst = _worst(now)
            better = worst < GAIN * gap[going]
            on = going if better.all() else going[better]
            rows = slice(None) if better.all() else better
            q[on], phi[on], gap[on] = at[rows], phi1[rows], worst[rows]
            k[on] = jacobian[rows]
            more = better & (worst > enough[going])
            going, at, now, jacobian = going[more], at[more], now[more], jacobian[more]
        far = np.maximum(1.0, _worst(q))  # numbers' rounding grows so
        nearly = np.where(exact, 0.0, NEARLY_CLOSED)
        closed = gap <= np.maximum(EXACTLY_CLOSED * far, nearly)
        if p.c is not None:
            slack = self.along.slack
            least = np.maximum(EXACTLY_CLOSED, np.minimum(slack, CLOSED)) * far[:, None]
            least = np.maximum(least, nearly[:, None])
            closed &= np.all(np.abs(phi) <= np.maximum(least, slack), axis=1)
        if self.along.also is not None:
            closed &= self.along.also(q)
        share = np.linalg.norm(added, axis=1) / np.maximum(size, TINY)
        return q, k, np.where((ends == FINE) & ~closed, OPEN, ends), share

    def _stride(self, p: Places, way: Array, exact: Mask) -> tuple[Places, Array, Array]:
        """Places that strides from p along ``way`` lead to, and what each ends with (n,).

        Also the shares of corrections.
        """
        q, k, ends, share = self._moved(p, way, exact)
        within = np.where(exact, WITHIN, NEARLY_CLOSED)[:, None]
        beyond = np.any(self.along.limits.beyond(q) > within, axis=1)
        ends = np.where((ends == FINE) & beyond, LIMIT, ends)
        fine = np.flatnonzero(ends == FINE)
        if len(fine) < len(ends):
            p, q, k = p[fine], q[fine], k[fine]
        there = self._placed(q, k)
        passed, turned = _turns(p, there)
        signs = there.signs
        if p.c is not None:
            signs = self._signs(p.c, k)
        ends[fine] = np.where(passed, SHEET, np.where(turned, TURN, FINE))
        flipped = np.flatnonzero((ends[fine] == FINE) & (p.signs * signs <= 0.0))
        if len(flipped):  # K has lost a rank on the way
            begun = self.along.at(p.q[flipped])
            ends[fine[flipped]] = self.along.led(begun, there.q[flipped])[1]
        good = ends[fine] == FINE
        return there if good.all() else there[good], ends, share

    def lead(
        self, p: Places, ways: Array, further: Further | None = None
    ) -> tuple[Places, Mask, Array]:
        """Places led straight on, with constant velocities ``ways`` (n, m) of the joints.

        Also which arrive after unit time, and the times (n,) before which the others have come to
        their ends; loops of these may be nearly closed. Limits end a way at once; else shorter
        strides are tried. Rows whose ways are over go on as ``further`` says.
        """
        p, ways = p[np.arange(len(p.q))], ways.copy()  # copies, whose rows are changed
        now, until, arrived = np.zeros(len(ways)), np.ones(len(ways)), np.zeros(len(ways), bool)
        bends, longest = np.zeros((len(ways), self.along.columns)), np.full(len(ways), FIRST)
        going, strides = np.arange(len(ways)), np.zeros(len(ways))
        while len(going):
            here, way = p[going], ways[going]
            rates = (here.rates @ way[:, :, None])[:, :, 0]
            speed = np.maximum(np.linalg.norm(rates, axis=1), TINY)
            left, t = 1.0 - now[going], longest[going] / speed
            last = t >= left
            t = np.where(last, left, t)
            time = t[:, None]
            there, end, share = self._stride(here, time * (rates + 0.5 * time * bends[going]), last)
            fine = end == FINE
            until[going] = now[going] + t
            on = going[fine]
            change = (there.rates @ way[fine][:, :, None])[:, :, 0] - rates[fine]
            bends[on] = change / time[fine]
            p.move(on, there)
            now[on], arrived[on] = until[on], last[fine]
            longer = np.minimum(np.sqrt(CORRECTION / np.maximum(share, TINY)), 2.0)
            next_ = speed * t * np.where(fine, longer, MOST_CORRECTION)
            longest[going] = np.minimum(next_, STRIDE)
            least = speed * LEAST / np.linalg.norm(way / self.ranges, axis=1)
            strides[going] += 1
            more = ~arrived[going] & (end != LIMIT) & (longest[going] >= least)
            more &= strides[going] < LONGEST_LEAD
            over, going = going[~more], going[more]
            if further is not None and len(over):
                rows, at, ways_on = further(over, p[over], arrived[over], until[over])
                p.move(rows, at)
                ways[rows], now[rows], until[rows], arrived[rows] = ways_on, 0.0, 1.0, False
                bends[rows], longest[rows], strides[rows] = 0.0, FIRST, 0
                going = np.concatenate([going, rows])
        return p, arrived, until


def _turns(p: Places, there: Places) -> tuple[Mask, Mask]:
    """Masks: strides that have passed dead points of the joints; those whose motions have turned.

    The sum of squared cosines is the trace of (GᵀG)⁻¹ (GᵀG') (G'ᵀG')⁻¹ (G'ᵀG); if it lacks little
    of their number, the least need not be known.
    """
    g, h = p.rates, there.rates
    across = np.swapaxes(g, 1, 2) @ h
    passed = np.linalg.det(across) <= 0.0
    sums = np.sum((p.squares @ across) * (across @ there.squares), axis=(1, 2))
    turned = sums < across.shape[1] - 1.0 + TURNED**2
    some = np.flatnonzero(turned & ~passed)
    if len(some):
        products = p.squares[some] @ across[some] @ there.squares[some]
        products = products @ np.swapaxes(across[some], 1, 2)
        squares = np.linalg.eigvals(products).real
        turned[some] = np.min(squares, axis=1) < TURNED**2
    return passed, turned


def _combined(c: Array | None, phi: Array) -> Array:
    return phi.copy() if c is None else np.asarray(np.einsum("nrk,nk->nr", c, phi))


def _worst(rows: Array) -> Array:
    """The greatest absolute value of each row; 0 without any."""
    return np.asarray(np.abs(rows).max(axis=1, initial=0.0))
