"""Curves of closed configurations, along which clusters with loops move; sweeps and grids.

A cluster is swept by one independent velocity at a time: with the others held, its closed
configurations are a curve. It is followed by its tangent, and so through dead points, where the
independent joint itself comes to rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from robomodel.errors import ClosureError, UnknownNameError, check_names
from robomodel.model import closure as newton
from robomodel.model.closure import Geometry, Held
from robomodel.model.configurations.following import is_closed, move
from robomodel.model.configurations.paths import STEP, compiled_geometry
from robomodel.model.elements import Cluster, columns_of, velocity_units
from robomodel.model.joints import Array, Mask
from robomodel.model.mobility import SpanningColumn, column_limits
from robomodel.model.model import Model
from robomodel.tolerances import CLOSED, TINY, WITHIN

SHORTEST = 2e-5  # radians, or cluster sizes: shorter steps end a curve
HALF_CURVE = 16.0  # of each half of a curve, which ends after half a turn of the swept joint

Kind = Literal["dead point", "change point"]


@dataclass(frozen=True)
class ClusterMotion:
    """A cluster, and the columns of its spanning velocities in comparable units."""

    cluster: Cluster
    geometry: Geometry
    columns: tuple[SpanningColumn, ...]
    unit: Array
    low: Array
    high: Array

    @staticmethod
    def of(model: Model, cluster: Cluster) -> ClusterMotion:
        """That of a cluster with loops."""
        columns, unit = tuple(columns_of(model, cluster)), velocity_units(model, cluster)
        limits = column_limits(columns)
        return ClusterMotion(cluster, compiled_geometry(model, cluster), columns, unit, *limits)

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.label for column in self.columns)

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
        """Each column's displacement from the zero position."""
        return self.geometry.difference(np.broadcast_to(self.geometry.zero(), q.shape), q)

    def rooms(self, q: Array) -> Array:
        """How far each column is within its limits; below zero beyond."""
        at = self.positions(q)
        return np.minimum(at - self.low, self.high - at)

    def within(self, q: Array) -> Mask:
        """Whether all joints are within their limits."""
        inside: Mask = np.min(self.rooms(q), axis=-1) >= -WITHIN
        return inside

    def close(self, q: Array, held: Sequence[int] = ()) -> tuple[Array, Mask]:
        """Closed configurations near these, and which of them are."""
        closed, gap = newton.close(
            self.geometry, q, Held(held), rows=self.cluster.closing_rows, iterations=40
        )
        return closed, (gap <= CLOSED) & ~self.geometry.flipped(closed)

    def wrapped(self, displacement: Array) -> Array:
        """A displacement in comparable units, without full turns."""
        length = np.array([column.length for column in self.columns])
        turns = np.where(length, 0.0, np.round(displacement / (2 * math.pi)))
        result: Array = (displacement - turns * 2 * math.pi) / self.unit
        return result

    def others(self, column: int) -> list[int]:
        """The independent velocities that are zero while one is swept."""
        return [c for c in self.cluster.columns if c != column]


def full_rank_rows(matrix: Array, rank: int) -> list[int]:
    """Rows that span all the others: those that are longest without their part along the chosen."""
    from scipy.linalg import qr

    _, order = qr(matrix.T, mode="r", pivoting=True)
    return sorted(order[:rank].tolist())


# ---- curves --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Singularity:
    """Where a curve is singular: position of the swept joint, and whether limits let it get there.

    ``away`` is how far the joint goes to get there, ``joints`` are all positions of the cluster.

    At a dead point the cluster moves while its independent velocities are zero; at a change point
    its conditions lose rank, and it may leave in several ways.
    """

    kind: Kind
    position: float
    away: float
    reached: bool
    joints: tuple[float, ...]


class SweepEnd(NamedTuple):
    """What ends the travel of the swept joint: its position, and the cluster's q there.

    ``by``: the joint whose limit it is, "loop" where the linkage ends it, "" where nothing does.
    """

    position: float
    by: str
    q: Array


@dataclass(frozen=True, slots=True, eq=False)  # it holds arrays, which are not equal or not
class Curve:
    """A curve of closed configurations, along which one independent velocity alone is not zero.

    ``joints`` (n, nq) are the cluster's part of q, ``position`` (n,) is of the swept joint,
    ``positions`` (n, spanning velocities) of all, ``rates`` (n, spanning velocities) their
    velocities at unit velocity of it (a column of G), ``reached`` (n,) where limits let it get from
    the start, in the order of travel; ``range``: how far that is, to where the first limit is met,
    dead points passed. ``branch``: positions (m,) and q (m, nq) between the two dead points next to
    the start, which are at ``turns`` (infinite of a joint that goes round), and ``ends``: the first
    limit or dead point on either side of it.
    """

    cluster: Cluster
    joint: str
    start: float
    held: dict[str, float]
    joints: Array
    position: Array
    positions: Array
    rates: Array
    reached: Mask
    range: tuple[float, float]
    gap: float
    singularities: tuple[Singularity, ...]
    branch: tuple[Array, Array]
    turns: tuple[float, float]
    ends: tuple[SweepEnd, SweepEnd]

    @property
    def ahead(self) -> Mask:
        """Where the curve is on the branch that it starts on: dead points turn it round."""
        travel = np.gradient(self.position)
        start = int(np.argmin(np.abs(self.position - self.start) + ~self.reached * 1e3))
        same: Mask = travel * (travel[start] or 1.0) >= 0.0
        return same

    @property
    def others(self) -> str:
        """Where the independent joints are that are held, in words."""
        return ", ".join(f"{name} = {value:.3g}" for name, value in self.held.items())

    def at(self, position: Array) -> Array:
        """The cluster's q (n, nq) on the branch with the swept joint there (n,); else nan."""
        points, near = self.branch
        nearest = np.argmin(np.abs(position[:, None] - points), axis=1)
        motion = np.zeros((len(position), self.cluster.nv))
        motion[:, self.cluster.independent.index(self.joint)] = position - points[nearest]
        q, gap = move(self.cluster, near[nearest], motion)
        low, high = self.turns
        bad = ~is_closed(self.cluster, q, gap) | (position < low) | (position > high)
        return np.where(bad[:, None], np.nan, q)


def curves(
    motion: ClusterMotion, starts: Sequence[Array], columns: Sequence[int] | None = None
) -> list[Curve]:
    """Those of every independent velocity, or of these columns, from every start, both ways."""
    swept = motion.cluster.columns if columns is None else columns
    trails = [
        _Trail(motion, column, start) for start in starts for column in swept for _ in range(2)
    ]
    _follow(motion, trails)
    return [_joined(*pair) for pair in zip(trails[::2], trails[1::2], strict=True)]


def curve(model: Model, cluster: Cluster, joint: str) -> Curve:
    """That of an independent joint with one freedom from the neutral configuration."""
    motion = ClusterMotion.of(model, cluster)
    column = cluster.columns[cluster.independent.index(joint)]
    return curves(motion, [model.neutral()[cluster.q]], [column])[0]


class _Trail:
    """One half of a curve, as far as it is followed; ``column`` is the swept velocity.

    ``rows`` of K and of the velocities that are zero span the others where the curve starts.
    """

    def __init__(self, motion: ClusterMotion, column: int, start: Array) -> None:
        self.motion, self.column = motion, column
        self.link = motion.geometry.links[motion.columns[column].link]
        self.q, self.length, self.ring = [start], [0.0], False
        self.tangent: list[Array] = []
        self.orientation: list[float] = []
        matrix = _matrix(motion, start[None], [column])[0]
        self.rows = full_rank_rows(matrix, len(motion.columns) - 1)

    @property
    def done(self) -> bool:
        """Whether it came round, its joint has turned by π, or it is long enough."""
        turned = not self.motion.columns[self.column].length and abs(self.travel) >= math.pi
        return self.ring or turned or self.length[-1] >= HALF_CURVE

    @property
    def travel(self) -> float:
        """How far the swept joint is from where it started; 0 of one with several freedoms."""
        if self.link.joint.nq != 1:
            return 0.0
        return float(self.q[-1][self.link.q] - self.q[0][self.link.q])

    @property
    def position(self) -> Array:
        """Of the swept joint; of a joint with several freedoms, the distance travelled."""
        if self.link.joint.nq == 1:
            return np.array(self.q)[:, self.link.q]
        speed = self.speed * self.motion.unit[self.column]
        steps = 0.5 * (speed[1:] + speed[:-1]) * np.diff(self.length)
        return np.concatenate([[0.0], np.cumsum(steps)])

    @property
    def speed(self) -> Array:
        """The swept joint's part of the tangents."""
        return np.array(self.tangent)[:, self.column]

    @property
    def reach(self) -> Mask:
        """Up to where the limits are first left; the start counts as reached."""
        inside = self.motion.within(np.array(self.q))
        inside[0] = True
        reached: Mask = np.logical_and.accumulate(inside)
        return reached


def _matrix(motion: ClusterMotion, q: Array, columns: Sequence[int]) -> Array:
    """K in comparable units above the velocities that are zero, one swept column for each q."""
    resting = np.eye(len(motion.columns))[[motion.others(column) for column in columns]]
    resting = resting.reshape(len(q), -1, len(motion.columns))
    return np.concatenate([motion.matrix(q), resting], axis=1)


def _tangents(
    motion: ClusterMotion, q: Array, before: Array, trails: Sequence[_Trail]
) -> tuple[Array, Array, Array]:
    """Unit tangents (ahead, as ``before``), K's orientation with them, and its regularity."""
    a = _matrix(motion, q, [trail.column for trail in trails])
    _, singular, right = np.linalg.svd(a)
    n = a.shape[2]
    tangent = right[:, n - 1]
    back = np.einsum("ci,ci->c", tangent, before) < 0.0
    tangent = np.where(back[:, None], -tangent, tangent)
    spanning = np.array([each[trail.rows] for each, trail in zip(a, trails, strict=True)])
    square = np.concatenate([spanning, tangent[:, None]], axis=1)
    weakest = singular[:, n - 2] / np.maximum(singular[:, 0], TINY)
    return tangent, np.linalg.det(square), weakest


def _stepped(
    motion: ClusterMotion, q: Array, tangent: Array, length: Array, trails: Sequence[_Trail]
) -> tuple[Array, Mask]:
    """Along the tangents, then back to where the loops close; whether they do."""
    q = motion.geometry.integrate(q, tangent * motion.unit * length[:, None])
    gap = np.empty(len(q))
    columns = np.array([trail.column for trail in trails])
    for column in np.unique(columns).tolist():
        swept = columns == column
        q[swept], gap[swept] = newton.close(
            motion.geometry, q[swept], Held(motion.others(column)), rows=motion.cluster.closing_rows
        )
    return q, gap < CLOSED


def _follow(motion: ClusterMotion, trails: Sequence[_Trail]) -> None:
    """Walk all curves at once, every second one against its joint."""
    q = np.array([trail.q[0] for trail in trails])
    ahead = np.eye(len(motion.columns))[[trail.column for trail in trails]]
    ahead[1::2] *= -1.0
    tangents, orientations, _ = _tangents(motion, q, ahead, trails)
    for trail, tangent, orientation in zip(trails, tangents, orientations, strict=True):
        trail.tangent.append(tangent)
        trail.orientation.append(float(orientation))
    active = [(trail, STEP) for trail in trails]
    while active:
        walking = [trail for trail, _ in active]
        strides = np.array([stride for _, stride in active])
        at = np.array([trail.q[-1] for trail in walking])
        before = np.array([trail.tangent[-1] for trail in walking])
        moved, closed = _stepped(motion, at, before, strides, walking)
        along, turned, _ = _tangents(motion, moved, before, walking)
        good = closed & (np.einsum("ci,ci->c", along, before) > 0.95)
        going = []
        for n, (trail, stride) in enumerate(active):
            if not good[n]:
                if stride > SHORTEST:
                    going.append((trail, stride / 2))
                continue
            trail.q.append(moved[n])
            trail.tangent.append(along[n])
            trail.orientation.append(float(turned[n]))
            trail.length.append(trail.length[-1] + stride)
            away = motion.wrapped(motion.geometry.difference(trail.q[0], moved[n]))
            trail.ring = (
                trail.length[-1] > 10 * STEP
                and float(np.linalg.norm(away)) < 0.8 * STEP
                and float(trail.tangent[0] @ along[n]) > 0.9
            )
            if not trail.done:
                going.append((trail, min(STEP, 2 * stride)))
        active = going


def _joined(ahead: _Trail, behind: _Trail) -> Curve:
    """Both halves of a curve as one, with what happens on it."""
    motion, column, halves = ahead.motion, ahead.column, (behind, ahead)
    (back, turn_back, low), (forth, turn_forth, high) = (_branch(trail) for trail in halves)
    branch = (
        np.concatenate([behind.position[back - 1 : 0 : -1], ahead.position[:forth]]),
        np.array(behind.q[back - 1 : 0 : -1] + ahead.q[:forth]),
    )
    if ahead.ring:  # each half has the whole of it
        for trail in halves:
            keep = sum(length <= 0.5 * trail.length[-1] + STEP for length in trail.length)
            for values in (trail.q, trail.tangent, trail.orientation, trail.length):
                del values[keep:]
    start = ahead.position[0]
    position = np.concatenate([behind.position[:0:-1], ahead.position])
    q = np.array(behind.q[:0:-1] + ahead.q)
    tangent = np.concatenate([-np.array(behind.tangent)[:0:-1], np.array(ahead.tangent)])
    reached = np.concatenate([behind.reach[:0:-1], ahead.reach])
    with np.errstate(divide="ignore", invalid="ignore"):
        # in units of the joints: tangents are in comparable ones
        rates = tangent * motion.unit / (tangent[:, column : column + 1] * motion.unit[column])
    events = [event for trail in (ahead, behind) for event in _events(trail)]
    ends = [_limit(trail).position for trail in halves]
    ends += [*position[reached].tolist(), *(each.position for each in events if each.reached)]
    at = motion.positions(ahead.q[0])
    return Curve(
        motion.cluster,
        motion.labels[column],
        float(start),
        {motion.labels[c]: float(at[c]) for c in motion.others(column)},
        q,
        position,
        motion.positions(q),
        rates,
        reached,
        (float(np.min(ends)), float(np.max(ends))),
        float(np.max(motion.geometry.gap(q))),
        tuple(sorted(_once(events), key=lambda each: each.away)),
        branch,
        (turn_back, turn_forth),
        (low, high),
    )


def _branch(trail: _Trail) -> tuple[int, float, SweepEnd]:
    """How many points there are before the first dead point, where that is, and the end."""
    first, limit = next(_events(trail), None), _limit(trail)
    if first is None or first.kind != "dead point":
        turn = math.copysign(math.inf, trail.travel) if trail.done else float(trail.position[-1])
        return len(trail.q), turn, limit
    count = 1 + int(np.argmax(trail.speed[:-1] * trail.speed[1:] < 0.0))
    dead = SweepEnd(first.position, "loop", np.array(first.joints))
    return count, first.position, dead if first.reached else limit


def _limit(trail: _Trail) -> SweepEnd:
    """Where the first limit is met, else where the trail ends."""
    motion, within, position = trail.motion, trail.reach, trail.position
    if within[-1]:
        return SweepEnd(float(position[-1]), "" if trail.done else "loop", trail.q[-1])
    last = int(np.argmin(within)) - 1
    q = trail.q[last]
    if trail.link.joint.nq == 1:
        q = _crossing(trail, last, lambda q: float(np.min(motion.rooms(q))))
        position[last] = q[trail.link.q]
    return SweepEnd(float(position[last]), motion.columns[int(np.argmin(motion.rooms(q)))].joint, q)


def _crossing(trail: _Trail, i: int, value: Callable[[Array], float]) -> Array:
    """The configuration between points i and i + 1 of a trail at which a function vanishes."""
    from scipy.optimize import brentq

    q, tangent = trail.q[i][None], trail.tangent[i][None]

    def at(length: float) -> Array:
        moved: Array = _stepped(trail.motion, q, tangent, np.array([length]), [trail])[0][0]
        return moved

    whole = trail.length[i + 1] - trail.length[i]
    if value(trail.q[i]) * value(at(whole)) >= 0.0:
        return trail.q[i]
    return at(brentq(lambda length: value(at(length)), 0.0, whole, xtol=1e-11, disp=False))


def _events(trail: _Trail) -> Iterator[Singularity]:
    """Where the swept joint, then where the orientation of K passes through zero."""
    motion, link = trail.motion, trail.link
    reach, position = trail.reach, trail.position
    signals: tuple[tuple[Kind, Array], ...] = (
        ("dead point", trail.speed),
        ("change point", np.array(trail.orientation)),
    )
    for kind, signal in signals:
        for i in np.flatnonzero(signal[:-1] * signal[1:] < 0.0).tolist():
            before = trail.tangent[i][None]

            def value(q: Array, before: Array = before, kind: Kind = kind) -> float:
                tangent, orientation, _ = _tangents(motion, q[None], before, [trail])
                return float(tangent[0, trail.column] if kind == "dead point" else orientation[0])

            q = _crossing(trail, i, value)
            if kind == "change point" and _tangents(motion, q[None], before, [trail])[2][0] > 1e-5:
                continue  # the rows that represent K lose rank there, K does not
            x = float(q[link.q]) if link.joint.nq == 1 else float(position[i])
            reached = bool(reach[i]) and bool(motion.within(q))
            yield Singularity(kind, x, abs(x - float(position[0])), reached, tuple(q.tolist()))


def _once(events: list[Singularity]) -> list[Singularity]:
    """Without those that both halves of a ring have met."""
    unique: list[Singularity] = []
    for event in sorted(events, key=lambda each: (not each.reached, each.away)):
        twin = any(
            other.kind == event.kind
            and math.isclose(math.remainder(other.position - event.position, 2 * math.pi), 0.0,
                             abs_tol=1e-5)
            and other.reached == event.reached
            for other in unique
        )  # fmt: skip
        if not twin:
            unique.append(event)
    return unique


# ---- sweeps and grids ----------------------------------------------------------------------------


SWEPT = 240
FREE_LENGTH = 0.5  # metres: how far a sliding joint without limits is moved


@dataclass(frozen=True)
class Sweep:
    """Configurations q (n, nq) along the positions (n,) of one independent joint.

    ``closed``: whether all of the range was reached; loops may not close in all of it.
    """

    joint: str
    positions: Array
    q: Array
    closed: bool


def sweep(
    model: Model, joint: str, *, steps: int = SWEPT,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Sweep:  # fmt: skip
    """Move one independent joint through its range, from the neutral configuration both ways.

    The range is its limits, and ``within``; a turn, or half a metre, each way without. Loops stay
    on their branch; where they cannot close the sweep ends. Raises UnknownNameError for unknown
    joints, ValueError for those that are not independent or have several freedoms.
    """
    joints = {each.name: each for each in model.joints}
    check_names([joint], joints, "no joint ", f" in '{model.name}'", error=UnknownNameError)
    if joint not in model.dof_names:
        names = ", ".join(name for name in model.dof_names if name in joints)
        raise ValueError(f"joint '{joint}' is not independent, or has several freedoms; "
                         f"independent joints are {names}")  # fmt: skip
    limits, cluster = joints[joint], next(c for c in model.clusters if joint in c.joints)
    neutral = model.neutral()
    at = float(model.joint_positions(neutral)[joint])
    reach = FREE_LENGTH if limits.type == "prismatic" else math.pi
    lower, upper = max(limits.lower, within[0]), min(limits.upper, within[1])
    lower = lower if math.isfinite(lower) else at - reach
    upper = upper if math.isfinite(upper) else at + reach
    start = min(max(at, lower), upper)
    # an odd number of steps: they seldom fall on dead points, where no ratio is to be had
    below, above = (round(steps * abs(end - start) / max(upper - lower, TINY)) | 1
                    for end in (lower, upper))  # fmt: skip
    positions = np.concatenate(
        [np.linspace(lower, start, below + 1), np.linspace(start, upper, above + 1)[1:]]
    )
    q = np.tile(neutral, (len(positions), 1))
    if not cluster.implicit:
        motion = np.zeros((len(positions), model.nv))
        motion[:, model.dof_names.index(joint)] = positions - at
        return Sweep(joint, positions, model.integrate(q, motion), True)
    q[:, cluster.q] = curve(model, cluster, joint).at(positions)
    fine = np.isfinite(q).all(axis=1)
    lost = np.flatnonzero(~fine)
    first = int(np.max(lost[lost < below], initial=-1)) + 1
    last = int(np.min(lost[lost > below], initial=len(q)))
    return Sweep(joint, positions[first:last], q[first:last], bool(fine.all()))


def grid(model: Model, names: Sequence[str], axes: Sequence[Array]) -> Array:
    """Closed configurations (n, m, …, nq) by joints' positions, from the neutral one outwards.

    So they stay on its branch of the loops. Not-a-number where loops do not close, or a joint is
    out of its limits.
    """
    shape = tuple(len(axis) for axis in axes)
    result = np.full((*shape, model.nq), np.nan)
    neutral = model.neutral()
    at = model.joint_positions(neutral)
    start = tuple(int(np.argmin(np.abs(axis - float(at[name]))))
                  for axis, name in zip(axes, names, strict=True))  # fmt: skip
    order = sorted(
        np.ndindex(*shape), key=lambda n: max(abs(a - b) for a, b in zip(n, start, strict=True))
    )
    for n in order:
        near = [m for m in _beside(n, start) if np.isfinite(result[m][0])]
        if not near and n != start:
            continue
        guess = result[near[0]] if near else neutral
        at_n = {name: float(axis[i]) for name, axis, i in zip(names, axes, n, strict=True)}
        with suppress(ClosureError):
            result[n] = model.configuration(at_n, guess=guess)
    inside = np.all(np.isfinite(result), axis=-1)
    positions = model.joint_positions(result[inside])
    good = np.ones(int(inside.sum()), dtype=bool)
    for joint in model.joints:
        if joint.nv == 1 and joint.type != "continuous":
            x = positions[joint.name]
            good &= (x >= joint.lower - WITHIN) & (x <= joint.upper + WITHIN)
    result[tuple(axis[~good] for axis in np.nonzero(inside))] = np.nan
    return result


def _beside(n: tuple[int, ...], start: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The neighbours of a grid point that are nearer to the start."""
    steps = [int(np.sign(b - a)) for a, b in zip(n, start, strict=True)]
    return [
        tuple(a + s * m for a, s, m in zip(n, steps, moved, strict=True))
        for moved in np.ndindex(*(2 if s else 1 for s in steps))
        if any(moved)
    ][::-1]
