"""Elements of other programs: Drake's, ``<loop_joint>``, pairs of frames that close a loop."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from typing import cast

from lxml import etree

from robomodel.description import (
    LOOP_COORDINATES,
    Anchor,
    Description,
    Joint,
    JointCoupling,
    JointSpring,
    Link,
    Loop,
    LoopType,
    Pose,
    Vec3,
)
from robomodel.description.poses import ORIGIN, compose, unit
from robomodel.errors import (
    Issue,
    argument,
    warn_of_all,
)
from robomodel.parsers.urdf.joints import Elements, read_joint, universal
from robomodel.tolerances import SAME
from robomodel.vocabulary.frames import (
    NAME_TYPE,
    X,
    read_axis,
    read_linked,
    read_origin,
    read_type,
    read_value,
    turned_to,
)
from robomodel.vocabulary.springs import (
    BALL_CONSTRAINT,
    LINEAR_SPRING,
    TENDON,
    Notation,
    ball_constraint,
    linear_spring,
    part_of,
    tendon,
)
from robomodel.vocabulary.xml import Document, Element, shown

_LOOP_JOINTS = ("spherical", "ball", "revolute", "continuous", "prismatic", "fixed")
_LINKS = ("link1", "link2")
_END = frozenset(("link", "xyz", "rpy"))
_MENDED = 1e-3  # m; a loop adjusted for rounding lies within this distance of its file's frames
_WEIGHTLESS = 1e-6  # kg; frames are written as links of 1e-9 kg or of none


# --- Drake ----------------------------------------------------------------------------------------

_JOINTS = ("ball", "planar", "screw", "universal")


def read_drake(document: Document, element: Element, elements: Elements) -> bool:
    """Read an element of Drake's under ``<robot>``; returns whether it was one of these.

    A constraint with the name of a coupling or loop is that one in Drake's words.
    """
    text = partial(document.text, name="name")
    point = partial(document.vector, name="value")
    notation = Notation(partial(read_value, document), point, text, text)
    match tag := shown(element):
        case "drake:joint":
            _joint(document, element, elements)
        case _ if tag == BALL_CONSTRAINT:
            names = {loop.name for loop in elements.loops}
            if element.get("name") in names:
                return True
            name = _numbered("ball_constraint", names)
            elements.loops.append(ball_constraint(document, element, name, notation))
        case _ if tag == LINEAR_SPRING:
            name = _spring_name(element, elements)
            elements.springs.append(linear_spring(document, element, name, notation))
        case _ if tag == TENDON:
            if element.get("name") in {each.name for each in elements.couplings}:
                return True
            name = _spring_name(element, elements)
            match tendon(document, element, name, notation):
                case JointSpring() as spring:
                    elements.springs.append(spring)
                case JointCoupling() as coupling:
                    elements.couplings.append(coupling)
        case _:
            return False
    return True


def _joint(document: Document, element: Element, elements: Elements) -> None:
    """Read ``<drake:joint>``, for types that URDF does not have."""
    if element.find("parent") is None and element.find("child") is None:
        document.unknown(element, ())  # it connects nothing
        return
    kind = read_type(document, element, _JOINTS, " of <drake:joint>")
    if kind == "screw":  # metres per revolution
        pitch = part_of(document, element, "drake:screw_thread_pitch")
        radians = repr(read_value(document, pitch) / (2.0 * math.pi))
        element.replace(pitch, etree.Element("pitch", {"value": radians}))
    elif kind != "planar":
        element.set("type", "spherical")
    elif (dynamics := element.find("dynamics")) is not None:
        values = (dynamics.get("damping") or "").split()  # one for each of the three velocities
        if len(values) == 3 and len(set(values)) == 1:
            dynamics.set("damping", values[0])
    joint = read_joint(document, element)
    if kind == "universal":  # about x of the parent's frame, then y of the child's
        between, *both = universal(joint, "XY")
        elements.links.append(between)
        elements.joints += both
    else:
        elements.joints.append(joint)


def _spring_name(element: Element, elements: Elements) -> str:
    used = {each.name for each in (*elements.springs, *elements.couplings)}
    return element.get("name") or _numbered(shown(element).removeprefix("drake:"), used)


def _numbered(kind: str, used: set[str]) -> str:
    return next(name for n in count(1) if (name := f"{kind}_{n}") not in used)


# --- Isaac Sim, and Drake before it had constraints -----------------------------------------------


def read_loop_joint(document: Document, element: Element) -> Loop:
    """Read ``<loop_joint name type>`` of Isaac Sim and old Drake, between frames of two links.

    ``<link1 link xyz rpy>`` and ``<link2>`` are the frames; ``<axis xyz>`` is given in them, by
    default 1 0 0. Isaac Sim reads spherical ones only, old Drake reads all as hinges about the
    axis.
    """
    document.expect(element, NAME_TYPE)
    name = document.text(element, "name")
    kind = read_type(document, element, _LOOP_JOINTS)
    if element.find("link2") is None and len(twice := element.findall("link1")) == 2:
        document.warn_at(twice[1], "a second <link1> is read as <link2>")
        twice[1].tag = "link2"
    parts = document.parts(element, frozenset((*_LINKS, "axis")))
    ends = []
    for tag in _LINKS:
        if tag not in parts:
            raise document.error(element, f'<loop_joint> needs <{tag} link="..." xyz rpy/>')
        document.expect(parts[tag], _END)
        xyz, rpy = (document.vector(parts[tag], word, ORIGIN) for word in ("xyz", "rpy"))
        ends.append(Anchor(document.text(parts[tag], "link"), Pose.from_rpy(xyz, rpy)))
    axis = read_axis(document, parts.get("axis"), used=kind in LOOP_COORDINATES)
    if axis is None and kind in LOOP_COORDINATES:
        document.warn_at(
            element, f"a {kind} <loop_joint> has no <axis>; x of its frames is taken, as by URDF"
        )
    return Loop(
        name,
        cast(LoopType, "spherical" if kind == "ball" else kind),
        ends[0],
        ends[1],
        axis or X,
        source=document.source(element, f"loop_joint '{name}'"),
    )


# --- the element proposed for URDF ----------------------------------------------------------------

_CONSTRAINTS = ("revolute", "continuous", "prismatic", "planar", "fixed", "spherical", "ball",
                "universal")  # fmt: skip
_CONSTRAINT_ENDS = ("parent", "child")
_CONSTRAINT_PARTS = frozenset(
    f"{end}{part}" for end in _CONSTRAINT_ENDS for part in ("", "_origin", "_axis")
)


def read_constraint(document: Document, element: Element) -> Loop:
    """Read ``<constraint name type>``, the loop that a proposal for URDF has (urdfdom, PR 264).

    ``<parent link>`` and ``<child link>`` have frames ``<parent_origin>`` and ``<child_origin>``,
    and axes ``<parent_axis>`` and ``<child_axis>`` in these. A hinge's axes coincide, those of a
    universal joint stay perpendicular.
    """
    document.expect(element, NAME_TYPE)
    name = document.text(element, "name")
    kind = read_type(document, element, _CONSTRAINTS)
    parts = document.parts(element, _CONSTRAINT_PARTS)
    one, other = (
        Anchor(
            read_linked(document, element, parts, end),
            read_origin(document, parts.get(f"{end}_origin")),
        )
        for end in _CONSTRAINT_ENDS
    )
    used = kind in LOOP_COORDINATES or kind in ("planar", "universal")
    written = [read_axis(document, parts.get(f"{end}_axis"), used=used) for end in _CONSTRAINT_ENDS]
    axis, axis2 = (
        unit(each or (written[1 - n] if kind != "universal" else None) or X)
        for n, each in enumerate(written)
    )
    if kind == "universal":
        if written[0] is None or written[1] is None:
            raise document.error(element, "a universal constraint needs both of its axes")
    elif math.dist(axis, axis2) > SAME:
        if kind == "prismatic":
            raise document.error(
                element,
                "a prismatic constraint whose axes differ does not say how its frames are turned; "
                "turn an origin by its rpy so that both axes have the same numbers",
            )
        one, other, axis = turned_to(one, axis), turned_to(other, axis2), X
    return Loop(
        name,
        cast(LoopType, "spherical" if kind == "ball" else kind),
        one,
        other,
        axis,
        axis2 if kind == "universal" else None,
        source=document.source(element, f"constraint '{name}'"),
    )


# --- pairs of frames that close a loop ------------------------------------------------------------

_CLOSING = re.compile(r"(closing_.+)_([12])")
_PAIR = re.compile(r"(.*closed_?loop.*)([AB])(.*)", re.IGNORECASE)


def with_closing_frames(description: Description, *, strict: bool = False) -> Description:
    """The description with the loops that onshape-to-robot writes as pairs of frames.

    It closes a mate NAME by massless links ``closing_NAME_1`` and ``closing_NAME_2``, whose origins
    coincide. For a hinge, ``closing_NAME_1_z`` and ``closing_NAME_2_z`` lie further along its axis
    z. A pair is ignored if a ``<loop>`` already joins the two frames, or the same points of the
    links that carry them.
    """
    links = {link.name: link for link in description.links}
    above = {joint.child: joint for joint in description.joints}
    carriers = {joint.parent for joint in description.joints}
    tied = {frozenset((loop.predecessor.link, loop.successor.link)) for loop in description.loops}
    frames = {name for name in links if _is_frame(links[name], above.get(name), carriers)}
    loops, issues = [], []
    for name, link in links.items():
        if name not in frames or not (closing := _CLOSING.fullmatch(name)):
            continue
        stem, number = closing.groups()
        other = f"{stem}_{'2' if number == '1' else '1'}"
        if other not in frames:
            message = f"there is no frame '{other}' that it could close a loop with"
            issues.append(Issue(message, link.source))
        elif number == "1" and frozenset((name, other)) not in tied:
            places = _on_carrier(Anchor(name), above), _on_carrier(Anchor(other), above)
            if any(_joins(loop, places, above) for loop in description.loops):
                continue
            hinge = {f"{name}_z", f"{other}_z"} <= frames
            loops.append(
                Loop(
                    stem,
                    "revolute" if hinge else "spherical",
                    Anchor(name),
                    Anchor(other),
                    (0.0, 0.0, 1.0),
                    source=replace(link.source, element=f"loop '{stem}'"),
                )
            )
    named = {end for pair in tied for end in pair}
    for name in sorted(frames - named):
        if (pair := _PAIR.fullmatch(name)) and pair[2] in "Aa":
            other = pair[1] + chr(ord(pair[2]) + 1) + pair[3]
            if other in frames - named:
                message = (
                    f"the frames '{name}' and '{other}' look like the ends of a loop that nothing "
                    "closes; if a YAML file beside the robot does, give it: "
                    + argument("extend", "robot.yaml")
                )
                issues.append(Issue(message, links[name].source, "closed loops of a YAML file"))
    warn_of_all(issues, strict=strict)
    return replace(description, loops=(*description.loops, *loops)) if loops else description


def without_closing_frames(description: Description) -> Description:
    """The description without frames that would close a loop when it is read, and has not.

    Frames at which it has loops or springs stay.
    """
    above = {joint.child: joint for joint in description.joints}
    carriers = {joint.parent for joint in description.joints}
    used = {end.link for each in (*description.loops, *description.springs)
            if not isinstance(each, JointSpring)
            for end in (each.predecessor, each.successor)}  # fmt: skip
    gone = {
        link.name
        for link in description.links
        if _CLOSING.fullmatch(link.name.removesuffix("_z"))
        and _is_frame(link, above.get(link.name), carriers)
        and not link.shapes
        and link.name not in used
    }
    return replace(
        description,
        links=tuple(link for link in description.links if link.name not in gone),
        joints=tuple(joint for joint in description.joints if joint.child not in gone),
    )


_Place = tuple[str, Vec3]  # a link, and a point in its frame [m]


def _on_carrier(anchor: Anchor, above: Mapping[str, Joint]) -> _Place:
    """Link and point of an anchor; for a frame, on the link that carries the frame."""
    link, pose = anchor.link, anchor.origin
    while (held := above.get(link)) is not None and held.type == "fixed":
        link, pose = held.parent, compose(held.origin, pose)
    return link, pose.xyz


def _joins(loop: Loop, places: tuple[_Place, _Place], above: Mapping[str, Joint]) -> bool:
    """True if a loop joins these two points of two links."""
    ends = _on_carrier(loop.predecessor, above), _on_carrier(loop.successor, above)
    return any(
        all(
            end[0] == place[0] and math.dist(end[1], place[1]) < _MENDED
            for end, place in zip(order, places, strict=True)
        )
        for order in (ends, ends[::-1])
    )


def _is_frame(link: Link, held: Joint | None, carriers: set[str]) -> bool:
    """True if a link is only a massless frame fixed to another link."""
    return (
        held is not None
        and held.type == "fixed"
        and link.name not in carriers
        and (link.inertial is None or link.inertial.mass <= _WEIGHTLESS)
    )
