"""The differences between two robots as text, JSON and a page."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from robomodel.errors import NOWHERE, Source
from robomodel.reports.document import Cell, Document, HasDocument, Section, Table, count, picked

UNITS = {
    "mass": "kg", "com": "m", "inertia": "kg m²", "origin": "m", "orientation": "rad",
    "zero": "rad or m", "lower": "rad or m", "upper": "rad or m", "velocity_limit": "rad/s or m/s",
    "effort_limit": "N m or N", "damping": "N m s/rad or N s/m", "friction": "N m or N",
    "armature": "kg m² or kg", "stiffness": "N m/rad or N/m", "reference": "rad or m",
    "deadband": "rad or m", "pitch": "m/rad", "length": "m", "gravity": "m/s²",
}  # fmt: skip
"""Of quantities; those without have none, or say it themselves."""

Value = float | str | tuple[float, ...] | None


@dataclass(frozen=True, slots=True)
class Difference:
    """One quantity of one element, in both files.

    Attributes:
        element: The name of a link, joint, loop or actuator, as in ``a`` where that has it; "robot"
            for what concerns all of it.
        kind: "link", "joint", "loop", "actuator" or "robot".
        quantity: As the attribute of :mod:`robomodel.model.elements` is called; "missing" where one
            file lacks the element.
        a: Its value in the first file, in SI units and in the axes of ``a``'s link; None if it has
            none.
        b: Its value in the second file, in the same axes.
        torque: By how much the joint torques of ``a`` change where only this is as in ``b``: the
            root mean square of the change at random states, over that of the torques, of the
            coordinate where that is largest. Infinite where ``a`` cannot be changed so (elements
            that are missing, another mobility); zero for limits.
        cause: What fault of an export would make ``b`` of ``a``: an id of docs/compare.md, empty
            if the numbers show none.
        explanation: The cause in words.
        source: Where the element stands in ``b``, in ``a`` if ``b`` lacks it.
    """

    element: str
    kind: str
    quantity: str
    a: Value
    b: Value
    torque: float
    cause: str = ""
    explanation: str = ""
    source: Source = NOWHERE

    def __str__(self) -> str:
        unit = UNITS.get(self.quantity, "")
        return (
            f"{self.kind} '{self.element}': {self.quantity} {shown(self.a)} and {shown(self.b)}"
            f"{unit and ' ' + unit}{self.explanation and ': ' + self.explanation}"
        )


@dataclass(frozen=True)
class Comparison(HasDocument):
    """The differences between two robots, those that change joint torques most first.

    ``str(comparison)`` is text, :meth:`as_dict` is for JSON, :meth:`html` a page.

    Attributes:
        a: The first robot's file, or its name.
        b: The second one's.
        differences: The differences.
        joints: Pairs of joints (and loops) of different names that are taken for the same.
        tolerance: The relative difference that counts for none.
    """

    a: str
    b: str
    differences: tuple[Difference, ...]
    joints: tuple[tuple[str, str], ...]
    tolerance: float

    @property
    def same(self) -> bool:
        """Whether there are no differences."""
        return not self.differences

    @cached_property
    def document(self) -> Document:
        """The comparison as text, JSON and a page."""
        rows: list[list[Cell]] = [
            [each.kind, each.element, each.quantity, shown(each.a), shown(each.b),
             UNITS.get(each.quantity, ""), _share(each.torque), each.explanation]
            for each in self.differences
        ]  # fmt: skip
        columns = ["", "element", "quantity", "a", "b", "unit", "torque", "cause"]
        renamed = [["joint", f"{a} = {b}"] for a, b in self.joints]
        return Document(
            f"{self.a} and {self.b}",
            count(len(self.differences), "difference") if self.differences else "no differences",
            [
                Section("", [Table(columns, rows)]),
                Section("Of different names, and taken for the same", [Table(["", ""], renamed)]),
            ],
            picked(self, "a", "b", "same", "tolerance", "joints", "differences"),
            kind="comparison",
        )


def shown(value: Value) -> str:
    """A value as text."""
    if value is None or isinstance(value, str):
        return value or "-"
    if isinstance(value, tuple):
        return " ".join(f"{each:.6g}" for each in value)
    return "unlimited" if math.isinf(value) else f"{value:.8g}"


def _share(torque: float) -> str:
    if math.isinf(torque):
        return "other robot"
    return f"{100.0 * torque:.2g} %" if torque else ""
