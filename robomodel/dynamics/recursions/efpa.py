"""Inverse operational-space inertia: extended force propagators over clusters (C-EFPA).

For frames, and for points in contact. Scalars of any kind.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.kinematics.frames import FramePlacement, joint_forces, pose
from robomodel.dynamics.kinematics.state import Configuration, Forces, Matrix, State
from robomodel.dynamics.recursions.aba import aba
from robomodel.dynamics.recursions.articulated import ClusterElimination, articulate
from robomodel.dynamics.recursions.crba import crba
from robomodel.mechanism.graph import WORLD
from robomodel.model.model import Model
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    dot,
    gram,
    select,
    transposed,
)
from robomodel.spatial import NO_WRENCH, UNIT_WRENCHES, ZERO, Wrench, apply, plus
from robomodel.tolerances import ROUNDING


def efpa(model: Model, q: Vector, places: Sequence[FramePlacement]) -> Matrix:
    """Λ⁻¹ = J M⁻¹ Jᵀ (6k by 6k) of k frames, each in its own axes, angular first (002, VIII)."""
    return mobility(*touched(model, q, places))


def efpa_factors(
    model: Model, q: Vector, places: Sequence[FramePlacement]
) -> tuple[Matrix, list[Scalar]]:
    """R (6k by nv) and p (nv) with Λ⁻¹ = R diag(p) Rᵀ."""
    return mobility_factors(*touched(model, q, places))


def touched(
    model: Model, q: Vector, places: Sequence[FramePlacement]
) -> tuple[Model, Configuration, list[tuple[int, Wrench]]]:
    """Arguments of :func:`mobility`: unit wrenches at each frame, in its axes, on its body."""
    wrenches = [(at.body, at.pose.to_parent(unit)) for at in places for unit in UNIT_WRENCHES]
    return model, Configuration(model, q, {at.body for at in places}), wrenches


def mobility_factors(
    model: Model, state: Configuration, wrenches: Sequence[tuple[int, Wrench]]
) -> tuple[Matrix, list[Scalar]]:
    """R and p with W M⁻¹ Wᵀ = R diag(p) Rᵀ; arguments as of :func:`mobility`.

    A row has the forces of its wrench on the freedoms, each as it is eliminated; p has the inverse
    pivots. k rows cost O(nv + k depth), without the k² entries of the product.
    """
    columns: list[dict[int, Wrench]] = [
        {} if body == WORLD else {body: NO_WRENCH - wrench} for body, wrench in wrenches
    ]
    rows: list[list[Scalar]] = [[] for _ in columns]
    pivots: list[Scalar] = []
    waiting: dict[int, dict[int, list[Scalar]]] = {}
    for system in articulate(model, state):
        waited = [(child, waiting.pop(child.cluster.index)) for child in system.pending]
        rights = _rights(system, columns, waited)
        if system.factors is None:
            waiting[system.cluster.index] = rights
            continue
        pivots += system.factors.inverse_pivots
        nothing: list[Scalar] = [0.0] * len(system.factors.inverse_pivots)
        for n in range(len(rows)):
            rows[n] += rights.get(n, nothing)
    return rows, pivots


def product(rows: Array, pivots: Array) -> Array:
    """R diag(p) Rᵀ (..., m, m), symmetric to the last digit."""
    result: Array = (rows * pivots[..., None, :]) @ np.swapaxes(rows, -1, -2)
    return (result + np.swapaxes(result, -1, -2)) / 2.0


def _rights(
    system: ClusterElimination,
    columns: Sequence[dict[int, Wrench]],
    waited: Sequence[tuple[ClusterElimination, dict[int, list[Scalar]]]],
) -> dict[int, list[Scalar]]:
    """Sᵀ χ of the columns that a cluster supports, reduced if it is eliminated; moves χ inwards."""
    rights: dict[int, list[Scalar]] = {}
    for n, wrench in enumerate(columns):
        if wrench.keys().isdisjoint(system.cluster.bodies) and all(n not in x for _, x in waited):
            continue
        forces: list[Scalar] = [0.0] * system.cluster.nv
        for child, child_rights in waited:
            forces += child_rights.get(n, [0.0] * len(child.unknowns))
        rights[n] = system.project(wrench, forces)
        if system.factors is not None:
            rights[n] = system.factors.reduce(rights[n])
            system.release(wrench, rights[n], forces)
    return rights


def mobility(
    model: Model,
    state: Configuration,
    wrenches: Sequence[tuple[int, Wrench]],
    freedoms: float = 6,
) -> Matrix:
    """W M⁻¹ Wᵀ, W v the powers of ``wrenches``, each on a body (or ``WORLD``) in its internal axes.

    A column is a wrench, carried inwards: the force propagator χ, which across a cluster becomes X*
    (1 - U D⁻¹ Sᵀ) χ. A cluster adds χ_aᵀ S D⁻¹ Sᵀ χ_b to all pairs of columns that it supports.
    If more than six columns meet on a body that more than ``freedoms`` freedoms carry, the body's
    six unit wrenches go on in their place: from their W M⁻¹ Wᵀ, complete at the end, follows what
    those freedoms add, χ_aᵀ (W M⁻¹ Wᵀ) χ_b. So k columns cost O(nv + k depth + k²).
    """
    columns: list[dict[int, Wrench]] = [  # bias wrenches by body: the forces' negatives
        {} if body == WORLD else {body: NO_WRENCH - wrench} for body, wrench in wrenches
    ]
    ahead: list[int] = []  # freedoms from a cluster inwards, its own included
    for cluster in model.clusters:
        ahead.append(cluster.nv + (0 if cluster.parent == WORLD else ahead[cluster.parent]))
    lower: list[list[Scalar]] = [[0.0] * (n + 1) for n in range(len(columns))]
    met: list[tuple[dict[int, Wrench], int]] = []  # replaced columns, index of the unit wrenches
    waiting: dict[int, dict[int, list[Scalar]]] = {}  # Sᵀ χ of clusters not yet eliminated
    for system in articulate(model, state):
        cluster = system.cluster
        waited = [(child, waiting.pop(child.cluster.index)) for child in system.pending]
        for body in cluster.bodies if ahead[cluster.index] > freedoms else ():
            here = {n: w[body] for n, w in enumerate(columns) if w.keys() == {body}}
            if len(here) > 6 and not any(n in child for n in here for _, child in waited):
                met.append((here, len(columns)))
                columns = [{} if n in here else w for n, w in enumerate(columns)]
                columns += [{body: unit} for unit in UNIT_WRENCHES]
                lower += [[0.0] * (n + 1) for n in range(len(lower), len(columns))]
        rights = _rights(system, columns, waited)
        if system.factors is None:
            waiting[cluster.index] = rights
            continue
        for a, right in rights.items():
            scaled = system.factors.weighted(right)
            for b in (b for b in rights if b <= a):
                lower[a][b] = lower[a][b] + dot(scaled, rights[b])

    def entry(a: int, b: int) -> Scalar:
        return lower[max(a, b)][min(a, b)]

    for here, first in reversed(met):
        units = range(first, first + 6)
        for a, propagator in here.items():
            weights = propagator.entries()
            mixed = [dot(weights, [entry(i, j) for j in units]) for i in units]
            for b, other in here.items():
                if b <= a:
                    lower[a][b] = lower[a][b] + dot(other.entries(), mixed)
            for c in set(range(first)) - here.keys():
                shared = dot(weights, [entry(i, c) for i in units])
                lower[max(a, c)][min(a, c)] = entry(a, c) + shared
    return [[entry(a, b) for b in range(len(wrenches))] for a in range(len(wrenches))]


# ---- points in contact ---------------------------------------------------------------------------


def contact(
    model: Model, q: Vector, places: Sequence[FramePlacement]
) -> tuple[Matrix, Matrix, Matrix]:
    """Λ⁻¹ (3k by 3k) and J (3k by nv) of k points' velocities in world axes, and M (nv by nv).

    Scalars of any kind.
    """
    state, forces, jacobian = _touched(model, q, places)
    return mobility(model, state, forces), jacobian, crba(model, q)


def contact_factors(
    model: Model, q: Vector, places: Sequence[FramePlacement]
) -> tuple[Matrix, list[Scalar], Matrix, Matrix]:
    """R and p with Λ⁻¹ = R diag(p) Rᵀ, J and M, as of :func:`contact`."""
    state, forces, jacobian = _touched(model, q, places)
    return *mobility_factors(model, state, forces), jacobian, crba(model, q)


def _touched(
    model: Model, q: Vector, places: Sequence[FramePlacement]
) -> tuple[Configuration, list[tuple[int, Wrench]], Matrix]:
    """Unit forces along the world's axes at each point, and the J of their generalised forces."""
    state = Configuration(model, q, {at.body for at in places})
    forces = point_forces(model, q, places)
    return state, forces, [joint_forces(model, state, body, x) for body, x in forces]


def point_forces(
    model: Model, q: Vector, places: Sequence[FramePlacement]
) -> list[tuple[int, Wrench]]:
    """Unit forces along the world's axes at each point, on its body."""
    return [
        (at.body, at.pose.to_parent(Wrench(ZERO, axis)))
        for at in places
        for axis in pose(model, q, at)[0]
    ]


def response(
    model: Model, q: Vector, places: Sequence[FramePlacement]
) -> tuple[Matrix, Matrix, Matrix]:
    """J M⁻¹ Jᵀ and J (3k by nv) of points' velocities in world axes, and M⁻¹ Jᵀ (nv by 3k).

    Rows of points that cannot move are zero: their rounding would be divided by.
    """
    return _response(model, q, places)[:3]


def _response(
    model: Model, q: Vector, places: Sequence[FramePlacement]
) -> tuple[Matrix, Matrix, Matrix, list[Scalar]]:
    """:func:`response`, and for each row 1, or 0 if its point cannot move."""
    _, _, jacobian = _touched(model, q, places)
    moves: list[Scalar] = []
    for i in range(0, len(jacobian), 3):
        entries = [x for row in jacobian[i : i + 3] for x in row]
        moves += [select(ROUNDING * ROUNDING - dot(entries, entries), 1.0, 0.0)] * 3
    jacobian = [[m * x for x in row] for m, row in zip(moves, jacobian, strict=True)]
    mass = Factorization(crba(model, q))
    reduced = [mass.reduce(row) for row in jacobian]
    scaled = [mass.weighted(row) for row in reduced]
    columns = [mass.back(row) for row in scaled]
    return gram(scaled, reduced), jacobian, transposed(columns), moves


def free_motion(
    model: Model,
    q: Vector,
    v: Vector,
    tau: Vector,
    f_ext: Forces,
    places: Sequence[FramePlacement],
) -> tuple[list[Scalar], Matrix, Matrix, list[Scalar], list[Scalar]]:
    """a without contact, J M⁻¹ Jᵀ and M⁻¹ Jᵀ, and the points' velocities and accelerations.

    The latter are zero for points that cannot move.
    """
    a = aba(model, q, v, tau, f_ext)
    inverse, _, columns, moves = _response(model, q, places)
    rates, accelerations = (
        [m * x for m, x in zip(moves, values, strict=True)]
        for values in touching(model, q, v, a, places)
    )
    return a, inverse, columns, rates, accelerations


def touching(
    model: Model, q: Vector, v: Vector, a: Vector, places: Sequence[FramePlacement]
) -> tuple[list[Scalar], list[Scalar]]:
    """(ċ, c̈), each (3k,): velocities and accelerations of points in world axes."""
    state = State(model, q, {at.body for at in places}, v)
    points = list(state.points(state.accelerations(a)))
    rates: list[Scalar] = []
    accelerations: list[Scalar] = []
    for at in places:
        if at.body == WORLD:
            rates += [0.0] * 3
            accelerations += [0.0] * 3
            continue
        world, _ = pose(model, q, at)
        rates += apply(world, at.pose.to_child(state.twists[at.body]).linear)
        accelerations += plus(apply(world, points[at.body].at(at.pose)), model.gravity)
    return rates, accelerations
