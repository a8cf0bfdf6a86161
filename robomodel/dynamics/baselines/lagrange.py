"""Forward dynamics with Lagrange multipliers on the spanning tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robomodel.dynamics.baselines.projection import spanning_tree
from robomodel.dynamics.kinematics.state import NO_FORCES, Forces, Matrix, State
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.rnea import bias_force
from robomodel.model.derived import cached_on_model
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.scalars import Factorization, Scalar, Vector, add, dot, is_zero, mul, sub, subtracted

SINGULAR = 1e-9  # a pivot of H below this share of its diagonal entry moves no mass


def aba(model: Model, q: Vector, v: Vector, tau: Vector, f_ext: Forces = NO_FORCES) -> list[Scalar]:
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
    system: Matrix = [[0.0] * len(z) for _ in z]
    for i, row in enumerate(scaled):
        for j in range(i + 1):
            system[i][j] = system[j][i] = dot(row, z[j])
    left = [sub(x, dot(row, y)) for x, row in zip(k, scaled, strict=True)]
    for row, multiplier in zip(z, Factorization(system).solve(left), strict=True):
        y = [add(x, mul(multiplier, part)) for x, part in zip(y, row, strict=True)]
    qdd = factors.restore(y)
    return [qdd[c.spanning_v.start + column] for c in model.clusters for column in c.columns]


def conditions(model: Model, positions: Vector, velocities: Vector) -> tuple[Matrix, list[Scalar]]:
    """K and k of the whole robot, over all joints, one row for every dependent velocity."""
    rows: Matrix = []
    right: list[Scalar] = []
    for c in model.clusters:
        own, k = c.constraint.conditions(positions[c.spanning_q], velocities[c.spanning_v])
        for row in own:
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
                right[i] = add(right[i], mul(w, mul(x, value)))
                for j, other in enumerate(row):
                    mass[i][j] = add(mass[i][j], mul(w, mul(x, other)))


@cached_on_model
def weights(model: Model) -> tuple[float, ...]:
    """W, a number for every condition: zero but in clusters where H alone would be singular.

    That is where joints move no mass of their own, as those of massless rods and cranks. There W is
    of the size of the cluster's inertia; such clusters are found at the neutral configuration.
    """
    zero = [0.0] * model.n_joint_velocities
    at = model.spanning_positions([float(x) for x in model.neutral()])
    rows, _ = conditions(model, at, zero)
    mass = np.array(crba(spanning_tree(model), at), dtype=float).reshape(len(zero), len(zero))
    k_matrix = np.array(rows, dtype=float).reshape(len(rows), len(zero))
    w = np.zeros(len(rows))
    while (singular := _singular(mass + k_matrix.T @ (w[:, None] * k_matrix))) is not None:
        own = next(
            c.spanning_v for c in model.clusters if singular in range(*c.spanning_v.indices(10**9))
        )
        here = np.any(k_matrix[:, own] != 0.0, axis=1)
        if not np.any(here) or np.any(w[here]):
            break  # it is the robot's own mass matrix that is singular
        w[here] = float(np.mean(np.diag(mass)[own])) or 1.0
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
