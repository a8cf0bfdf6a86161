"""Timing in rounds: every competitor once a round, so that a drift of the clock meets all alike.

Times are of the thread's own processor time: what others do meanwhile on the machine is not in them
(but for the caches and the memory that all share). Where its code lies in memory can slow a program
down for as long as its process lives: programs are compared by the least of several processes.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
PROCESSES = 6  # of which the least time counts
T = TypeVar("T")
SLICE = 2e-3  # seconds that one competitor runs in one round


@dataclass(frozen=True)
class Timing:
    """Nanoseconds a unit (a state, a call, an operation, a byte): over the rounds."""

    median: float
    minimum: float


@dataclass
class Race:
    """Competitors that take turns."""

    rounds: int
    runners: dict[str, tuple[Callable[[], object], int]] = field(default_factory=dict)

    def add(self, name: str, action: Callable[[], object], units: int = 1) -> None:
        """``action`` does ``units`` of what is counted."""
        self.runners[name] = (action, units)

    def run(self) -> dict[str, Timing]:
        """Time them, one after the other, round by round."""
        repeats = {name: _repeats(action) for name, (action, _) in self.runners.items()}
        times: dict[str, list[float]] = {name: [] for name in self.runners}
        for _ in range(self.rounds):
            for name, (action, units) in self.runners.items():
                turns = range(repeats[name])
                action()  # others were here since: their results are in the caches
                start = time.thread_time_ns()
                for _turn in turns:
                    action()
                elapsed = time.thread_time_ns() - start
                times[name].append(elapsed / (repeats[name] * units))
        return {name: Timing(statistics.median(x), min(x)) for name, x in times.items()}


def in_fresh_processes(count: int, work: Callable[..., T], *arguments: object) -> list[T]:
    """The results of ``work`` in each of ``count`` new processes; of 0, in this one."""
    if not count:
        return [work(*arguments)]
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        return [pool.submit(work, *arguments).result() for _ in range(count)]


def _repeats(action: Callable[[], object]) -> int:
    action()
    durations = []
    for _ in range(3):
        start = time.thread_time()
        action()
        durations.append(time.thread_time() - start)
    return max(1, round(SLICE / min(durations)))


def agree(what: str, found: Array, expected: Array, tolerance: float) -> float:
    """The largest difference relative to the largest number of each state; exits if too large."""
    size = np.maximum(1.0, np.abs(expected).max(axis=-1, keepdims=True))
    error = float((np.abs(found - expected) / size).max())
    if not error <= tolerance:
        sys.exit(f"{what}: results differ by {error:.1e}, more than {tolerance:.0e}")
    return error
