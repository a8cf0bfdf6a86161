"""What gyroscopes and accelerometers on a link measure, and its derivatives.

Scalars of any kind; the derivatives differentiate a trace, so they run on traced scalars.
"""

from __future__ import annotations

from collections.abc import Sequence

from robomodel.dynamics.kinematics.frames import Place
from robomodel.dynamics.kinematics.state import State
from robomodel.dynamics.kinematics.tangents import Direction, position_directions
from robomodel.kernels.differentiate import differentiate
from robomodel.kernels.trace import Traced
from robomodel.model.graph import WORLD
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, transposed
from robomodel.spatial import ZERO, minus


def gyroscope(model: Model, q: Vector, v: Vector, at: Place) -> list[Scalar]:
    """Angular velocity of a frame in its own axes [rad/s]."""
    if at.body == WORLD:
        return [0.0, 0.0, 0.0]
    return list(at.pose.unrotate(State(model, q, (at.body,), v).omega[at.body]))


def accelerometer(model: Model, q: Vector, v: Vector, a: Vector, at: Place) -> list[Scalar]:
    """Specific force at a frame's origin in its axes [m/s²]: acceleration minus gravity.

    That of inverse dynamics: a body's points at r move with acceleration a + ([ω]x² + [α]x) r.
    """
    if at.body == WORLD:
        return list(at.pose.unrotate(minus(ZERO, model.gravity)))
    state = State(model, q, (at.body,), v)
    return list(list(state.points(state.accelerations(a)))[at.body].at(at.pose))


def gyroscope_derivatives(
    model: Model, q: Sequence[Traced], v: Sequence[Traced], at: Place
) -> list[list[Scalar]]:
    """The measurement (3), then its derivatives by q, in the tangent space, and v: rows of each."""
    directions = position_directions(model, q)
    directions += [{x: 1.0} for x in v]
    return _with_slopes(model.nv, gyroscope(model, q, v, at), directions, q)


def accelerometer_derivatives(
    model: Model, q: Sequence[Traced], v: Sequence[Traced], a: Sequence[Traced], at: Place
) -> list[list[Scalar]]:
    """The measurement (3), then its derivatives by q, in the tangent space, v and a."""
    directions = position_directions(model, q)
    directions += [{x: 1.0} for x in (*v, *a)]
    return _with_slopes(model.nv, accelerometer(model, q, v, a, at), directions, q)


def _with_slopes(
    nv: int, measured: list[Scalar], directions: Sequence[Direction], q: Sequence[Traced]
) -> list[list[Scalar]]:
    columns = differentiate(q[0].trace, measured, directions)
    parts = [row[i : i + nv] for i in range(0, len(directions), nv) for row in transposed(columns)]
    return [measured, *parts]
