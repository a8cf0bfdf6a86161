"""Forward dynamics: the articulated-body algorithm over clusters (C-ABA)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from robomodel.dynamics.kinematics import State
from robomodel.model.model import WORLD, Cluster, Model
from robomodel.scalars import Factorization, Scalar, Vector, add, mul, sub
from robomodel.spatial import (
    NO_MOTION,
    NO_WRENCH,
    ZERO,
    ArticulatedInertia,
    Motion,
    Wrench,
    minus,
)


@dataclass(frozen=True, slots=True)
class _Elimination:
    """The equations D ÿ + Σ_o U_oᵀ a_o = u of one cluster, o running over the bodies it hangs on.

    ``unknowns`` are indices into v: the cluster's own and those left over by child clusters that
    hang on several bodies of this one.
    """

    unknowns: list[int]
    matrix: list[list[Scalar]]
    right: list[Scalar]
    supports: dict[int, list[Wrench]]


def aba(
    model: Model, q: Vector, v: Vector, tau: Vector, f_ext: Mapping[int, Wrench] | None = None
) -> list[Scalar]:
    """Independent accelerations (nv) under the forces ``tau``; scalars of any kind (002, C7).

    Inwards, a cluster's bodies are joined to composites and its independent accelerations ÿ
    eliminated: what hangs on a body o then acts on it as I_o - U D⁻¹ Uᵀ and p_o + U D⁻¹ u. A
    cluster of one body is eliminated in its own axes, where Sᵀ I vanishes and rows drop out. A
    cluster that hangs on several bodies couples them, so its unknowns wait for the parent cluster's
    elimination. Outwards, D ÿ = u - Uᵀ a.
    """
    f_ext = f_ext or {}
    state = State(model, q, f_ext, v)
    inertia = [node.inertia.articulated() for node in model.nodes]
    wrench = [
        node.inertia.gyroscopic(state.centripetal[body]) - f_ext.get(body, NO_WRENCH)
        for body, node in enumerate(model.nodes)
    ]
    waiting: dict[int, list[_Elimination]] = {}
    systems: dict[int, _Elimination] = {}
    for cluster in reversed(model.clusters):
        system = _project(model, state, cluster, tau, inertia, wrench, waiting)
        if len(cluster.outputs) > 1:
            waiting.setdefault(cluster.parent, []).append(system)
            continue
        systems[cluster.index] = system
        if cluster.parent != WORLD:
            _eliminate(model, state, cluster, tau, system, inertia, wrench)
    base = Motion(ZERO, minus(ZERO, model.gravity))
    accelerations: list[Motion] = []
    ydd: list[Scalar] = [0.0] * model.nv
    for cluster in model.clusters:
        if cluster.index in systems:
            system = systems[cluster.index]
            right = list(system.right)
            for body, columns in system.supports.items():
                if body in cluster.bodies:  # eliminated in its own axes
                    x = state.transforms[body]
                    above = model.nodes[body].parent
                    at = x.to_child(base if above == WORLD else accelerations[above])
                else:
                    at = base if body == WORLD else accelerations[body]
                right = [sub(r, u.dot(at)) for r, u in zip(right, columns, strict=True)]
            for i, x_i in zip(
                system.unknowns, Factorization(system.matrix).solve(right), strict=True
            ):
                ydd[i] = x_i
        for body in cluster.bodies:
            above = model.nodes[body].parent
            moved = state.transforms[body].to_child(
                base if above == WORLD else accelerations[above]
            )
            moved = moved + state.drift(body)
            for motion, y in zip(state.subspace(body), ydd[cluster.v], strict=True):
                moved = moved + motion.scaled(y)
            accelerations.append(moved)
    return ydd


def _project(
    model: Model,
    state: State,
    cluster: Cluster,
    tau: Vector,
    inertia: list[ArticulatedInertia],
    wrench: list[Wrench],
    waiting: dict[int, list[_Elimination]],
) -> _Elimination:
    """Join the cluster's bodies into composites on the bodies it hangs on; project on ÿ.

    On the way ``inertia`` and ``wrench`` become those of composites, wrenches at the cluster's
    drift (its accelerations at ÿ = 0 on unaccelerated supports). A single body stays in its axes.
    """
    unknowns = list(range(cluster.v.start, cluster.v.stop))
    own = len(unknowns)
    right = list(tau[cluster.v])
    pending = waiting.pop(cluster.index, [])
    for system in pending:
        unknowns += system.unknowns
        right += system.right
    size = len(unknowns)
    matrix: list[list[Scalar]] = [[0.0] * size for _ in range(size)]
    columns: dict[int, list[Wrench]] = {}
    drift: dict[int, Motion] = {}
    for body in cluster.bodies:
        inside = drift.get(model.nodes[body].parent, NO_MOTION)
        drift[body] = state.transforms[body].to_child(inside) + state.drift(body)
        wrench[body] += inertia[body] * drift[body]
    first = own
    for system in pending:
        count = len(system.unknowns)
        for i in range(count):
            matrix[first + i][first : first + count] = system.matrix[i]
        for body, supports in system.supports.items():
            known = columns.setdefault(body, [NO_WRENCH] * size)
            for i, support in enumerate(supports):
                known[first + i] = known[first + i] + support
                right[first + i] = sub(right[first + i], support.dot(drift[body]))
        first += count
    alone = len(cluster.bodies) == 1
    for body in reversed(cluster.bodies):
        s = state.subspace(body)
        below = columns.pop(body, [NO_WRENCH] * size)
        total = [below[i] + inertia[body] * s[i] if i < own else below[i] for i in range(size)]
        for i in range(own):
            right[i] = sub(right[i], wrench[body].dot(s[i]))
            for j in range(size):
                matrix[i][j] = add(matrix[i][j], total[j].dot(s[i]))
        for i in range(size):
            for j in range(own):
                matrix[i][j] = add(matrix[i][j], below[i].dot(s[j]))
        if alone:
            columns[body] = total
            break
        parent, x = model.nodes[body].parent, state.transforms[body]
        known = columns.get(parent, [NO_WRENCH] * size)
        columns[parent] = [f + x.to_parent(g) for f, g in zip(known, total, strict=True)]
        if parent != WORLD:
            inertia[parent] += inertia[body].in_parent(x)
            wrench[parent] += x.to_parent(wrench[body])
    return _Elimination(unknowns, matrix, right, columns)


def _eliminate(
    model: Model,
    state: State,
    cluster: Cluster,
    tau: Vector,
    system: _Elimination,
    inertia: list[ArticulatedInertia],
    wrench: list[Wrench],
) -> None:
    """Give the body that the cluster hangs on its articulated inertia and bias wrench."""
    ((site, supports),) = system.supports.items()
    factorization = Factorization(system.matrix)
    reduced = list(supports)
    for k in reversed(range(len(reduced))):
        for i in range(k):
            reduced[i] = reduced[i] - reduced[k].scaled(factorization.lower[k][i])
    right = factorization.reduce(system.right)
    for u, inverse, r in zip(reduced, factorization.inverse_pivots, right, strict=True):
        inertia[site] = inertia[site].minus_outer(u, inverse)
        wrench[site] += u.scaled(mul(inverse, r))
    if site not in cluster.bodies:
        return
    node, x = model.nodes[site], state.transforms[site]
    directions = [_direction(motion) for motion in node.joint.subspace]
    if len(system.unknowns) == len(directions) and all(d is not None for d in directions):
        entries = list(wrench[site].entries())
        for direction, i in zip(directions, system.unknowns, strict=True):
            assert direction is not None
            entries[direction] = tau[i]  # Sᵀ p = tau, as Sᵀ I = 0
        inertia[site] = inertia[site].without(d for d in directions if d is not None)
        wrench[site] = Wrench(
            (entries[0], entries[1], entries[2]), (entries[3], entries[4], entries[5])
        )
    inertia[node.parent] += inertia[site].in_parent(x)
    wrench[node.parent] += x.to_parent(wrench[site])


def _direction(motion: Motion) -> int | None:
    """Which of the six unit motions this is, if it is one."""
    entries = motion.entries()
    ones = [i for i, x in enumerate(entries) if x == 1.0]
    return ones[0] if len(ones) == 1 and sum(x != 0.0 for x in entries) == 1 else None
