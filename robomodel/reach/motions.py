"""A cluster's motions at closed configurations, in comparable units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.mechanism import closure as newton
from robomodel.mechanism.closure import Geometry, Held
from robomodel.mobility import SpanningColumn, column_limits
from robomodel.model.elements import Cluster, columns_of
from robomodel.model.model import Model
from robomodel.reach.groups import compiled_geometry, kept_rows
from robomodel.reach.windings import windings
from robomodel.tolerances import CLOSED, TINY, WITHIN


@dataclass(frozen=True)
class ClusterMotion:
    """A cluster, and the columns of its spanning velocities in comparable units."""

    cluster: Cluster
    geometry: Geometry
    columns: tuple[SpanningColumn, ...]
    unit: Array
    low: Array
    high: Array

    @staticmethod
    def of(model: Model, cluster: Cluster) -> ClusterMotion:
        """The motion of a cluster; couplings alone, of which few states are asked for, are worth
        no program.
        """
        columns, unit = tuple(columns_of(model, cluster)), cluster.geometry.unit
        loops = cluster.kind == "loops"
        geometry = compiled_geometry(model, cluster.index) if loops else cluster.geometry
        return ClusterMotion(cluster, geometry, columns, unit, *column_limits(columns))

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.label for column in self.columns)

    @property
    def rank(self) -> int:
        """The number of its conditions."""
        return len(self.columns) - self.cluster.nv

    @cached_property
    def winding(self) -> Array:
        """Factors of the columns' units where fine screws turn, as of :func:`windings`."""
        return windings(self.cluster)

    def matrix(self, q: Array) -> Array:
        """K in comparable units, the rows that are always repeated left out where that is safe."""
        rows = self.cluster.closing_rows if self.cluster.implicit else range(self.geometry.rows)
        jacobian: Array = self.geometry.evaluate(q)[1][..., list(rows), :]
        return jacobian * self.geometry.row_unit[list(rows), None] * self.unit

    @cached_property
    def telling(self) -> list[int] | None:
        """As many conditions as its rank that repeat no others; None if these vary with q."""
        first = self.geometry.rows - len(self.geometry.linear)
        pivots = self.cluster.pivots or (0,) * len(self.geometry.linear)
        couplings = [n for n, pivot in enumerate(pivots, first) if pivot is not None]
        rows = [*kept_rows(self.cluster), *couplings]
        return rows if len(rows) == self.rank else None

    def null(self, q: Array) -> Array:
        """Orthonormal motions (..., columns, mobility)."""
        return self._factored(q)[0]

    def with_dependent(self, q: Array, share: float) -> tuple[Array, Mask]:
        """Motions of q (n, nq), and where K without conditions that repeat lost a rank.

        There its least singular value is at most a share of the largest. With the first motions N
        below K, [K; Nᵀ]⁻¹ = [R, X] has K R = 1 and K X = 0: the reciprocals of R's norms are below
        the least, so that few have to be computed.
        """
        if self.telling is None:
            null, conditions = self._factored(q)
            lost = np.ones(len(q), dtype=bool)
        else:
            conditions = self._told(q)
            null, inverse = _beside(conditions, self.null(q[0]))
            sizes = np.linalg.norm(conditions, axis=(1, 2)) * np.linalg.norm(inverse, axis=(1, 2))
            lost = ~(share * sizes < 1.0)
            if lost.any():
                null[lost] = self.null(q[lost])
        if lost.any():
            sizes = np.linalg.svd(conditions[lost], compute_uv=False)[:, : self.rank]
            lost[lost] = sizes[:, -1] <= share * sizes[:, 0]
        return null, lost

    def oriented(self, q: Array) -> tuple[Array, Array]:
        """Motions N of q (n, nq), and the signs (n,) of det [K; Nᵀ], K without rows that repeat.

        Times that of det N_y it is the sign of det [K; y], which changes at dead points of joints y
        and nowhere else.
        """
        null, matrix = self._factored(q)
        if self.telling is None:
            matrix = matrix[:, full_rank_rows(matrix[0], self.rank)]
        square = np.concatenate([matrix, np.swapaxes(null, 1, 2)], axis=1)
        return null, np.asarray(np.linalg.slogdet(square)[0])

    @cached_property
    def _telling_geometry(self) -> Geometry:
        return self.geometry.only(self.telling or ())

    def _told(self, q: Array) -> Array:
        """The rows of K (..., rank, columns) that repeat no others."""
        jacobian: Array = self._telling_geometry.evaluate(q)[1]
        return jacobian * self.geometry.row_unit[self.telling, None] * self.unit

    def _factored(self, q: Array) -> tuple[Array, Array]:
        """The motions, and K or its rows that repeat no others."""
        if self.telling is None:
            matrix = self.matrix(q)
            wide = matrix.shape[-2] < matrix.shape[-1]
            right = np.linalg.svd(matrix, full_matrices=wide)[2]
            return np.swapaxes(right[..., self.rank :, :], -1, -2), matrix
        rows = self._told(q)
        basis, _ = np.linalg.qr(np.swapaxes(rows, -1, -2), mode="complete")
        return basis[..., self.rank :], rows

    def rates(self, q: Array) -> Array:
        """G (..., columns, nv) at closed positions; infinite or nan at dead points."""
        null, independent = self.null(q), list(self.cluster.columns)
        left, sizes, right = np.linalg.svd(null[..., independent, :])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            inverse = np.swapaxes(right, -1, -2) @ (np.swapaxes(left, -1, -2) / sizes[..., None])
            return np.asarray(self.unit[:, None] * (null @ inverse) / self.unit[independent])

    def positions(self, q: Array) -> Array:
        """Each column's displacement from the zero position."""
        return self.geometry.difference(np.broadcast_to(self.geometry.zero(), q.shape), q)

    def rooms(self, q: Array) -> Array:
        """How far each column is within its limits; below zero beyond."""
        at = self.positions(q)
        return np.minimum(at - self.low, self.high - at)

    def within(self, q: Array) -> Mask:
        """True if all joints are within their limits."""
        inside: Mask = np.min(self.rooms(q), axis=-1) >= -WITHIN
        return inside

    def close(self, q: Array, held: Sequence[int] = ()) -> tuple[Array, Mask]:
        """Closed configurations near these, and which of them are."""
        closed, gap = newton.close(
            self.geometry, q, Held(held), rows=self.cluster.closing_rows, iterations=40
        )
        return closed, (gap <= CLOSED) & ~self.geometry.flipped(closed)

    def wrapped(self, displacement: Array) -> Array:
        """A displacement in comparable units, without full turns."""
        length = np.array([column.length for column in self.columns])
        turns = np.where(length, 0.0, np.round(displacement / (2 * math.pi)))
        result: Array = (displacement - turns * 2 * math.pi) / self.unit
        return result


def _beside(k: Array, near: Array) -> tuple[Array, Array]:
    """Orthonormal motions (n, columns, m) of K (n, r, columns), and R with K R = 1.

    By the inverses of [K; Nᵀ], with motions N (columns, m) of a K near these; infinite if one has
    none.
    """
    n, r = k.shape[:2]
    try:
        inverse = np.linalg.inv(np.concatenate([k, np.tile(near.T, (n, 1, 1))], axis=1))
    except np.linalg.LinAlgError:
        return np.tile(near, (n, 1, 1)), np.full((n, k.shape[2], r), np.inf)
    right, null = inverse[:, :, :r], inverse[:, :, r:]
    return np.linalg.qr(null - right @ (k @ null))[0], right  # once more, for rounding


def full_rank_rows(matrix: Array, rank: int) -> list[int]:
    """Rows that span all the others: those that are longest without their part along the chosen."""
    rest, chosen = matrix.copy(), list[int]()
    for _ in range(rank):
        sizes = np.linalg.norm(rest, axis=1)
        sizes[chosen] = -1.0
        chosen.append(int(np.argmax(sizes)))
        along = rest[chosen[-1]] / max(float(sizes[chosen[-1]]), TINY)
        rest -= np.outer(rest @ along, along)
    return sorted(chosen)
