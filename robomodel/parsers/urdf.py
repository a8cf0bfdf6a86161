"""URDF and URDF+: robots as ROS writes them, with loops, gears, belts and rods.

One small function reads each element. What is wrong with a single element is refused where it is
read; :func:`check_structure` then looks at the whole, whatever file it came from: names that mean
nothing, links without a place in the tree. No mechanics here: whether loops close is for the model.

Every word is described in ``docs/format.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeVar, cast, get_args

from robomodel.description import (
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
from robomodel.errors import DescriptionError, Source, did_you_mean, suspect
from robomodel.parsers.xml import Document, Element, listed, refuse_xacro, shown, spelled

JOINT_TYPES: tuple[str, ...] = get_args(JointType)
LOOP_TYPES: tuple[str, ...] = get_args(LoopType)
ONE_DOF = frozenset(("revolute", "continuous", "prismatic", "screw"))
"""The joint types with exactly one degree of freedom."""

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


def read_urdf(document: Document) -> Description:
    """The description of a URDF or URDF+ document, checked."""
    description = parse_robot(document)
    check_structure(description, strict=document.strict)
    return description


def parse_robot(document: Document) -> Description:
    """What ``<robot>`` says, element by element; names are not looked up yet."""
    root = document.root
    refuse_xacro(document)
    document.expect(root, frozenset(("name", "version")))
    links: list[Link] = []
    joints: list[Joint] = []
    loops: list[Loop] = []
    couplings: list[LinkCoupling | JointCoupling] = []
    transmissions: list[Transmission] = []
    for element in root:
        tag = element.tag
        if tag == "link":
            links.append(_link(document, element))
        elif tag == "joint":
            joints.append(_joint(document, element))
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


# --- the whole ------------------------------------------------------------------------------------

_Named = TypeVar("_Named", Link, Joint, Loop, LinkCoupling | JointCoupling)


def check_structure(description: Description, *, strict: bool = False) -> None:
    """Refuse a description whose names or tree make no sense, whatever format it came from."""
    links = _by_name(description.links, "link")
    if not links:
        raise DescriptionError(
            'the robot has no links; it needs at least one <link name="..."/>', description.source
        )
    joints = _by_name(description.joints, "joint")
    _by_name(description.loops, "loop")
    _by_name(description.couplings, "coupling")
    _check_tree(description, links)
    for joint in description.joints:
        if joint.mimic is not None:
            _check_mimic(joint, joint.mimic, joints)
        if joint.initial is not None:
            _check_initial(joint, joint.initial, strict)
    for loop in description.loops:
        _check_loop(loop, links)
    for coupling in description.couplings:
        if isinstance(coupling, LinkCoupling):
            _check_link_coupling(coupling, links)
        else:
            _check_joint_coupling(coupling, joints)
    for transmission in description.transmissions:
        for name in transmission.joints:
            if name not in joints:
                suspect(
                    f"the joint '{name}' is not in the robot{did_you_mean(name, joints)}",
                    transmission.source,
                    strict=strict,
                )


def _by_name(things: Iterable[_Named], kind: str) -> dict[str, _Named]:
    found: dict[str, _Named] = {}
    for thing in things:
        first = found.setdefault(thing.name, thing)
        if first is not thing:
            raise DescriptionError(
                f"another {kind} has this name already{_at(first.source)}; rename one of them",
                thing.source,
            )
    return found


def _at(source: Source) -> str:
    """Where another element stands, within a message."""
    return "" if source.line is None else f" ({source.file}:{source.line})"


def _look_up(name: str, known: dict[str, Any], what: str, source: Source) -> None:
    if name not in known:
        raise DescriptionError(
            f"{what} '{name}' is not in the robot{did_you_mean(name, known)}", source
        )


def _check_tree(description: Description, links: dict[str, Link]) -> None:
    """Every link but one hangs on exactly one joint, and all hang together."""
    above: dict[str, Joint] = {}
    for joint in description.joints:
        _look_up(joint.parent, links, "the parent link", joint.source)
        _look_up(joint.child, links, "the child link", joint.source)
        if joint.parent == joint.child:
            raise DescriptionError(
                f"its parent and its child are the same link '{joint.child}'", joint.source
            )
        other = above.setdefault(joint.child, joint)
        if other is not joint:
            raise DescriptionError(
                f"the link '{joint.child}' is already the child of joint '{other.name}'"
                f"{_at(other.source)}; a link hangs on one joint, so write this one as a <loop>",
                joint.source,
            )
    _check_cycles(description.links, above)
    roots = [link for link in description.links if link.name not in above]
    if len(roots) > 1:
        raise DescriptionError(
            f"the robot has {len(roots)} roots, links that are no joint's child: "
            f"{listed(link.name for link in roots)}; a robot has one, so connect the others by "
            "joints (of type fixed or floating, say)",
            roots[1].source,
        )


def _check_cycles(links: Iterable[Link], above: dict[str, Joint]) -> None:
    """Refuse joints that lead round in a circle; walks up from each link, over nothing twice."""
    settled: set[str] = set()
    for link in links:
        path: dict[str, Joint] = {}
        name = link.name
        while name not in settled and name not in path and name in above:
            path[name] = above[name]
            name = above[name].parent
        if name in path:
            circle = list(path.values())[list(path).index(name) :][::-1]
            raise DescriptionError(
                f"the joints {listed(joint.name for joint in circle)} lead round in a circle; "
                "turn one of them into a <loop>",
                circle[0].source,
            )
        settled.update(path)


def _check_mimic(joint: Joint, mimic: Mimic, joints: dict[str, Joint]) -> None:
    _look_up(mimic.joint, joints, "the mimicked joint", joint.source)
    leader = joints[mimic.joint]
    if leader is joint:
        raise DescriptionError("the joint mimics itself", joint.source)
    if joint.type not in ONE_DOF:
        raise DescriptionError(
            f"a {joint.type} joint cannot mimic another; only joints of one degree of freedom can",
            joint.source,
        )
    if leader.type not in ONE_DOF:
        raise DescriptionError(
            f"the mimicked joint '{leader.name}' is {leader.type}; only joints of one degree of "
            "freedom can be mimicked",
            joint.source,
        )


def _check_initial(joint: Joint, initial: float, strict: bool) -> None:
    if not joint.limits.lower <= initial <= joint.limits.upper:
        suspect(
            f"the initial position {initial:g} lies outside the limits "
            f"[{joint.limits.lower:g}, {joint.limits.upper:g}]",
            joint.source,
            strict=strict,
        )


def _check_loop(loop: Loop, links: dict[str, Link]) -> None:
    _look_up(loop.predecessor.link, links, "the predecessor link", loop.source)
    _look_up(loop.successor.link, links, "the successor link", loop.source)
    if loop.predecessor.link == loop.successor.link:
        raise DescriptionError(
            f"the predecessor and the successor are the same link '{loop.successor.link}'; a loop "
            "joins two links",
            loop.source,
        )


def _check_link_coupling(coupling: LinkCoupling, links: dict[str, Link]) -> None:
    _look_up(coupling.predecessor, links, "the predecessor link", coupling.source)
    _look_up(coupling.successor, links, "the successor link", coupling.source)
    if coupling.predecessor == coupling.successor:
        raise DescriptionError(
            f"the predecessor and the successor are the same link '{coupling.successor}'; a "
            "coupling is between two links",
            coupling.source,
        )


def _check_joint_coupling(coupling: JointCoupling, joints: dict[str, Joint]) -> None:
    named: set[str] = set()
    for name, _ in coupling.terms:
        _look_up(name, joints, "the joint", coupling.source)
        if joints[name].type not in ONE_DOF:
            raise DescriptionError(
                f"the joint '{name}' is {joints[name].type}; only joints of one degree of freedom "
                "can be coupled",
                coupling.source,
            )
        if name in named:
            raise DescriptionError(
                f"the joint '{name}' is named twice; add its ratios up", coupling.source
            )
        named.add(name)
    if not any(ratio for _, ratio in coupling.terms):
        raise DescriptionError("every ratio is zero, so nothing is coupled", coupling.source)
