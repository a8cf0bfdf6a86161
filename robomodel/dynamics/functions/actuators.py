"""Motors behind gears and linkages: maps, limits, what they reflect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics.actuators import maps as actuation
from robomodel.dynamics.actuators.maps import Reflected
from robomodel.dynamics.calling import Backend, check_arguments
from robomodel.dynamics.calling import run as _run
from robomodel.model.arguments import as_array, common_batch
from robomodel.model.joints import Array
from robomodel.model.model import Model


def actuator_map(
    model: Model, q: ArrayLike, *, backend: Backend = "compiled", check: bool = False
) -> Array:
    """B (..., nv, nu): tau = B u for the forces u of ``model.actuators``; Bᵀ v are their rates."""
    if not model.actuators:
        if check:
            model.check(q)
        return np.zeros((*as_array(q, model.nq, "q", "nq").shape[:-1], model.nv, 0))
    result: Array = _run(model, "actuator_map", {"q": q}, backend, check=check)
    return result


def actuator_forces(
    model: Model,
    q: ArrayLike,
    tau: ArrayLike,
    *,
    backend: Backend = "compiled",
    check: bool = False,
) -> Array:
    """The motor forces u (..., nu) of least norm that give tau (..., nv): B u = tau.

    Not-a-number where none do: a floating base that is pushed, a joint without a motor.
    """
    if check:
        check_arguments(model, {"q": q, "tau": tau})
    torque = as_array(tau, model.nv, "tau", "nv")
    common_batch(q=as_array(q, model.nq, "q", "nq"), tau=torque)
    return actuation.forces(actuator_map(model, q, backend=backend), torque)


def reflected(
    model: Model, q: ArrayLike, *, backend: Backend = "compiled", check: bool = False
) -> Reflected:
    """What each actuator's shaft puts on each independent velocity, through gears and linkages.

    (inertia, damping, friction), each (..., nv, nu): of coordinate i and actuator n I b², d b² and
    f |b| with b = B[i, n] of :func:`actuator_map` and I, d, f of its rotor (of a joint without one:
    the joint's armature, damping and friction). The inertia is that of the rotor's spin alone, what
    textbooks call reflected inertia, I N²; the mass matrix has besides what couples spins with the
    motion of the bodies that carry rotors.
    """
    if not model.actuators:
        none = actuator_map(model, q, backend=backend, check=check)
        return Reflected(none, none.copy(), none.copy())
    return Reflected(*_run(model, "reflected", {"q": q}, backend, check=check))


def saturate(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    backend: Backend = "compiled",
    check: bool = False,
) -> tuple[Array, Array, Array]:
    """(tau, u, lost): what the motors make of the torques (..., nv) asked of them.

    ``u`` (..., nu) are the motor forces of least norm with B u = tau, each within its effort limit
    and what its torque-speed curve or velocity limit leaves it at its rate Bᵀ v; ``lost`` (..., nu)
    what of each is beyond that: zero where a motor is not saturated. The first result is tau less B
    times what is lost, so that what no motor gives, on a floating base or a joint without an
    actuator, stays. Driving force without a curve falls to zero within the last hundredth below the
    velocity limit. ``simulate`` and ``rollout`` move under these torques with ``saturate=True``.
    """
    arguments = {"q": q, "v": v, "tau": tau}
    given, u, lost = _run(model, "saturate", arguments, backend, check=check)
    unknown = np.isnan(as_array(v, model.nv, "v", "nv")).any(axis=-1)
    if np.any(unknown):  # the least of a number and none is the number
        for result in (given, u, lost):
            result[np.broadcast_to(unknown, result.shape[:-1])] = np.nan
    return given, u, lost


def torque_limits(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    backend: Backend = "compiled",
    check: bool = False,
) -> tuple[Array, Array]:
    """(lower, upper), each (..., nv): the tau of each coordinate while the others get nothing.

    From the actuators' effort limits (and stall torques) through gears and linkages at q; with
    ``v``, also their torque-speed curves: driving force falls linearly to zero at no-load speed,
    without a curve nothing drives beyond the velocity limit, braking stays. Zero where nothing
    pushes a coordinate alone.
    """
    if check:
        model.check(q, v)
    matrix, lower, upper = _motors(model, q, v, backend)
    return actuation.limits(matrix, lower, upper)


def torque_polytope(
    model: Model,
    q: ArrayLike,
    joints: Sequence[str] | str,
    v: ArrayLike | None = None,
    *,
    backend: Backend = "compiled",
    check: bool = False,
) -> Array | list[Array]:
    """The corners (m, len(joints)) of what these coordinates can get together at q, others nothing.

    ``joints``: names of independent coordinates (``model.dof_names``); two coordinates' corners run
    counterclockwise. Of a batch a list of such arrays, one for each state. ``v`` as in
    :func:`torque_limits`. ValueError where an actuator has no effort limit.
    """
    if check:
        model.check(q, v)
    chosen = actuation.selected(model, joints)
    matrix, lower, upper = _motors(model, q, v, backend)
    shape = np.broadcast_shapes(matrix.shape[:-2], lower.shape[:-1])
    wide = np.broadcast_to(matrix, (*shape, *matrix.shape[-2:]))
    low, high = (np.broadcast_to(x, (*shape, matrix.shape[-1])) for x in (lower, upper))
    actuation.needs_limits(model, low, high)
    found = [actuation.polytope(wide[n], chosen, low[n], high[n]) for n in np.ndindex(*shape)]
    return found if shape else found[0]


def _motors(
    model: Model, q: ArrayLike, v: ArrayLike | None, backend: Backend
) -> tuple[Array, Array, Array]:
    """B, and the least and the greatest force of each actuator at the rates Bᵀ v."""
    matrix = actuator_map(model, q, backend=backend)
    rates = None
    if v is not None:
        speed = as_array(v, model.nv, "v", "nv")
        common_batch(q=as_array(q, model.nq, "q", "nq"), v=speed)
        rates = np.einsum("...ij,...i->...j", matrix, speed)
    return matrix, *actuation.bounds(model, rates)
