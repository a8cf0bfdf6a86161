"""Tangents of the configuration space: how positions change along each independent velocity.

Direction j is the motion along ``integrate(q, ε e_j)``: loops stay closed and quaternions of unit
length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from robomodel.kernels.trace import Operand, Traced
from robomodel.model.configurations.coordinates import joint_slices
from robomodel.model.elements import Cluster
from robomodel.model.joints import Floating, JointModel, Planar, Spherical
from robomodel.model.model import Model
from robomodel.scalars import Vector, add, mul, sincos, sub
from robomodel.spatial import Vec, cross, from_quaternion, inner, plus, scale

Direction: TypeAlias = dict[Traced, Operand]


def position_directions(model: Model, q: Sequence[Traced]) -> list[Direction]:
    """For every independent velocity, how q changes along it, and so known functions of q."""
    directions: list[Direction] = [{} for _ in range(model.nv)]
    for cluster in model.clusters:
        own = q[cluster.q]
        rows = cluster.constraint.jacobian(cluster.constraint.positions(own))
        for body, part, _ in joint_slices(model, cluster):
            node = model.nodes[body]
            first = node.v - cluster.spanning_v.start
            columns = zip(*rows[first : first + node.joint.nv], strict=True)
            for direction, rates in zip(directions[cluster.v], columns, strict=True):
                direction.update(_motion(node.joint, own[part], rates))
    return directions


def moving(model: Model, cluster: Cluster, q: Sequence[Traced], rates: Vector) -> Direction:
    """How a cluster's positions change at the robot's spanning velocities ``rates``."""
    own = q[cluster.q]
    direction: Direction = {}
    for body, part, _ in joint_slices(model, cluster):
        node = model.nodes[body]
        direction.update(_motion(node.joint, own[part], [rates[r] for r in node.freedoms]))
    return direction


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
