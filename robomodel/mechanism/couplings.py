"""Gauss–Jordan elimination of linear couplings, over scalars of any kind.

The joint for which each coupling is solved (its *pivot*) is decided once, with the file's numbers,
by :mod:`robomodel.mobility.analysis`. Other numbers are eliminated with the same pivots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from robomodel.mechanism.closure import Geometry
from robomodel.mechanism.constraints import (
    Constraint,
    LinearConstraint,
    LoopConstraint,
    PolynomialConstraint,
)
from robomodel.scalars import Scalar, div, dot, held, is_number, is_zero, select
from robomodel.tolerances import NOTHING, ROUNDING, SAME

Row: TypeAlias = dict[int, Scalar]
Pivots: TypeAlias = Mapping[int, tuple[Row, Scalar]]
Chosen: TypeAlias = tuple[int | None, ...]
Choose: TypeAlias = Callable[[int, Row, Scalar], int | None]
"""The pivot of a coupling, from its number, and its row and offset after the elimination of those
before it; None where nothing is left of the row."""


@dataclass(frozen=True, slots=True)
class EliminatedCouplings:
    """Couplings in Gauss–Jordan form: pivot column → (its row over the other columns, its offset).

    ``chosen`` is the pivot of each coupling, None for a redundant one.
    """

    pivots: dict[int, tuple[Row, Scalar]]
    chosen: Chosen

    @property
    def redundant(self) -> tuple[bool, ...]:
        """Which couplings repeat those before them."""
        return tuple(pivot is None for pivot in self.chosen)


def eliminate(geometry: Geometry, choose: Choose) -> EliminatedCouplings:
    """Eliminate a cluster's couplings in their order, with the pivots that ``choose`` returns."""
    rows: list[tuple[Row, Scalar]] = []
    pivots: list[int] = []
    chosen: list[int | None] = []
    for n, coupling in enumerate(geometry.linear):
        row: Row = {}
        for link, coefficient in coupling.terms:
            column = geometry.links[link].v
            row[column] = row.get(column, 0.0) + coefficient
        small = NOTHING * max((abs(x) for x in row.values() if is_number(x)), default=0.0)
        offset: Scalar = coupling.offset
        for pivot, (solved, value) in zip(pivots, rows, strict=True):
            factor = row.pop(pivot, 0.0)
            if not is_zero(factor):
                for column, x in solved.items():
                    row[column] = row.get(column, 0.0) + factor * x
                offset = offset - factor * value
        row = {c: x for c, x in row.items() if not (is_number(x) and abs(x) <= small)}
        pivot_ = choose(n, row, offset)
        chosen.append(pivot_)
        if pivot_ is None:
            continue
        factor = row.pop(pivot_, 0.0)
        solved = {c: div(-x, factor) for c, x in row.items()}
        value = div(offset, factor)
        for m, (other, constant) in enumerate(rows):
            share = other.pop(pivot_, 0.0)
            if not is_zero(share):
                for c, x in solved.items():
                    other[c] = other.get(c, 0.0) + share * x
                rows[m] = (
                    {c: x for c, x in other.items() if not (is_number(x) and abs(x) <= ROUNDING)},
                    constant + share * value,
                )
        rows.append((solved, value))
        pivots.append(pivot_)
    return EliminatedCouplings(dict(zip(pivots, rows, strict=True)), tuple(chosen))


def eliminated(geometry: Geometry, chosen: Chosen) -> EliminatedCouplings:
    """The couplings eliminated with pivots that are chosen already.

    Results are not-a-number where a coupling that should be redundant contradicts the others.
    """
    fault: Scalar = 0.0

    def choose(n: int, row: Row, offset: Scalar) -> int | None:
        nonlocal fault
        if chosen[n] is None:
            left = [*row.values(), offset]
            fault = fault + select(SAME**2 - dot(left, left), float("nan"), 0.0)
        return chosen[n]

    result = eliminate(geometry, choose)
    if is_zero(fault):
        return result
    pivots = {
        pivot: ({c: x + fault for c, x in row.items()}, offset + fault)
        for pivot, (row, offset) in result.pivots.items()
    }
    return replace(result, pivots=pivots)


def linear_constraint(
    geometry: Geometry, pivots: Pivots, columns: Sequence[int]
) -> LinearConstraint:
    """The constraint that gives spanning velocities and positions from those of ``columns``."""
    matrix, positions, offsets = [], [], []
    start, nq = position_starts(geometry, columns)
    link_of = {column: n for n, link in enumerate(geometry.links) for column in link.freedoms}
    for n, link in enumerate(geometry.links):
        for i in link.freedoms:
            terms = pivots[i][0] if i in pivots else {i: 1.0}
            matrix.append(tuple(held(terms.get(c, 0.0)) for c in columns))
        if n in start:
            for j in range(link.joint.nq):
                positions.append(tuple(1.0 if c == start[n] + j else 0.0 for c in range(nq)))
                offsets.append(0.0)
        else:
            terms, offset = pivots[link.v]
            at = {start[link_of[c]]: x for c, x in terms.items()}
            positions.append(tuple(held(at.get(c, 0.0)) for c in range(nq)))
            offsets.append(held(offset))
    return LinearConstraint(tuple(matrix), tuple(positions), tuple(offsets))


def position_starts(geometry: Geometry, columns: Sequence[int]) -> tuple[dict[int, int], int]:
    """The first position of each of these columns' links, by link, and the number of positions."""
    start: dict[int, int] = {}
    nq = 0
    for i in columns:
        for n, link in enumerate(geometry.links):
            if link.v == i:
                start[n] = nq
                nq += link.joint.nq
    return start, nq


def expansion(geometry: Geometry, pivots: Pivots) -> tuple[list[int], list[tuple[Scalar, ...]]]:
    """The columns z that are no pivots, and the matrix from z to all spanning velocities."""
    z = [i for i in range(geometry.nv) if i not in pivots]
    rows = [
        tuple((pivots[i][0] if i in pivots else {i: 1.0}).get(c, 0.0) for c in z)
        for i in range(geometry.nv)
    ]
    return z, rows


def with_geometry(
    constraint: Constraint, geometry: Geometry, chosen: Chosen, columns: Sequence[int]
) -> Constraint:
    """A cluster's constraint with other numbers; ``columns`` are its independent ones."""
    if isinstance(constraint, LoopConstraint):
        pivots = eliminated(geometry, chosen).pivots
        return replace(
            constraint, links=geometry.links, loops=geometry.loops,
            expand=tuple(tuple(map(held, row)) for row in expansion(geometry, pivots)[1]),
        )  # fmt: skip
    if isinstance(constraint, LinearConstraint):
        return linear_constraint(geometry, eliminated(geometry, chosen).pivots, columns)
    if isinstance(constraint, PolynomialConstraint):
        powers = {each.joint: each for each in geometry.polynomials}
        polynomials = tuple(powers[each.joint] for each in constraint.polynomials)
        order = (*columns, *(geometry.links[each.joint].v for each in polynomials))
        linear = linear_constraint(geometry, eliminated(geometry, chosen).pivots, order)
        return PolynomialConstraint(geometry.links, linear, polynomials)
    return constraint
