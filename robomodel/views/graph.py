"""A robot's graphs side by side: connectivity, spanning tree, clusters (002, figure 4)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from robomodel.model import Model
from robomodel.reports import pictures
from robomodel.reports.document import count
from robomodel.views.layout import WORLD, Box, Tree, lay_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2", "#edc948",
           "#ff9da7", "#9c755f")  # fmt: skip
PLAIN, INK = "#f4f4f4", "#333333"
MARGIN, TITLE, BULGE, POINTS = 0.25, 0.35, 0.55, 7.5


@dataclass(frozen=True)
class Tie:
    """A loop or coupling between two bodies, and how it is called."""

    name: str
    ends: tuple[int, int]
    loop: bool


def draw_graph(model: Model, path: str | os.PathLike[str]) -> None:
    """Draw the connectivity graph, the spanning tree and the cluster tree to a picture.

    Arrows are tree joints, dashed lines loops, dotted lines couplings; the bodies of a cluster of
    several have a colour of their own.

    Args:
        model: The robot.
        path: The picture; its format is the suffix: .svg, .png or .pdf.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    parents = [node.parent for node in model.nodes]
    names = [body.name for body in model.bodies]
    joints = [
        joint.name if joint.type in ("revolute", "continuous") else f"{joint.name} ({joint.type})"
        for joint in model.joints
    ]
    panels = (
        ("Connectivity graph", lay_out("world", [(name,) for name in names], parents)),
        ("Spanning tree", lay_out("world", list(zip(names, joints, strict=True)), parents)),
        ("Cluster tree", _clusters(model)),
    )
    colours = colours_of(model)
    of_bodies = [colours[node.cluster] for node in model.nodes]
    width = sum(tree.width for _, tree in panels) + MARGIN * 4 + BULGE * 3
    height = max(tree.height for _, tree in panels) + TITLE + 2 * MARGIN
    drawn = pictures.figure(width, height)
    axes = drawn.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    x = MARGIN
    for title, tree in panels:
        panel = _Panel(axes, x, MARGIN + TITLE)
        axes.text(x, MARGIN, title, fontsize=10, fontweight="bold", color=INK, va="center")
        if title == "Cluster tree":
            panel.tree(tree, [c.parent for c in model.clusters], colours)
        else:
            if title == "Connectivity graph":
                for tie in ties(model):
                    at = next(i for i in (*tie.ends[::-1], 0) if i != WORLD)
                    panel.tie(tree, tie, of_bodies[at])
            panel.tree(tree, parents, of_bodies)
        x += tree.width + BULGE + MARGIN
    pictures.save(drawn, path)


def colours_of(model: Model) -> list[str]:
    """A colour for each cluster; those of one body have the plain one."""
    several = [c.index for c in model.clusters if len(c.bodies) > 1]
    colours = {index: COLOURS[k % len(COLOURS)] for k, index in enumerate(several)}
    return [colours.get(c.index, PLAIN) for c in model.clusters]


def ties(model: Model) -> Iterator[Tie]:
    """What holds bodies together besides the tree's joints."""
    for loop in model.loops:
        ends = model.frame(loop.predecessor).body, model.frame(loop.successor).body
        yield Tie(loop.name, ends, True)
    child = {joint.name: i for i, joint in enumerate(model.joints)}
    for coupling in model.couplings:
        first, *others = (child[joint] for joint, _ in coupling.terms)
        for other in others:
            yield Tie(coupling.name, (first, other), False)


def _clusters(model: Model) -> Tree:
    texts = []
    for cluster in model.clusters:
        bodies = [model.bodies[body].name for body in cluster.bodies]
        kind = "" if cluster.kind == "joint" else f" ({cluster.kind})"
        texts.append([*bodies, f"{count(cluster.nv, 'freedom')}{kind}"])
    return lay_out("world", texts, [cluster.parent for cluster in model.clusters])


@dataclass(frozen=True)
class _Panel:
    """A part of the drawing, moved to (x, y)."""

    axes: Axes
    x: float
    y: float

    def tree(self, tree: Tree, parents: list[int], colours: list[str]) -> None:
        """Boxes, and arrows from parents to children."""
        self._box(tree.root, INK)
        for box, parent, colour in zip(tree.boxes, parents, colours, strict=True):
            self._box(box, colour)
            above = tree.box(parent)
            start, end = (above.right, above.middle), (box.left, box.middle)
            half = (start[0] + end[0]) / 2
            self._line([start, (half, start[1]), (half, end[1]), end], INK, arrow=True)

    def tie(self, tree: Tree, tie: Tie, colour: str) -> None:
        """A line that leaves both boxes to the right, with its name where it turns."""
        a, b = (tree.box(i) for i in tie.ends)
        colour = INK if colour == PLAIN else colour
        side = max(a.right, b.right) + BULGE
        points = [(a.right, a.middle), (side, a.middle), (side, b.middle), (b.right, b.middle)]
        self._line(points, colour, style="--" if tie.loop else ":")
        if tie.loop:
            x, y = side - BULGE / 4, (a.middle + b.middle) / 2
            self.axes.text(
                self.x + x, self.y + y, tie.name, fontsize=POINTS - 1.5, color=colour, va="center",
                ha="center", zorder=4,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
            )  # fmt: skip

    def _box(self, box: Box, colour: str) -> None:
        from matplotlib.patches import FancyBboxPatch

        dark = colour == INK
        left, top = self.x + box.left, self.y + box.middle - box.height / 2
        self.axes.add_patch(
            FancyBboxPatch(
                (left, top), box.width, box.height, boxstyle="round,pad=0,rounding_size=0.05",
                facecolor=colour, alpha=1.0 if dark or colour == PLAIN else 0.55, edgecolor=INK,
                linewidth=0.7, zorder=2,
            )
        )  # fmt: skip
        self.axes.text(
            left + box.width / 2, self.y + box.middle, "\n".join(box.lines), fontsize=POINTS,
            family="monospace", ha="center", va="center", color="white" if dark else "black",
            linespacing=1.25, zorder=3, parse_math=False,
        )  # fmt: skip

    def _line(
        self, points: list[tuple[float, float]], colour: str, arrow: bool = False, style: str = "-"
    ) -> None:
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path

        moved = [(self.x + x, self.y + y) for x, y in points]
        codes = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
        self.axes.add_patch(
            FancyArrowPatch(
                path=Path(moved, codes), arrowstyle="-|>" if arrow else "-", mutation_scale=6,
                color=colour, linewidth=0.8 if arrow else 1.3, linestyle=style, zorder=1,
                shrinkA=0, shrinkB=0,
            )
        )  # fmt: skip
