"""Elementary rotations: about an axis, permutations, and general ones by their matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from robomodel.scalars import Scalar, is_number, sincos, value_of
from robomodel.spatial.vectors import (
    UNIT,
    Mat,
    Vec,
    apply,
    as_matrix,
    following,
    inner,
    matmul,
    symmetric,
    transpose,
)


class Rotation(Protocol):
    """An elementary rotation R, child to parent."""

    def rotate(self, v: Vec) -> Vec:
        """R v."""

    def unrotate(self, v: Vec) -> Vec:
        """Rᵀ v."""

    def conjugate(self, m: Mat) -> Mat:
        """R M Rᵀ."""

    def conjugate_symmetric(self, m: Mat) -> Mat:
        """R M Rᵀ of a symmetric M."""


@dataclass(frozen=True, slots=True)
class AxisRotation:
    """Rotation about coordinate axis ``k`` with cosine ``c`` and sine ``s``."""

    k: int
    c: Scalar
    s: Scalar

    def rotate(self, v: Vec) -> Vec:
        """R v."""
        i, j = following(self.k)
        r = list(v)
        r[i] = self.c * v[i] - self.s * v[j]
        r[j] = self.s * v[i] + self.c * v[j]
        return r[0], r[1], r[2]

    def unrotate(self, v: Vec) -> Vec:
        """Rᵀ v."""
        i, j = following(self.k)
        r = list(v)
        r[i] = self.c * v[i] + self.s * v[j]
        r[j] = self.c * v[j] - self.s * v[i]
        return r[0], r[1], r[2]

    def conjugate_symmetric(self, m: Mat) -> Mat:
        """R M Rᵀ of a symmetric M in eight multiplications."""
        k, c, s = self.k, self.c, self.s
        i, j = following(k)
        a, b, d = m[i][i], m[i][j], m[j][j]
        turn = s * (a - d) + c * (b + b)
        shift = s * turn
        r = [list(row) for row in m]
        r[i][i], r[j][j] = a - shift, d + shift
        r[i][j] = r[j][i] = c * turn - b
        r[k][i] = r[i][k] = c * m[k][i] - s * m[k][j]
        r[k][j] = r[j][k] = s * m[k][i] + c * m[k][j]
        return as_matrix(r)

    def conjugate(self, m: Mat) -> Mat:
        """R M Rᵀ."""
        k, c, s = self.k, self.c, self.s
        i, j = following(k)
        turn = s * (m[i][i] - m[j][j]) + c * (m[i][j] + m[j][i])
        s_turn, c_turn = s * turn, c * turn
        r = [list(row) for row in m]
        r[i][i], r[j][j] = m[i][i] - s_turn, m[j][j] + s_turn
        r[i][j], r[j][i] = c_turn - m[j][i], c_turn - m[i][j]
        r[k][i] = c * m[k][i] - s * m[k][j]
        r[k][j] = s * m[k][i] + c * m[k][j]
        r[i][k] = c * m[i][k] - s * m[j][k]
        r[j][k] = s * m[i][k] + c * m[j][k]
        return as_matrix(r)


@dataclass(frozen=True, slots=True)
class SignedPermutation:
    """A rotation that maps axes to axes: row i of R is ``sign[i]`` at column ``source[i]``."""

    source: tuple[int, int, int]
    sign: tuple[float, float, float]

    def rotate(self, v: Vec) -> Vec:
        """R v."""
        (a, b, c), (x, y, z) = self.source, self.sign
        return x * v[a], y * v[b], z * v[c]

    def unrotate(self, v: Vec) -> Vec:
        """Rᵀ v."""
        r: list[Scalar] = [0.0, 0.0, 0.0]
        for i in range(3):
            r[self.source[i]] = self.sign[i] * v[i]
        return r[0], r[1], r[2]

    def conjugate(self, m: Mat) -> Mat:
        """R M Rᵀ."""
        s, g = self.source, self.sign
        return as_matrix([[g[i] * g[j] * m[s[i]][s[j]] for j in range(3)] for i in range(3)])

    def conjugate_symmetric(self, m: Mat) -> Mat:
        """R M Rᵀ of a symmetric M."""
        s, g = self.source, self.sign
        return symmetric(*(g[i] * g[j] * m[s[i]][s[j]] for i in range(3) for j in range(i, 3)))


@dataclass(frozen=True, slots=True)
class MatrixRotation:
    """A rotation by its matrix (rows), as that of a quaternion."""

    rows: Mat

    def rotate(self, v: Vec) -> Vec:
        """R v."""
        return apply(self.rows, v)

    def unrotate(self, v: Vec) -> Vec:
        """Rᵀ v."""
        return apply(transpose(self.rows), v)

    def conjugate(self, m: Mat) -> Mat:
        """R M Rᵀ."""
        return matmul(self.rows, matmul(m, transpose(self.rows)))

    def conjugate_symmetric(self, m: Mat) -> Mat:
        """R M Rᵀ of a symmetric M."""
        half = matmul(self.rows, m)
        r = self.rows
        return symmetric(*(inner(half[i], r[j]) for i in range(3) for j in range(i, 3)))


def about_axis(k: int, angle: Scalar) -> AxisRotation:
    """Rotation about coordinate axis k by an angle."""
    s, c = sincos(angle)
    return AxisRotation(k, c, s)


def from_quaternion(x: Scalar, y: Scalar, z: Scalar, w: Scalar) -> MatrixRotation:
    """Rotation of the unit quaternion x, y, z, w."""
    x2, y2, z2 = 2.0 * x, 2.0 * y, 2.0 * z
    xx, yy, zz = x2 * x, y2 * y, z2 * z
    xy, xz, yz = x2 * y, x2 * z, y2 * z
    wx, wy, wz = x2 * w, y2 * w, z2 * w
    return MatrixRotation(
        (
            (1.0 - (yy + zz), xy - wz, xz + wy),
            (xy + wz, 1.0 - (xx + zz), yz - wx),
            (xz - wy, yz + wx, 1.0 - (xx + yy)),
        )
    )


def factor(rows: Mat) -> tuple[Rotation, ...]:
    """A constant rotation matrix as few elementary rotations, the child's first.

    Identity: none; axes onto axes: one signed permutation; about a coordinate axis: one; in
    general: Rz Ry Rx. Of scalars that are no numbers, the matrix is taken as it is in general.
    """
    numbers = [[is_number(x) for x in row] for row in rows]
    sources = [[j for j in range(3) if not (numbers[i][j] and rows[i][j] == 0.0)] for i in range(3)]
    if all(len(s) == 1 for s in sources):
        if rows == UNIT:
            return ()
        (a,), (b,), (c,) = sources
        return (
            SignedPermutation(
                (a, b, c), (value_of(rows[0][a]), value_of(rows[1][b]), value_of(rows[2][c]))
            ),
        )
    for k in range(3):
        i, j = following(k)
        alone = k not in sources[i] + sources[j] and sources[k] == [k]
        if alone and numbers[k][k] and value_of(rows[k][k]) > 0.0:
            return (AxisRotation(k, rows[i][i], rows[j][i]),)
    if not all(map(all, numbers)):
        return (MatrixRotation(rows),)
    pitch = math.atan2(
        value_of(-rows[2][0]), math.hypot(value_of(rows[0][0]), value_of(rows[1][0]))
    )
    yaw = math.atan2(value_of(rows[1][0]), value_of(rows[0][0]))
    # from the matrix with yaw undone, which stays accurate where cos(pitch) is small
    sy, cy = math.sin(yaw), math.cos(yaw)
    roll = math.atan2(
        value_of(sy * rows[0][2] - cy * rows[1][2]), value_of(cy * rows[1][1] - sy * rows[0][1])
    )
    return tuple(about_axis(k, angle) for k, angle in enumerate((roll, pitch, yaw)) if angle)
