"""Pictures of a tree's serial branches, and of the sparsity that they give operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from robomodel.errors import MissingPackageError
from robomodel.papers.spatial_operators.tree import ROOT, Pattern, Tree

SHADES = ("#3b6ea5", "#c9d8ea")  # blocks of a branch, and between branches


def draw_sparsity(tree: Tree, of: Pattern = "mass matrix", *, axes: Any = None) -> Any:
    """Draw which blocks of an operator are nonzero, by serial branches (004, figures 4 to 6).

    Nodes stand branch by branch, tips first, as in 004, so that 𝓔 and 𝔸 are lower triangular. Dark:
    blocks within a branch; light: connections of related branches. ``axes``: matplotlib axes, new
    ones where not given. Returns the axes.
    """
    order = list(tree.canonical)
    pattern = tree.pattern(of)[np.ix_(order, order)]
    home = {k: n for n, chain in enumerate(tree.branches) for k in chain}
    branch = np.array([home[k] for k in order])
    shade = np.where(pattern, np.where(branch[:, None] == branch[None, :], 2, 1), 0)
    axes = _axes(axes)
    from matplotlib.colors import ListedColormap

    colours = ListedColormap(["white", SHADES[1], SHADES[0]])
    axes.imshow(shade, cmap=colours, vmin=0, vmax=2, interpolation="none")
    sizes = [len(chain) for chain in reversed(tree.branches)]
    ends = np.cumsum([0, *sizes])
    for end in ends[1:-1]:
        axes.axhline(end - 0.5, color="black", linewidth=0.6)
        axes.axvline(end - 0.5, color="black", linewidth=0.6)
    middles = (ends[:-1] + ends[1:] - 1) / 2
    labels = [str(n + 1) for n in reversed(range(len(sizes)))]
    axes.set_xticks(middles, labels)
    axes.set_yticks(middles, labels)
    axes.tick_params(length=0)
    axes.set_xlabel("branch")
    axes.set_ylabel("branch")
    axes.set_title(f"{of}: {int(pattern.sum())} of {pattern.size} blocks")
    return axes


def draw_tree(tree: Tree, *, axes: Any = None) -> Any:
    """Draw the tree, base at the bottom, its serial branches numbered (004, figure 3)."""
    axes = _axes(axes)
    across: dict[int, float] = {}
    tips = 0
    for k in reversed(_depth_first(tree)):
        if tree.children[k]:
            across[k] = float(np.mean([across[j] for j in tree.children[k]]))
        else:
            across[k], tips = float(tips), tips + 1
    for k, parent in enumerate(tree.parents):
        if parent != ROOT:
            axes.plot(
                [across[parent], across[k]],
                [tree.depths[parent], tree.depths[k]],
                color="0.5",
                zorder=1,
            )
    for n, chain in enumerate(tree.branches):
        axes.scatter([across[k] for k in chain], [tree.depths[k] for k in chain], s=60, zorder=2)
        axes.annotate(
            str(n + 1),
            (across[chain[0]], tree.depths[chain[0]]),
            xytext=(7, -3),
            textcoords="offset points",
        )
    axes.set_axis_off()
    axes.set_title(f"{len(tree)} nodes in {len(tree.branches)} serial branches")
    return axes


def _depth_first(tree: Tree) -> list[int]:
    """Nodes such that each comes before its descendants, and subtrees stay together."""
    waiting = [k for k in range(len(tree)) if tree.parents[k] == ROOT]
    found = []
    while waiting:
        found.append(waiting.pop())
        waiting.extend(tree.children[found[-1]])
    return found


def _axes(axes: Any) -> Any:
    """The axes given, or new ones."""
    if axes is not None:
        return axes
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingPackageError("pictures need", "matplotlib", "graphs") from None
    return pyplot.subplots(layout="constrained")[1]
