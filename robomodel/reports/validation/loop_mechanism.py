"""The motion of a cluster with loops, measured by samples within its limits and by curves.

A cluster is swept by one independent velocity at a time, the others held (:mod:`.curves`); samples
anywhere within the limits serve the rest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from robomodel.model.elements import Cluster
from robomodel.model.joints import Array
from robomodel.model.mobility.exploration import column_ranges, conditioning, random_positions
from robomodel.model.model import Model
from robomodel.reports.drawings import Sketch, sketch
from robomodel.reports.validation.curves import ClusterMotion, full_rank_rows, sweep_all, wrapped
from robomodel.reports.validation.linkage import Choice, Linkage, Sweep

SAMPLES = 400
OTHER_STARTS = 3  # clusters of several freedoms are swept from their worst samples too, so many
CHOICES = 500  # more choices of independent coordinates than these are not compared
DRAWN = 4  # singularities
SEED = 20240611


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
