"""The motion of a cluster with loops, measured by samples within its limits and by curves.

A cluster is swept by one independent velocity at a time: with the others held, its closed
configurations are a curve. It is followed by its tangent, and so through dead points, where the
independent joint itself comes to rest. Samples anywhere within the limits serve the rest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.model import closure as newton
from robomodel.model.closure import CLOSED, Geometry
from robomodel.model.configurations.coordinates import columns_of, units_of
from robomodel.model.elements import Cluster
from robomodel.model.joints import Array, Mask
from robomodel.model.mobility.exploration import column_ranges, conditioning, random_positions
from robomodel.model.mobility.problem import Column
from robomodel.model.model import Model
from robomodel.reports.drawings import Sketch, sketch
from robomodel.reports.validation.linkage import Choice, Kind, Linkage, Singularity, Sweep

STEP = 0.08  # radians, or cluster sizes, along a curve
LONGEST = 16.0  # of each half of a curve, which ends when the swept joint has made half a turn
INSIDE = 1e-9
EXACT = 1e-11  # m, or sine of an angle: a curve's configurations close so well
SAMPLES = 400
OTHER_STARTS = 3  # clusters of several freedoms are swept from their worst samples too, so many
CHOICES = 500  # more choices of independent coordinates than these are not compared
DRAWN = 4  # singularities
SEED = 20240611


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


def _held(motion: ClusterMotion, column: int) -> list[int]:
    """The independent velocities that rest while one is swept."""
    return [c for c in motion.cluster.columns if c != column]


def _matrix(motion: ClusterMotion, q: Array, columns: Sequence[int]) -> Array:
    """K in comparable units above the velocities that rest, one swept column for each q."""
    rest = np.eye(len(motion.columns))[[_held(motion, column) for column in columns]]
    return np.concatenate([motion.matrix(q), rest.reshape(len(q), -1, len(motion.columns))], axis=1)


def _look(
    motion: ClusterMotion, q: Array, before: Array, trails: Sequence[_Trail]
) -> tuple[Array, Array, Array]:
    """Unit tangents (ahead, as ``before``), K's orientation with them, and its regularity."""
    a = _matrix(motion, q, [trail.column for trail in trails])
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
    motion: ClusterMotion, q: Array, tangent: Array, length: Array, trails: Sequence[_Trail]
) -> tuple[Array, Mask]:
    """Along the tangents, then back to where the loops close; whether they do."""
    q = motion.geometry.integrate(q, tangent * motion.unit * length[:, None])
    gap = np.empty(len(q))
    columns = np.array([trail.column for trail in trails])
    for column in np.unique(columns).tolist():
        swept = columns == column
        q[swept], gap[swept] = newton.close(
            motion.geometry, q[swept], held=_held(motion, column), rows=motion.cluster.closing_rows
        )
    return q, gap < EXACT


def sweep_all(motion: ClusterMotion, starts: Sequence[Array]) -> list[Sweep]:
    """The curves of every independent velocity from every start, both ways."""
    columns = [column for _ in starts for column in motion.cluster.columns for _ in (0, 1)]
    q = np.repeat(np.array(starts), 2 * motion.cluster.nv, axis=0)
    matrices = _matrix(motion, q, columns)
    trails = [
        _Trail(column, full_rank_rows(each, len(motion.columns) - 1), [at], [], [], [0.0])
        for column, each, at in zip(columns, matrices, q, strict=True)
    ]
    _follow(motion, trails)
    return [_sweep(motion, *pair) for pair in zip(trails[::2], trails[1::2], strict=True)]


def _follow(motion: ClusterMotion, trails: Sequence[_Trail]) -> None:
    """Walk all curves at once, every second one against its joint."""
    q = np.array([trail.q[0] for trail in trails])
    ahead = np.eye(len(motion.columns))[[trail.column for trail in trails]]
    ahead[1::2] *= -1.0
    tangents, orientations, _ = _look(motion, q, ahead, trails)
    for trail, tangent, orientation in zip(trails, tangents, orientations, strict=True):
        trail.tangent.append(tangent)
        trail.orientation.append(float(orientation))
    active = [(trail, STEP) for trail in trails]
    while active:
        walking = [trail for trail, _ in active]
        strides = np.array([stride for _, stride in active])
        at = np.array([trail.q[-1] for trail in walking])
        before = np.array([trail.tangent[-1] for trail in walking])
        moved, closed = _step(motion, at, before, strides, walking)
        along, turned, _ = _look(motion, moved, before, walking)
        good = closed & (np.einsum("ci,ci->c", along, before) > 0.95)
        going = []
        for n, (trail, stride) in enumerate(active):
            if not good[n]:
                if stride > 2e-5:
                    going.append((trail, stride / 2))
                continue
            trail.q.append(moved[n])
            trail.tangent.append(along[n])
            trail.orientation.append(float(turned[n]))
            trail.length.append(trail.length[-1] + stride)
            away = wrapped(motion, motion.geometry.difference(trail.q[0], moved[n]))
            trail.ring = (
                trail.length[-1] > 10 * STEP
                and float(np.linalg.norm(away)) < 0.8 * STEP
                and float(trail.tangent[0] @ along[n]) > 0.9
            )
            turned_far = not motion.columns[trail.column].length and math.pi <= abs(
                _way(motion, trail)
            )
            if not trail.ring and not turned_far and trail.length[-1] < LONGEST:
                going.append((trail, min(STEP, 2 * stride)))
        active = going


def _sweep(motion: ClusterMotion, ahead: _Trail, behind: _Trail) -> Sweep:
    """Both halves of a curve as one, with what happens on it."""
    column = ahead.column
    if ahead.ring:  # each half has the whole of it
        for trail in (ahead, behind):
            keep = sum(length <= 0.5 * trail.length[-1] + STEP for length in trail.length)
            for values in (trail.q, trail.tangent, trail.orientation, trail.length):
                del values[keep:]
    start = _position(motion, ahead)[0]
    position = np.concatenate([_position(motion, behind)[:0:-1], _position(motion, ahead)])
    q = np.array(behind.q[:0:-1] + ahead.q)
    tangent = np.concatenate([-np.array(behind.tangent)[:0:-1], np.array(ahead.tangent)])
    reached = np.concatenate([_reach(motion, behind)[:0:-1], _reach(motion, ahead)])
    with np.errstate(divide="ignore", invalid="ignore"):
        # in units of the joints: tangents are in comparable ones
        rates = tangent * motion.unit / (tangent[:, column : column + 1] * motion.unit[column])
        condition = 1.0 / conditioning(motion.null(q), motion.cluster.columns)
    events = [event for trail in (ahead, behind) for event in _events(motion, trail)]
    ends = [_end(motion, trail) for trail in (ahead, behind)]
    ends += [*position[reached].tolist(), *(each.position for each in events if each.reached)]
    at = motion.positions(q[len(behind.q) - 1])
    return Sweep(
        motion.labels[column],
        float(start),
        {motion.labels[c]: float(at[c]) for c in _held(motion, column)},
        q,
        position,
        motion.positions(q),
        rates,
        condition,
        reached,
        (float(np.min(ends)), float(np.max(ends))),
        float(np.max(motion.geometry.gap(q))),
        tuple(sorted(_once(events), key=lambda each: each.away)),
    )


def _crossing(
    motion: ClusterMotion, trail: _Trail, i: int, value: Callable[[Array], float]
) -> Array:
    """The configuration between points i and i + 1 of a trail at which a function vanishes."""
    from scipy.optimize import brentq

    q, tangent = trail.q[i][None], trail.tangent[i][None]

    def at(length: float) -> Array:
        moved: Array = _step(motion, q, tangent, np.array([length]), [trail])[0][0]
        return moved

    whole = trail.length[i + 1] - trail.length[i]
    if value(trail.q[i]) * value(at(whole)) >= 0.0:
        return trail.q[i]
    return at(brentq(lambda length: value(at(length)), 0.0, whole, xtol=1e-11, disp=False))


def _end(motion: ClusterMotion, trail: _Trail) -> float:
    """The position where the first limit is met, else that of the trail's end."""
    within, position = _reach(motion, trail), _position(motion, trail)
    if within[-1]:
        return float(position[-1])
    last = int(np.argmin(within)) - 1
    link = motion.geometry.links[motion.columns[trail.column].link]
    if link.joint.nq != 1:
        return float(position[last])
    return float(_crossing(motion, trail, last, lambda q: float(motion.room(q)))[link.q])


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


def _position(motion: ClusterMotion, trail: _Trail) -> Array:
    """Of the swept joint; of a joint with several freedoms, the way travelled."""
    link = motion.geometry.links[motion.columns[trail.column].link]
    if link.joint.nq == 1:
        return np.array(trail.q)[:, link.q]
    speed = np.array(trail.tangent)[:, trail.column] * motion.unit[trail.column]
    return np.concatenate(
        [[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(trail.length))]
    )


def _way(motion: ClusterMotion, trail: _Trail) -> float:
    """How far the swept joint is from where it started."""
    link = motion.geometry.links[motion.columns[trail.column].link]
    if link.joint.nq == 1:
        return float(trail.q[-1][link.q] - trail.q[0][link.q])
    return 0.0


def _reach(motion: ClusterMotion, trail: _Trail) -> Mask:
    """Up to where the limits are first left; the start counts as reached."""
    inside = motion.within(np.array(trail.q))
    inside[0] = True
    reached: Mask = np.logical_and.accumulate(inside)
    return reached


def _events(motion: ClusterMotion, trail: _Trail) -> Iterator[Singularity]:
    """Where the swept joint or the orientation of K passes through zero."""
    speed = np.array(trail.tangent)[:, trail.column]
    reach, position = _reach(motion, trail), _position(motion, trail)
    link = motion.geometry.links[motion.columns[trail.column].link]
    signals: tuple[tuple[Kind, Array], ...] = (
        ("dead point", speed),
        ("change point", np.array(trail.orientation)),
    )
    for kind, signal in signals:
        for i in np.flatnonzero(signal[:-1] * signal[1:] < 0.0).tolist():
            before = trail.tangent[i][None]

            def value(q: Array, before: Array = before, kind: Kind = kind) -> float:
                tangent, orientation, _ = _look(motion, q[None], before, [trail])
                return float(tangent[0, trail.column] if kind == "dead point" else orientation[0])

            q = _crossing(motion, trail, i, value)
            if kind == "change point" and _look(motion, q[None], before, [trail])[2][0] > 1e-5:
                continue  # the rows chosen to stand for K lose rank there, K does not
            x = float(q[link.q]) if link.joint.nq == 1 else float(position[i])
            reached = bool(reach[i]) and bool(motion.within(q))
            yield Singularity(kind, x, abs(x - float(position[0])), reached, tuple(q.tolist()))


def wrapped(motion: ClusterMotion, way: Array) -> Array:
    """Comparable units, full turns taken off."""
    length = np.array([column.length for column in motion.columns])
    turns = np.where(length, 0.0, np.round(way / (2 * math.pi)))
    result: Array = (way - turns * 2 * math.pi) / motion.unit
    return result


def full_rank_rows(matrix: Array, rank: int) -> list[int]:
    """Rows that span all the others: those that are longest without their part along the chosen."""
    from scipy.linalg import qr

    _, order = qr(matrix.T, mode="r", pivoting=True)
    return sorted(order[:rank].tolist())


# ---- the study of a cluster ----------------------------------------------------------------------


def study(model: Model, cluster: Cluster) -> Linkage:
    """Measure a cluster with loops."""
    motion = ClusterMotion.of(model, cluster)
    start = np.array(cluster.start)
    rng = np.random.default_rng(SEED)
    ranges = column_ranges(motion.columns, motion.geometry.scale)
    guesses = random_positions(motion.geometry, ranges, rng, SAMPLES)
    samples, closed = motion.close(guesses)
    samples = samples[closed & motion.within(samples)]
    samples = np.concatenate([start[None], samples])
    starts = [start]
    side = _sides(motion, samples)
    if cluster.nv > 1:
        near = samples[side == side[0]]
        regular = conditioning(motion.null(near), cluster.columns)
        near = near[regular > 1e-4]
        starts += list(near[np.argsort(regular[regular > 1e-4], kind="stable")][:OTHER_STARTS])
    sweeps = sweep_all(motion, starts)
    gaps = [sweep.gap for sweep in sweeps] + [float(np.max(motion.geometry.gap(samples)))]
    near = samples[side == side[0]]
    chosen, best = _choices(motion, near)
    ways = _branches(motion, start, rng)
    other = ways[1:2]
    others = sweep_all(motion, other) if other else []
    return Linkage(
        cluster=cluster.name,
        joints=cluster.joints,
        labels=motion.labels,
        independent=cluster.independent,
        rows=motion.geometry.rows,
        rank=motion.rank,
        start_gap=float(motion.geometry.gap(_file_start(motion))),
        start_condition=_start_condition(motion),
        gap=max(gaps),
        outside=_outside(motion, start),
        branches=len(ways),
        samples=len(near),
        chosen=chosen,
        best=best,
        sweeps=tuple(sweeps),
        groups=_groups(motion, samples),
        lengths=tuple(column.length for column in motion.columns),
        other_sweeps=tuple(others),
        sketches=tuple(_sketches(motion, start, other, sweeps)),
        ghosts=_ends(motion, sweeps[0]),
    )


def _sketches(
    motion: ClusterMotion, start: Array, other: Sequence[Array], sweeps: Sequence[Sweep]
) -> Iterator[Sketch]:
    """At neutral, on the other way to close, and at the singularities of the first sweeps."""
    yield sketch(motion.model, motion.cluster, start.tolist(), "neutral configuration")
    for q in other:
        yield sketch(motion.model, motion.cluster, q.tolist(), "the other way to close")
    drawn = 0
    for sweep in sweeps[: motion.cluster.nv]:
        for each in sweep.singularities:
            if drawn == DRAWN:
                return
            drawn += 1
            title = f"{each.kind}: {sweep.joint} = {each.position:.4g}"
            yield sketch(motion.model, motion.cluster, each.joints, title)


def _ends(motion: ClusterMotion, sweep: Sweep) -> tuple[Sketch, ...]:
    """Where the limits, or the linkage itself, end the first sweep."""
    reached = sweep.joints[sweep.reached]
    return tuple(
        sketch(motion.model, motion.cluster, q.tolist(), "") for q in (reached[0], reached[-1])
    )


def _file_start(motion: ClusterMotion) -> Array:
    """Where the file puts the joints: their initial positions, else zero."""
    joints = {joint.name: joint.initial for joint in motion.model.description.joints}
    q = motion.geometry.zero()
    for name, link in zip(motion.cluster.joints, motion.geometry.links, strict=True):
        initial = joints[name]
        if initial is not None and link.joint.nq == 1:
            q[link.q] = initial
    return q


def _start_condition(motion: ClusterMotion) -> float:
    q = _file_start(motion)
    if float(motion.geometry.gap(q)) > 1e-6:
        return math.nan
    singular = np.linalg.svd(motion.matrix(q), compute_uv=False)
    regular = float(conditioning(motion.null(q[None]), motion.cluster.columns)[0])
    weak = float(singular[motion.rank - 1]) < 1e-6 * float(singular[0])
    return math.inf if weak or regular < 1e-6 else 1.0 / regular


def _outside(motion: ClusterMotion, q: Array) -> float:
    at = motion.positions(q)
    return float(np.max(np.maximum(motion.low - at, at - motion.high), initial=0.0))


def _branches(motion: ClusterMotion, start: Array, rng: np.random.Generator) -> list[Array]:
    """How the loops close where the independent joints are, from the start on outward.

    None where a motion that the independent joints leave free gives any number of them.
    """
    columns = list(motion.cluster.columns)
    count = 96
    moves = rng.uniform(-math.pi, math.pi, (count, len(motion.columns))) * motion.unit
    moves[:, columns] = 0.0
    guesses = motion.geometry.integrate(np.broadcast_to(start, (count, len(start))), moves)
    q, closed = motion.close(guesses, held=columns)
    configurations: list[Array] = [start]
    for each in q[closed]:
        ways = [wrapped(motion, motion.geometry.difference(q0, each)) for q0 in configurations]
        if min(float(np.max(np.abs(way))) for way in ways) > 1e-4:
            configurations.append(motion.geometry.integrate(start, ways[0] * motion.unit))
    if len(configurations) >= count // 4:
        return []
    return sorted(
        configurations, key=lambda q: float(np.max(np.abs(motion.geometry.difference(start, q))))
    )


def _choices(motion: ClusterMotion, samples: Array) -> tuple[Choice, Choice | None]:
    """The independent coordinates and the best ones, by their condition over the samples."""
    null = motion.null(samples)

    def judged(choice: tuple[int, ...]) -> Choice:
        with np.errstate(divide="ignore"):
            condition = 1.0 / conditioning(null, choice)
        joints = tuple(motion.labels[column] for column in choice)
        return Choice(joints, float(np.max(condition)), float(np.median(condition)))

    chosen = judged(tuple(motion.cluster.columns))
    if math.comb(len(motion.columns), motion.cluster.nv) > CHOICES:
        return chosen, None
    choices = itertools.combinations(range(len(motion.columns)), motion.cluster.nv)
    best = min((judged(choice) for choice in choices), key=lambda each: (each.worst, each.median))
    return chosen, best


def _sides(motion: ClusterMotion, q: Array) -> Array:
    """The sign of det [K; independent rows]: singular configurations lie where it changes.

    Samples of another sign than the start's are on another branch, as seen from there.
    """
    rows = full_rank_rows(motion.matrix(q[0]), motion.rank)
    unit = np.zeros((motion.cluster.nv, len(motion.columns)))
    unit[range(motion.cluster.nv), list(motion.cluster.columns)] = 1.0
    kept = motion.matrix(q)[:, rows]
    whole = np.concatenate([kept, np.broadcast_to(unit, (len(q), *unit.shape))], axis=1)
    sign: Array = np.sign(np.linalg.det(whole))
    return sign


def _groups(motion: ClusterMotion, samples: Array) -> tuple[tuple[str, ...], ...]:
    """Joints that no condition relates to each other, though they are in one cluster."""
    from scipy.sparse.csgraph import connected_components

    used = np.max(np.abs(motion.geometry.evaluate(samples[:64])[1]), axis=0) > 1e-9
    together = used.T.astype(int) @ used
    group = connected_components(together, directed=False)[1].tolist()
    by_joint: dict[int, list[str]] = {}
    for column, g in zip(motion.columns, group, strict=True):
        by_joint.setdefault(g, []).append(column.joint)
    return tuple(tuple(dict.fromkeys(joints)) for joints in by_joint.values())
