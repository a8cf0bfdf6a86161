"""Clusters of couplings alone: gears, belts, mimic, polynomials.

Gauss–Jordan keeps them exact and explicit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.polynomial import Polynomial as Power

from robomodel.errors import DescriptionError, few
from robomodel.model.closure import Geometry
from robomodel.model.constraints.loops import Link, Polynomial
from robomodel.model.constraints.velocities import (
    Constraint,
    LinearConstraint,
    PolynomialConstraint,
)
from robomodel.model.joints import Array
from robomodel.model.mobility.problem import (
    ClusterProblem,
    ClusterSolution,
    check_counts,
    condition_names,
    first_source,
)

SAME = 1.0 - 1e-9  # coefficients that differ by less are equally large
SLACK = 1e-12  # by which a position may be beyond a limit at which it was set
REAL = 1e-9  # imaginary part of a root that is real but for rounding


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


def analyse_couplings(problem: ClusterProblem) -> ClusterSolution | None:
    """Gears, belts, mimic, polynomials: the constraint stays explicit.

    None where polynomials cannot be evaluated one after the other: where they give a joint that the
    file wants to be independent, or one that another coupling gives, or run in a circle.
    """
    columns, geometry = problem.columns, problem.geometry
    never = frozenset(i for i, column in enumerate(columns) if column.chosen)
    prefer = [0 if column.chosen is False else 1 if column.follower else 2 for column in columns]
    powers = {geometry.links[each.joint].v: each for each in geometry.polynomials}
    evaluated = frozenset(powers)
    if len(powers) < len(geometry.polynomials) or never & evaluated:
        return None
    try:
        free = eliminate(problem, evaluated, prefer)
    except DescriptionError:
        if not powers:
            raise
        return None
    order = _in_order(geometry, free.pivots, powers)
    if order is None:
        return None
    mobility = len(columns) - len(free.pivots) - len(powers)
    check_counts(problem, mobility, len(columns) - mobility)
    if never & set(free.pivots):
        reduced = eliminate(problem, never | evaluated, prefer)
        order = _in_order(geometry, reduced.pivots, powers)
        if order is None:
            return None
    else:
        reduced = free
    given = reduced.pivots.keys() | evaluated
    left_over = [i for i, c in enumerate(columns) if c.chosen is False and i not in given]
    if left_over:
        raise DescriptionError(
            f"the couplings {condition_names(problem)} cannot determine "
            f'{few([columns[i].label for i in left_over], 8)}, marked independent="false" '
            f"(mobility {mobility}); mark another joint of the cluster instead",
            first_source(problem),
        )
    independent = tuple(i for i in range(len(columns)) if i not in given)
    linear = _linear(problem, reduced, (*independent, *order))
    polynomials = tuple(powers[i] for i in order)
    constraint = (
        PolynomialConstraint(geometry.links, linear, polynomials) if polynomials else linear
    )
    notes = []
    if not any(column.chosen is not None for column in columns):
        labels = few([columns[i].label for i in independent], 8)
        notes.append(
            f"cluster '{problem.name}': {labels} taken as independent, as the file does not say"
        )
    return ClusterSolution(
        constraint,
        independent,
        _explicit_neutral(problem, constraint, independent),
        (1,) * len(polynomials),
        reduced.redundant,
        (),
        tuple(notes),
        (),
    )


Pivots: TypeAlias = Mapping[int, tuple[dict[int, float], float]]


def _in_order(
    geometry: Geometry, pivots: Pivots, powers: Mapping[int, Polynomial]
) -> list[int] | None:
    """The columns that polynomials give, each after those that it takes; None in a circle."""
    order: list[int] = []
    while len(order) < len(powers):
        for column, each in powers.items():
            of = geometry.links[each.of].v
            needs = (pivots[of][0].keys() if of in pivots else {of}) & powers.keys()
            if column not in order and needs <= set(order):
                order.append(column)
                break
        else:
            return None
    return order


def _linear(
    problem: ClusterProblem, reduced: Elimination, columns: tuple[int, ...]
) -> LinearConstraint:
    """Spanning velocities and positions by those of these columns."""
    geometry = problem.geometry
    matrix, positions, offsets = [], [], []
    start, nq = _starts(problem, columns)
    for n, link in enumerate(geometry.links):
        for i in range(link.v, link.v + link.joint.nv):
            terms = reduced.pivots[i][0] if i in reduced.pivots else {i: 1.0}
            matrix.append(tuple(terms.get(c, 0.0) for c in columns))
        if n in start:
            for j in range(link.joint.nq):
                positions.append(tuple(1.0 if c == start[n] + j else 0.0 for c in range(nq)))
                offsets.append(0.0)
        else:
            terms, offset = reduced.pivots[link.v]
            at = {start[problem.columns[c].link]: x for c, x in terms.items()}
            positions.append(tuple(at.get(c, 0.0) for c in range(nq)))
            offsets.append(offset)
    return LinearConstraint(tuple(matrix), tuple(positions), tuple(offsets))


def _starts(problem: ClusterProblem, columns: Sequence[int]) -> tuple[dict[int, int], int]:
    """Where the positions of these columns' links begin, and how many there are."""
    start: dict[int, int] = {}
    nq = 0
    for i in columns:
        link = problem.geometry.links[problem.columns[i].link]
        if link.v == i:
            start[problem.columns[i].link] = nq
            nq += link.joint.nq
    return start, nq


def _explicit_neutral(
    problem: ClusterProblem, constraint: Constraint, independent: Sequence[int]
) -> Array:
    """The cluster's q at the start, within the independent and, where one rules, other limits."""
    geometry = problem.geometry
    start, nq = _starts(problem, independent)
    q = np.zeros(nq)
    for link, at in start.items():
        joint = geometry.links[link].joint
        q[at : at + joint.nq] = problem.start[geometry.links[link].q :][: joint.nq]
    curves = follower_curves(geometry.links, constraint, nq)
    for link, at in start.items():
        if geometry.links[link].joint.nq == 1:
            q[at] = _within_limits(float(q[at]), curves[at], problem)
    return q


def _within_limits(q: float, curves: Mapping[int, Power], problem: ClusterProblem) -> float:
    """The position nearest to q at which links that follow it by these curves are within limits.

    q where there is none.
    """
    bounded = [
        (curve, problem.columns[problem.geometry.links[n].v].limits) for n, curve in curves.items()
    ]

    def fits(x: float) -> bool:
        values = [(float(curve(x)), *limits) for curve, limits in bounded]
        return all(
            low - SLACK * (1.0 + abs(low)) <= y <= high + SLACK * (1.0 + abs(high))
            for y, low, high in values
        )

    if fits(q):
        return q
    ends: list[float] = []
    for curve, limits in bounded:
        for limit in filter(math.isfinite, limits):
            roots = np.atleast_1d((curve - limit).roots())
            ends += roots[np.abs(roots.imag) <= REAL].real.tolist()
    return min(filter(fits, ends), key=lambda x: abs(x - q), default=q)


def follower_curves(
    links: Sequence[Link], constraint: Constraint, nq: int
) -> list[dict[int, Power]]:
    """For each of the nq positions of an explicit cluster, the links that follow it alone, and how.

    Positions are asked for with a polynomial in its place.
    """
    variable = Power([0.0, 1.0])
    curves: list[dict[int, Power]] = []
    for at in range(nq):
        positions = constraint.positions([variable if i == at else 0.0 for i in range(nq)])
        single = {n: positions[link.q] for n, link in enumerate(links) if link.joint.nq == 1}
        curves.append({n: x for n, x in single.items() if isinstance(x, Power) and x.degree()})
    moved = Counter(n for each in curves for n in each)
    return [{n: x for n, x in each.items() if moved[n] == 1} for each in curves]
