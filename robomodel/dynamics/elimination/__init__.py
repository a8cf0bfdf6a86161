"""Elimination of the equations of motion as a factor graph (document 001): orders, ways, pictures.

:mod:`graph` is structure alone (directed graphs, fill, clique trees), :mod:`orders` the orders,
:mod:`gauss`, :mod:`ldlt` and :mod:`qr` the arithmetic, :mod:`draw` the pictures.
"""

from robomodel.dynamics.elimination.gauss import SingularError
from robomodel.dynamics.elimination.graph import Clique, Dag, FactorGraph, Relation
from robomodel.dynamics.elimination.orders import NAMES, order, search

__all__ = ["NAMES", "Clique", "Dag", "FactorGraph", "Relation", "SingularError", "order", "search"]
