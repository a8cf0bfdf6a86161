"""What controllers ask: terms of the equations of motion, the centre of mass, energy.

Arguments, ``backend`` and ``check`` as in :mod:`robomodel.dynamics`. What Pinocchio calls it stands
in parentheses; its spatial vectors have the linear part first, these the angular.
"""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from robomodel.dynamics.algorithms import Method
from robomodel.dynamics.calling import Backend, Wrenches, run, run_one
from robomodel.model.joints import Array
from robomodel.model.model import Model

# ---- terms of the equations of motion ------------------------------------------------------------


def gravity_force(
    model: Model,
    q: ArrayLike,
    *,
    f_ext: Wrenches | None = None,
    passive: bool = False,
    backend: Backend = "compiled",
    check: bool = False,
) -> Array:
    """The forces that hold the robot at rest (computeGeneralizedGravity).

    Args:
        model: The robot.
        q: Configuration (..., nq).
        f_ext: Link name → wrench (..., 6) on it, its moment first, in its own axes, held up as well
            (computeStaticTorque).
        passive: The file's springs help.
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.

    Returns:
        tau: Forces (..., nv) on the independent coordinates.

    Raises:
        ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
        UnknownNameError: A link that is not known.
    """
    return run_one(
        model, "gravity_force", {"q": q}, backend, f_ext=f_ext, passive=passive, check=check
    )


def coriolis(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    kind: Literal["factorization", "christoffel"] = "factorization",
    backend: Backend = "compiled",
    check: bool = False,
) -> Array:
    """The Coriolis matrix C, C v + gravity_force = bias_force (computeCoriolisMatrix).

    Ṁ = C + Cᵀ along the motion, so that Ṁ - 2C is skew, and C is linear in v; gears, loops, rotors
    and armatures included. Among all such C it is the one without torsion: C(v) u = C(u) v between
    rates of coordinates, where it is made of the Christoffel symbols, and C(v) u - C(u) v = M [v,
    u] with the velocities of floating bases and ball joints. Echeandia and Wensing's recursion
    (2021), carried over to clusters.

    Args:
        model: The robot.
        q: Configuration (..., nq).
        v: Velocities (..., nv) of the independent coordinates.
        kind: "factorization", the recursion; "christoffel" computes the same matrix from M's
            derivatives by those symbols, which takes many times as long (``rm.compile(model,
            "coriolis", method="christoffel")``).
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.

    Returns:
        C: The matrix (..., nv, nv).

    Raises:
        ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
    """
    if kind not in ("factorization", "christoffel"):
        raise ValueError(f"kind '{kind}' is not known; 'factorization' and 'christoffel' are")
    method: Method = "cluster" if kind == "factorization" else "christoffel"
    return run_one(model, "coriolis", {"q": q, "v": v}, backend, method=method, check=check)


def mass_inverse(
    model: Model, q: ArrayLike, *, backend: Backend = "compiled", check: bool = False
) -> Array:
    """Inverse of the joint-space inertia matrix (computeMinverse).

    Args:
        model: The robot.
        q: Configuration (..., nq).
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.

    Returns:
        inverse: M⁻¹ (..., nv, nv).

    Raises:
        ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
    """
    return run_one(model, "mass_inverse", {"q": q}, backend, check=check)


# ---- frames --------------------------------------------------------------------------------------


def energy(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    backend: Backend = "compiled",
    check: bool = False,
) -> tuple[Array, Array]:
    """Kinetic and potential energy (computeKineticEnergy, computePotentialEnergy).

    The energy of the file's springs is part of the potential.

    Args:
        model: The robot.
        q: Configuration (..., nq).
        v: Velocities (..., nv) of the independent coordinates.
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.

    Returns:
        kinetic: Kinetic energy (...) [J].
        potential: Potential energy (...) [J], zero at the world's origin.

    Raises:
        ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
    """
    kinetic, potential = run(model, "energy", {"q": q, "v": v}, backend, check=check)
    return kinetic, potential


def center_of_mass(
    model: Model, q: ArrayLike, *, backend: Backend = "compiled", check: bool = False
) -> Array:
    """Centre of mass of all that moves (centerOfMass).

    Args:
        model: The robot.
        q: Configuration (..., nq).
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.

    Returns:
        position: (..., 3) [m], in the world.

    Raises:
        ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
    """
    return run_one(model, "center_of_mass", {"q": q}, backend, check=check)


def center_of_mass_velocity(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    backend: Backend = "compiled",
    check: bool = False,
) -> Array:
    """Velocity of the centre of mass (centerOfMass: vcom).

    Args:
        model: The robot.
        q: Configuration (..., nq).
        v: Velocities (..., nv) of the independent coordinates.
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.

    Returns:
        velocity: (..., 3) [m/s], in world axes.

    Raises:
        ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
    """
    arguments = {"q": q, "v": v}
    return run_one(model, "center_of_mass_velocity", arguments, backend, check=check)


def center_of_mass_acceleration(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    backend: Backend = "compiled",
    check: bool = False,
) -> Array:
    """Acceleration of the centre of mass, without gravity's (acom).

    Args:
        model: The robot.
        q: Configuration (..., nq).
        v: Velocities (..., nv) of the independent coordinates.
        a: Accelerations (..., nv) of the independent coordinates.
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.

    Returns:
        acceleration: (..., 3) [m/s²], in world axes.

    Raises:
        ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
    """
    arguments = {"q": q, "v": v, "a": a}
    return run_one(model, "center_of_mass_acceleration", arguments, backend, check=check)


def center_of_mass_jacobian(
    model: Model, q: ArrayLike, *, backend: Backend = "compiled", check: bool = False
) -> Array:
    """Jacobian J of the centre of mass, which moves with J v (jacobianCenterOfMass).

    Args:
        model: The robot.
        q: Configuration (..., nq).
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.

    Returns:
        J: The matrix (..., 3, nv), in world axes.

    Raises:
        ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
    """
    return run_one(model, "center_of_mass_jacobian", {"q": q}, backend, check=check)


def centroidal_map(
    model: Model, q: ArrayLike, *, backend: Backend = "compiled", check: bool = False
) -> Array:
    """Centroidal momentum matrix A: centroidal_momentum = A v (computeCentroidalMap).

    Args:
        model: The robot.
        q: Configuration (..., nq).
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.

    Returns:
        A: The matrix (..., 6, nv), angular rows first.

    Raises:
        ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
    """
    return run_one(model, "centroidal_map", {"q": q}, backend, check=check)


def centroidal_momentum(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    backend: Backend = "compiled",
    check: bool = False,
) -> Array:
    """Momentum about the centre of mass (computeCentroidalMomentum).

    Args:
        model: The robot.
        q: Configuration (..., nq).
        v: Velocities (..., nv) of the independent coordinates.
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.

    Returns:
        momentum: (..., 6): angular about the centre of mass, then linear, in world axes.

    Raises:
        ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
    """
    return run_one(model, "centroidal_momentum", {"q": q, "v": v}, backend, check=check)
