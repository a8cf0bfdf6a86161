"""Spatial operators: the dynamics of trees as an algebra of operators of linear cost.

After Jain, "Graph theoretic foundations of multibody dynamics, part II: analysis and algorithms"
(Multibody System Dynamics, 2011). :func:`robot_operators` makes the operators of a model,
:meth:`SKO.from_blocks` those of any tree of one's own.
"""

from robomodel.papers.spatial_operators.algebra import (
    Adjacency,
    BlockDiagonal,
    PickOff,
    Propagator,
    identity,
)
from robomodel.papers.spatial_operators.diagonal import DiagonalEquations, diagonal_equations
from robomodel.papers.spatial_operators.lyapunov import BackwardLyapunov, ForwardLyapunov
from robomodel.papers.spatial_operators.operator import Operator, Space
from robomodel.papers.spatial_operators.robot import RobotOperators, robot_operators
from robomodel.papers.spatial_operators.sensitivity import Sensitivity, robot_sensitivity
from robomodel.papers.spatial_operators.sko import SKO, Articulated
from robomodel.papers.spatial_operators.tree import ROOT, Tree, draw_sparsity, draw_tree
from robomodel.papers.spatial_operators.underactuated import Underactuated

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
