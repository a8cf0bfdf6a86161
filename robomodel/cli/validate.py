"""``robomodel validate``: what is wrong or odd in a robot."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robomodel.cli.frame import Answer, UserError
from robomodel.cli.output import print_list
from robomodel.cli.robot import Robot
from robomodel.errors import DescriptionError, DescriptionWarning
from robomodel.reports.validation.findings import likewise
from robomodel.reports.validation.report import Report
from robomodel.reports.validation.study import of_error, of_model

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLES = (
    "robomodel validate crank_rocker",
    "robomodel validate belt_leg --html leg.html",
)


def command(
    robot: Robot,
    html: Annotated[
        Path | None,
        typer.Option(metavar="OUT.html", help="Also write the report as a page with pictures."),
    ] = None,
) -> Answer:
    """Look for what is wrong or odd: structure, loops, singularities, gears, inertias, units.

    Exit status: 0 if there are at most notes, 1 for warnings and errors, 2 for a file that cannot
    be loaded, whose report is that one error. docs/validate.md explains the checks.

    Keys of the JSON document: robot, file, ok, counts (error, warning, note), findings (severity,
    check, element, file, line, message, remedy, value, unit), linkages (what was measured of each
    cluster with loops), warnings (what reading the file warned of, which
    are findings too), and error where it cannot be loaded. SI units; null is infinite or not said.
    """
    broken: UserError | None = None
    try:
        with warnings.catch_warnings(record=True) as caught:  # they are findings here
            warnings.simplefilter("always", DescriptionWarning)
            model = robot.load()
    except DescriptionError as error:
        broken, report = UserError.of(error, robot.file), of_error(error)
    else:
        report = of_model(model, caught)
    if html is not None:
        html.write_text(report.html(), encoding="utf-8")
    return Answer(
        document={**(broken.as_dict() if broken else {}), **report.as_dict()},
        show=lambda to: _show(report, to),
        status=2 if broken else 0 if report.ok else 1,
        complaint=str(broken or ""),
    )


def _show(report: Report, to: Console) -> None:
    to.print(f"{report.robot or report.file}: {report.summary}")
    for first, *others in report.alike:
        style = {"error": "bold red", "warning": "bold yellow"}.get(first.severity, "")
        to.print()
        to.print(f"{first.severity} [{first.check}]", style=style, end=" ")
        to.print(str(first.source))
        to.print(f"  {first.message}" + (f"; {first.remedy}" if first.remedy else ""))
        if others:
            to.print(f"  {likewise(first, others)}")
    lines = [line for linkage in report.linkages for line in linkage.lines()]
    print_list(to, "Measured", lines)
