"""Joint models: how a body moves in its parent, over scalars of any kind.

A body's *internal* axes are chosen so that its joint moves along or about a coordinate axis ``k``
(:func:`align`), and joint velocities are the components of the relative motion in the child's axes.
Then every joint's motion subspace S is constant and made of zeros and ones: Ṡ = 0, and the velocity
products of the recursions need no joint-specific terms (only the screw has a pitch in S).

Configuration-space arithmetic (``integrate``, ``difference``) is on NumPy arrays with leading batch
axes: vectors for the one-axis joints, SO(3) and SE(3) for the others (as Pinocchio, Sophus).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from robomodel import masses
from robomodel.model.lie_groups import (
    displaced,
    displaced_in_plane,
    displacement_between,
    displacement_in_plane,
    turn_between,
    turned,
)
from robomodel.scalars import Scalar, Vector, add, added, mul, neg, sincos, sub
from robomodel.spatial import (
    UNIT,
    ZERO,
    Motion,
    RigidInertia,
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

    def moved(self, q: Vector, dv: Vector) -> list[Scalar]:
        """q moved along the constant velocity dv for unit time."""

    def integrate(self, q: Array, dv: Array) -> Array:
        """The same of arrays with leading batch axes."""

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

    def moved(self, q: Vector, dv: Vector) -> list[Scalar]:
        """q + dv."""
        return added(q, dv)

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
    """Rotation about axis k by q."""

    k: int

    @property
    def subspace(self) -> tuple[Motion, ...]:
        """One rotation."""
        return (_angular(self.k),)

    def placement(self, q: Vector) -> tuple[tuple[Rotation, ...], Vec]:
        """Rotation by q."""
        return (about_axis(self.k, q[0]),), ZERO


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


class _Group(ABC):
    """Positions that are a group whose tangent is the velocity, in the child's axes."""

    __slots__ = ()

    @abstractmethod
    def moved(self, q: Vector, dv: Vector) -> list[Scalar]:
        """q moved along the constant velocity dv for unit time."""

    def integrate(self, q: Array, dv: Array) -> Array:
        """The same of arrays with leading batch axes."""
        entries = self.moved(list(np.moveaxis(q, -1, 0)), list(np.moveaxis(dv, -1, 0)))
        return np.stack(np.broadcast_arrays(*entries), axis=-1)


@dataclass(frozen=True, slots=True)
class Planar(_Group):
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

    def moved(self, q: Vector, dv: Vector) -> list[Scalar]:
        """Exponential of SE(2), the angle unwrapped."""
        return displaced_in_plane(q, dv)

    def difference(self, q0: Array, q1: Array) -> Array:
        """Logarithm of SE(2), the angle unwrapped."""
        return displacement_in_plane(q0, q1)

    def neutral(self) -> tuple[float, ...]:
        """Zero."""
        return (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Spherical(_Group):
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

    def difference(self, q0: Array, q1: Array) -> Array:
        """Log(q0⁻¹ q1), the shorter way round."""
        return turn_between(q0, q1)

    def neutral(self) -> tuple[float, ...]:
        """No rotation."""
        return (0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Floating(_Group):
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

    def moved(self, q: Vector, dv: Vector) -> list[Scalar]:
        """Exponential of SE(3)."""
        return displaced(q, dv)

    def difference(self, q0: Array, q1: Array) -> Array:
        """Logarithm of SE(3)."""
        return displacement_between(q0, q1)

    def neutral(self) -> tuple[float, ...]:
        """At the parent's origin, not rotated."""
        return (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


def axisymmetric(joint: JointModel, inertia: RigidInertia) -> bool:
    """Whether a body looks the same to a hinge at every position, as a rotor does."""
    return isinstance(joint, Revolute) and masses.axisymmetric(inertia, joint.k)


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


def relative_motion(joint: JointModel, qd: Vector) -> Motion:
    """S q̇, in the child's axes."""
    return combine(qd, joint.subspace)
