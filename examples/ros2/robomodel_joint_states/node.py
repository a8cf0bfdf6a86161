"""A node that completes joint states: motors' or encoders' in, those of all joints out.

Parameters: ``robot``, a robot file or the name of a shipped one; ``input``, ``output``, topics.
What lacks joints, contradicts itself or does not close is not published; the node says how often.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import robomodel as rm

FIELDS = {"positions": "position", "velocities": "velocity", "efforts": "effort"}


class Completion:
    """Messages of some joints, completed: each state begins at the one before."""

    def __init__(self, model: rm.Model) -> None:
        self.model = model
        self.single = {joint.name for joint in model.joints if joint.nv == 1}
        self.q = model.neutral()
        self.lost = 0

    def fill(self, message: Any, result: Any) -> bool:
        """Fill a message by another one; False if that lacks joints or contradicts itself."""
        readings: dict[str, dict[str, float]] = {}
        for what, field in FIELDS.items():
            pairs = zip(message.name, getattr(message, field), strict=False)
            readings[what] = {n: x for n, x in pairs if n in self.single and math.isfinite(x)}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                states = rm.joint_states(self.model, **readings, guess=self.q)
        except ValueError:  # joints that do not determine the others
            states = {"status": 1}
        if states["status"]:
            self.lost += 1
            return False
        self.q = states["q"]
        result.header = message.header
        result.name = list(states["positions"])
        for what, field in FIELDS.items():
            setattr(result, field, [float(x) for x in states.get(what, {}).values()])
        return True


def main() -> None:
    """Run the node."""
    import rclpy
    from rclpy.node import Node
    from sensor_msgs.msg import JointState

    rclpy.init()
    node = Node("joint_state_completion")
    names = {"robot": "", "input": "motor_states", "output": "joint_states"}
    robot, heard, told = (node.declare_parameter(*each).value for each in names.items())
    completion = Completion(rm.robots.load(robot) if robot in rm.robots.names() else rm.load(robot))
    publisher = node.create_publisher(JointState, told, 10)

    def on_message(message: JointState) -> None:
        result = JointState()
        if completion.fill(message, result):
            publisher.publish(result)
        elif completion.lost in (1, 10, 100) or completion.lost % 1000 == 0:
            node.get_logger().warning(f"{completion.lost} messages are not complete")

    node.create_subscription(JointState, heard, on_message, 10)
    rclpy.spin(node)
