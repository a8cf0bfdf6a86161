"""``robomodel actuation``: what motors can do through gears and linkages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from robomodel.cli import complete
from robomodel.cli.common import Report, UserError, blaming
from robomodel.cli.robot import Robot
from robomodel.dynamics.kinematics.frames import FrameLike
from robomodel.reports.actuation.study import actuation

EXAMPLES = (
    "robomodel actuation planar_leg_linkage",
    "robomodel actuation belt_leg --html leg.html",
    "robomodel actuation four_bar --plots curves --format csv",
)


def command(
    robot: Robot,
    foot: str | None = None,
    joints: Annotated[
        list[str] | None,
        typer.Option(
            "--joint",
            metavar="JOINT",
            autocompletion=complete.joints(),
            help="A joint that moves the foot, one or two of them. [default: the last two]",
        ),
    ] = None,
    plots: Path | None = None,
    suffix: Annotated[
        Literal["png", "svg", "pdf", "csv"], typer.Option("--format", help="Of these files.")
    ] = "png",
) -> Report:
    """Print what motors do through gears and linkages: ratios, torque, speed, range, workspace.

    Keys of the JSON document: robot, file, actuators (name, joint, effort_limit, velocity_limit,
    stall_torque, no_load_speed, slides, ratios), joints (joint, tree, actuators, lower, upper,
    lower_by, upper_by, hidden, effort, velocity: what the file of an open tree should have; torque,
    speed, reflected_inertia: least and most over the range; file: what this one has), four_bars
    (joints, loop, lengths, frame, kind, margin, input, transmission_angle), polygons (joints, unit,
    poses), workspaces (foot, joints, origin, axes, extent, singular), curves (of each plot name,
    title, x_label, y_label and lines of label, x, y), pictures (paths of --plots), warnings. SI
    units, radians; null is infinite or not said. docs/actuation.md explains the numbers.

    Options:
        --foot LINK[:X,Y,Z]: Find the workspace of this link's origin, or of a point in its axes.
        --plots, --pictures FOLDER: Also write the plots into files of this folder; pictures need
            Matplotlib.
    """
    if joints and foot is None:
        raise UserError("--joint moves a foot: name it by --foot")
    model = robot.load()
    with blaming(robot.file):
        study = actuation(model, foot=_foot(foot), joints=tuple(joints or ()))
    document = study.document
    paths = [] if plots is None else [str(x) for x in document.write_plots(plots, suffix)]
    data = {**document.data, "file": robot.file, "pictures": paths}
    return Report(document=replace(document, data=data))


def _foot(text: str | None) -> FrameLike | None:
    """A link, or a link and a point."""
    if text is None or ":" not in text:
        return text
    link, _, point = text.rpartition(":")
    try:
        x, y, z = (float(number) for number in point.split(","))
    except ValueError:
        return text
    return link, (x, y, z)
