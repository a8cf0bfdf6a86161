"""Operators on stacked vectors: block-diagonal, between parents and children, and propagators.

A stacked vector has one block for each node of a tree, (..., size) with leading batch axes; a
:class:`Space` gives the places of the blocks. Operators map one space to another by their action,
whose cost is linear in the number of nodes. ``operator @ x`` applies an operator to a stacked
vector, ``operator @ operator`` composes, ``.T`` transposes, ``+`` and ``-`` add, ``dense()``
returns the matrix. Products keep structure: a block-diagonal operator times an adjacency is an
adjacency. Lyapunov equations are 𝔸 X 𝔹* and 𝔸* X 𝔹 with block-diagonal X, decomposed block by
block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.papers.matrices import times, transposed
from robomodel.papers.spatial_operators.tree import ROOT, Tree

Blocks = tuple[Array, ...]


@dataclass(frozen=True)
class Space:
    """Stacked vectors with a block of ``sizes[k]`` numbers for each node k of the tree.

    Without a tree, the blocks belong to other objects, for example points on the nodes.
    """

    tree: Tree | None
    sizes: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        """Number of entries of a stacked vector."""
        return sum(self.sizes)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The range of each node in a stacked vector."""
        ends = np.cumsum([0, *self.sizes]).tolist()
        return tuple(slice(a, b) for a, b in pairwise(ends))

    def split(self, x: ArrayLike) -> list[Array]:
        """The blocks of a stacked vector (..., size); raises ValueError for a wrong size."""
        array = np.asarray(x, dtype=np.float64)
        if array.ndim == 0 or array.shape[-1] != self.size:
            raise ValueError(
                f"a stacked vector here has {self.size} numbers on its last axis, "
                f"got shape {array.shape}"
            )
        return [array[..., part] for part in self.slices]

    def join(self, blocks: Sequence[Array]) -> Array:
        """A stacked vector from its blocks, batch axes broadcast."""
        if not blocks:
            return np.zeros(0)
        batch = np.broadcast_shapes(*(block.shape[:-1] for block in blocks))
        return np.concatenate(
            [np.broadcast_to(block, (*batch, block.shape[-1])) for block in blocks], axis=-1
        )

    def zeros(self) -> list[Array]:
        """The blocks of zero."""
        return [np.zeros(size) for size in self.sizes]

    def __str__(self) -> str:
        where = "no tree" if self.tree is None else f"{len(self.tree)} nodes"
        return (
            f"{self.size} numbers on {where} (blocks of {', '.join(map(str, self.sizes[:8]))}"
            + (", …)" if len(self.sizes) > 8 else ")")
        )


def compatible(left: Space, right: Space, what: str) -> None:
    """Raise ValueError unless both spaces are equal: equal trees and equal blocks."""
    if left == right:
        return
    if left.sizes == right.sizes and left.tree is not None and right.tree is not None:
        raise ValueError(f"{what} are not compatible: they belong to different trees")
    raise ValueError(f"{what} are not compatible: {left} against {right}")


_Factor = TypeVar("_Factor", "BlockDiagonal", "Adjacency", "Operator")
"""Types that a product with a block-diagonal operator on the left preserves."""


class Operator(ABC):
    """A linear map from stacked vectors of ``cols`` to those of ``rows``."""

    if TYPE_CHECKING:  # a field of some operators, derived in others

        @property
        def rows(self) -> Space:
            """Its target."""

        @property
        def cols(self) -> Space:
            """Its source."""

    @abstractmethod
    def _act(self, x: Array) -> Array:
        """The operator on x (..., cols.size)."""

    @abstractmethod
    def _act_transposed(self, y: Array) -> Array:
        """Its transpose on y (..., rows.size)."""

    @overload
    def __matmul__(self, other: BlockDiagonal) -> Operator: ...  # of a closer type for some

    @overload
    def __matmul__(self, other: Operator) -> Operator: ...

    @overload
    def __matmul__(self, other: ArrayLike) -> Array: ...

    def __matmul__(self, other: Operator | ArrayLike) -> Operator | Array:
        if isinstance(other, Operator):
            compatible(self.cols, other.rows, "the factors of a product")
            return self._times(other)
        x = np.asarray(other, dtype=np.float64)
        self.cols.split(x)  # checks the size
        return self._act(x)

    def _times(self, other: Operator) -> Operator:
        return Action(
            self.rows,
            other.cols,
            lambda x: self._act(other._act(x)),
            lambda y: other._act_transposed(self._act_transposed(y)),
        )

    @property
    def T(self) -> Operator:
        """The transpose."""
        return Action(self.cols, self.rows, self._act_transposed, self._act)

    def __add__(self, other: Operator) -> Operator:
        return self._combine(other, 1.0)

    def __sub__(self, other: Operator) -> Operator:
        return self._combine(other, -1.0)

    def _combine(self, other: Operator, factor: float) -> Operator:
        """The sum of the operator and ``factor`` times another."""
        compatible(self.rows, other.rows, "the terms of a sum")
        compatible(self.cols, other.cols, "the terms of a sum")
        return Action(
            self.rows,
            self.cols,
            lambda x: self._act(x) + factor * other._act(x),
            lambda y: self._act_transposed(y) + factor * other._act_transposed(y),
        )

    def dense(self) -> Array:
        """The matrix (..., rows.size, cols.size), column by column; for inspection."""
        shape = np.shape(self._act(np.zeros(self.cols.size)))
        units = np.eye(self.cols.size).reshape(
            self.cols.size, *([1] * (len(shape) - 1)), self.cols.size
        )
        columns = np.broadcast_to(self._act(units), (self.cols.size, *shape))
        return np.moveaxis(columns, 0, -1).copy()


@dataclass(frozen=True)
class Action(Operator):
    """An operator by its action and that of its transpose: transposes, products and sums."""

    rows: Space
    cols: Space
    act: Callable[[Array], Array]
    act_transposed: Callable[[Array], Array]

    def _act(self, x: Array) -> Array:
        return self.act(x)

    def _act_transposed(self, y: Array) -> Array:
        return self.act_transposed(y)


# ---- block-diagonal operators, adjacencies, propagators ------------------------------------------


def _fits(blocks: Blocks, rows: Sequence[int], cols: Sequence[int], tree: Tree, what: str) -> None:
    """Raise ValueError unless block k is (..., rows[k], cols[k])."""
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
        return self.rows.join([times(b, p) for b, p in zip(self.blocks, parts, strict=True)])

    def _act_transposed(self, y: Array) -> Array:
        return self.T._act(y)

    @overload
    def __matmul__(self, other: _Factor) -> _Factor: ...

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
        total = super()._combine(other, factor)  # checks the spaces
        if not isinstance(other, BlockDiagonal):
            return total
        blocks = tuple(a + factor * b for a, b in zip(self.blocks, other.blocks, strict=True))
        return BlockDiagonal(self.rows, self.cols, blocks)


def identity(space: Space) -> BlockDiagonal:
    """The identity of a space."""
    return BlockDiagonal(space, space, tuple(np.eye(size) for size in space.sizes))


@dataclass(frozen=True, eq=False)
class Adjacency(Operator):
    """A block-weighted adjacency: block (parent, child) is ``weights[child]``, all others are zero.

    Weights (..., rows of the parent, cols of the child) may be singular and of any shape; a root's
    has no rows. If rows and columns are equal, it is an SKO operator, which is nilpotent.
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
                result[parent] = result[parent] + times(self.weights[k], parts[k])
        return self.rows.join(result)

    def _act_transposed(self, y: Array) -> Array:
        parts, result = self.rows.split(y), self.cols.zeros()
        for k, parent in enumerate(self.tree.parents):
            if parent != ROOT:
                result[k] = times(transposed(self.weights[k]), parts[parent])
        return self.cols.join(result)

    @overload
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
class Propagator(Operator):
    """𝔸 = (1 - 𝓔)⁻¹ of an SKO operator 𝓔: an SPO operator, by recursion (Lemmas 1 and 2)."""

    adjacency: Adjacency

    def __post_init__(self) -> None:
        compatible(self.adjacency.rows, self.adjacency.cols, "rows and columns of an SKO operator")

    @property
    def rows(self) -> Space:
        """Its target and its source."""
        return self.adjacency.rows

    cols = rows

    @property
    def tree(self) -> Tree:
        """The tree of the operator."""
        return self.adjacency.tree

    @property
    def inverse(self) -> Operator:
        """𝔸⁻¹ = 1 - 𝓔."""
        return identity(self.rows) - self.adjacency

    @property
    def strict(self) -> Operator:
        """𝔸̃ = 𝔸 - 1: from each node to its ancestors, without itself (Corollary 3.1)."""
        return self @ self.adjacency

    def _act(self, x: Array) -> Array:
        """Gather, tips to base: y(k) = x(k) + Σ over children of weight · y(child)."""
        y, tree = self.rows.split(x), self.tree
        for k in reversed(tree.order):
            parent = tree.parents[k]
            if parent != ROOT:
                y[parent] = y[parent] + times(self.adjacency.weights[k], y[k])
        return self.rows.join(y)

    def _act_transposed(self, y: Array) -> Array:
        """Scatter, base to tips: x(k) = y(k) + weightᵀ · x(parent)."""
        x, tree = self.rows.split(y), self.tree
        for k in tree.order:
            parent = tree.parents[k]
            if parent != ROOT:
                x[k] = x[k] + times(transposed(self.adjacency.weights[k]), x[parent])
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
    """𝓑: block n (..., size of its node, size of the point) maps forces at a point to ``nodes[n]``.

    𝓑* gives velocities of points, such as tools or feet. Points on ``ROOT`` are at rest.
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
        """The points' space, one block each."""
        return Space(None, tuple(block.shape[-1] for block in self.blocks))

    def _act(self, x: Array) -> Array:
        result = self.rows.zeros()
        for node, block, part in zip(self.nodes, self.blocks, self.cols.split(x), strict=True):
            if node != ROOT:
                result[node] = result[node] + times(block, part)
        return self.rows.join(result)

    def _act_transposed(self, y: Array) -> Array:
        parts = self.rows.split(y)
        return self.cols.join(
            [
                np.zeros(block.shape[-1]) if node == ROOT else times(transposed(block), parts[node])
                for node, block in zip(self.nodes, self.blocks, strict=True)
            ]
        )


def blockwise(
    space: Space, rows: Space, make: Callable[[int], Array], name: str = "a block"
) -> BlockDiagonal:
    """A block-diagonal operator from ``space`` to ``rows`` with the blocks make(k)."""
    return BlockDiagonal(rows, space, tuple(make(k) for k in range(len(space.sizes))), name)


# ---- Lyapunov equations --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Lyapunov:
    """The equation's propagators, and its block-diagonal X."""

    A: Propagator
    X: BlockDiagonal
    B: Propagator

    def __post_init__(self) -> None:
        compatible(self.A.cols, self.X.rows, "𝔸 and X")
        compatible(self.B.cols, self.X.cols, "𝔹 and X")


@dataclass(frozen=True, eq=False)
class ForwardLyapunov(_Lyapunov):
    """Z = 𝔸 X 𝔹* = Y + 𝔸̃ Y + Y 𝔹̃*, with the block-diagonal Y of X = Y - 𝓔_A Y 𝓔_B* (Lemma 3)."""

    @cached_property
    def Y(self) -> BlockDiagonal:
        """The diagonal blocks, gathered from tips to base: composites, where X are inertias."""
        blocks, tree = list(self.X.blocks), self.A.tree
        for k in reversed(tree.order):
            parent = tree.parents[k]
            if parent != ROOT:
                a, b = self.A.adjacency.weights[k], self.B.adjacency.weights[k]
                blocks[parent] = blocks[parent] + a @ blocks[k] @ transposed(b)
        return BlockDiagonal(self.X.rows, self.X.cols, tuple(blocks))

    @property
    def parts(self) -> tuple[BlockDiagonal, Operator, Operator]:
        """(Y, 𝔸̃ Y, Y 𝔹̃*): disjoint terms whose sum is Z."""
        return self.Y, self.A.strict @ self.Y, self.Y @ self.B.strict.T

    @property
    def operator(self) -> Operator:
        """Z as an action."""
        diagonal, upper, lower = self.parts
        return diagonal + upper + lower

    def block(self, i: int, j: int) -> Array:
        """Z(i, j); zero unless one of the nodes is an ancestor of the other."""
        top = self.A.tree.common_ancestor(i, j)
        if top == i:
            return self.A.block(i, j) @ self.Y.blocks[j]
        if top == j:
            return self.Y.blocks[i] @ transposed(self.B.block(j, i))
        return np.zeros((self.A.rows.sizes[i], self.B.rows.sizes[j]))


@dataclass(frozen=True, eq=False)
class BackwardLyapunov(_Lyapunov):
    """Z = 𝔸* X 𝔹 = Y + Y 𝔹̃ + 𝔸̃* Y + R, X = Y - diagOf(𝓔_A* Y 𝓔_B) (Lemma 5).

    R are the blocks of unrelated nodes, of which none is an ancestor of the other.
    """

    @cached_property
    def Y(self) -> BlockDiagonal:
        """The diagonal blocks, scattered from base to tips."""
        blocks, tree = list(self.X.blocks), self.A.tree
        for k in tree.order:
            parent = tree.parents[k]
            if parent != ROOT:
                a, b = self.A.adjacency.weights[k], self.B.adjacency.weights[k]
                blocks[k] = blocks[k] + transposed(a) @ blocks[parent] @ b
        return BlockDiagonal(self.X.rows, self.X.cols, tuple(blocks))

    @property
    def operator(self) -> Operator:
        """Z as an action: a gather, X, and a scatter."""
        return self.A.T @ self.X @ self.B

    def block(self, i: int, j: int) -> Array:
        """Z(i, j) = 𝔸(c, i)* Y(c) 𝔹(c, j), with the closest common ancestor c; zero without one."""
        top = self.A.tree.common_ancestor(i, j)
        if top == ROOT:
            return np.zeros((self.A.rows.sizes[i], self.B.rows.sizes[j]))
        return transposed(self.A.block(top, i)) @ self.Y.blocks[top] @ self.B.block(top, j)

    @property
    def parts(self) -> tuple[BlockDiagonal, Operator, Operator, Operator]:
        """(Y, Y 𝔹̃, 𝔸̃* Y, R): disjoint terms whose sum is Z."""
        right, left = self.Y @ self.B.strict, self.A.strict.T @ self.Y
        return self.Y, right, left, self.operator - self.Y - right - left

    def between(self, left: PickOff, right: PickOff) -> Array:
        """𝓑_left* Z 𝓑_right (..., m, n), dense, without computing other parts of Z.

        Each point is propagated to the closest common ancestor; O(depth) for a pair.
        """
        compatible(left.rows, self.A.rows, "𝔸 and what is picked off")
        compatible(right.rows, self.B.rows, "𝔹 and what is picked off")
        lefts, rights = (
            [_carried(p, node, block) for node, block in zip(of.nodes, of.blocks, strict=True)]
            for p, of in ((self.A, left), (self.B, right))
        )
        blocks: dict[tuple[int, int], Array] = {}
        for m, i in enumerate(left.nodes):
            for n, j in enumerate(right.nodes):
                top = ROOT if ROOT in (i, j) else self.A.tree.common_ancestor(i, j)
                if top != ROOT:
                    a, b = lefts[m][top], rights[n][top]
                    blocks[m, n] = transposed(a) @ self.Y.blocks[top] @ b
        return dense_blocks(blocks, left.cols, right.cols)


def _carried(propagator: Propagator, node: int, block: Array) -> dict[int, Array]:
    """Forces on a node, propagated to each of its ancestors."""
    carried = {}
    for k in propagator.tree.upwards(node):
        carried[k] = block
        block = propagator.adjacency.weights[k] @ block
    return carried


def dense_blocks(blocks: Mapping[tuple[int, int], Array], rows: Space, cols: Space) -> Array:
    """The matrix (..., rows.size, cols.size) of blocks by (row, column); others are zero."""
    batch = np.broadcast_shapes(*(block.shape[:-2] for block in blocks.values()))
    result = np.zeros((*batch, rows.size, cols.size))
    for (i, j), block in blocks.items():
        result[..., rows.slices[i], cols.slices[j]] = block
    return result
