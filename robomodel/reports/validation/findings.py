"""What checks find: where, what, by how much; and how findings are grouped and told."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from robomodel.errors import Source

Severity = Literal["error", "warning", "note"]


SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""From the gravest on."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong or odd: where it is, what, by how much (``value`` in ``unit``), what to do.

    ``check`` is the id of the check in docs/validate.md. A note needs no action.
    """

    severity: Severity
    check: str
    source: Source
    message: str
    remedy: str = ""
    value: float | None = None
    unit: str = ""

    def __str__(self) -> str:
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.source}: {self.severity}: {self.message}{remedy} [{self.check}]"


warning = partial(Finding, "warning")
note = partial(Finding, "note")


NUMBERS = frozenset(
    ("triangle", "inertia-size", "point-mass", "centre-of-mass", "ratio", "rotor-mass",
     "rotor-inertia", "rotor-twice", "armature", "millimetres", "grams", "degrees")
)  # fmt: skip
"""Checks of single numbers, which files have wrong in many places at once."""


NAMED = 8  # of the places where else something is found


_NAMES_AND_NUMBERS = re.compile(r"(?<!\w)'[^']*'|-?\d[\d.e+-]*")  # names and numbers


def likewise(first: Finding, others: Sequence[Finding]) -> str:
    """Where else the same is found, and by how much there if not as much."""
    shown = []
    for each in others[:NAMED]:
        amount = _amount(each)
        shown.append(place(each.source) + (f": {amount}" if amount != _amount(first) else ""))
    more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
    return f"likewise {', '.join(shown)}{more}"


def _amount(finding: Finding) -> str:
    if finding.value is None:
        return ""
    if finding.unit == "relative":
        return f"{100 * finding.value:.3g} %"
    return f"{finding.value:.3g} {finding.unit}"


def place(source: Source) -> str:
    """An element and its line, without the file."""
    return source.element if source.line is None else f"{source.element} (line {source.line})"


def ordered(findings: list[Finding]) -> tuple[Finding, ...]:
    """The gravest first, then by place in the file."""
    return tuple(
        sorted(
            findings,
            key=lambda each: (
                SEVERITIES.index(each.severity),
                each.source.line if each.source.line is not None else math.inf,
                each.check,
                each.source.element,
            ),
        )
    )
