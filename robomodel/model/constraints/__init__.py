"""Constraints inside a cluster: what loops and couplings say of its joints, and G, g from them.

Bodies as constraints see them (``links``), a loop joint's conditions (``rows``) and their
derivatives (``evaluation``), constraints with a constant G (``explicit``) and those of loops
(``implicit``); and which of them a description asks for (``tree``, ``loop_joints``).
"""

from robomodel.model.constraints.explicit import LinearConstraint, Unconstrained
from robomodel.model.constraints.implicit import LoopConstraint, Rows
from robomodel.model.constraints.loops import Anchor, Coincident, Link, LoopJoint, evaluate_loops

__all__ = [
    "Anchor",
    "Coincident",
    "LinearConstraint",
    "Link",
    "LoopConstraint",
    "LoopJoint",
    "Rows",
    "Unconstrained",
    "evaluate_loops",
]
