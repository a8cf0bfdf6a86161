"""Planned elimination of sparse rows, over scalars of any kind, so that it can be compiled.

Gaussian elimination turns a system into code: structural zeros are absent and pivots of ±1 need no
division. Pivots are chosen on values, in advance (:func:`plan_pivots`) or during elimination
(:func:`eliminate_scalars`); the arithmetic that follows does not branch, so it runs on floats, on
NumPy batches, and on traced handles.

Measurements, rows with a deviation, are reduced but give no pivots. Columns without a pivot in
exact rows are free; the reduced measurements are a small dense problem in them,
z: min Σ w (r z - b)². Its normal matrix N is positive definite, so any order of pivots is safe; the
digits that forming N loses are restored by refinement of the whole system.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robomodel.dynamics.kinematics.state import Matrix
from robomodel.estimation.elimination import SingularError
from robomodel.instants.equations import Group, System, refined
from robomodel.scalars import Factorization, Scalar, array_of, div, dot, is_zero, value_of
from robomodel.tolerances import ROUNDING

THRESHOLD = 0.1  # least size of a pivot, relative to the largest entry in its column
RELAXED = (THRESHOLD, 1e-2, 1e-4)  # the same for postponed columns, in successive attempts
MANY_COLUMNS = 12  # number of candidate columns from which on sorting them pays
REMAINDER = 1e-11  # relative to a column's original size: smaller remainders are rounding errors

Row = dict[int, Scalar]
Pivot = tuple[int, int]


@dataclass(frozen=True, slots=True)
class PivotSequence:
    """Pivots (row, column) in order, valid for any state of the same problem.

    ``free``: columns that exact rows do not determine and measurements do.
    """

    order: tuple[Group, ...]
    pivots: tuple[Pivot, ...]
    free: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Elimination:
    """A factorisation: the pivot rows, and the rows from which they were subtracted.

    ``lost[k]``: the rows from which pivot row k was subtracted, with the factors. ``left``: exact
    rows that became empty, redundant if the system is consistent. ``carried``: the reduced
    measurements, over free columns.
    """

    system: System
    plan: PivotSequence
    rows: tuple[Row, ...]
    lost: tuple[tuple[tuple[int, Scalar], ...], ...]
    left: tuple[int, ...]
    carried: Mapping[int, Row]

    @property
    def entries(self) -> int:
        """Number of entries of the triangular factor."""
        return sum(len(row) for row in self.rows)

    @property
    def fill(self) -> int:
        """Number of entries of both triangular factors that are zero in the matrix."""
        lower = sum(len(steps) for steps in self.lost) + sum(map(len, self.carried.values()))
        return self.entries + lower - len(self.system.pattern())

    @property
    def operations(self) -> int:
        """Multiplications, additions and divisions of the factorisation and of one solution.

        Counted as a sparse LU on numbers without fused operations; fill counts an addition.
        Products with ±1 are free.
        """
        each = zip(self.plan.pivots, self.rows, self.lost, strict=True)
        return sum(operations(row, c, steps) for (_, c), row, steps in each)

    def solve(self, right: Sequence[Scalar]) -> tuple[dict[str, list[Scalar]], list[Scalar]]:
        """Solve D d = right: variables by name, and the residuals of redundant rows."""
        reduced = self.reduce(right)
        return self.restore(reduced, ()), [reduced[r] for r in self.left]

    def reduce(self, right: Sequence[Scalar]) -> list[Scalar]:
        """Apply the elimination to right-hand sides, row by row."""
        reduced = list(right)
        for (r, _), steps in zip(self.plan.pivots, self.lost, strict=True):
            for target, factor in steps:
                reduced[target] = reduced[target] - factor * reduced[r]
        return reduced

    def restore(self, reduced: Sequence[Scalar], free: Sequence[Scalar]) -> dict[str, list[Scalar]]:
        """Variables by name, from reduced right-hand sides and values of the free columns."""
        value: dict[int, Scalar] = dict(zip(self.plan.free, free, strict=True))
        for (r, column), row in zip(reversed(self.plan.pivots), reversed(self.rows), strict=True):
            total = reduced[r]
            for other, x in row.items():
                if other != column:
                    total = total - x * value[other]
            value[column] = div(total, row[column])
        return {name: [value[c] for c in at] for name, at in self.system.columns.items()}

    def solution(self, *, refine: int = 0) -> dict[str, list[Scalar]]:
        """Solve D d + b = 0 with ``refine`` steps of iterative refinement; variables by name."""
        return refined(self.system, lambda right: self.solve(right)[0], refine)


def operations(row: Row, column: int, steps: Sequence[tuple[int, Scalar]]) -> int:
    """Number of operations of one pivot: its row, and subtractions with these factors."""
    left = [is_unit(x) for _, x in steps]
    right = [is_unit(x) for o, x in row.items() if o != column]
    both = (len(left) - sum(left)) * (len(right) - sum(right))
    return len(left) * len(right) + both + single_operations(left, right, row[column])


def single_operations(left: Collection[bool], right: Collection[bool], pivot: Scalar) -> int:
    """Number of divisions by a pivot, plus its operations in one solution."""
    result = 0 if is_unit(pivot) else len(left) + 1
    return result + 2 * (len(left) + len(right)) - sum(left) - sum(right)


def matrix_of(system: System) -> tuple[dict[int, Row], dict[int, set[int]], list[bool]]:
    """Rows without zeros, the rows with an entry in each column, and a flag for measurements."""
    matrix, _ = system.matrix()
    soft = [f.deviation is not None for f in system.factors for _ in range(f.rows)]
    rows: dict[int, Row] = {
        i: {c: x for c, x in enumerate(row) if not is_zero(x)} for i, row in enumerate(matrix)
    }
    touching: dict[int, set[int]] = {c: set() for c in range(system.unknowns)}
    for i, row in rows.items():
        for c in row:
            touching[c].add(i)
    return rows, touching, soft


def take(
    rows: dict[int, Row], touching: dict[int, set[int]], pivot: Pivot
) -> tuple[Row, list[tuple[int, Scalar]]]:
    """Remove a pivot's row and subtract it from all rows with its column; returns the factors."""
    r, c = pivot
    row = rows.pop(r)
    for other in row:
        touching[other].discard(r)
    steps: list[tuple[int, Scalar]] = []
    inverse = div(1.0, row[c]) if touching[c] else 1.0
    for target in sorted(touching[c]):
        work = rows[target]
        factor = work.pop(c) * inverse
        touching[c].discard(target)
        for other, x in row.items():
            if other == c:
                continue
            entry = work.get(other)
            result = -(factor * x) if entry is None else entry - factor * x
            if is_zero(result):
                if entry is not None:
                    del work[other]
                    touching[other].discard(target)
                continue
            work[other] = result
            touching[other].add(target)
        steps.append((target, factor))
    return row, steps


def eliminate_scalars(
    system: System, order: Sequence[Group], plan: PivotSequence | None = None
) -> Elimination:
    """Eliminate in this order, with the pivots of a plan, or with pivots chosen on the values.

    ``order``: variables, or groups of columns; within each, pivots are in Markowitz's order. Values
    may be batches: a pivot must then be safe at all states. A column without a safe pivot is
    postponed.
    """
    rows, touching, soft = matrix_of(system)
    sequence = PivotChoice(system, order, rows, touching, soft) if plan is None else None
    used: list[Row] = []
    lost: list[tuple[tuple[int, Scalar], ...]] = []
    pivots: list[Pivot] = []
    planned = iter(plan.pivots if plan is not None else ())
    while True:
        pivot = next(planned, None) if sequence is None else sequence.following()
        if pivot is None:
            break
        r, c = pivot
        if c not in rows[r]:
            name = next(n for n, at in system.columns.items() if c in at)
            raise SingularError(name, "has a structural zero for its pivot: the plan is another's")
        row, steps = take(rows, touching, pivot)
        used.append(row)
        lost.append(tuple(steps))
        pivots.append(pivot)
    if sequence is not None:
        plan = PivotSequence(tuple(order), tuple(pivots), tuple(sequence.free))
    assert plan is not None
    carried = {i: row for i, row in rows.items() if soft[i]}
    left = tuple(i for i in rows if not soft[i])
    return Elimination(system, plan, tuple(used), tuple(lost), left, carried)


def plan_pivots(system: System, order: Sequence[Group]) -> PivotSequence:
    """Choose pivots that are safe at all states of the batch in the system."""
    return eliminate_scalars(system, order).plan


class PivotChoice:
    """Chooses pivots by Markowitz's count within each group, among the sufficiently large ones.

    Columns without a sufficiently large entry at all states are postponed to the end, and then take
    the largest entry. Empty columns are free if there are measurements.
    """

    def __init__(
        self,
        system: System,
        order: Sequence[Group],
        rows: dict[int, Row],
        touching: dict[int, set[int]],
        soft: Sequence[bool],
    ) -> None:
        self.soft = soft
        self.scale = {c: _size([rows[i][c] for i in touching[c]]) for c in touching}
        self.name = {c: name for name, at in system.columns.items() for c in at}
        self.begin([system.columns[g] if isinstance(g, str) else g for g in order], rows, touching)

    def begin(
        self, groups: Iterable[Iterable[int]], rows: dict[int, Row], touching: dict[int, set[int]]
    ) -> None:
        """Start with groups of columns."""
        self.rows, self.touching = rows, touching
        self.queue = [list(columns) for columns in groups]
        self.share = THRESHOLD
        self.shares = list(RELAXED)
        self.waiting: list[int] = []
        self.free: list[int] = []

    def group(self) -> list[int] | None:
        """The remaining columns of the current group; None at the end."""
        while self.queue and not self.queue[0]:
            del self.queue[0]
        return self.queue[0] if self.queue or self._again() else None

    def following(self) -> Pivot | None:
        """The next pivot; None at the end."""
        while True:
            columns = self.group()
            if columns is None:
                return None
            best = self.best(columns)
            if best is not None:
                columns.remove(best[1])
                return best
            self.waiting += columns
            columns.clear()

    def _again(self) -> bool:
        """Queue postponed columns again without free ones; False if there are none."""
        for c in list(self.waiting):
            entries = [self.rows[i][c] for i in self._candidates(c)]
            if not np.any(_size(entries) > REMAINDER * self.scale[c]):
                if not any(self.soft):
                    self._refuse(c)
                self.free.append(c)
                self.waiting.remove(c)
        if self.waiting and not self.shares:
            self._refuse(self.waiting[0])
        if not self.waiting:
            return False
        self.queue = [[c] for c in self.waiting]
        self.waiting = []
        self.share = self.shares.pop(0)
        return True

    def _refuse(self, column: int) -> None:
        raise SingularError(self.name[column], "is not determined by the equations that are left")

    def _candidates(self, column: int) -> list[int]:
        return [i for i in sorted(self.touching[column]) if not self.soft[i]]

    def best(self, columns: Sequence[int]) -> Pivot | None:
        """The cheapest sufficiently large pivot of these columns; None if there is none."""
        best: tuple[tuple[float, float], Pivot] | None = None
        shortest = 0
        if len(columns) > MANY_COLUMNS:  # by length, until longer ones cannot be cheaper
            columns = sorted(columns, key=lambda c: len(self.touching[c]))
            shortest = min(len(row) for i, row in self.rows.items() if not self.soft[i])
        for c in columns:
            least = (shortest - 1) * (len(self.touching[c]) - 1)
            if best is not None and shortest and best[0][0] <= least:
                break
            candidates = self._candidates(c)
            if not candidates:
                continue
            share = self._shares([self.rows[i][c] for i in candidates], c)
            for i, s in zip(candidates, share, strict=False):
                if s < self.share:
                    continue
                x = self.rows[i][c]
                unit = type(x) is float and abs(x) == 1.0
                count = (len(self.rows[i]) - 1) * (len(self.touching[c]) - 1)
                key = (count + (0.0 if unit else 0.5), -float(s))
                if best is None or key < best[0]:
                    best = key, (i, c)
        return None if best is None else best[1]

    def _shares(self, entries: Sequence[Scalar], column: int) -> Sequence[float]:
        """Entries relative to the largest, at the worst state; empty if all are rounding errors."""
        least = REMAINDER * self.scale[column]
        if np.ndim(least) == 0 and all(type(x) is float for x in entries):
            sizes = [abs(value_of(x)) for x in entries]
            most = max(sizes)
            return [size / most for size in sizes] if most > least else []
        values = np.array([np.broadcast_to(np.abs(array_of(x)), self._batch()) for x in entries])
        largest = np.max(values, axis=0)
        if np.any(~(largest > least)):
            return []
        result: list[float] = np.min(values / largest, axis=tuple(range(1, values.ndim))).tolist()
        return result

    def _batch(self) -> tuple[int, ...]:
        if not hasattr(self, "_shape"):
            shapes = [np.shape(array_of(x)) for row in self.rows.values() for x in row.values()]
            self._shape = np.broadcast_shapes(*set(shapes)) if shapes else ()
        return self._shape


def is_unit(x: Scalar) -> bool:
    """True if a scalar is 1 or -1, so that products with it are free."""
    return abs(x) == 1.0 if type(x) is float else bool(np.all(np.abs(array_of(x)) == 1.0))


def _size(values: Sequence[Scalar]) -> Any:
    total: Any = 0.0
    for x in values:
        total = np.maximum(total, np.abs(array_of(x)))
    return total


# ---- measurements --------------------------------------------------------------------------------


class WeightedElimination:
    """An eliminated system, with the normal equations of its measurements.

    ``present``: factors of the measurements' weights by name, 1 (the default) for present ones and
    0 for missing ones. Rows of infinite deviation have no weight; they serve to compute
    covariances. Undetermined unknowns are nan.
    """

    def __init__(
        self,
        system: System,
        order: Sequence[Group],
        plan: PivotSequence | None = None,
        present: Mapping[str, Scalar] | None = None,
    ) -> None:
        self.system = system
        self.done = eliminate_scalars(system, order, plan)
        self.at: dict[str, range] = {}
        self.weighted: list[tuple[int, list[Scalar]]] = []  # row, and its entries times its weight
        free = self.done.plan.free
        normal: Matrix = [[0.0] * len(free) for _ in free]
        first = 0
        for factor in system.factors:
            self.at[factor.name] = range(first, first + factor.rows)
            first += factor.rows
            for r, deviation in zip(self.at[factor.name], factor.deviation or (), strict=False):
                if math.isinf(deviation):
                    continue
                weight = (present or {}).get(factor.name, 1.0) * (1.0 / deviation**2)
                row = self._row(r)
                scaled = [weight * x for x in row]
                self.weighted.append((r, scaled))
                for i, x in enumerate(scaled):
                    for j in range(i + 1):
                        normal[i][j] = normal[i][j] + x * row[j]
        for i, c in enumerate(free):
            if type(normal[i][i]) is float and normal[i][i] == 0.0:
                name = next(n for n, at in system.columns.items() if c in at)
                raise SingularError(name, "is not determined by the equations and measurements")
        self.factors = Factorization(normal, floor=ROUNDING)

    def _row(self, r: int) -> list[Scalar]:
        """A reduced row over the free columns."""
        row = self.done.carried[r]
        return [row.get(c, 0.0) for c in self.done.plan.free]

    def solve(self, right: Sequence[Scalar]) -> dict[str, list[Scalar]]:
        """The d that satisfies D d = right in exact rows and minimises weighted residuals."""
        reduced = self.done.reduce(right)
        pull: list[Scalar] = [0.0] * len(self.done.plan.free)
        for r, scaled in self.weighted:
            pull = [p + x * reduced[r] for p, x in zip(pull, scaled, strict=True)]
        return self.done.restore(reduced, self.factors.solve(pull))

    def solution(self, *, refine: int = 0) -> dict[str, list[Scalar]]:
        """The solution of D d + b = 0, with ``refine`` steps of iterative refinement."""
        return refined(self.system, self.solve, refine)

    def failing(self) -> list[Scalar]:
        """Residuals of redundant exact rows: zero unless rows contradict each other."""
        reduced = self.done.reduce([-x for f in self.system.factors for x in f.constant])
        return [reduced[r] for r in self.done.left]

    def covariance(self, name: str) -> Matrix:
        """The posterior covariance of the rows of a factor with infinite deviation."""
        halves = [self.factors.reduce(self._row(r)) for r in self.at[name]]
        scaled = [self.factors.weighted(half) for half in halves]
        result: Matrix = [[0.0] * len(halves) for _ in halves]
        for i, half in enumerate(halves):
            for j in range(i + 1):
                result[i][j] = result[j][i] = dot(half, scaled[j])
        return result
