"""Random spanning positions, and how well independent coordinates move a cluster."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from robomodel.model.closure import Geometry
from robomodel.model.clusters.problem import Column
from robomodel.model.joints import Array


def random_positions(
    geometry: Geometry,
    columns: Sequence[Column],
    rng: np.random.Generator,
    count: int,
    scale: float,
) -> Array:
    """Spanning positions drawn within the joints' limits, anywhere where there are none."""
    q = np.empty((count, geometry.nq))
    for n, link in enumerate(geometry.links):
        own = [column for column in columns if column.link == n]
        drawn = np.empty((count, link.joint.nv))
        for i, column in enumerate(own):
            reach = scale if column.length else math.pi
            low, high = column.limits
            low = max(low, high - 2 * reach if high < math.inf else -reach)
            high = min(high, low + 2 * reach)
            drawn[:, i] = rng.uniform(low, max(low, high), count)
        neutral = np.broadcast_to(np.array(link.joint.neutral()), (count, link.joint.nq))
        if link.joint.nq == link.joint.nv:
            q[:, link.q : link.q + link.joint.nq] = drawn
        else:
            q[:, link.q : link.q + link.joint.nq] = link.joint.integrate(neutral, drawn)
            quaternion = rng.standard_normal((count, 4))
            quaternion /= np.linalg.norm(quaternion, axis=1, keepdims=True)
            q[:, link.q + link.joint.nq - 4 : link.q + link.joint.nq] = quaternion
    return q


def conditioning(null: Array, columns: Sequence[int]) -> Array:
    """1/‖G‖-like measure of a choice of independent columns, at each sample: σ_min(N_I)."""
    return np.asarray(np.linalg.svd(null[:, list(columns), :], compute_uv=False)[:, -1])


def regularity(geometry: Geometry, q: Array, unit: Array, independent: Sequence[int]) -> Array:
    """How regular closed configurations (n, nq) are for these independent columns.

    1 where G is an isometry (in columns scaled by ``unit``), 0 where it blows up or K loses rank.
    """
    _, singular, right = np.linalg.svd(geometry.evaluate(q)[1] * unit)
    rank = geometry.nv - len(independent)
    null = np.swapaxes(right[:, rank:, :], 1, 2)
    weakest = singular[:, max(rank, 1) - 1]
    return np.where(weakest >= 1e-4 * singular[:, 0], conditioning(null, independent), 0.0)
