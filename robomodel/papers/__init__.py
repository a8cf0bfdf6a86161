"""The five papers that the package builds on, each in its own notation.

One module per paper; the rest of the package imports none of them. The numbers in brackets are
those by which docstrings cite the papers:

- :mod:`natural_coordinates`: Blanco-Claraco, Leanza, Reina, "A general framework for modeling and
  dynamic simulation of multibody systems using factor graphs" (000)
- :mod:`elimination_orders`: Xie, Dellaert, "A Unified Method for Solving Inverse, Forward, and
  Hybrid Manipulator Dynamics using Factor Graphs" (001)
- :mod:`clusters`: Chignoli, Adrian, Kim, Wensing, "Recursive Rigid-Body Dynamics Algorithms for
  Systems with Kinematic Loops" (002)
- :mod:`equations`: Nori, "Inverse, forward and other dynamic computations computationally
  optimized with sparse matrix factorizations" (003)
- :mod:`spatial_operators`: Jain, "Graph theoretic foundations of multibody dynamics, part II:
  analysis and algorithms" (004)
"""

from robomodel.papers import (
    clusters,
    elimination_orders,
    equations,
    natural_coordinates,
    spatial_operators,
)

__all__ = [
    "clusters",
    "elimination_orders",
    "equations",
    "natural_coordinates",
    "spatial_operators",
]
