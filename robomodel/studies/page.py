"""A page of a study: one HTML file that needs nothing besides."""

from __future__ import annotations

from collections.abc import Sequence

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff }
h1 { font-size: 1.5rem; margin-bottom: .2rem } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse } td, th { padding: .25rem .8rem .25rem 0; text-align: left;
       vertical-align: top; border-bottom: 1px solid #ddd }
.place, .note { color: #666 } .error { color: #b00020; font-weight: 600 }
.warning { color: #a05a00; font-weight: 600 } .remedy { color: #444 } code { font-size: .9em }
.plots { display: flex; flex-wrap: wrap; gap: 1rem } figure { margin: 0; max-width: 100% }
svg { max-width: 100%; height: auto } svg text { font: 11px system-ui, sans-serif; fill: #444 }
svg .title { font-size: 12px; fill: #222 } svg .mid { text-anchor: middle }
svg .end { text-anchor: end } svg .out { fill: #eee } svg .in { fill: #fff }
svg line { stroke: #ddd } svg path { fill: none; stroke-width: 1.6 }
svg line.mark { stroke: #b00020; stroke-width: 1.5; stroke-dasharray: 4 3 }
.key { font-size: 12px } .key span { margin-right: 1rem } .key i { display: inline-block;
       width: .9em; height: .25em; margin-right: .35em; vertical-align: middle }
"""


def document(title: str, body: Sequence[str]) -> str:
    """A page of these parts, in the style of all studies."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head>\n<body>"
        + "\n".join(body)
        + "</body></html>\n"
    )
