"""The operators of clusters at a state: transforms, subspaces and inertias (002, IV, V and VII).

Every body has one frame, its link's. Motions and forces of a cluster stack those of its bodies, six
rows each, angular first.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics.kinematics.rates import jacobian_rate
from robomodel.dynamics.kinematics.state import Configuration
from robomodel.mechanism.graph import WORLD
from robomodel.model.arguments import as_array
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.papers.matrices import (
    block_diagonal,
    complement,
    cross_matrices,
    cross_matrix,
    from_rows,
    inverse_motion,
    motion_matrix,
    pseudoinverse,
    solved,
    times,
    transposed,
)
from robomodel.scalars import unstack
from robomodel.spatial import UNIT_MOTIONS

BASE = "world"  # name of the fixed base among bodies


@dataclass(frozen=True, eq=False, kw_only=True)
class ClusterOperators:
    """A cluster's operators at a state; leading axes of arrays are those of the batch.

    Attributes:
        name: of the cluster.
        bodies: names of its n bodies, parents before children.
        parent: index of the parent cluster, -1 at the fixed base.
        dofs: the m indices of v that are its independent velocities.
        output_bodies: for each body the nearest supporting body outside the cluster (IV-B), "world"
            for the fixed base.
        output_children: for each body those whose output body it is (IV-B).
        X: (6n, 6p) motion transform from the p bodies of the parent cluster (the fixed base is
            one), (16), (17); its transpose carries forces, (18).
        remap: (6n, 6n) parent-relative to output-relative motion, (19), (20).
        subspaces: the tree joints' motion subspaces (6, n_i).
        G: (r, m) explicit constraint Jacobian, r the velocities of the tree joints.
        G_dot: (r, m) its rate along the motion.
        S_dot: (6n, m) ring derivative of the cluster motion subspace, (25), (26).
        inertia: (6n, 6n) of the bodies, block diagonal, (14).
        rates: (m) independent velocities.
        velocity: (6n) of the bodies, (12), (33).
        armature: (r) inertias that resist the joints' velocities only; zero in the paper.
        tau: (m) generalized cluster force; None without forces.
        articulated_inertia, articulated_bias: (6n, 6n) and (6n) of the articulated cluster, (38),
            (55), (56); None without forces.
    """

    name: str
    bodies: tuple[str, ...]
    parent: int
    dofs: tuple[int, ...]
    output_bodies: tuple[str, ...]
    output_children: tuple[tuple[str, ...], ...]
    X: Array = field(repr=False)
    remap: Array = field(repr=False)
    subspaces: tuple[Array, ...] = field(repr=False)
    G: Array = field(repr=False)
    G_dot: Array = field(repr=False)
    S_dot: Array = field(repr=False)
    inertia: Array = field(repr=False)
    rates: Array = field(repr=False)
    velocity: Array = field(repr=False)
    armature: Array = field(repr=False)
    tau: Array | None = field(default=None, repr=False)
    articulated_inertia: Array | None = field(default=None, repr=False)
    articulated_bias: Array | None = field(default=None, repr=False)

    # ---- motion (V-A to V-C)

    @cached_property
    def g(self) -> Array:
        """The explicit constraint bias (r): the rate of G times the independent velocities."""
        return times(self.G_dot, self.rates)

    @cached_property
    def S_spanning(self) -> Array:
        """The tree joints' motion subspaces (6n, r), block diagonal."""
        return block_diagonal(self.subspaces)

    @cached_property
    def S(self) -> Array:
        """The cluster motion subspace (6n, m), (24): remap · S_spanning · G."""
        return self.remap @ self.S_spanning @ self.G

    @cached_property
    def remap_inverse(self) -> Array:
        """Output-relative to parent-relative motion (6n, 6n), (21), (23).

        A column has at most two blocks: 1 on the diagonal, and minus the transform from the body's
        parent if that is in the cluster. The transpose of ``remap`` maps output-relative forces to
        parent-relative ones, that of ``remap_inverse`` the reverse, (22), (27).
        """
        return np.asarray(np.linalg.inv(self.remap), dtype=np.float64)

    @cached_property
    def cross(self) -> Array:
        """The velocity's cross product on motions (6n, 6n), block diagonal, (15)."""
        return cross_matrices(self.velocity)

    @cached_property
    def X_dot(self) -> Array:
        """The rate of X (6n, 6p): -s × X, s the velocity across the cluster joint."""
        rate: Array = -cross_matrices(times(self.S, self.rates)) @ self.X
        return rate

    @cached_property
    def c(self) -> Array:
        """The velocity-product acceleration S̊ ẏ + v × S ẏ (6n) of (33)."""
        return times(self.S_dot + self.cross @ self.S, self.rates)

    @cached_property
    def bias(self) -> Array:
        """The bodies' bias force v ×* I v (6n), (36)."""
        return -times(transposed(self.cross), times(self.inertia, self.velocity))

    # ---- force subspaces of the tree joints and of the cluster joint (III-E, V-D)

    @cached_property
    def T_active_spanning(self) -> Array:
        """The tree joints' active force subspaces Tᵃ (6n, r), block diagonal, (8)-(10), (29)."""
        return block_diagonal([transposed(pseudoinverse(s)) for s in self.subspaces])

    @cached_property
    def T_constraint_spanning(self) -> Array:
        """The tree joints' constraint force subspaces Tᶜ (6n, 6n - r), diagonal, (9), (29)."""
        return block_diagonal([complement(s) for s in self.subspaces])

    @cached_property
    def T_active(self) -> Array:
        """The active cluster force subspace Tᵃ (6n, m), (30): T_activeᵀ S = 1.

        The cluster's force is mapped to the tree joints by the Moore-Penrose inverse of Gᵀ.
        """
        lifted = self.T_active_spanning @ transposed(pseudoinverse(self.G))
        return transposed(self.remap_inverse) @ lifted

    @cached_property
    def T_constraint(self) -> Array:
        """The constraint cluster force subspace Tᶜ (6n, 6n - m), (30): T_constraintᵀ S = 0.

        Constraint forces of the tree joints, and forces on them with Gᵀ f = 0.
        """
        loops = self.T_active_spanning @ complement(self.G)
        both: Array = np.concatenate([self.T_constraint_spanning, loops], axis=-1)
        return transposed(self.remap_inverse) @ both

    # ---- articulated inertia across the cluster joint (VII-B)

    @cached_property
    def reflected(self) -> tuple[Array, Array]:
        """Gᵀ diag(armature) times G (m, m) and times g (m); zero in the paper."""
        weighted = transposed(self.G) * self.armature
        return weighted @ self.G, times(weighted, self.g)

    @cached_property
    def U(self) -> Array:
        """Articulated inertia · S (6n, m), (49)."""
        return self.articulated()[0] @ self.S

    @cached_property
    def D(self) -> Array:
        """Sᵀ U (m, m), (49), plus the joints' armature."""
        return transposed(self.S) @ self.U + self.reflected[0]

    @cached_property
    def u(self) -> Array:
        """Tau - Sᵀ · articulated bias (m), (49), less the armature's part."""
        _, bias, tau = self.articulated()
        return tau - times(transposed(self.S), bias) - self.reflected[1]

    @cached_property
    def across(self) -> tuple[Array, Array]:
        """Articulated inertia and bias force on the output bodies (6n, 6n), (6n), (55), (56)."""
        inertia, bias, _ = self.articulated()
        gain = transposed(solved(self.D, transposed(self.U)))
        left: Array = inertia - gain @ transposed(self.U)
        return left, bias + times(left, self.c) + times(gain, self.u)

    def articulated(self) -> tuple[Array, Array, Array]:
        """Articulated inertia, articulated bias and tau; raises ValueError without forces."""
        if self.articulated_inertia is None or self.articulated_bias is None or self.tau is None:
            raise ValueError("articulated quantities need forces: call operators with tau")
        return self.articulated_inertia, self.articulated_bias, self.tau


def operators(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None
) -> tuple[ClusterOperators, ...]:
    """The operators of all clusters at a state, in the order of ``model.clusters`` (002).

    Args:
        model: the robot.
        q: (..., nq) configuration.
        v: (..., nv) independent velocities.
        tau: (..., nv) generalized forces; if given, articulated inertias and bias forces are
            included, (38), with the base accelerating against gravity.

    Raises ValueError for arrays of wrong sizes.
    """
    at, speed = as_array(q, model.nq, "q", "nq"), as_array(v, model.nv, "v", "nv")
    force = None if tau is None else as_array(tau, model.nv, "tau", "nv")
    batch = np.broadcast_shapes(at.shape[:-1], speed.shape[:-1])
    with np.errstate(all="ignore"):
        state = Configuration(model, unstack(at), range(len(model.nodes)))
        links = [motion_matrix(model.frame(node.name).pose) for node in model.nodes]
        outputs = _output_bodies(model)
        objects: list[ClusterOperators] = []
        for cluster, rate in zip(model.clusters, jacobian_rate(model, at, speed), strict=True):
            at_rest = _kinematics(model, state, cluster, links, outputs, batch)
            above = np.zeros(6) if cluster.parent < 0 else objects[cluster.parent].velocity
            objects.append(_moving(at_rest, speed[..., cluster.v], rate, above))
        return tuple(objects if force is None else _articulated(objects, force))


def _output_bodies(model: Model) -> list[int]:
    """For each body the nearest supporting body outside its cluster, or WORLD."""
    outputs: list[int] = []
    for node in model.nodes:
        inside = node.parent != WORLD and model.nodes[node.parent].cluster == node.cluster
        outputs.append(outputs[node.parent] if inside else node.parent)
    return outputs


def _kinematics(
    model: Model,
    state: Configuration,
    cluster: Cluster,
    links: list[Array],
    outputs: list[int],
    batch: tuple[int, ...],
) -> ClusterOperators:
    """The operators that depend on q alone, with zero velocities."""
    bodies = cluster.bodies
    above = (WORLD,) if cluster.parent < 0 else model.clusters[cluster.parent].bodies
    n = len(bodies)
    carried = np.zeros((*batch, 6 * n, 6 * len(above)))
    remap = np.zeros((*batch, 6 * n, 6 * n))
    for i, body in enumerate(bodies):
        rows, parent = slice(6 * i, 6 * i + 6), model.nodes[body].parent
        x = links[body] @ motion_matrix(state.transforms[body], batch)
        if parent != WORLD:
            x = x @ inverse_motion(links[parent])
        remap[..., rows, rows] = np.eye(6)
        if parent in bodies:
            inner = slice(6 * bodies.index(parent), 6 * bodies.index(parent) + 6)
            carried[..., rows, :] = x @ carried[..., inner, :]
            remap[..., rows, : 6 * i] = x @ remap[..., inner, : 6 * i]
        else:
            first = 6 * above.index(parent)
            carried[..., rows, first : first + 6] = x
    nodes = [model.nodes[body] for body in bodies]
    inertia, subspaces = [], []
    for body, node in zip(bodies, nodes, strict=True):
        inverse = inverse_motion(links[body])
        momenta = [(node.inertia * motion).entries() for motion in UNIT_MOTIONS]
        inertia.append(transposed(inverse) @ np.array(momenta, dtype=float) @ inverse)
        columns = np.array([motion.entries() for motion in node.joint.subspace], dtype=float)
        subspaces.append(links[body] @ columns.reshape(-1, 6).T)
    size, m = cluster.spanning_v.stop - cluster.spanning_v.start, cluster.nv
    return ClusterOperators(
        name=cluster.name,
        bodies=tuple(node.name for node in nodes),
        parent=cluster.parent,
        dofs=tuple(range(cluster.v.start, cluster.v.stop)),
        output_bodies=tuple(
            BASE if outputs[body] == WORLD else model.nodes[outputs[body]].name for body in bodies
        ),
        output_children=tuple(
            tuple(model.nodes[k].name for k, output in enumerate(outputs) if output == body)
            for body in bodies
        ),
        X=carried,
        remap=remap,
        subspaces=tuple(subspaces),
        G=from_rows(state.rows[cluster.spanning_v], (size, m), batch),
        G_dot=np.zeros((*batch, size, m)),
        S_dot=np.zeros((*batch, 6 * n, m)),
        inertia=np.broadcast_to(block_diagonal(inertia), (*batch, 6 * n, 6 * n)),
        rates=np.zeros((*batch, m)),
        velocity=np.zeros((*batch, 6 * n)),
        armature=np.array([node.armature for node in nodes for _ in node.freedoms], dtype=float),
    )


def _moving(
    still: ClusterOperators, rates: Array, jacobian_rate: Array, above: Array
) -> ClusterOperators:
    """The operators with velocities, (33), and the ring derivative of S, (25), (26).

    The remap's blocks change by -(v_i - X v_j) × X because their bodies move relative to each
    other; the tree joints' subspaces are constant in their bodies' frames.
    """
    velocity = times(still.X, above) + times(still.S, rates)
    turning = np.zeros_like(still.remap)
    count = len(still.bodies)
    for i in range(count):
        for j in range(i):
            rows, columns = slice(6 * i, 6 * i + 6), slice(6 * j, 6 * j + 6)
            x = still.remap[..., rows, columns]
            apart = velocity[..., rows] - times(x, velocity[..., columns])
            turning[..., rows, columns] = -cross_matrix(apart) @ x
    spanning = still.S_spanning
    return replace(
        still,
        G_dot=jacobian_rate,
        S_dot=turning @ spanning @ still.G + still.remap @ spanning @ jacobian_rate,
        rates=rates,
        velocity=velocity,
    )


def _articulated(objects: list[ClusterOperators], tau: Array) -> list[ClusterOperators]:
    """The operators with articulated inertias and bias forces, tips to base, (55), (56)."""
    inertia = [each.inertia for each in objects]
    bias = [each.bias for each in objects]
    result: list[ClusterOperators] = []
    for k in reversed(range(len(objects))):
        each = replace(
            objects[k],
            tau=tau[..., list(objects[k].dofs)],
            articulated_inertia=inertia[k],
            articulated_bias=bias[k],
        )
        result.append(each)
        if each.parent >= 0:
            left, push = each.across
            carried = transposed(each.X)
            inertia[each.parent] = inertia[each.parent] + carried @ left @ each.X
            bias[each.parent] = bias[each.parent] + times(carried, push)
    return result[::-1]
