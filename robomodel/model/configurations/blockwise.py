"""Closing block by block: programs of steps that other languages run until loops are closed.

Conditions are those of loops and, of some joints or motors, readings: sums of joint positions. What
each condition depends on is known beforehand. Conditions and coordinates that determine each other
form a block, and the blocks come one after the other (Dulmage and Mendelsohn, 1958): of an ankle
each rod is one, of a robot with a platform on rods the platform and the rods together. A block's
step is Gauss and Newton's, damped after Levenberg and Marquardt, by the normal equations, whose
variables are eliminated in an order that keeps them sparse: rods first, one by one, then the
platform. Digits that normal equations lose only slow down the last steps. Readings with constant
ratios are met at the start.

Python's own closing is compiled, and vectorised over batches: :mod:`.closing`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.kernels.function import TracedFunction
from robomodel.kernels.iterated import DAMPING, FAULT, STATE, IteratedFunction, Stage
from robomodel.mechanism.blocks import blocks
from robomodel.mechanism.constraints import LoopConstraint
from robomodel.model.configurations.closing import left_open, stepped, straightened
from robomodel.model.configurations.functions import LONGEST_STRIDE
from robomodel.model.derived import cached_on_model, nominal, traced
from robomodel.model.elements import Cluster, joint_slices
from robomodel.model.parameters import parameterized
from robomodel.model.parameters import parameters as listed_parameters
from robomodel.model.parametric import parametric
from robomodel.model.spins import find_spins
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    added,
    div,
    dot,
    gram,
    is_zero,
    maximum,
    select,
    solve,
    sqrt,
    subtracted,
    transposed,
    unstack,
    value_of,
)
from robomodel.tolerances import CLOSED, HUGE, NOTHING, SINGULAR, TINY

if TYPE_CHECKING:
    from robomodel.model.model import Model

IN_CLOSED_FORM = 2  # unknowns up to which :func:`solve` is exact and short
CONTRADICTS = 1e-6  # [rad, m] by which redundant encoders may differ

Place: TypeAlias = tuple[int, int]
"""A coordinate: a cluster, and its column of z (of v without loops). Or a condition: a cluster and
a row of its loops, or READING and its number."""
READING = -1
Reading: TypeAlias = tuple[tuple[int, float], ...]
"""Σ k q of joints: their spanning velocities and k."""
Row: TypeAlias = Mapping[Place, Scalar]
SpeedsOf: TypeAlias = Mapping[int, Sequence[Scalar]]
"""Velocities of joints whose positions a cluster's q holds, by the cluster."""


@dataclass(frozen=True, slots=True)
class Part:
    """Conditions and the coordinates that meet them, those of earlier parts given.

    ``constant``: the derivatives of its conditions, which are readings, if they are constant.
    """

    rows: tuple[Place, ...]
    columns: tuple[Place, ...]
    constant: bool = False


# ---- conditions ----------------------------------------------------------------------------------


@dataclass
class Conditions:
    """Conditions and their derivatives by coordinates, over scalars of any kind.

    ``readings``: what is read; ``targets``: what it shall be.
    """

    model: Model
    q: Vector
    readings: Sequence[Reading] = ()
    targets: Vector = ()
    _loops: dict[int, tuple[list[Scalar], list[list[Scalar]]]] = field(default_factory=dict)

    def value(self, at: Place) -> Scalar:
        """The amount that a condition fails by."""
        index, n = at
        if index != READING:
            return self._of_loops(index)[0][n]
        place = {node.v: node.q for node in self.model.nodes}
        positions = self.model.spanning_positions(self.q)
        read = dot(
            [k for _, k in self.readings[n]], [positions[place[v]] for v, _ in self.readings[n]]
        )
        return read - self.targets[n] if self.targets else read

    def row(self, at: Place) -> dict[Place, Scalar]:
        """A condition's derivatives that are not zero."""
        index, n = at
        result: dict[Place, Scalar] = {}
        if index != READING:
            result = {(index, c): x for c, x in enumerate(self._of_loops(index)[1][n])}
        for v, k in self.readings[n] if index == READING else ():
            for place, x in self._rate(v):
                result[place] = result.get(place, 0.0) + k * x
        return {place: x for place, x in result.items() if not is_zero(x)}

    def _of_loops(self, index: int) -> tuple[list[Scalar], list[list[Scalar]]]:
        if index not in self._loops:
            cluster = self.model.clusters[index]
            constraint = cluster.constraint
            assert isinstance(constraint, LoopConstraint)
            values, jacobian = constraint.rows(self.q[cluster.q])
            self._loops[index] = values, constraint.reduced(jacobian)
        return self._loops[index]

    def _rate(self, v: int) -> list[tuple[Place, Scalar]]:
        """The rate of a spanning velocity by its cluster's coordinates."""
        cluster = next(
            c for c in self.model.clusters if c.spanning_v.start <= v < c.spanning_v.stop
        )
        constraint, row = cluster.constraint, v - cluster.spanning_v.start
        entries: Sequence[Scalar]
        if isinstance(constraint, LoopConstraint):
            entries = constraint.expand[row]
        else:
            entries = constraint.jacobian(constraint.positions(self.q[cluster.q]))[row]
        return [((cluster.index, c), x) for c, x in enumerate(entries)]


def _speeds(model: Model, rates: Row) -> dict[int, list[Scalar]]:
    """Velocities of joints whose positions clusters' q hold, from those of coordinates."""
    result: dict[int, list[Scalar]] = {}
    for index in dict.fromkeys(index for index, _ in rates):
        cluster = model.clusters[index]
        constraint = cluster.constraint
        rows = constraint.expand if isinstance(constraint, LoopConstraint) else None
        count = cluster.nv if rows is None else len(rows[0])
        z = [rates.get((index, c), 0.0) for c in range(count)]
        result[index] = z if rows is None else [dot(row, z) for row in rows]
    return result


def _moved(model: Model, q: Vector, step: Row) -> list[Scalar]:
    """q after a step of coordinates."""
    result = list(q)
    for index, speeds in _speeds(model, step).items():
        cluster = model.clusters[index]
        result[cluster.q] = stepped(model, cluster, q[cluster.q], speeds)
    return result


def _places(model: Model, columns: Sequence[Place]) -> tuple[int, ...]:
    """The places in q that these coordinates move."""
    result: list[int] = []
    for index in dict.fromkeys(index for index, _ in columns):
        cluster = model.clusters[index]
        constraint, moving = cluster.constraint, {c for i, c in columns if i == index}
        if isinstance(constraint, LoopConstraint):
            rows = enumerate(constraint.expand)
            moving = {r for r, row in rows if any(not is_zero(row[c]) for c in moving)}
        for _, part, along in joint_slices(model, cluster):
            if not moving.isdisjoint(range(along.start, along.stop)):
                first = cluster.q.start
                result += range(first + part.start, first + part.stop)
    return tuple(result)


# ---- normal equations ----------------------------------------------------------------------------


def _columns(rows: Sequence[Row], columns: Sequence[Place]) -> list[list[Scalar]]:
    return [[row.get(place, 0.0) for row in rows] for place in columns]


@dataclass(frozen=True)
class Leg:
    """Coordinates that enter some rows alone, one more than they are: a rod's, and a loop's rows.

    ``columns`` are one or two, each with its entries in ``rows``.
    """

    columns: tuple[int, ...]
    rows: tuple[int, ...]

    def normal(self, entries: Sequence[Vector]) -> list[Scalar]:
        """The vector over its rows that is normal to its columns, of the size of their product."""
        if len(entries) == 1:
            ((x, y),) = entries
            return [-y, x]
        (ax, ay, az), (bx, by, bz) = entries
        return [ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx]


def _legs(by_column: Sequence[Vector]) -> list[Leg]:
    """The legs of a system, unless nothing else is in it."""
    having: dict[tuple[int, ...], list[int]] = {}
    for c, column in enumerate(by_column):
        having.setdefault(tuple(r for r, x in enumerate(column) if not is_zero(x)), []).append(c)
    found = [
        Leg(tuple(columns), rows)
        for rows, columns in having.items()
        if len(columns) <= IN_CLOSED_FORM
        and len(rows) == len(columns) + 1
        and all(set(rows) <= set(others) or not set(rows) & set(others) for others in having)
    ]
    return found if sum(len(leg.columns) for leg in found) < len(by_column) else []


def _downhill(
    by_column: Sequence[Vector], values: Vector, more: Sequence[Scalar], damping: Scalar
) -> list[Scalar]:
    """The x that brings values + J x nearest to zero; the more damping, the shorter.

    ``more`` is what damping adds to the diagonal of JᵀJ. Of each leg one row is left, along its
    normal n; with Lagrange's |a × b|² = det [a b]ᵀ[a b] one division serves both ways.
    """
    legs = _legs(by_column)
    if not legs:
        factors = _normal(by_column, more)
        return factors.solve([-dot(column, values) for column in by_column])
    own = {c for leg in legs for c in leg.columns}
    shared = [c for c in range(len(by_column)) if c not in own]
    bound = {r for leg in legs for r in leg.rows}
    others = [r for r in range(len(values)) if r not in bound]
    left: list[list[Scalar]] = [[by_column[c][r] for r in others] for c in shared]
    weighted = [list(column) for column in left]
    right = [values[r] for r in others]
    inner: list[tuple[Leg, list[list[Scalar]], list[list[Scalar]], Scalar]] = []
    for leg in legs:
        entries = [[by_column[c][r] for r in leg.rows] for c in leg.columns]
        normal = leg.normal(entries)
        squares = gram(entries, entries)
        size = dot(normal, normal)
        if len(entries) == 1:
            size = size + more[leg.columns[0]]
        else:
            first, second = (more[c] for c in leg.columns)
            size = size + first * (squares[1][1] + second) + second * squares[0][0]
            squares[1][1], squares[0][0] = squares[1][1] + second, squares[0][0] + first
        inverse = div(1.0, size)
        for n, c in enumerate(shared):
            x = dot(normal, [by_column[c][r] for r in leg.rows])
            left[n].append(x)
            weighted[n].append(inverse * x)
        right.append(dot(normal, [values[r] for r in leg.rows]))
        inner.append((leg, entries, squares, inverse))
    factors = _normal(left, [more[c] for c in shared], weighted)
    moved = factors.solve([-dot(column, right) for column in weighted])
    result: list[Scalar] = [0.0] * len(by_column)
    for c, x in zip(shared, moved, strict=True):
        result[c] = x
    for leg, entries, squares, inverse in inner:
        open_ = [values[r] + dot([by_column[c][r] for c in shared], moved) for r in leg.rows]
        pull = [-dot(column, open_) for column in entries]
        if len(pull) == 1:
            result[leg.columns[0]] = inverse * pull[0]
            continue
        (xx, xy), (_, yy) = squares
        result[leg.columns[0]] = inverse * (yy * pull[0] - xy * pull[1])
        result[leg.columns[1]] = inverse * (xx * pull[1] - xy * pull[0])
    shorter = div(1.0, 1.0 + damping)  # legs move fully, however little the others do
    return [shorter * x for x in result]


def _normal(
    by_column: Sequence[Vector],
    more: Sequence[Scalar] = (),
    weighted: Sequence[Vector] | None = None,
) -> Factorization:
    """Factors of JᵀJ, with ``more`` on its diagonal, in an order that keeps them sparse.

    ``weighted``: columns with rows times weights, on one side.
    """
    count = len(by_column)
    matrix: list[list[Scalar]] = [[0.0] * count for _ in range(count)]
    filled = [[n for n, x in enumerate(column) if not is_zero(x)] for column in by_column]
    for i in range(count):
        for j in range(i + 1):
            both = [n for n in filled[i] if n in filled[j]]
            if both:
                x = [(weighted or by_column)[i][n] for n in both]
                matrix[i][j] = matrix[j][i] = dot(x, [by_column[j][n] for n in both])
        if more:
            matrix[i][i] = matrix[i][i] + more[i]
    return Factorization(matrix, order=_sparse_order(matrix))


def _sparse_order(matrix: Sequence[Vector]) -> list[int]:
    """An order for :class:`Factorization`, which eliminates the last first: of minimum degree."""
    near = {i: {j for j, x in enumerate(row) if j != i and not is_zero(x)}
            for i, row in enumerate(matrix)}  # fmt: skip
    order: list[int] = []
    while near:
        k = min(near, key=lambda i: (len(near[i]), i))
        neighbours = near.pop(k)
        for i in neighbours:
            near[i] |= neighbours - {i}
            near[i].discard(k)
        order.append(k)
    return order[::-1]


def _least_squares(by_column: Sequence[Vector], right: Vector) -> list[Scalar]:
    """The x that meets J x = right best; refined, for what normal equations lose."""
    if len(by_column) == len(right) <= IN_CLOSED_FORM:
        return [x for (x,) in solve(transposed(by_column), [[y] for y in right])]
    factors = _normal(by_column)
    x = factors.solve([dot(column, right) for column in by_column])
    left = subtracted(right, [dot(row, x) for row in transposed(by_column)])
    return added(x, factors.solve([dot(column, left) for column in by_column]))


def _of_transposed(by_column: Sequence[Vector], right: Vector) -> list[Scalar]:
    """The x of least norm with Jᵀ x = right; refined."""
    if len(by_column) == len(by_column[0]) <= IN_CLOSED_FORM:
        return [x for (x,) in solve(by_column, [[y] for y in right])]
    factors, rows = _normal(by_column), transposed(by_column)

    def solved(right: Vector) -> list[Scalar]:
        inner = factors.solve(right)
        return [dot(row, inner) for row in rows]

    x = solved(right)
    left = subtracted(right, [dot(column, x) for column in by_column])
    return added(x, solved(left))


# ---- what is solved together ---------------------------------------------------------------------


def _loops(model: Model) -> tuple[list[Place], list[Place]]:
    """The conditions of all loops, and the dependent coordinates."""
    rows: list[Place] = []
    dependent: list[Place] = []
    for cluster in model.clusters:
        for block in getattr(cluster.constraint, "blocks", ()):
            rows += [(cluster.index, row) for row in block.rows]
            dependent += [(cluster.index, column) for column in block.columns]
    return rows, dependent


@cached_on_model
def _of_all_loops(model: Model, parameters: tuple[str, ...] = ()) -> tuple[Part, ...]:
    """The blocks of the dependent coordinates of all loops, for any values of these parameters."""
    rows, columns = _loops(model)
    _, pattern = _sampled(model, (), rows, columns)
    if parameters:
        listed, rng = listed_parameters(model, geometry=True), np.random.default_rng(1)
        for _ in range(4):
            scales, more = rng.uniform(0.9, 1.1, len(parameters)), rng.uniform(0.01, 0.1)
            values = [listed[name] * x or more for name, x in zip(parameters, scales, strict=True)]
            other = parameterized(model, dict(zip(parameters, values, strict=True)))
            pattern |= _sampled(other, (), rows, columns)[1]
    return tuple(_blocks(pattern, rows, columns))


def _blocks(pattern: Mask, rows: Sequence[Place], columns: Sequence[Place]) -> Iterator[Part]:
    """The blocks of conditions and coordinates, one after the other."""
    for some_rows, some in _connected(pattern):
        inner = pattern[np.ix_(some_rows, some)]
        for block in blocks(inner, list(range(len(some)))):
            yield Part(
                tuple(rows[some_rows[r]] for r in block.rows),
                tuple(columns[some[c]] for c in block.columns),
            )


@cached_on_model
def parts_of(
    model: Model, readings: tuple[Reading, ...]
) -> tuple[tuple[Part, ...], tuple[str, ...]]:
    """The parts of loops and readings in their order, and names of coordinates that stay open.

    Coordinates that neither determines stay as they are. Those of a floating base, and spins of
    rods, do not count as open.
    """
    rows, dependent = _loops(model)
    rows += [(READING, n) for n in range(len(readings))]
    independent = [(c.index, column) for c in model.clusters for column in _independent(c)]
    columns = [*dependent, *independent]
    matrix, pattern = _sampled(model, readings, rows, columns)
    chosen, left = list(range(len(dependent))), dict[int, list[Place]]()
    size = np.linalg.norm(matrix, axis=0)
    for c in range(len(dependent), len(columns)):
        if size[c] > NOTHING and len(chosen) < len(rows):
            scaled = matrix[:, [*chosen, c]] / np.maximum(size[[*chosen, c]], TINY)
            if np.linalg.svd(scaled, compute_uv=False)[-1] > SINGULAR:
                chosen.append(c)
                continue
        left.setdefault(columns[c][0], []).append(columns[c])
    parts = tuple(
        replace(part, constant=_is_constant(model, readings, part))
        for part in _blocks(pattern[:, chosen], rows, [columns[c] for c in chosen])
    )
    return parts, _open(model, left)


def _sampled(
    model: Model, readings: Sequence[Reading], rows: Sequence[Place], columns: Sequence[Place]
) -> tuple[Array, Mask]:
    """Derivatives of conditions by coordinates at neutral, and where they may differ from zero.

    Zeros that only closed loops have do not count: a block would open those before it.
    """
    at = {column: n for n, column in enumerate(columns)}

    def matrix(q: Array) -> Array:
        conditions = Conditions(model, unstack(q), readings)
        result = np.zeros((len(rows), len(columns)))
        for n, row in enumerate(rows):
            for place, x in conditions.row(row).items():
                if place in at:
                    result[n, at[place]] = value_of(x)
        return result

    rng = np.random.default_rng(0)
    neutral = model.neutral()
    first = matrix(neutral)
    pattern = np.abs(first) > NOTHING
    for _ in range(3):
        off = straightened(model, unstack(neutral + rng.uniform(-0.4, 0.4, model.nq)))
        pattern |= np.abs(matrix(np.array(off, dtype=float))) > NOTHING
    return first, pattern


def _open(model: Model, left: Mapping[int, Sequence[Place]]) -> tuple[str, ...]:
    """The names of coordinates, by cluster, that are no base's and no spins."""
    spins = [model.nodes[spin.body].cluster for spin in find_spins(model)] if left else []
    names: list[str] = []
    for index, columns in left.items():
        cluster = model.clusters[index]
        base = model.floating_base is not None and model.nodes[0].cluster == index
        if not base and len(columns) != spins.count(index):
            own, labels = list(_independent(cluster)), model.dof_names[cluster.v]
            names += [labels[own.index(c)] for _, c in columns]
    return tuple(names)


def _independent(cluster: Cluster) -> Sequence[int]:
    """The columns of a cluster's independent velocities."""
    constraint = cluster.constraint
    return constraint.independent if isinstance(constraint, LoopConstraint) else range(cluster.nv)


def _connected(pattern: Mask) -> list[tuple[list[int], list[int]]]:
    """Rows and columns that hang together."""
    rows, columns = pattern.shape
    group = list(range(rows + columns))

    def root(i: int) -> int:
        while group[i] != i:
            i = group[i]
        return i

    for r, c in zip(*np.nonzero(pattern), strict=True):
        group[root(int(r))] = root(rows + int(c))
    found: dict[int, tuple[list[int], list[int]]] = {}
    for i in range(rows + columns):
        found.setdefault(root(i), ([], []))[i >= rows].append(i - rows * (i >= rows))
    return [(some, of) for some, of in found.values() if some and of]


def _is_constant(model: Model, readings: Sequence[Reading], part: Part) -> bool:
    """True if rows are readings with constant ratios to these coordinates and to no others."""
    if any(index != READING for index, _ in part.rows):
        return False
    clusters = [model.clusters[index] for index, _ in part.columns]
    if any(cluster.varies and not cluster.implicit for cluster in clusters):
        return False
    conditions = Conditions(model, unstack(model.neutral()), readings)
    return all(set(conditions.row(row)) <= set(part.columns) for row in part.rows)


# ---- programs ------------------------------------------------------------------------------------


@traced
def start(model: Model) -> TracedFunction:
    """Quaternions of unit length, and couplings beside loops met."""
    return TracedFunction(
        "start", {"q": model.nq}, {STATE: (model.nq,)}, lambda q: straightened(model, q)
    )


@traced
def step(model: Model, part: Part, readings: tuple[Reading, ...]) -> TracedFunction:
    """A step of a part's coordinates, with a damping, and the sum of squares before it."""
    places, usual = _places(model, part.columns), nominal(model)
    neutral = Conditions(usual, unstack(usual.neutral()), readings)
    sizes = dict.fromkeys(part.columns, 0.0)
    for row in part.rows:
        for place, x in neutral.row(row).items() if row[0] == READING else ():
            if place in sizes:
                sizes[place] += value_of(x) ** 2
    lengths = [1.0]
    for index, c in part.columns:
        constraint = usual.clusters[index].constraint
        if isinstance(constraint, LoopConstraint):
            sizes[index, c] += constraint.units[c] ** 2
            lengths.append(usual.clusters[index].geometry.scale)
    units = [sizes[place] or 1.0 for place in part.columns]

    def build(q: Vector, damping: Vector, targets: Vector = ()) -> list[Scalar]:
        conditions = Conditions(model, q, readings, targets)
        values = [conditions.value(row) for row in part.rows]
        columns = _columns([conditions.row(row) for row in part.rows], part.columns)
        squares = dot(values, values)
        share = 1.0 / min(lengths) ** 2 * (damping[0] * squares)
        way = _downhill(columns, values, [unit * share for unit in units], damping[0])
        speeds = _speeds(model, dict(zip(part.columns, way, strict=True)))
        turns = [x for i, own in speeds.items() for x in _of_linkage(model, i, own)]
        shorter = div(LONGEST_STRIDE, sqrt(maximum(dot(turns, turns), LONGEST_STRIDE**2)))
        moved = _moved(model, q, {c: shorter * x for c, x in zip(part.columns, way, strict=True)})
        return [*(moved[i] for i in places), squares]

    arguments = {STATE: model.nq, DAMPING: 1}
    if readings:
        arguments["positions"] = len(readings)
    results: dict[str, tuple[int, ...]] = {"moved": (len(places),), "squares": ()}
    return TracedFunction("step", arguments, results, build)


def _of_linkage(model: Model, index: int, speeds: Vector) -> list[Scalar]:
    """The speeds of joints that are in loops; motors geared to them are not."""
    cluster = model.clusters[index]
    links = cluster.geometry.looped if cluster.implicit else ()
    return [x for link in links for x in speeds[link.velocities]]


def _fault(model: Model, q: Vector, size: Scalar, every: Vector) -> Scalar:
    """The size, but infinite where loops are flipped and where numbers are not finite."""
    for cluster in model.clusters:
        for x in cluster.geometry.alignments(q[cluster.q]) if cluster.implicit else ():
            size = select(x, math.inf, size)
    return select(dot(every, every) - HUGE, size, math.inf)


@traced
def finish(model: Model) -> TracedFunction:
    """The configuration, and what loops still fail by."""

    def build(q: Vector) -> list[Scalar]:
        residual = sqrt(left_open(model, q))
        return [*q, residual, _fault(model, q, residual, q)]

    results: dict[str, tuple[int, ...]] = {"closed": (model.nq,), "residual": (), FAULT: ()}
    return TracedFunction("finish", {STATE: model.nq}, results, build)


@cached_on_model
def close(
    model: Model, steps: int = IteratedFunction.steps, parameters: tuple[str, ...] = ()
) -> IteratedFunction:
    """Loops closed block by block, independent joints held; least open where they cannot close."""
    stages = [
        Stage(_made(step, model, parameters, part, ()), _places(model, part.columns))
        for part in _of_all_loops(model, parameters)
    ]
    return IteratedFunction(
        "close", {"q": model.nq, **({"p": len(parameters)} if parameters else {})},
        {"closed": (model.nq,), "residual": ()}, _made(start, model, parameters), tuple(stages),
        _made(finish, model, parameters), steps,
    )  # fmt: skip


def _made(
    make: Callable[..., TracedFunction], model: Model, parameters: tuple[str, ...], *more: object
) -> TracedFunction:
    return parametric(make, model, parameters, *more) if parameters else make(model, *more)


# ---- from readings -------------------------------------------------------------------------------


@traced
def read_start(model: Model, readings: tuple[Reading, ...]) -> TracedFunction:
    """A guess, quaternions of unit length and couplings met; readings of constant ratios, too."""
    parts = [part for part in parts_of(model, readings)[0] if part.constant]

    def build(positions: Vector, guess: Vector) -> list[Scalar]:
        q = straightened(model, guess)
        conditions, way = Conditions(model, q, readings, positions), dict[Place, Scalar]()
        for part in parts:
            left = [-conditions.value(row) for row in part.rows]
            inverse = np.linalg.pinv(_ratios(conditions, part))
            way |= zip(part.columns, [dot(row, left) for row in inverse.tolist()], strict=True)
        return _moved(model, q, way)

    sizes = {"positions": len(readings), "guess": model.nq}
    return TracedFunction("start", sizes, {STATE: (model.nq,)}, build)


def _ratios(conditions: Conditions, part: Part) -> Array:
    """The derivatives of a part's conditions, which are constant."""
    rows = [conditions.row(row) for row in part.rows]
    return np.array(_columns(rows, part.columns), dtype=float).T


@traced
def read_finish(model: Model, readings: tuple[Reading, ...], *, joints: bool) -> TracedFunction:
    """The state and what it fails by; with ``joints``, that of all joints, and forces."""
    parts, _ = parts_of(model, readings)
    first = 0 if model.floating_base is None else model.nodes[0].joint.nv
    first_q = 0 if model.floating_base is None else model.nodes[0].joint.nq
    several = {row[1] for part in parts if len(part.rows) > len(part.columns) for row in part.rows
               if row[0] == READING}  # fmt: skip

    def build(
        q: Vector, positions: Vector, velocities: Vector, efforts: Vector = ()
    ) -> list[Scalar]:
        conditions = Conditions(model, q, readings, positions)
        rates = _rates(conditions, parts, velocities)
        left = [conditions.value((READING, n)) for n in range(len(readings))]
        slip = [
            subtracted([velocities[n]], [dot(row.values(), [rates.get(c, 0.0) for c in row])])[0]
            for n in sorted(several)
            for row in [conditions.row((READING, n))]
        ]
        open_ = left_open(model, q)
        off: Scalar = open_
        for some, sizes in ((left, positions), (slip, velocities)):
            if some:
                bound = (CONTRADICTS / CLOSED) ** 2 * (1.0 + dot(sizes, sizes))
                off = off + div(dot(some, some), bound)
        residual = sqrt(open_ + dot(left, left))
        speeds = _speeds(model, rates)
        v: list[Scalar] = [0.0] * model.nv
        for index, own in speeds.items():
            cluster = model.clusters[index]
            v[cluster.v] = [own[c] for c in cluster.columns] if cluster.implicit else own
        result = [*q, *v]
        if joints:
            result += model.spanning_positions(q)[first_q:]
            result += _joint_velocities(model, q, v, speeds)[first:]
            result += _carried(conditions, efforts)
        every = [*q, *v]
        return [*result, residual, _fault(model, q, sqrt(off), every)]

    sizes = {STATE: model.nq, "positions": len(readings), "velocities": len(readings)}
    results: dict[str, tuple[int, ...]] = {"q": (model.nq,), "v": (model.nv,)}
    if joints:
        sizes["efforts"] = len(readings)
        results |= _of_joints(model)
    return TracedFunction("finish", sizes, {**results, "residual": (), FAULT: ()}, build)


def _rates(
    conditions: Conditions, parts: Sequence[Part], velocities: Vector
) -> dict[Place, Scalar]:
    """Velocities of coordinates, at which readings have these; best where there are more."""
    rates: dict[Place, Scalar] = {}
    for part in parts:
        rows = [conditions.row(row) for row in part.rows]
        right = [
            (velocities[n] if index == READING else 0.0)
            - dot(row.values(), [rates.get(place, 0.0) for place in row])
            for (index, n), row in zip(part.rows, rows, strict=True)
        ]
        if part.constant:
            inverse = np.linalg.pinv(_ratios(conditions, part)).tolist()
            solution = [dot(row, right) for row in inverse]
        else:
            solution = _least_squares(_columns(rows, part.columns), right)
        rates |= zip(part.columns, solution, strict=True)
    return rates


def _of_joints(model: Model) -> dict[str, tuple[int, ...]]:
    """Results on all joints but a floating base's."""
    base = model.nodes[0].joint if model.floating_base is not None else None
    return {
        "joint_positions": (model.n_joint_positions - (base.nq if base else 0),),
        "joint_velocities": (model.n_joint_velocities - (base.nv if base else 0),),
        "tau": (model.nv,),
    }


def _joint_velocities(model: Model, q: Vector, v: Vector, speeds: SpeedsOf) -> list[Scalar]:
    """Velocities of all joints of the spanning tree."""
    result: list[Scalar] = []
    for cluster in model.clusters:
        count = cluster.spanning_v.stop - cluster.spanning_v.start
        if cluster.implicit:
            result += speeds.get(cluster.index, [0.0] * count)
        else:
            constraint = cluster.constraint
            rows = constraint.jacobian(constraint.positions(q[cluster.q]))
            result += [dot(row, v[cluster.v]) for row in rows]
    return result


def _carried(conditions: Conditions, efforts: Vector) -> list[Scalar]:
    """Gᵀ times the forces at what is read (nv); not-a-number where none acts."""
    model, result = conditions.model, list[Scalar]()
    at: list[Scalar] = [0.0] * model.n_joint_velocities
    for reading, force in zip(conditions.readings, efforts, strict=True):
        for v, k in reading:
            at[v] = at[v] + k * force
    for cluster in model.clusters:
        constraint, own = cluster.constraint, at[cluster.spanning_v]
        if not isinstance(constraint, LoopConstraint):
            rows = constraint.jacobian(constraint.positions(conditions.q[cluster.q]))
            result += [dot(column, own) for column in transposed(rows)]
            continue
        forces = [dot(column, own) for column in transposed(constraint.expand)]
        for block in reversed(constraint.blocks):
            right = [forces[c] for c in block.columns]
            if all(map(is_zero, right)):
                continue
            rows_ = [conditions.row((cluster.index, r)) for r in block.rows]
            columns = [(cluster.index, c) for c in block.columns]
            pulled = _of_transposed(_columns(rows_, columns), right)
            for row, pull in zip(rows_, pulled, strict=True):
                for (_, c), x in row.items():
                    forces[c] = forces[c] - x * pull
        result += [forces[c] for c in constraint.independent]
    return [math.nan if is_zero(x) else x for x in result]


@cached_on_model
def read(
    model: Model,
    name: str,
    readings: tuple[Reading, ...],
    *,
    joints: bool = False,
    steps: int = IteratedFunction.steps,
) -> IteratedFunction:
    """The state at which joints or motors read this, near a guess; ``joints``: of all joints."""
    end = read_finish(model, readings, joints=joints)
    stages = [
        Stage(step(model, part, readings), _places(model, part.columns))
        for part in parts_of(model, readings)[0]
        if not part.constant
    ]
    sizes = {n: size for n, size in end.arguments.items() if n != STATE}
    return IteratedFunction(
        name, {**sizes, "guess": model.nq},
        {n: shape for n, shape in end.results.items() if n != FAULT},
        read_start(model, readings), tuple(stages), end, steps,
    )  # fmt: skip
