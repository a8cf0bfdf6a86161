"""Problems: eliminations with chosen knowns, and solvers compiled from them."""

from robomodel.dynamics.problem.problem import Problem

__all__ = ["Problem"]
