"""Curves of closed configurations, along which clusters with loops move; sweeps and grids.

A cluster is swept by one independent velocity at a time: with the others held, its closed
configurations are a path (:mod:`robomodel.reach.paths`), which is followed through
limits, dead points, where the independent joint itself comes to rest, and change points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.errors import ClosureError, UnknownNameError, check_names
from robomodel.mechanism.closure import extreme_singular
from robomodel.model.configurations.following import is_closed, move
from robomodel.model.configurations.moving import solve
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.reach.charts import without_idle
from robomodel.reach.crossings import vanishing
from robomodel.reach.motions import ClusterMotion, full_rank_rows
from robomodel.reach.parts import VARIED, Part
from robomodel.reach.paths import PATH_STEP, WEAK, Half, Path, walk
from robomodel.reach.ranges import whole_part, without_spins
from robomodel.tolerances import TINY, WITHIN

HALF_CURVE = 32.0  # of each half of a curve, which ends after a turn of the swept joint

Kind = Literal["dead point", "change point"]


# ---- curves --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Singularity:
    """Where a curve is singular: position of the swept joint, and whether limits let it get there.

    ``away`` is how far the joint goes to get there, ``joints`` are all positions of the cluster.

    At a dead point the cluster moves while its independent velocities are zero; at a change point
    its conditions lose rank, and it may leave in several ways. Where a file's rounding parts these
    ways (by its root, 1e-3 for 1e-6) it is one, too.
    """

    kind: Kind
    position: float
    away: float
    reached: bool
    joints: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)  # it holds arrays, which are not equal or not
class Curve:
    """A curve of closed configurations, along which one joint moves and the others rest that,
    with it, tell the cluster's motion: the other independent ones, or those of the limb.

    ``joints`` (n, nq) are the cluster's part of q, ``position`` (n,) is of the swept joint,
    ``positions`` (n, spanning velocities) of all, ``rates`` (n, spanning velocities) their
    velocities at unit velocity of it (a column of G), ``reached`` (n,) where limits let it get from
    the start, in the order of travel; ``range``: how far the points and singularities are that it
    gets to, dead points passed. ``branch``: positions (m,) and q (m, nq) between the two dead
    points next to the start, which are at ``turns`` (infinite of a joint that goes round).
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
    model: Model,
    motion: ClusterMotion,
    starts: Sequence[Array],
    columns: Sequence[int],
    chart: Sequence[int] | None = None,
    beside: Sequence[Half] = (),
) -> list[Curve]:
    """The curves of these velocities from every start, others of ``chart`` at rest.

    ``chart``: columns that tell the cluster's motion; None for the independent ones. ``beside``:
    halves of other paths, which are followed at once.
    """
    cluster = motion.cluster
    chart = cluster.columns if chart is None else chart
    parts = {c: whole_part(model, cluster, c) for c in columns}
    rests = {c: [x for x in chart if x != c] for c in columns}
    helds = {c: without_spins(model, cluster, c, rests[c]) for c in columns}
    sweeps = [
        _Sweep(motion, parts[column], column, rests[column], helds[column], start)
        for start in starts
        for column in columns
    ]
    walk([*beside, *(half for each in sweeps for half in each.halves)])
    return [each.curve() for each in sweeps]


def curve(model: Model, cluster: Cluster, joint: str) -> Curve:
    """The curve of an independent joint with one freedom from the neutral configuration."""
    motion = ClusterMotion.of(model, cluster)
    column = cluster.columns[cluster.independent.index(joint)]
    return curves(model, motion, [model.neutral()[cluster.q]], [column])[0]


class _Sweep:
    """The path on which one velocity moves and others rest, in halves: against it, and along.

    Spins of rods are free beside it, so that no dead point is one of theirs.
    """

    def __init__(
        self, motion: ClusterMotion, part: Part, column: int, every: Sequence[int],
        held: Sequence[int], start: Array,
    ) -> None:  # fmt: skip
        self.motion, self.part, self.column, self.held = motion, part, column, held
        self.link = motion.geometry.links[motion.columns[column].link]
        self.rows = list[int]()  # of K, that span the others where it is regular
        ways = part.null(start, self.held)
        ways = ways if ways.shape[1] == 1 else without_idle(ways, part.interest)
        if ways.shape[1] != 1:  # no spin alone is beside it
            self.held = every
            ways = part.null(start, every)
        self.free = np.flatnonzero(part.free(self.held))
        ahead = ways[:, 0]
        ahead = -ahead if ahead[column] < 0.0 else ahead
        self.halves = [
            Half(part, self.held, start, way, column=column, longest=HALF_CURVE)
            for way in (-ahead, ahead)
        ]

    def curve(self) -> Curve:
        """Once it is followed: the curve, with what happens on it."""
        motion, column = self.motion, self.column
        back, forth = self.halves
        for half in self.halves:
            keep = self._kept(half)
            for values in (half.q, half.tangents, half.lengths):
                del values[keep:]
        q = np.array(back.q[:0:-1] + forth.q)
        tangents = np.array([-x for x in back.tangents[:0:-1]] + forth.tangents)
        path = Path(self.part, q, tangents, len(back.q) - 1, (back.end, forth.end), False,
                    tuple(self.held))  # fmt: skip
        position, reached = self._positions(path), self._reached(path)
        with np.errstate(divide="ignore", invalid="ignore"):  # tangents are in comparable units
            unit = self.part.unit
            rates = tangents * unit / (tangents[:, column : column + 1] * unit[column])
        events = list(self._events(path, position, reached))
        ends = [*position[reached].tolist(), *(each.position for _, each in events if each.reached)]
        branch, turns = self._branch(path, position, events)
        start = float(position[path.start])
        at = motion.positions(q[path.start])
        return Curve(
            motion.cluster,
            motion.labels[column],
            start,
            {motion.labels[c]: round(float(at[c]), 9) + 0.0 for c in self.held},
            q,
            position,
            motion.positions(q),
            rates,
            reached,
            (float(np.min(ends)), float(np.max(ends))),
            float(np.max(motion.geometry.gap(q))),
            tuple(
                sorted(
                    _once(
                        [
                            each
                            for _, each in sorted(
                                events, key=lambda pair: abs(pair[0] - path.start)
                            )
                        ]
                    ),
                    key=lambda each: (round(each.away, 9), not each.reached),
                )
            ),
            (position[branch], q[branch]),
            turns,
        )

    def _kept(self, half: Half) -> int:
        """How many points of a half are the curve's: half a turn of a joint that turns fully.

        Where others come round each half has the whole of it, and half of that is kept. Joints that
        couplings turn, as nuts of screws, may have turned often before their linkage has once.
        """
        turned = np.abs(np.array(half.q)[:, self.link.q] - half.q[0][self.link.q])
        turns = self.link.joint.nq == 1 and not self.part.lengths[self.column]
        turns &= self.column not in self.part.coupled
        goes_on = np.min(np.array(half.tangents)[:, self.column] * half.tangents[0][self.column])
        if turns and goes_on > 0.0 and turned[-1] >= math.pi:
            return int(np.argmax(turned >= math.pi)) + 1
        if half.ring:
            return sum(length <= 0.5 * half.lengths[-1] + PATH_STEP for length in half.lengths)
        return len(turned)

    def _positions(self, path: Path) -> Array:
        """Positions of the swept joint; of one with several freedoms, the distance travelled."""
        if self.link.joint.nq == 1:
            return np.asarray(path.q[:, self.link.q])
        back, forth = self.halves
        lengths = np.array([-x for x in back.lengths[:0:-1]] + forth.lengths)
        speed = path.tangents[:, self.column] * self.part.unit[self.column]
        travel = np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(lengths))
        travel = np.concatenate([[0.0], travel])
        return np.asarray(travel - travel[path.start])

    def _reached(self, path: Path) -> Mask:
        """Up to where limits are first left, both ways; the start counts as reached."""
        inside, start = self.motion.within(path.q), path.start
        inside[start] = True
        inside[start:] = np.logical_and.accumulate(inside[start:])
        inside[: start + 1] = np.logical_and.accumulate(inside[start::-1])[::-1]
        return inside

    def _branch(
        self, path: Path, position: Array, events: Sequence[tuple[int, Singularity]]
    ) -> tuple[slice, tuple[float, float]]:
        """Which points are between the dead points next to the start, and where these are."""
        first, last, turns = 0, len(position) - 1, [-math.inf, math.inf]
        for side, end in enumerate(path.ends):
            if end.kind:  # loops do not close beyond
                turns[side] = float(position[-1 if side else 0])
        for a, event in events:
            if event.kind == "dead point" and first <= a < last:
                if a < path.start:
                    first, turns[0] = a + 1, event.position
                else:
                    last, turns[1] = a, event.position
        return slice(first, last + 1), (turns[0], turns[1])

    def _events(
        self, path: Path, position: Array, reached: Mask
    ) -> Iterator[tuple[int, Singularity]]:
        """Where the swept joint, then where the orientation of K passes through zero, or K is weak.

        With the points after which that is, in their order.
        """
        spins, k = self._spins(path.q), self._matrix(path.q)
        regularity = self._regularity(k)
        self.rows = full_rank_rows(k[np.argmax(regularity)], self.part.rank)
        signals: tuple[tuple[Kind, Array], ...] = (
            ("dead point", path.tangents[:, self.column]),
            ("change point", self._orientation(k, path.tangents, spins)),
        )
        for kind, signal in signals:
            for a in np.flatnonzero(signal[:-1] * signal[1:] < 0.0).tolist():
                step = path.step(a)
                if kind == "dead point":
                    rest = step.root(1.5 * step.length, lambda _, t: float(t[self.column]))
                    q = step.at(rest)[0]
                else:
                    at = step.across(partial(self._oriented, spins[a]))
                    if self._regularity(self._matrix(at[None]))[0] > WEAK:
                        continue  # the rows that represent K lose rank there, K does not
                    q = step.closed(at)
                yield a, self._event(kind, path, position, reached, a, q)
        for a, q in self._weakest(path, regularity):
            yield a, self._event("change point", path, position, reached, a, q)

    def _event(
        self, kind: Kind, path: Path, position: Array, reached: Mask, a: int, q: Array
    ) -> Singularity:
        """A singularity between point a of the path and the next."""
        x = float(q[self.link.q]) if self.link.joint.nq == 1 else float(position[a])
        near = bool(reached[a if a >= path.start else a + 1])
        away = abs(x - float(position[path.start]))
        inside = near and bool(self.motion.within(q))
        return Singularity(kind, x, away, inside, tuple(q.tolist()))

    def _weakest(self, path: Path, values: Array) -> Iterator[tuple[int, Array]]:
        """Where the least singular value of K, these ``values``, vanishes, after which points.

        An even number of ranks that are lost at once, as of two parallelograms, leaves the sign of
        the orientation. The value's slope, by central differences, changes its sign there.
        """
        part = self.part

        def slope(q: Array, t: Array) -> Array:
            ahead, back = (part.geometry.integrate(q, x * part.unit * t) for x in (VARIED, -VARIED))
            ends = (self._regularity(self._matrix(x)) for x in (ahead, back))
            return (next(ends) - next(ends)) / (2.0 * VARIED)

        slopes = slope(path.q, path.tangents)
        away = part.geometry.difference(path.q[:-1], path.q[1:]) * part.free(self.held)
        lengths = np.linalg.norm(away / part.unit, axis=1)
        for a in vanishing(values, slopes, lengths).tolist():
            step = path.step(a)
            at = step.across(lambda q, t: float(slope(q[None], t[None])[0]))
            if self._regularity(self._matrix(at[None]))[0] <= WEAK:
                yield a, step.closed(at)

    def _spins(self, q: Array, like: Array | None = None) -> Array:
        """Motions (n, k, columns) at points that only turn rods, with the sides of those before."""
        part, free = self.part, np.flatnonzero(self.part.free(self.held))
        if part.mobility - len(self.held) <= 1:
            return np.zeros((len(q), 0, len(part.unit)))
        null = part.null(q, self.held)
        shown = [c for c in part.interest if c in free]
        ways = np.swapaxes(np.linalg.svd(null[:, shown])[2][:, 1:], 1, 2)
        spins = np.swapaxes(null @ ways, 1, 2)
        before = spins[:-1] if like is None else np.concatenate([like[None], spins[:-1]])
        after = spins[len(spins) - len(before) :]
        turned = np.linalg.det(after @ np.swapaxes(before, 1, 2)) < 0.0
        after[:, 0] *= np.cumprod(np.where(turned, -1.0, 1.0))[:, None]
        return np.asarray(spins)

    def _oriented(self, like: Array, q: Array, tangent: Array) -> float:
        """:meth:`_orientation` at a point, with spins turned as those near it."""
        spins = self._spins(q[None], like)
        return float(self._orientation(self._matrix(q[None]), tangent[None], spins)[0])

    def _orientation(self, k: Array, tangents: Array, spins: Array) -> Array:
        """The determinant (n,) of rows of K, the tangents and spins; of free columns."""
        motions = np.concatenate([tangents[:, None], spins], axis=1)[:, :, self.free]
        return np.asarray(np.linalg.det(np.concatenate([k[:, self.rows], motions], axis=1)))

    def _matrix(self, q: Array) -> Array:
        """K (n, rows, free columns) at points; no row counts for more where screws turn far."""
        part = self.part
        k = part.matrix(part.geometry.evaluate(q)[1], part.free())[:, :, self.free]
        if np.all(self.motion.winding == 1.0):
            return k
        return np.asarray(k / np.maximum(1.0, np.linalg.norm(k, axis=2, keepdims=True)))

    def _regularity(self, k: Array) -> Array:
        """The least singular value (n,) of K that is not zero, of the greatest."""
        least, greatest = extreme_singular(k, self.part.rank)
        return least / np.maximum(greatest, TINY)


def _once(events: list[Singularity]) -> list[Singularity]:
    """Without those that are met again: of equals the one that is nearest along the curve stays."""
    unique: list[Singularity] = []
    for event in sorted(events, key=lambda each: (not each.reached, round(each.away, 9))):
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
    # sliding joints without limits are moved by half a metre
    reach = 0.5 if limits.type == "prismatic" else math.pi
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
            result[n] = solve(model, at_n, guess, None, other_modes=False)
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
