"""Drake's springs and constraints between points in an SDF."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from robomodel.description import Anchor, JointCoupling, JointSpring, Pose, Spring
from robomodel.parsers.sdf.frames import Frame, Frames
from robomodel.parsers.shared.drake import LINEAR_SPRING, linear_spring, part_of, tendon
from robomodel.parsers.xml import Element, shown

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
        if shown(element) == LINEAR_SPRING:
            ends = two_points(frame, LINEAR_SPRING, carrier)
            spring = linear_spring(document, element, frame.name, ends, document.content)
            springs.append(spring)
            continue
        joint = partial(_joint, frames, frame)
        made = tendon(document, element, frame.name, joint, document.content)
        if isinstance(made, JointSpring):
            springs.append(made)
        elif made is not None:
            couplings.append(made)
    return tuple(springs), couplings


def _joint(frames: Frames, frame: Frame, element: Element) -> str:
    """The name of the joint that an element names."""
    assert frame.scope is not None
    name = frame.document.text(element, "name")
    return frames.named(name, frame.scope, frame.document, element).name
