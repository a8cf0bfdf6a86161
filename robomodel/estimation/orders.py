"""Elimination orders: those of the classical algorithms, of sparse linear algebra, and searched.

The classical ones are named by what they make: RNEA (torques, wrenches from the base, accelerations
from the tips), CRBA (all wrenches, all accelerations, then all joint accelerations), ABA (body by
body from the tips). They name whatever variables a problem leaves unknown. An order of whole
variables keeps a variable's components together, which is a restriction: orders of scalars,
permutations of the columns of D, may take one component now and another later (document 003, III).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias, TypeVar, get_args

from robomodel.errors import check_names, did_you_mean
from robomodel.estimation.equations import Group, System, polynomial_name
from robomodel.model.model import Model

OrderName: TypeAlias = Literal[
    "rnea", "crba", "aba", "colamd", "minimum degree", "nested dissection", "markowitz", "searched"
]
ScalarOrder: TypeAlias = Literal["markowitz", "colamd", "minimum degree"]
SCALAR_ORDERS: tuple[str, ...] = get_args(ScalarOrder)
T = TypeVar("T", str, int)
U = TypeVar("U")

CLASSICAL = ("rnea", "crba", "aba")
GREEDY = ("colamd", "minimum degree", "markowitz")
LAST_STEP = 1000  # of a body's frame, after the steps that lead to it
NAMES = (*CLASSICAL, *GREEDY, "nested dissection", "searched")


def order(
    graph: FactorGraph, model: Model, name: str | Sequence[str], *, seed: int = 0
) -> tuple[str, ...]:
    """An order of the graph's variables: by name, or a list of all of them, which is checked."""
    if not isinstance(name, str):
        return graph.checked(name)
    if name in CLASSICAL:
        return classical(graph, model, name)
    if name in GREEDY:
        return greedy(graph, name)
    if name == "nested dissection":
        return nested_dissection(graph)
    if name == "searched":
        return search(graph, seed=seed)
    raise ValueError(
        f"order '{name}' is not known; known are {', '.join(NAMES)}, or list the variables"
    )


def classical(graph: FactorGraph, model: Model, name: str) -> tuple[str, ...]:
    """RNEA's, CRBA's or ABA's order of the unknown variables, for any robot.

    Multipliers of loops and couplings go after the joint accelerations of their cluster (ABA) or of
    all (CRBA, RNEA). What a name does not foresee, as external wrenches, goes first.
    """
    body_of = {node.name: body for body, node in enumerate(model.nodes)}
    bodies: dict[str, list[tuple[int, int, str]]] = {}  # kind → (body, step, name)
    joints: dict[str, dict[int, list[str]]] = {"tau": {}, "qdd": {}}
    lambdas: dict[int, list[str]] = {}
    first: list[str] = []
    clusters = {loop.name: loop.cluster for loop in model.loops}
    clusters |= {polynomial_name(each.name): each.cluster for each in model.couplings}
    cluster_at = {cluster.name: cluster.index for cluster in model.clusters}
    joint_at = {joint.name: body for body, joint in enumerate(model.joints)}
    for variable in graph.sizes:
        kind, _, owner = variable.rstrip("]").partition("[")
        if kind in ("a", "f"):
            link, colon, step = owner.rpartition(":")
            if owner in body_of or not colon:
                bodies.setdefault(kind, []).append((body_of[owner], LAST_STEP, variable))
            else:
                bodies.setdefault(kind, []).append((body_of[link], int(step), variable))
        elif kind in joints:
            body = joint_at[owner] if owner in joint_at else joint_at[owner.rpartition(".")[0]]
            joints[kind].setdefault(body, []).append(variable)
        elif kind == "lambda":
            of = clusters.get(owner, owner if owner in cluster_at else owner[: -len(" loops")])
            lambdas.setdefault(cluster_at[of], []).append(variable)
        else:
            first.append(variable)

    def outward(kind: str) -> list[str]:
        return [name for _, _, name in sorted(bodies.get(kind, []))]

    def inward(kind: str) -> list[str]:
        return outward(kind)[::-1]

    def joint(kind: str) -> list[str]:
        return [n for body in sorted(joints[kind], reverse=True) for n in joints[kind][body]]

    multipliers = [name for c in sorted(lambdas, reverse=True) for name in lambdas[c]]
    if name in ("rnea", "crba"):  # one order: they differ in the known variables
        return (*joint("tau"), *first, *outward("f"), *inward("a"), *joint("qdd"), *multipliers)
    result = [*joint("tau"), *first]
    for cluster in reversed(model.clusters):
        late: list[str] = []
        alone = len(cluster.bodies) == 1
        for body in reversed(cluster.bodies):
            numbers = sorted({at for _, at, _ in _of(bodies, body)}, reverse=True)
            for number in numbers:
                result += [variable for _, at, variable in _of(bodies, body) if at == number]
                if number == LAST_STEP and alone:
                    result += joints["qdd"].get(body, [])
            if not alone:
                late += joints["qdd"].get(body, [])
        result += [*late, *lambdas.get(cluster.index, [])]
    return tuple(result)


def _of(bodies: dict[str, list[tuple[int, int, str]]], body: int) -> list[tuple[int, int, str]]:
    """A body's wrenches, then its accelerations."""
    return [entry for kind in ("f", "a") for entry in bodies.get(kind, []) if entry[0] == body]


def greedy(graph: FactorGraph, name: str) -> tuple[str, ...]:
    """The cheapest variable next, by one of three measures.

    "minimum degree": fewest neighbours in the graph of variables, which elimination completes.
    "colamd": fewest scalars in the separator of the rows that are joined and not used up, the bound
    that column orderings of sparse QR and LU minimise. "markowitz": the rows less the pivots times
    the separator, the fill of Gaussian elimination.
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
    """The variable with the fewest neighbours next, which then are neighbours of each other."""
    near, result = dict(neighbours), []
    while near:
        pick = min(near, key=lambda x: len(near[x]))
        others = near.pop(pick)
        for other in others:
            near[other] = (near[other] | others) - {other, pick}
        result.append(pick)
    return result


def nested_dissection(graph: FactorGraph) -> tuple[str, ...]:
    """Halves first, what separates them last, and so on within the halves (George 1973).

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
        while inside:  # one connected component after the other
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
    """Minimum degree among a few variables, whatever surrounds them."""
    return minimum_degree({name: graph.neighbours[name] & set(part) for name in part})


def search(
    graph: FactorGraph,
    *,
    start: Sequence[str] | None = None,
    cost: Callable[[tuple[str, ...]], float] | None = None,
    steps: int = 2000,
    seed: int = 0,
    progress: Callable[[int, float], None] | None = None,
) -> tuple[str, ...]:
    """The best order of simulated annealing: moves of one variable to another place, seeded.

    ``cost`` is what is minimised (default: the multiplications of dense block elimination,
    :attr:`Dag.work`); ``start`` the first order (default: Markowitz's); ``progress`` is called with
    the step and the best cost each time that is bettered.
    """
    measure = cost or (lambda trial: float(graph.eliminate(trial).work))
    best = graph.checked(start) if start is not None else greedy(graph, "markowitz")
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
    """Simulated annealing of a sequence: the best so far and its cost, at first and after each try.

    A try moves one element to another place, ``near(step)`` places away at most (0: anywhere).
    ``schedule``: temperatures, as shares of the least cost so far. Sequences of less than two
    elements are not tried.
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
        return tuple((c,) for c in _scalar_minimum_degree(rows, len(columns)))
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


def _scalar_minimum_degree(rows: Sequence[set[int]], count: int) -> list[int]:
    row_of = _matched(rows)
    near: dict[int, set[int]] = {c: set() for c in range(count)}
    for c, r in row_of.items():
        near[c] |= rows[r] - {c}
        for other in rows[r] - {c}:
            near[other].add(c)
    return minimum_degree(near)


def _matched(rows: Sequence[set[int]]) -> dict[int, int]:
    """Rows of as many columns as possible, one each: augmenting paths, breadth first."""
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
                while (
                    at is not None
                ):  # each row on the path is matched with the column that it led to
                    row, column = came[at], at
                    at = column_of.get(row)
                    row_of[column], column_of[row] = row, column
                front = []
                break
    return row_of


# ---- graphs --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Relation:
    """A factor as the graph sees it: its name, its variables, and how many rows it has."""

    name: str
    variables: frozenset[str]
    rows: int
    soft: bool = False


@dataclass(frozen=True)
class FactorGraph:
    """Variables with their sizes, and factors between them; the equations it was written from."""

    sizes: Mapping[str, int]
    factors: tuple[Relation, ...]
    system: System | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, system: System) -> FactorGraph:
        """The graph of a system; blocks are what connects, whatever is in them."""
        return cls(
            {variable.name: variable.size for variable in system.variables},
            tuple(
                Relation(f.name, frozenset(f.blocks), f.rows, f.deviation is not None)
                for f in system.factors
            ),
            system,
        )

    @cached_property
    def neighbours(self) -> dict[str, set[str]]:
        """For each variable, those that share a factor with it."""
        result: dict[str, set[str]] = {name: set() for name in self.sizes}
        for factor in self.factors:
            for name in factor.variables:
                result[name] |= factor.variables
        for name, others in result.items():
            others.discard(name)
        return result

    def checked(self, order: Sequence[str]) -> tuple[str, ...]:
        """The order, if it names every variable once."""
        check_names(order, self.sizes, "no variable ")
        named = set(order)
        missing = [name for name in self.sizes if name not in named]
        if missing or len(order) != len(self.sizes):
            what = f"leaves out '{missing[0]}'" if missing else "repeats a variable"
            raise ValueError(f"the order {what}; it names each of {len(self.sizes)} variables once")
        return tuple(order)

    def eliminate(self, order: Sequence[str]) -> Dag:
        """Eliminate the variables in this order."""
        order = self.checked(order)
        game = Game(self)
        place = {name: i for i, name in enumerate(order)}
        parents, rows = {}, {}
        for name in order:
            separator, total = game.separator(name)
            parents[name] = tuple(sorted(separator, key=place.__getitem__))
            rows[name] = total
            game.eliminate(name)
        return Dag(self, order, parents, rows)


class Game:
    """The elimination game: factors as they stand while variables go, one after the other."""

    def __init__(self, graph: FactorGraph) -> None:
        self.sizes = graph.sizes
        self.factors: dict[int, tuple[frozenset[str], int]] = {
            i: (factor.variables, factor.rows) for i, factor in enumerate(graph.factors)
        }
        self.touching: dict[str, set[int]] = {name: set() for name in graph.sizes}
        for i, (variables, _) in self.factors.items():
            for name in variables:
                self.touching[name].add(i)

    def separator(self, name: str) -> tuple[set[str], int]:
        """The variables that would become parents, and the rows of the factors that are joined."""
        joined = [self.factors[i] for i in self.touching[name]]
        separator = {other for variables, _ in joined for other in variables} - {name}
        return separator, sum(rows for _, rows in joined)

    def eliminate(self, name: str) -> None:
        """Join the factors of a variable; keep the rows that it does not use up."""
        separator, rows = self.separator(name)
        first = min(self.touching[name], default=0)
        for i in list(self.touching[name]):
            for other in self.factors.pop(i)[0]:
                self.touching[other].discard(i)
        left = min(rows - self.sizes[name], sum(self.sizes[x] for x in separator))
        if left > 0 and separator:
            self.factors[first] = frozenset(separator), left
            for other in separator:
                self.touching[other].add(first)


@dataclass(frozen=True)
class Clique:
    """Variables that are eliminated together (``frontal``), conditioned on the ``separator``."""

    frontal: tuple[str, ...]
    separator: tuple[str, ...]
    parent: int | None


@dataclass(frozen=True)
class Dag:
    """The directed acyclic graph of an order: each variable's parents, which determine it.

    ``rows``: of the factors joined when it was eliminated. Back-substitution goes through the order
    from its end.
    """

    graph: FactorGraph
    order: tuple[str, ...]
    parents: Mapping[str, tuple[str, ...]]
    rows: Mapping[str, int]

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """(parent, child), by the order."""
        return tuple((parent, name) for name in self.order for parent in self.parents[name])

    @property
    def fill(self) -> tuple[tuple[str, str], ...]:
        """Edges between variables that shared no factor to begin with."""
        near = self.graph.neighbours
        return tuple((parent, name) for parent, name in self.edges if parent not in near[name])

    @property
    def width(self) -> int:
        """Scalars in the largest clique: what the dearest step handles at once."""
        size = self.graph.sizes
        return max((size[n] + sum(size[p] for p in self.parents[n]) for n in self.order), default=0)

    @property
    def work(self) -> int:
        """Multiplications of dense block elimination: Σ n (rows) (n + parents + 1)."""
        size = self.graph.sizes
        return sum(
            size[n] * self.rows[n] * (size[n] + sum(size[p] for p in self.parents[n]) + 1)
            for n in self.order
        )

    @cached_property
    def cliques(self) -> tuple[Clique, ...]:
        """The clique tree (directed Bayes tree), roots first; siblings may be solved in parallel.

        What determines a variable must stand above it in one line. So, where its parents do not
        all determine its first parent too (their rows were used up), that one's separator takes
        them in. From the last variable back, a variable joins the clique of its first parent where
        its separator is all of that clique, else it starts a clique below it.
        """
        place = {name: i for i, name in enumerate(self.order)}
        needs = {name: set(parents) for name, parents in self.parents.items()}
        for name in self.order:
            if needs[name]:
                first = min(needs[name], key=place.__getitem__)
                needs[first] |= needs[name] - {first}
        frontal: list[list[str]] = []
        separators: list[tuple[str, ...]] = []
        above: list[int | None] = []
        home: dict[str, int] = {}
        for name in reversed(self.order):
            separator = tuple(sorted(needs[name], key=place.__getitem__))
            if separator:
                at = home[separator[0]]
                if needs[name] == {*frontal[at], *separators[at]}:
                    frontal[at].insert(0, name)
                    home[name] = at
                    continue
            home[name] = len(frontal)
            frontal.append([name])
            separators.append(separator)
            above.append(home[separator[0]] if separator else None)
        return tuple(
            Clique(tuple(f), s, p) for f, s, p in zip(frontal, separators, above, strict=True)
        )
