"""Small dense quadratic programmes: minimise ½ xᵀ H x + c · x with bounds on x and on rows.

By daqp (Arnström, Bemporad and Axehill, *A dual active-set solver for embedded quadratic
programming using recursive LDLᵀ updates*, 2022), or another solver of the package qpsolvers. If the
solver calls a programme infeasible, it is solved again with variables and rows scaled and
equalities reduced to independent ones; a linear programme then tells which bounds contradict each
other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robomodel.arrays import Array
from robomodel.errors import MissingPackageError
from robomodel.tolerances import NOTHING, SINGULAR

UNBOUNDED = 1e30  # stands for no bound in daqp
FEASIBLE = 1e-8  # violation of scaled rows up to which bounds count as compatible


class InfeasibleError(ValueError):
    """No motion meets all limits and hard tasks.

    Attributes:
        limits: The limits and hard tasks that contradict each other.
    """

    def __init__(self, message: str, limits: tuple[str, ...] = ()) -> None:
        self.limits = limits
        super().__init__(message)

    def __reduce__(self) -> tuple[type[InfeasibleError], tuple[str, tuple[str, ...]]]:
        return type(self), (str(self), self.limits)


class IncompatibleBoundsError(Exception):
    """Bounds that no x meets, by their indices: those of variables first, then those of rows."""

    def __init__(self, rows: list[int]) -> None:
        self.rows = rows
        super().__init__(f"rows {rows} contradict each other")


@dataclass(frozen=True, slots=True, eq=False)
class QuadraticProgram:
    """½ xᵀ H x + c · x, lower <= [x; A x] <= upper; the last ``equalities`` rows are equal."""

    hessian: Array
    gradient: Array
    rows: Array
    lower: Array
    upper: Array
    equalities: int = 0

    def cost(self, x: Array) -> float:
        """The value of the objective at x."""
        return float(0.5 * x @ self.hessian @ x + self.gradient @ x)

    @property
    def sense(self) -> NDArray[np.int32]:
        """The kind of each bound, equality or not, in daqp's code."""
        result = np.zeros(len(self.upper), np.int32)
        if self.equalities:
            result[-self.equalities :] = 5  # daqp's sense of an equality
        return result


Solver = Callable[[QuadraticProgram], "Array | None"]


def solver_of(name: str) -> Solver:
    """The solver with this name; raises MissingPackageError if others need qpsolvers."""
    if name == "daqp":
        import daqp

        solve: Callable[..., tuple[Array, float, int, Any]] = daqp.solve

        def by_daqp(problem: QuadraticProgram) -> Array | None:
            x, _, flag, _ = solve(
                problem.hessian, problem.gradient, problem.rows, problem.upper, problem.lower,
                problem.sense, primal_tol=1e-11,  # largest violation of a bound, in the solver
            )  # fmt: skip
            return x if flag == 1 and np.isfinite(x).all() else None

        return by_daqp
    try:
        import qpsolvers
    except ImportError:
        raise MissingPackageError(f"solver '{name}' needs", "qpsolvers", "control") from None
    if name not in qpsolvers.available_solvers:
        names = ", ".join(f"'{each}'" for each in sorted({"daqp", *qpsolvers.available_solvers}))
        raise ValueError(f"solver '{name}' is not there; {names} are")

    def by_name(problem: QuadraticProgram) -> Array | None:
        count, few = len(problem.gradient), problem.equalities
        end = len(problem.rows) - few
        rows, lower, upper = problem.rows[:end], problem.lower[count:], problem.upper[count:]
        both = np.concatenate([upper[:end], -lower[:end]])
        kept = both < UNBOUNDED
        x: Array | None = qpsolvers.solve_qp(
            problem.hessian, problem.gradient,
            np.concatenate([rows, -rows])[kept] if kept.any() else None,
            both[kept] if kept.any() else None,
            problem.rows[end:] if few else None, upper[end:] if few else None,
            np.where(problem.lower[:count] <= -UNBOUNDED, -np.inf, problem.lower[:count]),
            np.where(problem.upper[:count] >= UNBOUNDED, np.inf, problem.upper[:count]),
            solver=name,
        )  # fmt: skip
        return x

    return by_name


def solve(problem: QuadraticProgram, solver: Solver) -> Array:
    """The minimum; raises :class:`IncompatibleBoundsError` if there is none."""
    x = solver(problem)
    return x if x is not None else _again(problem, solver)


def _again(problem: QuadraticProgram, solver: Solver) -> Array:
    """Solve again with scaled variables and rows."""
    count = len(problem.gradient)
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(problem.hessian), NOTHING))
    scale = np.minimum(scale, 1e3 * scale.min())
    rows = problem.rows * scale
    size = np.maximum(np.linalg.norm(rows, axis=1), NOTHING)
    lower, upper = problem.lower.copy(), problem.upper.copy()
    for bounds in (lower, upper):
        free = np.abs(bounds) >= UNBOUNDED
        bounds[:count] /= scale
        bounds[count:] /= size
        bounds[free] = np.copysign(UNBOUNDED, bounds[free])
    rows = rows / size[:, None]
    end = len(rows) - problem.equalities
    slack = _violations(rows, lower, upper)
    if np.any(slack > FEASIBLE):
        raise IncompatibleBoundsError(_culprits(rows, lower, upper))
    lower, upper = lower - slack, upper + slack
    equal, right = independent(rows[end:], problem.lower[count:][end:] / size[end:])
    ends = count + end
    scaled = QuadraticProgram(
        problem.hessian * np.outer(scale, scale), problem.gradient * scale,
        np.concatenate([rows[:end], equal]),
        np.concatenate([lower[:ends], right]), np.concatenate([upper[:ends], right]),
        len(equal),
    )  # fmt: skip
    for relaxed in (0.0, 1e-10, 1e-9, FEASIBLE):
        bounds = np.full(len(scaled.upper), relaxed)
        bounds[ends:] = 0.0
        x = solver(
            QuadraticProgram(scaled.hessian, scaled.gradient, scaled.rows,
                             scaled.lower - bounds, scaled.upper + bounds, len(equal))
        )  # fmt: skip
        if x is not None:
            unscaled: Array = x * scale
            return unscaled
    raise IncompatibleBoundsError(_culprits(rows, lower, upper))


def independent(rows: Array, right: Array) -> tuple[Array, Array]:
    """Orthonormal rows equivalent to these, without redundant ones."""
    if not len(rows):
        return rows, right
    left, values, vectors = np.linalg.svd(rows, full_matrices=False)
    rank = int(np.sum(values > SINGULAR * values[0]))
    return vectors[:rank], (left.T @ right)[:rank] / values[:rank]


def _elastic(rows: Array, lower: Array, upper: Array) -> Any:
    """The least sum of violations s of lower - s <= [x; A x] <= upper + s, a linear programme."""
    from scipy.optimize import linprog

    count = rows.shape[1]
    every = np.concatenate([np.eye(count), rows])
    elastic = -np.eye(len(every))
    up, low = upper < UNBOUNDED, lower > -UNBOUNDED
    a = np.concatenate([np.c_[every, elastic][up], np.c_[-every, elastic][low]])
    b = np.concatenate([upper[up], -lower[low]])
    return linprog(
        np.r_[np.zeros(count), np.ones(len(every))], A_ub=a, b_ub=b,
        bounds=[(None, None)] * count + [(0.0, None)] * len(every), method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )  # fmt: skip


def _violations(rows: Array, lower: Array, upper: Array) -> Array:
    """The violations of that least sum."""
    solution = _elastic(rows, lower, upper)
    if solution.status != 0:
        return np.full(len(upper), np.inf)
    x = solution.x[: rows.shape[1]]
    values = np.concatenate([x, rows @ x])
    excess: Array = np.maximum(np.maximum(values - upper, lower - values), 0.0)
    return excess


def _culprits(rows: Array, lower: Array, upper: Array) -> list[int]:
    """The bounds that contradict each other: those with multipliers in the linear programme."""
    solution = _elastic(rows, lower, upper)
    up, low = np.flatnonzero(upper < UNBOUNDED), np.flatnonzero(lower > -UNBOUNDED)
    if solution.status != 0:
        return []
    weights = np.abs(solution.ineqlin.marginals)
    return sorted({int(i) for i in np.concatenate([up, low])[weights > 1e-9]})
