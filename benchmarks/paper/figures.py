"""The paper's figures, drawn from the rows of :mod:`paper_experiments`. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper.experiments import CHAINS, LEG, METHODS, Row, System, growth, patterns
from benchmarks.shared.race import Array
from robomodel.reports.palette import CURVES, GREY

TITLES = {"rnea": "inverse dynamics", "aba": "forward dynamics", "efpa": "inverse OSIM"}
ORDER = ("unconstrained", "approximate", "cluster", "projection", "lagrange")
COLOURS = {
    "unconstrained": GREY,
    "approximate": CURVES[5],
    "as the paper": CURVES[3],
    "cluster": CURVES[1],
    "projection": CURVES[0],
    "lagrange": CURVES[2],
}
LABELS = {
    "cluster": "cluster (exact)",
    "lagrange": "Lagrange multipliers",
    "as the paper": "approximate, rotors' mass dropped",
}
FITTED_FROM = 24  # links
UNIT = "nanoseconds a state, one core"


def pyplot() -> Any:
    """Matplotlib, drawing to files; ImportError that says how to get it."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise ImportError("figures need matplotlib: pip install '.[views]'") from None
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def draw(
    robots: Sequence[Row],
    chains: Sequence[Row],
    systems: Sequence[System],
    leg: tuple[Array, Mapping[str, Array], Sequence[str]],
    folder: Path,
) -> list[Path]:
    """Figures 8 to 14 of the paper; the files."""
    files = [folder / "figure8.png"]
    spots(systems, "Figure 8: nonzero entries of the methods' matrices", files[-1])
    for number, algorithm in ((9, "rnea"), (10, "aba"), (12, "efpa")):
        files.append(folder / f"figure{number}.png")
        chosen = [row for row in robots if row.algorithm == algorithm]
        bars(chosen, f"Figure {number}: {TITLES[algorithm]}", files[-1])
    for number, algorithm in ((11, "aba"), (13, "efpa")):
        files.append(folder / f"figure{number}.png")
        chosen = [row for row in chains if row.algorithm == algorithm]
        lines(chosen, f"Figure {number}: {TITLES[algorithm]}", files[-1])
    files.append(folder / "figure14.png")
    torques(*leg, f"Figure 14: torques of {LEG}, and their errors", files[-1])
    return files


def spots(systems: Sequence[System], title: str, file: Path) -> None:
    """The matrix of multipliers, with all joints and constraints, above the mass matrix."""
    plt = pyplot()
    figure, charts = plt.subplots(
        2, len(systems), figsize=(2.7 * len(systems), 5.8), layout="constrained"
    )
    for (upper, lower), system in zip(charts.T, systems, strict=True):
        joints, conditions, mass = patterns(system.model)
        full = np.block([[joints, conditions.T], [conditions, np.zeros((len(conditions),) * 2)]])
        for axes, matrix, colour in ((upper, full, COLOURS["lagrange"]),
                                     (lower, mass, COLOURS["cluster"])):  # fmt: skip
            colours = plt.matplotlib.colors.ListedColormap(["white", colour])
            axes.imshow(matrix, cmap=colours, vmin=0, vmax=1, interpolation="none")
            axes.set_xlabel(f"{len(matrix)} × {len(matrix)}, {np.count_nonzero(matrix)} nonzero",
                            fontsize=8)  # fmt: skip
            axes.set(xticks=[], yticks=[])
        for draw in (upper.axhline, upper.axvline):
            draw(len(joints) - 0.5, color=GREY, linewidth=0.5)
        upper.set_title(system.name, fontsize=9)
    charts[0, 0].set_ylabel("multipliers: [H Kᵀ; K 0]")
    charts[1, 0].set_ylabel("projection: Gᵀ H G")
    figure.suptitle(title)
    figure.savefig(file, dpi=90)
    plt.close(figure)


def bars(rows: Sequence[Row], title: str, file: Path) -> None:
    """Time a state of each method, by robot."""
    plt = pyplot()
    systems = list(dict.fromkeys(row.system for row in rows))
    methods = [m for m in ORDER if any(row.method == m for row in rows)]
    width = 0.84 / len(methods)
    figure, axes = plt.subplots(figsize=(10, 4.2), layout="constrained")
    for n, method in enumerate(methods):
        times = {row.system: row.ns or 0.0 for row in rows if row.method == method}
        at = np.arange(len(systems)) + (n - (len(methods) - 1) / 2) * width
        heights = [times[name] for name in systems]
        drawn = axes.bar(
            at, heights, width, label=LABELS.get(method, method), color=COLOURS[method]
        )
        axes.bar_label(drawn, fmt="%.0f", fontsize=7)
    axes.set_xticks(range(len(systems)), systems)
    axes.set(ylabel=UNIT, title=title)
    axes.legend()
    figure.savefig(file, dpi=90)
    plt.close(figure)


def lines(rows: Sequence[Row], title: str, file: Path) -> None:
    """Time and operations over the number of links, log-log, with the growth of long chains."""
    plt = pyplot()
    systems = list(dict.fromkeys(row.system for row in rows))
    figure, charts = plt.subplots(
        len(systems), 2, figsize=(10, 3.8 * len(systems)), squeeze=False, layout="constrained"
    )
    for line, system in zip(charts, systems, strict=True):
        for axes, quantity, unit in zip(line, ("ns", "flops"), (UNIT, "operations"), strict=True):
            for method in METHODS["aba"]:
                chosen = [r for r in rows if (r.system, r.method) == (system, method)]
                points = [(r.links, y) for r in chosen if (y := getattr(r, quantity)) is not None]
                if not points:
                    continue
                label = LABELS.get(method, method)
                if (fit := growth(chosen, quantity, FITTED_FROM)) is not None:
                    label += f": links^{fit[0]:.2f}"
                    ends = np.array([fit[1], fit[2]], dtype=float)
                    level = np.mean([np.log(y) - fit[0] * np.log(x) for x, y in points
                                     if x >= FITTED_FROM])  # fmt: skip
                    axes.loglog(ends, np.exp(level) * ends ** fit[0], "--", color=COLOURS[method],
                                linewidth=0.8)  # fmt: skip
                axes.loglog(*zip(*points, strict=True), "o", color=COLOURS[method], markersize=4,
                            label=label)  # fmt: skip
            axes.set(xlabel="links", ylabel=unit, title=f"{title}, {CHAINS[system]}")
            axes.grid(visible=True, which="both", alpha=0.25)
            axes.legend(fontsize=8)
    figure.savefig(file, dpi=90)
    plt.close(figure)


def torques(
    time: Array, tau: Mapping[str, Array], names: Sequence[str], title: str, file: Path
) -> None:
    """Torques over the first periods, and below them what each method errs, joint by joint."""
    plt = pyplot()
    shown = time <= 4.0 / 3.0  # seconds: two periods
    figure, charts = plt.subplots(
        2, len(names), figsize=(3.1 * len(names), 5.2), sharex=True, layout="constrained"
    )
    for n, (name, (upper, lower)) in enumerate(zip(names, charts.T, strict=True)):
        for method, values in tau.items():
            style = {"color": COLOURS[method], "label": LABELS.get(method, method)}
            upper.plot(time[shown], values[shown, n], **style)
            if method != "cluster":
                lower.plot(time[shown], (values - tau["cluster"])[shown, n], **style)
        upper.set_title(name, fontsize=9)
        lower.set(xlabel="time [s]")
    charts[0, 0].set(ylabel="torque [N m]")
    charts[1, 0].set(ylabel="error [N m]")
    figure.legend(*charts[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.suptitle(title)
    figure.savefig(file, dpi=90)
    plt.close(figure)
