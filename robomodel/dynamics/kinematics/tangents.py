"""Tangents of the configuration space: how positions change along each independent velocity.

Direction j is the motion along ``integrate(q, ε e_j)``: loops stay closed and quaternions of unit
length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from robomodel.kernels.trace import Operand, Traced
from robomodel.model.elements import Cluster, joint_slices
from robomodel.model.joints import JointModel
from robomodel.model.model import Model
from robomodel.scalars import Vector
from robomodel.spatial import Vec, cross, from_quaternion

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
    """How a joint's positions change at these velocities.

    Where they have a quaternion also its rotation matrix, R [ω]x, which is the cheaper.
    """
    changes: Direction = dict(zip(q, joint.rates(q, rates), strict=True))
    if joint.nq != joint.nv:
        x, y, z, w = q[-4:]
        omega: Vec = (rates[0], rates[1], rates[2])
        for row in from_quaternion(x, y, z, w).rows:
            changes |= dict(zip(row, cross(row, omega), strict=True))
    return changes
