"""Random closed configurations, away from singularities and within limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robomodel.model import closure as newton
from robomodel.model.arguments import check_one_configuration
from robomodel.model.configurations.coordinates import columns_of, joint_slices
from robomodel.model.configurations.moving import is_closed, move
from robomodel.model.elements import Cluster
from robomodel.model.joints import Array
from robomodel.model.mobility.exploration import random_positions, regularity
from robomodel.model.mobility.problem import Column, column_limits, column_units

if TYPE_CHECKING:
    from numpy.random import Generator

    from robomodel.model.model import Model

REGULAR = 5e-2  # random configurations keep 1/‖G‖ above this share of what is typical


NEAR = 0.3


def random(model: Model, rng: Generator, near: Array | None) -> Array:
    """A closed configuration, away from singularities and within the limits where that can be."""
    if near is not None:
        check_one_configuration(near, "near")
    q = np.empty(model.nq)
    for cluster in model.clusters:
        at = None if near is None else near[cluster.q]
        q[cluster.q] = random_cluster(model, cluster, rng, at)
    return q


def random_cluster(model: Model, cluster: Cluster, rng: Generator, near: Array | None) -> Array:
    """A cluster's part of q, drawn; within the limits of all its joints where that can be."""
    columns = columns_of(model, cluster)
    if cluster.implicit:
        return _random_loops(model, cluster, columns, rng, near)
    geometry = cluster.geometry
    low, high = column_limits(columns)
    q = np.empty(cluster.q.stop - cluster.q.start)
    for _ in range(100):
        drawn = random_positions(geometry, columns, rng, 1, 1.0)[0]
        for body, at, _along in joint_slices(model, cluster):
            link = geometry.links[body - cluster.bodies[0]]
            if near is None:
                q[at] = drawn[link.q : link.q + link.joint.nq]
            else:
                q[at] = link.joint.integrate(near[at], rng.uniform(-NEAR, NEAR, link.joint.nv))
        spanning = np.array(cluster.constraint.positions(list(q)))
        reached = geometry.difference(geometry.zero(), spanning)
        if np.all((reached >= low) & (reached <= high)):
            break
    return q


def _random_loops(
    model: Model,
    cluster: Cluster,
    columns: list[Column],
    rng: Generator,
    near: Array | None,
) -> Array:
    geometry = cluster.geometry
    start = np.array(cluster.start)
    scale = geometry.scale
    unit = column_units(columns, scale)
    low, high = column_limits(columns)
    independent = list(cluster.columns)
    typical = float(regularity(geometry, start[None], unit, independent)[0])
    fallback = start if near is None else near
    # a few first, of which one soon closes (the common case), then larger batches with patience
    for count, iterations in ((8, 10), (32, 60), (128, 60)):
        if near is None:
            guesses = random_positions(geometry, columns, rng, count, scale)
            q, gap = newton.close(
                geometry, guesses, held=independent, rows=cluster.closing_rows,
                iterations=iterations,
            )  # fmt: skip
            loose = ~is_closed(geometry, q, gap)
            if np.all(loose):
                q, gap = newton.close(
                    geometry, guesses, rows=cluster.closing_rows, iterations=iterations
                )
        else:
            moves = rng.uniform(-NEAR, NEAR, (count, cluster.nv)) * unit[independent]
            q, gap = move(cluster, np.broadcast_to(near, (count, len(near))).copy(), moves)
        fine = is_closed(geometry, q, gap)
        fine &= regularity(geometry, q, unit, independent) >= REGULAR * max(typical, 0.05)
        if not np.any(fine):
            continue
        at = geometry.difference(np.broadcast_to(geometry.zero(), q.shape), q)
        inside = fine & np.all((at >= low - 1e-12) & (at <= high + 1e-12), axis=1)
        fallback = q[int(np.argmax(fine))]
        if np.any(inside):
            fallback = q[int(np.argmax(inside))]
            break
    polished, _ = newton.close(geometry, fallback[None], rows=cluster.closing_rows, iterations=3)
    result: Array = polished[0]
    return result
