"""Lyapunov equations: 𝔸 X 𝔹* and 𝔸* X 𝔹 of block-diagonal X, decomposed and block by block."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robomodel.model.joints import Array
from robomodel.papers.matrices import transposed
from robomodel.papers.spatial_operators.algebra import BlockDiagonal, PickOff, Propagator
from robomodel.papers.spatial_operators.operator import Operator, compatible
from robomodel.papers.spatial_operators.tree import ROOT


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
        """(Y, 𝔸̃ Y, Y 𝔹̃*): disjoint, and Z is their sum."""
        return self.Y, self.A.strict @ self.Y, self.Y @ self.B.strict.T

    @property
    def operator(self) -> Operator:
        """Z as an action."""
        diagonal, upper, lower = self.parts
        return diagonal + upper + lower

    def block(self, i: int, j: int) -> Array:
        """Z(i, j); zero unless one of the nodes carries the other."""
        top = self.A.tree.common_ancestor(i, j)
        if top == i:
            return self.A.block(i, j) @ self.Y.blocks[j]
        if top == j:
            return self.Y.blocks[i] @ transposed(self.B.block(j, i))
        return np.zeros((self.A.rows.sizes[i], self.B.rows.sizes[j]))


@dataclass(frozen=True, eq=False)
class BackwardLyapunov(_Lyapunov):
    """Z = 𝔸* X 𝔹 = Y + Y 𝔹̃ + 𝔸̃* Y + R, X = Y - diagOf(𝓔_A* Y 𝓔_B) (Lemma 5).

    R are the blocks of unrelated nodes, of which none carries the other.
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
        """Z(i, j) = 𝔸(c, i)* Y(c) 𝔹(c, j), c the closest node that carries both; else zero."""
        top = self.A.tree.common_ancestor(i, j)
        if top == ROOT:
            return np.zeros((self.A.rows.sizes[i], self.B.rows.sizes[j]))
        return transposed(self.A.block(top, i)) @ self.Y.blocks[top] @ self.B.block(top, j)

    @property
    def parts(self) -> tuple[BlockDiagonal, Operator, Operator, Operator]:
        """(Y, Y 𝔹̃, 𝔸̃* Y, R): disjoint, and Z is their sum."""
        right, left = self.Y @ self.B.strict, self.A.strict.T @ self.Y
        return self.Y, right, left, self.operator - self.Y - right - left

    def between(self, left: PickOff, right: PickOff) -> Array:
        """𝓑_left* Z 𝓑_right (..., m, n), dense, without any other part of Z.

        What is picked off is carried to the closest node that carries both; O(depth) a pair.
        """
        compatible(left.rows, self.A.rows, "𝔸 and what is picked off")
        compatible(right.rows, self.B.rows, "𝔹 and what is picked off")
        lefts, rights = (
            [_carried(p, node, block) for node, block in zip(of.nodes, of.blocks, strict=True)]
            for p, of in ((self.A, left), (self.B, right))
        )
        rows: list[list[Array]] = []
        for i, above in zip(left.nodes, lefts, strict=True):
            rows.append([])
            for j, other in zip(right.nodes, rights, strict=True):
                top = ROOT if ROOT in (i, j) else self.A.tree.common_ancestor(i, j)
                a, b = above[top], other[top]
                rows[-1].append(
                    np.zeros((a.shape[-1], b.shape[-1]))
                    if top == ROOT
                    else transposed(a) @ self.Y.blocks[top] @ b
                )
        return _dense(rows, left.cols.size, right.cols.size)


def _carried(propagator: Propagator, node: int, block: Array) -> dict[int, Array]:
    """What acts on a node as seen on all nodes that carry it."""
    found = {ROOT: np.zeros((0, block.shape[-1]))}
    for k in propagator.tree.upwards(node):
        found[k] = block
        block = propagator.adjacency.weights[k] @ block
    return found


def _dense(rows: list[list[Array]], m: int, n: int) -> Array:
    """One matrix from blocks with batch axes that broadcast."""
    batch = np.broadcast_shapes(*(block.shape[:-2] for row in rows for block in row))
    result = np.zeros((*batch, m, n))
    first = 0
    for row in rows:
        at = 0
        for block in row:
            result[..., first : first + block.shape[-2], at : at + block.shape[-1]] = block
            at += block.shape[-1]
        first += row[0].shape[-2] if row else 0
    return result
