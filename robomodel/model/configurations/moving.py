"""Configurations of a whole model: closing, integrating, differences."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from robomodel.errors import ClosureError
from robomodel.model import closure as newton
from robomodel.model.arguments import common_batch
from robomodel.model.configurations.continuation import MOST, STEP, all_finite, is_closed, move
from robomodel.model.configurations.coordinates import joint_slices
from robomodel.model.configurations.failures import Failures, loop_names, normalized, not_closed
from robomodel.model.elements import Cluster
from robomodel.model.joints import Array, Mask

if TYPE_CHECKING:
    from robomodel.model.model import Model


def close(model: Model, q: Array) -> Array:
    """The nearest closed configuration; rows of a batch that have none are not-a-number."""
    failures = Failures(~all_finite(q))
    with np.errstate(all="ignore"):
        q = normalized(model, q, failures)
        for cluster in model.clusters:
            if not cluster.implicit:
                continue
            own = q[..., cluster.q]
            closed, gap = newton.close(
                cluster.closure, own, rows=cluster.closing_rows, nearest=True
            )
            bad = ~is_closed(cluster.closure, closed, gap)
            if np.any(bad):
                closed[bad], gap[bad] = newton.close(
                    cluster.closure, own[bad], rows=cluster.closing_rows
                )
                bad = ~is_closed(cluster.closure, closed, gap)
            failures.record(bad, partial(_left_open, cluster, gap, "from there"))
            q[..., cluster.q] = closed
    return failures.result(q, whole=False)


def _left_open(cluster: Cluster, gap: Array, what: str, bad: Mask) -> ClosureError:
    worst = float(np.max(gap[bad]))
    return not_closed(cluster, worst, what if math.isfinite(worst) else "where q is not finite")


def integrate(model: Model, q: Array, dv: Array, *, whole: bool = False) -> Array:
    """Move along dv, loops closed; rows of a batch that cannot are not-a-number.

    ``whole``: raise the error of any row instead.
    """
    batch = common_batch(q=q, v_dt=dv)
    q = np.broadcast_to(q, (*batch, model.nq)).copy()
    dv = np.broadcast_to(dv, (*batch, model.nv))
    failures = Failures(~(all_finite(q) & all_finite(dv)))
    with np.errstate(all="ignore"):
        for cluster in model.clusters:
            own = q[..., cluster.q]
            if cluster.implicit:
                moved, gap = move(cluster, own, dv[..., cluster.v])
                bad = ~is_closed(cluster.closure, moved, gap)
                failures.record(bad, partial(_not_followed, cluster, gap, dv[..., cluster.v]))
                q[..., cluster.q] = moved
                continue
            for body, at, along in joint_slices(model, cluster):
                own[..., at] = model.nodes[body].joint.integrate(own[..., at], dv[..., along])
            q[..., cluster.q] = own
    return failures.result(q, whole=whole)


def integrate_open(model: Model, q: Array, dv: Array) -> Array:
    """q (nq,) with its independent joints moved along dv, and the others of loops left behind.

    For what looks at independent joints alone, as :func:`difference` does: no loop is solved for.
    """
    q = q.copy()
    for cluster in model.clusters:
        own, along = q[cluster.q], dv[cluster.v]
        if cluster.implicit:
            assert cluster.geometry is not None
            motion = np.zeros(cluster.geometry.nv)
            motion[list(cluster.columns)] = along
            q[cluster.q] = cluster.geometry.integrate(own, motion)
            continue
        for body, at, part in joint_slices(model, cluster):
            q[cluster.q][at] = model.nodes[body].joint.integrate(own[at], dv[part])
    return q


def _not_followed(cluster: Cluster, gap: Array, dv: Array, bad: Mask) -> ClosureError:
    """Why a motion was not followed to its end."""
    worst = float(np.max(gap[bad]))
    if worst < np.inf:
        return not_closed(cluster, worst, "after this motion")
    far, most = float(np.max(np.abs(dv[bad]))), MOST * STEP
    why = (
        f"a motion by {far:.3g} (rad or m) is too long to be followed at once; go {most:g} at a "
        "time, or less"
        if most < far < math.inf
        else "q or the motion is not finite"
    )
    loops = ", ".join(f"'{name}'" for name in loop_names(cluster))
    return ClosureError(
        f"loops of cluster '{cluster.name}' ({loops}) cannot follow: {why}",
        worst,
        loop_names(cluster),
    )


def difference(model: Model, q0: Array, q1: Array) -> Array:
    """What integrate would need to lead from q0 to q1."""
    batch = common_batch(q0=q0, q1=q1)
    q0, q1 = (np.broadcast_to(q, (*batch, model.nq)) for q in (q0, q1))
    result = np.empty((*batch, model.nv))
    with np.errstate(all="ignore"):
        for cluster in model.clusters:
            a, b = q0[..., cluster.q], q1[..., cluster.q]
            if cluster.implicit:
                result[..., cluster.v] = cluster.closure.difference(a, b)[
                    ..., list(cluster.columns)
                ]
                continue
            for body, at, along in joint_slices(model, cluster):
                result[..., along] = model.nodes[body].joint.difference(a[..., at], b[..., at])
    return result
