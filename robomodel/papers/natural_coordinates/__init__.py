"""Natural coordinates: planar mechanisms by the positions of points (document 000).

:class:`Mechanism` is made of :class:`Body` objects and constraints; :func:`natural` converts any
planar robot.
"""

from robomodel.papers.natural_coordinates.constraints import (
    Angle,
    Coincide,
    Constraint,
    Distance,
    FixedAngle,
    Linear,
    Slider,
    Travel,
)
from robomodel.papers.natural_coordinates.conversion import natural
from robomodel.papers.natural_coordinates.mechanism import Body, Mechanism, body_mass_matrix
from robomodel.papers.natural_coordinates.robot import NaturalRobot

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
