"""Elimination orders of the dynamics' factor graph: algorithms, search, pictures (001).

After Xie and Dellaert, "A Unified Method for Solving Inverse, Forward, and Hybrid Manipulator
Dynamics using Factor Graphs". The graph and its elimination are
:mod:`robomodel.estimation.orders`, with orders by name.
"""

from robomodel.papers.elimination_orders.algorithms import (
    Pivot,
    pivot_edges,
    pivots,
    pseudocode,
    python,
    used_edges,
)
from robomodel.papers.elimination_orders.draw import (
    as_networkx,
    dot,
    draw_clique_tree,
    draw_dag,
    draw_factor_graph,
    draw_pattern,
)
from robomodel.papers.elimination_orders.search import SearchedOrder, search

__all__ = [
    "Pivot",
    "SearchedOrder",
    "as_networkx",
    "dot",
    "draw_clique_tree",
    "draw_dag",
    "draw_factor_graph",
    "draw_pattern",
    "pivot_edges",
    "pivots",
    "pseudocode",
    "python",
    "search",
    "used_edges",
]
