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
)


def command(
    robot: Robot,
    output: Path,
    functions: str = "rnea,aba",
    dtype: Literal["float64", "float32"] = "float64",
    stem: str | None = None,
) -> Document:
    """Write functions of a robot as C99, which C++ includes too: no heap, no state, no libraries.

    Keys of the JSON document: robot, file, source, header, functions, dtype, warnings.

    Options:
        -o, --output DIR: The folder for NAME.c and NAME.h, made if need be.
        --functions A,B,…: Which: names as of rm.compile, and close, integrate, joint_positions,
            joint_velocities; after a colon the link that one is about, as frame_pose:foot.
        --dtype: The type of all numbers.
        --stem NAME: What names begin with. [default: the robot's]
    """
    from robomodel.interop.c import identifier, write_c

    model = robot.load()
    names = [each.strip() for each in functions.split(",") if each.strip()]
    with blaming(robot.file):
        output.mkdir(parents=True, exist_ok=True)
        source, header = write_c(
            model, output / f"{identifier(stem or model.name)}.c", names, dtype=dtype
        )
    data = {"robot": model.name, "source": str(source), "header": str(header), "functions": names}
    return Document(f"wrote {source} and {header}", "", data=data | {"dtype": dtype})
