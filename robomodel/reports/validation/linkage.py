"""Measurements of a cluster with loops: branches, singularities, coordinates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from robomodel.arrays import Array, median
from robomodel.description.poses import initial_positions
from robomodel.mechanism.continuation import Points, joined
from robomodel.mechanism.copies import as_written
from robomodel.mobility.exploration import AS_GOOD, conditioning
from robomodel.model.elements import Cluster, Joint, spanning_start, units_of
from robomodel.model.model import Model
from robomodel.model.spins import find_spins, joints_of_balls
from robomodel.reach import dead_points
from robomodel.reach.crossings import unwound
from robomodel.reach.curves import Curve, Singularity, curves
from robomodel.reach.groups import Group, merged
from robomodel.reach.limb import limb_bodies
from robomodel.reach.motions import ClusterMotion
from robomodel.reach.paths import WEAK, Half
from robomodel.reach.ranges import FreeRanges, JointRange, RangesFrom
from robomodel.reach.reachable import Linkage, reachable
from robomodel.reports.document import picked, plain
from robomodel.reports.drawings import Sketch, sketch
from robomodel.reports.validation.bounds import BOUNDS
from robomodel.tolerances import MOVES, OPEN, SAME, TINY

SWEPT_SAMPLES = 800
MODES, NAMED = 4, 6  # other ways to close that are looked at, and joints that are named of one
RANDOM_STARTS = 96  # positions from which loops are closed
# most choices of independent coordinates that are compared, configurations in which all of them
# are, how many of these are in all configurations, and how many are searched for dead points
CHOICES, FIRST, FEWER, SEARCHED = 500, 96, 24, 10
DRAWN_SINGULARITIES = 4  # most singularities that are drawn
TELLS = 1e-3  # least σ of limb's joints by which sweeps are drawn
DRAWN_UP_TO = 1e6  # greatest 1/σ in plots
SWEEP_SEED = 20240611


@dataclass(frozen=True, slots=True)
class Choice:
    """Independent coordinates, and their worst and median condition 1/σ over what is reached.

    The worst is infinite with a dead point.
    """

    joints: tuple[str, ...]
    worst: float
    median: float


@dataclass(frozen=True, slots=True)
class DeadPoint:
    """The dead point of independent coordinates that is nearest to neutral, as far as is known.

    ``joints``: all positions of the cluster; ``away``: the way of all joints together from neutral
    [rad, sizes of the cluster].
    """

    joints: tuple[float, ...]
    away: float


@dataclass(frozen=True, slots=True)
class Coordinates:
    """The independent coordinates of a group of joints that conditions relate, without rods' spins.

    ``chosen``, and the ``best`` of these and others; of groups of several freedoms, of those that
    could be ten times better. A path of one freedom is known all along, by ``known``
    configurations; with several dead points are ``searched`` from some of these, and the
    ``nearest`` is what was found.
    """

    chosen: Choice
    best: Choice
    known: int
    searched: int = 0
    nearest: DeadPoint | None = None


@dataclass(frozen=True, eq=False)
class LinkageStudy:
    """A cluster with loops, as measured; what only pages show is computed when it is asked for.

    ``labels`` name its spanning velocities, ``lengths`` says which are in metres.
    ``start_gap``: the residual of its conditions at the joint positions of the file, the largest
    of which is that of the coupling ``start_coupling``, if that is not empty;
    ``start_condition``: 1/σ there, infinite if singular, nan if open. ``gap``: the largest residual
    in so many ``states``. ``outside``: how far the neutral configuration is out of the limits.
    ``branches``: number of ways in which it closes with its independent joints at neutral, limits
    aside; ``continuum``: in infinitely many others, too. ``coordinates``: its independent joints,
    by groups of joints that conditions relate.
    ``limb``: joints of one freedom that carry the limb; ``reaches``: how far these go, in words;
    ``ranges``: theirs, and those of joints with limits that follow from couplings or paths.
    ``modes``: assembly modes that were found within limits; 0: none were sought.
    ``mode``: where the joints are in the nearest way to close to which no path leads, in words:
    another assembly mode. ``other``: the nearest other way to close, or nothing. ``columns``: the
    independent velocities that are swept.
    """

    model: Model
    motion: ClusterMotion
    leading: _Leading
    columns: tuple[int, ...]
    other: tuple[Array, ...]
    cluster: str
    joints: tuple[str, ...]
    labels: tuple[str, ...]
    independent: tuple[str, ...]
    rows: int
    rank: int
    start_gap: float
    start_coupling: str
    start_condition: float
    gap: float
    states: int
    outside: float
    branches: int
    continuum: bool
    coordinates: tuple[Coordinates, ...]
    sweeps: tuple[Curve, ...]
    groups: tuple[tuple[str, ...], ...]
    lengths: tuple[bool, ...] = ()
    limb: tuple[str, ...] = ()
    reaches: tuple[str, ...] = ()
    ranges: tuple[JointRange, ...] = ()
    mode: str = ""
    modes: int = 0

    def placed(self, event: Singularity, sweep: Curve) -> str:
        """Where the limb's joints are at a singularity of a sweep; nothing if it is one of them."""
        if sweep.joint in self.limb:
            return ""
        at = self.single(event.joints)
        names = (name for name in self.limb if name not in sweep.held)
        return ", ".join(f"{name} {at[name]:.4g}" for name in names)

    def single(self, q: Sequence[float]) -> dict[str, float]:
        """The positions of joints of one freedom, by their names.

        Hinges that turn fully by themselves are within half a turn of neutral.
        """
        cluster = self.motion.cluster
        start = spanning_start(cluster, np.array(cluster.start))
        groups = next(x.groups for x in reachable(self.model).linkages if x.cluster is cluster)
        at = unwound(np.array(q), start, np.concatenate([group.whole for group in groups]))
        pairs = zip(cluster.joints, cluster.geometry.links, strict=True)
        return {name: round(float(at[link.q]), 9) + 0.0
                for name, link in pairs if link.joint.nq == 1}  # fmt: skip

    @property
    def swept(self) -> tuple[str, ...]:
        """The joints that are swept."""
        return tuple(self.labels[c] for c in self.columns)

    @property
    def median(self) -> float:
        """The median of the motion per unit of the independent joints, of the worst group."""
        return max((each.chosen.median for each in self.coordinates), default=1.0)

    @property
    def velocities(self) -> int:
        """The number of velocities of its joints."""
        return len(self.labels)

    @property
    def mobility(self) -> int:
        """The number of freedoms."""
        return self.velocities - self.rank

    @property
    def drawn(self) -> tuple[Curve, ...]:
        """The sweeps by the limb's joints, others of the limb at rest, as plots show them."""
        return self._over_limb[0]

    @property
    def other_sweeps(self) -> tuple[Curve, ...]:
        """The same on the nearest other way to close."""
        return self._over_limb[1]

    @cached_property
    def _over_limb(self) -> tuple[tuple[Curve, ...], tuple[Curve, ...]]:
        swept = _by_limb(self.model, self.motion, self.sweeps, self.columns, self.other, self.limb)
        return tuple(swept[0]), tuple(swept[1])

    @cached_property
    def conditions(self) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """1/σ of the independent coordinates along both, at most :data:`DRAWN_UP_TO`."""
        cluster = self.motion.cluster
        here, there = (_along(self.leading, cluster, swept) for swept in self._over_limb)
        return here, there

    @cached_property
    def sketches(self) -> tuple[Sketch, ...]:
        """Drawings at neutral, on the other way to close, and at singularities."""
        nearest = [each.nearest.joints for each in self.coordinates if each.nearest]
        found = _sketches(self.model, self.motion.cluster, self.other, self.sweeps, nearest)
        return tuple(found)

    @cached_property
    def ghosts(self) -> tuple[Sketch, ...]:
        """Drawings at the ends of the first sweep."""
        reached = self.sweeps[0].joints[self.sweeps[0].reached]
        return tuple(sketch(self.model, self.motion.cluster, reached[n].tolist(), "")
                     for n in (0, -1))  # fmt: skip

    @property
    def units(self) -> dict[str, str]:
        """The units of its joints' positions."""
        lengths = zip(self.labels, self.lengths, strict=True)
        return {label: units_of(length).position for label, length in lengths}

    def as_dict(self) -> dict[str, Any]:
        """Plain data, without the points of curves."""
        singularity = {"distance": "away", "within_limits": "reached", "positions": "joints"}
        sweeps = [
            picked(sweep, "joint", "held", "range", "gap")
            | {
                "singularities": [
                    picked(each, "kind", "position", **singularity) for each in sweep.singularities
                ]
            }
            for sweep in self.sweeps
        ]
        names = ("cluster", "joints", "independent", "mobility", "velocities", "rows", "rank",
                 "start_gap", "start_condition", "gap", "states", "branches", "modes")  # fmt: skip
        coordinates = [picked(each, "chosen", "best", "known", "searched", "nearest")
                       for each in self.coordinates]  # fmt: skip
        whole = picked(self, *names) | {"coordinates": coordinates, "sweeps": sweeps}
        data: dict[str, Any] = plain(whole)
        return data


# ---- the study of a cluster ----------------------------------------------------------------------


Turned: TypeAlias = Mapping[str, Mapping[str, float]]
"""Joints of rotors → their ratios to the joints that drive them."""
Known: TypeAlias = dict[Group, tuple[Coordinates, Mapping[int, str]]]
"""Groups → their coordinates, and the names of joints that could be independent."""


def study(model: Model, cluster: Cluster, rotors: Turned, before: Known) -> LinkageStudy:
    """Measure a cluster with loops; ``before``: coordinates of others, to which its are added."""
    motion = ClusterMotion.of(model, cluster)
    start = np.array(cluster.start)
    rng = np.random.default_rng(SWEEP_SEED)
    samples = np.concatenate([start[None], reachable(model).known(rng, SWEPT_SAMPLES, cluster)])
    leading = _Leading(motion, rotors)
    columns = _swept(model, cluster)
    limb = tuple(model.joints[b].name for b in limb_bodies(model)[cluster.index]
                 if model.nodes[b].joint.nv == 1)  # fmt: skip
    limited = [model.joints[b].name for b in cluster.bodies if has_limits(model.joints[b])]
    reaches = FreeRanges(model, limb, also=limited)
    sweeps = _with_ranges(model, motion, start, columns, reaches.halves)
    gaps = [sweep.gap for sweep in sweeps] + [float(np.max(motion.geometry.gap(samples)))]
    states = len(samples) + sum(len(sweep.joints) for sweep in sweeps)
    branches, continuum = _branches(motion, start, rng, joints_of_balls(model))
    file_start = _file_start(model, cluster)
    residuals, linear = np.abs(motion.geometry.evaluate(file_start)[0]), motion.geometry.linear
    couplings = zip(linear, residuals[len(residuals) - len(linear) :], strict=True)
    ranges = reaches.found()
    return LinkageStudy(
        model=model,
        motion=motion,
        leading=leading,
        columns=tuple(columns),
        other=tuple(branches[1:2]),
        cluster=cluster.name,
        joints=cluster.joints,
        labels=motion.labels,
        independent=cluster.independent,
        rows=motion.geometry.rows,
        rank=motion.rank,
        start_gap=float(np.max(residuals, initial=0.0)),
        start_coupling=next((x.name for x, size in couplings if size == np.max(residuals)), ""),
        start_condition=_start_condition(motion, file_start, leading),
        gap=max(gaps),
        states=states,
        outside=max(0.0, -float(np.min(motion.rooms(start)))),
        branches=len(branches),
        continuum=continuum,
        coordinates=tuple(_coordinates(model, motion, leading, before)),
        sweeps=tuple(sweeps),
        groups=_groups(motion, samples),
        lengths=tuple(column.length for column in motion.columns),
        limb=limb,
        reaches=tuple(_in_words(reach) for reach in ranges[: len(limb)]),
        ranges=tuple(ranges),
        mode=next(_modes(model, motion, branches[1 : 1 + MODES]), ""),
        modes=_assembly_modes(model, motion, rng),
    )


def has_limits(joint: Joint) -> bool:
    """True if a joint of one freedom has limits that leave less than a full turn."""
    some = joint.nv == 1 and (math.isfinite(joint.lower) or math.isfinite(joint.upper))
    return some and (joint.type == "prismatic" or joint.upper - joint.lower < 2.0 * math.pi)


def _in_words(reach: JointRange) -> str:
    """How far a joint goes, and where that rests on searches."""
    searched = reach.lower_end.searched or reach.upper_end.searched
    return f"{reach.words}{', as far as was searched' if searched else ''}"


def _swept(model: Model, cluster: Cluster) -> list[int]:
    """The independent velocities that are swept: of joints with one freedom, if there are any.

    Others are mostly spins of rods between two balls, on which nothing depends.
    """
    single = {link.v for link in cluster.geometry.links if link.joint.nv == 1}
    spins = {model.joints[spin.body].name for spin in find_spins(model)}
    spins |= {str(spin.coordinate(cluster.independent)) for spin in find_spins(model)}
    columns = [c for c in cluster.columns if c in single]
    telling = [c for c, label in zip(cluster.columns, cluster.independent, strict=True)
               if c in single and label not in spins]  # fmt: skip
    return telling or columns or list(cluster.columns)


def _by_limb(
    model: Model,
    motion: ClusterMotion,
    first: Sequence[Curve],
    columns: Sequence[int],
    other: Sequence[Array],
    limb: Sequence[str],
) -> tuple[Sequence[Curve], Sequence[Curve]]:
    """The first sweeps, and those on another way to close, by the limb's joints.

    By the independent joints, whose ``columns`` are swept, where limb's joints do not tell the
    motion at neutral.
    """
    cluster = motion.cluster
    places = {name: link.v for name, link
              in zip(cluster.joints, cluster.geometry.links, strict=True)}  # fmt: skip
    over = [places[name] for name in limb]
    chart = [*over, *(c for c in cluster.columns if c not in columns)]
    known = len(over) == len(columns) and {*over} != {*columns} and len({*chart}) == cluster.nv
    start = np.array(cluster.start)
    if not known or conditioning(motion.null(start[None]), chart)[0] < TELLS:
        return first, curves(model, motion, other, columns) if other else []
    if cluster.nv == 1:
        met = not np.all(first[0].ahead)  # the other way, on the sweep itself
        others = [] if met or not other else curves(model, motion, other, columns)
        drawn = [[_by(motion, each, over[0]) for each in some] for some in (first, others)]
        return drawn[0], drawn[1]
    return (
        curves(model, motion, [start], over, chart),
        curves(model, motion, other, over, chart) if other else [],
    )


def _by(motion: ClusterMotion, sweep: Curve, column: int) -> Curve:
    """A sweep by the position of another joint of one freedom, to be drawn."""
    place = motion.geometry.links[motion.columns[column].link].q
    position = sweep.positions[:, column]
    start = float(position[int(np.argmin(np.abs(sweep.position - sweep.start)))])
    events = []
    for event in sweep.singularities:
        x = event.joints[place]
        events.append(replace(event, position=x, away=abs(x - start)))
    ends = [*position[sweep.reached].tolist(), *(x.position for x in events if x.reached)]
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = sweep.rates / sweep.rates[:, column : column + 1]
    return replace(
        sweep,
        joint=motion.labels[column],
        start=start,
        position=position,
        rates=rates,
        range=(min(ends), max(ends)),
        singularities=tuple(events),
    )


def _with_ranges(
    model: Model,
    motion: ClusterMotion,
    start: Array,
    columns: Sequence[int],
    beside: Sequence[Half],
) -> list[Curve]:
    """Curves from neutral, with the ranges of :func:`robomodel.joint_range` from there.

    ``beside``: halves of other paths, which are followed at once.
    """
    cluster, q = motion.cluster, model.neutral()[None]
    # a freedom of a joint with several has none
    ranges = {n: RangesFrom(model, motion.labels[column], q) for n, column in enumerate(columns)
              if motion.labels[column] in cluster.joints}  # fmt: skip
    halves = [half for each in ranges.values() for half in each.halves]
    result = curves(model, motion, [start], columns, beside=[*beside, *halves])
    for n, each in ranges.items():
        (reach,) = each.found()
        result[n] = replace(result[n], range=(reach.lower, reach.upper))
    return [_named(motion, each) for each in result]


def _named(motion: ClusterMotion, sweep: Curve) -> Curve:
    """A sweep, of which points are change points only where K loses a rank.

    Where the joints that are held are not independent there, they are at a dead point.
    """
    events = []
    for event in sweep.singularities:
        (lost,) = motion.with_dependent(np.array([event.joints]), WEAK)[1]
        regular = motion.cluster.nv > 1 and not lost
        events.append(replace(event, kind="dead point") if regular else event)
    return replace(sweep, singularities=tuple(events))


def _sketches(
    model: Model, cluster: Cluster, other: Sequence[Array], sweeps: Sequence[Curve],
    nearest: Sequence[Sequence[float]],
) -> Iterator[Sketch]:  # fmt: skip
    """Sketches at neutral, on the other way to close, and at singularities."""
    yield sketch(model, cluster, list(cluster.start), "neutral configuration")
    for q in other:
        yield sketch(model, cluster, q.tolist(), "the other way to close")
    for at in nearest:
        yield sketch(model, cluster, at, "dead point nearest to neutral")
    singular = [(each, sweep.joint) for sweep in sweeps
                for each in sweep.singularities]  # fmt: skip
    for each, joint in singular[:DRAWN_SINGULARITIES]:
        title = f"{each.kind}: {joint} = {round(each.position, 9) + 0.0:.4g}"
        yield sketch(model, cluster, each.joints, title)


def _file_start(model: Model, cluster: Cluster) -> Array:
    """Joint positions of the file: initial ones, else where couplings put what they move, or zero.

    What couplings move is in no loop.
    """
    geometry = cluster.geometry
    joints = {joint.name: joint.initial for joint in model.description.joints}
    poses = initial_positions(model.description.joints)
    q = geometry.zero()
    free = set(range(len(geometry.links))) - geometry.looped_bodies
    for n, (name, link) in enumerate(zip(cluster.joints, geometry.links, strict=True)):
        initial = joints[name]
        if initial is not None and link.joint.nq == 1:
            q[link.q] = initial
            free.discard(n)
        if name in poses and link.joint.nq > 1:
            q[link.positions] = poses[name]
    couplings = [({n: k for n, k in x.terms if k}, x.offset) for x in geometry.linear]
    while couplings := [each for each in couplings if free & each[0].keys()]:
        terms, offset = min(couplings, key=lambda each: len(free & each[0].keys()))
        moved = max(free & terms.keys())  # others stay at zero
        others = sum(k * q[geometry.links[n].q] for n, k in terms.items() if n != moved)
        q[geometry.links[moved].q] = (offset - others) / terms[moved]
        free -= terms.keys()
    return q


def _start_condition(motion: ClusterMotion, q: Array, leading: _Leading) -> float:
    if float(motion.geometry.gap(q)) > OPEN:
        return math.nan
    singular = np.linalg.svd(motion.matrix(q), compute_uv=False)
    regular = float(leading(q[None], motion.cluster.columns)[0])
    weak = float(singular[motion.rank - 1]) < 1e-6 * float(singular[0])
    return math.inf if weak or regular < 1e-6 else 1.0 / regular


def _branches(
    motion: ClusterMotion, start: Array, rng: np.random.Generator, balls: Collection[str]
) -> tuple[list[Array], bool]:
    """Configurations of other ways to close with the same independent joints, nearest first.

    And whether there is a continuum of ways, in which others move while these rest: none of these
    are among them. Ways that differ in joints of ``balls`` alone, of rods that spin, are one.
    """
    columns, count = list(motion.cluster.columns), RANDOM_STARTS
    telling = [n for n, column in enumerate(motion.columns) if column.joint not in balls]
    moves = rng.uniform(-math.pi, math.pi, (count, len(motion.columns))) * motion.unit
    moves[:, columns] = 0.0
    guesses = motion.geometry.integrate(np.broadcast_to(start, (count, len(start))), moves)
    q, closed = motion.close(guesses, held=columns)
    configurations: list[Array] = [start]
    for each in q[closed]:
        differences = [
            motion.wrapped(motion.geometry.difference(q0, each)) for q0 in configurations
        ]
        if min(float(np.max(np.abs(x[telling]), initial=0.0)) for x in differences) > 1e-4:
            configurations.append(motion.geometry.integrate(start, differences[0] * motion.unit))
    found = np.array(configurations)
    k = np.delete(motion.geometry.evaluate(found)[1] * motion.unit, columns, axis=2)
    sizes = np.linalg.svd(k, compute_uv=False)
    loose = sizes[:, k.shape[2] - 1] <= WEAK * sizes[:, 0] if k.shape[2] else np.zeros(len(found))
    moving = [n for n in np.flatnonzero(loose).tolist() if n]
    if len(moving) <= MODES:  # some that are single, of two ways that are one
        moving = []
    away = [float(np.max(np.abs(motion.geometry.difference(start, q)))) for q in configurations]
    order = sorted(range(len(away)), key=lambda n: round(away[n], 9))  # rounding parts no ties
    left = [configurations[n] for n in order if n not in moving]
    # a ball of which some velocities rest goes to infinitely many positions, too
    return ([], False) if len(left) >= count // 4 else (left, bool(moving))


def _assembly_modes(model: Model, motion: ClusterMotion, rng: np.random.Generator) -> int:
    """How many assembly modes were found within limits, the robot's own included; 0: none sought.

    Those of groups that no condition relates multiply. Beside its own at most one of a group is
    found, and none are sought where one has more than two freedoms, of which walks miss too much.
    """
    linkage = next(x for x in reachable(model).linkages if x.cluster is motion.cluster)
    moving = [group for group in linkage.groups if group.freedoms]
    if any(group.freedoms > 2 for group in moving):
        return 0
    rods = frozenset[str]() if find_spins(model) else joints_of_balls(model)
    return math.prod(1 + _has_another_mode(motion, group, rng, rods) for group in moving)


def _has_another_mode(
    motion: ClusterMotion, group: Group, rng: np.random.Generator, rods: Collection[str]
) -> bool:
    """True if a group closes within limits where no path leads to, one way or the other.

    What was sought far and wide, by :func:`_modes`, tells it. Else random positions are closed, and
    paths that are sought lead to the nearest reachable ones. Configurations that differ in joints
    of ``rods`` alone, whose spins are locked, are one.
    """
    if any(motion.within(q) and not _leads_to(motion, group, q, rods) for q in group.missed):
        return True
    start, columns = group.start, list(group.columns)
    held = [c for c in range(len(motion.columns)) if c not in columns]
    at, far = motion.positions(start), math.pi * motion.unit
    low, high = np.maximum(motion.low, at - far), np.minimum(motion.high, at + far)
    moves = rng.uniform(low, np.maximum(low, high), (RANDOM_STARTS, len(at))) - at
    moves[:, held] = 0.0
    guesses = motion.geometry.integrate(np.broadcast_to(start, (len(moves), len(start))), moves)
    q, closed = motion.close(guesses, held=held)
    if not np.any(closed):
        return False
    q = np.array([motion.geometry.integrate(start, motion.unit * motion.wrapped(
        motion.geometry.difference(start, x))) for x in q[closed]])  # fmt: skip
    left = q[motion.within(q)]
    others = (x for n in range(0, len(left), MODES) for x in _outside(group, left[n : n + MODES]))
    return any(not _leads_to(motion, group, other, rods)
               for other in itertools.islice(others, MODES - 1))  # fmt: skip


def _leads_to(motion: ClusterMotion, group: Group, q: Array, rods: Collection[str]) -> bool:
    """True if a path leads to q (nq,), or to where rods are turned about their lines there."""
    if group.leads_to(q):
        return True
    turning = [n for n in group.columns if motion.columns[n].joint in rods]
    if not turning:
        return False
    moves = np.zeros((RANDOM_STARTS, len(motion.columns)))
    way = np.random.default_rng(SWEEP_SEED).uniform(-math.pi, math.pi, (len(moves), len(turning)))
    moves[:, turning] = way
    guesses = motion.geometry.integrate(np.broadcast_to(q, (len(moves), len(q))), moves)
    held = [n for n in range(len(motion.columns)) if n not in turning]
    turned, closed = motion.close(guesses, held=held)
    turned = turned[closed]
    return bool(np.any(group.contains(turned, quick=True)))


def _outside(group: Group, q: Array) -> Array:
    """Closed configurations (n, nq) without those that a path leads to."""
    return np.asarray(q[~group.contains(q, quick=True)])


def _modes(model: Model, motion: ClusterMotion, ways: Sequence[Array]) -> Iterator[str]:
    """Where the joints are in ways to close to which no path leads, limits aside."""
    cluster = motion.cluster
    for way in ways:
        q = model.neutral()
        q[cluster.q] = way
        if reachable(model).elsewhere(q, only=[cluster]):
            at = motion.positions(way)
            pairs = [(column, float(x)) for column, x in zip(motion.columns, at, strict=True)
                     if column.label not in cluster.independent and not column.part]  # fmt: skip
            texts = [f"'{column.label}' {round(x, 9) + 0.0:.3g}" for column, x in pairs[:NAMED]]
            yield ", ".join(texts) + (", …" if len(pairs) > NAMED else "")


class _Leading:
    """Conditions of independent coordinates: (configurations, columns) → σ_min(N_I) of each.

    Of the motion without rotors that are not independent: they turn so far that they would dominate
    all others, and their condition is better by their ratios.
    """

    def __init__(self, motion: ClusterMotion, rotors: Turned) -> None:
        self.motion = motion
        self.columns = [
            n
            for n, column in enumerate(motion.columns)
            if n in motion.cluster.columns or column.joint not in rotors
        ]

    def __call__(self, q: Array, *choices: Sequence[int]) -> Array:
        null, _ = np.linalg.qr(self.motion.null(q)[:, self.columns])
        places = ([self.columns.index(n) for n in choice] for choice in choices)
        return np.concatenate([conditioning(null, place) for place in places])


def _along(leading: _Leading, cluster: Cluster, swept: Sequence[Curve]) -> tuple[Array, ...]:
    """1/σ of the independent coordinates along curves."""
    with np.errstate(divide="ignore"):
        return tuple(
            np.minimum(1.0 / leading(each.joints, cluster.columns), DRAWN_UP_TO) for each in swept
        )


def _coordinates(
    model: Model, motion: ClusterMotion, leading: _Leading, before: Known
) -> Iterator[Coordinates]:
    """The independent coordinates of each group, and the best ones."""
    linkage = next(x for x in reachable(model).linkages if x.cluster is motion.cluster)
    named = [motion.columns[c].joint for c in motion.cluster.columns]
    spins = {str(spin.coordinate(named)) for spin in find_spins(model)}
    columns = leading.columns
    rows = [linkage.split.rows(group, columns) / motion.unit[columns][:, None]
            for group in linkage.groups]  # fmt: skip
    moved = np.array([np.max(np.abs(mine), axis=1, initial=0.0) > MOVES for mine in rows])
    independent = [n for n, c in enumerate(columns) if c in motion.cluster.columns]
    if np.any(np.sum(moved[:, independent], axis=0) > 1):
        if all(group.freedoms == 1 for group in linkage.groups):
            yield _of_product(motion, linkage, rows, independent)
        return
    for group, mine, moves in zip(linkage.groups, rows, moved, strict=True):
        alone = np.flatnonzero(moves & (np.sum(moved, axis=0) == 1)).tolist()
        chosen = [n for n, c in enumerate(columns) if c in motion.cluster.columns and moves[n]]
        if len(chosen) == group.freedoms > 0 and {*chosen} <= {*alone}:
            of = _Group(
                group,
                mine[alone],
                {columns[n]: motion.labels[columns[n]] for n in alone},
                [alone.index(n) for n in chosen],
                [motion.columns[columns[n]].joint in spins for n in alone],
            )
            found = of.copied(before)
            if found is None:
                found = of.on_path() if group.freedoms == 1 else of.searched(linkage)
            before[group] = found, of.names
            yield found


def _of_product(
    motion: ClusterMotion, linkage: Linkage, rows: Sequence[Array], independent: Sequence[int]
) -> Coordinates:
    """The coordinates of groups of one freedom each, of which a joint moves with several."""
    values, q, away = dead_points.of_product(linkage.groups, rows, independent)
    nearest = None
    if q is not None:
        whole = linkage.split.followers.completed(q[None])[0]
        nearest = DeadPoint(tuple(whole.tolist()), away)
    worst = math.inf if nearest else 1.0 / max(float(np.min(values)), TINY)
    chosen = Choice(motion.cluster.independent, worst, median(1.0 / np.maximum(values, TINY)))
    return Coordinates(chosen, chosen, len(values), len(values), nearest)


@dataclass(frozen=True, eq=False)
class _Group:
    """A group with the rows of joints that could be independent, their names, and which are.

    ``names`` by column. ``spinning``: which joints tell how far a rod spins; they remain
    independent.
    """

    group: Group
    rows: Array
    names: Mapping[int, str]
    chosen: list[int]
    spinning: Sequence[bool]

    @cached_property
    def labels(self) -> list[str]:
        """The names in order."""
        return [*self.names.values()]

    def copied(self, before: Known) -> Coordinates | None:
        """The coordinates of the group of which this is a copy; None if it starts elsewhere."""
        if self.group.original is None or self.group.original[0] not in before:
            return None
        (of, image), places = self.group.original, self.group.places
        found, others = before[of]
        names = {name: self.names.get(image.there[c], "") for c, name in others.items()}
        start = image.positions(of.start)[places]
        alike = all(as_written(np.abs(turn), np.eye(3)) for *_, turn in image.balls)
        if not (alike and {*names.values()} == {*self.names.values()}
                and as_written(start, self.group.start[places])):  # fmt: skip
            return None
        nearest = found.nearest
        if nearest is not None:
            at = image.positions(np.array(nearest.joints)).tolist()
            nearest = replace(nearest, joints=tuple(at))
        chosen, best = (replace(each, joints=tuple(names[x] for x in each.joints))
                        for each in (found.chosen, found.best))  # fmt: skip
        return replace(found, chosen=chosen, best=best, nearest=nearest)

    def on_path(self) -> Coordinates:
        """The coordinates of a group of one freedom, of which all is known."""
        values = dead_points.along_path(self.group, self.rows)
        with np.errstate(divide="ignore"):
            worst = 1.0 / dead_points.least(values)
            usual = [median(each) for each in (1.0 / np.abs(values)).T]
        rated = [Choice((label,), float(w), m)
                 for label, w, m in zip(self.labels, worst, usual, strict=True)]  # fmt: skip
        (n,) = self.chosen
        return Coordinates(rated[n], _best_of([rated[n], *rated]), len(values))

    def searched(self, linkage: Linkage) -> Coordinates:
        """The coordinates of a group of several freedoms, as far as walks and searches lead."""
        group, rows = self.group, self.rows
        known = [dead_points.fan(group, rows[self.chosen]), group.pool]
        bases = [dead_points.orthonormal(rows, some) for some in known]
        ((chosen, low),) = self._lowered(known, bases, [tuple(self.chosen)])
        nearest, dead = None, low.points[np.flatnonzero(low.sigma == 0.0)]
        if len(dead.q):
            landed = dead_points.landed(group, rows, self.chosen, joined([dead, *known]))
            q, away = dead_points.nearest(group, rows, self.chosen, landed)
            whole = linkage.split.followers.completed(q[None])[0]
            nearest = DeadPoint(tuple(whole.tolist()), away)
        others = self._lowered(known, bases, self._promising(bases[1], chosen))
        best = _best_of([chosen, *(each for each, _ in others if _much_better(each, chosen))])
        return Coordinates(chosen, best, sum(len(x.q) for x in known), len(low.sigma), nearest)

    def _lowered(
        self, known: Sequence[Points], bases: Sequence[Array], choices: Sequence[tuple[int, ...]]
    ) -> list[tuple[Choice, dead_points.Lowest]]:
        """Choices with σ at all configurations and where searches end, and these ends."""
        values = [[_conditions(basis, choice) for basis in bases] for choice in choices]
        starts = [joined([dead_points.lowest(self.group, *pair)
                          for pair in zip(known, each, strict=True)])
                  for each in values]  # fmt: skip
        if not starts:
            return []
        of = np.repeat(np.arange(len(starts)), [len(each.q) for each in starts])
        low = dead_points.lowered(self.group, self.rows, joined(starts), np.array(choices)[of])
        found = []
        for n, (choice, each) in enumerate(zip(choices, values, strict=True)):
            mine = np.flatnonzero(of == n)
            ends = dead_points.Lowest(low.points[mine], low.sigma[mine])
            least = min(float(np.min(x)) for x in (ends.sigma, *each))
            names = tuple(self.labels[n] for n in choice if not self.spinning[n])
            worst = 1.0 / least if least else math.inf
            found.append((Choice(names, worst, median(1.0 / each[1])), ends))
        return found

    def _promising(self, basis: Array, chosen: Choice) -> list[tuple[int, ...]]:
        """Choices that could be much better, as far as configurations show; the best first."""
        spins = tuple(n for n in self.chosen if self.spinning[n])
        others = [n for n in range(len(self.rows)) if not self.spinning[n]]
        count = len(self.chosen) - len(spins)
        if math.comb(len(others), count) > CHOICES:
            return []
        left = [tuple(sorted(spins + x)) for x in itertools.combinations(others, count)]
        left.remove(tuple(sorted(self.chosen)))
        for most, every in ((FEWER, max(1, len(basis) // FIRST)), (SEARCHED, 1)):
            values = [_conditions(basis[::every], choice) for choice in left]
            worst = [1.0 / max(float(np.min(each)), TINY) for each in values]
            usual = [median(1.0 / np.maximum(each, TINY)) for each in values]
            rated = [Choice((), x, y) for x, y in zip(worst, usual, strict=True)]
            better = [n for n, each in enumerate(rated) if _much_better(each, chosen)]
            left = [left[n] for n in sorted(better, key=lambda n: worst[n])[:most]]
        return left


def _conditions(basis: Array, choice: Sequence[int]) -> Array:
    """σ (n,) of rows of motions (n, k, m)."""
    return dead_points.sigma(basis, np.tile(choice, (len(basis), 1)))


def _much_better(choice: Choice, chosen: Choice) -> bool:
    """True if a choice of several joints moves all ten times less far than the chosen one.

    At worst, if it is far from dead points itself: what is near may have one that no search finds.
    """
    least = BOUNDS.better_conditioned
    usual = chosen.median / choice.median
    return (choice.worst < least < chosen.worst / choice.worst and usual > 0.5) or usual > least


def _best_of(rated: Sequence[Choice]) -> Choice:
    """The choice with the least worst condition, or nearly; the most like the first of all."""
    least = min(each.worst for each in rated)
    good = [each for each in rated if each.worst <= AS_GOOD * least]
    if math.isinf(least):
        usual = min(each.median for each in rated)
        good = [each for each in rated if each.median <= AS_GOOD * usual]
    return min(good, key=lambda x: len({*x.joints} - {*rated[0].joints}))


def _groups(motion: ClusterMotion, samples: Array) -> tuple[tuple[str, ...], ...]:
    """Groups of joints that no condition relates to each other, though in one cluster."""
    used = np.max(np.abs(motion.geometry.evaluate(samples[:64])[1]), axis=0) > SAME
    names = [column.joint for column in motion.columns]
    places = {name: n for n, name in enumerate(dict.fromkeys(names))}
    related = [{places[names[c]] for c in np.flatnonzero(row)} for row in used]
    found = sorted(map(sorted, merged([*related, *({n} for n in places.values())])))
    return tuple(tuple([*places][n] for n in group) for group in found)
