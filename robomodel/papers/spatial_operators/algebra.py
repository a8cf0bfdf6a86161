"""Operators on stacked vectors: block-diagonal, between parents and children, and propagators.

A stacked vector holds one block for each node of a tree, (..., size) with leading batch axes; a
:class:`Space` says which block stands where. Operators map one space to another, as actions: their
cost is linear in the number of nodes. ``operator @ x`` acts on a stacked vector, ``operator @
operator`` composes, ``.T`` transposes, ``+`` and ``-`` combine, ``dense()`` shows the matrix.
Products that keep a structure have it: a block-diagonal operator times an adjacency is one again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from robomodel.model.joints import Array
from robomodel.papers.matrices import transposed
from robomodel.papers.spatial_operators.operator import (
    Blocks,
    Derived,
    Operator,
    Space,
    Sum,
    compatible,
    multiply,
)
from robomodel.papers.spatial_operators.tree import ROOT, Tree


def _fits(blocks: Blocks, rows: Sequence[int], cols: Sequence[int], tree: Tree, what: str) -> None:
    """ValueError unless block k is (..., rows[k], cols[k])."""
    if len(blocks) != len(tree):
        raise ValueError(f"{what} has {len(blocks)} blocks, and the tree {len(tree)} nodes")
    for k, block in enumerate(blocks):
        if block.shape[-2:] != (rows[k], cols[k]):
            raise ValueError(
                f"{what} of node '{tree.names[k]}' has the shape {block.shape[-2:]} where "
                f"({rows[k]}, {cols[k]}) is needed"
            )


@dataclass(frozen=True, eq=False)
class BlockDiagonal(Operator):
    """A block (..., rows, cols) for each node."""

    rows: Space
    cols: Space
    blocks: Blocks
    name: str = "a block"

    def __post_init__(self) -> None:
        if self.rows.tree is None or self.rows.tree != self.cols.tree:
            raise ValueError("rows and columns are not compatible: they need one tree")
        _fits(self.blocks, self.rows.sizes, self.cols.sizes, self.rows.tree, self.name)

    @property
    def T(self) -> BlockDiagonal:
        """The transpose, block by block."""
        return BlockDiagonal(self.cols, self.rows, tuple(transposed(b) for b in self.blocks))

    def _act(self, x: Array) -> Array:
        parts = self.cols.split(x)
        return self.rows.join([multiply(b, p) for b, p in zip(self.blocks, parts, strict=True)])

    def _act_transposed(self, y: Array) -> Array:
        return self.T._act(y)

    @overload  # type: ignore[override]
    def __matmul__(self, other: BlockDiagonal) -> BlockDiagonal: ...

    @overload
    def __matmul__(self, other: Adjacency) -> Adjacency: ...

    @overload
    def __matmul__(self, other: Operator) -> Operator: ...

    @overload
    def __matmul__(self, other: ArrayLike) -> Array: ...

    def __matmul__(self, other: Operator | ArrayLike) -> Operator | Array:
        return super().__matmul__(other)

    def _times(self, other: Operator) -> Operator:
        if isinstance(other, BlockDiagonal):
            blocks = tuple(a @ b for a, b in zip(self.blocks, other.blocks, strict=True))
            return BlockDiagonal(self.rows, other.cols, blocks)
        if isinstance(other, Adjacency):
            tree = other.tree
            return Adjacency(
                self.rows,
                other.cols,
                tuple(
                    np.zeros((0, weight.shape[-1]))
                    if parent == ROOT
                    else self.blocks[parent] @ weight
                    for parent, weight in zip(tree.parents, other.weights, strict=True)
                ),
            )
        return super()._times(other)

    @overload
    def __add__(self, other: BlockDiagonal) -> BlockDiagonal: ...

    @overload
    def __add__(self, other: Operator) -> Operator: ...

    def __add__(self, other: Operator) -> Operator:
        return self._combine(other, 1.0)

    @overload
    def __sub__(self, other: BlockDiagonal) -> BlockDiagonal: ...

    @overload
    def __sub__(self, other: Operator) -> Operator: ...

    def __sub__(self, other: Operator) -> Operator:
        return self._combine(other, -1.0)

    def _combine(self, other: Operator, factor: float) -> Operator:
        total = Sum(self, other, factor)
        if not isinstance(other, BlockDiagonal):
            return total
        blocks = tuple(a + factor * b for a, b in zip(self.blocks, other.blocks, strict=True))
        return BlockDiagonal(self.rows, self.cols, blocks)


def identity(space: Space) -> BlockDiagonal:
    """The identity of a space."""
    return BlockDiagonal(space, space, tuple(np.eye(size) for size in space.sizes))


@dataclass(frozen=True, eq=False)
class Adjacency(Operator):
    """A block-weighted adjacency: block (parent, child) is ``weights[child]``, all others zero.

    Weights (..., rows of the parent, cols of the child) may be singular and of any shape; a root's
    has no rows. With rows and columns alike it is an SKO operator, nilpotent.
    """

    rows: Space
    cols: Space
    weights: Blocks

    def __post_init__(self) -> None:
        if self.rows.tree is None or self.rows.tree != self.cols.tree:
            raise ValueError("rows and columns are not compatible: they need one tree")
        above = [0 if p == ROOT else self.rows.sizes[p] for p in self.tree.parents]
        _fits(self.weights, above, self.cols.sizes, self.tree, "the weight")

    @property
    def tree(self) -> Tree:
        """The tree of both spaces."""
        assert self.rows.tree is not None
        return self.rows.tree

    def _act(self, x: Array) -> Array:
        parts, result = self.cols.split(x), self.rows.zeros()
        for k, parent in enumerate(self.tree.parents):
            if parent != ROOT:
                result[parent] = result[parent] + multiply(self.weights[k], parts[k])
        return self.rows.join(result)

    def _act_transposed(self, y: Array) -> Array:
        parts, result = self.rows.split(y), self.cols.zeros()
        for k, parent in enumerate(self.tree.parents):
            if parent != ROOT:
                result[k] = multiply(transposed(self.weights[k]), parts[parent])
        return self.cols.join(result)

    @overload  # type: ignore[override]
    def __matmul__(self, other: BlockDiagonal) -> Adjacency: ...

    @overload
    def __matmul__(self, other: Operator) -> Operator: ...

    @overload
    def __matmul__(self, other: ArrayLike) -> Array: ...

    def __matmul__(self, other: Operator | ArrayLike) -> Operator | Array:
        return super().__matmul__(other)

    def _times(self, other: Operator) -> Operator:
        if isinstance(other, BlockDiagonal):
            weights = tuple(w @ b for w, b in zip(self.weights, other.blocks, strict=True))
            return Adjacency(self.rows, other.cols, weights)
        return super()._times(other)

    def around(self, x: BlockDiagonal, other: Adjacency) -> BlockDiagonal:
        """𝓔 X 𝓔'*, block-diagonal: Σ over children of weight · block · weight'ᵀ (equation 16)."""
        compatible(self.cols, x.rows, "weights and blocks")
        compatible(other.cols, x.cols, "weights and blocks")
        result = [np.zeros((a, b)) for a, b in zip(self.rows.sizes, other.rows.sizes, strict=True)]
        for k, parent in enumerate(self.tree.parents):
            if parent != ROOT:
                moved = self.weights[k] @ x.blocks[k] @ transposed(other.weights[k])
                result[parent] = result[parent] + moved
        return BlockDiagonal(self.rows, other.rows, tuple(result))


@dataclass(frozen=True, eq=False)
class Propagator(Derived):
    """𝔸 = (1 - 𝓔)⁻¹ of an SKO operator 𝓔: an SPO operator, by recursion (Lemmas 1 and 2)."""

    adjacency: Adjacency

    def __post_init__(self) -> None:
        compatible(self.adjacency.rows, self.adjacency.cols, "rows and columns of an SKO operator")

    @property
    def spaces(self) -> tuple[Space, Space]:
        """Its target and its source: the same."""
        return self.adjacency.rows, self.adjacency.cols

    @property
    def tree(self) -> Tree:
        """The tree it runs over."""
        return self.adjacency.tree

    @property
    def inverse(self) -> Operator:
        """𝔸⁻¹ = 1 - 𝓔."""
        return identity(self.rows) - self.adjacency

    @property
    def strict(self) -> Operator:
        """𝔸̃ = 𝔸 - 1: from each node to those that carry it, without itself (Corollary 3.1)."""
        return self @ self.adjacency

    def _act(self, x: Array) -> Array:
        """Gather, tips to base: y(k) = x(k) + Σ over children of weight · y(child)."""
        y, tree = self.rows.split(x), self.tree
        for k in reversed(tree.order):
            parent = tree.parents[k]
            if parent != ROOT:
                y[parent] = y[parent] + multiply(self.adjacency.weights[k], y[k])
        return self.rows.join(y)

    def _act_transposed(self, y: Array) -> Array:
        """Scatter, base to tips: x(k) = y(k) + weightᵀ · x(parent)."""
        x, tree = self.rows.split(y), self.tree
        for k in tree.order:
            parent = tree.parents[k]
            if parent != ROOT:
                x[k] = x[k] + multiply(transposed(self.adjacency.weights[k]), x[parent])
        return self.rows.join(x)

    def block(self, i: int, j: int) -> Array:
        """𝔸(i, j): the product of the weights on the path from node j up to node i, or zero."""
        result: Array = np.eye(self.rows.sizes[j])
        k = j
        while k not in (i, ROOT):
            result = self.adjacency.weights[k] @ result
            k = self.tree.parents[k]
        return result if k == i else np.zeros((self.rows.sizes[i], self.rows.sizes[j]))


@dataclass(frozen=True, eq=False)
class PickOff(Operator):
    """𝓑: block n (..., size of its node, own size) puts what acts at a point on ``nodes[n]``.

    𝓑* picks velocities off: of points, tools, feet. Points on ``ROOT`` are at rest.
    """

    rows: Space
    nodes: tuple[int, ...]
    blocks: Blocks

    def __post_init__(self) -> None:
        for node, block in zip(self.nodes, self.blocks, strict=True):
            size = 0 if node == ROOT else self.rows.sizes[node]
            if block.ndim < 2 or block.shape[-2] != size:
                raise ValueError(f"a pick-off from a node of size {size} has shape {block.shape}")

    @cached_property
    def cols(self) -> Space:
        """What is picked off, one block each."""
        return Space(None, tuple(block.shape[-1] for block in self.blocks))

    def _act(self, x: Array) -> Array:
        result = self.rows.zeros()
        for node, block, part in zip(self.nodes, self.blocks, self.cols.split(x), strict=True):
            if node != ROOT:
                result[node] = result[node] + multiply(block, part)
        return self.rows.join(result)

    def _act_transposed(self, y: Array) -> Array:
        parts = self.rows.split(y)
        return self.cols.join(
            [
                np.zeros(block.shape[-1])
                if node == ROOT
                else multiply(transposed(block), parts[node])
                for node, block in zip(self.nodes, self.blocks, strict=True)
            ]
        )


def blockwise(
    space: Space, rows: Space, make: Callable[[int], Array], name: str = "a block"
) -> BlockDiagonal:
    """A block-diagonal operator from ``space`` to ``rows`` with the blocks make(k)."""
    return BlockDiagonal(rows, space, tuple(make(k) for k in range(len(space.sizes))), name)
