"""Springs, damping and friction: of joints, of loops, between links, over several joints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from robomodel.description import JointSpring, Spring
from robomodel.parsers.shared.elements import ENDS, read_anchor, read_parts, read_term
from robomodel.parsers.xml import Document, Element

DYNAMICS = frozenset(("damping", "friction", "spring_stiffness", "spring_reference"))
_SPRING = frozenset(("name", "stiffness", "length", "damping", "reference", "friction"))
_SPRING_PARTS = frozenset(ENDS)


class Dynamics(TypedDict, total=False):
    """What ``<dynamics>`` says, by the fields of a joint or a loop."""

    damping: float
    friction: float
    stiffness: float
    reference: float


def read_dynamics(document: Document, element: Element | None) -> Dynamics:
    """``<dynamics damping friction spring_stiffness spring_reference>``, of a joint or a loop."""
    if element is None:
        return {}
    return checked_dynamics(document, element, document.numbers(element, DYNAMICS))


def checked_dynamics(document: Document, element: Element, found: Mapping[str, float]) -> Dynamics:
    """What ``<dynamics>`` says by these numbers; refused is what would drive the motion."""
    for name in ("damping", "friction", "spring_stiffness"):
        if found.get(name, 0.0) < 0.0:
            raise document.error(
                element,
                f"{name} is {found[name]:g}, which would drive the motion; it is not negative",
            )
    return {
        "damping": found.get("damping", 0.0),
        "friction": found.get("friction", 0.0),
        "stiffness": found.get("spring_stiffness", 0.0),
        "reference": found.get("spring_reference", 0.0),
    }


def read_spring(document: Document, element: Element) -> Spring | JointSpring:
    """``<spring>`` between two points of two links, or over a sum of joints."""
    document.expect(element, _SPRING)
    name = document.text(element, "name")
    source = document.source(element, f"spring '{name}'")
    found: dict[str, Any] = {
        word: document.number(element, word)
        for word in _SPRING - {"name"}
        if element.get(word) is not None
    }
    for word in ("stiffness", "damping", "friction", "length"):
        if found.get(word, 0.0) < 0.0:
            raise document.error(element, f"{word} is {found[word]:g}; it is not negative")
    terms = [child for child in element if child.tag == "joint"]
    parts = read_parts(document, element, _SPRING_PARTS, frozenset(("joint",)))
    if "stiffness" not in found and "damping" not in found and "friction" not in found:
        raise document.error(element, 'a spring needs stiffness="…" [N/m or N m/rad], or damping')
    wrong = ("length",) if terms else ("reference", "friction")
    for word in wrong:
        if word in found:
            raise document.error(
                element,
                f"'{word}' belongs to a spring "
                f"{'between two links' if terms else 'over joints'}; "
                f"{'its rest position is reference' if terms else 'its rest length is length'}",
            )
    if terms and parts:
        raise document.error(
            element, "a spring is between two links or over joints, not both; write two springs"
        )
    if terms:
        joints = tuple(read_term(document, term) for term in terms)
        return JointSpring(name, joints, source=source, **found)
    one, other = (read_anchor(document, element, parts, tag) for tag in ENDS)
    return Spring(name, one, other, source=source, **found)
