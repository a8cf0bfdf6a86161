"""Graphs with inequalities: a primal-dual interior point method whose steps are least squares.

Minimise a graph's cost subject to its conditions and to margins c(x) >= 0, the errors of a second
graph's factors. With slacks s > 0 and multipliers z > 0, c(x) - s = 0 and s z = μ, a Newton step of
margins is a weighted row

    sqrt(z/s) (c' dx - μ/z + c - s),

so that each is one more factor of the linearised graph, and one more row of its elimination along
time. The barrier parameter μ falls as the steps settle. Costs are sums of squares, whose second
derivatives are those of Gauss and Newton; conditions' curvature is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from robomodel.errors import ClosureError
from robomodel.estimation.elimination import UndeterminedError
from robomodel.estimation.graph import Graph, Linear, Term, Values, beside_next
from robomodel.estimation.noise import diagonal
from robomodel.estimation.solve import LinearSolver, along_time, step_of, warn_unconverged
from robomodel.model.joints import Array

BOUNDARY = 0.995  # share of the way to the boundary that a step may go
FALL, POWER = 0.2, 1.5  # how μ falls: the less of μ FALL and μ ^ POWER
SETTLED = 0.1  # a step whose promise is below so many μ a margin ends a μ
SHORTEST = 2.0**-12  # of a step along which the merit must fall
ARMIJO = 1e-4
CLOSING = 1e-2  # damping with which conditions are met to the end, once the cost has settled
CALM = 1e-3  # damping up to which what a step promises says how far the minimum is
SLACK = 1e-2  # least slack to begin with
DAMPING, MOST = 1e-8, 1e8  # of the squared norm of an unknown's column
MULTIPLIERS = 1e10  # how far z may be from μ/s, either way


@dataclass(frozen=True, eq=False)
class InteriorPointResult:
    """Values at the minimum inside the margins.

    ``cost`` of the weighted factors, ``violation`` the norm of conditions' errors, ``margin`` the
    least margin, ``parameter`` the last μ: the cost is within ``parameter`` times the number of
    margins of the least one near by.
    """

    values: dict[str, Array]
    cost: float
    violation: float
    margin: float
    parameter: float
    iterations: int
    converged: bool


@dataclass(eq=False)
class _Point:
    """A trial: values, what they linearise to, slacks and the merit's parts."""

    values: dict[str, Array]
    linear: Linear
    margins: list[tuple[Term, Array]]
    slack: list[Array]
    cost: float
    gap: float

    def barrier(self, mu: float) -> float:
        return self.cost - mu * sum(float(np.sum(np.log(s))) for s in self.slack)


@dataclass(frozen=True, slots=True)
class _Merit:
    """Cost, barrier and weighted violation, of which a whole step promises to take so much."""

    mu: float
    penalty: float
    promise: float
    closing: bool  # a smaller violation will do

    def accepts(self, at: _Point, trial: _Point, share: float) -> bool:
        if self.closing and trial.gap <= 0.9 * at.gap:
            return True
        before = at.barrier(self.mu) + self.penalty * at.gap
        after = trial.barrier(self.mu) + self.penalty * trial.gap
        return after <= before - ARMIJO * share * self.promise + 1e-12 * abs(before)


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
    """The least cost of a graph inside the margins of another with the same variables.

    The start may lie outside of margins. ``parameter`` is the first μ, ``least`` the last, in units
    of the cost. Once at the last μ a step promises less than ``tolerance`` (1 + cost), steps close
    the conditions up to ``violation`` and end there, or when none improves. ``progress`` is called
    with the iteration, μ, cost and violation. A RuntimeWarning says where it did not converge.
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
        rows = [(term, _rows(block, s, m, mu)) for (term, block), s, m in
                zip(at.margins, at.slack, z, strict=True)]  # fmt: skip
        linear = replace(at.linear, blocks=(*at.linear.blocks, *rows))
        held = max(damping, CLOSING) if closing else damping
        scale = np.sqrt(held) * linear.scales if held > 0.0 else None
        try:
            step = (along_time if closing else linear_step)(linear, scale)
        except UndeterminedError:
            if linear_step is not along_time:  # conditions that say a thing twice need ranks
                linear_step, iterations = along_time, iterations - 1
                continue
            if damping >= MOST:
                if not moved:
                    raise
                break  # what no motion obeys, as limits that contradict a goal
            damping = max(10.0 * damping, DAMPING)
            continue
        ds = [_moved(block, term, step) - s for (term, block), s in
              zip(at.margins, at.slack, strict=True)]  # fmt: skip
        dz = [(mu - s * m - m * d) / s for s, m, d in zip(at.slack, z, ds, strict=True)]
        primal, dual = _longest(at.slack, ds), _longest(z, dz)
        cost, hard = at.linear.residuals(step)
        slope = sum(float(np.sum(mu * d / s)) for s, d in zip(at.slack, ds, strict=True))
        bend = sum(float(np.sum(m / s * d * d)) for s, m, d in zip(at.slack, z, ds, strict=True))
        gain = at.cost - cost + slope - 0.5 * bend  # of the quadratic model of cost and barrier
        closes = at.gap - hard
        if closes > 0.0:
            penalty = max(penalty, -gain / (0.5 * closes))
        promise = gain + penalty * closes
        done = abs(gain) <= tolerance * (1.0 + abs(at.cost)) and damping <= CALM
        settled = at.gap <= max(0.1 * math.sqrt(mu), violation)
        if mu > least and settled and (abs(gain) <= SETTLED * mu * count or done):
            mu, penalty = max(least, min(FALL * mu, mu**POWER)), 1.0
            continue
        closing = closing or (mu <= least and done)
        if closing and at.gap <= violation:
            converged = True
            break
        merit = _Merit(mu, penalty, promise, closing)
        trial, share = _searched(graph, margins, at, step, ds, primal, merit)
        if trial is None:
            if damping >= MOST:
                break
            damping = max(10.0 * damping, DAMPING)
            continue
        if share < 0.2 * primal:
            damping = max(10.0 * damping, DAMPING)
        elif share > 0.5 * primal:
            damping = 0.1 * damping if damping > DAMPING else 0.0
        at, moved = trial, True
        z = [np.clip(m + dual * d, mu / s / MULTIPLIERS, mu / s * MULTIPLIERS)
             for m, d, s in zip(z, dz, at.slack, strict=True)]  # fmt: skip
        if progress is not None:
            progress(iterations, mu, at.cost, at.gap)
    return _result(at, mu, iterations, converged)


def _result(at: _Point, mu: float, iterations: int, converged: bool) -> InteriorPointResult:
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
) -> _Point:
    linear = graph.linearize(values)
    blocks = [
        (replace(term, noise=diagonal(np.ones(term.factor.rows))), block)
        for term, block in margins.linearize(values).blocks
    ]
    margin = [-block[..., -1] for _, block in blocks]
    if slack is None:
        slack = [np.maximum(c, SLACK) for c in margin]
    else:  # what lies further inside than its slack is a margin met
        slack = [np.maximum(c, s) for c, s in zip(margin, slack, strict=True)]
    cost, hard = linear.residuals()
    off = sum(float(np.sum((c - s) ** 2)) for c, s in zip(margin, slack, strict=True))
    return _Point(values, linear, blocks, slack, cost, math.hypot(hard, math.sqrt(off)))


def _searched(
    graph: Graph,
    margins: Graph,
    at: _Point,
    step: Array,
    ds: list[Array],
    longest: float,
    merit: _Merit,
) -> tuple[_Point | None, float]:
    """The first of halved shares of a step at which a point is better; None without any."""
    share = longest
    while share >= SHORTEST * longest:
        slack = [s + share * d for s, d in zip(at.slack, ds, strict=True)]
        trial = _tried(graph, margins, at.values, share * step, slack)
        if trial is not None and merit.accepts(at, trial, share):
            return trial, share
        share *= 0.5
    return None, share


def _tried(
    graph: Graph, margins: Graph, values: Values, step: Array, slack: list[Array]
) -> _Point | None:
    if not np.all(np.isfinite(step)):
        return None
    try:
        point = _evaluated(graph, margins, graph.retract(values, step), slack)
    except ClosureError:
        return None
    return point if np.isfinite(point.cost) and np.isfinite(point.gap) else None


def _rows(block: Array, s: Array, z: Array, mu: float) -> Array:
    """The weighted rows of margins: block is [A B -c]."""
    weight = np.sqrt(z / s)
    rows = block * weight[..., None]
    rows[..., -1] = weight * (mu / z + block[..., -1] + s)
    return rows


def _moved(block: Array, term: Term, step: Array) -> Array:
    """Margins after a step, as linearised."""
    both = beside_next(step)[term.times]
    result: Array = np.einsum("kij,kj->ki", block[..., :-1], both) - block[..., -1]
    return result


def _longest(x: list[Array], dx: list[Array]) -> float:
    """The share of a step that keeps BOUNDARY of the way to zero."""
    share = 1.0
    for value, change in zip(x, dx, strict=True):
        down = change < 0.0
        if np.any(down):
            share = min(share, BOUNDARY * float(np.min(-value[down] / change[down])))
    return share
