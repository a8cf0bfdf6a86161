"""Control: inverse kinematics and whole-body control as quadratic programmes."""

from robomodel.control.inverse_dynamics import InverseDynamics
from robomodel.control.inverse_kinematics import InverseKinematics, inverse_kinematics
from robomodel.control.limits import AccelerationLimit, HalfSpace
from robomodel.control.quadratic import InfeasibleError
from robomodel.control.tasks import (
    ActuatorTask,
    CenterOfMassTask,
    FrameTask,
    JointTask,
    PointTask,
    PostureTask,
    RelativeFrameTask,
    Task,
)

__all__ = [
    "AccelerationLimit",
    "ActuatorTask",
    "CenterOfMassTask",
    "FrameTask",
    "HalfSpace",
    "InfeasibleError",
    "InverseDynamics",
    "InverseKinematics",
    "JointTask",
    "PointTask",
    "PostureTask",
    "RelativeFrameTask",
    "Task",
    "inverse_kinematics",
]
