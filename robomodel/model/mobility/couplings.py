"""Clusters of couplings alone: gears, belts, mimic. Gauss–Jordan keeps them exact and explicit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.errors import DescriptionError, few
from robomodel.model.constraints.velocities import LinearConstraint
from robomodel.model.joints import Array
from robomodel.model.mobility.problem import (
    ClusterProblem,
    ClusterSolution,
    check_counts,
    condition_names,
    first_source,
)

SAME = 1.0 - 1e-9  # coefficients that differ by less are equally large


@dataclass(frozen=True, slots=True)
class Elimination:
    """Gauss–Jordan form: pivot column → (its row over the other columns, its offset)."""

    pivots: dict[int, tuple[dict[int, float], float]]
    redundant: tuple[bool, ...]


def eliminate(problem: ClusterProblem, never: frozenset[int], prefer: Sequence[int]) -> Elimination:
    """Solve the couplings for as many columns as they determine.

    Pivots avoid ``never`` and come from the lowest class in ``prefer`` (one number a column), then
    by size.
    """
    geometry = problem.geometry
    rows: list[tuple[dict[int, float], float]] = []
    pivots: list[int] = []
    redundant = []
    for coupling, source in zip(geometry.linear, problem.linear_sources, strict=True):
        row: dict[int, float] = {}
        for link, coefficient in coupling.terms:
            column = geometry.links[link].v
            row[column] = row.get(column, 0.0) + coefficient
        size = max(abs(x) for x in row.values())
        offset = coupling.offset
        for pivot, (solved, value) in zip(pivots, rows, strict=True):
            factor = row.pop(pivot, 0.0)
            if factor:
                for column, x in solved.items():
                    row[column] = row.get(column, 0.0) + factor * x
                offset -= factor * value
        row = {c: x for c, x in row.items() if abs(x) > 1e-12 * size}
        if not row:
            if abs(offset) > 1e-9 * max(1.0, abs(coupling.offset)):
                raise DescriptionError(
                    f"contradicts the couplings before it: it leaves 0 = {offset:.6g} "
                    f"(of {condition_names(problem)}); remove one of them or mend its offset",
                    source,
                )
            redundant.append(True)
            continue
        redundant.append(False)
        candidates = [c for c in row if c not in never]
        if not candidates:
            labels = few([problem.columns[c].label for c in sorted(row)], 8)
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
        for n, (other, constant) in enumerate(rows):
            share = other.pop(pivot, 0.0)
            if share:
                for c, x in solved.items():
                    other[c] = other.get(c, 0.0) + share * x
                rows[n] = (
                    {c: x for c, x in other.items() if abs(x) > 1e-13},
                    constant + share * value,
                )
        rows.append((solved, value))
        pivots.append(pivot)
    return Elimination(dict(zip(pivots, rows, strict=True)), tuple(redundant))


def analyse_couplings(problem: ClusterProblem) -> ClusterSolution:
    """Gears, belts, mimic: the constraint stays explicit."""
    columns, geometry = problem.columns, problem.geometry
    never = frozenset(i for i, column in enumerate(columns) if column.chosen)
    prefer = [0 if column.chosen is False else 1 if column.follower else 2 for column in columns]
    free = eliminate(problem, frozenset(), prefer)
    mobility = len(columns) - len(free.pivots)
    check_counts(problem, mobility, len(free.pivots))
    reduced = eliminate(problem, never, prefer) if never & set(free.pivots) else free
    left_over = [i for i, c in enumerate(columns) if c.chosen is False and i not in reduced.pivots]
    if left_over:
        raise DescriptionError(
            f"the couplings {condition_names(problem)} cannot determine "
            f'{few([columns[i].label for i in left_over], 8)}, marked independent="false" '
            f"(mobility {mobility}); mark another joint of the cluster instead",
            first_source(problem),
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
            terms = reduced.pivots[i][0] if i in reduced.pivots else {i: 1.0}
            matrix.append(tuple(terms.get(c, 0.0) for c in independent))
        if n in start:
            for j in range(link.joint.nq):
                positions.append(tuple(1.0 if c == start[n] + j else 0.0 for c in range(nq)))
                offsets.append(0.0)
        else:
            terms, offset = reduced.pivots[link.v]
            at = {start[columns[c].link]: x for c, x in terms.items()}
            positions.append(tuple(at.get(c, 0.0) for c in range(nq)))
            offsets.append(offset)
    constraint = LinearConstraint(tuple(matrix), tuple(positions), tuple(offsets))
    neutral = _explicit_neutral(problem, constraint, start)
    notes = []
    if not any(column.chosen is not None for column in columns):
        labels = few([columns[i].label for i in independent], 8)
        notes.append(
            f"cluster '{problem.name}': {labels} taken as independent, as the file does not say"
        )
    return ClusterSolution(
        constraint, independent, neutral, (), reduced.redundant, (), tuple(notes), ()
    )


def _explicit_neutral(
    problem: ClusterProblem, constraint: LinearConstraint, start: dict[int, int]
) -> Array:
    """The cluster's q at the start, within the independent and, where one rules, other limits."""
    geometry = problem.geometry
    q = np.zeros(len(constraint.position_matrix[0]))
    for link, at in start.items():
        joint = geometry.links[link].joint
        q[at : at + joint.nq] = problem.start[geometry.links[link].q :][: joint.nq]
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
            ends = [(x - offset) / row[at] for x in problem.columns[geometry.links[n].v].limits]
            low, high = max(low, min(ends)), min(high, max(ends))
        if low <= high:
            q[at] = min(max(q[at], low), high)
    return q
