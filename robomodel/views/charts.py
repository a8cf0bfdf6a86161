"""Charts of reports as pictures: needs Matplotlib."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from robomodel.reports.actuation.page import Chart
from robomodel.reports.svg import COLOURS
from robomodel.views import figures


def draw_charts(charts: Sequence[Chart], folder: Path, suffix: str = "png") -> list[Path]:
    """Draw each chart into a file of the folder, which is made; their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_draw(chart, folder, suffix) for chart in charts]


def _draw(chart: Chart, folder: Path, suffix: str) -> Path:
    drawn = figures.figure(6.0, 5.0 if chart.equal else 4.0)
    axes = drawn.subplots()
    for n, line in enumerate(chart.lines):
        axes.plot(line.x, line.y, label=line.label, color=COLOURS[n % len(COLOURS)], linewidth=1.2)
    axes.set_title(chart.title, fontsize=10)
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    axes.grid(alpha=0.3)
    if chart.equal:
        axes.set_aspect("equal", adjustable="datalim")
    if len(chart.lines) > 1:
        axes.legend(fontsize=8)
    drawn.tight_layout()
    path = folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '_', chart.name)}.{suffix}"
    figures.save(drawn, path)
    return path
