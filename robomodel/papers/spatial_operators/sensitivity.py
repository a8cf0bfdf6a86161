"""Derivatives of a model's operators along one parameter or direction, at linear cost (004).

From the derivatives of 𝓔, H and M by nodes follow those of ℳ, its determinant and its inverse, and
of the operational space inertia, as 𝔸' = 𝔸 𝓔' 𝔸. No mass matrix is formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from robomodel.model.arguments import as_array
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.papers.matrices import transposed
from robomodel.papers.spatial_operators.algebra import Adjacency, BlockDiagonal, PickOff, blockwise
from robomodel.papers.spatial_operators.operator import Operator, compatible
from robomodel.papers.spatial_operators.robot import rates_along, robot_operators
from robomodel.papers.spatial_operators.sko import SKO
from robomodel.papers.spatial_operators.tree import ROOT


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """A model with the derivatives of its weights, joint maps and inertias."""

    model: SKO
    weights: Adjacency
    H: BlockDiagonal
    M: BlockDiagonal

    def __post_init__(self) -> None:
        model = self.model
        for own, its, what in (
            (self.weights.rows, model.weights.rows, "weights"),
            (self.H.cols, model.H.cols, "H"),
            (self.H.rows, model.H.rows, "H"),
            (self.M.rows, model.M.rows, "M"),
        ):
            compatible(own, its, f"{what} and its derivative")

    @cached_property
    def lever(self) -> Operator:
        """(H𝔸)' = (H' + H𝔸𝓔')𝔸."""
        model = self.model
        return (self.H + model.H @ model.A @ self.weights) @ model.A

    @cached_property
    def mass_operator(self) -> Operator:
        """ℳ'."""
        model = self.model
        carry = model.H @ model.A
        half = self.lever @ model.M @ carry.T
        return half + half.T + carry @ self.M @ carry.T

    @cached_property
    def riccati(self) -> tuple[BlockDiagonal, BlockDiagonal]:
        """P' and D' of the articulated inertias, by the Riccati equation's own derivative."""
        model, riccati = self.model, self.model.articulated
        tree, weights = model.tree, model.weights.weights
        rate = list(self.M.blocks)
        pivots: dict[int, Array] = {}
        for k in reversed(tree.order):
            h, dh, p = model.H.blocks[k], self.H.blocks[k], riccati.P.blocks[k]
            half = dh @ p @ transposed(h)
            pivots[k] = h @ rate[k] @ transposed(h) + half + transposed(half)
            if tree.parents[k] == ROOT:
                continue
            gain, rest = riccati.G.blocks[k], riccati.remainder.blocks[k]
            lost = gain @ dh @ p @ transposed(rest)
            left = rest @ rate[k] @ transposed(rest) - lost - transposed(lost)
            e, de = weights[k], self.weights.weights[k]
            turn = de @ rest @ p @ transposed(e)
            moved = e @ left @ transposed(e) + turn + transposed(turn)
            rate[tree.parents[k]] = rate[tree.parents[k]] + moved
        nodes, rates = model.nodes, model.rates
        return (
            blockwise(nodes, nodes, rate.__getitem__),
            blockwise(rates, rates, pivots.__getitem__),
        )

    @cached_property
    def log_det(self) -> Array:
        """(log det ℳ)' (...) = Σ tr D⁻¹ D'."""
        pairs = zip(self.model.articulated.D_inverse.blocks, self.riccati[1].blocks, strict=True)
        return sum((np.einsum("...ij,...ji->...", x, y) for x, y in pairs), start=np.zeros(()))

    @cached_property
    def factor(self) -> Operator:
        """(1 + H𝔸K)' of the innovations factorisation, K' = 𝓔'G + 𝓔G', G = P H* D⁻¹."""
        model, riccati = self.model, self.model.articulated
        dp, dd = self.riccati
        moved = dp @ model.H.T + riccati.P @ self.H.T - riccati.G @ dd
        k = self.weights @ riccati.G + model.weights @ (moved @ riccati.D_inverse)
        return self.lever @ riccati.K + model.H @ model.A @ k

    def inverse_operational_inertia(self, picked: PickOff) -> Array:
        """(Λ⁻¹)' (..., p, p) of points that are fixed to their nodes, column by column."""
        carry, inverse = self.model.H @ self.model.A, self.model.articulated.mass_inverse
        columns: list[Array] = []
        for unit in np.eye(picked.cols.size):
            force = picked @ unit
            push, pushed = carry @ force, self.lever @ force
            a = inverse @ push
            change = inverse @ (pushed - self.mass_operator @ a)
            columns.append(picked.T @ (self.lever.T @ a + carry.T @ change))
        return np.stack(columns, axis=-1)


def robot_sensitivity(model: Model, q: ArrayLike, direction: ArrayLike) -> Sensitivity:
    """The operators of a robot at q (..., nq), with their derivatives along a velocity (..., nv).

    Along ``numpy.eye(nv)[i]``: by coordinate i. Exact, loops included. Raises ValueError for arrays
    of other sizes.
    """
    at = as_array(q, model.nq, "q", "nq")
    wanted = as_array(direction, model.nv, "direction", "nv")
    base = robot_operators(model, at)
    weights, motions = rates_along(base, at, wanted)
    nodes = base.nodes
    still = blockwise(nodes, nodes, lambda k: np.zeros((nodes.sizes[k], nodes.sizes[k])))
    return Sensitivity(base, weights, motions, still)
