"""Clusters with loops without the joints that only follow others through a coupling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robomodel.model.closure import Geometry
from robomodel.model.clusters.problem import ClusterProblem, Column
from robomodel.model.constraints.links import Link
from robomodel.model.constraints.rows import Anchor
from robomodel.model.joints import Array


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
        looped = {i for loop in geometry.loops for branch in loop.branches for i in branch}
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
            found = next(
                (
                    (link, c)
                    for c in couplings
                    for link, _ in geometry.linear[c].terms
                    if used[link] == 1 and link not in looped and follows(link, c)
                ),
                None,
            )
            if found is None:
                break
            link, coupling = found
            couplings.remove(coupling)
            followers.append(found)
            terms = dict(geometry.linear[coupling].terms)
            own = terms.pop(link)
            if len(terms) == 1:
                ((leader, factor),) = terms.items()
                offset, low, high = geometry.linear[coupling].offset, *columns[at[leader]].limits
                ends = [(offset - own * x) / factor for x in columns[at[link]].limits]
                low, high = max(low, min(ends)), min(high, max(ends))
                if low <= high:
                    columns[at[leader]] = replace(columns[at[leader]], limits=(low, high))
        gone = {link for link, _ in followers}
        kept = [i for i in range(len(geometry.links)) if i not in gone]
        return ReducedProblem(
            problem,
            _part(problem, columns, kept, couplings),
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
                result[link.q : link.q + link.joint.nq] = q[at : at + link.joint.nq]
                at += link.joint.nq
        for n, coupling in self.followers:
            terms = dict(geometry.linear[coupling].terms)
            own = terms.pop(n)
            others = sum(k * result[geometry.links[i].q] for i, k in terms.items())
            result[geometry.links[n].q] = (geometry.linear[coupling].offset - others) / own
        return result

    def jacobian(self, inner: Array) -> Array:
        """Of conditions on the core (..., its columns): over all columns."""
        result = np.zeros((*inner.shape[:-1], len(self.whole.columns)))
        result[..., list(self.columns)] = inner
        return result

    def redundant(self, inner: Sequence[bool]) -> tuple[bool, ...]:
        """Which of all couplings are redundant, from which of the core's are."""
        gone, rest = {coupling for _, coupling in self.followers}, iter(inner)
        return tuple(c not in gone and next(rest) for c in range(len(self.whole.geometry.linear)))


def _part(
    problem: ClusterProblem,
    columns: Sequence[Column],
    kept: Sequence[int],
    couplings: Sequence[int],
) -> ClusterProblem:
    """The problem of some links only, with some of the couplings."""
    geometry = problem.geometry
    number = {link: n for n, link in enumerate(kept)}
    links: list[Link] = []
    nq = nv = 0
    for i in kept:
        link = geometry.links[i]
        parent = None if link.parent is None else number.get(link.parent)
        links.append(replace(link, parent=parent, q=nq, v=nv))
        nq, nv = nq + link.joint.nq, nv + link.joint.nv

    def anchored(anchor: Anchor) -> Anchor:
        return replace(anchor, body=None if anchor.body is None else number[anchor.body])

    def renumbered(branch: Sequence[int]) -> tuple[int, ...]:
        return tuple(number[i] for i in branch)

    loops = tuple(
        replace(
            loop,
            predecessor=anchored(loop.predecessor),
            successor=anchored(loop.successor),
            branches=(renumbered(loop.branches[0]), renumbered(loop.branches[1])),
        )
        for loop in geometry.loops
    )
    linear = tuple(
        replace(each, terms=tuple((number[i], k) for i, k in each.terms))
        for each in (geometry.linear[c] for c in couplings)
    )
    parts = [
        problem.start[link.q : link.q + link.joint.nq]
        for link in map(geometry.links.__getitem__, kept)
    ]
    return replace(
        problem,
        geometry=Geometry(tuple(links), loops, linear),
        columns=tuple(replace(c, link=number[c.link]) for c in columns if c.link in number),
        linear_sources=tuple(problem.linear_sources[c] for c in couplings),
        start=np.concatenate(parts),
    )
