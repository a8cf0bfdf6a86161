"""Derivatives of inverse and forward dynamics, along the tangents of the configurations.

Those of inverse dynamics by recursion (:mod:`.recursions.variations`). v, a and tau, the
independent ones, stay as positions move.

Forward dynamics follows from inverse dynamics, ID(q, v, a) = tau: differentiated at the a that
solves it, M ∂a = -∂ID (Carpentier and Mansard, Analytical derivatives of rigid body dynamics
algorithms, RSS 2018).

Second derivatives of inverse dynamics, contracted with a vector: for exact Hessians.

φ = wᵀ rnea(q, v, a) is one number. Its first derivatives, by going backwards through the trace
once, take twice the operations of φ itself. They are then differentiated forward, of which two
things keep the work small: no joint meets one that is neither inwards nor outwards of it; and of
two that do meet, the outer one varies and the inner one's derivative is looked at, so that what
varies is the outer one's subtree, and what it does to the composite quantities further inwards.

Along q the second derivative is that of φ(integrate(q, δ)) at δ = 0. Joints whose motions do not
commute (balls, floating and planar ones) have the mean of both orders there.
"""

from __future__ import annotations

from collections.abc import Sequence

from robomodel.dynamics.kinematics.state import NO_FORCES, Forces, Matrix
from robomodel.dynamics.kinematics.tangents import Direction, position_directions
from robomodel.dynamics.recursions import variations
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.rnea import bias_force, rnea
from robomodel.kernels.differentiate import differentiate, gradient
from robomodel.kernels.trace import Trace, Traced
from robomodel.model.graph import WORLD
from robomodel.model.joints import Floating
from robomodel.model.model import Model
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    add,
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


def rnea_hessian_product(
    model: Model,
    q: Sequence[Traced],
    v: Sequence[Traced],
    a: Sequence[Traced],
    w: Vector,
    f_ext: Forces = NO_FORCES,
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """∂²φ/∂q∂q, ∂²φ/∂v∂v, ∂²φ/∂q∂v and ∂²φ/∂a∂q (nv by nv); φ is linear in a.

    ``f_ext``: body → wrench on it, in its internal axes, in which it stays the same.
    """
    nv = model.nv
    found: list[Matrix] = [[[0.0] * nv for _ in range(nv)] for _ in range(4)]
    qq, vv, qv, aq = found
    if not q:
        return qq, vv, qv, aq
    directions = position_directions(model, q)
    slopes = gradient(dot(w, rnea(model, q, v, a, f_ext)), [*q, *v, *a])
    by_v, by_a = slopes[model.nq : model.nq + nv], slopes[model.nq + nv :]
    by_q = [_along(direction, q, slopes[: model.nq]) for direction in directions]
    inwards: list[list[int]] = []  # of each cluster, its own freedoms and those that carry it
    for cluster in model.clusters:
        carriers = [] if cluster.parent == WORLD else inwards[cluster.parent]
        inwards.append(meet := [*carriers, *range(cluster.v.start, cluster.v.stop)])
        for k in range(cluster.v.start, cluster.v.stop):
            values = [column[j] for column in (by_q, by_v, by_a) for j in meet]
            first, second, third = (
                differentiate(q[0].trace, values[: n * len(meet)], [direction])[0]
                for n, direction in ((3, directions[k]), (2, {v[k]: 1.0}), (1, {a[k]: 1.0}))
            )
            for n, j in enumerate(meet):
                qq[j][k] = first[n]
                qv[k][j], qv[j][k] = first[n + len(meet)], second[n]
                aq[j][k], aq[k][j] = first[n + 2 * len(meet)], third[n]
                vv[j][k] = vv[k][j] = second[n + len(meet)]
        own = range(cluster.v.start, cluster.v.stop)
        for j in carriers:
            for k in own:
                qq[k][j] = qq[j][k]
        commute = all(model.nodes[body].joint.nv == 1 for body in cluster.bodies)
        for j in own:
            for k in range(j, cluster.v.stop):
                both = qq[j][k] if commute or j == k else mul(0.5, add(qq[j][k], qq[k][j]))
                qq[j][k] = qq[k][j] = both
    return qq, vv, qv, aq


def slopes_along(model: Model, q: Sequence[Traced], value: Scalar) -> Vector:
    """How fast a number made of q changes along each independent velocity."""
    slopes = gradient(value, q)
    return [_along(direction, q, slopes) for direction in position_directions(model, q)]


def _along(direction: Direction, q: Sequence[Traced], slopes: Vector) -> Scalar:
    """The derivative along a direction, of which positions alone count."""
    return dot([direction.get(x, 0.0) for x in q], slopes)
