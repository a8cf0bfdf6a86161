"""Projection: open-tree algorithms on the spanning tree, projected on the independent velocities.

What the cluster algorithms are measured against (002, II): the same exact results from the mass
matrix H and bias forces of all joints, and the G and g of q̇ = G v, q̈ = G a + g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from robomodel.dynamics.kinematics.frames import Place, jacobian
from robomodel.dynamics.kinematics.state import NO_FORCES, Configuration, Forces, Matrix, State
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.rnea import rnea as inverse
from robomodel.model.closure import Geometry
from robomodel.model.constraints import OUTSIDE, Link, Unconstrained
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.scalars import Factorization, Scalar, Vector, dot, subtracted


@cached_on_model
def spanning_tree(model: Model) -> Model:
    """The same bodies and joints as an open tree: no loops, no couplings, every joint on its own.

    Bodies and joints keep their numbers, so that q and v are the robot's spanning positions and
    velocities. It is made once, and kept with the model.
    """
    clusters = []
    for body, (node, joint) in enumerate(zip(model.nodes, model.joints, strict=True)):
        q, v = slice(node.q, node.q + node.joint.nq), slice(node.v, node.v + node.joint.nv)
        link = Link(node.joint, node.rotations, node.offset, OUTSIDE, 0, 0)
        clusters.append(
            Cluster(
                name=node.name,
                index=body,
                parent=node.parent,
                bodies=(body,),
                joints=(joint.name,),
                outputs=(node.parent,),
                independent=(joint.name,),
                kind="joint",
                q=q,
                v=v,
                spanning_q=q,
                spanning_v=v,
                constraint=Unconstrained(node.joint.nv),
                geometry=Geometry((link,), (), ()),
                columns=tuple(range(node.joint.nv)),
                closing_rows=(),
                start=node.joint.neutral(),
            )
        )
    return replace(
        model,
        loops=(),
        couplings=(),
        clusters=tuple(clusters),
        nodes=tuple(replace(node, cluster=body) for body, node in enumerate(model.nodes)),
        joints=tuple(replace(joint, independent=True) for joint in model.joints),
    )


def rnea(model: Model, q: Vector, v: Vector, a: Vector, f_ext: Forces = NO_FORCES) -> list[Scalar]:
    """Tau = Gᵀ ID(q, G v, G a + g), with ID the inverse dynamics of the spanning tree."""
    state = State(model, q, f_ext, v)
    tree, qdd = spanning_tree(model), state.accelerations(a)
    return projected(state, inverse(tree, state.positions, state.velocities, qdd, f_ext))


def aba(model: Model, q: Vector, v: Vector, tau: Vector, f_ext: Forces = NO_FORCES) -> list[Scalar]:
    """The a of (Gᵀ H G) a = tau - Gᵀ (C + H g), by factorisation; C + H g = ID(q, G v, g)."""
    state = State(model, q, f_ext, v)
    tree, at = spanning_tree(model), state.positions
    bias = projected(state, inverse(tree, at, state.velocities, state.bias, f_ext))
    return Factorization(mass_matrix(state)).solve(subtracted(tau, bias))


def efpa(model: Model, q: Vector, places: Sequence[Place]) -> Matrix:
    """Λ⁻¹ = J G (Gᵀ H G)⁻¹ Gᵀ Jᵀ (6k by 6k) of k frames, with J G the frames' Jacobian."""
    factors = Factorization(mass_matrix(Configuration(model, q)))
    rows = [factors.reduce(row) for at in places for row in jacobian(model, q, at)]
    scaled = [factors.weighted(row) for row in rows]
    lower = [[dot(row, scaled[j]) for j in range(i + 1)] for i, row in enumerate(rows)]
    return [[lower[max(i, j)][min(i, j)] for j in range(len(rows))] for i in range(len(rows))]


def projected(state: Configuration, forces: Vector) -> list[Scalar]:
    """Gᵀ times forces on all joints."""
    tau: list[Scalar] = []
    for cluster in state.model.clusters:
        rows, own = state.rows[cluster.spanning_v], forces[cluster.spanning_v]
        tau += [dot(column, own) for column in zip(*rows, strict=True)]
    return tau


def mass_matrix(state: Configuration) -> Matrix:
    """M = Gᵀ H G, cluster by cluster of G's block diagonal; H from the spanning tree."""
    model = state.model
    h = crba(spanning_tree(model), state.positions)
    hg: Matrix = []  # rows of H G
    for row in h:
        hg.append([])
        for cluster in model.clusters:
            part, g = row[cluster.spanning_v], state.rows[cluster.spanning_v]
            hg[-1] += [dot(part, column) for column in zip(*g, strict=True)]
    mass: Matrix = [[0.0] * model.nv for _ in range(model.nv)]
    for cluster in model.clusters:
        g, part = state.rows[cluster.spanning_v], hg[cluster.spanning_v]
        for i, column in enumerate(zip(*g, strict=True), cluster.v.start):
            for j in range(i, model.nv):
                mass[i][j] = mass[j][i] = dot(column, [row[j] for row in part])
    return mass
