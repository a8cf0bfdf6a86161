"""What kind of singular position a linkage is in or near, and what helps: for messages."""

from __future__ import annotations

import numpy as np

from robomodel.model.configurations.coordinates import columns_of
from robomodel.model.elements import Cluster
from robomodel.model.joints import Array
from robomodel.model.mobility.exploration import best_columns
from robomodel.model.model import Model

EXACT = 1e-7  # singular values of K below this share are zero


def advice(model: Model, cluster: Cluster, q: Array) -> str:
    """What is singular at q (nq,), or nearly so, and what to do about it.

    At a dead point the independent joints rest while others move: others may be independent. At a
    change point K loses rank, and no choice of joints helps. Both are judged by comparison with the
    neutral configuration.
    """
    here, motions = _regularity(model, cluster, q[cluster.q])
    typical, _ = _regularity(model, cluster, np.array(cluster.start))
    weakest, share = here / np.maximum(typical, 1e-12)
    if weakest < share:
        ways = ""
        if here[0] < EXACT and cluster.nv == 1:
            found = branches(model, cluster, q[cluster.q])
            each = " or ".join(str(tuple(np.round(way, 3).tolist())) for way in found)
            ways = f" ({', '.join(cluster.joints)} as {each})" if len(found) else ""
        return (
            "near a change point, where they may go on in more than one way, whichever joints are "
            f"independent{ways}: start a little further on, on the branch that is wanted"
        )
    labels = [column.joint for column in columns_of(model, cluster)]
    better = [labels[i] for i in best_columns(motions)]
    said = f", as independent={better!r}" if all(labels.count(name) == 1 for name in better) else ""
    return (
        "near a dead point, where these rest while other joints move: load the robot with other "
        f"independent joints{said}"
    )


def branches(model: Model, cluster: Cluster, q: Array) -> Array:
    """Tangents (n, cluster's joint velocities) of the branches that cross at a change point.

    Of a cluster with one freedom elsewhere. A direction N y of the larger kernel is a tangent where
    what K has lost of its rank allows it to second order: yᵀ Q y = 0 for each of the left null
    vectors z of K, Q = Nᵀ (z · ∂²φ) N. Each is scaled to a largest component of 1.
    """
    geometry = cluster.geometry
    rows = list(cluster.closing_rows)
    jacobian = geometry.evaluate(q)[1][rows]
    left, singular, right = np.linalg.svd(jacobian)
    rank = int(np.sum(singular > EXACT * singular[0]))
    kernel, lost = right[rank:].T, left[:, rank:]

    def second(y: Array) -> Array:
        value: Array = -lost.T @ geometry.evaluate(q, kernel @ y)[2][rows]
        return value

    size = kernel.shape[1]
    unit = np.eye(size)
    forms = (
        np.array([[second(a + b) - second(a) - second(b) for b in unit] for a in unit]).transpose(
            2, 0, 1
        )
        / 2.0
    )
    rng = np.random.default_rng(20240610)
    found: list[Array] = []
    for start in rng.standard_normal((60, size)):
        y = start / np.linalg.norm(start)
        for _ in range(40):
            y = y - np.linalg.pinv(2.0 * forms @ y, rcond=1e-8) @ (forms @ y @ y)
            y = y / np.linalg.norm(y)
        if np.max(np.abs(forms @ y @ y), initial=0.0) > 1e-9:
            continue
        way = kernel @ y
        way = way / way[np.argmax(np.abs(way))]
        if all(np.max(np.abs(way - other)) > 1e-5 for other in found):
            found.append(way)
    found.sort(key=lambda way: np.round(way, 6).tolist())
    return np.array(found).reshape(-1, geometry.nv)


def _regularity(model: Model, cluster: Cluster, q: Array) -> tuple[Array, Array]:
    """How far K is from losing rank, and how much the independent joints move; all motions."""
    geometry = cluster.geometry
    scale = geometry.scale
    unit = np.array([scale if column.length else 1.0 for column in columns_of(model, cluster)])
    jacobian = geometry.evaluate(q)[1][list(cluster.closing_rows)] * unit
    _, singular, right = np.linalg.svd(jacobian)
    rank = geometry.nv - cluster.nv
    motions = right[rank:].T
    moved = np.linalg.svd(motions[list(cluster.columns)], compute_uv=False)[-1]
    return np.array([singular[rank - 1] / singular[0], moved]), motions
