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
from robomodel.model.elements import Cluster, columns_of, velocity_units
from robomodel.model.model import Model
from robomodel.reach.groups import compiled_geometry, kept_rows
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
        columns, unit = tuple(columns_of(model, cluster)), velocity_units(model, cluster)
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

    def matrix(self, q: Array) -> Array:
        """K in comparable units, the rows that are always repeated left out where that is safe."""
        rows = self.cluster.closing_rows if self.cluster.implicit else range(self.geometry.rows)
        jacobian: Array = self.geometry.evaluate(q)[1][..., list(rows), :]
        return jacobian * self.unit

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

        There its least singular value is at most a share of the largest. The reciprocals of the
        norms of inverse factors are below the least, so that few have to be computed.
        """
        null, _, conditions = self._factored(q)
        lost = np.ones(len(conditions), dtype=bool)
        if conditions.shape[1] == conditions.shape[2]:  # triangles
            size = np.linalg.norm(conditions, axis=(1, 2))
            pivots = np.abs(np.diagonal(conditions, axis1=1, axis2=2))
            plain = np.min(pivots, axis=1, initial=np.inf) > share * size
            inverse = np.linalg.norm(np.linalg.inv(conditions[plain]), axis=(1, 2))
            lost[plain] = share * size[plain] * inverse >= 1.0
        if lost.any():
            sizes = np.linalg.svd(conditions[lost], compute_uv=False)[:, : self.rank]
            lost[lost] = sizes[:, -1] <= share * sizes[:, 0]
        return null, lost

    def oriented(self, q: Array) -> tuple[Array, Array]:
        """Motions N of q (n, nq), and the signs (n,) of det [K; Nᵀ], K without rows that repeat.

        Times that of det N_y it is the sign of det [K; y], which changes at dead points of joints y
        and nowhere else.
        """
        null, matrix, _ = self._factored(q)
        if self.telling is None:
            matrix = matrix[:, full_rank_rows(matrix[0], self.rank)]
        square = np.concatenate([matrix, np.swapaxes(null, 1, 2)], axis=1)
        return null, np.asarray(np.linalg.slogdet(square)[0])

    def _factored(self, q: Array) -> tuple[Array, Array, Array]:
        """The motions, K or rows that repeat no others, and a matrix with its singular values."""
        if self.telling is None:
            matrix = self.matrix(q)
            wide = matrix.shape[-2] < matrix.shape[-1]
            right = np.linalg.svd(matrix, full_matrices=wide)[2]
            return np.swapaxes(right[..., self.rank :, :], -1, -2), matrix, matrix
        rows: Array = self.geometry.evaluate(q)[1][..., self.telling, :] * self.unit
        basis, triangle = np.linalg.qr(np.swapaxes(rows, -1, -2), mode="complete")
        return basis[..., self.rank :], rows, triangle[..., : self.rank, :]

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
