"""Orders of scalars: permutations of the columns of D, one by one (document 003, III and IV-D).

An order of whole variables keeps a variable's components together, which is a restriction: what
fills least may take one component now and another one later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

from robomodel.dynamics.elimination.gauss import Group
from robomodel.dynamics.elimination.orders import minimum_degree
from robomodel.dynamics.equations.system import System
from robomodel.errors import did_you_mean

ScalarOrder: TypeAlias = Literal["markowitz", "colamd", "minimum degree"]
SCALAR_ORDERS: tuple[str, ...] = get_args(ScalarOrder)


def scalar_order(system: System, name: str) -> tuple[Group, ...]:
    """The columns of a system in an order of sparse linear algebra, for :func:`gauss.plan`.

    "markowitz": all columns at once, pivots by (row entries - 1)(column entries - 1) as the
    elimination goes. "colamd": fewest entries in the union of the rows that touch a column, which
    is what column orderings of sparse LU with free choice of rows minimise, without their
    approximations. "minimum degree": of the pattern made symmetric, rows matched with columns.
    Raises ValueError for other names.
    """
    columns = range(system.unknowns)
    if name == "markowitz":
        return (tuple(columns),)
    rows: list[set[int]] = [set() for _ in range(system.rows)]
    for r, c in system.pattern():
        rows[r].add(c)
    if name == "colamd":
        return tuple((c,) for c in _colamd(rows, len(columns)))
    if name == "minimum degree":
        return tuple((c,) for c in _minimum_degree(rows, len(columns)))
    raise ValueError(
        f"scalar order '{name}' is not known{did_you_mean(name, SCALAR_ORDERS)}; known are "
        f"{', '.join(SCALAR_ORDERS)}"
    )


def _colamd(rows: Sequence[set[int]], count: int) -> list[int]:
    """Eliminate the column whose rows together have fewest entries; they become one row fewer."""
    pool: dict[int, tuple[frozenset[int], int]] = {
        r: (frozenset(row), 1) for r, row in enumerate(rows) if row
    }
    touching: list[set[int]] = [set() for _ in range(count)]
    for r, (row, _) in pool.items():
        for c in row:
            touching[c].add(r)

    def union(c: int) -> set[int]:
        return set().union(*(pool[r][0] for r in touching[c])) - {c}

    size = {c: len(union(c)) for c in range(count)}
    result: list[int] = []
    while size:
        pick = min(size, key=lambda c: (size[c], c))
        del size[pick]
        result.append(pick)
        joined, number = union(pick), 0
        at = min(touching[pick], default=-1)
        for r in list(touching[pick]):
            row, many = pool.pop(r)
            number += many
            for c in row:
                touching[c].discard(r)
        if joined and number > 1:
            pool[at] = frozenset(joined), number - 1
            for c in joined:
                touching[c].add(at)
        for c in joined:
            size[c] = len(union(c))
    return result


def _minimum_degree(rows: Sequence[set[int]], count: int) -> list[int]:
    row_of = _matched(rows)
    near: dict[int, set[int]] = {c: set() for c in range(count)}
    for c, r in row_of.items():
        near[c] |= rows[r] - {c}
        for other in rows[r] - {c}:
            near[other].add(c)
    return minimum_degree(near)


def _matched(rows: Sequence[set[int]]) -> dict[int, int]:
    """A row for as many columns as can have one of their own: augmenting paths, breadth first."""
    row_of: dict[int, int] = {}
    column_of: dict[int, int] = {}
    for start in range(len(rows)):
        came: dict[int, int] = {}  # column → the row from which it was reached
        front = [start]
        while front:
            r = front.pop(0)
            for c in sorted(rows[r] - came.keys()):
                came[c] = r
                if c in row_of:
                    front.append(row_of[c])
                    continue
                at: int | None = c
                while at is not None:  # each row on the path takes the column that it led to
                    row, taken = came[at], at
                    at = column_of.get(row)
                    row_of[taken], column_of[row] = row, taken
                front = []
                break
    return row_of
