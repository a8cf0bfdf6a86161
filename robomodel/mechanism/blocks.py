"""Systems of conditions that are solved block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.mechanism.constraints import Block
from robomodel.mechanism.continuation import solved


def blocks(pattern: Mask, dependent: list[int]) -> tuple[Block, ...]:
    """Diagonal blocks of the dependent columns' system in block triangular order.

    One block if the system is not square, or not sparse (Dulmage and Mendelsohn, 1958).
    """
    rows = len(pattern)
    if not dependent:
        return ()
    whole = (Block(tuple(range(rows)), tuple(dependent)),)
    if rows != len(dependent) or rows <= 2:
        return whole
    square = pattern[:, dependent]
    match = _matched(square)
    if match is None:
        return whole
    needs = square[:, match] | np.eye(rows, dtype=bool)  # row i determines column match[i]
    for _ in range(rows.bit_length()):
        needs = needs @ needs  # what is needed by what is needed
    groups = dict.fromkeys(tuple(np.flatnonzero(row).tolist()) for row in needs & needs.T)
    order = sorted(groups, key=lambda group: int(np.sum(needs[group[0]])))
    return tuple(Block(group, tuple(dependent[match[i]] for i in group)) for group in order)


def _matched(square: Mask) -> list[int] | None:
    """A column for each row, with an entry there; None if there are not as many (Kuhn, 1955)."""
    entries = [np.flatnonzero(row).tolist() for row in square]
    row_of, column_of = dict[int, int](), dict[int, int]()
    for first in range(len(square)):
        seen, stack, free = dict[int, int](), [first], None  # columns, and the rows before them
        while stack and free is None:
            row = stack.pop()
            for column in entries[row]:
                if column not in seen:
                    seen[column] = row
                    if column not in row_of:
                        free = column
                        break
                    stack.append(row_of[column])
        if free is None:
            return None
        while True:  # each row on the way takes the column after it
            row = seen[free]
            before = column_of.get(row)
            row_of[free], column_of[row] = row, free
            if row == first:
                break
            assert before is not None
            free = before
    return [column_of[row] for row in range(len(square))]


@dataclass(frozen=True, eq=False)
class BlockTriangular:
    """Columns of matrices (n, rows, columns), which are regular and in block triangular order.

    ``pattern``: where these may differ from zero. A row's entries in other columns do not count.
    """

    pattern: Mask
    blocks: Sequence[Block]

    @cached_property
    def _stages(self) -> list[tuple[Indices, Indices, Indices]]:
        """Blocks of one size that do not need each other, one after the other.

        Their rows and columns (blocks, size), and the columns before them that these rows have.
        """
        stages, done = list[tuple[Indices, Indices, Indices]](), np.zeros(self.pattern.shape[1])
        alike = list[Block]()
        for block, after in zip_longest(self.blocks, self.blocks[1:]):
            alike.append(block)
            mine = [column for each in alike for column in each.columns]
            if (
                after is None
                or len(after.rows) != len(block.rows)
                or self.pattern[np.ix_(after.rows, mine)].any()
            ):
                rows, columns = (np.array([getattr(each, x) for each in alike], dtype=np.intp)
                                 for x in ("rows", "columns"))  # fmt: skip
                before = np.flatnonzero(done * np.any(self.pattern[rows.ravel()], axis=0))
                done[mine], alike = 1.0, []
                stages.append((rows, columns, before))
        return stages

    def solved(self, k: Array, right: Array) -> Array:
        """The x (n, columns, m), 0 in other columns, with k x = ``right`` (n, rows, m)."""
        x = np.zeros((len(k), k.shape[2], right.shape[2]))
        for rows, columns, before in self._stages:
            left = right[:, rows]
            if len(before):
                left = left - k[:, rows[:, :, None], before] @ x[:, None, before]
            x[:, columns] = solved(k[:, rows[:, :, None], columns[:, None]], left)
        return x

    def signs(self, k: Array) -> Array:
        """The signs (n,) of determinants, all of them the other way round or none."""
        signs = np.ones(len(k))
        for rows, columns, _ in self._stages:
            found = np.linalg.slogdet(k[:, rows[:, :, None], columns[:, None]])[0]
            signs *= np.prod(found, axis=1)
        return signs
