"""Joint models: how a body moves in its parent, over scalars of any kind.

A body's *internal* axes are chosen so that its joint moves along or about a coordinate axis ``k``
(:func:`robomodel.description.poses.align`). Joint velocities are the components of the relative
motion in the child's axes. Then every joint's motion subspace S is a constant matrix of zeros and
ones (and a screw's pitch): Ṡ = 0, and the recursions need no velocity products of single joints.

Arithmetic in configuration space (``moved``, ``displacement``) is over scalars of any kind, and on
NumPy arrays with leading batch axes (``integrate``, ``difference``). Joints with one axis have
vector spaces, the others SE(2), SO(3) and SE(3), as in Pinocchio and Sophus, by
:mod:`robomodel.spatial.logarithms`. Quaternions are x, y, z, w.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robomodel.arrays import Array
from robomodel.description import inertias as masses
from robomodel.scalars import (
    Scalar,
    Vector,
    added,
    div,
    dot,
    sincos,
    subtracted,
)
from robomodel.spatial import (
    UNIT,
    ZERO,
    Motion,
    RigidInertia,
    Rotation,
    Vec,
    about_axis,
    combine,
    cross,
    from_quaternion,
    plus,
    scale,
)
from robomodel.spatial.logarithms import (
    jlog3,
    jlog6,
    left_coefficients,
    slide,
    turn_between,
    turned,
    vec,
)


class JointModel(ABC):
    """A joint's motion subspace, its placement, and arithmetic of its positions.

    ``nq`` and ``nv`` are the numbers of its positions and velocities.
    """

    __slots__ = ()

    nq = 1
    nv = 1

    @property
    @abstractmethod
    def subspace(self) -> tuple[Motion, ...]:
        """S: nv constant motions of the child, in its axes."""

    @abstractmethod
    def placement(self, q: Vector) -> tuple[tuple[Rotation, ...], Vec]:
        """Rotation and displacement of the child in the joint's frame on the parent."""

    @abstractmethod
    def rates(self, q: Vector, v: Vector) -> list[Scalar]:
        """q̇ at velocity v."""

    @abstractmethod
    def moved(self, q: Vector, dv: Vector) -> list[Scalar]:
        """q moved along the constant velocity dv for unit time."""

    def integrate(self, q: Array, dv: Array) -> Array:
        """:meth:`moved` on arrays with leading batch axes."""
        entries: list[Any] = self.moved(list(np.moveaxis(q, -1, 0)), list(np.moveaxis(dv, -1, 0)))
        return np.stack(np.broadcast_arrays(*entries), axis=-1)

    @abstractmethod
    def displacement(self, q0: Vector, q1: Vector) -> list[Scalar]:
        """The dv that leads from q0 to q1."""

    def difference(self, q0: Array, q1: Array) -> Array:
        """:meth:`displacement` on arrays with leading batch axes."""
        entries: list[Any] = self.displacement(
            list(np.moveaxis(q0, -1, 0)), list(np.moveaxis(q1, -1, 0))
        )
        return np.stack(np.broadcast_arrays(*entries), axis=-1)

    @abstractmethod
    def jlog(self, dv: Vector) -> Sequence[Vector]:
        """∂ displacement(q0, q1) / ∂ q1 (nv rows of nv), at ``dv`` = displacement(q0, q1).

        ∂ displacement / ∂ q0 is -jlog(-dv).
        """

    @abstractmethod
    def neutral(self) -> tuple[float, ...]:
        """The position zero."""


def _angular(k: int) -> Motion:
    return Motion(UNIT[k], ZERO)


def _linear(k: int) -> Motion:
    return Motion(ZERO, UNIT[k])


class VectorSpace(JointModel):
    """Positions that are a vector whose derivative is the velocity."""

    __slots__ = ()

    def rates(self, q: Vector, v: Vector) -> list[Scalar]:
        """The velocity itself."""
        return list(v)

    def moved(self, q: Vector, dv: Vector) -> list[Scalar]:
        """q + dv."""
        return added(q, dv)

    def integrate(self, q: Array, dv: Array) -> Array:
        """q + dv."""
        return q + dv

    def displacement(self, q0: Vector, q1: Vector) -> list[Scalar]:
        """q1 - q0."""
        return subtracted(q1, q0)

    def difference(self, q0: Array, q1: Array) -> Array:
        """q1 - q0."""
        return q1 - q0

    def jlog(self, dv: Vector) -> Sequence[Vector]:
        """The identity."""
        return np.eye(self.nv).tolist()

    def neutral(self) -> tuple[float, ...]:
        """Zero."""
        return (0.0,) * self.nq


@dataclass(frozen=True, slots=True)
class Revolute(VectorSpace):
    """Rotation about axis k by q + ``offset``."""

    k: int
    offset: float = 0.0

    @property
    def subspace(self) -> tuple[Motion, ...]:
        """One rotation."""
        return (_angular(self.k),)

    def placement(self, q: Vector) -> tuple[tuple[Rotation, ...], Vec]:
        """Rotation by q + offset."""
        return (about_axis(self.k, q[0] + self.offset),), ZERO


@dataclass(frozen=True, slots=True)
class Prismatic(VectorSpace):
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
class Screw(VectorSpace):
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
class Planar(JointModel):
    """Motion in the plane normal to axis k: q = [x, y, θ], v = [vx, vy, ω] in the child's axes.

    x and y are along the axes that follow k cyclically. The positions are a plane and an angle
    (which counts turns); the velocity is in the body's axes, as a floating base's is.
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
        return [c * v[0] - s * v[1], s * v[0] + c * v[1], v[2]]

    def moved(self, q: Vector, dv: Vector) -> list[Scalar]:
        """Exponential of SE(2), the angle unwrapped."""
        x, y, turn = dv
        square = turn * turn
        first, second = left_coefficients(square)
        sinc, cosc = 1.0 - square * second, turn * first
        along, aside = sinc * x - cosc * y, cosc * x + sinc * y
        s, c = sincos(q[2])
        return [
            q[0] + (c * along + (-(s * aside))),
            q[1] + (s * along + c * aside),
            q[2] + turn,
        ]

    def displacement(self, q0: Vector, q1: Vector) -> list[Scalar]:
        """Logarithm of SE(2), the angle unwrapped."""
        turn = q1[2] - q0[2]
        s, c = sincos(q0[2])
        x, y = q1[0] - q0[0], q1[1] - q0[1]
        along, aside = c * x + s * y, c * y - s * x
        square = turn * turn
        first, second = left_coefficients(square)
        sinc, cosc = 1.0 - square * second, turn * first
        inverse = div(1.0, sinc * sinc + cosc * cosc)
        return [
            inverse * (sinc * along + cosc * aside),
            inverse * (sinc * aside - cosc * along),
            turn,
        ]

    def jlog(self, dv: Vector) -> Sequence[Vector]:
        """The Jacobian of SE(2)'s logarithm, as a part of SE(3)'s."""
        rows = jlog6([0.0, 0.0, dv[2], dv[0], dv[1], 0.0])
        return [[rows[i][j] for j in (3, 4, 2)] for i in (3, 4, 2)]

    def neutral(self) -> tuple[float, ...]:
        """Zero."""
        return (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Spherical(JointModel):
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

    def moved(self, q: Vector, dv: Vector) -> list[Scalar]:
        """q Exp(dv)."""
        return turned(q, dv)

    def displacement(self, q0: Vector, q1: Vector) -> list[Scalar]:
        """Log(q0⁻¹ q1), the shorter way round."""
        return turn_between(q0, q1)[0]

    def difference(self, q0: Array, q1: Array) -> Array:
        """:meth:`displacement` on arrays with leading batch axes.

        By the arctangent of NumPy, which is as exact, in a fifth of the operations.
        """
        x, y, z, w = np.moveaxis(q0, -1, 0)
        a, b, c, d = np.moveaxis(q1, -1, 0)
        vector = np.stack(
            [
                w * a - d * x - y * c + z * b,
                w * b - d * y - z * a + x * c,
                w * c - d * z - x * b + y * a,
            ],
            axis=-1,
        )
        scalar = w * d + x * a + y * b + z * c
        n = np.sqrt(np.einsum("...k,...k->...", vector, vector))
        cosine = np.abs(scalar)
        ratio = np.where(n > 0.0, 2.0 * np.arctan2(n, cosine), 2.0)  # θ/n, and its limit 2/w
        ratio /= np.where(n > 0.0, n, cosine)
        return np.asarray(np.where(scalar < 0.0, -ratio, ratio)[..., None] * vector)

    def jlog(self, dv: Vector) -> Sequence[Vector]:
        """The Jacobian of SO(3)'s logarithm."""
        return jlog3(dv)

    def neutral(self) -> tuple[float, ...]:
        """No rotation."""
        return (0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Floating(JointModel):
    """Six degrees of freedom: q = [x y z | qx qy qz qw], v = [angular | linear] in its axes."""

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

    def moved(self, q: Vector, dv: Vector) -> list[Scalar]:
        """Exponential of SE(3)."""
        turn, slide = vec(dv), vec(dv[3:])
        first, second = left_coefficients(dot(turn, turn))
        once = cross(turn, slide)
        along = plus(slide, plus(scale(first, once), scale(second, cross(turn, once))))
        shift = from_quaternion(q[3], q[4], q[5], q[6]).rotate(along)
        return [*(x + d for x, d in zip(vec(q), shift, strict=True)), *turned(q[3:], turn)]

    def displacement(self, q0: Vector, q1: Vector) -> list[Scalar]:
        """Logarithm of SE(3)."""
        turn, half_cotangent = turn_between(q0[3:], q1[3:])
        shift = (q1[0] - q0[0], q1[1] - q0[1], q1[2] - q0[2])
        offset = from_quaternion(q0[3], q0[4], q0[5], q0[6]).unrotate(shift)
        return [*turn, *slide(turn, half_cotangent, offset)]

    def jlog(self, dv: Vector) -> Sequence[Vector]:
        """The Jacobian of SE(3)'s logarithm."""
        return jlog6(dv)

    def neutral(self) -> tuple[float, ...]:
        """At the parent's origin, not rotated."""
        return (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


def axisymmetric(joint: JointModel, inertia: RigidInertia) -> bool:
    """True if a revolute joint's position does not change the body's inertia, as a rotor's."""
    return isinstance(joint, Revolute) and masses.axisymmetric(inertia, joint.k)


def _quaternion_rates(q: Vector, omega: Vector) -> list[Scalar]:
    """q ω / 2, a rate that keeps the norm."""
    x, y, z, w = (0.5 * c for c in q)
    a, b, c = omega
    return [
        w * a + y * c - z * b,
        w * b + z * a - x * c,
        w * c + x * b - y * a,
        -(x * a + y * b + z * c),
    ]


def relative_motion(joint: JointModel, qd: Vector) -> Motion:
    """S q̇, in the child's axes."""
    return combine(qd, joint.subspace)
