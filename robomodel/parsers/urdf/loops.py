"""Loops and couplings: URDF+, and a few words more, read and written."""

from __future__ import annotations

from typing import cast, get_args

from robomodel.description import JointCoupling, LinkCoupling, Loop, LoopType
from robomodel.parsers.schema import DYNAMICS, LOOP, Fields, add, read, write
from robomodel.parsers.shared.frames import (
    ENDS,
    NAME_TYPE,
    X,
    add_ends,
    add_terms,
    read_axis,
    read_ends,
    read_linked,
    read_parts,
    read_term,
    read_type,
    read_value,
)
from robomodel.parsers.shared.springs import has_dynamics, loop_dynamics
from robomodel.parsers.text import number, numbers
from robomodel.parsers.xml import Document, Element

LOOP_TYPES: tuple[str, ...] = get_args(LoopType)
_LOOPS_WITH_AXIS = frozenset(("revolute", "continuous", "prismatic", "planar", "universal"))
_LOOP_PARTS = frozenset((*ENDS, "axis", "axis2", "dynamics"))
_COUPLING_PARTS = frozenset((*ENDS, "ratio", "offset"))


def read_loop(document: Document, element: Element) -> Loop:
    """``<loop>``: a joint that the tree does not contain."""
    values = read(document, element, LOOP)
    name = document.text(element, "name")
    kind = cast(LoopType, read_type(document, element, LOOP_TYPES))
    parts = read_parts(document, element, _LOOP_PARTS)
    if "axis2" in parts and kind != "universal":
        document.warn_at(parts["axis2"], f"<axis2> means nothing in a {kind} loop; it is ignored")
    if "length" in values:
        _check_length(document, element, kind, values)
    one, other = read_ends(document, element, parts)
    return Loop(
        name,
        kind,
        one,
        other,
        read_axis(document, parts.get("axis"), used=kind in _LOOPS_WITH_AXIS) or X,
        read_axis(document, parts.get("axis2"), used=kind == "universal"),
        source=document.source(element, f"loop '{name}'"),
        **values,
        **loop_dynamics(document, parts.get("dynamics"), kind),
    )


def _check_length(document: Document, element: Element, kind: str, values: Fields) -> None:
    """Take the length out of a loop that is no rod; refuse one that is not positive."""
    if kind != "rod":
        document.warn_at(element, f"'length' means nothing in a {kind} loop; it is ignored")
        del values["length"]
    elif values["length"] <= 1e-12:  # as of the distance between ends
        raise document.error(
            element,
            f"the length {values['length']:g} of the rod is not positive"
            f"{' beyond rounding' if values['length'] > 0.0 else ''}; for two points that coincide "
            "write a loop of type spherical",
        )


def add_loop(root: Element, loop: Loop) -> None:
    """``<loop>``."""
    element = add(root, "loop", name=loop.name, type=loop.type)
    write(element, LOOP, loop)
    add_ends(element, loop)
    if loop.type in _LOOPS_WITH_AXIS:
        add(element, "axis", xyz=numbers(loop.axis))
    if loop.axis2 is not None:
        add(element, "axis2", xyz=numbers(loop.axis2))
    if has_dynamics(loop):
        write(add(element, "dynamics"), DYNAMICS, loop)


def read_coupling(document: Document, element: Element) -> LinkCoupling | JointCoupling:
    """A coupling of two links (URDF+: a gear, a belt), or a linear one of several joints."""
    document.expect(element, NAME_TYPE)  # URDF+ files name a type, which changes nothing
    name = document.text(element, "name")
    terms = [child for child in element if child.tag == "joint"]
    parts = read_parts(document, element, _COUPLING_PARTS, frozenset(("joint",)))
    source = document.source(element, f"coupling '{name}'")
    offset = read_value(document, parts["offset"]) if "offset" in parts else 0.0
    if not terms:
        if "predecessor" not in parts and "successor" not in parts:
            raise document.error(
                element,
                "couples nothing: it needs <predecessor link> and <successor link>, or "
                "<joint name ratio> elements",
            )
        one, other = (read_linked(document, element, parts, tag) for tag in ENDS)
        ratio = read_value(document, parts["ratio"]) if "ratio" in parts else 1.0
        return LinkCoupling(name, one, other, ratio, offset, source)
    if wrong := [tag for tag in ("predecessor", "successor", "ratio") if tag in parts]:
        raise document.error(
            parts[wrong[0]],
            f"<{wrong[0]}> belongs to a coupling of links and <joint> to one of joints; write two "
            "couplings (the ratio of a joint is an attribute of <joint>)",
        )
    return JointCoupling(name, tuple(read_term(document, term) for term in terms), offset, source)


def add_coupling(root: Element, coupling: LinkCoupling | JointCoupling) -> None:
    """``<coupling>``."""
    element = add(root, "coupling", name=coupling.name)
    if isinstance(coupling, LinkCoupling):
        add(element, "predecessor", link=coupling.predecessor)
        add(element, "successor", link=coupling.successor)
        add(element, "ratio", value=number(coupling.ratio))
    else:
        add_terms(element, coupling.terms)
    if coupling.offset:
        add(element, "offset", value=number(coupling.offset))
