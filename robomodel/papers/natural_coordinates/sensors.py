"""Sensors of planar mechanisms in natural coordinates, with biases that may drift.

As those of :mod:`.factors`, on a mechanism's "q", "v" and "a" (n,). A body's axes are its own: x
from its first to its second point, z out of the plane. Joints' angles are coordinates, so that an
encoder is a :class:`.factors.Reading` of "q".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robomodel.errors import did_you_mean
from robomodel.estimation.factors import Errors, Variables
from robomodel.model.joints import Array
from robomodel.papers.natural_coordinates.mechanism import Body, Mechanism, Point

TURN = np.array([[0.0, -1.0], [1.0, 0.0]])
"""J: by a right angle."""


@dataclass(frozen=True)
class PlanarMarker:
    """Position of a point (2) in the plane is measured [m]."""

    mechanism: Mechanism
    point: str

    @property
    def variables(self) -> Variables:
        """Q."""
        return (("q", 0),)

    @property
    def affine(self) -> tuple[str, ...]:
        """Q: points are affine in it."""
        return ("q",)

    @property
    def rows(self) -> int:
        """Two axes."""
        return 2

    @cached_property
    def _jacobian(self) -> Array:
        points = self.mechanism.layout.points
        if self.point not in points:
            hint = did_you_mean(self.point, points)
            raise ValueError(f"there is no point '{self.point}'{hint}")
        return self.mechanism.point_jacobian(self.point)

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """Position minus data."""
        slope = np.broadcast_to(self._jacobian, (len(x[0]), 2, self.mechanism.n))
        e = self.mechanism.point(self.point, x[0])
        return e if data is None else e - data, [slope]


@dataclass(frozen=True)
class _OnBody:
    """An instrument on a body, and the variable that is added to what it measures."""

    mechanism: Mechanism
    body: str
    bias: str | None = None

    @cached_property
    def _of(self) -> Body:
        bodies = {body.name: body for body in self.mechanism.bodies}
        if self.body not in bodies:
            raise ValueError(f"there is no body '{self.body}'{did_you_mean(self.body, bodies)}")
        return bodies[self.body]

    @cached_property
    def _arm(self) -> tuple[Array, Array]:
        """The second point from the first: D (2, n) and d₀ (2) of d = D q + d₀."""
        points = self.mechanism.layout.points
        both = points[self._of.second] - points[self._of.first]
        return both[:, :-1], both[:, -1]

    def _biased(
        self, e: Array, slopes: list[Array], x: Sequence[Array], data: Array | None
    ) -> Errors:
        if self.bias is not None:
            rows = e.shape[1]
            e = e + x[-1]
            slopes = [*slopes, np.broadcast_to(np.eye(rows), (len(e), rows, rows))]
        return e if data is None else e - data, slopes


@dataclass(frozen=True)
class PlanarGyroscope(_OnBody):
    """Angular velocity (1) of a body is measured [rad/s]; ``bias``: a variable of one number.

    ω = d × ḋ / L², which is exact where the body's length is kept.
    """

    @property
    def variables(self) -> Variables:
        """q, v and the bias."""
        return tuple((x, 0) for x in ("q", "v", self.bias) if x is not None)

    @property
    def affine(self) -> tuple[str, ...]:
        """Rates and the bias."""
        return tuple(x for x in ("v", self.bias) if x is not None)

    @property
    def rows(self) -> int:
        """One axis."""
        return 1

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """What is measured + bias - data."""
        (along, offset), scale = self._arm, self._of.length**-2
        d, rate = x[0] @ along.T + offset, x[1] @ along.T
        across = scale * d @ TURN.T  # J d
        e = np.sum(across * rate, axis=1, keepdims=True)
        by_q = (scale * rate @ TURN) @ along  # (J d)ᵀ ḋ = dᵀ Jᵀ ḋ
        slopes = [by_q[:, np.newaxis], (across @ along)[:, np.newaxis]]
        return self._biased(e, slopes, x, data)


@dataclass(frozen=True)
class PlanarAccelerometer(_OnBody):
    """Acceleration of a body's point minus gravity (2), in its own axes, is measured [m/s²].

    ``at``: where it sits, in the body's axes. ``bias``: a variable of two numbers.
    """

    at: Point = (0.0, 0.0)

    @property
    def variables(self) -> Variables:
        """q, a and the bias."""
        return tuple((x, 0) for x in ("q", "a", self.bias) if x is not None)

    @property
    def affine(self) -> tuple[str, ...]:
        """Everything, each while the others stay."""
        return tuple(x for x in ("q", "a", self.bias) if x is not None)

    @property
    def rows(self) -> int:
        """Two axes."""
        return 2

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """[d · f, J d · f] / L + bias - data, with f = r̈ - g."""
        mechanism, length = self.mechanism, self._of.length
        along, offset = self._arm
        x_at, y_at = (np.array(self.at) / length).tolist()
        moved = mechanism.point_jacobian(self._of.first) + (x_at * np.eye(2) + y_at * TURN) @ along
        d = (x[0] @ along.T + offset) / length
        f = x[1] @ moved.T - np.asarray(mechanism.gravity)
        axes = np.stack([d, d @ TURN.T], axis=1)  # by rows
        e = np.einsum("kij,kj->ki", axes, f)
        turned = np.stack([f, f @ TURN], axis=1)  # f · D and f · J D
        slopes = [turned @ along / length, axes @ moved]
        return self._biased(e, slopes, x, data)
