"""The package as colcon builds it; robomodel itself is installed by pip."""

from setuptools import setup

NAME = "robomodel_joint_states"
setup(
    name=NAME,
    version="0.1.0",
    packages=[NAME],
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml", "launch/joint_states.launch.py"]),
    ],
    entry_points={"console_scripts": [f"joint_states = {NAME}.node:main"]},
)
