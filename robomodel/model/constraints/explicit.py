"""Constraints inside a cluster: how its joints' motion follows from the independent velocities.

A cluster's joints have positions q (its *spanning* positions) and velocities q̇. A constraint gives
q̇ = G v and q̈ = G v̇ + g for its independent velocities v (002, II-B), over scalars of any
kind. Here those with a constant G: a joint alone (G = 1), and linear couplings such as gears, belts
and mimic joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from robomodel.scalars import Scalar, Vector, add, dot, neg

Conditions: TypeAlias = tuple[list[list[Scalar]], list[Scalar]]


class Constraint(Protocol):
    """How a cluster's spanning positions and velocities follow from its own q and v."""

    def positions(self, q: Vector) -> list[Scalar]:
        """Spanning positions from the cluster's q."""

    def jacobian(self, positions: Vector) -> list[list[Scalar]]:
        """G: spanning velocities by independent velocities."""

    def bias(self, positions: Vector, velocities: Vector) -> list[Scalar]:
        """g: the spanning accelerations at zero independent acceleration."""

    def conditions(self, positions: Vector, velocities: Vector) -> Conditions:
        """K and k of as many conditions as there are dependent velocities: K q̇ = 0, K q̈ = k."""


@dataclass(frozen=True, slots=True)
class Unconstrained:
    """A single joint's cluster: G = 1."""

    nv: int

    def positions(self, q: Vector) -> list[Scalar]:
        """The positions themselves."""
        return list(q)

    def jacobian(self, positions: Vector) -> list[list[Scalar]]:
        """The identity."""
        return [[1.0 if i == j else 0.0 for j in range(self.nv)] for i in range(self.nv)]

    def bias(self, positions: Vector, velocities: Vector) -> list[Scalar]:
        """Zero."""
        return [0.0] * self.nv

    def conditions(self, positions: Vector, velocities: Vector) -> Conditions:
        """None."""
        return [], []


@dataclass(frozen=True, slots=True)
class LinearConstraint:
    """Explicit: a constant G = ``matrix``; positions = ``position_matrix`` · q + ``offset``.

    The two matrices differ only where the cluster also holds a joint whose nq is not its nv.
    """

    matrix: tuple[tuple[float, ...], ...]
    position_matrix: tuple[tuple[float, ...], ...]
    offset: tuple[float, ...]

    def positions(self, q: Vector) -> list[Scalar]:
        """Spanning positions, linear in the independent ones."""
        return [
            add(dot(row, q), offset)
            for row, offset in zip(self.position_matrix, self.offset, strict=True)
        ]

    def jacobian(self, positions: Vector) -> list[list[Scalar]]:
        """The constant matrix."""
        return [list(row) for row in self.matrix]

    def bias(self, positions: Vector, velocities: Vector) -> list[Scalar]:
        """Zero."""
        return [0.0] * len(self.matrix)

    def conditions(self, positions: Vector, velocities: Vector) -> Conditions:
        """For every dependent velocity, that it is its row of G times the independent ones."""
        rows = dependent_rows(self.matrix)
        return rows, [0.0] * len(rows)


def dependent_rows(matrix: Sequence[Sequence[float]]) -> list[list[Scalar]]:
    """x_i = matrix_i · y as rows on x, where y are entries of x: those whose row is a unit's.

    Of several rows that are the same unit's the first is taken for y itself.
    """
    first = [
        next(i for i, row in enumerate(matrix) if row[c] == 1.0 and sum(map(bool, row)) == 1)
        for c in range(len(matrix[0]))
    ]
    rows: list[list[Scalar]] = []
    for i, row in enumerate(matrix):
        if i not in first:
            condition: list[Scalar] = [0.0] * len(matrix)
            condition[i] = 1.0
            for at, x in zip(first, row, strict=True):
                condition[at] = neg(x)
            rows.append(condition)
    return rows
