"""Differential inverse kinematics as a quadratic programme, in one traced function.

It computes the programme of all tasks and limits, and the minimum for the case that no limit is
met.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.control.limits import ControlLimits, Quantity, Slot
from robomodel.control.quadratic import UNBOUNDED, QuadraticProgram
from robomodel.control.tasks import Instant, TaskPiece, unfit
from robomodel.kernels.function import TracedFunction
from robomodel.model.derived import traced
from robomodel.model.model import Model
from robomodel.motion import tangent
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    added,
    advanced,
    div,
    dot,
    gram,
    maximum,
    minimum,
    select,
    sqrt,
    transposed,
)
from robomodel.tolerances import HUGE

INDEPENDENT_ROWS = 1e-8  # squared sine between hard rows above which they are independent
EXCHANGED = 1e-11  # largest error of a minimum within bounds


@dataclass(frozen=True, slots=True)
class ProgrammeLayout:
    """The parts of a programme: pieces of tasks and limits, all of a model.

    ``tangents``: in tangent coordinates of linkages, whose bases are a further argument.
    """

    pieces: tuple[TaskPiece, ...]
    limits: ControlLimits
    tangents: bool = False

    @property
    def soft(self) -> list[TaskPiece]:
        """The pieces of tasks that are not hard."""
        return [piece for piece in self.pieces if not piece.task.hard]

    @property
    def equalities(self) -> int:
        """Number of rows of hard tasks."""
        return sum(len(piece.kept) for piece in self.pieces if piece.task.hard)

    @property
    def errors(self) -> int:
        """Number of rows of all tasks."""
        return sum(len(piece.kept) for piece in self.pieces)

    def sizes(self, model: Model) -> dict[str, int]:
        """Lengths of the arguments of its traced function."""
        numbers = max((p.weights + 2 + len(p.kept) for p in self.pieces), default=0)
        targets = max((p.first + p.size for p in self.pieces), default=0)
        sizes = {"q": model.nq, "targets": targets, "weights": numbers, "settings": 3}
        if self.limits.moving:
            sizes["v"] = model.nv
        if self.tangents:
            sizes["bases"] = tangent.numbers(model)
        return sizes

    def results(self, model: Model) -> dict[str, tuple[int, ...]]:
        """Shapes of the results of its traced function."""
        n, m = model.nv, len(self.limits.rows) + self.equalities
        return {
            "H": (n, n), "c": (n,), "A": (m, n), "lower": (n + m,), "upper": (n + m,),
            "error": (self.errors,), "ends": (2 * len(self.limits.quantities),), "step": (n,),
            "checks": (3,),
        }  # fmt: skip


@traced
def ik_program(model: Model, layout: ProgrammeLayout) -> TracedFunction:
    """(q, targets, weights, settings, …) → the quadratic programme of a step d, its minimum,
    checks.

    ½ dᵀ H d + c · d, lower <= [d; A d] <= upper, hard tasks last. ``settings``: the time step, the
    damping, the share of the way to position limits. Further arguments are the velocity before the
    step, if limits depend on it, and bases of tangents. ``error``: of all tasks, without weights.
    ``ends``: bounds by each limited quantity alone. ``step``: the minimum without bounds.
    ``checks``: excess of the step over bounds, Σ G² of linkages, squared error of poses.
    """
    sizes = layout.sizes(model)

    def build(*arguments: Vector) -> list[Scalar]:
        x: dict[str, Vector] = dict(zip(sizes, arguments, strict=True))
        here = tangent.in_tangents(model, x["bases"]) if layout.tangents else model
        at = Instant(here, x["q"], x.get("v", ()))
        return _programme(at, layout, x["targets"], x["weights"], x["settings"])

    return TracedFunction("ik", sizes, layout.results(model), build)


@traced
def damped_step(
    model: Model, pieces: tuple[TaskPiece, ...], weights: tuple[float, ...]
) -> TracedFunction:
    """(q, targets, damping) → the step of soft tasks without limits, and their errors."""
    layout = ProgrammeLayout(pieces, ControlLimits((), ()))
    places = ProgrammeResults(layout, model).places

    def build(q: Vector, targets: Vector, damping: Vector) -> list[Scalar]:
        numbers = _programme(Instant(model, q), layout, targets, weights, (1.0, damping[0], 1.0))
        return [x for name in ("step", "error") for x in numbers[slice(*places[name][:2])]]

    sizes = {"q": model.nq, "targets": layout.sizes(model)["targets"], "damping": 1}
    return TracedFunction("ik", sizes, {"step": (model.nv,), "error": (layout.errors,)}, build)


def _programme(
    at: Instant, layout: ProgrammeLayout, targets: Vector, weights: Vector, settings: Vector
) -> list[Scalar]:
    n, (dt, damping, share) = at.model.nv, settings
    rows: list[list[Scalar]] = []
    pulls: list[Scalar] = []
    equal: list[list[Scalar]] = []
    right: list[Scalar] = []
    errors: list[Scalar] = []
    for piece in layout.pieces:
        of = piece.rows(at, targets)
        gain, lm_damping, costs = piece.numbers(weights)
        errors += of.error
        pull = [gain * e for e in of.error]
        if piece.task.hard:
            equal, right = equal + list(of.steps), right + pull
            continue
        pull = [w * e for w, e in zip(costs, pull, strict=True)]
        damping = damping + lm_damping * dot(pull, pull)
        rows += [[w * x for x in row] for w, row in zip(costs, of.steps, strict=True)]
        pulls += pull
    columns = transposed(rows) if rows else [[] for _ in range(n)]
    hessian = gram(columns, columns)
    for i in range(n):
        hessian[i][i] = hessian[i][i] + damping
    gradient = [-dot(column, pulls) for column in columns]
    step, regular = _minimum(n, rows, pulls, equal, right, damping)

    def interval(quantity: Quantity) -> tuple[Scalar, Scalar]:
        if quantity.kind == "velocity":
            return quantity.lower * dt, quantity.upper * dt
        if quantity.kind == "acceleration":
            rate = quantity.factor * dot(layout.limits.row(at, quantity.slot)[0], at.v)
            return dt * (rate + dt * quantity.lower), dt * (rate + dt * quantity.upper)
        x = layout.limits.value(at, quantity)

        def way(end: float) -> Scalar:
            return share * (end - x) if math.isfinite(end) else math.copysign(UNBOUNDED, end)

        return way(quantity.lower), way(quantity.upper)

    bounds, ends = layout.limits.bounds(at, interval)
    free = -UNBOUNDED, UNBOUNDED
    between = [bounds.get(("column", i), free) for i in range(n)]
    matrix: list[list[Scalar]] = []
    for slot in layout.limits.rows:
        matrix.append(layout.limits.row(at, slot)[0])
        between.append(bounds[slot])
    excess: Scalar = 0.0
    values = [*step, *(dot(row, step) for row in matrix)]
    for x, (low, high) in zip(values, between, strict=True):
        excess = maximum(excess, maximum(low - x, x - high))
    lower, upper = ([*part, *right] for part in transposed(between) or ([], []))
    excess = select(regular - INDEPENDENT_ROWS, 1.0, excess)
    sizes = dot(step, step) + dot(right, right)
    excess = select(sizes - HUGE, excess, math.inf)  # infinite also where it is not-a-number
    checks = [excess, at.growth, unfit(layout.pieces, targets)]
    return [
        *(x for row in hessian for x in row), *gradient,
        *(x for row in (*matrix, *equal) for x in row), *lower, *upper, *errors, *ends, *step,
        *checks,
    ]  # fmt: skip


def _minimum(
    n: int,
    rows: Sequence[Vector],
    pulls: Sequence[Scalar],
    equal: Sequence[Vector],
    right: Vector,
    damping: Scalar,
) -> tuple[list[Scalar], Scalar]:
    """The minimum of ½ |J d - e|² + ½ damping |d|² where hard rows hold, without bounds.

    Hard rows are made orthonormal, which gives the shortest d that meets them. The rest is least
    squares over the rest of J; hard rows are added to its normal equations to make them regular.
    Second, the least squared sine between a hard row and those before it.
    """  # fmt: skip
    basis: list[list[Scalar]] = []
    held: list[Scalar] = []
    regular: Scalar = 1.0
    for row, value in zip(equal, right, strict=True):
        rest, size, reach = list(row), dot(row, row), value
        for unit, known in zip(basis, held, strict=True):
            share = dot(unit, rest)
            rest = advanced(rest, -share, unit)
            reach = reach - share * known
        left = dot(rest, rest)
        regular = minimum(regular, div(left, size))
        inverse = div(1.0, sqrt(left))
        basis.append([inverse * x for x in rest])
        held.append(inverse * reach)
    start: list[Scalar] = [dot(column, held) for column in transposed(basis)] or [0.0] * n
    free: list[list[Scalar]] = []
    for row in rows:
        rest = list(row)
        for unit in basis:
            rest = advanced(rest, -dot(unit, rest), unit)
        free.append(rest)
    wanted = [e - dot(row, start) for e, row in zip(pulls, rows, strict=True)]
    if not (free or basis):
        return start, regular
    step = _least(free + basis, [*wanted, *(0.0 for _ in basis)], damping)
    return added(start, step), regular


def _least(rows: Sequence[Vector], pulls: Vector, damping: Scalar) -> list[Scalar]:
    """Damped least squares: with few rows J by Jᵀ (J Jᵀ + damping)⁻¹ e, which has no rounding in
    directions that no row has.
    """
    columns = transposed(rows)
    few = len(rows) < len(columns)
    vectors = rows if few else columns
    square = gram(vectors, vectors)
    for i, row in enumerate(square):
        row[i] = row[i] + damping
    if few:
        forces = Factorization(square).solve(pulls)
        return [dot(column, forces) for column in columns]
    return Factorization(square).solve([dot(column, pulls) for column in columns])


@traced
def bounded_minimum(model: Model) -> TracedFunction:
    """(H, c, lower, upper) → x of least ½ xᵀ H x + c · x within bounds, and its error.

    A primal-dual active-set method with a fixed number of steps (Hintermüller, Ito and Kunisch,
    *The primal-dual active set strategy as a semismooth Newton method*, 2002). The error is the
    distance of x from x - (H x + c)_i / H_ii clipped to the bounds, zero only at the minimum.
    """
    n = model.nv

    def build(h: Vector, c: Vector, lower: Vector, upper: Vector) -> list[Scalar]:
        hessian = [h[i * n : (i + 1) * n] for i in range(n)]
        x = Factorization(hessian).solve([-y for y in c])
        for _ in range(4):  # exchanges of active bounds, in a kernel
            ends, free = [], []
            for y, low, high in zip(_descended(hessian, c, x), lower, upper, strict=True):
                ends.append(select(y - low, low, select(high - y, high, 0.0)))
                free.append(select(y - low, 0.0, select(high - y, 0.0, 1.0)))
            held = [
                [
                    select(free[i] - 0.5, row[i] if i == j else 0.0, select(free[j] - 0.5, 0.0, y))
                    for j, y in enumerate(row)
                ]
                for i, row in enumerate(hessian)
            ]
            right = [
                select(each - 0.5, row[i] * ends[i], -(c[i] + dot(row, ends)))
                for i, (each, row) in enumerate(zip(free, hessian, strict=True))
            ]
            x = Factorization(held).solve(right)
        fault: Scalar = 0.0
        for y, at, low, high in zip(_descended(hessian, c, x), x, lower, upper, strict=True):
            off = at - minimum(maximum(y, low), high)
            fault = maximum(fault, maximum(off, -off))
        return [*x, select(dot(x, x) - HUGE, fault, math.inf)]

    sizes = {"H": n * n, "c": n, "lower": n, "upper": n}
    return TracedFunction("bounded_minimum", sizes, {"x": (n,), "fault": ()}, build)


def _descended(hessian: Sequence[Vector], c: Vector, x: Vector) -> list[Scalar]:
    """x - (H x + c)_i / H_ii."""
    return [
        at - div(dot(row, x) + slope, row[i])
        for i, (row, slope, at) in enumerate(zip(hessian, c, x, strict=True))
    ]


class ProgrammeResults:
    """Results of a traced programme by name, as views of its numbers (..., size)."""

    def __init__(self, layout: ProgrammeLayout, model: Model) -> None:
        self.layout, self.size, self.equalities = layout, model.nv, layout.equalities
        self.places: dict[str, tuple[int, int, tuple[int, ...]]] = {}
        at = 0
        for name, shape in layout.results(model).items():
            self.places[name] = at, at + math.prod(shape), shape
            at += math.prod(shape)

    def get(self, name: str, numbers: Array) -> Array:
        """The array of one result."""
        first, last, shape = self.places[name]
        part: Array = numbers[..., first:last]
        return part if len(shape) == 1 else part.reshape(*part.shape[:-1], *shape)

    def programme(self, numbers: Array) -> QuadraticProgram:
        """The quadratic programme of one state."""
        h, c, a, lower, upper = (self.get(x, numbers) for x in ("H", "c", "A", "lower", "upper"))
        return QuadraticProgram(h, c, a, lower, upper, self.equalities)

    def within_bounds(self, model: Model, numbers: Array) -> tuple[Array, Mask]:
        """Minima (m, nv) with bounds of single velocities alone; whether each meets all bounds."""
        if self.equalities:
            return np.zeros((len(numbers), self.size)), np.zeros(len(numbers), bool)
        n = self.size
        h, c, a, lower, upper = (self.get(x, numbers) for x in ("H", "c", "A", "lower", "upper"))
        results = np.empty((len(numbers), n + 1))
        bounded_minimum(model)(h.reshape(len(h), n * n), c, lower[:, :n], upper[:, :n], out=results)
        x, values = results[:, :n], np.einsum("mij,mj->mi", a, results[:, :n])
        beyond = np.maximum(lower[:, n:] - values, values - upper[:, n:])
        return x, (results[:, n] <= EXCHANGED) & (np.max(beyond, axis=1, initial=0.0) <= EXCHANGED)

    def labels(self, rows: Iterable[int], numbers: Array) -> tuple[str, ...]:
        """Names of bounds and rows, for messages."""
        limits, ends = self.layout.limits, self.get("ends", numbers)
        lower, upper = self.get("lower", numbers), self.get("upper", numbers)
        hard = [
            f"hard task '{index}'"
            for index, piece in enumerate(self.layout.pieces)
            if piece.task.hard
            for _ in piece.kept
        ]
        result: list[str] = []
        for row in rows:
            at = row - self.size
            if at >= len(limits.rows):
                result.append(hard[at - len(limits.rows)])
                continue
            slot: Slot = ("column", row) if at < 0 else limits.rows[at]
            bounds = float(lower[row]), float(upper[row])
            result += limits.responsible(slot, ends, bounds)
        return tuple(dict.fromkeys(result))
