"""Structured spatial algebra against plain matrices, over floats and over batches.

Operands of three kinds go through every operation: Python floats, floats with many structural
zeros and ones among them, and NumPy batches (with some entries still structural). The references
are dense 3x3 and 6x6 formulas on (..., 3, 3) and (..., 6, 6) arrays.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation as ScipyRotation

from robomodel import spatial
from robomodel.kernels import Trace
from robomodel.scalars import is_zero
from robomodel.spatial import (
    NO_INERTIA,
    NO_MOTION,
    NO_WRENCH,
    UNIT,
    ZERO,
    ArticulatedInertia,
    AxisRotation,
    MatrixRotation,
    Motion,
    RigidInertia,
    SignedPermutation,
    Transform,
    Wrench,
    about_axis,
    factor,
    from_quaternion,
)

BATCH = 5
TOLERANCE = 1e-14
KINDS = ("floats", "structural", "batch")
over_kinds = pytest.mark.parametrize("kind", KINDS)
over_seeds = pytest.mark.parametrize("seed", range(10))


# ---- operands ------------------------------------------------------------------------------------


class Draw:
    """Random operands of one kind of scalar."""

    def __init__(self, kind: str, seed: int) -> None:
        self.kind = kind
        self.rng = np.random.default_rng(seed)

    def scalar(self):
        constant = {"floats": 0.0, "structural": 0.6, "batch": 0.2}[self.kind]
        if self.rng.random() < constant:
            return float(self.rng.choice([0.0, 0.0, 1.0, -1.0]))
        if self.kind == "batch":
            return self.rng.normal(size=BATCH)
        return float(self.rng.normal())

    def vec(self):
        return self.scalar(), self.scalar(), self.scalar()

    def mat(self):
        return self.vec(), self.vec(), self.vec()

    def symmetric(self):
        return spatial.symmetric(*(self.scalar() for _ in range(6)))

    def motion(self) -> Motion:
        return Motion(self.vec(), self.vec())

    def wrench(self) -> Wrench:
        return Wrench(self.vec(), self.vec())

    def rotation(self, style: str):
        if style == "axis":
            angle = self.rng.normal(size=BATCH) if self.kind == "batch" else self.rng.normal()
            k = int(self.rng.integers(3))
            return about_axis(k, angle if self.kind == "batch" else float(angle))
        if style == "permutation":
            return permutations()[self.rng.integers(24)]
        shape = (BATCH, 4) if self.kind == "batch" else (4,)
        x = self.rng.normal(size=shape)
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
        return from_quaternion(*(x.T if self.kind == "batch" else x.tolist()))

    def transform(self) -> Transform:
        """Up to three rotations of any sort."""
        styles = self.rng.choice(["axis", "permutation", "matrix"], size=self.rng.integers(4))
        return Transform(tuple(self.rotation(style) for style in styles), self.vec())

    def rigid(self) -> RigidInertia:
        return RigidInertia(self.scalar(), self.vec(), self.symmetric())

    def articulated(self) -> ArticulatedInertia:
        return ArticulatedInertia(self.symmetric(), self.mat(), self.symmetric())


def permutations() -> list[SignedPermutation]:
    """All 24 rotations that map axes to axes."""
    found = []
    for source in itertools.permutations(range(3)):
        for signs in itertools.product((1.0, -1.0), repeat=3):
            matrix = np.zeros((3, 3))
            matrix[range(3), source] = signs
            if np.linalg.det(matrix) > 0:
                found.append(SignedPermutation(source, signs))
    return found


# ---- dense references ----------------------------------------------------------------------------


def vector(v) -> np.ndarray:
    """A tuple of scalars as (..., n)."""
    return np.stack(np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in v)), axis=-1)


def matrix(m) -> np.ndarray:
    """Rows of scalars as (..., 3, 3)."""
    flat = vector([x for row in m for x in row])
    return flat.reshape(*flat.shape[:-1], len(m), len(m[0]))


def hat(v: np.ndarray) -> np.ndarray:
    x, y, z = np.moveaxis(v, -1, 0)
    zero = np.zeros_like(x)
    flat = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1)
    return flat.reshape(*flat.shape[:-1], 3, 3)


def turn(m: np.ndarray) -> np.ndarray:
    return np.swapaxes(m, -1, -2)


def times(m: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...j->...i", m, v)


def blocks(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    shape = np.broadcast_shapes(a.shape, b.shape, c.shape, d.shape)
    a, b, c, d = (np.broadcast_to(x, shape) for x in (a, b, c, d))
    return np.concatenate([np.concatenate([a, b], -1), np.concatenate([c, d], -1)], -2)


def elementary(rotation) -> np.ndarray:
    """The matrix of an elementary rotation, from its fields."""
    if isinstance(rotation, MatrixRotation):
        return matrix(rotation.rows)
    if isinstance(rotation, SignedPermutation):
        return np.diag(rotation.sign) @ np.eye(3)[list(rotation.source)]
    c, s = (np.asarray(x, dtype=float) for x in (rotation.c, rotation.s))
    e = np.eye(3)[rotation.k]
    outer = np.outer(e, e)
    return outer + c[..., None, None] * (np.eye(3) - outer) + s[..., None, None] * hat(e)


def rotation_of(x: Transform) -> np.ndarray:
    """R: the child's rotation is applied first."""
    result = np.eye(3)
    for rotation in x.rotations:
        result = elementary(rotation) @ result
    return result


def motion_matrix(x: Transform) -> np.ndarray:
    """X: motions, parent's coordinates to the child's."""
    back = turn(rotation_of(x))
    return blocks(back, np.zeros((3, 3)), -back @ hat(vector(x.offset)), back)


def inertia_matrix(inertia) -> np.ndarray:
    if isinstance(inertia, ArticulatedInertia):
        b = matrix(inertia.b)
        return blocks(matrix(inertia.a), b, turn(b), matrix(inertia.c))
    h = hat(vector(inertia.h))
    mass = np.asarray(inertia.mass, dtype=float)[..., None, None] * np.eye(3)
    return blocks(matrix(inertia.inertia), h, -h, mass)


def entries(six: Motion | Wrench) -> np.ndarray:
    return vector(six.entries())


def size(m: np.ndarray) -> float:
    """At least the largest norm in a batch; at least 1, for sums with ones."""
    return max(1.0, float(np.abs(m).max(initial=0)) * m.shape[-1])


def rounded(actual: np.ndarray, expected: np.ndarray, *operands: np.ndarray) -> None:
    """Equal to 1e-14 of the product of the operands' sizes."""
    limit = TOLERANCE * math.prod(size(each) for each in operands)
    assert np.abs(actual - expected).max() <= limit


def exactly_symmetric(m) -> bool:
    return all(np.array_equal(m[i][j], m[j][i]) for i in range(3) for j in range(i))


# ---- vectors and matrices of three ---------------------------------------------------------------


@over_kinds
@over_seeds
def test_vectors(kind: str, seed: int) -> None:
    draw = Draw(kind, seed)
    a, b, k, m = draw.vec(), draw.vec(), draw.scalar(), draw.mat()
    A, B, M = vector(a), vector(b), matrix(m)
    rounded(vector(spatial.plus(a, b)), A + B, A + B)
    rounded(vector(spatial.minus(a, b)), A - B, A - B)
    rounded(vector(spatial.scale(k, a)), np.asarray(k)[..., None] * A, A)
    rounded(vector(spatial.cross(a, b)), np.cross(A, B), A, B)
    rounded(np.asarray(spatial.inner(a, b)), (A * B).sum(-1), A, B)
    rounded(vector(spatial.apply(m, a)), times(M, A), M, A)


@over_kinds
@over_seeds
def test_matrices(kind: str, seed: int) -> None:
    draw = Draw(kind, seed)
    m, n, s, t, a = draw.mat(), draw.mat(), draw.symmetric(), draw.symmetric(), draw.vec()
    M, N, S, T, A = matrix(m), matrix(n), matrix(s), matrix(t), vector(a)
    rounded(matrix(spatial.transpose(m)), turn(M), M)
    rounded(matrix(spatial.matmul(m, n)), M @ N, M, N)
    rounded(matrix(spatial.sum_matrices(m, n)), M + N, M + N)
    rounded(matrix(spatial.sum_symmetric(s, t)), S + T, S + T)
    rounded(matrix(spatial.skew(a)), hat(A), A)
    rounded(matrix(spatial.skew_squared(a)), hat(A) @ hat(A), A, A)
    assert exactly_symmetric(spatial.sum_symmetric(s, t))
    assert exactly_symmetric(spatial.skew_squared(a))


def test_symmetric_by_its_upper_entries() -> None:
    expected = ((1.0, 2.0, 3.0), (2.0, 4.0, 5.0), (3.0, 5.0, 6.0))
    assert spatial.symmetric(1.0, 2.0, 3.0, 4.0, 5.0, 6.0) == expected


# ---- rotations -----------------------------------------------------------------------------------


@over_kinds
@pytest.mark.parametrize("style", ["axis", "permutation", "matrix"])
@over_seeds
def test_rotations(kind: str, style: str, seed: int) -> None:
    draw = Draw(kind, seed)
    r, v, m, s = draw.rotation(style), draw.vec(), draw.mat(), draw.symmetric()
    R, V, M, S = elementary(r), vector(v), matrix(m), matrix(s)
    rounded(R @ turn(R), np.eye(3), R)
    rounded(vector(r.rotate(v)), times(R, V), V)
    rounded(vector(r.unrotate(v)), times(turn(R), V), V)
    rounded(matrix(r.conjugate(m)), R @ M @ turn(R), M)
    rounded(matrix(r.conjugate_symmetric(s)), R @ S @ turn(R), S)
    assert exactly_symmetric(r.conjugate_symmetric(s))


@pytest.mark.parametrize("r", permutations())
def test_permutations_are_exact(r: SignedPermutation) -> None:
    R = elementary(r)
    v, m = (2.0, 3.0, 5.0), ((2.0, 3.0, 5.0), (7.0, 11.0, 13.0), (17.0, 19.0, 23.0))
    np.testing.assert_array_equal(r.rotate(v), R @ v)
    np.testing.assert_array_equal(r.unrotate(v), R.T @ v)
    np.testing.assert_array_equal(r.conjugate(m), R @ np.array(m) @ R.T)


@pytest.mark.parametrize("k", range(3))
def test_about_axis_turns_right_handed(k: int) -> None:
    quarter = about_axis(k, math.pi / 2)
    rotated = np.array(quarter.rotate(UNIT[(k + 1) % 3]))
    np.testing.assert_allclose(rotated, UNIT[(k + 2) % 3], atol=1e-15)
    batch = about_axis(k, np.array([0.0, 0.3]))
    for n, angle in enumerate((0.0, 0.3)):
        expected = ScipyRotation.from_rotvec(angle * np.eye(3)[k]).as_matrix()
        np.testing.assert_allclose(elementary(batch)[n], expected, atol=1e-15)


@over_seeds
def test_quaternions(seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(BATCH, 4))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    expected = ScipyRotation.from_quat(x).as_matrix()
    np.testing.assert_allclose(matrix(from_quaternion(*x.T).rows), expected, atol=2e-15)
    for one, rows in zip(x, expected, strict=True):
        np.testing.assert_allclose(from_quaternion(*one.tolist()).rows, rows, atol=2e-15)


def test_simple_quaternions_are_exact() -> None:
    assert from_quaternion(0.0, 0.0, 0.0, 1.0).rows == UNIT
    assert from_quaternion(1.0, 0.0, 0.0, 0.0).rows == (
        (1.0, 0.0, 0.0),
        (0.0, -1.0, 0.0),
        (0.0, 0.0, -1.0),
    )


# ---- factors of a constant rotation --------------------------------------------------------------


def rpy_matrix(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """Rz(yaw) Ry(pitch) Rx(roll)."""
    e = np.eye(3)
    x, y, z = (
        np.outer(a, a) + math.cos(t) * (np.eye(3) - np.outer(a, a)) + math.sin(t) * hat(a)
        for a, t in zip(e, (roll, pitch, yaw), strict=True)
    )
    return z @ y @ x


def rows_of(R: np.ndarray):
    a, b, c = (tuple(float(x) for x in row) for row in R)
    return a, b, c


def product(rotations) -> np.ndarray:
    return rotation_of(Transform(tuple(rotations), ZERO)) + np.zeros((3, 3))


def check_factors(R: np.ndarray) -> None:
    rotations = factor(rows_of(R))
    assert len(rotations) <= 3
    np.testing.assert_allclose(product(rotations), R, rtol=0, atol=TOLERANCE)


def test_identity_has_no_factor() -> None:
    assert factor(UNIT) == ()


@pytest.mark.parametrize("r", permutations()[1:])
def test_axes_onto_axes_is_one_permutation(r: SignedPermutation) -> None:
    rotations = factor(rows_of(elementary(r)))
    assert len(rotations) == 1
    assert isinstance(rotations[0], SignedPermutation)
    np.testing.assert_array_equal(product(rotations), elementary(r))


def test_the_first_permutation_is_the_identity() -> None:
    np.testing.assert_array_equal(elementary(permutations()[0]), np.eye(3))


@pytest.mark.parametrize("angle", [-3.0, -1.5, -1e-3, -1e-9, 1e-12, 0.1, 1.0, 1.6, 3.1])
@pytest.mark.parametrize("k", range(3))
def test_about_a_coordinate_axis_is_one_factor(k: int, angle: float) -> None:
    R = elementary(about_axis(k, angle))
    rotations = factor(rows_of(R))
    assert len(rotations) == 1
    assert isinstance(rotations[0], AxisRotation)
    assert rotations[0].k == k
    np.testing.assert_array_equal(product(rotations), R)


@given(st.tuples(*[st.floats(-math.pi, math.pi)] * 3))
@settings(max_examples=200, derandomize=True)
def test_general_rotations(rpy: tuple[float, float, float]) -> None:
    check_factors(rpy_matrix(*rpy))


def test_a_general_rotation_is_roll_pitch_yaw() -> None:
    rotations = factor(rows_of(rpy_matrix(0.3, -0.5, 2.0)))
    assert [r.k for r in rotations] == [0, 1, 2]
    angles = [math.atan2(r.s, r.c) for r in rotations]
    np.testing.assert_allclose(angles, [0.3, -0.5, 2.0], rtol=1e-14)


@pytest.mark.parametrize("off", [0.0, *(10.0**-n for n in range(1, 18))])
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_near_gimbal_lock(side: float, off: float) -> None:
    rng = np.random.default_rng(1)
    for sign in (-1.0, 1.0):
        for _ in range(10):
            roll, yaw = rng.uniform(-math.pi, math.pi, 2)
            check_factors(rpy_matrix(roll, side * math.pi / 2 + sign * off, yaw))
        check_factors(rpy_matrix(0.0, side * math.pi / 2 + sign * off, 0.4))
        check_factors(rpy_matrix(0.4, side * math.pi / 2 + sign * off, 0.0))


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_exact_gimbal_lock(side: float) -> None:
    """Zeros where rounding would leave 6e-17: the pitch of 90 degrees that files snap to."""
    for angle in (0.4, -2.0, 3.0):
        s, c = math.sin(angle), math.cos(angle)
        check_factors(np.array([[0.0, -s, side * c], [0.0, c, side * s], [-side, 0.0, 0.0]]))


@pytest.mark.parametrize(("k", "other"), list(itertools.permutations(range(3), 2)))
def test_a_tiny_tilt_is_kept(k: int, other: int) -> None:
    """A cosine rounds to one long before its sine vanishes: at angles of 1e-8."""
    for angle in (1.1, 1e-9):
        for exponent in range(3, 17):
            tilt = elementary(about_axis(other, 10.0**-exponent))
            tilted = elementary(about_axis(k, angle)) @ tilt
            check_factors(tilted)
            check_factors(tilted.T)


@pytest.mark.parametrize("exponent", [2, 5, 7, 9, 11, 16])
def test_near_axes_onto_axes(exponent: int) -> None:
    rng = np.random.default_rng(exponent)
    for r in permutations():
        tilt = rpy_matrix(*(rng.normal(size=3) * 10.0**-exponent))
        check_factors(elementary(r) @ tilt)


# ---- motions, wrenches, transforms ---------------------------------------------------------------


@over_kinds
@over_seeds
def test_motions_and_wrenches(kind: str, seed: int) -> None:
    draw = Draw(kind, seed)
    m, n, f, g, k = draw.motion(), draw.motion(), draw.wrench(), draw.wrench(), draw.scalar()
    M, N, F, G = entries(m), entries(n), entries(f), entries(g)
    K = np.asarray(k)[..., None]
    rounded(entries(m + n), M + N, M + N)
    rounded(entries(m.scaled(k)), K * M, M)
    rounded(entries(f + g), F + G, F + G)
    rounded(entries(f - g), F - G, F - G)
    rounded(entries(f.scaled(k)), K * F, F)
    rounded(np.asarray(f.dot(m)), (F * M).sum(-1), F, M)
    weights = [draw.scalar() for _ in range(3)]
    expected = sum(
        np.asarray(w)[..., None] * x for w, x in zip(weights, (M, N, M - N), strict=True)
    )
    third = m + n.scaled(-1.0)
    rounded(entries(spatial.combine(weights, [m, n, third])), expected, M, N)


def test_nothing() -> None:
    assert spatial.combine([], []) == NO_MOTION
    assert NO_MOTION.entries() == NO_WRENCH.entries() == (0.0,) * 6
    np.testing.assert_array_equal(inertia_matrix(NO_INERTIA), np.zeros((6, 6)))
    with pytest.raises(ValueError, match="shorter"):
        spatial.combine([1.0, 2.0], [NO_MOTION])


@over_kinds
@pytest.mark.parametrize("seed", range(30))
def test_transforms(kind: str, seed: int) -> None:
    draw = Draw(kind, seed)
    x, v, motion, wrench = draw.transform(), draw.vec(), draw.motion(), draw.wrench()
    R, p, V, X = rotation_of(x), vector(x.offset), vector(v), motion_matrix(x)
    rounded(matrix(x.matrix()), R, R)
    rounded(vector(x.rotate(v)), times(R, V), V)
    rounded(vector(x.unrotate(v)), times(turn(R), V), V)
    rounded(vector(x.point(v)), times(R, V) + p, V, p)
    rounded(entries(x.to_child(motion)), times(X, entries(motion)), X, entries(motion))
    rounded(entries(x.to_parent(wrench)), times(turn(X), entries(wrench)), X, entries(wrench))


@over_seeds
def test_power_does_not_depend_on_the_frame(seed: int) -> None:
    draw = Draw("batch", seed)
    x, motion, wrench = draw.transform(), draw.motion(), draw.wrench()
    child, parent = wrench.dot(x.to_child(motion)), x.to_parent(wrench).dot(motion)
    size_of_x = motion_matrix(x)
    rounded(np.asarray(child), np.asarray(parent), size_of_x, entries(motion), entries(wrench))


def test_to_child_is_the_velocity_at_the_childs_origin() -> None:
    """A frame one metre along x on a body that turns about z moves along y."""
    x = Transform((about_axis(2, math.pi / 2),), (1.0, 0.0, 0.0))
    seen = x.to_child(Motion((0.0, 0.0, 2.0), ZERO))
    np.testing.assert_allclose(seen.entries(), [0, 0, 2, 2, 0, 0], atol=1e-15)
    felt = x.to_parent(Wrench(ZERO, (3.0, 0.0, 0.0)))
    np.testing.assert_allclose(felt.entries(), [0, 0, 3, 0, 3, 0], atol=1e-15)


# ---- inertias ------------------------------------------------------------------------------------


@over_kinds
@over_seeds
@pytest.mark.parametrize("sort", ["rigid", "articulated"])
def test_inertias_are_matrices(kind: str, seed: int, sort: str) -> None:
    draw = Draw(kind, seed)
    first, second, motion = getattr(draw, sort)(), getattr(draw, sort)(), draw.motion()
    A, B, V = inertia_matrix(first), inertia_matrix(second), entries(motion)
    rounded(inertia_matrix(first + second), A + B, A + B)
    rounded(entries(first * motion), times(A, V), A, V)


@over_kinds
@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("sort", ["rigid", "articulated"])
def test_inertias_in_the_parent(kind: str, seed: int, sort: str) -> None:
    draw = Draw(kind, seed)
    inertia, x = getattr(draw, sort)(), draw.transform()
    X, I = motion_matrix(x), inertia_matrix(inertia)  # noqa: E741
    moved = inertia.in_parent(x)
    assert type(moved) is type(inertia)
    rounded(inertia_matrix(moved), turn(X) @ I @ X, X, I, X)
    for block in (moved.inertia,) if sort == "rigid" else (moved.a, moved.c):
        assert exactly_symmetric(block)
    if sort == "rigid":
        assert moved.mass is inertia.mass


@over_kinds
@over_seeds
def test_articulated_of_a_rigid_body(kind: str, seed: int) -> None:
    body = Draw(kind, seed).rigid()
    articulated = body.articulated()
    assert isinstance(articulated, ArticulatedInertia)
    np.testing.assert_array_equal(inertia_matrix(articulated), inertia_matrix(body))


@over_kinds
@over_seeds
def test_newton_euler(kind: str, seed: int) -> None:
    """With U = [α]x + [ω]x²: f = m a + α x h + ω x (ω x h), n = h x a + I α + ω x I ω."""
    draw = Draw(kind, seed)
    body, a, alpha, omega = draw.rigid(), draw.vec(), draw.vec(), draw.vec()
    u = spatial.sum_matrices(spatial.skew(alpha), spatial.skew_squared(omega))
    h, I = vector(body.h), matrix(body.inertia)  # noqa: E741
    A, alpha, omega = vector(a), vector(alpha), vector(omega)
    force = np.asarray(body.mass)[..., None] * A + np.cross(alpha, h)
    force = force + np.cross(omega, np.cross(omega, h))
    moment = np.cross(h, A) + times(I, alpha) + np.cross(omega, times(I, omega))
    expected = np.concatenate(np.broadcast_arrays(moment, force), -1)
    operand = inertia_matrix(body)
    motion = np.concatenate(np.broadcast_arrays(A, alpha, omega), -1)
    rounded(entries(body.newton_euler(a, u)), expected, operand, motion, motion)


@over_seeds
def test_newton_euler_of_point_masses(seed: int) -> None:
    """Any U at all: the wrench is the sum of m (a + U r) over the points of the body."""
    rng = np.random.default_rng(seed)
    masses, points = rng.uniform(0.5, 2.0, 6), rng.normal(size=(6, 3))
    a, u = rng.normal(size=3), rng.normal(size=(3, 3))
    inertia = sum(
        m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, points, strict=True)
    )
    body = RigidInertia(
        float(masses.sum()), tuple((masses @ points).tolist()), rows_of((inertia + inertia.T) / 2)
    )
    forces = masses[:, None] * (a + points @ u.T)
    expected = np.concatenate([np.cross(points, forces).sum(0), forces.sum(0)])
    actual = entries(body.newton_euler(tuple(a.tolist()), rows_of(u)))
    rounded(actual, expected, inertia_matrix(body), u)


@over_kinds
@over_seeds
def test_gyroscopic(kind: str, seed: int) -> None:
    draw = Draw(kind, seed)
    body, omega = draw.rigid(), draw.vec()
    h, I, W = vector(body.h), matrix(body.inertia), vector(omega)  # noqa: E741
    moment = np.cross(W, times(I, W))
    force = np.cross(W, np.cross(W, h))
    expected = np.concatenate(np.broadcast_arrays(moment, force), -1)
    actual = entries(body.gyroscopic(spatial.skew_squared(omega)))
    rounded(actual, expected, inertia_matrix(body), W, W)


@over_kinds
@over_seeds
def test_minus_outer(kind: str, seed: int) -> None:
    draw = Draw(kind, seed)
    inertia, u, k = draw.articulated(), draw.wrench(), draw.scalar()
    U = entries(u)
    outer = np.asarray(k)[..., None, None] * U[..., :, None] * U[..., None, :]
    left = inertia.minus_outer(u, k)
    rounded(inertia_matrix(left), inertia_matrix(inertia) - outer, U, U, np.asarray(k)[..., None])
    assert exactly_symmetric(left.a)
    assert exactly_symmetric(left.c)


@over_kinds
@pytest.mark.parametrize("gone", [(), (0,), (5,), (1, 3), (0, 1, 2), (3, 4, 5), (0, 2, 4, 5)])
def test_without(kind: str, gone: tuple[int, ...]) -> None:
    """The rows and columns are structural zeros; the rest is left as it is."""
    inertia = Draw(kind, 1).articulated()
    kept = np.ones(6)
    kept[list(gone)] = 0.0
    left = inertia.without(gone)
    np.testing.assert_array_equal(
        inertia_matrix(left), inertia_matrix(inertia) * np.outer(kept, kept)
    )
    for first, second, block in ((0, 0, left.a), (0, 3, left.b), (3, 3, left.c)):
        for i, j in itertools.product(range(3), repeat=2):
            if i + first in gone or j + second in gone:
                assert type(block[i][j]) is float


def test_directions_without_inertia_may_come_from_a_generator() -> None:
    inertia = Draw("floats", 2).articulated()
    assert inertia.without(k for k in (1, 4)) == inertia.without([1, 4])


def test_structure_stays() -> None:
    """A body about its centre, turned by a permutation, remains free of structural nonzeros."""
    body = RigidInertia(2.0, ZERO, ((1.0, 0.0, 0.0), (0.0, 2.0, 0.0), (0.0, 0.0, 3.0)))
    for r in permutations():
        moved = body.in_parent(Transform((r,), ZERO))
        assert moved.h == ZERO
        zeros = [moved.inertia[i][j] for i in range(3) for j in range(3) if i != j]
        assert zeros == [0.0] * 6
    along = body.in_parent(Transform((), (0.0, 0.0, Trace().inputs(1)[0])))
    assert [is_zero(x) for x in along.h] == [True, True, False]
    assert along.inertia[0][1] == along.inertia[0][2] == along.inertia[1][2] == 0.0
    assert along.inertia[2][2] == 3.0
