"""Trees of nodes: the digraphs that spatial operators live on, and their serial branches.

A tree here may have several roots, the nodes that hang on the inertial frame, which is no node
itself. Nodes have names of the user's, and may stand in any order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

ROOT = -1
Pattern: TypeAlias = Literal["adjacency", "propagator", "mass matrix"]


@dataclass(frozen=True)
class Tree:
    """Nodes by number: ``parents[k]`` is the node that carries node k, or ``ROOT``.

    Raises ValueError where that is no tree, naming the nodes of the cycle. A digraph given by its
    edges goes through :meth:`from_edges`, which names nodes with several parents, too.
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
        """The tree of these edges, (parent, child) each; ``nodes`` gives the order, and lone ones.

        Nodes without a parent are roots. Raises ValueError for cycles, and for nodes with several
        parents, whose joints' velocities would not be independent (004, section 8.2).
        """
        pairs = list(dict.fromkeys((parent, child) for parent, child in edges))
        names = tuple(dict.fromkeys([*nodes, *(name for pair in pairs for name in pair)]))
        number = {name: k for k, name in enumerate(names)}
        above: dict[int, list[int]] = {k: [] for k in range(len(names))}
        for parent, child in pairs:
            above[number[child]].append(number[parent])
        for k, found in above.items():
            if len(found) > 1:
                several = ", ".join(f"'{names[p]}'" for p in found)
                raise ValueError(
                    f"node '{names[k]}' has several parents ({several}), and operators need a "
                    "tree: join the nodes of that loop to one node, as clusters are"
                )
        return cls(names, tuple(above[k][0] if above[k] else ROOT for k in range(len(names))))

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: Hashable) -> int:
        """The number of a node; KeyError if there is none of that name."""
        try:
            return self._number[name]
        except KeyError:
            raise KeyError(f"no node '{name}' in this tree") from None

    @cached_property
    def _number(self) -> dict[Hashable, int]:
        return {name: k for k, name in enumerate(self.names)}

    @cached_property
    def order(self) -> tuple[int, ...]:
        """All nodes, parents before their children; given order where that holds already."""
        placed, order = [False] * len(self), []
        for start in range(len(self)):
            path: dict[int, None] = {}  # a set that keeps its order
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
        found: list[list[int]] = [[] for _ in self.names]
        for k, parent in enumerate(self.parents):
            if parent != ROOT:
                found[parent].append(k)
        return tuple(tuple(nodes) for nodes in found)

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
        """The closest node that carries both (itself included), or ``ROOT`` where there is none."""
        while i != j:
            if j == ROOT or (i != ROOT and self.depths[i] >= self.depths[j]):
                i = self.parents[i]
            else:
                j = self.parents[j]
        return i

    # ---- serial branches, and the sparsity that follows from them (004, section 7)

    @cached_property
    def branches(self) -> tuple[tuple[int, ...], ...]:
        """The tree as serial chains, base first, each as long as it has no fork; parents first."""
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
        """The tree whose nodes are the branches, named by number from 1 (its first is a root)."""
        home = {k: n for n, chain in enumerate(self.branches) for k in chain}
        above = [self.parents[chain[0]] for chain in self.branches]
        return Tree(
            tuple(range(1, len(above) + 1)),
            tuple(ROOT if parent == ROOT else home[parent] for parent in above),
        )

    @cached_property
    def canonical(self) -> tuple[int, ...]:
        """All nodes branch by branch, tips first: children before parents, as 004 numbers them."""
        return tuple(k for chain in reversed(self.branches) for k in reversed(chain))

    def pattern(self, of: Pattern) -> NDArray[np.bool_]:
        """Which blocks may be nonzero (nodes by nodes), rows and columns in the order of names.

        "adjacency" 𝓔: a node's parent; "propagator" 𝔸: its ancestors and itself; "mass matrix":
        all nodes that are related, one carrying the other.
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
