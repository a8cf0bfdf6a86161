"""Derivatives of inverse and forward dynamics, by differentiating their traces.

Positions move in the tangent space of the configurations: direction j is the motion along
``integrate(q, ε e_j)``, so that loops stay closed and quaternions of unit length; v, a and tau, the
independent ones, stay. What a loop's G and g do when q moves is part of the trace, like all else.

Forward dynamics follows from inverse dynamics, ID(q, v, a) = tau: differentiated at the a that
solves it, M ∂a = -∂ID (Carpentier and Mansard, Analytical derivatives of rigid body dynamics
algorithms, RSS 2018).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from copy import copy
from typing import TypeAlias

from robomodel.dynamics.crba import crba
from robomodel.dynamics.rnea import bias_force, rnea
from robomodel.kernels.differentiate import along
from robomodel.kernels.trace import Operand, Trace, Traced
from robomodel.model.configuration import held
from robomodel.model.joints import Floating, JointModel, Planar, Spherical
from robomodel.model.model import WORLD, Model
from robomodel.scalars import Factorization, Scalar, Vector, add, dot, mul, neg, sincos, sub
from robomodel.spatial import UNIT, ZERO, Vec, Wrench, cross, from_quaternion, inner, plus, scale

Matrix: TypeAlias = list[list[Scalar]]
Direction: TypeAlias = dict[Traced, Operand]


def rnea_derivatives(
    model: Model,
    q: Sequence[Traced],
    v: Sequence[Traced],
    a: Vector,
    f_ext: Mapping[int, Wrench] | None = None,
) -> tuple[Matrix, Matrix, Matrix]:
    """∂tau/∂q, ∂tau/∂v and M (nv by nv) at traced q and v; ``a`` and ``f_ext`` count as constant.

    ``f_ext``: body → wrench on it, in its internal axes, in which it stays the same.
    """
    mass = crba(model, q)
    shifts = _shifts(model, q, v)
    columns = list(_columns(model, q, v, a, f_ext, shifts))
    for n, shift in shifts.items():
        columns[n] = [neg(dot(row, shift)) for row in mass]
    return _transposed(columns[: model.nv]), _transposed(columns[model.nv :]), mass


def aba_derivatives(
    model: Model,
    q: Sequence[Traced],
    v: Sequence[Traced],
    tau: Vector,
    f_ext: Mapping[int, Wrench] | None = None,
) -> tuple[Matrix, Matrix, Matrix]:
    """∂a/∂q, ∂a/∂v and M⁻¹ (nv by nv) at traced q and v; ``tau`` and ``f_ext`` count as constant.

    ``f_ext`` as in :func:`rnea_derivatives`. M is factored once, sparse as the tree's branches make
    it, for the accelerations, their derivatives, and M⁻¹.
    """
    nv, trace = model.nv, _trace(q)
    factors = Factorization(crba(model, q))
    bias = bias_force(model, q, v, f_ext)
    a = factors.solve([sub(t, b) for t, b in zip(tau, bias, strict=True)])
    shifts = _shifts(model, q, v)
    held_a = [trace.hold(x) for x in a]
    columns = _columns(model, q, v, held_a, f_ext, shifts)
    negative = copy(factors)  # of -M; held, so that the signs stay with the pivots
    negative.inverse_pivots = [trace.hold(neg(pivot)) for pivot in factors.inverse_pivots]
    solved = [shifts[n] if n in shifts else negative.solve(c) for n, c in enumerate(columns)]
    inverse: Matrix = [[0.0] * nv for _ in range(nv)]
    for j in range(nv):
        column = factors.solve([1.0 if i == j else 0.0 for i in range(nv)])
        for i in range(j + 1):  # the upper part alone is cheaper than the whole
            inverse[i][j] = inverse[j][i] = column[i]
    return _transposed(solved[:nv]), _transposed(solved[nv:]), inverse


def _columns(
    model: Model,
    q: Sequence[Traced],
    v: Sequence[Traced],
    a: Vector,
    f_ext: Mapping[int, Wrench] | None,
    but: Container[int],
) -> Iterator[list[Scalar]]:
    """Change of tau along each direction, those of q and then those of v, ``but`` some: zeros."""
    directions = position_directions(model, q)
    directions += [{x: 1.0} for x in v]
    wanted = [{} if n in but else direction for n, direction in enumerate(directions)]
    return along(_trace(q), rnea(model, q, v, a, f_ext), wanted)


def _trace(q: Sequence[Traced]) -> Trace:
    return q[0].trace if q else Trace()


def _transposed(columns: Sequence[Vector]) -> Matrix:
    return [list(row) for row in zip(*columns, strict=True)]


# ---- directions ----------------------------------------------------------------------------------


def position_directions(model: Model, q: Sequence[Traced]) -> list[Direction]:
    """For every independent velocity, how q changes along it, and so known functions of q."""
    directions: list[Direction] = [{} for _ in range(model.nv)]
    for cluster in model.clusters:
        own = q[cluster.q]
        rows = cluster.constraint.jacobian(cluster.constraint.positions(own))
        for body, part, _ in held(model, cluster):
            node = model.nodes[body]
            first = node.v - cluster.spanning_v.start
            columns = zip(*rows[first : first + node.joint.nv], strict=True)
            for direction, rates in zip(directions[cluster.v], columns, strict=True):
                direction.update(_motion(node.joint, own[part], rates))
    return directions


def _motion(joint: JointModel, q: Sequence[Traced], rates: Vector) -> Direction:
    """How a joint's positions change at these velocities."""
    match joint:
        case Planar():
            s, c = sincos(q[2])
            x, y, turn = rates
            along, aside = sub(mul(c, x), mul(s, y)), add(mul(s, x), mul(c, y))
            return {q[0]: along, q[1]: aside, q[2]: turn}
        case Spherical():
            return _turning(q, rates)
        case Floating():
            (rotation,), _ = joint.placement(q)
            slide = rotation.rotate((rates[3], rates[4], rates[5]))
            return dict(zip(q[:3], slide, strict=True)) | _turning(q[3:], rates[:3])
    return dict(zip(q, rates, strict=True))


def _turning(q: Sequence[Traced], rates: Vector) -> Direction:
    """A quaternion's change, q ω / 2, and its rotation matrix's, R [ω]x, which is the cheaper."""
    x, y, z, w = q
    omega: Vec = (rates[0], rates[1], rates[2])
    vector = scale(0.5, plus(scale(w, omega), cross((x, y, z), omega)))
    changes = dict(zip(q, (*vector, mul(-0.5, inner((x, y, z), omega))), strict=True))
    for row in from_quaternion(x, y, z, w).rows:
        changes |= dict(zip(row, cross(row, omega), strict=True))
    return changes


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
