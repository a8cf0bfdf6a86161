"""Natural coordinates: planar mechanisms by the positions of points (document 000).

:class:`Mechanism` is made of :class:`Body` objects and constraints; :func:`natural` converts any
planar robot.
"""

from robomodel.dynamics.natural.constraints import (
    Angle,
    Coincide,
    Constraint,
    Distance,
    FixedAngle,
    Linear,
    Slider,
    Travel,
)
from robomodel.dynamics.natural.conversion import natural
from robomodel.dynamics.natural.mechanism import Body, Mechanism, body_mass_matrix
from robomodel.dynamics.natural.robot import NaturalRobot

__all__ = [
    "Angle",
    "Body",
    "Coincide",
    "Constraint",
    "Distance",
    "FixedAngle",
    "Linear",
    "Mechanism",
    "NaturalRobot",
    "Slider",
    "Travel",
    "body_mass_matrix",
    "natural",
]
