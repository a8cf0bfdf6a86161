"""Motions, wrenches, and transforms between frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from robomodel.scalars import Scalar
from robomodel.spatial.rotations import Rotation
from robomodel.spatial.vectors import (
    UNIT,
    ZERO,
    Mat,
    Vec,
    cross,
    inner,
    minus,
    plus,
    scale,
    transpose,
)


@dataclass(frozen=True, slots=True)
class Motion:
    """A velocity or an acceleration: angular part, and linear part at the frame's origin."""

    angular: Vec
    linear: Vec

    @staticmethod
    def of(x: Sequence[Scalar]) -> Motion:
        """The motion vector of six numbers, angular first."""
        return Motion((x[0], x[1], x[2]), (x[3], x[4], x[5]))

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

    @staticmethod
    def of(x: Sequence[Scalar]) -> Wrench:
        """The force vector of six numbers, moment first."""
        return Wrench((x[0], x[1], x[2]), (x[3], x[4], x[5]))

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
        """Motion x* wrench: its change as the body that it is fixed to moves."""
        moment = plus(cross(motion.angular, self.moment), cross(motion.linear, self.force))
        return Wrench(moment, cross(motion.angular, self.force))

    def dot(self, motion: Motion) -> Scalar:
        """Power: the scalar product with a motion."""
        return inner(self.moment, motion.angular) + inner(self.force, motion.linear)


NO_MOTION = Motion(ZERO, ZERO)
NO_WRENCH = Wrench(ZERO, ZERO)
UNIT_MOTIONS = (*(Motion(e, ZERO) for e in UNIT), *(Motion(ZERO, e) for e in UNIT))
UNIT_WRENCHES = (*(Wrench(e, ZERO) for e in UNIT), *(Wrench(ZERO, e) for e in UNIT))


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
