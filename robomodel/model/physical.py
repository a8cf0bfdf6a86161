"""Bodies that can exist: their cones, a prior and barrier on them, and least squares within them.

A body exists if its pseudo-inertia J = [Σ h; hᵀ m] is positive semidefinite (Wensing, Kim and
Slotine 2018). Near a nominal J⁰, D(J‖J⁰) = tr(J⁰⁻¹J) - log det(J⁰⁻¹J) - d is a distance that no
choice of axes or units changes, and a barrier of that cone (Lee, Wensing and Park 2020). J is
linear in a body's parameters, so that least squares with γ D on top is convex and
self-concordant: damped Newton converges from any body that exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.errors import warn
from robomodel.model.joints import Array
from robomodel.model.parameters import INERTIAL, pseudo_inertia

THIN = 1e-6  # of the largest eigenvalue of Σ about the centre of mass: what is below, is raised
RAISED = 0.02  # to this share
STEPS = 200  # of Newton; some ten are the rule
DECREMENT = 1e-13  # squared, of the objective: where Newton ends
ENTRIES = np.array([pseudo_inertia(row) for row in np.eye(len(INERTIAL)).tolist()])


def possible(values: Array, length: float) -> Array:
    """The ten parameters of a body that exists strictly, and near these.

    Eigenvalues of Σ about the centre of mass that are not positive are raised to ``RAISED`` of the
    largest; of a point mass to that of m ``length``². Without mass there is no first moment.
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
    """A body's parameters ``at`` these places, and its J = Σ x E; nominal: J⁰⁻¹.

    Of a body without mass, J is Σ alone.
    """

    at: slice
    entries: Array
    inverse: Array

    @classmethod
    def of(cls, at: int, nominal: Array) -> Cone:
        """The cone of the body whose ten parameters begin there."""
        if nominal[0] > 0.0:
            return cls._at(slice(at, at + 10), ENTRIES, nominal)
        return cls._at(slice(at + 4, at + 10), ENTRIES[4:, :3, :3], nominal[4:])

    @classmethod
    def _at(cls, at: slice, entries: Array, nominal: Array) -> Cone:
        result = np.linalg.inv(np.tensordot(nominal, entries, 1))
        return cls(at, entries, np.asarray(result, dtype=float))

    def distance(self, x: Array) -> float:
        """D(J‖J⁰); inf outside."""
        ratio = np.tensordot(x[self.at], self.entries, 1) @ self.inverse
        try:
            np.linalg.cholesky(np.tensordot(x[self.at], self.entries, 1))
        except np.linalg.LinAlgError:
            return np.inf
        return float(np.trace(ratio) - len(ratio) - np.linalg.slogdet(ratio)[1])

    def slopes(self, x: Array) -> tuple[Array, Array]:
        """Gradient and Hessian of D by the body's parameters."""
        inverse = np.linalg.inv(np.tensordot(x[self.at], self.entries, 1))
        gradient = np.einsum("ij,kji->k", self.inverse - inverse, self.entries)
        moved = inverse @ self.entries
        return gradient, np.einsum("aij,bji->ab", moved, moved)


@dataclass(frozen=True)
class ParameterPrior:
    """γ D of bodies and γ_s (u - 1 - log u), u = x/x⁰, of ``scalars`` (their places in x).

    Parameters x (p,) are ``nominal`` + ``directions`` (p, f) · z; ``scalar_weight`` is of each.
    """

    cones: Sequence[Cone]
    scalars: Array
    nominal: Array
    directions: Array
    weight: float
    scalar_weight: Array

    def covariance(self, x: Array) -> Array:
        """That of parameters (p, p) near x, by this prior alone."""
        if not self.directions.shape[1]:
            return np.zeros((len(x), len(x)))
        hessian = self.directions.T @ self.slopes(x)[1] @ self.directions
        return np.asarray(self.directions @ solved(hessian, self.directions.T))

    def value(self, x: Array) -> float:
        """inf where a body cannot exist, or a scalar is not positive."""
        u = x[self.scalars] / self.nominal[self.scalars]
        if np.any(u <= 0.0):
            return np.inf
        penalty = float(self.scalar_weight @ (u - 1.0 - np.log(u)))
        return penalty + self.weight * sum(cone.distance(x) for cone in self.cones)

    def slopes(self, x: Array) -> tuple[Array, Array]:
        """Gradient and Hessian by x."""
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

    To ``tolerance`` of the objective, or to rounding.
    """
    z = start
    for _ in range(STEPS):
        x = prior.nominal + ways @ z
        first, second = prior.slopes(x)
        gradient = gram @ z - slope + ways.T @ first
        step, drop = _newton(gram + ways.T @ second @ ways, gradient)
        value = float(0.5 * z @ gram @ z - slope @ z) + prior.value(x)
        # the least value that data may take counts, too: what cancels in it is rounding
        if drop <= max(DECREMENT * max(abs(value), abs(float(slope @ z))), tolerance):
            break
        share = 1.0
        while share > 1e-12:
            new = z + share * step
            now = prior.value(prior.nominal + ways @ new)
            if 0.5 * new @ gram @ new - slope @ new + now <= value - 0.1 * share * drop:
                break
            share *= 0.5
        else:
            break  # rounding
        z = new
    else:
        warn(RuntimeWarning(f"the fit's parameters did not converge in {STEPS} steps of Newton"))
    return z


def _newton(hessian: Array, gradient: Array) -> tuple[Array, float]:
    """Newton's step, and the square of its decrement."""
    step = -np.asarray(solved(hessian, gradient))
    return step, -float(gradient @ step)


def solved(matrix: Array, right: Array) -> Array:
    """matrix⁻¹ right of a positive definite matrix, scaled: links and rotors differ by 1e4."""
    from scipy.linalg import cho_factor, cho_solve  # not needed until something is fitted

    scale = 1.0 / np.sqrt(np.diag(matrix))
    factor = cho_factor(matrix * np.outer(scale, scale))
    shape = (-1,) + (1,) * (right.ndim - 1)
    result: Array = scale.reshape(shape) * cho_solve(factor, scale.reshape(shape) * right)
    return result
