"""Springs, damping and friction: of joints, of loops, between links, over several joints."""

from __future__ import annotations

from robomodel.description import LOOP_COORDINATES, Joint, JointSpring, Loop, Pose, Spring
from robomodel.parsers.schema import DYNAMICS, SPRING, Fields, add, read, write
from robomodel.parsers.shared.frames import (
    ENDS,
    add_ends,
    add_terms,
    read_ends,
    read_parts,
    read_term,
)
from robomodel.parsers.xml import Document, Element
from robomodel.poses import distance

_SPRING_PARTS = frozenset(ENDS)


def loop_dynamics(document: Document, element: Element | None, kind: str) -> Fields:
    """``<dynamics>`` of a loop, which must leave one coordinate."""
    if element is not None and kind not in LOOP_COORDINATES:
        raise document.error(
            element,
            f"a {kind} loop leaves no single coordinate on which damping, friction or a spring "
            "could act; use a <spring> between two points, or leave <dynamics> out",
        )
    return read(document, element, DYNAMICS)


def has_dynamics(record: Joint | Loop) -> bool:
    """Whether damping, friction or a spring acts on a joint or a loop."""
    return bool(record.damping or record.friction or record.stiffness)


def read_spring(document: Document, element: Element) -> Spring | JointSpring:
    """``<spring>`` between two points of two links, or over a sum of joints."""
    found = read(document, element, SPRING)
    name = document.text(element, "name")
    source = document.source(element, f"spring '{name}'")
    terms = [child for child in element if child.tag == "joint"]
    parts = read_parts(document, element, _SPRING_PARTS, frozenset(("joint",)))
    if "stiffness" not in found and "damping" not in found and "friction" not in found:
        raise document.error(element, 'a spring needs stiffness="…" [N/m or N m/rad], or damping')
    for word in ("length",) if terms else ("reference", "friction"):
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
    return Spring(name, *read_ends(document, element, parts), source=source, **found)


def add_spring(root: Element, spring: Spring | JointSpring) -> Element:
    """A spring between two points or over joints."""
    element = add(root, "spring", name=spring.name)
    write(element, SPRING, spring)
    if isinstance(spring, Spring):
        add_ends(element, spring)
    else:
        add_terms(element, spring.terms)
    return element


def rest_length(spring: Spring, at_zero: dict[str, Pose]) -> float:
    """The rest length of a spring between points: given, or their distance at position zero."""
    if spring.length is not None:
        return spring.length
    return distance(spring.predecessor, spring.successor, at_zero)
