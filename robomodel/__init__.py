"""Exact rigid-body dynamics of robots as they are built, from their description files."""

from robomodel import robots
from robomodel.dynamics import (
    aba,
    aba_derivatives,
    bias_force,
    center_of_mass,
    centroidal_momentum,
    crba,
    energy,
    frame_pose,
    frame_velocity,
    jacobian,
    rnea,
    rnea_derivatives,
)
from robomodel.dynamics.compiled import Kernel, compile
from robomodel.errors import ClosureError, DescriptionError, DescriptionWarning
from robomodel.loading import load
from robomodel.model import Model
from robomodel.symbolic import to_casadi

__version__ = "0.1.0"

__all__ = [
    "ClosureError",
    "DescriptionError",
    "DescriptionWarning",
    "Kernel",
    "Model",
    "aba",
    "aba_derivatives",
    "bias_force",
    "center_of_mass",
    "centroidal_momentum",
    "compile",
    "crba",
    "energy",
    "frame_pose",
    "frame_velocity",
    "jacobian",
    "load",
    "rnea",
    "rnea_derivatives",
    "robots",
    "to_casadi",
]
