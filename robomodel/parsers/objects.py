"""Robots that other packages have read: ``URDF`` objects of urchin, urdfpy and yourdfpy.

What such an object kept of its file is said again in URDF and goes through the same reader. The
packages' own writers serve less: one cuts numbers to eight digits and writes meshes to disk, the
other leaves out mimic. What an object did not keep cannot be had: all three lose ``independent``,
``<initial>`` and other attributes and elements of joints that URDF does not have; yourdfpy keeps no
transmissions, loops and couplings either. Neither package is imported here.
"""

from __future__ import annotations

from typing import Any

from lxml import etree

from robomodel.description import Rows3
from robomodel.parsers import xml
from robomodel.text import number, numbers, rpy_of

PACKAGES = ("urchin", "urdfpy", "yourdfpy")


def is_robot(source: object) -> bool:
    """Whether this is a ``URDF`` object of one of the packages, or of a class derived from it."""
    return bool(_package(source))


def _package(source: object) -> str:
    for base in type(source).__mro__:
        package = base.__module__.partition(".")[0]
        if base.__name__ == "URDF" and package in PACKAGES:
            return package
    return ""


def to_document(source: Any, *, strict: bool = False) -> xml.Document:
    """The URDF document that says what the object holds."""
    package = _package(source)
    robot = source.robot if package == "yourdfpy" else source
    root = etree.Element("robot", name=robot.name)
    document = xml.Document(root, f"<{package}.URDF>", strict)
    for material in robot.materials:
        _material(root, material)
    for link in robot.links:
        element = _add(root, "link", name=link.name)
        if package != "yourdfpy" and _is_default(link.inertial):
            document.suspect(
                element,
                f"has the 1 kg and unit inertia that {package} gives to links without <inertial>, "
                "and is read as massless",
                "invented inertia",
            )
        elif link.inertial is not None:
            _inertial(element, link.inertial)
        for tag, shapes in (("visual", link.visuals), ("collision", link.collisions)):
            for shape in shapes:
                _shape(element, tag, shape)
    for joint in robot.joints:
        _joint(root, joint)
    for transmission in getattr(robot, "transmissions", ()):
        _transmission(root, transmission)
    if other := getattr(robot, "other_xml", None):
        text = other.decode() if isinstance(other, bytes) else other
        root.extend(xml.parse(text, document.file, strict=strict).root)
    return document


def _add(parent: etree._Element, tag: str, **attributes: str | None) -> etree._Element:
    said = {name: text for name, text in attributes.items() if text is not None}
    return etree.SubElement(parent, tag, said)


def _number(value: Any) -> str | None:
    return None if value is None else number(float(value))


def _vector(values: Any) -> str | None:
    return None if values is None else numbers(map(float, values))


def _origin(parent: etree._Element, matrix: Any) -> None:
    """A 4 × 4 matrix as ``<origin>``."""
    if matrix is not None:
        rows: list[Any] = [tuple(map(float, row)) for row in matrix[:3]]
        rotation: Rows3 = (rows[0][:3], rows[1][:3], rows[2][:3])
        xyz = [row[3] for row in rows]
        _add(parent, "origin", xyz=numbers(xyz), rpy=numbers(rpy_of(rotation)))


# --- links ----------------------------------------------------------------------------------------


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
        _add(element, "mass", value=_number(inertial.mass))
    if inertial.inertia is not None:
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = (map(_number, row) for row in inertial.inertia)
        _add(element, "inertia", ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)


def _shape(link: etree._Element, tag: str, shape: Any) -> None:
    element = _add(link, tag, name=shape.name)
    _origin(element, shape.origin)
    geometry, said = _add(element, "geometry"), shape.geometry
    if said.box is not None:
        _add(geometry, "box", size=_vector(said.box.size))
    if said.cylinder is not None:
        radius, length = _number(said.cylinder.radius), _number(said.cylinder.length)
        _add(geometry, "cylinder", radius=radius, length=length)
    if said.sphere is not None:
        _add(geometry, "sphere", radius=_number(said.sphere.radius))
    if said.mesh is not None:
        scale = said.mesh.scale
        scale = [scale] * 3 if isinstance(scale, float) else scale
        _add(geometry, "mesh", filename=said.mesh.filename, scale=_vector(scale))
    if (material := getattr(shape, "material", None)) is not None:
        _material(element, material)


def _material(parent: etree._Element, material: Any) -> None:
    element = _add(parent, "material", name=material.name)
    if material.color is not None:
        _add(element, "color", rgba=_vector(getattr(material.color, "rgba", material.color)))


# --- joints ---------------------------------------------------------------------------------------


def _joint(root: etree._Element, joint: Any) -> None:
    kind = joint.joint_type if hasattr(joint, "joint_type") else joint.type
    element = _add(root, "joint", name=joint.name, type=kind)
    _add(element, "parent", link=joint.parent)
    _add(element, "child", link=joint.child)
    _origin(element, joint.origin)
    if joint.axis is not None:
        _add(element, "axis", xyz=_vector(joint.axis))
    for tag, names in (
        ("limit", ("lower", "upper", "effort", "velocity")),
        ("dynamics", ("damping", "friction")),
    ):
        if (said := getattr(joint, tag)) is not None:
            _add(element, tag, **{name: _number(getattr(said, name)) for name in names})
    if joint.mimic is not None:
        multiplier, offset = _number(joint.mimic.multiplier), _number(joint.mimic.offset)
        _add(element, "mimic", joint=joint.mimic.joint, multiplier=multiplier, offset=offset)


def _transmission(root: etree._Element, transmission: Any) -> None:
    element = _add(root, "transmission", name=transmission.name)
    _add(element, "type").text = transmission.trans_type
    for joint in transmission.joints:
        _add(element, "joint", name=joint.name)
    for actuator in transmission.actuators:
        part = _add(element, "actuator", name=actuator.name)
        if actuator.mechanicalReduction is not None:
            _add(part, "mechanicalReduction").text = _number(actuator.mechanicalReduction)
