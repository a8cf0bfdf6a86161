"""Inverse dynamics: the recursive Newton–Euler algorithm over clusters (C-RNEA)."""

from __future__ import annotations

from robomodel.dynamics.kinematics.state import NO_FORCES, Forces, State
from robomodel.mechanism.graph import WORLD
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, dot
from robomodel.spatial import NO_WRENCH


def rnea(model: Model, q: Vector, v: Vector, a: Vector, f_ext: Forces = NO_FORCES) -> list[Scalar]:
    """Forces tau (nv) that produce the accelerations ``a``; scalars of any kind (002, VI).

    Outwards: spanning accelerations q̈ = G a + g cluster by cluster; each body's points accelerate
    with a + U r (:mod:`robomodel.spatial`). Inwards: the joint forces Sᵀ f of a cluster's bodies
    project on its independent coordinates, tau = Gᵀ (Sᵀ f + armature · q̈). ``f_ext``: body →
    wrench on it, in its internal axes. The base accelerates against gravity.
    """
    return forces_at(State(model, q, f_ext, v), a, f_ext)


def forces_at(state: State, a: Vector, f_ext: Forces = NO_FORCES) -> list[Scalar]:
    """The forces tau at a state."""
    model, qdd = state.model, state.accelerations(a)
    wrench = [
        inertia.newton_euler(points.linear, points.around) - f_ext.get(body, NO_WRENCH)
        for body, (inertia, points) in enumerate(zip(state.inertia, state.points(qdd), strict=True))
    ]
    tau: list[Scalar] = [0.0] * model.nv
    for cluster in reversed(model.clusters):
        joint_forces: list[Scalar] = []
        for body in reversed(cluster.bodies):
            node = model.nodes[body]
            joint_forces[:0] = [
                wrench[body].dot(s) + node.armature * qdd[r]
                for s, r in zip(node.joint.subspace, node.freedoms, strict=True)
            ]
            if node.parent != WORLD:
                wrench[node.parent] += state.transforms[body].to_parent(wrench[body])
        rows = state.rows[cluster.spanning_v]
        tau[cluster.v] = [dot(column, joint_forces) for column in zip(*rows, strict=True)]
    return tau


def bias_force(model: Model, q: Vector, v: Vector, f_ext: Forces = NO_FORCES) -> list[Scalar]:
    """The tau of zero acceleration: Coriolis, centrifugal, gravity and external forces."""
    return rnea(model, q, v, [0.0] * model.nv, f_ext)
