"""Passing change points: where K loses rank, and branches of a linkage's motion cross.

On its own branch a motion goes smoothly through such a point (a parallelogram that lies flat), but
G is found there from a singular system: with errors of about rounding / σ² at a distance at which
K's least singular value is the share σ of its greatest. So steps are laid so that no stage of
theirs comes too near: shortening them would do the opposite. Close by, each stage is brought to
closed loops before it is evaluated, since what the truncation error leaves open there would be
divided by σ too; its branch is that of the step's own prediction, that is, of the momentum.
"""

from __future__ import annotations

import math

import numpy as np

from robomodel.model import closure as newton
from robomodel.model.closure import CLOSED
from robomodel.model.configurations.functions import normalized
from robomodel.model.elements import Cluster
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.motion.integrator_functions import StepError
from robomodel.motion.tangent import kernel, linkages

START_CONDITION = 1e6  # condition of loops beyond which a start counts as singular
NEARLY = 30.0  # condition of loops from which on a step that fails may fail for them
EXACT = 1e-7  # singular values of K below this share are zero


def condition(model: Model, q: Array) -> tuple[float, Cluster | None]:
    """The worst condition of a cluster's K at q (nq,), and the cluster."""
    worst, where = 1.0, None
    for each in linkages(model):
        cluster = model.clusters[each.index]
        if not np.all(np.isfinite(q[cluster.q])):
            return math.inf, cluster
        share = float(kernel(each, q[cluster.q])[1])
        here = 1.0 / share if share > 0.0 else math.inf
        if here > worst or where is None:
            worst, where = here, cluster
    return worst, where


def closed_by_least_squares(model: Model, q: Array) -> Array:
    """Q with closed loops where K has lost rank: what the lost rows would say is left as it is."""
    q = q.copy()
    for cluster in model.clusters:
        q[cluster.q] = normalized(model, cluster, q[cluster.q].tolist())
        if cluster.implicit:
            own, gap = newton.close(
                cluster.geometry, q[cluster.q], rows=cluster.closing_rows, iterations=8, rank=1e-3
            )
            if not gap <= CLOSED:
                raise StepError(f"loops stay open by {float(gap):.3g} at a change point")
            q[cluster.q] = own
    return q


def advice(cluster: Cluster, q: Array) -> str:
    """What to do about a motion that cannot go on from q (nq,), which is near a change point."""
    own, ways = q[cluster.q], ""
    geometry = cluster.geometry
    singular = np.linalg.svd(geometry.evaluate(own)[1][list(cluster.closing_rows)])[1]
    rank = geometry.nv - cluster.nv
    if singular[rank - 1] < EXACT * singular[0] and cluster.nv == 1:
        found = branches(cluster, own)
        each = " or ".join(str(tuple(np.round(way, 3).tolist())) for way in found)
        ways = f" ({', '.join(cluster.joints)} as {each})" if len(found) else ""
    return (
        "near a change point, where they may go on in more than one way, whichever joints are "
        f"independent{ways}: start a little further on, on the branch that is wanted"
    )


def branches(cluster: Cluster, q: Array) -> Array:
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
