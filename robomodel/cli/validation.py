"""``robomodel validate``: what is wrong or odd in a robot."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Annotated

import typer

from robomodel.cli.common import (
    HasPage,
    UserError,
    complete_robots,
)
from robomodel.cli.robot import Robot
from robomodel.errors import DescriptionError, DescriptionWarning
from robomodel.reports.validation.study import of_error, of_model


def validate(
    robot: Robot,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="OTHER",
            help="A file of the same robot that is right: differences from it are findings, too. "
            "Options for loading are for both.",
            autocompletion=complete_robots,
        ),
    ] = None,
) -> HasPage:
    """Look for what is wrong or odd: structure, loops, singularities, gears, inertias, units.

    Exit status: 0 if there are at most notes, 1 for warnings and errors, 2 for a file that cannot
    be loaded, whose report is that one error. docs/validate.md explains the checks.

    Keys of the JSON document: robot, file, ok, counts (error, warning, note), findings (severity,
    check, element, file, line, message, remedy, value, unit), linkages (what was measured of each
    cluster with loops), warnings (what reading the file warned of, which
    are findings too), and error where it cannot be loaded. SI units; null is infinite or not
    specified.

    Examples:
        robomodel validate crank_rocker
        robomodel validate belt_leg --html leg.html
        robomodel validate crank_rocker --reference four_bar
    """
    broken: UserError | None = None
    right = None if reference is None else replace(robot, file=reference).load()
    try:
        with warnings.catch_warnings(record=True) as caught:  # the report has them as findings
            warnings.simplefilter("always", DescriptionWarning)
            model = robot.load()
    except DescriptionError as error:
        broken, report = UserError.of(error, robot.file), of_error(error, right)
    else:
        report = of_model(model, [each.message for each in caught], right)
    document = report.document
    if broken is not None:
        document = replace(document, data={**broken.as_dict(), **document.data})
    return HasPage(
        document=document,
        status=2 if broken else 0 if report.ok else 1,
        complaint=str(broken or ""),
    )
