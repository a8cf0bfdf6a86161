"""A sparse linear system over named variables, D d + b = 0: a linear graph of one time.

Its factors are those of graphs, over scalars of any kind, so that they can be traced; a structural
zero is not an entry. The equations of motion are written in it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from robomodel.dynamics.kinematics.state import Matrix
from robomodel.estimation.graph import Graph, Term
from robomodel.estimation.noise import diagonal, exact
from robomodel.estimation.spaces import Vectors
from robomodel.model.joints import Array
from robomodel.scalars import Scalar, Vector, add, added, dot, is_zero, mul, neg
from robomodel.spatial import Transform

Group: TypeAlias = str | tuple[int, ...]
"""What goes together in an order: a variable by name, or columns by number."""


class SingularError(ArithmeticError):
    """A variable that the equations do not determine, or not in this order; its name first."""

    def __init__(self, variable: str, message: str) -> None:
        super().__init__(f"'{variable}' {message}")
        self.variable = variable


@dataclass(frozen=True, slots=True)
class Variable:
    """A named unknown or known quantity: ``kind`` in words, ``owner`` the link, joint or loop."""

    name: str
    kind: str
    owner: str
    size: int


@dataclass(frozen=True, slots=True)
class LinearFactor:
    """A few rows of D d + b = 0: ``blocks`` (rows by the variable's size) by variable name.

    ``deviation``: standard deviations of the rows where they are measurements; None: exact.
    ``twin``: the variable whose columns mirror these rows in a symmetric system. ``carried``: the
    variable whose block is the transform ``carry``, for products cheaper than the block's.
    """

    name: str
    kind: str
    blocks: Mapping[str, Matrix]
    constant: Sequence[Scalar]
    twin: str = ""
    deviation: tuple[float, ...] | None = None
    carried: str = ""
    carry: Transform | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.constant)

    @property
    def variables(self) -> tuple[tuple[str, int], ...]:
        """The variables of its blocks, all at its time."""
        return tuple((name, 0) for name in self.blocks)

    def evaluate(self, x: Sequence[Array], data: Array | None) -> tuple[Array, Sequence[Array]]:
        """Rows of D d + b (1, rows), less data, and the blocks; of rows that are numbers."""
        e = np.array(self.constant, dtype=float) - (0.0 if data is None else data)
        jacobians = [
            np.array(block, dtype=float).reshape(self.rows, -1) for block in self.blocks.values()
        ]
        for values, jacobian in zip(x, jacobians, strict=True):
            e = e + values @ jacobian.T
        return e.reshape(1, -1), [jacobian[np.newaxis] for jacobian in jacobians]


@dataclass(frozen=True)
class System:
    """Variables and factors, in the order in which they were written down."""

    variables: tuple[Variable, ...]
    factors: tuple[LinearFactor, ...]

    @cached_property
    def by_name(self) -> dict[str, Variable]:
        """The variables by name."""
        return {variable.name: variable for variable in self.variables}

    @cached_property
    def columns(self) -> dict[str, range]:
        """Where each variable stands in d."""
        result, at = {}, 0
        for variable in self.variables:
            result[variable.name] = range(at, at + variable.size)
            at += variable.size
        return result

    @property
    def unknowns(self) -> int:
        """Number of columns of D."""
        return sum(variable.size for variable in self.variables)

    @property
    def rows(self) -> int:
        """Number of rows of D."""
        return sum(factor.rows for factor in self.factors)

    def matrix(self) -> tuple[Matrix, list[Scalar]]:
        """D by rows, and b, in the order of factors and variables."""
        rows: Matrix = []
        for factor in self.factors:
            first = len(rows)
            rows += [[0.0] * self.unknowns for _ in range(factor.rows)]
            for name, block in factor.blocks.items():
                at = self.columns[name]
                for i, row in enumerate(block):
                    rows[first + i][at.start : at.stop] = row
        return rows, [x for factor in self.factors for x in factor.constant]

    def pattern(self) -> set[tuple[int, int]]:
        """(row, column) of every structural entry of D: the worst case over all states."""
        result, first = set(), 0
        for factor in self.factors:
            for name, block in factor.blocks.items():
                start = self.columns[name].start
                result |= {
                    (first + i, start + j)
                    for i, row in enumerate(block)
                    for j, x in enumerate(row)
                    if not is_zero(x)
                }
            first += factor.rows
        return result

    def graph(self) -> Graph:
        """The graph of one time whose factors these are; of a system of numbers."""
        terms = [
            Term(
                factor,
                exact(factor.rows) if factor.deviation is None else diagonal(factor.deviation),
                np.zeros(1, dtype=np.intp),
                None,
            )
            for factor in self.factors
        ]
        return Graph({v.name: Vectors(v.size) for v in self.variables}, 1, tuple(terms))

    def checked(self, groups: Sequence[Group]) -> tuple[Group, ...]:
        """Variables and groups of columns, if they have every column once."""
        columns = [
            c for group in groups
            for c in (self.columns.get(group, ()) if isinstance(group, str) else group)
        ]  # fmt: skip
        if sorted(columns) != list(range(self.unknowns)):
            raise ValueError(
                f"the order has {len(set(columns))} of {self.unknowns} columns, {len(columns)} in "
                "all; each must be there once"
            )
        return tuple(groups)

    def with_factors(self, more: Iterable[LinearFactor]) -> System:
        """The same with further factors."""
        return System(self.variables, (*self.factors, *more))

    def given(self, values: Mapping[str, Vector]) -> System:
        """The same with variables known: their columns go into b, rows without columns go away."""
        factors = []
        for factor in self.factors:
            constant, blocks = list(factor.constant), {}
            for name, block in factor.blocks.items():
                if name not in values:
                    blocks[name] = block
                    continue
                constant = [
                    add(c, dot(row, values[name])) for c, row in zip(constant, block, strict=True)
                ]
            if blocks:
                factors.append(replace(factor, blocks=blocks, constant=constant))
        kept = tuple(v for v in self.variables if v.name not in values)
        return System(kept, tuple(factors))


def refined(
    system: System,
    solve: Callable[[list[Scalar]], dict[str, list[Scalar]]],
    steps: int,
    result: dict[str, list[Scalar]] | None = None,
) -> dict[str, list[Scalar]]:
    """The d of D d + b = 0 from what solves D d = right, with steps of iterative refinement.

    ``result``: a first solution, if there is one already.
    """
    if result is None:
        result = solve([neg(x) for f in system.factors for x in f.constant])
    for _ in range(steps):
        correction = solve([neg(x) for x in residual(system, result)])
        result = {name: added(values, correction[name]) for name, values in result.items()}
    return result


def residual(system: System, solution: Mapping[str, Sequence[Scalar]]) -> list[Scalar]:
    """D d + b, row by row."""
    result: list[Scalar] = []
    for factor in system.factors:
        for i in range(factor.rows):
            total = factor.constant[i]
            for name, block in factor.blocks.items():
                for x, y in zip(block[i], solution[name], strict=True):
                    total = add(total, mul(x, y))
            result.append(total)
    return result


def backward_error(
    system: System, solution: Mapping[str, Sequence[Scalar]], *, but: Container[int] = ()
) -> Any:
    """How little D and b must change, by entries, for d to solve D d + b = 0 (batched).

    max |D d + b| / (|D| |d| + |b|) over the exact rows ``but`` these; where that denominator is but
    rounding, |D| |d|max is added to it (Arioli, Demmel and Duff 1989).
    """
    largest: Any = 0.0
    for values in solution.values():
        for y in values:
            largest = np.maximum(largest, np.abs(y))
    worst: Any = 0.0
    rows = enumerate(residual(system, solution))
    for factor in system.factors:
        for i in range(factor.rows):
            norm, size = 0.0 * largest, np.abs(factor.constant[i])
            for name, block in factor.blocks.items():
                for x, y in zip(block[i], solution[name], strict=True):
                    norm = norm + np.abs(x)
                    size = size + np.abs(x) * np.abs(y)
            rounding = 1e3 * np.finfo(float).eps * (norm * largest)
            size = np.where(size > rounding, size, size + norm * largest)
            at, wrong = next(rows)
            error = np.abs(wrong) / np.where(size > 0.0, size, 1.0)
            if factor.deviation is None and at not in but:
                worst = np.maximum(worst, error)
    return worst
