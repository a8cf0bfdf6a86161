"""Configurations along the range of one independent joint."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robomodel.errors import ClosureError, did_you_mean
from robomodel.model.joints import Array
from robomodel.model.model import Model

STEPS = 240
FREE_LENGTH = 0.5  # metres: how far a sliding joint without limits is moved


@dataclass(frozen=True)
class Sweep:
    """Configurations q (n, nq) along the positions (n,) of one independent joint.

    ``closed``: whether the whole of the wished range was reached; loops may not close in all of it.
    """

    joint: str
    positions: Array
    q: Array
    closed: bool


def sweep(model: Model, joint: str, *, steps: int = STEPS) -> Sweep:
    """Move one independent joint through its range, from the neutral configuration both ways.

    The range is its limits; a turn, or half a metre, each way without. Loops stay on their branch;
    where they cannot close the sweep ends. Raises KeyError for unknown joints, ValueError for
    those that are not independent or have several freedoms.
    """
    found = {each.name: each for each in model.joints}
    if joint not in found:
        raise KeyError(f"no joint '{joint}' in '{model.name}'{did_you_mean(joint, found)}")
    if joint not in model.dof_names:
        names = ", ".join(name for name in model.dof_names if name in found)
        raise ValueError(f"joint '{joint}' is not independent, or has several freedoms; "
                         f"independent joints are {names}")  # fmt: skip
    limits = found[joint]
    neutral = model.neutral()
    start = float(model.joint_positions(neutral)[joint])
    reach = FREE_LENGTH if limits.type == "prismatic" else math.pi
    lower = limits.lower if math.isfinite(limits.lower) else start - reach
    upper = limits.upper if math.isfinite(limits.upper) else start + reach
    start = min(max(start, lower), upper)
    first = model.configuration({joint: start})
    sides, closed = [], True
    for end in (lower, upper):
        # an odd number of steps: they seldom fall on dead points, where no ratio is to be had
        count = round(steps * abs(end - start) / max(upper - lower, 1e-300)) | 1
        side, before, q = [], first, first
        for position in np.linspace(start, end, count + 1)[1:]:
            try:  # as it went on so far: so it passes where branches cross
                ahead = model.configuration({joint: position}, guess=2.0 * q - before)
            except ClosureError:
                closed = False
                break
            before, q = q, ahead
            side.append((position, q))
        sides.append(side)
    every = [*sides[0][::-1], (start, first), *sides[1]]
    return Sweep(joint, np.array([x for x, _ in every]), np.array([q for _, q in every]), closed)
