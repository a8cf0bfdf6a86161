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
    own = ClusterMotion.of(model, cluster)
    start = np.array(cluster.start)
    rng = np.random.default_rng(SEED)
    ranges = column_ranges(own.columns, own.geometry.scale)
    guesses = random_positions(own.geometry, ranges, rng, SAMPLES)
    samples, closed = own.close(guesses)
    samples = samples[closed & own.within(samples)]
    samples = np.concatenate([start[None], samples])
    starts = [start]
    side = _sides(own, samples)
    if cluster.nv > 1:
        mine = samples[side == side[0]]
        regular = conditioning(own.null(mine), cluster.columns)
        mine = mine[regular > 1e-4]
        starts += list(mine[np.argsort(regular[regular > 1e-4], kind="stable")][:OTHER_STARTS])
    sweeps = sweep_all(own, starts)
    gaps = [sweep.gap for sweep in sweeps] + [float(np.max(own.geometry.gap(samples)))]
    mine = samples[side == side[0]]
    chosen, best = _choices(own, mine)
    ways = _branches(own, start, rng)
    other = ways[1:2]
    others = sweep_all(own, other) if other else []
    return Linkage(
        cluster=cluster.name,
        joints=cluster.joints,
        labels=own.labels,
        independent=cluster.independent,
        rows=own.geometry.rows,
        rank=own.rank,
        start_gap=float(own.geometry.gap(_file_start(own))),
        start_condition=_start_condition(own),
        gap=max(gaps),
        outside=_outside(own, start),
        branches=len(ways),
        samples=len(mine),
        chosen=chosen,
        best=best,
        sweeps=tuple(sweeps),
        groups=_groups(own, samples),
        lengths=tuple(column.length for column in own.columns),
        other_sweeps=tuple(others),
        sketches=tuple(_sketches(own, start, other, sweeps)),
        ghosts=_ends(own, sweeps[0]),
    )


def _sketches(
    own: ClusterMotion, start: Array, other: Sequence[Array], sweeps: Sequence[Sweep]
) -> Iterator[Sketch]:
    """At neutral, on the other way to close, and at the singularities of the first sweeps."""
    yield sketch(own.model, own.cluster, start.tolist(), "neutral configuration")
    for q in other:
        yield sketch(own.model, own.cluster, q.tolist(), "the other way to close")
    drawn = 0
    for sweep in sweeps[: own.cluster.nv]:
        for each in sweep.singularities:
            if drawn == DRAWN:
                return
            drawn += 1
            title = f"{each.kind}: {sweep.joint} = {each.position:.4g}"
            yield sketch(own.model, own.cluster, each.joints, title)


def _ends(own: ClusterMotion, sweep: Sweep) -> tuple[Sketch, ...]:
    """Where the limits, or the linkage itself, end the first sweep."""
    there = sweep.joints[sweep.reached]
    return tuple(sketch(own.model, own.cluster, q.tolist(), "") for q in (there[0], there[-1]))


def _file_start(own: ClusterMotion) -> Array:
    """Where the file puts the joints: their initial positions, else zero."""
    said = {joint.name: joint.initial for joint in own.model.description.joints}
    q = own.geometry.zero()
    for name, link in zip(own.cluster.joints, own.geometry.links, strict=True):
        initial = said[name]
        if initial is not None and link.joint.nq == 1:
            q[link.q] = initial
    return q


def _start_condition(own: ClusterMotion) -> float:
    q = _file_start(own)
    if float(own.geometry.gap(q)) > 1e-6:
        return math.nan
    singular = np.linalg.svd(own.matrix(q), compute_uv=False)
    regular = float(conditioning(own.null(q[None]), own.cluster.columns)[0])
    weak = float(singular[own.rank - 1]) < 1e-6 * float(singular[0])
    return math.inf if weak or regular < 1e-6 else 1.0 / regular


def _outside(own: ClusterMotion, q: Array) -> float:
    at = own.positions(q)
    return float(np.max(np.maximum(own.low - at, at - own.high), initial=0.0))


def _branches(own: ClusterMotion, start: Array, rng: np.random.Generator) -> list[Array]:
    """How the loops close where the independent joints are, from the start on outward.

    None where a motion that the independent joints leave free gives any number of them.
    """
    columns = list(own.cluster.columns)
    count = 96
    moves = rng.uniform(-math.pi, math.pi, (count, len(own.columns))) * own.unit
    moves[:, columns] = 0.0
    guesses = own.geometry.integrate(np.broadcast_to(start, (count, len(start))), moves)
    q, closed = own.close(guesses, held=columns)
    found: list[Array] = [start]
    for each in q[closed]:
        ways = [wrapped(own, own.geometry.difference(q0, each)) for q0 in found]
        if min(float(np.max(np.abs(way))) for way in ways) > 1e-4:
            found.append(own.geometry.integrate(start, ways[0] * own.unit))
    if len(found) >= count // 4:
        return []
    return sorted(found, key=lambda q: float(np.max(np.abs(own.geometry.difference(start, q)))))


def _choices(own: ClusterMotion, samples: Array) -> tuple[Choice, Choice | None]:
    """The independent coordinates and the best ones, by their condition over the samples."""
    null = own.null(samples)

    def judged(choice: tuple[int, ...]) -> Choice:
        with np.errstate(divide="ignore"):
            condition = 1.0 / conditioning(null, choice)
        joints = tuple(own.labels[column] for column in choice)
        return Choice(joints, float(np.max(condition)), float(np.median(condition)))

    chosen = judged(tuple(own.cluster.columns))
    if math.comb(len(own.columns), own.cluster.nv) > CHOICES:
        return chosen, None
    choices = itertools.combinations(range(len(own.columns)), own.cluster.nv)
    best = min((judged(choice) for choice in choices), key=lambda each: (each.worst, each.median))
    return chosen, best


def _sides(own: ClusterMotion, q: Array) -> Array:
    """The sign of det [K; independent rows]: singular configurations lie where it changes.

    Samples of another sign than the start's are on another branch, as seen from there.
    """
    rows = full_rank_rows(own.matrix(q[0]), own.rank)
    unit = np.zeros((own.cluster.nv, len(own.columns)))
    unit[range(own.cluster.nv), list(own.cluster.columns)] = 1.0
    kept = own.matrix(q)[:, rows]
    whole = np.concatenate([kept, np.broadcast_to(unit, (len(q), *unit.shape))], axis=1)
    sign: Array = np.sign(np.linalg.det(whole))
    return sign


def _groups(own: ClusterMotion, samples: Array) -> tuple[tuple[str, ...], ...]:
    """Joints that no condition relates to each other, though they are in one cluster."""
    from scipy.sparse.csgraph import connected_components

    used = np.max(np.abs(own.geometry.evaluate(samples[:64])[1]), axis=0) > 1e-9
    together = used.T.astype(int) @ used
    group = connected_components(together, directed=False)[1].tolist()
    by_joint: dict[int, list[str]] = {}
    for column, g in zip(own.columns, group, strict=True):
        by_joint.setdefault(g, []).append(column.joint)
    return tuple(tuple(dict.fromkeys(joints)) for joints in by_joint.values())
