"""The report of a validation as one HTML page that needs nothing besides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from robomodel.documents import count
from robomodel.errors import few
from robomodel.model.closure import CLOSED
from robomodel.model.joints import Array
from robomodel.reports.page import document, plots
from robomodel.reports.sketch import drawings, key
from robomodel.reports.svg import Line, plot
from robomodel.reports.validation.findings import Finding, likewise
from robomodel.reports.validation.linkage import Linkage, Sweep
from robomodel.transmissions import rotor_name

if TYPE_CHECKING:
    from robomodel.reports.validation.report import Report

STEEPEST = 1.5  # times the rates' usual size: where plots of G are cut off
USUAL = 0.9  # the share of points that say what that is


def page(report: Report) -> str:
    """The whole page."""
    name = escape(report.robot or report.file)
    badges = [
        f'<span class="badge {severity}">{count(n, severity)}</span>'
        for severity, n in report.counts.items()
        if n
    ] or ['<span class="badge good">nothing found</span>']
    body = [
        f"<h1>{name}</h1>",
        f'<p class="place">{escape(report.file)}</p>',
        f"<p>{''.join(badges)}</p>",
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
    yield f"<p>{escape(_words(linkage))}</p>"
    yield plots(drawings(linkage.sketches, linkage.ghosts))
    yield from key(linkage.sketches[:1])
    yield from _numbers(linkage)
    for number, sweep in enumerate(linkage.sweeps[: linkage.mobility]):
        turned = not np.all(sweep.ahead)  # it has met the other way itself
        others = () if turned else linkage.other_sweeps[number : number + 1]
        yield f"<h3>{escape(_title(sweep))}</h3>"
        yield plots(_plots(linkage, sweep, others))
    if linkage.other_sweeps:
        yield '<p class="place">Dashed: the other way to close. Red: singular positions. Grey: '
        yield "beyond the limits.</p>"


def _words(linkage: Linkage) -> str:
    """What the linkage is and does, before the numbers."""
    independent, n = linkage.independent, linkage.mobility
    others = [name for name in linkage.joints if name not in independent]
    moved = few(others)
    words = [
        f"{count(n, 'freedom')}: {few(independent)} "
        f"move{'s' if len(independent) == 1 else ''} {moved}.",
        f"The loops close to {linkage.gap:.0e} m (or as the sine of an angle) over the whole range."
        if linkage.gap < CLOSED
        else f"The loops do not close everywhere: they stay open by {linkage.gap:.2g}.",
    ]
    if linkage.branches > 1:
        words.append(
            f"With the independent joints at neutral it can be put together in {linkage.branches} "
            "ways; the first drawing is the one that the model uses."
        )
    met = [each for sweep in linkage.sweeps for each in sweep.singularities]
    within = sum(each.reached for each in met)
    if within:
        words.append(
            f"{count(within, 'singular position')} within the limits, where the "
            "independent joints no longer say how it moves."
        )
    elif met:
        words.append("Its singular positions are all beyond the limits.")
    else:
        words.append("It has no singular positions.")
    return " ".join(words)


def _numbers(linkage: Linkage) -> Iterator[str]:
    chosen = linkage.chosen
    rows = [
        ("joint velocities, conditions, freedoms",
         f"{linkage.velocities} - {linkage.rank} = {linkage.mobility} ({linkage.rows} rows)"),
        ("motion per unit of the independent joints (1/σ)",
         f"median {chosen.median:.3g}, worst {chosen.worst:.3g} of {linkage.samples} samples"),
    ]  # fmt: skip
    best = linkage.best
    if best is not None and best.joints != chosen.joints:
        words = f"{few(best.joints)}: median {best.median:.3g}, worst {best.worst:.3g}"
        rows.append(("the best choice of independent joints", words))
    yield '<table class="numbers">'
    yield from (f"<tr><td>{escape(a)}</td><td>{escape(b)}</td></tr>" for a, b in rows)
    yield "</table>"


def _title(sweep: Sweep) -> str:
    low, high = sweep.range
    held = ", ".join(f"{name} = {value:.3g}" for name, value in sweep.held.items())
    return f"{sweep.joint} from {low:.4g} to {high:.4g}" + (f", with {held}" if held else "")


def _plots(linkage: Linkage, sweep: Sweep, others: Sequence[Sweep]) -> Iterator[str]:
    """Positions and ratios of the dependent joints, and the condition, along a sweep."""
    unit = dict(zip(linkage.labels, ("m" if x else "rad" for x in linkage.lengths), strict=True))
    along = f"{sweep.joint} [{unit[sweep.joint]}]"
    # the other freedoms' own joints rest, and rotors turn in proportion to theirs
    rotors = {rotor_name(name) for name in linkage.labels}
    moving = [
        c for c, name in enumerate(linkage.labels) if name not in {*linkage.independent, *rotors}
    ]
    marks = [(each.position, each.kind) for each in sweep.singularities]
    marks = [mark for mark in marks if _shown(mark[0], sweep)]
    for kind in ("rad", "m"):
        shown = [c for c in moving if unit[linkage.labels[c]] == kind]
        if not shown:
            continue
        yield plot(
            f"dependent joints: position [{kind}]",
            along,
            _lines(linkage, shown, sweep, others, "positions"),
            marks=marks,
            reached=sweep.range,
        )
        yield plot(
            f"dependent joints: ratio [{kind}/{unit[sweep.joint]}]",
            along,
            _lines(linkage, shown, sweep, others, "rates"),
            marks=marks,
            reached=sweep.range,
            limits=_steepest(sweep.rates[:, shown]),
        )
    yield plot(
        "motion of the cluster per unit of its inputs (1/σ)",
        along,
        [
            Line("1/σ", each.position, np.minimum(each.condition, 1e6), 0, dashed=each is not sweep)
            for each in (sweep, *others)
        ],
        marks=marks,
        reached=sweep.range,
        log=True,
    )


def _lines(
    linkage: Linkage, columns: Sequence[int], sweep: Sweep, others: Sequence[Sweep], what: str
) -> list[Line]:
    """The columns of ``what`` along a sweep, and dashed on the other way to close."""
    lines = []
    for each in (sweep, *others):
        mine = each.ahead if each is sweep else np.zeros(len(each.position), dtype=bool)
        for dashed, there in ((False, mine), (True, ~mine)):
            if np.any(there):
                lines += [
                    Line(linkage.labels[c], each.position,
                         np.where(there, getattr(each, what)[:, c], np.nan), n, dashed)
                    for n, c in enumerate(columns)
                ]  # fmt: skip
    return lines


def _steepest(rates: Array) -> tuple[float, float]:
    """Where ratios that go to infinity are cut off."""
    finite = rates[np.isfinite(rates)]
    if not len(finite):
        return (-1.0, 1.0)
    size = STEEPEST * max(float(np.quantile(np.abs(finite), USUAL)), 1e-3)
    return max(-size, float(finite.min())), min(size, float(finite.max()))


def _shown(position: float, sweep: Sweep) -> bool:
    low, high = float(np.min(sweep.position)), float(np.max(sweep.position))
    return low - 0.1 <= position <= high + 0.1
