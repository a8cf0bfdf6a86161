"""Forward dynamics in the coordinates of all joints, singular positions included.

With H and b of the spanning tree and the conditions K a = k on the accelerations of its joints,

    H a + b = τ + Kᵀ λ,  K a = k

has, where k is in the range of K and H is definite on K's kernel, one a at any rank of K, and among
the λ one of least norm. With P = 1 - K⁺ K, g = K⁺ k and any α > 0 it solves

    (P H P + α (1 - P)) a = P (τ - b - H g) + α g,  λ = K⁺ᵀ (H a + b - τ),

which asks nothing of the rank.
"""

from __future__ import annotations

from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics.baselines.projection import spanning_tree
from robomodel.dynamics.declaration import ForceOptions, documented
from robomodel.dynamics.functions.motion import bias_force, crba
from robomodel.errors import as_real
from robomodel.model.arguments import as_array, common_batch
from robomodel.model.configurations.states import check_finite
from robomodel.model.elements import velocity_units
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.scalars import stack, unstack


class Accelerations(NamedTuple):
    """Accelerations of all joints, and what the conditions on them are worth.

    Attributes:
        a: Accelerations (..., n_joint_velocities), in ``joint_names`` order, the base first.
        multipliers: Forces λ (..., n_constraints) of least norm along the rows of
            :meth:`robomodel.Model.constraint_matrix`.
        rank: Of these rows (...): less than elsewhere at a change point.
        residual: The largest entry (...) of K a - k, and of K v where that is larger: beyond
            rounding, the velocities are on no branch of the motion.
    """

    a: Array
    multipliers: Array
    rank: Array
    residual: Array


@documented
def accelerations(
    model: Model,
    q: ArrayLike,
    velocities: ArrayLike,
    tau: ArrayLike,
    *,
    tolerance: float = 1e-9,
    **options: Unpack[ForceOptions],
) -> Accelerations:
    """Forward dynamics of all joints from the velocities of all joints, at singular positions too.

    Where :func:`aba` takes the independent velocities, which do not say the motion at a dead point,
    and of which there are too few at a change point. States that are not finite, and those at which
    motions are free that move no mass, give not-a-number for themselves alone.

    At a change point a is that of the mechanism as free as K leaves it there, all of whose motions
    obey the conditions to second order; on one branch of them it may differ by what a third would
    say.

    Args:
        velocities: Velocities (..., n_joint_velocities) of every joint of the spanning tree, in
            ``joint_names`` order, the base first.
        tau: Forces (..., n_joint_velocities) on the same.
        tolerance: Singular values of a cluster's conditions below this share of the largest count
            as zero.

    Returns:
        accelerations: Accelerations, multipliers, rank and residual.

    Raises:
        ValueError: Arrays that do not fit, a ``tolerance`` that is not between 0 and 1; with
            ``check``, what is no state.
        UnknownNameError: A link that is not known.
    """
    share = as_real(tolerance, "tolerance")
    if not 0.0 < share < 1.0:
        raise ValueError(f"tolerance must be between 0 and 1, got {tolerance!r}")
    n = model.n_joint_velocities
    at = as_array(q, model.nq, "q", "nq")
    speed = as_array(velocities, n, "velocities", "n_joint_velocities")
    force = as_array(tau, n, "tau", "n_joint_velocities")
    batch = common_batch(q=at, velocities=speed, tau=force)
    if options.pop("check", False):
        model.check(at)
        for name, x in (("velocities", speed), ("tau", force)):
            check_finite(x, name, tuple(f"{name}[{i}]" for i in range(n)))
    spanning = stack(model.spanning_positions(unstack(at)), at.shape[:-1])
    tree = spanning_tree(model)
    mass = crba(tree, spanning, backend=options.get("backend", "compiled"))
    bias = bias_force(tree, spanning, speed, **options)
    jacobian = model.constraint_matrix(at)
    wanted = model.spanning_matrix_bias(at, speed)
    unit = np.ones(n)
    inverse = np.zeros((*at.shape[:-1], n, jacobian.shape[-2]))
    rank = np.zeros(at.shape[:-1], dtype=int)
    for cluster, rows in model.condition_rows():
        columns = cluster.spanning_v
        unit[columns] = velocity_units(model, cluster)
        block = jacobian[..., rows, columns] * unit[columns]
        finite = np.asarray(np.isfinite(block).all(axis=(-2, -1)))
        block = np.where(finite[..., None, None], block, 0.0)
        left, singular, right = np.linalg.svd(block, full_matrices=False)
        kept = singular > share * singular[..., :1]
        rank += np.sum(kept, axis=-1)
        turned = np.where(kept, 1.0 / np.where(kept, singular, 1.0), 0.0)
        found = np.einsum("...ki,...k,...jk->...ij", right, turned, left)
        found[~finite] = np.nan
        inverse[..., columns, rows] = found
    scaled = jacobian * unit
    g = np.einsum("...ij,...j->...i", inverse, wanted)
    inner = np.einsum("...ij,...jk->...ik", inverse, scaled)
    projector = np.eye(n) - inner
    heavy = mass * unit[:, None] * unit
    alpha = np.trace(heavy, axis1=-2, axis2=-1)[..., None] / max(n, 1)
    matrix = projector @ heavy @ projector + alpha[..., None] * inner
    left_over = unit * (force - bias) - np.einsum("...ij,...j->...i", heavy, g)
    right_side = np.einsum("...ij,...j->...i", projector, left_over) + alpha * g
    matrix, right_side = (
        np.broadcast_to(matrix, (*batch, n, n)),
        np.broadcast_to(right_side, (*batch, n)),
    )
    a = unit * _solved(matrix, right_side)
    lacking = unit * (np.einsum("...ij,...j->...i", mass, a) + bias - force)
    multipliers = np.einsum("...ij,...i->...j", inverse, lacking)
    off = np.einsum("...ij,...j->...i", jacobian, a) - wanted
    slip = np.einsum("...ij,...j->...i", jacobian, speed)
    held = [rows for _, rows in model.condition_rows()]
    told = [row for rows in held for row in rows]
    residual = np.maximum(
        np.max(np.abs(off[..., told]), axis=-1, initial=0.0),
        np.max(np.abs(slip[..., told]), axis=-1, initial=0.0),
    )
    return Accelerations(a, multipliers, np.broadcast_to(rank, batch).copy(), residual)


def _solved(matrix: Array, right: Array) -> Array:
    """Systems (..., n, n); not-a-number, each for itself, where one is singular."""
    finite = np.asarray(np.isfinite(matrix).all(axis=(-2, -1)) & np.isfinite(right).all(axis=-1))
    regular = np.where(finite[..., None, None], matrix, 0.0)
    good = finite & (np.linalg.cond(regular) < 1e14) if regular.shape[-1] else finite
    safe = np.where(good[..., None, None], regular, np.eye(matrix.shape[-1]))
    solution = np.linalg.solve(safe, np.where(good[..., None], right, 0.0)[..., None])[..., 0]
    return np.where(good[..., None], solution, np.nan)
