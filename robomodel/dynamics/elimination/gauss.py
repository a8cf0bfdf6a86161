"""Gaussian elimination of the sparse system, variable by variable, over scalars of any kind.

Rows are sparse, structural zeros are not in them, and pivots of ±1 cost nothing. Which row
eliminates which column is decided on values, before (:func:`plan`) or on the way (:func:`solve`);
the arithmetic that follows branches on nothing, so that it runs on floats, on NumPy batches, and on
traced handles, which makes it code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robomodel.dynamics.equations.system import System
from robomodel.scalars import Scalar, add, div, is_zero, mul, neg, sub

THRESHOLD = 0.1  # a pivot is no smaller than this share of the largest in its column
SINGULAR = 1e-11  # of a column's first size: what remains is rounding

Row = dict[int, Scalar]
Pivot = tuple[int, int]


class SingularError(ArithmeticError):
    """A variable that the equations do not determine, or not in this order; its name first."""

    def __init__(self, variable: str, message: str) -> None:
        super().__init__(f"'{variable}' {message}")
        self.variable = variable


@dataclass(frozen=True, slots=True)
class Plan:
    """Which row eliminates which column, in sequence; for any state of the same problem."""

    order: tuple[str, ...]
    pivots: tuple[Pivot, ...]


@dataclass(frozen=True, slots=True)
class Elimination:
    """A factorisation: the rows as they stood when they were used, and how others lost them.

    ``lost[k]``: the rows from which pivot row k was taken, and how many times. ``left``: rows that
    remain without columns, which say nothing new where the system is consistent.
    """

    system: System
    plan: Plan
    rows: tuple[Row, ...]
    lost: tuple[tuple[tuple[int, Scalar], ...], ...]
    left: tuple[int, ...]

    @property
    def entries(self) -> int:
        """Entries of the triangular factor."""
        return sum(len(row) for row in self.rows)

    def solve(self, right: Sequence[Scalar]) -> tuple[dict[str, list[Scalar]], list[Scalar]]:
        """D d = right: every variable by name; and what the rows left over fail by."""
        rest = list(right)
        for (r, _), steps in zip(self.plan.pivots, self.lost, strict=True):
            for target, factor in steps:
                rest[target] = sub(rest[target], mul(factor, rest[r]))
        value: dict[int, Scalar] = {}
        for (r, column), row in zip(reversed(self.plan.pivots), reversed(self.rows), strict=True):
            total = rest[r]
            for other, x in row.items():
                if other != column:
                    total = sub(total, mul(x, value[other]))
            value[column] = div(total, row[column])
        found = {name: [value[c] for c in at] for name, at in self.system.columns.items()}
        return found, [rest[r] for r in self.left]

    def solution(self, *, refine: int = 0) -> dict[str, list[Scalar]]:
        """D d + b = 0, with so many steps of iterative refinement; every variable by name."""
        found, _ = self.solve([neg(x) for f in self.system.factors for x in f.constant])
        for _ in range(refine):
            correction, _ = self.solve([neg(x) for x in residual(self.system, found)])
            found = {
                name: [add(x, y) for x, y in zip(values, correction[name], strict=True)]
                for name, values in found.items()
            }
        return found


def eliminate(system: System, order: Sequence[str], plan: Plan | None = None) -> Elimination:
    """Eliminate in this order, with the pivots of a plan, or chosen here on values.

    Values may be batches: a pivot must then do for all of them.
    """
    matrix, _ = system.matrix()
    rows: dict[int, Row] = {
        i: {c: x for c, x in enumerate(row) if not is_zero(x)} for i, row in enumerate(matrix)
    }
    touching: dict[int, set[int]] = {c: set() for c in range(system.unknowns)}
    for i, row in rows.items():
        for c in row:
            touching[c].add(i)
    if plan is None:
        scale = {c: _size([rows[i][c] for i in touching[c]]) for c in touching}
        sequence = _Choice(system, order, rows, touching, scale)
    else:
        sequence = None
    used: list[Row] = []
    lost: list[tuple[tuple[int, Scalar], ...]] = []
    pivots: list[Pivot] = []
    planned = iter(plan.pivots if plan is not None else ())
    while True:
        pivot = next(planned, None) if sequence is None else sequence.following()
        if pivot is None:
            break
        r, c = pivot
        row = rows.pop(r)
        for other in row:
            touching[other].discard(r)
        if c not in row:
            name = next(n for n, at in system.columns.items() if c in at)
            raise SingularError(name, "has a structural zero for its pivot: the plan is another's")
        steps: list[tuple[int, Scalar]] = []
        inverse = div(1.0, row[c]) if touching[c] else 1.0
        for target in sorted(touching[c]):
            work = rows[target]
            factor = mul(work.pop(c), inverse)
            touching[c].discard(target)
            for other, x in row.items():
                if other == c:
                    continue
                known = work.get(other)
                result = neg(mul(factor, x)) if known is None else sub(known, mul(factor, x))
                if is_zero(result):
                    if known is not None:
                        del work[other]
                        touching[other].discard(target)
                    continue
                work[other] = result
                touching[other].add(target)
            steps.append((target, factor))
        used.append(row)
        lost.append(tuple(steps))
        pivots.append(pivot)
    done = Plan(tuple(order), tuple(pivots))
    return Elimination(system, done, tuple(used), tuple(lost), tuple(rows))


def plan(system: System, order: Sequence[str]) -> Plan:
    """Pivots that are safe at all the states whose values, as batches, the system holds."""
    return eliminate(system, order).plan


class _Choice:
    """Pivots by Markowitz's count within each variable, among those that are large enough."""

    def __init__(
        self,
        system: System,
        order: Sequence[str],
        rows: dict[int, Row],
        touching: dict[int, set[int]],
        scale: dict[int, Any],
    ) -> None:
        self.rows, self.touching, self.scale = rows, touching, scale
        self.queue = [(name, list(system.columns[name])) for name in order]
        self.at = 0

    def following(self) -> Pivot | None:
        """The next pivot; None at the end."""
        while self.at < len(self.queue) and not self.queue[self.at][1]:
            self.at += 1
        if self.at == len(self.queue):
            return None
        name, columns = self.queue[self.at]
        best: tuple[tuple[float, float], Pivot] | None = None
        for c in columns:
            candidates = sorted(self.touching[c])
            if not candidates:
                continue
            values = np.array([np.broadcast_to(np.abs(self.rows[i][c]), self._batch())
                               for i in candidates])  # fmt: skip
            largest = np.max(values, axis=0)
            if np.any(~(largest > SINGULAR * self.scale[c])):
                continue
            share = np.min(values / largest, axis=tuple(range(1, values.ndim)))
            for i, s in zip(candidates, share, strict=True):
                if s < THRESHOLD:
                    continue
                x = self.rows[i][c]
                unit = type(x) is float and abs(x) == 1.0
                count = (len(self.rows[i]) - 1) * (len(candidates) - 1)
                key = (count + (0.0 if unit else 0.5), -float(s))
                if best is None or key < best[0]:
                    best = key, (i, c)
        if best is None:
            raise SingularError(name, "is not determined by the equations that are left")
        columns.remove(best[1][1])
        return best[1]

    def _batch(self) -> tuple[int, ...]:
        if not hasattr(self, "_shape"):
            shapes = [np.shape(x) for row in self.rows.values() for x in row.values()]
            self._shape = np.broadcast_shapes(*set(shapes)) if shapes else ()
        return self._shape


def _size(values: Sequence[Scalar]) -> Any:
    total: Any = 0.0
    for x in values:
        total = np.maximum(total, np.abs(x))
    return total


def residual(system: System, solution: Mapping[str, Sequence[Scalar]]) -> list[Scalar]:
    """D d + b, row by row."""
    found: list[Scalar] = []
    for factor in system.factors:
        for i in range(factor.rows):
            total = factor.constant[i]
            for name, block in factor.blocks.items():
                for x, y in zip(block[i], solution[name], strict=True):
                    total = add(total, mul(x, y))
            found.append(total)
    return found


def backward_error(system: System, solution: Mapping[str, Sequence[Scalar]]) -> Any:
    """How little D and b must change, by entries, for d to solve D d + b = 0 (batched).

    max |D d + b| / (|D| |d| + |b|) over the exact rows; where that denominator is but rounding,
    |D| |d|max is added to it (Arioli, Demmel and Duff 1989).
    """
    largest: Any = 0.0
    for values in solution.values():
        for y in values:
            largest = np.maximum(largest, np.abs(y))
    worst: Any = 0.0
    rows = iter(residual(system, solution))
    for factor in system.factors:
        for i in range(factor.rows):
            norm, size = 0.0 * largest, np.abs(factor.constant[i])
            for name, block in factor.blocks.items():
                for x, y in zip(block[i], solution[name], strict=True):
                    norm = norm + np.abs(x)
                    size = size + np.abs(x) * np.abs(y)
            rounding = 1e3 * np.finfo(float).eps * (norm * largest)
            size = np.where(size > rounding, size, size + norm * largest)
            error = np.abs(next(rows)) / np.where(size > 0.0, size, 1.0)
            if factor.deviation is None:
                worst = np.maximum(worst, error)
    return worst
