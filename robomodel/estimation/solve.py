"""Nonlinear least squares on factor graphs: Gauss-Newton, Levenberg-Marquardt, interior points."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from robomodel.arrays import Array
from robomodel.errors import ClosureError, warn
from robomodel.estimation import elimination
from robomodel.estimation.elimination import UndeterminedError
from robomodel.estimation.factors import FactorBase
from robomodel.estimation.graph import Graph, Linear, Term, Values, beside_next, diagonal
from robomodel.tolerances import NOTHING

Method: TypeAlias = Literal["levenberg-marquardt", "gauss-newton"]
LinearSolver: TypeAlias = Literal["qr", "augmented"]

DAMPING, MOST_DAMPING = 1e-6, 1e12  # first damping after undamped steps fail, and the largest
FASTER, SLOWER = 0.1, 10.0  # factors of the damping after a good and a bad step
WINDOW = 2  # times of a fixed lag that begins where a start far off does not converge
NOISE = 1e-14  # predicted improvements below this fraction of the merit are rounding errors
SHORTEST = 2.0**-12  # smallest fraction of a step in the line search
ARMIJO = 1e-4  # least improvement in the line search, as a fraction of the predicted one
PENALTY = 0.5  # least predicted fall of the merit, as a fraction of that of the violation


@dataclass(frozen=True, eq=False)
class Solution:
    """Values at the minimum, with cost and number of iterations.

    ``cost``: ½ Σ eᵀ Σ⁻¹ e of the weighted factors; ``violation``: norm of the errors of the exact
    ones; ``iterations``: number of linear systems solved.
    """

    graph: Graph
    values: dict[str, Array]
    cost: float
    violation: float
    iterations: int
    converged: bool

    def __getitem__(self, name: str) -> Array:
        return self.values[name]

    @cached_property
    def covariances(self) -> Array:
        """Σ (count, n, n) of all variables at each time, in their tangent spaces.

        Of the linearised graph: (Jᵀ Λ J)⁻¹ with exact factors as conditions. Raises
        ``UndeterminedError`` if the factors leave an unknown free.
        """
        return elimination.covariances(elimination.chain(self.graph.linearize(self.values)))

    def covariance(self, name: str) -> Array:
        """Σ (count, dim, dim) of one variable."""
        part = self.graph.slices[name]
        result: Array = self.covariances[:, part, part]
        return result

    @cached_property
    def log_evidence(self) -> float:
        """Log probability of the data, up to a constant of the graph, to compare solutions.

        Laplace's approximation: with the exact rows A and whitened rows B of the graph linearised
        at the solution, -cost - ½ ln det(A Aᵀ) - ½ ln det(Zᵀ Bᵀ B Z), where Z is a basis of the
        null space of A. Exact factors count as delta functions of their errors. Raises
        ``UndeterminedError`` if the factors leave an unknown free, ValueError if exact factors are
        redundant.
        """
        from scipy.sparse.linalg import splu

        linear = self.graph.linearize(self.values)
        left_free = sum(c.root.shape[1] for c in elimination.chain(linear))
        if sum(map(len, linear.hard)) > linear.n * linear.count - left_free:
            raise ValueError("exact factors repeat each other: their probability is not defined")
        pivots = splu(_saddle_point(linear, None)[0]).U.diagonal()
        return -self.cost - 0.5 * float(np.sum(np.log(np.abs(pivots))))


def solve(
    graph: Graph,
    start: Values,
    *,
    method: Method = "levenberg-marquardt",
    linear_solver: LinearSolver = "qr",
    tolerance: float = 1e-9,
    max_iterations: int = 50,
) -> Solution:
    """Minimise the graph's cost, from initial values (variable → (count, size)).

    Ends when a step is below ``tolerance`` in every variable, relative to 1 + its largest value, or
    when no step improves; warns (RuntimeWarning) if the iteration ends for another reason. A step
    after which a model's loops cannot close is no improvement. ``linear_solver``: "qr", elimination
    along time, linear in ``count``; "augmented", sparse LU of the symmetric indefinite system of
    multipliers and unknowns, which needs no order and serves as a check.

    Gauss-Newton takes full steps. Levenberg-Marquardt takes Gauss-Newton's steps without damping
    while these improve an exact penalty function of cost and violation: even little damping slows
    the convergence of long trajectories, whose slow modes have small curvature. A step that does
    not improve is first tried with a second-order correction of all rows (Nocedal and Wright,
    section 18.3), because near curved conditions even the best step may raise the penalty function
    (Maratos effect); then it is halved. If no fraction improves, or if the factors do not
    determine the step, it is damped. If this ends without convergence, up to ``max_iterations``
    Gauss-Newton steps from the same start follow; and if these do not converge, the iteration from
    what :func:`fixed_lag` finds time by time from the start's first row: motions of linkages that
    turn are then not sought across dead points.
    """
    if method not in ("levenberg-marquardt", "gauss-newton"):
        raise ValueError(f"method '{method}' is not known")
    values = graph.checked(start)
    linear_step = step_of(linear_solver)
    result, _ = minimize(graph, values, method, linear_step, tolerance, max_iterations)
    if method == "levenberg-marquardt" and not result.converged and graph.count > WINDOW:
        result = _begun_in_time(graph, values, linear_step, tolerance, max_iterations) or result
    if not result.converged:
        warn_unconverged(
            "the least-squares solution", result.iterations, result.violation,
            "begin nearer to the solution, or raise max_iterations",
        )  # fmt: skip
    return result


def _begun_in_time(
    graph: Graph,
    values: dict[str, Array],
    linear_step: Callable[[Linear, Array | None], Array],
    tolerance: float,
    max_iterations: int,
) -> Solution | None:
    """The solution from the newest values of a fixed lag; None if that finds none."""
    with warnings.catch_warnings(), suppress(UndeterminedError):
        warnings.simplefilter("ignore", RuntimeWarning)
        begun = fixed_lag(graph, {name: x[0] for name, x in values.items()}, WINDOW)
        result, _ = minimize(
            graph, begun.newest, "levenberg-marquardt", linear_step, tolerance, max_iterations
        )
        if result.converged:
            return result
    return None


def minimize(
    graph: Graph,
    values: dict[str, Array],
    method: Method,
    linear_step: Callable[[Linear, Array | None], Array],
    tolerance: float,
    max_iterations: int,
) -> tuple[Solution, Linear]:
    """The solution from checked values, and the graph linearised there.

    If Levenberg-Marquardt does not converge, Gauss-Newton is tried: where conditions are singular,
    steps that must improve stop early, but full steps may pass.
    """
    damped = method == "levenberg-marquardt"
    result, linear = _iterate(graph, values, damped, linear_step, tolerance, max_iterations)
    if damped and not result.converged:
        with suppress(UndeterminedError):
            again, there = _iterate(graph, values, False, linear_step, tolerance, max_iterations)
            if again.converged:
                return replace(again, iterations=result.iterations + again.iterations), there
    return result, linear


def _iterate(
    graph: Graph,
    values: dict[str, Array],
    damped: bool,
    linear_step: Callable[[Linear, Array | None], Array],
    tolerance: float,
    max_iterations: int,
) -> tuple[Solution, Linear]:
    """Gauss-Newton's or, if ``damped``, Levenberg-Marquardt's iteration."""
    at = _Point.of(graph, values)
    scales: Array | float = 0.0
    damping, least, penalty, iterations, converged = 0.0, 0.0, 1.0, 0, False
    while iterations < max_iterations and not converged:
        iterations += 1
        rows = None
        if damping > 0.0:
            scales = np.maximum(scales, at.linear.scales)
            rows = np.sqrt(damping) * scales
        try:
            step = linear_step(at.linear, rows)
        except UndeterminedError:
            if not damped or damping > 0.0:
                raise
            damping = least = DAMPING
            continue
        small = is_small(graph.slices, at.values, step, tolerance)
        expected_cost, expected_gap = at.linear.residuals(step)
        better_gap = at.gap - expected_gap
        if better_gap > 0.0:  # the penalty is exact: large enough for the step to be a descent
            enough = (expected_cost - at.cost) / ((1.0 - PENALTY) * better_gap)
            if enough > penalty and at.gap <= at.rounding:
                better_gap = 0.0  # the violation is a rounding error, which no penalty reduces
            else:
                penalty = max(penalty, enough)
        merit = at.merit(penalty)
        predicted = at.cost - expected_cost + penalty * better_gap
        if predicted <= NOISE * merit:
            converged = True  # only rounding errors are left
            break
        trial, share = _moved(graph, at.values, step), 1.0
        if damped and not (small or (trial is not None and trial.merit(penalty) < merit)):
            if trial is not None:  # try the second-order correction
                iterations = min(iterations + 1, max_iterations)
                nearer = linear_step(at.linear.corrected(step, trial.linear), rows)
                trial = _moved(graph, at.values, nearer)
            while share > SHORTEST and (
                trial is None or not trial.merit(penalty) < merit - ARMIJO * share * predicted
            ):
                share *= 0.5
                trial = _moved(graph, at.values, share * step)
        actual = -np.inf if trial is None else merit - trial.merit(penalty)
        if trial is not None and np.isfinite(actual) and (not damped or actual > 0.0 or small):
            at = trial
            converged = small and damping <= 1.0  # with large damping, every step is small
            damping = damping * FASTER if damping > DAMPING else least
        elif not damped or damping > MOST_DAMPING:
            break
        else:
            damping = max(damping * SLOWER, DAMPING)
    return Solution(graph, at.values, at.cost, at.gap, iterations, converged), at.linear


@dataclass(frozen=True, eq=False)
class _Point:
    """Values, the graph linearised there, its cost, and the norm of the exact factors' errors."""

    values: dict[str, Array]
    linear: Linear
    cost: float
    gap: float

    @classmethod
    def of(cls, graph: Graph, values: dict[str, Array]) -> _Point:
        linear = graph.linearize(values)
        return cls(values, linear, *linear.residuals())

    def merit(self, penalty: float) -> float:
        return self.cost + penalty * self.gap

    @cached_property
    def rounding(self) -> float:
        """Violation due to rounding, from the conditions' slopes and 1 + each variable's size."""
        sizes = {name: 1.0 + np.max(np.abs(x), initial=0.0) for name, x in self.values.items()}
        each = [sizes[label.rpartition("[")[0]] for label in self.linear.labels]
        total = 0.0
        for term, block in self.linear.blocks:
            terms = np.abs(block[:, term.noise.parts[0], :-1]) @ np.array([*each, *each])
            total += float(np.vdot(terms, terms))
        return float(np.finfo(float).eps) * math.sqrt(total)


def _moved(graph: Graph, values: Values, step: Array) -> _Point | None:
    if not np.all(np.isfinite(step)):
        return None
    try:
        return _Point.of(graph, graph.retract(values, step))
    except ClosureError:
        return None


def warn_unconverged(what: str, iterations: int, violation: float, remedy: str) -> None:
    """Warn (RuntimeWarning) that a solver has ended without converging."""
    warn(
        RuntimeWarning(
            f"{what} did not converge in {iterations} iterations (conditions fail by "
            f"{violation:.1e}): {remedy}"
        )
    )


def is_small(slices: Mapping[str, slice], values: Values, step: Array, tolerance: float) -> bool:
    """True if a step is small in every variable, relative to 1 + its largest value."""
    return all(
        np.max(np.abs(step[:, part]), initial=0.0)
        <= tolerance * (1.0 + np.max(np.abs(values[name]), initial=0.0))
        for name, part in slices.items()
    )


# ---- linear systems ------------------------------------------------------------------------------


def along_time(linear: Linear, damping: Array | None) -> Array:
    """Solve for the step (count, n) by QR along time."""
    return elimination.back_substitute(elimination.chain(linear, damping))


def augmented(linear: Linear, damping: Array | None) -> Array:
    """Solve ``[E J; Jᵀ 0] [λ; x] = [b; 0]`` for the step (count, n); E: 1 in weighted rows, else 0.

    Sparse, symmetric and indefinite; by LU with pivoting, refined once. Damping adds rows.
    """
    from scipy.sparse.linalg import splu

    system, right = _saddle_point(linear, damping)
    try:
        factors = splu(system)
    except RuntimeError:
        raise elimination.UndeterminedError(None, "some unknown") from None
    solved = factors.solve(right)
    solved += factors.solve(right - system @ solved)
    result: Array = solved[-linear.n * linear.count :].reshape(linear.count, linear.n)
    return result


def _saddle_point(linear: Linear, damping: Array | None) -> tuple[Any, Array]:
    """[E J; Jᵀ 0] as a sparse matrix, and [b; 0]."""
    from scipy.sparse import block_array, csc_array, diags_array, vstack

    n, size = linear.n, linear.n * linear.count
    parts, right, weights = [], [], []
    for blocks, weight in ((linear.hard, 0.0), (linear.soft, 1.0)):
        for t, rows in enumerate(blocks):
            width = min(2 * n, size - t * n)
            parts.append(_placed(rows[:, :width], t * n, size))
            right.append(rows[:, -1])
            weights.append(np.full(len(rows), weight))
    if damping is not None:
        parts.append(csc_array(diags_array(damping.ravel())))
        right.append(np.zeros(size))
        weights.append(np.ones(size))
    jacobian = vstack(parts, format="csc")
    corner = diags_array(np.concatenate(weights))
    system = block_array([[corner, jacobian], [jacobian.T, None]], format="csc")
    return system, np.concatenate([*right, np.zeros(size)])


def _placed(rows: Array, first: int, size: int) -> object:
    from scipy.sparse import coo_array

    i, j = np.nonzero(rows)
    return coo_array((rows[i, j], (i, j + first)), shape=(len(rows), size))


STEPS: dict[str, Callable[[Linear, Array | None], Array]] = {
    "qr": along_time,
    "augmented": augmented,
}


def step_of(linear_solver: str) -> Callable[[Linear, Array | None], Array]:
    """A linear solver by its name; raises ValueError for others."""
    if linear_solver not in STEPS:
        raise ValueError(f"linear_solver '{linear_solver}' is not known; {' and '.join(STEPS)} are")
    return STEPS[linear_solver]


# ---- fixed lag -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FixedLagResult:
    """The estimates of a fixed-lag smoother.

    ``newest``: values of each time computed when it was the newest; ``smoothed``: when it left the
    window, with the measurements of ``window`` - 1 later times. ``covariances`` (count, n, n): of
    ``newest``, if requested. ``iterations`` (count,).
    """

    graph: Graph
    newest: dict[str, Array]
    smoothed: dict[str, Array]
    covariances: Array | None
    iterations: Array


@dataclass(frozen=True, eq=False)
class MarginalFactor(FactorBase):
    """The marginal of past times: rows [C d] on the change of variables from ``anchor``."""

    graph: Graph
    matrix: Array
    target: Array
    anchor: dict[str, Array]

    def __post_init__(self) -> None:
        self._describe(tuple(self.graph.spaces), len(self.matrix))

    def evaluate(self, x: Sequence[Array], data: Array | None) -> tuple[Array, Sequence[Array]]:
        """C · local(anchor, x) - d."""
        e, jacobians = -self.target, []
        for (name, space), value in zip(self.graph.spaces.items(), x, strict=True):
            c, anchor = self.matrix[:, self.graph.slices[name]], self.anchor[name]
            e = e + space.local(anchor, value) @ c.T
            jacobians.append(c @ space.local_jacobians(anchor, value)[1])
        return e, jacobians


def fixed_lag(
    graph: Graph,
    start: Values,
    window: int,
    *,
    predict: Callable[[dict[str, Array]], dict[str, Array]] | None = None,
    method: Method = "levenberg-marquardt",
    tolerance: float = 1e-9,
    max_iterations: int = 15,
    covariances: bool = False,
) -> FixedLagResult:
    """Solve the graph time by time, with the last ``window`` times as unknowns.

    At each time, its variables and factors are added and the window is solved; then the oldest time
    is eliminated, and a linear factor on the next one replaces its factors. ``start``: the first
    time's values (variable → (size,)). ``predict``: maps the values of a time to initial values of
    the next (default: the same). ``newest`` depends on no later times. While a window does not
    converge, its times are not eliminated, so the window grows until it does. Warns
    (RuntimeWarning) of the first such time and their number.
    """
    if window < 2:
        raise ValueError("a window has two times or more")
    newest = {name: np.empty((graph.count, space.size)) for name, space in graph.spaces.items()}
    smoothed = {name: np.empty_like(x) for name, x in newest.items()}
    sigmas = np.zeros((graph.count, graph.n, graph.n)) if covariances else None
    iterations = np.zeros(graph.count, dtype=int)
    current = {name: x[np.newaxis] for name, x in graph.checked(start, alone=True).items()}
    past: tuple[tuple[MarginalFactor, Array], ...] = ()
    first = 0
    unconverged: list[int] = []
    for t in range(graph.count):
        if t > 0:
            last = {name: x[-1:].copy() for name, x in current.items()}
            ahead = last if predict is None else predict(last)
            current = {name: np.concatenate([x, ahead[name]]) for name, x in current.items()}
        local = _with_past(graph.window(first, t + 1), past)
        window_solution, linear = minimize(
            local, current, method, along_time, tolerance, max_iterations
        )
        current, iterations[t] = window_solution.values, window_solution.iterations
        if not window_solution.converged:
            unconverged.append(t)
        for name, x in current.items():
            newest[name][t] = x[-1]
        if sigmas is not None:
            sigmas[t] = window_solution.covariances[-1]
        while window_solution.converged and t + 1 - first >= window:
            for name, x in current.items():
                smoothed[name][first] = x[0]
            past = _marginal(local, linear, current)
            current = {name: x[1:] for name, x in current.items()}
            first += 1
            if t + 1 - first >= window:  # larger if previous windows did not converge
                local = _with_past(graph.window(first, t + 1), past)
                linear = local.linearize(current)
    for name, x in current.items():
        smoothed[name][first:] = x
    if unconverged:
        warn(
            RuntimeWarning(
                f"{len(unconverged)} of {graph.count} windows did not converge in "
                f"{max_iterations} iterations, the first at time {unconverged[0]}: raise "
                "max_iterations or predict nearer to the next time"
            )
        )
    return FixedLagResult(graph, newest, smoothed, sigmas, iterations)


def _with_past(local: Graph, past: Iterable[tuple[MarginalFactor, Array]]) -> Graph:
    for factor, sigma in past:
        local = local.add(factor, sigma, times=[0])
    return local


def _marginal(
    graph: Graph, linear: Linear, values: Values
) -> tuple[tuple[MarginalFactor, Array], ...]:
    """The marginal of the factors of time 0 on time 1, linearised at these values."""
    _, rows = elimination.eliminate(linear.hard[0], linear.soft[0], graph.labels)
    anchor = {name: x[1] for name, x in values.items()}
    return tuple(
        (MarginalFactor(graph, block[:, :-1], block[:, -1], anchor), np.full(len(block), sigma))
        for block, sigma in ((rows.hard, 0.0), (rows.soft, 1.0))
        if len(block)
    )


# ---- inequalities --------------------------------------------------------------------------------
#
# Minimise a graph's cost subject to its exact factors and to margins c(x) >= 0, the errors of a
# second graph's factors. With slacks s > 0 and multipliers z > 0, where c(x) - s = 0 and s z = μ, a
# Newton step of a margin is a weighted row
#
#     sqrt(z/s) (c' dx - μ/z + c - s),
#
# that is, one more factor of the linearised graph and one more row of its elimination along time.
# The barrier parameter μ is reduced as the steps become small. Second derivatives of the cost are
# those of Gauss-Newton; the curvature of conditions is neglected.

TO_MARGINS = 0.995  # largest fraction of the way to the boundary that a step may go
FALL, POWER = 0.2, 1.5  # the next μ is the smaller of μ FALL and μ ^ POWER
MARGIN_SETTLED = 0.1  # μ is reduced if a step predicts a gain below this multiple of μ a margin
CLOSING = 1e-2  # damping of the final steps that close the conditions
CALM = 1e-3  # largest damping with which the predicted gain measures the distance to the minimum
BARRIER_DAMPING, MOST_BARRIER_DAMPING = 1e-8, 1e8  # relative to an unknown's squared column norm
MULTIPLIERS = 1e10  # largest ratio of z to μ/s, and of μ/s to z


@dataclass(frozen=True, eq=False)
class InteriorPointResult:
    """Values at the minimum within the margins.

    ``cost``: of the weighted factors; ``violation``: norm of the exact factors' errors; ``margin``:
    the smallest margin; ``parameter``: the last μ. The cost is within ``parameter`` times the
    number of margins of the local minimum.
    """

    values: dict[str, Array]
    cost: float
    violation: float
    margin: float
    parameter: float
    iterations: int
    converged: bool


@dataclass(frozen=True, eq=False)
class _InteriorPoint(_Point):
    """A point with its linearised margins and their slacks, whose errors are part of the gap."""

    margins: list[tuple[Term, Array]]
    slack: list[Array]

    def barrier(self, mu: float) -> float:
        return self.cost - mu * sum(float(np.sum(np.log(s))) for s in self.slack)


@dataclass(frozen=True, slots=True)
class _Merit:
    """Cost, barrier and weighted violation; ``promise``: the predicted gain of a full step."""

    mu: float
    penalty: float
    promise: float
    closing: bool  # accept any step that reduces the violation

    def accepts(self, at: _InteriorPoint, trial: _InteriorPoint, share: float) -> bool:
        if self.closing and trial.gap <= 0.9 * at.gap:
            return True
        before = at.barrier(self.mu) + self.penalty * at.gap
        after = trial.barrier(self.mu) + self.penalty * trial.gap
        return after <= before - ARMIJO * share * self.promise + NOTHING * abs(before)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # the not finite is turned down
def minimize_inside(
    graph: Graph,
    margins: Graph,
    start: Values,
    *,
    parameter: float = 1.0,
    least: float = 1e-8,
    tolerance: float = 1e-5,
    violation: float = 5e-9,
    max_iterations: int = 300,
    linear_solver: LinearSolver = "qr",
    progress: Callable[[int, float, float, float], None] | None = None,
) -> InteriorPointResult:
    """Minimise a graph's cost within the margins of another graph with the same variables.

    The start may violate margins. ``parameter``: first μ; ``least``: last μ, in units of the cost.
    When a step at the last μ predicts a gain below ``tolerance`` (1 + cost), further steps only
    close the conditions, up to ``violation``, or until none improves. ``progress`` is called with
    the iteration, μ, cost and violation. Warns (RuntimeWarning) without convergence.
    """
    linear_step = step_of(linear_solver)
    values = graph.checked(start)
    at = _evaluated(graph, margins, values, None)
    mu, damping, penalty = parameter, 0.0, 1.0
    count = max(1, sum(s.size for s in at.slack))
    z = [mu / s for s in at.slack]
    iterations, moved, closing, converged = 0, False, False, False
    while iterations < max_iterations:
        iterations += 1
        rows = [(term, _margin_rows(block, s, m, mu)) for (term, block), s, m in
                zip(at.margins, at.slack, z, strict=True)]  # fmt: skip
        linear = replace(at.linear, blocks=(*at.linear.blocks, *rows))
        held = max(damping, CLOSING) if closing else damping
        scale = np.sqrt(held) * linear.scales if held > 0.0 else None
        try:
            step = (along_time if closing else linear_step)(linear, scale)
        except UndeterminedError:
            if linear_step is not along_time:  # with redundant conditions, LU needs damping
                linear_step, iterations = along_time, iterations - 1
                continue
            if damping >= MOST_BARRIER_DAMPING:
                if not moved:
                    raise
                break  # infeasible, for example limits that contradict a goal
            damping = max(10.0 * damping, BARRIER_DAMPING)
            continue
        ds = [_margins_after(block, term, step) - s for (term, block), s in
              zip(at.margins, at.slack, strict=True)]  # fmt: skip
        dz = [(mu - s * m - m * d) / s for s, m, d in zip(at.slack, z, ds, strict=True)]
        primal, dual = _longest(at.slack, ds), _longest(z, dz)
        cost, hard = at.linear.residuals(step)
        slope = sum(float(np.sum(mu * d / s)) for s, d in zip(at.slack, ds, strict=True))
        bend = sum(float(np.sum(m / s * d * d)) for s, m, d in zip(at.slack, z, ds, strict=True))
        gain = at.cost - cost + slope - 0.5 * bend  # predicted by the quadratic model
        closes = at.gap - hard
        if closes > 0.0:
            penalty = max(penalty, -gain / (0.5 * closes))
        promise = gain + penalty * closes
        done = abs(gain) <= tolerance * (1.0 + abs(at.cost)) and damping <= CALM
        closed = at.gap <= max(0.1 * math.sqrt(mu), violation)
        if mu > least and closed and (abs(gain) <= MARGIN_SETTLED * mu * count or done):
            mu, penalty = max(least, min(FALL * mu, mu**POWER)), 1.0
            continue
        closing = closing or (mu <= least and done)
        if closing and at.gap <= violation:
            converged = True
            break
        merit = _Merit(mu, penalty, promise, closing)
        trial, share = _searched(graph, margins, at, step, ds, primal, merit)
        if trial is None:
            if damping >= MOST_BARRIER_DAMPING:
                break
            damping = max(10.0 * damping, BARRIER_DAMPING)
            continue
        if share < 0.2 * primal:
            damping = max(10.0 * damping, BARRIER_DAMPING)
        elif share > 0.5 * primal:
            damping = 0.1 * damping if damping > BARRIER_DAMPING else 0.0
        at, moved = trial, True
        z = [np.clip(m + dual * d, mu / s / MULTIPLIERS, mu / s * MULTIPLIERS)
             for m, d, s in zip(z, dz, at.slack, strict=True)]  # fmt: skip
        if progress is not None:
            progress(iterations, mu, at.cost, at.gap)
    return _result(at, mu, iterations, converged)


def _result(at: _InteriorPoint, mu: float, iterations: int, converged: bool) -> InteriorPointResult:
    least_margin = min(
        (float(-np.max(b[..., -1])) for _, b in at.margins if b.size), default=np.inf
    )
    gap = at.linear.residuals()[1]
    if not converged:
        warn_unconverged(
            "the interior point method", iterations, gap,
            "conditions and margins may contradict each other; else raise max_iterations",
        )  # fmt: skip
    return InteriorPointResult(at.values, at.cost, gap, least_margin, mu, iterations, converged)


def _evaluated(
    graph: Graph, margins: Graph, values: dict[str, Array], slack: list[Array] | None
) -> _InteriorPoint:
    linear = graph.linearize(values)
    blocks = [
        (replace(term, noise=diagonal(np.ones(term.factor.rows))), block)
        for term, block in margins.linearize(values).blocks
    ]
    margin = [-block[..., -1] for _, block in blocks]
    if slack is None:
        slack = [np.maximum(c, 1e-2) for c in margin]  # smallest initial slack
    else:  # a slack never smaller than its margin
        slack = [np.maximum(c, s) for c, s in zip(margin, slack, strict=True)]
    cost, hard = linear.residuals()
    off = sum(float(np.sum((c - s) ** 2)) for c, s in zip(margin, slack, strict=True))
    return _InteriorPoint(values, linear, cost, math.hypot(hard, math.sqrt(off)), blocks, slack)


def _searched(
    graph: Graph,
    margins: Graph,
    at: _InteriorPoint,
    step: Array,
    ds: list[Array],
    longest: float,
    merit: _Merit,
) -> tuple[_InteriorPoint | None, float]:
    """The first point better than ``at`` among halved fractions of a step, or None."""
    share = longest
    if not np.all(np.isfinite(step)):
        return None, share
    while share >= SHORTEST * longest:
        slack = [s + share * d for s, d in zip(at.slack, ds, strict=True)]
        with suppress(ClosureError):
            trial = _evaluated(graph, margins, graph.retract(at.values, share * step), slack)
            if math.isfinite(trial.cost + trial.gap) and merit.accepts(at, trial, share):
                return trial, share
        share *= 0.5
    return None, share


def _margin_rows(block: Array, s: Array, z: Array, mu: float) -> Array:
    """The weighted rows of margins from a block [A B -c]."""
    weight = np.sqrt(z / s)
    rows = block * weight[..., None]
    rows[..., -1] = weight * (mu / z + block[..., -1] + s)
    return rows


def _margins_after(block: Array, term: Term, step: Array) -> Array:
    """Margins predicted after a step."""
    both = beside_next(step)[term.times]
    result: Array = np.einsum("kij,kj->ki", block[..., :-1], both) - block[..., -1]
    return result


def _longest(x: list[Array], dx: list[Array]) -> float:
    """The largest fraction of a step that stays within TO_MARGINS of the way to zero."""
    share = 1.0
    for value, change in zip(x, dx, strict=True):
        down = change < 0.0
        if np.any(down):
            share = min(share, TO_MARGINS * float(np.min(-value[down] / change[down])))
    return share
