"""The elements under ``<robot>``, each handed to its reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from robomodel.description import (
    Description,
    Joint,
    JointCoupling,
    JointSpring,
    Link,
    LinkCoupling,
    Loop,
    Spring,
    Transmission,
)
from robomodel.parsers.transmissions import driven_by
from robomodel.parsers.urdf.elements import XYZ
from robomodel.parsers.urdf.joints import changed_joint, read_joint
from robomodel.parsers.urdf.links import Colours, changed_link, read_link
from robomodel.parsers.urdf.loops import read_coupling, read_loop
from robomodel.parsers.urdf.springs import read_spring
from robomodel.parsers.urdf.transmissions import read_transmission
from robomodel.parsers.wildcards import filled
from robomodel.parsers.xml import Document, Element, refuse_xacro

_ROBOT_PARTS = frozenset(
    ("link", "joint", "loop", "coupling", "spring", "transmission", "ros2_control", "gravity")
)
_WORLD = "world"
_ROBOT_IRRELEVANT = frozenset(("material", "gazebo", "sensor", "mujoco", "plugin"))


def read_urdf(document: Document, base: Description | None = None) -> Description:
    """What ``<robot>`` says, element by element; names are not looked up yet.

    With ``base``, the document extends it: elements are added, and a ``<link>`` or ``<joint>`` of a
    name that the base has changes that one (an inertial; limits, mimic, dynamics, initial position,
    rotor and independence; not what the tree is made of). A joint's name may have wildcards.
    """
    root = document.root
    refuse_xacro(document)
    document.expect(root, frozenset(("name", "version")))
    colours = Colours(document)
    known_links = {link.name: link for link in base.links} if base else {}
    known_joints = {joint.name: joint for joint in base.joints} if base else {}
    links: list[Link] = []
    joints: list[Joint] = []
    loops: list[Loop] = []
    couplings: list[LinkCoupling | JointCoupling] = []
    transmissions: list[Transmission] = []
    springs: list[Spring | JointSpring] = []
    gravity = base.gravity if base else None
    for element in root:
        tag = element.tag
        if tag == "link":
            link = read_link(document, element, colours)
            if link.name in known_links:
                known_links[link.name] = changed_link(known_links[link.name], link)
            else:
                links.append(link)
        elif tag == "joint":
            if base is not None and (meant := _changed(document, element, known_joints)):
                known_joints |= meant
            else:
                joints.append(read_joint(document, element))
        elif tag == "loop":
            loops.append(read_loop(document, element))
        elif tag == "coupling":
            couplings.append(read_coupling(document, element))
        elif tag == "spring":
            springs.append(read_spring(document, element))
        elif tag == "transmission":
            transmissions.append(read_transmission(document, element))
        elif tag == "ros2_control":
            transmissions.extend(
                read_transmission(document, child) for child in element.iterfind("transmission")
            )
        elif tag == "gravity":
            document.expect(element, XYZ)
            gravity = document.vector(element, "xyz")
        elif tag not in _ROBOT_IRRELEVANT:
            document.unknown(element, _ROBOT_PARTS)
    links += _ground(document, joints, {*known_links, *(link.name for link in links)})
    if base is not None:
        return replace(
            base,
            links=(*known_links.values(), *links),
            joints=(*known_joints.values(), *joints),
            loops=(*base.loops, *loops),
            couplings=(*base.couplings, *couplings),
            transmissions=(*base.transmissions, *transmissions),
            gravity=gravity,
            springs=(*base.springs, *springs),
        )
    name = root.get("name")
    if not name:
        document.suspect(root, "the robot has no name; it is called 'robot'")
    return Description(
        name or "robot",
        tuple(links),
        tuple(joints),
        tuple(loops),
        tuple(couplings),
        tuple(transmissions),
        document.source(root, f"robot '{name or 'robot'}'"),
        gravity,
        springs=tuple(springs),
    )


def _changed(document: Document, element: Element, known: Mapping[str, Joint]) -> dict[str, Joint]:
    """The joints that an extension's ``<joint>`` changes, as it does; none for a new one."""
    name = document.text(element, "name")
    placed = any(element.find(tag) is not None for tag in ("parent", "child"))
    if name not in known and (placed or element.get("type") is not None):
        return {}
    try:
        meant = driven_by(name, known)
    except ValueError as error:
        raise document.error(
            element, f"{error}; as for a new joint, the attribute 'type' is missing"
        ) from None
    changed = {}
    for each, stands in meant.items():
        joint = changed_joint(document, element, known[each])
        if joint.rotor is not None and joint.rotor.link:
            rotor = replace(joint.rotor, link=filled(joint.rotor.link, stands))
            joint = replace(joint, rotor=rotor)
        changed[each] = joint
    return changed


def _ground(document: Document, joints: Sequence[Joint], links: Set[str]) -> list[Link]:
    """The link ``world`` if joints hang on it and nobody declares it: Drake's convention."""
    if _WORLD in links or all(joint.parent != _WORLD for joint in joints):
        return []
    for element in document.root.iterfind(f"joint/parent[@link='{_WORLD}']"):
        document.suspect(element, "the link 'world' is not declared; it is taken for the ground")
    return [Link(_WORLD, source=next(joint.source for joint in joints if joint.parent == _WORLD))]
