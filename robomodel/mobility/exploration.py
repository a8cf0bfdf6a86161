"""Closed configurations of a cluster with loops, its motions there, and independent coordinates.

Random configurations give the generic rank of K, and so the mobility. Configurations around the
one to which the file's start closes tell which coordinates are well conditioned, where the file
does not name them. That choice should be the same for the same mechanism, whatever the names and
order of its joints, and for its mirror image: so nothing in it is random. The last section
describes gaps in words.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from robomodel.arrays import Array, median, quantile
from robomodel.errors import NOWHERE, argument, few
from robomodel.mechanism.closure import MANY_ENTRIES, Geometry, ToNearest, close
from robomodel.mechanism.compiled import LARGE, compiled
from robomodel.mechanism.constraints import (
    Distance,
    LoopJoint,
    Perpendicular,
    Polynomial,
)
from robomodel.mechanism.copies import Image, images
from robomodel.mechanism.joints import Prismatic, Revolute
from robomodel.mobility import (
    ClosureTolerance,
    ClusterError,
    ClusterProblem,
    SpanningColumn,
    condition_names,
    decomposed,
    first_source,
    largest,
    outside_limits,
)
from robomodel.mobility.branches import Branch, branches_at
from robomodel.mobility.parts import parts_of
from robomodel.mobility.points import onto_conditions
from robomodel.tolerances import CLOSED, MOVES, NOTHING, SAME, TINY

GUESSES, WIDE = 24, 10  # closings; sizes of a linkage from which on slides have no real limits
ROUNDED_CONDITION = 1e-3  # singular value of a condition that may be rounding's
MOST_ROUNDED = 0.02  # of the cluster's size: a gap that may be put down to rounding
FEW_OFF, ONE = 4, 1e-3  # as many samples that are no further apart [rad, sizes] are one
NEAR_ONE = 0.1  # and so far around one a gap that rounding explains may stay, at first order
# of the median of the least singular values: less is near a singular configuration; and of the
# greatest: less is where Newton's method ends at one, at a double root
REGULAR_POINT, MEETING = 0.01, 1e-3
NEAR_START = 0.01  # of the cluster's size: a start as near to closing says where to close


@dataclass(frozen=True, eq=False)
class Open:
    """Loops that do not close anywhere: the configuration with the least gap, and that.

    ``flipped``: they close there, but with an axis the wrong way round.
    """

    q: Array
    gap: float
    flipped: bool


def sample(problem: ClusterProblem) -> ClosedConfigurations:
    """Random closed configurations, near the start and anywhere. Raises ClusterError for none."""
    return _closed(problem, _sampled(problem))


def _closed(problem: ClusterProblem, found: ClosedConfigurations | Open) -> ClosedConfigurations:
    """The configurations, if loops close. Raises ClusterError with names and places if not."""
    if isinstance(found, Open):
        raise _not_closing(problem, found)
    return found


def _sampled(problem: ClusterProblem) -> ClosedConfigurations | Open:
    geometry = problem.geometry
    rng = np.random.default_rng(20240607)
    exact = CLOSED * max(1.0, problem.scale)
    smallest, best = math.inf, problem.start
    batches: list[tuple[Array, Array]] = []
    ranges = column_ranges(problem.columns, problem.scale, geometry.pitches)
    for attempt in range(6):
        anywhere = random_positions(geometry, ranges, rng, GUESSES)
        near = geometry.integrate(
            np.broadcast_to(problem.start, (GUESSES, geometry.nq)),
            rng.uniform(-0.6, 0.6, (GUESSES, geometry.nv)) * problem.unit,
        )
        guesses = np.concatenate([problem.start[None], near, anywhere])
        if attempt == 0:
            guesses = guesses[: GUESSES + 1 + GUESSES // 2]
        elif not any(
            map(len, (each for each, _ in batches))
        ):  # all have a loop the wrong way round
            guesses = close(geometry.oriented(), guesses, rank=problem.tolerance.rank)[0]
        guesses = _closed_in_parts(problem, guesses, ranges, rng)
        q, gaps = close(geometry, guesses, iterations=30, rank=problem.tolerance.rank)
        if float(np.min(gaps)) < smallest:
            smallest, best = float(np.min(gaps)), q[int(np.argmin(gaps))]
        # where loops close only nearly, how nearly may depend on the configuration
        enough = exact if smallest <= exact else problem.tolerance.gap
        good = ~geometry.flipped(q)
        batches.append((q[good], gaps[good]))
        closed, nearly = (sum(np.count_nonzero(gap <= most) for _, gap in batches)
                          for most in (enough, problem.tolerance.gap))  # fmt: skip
        # of a rounded mechanism that is drawn closed no other configuration may be closed; one that
        # moves to first order only is nearly closed around the one alone
        if closed >= GUESSES // 2 or (
            closed == 1 and nearly >= GUESSES // 2 and _moves(problem, batches)
        ):
            break
    q, gaps = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    q = q[gaps <= enough]
    if not len(q):
        return Open(best, smallest, smallest <= exact)
    return ClosedConfigurations(problem, q, smallest)


def _moves(problem: ClusterProblem, batches: Sequence[tuple[Array, Array]]) -> bool:
    """True if nearly closed configurations are not all near the one that is closed best."""
    q, gaps = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    off = _apart(problem, q[[int(np.argmin(gaps))]], q[gaps <= problem.tolerance.gap])
    return median(np.max(np.abs(off), axis=1)) > NEAR_ONE


def _apart(problem: ClusterProblem, at: Array, q: Array) -> Array:
    """The ways from one configuration (1, nq) to others but for full turns, in comparable units."""
    away = problem.geometry.difference(at, q)
    length = np.array([column.length for column in problem.columns])
    turns = np.where(length, 0.0, np.round(away / (2.0 * math.pi)))
    off: Array = (away - turns * 2.0 * math.pi) / problem.unit
    return off


def _some_apart(problem: ClusterProblem, q: Array) -> bool:
    """True if configurations (n, nq) are few, or differ by more than full turns of joints."""
    off = _apart(problem, q[:1], q)
    return len(off) < FEW_OFF or bool(np.max(np.abs(off), initial=0.0) > ONE)


def _closed_in_parts(
    problem: ClusterProblem, q: Array, ranges: tuple[Array, Array], rng: np.random.Generator
) -> Array:
    """Guesses (n, nq) in which each part of the linkage is closed; as they are where one cannot be.

    A part that does not close from its guess begins anew, anywhere.
    """
    geometry, enough = problem.geometry, problem.tolerance.gap
    guesses, q, going = q, q.copy(), np.arange(len(q))
    for part in parts_of(geometry):
        open_ = going
        for _ in range(6):
            reached, gaps = part.closed(geometry, q[open_], problem.tolerance.rank)
            q[open_[gaps <= enough]] = reached[gaps <= enough]
            open_ = open_[gaps > enough]
            if not len(open_):
                break
            drawn = random_positions(geometry, ranges, rng, len(open_))
            q[np.ix_(open_, part.positions)] = drawn[:, part.positions]
        q[open_] = guesses[open_]  # the linkage may close, as a Delta whose plate can turn out
        going = np.setdiff1d(going, open_)
    return q


def explore(
    problem: ClusterProblem, before: dict[NamelessProblem, ClosedConfigurations] | None = None
) -> ClosedConfigurations:
    """As :func:`sample`, kept for clusters that differ in names only (left and right legs).

    ``before``: those of other clusters, to which these are added. A copy of one of these takes its
    configurations, closed again.
    """
    nameless, before = NamelessProblem.of(problem), {} if before is None else before
    if nameless in before:
        return before[nameless]
    originals = [each for each in before.values() if each.original is None]
    copies = (each.copied(nameless.for_many) for each in originals)
    found = next((each for each in copies if each is not None), None)
    before[nameless] = _closed(problem, _explored(nameless)) if found is None else found
    return before[nameless]


@dataclass(frozen=True, slots=True)
class NamelessProblem:
    """A cluster's problem without names and places, by which results are kept."""

    geometry: Geometry
    columns: tuple[SpanningColumn, ...]
    start: tuple[float, ...]
    tolerance: ClosureTolerance
    rank: int | None

    @staticmethod
    def of(problem: ClusterProblem) -> NamelessProblem:
        """The core of a problem."""
        geometry = Geometry(
            problem.geometry.links,
            tuple(replace(loop, name="") for loop in problem.geometry.loops),
            tuple(replace(coupling, name="") for coupling in problem.geometry.linear),
        )
        columns = tuple(replace(column, label="", joint="") for column in problem.columns)
        start = tuple(problem.start.tolist())
        return NamelessProblem(geometry, columns, start, problem.tolerance, problem.rank)

    @property
    def compiled(self) -> ClusterProblem:
        """The problem with its conditions compiled, for many evaluations."""
        return replace(self.problem, geometry=compiled(self.geometry))

    @property
    def for_many(self) -> ClusterProblem:
        """The problem, with its conditions compiled if that pays."""
        entries = self.geometry.rows * self.geometry.nv
        # a decision has compiled its conditions; else that pays for very many of them alone
        many = entries >= (LARGE if self.rank is None else MANY_ENTRIES)
        return self.compiled if many else self.problem

    @property
    def problem(self) -> ClusterProblem:
        """The problem."""
        at = np.array(self.start)
        return ClusterProblem(
            "", self.geometry, self.columns, (NOWHERE,), (), at, self.tolerance, self.rank
        )


@lru_cache(maxsize=64)
def _explored(nameless: NamelessProblem) -> ClosedConfigurations | Open:
    return _sampled(nameless.for_many)


def _not_closing(problem: ClusterProblem, found: Open) -> ClusterError:
    """The error for loops that close nowhere."""
    start = float(problem.geometry.gap(problem.start))
    of = f"(at the start it is {start:.3g}; conditions {condition_names(problem)})"
    remedy = "check the anchors, the lengths and axes"
    source = first_source(problem)
    if found.flipped:
        summary = f"cannot close: it closes only with an axis the wrong way round {of}"
        return ClusterError(summary, remedy, source)
    remedy += tolerance_advice(found.gap, problem.scale)
    what = at_most(describe_gaps(problem, found.q, 0.5 * found.gap))
    summary = f"cannot close: the smallest gap found is {found.gap:.3g} {of}: {what}"
    return ClusterError(summary, remedy, source)


def tolerance_advice(off: float, scale: float = 1.0) -> str:
    """Advice to load with a tolerance, where loops are off by no more than rounding."""
    if off > MOST_ROUNDED * scale:
        return ""
    enough = argument("tolerance", tolerance_above(off))
    return f"; if the file is no more exact than {off:.1g}, load it with {enough}"


class ClosedConfigurations:
    """Closed configurations and their motions: random ones, and those around the file's start.

    ``samples`` are the random ones at which the conditions have their generic ``rank``, with
    ``jacobian`` and ``singular`` values in comparable units. ``null`` (samples, columns, mobility)
    are orthonormal motions. ``gap`` is the least gap of the loops. ``uniform``: all have one rank.
    ``original``: those of which these are copies, and the map to them.
    """

    def __init__(
        self,
        problem: ClusterProblem,
        q: Array,
        gap: float,
        original: tuple[ClosedConfigurations, Image] | None = None,
    ) -> None:
        self.problem, self.gap, self.drawn, self.original = problem, gap, q, original

        def at(q: Array) -> tuple[Array, ...]:
            jacobian = problem.conditions(q)[1]
            return q, jacobian, *decomposed(problem, jacobian)

        q, jacobian, singular, ranks, right = at(q)
        self.rank = int(np.max(ranks)) if problem.rank is None else problem.rank
        self.uniform = bool(np.all(ranks == ranks[0]))
        if not np.any(ranks == self.rank):  # of other components: those around the start
            start = close(problem.geometry, problem.start[None], ToNearest(),
                          rank=problem.tolerance.rank)[0][0]  # fmt: skip
            around = configurations_around(problem, start, self.rank)[0]
            if len(around):
                q, jacobian, singular, ranks, right = at(around)
            else:
                self.rank = int(np.max(ranks))
        if problem.rank is not None and not _some_apart(problem, q[ranks == self.rank]):
            # of a linkage that is known to move, guesses closed at the start alone
            around = configurations_around(problem, q[ranks == self.rank][0], self.rank)[0]
            q, jacobian, singular, ranks, right = at(np.concatenate([q, around]))
        shares = np.where(ranks == self.rank, _least_shares(singular, self.rank), 0.0)
        generic = (ranks == self.rank) & (shares >= MEETING * np.max(shares))
        if np.sum(generic) < min(FEW_OFF, np.sum(ranks == self.rank)):
            # most guesses closed where assembly modes meet: configurations around another tell
            around = configurations_around(problem, q[np.argmax(shares)], self.rank)[0]
            q, jacobian, singular, ranks, right = at(np.concatenate([q[generic], around]))
            generic = ranks == self.rank
        self.samples, self.jacobian, self.singular = (
            q[generic],
            jacobian[generic],
            singular[generic],
        )
        self.null = np.swapaxes(right[generic, self.rank :], 1, 2)

    def copied(self, problem: ClusterProblem) -> ClosedConfigurations | None:
        """These configurations, closed again, for a problem with a copy of this one's linkage.

        None if it is no copy, or if some do not close there.
        """
        if problem.tolerance.stated != self.problem.tolerance.stated:
            return None
        for image in images(self.problem.geometry, problem.geometry):
            q, gaps = close(
                problem.geometry, image.positions(self.drawn), rank=problem.tolerance.rank
            )
            smallest = float(np.min(gaps))
            exact = CLOSED * max(1.0, problem.scale)
            enough = exact if smallest <= exact else problem.tolerance.gap
            if np.all((gaps <= enough) & ~problem.geometry.flipped(q)):
                return ClosedConfigurations(problem, q, smallest, (self, image))
        return None

    @property
    def off(self) -> float:
        """The largest singular value beyond the rank, as a share of the largest of all.

        Samples near singular configurations do not count: Newton's method ends there at a distance
        that is the root of the gap.
        """
        regular = self._least_shares >= REGULAR_POINT * self.kept
        singular = self.singular[regular]
        dropped = singular[:, self.rank :] / largest(singular)
        return float(np.max(dropped, initial=0.0))

    @property
    def exact(self) -> bool:
        """True if loops close and redundant conditions agree, but for rounding of floats."""
        return self.gap <= CLOSED and self.off <= SAME

    @property
    def kept(self) -> float:
        """The least singular value within the rank, as a share of the largest (median)."""
        return median(self._least_shares)

    @property
    def _least_shares(self) -> Array:
        """The least singular value within the rank of each sample, as a share of its largest."""
        return _least_shares(self.singular, self.rank)

    @property
    def weakest(self) -> float:
        """The last singular value, as a share of the largest (the largest over the samples)."""
        return float(np.max(self.singular[:, -1:] / largest(self.singular)))

    @property
    def apart(self) -> bool:
        """True if the samples differ by more than full turns of joints."""
        return _some_apart(self.problem, self.samples)

    @cached_property
    def closed(self) -> Array:
        """The closed configuration (1, nq) nearest to the file's start.

        From a start with large gaps, the nearest of those in which the most joints move: some ways
        to close a linkage lock joints that others leave free. If it is a change point, one beside
        it, on the branch that is taken.
        """
        for branch in self.branches:
            if branch.ahead is not None:
                return branch.ahead[None]
        return self._nearest

    @cached_property
    def branches(self) -> list[Branch]:
        """The branches through the closed configuration nearest to the start at change points."""
        return branches_at(self.problem, self._nearest[0], self.rank)

    @cached_property
    def _nearest(self) -> Array:
        problem, geometry = self.problem, self.problem.geometry
        rank = problem.tolerance.rank
        q, gap = close(geometry, problem.start[None], ToNearest(), rank=rank)
        exact = CLOSED * max(1.0, problem.scale)
        largest = 2.0 * max(exact, float(np.max(geometry.gap(self.samples))))
        candidates, moving = self.samples, _moving(self.null)
        if float(gap[0]) <= largest and not bool(geometry.flipped(q)[0]):
            if float(geometry.gap(problem.start)) <= NEAR_START * problem.scale:
                return q
            _, (first,), right = decomposed(problem, problem.conditions(q)[1])
            candidates = np.concatenate([q, candidates])
            moving = np.concatenate([_moving(np.swapaxes(right[:, first:], 1, 2)), moving])
        return _most_mobile(problem, candidates, moving)

    @cached_property
    def around(self) -> tuple[Array, Array]:
        """Configurations reached from :attr:`closed`, and orthonormal motions there; at least one.

        If :attr:`closed` is outside the limits, those reached from one within them, if any is.
        """
        problem, samples = self.problem, self.samples
        q, null = self._around_original or configurations_around(problem, self.closed[0], self.rank)
        if bool(outside_limits(problem, self.closed)[0]):
            reached = np.concatenate([q, samples])
            moving = np.concatenate([_moving(null), _moving(self.null)])
            inside = ~outside_limits(problem, reached)
            if np.any(inside):
                start = _most_mobile(problem, reached[inside], moving[inside])
                q, null = configurations_around(problem, start[0], self.rank)
        return (q, null) if len(q) else (samples, self.null)

    @property
    def _around_original(self) -> tuple[Array, Array] | None:
        """The original's :attr:`around`, closed again; None if limits or starts are others."""
        if self.original is None:
            return None
        (original, image), problem = self.original, self.problem
        off = problem.geometry.difference(image.positions(original.closed), self.closed)
        if (
            not image.keeps(original.problem.limits, problem.limits)
            or np.max(np.abs(off / problem.unit)) > NEAR_START
        ):
            return None
        q, gap = close(
            problem.geometry, image.positions(original.around[0]), rank=problem.tolerance.rank
        )
        _, ranks, right = decomposed(problem, problem.conditions(q)[1])
        good = (gap <= _nearly_closed(problem, self.closed[0])) & ~problem.geometry.flipped(q)
        good &= ~outside_limits(problem, q, self.closed[0]) & (ranks == self.rank)
        return q[good], np.swapaxes(right[good, self.rank :], 1, 2)

    def led_within_limits(self, q: Array) -> Array:
        """Configurations of (n, nq) that close, led into the limits as far as they go.

        By Gauss and Newton: each moves such that what is beyond limits comes next to them, as long
        as that leads nearer. It ends once one is within the limits.
        """
        problem, geometry = self.problem, self.problem.geometry
        low, high = problem.limits
        closed = _nearly_closed(problem, self.closed[0])
        q = q[(geometry.gap(q) <= closed) & ~geometry.flipped(q)]

        def beyond(at: Array) -> Array:
            here = geometry.difference(np.broadcast_to(geometry.zero(), at.shape), at)
            way: Array = (np.clip(here, low + inset, high - inset) - here) / problem.unit
            return way

        inset = np.minimum(1e-3 * problem.unit, 0.1 * (high - low))
        share = np.ones(len(q))
        for _ in range(40):
            going = share > SAME
            if not np.any(going) or np.any(~outside_limits(problem, q)):
                break
            inset = 0.5 * inset
            way = beyond(q[going])
            right = decomposed(problem, problem.conditions(q[going])[1])[2]
            null = np.swapaxes(right[:, self.rank :], 1, 2)
            rates = np.linalg.pinv(null * (way != 0.0)[:, :, None], rcond=MOVES)
            step = np.einsum("nij,njk,nk->ni", null, rates, way)
            step *= (share[going] / np.maximum(1.0, np.linalg.norm(step, axis=1)))[:, None]
            there, gap = close(
                geometry,
                geometry.integrate(q[going], step * problem.unit),
                rank=problem.tolerance.rank,
            )
            good = (gap <= closed) & ~geometry.flipped(there)
            good &= np.linalg.norm(beyond(there), axis=1) < np.linalg.norm(way, axis=1)
            share[going] = np.where(good, np.minimum(1.0, 2.0 * share[going]), 0.25 * share[going])
            q[going] = np.where(good[:, None], there, q[going])
        return q


def _most_mobile(problem: ClusterProblem, q: Array, moving: Array) -> Array:
    """The configuration (1, nq) nearest to the start among those in which the most columns move."""
    q = q[moving == np.max(moving)]
    nearest: Array = q[int(np.argmin(distances_from_start(problem, q)))][None]
    return nearest


def _moving(null: Array) -> Array:
    """The number of columns that move, for each sample of motions (samples, columns, mobility)."""
    moving: Array = np.sum(np.linalg.norm(null, axis=2) > MOVES, axis=1)
    return moving


def distances_from_start(problem: ClusterProblem, q: Array) -> Array:
    """The distances of configurations (n, nq) from the start, in comparable units."""
    start = np.broadcast_to(problem.start, q.shape)
    away: Array = np.linalg.norm(problem.geometry.difference(start, q) / problem.unit, axis=1)
    return away


# ---- random positions ---------------------------------------------------------------------------


def column_ranges(
    columns: Sequence[SpanningColumn], scale: float, pitches: Mapping[int, float]
) -> tuple[Array, Array]:
    """The ranges from which columns are drawn: their limits, or a turn, or twice the ``scale``.

    Of slides with much wider limits, as they are written where none are meant, the part nearest to
    zero. Screws, by their ``pitches`` [m/rad], go as far as slides.
    """
    ranges = np.zeros((2, len(columns)))
    for i, column in enumerate(columns):
        reach = scale if column.length else math.pi
        if i in pitches:
            reach = max(reach, scale / pitches[i])
        slides = column.length or i in pitches
        low, high = column.limits
        if slides and high - low > WIDE * reach:
            middle = min(max(0.0, low + reach), high - reach)
            low, high = middle - reach, middle + reach
        elif slides:
            reach = 0.5 * (high - low)
        low = max(low, high - 2 * reach if high < math.inf else -reach)
        ranges[:, i] = low, max(low, min(high, low + 2 * reach))
    return ranges[0], ranges[1]


def random_positions(
    geometry: Geometry, ranges: tuple[Array, Array], rng: np.random.Generator, count: int
) -> Array:
    """Spanning positions drawn within :func:`column_ranges`; rotations of balls are uniform."""
    low, high = (x[:, None] for x in ranges)
    nq = geometry.nq
    if nq == len(low):
        return rng.uniform(low, high, (nq, count)).T
    q = np.empty((count, nq))
    for link in geometry.links:
        joint, part = link.joint, slice(link.q, link.q + link.joint.nq)
        along = slice(link.v, link.v + joint.nv)
        drawn = rng.uniform(low[along], high[along], (joint.nv, count)).T
        if joint.nq != joint.nv:  # the rotation by a quaternion instead
            quaternion = rng.standard_normal((count, 4))
            quaternion /= np.linalg.norm(quaternion, axis=1, keepdims=True)
            drawn = np.concatenate([drawn[:, 3:], quaternion], axis=1)
        q[:, part] = drawn
    return q


def conditioning(null: Array, columns: Sequence[int]) -> Array:
    """σ_min(N_I) at each sample: the conditioning of these columns as independent ones.

    N has orthonormal motions as columns, so that ‖G‖ = 1/σ_min.
    """
    return np.asarray(np.linalg.svd(null[:, list(columns), :], compute_uv=False)[:, -1])


def regularity(
    geometry: Geometry,
    q: Array,
    unit: Array,
    independent: Sequence[int],
    motions: Callable[[Array], Array],
) -> Array:
    """The regularity of closed configurations (n, nq) for these independent columns, 0 to 1.

    1 where G is an isometry (in columns scaled by ``unit``), 0 where it is infinite or K loses
    rank. ``motions``: those among which independent columns are, from those of the geometry.
    """
    _, singular, right = np.linalg.svd(geometry.evaluate(q)[1] * unit)
    rank = geometry.nv - len(independent)
    null = np.swapaxes(right[:, rank:, :], 1, 2)
    weakest = singular[:, max(rank, 1) - 1]
    regular = conditioning(motions(null), independent)
    return np.where(weakest >= 1e-4 * singular[:, 0], regular, 0.0)


# ---- independent columns ------------------------------------------------------------------------


STRIDE, STRIDES = 0.3, 12  # radians, or cluster sizes; about half a turn to either side
WALKERS = 400  # configurations, about, in which a choice is judged; fewer of more freedoms
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)  # of the configurations, in which a choice may be worse
POOR = 1e-3  # a worse conditioned choice is none, if there is another
AS_GOOD = 2.0  # choices conditioned within this factor of the best are good; a part costs as much
EQUALLY_GOOD = 1.05  # and of these, those within this factor of each other are equally good
ATTEMPTS = 40_000  # choices times configurations up to which all choices are tried


def configurations_around(problem: ClusterProblem, at: Array, rank: int) -> tuple[Array, Array]:
    """Closed configurations around ``at`` (n, nq), and their motions (n, columns, mobility).

    From ``at`` each joint starts to move, to and fro, and the motion goes straight on, as a
    geodesic of the closed configurations in comparable units. It ends at a joint limit, or where
    the loops do not follow. Configurations of another rank are left out, ``at`` too, which is else
    the first.
    """
    geometry, unit = problem.geometry, problem.unit
    _, (rank_here,), right = decomposed(problem, problem.conditions(at[None])[1])
    free = right[0, rank_here:]
    ahead = _directions(free.T @ free)
    count = WALKERS // (len(ahead) * max(1, (geometry.nv - rank) // 3) + 1)
    strides = max(2, min(STRIDES, count))
    q = np.broadcast_to(at, (len(ahead), len(at)))
    generic = np.array([rank_here == rank])
    reached, motions = [at[None][generic]], [np.swapaxes(right[generic, rank:], 1, 2)]
    closed = _nearly_closed(problem, at)
    for _ in range(strides):
        before = q
        guess = geometry.integrate(q, STRIDE * ahead * unit)
        q, gap = close(geometry, guess, iterations=3, rank=problem.tolerance.rank)
        if problem.rank is not None and np.any(left := gap > closed):
            # redundant conditions that hold along the motion alone open beside it: a known rank
            # leaves them out of steps
            q[left] = onto_conditions(problem, guess[left], rank)[0].q
            gap[left] = geometry.gap(q[left])
        scaled = problem.conditions(q)[1]
        distance = np.linalg.norm(geometry.difference(before, q) / unit, axis=1)
        good = (gap <= closed) & (distance < 2 * STRIDE) & ~geometry.flipped(q)
        good &= ~outside_limits(problem, q, at)
        if not np.any(good):
            break
        _, ranks, right = decomposed(problem, scaled[good])
        generic = ranks == rank
        q, ahead = q[good][generic], ahead[good][generic]
        null = np.swapaxes(right[generic, rank:], 1, 2)
        reached.append(q)
        motions.append(null)
        ahead = np.einsum("nij,nkj,nk->ni", null, null, ahead)
        ahead /= np.maximum(np.linalg.norm(ahead, axis=1, keepdims=True), NOTHING)
    return np.concatenate(reached), np.concatenate(motions)


def _least_shares(singular: Array, rank: int) -> Array:
    """The least singular value within the rank of each sample, as a share of its largest."""
    if not rank or rank > singular.shape[1]:
        return np.ones(len(singular))
    return np.asarray(singular[:, rank - 1] / largest(singular)[:, 0])


def _nearly_closed(problem: ClusterProblem, at: Array) -> float:
    """The gap up to which configurations reached from a closed one count as closed."""
    return max(1e-8 * max(1.0, problem.scale), 2.0 * float(problem.geometry.gap(at)))


def _directions(projection: Array) -> Array:
    """The distinct columns of a projection as unit vectors, each to and fro."""
    directions: list[Array] = []
    for column in projection.T:
        size = float(np.linalg.norm(column))
        if size < 1e-3:
            continue
        direction = column / size
        if all(abs(float(direction @ other)) < 1.0 - 1e-6 for other in directions):
            directions.append(direction)
    ways = np.array(directions).reshape(-1, len(projection))
    return np.concatenate([ways, -ways])


def choose_independent(
    problem: ClusterProblem, null: Array, forced: Sequence[int], pool: Sequence[int], mobility: int
) -> tuple[int, ...]:
    """``mobility`` independent columns, sorted: ``forced`` and the best of ``pool``.

    ``null`` (samples, columns, mobility) are orthonormal motions at configurations. A choice's
    score is its conditioning in all but the worst tenth of the configurations. If that is singular
    for every choice (the configurations may belong to several branches), it is that in all but a
    quarter, and so on. Of the choices within a factor of the best score the simplest is taken
    (:func:`_simplest`). Followers of mimics and couplings are chosen only if they must be.
    """
    first = [i for i in pool if not problem.columns[i].follower]
    options = [each for each in (first, list(pool)) if len(forced) + len(each) >= mobility]
    choice: tuple[int, ...] = ()
    for option, share in itertools.product(options, SHARES):
        judged = _judged(null, sorted(forced), option, mobility, share)
        choice = _simplest(problem, judged)
        if max(judged.values()) > POOR:
            break
    return choice


Judged = dict[tuple[int, ...], float]


def _scores(null: Array, choices: Sequence[tuple[int, ...]], share: float) -> Judged:
    """The conditioning of choices in all but this share of the configurations."""
    picked = null[:, np.array(choices), :]
    measure = np.asarray(np.linalg.svd(picked, compute_uv=False)[..., -1], dtype=float)
    return dict(zip(choices, quantile(measure, share).tolist(), strict=True))


def _judged(null: Array, forced: list[int], pool: list[int], mobility: int, share: float) -> Judged:
    """Choices with their scores: all, or, if they are many, those near the best by exchange."""
    missing = mobility - len(forced)
    if math.comb(len(pool), missing) * len(null) <= ATTEMPTS:
        extras = itertools.combinations(pool, missing)
        return _scores(null, [tuple(sorted([*forced, *extra])) for extra in extras], share)
    choice = _pivoted(null, forced, pool, mobility, share)
    gain = _gain(null, choice, forced, pool, share)
    for _ in range(2 * mobility):  # each exchange makes the columns span more
        out, new = max(gain, key=lambda pair: gain[pair])
        if gain[out, new] <= EQUALLY_GOOD:
            break
        choice = _exchanged(choice, out, new)
        gain = _gain(null, choice, forced, pool, share)
    near = [pair for pair, factor in gain.items() if factor * AS_GOOD**2 >= 1.0]
    return _scores(null, [choice, *(_exchanged(choice, *pair) for pair in near)], share)


def _gain(
    null: Array, choice: tuple[int, ...], forced: Sequence[int], pool: Sequence[int], share: float
) -> dict[tuple[int, int], float]:
    """Factors of the volume that a choice spans, by exchange: (column out, column in) → factor."""
    g = null @ np.linalg.pinv(null[:, list(choice), :])
    factors = quantile(np.abs(g), share)
    return {
        (out, new): float(factors[new, choice.index(out)])
        for out in choice
        if out not in forced
        for new in pool
        if new not in choice
    }


def _exchanged(choice: Sequence[int], out: int, new: int) -> tuple[int, ...]:
    return tuple(sorted([*(i for i in choice if i != out), new]))


def _pivoted(
    null: Array, forced: Sequence[int], pool: Sequence[int], mobility: int, share: float
) -> tuple[int, ...]:
    """A choice by pivoted Gram-Schmidt on the rows of the motions, all samples at once."""
    rows = np.swapaxes(null, 1, 2).copy()  # (samples, mobility, columns)
    choice: list[int] = []
    for step in range(mobility):
        size = quantile(np.linalg.norm(rows, axis=1), share)
        options = [i for i in (forced if step < len(forced) else pool) if i not in choice]
        largest = max(size[i] for i in options)
        pick = next(i for i in options if size[i] * EQUALLY_GOOD >= largest)
        choice.append(pick)
        direction = rows[:, :, pick]
        direction = direction / np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), TINY)
        rows -= direction[:, :, None] * np.einsum("sm,smn->sn", direction, rows)[:, None, :]
    return tuple(sorted(choice))


def _simplest(problem: ClusterProblem, judged: Judged) -> tuple[int, ...]:
    """The simplest of the good choices: most whole joints, nearest the base, carrying the most.

    Of several such the best scored, and of equals the first.
    """
    columns, links = problem.columns, problem.geometry.links
    depth: list[int] = []
    for link in links:
        depth.append(0 if link.parent < 0 else depth[link.parent] + 1)
    carried = [1] * len(links)
    for i in reversed(range(len(links))):
        parent = links[i].parent
        if parent >= 0:
            carried[parent] += carried[i]

    def cost(choice: tuple[int, ...]) -> tuple[int, int, int]:
        at = [columns[i].link for i in choice]
        parts = sum(columns[i].part for i in choice)
        return parts, sum(depth[i] for i in at), -sum(carried[i] for i in at)

    worth = {choice: score / AS_GOOD ** cost(choice)[0] for choice, score in judged.items()}
    best = max(worth.values())
    good = [choice for choice in judged if worth[choice] * AS_GOOD >= best]
    least = min(map(cost, good))
    good = [choice for choice in good if cost(choice) == least]
    best = max(judged[choice] for choice in good)
    return min(choice for choice in good if judged[choice] * EQUALLY_GOOD >= best)


def singular_everywhere(null: Array, choice: Sequence[int]) -> float | None:
    """A choice's largest conditioning if it is singular at all samples; None if it is not."""
    worst = float(np.max(conditioning(null, choice), initial=0.0))
    return worst if worst < 1e-6 else None


# ---- loops that stay open -----------------------------------------------------------------------


ROUGHLY_PARALLEL = 1e-3  # sine of an angle up to which axes count as parallel
ROUND = (1.0, 2.0, 5.0, 10.0)


def common_axis(problem: ClusterProblem, loop: LoopJoint) -> tuple[Array, tuple[str, ...]] | None:
    """The direction of the axes of a loop's revolute joints, if they share one, and their names.

    A unit vector in the axes of the loop's common ancestor, with the joints at their start. None if
    there is no such joint or direction, or a joint with several freedoms.
    """
    geometry = problem.geometry
    joint_of = {column.link: column.joint for column in problem.columns}
    axes: list[Array] = []
    joints: list[str] = []
    for branch in loop.branches:
        for at, n in enumerate(branch):
            joint = geometry.links[n].joint
            if isinstance(joint, Prismatic):
                continue
            if not isinstance(joint, Revolute):
                return None
            axes.append(branch_rotation(problem, branch[: at + 1])[:, joint.k])
            joints.append(joint_of[n])
    if not axes or any(np.linalg.norm(np.cross(axes[0], axis)) > ROUGHLY_PARALLEL for axis in axes):
        return None
    return axes[0], tuple(joints)


def branch_rotation(problem: ClusterProblem, branch: Sequence[int]) -> Array:
    """The rotation matrix of a branch's last body in the loop's ancestor, at the start."""
    result: Array = np.eye(3)
    for n in branch:
        step = problem.geometry.links[n].transform(problem.start.tolist())
        result = result @ np.array(step.matrix())
    return result


def describe_gaps(problem: ClusterProblem, q: Array, closed: float) -> list[str]:
    """A text for each loop or coupling with a gap above ``closed`` [m, sine] at q (nq,)."""
    values = problem.geometry.evaluate(q)[0]
    gaps, at = [], 0
    for loop in problem.geometry.loops:
        rows = values[at : at + len(loop.rows)]
        at += len(loop.rows)
        if isinstance(loop, Polynomial):
            texts = f"{float(rows[0]):.3g}" if abs(rows[0]) > closed else ""
        else:
            texts = _describe_gap(problem, loop, rows, closed)
        if texts:
            gaps.append(f"'{loop.name}' stays open by {texts}")
    for coupling, value in zip(problem.geometry.linear, values[at:], strict=True):
        if abs(value) > closed:
            gaps.append(f"'{coupling.name}' is off by {abs(float(value)):.3g}")
    return gaps


def _describe_gap(problem: ClusterProblem, loop: LoopJoint, values: Array, closed: float) -> str:
    apart = np.array(
        [x for row, x in zip(loop.rows, values, strict=True) if not isinstance(row, Perpendicular)]
    )
    turned = [x for row, x in zip(loop.rows, values, strict=True) if isinstance(row, Perpendicular)]
    texts = []
    if np.max(np.abs(apart), initial=0.0) > closed:
        if isinstance(loop.rows[0], Distance):
            length = loop.rows[0].length
            apart = np.array([math.sqrt(max(0.0, length**2 + 2 * length * apart[0])) - length])
        texts.append(length_text(float(np.linalg.norm(apart))) + _along(problem, loop, apart))
    if max(map(abs, turned), default=0.0) > closed:
        angle = math.degrees(math.asin(min(1.0, math.hypot(*turned))))
        texts.append(f"{angle:.3g}° between its frames")
    return " and ".join(texts)


def _along(problem: ClusterProblem, loop: LoopJoint, apart: Array) -> str:
    """In words, the part of a gap between two points along the axis that the joints share."""
    shared = common_axis(problem, loop)
    if len(apart) != 3 or shared is None:
        return ""
    axis, joints = shared
    size, along = float(np.linalg.norm(apart)), abs(float(apart @ axis))
    if along < 0.01 * size:
        return ""
    part = "" if along > 0.999 * size else f", of which {length_text(along)} are"
    return f"{part} along the axis of {few(joints, 8)}, which they cannot close"


def length_text(length: float) -> str:
    """A length with a unit fit for it."""
    return f"{1e3 * length:.3g} mm" if length < 0.1 else f"{length:.3g} m"


def tolerance_above(gap: float) -> float:
    """A round number twice as large as a gap, or more: 1, 2 or 5 times a power of ten."""
    enough = 1.99 * gap
    power = 10.0 ** math.floor(math.log10(enough))
    return float(f"{next(x * power for x in ROUND if x * power >= enough):.0e}")


def at_most(items: Sequence[str], count: int = 3) -> str:
    """The first few of several texts."""
    more = f"; and {len(items) - count} more" if len(items) > count else ""
    return "; ".join(items[:count]) + more
