"""``robomodel joint-states``: logs of some joints' states, completed by all others."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from robomodel.cli.common import Result, blaming
from robomodel.cli.robot import Robot
from robomodel.errors import few
from robomodel.identification import complete_log
from robomodel.identification.joint_states import incomplete
from robomodel.reports.document import Document


def joint_states(
    robot: Robot,
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="CSV or Parquet with columns time [s], q.JOINT, v.JOINT, tau.JOINT of some "
            "joints; or a bag of ROS (.mcap, .bag, .db3, a folder) with JointState messages.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="OUT",
            help="The completed log: .csv, .parquet, .mcap, .db3, or without an ending a folder "
            "of rosbag2.",
        ),
    ],
    topic: Annotated[
        str | None, typer.Option(help="The topic of a bag that has several of joint states.")
    ] = None,
    frames: Annotated[
        str,
        typer.Option(
            metavar="LINKS",
            help="Links whose poses in the world are written, too, with commas "
            "between: columns x.LINK to qw.LINK, in bags /tf.",
        ),
    ] = "",
) -> Result:
    """Complete a log of some joints' states, as of motors, by all other joints'.

    Positions and velocities go through loops, gears and mimics; efforts of independent joints are
    Gᵀ times all that the log has. docs/actuation.md explains it.

    Exit status: 0 if all states are complete, 1 if some lack joints, contradict themselves or do
    not close: bags leave these out, tables have empty cells.

    Keys of the JSON document: robot, file, output, states, complete, lacking, contradicting
    (numbers of states), joints, unused (columns, topics), warnings.

    Examples:
        robomodel excite four_bar -o joints.csv
        robomodel joint-states four_bar joints.csv -o all.csv --frames link2
    """
    model = robot.load()
    with blaming(str(log)), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the counts say it
        done = complete_log(model, log, output, topic, [x for x in frames.split(",") if x])
    lost = incomplete(done.lacking, done.contradicting)
    text = (
        f"{output}: {done.complete} of {done.states} states, {len(done.joints)} joints"
        + (f"; {lost}" if lost else "")
        + (f"\nnot used: {few(done.unused)}" if done.unused else "")
    )
    return Result(
        document=Document(
            model.name, text, data={"robot": model.name, "output": str(output), **asdict(done)}
        ),
        text=text,
        status=1 if lost else 0,
    )
