"""Configurations from which motions begin: closed, or open by single precision's rounding."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from robomodel.model.closure import CLOSED
from robomodel.model.configurations.states import refuse, unit_faults
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.motion.integrator_functions import openness

ROUNDED = 1e-4  # gap up to which single precision may leave loops open


def in_single_precision(q: ArrayLike) -> bool:
    """Whether q is an array of single (or half) precision, by which its loops are not closed."""
    kind = getattr(q, "dtype", np.dtype(float))
    return bool(np.issubdtype(kind, np.floating) and np.finfo(kind).eps > np.finfo(float).eps)


def closed_start(model: Model, q: Array, single: bool, backend: str = "compiled") -> Array:
    """q as motions begin; ValueError where loops are open, or quaternions not of unit length.

    Configurations of single precision, such as those at which a rollout in it ends, are open by
    its rounding: these are closed. Those that are not finite pass: they are not-a-number all along,
    for themselves alone.
    """
    try:
        _check_closed(model, q, CLOSED, backend)
    except ValueError:
        if not single:
            raise
        _check_closed(model, q, ROUNDED, backend)
        return model.close(q)
    return q


def _check_closed(model: Model, q: Array, tolerance: float, backend: str) -> None:
    refuse(model, list(unit_faults(model, q, tolerance)))
    if not any(cluster.implicit for cluster in model.clusters):
        return
    square = openness(model, backend)(q)
    gap = math.sqrt(float(np.max(square, where=~np.isnan(square), initial=0.0)))
    if gap > tolerance:
        raise ValueError(
            f"the loops of '{model.name}' are open at q: residual {gap:.3g}; "
            "start from model.close(q) or model.configuration(...)"
        )
