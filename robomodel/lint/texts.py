"""How numbers are written: rounded right angles, axes of another length, limits swapped.

Each fault comes with the edits that mend it, which is certain: nothing else can be meant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from robomodel.errors import Source
from robomodel.lint.discovery import RobotFile
from robomodel.lint.edits import Edit, Element, Text
from robomodel.reports.document import Finding, note
from robomodel.reports.validation.bounds import BOUNDS
from robomodel.vocabulary.schema import number, numbers

MOST_BYTES = 64 * 2**20
DIGITS = {2: 2, 4: 3}  # fewest decimals by which a part of π is told: 1.57, 0.785

_NUMBER = re.compile(r"([-+]?)(\d*)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Fault:
    """Numbers as they should not be written; without a finding where reading the file warns."""

    finding: Finding | None
    edits: tuple[Edit, ...]


def check_text(robot: RobotFile) -> list[Finding]:
    """The findings on how the numbers of a file are written."""
    text = opened(robot)
    if text is None:
        return []
    return [each.finding for each in faults(robot, text) if each.finding is not None]


def opened(robot: RobotFile) -> Text | None:
    """The text of a robot's file; None for USD, and for what is no XML."""
    if robot.format == "usd":
        return None
    try:
        with robot.path.open("rb") as stream:
            return Text.of(stream.read(MOST_BYTES))
    except OSError:
        return None


def faults(robot: RobotFile, text: Text) -> Iterator[Fault]:
    """Numbers that are not written as they are meant, with their edits."""
    file = str(robot.path)
    match robot.format:
        case "urdf":
            for element in text.root.walk():
                if element.tag == "axis" and element.parent and element.parent.tag == "joint":
                    yield from _axis(text, element, "xyz")
                elif element.tag == "origin":
                    yield from _angles(file, text, element, element.attributes.get("rpy"), "rpy")
                elif element.tag == "limit" and element.parent and element.parent.tag == "joint":
                    yield from _swapped(text, element, "lower", "upper")
        case "sdf":
            for element in text.root.walk():
                if element.tag == "xyz" and element.parent and element.parent.tag == "axis":
                    yield from _axis(text, element, "")
                elif element.tag == "pose" and element.attributes.get("degrees") != "true":
                    form = element.attributes.get("rotation_format", "euler_rpy")
                    content = text.data[element.opened : element.closed].decode()
                    if form == "euler_rpy" and len(content.split()) == 6:
                        yield from _angles(file, text, element, content, "")
        case "mjcf":
            compilers = [each for each in text.root.children if each.tag == "compiler"]
            if any(each.attributes.get("angle") == "radian" for each in compilers):
                for element in text.root.walk():
                    euler = element.attributes.get("euler")
                    yield from _angles(file, text, element, euler, "euler")


def _edit(text: Text, element: Element, attribute: str, value: str) -> tuple[Edit, ...]:
    edit = text.attribute(element, attribute, value) if attribute else text.content(element, value)
    return () if edit is None else (edit,)


def _axis(text: Text, element: Element, attribute: str) -> Iterator[Fault]:
    """An axis whose length is not one."""
    written = (
        element.attributes.get(attribute, "")
        if attribute
        else text.data[element.opened : element.closed].decode()
    )
    axis = _numbers(written)
    if len(axis) != 3 or not math.isfinite(length := math.hypot(*axis)):
        return
    if length > 0.0 and abs(length - 1.0) > BOUNDS.axis_length:
        unit = numbers(x / length for x in axis)
        yield Fault(None, _edit(text, element, attribute, unit))


def _angles(
    file: str, text: Text, element: Element, written: str | None, attribute: str
) -> Iterator[Fault]:
    """Angles that are a rounded half or quarter of π."""
    words = (written or "").split()
    meant = [
        right_angle(word) if attribute or place >= 3 else None for place, word in enumerate(words)
    ]
    rounded = [(word, value) for word, value in zip(words, meant, strict=True) if value is not None]
    if not rounded:
        return
    mended = " ".join(
        word if value is None else number(value) for word, value in zip(words, meant, strict=True)
    )
    word, value = max(rounded, key=lambda each: abs(float(each[0]) - each[1]))
    off = abs(float(word) - value)
    yield Fault(
        note(
            "rounded-angle",
            Source(file, element.line, element.owner.label),
            f"the angle {word} in <{element.tag}> is {off:.2g} rad from {_in_words(value)}",
            f"write {number(value)}",
            off,
            "rad",
        ),
        _edit(text, element, attribute, mended),
    )


def right_angle(word: str) -> float | None:
    """The multiple of π/2 or π/4 of which the text is a rounding or the first digits."""
    if (match := _NUMBER.fullmatch(word)) is None:
        return None
    value, decimals = float(word), len(match[3])
    for part, fewest in DIGITS.items():
        nearest = round(value * part / math.pi) * math.pi / part
        short = abs(nearest) - abs(value)  # rounded, or cut after these decimals
        written = abs(short) <= 0.5 * 10.0**-decimals or 0.0 < short < 10.0**-decimals
        if nearest and decimals >= fewest and written and abs(short) > BOUNDS.askew:
            return nearest
    return None


def _in_words(value: float) -> str:
    """A multiple of π/4 in words."""
    quarters = round(4.0 * value / math.pi)
    part = 4 if quarters % 2 else 2 if quarters % 4 else 1
    times = quarters * part // 4
    sign = "-" if times < 0 else ""
    top = "π" if abs(times) == 1 else f"{abs(times)}π"
    return f"{sign}{top}" if part == 1 else f"{sign}{top}/{part}"


def _swapped(text: Text, element: Element, low: str, high: str) -> Iterator[Fault]:
    """A lower limit above the upper one: the two are swapped.

    Whole numbers, as 1 and -1 or 0 and -1, are how some write a joint without limits.
    """
    lower, upper = element.attributes.get(low, ""), element.attributes.get(high, "")
    first, second = _numbers(lower), _numbers(upper)
    if len(first) != 1 or len(second) != 1 or first[0] <= second[0]:
        return
    if not (first[0].is_integer() and second[0].is_integer()):
        edits = (text.attribute(element, low, upper), text.attribute(element, high, lower))
        yield Fault(None, tuple(edit for edit in edits if edit is not None))


def _numbers(text: str) -> list[float]:
    try:
        return [float(word) for word in text.split()]
    except ValueError:
        return []
