"""Elimination orders of the dynamics' factor graph: algorithms, search, pictures (001).

After Xie and Dellaert, "A Unified Method for Solving Inverse, Forward, and Hybrid Manipulator
Dynamics using Factor Graphs". :func:`factor_graph` is the graph of a
:class:`~robomodel.instants.problem.Problem`; :func:`named_order` returns an elimination order by
its name. Elimination gives a :class:`Dag`, which can be written as an algorithm and drawn.
:func:`ldlt` is symmetric elimination in any order, :func:`forward_kernel` forward dynamics by it.
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
from robomodel.papers.elimination_orders.forward import (
    Order,
    as_order,
    forward_dynamics,
    forward_kernel,
    order_backward_error,
    order_error,
    program,
    search_order,
)
from robomodel.papers.elimination_orders.graphs import (
    Clique,
    Dag,
    FactorGraph,
    Relation,
    factor_graph,
)
from robomodel.papers.elimination_orders.orders import (
    NAMES,
    SCALAR_ORDERS,
    named_order,
    scalar_order,
    search_variables,
)
from robomodel.papers.elimination_orders.search import SearchedOrder, search
from robomodel.papers.elimination_orders.symmetric import ldlt, solve

__all__ = [
    "NAMES",
    "SCALAR_ORDERS",
    "Clique",
    "Dag",
    "FactorGraph",
    "Order",
    "Pivot",
    "Relation",
    "SearchedOrder",
    "as_networkx",
    "as_order",
    "dot",
    "draw_clique_tree",
    "draw_dag",
    "draw_factor_graph",
    "draw_pattern",
    "factor_graph",
    "forward_dynamics",
    "forward_kernel",
    "ldlt",
    "named_order",
    "order_backward_error",
    "order_error",
    "pivot_edges",
    "pivots",
    "program",
    "pseudocode",
    "python",
    "scalar_order",
    "search",
    "search_order",
    "search_variables",
    "solve",
    "used_edges",
]
