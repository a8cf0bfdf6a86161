"""The elements under ``<robot>``, each handed to its reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from robomodel.description import Description, Joint, Link, Mimic
from robomodel.parsers.shared.elements import XYZ
from robomodel.parsers.shared.sensors import named_sensors
from robomodel.parsers.shared.springs import read_spring
from robomodel.parsers.shared.transmissions import read_transmission
from robomodel.parsers.transmissions import driven_by
from robomodel.parsers.urdf.closures import read_loop_joint
from robomodel.parsers.urdf.drake import READERS as DRAKE
from robomodel.parsers.urdf.found import Found, has_duplicates, with_mimics
from robomodel.parsers.urdf.joints import UNIVERSAL, changed_joint, read_joint, read_universal
from robomodel.parsers.urdf.links import Colours, changed_link, read_link
from robomodel.parsers.urdf.loops import read_coupling, read_loop
from robomodel.parsers.wildcards import filled
from robomodel.parsers.xml import Document, Element, refuse_xacro, shown, words

_ROBOT_PARTS = words("link joint loop loop_joint coupling spring transmission ros2_control gravity")
_WORLD = "world"
_ROBOT_IRRELEVANT = frozenset(("material", "sensor", "mujoco", "plugin"))


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
    found, gazebo = Found(), []
    gravity = base.gravity if base else None
    for element in root:
        match element.tag:
            case "link":
                link = read_link(document, element, colours)
                if link.name in known_links:
                    known_links[link.name] = changed_link(known_links[link.name], link)
                else:
                    found.links.append(link)
            case "joint":
                if base is not None and (meant := _changed(document, element, known_joints)):
                    known_joints |= meant
                elif element.get("type") == UNIVERSAL:
                    between, *both = read_universal(document, element)
                    found.links.append(between)
                    found.joints += both
                else:
                    found.joints.append(read_joint(document, element))
            case "loop":
                found.loops.append(read_loop(document, element))
            case "loop_joint":
                found.loops.append(read_loop_joint(document, element))
            case "coupling":
                found.couplings.append(read_coupling(document, element))
            case "spring":
                found.springs.append(read_spring(document, element))
            case "transmission":
                found.transmissions.append(read_transmission(document, element))
            case "ros2_control":
                _ros2_control(document, element, found)
            case "gravity":
                document.expect(element, XYZ)
                if element is not root.find("gravity"):
                    document.suspect(element, "another <gravity>; the first is read")
                    continue
                gravity = document.vector(element, "xyz")
            case "gazebo":
                gazebo.append(element)
            case tag if tag not in _ROBOT_IRRELEVANT:
                if (reader := DRAKE.get(shown(element))) is not None:
                    reader(document, element, found)
                else:
                    document.unknown(element, _ROBOT_PARTS)
    links = {*known_links, *(link.name for link in found.links)}
    found.links += _ground(document, found.joints, links)
    if base is None:
        name = root.get("name") or "robot"
        if not root.get("name"):
            document.suspect(root, "the robot has no name; it is called 'robot'")
        base = Description(name, (), source=document.source(root, f"robot '{name}'"))
    changed = replace(
        base,
        links=tuple(known_links.values()),
        joints=tuple(known_joints.values()),
        gravity=gravity,
        sensors=(*base.sensors, *named_sensors(document, root)),
    )
    description = found.added_to(changed)
    if has_duplicates(description):
        return description  # which is refused when the whole is looked at
    description = with_mimics(document, description, found.mimics)
    if any(len(element) for element in gazebo):
        from robomodel.parsers.urdf.gazebo import with_gazebo

        description = with_gazebo(document, gazebo, description)
    return description


def _ros2_control(document: Document, element: Element, found: Found) -> None:
    """Transmissions, and joints that a controller makes mimic others by their parameters."""
    for child in element.iterfind("transmission"):
        found.transmissions.append(read_transmission(document, child))
    for joint in element.iterfind("joint"):
        said = {part.get("name"): part for part in joint.iterfind("param")}
        if (leader := said.get("mimic")) is not None:
            factor, offset = (
                document.content(said[word]) if word in said else default
                for word, default in (("multiplier", 1.0), ("offset", 0.0))
            )
            mimic = Mimic((leader.text or "").strip(), factor, offset)
            found.mimics.append((joint.get("name", ""), mimic, leader))


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
