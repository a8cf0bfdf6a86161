"""Weighted least squares over a fixed elimination: any scalars, missing sensors, covariances.

Exact rows are eliminated by :mod:`~robomodel.estimation.gauss`; what is left of the
measurements is a small dense problem in the free columns z: min Σ w (r z - b)². Its normal matrix N
has one safe sequence of pivots; what it loses in digits, refinement of the whole system returns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from robomodel.dynamics.equations.system import Group, SingularError, System, refined
from robomodel.dynamics.kinematics.state import Matrix
from robomodel.estimation import gauss
from robomodel.scalars import Factorization, Scalar, add, dot, mul, neg

FLOOR = 1e-13  # a pivot of N below this share of its diagonal is rounding: not determined


class Estimation:
    """A system eliminated, with the normal equations that its measurements leave.

    ``present``: by the measurements' names, 1 where they count, 0 where they are missing, or any
    factor of their weight; what is left out counts. Rows of infinite deviation say nothing: they
    are what covariances are asked of. Unknowns that are not determined are not a number.
    """

    def __init__(
        self,
        system: System,
        order: Sequence[Group],
        plan: gauss.Plan | None = None,
        present: Mapping[str, Scalar] | None = None,
    ) -> None:
        self.system = system
        self.done = gauss.eliminate(system, order, plan)
        self.at: dict[str, range] = {}
        self.weighted: list[tuple[int, list[Scalar]]] = []  # row, and its entries times the weight
        free = self.done.plan.free
        normal: Matrix = [[0.0] * len(free) for _ in free]
        first = 0
        for factor in system.factors:
            self.at[factor.name] = range(first, first + factor.rows)
            first += factor.rows
            for r, deviation in zip(self.at[factor.name], factor.deviation or (), strict=False):
                if math.isinf(deviation):
                    continue
                weight = mul((present or {}).get(factor.name, 1.0), 1.0 / deviation**2)
                row = self._row(r)
                scaled = [mul(weight, x) for x in row]
                self.weighted.append((r, scaled))
                for i, x in enumerate(scaled):
                    for j in range(i + 1):
                        normal[i][j] = add(normal[i][j], mul(x, row[j]))
        for i, c in enumerate(free):
            if type(normal[i][i]) is float and normal[i][i] == 0.0:
                name = next(n for n, at in system.columns.items() if c in at)
                raise SingularError(name, "is not determined by the equations and measurements")
        self.factors = Factorization(normal, floor=FLOOR)

    def _row(self, r: int) -> list[Scalar]:
        """A row as it was carried, over the free columns."""
        row = self.done.carried[r]
        return [row.get(c, 0.0) for c in self.done.plan.free]

    def solve(self, right: Sequence[Scalar]) -> dict[str, list[Scalar]]:
        """The d that meets the exact rows of D d = right and fits the others best."""
        rest = self.done.reduce(right)
        pull: list[Scalar] = [0.0] * len(self.done.plan.free)
        for r, scaled in self.weighted:
            pull = [add(p, mul(x, rest[r])) for p, x in zip(pull, scaled, strict=True)]
        return self.done.restore(rest, self.factors.solve(pull))

    def solution(self, *, refine: int = 0) -> dict[str, list[Scalar]]:
        """The same of D d + b = 0, with so many steps of iterative refinement."""
        return refined(self.system, self.solve, refine)

    def failing(self) -> list[Scalar]:
        """What the exact rows that are left over fail by: zero, but where rows contradict."""
        rest = self.done.reduce([neg(x) for f in self.system.factors for x in f.constant])
        return [rest[r] for r in self.done.left]

    def covariance(self, name: str) -> Matrix:
        """The posterior covariance of what a factor of infinite deviation asks."""
        halves = [self.factors.reduce(self._row(r)) for r in self.at[name]]
        scaled = [self.factors.weighted(half) for half in halves]
        result: Matrix = [[0.0] * len(halves) for _ in halves]
        for i, half in enumerate(halves):
            for j in range(i + 1):
                result[i][j] = result[j][i] = dot(half, scaled[j])
        return result
