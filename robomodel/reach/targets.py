"""Points of a sheet that are uniform in the joints that tell where it is, each led to by a path.

Random walks cross a set in steps that are short in each of its joints, and the far parts of a large
one have too few of their points. On a sheet, where joints tell the configuration, positions of
these are drawn in a box instead, and led to from the nearest points that were reached before; those
that no way leads to are not of the sheet. So it is explored first, from its origin on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.mechanism.continuation import Continuation, Ends, Points, joined
from robomodel.mechanism.walks import Positions, lead

if TYPE_CHECKING:
    from numpy.random import Generator

# of a search from the points before; searches; ways to a target, from the nearest points
TARGETS, SEARCHES, TRIES = 96, 6, 2
SHORTEST_TRY = 0.2  # share of a stride: targets that a shorter one leads past are beyond the sheet
BEYOND = 0.02  # of the explored box, around it: what ways have not come to


@dataclass(frozen=True, eq=False)
class Explored:
    """A part of a sheet: ``points`` in it, and the box (k,) that ``joints`` reach.

    ``share``: the part of the box's targets that were reached.
    """

    along: Continuation
    joints: Positions
    points: Points
    low: Array
    high: Array
    share: float

    @classmethod
    def of(cls, along: Continuation, origin: Points, joints: Positions, low: Array,
           high: Array) -> Explored:  # fmt: skip
        """The part that ways to targets between these ends (k,) have come to, from an origin."""
        rng = np.random.default_rng(20261129)
        found, ends, box, share = origin, (low, high), (low, high), 0.0
        for _ in range(SEARCHES):
            goals = rng.uniform(*box, (TARGETS, len(low)))
            there, arrived = _led(along, found, joints, goals)
            found, share = joined([found, there]), float(np.mean(arrived))
            at = found.q[:, joints.places]
            least, most = np.min(at, axis=0), np.max(at, axis=0)
            margin = BEYOND * (most - least)
            box = np.maximum(ends[0], least - margin), np.minimum(ends[1], most + margin)
        return cls(along, joints, found, *box, share)

    def draw(self, rng: Generator, count: int) -> Points:
        """Points of it, uniform in the joints."""
        near, found, left = self.points, list[Points](), count
        while left > 0:
            goals = rng.uniform(
                self.low, self.high, (8 + math.ceil(left / self.share), len(self.low))
            )
            there, arrived = _led(self.along, near, self.joints, goals)
            found.append(there[np.flatnonzero(arrived)[:left]])
            left -= len(found[-1].q)
            near = joined([near, found[-1]])
        return joined(found)


def _led(
    along: Continuation, points: Points, joints: Positions, goals: Array
) -> tuple[Points, Mask]:
    """Where ways to ``goals`` (n, k) from the nearest points end, and which arrive."""
    at, size = points.q[:, joints.places], np.maximum(np.ptp(goals, axis=0), np.finfo(float).tiny)
    away = np.linalg.norm((at[None] - goals[:, None]) / size, axis=2)
    order = np.argsort(away, axis=1)[:, :TRIES]
    p = points[order[:, 0]]
    arrived = np.zeros(len(goals), dtype=bool)
    for start in order.T:
        left = np.flatnonzero(~arrived)
        if not len(left):
            break
        there, why, _ = lead(along, points[start[left]], joints, goals[left], SHORTEST_TRY)
        p = p.put(left, there)
        arrived[left] = why == Ends.FINE
    return p, arrived
