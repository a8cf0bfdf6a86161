"""Clusters of couplings alone: gears, belts, mimic. Gauss–Jordan keeps them exact and explicit."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robomodel.errors import DescriptionError
from robomodel.model.closure import Geometry
from robomodel.model.constraints import Anchor, LinearConstraint, Link
from robomodel.model.joints import Array
from robomodel.model.question import (
    Column,
    Finding,
    Question,
    check_counts,
    condition_names,
    first_source,
    names,
)

SAME = 1.0 - 1e-9  # coefficients that differ by less are equally large


@dataclass(frozen=True, slots=True)
class Reduced:
    """Gauss–Jordan form: pivot column → (its row over the other columns, its offset)."""

    pivots: dict[int, tuple[dict[int, float], float]]
    redundant: tuple[bool, ...]


def eliminate(question: Question, never: frozenset[int], prefer: Sequence[int]) -> Reduced:
    """Solve the couplings for as many columns as they determine.

    Pivots avoid ``never`` and come from the lowest class in ``prefer`` (one number a column), then
    by size.
    """
    geometry = question.geometry
    rows: list[tuple[dict[int, float], float]] = []
    pivots: list[int] = []
    redundant = []
    for coupling, source in zip(geometry.linear, question.linear_sources, strict=True):
        row: dict[int, float] = {}
        for link, coefficient in coupling.terms:
            column = geometry.links[link].v
            row[column] = row.get(column, 0.0) + coefficient
        size = max(abs(x) for x in row.values())
        offset = coupling.offset
        for pivot, (known, value) in zip(pivots, rows, strict=True):
            factor = row.pop(pivot, 0.0)
            if factor:
                for column, x in known.items():
                    row[column] = row.get(column, 0.0) + factor * x
                offset -= factor * value
        row = {c: x for c, x in row.items() if abs(x) > 1e-12 * size}
        if not row:
            if abs(offset) > 1e-9 * max(1.0, abs(coupling.offset)):
                raise DescriptionError(
                    f"contradicts the couplings before it: it leaves 0 = {offset:.6g} "
                    f"(of {condition_names(question)}); remove one of them or mend its offset",
                    source,
                )
            redundant.append(True)
            continue
        redundant.append(False)
        candidates = [c for c in row if c not in never]
        if not candidates:
            labels = names([question.columns[c].label for c in sorted(row)])
            raise DescriptionError(
                f"relates {labels}, all of which are marked independent; "
                'mark one of them independent="false"',
                source,
            )
        lowest = min(prefer[c] for c in candidates)
        candidates = [c for c in candidates if prefer[c] == lowest]
        largest = max(abs(row[c]) for c in candidates)
        pivot = max(c for c in candidates if abs(row[c]) >= SAME * largest)
        factor = row.pop(pivot)
        solved = {c: -x / factor for c, x in row.items()}
        value = offset / factor
        for n, (known, constant) in enumerate(rows):
            share = known.pop(pivot, 0.0)
            if share:
                for c, x in solved.items():
                    known[c] = known.get(c, 0.0) + share * x
                rows[n] = (
                    {c: x for c, x in known.items() if abs(x) > 1e-13},
                    constant + share * value,
                )
        rows.append((solved, value))
        pivots.append(pivot)
    return Reduced(dict(zip(pivots, rows, strict=True)), tuple(redundant))


@dataclass(frozen=True, slots=True)
class Core:
    """A cluster with loops, without the joints that only follow the others through a coupling.

    Those take part in no loop, and each in one coupling, which gives their positions: the rotors on
    a linkage's joints, for instance. ``columns`` are the core's among the whole's; ``followers``
    (link, coupling) of the whole, each after those that it follows.
    """

    whole: Question
    question: Question
    columns: tuple[int, ...]
    followers: tuple[tuple[int, int], ...]

    @staticmethod
    def of(question: Question) -> Core:
        """The core; a follower's limits count as limits of the joint that it follows."""
        geometry, columns = question.geometry, list(question.columns)
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
        return Core(
            question,
            _part(question, columns, kept, couplings),
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
    question: Question, columns: Sequence[Column], kept: Sequence[int], couplings: Sequence[int]
) -> Question:
    """The question of some links only, with some of the couplings."""
    geometry = question.geometry
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
        question.start[link.q : link.q + link.joint.nq]
        for link in map(geometry.links.__getitem__, kept)
    ]
    return replace(
        question,
        geometry=Geometry(tuple(links), loops, linear),
        columns=tuple(replace(c, link=number[c.link]) for c in columns if c.link in number),
        linear_sources=tuple(question.linear_sources[c] for c in couplings),
        start=np.concatenate(parts),
    )


def analyse_couplings(question: Question) -> Finding:
    """Gears, belts, mimic: the constraint stays explicit."""
    columns, geometry = question.columns, question.geometry
    never = frozenset(i for i, column in enumerate(columns) if column.chosen)
    prefer = [0 if column.chosen is False else 1 if column.follower else 2 for column in columns]
    free = eliminate(question, frozenset(), prefer)
    mobility = len(columns) - len(free.pivots)
    check_counts(question, mobility, len(free.pivots))
    reduced = eliminate(question, never, prefer) if never & set(free.pivots) else free
    left_over = [i for i, c in enumerate(columns) if c.chosen is False and i not in reduced.pivots]
    if left_over:
        raise DescriptionError(
            f"the couplings {condition_names(question)} cannot determine "
            f'{names([columns[i].label for i in left_over])}, marked independent="false" '
            f"(mobility {mobility}); mark another joint of the cluster instead",
            first_source(question),
        )
    independent = tuple(i for i in range(len(columns)) if i not in reduced.pivots)
    matrix, positions, offsets = [], [], []
    nq = 0
    start = {}
    for i in independent:
        link = geometry.links[columns[i].link]
        if link.v == i:
            start[columns[i].link] = nq
            nq += link.joint.nq
    for n, link in enumerate(geometry.links):
        for i in range(link.v, link.v + link.joint.nv):
            known = reduced.pivots[i][0] if i in reduced.pivots else {i: 1.0}
            matrix.append(tuple(known.get(c, 0.0) for c in independent))
        if n in start:
            for j in range(link.joint.nq):
                positions.append(tuple(1.0 if c == start[n] + j else 0.0 for c in range(nq)))
                offsets.append(0.0)
        else:
            known, offset = reduced.pivots[link.v]
            at = {start[columns[c].link]: x for c, x in known.items()}
            positions.append(tuple(at.get(c, 0.0) for c in range(nq)))
            offsets.append(offset)
    constraint = LinearConstraint(tuple(matrix), tuple(positions), tuple(offsets))
    neutral = _explicit_neutral(question, constraint, start)
    notes = []
    if not any(column.chosen is not None for column in columns):
        labels = names([columns[i].label for i in independent])
        notes.append(
            f"cluster '{question.name}': {labels} taken as independent, as the file does not say"
        )
    return Finding(constraint, independent, neutral, (), reduced.redundant, (), tuple(notes), ())


def _explicit_neutral(
    question: Question, constraint: LinearConstraint, start: dict[int, int]
) -> Array:
    """The cluster's q at the start, within the independent and, where one rules, other limits."""
    geometry = question.geometry
    q = np.zeros(len(constraint.position_matrix[0]))
    for link, at in start.items():
        joint = geometry.links[link].joint
        q[at : at + joint.nq] = question.start[geometry.links[link].q :][: joint.nq]
    at_of = {at: link for link, at in start.items()}
    for at, link in at_of.items():
        if geometry.links[link].joint.nq != 1:
            continue
        low, high = -math.inf, math.inf
        for n, other in enumerate(geometry.links):
            if other.joint.nq != 1:
                continue
            row = constraint.position_matrix[other.q]
            used = [c for c, x in enumerate(row) if x]
            if used != [at]:
                continue
            offset = constraint.offset[other.q]
            ends = [(x - offset) / row[at] for x in question.columns[geometry.links[n].v].limits]
            low, high = max(low, min(ends)), min(high, max(ends))
        if low <= high:
            q[at] = min(max(q[at], low), high)
    return q
