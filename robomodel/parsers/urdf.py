"""URDF and URDF+: robots as ROS writes them, with loops, gears, belts and rods.

One small function reads each element. What is wrong with a single element is refused where it is
read; :mod:`robomodel.parsers.structure` then looks at the whole: names that mean nothing, links
without a place in the tree. No mechanics here: whether loops close is for the model.

Every word is described in ``docs/format.md``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import cast, get_args

from robomodel.description import (
    ONE_DOF,
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
    Rows3,
    Transmission,
    Vec3,
)
from robomodel.errors import did_you_mean
from robomodel.parsers.xml import Document, Element, refuse_xacro, shown, spelled

JOINT_TYPES: tuple[str, ...] = get_args(JointType)
LOOP_TYPES: tuple[str, ...] = get_args(LoopType)

_JOINTS_WITH_AXIS = ONE_DOF | {"planar"}
_LOOPS_WITH_AXIS = frozenset(("revolute", "continuous", "prismatic", "planar", "universal"))

_ROBOT_PARTS = frozenset(("link", "joint", "loop", "coupling", "transmission", "ros2_control"))
_ROBOT_IRRELEVANT = frozenset(("material", "gazebo", "sensor", "mujoco", "plugin"))
_LINK_IRRELEVANT = frozenset(
    ("visual", "collision", "material", "gazebo", "sensor", "contact", "self_collision_checking")
)
_JOINT_PARTS = frozenset(
    ("parent", "child", "origin", "axis", "limit", "mimic", "dynamics", "initial", "pitch")
)
_JOINT_IRRELEVANT = frozenset(("calibration", "safety_controller", "gazebo", "sensor"))
_LOOP_PARTS = frozenset(("predecessor", "successor", "axis", "axis2"))
_COUPLING_PARTS = frozenset(("predecessor", "successor", "ratio", "offset"))

_NAME = frozenset(("name",))
_NAME_TYPE = frozenset(("name", "type"))
_LINK = frozenset(("link",))
_VALUE = frozenset(("value",))
_XYZ = frozenset(("xyz",))
_ORIGIN = frozenset(("xyz", "rpy", "quat_xyzw"))
_INERTIA = frozenset(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
_INERTIAL_PARTS = frozenset(("origin", "mass", "inertia"))
_JOINT = frozenset(("name", "type", "independent"))
_LIMIT = frozenset(("lower", "upper", "effort", "velocity", "acceleration", "deceleration", "jerk"))
_MIMIC = frozenset(("joint", "multiplier", "offset"))
_DYNAMICS = frozenset(("damping", "friction"))
_INITIAL = frozenset(("position",))
_LOOP = frozenset(("name", "type", "length"))
_TERM = frozenset(("name", "ratio"))

_ZERO: Vec3 = (0.0, 0.0, 0.0)
_X: Vec3 = (1.0, 0.0, 0.0)
_NO_POSE = Pose()
_NO_LIMITS = Limits()
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
    known_links = {link.name: link for link in base.links} if base else {}
    known_joints = {joint.name: joint for joint in base.joints} if base else {}
    links: list[Link] = []
    joints: list[Joint] = []
    loops: list[Loop] = []
    couplings: list[LinkCoupling | JointCoupling] = []
    transmissions: list[Transmission] = []
    for element in root:
        tag = element.tag
        if tag == "link":
            link = _link(document, element)
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
    )


# --- links ----------------------------------------------------------------------------------------


def _link(document: Document, element: Element) -> Link:
    document.expect(element, _NAME_TYPE)
    name = document.text(element, "name")
    source = document.source(element, f"link '{name}'")
    inertial = None
    for child in element:
        tag = child.tag
        if tag == "inertial":
            if inertial is None:
                inertial = _inertial(document, child, source.element)
            else:
                document.suspect(child, "<inertial> is given twice; the first is read")
        elif tag not in _LINK_IRRELEVANT:
            document.unknown(child, _LINK_IRRELEVANT | {"inertial"})
    return Link(name, inertial, source)


def _changed_link(link: Link, change: Link) -> Link:
    """A link with the inertial that an extension gives it, if it gives one."""
    return replace(link, inertial=change.inertial) if change.inertial else link


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
    found = document.numbers(element, _INERTIA)
    try:
        return (
            found["ixx"],
            found["ixy"],
            found["ixz"],
            found["iyy"],
            found["iyz"],
            found["izz"],
        )
    except KeyError as error:
        raise document.error(element, f"<inertia>: the attribute {error} is missing") from None


def _origin(document: Document, element: Element | None) -> Pose:
    """``<origin xyz rpy>``; ``quat_xyzw`` (URDF 1.2) in place of rpy."""
    if element is None:
        return _NO_POSE
    document.expect(element, _ORIGIN)
    xyz = document.vector(element, "xyz", _ZERO)
    if element.get("quat_xyzw") is None:
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
        _limits(document, parts.get("limit"), kind),
        _mimic(document, parts.get("mimic"), kind),
        document.flag(element, "independent"),
        damping,
        friction,
        _pitch(document, element, parts.get("pitch"), kind),
        _initial(document, parts.get("initial"), kind),
        document.source(element, f"joint '{name}'"),
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
        joint = replace(joint, limits=_limits(document, parts["limit"], joint.type))
    if "mimic" in parts:
        joint = replace(joint, mimic=_mimic(document, parts["mimic"], joint.type))
    if "dynamics" in parts:
        damping, friction = _dynamics(document, parts["dynamics"])
        joint = replace(joint, damping=damping, friction=friction)
    if "initial" in parts:
        joint = replace(joint, initial=_initial(document, parts["initial"], joint.type))
    if (independent := document.flag(element, "independent")) is not None:
        joint = replace(joint, independent=independent)
    return joint


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
            element, f"<{tag}> has the length {norm:.6g}, not 1; only its direction is used"
        )
    return axis


def _limits(document: Document, element: Element | None, kind: str) -> Limits:
    """``<limit>``; a continuous joint has no position limits, whatever the file writes."""
    if element is None:
        return _NO_LIMITS
    found = document.numbers(element, _LIMIT, infinite=_LIMIT)
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
    if length <= 0.0:
        raise document.error(
            element,
            f"the length {length:g} of the rod is not positive; for two points that coincide "
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


def _transmission(document: Document, element: Element) -> Transmission:
    """A transmission as ros_control, ros2_control and PR2 write it; nothing in it is refused."""
    name = element.get("name", "")
    kind = element.findtext("type") or element.findtext("plugin") or element.get("type") or ""
    joints = tuple(joint.get("name", "") for joint in element.iterfind("joint"))
    return Transmission(
        name, kind.strip(), joints, document.source(element, f"transmission '{name}'")
    )
