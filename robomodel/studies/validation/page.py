"""The report of a validation as one HTML page that needs nothing besides."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import numpy as np

from robomodel.studies.page import document
from robomodel.studies.svg import Line, plot
from robomodel.studies.validation.linkage import Linkage, Sweep
from robomodel.studies.validation.report import Finding, Report, likewise

STEEPEST = 1.5  # times the rates' usual size: where plots of G are cut off
USUAL = 0.9  # the share of points that say what that is


def page(report: Report) -> str:
    """The whole page."""
    name = escape(report.robot or report.file)
    body = [
        f"<h1>{name}</h1>",
        f'<p class="place">{escape(report.file)}: {escape(report.summary)}</p>',
        *_findings(report),
        *(part for linkage in report.linkages for part in _linkage(linkage)),
    ]
    return document(f"{name}: validation", body)


def _findings(report: Report) -> Iterator[str]:
    if not report.findings:
        return
    yield "<h2>Findings</h2><table><tr><th></th><th>where</th><th>what</th></tr>"
    for first, *others in report.alike:
        yield _row(first, others)
    yield "</table>"


def _row(first: Finding, others: list[Finding]) -> str:
    source = first.source
    line = "" if source.line is None else f":{source.line}"
    file = source.file.replace("\\", "/").rpartition("/")[2]
    also = ""
    if others:
        also = f'<br><span class="place">{escape(likewise(first, others))}</span>'
    remedy = f'<br><span class="remedy">→ {escape(first.remedy)}</span>' if first.remedy else ""
    return (
        f'<tr><td class="{first.severity}">{first.severity}<br><code>{escape(first.check)}</code>'
        f'</td><td>{escape(source.element)}<br><span class="place">{escape(file)}{line}</span>'
        f"</td><td>{escape(first.message)}{remedy}{also}</td></tr>"
    )


def _linkage(linkage: Linkage) -> Iterator[str]:
    yield f"<h2>Cluster {escape(linkage.cluster)}</h2>"
    first, *_ = linkage.lines()
    yield f"<p>{escape(first.partition(': ')[2])}</p>"
    for sweep in linkage.sweeps[: linkage.mobility]:
        yield '<div class="plots">'
        yield from (f"<figure>{picture}</figure>" for picture in _pictures(linkage, sweep))
        yield "</div>"


def _pictures(linkage: Linkage, sweep: Sweep) -> Iterator[str]:
    """G and the condition of the independent coordinates along a sweep."""
    held = ", ".join(f"{name} = {value:.3g}" for name, value in sweep.held.items())
    along = f"{sweep.joint} [rad or m]" + (f", with {held}" if held else "")
    # what the other freedoms' own joints do is zero or one throughout
    moving = [
        column
        for column in range(sweep.rates.shape[1])
        if linkage.labels[column] not in linkage.independent
    ]
    rates = sweep.rates[:, moving]
    finite = np.abs(rates[np.isfinite(rates)])
    size = STEEPEST * max(float(np.quantile(finite, USUAL)) if len(finite) else 1.0, 1e-3)
    lowest, highest = (float(f(rates[np.isfinite(rates)])) for f in (np.min, np.max))
    marks = [(each.position, each.kind) for each in sweep.singularities]
    marks = [mark for mark in marks if _shown(mark[0], sweep)]
    yield plot(
        "velocity of the other joints (G)",
        along,
        [Line(linkage.labels[c], sweep.position, sweep.rates[:, c]) for c in moving],
        marks=marks,
        reached=sweep.range,
        limits=(max(-size, lowest), min(size, highest)),
    )
    yield plot(
        "1/σ: how much the cluster moves per unit of its independent joints",
        along,
        [Line("1/σ", sweep.position, np.minimum(sweep.condition, 1e6))],
        marks=marks,
        reached=sweep.range,
        log=True,
    )


def _shown(position: float, sweep: Sweep) -> bool:
    low, high = float(np.min(sweep.position)), float(np.max(sweep.position))
    return low - 0.1 <= position <= high + 0.1
