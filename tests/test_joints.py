"""Joint models against 4x4 matrices: positions, velocities in the child's axes, and align()."""

import itertools
import math

import numpy as np
import pytest
from cases import few
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.spatial.transform import Rotation as ScipyRotation

from robomodel.description.poses import align
from robomodel.kernels import Trace
from robomodel.mechanism.joints import (
    Floating,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    relative_motion,
)
from robomodel.spatial import UNIT, ZERO, Transform

ONE_AXIS = [make(k) for make in (Revolute, Prismatic, lambda k: Screw(k, 0.3)) for k in range(3)]
JOINTS = [*ONE_AXIS, *(Planar(k) for k in range(3)), Spherical(), Floating()]
every_joint = pytest.mark.parametrize("joint", JOINTS, ids=str)
SEEDS = st.integers(0, 2**32 - 1)
EPS = np.finfo(float).eps


# ---- references ----------------------------------------------------------------------------------


def pose(joint, q: np.ndarray) -> np.ndarray:
    """The child in the joint's frame as a 4x4 matrix."""
    rotations, offset = joint.placement(q.tolist())
    result = np.eye(4)
    result[:3, :3] = Transform(rotations, ZERO).matrix()
    result[:3, 3] = offset
    return result


def hat4(angular: np.ndarray, linear: np.ndarray) -> np.ndarray:
    """The 4x4 matrix whose exponential is the displacement by a constant body velocity."""
    x, y, z = angular
    result = np.zeros((4, 4))
    result[:3, :3] = [[0, -z, y], [z, 0, -x], [-y, x, 0]]
    result[:3, 3] = linear
    return result


def moved(joint, dv: np.ndarray) -> np.ndarray:
    """Exp(S dv), from the motions that the joint declares."""
    motions = np.array([motion.entries() for motion in joint.subspace])
    twist = dv @ motions
    return expm(hat4(twist[:3], twist[3:]))


def unit_quaternion(rng: np.random.Generator, *shape: int) -> np.ndarray:
    x = rng.normal(size=(*shape, 4))
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def position(joint, rng: np.random.Generator, *shape: int) -> np.ndarray:
    if isinstance(joint, Spherical):
        return unit_quaternion(rng, *shape)
    if isinstance(joint, Floating):
        return np.concatenate([rng.normal(size=(*shape, 3)), unit_quaternion(rng, *shape)], -1)
    return rng.normal(size=(*shape, joint.nq))


def velocity(joint, rng: np.random.Generator, angle: float) -> np.ndarray:
    """A velocity whose rotation in unit time is this angle (where the joint rotates at all)."""
    dv = rng.normal(size=joint.nv)
    turning = {Planar: slice(2, 3), Spherical: slice(0, 3), Floating: slice(0, 3)}
    part = turning.get(type(joint), slice(0, 1))
    dv[part] *= angle / np.linalg.norm(dv[part])
    return dv


def same_pose(joint, q: np.ndarray, expected: np.ndarray, tolerance: float = 1e-14) -> None:
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(pose(joint, q), expected, rtol=0, atol=tolerance * scale)


# ---- sizes and the position zero -----------------------------------------------------------------


@every_joint
def test_sizes(joint) -> None:
    sizes = {Planar: (3, 3), Spherical: (4, 3), Floating: (7, 6)}
    assert (joint.nq, joint.nv) == sizes.get(type(joint), (1, 1))
    assert len(joint.subspace) == joint.nv
    assert len(joint.neutral()) == joint.nq
    motions = np.array([motion.entries() for motion in joint.subspace])
    assert np.linalg.matrix_rank(motions) == joint.nv


@every_joint
def test_neutral_is_the_identity(joint) -> None:
    neutral = np.array(joint.neutral())
    np.testing.assert_array_equal(pose(joint, neutral), np.eye(4))


@pytest.mark.parametrize("k", range(3))
def test_subspaces_by_hand(k: int) -> None:
    """Angular first; the planar joint's translations first, along the axes that follow k."""
    i, j = (k + 1) % 3, (k + 2) % 3
    six = np.eye(6)
    assert [m.entries() for m in Revolute(k).subspace] == [tuple(six[k])]
    assert [m.entries() for m in Prismatic(k).subspace] == [tuple(six[3 + k])]
    assert [m.entries() for m in Screw(k, 0.25).subspace] == [tuple(six[k] + 0.25 * six[3 + k])]
    planar = [tuple(six[3 + i]), tuple(six[3 + j]), tuple(six[k])]
    assert [m.entries() for m in Planar(k).subspace] == planar
    assert [m.entries() for m in Spherical().subspace] == [tuple(row) for row in six[:3]]
    assert [m.entries() for m in Floating().subspace] == [tuple(row) for row in six]


@every_joint
def test_relative_motion(joint) -> None:
    rng = np.random.default_rng(1)
    qd = rng.normal(size=joint.nv)
    expected = qd @ np.array([motion.entries() for motion in joint.subspace])
    np.testing.assert_allclose(relative_motion(joint, qd.tolist()).entries(), expected, atol=1e-15)
    batch = rng.normal(size=(joint.nv, 4))
    rows = [entry + np.zeros(4) for entry in relative_motion(joint, list(batch)).entries()]
    expected = batch.T @ np.array([motion.entries() for motion in joint.subspace])
    np.testing.assert_allclose(np.transpose(rows), expected, atol=1e-15)


# ---- placement -----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", range(3))
@pytest.mark.parametrize("q", [0.0, 0.4, -2.0, 7.0])
def test_one_axis_placements(k: int, q: float) -> None:
    e = np.eye(3)[k]
    turned, shifted = np.eye(4), np.eye(4)
    turned[:3, :3] = ScipyRotation.from_rotvec(q * e).as_matrix()
    shifted[:3, 3] = q * e
    pitch = np.eye(4)
    pitch[:3, 3] = -0.7 * q * e
    same_pose(Revolute(k), np.array([q]), turned)
    same_pose(Prismatic(k), np.array([q]), shifted)
    same_pose(Screw(k, -0.7), np.array([q]), pitch @ turned)


def test_placements_keep_their_structure() -> None:
    """What does not move is structurally zero."""
    (q,) = Trace().inputs(1)
    assert Revolute(1).placement([q])[1] == ZERO
    assert Spherical().placement([q, q, q, q])[1] == ZERO
    rotations, offset = Prismatic(2).placement([q])
    assert rotations == ()
    assert offset[:2] == (0.0, 0.0)
    assert offset[2] is q
    assert len(Planar(0).placement([q, q, q])[0]) == 1
    assert type(Planar(0).placement([q, q, q])[1][0]) is float


@pytest.mark.parametrize("k", range(3))
def test_planar_is_two_slides_and_a_hinge(k: int) -> None:
    rng = np.random.default_rng(k)
    chain = Prismatic((k + 1) % 3), Prismatic((k + 2) % 3), Revolute(k)
    for _ in range(10):
        q = 3.0 * rng.normal(size=3)
        expected = np.eye(4)
        for joint, coordinate in zip(chain, q, strict=True):
            expected = expected @ pose(joint, np.array([coordinate]))
        same_pose(Planar(k), q, expected)


def test_planar_about_z_is_px_py_rz() -> None:
    c, s = math.cos(0.5), math.sin(0.5)
    expected = [[c, -s, 0, 2], [s, c, 0, 3], [0, 0, 1, 0], [0, 0, 0, 1]]
    same_pose(Planar(2), np.array([2.0, 3.0, 0.5]), np.array(expected))


def test_quaternion_placements() -> None:
    """Scalar last, as scipy has it; position first."""
    rng = np.random.default_rng(2)
    for _ in range(10):
        x, p = unit_quaternion(rng), rng.normal(size=3)
        expected = np.eye(4)
        expected[:3, :3] = ScipyRotation.from_quat(x).as_matrix()
        same_pose(Spherical(), x, expected)
        expected[:3, 3] = p
        same_pose(Floating(), np.concatenate([p, x]), expected)


@every_joint
def test_placement_of_batches(joint) -> None:
    q = position(joint, np.random.default_rng(3), 6)
    rotations, offset = joint.placement(list(q.T))
    rows = Transform(rotations, ZERO).matrix()
    for n in range(6):
        one = pose(joint, q[n])
        at = [[(x + np.zeros(6))[n] for x in row] for row in (*rows, offset)]
        np.testing.assert_allclose(at[:3], one[:3, :3], rtol=0, atol=2e-15)
        np.testing.assert_allclose(at[3], one[:3, 3], rtol=0, atol=2e-15)


# ---- the subspace is the derivative of the placement ---------------------------------------------


@every_joint
@pytest.mark.parametrize(
    "angle",
    few(
        [0.0, 1e-300, 1e-160, 1e-12, 1e-8, 1e-4, 0.0499, 0.0501, 1.0, 3.0, math.pi, 3.3, 6.2, 9],
        *(0.0, 1e-160, 0.0501, 3.3),
    ),
)
def test_integrate_is_the_exponential_of_the_subspace(joint, angle: float) -> None:
    """A constant velocity S dv in the child's axes for unit time, however far it leads."""
    rng = np.random.default_rng(4)
    for _ in range(5):
        q, dv = position(joint, rng), velocity(joint, rng, angle)
        expected = pose(joint, q) @ moved(joint, dv)
        same_pose(joint, joint.integrate(q, dv), expected, 1e-14 * (1 + angle))


@every_joint
def test_subspace_is_the_derivative_of_the_placement(joint) -> None:
    """Finite differences along each velocity: T⁻¹ Ṫ = S in the child's axes."""
    rng = np.random.default_rng(5)
    q, step = position(joint, rng), 1e-5
    back = np.linalg.inv(pose(joint, q))
    for n, motion in enumerate(joint.subspace):
        dv = step * np.eye(joint.nv)[n]
        ahead, behind = (pose(joint, joint.integrate(q, s * dv)) for s in (1.0, -1.0))
        rate = back @ (ahead - behind) / (2 * step)
        expected = hat4(np.array(motion.angular), np.array(motion.linear))
        np.testing.assert_allclose(rate, expected, rtol=0, atol=1e-9)


def test_the_linear_velocity_is_in_the_childs_axes() -> None:
    """A quarter turn to the left, then forward: along y."""
    turned = np.array([0.0, 0.0, math.pi / 2])
    forward = Planar(2).integrate(turned, np.array([1.0, 0.0, 0.0]))
    np.testing.assert_allclose(forward, [0, 1, math.pi / 2], atol=1e-15)
    half = math.sqrt(0.5)
    q = np.array([0.0, 0.0, 0.0, 0.0, 0.0, half, half])
    forward = Floating().integrate(q, np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0]))
    np.testing.assert_allclose(forward, [0, 1, 0, 0, 0, half, half], atol=1e-15)


@every_joint
def test_no_velocity_no_move(joint) -> None:
    q = position(joint, np.random.default_rng(6))
    np.testing.assert_allclose(joint.integrate(q, np.zeros(joint.nv)), q, rtol=0, atol=EPS)
    assert np.abs(joint.difference(q, q)).max() <= 4 * EPS


@every_joint
def test_arguments_are_left_alone(joint) -> None:
    rng = np.random.default_rng(7)
    q0, q1, dv = position(joint, rng), position(joint, rng), velocity(joint, rng, 1.0)
    before = q0.copy(), q1.copy(), dv.copy()
    joint.integrate(q0, dv)
    joint.difference(q0, q1)
    for now, then in zip((q0, q1, dv), before, strict=True):
        np.testing.assert_array_equal(now, then)


# ---- integrate and difference --------------------------------------------------------------------


@every_joint
@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-8, 1e-4, 0.0499, 0.0501, 1.0, 2.5, 3.1])
def test_difference_undoes_integrate(joint, angle: float) -> None:
    rng = np.random.default_rng(8)
    for _ in range(10):
        q, dv = position(joint, rng), velocity(joint, rng, angle)
        back = joint.difference(q, joint.integrate(q, dv))
        # coordinates of order one are rounded, which a displacement of 1e-12 cannot undo
        np.testing.assert_allclose(back, dv, rtol=0, atol=1e-14 * (1 + np.abs(q).max()))


@every_joint
def test_rates_are_the_derivative_of_integrate(joint) -> None:
    rng = np.random.default_rng(5)
    q, v, h = position(joint, rng), rng.normal(size=joint.nv), 1e-3
    at = [joint.integrate(q, s * h * v) for s in (1, -1, 2, -2)]
    slope = (8 * (at[0] - at[1]) - (at[2] - at[3])) / (12 * h)
    np.testing.assert_allclose(joint.rates(q.tolist(), v.tolist()), slope, rtol=0, atol=1e-11)


@every_joint
def test_integrate_undoes_difference(joint) -> None:
    """Between positions far from one another; a quaternion may come back with its other sign."""
    rng = np.random.default_rng(9)
    for _ in range(50):
        q0, q1 = position(joint, rng), position(joint, rng)
        q = joint.integrate(q0, joint.difference(q0, q1))
        same_pose(joint, q, pose(joint, q1), 1e-13)


@pytest.mark.parametrize("joint", [Spherical(), Floating()], ids=str)
@pytest.mark.parametrize("off", [0.0, *(s * 10.0**-n for n in range(1, 17, 3) for s in (-1, 1))])
def test_near_half_turns(joint, off: float) -> None:
    """Whichever way round, the rotation arrived at is the same, and never more than half a turn."""
    rng = np.random.default_rng(10)
    for _ in range(10):
        q0 = position(joint, rng)
        q1 = joint.integrate(q0, velocity(joint, rng, math.pi + off))
        for end in (q1, flipped(joint, q1)):
            dv = joint.difference(q0, end)
            assert np.linalg.norm(dv[:3]) <= math.pi * (1 + EPS)
            assert np.linalg.norm(dv[:3]) == pytest.approx(math.pi - abs(off), abs=1e-14)
            same_pose(joint, joint.integrate(q0, dv), pose(joint, q1), 2e-14)


def test_half_turns_about_coordinate_axes() -> None:
    """The scalar part is exactly zero, so that both ways round are equally long."""
    start = np.array([0.0, 0.0, 0.0, 1.0])
    for k in range(3):
        end = np.array([*UNIT[k], 0.0])
        for q in (end, -end):
            dv = Spherical().difference(start, q)
            np.testing.assert_allclose(np.abs(dv), math.pi * np.eye(3)[k], rtol=0, atol=1e-15)


def flipped(joint, q: np.ndarray) -> np.ndarray:
    """The same position with the quaternion's other sign."""
    result = q.copy()
    result[..., -4:] *= -1.0
    assert joint.nq in (4, 7)
    return result


@pytest.mark.parametrize("joint", [Spherical(), Floating()], ids=str)
def test_the_sign_of_a_quaternion_means_nothing(joint) -> None:
    rng = np.random.default_rng(11)
    for _ in range(20):
        q0, q1 = position(joint, rng), position(joint, rng)
        dv = joint.difference(q0, q1)
        np.testing.assert_allclose(joint.difference(flipped(joint, q0), q1), dv, atol=1e-14)
        np.testing.assert_allclose(joint.difference(q0, flipped(joint, q1)), dv, atol=1e-14)


@pytest.mark.parametrize("joint", [Spherical(), Floating()], ids=str)
@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-155, 1e-150, 1e-100, 1e-20, 1e-9, 1e-3])
def test_small_rotations_keep_their_digits(joint, size: float) -> None:
    """From the neutral position nothing is lost, though squares underflow."""
    rng = np.random.default_rng(12)
    q0 = np.array(joint.neutral())
    dv = rng.uniform(0.5, 1.0, joint.nv) * size
    back = joint.difference(q0, joint.integrate(q0, dv))
    np.testing.assert_allclose(back, dv, rtol=1e-14, atol=5e-324)


@pytest.mark.parametrize("k", range(3))
def test_planar_counts_turns(k: int) -> None:
    joint = Planar(k)
    rng = np.random.default_rng(13)
    for turn in (-20.0, -5.0, 3.5, 5.5, 7.5, 9.0, 100.0):
        q, dv = rng.normal(size=3), np.array([*rng.normal(size=2), turn])
        end = joint.integrate(q, dv)
        assert end[2] == q[2] + turn
        np.testing.assert_allclose(joint.difference(q, end), dv, rtol=0, atol=1e-12 * abs(turn))


def test_planar_by_a_full_circle() -> None:
    """Forward while turning by 2π: back at the start, one turn more on the clock."""
    end = Planar(2).integrate(np.zeros(3), np.array([1.0, 0.0, 2 * math.pi]))
    np.testing.assert_allclose(end, [0, 0, 2 * math.pi], atol=1e-15)
    quarter = Planar(2).integrate(np.zeros(3), np.array([math.pi / 2, 0.0, math.pi / 2]))
    np.testing.assert_allclose(quarter, [1, 1, math.pi / 2], atol=1e-15)


@pytest.mark.parametrize("joint", ONE_AXIS, ids=str)
def test_one_axis_positions_are_numbers(joint) -> None:
    """No wrapping: angles count turns."""
    q, dv = np.array([5.0]), np.array([100.0])
    np.testing.assert_array_equal(joint.integrate(q, dv), [105.0])
    np.testing.assert_array_equal(joint.difference(q, np.array([105.0])), [100.0])


@given(SEEDS, st.sampled_from(JOINTS), st.floats(0.0, 3.1))
@settings(max_examples=100, derandomize=True)
def test_difference_is_antisymmetric(seed: int, joint, angle: float) -> None:
    rng = np.random.default_rng(seed)
    q0 = position(joint, rng)
    q1 = joint.integrate(q0, velocity(joint, rng, angle))
    there, back = joint.difference(q0, q1), joint.difference(q1, q0)
    scale = 1 + max(np.abs(q0).max(), np.abs(q1).max())
    np.testing.assert_allclose(there, -back, rtol=0, atol=2e-14 * scale)


@given(SEEDS, st.sampled_from(JOINTS))
@settings(max_examples=100, derandomize=True)
def test_half_the_velocity_twice(seed: int, joint) -> None:
    rng = np.random.default_rng(seed)
    q, dv = position(joint, rng), velocity(joint, rng, rng.uniform(0.0, 10.0))
    twice = joint.integrate(joint.integrate(q, dv / 2), dv / 2)
    same_pose(joint, joint.integrate(q, dv), pose(joint, twice), 1e-13)


# ---- batches -------------------------------------------------------------------------------------


@every_joint
@pytest.mark.parametrize("shape", [(1,), (5,), (2, 3), (0,)])
def test_batches(joint, shape: tuple[int, ...]) -> None:
    """Each row by itself: small and large velocities side by side."""
    rng = np.random.default_rng(14)
    q0, q1 = position(joint, rng, *shape), position(joint, rng, *shape)
    sizes = np.resize([1.0, 0.0, 1e-9, 3.0, 0.04, 20.0], shape)
    dv = rng.normal(size=(*shape, joint.nv)) * sizes[..., None]
    end, way = joint.integrate(q0, dv), joint.difference(q0, q1)
    assert end.shape == (*shape, joint.nq)
    assert way.shape == (*shape, joint.nv)
    for at in itertools.product(*map(range, shape)):
        np.testing.assert_allclose(end[at], joint.integrate(q0[at], dv[at]), rtol=0, atol=1e-14)
        np.testing.assert_allclose(way[at], joint.difference(q0[at], q1[at]), rtol=0, atol=1e-14)


# ---- quaternions stay normalised -----------------------------------------------------------------


@pytest.mark.parametrize("joint", [Spherical(), Floating()], ids=str)
def test_quaternions_stay_normalised(joint) -> None:
    rng = np.random.default_rng(15)
    q = position(joint, rng, 20)
    for _ in range(300):
        q = joint.integrate(q, rng.normal(size=(20, joint.nv)))
        assert np.abs(np.linalg.norm(q[:, -4:], axis=-1) - 1).max() <= 2 * EPS


@pytest.mark.parametrize("joint", [Spherical(), Floating()], ids=str)
@pytest.mark.parametrize("error", [-1e-3, 1e-8, 1e-3])
def test_integrate_normalises(joint, error: float) -> None:
    rng = np.random.default_rng(16)
    q = position(joint, rng)
    q[-4:] *= 1 + error
    end = joint.integrate(q, rng.normal(size=joint.nv))
    assert abs(np.linalg.norm(end[-4:]) - 1) <= 2 * EPS


# ---- align ---------------------------------------------------------------------------------------


def check_align(axis: np.ndarray) -> np.ndarray:
    k, rows = align(tuple(axis.tolist()))
    A = np.array(rows)
    assert all(type(x) is float for row in rows for x in row)
    assert abs(axis[k]) == np.abs(axis).max()
    np.testing.assert_allclose(A[:, k], axis, rtol=0, atol=4 * EPS)
    np.testing.assert_allclose(A @ A.T, np.eye(3), rtol=0, atol=8 * EPS)
    assert np.linalg.det(A) == pytest.approx(1.0, abs=1e-14)
    return A


@pytest.mark.parametrize("k", range(3))
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_align_with_coordinate_axes(k: int, zero: float) -> None:
    """Exactly: the identity, or a half turn that leaves zeros and ones."""
    axis = np.full(3, zero)
    axis[k] = 1.0
    assert align(tuple(axis.tolist())) == (k, UNIT)
    axis[k] = -1.0
    chosen, rows = align(tuple(axis.tolist()))
    A = np.array(rows)
    assert chosen == k
    np.testing.assert_array_equal(A[:, k], axis)
    np.testing.assert_array_equal(A, np.diag(np.diag(A)))
    np.testing.assert_array_equal(A @ A, np.eye(3))
    assert np.linalg.det(A) == 1.0
    assert not np.signbit(A[A == 0.0]).any()


@given(st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda a: math.hypot(*a) > 1e-3))
@settings(max_examples=200, derandomize=True)
def test_align_with_any_axis(axis: tuple[float, float, float]) -> None:
    check_align(np.array(axis) / math.hypot(*axis))


@pytest.mark.parametrize("signs", list(itertools.product((1.0, -1.0), repeat=3)))
def test_align_with_diagonals(signs: tuple[float, ...]) -> None:
    """Ties between the coordinate axes."""
    for present in ((1, 1, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1)):
        axis = np.array(signs) * present
        check_align(axis / np.linalg.norm(axis))


@pytest.mark.parametrize("off", [1e-300, 1e-17, 1e-12, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("k", range(3))
def test_align_near_coordinate_axes(k: int, side: float, off: float) -> None:
    """A small rotation from the identity or the half turn, with all its digits."""
    axis = np.zeros(3)
    axis[k] = side
    start = np.array(align(tuple(axis.tolist()))[1])
    for other in {0, 1, 2} - {k}:
        axis = np.zeros(3)
        axis[k], axis[other] = side * math.sqrt(1 - off * off), off
        A = check_align(axis)
        assert A[other, k] == pytest.approx(off, rel=1e-15)
        np.testing.assert_allclose(A, start, rtol=0, atol=1.01 * off)


@given(SEEDS)
@settings(max_examples=100, derandomize=True)
def test_align_is_the_smallest_rotation_from_there(seed: int) -> None:
    """From the coordinate axis, or its half turn: by the angle between, about their normal."""
    axis = np.random.default_rng(seed).normal(size=3)
    axis /= np.linalg.norm(axis)
    k, rows = align(tuple(axis.tolist()))
    nearest = np.sign(axis[k]) * np.eye(3)[k]
    start = np.array(align(tuple(nearest.tolist()))[1])
    rotation = ScipyRotation.from_matrix(np.array(rows) @ start.T)
    normal = np.cross(nearest, axis)
    expected = normal / np.linalg.norm(normal) * math.acos(axis @ nearest)
    np.testing.assert_allclose(rotation.as_rotvec(), expected, rtol=0, atol=1e-13)
