"""``robomodel compare``: what differs between two files of one robot."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from robomodel.cli import complete
from robomodel.cli.common import Report, blaming
from robomodel.cli.robot import Robot
from robomodel.reports.comparison.study import compare

EXAMPLES = (
    "robomodel compare four_bar crank_rocker",
    "robomodel compare mini_cheetah mini_cheetah --tolerance 1e-3",
)

OPTIONS = {compare: ("tolerance",)}


def command(
    robot: Robot,
    other: Annotated[
        str,
        typer.Argument(
            metavar="OTHER",
            help="Another file of the robot, or the name of a shipped one; options for loading are "
            "for both.",
            autocompletion=complete.robots,
        ),
    ],
    **options: Any,
) -> Report:
    """List what differs between two files of one robot, the largest effect on torques first.

    Exit status: 0 if nothing differs, 1 if something does. docs/compare.md explains the columns.

    Keys of the JSON document: a, b (the files), same, tolerance, joints (pairs of different names
    that are taken for the same), differences (element, kind, quantity, a, b, torque), warnings. SI
    units; null is infinite or not said.
    """
    first, second = robot.load(), replace(robot, file=other).load()
    with blaming(robot.file, status=1):
        comparison = compare(first, second, **options)
    return Report(document=comparison.document, status=0 if comparison.same else 1)
