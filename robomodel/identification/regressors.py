"""Regressors on NumPy arrays; arguments, ``backend`` and ``check`` as in :mod:`robomodel.dynamics`.

Columns are in the order of :func:`robomodel.parameters`; π denotes the parameters' values.
"""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics.algorithm import Backend, Options, declare, documented, run, run_one
from robomodel.dynamics.recursions import regressor as recursion
from robomodel.model.arguments import as_array, as_numbers
from robomodel.model.model import Model

declare("regressor", recursion.regressor, Y=("nv", "p"))
declare("reference_regressor", recursion.reference_regressor, Y=("nv", "p"), by_trace=True)
declare("momentum_regressor", recursion.momentum_regressor, P=("nv", "p"), R=("nv", "p"),
        by_trace=True)  # fmt: skip


@documented
def regressor(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    reference: ArrayLike | None = None,
    **options: Unpack[Options],
) -> Array:
    """Y (..., nv, p): Y π = rnea + damping + dry friction (computeJointTorqueRegressor).

    Damping and friction act on the velocity of every joint, including dependent joints and rotors,
    and are mapped to the independent ones by Gᵀ. Dry friction has the exact sign of that velocity,
    and is 0 at rest, that is, below rounding errors (1e-12 of the cluster's velocities). Springs
    are not included. All columns are computed by one recursion; rows of clusters that do not carry
    a body are zero.

    Args:
        reference: Velocities u (..., nv) in addition to v, as used by adaptive control (Slotine and
            Li 1987): Y π = M a + C(q, v) u + gravity + the damping of u + the dry friction of v,
            with the C of :func:`robomodel.coriolis`, so that Ṁ - 2C is skew-symmetric. The compiled
            algorithm is "reference_regressor".

    Returns:
        Y: The regressor (..., nv, p).

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> Y = rm.regressor(model, q, [1.0], [0.5])
        >>> tau = rm.rnea(model, q, [1.0], [0.5])
        >>> bool(np.allclose(Y @ rm.parameters(model).values, tau))
        True
    """
    arguments = {"q": q, "v": v, "a": a}
    if reference is None:
        return run_one(model, "regressor", arguments, **options)
    arguments["reference"] = reference
    return run_one(model, "reference_regressor", arguments, **options)


@documented
def momentum_regressor(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    **options: Unpack[Options],
) -> tuple[Array, Array]:
    """P and R, so that P π = M v and d(P π)/dt + R π = Y π, without accelerations.

    R π = gravity + damping + friction - Cᵀ v (:func:`robomodel.coriolis`). With any weight φ over
    time that vanishes at both ends, ∫ φ tau = ∫ (φ R - φ̇ P) π; see also
    :func:`filtered_regressor`.

    Returns:
        P: Regressor of the momentum (..., nv, p).
        R: Regressor of all other terms (..., nv, p).

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> momentum, energy = rm.identification.momentum_regressor(model, q, [1.0])
        >>> momentum.shape, energy.shape
        ((1, 39), (1, 39))
    """
    momentum, others = run(model, "momentum_regressor", {"q": q, "v": v}, **options)
    return momentum, others


@documented
def filtered_regressor(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    step: float,
    *,
    cutoff: float,
    backend: Backend = "compiled",
) -> tuple[Array, Array]:
    """Regressor and forces of a motion, both filtered, so that Y π = tau without accelerations.

    The filter is λ/(s + λ), λ = 2π ``cutoff``, started at rest at the first sample: tau is
    filtered, and the rate of P is λ (P - filtered P), with P started at its first value, so there
    is no transient. P, R (:func:`momentum_regressor`) and tau are linear between samples. Where a
    coordinate's tau is nan, its filters stop, and restart from rest at the next number, so that
    Y π = tau holds at all samples with a tau.

    Args:
        q: Configurations (..., T, nq).
        v: Velocities (..., T, nv).
        tau: Forces (..., T, nv), nan where not measured.
        step: Time between samples [s].
        cutoff: Cut-off frequency of the filter [Hz].

    Returns:
        Y: The filtered regressor (..., T, nv, p).
        tau: The filtered forces (..., T, nv), nan where ``tau`` is.

    Raises:
        ValueError: Arrays are no motion or do not fit; ``step`` or ``cutoff`` is not positive.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> q, v, tau = np.tile(q, (100, 1)), np.zeros((100, 1)), np.zeros((100, 1))
        >>> Y, filtered = rm.identification.filtered_regressor(model, q, v, tau, 0.01, cutoff=5.0)
        >>> Y.shape, filtered.shape
        ((100, 1, 39), (100, 1))
    """
    options = {"step": as_numbers(step, "step"), "cutoff": as_numbers(cutoff, "cutoff")}
    if not all(x.shape == () and 0.0 < x < math.inf for x in options.values()):
        raise ValueError(f"step and cutoff must be positive, got {step!r} and {cutoff!r}")
    torque = as_array(tau, model.nv, "tau", "nv")
    momentum, others = momentum_regressor(model, q, v, backend=backend)
    if momentum.ndim < 3 or 0 in momentum.shape[:-2] or torque.shape != momentum.shape[:-1]:
        raise ValueError(
            "a motion is needed: q, v and tau with an axis of time before their last, of the same "
            f"samples; tau has the shape {torque.shape}, q and v give {momentum.shape[:-1]}"
        )
    rate = 2.0 * math.pi * cutoff
    rows, force = _filtered(momentum, others, torque, rate, step)
    gaps = np.isnan(torque)
    if gaps.any():
        momentum, others, filtered = (
            x.reshape(-1, *x.shape[-3:]) for x in (momentum, others, rows)
        )
        torque, forces = (x.reshape(-1, *x.shape[-2:]) for x in (torque, force))
        for k, i in np.argwhere(gaps.reshape(torque.shape).any(axis=1)).tolist():
            edges = np.diff(np.isnan(torque[k, :, i]), prepend=True, append=True)
            for first, end in np.flatnonzero(edges).reshape(-1, 2).tolist():
                at = k, slice(first, end), slice(i, i + 1)
                filtered[at], forces[at] = _filtered(
                    momentum[at], others[at], torque[at], rate, step
                )
        rows, force = filtered.reshape(rows.shape), forces.reshape(force.shape)
        force[gaps] = np.nan
    return rows, force


def _filtered(
    momentum: Array, others: Array, tau: Array, rate: float, step: float
) -> tuple[Array, Array]:
    """Filtered rows (..., T, n, p) and forces (..., T, n), from rest at the first sample."""
    change = rate * (momentum - _lagged(momentum, -3, rate * step, steady=True))
    return change + _lagged(others, -3, rate * step), _lagged(tau, -2, rate * step)


def _lagged(x: Array, axis: int, ratio: float, *, steady: bool = False) -> Array:
    """First-order lag of linear samples; starts at zero, or at the first sample if ``steady``."""
    from scipy.signal import lfilter

    decay = math.exp(-ratio)
    mean = -math.expm1(-ratio) / ratio
    start = ((1.0 if steady else 0.0) - (1.0 - mean)) * np.take(x, [0], axis=axis)
    result: Array = lfilter([1.0 - mean, mean - decay], [1.0, -decay], x, axis=axis, zi=start)[0]
    return result
