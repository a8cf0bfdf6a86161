"""The constraint of clusters with loop joints: K(q) q̇ = 0, solved for the dependent velocities.

Everything is over scalars of any kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from robomodel.model.constraints.explicit import Conditions, dependent_rows
from robomodel.model.constraints.loops import Link, LoopJoint, evaluate_loops
from robomodel.scalars import Scalar, Vector, dot, is_zero, mul, neg, solve, sub, transposed

Rows: TypeAlias = Sequence[Sequence[Scalar]]


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
    loops: tuple[LoopJoint, ...]
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
