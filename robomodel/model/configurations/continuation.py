"""Following a motion of the independent joints with the loops closed, on their branch.

Numerical continuation: steps along the tangent that are small enough to stay on the branch, each
closed by Newton's method with the independent joints where they shall be.
"""

from __future__ import annotations

import math

import numpy as np

from robomodel.model import closure as newton
from robomodel.model.closure import CLOSED, Geometry
from robomodel.model.elements import Cluster
from robomodel.model.joints import Array, Mask, Revolute
from robomodel.scalars import stack, unstack

STEP = 0.2  # largest motion of an independent joint between two closings
MOST = 2000  # closings on one way
FAR = 2 * math.pi  # whole turns are looked for in what is twice as long
PERIODIC = 1e-6  # gap that rounding may make of many turns, to be closed again


def is_closed(geometry: Geometry, q: Array, gap: Array) -> Mask:
    """Which configurations are closed, and not with an axis the wrong way round."""
    return (gap <= enough(q)) & np.isfinite(gap) & ~geometry.flipped(q)


def enough(q: Array, tolerance: float = CLOSED) -> Array:
    """The gap up to which configurations count as closed; it grows as their numbers' rounding."""
    return np.asarray(tolerance * np.maximum(1.0, np.max(np.abs(q), axis=-1, initial=0.0)))


def all_finite(x: Array) -> Mask:
    """Which rows hold nothing but numbers."""
    return np.asarray(np.isfinite(x).all(axis=-1))


def move(cluster: Cluster, q: Array, dv: Array) -> tuple[Array, Array]:
    """Move the independent columns by dv with the loops closed; the result and its largest gap.

    In steps small enough to stay on the branch; a gap on the way is a barrier, whatever is beyond.
    Rows that are not finite, or of which the way is too long to follow, have an infinite gap. Where
    one joint alone turns, and a turn of it comes back to where it began, whole turns are taken out.
    """
    batch = q.shape[:-1]
    at, dv = q.reshape(-1, q.shape[-1]).copy(), dv.reshape(-1, dv.shape[-1])
    origin, rest, gap = at.copy(), dv.copy(), np.full(len(at), np.inf)
    finite = all_finite(at) & all_finite(dv)
    _take_out_turns(cluster, at, rest, finite)
    steps = np.ceil(np.max(np.abs(rest), axis=1, initial=0.0) / STEP)
    rows = np.flatnonzero(finite & (steps <= MOST))
    if len(rows):
        begun = dv[rows] - rest[rows]
        count = max(1, int(np.max(steps[rows])))
        at[rows], gap[rows] = _follow(cluster, at[rows], origin[rows], begun, rest[rows], count)
    return at.reshape(*batch, at.shape[-1]), gap.reshape(batch)


def _follow(
    cluster: Cluster, q: Array, origin: Array, begun: Array, dv: Array, steps: int
) -> tuple[Array, Array]:
    """Rows moved by dv in so many steps; ``begun`` is how far q is from the origin already.

    A row that opens on its way stays where it does.
    """
    geometry = cluster.closure
    q, gap, rows = q.copy(), np.zeros(len(q)), np.arange(len(q))
    for step in range(1, steps + 1):
        at = q[rows]
        scalars = unstack(at)
        g = cluster.constraint.jacobian(scalars)
        rate = stack([x for row in g for x in row], at.shape[:-1])
        rate = rate.reshape(*at.shape[:-1], len(g), cluster.nv)
        guess = np.einsum("...ij,...j->...i", rate, dv[rows] / steps)
        guess = np.where(np.abs(guess) < 1.0, guess, 0.0)  # at a singular start: let Newton find it
        q[rows], left = newton.close(
            geometry,
            geometry.integrate(at, guess),
            rows=cluster.closing_rows,
            wanted=(cluster.columns, origin[rows], begun[rows] + dv[rows] * (step / steps)),
        )
        gap[rows] = np.maximum(gap[rows], left)
        rows = rows[left <= enough(q[rows])]
        if not len(rows):
            break
    return q, gap


def _take_out_turns(cluster: Cluster, q: Array, dv: Array, finite: Mask) -> None:
    """Turn q on by the whole turns of dv, leaving the rest of it, in rows where that can be had.

    Where one turn leads back to a configuration that differs by turns of other joints only, so does
    each further one. The shifted configuration is closed then, but for what rounding has grown to.
    """
    geometry = cluster.closure
    for n, column in enumerate(cluster.columns):
        if not _turns(geometry, column):
            continue
        others = np.delete(dv, n, axis=1)
        far = finite & (np.abs(dv[:, n]) > 2.0 * FAR) & np.all(others == 0.0, axis=1)
        rows = np.flatnonzero(far)
        if not len(rows):
            continue
        turn = np.zeros((len(rows), cluster.nv))
        turn[:, n] = np.copysign(2.0 * math.pi, dv[rows, n])
        count = int(np.ceil(2.0 * math.pi / STEP))
        start = q[rows]
        once, gap = _follow(cluster, start, start, np.zeros_like(turn), turn, count)
        turns = np.trunc(dv[rows, n] / turn[:, n])
        shifted = geometry.integrate(start, turns[:, None] * geometry.difference(start, once))
        fine = is_closed(geometry, once, gap) & (geometry.gap(shifted) <= PERIODIC)
        q[rows[fine]] = shifted[fine]
        dv[rows[fine]] -= (turns[:, None] * turn)[fine]


def _turns(geometry: Geometry, column: int) -> bool:
    """Whether a spanning velocity is that of a joint which turns about an axis."""
    joint = next(link.joint for link in geometry.links if link.v <= column < link.v + link.joint.nv)
    return isinstance(joint, Revolute)
