"""The articulated-body algorithm in orthonormal coordinates of each cluster.

Next to the dead points of a cluster with several freedoms the columns of G are long and nearly
parallel (Tello's hips: two hundred times as long, condition 4e5 of the inertia GᵀIG). Both that
inertia and the forces Gᵀf are then differences of large numbers. With G = Q R, Q's columns
orthonormal, the cluster's accelerations z = R y are the unknowns instead, under the forces R⁻ᵀ τ:
QᵀIQ and Qᵀf lose nothing, and two triangular solutions carry the size of G.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from robomodel.dynamics.kinematics.state import NO_FORCES, Forces, Matrix, State
from robomodel.dynamics.recursions.aba import accelerations
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, div, dot, sqrt, transposed


def orthonormal_aba(
    model: Model, q: Vector, v: Vector, tau: Vector, f_ext: Forces = NO_FORCES
) -> list[Scalar]:
    """Independent accelerations (nv) under the forces ``tau``, as :func:`aba`.

    The unknowns are z = R y for each cluster whose G has several columns and varies.
    """
    state = Orthonormal(model, q, f_ext, v)
    forces = list(tau)
    for cluster in model.clusters:
        if _varies(cluster):
            forces[cluster.v] = _solved_transposed(state.factors[cluster.index][1], tau[cluster.v])
    result = accelerations(state, forces, f_ext)
    for cluster in model.clusters:
        if _varies(cluster):
            result[cluster.v] = _solved(state.factors[cluster.index][1], result[cluster.v])
    return result


@dataclass(frozen=True)
class Orthonormal(State):
    """A state whose clusters have Q in place of G, so that their accelerations are z."""

    @cached_property
    def factors(self) -> dict[int, tuple[Matrix, Matrix]]:
        """Q and R of clusters, by number."""
        return {
            cluster.index: _factored(self.jacobian_rows[cluster.spanning_v])
            for cluster in self.model.clusters
            if _varies(cluster)
        }

    @cached_property
    def jacobian_rows(self) -> Matrix:
        """G, row by row."""
        return self.jacobian()

    @cached_property
    def rows(self) -> Matrix:
        """Q, row by row."""
        rows = list(self.jacobian_rows)
        for cluster in self.model.clusters:
            if _varies(cluster):
                rows[cluster.spanning_v] = self.factors[cluster.index][0]
        return rows

    @cached_property
    def velocities(self) -> list[Scalar]:
        """Spanning velocities G v."""
        return [
            dot(row, self.v[cluster.v])
            for cluster in self.model.clusters
            for row in self.jacobian_rows[cluster.spanning_v]
        ]


def _varies(cluster: Cluster) -> bool:
    return cluster.varies and cluster.nv > 1


def _factored(rows: Sequence[Vector]) -> tuple[Matrix, Matrix]:
    """Q by rows and R, upper triangular, by Gram and Schmidt's modified method."""
    columns = transposed(rows)
    size = len(columns)
    triangle: Matrix = [[0.0] * size for _ in range(size)]
    for j in range(size):
        column = columns[j]
        for i, unit in enumerate(columns[:j]):
            part = triangle[i][j] = dot(unit, column)
            column = [x - part * y for x, y in zip(column, unit, strict=True)]
        length = triangle[j][j] = sqrt(dot(column, column))
        inverse = div(1.0, length)
        columns[j] = [inverse * x for x in column]
    return transposed(columns), triangle


def _solved(triangle: Matrix, right: Vector) -> list[Scalar]:
    """R⁻¹ x."""
    result = list(right)
    for i in reversed(range(len(result))):
        solved = dot(triangle[i][i + 1 :], result[i + 1 :])
        result[i] = div(result[i] - solved, triangle[i][i])
    return result


def _solved_transposed(triangle: Matrix, right: Vector) -> list[Scalar]:
    """R⁻ᵀ x."""
    result = list(right)
    for i in range(len(result)):
        solved = dot([triangle[k][i] for k in range(i)], result[:i])
        result[i] = div(result[i] - solved, triangle[i][i])
    return result
