"""Operations of many similar orders: what an order shares with those before is counted once.

Eliminating a group depends on the rows that hold its columns and on nothing else. Rows are numbered
by how they came about, so that a step on the same rows gives what it gave before: an order that
differs in one place is counted anew only as far as the difference reaches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from robomodel.dynamics.elimination import gauss
from robomodel.dynamics.elimination.gauss import MANY, Group, Row
from robomodel.dynamics.equations.system import System

Columns: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """What the elimination of a group does to the rows that hold it.

    ``waiting``: columns without a pivot; ``after``: the touched rows' numbers by their places;
    ``left``, ``joined``: (column, place) of entries that go and come; ``gone``: pivots' places.
    """

    operations: int
    waiting: Columns
    after: dict[int, int]
    left: tuple[tuple[int, int], ...]
    joined: tuple[tuple[int, int], ...]
    gone: tuple[int, ...]


class Counter:
    """Counts :attr:`gauss.Elimination.operations` of orders of one system of numbers.

    ``most``: steps that are remembered, some 10 kB each; beyond them it forgets all and goes on.
    """

    def __init__(self, system: System, most: int = 5000) -> None:
        self.system, self.most = system, most
        self.first, self.touching, soft = gauss.matrix_of(system)
        self.choice = gauss.Choice(system, (), self.first, self.touching, soft)
        self._forget()

    def _forget(self) -> None:
        self.rows: list[Row] = [self.first[i] for i in range(len(self.first))]
        self.steps: dict[tuple[Columns, float, Columns], _Step] = {}

    def operations(self, order: Sequence[Group]) -> int:
        """Those of this order; SingularError as of :func:`gauss.eliminate`."""
        groups = [self.system.columns[g] if isinstance(g, str) else g for g in order]
        if max(map(len, groups), default=0) > MANY:
            return gauss.eliminate(self.system, order).operations
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
                step = self.steps[key] = self._taken(columns, {i: rows[i] for i in held})
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

    def _taken(self, columns: Sequence[int], held: Mapping[int, Row]) -> _Step:
        """Eliminate columns from the rows that hold them, which stay as they are."""
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
            row, steps = gauss.take(rows, touching, pivot)
            total += gauss.operations(row, pivot[1], steps)
        choice.rows, choice.touching = all_rows, all_touching
        after = {(c, i) for i, row in rows.items() for c in row}
        numbers = {i: len(self.rows) + n for n, i in enumerate(rows)}
        self.rows += rows.values()
        return _Step(total, tuple(left), numbers, tuple(before - after), tuple(after - before),
                     tuple(held.keys() - rows.keys()))  # fmt: skip
