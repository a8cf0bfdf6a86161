"""A primal-dual interior-point method for contact with friction, where sweeps do not converge.

In scaled units every contact's cone is a Lorentz cone, |x_t| <= x_n; a row with one bound is a cone
without tangents, an interval two. With X the impulses in these cones and Z the shifted velocities,
which are dual to them, the equations

    G x + b = Eᵀ (Z - Γ(Z)),  X = E x + h,  X ∘ Z = μ e,

are solved by Newton's method in Nesterov and Todd's scaling for a μ that goes to zero, with
Mehrotra's corrector. De Saxcé's shift Γ = (0, 0, |Z_t|) is part of the iteration, not a loop around
it (Acary, Armand, Nguyen and Shpakovych, *Second-order cone programming for frictional contact
mechanics using interior point algorithm*, 2023). With it the problem is not monotone, so steps stay
near the central path.

With redundant contacts, as a foot's four corners, iterates approach the middle of the set of
solutions. There it is clear which contacts stick, slide and part, so Newton's method converges from
there to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robomodel.arrays import Array, Indices
from robomodel.dynamics.contact.problem import TINY_SINGLE
from robomodel.tolerances import ROUNDING

# Chosen on 5081 problems of bipeds and quadrupeds with box feet that stand, walk, land, rock and
# slide, and of stacks. Not solved to 1e-10: 24 with CENTRED 0.1, 9 with 0.01; of 399 hard ones 79
# with SLOWEST 0.05 (steps lead to the cones' boundaries), 11 with 0.2.
MOST_ITERATIONS = 50
TO_CONES = 0.99  # share of the way to the cones' boundaries
CENTRED = 0.01  # share of μ below which no product of eigenvalues may fall
SLOWEST = 0.2  # least share of μ that a step leaves
SHORT_STEP = 0.2  # share of a step: after a shorter one half the shift's slope is used


@dataclass(frozen=True)
class ConeProblem:
    """A contact problem in scaled units: cones of contacts with friction first, then single rows.

    Attributes:
        matrix: G of the acting rows (n, n), whose blocks have unit traces.
        b: (n,), the largest number 1.
        rough: Number of contacts with friction.
        components: Indices into the flattened cones (3m,) of those that have a row.
        columns: The row of each component.
        signs: The sign of each component, -1 at upper bounds.
        h: Cones (m, 3) at zero impulse: bounds of dry friction.
    """

    matrix: Array
    b: Array
    rough: int
    components: Indices
    columns: Indices
    signs: Array
    h: Array

    def cones(self, x: Array) -> Array:
        """E x, (m, 3)."""
        result = np.zeros(self.h.size)
        result[self.components] = self.signs * x[self.columns]
        return result.reshape(self.h.shape)

    def rows(self, z: Array) -> Array:
        """Eᵀ Z, (n,)."""
        weights = self.signs * z.ravel()[self.components]
        return np.asarray(np.bincount(self.columns, weights, len(self.b)), dtype=float)

    def unshifted(self, z: Array, slope: Array) -> Array:
        """Z - Γ'(Z) Z, for cones and for directions; ``slope``: unit slips (rough, 2)."""
        result = z.copy()
        result[: self.rough, 2] -= np.sum(slope * z[: self.rough, :2], axis=1)
        return result

    def system(self, weights: Array, slope: Array) -> Array:
        """G + Eᵀ (1 - Γ') W⁻² E, ``weights`` being W⁻² (m, 3, 3)."""
        k, result = self.rough, self.matrix.copy()
        blocks = weights[:k].copy()
        blocks[:, 2] -= np.einsum("ki,kij->kj", slope, weights[:k, :2])
        at = np.arange(3 * k).reshape(k, 3)
        result[at[:, :, None], at[:, None, :]] += blocks
        lines = self.columns[3 * k :]
        np.add.at(result, (lines, lines), weights[k:, 2, 2])
        result[np.diag_indices(len(result))] += ROUNDING
        return result


@dataclass(frozen=True)
class Scaling:
    """Nesterov and Todd's W = Wᵀ of cones: W Z = W⁻¹ X = λ."""

    w: Array
    eta: Array

    @staticmethod
    def of(x: Array, z: Array) -> Scaling:
        """The scaling of interior points x and z (m, 3)."""
        size_x, size_z = np.sqrt(_det(x)), np.sqrt(_det(z))
        x, z = x / size_x[:, None], z / size_z[:, None]
        w = x - z
        w[:, 2] = x[:, 2] + z[:, 2]
        w /= np.sqrt(2.0 * (1.0 + np.sum(x * z, axis=1)))[:, None]
        return Scaling(w, np.sqrt(size_x / size_z))

    def times(self, v: Array, sign: float = 1.0) -> Array:
        """W v, or W⁻¹ v with -1 as ``sign``."""
        tangents, n = self.w[:, :2], self.w[:, 2]
        along = np.sum(tangents * v[:, :2], axis=1)
        result = np.empty_like(v)
        result[:, 2] = n * v[:, 2] + sign * along
        result[:, :2] = v[:, :2] + (sign * v[:, 2] + along / (1.0 + n))[:, None] * tangents
        return np.asarray(result * (self.eta**sign)[:, None])

    def inverse_square(self) -> Array:
        """W⁻² (m, 3, 3)."""
        mirrored = self.w * [-1.0, -1.0, 1.0]
        result = 2.0 * mirrored[:, :, None] * mirrored[:, None, :] + np.diag([1.0, 1.0, -1.0])
        return np.asarray(result / (self.eta**2)[:, None, None])


def interior_points(problem: ConeProblem, share: float = 1.0) -> Iterator[tuple[Array, float]]:
    """Iterates x (n,), each with the μ before it, until no step can be taken.

    ``share`` of the shift's slope is used in steps, at most half of it after a short one.
    """
    x = np.zeros(len(problem.b))
    x[problem.columns[problem.components % 3 == 2]] = 1.0
    x[problem.columns[problem.signs < 0.0]] = 0.0  # in the middle of intervals
    z = np.zeros_like(problem.h)
    z[:, 2] = 1.0
    for _ in range(MOST_ITERATIONS):
        advance = _advanced(problem, x, z, share)
        if advance is None:
            return
        x, z, mu, length = advance
        if length < SHORT_STEP:
            share = min(share, 0.5)
        yield x, mu


@np.errstate(all="ignore")  # numbers that are not finite end the iteration
def _advanced(
    problem: ConeProblem, x: Array, z: Array, share: float
) -> tuple[Array, Array, float, float] | None:
    """The next x and z, the μ before, and the share of the step that was taken; None at the end."""
    primal = problem.cones(x) + problem.h
    mu = float(np.sum(primal * z)) / len(z)
    slips = z[: problem.rough, :2]
    unit = slips / np.maximum(np.hypot(slips[:, 0], slips[:, 1]), TINY_SINGLE)[:, None]
    left = problem.matrix @ x + problem.b - problem.rows(problem.unshifted(z, unit))
    step = _directions(problem, primal, z, mu, left, share * unit)
    if step is None:
        return None
    dx, dz = step
    change = problem.cones(dx)
    length = min(1.0, TO_CONES * _reach(primal, change), TO_CONES * _reach(z, dz))
    while length > TINY_SINGLE and not _is_central(primal + length * change, z + length * dz):
        length *= 0.7
    return x + length * dx, z + length * dz, mu, length


def _directions(
    problem: ConeProblem, x: Array, z: Array, mu: float, left: Array, slope: Array
) -> tuple[Array, Array] | None:
    """Newton's step (n,), (m, 3) by predictor and corrector; None if it is not finite."""
    from scipy.linalg import lapack

    scaling = Scaling.of(x, z)
    point, weights = scaling.times(z), scaling.inverse_square()
    system = problem.system(weights, slope)
    rows = 1.0 / np.max(np.abs(system), axis=1)
    factors, pivots, _ = lapack.dgetrf(system * rows[:, None])

    def solve(right: Array) -> tuple[Array, Array, Array]:
        back = scaling.times(_quotient(point, right), -1.0)
        force = problem.rows(problem.unshifted(back, slope)) - left
        dx = lapack.dgetrs(factors, pivots, rows * force)[0]
        change = problem.cones(dx)
        return dx, change, back - np.einsum("mij,mj->mi", weights, change)

    square = _product(point, point)
    _, dx, dz = solve(-square)
    length = min(1.0, _reach(x, dx), _reach(z, dz))
    ahead = float(np.sum((x + length * dx) * (z + length * dz))) / len(x)
    right = -square - _product(scaling.times(dx, -1.0), scaling.times(dz))
    right[:, 2] += mu * max(SLOWEST, min(1.0, max(ahead / mu, 0.0)) ** 3)
    change, _, dz = solve(right)
    return (change, dz) if np.all(np.isfinite(change)) and np.all(np.isfinite(dz)) else None


# ---- Lorentz's cones, (m, 3) with the normal last -----------------------------------------------


def _det(a: Array) -> Array:
    """The product of the eigenvalues n ± |t| (m,)."""
    r = np.hypot(a[:, 0], a[:, 1])
    return np.asarray((a[:, 2] - r) * (a[:, 2] + r))


def _product(a: Array, b: Array) -> Array:
    """The Jordan product a ∘ b (m, 3)."""
    result = a[:, 2:] * b + b[:, 2:] * a
    result[:, 2] = np.sum(a * b, axis=1)
    return np.asarray(result)


def _quotient(a: Array, b: Array) -> Array:
    """The c with a ∘ c = b."""
    result = np.empty_like(b)
    along = np.sum(a[:, :2] * b[:, :2], axis=1)
    result[:, 2] = (a[:, 2] * b[:, 2] - along) / _det(a)
    result[:, :2] = (b[:, :2] - result[:, 2:] * a[:, :2]) / a[:, 2:]
    return result


def _reach(a: Array, d: Array) -> float:
    """The largest length for which a + length · d is in the cones."""
    size = np.sqrt(_det(a))
    unit = a / size[:, None]
    height = unit[:, 2] * d[:, 2] - np.sum(unit[:, :2] * d[:, :2], axis=1)
    across = d[:, :2] - ((height + d[:, 2]) / (1.0 + unit[:, 2]))[:, None] * unit[:, :2]
    worst = np.max((np.hypot(across[:, 0], across[:, 1]) - height) / size)
    return float(1.0 / worst) if worst > 0.0 else np.inf


def _is_central(x: Array, z: Array) -> bool:
    """True if no product of eigenvalues is far below the mean."""
    inner, square = np.sum(x * z, axis=1), _det(x) * _det(z)
    least = square / (inner + np.sqrt(np.maximum(inner * inner - square, 0.0)))
    return bool(np.all(least >= CENTRED * np.mean(inner)))
