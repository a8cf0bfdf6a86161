"""What validation says: findings, and what was measured of the robot's linkages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from robomodel.documents import count, plain
from robomodel.reports.validation.findings import (
    _NAMES_AND_NUMBERS,
    NUMBERS,
    SEVERITIES,
    Finding,
    Severity,
    likewise,
)
from robomodel.reports.validation.linkage import Linkage


@dataclass(frozen=True)
class Report:
    """The findings on a robot, and the study of each cluster with loops.

    ``str(report)`` is text, :meth:`as_dict` is for JSON, :meth:`html` a page without dependencies.

    Attributes:
        robot: The robot's name.
        file: Its file.
        findings: The findings, the gravest first.
        linkages: The study of each cluster with loops.
    """

    robot: str
    file: str
    findings: tuple[Finding, ...]
    linkages: tuple[Linkage, ...] = ()

    @cached_property
    def counts(self) -> dict[Severity, int]:
        """The number of findings of each severity."""
        found = Counter(finding.severity for finding in self.findings)
        return {severity: found[severity] for severity in SEVERITIES}

    @property
    def ok(self) -> bool:
        """Whether there are at most notes."""
        return all(finding.severity == "note" for finding in self.findings)

    def __str__(self) -> str:
        lines = [f"{self.robot or self.file}: {self.summary}"]
        for first, *others in self.alike:
            lines.append(str(first))
            if others:
                lines.append(f"  {likewise(first, others)}")
        lines += [line for linkage in self.linkages for line in linkage.lines()]
        return "\n".join(lines)

    @cached_property
    def alike(self) -> list[list[Finding]]:
        """The findings, those together that differ only in where they are, and by how much."""
        groups: dict[tuple[object, ...], list[Finding]] = {}
        for each in self.findings:
            words = (each.message, each.remedy)
            if each.check in NUMBERS:
                words = (_NAMES_AND_NUMBERS.sub("", each.message), "")
            groups.setdefault((each.severity, each.check, *words), []).append(each)
        return list(groups.values())

    @property
    def summary(self) -> str:
        """The counts, in words."""
        if not self.findings:
            return "nothing found"
        return ", ".join(count(n, severity) for severity, n in self.counts.items() if n)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain dicts, lists, numbers and strings; None is not finite or not said."""
        return {
            "robot": self.robot,
            "file": self.file,
            "ok": self.ok,
            "counts": dict(self.counts),
            "findings": [
                {
                    "severity": each.severity,
                    "check": each.check,
                    "element": each.source.element,
                    "file": each.source.file,
                    "line": each.source.line,
                    "message": each.message,
                    "remedy": each.remedy,
                    "value": plain(each.value),
                    "unit": each.unit,
                }
                for each in self.findings
            ],
            "linkages": [linkage.as_dict() for linkage in self.linkages],
            "warnings": [
                f"{each.source}: {each.message}" for each in self.findings if each.check == "file"
            ],
        }

    def html(self) -> str:
        """The report as one HTML page with pictures, which needs nothing besides."""
        from robomodel.reports.validation.page import page

        return page(self)
