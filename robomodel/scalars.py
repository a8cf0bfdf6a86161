"""Arithmetic over scalars of any kind: floats, NumPy arrays (a batch), CasADi SX, traced handles.

Algorithms are written in the operators ``+ - *``. A plain Python ``float`` is a *structural
constant*: a trace drops its zeros and ones, so that an algorithm written once for the general case
costs each robot only what its numbers require. Everything else is an opaque scalar with the
operators and the methods ``sin``, ``cos`` and ``sqrt``, and ``select`` where it is used (NumPy's
types aside). The functions here are those that Python's operators do not give: quotients by zero,
functions of one scalar, selections and small dense systems. None of them branches on the value of
a scalar other than a structural constant.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, Self, TypeAlias, TypeGuard, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

ABOVE_ZERO = 1e-290  # what is positive is above it


class Scalar(Protocol):
    """A number of any kind, with the operators that algorithms are written in.

    They take any other scalar, a structural constant at least, and return their own kind; which
    kinds may meet (an array and a traced handle may not) is theirs to say.
    """

    def __add__(self, other: Any, /) -> Self: ...
    def __radd__(self, other: Any, /) -> Self: ...
    def __sub__(self, other: Any, /) -> Self: ...
    def __rsub__(self, other: Any, /) -> Self: ...
    def __mul__(self, other: Any, /) -> Self: ...
    def __rmul__(self, other: Any, /) -> Self: ...
    def __truediv__(self, other: Any, /) -> Self: ...
    def __rtruediv__(self, other: Any, /) -> Self: ...
    def __neg__(self) -> Self: ...


Vector: TypeAlias = Sequence[Scalar]
S = TypeVar("S", bound=Scalar)


def div(x: S, y: S) -> S:
    """X / y; nan instead of an error if a structural constant is divided by zero."""
    if type(x) is float and x == 0.0 and not (type(y) is float and y == 0.0):
        return cast(S, 0.0)
    if type(y) is float:
        if y == 0.0:
            return cast(S, math.nan)
        return x if y == 1.0 else x / y
    return x / y


def sqrt(x: S) -> S:
    """Square root; nan for negative arguments."""
    scalar: Any = x
    if type(scalar) is float:
        return cast(S, math.sqrt(scalar) if scalar >= 0.0 else math.nan)
    return cast(
        S, np.sqrt(scalar) if isinstance(scalar, np.ndarray | np.generic) else scalar.sqrt()
    )


def sincos(x: S) -> tuple[S, S]:
    """(sin x, cos x)."""
    scalar: Any = x
    if type(scalar) is float:
        return cast(S, math.sin(scalar)), cast(S, math.cos(scalar))
    if isinstance(scalar, np.ndarray | np.generic):
        return cast(S, np.sin(scalar)), cast(S, np.cos(scalar))
    return cast(S, scalar.sin()), cast(S, scalar.cos())


def select(x: Scalar, a: S, b: S) -> S:
    """``a`` where x < 0, else ``b`` (also if x is nan); both are computed."""
    sign: Any = x
    if type(sign) is float:
        return a if sign < 0.0 else b
    if isinstance(sign, np.ndarray | np.generic):
        return _where(np.less(sign, 0.0), a, b)
    return cast(S, sign.select(a, b))


def minimum(x: S, y: S) -> S:
    """The smaller of two; y if one is nan."""
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        arrays: Any = x, y
        return _where(np.less(*arrays), x, y)
    return select(x - y, x, y)


def maximum(x: S, y: S) -> S:
    """The greater of two; y if one is nan."""
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        arrays: Any = x, y
        return _where(np.greater(*arrays), x, y)
    return select(y - x, x, y)


def _where(condition: Any, a: S, b: S) -> S:
    arrays: Any = a, b
    return cast(S, np.where(condition, *arrays))


def dot(a: Iterable[S], b: Iterable[S]) -> S:
    """Σ aᵢ bᵢ."""
    total = cast(S, 0.0)  # not sum(), whose rounding differs from Python 3.12 on
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def sparse_dot(a: Iterable[Scalar], b: Iterable[Scalar]) -> Scalar:
    """Σ aᵢ bᵢ without terms in which one is a structural zero, which a trace drops, too."""
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        if not (is_zero(y) or is_zero(x)):
            total = total + x * y
    return total


def added(a: Vector, b: Vector) -> list[Scalar]:
    """A + b, entry by entry."""
    return [x + y for x, y in zip(a, b, strict=True)]


def advanced(x: Vector, h: Scalar, dx: Vector) -> list[Scalar]:
    """X + h dx, entry by entry."""
    return [a + h * d for a, d in zip(x, dx, strict=True)]


def subtracted(a: Vector, b: Vector) -> list[Scalar]:
    """A - b, entry by entry."""
    return [x - y for x, y in zip(a, b, strict=True)]


def transposed(rows: Iterable[Vector]) -> list[list[Scalar]]:
    """The columns of a matrix as rows; empty for a matrix without rows."""
    return [list(column) for column in zip(*rows, strict=True)]


def gram(a: Sequence[Vector], b: Sequence[Vector]) -> list[list[Scalar]]:
    """The matrix of aᵢ · bⱼ, which is symmetric."""
    result: list[list[Scalar]] = [[0.0] * len(a) for _ in a]
    for i, x in enumerate(a):
        for j in range(i + 1):
            result[i][j] = result[j][i] = dot(x, b[j])
    return result


def orthonormal(rows: Sequence[Vector]) -> list[list[Scalar]]:
    """An orthonormal basis of rows, each in the span of those up to it (Gram and Schmidt)."""
    result: list[list[Scalar]] = []
    for row in rows:
        left = list(row)
        for unit in result:
            part = dot(unit, left)
            left = [x - part * y for x, y in zip(left, unit, strict=True)]
        inverse = div(1.0, sqrt(dot(left, left)))
        result.append([inverse * x for x in left])
    return result


def is_zero(x: Scalar) -> bool:
    """True if x is a structural zero (never asks for the value of any other scalar)."""
    return type(x) is float and x == 0.0


def is_one(x: Scalar) -> bool:
    """True if x is a structural one."""
    return type(x) is float and x == 1.0


def is_number(x: Any) -> TypeGuard[float]:
    """True if x is a number whose value may be used in decisions."""
    return isinstance(x, float | int | np.floating | np.integer)


def as_number(x: Any) -> Any:
    """A number as a float, any other scalar unchanged: as models hold it in the place of one."""
    return float(x) if is_number(x) else x


def held(x: Scalar) -> float:
    """A scalar where descriptions and models hold numbers: it stays what it is.

    While a program is written, traced scalars stand in the place of parameters.
    """
    return cast(float, x)


def array_of(x: Scalar) -> NDArray[Any]:
    """A scalar of a batch, which is an array or a number, for NumPy's functions."""
    return cast(NDArray[Any], x)


def value_of(x: Scalar) -> float:
    """The value of a number; TypeError for scalars that have none, as traced ones."""
    number: Any = x
    return float(number)


# ---- small dense systems ------------------------------------------------------------------------


def solve(
    matrix: Sequence[Vector],
    right: Sequence[Vector],
    *,
    floor: float = 0.0,
    units: Sequence[float] = (),
) -> list[list[Scalar]]:
    """X of ``matrix @ X = right`` for a matrix of full column rank, square or taller.

    ``right`` has the rows of the right-hand sides. Safe at every regular matrix although the
    sequence of operations is fixed: 1x1 and 2x2 in closed form, beyond that modified Gram–Schmidt,
    whose pivots are norms of whole columns and vanish only where the rank does. A taller matrix
    must belong to a consistent system (redundant rows); the result is its least-squares solution.

    ``floor``: the result is nan where the square root of :func:`regularity` is not above it.
    """
    rows, columns = len(matrix), len(matrix[0])
    if rows == columns == 1:
        inverse = _inverse(matrix[0][0], _single(matrix, units), floor)
        return [[inverse * b for b in right[0]]]
    if rows == columns == 2:
        (a, b), (c, d) = matrix
        inverse = _inverse(a * d - b * c, _pair(matrix, units), floor)
        return [
            [inverse * (d * x - b * y) for x, y in zip(*right, strict=True)],
            [inverse * (a * y - c * x) for x, y in zip(*right, strict=True)],
        ]
    return _gram_schmidt(matrix, right, floor, units)


def regularity(matrix: Sequence[Vector], units: Sequence[float] = ()) -> Scalar:
    """The least sin² between a column and the span of the columns before it; 0 without full rank.

    ``units``: lengths that the columns usually have, by which sines are lengths of what is left of
    them: so a column counts that is itself of the size of rounding errors. Without, those that they
    have.
    """
    rows, columns = len(matrix), len(matrix[0])
    if rows == columns == 1:
        return div(*_single(matrix, units))
    if rows == columns == 2:
        return div(*_pair(matrix, units))
    pivots: list[tuple[Scalar, Scalar]] = []
    _gram_schmidt(matrix, [[]] * rows, 0.0, units, pivots)
    least: Scalar = 1.0
    for pivot in pivots:
        least = minimum(div(*pivot), least)
    return least


def _single(matrix: Sequence[Vector], units: Sequence[float]) -> tuple[Scalar, Scalar]:
    """The square of a 1x1 matrix, and the size of which it is a share."""
    x = matrix[0][0]
    return x * x, units[0] * units[0] if units else x * x


def _pair(matrix: Sequence[Vector], units: Sequence[float]) -> tuple[Scalar, Scalar]:
    """The square of the determinant of a 2x2 matrix, and the size of which it is a share."""
    (a, b), (c, d) = matrix
    determinant = a * d - b * c
    if units:
        return determinant * determinant, (units[0] * units[1]) ** 2
    return determinant * determinant, dot((a, c), (a, c)) * dot((b, d), (b, d))


def _inverse(pivot: Scalar, of: tuple[Scalar, Scalar], floor: float) -> Scalar:
    """1 / pivot; where a square is no more than floor² of a size, nan, as 0 / 0 is.

    Processors count that as an invalid operation, so that NumPy and kernels can tell of it.
    """
    if not floor:
        return div(1.0, pivot)
    square, size = of
    above = floor**2 * size - square
    return div(select(above, 1.0, 0.0), select(above, pivot, 0.0))


def _gram_schmidt(
    matrix: Sequence[Vector],
    right: Sequence[Vector],
    floor: float,
    units: Sequence[float],
    pivots: list[tuple[Scalar, Scalar]] | None = None,
) -> list[list[Scalar]]:
    """Least squares by modified Gram–Schmidt without square roots (Björck), fixed sequence.

    The right-hand sides are orthogonalised with the columns, which makes the method as accurate as
    Householder's; divisions are by squared norms of orthogonalised columns. ``pivots`` gets these,
    each with the size of which it is a share.
    """
    n = len(matrix[0])
    columns = [list(column) for column in zip(*matrix, strict=True)]
    rights = [list(column) for column in zip(*right, strict=True)]
    upper: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    solution: list[list[Scalar]] = [[0.0] * len(rights) for _ in range(n)]
    for j in range(n):
        pivot = columns[j]
        square = size = dot(pivot, pivot)
        if units:
            size = units[j] * units[j]
        elif floor or pivots is not None:
            before = [row[j] for row in matrix]
            size = dot(before, before)
        if pivots is not None:
            pivots.append((square, size))
        inverse = _inverse(square, (square, size), floor)
        for k in range(j + 1, n):
            upper[j][k] = factor = inverse * dot(pivot, columns[k])
            columns[k] = [x - factor * p for x, p in zip(columns[k], pivot, strict=True)]
        for r, column in enumerate(rights):
            solution[j][r] = factor = inverse * dot(pivot, column)
            rights[r] = [x - factor * p for x, p in zip(column, pivot, strict=True)]
    for j in reversed(range(n)):
        for k in range(j + 1, n):
            for r in range(len(rights)):
                solution[j][r] = solution[j][r] - upper[j][k] * solution[k][r]
    return solution


class Factorization:
    """LᵀΛL of a symmetric positive definite matrix (L unit lower triangular, Λ diagonal).

    The last variable is eliminated first, as for joint-space inertia matrices (Featherstone): a
    floating base's linear part, whose block is the sparser one, goes before the angular part.

    ``floor``: pivots below this fraction of the diagonal are nan, and so is what depends on them.
    ``order``: another order of the variables, in which L and reduced vectors are.
    """

    __slots__ = ("inverse_pivots", "lower", "order")

    def __init__(
        self, matrix: Sequence[Vector], *, floor: float = 0.0, order: Sequence[int] = ()
    ) -> None:
        n = len(matrix)
        self.order = order or range(n)
        if order:
            matrix = [[matrix[i][j] for j in order] for i in order]
        work = [list(row) for row in matrix]  # only lower triangles are used
        self.lower: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
        self.inverse_pivots: list[Scalar] = [0.0] * n
        for k in reversed(range(n)):
            inverse = div(1.0, work[k][k])
            if floor:
                above = work[k][k] - (floor * matrix[k][k] + ABOVE_ZERO)
                inverse = select(above, math.nan, inverse)
            self.inverse_pivots[k] = inverse
            for i in range(k):
                self.lower[k][i] = inverse * work[k][i]
            for i in range(k):
                for j in range(i + 1):
                    work[i][j] = work[i][j] - self.lower[k][i] * work[k][j]

    def reduce(self, right: Vector) -> list[Scalar]:
        """L⁻ᵀ right."""
        x = [right[i] for i in self.order]
        for k in reversed(range(len(x))):
            for i in range(k):
                x[i] = x[i] - self.lower[k][i] * x[k]
        return x

    def solve(self, right: Vector) -> list[Scalar]:
        """(LᵀΛL)⁻¹ right."""
        return self.restore(self.reduce(right))

    def unlower(self) -> list[list[Scalar]]:
        """L⁻¹ by rows, as sparse as a tree makes L: for many right-hand sides.

        A row has what its ancestors' values mean for it, so that where only those are available, no
        others stand between: (LᵀΛL)⁻¹ is L⁻¹ Λ⁻¹ L⁻ᵀ.
        """
        rows: list[list[Scalar]] = []
        for k, row in enumerate(self.lower):
            inverse: list[Scalar] = [1.0 if i == k else 0.0 for i in range(len(row))]
            for i in range(k):
                for j in range(i + 1):
                    inverse[j] = inverse[j] - row[i] * rows[i][j]
            rows.append(inverse)
        return rows

    def inverse(self) -> list[list[Scalar]]:
        """(LᵀΛL)⁻¹, symmetric."""
        lower, n = self.unlower(), len(self.lower)
        weighted = [[x * p for x, p in zip(r, self.inverse_pivots, strict=True)] for r in lower]
        result: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
        for i in range(n):
            for j in range(i + 1):
                result[i][j] = result[j][i] = dot(weighted[j][: j + 1], lower[i][: j + 1])
        return result

    def weighted(self, reduced: Vector) -> list[Scalar]:
        """Λ⁻¹ reduced."""
        return [p * y for p, y in zip(self.inverse_pivots, reduced, strict=True)]

    def restore(self, reduced: Vector) -> list[Scalar]:
        """(ΛL)⁻¹ reduced: the rest of :meth:`solve` after :meth:`reduce`."""
        return self.back(self.weighted(reduced))

    def back(self, right: Vector) -> list[Scalar]:
        """L⁻¹ right."""
        x = list(right)
        for k in range(len(x)):
            for i in range(k):
                x[k] = x[k] - self.lower[k][i] * x[i]
        result = list(x)
        for i, value in zip(self.order, x, strict=True):
            result[i] = value
        return result


def elimination_order(matrix: Sequence[Vector], last: Iterable[int]) -> list[int]:
    """An order for :class:`Factorization` that eliminates some variables as late as possible.

    Factors of matrices that differ only at these have all earlier steps in common. It fills no
    entries that the order of the variables themselves leaves zero: what would goes later, too.
    """
    n, late, early = len(matrix), set(last), list[int]()
    near = [{j for j in range(n) if j != i and not is_zero(matrix[i][j])} for i in range(n)]
    for k in reversed(range(n)):
        before = {i for i in near[k] if i < k}
        for i in before:
            near[i] |= before - {i}
    for k in reversed(range(n)):
        if k not in late and all(near[k] <= near[i] | {i} for i in near[k]):
            early.append(k)
            for i in near[k]:
                near[i].remove(k)
    return [k for k in range(n) if k not in early] + early[::-1]


def unstack(values: NDArray[Any]) -> list[Scalar]:
    """The last axis as a list of scalars (arrays over the batch)."""
    if values.ndim == 1:
        return list(values)  # np.float64 scalars
    return list(np.ascontiguousarray(np.moveaxis(values, -1, 0)))


def stack(values: Sequence[Scalar], batch: tuple[int, ...]) -> NDArray[Any]:
    """Scalars, structural constants among them, as the last axis of one array."""
    result = np.empty((*batch, len(values)))
    value: Any
    for i, value in enumerate(values):
        result[..., i] = value
    return result
