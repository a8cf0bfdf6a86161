"""Search over the orders of any problem, of variables or of scalars, within a budget (001, VIII).

The search minimises the operations of Gaussian elimination at a generic state, with products by ±1
free (:attr:`elimination.Elimination.operations`). The result is never worse than the named orders.
The elimination of a group depends only on the rows that contain its columns. Rows are numbered by
their history, so results for the same rows are reused: an order that differs in one place is
recounted only where the difference has an effect.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from robomodel.estimation.elimination import SingularError
from robomodel.instants import elimination
from robomodel.instants.elimination import MANY_COLUMNS, Elimination, Row
from robomodel.instants.equations import Group, System
from robomodel.instants.problem import Problem
from robomodel.papers.elimination_orders.orders import (
    NAMES,
    SCALAR,
    SCALAR_ORDERS,
    anneal,
    named_order,
)


@dataclass(frozen=True, slots=True)
class SearchedOrder:
    """The best order and its number of ``operations``.

    ``start`` and ``start_operations``: the best named order; ``nodes``: number of orders counted.
    """

    order: tuple[Group, ...]
    operations: int
    start: str
    start_operations: int
    nodes: int


def search(
    problem: Problem,
    *,
    scalars: bool = False,
    nodes: int = 500,
    seconds: float | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> SearchedOrder:
    """Search an order with few operations by annealing from the best named one; seeded.

    Args:
        problem: any problem; :meth:`Problem.compile`, :meth:`Problem.factorize` and, for orders of
            variables, :meth:`Problem.solve` accept the result's ``order``.
        scalars: search orders of scalars, which may separate a variable's components.
        nodes: largest number of orders counted; the named ones are counted in any case.
        seconds: time limit.
        seed: of the random moves.
        progress: called with the number of nodes and the fewest operations so far.

    Raises SingularError if no named order determines the unknowns.
    """
    if nodes < 1:
        raise ValueError("a search counts one order or more")
    until = math.inf if seconds is None else time.monotonic() + seconds
    named = list(_named_orders(problem, scalars, until))
    if not named:
        raise SingularError("every variable", "is not determined in any order known by name")
    operations, name, done = min(named, key=lambda counted: counted[0])
    best, fewest, counted = tuple(done.plan.order), operations, len(named)
    start: tuple[Group, ...] = tuple((c,) for _, c in done.plan.pivots) if scalars else best
    counter, tries = Counter(problem.structure), max(nodes - counted, 0)

    def cost(order: tuple[Group, ...]) -> float:
        if order is start:
            return float(operations)
        try:
            return float(counter.operations(order))
        except SingularError:
            return math.inf

    annealing = anneal(
        start, cost, (0.01 * (1.0 - n / tries) ** 2 for n in range(tries)), random.Random(seed),
        lambda step: 6 * ((len(named) + step) % 2),  # largest distance of every other move
    )  # fmt: skip
    for step, (order, least) in enumerate(annealing):
        counted = len(named) + step
        if least < fewest:
            best, fewest = order, int(least)
        if step and progress is not None:
            progress(counted, fewest)
        if time.monotonic() >= until:
            break
    return SearchedOrder(best, fewest, name, operations, counted)


def _named_orders(
    problem: Problem, scalars: bool, until: float
) -> Iterator[tuple[int, str, Elimination]]:
    """Operations, name and elimination of the named orders; at least one is counted."""
    names = [name for name in NAMES if name != "searched"]
    if scalars:
        names += [SCALAR + name for name in SCALAR_ORDERS]
    for n, name in enumerate(names):
        if n and time.monotonic() > until:
            return
        try:
            done = problem.factorize(named_order(problem, name))
        except SingularError:
            continue
        yield done.operations, name, done


# ---- counting operations of similar orders -------------------------------------------------------

Columns: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """The elimination of a group in the rows that contain it.

    ``waiting``: columns without a pivot; ``after``: new numbers of the rows by their places;
    ``left``, ``joined``: (column, place) of removed and added entries; ``gone``: places of pivots.
    """

    operations: int
    waiting: Columns
    after: dict[int, int]
    left: tuple[tuple[int, int], ...]
    joined: tuple[tuple[int, int], ...]
    gone: tuple[int, ...]


class Counter:
    """Counts :attr:`elimination.Elimination.operations` of orders of one system of numbers.

    ``most``: number of cached steps of about 10 kB each; the cache is cleared when it is full.
    """

    def __init__(self, system: System, most: int = 5000) -> None:
        self.system, self.most = system, most
        self.first, self.touching, soft = elimination.matrix_of(system)
        self.choice = elimination.PivotChoice(system, (), self.first, self.touching, soft)
        self._forget()

    def _forget(self) -> None:
        self.rows: list[Row] = [self.first[i] for i in range(len(self.first))]
        self.steps: dict[tuple[Columns, float, Columns], _Step] = {}

    def operations(self, order: Sequence[Group]) -> int:
        """Operations of an order; raises the errors of :func:`elimination.eliminate_scalars`."""
        groups = [self.system.columns[g] if isinstance(g, str) else g for g in order]
        if max(map(len, groups), default=0) > MANY_COLUMNS:
            return elimination.eliminate_scalars(self.system, order).operations
        if len(self.steps) > self.most:
            self._forget()
        choice, total = self.choice, 0
        number, rows = {i: i for i in self.first}, dict(self.first)
        touching = {c: set(places) for c, places in self.touching.items()}
        choice.begin(groups, rows, touching)
        while (columns := choice.group()) is not None:
            held = sorted(set().union(*[touching[c] for c in columns]))
            key = tuple(columns), choice.share, tuple([number[i] for i in held])
            step = self.steps.get(key)
            if step is None:
                step = self.steps[key] = self._eliminated(columns, {i: rows[i] for i in held})
            columns.clear()
            choice.waiting += step.waiting
            total += step.operations
            for i, n in step.after.items():
                number[i], rows[i] = n, self.rows[n]
            for i in step.gone:
                del rows[i]
            for c, i in step.left:
                touching[c].discard(i)
            for c, i in step.joined:
                touching[c].add(i)
        return total

    def _eliminated(self, columns: Sequence[int], held: Mapping[int, Row]) -> _Step:
        """Eliminate columns from the rows that contain them, without changing these."""
        choice, before = self.choice, {(c, i) for i, row in held.items() for c in row}
        rows = {i: dict(row) for i, row in held.items()}
        touching: dict[int, set[int]] = {c: set() for c in columns}
        touching |= {c: set() for c, _ in before}
        for c, i in before:
            touching[c].add(i)
        all_rows, all_touching = choice.rows, choice.touching
        choice.rows, choice.touching = rows, touching
        left, total = list(columns), 0
        while left and (pivot := choice.best(left)) is not None:
            left.remove(pivot[1])
            row, steps = elimination.take(rows, touching, pivot)
            total += elimination.operations(row, pivot[1], steps)
        choice.rows, choice.touching = all_rows, all_touching
        after = {(c, i) for i, row in rows.items() for c in row}
        numbers = {i: len(self.rows) + n for n, i in enumerate(rows)}
        self.rows += rows.values()
        return _Step(total, tuple(left), numbers, tuple(before - after), tuple(after - before),
                     tuple(held.keys() - rows.keys()))  # fmt: skip
