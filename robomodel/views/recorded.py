"""Motions that were recorded, for the viewer's page and for files that play them."""

from __future__ import annotations

import numpy as np

from robomodel.arrays import Array
from robomodel.errors import ClosureError
from robomodel.identification.logs import read_positions
from robomodel.model import Model
from robomodel.motion.trajectory import Trajectory


def read_motion(model: Model, source: object, *, topic: str | None = None) -> Trajectory:
    """A recorded motion as a trajectory to be played, with interpolated states between its rows.

    Args:
        model: The robot.
        source: A log as :func:`robomodel.identification.read_log` takes it, of which
            only ``time`` and positions are needed, or what :meth:`Trajectory.to_csv` wrote.
        topic: The topic of joints in a bag, if there are several.

    Returns:
        motion: Its velocities and forces are nan; :meth:`Trajectory.at` goes from sample to sample
            at constant velocities.

    Raises:
        DescriptionError: What is missing or no number, with file and line.
        ClosureError: Loops do not close.
        ImportError: The packages that are needed are not installed.
    """
    times, q = read_positions(model, source, topic=topic)

    def between(t: float) -> Array:
        n = int(np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(times) - 2))
        share = (t - times[n]) / (times[n + 1] - times[n])
        try:
            at = model.integrate(q[n], share * model.difference(q[n], q[n + 1]))
        except ClosureError:  # samples that are too far from each other for loops to follow
            at = q[n + int(share > 0.5)]
        return np.concatenate([at, unknown[n]])

    unknown = np.full((len(times), model.nv), np.nan)
    return Trajectory(model, "log", times, q, unknown, unknown, dense=between)
