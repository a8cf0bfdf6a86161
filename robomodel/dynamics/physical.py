"""Physical consistency: least squares over inertial parameters of bodies that can exist.

A body can exist if its pseudo-inertia J = [Σ h; hᵀ m] is positive semidefinite (Wensing, Kim and
Slotine, 2018). D(J‖J⁰) = tr(J⁰⁻¹J) - log det(J⁰⁻¹J) - d is a distance from a nominal J⁰ that does
not depend on axes or units, and a barrier of the cone of such J (Lee, Wensing and Park, 2020). J is
linear in a body's ten parameters, so that least squares plus γ D is convex and self-concordant:
Newton's method converges from any body that can exist.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.arrays import Array
from robomodel.errors import warn
from robomodel.model.parameters import INERTIAL, pseudo_inertia
from robomodel.tolerances import NOTHING, ROUNDING, TINY

THIN = 1e-6  # of the largest eigenvalue of Σ about the centre of mass: what is below, is raised
RAISED = 0.02  # to this share
STEPS = 200  # of Newton; some ten are the rule
SEARCH = 60  # of a line search, which ends where the slope is
SLOPE_LEFT = 0.1  # of that at its start; steps
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

    def distance(self, x: Array) -> float:
        """D(J‖J⁰); inf outside of the cone."""
        ratio = np.tensordot(x[self.at], self.entries, 1) @ self.inverse
        try:
            np.linalg.cholesky(np.tensordot(x[self.at], self.entries, 1))
        except np.linalg.LinAlgError:
            return np.inf
        return float(np.trace(ratio) - len(ratio) - np.linalg.slogdet(ratio)[1])

    def local(self, x: Array) -> tuple[Array, Array]:
        """∂ (L⁻¹ J L⁻ᵀ) / ∂ parameters, with J = L Lᵀ at x, as rows (entries, 10); and L.

        The Gram matrix of the rows is the Hessian of D.
        """
        low = np.asarray(np.linalg.cholesky(np.tensordot(x[self.at], self.entries, 1)), dtype=float)
        back = np.linalg.inv(low)
        moved = back @ self.entries @ back.T
        upper = np.triu_indices(len(low))
        twice = np.where(upper[0] == upper[1], 1.0, math.sqrt(2.0))
        return (twice * moved[:, upper[0], upper[1]]).T, low

    def slopes(self, x: Array) -> tuple[Array, Array]:
        """Gradient and Hessian of D by the body's parameters."""
        rows, low = self.local(x)
        nominal = np.einsum("ij,kji->k", self.inverse, self.entries)
        diagonal = [i * len(low) - i * (i - 1) // 2 for i in range(len(low))]
        return nominal - np.sum(rows[diagonal], axis=0), rows.T @ rows


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

    def covariance(self, x: Array) -> Array:
        """The covariance (p, p) of parameters near x, from this prior alone."""
        if not self.directions.shape[1]:
            return np.zeros((len(x), len(x)))
        hessian = self.directions.T @ self.slopes(x)[1] @ self.directions
        return np.asarray(self.directions @ solved(hessian, self.directions.T))

    def rows(self, x: Array) -> Array:
        """Rows (n, p) whose Gram matrix is the Hessian by x."""
        result = np.zeros((sum(len(c.inverse) * (len(c.inverse) + 1) // 2 for c in self.cones)
                           + len(self.scalars), len(x)))  # fmt: skip
        at = 0
        for cone in self.cones:
            local = math.sqrt(self.weight) * cone.local(x)[0]
            result[at : at + len(local), cone.at] = local
            at += len(local)
        result[np.arange(at, len(result)), self.scalars] = (
            np.sqrt(self.scalar_weight) / x[self.scalars]
        )
        return result

    def along(self, x: Array, step: Array) -> tuple[float, Array, Array]:
        """c, w and μ such that the prior's slope along x + t step is c - Σ w μ / (1 + t μ)."""
        constant, rates, weights = 0.0, [], []
        for cone in self.cones:
            low = cone.local(x)[1]
            moved = np.tensordot(step[cone.at], cone.entries, 1)
            back = np.linalg.solve(low, moved)
            rates.append(np.linalg.eigvalsh(np.linalg.solve(low, back.T)))
            weights.append(np.full(len(low), self.weight))
            constant += self.weight * float(np.sum(cone.inverse * moved))
        rates.append(step[self.scalars] / x[self.scalars])
        weights.append(self.scalar_weight)
        constant += float(self.scalar_weight @ (step[self.scalars] / self.nominal[self.scalars]))
        return constant, np.concatenate(weights), np.concatenate(rates)

    def value(self, x: Array) -> float:
        """The prior at x; inf if a body cannot exist, or a scalar is not positive."""
        u = x[self.scalars] / self.nominal[self.scalars]
        if np.any(u <= 0.0):
            return np.inf
        penalty = float(self.scalar_weight @ (u - 1.0 - np.log(u)))
        return penalty + self.weight * sum(cone.distance(x) for cone in self.cones)

    def slopes(self, x: Array) -> tuple[Array, Array]:
        """The prior's gradient and Hessian by x."""
        gradient, hessian = np.zeros(len(x)), np.zeros((len(x), len(x)))
        for cone in self.cones:
            first, second = cone.slopes(x)
            gradient[cone.at] = self.weight * first
            hessian[cone.at, cone.at] = self.weight * second
        inverse = x[self.scalars]
        gradient[self.scalars] = self.scalar_weight * (
            1.0 / self.nominal[self.scalars] - 1.0 / inverse
        )
        hessian[self.scalars, self.scalars] = self.scalar_weight / inverse**2
        return gradient, hessian


def minimise(
    gram: Array,
    slope: Array,
    prior: ParameterPrior,
    ways: Array,
    start: Array,
    tolerance: float = 0.0,
) -> Array:
    """z that minimises ½ zᵀ gram z - slope · z + prior(nominal + ways z), from ``start``.

    Newton's method with exact line searches, which converges from anywhere as the objective is
    self-concordant; to ``tolerance`` of the objective, or to rounding. The Hessian is factored from
    rows of which it is the Gram matrix: near the cones' boundaries it is too ill-conditioned
    itself.
    """
    z, root = start, _root(gram)
    for _ in range(STEPS):
        x = prior.nominal + ways @ z
        first = prior.slopes(x)[0]
        data = gram @ z - slope
        gradient = data + ways.T @ first
        triangle: Array = np.linalg.qr(np.concatenate([prior.rows(x) @ ways, root]))[1]
        step = _newton(triangle, gradient)
        drop = -float(gradient @ step)
        value = float(0.5 * z @ gram @ z - slope @ z) + prior.value(x)
        # the two terms of the data may cancel: their rounding counts, not that of their sum
        if drop <= max(ROUNDING * max(abs(value), abs(float(slope @ z))), tolerance):
            break
        share = _least(prior.along(x, ways @ step), float(data @ step), float(step @ gram @ step))
        if share <= NOTHING:
            break  # rounding
        z = z + share * step
    else:
        warn(RuntimeWarning(f"the fit's parameters did not converge in {STEPS} steps of Newton"))
    return z


def _root(gram: Array) -> Array:
    """R with Rᵀ R = gram, positive semidefinite."""
    scale = np.sqrt(np.maximum(np.diag(gram), TINY))
    sizes, axes = np.linalg.eigh(gram / np.outer(scale, scale))
    return np.asarray(np.sqrt(np.maximum(sizes, 0.0))[:, None] * axes.T * scale)


def _newton(triangle: Array, gradient: Array) -> Array:
    """-(Rᵀ R)⁻¹ gradient."""
    from scipy.linalg import solve_triangular  # not needed until something is fitted

    half = solve_triangular(triangle, gradient, trans="T")
    return -np.asarray(solve_triangular(triangle, half))


def _least(along: tuple[float, Array, Array], data: float, bend: float) -> float:
    """The t > 0 at which the slope along a step vanishes, by Newton's method in a bracket.

    The slope data + bend t + c - Σ w μ / (1 + t μ) increases with t.
    """
    constant, weights, rates = along
    low, high = 0.0, 1.0 / max(-float(np.min(rates, initial=0.0)), TINY)
    t = min(1.0, 0.5 * high)
    at_start = abs(data + constant - float(weights @ rates))
    for _ in range(SEARCH):
        shares = rates / (1.0 + t * rates)
        slope = data + bend * t + constant - float(weights @ shares)
        if abs(slope) <= SLOPE_LEFT * at_start:
            break
        low, high = (t, high) if slope < 0.0 else (low, t)
        t -= slope / (bend + float(weights @ shares**2))
        if not low < t < high:
            t = 0.5 * (low + high) if high < 1e299 else 2.0 * low
    return t


def solved(matrix: Array, right: Array) -> Array:
    """matrix⁻¹ right, of a positive definite matrix.

    Its diagonal is scaled to 1: parameters of links and of rotors differ by 1e4.
    """
    from scipy.linalg import cho_factor, cho_solve  # not needed until something is fitted

    scale = 1.0 / np.sqrt(np.diag(matrix))
    factor = cho_factor(matrix * np.outer(scale, scale))
    shape = (-1,) + (1,) * (right.ndim - 1)
    result: Array = scale.reshape(shape) * cho_solve(factor, scale.reshape(shape) * right)
    return result
