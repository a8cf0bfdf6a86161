"""The report on actuators: ratios, torque, speed, range, four-bars, workspace."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from robomodel.dynamics.actuators.envelopes import JointEnvelope
from robomodel.model.elements import units_of
from robomodel.model.joints import Array
from robomodel.reports.document import (
    Bullets,
    Cell,
    Document,
    Section,
    Table,
    count,
    curves,
    picked,
)
from robomodel.reports.plots import Line, Plot, bounded

if TYPE_CHECKING:
    from robomodel.reports.actuation.study import (
        Actuation,
        Drive,
        FourBar,
        Polygon,
        SpeedTorque,
        Workspace,
    )

STEEPEST = 30.0  # times the median: beyond it curves near dead points are cut off
LOW = math.radians(40.0)  # transmission angle below which the bars mostly load their hinges
SIDES = ("lower", "upper")


def document(study: Actuation) -> Document:
    """The study in sections; its data hold the points of all curves."""
    tables = [
        Section("Actuators", [_drives(study.drives)]),
        Section(
            "Ratios: the motor's rate for unit velocity of a joint, over the joint's range",
            [_ratios(study)],
        ),
        Section(
            "Joints: what reaches them, and what the file of an open tree should say",
            [_joints(study), Bullets([line for each in study.joints for line in _notes(each)])],
        ),
        Section("Four-bars", [_four_bars(study.four_bars), Bullets(_weak(study.four_bars))]),
        Section("Torques that joints get together", [_polygons(study.polygons)]),
        Section("Workspace", [line for each in study.workspaces for line in _workspace(each)]),
    ]
    plots = list(_plots(study))
    data = _data(study) | {"curves": curves(plots)}
    sections = [*tables, Section("Over the range", plots)]
    return Document(study.robot, summary(study), sections, data, study.file, "actuation")


def summary(study: Actuation) -> str:
    """In one line."""
    parts = [count(len(study.drives), "actuator")]
    if study.four_bars:
        parts.append(count(len(study.four_bars), "four-bar"))
    if study.hidden:
        names = ", ".join(each.joint for each in study.hidden[:4])
        parts.append(f"limits behind linkages or gears: {names}")
    return ", ".join(parts)


# ---- tables --------------------------------------------------------------------------------------


def _with(value: float | None, unit: str) -> str:
    """A number and its unit."""
    if value is None or math.isnan(value):
        return ""
    return f"{value:.4g} {unit}" if math.isfinite(value) else "unlimited"


def _drives(drives: tuple[Drive, ...]) -> Table:
    rows = []
    for each in drives:
        _, force, speed, _ = units_of(each.slides)
        rows.append(
            [each.name, each.joint, _with(each.effort_limit, force),
             _with(each.velocity_limit, speed), _with(each.stall_torque, force),
             _with(each.no_load_speed, speed)]
        )  # fmt: skip
    columns = ["actuator", "at joint", "effort", "velocity", "stall torque", "no-load speed"]
    return Table(columns, rows)


def _ratios(study: Actuation) -> Table:
    rows: list[list[Cell]] = [
        [drive.name, ratio.joint, ratio.low, None if ratio.constant else ratio.high]
        for drive in study.drives
        for ratio in drive.ratios
    ]
    return Table(["actuator", "joint", "ratio", "to"], rows, digits=4)


def _joints(study: Actuation) -> Table:
    rows: list[list[Cell]] = []
    for each in study.joints:
        length, force, speed, inertia = units_of(each.slides)
        limits = each.limits
        ends = [_with(limits.lower, length), _with(limits.upper, length)]
        if each.reach.turns_fully:
            ends = ["turns fully", ""]
        rows.append(
            [each.joint, *ends,
             _limit(each, limits.effort, force), _spread(each.torque, force),
             _limit(each, limits.velocity, speed), _spread(each.speed, speed),
             _spread(each.inertia, inertia, always=True)]
        )  # fmt: skip
    columns = ["joint", "lower", "upper", "effort", "over the range", "velocity", "over the range",
               "reflected inertia"]  # fmt: skip
    return Table(columns, rows)


def _limit(joint: JointEnvelope, value: float, unit: str) -> str:
    """A limit; nothing of a joint that no motor drives, and that has none."""
    return _with(value, unit) if joint.actuators or math.isfinite(value) else ""


def _spread(values: Array, unit: str, *, always: bool = False) -> str:
    """The least and the greatest, where they differ."""
    ends = _range(values)
    if ends is None:
        return ""
    low, high = ends
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        return f"{low:.4g} {unit}" if always else ""
    return f"{low:.4g} to {high:.4g} {unit}"


def _range(values: Array) -> tuple[float, float] | None:
    finite = values[np.isfinite(values)]
    return (float(np.min(finite)), float(np.max(finite))) if len(finite) else None


def _notes(each: JointEnvelope) -> Iterator[str]:
    """Which limits are others', and what the file promises in vain."""
    if not each.actuators and not each.hidden:
        return
    length, force, speed, _ = units_of(each.slides)
    for side, by in zip(SIDES, (each.lower_by, each.upper_by), strict=True):
        if by in ("", each.joint):
            continue
        limit = getattr(each.file_limits, side)
        end = each.reach.lower_end if side == "lower" else each.reach.upper_end
        what = f"a dead point of '{end.by}'" if by == "loop" else f"'{by}'"
        file = f"the file says {_with(limit, length)}" if math.isfinite(limit) else (
            "none in the file")  # fmt: skip
        yield f"{each.joint}: its {side} limit is that of {what} ({file})"
    if each.dead_points:
        places = ", ".join(f"{x:.4g}" for x in each.dead_points)
        yield f"{each.joint}: dead points at {places} {length}, with the other joints at neutral"
    for word, here, promised, unit in (
        ("effort", each.effort, each.file_limits.effort, force),
        ("velocity", each.velocity, each.file_limits.velocity, speed),
    ):
        if math.isfinite(promised) and here < promised * (1.0 - 1e-9):
            yield (
                f"{each.joint}: the file promises {word} {_with(promised, unit)}, the motor gives "
                f"{_with(here, unit)}"
            )


def _four_bars(bars: tuple[FourBar, ...]) -> Table:
    rows: list[list[Cell]] = []
    for each in bars:
        low, high = math.degrees(each.least.angle), math.degrees(each.most.angle)
        lengths = ", ".join(f"{length:.4g}" for length in each.lengths)
        least = f"{low:.3g}° at {each.input} = {each.least.at:.4g} rad"
        rows.append([" - ".join(each.joints), each.kind, lengths, f"{each.margin:.3g}", least,
                     f"{high:.3g}°"])  # fmt: skip
    columns = ["joints", "class", "bars [m]", "Grashof's margin [m]", "transmission angle", "to"]
    return Table(columns, rows)


def _weak(bars: tuple[FourBar, ...]) -> list[str]:
    return [
        f"{each.loop}: below {math.degrees(LOW):.0f}° of transmission angle the bars push mostly "
        "on their hinges"
        for each in bars
        if each.least.angle < LOW
    ]


def _polygons(polygons: tuple[Polygon, ...]) -> Table:
    rows: list[list[Cell]] = []
    for each in polygons:
        for i, name in enumerate(each.joints):
            most = [float(corners[:, i].max()) for corners in each.corners]
            unit = "of motors that give 1" if each.unit else each.force_units[i]
            rows.append([" and ".join(each.joints), name, min(most), max(most), unit,
                         len(each.corners)])  # fmt: skip
    columns = ["joints", "greatest of", "least", "most", "unit", "poses"]
    return Table(columns, rows, digits=4)


def _workspace(each: Workspace) -> list[str]:
    (a, b), (c, d) = each.extent
    first, second = each.axis_names
    lines = [
        f"{each.foot} by {', '.join(each.coordinates)}: {first} from {a:.4g} to {b:.4g} m, "
        f"{second} from {c:.4g} to {d:.4g} m, in the coordinates of the base"
    ]
    if len(each.singular):
        lines.append("singular curves within it: the foot loses a direction there")
    return lines


# ---- plots ---------------------------------------------------------------------------------------


def _plots(study: Actuation) -> Iterator[Plot]:
    """All that changes with the pose."""
    for joint in study.joints:
        yield from _of_joint(joint)
    for drive in study.speed_torque:
        yield _of_speed_torque(drive)
    yield from (_of_bar(each) for each in study.four_bars if len(each.positions) > 1)
    yield from (_of_polygon(each) for each in study.polygons)
    yield from (_of_workspace(each) for each in study.workspaces)


def _of_joint(each: JointEnvelope) -> Iterator[Plot]:
    if len(each.line) < 2:
        return
    order = each.line[np.argsort(each.positions[each.line], kind="stable")]
    length, force, speed, inertia = units_of(each.slides)
    x, along = each.positions[order], f"{each.joint} [{length}]"
    for word, title, values, label in (
        ("ratio", "motor's rate for unit velocity", each.ratios, "ratio"),
        ("torque", "torque that reaches it", each.torque[:, None], f"torque [{force}]"),
        ("speed", "speed that reaches it", each.speed[:, None], f"speed [{speed}]"),
        ("inertia", "reflected inertia", each.inertia[:, None], f"inertia [{inertia}]"),
    ):
        shown = np.array([bounded(column, STEEPEST) for column in values[order].T])
        if not shown.size or not np.any(np.isfinite(shown)) or not _varies(shown):
            continue
        labels = each.actuators if word == "ratio" else (word,)
        lines = tuple(Line(name, x, y) for name, y in zip(labels, shown, strict=True))
        yield Plot(f"{each.joint}: {title}", along, label, lines, f"{word}_{each.joint}")


def _varies(values: Array) -> bool:
    finite = values[np.isfinite(values)]
    return bool(np.ptp(finite) > 1e-9 * np.max(np.abs(finite)))


def _of_speed_torque(each: SpeedTorque) -> Plot:
    length, force, speed, _ = units_of(each.slides)
    lines = [
        Line(f"at {position:.4g} {length}", x, y)
        for position, x, y in zip(each.positions, each.speeds, each.torques, strict=True)
    ]
    return Plot(
        f"{each.joint}: torque over speed", f"speed [{speed}]", f"torque [{force}]", lines,
        f"torque_speed_{each.joint}",
    )  # fmt: skip


def _of_bar(each: FourBar) -> Plot:
    ends = np.array([np.min(each.positions), np.max(each.positions)])
    low = math.degrees(LOW)
    lines = [
        Line("transmission angle", each.positions, np.degrees(each.angles)),
        Line(f"{low:.0f}°", ends, np.array([low, low])),
    ]
    return Plot(
        f"{each.loop}: transmission angle of a {each.kind}", f"{each.input} [rad]", "angle [°]",
        lines, f"transmission_angle_{each.loop}",
    )  # fmt: skip


def _of_polygon(each: Polygon) -> Plot:
    one, two = each.joints
    first_label, second_label = (
        f"{name}{', of motors that give 1' if each.unit else f' [{unit}]'}"
        for name, unit in zip(each.joints, each.force_units, strict=True)
    )
    lines = [
        Line(f"at {first:.2f}, {second:.2f}", *np.concatenate([corners, corners[:1]]).T)
        for (first, second), corners in zip(each.positions, each.corners, strict=True)
        if len(corners)
    ]
    return Plot(
        f"{one} and {two}: what they get together", first_label, second_label, lines,
        f"polygon_{one}_{two}", equal=True,
    )  # fmt: skip


def _of_workspace(each: Workspace) -> Plot:
    points = each.points
    rows = [points] if points.ndim == 2 else [*points, *np.swapaxes(points, 0, 1)]
    lines = [_broken("reached", rows)]
    if len(each.singular):
        lines.append(_broken("singular", list(each.singular)))
    first, second = each.axis_names
    return Plot(
        f"{each.foot} by {' and '.join(each.coordinates)}", f"{first} of the base [m]",
        f"{second} [m]", lines, f"workspace_{each.foot}", equal=True,
    )  # fmt: skip


def _broken(label: str, parts: list[Array]) -> Line:
    """Several lines as one, with gaps."""
    gap = np.full((1, 2), np.nan)
    x, y = np.concatenate([piece for part in parts for piece in (part, gap)]).T
    return Line(label, x, y)


# ---- data ----------------------------------------------------------------------------------------


def _data(study: Actuation) -> dict[str, Any]:
    return picked(study, "robot", "file") | {
        "actuators": [
            asdict(each) | {"ratios": [asdict(x) | {"constant": x.constant} for x in each.ratios]}
            for each in study.drives
        ],
        "joints": [_joint_data(each) for each in study.joints],
        "four_bars": [_bar_data(each) for each in study.four_bars],
        "polygons": [
            picked(each, "joints", "unit")
            | {
                "poses": [
                    {"positions": at, "corners": corners}
                    for at, corners in zip(each.positions, each.corners, strict=True)
                ]
            }
            for each in study.polygons
        ],
        "workspaces": [
            picked(each, "foot", "origin", "axes", "extent", "singular", joints="coordinates")
            for each in study.workspaces
        ],
    }


def _bar_data(each: FourBar) -> dict[str, Any]:
    angles = picked(each.least, least="angle", least_at="at")
    angles |= picked(each.most, most="angle", most_at="at")
    return picked(each, "joints", "loop", "lengths", "frame", "kind", "margin", "input") | {
        "transmission_angle": angles
    }


def _joint_data(each: JointEnvelope) -> dict[str, Any]:
    limits = ("lower", "upper", "effort", "velocity")
    return (
        picked(each, "joint", "tree", "actuators", "hidden", "dead_points")
        | {"turns_fully": each.reach.turns_fully}
        | picked(each.limits, *limits)
        | {
            "lower_by": each.lower_by or None,
            "upper_by": each.upper_by or None,
            "torque": _range(each.torque),
            "speed": _range(each.speed),
            "reflected_inertia": _range(each.inertia),
            "file": picked(each.file_limits, *limits),
        }
    )
