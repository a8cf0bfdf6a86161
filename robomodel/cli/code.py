"""``robomodel code``: C source of a robot's functions."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from robomodel.cli.common import blaming
from robomodel.cli.robot import Robot
from robomodel.reports.document import Document

EXAMPLES = (
    "robomodel code four_bar -o generated",
    "robomodel code mini_cheetah -o generated --functions rnea,crba",
    "robomodel code parallel_ankle -o generated --ros2-control",
)


def command(
    robot: Robot,
    output: Path,
    functions: str = "rnea,aba",
    dtype: Literal["float64", "float32"] = "float64",
    stem: str | None = None,
    ros2_control: bool = False,
) -> Document:
    """Write functions of a robot as C99, which C++ includes too: no heap, no state, no libraries.

    Keys of the JSON document: robot, file, source, header, functions, dtype, warnings, and
    transmission with --ros2-control.

    Options:
        -o, --output DIR: The folder for NAME.c and NAME.h, made if need be.
        --functions A,B,…: Which: names as of rm.compile, and close, integrate, joint_positions,
            joint_velocities, from_actuators; after a colon the link that one is about, as
            frame_pose:foot.
        --dtype: The type of all numbers.
        --stem NAME: What names begin with. [default: the robot's]
        --ros2-control: Also write NAME_transmission.hpp, a Transmission of ros2_control between
            actuators and independent joints, and the functions that it calls.
    """
    from robomodel.interop.c import identifier, write_c

    model = robot.load()
    names = [each.strip() for each in functions.split(",") if each.strip()]
    with blaming(robot.file):
        output.mkdir(parents=True, exist_ok=True)
        paths = write_c(
            model,
            output / f"{identifier(stem or model.name)}.c",
            names,
            dtype=dtype,
            ros2_control=ros2_control,
        )
    keys = ("source", "header", "transmission")
    written = {key: str(path) for key, path in zip(keys, paths, strict=False)}
    *others, last = written.values()
    data = {"robot": model.name, **written, "functions": names, "dtype": dtype}
    return Document(f"wrote {', '.join(others)} and {last}", "", data=data)
