"""Dynamics by other methods: on the spanning tree, and on open trees (002, II).

*Spanning tree.* The tree of all joints has the mass matrix H and the bias force C; with the G and g
of q̇ = G v, q̈ = G a + g, projection and Lagrange multipliers give the exact results that the
cluster algorithms are measured against.

*Open trees.* An open tree (:func:`robomodel.dynamics.lumped.approximate` or
:func:`~robomodel.dynamics.lumped.unconstrained`) moves with the exact positions and velocities of
the joints that it shares with the robot, q̇_k = G_k v and q̈_k = G_k a + g_k, at the state. Where
these are the independent joints, as with geared rotors, G_k is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from robomodel import showing
from robomodel.arrays import Array
from robomodel.description import Description
from robomodel.dynamics.kinematics.frames import FramePlacement, jacobian
from robomodel.dynamics.kinematics.state import NO_FORCES, Configuration, Forces, Matrix, State
from robomodel.dynamics.lumped import approximate, select, unconstrained
from robomodel.dynamics.recursions.aba import aba as forward_dynamics
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.efpa import contact as contact_inertia
from robomodel.dynamics.recursions.efpa import efpa as inverse_inertia
from robomodel.dynamics.recursions.passive import Arguments, Inner, passive_force
from robomodel.dynamics.recursions.reduced import reduced
from robomodel.dynamics.recursions.rnea import bias_force
from robomodel.dynamics.recursions.rnea import rnea as inverse_dynamics
from robomodel.dynamics.tree_map import TreeMap, mapped, solved
from robomodel.errors import few
from robomodel.mechanism.closure import Geometry
from robomodel.mechanism.constraints import OUTSIDE, Link, Unconstrained
from robomodel.model.build import build
from robomodel.model.derived import cache_key, cached_on_model, nominal
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    added,
    dot,
    gram,
    is_zero,
    subtracted,
    transposed,
)
from robomodel.spatial import ZERO, Transform
from robomodel.tolerances import SINGULAR

# ---- the trees -----------------------------------------------------------------------------------

TREES = {"tendons": "tendons_tree", "correction": "correction_tree"}
"""Functions of a room above by method; "correction" is that of :func:`correction_force`."""


@cached_on_model
def spanning_tree(model: Model) -> Model:
    """The same bodies and joints as an open tree: no loops, no couplings, every joint on its own.

    Bodies and joints keep their numbers, so that q and v are the robot's spanning positions and
    velocities.
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


@cached_on_model
def open_tree(model: Model, method: str) -> TreeMap:
    """The tree on which a method runs, with its relation to the robot."""
    if method == "projection":
        tree = spanning_tree(model)
        places = {
            body: FramePlacement(body, Transform((), ZERO)) for body in range(len(tree.nodes))
        }
        return TreeMap(tree, range(tree.nq), range(tree.nv), (), places, method)
    if method in TREES:
        other: TreeMap = showing.call(TREES[method], model)
        return other
    return mapped(model, build(DESCRIPTIONS[method](model)), method, select(model).dropped)


@cached_on_model
def corrected_tree(model: Model) -> TreeMap:
    """The tree that a correction is for: the written one, or that of :func:`corrected`."""
    tree: TreeMap = showing.call(TREES["correction"], model)
    return tree


@cached_on_model
def corrected(model: Model, tree: Model) -> Model:
    """The robot, whose correction is for this tree; its name distinguishes its kernels."""
    unshared = [joint.name for joint in tree.joints
                 if joint.independent and joint.name not in model.joint_names]  # fmt: skip
    if unshared or tree.loops:
        raise ValueError(
            f"tree: '{tree.name}' is no open tree of '{model.name}'"
            + (f", which has no joint {few(unshared)}" if unshared else ", it has loops")
        )
    result = replace(model, name=f"{model.name} {cache_key(tree, 'tree')}")
    result._derived[(corrected_tree,)] = mapped(result, tree, "tendons", ())
    return result


def reduced_tree(model: Model, method: str, algorithm: str) -> Model:
    """The robot, the inertias of its open tree regrouped where that takes fewer operations."""
    tree, result = open_tree(model, method), replace(model)
    result._derived[open_tree, method] = replace(tree, model=reduced(tree.model, algorithm))
    return result


# ---- on any of these trees -----------------------------------------------------------------------


def rnea(
    method: str, model: Model, q: Vector, v: Vector, a: Vector, f_ext: Forces = NO_FORCES
) -> list[Scalar]:
    """Inverse dynamics by a tree: tau = G_kᵀ ID(q_k, G_k v, G_k a + g_k)."""
    tree, state = open_tree(model, method), State(model, q, (), v)
    qdd = state.accelerations(a)
    tree_force = inverse_dynamics(
        tree.model,
        *tree.motion(state),
        [qdd[r] for r in tree.velocities],
        tree.wrenches(model, f_ext),
    )
    forces: list[Scalar] = [0.0] * model.n_joint_velocities
    for r, force in zip(tree.velocities, tree_force, strict=True):
        forces[r] = force
    return projected(state, forces)


def projected(state: Configuration, forces: Vector) -> list[Scalar]:
    """Gᵀ times forces on all joints."""
    tau: list[Scalar] = []
    for cluster in state.model.clusters:
        columns = zip(*state.rows[cluster.spanning_v], strict=True)
        tau += [dot(column, forces[cluster.spanning_v]) for column in columns]
    return tau


# ---- on open trees that stand for the robot ------------------------------------------------------


def aba(
    method: str, model: Model, q: Vector, v: Vector, tau: Vector, f_ext: Forces = NO_FORCES
) -> list[Scalar]:
    """Forward dynamics by an open tree: a = G_k⁻¹ (FD(q_k, G_k v, G_k⁻ᵀ tau) - g_k)."""
    tree, state = open_tree(model, method), State(model, q, (), v)
    forces = tree.forces(state, tau)
    qdd = forward_dynamics(tree.model, *tree.motion(state), forces, tree.wrenches(model, f_ext))
    a: list[Scalar] = []
    for part in tree.parts:
        rows = [state.rows[tree.velocities[i]] for i in part]
        a += solved(rows, [qdd[i] - state.bias[tree.velocities[i]] for i in part])
    return a


def efpa(method: str, model: Model, q: Vector, places: Sequence[FramePlacement]) -> Matrix:
    """Λ⁻¹ (6k by 6k) of the open tree at these frames, which does not depend on coordinates."""
    tree = open_tree(model, method)
    positions = model.spanning_positions(q)
    q_tree = [positions[i] for i in tree.positions]
    return inverse_inertia(tree.model, q_tree, tree.frames(model, places))


def contact(
    method: str, model: Model, q: Vector, places: Sequence[FramePlacement]
) -> tuple[Matrix, Matrix, Matrix]:
    """Λ⁻¹, J G_k and G_kᵀ M G_k, with the tree's of :func:`.recursions.efpa.contact`."""
    tree, state = open_tree(model, method), Configuration(model, q)
    q_tree = [state.positions[i] for i in tree.positions]
    inverse_mass, jacobian, mass = contact_inertia(tree.model, q_tree, tree.frames(model, places))

    def times_g(rows: Sequence[Vector]) -> Matrix:
        blocks = [
            (part, transposed(state.rows[tree.velocities[i]] for i in part)) for part in tree.parts
        ]
        return [
            [dot([row[i] for i in part], column) for part, columns in blocks for column in columns]
            for row in rows
        ]

    return inverse_mass, times_g(jacobian), times_g(transposed(times_g(mass)))


def correction_force(model: Model, q: Vector, v: Vector, tau: Vector) -> list[Scalar]:
    """Joint forces that the tree lacks: ID(q_k, G_k v, G_k a + g_k) - G_k⁻ᵀ tau, a the robot's."""
    tree, state = corrected_tree(model), State(model, q, (), v)
    qdd = state.accelerations(forward_dynamics(model, q, v, tau))
    needed = inverse_dynamics(tree.model, *tree.motion(state), [qdd[r] for r in tree.velocities])
    return subtracted(needed, tree.forces(state, tau))


def correction_passive(m: Model, x: Arguments, _: object, run: Inner) -> list[Scalar]:
    """The correction with the robot's springs and damping, less the tree's."""
    tree, state = corrected_tree(m), State(m, x["q"], (), x["v"])
    passive = passive_force(m, x["q"], x["v"])
    correction = run({**x, "tau": added(x["tau"], passive)})
    tree_passive = passive_force(tree.model, *tree.motion(state))
    return added(correction, subtracted(tree.forces(state, passive), tree_passive))


# ---- projection ----------------------------------------------------------------------------------


def projection_aba(
    model: Model, q: Vector, v: Vector, tau: Vector, f_ext: Forces = NO_FORCES
) -> list[Scalar]:
    """Forward dynamics: (Gᵀ H G) a = tau - Gᵀ (C + H g), with C + H g = ID(q, G v, g)."""
    state = State(model, q, f_ext, v)
    tree, at = spanning_tree(model), state.positions
    bias = projected(state, inverse_dynamics(tree, at, state.velocities, state.bias, f_ext))
    return Factorization(mass_matrix(state)).solve(subtracted(tau, bias))


def projection_efpa(model: Model, q: Vector, places: Sequence[FramePlacement]) -> Matrix:
    """Λ⁻¹ = J G (Gᵀ H G)⁻¹ Gᵀ Jᵀ (6k by 6k) of k frames, with J G the frames' Jacobian."""
    factors = Factorization(mass_matrix(Configuration(model, q)))
    rows = [factors.reduce(row) for at in places for row in jacobian(model, q, at)]
    return gram(rows, [factors.weighted(row) for row in rows])


def mass_matrix(state: Configuration) -> Matrix:
    """M = Gᵀ H G by the blocks of G, with the mass matrix H of the spanning tree."""
    model = state.model
    h = crba(spanning_tree(model), state.positions)
    hg = [projected(state, row) for row in h]  # H is symmetric
    mass: Matrix = [[0.0] * model.nv for _ in range(model.nv)]
    for cluster in model.clusters:
        columns = transposed(hg[cluster.spanning_v])
        for i, g in enumerate(transposed(state.rows[cluster.spanning_v]), cluster.v.start):
            for j in range(i, model.nv):
                mass[i][j] = mass[j][i] = dot(g, columns[j])
    return mass


# ---- multipliers ---------------------------------------------------------------------------------


def lagrange_aba(
    model: Model, q: Vector, v: Vector, tau: Vector, f_ext: Forces = NO_FORCES
) -> list[Scalar]:
    """Forward dynamics: independent q̈ of [H Kᵀ; K 0] [q̈; -λ] = [τ - C; k] (002, II-D).

    H = LᵀΛL keeps the sparsity that the tree's branches give it (Featherstone), and so do the
    columns Z = L⁻ᵀ Kᵀ and the system of the multipliers, (Zᵀ Λ⁻¹ Z) λ = k - Zᵀ Λ⁻¹ L⁻ᵀ (τ - C).
    The joints' forces τ are ``tau`` on the independent joints.
    """
    state = State(model, q, f_ext, v)
    tree, at, rates = spanning_tree(model), state.positions, state.velocities
    forces: list[Scalar] = [0.0] * tree.nv
    for cluster in model.clusters:
        for column, force in zip(cluster.columns, tau[cluster.v], strict=True):
            forces[cluster.spanning_v.start + column] = force
    right = subtracted(forces, bias_force(tree, at, rates, f_ext))
    k_matrix, k = conditions(model, at, rates)
    mass = crba(tree, at)
    _augment(mass, right, k_matrix, k, weights(nominal(model)))
    factors = Factorization(mass)
    y = factors.reduce(right)
    z = [factors.reduce(row) for row in k_matrix]
    scaled = [factors.weighted(row) for row in z]
    system = Factorization(gram(scaled, z))
    multipliers = system.solve([x - dot(row, y) for x, row in zip(k, scaled, strict=True)])
    for row, multiplier in zip(z, multipliers, strict=True):
        y = [x + multiplier * part for x, part in zip(y, row, strict=True)]
    qdd = factors.restore(y)
    return [qdd[c.spanning_v.start + column] for c in model.clusters for column in c.columns]


def conditions(model: Model, positions: Vector, velocities: Vector) -> tuple[Matrix, list[Scalar]]:
    """K and k of the whole robot, over all joints, one row for every dependent velocity."""
    rows: Matrix = []
    right: list[Scalar] = []
    for c in model.clusters:
        block, k = c.constraint.conditions(positions[c.spanning_q], velocities[c.spanning_v])
        for row in block:
            rows.append([0.0] * model.n_joint_velocities)
            rows[-1][c.spanning_v] = row
        right += k
    return rows, right


def _augment(
    mass: Matrix, right: list[Scalar], rows: Matrix, k: Vector, weight: Sequence[float]
) -> None:
    """Add Kᵀ W K to H and Kᵀ W k to the right-hand side, which leaves the solution as it is."""
    for row, value, w in zip(rows, k, weight, strict=True):
        for i, x in enumerate(row):
            if w and not is_zero(x):
                right[i] = right[i] + w * (x * value)
                for j, other in enumerate(row):
                    mass[i][j] = mass[i][j] + w * (x * other)


@cached_on_model
def weights(model: Model) -> tuple[float, ...]:
    """W, a weight for every condition: zero except in clusters where H is singular.

    H is singular where joints move no mass, as massless rods and cranks do. There W has the size of
    the cluster's inertia at the neutral configuration.
    """
    zero = [0.0] * model.n_joint_velocities
    at = model.spanning_positions([float(x) for x in model.neutral()])
    rows, _ = conditions(model, at, zero)
    mass = np.array(crba(spanning_tree(model), at), dtype=float).reshape(len(zero), len(zero))
    k_matrix = np.array(rows, dtype=float).reshape(len(rows), len(zero))
    w = np.zeros(len(rows))
    while (singular := _singular(mass + k_matrix.T @ (w[:, None] * k_matrix))) is not None:
        columns = next(c.spanning_v for c in model.clusters if singular < c.spanning_v.stop)
        coupled = np.any(k_matrix[:, columns] != 0.0, axis=1)
        if not np.any(coupled) or np.any(w[coupled]):
            break  # the robot's mass matrix itself is singular
        w[coupled] = float(np.mean(np.diag(mass)[columns])) or 1.0
    return tuple(w.tolist())


def _singular(matrix: Array) -> int | None:
    """The first variable whose pivot vanishes in elimination from the last one on, or None."""
    work = matrix.copy()
    for n in reversed(range(len(work))):
        pivot = work[n, n]
        if pivot <= SINGULAR * matrix[n, n]:
            return n
        work[:n, :n] -= np.outer(work[:n, n], work[n, :n]) / pivot
    return None


DESCRIPTIONS: dict[str, Callable[[Model], Description]] = {
    "approximate": approximate,
    "unconstrained": unconstrained,
    "independent": partial(approximate, lump=False),  # as 002, II-C: the rotors' mass is left out
}
