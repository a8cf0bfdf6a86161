"""Motors, rotors and transmissions (ros_control's, Drake's, PR2's): reading and writing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from lxml import etree

from robomodel.description import (
    ONE_DOF,
    Actuator,
    Description,
    Joint,
    Motor,
    Rotor,
    Transmission,
    TransmittedJoint,
)
from robomodel.description.transmissions import SIMPLE, kind_of
from robomodel.errors import DescriptionError, did_you_mean, warn_at
from robomodel.vocabulary.frames import read_value
from robomodel.vocabulary.schema import (
    MOTOR,
    REDUCTION,
    ROTOR,
    Fields,
    Names,
    add,
    add_text,
    number,
    read,
    write,
)
from robomodel.vocabulary.xml import DRAKE, Document, Element

_REDUCTIONS = ("mechanicalReduction", "mechanical_reduction")
SIMPLE_TYPE = f"transmission_interface/{SIMPLE}"
"""The type of simple transmissions in files."""
EFFORT_INTERFACE = "hardware_interface/EffortJointInterface"
"""The name in ros_control of a joint that takes forces; urdf_parser_py asks each joint for one."""


# --- motors ---------------------------------------------------------------------------------------


def read_motor(document: Document, element: Element | None, *, spins: bool = False) -> Motor | None:
    """Read ``<motor>`` of a joint or an actuator; all numbers refer to the motor's shaft.

    ``spins``: a rotor is beside it, so that an effort of 0 alone says that nothing drives it.
    """
    if element is None:
        return None
    values = read(document, element, MOTOR)
    if (fault := motor_fault(values)) and not (spins and values == {"effort": 0.0}):
        raise document.error(element, fault)
    return Motor(**values, source=document.place(element))


def motor_fault(values: Mapping[str, float]) -> str:
    """The fault of the numbers of a motor, for a message; empty if nothing is."""
    if fault := MOTOR.fault(values):
        return fault
    if values.get("effort") == 0.0 and not values.get("effort_lower", 0.0) < 0.0:
        return "effort is 0, and so no motor; give a positive one, or a negative effort_lower"
    for one, other in (("stall_torque", "no_load_speed"), ("no_load_speed", "stall_torque")):
        if one in values and other not in values:
            return f"the torque-speed curve has {one} but no {other}; it needs both"
    if "voltage" in values:
        if missing := [n for n in ("torque_constant", "resistance") if n not in values]:
            return f"voltage gives a torque-speed curve only with {missing[0]}; give it"
        if "stall_torque" in values:
            return "voltage and stall_torque both give a torque-speed curve; keep one of them"
    if "current" in values and "torque_constant" not in values:
        return "current limits the torque only with torque_constant; give it"
    return ""


def add_motor(parent: Element, motor: Motor, tag: str = MOTOR.tag) -> None:
    """``<motor>``."""
    write(add(parent, tag), MOTOR, motor)


UNDRIVEN = Motor(effort=0.0)
"""The motor of a rotor that nothing drives."""


# --- rotors ---------------------------------------------------------------------------------------


def read_rotor(document: Document, element: Element | None) -> Rotor | None:
    """Read ``<rotor inertia ratio mass transverse>`` or ``<rotor link ratio>``.

    Unknown attributes are refused: a misspelt number would change the dynamics.
    """
    if element is None:
        return None
    names = {str(name) for name in element.attrib}
    for name in names - ROTOR.words:
        if hint := did_you_mean(name, ROTOR.words - names):
            raise document.error(element, f"<rotor> has no attribute '{name}'{hint}")
    link = document.text(element, "link") if "link" in names else ""
    if "inertia" not in names and not link:
        raise document.error(
            element,
            '<rotor> needs inertia="...", its moment of inertia about its axis (or link="...", '
            "the link that it is)",
        )
    values = read(document, element, ROTOR)
    return _checked_rotor(document, element, Rotor(link=link, **values))


def _checked_rotor(document: Document, element: Element, rotor: Rotor) -> Rotor:
    """The rotor with its location in the file; raises if its numbers are wrong."""
    if fault := rotor_fault(rotor):
        raise document.error(element, fault)
    place = document.place(element)
    return replace(rotor, source=replace(place, element=f"rotor of {place.element}"))


def rotor_fault(rotor: Rotor) -> str:
    """The fault of the numbers of a rotor, for a message; empty if nothing is."""
    numbers = {each.field: value for each, value in ROTOR.of(rotor).items()}
    if not all(map(math.isfinite, numbers.values())):
        return "a number of the rotor is not finite"
    if rotor.link and not numbers.keys().isdisjoint(("inertia", "mass", "transverse")):
        return (
            f"the link '{rotor.link}' is the rotor and has an inertial of its own; leave inertia, "
            "mass and transverse out"
        )
    if not rotor.link and rotor.inertia <= 0.0:
        return f"the rotor's inertia {rotor.inertia:g} is not positive"
    return ROTOR.fault(numbers)


def add_rotor(parent: Element, rotor: Rotor) -> None:
    """``<rotor>``."""
    write(add(parent, "rotor", **({"link": rotor.link} if rotor.link else {})), ROTOR, rotor)


ROTOR_INERTIA, GEAR_RATIO = "drake:rotor_inertia", "drake:gear_ratio"
"""Drake's tags, of an actuator in URDF and of a joint in SDF; files may leave the prefix out."""


def drake_armature(
    document: Document, parts: Mapping[str, Element], value: Callable[[Element], float]
) -> float:
    """The armature that Drake's elements of a joint give: ratio² times the rotor inertia."""
    if (part := parts.get(ROTOR_INERTIA)) is None:
        return 0.0
    ratio = value(parts[GEAR_RATIO]) if GEAR_RATIO in parts else 1.0
    if (inertia := value(part)) < 0.0:
        raise document.error(part, "the rotor inertia is negative")
    return ratio * ratio * inertia


def add_drake_armature(parent: Element, armature: float, *, as_text: bool) -> None:
    """Append an armature as Drake's elements, with ratio 1; numbers in texts or in ``value``."""
    for name, value in ((ROTOR_INERTIA, armature), (GEAR_RATIO, 1.0)):
        part = etree.SubElement(parent, f"{{{DRAKE}}}{name.removeprefix('drake:')}")
        if as_text:
            part.text = number(value)
        else:
            part.set("value", number(value))


# --- transmissions --------------------------------------------------------------------------------


def read_transmission(document: Document, element: Element) -> Transmission:
    """A transmission as ros_control, ros2_control, Drake or PR2 write it.

    Only a transmission with rotors changes the dynamics, so only faults of rotors are refused.
    """
    name = element.get("name", "")
    kind = element.findtext("type") or element.findtext("plugin") or element.get("type") or ""
    actuators = tuple(_actuator(document, part) for part in element.iterfind("actuator"))
    reduction = _amount(document, element, _REDUCTIONS, must=False)  # as PR2's files write it
    if reduction is not None and len(actuators) == 1 and actuators[0].reduction is None:
        actuators = (replace(actuators[0], reduction=reduction),)
    must = any(actuator.rotor for actuator in actuators)
    ends = [*element.iterfind("joint"), element]
    losses = [each for end in ends for each in [_losses(document, end)] if each]
    if losses:
        if len(actuators) != 1 or len(losses) > 1 or _is_lossy(actuators[0]):
            raise document.error(
                element,
                "has losses at a reduction that is not that of one motor; give efficiency and "
                "backdrive once, at the <mechanicalReduction> of the actuator",
            )
        actuators = (replace(actuators[0], **losses[0]),)
    return Transmission(
        name,
        kind.strip(),
        tuple(
            TransmittedJoint(
                part.get("name", ""),
                _role(part),
                _amount(document, part, _REDUCTIONS, must=must),
                _amount(document, part, ("offset",), must=must, zero=True) or 0.0,
            )
            for part in element.iterfind("joint")
        ),
        actuators,
        document.source(element, f"transmission '{name}'"),
    )


def _actuator(document: Document, element: Element) -> Actuator:
    """An actuator, with its rotor from ``<rotor>``, ``<motorInertia>`` or ``<rotor_inertia>``."""
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
    motor = read_motor(document, element.find("motor"), spins=rotor is not None)
    losses = _losses(document, element)
    return Actuator(element.get("name", ""), _role(element), reduction, rotor, motor, **losses)


def _losses(document: Document, element: Element) -> Fields:
    """The losses of the reduction of an end of a transmission."""
    parts = (part for tag in _REDUCTIONS if (part := element.find(tag)) is not None)
    return read(document, next(parts, None), REDUCTION)


def _is_lossy(end: Actuator | Rotor) -> bool:
    return end.efficiency != 1.0 or end.backdrive is not None


_ACTUATOR_PARTS = ("rotor", "motorInertia", "rotor_inertia", "gear_ratio", "motor", *_REDUCTIONS)
_ACTUATOR_IRRELEVANT = frozenset(
    (*_REDUCTIONS, "role", "hardwareInterface", "motorTorqueConstant", "command_interface")
)


def _role(element: Element) -> str:
    """The role: an element in ros_control, an attribute in ros2_control."""
    return (element.get("role") or element.findtext("role") or "").strip()


def _amount(
    document: Document, element: Element, tags: tuple[str, ...], *, must: bool, zero: bool = False
) -> float | None:
    """The number in the first element with one of these tags; None if there is none.

    A wrong number is refused if ``must``, because a rotor depends on it, else warned of.
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
            document.warn_at(part, error.message, f"bad {tag}")
            return None
        return amount
    return None


def add_transmission(root: Element, transmission: Transmission, lost: list[str]) -> Element:
    """Append a transmission as ros_control's, where a reduction divides and is never zero."""
    element = add(root, "transmission", name=transmission.name)
    if transmission.type:
        add_text(element, "type", transmission.type)
    ends: list[TransmittedJoint | Actuator] = [*transmission.joints, *transmission.actuators]
    for end in ends:
        part = add(element, "joint" if isinstance(end, TransmittedJoint) else "actuator")
        part.set("name", end.name)
        if end.role:
            add_text(part, "role", end.role)
        if end.reduction == 0.0:
            lost.append(
                f"the reduction 0 at '{end.name}' of the transmission '{transmission.name}'"
            )
        elif end.reduction is not None:
            reduction = add_text(part, "mechanicalReduction", number(end.reduction))
            if isinstance(end, Actuator):
                write(reduction, REDUCTION, end)
        if isinstance(end, TransmittedJoint):
            if end.offset:
                add_text(part, "offset", number(end.offset))
            continue
        if end.rotor is not None:
            add_rotor(part, end.rotor)
        if end.motor is not None:
            add_motor(part, end.motor)
    return element


# --- motors of open trees -------------------------------------------------------------------------


def with_motors(description: Description) -> Description:
    """The description with a simple transmission for each joint that needs one and has none.

    A joint needs one if it has an armature, or a finite effort and no other joint a
    transmission: readers of open trees take armatures from motors, and no other type. If nothing
    drives such a joint, its motor has an effort of 0. A transmission of another type is replaced by
    a motor on each of its joints, with a warning.
    """
    joints = {joint.name: joint for joint in description.joints}
    transmissions, driven, others = [], set[str](), set[str]()
    for transmission in description.transmissions:
        single = len(transmission.actuators) == len(transmission.joints) == 1
        actuator_of_mjcf = single and "/" not in transmission.type
        each = replace(transmission, type=SIMPLE_TYPE) if actuator_of_mjcf else transmission
        ends = [joints.get(end.name) for end in each.joints]
        if ends and single and kind_of(each) == SIMPLE:
            driven.update(end.name for end in each.joints)
            transmissions.append(each)
            continue
        others.update(end.name for end in each.joints if each.actuators)
        if ends and all(end and _has_effort(end) for end in ends):
            warn_at(
                f"a transmission of the type '{each.type}' is not written; each of its joints has "
                "a motor of its own",
                each.source,
                strict=False,
            )
            continue
        transmissions.append(each)
    names = Names(each.name for each in transmissions)
    for joint in description.joints:
        told = bool(driven or others) and joint.name not in others
        pushed = _has_effort(joint) and not told
        needed = pushed or joint.armature > 0.0
        if joint.type in ONE_DOF and joint.name not in driven and needed:
            name = names.fresh(f"{joint.name}_transmission")
            motor = Actuator(f"{joint.name}_motor", motor=None if pushed else UNDRIVEN)
            end = TransmittedJoint(joint.name)
            transmissions.append(Transmission(name, SIMPLE_TYPE, (end,), (motor,), joint.source))
    return replace(description, transmissions=tuple(transmissions))


def _has_effort(joint: Joint) -> bool:
    return joint.type in ONE_DOF and joint.limits.pushes
