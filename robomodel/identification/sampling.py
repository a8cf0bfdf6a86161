"""Configurations and motions at which to ask what parameters do, as arrays over samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robomodel.dynamics.kinematics.state import Configuration
from robomodel.model.configurations.random import random_cluster
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.scalars import stack, unstack
from robomodel.spatial import UNIT

STEPS = 3  # of at most 0.3 radians, or cluster sizes


def on_branch(model: Model, rng: np.random.Generator, count: int, start: Array) -> Array:
    """Closed configurations (count, nq) on the branch of ``start`` (nq,), a closed one.

    Loops depart from it by some short steps, each away from dead points, so that they cannot come
    to another branch; all else is anywhere.
    """
    q = np.empty((count, model.nq))
    for n, row in enumerate(q):
        for cluster in model.clusters:
            if not cluster.implicit:
                row[cluster.q] = random_cluster(model, cluster, rng, None)
                continue
            row[cluster.q] = start[cluster.q]
            for _ in range(1 + n % STEPS):
                row[cluster.q] = random_cluster(model, cluster, rng, row[cluster.q])
    return q


@dataclass(frozen=True)
class Samples:
    """Kinematics of all bodies at configurations, in internal axes, bodies that spin turned.

    ``steps[b]`` (n, 6, 6) takes the parent's motion to body b's, ``motions[b]`` (n, 6, nv of its
    cluster) are S G, ``rows[b]`` (n, joint's nv, nv of its cluster) its rows of G.
    """

    steps: list[Array]
    motions: list[Array]
    rows: list[Array]

    @classmethod
    def of(cls, model: Model, q: Array) -> Samples:
        """At configurations (n, nq)."""
        at = Configuration(model, unstack(q), range(len(model.nodes)))
        count, steps, motions, rows = len(q), [], [], []
        for body, node in enumerate(model.nodes):
            x = at.transforms[body]
            back = stack([e for unit in UNIT for e in x.unrotate(unit)], (count,))
            turn = np.swapaxes(back.reshape(count, 3, 3), 1, 2)  # columns: Rᵀ e
            step = np.zeros((count, 6, 6))
            step[:, :3, :3] = step[:, 3:, 3:] = turn
            step[:, 3:, :3] = -turn @ skews(stack(list(x.offset), (count,)))
            steps.append(step)
            width = model.clusters[node.cluster].nv
            columns = [e for motion in at.subspace(body) for e in motion.entries()]
            moved = stack(columns, (count,)).reshape(count, width, 6)
            motions.append(np.swapaxes(moved, 1, 2))
            entries = [e for r in node.freedoms for e in at.rows[r]]
            rows.append(stack(entries, (count,)).reshape(count, node.joint.nv, width))
        return cls(steps, motions, rows)


def skews(vectors: Array) -> Array:
    """[a]x of vectors (..., 3)."""
    return np.cross(np.eye(3), vectors[..., None, :])
