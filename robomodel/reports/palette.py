"""The colours of all pictures: curves, bodies, rods."""

from __future__ import annotations

CURVES = ("#4477aa", "#ee6677", "#228833", "#aa3377", "#66ccee", "#ccbb44", "#777777")
"""Lines and bars in plots and sketches; distinct for most eyes (Paul Tol's bright scheme)."""
BODIES = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2", "#edc948",
          "#ff9da7", "#9c755f")  # fmt: skip
"""Clusters and bodies in graphs and scenes (Tableau 10 without its grey)."""
PLAIN, INK = "#f4f4f4", "#333333"  # clusters of one body, and words in graphs
ROD = "#777777"  # rods and springs between points
