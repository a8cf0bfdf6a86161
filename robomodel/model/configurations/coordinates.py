"""What the coordinates of a model's clusters stand for: joints, columns, names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from robomodel.model.elements import Cluster
from robomodel.model.joints import Array, JointModel, Planar
from robomodel.model.mobility.problem import Column, column_units

if TYPE_CHECKING:
    from robomodel.model.model import Model


def joint_slices(model: Model, cluster: Cluster) -> Iterator[tuple[int, slice, slice]]:
    """The bodies whose joint positions a cluster's q holds: body, where in it and in their rates.

    All bodies of a cluster with loops, else the independent, whose rates are the cluster's v.
    """
    q = v = 0
    for body in cluster.bodies:
        joint = model.nodes[body].joint
        if cluster.implicit or model.joints[body].independent:
            yield body, slice(q, q + joint.nq), slice(v, v + joint.nv)
            q, v = q + joint.nq, v + joint.nv


def independent_rates(cluster: Cluster, along: slice) -> list[int | None]:
    """Where such rates of a joint are in v; None for those that depend on others in loops."""
    first, columns = cluster.v.start, range(along.start, along.stop)
    if not cluster.implicit:
        return [first + column for column in columns]
    own = cluster.columns
    return [first + own.index(column) if column in own else None for column in columns]


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


def position_labels(name: str, joint: JointModel) -> list[str]:
    """A label for each position of a joint; quaternions are .qx .qy .qz .qw."""
    if joint.nq == 1:
        return [name]
    axes = ["x", "y", "angle"] if isinstance(joint, Planar) else [*map(str, range(joint.nq))]
    if joint.nq != joint.nv:
        axes = ["x", "y", "z", "qx", "qy", "qz", "qw"][-joint.nq :]
    return [f"{name}.{axis}" for axis in axes]


def position_names(model: Model) -> tuple[str, ...]:
    """A label for each of the nq positions."""
    return tuple(
        label
        for cluster in model.clusters
        for body, _, _ in joint_slices(model, cluster)
        for label in position_labels(model.joints[body].name, model.nodes[body].joint)
    )
