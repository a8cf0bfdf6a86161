"""Factor graphs over time: estimation, smoothing and planning of motions.

``graph``, ``factors`` and ``spaces`` say what a graph is, ``solve`` and ``incremental`` solve it,
``problems`` are ready-made ones. The names below are those that users need; the rest is in the
modules.
"""

from robomodel.estimation.factors import Accelerometer, Encoders, Gyroscope, Reading
from robomodel.estimation.graph import Graph
from robomodel.estimation.incremental import Incremental
from robomodel.estimation.leg_odometry import LegNoise, LegOdometry, leg_odometry
from robomodel.estimation.parameters import with_unknown_parameters
from robomodel.estimation.planning import Goal, Obstacle, Plan, Stance, plan
from robomodel.estimation.problems import motion
from robomodel.estimation.solve import solve

__all__ = [
    "Accelerometer",
    "Encoders",
    "Goal",
    "Graph",
    "Gyroscope",
    "Incremental",
    "LegNoise",
    "LegOdometry",
    "Obstacle",
    "Plan",
    "Reading",
    "Stance",
    "leg_odometry",
    "motion",
    "plan",
    "solve",
    "with_unknown_parameters",
]
