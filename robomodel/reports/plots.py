"""Line plots as SVG in the page's light or dark colours, without other packages; and as pictures by
Matplotlib, imported when one is drawn, without a window or global state.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robomodel.arrays import Array, Mask, median
from robomodel.errors import MissingPackageError
from robomodel.reports.palette import BAD, CURVES
from robomodel.tolerances import NOTHING, SAME, WITHIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 460, 260
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 30, 40
SHORT = (1e-2, 1e5)  # magnitudes at which ticks fit; others move a power of ten into the label
FORMATS = ("svg", "png", "pdf")
DPI = 150
CUT_OFF = 30.0  # times the median: larger values near dead points are cut off in curves


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points (x, y); points that are not finite break it.

    ``colour`` is its index among :data:`.CURVES`, by default its place among the lines; dashed
    lines have no entry in the key.
    """

    label: str
    x: Array
    y: Array
    colour: int | None = None
    dashed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Plot:
    """Lines over a coordinate. Labels of axes end in their unit.

    ``marks`` (position and name) are vertical lines; the range ``reached`` has a white ground.
    ``limits`` of y cut off lines that go to infinity; default those of the lines.
    ``log``: of y. ``equal``: one scale for both axes. ``name`` is the stem of a file. On a page
    successive plots of one ``group`` are in one place.
    ``empty``: the text instead of a plot without lines.
    """

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    name: str = ""
    marks: Sequence[tuple[float, str]] = ()
    reached: tuple[float, float] | None = None
    limits: tuple[float, float] | None = None
    log: bool = False
    equal: bool = False
    empty: str = ""
    group: str = ""


def opening(title: str, size: tuple[float, float], attributes: str) -> str:
    """The opening tag of a picture as SVG, of so many pixels, with further attributes."""
    width, height = (f"{each:.0f}" for each in size)
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(title, quote=True)}" {attributes} '
        'xmlns="http://www.w3.org/2000/svg">'
    )


def svg(plot: Plot, *, titled: bool = True) -> str:
    """The plot as an SVG element, and its key; ``titled``: with its title in the picture."""
    lines, marks, log = plot.lines, plot.marks, plot.log
    low_x, high_x, low, high = _extent(plot)
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at_x(x: Array) -> Array:
        return LEFT + width * (x - low_x) / (high_x - low_x)

    def at_y(y: Array) -> Array:
        return TOP + height * (high - y) / (high - low)

    parts = [
        opening(
            plot.title,
            (WIDTH, HEIGHT),
            f'data-x="{escape(plot.x_label, quote=True)}" '
            f'data-axes="{LEFT} {LEFT + width} {TOP} {TOP + height} {low_x:.9g} {high_x:.9g} '
            f'{low:.9g} {high:.9g} {log:d}"',
        ),
        f'<text x="{LEFT}" y="18" class="title">{escape(plot.title) if titled else ""}</text>',
        f'<rect x="{LEFT}" y="{TOP}" width="{width}" height="{height}" '
        f'class="{"in" if plot.reached is None else "out"}"/>',
    ]
    if plot.reached is not None:
        a, b = (float(v) for v in at_x(np.array(plot.reached)))
        parts.append(
            f'<rect x="{a:.1f}" y="{TOP}" width="{b - a:.1f}" height="{height}" class="in"/>'
        )
    for tick in _ticks(low_x, high_x):
        x = float(at_x(np.array(tick)))
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{TOP + height}"/>')
        parts.append(f'<text x="{x:.1f}" y="{TOP + height + 14}" class="mid">{tick:g}</text>')
    ticks = list(range(int(low), int(high) + 1)) if log else _ticks(low, high)
    power, y_label = 0, plot.y_label
    most = max(map(abs, ticks), default=0.0)
    if not log and most > 0.0 and "[" in y_label and not SHORT[0] <= most < SHORT[1]:
        power = 3 * math.floor(math.log10(most) / 3.0)
        y_label = y_label.replace("[", f"[1e{power:+d} ", 1)
    for tick in ticks:
        y = float(at_y(np.array(tick)))
        shown = f"{10.0**tick if log else tick / 10.0**power:g}"
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + width}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 5}" y="{y + 4:.1f}" class="end">{shown}</text>')
    for i, line in enumerate(lines):
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.log10(line.y) if log else line.y
        inside = np.isfinite(values) & (values >= low - WITHIN) & (values <= high + WITHIN)
        path = _path(at_x(line.x), at_y(np.where(inside, values, low)), inside)
        name = escape(line.label, quote=True)
        colour, dashed = _colour(i, line), ' class="dashed"' if line.dashed else ""
        parts.append(f'<path d="{path}" stroke="{colour}"{dashed} data-of="{name}"/>')
    for at, name in marks:
        x = float(at_x(np.array(at)))
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{TOP + height}" class="mark">'
            f"<title>{escape(name)} at {at:.6g}</title></line>"
        )
    if y_label:
        height_at = f"{TOP + height / 2:.0f}"
        parts.append(
            f'<text x="12" y="{height_at}" transform="rotate(-90 12 {height_at})" class="mid">'
            f"{escape(y_label)}</text>"
        )
    middle = LEFT + width / 2
    parts.append(
        f'<text x="{middle}" y="{HEIGHT - 6}" class="mid">{escape(plot.x_label)}</text></svg>'
    )
    named = [(i, line) for i, line in enumerate(lines) if not line.dashed]
    if len(named) > 1:
        keys = "".join(
            f'<span><i style="background:{_colour(i, line)}"></i>{escape(line.label)}</span>'
            for i, line in named
        )
        parts.append(f'<div class="key">{keys}</div>')
    return "".join(parts)


def _extent(plot: Plot) -> tuple[float, float, float, float]:
    """Ends of both axes; of a logarithmic one in decades."""
    lines = plot.lines
    xs = np.concatenate([line.x for line in lines] + [np.array([at for at, _ in plot.marks])])
    low_x, high_x = _span(xs[np.isfinite(xs)])
    values = np.concatenate([line.y for line in lines])
    values = values[np.isfinite(values) & ((values > 0.0) | (not plot.log))]
    low, high = plot.limits or (float(np.min(values)), float(np.max(values)))
    if plot.log:
        low, high = math.log10(low), math.log10(high)
        low, high = math.floor(low), max(math.ceil(high), math.floor(low) + 1)
    else:
        low, high = _span(np.array([low, high]))
    if plot.equal:
        width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        scale = max((high_x - low_x) / width, (high - low) / height) * 1.05
        low_x, high_x = _widened(low_x, high_x, scale * width)
        low, high = _widened(low, high, scale * height)
    return low_x, high_x, low, high


def bounded(values: Array) -> Array:
    """Values with nan above so many medians, which near singularities flatten the rest."""
    finite = np.abs(values[np.isfinite(values)])
    most = CUT_OFF * median(finite) if len(finite) else 0.0
    return np.where(np.abs(values) <= max(most, NOTHING), values, np.nan)


def _colour(number: int, line: Line) -> str:
    return CURVES[(number if line.colour is None else line.colour) % len(CURVES)]


def _path(x: Array, y: Array, inside: Mask) -> str:
    """Move to the first point inside, lines from then on, anew after each that is not."""
    commands, down = [], False
    for px, py, is_inside in zip(x.tolist(), y.tolist(), inside.tolist(), strict=True):
        if is_inside:
            commands.append(f"{'L' if down else 'M'}{px:.1f} {py:.1f}")
        down = is_inside
    return "".join(commands)


def _span(values: Array) -> tuple[float, float]:
    low, high = float(np.min(values)), float(np.max(values))
    if high - low < SAME * max(1.0, abs(high)):
        low, high = low - 0.5 * max(1.0, abs(low)), high + 0.5 * max(1.0, abs(high))
    return low, high


def _widened(low: float, high: float, size: float) -> tuple[float, float]:
    middle = (low + high) / 2
    return middle - size / 2, middle + size / 2


def _ticks(low: float, high: float) -> list[float]:
    """About five round numbers."""
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    for factor in (5.0, 2.0):
        if (high - low) / (factor * step) >= 3:
            step *= factor
            break
    first = math.ceil(low / step - SAME)
    return [round(n * step, 12) for n in range(first, math.floor(high / step + SAME) + 1)]


# ---- Matplotlib ----------------------------------------------------------------------------------


def figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("pictures need", "matplotlib", "views") from error
    return Figure(figsize=(width, height))


def save(drawn: Figure, path: str | os.PathLike[str]) -> None:
    """Write the figure; its format is the path's suffix. The same picture gives the same bytes."""
    import matplotlib

    suffix = Path(path).suffix.removeprefix(".").lower()
    if suffix not in FORMATS:
        raise ValueError(
            f"a picture's name ends with .{', .'.join(FORMATS)}, not '{Path(path).suffix}'"
        )
    dpi = min(DPI, 20_000 / max(drawn.get_size_inches()))  # at most 20 000 pixels a side
    stable: dict[str, Any] = {"svg.hashsalt": "robomodel", "svg.fonttype": "none"}
    with matplotlib.rc_context(stable):
        dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix)
        drawn.savefig(path, dpi=dpi, metadata=dated)


def draw_plots(plots: Sequence[Plot], path: str | os.PathLike[str], *, columns: int = 1) -> None:
    """Draw plots in ``columns``; the picture's format is the path's suffix."""
    rows = max(-(-len(plots) // columns), 1)
    tall = 5.0 if plots and plots[0].equal else 4.0
    drawn = figure(6.0 * columns, tall if rows == 1 else 2.7 * rows)
    every = drawn.subplots(rows, columns, squeeze=False).flat
    for axes, plot in zip(every, plots, strict=False):
        _draw(axes, plot)
    drawn.align_ylabels()
    drawn.tight_layout()
    save(drawn, path)


def _draw(axes: Axes, plot: Plot) -> None:
    for n, line in enumerate(plot.lines):
        axes.plot(
            line.x, line.y, label=line.label, linewidth=1.2,
            color=CURVES[(n if line.colour is None else line.colour) % len(CURVES)],
            linestyle="--" if line.dashed else "-",
        )  # fmt: skip
    axes.set(title=plot.title, xlabel=plot.x_label, ylabel=plot.y_label)
    axes.grid(alpha=0.3)
    if plot.log:
        axes.set_yscale("log")
    if plot.equal:
        axes.set_aspect("equal", adjustable="datalim")
    if len(plot.lines) > 1:
        axes.legend(fontsize=8)
    for position, name in plot.marks:
        axes.axvline(position, color=BAD, linewidth=0.9, linestyle=":")
        axes.annotate(name, (position, 1.0), xycoords=("data", "axes fraction"), fontsize=7,
                      rotation=90, va="top", ha="right")  # fmt: skip
    if not plot.lines:
        axes.text(0.5, 0.5, plot.empty, transform=axes.transAxes, ha="center", va="center")
