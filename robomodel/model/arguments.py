"""Arguments of public functions: arrays of real numbers of the right sizes."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array


def common_batch(**arrays: Array) -> tuple[int, ...]:
    """The batch axes to which arguments broadcast. Raises a ValueError with names and shapes."""
    first, *others = (x.shape[:-1] for x in arrays.values())
    if others.count(first) == len(others):
        return first
    try:
        return np.broadcast_shapes(*(x.shape[:-1] for x in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in arrays.items())
        raise ValueError(f"batch axes do not broadcast: {shapes}") from None


def by_name(numbers: Mapping[str, ArrayLike] | None, what: str) -> Mapping[str, ArrayLike]:
    """A mapping of names to numbers, empty for None; TypeError for anything else."""
    if numbers is None:
        return {}
    if not isinstance(numbers, Mapping):
        raise TypeError(f"{what} maps names to numbers, not {type(numbers).__name__}")
    return numbers


def as_array(values: ArrayLike, size: int, name: str, size_name: str) -> Array:
    """A float64 array whose last axis has ``size`` entries. Raises ValueError otherwise."""
    array = as_numbers(values, name)
    if array.ndim == 0 or array.shape[-1] != size:
        count = str(size) if size_name == str(size) else f"{size_name} = {size}"
        raise ValueError(f"{name} needs {count} numbers on its last axis, got shape {array.shape}")
    return array


def check_one_configuration(q: Array, name: str) -> None:
    """ValueError for a batch of configurations, and for numbers that are not finite."""
    if q.ndim != 1 or not np.all(np.isfinite(q)):
        fault = f"got shape {q.shape}" if q.ndim != 1 else "and finite"
        raise ValueError(f"{name} must be one configuration, {fault}")


def as_numbers(values: ArrayLike, name: str) -> Array:
    """A float64 array of any shape.

    Raises ValueError for text and objects, even such as NumPy could convert, for complex numbers,
    whose imaginary part would be lost, and for masked entries.
    """
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be real numbers, got rows of several lengths") from None
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be real numbers, got an array of {array.dtype}")
    masks = sys.modules.get("numpy.ma")  # who has a masked array has imported it, slow as it is
    if masks is not None and masks.is_masked(values):
        raise ValueError(f"{name} must be real numbers, and some are masked; fill or drop them")
    return array.astype(np.float64, copy=False)
