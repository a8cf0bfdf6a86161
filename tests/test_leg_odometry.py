"""Where walking robots are by their own sensors, of motions that are known exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

import robomodel as rm
from robomodel.estimation import leg_odometry
from robomodel.estimation.leg_odometry import TURN, FeetStay, feet_beside, inertial_step
from robomodel.estimation.spaces import Rotations, Space, Vectors

STEP, SPEED, GAIT, LIFT = 4e-3, 0.4, 0.5, 0.04


@dataclass(frozen=True)
class Walk:
    """A motion with what its sensors say, without noise."""

    model: rm.Model
    imu: str
    feet: list
    q: np.ndarray
    v: np.ndarray
    gyroscope: np.ndarray
    accelerometer: np.ndarray
    standing: np.ndarray

    def sensed(self, rng: np.random.Generator, biases=(0.0, 0.0), scale: float = 1.0):
        """Arguments of the odometry, with white noise."""
        size = {"gyroscope": 2e-3, "accelerometer": 3e-2, "encoders": 3e-4}
        at = self.model.joint_positions(self.q)
        said = {
            "gyroscope": self.gyroscope + biases[0],
            "accelerometer": self.accelerometer + biases[1],
            "encoders": np.stack([at[n] for n in self.model.dof_names[6:]], axis=1),
        }
        noisy = {n: x + scale * size[n] * rng.normal(size=x.shape) for n, x in said.items()}
        return noisy | {
            "q": self.q[0], "imu": self.imu, "feet": self.feet, "standing": self.standing,
        }  # fmt: skip


def placed(model: rm.Model, q, base, feet, targets):
    """The configuration with this base whose feet are there: least-norm Newton steps."""
    q = np.concatenate([base, q[7:]])
    for _ in range(30):
        gap = np.concatenate([t - rm.frame_pose(model, q, f)[:3, 3] for f, t in
                              zip(feet, targets, strict=True)])  # fmt: skip
        if np.abs(gap).max() < 1e-13:
            break
        rows = [rm.frame_pose(model, q, f)[:3, :3] @ rm.jacobian(model, q, f)[3:, 6:] for f in feet]
        dv = np.linalg.lstsq(np.vstack(rows), gap, rcond=None)[0]
        dv *= min(1.0, 0.5 / np.abs(dv).max())
        q = model.integrate(q, np.concatenate([np.zeros(6), dv]))
    assert np.abs(gap).max() < 1e-9
    return q


@cache
def walk(name: str, seconds: float = 2.4, slip: float = 0.0) -> Walk:
    """Feet by turns, in two groups; the body sways, turns and nods. ``slip`` [m] of foot 0."""
    model = rm.robots.load(name)
    if name == "mini_cheetah":
        imu = "Floating Base"
        feet = [f"{leg}_foot_contact" for leg in ("HR", "HL", "FR", "FL")]
        groups = np.array([0, 1, 1, 0])
        bent = {f"{leg}_{j}_link_joint": x for leg in ("HR", "HL", "FR", "FL")
                for j, x in (("hip", -0.8), ("knee", 1.6))}  # fmt: skip
        q0 = model.configuration(bent)
    else:
        imu, feet, groups = "torso", ["left-foot", "right-foot"], np.array([0, 1])
        bends = {"gimbal-to-thigh": -0.5, "thigh-to-shin": 1.0}
        bent = {f"{s}-{j}": x for s in ("left", "right") for j, x in bends.items()}
        q0 = model.configuration(bent)
    begin = np.array([rm.frame_pose(model, q0, f)[:3, 3] for f in feet])
    count = round(seconds / STEP) + 1
    t = STEP * np.arange(count)
    ease = np.clip(t / 0.5, 0.0, 1.0)
    ease = ease**3 * (10 - 15 * ease + 6 * ease**2)  # it begins at rest
    x = SPEED * np.cumsum(ease) * STEP
    phase = 2 * np.pi * t / GAIT
    yaw = 0.1 * x
    turn = np.stack([0.03 * np.sin(phase), 0.02 * np.sin(2 * phase), yaw], axis=1) * ease[:, None]
    base = np.stack([x, 0.01 * np.sin(phase), 0.005 * np.sin(2 * phase) - 0.02], axis=1)
    base[:, 1:] *= ease[:, None]
    targets = begin.copy()
    standing = np.ones((count, len(feet)), dtype=bool)
    q = np.empty((count, model.nq))
    at, start = q0, begin.copy()
    for n in range(count):
        beat, share = divmod(2 * t[n] / GAIT, 1.0)
        for i in range(len(feet)):
            swings = t[n] > 0.25 and groups[i] == int(beat) % 2 and 0.1 < share < 0.9
            if not swings:
                start[i] = targets[i]
                if i == 0 and slip and 1.3 <= t[n] < 1.4:
                    targets[i] = targets[i] + [0.0, slip * STEP / 0.1, 0.0]
                continue
            standing[n, i] = False
            s = (share - 0.1) / 0.8
            s = s**3 * (10 - 15 * s + 6 * s**2)
            ahead = min(n + round(0.3 * GAIT / STEP), count - 1)
            c, o = np.cos(yaw[ahead]), np.sin(yaw[ahead])
            goal = base[ahead] * [1, 1, 0] + np.array([[c, -o, 0], [o, c, 0], [0, 0, 1]]) @ begin[i]
            targets[i] = start[i] + s * (goal - start[i])
            targets[i][2] = begin[i][2] + LIFT * np.sin(np.pi * s) ** 2
        quaternion = TURN.integrate(np.array([0, 0, 0, 1.0]), turn[n])
        at = q[n] = placed(model, at, np.concatenate([q0[:3] + base[n], quaternion]), feet, targets)
    way = np.cumsum(model.difference(q[:-1], q[1:]), axis=0)
    v = np.gradient(np.vstack([np.zeros(model.nv), way]), STEP, axis=0)
    v[0] = 0.0
    twist = rm.frame_velocity(model, q, v, imu)
    pose = rm.frame_pose(model, q, imu)
    world = np.einsum("tij,tj->ti", pose[:, :3, :3], twist[:, 3:])
    pull = np.gradient(world, STEP, axis=0) - np.array(model.gravity)
    felt = np.einsum("tji,tj->ti", pose[:, :3, :3], pull)
    return Walk(model, imu, feet, q, v, twist[:, :3], felt, standing)


def drift(walked: Walk, q: np.ndarray) -> float:
    """How far the base is off at the end, of the path."""
    path = np.sum(np.linalg.norm(np.diff(walked.q[:, :3], axis=0), axis=1))
    return float(np.linalg.norm(q[-1, :3] - walked.q[-1, :3]) / path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mini_cheetah", pytest.param("tello", marks=pytest.mark.slow)])
def test_walks_are_followed(name: str) -> None:
    walked = walk(name)
    biases = np.array([0.01, -0.02, 0.015]), np.array([0.1, -0.15, 0.2])
    found = leg_odometry(walked.model, STEP, **walked.sensed(np.random.default_rng(0), biases))
    assert drift(walked, found.q) <= 0.01
    assert not found.slipping.any()
    np.testing.assert_allclose(found.gyroscope_bias, biases[0], atol=2e-3)
    np.testing.assert_allclose(found.accelerometer_bias, biases[1], atol=0.1)
    assert np.sqrt(np.mean((found.v[50:, :6] - walked.v[50:, :6]) ** 2)) < 0.02
    off = found.q[:, :3] - walked.q[:, :3]
    sigma = np.sqrt(np.diagonal(found.covariance, axis1=1, axis2=2))[:, 3:6]
    assert np.mean(np.abs(off[100:]) < 3.0 * sigma[100:]) > 0.95
    walked.model.check(found.q, tolerance=1e-8)


@pytest.mark.slow
def test_what_slips_is_told() -> None:
    """A foot slides 4 cm while it is said to stand, and the others hold the estimate."""
    walked = walk("mini_cheetah", slip=0.04)
    found = leg_odometry(walked.model, STEP, **walked.sensed(np.random.default_rng(1)))
    times, feet = np.nonzero(found.slipping)
    assert set(feet) == {0}
    assert 1.3 <= STEP * times.min() <= STEP * times.max() < 1.45
    assert drift(walked, found.q) <= 0.01


@pytest.mark.slow
def test_without_noise_it_is_exact_to_the_step() -> None:
    """Only the trapezoidal rule and the differences of what the test itself calls velocities."""
    walked = walk("mini_cheetah")
    found = leg_odometry(walked.model, STEP, **walked.sensed(np.random.default_rng(0), scale=0.0))
    assert np.abs(found.q - walked.q).max() < 2e-4
    assert np.abs(found.v[5:-5] - walked.v[5:-5]).max() < 0.02


@pytest.mark.parametrize("kind", [inertial_step, feet_beside, FeetStay])
def test_derivatives_are_those_of_differences(kind) -> None:
    model, rng = rm.robots.load("mini_cheetah"), np.random.default_rng(3)
    factor = {
        inertial_step: lambda: inertial_step(model, 0.1),
        feet_beside: lambda: feet_beside(model, 2),
        FeetStay: lambda: FeetStay(2),
    }[kind]()
    size = {"position": 3, "velocity": 3, "bias": 6, "feet": 6}
    spaces: dict[str, Space] = {n: Vectors(k) for n, k in size.items()}
    spaces["rotation"] = Rotations(model)
    x = []
    for name, _ in factor.variables:
        value = rng.normal(size=(5, spaces[name].size))
        x.append(value / np.linalg.norm(value, axis=1)[:, None] if name == "rotation" else value)
    data = rng.normal(size=(5, {inertial_step: 9, feet_beside: 24, FeetStay: 6}[kind]))
    slopes = factor.evaluate(x, data)[1]
    for i, (name, _) in enumerate(factor.variables):
        for k in range(spaces[name].dim):
            both = []
            for side in (1e-6, -1e-6):
                dx = np.zeros((5, spaces[name].dim))
                dx[:, k] = side
                moved = [*x[:i], spaces[name].retract(x[i], dx), *x[i + 1 :]]
                both.append(factor.evaluate(moved, data)[0])
            change = (both[0] - both[1]) / 2e-6
            np.testing.assert_allclose(slopes[i][:, :, k], change, atol=1e-7)


def test_robots_that_stand_fast_do_not_walk() -> None:
    model = rm.robots.load("puma560")
    with pytest.raises(ValueError, match="floating base"):
        leg_odometry(
            model, STEP, q=model.neutral(), imu=model.bodies[0].name, feet=[model.bodies[-1].name],
            gyroscope=np.zeros((2, 3)), accelerometer=np.zeros((2, 3)),
            encoders=np.zeros((2, 0)), standing=np.ones((2, 1)),
        )  # fmt: skip
