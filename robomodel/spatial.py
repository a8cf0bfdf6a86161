"""Spatial vector algebra over scalars of any kind, with structure instead of 6x6 matrices.

Conventions: spatial vectors are angular first. A :class:`Transform` places a child frame in its
parent: x_parent = R x_child + p. R is a sequence of elementary rotations, so that a single-axis
rotation costs four multiplications on a vector and eight on a symmetric matrix.

Accelerations are *conventional*: the linear part is the acceleration of the body-fixed origin, not
Featherstone's spatial acceleration (they differ by ω x v). Linear velocities of bodies then never
enter the dynamics: the motion of a rigid body's points is a + U r with U = [α]x + [ω]x², and its
Newton–Euler equations need only a and U.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from robomodel.scalars import Scalar, add, mul, neg, sincos, sub

Vec: TypeAlias = tuple[Scalar, Scalar, Scalar]
Mat: TypeAlias = tuple[Vec, Vec, Vec]  # rows; symmetric ones hold both halves

ZERO: Vec = (0.0, 0.0, 0.0)
UNIT: Mat = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


# ---- vectors and matrices of three ---------------------------------------------------------------


def plus(a: Vec, b: Vec) -> Vec:
    """A + b."""
    return add(a[0], b[0]), add(a[1], b[1]), add(a[2], b[2])


def minus(a: Vec, b: Vec) -> Vec:
    """A - b."""
    return sub(a[0], b[0]), sub(a[1], b[1]), sub(a[2], b[2])


def scale(k: Scalar, a: Vec) -> Vec:
    """K a."""
    return mul(k, a[0]), mul(k, a[1]), mul(k, a[2])


def cross(a: Vec, b: Vec) -> Vec:
    """A x b."""
    return (
        sub(mul(a[1], b[2]), mul(a[2], b[1])),
        sub(mul(a[2], b[0]), mul(a[0], b[2])),
        sub(mul(a[0], b[1]), mul(a[1], b[0])),
    )


def inner(a: Vec, b: Vec) -> Scalar:
    """a · b."""
    return add(add(mul(a[0], b[0]), mul(a[1], b[1])), mul(a[2], b[2]))


def apply(m: Mat, a: Vec) -> Vec:
    """M a."""
    if m is UNIT:
        return a
    return inner(m[0], a), inner(m[1], a), inner(m[2], a)


def transpose(m: Mat) -> Mat:
    """Mᵀ."""
    if m is UNIT:
        return m
    (a, b, c), (d, e, f), (g, h, i) = m
    return (a, d, g), (b, e, h), (c, f, i)


def matmul(m: Mat, n: Mat) -> Mat:
    """M N."""
    if m is UNIT or n is UNIT:
        return n if m is UNIT else m
    columns = transpose(n)
    return transpose((apply(m, columns[0]), apply(m, columns[1]), apply(m, columns[2])))


def sum_matrices(m: Mat, n: Mat) -> Mat:
    """M + N."""
    return plus(m[0], n[0]), plus(m[1], n[1]), plus(m[2], n[2])


def symmetric(xx: Scalar, xy: Scalar, xz: Scalar, yy: Scalar, yz: Scalar, zz: Scalar) -> Mat:
    """The symmetric matrix with these upper entries."""
    return (xx, xy, xz), (xy, yy, yz), (xz, yz, zz)


def sum_symmetric(m: Mat, n: Mat) -> Mat:
    """M + N for symmetric matrices, adding one half."""
    return symmetric(*(add(m[i][j], n[i][j]) for i in range(3) for j in range(i, 3)))


def skew(a: Vec) -> Mat:
    """[a]x, so that [a]x b = a x b."""
    return (0.0, neg(a[2]), a[1]), (a[2], 0.0, neg(a[0])), (neg(a[1]), a[0], 0.0)


def skew_squared(w: Vec) -> Mat:
    """[w]x² = w wᵀ - (w·w) 1: what centripetal acceleration does to an offset."""
    xx, yy, zz = mul(w[0], w[0]), mul(w[1], w[1]), mul(w[2], w[2])
    return symmetric(
        neg(add(yy, zz)),
        mul(w[0], w[1]),
        mul(w[0], w[2]),
        neg(add(xx, zz)),
        mul(w[1], w[2]),
        neg(add(xx, yy)),
    )


def _following(k: int) -> tuple[int, int]:
    return (k + 1) % 3, (k + 2) % 3


# ---- elementary rotations ------------------------------------------------------------------------


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

    def further(self, other: AxisRotation, sense: float = 1.0) -> AxisRotation:
        """Both rotations about this axis, the other one the other way round where ``sense`` is -1.

        By the addition formulas: a sum of large angles would lose what each of them still has.
        """
        c, s = other.c, mul(sense, other.s)
        return AxisRotation(
            self.k,
            sub(mul(self.c, c), mul(self.s, s)),
            add(mul(self.s, c), mul(self.c, s)),
        )

    def rotate(self, v: Vec) -> Vec:
        """R v."""
        i, j = _following(self.k)
        r = list(v)
        r[i] = sub(mul(self.c, v[i]), mul(self.s, v[j]))
        r[j] = add(mul(self.s, v[i]), mul(self.c, v[j]))
        return r[0], r[1], r[2]

    def unrotate(self, v: Vec) -> Vec:
        """Rᵀ v."""
        i, j = _following(self.k)
        r = list(v)
        r[i] = add(mul(self.c, v[i]), mul(self.s, v[j]))
        r[j] = sub(mul(self.c, v[j]), mul(self.s, v[i]))
        return r[0], r[1], r[2]

    def conjugate_symmetric(self, m: Mat) -> Mat:
        """R M Rᵀ of a symmetric M in eight multiplications."""
        k, c, s = self.k, self.c, self.s
        i, j = _following(k)
        a, b, d = m[i][i], m[i][j], m[j][j]
        turn = add(mul(s, sub(a, d)), mul(c, add(b, b)))
        shift = mul(s, turn)
        r = [list(row) for row in m]
        r[i][i], r[j][j] = sub(a, shift), add(d, shift)
        r[i][j] = r[j][i] = sub(mul(c, turn), b)
        r[k][i] = r[i][k] = sub(mul(c, m[k][i]), mul(s, m[k][j]))
        r[k][j] = r[j][k] = add(mul(s, m[k][i]), mul(c, m[k][j]))
        return _rows(r)

    def conjugate(self, m: Mat) -> Mat:
        """R M Rᵀ."""
        k, c, s = self.k, self.c, self.s
        i, j = _following(k)
        turn = add(mul(s, sub(m[i][i], m[j][j])), mul(c, add(m[i][j], m[j][i])))
        s_turn, c_turn = mul(s, turn), mul(c, turn)
        r = [list(row) for row in m]
        r[i][i], r[j][j] = sub(m[i][i], s_turn), add(m[j][j], s_turn)
        r[i][j], r[j][i] = sub(c_turn, m[j][i]), sub(c_turn, m[i][j])
        r[k][i] = sub(mul(c, m[k][i]), mul(s, m[k][j]))
        r[k][j] = add(mul(s, m[k][i]), mul(c, m[k][j]))
        r[i][k] = sub(mul(c, m[i][k]), mul(s, m[j][k]))
        r[j][k] = add(mul(s, m[i][k]), mul(c, m[j][k]))
        return _rows(r)


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
        return _rows([[mul(g[i] * g[j], m[s[i]][s[j]]) for j in range(3)] for i in range(3)])

    def conjugate_symmetric(self, m: Mat) -> Mat:
        """R M Rᵀ of a symmetric M."""
        s, g = self.source, self.sign
        return symmetric(*(mul(g[i] * g[j], m[s[i]][s[j]]) for i in range(3) for j in range(i, 3)))


@dataclass(frozen=True, slots=True)
class MatrixRotation:
    """A rotation given by its matrix (rows), as a quaternion's is."""

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


def _rows(r: Sequence[Sequence[Scalar]]) -> Mat:
    return (
        (r[0][0], r[0][1], r[0][2]),
        (r[1][0], r[1][1], r[1][2]),
        (r[2][0], r[2][1], r[2][2]),
    )


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
        i, j = _following(k)
        if rows[i][k] == rows[j][k] == rows[k][i] == rows[k][j] == 0.0 < rows[k][k]:
            return (AxisRotation(k, rows[i][i], rows[j][i]),)
    pitch = math.atan2(-rows[2][0], math.hypot(rows[0][0], rows[1][0]))
    yaw = math.atan2(rows[1][0], rows[0][0])
    # from the matrix with yaw undone, which stays accurate where cos(pitch) is small
    sy, cy = math.sin(yaw), math.cos(yaw)
    roll = math.atan2(sy * rows[0][2] - cy * rows[1][2], cy * rows[1][1] - sy * rows[0][1])
    return tuple(about_axis(k, angle) for k, angle in enumerate((roll, pitch, yaw)) if angle)


# ---- motions, wrenches, transforms ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Motion:
    """A velocity or an acceleration: angular part, and linear part at the frame's origin."""

    angular: Vec
    linear: Vec

    def __add__(self, other: Motion) -> Motion:
        return Motion(plus(self.angular, other.angular), plus(self.linear, other.linear))

    def scaled(self, k: Scalar) -> Motion:
        """K times this motion."""
        return Motion(scale(k, self.angular), scale(k, self.linear))

    def entries(self) -> tuple[Scalar, ...]:
        """The six numbers, angular first."""
        return (*self.angular, *self.linear)


@dataclass(frozen=True, slots=True)
class Wrench:
    """A force or a momentum: moment about the frame's origin, and force."""

    moment: Vec
    force: Vec

    def __add__(self, other: Wrench) -> Wrench:
        return Wrench(plus(self.moment, other.moment), plus(self.force, other.force))

    def __sub__(self, other: Wrench) -> Wrench:
        return Wrench(minus(self.moment, other.moment), minus(self.force, other.force))

    def scaled(self, k: Scalar) -> Wrench:
        """K times this wrench."""
        return Wrench(scale(k, self.moment), scale(k, self.force))

    def entries(self) -> tuple[Scalar, ...]:
        """The six numbers, moment first."""
        return (*self.moment, *self.force)

    def turned(self, motion: Motion) -> Wrench:
        """Motion x* wrench: its change as what it is fixed to moves."""
        moment = plus(cross(motion.angular, self.moment), cross(motion.linear, self.force))
        return Wrench(moment, cross(motion.angular, self.force))

    def dot(self, motion: Motion) -> Scalar:
        """Power: the scalar product with a motion."""
        return add(inner(self.moment, motion.angular), inner(self.force, motion.linear))


NO_MOTION = Motion(ZERO, ZERO)
NO_WRENCH = Wrench(ZERO, ZERO)


def combine(weights: Iterable[Scalar], motions: Iterable[Motion]) -> Motion:
    """Σ weight · motion."""
    total = NO_MOTION
    for k, motion in zip(weights, motions, strict=True):
        total = total + motion.scaled(k)
    return total


@dataclass(frozen=True, slots=True)
class Transform:
    """Where a child frame stands in its parent: elementary rotations (child's first) and offset."""

    rotations: tuple[Rotation, ...]
    offset: Vec

    def rotate(self, v: Vec) -> Vec:
        """R v: a vector's child coordinates to parent coordinates."""
        for rotation in self.rotations:
            v = rotation.rotate(v)
        return v

    def unrotate(self, v: Vec) -> Vec:
        """Rᵀ v: parent coordinates to child coordinates."""
        for rotation in reversed(self.rotations):
            v = rotation.unrotate(v)
        return v

    def point(self, r: Vec) -> Vec:
        """A point's child coordinates to parent coordinates."""
        return plus(self.rotate(r), self.offset)

    def matrix(self) -> Mat:
        """R as rows."""
        x, y, z = UNIT
        return transpose((self.rotate(x), self.rotate(y), self.rotate(z)))

    def to_child(self, motion: Motion) -> Motion:
        """X motion: of the parent frame, as seen at the child's origin, in child coordinates."""
        carried = plus(motion.linear, cross(motion.angular, self.offset))
        return Motion(self.unrotate(motion.angular), self.unrotate(carried))

    def to_parent(self, wrench: Wrench) -> Wrench:
        """Xᵀ wrench: the same wrench about the parent's origin, in parent coordinates."""
        force = self.rotate(wrench.force)
        return Wrench(plus(self.rotate(wrench.moment), cross(self.offset, force)), force)


# ---- inertias ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RigidInertia:
    """A rigid body's ten parameters: mass, h = mass · centre, inertia about the frame's origin."""

    mass: Scalar
    h: Vec
    inertia: Mat

    def __add__(self, other: RigidInertia) -> RigidInertia:
        return RigidInertia(
            add(self.mass, other.mass),
            plus(self.h, other.h),
            sum_symmetric(self.inertia, other.inertia),
        )

    def __mul__(self, motion: Motion) -> Wrench:
        return Wrench(
            plus(apply(self.inertia, motion.angular), cross(self.h, motion.linear)),
            plus(scale(self.mass, motion.linear), cross(motion.angular, self.h)),
        )

    def in_parent(self, x: Transform) -> RigidInertia:
        """The same inertia about the parent's origin, in parent coordinates (Xᵀ I X)."""
        if not x.rotations and x.offset is ZERO:
            return self
        h, inertia = self.h, self.inertia
        for rotation in x.rotations:
            h, inertia = rotation.rotate(h), rotation.conjugate_symmetric(inertia)
        p = x.offset
        moved = scale(self.mass, p)
        s = plus(h, scale(0.5, moved))
        diagonal = [mul(mul(2.0, p[i]), s[i]) for i in range(3)]
        mixed = [[add(mul(p[i], s[j]), mul(p[j], s[i])) for j in range(3)] for i in range(3)]
        steiner = symmetric(
            add(diagonal[1], diagonal[2]),
            neg(mixed[0][1]),
            neg(mixed[0][2]),
            add(diagonal[0], diagonal[2]),
            neg(mixed[1][2]),
            add(diagonal[0], diagonal[1]),
        )
        return RigidInertia(self.mass, plus(h, moved), sum_symmetric(inertia, steiner))

    @property
    def second_moments(self) -> Mat:
        """Σ = ½ tr(I) 1 - I, the second moments of mass; constants that are rounding are zero."""
        i = self.inertia
        half_trace = mul(0.5, add(add(i[0][0], i[1][1]), i[2][2]))

        def diagonal(r: int) -> Scalar:
            moment = sub(half_trace, i[r][r])
            rounding = type(moment) is float and abs(moment) <= 1e-15 * abs(half_trace)
            return 0.0 if rounding else moment

        return symmetric(
            *(diagonal(r) if r == s else neg(i[r][s]) for r in range(3) for s in range(r, 3))
        )

    def newton_euler(self, a: Vec, u: Mat) -> Wrench:
        """The wrench that gives the body's points the acceleration a + U r.

        f = m a + U h ; n = h x a + vee(U Σ), with the second moments of mass Σ.
        """
        second = self.second_moments

        def product(r: int, s: int) -> Scalar:  # (U Σ)_rs; Σ is symmetric
            return inner(u[r], second[s])

        twist = (
            sub(product(2, 1), product(1, 2)),
            sub(product(0, 2), product(2, 0)),
            sub(product(1, 0), product(0, 1)),
        )
        return Wrench(plus(twist, cross(self.h, a)), plus(scale(self.mass, a), apply(u, self.h)))

    def gyroscopic(self, w: Mat) -> Wrench:
        """The wrench of rotation alone, ω x I ω and ω x (ω x h), from W = [ω]x²."""
        i = self.inertia
        moment = []
        for r in range(3):
            j, k = _following(r)
            term = mul(sub(i[k][k], i[j][j]), w[j][k])
            term = add(term, mul(i[j][k], sub(w[j][j], w[k][k])))
            term = add(term, mul(i[r][k], w[r][j]))
            moment.append(sub(term, mul(i[r][j], w[r][k])))
        return Wrench((moment[0], moment[1], moment[2]), apply(w, self.h))

    def articulated(self) -> ArticulatedInertia:
        """The same, as blocks of a symmetric 6x6 matrix."""
        m = self.mass
        return ArticulatedInertia(
            self.inertia, skew(self.h), ((m, 0.0, 0.0), (0.0, m, 0.0), (0.0, 0.0, m))
        )


NO_INERTIA = RigidInertia(0.0, ZERO, (ZERO, ZERO, ZERO))


@dataclass(frozen=True, slots=True)
class ArticulatedInertia:
    """A symmetric 6x6 inertia [A B; Bᵀ C], angular block first; A and C are symmetric."""

    a: Mat
    b: Mat
    c: Mat

    def __add__(self, other: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(
            sum_symmetric(self.a, other.a),
            sum_matrices(self.b, other.b),
            sum_symmetric(self.c, other.c),
        )

    def __mul__(self, motion: Motion) -> Wrench:
        return Wrench(
            plus(apply(self.a, motion.angular), apply(self.b, motion.linear)),
            plus(apply(transpose(self.b), motion.angular), apply(self.c, motion.linear)),
        )

    def in_parent(self, x: Transform) -> ArticulatedInertia:
        """Xᵀ I X: rotate the blocks, then shift."""
        a, b, c = self.a, self.b, self.c
        for rotation in x.rotations:
            a, c = rotation.conjugate_symmetric(a), rotation.conjugate_symmetric(c)
            b = rotation.conjugate(b)
        p = x.offset
        # B' = B + [p]x C ; A' = A - B [p]x + [p]x B'ᵀ
        shifted = sum_matrices(b, transpose(_cross_columns(p, c)))
        left = (cross(p, b[0]), cross(p, b[1]), cross(p, b[2]))  # rows of -B [p]x
        right = transpose((cross(p, shifted[0]), cross(p, shifted[1]), cross(p, shifted[2])))
        return ArticulatedInertia(sum_symmetric(sum_symmetric(a, left), right), shifted, c)

    def minus_outer(self, u: Wrench, inverse: Scalar) -> ArticulatedInertia:
        """I - u uᵀ · inverse."""
        v = u.scaled(inverse)

        def half(m: Mat, x: Vec, y: Vec) -> Mat:
            return symmetric(
                *(sub(m[i][j], mul(x[i], y[j])) for i in range(3) for j in range(i, 3))
            )

        b = [[sub(self.b[i][j], mul(v.moment[i], u.force[j])) for j in range(3)] for i in range(3)]
        return ArticulatedInertia(
            half(self.a, u.moment, v.moment), _rows(b), half(self.c, u.force, v.force)
        )

    def without(self, directions: Iterable[int]) -> ArticulatedInertia:
        """The same with the rows and columns of these of the six directions exactly zero."""
        gone = set(directions)

        def cut(m: Mat, first: int, second: int) -> Mat:
            return _rows(
                [
                    [0.0 if i + first in gone or j + second in gone else m[i][j] for j in range(3)]
                    for i in range(3)
                ]
            )

        return ArticulatedInertia(cut(self.a, 0, 0), cut(self.b, 0, 3), cut(self.c, 3, 3))


def _cross_columns(p: Vec, m: Mat) -> Mat:
    """The columns of [p]x M for a symmetric M, as rows."""
    return cross(p, m[0]), cross(p, m[1]), cross(p, m[2])
