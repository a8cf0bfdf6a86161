"""Elementary rotations: about an axis, permutations, and general ones by their matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from robomodel.scalars import Scalar, add, mul, sincos, sub
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
        r[i] = sub(mul(self.c, v[i]), mul(self.s, v[j]))
        r[j] = add(mul(self.s, v[i]), mul(self.c, v[j]))
        return r[0], r[1], r[2]

    def unrotate(self, v: Vec) -> Vec:
        """Rᵀ v."""
        i, j = following(self.k)
        r = list(v)
        r[i] = add(mul(self.c, v[i]), mul(self.s, v[j]))
        r[j] = sub(mul(self.c, v[j]), mul(self.s, v[i]))
        return r[0], r[1], r[2]

    def conjugate_symmetric(self, m: Mat) -> Mat:
        """R M Rᵀ of a symmetric M in eight multiplications."""
        k, c, s = self.k, self.c, self.s
        i, j = following(k)
        a, b, d = m[i][i], m[i][j], m[j][j]
        turn = add(mul(s, sub(a, d)), mul(c, add(b, b)))
        shift = mul(s, turn)
        r = [list(row) for row in m]
        r[i][i], r[j][j] = sub(a, shift), add(d, shift)
        r[i][j] = r[j][i] = sub(mul(c, turn), b)
        r[k][i] = r[i][k] = sub(mul(c, m[k][i]), mul(s, m[k][j]))
        r[k][j] = r[j][k] = add(mul(s, m[k][i]), mul(c, m[k][j]))
        return as_matrix(r)

    def conjugate(self, m: Mat) -> Mat:
        """R M Rᵀ."""
        k, c, s = self.k, self.c, self.s
        i, j = following(k)
        turn = add(mul(s, sub(m[i][i], m[j][j])), mul(c, add(m[i][j], m[j][i])))
        s_turn, c_turn = mul(s, turn), mul(c, turn)
        r = [list(row) for row in m]
        r[i][i], r[j][j] = sub(m[i][i], s_turn), add(m[j][j], s_turn)
        r[i][j], r[j][i] = sub(c_turn, m[j][i]), sub(c_turn, m[i][j])
        r[k][i] = sub(mul(c, m[k][i]), mul(s, m[k][j]))
        r[k][j] = add(mul(s, m[k][i]), mul(c, m[k][j]))
        r[i][k] = sub(mul(c, m[i][k]), mul(s, m[j][k]))
        r[j][k] = add(mul(s, m[i][k]), mul(c, m[j][k]))
        return as_matrix(r)


@dataclass(frozen=True, slots=True)
class SignedPermutation:
    """A rotation that maps axes to axes: row i of R is ``sign[i]`` at column ``source[i]``."""

    source: tuple[int, int, int]
    sign: tuple[float, float, float]

    def rotate(self, v: Vec) -> Vec:
        """R v."""
        (a, b, c), (x, y, z) = self.source, self.sign
        return mul(x, v[a]), mul(y, v[b]), mul(z, v[c])

    def unrotate(self, v: Vec) -> Vec:
        """Rᵀ v."""
        r: list[Scalar] = [0.0, 0.0, 0.0]
        for i in range(3):
            r[self.source[i]] = mul(self.sign[i], v[i])
        return r[0], r[1], r[2]

    def conjugate(self, m: Mat) -> Mat:
        """R M Rᵀ."""
        s, g = self.source, self.sign
        return as_matrix([[mul(g[i] * g[j], m[s[i]][s[j]]) for j in range(3)] for i in range(3)])

    def conjugate_symmetric(self, m: Mat) -> Mat:
        """R M Rᵀ of a symmetric M."""
        s, g = self.source, self.sign
        return symmetric(*(mul(g[i] * g[j], m[s[i]][s[j]]) for i in range(3) for j in range(i, 3)))


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
    x2, y2, z2 = mul(2.0, x), mul(2.0, y), mul(2.0, z)
    xx, yy, zz = mul(x2, x), mul(y2, y), mul(z2, z)
    xy, xz, yz = mul(x2, y), mul(x2, z), mul(y2, z)
    wx, wy, wz = mul(x2, w), mul(y2, w), mul(z2, w)
    return MatrixRotation(
        (
            (sub(1.0, add(yy, zz)), sub(xy, wz), add(xz, wy)),
            (add(xy, wz), sub(1.0, add(xx, zz)), sub(yz, wx)),
            (sub(xz, wy), add(yz, wx), sub(1.0, add(xx, yy))),
        )
    )


def factor(rows: Mat) -> tuple[Rotation, ...]:
    """A constant rotation matrix as few elementary rotations, the child's first.

    Identity: none; axes onto axes: one signed permutation; about a coordinate axis: one; in
    general: Rz Ry Rx.
    """
    sources = [[j for j in range(3) if rows[i][j] != 0.0] for i in range(3)]
    if all(len(s) == 1 for s in sources):
        if rows == UNIT:
            return ()
        (a,), (b,), (c,) = sources
        return (SignedPermutation((a, b, c), (rows[0][a], rows[1][b], rows[2][c])),)
    for k in range(3):
        i, j = following(k)
        if rows[i][k] == rows[j][k] == rows[k][i] == rows[k][j] == 0.0 < rows[k][k]:
            return (AxisRotation(k, rows[i][i], rows[j][i]),)
    pitch = math.atan2(-rows[2][0], math.hypot(rows[0][0], rows[1][0]))
    yaw = math.atan2(rows[1][0], rows[0][0])
    # from the matrix with yaw undone, which stays accurate where cos(pitch) is small
    sy, cy = math.sin(yaw), math.cos(yaw)
    roll = math.atan2(sy * rows[0][2] - cy * rows[1][2], cy * rows[1][1] - sy * rows[0][1])
    return tuple(about_axis(k, angle) for k, angle in enumerate((roll, pitch, yaw)) if angle)
