"""Types of NumPy arrays, and quantiles of their numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.intp]


# np.median and np.quantile import numpy.ma, which takes a twentieth of a small robot's loading.


def median(numbers: Array | Sequence[float]) -> float:
    """The median of all numbers; nan if one is, or there are none."""
    ordered = np.sort(np.asarray(numbers, dtype=float), axis=None)
    count = len(ordered)
    if not count or math.isnan(ordered[-1]):
        return math.nan
    return 0.5 * float(ordered[(count - 1) // 2] + ordered[count // 2])


def quantile(numbers: Array, share: float) -> Array:
    """The quantiles along the first axis, between two numbers in proportion; without nan."""
    ordered = np.sort(numbers, axis=0)
    place = share * (len(ordered) - 1)
    below = int(place)
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    part = place - below
    between: Array = low + (high - low) * part if part < 0.5 else high - (high - low) * (1.0 - part)
    return between
