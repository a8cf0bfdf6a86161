"""Trees of nodes, on which spatial operators are defined, and their serial branches.

A tree may have several roots: nodes without a parent, which the inertial frame carries. Nodes have
arbitrary names and may be listed in any order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from robomodel.errors import MissingPackageError
from robomodel.reports.palette import BODIES, FAINT, GREY

ROOT = -1
Pattern: TypeAlias = Literal["adjacency", "propagator", "mass matrix"]


@dataclass(frozen=True)
class Tree:
    """Nodes by index: ``parents[k]`` is the parent of node k, or ``ROOT``.

    Raises ValueError for cycles, naming their nodes. To construct a tree from edges, use
    :meth:`from_edges`, which also names nodes with several parents.
    """

    names: tuple[Hashable, ...]
    parents: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.parents):
            raise ValueError(f"{len(self.names)} nodes have {len(self.parents)} parents")
        if len(set(self.names)) != len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise ValueError(f"node '{twice}' is there twice; names must differ")
        for k, parent in enumerate(self.parents):
            if not ROOT <= parent < len(self.names):
                raise ValueError(f"the parent of node '{self.names[k]}' is no node: {parent}")
        _ = self.order  # refuses cycles

    @classmethod
    def from_edges(
        cls, edges: Iterable[tuple[Hashable, Hashable]], nodes: Iterable[Hashable] = ()
    ) -> Tree:
        """The tree of edges (parent, child); ``nodes`` gives the order, and nodes without edges.

        Nodes without a parent are roots. Raises ValueError for cycles, and for nodes with several
        parents, whose joints' velocities would not be independent (004, section 8.2).
        """
        pairs = list(dict.fromkeys((parent, child) for parent, child in edges))
        names = tuple(dict.fromkeys([*nodes, *(name for pair in pairs for name in pair)]))
        number = {name: k for k, name in enumerate(names)}
        above: dict[int, list[int]] = {k: [] for k in range(len(names))}
        for parent, child in pairs:
            above[number[child]].append(number[parent])
        for k, parents in above.items():
            if len(parents) > 1:
                several = ", ".join(f"'{names[p]}'" for p in parents)
                raise ValueError(
                    f"node '{names[k]}' has several parents ({several}), and operators need a "
                    "tree: join the nodes of that loop to one node, as clusters are"
                )
        return cls(names, tuple(above[k][0] if above[k] else ROOT for k in range(len(names))))

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: Hashable) -> int:
        """The index of a node; raises KeyError for unknown names."""
        try:
            return self._number[name]
        except KeyError:
            raise KeyError(f"no node '{name}' in this tree") from None

    @cached_property
    def _number(self) -> dict[Hashable, int]:
        return {name: k for k, name in enumerate(self.names)}

    @cached_property
    def order(self) -> tuple[int, ...]:
        """All nodes, parents before children; in the listed order if that is one."""
        placed, order = [False] * len(self), []
        for start in range(len(self)):
            path: dict[int, None] = {}  # an ordered set
            k = start
            while k != ROOT and not placed[k]:
                if k in path:
                    around = list(path)[list(path).index(k) :]
                    cycle = [k, *reversed(around)]
                    raise ValueError(
                        "operators need a tree, and there is a cycle: "
                        + " → ".join(f"'{self.names[i]}'" for i in cycle)
                    )
                path[k] = None
                k = self.parents[k]
            for k in reversed(path):
                placed[k] = True
                order.append(k)
        return tuple(order)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each node."""
        children: list[list[int]] = [[] for _ in self.names]
        for k, parent in enumerate(self.parents):
            if parent != ROOT:
                children[parent].append(k)
        return tuple(map(tuple, children))

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Number of nodes above each node."""
        depth = [0] * len(self)
        for k in self.order:
            if self.parents[k] != ROOT:
                depth[k] = depth[self.parents[k]] + 1
        return tuple(depth)

    def upwards(self, node: int) -> Iterator[int]:
        """The node, its parent, and so on up to its root."""
        while node != ROOT:
            yield node
            node = self.parents[node]

    def common_ancestor(self, i: int, j: int) -> int:
        """The closest common ancestor (possibly i or j itself), or ``ROOT`` if there is none."""
        while i != j:
            if j == ROOT or (i != ROOT and self.depths[i] >= self.depths[j]):
                i = self.parents[i]
            else:
                j = self.parents[j]
        return i

    # ---- serial branches, and the sparsity that follows from them (004, section 7)

    @cached_property
    def branches(self) -> tuple[tuple[int, ...], ...]:
        """Serial chains without forks of maximal length, base first; parent chains first."""
        chains: list[tuple[int, ...]] = []
        for k in self.order:
            parent = self.parents[k]
            if parent != ROOT and len(self.children[parent]) == 1:
                continue
            chain = [k]
            while len(self.children[chain[-1]]) == 1:
                chain.append(self.children[chain[-1]][0])
            chains.append(tuple(chain))
        return tuple(chains)

    @cached_property
    def branch_tree(self) -> Tree:
        """The tree of the branches, named by numbers from 1 (a root)."""
        home = {k: n for n, chain in enumerate(self.branches) for k in chain}
        above = [self.parents[chain[0]] for chain in self.branches]
        return Tree(
            tuple(range(1, len(above) + 1)),
            tuple(ROOT if parent == ROOT else home[parent] for parent in above),
        )

    @cached_property
    def canonical(self) -> tuple[int, ...]:
        """All nodes branch by branch, tips first: children before parents, as numbered in 004."""
        return tuple(k for chain in reversed(self.branches) for k in reversed(chain))

    def pattern(self, of: Pattern) -> NDArray[np.bool_]:
        """A mask (nodes, nodes) of blocks that may be nonzero, in the order of names.

        "adjacency" 𝓔: a node's parent; "propagator" 𝔸: its ancestors and itself; "mass matrix": its
        ancestors, descendants and itself.
        """
        result = np.zeros((len(self), len(self)), dtype=bool)
        for k in range(len(self)):
            above = list(self.upwards(k))
            result[above[1:2] if of == "adjacency" else above, k] = True
        if of == "mass matrix":
            return result | result.T
        if of not in ("adjacency", "propagator"):
            raise ValueError(
                f"pattern '{of}' is not known; 'adjacency', 'propagator' and 'mass matrix' are"
            )
        return result


# ---- pictures ------------------------------------------------------------------------------------


def draw_sparsity(tree: Tree, of: Pattern = "mass matrix", *, axes: Any = None) -> Any:
    """Draw the nonzero blocks of an operator, by serial branches (004, figures 4 to 6).

    Nodes are ordered branch by branch, tips first, as in 004, so that 𝓔 and 𝔸 are lower triangular.
    Blue: blocks within a branch; grey: between related branches. ``axes``: matplotlib axes, by
    default new ones. Returns the axes.
    """
    order = list(tree.canonical)
    pattern = tree.pattern(of)[np.ix_(order, order)]
    home = {k: n for n, chain in enumerate(tree.branches) for k in chain}
    branch = np.array([home[k] for k in order])
    shade = np.where(pattern, np.where(branch[:, None] == branch[None, :], 2, 1), 0)
    axes = _axes(axes)
    from matplotlib.colors import ListedColormap

    colours = ListedColormap(["white", FAINT, BODIES[0]])
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
                color=GREY,
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
    """Nodes in depth-first order: each before its descendants, subtrees contiguous."""
    waiting = [k for k in range(len(tree)) if tree.parents[k] == ROOT]
    order = []
    while waiting:
        order.append(waiting.pop())
        waiting.extend(tree.children[order[-1]])
    return order


def _axes(axes: Any) -> Any:
    if axes is not None:
        return axes
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingPackageError("pictures need", "matplotlib", "graphs") from None
    return pyplot.subplots(layout="constrained")[1]
