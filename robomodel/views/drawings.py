"""Pictures by Matplotlib: a robot's graphs, a cluster over a joint's range, forces of a fit.

Graphs are connectivity, spanning tree and clusters (002, figure 4), side by side if the page is
wide enough.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from robomodel.model import Model
from robomodel.reports.document import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
import math
from dataclasses import replace

import numpy as np

from robomodel.dynamics import crba
from robomodel.dynamics.actuators.reflection import reflected_inertia
from robomodel.identification import Identified
from robomodel.mechanism.graph import WORLD
from robomodel.model import build
from robomodel.reach.curves import SWEPT, Sweep, curve, sweep
from robomodel.reach.ranges import JointRange, joint_range
from robomodel.reports.identification import force_plots
from robomodel.reports.palette import BODIES, INK, PLAIN
from robomodel.reports.plots import Line, Plot, bounded, draw_plots, figure, save

MARGIN, TITLE, BULGE, POINTS = 0.25, 0.35, 0.6, 9.5


@dataclass(frozen=True)
class Tie:
    """A loop or coupling between two bodies, with its name."""

    name: str
    ends: tuple[int, int]
    loop: bool


def draw_graph(model: Model, path: str | os.PathLike[str]) -> None:
    """Draw the connectivity graph, the spanning tree and the cluster tree to a picture.

    Arrows are tree joints, dashed lines loops, dotted lines couplings; the bodies of a cluster of
    several have its colour.

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
    places, width, height = _placed([tree for _, tree in panels])
    drawn = figure(width, height)
    axes = drawn.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    for (title, tree), (x, y) in zip(panels, places, strict=True):
        panel = _Panel(axes, x, y + TITLE)
        axes.text(x, y, title, fontsize=11, fontweight="bold", color=INK, va="center")
        if title == "Cluster tree":
            panel.tree(tree, [c.parent for c in model.clusters], colours)
        else:
            if title == "Connectivity graph":
                for tie in ties(model):
                    at = next(i for i in (*tie.ends[::-1], 0) if i != WORLD)
                    panel.tie(tree, tie, of_bodies[at])
            panel.tree(tree, parents, of_bodies)
    save(drawn, path)


def _placed(trees: Sequence[TreeLayout]) -> tuple[list[tuple[float, float]], float, float]:
    """The position of each graph, in rows that fit a page, and the width and height of all."""
    places: list[tuple[float, float]] = []
    x = y = MARGIN
    tallest = widest = 0.0
    for tree in trees:
        # graphs wider than a page of 7.4 inches are placed below each other
        if x > MARGIN and x + tree.width + BULGE > 7.4:
            x, y, tallest = MARGIN, y + tallest + TITLE + MARGIN, 0.0
        places.append((x, y))
        x += tree.width + BULGE + MARGIN
        tallest, widest = max(tallest, tree.height), max(widest, x)
    return places, widest, y + tallest + TITLE + MARGIN


def colours_of(model: Model) -> list[str]:
    """A colour for each cluster; clusters of one body have the plain one."""
    several = [c.index for c in model.clusters if len(c.bodies) > 1]
    colours = {index: BODIES[k % len(BODIES)] for k, index in enumerate(several)}
    return [colours.get(c.index, PLAIN) for c in model.clusters]


def ties(model: Model) -> Iterator[Tie]:
    """Loops and couplings between bodies."""
    for loop in model.loops:
        ends = model.frame(loop.predecessor).body, model.frame(loop.successor).body
        yield Tie(loop.name, ends, True)
    child = {joint.name: i for i, joint in enumerate(model.joints)}
    for coupling in model.couplings:
        first, *others = (child[joint] for joint, _ in coupling.terms)
        for other in others:
            yield Tie(coupling.name, (first, other), False)


def _clusters(model: Model) -> TreeLayout:
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

    def tree(self, tree: TreeLayout, parents: list[int], colours: list[str]) -> None:
        """Boxes, and arrows from parents to children."""
        self._box(tree.root, INK)
        for box, parent, colour in zip(tree.boxes, parents, colours, strict=True):
            self._box(box, colour)
            above = tree.box(parent)
            start, end = (above.right, above.middle), (box.left, box.middle)
            half = (start[0] + end[0]) / 2
            self._line([start, (half, start[1]), (half, end[1]), end], INK, arrow=True)

    def tie(self, tree: TreeLayout, tie: Tie, colour: str) -> None:
        """A line that leaves both boxes to the right, with its name at its outermost point."""
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


# ---- layout ------------------------------------------------------------------------------------
# columns by depth, rows by branch, without overlaps

LETTER, LINE = 0.088, 0.19  # inches: the width of a letter, the height of a line
PADDING, GAP, COLUMN_GAP = 0.10, 0.10, 0.45


@dataclass(frozen=True)
class Box:
    """A box of text: its left edge, its middle, its sizes, in inches; y points down."""

    lines: tuple[str, ...]
    left: float
    middle: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.left + self.width


@dataclass(frozen=True)
class TreeLayout:
    """The root's box, the others in the order of nodes, and the width and height of all."""

    root: Box
    boxes: tuple[Box, ...]
    width: float
    height: float

    def box(self, index: int) -> Box:
        """A box by its index; -1 is the root's."""
        return self.root if index < 0 else self.boxes[index]


def lay_out(root: str, texts: Sequence[Sequence[str]], parents: Sequence[int]) -> TreeLayout:
    """Boxes for a tree whose nodes come after their parents; -1 is the root."""
    every = [(root,), *(tuple(text) for text in texts)]
    above = [-1, *(parent + 1 for parent in parents)]
    count = len(every)
    depth = [0] * count
    for i in range(1, count):
        depth[i] = depth[above[i]] + 1
    heights = [LINE * len(lines) + PADDING for lines in every]
    below = [0.0] * count  # height of each node's children
    for i in range(count - 1, 0, -1):
        below[above[i]] += max(heights[i] + GAP, below[i])
    widths = [PADDING + LETTER * max(len(line) for line in lines) for lines in every]
    column = [0.0] * (max(depth) + 1)
    for i in range(count):
        column[depth[i]] = max(column[depth[i]], widths[i])
    left = [0.0]
    for width in column[:-1]:
        left.append(left[-1] + width + COLUMN_GAP)
    top, used = [0.0] * count, [0.0] * count
    boxes = []
    for i in range(count):
        room = max(heights[i] + GAP, below[i])
        if i:
            top[i] = top[above[i]] + used[above[i]]
            used[above[i]] += room
        used[i] = (room - below[i]) / 2  # children sit in the middle of a taller parent
        boxes.append(Box(every[i], left[depth[i]], top[i] + room / 2, widths[i], heights[i]))
    height = max(heights[0] + GAP, below[0])
    return TreeLayout(boxes[0], tuple(boxes[1:]), left[-1] + column[-1], height)


# ---- clusters over a joint's range, and forces of a fit ------------------------------------------


def draw_cluster(
    model: Model, joint: str, path: str | os.PathLike[str], *, steps: int = SWEPT
) -> Sweep:
    """Draw positions, transmission ratios (G) and inertias over the range of a joint.

    Three plots: positions of the other joints of its cluster; their velocities at unit velocity of
    this joint; and its entry of the mass matrix beside the reflected inertia, as
    ``robomodel actuation`` computes it. Curves end where :func:`robomodel.joint_range` from neutral
    does; lines mark these ends, dead points and change points. A dependent joint becomes
    independent for it, instead of the joint of its cluster that moves it most at neutral; q of the
    result is then that of this other model. Errors are those of :func:`sweep`.

    Args:
        model: The robot.
        joint: The joint's name.
        path: The picture; its format is the suffix: .svg, .png or .pdf.
        steps: About how many steps the range is divided into.

    Returns:
        sweep: The curves that are drawn.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    model = _with_independent(model, joint)
    reach = joint_range(model, joint, model.neutral())
    swept = sweep(model, joint, steps=steps, within=(reach.lower, reach.upper))
    if "dead point" in (reach.lower_end.kind, reach.upper_end.kind):
        swept = replace(swept, closed=False)
    index = model.dof_names.index(joint)
    cluster = next(c for c in model.clusters if joint in c.joints)
    at = model.joint_positions(swept.q)
    with np.errstate(all="ignore"):
        ratios = model.constraint_jacobian(swept.q)[:, :, index]
        inertia = crba(model, swept.q)[:, index, index]
        unit = np.zeros((len(swept.q), model.nv))
        unit[:, index] = 1.0
        body = model.joint_names.index(joint)
        reflected = reflected_inertia(model, swept.q, body, unit)
    others = [
        (model.joints[body], model.nodes[body].v)
        for body in cluster.bodies
        if model.joints[body].name != joint and model.joints[body].nv == 1
    ]
    kinds = {other.units.position for other, _ in others} or {"rad"}
    units = model.joints[cluster.bodies[cluster.joints.index(joint)]].units
    x, along = swept.positions, f"{joint} [{units.position}]"
    positions = [Line(other.name, x, at[other.name]) for other, _ in others]
    velocities = [Line(other.name, x, bounded(ratios[:, v])) for other, v in others]
    inertias = [
        Line("mass matrix, its entry", x, bounded(inertia)),
        Line("reflected inertia", x, bounded(reflected), dashed=True),
    ]
    names: dict[float, list[str]] = {}
    for position, name in _marks(model, joint, reach):
        names.setdefault(round(position, 4), []).append(name)
    marks = [(position, ", ".join(each)) for position, each in names.items()]
    lines = [(position, "") for position in names]
    title = model.name if swept.closed else f"{model.name}: as far as its loops close"
    alone = "no other joint moves with it"
    draw_plots(
        [
            Plot(title, along, f"position [{', '.join(sorted(kinds, reverse=True))}]", positions,
                 marks=marks, empty=alone),
            Plot("", along, f"velocity for {joint} at 1", velocities, marks=lines, empty=alone),
            Plot("", along, f"inertia [{units.inertia}]", inertias, marks=lines),
        ],
        path,
    )  # fmt: skip
    return swept


def draw_residuals(fit: Identified, path: str | os.PathLike[str]) -> None:
    """Draw measured and predicted forces of each coordinate, and their difference, over time.

    Coordinates without measured forces are left out.

    Args:
        fit: The result of :func:`robomodel.identify`.
        path: The picture; its format is the suffix: .svg, .png or .pdf.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    plots = force_plots(fit, fit.model)
    draw_plots([plot for pair in plots for plot in pair], path, columns=2)


def _marks(model: Model, joint: str, reach: JointRange) -> Iterator[tuple[float, str]]:
    """Position and name of the ends of a range, and of singular positions within."""
    for end in (reach.lower_end, reach.upper_end):
        if math.isfinite(end.position) and end.kind:
            yield end.position, "linkage" if end.kind == "dead point" else f"limit of {end.by}"
    cluster = next(each for each in model.clusters if joint in each.joints)
    if cluster.implicit:
        singular = curve(model, cluster, joint).singularities
        yield from ((each.position, each.kind) for each in singular if each.reached)


def _with_independent(model: Model, name: str) -> Model:
    """The model with this joint among its independent ones."""
    joint = next((each for each in model.joints if each.name == name), None)
    if joint is None or joint.nv != 1 or name in model.dof_names:
        return model
    cluster = next(c for c in model.clusters if name in c.joints)
    body = cluster.bodies[cluster.joints.index(name)]
    row = model.constraint_jacobian(model.neutral())[model.nodes[body].v]
    if not np.any(row[cluster.v]):
        return model
    replaced = model.dof_names[cluster.v.start + int(np.argmax(np.abs(row[cluster.v])))]
    chosen = {name, *cluster.independent} - {replaced}
    joints = tuple(
        replace(each, independent=each.name in chosen) if each.name in cluster.joints else each
        for each in model.description.joints
    )
    return build(replace(model.description, joints=joints))
