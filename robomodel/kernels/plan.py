"""A program as all emitters write it: cut into pieces, its numbers given their places."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property

from robomodel.kernels.precision import PRECISIONS, Dtype, Precision
from robomodel.kernels.program import COS, SIN, Program, Reference

CHUNK = 6000  # steps in one function, if there is but one
PIECE = 200  # steps in a function, where there are several


@dataclass(frozen=True, slots=True)
class Iteration:
    """A program run over and over: its first outputs take the place of argument 0.

    ``timed`` are the arguments that have one row for each instant, before the axis of their
    numbers, as the result then has. An instant may have several stages: the program's last inputs
    are then a row of ``table``, one for each stage, and before them stand ``carried`` numbers that
    its last outputs give to the next stage or instant (zero at the start). Only what the last stage
    of an instant gives is kept.
    """

    timed: tuple[int, ...]
    table: tuple[tuple[float, ...], ...] = ()
    carried: int = 0

    @property
    def columns(self) -> int:
        """Constants of a stage."""
        return len(self.table[0]) if self.table else 0


@dataclass(frozen=True)
class Plan:
    """What is to be written: a program on arguments and a result of these sizes (the last one).

    With an ``iteration`` inputs and outputs that are carried stand behind those of the arguments
    and the result, and the constants of a stage behind the inputs. A program of up to ``longest``
    steps (None: :data:`CHUNK`) is one piece.
    """

    program: Program
    sizes: tuple[int, ...]
    dtype: Dtype = "float64"
    iteration: Iteration | None = None
    longest: int | None = None

    @property
    def precision(self) -> Precision:
        """Of all numbers."""
        return PRECISIONS[self.dtype]

    @cached_property
    def pieces(self) -> tuple[range, ...]:
        """The steps, cut into pieces, so that compile time grows linearly."""
        count = len(self.program.steps)
        longest = CHUNK if self.longest is None else self.longest
        size = max(count, 1) if count <= longest else PIECE
        cuts = range(0, max(count, 1), size)
        return tuple(range(i, min(i + size, count)) for i in cuts)

    @cached_property
    def slots(self) -> dict[int, int]:
        """Workspace slots of the values that later pieces use; free again after their last use.

        Results need none: they stand among the results.
        """
        program = self.program
        piece_of = [n for n, piece in enumerate(self.pieces) for _ in piece]
        last: dict[int, int] = {}
        for i, step in enumerate(program.steps):
            for x in step.operands:
                if (
                    type(x) is int
                    and x >= program.inputs
                    and x not in self.columns
                    and piece_of[x - program.inputs] < piece_of[i]
                ):
                    last[x] = piece_of[i]
        slots: dict[int, int] = {}
        free: list[int] = []
        ending: dict[int, list[int]] = {}
        count = 0
        for n, piece in enumerate(self.pieces):
            free += ending.pop(n - 1, [])
            for i in piece:
                x = program.inputs + i
                if x in last:
                    if not free:
                        free.append(count)
                        count += 1
                    slots[x] = free.pop()
                    ending.setdefault(last[x], []).append(slots[x])
        return slots

    @property
    def workspace(self) -> int:
        """How many slots there are."""
        return max(self.slots.values(), default=-1) + 1

    @property
    def crossing(self) -> int:
        """How many values are put into the workspace, and taken from it by a later piece."""
        slots, first = self.slots, self.program.inputs
        taken = {
            (n, x)
            for n, piece in enumerate(self.pieces)
            for i in piece
            for x in self.program.steps[i].operands
            if type(x) is int and x in slots and x < first + piece.start
        }
        return len(slots) + len(taken)

    @cached_property
    def columns(self) -> dict[int, int]:
        """Where each distinct result stands among the results; constants stand behind them."""
        return {x: i for i, x in enumerate(self.program.packing.values)}

    @cached_property
    def constants(self) -> tuple[float, ...]:
        """Constants among the results, each once: told apart by their bits."""
        found = {_bits(x): x for x in self.program.outputs if type(x) is float}
        return tuple(found.values())

    @cached_property
    def index(self) -> tuple[int, ...]:
        """The column of each output."""
        constant = {_bits(x): len(self.columns) + i for i, x in enumerate(self.constants)}
        return tuple(
            constant[_bits(x)] if type(x) is float else self.columns[int(x)]
            for x in self.program.outputs
        )

    @cached_property
    def used(self) -> frozenset[int]:
        """The inputs that something is made of, or that are results."""
        operands = {x for step in self.program.steps for x in step.operands if type(x) is int}
        operands.update(x for x in self.program.outputs if type(x) is int)
        return frozenset(x for x in operands if x < self.program.inputs)

    @cached_property
    def angles(self) -> frozenset[int]:
        """The inputs that are used as angles only."""
        angles: set[Reference] = set()
        others: set[Reference] = set(self.program.outputs)
        for step in self.program.steps:
            kind = angles if step.operation in (SIN, COS) else others
            kind.update(x for x in step.operands if type(x) is int)
        return frozenset(int(x) for x in angles - others if x < self.program.inputs)

    def arguments(self) -> list[range]:
        """The program's inputs of each argument."""
        firsts = [sum(self.sizes[:k]) for k in range(len(self.sizes) - 1)]
        return [range(i, i + n) for i, n in zip(firsts, self.sizes[:-1], strict=True)]


def _bits(x: float) -> bytes:
    """A constant as it is stored: zeros of both signs differ, and nan is itself."""
    return struct.pack("<d", x)
