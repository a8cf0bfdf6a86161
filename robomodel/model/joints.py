"""Joint models: how a body moves in its parent, over scalars of any kind.

A body's *internal* axes are chosen so that its joint moves along or about a coordinate axis ``k``
(:func:`align`), and joint velocities are the components of the relative motion in the child's axes.
Then every joint's motion subspace S is constant and made of zeros and ones: Ṡ = 0, and the velocity
products of the recursions need no joint-specific terms (only the screw has a pitch in S).

Configuration-space arithmetic (``integrate``, ``difference``) is on NumPy arrays with leading batch
axes: vectors for the one-axis joints, SO(3) and SE(3) for the others (as Pinocchio, Sophus).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from robomodel.scalars import Scalar, Vector, add, mul, neg, sincos, sub
from robomodel.spatial import (
    UNIT,
    ZERO,
    AxisRotation,
    Motion,
    Rotation,
    Vec,
    about_axis,
    combine,
    from_quaternion,
    plus,
    scale,
)

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]


class JointModel(Protocol):
    """What the recursions and the configuration space need to know of a joint."""

    @property
    def nq(self) -> int:
        """Number of position coordinates."""

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""

    @property
    def subspace(self) -> tuple[Motion, ...]:
        """S: nv constant motions of the child, in its own axes."""

    def placement(self, q: Vector) -> tuple[tuple[Rotation, ...], Vec]:
        """Rotation and displacement of the child in the joint's frame on the parent."""

    def rates(self, q: Vector, v: Vector) -> list[Scalar]:
        """q̇ at velocity v."""

    def integrate(self, q: Array, dv: Array) -> Array:
        """q moved along the constant velocity dv for unit time."""

    def difference(self, q0: Array, q1: Array) -> Array:
        """The dv that leads from q0 to q1."""

    def neutral(self) -> tuple[float, ...]:
        """The position zero."""


def _angular(k: int) -> Motion:
    return Motion(UNIT[k], ZERO)


def _linear(k: int) -> Motion:
    return Motion(ZERO, UNIT[k])


class _VectorSpace:
    """Positions that are a vector whose derivative is the velocity."""

    __slots__ = ()

    nq = 1
    nv = 1

    def rates(self, q: Vector, v: Vector) -> list[Scalar]:
        """The velocity itself."""
        return list(v)

    def integrate(self, q: Array, dv: Array) -> Array:
        """q + dv."""
        return q + dv

    def difference(self, q0: Array, q1: Array) -> Array:
        """q1 - q0."""
        return q1 - q0

    def neutral(self) -> tuple[float, ...]:
        """Zero."""
        return (0.0,)


@dataclass(frozen=True, slots=True)
class Revolute(_VectorSpace):
    """Rotation about axis k by q + ``offset`` (zero in the axes that a file gives)."""

    k: int
    offset: float = 0.0

    @property
    def subspace(self) -> tuple[Motion, ...]:
        """One rotation."""
        return (_angular(self.k),)

    def placement(self, q: Vector) -> tuple[tuple[Rotation, ...], Vec]:
        """Rotation by q."""
        return (self.turn(q[0]),), ZERO

    def turn(self, q: Scalar) -> AxisRotation:
        """The rotation at a position."""
        turn = about_axis(self.k, q)
        return turn.further(about_axis(self.k, self.offset)) if self.offset else turn


@dataclass(frozen=True, slots=True)
class Prismatic(_VectorSpace):
    """Translation along axis k."""

    k: int

    @property
    def subspace(self) -> tuple[Motion, ...]:
        """One translation."""
        return (_linear(self.k),)

    def placement(self, q: Vector) -> tuple[tuple[Rotation, ...], Vec]:
        """Translation by q."""
        return (), scale(q[0], UNIT[self.k])


@dataclass(frozen=True, slots=True)
class Screw(_VectorSpace):
    """Rotation about axis k with a translation of ``pitch`` metres per radian along it."""

    k: int
    pitch: float

    @property
    def subspace(self) -> tuple[Motion, ...]:
        """One screw motion."""
        return (Motion(UNIT[self.k], scale(self.pitch, UNIT[self.k])),)

    def placement(self, q: Vector) -> tuple[tuple[Rotation, ...], Vec]:
        """Rotation by q, translation by pitch · q."""
        return (about_axis(self.k, q[0]),), scale(q[0], scale(self.pitch, UNIT[self.k]))


@dataclass(frozen=True, slots=True)
class Planar:
    """Motion in the plane normal to axis k: q = [x, y, θ], v = [vx, vy, ω] in the child's axes.

    x and y are along the axes that follow k cyclically. The positions are a plane and an angle
    (which counts turns), the velocity is the body's own, as a floating base's is.
    """

    k: int
    nq = 3
    nv = 3

    @property
    def _axes(self) -> tuple[int, int]:
        return (self.k + 1) % 3, (self.k + 2) % 3

    @property
    def subspace(self) -> tuple[Motion, ...]:
        """Two translations and a rotation."""
        i, j = self._axes
        return _linear(i), _linear(j), _angular(self.k)

    def placement(self, q: Vector) -> tuple[tuple[Rotation, ...], Vec]:
        """Rotation by θ, translation by (x, y)."""
        i, j = self._axes
        displacement = plus(scale(q[0], UNIT[i]), scale(q[1], UNIT[j]))
        return (about_axis(self.k, q[2]),), displacement

    def rates(self, q: Vector, v: Vector) -> list[Scalar]:
        """The velocity turned into the parent's axes."""
        s, c = sincos(q[2])
        return [sub(mul(c, v[0]), mul(s, v[1])), add(mul(s, v[0]), mul(c, v[1])), v[2]]

    def integrate(self, q: Array, dv: Array) -> Array:
        """Exponential of SE(2), the angle unwrapped."""
        sinc, cosc = _planar_factors(dv[..., 2])
        along = sinc * dv[..., 0] - cosc * dv[..., 1]
        aside = cosc * dv[..., 0] + sinc * dv[..., 1]
        s, c = np.sin(q[..., 2]), np.cos(q[..., 2])
        x = q[..., 0] + c * along - s * aside
        y = q[..., 1] + s * along + c * aside
        return np.stack([x, y, q[..., 2] + dv[..., 2]], axis=-1)

    def difference(self, q0: Array, q1: Array) -> Array:
        """Logarithm of SE(2), the angle unwrapped."""
        turn = q1[..., 2] - q0[..., 2]
        s, c = np.sin(q0[..., 2]), np.cos(q0[..., 2])
        x, y = q1[..., 0] - q0[..., 0], q1[..., 1] - q0[..., 1]
        along, aside = c * x + s * y, c * y - s * x
        sinc, cosc = _planar_factors(turn)
        scale_ = sinc * sinc + cosc * cosc
        return np.stack(
            [(sinc * along + cosc * aside) / scale_, (sinc * aside - cosc * along) / scale_, turn],
            axis=-1,
        )

    def neutral(self) -> tuple[float, ...]:
        """Zero."""
        return (0.0, 0.0, 0.0)


def _planar_factors(angle: Array) -> tuple[Array, Array]:
    half = angle / 2
    cosc = np.sin(half) * np.sinc(half / math.pi)  # (1 - cos θ) / θ
    return np.sinc(angle / math.pi), cosc


@dataclass(frozen=True, slots=True)
class Spherical:
    """A ball joint: q = quaternion x y z w, v = angular velocity in the child's axes."""

    nq = 4
    nv = 3

    @property
    def subspace(self) -> tuple[Motion, ...]:
        """Three rotations."""
        return _angular(0), _angular(1), _angular(2)

    def placement(self, q: Vector) -> tuple[tuple[Rotation, ...], Vec]:
        """The quaternion's rotation."""
        return (from_quaternion(q[0], q[1], q[2], q[3]),), ZERO

    def rates(self, q: Vector, v: Vector) -> list[Scalar]:
        """q ω / 2."""
        return _quaternion_rates(q, v)

    def integrate(self, q: Array, dv: Array) -> Array:
        """q Exp(dv)."""
        return _normalized(_product(q, _exp(dv)))

    def difference(self, q0: Array, q1: Array) -> Array:
        """Log(q0⁻¹ q1), the shorter way round."""
        return _log(_product(_inverse(q0), q1))

    def neutral(self) -> tuple[float, ...]:
        """No rotation."""
        return (0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Floating:
    """Six degrees of freedom: q = [x y z | qx qy qz qw], v = [angular | linear] in its own axes."""

    nq = 7
    nv = 6

    @property
    def subspace(self) -> tuple[Motion, ...]:
        """All motions."""
        return (*(_angular(k) for k in range(3)), *(_linear(k) for k in range(3)))

    def placement(self, q: Vector) -> tuple[tuple[Rotation, ...], Vec]:
        """Rotation by the quaternion, translation by (x, y, z)."""
        return (from_quaternion(q[3], q[4], q[5], q[6]),), (q[0], q[1], q[2])

    def rates(self, q: Vector, v: Vector) -> list[Scalar]:
        """The linear velocity turned into the parent's axes, and the quaternion's rates."""
        moved = from_quaternion(q[3], q[4], q[5], q[6]).rotate((v[3], v[4], v[5]))
        return [*moved, *_quaternion_rates(q[3:7], v[:3])]

    def integrate(self, q: Array, dv: Array) -> Array:
        """Exponential of SE(3)."""
        turn, slide = dv[..., :3], dv[..., 3:]
        moved = _rotate(q[..., 3:], _left_jacobian(turn, slide))
        rotation = _normalized(_product(q[..., 3:], _exp(turn)))
        return np.concatenate([q[..., :3] + moved, rotation], axis=-1)

    def difference(self, q0: Array, q1: Array) -> Array:
        """Logarithm of SE(3)."""
        inverse = _inverse(q0[..., 3:])
        turn = _log(_product(inverse, q1[..., 3:]))
        slide = _rotate(inverse, q1[..., :3] - q0[..., :3])
        return np.concatenate([turn, _inverse_left_jacobian(turn, slide)], axis=-1)

    def neutral(self) -> tuple[float, ...]:
        """At the parent's origin, not rotated."""
        return (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


# ---- quaternions and SE(3) on arrays -------------------------------------------------------------


def _quaternion_rates(q: Vector, omega: Vector) -> list[Scalar]:
    """q ω / 2: the norm stays as it is."""
    x, y, z, w = (mul(0.5, c) for c in q)
    a, b, c = omega
    return [
        sub(add(mul(w, a), mul(y, c)), mul(z, b)),
        sub(add(mul(w, b), mul(z, a)), mul(x, c)),
        sub(add(mul(w, c), mul(x, b)), mul(y, a)),
        neg(add(add(mul(x, a), mul(y, b)), mul(z, c))),
    ]


def _product(p: Array, q: Array) -> Array:
    pv, pw, qv, qw = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    vector = pw * qv + qw * pv + np.cross(pv, qv)
    scalar = pw * qw - np.sum(pv * qv, axis=-1, keepdims=True)
    return np.concatenate([vector, scalar], axis=-1)


def _inverse(q: Array) -> Array:
    result: Array = q * np.array([-1.0, -1.0, -1.0, 1.0])
    return result


def _normalized(q: Array) -> Array:
    result: Array = q / np.linalg.norm(q, axis=-1, keepdims=True)
    return result


def _rotate(q: Array, v: Array) -> Array:
    t = 2.0 * np.cross(q[..., :3], v)
    result: Array = v + q[..., 3:] * t + np.cross(q[..., :3], t)
    return result


def _exp(turn: Array) -> Array:
    angle = np.linalg.norm(turn, axis=-1, keepdims=True)
    return np.concatenate([turn * (0.5 * np.sinc(angle / (2 * math.pi))), np.cos(angle / 2)], -1)


def _log(q: Array) -> Array:
    q = np.where(q[..., 3:] < 0.0, -q, q)
    norm = np.linalg.norm(q[..., :3], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(norm, q[..., 3:])
    factor = np.where(norm > 1e-150, angle / np.where(norm > 1e-150, norm, 1.0), 2.0)
    result: Array = q[..., :3] * factor
    return result


def _left_jacobian(turn: Array, v: Array) -> Array:
    """∫₀¹ Exp(s turn) v ds."""
    angle = np.linalg.norm(turn, axis=-1, keepdims=True)
    half = np.sinc(angle / (2 * math.pi))
    first = 0.5 * half * half  # (1 - cos)/θ²
    small = angle < 0.05
    safe = np.where(small, 1.0, angle)
    square = angle * angle
    series = 1 / 6 - square / 120 + square**2 / 5040 - square**3 / 362880
    second = np.where(small, series, (safe - np.sin(safe)) / safe**3)
    once = np.cross(turn, v)
    result: Array = v + first * once + second * np.cross(turn, once)
    return result


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


def relative_motion(joint: JointModel, qd: Vector) -> Motion:
    """S q̇, in the child's axes."""
    return combine(qd, joint.subspace)
