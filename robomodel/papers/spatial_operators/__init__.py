"""Spatial operators: the dynamics of trees as an algebra of operators with linear cost.

After Jain, "Graph theoretic foundations of multibody dynamics, part II: analysis and algorithms"
(Multibody System Dynamics, 2011). :func:`robot_operators` gives the operators of a model,
:meth:`SKO.from_blocks` those of any tree.
"""

from robomodel.papers.spatial_operators.algebra import (
    Adjacency,
    BackwardLyapunov,
    BlockDiagonal,
    ForwardLyapunov,
    Operator,
    PickOff,
    Propagator,
    Space,
    identity,
)
from robomodel.papers.spatial_operators.robot import (
    DiagonalEquations,
    RobotOperators,
    diagonal_equations,
    robot_operators,
    robot_sensitivity,
)
from robomodel.papers.spatial_operators.sko import SKO, Articulated, Sensitivity, Underactuated
from robomodel.papers.spatial_operators.tree import ROOT, Tree, draw_sparsity, draw_tree

__all__ = [
    "ROOT",
    "SKO",
    "Adjacency",
    "Articulated",
    "BackwardLyapunov",
    "BlockDiagonal",
    "DiagonalEquations",
    "ForwardLyapunov",
    "Operator",
    "PickOff",
    "Propagator",
    "RobotOperators",
    "Sensitivity",
    "Space",
    "Tree",
    "Underactuated",
    "diagonal_equations",
    "draw_sparsity",
    "draw_tree",
    "identity",
    "robot_operators",
    "robot_sensitivity",
]
