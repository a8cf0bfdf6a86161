"""Measurements: further rows of the system, exact or with covariances (Nori, section VI).

A sensor measures components of variables; its reading is given with the state. Components are
numbered 0, 1, 2 for moments or rotations and 3, 4, 5 for forces or translations, in the axes of
the named frame.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robomodel.dynamics.kinematics.frames import FrameKey, FrameLike, frame_key, place
from robomodel.dynamics.kinematics.state import Matrix, State
from robomodel.errors import did_you_mean
from robomodel.instants.equations import LinearFactor, diagonal_block, loop_wrenches
from robomodel.mechanism.constraints import LoopConstraint
from robomodel.mechanism.graph import WORLD
from robomodel.model.arguments import as_numbers
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, dot, transposed, value_of
from robomodel.spatial import (
    NO_WRENCH,
    UNIT_MOTIONS,
    UNIT_WRENCHES,
    ZERO,
    Motion,
    Transform,
    Wrench,
    apply,
    cross,
    inner,
    minus,
    plus,
)

SIX = (0, 1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True)
class Sensor:
    """A measurement: its kind, location, components and covariance.

    ``covariance``: of the components, by rows; None for an exact sensor. ``reads``: whether a
    reading is given with the state, or is always zero. Created by the functions of this module.
    """

    name: str
    kind: str
    at: FrameKey
    components: tuple[int, ...]
    covariance: tuple[tuple[float, ...], ...] | None
    reads: bool = True

    @property
    def size(self) -> int:
        """Number of components."""
        return len(self.components)

    def factor(self, state: State, names: Sequence[str], reading: Sequence[Scalar]) -> LinearFactor:
        """The rows at a state; ``names`` are the names of the bodies' segments."""
        blocks, constant = _READ[self.kind](self, state, names)
        constant = [c + (-x) for c, x in zip(constant, reading, strict=True)]
        if self.covariance is None:
            return LinearFactor(self.name, "measurement", blocks, constant)
        lower = np.linalg.cholesky(np.array(self.covariance))
        if np.count_nonzero(lower - np.diag(np.diag(lower))) == 0:
            deviation = tuple(float(x) for x in np.diag(lower))
            return LinearFactor(self.name, "measurement", blocks, constant, deviation=deviation)
        whiten = np.linalg.inv(lower).tolist()
        blocks = {
            name: [[dot(w, column) for column in zip(*rows, strict=True)] for w in whiten]
            for name, rows in blocks.items()
        }
        constant = [dot(w, constant) for w in whiten]
        ones = (1.0,) * self.size
        return LinearFactor(self.name, "measurement", blocks, constant, deviation=ones)


Reading = tuple[dict[str, Matrix], list[Scalar]]
Covariance = Any  # None, a variance, variances, or a matrix


def torque(joint: str, *, covariance: Covariance = None, size: int = 1) -> Sensor:
    """A joint's torque or force, ``tau[joint]`` [N m, N]."""
    return _sensor(f"torque of {joint}", "tau", joint, tuple(range(size)), covariance)


def joint_acceleration(joint: str, *, covariance: Covariance = None, size: int = 1) -> Sensor:
    """A joint's acceleration, ``qdd[joint]`` [rad/s², m/s²]."""
    return _sensor(f"acceleration of {joint}", "qdd", joint, tuple(range(size)), covariance)


def accelerometer(
    frame: FrameLike, *, components: Sequence[int] = (3, 4, 5), covariance: Covariance = None
) -> Sensor:
    """Acceleration of a frame less gravity [m/s²], in its axes, as accelerometers measure it."""
    return _sensor(f"accelerometer on {_label(frame)}", "acceleration", frame_key(frame),
                   components, covariance)  # fmt: skip


def gyroscope(
    frame: FrameLike, *, components: Sequence[int] = (0, 1, 2), covariance: Covariance = None
) -> Sensor:
    """Angular acceleration of a frame [rad/s²], the derivative of a gyroscope's signal.

    The signal itself, the angular velocity, is part of the state.
    """
    return _sensor(f"gyroscope on {_label(frame)}", "acceleration", frame_key(frame),
                   components, covariance)  # fmt: skip


def force_torque(
    link: str, *, components: Sequence[int] = SIX, covariance: Covariance = None
) -> Sensor:
    """Components of the wrench on a link through its joint [N m, N], in the link's axes."""
    return _sensor(f"force-torque sensor of {link}", "wrench", link, components, covariance)


def contact(
    frame: FrameLike, *, components: Sequence[int] = SIX, covariance: Covariance = None
) -> Sensor:
    """Components of the external wrench on a frame's body [N m, N], about the frame, in its axes.

    Load cells under a sole of normal z measure (5, 0, 1): normal force and tangential moments.
    """
    return _sensor(f"contact at {_label(frame)}", "external", frame_key(frame), components,
                   covariance)  # fmt: skip


def planar(loop: str) -> Sensor:
    """No force along a loop joint's axis and no moment across it, as in a planar linkage.

    The three conditions determine the multipliers of the loop's redundant rows (Xie and Dellaert,
    section VII); for problems with ``loops="all"``.
    """
    return replace(_sensor(f"planar {loop}", "planar", loop, (0, 1, 2), None), reads=False)


def minimum_torque(joint: str, *, deviation: float = 1.0, size: int = 1) -> Sensor:
    """τ = 0 in the sense of least squares, which makes redundant actuation unique.

    Torques are distributed so that Σ (τ / deviation)² is minimal (Xie and Dellaert).
    """
    sensor = _sensor(f"minimum torque of {joint}", "tau", joint, tuple(range(size)), deviation**2)
    return replace(sensor, reads=False)


def _label(frame: FrameLike) -> str:
    return frame if isinstance(frame, str) else frame[0]


def _sensor(
    name: str, kind: str, at: FrameKey, components: Sequence[int], covariance: Covariance
) -> Sensor:
    k = len(components)
    if len(set(components)) != k or not set(components) <= set(SIX):
        raise ValueError(f"{name}: components are some of 0 to 5, each once, not {components}")
    if covariance is None:
        return Sensor(name, kind, at, tuple(components), None)
    numbers = as_numbers(covariance, "covariance")
    full = numbers if numbers.ndim == 2 else np.diag(np.broadcast_to(numbers, (k,)))
    if full.shape != (k, k) or not np.allclose(full, full.T):
        raise ValueError(f"{name}: covariance is a number, {k} numbers or symmetric {k} by {k}")
    if np.linalg.eigvalsh(full)[0] <= 0.0:
        raise ValueError(f"{name}: covariance is not positive definite; leave it out if exact")
    rows = tuple(tuple(float(x) for x in row) for row in full)
    return Sensor(name, kind, at, tuple(components), rows)


# ---- rows ----------------------------------------------------------------------------------------


def motion_at(motion: Motion, pose: Transform, centripetal: Any = None) -> Motion:
    """The conventional acceleration of a frame placed by ``pose`` on a body, in its axes."""
    linear = plus(motion.linear, cross(motion.angular, pose.offset))
    if centripetal is not None:
        linear = plus(linear, apply(centripetal, pose.offset))
    return Motion(pose.unrotate(motion.angular), pose.unrotate(linear))


def wrench_at(wrench: Wrench, pose: Transform) -> Wrench:
    """A wrench about the origin of a frame placed by ``pose``, in its axes."""
    moment = minus(wrench.moment, cross(pose.offset, wrench.force))
    return Wrench(pose.unrotate(moment), pose.unrotate(wrench.force))


def in_link_axes(name: str, size: int, state: State) -> LinearFactor:
    """A variable about its link's origin, in the link's axes, as rows on the internal variable."""
    kind, _, owner = name.partition("[")
    link = owner[:-1]
    if kind not in ("a", "f", "fx", "net") or ":" in link:
        unit = diagonal_block(1.0, size)
        return LinearFactor(f"{name} itself", "output", {name: unit}, [0.0] * size)
    at = place(state.model, link)
    constant: Sequence[Scalar] = [0.0] * 6
    if kind == "a":
        columns = [motion_at(m, at.pose).entries() for m in UNIT_MOTIONS]
        if any(not math.isclose(value_of(x), 0.0, abs_tol=0.0) for x in at.pose.offset):
            around = state.centripetal[at.body]
            constant = motion_at(Motion(ZERO, ZERO), at.pose, around).entries()
    else:
        columns = [wrench_at(f, at.pose).entries() for f in UNIT_WRENCHES]
    return LinearFactor(f"{name} itself", "output", {name: transposed(columns)}, constant)


def in_internal_axes(model: Model, values: Mapping[str, Vector]) -> dict[str, Vector]:
    """Values of variables, with external wrenches about bodies' origins in their internal axes."""
    return {
        name: model.frame(name[3:-1]).pose.to_parent(Wrench.of(x)).entries()
        if name.startswith("fx[")
        else x
        for name, x in values.items()
    }


def _joint(sensor: Sensor, _state: State, _names: Sequence[str]) -> Reading:
    unit = diagonal_block(1.0, sensor.size)
    return {f"{sensor.kind}[{sensor.at}]": unit}, [0.0] * sensor.size


def _acceleration(sensor: Sensor, state: State, names: Sequence[str]) -> Reading:
    at = place(state.model, sensor.at)
    if at.body == WORLD:
        raise ValueError(f"{sensor.name}: the link is fixed to the world, which does not move")
    columns = [motion_at(m, at.pose).entries() for m in UNIT_MOTIONS]
    still = motion_at(Motion(ZERO, ZERO), at.pose, state.centripetal[at.body]).entries()
    rows = [[column[c] for column in columns] for c in sensor.components]
    return {f"a[{names[at.body]}]": rows}, [still[c] for c in sensor.components]


def _wrench(sensor: Sensor, state: State, names: Sequence[str]) -> Reading:
    at = place(state.model, sensor.at)
    if at.body == WORLD:
        raise ValueError(f"{sensor.name}: the link is fixed to the world")
    columns = [wrench_at(f, at.pose).entries() for f in UNIT_WRENCHES]
    rows = [[column[c] for column in columns] for c in sensor.components]
    kind = "f" if sensor.kind == "wrench" else "fx"
    return {f"{kind}[{names[at.body]}]": rows}, [0.0] * sensor.size


def _planar(sensor: Sensor, state: State, _names: Sequence[str]) -> Reading:
    for cluster in state.model.clusters:
        if not isinstance(cluster.constraint, LoopConstraint):
            continue
        for loop in cluster.geometry.loop_joints:
            if loop.name != sensor.at:
                continue
            side = 1 if loop.branches[1] else 0
            anchor = (loop.predecessor, loop.successor)[side]
            body = cluster.bodies[loop.branches[side][-1]]
            wrenches, _ = loop_wrenches(state, cluster, loop, range(len(loop.rows)))
            rows: Matrix = [[], [], []]
            for row in wrenches:
                wrench = row.get(body, NO_WRENCH)
                moment = minus(wrench.moment, cross(anchor.point, wrench.force))
                rows[0].append(inner(anchor.axes[1], moment))
                rows[1].append(inner(anchor.axes[2], moment))
                rows[2].append(inner(anchor.axes[0], wrench.force))
            return {f"lambda[{loop.name}]": rows}, [0.0] * 3
    names = [loop.name for loop in state.model.loops]
    raise ValueError(f"there is no loop '{sensor.at}'{did_you_mean(str(sensor.at), names)}")


_READ = {
    "tau": _joint,
    "qdd": _joint,
    "acceleration": _acceleration,
    "wrench": _wrench,
    "external": _wrench,
    "planar": _planar,
}
