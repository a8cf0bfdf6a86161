"""Random configurations: closed, away from singularities, within the limits where that can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robomodel.arrays import Array
from robomodel.errors import few, warn
from robomodel.mechanism import closure as newton
from robomodel.mobility import column_units
from robomodel.mobility.exploration import column_ranges, random_positions
from robomodel.model.arguments import check_one_configuration
from robomodel.model.configurations import functions
from robomodel.model.configurations.closing import travel
from robomodel.model.configurations.following import follow, is_closed, move
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster, columns_of, joint_slices
from robomodel.model.registry import method
from robomodel.tolerances import CLOSED, NEARLY_CLOSED, NOTHING

if TYPE_CHECKING:
    from numpy.random import Generator

    from robomodel.model.model import Model

TYPICALLY_REGULAR = 5e-2  # random configurations keep 1/‖G‖ above this share of what is typical
FULL_RANK = 1e-4  # least singular value of K, of its largest, away from change points
DEPARTURE = 0.3  # [rad, cluster sizes] of a departure
DEPARTURES, SHORTER = 6, 0.25  # one after the other, where no draw is within limits
GUESSES = ((8, 1), (32, 32), (128, 128))  # a round's, of linkages and of other clusters
SAMPLE_STEPS = 12  # Newton steps, the last of which only polishes


@dataclass(frozen=True, slots=True)
class _SamplingRanges:
    """Ranges and units of each cluster's columns; least 1/‖G‖ (clusters), squared."""

    ranges: tuple[tuple[Array, Array], ...]
    units: tuple[Array, ...]
    regular: Array


@cached_on_model
def _sampling(model: Model) -> _SamplingRanges:
    ranges, units = [], []
    for cluster in model.clusters:
        columns = columns_of(model, cluster)
        scale = cluster.geometry.scale if cluster.implicit else 1.0
        ranges.append(column_ranges(columns, scale))
        units.append(column_units(columns, scale)[list(cluster.columns)])
    with np.errstate(all="ignore"):
        typical = 1.0 / _checked(model, model.neutral(), 1)[1][:, 2]
    typical = np.where(np.isfinite(typical), typical, 0.0)
    implicit = np.array([cluster.implicit for cluster in model.clusters])
    regular = np.where(implicit, TYPICALLY_REGULAR**2 * np.maximum(typical, 0.05**2), 0.0)
    return _SamplingRanges(tuple(ranges), tuple(units), regular)


def _checked(model: Model, q: Array, steps: int) -> tuple[Array, Array]:
    """Closed by so many steps; and the checks (..., clusters, 3) of :func:`functions.closing`."""
    states = functions.closing(model)(q, np.zeros((steps, 1)))[..., -1, :]
    checks = states[..., model.nq :]
    return states[..., : model.nq], checks.reshape(*checks.shape[:-1], len(model.clusters), 3)


@method
def random_configuration(
    model: Model,
    rng: Generator,
    near: Array | None,
    clusters: Sequence[Cluster] | None = None,
    *,
    of_loops: bool = False,
) -> Array:
    """A closed configuration, away from singularities and within the limits where that can be.

    ``clusters``: only these are drawn; the others are as near it, or neutral. ``of_loops``: what
    is near counts at joints in loops, which motors geared to them may pass by their ratios.
    """
    if near is not None:
        check_one_configuration(near, "near")
    q = model.neutral() if near is None else near.copy()
    pending = list(model.clusters if clusters is None else clusters)
    still = {cluster.index: cluster for cluster in pending if cluster.nv}
    with np.errstate(all="ignore"):
        for counts in GUESSES:
            if not pending:
                break
            if near is None:
                closed, checks = _anywhere(model, rng, pending, counts)
            else:
                closed, checks = _around(model, rng, pending, near, counts[0], of_loops)
            fine = (checks[..., 0] <= CLOSED) & (1.0 / checks[..., 2] >= _sampling(model).regular)
            best = fine & (checks[..., 1] <= NOTHING)
            for cluster in pending:
                rows = np.flatnonzero(fine[:, cluster.index])
                rows = rows[np.argsort(~best[rows, cluster.index], kind="stable")]
                for row in rows.tolist():
                    trial = q.copy()
                    trial[cluster.q] = closed[row, cluster.q]
                    if not _at_change_point(model, cluster, trial):
                        q = trial
                        still.pop(cluster.index, None)
                        break
                    best[row, cluster.index] = False
            pending = [cluster for cluster in pending if not np.any(best[:, cluster.index])]
        if near is None:
            for cluster in pending:
                walked = _walked(model, rng, cluster, q)
                if walked is not q:
                    still.pop(cluster.index, None)
                q = walked
    if still:
        # where nothing was drawn it is neutral, or near
        model.check(q, tolerance=max(NEARLY_CLOSED, *(cluster.slack for cluster in still.values())))
        names = few([cluster.name for cluster in still.values()])
        warn(RuntimeWarning(
            f"nothing that is closed and regular was drawn of {names}: a random configuration of "
            f"'{model.name}' has it where it was"
        ))  # fmt: skip
    return q


def _walked(model: Model, rng: Generator, cluster: Cluster, q: Array) -> Array:
    """Random departures from neutral, within limits, of a cluster of which none was drawn there.

    Unchanged where there is none, or where neutral is beyond limits itself.
    """
    at = q.copy()
    at[cluster.q] = model.neutral()[cluster.q]
    if _checked(model, at, 1)[1][cluster.index, 1] > NOTHING:
        return q
    departure, moved = DEPARTURE, False
    for _ in range(DEPARTURES):
        closed, checks = _around(model, rng, [cluster], at, GUESSES[0][0], False, departure)
        gap, beyond, spread = np.moveaxis(checks[:, cluster.index], -1, 0)
        regular = 1.0 / spread >= _sampling(model).regular[cluster.index]
        rows = np.flatnonzero((gap <= CLOSED) & (beyond <= NOTHING) & regular)
        if not len(rows):
            departure *= SHORTER
            continue
        at[cluster.q] = closed[rows[0], cluster.q]
        moved = True
    return at if moved and not _at_change_point(model, cluster, at) else q


def _at_change_point(model: Model, cluster: Cluster, q: Array) -> bool:
    """Whether a cluster's constraints lose rank at q (nq,): there G is not unique."""
    rank = cluster.geometry.nv - cluster.nv
    if not (cluster.implicit and rank):
        return False
    block = model.constraint_matrix(q)[:, cluster.spanning_v]
    values = np.linalg.svd(block, compute_uv=False)
    return bool(values[rank - 1] < FULL_RANK * values[0])


def _anywhere(
    model: Model, rng: Generator, clusters: Sequence[Cluster], counts: tuple[int, int]
) -> tuple[Array, Array]:
    """Configurations (n, nq) and their checks.

    Closed with independent joints where they are drawn, if any of a linkage's close so.
    """
    guesses = np.empty((counts[0], model.nq))
    guesses[:] = model.neutral()
    for cluster in clusters:
        geometry, count = cluster.geometry, counts[0 if cluster.implicit else 1]
        drawn = random_positions(geometry, _sampling(model).ranges[cluster.index], rng, count)
        if cluster.implicit:
            guesses[:, cluster.q] = drawn
            continue
        for body, part, _ in joint_slices(model, cluster):
            link = geometry.links[body - cluster.bodies[0]]
            guesses[:, cluster.q][:, part] = drawn[:, link.positions]
    linkages = [cluster for cluster in clusters if cluster.implicit]
    closed, checks = _checked(model, guesses, SAMPLE_STEPS if linkages else 1)
    gaps = checks[..., 0]
    open_ = [c for c in linkages if not (gaps[:, c.index] <= CLOSED).any()]
    for cluster in open_:
        at, gap = newton.close(cluster.geometry, guesses[:, cluster.q], rows=cluster.closing_rows)
        at[~is_closed(cluster, at, gap)] = np.nan
        closed[:, cluster.q] = at
    return _checked(model, closed, 1) if open_ else (closed, checks)


def _around(
    model: Model,
    rng: Generator,
    clusters: Sequence[Cluster],
    near: Array,
    count: int,
    of_loops: bool,
    departure: float = DEPARTURE,
) -> tuple[Array, Array]:
    """The same of motions by up to ``departure`` from there, on its branch."""
    moves = np.zeros((count, model.nv))
    for cluster in clusters:
        unit = _sampling(model).units[cluster.index]
        way = travel(cluster)
        unit = unit / (way if of_loops else np.maximum(way, 1.0))  # or v moves no further
        moves[:, cluster.v] = rng.uniform(-departure, departure, (count, cluster.nv)) * unit
    reached, gap = follow(model, np.broadcast_to(near, (count, model.nq)), moves)
    fine = np.repeat((gap <= CLOSED)[:, None], len(model.clusters), axis=1)
    if not fine.any():
        fine[:] = True
        for cluster in clusters:
            if cluster.implicit:
                start = np.tile(near[cluster.q], (count, 1))
                at, opened = move(cluster, start, moves[:, cluster.v])
                reached[:, cluster.q] = at
                fine[:, cluster.index] = is_closed(cluster, at, opened)
    closed, checks = _checked(model, reached, 1)
    checks[~fine] = np.nan
    return closed, checks
