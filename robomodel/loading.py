"""Loading: from a robot file to a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from robomodel import parsers
from robomodel.description import Description, Rotor
from robomodel.errors import DescriptionError, as_flag, as_names, as_real
from robomodel.messages import with_known_keywords
from robomodel.mobility import RigidError
from robomodel.model import Model, build
from robomodel.running import uncollected

if TYPE_CHECKING:
    from robomodel.description.shapes import Role
    from robomodel.files import Entries


@with_known_keywords
@uncollected()
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
    mend: bool = True,
    spins: Literal["free", "locked"] = "free",
) -> Model:
    """Load a robot: a URDF, URDF+, SDF, MJCF or USD file, its text, an open file, or an object.

    Reads only the given files, the layers of USD files from beside them, and meshes if
    ``inertia_from`` needs them. Suspicious content gives a :class:`robomodel.DescriptionWarning`.

    Args:
        source: The file's path, its text, an open file, or an object of urchin, urdfpy or yourdfpy,
            which is read as far as it keeps its file (loops, couplings and transmissions: urchin
            and urdfpy; independent joints: none of them). A name such as "go1_description" that is
            no file is a module of the package robot_descriptions, which downloads the robot's files
            if needed.
        extend: One further source, or a list of them, whose rotors, loops, couplings and joint
            attributes are merged into the robot, so that a stock file stays untouched: new links,
            joints, loops, couplings, springs and transmissions are added. Where the robot has the
            name, a loop, coupling, spring or transmission replaces the robot's, a ``<joint>``
            changes its origin, limits, mimic, dynamics, initial position, armature, rotor and
            independence, a ``<link>`` its inertial.
        floating_base: True adds a free joint above the root link, False fixes a root that floats,
            None follows the file.
        independent: The joint, or joints, by name, that are to be the independent coordinates of
            their clusters, overriding the file.
        rotors: The rotors of joints by name, as in ``{"*_hip_joint": rm.Rotor(inertia=6e-5,
            ratio=9)}``; a ``*`` stands for any text, and such a name for joints of one degree of
            freedom.
        xacro: Arguments of a xacro file, by name. A file whose name ends in ``.xacro``, or any if
            arguments are given, is run by the package xacro.
        resources: Where packages are, which URIs like ``package://NAME/...`` and ``model://NAME``,
            and xacro's ``$(find NAME)`` name: folders by package, or a list of packages and of
            folders that hold them, in which ``"ROS_PACKAGE_PATH"``, ``"AMENT_PREFIX_PATH"`` and
            ``"GZ_SIM_RESOURCE_PATH"`` stand for the folders in these variables.
        format: The file's format, instead of the one of its root element.
        gravity: Acceleration of free fall [m/s²] (default 0 0 -9.81).
        inertia_from: "collision" or "visual" computes missing inertials of links from these
            shapes, solid and of this ``density``; meshes, which are read from beside the file, need
            trimesh, binary STL and plain OBJ files aside.
        density: Density [kg/m³] of these shapes.
        name: The model of an SDF file with several, or its world's name for all of them.
        strict: Refuse suspicious content.
        tolerance: How far [m, rad] loops may stay open where they close best, for files with
            rounded numbers; they are then taken as exact (default: 10⁻⁴ of a linkage's size, 10⁻⁵
            rad).
        mend: Move the frames of overconstrained loops that the file rounds to those of the nearest
            exact mechanism, by no more than 0.3 % of a linkage's size and 0.2°. A warning, or with
            ``tolerance`` a note, says by how much. False keeps the numbers: conditions are met as
            well as they can be.
        spins: "locked" holds the freedoms of rods between two balls that turn about themselves, by
            one condition each; so does ``independent`` where it names all other freedoms of their
            cluster. A note names them either way.

    Returns:
        model: The robot.

    Raises:
        DescriptionError: What is wrong with the description, with file, line, element and remedy.
        TypeError: An argument, or the source, is of another type.

    Examples:
        >>> model = rm.load(rm.robots.path("four_bar"))
        >>> model.nq, model.nv
        (3, 1)
    """
    if floating_base not in (None, True, False):
        raise TypeError(f"floating_base is True, False or None, not {floating_base!r}")
    strict = as_flag(strict, "strict")
    chosen = None if independent is None else as_names(independent, "independent")
    description = parsers.read(
        source,
        extend=extend,
        rotors=rotors,
        xacro=xacro,
        resources=resources,
        format=format,
        inertia_from=inertia_from,
        density=as_real(density, "density"),
        name=name,
        strict=strict,
    )
    return _built(
        description,
        strict,
        floating_base=floating_base,
        independent=chosen,
        gravity=gravity,
        tolerance=tolerance,
        mend=mend,
        spins=spins,
    )


def _built(description: Description, strict: bool, **options: Any) -> Model:
    """The model; in files of simulators, the joints of rigid loops are fixed (:func:`welded`)."""
    while True:
        try:
            return build(description, strict=strict, **options)
        except DescriptionError as error:
            error.description = description
            if not isinstance(error, RigidError) or not description.simulated:
                raise
            from robomodel.model.options import welded

            description = welded(description, error, strict=strict)
