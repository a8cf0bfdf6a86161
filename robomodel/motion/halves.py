"""Steps in parts: those that are too long are halved, and their halves, until they are not."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from robomodel.arrays import Array

FINEST = 2.0**-12  # share of a step that is not halved any more


@dataclass(frozen=True)
class StepShare:
    """A share of a step: the state after it, whether it is too long, what is wrong, its record."""

    state: Array
    share: float
    too_long: bool
    fault: str
    record: Any


Wanted: TypeAlias = tuple[Array, float, float]
"""The state at which a part of a step begins, when that is in steps, and its length as a share."""


def halving(
    state: Array, first: float = 0.0, share: float = 1.0
) -> Generator[Wanted, StepShare, list[StepShare]]:
    """A step; if it is too long, its halves one after the other; if these fail, the step.

    A generator: it yields the parts wanted, and is sent each part's :class:`StepShare`.
    """
    whole = yield state, first, share
    if not whole.too_long or share <= FINEST:
        return [whole]
    parts: list[StepShare] = []
    for start in (first, first + 0.5 * share):
        parts += yield from halving(state, start, 0.5 * share)
        if parts[-1].fault:
            return [whole]
        state = parts[-1].state
    return parts


class Halves:
    """One :func:`halving`: while a part is ``wanted``, it is computed and given; then ``parts``."""

    def __init__(self, state: Array, first: float = 0.0, share: float = 1.0) -> None:
        self.parts: list[StepShare] = []
        self._steps = halving(state, first, share)
        self.wanted: Wanted | None = next(self._steps)

    def give(self, part: StepShare) -> None:
        """Take the part that was wanted."""
        try:
            self.wanted = self._steps.send(part)
        except StopIteration as end:
            self.wanted, self.parts = None, end.value
