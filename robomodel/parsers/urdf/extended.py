"""The YAML file beside a URDF in which ``example-parallel-robots`` says what URDF cannot.

``closed_loop`` pairs frames that coincide, ``type`` says of each pair whether in place and rotation
(6d) or in place only (3d); ``joint_name`` and ``joint_type`` make joints spherical, universal or
fixed; ``name_mot`` lists the joints that have motors. Source: that package's ``loader_tools.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from robomodel.description import (
    Actuator,
    Anchor,
    Description,
    Joint,
    Limits,
    Loop,
    LoopType,
    Transmission,
    TransmittedJoint,
)
from robomodel.errors import (
    DescriptionError,
    Doubt,
    MissingPackageError,
    Source,
    did_you_mean,
    suspect_all,
)
from robomodel.parsers.urdf.elements import Elements, universal
from robomodel.transmissions import SIMPLE

_KEYS = ("closed_loop", "type", "name_mot", "joint_name", "joint_type")
_LOOPS: dict[str, LoopType] = {"6d": "fixed", "3d": "spherical"}
_MAX_CHARACTERS = 2**20
"""The longest file that is read; those known have a few kB, and YAML is read slowly."""


def read_extended(text: str, file: str, base: Description, *, strict: bool = False) -> Description:
    """The description with what a YAML file says of its loops, joints and motors.

    Names are those of links, or of joints for their child links. Raises :class:`DescriptionError`
    with the line of what is wrong, and :class:`MissingPackageError` where PyYAML is not installed.
    """
    found = _contents(text, file, strict)
    doubts: list[Doubt] = []
    joints, more = _joints(found, base, file, doubts)
    frames = {joint.name: joint.child for joint in base.joints}
    frames |= {link.name: link.name for link in base.links}
    more.loops += _loops(found, frames, file)
    known = {joint.name for joint in joints}
    for name, line in _names(found, "name_mot", file):
        source = Source(file, line, f"motor '{name}'")
        if name not in known:
            doubts.append(_missing(name, known, source))
            continue
        ends = (TransmittedJoint(name),), (Actuator(name),)
        more.transmissions.append(Transmission(name, SIMPLE, *ends, source))
    suspect_all(doubts, strict=strict)
    return more.added_to(replace(base, joints=tuple(joints)))


def _missing(name: str, known: Iterable[str], source: Source) -> Doubt:
    """A joint that is not there, which the files' own reader passes over."""
    message = f"no such joint in the robot{did_you_mean(name, known)}; the entry is ignored"
    return Doubt(message, source)


def _joints(
    found: Mapping[str, Any], base: Description, file: str, doubts: list[Doubt]
) -> tuple[list[Joint], Elements]:
    """The robot's joints, some of other types, and the links between those of universal ones."""
    kinds: dict[str, tuple[str, int]] = {}
    names, types = (list(_names(found, key, file)) for key in ("joint_name", "joint_type"))
    if len(names) != len(types):
        line = (names or types)[0][1]
        raise DescriptionError(
            f"joint_name has {len(names)} entries and joint_type {len(types)}; each joint needs "
            "its type",
            Source(file, line, "joint_type"),
        )
    joints = {joint.name: joint for joint in base.joints}
    for (name, line), (kind, at) in zip(names, types, strict=True):
        if name not in joints:
            doubts.append(_missing(name, joints, Source(file, line, f"joint '{name}'")))
        kinds[name] = kind.upper(), at
    more, changed = Elements(), []
    for joint in base.joints:
        kind, line = kinds.get(joint.name, ("", 0))
        free = replace(joint, limits=Limits(effort=joint.limits.effort), mimic=None, initial=None)
        match kind.partition("_"):
            case ("", _, _):
                changed.append(joint)
            case ("SPHERICAL", _, ""):
                changed.append(replace(free, type="spherical"))
            case ("FIXED", _, ""):
                changed.append(replace(free, type="fixed"))
            case ("UJOINT", _, axes) if len(axes) == 2 and set(axes) <= set("XYZ"):
                between, *both = universal(free, axes)
                more.links.append(between)
                changed += both
            case _:
                raise DescriptionError(
                    f"the joint_type '{kind}' is not known; known: SPHERICAL, FIXED, and UJOINT_XY "
                    "or other two axes",
                    Source(file, line, f"joint '{joint.name}'"),
                )
    return changed, more


def _loops(found: Mapping[str, Any], frames: Mapping[str, str], file: str) -> Iterator[Loop]:
    pairs = found.get("closed_loop")
    types = list(_names(found, "type", file))
    entries = [] if pairs is None else pairs.value
    if types and len(types) != len(entries):
        raise DescriptionError(
            f"closed_loop has {len(entries)} entries and type {len(types)}; each loop needs its "
            "type",
            Source(file, types[0][1], "type"),
        )
    for number, pair in enumerate(entries):
        line = pair.start_mark.line + 1
        ends = [end.value for end in pair.value] if isinstance(pair.value, list) else []
        if len(ends) != 2 or not all(isinstance(end, str) for end in ends):
            raise DescriptionError(
                "an entry of closed_loop is two names of frames", Source(file, line, "closed_loop")
            )
        name = f"{ends[0]}_{ends[1]}"
        source = Source(file, line, f"loop '{name}'")
        for end in ends:
            if end not in frames:
                raise DescriptionError(
                    f"the frame '{end}' is not in the robot{did_you_mean(end, frames)}", source
                )
        kind, at = types[number] if types else ("6d", line)
        if kind.lower() not in _LOOPS:
            raise DescriptionError(
                f"the type '{kind}' of a loop is not known; known: 3d, 6d",
                replace(source, line=at),
            )
        first, second = (Anchor(frames[end]) for end in ends)
        yield Loop(name, _LOOPS[kind.lower()], first, second, source=source)


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
    found, doubts = {}, []
    for key, node in root.value:
        name, source = str(key.value), Source(file, key.start_mark.line + 1, str(key.value))
        if name not in _KEYS:
            hint = did_you_mean(name, _KEYS)
            doubts.append(Doubt(f"the key is not known and is ignored{hint}", source))
        elif name in found:
            raise DescriptionError("the key is given twice", source)
        elif isinstance(node, yaml.SequenceNode):
            found[name] = node
        elif node.value not in ("", "null", "~"):
            raise DescriptionError("a list is due here", source)
    suspect_all(doubts, strict=strict)
    return found


def _names(found: Mapping[str, Any], key: str, file: str) -> Iterator[tuple[str, int]]:
    """The texts of a list, each with its line."""
    if key not in found:
        return
    for node in found[key].value:
        line = node.start_mark.line + 1
        if not isinstance(node.value, str):
            raise DescriptionError("a list of names is due here", Source(file, line, key))
        yield node.value, line
