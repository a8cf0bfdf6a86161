"""URDF and URDF+ as a whole: reading and writing the elements under ``<robot>``.

Open trees are written with elements of Drake and MuJoCo. Drake reads the armature of a joint as the
rotor inertia of its motor. MuJoCo's URDF has no armature; of its ``<mujoco>`` element, it reads
``<compiler>``, ``<option>`` and ``<size>`` only. Sources: ``ParseTransmission`` in Drake's
``detail_urdf_parser.cc``, ``Parse`` in MuJoCo's ``xml_urdf.cc``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from lxml import etree

from robomodel.description import (
    GRAVITY,
    ONE_DOF,
    Description,
    Inertial,
    Joint,
    Link,
    Mimic,
    Spring,
)
from robomodel.description.poses import link_poses
from robomodel.parsers.urdf.dialects import (
    read_constraint,
    read_drake,
    read_loop_joint,
    without_closing_frames,
)
from robomodel.parsers.urdf.joints import (
    UNIVERSAL,
    Elements,
    add_coupling,
    add_joint,
    add_loop,
    changed_joint,
    has_duplicates,
    read_coupling,
    read_joint,
    read_loop,
    read_universal,
    with_mimics,
)
from robomodel.parsers.urdf.links import (
    Colours,
    Rgba,
    add_link,
    add_link_friction,
    changed_link,
    read_link,
)
from robomodel.vocabulary.frames import WORLD, XYZ, named_sensors
from robomodel.vocabulary.inertias import carriers, heavy, physical_inertias
from robomodel.vocabulary.motors import (
    EFFORT_INTERFACE,
    add_drake_armature,
    add_transmission,
    read_transmission,
    with_motors,
)
from robomodel.vocabulary.rotors import driven_by, filled, with_rotor_words
from robomodel.vocabulary.schema import MIMIC, add, add_text, numbers, text_of
from robomodel.vocabulary.springs import (
    add_drake_ties,
    add_linear_spring,
    add_spring,
    read_spring,
    rest_length,
)
from robomodel.vocabulary.xml import DRAKE, Document, Element, refuse_xacro, words

_ROBOT_PARTS = words(
    "link joint loop loop_joint constraint coupling spring transmission ros2_control gravity"
)
_ROBOT_IRRELEVANT = frozenset(("material", "sensor", "mujoco", "plugin"))


def read_urdf(document: Document, base: Description | None = None) -> Description:
    """Read ``<robot>`` element by element; names are not resolved yet.

    With ``base``, the document extends it: elements are added, and a ``<link>`` or ``<joint>`` with
    the name of an existing one changes that (inertial; origin, limits, mimic, dynamics, initial
    position, rotor and independence; not the links it joins). A ``<loop>``, ``<coupling>``,
    ``<spring>`` or ``<transmission>`` replaces the one of its name. A joint's name may have
    wildcards.
    """
    root = document.root
    refuse_xacro(document)
    document.expect(root, frozenset(("name", "version")))
    colours = Colours(document)
    base_links = {link.name: link for link in base.links} if base else {}
    base_joints = {joint.name: joint for joint in base.joints} if base else {}
    elements, gazebo = Elements(), []
    gravity = base.gravity if base else None
    for element in root:
        match element.tag:
            case "link":
                link = read_link(document, element, colours)
                if link.name in base_links:
                    base_links[link.name] = changed_link(base_links[link.name], link)
                else:
                    elements.links.append(link)
            case "joint":
                if base is not None and (meant := _changed(document, element, base_joints)):
                    base_joints |= meant
                elif element.get("type") == UNIVERSAL:
                    between, *both = read_universal(document, element)
                    elements.links.append(between)
                    elements.joints += both
                else:
                    elements.joints.append(read_joint(document, element))
            case "loop":
                elements.loops.append(read_loop(document, element))
            case "loop_joint":
                elements.loops.append(read_loop_joint(document, element))
            case "constraint":
                elements.loops.append(read_constraint(document, element))
            case "coupling":
                elements.couplings.append(read_coupling(document, element))
            case "spring":
                elements.springs.append(read_spring(document, element))
            case "transmission":
                elements.transmissions.append(read_transmission(document, element))
            case "ros2_control":
                _ros2_control(document, element, elements)
            case "gravity":
                document.expect(element, XYZ)
                if element is not root.find("gravity"):
                    document.warn_at(element, "another <gravity>; the first is read")
                    continue
                gravity = document.vector(element, "xyz")
            case "gazebo":
                gazebo.append(element)
            case tag if tag not in _ROBOT_IRRELEVANT:
                if not read_drake(document, element, elements):
                    document.unknown(element, _ROBOT_PARTS)
    links = {*base_links, *(link.name for link in elements.links)}
    elements.links += _ground(document, elements.joints, links)
    base = base or _empty(document)
    changed = replace(
        base,
        links=tuple(base_links.values()),
        joints=tuple(base_joints.values()),
        gravity=gravity,
        sensors=(*base.sensors, *named_sensors(document, root)),
    )
    description = elements.added_to(changed)
    if has_duplicates(description):
        return description  # check_structure refuses it
    description = with_mimics(document, description, elements.mimics)
    if any(len(element) for element in gazebo):
        from robomodel.parsers.urdf.gazebo import with_gazebo

        description = with_gazebo(document, gazebo, description)
    return description


def _empty(document: Document) -> Description:
    """A robot without elements, with the document's name."""
    if not (name := document.root.get("name")):
        name = "robot"
        document.warn_at(document.root, "the robot has no name; it is called 'robot'")
    return Description(name, (), source=document.source(document.root, f"robot '{name}'"))


def _ros2_control(document: Document, element: Element, elements: Elements) -> None:
    """Read transmissions of ``<ros2_control>``, and mimics in its parameters of joints."""
    for child in element.iterfind("transmission"):
        elements.transmissions.append(read_transmission(document, child))
    for joint in element.iterfind("joint"):
        values = {part.get("name"): part for part in joint.iterfind("param")}
        if (leader := values.get("mimic")) is not None:
            numbers = {
                each.field: document.content(values[each.name])
                for each in MIMIC.attributes
                if each.name in values
            }
            mimic = Mimic((leader.text or "").strip(), **numbers)
            elements.mimics.append((joint.get("name", ""), mimic, leader))


def _changed(document: Document, element: Element, joints: Mapping[str, Joint]) -> dict[str, Joint]:
    """The joints that an extension's ``<joint>`` changes, changed; empty if it is a new joint."""
    name = document.text(element, "name")
    placed = any(element.find(tag) is not None for tag in ("parent", "child"))
    if name not in joints and (placed or element.get("type") is not None):
        return {}
    try:
        meant = driven_by(name, joints)
    except ValueError as error:
        raise document.error(
            element, f"{error}; as for a new joint, the attribute 'type' is missing"
        ) from None
    changed = {}
    for each, stands in meant.items():
        joint = changed_joint(document, element, joints[each])
        if joint.rotor is not None and joint.rotor.link:
            rotor = replace(joint.rotor, link=filled(joint.rotor.link, stands))
            joint = replace(joint, rotor=rotor)
        changed[each] = joint
    return changed


def _ground(document: Document, joints: Sequence[Joint], links: Set[str]) -> list[Link]:
    """The link ``world`` if it is a joint's parent and not declared, by Drake's convention."""
    if WORLD in links or all(joint.parent != WORLD for joint in joints):
        return []
    for element in document.root.iterfind(f"joint/parent[@link='{WORLD}']"):
        document.warn_at(element, "the link 'world' is not declared; it is taken for the ground")
    return [Link(WORLD, source=next(joint.source for joint in joints if joint.parent == WORLD))]


# --- writing --------------------------------------------------------------------------------------


def to_urdf(description: Description) -> tuple[str, list[str]]:
    """The text of a URDF+ file of the description, and messages on what is left out.

    A robot without loops, couplings and the like gives plain URDF.
    """
    lost: list[str] = []
    return text_of(to_tree(with_rotor_words(description), lost)), lost


def to_tree(description: Description, lost: list[str]) -> Element:
    """The ``<robot>`` element; appends to ``lost`` what URDF+ cannot express."""
    root = etree.Element("robot", {"name": description.name}, nsmap={"drake": DRAKE})
    if description.gravity is not None:
        add(root, "gravity", xyz=numbers(description.gravity))
    colours: dict[Rgba, str] = {}
    for link in description.links:
        add_link(root, link, colours)
    for link in description.links:
        add_link_friction(root, link)
    for joint in description.joints:
        add_joint(root, joint)
    for loop in description.loops:
        add_loop(root, loop)
    for coupling in description.couplings:
        add_coupling(root, coupling)
    for spring in description.springs:
        add_spring(root, spring)
    for transmission in description.transmissions:
        for end in add_transmission(root, transmission, lost).iterfind("joint"):
            add_text(end, "hardwareInterface", EFFORT_INTERFACE)  # as ROS asks
    return root


_TRACE = 2e-14  # kg and kg m²: twice the least mass and moment that MuJoCo accepts (mjEPS)
_REFUSED = ("plane", "ellipsoid")  # shapes for which Drake or MuJoCo refuses a file


def to_open_urdf(description: Description) -> tuple[str, list[str]]:
    """The text of an open tree as URDF that Drake and MuJoCo read with all its dynamics."""
    lost: list[str] = []
    description = _for_simulators(without_closing_frames(description), lost)
    root = to_tree(description, lost)
    _add_words(root, description)
    return text_of(root), lost


def _for_simulators(description: Description, lost: list[str]) -> Description:
    """An open tree with the motors, inertias and shapes that the simulators accept."""
    links = []
    for link in description.links:
        shapes = []
        for shape in link.shapes:
            flat = shape.kind != "mesh" and min(shape.size, default=1.0) <= 0.0
            if flat or shape.kind in _REFUSED:
                what = f"{shape.kind} without extent" if flat else shape.kind
                lost.append(
                    f"the {what} of the link '{link.name}', which simulators refuse in URDF"
                )
            else:
                shapes.append(shape)
        links.append(replace(link, shapes=tuple(shapes)))
    gravity = None if description.gravity == GRAVITY else description.gravity
    tree = replace(description, links=tuple(links), gravity=gravity)
    return _with_some_mass(physical_inertias(with_motors(tree)))


def _with_some_mass(description: Description) -> Description:
    """A tiny mass for each massless moving link: MuJoCo refuses a file otherwise."""
    light = {joint.child for joint in description.joints if joint.type != "fixed"}
    light -= carriers(description)
    links = []
    for link in description.links:
        inertial = link.inertial or Inertial(0.0, (0.0,) * 6)
        if link.name in light and not heavy(inertial):
            xx, xy, xz, yy, yz, zz = inertial.inertia
            moments = xx + _TRACE, xy, xz, yy + _TRACE, yz, zz + _TRACE
            inertial = replace(inertial, mass=inertial.mass or _TRACE, inertia=moments)
            links.append(replace(link, inertial=inertial))
        else:
            links.append(link)
    return replace(description, links=tuple(links))


def _add_words(root: etree._Element, description: Description) -> None:
    """Add Drake's elements to the motors of joints, and MuJoCo's to the robot."""
    armature = {
        joint.name: joint.armature
        for joint in description.joints
        if joint.type in ONE_DOF and joint.armature
    }
    for transmission in root.iterfind("transmission"):
        ends, actuators = transmission.findall("joint"), transmission.findall("actuator")
        if len(ends) != 1 or len(actuators) != 1:
            continue
        if value := armature.pop(ends[0].get("name", ""), 0.0):
            add_drake_armature(actuators[0], value, as_text=False)
    at_zero = link_poses(description)
    for element, spring in zip(root.findall("spring"), description.springs, strict=True):
        if not isinstance(spring, Spring):
            continue
        anchors = (spring.predecessor, spring.successor)
        length = rest_length(spring, at_zero)
        if length > 0.0:
            root.remove(element)
            bodies, points = [end.link for end in anchors], [end.origin.xyz for end in anchors]
            add_linear_spring(root, replace(spring, length=length), bodies, points, as_text=False)
    add_drake_ties(root, description)
    root.insert(0, _mujoco(description))


def _mujoco(description: Description) -> etree._Element:
    """MuJoCo's options: shapes have no mass, visuals are shown, mesh paths are kept."""
    element = etree.Element("mujoco")
    compiler = etree.SubElement(element, "compiler", inertiafromgeom="false", discardvisual="false")
    meshes = [s.file or "" for link in description.links for s in link.shapes if s.kind == "mesh"]
    if meshes and not any(":" in file for file in meshes):
        compiler.set("strippath", "false")
    if description.gravity is not None:
        etree.SubElement(element, "option", gravity=numbers(description.gravity))
    return element
