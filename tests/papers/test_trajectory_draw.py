"""Graphs over time as factor graphs of names: pictures and Bayes trees."""

from __future__ import annotations

import numpy as np
import pytest
from trajectory_graphs import BARE, PLANAR, THETA

import robomodel as rm
from robomodel.estimation.factors import Euler, Gyroscope, Trapezoid
from robomodel.estimation.graph import Graph
from robomodel.estimation.problems import motion
from robomodel.papers.elimination_orders.draw import dot, draw_clique_tree, draw_factor_graph
from robomodel.papers.natural_coordinates import (
    BayesNetwork,
    dependent_network,
    independent_network,
    planar,
)
from robomodel.papers.natural_coordinates.planar import bayes_tree, factor_graph


@pytest.fixture(scope="module")
def graph() -> Graph:
    model = rm.robots.load("crank_rocker")
    plain = motion(model, 4, 0.01, q=model.neutral(), v=[0.5], q_noise=0.1)
    return plain.add(Gyroscope(model, "coupler"), 0.1, times=[1, 3])


def test_variables_and_factors_have_names(graph: Graph) -> None:
    named = factor_graph(graph)
    assert list(named.sizes)[:4] == ["q[0]", "v[0]", "a[0]", "q[1]"]
    factors = {factor.name: factor for factor in named.factors}
    assert factors["Trapezoid q[1]"].variables == {"q[1]", "q[2]", "v[1]", "v[2]"}
    assert factors["Gyroscope q[3]"].variables == {"q[3]", "v[3]"}
    assert (factors["Prior q[0]"].soft, factors["Prior v[0]"].soft) == (True, False)
    assert len(factors) == len(named.factors) == sum(len(term.times) for term in graph.terms)
    within = factor_graph(graph, 1, 3)
    assert "Trapezoid q[1]" in {factor.name for factor in within.factors}
    assert "Trapezoid q[2]" not in {factor.name for factor in within.factors}
    twice = factor_graph(graph.add(Gyroscope(rm.robots.load("crank_rocker"), "crank"), 1.0))
    assert "Gyroscope q[1] (2)" in {factor.name for factor in twice.factors}
    with pytest.raises(ValueError, match="not within"):
        factor_graph(graph, 2, 6)


def test_the_bayes_tree_along_time_is_a_path(graph: Graph) -> None:
    tree = bayes_tree(graph)
    parents = [clique.parent for clique in tree.cliques if clique.parent is not None]
    assert len(set(parents)) == len(parents) == len(tree.cliques) - 1
    root = next(clique for clique in tree.cliques if clique.parent is None)
    assert "a[3]" in root.frontal
    for clique in tree.cliques:  # no clique reaches further than from a time to the next
        times = {int(name[2]) for name in (*clique.frontal, *clique.separator)}
        assert max(times) - min(times) <= 1
    other = bayes_tree(graph, [*(f"{x}[{t}]" for t in (0, 3, 1, 2) for x in "qva")])
    parents = [clique.parent for clique in other.cliques if clique.parent is not None]
    assert len(set(parents)) < len(parents)  # from both ends, it has two branches


def test_pictures(graph: Graph) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("networkx")
    tree = bayes_tree(graph, stop=3)
    labels = {text.get_text() for text in draw_factor_graph(factor_graph(graph)).texts}
    assert {"q[0]", "v[3]", "a[2]"} <= labels
    cliques = [text.get_text() for text in draw_clique_tree(tree).texts]
    assert len(cliques) == len(tree.cliques)
    assert '"q[0]" -> ' in dot(tree) or '-> "q[0]"' in dot(tree)
    assert '"factor:Trapezoid v[2]" -- "a[3]"' in dot(factor_graph(graph))


def test_a_bayesian_network_becomes_the_graph_of_forward_dynamics() -> None:
    """Figure 1(a) with known forces: the priors, integrators and dynamics of 5.1, by Euler."""
    count, n = 4, BARE.n
    graph = planar.forward(BARE, count, 0.01, q=np.zeros(n), v=np.zeros(n))
    own = Graph(graph.spaces, count)
    for term in graph.terms:
        factor = term.factor
        if isinstance(factor, Trapezoid):
            factor = Euler(factor.variables[0][0], factor.rate, 0.01, graph.spaces["q"])
        own = own.add(factor, 1.0, times=term.times)
    named = factor_graph(own)
    network = dependent_network(count, n)
    assert network.order.index("Q[3]") < network.order.index("a[3]")
    found = network.factor_graph([f"Q[{t}]" for t in range(count)])
    assert found.sizes == named.sizes
    scopes = [(sorted(f.variables), f.rows) for f in named.factors if "Constraints" not in f.name]
    assert sorted(scopes) == sorted((sorted(f.variables), f.rows) for f in found.factors)
    # with all motions known, forces are all that is left; observations are leaves
    motions = [f"{x}[{t}]" for x in "qva" for t in range(count)]
    assert {f.variables for f in network.factor_graph(motions).factors} == {
        frozenset({f"Q[{t}]"}) for t in range(count)
    }
    watched = dependent_network(count, n, observations=2)
    assert {"o[1]"} == {
        child for parent, child in watched.edges if child[0] == "o" and "[1]" in parent
    }
    assert '"a[2]" -> "v[3]";' in watched.dot()


def test_a_bayesian_network_of_independent_coordinates() -> None:
    """Figure 1(b) with C and forces known, its constraints as the factors of 5.2."""
    count, n = 3, PLANAR.n
    graph = planar.forward_independent(PLANAR, THETA, count, 0.01, q=np.zeros(n), v=np.zeros(n))
    network = independent_network(count, n, 1, observations=3)
    known = ["C", *(f"{x}[{t}]" for x in "Qo" for t in range(count))]
    found = {f.variables for f in network.factor_graph(known).factors}
    assert network.factor_graph(known).sizes == factor_graph(graph).sizes
    scopes = {f.variables for f in factor_graph(graph).factors}
    for t in range(count):
        assert {f"q[{t}]", f"z[{t}]"} in found & scopes
        assert {f"q[{t}]", f"v[{t}]", f"zd[{t}]"} in found & scopes
        assert {f"q[{t}]", f"v[{t}]", f"a[{t}]", f"zdd[{t}]"} in found & scopes
    assert ("C", "q[2]") in network.edges
    with pytest.raises(ValueError, match="no variable 'D'"):
        network.factor_graph(["D"])
    with pytest.raises(ValueError, match="depend on themselves: 'x' → 'y' → 'x'"):
        BayesNetwork({"x": 1, "y": 1}, {"x": ("y",), "y": ("x",)})
