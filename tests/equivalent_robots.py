"""The same robot written otherwise: as its mirror image, in another order, with other names."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np
from mechanisms import Array
from oracle import default_axis2


def _changed(element: ET.Element, name: str, change: Callable[[Array], Array]) -> None:
    values = np.array([float(x) for x in element.get(name, "0 0 0").split()])
    element.set(name, " ".join(repr(float(x)) for x in change(values)))


def mirrored(text: str) -> str:
    """The mirror image in the x-z plane; joints' positions keep their signs."""
    flip, turned = np.array([1.0, -1.0, 1.0]), np.array([-1.0, 1.0, -1.0])
    robot = ET.fromstring(text)
    for origin in robot.iter("origin"):
        _changed(origin, "xyz", lambda x: flip * x)
        _changed(origin, "rpy", lambda x: turned * x)
    for inertia in robot.iter("inertia"):
        for entry in ("ixy", "iyz"):
            inertia.set(entry, repr(-float(inertia.get(entry, "0"))))
    for pitch in robot.iter("pitch"):
        pitch.set("value", repr(-float(pitch.get("value", "0"))))
    for joint in [*robot.findall("joint"), *robot.findall("loop")]:
        if joint.find("axis") is None:
            ET.SubElement(joint, "axis", xyz="1 0 0")
        for axis in joint.findall("axis"):
            if joint.get("type") == "universal" and joint.find("axis2") is None:
                first = np.array([float(x) for x in axis.get("xyz", "").split()])
                second = " ".join(map(repr, default_axis2(first).tolist()))
                ET.SubElement(joint, "axis2", xyz=second)
            # what turns about an axis turns the other way round in the mirror
            slides = joint.get("type") in ("prismatic", "planar")
            _changed(axis, "xyz", lambda x, way=flip if slides else turned: way * x)
        for axis in joint.findall("axis2"):
            _changed(axis, "xyz", lambda x: turned * x)
    return ET.tostring(robot, encoding="unicode")


def shuffled(text: str, rng: np.random.Generator) -> tuple[str, dict[str, str]]:
    """Links, joints, loops and couplings in another order, joints and links with other names.

    And the new name of each joint.
    """
    robot = ET.fromstring(text)
    rename: dict[str, dict[str, str]] = {}
    for kind in ("link", "joint"):
        names = [element.attrib["name"] for element in robot.findall(kind)]
        numbers = rng.permutation(len(names))
        rename[kind] = {name: f"{kind}{n}" for name, n in zip(names, numbers, strict=True)}
    for element in robot.iter():
        if element.tag in rename and element in list(robot):
            element.set("name", rename[element.tag][element.attrib["name"]])
        elif element.tag in rename:
            element.set("name", rename[element.tag].get(element.get("name", ""), ""))
        for kind, names in rename.items():
            if kind in element.attrib:
                element.set(kind, names[element.attrib[kind]])
    parts = list(robot)
    for part in parts:
        robot.remove(part)
    robot.extend(parts[i] for i in rng.permutation(len(parts)))
    return ET.tostring(robot, encoding="unicode"), rename["joint"]
