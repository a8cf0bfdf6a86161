"""Armature written into files of others: MJCF's attribute, and Drake's tags in URDF.

Text in, text out: only what is said of armature changes, and comments and order stay.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from lxml import etree

from robomodel.errors import DescriptionError, Source
from robomodel.model import Model
from robomodel.parsers import xml
from robomodel.studies.subject import Subject
from robomodel.writers.text import number

DRAKE = "http://drake.mit.edu"
_SIMPLE = "transmission_interface/SimpleTransmission"
_AGREES = 1e-9  # relative: an armature that is that of one rotor through one gear


@dataclass(frozen=True, slots=True)
class Motor:
    """A rotor's inertia about its axis, and how far it turns for its joint."""

    inertia: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Annotated:
    """A file's new text, the joints that were found in it, and those that were not."""

    text: str
    written: tuple[str, ...]
    missing: tuple[str, ...]


def annotate_mjcf(text: str, file: str, armature: Mapping[str, float]) -> Annotated:
    """An MJCF file with ``armature=`` on its joints of these names."""
    tree = _tree(text, file, "mujoco")
    written = []
    for element in tree.getroot().iter("joint"):
        name = element.get("name", "")
        if name in armature and _in_a_body(element):
            element.set("armature", number(armature[name]))
            written.append(name)
    return _annotated(tree, text, written, armature)


def _in_a_body(element: etree._Element) -> bool:
    """Joints of defaults, equalities and sensors are references or templates."""
    parent = element.getparent()
    return parent is not None and parent.tag == "body"


def annotate_drake(text: str, file: str, motors: Mapping[str, Motor]) -> Annotated:
    """A URDF file with Drake's rotor_inertia and gear_ratio in the actuators of these joints.

    Joints without a simple transmission get one.
    """
    if "xmlns:drake" not in text:
        text = re.sub(r"<robot\b", f'<robot xmlns:drake="{DRAKE}"', text, count=1)
    tree = _tree(text, file, "robot")
    root = tree.getroot()
    known = {joint.get("name") for joint in root.findall("joint")}
    taken = {each.get("name") for each in root.findall("transmission")}
    written = []
    for joint, motor in motors.items():
        if joint not in known:
            continue
        actuator = _actuator(root, joint, taken)
        for tag, value in (("rotor_inertia", motor.inertia), ("gear_ratio", abs(motor.ratio))):
            name = f"{{{DRAKE}}}{tag}"
            found = actuator.find(name)
            if found is None:
                found = etree.SubElement(actuator, name)
            found.set("value", number(value))
        written.append(joint)
    etree.indent(tree, "  ")
    return _annotated(tree, text, written, motors)


def _actuator(root: etree._Element, joint: str, taken: set[str | None]) -> etree._Element:
    """The actuator of the joint's simple transmission, a new one where there is none."""
    for transmission in root.findall("transmission"):
        ends, actuators = transmission.findall("joint"), transmission.findall("actuator")
        kind = (transmission.findtext("type") or transmission.get("type") or _SIMPLE).strip()
        simple = kind.endswith("SimpleTransmission") and len(actuators) == 1
        if simple and [end.get("name") for end in ends] == [joint]:
            return actuators[0]
    name = f"{joint}_transmission"
    while name in taken:
        name += "_"
    taken.add(name)
    transmission = etree.SubElement(root, "transmission", name=name)
    etree.SubElement(transmission, "type").text = _SIMPLE
    end = etree.SubElement(transmission, "joint", name=joint)
    etree.SubElement(end, "hardwareInterface").text = "hardware_interface/EffortJointInterface"
    return etree.SubElement(transmission, "actuator", name=f"{joint}_actuator")


def motors(model: Model, armature: Mapping[str, float]) -> dict[str, Motor]:
    """The rotor and gear that make these armatures; one of ratio 1 where there is no such one."""
    of_joint: dict[str, list[Motor]] = {}
    for rotor in Subject(model).rotors:
        for joint, ratio in rotor.ratios.items():
            of_joint.setdefault(joint, []).append(Motor(rotor.inertia, ratio))
    result = {}
    for joint, value in armature.items():
        found = of_joint.get(joint, [])
        geared = len(found) == 1 and math.isclose(
            found[0].ratio ** 2 * found[0].inertia, value, rel_tol=_AGREES
        )
        result[joint] = found[0] if geared else Motor(value, 1.0)
    return result


# ---- XML that keeps what is not ours -------------------------------------------------------------


def _tree(text: str, file: str, root: str) -> etree._ElementTree:
    """The document, comments included; checked first as any robot file is."""
    document = xml.parse(text, file, strict=True)
    if document.root.tag != root:
        raise DescriptionError(
            f"armature goes into a file with the root element <{root}>, this one has "
            f"<{document.root.tag}>",
            Source(file),
        )
    parser = etree.XMLParser(
        resolve_entities=False, load_dtd=False, no_network=True, remove_blank_text=False
    )
    return etree.fromstring(text.encode("utf-8"), parser).getroottree()


def _annotated(
    tree: etree._ElementTree, text: str, written: list[str], wanted: Mapping[str, object]
) -> Annotated:
    result = etree.tostring(tree, encoding="unicode")
    if text.lstrip("\ufeff \t\r\n").startswith("<?xml"):
        result = f'<?xml version="1.0" encoding="utf-8"?>\n{result}'
    missing = tuple(name for name in wanted if name not in written)
    return Annotated(result.rstrip("\n") + "\n", tuple(written), missing)
