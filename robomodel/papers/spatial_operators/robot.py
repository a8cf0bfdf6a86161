"""SKO models of robots: nodes are clusters, or the bodies of the spanning tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics.baselines.projection import spanning_tree
from robomodel.dynamics.kinematics.frames import FrameLike, body_wrenches, frame_keys, place
from robomodel.dynamics.kinematics.state import State
from robomodel.model.arguments import as_array
from robomodel.model.elements import Cluster
from robomodel.model.graph import WORLD
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.papers.matrices import (
    cross_matrix,
    from_rows,
    jacobian_rate,
    motion_matrix,
    transposed,
)
from robomodel.papers.spatial_operators.algebra import Adjacency, BlockDiagonal, PickOff, blockwise
from robomodel.papers.spatial_operators.operator import Space
from robomodel.papers.spatial_operators.sko import SKO
from robomodel.papers.spatial_operators.tree import ROOT, Tree
from robomodel.scalars import stack, unstack
from robomodel.spatial import NO_MOTION, NO_WRENCH, UNIT_MOTIONS, ZERO, Motion, minus


@dataclass(frozen=True, eq=False, kw_only=True)
class RobotOperators(SKO):
    """The SKO model of a robot at a state.

    Coordinate rates are v where nodes are clusters, all joints' velocities where they are bodies.
    A node's velocity stacks its bodies' (angular first, in internal axes, at their joints) and then
    the velocities of its joints that have an armature, which is an inertia of theirs alone.
    Accelerations are those of body-fixed points ("conventional"), gravity included.

    ``sites`` says where a body's six numbers stand: its node, and the first of them in the node.
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
            block[first : first + 6] = motion_matrix(at.pose).T
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

    ``nodes``: "clusters", whose coordinates are v; or "bodies", those of the spanning tree, as if
    it had no loops and couplings, whose coordinates are the velocities of all its joints. ``f_ext``
    as in :func:`robomodel.rnea`.
    """
    if nodes not in ("clusters", "bodies"):
        raise ValueError(f"nodes '{nodes}' are not known; 'clusters' and 'bodies' are")
    at = as_array(q, model.nq, "q", "nq")
    speed = np.zeros(model.nv) if v is None else as_array(v, model.nv, "v", "nv")
    forces = {link: as_array(w, 6, f"f_ext['{link}']", "6") for link, w in (f_ext or {}).items()}
    batch = np.broadcast_shapes(at.shape[:-1], speed.shape[:-1])
    everything = range(len(model.nodes))
    with np.errstate(all="ignore"):
        wrenches = body_wrenches(model, {link: unstack(w) for link, w in forces.items()})
        state = State(model, unstack(at), everything, unstack(speed))
        if nodes == "bodies":
            state = State(spanning_tree(model), state.positions, everything, state.velocities)
        carrier = [cluster.parent for cluster in state.model.clusters]
        tree = Tree(tuple(cluster.name for cluster in state.model.clusters), tuple(carrier))
        sites = {
            body: (cluster.index, 6 * i)
            for cluster in state.model.clusters
            for i, body in enumerate(cluster.bodies)
        }
        made = [_Node.at(state, cluster, sites, batch) for cluster in state.model.clusters]
        gyroscopic = [
            state.model.nodes[body].inertia.gyroscopic(state.centripetal[body])
            - wrenches.get(body, NO_WRENCH)
            for body in everything
        ]
        loads = np.broadcast_shapes(batch, *(w.shape[:-1] for w in forces.values()))
        bias = [
            stack(
                [
                    *(x for body in cluster.bodies for x in gyroscopic[body].entries()),
                    *[0.0] * len(node.geared),
                ],
                loads,
            )
            for cluster, node in zip(state.model.clusters, made, strict=True)
        ]
    space = Space(tree, tuple(node.inertia.shape[-1] for node in made))
    rates = Space(tree, tuple(cluster.nv for cluster in state.model.clusters))

    return RobotOperators(
        weights=_weights(space, tree, [node.carried for node in made]),
        H=blockwise(space, rates, lambda k: transposed(made[k].motions), "H"),
        M=blockwise(space, space, lambda k: made[k].inertia, "M"),
        a=space.join([node.drift for node in made]),
        b=space.join(bias),
        robot=model,
        sites=tuple(sites[body] for body in everything),
    )


def _weights(space: Space, tree: Tree, carried: Sequence[Array]) -> Adjacency:
    """𝓔 of what parents' bodies do to nodes' velocities; armatures' velocities do nothing."""
    blocks = []
    for k, parent in enumerate(tree.parents):
        rows = 0 if parent == ROOT else space.sizes[parent]
        padded = np.zeros((*carried[k].shape[:-1], rows))
        if rows:
            padded[..., : carried[k].shape[-1]] = carried[k]
        blocks.append(transposed(padded))
    return Adjacency(space, space, tuple(blocks))


def rates_along(
    operators: RobotOperators, q: Array, direction: Array
) -> tuple[Adjacency, BlockDiagonal]:
    """Derivatives of 𝓔 and H of a model of clusters at q along a velocity; M is constant.

    X of a body from its parent changes by -s × X, s the direction's velocity between the two; the
    explicit constraint Jacobian by :func:`robomodel.papers.matrices.jacobian_rate`.
    """
    model, space = operators.robot, operators.nodes
    batch = np.broadcast_shapes(q.shape[:-1], direction.shape[:-1])
    with np.errstate(all="ignore"):
        state = State(model, unstack(q), range(len(model.nodes)), unstack(direction))
        jacobian_rates = jacobian_rate(model, q, direction)
        pairs = [
            _node_rates(state, cluster, operators.sites, rate, batch)
            for cluster, rate in zip(model.clusters, jacobian_rates, strict=True)
        ]
    motions = blockwise(space, operators.rates, lambda k: transposed(pairs[k][1]), "H")
    return _weights(space, operators.tree, [carried for carried, _ in pairs]), motions


def _node_rates(
    state: State,
    cluster: Cluster,
    sites: Sequence[tuple[int, int]],
    jacobian_rate: Array,
    batch: tuple[int, ...],
) -> tuple[Array, Array]:
    """The derivatives of ``carried`` and ``motions`` of a node along the state's velocity."""
    model, bodies = state.model, cluster.bodies
    above = 0 if cluster.parent == WORLD else 6 * len(model.clusters[cluster.parent].bodies)
    geared = [r for b in bodies if model.nodes[b].armature for r in model.nodes[b].freedoms]
    size = 6 * len(bodies) + len(geared)
    carried, carried_rate = np.zeros((2, *batch, size, above))
    motions, motions_rate = np.zeros((2, *batch, size, cluster.nv))
    first_row = cluster.spanning_v.start
    for i, body in enumerate(bodies):
        node, x = model.nodes[body], motion_matrix(state.transforms[body], batch)
        apart = stack(state.relative[body].entries(), batch)
        rate, own = -cross_matrix(apart) @ x, slice(6 * i, 6 * i + 6)
        columns = [motion.entries() for motion in node.joint.subspace]
        subspace = from_rows(list(zip(*columns, strict=True)), (6, node.joint.nv))
        rows = [r - first_row for r in node.freedoms]
        g = from_rows([state.rows[r] for r in node.freedoms], (len(rows), cluster.nv), batch)
        if node.parent in bodies:
            first = 6 * bodies.index(node.parent)
            inside = slice(first, first + 6)
            for value, change in ((carried, carried_rate), (motions, motions_rate)):
                change[..., own, :] = rate @ value[..., inside, :] + x @ change[..., inside, :]
                value[..., own, :] = x @ value[..., inside, :]
        elif node.parent != WORLD:
            first = sites[node.parent][1]
            carried[..., own, first : first + 6] = x
            carried_rate[..., own, first : first + 6] = rate
        motions[..., own, :] += subspace @ g
        motions_rate[..., own, :] += subspace @ jacobian_rate[..., rows, :]
    motions_rate[..., 6 * len(bodies) :, :] = jacobian_rate[..., [r - first_row for r in geared], :]
    return carried_rate, motions_rate


@dataclass(frozen=True)
class _Node:
    """A cluster's blocks. ``carried``: what its parent's bodies' velocities do to its velocities.

    ``motions`` is S, from its independent velocities; ``drift`` its part of a. ``geared`` are the
    spanning velocities with an armature: rows of G on top of the bodies'.
    """

    carried: Array
    motions: Array
    drift: Array
    inertia: Array
    geared: list[int]

    @classmethod
    def at(
        cls,
        state: State,
        cluster: Cluster,
        sites: Mapping[int, tuple[int, int]],
        batch: tuple[int, ...],
    ) -> _Node:
        model, bodies = state.model, cluster.bodies
        base = Motion(ZERO, minus(ZERO, model.gravity))
        above = 0 if cluster.parent == WORLD else 6 * len(model.clusters[cluster.parent].bodies)
        armature = {
            r: model.nodes[body].armature
            for body in bodies
            for r in model.nodes[body].freedoms
            if model.nodes[body].armature
        }
        geared = list(armature)
        size = 6 * len(bodies) + len(geared)
        carried = np.zeros((*batch, size, above))
        motions = np.zeros((*batch, size, cluster.nv))
        inertia = np.zeros((size, size))
        drift: dict[int, Motion] = {}
        for i, body in enumerate(bodies):
            node, x = model.nodes[body], state.transforms[body]
            own, matrix = slice(6 * i, 6 * i + 6), motion_matrix(x, batch)
            if node.parent in drift:  # within the cluster
                first = 6 * bodies.index(node.parent)
                inside = slice(first, first + 6)
                carried[..., own, :] = matrix @ carried[..., inside, :]
                motions[..., own, :] = matrix @ motions[..., inside, :]
                moved = drift[node.parent]
            elif node.parent != WORLD:
                first = sites[node.parent][1]
                carried[..., own, first : first + 6] = matrix
                moved = NO_MOTION
            else:
                moved = base
            drift[body] = x.to_child(moved) + state.drift(body)
            columns = [motion.entries() for motion in state.subspace(body)]
            motions[..., own, :] += from_rows(
                list(zip(*columns, strict=True)), (6, cluster.nv), batch
            )
            inertia[own, own] = [[*(node.inertia * motion).entries()] for motion in UNIT_MOTIONS]
        fast = slice(6 * len(bodies), size)
        motions[..., fast, :] = from_rows(
            [state.rows[r] for r in geared], (len(geared), cluster.nv), batch
        )
        inertia[fast, fast] = np.diag(list(armature.values()))
        entries = [x for body in bodies for x in drift[body].entries()]
        entries += [state.bias[r] for r in geared]
        return cls(carried, motions, stack(entries, batch), inertia, geared)
