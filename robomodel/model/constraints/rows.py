"""Loop joints as scalar conditions between two ends: four sorts of rows make every type.

Each row is a scalar φ(q) with its exact Jacobian for every q, closed or not, over scalars of any
kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from robomodel.scalars import Scalar, add, mul, neg, sub
from robomodel.spatial import UNIT, ZERO, Mat, Vec, apply, cross, inner, minus, scale


@dataclass(frozen=True, slots=True)
class End:
    """One end of a loop in motion: a point x and axes fixed to a body, in ancestor axes."""

    x: Vec
    axes: Mat  # columns as rows: axes[i] is the i-th axis of the constraint frame
    velocity: Vec
    omega: Vec
    acceleration: Vec
    turning: Mat


@dataclass(frozen=True, slots=True)
class RowEvaluation:
    """φ, and φ̇ = f·(ẋ_s - ẋ_p) + m_s·ω_s + m_p·ω_p, and φ̈ at zero joint acceleration."""

    value: Scalar
    force: Vec
    moment_successor: Vec
    moment_predecessor: Vec
    bias: Scalar


class Row(Protocol):
    """One scalar condition between the ends of a loop."""

    def evaluate(self, p: End, s: End) -> RowEvaluation:
        """The condition and its derivatives between predecessor's and successor's ends."""


@dataclass(frozen=True, slots=True)
class Coincident:
    """The two points coincide along coordinate axis ``k`` of the common ancestor."""

    k: int

    def evaluate(self, p: End, s: End) -> RowEvaluation:
        """φ = e · (x_s - x_p)."""
        value = sub(s.x[self.k], p.x[self.k])
        bias = sub(s.acceleration[self.k], p.acceleration[self.k])
        return RowEvaluation(value, UNIT[self.k], ZERO, ZERO, bias)


@dataclass(frozen=True, slots=True)
class InPlane:
    """The successor's point stays in the predecessor's plane normal to its axis ``k``."""

    k: int

    def evaluate(self, p: End, s: End) -> RowEvaluation:
        """φ = u · (x_s - x_p), u fixed to the predecessor."""
        u, d = p.axes[self.k], minus(s.x, p.x)
        bias = add(
            inner(u, minus(s.acceleration, p.acceleration)),
            add(
                mul(2.0, inner(cross(p.omega, u), minus(s.velocity, p.velocity))),
                inner(apply(p.turning, u), d),
            ),
        )
        return RowEvaluation(inner(u, d), u, ZERO, cross(u, d), bias)


@dataclass(frozen=True, slots=True)
class Perpendicular:
    """Predecessor's axis ``i`` stays perpendicular to the successor's axis ``j``."""

    i: int
    j: int

    def evaluate(self, p: End, s: End) -> RowEvaluation:
        """φ = a · b, a fixed to the predecessor and b to the successor."""
        a, b = p.axes[self.i], s.axes[self.j]
        bias = add(
            add(inner(apply(p.turning, a), b), inner(a, apply(s.turning, b))),
            mul(2.0, inner(cross(p.omega, a), cross(s.omega, b))),
        )
        moment = cross(b, a)
        return RowEvaluation(
            inner(a, b), ZERO, moment, (neg(moment[0]), neg(moment[1]), neg(moment[2])), bias
        )


@dataclass(frozen=True, slots=True)
class Distance:
    """The two points keep a distance: φ = (|x_s - x_p|² - L²) / 2L, in metres near closure."""

    length: float

    def evaluate(self, p: End, s: End) -> RowEvaluation:
        """φ with its gradient along the rod."""
        d, rate = minus(s.x, p.x), minus(s.velocity, p.velocity)
        inverse = 1.0 / self.length
        value = mul(0.5 * inverse, sub(inner(d, d), self.length**2))
        bias = add(inner(d, minus(s.acceleration, p.acceleration)), inner(rate, rate))
        return RowEvaluation(value, scale(inverse, d), ZERO, ZERO, mul(inverse, bias))


ROWS: Mapping[str, tuple[Row, ...]] = {
    # the constraint frames' axis 0 is the joint's axis; universal: axis 1 of the successor's frame
    "fixed": (
        *(Coincident(k) for k in range(3)),
        Perpendicular(1, 0),
        Perpendicular(2, 0),
        Perpendicular(1, 2),
    ),
    "revolute": (*(Coincident(k) for k in range(3)), Perpendicular(1, 0), Perpendicular(2, 0)),
    "prismatic": (
        InPlane(1),
        InPlane(2),
        Perpendicular(1, 0),
        Perpendicular(2, 0),
        Perpendicular(1, 2),
    ),
    "planar": (InPlane(0), Perpendicular(1, 0), Perpendicular(2, 0)),
    "spherical": tuple(Coincident(k) for k in range(3)),
    "universal": (*(Coincident(k) for k in range(3)), Perpendicular(0, 1)),
}


@dataclass(frozen=True, slots=True)
class Anchor:
    """An end as it is fixed to a body: body within the cluster (None: the ancestor itself)."""

    body: int | None
    point: Vec
    axes: Mat  # axes[i]: the i-th axis of the constraint frame, in the body's internal axes


@dataclass(frozen=True, slots=True)
class LoopJoint:
    """A loop joint's rows between two anchors.

    ``branches`` are the bodies, within the cluster, from below the common ancestor to each end.
    """

    name: str
    rows: tuple[Row, ...]
    predecessor: Anchor
    successor: Anchor
    branches: tuple[tuple[int, ...], tuple[int, ...]]
