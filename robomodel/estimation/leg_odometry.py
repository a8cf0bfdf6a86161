"""State of a walking robot from stance feet, an inertial unit with biases, and encoders.

The state of Bloesch et al. (*State estimation for legged robots: consistent fusion of leg
kinematics and IMU*, RSS 2012) as a graph over time, smoothed incrementally: rotation, position and
velocity of the inertial unit, its biases, and the positions of the feet. Stance feet do not move;
their positions relative to the unit follow from the encoders. Yaw and position are not observable
and drift; everything else is observable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array, Mask
from robomodel.dynamics import frame_pose, jacobian
from robomodel.dynamics.kinematics.frames import FrameKey, FrameLike, frame_keys
from robomodel.errors import as_real, check_names, no_model
from robomodel.estimation.factors import Equal, Errors, FactorBase, Prior, States, TracedFactor
from robomodel.estimation.graph import Noise, diagonal, exact
from robomodel.estimation.incremental import Incremental
from robomodel.estimation.spaces import Rotations, Space, Vectors
from robomodel.mechanism.joints import Spherical
from robomodel.model.arguments import as_array, as_numbers
from robomodel.model.model import Model
from robomodel.motion.integrator_functions import function
from robomodel.scalars import Scalar, Vector, added, dot, subtracted
from robomodel.spatial.rotations import from_quaternion

MOVED = {"rotation": 5e-3, "bias": 0.1}  # thresholds of relinearisation [rad; rad/s, m/s²]
SWING = 1.0  # [m/√s]: random walk of a swing foot, so that it may soon be anywhere
TURN = Spherical()


@dataclass(frozen=True, slots=True)
class LegNoise:
    """Standard deviations of the sensors and models of :func:`leg_odometry`.

    Attributes:
        gyroscope: Of a sample [rad/s].
        accelerometer: Of a sample [m/s²].
        gyroscope_bias: Initial deviation of the bias [rad/s].
        accelerometer_bias: Initial deviation of the bias [m/s²].
        drift: Random change of the biases in 1000 s, as a fraction of the latter two.
        encoders: Of a sample [rad, m].
        kinematics: Of a foot's position in the inertial unit's axes, by model errors [m].
        slip: Random walk of a stance foot [m/√s].
        slipping: Number of deviations by which a foot must move to count as slipping.
    """

    gyroscope: float = 2e-3
    accelerometer: float = 5e-2
    gyroscope_bias: float = 5e-2
    accelerometer_bias: float = 0.5
    drift: float = 0.1
    encoders: float = 5e-4
    kinematics: float = 5e-4
    slip: float = 3e-3
    slipping: float = 5.0


@dataclass(frozen=True, eq=False)
class LegOdometry:
    """The smoothed motion of a walking robot.

    Attributes:
        model: The robot.
        q: Configurations (T, nq).
        v: Velocities (T, nv).
        covariance: Covariance of the unit's rotation [rad, its axes], position [m], velocity [m/s]
            in the world (T, 9, 9).
        gyroscope_bias: Bias of the gyroscope at the end (3,) [rad/s].
        accelerometer_bias: Bias of the accelerometer at the end (3,) [m/s²].
        slipping: Feet (T, k) that should stand, by ``standing``, and slipped.
    """

    model: Model
    q: Array
    v: Array
    covariance: Array
    gyroscope_bias: Array
    accelerometer_bias: Array
    slipping: Mask


def leg_odometry(
    model: Model,
    step: float,
    *,
    q: ArrayLike,
    imu: str,
    gyroscope: ArrayLike,
    accelerometer: ArrayLike,
    encoders: ArrayLike,
    feet: Sequence[FrameLike],
    standing: ArrayLike,
    noise: LegNoise | Mapping[str, float] | None = None,
) -> LegOdometry:
    """Estimate the motion of a walking robot from its sensors.

    Samples are ``step`` seconds apart; in between, angular velocities and accelerations are linear.
    A stance foot that moves counts as a swing foot for that step, and is marked in ``slipping``.

    Args:
        model: The robot, with a floating base.
        step: Time between samples [s].
        q: Configuration (nq,) at the start, at rest.
        imu: The inertial unit's link.
        gyroscope: Angular velocities (T, 3) in the link's axes, with an unknown constant bias
            [rad/s].
        accelerometer: Accelerations less gravity (T, 3) of the link's origin in its axes, with an
            unknown constant bias [m/s²].
        encoders: Positions (T, nv - 6) in the order of ``dof_names[6:]``.
        feet: The feet: links, or (link, offset).
        standing: Whether each foot stands (T, k).
        noise: Standard deviations: :class:`LegNoise`, or by name those that differ from its
            defaults.

    Returns:
        motion: q and v, covariances, biases, and which feet slipped.

    Raises:
        ValueError: The robot has no floating base, joints have several freedoms, arrays do not fit,
            or a name of the noise is unknown.
        UnknownNameError: A link is not in the model.
    """
    if not isinstance(model, Model):
        raise no_model(model)
    if not 0.0 < as_real(step, "step") < math.inf:
        raise ValueError(f"step must be positive, got {step!r}")
    keys = frame_keys(list(feet))
    for frame in (imu, *keys):
        model.frame(frame if isinstance(frame, str) else frame[0])
    assumed = _noise(noise)
    start = as_array(q, model.nq, "q", "nq")
    model.check(start)
    angles = _shaped(encoders, "encoders", (None, model.nv - 6))
    count = len(angles)
    rates = _shaped(gyroscope, "gyroscope", (count, 3))
    forces = _shaped(accelerometer, "accelerometer", (count, 3))
    stands = _shaped(np.asarray(standing, dtype=float), "standing", (count, len(keys))) > 0.0
    legs = _Legs.of(model, start, imu, keys, angles, assumed)
    smoother, slipping = _smoothed(model, float(step), legs, rates, forces, stands, assumed)
    return _result(model, float(step), imu, legs, rates, smoother, slipping)


def _noise(noise: LegNoise | Mapping[str, float] | None) -> LegNoise:
    if isinstance(noise, LegNoise):
        return noise
    names = [each.name for each in fields(LegNoise)]
    changed = dict(noise or {})
    check_names(changed, names, "no noise ")
    for name, value in changed.items():
        if not 0.0 < as_real(value, name) < math.inf:
            raise ValueError(f"the noise '{name}' must be positive, got {value!r}")
    return replace(LegNoise(), **changed)


def _shaped(x: ArrayLike, name: str, shape: tuple[int | None, int]) -> Array:
    array = as_numbers(x, name)
    if array.ndim != 2 or array.shape[1] != shape[1] or shape[0] not in (None, len(array)):
        rows = "T" if shape[0] is None else shape[0]
        raise ValueError(f"{name} needs shape ({rows}, {shape[1]}), got {array.shape}")
    if not len(array) or not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite, and one sample or more")
    return array


# ---- factors -------------------------------------------------------------------------------------


def inertial_step(model: Model, step: float) -> TracedFactor:
    """The motion during a ``step`` [s] from gyroscope and accelerometer.

    Data: the mean angular velocity (3,), and both ends' accelerations less gravity (3,), (3,).
    Errors of rotation, position and velocity by the trapezoidal rule.
    """

    def build(r0: Vector, r1: Vector, p0: Vector, p1: Vector, v0: Vector, v1: Vector,
              bias: Vector, data: Vector) -> list[Scalar]:  # fmt: skip
        ahead = _ahead(model, step, r0, p0, v0, bias, data, end=r1, velocity_end=v1)
        return [
            *TURN.displacement(ahead[:4], r1),
            *subtracted(p1, ahead[4:7]),
            *subtracted(v1, ahead[7:]),
        ]

    turn, three = Rotations(model), Vectors(3)
    kinds: dict[str, Space] = {"rotation": turn, "position": three, "velocity": three}
    states: States = {(name, at): space for name, space in kinds.items() for at in (0, 1)}
    return TracedFactor(
        model, f"inertial step {step!r}", {**states, "bias": Vectors(6)}, 9, build, 9,
        ("position", "velocity"),
    )  # fmt: skip


def _ahead(
    model: Model,
    step: float,
    rotation: Vector,
    position: Vector,
    velocity: Vector,
    bias: Vector,
    data: Vector,
    *,
    end: Vector | None = None,
    velocity_end: Vector | None = None,
) -> list[Scalar]:
    """Rotation, position and velocity after a step; ``end``: the rotation there, if known."""
    turn = [step * x for x in subtracted(data[:3], bias[:3])]
    turned = TURN.moved(rotation, turn)
    total: list[Scalar] = [2.0 * g for g in model.gravity]
    for q, first in ((rotation, 3), (turned if end is None else end, 6)):
        x, y, z = subtracted(data[first : first + 3], bias[3:])
        total = added(total, from_quaternion(q[0], q[1], q[2], q[3]).rotate((x, y, z)))
    faster = added(velocity, [0.5 * step * x for x in total])
    mean = added(velocity, faster if velocity_end is None else velocity_end)
    return [*turned, *added(position, [0.5 * step * x for x in mean]), *faster]


def feet_beside(model: Model, count: int) -> TracedFactor:
    """Positions of ``count`` feet relative to the inertial unit, in its axes: Rᵀ (foot - position).

    Data: the positions from the encoders (3k,), and for each foot the whitening L⁻¹ (9,) of its
    covariance L Lᵀ.
    """

    def build(q: Vector, position: Vector, feet: Vector, data: Vector) -> list[Scalar]:
        turn = from_quaternion(q[0], q[1], q[2], q[3])
        whiten = data[3 * count :]
        errors: list[Scalar] = []
        for i in range(count):
            a, b, c = subtracted(feet[3 * i : 3 * i + 3], position)
            off = subtracted(turn.unrotate((a, b, c)), data[3 * i : 3 * i + 3])
            errors += [dot(whiten[9 * i + 3 * r : 9 * i + 3 * r + 3], off) for r in range(3)]
        return errors

    states: States = {
        "rotation": Rotations(model),
        "position": Vectors(3),
        "feet": Vectors(3 * count),
    }
    return TracedFactor(
        model, f"feet beside {count}", states, 3 * count, build, 12 * count, ("position", "feet")
    )


@dataclass(frozen=True)
class FeetStay(FactorBase):
    """Feet do not move between times; ``data``: reciprocal standard deviations (3k,) [1/m]."""

    count: int

    def __post_init__(self) -> None:
        self._describe((("feet", 0), ("feet", 1)), 3 * self.count, ("feet",))

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """The error, whitened by the data, which are required."""
        assert data is not None
        slope = data[..., None] * np.eye(self.rows)
        return data * (x[1] - x[0]), [-slope, slope]


def _times(matrix: Array, x: Array) -> Array:
    return np.asarray((matrix @ x[..., None])[..., 0])


# ---- the estimate --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Legs:
    """Kinematics from the encoders: configurations (T, nq) with the base at its start, and feet.

    ``beside`` (T, 3k): feet in the inertial unit's axes; ``whiten`` (T, k, 3, 3) and ``spread``
    (T, k) [m] of their errors. ``rotation`` (4,), ``position`` (3,) of the unit at the start.
    """

    q: Array
    beside: Array
    whiten: Array
    spread: Array
    rotation: Array
    position: Array

    @classmethod
    def of(
        cls,
        model: Model,
        start: Array,
        imu: str,
        feet: tuple[FrameKey, ...],
        angles: Array,
        noise: LegNoise,
    ) -> _Legs:
        from scipy.spatial.transform import Rotation

        joints = dict(zip(model.joint_names, model.joints, strict=True))
        names = model.dof_names[6:]
        base = model.floating_base
        if base is None or not all(name.startswith(f"{base}.") for name in model.dof_names[:6]):
            raise ValueError(f"'{model.name}' has no floating base: it cannot walk")
        if several := [name for name in names if name not in joints or joints[name].nv != 1]:
            raise ValueError(f"'{several[0]}' is of a joint with several freedoms: no encoder")
        if not feet:
            raise ValueError("feet: one or more are needed")
        at = model.joint_positions(start)
        before, q = np.array([at[name] for name in names]), start
        rows = np.empty((len(angles), model.nq))
        for t, now in enumerate(angles):
            q = rows[t] = model.integrate(q, np.concatenate([np.zeros(6), now - before]))
            before = now
        unit, turning = frame_pose(model, rows, imu), jacobian(model, rows, imu)[..., 6:]
        back = np.swapaxes(unit[:, :3, :3], 1, 2)
        beside, whiten, spread = [], [], []
        for foot in feet:
            away = frame_pose(model, rows, foot)[:, :3, 3] - unit[:, :3, 3]
            pose = frame_pose(model, rows, foot)[:, :3, :3]
            moved = back @ pose @ jacobian(model, rows, foot)[:, 3:, 6:] - turning[:, 3:]
            seen = _times(back, away)
            moved = moved + np.cross(seen[:, :, None], turning[:, :3], axis=1)
            sigma = noise.encoders**2 * moved @ np.swapaxes(moved, 1, 2)
            sigma = sigma + noise.kinematics**2 * np.eye(3)
            beside.append(seen)
            whiten.append(np.linalg.inv(np.linalg.cholesky(sigma)))
            spread.append(np.sqrt(np.trace(sigma, axis1=1, axis2=2)))
        first = frame_pose(model, start, imu)
        return cls(
            rows, np.concatenate(beside, axis=1), np.stack(whiten, axis=1),
            np.stack(spread, axis=1), Rotation.from_matrix(first[:3, :3]).as_quat(),
            first[:3, 3],
        )  # fmt: skip

    def data(self, t: int) -> Array:
        """The data of :func:`feet_beside` at a time."""
        return np.concatenate([self.beside[t], self.whiten[t].ravel()])

    def placed(self, t: int, rotation: Array, position: Array) -> Array:
        """Positions of the feet (k, 3) in the world, given the pose of the inertial unit."""
        from scipy.spatial.transform import Rotation

        away: Array = Rotation.from_quat(rotation).apply(self.beside[t].reshape(-1, 3))
        return position + away


def _smoothed(
    model: Model,
    step: float,
    legs: _Legs,
    rates: Array,
    forces: Array,
    standing: Mask,
    noise: LegNoise,
) -> tuple[Incremental, Mask]:
    """Smooth time by time; returns the smoother and which feet slipped."""
    count, k = standing.shape
    spaces: dict[str, Space] = {
        "rotation": Rotations(model), "position": Vectors(3), "velocity": Vectors(3),
        "bias": Vectors(6), "feet": Vectors(3 * k),
    }  # fmt: skip
    # the last 20 times may be linearised again
    smoother = Incremental(spaces, threshold=MOVED, lag=20)
    moves, beside, stay = inertial_step(model, step), feet_beside(model, k), FeetStay(k)

    def build(*x: Vector) -> list[Scalar]:
        return _ahead(model, step, x[0], x[1], x[2], x[3], x[4])

    follow = function(model, f"inertial motion {step!r}", (4, 3, 3, 6, 9, 10), build)
    change = step * np.repeat([noise.gyroscope, step * noise.accelerometer, noise.accelerometer], 3)
    sure = np.repeat([noise.gyroscope_bias, noise.accelerometer_bias], 3)
    inertial, white = diagonal(change), diagonal(np.ones(3 * k))
    wander = diagonal(noise.drift * sure * math.sqrt(step / 1e3))
    constant = Equal("bias", Vectors(6))
    weights = 1.0 / (math.sqrt(step) * np.array([SWING, noise.slip]))
    slipping = np.zeros((count, k), dtype=bool)
    placed = legs.placed(0, legs.rotation, legs.position)
    first = {"rotation": legs.rotation, "position": legs.position, "velocity": np.zeros(3)}
    bias = np.concatenate([rates[0], np.zeros(3)])  # at rest, the gyroscope's output is its bias
    smoother.advance({**first, "bias": bias, "feet": placed.ravel()})
    for name, value in first.items():
        smoother.add(Prior(name, spaces[name]), exact(3), value, time=0)
    smoother.add(Prior("bias", spaces["bias"]), diagonal(sure), np.zeros(6), time=0)
    seen = Noise(np.repeat([noise.gyroscope, noise.accelerometer_bias], 3))
    smoother.add(Prior("bias", spaces["bias"]), seen, bias, time=0)
    smoother.add(beside, white, legs.data(0), time=0)
    smoother.update()
    for t in range(1, count):
        last = smoother.newest
        mean = 0.5 * (rates[t - 1] + rates[t])
        data = np.concatenate([mean, forces[t - 1], forces[t]])
        state = follow(*(last[name] for name in (*first, "bias")), data)
        ahead = {"rotation": state[:4], "position": state[4:7], "velocity": state[7:]}
        placed = legs.placed(t, ahead["rotation"], ahead["position"])
        stood = standing[t - 1] & standing[t]
        away = np.linalg.norm(placed - last["feet"].reshape(k, 3), axis=1)
        slipping[t] = stood & (away > noise.slipping * legs.spread[t])
        stood = stood & ~slipping[t]
        feet = np.where(stood[:, None], last["feet"].reshape(k, 3), placed)
        smoother.advance({**ahead, "bias": last["bias"], "feet": feet.ravel()})
        smoother.add(moves, inertial, data, time=t - 1)
        smoother.add(constant, wander, time=t - 1)
        smoother.add(stay, white, np.repeat(weights[stood.astype(int)], 3), time=t - 1)
        smoother.add(beside, white, legs.data(t), time=t)
        smoother.update()
    return smoother, slipping


def _result(
    model: Model,
    step: float,
    imu: str,
    legs: _Legs,
    rates: Array,
    smoother: Incremental,
    slipping: Mask,
) -> LegOdometry:
    """The base's motion from the inertial unit's, with joint velocities from the encoders."""
    from scipy.spatial.transform import Rotation

    values = smoother.values
    turn = Rotation.from_quat(values["rotation"])
    unit = frame_pose(model, legs.q, imu)
    rotation = turn * Rotation.from_matrix(unit[:, :3, :3]).inv()  # of the base, from its start
    shift = values["position"] - rotation.apply(unit[:, :3, 3])
    q = legs.q.copy()
    base = model.joint_names.index(str(model.floating_base))
    part = model.clusters[model.nodes[base].cluster].q
    places, turns = np.split(legs.q[:, part], [3], axis=1)
    turned = (rotation * Rotation.from_quat(turns)).as_quat()
    q[:, part] = np.concatenate([rotation.apply(places) + shift, turned], axis=1)
    quaternions = q[:, part][:, 3:]
    before = np.concatenate([legs.q[:1, part][:, 3:], quaternions[:-1]])
    same = np.where(np.sum(before * quaternions, axis=1) < 0.0, -1.0, 1.0)
    quaternions *= np.cumprod(same)[:, None]  # continuous signs
    change = model.difference(legs.q[:-1], legs.q[1:])[:, 6:] / step
    ends = np.concatenate([change[:1], change, change[-1:]]) if len(change) else np.zeros(
        (2, model.nv - 6)
    )  # fmt: skip
    v = np.zeros((len(q), model.nv))
    v[:, 6:] = 0.5 * (ends[:-1] + ends[1:])
    j = jacobian(model, q, imu)
    omega = rates - values["bias"][:, :3]
    velocity = turn.inv().apply(values["velocity"])
    twist = np.concatenate([omega, velocity], axis=1) - _times(j[..., 6:], v[:, 6:])
    v[:, :6] = np.linalg.solve(j[..., :6], twist[..., None])[..., 0]
    bias = values["bias"][-1]
    return LegOdometry(model, q, v, smoother.covariances[:, :9, :9], bias[:3], bias[3:], slipping)
