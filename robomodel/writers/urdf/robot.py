"""URDF and URDF+: the inverse of :mod:`robomodel.parsers.urdf`, element by element.

A robot without loops, couplings and the like is plain URDF, with all that its readers insist on.
"""

from __future__ import annotations

from lxml import etree

from robomodel.description import (
    ONE_DOF,
    Actuator,
    Description,
    Inertial,
    Joint,
    JointCoupling,
    JointSpring,
    Limits,
    Link,
    LinkCoupling,
    Loop,
    Motor,
    Pose,
    Rotor,
    Shape,
    Spring,
    Transmission,
    TransmittedJoint,
)
from robomodel.motors import numbers_of
from robomodel.writers.springs import DRAKE
from robomodel.writers.text import number, numbers, rpy_of
from robomodel.writers.urdf.simulators import add_words, for_simulators

_WITH_AXIS = ONE_DOF | {"planar"}
_LOOPS_WITH_AXIS = frozenset(("revolute", "continuous", "prismatic", "planar", "universal"))
_SIZES = {
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "ellipsoid": ("a", "b", "c"),
    "plane": (),
}
_NO_LIMIT = 1e308  # infinity for readers that insist on a number

Rgba = tuple[float, float, float, float]


def to_urdf(description: Description) -> tuple[str, list[str]]:
    """The text of a URDF+ file that says all of the description, and what it cannot say."""
    lost: list[str] = []
    return _text_of(_tree(description, lost)), lost


def to_open_urdf(description: Description) -> tuple[str, list[str]]:
    """The text of an open tree as URDF, in words that Drake and MuJoCo read, too."""
    lost: list[str] = []
    description = for_simulators(description, lost)
    root = _tree(description, lost)
    add_words(root, description)
    return _text_of(root), lost


def _tree(description: Description, lost: list[str]) -> etree._Element:
    root = etree.Element("robot", {"name": description.name}, nsmap={"drake": DRAKE})
    if description.gravity is not None:
        _add(root, "gravity", xyz=numbers(description.gravity))
    colours: dict[Rgba, str] = {}
    for link in description.links:
        _link(root, link, colours)
    for link in description.links:
        _gazebo(root, link)
    for joint in description.joints:
        _joint(root, joint)
    for loop in description.loops:
        _loop(root, loop)
    for coupling in description.couplings:
        _coupling(root, coupling)
    for spring in description.springs:
        add_spring(root, spring)
    for transmission in description.transmissions:
        add_transmission(root, transmission, lost)
    return root


def _text_of(root: etree._Element) -> str:
    etree.cleanup_namespaces(root)
    body = etree.tostring(root, pretty_print=True, encoding="unicode")
    return f'<?xml version="1.0"?>\n{body}'


def _add(parent: etree._Element, tag: str, **attributes: str) -> etree._Element:
    return etree.SubElement(parent, tag, attributes)


def _origin(parent: etree._Element, pose: Pose) -> None:
    """``<origin>``, unless it says nothing."""
    said = {}
    if any(pose.xyz):
        said["xyz"] = numbers(pose.xyz)
    if any(angles := rpy_of(pose.rotation)):
        said["rpy"] = numbers(angles)
    if said:
        _add(parent, "origin", **said)


# --- links ----------------------------------------------------------------------------------------


def _link(root: etree._Element, link: Link, colours: dict[Rgba, str]) -> None:
    element = _add(root, "link", name=link.name)
    if link.inertial is not None:
        _inertial(element, link.inertial)
    common = _common_friction(link)
    for shape in link.shapes:
        _shape(element, shape, colours)
        said = {"restitution": shape.restitution}
        if common is None:
            said["friction"] = shape.friction
        words = {word: number(value) for word, value in said.items() if value is not None}
        if words:
            _add(element[-1], "surface", **words)


def _common_friction(link: Link) -> float | None:
    """The friction of all of a link's collision shapes; None where they differ."""
    found = {shape.friction for shape in link.shapes if shape.role == "collision"}
    return found.pop() if len(found) == 1 else None


def _gazebo(root: etree._Element, link: Link) -> None:
    """Friction in the words that Gazebo has for a link's."""
    friction = _common_friction(link)
    if friction is not None:
        element = _add(root, "gazebo", reference=link.name)
        for tag in ("mu1", "mu2"):
            _add(element, tag).text = number(friction)


def _inertial(link: etree._Element, inertial: Inertial) -> None:
    element = _add(link, "inertial")
    _origin(element, inertial.origin)
    _add(element, "mass", value=number(inertial.mass))
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    _add(element, "inertia", **dict(zip(names, map(number, inertial.inertia), strict=True)))


def _shape(link: etree._Element, shape: Shape, colours: dict[Rgba, str]) -> None:
    element = _add(link, shape.role, **({"name": shape.name} if shape.name else {}))
    _origin(element, shape.origin)
    geometry = _add(_add(element, "geometry"), shape.kind)
    if shape.kind == "mesh":
        geometry.set("filename", shape.file or "")
        if shape.size != (1.0, 1.0, 1.0):
            geometry.set("scale", numbers(shape.size))
    elif shape.kind == "box":
        geometry.set("size", numbers(shape.size))
    else:
        for name, value in zip(_SIZES[shape.kind], shape.size, strict=True):
            geometry.set(name, number(value))
    if shape.rgba is not None:
        name = colours.setdefault(shape.rgba, f"colour_{len(colours) + 1}")
        _add(_add(element, "material", name=name), "color", rgba=numbers(shape.rgba))


# --- joints ---------------------------------------------------------------------------------------


def _joint(root: etree._Element, joint: Joint) -> None:
    element = _add(root, "joint", name=joint.name, type=joint.type)
    if joint.independent is not None:
        marks = joint.independent if isinstance(joint.independent, tuple) else (joint.independent,)
        element.set("independent", " ".join("true" if mark else "false" for mark in marks))
    _add(element, "parent", link=joint.parent)
    _add(element, "child", link=joint.child)
    _origin(element, joint.origin)
    if joint.type in _WITH_AXIS:
        _add(element, "axis", xyz=numbers(joint.axis))
    _limit(element, joint)
    _dynamics(element, joint)
    if joint.mimic is not None and joint.type in ONE_DOF:
        _add(
            element,
            "mimic",
            joint=joint.mimic.joint,
            multiplier=number(joint.mimic.multiplier),
            offset=number(joint.mimic.offset),
        )
    if joint.type == "screw":
        _add(element, "pitch", value=number(joint.pitch))
    if joint.armature and joint.type != "fixed":
        _add(element, "armature", value=number(joint.armature))
    if joint.rotor is not None:
        _rotor(element, joint.rotor)
    if joint.motor is not None:
        add_motor(element, joint.motor)
    if joint.initial is not None and joint.type in ONE_DOF:
        _add(element, "initial", position=number(joint.initial))


def _dynamics(element: etree._Element, joint: Joint | Loop) -> None:
    """``<dynamics>``, unless it says nothing; a spring only where there is one."""
    said = {"damping": joint.damping, "friction": joint.friction}
    if joint.stiffness:
        said |= {"spring_stiffness": joint.stiffness, "spring_reference": joint.reference}
    if any(said.values()):
        _add(element, "dynamics", **{name: number(x) for name, x in said.items()})


def _rotor(parent: etree._Element, rotor: Rotor) -> None:
    said = {
        "inertia": rotor.inertia or None,
        "ratio": rotor.ratio,
        "mass": rotor.mass or None,
        "transverse": rotor.transverse or None,
        "damping": rotor.damping or None,
        "friction": rotor.friction or None,
    }
    numbers = {name: number(x) for name, x in said.items() if x is not None}
    _add(parent, "rotor", **({"link": rotor.link} if rotor.link else {}), **numbers)


def add_motor(parent: etree._Element, motor: Motor) -> etree._Element:
    """What a motor can do."""
    return _add(parent, "motor", **{name: number(x) for name, x in numbers_of(motor).items()})


def _limit(element: etree._Element, joint: Joint) -> None:
    """``<limit>``, with every attribute: readers of URDF refuse one without effort or velocity."""
    limits = joint.limits
    if limits == Limits() and joint.type not in ("revolute", "prismatic"):
        return
    said = {"effort": limits.effort, "velocity": limits.velocity}
    if joint.type != "continuous":
        said = {"lower": limits.lower, "upper": limits.upper, **said}
    _add(
        element,
        "limit",
        **{name: number(min(max(x, -_NO_LIMIT), _NO_LIMIT)) for name, x in said.items()},
    )


# --- loops and couplings --------------------------------------------------------------------------


def _loop(root: etree._Element, loop: Loop) -> None:
    element = _add(root, "loop", name=loop.name, type=loop.type)
    if loop.length is not None:
        element.set("length", number(loop.length))
    if loop.tolerance is not None:
        element.set("tolerance", number(loop.tolerance))
    for tag, anchor in (("predecessor", loop.predecessor), ("successor", loop.successor)):
        _origin(_add(element, tag, link=anchor.link), anchor.origin)
    if loop.type in _LOOPS_WITH_AXIS:
        _add(element, "axis", xyz=numbers(loop.axis))
    if loop.axis2 is not None:
        _add(element, "axis2", xyz=numbers(loop.axis2))
    _dynamics(element, loop)


def add_spring(root: etree._Element, spring: Spring | JointSpring) -> etree._Element:
    """A spring between two points or over joints."""
    element = _add(root, "spring", name=spring.name, stiffness=number(spring.stiffness))
    if spring.damping:
        element.set("damping", number(spring.damping))
    if isinstance(spring, Spring):
        if spring.length is not None:
            element.set("length", number(spring.length))
        for tag, anchor in (("predecessor", spring.predecessor), ("successor", spring.successor)):
            _origin(_add(element, tag, link=anchor.link), anchor.origin)
        return element
    for name, value in (("reference", spring.reference), ("friction", spring.friction)):
        if value:
            element.set(name, number(value))
    for joint, ratio in spring.terms:
        _add(element, "joint", name=joint, ratio=number(ratio))
    return element


def _coupling(root: etree._Element, coupling: LinkCoupling | JointCoupling) -> None:
    element = _add(root, "coupling", name=coupling.name)
    if isinstance(coupling, LinkCoupling):
        _add(element, "predecessor", link=coupling.predecessor)
        _add(element, "successor", link=coupling.successor)
        _add(element, "ratio", value=number(coupling.ratio))
    else:
        for joint, ratio in coupling.terms:
            _add(element, "joint", name=joint, ratio=number(ratio))
    if coupling.offset:
        _add(element, "offset", value=number(coupling.offset))


# --- transmissions --------------------------------------------------------------------------------


def add_transmission(
    root: etree._Element, transmission: Transmission, lost: list[str]
) -> etree._Element:
    """A transmission in the words of ros_control, where a reduction divides and is never zero."""
    element = _add(root, "transmission", name=transmission.name)
    _text(element, "type", transmission.type)
    ends: list[TransmittedJoint | Actuator] = [*transmission.joints, *transmission.actuators]
    for end in ends:
        part = _add(element, "joint" if isinstance(end, TransmittedJoint) else "actuator")
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
            _rotor(part, end.rotor)
        if end.motor is not None:
            add_motor(part, end.motor)
    return element


def _text(parent: etree._Element, tag: str, text: str) -> None:
    if text:
        _add(parent, tag).text = text
