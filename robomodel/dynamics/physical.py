"""Physical consistency: least squares over inertial parameters of bodies that can exist.

A body can exist if its pseudo-inertia J = [Σ h; hᵀ m] is positive semidefinite (Wensing, Kim and
Slotine, 2018). D(J‖J⁰) = tr(J⁰⁻¹J) - log det(J⁰⁻¹J) - d is a distance from a nominal J⁰ that does
not depend on axes or units, and a barrier of the cone of such J (Lee, Wensing and Park, 2020). J is
linear in a body's ten parameters, so that least squares plus γ D is convex and self-concordant:
Newton's method converges from any body that can exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from robomodel.arrays import Array, Indices
from robomodel.model.parameters import INERTIAL, pseudo_inertia
from robomodel.tolerances import NOTHING, ROUNDING, TINY

THIN = 1e-6  # of the largest eigenvalue of Σ about the centre of mass: what is below, is raised
RAISED = 0.02  # to this share
MOST_NEWTON = 200  # of Newton; some ten are the rule
ENTRIES = np.array([pseudo_inertia(row) for row in np.eye(len(INERTIAL)).tolist()])


def possible(values: Array, length: float) -> Array:
    """Ten parameters near these with a positive definite pseudo-inertia (or Σ, without mass).

    Eigenvalues of Σ about the centre of mass that are not positive are raised to the share
    ``RAISED`` of the largest, or of m ``length``² for a point mass. A body without mass gets no
    first moment.
    """
    m, h = float(values[0]), values[1:4]
    sigma = pseudo_inertia(values.tolist())[:3, :3]
    shift = np.outer(h, h) / m if m > 0.0 else np.zeros((3, 3))
    size, axes = np.linalg.eigh(sigma - shift)
    largest = float(size[-1])
    if largest <= 0.0:
        largest = max(m, 0.0) * length**2
    raised = np.where(size > THIN * largest, size, RAISED * largest)
    if np.array_equal(raised, size) and (m > 0.0 or not values[:4].any()):
        return values
    sigma = axes * raised @ axes.T + shift
    inertia = np.trace(sigma) * np.eye(3) - sigma
    first = h if m > 0.0 else np.zeros(3)
    upper = [inertia[i, j] for i in range(3) for j in range(i, 3)]
    return np.array([max(m, 0.0), *first, *upper])


class CannotExistError(np.linalg.LinAlgError):
    """A body that cannot exist: its pseudo-inertia is not positive definite."""


@dataclass(frozen=True)
class Cone:
    """The cone of one body: J = Σ x[i] entries[i] over its parameters x[at], and J⁰⁻¹.

    For a body without mass J is its Σ alone.
    """

    at: slice
    entries: Array
    inverse: Array

    @classmethod
    def of(cls, at: int, nominal: Array) -> Cone:
        """The cone of a body with these nominal parameters, which begin at ``at`` among all."""
        if nominal[0] > 0.0:
            return cls._at(slice(at, at + 10), ENTRIES, nominal)
        return cls._at(slice(at + 4, at + 10), ENTRIES[4:, :3, :3], nominal[4:])

    @classmethod
    def _at(cls, at: slice, entries: Array, nominal: Array) -> Cone:
        result = np.linalg.inv(np.tensordot(nominal, entries, 1))
        return cls(at, entries, np.asarray(result, dtype=float))


@dataclass(frozen=True)
class _Stack:
    """Cones (k) of matrices of one size d: places (k, e) of parameters, entries (e, d, d), J⁰⁻¹."""

    at: Indices
    entries: Array
    inverse: Array

    @classmethod
    def of(cls, cones: Sequence[Cone]) -> _Stack:
        """The stack of cones of one size."""
        at = np.array([range(cone.at.start, cone.at.stop) for cone in cones], dtype=np.intp)
        return cls(at, cones[0].entries, np.array([cone.inverse for cone in cones]))

    def matrices(self, x: Array) -> Array:
        """J (k, d, d) at x (p,), or of a step."""
        return np.asarray(np.tensordot(x[self.at], self.entries, 1))


@dataclass(frozen=True)
class ParameterPrior:
    """The prior γ Σ D over bodies, plus Σ γ_s (u - 1 - log u), u = x/x⁰, over ``scalars``.

    ``scalars`` are places in x (p,) of parameters that are positive (armatures), ``scalar_weight``
    their γ_s. Parameters are x = ``nominal`` + ``directions`` (p, f) · z.
    """

    cones: Sequence[Cone]
    scalars: Array
    nominal: Array
    directions: Array
    weight: float
    scalar_weight: Array

    @cached_property
    def _stacks(self) -> list[_Stack]:
        sizes = sorted({len(cone.inverse) for cone in self.cones})
        return [_Stack.of([c for c in self.cones if len(c.inverse) == size]) for size in sizes]

    def covariance(self, x: Array) -> Array:
        """The covariance (p, p) of parameters near x, from this prior alone."""
        if not self.directions.shape[1]:
            return np.zeros((len(x), len(x)))
        hessian = self.directions.T @ self.slopes(x)[1] @ self.directions
        return np.asarray(self.directions @ solved(hessian, self.directions.T))

    def value(self, x: Array) -> float:
        """The prior at x; inf if a body cannot exist, or a scalar is not positive."""
        u = x[self.scalars] / self.nominal[self.scalars]
        if np.any(u <= 0.0):
            return np.inf
        total = float(self.scalar_weight @ (u - 1.0 - np.log(u)))
        for stack in self._stacks:
            j = stack.matrices(x)
            try:
                low = np.linalg.cholesky(j)
            except np.linalg.LinAlgError:
                return np.inf
            logs = 2.0 * np.sum(np.log(np.diagonal(low, axis1=1, axis2=2)))
            logs += float(np.sum(np.linalg.slogdet(stack.inverse)[1]))
            trace = float(np.einsum("kij,kji->", j, stack.inverse))
            total += self.weight * (trace - j.shape[0] * j.shape[1] - float(logs))
        return total

    def point(self, x: Array) -> PriorPoint:
        """Terms that Newton's method needs of the prior at x, at which bodies can exist.

        Raises CannotExistError where rounding errors leave them none.
        """
        try:
            lows = [np.linalg.cholesky(stack.matrices(x)) for stack in self._stacks]
        except np.linalg.LinAlgError as error:
            raise CannotExistError("a pseudo-inertia is not positive definite") from error
        return PriorPoint(self, x, [np.linalg.inv(low) for low in lows])

    def slopes(self, x: Array) -> tuple[Array, Array]:
        """The prior's gradient and Hessian by x."""
        point = self.point(x)
        return point.gradient, point.hessian


@dataclass(frozen=True)
class PriorPoint:
    """The prior at x: with J = L Lᵀ of each body, ``back`` are the L⁻¹."""

    prior: ParameterPrior
    x: Array
    back: Sequence[Array]

    @cached_property
    def _moved(self) -> list[Array]:
        """∂ (L⁻¹ J L⁻ᵀ) / ∂ parameters (k, e, d, d)."""
        return [
            back[:, None] @ stack.entries @ np.swapaxes(back, 1, 2)[:, None]
            for stack, back in zip(self.prior._stacks, self.back, strict=True)
        ]

    @cached_property
    def gradient(self) -> Array:
        """The gradient by x (p,)."""
        prior, gradient = self.prior, np.zeros(len(self.x))
        for stack, moved in zip(prior._stacks, self._moved, strict=True):
            nominal = np.einsum("kij,eji->ke", stack.inverse, stack.entries)
            traces = np.trace(moved, axis1=2, axis2=3)
            gradient[stack.at] = prior.weight * (nominal - traces)
        u = self.x[prior.scalars]
        gradient[prior.scalars] = prior.scalar_weight * (1.0 / prior.nominal[prior.scalars] - 1 / u)
        return gradient

    @cached_property
    def hessian(self) -> Array:
        """The Hessian by x (p, p)."""
        prior, hessian = self.prior, np.zeros((len(self.x), len(self.x)))
        for stack, moved in zip(prior._stacks, self._moved, strict=True):
            flat = moved.reshape(*moved.shape[:2], -1)
            blocks = prior.weight * flat @ np.swapaxes(flat, 1, 2)
            hessian[stack.at[:, :, None], stack.at[:, None, :]] = blocks
        u = self.x[prior.scalars]
        hessian[prior.scalars, prior.scalars] = prior.scalar_weight / u**2
        return hessian

    @property
    def rows(self) -> Array:
        """Rows (n, p) whose Gram matrix is the Hessian by x."""
        prior, parts = self.prior, list[Array]()
        for stack, moved in zip(prior._stacks, self._moved, strict=True):
            upper = np.triu_indices(moved.shape[2])
            twice = np.where(upper[0] == upper[1], 1.0, math.sqrt(2.0))
            local = math.sqrt(prior.weight) * twice * moved[:, :, upper[0], upper[1]]
            part = np.zeros((len(local), len(twice), len(self.x)))
            part[np.arange(len(local))[:, None], :, stack.at] = local
            parts.append(part.reshape(-1, len(self.x)))
        rest = np.zeros((len(prior.scalars), len(self.x)))
        rest[np.arange(len(rest)), prior.scalars] = (
            np.sqrt(prior.scalar_weight) / self.x[prior.scalars]
        )
        return np.concatenate([*parts, rest])

    def along(self, step: Array) -> tuple[float, Array, Array]:
        """c, w and μ such that the prior's slope along x + t step is c - Σ w μ / (1 + t μ)."""
        prior, constant, rates, weights = self.prior, 0.0, list[Array](), list[Array]()
        for stack, back in zip(prior._stacks, self.back, strict=True):
            moved = stack.matrices(step)
            turned = np.linalg.eigvalsh(back @ moved @ np.swapaxes(back, 1, 2))
            rates.append(np.asarray(turned).ravel())
            weights.append(np.full(len(rates[-1]), prior.weight))
            constant += prior.weight * float(np.sum(stack.inverse * moved))
        scalars = prior.scalars
        rates.append(step[scalars] / self.x[scalars])
        weights.append(prior.scalar_weight)
        constant += float(prior.scalar_weight @ (step[scalars] / prior.nominal[scalars]))
        return constant, np.concatenate(weights), np.concatenate(rates)


def newton(
    gram: Array,
    slope: Array,
    prior: ParameterPrior,
    ways: Array,
    start: Array,
    tolerance: float = 0.0,
) -> tuple[Array, bool]:
    """z that minimises ½ zᵀ gram z - slope · z + prior(nominal + ways z), and whether it does.

    To ``tolerance`` of the objective, in :data:`MOST_NEWTON` steps from z = ``start``. Newton's
    method with exact line searches, which converges from anywhere as the objective is
    self-concordant. To rounding, the Hessian is factored from rows of which it is the Gram matrix:
    near the cones' boundaries it is too ill-conditioned itself.
    """
    z, along, root = start, _Ways.of(ways), cache(lambda: _root(gram))
    for _ in range(MOST_NEWTON):
        x = prior.nominal + along.moved(z)
        point = prior.point(x)
        data = gram @ z - slope
        gradient = data + along.slopes(point.gradient)
        step = _step(gram, root, point, along, gradient, exact=not tolerance)
        drop = -float(gradient @ step)
        value = float(0.5 * z @ gram @ z - slope @ z) + prior.value(x)
        # the two terms of the data may cancel: their rounding counts, not that of their sum
        if drop <= max(ROUNDING * max(abs(value), abs(float(slope @ z))), tolerance):
            return z, True
        share = _least(
            point.along(along.moved(step)), float(data @ step), float(step @ gram @ step)
        )
        if share <= NOTHING:
            return z, True  # rounding
        z = z + share * step
    return z, False


@dataclass(frozen=True)
class _Ways:
    """Directions (p, f) of parameters; ``chosen`` (f,): single parameters that they are."""

    matrix: Array
    chosen: Indices | None

    @classmethod
    def of(cls, matrix: Array) -> _Ways:
        """The directions, which are single parameters if each is another unit vector."""
        chosen = np.argmax(matrix, axis=0) if len(matrix) else np.zeros(0, dtype=np.intp)
        units = np.zeros_like(matrix)
        units[chosen, np.arange(len(chosen))] = 1.0
        single = len(set(chosen.tolist())) == len(chosen) and np.array_equal(units, matrix)
        return cls(matrix, chosen if single else None)

    def moved(self, z: Array) -> Array:
        """The parameters' motion (p,)."""
        if self.chosen is None:
            return np.asarray(self.matrix @ z)
        result = np.zeros(len(self.matrix))
        result[self.chosen] = z
        return result

    def slopes(self, rows: Array) -> Array:
        """Slopes (..., f) by z, from those by parameters (..., p)."""
        return np.asarray(rows @ self.matrix if self.chosen is None else rows[..., self.chosen])

    def curvature(self, hessian: Array) -> Array:
        """The Hessian (f, f) by z."""
        if self.chosen is None:
            return np.asarray(self.matrix.T @ hessian @ self.matrix)
        return np.asarray(hessian[np.ix_(self.chosen, self.chosen)])


def _step(
    gram: Array,
    root: Callable[[], Array],
    point: PriorPoint,
    ways: _Ways,
    gradient: Array,
    *,
    exact: bool,
) -> Array:
    """Newton's step, from the Hessian where that is enough and works, else from its root."""
    if not exact:
        with suppress(np.linalg.LinAlgError):
            return -solved(gram + ways.curvature(point.hessian), gradient)
    rows = np.concatenate([ways.slopes(point.rows), root()])
    return _newton(np.linalg.qr(rows)[1], gradient)


def _root(gram: Array) -> Array:
    """R with Rᵀ R = gram, positive semidefinite."""
    scale = np.sqrt(np.maximum(np.diag(gram), TINY))
    sizes, axes = np.linalg.eigh(gram / np.outer(scale, scale))
    return np.asarray(np.sqrt(np.maximum(sizes, 0.0))[:, None] * axes.T * scale)


def _newton(triangle: Array, gradient: Array) -> Array:
    """-(Rᵀ R)⁻¹ gradient."""
    return -np.asarray(np.linalg.solve(triangle, np.linalg.solve(triangle.T, gradient)))


def _least(along: tuple[float, Array, Array], data: float, bend: float) -> float:
    """The t > 0 at which the slope along a step vanishes, by Newton's method in a bracket.

    The slope data + bend t + c - Σ w μ / (1 + t μ) increases with t.
    """
    constant, weights, rates = along
    low, high = 0.0, 1.0 / max(-float(np.min(rates, initial=0.0)), TINY)
    t = min(1.0, 0.5 * high)
    at_start = abs(data + constant - float(weights @ rates))
    for _ in range(60):  # a line search, which ends where the slope is a tenth
        shares = rates / (1.0 + t * rates)
        slope = data + bend * t + constant - float(weights @ shares)
        if abs(slope) <= 0.1 * at_start:
            break
        low, high = (t, high) if slope < 0.0 else (low, t)
        t -= slope / (bend + float(weights @ shares**2))
        if not low < t < high:
            t = 0.5 * (low + high) if high < 1e299 else 2.0 * low
    return t


def solved(matrix: Array, right: Array) -> Array:
    """matrix⁻¹ right, of a positive definite matrix.

    Its diagonal is scaled to 1: parameters of links and of rotors differ by 1e4. Directions that
    only rounding errors tell from singular ones (data that leave a combination open beside a prior
    of nearly no weight) get what rounding errors are worth.
    """
    scale = 1.0 / np.sqrt(np.diag(matrix))
    unit = matrix * np.outer(scale, scale)
    try:
        np.linalg.cholesky(unit)
    except np.linalg.LinAlgError:
        unit += len(unit) ** 2 * np.finfo(float).eps * np.eye(len(unit))
        np.linalg.cholesky(unit)
    scales = scale.reshape((-1,) + (1,) * (right.ndim - 1))
    return np.asarray(scales * np.linalg.solve(unit, scales * right))
