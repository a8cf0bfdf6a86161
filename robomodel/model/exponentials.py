"""Motions along constant velocities for unit time, over scalars of any kind.

What :meth:`JointModel.integrate` is on arrays, as straight-line programs: factors that are 0/0 at
rest are series there, chosen between without branching.
"""

from __future__ import annotations

from robomodel.model.joints import Floating, JointModel, Planar, Spherical
from robomodel.scalars import Scalar, Vector, add, div, dot, mul, neg, select, sincos, sqrt, sub
from robomodel.spatial import Vec, cross, from_quaternion, plus, scale

NEAR = 2.5e-3  # square of the angle [rad²] below which series serve, to rounding


def moved(joint: JointModel, q: Vector, dv: Vector) -> list[Scalar]:
    """A joint's q moved along the constant velocity dv for unit time."""
    match joint:
        case Planar():
            return _planar(q, dv)
        case Spherical():
            return _turned(q, dv)
        case Floating():
            turn, slide = _vec(dv[:3]), _vec(dv[3:])
            first, second = _left(dot(turn, turn))
            once = cross(turn, slide)
            along = plus(slide, plus(scale(first, once), scale(second, cross(turn, once))))
            way = from_quaternion(q[3], q[4], q[5], q[6]).rotate(along)
            return [*(add(x, d) for x, d in zip(q[:3], way, strict=True)), *_turned(q[3:], turn)]
    return [add(x, d) for x, d in zip(q, dv, strict=True)]


def _vec(x: Vector) -> Vec:
    a, b, c = x
    return a, b, c


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


def _turned(q: Vector, turn: Vector) -> list[Scalar]:
    """A quaternion turned: q Exp(turn), of unit length."""
    square = dot(turn, turn)
    near, angle = _angle(square)
    s, c = sincos(mul(0.5, angle))
    share = select(near, _series(square, 1 / 2, -1 / 48, 1 / 3840, -1 / 645120), div(s, angle))
    w = select(near, _series(square, 1.0, -1 / 8, 1 / 384, -1 / 46080, 1 / 10321920), c)
    step, own = scale(share, _vec(turn)), _vec(q[:3])
    vector = plus(plus(scale(q[3], step), scale(w, own)), cross(own, step))
    result = [*vector, sub(mul(q[3], w), dot(own, step))]
    inverse = div(1.0, sqrt(dot(result, result)))
    return [mul(inverse, x) for x in result]


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


def _planar(q: Vector, dv: Vector) -> list[Scalar]:
    """Exponential of SE(2), the angle unwrapped."""
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
