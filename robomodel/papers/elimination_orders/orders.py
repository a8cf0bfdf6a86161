"""Elimination orders of a problem: classical, greedy or searched, of variables or of scalars.

An order of variables keeps a variable's components together, which is a restriction. Orders of
scalars, permutations of the columns of D, can eliminate them at different times (003, III).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import TypeVar

from robomodel.errors import did_you_mean
from robomodel.instants.equations import Group, System
from robomodel.instants.orders import CLASSICAL, checked_order, classical
from robomodel.instants.problem import Problem
from robomodel.model.model import Model
from robomodel.papers.elimination_orders.graphs import FactorGraph, Game, factor_graph

T = TypeVar("T", str, int)
U = TypeVar("U")

GREEDY = ("colamd", "minimum degree", "markowitz")
NAMES = (*CLASSICAL, *GREEDY, "nested dissection", "searched")
SCALAR = "scalar "  # prefix of names of orders of scalars
SCALAR_ORDERS = ("markowitz", "colamd", "minimum degree")


def named_order(problem: Problem, name: str = "aba", *, seed: int = 0) -> tuple[Group, ...]:
    """An order by name, for :meth:`Problem.factorize` and :meth:`Problem.compile`.

    Names are :data:`NAMES`, for variables, and "scalar markowitz", "scalar colamd" and "scalar
    minimum degree", for scalars (:func:`scalar_order`). ``seed``: for "searched".
    """
    if name.startswith(SCALAR):
        return scalar_order(problem.structure, name.removeprefix(SCALAR))
    return order_of_variables(factor_graph(problem), problem.model, name, seed=seed)


def order_of_variables(
    graph: FactorGraph, model: Model, name: str | Sequence[str], *, seed: int = 0
) -> tuple[str, ...]:
    """An order of the graph's variables: by name, or a list of all of them, which is checked."""
    if not isinstance(name, str):
        return checked_order(graph.sizes, name)
    if name in CLASSICAL:
        return classical(graph.sizes, model, name)
    if name in GREEDY:
        return greedy(graph, name)
    if name == "nested dissection":
        return nested_dissection(graph)
    if name == "searched":
        return search_variables(graph, seed=seed)
    raise ValueError(
        f"order '{name}' is not known{did_you_mean(name, NAMES)}; known are {', '.join(NAMES)}, or "
        "list the variables"
    )


def greedy(graph: FactorGraph, name: str) -> tuple[str, ...]:
    """Eliminate the cheapest variable next, by one of three measures.

    "minimum degree": fewest neighbours in the graph of variables, which elimination completes.
    "colamd": fewest scalars in the separator of the joined rows that remain, the bound that column
    orderings of sparse QR and LU minimise. "markowitz": (rows - pivots) times separator, the fill
    of Gaussian elimination.
    """
    if name == "minimum degree":
        return tuple(minimum_degree(graph.neighbours))
    game, left, result = Game(graph), dict.fromkeys(graph.sizes), []

    def cost(variable: str) -> tuple[int, int]:
        separator, rows = game.separator(variable)
        size = sum(graph.sizes[x] for x in separator)
        spare = max(0, rows - graph.sizes[variable])
        return (size, spare) if name == "colamd" else (spare * size, size)

    costs = {variable: cost(variable) for variable in left}
    while left:
        pick = min(left, key=lambda x: costs[x])
        separator, _ = game.separator(pick)
        game.eliminate(pick)
        del left[pick]
        result.append(pick)
        costs.update({variable: cost(variable) for variable in separator})
    return tuple(result)


def minimum_degree(neighbours: Mapping[T, Set[T]]) -> list[T]:
    """Eliminate the variable with the fewest neighbours next, and connect these with each other."""
    near, result = dict(neighbours), []
    while near:
        pick = min(near, key=lambda x: len(near[x]))
        others = near.pop(pick)
        for other in others:
            near[other] = (near[other] | others) - {other, pick}
        result.append(pick)
    return result


def nested_dissection(graph: FactorGraph) -> tuple[str, ...]:
    """Order both halves first and their separator last, recursively (George 1973).

    A separator is the level of a breadth-first search, from an end of the graph, that balances the
    halves best for its size. Small parts are ordered by minimum degree.
    """
    near = graph.neighbours
    sizes = graph.sizes

    def levels(start: str, part: set[str]) -> list[list[str]]:
        reached, seen, front = [], {start}, [start]
        while front:
            reached.append(front)
            following = []
            for name in front:
                for other in sorted(near[name] & part):
                    if other not in seen:
                        seen.add(other)
                        following.append(other)
            front = following
        return reached

    def dissect(part: list[str]) -> list[str]:
        inside = set(part)
        result: list[str] = []
        while inside:  # for each connected component
            start = next(name for name in part if name in inside)
            reached = levels(start, inside)
            reached = levels(reached[-1][0], inside)
            component = [name for level in reached for name in level]
            inside -= set(component)
            if len(reached) < 4:
                result += _within(graph, component)
                continue
            weight = [sum(sizes[name] for name in level) for level in reached]

            def cost(i: int, weight: list[int] = weight) -> float:
                return weight[i] + 0.5 * abs(sum(weight[:i]) - sum(weight[i + 1 :]))

            cut = min(range(1, len(reached) - 1), key=cost)
            result += dissect([n for level in reached[:cut] for n in level])
            result += dissect([n for level in reached[cut + 1 :] for n in level])
            result += reached[cut]
        return result

    return tuple(dissect(list(sizes)))


def _within(graph: FactorGraph, part: Sequence[str]) -> list[str]:
    """Minimum degree among some variables, without the others."""
    return minimum_degree({name: graph.neighbours[name] & set(part) for name in part})


def search_variables(
    graph: FactorGraph,
    *,
    start: Sequence[str] | None = None,
    cost: Callable[[tuple[str, ...]], float] | None = None,
    steps: int = 2000,
    seed: int = 0,
    progress: Callable[[int, float], None] | None = None,
) -> tuple[str, ...]:
    """The best order found by simulated annealing, which moves one variable at a time; seeded.

    ``cost``: the quantity to minimise (default: :attr:`Dag.work <.graphs.Dag.work>`, the
    multiplications of dense block elimination). ``start``: the first order (default: Markowitz's).
    ``progress`` is called with the step and the best cost at each improvement.
    """
    measure = cost or (lambda trial: float(graph.eliminate(trial).work))
    best = checked_order(graph.sizes, start) if start is not None else greedy(graph, "markowitz")
    fewest = math.inf
    rng, schedule = random.Random(seed), (0.02 * (1.0 - n / steps) for n in range(steps))
    for step, (order, value) in enumerate(anneal(best, measure, schedule, rng)):
        if progress is not None and step and value < fewest:
            progress(step - 1, value)
        best, fewest = order, value
    return best


def anneal(
    start: Sequence[U],
    cost: Callable[[tuple[U, ...]], float],
    schedule: Iterable[float],
    rng: random.Random,
    near: Callable[[int], int] = lambda step: 0,
) -> Iterator[tuple[tuple[U, ...], float]]:
    """Simulated annealing of a sequence; yields the best so far and its cost, also initially.

    A try moves one element by at most ``near(step)`` places (0: anywhere). ``schedule``:
    temperatures relative to the least cost so far. Sequences of fewer than two elements are not
    changed.
    """
    at = best = tuple(start)
    value = least = cost(at)
    yield best, least
    for step, share in enumerate(schedule if len(at) > 1 else ()):
        trial, reach = list(at), near(step)
        place = rng.randrange(len(trial))
        moved = trial.pop(place)
        if reach:
            place = min(max(place + rng.randint(-reach, reach), 0), len(trial))
        else:
            place = rng.randrange(len(trial) + 1)
        trial.insert(place, moved)
        costs = cost(tuple(trial))
        excess = (costs - value) / max(share * least, 1e-9)
        if costs <= value or rng.random() < math.exp(-max(excess, 0.0)):
            at, value = tuple(trial), costs
            if value < least:
                best, least = at, value
        yield best, least


# ---- orders of scalars -----------------------------------------------------------------------


def scalar_order(system: System, name: str) -> tuple[Group, ...]:
    """The columns of a system in an order of sparse linear algebra, for ``plan_pivots``.

    "markowitz": pivots over all columns by (row entries - 1)(column entries - 1) during
    elimination. "colamd": fewest entries in the union of the rows with a column, which column
    orderings of sparse LU with free choice of rows minimise approximately; here exactly. "minimum
    degree": on the symmetrised pattern, with rows matched to columns. Raises ValueError for other
    names.
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
        return tuple((c,) for c in _scalar_minimum_degree(rows, len(columns)))
    raise ValueError(
        f"scalar order '{name}' is not known{did_you_mean(name, SCALAR_ORDERS)}; known are "
        f"{', '.join(SCALAR_ORDERS)}"
    )


def _colamd(rows: Sequence[set[int]], count: int) -> list[int]:
    """Eliminate the column whose rows have the smallest union, which becomes one row less."""
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


def _scalar_minimum_degree(rows: Sequence[set[int]], count: int) -> list[int]:
    row_of = _matched(rows)
    near: dict[int, set[int]] = {c: set() for c in range(count)}
    for c, r in row_of.items():
        near[c] |= rows[r] - {c}
        for other in rows[r] - {c}:
            near[other].add(c)
    return minimum_degree(near)


def _matched(rows: Sequence[set[int]]) -> dict[int, int]:
    """A maximum matching of rows to columns, by breadth-first augmenting paths."""
    row_of: dict[int, int] = {}
    column_of: dict[int, int] = {}
    for start in range(len(rows)):
        came: dict[int, int] = {}  # column → row from which it was reached
        front = [start]
        while front:
            r = front.pop(0)
            for c in sorted(rows[r] - came.keys()):
                came[c] = r
                if c in row_of:
                    front.append(row_of[c])
                    continue
                at: int | None = c
                while at is not None:  # match each row on the path to the next column
                    row, column = came[at], at
                    at = column_of.get(row)
                    row_of[column], column_of[row] = row, column
                front = []
                break
    return row_of
