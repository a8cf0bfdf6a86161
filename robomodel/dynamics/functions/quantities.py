"""Terms of the equations of motion, frames, the centre of mass and energy, for controllers.

Arguments, ``backend`` and ``check`` as in :mod:`robomodel.dynamics`. Names of Pinocchio's functions
are in parentheses; its spatial vectors have the linear part first, these the angular.
"""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics.algorithm import (
    ForceOptions,
    Options,
    algorithm,
    declare,
)
from robomodel.dynamics.kinematics import frames, momentum
from robomodel.dynamics.kinematics.frames import FrameLike, Reference
from robomodel.dynamics.kinematics.state import Forces, Matrix
from robomodel.dynamics.recursions import coriolis as recursion
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.passive import gravity_less_passive
from robomodel.dynamics.recursions.rnea import bias_force
from robomodel.model.model import Model
from robomodel.scalars import Factorization, Scalar, Vector

__all__ = [
    "center_of_mass",
    "center_of_mass_acceleration",
    "center_of_mass_jacobian",
    "center_of_mass_velocity",
    "centroidal_map",
    "centroidal_momentum",
    "coriolis",
    "energy",
    "frame_acceleration",
    "frame_bias",
    "frame_pose",
    "frame_velocity",
    "gravity_force",
    "jacobian",
    "mass_inverse",
]


def _bias(model: Model, q: Vector, v: Vector, at: frames.FramePlacement) -> tuple[Scalar, ...]:
    return frames.acceleration(model, q, v, [0.0] * model.nv, at)


def _pose(model: Model, q: Vector, at: frames.FramePlacement) -> list[Scalar]:
    return frames.homogeneous(*frames.pose(model, q, at))


@algorithm(_pose, pose=(4, 4))
def frame_pose(model: Model, q: ArrayLike, frame: FrameLike, **options: Unpack[Options]) -> Array:
    """The frame's pose in the world (Pinocchio: oMf).

    Returns:
        pose: Homogeneous matrix (..., 4, 4).

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> rm.frame_pose(model, q, "link2").shape
        (4, 4)
    """


@algorithm(frames.jacobian, J=(6, "nv"))
def jacobian(
    model: Model,
    q: ArrayLike,
    frame: FrameLike,
    *,
    reference: Reference = "local",
    **options: Unpack[Options],
) -> Array:
    """The frame's Jacobian J: its velocity is J v (computeFrameJacobian).

    Returns:
        J: The matrix (..., 6, nv), angular rows first.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> rm.jacobian(model, q, ("link2", (0.1, 0.0, 0.0))).shape
        (6, 1)
    """


@algorithm(frames.velocity, velocity=(6,))
def frame_velocity(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    frame: FrameLike,
    *,
    reference: Reference = "local",
    **options: Unpack[Options],
) -> Array:
    """The frame's velocity (getFrameVelocity).

    Returns:
        velocity: Spatial velocity (..., 6), angular first.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> J = rm.jacobian(model, q, "link2")
        >>> bool(np.allclose(rm.frame_velocity(model, q, [1.0], "link2"), J @ [1.0]))
        True
    """


@algorithm(frames.acceleration, acceleration=(6,))
def frame_acceleration(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    frame: FrameLike,
    *,
    reference: Reference = "local",
    **options: Unpack[Options],
) -> Array:
    """The frame's acceleration (getFrameClassicalAcceleration).

    The linear part is that of a point, the frame's origin, in the world: ẍ, not the spatial
    acceleration's ẍ - ω x ẋ; gravity is left out.

    Returns:
        acceleration: (..., 6), angular first.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> rm.frame_acceleration(model, q, [1.0], [0.5], "link2").shape
        (6,)
    """


@algorithm(_bias, acceleration=(6,))
def frame_bias(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    frame: FrameLike,
    *,
    reference: Reference = "local",
    **options: Unpack[Options],
) -> Array:
    """:func:`frame_acceleration` at a = 0: J̇ v of a point.

    frame_acceleration = jacobian · a + frame_bias, in any one ``reference``.

    Returns:
        acceleration: (..., 6), angular first.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> rm.dynamics.frame_bias(model, q, [1.0], "link2").shape
        (6,)
    """


# ---- sensors, for estimation ---------------------------------------------------------------------

declare(
    "gyroscope_derivatives",
    frames.gyroscope_derivatives,
    omega=(3,),
    domega_dq=(3, "nv"),
    domega_dv=(3, "nv"),
    by_trace=True,
)
declare(
    "accelerometer_derivatives",
    frames.accelerometer_derivatives,
    force=(3,),
    df_dq=(3, "nv"),
    df_dv=(3, "nv"),
    df_da=(3, "nv"),
    by_trace=True,
)


def _mass_inverse(model: Model, q: Vector) -> Matrix:
    return Factorization(crba(model, q)).inverse()


def _gravity_force(model: Model, q: Vector, f_ext: Forces) -> list[Scalar]:
    return bias_force(model, q, [0.0] * model.nv, f_ext)


# ---- terms of the equations of motion ------------------------------------------------------------


@algorithm(_gravity_force, tau=("nv",), passive=gravity_less_passive)
def gravity_force(model: Model, q: ArrayLike, **options: Unpack[ForceOptions]) -> Array:
    """The forces that hold the robot at rest (computeGeneralizedGravity).

    Args:
        f_ext: Link name → wrench (..., 6) on it, its moment first, in its own axes, held up as well
            (computeStaticTorque).
        passive: Forces of the file's springs are subtracted.

    Returns:
        tau: Forces (..., nv) on the independent coordinates.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> rm.gravity_force(model, q).shape
        (1,)
    """


@algorithm(recursion.coriolis, C=("nv", "nv"), by_trace=True)
def coriolis(model: Model, q: ArrayLike, v: ArrayLike, **options: Unpack[Options]) -> Array:
    """The Coriolis matrix C, C v + gravity_force = bias_force (computeCoriolisMatrix).

    Ṁ = C + Cᵀ along the motion, so that Ṁ - 2C is skew, and C is linear in v; gears, loops, rotors
    and armatures included. Among all such C it is the one without torsion: C(v) u = C(u) v between
    rates of coordinates, where it is made of the Christoffel symbols, and C(v) u - C(u) v = M [v,
    u] with the velocities of floating bases and ball joints. Echeandia and Wensing's recursion
    (2021), carried over to clusters.

    Returns:
        C: The matrix (..., nv, nv).

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> C = rm.coriolis(model, q, [1.0])
        >>> rest = rm.bias_force(model, q, [1.0]) - rm.gravity_force(model, q)
        >>> bool(np.allclose(C @ [1.0], rest))
        True
    """


@algorithm(_mass_inverse, Minv=("nv", "nv"))
def mass_inverse(model: Model, q: ArrayLike, **options: Unpack[Options]) -> Array:
    """Inverse of the joint-space inertia matrix (computeMinverse).

    Returns:
        inverse: M⁻¹ (..., nv, nv).

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> (rm.mass_inverse(model, q) @ rm.crba(model, q)).round(9)
        array([[1.]])
    """


# ---- energy, centre of mass, momentum ------------------------------------------------------------


@algorithm(momentum.energy, kinetic=(), potential=())
def energy(
    model: Model, q: ArrayLike, v: ArrayLike, **options: Unpack[Options]
) -> tuple[Array, Array]:
    """Kinetic and potential energy (computeKineticEnergy, computePotentialEnergy).

    The energy of the file's springs is part of the potential.

    Returns:
        kinetic: Kinetic energy (...) [J].
        potential: Potential energy (...) [J], zero at the world's origin.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> kinetic, potential = rm.energy(model, q, [1.0])
        >>> bool(np.isclose(kinetic, 0.5 * rm.crba(model, q)[0, 0]))
        True
    """


@algorithm(momentum.center_of_mass, com=(3,))
def center_of_mass(model: Model, q: ArrayLike, **options: Unpack[Options]) -> Array:
    """Centre of mass of all that moves (centerOfMass).

    Returns:
        position: (..., 3) [m], in the world.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> rm.center_of_mass(model, q).shape
        (3,)
    """


@algorithm(momentum.center_of_mass_velocity, velocity=(3,))
def center_of_mass_velocity(
    model: Model, q: ArrayLike, v: ArrayLike, **options: Unpack[Options]
) -> Array:
    """Velocity of the centre of mass (centerOfMass: vcom).

    Returns:
        velocity: (..., 3) [m/s], in world axes.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> J = rm.center_of_mass_jacobian(model, q)
        >>> bool(np.allclose(rm.dynamics.center_of_mass_velocity(model, q, [1.0]), J @ [1.0]))
        True
    """


@algorithm(momentum.center_of_mass_acceleration, acceleration=(3,))
def center_of_mass_acceleration(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, **options: Unpack[Options]
) -> Array:
    """Acceleration of the centre of mass; gravity is left out (acom).

    Returns:
        acceleration: (..., 3) [m/s²], in world axes.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> rm.dynamics.center_of_mass_acceleration(model, q, [1.0], [0.5]).shape
        (3,)
    """


@algorithm(momentum.center_of_mass_jacobian, J=(3, "nv"))
def center_of_mass_jacobian(model: Model, q: ArrayLike, **options: Unpack[Options]) -> Array:
    """Jacobian J of the centre of mass, which moves with J v (jacobianCenterOfMass).

    Returns:
        J: The matrix (..., 3, nv), in world axes.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> rm.center_of_mass_jacobian(model, q).shape
        (3, 1)
    """


@algorithm(momentum.centroidal_map, A=(6, "nv"))
def centroidal_map(model: Model, q: ArrayLike, **options: Unpack[Options]) -> Array:
    """Centroidal momentum matrix A: centroidal_momentum = A v (computeCentroidalMap).

    Returns:
        A: The matrix (..., 6, nv), angular rows first.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> rm.centroidal_map(model, q).shape
        (6, 1)
    """


@algorithm(momentum.centroidal_momentum, h=(6,))
def centroidal_momentum(
    model: Model, q: ArrayLike, v: ArrayLike, **options: Unpack[Options]
) -> Array:
    """Momentum about the centre of mass (computeCentroidalMomentum).

    Returns:
        momentum: (..., 6): angular about the centre of mass, then linear, in world axes.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> A = rm.centroidal_map(model, q)
        >>> bool(np.allclose(rm.dynamics.centroidal_momentum(model, q, [1.0]), A @ [1.0]))
        True
    """
