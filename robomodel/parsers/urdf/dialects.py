"""Elements of other programs: Drake's, ``<loop_joint>``, frames that coincide, YAML files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, cast

from lxml import etree

from robomodel.description import (
    LOOP_COORDINATES,
    Actuator,
    Anchor,
    Description,
    Joint,
    JointCoupling,
    JointSpring,
    JointType,
    Limits,
    Link,
    Loop,
    LoopType,
    Pose,
    Transmission,
    TransmittedJoint,
)
from robomodel.description.poses import ORIGIN
from robomodel.description.transmissions import SIMPLE
from robomodel.errors import (
    DescriptionError,
    Issue,
    MissingPackageError,
    Source,
    did_you_mean,
    warn_of_all,
)
from robomodel.parsers.checks import look_up
from robomodel.parsers.shared.frames import NAME_TYPE, X, read_axis, read_type, read_value
from robomodel.parsers.shared.springs import (
    BALL_CONSTRAINT,
    LINEAR_SPRING,
    TENDON,
    Notation,
    ball_constraint,
    linear_spring,
    part_of,
    tendon,
)
from robomodel.parsers.urdf.joints import Elements, read_joint, universal
from robomodel.parsers.xml import Document, Element, shown

_LOOP_JOINTS = ("spherical", "ball", "revolute", "continuous", "prismatic", "fixed")
_LINKS = ("link1", "link2")
_END = frozenset(("link", "xyz", "rpy"))
_WEIGHTLESS = 1e-6  # kg; frames are written as links of 1e-9 kg or of none


# --- Drake ----------------------------------------------------------------------------------------

_JOINTS = ("ball", "planar", "screw", "universal")


def read_drake(document: Document, element: Element, elements: Elements) -> bool:
    """An element of Drake's under ``<robot>``; whether it is one of those that are read."""
    text = partial(document.text, name="name")
    point = partial(document.vector, name="value")
    notation = Notation(partial(read_value, document), point, text, text)
    match tag := shown(element):
        case "drake:joint":
            _joint(document, element, elements)
        case _ if tag == BALL_CONSTRAINT:
            name = _numbered("ball_constraint", {loop.name for loop in elements.loops})
            elements.loops.append(ball_constraint(document, element, name, notation))
        case _ if tag == LINEAR_SPRING:
            name = _spring_name(element, elements)
            elements.springs.append(linear_spring(document, element, name, notation))
        case _ if tag == TENDON:
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
    """``<drake:joint>``: types that URDF does not have."""
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
        values = (dynamics.get("damping") or "").split()  # one for each of three velocities
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
    """``<loop_joint name type>`` of Isaac Sim and of old Drake, between frames of two links.

    ``<link1 link xyz rpy>`` and ``<link2>`` are the frames; ``<axis xyz>`` is in them, 1 0 0 by
    default. Isaac Sim reads spherical ones only, old Drake all of them as hinges about the axis.
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


# --- frames that are to coincide ------------------------------------------------------------------

_CLOSING = re.compile(r"(closing_.+)_([12])")
_PAIR = re.compile(r"(.*closed_?loop.*)([AB])(.*)", re.IGNORECASE)


def with_closing_frames(description: Description, *, strict: bool = False) -> Description:
    """The description with the loops that onshape-to-robot writes as frames.

    It closes a mate NAME by links ``closing_NAME_1`` and ``closing_NAME_2`` without mass, whose
    origins coincide; of a hinge, there are ``closing_NAME_1_z`` and ``closing_NAME_2_z`` further
    along its axis z too. Loops that name the two links already stand instead.
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
                    "closes; if a YAML file beside the robot does, give it: extend='robot.yaml'"
                )
                issues.append(Issue(message, links[name].source, "closed loops of a YAML file"))
    warn_of_all(issues, strict=strict)
    return replace(description, loops=(*description.loops, *loops)) if loops else description


def _is_frame(link: Link, held: Joint | None, carriers: set[str]) -> bool:
    """Whether a link only marks a place on another one."""
    return (
        held is not None
        and held.type == "fixed"
        and link.name not in carriers
        and (link.inertial is None or link.inertial.mass <= _WEIGHTLESS)
    )


_KEYS = ("closed_loop", "type", "name_mot", "joint_name", "joint_type")
_LOOPS: dict[str, LoopType] = {"3d": "spherical", "6d": "fixed"}
_YAML_JOINTS: dict[str, JointType] = {"SPHERICAL": "spherical", "FIXED": "fixed"}
_MAX_CHARACTERS = 2**20
"""The longest file that is read; those known have a few kB, and YAML is read slowly."""


def read_extended(text: str, file: str, base: Description, *, strict: bool = False) -> Description:
    """The description with the loops, joint types and motors of a YAML file.

    Names are those of links, or of joints for their child links. Raises :class:`DescriptionError`
    with the line of what is wrong, and :class:`MissingPackageError` where PyYAML is not installed.
    """
    contents = _contents(text, file, strict)
    issues: list[Issue] = []
    joints, more = _yaml_joints(contents, base, file, issues)
    frames = {joint.name: joint.child for joint in base.joints}
    frames |= {link.name: link.name for link in base.links}
    more.loops += _yaml_loops(contents, frames, file)
    names = {joint.name for joint in joints}
    for name, line in _names(contents, "name_mot", file):
        source = Source(file, line, f"motor '{name}'")
        if name not in names:
            issues.append(_missing(name, names, source))
            continue
        ends = (TransmittedJoint(name),), (Actuator(name),)
        more.transmissions.append(Transmission(name, SIMPLE, *ends, source))
    warn_of_all(issues, strict=strict)
    return more.added_to(replace(base, joints=tuple(joints)))


def _missing(name: str, names: Iterable[str], source: Source) -> Issue:
    """A joint that is not there, which the files' own reader passes over."""
    message = f"no such joint in the robot{did_you_mean(name, names)}; the entry is ignored"
    return Issue(message, source)


def _yaml_joints(
    contents: Mapping[str, Any], base: Description, file: str, issues: list[Issue]
) -> tuple[list[Joint], Elements]:
    """The robot's joints, some of other types, and the links between those of universal ones."""
    kinds: dict[str, tuple[str, int]] = {}
    joints = {joint.name: joint for joint in base.joints}
    for (name, line), (kind, at) in _typed(contents, "joint_name", "joint_type", "joint", file):
        if name not in joints:
            issues.append(_missing(name, joints, Source(file, line, f"joint '{name}'")))
        kinds[name] = kind.upper(), at
    more, changed = Elements(), []
    for joint in base.joints:
        kind, line = kinds.get(joint.name, ("", 0))
        free = replace(joint, limits=Limits(effort=joint.limits.effort), mimic=None, initial=None)
        stem, _, axes = kind.partition("_")
        if not kind:
            changed.append(joint)
        elif kind in _YAML_JOINTS:
            changed.append(replace(free, type=_YAML_JOINTS[kind]))
        elif stem == "UJOINT" and len(axes) == 2 and set(axes) <= set("XYZ"):
            between, *both = universal(free, axes)
            more.links.append(between)
            changed += both
        else:
            raise DescriptionError(
                f"the joint_type '{kind}' is not known; known: {', '.join(_YAML_JOINTS)}, and "
                "UJOINT_XY or other two axes",
                Source(file, line, f"joint '{joint.name}'"),
            )
    return changed, more


def _yaml_loops(
    contents: Mapping[str, Any], frames: Mapping[str, str], file: str
) -> Iterator[Loop]:
    for (ends, line), (kind, at) in _typed(contents, "closed_loop", "type", "loop", file):
        pair = isinstance(ends, list) and len(ends) == 2
        if not pair or not all(isinstance(end.value, str) for end in ends):
            raise DescriptionError(
                "an entry of closed_loop is two names of frames", Source(file, line, "closed_loop")
            )
        names = [end.value for end in ends]
        source = Source(file, line, f"loop '{'_'.join(names)}'")
        for name in names:
            look_up(name, frames, "the frame", source)
        if kind.lower() not in _LOOPS:
            raise DescriptionError(
                f"the type '{kind}' of a loop is not known; known: {', '.join(_LOOPS)}",
                replace(source, line=at),
            )
        first, second = (Anchor(frames[name]) for name in names)
        yield Loop("_".join(names), _LOOPS[kind.lower()], first, second, source=source)


def _typed(
    contents: Mapping[str, Any], key: str, types: str, what: str, file: str
) -> Iterator[tuple[tuple[Any, int], tuple[str, int]]]:
    """The entries of a list with those of the list of their types, each with its line.

    Loops without any types are all fixed.
    """
    entries: list[tuple[Any, int]] = []
    if what == "joint":
        entries += _names(contents, key, file)
    elif key in contents:
        entries += [(node.value, node.start_mark.line + 1) for node in contents[key].value]
    kinds = list(_names(contents, types, file))
    if not kinds and what == "loop":
        kinds = [("6d", line) for _, line in entries]
    if len(entries) != len(kinds):
        raise DescriptionError(
            f"{key} has {len(entries)} entries and {types} {len(kinds)}; each {what} needs its "
            "type",
            Source(file, (kinds or entries)[0][1], types),
        )
    yield from zip(entries, kinds, strict=True)


# --- YAML -----------------------------------------------------------------------------------------


def _contents(text: str, file: str, strict: bool) -> dict[str, Any]:
    """The nodes of the file by their keys; unknown keys are warned of."""
    try:
        import yaml
    except ImportError as error:
        raise MissingPackageError("YAML files need", "PyYAML", "yaml", Source(file)) from error
    if len(text) > _MAX_CHARACTERS:
        raise DescriptionError(
            f"the file is longer than {_MAX_CHARACTERS} characters", Source(file)
        )
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or "it is nested too deep"
        line = mark.line + 1 if mark else None
        raise DescriptionError(f"not well-formed YAML: {what}", Source(file, line)) from None
    if not isinstance(root, yaml.MappingNode):
        raise DescriptionError(
            f"this YAML has no keys; those of an extended URDF are {', '.join(_KEYS)}",
            Source(file, 1),
        )
    nodes, issues = {}, []
    for key, node in root.value:
        name, source = str(key.value), Source(file, key.start_mark.line + 1, str(key.value))
        if name not in _KEYS:
            hint = did_you_mean(name, _KEYS)
            issues.append(Issue(f"the key is not known and is ignored{hint}", source))
        elif name in nodes:
            raise DescriptionError("the key is given twice", source)
        elif isinstance(node, yaml.SequenceNode):
            nodes[name] = node
        elif node.value not in ("", "null", "~"):
            raise DescriptionError("a list is due here", source)
    warn_of_all(issues, strict=strict)
    return nodes


def _names(contents: Mapping[str, Any], key: str, file: str) -> Iterator[tuple[str, int]]:
    """The texts of a list, each with its line."""
    if key not in contents:
        return
    for node in contents[key].value:
        line = node.start_mark.line + 1
        if not isinstance(node.value, str):
            raise DescriptionError("a list of names is due here", Source(file, line, key))
        yield node.value, line
