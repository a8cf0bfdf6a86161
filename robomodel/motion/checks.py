"""Faults of results of steps: open loops, change points, contacts, steps too long."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robomodel.arrays import Array
from robomodel.kernels.program import Dtype
from robomodel.motion.contact_programs import SOLVED
from robomodel.motion.halves import StepShare
from robomodel.motion.layout import StateLayout
from robomodel.motion.limits import SINGLE_GAP
from robomodel.motion.schemes import TORN
from robomodel.tolerances import CLOSED

LOST = {"float64": CLOSED, "float32": SINGLE_GAP}  # gap of loops above which a step is lost
IRREGULAR = {
    "float64": 1e-10,  # six digits are left
    "float32": 5e-7,
}  # least regularity of K (a square) at which steps end

# a step of time stepping is halved where loops stay open and above these: distance of contacts at
# the end from that of their rows [m], and growth of ‖G‖² (tangents turn by 0.1). Of 400 landings of
# a leg with a four-bar at up to 8 m/s, with steps of 1 ms, energy rises by 3.6e-4 of itself then,
# without halves by 1.9e-2
MISS = 2e-4
TURNED = 1.0 / math.cos(0.1) ** 2


@dataclass(frozen=True)
class StepChecks:
    """Checks of results (..., results) of one kind of steps, in numbers of this precision."""

    layout: StateLayout
    dtype: Dtype

    @property
    def touching(self) -> bool:
        """True if steps are of time stepping."""
        return self.layout.contacts is not None

    def too_long(self, results: Array) -> Any:
        """True if steps of time stepping turn linkages or contacts by too much.

        Or leave loops open, or are not finite.
        """
        layout = self.layout
        if not self.touching:
            return np.zeros(results.shape[:-1], dtype=bool)
        short = results[..., layout.miss] <= MISS
        if layout.checks:
            gap, growth = results[..., layout.gap], results[..., layout.growth]
            short = short & (growth <= TURNED) & (gap <= LOST[self.dtype] ** 2)
        return ~short

    def lost(self, results: Array) -> Any:
        """Which results have open loops, or end at change points; nan ones too."""
        layout = self.layout
        if not layout.checks:
            return np.zeros(results.shape[:-1], dtype=bool)
        gap, growth = results[..., layout.gap], results[..., layout.growth]
        closed = (gap <= LOST[self.dtype] ** 2) & (growth < TORN)
        return ~(closed & ~self.at_change_point(results))

    def at_change_point(self, results: Array, dtype: Dtype | None = None) -> Any:
        """Which results end too near to a change point (for states of ``dtype``); nan ones too."""
        layout = self.layout
        if not layout.checks:
            return np.zeros(results.shape[:-1], dtype=bool)
        return ~(results[..., layout.regularity] > IRREGULAR[dtype or self.dtype])

    def unfinished(self, results: Array) -> Any:
        """True if compiled steps have to be taken again.

        They have to if they are too long or, in double precision, contact problems are not solved.
        """
        left = self.too_long(results)
        if self.touching and self.dtype == "float64":
            left |= ~(results[..., self.layout.residual] <= SOLVED)
        return left

    def parts(self, results: Array, shares: Sequence[float]) -> list[StepShare]:
        """Results (n, results) of shares of steps as parts of them."""
        lost = self.lost(results) | ~np.all(np.isfinite(results), axis=-1)
        faults = ["is lost" if each else "" for each in lost.tolist()]
        return [
            StepShare(row[: self.layout.size], share, too_long, fault, row)
            for row, share, too_long, fault in zip(
                results, shares, self.too_long(results).tolist(), faults, strict=True
            )
        ]

    def joined(self, parts: Sequence[StepShare]) -> Array:
        """The result of a step in parts."""
        layout = self.layout
        whole: Array = parts[-1].record.copy()
        if len(parts) == 1:
            return whole
        rows = np.array([part.record for part in parts])
        checks = slice(layout.size, layout.residual + 1)
        whole[checks] = np.max(rows[:, checks], axis=0)
        whole[layout.impulses] = np.sum(rows[:, layout.impulses], axis=0)
        if layout.checks:
            whole[layout.regularity] = np.min(rows[:, layout.regularity])
        return whole
