"""Vectors and matrices of three, over scalars of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from robomodel.scalars import S, Scalar

Vec: TypeAlias = tuple[Scalar, Scalar, Scalar]
Mat: TypeAlias = tuple[Vec, Vec, Vec]  # rows; symmetric ones hold both halves

Triple: TypeAlias = tuple[S, S, S]
Square: TypeAlias = tuple[Triple[S], Triple[S], Triple[S]]

ZERO: tuple[float, float, float] = (0.0, 0.0, 0.0)
UNIT: Square[float] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def plus(a: Triple[S], b: Triple[S]) -> Triple[S]:
    """A + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def minus(a: Triple[S], b: Triple[S]) -> Triple[S]:
    """A - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def scale(k: S, a: Triple[S]) -> Triple[S]:
    """K a."""
    return k * a[0], k * a[1], k * a[2]


def cross(a: Triple[S], b: Triple[S]) -> Triple[S]:
    """A x b."""
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


def inner(a: Triple[S], b: Triple[S]) -> S:
    """a · b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def apply(m: Square[S], a: Triple[S]) -> Triple[S]:
    """M a."""
    if m is UNIT:
        return a
    return inner(m[0], a), inner(m[1], a), inner(m[2], a)


def as_matrix(r: Sequence[Sequence[S]]) -> Square[S]:
    """Rows of three as a matrix."""
    return (
        (r[0][0], r[0][1], r[0][2]),
        (r[1][0], r[1][1], r[1][2]),
        (r[2][0], r[2][1], r[2][2]),
    )


def transpose(m: Square[S]) -> Square[S]:
    """Mᵀ."""
    if m is UNIT:
        return m
    (a, b, c), (d, e, f), (g, h, i) = m
    return (a, d, g), (b, e, h), (c, f, i)


def matmul(m: Square[S], n: Square[S]) -> Square[S]:
    """M N."""
    if m is UNIT or n is UNIT:
        return n if m is UNIT else m
    columns = transpose(n)
    return transpose((apply(m, columns[0]), apply(m, columns[1]), apply(m, columns[2])))


def sum_matrices(m: Square[S], n: Square[S]) -> Square[S]:
    """M + N."""
    return plus(m[0], n[0]), plus(m[1], n[1]), plus(m[2], n[2])


def symmetric(xx: S, xy: S, xz: S, yy: S, yz: S, zz: S) -> Square[S]:
    """The symmetric matrix with these upper entries."""
    return (xx, xy, xz), (xy, yy, yz), (xz, yz, zz)


def sum_symmetric(m: Square[S], n: Square[S]) -> Square[S]:
    """M + N for symmetric matrices, adding one half."""
    return symmetric(*(m[i][j] + n[i][j] for i in range(3) for j in range(i, 3)))


def skew(a: Vec) -> Mat:
    """[a]x, so that [a]x b = a x b."""
    return (0.0, -a[2], a[1]), (a[2], 0.0, -a[0]), (-a[1], a[0], 0.0)


def skew_squared(w: Triple[S]) -> Square[S]:
    """[w]x² = w wᵀ - (w·w) 1: what centripetal acceleration does to an offset."""
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    return symmetric(
        -(yy + zz),
        w[0] * w[1],
        w[0] * w[2],
        -(xx + zz),
        w[1] * w[2],
        -(xx + yy),
    )


def following(k: int) -> tuple[int, int]:
    """The two axes after axis k, cyclically."""
    return (k + 1) % 3, (k + 2) % 3
