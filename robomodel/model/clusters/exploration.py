"""Closed configurations of a cluster with loops, and its motions there.

Random ones, whose generic rank of K gives the mobility, and those around the configuration that the
file closes in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from robomodel.errors import NOWHERE
from robomodel.model.closure import CLOSED, Geometry, close
from robomodel.model.clusters.open_loops import at_most, describe_gaps, tolerance_above
from robomodel.model.clusters.partitioning import configurations_around
from robomodel.model.clusters.problem import (
    ClosureTolerance,
    ClusterError,
    ClusterProblem,
    Column,
    condition_names,
    first_source,
)
from robomodel.model.clusters.sampling import random_positions
from robomodel.model.joints import Array, Mask

SAMPLES = 24


ROUNDING = 0.02  # of the cluster's size: a gap that may be put down to rounding


NEARLY_CLOSED = 0.01  # of the cluster's size: a start as near to closing says where to close


@dataclass(frozen=True, slots=True)
class Samples:
    """Closed configurations, the conditions' Jacobians there in comparable units, their ranks."""

    q: Array
    jacobian: Array
    ranks: Array
    gap: float


def sample(problem: ClusterProblem) -> Samples:
    """Closed configurations: near the start, and anywhere."""
    geometry = problem.geometry
    rng = np.random.default_rng(20240607)
    exact = CLOSED * max(1.0, problem.scale)
    smallest, best = math.inf, problem.start
    found: list[tuple[Array, Array]] = []
    for attempt in range(6):
        anywhere = random_positions(geometry, problem.columns, rng, SAMPLES, problem.scale)
        near = geometry.integrate(
            np.broadcast_to(problem.start, (SAMPLES, geometry.nq)),
            rng.uniform(-0.6, 0.6, (SAMPLES, geometry.nv)) * problem.unit,
        )
        guesses = np.concatenate([problem.start[None], near, anywhere])
        if attempt == 0:
            guesses = guesses[: SAMPLES + 1 + SAMPLES // 2]
        q, gaps = close(geometry, guesses, iterations=30, rank=problem.tolerance.rank)
        if float(np.min(gaps)) < smallest:
            smallest, best = float(np.min(gaps)), q[int(np.argmin(gaps))]
        # where loops close only nearly, how nearly may depend on the configuration
        enough = exact if smallest <= exact else problem.tolerance.gap
        good = ~geometry.flipped(q)
        found.append((q[good], gaps[good]))
        if sum(np.count_nonzero(left <= enough) for _, left in found) >= SAMPLES // 2:
            break
    q, gaps = (np.concatenate(parts) for parts in zip(*found, strict=True))
    q = q[gaps <= enough]
    if not len(q):
        raise _not_closing(problem, best, smallest, exact)
    jacobian = problem.conditions(q)[1]
    singular = np.linalg.svd(jacobian, compute_uv=False)
    ranks = np.sum(singular > problem.tolerance.rank * singular[:, :1], axis=1)
    return Samples(q, jacobian, ranks, smallest)


def explore(problem: ClusterProblem) -> tuple[Samples, ClosedConfigurations]:
    """Closed configurations and motions, found once for clusters that differ in names only."""
    geometry = problem.geometry
    nameless = Geometry(
        geometry.links,
        tuple(replace(loop, name="") for loop in geometry.loops),
        tuple(replace(coupling, name="") for coupling in geometry.linear),
    )
    columns = tuple(replace(column, label="", joint="") for column in problem.columns)
    try:
        return _explored_once(nameless, columns, tuple(problem.start.tolist()), problem.tolerance)
    except ClusterError:
        sample(problem)  # which says it with names and places
        raise


@lru_cache(maxsize=64)
def _explored_once(
    geometry: Geometry,
    columns: tuple[Column, ...],
    start: tuple[float, ...],
    tolerance: ClosureTolerance,
) -> tuple[Samples, ClosedConfigurations]:
    problem = ClusterProblem("", geometry, columns, (NOWHERE,), (), np.array(start), tolerance)
    samples = sample(problem)
    rank = int(np.max(samples.ranks))
    generic = samples.ranks == rank
    _, _, right = np.linalg.svd(samples.jacobian[generic])
    null = np.swapaxes(right[:, rank:, :], 1, 2)  # (samples, n, mobility), orthonormal
    return samples, ClosedConfigurations(problem, rank, samples.q[generic], null)


def _not_closing(
    problem: ClusterProblem, best: Array, smallest: float, exact: float
) -> ClusterError:
    """What is said of loops that close nowhere; ``best`` is where they are least open."""
    start = float(problem.geometry.gap(problem.start))
    of = f"(at the start it is {start:.3g}; conditions {condition_names(problem)})"
    remedy = "check the anchors, the lengths and axes"
    source = first_source(problem)
    if smallest <= exact:
        summary = f"cannot close: it closes only with an axis the wrong way round {of}"
        return ClusterError(summary, remedy, source)
    remedy += tolerance_advice(smallest, problem.scale)
    what = at_most(describe_gaps(problem, best, 0.5 * smallest))
    summary = f"cannot close: the smallest gap found is {smallest:.3g} {of}: {what}"
    return ClusterError(summary, remedy, source)


def tolerance_advice(off: float, scale: float = 1.0) -> str:
    """Advice to take loops for exact that are off by as little as rounding may be."""
    if off > ROUNDING * scale:
        return ""
    enough = tolerance_above(off)
    return f"; if the file is no more exact than {off:.1g}, load it with tolerance={enough:g}"


class ClosedConfigurations:
    """Closed configurations and their motions: anywhere, and around the one the file closes in."""

    def __init__(self, problem: ClusterProblem, rank: int, samples: Array, null: Array) -> None:
        self.problem, self.rank = problem, rank
        self.samples, self.null = samples, null

    @cached_property
    def closed(self) -> Array:
        """The configuration (1, nq) that the file closes in: the nearest to its start.

        From a start that is open, it is one in which as many joints as can be may move: some ways
        to close a linkage lock joints that others leave free.
        """
        problem, geometry = self.problem, self.problem.geometry
        rank = problem.tolerance.rank
        q, gap = close(geometry, problem.start[None], nearest=True, rank=rank)
        exact = CLOSED * max(1.0, problem.scale)
        largest = 2.0 * max(exact, float(np.max(geometry.gap(self.samples))))
        candidates, moving = self.samples, _moving(self.null)
        if float(gap[0]) <= largest and not bool(geometry.flipped(q)[0]):
            if float(geometry.gap(problem.start)) <= NEARLY_CLOSED * problem.scale:
                return q
            _, singular, right = np.linalg.svd(problem.conditions(q)[1])
            moves = int(np.sum(singular > rank * singular[:, :1]))
            candidates = np.concatenate([q, candidates])
            moving = np.concatenate([_moving(np.swapaxes(right[:, moves:], 1, 2)), moving])
        return _most_mobile(problem, candidates, moving)

    @cached_property
    def around(self) -> tuple[Array, Array]:
        """Configurations reached from there, and orthonormal motions there; never none.

        From within the limits, where they are met.
        """
        problem, samples = self.problem, self.samples
        q, null = configurations_around(problem, self.closed[0], self.rank)
        if bool(outside_limits(problem, self.closed)[0]):
            reached = np.concatenate([q, samples])
            moving = np.concatenate([_moving(null), _moving(self.null)])
            inside = ~outside_limits(problem, reached)
            if np.any(inside):
                start = _most_mobile(problem, reached[inside], moving[inside])
                q, null = configurations_around(problem, start[0], self.rank)
        return (q, null) if len(q) else (samples, self.null)


def _most_mobile(problem: ClusterProblem, q: Array, moving: Array) -> Array:
    """Of the configurations in which most columns move the one (1, nq) nearest to the start."""
    q = q[moving == np.max(moving)]
    nearest: Array = q[int(np.argmin(distances_from_start(problem, q)))][None]
    return nearest


def _moving(null: Array) -> Array:
    """How many columns move at each configuration."""
    moving: Array = np.sum(np.linalg.norm(null, axis=2) > 1e-6, axis=1)
    return moving


def distances_from_start(problem: ClusterProblem, q: Array) -> Array:
    """How far configurations (n, nq) are from the start, in comparable units."""
    start = np.broadcast_to(problem.start, q.shape)
    away: Array = np.linalg.norm(problem.geometry.difference(start, q) / problem.unit, axis=1)
    return away


def outside_limits(problem: ClusterProblem, q: Array) -> Mask:
    """Which configurations (n, nq) are beyond a joint limit."""
    geometry, (low, high) = problem.geometry, problem.limits
    at = geometry.difference(np.broadcast_to(geometry.zero(), q.shape), q)
    outside: Mask = np.any((at < low - 1e-9) | (at > high + 1e-9), axis=1)
    return outside
