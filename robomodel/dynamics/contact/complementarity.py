"""The solver of contact problems (:mod:`robomodel.dynamics.contact.problem`) on arrays.

:func:`solve` runs sweeps of block Gauss–Seidel, then Newton's method on Alart and Curnier's
equations. Where that fails, as for redundant contacts, it starts Newton's method from iterates of
an interior-point method (:mod:`robomodel.dynamics.contact.interior_point`). It returns the iterate
of the least residual, and of impulses with the same effect the least.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robomodel.dynamics.contact.gauss_seidel import SLIPS, Sweeps
from robomodel.dynamics.contact.interior_point import ConeProblem, interior_points
from robomodel.dynamics.contact.least import least_alike
from robomodel.dynamics.contact.problem import (
    APART,
    SLIDING,
    TINY_SINGLE,
    ContactProblem,
    RowKinds,
    cone,
    half_line,
    interval,
    length,
    without_gain,
)
from robomodel.kernels import Iteration
from robomodel.kernels.cache import digest
from robomodel.kernels.function import TracedFunction
from robomodel.model.derived import sources
from robomodel.model.joints import Array, Mask
from robomodel.scalars import Scalar, Vector
from robomodel.tolerances import NOTHING

LANES = (1, 2, 4, 6, 8, 12, 16)  # compiled numbers of contacts, and of other rows
QUICK = (8, 24)  # sweeps, each followed by Newton's method
LONG = (400,)  # sweeps if all else failed: they take as long as an interior point
NEWTON_STEPS = 8
ENOUGH = 1e-11  # residual with which the interior-point method is not started
SLOPES = (1.0, 0.25)  # shares of the shift's slope with which the interior-point method starts
FIRST = 1e-6  # μ below which Newton's method is tried from interior points
POLISH = 5  # its steps from there
REGULAR = (1e-8, 1e-11)  # of a block's trace, on the diagonal in Newton's method


@dataclass(frozen=True)
class ArrayProblem(ContactProblem):
    """A contact problem on arrays, whose parts are all contacts, all stops, all dry friction."""

    matrix: Array
    b: Array
    friction: Array
    bounds: Array

    def y(self, x: Array, rows: range | None = None) -> Array:
        """G x + b."""
        result: Array = self.matrix @ x + self.b
        return result if rows is None else result[rows.start : rows.stop]

    @functools.cached_property
    def traces(self) -> Array:
        """The trace of each row's own block (n,); 1 where it is zero."""
        diagonal = np.diagonal(self.matrix).copy()
        k = self.rows.contacts
        diagonal[: 3 * k] = np.repeat(diagonal[: 3 * k].reshape(k, 3).sum(axis=1), 3)
        diagonal[diagonal <= 0.0] = 1.0
        return diagonal

    @functools.cached_property
    def scales(self) -> Array:
        """d = 1 / trace of each row's block."""
        return np.asarray(1.0 / self.traces)

    def parts(self, x: Array) -> tuple[list[Array], list[Array], list[Array]]:
        """x of all contacts, component by component, of all stops, and of dry friction."""
        k, free = self.rows.contacts, 3 * self.rows.contacts + self.rows.stops
        contacts = [x[: 3 * k].reshape(k, 3).T] if k else []
        stops = [x[3 * k : free]] if self.rows.stops else []
        return contacts, stops, [x[free:]] if self.rows.boxes else []

    @property
    def frictions(self) -> list[Array]:
        """Friction of the contacts, in the order of :meth:`parts`."""
        return [self.friction] if self.rows.contacts else []

    @property
    def limits(self) -> list[Array]:
        """Bounds of dry friction, in the order of :meth:`parts`."""
        return [self.bounds] if self.rows.boxes else []

    def part(self, acting: Mask) -> ArrayProblem:
        """The problem of some contacts, each with its three rows, and of some stops."""
        k, free = self.rows.contacts, 3 * self.rows.contacts + self.rows.stops
        contacts = acting[2 : 3 * k : 3]
        counts = int(np.sum(contacts)), int(np.sum(acting[3 * k : free])), self.rows.boxes
        return replace(
            self, rows=RowKinds(*counts), matrix=self.matrix[np.ix_(acting, acting)],
            b=self.b[acting], friction=self.friction[contacts],
        )  # fmt: skip

    def shifted(self, y: Array) -> Array:
        """y + Γ(y)."""
        result, k = y.copy(), 3 * self.rows.contacts
        result[2:k:3] += self.friction * length(y[0:k:3], y[1:k:3])
        return result

    def projected(self, x: Array) -> Array:
        """The projection of x on the blocks' sets."""
        result, first = x.copy(), 3 * self.rows.contacts
        contacts, stops, boxes = self.parts(x)
        for each in contacts:
            for r, component in enumerate(cone(list(each), self.friction)):
                result[r:first:3] = component
        free = first + self.rows.stops
        for each in stops:
            result[first:free] = half_line(each)[0]
        for each in boxes:
            result[free:] = interval(each, self.bounds)[0]
        return result

    def without_gain(self, work: Array, x: Array, x0: Array) -> Array:
        """See :func:`robomodel.dynamics.contact.problem.without_gain`."""
        numbers = (each.tolist() for each in (self.matrix, work, x, x0))
        return np.array(without_gain(*numbers), dtype=float)

    def residual(self, x: Array) -> float:
        """The largest residual of a row: a velocity."""
        moved = x - self.scales * self.shifted(self.y(x))
        return float(np.abs(self.traces * (x - self.projected(moved))).max(initial=0.0))

    def equations(self, x: Array) -> tuple[Array, Array]:
        """F = x - P(x - d y) (n,), and the slope (n, n) of P."""
        contacts, single = self.projections(x - self.scales * self.y(x))
        k, n = self.rows.contacts, self.rows.size
        p, slope, first = np.empty(n), np.zeros((n, n)), 3 * k
        for point, rows in contacts:
            blocks = np.zeros((k, 3, 3))
            for r, row in enumerate(rows):
                p[r:first:3] = point[r]
                for c, value in row.items():
                    blocks[:, r, c] = value
            each = np.arange(first).reshape(k, 3)
            slope[each[:, :, None], each[:, None, :]] = blocks
        for point, inside in single:
            at = np.arange(first, first + len(point))
            p[at], slope[at, at], first = point, inside, first + len(point)
        return x - p, slope


def solve(problem: ArrayProblem, start: Array, tolerance: float = 1e-10) -> tuple[Array, float]:
    """x (n,) and its residual relative to max |b|, which is at most ``tolerance`` if solved.

    ``start``: the impulses of the step before, or zeros. A problem with G = J M⁻¹ Jᵀ and b = J v +
    β has a solution if β is zero. Of impulses with the same effect (four corners of a block) these
    are the least, if they obey the laws too. Contacts and stops that do not take part get zero.
    """
    acting = np.ones(problem.rows.size, dtype=bool)
    held = problem.b < APART
    k, free = problem.rows.contacts, 3 * problem.rows.contacts + problem.rows.stops
    acting[: 3 * k] = np.repeat(held[2 : 3 * k : 3], 3)
    acting[3 * k : free] = held[3 * k : free]
    if not np.all(acting):
        x = np.zeros_like(start)
        x[acting], residual = solve(problem.part(acting), start[acting], tolerance)
        return x, residual
    size = float(np.max(np.abs(problem.b), initial=0.0))
    if size == 0.0:
        return np.zeros_like(start), 0.0
    goal = tolerance * size
    best, residual = start, problem.residual(start)
    methods = [_iterated(problem, start, goal, QUICK)]
    methods += [_from_inside(problem, goal, slope) for slope in SLOPES]
    for n in range(len(methods) + 1):
        for x in methods[n] if n < len(methods) else _iterated(problem, best, goal, LONG):
            if (r := problem.residual(x)) < residual:
                best, residual = x, r
            if residual <= goal:
                break
        if residual <= max(goal, ENOUGH * size):
            break
    if np.any(best):
        least = _least(problem, best)
        if (r := problem.residual(least)) <= max(residual, goal):
            best, residual = least, r
    return best, residual / size


def _from_inside(problem: ArrayProblem, goal: float, slope: float) -> Iterator[Array]:
    """Iterates of the interior-point method, and of Newton's method started from some of them."""
    scaled, rows, units = _in_cones(problem)
    target = FIRST
    for inside, mu in interior_points(scaled, slope):
        x = np.zeros(problem.rows.size)
        x[rows] = inside
        yield (x := problem.projected(units * x))
        if mu < target:
            target = 0.01 * mu
            for regular in REGULAR:
                yield _newton(problem, x, goal, regular, POLISH)


def _iterated(
    problem: ArrayProblem, x: Array, goal: float, sweeps: Sequence[int]
) -> Iterator[Array]:
    """Sweeps and Newton's method in turn; with too many rows to compile, the latter first."""
    slips = np.zeros(problem.rows.contacts)
    if _padded(problem.rows) is None:
        yield (x := _newton(problem, x, goal, REGULAR[0], NEWTON_STEPS))
    for count in sweeps:
        x, slips = _swept(problem, x, slips, count)
        yield x
        yield (x := _newton(problem, x, goal, REGULAR[0], NEWTON_STEPS))


def _in_cones(problem: ArrayProblem) -> tuple[ConeProblem, Array, Array]:
    """The problem in scaled units, the indices of its rows, and the units of all rows.

    It leaves out tangents of contacts without friction, and dry friction whose bound is zero.
    """
    rows, n = problem.rows, problem.rows.size
    k, free = rows.contacts, 3 * rows.contacts + rows.stops
    rough = problem.friction > 0.0
    units = np.ones(n)
    units[2 : 3 * k : 3] = 1.0 / np.where(rough, problem.friction, 1.0)
    squares = np.diagonal(problem.matrix) * units**2
    blocks = squares[: 3 * k].reshape(k, 3)
    blocks[rough] = np.sum(blocks[rough], axis=1)[:, None]
    units /= np.sqrt(np.where(squares > 0.0, squares, 1.0))
    contacts = 3 * np.flatnonzero(rough)[:, None] + np.arange(3)
    boxes = free + np.flatnonzero(problem.bounds > 0.0)
    lines = np.concatenate([3 * np.flatnonzero(~rough) + 2, np.arange(3 * k, free), boxes])
    at = np.concatenate([contacts.ravel(), lines]).astype(int)
    b = (units * problem.b)[at]
    largest = float(np.max(np.abs(b), initial=TINY_SINGLE))
    units *= largest
    cones = len(contacts) + len(lines) + len(boxes)
    first = 3 * len(contacts)
    components = np.concatenate([np.arange(first), np.arange(first + 2, 3 * cones, 3)])
    columns = np.concatenate([np.arange(len(at)), np.arange(len(at) - len(boxes), len(at))])
    signs = np.where(np.arange(len(columns)) < len(at), 1.0, -1.0)
    h = np.zeros((cones, 3))
    bounds = problem.bounds[boxes - free] / units[boxes]
    h[cones - 2 * len(boxes) :, 2] = np.tile(bounds, 2)
    matrix = (problem.matrix * units[:, None] * units / largest**2)[np.ix_(at, at)]
    return (
        ConeProblem(matrix, b / largest, len(contacts), components, columns, signs, h), at, units,
    )  # fmt: skip


def _least(problem: ArrayProblem, x: Array) -> Array:
    """The least impulses with the effect of x, contacts sticking, sliding and parting as in x."""
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
    felt, part = problem.matrix @ basis.T, basis @ x
    skew = np.max(np.abs(problem.matrix - problem.matrix.T))
    if skew <= NOTHING * np.max(np.abs(problem.matrix)):
        alike = least_alike(basis @ felt, part, NOTHING, symmetric=True)
    else:
        alike = least_alike(felt, part, NOTHING)
    result: Array = x + (alike - part) @ basis
    return result


def _padded(rows: RowKinds) -> RowKinds | None:
    """The compiled sizes that hold these rows; None if there are too many."""

    def up(n: int) -> int | None:
        return 0 if n == 0 else next((lanes for lanes in LANES if lanes >= n), None)

    sizes = up(rows.contacts), up(rows.stops), up(rows.boxes)
    return None if None in sizes else RowKinds(*(n for n in sizes if n is not None))


def _swept(problem: ArrayProblem, x: Array, slips: Array, count: int) -> tuple[Array, Array]:
    """Sweeps, by a compiled program if there is one; rows that pad it have no impulses."""
    rows = problem.rows
    wide = _padded(rows)
    if wide is None:
        parts = (problem.matrix, problem.b, problem.friction, problem.bounds)
        sweeps = Sweeps(rows, *(each.tolist() for each in parts))
        now = x.tolist(), slips.tolist()
        for _ in range(count):
            now = sweeps.sweep(*now)
        return np.array(now[0]), np.array(now[1])
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
def _sweeper(rows: RowKinds) -> TracedFunction:
    """A sweep as a program: (x and slips, one row a sweep, numbers) → x and slips after each."""
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


def _newton(problem: ArrayProblem, x: Array, goal: float, regular: float, steps: int) -> Array:
    """Newton's method on F = x - P(x - d y), with discs of radius μ n (Alart and Curnier).

    The slope takes G + ε instead of G, with ε the share ``regular`` of a block's trace: redundant
    contacts make it singular otherwise. This changes the rate of convergence only.
    """
    traces = problem.traces[:, None]
    unit = np.eye(len(x))
    moved = problem.matrix / traces + (regular - 1.0) * unit
    best, low = x, problem.residual(x)
    f, slope = problem.equations(x)
    for _ in range(steps):
        try:
            step = np.linalg.solve(unit + slope @ moved, -f)
        except np.linalg.LinAlgError:
            break
        if not np.all(np.isfinite(step)):
            break
        now = np.max(np.abs(f * traces[:, 0]))
        for share in (1.0, 0.5, 0.25):
            f, slope = problem.equations(x + share * step)
            if np.max(np.abs(f * traces[:, 0])) < now:
                break
        x = x + share * step
        if (r := problem.residual(x)) < low:
            best, low = x, r
        if low <= goal:
            break
    return best
