"""The equations of motion as one sparse linear system (document 003), and what sensors add to it.

Problems, that is what is known of it and how it is solved, are :mod:`.problem.problem`.
"""

from robomodel.dynamics.equations.assembly import equations
from robomodel.dynamics.equations.sensors import (
    Sensor,
    accelerometer,
    contact,
    force_torque,
    gyroscope,
    joint_acceleration,
    minimum_torque,
    planar,
    torque,
)
from robomodel.dynamics.equations.system import Factor, System, Variable

__all__ = [
    "Factor",
    "Sensor",
    "System",
    "Variable",
    "accelerometer",
    "contact",
    "equations",
    "force_torque",
    "gyroscope",
    "joint_acceleration",
    "minimum_torque",
    "planar",
    "torque",
]
