"""Exponentials and logarithms of rotations and poses, and their derivatives, over scalars.

Straight-line programs: factors that are 0/0 at rest are series there, chosen without branching.
Quaternions are x, y, z, w. Twists are angular first; :func:`log6` and :func:`jlog6` are
Pinocchio's ``log6`` and ``Jlog6`` in this order. Source: Bullo and Murray, *Proportional derivative
(PD) control on the Euclidean group* (1995), for derivatives on SE(3).
"""

from __future__ import annotations

import math
from functools import cache
from math import factorial

from robomodel.scalars import Scalar, Vector, div, dot, select, sincos, sqrt
from robomodel.spatial.vectors import (
    UNIT,
    Mat,
    Vec,
    cross,
    matmul,
    plus,
    scale,
    skew,
    skew_squared,
    sum_matrices,
)

SMALL, LARGE = 0.66, 1 + math.sqrt(2.0)  # tangents between which the arctangent changes its form
TERMS = 30  # of the derivatives' series: π² / (4 π²) to this power is rounding


def exponential(turn: Vector) -> tuple[Vec, Scalar]:
    """The quaternion Exp(turn): its vector and w, of unit length to rounding."""
    square = dot(turn, turn)
    near, angle = _angle(square)
    s, c = sincos(0.5 * angle)
    share = select(near, _series(square, 1 / 2, -1 / 48, 1 / 3840, -1 / 645120), div(s, angle))
    w = select(near, _series(square, 1.0, -1 / 8, 1 / 384, -1 / 46080, 1 / 10321920), c)
    return scale(share, vec(turn)), w


def turned(q: Vector, turn: Vector) -> list[Scalar]:
    """A quaternion turned: q Exp(turn), of unit length."""
    step, w = exponential(turn)
    p = vec(q)
    vector = plus(plus(scale(q[3], step), scale(w, p)), cross(p, step))
    result = [*vector, q[3] * w - dot(p, step)]
    inverse = div(1.0, sqrt(dot(result, result)))
    return [inverse * x for x in result]


def left_coefficients(square: Scalar) -> tuple[Scalar, Scalar]:
    """(1 - cos θ)/θ² and (θ - sin θ)/θ³ at the square of θ: Jl = 1 + a [φ]x + b [φ]x²."""
    near, angle = _angle(square)
    half, _ = sincos(0.5 * angle)
    whole, _ = sincos(angle)
    inverse = div(1.0, angle)
    share = half * inverse
    first = select(
        near, _series(square, 1 / 2, -1 / 24, 1 / 720, -1 / 40320), 2.0 * (share * share)
    )
    cube = inverse * (inverse * inverse)
    second = select(
        near,
        _series(square, 1 / 6, -1 / 120, 1 / 5040, -1 / 362880),
        (angle - whole) * cube,
    )
    return first, second


def turn_between(q0: Vector, q1: Vector) -> tuple[list[Scalar], Scalar]:
    """Log(q0⁻¹ q1) = θ u, the shorter way round, and θ/2 cot θ/2, of quaternions of any length.

    θ/2 = atan(n/w) of the vector's length n and w ≥ 0. Where n/w is small, θ/n is a series in its
    square, which needs no root; beyond, the arctangent is that of (n - w)/(n + w) or -w/n.
    """
    p0, p1 = vec(q0), vec(q1)
    vector = plus(plus(scale(q0[3], p1), scale(-q1[3], p0)), scale(-1.0, cross(p0, p1)))
    scalar = q0[3] * q1[3] + dot(p0, p1)
    sign = select(scalar, -1.0, 1.0)
    w, v = sign * scalar, scale(sign, vector)
    square = dot(v, v)
    near = square - SMALL**2 * (w * w)
    n = sqrt(select(near, 1.0, square))
    far = n - LARGE * w  # negative where n/w is not large
    above = select(near, 0.0, select(far, n - w, -w))
    below = select(near, 1.0, select(far, n + w, n))
    tangent = div(above, below)
    whole = select(near, 1.0, w)
    cosine = select(near, w, 1.0)
    z = select(near, div(square, cosine * cosine), tangent * tangent)
    share = _arctangent(z)
    beyond = select(far, math.pi / 4, math.pi / 2) + tangent * share
    ratio = 2.0 * select(near, div(share, cosine), div(beyond, n))  # θ/n
    half_cotangent = select(near, share, div(beyond * whole, n))
    return list(scale(ratio, v)), half_cotangent


def slide(turn: Vector, half_cotangent: Scalar, offset: Vec) -> Vec:
    """Jl⁻¹ offset: the linear part of a pose's logarithm, whose angular part is ``turn``."""
    once = cross(vec(turn), offset)
    square = dot(turn, turn)
    near, _ = _angle(square)
    series = _series(square, 1 / 12, 1 / 720, 1 / 30240, 1 / 1209600)
    exact = div(1.0 - half_cotangent, select(near, 1.0, square))
    twice = scale(select(near, series, exact), cross(vec(turn), once))
    return plus(offset, plus(scale(-0.5, once), twice))


def quaternion(rotation: Mat) -> list[Scalar]:
    """A quaternion of a rotation matrix (rows), not of unit length (Shepperd).

    One of its four rows of products x² … w² with others, that of the greatest on the diagonal.
    """
    (a, b, c), (d, e, f), (g, h, i) = rotation
    x, y, z = h - f, c - g, d - b
    xy, xz, yz = b + d, c + g, f + h
    of_w = [x, y, z, 1.0 + a + e + i]
    of_x = [1.0 + a - e - i, xy, xz, x]
    of_y = [xy, 1.0 - a + e - i, yz, y]
    of_z = [xz, yz, 1.0 - a - e + i, z]
    of_xy = [select(a - e, q, p) for p, q in zip(of_x, of_y, strict=True)]
    greater = select(a - e, e, a)
    of_xyz = [select(greater - i, q, p) for p, q in zip(of_xy, of_z, strict=True)]
    return [select(a + e + i, p, q) for p, q in zip(of_xyz, of_w, strict=True)]


def log3(rotation: Mat) -> list[Scalar]:
    """The rotation vector [rad] of a matrix (rows), the shorter way round."""
    return turn_between(NO_TURN, quaternion(rotation))[0]


def log6(rotation: Mat, offset: Vec) -> list[Scalar]:
    """The twist [angular | linear] that leads in unit time to a pose, in the axes it starts with.

    ``rotation``: rows of R; ``offset``: p of the pose x ↦ R x + p.
    """
    turn, half_cotangent = turn_between(NO_TURN, quaternion(rotation))
    return [*turn, *slide(turn, half_cotangent, offset)]


def jlog3(turn: Vector) -> Mat:
    """Jr⁻¹ = ∂ log3(R Exp(δ))/∂δ at log3(R) = ``turn``, turns up to π; at -turn it is Jl⁻¹."""
    phi = vec(turn)
    share = _series(-dot(phi, phi), *_even())
    return _sum(UNIT, _scaled(0.5, skew(phi)), _scaled(share, skew_squared(phi)))


def jlog6(twist: Vector) -> list[list[Scalar]]:
    """Jr⁻¹ = ∂ log6(M Exp(δ))/∂δ (6 rows of 6) at log6(M) = ``twist``, turns up to π.

    Of -twist it is Jl⁻¹ = ∂ log6(Exp(δ) M)/∂δ. On SE(3), (s + θ²)² s = 0 with s = ad², so that the
    series of Jr⁻¹ in ad is 1 + ad/2 + A(θ²) ad² + B(θ²) ad⁴.
    """
    phi, rho = vec(twist), vec(twist[3:])
    square = dot(phi, phi)
    first = _series(-square, *(c * (1 - m) for m, c in enumerate(_even())))
    second = _series(-square, *(c * m for m, c in enumerate(_even()) if m))
    turn, shift, turn_twice = skew(phi), skew(rho), skew_squared(phi)
    both = _sum(matmul(shift, turn), matmul(turn, shift))
    fourth = _sum(matmul(turn_twice, both), matmul(both, turn_twice))
    lower = _sum(_scaled(0.5, shift), _scaled(first, both), _scaled(second, fourth))
    block = jlog3(phi)
    return [[*row, 0.0, 0.0, 0.0] for row in block] + [
        [*a, *b] for a, b in zip(lower, block, strict=True)
    ]


NO_TURN = (0.0, 0.0, 0.0, 1.0)


def vec(x: Vector) -> Vec:
    """The first three numbers."""
    return x[0], x[1], x[2]


def _sum(*matrices: Mat) -> Mat:
    result = matrices[0]
    for each in matrices[1:]:
        result = sum_matrices(result, each)
    return result


def _scaled(k: Scalar, m: Mat) -> Mat:
    return scale(k, m[0]), scale(k, m[1]), scale(k, m[2])


def _series(square: Scalar, *coefficients: float) -> Scalar:
    """Horner's rule, the lowest coefficient first."""
    result: Scalar = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        result = c + square * result
    return result


def _angle(square: Scalar) -> tuple[Scalar, Scalar]:
    """A number that is negative where series are used, and the angle elsewhere."""
    near = square - 2.5e-3  # square of the angle [rad²] below which series are exact to rounding
    return near, sqrt(select(near, 1.0, square))


def _arctangent(z: Scalar) -> Scalar:
    """atan(x)/x at the square of x, for x up to ``SMALL`` (Cephes, by S. Moshier)."""
    above = _series(z, -6.485021904942025371773e1, -1.228866684490136173410e2,
                    -7.500855792314704667340e1, -1.615753718733365076637e1,
                    -8.750608600031904122785e-1)  # fmt: skip
    below = _series(z, 1.945506571482613964425e2, 4.853903996359136964868e2,
                    4.328810604912902668951e2, 1.650270098316988542046e2,
                    2.485846490142306297962e1, 1.0)  # fmt: skip
    return 1.0 + div(z * above, below)


@cache
def _even() -> tuple[float, ...]:
    """Coefficients of (z/2) coth(z/2) in z² from z² on: Bernoulli numbers over factorials."""
    from fractions import Fraction

    cosh = [Fraction(1, 4**k * factorial(2 * k)) for k in range(TERMS)]
    sinhc = [Fraction(1, 4**k * factorial(2 * k + 1)) for k in range(TERMS)]
    result: list[Fraction] = []
    for k in range(TERMS):
        result.append(cosh[k] - sum(result[j] * sinhc[k - j] for j in range(k)))
    return tuple(float(c) for c in result[1:])
