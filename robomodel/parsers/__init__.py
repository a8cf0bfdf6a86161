"""Readers of robot files: each turns one format into a :class:`~robomodel.description.Description`.

:func:`read` takes a path, text, bytes, an open file or an object, determines the format from the
root element, and calls that format's reader.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from robomodel.description import Description, Rotor, Shape
from robomodel.errors import DescriptionError
from robomodel.files import Entries, Resources, package_path
from robomodel.parsers.sources import fetch, of_robot_descriptions, open_document, robot_name
from robomodel.parsers.usd.stages import is_usd
from robomodel.vocabulary import xml
from robomodel.vocabulary.checks import check_plausible, check_structure
from robomodel.vocabulary.rotors import rotors_on_joints, with_rotors

if TYPE_CHECKING:
    from robomodel.description.shapes import Role

__all__ = ["FORMATS", "open_document", "read"]

FORMATS = ("urdf", "sdf", "mjcf", "usd")
"""The formats that :func:`read` reads; ``urdf`` is URDF and URDF+."""

_ROOTS = {"robot": "urdf", "sdf": "sdf", "mujoco": "mjcf"}  # root element → format

_OTHERS = {  # names of other kinds of files by their root elements, for messages
    "sdf": "an SDF file",
    "gazebo": "a file of Gazebo from before it had SDF's root element <sdf>",
    "mujoco": "an MJCF (MuJoCo) file",
    "COLLADA": "a COLLADA mesh or scene",
}


def read(
    source: object,
    *,
    extend: object = None,
    rotors: Mapping[str, Rotor] | None = None,
    xacro: Mapping[str, object] | None = None,
    resources: Entries | None = None,
    format: str | None = None,
    inertia_from: Role | None = None,
    density: float = 1000.0,
    name: str | None = None,
    strict: bool = False,
) -> Description:
    """Read a description from ``source``: a path, text, bytes, an open file, or an object.

    ``extend``: one source or a list of sources in the vocabulary of URDF+ (or in YAML, by the
    ending of the file), whose elements are added; a ``<link>`` or ``<joint>`` with the name of an
    existing one changes it. ``rotors``: rotors by the names of their joints, in which ``*``
    matches any text. ``xacro``: arguments of a xacro file; files are expanded if they are named
    ``*.xacro`` or if arguments are given. ``resources``: see :meth:`robomodel.files.Resources.of`.
    A string whose first character other than space is ``<`` is text, any other one a path.
    ``format`` is by default determined from the root element. ``inertia_from``: "collision" or
    "visual" computes missing inertias of links from these shapes, with this ``density`` [kg/m³].
    ``name`` selects a model of an SDF file, or its world for all of its models. Suspicious content
    is warned of (:class:`~robomodel.errors.DescriptionWarning`), or refused if ``strict``.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; known: {', '.join(FORMATS)}")
    if name_of_robot := robot_name(source):
        source, of_package = of_robot_descriptions(name_of_robot, format)
        resources = of_package.get("resources") if resources is None else resources
        xacro = {**of_package["xacro"], **(xacro or {})} if "xacro" in of_package else xacro
    folders = Resources.of(resources)
    if format == "usd" or (format is None and is_usd(source)):
        from robomodel.parsers.usd.robot import read_usd

        kind = "usd"
        description = read_usd(source, strict=strict)
    else:
        document = open_document(source, strict=strict, xacro=xacro, resources=folders)
        kind = format or _format_of(document)
        description = _read_xml(document, kind, name, folders)
    if name not in (None, description.name):
        raise DescriptionError(
            f"the file holds no model '{name}'; it holds '{description.name}'", description.source
        )
    several = () if extend is None else extend
    for extension in several if isinstance(several, list | tuple) else [several]:
        description = _extended(description, extension, folders, strict)
    if kind == "urdf":
        from robomodel.parsers import urdf

        description = urdf.with_closing_frames(description, strict=strict)
    if rotors:
        description = rotors_on_joints(description, rotors)
    check_structure(description, strict=strict)
    description = with_rotors(description, strict=strict)
    description = _with_packages(description, folders)
    if inertia_from is not None:
        from robomodel.description.shapes import with_inertias

        description = with_inertias(description, inertia_from, density=density, strict=strict)
    check_plausible(description, strict=strict)
    return description


def _read_xml(
    document: xml.Document, kind: str, name: str | None, resources: Resources
) -> Description:
    """Read a document of the format ``kind``."""
    match kind:
        case "urdf":
            from robomodel.parsers import urdf

            description = urdf.read_urdf(_extension(document))
        case "mjcf":
            from robomodel.parsers import mjcf

            description = mjcf.read_mjcf(document)
        case "sdf":
            from robomodel.parsers import sdf

            description = sdf.read_sdf(document, name=name, resources=resources)
        case other:
            raise AssertionError(other)
    document.report()
    return description


def _extended(
    description: Description, extension: object, resources: Resources, strict: bool
) -> Description:
    """The description extended by one more source, in URDF+ or YAML."""
    name = extension if isinstance(extension, str | os.PathLike) else getattr(extension, "name", "")
    if isinstance(name, str | os.PathLike) and os.fsdecode(name).endswith((".yaml", ".yml")):
        from robomodel.parsers.urdf.side_files import read_side_file

        return read_side_file(*fetch(extension), description, strict=strict)
    from robomodel.parsers import urdf

    more = _extension(open_document(extension, strict=strict, resources=resources))
    description = urdf.read_urdf(more, description)
    more.report()
    return description


def _format_of(document: xml.Document) -> str:
    """The format of a document, by its root element."""
    tag = xml.shown(document.root)
    if tag not in _ROOTS:
        roots = ", ".join(f"<{root}>" for root in _ROOTS)
        rule = f"the formats read are {', '.join(FORMATS)}, by the root element {roots}"
        raise _unlike(document, tag, rule)
    return _ROOTS[tag]


def _extension(document: xml.Document) -> xml.Document:
    """Return the document if its root is ``<robot>``, as in extensions of every format."""
    tag = xml.shown(document.root)
    if tag != "robot":
        rule = "URDF, URDF+ and extensions have the root element <robot>"
        raise _unlike(document, tag, rule)
    return document


def _unlike(document: xml.Document, tag: str, rule: str) -> DescriptionError:
    what = _OTHERS.get(tag, f"an XML file with the root element <{tag}>")
    return DescriptionError(f"this is {what}; {rule}", document.source(document.root, f"<{tag}>"))


def _with_packages(description: Description, resources: Resources) -> Description:
    """The description with the folders of the packages of its meshes, where these exist."""

    def of(shape: Shape) -> Shape:
        names = package_path(shape.file or "")
        folder = resources.find(names[0]) if names else None
        return shape if folder is None else replace(shape, package=str(folder))

    if not resources.packages and not resources.folders:
        return description
    links = (replace(link, shapes=tuple(map(of, link.shapes))) for link in description.links)
    return replace(description, links=tuple(links))
