"""Stacked vectors' spaces, and what every operator between two of them can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import ArrayLike

from robomodel.model.joints import Array
from robomodel.papers.spatial_operators.tree import Tree

Blocks = tuple[Array, ...]


@dataclass(frozen=True)
class Space:
    """Stacked vectors with a block of ``sizes[k]`` numbers for each node k of the tree.

    Without a tree the blocks belong to something else, to points on the nodes for instance.
    """

    tree: Tree | None
    sizes: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        """How many numbers a stacked vector has."""
        return sum(self.sizes)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Each node's part of a stacked vector."""
        ends = np.cumsum([0, *self.sizes]).tolist()
        return tuple(slice(a, b) for a, b in pairwise(ends))

    def split(self, x: ArrayLike) -> list[Array]:
        """The blocks of a stacked vector (..., size); ValueError for another size."""
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
    """ValueError unless both are the same: equal trees and equal blocks."""
    if left == right:
        return
    if left.sizes == right.sizes and left.tree is not None and right.tree is not None:
        raise ValueError(f"{what} are not compatible: they belong to different trees")
    raise ValueError(f"{what} are not compatible: {left} against {right}")


def multiply(matrix: Array, x: Array) -> Array:
    """Matrix (..., m, n) times x (..., n), batch axes broadcast."""
    product: Array = np.matmul(matrix, x[..., None])
    return product[..., 0]


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
    def __matmul__(self, other: Operator) -> Operator: ...

    @overload
    def __matmul__(self, other: ArrayLike) -> Array: ...

    def __matmul__(self, other: Operator | ArrayLike) -> Operator | Array:
        if isinstance(other, Operator):
            compatible(self.cols, other.rows, "the factors of a product")
            return self._times(other)
        return self._act(_checked(other, self.cols))

    def _times(self, other: Operator) -> Operator:
        return Product(self, other)

    @property
    def T(self) -> Operator:
        """The transpose."""
        return Transpose(self)

    def __add__(self, other: Operator) -> Operator:
        return Sum(self, other, 1.0)

    def __sub__(self, other: Operator) -> Operator:
        return Sum(self, other, -1.0)

    def dense(self) -> Array:
        """The matrix (..., rows.size, cols.size), column by column: for looking at."""
        shape = np.shape(self._act(np.zeros(self.cols.size)))
        units = np.eye(self.cols.size).reshape(
            self.cols.size, *([1] * (len(shape) - 1)), self.cols.size
        )
        columns = np.broadcast_to(self._act(units), (self.cols.size, *shape))
        return np.moveaxis(columns, 0, -1).copy()


def _checked(x: ArrayLike, space: Space) -> Array:
    array = np.asarray(x, dtype=np.float64)
    space.split(array)
    return array


class Derived(Operator):
    """An operator whose spaces follow from those of others."""

    @property
    @abstractmethod
    def spaces(self) -> tuple[Space, Space]:
        """Its target and its source."""

    @property
    def rows(self) -> Space:
        """Its target."""
        return self.spaces[0]

    @property
    def cols(self) -> Space:
        """Its source."""
        return self.spaces[1]


@dataclass(frozen=True)
class Transpose(Derived):
    """The transpose of an operator."""

    of: Operator

    @property
    def spaces(self) -> tuple[Space, Space]:
        """Its target and its source."""
        return self.of.cols, self.of.rows

    @property
    def T(self) -> Operator:
        """The operator itself."""
        return self.of

    def _act(self, x: Array) -> Array:
        return self.of._act_transposed(x)

    def _act_transposed(self, y: Array) -> Array:
        return self.of._act(y)


@dataclass(frozen=True)
class Product(Derived):
    """``left`` after ``right``."""

    left: Operator
    right: Operator

    @property
    def spaces(self) -> tuple[Space, Space]:
        """Its target and its source."""
        return self.left.rows, self.right.cols

    def _act(self, x: Array) -> Array:
        return self.left._act(self.right._act(x))

    def _act_transposed(self, y: Array) -> Array:
        return self.right._act_transposed(self.left._act_transposed(y))


@dataclass(frozen=True)
class Sum(Derived):
    """``first`` + ``factor`` · ``second``."""

    first: Operator
    second: Operator
    factor: float

    def __post_init__(self) -> None:
        compatible(self.first.rows, self.second.rows, "the terms of a sum")
        compatible(self.first.cols, self.second.cols, "the terms of a sum")

    @property
    def spaces(self) -> tuple[Space, Space]:
        """Its target and its source."""
        return self.first.rows, self.first.cols

    def _act(self, x: Array) -> Array:
        return self.first._act(x) + self.factor * self.second._act(x)

    def _act_transposed(self, y: Array) -> Array:
        return self.first._act_transposed(y) + self.factor * self.second._act_transposed(y)
