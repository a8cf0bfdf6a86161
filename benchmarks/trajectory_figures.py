"""Pictures of graphs over time for docs/trajectories.md: the factor graphs of Blanco-Claraco,
Leanza and Reina's figures 3 and 4, and Bayes trees.

python -m benchmarks.trajectory_figures [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.trajectories import four_bar, start
from robomodel.dynamics.elimination.draw import draw_clique_tree, draw_factor_graph
from robomodel.trajectory.graphs import planar
from robomodel.trajectory.graphs.draw import bayes_tree, factor_graph
from robomodel.trajectory.graphs.factors import Equal, Prior, Reading, Trapezoid
from robomodel.trajectory.graphs.graph import Graph
from robomodel.trajectory.graphs.spaces import Vectors

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


if __name__ == "__main__":
    main()
