"""YAML files beside a URDF, in which exporters describe loops that URDF cannot express.

Three kinds, by their keys: ``closed_loop`` as in example-parallel-robots, ``closing_joints`` of
fusion2URDF (its ``robot_data.yaml``), ``closures`` of the SolidWorks exporter 2
(``loop_closures.yaml``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from robomodel.description import (
    IDENTITY,
    Actuator,
    Anchor,
    Description,
    Joint,
    JointType,
    Limits,
    Loop,
    LoopType,
    Pose,
    Transmission,
    TransmittedJoint,
    Vec3,
)
from robomodel.description.poses import compose, link_poses, relative, tidy
from robomodel.description.transmissions import SIMPLE
from robomodel.errors import (
    DescriptionError,
    Issue,
    MissingPackageError,
    Source,
    did_you_mean,
    few,
    warn_of_all,
)
from robomodel.parsers.urdf.joints import Elements, universal
from robomodel.vocabulary.checks import look_up

_EXTENDED = ("closed_loop", "type", "name_mot", "joint_name", "joint_type")
_FUSION = ("closing_joints", "metadata", "robot_name", "assemblies", "links", "joints",
           "rigid_groups")  # fmt: skip
_SOLIDWORKS = ("closures", "dependent", "independent")
_LOOPS: dict[str, LoopType] = {"3d": "spherical", "6d": "fixed"}
_CLOSING: dict[str, LoopType] = {
    "revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "fixed": "fixed",
    "ball": "spherical", "spherical": "spherical",
}  # fmt: skip
_JOINTS: dict[str, JointType] = {"SPHERICAL": "spherical", "FIXED": "fixed"}
_MAX_CHARACTERS = 2**20
"""The longest file that is read; known ones have a few kB, and parsing YAML is slow."""

Nodes = Mapping[str, Any]
"""PyYAML's nodes of a mapping, by key."""


def read_side_file(text: str, file: str, base: Description, *, strict: bool = False) -> Description:
    """The description with the loops, joint types and motors of a YAML file.

    Raises :class:`DescriptionError` with the line of an error, and :class:`MissingPackageError` if
    PyYAML is not installed.
    """
    root = _root(text, file)
    keys = {str(key.value) for key, _ in root.value}
    issues: list[Issue] = []
    if "closing_joints" in keys:
        result = _fusion(_mapping(root, _FUSION, file, issues), base, file, issues)
    elif "closures" in keys:
        result = _solidworks(_mapping(root, _SOLIDWORKS, file, issues), base, file)
    else:
        result = _extended(_mapping(root, _EXTENDED, file, issues), base, file, issues)
    warn_of_all(issues, strict=strict)
    return result


# --- example-parallel-robots ----------------------------------------------------------------------


def _extended(contents: Nodes, base: Description, file: str, issues: list[Issue]) -> Description:
    """Read a file of example-parallel-robots, with names of links, or joints for their children."""
    joints, more = _typed_joints(contents, base, file, issues)
    frames = {joint.name: joint.child for joint in base.joints}
    frames |= {link.name: link.name for link in base.links}
    more.loops += _loops(contents, frames, file)
    base = _driven(contents, replace(base, joints=tuple(joints)), more, file, issues)
    return more.added_to(base)


def _driven(
    contents: Nodes, base: Description, more: Elements, file: str, issues: list[Issue]
) -> Description:
    """The robot with the motors that the file names, new or existing."""
    if "name_mot" not in contents:
        return base
    names = {joint.name for joint in base.joints}
    motors = dict(_names(contents, "name_mot", file))
    kept: list[Transmission] = []
    left: list[Transmission] = []
    for each in base.transmissions:
        ends = {end.name for end in each.joints}
        (kept if ends <= motors.keys() else left).append(each)
    driven = {end.name for each in kept for end in each.joints}
    for name, line in motors.items():
        source = Source(file, line, f"motor '{name}'")
        if name not in names:
            issues.append(_missing(name, names, source))
        elif name not in driven:
            joints, actuators = (TransmittedJoint(name),), (Actuator(name),)
            more.transmissions.append(Transmission(name, SIMPLE, joints, actuators, source))
    if left:
        message = (
            f"name_mot names other motors than the robot's transmissions: "
            f"{few([each.name for each in left])} are left out"
        )
        issues.append(Issue(message, Source(file, _line(contents["name_mot"]), "name_mot")))
    return replace(base, transmissions=tuple(kept))


def _missing(name: str, names: Iterable[str], source: Source) -> Issue:
    """The warning for an unknown joint, which the exporter's own reader ignores too."""
    message = f"no such joint in the robot{did_you_mean(name, names)}; the entry is ignored"
    return Issue(message, source)


def _typed_joints(
    contents: Nodes, base: Description, file: str, issues: list[Issue]
) -> tuple[list[Joint], Elements]:
    """The robot's joints with the types of the file, and new links of universal joints."""
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
        elif kind in _JOINTS:
            changed.append(replace(free, type=_JOINTS[kind]))
        elif stem == "UJOINT" and len(axes) == 2 and set(axes) <= set("XYZ"):
            between, *both = universal(free, axes)
            more.links.append(between)
            changed += both
        else:
            raise DescriptionError(
                f"the joint_type '{kind}' is not known; known: {', '.join(_JOINTS)}, and "
                "UJOINT_XY or other two axes",
                Source(file, line, f"joint '{joint.name}'"),
            )
    return changed, more


def _loops(contents: Nodes, frames: Mapping[str, str], file: str) -> Iterator[Loop]:
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
    contents: Nodes, key: str, types: str, what: str, file: str
) -> Iterator[tuple[tuple[Any, int], tuple[str, int]]]:
    """The entries of a list with their types from a second list, each with its line.

    Loops without any types are fixed.
    """
    entries: list[tuple[Any, int]] = []
    if what == "joint":
        entries += _names(contents, key, file)
    elif key in contents:
        entries += [(node.value, _line(node)) for node in _list(contents[key], file, key)]
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


# --- fusion2URDF ----------------------------------------------------------------------------------


def _fusion(contents: Nodes, base: Description, file: str, issues: list[Issue]) -> Description:
    """Read joints of fusion2URDF that are not in the tree, given in the frame of the parent link.

    The loops are closed with these joints at zero, as the design is drawn.
    """
    at_zero, loops, limited = link_poses(base), [], []
    for entry in _list(contents["closing_joints"], file, "closing_joints"):
        fields = dict(_pairs(entry, file))
        name = _text(fields, "name", entry, file)
        source = Source(file, _line(entry), f"loop '{name}'")
        kind, parent, child = (
            _text(fields, key, entry, file) for key in ("type", "parent", "child")
        )
        for link in (parent, child):
            look_up(link, at_zero, "the link", source)
        if kind not in _CLOSING:
            raise DescriptionError(
                f"the type '{kind}' of a closing joint is not known; known: {', '.join(_CLOSING)}",
                source,
            )
        pose = Pose.from_rpy(
            _vector(fields, "origin_xyz_m", entry, file),
            _vector(fields, "origin_rpy_rad", entry, file, (0.0, 0.0, 0.0)),
        )
        axis = _vector(fields, "axis", entry, file, (1.0, 0.0, 0.0))
        joint = compose(at_zero[parent], pose)
        loops.append(_hinge(name, _CLOSING[kind], (parent, child), joint, axis, at_zero, source))
        if "limits" in fields:
            limited.append(name)
    if limited:
        issues.append(
            Issue(
                f"limits of closing joints ({few(limited)}) are ignored: limit the joints of the "
                "tree that they move with",
                Source(file, _line(contents["closing_joints"]), "closing_joints"),
            )
        )
    return replace(base, loops=(*base.loops, *loops))


def _hinge(
    name: str,
    kind: LoopType,
    links: tuple[str, str],
    joint: Pose,
    axis: Vec3,
    at_zero: Mapping[str, Pose],
    source: Source,
) -> Loop:
    """The loop whose frame is at ``joint`` in the world with all joints at zero."""
    first, second = (Anchor(link, tidy(relative(at_zero[link], joint))) for link in links)
    return Loop(name, kind, first, second, axis, source=source)


# --- SolidWorks exporter 2 ------------------------------------------------------------------------


def _solidworks(contents: Nodes, base: Description, file: str) -> Description:
    """Read cut hinges, in the root link's frame; the mimics of their joints are estimates."""
    at_zero, loops = link_poses(base), []
    for entry in _list(contents["closures"], file, "closures"):
        fields = dict(_pairs(entry, file))
        links = _text(fields, "link_a", entry, file), _text(fields, "link_b", entry, file)
        name = "_".join(links)
        source = Source(file, _line(entry), f"loop '{name}'")
        for link in links:
            look_up(link, at_zero, "the link", source)
        pose = Pose(_vector(fields, "point", entry, file), IDENTITY)
        axis = _vector(fields, "axis", entry, file)
        loops.append(_hinge(name, "revolute", links, pose, axis, at_zero, source))
    names = {joint.name for joint in base.joints}
    solved = dict(_names(contents, "dependent", file))
    for name, line in [*solved.items(), *_names(contents, "independent", file)]:
        look_up(name, names, "the joint", Source(file, line, f"joint '{name}'"))
    joints = (
        replace(joint, mimic=None) if joint.name in solved else joint for joint in base.joints
    )
    return replace(base, joints=tuple(joints), loops=(*base.loops, *loops))


# --- YAML -----------------------------------------------------------------------------------------


def _root(text: str, file: str) -> Any:
    """The root mapping of the file."""
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
            f"this YAML has no keys; those of an extended URDF are {', '.join(_EXTENDED)}, of "
            f"fusion2URDF {_FUSION[0]}, of the SolidWorks exporter 2 {_SOLIDWORKS[0]}",
            Source(file, 1),
        )
    return root


def _mapping(root: Any, known: tuple[str, ...], file: str, issues: list[Issue]) -> dict[str, Any]:
    """The nodes by key, without empty ones; warns of unknown keys."""
    nodes: dict[str, Any] = {}
    for name, node, line in _entries(root, file):
        source = Source(file, line, name)
        if name not in known:
            hint = did_you_mean(name, known)
            issues.append(Issue(f"the key is not known and is ignored{hint}", source))
        elif node.value not in ("", "null", "~"):
            nodes[name] = node
            if known is not _FUSION or name == "closing_joints":
                _list(node, file, name)
    return nodes


def _entries(mapping: Any, file: str) -> Iterator[tuple[str, Any, int]]:
    """Key, node and line of the entries of a mapping; raises for a repeated key."""
    seen = set()
    for key, node in mapping.value:
        name, line = str(key.value), _line(key)
        if name in seen:
            raise DescriptionError("the key is given twice", Source(file, line, name))
        seen.add(name)
        yield name, node, line


def _pairs(entry: Any, file: str) -> Iterator[tuple[str, Any]]:
    """Keys and nodes of an entry of a list."""
    if not isinstance(entry.value, list) or not all(isinstance(x, tuple) for x in entry.value):
        raise DescriptionError("names with values are due here", Source(file, _line(entry)))
    yield from ((name, node) for name, node, _ in _entries(entry, file))


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _list(node: Any, file: str, key: str) -> list[Any]:
    """The nodes of a list."""
    if not isinstance(node.value, list) or any(isinstance(each, tuple) for each in node.value):
        raise DescriptionError("a list is due here", Source(file, _line(node), key))
    return list(node.value)


def _text(fields: Nodes, key: str, entry: Any, file: str) -> str:
    """The text of a key of an entry."""
    if key not in fields or not isinstance(fields[key].value, str):
        raise DescriptionError(f"the entry needs a text '{key}'", Source(file, _line(entry)))
    return str(fields[key].value)


def _vector(fields: Nodes, key: str, entry: Any, file: str, default: Vec3 | None = None) -> Vec3:
    """The three numbers of a key of an entry."""
    if key not in fields and default is not None:
        return default
    nodes = _list(fields[key], file, key) if key in fields else []
    try:
        x, y, z = (float(node.value) for node in nodes)
    except (TypeError, ValueError):
        x = y = z = math.nan
    if not all(map(math.isfinite, (x, y, z))):
        raise DescriptionError(f"the entry needs three numbers '{key}'", Source(file, _line(entry)))
    return x, y, z


def _names(contents: Nodes, key: str, file: str) -> Iterator[tuple[str, int]]:
    """The texts of a list, each with its line."""
    for node in _list(contents[key], file, key) if key in contents else []:
        if not isinstance(node.value, str):
            raise DescriptionError("a list of names is due here", Source(file, _line(node), key))
        yield node.value, _line(node)
