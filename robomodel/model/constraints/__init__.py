"""Constraints inside a cluster: what loops and couplings say of its joints, and G, g from them.

Bodies as constraints see them, a loop joint's conditions and their derivatives (``loops``), what
follows of them for G and g (``velocities``); and which of them a description asks for (``tree``).
"""

from robomodel.model.constraints.loops import (
    Anchor,
    Coincident,
    Link,
    LoopCondition,
    LoopJoint,
    Polynomial,
    evaluate_loops,
)
from robomodel.model.constraints.velocities import (
    LinearConstraint,
    LoopConstraint,
    PolynomialConstraint,
    Rows,
    Unconstrained,
)

__all__ = [
    "Anchor",
    "Coincident",
    "LinearConstraint",
    "Link",
    "LoopCondition",
    "LoopConstraint",
    "LoopJoint",
    "Polynomial",
    "PolynomialConstraint",
    "Rows",
    "Unconstrained",
    "evaluate_loops",
]
