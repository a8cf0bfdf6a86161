"""``robomodel actuation``: what motors can do through gears and linkages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from robomodel.cli import complete
from robomodel.cli.frame import Answer, UserError
from robomodel.cli.robot import Robot
from robomodel.dynamics.kinematics.frames import FrameLike
from robomodel.reports.actuation import study

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLES = (
    "robomodel actuation planar_leg_linkage",
    "robomodel actuation belt_leg --html leg.html",
)


def command(
    robot: Robot,
    foot: Annotated[
        str | None,
        typer.Option(
            metavar="LINK[:X,Y,Z]",
            autocompletion=complete.links(),
            help="Find the workspace of this link's origin, or of a point in its axes.",
        ),
    ] = None,
    joints: Annotated[
        list[str] | None,
        typer.Option(
            "--joint",
            metavar="JOINT",
            autocompletion=complete.joints(),
            help="A joint that moves the foot, one or two of them. [default: the last two]",
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="OUT.html", help="Also write the study as a page with pictures."),
    ] = None,
    pictures: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Also draw its charts into files of this folder; needs Matplotlib.",
        ),
    ] = None,
    suffix: Annotated[
        Literal["png", "svg", "pdf"], typer.Option("--format", help="Of these pictures.")
    ] = "png",
) -> Answer:
    """Say what motors can do through gears and linkages: ratios, torque, speed, range, workspace.

    Keys of the JSON document: robot, file, actuators (name, joint, effort_limit, velocity_limit,
    stall_torque, no_load_speed, ratios), joints (joint, tree, actuators, lower, upper, lower_by,
    upper_by, hidden, effort, velocity: what the file of an open tree should have; torque, speed:
    least and most over the range; file: what this one has), four_bars (joints, loop, lengths,
    frame, kind, margin, input, transmission_angle), polygons (joints, unit, poses), workspaces
    (foot, joints, origin, axes, extent, singular), pictures (paths), warnings. SI units, radians;
    null is infinite or not said. docs/actuation.md explains the numbers.
    """
    if joints and foot is None:
        raise UserError("--joint moves a foot: name it by --foot")
    model = robot.load()
    try:
        found = study.actuation(model, foot=_foot(foot), joints=tuple(joints or ()))
    except (KeyError, ValueError) as error:
        said = error.args[0] if isinstance(error, KeyError) else error
        raise UserError(f"{robot.file}: {said}") from error
    if html is not None:
        html.write_text(found.html(), encoding="utf-8")
    drawn: list[Path] = []
    if pictures is not None:
        from robomodel.reports.actuation.page import charts
        from robomodel.views.charts import draw_charts

        drawn = draw_charts(charts(found), pictures, suffix)
    paths = [str(path) for path in drawn]

    def show(to: Console) -> None:
        for line in found.lines():
            to.print(line)
        if paths:
            to.print(f"\n{len(paths)} pictures in {pictures}")

    return Answer(document={**found.as_dict(), "file": robot.file, "pictures": paths}, show=show)


def _foot(text: str | None) -> FrameLike | None:
    """A link, or a link and a point."""
    if text is None or ":" not in text:
        return text
    link, _, said = text.rpartition(":")
    try:
        x, y, z = (float(number) for number in said.split(","))
    except ValueError:
        return text
    return link, (x, y, z)
