"""Contact problems: solved to rounding, by laws that are checked one by one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from robomodel.dynamics.contact import interior_point as cones
from robomodel.dynamics.contact.complementarity import (
    ArrayProblem,
    _from_inside,
    _padded,
    solve,
    solve_each,
)
from robomodel.dynamics.contact.gauss_seidel import Sweeps, _eliminated
from robomodel.dynamics.contact.problem import APART, RowKinds

Array = NDArray[np.float64]


def random_problem(
    rng: np.random.Generator, k: int, stops: int, boxes: int, freedoms: int
) -> ArrayProblem:
    """G = J M⁻¹ Jᵀ, b = J v: rows of a mechanism with fewer freedoms than rows, perhaps."""
    rows = RowKinds(k, stops, boxes)
    j = rng.standard_normal((rows.size, freedoms))
    root = rng.standard_normal((freedoms, freedoms))
    g = j @ np.linalg.solve(root @ root.T + 0.1 * np.eye(freedoms), j.T)
    b = j @ rng.standard_normal(freedoms)
    return ArrayProblem(rows, g, b, rng.uniform(0.1, 1.2, k), rng.uniform(0.0, 0.5, boxes))


def obeys(problem: ArrayProblem, x: Array, within: float) -> None:
    """Signorini, Coulomb, stops and friction, each as it is said."""
    y, k = problem.matrix @ x + problem.b, problem.rows.contacts
    size = np.abs(problem.b).max()
    for i in range(k):
        (x0, x1, n), (y0, y1, gap) = x[3 * i : 3 * i + 3], y[3 * i : 3 * i + 3]
        push, slip, mu = np.hypot(x0, x1), np.hypot(y0, y1), problem.friction[i]
        unit = 1.0 / problem.traces[3 * i]  # impulses of the size of velocities
        assert n >= -within * size * unit
        assert gap >= -within * size
        assert abs(n * gap) <= within * size * size * unit * 10
        assert push <= mu * n + within * size * unit
        assert abs(x0 * y0 + x1 * y1 + mu * n * slip) <= within * size * size * unit * 10
    first = 3 * k
    for j in range(first, first + problem.rows.stops):
        assert x[j] >= -within
        assert y[j] >= -within * size
        assert abs(x[j] * y[j]) <= within * size
    for j, bound in zip(range(first + problem.rows.stops, len(x)), problem.bounds, strict=True):
        assert abs(x[j]) <= bound + within
        assert bound * abs(y[j]) + x[j] * y[j] <= within * size


@pytest.mark.slow_cases("6-2-2-12")
@pytest.mark.parametrize(
    ("k", "stops", "boxes", "freedoms"),
    [(1, 0, 0, 6), (4, 0, 0, 18), (2, 1, 3, 8), (0, 3, 4, 9), (4, 0, 0, 6), (6, 2, 2, 12)],
)
def test_random_problems(k: int, stops: int, boxes: int, freedoms: int) -> None:
    rng = np.random.default_rng(k + 10 * stops)
    for _ in range(12):
        problem = random_problem(rng, k, stops, boxes, freedoms)
        x, residual = solve(problem, np.zeros(problem.rows.size))
        assert residual <= 1e-10
        obeys(problem, x, 1e-7)


def standing_on_feet(rng: np.random.Generator, feet: int) -> ArrayProblem:
    """Rigid rectangular feet, four corners each, of a robot whose other inertia is random."""
    corners = np.array([(x, y, -0.05) for x in (-0.1, 0.1) for y in (-0.05, 0.05)])
    j = np.zeros((12 * feet, 6 * feet))
    for f in range(feet):
        for c, r in enumerate(corners + np.cross(rng.choice([0.0, 0.2]) * rng.random(3), corners)):
            at = slice(12 * f + 3 * c, 12 * f + 3 * c + 3)
            j[at, 6 * f : 6 * f + 6] = np.hstack([np.eye(3), np.cross(np.eye(3), r)])
    scale = np.tile([1.0, 1.0, 1.0, 10.0, 10.0, 10.0], feet)
    root = 0.3 * rng.standard_normal((6 * feet, 6 * feet))
    g = j @ (scale[:, None] * (np.eye(6 * feet) + root @ root.T) * scale) @ j.T / 10
    v = rng.standard_normal(6 * feet) * np.tile([0.3, 0.3, 0.3, 2.0, 2.0, 2.0], feet)
    v[2::6] -= rng.random()
    b = j @ (rng.choice([0.01, 1.0]) * v)
    b[2::3] += rng.choice([0.0, 1e-6, 1e-3]) * rng.random(4 * feet)  # gaps
    friction = np.full(4 * feet, rng.choice([0.0, 0.1, 0.3, 0.8, 1.5]))
    return ArrayProblem(RowKinds(4 * feet), g, b, friction, np.empty(0))


@pytest.mark.slow
def test_redundant_contacts() -> None:
    """G of rank 12 of 24: standing, landing and sliding on two rigid feet."""
    rng = np.random.default_rng(1)
    for _ in range(25):
        problem = standing_on_feet(rng, 2)
        x, residual = solve(problem, np.zeros(24))
        assert residual <= 1e-10
        obeys(problem, x, 1e-7)


@pytest.mark.slow
def test_the_interior_point_method_alone() -> None:
    """With stops, dry friction, dry friction without bound, and contacts without friction."""
    rng = np.random.default_rng(2)
    for _ in range(30):
        problem = random_problem(rng, 4, 2, 3, 8)
        problem.friction[1], problem.bounds[0] = 0.0, 0.0
        size = np.abs(problem.b).max()
        x = min(_from_inside(problem, 1e-12 * size, 1.0), key=problem.residual)
        assert problem.residual(x) <= 1e-10 * size
        obeys(problem, x, 1e-7)


def test_planar_contacts_have_singular_blocks() -> None:
    """In the plane the second tangent does nothing."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        j = rng.standard_normal((6, 3))
        j[[1, 4]] = 0.0
        g, b = j @ j.T, j @ np.array([0.5, 0.3, -1.0])
        problem = ArrayProblem(RowKinds(2), g, b, np.array([0.6, 0.6]), np.empty(0))
        x, residual = solve(problem, np.zeros(6))
        assert residual <= 1e-10
        obeys(problem, x, 1e-7)


def test_one_contact_against_its_cases() -> None:
    """With G the identity: opening, sticking, and sliding along the old slip."""
    for b, expected in (
        ((0.3, 0.0, 0.5), (0.0, 0.0, 0.0)),
        ((0.1, -0.2, -1.0), (-0.1, 0.2, 1.0)),
        ((3.0, 4.0, -1.0), (-0.3, -0.4, 1.0)),
    ):
        problem = ArrayProblem(RowKinds(1), np.eye(3), np.array(b), np.array([0.5]), np.empty(0))
        np.testing.assert_allclose(solve(problem, np.zeros(3))[0], expected, atol=1e-9)


def test_without_friction_it_is_a_linear_problem() -> None:
    rng = np.random.default_rng(1)
    problem = random_problem(rng, 3, 0, 0, 10)
    problem = ArrayProblem(problem.rows, problem.matrix, problem.b, np.zeros(3), np.empty(0))
    x, residual = solve(problem, np.zeros(9))
    assert residual <= 1e-10
    np.testing.assert_allclose(x.reshape(3, 3)[:, :2], 0.0, atol=1e-12)


@pytest.mark.parametrize("toward", [2.0, -2.0])
def test_straight_impacts_without_friction(toward: float) -> None:
    """Without slip the cone is a ray: no impulse pulls, neither in the residual."""
    g, b = np.eye(3), np.array([0.0, 0.0, toward])
    problem = ArrayProblem(RowKinds(1), g, b, np.zeros(1), np.empty(0))
    x, residual = solve(problem, np.zeros(3))
    assert residual <= 1e-10
    np.testing.assert_allclose(x, [0.0, 0.0, max(-toward, 0.0)], atol=1e-12)
    pulling = np.array([0.0, 0.0, -2.0])
    assert problem.residual(pulling) > 0.1
    sweeps = Sweeps(RowKinds(1), g.tolist(), b.tolist(), [0.0], [])
    assert float(sweeps.residual(pulling.tolist())) == problem.residual(pulling)


@pytest.mark.parametrize(("friction", "forward"), [(0.8, 0.3), (0.2, 2.0), (0.0, 2.0)])
def test_impulses_that_do_the_same_are_the_least(friction: float, forward: float) -> None:
    """A body that lands flat on four points, and sticks or slides: as statics says, no squeeze."""
    corners = [(x, y, -0.1) for x in (0.2, -0.2) for y in (0.1, -0.1)]
    arms = [np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]) for x, y, z in corners]
    j = np.vstack([np.hstack([-arm, np.eye(3)]) for arm in arms])  # v + ω × r
    mass = np.diag([0.01, 0.02, 0.03, 2.0, 2.0, 2.0])
    g = j @ np.linalg.solve(mass, j.T)
    b = j @ [0, 0, 0, forward, 0, -1.0]
    problem = ArrayProblem(RowKinds(4), g, b, np.full(4, friction), np.empty(0))
    x, residual = solve(problem, np.zeros(12))
    assert residual <= 1e-10
    slide = min(0.3 * 2.0, 2.0 * friction)  # impulse along x, all points together
    tilt = -0.1 * slide / (4 * 0.2)  # what it turns over is borne by the points in front
    normal = np.array([0.5 - tilt * np.sign(x) for x, _, _ in corners])
    along = -friction * normal if slide < 0.6 else np.full(4, -slide / 4)
    expected = np.stack([along, np.zeros(4), normal], axis=1)
    np.testing.assert_allclose(x.reshape(4, 3), expected, atol=1e-8)
    x[2::3] += 1e-3 * np.array([1, -1, -1, 1])  # what a block does not feel
    np.testing.assert_allclose(solve(problem, x)[0].reshape(4, 3), expected, atol=1e-8)


def test_the_kernels_sweep_is_numpys() -> None:
    """The same source on a batch: lanes are problems."""
    rng = np.random.default_rng(2)
    problems = [random_problem(rng, 2, 1, 1, 8) for _ in range(5)]
    stacked = [np.array([getattr(p, name) for p in problems]) for name in
               ("matrix", "b", "friction", "bounds")]  # fmt: skip
    matrix, b, friction, bounds = (list(np.moveaxis(x, 0, -1)) for x in stacked)
    with np.errstate(all="ignore"):
        sweeps = Sweeps(RowKinds(2, 1, 1), matrix, b, friction, bounds)
        x = [np.zeros(5) for _ in range(8)]
        slips = [np.zeros(5) for _ in range(2)]
        for _ in range(60):
            x, slips = sweeps.sweep(x, slips)
        residual = sweeps.residual(x)
    for i, problem in enumerate(problems):
        exact, _ = solve(problem, np.zeros(8), 1e-13)
        got = np.array([column[i] for column in x])
        far = problem.residual(got) / np.abs(problem.b).max()
        np.testing.assert_allclose(
            problem.matrix @ got, problem.matrix @ exact, atol=1e-9 + 100 * far
        )
        assert residual[i] == pytest.approx(problem.residual(got), abs=1e-12)


def test_problems_side_by_side() -> None:
    """Each as it is alone, to the bit, redundant ones and one with a contact apart, too."""
    rng = np.random.default_rng(3)
    problems = [random_problem(rng, 2, 1, 1, freedoms) for freedoms in (4, 5, 6, 8, 12)]
    problems[0].b[2] = APART
    many = ArrayProblem(RowKinds(2, 1, 1), *(np.array([getattr(p, name) for p in problems])
                        for name in ("matrix", "b", "friction", "bounds")))  # fmt: skip
    x, residuals = solve_each(many, np.zeros((5, 8)))
    assert residuals.max() <= 1e-10
    np.testing.assert_array_equal(x[0, :3], 0.0)
    for i, problem in enumerate(problems):
        if i:
            obeys(problem, x[i], 1e-9)
        one = ArrayProblem(problem.rows, *(part[i : i + 1] for part in
                           (many.matrix, many.b, many.friction, many.bounds)))  # fmt: skip
        np.testing.assert_array_equal(solve_each(one, np.zeros((1, 8)))[0][0], x[i])


def test_sizes_that_sweeps_are_compiled_for() -> None:
    assert _padded(RowKinds(3, 1, 0)) == RowKinds(4, 1, 0)
    assert _padded(RowKinds(16, 5, 9)) == RowKinds(16, 6, 12)
    assert _padded(RowKinds(17)) is None


def test_nothing_to_solve() -> None:
    problem = ArrayProblem(RowKinds(1), np.eye(3), np.zeros(3), np.array([0.5]), np.empty(0))
    x, residual = solve(problem, np.ones(3))
    np.testing.assert_array_equal(x, 0.0)
    assert residual == 0.0


def test_elimination_in_the_order_of_the_rows() -> None:
    """The linear system of Newton's steps, which sweeps would make up for if it were wrong."""
    rng = np.random.default_rng(7)
    matrix, right = rng.standard_normal((5, 5)) + 5.0 * np.eye(5), rng.standard_normal(5)
    found = _eliminated(matrix.tolist(), right.tolist())
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right), rtol=0, atol=1e-14)


def in_cones(rng: np.random.Generator, m: int) -> Array:
    """Interior points (m, 3) of Lorentz's cones."""
    x = rng.standard_normal((m, 3))
    x[:, 2] = np.hypot(x[:, 0], x[:, 1]) + rng.uniform(0.05, 1.0, m)
    return x


def test_algebra_of_cones() -> None:
    """Jordan's product and quotient, Nesterov and Todd's scaling, the way to the boundaries."""
    rng = np.random.default_rng(0)
    x, z, v = in_cones(rng, 6), in_cones(rng, 6), rng.standard_normal((6, 3))
    products = np.sum(x * v, axis=1), x[:, 2:] * v[:, :2] + v[:, 2:] * x[:, :2]
    np.testing.assert_allclose(cones._product(x, v)[:, 2], products[0], atol=1e-14)
    np.testing.assert_allclose(cones._product(x, v)[:, :2], products[1], atol=1e-14)
    np.testing.assert_allclose(cones._product(x, cones._quotient(x, v)), v, atol=1e-12)
    scaling = cones.Scaling.of(x, z)
    np.testing.assert_allclose(scaling.times(z), scaling.times(x, -1.0), atol=1e-13)
    np.testing.assert_allclose(scaling.times(scaling.times(v), -1.0), v, atol=1e-13)
    twice = scaling.times(scaling.times(v, -1.0), -1.0)
    np.testing.assert_allclose(
        np.einsum("mij,mj->mi", scaling.inverse_square(), v), twice, atol=1e-12
    )
    for one, way in ((x, v), (z, -v), (x[:1], v[:1])):
        length = cones._reach(one, way)
        ends = one + length * way
        margins = ends[:, 2] - np.hypot(ends[:, 0], ends[:, 1])
        assert abs(margins.min()) < 1e-13
    assert cones._reach(x, z) == np.inf
    eigenvalues = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 1.0]])  # of the products: 3 · 1, 1 · 1
    ones = np.array([[0.0, 0.0, 1.0]] * 2)
    assert cones._is_central(eigenvalues, ones)
    assert not cones._is_central(eigenvalues, ones * [[1.0], [1e-3]])


def test_slopes_of_newtons_equations() -> None:
    """Alart and Curnier's F by differences, with contacts that stick, slide, part; stops; boxes."""
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(40):
        problem = random_problem(rng, 2, 2, 2, 12)
        x, n = rng.standard_normal(problem.rows.size), problem.rows.size
        _, slope, _ = problem.equations(x)
        drift = np.eye(n) - problem.matrix / problem.traces[:, None]  # of x - d y by x
        h = 1e-7
        for j, unit in enumerate(np.eye(n)):
            ends = [problem.equations(x + s * h * unit)[0] for s in (1.0, -1.0)]
            rate = (ends[0] - ends[1]) / (2 * h)
            np.testing.assert_allclose((np.eye(n) - slope @ drift)[:, j], rate, atol=1e-6)
        a = x - (problem.matrix @ x + problem.b) / problem.traces
        for i in range(2):
            push = np.hypot(*a[3 * i : 3 * i + 2]) > problem.friction[i] * a[3 * i + 2]
            seen.add((a[3 * i + 2] > 0.0, bool(push)))
        seen |= {("stop", bool(s > 0.0)) for s in a[6:8]}
        seen |= {("box", bool(abs(s) < m)) for s, m in zip(a[8:], problem.bounds, strict=True)}
    assert len(seen) >= 7


def test_rows_that_nothing_moves_and_narrow_bounds() -> None:
    """Without inverse inertia nothing is divided by it; the middle of small intervals is inside."""
    rng = np.random.default_rng(4)
    problem = random_problem(rng, 2, 1, 2, 12)
    for at in (slice(0, 3), slice(6, 7)):
        problem.matrix[at], problem.matrix[:, at] = 0.0, 0.0
        problem.b[at] = 0.0
    assert np.all(problem.traces[[0, 1, 2, 6]] == 1.0)
    x, residual = solve(problem, np.zeros(9))
    assert residual <= 1e-10
    obeys(problem, x, 1e-7)
    problem = random_problem(rng, 0, 0, 3, 8)
    problem.bounds[:] = 1e-3
    size = np.abs(problem.b).max()
    x = min(_from_inside(problem, 1e-12 * size, 1.0), key=problem.residual)
    assert problem.residual(x) <= 1e-10 * size
    np.testing.assert_allclose(abs(x), 1e-3, rtol=1e-9)


def test_contacts_apart_take_no_part() -> None:
    """Of three contacts one is apart: the others' impulses are those without it, its own zero."""
    rng = np.random.default_rng(5)
    problem = random_problem(rng, 3, 2, 1, 18)
    problem.b[5], problem.b[10] = 2.0 * APART, 2.0 * APART
    x, residual = solve(problem, np.zeros(12))
    assert residual <= 1e-10
    acting = np.ones(12, dtype=bool)
    acting[[3, 4, 5, 10]] = False
    np.testing.assert_array_equal(x[~acting], 0.0)
    few = ArrayProblem(
        RowKinds(2, 1, 1), problem.matrix[np.ix_(acting, acting)], problem.b[acting],
        problem.friction[[0, 2]], problem.bounds,
    )  # fmt: skip
    np.testing.assert_allclose(solve(few, np.zeros(8))[0], x[acting], atol=1e-12)
