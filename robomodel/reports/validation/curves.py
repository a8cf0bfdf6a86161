"""Curves of closed configurations of a cluster with loops, one independent velocity swept.

With the other independent velocities held, what is left is a curve. It is followed by its tangent,
and so through dead points, where the independent joint itself comes to rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robomodel.model import closure as newton
from robomodel.model.closure import CLOSED, Geometry
from robomodel.model.configurations.coordinates import columns_of
from robomodel.model.elements import Cluster
from robomodel.model.joints import Array, Mask
from robomodel.model.mobility.exploration import conditioning
from robomodel.model.mobility.problem import Column
from robomodel.model.model import Model
from robomodel.reports.validation.linkage import Kind, Singularity, Sweep

STEP = 0.08  # radians, or cluster sizes, along a curve
LONGEST = 16.0  # of each half of a curve, which ends when the swept joint has made half a turn
INSIDE = 1e-9
EXACT = 1e-11  # m, or sine of an angle: a curve's configurations close so well

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class ClusterMotion:
    """A cluster, and the columns of its spanning velocities in comparable units."""

    model: Model
    cluster: Cluster
    geometry: Geometry
    columns: tuple[Column, ...]
    labels: tuple[str, ...]
    unit: Array
    low: Array
    high: Array

    @staticmethod
    def of(model: Model, cluster: Cluster) -> ClusterMotion:
        """That of a cluster with loops."""
        columns = tuple(columns_of(model, cluster))
        scale = cluster.geometry.scale
        unit = np.array([scale if column.length else 1.0 for column in columns])
        limits = np.array([column.limits for column in columns]).reshape(-1, 2)
        return ClusterMotion(
            model, cluster, cluster.geometry, columns, _labels(columns), unit, *limits.T
        )

    @property
    def rank(self) -> int:
        """The number of its conditions."""
        return len(self.columns) - self.cluster.nv

    def matrix(self, q: Array) -> Array:
        """K in comparable units, the rows that are always repeated left out where that is safe."""
        jacobian: Array = self.geometry.evaluate(q)[1][..., list(self.cluster.closing_rows), :]
        return jacobian * self.unit

    def null(self, q: Array) -> Array:
        """Orthonormal motions (..., columns, mobility)."""
        right = np.linalg.svd(self.matrix(q))[2]
        return np.swapaxes(right[..., self.rank :, :], -1, -2)

    def positions(self, q: Array) -> Array:
        """Each column's way from the zero position."""
        return self.geometry.difference(np.broadcast_to(self.geometry.zero(), q.shape), q)

    def within(self, q: Array) -> Mask:
        """Whether all joints are within their limits."""
        at = self.positions(q)
        inside: Mask = np.all((at >= self.low - INSIDE) & (at <= self.high + INSIDE), axis=-1)
        return inside

    def close(self, q: Array, held: Sequence[int] = ()) -> tuple[Array, Mask]:
        """Closed configurations near these, and which of them are."""
        closed, gap = newton.close(
            self.geometry, q, held=held, rows=self.cluster.closing_rows, iterations=40
        )
        return closed, (gap <= CLOSED) & ~self.geometry.flipped(closed)


def _labels(columns: Sequence[Column]) -> tuple[str, ...]:
    """The columns' names: their joint's, with a number where that has several."""
    count: dict[str, int] = {}
    of = [column.joint for column in columns]
    labels = []
    for name in of:
        labels.append(f"{name}.{count.get(name, 0)}" if of.count(name) > 1 else name)
        count[name] = count.get(name, 0) + 1
    return tuple(labels)


@dataclass(frozen=True)
class _Curves:
    """Many curves at once: what K is on them, and how to go on along them.

    ``hold`` (curves, mobility - 1, columns) are the rows of the independent velocities that rest,
    ``rows`` those of K and hold that span the others where a curve starts.
    """

    own: ClusterMotion
    hold: Array
    rows: list[list[int]]

    def matrix(self, jacobian: Array, which: Indices) -> Array:
        """K in comparable units, and the velocities that rest."""
        closing = jacobian[:, list(self.own.cluster.closing_rows)] * self.own.unit
        return np.concatenate([closing, self.hold[which]], axis=1)

    def look(self, a: Array, before: Array, which: Indices) -> tuple[Array, Array, Array]:
        """Unit tangents (ahead, as ``before``), K's orientation with them, and its regularity."""
        _, singular, right = np.linalg.svd(a)
        n = a.shape[2]
        tangent = right[:, n - 1]
        back = np.einsum("ci,ci->c", tangent, before) < 0.0
        tangent = np.where(back[:, None], -tangent, tangent)
        square = np.empty((len(a), n, n))
        for i, curve in enumerate(which):
            square[i, : n - 1] = a[i, self.rows[curve]]
        square[:, n - 1] = tangent
        weakest = singular[:, n - 2] / np.maximum(singular[:, 0], 1e-300)
        return tangent, np.linalg.det(square), weakest

    def step(
        self, q: Array, tangent: Array, length: Array, which: Indices
    ) -> tuple[Array, Array, Mask]:
        """Along the tangents, then back to where the loops close; K there, and whether they do."""
        own, rows = self.own, list(self.own.cluster.closing_rows)
        q = own.geometry.integrate(q, tangent * own.unit * length[:, None])
        for _ in range(8):
            values, jacobian, _bias = own.geometry.evaluate(q)
            a = self.matrix(jacobian, which)
            gap = np.max(np.abs(values[:, rows]), axis=1, initial=0.0)
            if float(np.max(gap)) < EXACT:
                break
            rest = np.zeros((len(q), self.hold.shape[1]))
            off = np.concatenate([values[:, rows], rest], axis=1)
            back = np.einsum("cij,cj->ci", np.linalg.pinv(a, rcond=1e-9), off)
            q = own.geometry.integrate(q, -back * own.unit)
        return q, a, gap < EXACT


@dataclass
class _Trail:
    """One half of a curve, as far as it is followed."""

    q: list[Array]
    tangent: list[Array]
    orientation: list[float]
    weakest: list[float]
    length: list[float]
    ring: bool = False


def sweep_all(own: ClusterMotion, starts: Sequence[Array]) -> list[Sweep]:
    """The curves of every independent velocity from every start, both ways."""
    tasks = [(q, column) for q in starts for column in own.cluster.columns]
    held = [[c for c in own.cluster.columns if c != column] for _, column in tasks for _ in (0, 1)]
    hold = np.zeros((len(held), own.cluster.nv - 1, len(own.columns)))
    for curve, rest in enumerate(held):
        hold[curve, range(len(rest)), rest] = 1.0
    q = np.array([q for q, _ in tasks for _ in (0, 1)])
    a = _Curves(own, hold, []).matrix(own.geometry.evaluate(q)[1], np.arange(len(q)))
    rows = [full_rank_rows(each, len(own.columns) - 1) for each in a]
    curves = _Curves(own, hold, rows)
    trails = _follow(curves, q, [column for _, column in tasks for _ in (0, 1)])
    return [
        _sweep(curves, 2 * i, column, trails[2 * i], trails[2 * i + 1])
        for i, (_, column) in enumerate(tasks)
    ]


def _follow(curves: _Curves, q: Array, swept: Sequence[int]) -> list[_Trail]:
    """Walk all curves at once, every second one against its joint."""
    own = curves.own
    everyone = np.arange(len(q))
    columns = list(swept)
    ahead = np.zeros((len(q), len(own.columns)))
    ahead[everyone, columns] = 1.0
    ahead[1::2] *= -1.0
    a = curves.matrix(own.geometry.evaluate(q)[1], everyone)
    tangent, orientation, weakest = curves.look(a, ahead, everyone)
    trails = [
        _Trail([q[i]], [tangent[i]], [float(orientation[i])], [float(weakest[i])], [0.0])
        for i in everyone
    ]
    stride = np.full(len(q), STEP)
    active = everyone
    while len(active):
        at = np.array([trails[i].q[-1] for i in active])
        before = np.array([trails[i].tangent[-1] for i in active])
        there, a, closed = curves.step(at, before, stride[active], active)
        along, turned, weak = curves.look(a, before, active)
        good = closed & (np.einsum("ci,ci->c", along, before) > 0.95)
        going = []
        for n, i in enumerate(active.tolist()):
            trail = trails[i]
            if not good[n]:
                stride[i] /= 2
                if stride[i] > 1e-5:
                    going.append(i)
                continue
            trail.q.append(there[n])
            trail.tangent.append(along[n])
            trail.orientation.append(float(turned[n]))
            trail.weakest.append(float(weak[n]))
            trail.length.append(trail.length[-1] + float(stride[i]))
            stride[i] = min(STEP, 2 * stride[i])
            away = wrapped(own, own.geometry.difference(trail.q[0], there[n]))
            trail.ring = (
                trail.length[-1] > 10 * STEP
                and float(np.linalg.norm(away)) < 0.8 * STEP
                and float(trail.tangent[0] @ along[n]) > 0.9
            )
            turned_far = not own.columns[swept[i]].length and math.pi <= abs(
                _way(own, trail, swept[i])
            )
            if not trail.ring and not turned_far and trail.length[-1] < LONGEST:
                going.append(i)
        active = np.array(going, dtype=int)
    return trails


def _sweep(curves: _Curves, first: int, column: int, ahead: _Trail, behind: _Trail) -> Sweep:
    """Both halves of a curve as one, with what happens on it."""
    own = curves.own
    if ahead.ring:  # each half has the whole of it
        for trail in (ahead, behind):
            keep = sum(length <= 0.5 * trail.length[-1] + STEP for length in trail.length)
            for values in (
                trail.q, trail.tangent, trail.orientation, trail.weakest, trail.length
            ):  # fmt: skip
                del values[keep:]
    start = _position(own, ahead, column)[0]
    position = np.concatenate(
        [_position(own, behind, column)[:0:-1], _position(own, ahead, column)]
    )
    q = np.array(behind.q[:0:-1] + ahead.q)
    tangent = np.concatenate([-np.array(behind.tangent)[:0:-1], np.array(ahead.tangent)])
    reached = np.concatenate([_reach(own, behind)[:0:-1], _reach(own, ahead)])
    with np.errstate(divide="ignore", invalid="ignore"):
        # in units of the joints: tangents are in comparable ones
        rates = tangent * own.unit / (tangent[:, column : column + 1] * own.unit[column])
        condition = 1.0 / conditioning(own.null(q), own.cluster.columns)
    events = []
    for half, trail in enumerate((ahead, behind)):
        events += _events(curves, first + half, column, trail)
    ends = [_end(curves, first + half, column, t) for half, t in enumerate((ahead, behind))]
    ends += [*position[reached].tolist(), *(each.position for each in events if each.reached)]
    at = own.positions(q[len(behind.q) - 1])
    held = {own.labels[c]: float(at[c]) for c in own.cluster.columns if c != column}
    return Sweep(
        own.labels[column],
        float(start),
        held,
        q,
        position,
        own.positions(q),
        rates,
        condition,
        reached,
        (float(np.min(ends)), float(np.max(ends))),
        float(np.max(own.geometry.gap(q))),
        tuple(sorted(_once(events), key=lambda each: each.away)),
    )


def _end(curves: _Curves, curve: int, column: int, trail: _Trail) -> float:
    """The position where the first limit is met, else that of the trail's end."""
    own, within = curves.own, _reach(curves.own, trail)
    position = _position(own, trail, column)
    if within[-1]:
        return float(position[-1])
    last = int(np.argmin(within)) - 1
    link = own.geometry.links[own.columns[column].link]
    if link.joint.nq != 1:
        return float(position[last])
    q, low, high = trail.q[last][None], 0.0, trail.length[last + 1] - trail.length[last]
    best = float(position[last])
    for _ in range(40):
        middle = 0.5 * (low + high)
        there, _a, closed = curves.step(
            q, trail.tangent[last][None], np.array([middle]), np.array([curve])
        )
        if closed[0] and own.within(there)[0]:
            low, best = middle, float(there[0, link.q])
        else:
            high = middle
    return best


def _once(events: list[Singularity]) -> list[Singularity]:
    """Without those that both halves of a ring have met."""
    kept: list[Singularity] = []
    for event in sorted(events, key=lambda each: (not each.reached, each.away)):
        twin = any(
            other.kind == event.kind
            and math.isclose(math.remainder(other.position - event.position, 2 * math.pi), 0.0,
                             abs_tol=1e-5)
            and other.reached == event.reached
            for other in kept
        )  # fmt: skip
        if not twin:
            kept.append(event)
    return kept


def _position(own: ClusterMotion, trail: _Trail, column: int) -> Array:
    """Of the swept joint; of a joint with several freedoms, the way travelled."""
    link = own.geometry.links[own.columns[column].link]
    if link.joint.nq == 1:
        return np.array(trail.q)[:, link.q]
    speed = np.array(trail.tangent)[:, column] * own.unit[column]
    return np.concatenate(
        [[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(trail.length))]
    )


def _way(own: ClusterMotion, trail: _Trail, column: int) -> float:
    """How far the swept joint is from where it started."""
    link = own.geometry.links[own.columns[column].link]
    if link.joint.nq == 1:
        return float(trail.q[-1][link.q] - trail.q[0][link.q])
    return 0.0


def _reach(own: ClusterMotion, trail: _Trail) -> Mask:
    """Up to where the limits are first left; the start counts as reached."""
    inside = own.within(np.array(trail.q))
    inside[0] = True
    reached: Mask = np.logical_and.accumulate(inside)
    return reached


def _events(curves: _Curves, curve: int, column: int, trail: _Trail) -> list[Singularity]:
    """Where the swept joint or the orientation of K passes through zero."""
    own = curves.own
    speed = np.array(trail.tangent)[:, column]
    turned = np.array(trail.orientation)
    reach = _reach(own, trail)
    position = _position(own, trail, column)
    events: list[Singularity] = []
    which = np.array([curve])
    signals: tuple[tuple[Kind, Array], ...] = (("dead point", speed), ("change point", turned))
    for kind, signal in signals:
        for i in np.flatnonzero(signal[:-1] * signal[1:] < 0.0):
            q0, t0 = trail.q[i][None], trail.tangent[i][None]
            whole = trail.length[i + 1] - trail.length[i]
            low, high = 0.0, whole
            f_low, f_high = float(signal[i]), float(signal[i + 1])
            q, weak = q0, 1.0
            for n in range(30):  # regula falsi, with a bisection now and then
                at = low - f_low * (high - low) / (f_high - f_low)
                if n % 3 == 2:
                    at = 0.5 * (low + high)
                q, a, closed = curves.step(q0, t0, np.array([at]), which)
                tangent, oriented, weakest = curves.look(a, t0, which)
                weak = float(weakest[0])
                f = float(tangent[0, column] if kind == "dead point" else oriented[0])
                if not closed[0] or abs(f) < 1e-11 or high - low < 1e-9:
                    break
                if f * f_low > 0.0:
                    low, f_low = at, f
                else:
                    high, f_high = at, f
            if kind == "change point" and weak > 1e-5:
                continue  # the rows chosen to stand for K lose rank there, K does not
            link = own.geometry.links[own.columns[column].link]
            x = float(q[0, link.q]) if link.joint.nq == 1 else float(position[i])
            reached = bool(reach[i]) and bool(own.within(q)[0])
            events.append(
                Singularity(kind, x, abs(x - float(position[0])), reached, tuple(q[0].tolist()))
            )
    return events


def wrapped(own: ClusterMotion, way: Array) -> Array:
    """Comparable units, full turns taken off."""
    length = np.array([column.length for column in own.columns])
    turns = np.where(length, 0.0, np.round(way / (2 * math.pi)))
    result: Array = (way - turns * 2 * math.pi) / own.unit
    return result


def full_rank_rows(matrix: Array, rank: int) -> list[int]:
    """Rows that span all the others: those that are longest without their part along the chosen."""
    from scipy.linalg import qr

    _, order = qr(matrix.T, mode="r", pivoting=True)
    return sorted(order[:rank].tolist())
