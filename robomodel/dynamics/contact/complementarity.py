"""The solver of contact problems (:mod:`robomodel.dynamics.contact.problem`) on arrays.

:func:`solve` runs sweeps of block Gauss–Seidel, then Newton's method on Alart and Curnier's
equations. Where that fails, as for redundant contacts, it starts Newton's method from iterates of
an interior-point method (:mod:`robomodel.dynamics.contact.interior_point`), or with meshes of gears
solves problems with fixed bounds in turn (:func:`_by_fixed_bounds`). It returns the iterate of the
least residual, and of impulses with the same effect the least.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.dynamics.contact.gauss_seidel import SLIPS, Sweeps
from robomodel.dynamics.contact.interior_point import ConeProblem, interior_points
from robomodel.dynamics.contact.least import least_alike
from robomodel.dynamics.contact.problem import (
    APART,
    SLIDING,
    TINY_SINGLE,
    ContactProblem,
    Meshes,
    RowKinds,
    cone,
    half_line,
    interval,
    length,
)
from robomodel.dynamics.contact.reversal import Reversal
from robomodel.kernels import Iteration
from robomodel.kernels.cache import digest
from robomodel.kernels.function import TracedFunction
from robomodel.model.derived import sources
from robomodel.scalars import Scalar, Vector, array_of, stack
from robomodel.tolerances import NOTHING

LANES = (1, 2, 4, 6, 8, 12, 16)  # compiled numbers of contacts, and of other rows
WIDE = (24, 32)  # the same of dry friction, among which meshes with fixed bounds are, too
# of 692 problems of PAL's Kangaroo on two feet of two points, which 4 sweeps and 2 Newton steps
# have not solved to 1e-11, these solve 674, 687 and 690
COMPILED = (8, 24, 96)  # sweeps, each time followed by Newton steps, all compiled
COMPILED_NEWTON = 16  # Newton steps of the compiled program
INTERIOR_NEWTON = 5  # Newton steps from interior points
COMPILED_ROWS = 36  # rows up to which they are compiled, once for all robots: 3 s with so many
QUICK = (8, 24)  # sweeps, each followed by Newton's method
LONG = (400,)  # sweeps if all else failed: they take as long as an interior point
SWEPT_NEWTON = 8  # Newton steps after these sweeps
ROUNDS = 40  # solutions with fixed bounds of meshes; 13 are enough for 95 of 100 random problems
# times the impulse that stops a row alone: bound of a mesh that nothing turns
BEYOND_STOPPING = 1e6
ENOUGH = 1e-11  # residual with which the interior-point method is not started
SLOPES = (1.0, 0.25)  # shares of the shift's slope with which the interior-point method starts
REGULAR = (1e-8, 1e-11)  # of a block's trace, on the diagonal in Newton's method


@dataclass(frozen=True)
class ArrayProblem(ContactProblem):
    """A contact problem on arrays, whose parts are all contacts, all stops, all dry friction.

    Or several side by side (m, …) for :func:`solve_each`, of which :meth:`nth` is one.
    """

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
        boxes = [x[free : self.rows.unmeshed]] if self.rows.boxes else []
        return contacts, stops, boxes

    @property
    def frictions(self) -> list[Array]:
        """Friction of the contacts, in the order of :meth:`parts`."""
        return [self.friction] if self.rows.contacts else []

    @property
    def limits(self) -> list[Array]:
        """Bounds of dry friction, in the order of :meth:`parts`."""
        return [self.bounds] if self.rows.boxes else []

    @functools.cached_property
    def padded(self) -> Padded | None:
        """It among compiled numbers of rows; None if there are too many."""
        wide = _padded(self.rows)
        return None if wide is None else Padded.of(self, wide)

    @property
    def compiled(self) -> Padded | None:
        """The same if Newton's method is compiled too; None if there are too many rows."""
        padded = self.padded
        return padded if padded is not None and padded.wide.size <= COMPILED_ROWS else None

    @property
    def alone(self) -> ArrayProblem:
        """One problem as several side by side."""
        parts = (each[None] for each in (self.matrix, self.b, self.friction, self.bounds))
        meshes = self.meshes
        if meshes is not None:
            meshes = Meshes(*(each[None] for each in (meshes.slopes, *meshes.rest)))
        return ArrayProblem(self.rows, *parts, meshes=meshes)

    @staticmethod
    def of(problem: ContactProblem) -> ArrayProblem:
        """A problem on lists as one on arrays."""
        parts = problem.matrix, problem.b, problem.friction, problem.bounds
        meshes = None if problem.meshes is None else problem.meshes.as_arrays()
        arrays = (np.array(each, dtype=float) for each in parts)
        return ArrayProblem(problem.rows, *arrays, meshes=meshes)

    def as_lists(self) -> Sweeps:
        """The problem on lists."""
        parts = (self.matrix, self.b, self.friction, self.bounds)
        meshes = None if self.meshes is None else self.meshes.as_lists()
        return Sweeps(self.rows, *(each.tolist() for each in parts), meshes=meshes)

    def nth(self, i: int | Mask) -> ArrayProblem:
        """One of several problems, or some of them."""
        parts = (each[i] for each in (self.matrix, self.b, self.friction, self.bounds))
        meshes = None if self.meshes is None else self.meshes.nth(i)
        return ArrayProblem(self.rows, *parts, meshes=meshes)

    def part(self, acting: Mask) -> ArrayProblem:
        """The problem of some contacts, each with its three rows, and of some stops."""
        k, free = self.rows.contacts, 3 * self.rows.contacts + self.rows.stops
        contacts = acting[2 : 3 * k : 3]
        stops, meshes = int(np.sum(acting[3 * k : free])), self.meshes
        rows = replace(self.rows, contacts=int(np.sum(contacts)), stops=stops)
        if meshes is not None:
            meshes = replace(meshes, slopes=meshes.slopes[:, acting])
        return replace(
            self, rows=rows, matrix=self.matrix[np.ix_(acting, acting)],
            b=self.b[acting], friction=self.friction[contacts], meshes=meshes,
        )  # fmt: skip

    def shifted(self, y: Array) -> Array:
        """y + Γ(y)."""
        result, k = y.copy(), 3 * self.rows.contacts
        result[2:k:3] += self.friction * array_of(length(y[0:k:3], y[1:k:3]))
        return result

    def meshed_rows(self, a: Array, x: Array) -> tuple[Array, Array, Array]:
        """P of the meshes' a, its slopes by a, and those by Λ at x."""
        if self.meshes is None:
            return (np.zeros(0),) * 3
        transmitted = self.transmitted(x)
        rows = self.meshes.projected(slice(None), array_of(a[self.rows.unmeshed :]), transmitted)
        points, inside, bends = map(array_of, rows)
        return points, inside, bends

    def transmitted(self, x: Array) -> Array:
        """Λ of all meshes."""
        assert self.meshes is not None
        return np.asarray(self.meshes.free + self.meshes.slopes @ x)

    def projected(self, x: Array, at: Array | None = None) -> Array:
        """The projection of x on the blocks' sets; those of meshes are the sets ``at`` (or x)."""
        result, first = x.copy(), 3 * self.rows.contacts
        contacts, stops, boxes = self.parts(x)
        for each in contacts:
            for r, component in enumerate(cone(list(each), self.friction)):
                result[r:first:3] = array_of(component)
        free = first + self.rows.stops
        for each in stops:
            result[first:free] = array_of(half_line(each)[0])
        last = self.rows.unmeshed
        for each in boxes:
            result[free:last] = array_of(interval(each, self.bounds)[0])
        result[last:] = self.meshed_rows(x, x if at is None else at)[0]
        return result

    def without_gain(self, work: Array, x: Array, x0: Array) -> Array:
        """See :meth:`.Sweeps.without_gain`."""
        numbers = (each.tolist() for each in (work, x, x0))
        return np.array(self.as_lists().without_gain(*numbers), dtype=float)

    def residual(self, x: Array) -> float:
        """The largest residual of a row: a velocity."""
        moved = x - self.scales * self.shifted(self.y(x))
        return float(np.abs(self.traces * (x - self.projected(moved, x))).max(initial=0.0))

    def equations(self, x: Array) -> tuple[Array, Array, Array]:
        """F = x - P(x - d y) (n,), and the slopes (n, n) of P by a and by x.

        Those by x are zero but for meshes, whose bounds follow it.
        """
        moved = x - self.scales * self.y(x)
        contacts, single = self.projections(moved)
        k, n = self.rows.contacts, self.rows.size
        p, slope, first = np.empty(n), np.zeros((n, n)), 3 * k
        for point, rows in contacts:
            blocks = np.zeros((k, 3, 3))
            for r, row in enumerate(rows):
                p[r:first:3] = array_of(point[r])
                for c, value in row.items():
                    blocks[:, r, c] = array_of(value)
            each = np.arange(first).reshape(k, 3)
            slope[each[:, :, None], each[:, None, :]] = blocks
        for each, inside in ((array_of(x), array_of(y)) for x, y in single):
            at = np.arange(first, first + len(each))
            p[at], slope[at, at], first = each, inside, first + len(each)
        bends = np.zeros((n, n))
        if self.meshes is not None:
            at = np.arange(first, n)
            p[at], slope[at, at], turns = self.meshed_rows(moved, x)
            bends[at] = turns[:, None] * self.meshes.slopes
        return x - p, slope, bends

    def frozen(self, x: Array) -> tuple[ArrayProblem, Array]:
        """The problem with the bounds that each mesh has beside x of the other rows; their middles.

        Bounds around zero as those of dry friction: its x is that of this problem less the middles.
        """
        assert self.meshes is not None
        rows, middles = self.rows, np.zeros(self.rows.size)
        most = (
            BEYOND_STOPPING * (np.max(np.abs(self.b)) + TINY_SINGLE) * self.scales[rows.unmeshed :]
        )
        own = self.meshes.slopes[:, rows.unmeshed :].diagonal()
        rest = self.transmitted(x) - own * x[rows.unmeshed :]
        ends = self.meshes.eliminated(slice(None), array_of(own), array_of(rest))
        low, high = (np.clip(array_of(each), -most, most) for each in ends)
        middles[rows.unmeshed :] = 0.5 * (low + high)
        fixed = ArrayProblem(
            replace(rows, boxes=rows.rubbing, meshes=0), self.matrix,
            self.b + self.matrix @ middles, self.friction,
            np.concatenate([self.bounds, 0.5 * (high - low)]),
        )  # fmt: skip
        return fixed, middles


@dataclass(frozen=True)
class Padded:
    """Problems among ``wide`` rows, at which theirs stand ``at``; the others are open.

    ``numbers`` (..., all) are those of their compiled programs.
    """

    wide: RowKinds
    at: Array
    numbers: Array

    @staticmethod
    def of(problem: ArrayProblem, wide: RowKinds) -> Padded:
        """A problem, or several."""
        rows, batch, n = problem.rows, problem.b.shape[:-1], wide.size
        free = 3 * wide.contacts + wide.stops
        at = np.r_[
            0 : 3 * rows.contacts,
            3 * wide.contacts : 3 * wide.contacts + rows.stops,
            free : free + rows.boxes,
            wide.unmeshed : wide.unmeshed + rows.meshes,
        ]
        mean = np.einsum("...ii->...", problem.matrix) / max(rows.size, 1)
        matrix, b = mean[..., None, None] * np.eye(n), np.ones((*batch, n))
        matrix[..., at[:, None], at], b[..., at] = problem.matrix, problem.b
        friction, bounds = np.zeros((*batch, wide.contacts)), np.zeros((*batch, wide.boxes))
        friction[..., : rows.contacts] = problem.friction
        bounds[..., : rows.boxes] = problem.bounds
        parts = [matrix.reshape(*batch, n * n), b, friction, bounds]
        if problem.meshes is not None:
            slopes, m = np.zeros((*batch, wide.meshes, n)), rows.meshes
            slopes[..., np.arange(m)[:, None], at] = problem.meshes.slopes
            numbers = np.zeros((*batch, 4, wide.meshes))
            numbers[..., :m] = np.stack(problem.meshes.rest, axis=-2)
            parts += [slopes.reshape(*batch, -1), numbers.reshape(*batch, -1)]
        return Padded(wide, at, np.concatenate(parts, axis=-1))

    def swept(self, x: Array, slips: Array, count: int) -> tuple[Array, Array]:
        """x and slips after sweeps."""
        n, k = self.wide.size, slips.shape[-1]
        state = np.zeros((*x.shape[:-1], n + self.wide.contacts))
        state[..., self.at], state[..., n : n + k] = x, slips
        after = _program(self.wide, "sweep")(state, np.zeros((count, 1)), self.numbers)[..., -1, :]
        return after[..., self.at], after[..., n : n + k]

    def newton(self, x: Array) -> tuple[Array, Array]:
        """The best x of some Newton steps, and its residual: inf if none is a number."""
        state = np.zeros((*x.shape[:-1], self.wide.size + 1))
        state[..., self.at] = x
        after = _program(self.wide, "newton")(state, np.zeros((COMPILED_NEWTON, 1)), self.numbers)
        residuals = np.nan_to_num(after[..., -1], nan=np.inf)
        best = np.argmin(residuals, axis=-1)[..., None]
        x = np.take_along_axis(after, best[..., None], axis=-2)[..., 0, self.at]
        return x, np.take_along_axis(residuals, best, axis=-1)[..., 0]


def solve_each(
    problems: ArrayProblem, starts: Array, tolerance: float = 1e-10
) -> tuple[Array, Array]:
    """x (m, n) and residuals (m,) of several problems, as of :func:`solve`.

    With few rows sweeps and Newton's method run on all of them side by side.
    """
    x, residuals = starts.copy(), np.full(len(starts), np.inf)
    padded, enough = problems.compiled, max(tolerance, ENOUGH)
    if padded is not None:
        acting = problems.b < APART
        sizes = np.max(np.abs(problems.b), axis=-1, where=acting, initial=TINY_SINGLE)
        now, slips = starts, np.zeros((len(starts), problems.rows.contacts))
        at = np.arange(len(starts))
        for count in COMPILED:
            now, slips = padded.swept(now, slips, count)
            now, errors = padded.newton(now)
            errors /= sizes[at]
            better = errors < residuals[at]
            x[at[better]], residuals[at[better]] = now[better], errors[better]
            left = ~(residuals[at] <= enough)
            if not np.any(left):
                break
            at, now, slips = at[left], now[left], slips[left]
            padded = replace(padded, numbers=padded.numbers[left])
    for i in np.flatnonzero(~(residuals <= enough)).tolist():
        x[i], residuals[i] = solve(problems.nth(i), x[i], tolerance)
    return x, residuals


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
    if problem.meshes is None:
        methods += [_from_inside(problem, goal, slope) for slope in SLOPES]
    else:
        methods.append(_by_fixed_bounds(problem, start, tolerance))
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


def _by_fixed_bounds(problem: ArrayProblem, x: Array, tolerance: float) -> Iterator[Array]:
    """Solutions with the bounds of meshes by the last one, each polished by Newton's method."""
    compiled = problem.compiled
    for _ in range(ROUNDS):
        fixed, middles = problem.frozen(x)
        solved, _ = solve_each(fixed.alone, (x - middles)[None], tolerance)
        yield (x := middles + solved[0])
        if compiled is not None:
            yield compiled.newton(x)[0]
        else:
            yield _newton(problem, x, 0.0, REGULAR[0], SWEPT_NEWTON)


def _from_inside(problem: ArrayProblem, goal: float, slope: float) -> Iterator[Array]:
    """Iterates of the interior-point method, and of Newton's method started from some of them."""
    scaled, rows, units = _in_cones(problem)
    target = 1e-6  # μ below which Newton's method is tried from interior points
    for inside, mu in interior_points(scaled, slope):
        x = np.zeros(problem.rows.size)
        x[rows] = inside
        yield (x := problem.projected(units * x))
        if mu < target:
            target = 0.01 * mu
            for regular in REGULAR:
                yield _newton(problem, x, goal, regular, INTERIOR_NEWTON)


def _iterated(
    problem: ArrayProblem, x: Array, goal: float, sweeps: Sequence[int]
) -> Iterator[Array]:
    """Sweeps and Newton's method in turn; with too many rows to compile, the latter first."""
    slips = np.zeros(problem.rows.contacts)
    if _padded(problem.rows) is None:
        yield (x := _newton(problem, x, goal, REGULAR[0], SWEPT_NEWTON))
    for count in sweeps:
        x, slips = _swept(problem, x, slips, count)
        yield x
        yield (x := _newton(problem, x, goal, REGULAR[0], SWEPT_NEWTON))


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
    last = rows.unmeshed
    ways += [unit[j] for j in range(free, last) if abs(x[j]) < problem.bounds[j - free]]
    if problem.meshes is not None:
        low, high = map(array_of, problem.meshes.bounds(slice(None), problem.transmitted(x)))
        ways += list(unit[last:][(low < x[last:]) & (x[last:] < high)])
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

    def up(n: int, more: tuple[int, ...] = ()) -> int | None:
        return 0 if n == 0 else next((lanes for lanes in (*LANES, *more) if lanes >= n), None)

    sizes = up(rows.contacts), up(rows.stops), up(rows.boxes, WIDE), up(rows.meshes)
    return None if None in sizes else RowKinds(*(n for n in sizes if n is not None))


def _swept(problem: ArrayProblem, x: Array, slips: Array, count: int) -> tuple[Array, Array]:
    """Sweeps, by a compiled program if there is one."""
    if problem.padded is not None:
        return problem.padded.swept(x, slips, count)
    sweeps = problem.as_lists()
    now = x.tolist(), slips.tolist()
    for _ in range(count):
        now = sweeps.sweep(*now)
    return np.array(now[0]), np.array(now[1])


@functools.cache
def _program(rows: RowKinds, kind: Literal["sweep", "newton"]) -> TracedFunction:
    """(x and slips, a row a sweep, numbers) → x and slips after each; or x and its residual."""
    n, k = rows.size, rows.contacts

    def build(state: Vector, _: Vector, numbers: Vector) -> list[Scalar]:
        problem = _of_numbers(rows, numbers)
        if kind == "newton":
            x = problem.newton_step(state[:n])
            return [*x, problem.residual(x)]
        x, slips = problem.sweep(state[:n], state[n:])
        return [*x, *slips]

    size = n + (1 if kind == "newton" else k)
    sizes = {"state": size, "times": 1, "numbers": _count(rows)}
    key = digest((kind, repr(rows), repr(SLIPS), sources()))
    return TracedFunction(kind, sizes, {"y": (size,)}, build, Iteration((1,)), key=key)


def _count(rows: RowKinds) -> int:
    """How many numbers a problem has."""
    n = rows.size
    return n * n + n + rows.contacts + rows.boxes + Meshes.count(rows)


def _of_numbers(rows: RowKinds, numbers: Vector) -> Sweeps:
    """A problem from its numbers, those of :class:`Padded`."""
    n, at = rows.size, rows.size**2
    matrix = [numbers[i * n : (i + 1) * n] for i in range(n)]
    ends = at + n + rows.contacts, at + n + rows.contacts + rows.boxes
    meshes = Meshes.of(rows, numbers[ends[1] :]) if rows.meshes else None
    return Sweeps(rows, matrix, numbers[at : at + n], numbers[at + n : ends[0]],
                  numbers[ends[0] : ends[1]], meshes=meshes)  # fmt: skip


# ---- steps in parts ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parts:
    """Problems (m, …) of the rest of steps after dry friction has turned round in them.

    ``share`` (m,) of the step before, 0 if nothing turns, with the impulses ``slide`` (m, r) of a
    whole step. ``rest`` begins from ``start`` (m, n).
    """

    share: Array
    slide: Array
    rest: ArrayProblem
    start: Array

    @staticmethod
    def of(problems: ArrayProblem, before: Array, x: Array, sizes: Array, struck: Array) -> Parts:
        """The parts (:meth:`.Reversal.first`) of steps with impulses x, side by side (m, …)."""
        padded = problems.compiled or Padded.of(problems, problems.rows)
        program = _reversal(padded.wide, problems.compiled is not None)
        wide, at, rows, count = padded.wide, padded.at, problems.rows, len(x)
        first = wide.size - wide.rubbing
        rubbing = at[rows.size - rows.rubbing :] - first
        impulses, rates = np.zeros((count, wide.size)), np.zeros((count, wide.rubbing))
        impulses[:, at], rates[:, rubbing] = x, before
        y = program(impulses, rates, np.stack([sizes, struck], axis=1), padded.numbers)
        lengths = 1, wide.rubbing, wide.size, wide.boxes, wide.size, Meshes.count(wide)
        share, slide, b, bounds, start, numbers = np.split(y, np.cumsum(lengths)[:-1], axis=1)
        meshes = None
        if rows.meshes:
            all_of = Meshes.side_by_side(wide, numbers)
            among = np.arange(rows.meshes)
            meshes = Meshes(
                all_of.slopes[:, among[:, None], at], *(each[:, among] for each in all_of.rest)
            )
        rest = replace(problems, b=b[:, at], bounds=bounds[:, : rows.boxes], meshes=meshes)
        return Parts(share[:, 0], slide[:, rubbing], rest, start[:, at])

    def some(self, at: Mask) -> Parts:
        """Some of them."""
        return Parts(self.share[at], self.slide[at], self.rest.nth(at), self.start[at])

    def joined(self, rest: Array) -> tuple[Array, Array]:
        """Impulses of whole steps, and early ones (m, n), by those of the rest."""
        parts = Reversal(self.share, list(self.slide.T)).joined(list(rest.T))
        x, early = (stack(each, self.share.shape) for each in parts)
        return x, early


@functools.cache
def _reversal(rows: RowKinds, compiles: bool) -> TracedFunction:
    """(x; rates at the beginning; size and ``struck``; numbers) → share, slide, and the problem of
    the rest: b, bounds, start, meshes.
    """

    def build(x: Vector, before: Vector, more: Vector, numbers: Vector) -> list[Scalar]:
        problem = _of_numbers(rows, numbers)
        first = Reversal.first(problem, before, x, *more)
        rest = first.rest(problem)
        meshes = rest.meshes.numbers() if rest.meshes is not None else []
        return [first.share, *first.slide, *rest.b, *rest.bounds, *first.start(x), *meshes]

    sizes = {"x": rows.size, "before": rows.rubbing, "more": 2, "numbers": _count(rows)}
    count = 1 + rows.rubbing + 2 * rows.size + rows.boxes + Meshes.count(rows)
    key = digest(("reversal", repr(rows), sources()))
    return TracedFunction("reversal", sizes, {"y": (count,)}, build, key=key, compiles=compiles)


def _newton(problem: ArrayProblem, x: Array, goal: float, regular: float, steps: int) -> Array:
    """Newton's method on F = x - P(x - d y), with discs of radius μ n (Alart and Curnier).

    The slope takes G + ε instead of G, with ε the share ``regular`` of a block's trace: redundant
    contacts make it singular otherwise. This changes the rate of convergence only.
    """
    traces = problem.traces[:, None]
    unit = np.eye(len(x))
    moved = problem.matrix / traces + (regular - 1.0) * unit
    best, low = x, problem.residual(x)
    f, slope, bends = problem.equations(x)
    for _ in range(steps):
        try:
            step = np.linalg.solve(unit + slope @ moved - bends, -f)
        except np.linalg.LinAlgError:
            break
        if not np.all(np.isfinite(step)):
            break
        now = np.max(np.abs(f * traces[:, 0]))
        for share in (1.0, 0.5, 0.25):
            f, slope, bends = problem.equations(x + share * step)
            if np.max(np.abs(f * traces[:, 0])) < now:
                break
        x = x + share * step
        if (r := problem.residual(x)) < low:
            best, low = x, r
        if low <= goal:
            break
    return best
