"""What the coordinates of a model's clusters stand for: joints, columns, names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from robomodel.model.elements import Cluster
from robomodel.model.joints import Array, Planar
from robomodel.model.mobility.problem import Column, column_units

if TYPE_CHECKING:
    from robomodel.model.model import Model


def joint_slices(model: Model, cluster: Cluster) -> Iterator[tuple[int, slice, slice]]:
    """The bodies whose joint positions the cluster's q holds: body, where in it, and where in v.

    All bodies of a cluster with loops (whose part of v is then of no use), else the independent.
    """
    q, v = 0, cluster.v.start
    for body in cluster.bodies:
        joint = model.nodes[body].joint
        if cluster.implicit or model.joints[body].independent:
            yield body, slice(q, q + joint.nq), slice(v, v + joint.nv)
            q, v = q + joint.nq, v + joint.nv


def quaternions(model: Model) -> Iterator[tuple[str, slice]]:
    """The joints whose positions have a quaternion, by name, and where it is in q."""
    for cluster in model.clusters:
        for body, part, _ in joint_slices(model, cluster):
            if model.nodes[body].joint.nq != model.nodes[body].joint.nv:
                last = cluster.q.start + part.stop
                yield model.joints[body].name, slice(last - 4, last)


def columns_of(model: Model, cluster: Cluster) -> list[Column]:
    """The spanning velocities of a cluster, with their limits and units."""
    columns = []
    for i, body in enumerate(cluster.bodies):
        joint, node = model.joints[body], model.nodes[body]
        bounded = joint.type != "continuous" and joint.nv == 1
        limits = (joint.lower, joint.upper) if bounded else (-np.inf, np.inf)
        for motion in node.joint.subspace:
            length = any(motion.linear) and not any(motion.angular)
            columns.append(Column(joint.name, joint.name, i, None, False, False, length, limits))
    return columns


def units_of(model: Model, cluster: Cluster) -> Array:
    """By what a cluster's spanning velocities are divided to be comparable: radians, its size."""
    return column_units(columns_of(model, cluster), cluster.geometry.scale)


def position_names(model: Model) -> tuple[str, ...]:
    """A label for each of the nq positions; quaternions are .qx .qy .qz .qw."""
    names: list[str] = []
    for cluster in model.clusters:
        for body, _, _ in joint_slices(model, cluster):
            joint, name = model.nodes[body].joint, model.joints[body].name
            if joint.nq == 1:
                names.append(name)
                continue
            turn = ("angle",) if isinstance(joint, Planar) else ("qx", "qy", "qz", "qw")
            place = ("x", "y", "z")[: joint.nq - len(turn)]
            names += [f"{name}.{part}" for part in (*place, *turn)]
    return tuple(names)
