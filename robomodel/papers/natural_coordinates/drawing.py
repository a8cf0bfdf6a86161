"""Graphs over time as factor graphs of names, for pictures and for their Bayes trees.

What is drawn and eliminated is a :class:`robomodel.dynamics.elimination.graph.FactorGraph` with a
variable "q[3]" for each variable at each time; the functions of
:mod:`robomodel.papers.elimination_orders.draw` draw it.
"""

from __future__ import annotations

from collections.abc import Sequence

from robomodel.dynamics.elimination.graph import Dag, FactorGraph, Relation
from robomodel.estimation.graph import Graph


def factor_graph(graph: Graph, first: int = 0, stop: int | None = None) -> FactorGraph:
    """The variables and factors of the times from ``first`` to ``stop`` - 1 (all), by name.

    Factors that reach outside are left out. They are named by kind, first variable and time.
    """
    stop = graph.count if stop is None else stop
    if not 0 <= first < stop <= graph.count:
        raise ValueError(f"times {first} … {stop - 1} are not within 0 … {graph.count - 1}")
    sizes = {f"{name}[{t}]": s.dim for t in range(first, stop) for name, s in graph.spaces.items()}
    relations: list[Relation] = []
    names: dict[str, int] = {}
    for term in graph.terms:
        kind = type(term.factor).__name__
        reach = term.reach
        for t in term.times.tolist():
            if first <= t and t + reach < stop:
                name = f"{kind} {term.factor.variables[0][0]}[{t}]"
                names[name] = names.get(name, 0) + 1
                if names[name] > 1:
                    name += f" ({names[name]})"
                of = frozenset(f"{x}[{t + offset}]" for x, offset in term.factor.variables)
                soft = not bool(term.noise.hard.any())
                relations.append(Relation(name, of, term.factor.rows, soft))
    return FactorGraph(sizes, tuple(relations))


def bayes_tree(
    graph: Graph, order: Sequence[str] | None = None, first: int = 0, stop: int | None = None
) -> Dag:
    """What elimination makes of the times from ``first`` to ``stop`` - 1; its ``cliques``.

    ``order``: of names such as "q[3]"; by default time after time, as the solvers go, so that the
    newest is at the root.
    """
    named = factor_graph(graph, first, stop)
    return named.eliminate(tuple(named.sizes) if order is None else order)
