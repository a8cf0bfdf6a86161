"""Loading: from a robot file to a model."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from robomodel import parsers
from robomodel.description import Rotor
from robomodel.errors import DescriptionError, Source, as_names, did_you_mean
from robomodel.model import Model, build
from robomodel.model.mobility.problem import RigidError

if TYPE_CHECKING:
    from robomodel.description.resources import Entries
    from robomodel.description.shapes import Role


def load(
    source: object,
    *,
    extend: object = None,
    floating_base: bool | None = None,
    independent: str | Iterable[str] | None = None,
    rotors: Mapping[str, Rotor] | None = None,
    xacro: Mapping[str, object] | None = None,
    resources: Entries | None = None,
    format: str | None = None,
    gravity: Sequence[float] | None = None,
    inertia_from: Role | None = None,
    density: float = 1000.0,
    name: str | None = None,
    strict: bool = False,
    tolerance: float | None = None,
) -> Model:
    """Load a robot: a URDF, URDF+, SDF or MJCF file, its text, an open file, or a ``URDF`` object.

    Nothing but the named files is read, and meshes if they shall say inertias. Suspicions are
    :class:`robomodel.DescriptionWarning`.

    Args:
        source: The file's path, its text, an open file, or an object of urchin, urdfpy or yourdfpy,
            which is read as its file would be, as far as it kept that (loops, couplings and
            transmissions: urchin and urdfpy; independent joints: none of them). A name as
            "go1_description", where no file has it, is that of a module of the package
            robot_descriptions, which downloads the robot's files if need be.
        extend: One further source, or a list of them, whose rotors, loops, couplings and joint
            attributes are merged into the robot, so that a stock file stays untouched: new links,
            joints, loops, couplings and transmissions are added; a ``<joint>`` of a known name
            takes the limits, mimic, dynamics, initial position, armature, rotor and independence
            given, a ``<link>`` of a known name the inertial.
        floating_base: True adds a free joint above the root link, False fixes a root that floats,
            None follows the file.
        independent: The joint, or joints, that shall be the independent coordinates of their
            clusters, by name, overriding the file.
        rotors: The rotors of joints by name, as in ``{"*_hip_joint": rm.Rotor(inertia=6e-5,
            ratio=9)}``; a ``*`` stands for any text, and such a name for joints of one degree of
            freedom.
        xacro: Arguments of a xacro file, by name. A file whose name ends in ``.xacro``, or any if
            arguments are given, is expanded by the package xacro, which means to run it.
        resources: Where packages are, which URIs like ``package://NAME/...`` and ``model://NAME``,
            and xacro's ``$(find NAME)`` name: folders by package, or a list of packages and of
            folders that hold them, in which ``"ROS_PACKAGE_PATH"``, ``"AMENT_PREFIX_PATH"`` and
            ``"GZ_SIM_RESOURCE_PATH"`` stand for the folders in these variables.
        format: The file's format where its root element shall not decide.
        gravity: Acceleration of free fall [m/s²] (default 0 0 -9.81).
        inertia_from: "collision" or "visual" gives the links without an inertial one from these
            shapes, solid and of this ``density``; meshes need trimesh, and lie beside the file.
        density: Density [kg/m³] of these shapes.
        name: Which model of an SDF file that holds several; its world's name stands for all.
        strict: Refuse what is suspicious.
        tolerance: How far [m, rad] loops may stay open where they close best, for files with
            rounded numbers; they are then taken as exact (default: 10⁻⁴ of a linkage's size, 10⁻⁵
            rad).

    Returns:
        model: The robot.

    Raises:
        DescriptionError: What is wrong with the description, with file, line, element and remedy.
        TypeError: An argument of another kind, a source that is none of these among them.
    """
    if floating_base not in (None, True, False):
        raise TypeError(f"floating_base is True, False or None, not {floating_base!r}")
    if named := _named(source):
        source, of_package = _of_robot_descriptions(named, format)
        resources = of_package.get("resources") if resources is None else resources
        xacro = {**of_package["xacro"], **(xacro or {})} if "xacro" in of_package else xacro
    chosen = None if independent is None else as_names(independent, "independent")
    description = parsers.read(
        source,
        extend=extend,
        rotors=rotors,
        xacro=xacro,
        resources=resources,
        format=format,
        inertia_from=inertia_from,
        density=density,
        name=name,
        strict=strict,
    )
    while True:
        try:
            return build(
                description,
                floating_base=floating_base,
                independent=chosen,
                gravity=gravity,
                strict=strict,
                tolerance=tolerance,
            )
        except RigidError as error:
            if not description.simulated:
                raise
            from robomodel.model.options import welded

            description = welded(description, error, strict=strict)


def _named(source: object) -> str | None:
    """The name of a robot of robot_descriptions, if the source is one and no file."""
    name = source if isinstance(source, str | os.PathLike) else None
    text = "" if name is None else os.fsdecode(name)
    is_name = re.fullmatch(r"\w+_description", text) is not None
    return text if is_name and not os.path.exists(text) else None


def _of_robot_descriptions(name: str, format: str | None) -> tuple[str, dict[str, Any]]:
    """The file of a robot of robot_descriptions, and how it is read."""
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
    wanted = ("urdf", "xacro", "mjcf") if format is None else (format, "xacro")
    for kind in wanted:
        if path := getattr(module, files.get(kind, ""), None):
            packages = getattr(module, "XACRO_PACKAGE_PATHS", None)
            folder = getattr(module, "PACKAGE_PATH", None)
            options = {"resources": packages or ([folder] if folder else None)}
            if kind == "xacro":
                options["xacro"] = getattr(module, "XACRO_ARGS", {})
            return path, options
    raise DescriptionError(f"the robot has no file in the format {format or 'URDF or MJCF'}", place)
