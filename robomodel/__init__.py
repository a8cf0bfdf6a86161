"""Exact rigid-body dynamics of robots as they are built, from their description files."""

from robomodel import robots
from robomodel.dynamics import (
    aba,
    aba_derivatives,
    armature,
    bias_force,
    center_of_mass,
    centroidal_momentum,
    crba,
    efpa,
    energy,
    frame_pose,
    frame_velocity,
    impulse,
    jacobian,
    rnea,
    rnea_derivatives,
)
from robomodel.dynamics.compiled import Kernel, compile
from robomodel.errors import ClosureError, DescriptionError, DescriptionWarning
from robomodel.loading import load
from robomodel.model import Model
from robomodel.symbolic import to_casadi
from robomodel.writers import write_mjcf, write_sdf, write_urdf

__version__ = "0.1.0"

__all__ = [
    "ClosureError",
    "DescriptionError",
    "DescriptionWarning",
    "Kernel",
    "Model",
    "aba",
    "aba_derivatives",
    "armature",
    "bias_force",
    "center_of_mass",
    "centroidal_momentum",
    "compile",
    "crba",
    "efpa",
    "energy",
    "frame_pose",
    "frame_velocity",
    "impulse",
    "jacobian",
    "load",
    "rnea",
    "rnea_derivatives",
    "robots",
    "to_casadi",
    "write_mjcf",
    "write_sdf",
    "write_urdf",
]
