"""Motors behind gears and linkages: maps, limits, reflected inertia."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robomodel.arrays import Array
from robomodel.dynamics.actuators import drives, efforts, inverse
from robomodel.dynamics.actuators import maps as actuation
from robomodel.dynamics.actuators.efforts import UNLIMITED
from robomodel.dynamics.actuators.maps import (
    Losses,
    Reflected,
    copper_loss,
    limits_alone,
    motors,
    saturated,
)
from robomodel.dynamics.algorithm import (
    ForceOptions,
    Options,
    algorithm,
    check_arguments,
    declare,
    documented,
    run,
    run_one,
)
from robomodel.errors import warn
from robomodel.model.arguments import as_array, by_name, common_batch
from robomodel.model.configurations.blockwise import CONTRADICTS
from robomodel.model.configurations.following import read
from robomodel.model.model import Model
from robomodel.model.parameters import as_parameters, losses_among
from robomodel.scalars import as_number
from robomodel.tolerances import NOTHING, SINGULAR

__all__ = [
    "actuator_forces",
    "actuator_gains",
    "actuator_map",
    "actuator_positions",
    "actuator_velocities",
    "copper_loss",
    "from_actuators",
    "motor_forces",
    "reflected",
    "saturate",
    "torque_limits",
    "torque_polytope",
]

declare("actuator_forces", inverse.forces, u=("nu",))
declare("motor_forces", drives.motor_forces, losses=True, u=("nu",))
declare(
    "reflected",
    actuation.reflected,
    inertia=("nv", "nu"),
    damping=("nv", "nu"),
    friction=("nv", "nu"),
)
declare("torque_limits", limits_alone, least=("nv",), most=("nv",), doubt=(1,))
declare("motors", motors, B=("nv", "nu"), least=("nu",), most=("nu",), gears=("nu",))
declare("saturate", saturated, tau=("nv",), u=("nu",), lost=("nu",))


@algorithm(actuation.actuator_map, B=("nv", "nu"))
def actuator_map(model: Model, q: ArrayLike, **options: Unpack[Options]) -> Array:
    """The map B from actuators' forces to the independent coordinates: tau = B u.

    Bᵀ v are the actuators' rates.

    Returns:
        B: The matrix (..., nv, nu), columns in the order of ``model.actuators``.

    Examples:
        >>> model = rm.robots.load("belt_leg")
        >>> rm.actuator_map(model, np.zeros(3))
        array([[ 6.,  0.,  0.],
               [ 0., 12., 12.],
               [ 0.,  0., 12.]])
    """


@documented
def actuator_forces(
    model: Model,
    q: ArrayLike,
    tau: ArrayLike,
    *,
    losses: Losses | None = None,
    **options: Unpack[Options],
) -> Array:
    """The motor forces u of least norm that give tau: B u = tau.

    Not-a-number where no u gives tau, as on a floating base or a joint without a motor.

    Args:
        losses: "forward": what motors have to give that drive the joints through lossy gears,
            u/efficiency; "back": what they have to give while the joints drive them, u ·
            ``backdrive`` (negative: they help). Both take the rotors' inertia for a part of the
            load, as if they turned at a constant rate: see :func:`motor_forces`.

    Returns:
        u: Motor forces (..., nu).

    Examples:
        >>> model = rm.robots.load("belt_leg")
        >>> u = rm.actuator_forces(model, np.zeros(3), np.ones(3))
        >>> bool(np.allclose(rm.actuator_map(model, np.zeros(3)) @ u, 1.0))
        True
    """
    if options.pop("check", False):
        given = options.get("parameters")
        check_arguments(model, {"q": q, "tau": tau}, parameters=given)
    torque = as_array(tau, model.nv, "tau", "nv")
    common_batch(q=as_array(q, model.nq, "q", "nq"), tau=torque)
    given = _split(model, losses, options)
    u = actuation.forces(actuator_map(model, q, **options), torque)
    if losses is None:
        return u
    numbers = actuation.efficiencies(model, losses, given)
    return np.asarray(u / numbers if losses == "forward" else u * numbers)


@documented
def motor_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    direction: ArrayLike | None = None,
    **options: Unpack[ForceOptions],
) -> Array:
    """The motor forces that produce the accelerations ``a``, with losses of gears and dry friction.

    Inverse dynamics of what :func:`simulate` moves: each motor gives what its rotor and bearing
    take, and what its mesh needs to hand the rest on to the joints, λ/``efficiency`` while it
    drives and ``backdrive`` · λ while it is driven. Of several motors of one joint λ has the least
    norm. Forces that no motor gives are left out (the base's; those of joints without a motor).

    Each force is continuous, and smooth but where its mesh transmits nothing: at given directions
    derivatives are those of one of two smooth functions. Efficiencies are ``parameters`` of it.

    Args:
        direction: Velocities (..., nv) whose signs tell the way of motors and of dry friction whose
            own rate is zero; where this is zero, too, the acceleration tells it. Of what does not
            move at all nothing rubs: between the forces for both directions it rests.

    Returns:
        u: Motor forces (..., nu).

    Examples:
        >>> model = rm.robots.load("belt_leg")
        >>> q, v, a = np.zeros(3), np.ones(3), np.ones(3)
        >>> u = rm.dynamics.motor_forces(model, q, v, a)
        >>> bool(np.allclose(u, rm.actuator_forces(model, q, rm.rnea(model, q, v, a))))
        True
    """
    way = np.zeros(model.nv) if direction is None else direction
    arguments = {"q": q, "v": v, "a": a, "direction": way}
    return run_one(model, "motor_forces", arguments, **options)


@algorithm(actuation.positions, positions=("nu",))
def actuator_positions(model: Model, q: ArrayLike, **options: Unpack[Options]) -> Array:
    """The actuators' positions: what encoders at the motors measure.

    Σ k q of the joints that an actuator moves, with the coefficients k of its ``terms``.

    Returns:
        positions: Positions (..., nu) [rad, m], in the order of ``model.actuators``.

    Examples:
        >>> model = rm.robots.load("belt_leg")
        >>> rm.actuator_positions(model, np.array([0.1, 0.2, 0.3]))
        array([0.6, 2.4, 6. ])
    """


@algorithm(actuation.velocities, rates=("nu",))
def actuator_velocities(
    model: Model, q: ArrayLike, v: ArrayLike, **options: Unpack[Options]
) -> Array:
    """The actuators' velocities Bᵀ v.

    Returns:
        rates: Velocities (..., nu) [rad/s, m/s], in the order of ``model.actuators``.

    Examples:
        >>> model = rm.robots.load("belt_leg")
        >>> rm.actuator_velocities(model, np.zeros(3), np.ones(3))
        array([ 6., 12., 24.])
    """


@algorithm(actuation.gains, K=("nv", "nv"), D=("nv", "nv"))
def actuator_gains(
    model: Model, q: ArrayLike, kp: ArrayLike, kd: ArrayLike, **options: Unpack[Options]
) -> tuple[Array, Array]:
    """Stiffness and damping of the coordinates from gains of position loops at the motors.

    u = -kp (position - reference) - kd rate at each motor acts as tau = -K dq - D v near the
    references: K = B diag(kp) Bᵀ, D = B diag(kd) Bᵀ. (K leaves out the change of B with q.)

    Args:
        kp: Gains (..., nu) [N m/rad or N/m].
        kd: Gains (..., nu) [N m s/rad or N s/m].

    Returns:
        K: Stiffness (..., nv, nv).
        D: Damping (..., nv, nv).

    Examples:
        >>> model = rm.robots.load("belt_leg")
        >>> q, v, tau = np.zeros(3), np.ones(3), np.ones(3)
        >>> [x.shape for x in rm.dynamics.actuator_gains(model, q, v, tau)]
        [(3, 3), (3, 3)]
    """


def from_actuators(
    model: Model,
    positions: ArrayLike,
    velocities: ArrayLike | None = None,
    *,
    guess: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """The state at which actuators have these positions and velocities.

    The inverse of :func:`actuator_positions`: Newton's method from ``guess``, in steps of at most
    0.3 rad (or m), so that linkages stay on its branch. The base stays where ``guess`` has it, at
    rest. Compiled, unless ``guess`` is farther away than three steps reach.

    Args:
        model: The robot.
        positions: Positions (..., nu), in the order of ``model.actuators`` [rad, m].
        velocities: Velocities (..., nu) [rad/s, m/s]; zero by default.
        guess: A closed configuration (..., nq) to start from; the neutral one by default.

    Returns:
        q: Configurations (..., nq), closed.
        v: Velocities (..., nv).
        Both are not-a-number, with a RuntimeWarning, where the numbers contradict each other (by
        more than 1e-6, relative above 1), are out of reach or leave a freedom open.

    Raises:
        ValueError: Arrays that do not fit.

    Examples:
        >>> model = rm.robots.load("parallel_ankle")
        >>> motors = rm.actuator_positions(model, model.neutral())
        >>> q, v = rm.from_actuators(model, motors, np.zeros(2))
        >>> bool(np.allclose(q, model.neutral(), atol=1e-9))
        True
    """
    nu = len(model.actuators)
    arrays = {
        "positions": as_array(positions, nu, "positions", "nu"),
        "velocities": as_array(
            np.zeros(nu) if velocities is None else velocities, nu, "velocities", "nu"
        ),
        "guess": as_array(model.neutral() if guess is None else guess, model.nq, "guess", "nq"),
    }
    batch = common_batch(**arrays)
    target, rates, q = (
        np.broadcast_to(x, (*batch, x.shape[-1])).reshape(math.prod(batch), x.shape[-1])
        for x in arrays.values()
    )
    result, v = np.full(q.shape, np.nan), np.full((len(q), model.nv), np.nan)
    if not inverse.undetermined(model):
        result, v = inverse.from_actuators(model)(target, rates, q)
        far = np.isnan(result).any(axis=-1)  # farther than fixed steps reach
        if far.any():
            result[far] = _at_positions(model, target[far], q[far])
            v[far] = _at_rates(model, result[far], rates[far])
    failed = np.isnan(result).any(axis=-1) | np.isnan(v).any(axis=-1)
    result[failed] = v[failed] = np.nan
    if failed.any():
        warn(RuntimeWarning(
            f"from_actuators of '{model.name}': positions or velocities contradict each other, are "
            "out of reach or leave a freedom open: not-a-number is returned there"
        ))  # fmt: skip
    return result.reshape(*batch, model.nq), v.reshape(*batch, model.nv)


@dataclass(frozen=True)
class _Encoders:
    """Target positions (n, nu) of actuators, for :func:`read`."""

    model: Model
    target: Array

    def lack(self, q: Array, rows: NDArray[np.intp]) -> Array:
        """Positions that are still missing (m, nu)."""
        return self.target[rows] - actuator_positions(self.model, q)

    def way(self, q: Array, lack: Array) -> Array:
        """Velocities (m, nv) towards the target, by least squares."""
        return _inverse_map(self.model, q, lack)


def _at_positions(model: Model, target: Array, q: Array) -> Array:
    """Configurations (n, nq) with these actuator positions; not-a-number where there is none."""
    bound = CONTRADICTS * np.maximum(1.0, np.abs(target).max(axis=-1, initial=0.0))
    reached, off = read(model, q, _Encoders(model, target))
    return np.where((off <= bound)[:, None], reached, np.nan)


def _at_rates(model: Model, q: Array, rates: Array) -> Array:
    """Velocities (n, nv) with these actuator rates; not-a-number where there are none."""
    v = _inverse_map(model, q, rates)
    error = np.abs(actuator_velocities(model, q, v) - rates).max(axis=-1, initial=0.0)
    bound = CONTRADICTS * np.maximum(1.0, np.abs(rates).max(axis=-1, initial=0.0))
    return np.where((error <= bound)[:, None], v, np.nan)


def _inverse_map(model: Model, q: Array, rates: Array) -> Array:
    """Velocities (n, nv) by least squares, the base at rest; not-a-number if some stay open."""
    free = slice(6 if model.floating_base is not None else 0, model.nv)
    matrix = np.swapaxes(actuator_map(model, q)[:, free], 1, 2)
    regular = np.asarray(np.isfinite(matrix).all(axis=(1, 2)))
    matrix = np.where(regular[:, None, None], matrix, 0.0)
    if not matrix.size:
        return np.where(matrix.shape[2], np.nan, np.zeros((len(q), model.nv)))
    closed = regular & (np.linalg.matrix_rank(matrix, rtol=SINGULAR) == matrix.shape[2])
    v = np.zeros((len(q), model.nv))
    v[:, free] = (np.linalg.pinv(matrix, rcond=NOTHING) @ rates[..., None])[..., 0]
    return np.where(closed[:, None], v, np.nan)


@documented
def reflected(model: Model, q: ArrayLike, **options: Unpack[Options]) -> Reflected:
    """Reflected inertia, damping and friction of each actuator on each independent velocity.

    For coordinate i and actuator n they are I b², d b² and f |b|, with b = B[i, n] of
    :func:`actuator_map` and I, d, f of the rotor (without a rotor the joint's armature, damping and
    friction). The inertia is that of the rotor's spin alone, I N² in textbooks; the mass matrix
    also couples spins with the motion of the bodies that carry rotors.

    Returns:
        reflected: The tuple (inertia, damping, friction), each (..., nv, nu).

    Examples:
        >>> model = rm.robots.load("belt_leg")
        >>> rm.dynamics.reflected(model, np.zeros(3)).inertia.shape
        (3, 3)
    """
    return Reflected(*run(model, "reflected", {"q": q}, **options))


@documented
def saturate(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    **options: Unpack[Options],
) -> tuple[Array, Array, Array]:
    """Torques within the limits of motors, for required torques that may exceed them.

    The motor forces of least norm with B u = tau are clipped, each to its effort limit and to what
    its torque-speed curve or velocity limit leaves at its rate Bᵀ v. Without a curve, driving force
    falls to zero over the last hundredth below the velocity limit. ``simulate`` and ``rollout``
    apply these torques with ``saturate=True``.

    Returns:
        tau: The required torques less B times ``lost`` (..., nv). Torques that no motor gives, on a
            floating base or a joint without an actuator, stay. Where a joint's own limit of effort
            is tighter than its motors', B ``u`` within it.
        u: Motor forces (..., nu), within their limits.
        lost: Excess of each motor's required force (..., nu); zero where it is not saturated.

    Examples:
        >>> model = rm.robots.load("parallel_ankle")
        >>> tau, u, rates = rm.dynamics.saturate(model, model.neutral(), np.zeros(2), [1e3, 0.0])
        >>> u
        array([2.5, 2.5])
    """
    torque, u, lost = run(model, "saturate", {"q": q, "v": v, "tau": tau}, **options)
    nan = np.isnan(as_array(v, model.nv, "v", "nv")).any(axis=-1)
    if np.any(nan):  # minima ignore not-a-number
        for result in (torque, u, lost):
            result[np.broadcast_to(nan, result.shape[:-1])] = np.nan
    return torque, u, lost


@documented
def torque_limits(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    losses: Losses | None = None,
    **options: Unpack[Options],
) -> tuple[Array, Array]:
    """Least and greatest force on each coordinate while those on all others are zero.

    From the actuators' effort limits (and stall torques) through gears and linkages at q. Zero
    where no motors can push a coordinate alone.

    Args:
        v: Velocities (..., nv); with them torque-speed curves count too: driving force falls
            linearly to zero at no-load speed; without a curve it is zero beyond the velocity limit.
            Braking force stays.
        losses: "forward": what arrives through lossy gears of motors that drive the joints;
            "back": loads on the joints that motors hold (infinite through self-locking gears).

    Returns:
        lower: Least forces (..., nv).
        upper: Greatest forces (..., nv).

    Examples:
        >>> model = rm.robots.load("parallel_ankle")
        >>> lower, upper = rm.torque_limits(model, model.neutral())
        >>> upper.round(2)
        array([45., 36.])
    """
    if losses is not None or options.get("backend") == "numpy":
        return _limits(model, q, v, losses, **options)
    rates = np.zeros(model.nv) if v is None else v
    with np.errstate(all="ignore"):
        least, most, doubt = run(model, "torque_limits", {"q": q, "v": rates}, **options)
    singular = doubt > 0.0
    if singular.any():
        options.pop("check", None)
        lower, upper = _limits(model, q, v, **options)
        least, most = np.where(singular, lower, least), np.where(singular, upper, most)
    return least, most


@documented
def torque_polytope(
    model: Model,
    q: ArrayLike,
    joints: Sequence[str] | str,
    v: ArrayLike | None = None,
    *,
    losses: Losses | None = None,
    **options: Unpack[Options],
) -> Array | list[Array]:
    """Corners of the torques that these coordinates can have together at q, all others zero.

    Args:
        joints: Names of independent coordinates (``model.dof_names``).
        v: Velocities (..., nv), as in :func:`torque_limits`.
        losses: "forward" or "back", as in :func:`torque_limits`.

    Returns:
        corners: (m, len(joints)), those of two coordinates counterclockwise; of a batch a list of
            such arrays, one for each state.

    Raises:
        ValueError: An actuator has no effort limit, or "back" is asked of one whose gear locks
            itself; arrays do not fit.
        UnknownNameError: A coordinate that is not known.

    Examples:
        >>> model = rm.robots.load("parallel_ankle")
        >>> rm.torque_polytope(model, model.neutral(), ["pitch", "roll"]).round(1)
        array([[-45.,  -0.],
               [  0., -36.],
               [ 45.,   0.],
               [  0.,  36.]])
    """
    chosen = actuation.selected(model, joints)
    found = _motors(model, q, v, losses, **options)
    actuation.needs_limits(model, *found[1:3])
    varied = _varied(model, options)
    shape, wide, low, high = efforts.broadcast(*efforts.joined(varied, *found))
    together = efforts.whole(varied)
    corners = [
        actuation.polytope(wide[n], chosen, low[n], high[n], together) for n in np.ndindex(*shape)
    ]
    return corners if shape else corners[0]


def _split(model: Model, losses: Losses | None, options: Options) -> dict[str, ArrayLike]:
    """The efficiencies among the parameters of ``options``, from which they are taken out."""
    named = {} if losses is None else by_name(options.get("parameters"), "parameters")
    gears = losses_among(model, as_parameters(model, named))
    if gears:
        options["parameters"] = {name: x for name, x in named.items() if name not in gears}
    return {name: named[name] for name in gears}


def torques(model: Model, q: ArrayLike, u: Array, **options: Unpack[Options]) -> Array:
    """Torques B u (..., nv) of motors' forces u (..., nu), within joints' own limits of effort."""
    matrix, _, _, gears = _motors(model, q, None, **options)
    varied = _varied(model, options)
    matrix, forces, _ = efforts.joined(varied, matrix, u, u, gears)
    result: Array = np.einsum("...ij,...j->...i", matrix, forces)
    for i in efforts.whole(varied):
        result[..., i] = as_number(efforts.bounded(varied, i, result[..., i]))
    return result


def _limits(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None,
    losses: Losses | None = None,
    **options: Unpack[Options],
) -> tuple[Array, Array]:
    """:func:`torque_limits` by singular values, at any state."""
    varied = _varied(model, options)
    found = efforts.joined(varied, *_motors(model, q, v, losses, **options))
    return actuation.limits(*found, varied)


def _varied(model: Model, options: Options) -> Model:
    """The model; with ``parameters`` one whose numbers are arguments: other limits may bind."""
    return replace(model, _nominal=model) if options.get("parameters") else model


def _motors(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None,
    losses: Losses | None = None,
    **options: Unpack[Options],
) -> tuple[Array, Array, Array, Array]:
    """B, the least and the greatest force of each actuator at the rates Bᵀ v, and its gear.

    With ``losses`` forces on the joint's side of its gear.
    """
    given = _split(model, losses, options)
    shares = None if losses is None else actuation.shares(model, losses, given)
    rates = np.zeros(model.nv) if v is None else as_array(v, model.nv, "v", "nv")
    with np.errstate(all="ignore"):
        matrix, low, high, gears = run(model, "motors", {"q": q, "v": rates}, **options)
    lost = np.isnan(np.einsum("...ij,...i->...j", matrix, rates))
    low, high = np.where(low < -UNLIMITED, -np.inf, low), np.where(high > UNLIMITED, np.inf, high)
    if shares is not None:
        low, high, shares = np.broadcast_arrays(low, high, shares)
        low, high = (
            np.multiply(x, shares, out=np.zeros_like(x), where=x != 0.0) for x in (low, high)
        )
    return matrix, np.where(lost, np.nan, low), np.where(lost, np.nan, high), gears
