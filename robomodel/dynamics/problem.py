"""The problem of dynamics at an instant, under the name by which users import it."""

from robomodel.estimation.instant import Determinacy, Problem, Solution

__all__ = ["Determinacy", "Problem", "Solution"]
