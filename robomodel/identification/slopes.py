"""Velocities from positions: of motions of which a log holds nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from robomodel.errors import as_real
from robomodel.identification.sensors import followed
from robomodel.model import Model
from robomodel.model.joints import Array

ORDER = 4  # of the filter, in each direction


def velocities_of(
    model: Model, q: Array, encoders: Sequence[str] | None, step: float | None, cutoff: float
) -> Array:
    """Velocities (T, ·) of all coordinates, or of the joints of ``encoders``, from positions q.

    ``step``: between samples [s], nan where they are not even, None where there are no times.
    """
    if step is None or math.isnan(step):
        raise ValueError("velocities from positions need a column 'time', and even times")
    at = q if encoders is None else followed(model, encoders, q)
    v = smooth_velocities(model, at, step, cutoff)
    if encoders is None:
        return v
    rates = model.joint_velocities(at, v)
    return np.concatenate([rates[name].reshape(len(v), -1) for name in encoders], axis=1)


def smooth_velocities(model: Model, q: Array, step: float, cutoff: float) -> Array:
    """Velocities (T, nv) of configurations (T, nq) that are ``step`` apart, without a lag.

    Butterworth's low-pass of fourth order, forwards and backwards in time, and the slopes of a
    cubic spline through what it leaves, as is usual before identification (M. Gautier, *Dynamic
    identification of robots with power model*, ICRA 1997). What is as fast as a fifth of
    ``cutoff`` [Hz] loses 3e-6 of its size, and what is as fast as ``cutoff`` half of it; the first
    and last 1 / ``cutoff`` are less exact. ValueError where ``cutoff`` is not between zero and half
    of the rate of samples, or where there are too few of them.
    """
    from scipy.interpolate import CubicSpline
    from scipy.signal import butter, sosfiltfilt

    most = 0.5 / step
    if not 0.0 < as_real(cutoff, "velocities") < most:
        raise ValueError(
            f"velocities is a frequency between 0 and {most:g} Hz, half of the samples' rate, got "
            f"{cutoff!r}"
        )
    sections = butter(ORDER, cutoff, fs=1.0 / step, output="sos")
    fewest = 3 * (2 * len(sections) + 1)
    if len(q) <= fewest:
        raise ValueError(f"velocities from positions need more than {fewest} samples, got {len(q)}")
    ways = np.cumsum(model.difference(q[:-1], q[1:]), axis=0)
    smooth = sosfiltfilt(sections, np.vstack([np.zeros(model.nv), ways]), axis=0)
    times = step * np.arange(len(q))
    result: Array = CubicSpline(times, smooth).derivative()(times)
    return result
