"""Past change points, where branches of a linkage's motion cross and its equations are singular.

A step that would come too near to one leads over it, and the motion continues from there. States
on the way are interpolated: by a polynomial through states of the same step on both sides, or of
its ends. Adaptive steps put the point into the middle of the widest gap between the times at which
their method evaluates rates (:func:`placed`); steps of given length lead beyond their end, by the
least share of the next one that ends away from the point (:data:`BEYOND`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from robomodel.arrays import Array
from robomodel.model.model import Model
from robomodel.motion.tangent import closed_by_least_squares

AT_CHANGE_POINT = "ends too near to a change point"
# shares of the next step: far from both its ends, where others may end too; or steps further on
BEYOND = (1 / 2, 1 / 3, 2 / 3, 3 / 2, 7 / 2, 15 / 2, 31 / 2, 63 / 2, 127 / 2)


@dataclass(frozen=True)
class Way:
    """The way of a step over a change point: q and velocities of all joints, by a polynomial.

    It goes through ``values`` (n, nq + n_joint_velocities) at ``times``, with ``slopes`` there if
    they are given.
    """

    model: Model
    times: Sequence[float] | Array
    values: Sequence[Array]
    slopes: Sequence[Array] = ()

    def at(self, t: float, tolerance: float) -> tuple[Array, Array]:
        """q, with loops closed to a tolerance by least squares, and velocities of all joints."""
        q, speeds = np.split(interpolated(t, self.times, self.values, self.slopes), [self.model.nq])
        return closed_by_least_squares(self.model, q, tolerance), speeds


def interpolated(
    t: float, times: Sequence[float] | Array, values: Sequence[Array],
    slopes: Sequence[Array] = (),
) -> Array:  # fmt: skip
    """The polynomial through values at times, or the cubics with these slopes there."""
    if len(slopes):
        from scipy.interpolate import CubicHermiteSpline

        return np.asarray(CubicHermiteSpline(times, values, slopes)(t))
    nodes, rows = np.asarray(times), np.asarray(values)
    away = t - nodes
    if not np.all(away):
        return np.array(rows[int(np.argmin(np.abs(away)))])
    apart = (nodes[:, None] - nodes) / (nodes[-1] - nodes[0])
    np.fill_diagonal(apart, 1.0)
    weights = 1.0 / (np.prod(apart, axis=1) * away)  # the barycentric formula
    return np.asarray(weights @ rows / np.sum(weights))


class Lead(NamedTuple):
    """A motion that a step has led beyond its end, over a change point.

    ``start``, ``since``: the state where that step began, and how long ago [s]. ``state``, ``by``:
    the state that it led to, and how much later that is [s]. ``acting``: forces and wrenches of the
    step, ``record`` its record. ``speeds``: velocities of all joints now, between both.
    """

    start: Array
    since: float
    state: Array
    by: float
    acting: tuple[Array, Mapping[str, Array]]
    record: Any
    speeds: Array


def placed(
    distance: Callable[[float], float], h: float, gap: tuple[float, float]
) -> tuple[float, bool, float]:
    """A step of length h or less: its length, whether it crosses a change point, its distance.

    Args:
        distance: The distance from change points that is predicted after a time.
        h: The length of a step that errors allow.
        gap: The widest gap between the method's stages, in shares of a step. A step that does not
            cross a change point ends where the next one of length h crosses it.

    Returns:
        length: Of the step.
        crosses: Whether the point is in the middle of its gap.
        distance: Half the least distance at the stages beside the gap, which they must keep.
    """
    from scipy.optimize import minimize_scalar

    low, high = gap
    # its end is placed to a hundredth of a step: stages stay a tenth from change points
    middle, exact = 0.5 * (low + high), 0.01 * h
    longest = (1.0 + middle) * h
    ahead = float(minimize_scalar(distance, bounds=(0.0, longest), method="bounded",
                                  options={"xatol": exact}).x)  # fmt: skip
    if ahead < 2.0 * exact:
        return h, False, 0.5 * distance(0.0)
    if ahead > middle * h + exact:
        length = min(h, ahead - middle * h)
        return length, False, 0.5 * distance(length)
    length = ahead / middle
    return length, True, 0.5 * min(distance(low * length), distance(high * length))
