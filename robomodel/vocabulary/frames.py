"""Parts that many elements have: frames, axes, names of links, limits, sensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from robomodel.description import (
    AT_ORIGIN,
    Anchor,
    Joint,
    Limits,
    LinkCoupling,
    Loop,
    Pose,
    Rows3,
    Sensor,
    Spring,
    Vec3,
)
from robomodel.description.poses import (
    ORIGIN,
    align,
    branches,
    off_axis,
    rotation_of_quaternion,
    sine,
)
from robomodel.errors import DescriptionError, did_you_mean
from robomodel.spatial import matmul, transpose
from robomodel.tolerances import PARALLEL
from robomodel.vocabulary.schema import add, number, numbers, rpy_of
from robomodel.vocabulary.xml import Document, Element, attribute_names, shown

ENDS = ("predecessor", "successor")
NAME_TYPE = frozenset(("name", "type"))
_LINK = frozenset(("link",))
_VALUE = frozenset(("value",))
_TERM = frozenset(("name", "ratio"))
XYZ = frozenset(("xyz",))
_XYZ_RPY = frozenset(("xyz", "rpy"))
_ORIGIN = _XYZ_RPY | {"quat_xyzw"}
X: Vec3 = (1.0, 0.0, 0.0)
WORLD = "world"
"""The ground in Drake's URDF, in SDF and in MJCF."""
_UNIT_TOLERANCE = 1e-3  # files round 0.57735; a larger error is a mistake


# --- placements -----------------------------------------------------------------------------------


def read_origin(document: Document, element: Element | None) -> Pose:
    """Read ``<origin xyz rpy>``; ``quat_xyzw`` (URDF 1.2) in place of rpy."""
    if element is None:
        return AT_ORIGIN
    names = attribute_names(element)
    if not _XYZ_RPY.issuperset(names):
        document.expect(element, _ORIGIN)
    xyz = document.vector(element, "xyz", ORIGIN)
    if "quat_xyzw" not in names:
        return Pose.from_rpy(xyz, document.vector(element, "rpy", ORIGIN))
    if element.get("rpy") is not None:
        raise document.error(element, "<origin> has both rpy and quat_xyzw; keep one of them")
    quaternion = document.quadruple(element, "quat_xyzw")
    return Pose(xyz, read_rotation(document, element, quaternion, "quat_xyzw"))


def add_origin(parent: Element, pose: Pose) -> None:
    """Append ``<origin>``, unless the pose is the identity."""
    both = {"xyz": pose.xyz, "rpy": rpy_of(pose.rotation)}
    if attributes := {name: numbers(values) for name, values in both.items() if any(values)}:
        add(parent, "origin", **attributes)


def read_rotation(
    document: Document, element: Element, quaternion: Sequence[float], what: str
) -> Rows3:
    """The rotation matrix of a quaternion x, y, z, w; ``what`` names it in messages."""
    norm = math.hypot(*quaternion)
    if not 0.0 < norm < math.inf:
        raise document.error(element, f"{what} is zero; no rotation is '0 0 0 1'")
    if abs(norm - 1.0) > _UNIT_TOLERANCE:
        message = f"{what} has the norm {norm:.6g}; it is normalised"
        document.warn_at(element, message, "quaternion not of norm 1")
    x, y, z, w = quaternion
    return rotation_of_quaternion(x, y, z, w)


def read_axis(document: Document, element: Element | None, *, used: bool) -> Vec3 | None:
    """The axis as written; None if there is none, or if the joint does not use one.

    Exporters write a zero axis for fixed joints, which is accepted there only.
    """
    if element is None:
        return None
    document.expect(element, XYZ)
    axis = document.vector(element, "xyz")
    if not used:
        return None
    if abs(math.hypot(*axis) - 1.0) > _UNIT_TOLERANCE:
        tag = shown(element)
        check_direction(document, element, axis, f"<{tag}>", f'<{tag} xyz="0 0 1"/>')
    return axis


def check_direction(
    document: Document, element: Element, axis: Vec3, what: str, example: str
) -> None:
    """Raise for a zero axis, warn of one that is not of length 1; ``what`` names it."""
    norm = math.hypot(*axis)
    if not 0.0 < norm < math.inf:
        raise document.error(element, f"{what} is zero; give it a direction, as in {example}")
    if abs(norm - 1.0) > _UNIT_TOLERANCE:
        message = f"{what} has the length {norm:.6g}, not 1; only its direction is used"
        document.warn_at(element, message, "axis not of length 1")


def check_crossing(document: Document, element: Element, axis: Vec3, axis2: Vec3) -> None:
    """Raise for two axes of a joint that are parallel: the joint would have a freedom twice."""
    if sine(axis, axis2) <= PARALLEL:
        raise document.error(
            element,
            "<axis2> is parallel to <axis>: both turn about one line; turn one of them, or write "
            "a revolute joint",
        )


def turned_to(end: Anchor, axis: Vec3) -> Anchor:
    """The anchor in axes whose first one is ``axis``, a unit vector in its own."""
    k, images = align(axis)
    columns = transpose(images)
    turned = transpose((columns[k], columns[(k + 1) % 3], columns[(k + 2) % 3]))
    return replace(end, origin=Pose(end.origin.xyz, matmul(end.origin.rotation, turned)))


# --- links and joints by name ---------------------------------------------------------------------


def read_type(
    document: Document, element: Element, types: Iterable[str], of: str = "", remedy: str = ""
) -> str:
    """The attribute ``type``, one of ``types``; ``of`` names the element in the message."""
    kind = document.text(element, "type")
    if kind not in types:
        remedy = remedy or f"{did_you_mean(kind, types)}; known: {', '.join(types)}"
        raise document.error(element, f"the type '{kind}'{of} is not known{remedy}")
    return kind


def unwritable(joint: Joint, title: str) -> DescriptionError:
    """The error to raise for a joint type that the format ``title`` does not have."""
    return DescriptionError(f"{title} has no joint of the type '{joint.type}'", joint.source)


def read_linked(
    document: Document, element: Element, parts: Mapping[str, Element], tag: str
) -> str:
    """The name of the link in ``<parent link>``, ``<successor link>`` or similar."""
    part = parts.get(tag)
    if part is None:
        raise document.error(element, f'<{shown(element)}> needs a {tag} link: <{tag} link="..."/>')
    if part.get("link") is None and part.get("name") is not None:
        document.warn_at(
            part, f"the link is given in 'name'; write <{shown(part)} link=...>", "name of a link"
        )
        return document.text(part, "name")
    document.expect(part, _LINK)
    return document.text(part, "link")


def read_value(document: Document, element: Element, *, infinite: bool = False) -> float:
    """The number in ``<... value>``, finite unless ``infinite``."""
    document.expect(element, _VALUE)
    return document.number(element, "value", infinite=infinite)


def read_parts(
    document: Document,
    element: Element,
    tags: frozenset[str],
    irrelevant: frozenset[str] = frozenset(),
) -> dict[str, Element]:
    """The children of an element with two ends; ``<sucessor>``, as exporters write it, is read."""
    for child in element:
        if child.tag in tags:
            continue
        from difflib import get_close_matches

        meant = get_close_matches(child.tag, ENDS, n=1, cutoff=0.9)
        if meant and element.find(meant[0]) is None:
            document.warn_at(child, f"<{child.tag}> is read as <{meant[0]}>")
            child.tag = meant[0]
    return document.parts(element, tags, irrelevant)


def read_ends(
    document: Document, element: Element, parts: Mapping[str, Element]
) -> tuple[Anchor, Anchor]:
    """Both ends ``<predecessor link><origin/></predecessor>`` of a loop or a spring."""
    ends = []
    for tag in ENDS:
        link = read_linked(document, element, parts, tag)
        inner = document.parts(parts[tag], frozenset(("origin",)))
        ends.append(Anchor(link, read_origin(document, inner.get("origin"))))
    return ends[0], ends[1]


def add_ends(parent: Element, record: Loop | Spring) -> None:
    """Append ``<predecessor>`` and ``<successor>``."""
    for tag, anchor in zip(ENDS, (record.predecessor, record.successor), strict=True):
        add_origin(add(parent, tag, link=anchor.link), anchor.origin)


def read_term(document: Document, element: Element) -> tuple[str, float]:
    """Read ``<joint name ratio>`` of a coupling or a spring over joints."""
    document.expect(element, _TERM)
    return document.text(element, "name"), document.number(element, "ratio", 1.0)


def add_terms(parent: Element, terms: Sequence[tuple[str, float]]) -> None:
    """Append ``<joint name ratio>`` of each joint."""
    for joint, ratio in terms:
        add(parent, "joint", name=joint, ratio=number(ratio))


# --- independent freedoms and limits --------------------------------------------------------------


def marks_of(words: Sequence[str], freedoms: int) -> bool | tuple[bool, ...] | None:
    """Flags of independent freedoms: one "true" or "false" for all, or one each; else None."""
    if len(words) not in (1, freedoms) or not {"true", "false"}.issuperset(words):
        return None
    marks = tuple(word == "true" for word in words)
    return marks if len(marks) > 1 else marks[0]


def independent_text(independent: bool | Iterable[bool]) -> str:
    """Flags of independent freedoms as text: one word for all, or one each."""
    marks = (independent,) if isinstance(independent, bool) else independent
    return " ".join("true" if mark else "false" for mark in marks)


def as_limit(value: float, most: float) -> float:
    """A limit; infinite from ``most`` on, as some formats write infinity."""
    return value if abs(value) < most else math.copysign(math.inf, value)


def limits_of(
    document: Document,
    element: Element,
    values: Mapping[str, float],
    *,
    most: float,
    bounded: bool,
) -> Limits:
    """The limits in ``<limit>``, infinite from ``most`` on; those of position if ``bounded``.

    Negative limits of effort and velocity count as infinite: exporters write them for no limit.
    """
    numbers = {name: as_limit(value, most) for name, value in values.items()}
    lower, upper = numbers.get("lower", -math.inf), numbers.get("upper", math.inf)
    if not bounded:
        lower, upper = -math.inf, math.inf
    if lower > upper:
        document.warn_at(
            element,
            f"the lower limit {lower:g} is above the upper limit {upper:g}, which is how some "
            "exporters write a joint without limits, and is read so; leave lower and upper out for "
            "that",
            "lower limit above upper limit",
        )
        lower, upper = -math.inf, math.inf
    if lower == math.inf or upper == -math.inf:
        raise document.error(element, "these limits leave no finite position")
    velocity, effort = (
        limit if (limit := numbers.get(name, math.inf)) >= 0.0 else math.inf
        for name in ("velocity", "effort")
    )
    return Limits(
        lower, upper, velocity, effort,
        **{name: numbers[name] for name in ("velocity_lower", "effort_lower") if name in numbers},
    )  # fmt: skip


def is_on_joint(kind: str, axis: Vec3, xyz: Vec3, tolerance: float) -> bool:
    """True if moving the joint's origin to ``xyz``, in the joint's frame, changes no motion."""
    if kind in ("prismatic", "fixed"):
        return True
    if kind in ("spherical", "floating"):
        return math.hypot(*xyz) <= tolerance
    return off_axis(xyz, axis) <= tolerance


def path_terms(coupling: LinkCoupling, above: Mapping[str, Joint]) -> list[tuple[Joint, float]]:
    """A coupling of links as a coupling of joints, Σ k q = offset, if all axes are parallel.

    Its joints are the moving ones from the common ancestor down to predecessor and successor;
    ``above`` are joints by their children.
    """
    paths = branches(above, coupling.predecessor, coupling.successor)
    return [
        (joint, k)
        for path, k in zip(paths, (-coupling.ratio, 1.0), strict=True)
        for joint in path
        if joint.type != "fixed"
    ]


def warn_of_limits(document: Document, joint: Element, limits: Limits) -> None:
    """Warn that limits of a joint that closes a loop are ignored."""
    if is_limited(limits):
        document.warn_at(
            joint,
            "the joint closes a loop, where limits are not kept; they are left out",
            "limits of a loop",
        )


def is_limited(limits: Limits) -> bool:
    """True if a joint has a limit of its position, velocity or effort; zeros are placeholders."""
    ends = limits.lower, limits.upper, *(x for x in limits.speeds if x is not None)
    return limits.pushes or any(map(math.isfinite, ends))


def named_sensors(document: Document, element: Element) -> Iterator[Sensor]:
    """The ``<sensor name type>`` elements of URDF, Gazebo and SDF in an element."""
    for each in element.iter("sensor"):
        name = each.get("name", "")
        label = f"sensor '{name}'" if name else "<sensor>"
        yield Sensor(name, each.get("type", ""), document.source(each, label))
