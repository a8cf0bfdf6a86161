"""The page of an identification: forces measured and predicted, what changed, what is not known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

import numpy as np

from robomodel.identification import Identified, parameters
from robomodel.model import Model
from robomodel.model.joints import Array
from robomodel.reports.page import document, plots
from robomodel.reports.svg import Line, plot

SHOWN = 600  # samples of a long motion in a picture
BARS = 31  # of a histogram
REACH = 4.0  # deviations, of a histogram


def page(fit: Identified, model: Model, source: str) -> str:
    """The whole page; ``model`` is that with which the fit began, ``source`` the log's name."""
    name = escape(model.name)
    before = parameters(model).values
    changed = fit.changes(before)
    body = [
        f"<h1>{name}</h1>",
        f'<p class="place">{escape(source)}: {fit.samples} samples; parameters from forces</p>',
        *_list("To know", fit.notes),
        "<h2>What is left of the forces</h2>",
        "<p>Root mean squares [N m or N].</p>",
        *_residuals(fit, model.dof_names),
        "<h2>Measured and predicted forces</h2>",
        *_pictures(fit, model.dof_names),
        "<h2>What changed most</h2>" if changed else "",
        *_changes(fit, before, changed),
        *_sensors(fit),
        *_list("What could not be known", _by_owner(fit.unknown), _UNKNOWN),
        "<h2>All parameters</h2>",
        *_changes(fit, before, range(len(fit.names))),
    ]
    return document(f"{name}: identification", [part for part in body if part])


_UNKNOWN = (
    "Of these the motions took away less than a tenth of the variance that was assumed: they stay "
    "near the file's values."
)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "<table><tr>" + "".join(f"<th>{escape(x)}</th>" for x in header) + "</tr>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{escape(x)}</td>" for x in row) + "</tr>"
    yield "</table>"


def _list(title: str, lines: Sequence[str], above: str = "") -> Iterator[str]:
    if not lines:
        return
    yield f"<h2>{escape(title)}</h2>"
    if above:
        yield f"<p>{escape(above)}</p>"
    yield "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def _by_owner(names: Iterable[str]) -> list[str]:
    """One line for each body or joint."""
    found: dict[str, list[str]] = {}
    for name in names:
        owner, _, kind = name.rpartition(".")
        found.setdefault(owner, []).append(kind)
    return [f"{owner}: {', '.join(kinds)}" for owner, kinds in found.items()]


def _residuals(fit: Identified, names: Sequence[str]) -> Iterator[str]:
    checked = bool(np.any(np.isfinite(fit.validation)))
    header = ["coordinate", "forces", "left by the file", "left by the fit", "share"]
    rows = []
    for i, name in enumerate(names):
        share = fit.residual[i] / fit.forces[i] if fit.forces[i] > 0.0 else np.nan
        row = [name, *(_short(x[i]) for x in (fit.forces, fit.before, fit.residual))]
        row.append(f"{100.0 * share:.2g} %" if np.isfinite(share) else "")
        rows.append([*row, _short(fit.validation[i])] if checked else row)
    yield from _table([*header, "in blocks not seen"] if checked else header, rows)


def _pictures(fit: Identified, names: Sequence[str]) -> Iterator[str]:
    """Of each coordinate whose force was measured: forces, residuals, and how these spread."""
    every = max(1, len(fit.measured) // SHOWN)
    at = np.arange(0, len(fit.measured), every)
    x = at.astype(float)
    for i, name in enumerate(names):
        measured, predicted, file = (f[at, i] for f in (fit.measured, fit.predicted, fit.file))
        if not np.any(np.isfinite(measured)):
            continue
        figures = [
            plot(
                f"{name}: force", "sample",
                [Line("measured", x, measured), Line("predicted", x, predicted),
                 Line("by the file", x, file)],
            ),
            plot(f"{name}: measured less predicted", "sample", [Line("", x, measured - predicted)]),
            _histogram(name, fit.measured[:, i] - fit.predicted[:, i]),
        ]  # fmt: skip
        yield plots(figures)


def _histogram(name: str, error: Array) -> str:
    """How residuals spread, beside a normal distribution of their deviation."""
    error = error[np.isfinite(error)]
    size = float(np.sqrt(np.mean(error**2))) or 1.0
    edges = np.linspace(-REACH, REACH, BARS + 1)
    middle = 0.5 * (edges[1:] + edges[:-1])
    found, _ = np.histogram(error / size, edges)
    density = found / (len(error) * (edges[1] - edges[0]))
    normal = np.exp(-0.5 * middle**2) / np.sqrt(2.0 * np.pi)
    return plot(
        f"{name}: residuals' density", f"residual / {size:.3g}",
        [Line("found", np.repeat(edges, 2)[1:-1], np.repeat(density, 2)),
         Line("normal", middle, normal)],
    )  # fmt: skip


def _changes(fit: Identified, before: Array, which: Iterable[int]) -> Iterator[str]:
    ends = fit.interval()
    rows = [
        [fit.names[i], _short(before[i]), _short(fit.values[i]),
         "held" if fit.deviation[i] == 0.0 else f"{_short(ends[i, 0])} to {_short(ends[i, 1])}",
         f"{100.0 * fit.told[i]:.0f} %"]
        for i in which
    ]  # fmt: skip
    if rows:
        yield from _table(["parameter", "file", "found", "95 % between", "told by motions"], rows)


def _sensors(fit: Identified) -> Iterator[str]:
    if not fit.sensors:
        return
    yield "<h2>Sensors</h2>"
    rows = [[x.told, _short(x.value), f"± {x.deviation:.2g}"] for x in fit.sensors]
    yield from _table(["what", "found", "deviation"], rows)


def _short(x: float) -> str:
    return f"{x:.4g}" if np.isfinite(x) else ""
