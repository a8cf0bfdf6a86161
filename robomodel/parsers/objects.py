"""Robots that other packages have read: ``URDF`` objects of urchin, urdfpy and yourdfpy.

What such an object kept of its file becomes URDF again and goes through the same reader. The
packages' own writers serve less: one cuts numbers to eight digits and writes meshes to disk, the
other leaves out mimic. What an object did not keep cannot be had: all three lose ``independent``,
``<initial>`` and other attributes and elements of joints that URDF does not have; yourdfpy keeps no
transmissions, loops and couplings either. Neither package is imported here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lxml import etree

from robomodel.description.poses import rows3
from robomodel.parsers import xml
from robomodel.parsers.schema import LIMIT, MIMIC, SIZES
from robomodel.parsers.text import number, numbers, rpy_of

PACKAGES = ("urchin", "urdfpy", "yourdfpy")


def package_of(source: object) -> str:
    """The package of which this is a ``URDF`` object, or of a class derived from it; else none."""
    for base in type(source).__mro__:
        package = base.__module__.partition(".")[0]
        if base.__name__ == "URDF" and package in PACKAGES:
            return package
    return ""


_JOINT_PARTS = {
    "limit": tuple(LIMIT.by_name),
    "dynamics": ("damping", "friction"),
    "mimic": (*MIMIC.texts, *MIMIC.by_name),
}
_GEOMETRIES = {
    **{kind: tuple(SIZES[kind].urdf) for kind in ("box", "cylinder", "sphere")},
    "mesh": ("filename", "scale"),
}


def to_document(source: Any, *, strict: bool = False) -> xml.Document:
    """The URDF document of what the object holds."""
    package = package_of(source)
    robot = source.robot if package == "yourdfpy" else source
    root = etree.Element("robot", name=robot.name)
    document = xml.Document(root, f"<{package}.URDF>", strict)
    for material in robot.materials:
        _material(root, material)
    for link in robot.links:
        element = _add(root, "link", name=link.name)
        if package != "yourdfpy" and _is_default(link.inertial):
            document.warn_at(
                element,
                f"has the 1 kg and unit inertia that {package} gives to links without <inertial>, "
                "and is read as massless",
                "invented inertia",
            )
        elif link.inertial is not None:
            _inertial(element, link.inertial)
        for tag, shapes in (("visual", link.visuals), ("collision", link.collisions)):
            for shape in shapes:
                part = _add(element, tag, name=shape.name)
                _origin(part, shape.origin)
                _parts(_add(part, "geometry"), shape.geometry, _GEOMETRIES)
                if (material := getattr(shape, "material", None)) is not None:
                    _material(part, material)
    for joint in robot.joints:
        kind = joint.joint_type if hasattr(joint, "joint_type") else joint.type
        element = _add(root, "joint", name=joint.name, type=kind)
        _add(element, "parent", link=joint.parent)
        _add(element, "child", link=joint.child)
        _origin(element, joint.origin)
        if joint.axis is not None:
            _add(element, "axis", xyz=joint.axis)
        _parts(element, joint, _JOINT_PARTS)
    for transmission in getattr(robot, "transmissions", ()):
        element = _add(root, "transmission", name=transmission.name)
        _add(element, "type").text = transmission.trans_type
        for joint in transmission.joints:
            _add(element, "joint", name=joint.name)
        for actuator in transmission.actuators:
            part = _add(element, "actuator", name=actuator.name)
            if actuator.mechanicalReduction is not None:
                _add(part, "mechanicalReduction").text = number(float(actuator.mechanicalReduction))
    if other := getattr(robot, "other_xml", None):
        text = other.decode() if isinstance(other, bytes) else other
        root.extend(xml.parse(text, document.file, strict=strict).root)
    return document


def _add(parent: etree._Element, tag: str, **values: Any) -> etree._Element:
    """An element with attributes: texts, numbers and vectors, as far as they are not None."""
    attributes = {name: _text(value) for name, value in values.items() if value is not None}
    return etree.SubElement(parent, tag, attributes)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return numbers(map(float, value)) if isinstance(value, Iterable) else number(float(value))


def _parts(parent: etree._Element, source: Any, table: dict[str, tuple[str, ...]]) -> None:
    """Those children of a table's tags that ``source`` has, with their attributes."""
    for tag, names in table.items():
        if (part := getattr(source, tag)) is not None:
            values = {name: getattr(part, name) for name in names}
            if isinstance(scale := values.get("scale"), float):
                values["scale"] = [scale] * 3
            _add(parent, tag, **values)


def _origin(parent: etree._Element, matrix: Any) -> None:
    """A 4 × 4 matrix as ``<origin>``."""
    if matrix is not None:
        rotation = rows3(row[:3] for row in matrix[:3])
        _add(parent, "origin", xyz=[row[3] for row in matrix[:3]], rpy=rpy_of(rotation))


def _is_default(inertial: Any) -> bool:
    unit = [[float(i == j) for j in range(4)] for i in range(4)]
    return bool(
        inertial.mass == 1.0
        and inertial.inertia.tolist() == [row[:3] for row in unit[:3]]
        and inertial.origin.tolist() == unit
    )


def _inertial(link: etree._Element, inertial: Any) -> None:
    element = _add(link, "inertial")
    _origin(element, inertial.origin)
    if inertial.mass is not None:
        _add(element, "mass", value=inertial.mass)
    if inertial.inertia is not None:
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertial.inertia
        _add(element, "inertia", ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)


def _material(parent: etree._Element, material: Any) -> None:
    element = _add(parent, "material", name=material.name)
    if material.color is not None:
        _add(element, "color", rgba=getattr(material.color, "rgba", material.color))
