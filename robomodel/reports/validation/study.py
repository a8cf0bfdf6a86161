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
from robomodel.reports.document import SEVERITIES, Finding
from robomodel.reports.validation import inertia_checks as matter
from robomodel.reports.validation import mechanism_checks as mechanics
from robomodel.reports.validation import rotor_checks as rotors
from robomodel.reports.validation import shape_checks as shapes
from robomodel.reports.validation import symmetry_checks as symmetry
from robomodel.reports.validation import unit_checks as units
from robomodel.reports.validation.context import CheckContext
from robomodel.reports.validation.report import Report

CHECKS: tuple[Callable[[CheckContext], Iterator[Finding]], ...] = (
    mechanics.check_redundancy,
    mechanics.check_clusters,
    mechanics.check_closing,
    mechanics.check_singularities,
    mechanics.check_coordinates,
    mechanics.check_limits,
    matter.check_inertias,
    matter.check_centres,
    symmetry.check_symmetry,
    shapes.check_shapes,
    rotors.check_rotors,
    units.check_units,
)
"""All checks; docs/validate.md explains them by the ids of their findings."""


def validate(model: object, **options: Any) -> Report:
    """Look for what is wrong or odd in a robot.

    Checked are structure, closing of loops, singularities within the joint limits, the choice of
    independent coordinates, transmissions, inertias, limits and units; docs/validate.md lists the
    checks. Findings are errors, warnings or notes, each with its place in the file, its number and
    a remedy.

    Args:
        model: A :class:`~robomodel.model.Model`, or its file, which is loaded; its warnings are
            findings, and a file that does not load makes a report of that one error.
        **options: Those of :func:`robomodel.load`, for what is not a model.

    Returns:
        report: The findings.
    """
    if isinstance(model, Model):
        if options:
            raise TypeError("options are for loading, and a model is loaded already")
        return of_model(model, _issues(model))
    try:
        with _recorded() as caught:
            loaded = load(model, **options)
    except DescriptionError as error:
        return of_error(error)
    return of_model(loaded, caught)


def of_model(model: Model, issues: Iterable[warnings.WarningMessage] = ()) -> Report:
    """The report on a model, with the warnings of its reading."""
    context = CheckContext(model)
    findings = [_as_finding(issue.message) for issue in issues]
    for check in CHECKS:
        findings += check(context)
    return Report(
        model.name,
        model.description.source.file,
        tuple(sorted(dict.fromkeys(findings), key=_gravest_first)),
        tuple(context.linkages.values()),
    )


def _gravest_first(finding: Finding) -> tuple[int, float, str, str]:
    """Order of findings: by severity, then by place in the file."""
    line = math.inf if finding.source.line is None else finding.source.line
    return SEVERITIES.index(finding.severity), line, finding.check, finding.source.element


def of_error(error: DescriptionError) -> Report:
    """The report on a file that does not load."""
    finding = Finding("error", "load", error.source, error.message)
    return Report("", error.file, (finding,))


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
