"""Forward dynamics: the articulated-body algorithm over clusters (C-ABA)."""

from __future__ import annotations

from robomodel.dynamics.kinematics.state import NO_FORCES, Forces, State
from robomodel.dynamics.recursions.articulated import ClusterElimination, articulate
from robomodel.mechanism.graph import WORLD
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector
from robomodel.spatial import NO_MOTION, NO_WRENCH, ZERO, Motion, minus


def aba(model: Model, q: Vector, v: Vector, tau: Vector, f_ext: Forces = NO_FORCES) -> list[Scalar]:
    """Independent accelerations (nv) under the forces ``tau``; scalars of any kind (002, VII).

    Inwards, with the articulated inertias of :mod:`.recursions.articulated`: a cluster acts on the
    body that carries it with the bias wrench p + U D⁻¹ u. Wrenches are taken at the clusters' bias
    motions (their accelerations at ÿ = 0 on unaccelerated supports). Outwards: D ÿ = u - Uᵀ a.
    """
    return accelerations(State(model, q, f_ext, v), tau, f_ext)


def accelerations(state: State, tau: Vector, f_ext: Forces) -> list[Scalar]:
    """Independent accelerations (nv) at a state, whose class may change S G, G and g."""
    model = state.model
    wrench = {
        body: inertia.gyroscopic(state.centripetal[body]) - f_ext.get(body, NO_WRENCH)
        for body, inertia in enumerate(state.inertia)
    }
    systems: dict[int, tuple[ClusterElimination, list[Scalar]]] = {}
    for system in articulate(model, state):
        cluster = system.cluster
        bias_motion: dict[int, Motion] = {}
        for body in cluster.bodies:
            parent_bias = bias_motion.get(model.nodes[body].parent, NO_MOTION)
            bias_motion[body] = state.transforms[body].to_child(
                parent_bias
            ) + state.bias_acceleration(body)
            wrench[body] += system.inertia[body] * bias_motion[body]
        forces = list(tau[cluster.v])
        for child in system.pending:
            right = systems.pop(child.cluster.index)[1]
            for body, supports in child.supports.items():
                right = [r - u.dot(bias_motion[body]) for r, u in zip(right, supports, strict=True)]
            forces += right
        armature_force = state.armature(cluster, [state.bias[cluster.spanning_v]])
        for i, (bias,) in enumerate(armature_force):
            forces[i] = forces[i] - bias
        right = system.project(wrench, forces)
        if system.factors is not None:
            system.release(wrench, system.factors.reduce(right), forces)
        systems[cluster.index] = system, right
    base = Motion(ZERO, minus(ZERO, model.gravity))
    acceleration: list[Motion] = []

    def carrier(body: int) -> Motion:
        return base if body == WORLD else acceleration[body]

    ydd: list[Scalar] = [0.0] * model.nv
    for cluster in model.clusters:
        if cluster.index in systems:
            system, right = systems[cluster.index]
            for body, supports in system.supports.items():
                if system.alone:  # eliminated in its own axes
                    at = state.transforms[body].to_child(carrier(model.nodes[body].parent))
                else:
                    at = carrier(body)
                right = [r - u.dot(at) for r, u in zip(right, supports, strict=True)]
            assert system.factors is not None
            for i, x in zip(system.unknowns, system.factors.solve(right), strict=True):
                ydd[i] = x
        for body in cluster.bodies:
            total = state.transforms[body].to_child(carrier(model.nodes[body].parent))
            total = total + state.bias_acceleration(body)
            for motion, y in zip(state.subspace(body), ydd[cluster.v], strict=True):
                total = total + motion.scaled(y)
            acceleration.append(total)
    return ydd
