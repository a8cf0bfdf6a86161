"""Constraints inside a cluster: how its joints' motion follows from the independent velocities.

A cluster's joints have positions q (its *spanning* positions) and velocities q̇. A constraint gives
q̇ = G v and q̈ = G v̇ + g for its independent velocities v (002, II-B), over scalars of any
kind. G is constant of a joint alone (G = 1) and of linear couplings such as gears, belts and mimic
joints; polynomials are evaluated; with loop joints K(q) q̇ = 0 is solved for the dependent
velocities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from robomodel.model.constraints.loops import Link, LoopCondition, Polynomial, evaluate_loops
from robomodel.scalars import Scalar, Vector, add, dot, is_zero, mul, neg, solve, sub, transposed

Conditions: TypeAlias = tuple[list[list[Scalar]], list[Scalar]]
Rows: TypeAlias = Sequence[Sequence[Scalar]]


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


@dataclass(frozen=True, slots=True)
class PolynomialConstraint:
    """Explicit: linear in z, the independent positions and then polynomials of those before.

    ``linear`` has a column for each of z; each polynomial's x is linear in what is before it in z.
    """

    links: tuple[Link, ...]
    linear: LinearConstraint
    polynomials: tuple[Polynomial, ...]

    def positions(self, q: Vector) -> list[Scalar]:
        """Spanning positions: each polynomial's value in turn, then what is linear in them."""
        z = list(q)
        for each in self.polynomials:
            row = self.links[each.of].q
            x = add(dot(self.linear.position_matrix[row][: len(z)], z), self.linear.offset[row])
            z.append(each.derivative(x))
        return self.linear.positions(z)

    def jacobian(self, positions: Vector) -> list[list[Scalar]]:
        """G = matrix · ∂z/∂q."""
        count = len(self.linear.matrix[0]) - len(self.polynomials)
        rows = Unconstrained(count).jacobian(())
        for each in self.polynomials:
            link = self.links[each.of]
            slope, weights = each.derivative(positions[link.q], 1), self.linear.matrix[link.v]
            columns = transposed(rows)
            rows.append([mul(slope, dot(weights[: len(rows)], column)) for column in columns])
        columns = transposed(rows)
        return [[dot(row, column) for column in columns] for row in self.linear.matrix]

    def bias(self, positions: Vector, velocities: Vector) -> list[Scalar]:
        """g = matrix · z̈ at zero independent acceleration: p'(x) ẍ + p''(x) ẋ² in turn."""
        z: list[Scalar] = [0.0] * (len(self.linear.matrix[0]) - len(self.polynomials))
        for each in self.polynomials:
            link = self.links[each.of]
            x, rate = positions[link.q], velocities[link.v]
            inner = mul(each.derivative(x, 1), dot(self.linear.matrix[link.v][: len(z)], z))
            z.append(add(inner, mul(each.derivative(x, 2), mul(rate, rate))))
        return [dot(row, z) for row in self.linear.matrix]

    def conditions(self, positions: Vector, velocities: Vector) -> Conditions:
        """What is linear in z, and each polynomial."""
        own = evaluate_loops(self.links, self.polynomials, positions, velocities)
        rows, right = self.linear.conditions(positions, velocities)
        return [*rows, *own.jacobian], [*right, *(neg(b) for b in own.bias)]


@dataclass(frozen=True, slots=True)
class Block:
    """A diagonal block of the dependent velocities' system: its rows and its columns."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoopConstraint:
    """Implicit: K(q) q̇ = 0 of loop joints, with linear couplings eliminated beforehand.

    Spanning velocities are ``expand`` · z; z holds the independent velocities (columns
    ``independent`` of z) and those that the loops determine, found block by block.
    """

    links: tuple[Link, ...]
    loops: tuple[LoopCondition, ...]
    keep: frozenset[tuple[int, int]]
    expand: tuple[tuple[float, ...], ...]
    independent: tuple[int, ...]
    blocks: tuple[Block, ...]

    def positions(self, q: Vector) -> list[Scalar]:
        """The positions themselves: an implicit cluster's q holds all of them."""
        return list(q)

    def _dependent(self, jacobian: Rows, right: Rows) -> dict[int, list[Scalar]]:
        """Solve K_d x = right for every dependent column of z."""
        reduced = [
            [dot(row, column) for column in zip(*self.expand, strict=True)] for row in jacobian
        ]
        solution: dict[int, list[Scalar]] = {}
        for block in self.blocks:
            sides = []
            for r in block.rows:
                side = list(right[r])
                for column, solved in solution.items():
                    if not is_zero(reduced[r][column]):
                        side = [
                            sub(b, mul(reduced[r][column], x))
                            for b, x in zip(side, solved, strict=True)
                        ]
                sides.append(side)
            matrix = [[reduced[r][c] for c in block.columns] for r in block.rows]
            solution.update(zip(block.columns, solve(matrix, sides), strict=True))
        return solution

    def conditions(self, positions: Vector, velocities: Vector) -> Conditions:
        """The loops' rows, and what the couplings say; redundant rows are combined by K_dᵀ."""
        loops = evaluate_loops(self.links, self.loops, positions, velocities, keep=self.keep)
        rows, right = loops.jacobian, [neg(b) for b in loops.bias]
        columns = list(zip(*self.expand, strict=True))
        dependent = [c for c in range(len(columns)) if c not in self.independent]
        if len(rows) > len(dependent):
            weights = [[dot(row, columns[c]) for row in rows] for c in dependent]
            right = [dot(w, right) for w in weights]
            rows = [[dot(w, entries) for entries in zip(*rows, strict=True)] for w in weights]
        couplings = dependent_rows(self.expand)
        return [*rows, *couplings], [*right, *([0.0] * len(couplings))]

    def _spanning(self, z: Sequence[Scalar]) -> list[Scalar]:
        return [dot(row, z) for row in self.expand]

    def jacobian(self, positions: Vector) -> list[list[Scalar]]:
        """G = expand · [1; -K_d⁻¹ K_i]."""
        rows = evaluate_loops(self.links, self.loops, positions, keep=self.keep).jacobian
        m = len(self.independent)
        columns = list(zip(*self.expand, strict=True))
        right = [[neg(dot(row, columns[i])) for i in self.independent] for row in rows]
        solution = self._dependent(rows, right)
        for n, i in enumerate(self.independent):
            solution[i] = [1.0 if n == j else 0.0 for j in range(m)]
        z = [solution[i] for i in range(len(columns))]
        by_column = [self._spanning([row[j] for row in z]) for j in range(m)]
        return transposed(by_column)

    def bias(self, positions: Vector, velocities: Vector) -> list[Scalar]:
        """g = expand · [0; K_d⁻¹ k]."""
        loops = evaluate_loops(self.links, self.loops, positions, velocities, keep=self.keep)
        return self._held(loops.jacobian, [neg(b) for b in loops.bias])

    def rows(self, positions: Vector) -> tuple[list[Scalar], list[list[Scalar]]]:
        """Values and Jacobian of the independent loop rows."""
        loops = evaluate_loops(self.links, self.loops, positions, keep=self.keep)
        return loops.values, loops.jacobian

    def closing(self, positions: Vector) -> list[Scalar]:
        """Newton's step of the spanning joints to closed loops, independent joints held."""
        values, jacobian = self.rows(positions)
        return self._held(jacobian, [neg(x) for x in values])

    def _held(self, jacobian: Rows, right: Vector) -> list[Scalar]:
        """expand · [0; K_d⁻¹ right]."""
        solution = self._dependent(jacobian, [[x] for x in right])
        return self._spanning(
            [solution[i][0] if i in solution else 0.0 for i in range(len(self.expand[0]))]
        )


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
