"""Poses, Jacobians, velocities and accelerations of frames.

Arguments, ``backend`` and ``check`` as in :mod:`robomodel.dynamics`. What Pinocchio calls it stands
in parentheses; its spatial vectors have the linear part first, these the angular.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from robomodel.dynamics.calling import Backend, run_one
from robomodel.dynamics.kinematics.frames import FrameLike, Reference, frame_key
from robomodel.model.joints import Array
from robomodel.model.model import Model

# ---- terms of the equations of motion ------------------------------------------------------------


def frame_pose(
    model: Model,
    q: ArrayLike,
    frame: FrameLike,
    *,
    backend: Backend = "compiled",
    check: bool = False,
) -> Array:
    """The frame's pose in the world (Pinocchio: oMf).

    Args:
        model: The robot.
        q: Configuration (..., nq).
        frame: A link's name, or (link, offset) for a point of it with the link's axes.
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.

    Returns:
        pose: Homogeneous matrix (..., 4, 4).

    Raises:
        ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
        UnknownNameError: A link that is not known.
    """
    return run_one(model, "frame_pose", {"q": q}, backend, frames=(frame_key(frame),), check=check)


def jacobian(
    model: Model,
    q: ArrayLike,
    frame: FrameLike,
    *,
    reference: Reference = "local",
    backend: Backend = "compiled",
    check: bool = False,
) -> Array:
    """The frame's Jacobian J: its velocity is J v (computeFrameJacobian).

    Args:
        model: The robot.
        q: Configuration (..., nq).
        frame: A link's name, or (link, offset) for a point of it with the link's axes.
        reference: As in Pinocchio: "local", at the frame's origin in its own axes;
            "local_world_aligned", at its origin in the world's axes; "world", of the point of its
            body that is at the world's origin, in the world's axes.
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.

    Returns:
        J: The matrix (..., 6, nv), angular rows first.

    Raises:
        ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
        UnknownNameError: A link that is not known.
    """
    arguments, key = {"q": q}, (frame_key(frame),)
    return run_one(
        model, "jacobian", arguments, backend, frames=key, reference=reference, check=check
    )


def frame_velocity(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    frame: FrameLike,
    *,
    reference: Reference = "local",
    backend: Backend = "compiled",
    check: bool = False,
) -> Array:
    """The frame's velocity (getFrameVelocity).

    Args:
        model: The robot.
        q: Configuration (..., nq).
        v: Velocities (..., nv) of the independent coordinates.
        frame: A link's name, or (link, offset) for a point of it with the link's axes.
        reference: Axes and point, as in :func:`jacobian`.
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.

    Returns:
        velocity: Spatial velocity (..., 6), angular first.

    Raises:
        ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
        UnknownNameError: A link that is not known.
    """
    arguments, key = {"q": q, "v": v}, (frame_key(frame),)
    return run_one(
        model, "frame_velocity", arguments, backend, frames=key, reference=reference, check=check
    )


def frame_acceleration(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    frame: FrameLike,
    *,
    reference: Reference = "local",
    backend: Backend = "compiled",
    check: bool = False,
) -> Array:
    """The frame's acceleration (getFrameClassicalAcceleration).

    The linear part is that of a point, the frame's origin, in the world: ẍ, not the spatial
    acceleration's ẍ - ω x ẋ; gravity is left out.

    Args:
        model: The robot.
        q: Configuration (..., nq).
        v: Velocities (..., nv) of the independent coordinates.
        a: Accelerations (..., nv) of the independent coordinates.
        frame: A link's name, or (link, offset) for a point of it with the link's axes.
        reference: Axes and point, as in :func:`jacobian`.
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.

    Returns:
        acceleration: (..., 6), angular first.

    Raises:
        ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
        UnknownNameError: A link that is not known.
    """
    arguments, key = {"q": q, "v": v, "a": a}, (frame_key(frame),)
    return run_one(
        model,
        "frame_acceleration",
        arguments,
        backend,
        frames=key,
        reference=reference,
        check=check,
    )


def frame_bias(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    frame: FrameLike,
    *,
    reference: Reference = "local",
    backend: Backend = "compiled",
    check: bool = False,
) -> Array:
    """:func:`frame_acceleration` at a = 0: what J a lacks, J̇ v of a point.

    frame_acceleration = jacobian · a + frame_bias, in any one ``reference``.

    Args:
        model: The robot.
        q: Configuration (..., nq).
        v: Velocities (..., nv) of the independent coordinates.
        frame: A link's name, or (link, offset) for a point of it with the link's axes.
        reference: Axes and point, as in :func:`jacobian`.
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.

    Returns:
        acceleration: (..., 6), angular first.

    Raises:
        ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
        UnknownNameError: A link that is not known.
    """
    arguments, key = {"q": q, "v": v}, (frame_key(frame),)
    return run_one(
        model, "frame_bias", arguments, backend, frames=key, reference=reference, check=check
    )


# ---- the whole robot -----------------------------------------------------------------------------
