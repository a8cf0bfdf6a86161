"""The page of a report: one HTML file that needs nothing besides, for the screen and for paper."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

STYLE = """
:root { color-scheme: light dark; --ink: #1d2530; --soft: #5d6875; --line: #d9dee4; --paper: #fff;
        --panel: #f5f7f9; --bad: #b00020; --odd: #a05a00; --good: #1f7a3d }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e7ec; --soft: #98a3b0; --line: #3a434e;
        --paper: #15191e; --panel: #1d232a; --bad: #ff7b8a; --odd: #f0b060; --good: #6fd08c } }
@media print { :root { color-scheme: light } body { font-size: 11px; max-width: none; margin: 0 }
        h2, figure, tr { break-inside: avoid } h2 { break-after: avoid } }
* { box-sizing: border-box }
body { font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; max-width: 68rem;
       margin: 2rem auto; padding: 0 1rem; color: var(--ink); background: var(--paper) }
h1 { font-size: 1.7rem; margin: 0 } h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem;
       padding-bottom: .2rem; border-bottom: 1px solid var(--line) }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem }
table { border-collapse: collapse; width: 100% } td, th { padding: .4rem .9rem .4rem 0;
       text-align: left; vertical-align: top; border-bottom: 1px solid var(--line) }
.faint td { color: var(--soft); opacity: .7 } .wide { overflow-x: auto }
table.numbers { width: auto; margin: .8rem 0 }
table.numbers th, table.numbers td { padding: .25rem 1.2rem .25rem 0; white-space: nowrap }
.number { text-align: right } table.numbers .number { font-variant-numeric: tabular-nums }
td:first-child { white-space: nowrap } .findings td:nth-child(2) { min-width: 9rem }
@media (max-width: 40rem) { .findings td { overflow-wrap: anywhere }
       .findings td:nth-child(2) { min-width: 6rem } }
.place { overflow-wrap: anywhere } .place, .note { color: var(--soft) }
.error { color: var(--bad); font-weight: 600 }
.warning { color: var(--odd); font-weight: 600 } .remedy { color: var(--soft) }
code { font-size: .85em; font-weight: 400 }
.badge { display: inline-block; padding: .05rem .6rem; margin-right: .4rem; border-radius: 1rem;
       border: 1px solid currentColor; font-size: .85em } .good { color: var(--good) }
.plots { display: flex; flex-wrap: wrap; gap: 1rem; margin: .6rem 0 }
figure { margin: 0; max-width: min(100%, 30rem);
       background: var(--panel); border-radius: 6px; padding: .5rem }
svg { max-width: 100%; height: auto; display: block }
svg text { font: 11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--soft) }
svg .title { font-size: 12px; font-weight: 600; fill: var(--ink) } svg .mid { text-anchor: middle }
svg .end { text-anchor: end } svg .out { fill: var(--line); opacity: .45 }
svg .in { fill: var(--paper) }
svg line { stroke: var(--line) } svg path { fill: none; stroke-width: 1.8 }
svg .dashed { stroke-dasharray: 5 4; stroke-width: 1.3 }
svg line.mark { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 4 3 }
.sketch .body { stroke: var(--c); stroke-width: 5; stroke-linecap: round; stroke-linejoin: round;
       fill: color-mix(in srgb, var(--c) 25%, transparent) }
.sketch .carrier { stroke: var(--soft); stroke-width: 5; stroke-linecap: round;
       stroke-linejoin: round; fill: color-mix(in srgb, var(--soft) 15%, transparent); opacity: .6 }
.sketch .ghost { opacity: .22 } .sketch .rod { stroke: var(--ink); stroke-width: 2.5 }
.sketch .pin { fill: var(--paper); stroke: var(--ink); stroke-width: 1.6 }
.sketch .loop { fill: none; stroke: var(--ink); stroke-width: 1.2 }
.sketch .ground { stroke: var(--ink); stroke-width: 1.4; fill: var(--panel) }
.key { font-size: 12px; color: var(--soft) } .key span { margin-right: 1rem }
.key i { display: inline-block; width: .9em; height: .25em; margin-right: .35em;
       vertical-align: middle }
"""


def page(title: str, kind: str, about: str, body: Iterable[str]) -> str:
    """The whole page; ``body`` is HTML, all else text."""
    of = f": {escape(kind)}" if kind else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}{of}</title><style>{STYLE}</style></head>\n<body>"
        f'<h1>{escape(title)}</h1>\n<p class="place">{escape(about)}</p>\n'
        + "\n".join(body)
        + "</body></html>\n"
    )


def figures(drawn: Iterable[str]) -> str:
    """SVG elements beside each other, as many as fit."""
    shown = "".join(f"<figure>{each}</figure>\n" for each in drawn)
    return f'<div class="plots">\n{shown}</div>'
