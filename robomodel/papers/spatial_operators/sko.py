"""SKO models: the dynamics of any tree of bodies or clusters, by spatial operators.

A model is a tree, weights 𝓔, a joint map H, inertias M, and stacked velocity products a and b
(Jain, Graph theoretic foundations of multibody dynamics, part II; equations by its numbers):

    V = 𝔸* H* θ̇    α = 𝔸*(H* θ̈ + a)    f = 𝔸(M α + b)    T = H f    with 𝔸 = (1 - 𝓔)⁻¹

No more is assumed: weights may be singular and of any shape, and blocks of any size. Sensitivities
and under-actuated motion are the paper's future work.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.model.arguments import as_array
from robomodel.papers.matrices import transposed
from robomodel.papers.spatial_operators.algebra import (
    Adjacency,
    BackwardLyapunov,
    BlockDiagonal,
    ForwardLyapunov,
    Operator,
    PickOff,
    Propagator,
    Space,
    blockwise,
    compatible,
    dense_blocks,
    identity,
)
from robomodel.papers.spatial_operators.tree import ROOT, Tree
from robomodel.scalars import Factorization, array_of
from robomodel.tolerances import ROUNDING, SAME

REST = np.zeros(())  # no velocity products


@dataclass(frozen=True, eq=False, kw_only=True)
class SKO:
    """(H, 𝓔, M) with velocity products: node velocities (..., m), coordinate rates (..., n).

    ``weights`` maps node velocities to node velocities, ``H`` node forces to coordinate forces (its
    transpose coordinate rates to relative velocities), ``M`` velocities to momenta. ``a``: the
    nodes' accelerations relative to their parents' at θ̈ = 0, with gravity as upward acceleration
    of the base; ``b``: gyroscopic less external forces. Both are zero by default.
    """

    weights: Adjacency
    H: BlockDiagonal
    M: BlockDiagonal
    a: Array = field(default_factory=lambda: REST)
    b: Array = field(default_factory=lambda: REST)

    def __post_init__(self) -> None:
        nodes = self.weights.rows
        compatible(nodes, self.weights.cols, "rows and columns of the weights")
        compatible(nodes, self.H.cols, "the weights and H")
        compatible(nodes, self.M.rows, "the weights and M")
        compatible(nodes, self.M.cols, "the weights and M")
        for k, name in enumerate(self.tree.names):
            if self.H.rows.sizes[k] > nodes.sizes[k]:
                raise ValueError(
                    f"H of node '{name}' has {self.H.rows.sizes[k]} rows for {nodes.sizes[k]} "
                    "velocities, so they depend on each other"
                )
            m = self.M.blocks[k]
            off = np.max(np.abs(m - transposed(m)), initial=0.0)
            if off > SAME * np.max(np.abs(m), initial=0.0):
                raise ValueError(f"M of node '{name}' is not symmetric")
        for part in ("a", "b"):
            value = getattr(self, part)
            if value is REST:
                value = np.zeros(nodes.size)
            nodes.split(value)
            object.__setattr__(self, part, value)

    @classmethod
    def from_blocks(
        cls,
        weights: Mapping[tuple[Hashable, Hashable], ArrayLike],
        H: Mapping[Hashable, ArrayLike],
        M: Mapping[Hashable, ArrayLike],
        *,
        a: Mapping[Hashable, ArrayLike] | None = None,
        b: Mapping[Hashable, ArrayLike] | None = None,
    ) -> SKO:
        """A model of any tree: blocks by node, weights by edge (parent, child), nodes as in M.

        H[k] (..., n_k, m_k), M[k] (..., m_k, m_k), weights[parent, child] (..., m_parent, m_child),
        which maps forces on the child to forces on the parent. Nodes without a parent are roots.
        Raises ValueError for a digraph that is no tree, naming its cycle or the node with several
        parents, and for blocks that do not fit, naming the node.
        """
        tree = Tree.from_edges(weights, M)
        if missing := [name for name in tree.names if name not in M or name not in H]:
            raise ValueError(f"node '{missing[0]}' needs both H and M")
        if extra := [name for name in (*H, *(a or ()), *(b or ())) if name not in M]:
            raise ValueError(f"there is no node '{extra[0]}' in M")
        inertia, maps = ([_matrix(of[n]) for n in tree.names] for of in (M, H))
        nodes = Space(tree, tuple(m.shape[-1] for m in inertia))
        rates = Space(tree, tuple(h.shape[-2] for h in maps))

        def weight(k: int) -> Array:
            if tree.parents[k] == ROOT:
                return np.zeros((0, nodes.sizes[k]))
            return _matrix(weights[tree.names[tree.parents[k]], tree.names[k]])

        def stacked(of: Mapping[Hashable, ArrayLike] | None) -> Array:
            blocks = zip(tree.names, nodes.zeros(), strict=True)
            return nodes.join([np.asarray((of or {}).get(n, zero), float) for n, zero in blocks])

        return cls(
            weights=Adjacency(nodes, nodes, tuple(map(weight, range(len(tree))))),
            H=blockwise(nodes, rates, maps.__getitem__, "H"),
            M=blockwise(nodes, nodes, inertia.__getitem__, "M"),
            a=stacked(a),
            b=stacked(b),
        )

    @property
    def tree(self) -> Tree:
        """The tree of nodes."""
        return self.weights.tree

    @property
    def nodes(self) -> Space:
        """Stacked node velocities, accelerations and forces."""
        return self.weights.rows

    @property
    def rates(self) -> Space:
        """Stacked coordinate rates and forces."""
        return self.H.rows

    @cached_property
    def A(self) -> Propagator:
        """The propagator 𝔸 = (1 - 𝓔)⁻¹: maps forces on each node to forces through all joints."""
        return Propagator(self.weights)

    # ---- Newton–Euler (equations 1 to 3, algorithm 3.1)

    def velocities(self, rates: ArrayLike) -> Array:
        """V = 𝔸* H* θ̇: node velocities (..., m)."""
        return self.A.T @ (self.H.T @ rates)

    def accelerations(self, rates_dot: ArrayLike) -> Array:
        """α = 𝔸*(H* θ̈ + a): node accelerations (..., m)."""
        return self.A.T @ (self.H.T @ rates_dot + self.a)

    def forces(self, accelerations: ArrayLike) -> Array:
        """f = 𝔸(M α + b): forces between each node and its parent (..., m)."""
        return self.A @ (self.M @ accelerations + self.b)

    def inverse_dynamics(self, rates_dot: ArrayLike) -> Array:
        """T (..., n) that produces θ̈."""
        return self.H @ self.forces(self.accelerations(rates_dot))

    @cached_property
    def bias(self) -> Array:
        """C = H 𝔸(M 𝔸* a + b): the T of θ̈ = 0 (..., n)."""
        return self.inverse_dynamics(np.zeros(self.rates.size))

    # ---- composites and the mass matrix (section 4)

    @cached_property
    def composites(self) -> ForwardLyapunov:
        """𝔸 M 𝔸*, with the composite inertias as its diagonal ``Y`` (algorithm 4.1)."""
        return ForwardLyapunov(self.A, self.M, self.A)

    @property
    def mass_operator(self) -> Operator:
        """ℳ = H 𝔸 M 𝔸* H* as an action of linear cost (Newton–Euler factorisation)."""
        return self.H @ self.A @ self.M @ self.A.T @ self.H.T

    @property
    def mass_parts(self) -> tuple[BlockDiagonal, Operator, Operator]:
        """(H R H*, H 𝔸̃ R H*, H R 𝔸̃* H*): disjoint, their sum is ℳ (Lemma 4)."""
        diagonal, upper, lower = self.composites.parts
        h = self.H
        return h @ diagonal @ h.T, h @ upper @ h.T, h @ lower @ h.T

    def mass_matrix(self) -> Array:
        """ℳ (..., n, n), dense: composites, with their forces propagated to the base (alg. 4.2)."""
        h = self.H.blocks
        composite = self.composites.Y.blocks
        blocks: dict[tuple[int, int], Array] = {}
        for k in range(len(self.tree)):
            force = composite[k] @ transposed(h[k])
            for above in self.tree.upwards(k):
                blocks[above, k] = h[above] @ force
                blocks[k, above] = transposed(blocks[above, k])
                force = self.weights.weights[above] @ force
        return dense_blocks(blocks, self.rates, self.rates)

    # ---- articulated inertias, and results from them (sections 5 and 6)

    @cached_property
    def articulated(self) -> Articulated:
        """The solution of the Riccati equation, tips to base (Lemma 7, equation 33)."""
        return _riccati(self)

    def forward_dynamics(self, forces: ArrayLike) -> Array:
        """θ̈ (..., n) under the coordinate forces T, at linear cost (equation 58, alg. 6.1)."""
        return self.articulated.forward_dynamics(forces)


@dataclass(frozen=True, eq=False)
class Articulated:
    """The solution of the Riccati equation M = P - 𝓔[P - P H* D⁻¹ H P]𝓔* of a model.

    ``P`` articulated inertias, ``D`` = H P H*, ``G`` = P H* D⁻¹, ``K`` = 𝓔 G, ``remainder`` τ̄ = 1
    - G H, ``weights`` 𝓔_ψ = 𝓔 τ̄ = 𝓔 - K H, ``psi`` its propagator ψ. ``log_det`` (...) is log det
      ℳ =
    Σ log det D(k) (equation 53).
    """

    model: SKO
    P: BlockDiagonal
    D: BlockDiagonal
    D_inverse: BlockDiagonal
    G: BlockDiagonal
    log_det: Array

    @cached_property
    def K(self) -> Adjacency:
        """K = 𝓔 G: from each node's coordinate forces to forces on its parent."""
        return self.model.weights @ self.G

    @cached_property
    def remainder(self) -> BlockDiagonal:
        """τ̄ = 1 - G H: the part of a force that a free joint transmits."""
        return identity(self.model.nodes) - self.G @ self.model.H

    @cached_property
    def weights(self) -> Adjacency:
        """𝓔_ψ = 𝓔 τ̄, singular even where 𝓔 is not (equation 34)."""
        return self.model.weights @ self.remainder

    @cached_property
    def psi(self) -> Propagator:
        """ψ = (1 - 𝓔_ψ)⁻¹ (equation 35)."""
        return Propagator(self.weights)

    # ---- factors of ℳ and of its inverse (Lemma 11)

    @property
    def factor(self) -> Operator:
        """1 + H 𝔸 K: ℳ = (1 + H𝔸K) D (1 + H𝔸K)*, the innovations factorisation (49)."""
        return identity(self.model.rates) + self.model.H @ self.model.A @ self.K

    @property
    def factor_inverse(self) -> Operator:
        """1 - H ψ K, its inverse (equation 50)."""
        return identity(self.model.rates) - self.model.H @ self.psi @ self.K

    @property
    def mass_operator(self) -> Operator:
        """ℳ by its factors, at linear cost."""
        return self.factor @ self.D @ self.factor.T

    @property
    def mass_inverse(self) -> Operator:
        """ℳ⁻¹ = (1 - HψK)* D⁻¹ (1 - HψK), at linear cost (equation 51)."""
        return self.factor_inverse.T @ self.D_inverse @ self.factor_inverse

    def forward_dynamics(self, forces: ArrayLike) -> Array:
        """θ̈ (..., n): z = ψ(KT + Pa + b), ε = T - Hz, α = ψ*(H*D⁻¹ε + a), θ̈ = D⁻¹ε - G*𝓔*α."""
        model, tau = self.model, np.asarray(forces, dtype=np.float64)
        z = self.psi @ (self.K @ tau + self.P @ model.a + model.b)
        nu = self.D_inverse @ (tau - model.H @ z)
        alpha = self.psi.T @ (model.H.T @ nu + model.a)
        return nu - self.K.T @ alpha

    # ---- operational space (section 6.2)

    @cached_property
    def compliance(self) -> BackwardLyapunov:
        """Ω = ψ* H* D⁻¹ H ψ: the accelerations of all nodes due to forces on them (equation 60)."""
        h = self.model.H
        return BackwardLyapunov(self.psi, h.T @ self.D_inverse @ h, self.psi)

    def inverse_operational_inertia(self, picked: PickOff) -> Array:
        """Λ⁻¹ = 𝓑* Ω 𝓑 (..., p, p) of the points ``picked``, without forming the mass matrix."""
        return self.compliance.between(picked, picked)


def _matrix(block: Any) -> Array:
    array = np.asarray(block, dtype=np.float64)
    if array.ndim < 2:
        raise ValueError(f"a block is a matrix, or a batch of them, not of shape {array.shape}")
    return array


def _riccati(model: SKO) -> Articulated:
    """P, D and G from tips to base; D is factorised as LᵀΛL at each state."""
    tree, weights = model.tree, model.weights.weights
    inertia = list(model.M.blocks)
    joint: dict[int, tuple[Array, Array, Array]] = {}
    log_det = np.zeros(())
    for k in reversed(tree.order):
        h, p = model.H.blocks[k], inertia[k]
        hp = h @ p
        d = hp @ transposed(h)
        count = model.rates.sizes[k]
        with np.errstate(all="ignore"):
            factors = Factorization(
                [[d[..., i, j, None] for j in range(count)] for i in range(count)]
            )
        for i, inverse in enumerate(map(array_of, factors.inverse_pivots)):
            with np.errstate(all="ignore"):
                flat = 1.0 / inverse <= ROUNDING * d[..., i, i, None]
            if np.any(flat):
                raise ValueError(
                    f"node '{tree.names[k]}' can move without inertia: D = H P H* is singular there"
                    ", so M is missing something, or rows of H depend on each other"
                )
            log_det = log_det - np.log(inverse[..., 0])
        gain = _solved(factors, hp)  # Gᵀ = D⁻¹ H P
        joint[k] = d, _solved(factors, np.broadcast_to(np.eye(count), d.shape)), transposed(gain)
        if tree.parents[k] != ROOT:
            left = p - transposed(hp) @ gain
            moved = weights[k] @ (0.5 * (left + transposed(left))) @ transposed(weights[k])
            inertia[tree.parents[k]] = inertia[tree.parents[k]] + moved
    nodes, rates = model.nodes, model.rates
    return Articulated(
        model=model,
        P=blockwise(nodes, nodes, inertia.__getitem__),
        D=blockwise(rates, rates, lambda k: joint[k][0]),
        D_inverse=blockwise(rates, rates, lambda k: joint[k][1]),
        G=blockwise(rates, nodes, lambda k: joint[k][2]),
        log_det=log_det,
    )


def _solved(factors: Factorization, right: Array) -> Array:
    """D⁻¹ right (..., n, columns)."""
    rows = factors.solve([right[..., i, :] for i in range(right.shape[-2])])
    return np.stack([array_of(row) for row in rows], axis=-2) if rows else np.zeros(right.shape)


# ---- sensitivities along one parameter or direction, at linear cost (future work) ----------------
# From the derivatives of 𝓔, H and M by nodes follow those of ℳ, its determinant and its inverse,
# and of the operational space inertia, as 𝔸' = 𝔸 𝓔' 𝔸. No mass matrix is formed.


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """A model with the derivatives of its weights, joint maps and inertias."""

    model: SKO
    weights: Adjacency
    H: BlockDiagonal
    M: BlockDiagonal

    def __post_init__(self) -> None:
        model = self.model
        for rate, space, what in (
            (self.weights.rows, model.weights.rows, "weights"),
            (self.H.cols, model.H.cols, "H"),
            (self.H.rows, model.H.rows, "H"),
            (self.M.rows, model.M.rows, "M"),
        ):
            compatible(rate, space, f"{what} and its derivative")

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
        """P' and D' of the articulated inertias, by the derivative of the Riccati equation."""
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
            gain, remainder = riccati.G.blocks[k], riccati.remainder.blocks[k]
            lost = gain @ dh @ p @ transposed(remainder)
            left = remainder @ rate[k] @ transposed(remainder) - lost - transposed(lost)
            e, de = weights[k], self.weights.weights[k]
            turn = de @ remainder @ p @ transposed(e)
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


# ---- under-actuated and prescribed motion (future work) ------------------------------------------
# After Jain and Rodriguez, "An analysis of the kinematics and dynamics of underactuated
# manipulators" (1993). With H split by rows into those of the active coordinates, whose
# accelerations are prescribed, and the passive ones, whose forces are,
#     T_a = S_aa θ̈_a - S_paᵀ T_p + …,    θ̈_p = S_pa θ̈_a + S_pp T_p + …
# with S_pp = ℳ_pp⁻¹, S_pa = -ℳ_pp⁻¹ ℳ_pa and S_aa = ℳ_aa - ℳ_ap ℳ_pp⁻¹ ℳ_pa; ℳ_pp⁻¹ is that of the
# model whose joints have their passive rows alone, at linear cost.


@dataclass(frozen=True, eq=False)
class Underactuated:
    """A model whose ``active`` coordinates (ascending indices of θ̇) have prescribed motions."""

    model: SKO
    active: tuple[int, ...]

    def __post_init__(self) -> None:
        size = self.model.rates.size
        if list(self.active) != sorted({*self.active} & {*range(size)}):
            raise ValueError(
                f"active coordinates are ascending indices below {size}, not {self.active}"
            )

    @cached_property
    def passive(self) -> tuple[int, ...]:
        """The other coordinates, with prescribed forces."""
        return tuple(i for i in range(self.model.rates.size) if i not in self.active)

    @cached_property
    def H_active(self) -> BlockDiagonal:
        """The rows of H of the active coordinates."""
        return self._rows(self.active)

    @cached_property
    def free(self) -> SKO:
        """The model with the passive joints only: ℳ_pp, with the same weights and inertias."""
        m = self.model
        return SKO(weights=m.weights, H=self._rows(self.passive), M=m.M, a=m.a, b=m.b)

    def _rows(self, chosen: Sequence[int]) -> BlockDiagonal:
        model = self.model
        rows = [
            [i - part.start for i in range(part.start, part.stop) if i in chosen]
            for part in model.rates.slices
        ]
        rates = Space(model.tree, tuple(map(len, rows)))
        return blockwise(model.nodes, rates, lambda k: model.H.blocks[k][..., rows[k], :], "H")

    @property
    def S_pp(self) -> Operator:
        """ℳ_pp⁻¹: passive accelerations due to passive forces."""
        return self.free.articulated.mass_inverse

    @property
    def S_pa(self) -> Operator:
        """-ℳ_pp⁻¹ ℳ_pa: passive accelerations due to active ones."""
        inner = self.model.A @ self.model.M @ self.model.A.T
        active = self.H_active
        minus = blockwise(active.cols, active.rows, lambda k: -active.blocks[k])
        return self.S_pp @ self.free.H @ inner @ minus.T

    @property
    def S_aa(self) -> Operator:
        """ℳ_aa - ℳ_ap ℳ_pp⁻¹ ℳ_pa: active forces due to active accelerations."""
        inner = self.model.A @ self.model.M @ self.model.A.T
        return self.H_active @ inner @ (self.H_active.T + self.free.H.T @ self.S_pa)

    def hybrid(self, accelerations: ArrayLike, forces: ArrayLike) -> tuple[Array, Array]:
        """(T, θ̈) (..., n) for prescribed active accelerations and passive forces.

        Args:
            accelerations: (..., number of active coordinates).
            forces: (..., number of passive coordinates).

        Raises ValueError for wrong numbers of entries.
        """
        active = as_array(accelerations, len(self.active), "accelerations", "active coordinates")
        push = as_array(forces, len(self.passive), "forces", "passive coordinates")
        carried = replace(self.free, a=self.model.a + self.H_active.T @ active)
        passive = carried.forward_dynamics(push)
        batch = np.broadcast_shapes(active.shape[:-1], passive.shape[:-1])
        rates_dot = np.zeros((*batch, self.model.rates.size))
        rates_dot[..., list(self.active)] = active
        rates_dot[..., list(self.passive)] = passive
        return self.model.inverse_dynamics(rates_dot), rates_dot
