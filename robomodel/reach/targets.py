"""Points of a sheet that are uniform in the joints that tell where it is, each led to by a path.

Random walks cross a set in steps that are short in each of its joints, and the far parts of a large
one have too few of their points. On a sheet, where joints tell the configuration, positions of
these are drawn in a box instead, and led to from the nearest points that were reached before; those
that no way leads to are not of the sheet. So it is explored first, from its origin on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.mechanism.continuation import FINE, Continuation, Points
from robomodel.mechanism.sheets import Places, Sheet, together
from robomodel.mechanism.walks import Positions

if TYPE_CHECKING:
    from numpy.random import Generator

TARGETS, SEARCHES = 96, 6  # of a search from the points before; searches
BEYOND = 0.02  # of the explored box, around it: what ways have not come to


@dataclass(frozen=True, eq=False)
class Explored:
    """A part of a sheet: places in it, and the box (k,) that its joints reach.

    ``share``: the part of the box's targets that were reached.
    """

    sheet: Sheet
    found: Places
    low: Array
    high: Array
    share: float

    @classmethod
    def of(cls, along: Continuation, origin: Points, joints: Positions, low: Array,
           high: Array) -> Explored:  # fmt: skip
        """The part that ways to targets between these ends (k,) have come to, from an origin."""
        rng, sheet = np.random.default_rng(20261129), Sheet(along, joints)
        found, ends, box, share = sheet.at(origin.q), (low, high), (low, high), 0.0
        for _ in range(SEARCHES):
            goals = rng.uniform(*box, (TARGETS, len(low)))
            there, arrived = _led(sheet, found, goals)
            found, share = together([found, there]), float(np.mean(arrived))
            at = found.q[:, joints.places]
            least, most = np.min(at, axis=0), np.max(at, axis=0)
            margin = BEYOND * (most - least)
            box = np.maximum(ends[0], least - margin), np.minimum(ends[1], most + margin)
        return cls(sheet, found, *box, share)

    @cached_property
    def points(self) -> Points:
        """The places as points."""
        return self.sheet.along.at(self.found.q)

    def draw(self, rng: Generator, count: int) -> Points:
        """Points of it, uniform in the joints."""
        near, q, left = self.found, list[Array](), count
        while left > 0:
            goals = rng.uniform(
                self.low, self.high, (8 + math.ceil(left / self.share), len(self.low))
            )
            there, arrived = _led(self.sheet, near, goals)
            there = there[np.flatnonzero(arrived)[:left]]
            q.append(there.q)
            left -= len(there.q)
            near = together([near, there])
        return self.sheet.along.at(np.concatenate(q))


def _led(sheet: Sheet, near: Places, goals: Array) -> tuple[Places, Mask]:
    """Where ways to ``goals`` (n, k) from the nearest places end, and which arrive."""
    size = np.maximum(np.ptp(goals, axis=0), np.finfo(float).tiny)
    at, start = near.q[:, sheet.joints.places] / size, list[Indices]()
    for some in np.array_split(goals / size, math.ceil(len(goals) / 256)):  # to save memory
        start.append(np.argmin(0.5 * np.sum(at**2, axis=1) - some @ at.T, axis=1))
    there, why = sheet.lead(near[np.concatenate(start)], goals)
    return there, why == FINE
