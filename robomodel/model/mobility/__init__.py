"""The problem that a constrained cluster poses, its core without followers, its solution."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robomodel.errors import DescriptionError, Source, few
from robomodel.model.closure import Geometry
from robomodel.model.constraints import (
    OUTSIDE,
    BodyAnchor,
    Constraint,
    Link,
    Perpendicular,
    Polynomial,
)
from robomodel.model.joints import Array
from robomodel.tolerances import CLOSED


@dataclass(frozen=True, slots=True)
class SpanningColumn:
    """One spanning velocity of a cluster and what the file says of it.

    ``chosen`` True and False are the file's (or the caller's) ``independent``; None leaves it open.
    ``follower``: the joint is the dependent one of a mimic or a coupling, by preference. ``part``:
    it is one of several velocities between two bodies that weigh something.
    """

    label: str
    joint: str
    link: int
    chosen: bool | None
    follower: bool
    part: bool
    length: bool  # metres rather than radians
    limits: tuple[float, float]


def column_units(columns: Sequence[SpanningColumn], scale: float) -> Array:
    """Column scaling that makes metres and radians comparable."""
    return np.array([scale if column.length else 1.0 for column in columns])


def column_limits(columns: Sequence[SpanningColumn]) -> tuple[Array, Array]:
    """The lower and the upper limits of columns."""
    low, high = np.array([column.limits for column in columns]).reshape(-1, 2).T
    return low, high


@dataclass(frozen=True, slots=True)
class ClosureTolerance:
    """How exactly loops must close.

    ``gap``: as far as their ends may stay apart [m, or sine of an angle]; ``rank``: singular values
    of the conditions' Jacobian below this share of the largest count as zero. ``stated``: by
    the file or the caller.
    """

    gap: float
    rank: float
    stated: bool = False

    @staticmethod
    def of(tolerances: Sequence[float | None], scale: float) -> ClosureTolerance:
        """The largest of a cluster's loops [m, rad]; else what rounding in a file explains."""
        stated = [tolerance for tolerance in tolerances if tolerance is not None]
        if not stated:
            return ClosureTolerance(1e-4 * scale, 1e-5)
        largest = max(stated)
        return ClosureTolerance(max(largest, CLOSED), max(largest, 1e-9), stated=True)


@dataclass(frozen=True, slots=True)
class ClusterProblem:
    """A cluster's geometry, the names in it and where they stand."""

    name: str
    geometry: Geometry
    columns: tuple[SpanningColumn, ...]
    loop_sources: tuple[Source, ...]
    linear_sources: tuple[Source, ...]
    start: Array  # spanning positions from which closing starts
    tolerance: ClosureTolerance
    rank: int | None = None  # of the core's conditions, where walks decided it

    @property
    def scale(self) -> float:
        """A characteristic length."""
        return self.geometry.scale

    @property
    def unit(self) -> Array:
        """Column scaling that makes metres and radians comparable."""
        return column_units(self.columns, self.scale)

    @property
    def row_unit(self) -> Array:
        """Row scaling: gaps in units of the cluster's length (angles' sines as they are)."""
        units = []
        for loop in self.geometry.loops:
            for row in loop.rows:
                if isinstance(row, Polynomial):
                    column = self.geometry.links[row.joint].v
                    angular = not self.columns[column].length
                else:
                    angular = isinstance(row, Perpendicular)
                units.append(1.0 if angular else 1.0 / self.scale)
        units += [1.0 / math.hypot(*(x for _, x in c.terms)) for c in self.geometry.linear]
        return np.array(units)

    @property
    def limits(self) -> tuple[Array, Array]:
        """The lower and the upper limits of the columns."""
        return column_limits(self.columns)

    def with_decision(self, rank: int, left: float, exact: bool) -> ClusterProblem:
        """The problem with the rank that walks decided, which leave this open [rad, sizes]."""
        if exact or left <= CLOSED:
            return replace(self, rank=rank)
        gap, share = (
            max(self.tolerance.gap, 3 * left * self.scale),
            max(self.tolerance.rank, 3 * left),
        )
        return replace(self, rank=rank, tolerance=replace(self.tolerance, gap=gap, rank=share))

    def conditions(self, q: Array) -> tuple[Array, Array]:
        """Values (..., rows) and Jacobians (..., rows, columns), in comparable units."""
        values, jacobian, _ = self.geometry.evaluate(q)
        return values * self.row_unit, jacobian * self.unit * self.row_unit[:, None]


@dataclass(frozen=True, slots=True)
class ClusterSolution:
    """The constraint, the independent columns, a closed regular configuration.

    ``slack`` [m, or sine of an angle]: how far conditions outside of ``closing_rows`` may be open.
    """

    constraint: Constraint
    independent: tuple[int, ...]
    neutral: Array
    loop_ranks: tuple[int, ...]
    redundant_linear: tuple[bool, ...]
    closing_rows: tuple[int, ...]
    notes: tuple[str, ...] = ()
    suspicions: tuple[tuple[str, Source], ...] = ()
    slack: float = 0.0
    pivots: tuple[int | None, ...] = ()  # of the couplings; see robomodel.model.couplings


def condition_names(problem: ClusterProblem) -> str:
    """The names of the cluster's loops and couplings."""
    return few(problem.geometry.names, 8)


def first_source(problem: ClusterProblem) -> Source:
    """Where the first of the cluster's loops or couplings stands."""
    return (*problem.loop_sources, *problem.linear_sources)[0]


class ClusterError(DescriptionError):
    """A cluster whose loops close nowhere, or leave no motion: what it is, and what to do."""

    def __init__(self, summary: str, remedy: str, source: Source) -> None:
        super().__init__(f"{summary}; {remedy}", source)
        self.summary = summary

    def __reduce__(self) -> tuple[type[DescriptionError], tuple[str, Source]]:
        return DescriptionError, (self.message, self.source)


class RigidError(ClusterError):
    """A cluster whose loops leave no motion; where its joints stand, by name, and its loops."""

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
    """Compare the marks of independence with the mobility.

    ``closed``: spanning positions at which the loops close, for what a cluster without mobility is;
    ``advice``: what may give it some.
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
    """A cluster with loops, without the joints that only follow the others through a coupling.

    Those take part in no loop, and each in one coupling, which gives their positions: the rotors on
    a linkage's joints, for instance. ``columns`` are the core's among the whole's; ``followers``
    (link, coupling) of the whole, each after those that it follows.
    """

    whole: ClusterProblem
    problem: ClusterProblem
    columns: tuple[int, ...]
    followers: tuple[tuple[int, int], ...]

    @staticmethod
    def of(problem: ClusterProblem) -> ReducedProblem:
        """The core; a follower's limits count as limits of the joint that it follows."""
        geometry, columns = problem.geometry, list(problem.columns)
        at = [link.v for link in geometry.links]
        looped = geometry.looped_bodies
        couplings = list(range(len(geometry.linear)))
        followers: list[tuple[int, int]] = []

        def follows(link: int, coupling: int) -> bool:
            """Marked so, or by preference; but none is preferred to one that may not lead."""
            column = columns[at[link]]
            led = all(
                columns[at[i]].chosen is not False for i, _ in geometry.linear[coupling].terms
            )
            return column.chosen is False or (column.chosen is None and column.follower and led)

        while True:
            used = Counter(link for c in couplings for link, _ in geometry.linear[c].terms)
            follower = next(
                (
                    (link, c)
                    for c in couplings
                    for link, _ in geometry.linear[c].terms
                    if used[link] == 1 and link not in looped and follows(link, c)
                ),
                None,
            )
            if follower is None:
                break
            link, coupling = follower
            couplings.remove(coupling)
            followers.append(follower)
            terms = dict(geometry.linear[coupling].terms)
            factor_of = terms.pop(link)
            if len(terms) == 1:
                ((leader, factor),) = terms.items()
                offset, low, high = geometry.linear[coupling].offset, *columns[at[leader]].limits
                ends = [(offset - factor_of * x) / factor for x in columns[at[link]].limits]
                low, high = max(low, min(ends)), min(high, max(ends))
                if low <= high:
                    columns[at[leader]] = replace(columns[at[leader]], limits=(low, high))
        gone = {link for link, _ in followers}
        core = [i for i in range(len(geometry.links)) if i not in gone]
        return ReducedProblem(
            problem,
            _part(problem, columns, core, couplings),
            tuple(i for i, column in enumerate(columns) if column.link not in gone),
            tuple(reversed(followers)),
        )

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
        """Of conditions on the core (..., its columns): over all columns."""
        result = np.zeros((*inner.shape[:-1], len(self.whole.columns)))
        result[..., list(self.columns)] = inner
        return result

    def redundant(self, inner: Sequence[bool]) -> tuple[bool, ...]:
        """Which of all couplings are redundant, from which of the core's are."""
        gone, of_core = {coupling for _, coupling in self.followers}, iter(inner)
        count = len(self.whole.geometry.linear)
        return tuple(c not in gone and next(of_core) for c in range(count))


def _part(
    problem: ClusterProblem,
    columns: Sequence[SpanningColumn],
    core: Sequence[int],
    couplings: Sequence[int],
) -> ClusterProblem:
    """The problem of some links only, with some of the couplings."""
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
    parts = [problem.start[link.positions] for link in map(geometry.links.__getitem__, core)]
    return replace(
        problem,
        geometry=Geometry(tuple(links), (*loops, *polynomials), linear),
        columns=tuple(replace(c, link=number[c.link]) for c in columns if c.link in number),
        linear_sources=tuple(problem.linear_sources[c] for c in couplings),
        start=np.concatenate(parts),
    )
