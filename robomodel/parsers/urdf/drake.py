"""Drake's own elements in a URDF, as far as they are of mechanics that is modelled here.

Sources: Drake's reference of its extensions to URDF, and what its parser does with them
(``detail_urdf_parser.cc``, ``detail_common.cc``).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from lxml import etree

from robomodel.description import Anchor, Loop, Pose, Spring, Vec3
from robomodel.errors import did_you_mean
from robomodel.parsers.urdf.elements import read_value
from robomodel.parsers.urdf.found import Found, universal
from robomodel.parsers.urdf.joints import read_joint
from robomodel.parsers.xml import Document, Element, shown

_JOINTS = ("ball", "planar", "screw", "universal")


def _joint(document: Document, element: Element, found: Found) -> None:
    """``<drake:joint>``: types that URDF does not have."""
    if element.find("parent") is None and element.find("child") is None:
        document.unknown(element, ())  # it connects nothing
        return
    kind = document.text(element, "type")
    if kind not in _JOINTS:
        raise document.error(
            element,
            f"the type '{kind}' of <drake:joint> is not known{did_you_mean(kind, _JOINTS)}; known: "
            f"{', '.join(_JOINTS)}",
        )
    if kind == "screw":  # metres per revolution
        pitch = _part(document, element, "drake:screw_thread_pitch")
        said = repr(read_value(document, pitch) / (2.0 * math.pi))
        element.replace(pitch, etree.Element("pitch", {"value": said}))
    elif kind != "planar":
        element.set("type", "spherical")
    joint = read_joint(document, element)
    if kind == "universal":  # about x of the parent's frame, then y of the child's
        between, *both = universal(joint, "XY")
        found.links.append(between)
        found.joints += both
    else:
        found.joints.append(joint)


def _ball(document: Document, element: Element, found: Found) -> None:
    """``<drake:ball_constraint>``: a point of body A stays at a point of body B."""
    a, b = (_point(document, element, "drake:ball_constraint", end) for end in ("AP", "BQ"))
    name = _name("ball_constraint", {loop.name for loop in found.loops})
    source = document.source(element, f"<{shown(element)}>")
    found.loops.append(Loop(name, "spherical", a, b, source=source))


def _spring(document: Document, element: Element, found: Found) -> None:
    """``<drake:linear_spring_damper>`` between points of two bodies."""
    prefix = "drake:linear_spring_damper"
    a, b = (_point(document, element, prefix, end) for end in ("AP", "BQ"))
    length, stiffness, damping = (
        read_value(document, _part(document, element, f"{prefix}_{word}"))
        for word in ("free_length", "stiffness", "damping")
    )
    if min(length, stiffness, damping) < 0.0:
        raise document.error(element, "its free length, stiffness or damping is negative")
    name = _name("linear_spring_damper", {spring.name for spring in found.springs})
    source = document.source(element, f"<{shown(element)}>")
    found.springs.append(Spring(name, a, b, stiffness, length, damping, source))


READERS: dict[str, Callable[[Document, Element, Found], None]] = {
    "drake:joint": _joint,
    "drake:ball_constraint": _ball,
    "drake:linear_spring_damper": _spring,
}
"""What reads the elements under ``<robot>``, by their tags."""


def _part(document: Document, element: Element, tag: str) -> Element:
    for child in element:
        if shown(child) == tag:
            return child
    raise document.error(element, f"<{shown(element)}> needs a <{tag}>")


def _point(document: Document, element: Element, prefix: str, end: str) -> Anchor:
    """A body and a point of it, as in ``_body_A`` and ``_p_AP``."""
    body = _part(document, element, f"{prefix}_body_{end[0]}")
    point: Vec3 = document.vector(_part(document, element, f"{prefix}_p_{end}"), "value")
    return Anchor(document.text(body, "name"), Pose(point))


def _name(kind: str, taken: set[str]) -> str:
    """A name for what has none in the file."""
    number = 1
    while f"{kind}_{number}" in taken:
        number += 1
    return f"{kind}_{number}"
