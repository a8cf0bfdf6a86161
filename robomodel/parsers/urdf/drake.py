"""Drake's own elements in a URDF, as far as they are of mechanics that is modelled here.

Sources: Drake's reference of its extensions to URDF, and what its parser does with them
(``detail_urdf_parser.cc``, ``detail_common.cc``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from lxml import etree

from robomodel.description import Anchor, JointSpring, Loop, Pose, Vec3
from robomodel.errors import did_you_mean
from robomodel.parsers.shared.drake import (
    LINEAR_SPRING,
    TENDON,
    linear_spring,
    part_of,
    tendon,
)
from robomodel.parsers.shared.elements import read_value
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
        pitch = part_of(document, element, "drake:screw_thread_pitch")
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
    """``<drake:linear_spring_damper>`` between points of two bodies; a ``name`` is our own."""
    ends = [_point(document, element, LINEAR_SPRING, end) for end in ("AP", "BQ")]
    name, number = _spring_name(element, found), partial(read_value, document)
    found.springs.append(linear_spring(document, element, name, ends, number))


def _tendon(document: Document, element: Element, found: Found) -> None:
    """``<drake:tendon_constraint>`` over joints: a spring, or a coupling."""
    name, number = _spring_name(element, found), partial(read_value, document)
    joint = partial(document.text, name="name")
    made = tendon(document, element, name, joint, number)
    if isinstance(made, JointSpring):
        found.springs.append(made)
    elif made is not None:
        found.couplings.append(made)


def _spring_name(element: Element, found: Found) -> str:
    kind = shown(element).removeprefix("drake:")
    taken = {each.name for each in (*found.springs, *found.couplings)}
    return element.get("name") or _name(kind, taken)


READERS: dict[str, Callable[[Document, Element, Found], None]] = {
    "drake:joint": _joint,
    "drake:ball_constraint": _ball,
    LINEAR_SPRING: _spring,
    TENDON: _tendon,
}
"""What reads the elements under ``<robot>``, by their tags."""


def _point(document: Document, element: Element, prefix: str, end: str) -> Anchor:
    """A body and a point of it, as in ``_body_A`` and ``_p_AP``."""
    body = part_of(document, element, f"{prefix}_body_{end[0]}")
    point: Vec3 = document.vector(part_of(document, element, f"{prefix}_p_{end}"), "value")
    return Anchor(document.text(body, "name"), Pose(point))


def _name(kind: str, taken: set[str]) -> str:
    """A name for what has none in the file."""
    number = 1
    while f"{kind}_{number}" in taken:
        number += 1
    return f"{kind}_{number}"
