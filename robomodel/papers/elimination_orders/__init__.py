"""Elimination orders of the dynamics' factor graph and their pictures (001).

After Xie and Dellaert, "A Unified Method for Solving Inverse, Forward, and Hybrid Manipulator
Dynamics using Factor Graphs".
"""

from robomodel.papers.elimination_orders.draw import (
    as_networkx,
    dot,
    draw_clique_tree,
    draw_dag,
    draw_factor_graph,
    draw_pattern,
)

__all__ = [
    "as_networkx",
    "dot",
    "draw_clique_tree",
    "draw_dag",
    "draw_factor_graph",
    "draw_pattern",
]
