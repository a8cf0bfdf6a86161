"""Sources of robots: paths, text, open files, xacro files, robot names, objects of other packages.

xacro files are programs that write a robot description; the ``xacro`` package runs them. They may
read files and environment variables and compute anything, so they run only if the user asks for
it, by the name of the file or by giving arguments.

The contents of a ``URDF`` object of urchin, urdfpy or yourdfpy are written as URDF and read by the
same reader. The packages' own writers are not used: one cuts numbers to eight digits and writes
meshes to disk, the other leaves out mimic. Elements that an object does not keep are lost: in all
three ``independent``, ``<initial>`` and other attributes and elements of joints that URDF does not
have; in yourdfpy also transmissions, loops and couplings. Neither package is imported.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Protocol, cast

from lxml import etree

from robomodel import files
from robomodel.description.poses import rows3
from robomodel.errors import (
    DescriptionError,
    Issue,
    MissingPackageError,
    Source,
    argument,
    did_you_mean,
    warn_of_all,
)
from robomodel.files import Resources, is_confined
from robomodel.running import Lock
from robomodel.vocabulary import xml
from robomodel.vocabulary.schema import MIMIC, SIZES, number, numbers, rpy_of

TEXT = "<text>"  # the file name in messages for a description given as text
_PIECE = 2**18  # bytes read at a time
_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


def open_document(
    source: object,
    *,
    strict: bool = False,
    xacro: Mapping[str, object] | None = None,
    resources: Resources | None = None,
) -> xml.Document:
    """The XML document in ``source``, of any format; xacro files are expanded first.

    Elements of an expanded xacro file have no line numbers.
    """
    if package_of(source):
        return to_document(source, strict=strict)
    text, file = fetch(source)
    if xacro is None and not file.endswith(".xacro"):
        return xml.parse(text, file, strict=strict)
    text = expanded(text, file, xacro or {}, resources or Resources(), strict=strict)
    return replace(xml.parse(text, file, strict=strict), lines={})


class _Readable(Protocol):
    def read(self, size: int, /) -> str | bytes: ...


def fetch(source: object) -> tuple[str, str]:
    """The text of ``source`` and its name for messages."""
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
        # A string with a null character, or longer than a path may be, is no path either.
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
    """Read ``stream`` up to its end, or just beyond the largest size that is parsed."""
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


# --- robots by name -------------------------------------------------------------------------------


def robot_name(source: object) -> str | None:
    """The name if ``source`` names a robot of robot_descriptions and no file; else None."""
    name = source if isinstance(source, str | os.PathLike) else None
    text = "" if name is None else os.fsdecode(name)
    is_name = re.fullmatch(r"\w+_description", text) is not None
    return text if is_name and not os.path.exists(text) else None


def of_robot_descriptions(name: str, format: str | None) -> tuple[str, dict[str, Any]]:
    """The path of a robot of robot_descriptions, and keyword arguments to read it with."""
    place = Source(name)
    if find_spec("robot_descriptions") is None:
        raise DescriptionError(
            "no such file, and the package robot_descriptions, which has robots of such names, is "
            "not installed; pip install robot_descriptions",
            place,
        )
    try:
        module = import_module(f"robot_descriptions.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"robot_descriptions.{name}":
            raise
        places = import_module("robot_descriptions").__path__
        hint = did_you_mean(name, [each.name for each in iter_modules(places)])
        raise DescriptionError(
            f"no such file, and no robot of the package robot_descriptions{hint}",
            place,
        ) from None
    except Exception as error:
        raise DescriptionError(
            f"robot_descriptions cannot get the robot's files: {error}", place
        ) from error
    files = {"urdf": "URDF_PATH", "mjcf": "MJCF_PATH", "xacro": "XACRO_PATH"}
    kinds = ("urdf", "xacro", "mjcf") if format is None else (format, "xacro")
    for kind in kinds:
        if path := getattr(module, files.get(kind, ""), None):
            packages = getattr(module, "XACRO_PACKAGE_PATHS", None)
            folder = getattr(module, "PACKAGE_PATH", None)
            options = {"resources": packages or ([folder] if folder else None)}
            if kind == "xacro":
                options["xacro"] = getattr(module, "XACRO_ARGS", {})
            return path, options
    raise DescriptionError(f"the robot has no file in the format {format or 'URDF or MJCF'}", place)


# --- xacro ----------------------------------------------------------------------------------------

_TURN = Lock()  # the package keeps its state in module variables

Arguments = Mapping[str, object]


class _Arguments(dict[str, str]):
    """Arguments of a xacro file that record which names the file asks for."""

    def __init__(self, arguments: Arguments) -> None:
        super().__init__({name: str(value) for name, value in arguments.items()})
        self.requested: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.requested.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.requested.add(name)
        return super().__getitem__(name)


def expanded(
    text: str, file: str, arguments: Arguments, resources: Resources, *, strict: bool = False
) -> str:
    """Expand a xacro file with these arguments.

    ``$(find NAME)`` is the package's folder in ``resources``, else a folder NAME that contains the
    file. Warns of arguments that the file does not declare, and passes on the package's warnings.
    Raises :class:`DescriptionError` where the expansion fails, and
    :class:`~robomodel.errors.MissingPackageError` if the package is not installed.
    """
    if is_confined():
        raise DescriptionError(
            "files of xacro are not expanded here, as they open any files: expand it before",
            Source(file),
        )
    xml.parse(text, file)  # refuses malformed XML, and entities, which the package would expand
    try:
        import xacro
        from xacro import substitution_args
    except ImportError as error:
        raise MissingPackageError("xacro files need", "xacro", "xacro", Source(file)) from error

    def find(name: str) -> str:
        if (folder := resources.find(name)) is None:
            folder = next(
                (each for each in Path(os.path.abspath(file)).parents if each.name == name), None
            )
        if folder is None:
            raise LookupError(
                f"the package '{name}' is not known; say where it is, as in "
                + argument("resources", {name: f"path/to/{name}"})
            )
        return str(folder)

    mappings = _Arguments(arguments)
    messages: list[str] = []

    def warn(*words: object, **_: object) -> None:
        messages.append(" ".join(" ".join(map(str, words)).split()))

    with (
        _TURN,
        _replaced(vars(substitution_args), _eval_find=find),
        _replaced(substitution_args._eval_dict, find=find),
        _replaced(vars(xacro), warning=warn),
    ):
        try:
            xacro.init_stacks(file if os.path.isfile(file) else None)
            document = xacro.parse(text, file)
            xacro.process_doc(document, mappings=mappings)
        except Exception as error:  # Python expressions in the file may raise anything
            inner = (getattr(xacro, "filestack", None) or [None])[-1] or file
            message = " ".join(str(error).split()) or type(error).__name__
            raise DescriptionError(f"xacro cannot expand this: {message}", Source(inner)) from error
        result = document.toxml()
    issues = [
        Issue(f"it has no argument '{name}'{did_you_mean(name, mappings.requested)}", Source(file))
        for name in arguments
        if name not in mappings.requested
    ]
    issues += [Issue(f"xacro says: {line}", Source(file)) for line in messages]
    warn_of_all(issues, strict=strict)
    return str(result)


@contextlib.contextmanager
def _replaced(table: dict[str, Any], **values: Any) -> Iterator[None]:
    """Replace values of a table within a context."""
    before = {name: table[name] for name in values}
    table.update(values)
    try:
        yield
    finally:
        table.update(before)


# --- objects of other packages --------------------------------------------------------------------

PACKAGES = ("urchin", "urdfpy", "yourdfpy")


def package_of(source: object) -> str:
    """The package whose ``URDF`` class the object is an instance of; empty if it is none."""
    for base in type(source).__mro__:
        package = base.__module__.partition(".")[0]
        if base.__name__ == "URDF" and package in PACKAGES:
            return package
    return ""


_JOINT_PARTS = {
    "limit": ("lower", "upper", "effort", "velocity"),
    "dynamics": ("damping", "friction"),
    "mimic": (*MIMIC.texts, *MIMIC.by_name),
}
_GEOMETRIES = {
    **{kind: tuple(SIZES[kind].urdf) for kind in ("box", "cylinder", "sphere")},
    "mesh": ("filename", "scale"),
}


def to_document(source: Any, *, strict: bool = False) -> xml.Document:
    """The URDF document with the contents of the object."""
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
    """Append an element with attributes (texts, numbers, vectors); None values are left out."""
    attributes = {name: _text(value) for name, value in values.items() if value is not None}
    return etree.SubElement(parent, tag, attributes)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return numbers(map(float, value)) if isinstance(value, Iterable) else number(float(value))


def _parts(parent: etree._Element, source: Any, table: dict[str, tuple[str, ...]]) -> None:
    """Append the parts of ``source`` that the table names, with their attributes."""
    for tag, names in table.items():
        if (part := getattr(source, tag)) is not None:
            values = {name: getattr(part, name) for name in names}
            if isinstance(scale := values.get("scale"), float):
                values["scale"] = [scale] * 3
            _add(parent, tag, **values)


def _origin(parent: etree._Element, matrix: Any) -> None:
    """Append a 4 × 4 matrix as ``<origin>``."""
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
