"""Equations of motion with a unit mass matrix, in innovations coordinates (004).

With ℳ = ℓ ℓ*, ℓ = (1 + H𝔸K) D^½, the velocities ν = ℓ* θ̇ obey ν̇ + C(θ, ν) = ε with ε = ℓ⁻¹ T,
and the kinetic energy is ν·ν/2 (Jain and Rodriguez, Diagonalized Lagrangian robot dynamics, 1995).
ν are quasi-velocities: no coordinates have them as their rates. Clusters change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from robomodel.model.arguments import as_array
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.papers.matrices import transposed
from robomodel.papers.spatial_operators.algebra import BlockDiagonal, blockwise
from robomodel.papers.spatial_operators.operator import Operator
from robomodel.papers.spatial_operators.robot import RobotOperators, robot_operators
from robomodel.papers.spatial_operators.sensitivity import Sensitivity, robot_sensitivity


@dataclass(frozen=True, eq=False)
class DiagonalEquations:
    """ν̇ + ``bias`` = ``forces(T)`` of a robot at q and v; all by operators of linear cost.

    ``velocities`` is ν (..., nv). ``model`` has the loads (gravity, f_ext), ``change`` the blocks'
    derivatives in time.
    """

    model: RobotOperators
    change: Sensitivity
    v: Array

    @cached_property
    def root(self) -> BlockDiagonal:
        """D^½, the lower triangular root of each node's D."""
        rates = self.model.rates
        pivots = self.model.articulated.D.blocks
        return blockwise(rates, rates, lambda k: np.asarray(np.linalg.cholesky(pivots[k]), float))

    @cached_property
    def root_inverse(self) -> BlockDiagonal:
        """D^-½."""
        rates = self.model.rates
        roots = self.root.blocks
        return blockwise(rates, rates, lambda k: np.asarray(np.linalg.inv(roots[k]), float))

    @cached_property
    def factor(self) -> Operator:
        """ℓ = (1 + H𝔸K) D^½: ℳ = ℓ ℓ*."""
        return self.model.articulated.factor @ self.root

    @cached_property
    def factor_inverse(self) -> Operator:
        """ℓ⁻¹ = D^-½ (1 - HψK)."""
        return self.root_inverse @ self.model.articulated.factor_inverse

    @cached_property
    def factor_rate(self) -> Operator:
        """dℓ/dt along the motion; of a root R, R' = R Φ(R⁻¹ D' R⁻*), Φ the lower half."""
        rates, pivots = self.model.rates, self.change.riccati[1].blocks

        def rate(k: int) -> Array:
            root, inverse = self.root.blocks[k], self.root_inverse.blocks[k]
            inner = inverse @ pivots[k] @ transposed(inverse)
            return root @ (np.tril(inner) - 0.5 * inner * np.eye(root.shape[-1]))

        turned = self.model.articulated.factor @ blockwise(rates, rates, rate)
        return self.change.factor @ self.root + turned

    @cached_property
    def velocities(self) -> Array:
        """ν = ℓ* θ̇ (..., nv) [√J]: the kinetic energy is ν·ν/2."""
        return self.factor.T @ self.v

    def forces(self, tau: ArrayLike) -> Array:
        """ε = ℓ⁻¹ T (..., nv); the power θ̇·T is ν·ε."""
        return self.factor_inverse @ tau

    @cached_property
    def bias(self) -> Array:
        """C(θ, ν) (..., nv). Without gravity and wrenches it does no work: ν·C = 0."""
        return self.factor_inverse @ self.model.bias - self.factor_rate.T @ self.v

    def accelerations(self, tau: ArrayLike) -> Array:
        """ν̇ = ε - C (..., nv) under the forces tau (..., nv), each coordinate by itself."""
        return self.forces(tau) - self.bias

    def joint_accelerations(self, rates: ArrayLike) -> Array:
        """θ̈ (..., nv) of ν̇ (..., nv): ℓ⁻*(ν̇ - ℓ̇* θ̇)."""
        return self.factor_inverse.T @ (np.asarray(rates) - self.factor_rate.T @ self.v)


def diagonal_equations(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    f_ext: Mapping[str, ArrayLike] | None = None,
) -> DiagonalEquations:
    """The equations of motion at q (..., nq), v (..., nv) with a unit mass matrix.

    ``f_ext`` as in :func:`robomodel.rnea`. Coordinates are those of the clusters, v. The factor's
    rate along the motion is :func:`robot_sensitivity`'s, and as accurate.
    """
    speed = as_array(v, model.nv, "v", "nv")
    loaded = robot_operators(model, q, speed, f_ext=f_ext)
    return DiagonalEquations(loaded, robot_sensitivity(model, q, speed), speed)
