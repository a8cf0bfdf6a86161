"""Readers of robot files: each turns one format into a :class:`~robomodel.description.Description`.

:func:`read` takes whatever holds a robot (a path, text, bytes, an open file), finds the format by
the root element, and hands over to that format's reader.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, cast

from robomodel import files
from robomodel.description import Description, Rotor
from robomodel.description.resources import Entries, Resources, with_packages
from robomodel.errors import DescriptionError
from robomodel.parsers import urdf, xml
from robomodel.parsers.checks import check_plausible, check_structure
from robomodel.parsers.shared.rotors import rotors_on_joints, with_rotors

if TYPE_CHECKING:
    from robomodel.description.shapes import Role

__all__ = ["FORMATS", "open_document", "read"]

FORMATS = ("urdf", "sdf", "mjcf")
"""The formats that :func:`read` knows; ``urdf`` is URDF and URDF+."""

_ROOTS = {"robot": "urdf", "sdf": "sdf", "mujoco": "mjcf"}  # root element → format

_PIECE = 2**18  # bytes asked for at a time

TEXT = "<text>"  # how messages call a description that is no file

_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
_OTHERS = {  # what to call a file where a <robot> is due, or of a format that is not read
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
    """The description that ``source`` holds: a path, text, bytes, an open file, or an object.

    ``extend``: one or a list of further sources, in the vocabulary of URDF+ (or in YAML, as beside
    an extended URDF; by the file's ending), whose elements are added; a ``<link>`` or ``<joint>``
    whose name is known changes that one. ``rotors``: of joints by name, with ``*`` for any text.
    ``xacro``: arguments of a xacro file, which is run where its name ends so or arguments are
    given. ``resources``: see :meth:`robomodel.description.resources.Resources.of`.
    A string whose first character other than space is ``<`` is text, any other one a path.
    ``format`` is found by the root element unless given. ``inertia_from``: "collision" or "visual"
    gives the links without an inertial one from these shapes, of this ``density`` [kg/m³]. ``name``
    chooses among the models of an SDF file, or names its world for all of them. What is suspicious
    is warned of (:class:`~robomodel.errors.DescriptionWarning`), or refused under ``strict``.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; known: {', '.join(FORMATS)}")
    folders = Resources.of(resources)
    document = open_document(source, strict=strict, xacro=xacro, resources=folders)
    kind = format or _format_of(document)
    match kind:
        case "urdf":
            description = urdf.read_urdf(_extension(document))
        case "mjcf":
            from robomodel.parsers import mjcf

            description = mjcf.read_mjcf(document)
        case "sdf":
            from robomodel.parsers import sdf

            description = sdf.read_sdf(document, name=name, resources=folders)
        case other:
            raise AssertionError(other)
    document.report()
    if name not in (None, description.name):
        raise DescriptionError(
            f"the file holds no model '{name}'; it holds '{description.name}'", description.source
        )
    several = () if extend is None else extend
    for extension in several if isinstance(several, list | tuple) else [several]:
        description = _extended(description, extension, folders, strict)
    if kind == "urdf":
        description = urdf.with_closing_frames(description, strict=strict)
    if rotors:
        description = rotors_on_joints(description, rotors)
    check_structure(description, strict=strict)
    description = with_rotors(description, strict=strict)
    description = with_packages(description, folders)
    if inertia_from is not None:
        from robomodel.description.shapes import with_inertias

        description = with_inertias(description, inertia_from, density=density, strict=strict)
    check_plausible(description, strict=strict)
    return description


def _extended(
    description: Description, extension: object, resources: Resources, strict: bool
) -> Description:
    """The description extended by a further file, in URDF+ or YAML."""
    name = extension if isinstance(extension, str | os.PathLike) else getattr(extension, "name", "")
    if isinstance(name, str | os.PathLike) and os.fsdecode(name).endswith((".yaml", ".yml")):
        from robomodel.parsers.urdf.dialects import read_extended

        return read_extended(*_fetch(extension), description, strict=strict)
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
    """The document if it is in the vocabulary of URDF+, as extensions are for every format."""
    tag = xml.shown(document.root)
    if tag != "robot":
        rule = "URDF, URDF+ and extensions have the root element <robot>"
        raise _unlike(document, tag, rule)
    return document


def _unlike(document: xml.Document, tag: str, rule: str) -> DescriptionError:
    what = _OTHERS.get(tag, f"an XML file with the root element <{tag}>")
    return DescriptionError(f"this is {what}; {rule}", document.source(document.root, f"<{tag}>"))


def open_document(
    source: object,
    *,
    strict: bool = False,
    xacro: Mapping[str, object] | None = None,
    resources: Resources | None = None,
) -> xml.Document:
    """The XML document that ``source`` holds, of whatever format; of a xacro file what it writes.

    Lines of what a xacro file writes are not known.
    """
    if hasattr(source, "link_map"):  # as robots have that urchin, urdfpy or yourdfpy read
        from robomodel.parsers import objects

        if objects.package_of(source):
            return objects.to_document(source, strict=strict)
    text, file = _fetch(source)
    if xacro is None and not file.endswith(".xacro"):
        return xml.parse(text, file, strict=strict)
    from robomodel.parsers import macros

    text = macros.expanded(text, file, xacro or {}, resources or Resources(), strict=strict)
    return replace(xml.parse(text, file, strict=strict), lines={})


class _Readable(Protocol):
    def read(self, size: int, /) -> str | bytes: ...


def _fetch(source: object) -> tuple[str, str]:
    """The text of ``source`` and the name by which messages call it."""
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        return source, TEXT
    if isinstance(source, bytes | bytearray | memoryview):
        return xml.decode(bytes(source), TEXT), TEXT
    if isinstance(source, str | os.PathLike):
        return _read_path(os.fsdecode(source))
    if hasattr(source, "read"):
        name = getattr(source, "name", None)
        file = os.fsdecode(name) if isinstance(name, str | bytes) else TEXT
        return _read_stream(cast(_Readable, source), file), file
    raise TypeError(
        "a robot is read from a path, text, bytes, an open file, or a URDF object of urchin, "
        f"urdfpy or yourdfpy, not from {type(source).__name__}"
    )


def _read_path(path: str) -> tuple[str, str]:
    try:
        data = files.named(path, xml.MAX_BYTES)
    except (OSError, ValueError) as error:
        # What holds a null character, or is longer than paths may be, is no path either.
        if isinstance(error, DescriptionError) or (
            isinstance(error, OSError) and error.errno not in _NO_FILE
        ):
            raise
        shown = path if len(path) <= 200 else path[:200] + "…"
        raise FileNotFoundError(
            errno.ENOENT, "no such file, and not XML text either", shown
        ) from None
    return xml.decode(data, path), path


def _read_stream(stream: _Readable, file: str) -> str:
    """All that ``stream`` holds, or one piece more than is ever parsed."""
    pieces: list[str | bytes] = []
    missing = xml.MAX_BYTES + 1
    while missing > 0 and (piece := stream.read(min(missing, _PIECE))):
        if not isinstance(piece, str | bytes):
            raise TypeError(f"read() of {file} gave {type(piece).__name__}, neither text nor bytes")
        pieces.append(piece)
        missing -= len(piece)
    if pieces and isinstance(pieces[0], str):
        return "".join(cast(list[str], pieces))
    return xml.decode(b"".join(cast(list[bytes], pieces)), file)
