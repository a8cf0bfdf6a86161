"""Constraints between points of a plane, with their Jacobians and the Jacobians' derivatives.

Coordinates are those of points, and angles and displacements that constraints add. Points are
affine in the coordinates q, so every condition is a quadratic form in x = [q, 1], except for the
cosine or sine of an angle:

    Φ = xᵀ F x - A cos(r θ + p)    or    Φ = xᵀ F' x - A sin(r θ + p)

Angles have both forms; the one whose derivative by θ does not vanish is used, that is, the cosine
where |sin| > 1/√2 (Blanco-Claraco, Leanza and Reina, appendix III).

A driven coordinate subtracts a function of time from a linear form, Φ = q_i - f(t), so that
Φ_q does not depend on time and Φ_t = -ḟ(t).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.errors import check_names

TURN = np.array([[0.0, -1.0], [1.0, 0.0]])  # by a right angle

START = np.zeros(())  # time 0

Motion = Callable[[Array], tuple[Array, Array, Array]]
"""Times (...) [s] → the values, rates and accelerations (...) of a driven coordinate."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Names of coordinates, and points as matrices (2, n + 1) on x = [q, 1]."""

    coordinates: tuple[str, ...]
    points: Mapping[str, Array]

    def between(self, first: str, second: str) -> Array:
        """The vector from one point to another, (2, n + 1)."""
        return self.points[second] - self.points[first]

    def coordinate(self, name: str) -> Array:
        """A coordinate as an affine function (n + 1,); raises ValueError for unknown names."""
        check_names((name,), self.coordinates, "there is no coordinate ")
        unit = np.zeros(len(self.coordinates) + 1)
        unit[self.coordinates.index(name)] = 1.0
        return unit

    @property
    def one(self) -> Array:
        """The constant 1, (n + 1)."""
        unit = np.zeros(len(self.coordinates) + 1)
        unit[-1] = 1.0
        return unit


@dataclass(frozen=True, eq=False)
class Row:
    """A condition xᵀ ``form`` x, less ``size`` cos(``rate`` θ + ``phase``) with an ``angle`` θ.

    ``sine``: the form for ``size`` sin(``rate`` θ + ``phase``). ``motion``: a function of time
    that is subtracted.
    """

    name: str
    form: Array
    angle: int = -1
    sine: Array | None = None
    size: float = 0.0
    rate: float = 1.0
    phase: float = 0.0
    motion: Motion | None = None


class Constraint(Protocol):
    """Conditions on points, and the coordinates that they add."""

    @property
    def added(self) -> tuple[str, ...]:
        """Names of the coordinates that it adds."""
        ...

    def rows(self, at: Layout) -> list[Row]:
        """Its conditions."""
        ...


def _product(a: Array, b: Array) -> Array:
    """The form of the product of two affine functions."""
    return 0.5 * (np.outer(a, b) + np.outer(b, a))


def _dot(a: Array, b: Array) -> Array:
    """The form of the scalar product of two affine vectors."""
    return _product(a[0], b[0]) + _product(a[1], b[1])


def _linear(at: Layout, a: Array) -> Array:
    """The form of one affine function."""
    return _product(a, at.one)


def _toward(at: Layout, direction: tuple[str, str] | None) -> Array:
    """The vector between two points; the unit vector along x for None."""
    if direction is not None:
        return at.between(*direction)
    return np.outer([1.0, 0.0], at.one)


@dataclass(frozen=True, slots=True)
class Distance:
    """Two points keep a distance [m]: |r_j - r_i|² - L² = 0."""

    first: str
    second: str
    length: float
    added = ()

    def rows(self, at: Layout) -> list[Row]:
        """One."""
        d = at.between(self.first, self.second)
        form = _dot(d, d) - self.length**2 * np.outer(at.one, at.one)
        return [Row(f"distance {self.first}–{self.second}", form)]


@dataclass(frozen=True, slots=True)
class Coincide:
    """Two points coincide: r_j - r_i = 0."""

    first: str
    second: str
    added = ()

    def rows(self, at: Layout) -> list[Row]:
        """Two, linear."""
        d = at.between(self.first, self.second)
        name = f"{self.first} at {self.second}"
        return [Row(name, _linear(at, d[0])), Row(name, _linear(at, d[1]))]


@dataclass(frozen=True, slots=True)
class Slider:
    """A point stays on the line through two points, fixed or moving.

    (x_j - x_i)(y - y_i) - (y_j - y_i)(x - x_i) = 0.
    """

    point: str
    first: str
    second: str
    added = ()

    def rows(self, at: Layout) -> list[Row]:
        """One."""
        along = at.between(self.first, self.second)
        form = _dot(TURN @ along, at.between(self.first, self.point))
        return [Row(f"{self.point} on {self.first}–{self.second}", form)]


@dataclass(frozen=True, slots=True)
class Angle:
    """A coordinate θ [rad]: ``rate`` θ + ``phase`` is the angle between two directions.

    ``of`` and ``to`` are pairs of points at constant distances ``length`` and ``to_length``. The
    angle is measured from ``to``, or from the x axis if it is None (an absolute angle), to ``of``.
    """

    coordinate: str
    of: tuple[str, str]
    length: float
    to: tuple[str, str] | None = None
    to_length: float = 1.0
    rate: float = 1.0
    phase: float = 0.0

    @property
    def added(self) -> tuple[str, ...]:
        """The angle."""
        return (self.coordinate,)

    def rows(self, at: Layout) -> list[Row]:
        """One, in two forms: of the cosine and of the sine."""
        a, b = _toward(at, self.to), at.between(*self.of)
        return [
            Row(
                f"angle {self.coordinate}",
                _dot(a, b),
                at.coordinates.index(self.coordinate),
                _dot(TURN @ a, b),
                self.length * (self.to_length if self.to else 1.0),
                self.rate,
                self.phase,
            )
        ]


@dataclass(frozen=True, slots=True)
class FixedAngle:
    """A direction at a constant ``angle`` [rad] to another one (None: to the x axis)."""

    of: tuple[str, str]
    to: tuple[str, str] | None
    angle: float
    added = ()

    def rows(self, at: Layout) -> list[Row]:
        """One: cos(angle) a x b - sin(angle) a · b = 0."""
        a, b = _toward(at, self.to), at.between(*self.of)
        form = math.cos(self.angle) * _dot(TURN @ a, b) - math.sin(self.angle) * _dot(a, b)
        return [Row(f"angle of {self.of[0]}–{self.of[1]}", form)]


@dataclass(frozen=True, slots=True)
class Travel:
    """Displacement of a point from ``first`` along a line: ``offset``, plus a coordinate [m].

    The line is at ``angle`` [rad] to that from ``first`` to ``second``, whose distance is
    ``length``. Without a coordinate and across the line, it is the guide of a slider.
    """

    point: str
    first: str
    second: str
    length: float
    angle: float = 0.0
    offset: float = 0.0
    coordinate: str | None = None

    @property
    def added(self) -> tuple[str, ...]:
        """The travel, where it is a coordinate."""
        return () if self.coordinate is None else (self.coordinate,)

    def rows(self, at: Layout) -> list[Row]:
        """One: (r - r_i) · direction - L (offset + s) = 0."""
        along = at.between(self.first, self.second)
        along = math.cos(self.angle) * along + math.sin(self.angle) * TURN @ along
        travel = self.offset * at.one
        if self.coordinate is not None:
            travel = travel + at.coordinate(self.coordinate)
        form = _dot(at.between(self.first, self.point), along)
        name = self.coordinate or f"{self.point} along {self.first}–{self.second}"
        return [Row(f"travel {name}", form - self.length * _linear(at, travel))]


@dataclass(frozen=True, slots=True)
class Linear:
    """Σ coefficient · coordinate = offset: gears, belts, mimics."""

    name: str
    terms: tuple[tuple[str, float], ...]
    offset: float = 0.0
    added = ()

    def rows(self, at: Layout) -> list[Row]:
        """One, linear."""
        total = -self.offset * at.one
        for name, coefficient in self.terms:
            total = total + coefficient * at.coordinate(name)
        return [Row(self.name, _linear(at, total))]


@dataclass(frozen=True, slots=True)
class Driven:
    """A prescribed coordinate, q_i - f(t) = 0: a motor that is stronger than any load.

    ``motion`` takes times (...) [s] and returns f, ḟ and f̈, each (...).
    """

    coordinate: str
    motion: Motion
    added = ()

    def rows(self, at: Layout) -> list[Row]:
        """One, linear in the coordinates."""
        form = _linear(at, at.coordinate(self.coordinate))
        return [Row(f"drive of {self.coordinate}", form, motion=self.motion)]


@dataclass(frozen=True, eq=False)
class Conditions:
    """Many rows at once: Φ and its derivatives at coordinates q (..., n), with batch axes.

    Derivatives by the coordinates do not depend on time.
    """

    rows: tuple[Row, ...]
    n: int

    @cached_property
    def _forms(self) -> Array:
        size = self.n + 1
        return np.array([row.form for row in self.rows]).reshape(-1, size, size)

    @cached_property
    def _angles(self) -> list[int]:
        return [k for k, row in enumerate(self.rows) if row.angle >= 0]

    @cached_property
    def _sines(self) -> Array:
        size = self.n + 1
        forms = [self.rows[k].sine for k in self._angles]
        return np.array(forms, dtype=np.float64).reshape(-1, size, size)

    @cached_property
    def _columns(self) -> list[int]:
        return [self.rows[k].angle for k in self._angles]

    @cached_property
    def _waves(self) -> tuple[Array, Array, Array]:
        chosen = [self.rows[k] for k in self._angles]
        size, rate, phase = np.array([(r.size, r.rate, r.phase) for r in chosen]).reshape(-1, 3).T
        return size, rate, phase

    def _wave(self, q: Array, order: int) -> tuple[Array, Array]:
        """-A cos(rθ + p), or its derivative by θ of an order; the same of -A sin(rθ + p)."""
        size, rate, phase = self._waves
        turned = rate * q[..., self._columns] + phase + order * math.pi / 2
        factor = -size * rate**order
        return factor * np.cos(turned), factor * np.sin(turned)

    def _by_cosine(self, q: Array) -> Mask:
        """A mask of the angles that use the cosine form."""
        _, rate, phase = self._waves
        return np.abs(np.sin(rate * q[..., self._columns] + phase)) > math.sqrt(0.5)

    def driven(self, t: Array, order: int) -> Array:
        """Prescribed values (..., m) at times t (...): f, ḟ or f̈; zero in all other rows."""
        values = np.zeros((*t.shape, len(self.rows)))
        for k, row in enumerate(self.rows):
            if row.motion is not None:
                values[..., k] = row.motion(t)[order]
        return values

    def residual(self, q: Array, t: Array = START) -> Array:
        """Φ (..., m) at times t (...)."""
        x = _extended(q)
        values: Array = np.einsum("...i,kij,...j->...k", x, self._forms, x, optimize=True)
        if self._angles:
            cosine, sine = self._wave(q, 0)
            other = np.einsum("...i,kij,...j->...k", x, self._sines, x, optimize=True)
            values[..., self._angles] = np.where(
                self._by_cosine(q), values[..., self._angles] + cosine, other + sine
            )
        return values - self.driven(t, 0)

    def angles_hold(self, q: Array) -> bool:
        """True if angles at q (n,) satisfy both forms, of which each row uses only one.

        The mirror image of a direction satisfies one of them.
        """
        x, forms = _extended(q), np.stack([self._forms[self._angles], self._sines])
        both = np.einsum("i,fkij,j->fk", x, forms, x) + np.stack(self._wave(q, 0))
        return bool(np.all(np.abs(both) < self._waves[0]))

    def jacobian(self, q: Array) -> Array:
        """Φ_q (..., m, n)."""
        result = self._by_form(_extended(q), q)
        return self._add_waves(result, q, 1, 1.0)

    def jacobian_rate(self, q: Array, v: Array) -> Array:
        """Φ̇_q = Φ_qq q̇ (..., m, n) at rates v = q̇."""
        x, q = np.broadcast_arrays(
            np.append(v, np.zeros((*v.shape[:-1], 1)), axis=-1), _extended(q)
        )
        result = self._by_form(x, q[..., :-1])
        return self._add_waves(result, q[..., :-1], 2, x[..., self._columns])

    def hessian(self, q: Array) -> Array:
        """Φ_qq (..., m, n, n)."""
        result = np.broadcast_to(
            2.0 * self._forms[:, : self.n, : self.n],
            (*q.shape[:-1], len(self.rows), self.n, self.n),
        ).copy()
        if self._angles:
            other = 2.0 * self._sines[:, : self.n, : self.n]
            pick = self._by_cosine(q)[..., None, None]
            result[..., self._angles, :, :] = np.where(pick, result[..., self._angles, :, :], other)
        return self._add_corners(result, q, 2, 1.0)

    def hessian_rate(self, q: Array, v: Array) -> Array:
        """(Φ̇_q)_q = Φ_qqq q̇ (..., m, n, n): zero but for angles by themselves."""
        batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        result = np.zeros((*batch, len(self.rows), self.n, self.n))
        return self._add_corners(result, q, 3, v[..., self._columns])

    def _by_form(self, x: Array, q: Array) -> Array:
        """2 F x (..., m, n), with the form that is used at q."""
        result: Array = 2.0 * np.einsum("kij,...j->...ki", self._forms[:, : self.n], x)
        if self._angles:
            other = 2.0 * np.einsum("kij,...j->...ki", self._sines[:, : self.n], x)
            pick = self._by_cosine(q)[..., None]
            result[..., self._angles, :] = np.where(pick, result[..., self._angles, :], other)
        return result

    def _add_waves(self, rows: Array, q: Array, order: int, factor: Array | float) -> Array:
        """Add the angles' derivatives, each in the column of its angle."""
        if self._angles:
            wave = np.where(self._by_cosine(q), *self._wave(q, order))
            rows[..., self._angles, self._columns] += wave * factor
        return rows

    def _add_corners(self, tensor: Array, q: Array, order: int, factor: Array | float) -> Array:
        """Add the angles' derivatives, each at (column, column) of its angle."""
        if self._angles:
            wave = np.where(self._by_cosine(q), *self._wave(q, order))
            tensor[..., self._angles, self._columns, self._columns] += wave * factor
        return tensor


def _extended(q: Array) -> Array:
    """[q, 1]."""
    return np.append(q, np.ones((*q.shape[:-1], 1)), axis=-1)


def independent_rows(jacobian: Array, tolerance: float = 1e-8) -> list[int]:
    """Indices of the rows of a matrix (m, n) that are independent of the rows before them."""
    basis: list[Array] = []
    independent = []
    for k, row in enumerate(np.asarray(jacobian)):
        orthogonal = row
        for _ in range(2):  # orthogonalising twice is enough
            for unit in basis:
                orthogonal = orthogonal - (unit @ orthogonal) * unit
        size = float(np.linalg.norm(orthogonal))
        if size > tolerance * float(np.linalg.norm(row)):
            basis.append(orthogonal / size)
            independent.append(k)
    return independent
