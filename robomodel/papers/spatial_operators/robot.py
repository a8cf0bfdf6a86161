"""SKO models of robots: nodes are clusters, or the bodies of the spanning tree.

A cluster connectivity tree is an SKO model with H = Sᵀ, with the blocks of
:func:`robomodel.papers.clusters.operators`. Derivatives of these models along a velocity are exact,
and so are the equations of motion with a unit mass matrix that use them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics.baselines import spanning_tree
from robomodel.dynamics.kinematics.frames import FrameLike, frame_keys, place
from robomodel.dynamics.kinematics.state import State
from robomodel.mechanism.graph import WORLD
from robomodel.model.arguments import as_array
from robomodel.model.model import Model
from robomodel.papers.clusters import ClusterOperators, operators
from robomodel.papers.clusters.recursions import base_acceleration
from robomodel.papers.matrices import block_diagonal, frame_motion, times, transposed
from robomodel.papers.spatial_operators.algebra import (
    Adjacency,
    BlockDiagonal,
    Operator,
    PickOff,
    Space,
    blockwise,
)
from robomodel.papers.spatial_operators.sko import SKO, Sensitivity
from robomodel.papers.spatial_operators.tree import ROOT, Tree
from robomodel.scalars import stack, unstack


@dataclass(frozen=True, eq=False, kw_only=True)
class RobotOperators(SKO):
    """The SKO model of a robot at a state.

    Coordinate rates are v if nodes are clusters, all joints' velocities if they are bodies. A
    node's velocity stacks its bodies' (angular first, in the frames of their links) and the
    velocities of its joints with armature, an inertia that resists these only. Accelerations are
    spatial; gravity is the base's acceleration.

    ``sites``: for each body, its node, and the index of its six numbers in the node.
    """

    robot: Model
    sites: tuple[tuple[int, int], ...]

    def pick_off(self, frames: FrameLike | Sequence[FrameLike]) -> PickOff:
        """𝓑 of frames (links, or (link, offset)): 𝓑* V are their velocities in their own axes."""
        nodes, blocks = [], []
        for key in frame_keys(frames):
            at = place(self.robot, key)
            if at.body == WORLD:
                nodes.append(ROOT)
                blocks.append(np.zeros((0, 6)))
                continue
            node, first = self.sites[at.body]
            block = np.zeros((self.nodes.sizes[node], 6))
            block[first : first + 6] = frame_motion(self.robot, at).T
            nodes.append(node)
            blocks.append(block)
        return PickOff(self.nodes, tuple(nodes), tuple(blocks))


def robot_operators(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    nodes: Literal["clusters", "bodies"] = "clusters",
    f_ext: Mapping[str, ArrayLike] | None = None,
) -> RobotOperators:
    """The SKO model of a robot at q (..., nq), v (..., nv; default at rest).

    ``nodes``: "clusters", with coordinates v; or "bodies", those of the spanning tree without loops
    and couplings, with the velocities of all its joints as coordinates. ``f_ext`` as in
    :func:`robomodel.rnea`.
    """
    if nodes not in ("clusters", "bodies"):
        raise ValueError(f"nodes '{nodes}' are not known; 'clusters' and 'bodies' are")
    at = as_array(q, model.nq, "q", "nq")
    speed = np.zeros(model.nv) if v is None else as_array(v, model.nv, "v", "nv")
    modelled = model
    if nodes == "bodies":
        batch = np.broadcast_shapes(at.shape[:-1], speed.shape[:-1])
        with np.errstate(all="ignore"):
            state = State(model, unstack(at), (), unstack(speed))
            modelled = spanning_tree(model)
            at, speed = stack(state.positions, batch), stack(state.velocities, batch)
    objects = operators(modelled, at, speed)
    tree = Tree(tuple(o.name for o in objects), tuple(o.parent for o in objects))
    sites = tuple(
        (node.cluster, 6 * modelled.clusters[node.cluster].bodies.index(body))
        for body, node in enumerate(modelled.nodes)
    )
    space = Space(tree, tuple(o.S.shape[-2] + len(_geared(o)) for o in objects))
    rates = Space(tree, tuple(len(o.dofs) for o in objects))
    base = base_acceleration(model)
    drift = [o.c + times(o.X, base) if o.parent < 0 else o.c for o in objects]
    bias = _bias(modelled, objects, sites, f_ext or {})
    constant = [o.inertia[(0,) * (o.inertia.ndim - 2)] for o in objects]  # the same at all states
    inertia = [
        block_diagonal([bodies, np.diag(o.armature[_geared(o)])])
        for bodies, o in zip(constant, objects, strict=True)
    ]
    return RobotOperators(
        weights=_weights(space, tree, [o.X for o in objects]),
        H=_joint_maps(space, rates, [(o.S, o.G) for o in objects], objects),
        M=blockwise(space, space, inertia.__getitem__, "M"),
        a=space.join([_joined(x, o.g, o) for x, o in zip(drift, objects, strict=True)]),
        b=space.join([_joined(x, 0.0 * o.g, o) for x, o in zip(bias, objects, strict=True)]),
        robot=model,
        sites=sites,
    )


def _geared(o: ClusterOperators) -> list[int]:
    """The indices of a cluster's tree joint velocities with armature."""
    return np.flatnonzero(o.armature).tolist()


def _joined(x: Array, joints: Array, o: ClusterOperators) -> Array:
    """Rows of bodies, followed by those of tree joints with armature."""
    parts = [x, joints[..., _geared(o)]]
    return Space(None, tuple(part.shape[-1] for part in parts)).join(parts)


def _joint_maps(
    space: Space,
    rates: Space,
    motions: Sequence[tuple[Array, Array]],
    objects: Sequence[ClusterOperators],
) -> BlockDiagonal:
    """H from S and the rows of G with armature, or from their rates."""
    blocks = [
        np.concatenate([s, g[..., _geared(o), :]], axis=-2)
        for (s, g), o in zip(motions, objects, strict=True)
    ]
    return blockwise(space, rates, lambda k: transposed(blocks[k]), "H")


def _weights(space: Space, tree: Tree, carried: Sequence[Array]) -> Adjacency:
    """𝓔 from the transforms of parents' bodies; rows of joints with armature are zero."""
    blocks = []
    for k, parent in enumerate(tree.parents):
        x = carried[k]
        rows = 0 if parent == ROOT else space.sizes[parent]
        padded = np.zeros((*x.shape[:-2], space.sizes[k], rows))
        if rows:
            padded[..., : x.shape[-2], : x.shape[-1]] = x
        blocks.append(transposed(padded))
    return Adjacency(space, space, tuple(blocks))


def _bias(
    model: Model,
    objects: Sequence[ClusterOperators],
    sites: Sequence[tuple[int, int]],
    f_ext: Mapping[str, ArrayLike],
) -> list[Array]:
    """Bias forces of nodes' bodies, less the external wrenches."""
    bias = [o.bias for o in objects]
    for link, wrench in f_ext.items():
        at = place(model, link)
        force = as_array(wrench, 6, f"f_ext['{link}']", "6")
        if at.body != WORLD:
            node, first = sites[at.body]
            push = np.zeros((*force.shape[:-1], bias[node].shape[-1]))
            push[..., first : first + 6] = times(frame_motion(model, at).T, force)
            bias[node] = bias[node] - push
    return bias


def robot_sensitivity(model: Model, q: ArrayLike, direction: ArrayLike) -> Sensitivity:
    """The operators of a robot at q (..., nq), with their derivatives along a velocity (..., nv).

    With ``numpy.eye(nv)[i]``, the derivatives with respect to coordinate i. Exact, also with loops.
    Raises ValueError for arrays of wrong sizes.
    """
    at = as_array(q, model.nq, "q", "nq")
    along = as_array(direction, model.nv, "direction", "nv")
    base = robot_operators(model, at)
    objects = operators(model, at, along)
    weights = _weights(base.nodes, base.tree, [o.X_dot for o in objects])
    motions = [(o.S_dot, o.G_dot) for o in objects]
    maps = _joint_maps(base.nodes, base.rates, motions, objects)
    constant = blockwise(base.nodes, base.nodes, lambda k: 0.0 * base.M.blocks[k])
    return Sensitivity(base, weights, maps, constant)


# ---- equations of motion with a unit mass matrix, in innovations coordinates (future work) -------
# With ℳ = ℓ ℓ*, ℓ = (1 + H𝔸K) D^½, the velocities ν = ℓ* θ̇ obey ν̇ + C(θ, ν) = ε with ε = ℓ⁻¹ T,
# and the kinetic energy is ν·ν/2 (Jain and Rodriguez, Diagonalized Lagrangian robot dynamics,
# 1995). ν are quasi-velocities, which are not rates of any coordinates. Clusters change nothing.


@dataclass(frozen=True, eq=False)
class DiagonalEquations:
    """ν̇ + ``bias`` = ``forces(T)`` of a robot at q and v, by operators of linear cost.

    ``velocities`` is ν (..., nv). ``model`` contains the loads (gravity, f_ext), ``change`` the
    time derivatives of the blocks.
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
        """ν̇ = ε - C (..., nv) under the forces tau (..., nv); the coordinates are decoupled."""
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
    rate along the motion is from :func:`robot_sensitivity`, so it is exact.
    """
    speed = as_array(v, model.nv, "v", "nv")
    loaded = robot_operators(model, q, speed, f_ext=f_ext)
    return DiagonalEquations(loaded, robot_sensitivity(model, q, speed), speed)
