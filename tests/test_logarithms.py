"""Logarithms of rotations and poses and their derivatives, beside Pinocchio's and differences."""

import numpy as np
import pytest
from numpy.typing import NDArray

import robomodel as rm
from robomodel.kernels.function import TracedFunction
from robomodel.mechanism.joints import Floating, JointModel, Planar, Prismatic, Spherical
from robomodel.spatial.logarithms import jlog3, jlog6, log3, log6

pin = pytest.importorskip("pinocchio")

Array = NDArray[np.float64]
ANGULAR_FIRST = [3, 4, 5, 0, 1, 2]


def poses() -> list[tuple[Array, Array]]:
    """Rotations at rest, tiny, of all sizes, about all axes, and of nearly half a turn."""
    rng = np.random.default_rng(4)
    result = []
    for angle in (0.0, 1e-9, 1e-4, 0.049, 0.051, 0.3, 1.2, 2.0, 3.0, np.pi - 1e-6):
        for axis in (*np.eye(3), *-np.eye(3), rng.standard_normal(3), rng.standard_normal(3)):
            turn = angle * axis / np.linalg.norm(axis)
            result.append((pin.exp3(turn), rng.standard_normal(3)))
    return result


def test_logarithms_are_pinocchios() -> None:
    for rotation, offset in poses():
        rows = tuple(map(tuple, rotation.tolist()))
        twist = pin.log6(pin.SE3(rotation, offset)).vector[ANGULAR_FIRST]
        found = log6(rows, tuple(offset.tolist()))
        np.testing.assert_allclose(found, twist, rtol=0, atol=2e-9)  # pin's near half a turn
        np.testing.assert_allclose(log3(rows), twist[:3], rtol=0, atol=2e-9)
        motion = pin.Motion(np.array(found)[ANGULAR_FIRST])
        back = pin.exp6(motion)
        np.testing.assert_allclose(back.rotation, rotation, rtol=0, atol=2e-14)
        np.testing.assert_allclose(back.translation, offset, rtol=0, atol=2e-13)


def test_derivatives_are_pinocchios() -> None:
    for rotation, offset in poses():
        pose = pin.SE3(rotation, offset)
        twist = pin.log6(pose).vector[ANGULAR_FIRST]
        expected = pin.Jlog6(pose)[np.ix_(ANGULAR_FIRST, ANGULAR_FIRST)]
        close = np.linalg.norm(twist[:3]) > 3.1  # where Pinocchio's has lost half its digits
        atol = 1e-6 if close else 3e-12
        np.testing.assert_allclose(jlog6(twist.tolist()), expected, rtol=0, atol=atol)
        np.testing.assert_allclose(jlog3(twist[:3]), expected[:3, :3], rtol=0, atol=atol)


def test_batches_and_programs() -> None:
    """Arrays and compiled programs give what numbers do; half a turn is no exception."""
    every = [
        *poses(),
        (np.diag([1.0, -1.0, -1.0]), np.ones(3)),
        (np.diag([-1.0, -1.0, 1.0]), -np.ones(3)),
    ]
    x = np.array([[*rotation.ravel(), *offset] for rotation, offset in every])

    def build(x: list[object]) -> list[object]:
        twist = log6((tuple(x[:3]), tuple(x[3:6]), tuple(x[6:9])), tuple(x[9:]))
        return [*twist, *(entry for row in jlog6(twist) for entry in row)]

    function = TracedFunction("log6", {"x": 12}, {"y": (42,)}, build)
    expected = np.array([build(row) for row in x.tolist()], dtype=float)
    assert np.all(np.isfinite(expected))
    np.testing.assert_allclose(np.linalg.norm(expected[-2:, :3], axis=1), np.pi, rtol=1e-15)
    np.testing.assert_allclose(function(x), expected, rtol=0, atol=1e-12)
    batch = np.stack(np.broadcast_arrays(*build(list(x.T))), axis=-1)
    np.testing.assert_allclose(batch, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("joint", [Prismatic(0), Spherical(), Planar(2), Floating()])
def test_jlog_of_joints(joint: JointModel) -> None:
    """Derivatives of differences, by motions of either end, up to half a turn."""
    rng = np.random.default_rng(9)
    h = 1e-3
    for size in (1e-3, 0.3, 1.0, 2.5):
        xi = rng.standard_normal(joint.nv)
        xi *= size / np.linalg.norm(xi)
        w = rng.standard_normal(joint.nv)
        q0 = joint.integrate(np.array(joint.neutral()), rng.standard_normal(joint.nv))
        q1 = joint.integrate(q0, xi)
        for sign in (1.0, -1.0):
            ends = []
            for s in (1, -1, 2, -2):
                a, b = (q0, joint.integrate(q1, s * h * w))
                if sign < 0:
                    a, b = joint.integrate(q0, s * h * w), q1
                ends.append(joint.difference(a, b))
            slope = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * h)
            found = sign * np.array(joint.jlog(sign * xi), dtype=float) @ w
            np.testing.assert_allclose(found, slope, rtol=0, atol=2e-11)


def test_of_a_frames_error() -> None:
    """As of inverse kinematics: d log6(X⁻¹ X*) is -Jlog6(X*⁻¹ X) J v."""
    model = rm.robots.load("mini_cheetah")
    rng = np.random.default_rng(1)
    q = model.integrate(model.neutral(), rng.standard_normal(model.nv))
    goal = rm.frame_pose(
        model, model.integrate(q, 0.4 * rng.standard_normal(model.nv)), "FR_knee_link"
    )
    v, h = rng.standard_normal(model.nv), 1e-4

    def error(q: Array) -> Array:
        off = np.linalg.inv(rm.frame_pose(model, q, "FR_knee_link")) @ goal
        return np.array(log6(tuple(map(tuple, off[:3, :3])), tuple(off[:3, 3])))

    ends = [error(model.integrate(q, s * h * v)) for s in (1, -1, 2, -2)]
    slope = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * h)
    local = rm.jacobian(model, q, "FR_knee_link") @ v
    found = -np.array(jlog6((-error(q)).tolist())) @ local
    np.testing.assert_allclose(found, slope, rtol=0, atol=1e-9)
