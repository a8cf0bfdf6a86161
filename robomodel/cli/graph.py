"""``robomodel graph``: pictures of a robot's graphs, or of a cluster over a joint's range."""

from __future__ import annotations

from pathlib import Path

from robomodel.cli.common import blaming
from robomodel.cli.robot import Robot
from robomodel.reports.document import Document

EXAMPLES = (
    "robomodel graph mini_cheetah",
    "robomodel graph four_bar --over joint1 -o crank.svg",
)


def command(
    robot: Robot,
    output: Path = Path("graph.svg"),
    over: str | None = None,
) -> Document:
    """Draw a robot's graphs: connectivity, spanning tree, cluster tree, side by side.

    Keys of the JSON document: robot, file, picture, warnings, and over, lower, upper, closed where
    a joint's range is plotted (closed is false where loops do not close over all of it).

    Options:
        -o, --output, --out OUT: The picture: .svg, .png or .pdf.
        --over JOINT: Plot positions, ratios (G) and inertias over this joint's range.
    """
    from robomodel.views import draw_cluster, draw_graph

    model = robot.load()
    data: dict[str, object] = {"robot": model.name, "picture": str(output)}
    with blaming(robot.file):
        if over is None:
            draw_graph(model, output)
        else:
            sweep = draw_cluster(model, over, output)
            lower, upper = sweep.positions[[0, -1]]
            data |= {"over": over, "lower": lower, "upper": upper, "closed": sweep.closed}
    return Document(f"wrote {output}", "", data=data)
