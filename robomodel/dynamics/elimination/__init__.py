"""Elimination of the equations of motion as a factor graph (document 001): orders, ways, pictures.

:mod:`graph` is structure alone (directed graphs, fill, clique trees), :mod:`orders` the orders,
:mod:`ldlt` symmetric elimination, :mod:`programs` orders as compiled code. Elimination of systems
with sensors is in :mod:`robomodel.estimation`.
"""

from robomodel.dynamics.elimination.graph import Clique, Dag, FactorGraph, Relation
from robomodel.dynamics.elimination.orders import NAMES, SCALAR_ORDERS, order, scalar_order, search
from robomodel.dynamics.elimination.programs import operations, program, search_order
from robomodel.dynamics.equations.system import SingularError
from robomodel.dynamics.order import Order

__all__ = [
    "NAMES",
    "SCALAR_ORDERS",
    "Clique",
    "Dag",
    "FactorGraph",
    "Order",
    "Relation",
    "SingularError",
    "operations",
    "order",
    "program",
    "scalar_order",
    "search",
    "search_order",
]
