"""``robomodel validate``: what is wrong or odd in a robot."""

from __future__ import annotations

import warnings
from dataclasses import replace

from robomodel.cli.common import Report, UserError
from robomodel.cli.robot import Robot
from robomodel.errors import DescriptionError, DescriptionWarning
from robomodel.reports.validation.study import of_error, of_model

EXAMPLES = (
    "robomodel validate crank_rocker",
    "robomodel validate belt_leg --html leg.html",
)


def command(robot: Robot) -> Report:
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
    document = report.document
    if broken is not None:
        document = replace(document, data={**broken.as_dict(), **document.data})
    return Report(
        document=document,
        status=2 if broken else 0 if report.ok else 1,
        complaint=str(broken or ""),
    )
