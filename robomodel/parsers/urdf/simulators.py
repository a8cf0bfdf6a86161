"""What Drake and MuJoCo read of a URDF file beyond URDF, added to one that is written for them.

Drake takes the armature of a joint as the rotor of the motor that drives it. MuJoCo has no word for
it in URDF; of its own ``<mujoco>`` it reads ``<compiler>``, ``<option>`` and ``<size>`` only.
Sources: ``ParseTransmission`` in Drake's ``detail_urdf_parser.cc``, ``Parse`` in MuJoCo's
``xml_urdf.cc``.
"""

from __future__ import annotations

from dataclasses import replace

from lxml import etree

from robomodel.description import (
    GRAVITY,
    ONE_DOF,
    Description,
    Inertial,
    Link,
    Shape,
    Spring,
)
from robomodel.parsers.shared.drake import add_linear_spring
from robomodel.parsers.shared.inertias import carriers, heavy, physical_inertias
from robomodel.parsers.shared.motors import with_motors
from robomodel.parsers.shared.springs import rest_length
from robomodel.parsers.urdf.robot import text_of, to_tree
from robomodel.parsers.xml import DRAKE
from robomodel.poses import link_poses
from robomodel.text import number, numbers

_TRACE = 2e-14  # kg and kg m²: twice the least moment that MuJoCo takes (mjEPS)
_UNKNOWN = ("plane", "ellipsoid")  # shapes for which the one or the other refuses a file


def to_open_urdf(description: Description) -> tuple[str, list[str]]:
    """The text of an open tree as URDF, in words that Drake and MuJoCo read, too."""
    lost: list[str] = []
    description = _for_simulators(description, lost)
    root = to_tree(description, lost)
    _add_words(root, description)
    return text_of(root), lost


def _for_simulators(description: Description, lost: list[str]) -> Description:
    """An open tree with motors and inertias as they take them, without shapes of other formats."""
    links = tuple(
        replace(link, shapes=tuple(each for each in link.shapes if _is_known(each, link, lost)))
        for link in description.links
    )
    gravity = None if description.gravity == GRAVITY else description.gravity
    tree = replace(description, links=links, gravity=gravity)
    return _with_some_mass(physical_inertias(with_motors(tree, simple=True)))


def _is_known(shape: Shape, link: Link, lost: list[str]) -> bool:
    flat = shape.kind != "mesh" and min(shape.size, default=1.0) <= 0.0
    if shape.kind in _UNKNOWN or flat:
        what = f"{shape.kind} without extent" if flat else shape.kind
        lost.append(f"the {what} of the link '{link.name}', which simulators refuse in URDF")
    return not (shape.kind in _UNKNOWN or flat)


def _with_some_mass(description: Description) -> Description:
    """A trace of mass for each link that moves without one: MuJoCo refuses a file with less."""
    light = {joint.child for joint in description.joints if joint.type != "fixed"}
    light -= carriers(description)
    links = (
        replace(link, inertial=_with_trace(link.inertial or Inertial(0.0, (0.0,) * 6)))
        if link.name in light and not heavy(link.inertial)
        else link
        for link in description.links
    )
    return replace(description, links=tuple(links))


def _with_trace(said: Inertial) -> Inertial:
    xx, xy, xz, yy, yz, zz = said.inertia
    moments = xx + _TRACE, xy, xz, yy + _TRACE, yz, zz + _TRACE
    return replace(said, mass=said.mass or _TRACE, inertia=moments)


def _add_words(root: etree._Element, description: Description) -> None:
    """Drake's words in the motors of joints, and MuJoCo's in the robot."""
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
            for tag, words in (("rotor_inertia", number(value)), ("gear_ratio", "1")):
                etree.SubElement(actuators[0], f"{{{DRAKE}}}{tag}", value=words)
    at_zero = link_poses(description)
    for said, spring in zip(root.findall("spring"), description.springs, strict=True):
        if not isinstance(spring, Spring):
            continue
        anchors = (spring.predecessor, spring.successor)
        length = rest_length(spring, at_zero)
        if length > 0.0:
            root.remove(said)
            bodies, points = [end.link for end in anchors], [end.origin.xyz for end in anchors]
            add_linear_spring(root, replace(spring, length=length), bodies, points, as_text=False)
    root.insert(0, _mujoco(description))


def _mujoco(description: Description) -> etree._Element:
    """What MuJoCo is told: to weigh no shapes, to show those that are seen, where meshes are."""
    element = etree.Element("mujoco")
    compiler = etree.SubElement(element, "compiler", inertiafromgeom="false", discardvisual="false")
    meshes = [s.file or "" for link in description.links for s in link.shapes if s.kind == "mesh"]
    if meshes and not any(":" in file for file in meshes):
        compiler.set("strippath", "false")
    if description.gravity is not None:
        etree.SubElement(element, "option", gravity=numbers(description.gravity))
    return element
