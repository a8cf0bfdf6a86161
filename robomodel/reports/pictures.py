"""Matplotlib, imported when a picture is made: figures without a window or global state."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robomodel.errors import MissingPackageError
from robomodel.reports.plots import COLOURS, Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("svg", "png", "pdf")
MOST_PIXELS = 20_000  # of a picture's side
DPI = 150


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
    dpi = min(DPI, MOST_PIXELS / max(drawn.get_size_inches()))
    stable: dict[str, Any] = {"svg.hashsalt": "robomodel", "svg.fonttype": "none"}
    with matplotlib.rc_context(stable):
        dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix)
        drawn.savefig(path, dpi=dpi, metadata=dated)


def draw_plots(plots: Sequence[Plot], path: str | os.PathLike[str], *, columns: int = 1) -> None:
    """Draw plots beside and below each other; the picture's format is the path's suffix."""
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
            color=COLOURS[(n if line.colour is None else line.colour) % len(COLOURS)],
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
        axes.axvline(position, color="#cc3311", linewidth=0.9, linestyle=":")
        axes.annotate(name, (position, 1.0), xycoords=("data", "axes fraction"), fontsize=7,
                      rotation=90, va="top", ha="right")  # fmt: skip
    if not plot.lines:
        axes.text(0.5, 0.5, plot.empty, transform=axes.transAxes, ha="center", va="center")
