"""Differences of a robot from a reference that is right, as findings."""

from __future__ import annotations

import math
from collections.abc import Iterator

from robomodel.description import Description
from robomodel.model import Model
from robomodel.reports.comparison.differences import UNITS, Difference, shown
from robomodel.reports.comparison.match import RobotAtZero
from robomodel.reports.comparison.study import compare_robots, open_tree
from robomodel.reports.document import Finding, Severity
from robomodel.reports.validation.bounds import BOUNDS

MEANT = "nothing to do if that is meant"


def from_reference(reference: Model, robot: Model | Description) -> Iterator[Finding]:
    """:func:`differences` of a model from a reference, or of a file that makes none.

    That is compared with its loops open, if its open tree makes a model.
    """
    other = RobotAtZero.of(robot) if isinstance(robot, Model) else open_tree(robot)
    if other is not None:
        yield from differences(RobotAtZero.of(reference), other)


def differences(reference: RobotAtZero, robot: RobotAtZero) -> Iterator[Finding]:
    """Differences from a reference: warnings if the cause shows, else notes."""
    for each in compare_robots(reference, robot).differences:
        if each.quantity == "missing":
            where = "the reference has it" if each.b is None else "the reference has none"
            message = f"{each.kind} '{each.element}': {where}"
            severity: Severity = "warning" if each.torque else "note"
            remedy = "check which of the two is right" if each.torque else MEANT
            yield Finding(severity, "difference", each.source, message, remedy)
            continue
        unit = UNITS.get(each.quantity, "")
        cause = f": {each.explanation}" if each.explanation else ""
        grave = bool(each.cause) or _grave(each)
        yield Finding(
            "warning" if grave else "note",
            each.cause or "difference",
            each.source,
            f"{each.quantity} of {each.kind} '{each.element}' is {shown(each.b)}"
            f"{unit and ' ' + unit}, in the reference {shown(each.a)}{cause}",
            "check which of the two is right" if grave else MEANT,
            each.torque if 0.0 < each.torque < math.inf else None,
            "relative" if 0.0 < each.torque < math.inf else "",
        )


def _grave(each: Difference) -> bool:
    """True if a difference from a reference is a fault in any case: no mass, another ratio."""
    a, b = each.a, each.b
    if not isinstance(a, float) or not isinstance(b, float):
        return False
    if each.quantity == "mass":
        return b == 0.0
    return each.quantity.startswith("ratio") and not (
        a * b > 0.0 and max(a / b, b / a) < BOUNDS.ratio_warned
    )  # fmt: skip
