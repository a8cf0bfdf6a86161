"""Rotors, and the transmissions of ros_control, ros2_control, Drake and PR2."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from robomodel.description import Actuator, Rotor, Transmission, TransmittedJoint
from robomodel.errors import DescriptionError, did_you_mean
from robomodel.parsers.shared.elements import read_value
from robomodel.parsers.shared.motors import read_motor
from robomodel.parsers.transmissions import fault
from robomodel.parsers.xml import Document, Element

_NUMBERS = ("inertia", "ratio", "mass", "transverse", "damping", "friction")
_REDUCTIONS = ("mechanicalReduction", "mechanical_reduction")


def read_rotor(document: Document, element: Element | None) -> Rotor | None:
    """``<rotor inertia ratio mass transverse>`` or ``<rotor link ratio>``, of joint or actuator.

    So much hangs on its numbers that a word which may stand for one that is missing is refused.
    """
    if element is None:
        return None
    names = {str(name) for name in element.keys()}  # noqa: SIM118 - an element holds elements
    known = frozenset((*_NUMBERS, "link"))
    for name in names - known:
        if hint := did_you_mean(name, known - names):
            raise document.error(element, f"<rotor> has no attribute '{name}'{hint}")
    document.expect(element, known)
    link = document.text(element, "link") if "link" in names else ""
    if "inertia" not in names and not link:
        raise document.error(
            element,
            '<rotor> needs inertia="...", its moment of inertia about its axis (or link="...", '
            "the link that it is)",
        )
    numbers: dict[str, Any] = {
        name: document.number(element, name) for name in _NUMBERS if name in names
    }
    return _checked_rotor(document, element, Rotor(link=link, **numbers))


def _checked_rotor(document: Document, element: Element, rotor: Rotor) -> Rotor:
    """The rotor with its place, if its numbers are those of one."""
    if said := fault(rotor):
        raise document.error(element, said)
    place = document.place(element)
    return replace(rotor, source=replace(place, element=f"rotor of {place.element}"))


def read_transmission(document: Document, element: Element) -> Transmission:
    """A transmission as ros_control, ros2_control, Drake and PR2 write it.

    Without rotors it changes no dynamics, so nothing in it is refused but what is wrong in a rotor.
    """
    name = element.get("name", "")
    kind = element.findtext("type") or element.findtext("plugin") or element.get("type") or ""
    actuators = tuple(_actuator(document, part) for part in element.iterfind("actuator"))
    reduction = _amount(document, element, _REDUCTIONS, must=False)  # PR2 writes it here
    if reduction is not None and len(actuators) == 1 and actuators[0].reduction is None:
        actuators = (replace(actuators[0], reduction=reduction),)
    must = any(actuator.rotor for actuator in actuators)
    return Transmission(
        name,
        kind.strip(),
        tuple(_transmitted(document, part, must) for part in element.iterfind("joint")),
        actuators,
        document.source(element, f"transmission '{name}'"),
    )


def _transmitted(document: Document, element: Element, must: bool) -> TransmittedJoint:
    return TransmittedJoint(
        element.get("name", ""),
        _role(element),
        _amount(document, element, _REDUCTIONS, must=must),
        _amount(document, element, ("offset",), must=must, zero=True) or 0.0,
    )


def _actuator(document: Document, element: Element) -> Actuator:
    """An actuator; its rotor by ``<rotor>``, ``<motorInertia>`` or Drake's ``<rotor_inertia>``."""
    rotor: Rotor | None = None
    gear_ratio: float | None = None
    for part in element:
        tag = part.tag.rpartition("}")[2]
        if tag == "gear_ratio":
            gear_ratio = read_value(document, part)
        elif tag in ("rotor", "rotor_inertia", "motorInertia"):
            if rotor is not None:
                raise document.error(part, "the actuator has a rotor already; keep one of them")
            if tag == "rotor":
                rotor = read_rotor(document, part)
            else:
                inertia = document.content(part) if tag[0] == "m" else read_value(document, part)
                rotor = _checked_rotor(document, part, Rotor(inertia))
        elif tag not in (*_ACTUATOR_IRRELEVANT, "motor") and did_you_mean(tag, _ACTUATOR_PARTS):
            document.unknown(part, _ACTUATOR_PARTS)
    reduction = _amount(document, element, _REDUCTIONS, must=rotor is not None)
    if gear_ratio is not None:
        if gear_ratio == 0.0:
            raise document.error(element, "the gear ratio is zero; 1 is a direct drive")
        if rotor is not None and rotor.ratio is None:
            rotor = replace(rotor, ratio=gear_ratio)
        reduction = gear_ratio if reduction is None else reduction
    motor = read_motor(document, element.find("motor"))
    return Actuator(element.get("name", ""), _role(element), reduction, rotor, motor)


_ACTUATOR_PARTS = ("rotor", "motorInertia", "rotor_inertia", "gear_ratio", "motor", *_REDUCTIONS)
_ACTUATOR_IRRELEVANT = frozenset(
    (*_REDUCTIONS, "role", "hardwareInterface", "motorTorqueConstant", "command_interface")
)


def _role(element: Element) -> str:
    """The role: ros_control writes an element, ros2_control an attribute."""
    return (element.get("role") or element.findtext("role") or "").strip()


def _amount(
    document: Document, element: Element, tags: tuple[str, ...], *, must: bool, zero: bool = False
) -> float | None:
    """The number in the first element of these tags, if there is one.

    One that cannot be is refused if it ``must`` be right, as a rotor depends on it, else warned of.
    """
    for tag in tags:
        if (part := element.find(tag)) is None:
            continue
        try:
            amount = document.content(part)
            if amount == 0.0 and not zero:
                raise document.error(part, f"<{tag}> is zero; 1 is a direct drive")
        except DescriptionError as error:
            if must:
                raise
            document.suspect(part, error.message, f"bad {tag}")
            return None
        return amount
    return None
