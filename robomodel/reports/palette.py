"""The colours of all pictures, plots and pages."""

from __future__ import annotations

from collections.abc import Mapping

CURVES = ("#4477aa", "#ee6677", "#228833", "#aa3377", "#66ccee", "#ccbb44", "#777777")
"""Lines and bars in plots and sketches; distinct for most eyes (Paul Tol's bright scheme)."""
BODIES = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2", "#edc948",
          "#ff9da7", "#9c755f")  # fmt: skip
"""Clusters and bodies in graphs and scenes (Tableau 10 without its grey)."""
PLAIN, INK = "#f4f5f7", "#1d2530"  # clusters of one body in graphs, and words
PLAIN_SOLID = "#8c8c8c"  # bodies of such clusters in scenes
GREY = "#777777"  # rods and springs between points, edges of graphs
FAINT = "#cccccc"  # lines of a grid, and what stands behind
BAD = "#b00020"  # limits in plots, errors in reports, imports that lead upwards

Tones = Mapping[str, tuple[str, str]]

TONES: Tones = {
    "ink": (INK, "#e3e7ec"),
    "soft": ("#5d6875", "#98a3b0"),
    "line": ("#d5d8dd", "#3a434e"),
    "bad": (BAD, "#ff7b8a"),
    "odd": ("#a05a00", "#f0b060"),
    "good": ("#1f7a3d", "#6fd08c"),
    "force": ("#cc2222", "#ff7b7b"),
    "accent": (CURVES[0], "#8fb0ff"),
}
"""Words, lines and marks of pages, by name: on a light ground, and on a dark one."""
REPORT: Tones = {"paper": ("#ffffff", "#15191e"), "panel": (PLAIN, "#1d232a")}
"""Grounds of a report, and of what stands out from it."""
SCENE: Tones = {"paper": (PLAIN, "#15191e"), "panel": ("#ffffff", "#1d232a")}
"""Grounds of a scene, and of the controls beside it."""


def rgb(code: str) -> tuple[int, int, int]:
    """A colour written as ``#rrggbb`` in numbers up to 255."""
    red, green, blue = (int(code[i : i + 2], 16) for i in (1, 3, 5))
    return red, green, blue


def coloured(page: str, grounds: Tones) -> str:
    """A page with the tones in the places of ``%LIGHT%`` and ``%DARK%``: CSS's ``--ink: …``."""
    for number, place in enumerate(("%LIGHT%", "%DARK%")):
        tones = (f"--{name}: {pair[number]}" for name, pair in {**grounds, **TONES}.items())
        page = page.replace(place, "; ".join(tones))
    return page
