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
from robomodel.identification.coordinates import Coordinates, rounded
from robomodel.identification.windows import Windows, summed
from robomodel.model.arguments import as_array, as_numbers
from robomodel.model.model import Model
from robomodel.model.parameters import parameters
from robomodel.tolerances import SINGULAR

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
    """Regressor and forces of a motion in windows, so that Y π = tau without accelerations.

    Each of K windows weights the motion by a cubic B-spline φ(t), which vanishes with its slope at
    both ends: Y = ∫ (φ R - φ̇ P) and ∫ φ tau (:func:`momentum_regressor`). There is no transient and
    no lag; frequencies above ``cutoff`` are left out of motions and forces alike. Windows overlap
    by three quarters. One whose samples include a tau of a coordinate that is nan gives nan there.

    Args:
        q: Configurations (..., T, nq).
        v: Velocities (..., T, nv).
        tau: Forces (..., T, nv), nan where not measured.
        step: Time between samples [s].
        cutoff: Frequency [Hz] at which the weights' spectrum is one half.

    Returns:
        Y: The regressor (..., K, nv, p).
        tau: The forces (..., K, nv), nan where a sample of ``tau`` in the window is.

    Raises:
        ValueError: Arrays are no motion, do not fit or are shorter than a window; ``step`` or
            ``cutoff`` is not positive.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> q, v, tau = np.tile(q, (100, 1)), np.zeros((100, 1)), np.zeros((100, 1))
        >>> Y, filtered = rm.identification.filtered_regressor(model, q, v, tau, 0.01, cutoff=5.0)
        >>> Y.shape, filtered.shape
        ((13, 1, 39), (13, 1))
    """
    options = {"step": as_numbers(step, "step"), "cutoff": as_numbers(cutoff, "cutoff")}
    if not all(x.shape == () and 0.0 < x < math.inf for x in options.values()):
        raise ValueError(f"step and cutoff must be positive, got {step!r} and {cutoff!r}")
    torque = as_array(tau, model.nv, "tau", "nv")
    place, rate = as_array(q, model.nq, "q", "nq"), as_array(v, model.nv, "v", "nv")
    batch = np.broadcast_shapes(place.shape[:-1], rate.shape[:-1])
    if len(batch) < 1 or 0 in batch or torque.shape[:-1] != batch:
        raise ValueError(
            "a motion is needed: q, v and tau with an axis of time before their last, of the same "
            f"samples; tau has the shape {torque.shape}, q and v give {(*batch, model.nv)}"
        )
    windows = Windows.of(batch[-1], step, cutoff)
    rows, _ = windowed(model, np.broadcast_to(place, (*batch, model.nq)),
                       np.broadcast_to(rate, (*batch, model.nv)), windows, backend,
                       Coordinates(model, ()))  # fmt: skip
    forces = [windows.mean(x) for x in torque.reshape(-1, *torque.shape[-2:])]
    return rows, np.reshape(forces, (*batch[:-1], len(windows), model.nv))


def windowed(
    model: Model, q: Array, v: Array, windows: Windows, backend: Backend,
    coordinates: Coordinates,
) -> tuple[Array, Array]:  # fmt: skip
    """The regressor (..., K, nv, p) of :func:`filtered_regressor`, by pieces of a motion.

    Then the same with forces in other coordinates: E (P π)' is (E P π)' - E' P π.
    """
    places = [cluster.cluster.v for cluster in coordinates.clusters]
    more = sum(at.stop - at.start for at in places)
    numbers = (model.nv + more) * len(parameters(model).names)
    rows = []
    for place, rate in zip(q.reshape(-1, *q.shape[-2:]), v.reshape(-1, *v.shape[-2:]), strict=True):

        def made(at: slice, place: Array = place, rate: Array = rate) -> tuple[Array, Array]:
            momentum, others = momentum_regressor(model, place[at], rate[at], backend=backend)
            change, turning = coordinates.moving(place[at], rate[at])
            added = [x for _, x in change.parts(momentum)]
            pairs = zip(change.parts(others), turning.parts(momentum), strict=True)
            rest = [
                rounded(x - y, np.max(np.abs(x) + np.abs(y), -2, keepdims=True), SINGULAR)
                for (_, x), (_, y) in pairs
            ]
            return np.concatenate([momentum, *added], -2), np.concatenate([others, *rest], -2)

        rows.append(summed(windows, numbers, made))
    both = np.reshape(rows, (*q.shape[:-2], *rows[0].shape))
    plain, changed = both[..., : model.nv, :], both[..., model.nv :, :]
    if not places:
        return plain, plain
    result = plain.copy()
    result[..., [i for at in places for i in range(at.start, at.stop)], :] = changed
    return plain, result
