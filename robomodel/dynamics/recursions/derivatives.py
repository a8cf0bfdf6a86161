"""Derivatives of inverse and forward dynamics, along the tangents of the configurations.

Those of inverse dynamics by recursion (:mod:`.recursions.variations`). v, a and tau, the
independent ones, stay as positions move.

Forward dynamics follows from inverse dynamics, ID(q, v, a) = tau: differentiated at the a that
solves it, M ∂a = -∂ID (Carpentier and Mansard, Analytical derivatives of rigid body dynamics
algorithms, RSS 2018).
"""

from __future__ import annotations

from collections.abc import Sequence

from robomodel.dynamics.kinematics.state import NO_FORCES, Forces, Matrix
from robomodel.dynamics.recursions import variations
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.rnea import bias_force
from robomodel.kernels.trace import Trace, Traced
from robomodel.model.graph import WORLD
from robomodel.model.joints import Floating
from robomodel.model.model import Model
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    dot,
    mul,
    neg,
    subtracted,
    transposed,
)
from robomodel.spatial import UNIT, ZERO, cross


def rnea_derivatives(
    model: Model, q: Sequence[Traced], v: Sequence[Traced], a: Vector, f_ext: Forces = NO_FORCES
) -> tuple[Matrix, Matrix, Matrix]:
    """∂tau/∂q, ∂tau/∂v and M (nv by nv) at traced q and v; ``a`` and ``f_ext`` count as constant.

    ``f_ext``: body → wrench on it, in its internal axes, in which it stays the same.
    """
    mass = crba(model, q)
    shifts = _shifts(model, q, v)
    columns = _columns(model, q, v, a, f_ext)
    for n, shift in shifts.items():
        columns[n] = [neg(dot(row, shift)) for row in mass]
    return transposed(columns[: model.nv]), transposed(columns[model.nv :]), mass


def aba_derivatives(
    model: Model, q: Sequence[Traced], v: Sequence[Traced], tau: Vector, f_ext: Forces = NO_FORCES
) -> tuple[Matrix, Matrix, Matrix]:
    """∂a/∂q, ∂a/∂v and M⁻¹ (nv by nv) at traced q and v; ``tau`` and ``f_ext`` count as constant.

    ``f_ext`` as in :func:`rnea_derivatives`. M is factored once, sparse as the tree's branches make
    it, for the accelerations, their derivatives, and M⁻¹.
    """
    nv, trace = model.nv, _trace(q)
    factors = Factorization(crba(model, q))
    bias = bias_force(model, q, v, f_ext)
    a = factors.solve(subtracted(tau, bias))
    shifts = _shifts(model, q, v)
    constant_a = [trace.stop_gradient(x) for x in a]
    columns = _columns(model, q, v, constant_a, f_ext)
    lower = factors.unlower()
    # constants to the trace, so that signs stay with them
    negative = [trace.stop_gradient(neg(p)) for p in factors.inverse_pivots]
    solved = []
    for n, column in enumerate(columns):
        scaled = [mul(p, y) for p, y in zip(negative, factors.reduce(column), strict=True)]
        solved.append(shifts[n] if n in shifts else [dot(row, scaled) for row in lower])
    return transposed(solved[:nv]), transposed(solved[nv:]), factors.inverse()


def _columns(
    model: Model, q: Sequence[Traced], v: Sequence[Traced], a: Vector, f_ext: Forces
) -> Matrix:
    """Change of tau along each direction, those of q and then those of v."""
    matrices = variations.rnea_derivatives(model, q, v, a, f_ext)
    return [column for matrix in matrices for column in transposed(matrix)]


def _trace(q: Sequence[Traced]) -> Trace:
    return q[0].trace if q else Trace()


def _shifts(model: Model, q: Sequence[Traced], v: Vector) -> dict[int, list[Scalar]]:
    """Directions (of q, then of v) that merely shift a at given tau, with the shift.

    Where a body floats freely, its orientation and linear velocity act through the acceleration
    v̇ + ω x v - Rᵀ gravity of its origin alone, and its position not at all.
    """
    shifts: dict[int, list[Scalar]] = {}
    for cluster in model.clusters:
        node = model.nodes[cluster.bodies[0]]
        free = cluster.kind == "joint" and cluster.parent == WORLD
        if not (free and isinstance(node.joint, Floating)):
            continue
        down = node.transform(model.spanning_positions(q)).unrotate(model.gravity)
        first, linear = cluster.v.start, slice(cluster.v.start + 3, cluster.v.stop)
        wx, wy, wz = v[first : first + 3]
        for k in range(3):
            for n, change in (
                (first + k, cross(down, UNIT[k])),
                (first + 3 + k, ZERO),
                (model.nv + first + 3 + k, cross(UNIT[k], (wx, wy, wz))),
            ):
                shifts[n] = [0.0] * model.nv
                shifts[n][linear] = change
    return shifts
