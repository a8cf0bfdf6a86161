"""Parts of clusters: the joints that conditions relate to each other, and strides of theirs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.mechanism.closure import LinearCoupling
from robomodel.mechanism.compiled import CompiledGeometry
from robomodel.mechanism.continuation import CROSSING, Continuation, Limits, Points
from robomodel.mechanism.joints import Revolute
from robomodel.mechanism.strides import Chart
from robomodel.reach.groups import left_null
from robomodel.tolerances import CLOSED, MOVES

TURNS = 8  # of a joint without limits in a part where couplings turn joints with limits
VARIED = 1e-5  # rad, sizes: of central differences, at the cube root of rounding


@dataclass(frozen=True, eq=False)
class Part:
    """Joints of a cluster that conditions relate to each other.

    ``geometry`` is the cluster's, of which ``rows`` close the part. ``conditions`` are the names
    and rows of the part's loops, then of its couplings, ``linear`` the latter; ``columns`` are its
    spanning velocities, ``rank`` the number of its independent conditions. ``names``, ``unit``,
    ``low``, ``high`` and ``lengths`` (in metres) are of all columns of the cluster, ``velocities``
    (columns, columns) its velocities by those that are not left out, as rows; ``place`` is where in
    q the joints of one freedom are, by their columns. ``followers`` are joints that are left out:
    where they are in q, Σ (where, ratio) and an offset that give it.
    ``spinning`` are columns that spins of rods turn, which are free beside what moves. ``crossing``
    is the gap at which branches cross.
    """

    geometry: CompiledGeometry
    rows: tuple[int, ...]
    conditions: tuple[tuple[str, range], ...]
    linear: tuple[LinearCoupling, ...]
    columns: tuple[int, ...]
    rank: int
    names: tuple[str, ...]
    unit: Array
    low: Array
    high: Array
    velocities: Array
    lengths: tuple[bool, ...]
    place: dict[int, int]
    followers: tuple[tuple[int, tuple[tuple[int, float], ...], float], ...]
    spinning: frozenset[int] = frozenset()
    crossing: float = CROSSING

    @cached_property
    def _strides(self) -> dict[tuple[tuple[int, ...], ...], Continuation]:
        """Strides of sets of free columns, as they are asked for."""
        return {}

    def strides(self, *helds: Sequence[int]) -> Continuation:
        """Its strides while columns are held. Limits are none of their barriers.

        Rows are of one case or another of as many columns that are held; of none by default.
        """
        frees = tuple(self.free_columns(tuple(held)) for held in helds or [()])
        if frees not in self._strides:
            nothing, count = np.zeros(0), len(frees[0])
            limits = Limits(np.zeros((0, count)), np.zeros(0, dtype=np.intp), nothing, nothing)
            mechanism = PartMechanism(self, np.array(frees, dtype=np.intp))
            rank = min(self.rank, count)
            self._strides[frees] = Continuation(
                mechanism, count, rank, limits, self.crossing, slack=CLOSED
            )
        return self._strides[frees]

    @cached_property
    def _frees(self) -> dict[tuple[int, ...], tuple[int, ...]]:
        """Columns that are not held, by those that are."""
        return {}

    def free_columns(self, held: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Its columns that are not held."""
        if held not in self._frees:
            self._frees[held] = tuple(c for c in self.columns if c not in held)
        return self._frees[held]

    @cached_property
    def closing(self) -> CompiledGeometry:
        """Its geometry with its own conditions alone."""
        return self.geometry.only(self.rows)

    @cached_property
    def interest(self) -> tuple[int, ...]:
        """The columns of joints of one freedom, but for those that only turn a rod."""
        return tuple(c for c in self.columns if c in self.place and c not in self.spinning)

    def rows_of(self, columns: Sequence[int]) -> Array:
        """Velocities of these columns of the cluster as rows: what the part alone tells of them."""
        rows = self.velocities[list(columns)]
        mine = left_null(np.delete(rows, self.columns, axis=1)).T @ rows
        return np.asarray(mine[np.any(mine != 0.0, axis=1)])

    @property
    def mobility(self) -> int:
        """The number of freedoms."""
        return len(self.columns) - self.rank

    @cached_property
    def limited(self) -> tuple[int, ...]:
        """The columns with limits."""
        bounded = np.isfinite(self.low) | np.isfinite(self.high)
        return tuple(c for c in self.columns if bounded[c])

    @cached_property
    def sides(self) -> tuple[Indices, Indices, Array]:
        """Columns and places of joints with limits, for both sides (-1, 1) of each."""
        columns = np.array(self.limited * 2, dtype=np.intp)
        places = np.array([self.place[c] for c in self.limited * 2], dtype=np.intp)
        return columns, places, np.repeat([-1.0, 1.0], len(self.limited))

    @cached_property
    def coupled(self) -> frozenset[int]:
        """The columns of joints that couplings turn with others."""
        return frozenset(c for each in self.linear for body, _ in each.terms
                         for c in self.geometry.links[body].freedoms)  # fmt: skip

    @cached_property
    def hinges(self) -> tuple[int, ...]:
        """The columns of hinges that neither couplings turn nor screws.

        Those that undo a screw's turns have units of more than a radian.
        """
        hinges = {link.v for link in self.geometry.links
                  if isinstance(link.joint, Revolute) and self.unit[link.v] <= 1.0}  # fmt: skip
        return tuple(c for c in self.interest if c in hinges and c not in self.coupled)

    @cached_property
    def turning(self) -> tuple[int, ...]:
        """The columns of hinges that are back where they were after a turn."""
        return tuple(c for c in self.hinges if c not in self.limited)

    def endless(self, column: int) -> float:
        """From which travel on [rad, m] a joint without limits counts as one without ends.

        Joints with limits that couplings turn with others may meet these after more than a turn.
        """
        if self.lengths[column]:
            return 10.0 * float(self.unit[column])
        turns = TURNS if self.coupled & {*self.limited} else 1
        return turns * 2.0 * math.pi * float(self.unit[column])  # of what a gear drives

    def free(self, held: Sequence[int] = ()) -> Array:
        """1 for its columns but the held ones, 0 for all others of the cluster."""
        mask = np.zeros(len(self.unit))
        mask[list(self.columns)] = 1.0
        mask[list(held)] = 0.0
        return mask

    def matrix(self, jacobian: Array, free: Array) -> Array:
        """Its rows of K in comparable units, zero in columns that are not free."""
        rows = list(self.rows)
        k = jacobian[..., rows, :] * self.geometry.row_unit[rows, None]
        result: Array = k * (self.unit * free)[..., None, :]
        return result

    def null(self, q: Array, held: Sequence[int] = ()) -> Array:
        """Orthonormal motions (..., columns of the cluster, n) while ``held`` rest."""
        free = self.free_columns(tuple(held))
        matrix = self.matrix(self.geometry.evaluate(q)[1], self.free(held))[..., free]
        count = max(0, self.mobility - len(held))
        motions = np.zeros((*q.shape[:-1], len(self.unit), count))
        if count and len(self.rows) == self.rank:
            basis = np.linalg.qr(np.swapaxes(matrix, -1, -2), mode="complete")[0]
            motions[..., free, :] = basis[..., -count:]
        elif count:  # conditions repeat
            right = np.linalg.svd(matrix)[2]
            motions[..., free, :] = np.swapaxes(right[..., -count:, :], -1, -2)
        return motions

    def variation(self, q: Array, motions: Array) -> Array:
        """K's change (..., n, rows, columns) along motions (..., columns, n), of its own rows.

        All in comparable units; by central differences.
        """
        ways = VARIED * np.swapaxes(motions, -1, -2) * self.unit
        both = np.stack([ways, -ways], axis=-3)
        k = self.closing.step(q[..., None, None, :], both)[2] * self.unit
        result: Array = (k[..., 0, :, :, :] - k[..., 1, :, :, :]) / (2.0 * VARIED)
        return result

    def at(self, q: Array, held: Sequence[int] = ()) -> Points:
        """One q as a point, while columns are held."""
        return self.strides(held).at(q[None])

    def points(self, q: Array, helds: Sequence[tuple[int, ...]]) -> Points:
        """Points (n, nq), while in each other columns are held, but as many."""
        cases = [*dict.fromkeys(helds)]
        along, case = self.strides(*cases), np.array([cases.index(held) for held in helds])
        k = along.mechanism.step(q, np.zeros((len(q), along.columns)), case)[2]
        return replace(along.point(q, k), case=case)

    def among(self, motion: Array, held: Sequence[int] = ()) -> Array:
        """A motion (..., columns of the cluster) in its columns that are not held."""
        return motion[..., self.free_columns(tuple(held))]

    def rates(self, held: Sequence[int] = ()) -> Array:
        """Velocities (columns of the cluster, n) of joints by motions of those not held."""
        return self.among(np.diag(self.unit), held)

    def whole(self, motion: Array, held: Sequence[int] = ()) -> Array:
        """A motion of its columns that are not held (..., columns), in those of the cluster."""
        result = np.zeros((*motion.shape[:-1], len(self.unit)))
        result[..., self.free_columns(tuple(held))] = motion
        return result

    def ahead(self, points: Points, before: Array, held: Sequence[int] = ()) -> Array:
        """Directions (n, m) at points that go on from motions ``before`` (n, columns).

        Where rods may spin beside what moves, they are of motions without spins.
        """
        if points.n.shape[2] == 1:
            ways = np.ones((len(before), 1))
        else:
            free = self.free_columns(tuple(held))
            mine = [free.index(c) for c in self.interest if c in free]
            shown = points.n[:, mine]
            ways = np.linalg.eigh(np.swapaxes(shown, 1, 2) @ shown)[1][:, :, -1]
        along = np.einsum("ncm,nm,nc->n", points.n, ways, before)
        return np.asarray(ways * np.where(along < 0.0, -1.0, 1.0)[:, None])

    def completed(self, q: Array) -> Array:
        """Spanning positions with the joints that are left out where couplings turn them."""
        q = q.copy()
        for place, terms, offset in self.followers:
            q[..., place] = offset + sum(ratio * q[..., other] for other, ratio in terms)
        return q

    def position(self, q: Array, column: int) -> float:
        """The position of the joint with one freedom in this column."""
        return float(q[..., self.place[column]])

    def loop_of(self, motion: Array, q: Array, columns: Sequence[int] = ()) -> str:
        """The loop, or the coupling, whose forces alone hold joints of ``columns`` that rest.

        Where these rest though others move, forces w of conditions act on no other joint: K'w = 0
        but in ``columns``. Loops without such forces have no part in it. Of those that have, one
        with joints of ``columns`` if any, of these that whose joints move most, of equals the
        first. ``motion`` in comparable units.
        """
        if not self.conditions:
            return ""
        k = self.geometry.evaluate(q)[1] * self.unit
        weights, related = np.abs(k) @ np.abs(motion), np.any(k[:, list(columns)] != 0.0, axis=1)
        held = self._holding(k, columns)
        parts = [list(rows) for _, rows in self.conditions]
        loads = [float(np.sum(np.abs(held[rows] @ k[rows]))) for rows in parts]
        moved = [float(np.sum(weights[rows])) for rows in parts]
        sizes = [
            (
                load > MOVES * max(loads),
                size > MOVES * max(moved) and bool(np.any(related[rows])),
                round(size, 9),
            )
            for load, size, rows in zip(loads, moved, parts, strict=True)
        ]
        return self.conditions[sizes.index(max(sizes))][0]

    def _holding(self, k: Array, columns: Sequence[int]) -> Array:
        """The forces of conditions (of all rows of ``k``) that act least on joints but ``columns``.

        Without columns also forces that act on no joint at all count.
        """
        mine = k[list(self.rows)]
        left = np.linalg.svd(mine * self.free(), full_matrices=False)[0]
        if columns:
            left = left[:, : self.rank]
        forces = np.zeros(len(k))
        forces[list(self.rows)] = (
            left @ np.linalg.svd(left.T @ (mine * self.free(columns)))[0][:, -1]
        )
        return forces


@dataclass(frozen=True, eq=False)
class PartMechanism:
    """Free columns (cases, n) of a part as a mechanism for continuation."""

    part: Part
    free: Indices

    @cached_property
    def _unit(self) -> Array:
        return self.part.unit[self.free]

    @cached_property
    def pattern(self) -> Mask:
        """As of :class:`robomodel.mechanism.continuation.Mechanism`."""
        entries = np.zeros((self.part.closing.rows, self.part.closing.nv), dtype=bool)
        entries[self.part.closing.entries] = True
        return np.asarray(np.any(entries[:, self.free], axis=1))

    @cached_property
    def chart(self) -> Chart | None:
        """As of :class:`robomodel.mechanism.continuation.Mechanism`: all columns of the part."""
        part, closing = self.part, self.part.closing
        if closing.linear:
            return None
        return Chart(closing, part.columns, part.unit[list(part.columns)], np.ones(closing.rows))

    @cached_property
    def _places(self) -> Indices:
        """Where the free columns are among all of the part (cases, n)."""
        place = {c: n for n, c in enumerate(self.part.columns)}
        return np.array([[place[c] for c in free] for free in self.free.tolist()], dtype=np.intp)

    def spread(self, columns: Array, case: Indices) -> Array:
        """As of :class:`robomodel.mechanism.continuation.Mechanism`: zero in held columns."""
        count = len(self.part.columns)
        if columns.shape[1] == count:
            return columns
        whole = np.zeros((len(columns), count, *columns.shape[2:]))
        whole[np.arange(len(columns))[:, None], self._places[case]] = columns
        return whole

    def gathered(self, columns: Array, case: Indices) -> Array:
        """As of :class:`robomodel.mechanism.continuation.Mechanism`."""
        if self._places.shape[1] == columns.shape[1]:
            return columns
        return np.asarray(columns[np.arange(len(columns))[:, None], self._places[case]])

    def step(self, q: Array, d: Array, case: Indices | None = None) -> tuple[Array, Array, Array]:
        """As of :class:`robomodel.mechanism.continuation.Mechanism`."""
        motion = np.zeros((len(d), len(self.part.unit)))
        if case is None or len(self.free) == 1:
            free, unit = self.free[0], self._unit[0]
            motion[:, free] = d * unit
            q, values, jacobian = self.part.closing.step(q, motion)
            return q, values, jacobian[:, :, free] * unit
        free, unit, row = self.free[case], self._unit[case], np.arange(len(case))[:, None]
        motion[row, free] = d * unit
        q, values, jacobian = self.part.closing.step(q, motion)
        columns = np.swapaxes(jacobian, 1, 2)[row, free] * unit[:, :, None]
        return q, values, np.swapaxes(columns, 1, 2)

    def away(self, q0: Array, q1: Array, case: Indices | None = None) -> Array:
        """As of :class:`robomodel.mechanism.continuation.Mechanism`."""
        way = self.part.geometry.difference(q0, q1)
        if case is None or len(self.free) == 1:
            return np.asarray(way[..., self.free[0]] / self._unit[0])
        return np.asarray(np.take_along_axis(way, self.free[case], axis=1) / self._unit[case])
