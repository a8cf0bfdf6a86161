"""Passing change points: where K loses rank, and branches of a linkage's motion cross.

On its own branch a motion goes smoothly through such a point (a parallelogram that lies flat), but
G is found there from a singular system: with errors of about rounding / σ² at a distance at which
K's least singular value is the share σ of its norm. So steps are laid so that no stage of theirs
comes too near: shortening them would do the opposite. Close by, each stage is brought to closed
loops before it is evaluated, since what the truncation error leaves open there would be divided by
σ too; its branch is that of the step's own prediction, that is, of the momentum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robomodel.model import closure as newton
from robomodel.model.closure import CLOSED
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.motion.integrator_functions import closing, position_rates

ROUNDING = 1e-13  # gaps below this are rounding, and left alone
REACH = 3.0  # K turns by no more than this much of what the joints do
HALVINGS = 20
BLURRED = 1e-3  # distance below which G is told from neighbours, and loops close by least squares


class StepError(Exception):
    """A step that comes to nothing, and why."""


class NearError(StepError):
    """A stage that is too near to a change point."""


def settle(model: Model, q: Array) -> tuple[Array, Array]:
    """q (nq,) with unit quaternions and closed loops, independent joints held; and its systems.

    Those are what :func:`condition` and :func:`turned` look at. Raises :class:`StepError`.
    """
    newton = closing(model)
    before = math.inf
    for _ in range(20):
        found = newton.function(q)
        gaps = found[newton.gaps]
        gap = float(np.max(np.abs(gaps))) if len(gaps) else 0.0
        q = found[: model.nq]
        if gap <= ROUNDING or (gap <= CLOSED and gap >= before):
            return q, found[newton.gaps.stop :]
        if not math.isfinite(gap):
            break
        before = gap
    raise StepError(
        f"loops stay open by {gap:.3g}: it is too long, or leads out of what they reach"
    )


def systems_of(model: Model, found: Array) -> list[tuple[int, Array, float]]:
    """Cluster, matrix of the dependent velocities and norm of all its rows, block by block."""
    newton = closing(model)
    first = newton.gaps.stop
    result = []
    for cluster, (m, n), start in newton.blocks:
        at = start - first
        matrix = found[at : at + m * n].reshape(m, n)
        result.append((cluster, matrix, math.sqrt(found[at + m * n])))
    return result


def condition(model: Model, found: Array) -> tuple[float, int]:
    """How near a singular position is, 1 or more, and the cluster of which this is said."""
    worst, where = 1.0, -1
    for cluster, matrix, norm in systems_of(model, found):
        if not np.all(np.isfinite(matrix)):
            return math.inf, cluster
        smallest = float(np.linalg.svd(matrix, compute_uv=False)[-1])
        here = norm / smallest if smallest > 0.0 else math.inf
        if here > worst or where < 0:
            worst, where = here, cluster
    return worst, where


def distance(model: Model, found: Array) -> float:
    """The distance σ from a change point; 1 where nothing is near, and without loops."""
    return 1.0 / condition(model, found)[0] if len(found) else 1.0


def turned(model: Model, before: Array, after: Array) -> int | None:
    """A cluster of which a system's determinant has changed its sign, if there is one."""
    for (cluster, a, _), (_, b, _) in zip(
        systems_of(model, before), systems_of(model, after), strict=True
    ):
        if np.linalg.det(a.T @ b) < 0.0:
            return cluster
    return None


class CrossedError(StepError):
    """A step that leads over to another way to close the loops of ``cluster``."""

    def __init__(self, cluster: int) -> None:
        self.cluster = cluster
        super().__init__("it leads beyond a singular position")


@dataclass
class Care:
    """What is done at the stages of steps that may come near to a change point.

    ``least``: the distance that they must keep.
    """

    model: Model
    least: float

    def settled(self, q: Array) -> Array:
        """Q with closed loops; :class:`NearError` where that is too near."""
        try:
            at, found = settle(self.model, q)
        except StepError as error:
            raise NearError(str(error)) from None
        if distance(self.model, found) < self.least:
            raise NearError("it comes too near to a change point")
        return at


def may_meet(model: Model, x: Array, h: float, found: Array) -> bool:
    """Whether a step of length h from x, with the systems ``found``, may come near one."""
    if not len(found):
        return False
    q, v = x[: model.nq], x[model.nq :]
    speed = float(np.max(np.abs(position_rates(model)(q, v)), initial=0.0))
    return distance(model, found) < REACH * h * speed


def passes(model: Model, before: Array, after: Array) -> bool:
    """Whether a branch leads from one q through a singular position to the other.

    Between the two, where a determinant changes its sign, is one that both sides come to; or else
    a step has led from one way to close the loops over to another.
    """
    a, b = before, after
    start = settle(model, before)[1]
    size = float(np.max(np.abs(b - a)))
    for _ in range(HALVINGS):
        found = None
        for share in (0.5, 0.4, 0.6):  # right at the singular position nothing can be said
            try:
                found = settle(model, a + share * (b - a))
                break
            except StepError:
                continue
        if found is None:
            break
        if turned(model, start, found[1]) is None:
            a = found[0]
        else:
            b = found[0]
    apart = float(np.max(np.abs(b - a)))
    return apart <= 1e-3 * max(size, 1e-6)


def closed_by_least_squares(model: Model, q: Array) -> Array:
    """Q with closed loops where K has lost rank: what the lost rows would say is left as it is."""
    q = settled_couplings(model, q)
    for cluster in model.clusters:
        if cluster.implicit:
            own, gap = newton.close(
                cluster.geometry, q[cluster.q], rows=cluster.closing_rows, iterations=8, rank=1e-3
            )
            if not gap <= CLOSED:
                raise StepError(f"loops stay open by {float(gap):.3g} at a change point")
            q[cluster.q] = own
    return q


def settled_couplings(model: Model, q: Array) -> Array:
    """A copy with unit quaternions."""
    q = q.copy()
    for cluster in model.clusters:
        at = cluster.q.start
        for body in cluster.bodies if cluster.implicit else ():
            joint = model.nodes[body].joint
            if joint.nq != joint.nv:
                last = at + joint.nq
                q[last - 4 : last] /= np.linalg.norm(q[last - 4 : last])
            at += joint.nq
    return q
