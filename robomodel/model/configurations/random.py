"""Random closed configurations, away from singularities and within limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robomodel.model import closure as newton
from robomodel.model.arguments import check_one_configuration
from robomodel.model.closure import CLOSED
from robomodel.model.configurations import functions
from robomodel.model.configurations.coordinates import columns_of, joint_slices
from robomodel.model.configurations.moving import follow, is_closed, move
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster
from robomodel.model.joints import Array, Mask
from robomodel.model.mobility.exploration import column_ranges, random_positions
from robomodel.model.mobility.problem import column_units

if TYPE_CHECKING:
    from numpy.random import Generator

    from robomodel.model.model import Model

REGULAR = 5e-2  # random configurations keep 1/‖G‖ above this share of what is typical
FULL_RANK = 1e-4  # least singular value of K, of its largest, away from change points
NEAR = 0.3  # [rad, cluster sizes] of a departure
GUESSES = ((8, 1), (32, 32), (128, 128))  # a round's, of linkages and of other clusters
STEPS = 12  # of Newton's, of which the last one polishes
WITHIN = 1e-12  # [rad, m] beyond a limit that is still within


@dataclass(frozen=True, slots=True)
class _Sampling:
    """Ranges and units of each cluster's columns; least 1/‖G‖ (clusters), squared."""

    ranges: tuple[tuple[Array, Array], ...]
    units: tuple[Array, ...]
    regular: Array


@cached_on_model
def _sampling(model: Model) -> _Sampling:
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
    regular = np.where(implicit, REGULAR**2 * np.maximum(typical, 0.05**2), 0.0)
    return _Sampling(tuple(ranges), tuple(units), regular)


def _checked(model: Model, q: Array, steps: int) -> tuple[Array, Array]:
    """Closed by so many steps; and the checks (..., clusters, 3) of :func:`functions.closing`."""
    states = functions.closing(model)(q, np.zeros((steps, 1)))[..., -1, :]
    checks = states[..., model.nq :]
    return states[..., : model.nq], checks.reshape(*checks.shape[:-1], len(model.clusters), 3)


def random(
    model: Model, rng: Generator, near: Array | None, clusters: Sequence[Cluster] | None = None
) -> Array:
    """A closed configuration, away from singularities and within the limits where that can be.

    ``clusters``: only these are drawn; the others are as near it, or neutral.
    """
    if near is not None:
        check_one_configuration(near, "near")
    q = model.neutral() if near is None else near.copy()
    pending = list(model.clusters if clusters is None else clusters)
    with np.errstate(all="ignore"):
        for counts in GUESSES:
            if not pending:
                break
            if near is None:
                closed, checks = _anywhere(model, rng, pending, counts)
            else:
                closed, checks = _around(model, rng, pending, near, counts[0])
            fine = (checks[..., 0] <= CLOSED) & (1.0 / checks[..., 2] >= _sampling(model).regular)
            best = fine & (checks[..., 1] <= WITHIN)
            untried = [cluster for cluster in pending if np.any(fine[:, cluster.index])]
            while untried:
                row = np.argmax(np.where(np.any(best, axis=0), best, fine), axis=0).tolist()
                trial = q.copy()
                for cluster in untried:
                    trial[cluster.q] = closed[row[cluster.index], cluster.q]
                singular = _at_change_points(model, trial, untried)
                for cluster in untried:
                    at = row[cluster.index], cluster.index
                    if cluster in singular:
                        fine[at] = best[at] = False
                    elif fine[at]:
                        q[cluster.q] = trial[cluster.q]
                untried = [cluster for cluster in singular if np.any(fine[:, cluster.index])]
            some: Mask = np.any(best, axis=0)
            pending = [cluster for cluster in pending if not some[cluster.index]]
    return q


def _at_change_points(model: Model, q: Array, clusters: Sequence[Cluster]) -> list[Cluster]:
    """Those of the clusters whose constraints lose rank at q (nq,): there G is not unique."""
    loops = [cluster for cluster in clusters if cluster.implicit]
    if not loops:
        return []
    matrix, result = model.constraint_matrix(q), []
    for cluster in loops:
        block = matrix[:, cluster.spanning_v]
        values = np.linalg.svd(block, compute_uv=False)
        rank = block.shape[1] - cluster.nv
        if rank and values[rank - 1] < FULL_RANK * values[0]:
            result.append(cluster)
    return result


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
            guesses[:, cluster.q][:, part] = drawn[:, link.q : link.q + link.joint.nq]
    linkages = [cluster for cluster in clusters if cluster.implicit]
    closed, checks = _checked(model, guesses, STEPS if linkages else 1)
    gaps = checks[..., 0]
    open_ = [c for c in linkages if not (gaps[:, c.index] <= CLOSED).any()]
    for cluster in open_:
        at, gap = newton.close(cluster.geometry, guesses[:, cluster.q], rows=cluster.closing_rows)
        at[~is_closed(cluster.geometry, at, gap)] = np.nan
        closed[:, cluster.q] = at
    return _checked(model, closed, 1) if open_ else (closed, checks)


def _around(
    model: Model, rng: Generator, clusters: Sequence[Cluster], near: Array, count: int
) -> tuple[Array, Array]:
    """The same of motions by up to ``NEAR`` from there, on its branch."""
    moves = np.zeros((count, model.nv))
    for cluster in clusters:
        unit = _sampling(model).units[cluster.index]
        moves[:, cluster.v] = rng.uniform(-NEAR, NEAR, (count, cluster.nv)) * unit
    reached, gap = follow(model, np.broadcast_to(near, (count, model.nq)), moves)
    fine = np.repeat((gap <= CLOSED)[:, None], len(model.clusters), axis=1)
    if not fine.any():
        fine[:] = True
        for cluster in clusters:
            if cluster.implicit:
                start = np.tile(near[cluster.q], (count, 1))
                at, opened = move(cluster, start, moves[:, cluster.v])
                reached[:, cluster.q] = at
                fine[:, cluster.index] = is_closed(cluster.geometry, at, opened)
    closed, checks = _checked(model, reached, 1)
    checks[~fine] = np.nan
    return closed, checks
