"""Strides as compiled programs, of mechanisms of few columns.

They are those of :mod:`robomodel.mechanism.continuation`, whose letters they use: one program runs
Newton's steps, another one turns the bases. Of few columns, that takes a small part of the time of
NumPy's calls, of which a stride makes a hundred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from robomodel.arrays import Array
from robomodel.kernels.function import Shape, TracedFunction
from robomodel.kernels.plan import Iteration
from robomodel.mechanism.closure import Geometry
from robomodel.mechanism.compiled import shape_of, with_numbers
from robomodel.scalars import (
    Scalar,
    Vector,
    div,
    dot,
    is_zero,
    maximum,
    orthonormal,
    select,
    solve,
    sparse_dot,
    sqrt,
    transposed,
)
from robomodel.tolerances import HUGE

# sines, sizes: rounding alone, which no step makes less; what is left of a gap, at most, by a step
# that is worth another
GAP, GAIN = 1e-15, 0.9
TURNED = 0.85  # least cosine between motions before and after a stride
STEPS, ROOTS = 10, 4  # of Newton's method: from 0.4 rad 3.5 are taken; to a matrix' inverse root
MOST_ALGEBRA = 2500  # multiplications of dense algebra in a stride, up to which compiling it pays

Matrix = list[list[Scalar]]


@dataclass(frozen=True)
class Chart:
    """Columns of a geometry without linear couplings, and units of columns and rows."""

    geometry: Geometry
    columns: tuple[int, ...]
    units: Array
    row_units: Array


@dataclass(frozen=True, eq=False)
class Strides:
    """Programs of strides of a chart, with the numbers that they take beside points.

    Attributes:
        closing: (q, way, V, C, numbers) → q ⊕ way closed along V, and its gap.
        turning: (q, q', way, V, N, C, numbers) → V, N and C at q', det C K V there by C and V of q,
            XᵀX of the motions N + V X there, a number that its greatest eigenvalue has at least and
            one that it has at most, φ, and the lengths of (q' ⊖ q) - way and of way.
        repeated: Conditions are repeated; else there is no C among arguments.
        numbers: Units of columns and rows, and the frames.
    """

    closing: TracedFunction
    turning: TracedFunction
    repeated: bool
    numbers: tuple[Array, ...]

    @staticmethod
    def of(chart: Chart, rank: int, freedoms: int) -> Strides | None:
        """The programs of a chart whose conditions have this rank; None if they would be large."""
        n, rows = len(chart.columns), len(chart.row_units)
        algebra = rank**3 + rank**2 * freedoms + (rows + n) * n * rank + 3 * ROOTS * freedoms**3
        if not (rank and freedoms) or chart.geometry.linear or algebra > MOST_ALGEBRA:
            return None
        shape, given, numbers = shape_of(chart.geometry)
        closing = _closing(shape, given, chart.columns, rank)
        turning = _turning(shape, given, chart.columns, rank, freedoms)
        if not (closing.is_brief and turning.is_brief):
            return None
        return Strides(closing, turning, rows > rank, (chart.units, chart.row_units, numbers))

    def closed(self, q: Array, way: Array, v: Array, c: Array) -> tuple[Array, Array]:
        """Q moved along ``way`` and closed along V, as far as it can, and the gaps left."""
        more = (_flat(c),) if self.repeated else ()
        y = self.closing(q, way, _flat(v), *more, *self.numbers)
        return y[:, :-1], y[:, -1]

    def turned(
        self, q: Array, there: Array, way: Array, v: Array, n: Array, c: Array
    ) -> tuple[Array, ...]:
        """The results of ``turning``."""
        more = (_flat(c),) if self.repeated else ()
        found: tuple[Array, ...] = self.turning(
            q, there, way, _flat(v), _flat(n), *more, *self.numbers
        )
        return found


def _flat(matrices: Array) -> Array:
    """Matrices (n, rows, columns) as rows of numbers."""
    n, rows, columns = matrices.shape
    return matrices.reshape(n, rows * columns)


@dataclass(frozen=True)
class _Sizes:
    """Sizes of arguments that both programs have."""

    shape: Geometry
    given: tuple[int, ...]
    columns: tuple[int, ...]
    rank: int

    @property
    def repeated(self) -> bool:
        return self.shape.rows > self.rank

    @property
    def more(self) -> dict[str, int]:
        """The last arguments, with C where conditions are repeated."""
        rows = self.shape.rows
        c = {"c": self.rank * rows} if self.repeated else {}
        return {**c, "units": len(self.columns), "row_units": rows, "frames": len(self.given)}

    def conditions(
        self, q: Vector, units: Vector, row_units: Vector, frames: Vector
    ) -> tuple[list[Scalar], Matrix]:
        """φ and K of the columns, in units."""
        values, jacobian, _ = with_numbers(self.shape, self.given, frames).conditions(q)
        k = [
            [x if is_zero(x) else x * unit * mine
             for x, unit in zip((row[c] for c in self.columns), units, strict=True)]
            for row, mine in zip(jacobian, row_units, strict=True)
        ]  # fmt: skip
        return [x * mine for x, mine in zip(values, row_units, strict=True)], k

    def moved(self, q: Vector, d: Vector, units: Vector) -> list[Scalar]:
        """Q moved along d."""
        rates = {c: x * unit for c, x, unit in zip(self.columns, d, units, strict=True)}
        there: list[Scalar] = []
        for link in self.shape.links:
            at = q[link.positions]
            if rates.keys() & {*link.freedoms}:
                at = link.joint.moved(at, [rates.get(c, 0.0) for c in link.freedoms])
            there += at
        return there

    def away(self, q: Vector, there: Vector, units: Vector) -> list[Scalar]:
        """The d that lead from q to another."""
        way: dict[int, Scalar] = {}
        for link in self.shape.links:
            if {*self.columns} & {*link.freedoms}:
                d = link.joint.displacement(q[link.positions], there[link.positions])
                way |= zip(link.freedoms, d, strict=True)
        return [div(way[c], unit) for c, unit in zip(self.columns, units, strict=True)]


def _matrix(flat: Vector, columns: int) -> Matrix:
    return [list(flat[n : n + columns]) for n in range(0, len(flat), columns)]


def _times(a: Sequence[Vector], b: Sequence[Vector]) -> Matrix:
    turned = transposed(b)
    return [[sparse_dot(row, column) for column in turned] for row in a]


@lru_cache(maxsize=64)
def _closing(
    shape: Geometry, given: tuple[int, ...], columns: tuple[int, ...], rank: int
) -> TracedFunction:
    """One of Newton's steps, run over and over: from q and the step before to q and the next.

    A step that gains nothing is not taken, and is the last one.
    """
    sizes, count = _Sizes(shape, given, columns, rank), len(columns)

    def build(q: Vector, way: Vector, v: Vector, *more: Vector) -> list[Scalar]:
        *c, units, row_units, frames, carried, (first,) = more
        step, gap = carried[:-1], carried[-1]
        d = [first * x + y for x, y in zip(way, step, strict=True)]
        there = sizes.moved(q, d, units)
        phi, k = sizes.conditions(there, units, row_units, frames)
        if c:
            by = _matrix(c[0], shape.rows)
            phi, k = [dot(row, phi) for row in by], _times(by, k)
        size: Scalar = 0.0
        for value in phi:
            size = maximum(select(value, -value, value), size)
        bound = select(GAP - gap, GAIN * gap, 0.0 * gap) + first * HUGE
        v_rows = _matrix(v, rank)
        back = transposed(solve(_times(k, v_rows), [[each] for each in phi]))[0]
        gained = size - bound
        result = [a if a is b else select(gained, a, b) for a, b in zip(there, q, strict=True)]
        result.append(select(gained, size, gap))
        result += [select(gained, -dot(row, back), 0.0) for row in v_rows]
        return [*result, result[shape.nq]]

    arguments = {"q": shape.nq, "way": count, "v": count * rank, **sizes.more}
    table = ((1.0,), *[(0.0,)] * STEPS)
    return TracedFunction(
        "closing", arguments, {"y": (shape.nq + 1,)}, build,
        Iteration((), table, count + 1), brief=True,
    )  # fmt: skip


@lru_cache(maxsize=64)
def _turning(
    shape: Geometry, given: tuple[int, ...], columns: tuple[int, ...], rank: int, freedoms: int
) -> TracedFunction:
    """Bases turned to a configuration by the shortest way."""
    sizes, count = _Sizes(shape, given, columns, rank), len(columns)

    def build(
        q: Vector, there: Vector, way: Vector, v: Vector, n: Vector, *more: Vector
    ) -> list[Scalar]:
        *c, units, row_units, frames = more
        phi, k = sizes.conditions(there, units, row_units, frames)
        v_rows, n_rows = _matrix(v, rank), _matrix(n, freedoms)
        ck = _times(_matrix(c[0], shape.rows), k) if c else k
        square = _times(ck, v_rows)
        det = determinant(square)
        x = [[-y for y in row] for row in solve(square, _times(ck, n_rows))]
        squares, v_rows, n_rows = _turned(v_rows, n_rows, x)
        combinations: list[Matrix] = []
        if c:  # the rows' combinations turn, too
            combinations.append(orthonormal(transposed(_times(k, v_rows))))
        else:
            v_rows = [[select(det, -row[0], row[0]), *row[1:]] for row in v_rows]
        moved = sizes.away(q, there, units)
        off = [a - b for a, b in zip(moved, way, strict=True)]
        flat = [y for rows in (v_rows, n_rows, *combinations) for row in rows for y in row]
        entries = [y for row in squares for y in row]
        least, most = squares[0][0], sqrt(dot(entries, entries)) if freedoms > 1 else entries[0]
        for i in range(1, freedoms):
            least = maximum(squares[i][i], least)
        return [*flat, det, *entries, least, most, *phi, sqrt(dot(off, off)), sqrt(dot(way, way))]

    arguments = {"q": shape.nq, "there": shape.nq, "way": count, "v": count * rank,
                 "n": count * freedoms, **sizes.more}  # fmt: skip
    results: dict[str, Shape] = {"v": (count, rank), "n": (count, freedoms)}
    if sizes.repeated:
        results["c"] = rank, shape.rows
    results |= {"determinant": (),
               "squares": (freedoms, freedoms), "least": (), "most": (), "phi": (shape.rows,),
               "off": (), "length": ()}  # fmt: skip
    return TracedFunction("turning", arguments, results, build, brief=True)


def _turned(v: Matrix, n: Matrix, x: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """XᵀX, and V and N turned to the motions N + V X by the shortest way.

    As :meth:`robomodel.mechanism.continuation.Continuation.turned`. S⁻½ of several motions is by
    Newton's iteration from the middle of the values that S may have where they have not turned.
    """
    m, back = len(n[0]), transposed(x)
    away, squares = _times(v, x), _times(back, x)
    if m == 1:
        square = squares[0][0]
        long = sqrt(1.0 + square)
        inverse = div(1.0, long)
        rest = inverse * div(1.0, 1.0 + long)
        shorter, further = [[inverse]], [[rest * y for y in back[0]]]
    else:
        s = [[y + float(i == j) for j, y in enumerate(row)] for i, row in enumerate(squares)]
        start = 2.0 / (1.0 + 1.0 / TURNED**2)
        shorter = [[start**0.5 * (1.5 * (i == j) - 0.5 * start * y) for j, y in enumerate(row)]
                   for i, row in enumerate(s)]  # fmt: skip
        for _ in range(ROOTS):
            off = _times(s, _times(shorter, shorter))
            off = [[1.5 * (i == j) - 0.5 * y for j, y in enumerate(row)]
                   for i, row in enumerate(off)]  # fmt: skip
            shorter = _times(shorter, off)
        root = _times(s, shorter)
        both = [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(s, root, strict=True)]
        further = solve(both, back)
    moved = [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(n, away, strict=True)]
    turned = _times(n, _times(shorter, back))
    bent = _times(away, further)
    v = [[a - b - c for a, b, c in zip(*rows, strict=True)]
         for rows in zip(v, turned, bent, strict=True)]  # fmt: skip
    return squares, v, _times(moved, shorter)


def determinant(matrix: Sequence[Vector]) -> Scalar:
    """The determinant, by Householder's reflections."""
    if len(matrix) == 1:
        return matrix[0][0]
    if len(matrix) == 2:
        (a, b), (c, d) = matrix
        return a * d - b * c
    first, *columns = transposed(matrix)
    long = sqrt(dot(first, first))
    long = select(first[0], -long, long)
    mirror = [first[0] + long, *first[1:]]
    factor = div(1.0, long * mirror[0])
    rest = []
    for column in columns:
        part = factor * dot(mirror, column)
        rest.append([x - part * y for x, y in zip(column[1:], mirror[1:], strict=True)])
    return long * determinant(rest)
