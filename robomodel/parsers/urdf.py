"""URDF and URDF+: robots as ROS writes them, with loops, gears, belts and rods.

One small function reads each element. What is wrong with a single element is refused where it is
read; :mod:`robomodel.parsers.structure` then looks at the whole: names that mean nothing, links
without a place in the tree. No mechanics here: whether loops close is for the model.

Every word is described in ``docs/format.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import cast, get_args

from robomodel.description import (
    FREEDOMS,
    ONE_DOF,
    Actuator,
    Anchor,
    Description,
    Inertial,
    Joint,
    JointCoupling,
    JointType,
    Limits,
    Link,
    LinkCoupling,
    Loop,
    LoopType,
    Mimic,
    Pose,
    Rotor,
    Rows3,
    Shape,
    ShapeKind,
    Transmission,
    TransmittedJoint,
    Vec3,
)
from robomodel.errors import DescriptionError, did_you_mean
from robomodel.parsers.xml import Document, Element, refuse_xacro, shown, spelled

JOINT_TYPES: tuple[str, ...] = get_args(JointType)
LOOP_TYPES: tuple[str, ...] = get_args(LoopType)

_JOINTS_WITH_AXIS = ONE_DOF | {"planar"}
_LOOPS_WITH_AXIS = frozenset(("revolute", "continuous", "prismatic", "planar", "universal"))

_ROBOT_PARTS = frozenset(
    ("link", "joint", "loop", "coupling", "transmission", "ros2_control", "gravity")
)
_ROBOT_IRRELEVANT = frozenset(("material", "gazebo", "sensor", "mujoco", "plugin"))
_LINK_PARTS = frozenset(("inertial", "visual", "collision"))
_LINK_IRRELEVANT = frozenset(("material", "gazebo", "sensor", "contact", "self_collision_checking"))
_JOINT_PARTS = frozenset(
    (
        *("parent", "child", "origin", "axis", "limit", "mimic", "dynamics"),
        *("initial", "pitch", "armature", "rotor"),
    )
)
_JOINT_IRRELEVANT = frozenset(("calibration", "safety_controller", "gazebo", "sensor"))
_LOOP_PARTS = frozenset(("predecessor", "successor", "axis", "axis2"))
_COUPLING_PARTS = frozenset(("predecessor", "successor", "ratio", "offset"))

_NAME = frozenset(("name",))
_NAME_TYPE = frozenset(("name", "type"))
_LINK = frozenset(("link",))
_VALUE = frozenset(("value",))
_XYZ = frozenset(("xyz",))
_XYZ_RPY = frozenset(("xyz", "rpy"))
_ORIGIN = _XYZ_RPY | {"quat_xyzw"}
_ENTRIES = ["ixx", "ixy", "ixz", "iyy", "iyz", "izz"]
_INERTIA = frozenset(_ENTRIES)
_INERTIAL_PARTS = frozenset(("origin", "mass", "inertia"))
_JOINT = frozenset(("name", "type", "independent"))
_LIMIT = frozenset(("lower", "upper", "effort", "velocity", "acceleration", "deceleration", "jerk"))
_MIMIC = frozenset(("joint", "multiplier", "offset"))
_DYNAMICS = frozenset(("damping", "friction"))
_INITIAL = frozenset(("position",))
_LOOP = frozenset(("name", "type", "length"))
_TERM = frozenset(("name", "ratio"))
_ROTOR = frozenset(("inertia", "ratio", "mass", "transverse"))
_REDUCTIONS = ("mechanicalReduction", "mechanical_reduction")

_ZERO: Vec3 = (0.0, 0.0, 0.0)
_X: Vec3 = (1.0, 0.0, 0.0)
_NO_POSE = Pose()
_NO_LIMITS = Limits()
_NO_LIMIT = 1e308  # how infinity is written for readers that want a number
_UNIT_TOLERANCE = 1e-3  # files round 0.57735; more than this is a slip


def read_urdf(document: Document, base: Description | None = None) -> Description:
    """What ``<robot>`` says, element by element; names are not looked up yet.

    With ``base``, the document extends it: elements are added, and a ``<link>`` or ``<joint>`` of a
    name that the base has changes that one (an inertial; limits, mimic, dynamics, initial position
    and independence; not what the tree is made of).
    """
    root = document.root
    refuse_xacro(document)
    document.expect(root, frozenset(("name", "version")))
    colours = _Colours(document)
    known_links = {link.name: link for link in base.links} if base else {}
    known_joints = {joint.name: joint for joint in base.joints} if base else {}
    links: list[Link] = []
    joints: list[Joint] = []
    loops: list[Loop] = []
    couplings: list[LinkCoupling | JointCoupling] = []
    transmissions: list[Transmission] = []
    gravity = base.gravity if base else None
    for element in root:
        tag = element.tag
        if tag == "link":
            link = _link(document, element, colours)
            if link.name in known_links:
                known_links[link.name] = _changed_link(known_links[link.name], link)
            else:
                links.append(link)
        elif tag == "joint":
            joint = known_joints.get(element.get("name", ""))
            if joint is None:
                joints.append(_joint(document, element))
            else:
                known_joints[joint.name] = _changed_joint(document, element, joint)
        elif tag == "loop":
            loops.append(_loop(document, element))
        elif tag == "coupling":
            couplings.append(_coupling(document, element))
        elif tag == "transmission":
            transmissions.append(_transmission(document, element))
        elif tag == "ros2_control":
            transmissions.extend(
                _transmission(document, child) for child in element.iterfind("transmission")
            )
        elif tag == "gravity":
            document.expect(element, _XYZ)
            gravity = document.vector(element, "xyz")
        elif tag not in _ROBOT_IRRELEVANT:
            document.unknown(element, _ROBOT_PARTS)
    if base is not None:
        return replace(
            base,
            links=(*known_links.values(), *links),
            joints=(*known_joints.values(), *joints),
            loops=(*base.loops, *loops),
            couplings=(*base.couplings, *couplings),
            transmissions=(*base.transmissions, *transmissions),
            gravity=gravity,
        )
    name = root.get("name")
    if not name:
        document.suspect(root, "the robot has no name; it is called 'robot'")
    return Description(
        name or "robot",
        tuple(links),
        tuple(joints),
        tuple(loops),
        tuple(couplings),
        tuple(transmissions),
        document.source(root, f"robot '{name or 'robot'}'"),
        gravity,
    )


# --- links ----------------------------------------------------------------------------------------


def _link(document: Document, element: Element, colours: _Colours) -> Link:
    document.expect(element, _NAME_TYPE)
    name = document.text(element, "name")
    source = document.source(element, f"link '{name}'")
    inertial = None
    shapes: list[Shape] = []
    for child in element:
        tag = child.tag
        if tag == "inertial":
            if inertial is None:
                inertial = _inertial(document, child, source.element)
            else:
                document.suspect(child, "<inertial> is given twice; the first is read")
        elif tag in {"visual", "collision"}:
            try:
                shapes.append(_shape(document, child, source.element, colours))
            except DescriptionError as error:  # it changes no dynamics
                document.suspect(child, f"this <{tag}> is left out: {error.message}", f"bad {tag}")
        elif tag not in _LINK_IRRELEVANT:
            document.unknown(child, _LINK_PARTS)
    return Link(name, inertial, source, tuple(shapes))


def _changed_link(link: Link, change: Link) -> Link:
    """A link with what an extension gives it: an inertial in place of its own, further shapes."""
    return replace(
        link, inertial=change.inertial or link.inertial, shapes=(*link.shapes, *change.shapes)
    )


def _inertial(document: Document, element: Element, label: str) -> Inertial:
    parts = document.parts(element, _INERTIAL_PARTS)
    mass = parts.get("mass")
    if mass is None:
        raise document.error(element, '<inertial> has no <mass value="..."/>')
    kilograms = _value(document, mass)
    if kilograms < 0.0:
        raise document.error(mass, f"the mass is negative: {spelled(mass.get('value', ''))} kg")
    inertia = parts.get("inertia")
    if inertia is None:
        raise document.error(
            element, '<inertial> has no <inertia>; a point mass has ixx="0", ixy="0", ... izz="0"'
        )
    return Inertial(
        kilograms,
        _inertia(document, inertia),
        _origin(document, parts.get("origin")),
        document.source(element, label),
    )


def _inertia(
    document: Document, element: Element
) -> tuple[float, float, float, float, float, float]:
    row = document.row(element, _ENTRIES)
    if row is None:
        found = document.numbers(element, _INERTIA)
        try:
            row = tuple(found[entry] for entry in _ENTRIES)
        except KeyError as error:
            raise document.error(element, f"<inertia>: the attribute {error} is missing") from None
    xx, xy, xz, yy, yz, zz = row
    return xx, xy, xz, yy, yz, zz


def _origin(document: Document, element: Element | None) -> Pose:
    """``<origin xyz rpy>``; ``quat_xyzw`` (URDF 1.2) in place of rpy."""
    if element is None:
        return _NO_POSE
    names: Sequence[str] = element.keys()  # type: ignore[assignment]
    if not _XYZ_RPY.issuperset(names):
        document.expect(element, _ORIGIN)
    xyz = document.vector(element, "xyz", _ZERO)
    if "quat_xyzw" not in names:
        return Pose.from_rpy(xyz, document.vector(element, "rpy", _ZERO))
    if element.get("rpy") is not None:
        raise document.error(element, "<origin> has both rpy and quat_xyzw; keep one of them")
    return Pose(xyz, _rotation(document, element))


def _rotation(document: Document, element: Element) -> Rows3:
    quaternion = document.quadruple(element, "quat_xyzw")
    norm = math.hypot(*quaternion)
    if not 0.0 < norm < math.inf:
        raise document.error(element, "quat_xyzw is zero; no rotation is '0 0 0 1'")
    if abs(norm - 1.0) > _UNIT_TOLERANCE:
        document.suspect(element, f"quat_xyzw has the norm {norm:.6g}; it is normalised")
    x, y, z, w = (c / norm for c in quaternion)
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    )


# --- shapes ---------------------------------------------------------------------------------------

Rgba = tuple[float, float, float, float]


class _Colours(dict[str, Rgba]):
    """The colours of materials by name: of the robot, and of the links read so far."""

    def __init__(self, document: Document) -> None:
        super().__init__()
        for material in document.root.iterfind("material"):
            if (color := material.find("color")) is not None:
                with suppress(DescriptionError):
                    self[material.get("name", "")] = document.quadruple(color, "rgba")

    def of(self, document: Document, material: Element | None) -> Rgba | None:
        """A shape's colour; one that is given with a name is remembered under it."""
        if material is None:
            return None
        name = material.get("name", "")
        if (color := material.find("color")) is None:
            return self.get(name)
        rgba = document.quadruple(color, "rgba")
        if name:
            self.setdefault(name, rgba)
        return rgba


def _shape(document: Document, element: Element, label: str, colours: _Colours) -> Shape:
    geometry = element.find("geometry")
    if geometry is None:
        raise document.error(element, "it has no <geometry>")
    kind, size, file = _geometry(document, geometry)
    return Shape(
        "visual" if element.tag == "visual" else "collision",
        kind,
        size,
        _origin(document, element.find("origin")),
        file,
        element.get("name", ""),
        colours.of(document, element.find("material")),
        document.source(element, label),
    )


def _geometry(
    document: Document, element: Element
) -> tuple[ShapeKind, tuple[float, ...], str | None]:
    """Kind, size and file of the shape; Drake's capsule and ellipsoid have a prefix."""
    for shape in element:
        kind = cast(ShapeKind, shape.tag.rpartition("}")[2])
        if kind == "mesh":
            scale = document.vector(shape, "scale", (1.0, 1.0, 1.0))
            return kind, scale, document.text(shape, "filename")
        if kind == "box":
            size: tuple[float, ...] = document.vector(shape, "size")
        elif kind in _SIZES:
            size = tuple(document.number(shape, name) for name in _SIZES[kind])
        else:
            continue
        if min(size, default=0.0) < 0.0:
            raise document.error(shape, f"the size of the <{shown(shape)}> is negative")
        return kind, size, None
    raise document.error(element, f"its <geometry> holds none of box, {', '.join(_SIZES)}, mesh")


_SIZES = {
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "ellipsoid": ("a", "b", "c"),
    "plane": (),
}


# --- joints ---------------------------------------------------------------------------------------


def _joint(document: Document, element: Element) -> Joint:
    document.expect(element, _JOINT)
    name = document.text(element, "name")
    kind = cast(JointType, _type(document, element, JOINT_TYPES))
    parts = document.parts(element, _JOINT_PARTS, _JOINT_IRRELEVANT)
    damping, friction = _dynamics(document, parts.get("dynamics"))
    return Joint(
        name,
        kind,
        _linked(document, element, parts, "parent"),
        _linked(document, element, parts, "child"),
        _origin(document, parts.get("origin")),
        _axis(document, parts.get("axis"), used=kind in _JOINTS_WITH_AXIS) or _X,
        _limits(document, element, parts.get("limit"), kind),
        _mimic(document, parts.get("mimic"), kind),
        _independent(document, element, kind),
        damping,
        friction,
        _pitch(document, element, parts.get("pitch"), kind),
        _initial(document, parts.get("initial"), kind),
        document.source(element, f"joint '{name}'"),
        _armature(document, parts.get("armature"), kind),
        _rotor(document, parts.get("rotor")),
    )


def _changed_joint(document: Document, element: Element, joint: Joint) -> Joint:
    """A joint with what an extension says of it; its place in the tree stays."""
    document.expect(element, _JOINT)
    parts = document.parts(element, _JOINT_PARTS, _JOINT_IRRELEVANT)
    place = [tag for tag in ("parent", "child", "origin", "axis", "pitch") if tag in parts]
    if element.get("type") is not None or place:
        raise document.error(
            element,
            f"the robot has a joint '{joint.name}' already, whose type, links, origin and axis an "
            "extension cannot change; leave them out, or give the new joint a name of its own",
        )
    if "limit" in parts:
        limits = _limits(document, element, parts["limit"], joint.type)
        joint = replace(joint, limits=limits)
    if "mimic" in parts:
        joint = replace(joint, mimic=_mimic(document, parts["mimic"], joint.type))
    if "dynamics" in parts:
        damping, friction = _dynamics(document, parts["dynamics"])
        joint = replace(joint, damping=damping, friction=friction)
    if "armature" in parts:
        joint = replace(joint, armature=_armature(document, parts["armature"], joint.type))
    if "rotor" in parts:
        joint = replace(joint, rotor=_rotor(document, parts["rotor"]))
    if "initial" in parts:
        joint = replace(joint, initial=_initial(document, parts["initial"], joint.type))
    if (independent := _independent(document, element, joint.type)) is not None:
        joint = replace(joint, independent=independent)
    return joint


def _independent(document: Document, element: Element, kind: str) -> bool | tuple[bool, ...] | None:
    """Whether the joint is independent; of one with several freedoms, perhaps one word for each."""
    if (text := element.get("independent")) is None:
        return None
    if len(words := text.split()) < 2:
        return document.flag(element, "independent")
    freedoms = FREEDOMS.get(kind, 1)
    if len(words) != freedoms or not {"true", "false"}.issuperset(words):
        raise document.error(
            element,
            f"independent of a {kind} joint must be 'true' or 'false'"
            + (f", or {freedoms} of these words" if freedoms > 1 else "")
            + f", got {spelled(' '.join(words))}",
        )
    return tuple(word == "true" for word in words)


def _type(document: Document, element: Element, known: tuple[str, ...]) -> str:
    kind = document.text(element, "type")
    if kind not in known:
        raise document.error(
            element,
            f"the type '{kind}' is not known{did_you_mean(kind, known)}; known: {', '.join(known)}",
        )
    return kind


def _linked(document: Document, element: Element, parts: dict[str, Element], tag: str) -> str:
    part = parts.get(tag)
    if part is None:
        raise document.error(element, f'<{shown(element)}> needs a {tag} link: <{tag} link="..."/>')
    document.expect(part, _LINK)
    return document.text(part, "link")


def _axis(document: Document, element: Element | None, *, used: bool) -> Vec3 | None:
    """The axis as written; None where none is given, or none is used (only its numbers are read).

    Exporters write a zero axis for fixed joints, which is harmless there and nowhere else.
    """
    if element is None:
        return None
    document.expect(element, _XYZ)
    axis = document.vector(element, "xyz")
    if not used:
        return None
    norm = math.hypot(*axis)
    if abs(norm - 1.0) > _UNIT_TOLERANCE:
        tag = shown(element)
        if not 0.0 < norm < math.inf:
            raise document.error(
                element, f'<{tag}> is zero; give it a direction, as in <{tag} xyz="0 0 1"/>'
            )
        document.suspect(
            element, f"<{tag}> has the length {norm:.6g}, not 1; only its direction is used", "axis"
        )
    return axis


def _limits(document: Document, joint: Element, element: Element | None, kind: str) -> Limits:
    """``<limit>``; a continuous joint has no position limits, whatever the file writes."""
    if element is None:
        if kind in {"revolute", "prismatic"}:
            document.suspect(
                joint,
                f"has no <limit>, which URDF demands of a {kind} joint; it is taken as unlimited",
                "no limit",
            )
        return _NO_LIMITS
    found = document.numbers(element, _LIMIT, infinite=_LIMIT)
    if found and max(map(abs, found.values())) >= _NO_LIMIT:
        found = {
            name: value if abs(value) < _NO_LIMIT else math.copysign(math.inf, value)
            for name, value in found.items()
        }
    lower = found.get("lower", -math.inf)
    upper = found.get("upper", math.inf)
    if kind == "continuous":
        lower, upper = -math.inf, math.inf
    elif lower > upper:
        raise document.error(
            element, f"the lower limit {lower:g} is above the upper limit {upper:g}"
        )
    elif lower == math.inf or upper == -math.inf:
        raise document.error(element, "these limits leave no finite position")
    return Limits(
        lower,
        upper,
        found.get("velocity", math.inf),
        found.get("effort", math.inf),
    )


def _mimic(document: Document, element: Element | None, kind: str) -> Mimic | None:
    if element is None:
        return None
    if kind == "fixed":  # as in real files whose gripper was fixed by changing types
        document.suspect(element, "<mimic> means nothing in a fixed joint; it is ignored")
        return None
    document.expect(element, _MIMIC)
    return Mimic(
        document.text(element, "joint"),
        document.number(element, "multiplier", 1.0),
        document.number(element, "offset", 0.0),
    )


def _dynamics(document: Document, element: Element | None) -> tuple[float, float]:
    if element is None:
        return 0.0, 0.0
    found = document.numbers(element, _DYNAMICS)
    return found.get("damping", 0.0), found.get("friction", 0.0)


def _armature(document: Document, element: Element | None, kind: str) -> float:
    if element is None:
        return 0.0
    armature = _value(document, element)
    if armature < 0.0:
        raise document.error(element, f"the armature {armature:g} is negative")
    if kind == "fixed":
        document.suspect(element, "<armature> means nothing in a fixed joint; it is ignored")
        return 0.0
    return armature


def _rotor(document: Document, element: Element | None) -> Rotor | None:
    """``<rotor inertia ratio mass transverse>``, of a joint or of an actuator."""
    if element is None:
        return None
    found = document.numbers(element, _ROTOR)
    if "inertia" not in found:
        raise document.error(
            element, '<rotor> needs inertia="...", its moment of inertia about its axis'
        )
    rotor = Rotor(
        found["inertia"],
        found.get("ratio"),
        found.get("mass", 0.0),
        found.get("transverse", 0.0),
    )
    return _checked_rotor(document, element, rotor)


def _checked_rotor(document: Document, element: Element, rotor: Rotor) -> Rotor:
    """The rotor with its place, if its numbers are those of one."""
    if rotor.inertia <= 0.0:
        raise document.error(element, f"the rotor's inertia {rotor.inertia:g} is not positive")
    if rotor.ratio == 0.0:
        raise document.error(element, "the ratio of the rotor is zero; 1 is a direct drive")
    if min(rotor.mass, rotor.transverse) < 0.0:
        raise document.error(element, "the rotor's mass or transverse inertia is negative")
    place = document.place(element)
    return replace(rotor, source=replace(place, element=f"rotor of {place.element}"))


def _pitch(document: Document, joint: Element, element: Element | None, kind: str) -> float:
    if kind != "screw":
        if element is not None:
            document.suspect(element, f"<pitch> means nothing in a {kind} joint; it is ignored")
        return 0.0
    if element is None:
        raise document.error(
            joint, 'a screw joint needs <pitch value="..."/>, in metres per radian'
        )
    return _value(document, element)


def _initial(document: Document, element: Element | None, kind: str) -> float | None:
    if element is None:
        return None
    if kind not in ONE_DOF:
        raise document.error(
            element, f"<initial> is for joints of one degree of freedom, not for a {kind} joint"
        )
    document.expect(element, _INITIAL)
    return document.number(element, "position")


# --- loops and couplings --------------------------------------------------------------------------


def _loop(document: Document, element: Element) -> Loop:
    document.expect(element, _LOOP)
    name = document.text(element, "name")
    kind = cast(LoopType, _type(document, element, LOOP_TYPES))
    parts = document.parts(element, _LOOP_PARTS)
    predecessor = _anchor(document, element, parts, "predecessor")
    successor = _anchor(document, element, parts, "successor")
    if "axis2" in parts and kind != "universal":
        document.suspect(parts["axis2"], f"<axis2> means nothing in a {kind} loop; it is ignored")
    return Loop(
        name,
        kind,
        predecessor,
        successor,
        _axis(document, parts.get("axis"), used=kind in _LOOPS_WITH_AXIS) or _X,
        _axis(document, parts.get("axis2"), used=kind == "universal"),
        _length(document, element, kind),
        document.source(element, f"loop '{name}'"),
    )


def _anchor(document: Document, loop: Element, parts: dict[str, Element], tag: str) -> Anchor:
    link = _linked(document, loop, parts, tag)
    inner = document.parts(parts[tag], frozenset(("origin",)))
    return Anchor(link, _origin(document, inner.get("origin")))


def _length(document: Document, element: Element, kind: str) -> float | None:
    if element.get("length") is None:
        return None
    length = document.number(element, "length")
    if kind != "rod":
        document.suspect(element, f"'length' means nothing in a {kind} loop; it is ignored")
        return None
    if length <= 1e-12:  # as where the ends say it
        raise document.error(
            element,
            f"the length {length:g} of the rod is not positive"
            f"{' beyond rounding' if length > 0.0 else ''}; for two points that coincide "
            "write a loop of type spherical",
        )
    return length


def _coupling(document: Document, element: Element) -> LinkCoupling | JointCoupling:
    """A coupling of two links (URDF+: a gear, a belt), or a linear one of several joints."""
    document.expect(element, _NAME)
    name = document.text(element, "name")
    terms = [child for child in element if child.tag == "joint"]
    parts = document.parts(element, _COUPLING_PARTS, frozenset(("joint",)))
    source = document.source(element, f"coupling '{name}'")
    offset = _value(document, parts["offset"]) if "offset" in parts else 0.0
    if not terms:
        if "predecessor" not in parts and "successor" not in parts:
            raise document.error(
                element,
                "couples nothing: it needs <predecessor link> and <successor link>, or "
                "<joint name ratio> elements",
            )
        predecessor = _linked(document, element, parts, "predecessor")
        successor = _linked(document, element, parts, "successor")
        ratio = _value(document, parts["ratio"]) if "ratio" in parts else 1.0
        return LinkCoupling(name, predecessor, successor, ratio, offset, source)
    if wrong := [tag for tag in ("predecessor", "successor", "ratio") if tag in parts]:
        raise document.error(
            parts[wrong[0]],
            f"<{wrong[0]}> belongs to a coupling of links and <joint> to one of joints; write two "
            "couplings (the ratio of a joint is an attribute of <joint>)",
        )
    return JointCoupling(name, tuple(_term(document, term) for term in terms), offset, source)


def _term(document: Document, element: Element) -> tuple[str, float]:
    document.expect(element, _TERM)
    return document.text(element, "name"), document.number(element, "ratio", 1.0)


def _value(document: Document, element: Element) -> float:
    document.expect(element, _VALUE)
    return document.number(element, "value")


# --- transmissions --------------------------------------------------------------------------------


def _transmission(document: Document, element: Element) -> Transmission:
    """A transmission as ros_control, ros2_control, Drake and PR2 write it.

    Without rotors it changes no dynamics, so nothing in it is refused but what is wrong in a rotor.
    """
    name = element.get("name", "")
    kind = element.findtext("type") or element.findtext("plugin") or element.get("type") or ""
    actuators = tuple(_actuator(document, part) for part in element.iterfind("actuator"))
    reduction = _amount(document, element, _REDUCTIONS, must=False)  # PR2 writes it here
    if reduction is not None and len(actuators) == 1 and actuators[0].reduction is None:
        actuators = (replace(actuators[0], reduction=reduction),)
    must = any(actuator.rotor for actuator in actuators)
    return Transmission(
        name,
        kind.strip(),
        tuple(_transmitted(document, part, must) for part in element.iterfind("joint")),
        actuators,
        document.source(element, f"transmission '{name}'"),
    )


def _transmitted(document: Document, element: Element, must: bool) -> TransmittedJoint:
    return TransmittedJoint(
        element.get("name", ""),
        _role(element),
        _amount(document, element, _REDUCTIONS, must=must),
        _amount(document, element, ("offset",), must=must, zero=True) or 0.0,
    )


def _actuator(document: Document, element: Element) -> Actuator:
    """An actuator; its rotor by ``<rotor>``, ``<motorInertia>`` or Drake's ``<rotor_inertia>``."""
    rotor: Rotor | None = None
    gear_ratio: float | None = None
    for part in element:
        tag = part.tag.rpartition("}")[2]
        if tag == "gear_ratio":
            gear_ratio = _value(document, part)
        elif tag in ("rotor", "rotor_inertia", "motorInertia"):
            if rotor is not None:
                raise document.error(part, "the actuator has a rotor already; keep one of them")
            if tag == "rotor":
                rotor = _rotor(document, part)
            else:
                inertia = document.content(part) if tag[0] == "m" else _value(document, part)
                rotor = _checked_rotor(document, part, Rotor(inertia))
        elif tag not in _ACTUATOR_IRRELEVANT and did_you_mean(tag, _ACTUATOR_PARTS):
            document.unknown(part, _ACTUATOR_PARTS)
    reduction = _amount(document, element, _REDUCTIONS, must=rotor is not None)
    if gear_ratio is not None:
        if gear_ratio == 0.0:
            raise document.error(element, "the gear ratio is zero; 1 is a direct drive")
        if rotor is not None and rotor.ratio is None:
            rotor = replace(rotor, ratio=gear_ratio)
        reduction = gear_ratio if reduction is None else reduction
    return Actuator(element.get("name", ""), _role(element), reduction, rotor)


_ACTUATOR_PARTS = ("rotor", "motorInertia", "rotor_inertia", "gear_ratio", *_REDUCTIONS)
_ACTUATOR_IRRELEVANT = frozenset(
    (*_REDUCTIONS, "role", "hardwareInterface", "motorTorqueConstant", "command_interface")
)


def _role(element: Element) -> str:
    """The role: ros_control writes an element, ros2_control an attribute."""
    return (element.get("role") or element.findtext("role") or "").strip()


def _amount(
    document: Document, element: Element, tags: tuple[str, ...], *, must: bool, zero: bool = False
) -> float | None:
    """The number in the first element of these tags, if there is one.

    One that cannot be is refused if it ``must`` be right, as a rotor depends on it, else warned of.
    """
    for tag in tags:
        if (part := element.find(tag)) is None:
            continue
        try:
            amount = document.content(part)
            if amount == 0.0 and not zero:
                raise document.error(part, f"<{tag}> is zero; 1 is a direct drive")
        except DescriptionError as error:
            if must:
                raise
            document.suspect(part, error.message, f"bad {tag}")
            return None
        return amount
    return None
