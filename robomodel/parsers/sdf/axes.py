"""Axes of an SDF file's joints: directions, limits, dynamics, mimics, pitches."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from robomodel.description import Limits, Vec3
from robomodel.errors import Source
from robomodel.parsers.schema import DYNAMICS, LIMIT, Fields, read_contents
from robomodel.parsers.sdf.document import SdfDocument
from robomodel.parsers.shared.frames import check_direction, limits_of
from robomodel.parsers.xml import Element, shown, spelled, words

_UNBOUNDED = 1e16  # SDF before 1.10 writes infinity so


@dataclass(frozen=True, slots=True)
class AxisMimic:
    """A ``<mimic>``: position = multiplier (leader − reference) + offset, with b of all constants.

    ``axis2`` says whether the leader is the second axis of its joint.
    """

    joint: str
    axis2: bool
    multiplier: float
    offset: float
    source: Source


@dataclass(frozen=True, slots=True)
class Axis:
    """An ``<axis>`` or ``<axis2>`` as written; ``expressed_in`` is None for the joint's frame."""

    xyz: Vec3
    expressed_in: str | None
    limits: Limits
    dynamics: Fields
    initial: float | None
    mimic: AxisMimic | None
    element: Element


_AXIS = words("xyz dynamics limit mimic use_parent_model_frame initial_position")
_LIMIT = replace(LIMIT, unused=("stiffness", "dissipation"))
_MIMIC = frozenset(("multiplier", "offset", "reference"))


def read_axis(document: SdfDocument, element: Element, *, bounded: bool = True) -> Axis:
    """An ``<axis>``; of one that is not ``bounded`` the position limits mean nothing."""
    parts = document.parts(element, _AXIS)
    xyz, expressed_in = _direction(document, parts)
    initial = None
    if "initial_position" in parts:
        initial = document.content(parts["initial_position"])
    return Axis(
        xyz,
        expressed_in,
        _limits(document, parts.get("limit"), bounded),
        _dynamics(document, parts.get("dynamics")),
        initial,
        _mimic(document, parts.get("mimic")),
        element,
    )


def _dynamics(document: SdfDocument, element: Element | None) -> Fields:
    found = read_contents(document, element, DYNAMICS)
    return found if found.get("stiffness") else found | {"reference": 0.0}


def _direction(document: SdfDocument, parts: dict[str, Element]) -> tuple[Vec3, str | None]:
    """The axis, and the frame that it is written in.

    Up to 1.4 that is the model's frame, from 1.5 the joint's (unless <use_parent_model_frame>
    says the model's), from 1.7 what ``expressed_in`` says.
    """
    element = parts.get("xyz")
    expressed_in: str | None = None
    if document.version < (1, 7):
        in_model = document.version < (1, 5)
        if "use_parent_model_frame" in parts:
            flag = parts["use_parent_model_frame"]
            in_model = document.as_truth(flag, flag.text or "")
        expressed_in = "__model__" if in_model else None
    elif "use_parent_model_frame" in parts:
        document.suspect(
            parts["use_parent_model_frame"],
            "<use_parent_model_frame> means nothing from SDF 1.7 on and is ignored; write "
            '<xyz expressed_in="__model__">',
        )
    if element is None:
        return (0.0, 0.0, 1.0), expressed_in
    if name := element.get("expressed_in"):
        expressed_in = name
    xyz = document.three(element)
    check_direction(document, element, xyz, "the axis", "0 0 1")
    return xyz, expressed_in


def _limits(document: SdfDocument, element: Element | None, bounded: bool) -> Limits:
    if element is None:
        return Limits()
    found = read_contents(document, element, _LIMIT)
    return limits_of(document, element, found, most=_UNBOUNDED, bounded=bounded)


def _mimic(document: SdfDocument, element: Element | None) -> AxisMimic | None:
    if element is None:
        return None
    document.parts(element, _MIMIC)
    leader = element.get("axis", "axis")
    if leader not in ("axis", "axis2"):
        raise document.error(element, f"axis of <mimic> is axis or axis2, not {spelled(leader)}")
    multiplier = document.value(element, "multiplier", 1.0)
    offset = document.value(element, "offset") - multiplier * document.value(element, "reference")
    joint = document.text(element, "joint")
    return AxisMimic(joint, leader == "axis2", multiplier, offset, document.place(element))


def drake_mimic(document: SdfDocument, joint: Element) -> AxisMimic | None:
    """Drake's ``<drake:mimic joint multiplier offset>`` of a joint; None where there is none."""
    for element in joint:
        if shown(element) == "drake:mimic":
            return AxisMimic(
                document.text(element, "joint"),
                False,
                document.number(element, "multiplier", 1.0),
                document.number(element, "offset", 0.0),
                document.place(element),
            )
    return None


def pitch(document: SdfDocument, element: Element) -> float:
    """Metres per radian. ``thread_pitch`` is in radians per metre, of a left-handed thread."""
    if (new := element.find("screw_thread_pitch")) is not None:
        return document.content(new) / (2.0 * math.pi)
    if (old := element.find("thread_pitch")) is None:
        raise document.error(
            element, "a screw joint needs <screw_thread_pitch>, in metres per revolution"
        )
    if not (turns := document.content(old)):
        raise document.error(
            old,
            "<thread_pitch> is in radians per metre, so it cannot be 0; write "
            "<screw_thread_pitch>, in metres per revolution",
        )
    return -1.0 / turns
