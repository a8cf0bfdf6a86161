"""Contact, joint stops and dry friction as one complementarity problem, and what solves it.

With G the inverse inertia that the rows' impulses x meet and y = G x + b what they then do,

* a contact's three rows (two tangents, normal) obey Signorini's and Coulomb's laws: x is in the
  cone K = {|x_t| <= μ x_n}, and -(y + Γ(y)) in its normal cone at x, with De Saxcé's shift
  Γ(y) = (0, 0, μ |y_t|), which makes Coulomb's law of a convex cone's;
* a stop's row 0 <= x ⟂ y >= 0;
* a dry-friction row |x| <= bound, x opposing y at its bound where y is not zero.

The residual of x, a velocity free of units and mass ratios, is max |x - P(x - d (y + Γ))| / d with
P the projection on each block's set and d = 1 / trace of its block of G (Acary and Brogliato;
Le Lidec and others, *Contact models in robotics*, 2024). :func:`solve` follows the sweeps of block
Gauss–Seidel with Newton's method on Alart and Curnier's equations and, where that fails, with ADMM
(Carpentier and others, 2024), and keeps the best point of all.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from robomodel.dynamics.contact.gauss_seidel import SLIPS, TINY, Rows, Sweeps, without_gain
from robomodel.kernels import Iteration
from robomodel.kernels.cache import digest
from robomodel.kernels.function import TracedFunction
from robomodel.model.derived import sources
from robomodel.model.joints import Array
from robomodel.scalars import Scalar, Vector

LANES = (1, 2, 4, 6, 8, 12, 16, 24, 32)  # numbers of contacts, and of other rows, compiled for


TURNS = 6  # of sweeps (or ADMM) and Newton


NEWTON = 12


ENOUGH = 1e-10  # residual with which ADMM, a hundred times as long as the rest, is not begun


UNFELT = 1e-12  # singular values of G up to this share of the largest are rounding


SLIDING = 1e-7  # share of the largest velocity from which on a contact counts as sliding


@dataclass(frozen=True)
class Problem:
    """y = G x + b: G (n, n), b (n,), ``friction`` of the contacts, ``bounds`` of the boxes."""

    matrix: Array
    b: Array
    rows: Rows
    friction: Array
    bounds: Array

    @functools.cached_property
    def traces(self) -> Array:
        """The trace of each row's own block (n,); 1 where it is zero."""
        diagonal = np.diagonal(self.matrix).copy()
        k = self.rows.contacts
        diagonal[: 3 * k] = np.repeat(diagonal[: 3 * k].reshape(k, 3).sum(axis=1), 3)
        diagonal[diagonal <= 0.0] = 1.0
        return diagonal

    def shifted(self, y: Array) -> Array:
        """y + Γ(y)."""
        result, k = y.copy(), self.rows.contacts
        result[2 : 3 * k : 3] += self.friction * np.hypot(y[0 : 3 * k : 3], y[1 : 3 * k : 3])
        return result

    def projected(self, x: Array) -> Array:
        """On the blocks' sets."""
        result, k = x.copy(), self.rows.contacts
        free = 3 * k + self.rows.stops
        result[3 * k : free] = np.maximum(x[3 * k : free], 0.0)
        result[free:] = np.clip(x[free:], -self.bounds, self.bounds)
        if k:
            cone = x[: 3 * k].reshape(k, 3)
            r, n, mu = np.hypot(cone[:, 0], cone[:, 1]), cone[:, 2], self.friction
            outside = (r > mu * n) | (n < 0.0)  # the latter where there is no friction, nor slip
            height = np.maximum((mu * r + n) / (1.0 + mu * mu), 0.0)
            share = np.where(outside, mu * height / np.maximum(r, TINY), 1.0)
            result[: 3 * k] = np.stack(
                [share * cone[:, 0], share * cone[:, 1], np.where(outside, height, n)], axis=1
            ).ravel()
        return result

    def residuals(self, x: Array) -> Array:
        """Of each row: a velocity."""
        step = x - self.projected(x - self.shifted(self.matrix @ x + self.b) / self.traces)
        return np.abs(step * self.traces)

    def without_gain(self, work: Array, x: Array, x0: Array) -> Array:
        """As :func:`robomodel.dynamics.contact.gauss_seidel.without_gain`."""
        numbers = (each.tolist() for each in (self.matrix, work, x, x0))
        return np.array(without_gain(*numbers), dtype=float)

    def residual(self, x: Array) -> float:
        """Of the whole problem: a velocity."""
        return float(np.max(self.residuals(x), initial=0.0))


def solve(problem: Problem, start: Array, tolerance: float = 1e-10) -> tuple[Array, float]:
    """x (n,) and its residual, relative to max |b|: at most ``tolerance`` where all went well.

    ``start``: the impulses of the step before, or zeros. A problem of the shape G = J M⁻¹ Jᵀ, b = J
    v + β with β zero always has a solution; the residual tells where it was not found. Of impulses
    that do the same (four corners of a block) these are the least ones, if they obey the laws too.
    """
    size = float(np.max(np.abs(problem.b), initial=0.0))
    if size == 0.0:
        return np.zeros_like(start), 0.0
    best, top = start, problem.residual(start)
    goal = tolerance * size

    def better(x: Array) -> bool:
        nonlocal best, top
        r = problem.residual(x)
        if r < top:
            best, top = x, r
        return top <= goal

    x, slips = start, np.zeros(problem.rows.contacts)
    for turn in range(TURNS):
        if turn >= 2 and top <= ENOUGH * size:
            break
        if turn < 2 and _padded(problem.rows) is not None:
            x, slips = _swept(problem, x, slips, (8, 24)[turn])
            if better(x):
                break
        else:
            x = _admm(problem, x, int(100 * 1.5**turn), goal)
            if better(x):
                break
        x = _newton(problem, x, NEWTON, goal)
        if better(x):
            break
        x = best
    if np.any(best):
        least = _least(problem, best)
        if (r := problem.residual(least)) <= max(top, goal):
            best, top = least, r
    return best, top / size


def _least(problem: Problem, x: Array) -> Array:
    """The least impulses that do what x does, of contacts that stick, slide and part as in x."""
    values = np.linalg.svd(problem.matrix, compute_uv=False)
    if values[-1] > UNFELT * values[0]:
        return x
    rows, unit, y = problem.rows, np.eye(len(x)), problem.matrix @ x + problem.b
    size = np.max(np.abs(problem.b))
    free = 3 * rows.contacts + rows.stops
    ways = [unit[j] for j in range(3 * rows.contacts, free) if x[j] > 0.0]
    ways += [unit[j] for j in range(free, len(x)) if abs(x[j]) < problem.bounds[j - free]]
    for i, mu in enumerate(problem.friction):
        at = slice(3 * i, 3 * i + 3)
        if x[at][2] <= 0.0:
            continue
        if mu > 0.0 and np.hypot(*y[at][:2]) <= SLIDING * size:
            ways += list(unit[at])
        else:
            ray = np.zeros(len(x))
            ray[at] = x[at] / np.linalg.norm(x[at])
            ways.append(ray)
    if not ways:
        return x
    basis = np.array(ways)
    _, sizes, turned = np.linalg.svd(problem.matrix @ basis.T)
    unfelt = turned[sizes <= UNFELT * values[0]] @ basis
    result: Array = x - unfelt.T @ (unfelt @ x)
    return result


def _padded(rows: Rows) -> Rows | None:
    """Compiled sizes that hold these rows; None where there are too many."""

    def up(n: int) -> int | None:
        return 0 if n == 0 else next((lanes for lanes in LANES if lanes >= n), None)

    sizes = up(rows.contacts), up(rows.stops), up(rows.boxes)
    return None if None in sizes else Rows(*(n for n in sizes if n is not None))


def _swept(problem: Problem, x: Array, slips: Array, count: int) -> tuple[Array, Array]:
    """Sweeps by the compiled program; what pads the rows is held open."""
    rows = problem.rows
    wide = _padded(rows)
    assert wide is not None
    at = np.r_[
        0 : 3 * rows.contacts,
        3 * wide.contacts : 3 * wide.contacts + rows.stops,
        3 * wide.contacts + wide.stops : 3 * wide.contacts + wide.stops + rows.boxes,
    ]
    n, k = wide.size, wide.contacts
    matrix, b, state = np.zeros((n, n)), np.ones(n), np.zeros(n + k)
    matrix[np.ix_(at, at)] = problem.matrix
    b[at], state[at], state[n : n + rows.contacts] = problem.b, x, slips
    friction, bounds = np.zeros(k), np.zeros(wide.boxes)
    friction[: rows.contacts], bounds[: rows.boxes] = problem.friction, problem.bounds
    numbers = np.concatenate([matrix.ravel(), b, friction, bounds])
    after = _sweeper(wide)(state, np.zeros((count, 1)), numbers)[-1]
    return after[at], after[n : n + rows.contacts]


@functools.cache
def _sweeper(rows: Rows) -> TracedFunction:
    """(x and slips, one row a sweep, numbers) → x and slips, each sweep's."""
    n, k = rows.size, rows.contacts

    def build(state: Vector, _: Vector, numbers: Vector) -> list[Scalar]:
        at = n * n
        matrix = [numbers[i * n : (i + 1) * n] for i in range(n)]
        problem = Sweeps(rows, matrix, numbers[at : at + n], numbers[at + n : at + n + k],
                         numbers[at + n + k :])  # fmt: skip
        x, slips = problem.sweep(state[:n], state[n:])
        return [*x, *slips]

    sizes = {"state": n + k, "times": 1, "numbers": n * n + n + k + rows.boxes}
    key = digest(("sweeps", repr(rows), repr(SLIPS), sources()))
    return TracedFunction("sweeps", sizes, {"y": (n + k,)}, build, Iteration((1,)), key=key)


def _newton(problem: Problem, x: Array, steps: int, goal: float) -> Array:
    """Newton's method on x = P(x - d y) with discs of radius μ n (Alart and Curnier).

    Its Jacobian takes G + ε, so that redundant contacts do no harm: only the rate feels it.
    """
    rows, d = problem.rows, 1.0 / problem.traces
    n, k = rows.size, rows.contacts
    free = 3 * k + rows.stops
    regular = problem.matrix + 1e-6 * np.trace(problem.matrix) / n * np.eye(n)
    x, best = x.copy(), x
    value = _alart_curnier(problem, x)
    low = problem.residual(x)
    for _ in range(steps):
        f, a, inside = value
        slope = np.zeros((n, n))
        slope[range(free), range(free)] = np.where(a[:free] > 0.0, 1.0, 0.0)
        slope[range(free, n), range(free, n)] = inside[free:]
        for i in range(k):
            at = 3 * i
            slope[at : at + 2, at : at + 3] = 0.0
            if a[at + 2] <= 0.0:
                slope[at + 2, at + 2] = 0.0
            elif inside[at]:
                slope[at, at] = slope[at + 1, at + 1] = 1.0
            else:
                u = a[at : at + 2] / np.hypot(a[at], a[at + 1])
                share = problem.friction[i] * a[at + 2] / np.hypot(a[at], a[at + 1])
                slope[at : at + 2, at : at + 2] = share * (np.eye(2) - np.outer(u, u))
                slope[at : at + 2, at + 2] = problem.friction[i] * u
        system = np.eye(n) - slope + slope @ (d[:, None] * regular) + 1e-14 * np.eye(n)
        try:
            step = np.linalg.solve(system, -f)
        except np.linalg.LinAlgError:
            break
        if not np.all(np.isfinite(step)):
            break
        now = np.max(np.abs(f / d))
        for share in (1.0, 0.5, 0.25):
            value = _alart_curnier(problem, x + share * step)
            if np.max(np.abs(value[0] / d)) < now:
                break
        x = x + share * step
        if (r := problem.residual(x)) < low:
            best, low = x, r
        if low <= goal:
            break
    return best


def _alart_curnier(problem: Problem, x: Array) -> tuple[Array, Array, Array]:
    """F = x - P(a), a = x - d y, and which tangents and boxes are inside of their bounds."""
    rows = problem.rows
    k, free = rows.contacts, 3 * rows.contacts + rows.stops
    a = x - (problem.matrix @ x + problem.b) / problem.traces
    p, inside = np.maximum(a, 0.0), np.ones(len(a), dtype=bool)
    p[free:] = np.clip(a[free:], -problem.bounds, problem.bounds)
    inside[free:] = p[free:] == a[free:]
    if k:
        t = a[: 3 * k].reshape(k, 3)[:, :2]
        r = np.hypot(t[:, 0], t[:, 1])
        radius = problem.friction * p[2 : 3 * k : 3]
        within = r <= radius
        share = np.where(within, 1.0, radius / np.maximum(r, TINY))
        p[: 3 * k].reshape(k, 3)[:, :2] = share[:, None] * t
        inside[: 3 * k] = np.repeat(within, 3)
    return x - p, a, inside


def _admm(problem: Problem, x: Array, steps: int, goal: float) -> Array:
    """ADMM with a proximal term and a penalty that follows its residuals; one factorisation."""
    values, vectors = np.linalg.eigh(problem.matrix)
    largest = float(values[-1])
    if not largest > 0.0:
        return x
    near, power = 1e-6 * largest, 0.2
    y = x.copy()
    z = problem.shifted(problem.matrix @ x + problem.b)
    rho = np.sqrt(largest * near) * (largest / near) ** power
    for step in range(1, steps + 1):
        shift = problem.shifted(z) - z
        right = vectors.T @ (rho * y + near * x + z - problem.b - shift)
        x = vectors @ (right / (values + (near + rho)))
        before, y = y, problem.projected(x - z / rho)
        z = z - rho * (x - y)
        if step % 10 == 0:
            primal, dual = np.max(np.abs(x - y)), rho * np.max(np.abs(y - before))
            power += 0.05 * (float(primal > 10 * dual) - float(dual > 10 * primal))
            rho = np.sqrt(largest * near) * (largest / near) ** power
            if step % 50 == 0 and problem.residual(y) <= goal:
                break
    return y
