"""Dynamic Bayesian networks of multibody motion, and the factor graphs that they become (000).

Figure 1 of the paper draws, for each time, which variables a variable depends on; section 5 turns
the network into a factor graph, once it is decided which variables are known. The probability of
all variables is the product of each one's given its parents (16), and each becomes a factor (17).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from robomodel.errors import check_names
from robomodel.estimation.orders import FactorGraph, Relation

__all__ = ["BayesNetwork", "dependent_network", "independent_network"]


@dataclass(frozen=True)
class BayesNetwork:
    """A directed acyclic graph of variables, each with its parents.

    ``sizes``: variable → number of its components; ``parents``: variable → what it depends on; none
    of variables that are left out. Raises ValueError for parents that are no variables, and where a
    variable depends on itself.
    """

    sizes: Mapping[str, int]
    parents: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        for names in (self.parents, *self.parents.values()):
            check_names(names, self.sizes, "no variable ")
        _ = self.order  # checks that there is no cycle

    @property
    def order(self) -> tuple[str, ...]:
        """All variables, parents first."""
        try:
            return tuple(
                TopologicalSorter({x: self.parents.get(x, ()) for x in self.sizes}).static_order()
            )
        except CycleError as error:
            cycle = " → ".join(f"'{x}'" for x in error.args[1])
            raise ValueError(f"variables depend on themselves: {cycle}") from None

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """(parent, child)."""
        return tuple((p, child) for child, ps in self.parents.items() for p in ps)

    def factor_graph(self, known: Collection[str] = ()) -> FactorGraph:
        """The factor graph of the variables that are not ``known`` (section 5).

        Each variable becomes a factor, "p(x | parents)", on itself and its parents; known variables
        are parameters of the factors, and factors without unknowns are constants, left out.
        """
        check_names(known, self.sizes, "no variable ")
        relations = []
        for child in self.sizes:
            parents = self.parents.get(child, ())
            unknown = frozenset((child, *parents)).difference(known)
            if unknown:
                name = f"p({child} | {', '.join(parents)})" if parents else f"p({child})"
                relations.append(Relation(name, unknown, self.sizes[child], soft=True))
        sizes = {x: size for x, size in self.sizes.items() if x not in known}
        return FactorGraph(sizes, tuple(relations))

    def dot(self) -> str:
        """The network as Graphviz text: ``dot -Tsvg``."""
        lines = [f'  "{x}";' for x in self.sizes]
        lines += [f'  "{parent}" -> "{child}";' for parent, child in self.edges]
        return "\n".join(["digraph network {", *lines, "}\n"])


def dependent_network(count: int, n: int, observations: int = 0) -> BayesNetwork:
    """Figure 1(a): q, v, a (n) and forces Q (n) at ``count`` times, and ``observations`` o, if any.

    q and v follow from those of the time before by Euler's rule, as in (16). The trapezoidal rule
    has no such network: through q̈ at its end, each variable of a time would depend on itself.
    """
    sizes: dict[str, int] = {}
    parents: dict[str, tuple[str, ...]] = {}
    for t in range(count):
        sizes |= {f"{x}[{t}]": n for x in ("q", "v", "a", "Q")}
        if t:
            parents[f"q[{t}]"] = (f"q[{t - 1}]", f"v[{t - 1}]")
            parents[f"v[{t}]"] = (f"v[{t - 1}]", f"a[{t - 1}]")
        parents[f"a[{t}]"] = (f"q[{t}]", f"v[{t}]", f"Q[{t}]")
        if observations:
            sizes[f"o[{t}]"] = observations
            parents[f"o[{t}]"] = (f"q[{t}]", f"v[{t}]", f"a[{t}]")
    return BayesNetwork(sizes, parents)


def independent_network(count: int, n: int, f: int, observations: int = 0) -> BayesNetwork:
    """Figure 1(b): independent z, zd, zdd (f) follow each other, dependent q, v, a (n) follow them.

    C is the branch, one for all times, which q depends on besides z. Forces Q (n) act on zdd.
    """
    sizes = {"C": 1}
    parents: dict[str, tuple[str, ...]] = {}
    for t in range(count):
        sizes |= {f"{x}[{t}]": f for x in ("z", "zd", "zdd")}
        sizes |= {f"{x}[{t}]": n for x in ("Q", "q", "v", "a")}
        if t:
            parents[f"z[{t}]"] = (f"z[{t - 1}]", f"zd[{t - 1}]")
            parents[f"zd[{t}]"] = (f"zd[{t - 1}]", f"zdd[{t - 1}]")
        parents[f"zdd[{t}]"] = (f"z[{t}]", f"zd[{t}]", f"Q[{t}]")
        parents[f"q[{t}]"] = (f"z[{t}]", "C")
        parents[f"v[{t}]"] = (f"zd[{t}]", f"q[{t}]")
        parents[f"a[{t}]"] = (f"zdd[{t}]", f"q[{t}]", f"v[{t}]")
        if observations:
            sizes[f"o[{t}]"] = observations
            parents[f"o[{t}]"] = (f"q[{t}]", f"v[{t}]", f"a[{t}]")
    return BayesNetwork(sizes, parents)
