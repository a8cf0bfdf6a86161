"""Natural coordinates and factor graphs over time of planar mechanisms (000).

After Blanco-Claraco, Leanza and Reina, "A general framework for modeling and dynamic simulation of
multibody systems using factor graphs". :class:`Mechanism` is made of :class:`Body` objects and
constraints (section 2 and appendix III), :func:`natural` converts any planar robot;
:func:`forward`, :func:`forward_independent` and :func:`inverse` are the graphs of section 5.
Priors, integrators and solvers are those of :mod:`robomodel.estimation`.
"""

from robomodel.papers.natural_coordinates.constraints import (
    Angle,
    Coincide,
    Constraint,
    Distance,
    Driven,
    FixedAngle,
    Linear,
    Slider,
    Travel,
)
from robomodel.papers.natural_coordinates.conversion import NaturalRobot, natural
from robomodel.papers.natural_coordinates.gtsam_solver import smooth_with_isam2, solve_with_gtsam
from robomodel.papers.natural_coordinates.mechanism import Body, Mechanism, body_mass_matrix
from robomodel.papers.natural_coordinates.planar import (
    AccelerationConstraints,
    BayesNetwork,
    BranchEstimate,
    PlanarAccelerometer,
    PlanarDynamics,
    PlanarGyroscope,
    PlanarMarker,
    PositionConstraints,
    VelocityConstraints,
    bayes_tree,
    branches,
    compare_branches,
    dependent_network,
    factor_graph,
    forward,
    forward_independent,
    independent_network,
    inverse,
)

__all__ = [
    "AccelerationConstraints",
    "Angle",
    "BayesNetwork",
    "Body",
    "BranchEstimate",
    "Coincide",
    "Constraint",
    "Distance",
    "Driven",
    "FixedAngle",
    "Linear",
    "Mechanism",
    "NaturalRobot",
    "PlanarAccelerometer",
    "PlanarDynamics",
    "PlanarGyroscope",
    "PlanarMarker",
    "PositionConstraints",
    "Slider",
    "Travel",
    "VelocityConstraints",
    "bayes_tree",
    "body_mass_matrix",
    "branches",
    "compare_branches",
    "dependent_network",
    "factor_graph",
    "forward",
    "forward_independent",
    "independent_network",
    "inverse",
    "natural",
    "smooth_with_isam2",
    "solve_with_gtsam",
]
