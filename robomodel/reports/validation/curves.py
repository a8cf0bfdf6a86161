"""Curves of closed configurations of a cluster with loops, one independent velocity swept.

With the other independent velocities held, what is left is a curve. It is followed by its tangent,
and so through dead points, where the independent joint itself comes to rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.model import closure as newton
from robomodel.model.closure import CLOSED, Geometry
from robomodel.model.configurations.coordinates import columns_of, units_of
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
        unit = units_of(model, cluster)
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

    def room(self, q: Array) -> Array:
        """How far the joint nearest to a limit is within it; below zero beyond."""
        at = self.positions(q)
        room: Array = np.min(np.minimum(at - self.low, self.high - at), axis=-1)
        return room

    def within(self, q: Array) -> Mask:
        """Whether all joints are within their limits."""
        inside: Mask = self.room(q) >= -INSIDE
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


@dataclass
class _Trail:
    """One half of a curve, as far as it is followed; ``column`` is the swept velocity.

    ``rows`` of K and of the velocities that rest span the others where the curve starts.
    """

    column: int
    rows: list[int]
    q: list[Array]
    tangent: list[Array]
    orientation: list[float]
    length: list[float]
    ring: bool = False


def _held(own: ClusterMotion, column: int) -> list[int]:
    """The independent velocities that rest while one is swept."""
    return [c for c in own.cluster.columns if c != column]


def _matrix(own: ClusterMotion, q: Array, columns: Sequence[int]) -> Array:
    """K in comparable units above the velocities that rest, one swept column for each q."""
    rest = np.eye(len(own.columns))[[_held(own, column) for column in columns]]
    return np.concatenate([own.matrix(q), rest.reshape(len(q), -1, len(own.columns))], axis=1)


def _look(
    own: ClusterMotion, q: Array, before: Array, trails: Sequence[_Trail]
) -> tuple[Array, Array, Array]:
    """Unit tangents (ahead, as ``before``), K's orientation with them, and its regularity."""
    a = _matrix(own, q, [trail.column for trail in trails])
    _, singular, right = np.linalg.svd(a)
    n = a.shape[2]
    tangent = right[:, n - 1]
    back = np.einsum("ci,ci->c", tangent, before) < 0.0
    tangent = np.where(back[:, None], -tangent, tangent)
    kept = np.array([each[trail.rows] for each, trail in zip(a, trails, strict=True)])
    square = np.concatenate([kept, tangent[:, None]], axis=1)
    weakest = singular[:, n - 2] / np.maximum(singular[:, 0], 1e-300)
    return tangent, np.linalg.det(square), weakest


def _step(
    own: ClusterMotion, q: Array, tangent: Array, length: Array, trails: Sequence[_Trail]
) -> tuple[Array, Mask]:
    """Along the tangents, then back to where the loops close; whether they do."""
    q = own.geometry.integrate(q, tangent * own.unit * length[:, None])
    gap = np.empty(len(q))
    columns = np.array([trail.column for trail in trails])
    for column in np.unique(columns).tolist():
        mine = columns == column
        q[mine], gap[mine] = newton.close(
            own.geometry, q[mine], held=_held(own, column), rows=own.cluster.closing_rows
        )
    return q, gap < EXACT


def sweep_all(own: ClusterMotion, starts: Sequence[Array]) -> list[Sweep]:
    """The curves of every independent velocity from every start, both ways."""
    columns = [column for _ in starts for column in own.cluster.columns for _ in (0, 1)]
    q = np.repeat(np.array(starts), 2 * own.cluster.nv, axis=0)
    matrices = _matrix(own, q, columns)
    trails = [
        _Trail(column, full_rank_rows(each, len(own.columns) - 1), [at], [], [], [0.0])
        for column, each, at in zip(columns, matrices, q, strict=True)
    ]
    _follow(own, trails)
    return [_sweep(own, *pair) for pair in zip(trails[::2], trails[1::2], strict=True)]


def _follow(own: ClusterMotion, trails: Sequence[_Trail]) -> None:
    """Walk all curves at once, every second one against its joint."""
    q = np.array([trail.q[0] for trail in trails])
    ahead = np.eye(len(own.columns))[[trail.column for trail in trails]]
    ahead[1::2] *= -1.0
    tangents, orientations, _ = _look(own, q, ahead, trails)
    for trail, tangent, orientation in zip(trails, tangents, orientations, strict=True):
        trail.tangent.append(tangent)
        trail.orientation.append(float(orientation))
    active = [(trail, STEP) for trail in trails]
    while active:
        walking = [trail for trail, _ in active]
        strides = np.array([stride for _, stride in active])
        at = np.array([trail.q[-1] for trail in walking])
        before = np.array([trail.tangent[-1] for trail in walking])
        there, closed = _step(own, at, before, strides, walking)
        along, turned, _ = _look(own, there, before, walking)
        good = closed & (np.einsum("ci,ci->c", along, before) > 0.95)
        going = []
        for n, (trail, stride) in enumerate(active):
            if not good[n]:
                if stride > 2e-5:
                    going.append((trail, stride / 2))
                continue
            trail.q.append(there[n])
            trail.tangent.append(along[n])
            trail.orientation.append(float(turned[n]))
            trail.length.append(trail.length[-1] + stride)
            away = wrapped(own, own.geometry.difference(trail.q[0], there[n]))
            trail.ring = (
                trail.length[-1] > 10 * STEP
                and float(np.linalg.norm(away)) < 0.8 * STEP
                and float(trail.tangent[0] @ along[n]) > 0.9
            )
            turned_far = not own.columns[trail.column].length and math.pi <= abs(_way(own, trail))
            if not trail.ring and not turned_far and trail.length[-1] < LONGEST:
                going.append((trail, min(STEP, 2 * stride)))
        active = going


def _sweep(own: ClusterMotion, ahead: _Trail, behind: _Trail) -> Sweep:
    """Both halves of a curve as one, with what happens on it."""
    column = ahead.column
    if ahead.ring:  # each half has the whole of it
        for trail in (ahead, behind):
            keep = sum(length <= 0.5 * trail.length[-1] + STEP for length in trail.length)
            for values in (trail.q, trail.tangent, trail.orientation, trail.length):
                del values[keep:]
    start = _position(own, ahead)[0]
    position = np.concatenate([_position(own, behind)[:0:-1], _position(own, ahead)])
    q = np.array(behind.q[:0:-1] + ahead.q)
    tangent = np.concatenate([-np.array(behind.tangent)[:0:-1], np.array(ahead.tangent)])
    reached = np.concatenate([_reach(own, behind)[:0:-1], _reach(own, ahead)])
    with np.errstate(divide="ignore", invalid="ignore"):
        # in units of the joints: tangents are in comparable ones
        rates = tangent * own.unit / (tangent[:, column : column + 1] * own.unit[column])
        condition = 1.0 / conditioning(own.null(q), own.cluster.columns)
    events = [event for trail in (ahead, behind) for event in _events(own, trail)]
    ends = [_end(own, trail) for trail in (ahead, behind)]
    ends += [*position[reached].tolist(), *(each.position for each in events if each.reached)]
    at = own.positions(q[len(behind.q) - 1])
    return Sweep(
        own.labels[column],
        float(start),
        {own.labels[c]: float(at[c]) for c in _held(own, column)},
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


def _crossing(own: ClusterMotion, trail: _Trail, i: int, value: Callable[[Array], float]) -> Array:
    """The configuration between points i and i + 1 of a trail at which a function vanishes."""
    from scipy.optimize import brentq

    q, tangent = trail.q[i][None], trail.tangent[i][None]

    def at(length: float) -> Array:
        there: Array = _step(own, q, tangent, np.array([length]), [trail])[0][0]
        return there

    whole = trail.length[i + 1] - trail.length[i]
    if value(trail.q[i]) * value(at(whole)) >= 0.0:
        return trail.q[i]
    return at(brentq(lambda length: value(at(length)), 0.0, whole, xtol=1e-11, disp=False))


def _end(own: ClusterMotion, trail: _Trail) -> float:
    """The position where the first limit is met, else that of the trail's end."""
    within, position = _reach(own, trail), _position(own, trail)
    if within[-1]:
        return float(position[-1])
    last = int(np.argmin(within)) - 1
    link = own.geometry.links[own.columns[trail.column].link]
    if link.joint.nq != 1:
        return float(position[last])
    return float(_crossing(own, trail, last, lambda q: float(own.room(q)))[link.q])


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


def _position(own: ClusterMotion, trail: _Trail) -> Array:
    """Of the swept joint; of a joint with several freedoms, the way travelled."""
    link = own.geometry.links[own.columns[trail.column].link]
    if link.joint.nq == 1:
        return np.array(trail.q)[:, link.q]
    speed = np.array(trail.tangent)[:, trail.column] * own.unit[trail.column]
    return np.concatenate(
        [[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(trail.length))]
    )


def _way(own: ClusterMotion, trail: _Trail) -> float:
    """How far the swept joint is from where it started."""
    link = own.geometry.links[own.columns[trail.column].link]
    if link.joint.nq == 1:
        return float(trail.q[-1][link.q] - trail.q[0][link.q])
    return 0.0


def _reach(own: ClusterMotion, trail: _Trail) -> Mask:
    """Up to where the limits are first left; the start counts as reached."""
    inside = own.within(np.array(trail.q))
    inside[0] = True
    reached: Mask = np.logical_and.accumulate(inside)
    return reached


def _events(own: ClusterMotion, trail: _Trail) -> Iterator[Singularity]:
    """Where the swept joint or the orientation of K passes through zero."""
    speed = np.array(trail.tangent)[:, trail.column]
    reach, position = _reach(own, trail), _position(own, trail)
    link = own.geometry.links[own.columns[trail.column].link]
    signals: tuple[tuple[Kind, Array], ...] = (
        ("dead point", speed),
        ("change point", np.array(trail.orientation)),
    )
    for kind, signal in signals:
        for i in np.flatnonzero(signal[:-1] * signal[1:] < 0.0).tolist():
            before = trail.tangent[i][None]

            def value(q: Array, before: Array = before, kind: Kind = kind) -> float:
                tangent, orientation, _ = _look(own, q[None], before, [trail])
                return float(tangent[0, trail.column] if kind == "dead point" else orientation[0])

            q = _crossing(own, trail, i, value)
            if kind == "change point" and _look(own, q[None], before, [trail])[2][0] > 1e-5:
                continue  # the rows chosen to stand for K lose rank there, K does not
            x = float(q[link.q]) if link.joint.nq == 1 else float(position[i])
            reached = bool(reach[i]) and bool(own.within(q))
            yield Singularity(kind, x, abs(x - float(position[0])), reached, tuple(q.tolist()))


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
