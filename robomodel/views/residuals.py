"""Forces as they were measured and as a fit predicts them."""

from __future__ import annotations

import os

import numpy as np

from robomodel.identification import Identified
from robomodel.reports import pictures


def draw_residuals(fit: Identified, path: str | os.PathLike[str]) -> None:
    """Draw measured and predicted forces of each coordinate, and what is left, over time.

    Coordinates without measured forces are left out.

    Args:
        fit: What :func:`robomodel.identify` found.
        path: The picture; its format is the suffix: .svg, .png or .pdf.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    names = fit.model.dof_names
    x = np.arange(fit.samples) if fit.times is None else fit.times
    shown = [i for i in range(len(names)) if np.any(np.isfinite(fit.measured[:, i]))]
    drawn = pictures.figure(9.0, 2.0 * max(len(shown), 1))
    grid = drawn.subplots(max(len(shown), 1), 2, sharex=True, squeeze=False)
    for (left, right), i in zip(grid, shown, strict=False):
        left.plot(x, fit.measured[:, i], label="measured")
        left.plot(x, fit.predicted[:, i], label="predicted")
        left.plot(x, fit.file[:, i], ":", label="by the file")
        right.plot(x, fit.measured[:, i] - fit.predicted[:, i], lw=0.7)
        right.axhspan(-2.0 * fit.residual[i], 2.0 * fit.residual[i], alpha=0.15)
        left.set_ylabel(names[i], fontsize=8)
        for axes in (left, right):
            axes.grid(alpha=0.3)
    grid[0][0].set_title("force [N m or N]", fontsize=9)
    grid[0][1].set_title("measured less predicted, two deviations", fontsize=9)
    grid[0][0].legend(fontsize=7)
    for axes in grid[-1]:
        axes.set_xlabel("sample" if fit.times is None else "time [s]")
    drawn.tight_layout()
    pictures.save(drawn, path)
