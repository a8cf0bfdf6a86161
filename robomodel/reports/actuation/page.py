"""The charts of a study of actuators, and its page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from robomodel.dynamics.actuators.reach import Reach
from robomodel.model.joints import Array
from robomodel.reports.actuation.four_bars import LOW, FourBar
from robomodel.reports.actuation.text import summary
from robomodel.reports.actuation.workspace import Workspace
from robomodel.reports.page import document, plots
from robomodel.reports.svg import Line, bounded, plot

if TYPE_CHECKING:
    from robomodel.reports.actuation.study import Actuation, Polygon

STEEPEST = 30.0  # times the median: beyond it curves near dead points are cut off


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over a coordinate; ``equal``: both axes have one scale. ``name`` serves for a file."""

    name: str
    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    equal: bool = False


def charts(found: Actuation) -> list[Chart]:
    """All that changes with the pose, drawn."""
    made: list[Chart] = []
    for joint in found.joints:
        made += _of_joint(joint)
    made += [_of_bar(each) for each in found.four_bars if len(each.positions) > 1]
    made += [_of_polygon(each) for each in found.polygons]
    made += [_of_workspace(each) for each in found.workspaces]
    return made


def _of_joint(each: Reach) -> Iterator[Chart]:
    if len(each.line) < 2:
        return
    order = each.line[np.argsort(each.positions[each.line], kind="stable")]
    length, force = ("m", "N") if each.slides else ("rad", "N m")
    x, along = each.positions[order], f"{each.joint} [{length}]"
    for word, title, values, unit in (
        ("ratio", "motor's rate for unit velocity", each.ratios, ""),
        ("torque", "torque that reaches it", each.torque[:, None], f" [{force}]"),
        ("speed", "speed that reaches it", each.speed[:, None], f" [{length}/s]"),
    ):
        shown = np.array([bounded(column, STEEPEST) for column in values[order].T])
        if not shown.size or not np.any(np.isfinite(shown)) or not _varies(shown):
            continue
        labels = each.actuators if word == "ratio" else (word,)
        lines = tuple(Line(name, x, y) for name, y in zip(labels, shown, strict=True))
        yield Chart(f"{word}_{each.joint}", f"{each.joint}: {title}", along, word + unit, lines)


def _varies(values: Array) -> bool:
    known = values[np.isfinite(values)]
    return bool(np.ptp(known) > 1e-9 * np.max(np.abs(known)))


def _of_bar(each: FourBar) -> Chart:
    ends = np.array([np.min(each.positions), np.max(each.positions)])
    low = math.degrees(LOW)
    return Chart(
        f"transmission_angle_{each.loop}",
        f"{each.loop}: transmission angle of a {each.kind}",
        f"{each.input} [rad]",
        "angle [°]",
        (
            Line("transmission angle", each.positions, np.degrees(each.angles)),
            Line(f"{low:.0f}°", ends, np.array([low, low])),
        ),
    )


def _of_polygon(each: Polygon) -> Chart:
    one, two = each.joints
    unit = ", of motors that give 1" if each.unit else " [N m or N]"
    lines = [
        Line(f"at {first:.2f}, {second:.2f}", *np.concatenate([corners, corners[:1]]).T)
        for (first, second), corners in zip(each.positions, each.corners, strict=True)
        if len(corners)
    ]
    return Chart(
        f"polygon_{one}_{two}", f"{one} and {two}: what they get together",
        f"{one}{unit}", two, tuple(lines), equal=True,
    )  # fmt: skip


def _of_workspace(each: Workspace) -> Chart:
    points = each.points
    rows = [points] if points.ndim == 2 else [*points, *np.swapaxes(points, 0, 1)]
    lines = [_broken("reached", rows)]
    if len(each.singular):
        lines.append(_broken("singular", list(each.singular)))
    return Chart(
        f"workspace_{each.foot}", f"{each.foot} by {' and '.join(each.coordinates)}",
        "[m] " + _axis(each.axes[0]), "[m] " + _axis(each.axes[1]), tuple(lines), equal=True,
    )  # fmt: skip


def _axis(axis: Array) -> str:
    return "along " + ", ".join(f"{x:g}" for x in (np.round(axis, 2) + 0.0).tolist())


def _broken(label: str, parts: list[Array]) -> Line:
    """Several lines as one, with gaps."""
    gap = np.full((1, 2), np.nan)
    x, y = np.concatenate([piece for part in parts for piece in (part, gap)]).T
    return Line(label, x, y)


def page(found: Actuation) -> str:
    """The whole page."""
    name = escape(found.robot)
    text = found.lines()
    figures = [
        plot(each.title, each.x_label, each.lines, equal=each.equal, y_label=each.y_label)
        for each in charts(found)
    ]
    body = [
        f"<h1>{name}</h1>",
        f'<p class="place">{escape(found.file)}: {escape(summary(found))}</p>',
        *_sections(text[1:]),
        "<h2>Over the range</h2>" if figures else "",
        plots(figures),
    ]
    return document(f"{name}: actuation", body)


def _sections(lines: list[str]) -> Iterator[str]:
    """Headings and their lines; what is said further of a line stands below it."""
    opened = False
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if not line:
            yield "</ul>" if opened else ""
            opened = False
        elif not line.startswith(" "):
            yield f"<h2>{escape(line)}</h2><ul>"
            opened = True
        elif line.startswith("    "):
            end = "" if after.startswith("    ") else "</li>"
            yield f'<br><span class="place">{escape(line.strip())}</span>{end}'
        else:
            yield f"<li>{escape(line.strip())}" + ("" if after.startswith("    ") else "</li>")
    yield "</ul>" if opened else ""
