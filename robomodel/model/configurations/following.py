"""Following loops over arrays of configurations: in strides along the tangent, then in damped ones.

Numerical continuation: steps along the tangent that are small enough to stay on the branch, each
closed by Newton's method. Compiled strides hold the independent joints (:func:`follow`, and
:func:`read` to what encoders read); they fail next to dead points, where damped ones of a cluster's
joints go on (:func:`move`, :func:`walk`). Every row of a batch is its own matter.

These take positions of chosen joints, and answer how far they come on the straight way there; they
end where loops open beside these joints, at the joints' dead points. The strides of
:mod:`robomodel.mechanism.continuation` take a direction among all motions, pass such dead points,
and answer whether two configurations are on one branch; they need a closed start and the rank of
the conditions, which :func:`walk` does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from robomodel.arrays import Array, Mask
from robomodel.errors import ClosureError, warn
from robomodel.mechanism import closure as newton
from robomodel.mechanism.closure import Geometry, Joints
from robomodel.mechanism.joints import Revolute
from robomodel.model.configurations import functions
from robomodel.model.configurations.closing import partly_independent, travel
from robomodel.model.configurations.functions import CLOSED_EVERY
from robomodel.model.elements import Cluster, joint_slices
from robomodel.tolerances import CLOSED, OPEN, TINY

if TYPE_CHECKING:
    from robomodel.model.model import Model

STRIDES = 64  # of a motion by fixed steps
FOLLOWED = 4  # Newton steps that close the loops after a short motion
READINGS = 200  # strides to what is read
ARRIVED = 1e-8  # [rad, m] of a stride of Newton's after which rounding is left
MOST_STRIDES = 2000  # damped strides of one motion
FAR = 2 * math.pi  # whole turns are looked for in what is twice as long
HALVINGS, CLOSELY = 3, 12  # of strides that do not close, and where the end of a way is told


def enough(q: Array, tolerance: float = CLOSED) -> Array:
    """The gap up to which configurations count as closed; it grows as their numbers' rounding."""
    return np.asarray(tolerance * np.maximum(1.0, np.max(np.abs(q), axis=-1, initial=0.0)))


def allowed(cluster: Cluster, q: Array, tolerance: float = CLOSED) -> Array:
    """The gap of closing rows up to which positions of a cluster count as closed."""
    return np.maximum(enough(q, tolerance), cluster.slack if cluster.loose else 0.0)


def is_closed(cluster: Cluster, q: Array, gap: Array) -> Mask:
    """Which positions of a cluster are closed, and not with an axis the wrong way round.

    ``gap``: of the conditions that close it; the others may be open by its slack.
    """
    geometry = cluster.geometry
    closed = (gap <= allowed(cluster, q)) & np.isfinite(gap) & ~geometry.flipped(q)
    return closed & (geometry.gap(q) <= cluster.slack) if cluster.slack else closed


def all_finite(x: Array) -> Mask:
    """Which rows hold nothing but numbers."""
    return np.asarray(np.isfinite(x).all(axis=-1))


# ---- failures ------------------------------------------------------------------------------------


def loop_names(cluster: Cluster) -> tuple[str, ...]:
    """The names of a cluster's loops."""
    return tuple(loop.name for loop in cluster.geometry.loops)


def not_closed(cluster: Cluster, gap: float, what: str, why: str = "") -> ClosureError:
    """The error that a cluster's loops do not close ``what`` (with, from, after …), by ``gap``."""
    loops = ", ".join(f"'{name}'" for name in loop_names(cluster))
    return ClosureError(
        f"loops of cluster '{cluster.name}' ({loops}) do not close {what}: residual {gap:.3g}"
        + (f"; {why}" if why else ""),
        gap,
        loop_names(cluster),
    )


@dataclass
class Failures:
    """The configurations of a batch that cannot be computed, and the error of the first of them.

    ``ignored`` were not finite to begin with and cause no warning. ``total``: how many
    configurations the batch has, where these are some of them.
    """

    ignored: Mask
    total: int | None = None
    failed: Mask = field(init=False)
    first: ValueError | None = None

    def __post_init__(self) -> None:
        self.failed = np.zeros_like(self.ignored)

    def record(self, bad: Mask, why: Callable[[Mask], ValueError]) -> None:
        """Record the bad ones; ``why`` makes the error of those that were finite, or of all."""
        finite = bad & ~self.ignored
        if self.first is None and np.any(bad) and (np.any(finite) or not bad.ndim):
            self.first = why(finite if np.any(finite) else bad)
        self.failed |= bad

    def result(self, q: Array, *, whole: bool) -> Array:
        """q, with failed rows of a batch not-a-number and a RuntimeWarning.

        Raises the error of a single configuration, and with ``whole`` that of any.
        """
        if not np.any(self.failed):
            return q
        if self.first is not None and (whole or not self.failed.ndim):
            raise self.first
        if self.first is not None:
            count = int(np.count_nonzero(self.failed & ~self.ignored))
            warn(RuntimeWarning(
                f"{count} of {self.total or self.failed.size} configurations cannot be closed and "
                f"are not-a-number: {self.first}"
            ))  # fmt: skip
        q[self.failed] = np.nan
        return q


# ---- compiled strides ----------------------------------------------------------------------------


def follow(model: Model, q: Array, dv: Array) -> tuple[Array, Array]:
    """q moved along dv in strides, and the worst gap: infinite where these do not suffice.

    Nor do they where a joint is independent with some of its freedoms: their ways do not add up.
    """
    longest = np.zeros(q.shape[:-1])
    for cluster in model.clusters:
        if cluster.implicit:
            along = travel(cluster) * dv[..., cluster.v]
            longest = np.maximum(longest, np.linalg.norm(along, axis=-1))
    counts = np.maximum(1.0, np.ceil(1.001 / CLOSED_EVERY * longest))
    counts = np.where(counts <= STRIDES, counts, 1.0)
    q, dv, gap = q.copy(), dv / counts[..., None], np.zeros(q.shape[:-1])
    for n in range(int(np.max(counts, initial=1.0))):
        rows = counts > n
        q[rows], opened = functions.moved(model, FOLLOWED)(q[rows], dv[rows])
        gap[rows] = np.maximum(gap[rows], opened)
    if any(partly_independent(model, cluster) for cluster in model.clusters):
        gap[counts > 1.0] = np.inf
    return q, gap


class Readings(Protocol):
    """Readings wanted of configurations (n, nq), one value after the other."""

    def lack(self, q: Array, rows: NDArray[np.intp]) -> Array:
        """The lack (m, ·) in these rows, where they are at q (m, nq)."""

    def way(self, q: Array, lack: Array) -> Array:
        """The velocities (m, nv) that give as much in unit time; not-a-number if none do."""


def read(model: Model, q: Array, readings: Readings, *, rescue: bool = True) -> tuple[Array, Array]:
    """q (n, nq) moved to where these are read; and the most that is missing there (n,).

    In strides of Newton's on the independent velocities; where these do not exist, or loops do not
    follow, q is not-a-number and infinitely much is missing. ``rescue``: compiled strides that fail
    are taken by damped ones.
    """
    q, off, going = q.copy(), np.full(len(q), np.inf), np.arange(len(q))
    bounds = [(c.v, travel(c)) for c in model.clusters if c.varies]
    strides = np.full(len(q), CLOSED_EVERY)
    with np.errstate(all="ignore"):
        for _ in range(READINGS):
            if not len(going):
                break
            at, stride = q[going], strides[going]
            way = readings.way(at, readings.lack(at, going))
            longest = stride
            for part, units in bounds:
                longest = np.maximum(longest, np.linalg.norm(units * way[:, part], axis=-1))
            arrived = np.max(np.abs(way), axis=-1, initial=0.0) <= ARRIVED
            way *= (stride / longest)[:, None]
            ahead, gap = functions.moved(model, FOLLOWED)(at, way)
            open_ = ~((gap <= CLOSED) & all_finite(way))
            lost = open_ & ((stride < 1.5 * CLOSED_EVERY * 0.5**HALVINGS) | ~all_finite(way))
            if rescue and np.any(lost):
                ahead[lost], failures = damped(model, at[lost], way[lost], len(q))
                open_[lost] = failures.failed | ~all_finite(way[lost])
                lost &= open_
            q[going] = np.where(lost[:, None], np.nan, np.where(open_[:, None], at, ahead))
            strides[going] = np.where(open_, 0.5 * stride, np.minimum(CLOSED_EVERY, 2.0 * stride))
            there = going[arrived & ~open_]
            off[there] = _most(readings, q, there)
            going = going[~(arrived & ~open_) & ~lost]
        off[going] = _most(readings, q, going)
    return q, off


def _most(readings: Readings, q: Array, rows: NDArray[np.intp]) -> Array:
    """The largest error of each of these rows."""
    lack = np.abs(readings.lack(q[rows], rows))
    return np.asarray(np.max(lack, axis=-1, initial=0.0))


# ---- damped strides ------------------------------------------------------------------------------


def damped(model: Model, q: Array, dv: Array, total: int) -> tuple[Array, Failures]:
    """q (..., nq) moved along dv in as many damped strides as it takes, and what failed.

    ``total``: how many configurations the batch has of which these are some.
    """
    failures = Failures(~(all_finite(q) & all_finite(dv)), total)
    with np.errstate(all="ignore"):
        result = integrate_open(model, q, dv)
        for cluster in model.clusters:
            if cluster.implicit:
                motion = dv[..., cluster.v]
                moved, gap = move(cluster, q[..., cluster.q], motion)
                bad = ~is_closed(cluster, moved, gap)
                failures.record(
                    bad, partial(_not_followed, cluster, q[..., cluster.q], gap, motion)
                )
                result[..., cluster.q] = moved
    return result, failures


def integrate_open(model: Model, q: Array, dv: Array) -> Array:
    """q (..., nq) with its independent joints moved along dv; the others of loops stay.

    For what looks at independent joints alone, as differences do: no loop is solved for.
    """
    q = q.copy()
    for cluster in model.clusters:
        part, motion = q[..., cluster.q], dv[..., cluster.v]  # the former is a view
        if cluster.implicit:
            motion = np.zeros((*dv.shape[:-1], cluster.geometry.nv))
            motion[..., list(cluster.columns)] = dv[..., cluster.v]
        for body, at, along in joint_slices(model, cluster):
            joint = model.nodes[body].joint
            part[..., at] = joint.integrate(part[..., at], motion[..., along])
    return q


def _not_followed(cluster: Cluster, q: Array, gap: Array, dv: Array, bad: Mask) -> ClosureError:
    worst = float(np.max(gap[bad]))
    units = travel(cluster)
    if worst < np.inf:
        at, way = q[bad].reshape(-1, q.shape[-1])[:1], dv[bad].reshape(-1, cluster.nv)[:1]
        count = max(1, math.ceil(float(np.max(np.abs(units * way))) / CLOSED_EVERY))
        walked = walk(cluster, at, Joints(cluster.columns, at, way), way, count, halvings=CLOSELY)
        why = f"{walked.share[0]:.3g} of it is the most, to {dead_point(cluster, walked)}"
        return not_closed(cluster, worst, "after this motion", why if walked.share[0] < 1.0 else "")
    ways = np.max(np.abs(dv[bad]).reshape(-1, cluster.nv), axis=0)
    longest = int(np.argmax(units * ways))
    far, most = float(ways[longest]), float(MOST_STRIDES * CLOSED_EVERY / units[longest])
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


def dead_point(cluster: Cluster, walked: Walk) -> str:
    """The end of a walk of one row, in words: the loop that opens beyond."""
    name = widest(cluster, walked.beyond[0])
    if cluster.slack:
        return f"where loop '{name}' opens by more than its file leaves open, {cluster.slack:.2g}"
    return f"a dead point of loop '{name}'"


def widest(cluster: Cluster, q: Array) -> str:
    """The name of the loop, or coupling, that fails by most at a cluster's q (nq,)."""
    geometry = cluster.geometry
    values = np.abs(geometry.evaluate(q)[0])
    sizes = [len(loop.rows) for loop in geometry.loops] + [1] * len(geometry.linear)
    return str(np.repeat(geometry.names, sizes)[int(np.argmax(values))])


def move(cluster: Cluster, q: Array, dv: Array) -> tuple[Array, Array]:
    """Move the independent columns by dv with the loops closed; the result and its largest gap.

    Rows that are not finite, or whose motion is too long to follow, have an infinite gap. Where
    one joint alone turns, and a turn of it comes back to where it began, whole turns are skipped.
    """
    batch = q.shape[:-1]
    at, dv = q.reshape(-1, q.shape[-1]).copy(), dv.reshape(-1, dv.shape[-1])
    origin, rest, gap = at.copy(), dv.copy(), np.full(len(at), np.inf)
    finite = all_finite(at) & all_finite(dv)
    _skip_turns(cluster, at, rest, finite)
    along = np.abs(travel(cluster) * rest)
    strides = np.ceil(np.max(along, axis=1, initial=0.0) / CLOSED_EVERY)
    rows = np.flatnonzero(finite & (strides <= MOST_STRIDES))
    if len(rows):
        count = max(1, int(np.max(strides[rows])))
        goal = Joints(cluster.columns, origin[rows], dv[rows])
        walked = walk(cluster, at[rows], goal, rest[rows], count)
        at[rows], gap[rows] = walked.q, walked.gap
    return at.reshape(*batch, at.shape[-1]), gap.reshape(batch)


@dataclass(frozen=True)
class Walk:
    """How far rows came towards where joints shall be.

    ``q`` (n, nq): the last closed ones; ``share`` (n,) of the way to there. ``gap`` (n,): the worst
    on it, of a row that stops that of its last stride, which ends at ``beyond`` (n, nq).
    """

    q: Array
    share: Array
    gap: Array
    beyond: Array


def walk(
    cluster: Cluster,
    q: Array,
    goal: Joints,
    rest: Array,
    count: int,
    *,
    halvings: int = HALVINGS,
    within: Callable[[Array], Mask] | None = None,
) -> Walk:
    """Rows of a cluster (n, nq) led straight to the goal, from which they are ``rest`` away.

    In strides along the tangent of a ``count``-th of the way, halved where loops do not close, or
    configurations are not ``within`` what is wanted; a row ends where halving does not help either.
    """
    geometry, closing = cluster.geometry, list(cluster.closing_rows)
    columns = list(goal.columns)
    free = [c for c in range(geometry.nv) if c not in set(columns)]
    looped = [c for link in geometry.looped for c in link.freedoms if c in free]
    q, beyond, gap = q.copy(), q.copy(), np.zeros(len(q))
    share, stride, going = np.zeros(len(q)), np.full(len(q), 1.0 / count), np.arange(len(q))
    while len(going):
        left = 1.0 - share[going]
        length = np.where(left < 1.001 * stride[going], left, stride[going])[:, None]
        jacobian = geometry.evaluate(q[going])[1][:, closing]
        step = np.zeros((len(going), geometry.nv))
        step[:, columns] = length * rest[going]
        inverse = np.linalg.pinv(jacobian[..., free], rcond=1e-6)
        along = -np.einsum("nij,njk,nk->ni", inverse, jacobian, step)
        step[:, free] = along
        bent = geometry.bending(step)[:, looped]
        longest = np.max(np.abs(bent), axis=1, initial=0.0)
        step *= np.minimum(1.0, 0.5 / np.maximum(longest, TINY))[:, None]
        ahead, opened = newton.close(
            geometry,
            geometry.integrate(q[going], step),
            Joints(
                columns,
                goal.origin[going],
                goal.way[going] - (left[:, None] - length) * rest[going],
            ),
            rows=closing,
        )
        if cluster.slack:  # what the file leaves open counts where it is more than that
            full = geometry.gap(ahead)
            opened = np.where(full > cluster.slack, np.maximum(opened, full), opened)
        fine = opened <= allowed(cluster, ahead)
        if within is not None:
            fine &= within(ahead)
        on, off = going[fine], going[~fine]
        q[on], gap[on] = ahead[fine], np.maximum(gap[on], opened[fine])
        share[on] = np.where((left == length[:, 0])[fine], 1.0, share[on] + length[fine, 0])
        beyond[off], stride[off] = ahead[~fine], 0.5 * stride[off]
        ended = ~fine & (stride[going] < 0.75 * 0.5**halvings / count)
        gap[going[ended]] = opened[ended]
        going = going[~ended & (share[going] < 1.0)]
    return Walk(q, share, gap, beyond)


def _skip_turns(cluster: Cluster, q: Array, rest: Array, finite: Mask) -> None:
    """Turn q on by the whole turns of ``rest``, and take them off it, in rows where that can be.

    Where one turn leads back to a configuration that differs by turns of other joints only, so does
    each further one. The shifted configuration is closed then, but for what rounding has grown to.
    """
    geometry = cluster.geometry
    for n, column in enumerate(cluster.columns):
        if not _turns(geometry, column):
            continue
        others = np.delete(rest, n, axis=1)
        far = finite & (np.abs(rest[:, n]) > 2.0 * FAR) & np.all(others == 0.0, axis=1)
        rows = np.flatnonzero(far)
        if not len(rows):
            continue
        turn = np.zeros((len(rows), cluster.nv))
        turn[:, n] = np.copysign(2.0 * math.pi, rest[rows, n])
        count = int(np.ceil(2.0 * math.pi / CLOSED_EVERY))
        start = q[rows]
        once = walk(cluster, start, Joints(cluster.columns, start, turn), turn, count)
        turns = np.trunc(rest[rows, n] / turn[:, n])
        shifted = geometry.integrate(start, turns[:, None] * geometry.difference(start, once.q))
        fine = is_closed(cluster, once.q, once.gap) & (once.share == 1.0)
        fine &= geometry.gap(shifted) <= OPEN
        q[rows[fine]] = shifted[fine]
        rest[rows[fine]] -= (turns[:, None] * turn)[fine]


def _turns(geometry: Geometry, column: int) -> bool:
    """True if a spanning velocity is that of a joint which turns about an axis."""
    joint = next(link.joint for link in geometry.links if link.v <= column < link.v + link.joint.nv)
    return isinstance(joint, Revolute)
