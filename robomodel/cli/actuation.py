"""``robomodel actuation``: what motors do through gears and linkages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

import robomodel as rm
from robomodel.cli.common import (
    HasPage,
    UserError,
    blaming,
    complete_joints,
    complete_robots,
)
from robomodel.cli.robot import Robot
from robomodel.dynamics.kinematics.frames import FrameLike


def actuation(
    robot: Robot,
    other: Annotated[
        str | None,
        typer.Argument(
            metavar="OTHER",
            help="Another design, a file or the name of a shipped robot: its numbers beside those "
            "of the first, its curves over them. All options are for both.",
            autocompletion=complete_robots,
        ),
    ] = None,
    foot: str | None = None,
    joints: Annotated[
        list[str] | None,
        typer.Option(
            "--joint",
            metavar="JOINT",
            autocompletion=complete_joints(),
            help="A joint that moves the foot, one or two of them. [default: the last two]",
        ),
    ] = None,
    rows: str | None = None,
    plots: Path | None = None,
    suffix: Annotated[
        Literal["png", "svg", "pdf", "csv"], typer.Option("--format", help="Of these files.")
    ] = "png",
) -> HasPage:
    """Print what motors do through gears and linkages: ratios, torque, speed, range, workspace.

    Keys of the JSON document: robot, file, actuators (name, joint, effort_limit, velocity_limit,
    effort_lower, velocity_lower, stall_torque, no_load_speed, slides, ratios: low and high over the
    range of a joint with at_rest at neutral, least and most anywhere), joints (joint, at_rest,
    tree, actuators, lower, upper, lower_by, upper_by, turns_fully, hidden, range_at_rest,
    dead_points, dead_point_kinds, passive; effort, velocity, effort_lower, velocity_lower: what the
    file of an open tree should have; torque, torque_back, torque_whatever_others_take, speed,
    speed_back, reflected_inertia, condition: least and most over the range; anywhere: the same
    where joints of the limb reach together; file: what this one has), balls (joints of limbs with
    several freedoms, which have no row), limbs (joints, motors, ratios, condition, worst, share,
    limited, lost_corners), four_bars (joints, loop, lengths, frame, kind, margin, input, carried:
    the least angle where others between the same links have none greater, transmission_angle),
    transmissions (rod, joint, input, transmission_angle), cylinders (cylinder, joint, rest, lever,
    angle, dead_points, margin, push, pull), losses (behind lossy gears: joint, motors; drives,
    holds, turns: force at the joint),
    polygons (joints, unit, poses), workspaces (foot, joints, origin, axes, extent, singular),
    curves (of each plot name, title, x_label, y_label and lines of label, x, y), pictures (paths of
    --plots), other (of OTHER the keys robot to curves; null without it), warnings. SI units,
    radians; null is infinite or not specified.
    docs/actuation.md explains the numbers.

    Examples:
        robomodel actuation planar_leg_linkage
        robomodel actuation four_bar crank_rocker --html both.html
        robomodel actuation four_bar --plots curves --format csv

    Options:
        --rows JOINT,…: Rows for these joints, with commas between. [default: those of limbs]
        --foot LINK[:X,Y,Z]: Find the workspace of this link's origin, or of a point in its axes.
        --plots, --pictures FOLDER: Also write the plots into files of this folder; pictures need
            Matplotlib.
    """
    if joints and foot is None:
        raise UserError("--joint moves a foot: name it by --foot")
    robots = [robot] if other is None else [robot, replace(robot, file=other)]
    models = [each.load() for each in robots]
    studies = []
    for each, model in zip(robots, models, strict=True):
        with blaming(each.file):
            chosen = None if rows is None else [x for x in rows.split(",") if x]
            studies.append(
                rm.actuation(model, chosen, foot=_foot(foot), joints=tuple(joints or ()))
            )
    document = studies[0].document if other is None else studies[0].beside(studies[1])
    paths = [] if plots is None else [str(x) for x in document.write_plots(plots, suffix)]
    second = None if other is None else {**document.data["other"], "file": other}
    data = {**document.data, "file": robot.file, "pictures": paths, "other": second}
    return HasPage(document=replace(document, data=data))


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
