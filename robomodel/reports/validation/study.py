"""Validation: every check on a model, and what reading its file has to say."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from robomodel.errors import DescriptionError, DescriptionWarning, Source
from robomodel.loading import load
from robomodel.model import Model, build
from robomodel.parsers.checks import check_plausible
from robomodel.reports.comparison.match import Robot
from robomodel.reports.comparison.report import UNITS, shown
from robomodel.reports.comparison.study import compare_robots, open_tree
from robomodel.reports.document import SEVERITIES, Finding, note
from robomodel.reports.validation import mechanism_checks as mechanics
from robomodel.reports.validation import number_checks as numbers
from robomodel.reports.validation import rotor_checks as rotors
from robomodel.reports.validation import symmetry_checks as symmetry
from robomodel.reports.validation.context import CheckContext
from robomodel.reports.validation.report import Report

CHECKS: tuple[Callable[[CheckContext], Iterator[Finding]], ...] = (
    mechanics.check_redundancy,
    mechanics.check_clusters,
    mechanics.check_closing,
    mechanics.check_singularities,
    mechanics.check_coordinates,
    mechanics.check_limits,
    numbers.check_inertias,
    numbers.check_centres,
    symmetry.check_symmetry,
    numbers.check_shapes,
    rotors.check_rotors,
    numbers.check_units,
)
"""All checks; docs/validate.md explains them by the ids of their findings."""


def validate(model: object, *, reference: object = None, **options: Any) -> Report:
    """Look for what is wrong or odd in a robot.

    Checked are structure, closing of loops, singularities within the joint limits, the choice of
    independent coordinates, transmissions, inertias, limits and units; docs/validate.md lists the
    checks. Findings are errors, warnings or notes, each with its place in the file, its number and
    a remedy.

    Args:
        model: A :class:`~robomodel.model.Model`, or its file, which is loaded; its warnings are
            findings, and a file that does not load makes a report of that one error.
        reference: A model or file of the same robot that is right: last year's, the stock file.
            Differences from it, as :func:`robomodel.compare` lists them, are findings:
            warnings where the numbers show the cause, else notes. The links and joints of a file
            whose loops make no mechanism are compared, too.
        **options: Those of :func:`robomodel.load`, for what is not a model.

    Returns:
        report: The findings.

    Raises:
        DescriptionError: The reference cannot be loaded.
        TypeError: Options for a model that is loaded already.
    """
    right = reference if reference is None or isinstance(reference, Model) else load(reference)
    if isinstance(model, Model):
        if options:
            raise TypeError("options are for loading, and a model is loaded already")
        return of_model(model, _issues(model), right)
    try:
        with _recorded() as caught:
            loaded = load(model, **options)
    except DescriptionError as error:
        return of_error(error, right)
    return of_model(loaded, caught, right)


def of_model(
    model: Model,
    issues: Iterable[warnings.WarningMessage] = (),
    reference: Model | None = None,
) -> Report:
    """The report on a model, with the warnings of its reading and differences from another."""
    context = CheckContext(model)
    findings = [_as_finding(issue.message) for issue in issues]
    for check in CHECKS:
        findings += check(context)
    if reference is not None:
        findings += differences(Robot.of(reference), Robot.of(model))
    return Report(
        model.name,
        model.description.source.file,
        tuple(sorted(dict.fromkeys(findings), key=_gravest_first)),
        tuple(context.linkages.values()),
    )


def of_error(error: DescriptionError, reference: Model | None = None) -> Report:
    """The report on a file that does not load, with differences from another as far as it was read.

    A file whose loops make no mechanism is compared with its loops open.
    """
    findings = [Finding("error", "load", error.source, error.message)]
    if reference is not None and error.description is not None:
        other = open_tree(error.description)
        findings += differences(Robot.of(reference), other) if other else ()
    return Report("", error.file, tuple(findings))


def differences(reference: Robot, robot: Robot) -> Iterator[Finding]:
    """What differs from a reference: warnings where the cause shows, else notes."""
    for each in compare_robots(reference, robot).differences:
        if each.quantity == "missing":
            where = "the reference has it" if each.b is None else "the reference has none"
            message = f"{each.kind} '{each.element}': {where}"
            yield note("difference", each.source, message, "nothing to do if that is meant")
            continue
        unit = UNITS.get(each.quantity, "")
        cause = f": {each.explanation}" if each.explanation else ""
        yield Finding(
            "warning" if each.cause else "note",
            each.cause or "difference",
            each.source,
            f"{each.quantity} of {each.kind} '{each.element}' is {shown(each.b)}"
            f"{unit and ' ' + unit}, in the reference {shown(each.a)}{cause}",
            "check which of the two is right" if each.cause else "nothing to do if that is meant",
            each.torque if 0.0 < each.torque < math.inf else None,
            "relative" if 0.0 < each.torque < math.inf else "",
        )


def _gravest_first(finding: Finding) -> tuple[int, float, str, str]:
    """Order of findings: by severity, then by place in the file."""
    line = math.inf if finding.source.line is None else finding.source.line
    return SEVERITIES.index(finding.severity), line, finding.check, finding.source.element


def _recorded() -> warnings.catch_warnings[list[warnings.WarningMessage]]:
    return warnings.catch_warnings(record=True, action="always", category=DescriptionWarning)


def _issues(model: Model) -> list[warnings.WarningMessage]:
    """What would be warned of if the model were read again, but for its file's words."""
    with _recorded() as caught:
        check_plausible(model.description)
        build(model.description)
    return caught


def _as_finding(message: Warning | str) -> Finding:
    if isinstance(message, DescriptionWarning):
        return Finding("warning", "file", message.source, message.message)
    return Finding("warning", "file", Source(), str(message))
