"""C-RNEA, C-ABA and C-EFPA assembled from the clusters' operators (002, VI-VIII).

They equal :func:`robomodel.rnea`, :func:`robomodel.aba` and :func:`robomodel.efpa`, which are what
to compute with: here every matrix is dense.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics.kinematics.frames import FrameKey, FrameLike, frame_keys, place
from robomodel.model.arguments import as_array
from robomodel.model.graph import WORLD
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.papers.clusters.cluster_operators import ClusterOperators, operators
from robomodel.papers.matrices import frame_motion, solved, times, transposed


def base_acceleration(model: Model) -> Array:
    """That of the fixed base: against gravity, which then needs no term of its own (VI-A)."""
    return np.concatenate([np.zeros(3), -np.asarray(model.gravity, dtype=float)])


def cluster_accelerations(
    model: Model, objects: Sequence[ClusterOperators], a: Array
) -> list[Array]:
    """Spatial accelerations (..., 6n) of clusters at independent accelerations (..., nv), (33)."""
    found: list[Array] = []
    for o in objects:
        above = base_acceleration(model) if o.parent < 0 else found[o.parent]
        found.append(times(o.X, above) + times(o.S, a[..., list(o.dofs)]) + o.c)
    return found


def rnea(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Generalized forces (..., nv) by C-RNEA: (33) outwards, (31), (34) and (35) inwards."""
    wanted = as_array(a, model.nv, "a", "nv")
    objects = operators(model, q, v)
    accelerations = cluster_accelerations(model, objects, wanted)
    forces = [
        times(o.inertia, acceleration) + o.bias
        for o, acceleration in zip(objects, accelerations, strict=True)
    ]
    tau = np.zeros(np.broadcast_shapes(wanted.shape, (*forces[0].shape[:-1], model.nv)))
    for k in reversed(range(len(objects))):
        o = objects[k]
        inertia, bias = o.reflected
        own = times(inertia, wanted[..., list(o.dofs)]) + bias
        tau[..., list(o.dofs)] = times(transposed(o.S), forces[k]) + own
        if o.parent >= 0:
            forces[o.parent] = forces[o.parent] + times(transposed(o.X), forces[k])
    return tau


def aba(model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
    """Independent accelerations (..., nv) by C-ABA: (52) and (33), algorithm 1."""
    objects = operators(model, q, v, tau)
    accelerations: list[Array] = []
    parts: list[Array] = []
    for o in objects:
        above = base_acceleration(model) if o.parent < 0 else accelerations[o.parent]
        given = times(o.X, above) + o.c
        rates = solved(o.D, (o.u - times(transposed(o.U), given))[..., None])[..., 0]
        accelerations.append(given + times(o.S, rates))
        parts.append(rates)
    batch = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    result = np.zeros((*batch, model.nv))
    for o, part in zip(objects, parts, strict=True):
        result[..., list(o.dofs)] = part
    return result


def efpa(model: Model, q: ArrayLike, frames: FrameLike | Sequence[FrameLike]) -> Array:
    """The inverse operational-space inertia (..., 6k, 6k) of k frames by C-EFPA.

    Force propagators go inwards, (57), (62); the accelerations that unit forces at the frames give
    go outwards, (65)-(67), from the greatest common ancestor on.
    """
    zero = np.zeros(model.nv)
    objects = operators(model, q, zero, zero)
    ends = [_end_effector(model, key) for key in frame_keys(frames)]
    batch = objects[0].X.shape[:-2]
    propagators: list[dict[int, Array]] = [{} for _ in ends]  # χ by cluster, (57)
    for chi, (cluster, initial) in zip(propagators, ends, strict=True):
        at = cluster
        if at >= 0:
            chi[at] = np.broadcast_to(initial, (*batch, *initial.shape))
        while at >= 0 and objects[at].parent >= 0:
            o = objects[at]
            gain = solved(o.D, transposed(o.S) @ chi[at])
            chi[o.parent] = transposed(o.X) @ (chi[at] - o.U @ gain)  # (62)
            at = o.parent
    result = np.zeros((*batch, 6 * len(ends), 6 * len(ends)))
    for i, pushed in enumerate(propagators):
        moved: dict[int, Array] = {}  # Λ of (63): accelerations by unit forces at end-effector i
        for k in sorted(set().union(*propagators)):
            o = objects[k]
            above = moved.get(o.parent, np.zeros((*batch, o.X.shape[-1], 6)))
            free = o.X @ above
            push = transposed(o.S) @ pushed[k] if k in pushed else 0.0
            moved[k] = free + o.S @ solved(o.D, push - transposed(o.U) @ free)  # (67)
        for j, (cluster, initial) in enumerate(ends):
            if cluster >= 0:
                at_j = transposed(initial) @ moved[cluster]
                result[..., 6 * j : 6 * j + 6, 6 * i : 6 * i + 6] = at_j
    return result


def _end_effector(model: Model, key: FrameKey) -> tuple[int, Array]:
    """A frame's cluster, and its forces on that cluster's bodies (6n, 6), (57), (58)."""
    at = place(model, key)
    if at.body == WORLD:
        return WORLD, np.zeros((0, 6))
    cluster = model.clusters[model.nodes[at.body].cluster]
    result = np.zeros((6 * len(cluster.bodies), 6))
    first = 6 * cluster.bodies.index(at.body)
    result[first : first + 6] = transposed(frame_motion(model, at))
    return cluster.index, result
