"""The least of all forces with the same effect, as redundant points have them.

On arrays by eigenvalues or singular values, the rank decided by a share of the largest. Over
scalars of any kind by a few iterative refinements of z = P (P G² P + ε)⁻¹ P G …, which stay in the
range of P G and so need no rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.contact.problem import TINY_SINGLE, magnitude
from robomodel.dynamics.kinematics.state import Matrix
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    added,
    div,
    dot,
    maximum,
    subtracted,
)

REGULARISED = 1e-14  # of the squared trace of G, on the diagonal of P G² P


def check_tolerance(tolerance: float) -> None:
    """Raises ValueError for a tolerance that is not in [0, 1)."""
    if not (isinstance(tolerance, Real) and 0.0 <= tolerance < 1.0):
        raise ValueError(f"tolerance must be a number from 0 to below 1, got {tolerance!r}")


def least(matrix: Array, right: Array, tolerance: float) -> Array:
    """The least-squares solution of least norm for a symmetric positive semidefinite matrix.

    Eigenvalues up to ``tolerance`` times the largest count as zero. Not-a-number where the matrix
    is.
    """
    check_tolerance(tolerance)
    regular = np.asarray(np.isfinite(matrix).all(axis=(-1, -2), keepdims=True))
    values, vectors = np.linalg.eigh(np.where(regular, matrix, 0.0))
    kept = values > tolerance * values[..., -1:]
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    inverse = np.where(regular[..., 0], inverse, np.nan)
    along = inverse * np.einsum("...ij,...i->...j", vectors, right)
    return np.asarray(np.einsum("...ij,...j->...i", vectors, along))


def least_alike(effects: Array, x: Array, tolerance: float, *, symmetric: bool = False) -> Array:
    """The least x' (n,) with ``effects`` (m, n) x' = effects x.

    Singular values up to ``tolerance`` times the largest count as zero. ``symmetric``: effects are
    symmetric and positive semidefinite, which takes a third of the time.
    """
    if symmetric:
        sizes, columns = np.linalg.eigh(effects)
        unfelt = columns.T[sizes <= tolerance * np.max(sizes)]
    else:
        _, sizes, rows = np.linalg.svd(effects)
        unfelt = rows[np.count_nonzero(sizes > tolerance * sizes.max(initial=0.0)) :]
    return np.asarray(x - unfelt.T @ (unfelt @ x))


def least_traced(
    matrix: Matrix, blocks: Sequence[Matrix], right: Vector
) -> tuple[list[Scalar], Scalar]:
    """The least x in the range of P with G x nearest to ``right``, and the last step's share of x.

    ``blocks``: symmetric projections P (3 by 3) of each contact's forces.
    """
    n = len(right)
    b: Matrix = []  # G P
    for row in matrix:
        b.append([])
        for i, block in enumerate(blocks):
            part = row[3 * i : 3 * i + 3]
            b[-1] += [dot(part, [line[c] for line in block]) for c in range(3)]
    square: Matrix = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            square[i][j] = square[j][i] = dot(b[i], b[j])
    trace = dot([square[i][i] for i in range(n)], [1.0] * n)
    for i in range(n):
        square[i][i] = square[i][i] + (REGULARISED * trace + TINY_SINGLE)
    factors, columns = Factorization(square), list(zip(*b, strict=True))
    x: list[Scalar] = [0.0] * n
    change: Scalar = 0.0
    for _ in range(4):  # refinements by what rounding leaves
        left = subtracted(right, [dot(row, x) for row in b])
        weights = factors.solve(left)
        step = [dot(column, weights) for column in columns]
        x, change = added(x, step), largest(step)
    return x, div(change, largest(x) + TINY_SINGLE)


def largest(x: Vector) -> Scalar:
    """The largest magnitude of the entries."""
    worst: Scalar = 0.0
    for each in x:
        worst = maximum(magnitude(each), worst)
    return worst
