"""Rotations and displacements by constant velocities: exponentials of SO(3), SE(2) and SE(3).

Exponentials are straight-line programs over scalars of any kind: factors that are 0/0 at rest are
series there, chosen between without branching. Logarithms are on NumPy arrays with leading batch
axes. Quaternions are x, y, z, w.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from robomodel.scalars import Scalar, Vector, add, div, dot, mul, neg, select, sincos, sqrt, sub
from robomodel.spatial import Vec, cross, from_quaternion, plus, scale

Array: TypeAlias = NDArray[np.float64]

NEAR = 2.5e-3  # square of the angle [rad²] below which series serve, to rounding


# ---- exponentials --------------------------------------------------------------------------------


def turned(q: Vector, turn: Vector) -> list[Scalar]:
    """A quaternion turned: q Exp(turn), of unit length."""
    square = dot(turn, turn)
    near, angle = _angle(square)
    s, c = sincos(mul(0.5, angle))
    share = select(near, _series(square, 1 / 2, -1 / 48, 1 / 3840, -1 / 645120), div(s, angle))
    w = select(near, _series(square, 1.0, -1 / 8, 1 / 384, -1 / 46080, 1 / 10321920), c)
    step, own = scale(share, _vec(turn)), _vec(q)
    vector = plus(plus(scale(q[3], step), scale(w, own)), cross(own, step))
    result = [*vector, sub(mul(q[3], w), dot(own, step))]
    inverse = div(1.0, sqrt(dot(result, result)))
    return [mul(inverse, x) for x in result]


def displaced(q: Vector, dv: Vector) -> list[Scalar]:
    """A pose [x y z | quaternion] moved by the exponential of SE(3); dv = [angular | linear]."""
    turn, slide = _vec(dv), _vec(dv[3:])
    first, second = _left(dot(turn, turn))
    once = cross(turn, slide)
    along = plus(slide, plus(scale(first, once), scale(second, cross(turn, once))))
    way = from_quaternion(q[3], q[4], q[5], q[6]).rotate(along)
    return [*(add(x, d) for x, d in zip(_vec(q), way, strict=True)), *turned(q[3:], turn)]


def displaced_in_plane(q: Vector, dv: Vector) -> list[Scalar]:
    """[x, y, θ] moved by the exponential of SE(2), the angle unwrapped."""
    x, y, turn = dv
    square = mul(turn, turn)
    first, second = _left(square)
    sinc, cosc = sub(1.0, mul(square, second)), mul(turn, first)
    along, aside = sub(mul(sinc, x), mul(cosc, y)), add(mul(cosc, x), mul(sinc, y))
    s, c = sincos(q[2])
    return [
        add(q[0], add(mul(c, along), neg(mul(s, aside)))),
        add(q[1], add(mul(s, along), mul(c, aside))),
        add(q[2], turn),
    ]


def _vec(x: Vector) -> Vec:
    return x[0], x[1], x[2]


def _series(square: Scalar, *coefficients: float) -> Scalar:
    """Horner's rule in the square of an angle, the lowest coefficient first."""
    result: Scalar = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        result = add(c, mul(square, result))
    return result


def _angle(square: Scalar) -> tuple[Scalar, Scalar]:
    """What is negative where series serve, and the angle where they do not."""
    near = sub(square, NEAR)
    return near, sqrt(select(near, 1.0, square))


def _left(square: Scalar) -> tuple[Scalar, Scalar]:
    """(1 - cos θ)/θ² and (θ - sin θ)/θ³ at the square of θ."""
    near, angle = _angle(square)
    half, _ = sincos(mul(0.5, angle))
    whole, _ = sincos(angle)
    inverse = div(1.0, angle)
    share = mul(half, inverse)
    first = select(
        near, _series(square, 1 / 2, -1 / 24, 1 / 720, -1 / 40320), mul(2.0, mul(share, share))
    )
    cube = mul(inverse, mul(inverse, inverse))
    second = select(
        near,
        _series(square, 1 / 6, -1 / 120, 1 / 5040, -1 / 362880),
        mul(sub(angle, whole), cube),
    )
    return first, second


# ---- logarithms ----------------------------------------------------------------------------------


def turn_between(q0: Array, q1: Array) -> Array:
    """Log(q0⁻¹ q1) of two quaternions, the shorter way round."""
    q = _product(_inverse(q0), q1)
    q = np.where(q[..., 3:] < 0.0, -q, q)
    norm = np.linalg.norm(q[..., :3], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(norm, q[..., 3:])
    factor = np.where(norm > 1e-150, angle / np.where(norm > 1e-150, norm, 1.0), 2.0)
    return q[..., :3] * factor


def displacement_between(q0: Array, q1: Array) -> Array:
    """The [angular | linear] that leads from one pose to another: the logarithm of SE(3)."""
    turn = turn_between(q0[..., 3:], q1[..., 3:])
    slide = _rotate(_inverse(q0[..., 3:]), q1[..., :3] - q0[..., :3])
    return np.concatenate([turn, _inverse_left_jacobian(turn, slide)], axis=-1)


def displacement_in_plane(q0: Array, q1: Array) -> Array:
    """The [x, y, θ] that leads from q0 to q1: the logarithm of SE(2), the angle unwrapped."""
    turn = q1[..., 2] - q0[..., 2]
    s, c = np.sin(q0[..., 2]), np.cos(q0[..., 2])
    x, y = q1[..., 0] - q0[..., 0], q1[..., 1] - q0[..., 1]
    along, aside = c * x + s * y, c * y - s * x
    sinc, half = np.sinc(turn / math.pi), turn / 2
    cosc = np.sin(half) * np.sinc(half / math.pi)  # (1 - cos θ) / θ
    size = sinc * sinc + cosc * cosc
    return np.stack(
        [(sinc * along + cosc * aside) / size, (sinc * aside - cosc * along) / size, turn], axis=-1
    )


def _product(p: Array, q: Array) -> Array:
    pv, pw, qv, qw = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    vector = pw * qv + qw * pv + np.cross(pv, qv)
    scalar = pw * qw - np.sum(pv * qv, axis=-1, keepdims=True)
    return np.concatenate([vector, scalar], axis=-1)


def _inverse(q: Array) -> Array:
    result: Array = q * np.array([-1.0, -1.0, -1.0, 1.0])
    return result


def _rotate(q: Array, v: Array) -> Array:
    t = 2.0 * np.cross(q[..., :3], v)
    return v + q[..., 3:] * t + np.cross(q[..., :3], t)


def _inverse_left_jacobian(turn: Array, v: Array) -> Array:
    angle = np.linalg.norm(turn, axis=-1, keepdims=True)
    small = angle < 0.05
    safe = np.where(small, 1.0, angle)
    square = angle * angle
    series = 1 / 12 + square / 720 + square**2 / 30240 + square**3 / 1209600
    half = safe / 2
    exact = (1.0 - half / np.tan(half)) / safe**2
    once = np.cross(turn, v)
    result: Array = v - 0.5 * once + np.where(small, series, exact) * np.cross(turn, once)
    return result
