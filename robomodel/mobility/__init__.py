"""Mobility of a constrained cluster: the problem, its core without followers, its solution.

``analysis`` solves the problem: it takes closed configurations and the generic rank of K there from
``exploration``; where a file's rounding leaves the rank in doubt, ``decision`` decides, and
``mending`` moves the file's frames.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.errors import DescriptionError, Issue, Source, few
from robomodel.mechanism.closure import COUNTS, Geometry
from robomodel.mechanism.constraints import OUTSIDE, BodyAnchor, Constraint, Link
from robomodel.tolerances import CLOSED, SINGULAR, WITHIN


@dataclass(frozen=True, slots=True)
class SpanningColumn:
    """One spanning velocity of a cluster, and what the file says of it.

    ``chosen``: the file's (or the caller's) ``independent``; None leaves it open. ``follower``: a
    mimic or a coupling names the joint as its dependent one. ``part``: it is one of several
    velocities between two bodies with mass. ``placed``: the file has its initial position.
    """

    label: str
    joint: str
    link: int
    chosen: bool | None
    follower: bool
    part: bool
    length: bool  # metres rather than radians
    limits: tuple[float, float]
    placed: bool = False


def column_limits(columns: Sequence[SpanningColumn]) -> tuple[Array, Array]:
    """The lower and the upper limits of columns."""
    low, high = np.array([column.limits for column in columns]).reshape(-1, 2).T
    return low, high


@dataclass(frozen=True, slots=True)
class ClosureTolerance:
    """How exactly loops must close.

    ``gap`` [m, or sine of an angle]: the ends may stay so far apart. ``rank``: singular values of K
    below this share of the largest count as zero. ``stated``: the file or the caller gives them.
    """

    gap: float
    rank: float
    stated: bool = False

    @staticmethod
    def of(tolerances: Sequence[float | None], scale: float) -> ClosureTolerance:
        """The largest tolerance of a cluster's loops [m, rad]; without any, a rounded file's."""
        stated = [tolerance for tolerance in tolerances if tolerance is not None]
        if not stated:
            return ClosureTolerance(1e-4 * scale, 1e-5)
        largest = max(stated)
        return ClosureTolerance(max(largest, CLOSED), max(largest, SINGULAR), stated=True)


@dataclass(frozen=True, slots=True)
class ClusterProblem:
    """A cluster's geometry, with names, and where the file has them, for messages."""

    name: str
    geometry: Geometry
    columns: tuple[SpanningColumn, ...]
    loop_sources: tuple[Source, ...]
    linear_sources: tuple[Source, ...]
    start: Array  # spanning positions from which closing starts
    tolerance: ClosureTolerance
    rank: int | None = None  # of the core's conditions, where a Decision gives it
    closed: bool = False  # whether the start is the neutral configuration already

    @property
    def scale(self) -> float:
        """A characteristic length."""
        return self.geometry.scale

    @property
    def unit(self) -> Array:
        """Units of the columns, in which metres and radians are comparable."""
        return self.geometry.unit

    @property
    def row_unit(self) -> Array:
        """Factors of the rows: gaps become shares of the cluster's length, sines stay."""
        return self.geometry.row_unit

    @property
    def limits(self) -> tuple[Array, Array]:
        """The lower and the upper limits of the columns."""
        return column_limits(self.columns)

    def with_decision(self, rank: int, gap: float, exact: bool) -> ClusterProblem:
        """The problem with a decided rank, with which conditions stay open by ``gap`` [rad, sizes].

        ``exact``: the frames are moved so that they do not.
        """
        if exact or gap <= CLOSED:
            return replace(self, rank=rank)
        tolerance = replace(
            self.tolerance,
            gap=max(self.tolerance.gap, 3 * gap * self.scale),
            rank=max(self.tolerance.rank, 3 * gap),
        )
        return replace(self, rank=rank, tolerance=tolerance)

    def conditions(self, q: Array) -> tuple[Array, Array]:
        """Values (..., rows) and Jacobians (..., rows, columns), in comparable units."""
        values, jacobian, _ = self.geometry.evaluate(q)
        return values * self.row_unit, jacobian * self.unit * self.row_unit[:, None]


@dataclass(frozen=True, slots=True)
class ClusterSolution:
    """The constraint, the independent columns, and a closed regular configuration, ``neutral``.

    ``loop_ranks``: the rank that each loop adds to the couplings and the loops before it.
    ``redundant_linear``: the couplings that repeat those before them. ``slack`` [m, or sine of an
    angle]: conditions outside of ``closing_rows`` may be open by so much.
    """

    constraint: Constraint
    independent: tuple[int, ...]
    neutral: Array
    loop_ranks: tuple[int, ...]
    redundant_linear: tuple[bool, ...]
    closing_rows: tuple[int, ...]
    notes: tuple[str, ...] = ()
    suspicions: tuple[Issue, ...] = ()
    slack: float = 0.0
    pivots: tuple[int | None, ...] = ()  # of the couplings; see robomodel.mechanism.couplings


def condition_names(problem: ClusterProblem) -> str:
    """The names of the cluster's loops and couplings."""
    return few(problem.geometry.names, 8)


def first_source(problem: ClusterProblem) -> Source:
    """Where the first of the cluster's loops or couplings stands."""
    return (*problem.loop_sources, *problem.linear_sources)[0]


def decomposed(problem: ClusterProblem, jacobian: Array) -> tuple[Array, Array, Array]:
    """Singular values, ranks and right singular vectors of the conditions' Jacobians."""
    some = np.max(np.abs(jacobian), axis=(0, 2), initial=0.0) > 0.0
    few, columns = int(np.sum(some)), jacobian.shape[2]
    _, singular, right = np.linalg.svd(jacobian[:, some], full_matrices=few < columns)
    missing = min(jacobian.shape[1], columns) - singular.shape[1]
    singular = np.concatenate([singular, np.zeros((len(jacobian), missing))], axis=1)
    return singular, np.sum(singular > problem.tolerance.rank * largest(singular), axis=1), right


def largest(singular: Array) -> Array:
    """The largest singular value (..., 1) of conditions, or a small one of conditions that count.

    Where nothing opens the loops, as in a door on two hinges, the largest itself is rounding.
    """
    result: Array = np.maximum(singular[..., :1], COUNTS)
    return result


def outside_limits(problem: ClusterProblem, q: Array, at: Array | None = None) -> Mask:
    """Which configurations (n, nq) are beyond a joint limit, and further beyond it than ``at``."""
    geometry, (low, high) = problem.geometry, problem.limits
    zero = geometry.zero()
    if at is not None:
        here = geometry.difference(zero, at)
        low, high = np.minimum(low, here) - 1e-6, np.maximum(high, here) + 1e-6
    there = geometry.difference(np.broadcast_to(zero, q.shape), q)
    outside: Mask = np.any((there < low - WITHIN) | (there > high + WITHIN), axis=1)
    return outside


class ClusterError(DescriptionError):
    """A cluster whose loops close nowhere, or leave no motion: a summary and a remedy."""

    def __init__(self, summary: str, remedy: str, source: Source) -> None:
        super().__init__(f"{summary}; {remedy}", source)
        self.summary = summary

    def __reduce__(self) -> tuple[type[DescriptionError], tuple[str, Source]]:
        return DescriptionError, (self.message, self.source)


class RigidError(ClusterError):
    """A cluster without motion; ``positions`` of its joints by name, and its conditions' names."""

    def __init__(
        self,
        summary: str,
        remedy: str,
        source: Source,
        positions: Mapping[str, tuple[float, ...]] | None,
        conditions: frozenset[str],
    ) -> None:
        super().__init__(summary, remedy, source)
        self.positions = positions
        self.conditions = conditions


def check_counts(
    problem: ClusterProblem, mobility: int, rank: int, closed: Array | None = None, advice: str = ""
) -> None:
    """Raises an error if the mobility is 0, or the file marks too many or too few joints for it.

    ``closed``: spanning positions at which the loops close, for :class:`RigidError`; ``advice``:
    words for its remedy.
    """
    columns = problem.columns
    marked = [c.label for c in columns if c.chosen]
    excluded = [c.label for c in columns if c.chosen is False]
    joints = list(dict.fromkeys(c.joint for c in columns))
    count = (
        f"{len(columns)} joint velocities ({few(joints, 8)}) less {rank} independent conditions "
        f"({condition_names(problem)})"
    )
    if mobility == 0:
        geometry = problem.geometry
        stand: dict[str, tuple[float, ...]] | None = None
        if closed is not None:
            joint_of = {column.link: column.joint for column in columns}
            stand = {
                joint_of[i]: tuple(closed[link.positions].tolist())
                for i, link in enumerate(geometry.links)
            }
        raise RigidError(
            f"leaves no motion: mobility 0 = {count}",
            f"free a joint, remove a loop or coupling, or make these joints fixed{advice}",
            first_source(problem),
            stand,
            frozenset(geometry.names),
        )
    if len(marked) > mobility:
        raise DescriptionError(
            f"has mobility {mobility} = {count}, but {len(marked)} are marked independent: "
            f'{few(marked, 8)}; mark {len(marked) - mobility} of them independent="false"',
            first_source(problem),
        )
    if len(columns) - len(excluded) < mobility:
        raise DescriptionError(
            f"has mobility {mobility} = {count}, but with {few(excluded, 8)} marked "
            f'independent="false" only {len(columns) - len(excluded)} may be independent; '
            f"unmark {mobility - len(columns) + len(excluded)} of them",
            first_source(problem),
        )


# ---- joints that couplings alone determine ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReducedProblem:
    """The core of a cluster with loops: without joints that only follow others by a coupling.

    A follower takes part in no loop and in one coupling, which gives its position, as the rotor of
    a linkage's joint does, and where that is, whichever joints are independent. ``columns`` are
    those of the core among the whole's. ``followers`` are pairs (link, coupling) of the whole, each
    after those that it follows. ``candidates``: the core with the followers that may be
    independent, columns ``among`` the whole's; ``rates``: of these by those of the core, in
    comparable units.
    """

    whole: ClusterProblem
    problem: ClusterProblem
    columns: tuple[int, ...]
    followers: tuple[tuple[int, int], ...]
    candidates: ClusterProblem
    among: tuple[int, ...]
    rates: Array

    @staticmethod
    def of(problem: ClusterProblem) -> ReducedProblem:
        """The core; a follower's limits count as limits of the joint that it follows.

        Nor is its start lost, if it is the only one that the file gives.
        """
        geometry, columns = problem.geometry, list(problem.columns)
        start = problem.start.copy()
        at = [link.v for link in geometry.links]
        looped = geometry.looped_bodies
        couplings = list(range(len(geometry.linear)))
        followers: list[tuple[int, int]] = []

        def follows(link: int, coupling: int) -> bool:
            """True if the file marks the link so, or names it so and lets all others lead."""
            column = columns[at[link]]
            led = all(
                columns[at[i]].chosen is not False for i, _ in geometry.linear[coupling].terms
            )
            return column.chosen is False or (column.chosen is None and column.follower and led)

        def may_follow(link: int, coupling: int) -> bool:
            """True if it is where the others are: without limits, or of the only other's."""
            unlimited = not np.any(np.isfinite(columns[at[link]].limits))
            return unlimited or len(geometry.linear[coupling].terms) == 2

        def left() -> list[int]:
            gone = {link for link, _ in followers}
            return [i for i in range(len(geometry.links)) if i not in gone]

        candidates: ClusterProblem | None = None
        among = tuple[int, ...]()
        while True:
            used = Counter(link for c in couplings for link, _ in geometry.linear[c].terms)
            ends = [
                (link, c)
                for c in couplings
                for link, _ in geometry.linear[c].terms
                if used[link] == 1 and link not in looped
            ]
            some = [end for end in ends if follows(*end)] if candidates is None else []
            if not some:
                if candidates is None:
                    candidates = _part(problem, columns, left(), couplings, start)
                    among = _columns_of(columns, left())
                some = [end for end in ends if may_follow(*end)]
                some = [each for each in some if columns[at[each[0]]].follower] or some
            if not some:
                break
            link, coupling = some[0]
            couplings.remove(coupling)
            followers.append(some[0])
            terms = dict(geometry.linear[coupling].terms)
            factor_of = terms.pop(link)
            if len(terms) == 1:
                ((leader, factor),) = terms.items()
                offset, low, high = geometry.linear[coupling].offset, *columns[at[leader]].limits
                placed = columns[at[link]].placed and not columns[at[leader]].placed
                if placed and not problem.closed:
                    own, its = geometry.links[link].q, geometry.links[leader].q
                    start[its] = (offset - factor_of * start[own]) / factor
                    columns[at[leader]] = replace(columns[at[leader]], placed=True)
                span = [(offset - factor_of * x) / factor for x in columns[at[link]].limits]
                low, high = max(low, min(span)), min(high, max(span))
                if low <= high:
                    columns[at[leader]] = replace(columns[at[leader]], limits=(low, high))
        assert candidates is not None
        core = _part(problem, columns, left(), couplings, start)
        kept, last = _columns_of(columns, left()), tuple(reversed(followers))
        rates = np.zeros((len(columns), len(kept)))
        rates[list(kept)] = np.diag(core.unit)
        for n, coupling in last:
            terms = dict(geometry.linear[coupling].terms)
            factor = terms.pop(n)
            rates[at[n]] = -sum((k * rates[at[i]] for i, k in terms.items()), np.zeros(len(kept)))
            rates[at[n]] /= factor
        rates = rates[list(among)] / candidates.unit[:, None]
        return ReducedProblem(problem, core, kept, last, candidates, among, rates)

    def motions(self, null: Array) -> Array:
        """Orthonormal motions (..., candidates' columns, n) from those of the core."""
        if self.among == self.columns:
            return null
        return np.asarray(np.linalg.qr(self.rates @ null)[0])

    def positions(self, q: Array) -> Array:
        """The whole's spanning positions (nq,) from the core's."""
        geometry = self.whole.geometry
        gone = {link for link, _ in self.followers}
        result = np.zeros(geometry.nq)
        at = 0
        for n, link in enumerate(geometry.links):
            if n not in gone:
                result[link.positions] = q[at : at + link.joint.nq]
                at += link.joint.nq
        for n, coupling in self.followers:
            terms = dict(geometry.linear[coupling].terms)
            factor = terms.pop(n)
            others = sum(k * result[geometry.links[i].q] for i, k in terms.items())
            result[geometry.links[n].q] = (geometry.linear[coupling].offset - others) / factor
        return result

    def jacobian(self, inner: Array) -> Array:
        """The Jacobian over all columns of conditions on the core (..., its columns)."""
        result = np.zeros((*inner.shape[:-1], len(self.whole.columns)))
        result[..., list(self.columns)] = inner
        return result

    def redundant(self, inner: Sequence[bool]) -> tuple[bool, ...]:
        """Which couplings of the whole are redundant, from which of the core's are."""
        gone, of_core = {coupling for _, coupling in self.followers}, iter(inner)
        count = len(self.whole.geometry.linear)
        return tuple(c not in gone and next(of_core) for c in range(count))


def _columns_of(columns: Sequence[SpanningColumn], links: Sequence[int]) -> tuple[int, ...]:
    """The columns of links."""
    return tuple(i for i, column in enumerate(columns) if column.link in links)


def _part(
    problem: ClusterProblem,
    columns: Sequence[SpanningColumn],
    core: Sequence[int],
    couplings: Sequence[int],
    start: Array,
) -> ClusterProblem:
    """The problem of the ``core`` links, with these couplings, from a start of the whole's."""
    geometry = problem.geometry
    number = {link: n for n, link in enumerate(core)}
    links: list[Link] = []
    nq = nv = 0
    for i in core:
        link = geometry.links[i]
        links.append(replace(link, parent=number.get(link.parent, OUTSIDE), q=nq, v=nv))
        nq, nv = nq + link.joint.nq, nv + link.joint.nv

    def anchored(anchor: BodyAnchor) -> BodyAnchor:
        return replace(anchor, body=number.get(anchor.body, OUTSIDE))

    def renumbered(branch: Sequence[int]) -> tuple[int, ...]:
        return tuple(number[i] for i in branch)

    loops = tuple(
        replace(
            loop,
            predecessor=anchored(loop.predecessor),
            successor=anchored(loop.successor),
            branches=(renumbered(loop.branches[0]), renumbered(loop.branches[1])),
        )
        for loop in geometry.loop_joints
    )
    polynomials = tuple(
        replace(each, joint=number[each.joint], of=number[each.of]) for each in geometry.polynomials
    )
    linear = tuple(
        replace(each, terms=tuple((number[i], k) for i, k in each.terms))
        for each in (geometry.linear[c] for c in couplings)
    )
    parts = [start[link.positions] for link in map(geometry.links.__getitem__, core)]
    return replace(
        problem,
        geometry=Geometry(tuple(links), (*loops, *polynomials), linear),
        columns=tuple(replace(c, link=number[c.link]) for c in columns if c.link in number),
        linear_sources=tuple(problem.linear_sources[c] for c in couplings),
        start=np.concatenate(parts),
    )
