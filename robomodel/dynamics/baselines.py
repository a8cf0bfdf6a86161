"""The same dynamics by other ways: on the spanning tree, and on open trees (002, II).

*Spanning tree.* The tree of all joints has the mass matrix H and the bias force C; with the G and g
of q̇ = G v, q̈ = G a + g, projection and Lagrange multipliers give the exact results that the
cluster algorithms are measured against.

*Open trees.* :func:`robomodel.model.approximate.approximate` or
:func:`~robomodel.model.approximate.unconstrained` of the robot takes the exact positions and
velocities of the joints that it has, q̇_k = G_k v and q̈_k = G_k a + g_k, at the state. Where these
are the independent joints, as with geared rotors, G_k is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from robomodel.description import Description
from robomodel.description.poses import compose, inverse
from robomodel.dynamics.approximation import with_reflected
from robomodel.dynamics.kinematics.frames import FramePlacement, jacobian
from robomodel.dynamics.kinematics.state import NO_FORCES, Configuration, Forces, Matrix, State
from robomodel.dynamics.recursions.aba import aba as forward_dynamics
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.efpa import contact as contact_inertia
from robomodel.dynamics.recursions.efpa import efpa as inverse_inertia
from robomodel.dynamics.recursions.passive import Arguments, Inner, passive_force
from robomodel.dynamics.recursions.reduced import reduced
from robomodel.dynamics.recursions.rnea import bias_force
from robomodel.dynamics.recursions.rnea import rnea as inverse_dynamics
from robomodel.model.approximate import (
    approximate,
    approximate_one,
    select,
    unconstrained,
    with_tendons,
)
from robomodel.model.build import build
from robomodel.model.closure import Geometry
from robomodel.model.constraints import OUTSIDE, Link, Unconstrained
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster, independent_rates, joint_slices
from robomodel.model.graph import WORLD
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    added,
    dot,
    gram,
    is_zero,
    solve,
    subtracted,
    transposed,
)
from robomodel.spatial import NO_WRENCH, ZERO, Transform, Wrench, factor

SINGULAR = 1e-9  # a pivot of H below this share of its diagonal entry moves no mass


# ---- the trees -----------------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class OpenTree:
    """An open tree that stands for a robot.

    ``positions`` and ``velocities`` are the robot's spanning coordinates that are the tree's, in
    its order; ``parts`` the tree's velocities by the robot's clusters. ``places``: where the axes
    of each of the robot's bodies stand in the tree, except of those that it leaves out.
    """

    model: Model
    positions: Sequence[int]
    velocities: Sequence[int]
    parts: tuple[tuple[int, ...], ...]
    places: Mapping[int, FramePlacement]
    method: str

    def place(self, model: Model, body: int) -> FramePlacement:
        """Where a body of the robot stands; ValueError for one that the tree leaves out."""
        if body == WORLD:
            return FramePlacement(WORLD, Transform((), ZERO))
        if body not in self.places:
            raise ValueError(
                f"method '{self.method}' leaves out the body '{model.bodies[body].name}' of "
                f"'{model.name}', so nothing can act on it; use an exact method"
            )
        return self.places[body]

    def frames(self, model: Model, places: Sequence[FramePlacement]) -> list[FramePlacement]:
        """Frames of the robot as frames of the tree."""
        frames = []
        for frame in places:
            place = self.place(model, frame.body)
            rotations = (*frame.pose.rotations, *place.pose.rotations)
            pose = Transform(rotations, place.pose.point(frame.pose.offset))
            frames.append(FramePlacement(place.body, pose))
        return frames

    def wrenches(self, model: Model, f_ext: Forces) -> dict[int, Wrench]:
        """Wrenches on the robot's bodies as wrenches on the tree's."""
        result: dict[int, Wrench] = {}
        for body, wrench in f_ext.items():
            place = self.place(model, body)
            if place.body != WORLD:
                total = result.get(place.body, NO_WRENCH)
                result[place.body] = total + place.pose.to_parent(wrench)
        return result

    def motion(self, state: State) -> tuple[list[Scalar], list[Scalar]]:
        """Positions and velocities of the tree's joints, q_k and G_k v."""
        q, v = state.positions, state.velocities
        return [q[i] for i in self.positions], [v[r] for r in self.velocities]

    def forces(self, state: Configuration, tau: Vector) -> list[Scalar]:
        """Forces G_k⁻ᵀ tau on the tree's joints."""
        forces: list[Scalar] = [0.0] * len(self.velocities)
        for cluster, part in zip(state.model.clusters, self.parts, strict=True):
            rows = [state.rows[self.velocities[i]] for i in part]
            for i, force in zip(part, _solved(transposed(rows), tau[cluster.v]), strict=True):
                forces[i] = force
        return forces


@cached_on_model
def open_tree(model: Model, method: str) -> OpenTree:
    """The tree of a method."""
    if method == "projection":
        tree = spanning_tree(model)
        places = {
            body: FramePlacement(body, Transform((), ZERO)) for body in range(len(tree.nodes))
        }
        return OpenTree(tree, range(tree.nq), range(tree.nv), (), places, method)
    return mapped(model, build(DESCRIPTIONS[method](model)), method)


def mapped(model: Model, tree: Model, method: str) -> OpenTree:
    """A tree, or a robot that is one in part, of joints of the model."""
    body_of = {joint.name: body for body, joint in enumerate(model.joints)}
    bodies: dict[int, int] = {}
    columns: dict[int, int] = {}  # of the robot's spanning velocities, by the tree's independent
    for cluster in tree.clusters:
        for n, _, along in joint_slices(tree, cluster):
            bodies[n] = body_of[tree.joints[n].name]
            rates = independent_rates(cluster, along)
            pairs = zip(rates, model.nodes[bodies[n]].freedoms, strict=True)
            columns |= {i: v for i, v in pairs if i is not None}
    velocities = [columns[i] for i in range(tree.nv)]
    nodes = [model.nodes[body] for body in bodies.values()]
    positions = [node.q + i for node in nodes for i in range(node.joint.nq)]
    parts = []
    for c in model.clusters:
        part = [i for i, v in enumerate(velocities) if c.spanning_v.start <= v < c.spanning_v.stop]
        parts.append(tuple(sorted(part, key=velocities.__getitem__)))
    places = {
        body: _place(model, body, tree)  # locked bodies' links stand on others
        for body in set(range(len(model.nodes))) - select(model).dropped
    }
    return OpenTree(tree, positions, velocities, tuple(parts), places, method)


def _place(model: Model, body: int, tree: Model) -> FramePlacement:
    """Where a body's internal frame stands in a tree that has its link."""
    name = model.nodes[body].name
    in_tree, in_robot = tree.frame(name), model.frame(name).placement
    if in_tree.placement == in_robot:
        return FramePlacement(in_tree.body, Transform((), ZERO))
    pose = compose(in_tree.placement, inverse(in_robot))
    return FramePlacement(in_tree.body, Transform(factor(pose.rotation), pose.xyz))


def approximated_in_part(model: Model, cluster: Cluster) -> Model:
    """The robot; its method "approximate" has this cluster alone as an open tree."""
    result = replace(model)
    tree = build(approximate_one(model, cluster))
    result.derived[open_tree, "approximate"] = mapped(model, tree, "approximate")
    return result


def reduced_tree(model: Model, method: str, algorithm: str) -> Model:
    """The robot, the inertias of its open tree regrouped where that takes fewer operations."""
    tree, result = open_tree(model, method), replace(model)
    result.derived[open_tree, method] = replace(tree, model=reduced(tree.model, algorithm))
    return result


def _solved(matrix: Sequence[Vector], right: Vector) -> list[Scalar]:
    """Matrix⁻¹ right; ``right`` itself where the matrix is structurally 1."""
    if all(
        type(x) is float and x == (1.0 if i == j else 0.0)
        for i, row in enumerate(matrix)
        for j, x in enumerate(row)
    ):
        return list(right)
    return [x for (x,) in solve(matrix, [[r] for r in right])]


# ---- on any of these trees -----------------------------------------------------------------------


def rnea(
    method: str, model: Model, q: Vector, v: Vector, a: Vector, f_ext: Forces = NO_FORCES
) -> list[Scalar]:
    """Tau = G_kᵀ ID(q_k, G_k v, G_k a + g_k), with ID the inverse dynamics of the tree."""
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
    """The a = G_k⁻¹ (FD(q_k, G_k v, G_k⁻ᵀ tau) - g_k), FD the forward dynamics of the open tree."""
    tree, state = open_tree(model, method), State(model, q, (), v)
    forces = tree.forces(state, tau)
    qdd = forward_dynamics(tree.model, *tree.motion(state), forces, tree.wrenches(model, f_ext))
    a: list[Scalar] = []
    for part in tree.parts:
        rows = [state.rows[tree.velocities[i]] for i in part]
        a += _solved(rows, [qdd[i] - state.bias[tree.velocities[i]] for i in part])
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
    """ID(q_k, G_k v, G_k a + g_k) - G_k⁻ᵀ tau, with the a of the robot: what the tree lacks."""
    tree, state = open_tree(model, "tendons"), State(model, q, (), v)
    qdd = state.accelerations(forward_dynamics(model, q, v, tau))
    needed = inverse_dynamics(tree.model, *tree.motion(state), [qdd[r] for r in tree.velocities])
    return subtracted(needed, tree.forces(state, tau))


def correction_passive(m: Model, x: Arguments, _: object, run: Inner) -> list[Scalar]:
    """The correction where springs and damping act on the robot, and the tree's own on the tree."""
    tree, state = open_tree(m, "tendons"), State(m, x["q"], (), x["v"])
    passive = passive_force(m, x["q"], x["v"])
    correction = run({**x, "tau": added(x["tau"], passive)})
    tree_passive = passive_force(tree.model, *tree.motion(state))
    return added(correction, subtracted(tree.forces(state, passive), tree_passive))


# ---- projection ----------------------------------------------------------------------------------


def projection_aba(
    model: Model, q: Vector, v: Vector, tau: Vector, f_ext: Forces = NO_FORCES
) -> list[Scalar]:
    """The a of (Gᵀ H G) a = tau - Gᵀ (C + H g), by factorisation; C + H g = ID(q, G v, g)."""
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
    """M = Gᵀ H G, cluster by cluster of G's block diagonal; H from the spanning tree."""
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
    """The independent part of the q̈ of [H Kᵀ; K 0] [q̈; -λ] = [τ - C; k] (002, II-D).

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
    _augment(mass, right, k_matrix, k, weights(model))
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
    """W, a number for every condition: zero but in clusters where H alone would be singular.

    That is where joints move no mass of their own, as those of massless rods and cranks. There W is
    of the size of the cluster's inertia, as it is at the neutral configuration.
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
    """The first variable, from the last on, whose pivot vanishes in elimination; None if none's."""
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
    "tendons": lambda model: with_reflected(model, with_tendons(model)),
}
