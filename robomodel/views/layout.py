"""Where the boxes of a tree go: columns by depth, rows by branch, nothing upon anything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WORLD = -1
LETTER, LINE = 0.072, 0.16  # inches: the width of a letter, the height of a line
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
class Tree:
    """The root's box, the others in the order given, and the room that all of them take."""

    root: Box
    boxes: tuple[Box, ...]
    width: float
    height: float

    def box(self, index: int) -> Box:
        """A box by its index; -1 is the root's."""
        return self.root if index < 0 else self.boxes[index]


def lay_out(root: str, texts: Sequence[Sequence[str]], parents: Sequence[int]) -> Tree:
    """Boxes for a tree whose nodes come after their parents; -1 is the root."""
    every = [(root,), *(tuple(text) for text in texts)]
    above = [-1, *(parent + 1 for parent in parents)]
    count = len(every)
    depth = [0] * count
    for i in range(1, count):
        depth[i] = depth[above[i]] + 1
    own = [LINE * len(lines) + PADDING for lines in every]
    below = [0.0] * count  # what the children of each take
    for i in range(count - 1, 0, -1):
        below[above[i]] += max(own[i] + GAP, below[i])
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
        room = max(own[i] + GAP, below[i])
        if i:
            top[i] = top[above[i]] + used[above[i]]
            used[above[i]] += room
        used[i] = (room - below[i]) / 2  # children sit in the middle of a taller parent
        boxes.append(Box(every[i], left[depth[i]], top[i] + room / 2, widths[i], own[i]))
    height = max(own[0] + GAP, below[0])
    return Tree(boxes[0], tuple(boxes[1:]), left[-1] + column[-1], height)
