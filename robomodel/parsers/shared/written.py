"""Elements of this package, Drake and ros_control that URDF and SDF say alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lxml import etree

from robomodel.description import (
    Actuator,
    JointSpring,
    Loop,
    Motor,
    Pose,
    Rotor,
    Spring,
    Transmission,
    TransmittedJoint,
    Vec3,
)
from robomodel.motors import numbers_of
from robomodel.parsers.xml import CUSTOM, DRAKE
from robomodel.poses import distance
from robomodel.text import number, numbers, rpy_of


def add(parent: etree._Element, tag: str, **attributes: str) -> etree._Element:
    """A new element."""
    return etree.SubElement(parent, tag, attributes)


def set_numbers(element: etree._Element, **values: float | None) -> None:
    """Attributes that are numbers other than zero."""
    for name, value in values.items():
        if value:
            element.set(name, number(value))


def words_of(independent: bool | Iterable[bool]) -> str:
    """The words of which freedoms are independent."""
    marks = (independent,) if isinstance(independent, bool) else independent
    return " ".join("true" if mark else "false" for mark in marks)


def add_origin(parent: etree._Element, pose: Pose) -> None:
    """``<origin>``, unless it says nothing."""
    both = {"xyz": pose.xyz, "rpy": rpy_of(pose.rotation)}
    if said := {name: numbers(values) for name, values in both.items() if any(values)}:
        add(parent, "origin", **said)


def add_ends(parent: etree._Element, tie: Loop | Spring) -> None:
    """``<predecessor>`` and ``<successor>``."""
    for tag, anchor in (("predecessor", tie.predecessor), ("successor", tie.successor)):
        add_origin(add(parent, tag, link=anchor.link), anchor.origin)


def add_rotor(parent: etree._Element, rotor: Rotor) -> None:
    """``<rotor>``, with the numbers that it has."""
    element = add(parent, "rotor", **({"link": rotor.link} if rotor.link else {}))
    for name in ("inertia", "ratio", "mass", "transverse", "damping", "friction"):
        set_numbers(element, **{name: getattr(rotor, name)})


def add_motor(parent: etree._Element, motor: Motor) -> etree._Element:
    """What a motor can do."""
    return add(parent, "motor", **{name: number(x) for name, x in numbers_of(motor).items()})


def add_spring(root: etree._Element, spring: Spring | JointSpring) -> etree._Element:
    """A spring between two points or over joints."""
    element = add(root, "spring", name=spring.name, stiffness=number(spring.stiffness))
    set_numbers(element, damping=spring.damping)
    if isinstance(spring, Spring):
        if spring.length is not None:
            element.set("length", number(spring.length))
        add_ends(element, spring)
        return element
    set_numbers(element, reference=spring.reference, friction=spring.friction)
    for joint, ratio in spring.terms:
        add(element, "joint", name=joint, ratio=number(ratio))
    return element


def add_transmission(
    root: etree._Element, transmission: Transmission, lost: list[str]
) -> etree._Element:
    """A transmission in the words of ros_control, where a reduction divides and is never zero."""
    element = add(root, "transmission", name=transmission.name)
    _text(element, "type", transmission.type)
    ends: list[TransmittedJoint | Actuator] = [*transmission.joints, *transmission.actuators]
    for end in ends:
        part = add(element, "joint" if isinstance(end, TransmittedJoint) else "actuator")
        part.set("name", end.name)
        _text(part, "role", end.role)
        if end.reduction == 0.0:
            lost.append(
                f"the reduction 0 at '{end.name}' of the transmission '{transmission.name}'"
            )
        elif end.reduction is not None:
            _text(part, "mechanicalReduction", number(end.reduction))
        if isinstance(end, TransmittedJoint):
            if end.offset:
                _text(part, "offset", number(end.offset))
            continue
        if end.rotor is not None:
            add_rotor(part, end.rotor)
        if end.motor is not None:
            add_motor(part, end.motor)
    return element


def _text(parent: etree._Element, tag: str, text: str) -> None:
    if text:
        add(parent, tag).text = text


def rest_length(spring: Spring, at_zero: Mapping[str, Pose]) -> float:
    """The rest length of a spring between points: given, or their distance at position zero."""
    if spring.length is not None:
        return spring.length
    return distance(spring.predecessor, spring.successor, at_zero)


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
