"""Fixes of what is certain: edits of numbers in robot files, as unified diffs.

Nothing else in a file changes. A fix is of a finding that is reported, so that ``--ignore``, a
comment and a baseline keep it from being made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from robomodel.lint.discovery import RobotFile
from robomodel.lint.edits import Edit, Element, Text, unified_diff
from robomodel.lint.runner import LintReport, shortened
from robomodel.lint.texts import faults, opened
from robomodel.reports.document import Correction, Finding
from robomodel.vocabulary.schema import number, numbers

_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


@dataclass(frozen=True, slots=True)
class Fixed:
    """A file with its fixes: its path below the root, its bytes before and after."""

    file: str
    path: Path
    before: bytes
    after: bytes

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        return unified_diff(self.file, self.before, self.after)


def fixed_files(report: LintReport) -> list[Fixed]:
    """The files of a report in which something certain can be mended, in order."""
    result = []
    corrected: dict[str, list[Correction]] = {}
    for each in report.findings:
        corrected.setdefault(each.source.file, []).extend(each.corrections)
    reported = frozenset(report.findings)
    for robot in report.robots:
        text = None if robot.xacro else opened(robot)
        if text is None:
            continue
        place = report.place(robot)
        edits = list(_of_texts(report, robot, text, reported))
        for correction in dict.fromkeys(corrected.get(place, ())):
            edits += _of_correction(robot, text, correction)
        after = text.edited(edits)
        if after != text.data:
            result.append(Fixed(place, robot.path, text.data, after))
    return result


def _of_texts(
    report: LintReport, robot: RobotFile, text: Text, reported: Iterable[Finding]
) -> Iterator[Edit]:
    for fault in faults(robot, text):
        if fault.finding is None or shortened(fault.finding, report.root) in reported:
            yield from fault.edits


# ---- corrections ---------------------------------------------------------------------------------


def _of_correction(robot: RobotFile, text: Text, correction: Correction) -> list[Edit]:
    """The edits that write a correction; none where the file does not have all its numbers."""
    owners = [
        each for each in text.root.walk() if each.label == correction.element and each.owner is each
    ]
    if len(owners) != 1:
        return []
    edits = {"urdf": _urdf, "sdf": _sdf, "mjcf": _mjcf}[robot.format](
        text, owners[0], correction.quantity, correction.values
    )
    return [] if None in edits else [edit for edit in edits if edit is not None]


Edits = list[Edit | None]


def _urdf(text: Text, owner: Element, quantity: str, values: tuple[float, ...]) -> Edits:
    places: Mapping[str, tuple[tuple[str, ...], str]] = {
        "mass": (("inertial", "mass"), "value"),
        "com": (("inertial", "origin"), "xyz"),
        "axis": (("axis",), "xyz"),
        "origin": (("origin",), "xyz"),
        **{name: (("limit",), name) for name in ("lower", "upper", "effort", "velocity")},
    }
    if quantity == "inertia":
        inertia = owner.first("inertial", "inertia")
        if inertia is None:
            return [None]
        pairs = zip(_MOMENTS, values, strict=True)
        return [text.attribute(inertia, name, number(value)) for name, value in pairs]
    tags, attribute = places[quantity]
    element = owner.first(*tags)
    return [None if element is None else text.attribute(element, attribute, numbers(values))]


def _sdf(text: Text, owner: Element, quantity: str, values: tuple[float, ...]) -> Edits:
    places: Mapping[str, tuple[str, ...]] = {
        "mass": ("inertial", "mass"),
        "axis": ("axis", "xyz"),
        **{name: ("axis", "limit", name) for name in ("lower", "upper", "effort", "velocity")},
    }
    if quantity == "inertia":
        parts = [owner.first("inertial", "inertia", name) for name in _MOMENTS]
        pairs = zip(parts, values, strict=True)
        return [None if x is None else text.content(x, number(value)) for x, value in pairs]
    if quantity not in places:
        return [None]
    element = owner.first(*places[quantity])
    return [None if element is None else text.content(element, numbers(values))]


def _mjcf(text: Text, owner: Element, quantity: str, values: tuple[float, ...]) -> Edits:
    if quantity in ("mass", "com"):
        element, name = owner.first("inertial"), {"mass": "mass", "com": "pos"}[quantity]
        return [None if element is None else text.attribute(element, name, numbers(values))]
    if quantity == "axis":
        return [text.attribute(owner, "axis", numbers(values))]
    if quantity in ("lower", "upper"):
        words = owner.attributes.get("range", "").split()
        if len(words) != 2:
            return [None]
        compilers = [each for each in text.root.children if each.tag == "compiler"]
        turns = owner.attributes.get("type", "hinge") in ("hinge", "ball")
        radians = any(each.attributes.get("angle") == "radian" for each in compilers)
        value = math.degrees(values[0]) if turns and not radians else values[0]
        words[quantity == "upper"] = number(value)
        return [text.attribute(owner, "range", " ".join(words))]
    return [None]
