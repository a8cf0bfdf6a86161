"""``robomodel validate``: what is wrong or odd in a robot."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from robomodel.cli.output import AsJson, console, print_json, print_list
from robomodel.cli.robot import (
    DENSITY,
    Density,
    Extend,
    File,
    FloatingBase,
    InertiaFrom,
    Name,
    UserError,
    load,
    reporting,
)
from robomodel.errors import DescriptionError, DescriptionWarning
from robomodel.studies.checks import of_error, of_model
from robomodel.studies.report import Report, place


def command(
    file: File,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT.html",
            help="Also write the report as a page with pictures.",
            show_default=False,
        ),
    ] = None,
    extend: Extend = None,
    floating_base: FloatingBase = None,
    inertia_from: InertiaFrom = None,
    density: Density = DENSITY,
    name: Name = None,
    as_json: AsJson = False,
) -> None:
    """Look for what is wrong or odd: structure, loops, singularities, gears, inertias, units.

    Exit status: 0 if there are at most notes, 1 for warnings and errors, 2 for a file that cannot
    be loaded, whose report is that one error. docs/validate.md explains the checks.

    Keys of the JSON document: robot, file, ok, counts (error, warning, note), findings (severity,
    check, element, file, line, message, remedy, value, unit), linkages (what was measured of each
    cluster with loops). SI units; null is infinite or not said.
    """
    broken: DescriptionError | None = None
    with reporting(file):
        report: Report
        try:
            with warnings.catch_warnings(record=True) as caught:  # they are findings here
                warnings.simplefilter("always", DescriptionWarning)
                model = load(file, extend, floating_base, False, inertia_from, density, name)
        except DescriptionError as error:
            broken, report = error, of_error(error)
        else:
            report = of_model(model, caught)
        if html is not None:
            html.write_text(report.html(), encoding="utf-8")
    if as_json:
        print_json(report.as_dict())
    else:
        _show(report)
    if broken is not None:
        raise UserError(str(broken))
    if not report.ok:
        raise typer.Exit(1)


def _show(report: Report) -> None:
    to = console()
    to.print(f"{report.robot or report.file}: {report.summary}")
    for first, *others in report.alike:
        style = {"error": "bold red", "warning": "bold yellow"}.get(first.severity, "")
        to.print()
        to.print(f"{first.severity} [{first.check}]", style=style, end=" ")
        to.print(str(first.source))
        to.print(f"  {first.message}" + (f"; {first.remedy}" if first.remedy else ""))
        if others:
            to.print(f"  likewise {', '.join(place(each.source) for each in others)}")
    lines = [line for linkage in report.linkages for line in linkage.lines()]
    print_list(to, "Measured", lines)
