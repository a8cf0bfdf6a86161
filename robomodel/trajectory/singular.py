"""What kind of singular position a linkage is in or near, and what helps: for messages."""

from __future__ import annotations

import numpy as np

from robomodel.model.choice import best_at
from robomodel.model.configuration import columns_of
from robomodel.model.joints import Array
from robomodel.model.model import Cluster, Model


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
        return (
            "near a change point, where they may go on in more than one way, whichever joints are "
            "independent: keep the motion away from it, by joint limits or by another start"
        )
    labels = [column.joint for column in columns_of(model, cluster)]
    better = [labels[i] for i in best_at(motions)]
    said = f", as independent={better!r}" if all(labels.count(name) == 1 for name in better) else ""
    return (
        "near a dead point, where these rest while other joints move: load the robot with other "
        f"independent joints{said}"
    )


def _regularity(model: Model, cluster: Cluster, q: Array) -> tuple[Array, Array]:
    """How far K is from losing rank, and how much the independent joints move; all motions."""
    geometry = cluster.geometry
    assert geometry is not None
    scale = geometry.scale
    unit = np.array([scale if column.length else 1.0 for column in columns_of(model, cluster)])
    jacobian = geometry.evaluate(q)[1][list(cluster.closing_rows)] * unit
    _, singular, right = np.linalg.svd(jacobian)
    rank = geometry.nv - cluster.nv
    motions = right[rank:].T
    moved = np.linalg.svd(motions[list(cluster.columns)], compute_uv=False)[-1]
    return np.array([singular[rank - 1] / singular[0], moved]), motions
