"""Dialects of configurations: what Isaac Lab, mjlab and legged_gym say of a robot's joints.

Each reader finds the records of its dialect among the values of a text (:mod:`.texts`), and makes
them one form: groups of joints by patterns, with the quantities that the group gives them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from robomodel.lint.audit.texts import Record, Table, Text, Unknown

Dialect = Literal["Isaac Lab", "mjlab", "legged_gym"]
Matching = Literal["whole", "within"]

DEEPEST_RECORD = 4  # records within records in which configurations are looked for

# Actuators of Isaac Lab whose forces are computed outside of the solver, once a step.
_EXPLICIT = ("DCMotorCfg", "IdealPDActuatorCfg", "DelayedPDActuatorCfg", "RemotizedPDActuatorCfg")
_NO_GAINS = ("ActuatorNetMLPCfg", "ActuatorNetLSTMCfg")
_ISAACLAB: Mapping[str, tuple[str, ...]] = {
    "effort": ("effort_limit_sim", "effort_limit", "actuator_effort_limit"),
    "velocity": ("velocity_limit_sim", "velocity_limit", "actuator_velocity_limit"),
    "stiffness": ("stiffness",),
    "damping": ("damping",),
    "armature": ("armature",),
}
_MJLAB = {**_ISAACLAB, "effort": ("effort_limit",), "velocity": ("velocity_limit",)}
_PATTERNS = ("joint_names_expr", "target_names_expr")
LEGGED_GYM_STEP = 0.005  # s, of LeggedRobotCfg where a file does not say another


@dataclass(frozen=True, slots=True)
class Value:
    """A number, or numbers by patterns of joints, and its lines."""

    number: float | None
    table: tuple[tuple[str, float, int], ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """Joints by patterns and what they get; ``explicit``: forces are computed once a step.

    ``saturation``: the stall torque of a DC motor.
    """

    name: str
    line: int
    patterns: tuple[tuple[str, int], ...]
    matching: Matching
    values: Mapping[str, Value]
    explicit: bool
    implicit_damping: bool
    saturation: Value | None = None


@dataclass(frozen=True, slots=True)
class Names:
    """A list of joints, or of their links, in an order: its name in the text, and its line."""

    name: str
    line: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings of one robot in a text.

    Attributes:
        name: Its name in the text.
        line: Its line.
        dialect: The simulator's.
        groups: The groups of joints.
        positions: Initial positions by patterns of joints, with lines.
        matching: How patterns of positions match names; exact names for legged_gym.
        step: The step of the physics [s]; None if the text does not say it.
        file: The robot's file as the text names it, or empty.
        unread: What cannot be known without running, with lines.
        complete: Whether every joint needs a position.
        floats: Whether the robot's base is free; None if the text does not say it.
    """

    name: str
    line: int
    dialect: Dialect
    groups: tuple[Group, ...]
    positions: tuple[tuple[str, float, int], ...] = ()
    step: float | None = None
    file: str = ""
    unread: tuple[tuple[str, int], ...] = ()
    complete: bool = False
    floats: bool | None = None


@dataclass(slots=True)
class _Notes:
    unread: list[tuple[str, int]] = field(default_factory=list)

    def say(self, what: str, value: Any, line: int) -> None:
        if isinstance(value, Unknown):
            self.unread.append((f"{what}: {value.why}", value.line or line))
        elif value is not None:
            self.unread.append((f"{what} is no number", line))


def configurations(text: Text) -> list[Configuration]:
    """The configurations of robots in a text, each once.

    A copy of another, and what stands in one that says more, are left out.
    """
    found: dict[tuple[int, ...], Configuration] = {}
    for name, line in text.lines.items():
        for each in _within(name, text.names.get(name), line, 0, None):
            key = tuple(group.line for group in each.groups)
            if key not in found or (each.positions and not found[key].positions):
                found[key] = each
    return list(found.values())


def _within(
    name: str, value: Any, line: int, depth: int, step: float | None
) -> Iterator[Configuration]:
    """Configurations that a value is, or holds."""
    if not isinstance(value, Record) or depth > DEEPEST_RECORD:
        return
    step = _step(value) or step
    for reader in (_isaaclab, _mjlab, _legged_gym):
        if (found := reader(name, value, line or value.line, step)) is not None:
            yield found
            return
    for part, inner in value.fields.items():
        yield from _within(f"{name}.{part}", inner, 0, depth + 1, step)


def _step(record: Record) -> float | None:
    """The step of the physics that a record, or its ``sim``, says."""
    for holder in (record, record.fields.get("sim")):
        if not isinstance(holder, Record):
            continue
        for name in ("dt", "timestep"):
            if isinstance(dt := holder.fields.get(name), float) and 0.0 < dt < 0.1:
                return dt
        inner = holder.fields.get("mujoco")
        if isinstance(inner, Record) and isinstance(dt := inner.fields.get("timestep"), float):
            return dt
    return None


# ---- Isaac Lab and mjlab -------------------------------------------------------------------------


def _isaaclab(name: str, record: Record, line: int, step: float | None) -> Configuration | None:
    """``ArticulationCfg(actuators={"legs": ImplicitActuatorCfg(joint_names_expr=[…], …)})``."""
    actuators = record.fields.get("actuators")
    if not isinstance(actuators, dict) or not any(map(_is_group, actuators.values())):
        return None
    notes = _Notes()
    groups = [
        _group(f"{name}.actuators['{key}']", each, notes, _ISAACLAB)
        for key, each in actuators.items()
        if _is_group(each)
    ]
    for key, each in actuators.items():
        if not _is_group(each):
            notes.say(f"actuators['{key}']", each, line)
    spawn = record.fields.get("spawn")
    file, floats = "", None
    if isinstance(spawn, Record):
        fixed = [spawn.fields.get("fix_base")]
        if isinstance(properties := spawn.fields.get("articulation_props"), Record):
            fixed.append(properties.fields.get("fix_root_link"))
        floats = next((not x for x in fixed if isinstance(x, bool)), None)
        paths = [spawn.fields.get(x) for x in ("asset_path", "usd_path", "mjcf_path")]
        file = next((path for path in paths if isinstance(path, str)), "")
    positions = _positions(record.fields.get("init_state"), notes, line)
    return Configuration(
        name, line, "Isaac Lab", tuple(groups), positions, step, file, tuple(notes.unread),
        floats=floats,
    )  # fmt: skip


def _mjlab(name: str, record: Record, line: int, step: float | None) -> Configuration | None:
    """``EntityCfg(articulation=EntityArticulationInfoCfg(actuators=(ActuatorCfg(…), …)))``."""
    holder = record.fields.get("articulation", record)
    actuators = holder.fields.get("actuators") if isinstance(holder, Record) else None
    if not isinstance(actuators, list | tuple) or not any(map(_is_group, actuators)):
        return None
    notes = _Notes()
    groups = [
        _group(f"{name}.actuators[{n}]", each, notes, _MJLAB)
        for n, each in enumerate(actuators)
        if _is_group(each)
    ]
    for n, each in enumerate(actuators):
        if not _is_group(each):
            notes.say(f"actuators[{n}]", each, line)
    positions = _positions(record.fields.get("init_state"), notes, line)
    return Configuration(
        name, line, "mjlab", tuple(groups), positions, step, "", tuple(notes.unread)
    )


def _is_group(value: Any) -> bool:
    return isinstance(value, Record) and any(name in value.fields for name in _PATTERNS)


def _group(
    name: str, record: Record, notes: _Notes, fields: Mapping[str, tuple[str, ...]]
) -> Group:
    kind = record.name.rpartition(".")[2]
    patterns: list[tuple[str, int]] = []
    for key in _PATTERNS:
        several = record.fields.get(key)
        for each in [several] if isinstance(several, str) else several or ():
            if isinstance(each, str):
                patterns.append((each, record.line_of(key)))
            else:
                notes.say(f"a pattern of {name}", each, record.line_of(key))
        if isinstance(several, Unknown):
            notes.say(f"{name} {key}", several, record.line)
    values: dict[str, Value] = {}
    for quantity, keys in fields.items():
        if kind in _NO_GAINS and quantity in ("stiffness", "damping"):
            continue
        for key in keys:
            if record.fields.get(key) is not None:
                value = _value(record.fields[key], f"{name} {key}", record.line_of(key), notes)
                if value is not None:
                    values[quantity] = value
                    break
    saturation = record.fields.get("saturation_effort")
    explicit = kind in _EXPLICIT
    return Group(
        name,
        record.line,
        tuple(patterns),
        "whole",
        values,
        explicit,
        fields is _MJLAB,
        None
        if saturation is None
        else _value(
            saturation, f"{name} saturation_effort", record.line_of("saturation_effort"), notes
        ),
    )


def _value(value: Any, what: str, line: int, notes: _Notes) -> Value | None:
    """A number, or a table of numbers by patterns; what is unknown is noted."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Value(float(value), (), line)
    if isinstance(value, dict):
        lines = value.lines if isinstance(value, Table) else {}
        table = []
        for key, each in value.items():
            if isinstance(each, int | float) and isinstance(key, str):
                table.append((key, float(each), lines.get(key, line)))
            else:
                notes.say(f"{what} of '{key}'", each, lines.get(key, line))
        return Value(None, tuple(table), line) if table else None
    notes.say(what, value, line)
    return None


def _positions(
    state: Any, notes: _Notes, line: int, key: str = "joint_pos"
) -> tuple[tuple[str, float, int], ...]:
    """Initial positions by patterns."""
    if not isinstance(state, Record):
        return ()
    known = state.fields.get(key)
    if not isinstance(known, dict):
        if isinstance(known, Unknown):
            notes.say(key, known, state.line)
        return ()
    value = _value(known, key, state.line_of(key), notes)
    return () if value is None else value.table


# ---- legged_gym ----------------------------------------------------------------------------------


def _legged_gym(name: str, record: Record, line: int, step: float | None) -> Configuration | None:
    """A class with ``control.stiffness`` by parts of names, and ``init_state``."""
    control, state = record.fields.get("control"), record.fields.get("init_state")
    if not isinstance(control, Record) or not isinstance(state, Record):
        return None
    stiffness = control.fields.get("stiffness")
    if not isinstance(stiffness, dict):
        return None
    notes = _Notes()
    values: dict[str, Value] = {}
    for quantity in ("stiffness", "damping"):
        line_of = control.line_of(quantity)
        value = _value(control.fields.get(quantity), f"{name}.control.{quantity}", line_of, notes)
        if value is not None:
            values[quantity] = value
    asset = record.fields.get("asset")
    file, fixed = "", False
    if isinstance(asset, Record):
        fixed = asset.fields.get("fix_base_link") is True
        armature = asset.fields.get("armature")
        if isinstance(armature, int | float) and armature:
            values["armature"] = Value(float(armature), (), asset.line_of("armature"))
        path = asset.fields.get("file")
        file = path if isinstance(path, str) else ""
    patterns = tuple((key, at) for key, _, at in values["stiffness"].table)
    group = Group(
        f"{name}.control", control.line, patterns, "within", values,
        explicit=True, implicit_damping=False,
    )  # fmt: skip
    positions = _positions(state, notes, line, "default_joint_angles")
    return Configuration(
        name, line, "legged_gym", (group,), positions, step or LEGGED_GYM_STEP, file,
        tuple(notes.unread), complete=bool(positions), floats=not fixed,
    )  # fmt: skip


# ---- lists of names ------------------------------------------------------------------------------


def lists_of_names(text: Text) -> Iterator[Names]:
    """Lists of texts among the values of a text, also within records."""
    for name, line in text.lines.items():
        yield from _lists(name, text.names.get(name), line, 0)


def _lists(name: str, value: Any, line: int, depth: int) -> Iterator[Names]:
    if isinstance(value, list | tuple) and len(value) > 1:
        if all(isinstance(each, str) and re.fullmatch(r"\w+", each) for each in value):
            yield Names(name, line, tuple(value))
    elif isinstance(value, Record) and depth < DEEPEST_RECORD:
        for part, inner in value.fields.items():
            yield from _lists(f"{name}.{part}", inner, value.line_of(part), depth + 1)


def permutations(text: Text) -> dict[str, tuple[tuple[int, ...], int]]:
    """Lists of whole numbers that are indices, by their names, with their lines."""
    found: dict[str, tuple[tuple[int, ...], int]] = {}
    for name, line in text.lines.items():
        value = text.names.get(name)
        if isinstance(value, list | tuple) and len(value) > 1:
            numbers = [x for x in value if isinstance(x, int) and not isinstance(x, bool)]
            if len(numbers) == len(value):
                found[name] = (tuple(numbers), line)
    return found
