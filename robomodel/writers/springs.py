"""Springs between points, in the words that Drake has for them in URDF and SDF alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lxml import etree

from robomodel.description import Pose, Spring, Vec3
from robomodel.parsers.sdf.elements import CUSTOM
from robomodel.poses import compose
from robomodel.writers.text import number, numbers

DRAKE = "http://drake.mit.edu"


def rest_length(spring: Spring, at_zero: Mapping[str, Pose]) -> float:
    """The rest length of a spring between points: given, or their distance at position zero."""
    if spring.length is not None:
        return spring.length
    ends = (spring.predecessor, spring.successor)
    return math.dist(*(compose(at_zero[end.link], end.origin).xyz for end in ends))


def add_linear_spring(
    root: etree._Element,
    spring: Spring,
    bodies: Sequence[str],
    points: Sequence[Vec3],
    length: float,
    *,
    as_text: bool,
) -> None:
    """``<drake:linear_spring_damper>``; values are attributes in URDF and texts in SDF.

    ``bodies`` and ``points`` are its ends as the file has them. Its name is a word of our own.
    """
    element = etree.SubElement(root, f"{{{DRAKE}}}linear_spring_damper")
    element.set(f"{{{CUSTOM}}}name" if as_text else "name", spring.name)
    said = {
        "body_A": bodies[0],
        "p_AP": numbers(points[0]),
        "body_B": bodies[1],
        "p_BQ": numbers(points[1]),
        "free_length": number(length),
        "stiffness": number(spring.stiffness),
        "damping": number(spring.damping),
    }
    for word, value in said.items():
        part = etree.SubElement(element, f"{{{DRAKE}}}linear_spring_damper_{word}")
        if as_text:
            part.text = value
        else:
            part.set("name" if word.startswith("body") else "value", value)
