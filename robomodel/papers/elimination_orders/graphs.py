"""The factor graph of a problem, and the directed graphs of its elimination (001, III, IV)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from robomodel.instants.equations import System
from robomodel.instants.orders import checked_order
from robomodel.instants.problem import Problem


@dataclass(frozen=True, slots=True)
class Relation:
    """A factor of the graph: its name, its variables, and its number of rows."""

    name: str
    variables: frozenset[str]
    rows: int
    soft: bool = False


@dataclass(frozen=True)
class FactorGraph:
    """Variables with their sizes and the factors between them; ``system``: the equations behind."""

    sizes: Mapping[str, int]
    factors: tuple[Relation, ...]
    system: System | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, system: System) -> FactorGraph:
        """The graph of a system, with an edge for each block, whatever its values."""
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
        """For each variable, the variables that share a factor with it."""
        result: dict[str, set[str]] = {name: set() for name in self.sizes}
        for factor in self.factors:
            for name in factor.variables:
                result[name] |= factor.variables
        for name, others in result.items():
            others.discard(name)
        return result

    def eliminate(self, order: Sequence[str]) -> Dag:
        """Eliminate the variables in this order."""
        order = checked_order(self.sizes, order)
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
    """The elimination game: the factors while variables are eliminated in turn."""

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
        """The variables that would become parents, and the number of rows of the joined factors."""
        joined = [self.factors[i] for i in self.touching[name]]
        separator = {other for variables, _ in joined for other in variables} - {name}
        return separator, sum(rows for _, rows in joined)

    def eliminate(self, name: str) -> None:
        """Join the factors of a variable; keep the rows that remain."""
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
    """The directed acyclic graph of an order: each variable's parents, on which it depends.

    ``rows``: of the factors joined when it was eliminated. Back-substitution goes through the order
    from its end.
    """

    graph: FactorGraph
    order: tuple[str, ...]
    parents: Mapping[str, tuple[str, ...]]
    rows: Mapping[str, int]

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """(parent, child) pairs in the order."""
        return tuple((parent, name) for name in self.order for parent in self.parents[name])

    @property
    def fill(self) -> tuple[tuple[str, str], ...]:
        """Edges between variables that originally share no factor."""
        near = self.graph.neighbours
        return tuple((parent, name) for parent, name in self.edges if parent not in near[name])

    @property
    def width(self) -> int:
        """Number of scalars in the largest clique."""
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
        """The clique tree (directed Bayes tree), roots first; siblings can be solved in parallel.

        A variable's parents must be its ancestors in one line. If some of its parents are not
        parents of its first parent (because their rows were used up), they are added to that one's
        separator. From the last variable back, a variable joins the clique of its first parent if
        its separator is that whole clique; otherwise it starts a new clique below.
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


def factor_graph(problem: Problem) -> FactorGraph:
    """The factor graph of a problem, without known variables."""
    return FactorGraph.of(problem.structure)
