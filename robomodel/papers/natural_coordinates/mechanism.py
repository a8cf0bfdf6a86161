"""Planar mechanisms in natural coordinates: bodies by points, constant mass matrix, constraints.

With Φ(q, t) = 0, Φ_q q̇ = b = -Φ_t and Φ_q q̈ = c = -Φ̇_q q̇ - Φ_tt (000, equations 1 to 15; b = 0
and Φ_tt = 0 without :class:`~robomodel.papers.natural_coordinates.Driven`):

    [M  Φ_qᵀ] [q̈]   [Q]        q̇ = S b + R ż,  q̈ = S c + R z̈,  [S R] = [Φ_q; B]⁻¹,  ż = B q̇
    [Φ_q  0 ] [λ] = [c]   or   RᵀM R z̈ = Rᵀ(Q - M S c)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.errors import ClosureError, check_names, did_you_mean
from robomodel.model.arguments import as_numbers
from robomodel.papers.matrices import times, transposed
from robomodel.papers.natural_coordinates.constraints import (
    TURN,
    Coincide,
    Conditions,
    Constraint,
    Distance,
    Layout,
    Row,
    independent_rows,
)
from robomodel.tolerances import EXACTLY_CLOSED, RANK

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Body:
    """A rigid body given by two points at a constant distance ``length`` [m].

    ``com`` and further ``points`` are in its axes: origin at ``first``, x axis to ``second``.
    ``inertia`` [kg m²] is about the centre of mass. A further point that is free or fixed in the
    mechanism, or already on another body, is tied to this body by two conditions; any other is a
    function of this body's points, without coordinates.
    """

    name: str
    first: str
    second: str
    length: float
    mass: float = 0.0
    com: Point = (0.0, 0.0)
    inertia: float = 0.0
    points: Mapping[str, Point] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Mechanism:
    """Bodies and constraints in a plane.

    ``points``: name → (x, y) of a point fixed to the ground, or None for a free one. ``inertias``:
    coordinate → inertia that resists its rate only, such as an armature. ``dropped``: indices of
    redundant conditions, see :meth:`regular`. Coordinates are "P.x", "P.y" of free points P,
    followed by those that constraints add. All functions take q (..., n) with leading batch axes,
    and times ``t`` (...) [s], on which results depend only if a coordinate is driven.

    Raises ValueError for unknown points, and for bodies whose points depend on each other.
    """

    points: Mapping[str, Point | None]
    bodies: tuple[Body, ...]
    constraints: tuple[Constraint, ...] = ()
    gravity: Point = (0.0, -9.81)
    inertias: Mapping[str, float] = field(default_factory=dict)
    dropped: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        for body in self.bodies:
            if not body.length > 0.0:
                raise ValueError(f"body '{body.name}' needs two points at a distance: its length")
        check_names(self.inertias, self.coordinates, "there is no coordinate ")
        _ = self.conditions  # checks the points

    # ---- coordinates and points

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """The names of the n coordinates."""
        free = [name for name, at in self.points.items() if at is None]
        added = (name for each in self.constraints for name in each.added)
        return (*(f"{name}.{axis}" for name in free for axis in "xy"), *dict.fromkeys(added))

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return len(self.coordinates)

    @cached_property
    def layout(self) -> Layout:
        """All points as affine functions of the coordinates."""
        number = {name: i for i, name in enumerate(self.coordinates)}
        points: dict[str, Array] = {}
        for name, at in self.points.items():
            matrix = np.zeros((2, self.n + 1))
            if at is None:
                matrix[0, number[f"{name}.x"]] = matrix[1, number[f"{name}.y"]] = 1.0
            else:
                matrix[:, -1] = at
            points[name] = matrix
        carriers = {
            name: body
            for body in reversed(self.bodies)
            for name in body.points
            if name not in self.points
        }

        def resolve(name: str, through: tuple[str, ...] = ()) -> None:
            if name in points:
                return
            if name not in carriers:
                every = {*self.points, *carriers}
                raise ValueError(f"there is no point '{name}'{did_you_mean(name, every)}")
            if name in through:
                raise ValueError(f"bodies carry each other: point '{name}' depends on itself")
            body = carriers[name]
            for base in (body.first, body.second):
                resolve(base, (*through, name))
            points[name] = _on(body, points, body.points[name])

        for body in self.bodies:
            for name in (body.first, body.second, *body.points):
                resolve(name)
        return Layout(self.coordinates, points)

    @cached_property
    def conditions(self) -> Conditions:
        """All conditions: bodies' lengths, ties of shared points, then constraints."""
        return Conditions(
            tuple(row for k, row in enumerate(self._rows) if k not in self.dropped), self.n
        )

    @cached_property
    def _rows(self) -> tuple[Row, ...]:
        layout = self.layout
        rows = []
        seen: set[str] = set(self.points)
        for body in self.bodies:
            if np.any(layout.between(body.first, body.second)[:, : self.n]):
                rows += Distance(body.first, body.second, body.length).rows(layout)
            for name, at in body.points.items():
                if name in seen:
                    there = f"{name} on {body.name}"
                    tied = Layout(
                        self.coordinates, {**layout.points, there: _on(body, layout.points, at)}
                    )
                    rows += Coincide(name, there).rows(tied)
                seen.add(name)
        for constraint in self.constraints:
            try:
                rows += constraint.rows(layout)
            except KeyError as error:
                hint = did_you_mean(str(error.args[0]), layout.points)
                raise ValueError(f"there is no point {error}{hint}") from None
        return tuple(rows)

    def point(self, name: str, q: ArrayLike) -> Array:
        """The position of a point (..., 2) [m]."""
        matrix = self.layout.points[name]
        return self._q(q) @ matrix[:, : self.n].T + matrix[:, -1]

    def point_jacobian(self, name: str) -> Array:
        """The derivative (2, n) of a point's velocity by q̇; constant."""
        return self.layout.points[name][:, : self.n]

    def _q(self, q: ArrayLike, name: str = "q") -> Array:
        array = np.asarray(q, dtype=np.float64)
        if array.ndim == 0 or array.shape[-1] != self.n:
            raise ValueError(f"{name} needs {self.n} numbers on its last axis, got {array.shape}")
        return array

    def selection(self, names: Sequence[str]) -> Array:
        """Rows of the unit matrix (k, n) for coordinates by name; ValueError for unknown names."""
        check_names(names, self.coordinates, "there is no coordinate ")
        return np.eye(self.n)[[self.coordinates.index(name) for name in names]]

    # ---- constraints

    def residual(self, q: ArrayLike, t: ArrayLike = 0.0) -> Array:
        """Φ (..., m)."""
        return self.conditions.residual(self._q(q), as_numbers(t, "t"))

    def driven_rates(self, t: ArrayLike = 0.0) -> Array:
        """b = -Φ_t (..., m), so that Φ_q q̇ = b: zero but in rows of driven coordinates."""
        return self.conditions.driven(as_numbers(t, "t"), 1)

    def jacobian(self, q: ArrayLike) -> Array:
        """Φ_q (..., m, n)."""
        return self.conditions.jacobian(self._q(q))

    def hessian(self, q: ArrayLike) -> Array:
        """Φ_qq (..., m, n, n); it is also ∂Φ̇_q / ∂q̇."""
        return self.conditions.hessian(self._q(q))

    def jacobian_rate(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Φ̇_q = Φ_qq q̇ (..., m, n); it is also ∂(Φ_q q̇) / ∂q."""
        return self.conditions.jacobian_rate(self._q(q), self._q(v, "v"))

    def hessian_rate(self, q: ArrayLike, v: ArrayLike) -> Array:
        """(Φ̇_q)_q = Φ_qqq q̇ (..., m, n, n)."""
        return self.conditions.hessian_rate(self._q(q), self._q(v, "v"))

    def bias(self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0) -> Array:
        """c = -Φ̇_q q̇ - Φ_tt (..., m), so that Φ_q q̈ = c."""
        driven = self.conditions.driven(as_numbers(t, "t"), 2)
        return driven - times(self.jacobian_rate(q, v), self._q(v, "v"))

    def regular(self, q: ArrayLike) -> Mechanism:
        """The mechanism without conditions redundant at q (n,), as in parallel linkages."""
        independent = set(independent_rows(self.jacobian(q)))
        rows = [k for k in range(len(self._rows)) if k not in self.dropped]
        redundant = {row for k, row in enumerate(rows) if k not in independent}
        return replace(self, dropped=self.dropped | redundant)

    def close(self, q: ArrayLike, held: Sequence[str] = (), t: float = 0.0) -> Array:
        """A closed configuration near q (n,), with coordinates ``held`` by name.

        Newton's method with steps of least norm, halved while they do not help. Raises
        ClosureError if it does not converge.
        """
        at = self._q(q).copy()
        free = np.flatnonzero(~self.selection(held).any(axis=0))
        gap = self.residual(at, t)
        for _ in range(100):
            if np.max(np.abs(gap), initial=0.0) < EXACTLY_CLOSED:
                return at
            step = np.zeros(self.n)
            step[free] = -np.linalg.lstsq(self.jacobian(at)[:, free], gap, rcond=RANK)[0]
            factor = 1.0
            while factor > 1e-4:
                new = self.residual(at + factor * step, t)
                if np.linalg.norm(new) < np.linalg.norm(gap):
                    break
                factor /= 2
            else:
                break
            at, gap = at + factor * step, new
        worst = float(np.max(np.abs(gap), initial=0.0))
        if worst < 100 * EXACTLY_CLOSED:
            return at
        names = tuple(
            row.name
            for row, x in zip(self.conditions.rows, gap, strict=True)
            if abs(x) > worst / 10
        )
        raise ClosureError(f"it does not close from there: {worst:.3g} left", worst, names)

    # ---- masses and forces

    @cached_property
    def mass_matrix(self) -> Array:
        """M (n, n), constant."""
        total = np.zeros((self.n, self.n))
        for body in self.bodies:
            both = np.vstack([self.point_jacobian(body.first), self.point_jacobian(body.second)])
            total += both.T @ body_mass_matrix(body) @ both
        for name, inertia in self.inertias.items():
            i = self.coordinates.index(name)
            total[i, i] += inertia
        return total

    @cached_property
    def weight(self) -> Array:
        """Q of gravity (n,), constant."""
        total = np.zeros(self.n)
        for body in self.bodies:
            center = _on(body, self.layout.points, body.com)[:, : self.n]
            total += body.mass * np.asarray(self.gravity) @ center
        return total

    def force(self, point: str, force: ArrayLike) -> Array:
        """Q (..., n) of a force (..., 2) [N] at a point."""
        return np.asarray(force, dtype=np.float64) @ self.point_jacobian(point)

    def torque(self, body: str, torque: ArrayLike, q: ArrayLike) -> Array:
        """Q (..., n) of a torque (...) [N m] on a body: a couple at its two points."""
        of = next(each for each in self.bodies if each.name == body)
        arm = self.point(of.second, q) - self.point(of.first, q)
        across = (arm @ TURN.T) / np.sum(arm * arm, axis=-1, keepdims=True)
        along = self.point_jacobian(of.second) - self.point_jacobian(of.first)
        couple: Array = np.asarray(torque, dtype=np.float64)[..., None] * (across @ along)
        return couple

    def energy(self, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
        """(kinetic, potential) energy [J], each (...); zero potential at the plane's origin."""
        rates = self._q(v, "v")
        fixed = 0.0
        for body in self.bodies:
            center = _on(body, self.layout.points, body.com)[:, -1]
            fixed += body.mass * float(np.asarray(self.gravity) @ center)
        kinetic: Array = 0.5 * np.einsum("...i,ij,...j->...", rates, self.mass_matrix, rates)
        return kinetic, -(self._q(q) @ self.weight + fixed)

    # ---- dynamics

    def kkt_matrix(self, q: ArrayLike) -> Array:
        """The matrix [M Φ_qᵀ; Φ_q 0] (..., n + m, n + m)."""
        phi = self.jacobian(q)
        size = self.n + phi.shape[-2]
        system = np.zeros((*phi.shape[:-2], size, size))
        system[..., : self.n, : self.n] = self.mass_matrix
        system[..., self.n :, : self.n] = phi
        system[..., : self.n, self.n :] = transposed(phi)
        return system

    def accelerations(
        self, q: ArrayLike, v: ArrayLike, forces: ArrayLike, t: ArrayLike = 0.0
    ) -> tuple[Array, Array]:
        """(q̈ (..., n), λ (..., m)) under forces Q (..., n) beside gravity: the KKT system.

        -λ in a driven coordinate's row is the force of its drive.
        """
        c, load = self.bias(q, v, t), self._q(forces, "forces") + self.weight
        batch = np.broadcast_shapes(c.shape[:-1], load.shape[:-1])
        right = np.concatenate(
            [np.broadcast_to(x, (*batch, x.shape[-1])) for x in (load, c)], axis=-1
        )
        solution = np.linalg.solve(self.kkt_matrix(q), right[..., None])[..., 0]
        return solution[..., : self.n], solution[..., self.n :]

    def split(self, q: ArrayLike, independent: Sequence[str] | Array) -> tuple[Array, Array]:
        """(S (..., n, m), R (..., n, n - m)) of [S R] = [Φ_q; B]⁻¹.

        ``independent``: names of n - m coordinates, whose rates are ż, or B (..., n - m, n) itself.
        """
        phi = self.jacobian(q)
        b = independent
        if not isinstance(b, np.ndarray):
            b = self.selection(b)
        m = phi.shape[-2]
        if m + b.shape[-2] != self.n:
            raise ValueError(
                f"{self.n} coordinates under {m} conditions leave {self.n - m} independent ones, "
                f"not {b.shape[-2]}; regular(q) drops conditions that repeat others"
            )
        batch = np.broadcast_shapes(phi.shape[:-2], b.shape[:-2])
        both = np.concatenate(
            [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (phi, b)], axis=-2
        )
        inverse: Array = np.linalg.inv(both)
        return inverse[..., :m], inverse[..., m:]

    def independent_accelerations(
        self,
        q: ArrayLike,
        v: ArrayLike,
        forces: ArrayLike,
        independent: Sequence[str] | Array,
        b_rate: ArrayLike = 0.0,
        t: ArrayLike = 0.0,
    ) -> Array:
        """z̈ (..., n - m) in null-space form; ``b_rate``: Ḃ q̇ (..., n - m) of a variable B."""
        s, r = self.split(q, independent)
        bias = times(s, self.bias(q, v, t)) - times(r, np.zeros(r.shape[-1]) + np.asarray(b_rate))
        load = self._q(forces, "forces") + self.weight - bias @ self.mass_matrix
        right = times(transposed(r), load)
        solution = np.linalg.solve(self._reduced(r), right[..., None])[..., 0]
        return np.asarray(solution, dtype=np.float64)

    def independent_forces(
        self,
        q: ArrayLike,
        v: ArrayLike,
        accelerations: ArrayLike,
        independent: Sequence[str] | Array,
        b_rate: ArrayLike = 0.0,
        t: ArrayLike = 0.0,
    ) -> Array:
        """The forces (..., n - m) along ż that produce z̈: Rᵀ(M q̈ - Q)."""
        s, r = self.split(q, independent)
        zdd = np.asarray(accelerations, dtype=np.float64) - np.asarray(b_rate)
        qdd = times(s, self.bias(q, v, t)) + times(r, zdd)
        return times(transposed(r), qdd @ self.mass_matrix - self.weight)

    def independent_mass_matrix(self, q: ArrayLike, independent: Sequence[str] | Array) -> Array:
        """RᵀM R (..., n - m, n - m)."""
        return self._reduced(self.split(q, independent)[1])

    def _reduced(self, r: Array) -> Array:
        return transposed(r) @ self.mass_matrix @ r


def body_mass_matrix(body: Body) -> Array:
    """The mass matrix (4, 4) of a body on [x_i y_i x_j y_j] (García de Jalón and Bayo).

    With m the mass, (x, y) the centre of mass, I the inertia about the first point, L the length:
    blocks (m - 2 m x / L + I / L²) 1, (m x / L - I / L²) 1 + (m y / L) J, and (I / L²) 1, where J
    is the rotation by a right angle.
    """
    x, y = (part / body.length for part in body.com)
    inertia = (body.inertia + body.mass * (body.com[0] ** 2 + body.com[1] ** 2)) / body.length**2
    one = np.eye(2)
    mixed = (body.mass * x - inertia) * one + body.mass * y * TURN
    first = (body.mass - 2 * body.mass * x + inertia) * one
    return np.block([[first, mixed], [mixed.T, inertia * one]])


def _on(body: Body, points: Mapping[str, Array], at: Point) -> Array:
    """A point given in a body's axes, as an affine function."""
    along = points[body.second] - points[body.first]
    return points[body.first] + (at[0] * along + at[1] * (TURN @ along)) / body.length
