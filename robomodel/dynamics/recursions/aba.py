"""Forward dynamics: the articulated-body algorithm over clusters (C-ABA)."""

from __future__ import annotations

from robomodel.dynamics.kinematics.state import NO_FORCES, Forces, State
from robomodel.dynamics.recursions.articulated import Elimination, articulate
from robomodel.model.graph import WORLD
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, sub
from robomodel.spatial import NO_MOTION, NO_WRENCH, ZERO, Motion, minus


def aba(model: Model, q: Vector, v: Vector, tau: Vector, f_ext: Forces = NO_FORCES) -> list[Scalar]:
    """Independent accelerations (nv) under the forces ``tau``; scalars of any kind (002, VII).

    Inwards, with the articulated inertias of :mod:`.recursions.articulated`: what hangs on a
    body acts on it with the bias wrench p + U D⁻¹ u, wrenches taken at the clusters' drifts (their
    accelerations at ÿ = 0 on unaccelerated supports). Outwards, D ÿ = u - Uᵀ a.
    """
    return accelerations(State(model, q, f_ext, v), tau, f_ext)


def accelerations(state: State, tau: Vector, f_ext: Forces) -> list[Scalar]:
    """The same of a state, whose subspaces are the accelerations' that are asked for."""
    model = state.model
    wrench = {
        body: inertia.gyroscopic(state.centripetal[body]) - f_ext.get(body, NO_WRENCH)
        for body, inertia in enumerate(state.inertia)
    }
    systems: dict[int, tuple[Elimination, list[Scalar]]] = {}
    for system in articulate(model, state):
        cluster = system.cluster
        drift: dict[int, Motion] = {}
        for body in cluster.bodies:
            inside = drift.get(model.nodes[body].parent, NO_MOTION)
            drift[body] = state.transforms[body].to_child(inside) + state.bias_acceleration(body)
            wrench[body] += system.inertia[body] * drift[body]
        forces = list(tau[cluster.v])
        for child in system.pending:
            right = systems.pop(child.cluster.index)[1]
            for body, supports in child.supports.items():
                right = [sub(r, u.dot(drift[body])) for r, u in zip(right, supports, strict=True)]
            forces += right
        own_bias = state.armature(cluster, [state.bias[cluster.spanning_v]])
        for i, (bias,) in enumerate(own_bias):
            forces[i] = sub(forces[i], bias)
        right = system.project(wrench, forces)
        if system.factors is not None:
            system.release(wrench, system.factors.reduce(right), forces)
        systems[cluster.index] = system, right
    base = Motion(ZERO, minus(ZERO, model.gravity))
    moving: list[Motion] = []
    ydd: list[Scalar] = [0.0] * model.nv
    for cluster in model.clusters:
        if cluster.index in systems:
            system, right = systems[cluster.index]
            for body, supports in system.supports.items():
                if system.alone:  # eliminated in its own axes
                    above = model.nodes[body].parent
                    at = state.transforms[body].to_child(base if above == WORLD else moving[above])
                else:
                    at = base if body == WORLD else moving[body]
                right = [sub(r, u.dot(at)) for r, u in zip(right, supports, strict=True)]
            assert system.factors is not None
            for i, x in zip(system.unknowns, system.factors.solve(right), strict=True):
                ydd[i] = x
        for body in cluster.bodies:
            above = model.nodes[body].parent
            moved = state.transforms[body].to_child(base if above == WORLD else moving[above])
            moved = moved + state.bias_acceleration(body)
            for motion, y in zip(state.subspace(body), ydd[cluster.v], strict=True):
                moved = moved + motion.scaled(y)
            moving.append(moved)
    return ydd
