"""Dynamics at an instant as one sparse system: any knowns and sensors, any order of elimination.

``equations`` writes the system, ``sensors`` adds rows to it, ``orders`` and ``elimination`` solve
it, ``problem`` is what users ask, ``compiled`` the same as machine code.
"""

from robomodel.instants.problem import Determinacy, Problem, Solution

__all__ = ["Determinacy", "Problem", "Solution"]
