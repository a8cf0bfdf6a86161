"""Configurations along the range of an independent joint, and on grids of several joints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.errors import ClosureError, UnknownNameError, check_names
from robomodel.model.configurations.curves import curve
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


def sweep(
    model: Model, joint: str, *, steps: int = STEPS,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Sweep:  # fmt: skip
    """Move one independent joint through its range, from the neutral configuration both ways.

    The range is its limits, and ``within``; a turn, or half a metre, each way without. Loops stay
    on their branch; where they cannot close the sweep ends. Raises UnknownNameError for unknown
    joints, ValueError for those that are not independent or have several freedoms.
    """
    joints = {each.name: each for each in model.joints}
    check_names([joint], joints, "no joint ", f" in '{model.name}'", error=UnknownNameError)
    if joint not in model.dof_names:
        names = ", ".join(name for name in model.dof_names if name in joints)
        raise ValueError(f"joint '{joint}' is not independent, or has several freedoms; "
                         f"independent joints are {names}")  # fmt: skip
    limits, cluster = joints[joint], next(c for c in model.clusters if joint in c.joints)
    neutral = model.neutral()
    at = float(model.joint_positions(neutral)[joint])
    reach = FREE_LENGTH if limits.type == "prismatic" else math.pi
    lower, upper = max(limits.lower, within[0]), min(limits.upper, within[1])
    lower = lower if math.isfinite(lower) else at - reach
    upper = upper if math.isfinite(upper) else at + reach
    start = min(max(at, lower), upper)
    # an odd number of steps: they seldom fall on dead points, where no ratio is to be had
    below, above = (round(steps * abs(end - start) / max(upper - lower, 1e-300)) | 1
                    for end in (lower, upper))  # fmt: skip
    positions = np.concatenate(
        [np.linspace(lower, start, below + 1), np.linspace(start, upper, above + 1)[1:]]
    )
    q = np.tile(neutral, (len(positions), 1))
    if not cluster.implicit:
        way = np.zeros((len(positions), model.nv))
        way[:, model.dof_names.index(joint)] = positions - at
        return Sweep(joint, positions, model.integrate(q, way), True)
    q[:, cluster.q] = curve(model, cluster, joint).at(positions)
    fine = np.isfinite(q).all(axis=1)
    lost = np.flatnonzero(~fine)
    first = int(np.max(lost[lost < below], initial=-1)) + 1
    last = int(np.min(lost[lost > below], initial=len(q)))
    return Sweep(joint, positions[first:last], q[first:last], bool(fine.all()))


def grid(model: Model, names: Sequence[str], axes: Sequence[Array]) -> Array:
    """Closed configurations (n, m, …, nq) by joints' positions, from the neutral one outwards.

    So they stay on its branch of the loops. Not-a-number where loops do not close, or a joint is
    out of its limits.
    """
    shape = tuple(len(axis) for axis in axes)
    result = np.full((*shape, model.nq), np.nan)
    neutral = model.neutral()
    at = model.joint_positions(neutral)
    start = tuple(int(np.argmin(np.abs(axis - float(at[name]))))
                  for axis, name in zip(axes, names, strict=True))  # fmt: skip
    order = sorted(np.ndindex(*shape), key=lambda n: _away(n, start))
    for n in order:
        near = [m for m in _beside(n, start) if np.isfinite(result[m][0])]
        if not near and n != start:
            continue
        guess = result[near[0]] if near else neutral
        wanted = {name: float(axis[i]) for name, axis, i in zip(names, axes, n, strict=True)}
        try:
            q = model.configuration(wanted, guess=guess)
        except ClosureError:
            continue
        result[n] = q
    inside = np.all(np.isfinite(result), axis=-1)
    positions = model.joint_positions(result[inside])
    good = np.ones(int(inside.sum()), dtype=bool)
    for joint in model.joints:
        if joint.nv == 1 and joint.type != "continuous":
            x = positions[joint.name]
            good &= (x >= joint.lower - 1e-9) & (x <= joint.upper + 1e-9)
    kept = result[inside]
    kept[~good] = np.nan
    result[inside] = kept
    return result


def _away(n: tuple[int, ...], start: tuple[int, ...]) -> int:
    return max(abs(a - b) for a, b in zip(n, start, strict=True))


def _beside(n: tuple[int, ...], start: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The neighbours of a grid point that are nearer to the start."""
    steps = [int(np.sign(b - a)) for a, b in zip(n, start, strict=True)]
    return [
        tuple(a + s * m for a, s, m in zip(n, steps, moved, strict=True))
        for moved in np.ndindex(*(2 if s else 1 for s in steps))
        if any(moved)
    ][::-1]
