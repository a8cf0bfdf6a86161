"""Pictures of graphs over time for docs/trajectories.md: the factor graphs of Blanco-Claraco,
Leanza and Reina's figures 3 and 4, and Bayes trees; and the curves of their figures 7 and 8.

python -m benchmarks.trajectory_figures [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.trajectories import STEP, forward, four_bar, inverse, start
from robomodel.estimation.factors import Equal, Prior, Reading, Trapezoid
from robomodel.estimation.graph import Graph
from robomodel.estimation.spaces import Vectors
from robomodel.papers.elimination_orders.draw import draw_clique_tree, draw_factor_graph
from robomodel.papers.natural_coordinates import planar
from robomodel.papers.natural_coordinates.planar import bayes_tree, factor_graph
from robomodel.reports.palette import CURVES

TIMES = 4


def graphs() -> dict[str, Graph]:
    """Forward dynamics in dependent and in independent coordinates, and inverse dynamics."""
    bare, angle = four_bar(angle=False), four_bar(angle=True)
    q, v = start(angle), np.zeros(5)
    vectors = Vectors(5)
    inverse = Graph(dict.fromkeys(("q", "v", "a", "Q"), vectors), TIMES)
    inverse = inverse.add(Reading("q", (4,), 5), 0.0, data=np.zeros((TIMES, 1)))
    inverse = inverse.add(planar.PositionConstraints(angle), 0.0)
    inverse = inverse.add(Equal("q", vectors), planar.EQUAL)
    inverse = inverse.add(Prior("v", vectors), 0.0, times=[0], data=v)
    inverse = inverse.add(Trapezoid("q", "v", 5e-3, vectors), planar.TRAPEZOID)
    inverse = inverse.add(Trapezoid("v", "a", 5e-3, vectors), planar.TRAPEZOID)
    inverse = inverse.add(planar.VelocityConstraints(angle), 0.0, times=np.arange(1, TIMES))
    inverse = inverse.add(planar.PlanarDynamics(angle, forces="Q"), planar.DYNAMICS)
    return {
        "dependent": planar.forward(bare, TIMES, 1e-3, q=q[:4], v=v[:4]),
        "independent": planar.forward_independent(angle, ["theta"], TIMES, 1e-3, q=q, v=v),
        "inverse": inverse,
    }


def save(folder: Path, name: str, size: tuple[float, float], draw: Callable[[Any], Any]) -> None:
    """One picture, the same bytes each time."""
    figure = Figure(figsize=size, layout="constrained")
    draw(figure.add_subplot())
    figure.savefig(folder / f"graph_{name}.png", dpi=90, metadata={"Software": None})


def forward_curves(folder: Path, curves: Path) -> None:
    """Figure 7: P1 and P2 by forward dynamics, and how far from the exact motion."""
    figure = Figure(figsize=(8.0, 7.0), layout="constrained")
    above, rates, off = figure.subplots(3, 1, sharex=True)
    for name, line in (("dependent", "-"), ("independent", "--")):
        table = np.loadtxt(curves / f"figure7_{name}_2.csv", delimiter=",")
        times = STEP * np.arange(len(table))
        for i, label in enumerate(("x of P1", "y of P1", "x of P2", "y of P2")):
            named = label if name == "dependent" else None
            above.plot(times, table[:, i], line, color=CURVES[i], label=named)
            rates.plot(times, table[:, 4 + i], line, color=CURVES[i])
        error = np.linalg.norm(table[:, 8:12], axis=1)
        off.semilogy(times[1:], error[1:], line, color="black", label=f"{name} coordinates")
    above.set_ylabel("position [m]")
    rates.set_ylabel("velocity [m/s]")
    off.set(xlabel="time [s]", ylabel="error of q [m]")
    finish(figure, folder / "trajectory_figure7.png")


def inverse_curves(folder: Path, curves: Path) -> None:
    """Figure 8: the torque by inverse dynamics, its error, and where it leads without control."""
    times, prescribed, _, driven, torque, exact = np.loadtxt(
        curves / "figure8.csv", delimiter=","
    ).T
    figure = Figure(figsize=(8.0, 7.0), layout="constrained")
    above, off, crank = figure.subplots(3, 1, sharex=True)
    above.plot(times, torque, color=CURVES[0], label="of the graph")
    above.plot(times, exact, "--", color=CURVES[1], label="of the exact motion")
    above.set_ylabel("torque [N m]")
    off.semilogy(times, np.abs(torque - exact), color="black")
    off.set_ylabel("difference [N m]")
    crank.plot(times, prescribed, color=CURVES[0], label="prescribed")
    crank.plot(times, inside(driven, prescribed), color=CURVES[1],
               label="driven by the torque, without control")  # fmt: skip
    crank.set(xlabel="time [s]", ylabel="crank [rad]")
    finish(figure, folder / "trajectory_figure8.png")


def inside(driven: NDArray[np.float64], prescribed: NDArray[np.float64]) -> NDArray[np.float64]:
    """The driven crank until it has left the prescribed one by 3 rad."""
    gone = np.cumsum(np.abs(driven - prescribed) > 3.0) > 0
    return np.where(gone, np.nan, driven)


def finish(figure: Figure, path: Path) -> None:
    """Grids, legends, the file."""
    for axes in figure.axes:
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=8)
    figure.savefig(path, dpi=90, metadata={"Software": None})


def main() -> None:
    """Draw all."""
    docs = Path(__file__).parents[1] / "docs" / "images"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else docs
    folder.mkdir(parents=True, exist_ok=True)
    for name, graph in graphs().items():
        height = 0.9 * len(graph.spaces) + 0.6

        def draw(ax: Any, graph: Graph = graph) -> Any:
            return draw_factor_graph(factor_graph(graph), ax)

        save(folder, name, (7.0, height), draw)
    dependent = graphs()["dependent"]
    save(folder, "bayes_tree", (3.6, 3.2), lambda ax: draw_clique_tree(bayes_tree(dependent), ax))
    with tempfile.TemporaryDirectory() as kept:
        forward([2], ["dependent", "independent"], 5.0, Path(kept))
        inverse(10.0, Path(kept))
        forward_curves(folder, Path(kept))
        inverse_curves(folder, Path(kept))


if __name__ == "__main__":
    main()
