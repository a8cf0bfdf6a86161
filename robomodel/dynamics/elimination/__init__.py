"""Elimination of the equations of motion as a factor graph (document 001): orders, ways, pictures.

:mod:`graph` is structure alone (directed graphs, fill, clique trees), :mod:`orders` the orders, of
scalars :mod:`scalars`,
:mod:`gauss`, :mod:`ldlt` and :mod:`qr` the arithmetic, :mod:`programs` orders as compiled code.
"""

from robomodel.dynamics.elimination.gauss import SingularError
from robomodel.dynamics.elimination.graph import Clique, Dag, FactorGraph, Relation
from robomodel.dynamics.elimination.orders import NAMES, order, search
from robomodel.dynamics.elimination.programs import operations, program, search_order
from robomodel.dynamics.elimination.scalars import SCALAR_ORDERS, scalar_order
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
