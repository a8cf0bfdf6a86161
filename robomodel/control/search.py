"""Configurations that reach targets: Levenberg and Marquardt's method within limits, on batches.

A step minimises the same as a differential step, with the whole of each error and positions within
their limits, in tangent coordinates of linkages, which stay regular through dead points; then loops
are closed. A step that makes the errors larger is repeated with more damping. The damping is a
share of the squared error, so that convergence is quadratic where targets are reached (Yamashita
and Fukushima, *On the rate of convergence of the Levenberg-Marquardt method*, 2001).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.control.programme import ProgrammeLayout, ProgrammeResults, ik_program
from robomodel.control.quadratic import QuadraticProgram, Solver
from robomodel.control.tasks import PostureTask
from robomodel.dynamics.kinematics.state import neutral_jacobian
from robomodel.kernels.function import TracedFunction
from robomodel.mechanism.joints import Screw
from robomodel.model.configurations.closing import left_open, settled
from robomodel.model.derived import cached_on_model, traced
from robomodel.model.model import Model
from robomodel.motion import tangent
from robomodel.reach.reachable import Branches
from robomodel.scalars import Scalar, Vector
from robomodel.tolerances import CONVERGED, EXACTLY_CLOSED, NOTHING, ROUNDING, TINY, WITHIN

SEARCH_CLOSINGS = 5  # Newton steps that close loops after a step
LONGEST_STEP = 0.5  # [rad, m]
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = (
    1e-2,
    1e-9,
    1e9,
)  # damping as a share of the squared error
PRICE = 10.0  # of violations of hard tasks and limits, relative to the root of the other squares
LEAPS, WINDINGS = 12, 4  # steps without damping; times that whole turns of screws are looked for
SHARES = (0.3, 0.1, 0.01, 0.0)  # of hard tasks' errors that a step takes if not all at once


@traced
def retraction(model: Model) -> TracedFunction:
    """(q, step, bases) → q moved along a step in tangent coordinates, loops closed; Σ gaps².

    Third, the bases of linkages' motions there.
    """
    numbers = tangent.numbers(model)

    def build(q: Vector, step: Vector, bases: Vector = ()) -> list[Scalar]:
        here = tangent.in_tangents(model, bases)
        closed = settled(here, tangent.displaced(here, q, step), SEARCH_CLOSINGS)[0]
        after = tangent.renewed(model, here, closed, step)[0]
        return [*closed, left_open(model, closed), *after]

    sizes = {"q": model.nq, "step": model.nv} | ({"bases": numbers} if numbers else {})
    results: dict[str, tuple[int, ...]] = {"next": (model.nq,), "gap": (), "bases": (numbers,)}
    return TracedFunction("retraction", sizes, results, build)


def bases_of(model: Model, q: Array) -> Array:
    """Bases of linkages' motions at q (..., nq); an empty array without linkages."""
    if not tangent.numbers(model):
        return np.zeros((*q.shape[:-1], 0))
    return tangent.start(model, q, np.zeros(model.nv)).bases


def retracted(model: Model, q: Array, step: Array, bases: Array) -> tuple[Array, Array, Array]:
    """q (n, nq) moved along steps (n, nv), Σ gaps² (n,), and the bases there."""
    results = np.empty((len(q), retraction(model).size))
    further = (bases,) if bases.shape[-1] else ()
    retraction(model)(q, step, *further, out=results)
    nq = model.nq
    return results[:, :nq], results[:, nq], results[:, nq + 1 :]


def closed(model: Model, q: Array) -> Array:
    """Configurations (n, nq) with loops closed; open ones by the nearest closed."""
    result, gap, _ = retracted(model, q, np.zeros((len(q), model.nv)), bases_of(model, q))
    bad = ~(gap <= EXACTLY_CLOSED**2)
    if bad.any():
        result[bad] = model.close(q[bad] if len(q) > 1 else q[0])
    return result


@cached_on_model
def _turns_of_screws(model: Model) -> list[tuple[int, int, float]]:
    """Coordinates that turn screws outside of linkages: in v, in q, and a turn of the screw."""
    result: list[tuple[int, int, float]] = []
    for cluster in model.clusters:
        if cluster.varies or cluster.nv != 1:
            continue
        rates = neutral_jacobian(model)[cluster.spanning_v, cluster.v.start]
        for link, rate in zip(cluster.geometry.links, rates.tolist(), strict=False):
            if isinstance(link.joint, Screw) and rate:
                result.append((cluster.v.start, cluster.q.start, math.tau / rate))
    return result


@dataclass
class Search:
    """A search for the configurations of a batch of rows.

    Attributes:
        q: Configurations (n, nq).
        merit: Weighted squares of errors, plus the price of violated hard tasks and limits (n,).
        branches: What tells steps that leave an assembly mode, which are not taken; None takes all.
        reached: Whether targets are reached (n,), without those of postures beside other tasks.
    """

    model: Model
    layout: ProgrammeLayout
    solver: Solver
    weights: Array
    targets: Array
    q: Array
    branches: Branches | None = None

    def __post_init__(self) -> None:
        self.function = ik_program(self.model, self.layout)
        self.outcome = ProgrammeResults(self.layout, self.model)
        pieces = self.layout.pieces
        postures = [isinstance(p.task, PostureTask) for p in pieces]
        choosing = not all(postures)
        self.postures = np.array(
            [choosing and x for x, p in zip(postures, pieces, strict=True) for _ in p.kept], bool
        )
        self.hard = np.array([p.task.hard for p in pieces for _ in p.kept], bool)
        self.scale = max(self.weights.max(initial=0.0), 1e-3) ** 2
        self.merit = np.full(len(self.q), np.inf)
        self.reached = np.zeros(len(self.q), bool)
        self.bases = bases_of(self.model, self.q)

    def finish(self, iterations: int, tolerance: float) -> None:
        """Iterate until targets are reached, or nothing brings the rows nearer.

        First with postures, then from there without.
        """
        if self.postures.any():
            self._run(iterations, 0.0, self._costs(postures=True))
        costs = self._costs(postures=False)
        self._run(iterations, tolerance, costs)
        for _ in range(WINDINGS if _turns_of_screws(self.model) else 0):
            if self.reached.all():
                break
            self._wind(tolerance, costs)
            self._leap(tolerance, costs)
            self._run(iterations, tolerance, costs)
        self._restore(tolerance, costs)

    def replace(self, rows: Indices, other: Search) -> None:
        """Take the rows that another search has solved better."""
        better = other.reached | (other.merit < (1.0 - 1e-6) * self.merit[rows])
        self.q[rows[better]] = other.q[better]
        self.merit[rows[better]] = other.merit[better]
        self.reached[rows[better]] = other.reached[better]
        self.bases[rows[better]] = other.bases[better]
        if self.branches is not None:
            self.branches.put(rows[better], other.q[better])

    def _staying(self, rows: Indices, q: Array, fine: Mask) -> Mask:
        """Which fine steps of rows to q stay on their assembly mode."""
        if self.branches is None:
            return fine
        some = np.flatnonzero(fine)
        if len(some):
            fine = fine.copy()
            fine[some] = self.branches.follow(rows[some], q[some])
        return fine

    def here(self) -> Array:
        """The merit of all rows where they are (n,)."""
        costs, rows = self._costs(postures=False), np.arange(len(self.q))
        weights = self._weights(costs)
        results = self._evaluate(rows, self.q, self.bases, weights, np.ones(len(rows)))
        return self._merit(results, costs, 0.0)[0]

    def only(self, row: int) -> Search:
        """The search of one row alone, as it stands."""
        one = replace(self, targets=self.targets[[row]], q=self.q[[row]])
        one.merit, one.reached = self.merit[[row]], self.reached[[row]]
        return one

    def _run(self, iterations: int, tolerance: float, costs: Array) -> None:
        weights = self._weights(costs)
        active, share = np.arange(len(self.q)), np.full(len(self.q), FIRST_DAMPING)
        results = self._evaluate(active, self.q, self.bases, weights, np.ones(len(active)))
        for _ in range(iterations):
            self._judge(active, results, costs, tolerance)
            soft = self._merit(results, costs, 0.0)[0]
            damping = share[active] * soft + 1e-14 * self.scale
            here, bases = self.q[active], self.bases[active]
            results = self._evaluate(active, here, bases, weights, damping)
            step = self._steps(results, bases)
            following, gap, turned = retracted(self.model, here, step, bases)
            trial = self._evaluate(active, following, turned, weights, damping)
            price = (
                PRICE * np.sqrt(self.scale * soft) + LEAST_DAMPING * self.scale
            )  # above multipliers
            before, after = (self._merit(x, costs, price)[0] for x in (results, trial))
            better = (after < before) & (gap <= EXACTLY_CLOSED**2)
            better &= ~self.reached[active]
            better = self._staying(active, following, better)
            self.q[active[better]] = following[better]
            self.bases[active[better]] = turned[better]
            share[active] = np.maximum(share[active] * np.where(better, 0.2, 6.0), LEAST_DAMPING)
            still = np.max(np.abs(step), axis=1, initial=0.0) < CONVERGED
            going = ~(self.reached[active] | still | (share[active] > MOST_DAMPING))
            results = np.where(better[:, None], trial, results)
            self._judge(active[~going], results[~going], costs, tolerance)
            results = results[going]
            active = active[going]
            if not len(active):
                break
        self._judge(active, results, costs, tolerance)

    def _wind(self, tolerance: float, costs: Array) -> None:
        """Turn screws outside of linkages by whole turns to where errors are least.

        These move what hangs on a screw along its axis, in proportion: a fine thread's way is many
        turns, of which steps take a part of one.
        """
        for column, place, turn in _turns_of_screws(self.model):
            rows = np.flatnonzero(~self.reached & np.isfinite(self.merit))
            if not len(rows):
                break
            weights, damping = self._weights(costs), np.ones(len(rows))
            here, bases = self.q[rows], self.bases[rows]
            ahead = here.copy()
            ahead[:, place] += turn
            before, after = (
                self._evaluate(rows, x, bases, weights, damping) for x in (here, ahead)
            )
            error, there = ((costs * self.outcome.get("error", x))[:, ~self.hard]
                            for x in (before, after))  # fmt: skip
            way = there - error
            length = np.maximum(np.sum(way * way, axis=1), TINY)
            count = -np.sum(way * error, axis=1) / length
            ends = (np.array([self.model.lower[column], self.model.upper[column]])
                    - here[:, [place]]) / turn  # fmt: skip
            count = np.trunc(np.clip(np.round(count), *np.sort(ends, axis=1).T))
            ahead = here.copy()
            ahead[:, place] += turn * count
            results = self._evaluate(rows, ahead, bases, weights, damping)
            price = PRICE * np.sqrt(self.scale * self._merit(before, costs, 0.0)[0])
            better = self._merit(results, costs, price)[0] < self._merit(before, costs, price)[0]
            better &= count != 0.0
            self.q[rows[better]] = ahead[better]
            self._judge(rows[better], results[better], costs, tolerance)

    def _leap(self, tolerance: float, costs: Array) -> None:
        """Gauss and Newton's steps without damping, of which each row takes the best end.

        A part of a fine screw's turn is a narrow valley, across which errors grow in between.
        """
        weights, rows = self._weights(costs), np.flatnonzero(~self.reached)
        here, bases = self.q[rows], self.bases[rows]
        for _ in range(LEAPS if len(rows) else 0):
            damping = np.full(len(rows), 1e-14 * self.scale)
            results = self._evaluate(rows, here, bases, weights, damping)
            here, gap, bases = retracted(self.model, here, self._steps(results, bases), bases)
            there = self._evaluate(rows, here, bases, weights, damping)
            merit = self._merit(there, costs, 1e3 * self.scale)[0]
            fine = (merit < self.merit[rows]) & (gap <= EXACTLY_CLOSED**2)
            fine = self._staying(rows, here, fine)
            self.q[rows[fine]], self.bases[rows[fine]] = here[fine], bases[fine]
            self._judge(rows[fine], there[fine], costs, tolerance)

    def _restore(self, tolerance: float, costs: Array) -> None:
        """Least steps of rows that violate hard tasks or limits, until they do not."""
        weights = self._weights(0.0 * costs)
        for _ in range(SEARCH_CLOSINGS):
            rows = np.flatnonzero(~self.reached & np.isfinite(self.merit))
            results = self._evaluate(rows, self.q[rows], self.bases[rows], weights, np.ones(1))
            fault = self._merit(results, costs, 0.0)[1]
            off = fault > ROUNDING
            rows, fault = rows[off], fault[off]
            if not len(rows):
                return
            step = self._steps(results[off], self.bases[rows])
            following, gap, after = retracted(self.model, self.q[rows], step, self.bases[rows])
            trial = self._evaluate(rows, following, after, weights, np.ones(1))
            less = (self._merit(trial, costs, 0.0)[1] < fault) & (gap <= EXACTLY_CLOSED**2)
            less = self._staying(rows, following, less)
            self.q[rows[less]], self.bases[rows[less]] = following[less], after[less]
            self._judge(rows[less], trial[less], costs, tolerance)

    def _judge(self, rows: Indices, results: Array, costs: Array, tolerance: float) -> None:
        """Update the merit of rows, and whether they reach their targets."""
        self.merit[rows], fault = self._merit(results, costs, 1e3 * self.scale)
        error = np.abs(self.outcome.get("error", results)[:, ~self.postures])
        reached = np.max(error, axis=1, initial=0.0) <= tolerance
        self.reached[rows] = reached & (fault <= max(WITHIN, tolerance))

    def _evaluate(
        self, rows: Indices, q: Array, bases: Array, weights: Array, damping: Array
    ) -> Array:
        """The programmes of rows at q."""
        settings = np.ones((len(rows), 3))
        settings[:, 1] = damping
        results = np.empty((len(rows), self.function.size))
        further = (bases,) if bases.shape[-1] else ()
        self.function(q, self.targets[rows], weights, settings, *further, out=results)
        return results

    def _merit(self, results: Array, costs: Array, price: Array | float) -> tuple[Array, Array]:
        """Weighted squares of errors plus the price of violated hard tasks and limits.

        Second, the largest violation.
        """
        error = self.outcome.get("error", results)
        soft = np.sum((costs * error)[:, ~self.hard] ** 2, axis=1)
        lower, upper = self.outcome.get("lower", results), self.outcome.get("upper", results)
        end = lower.shape[1] - self.layout.equalities
        beyond = np.maximum(np.maximum(lower, -upper)[:, :end], 0.0)
        faults = np.concatenate([np.abs(error[:, self.hard]), beyond], axis=1)
        worst = np.max(faults, axis=1, initial=0.0)
        return soft + price * np.sum(faults, axis=1), worst

    def _steps(self, results: Array, bases: Array) -> Array:
        """Steps (rows, nv) within the limits, none longer than LONGEST_STEP.

        Of linkages with fine screws, whose turns bend nothing, by what bends.
        """
        checks, step = self.outcome.get("checks", results), self.outcome.get("step", results).copy()
        pending = ~(checks[:, 0] <= NOTHING)
        if pending.any():
            x, met = self.outcome.within_bounds(self.model, results[pending])
            step[pending] = np.where(met[:, None], x, step[pending])
            pending[pending] = ~met
        for row in np.flatnonzero(pending).tolist():
            step[row] = self._constrained(self.outcome.programme(results[row]))
        base = (
            3 if self.model.floating_base else 0
        )  # a base's rotation counts, its translation does not
        sizes = np.abs(step)
        sizes[:, base : 2 * base] = 0.0
        for linkage in tangent.linkages(self.model):
            cluster = self.model.clusters[linkage.index]
            if cluster.geometry.threads:
                motions = bases[:, linkage.numbers].reshape(-1, linkage.size, linkage.mobility)
                speeds = np.array(linkage.expand) @ motions @ step[:, cluster.v, None]
                bent = np.abs(cluster.geometry.bending(speeds[:, :, 0]))
                sizes[:, cluster.v] = np.max(bent, axis=1, keepdims=True)
        longest = np.max(sizes, axis=1, initial=0.0)
        shortened: Array = (
            step * np.minimum(1.0, LONGEST_STEP / np.maximum(longest, LONGEST_STEP))[:, None]
        )
        return shortened

    def _constrained(self, programme: QuadraticProgram) -> Array:
        """A step within limits; if hard tasks cannot be met at once, a share of the way."""
        if not all(np.isfinite(x).all() for x in (programme.hessian, programme.rows)):
            return np.zeros(self.model.nv)
        x = self.solver(programme)
        few = self.layout.equalities
        for share in SHARES:
            if x is not None:
                return x
            lower, upper = np.minimum(programme.lower, 0.0), np.maximum(programme.upper, 0.0)
            if few:
                lower[-few:] = upper[-few:] = share * programme.upper[-few:]
            x = self.solver(replace(programme, lower=lower, upper=upper))
        return np.zeros(self.model.nv) if x is None else x

    def _costs(self, *, postures: bool) -> Array:
        """The costs of all rows; zero for postures unless ``postures``."""
        parts = [
            self.weights[p.weights + 2 : p.weights + 2 + len(p.kept)] for p in self.layout.pieces
        ]
        costs = np.concatenate([*parts, np.zeros(0)])
        return costs if postures else np.where(self.postures, 0.0, costs)

    def _weights(self, costs: Array) -> Array:
        """Weights of the programme, with gain 1 and these costs."""
        weights, first = self.weights.copy(), 0
        for piece in self.layout.pieces:
            last, at = first + len(piece.kept), piece.weights
            weights[at], weights[at + 1] = 1.0, 0.0
            weights[at + 2 : at + 2 + len(piece.kept)] = costs[first:last]
            first = last
        return weights

    def _row(self, row: int) -> Array:
        rows = np.array([row])
        results = self._evaluate(rows, self.q[rows], self.bases[rows], self.weights, np.ones(1))
        first: Array = results[0]
        return first

    def errors_of(self, row: int) -> Array:
        """The errors of a row's tasks, 0 for postures beside others."""
        return np.where(self.postures, 0.0, self.outcome.get("error", self._row(row)))

    def limits_met(self, row: int) -> list[str]:
        """The limits at which a row is, in words."""
        words = []
        ends = self.outcome.get("ends", self._row(row)).reshape(-1, 2)
        for quantity, (low, high) in zip(self.layout.limits.quantities, ends, strict=True):
            # a result that is so near to a limit [rad, m] is at it
            if min(high, -low) * abs(quantity.factor) < 1e-6:
                above = (high < -low) == (quantity.factor > 0.0)
                end = quantity.upper if above else quantity.lower
                words.append(f"{quantity.label} at {end:.4g}")
        return words
