"""Joint states of motors, completed; and the robot's frames from them."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node


def generate_launch_description() -> LaunchDescription:
    """The node, and robot_state_publisher on what it publishes."""
    robot = LaunchConfiguration("robot")
    return LaunchDescription(
        [
            DeclareLaunchArgument("robot", description="Robot file with its loops."),
            DeclareLaunchArgument("input", default_value="motor_states"),
            Node(
                package="robomodel_joint_states",
                executable="joint_states",
                parameters=[{"robot": robot, "input": LaunchConfiguration("input")}],
            ),
            Node(package="robot_state_publisher", executable="robot_state_publisher",
                 arguments=[robot]),
        ]
    )  # fmt: skip
