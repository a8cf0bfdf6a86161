"""Ids of findings: those of ``validate``, and those of ``lint`` itself."""

from __future__ import annotations

from robomodel.reports.validation.catalogue import CATALOGUE, Check

_OWN = (
    Check(
        "internal", "error",
        "robomodel failed on this file; that is a fault of robomodel.",
        "Report it with the file.",
    ),
    Check(
        "not-checked", "note",
        "The file was not checked: a package or an argument that it needs is not there.",
        "Install the package, or give the argument in [tool.robomodel].",
    ),
    Check(
        "ignore", "warning",
        "A comment switches off a check that is not known, or that finds nothing there.",
        "Remove the comment, or write the id of the check.",
    ),
    Check(
        "rounded-angle", "note",
        "An angle is a rounded right angle, as 1.57, so that what it turns is askew.",
        "Write π/2 with all digits.",
    ),
)  # fmt: skip

CHECKS = {**CATALOGUE, **{check.id: check for check in _OWN}}
"""All checks by their ids."""
