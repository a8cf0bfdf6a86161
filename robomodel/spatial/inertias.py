"""Inertias of rigid and articulated bodies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from robomodel.scalars import Scalar, value_of
from robomodel.spatial.transforms import Motion, Transform, Wrench
from robomodel.spatial.vectors import (
    ZERO,
    Mat,
    Vec,
    apply,
    as_matrix,
    cross,
    following,
    inner,
    plus,
    scale,
    skew,
    sum_matrices,
    sum_symmetric,
    symmetric,
    transpose,
)
from robomodel.tolerances import ROUNDING


@dataclass(frozen=True, slots=True)
class RigidInertia:
    """A rigid body's ten parameters: mass, h = mass · centre, inertia about the frame's origin."""

    mass: Scalar
    h: Vec
    inertia: Mat

    def __add__(self, other: RigidInertia) -> RigidInertia:
        return RigidInertia(
            self.mass + other.mass,
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
        diagonal = [2.0 * p[i] * s[i] for i in range(3)]
        mixed = [[p[i] * s[j] + p[j] * s[i] for j in range(3)] for i in range(3)]
        steiner = symmetric(
            diagonal[1] + diagonal[2],
            -mixed[0][1],
            -mixed[0][2],
            diagonal[0] + diagonal[2],
            -mixed[1][2],
            diagonal[0] + diagonal[1],
        )
        return RigidInertia(self.mass, plus(h, moved), sum_symmetric(inertia, steiner))

    @property
    def second_moments(self) -> Mat:
        """Σ = ½ tr(I) 1 - I, the second moments of mass; constants that are rounding are zero."""
        i = self.inertia
        half_trace = 0.5 * (i[0][0] + i[1][1] + i[2][2])

        def diagonal(r: int) -> Scalar:
            moment = half_trace - i[r][r]
            if type(moment) is float and abs(moment) <= ROUNDING * abs(value_of(half_trace)):
                return 0.0
            return moment

        return symmetric(
            *(diagonal(r) if r == s else -i[r][s] for r in range(3) for s in range(r, 3))
        )

    def newton_euler(self, a: Vec, u: Mat) -> Wrench:
        """The wrench that gives the body's points the acceleration a + U r.

        f = m a + U h ; n = h x a + vee(U Σ), with the second moments of mass Σ.
        """
        second = self.second_moments

        def product(r: int, s: int) -> Scalar:  # (U Σ)_rs; Σ is symmetric
            return inner(u[r], second[s])

        twist = (
            product(2, 1) - product(1, 2),
            product(0, 2) - product(2, 0),
            product(1, 0) - product(0, 1),
        )
        return Wrench(plus(twist, cross(self.h, a)), plus(scale(self.mass, a), apply(u, self.h)))

    def gyroscopic(self, w: Mat) -> Wrench:
        """The wrench of rotation alone, ω x I ω and ω x (ω x h), from W = [ω]x²."""
        i = self.inertia
        moment = []
        for r in range(3):
            j, k = following(r)
            term = (i[k][k] - i[j][j]) * w[j][k]
            term = term + i[j][k] * (w[j][j] - w[k][k])
            term = term + i[r][k] * w[r][j]
            moment.append(term - i[r][j] * w[r][k])
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
        shifted = sum_matrices(b, transpose((cross(p, c[0]), cross(p, c[1]), cross(p, c[2]))))
        minus_b_p = (cross(p, b[0]), cross(p, b[1]), cross(p, b[2]))  # rows of -B [p]x
        right = transpose((cross(p, shifted[0]), cross(p, shifted[1]), cross(p, shifted[2])))
        return ArticulatedInertia(sum_symmetric(sum_symmetric(a, minus_b_p), right), shifted, c)

    def minus_outer(self, u: Wrench, inverse: Scalar) -> ArticulatedInertia:
        """I - u uᵀ · inverse."""
        v = u.scaled(inverse)

        def half(m: Mat, x: Vec, y: Vec) -> Mat:
            return symmetric(*(m[i][j] - x[i] * y[j] for i in range(3) for j in range(i, 3)))

        b = [[self.b[i][j] - v.moment[i] * u.force[j] for j in range(3)] for i in range(3)]
        return ArticulatedInertia(
            half(self.a, u.moment, v.moment), as_matrix(b), half(self.c, u.force, v.force)
        )

    def without(self, directions: Iterable[int]) -> ArticulatedInertia:
        """The same with the rows and columns of these of the six directions exactly zero."""
        gone = set(directions)

        def cut(m: Mat, first: int, second: int) -> Mat:
            return as_matrix(
                [
                    [0.0 if i + first in gone or j + second in gone else m[i][j] for j in range(3)]
                    for i in range(3)
                ]
            )

        return ArticulatedInertia(cut(self.a, 0, 0), cut(self.b, 0, 3), cut(self.c, 3, 3))
