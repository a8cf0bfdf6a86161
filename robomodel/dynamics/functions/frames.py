"""Poses, Jacobians, velocities and accelerations of frames.

Arguments, ``backend`` and ``check`` as in :mod:`robomodel.dynamics`. What Pinocchio calls it stands
in parentheses; its spatial vectors have the linear part first, these the angular.
"""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from robomodel.dynamics.algorithm import declare
from robomodel.dynamics.declaration import Options, algorithm
from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.frames import FrameLike, Reference
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector

__all__ = ["frame_acceleration", "frame_bias", "frame_pose", "frame_velocity", "jacobian"]


def _bias(model: Model, q: Vector, v: Vector, at: frames.Place) -> tuple[Scalar, ...]:
    return frames.acceleration(model, q, v, [0.0] * model.nv, at)


def _pose(model: Model, q: Vector, at: frames.Place) -> list[Scalar]:
    rotation, origin = frames.pose(model, q, at)
    top = [x for row, o in zip(rotation, origin, strict=True) for x in (*row, o)]
    return [*top, 0.0, 0.0, 0.0, 1.0]


@algorithm(_pose, pose=(4, 4))
def frame_pose(model: Model, q: ArrayLike, frame: FrameLike, **options: Unpack[Options]) -> Array:
    """The frame's pose in the world (Pinocchio: oMf).

    Returns:
        pose: Homogeneous matrix (..., 4, 4).
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
    """:func:`frame_acceleration` at a = 0: what J a lacks, J̇ v of a point.

    frame_acceleration = jacobian · a + frame_bias, in any one ``reference``.

    Returns:
        acceleration: (..., 6), angular first.
    """


# ---- of sensors, by estimation -------------------------------------------------------------------

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
