"""Measurements of a cluster with loops: branches, singularities, coordinates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from robomodel.arrays import Array, median
from robomodel.mobility.exploration import conditioning
from robomodel.model.elements import Cluster, units_of
from robomodel.model.model import Model
from robomodel.model.spins import find_spins
from robomodel.reach.curves import Curve, Singularity, curves
from robomodel.reach.groups import Group, merged
from robomodel.reach.limb import limb_bodies
from robomodel.reach.motions import ClusterMotion, full_rank_rows
from robomodel.reach.paths import Half
from robomodel.reach.ranges import FreeRanges, RangesFrom
from robomodel.reach.reachable import reachable
from robomodel.reports.document import picked, plain
from robomodel.reports.drawings import Sketch, sketch
from robomodel.tolerances import OPEN, SAME

SWEPT_SAMPLES = 800
FEW_FREEDOMS = 3  # most freedoms with curves from other samples, too
MODES, NAMED = 4, 6  # other ways to close that are looked at, and joints that are named of one
RANDOM_STARTS = 96  # positions from which loops are closed
OTHER_STARTS = 3  # worst samples from which clusters of several freedoms are swept, too
CHOICES = 500  # most choices of independent coordinates that are compared
DRAWN_SINGULARITIES = 4  # most singularities that are drawn
TELLS = 1e-3  # least σ of limb's joints by which sweeps are drawn
DRAWN_UP_TO = 1e6  # greatest 1/σ in plots
SWEEP_SEED = 20240611


@dataclass(frozen=True, slots=True)
class Choice:
    """Independent coordinates, and their worst and median condition 1/σ over the samples."""

    joints: tuple[str, ...]
    worst: float
    median: float


@dataclass(frozen=True, eq=False)
class LinkageStudy:
    """A cluster with loops, as measured; what only pages show is computed when it is asked for.

    ``labels`` name its spanning velocities, ``lengths`` says which are in metres.
    ``start_gap``: the residual of its conditions at the joint positions of the file;
    ``start_condition``: 1/σ there, infinite if singular, nan if open. ``outside``: how far the
    neutral configuration is out of the limits. ``branches``: number of ways in which it closes with
    its independent joints at neutral, limits aside. ``chosen`` and ``best``: independent
    coordinates, the latter the best of all (None if there are too many to compare).
    ``limb``: joints of one freedom that carry the limb; ``reaches``: how far these go, in words.
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
    start_condition: float
    gap: float
    outside: float
    branches: int
    samples: int
    chosen: Choice
    best: Choice | None
    sweeps: tuple[Curve, ...]
    groups: tuple[tuple[str, ...], ...]
    lengths: tuple[bool, ...] = ()
    limb: tuple[str, ...] = ()
    reaches: tuple[str, ...] = ()
    mode: str = ""
    modes: int = 0

    def placed(self, event: Singularity, sweep: Curve) -> str:
        """Where the limb's joints are at a singularity of a sweep; nothing if it is one of them."""
        cluster = sweep.cluster
        at = {name: event.joints[link.q] for name, link
              in zip(cluster.joints, cluster.geometry.links, strict=True)}  # fmt: skip
        if sweep.joint in self.limb:
            return ""
        names = (name for name in self.limb if name not in sweep.held)
        return ", ".join(f"{name} {round(at[name], 9) + 0.0:.4g}" for name in names)

    @property
    def velocities(self) -> int:
        """The number of velocities of its joints."""
        return len(self.labels)

    @property
    def mobility(self) -> int:
        """The number of freedoms."""
        return self.velocities - self.rank

    @property
    def first(self) -> tuple[Curve, ...]:
        """The sweeps from the neutral configuration, one of each joint that is swept."""
        return self.sweeps[: len({each.joint for each in self.sweeps})]

    @property
    def drawn(self) -> tuple[Curve, ...]:
        """The first sweeps by the limb's joints, others of the limb at rest, as plots show them."""
        return self._over_limb[0]

    @property
    def other_sweeps(self) -> tuple[Curve, ...]:
        """The same on the nearest other way to close."""
        return self._over_limb[1]

    @cached_property
    def _over_limb(self) -> tuple[tuple[Curve, ...], tuple[Curve, ...]]:
        swept = _by_limb(self.model, self.motion, self.first, self.columns, self.other, self.limb)
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
        return tuple(_sketches(self.model, self.motion.cluster, self.other, self.first))

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
                 "start_gap", "start_condition", "gap", "branches", "modes", "samples",
                 "best")  # fmt: skip
        data: dict[str, Any] = plain(picked(self, *names, condition="chosen") | {"sweeps": sweeps})
        return data


# ---- the study of a cluster ----------------------------------------------------------------------


Turned: TypeAlias = Mapping[str, Mapping[str, float]]
"""Joints of rotors → their ratios to the joints that drive them."""


def study(model: Model, cluster: Cluster, rotors: Turned) -> LinkageStudy:
    """Measure a cluster with loops."""
    motion = ClusterMotion.of(model, cluster)
    start = np.array(cluster.start)
    rng = np.random.default_rng(SWEEP_SEED)
    samples = np.concatenate([start[None], reachable(model).known(rng, SWEPT_SAMPLES, cluster)])
    starts = [start]
    side = _sides(motion, samples)
    leading = _Leading(motion, rotors)
    if cluster.nv > 1:
        near = samples[side == side[0]]
        regular = leading(near, cluster.columns)
        near = near[regular > 1e-4]
        starts += list(near[np.argsort(regular[regular > 1e-4], kind="stable")][:OTHER_STARTS])
    columns = _swept(model, cluster)
    if len(columns) > FEW_FREEDOMS:
        starts = starts[:1]
    limb = tuple(model.joints[b].name for b in limb_bodies(model)[cluster.index]
                 if model.nodes[b].joint.nv == 1)  # fmt: skip
    reaches = FreeRanges(model, limb)
    sweeps = _with_ranges(model, motion, starts, columns, reaches.halves)
    gaps = [sweep.gap for sweep in sweeps] + [float(np.max(motion.geometry.gap(samples)))]
    near = samples[side == side[0]]
    chosen, best = _choices(motion, near, leading)
    branches = _branches(motion, start, rng)
    file_start = _file_start(model, cluster, rotors)
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
        start_gap=float(motion.geometry.gap(file_start)),
        start_condition=_start_condition(motion, file_start, leading),
        gap=max(gaps),
        outside=max(0.0, -float(np.min(motion.rooms(start)))),
        branches=len(branches),
        samples=len(near),
        chosen=chosen,
        best=best,
        sweeps=tuple(sweeps),
        groups=_groups(motion, samples),
        lengths=tuple(column.length for column in motion.columns),
        limb=limb,
        reaches=tuple(reach.words for reach in reaches.found()),
        mode=next(_modes(model, motion, branches[1 : 1 + MODES]), ""),
        modes=_assembly_modes(model, motion, rng),
    )


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
    starts: Sequence[Array],
    columns: Sequence[int],
    beside: Sequence[Half],
) -> list[Curve]:
    """Curves with the ranges of :func:`robomodel.joint_range` from where they start.

    ``beside``: halves of other paths, which are followed at once.
    """
    cluster = motion.cluster
    q = np.tile(model.neutral(), (len(starts), 1))
    q[:, cluster.q] = starts
    # a freedom of a joint with several has none
    ranges = {n: RangesFrom(model, motion.labels[column], q) for n, column in enumerate(columns)
              if motion.labels[column] in cluster.joints}  # fmt: skip
    halves = [half for each in ranges.values() for half in each.halves]
    result = curves(model, motion, starts, columns, beside=[*beside, *halves])
    for first, each in ranges.items():
        for n, reach in zip(range(first, len(result), len(columns)), each.found(), strict=True):
            result[n] = replace(result[n], range=(reach.lower, reach.upper))
    return result


def _sketches(
    model: Model, cluster: Cluster, other: Sequence[Array], first: Sequence[Curve]
) -> Iterator[Sketch]:
    """Sketches at neutral, on the other way to close, and at singularities of the first sweeps."""
    yield sketch(model, cluster, list(cluster.start), "neutral configuration")
    for q in other:
        yield sketch(model, cluster, q.tolist(), "the other way to close")
    singular = [(each, sweep.joint) for sweep in first
                for each in sweep.singularities]  # fmt: skip
    for each, joint in singular[:DRAWN_SINGULARITIES]:
        title = f"{each.kind}: {joint} = {round(each.position, 9) + 0.0:.4g}"
        yield sketch(model, cluster, each.joints, title)


def _file_start(model: Model, cluster: Cluster, rotors: Turned) -> Array:
    """Joint positions of the file: initial ones, else zero, or by the ratios of gears."""
    joints = {joint.name: joint.initial for joint in model.description.joints}
    q = cluster.geometry.zero()
    for name, link in zip(cluster.joints, cluster.geometry.links, strict=True):
        initial = joints[name]
        if initial is not None and link.joint.nq == 1:
            q[link.q] = initial
    return _geared(cluster, q, rotors)


def _geared(cluster: Cluster, q: Array, rotors: Turned) -> Array:
    """Configurations with rotors at the positions that their gears give."""
    at = {name: link.q for name, link in zip(cluster.joints, cluster.geometry.links, strict=True)}
    for name in at.keys() & rotors.keys():
        q[..., at[name]] = sum(ratio * q[..., at[of]] for of, ratio in rotors[name].items())
    return q


def _start_condition(motion: ClusterMotion, q: Array, leading: _Leading) -> float:
    if float(motion.geometry.gap(q)) > OPEN:
        return math.nan
    singular = np.linalg.svd(motion.matrix(q), compute_uv=False)
    regular = float(leading(q[None], motion.cluster.columns)[0])
    weak = float(singular[motion.rank - 1]) < 1e-6 * float(singular[0])
    return math.inf if weak or regular < 1e-6 else 1.0 / regular


def _branches(motion: ClusterMotion, start: Array, rng: np.random.Generator) -> list[Array]:
    """Configurations of other ways to close with the same independent joints, nearest first.

    None if a motion that the independent joints leave free gives infinitely many.
    """
    columns, count = list(motion.cluster.columns), RANDOM_STARTS
    moves = rng.uniform(-math.pi, math.pi, (count, len(motion.columns))) * motion.unit
    moves[:, columns] = 0.0
    guesses = motion.geometry.integrate(np.broadcast_to(start, (count, len(start))), moves)
    q, closed = motion.close(guesses, held=columns)
    configurations: list[Array] = [start]
    for each in q[closed]:
        differences = [
            motion.wrapped(motion.geometry.difference(q0, each)) for q0 in configurations
        ]
        if min(float(np.max(np.abs(x))) for x in differences) > 1e-4:
            configurations.append(motion.geometry.integrate(start, differences[0] * motion.unit))
    if len(configurations) >= count // 4:
        return []
    away = [float(np.max(np.abs(motion.geometry.difference(start, q)))) for q in configurations]
    order = sorted(range(len(away)), key=lambda n: round(away[n], 9))  # rounding parts no ties
    return [configurations[n] for n in order]


def _assembly_modes(model: Model, motion: ClusterMotion, rng: np.random.Generator) -> int:
    """How many assembly modes were found within limits, the robot's own included; 0: none sought.

    Those of groups that no condition relates multiply. Beside its own at most one of a group is
    found, and none are sought where one has more than two freedoms, of which walks miss too much.
    """
    linkage = next(x for x in reachable(model).linkages if x.cluster is motion.cluster)
    moving = [group for group in linkage.groups if group.freedoms]
    if any(group.freedoms > 2 for group in moving):
        return 0
    return math.prod(1 + _has_another_mode(motion, group, rng) for group in moving)


def _has_another_mode(motion: ClusterMotion, group: Group, rng: np.random.Generator) -> bool:
    """True if a group closes within limits where no path leads to, one way or the other.

    Random positions are closed. Paths that are sought lead to the nearest reachable ones.
    """
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
    known = np.concatenate([start[None], group.pool.q[:: 1 + len(group.pool.q) // MODES]])
    others = (x for n in range(0, len(left), MODES) for x in _outside(group, left[n : n + MODES]))
    return any(
        not np.any(group.starting(other).contains(known, quick=True))
        for other in itertools.islice(others, MODES - 1)
    )


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


def _choices(
    motion: ClusterMotion, samples: Array, leading: _Leading
) -> tuple[Choice, Choice | None]:
    """The independent coordinates and the best ones, by their condition over the samples."""
    nv = motion.cluster.nv
    choices = [tuple(motion.cluster.columns)]
    few = math.comb(len(leading.columns), nv) <= CHOICES
    if few:
        choices += itertools.combinations(leading.columns, nv)
    with np.errstate(divide="ignore"):
        conditions = (1.0 / leading(samples, *choices)).reshape(len(choices), -1)
    rated = [
        Choice(tuple(motion.labels[n] for n in choice), float(np.max(each)), median(each))
        for choice, each in zip(choices, conditions, strict=True)
    ]
    # what differs by rounding is equal: then the first, the independent ones among them
    best = min(rated, key=lambda x: (_rounded(x.worst), _rounded(x.median))) if few else None
    return rated[0], best


def _rounded(x: float) -> float:
    return float(f"{x:.9e}")


def _sides(motion: ClusterMotion, q: Array) -> Array:
    """The sign of det [K; independent rows], which changes at singular configurations.

    Samples with another sign than the start are on another branch, as seen from there.
    """
    rows = full_rank_rows(motion.matrix(q[0]), motion.rank)
    unit = np.zeros((motion.cluster.nv, len(motion.columns)))
    unit[range(motion.cluster.nv), list(motion.cluster.columns)] = 1.0
    full_rank = motion.matrix(q)[:, rows]
    square = np.concatenate([full_rank, np.broadcast_to(unit, (len(q), *unit.shape))], axis=1)
    sign: Array = np.sign(np.linalg.det(square))
    return sign


def _groups(motion: ClusterMotion, samples: Array) -> tuple[tuple[str, ...], ...]:
    """Groups of joints that no condition relates to each other, though in one cluster."""
    used = np.max(np.abs(motion.geometry.evaluate(samples[:64])[1]), axis=0) > SAME
    names = [column.joint for column in motion.columns]
    places = {name: n for n, name in enumerate(dict.fromkeys(names))}
    related = [{places[names[c]] for c in np.flatnonzero(row)} for row in used]
    found = sorted(map(sorted, merged([*related, *({n} for n in places.values())])))
    return tuple(tuple([*places][n] for n in group) for group in found)
