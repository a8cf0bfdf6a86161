"""URDF and URDF+: the inverse of :mod:`robomodel.parsers.urdf`, element by element.

A robot without loops, couplings and the like is plain URDF, with all that its readers insist on.
"""

from __future__ import annotations

from lxml import etree

from robomodel.description import (
    ONE_DOF,
    Description,
    Inertial,
    Joint,
    JointCoupling,
    Limits,
    Link,
    LinkCoupling,
    Loop,
    Shape,
)
from robomodel.masses import MOMENTS
from robomodel.parsers.shared.written import (
    add,
    add_ends,
    add_motor,
    add_origin,
    add_rotor,
    add_spring,
    add_transmission,
    words_of,
)
from robomodel.parsers.urdf.links import SIZES
from robomodel.parsers.urdf.simulators import add_words, for_simulators
from robomodel.parsers.xml import DRAKE
from robomodel.text import number, numbers

_WITH_AXIS = ONE_DOF | {"planar"}
_LOOPS_WITH_AXIS = frozenset(("revolute", "continuous", "prismatic", "planar", "universal"))
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
        add(root, "gravity", xyz=numbers(description.gravity))
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


# --- links ----------------------------------------------------------------------------------------


def _link(root: etree._Element, link: Link, colours: dict[Rgba, str]) -> None:
    element = add(root, "link", name=link.name)
    if link.inertial is not None:
        _inertial(element, link.inertial)
    common = _common_friction(link)
    for shape in link.shapes:
        _shape(element, shape, colours)
        said = {"restitution": shape.restitution}
        said |= {"friction": shape.friction} if common is None else {}
        if words := {word: number(value) for word, value in said.items() if value is not None}:
            add(element[-1], "surface", **words)


def _common_friction(link: Link) -> float | None:
    """The friction of all of a link's collision shapes; None where they differ."""
    found = {shape.friction for shape in link.shapes if shape.role == "collision"}
    return found.pop() if len(found) == 1 else None


def _gazebo(root: etree._Element, link: Link) -> None:
    """Friction in the words that Gazebo has for a link's."""
    friction = _common_friction(link)
    if friction is not None:
        element = add(root, "gazebo", reference=link.name)
        for tag in ("mu1", "mu2"):
            add(element, tag).text = number(friction)


def _inertial(link: etree._Element, inertial: Inertial) -> None:
    element = add(link, "inertial")
    add_origin(element, inertial.origin)
    add(element, "mass", value=number(inertial.mass))
    add(element, "inertia", **dict(zip(MOMENTS, map(number, inertial.inertia), strict=True)))


def _shape(link: etree._Element, shape: Shape, colours: dict[Rgba, str]) -> None:
    element = add(link, shape.role, **({"name": shape.name} if shape.name else {}))
    add_origin(element, shape.origin)
    geometry = add(add(element, "geometry"), shape.kind)
    if shape.kind == "mesh":
        geometry.set("filename", shape.file or "")
        if shape.size != (1.0, 1.0, 1.0):
            geometry.set("scale", numbers(shape.size))
    elif shape.kind == "box":
        geometry.set("size", numbers(shape.size))
    else:
        for name, value in zip(SIZES[shape.kind], shape.size, strict=True):
            geometry.set(name, number(value))
    if shape.rgba is not None:
        name = colours.setdefault(shape.rgba, f"colour_{len(colours) + 1}")
        add(add(element, "material", name=name), "color", rgba=numbers(shape.rgba))


# --- joints ---------------------------------------------------------------------------------------


def _joint(root: etree._Element, joint: Joint) -> None:
    element = add(root, "joint", name=joint.name, type=joint.type)
    if joint.independent is not None:
        element.set("independent", words_of(joint.independent))
    add(element, "parent", link=joint.parent)
    add(element, "child", link=joint.child)
    add_origin(element, joint.origin)
    if joint.type in _WITH_AXIS:
        add(element, "axis", xyz=numbers(joint.axis))
    _limit(element, joint)
    _dynamics(element, joint)
    if joint.mimic is not None and joint.type in ONE_DOF:
        add(
            element,
            "mimic",
            joint=joint.mimic.joint,
            multiplier=number(joint.mimic.multiplier),
            offset=number(joint.mimic.offset),
        )
    if joint.type == "screw":
        add(element, "pitch", value=number(joint.pitch))
    if joint.armature and joint.type != "fixed":
        add(element, "armature", value=number(joint.armature))
    if joint.rotor is not None:
        add_rotor(element, joint.rotor)
    if joint.motor is not None:
        add_motor(element, joint.motor)
    if joint.initial is not None and joint.type in ONE_DOF:
        add(element, "initial", position=number(joint.initial))


def _dynamics(element: etree._Element, joint: Joint | Loop) -> None:
    """``<dynamics>``, unless it says nothing; a spring only where there is one."""
    said = {"damping": joint.damping, "friction": joint.friction}
    if joint.stiffness:
        said |= {"spring_stiffness": joint.stiffness, "spring_reference": joint.reference}
    if any(said.values()):
        add(element, "dynamics", **{name: number(x) for name, x in said.items()})


def _limit(element: etree._Element, joint: Joint) -> None:
    """``<limit>``, with every attribute: readers of URDF refuse one without effort or velocity."""
    limits = joint.limits
    if limits == Limits() and joint.type not in ("revolute", "prismatic"):
        return
    said = {"effort": limits.effort, "velocity": limits.velocity}
    if joint.type != "continuous":
        said = {"lower": limits.lower, "upper": limits.upper, **said}
    add(
        element,
        "limit",
        **{name: number(min(max(x, -_NO_LIMIT), _NO_LIMIT)) for name, x in said.items()},
    )


# --- loops and couplings --------------------------------------------------------------------------


def _loop(root: etree._Element, loop: Loop) -> None:
    element = add(root, "loop", name=loop.name, type=loop.type)
    if loop.length is not None:
        element.set("length", number(loop.length))
    if loop.tolerance is not None:
        element.set("tolerance", number(loop.tolerance))
    add_ends(element, loop)
    if loop.type in _LOOPS_WITH_AXIS:
        add(element, "axis", xyz=numbers(loop.axis))
    if loop.axis2 is not None:
        add(element, "axis2", xyz=numbers(loop.axis2))
    _dynamics(element, loop)


def _coupling(root: etree._Element, coupling: LinkCoupling | JointCoupling) -> None:
    element = add(root, "coupling", name=coupling.name)
    if isinstance(coupling, LinkCoupling):
        add(element, "predecessor", link=coupling.predecessor)
        add(element, "successor", link=coupling.successor)
        add(element, "ratio", value=number(coupling.ratio))
    else:
        for joint, ratio in coupling.terms:
            add(element, "joint", name=joint, ratio=number(ratio))
    if coupling.offset:
        add(element, "offset", value=number(coupling.offset))
