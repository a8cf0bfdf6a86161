"""Drake's springs and constraints between points in an SDF."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from robomodel.description import Anchor, JointCoupling, JointSpring, Pose, Spring
from robomodel.parsers.sdf.frames import Frame, Frames
from robomodel.parsers.shared.drake import (
    LINEAR_SPRING,
    SPRING_NUMBERS,
    TENDON,
    TENDON_NUMBERS,
    linear_spring,
    part_of,
    room,
    tendon,
)
from robomodel.parsers.xml import Element, shown

_INFINITE = ("inf", "+inf", "-inf")

Carrier = Callable[[Frame, str, Element], Frame]
"""From an element, a name in it, and where that stands, to the link that carries what is named."""


def two_points(frame: Frame, prefix: str, carrier: Carrier) -> list[Anchor]:
    """A point of a body A and one of a body B."""
    document, element = frame.document, frame.element
    ends = []
    for body, point in (("body_A", "p_AP"), ("body_B", "p_BQ")):
        link, at = (part_of(document, element, f"{prefix}_{part}") for part in (body, point))
        named = carrier(frame, (link.text or "").strip(), link)
        ends.append(Anchor(named.name, Pose(document.three(at))))
    return ends


def read_springs(
    said: Iterable[Frame], frames: Frames, carrier: Carrier
) -> tuple[tuple[Spring | JointSpring, ...], list[JointCoupling]]:
    """Springs between points and tendons; of these the rigid ones are couplings."""
    springs: list[Spring | JointSpring] = []
    couplings = []
    for frame in said:
        document, element = frame.document, frame.element
        kind = shown(element)
        source = document.source(element, f"<{kind}>")
        if kind == LINEAR_SPRING:
            parts = (part_of(document, element, f"{kind}_{word}") for word in SPRING_NUMBERS)
            numbers = [document.content(part) for part in parts]
            ends = two_points(frame, kind, carrier)
            springs.append(linear_spring(frame.name, ends, numbers, source))
            continue
        terms, bounds = [], dict(TENDON_NUMBERS)
        for child in element:
            word = shown(child).removeprefix(f"{TENDON}_")
            if word == "joint":
                terms.append((_joint(frame, child, frames), document.number(child, "a")))
            elif word in bounds:
                text = (child.text or "").strip().lower()
                bounds[word] = float(text) if text in _INFINITE else document.content(child)
        made = tendon(frame.name, terms, bounds, source)
        if isinstance(made, JointSpring):
            springs.append(made)
        elif made is not None:
            couplings.append(made)
        else:
            document.suspect(element, room(bounds))
    return tuple(springs), couplings


def _joint(frame: Frame, element: Element, frames: Frames) -> str:
    """The name of the joint that an element names."""
    assert frame.scope is not None
    name = frame.document.text(element, "name")
    return frames.named(name, frame.scope, frame.document, element).name
