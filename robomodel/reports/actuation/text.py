"""What a study of actuators says: as words, and as plain numbers."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from robomodel.documents import count, plain
from robomodel.dynamics.actuators.reach import Reach
from robomodel.model.joints import Array
from robomodel.reports.actuation.four_bars import LOW, FourBar
from robomodel.reports.actuation.workspace import Workspace

if TYPE_CHECKING:
    from robomodel.reports.actuation.study import Actuation, Drive, Polygon


def lines(found: Actuation) -> list[str]:
    """Headed paragraphs, a line for each thing."""
    sections = (
        ("Actuators: motor's rate for unit velocity of a joint, over its range",
         [_drive(each) for each in found.drives]),
        ("Joints: what reaches them, and what the file of an open tree should say",
         [line for each in found.joints for line in _joint(each)]),
        ("Four-bars", [line for each in found.four_bars for line in _bar(each)]),
        ("Torques that joints get together", [_polygon(each) for each in found.polygons]),
        ("Workspace", [line for each in found.workspaces for line in _workspace(each)]),
    )  # fmt: skip
    text = [f"{found.robot}: {summary(found)}"]
    for title, own in sections:
        if own:
            text += ["", title, *(f"  {line}" for line in own)]
    return text


def summary(found: Actuation) -> str:
    """In one line."""
    parts = [count(len(found.drives), "actuator")]
    if found.four_bars:
        parts.append(count(len(found.four_bars), "four-bar"))
    if found.hidden:
        names = ", ".join(each.joint for each in found.hidden[:4])
        parts.append(f"limits behind linkages or gears: {names}")
    return ", ".join(parts)


def _number(value: float, unit: str = "") -> str:
    if not math.isfinite(value):
        return "unlimited"
    return f"{value:.4g}{f' {unit}' if unit else ''}"


def _drive(each: Drive) -> str:
    limits = [f"effort {_number(each.effort_limit)}", f"velocity {_number(each.velocity_limit)}"]
    if each.stall_torque is not None and each.no_load_speed is not None:
        limits.append(f"stall {each.stall_torque:.4g} to no load {each.no_load_speed:.4g}")
    ratios = "; ".join(
        f"{ratio.joint} {ratio.low:.4g}" + ("" if ratio.constant else f" to {ratio.high:.4g}")
        for ratio in each.ratios
    )
    at = "" if each.joint == each.name else f" at {each.joint}"
    return f"{each.name}{at}: {ratios or 'moves nothing'} ({', '.join(limits)})"


def _joint(each: Reach) -> list[str]:
    if not each.actuators and not each.hidden:
        return []
    limits = each.limits
    known = (limits.lower, limits.upper, limits.effort, limits.velocity)
    if not any(map(math.isfinite, known)):
        return []
    said = (
        f"{each.joint}: {_number(limits.lower)} to {_number(limits.upper)}, "
        f"effort {_number(limits.effort)}, velocity {_number(limits.velocity)}"
    )
    if not each.constant:
        spread = _spread(each)
        said += f" (over the range {spread})" if spread else ""
    found = [said]
    for side, by, own in (
        ("lower", each.lower_by, each.given.lower), ("upper", each.upper_by, each.given.upper),
    ):  # fmt: skip
        if by in ("", each.joint):
            continue
        what = "the linkage itself" if by == "loop" else f"'{by}'"
        file = "none in the file" if not math.isfinite(own) else f"the file says {own:.4g}"
        found.append(f"  its {side} limit is that of {what} ({file})")
    for word, here, own in (
        ("effort", each.effort, each.given.effort),
        ("velocity", each.velocity, each.given.velocity),
    ):
        if math.isfinite(own) and here < own * (1.0 - 1e-9):
            found.append(f"  the file promises {word} {own:.4g}, the motor gives {here:.4g}")
    return found


def _spread(each: Reach) -> str:
    ranges = {"effort": _range(each.torque), "velocity": _range(each.speed)}
    return ", ".join(f"{name} {x[0]:.4g} to {x[1]:.4g}" for name, x in ranges.items() if x)


def _bar(each: FourBar) -> list[str]:
    low, high = math.degrees(each.least.angle), math.degrees(each.most.angle)
    sizes = ", ".join(f"{length:.4g}" for length in each.lengths)
    found = [
        f"{' - '.join(each.joints)}: {each.kind} (bars {sizes} m, Grashof's margin "
        f"{each.margin:.3g} m)",
        f"  transmission angle {low:.3g}° (at {each.input} = {each.least.at:.4g}) to {high:.3g}°",
    ]
    if each.least.angle < LOW:
        found[-1] += f"; below {math.degrees(LOW):.0f}° the bars push mostly on their hinges"
    return found


def _polygon(each: Polygon) -> str:
    most = [
        f"{name} {min(float(c[:, i].max()) for c in each.corners):.4g} to "
        f"{max(float(c[:, i].max()) for c in each.corners):.4g}"
        for i, name in enumerate(each.joints)
    ]
    unit = " of motors that give 1" if each.unit else ""
    turns = "one pose" if len(each.corners) == 1 else f"{len(each.corners)} poses"
    return f"{' and '.join(each.joints)}: greatest{unit} {', '.join(most)} ({turns})"


def _workspace(each: Workspace) -> list[str]:
    (a, b), (c, d) = each.extent
    found = [f"{each.foot} by {', '.join(each.coordinates)}: {b - a:.4g} m by {d - c:.4g} m"]
    if len(each.singular):
        found.append("  singular curves within it: the foot loses a direction there")
    return found


# ---- plain numbers -------------------------------------------------------------------------------


def document(found: Actuation) -> dict[str, Any]:
    """The study without the points of its curves, but for polygons and workspaces."""
    made: dict[str, Any] = plain(
        {
            "robot": found.robot,
            "file": found.file,
            "actuators": [_drive_document(each) for each in found.drives],
            "joints": [_joint_document(each) for each in found.joints],
            "four_bars": [_bar_document(each) for each in found.four_bars],
            "polygons": [
                {
                    "joints": each.joints,
                    "unit": each.unit,
                    "poses": [
                        {"positions": at, "corners": corners}
                        for at, corners in zip(each.positions, each.corners, strict=True)
                    ],
                }
                for each in found.polygons
            ],
            "workspaces": [
                {
                    "foot": each.foot,
                    "joints": each.coordinates,
                    "origin": each.origin,
                    "axes": each.axes,
                    "extent": each.extent,
                    "singular": each.singular,
                }
                for each in found.workspaces
            ],
        }
    )
    return made


def _drive_document(each: Drive) -> dict[str, Any]:
    ratios = [{**asdict(ratio), "constant": ratio.constant} for ratio in each.ratios]
    return {**asdict(each), "ratios": ratios}


def _bar_document(each: FourBar) -> dict[str, Any]:
    least, most = each.least, each.most
    names = ("joints", "loop", "lengths", "frame", "kind", "margin", "input")
    return {name: getattr(each, name) for name in names} | {
        "transmission_angle": {
            "least": least.angle,
            "least_at": least.at,
            "most": most.angle,
            "most_at": most.at,
        }
    }


def _joint_document(each: Reach) -> dict[str, Any]:
    limits, given = each.limits, each.given
    return {
        "joint": each.joint,
        "tree": each.tree,
        "actuators": each.actuators,
        "lower": limits.lower,
        "upper": limits.upper,
        "lower_by": each.lower_by or None,
        "upper_by": each.upper_by or None,
        "hidden": each.hidden,
        "effort": limits.effort,
        "velocity": limits.velocity,
        "torque": _range(each.torque),
        "speed": _range(each.speed),
        "file": {name: getattr(given, name) for name in ("lower", "upper", "effort", "velocity")},
    }


def _range(values: Array) -> tuple[float, float] | None:
    known = values[np.isfinite(values)]
    return (float(np.min(known)), float(np.max(known))) if len(known) else None
