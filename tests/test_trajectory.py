"""Factor graphs over time: factors, solvers, and the problems they are made for."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from texts import joint, link, robot
from trajectory_graphs import (
    PLANAR_FACTORS,
    Array,
)

import robomodel as rm
from benchmarks import trajectories as paper
from robomodel.estimation import elimination
from robomodel.estimation.elimination import UndeterminedError
from robomodel.estimation.factors import (
    Accelerometer,
    ConstantVelocity,
    Dynamics,
    Encoders,
    Equal,
    Euler,
    Gyroscope,
    Marker,
    Prior,
    Reading,
    Trapezoid,
    readings,
)
from robomodel.estimation.graph import Factor, Graph, as_noise, diagonal, exact, gaussian
from robomodel.estimation.problems import (
    spaces,
)
from robomodel.estimation.solve import fixed_lag, solve
from robomodel.estimation.spaces import Configurations, Space, Vectors
from robomodel.papers.natural_coordinates import planar

TREE = robot(
    link("trunk"),
    link("ball"),
    link("sheet"),
    link("tip"),
    joint("base_joint", "base", "trunk", kind="floating"),
    joint("ball_joint", "trunk", "ball", "0.1 0.2 0.3", kind="spherical"),
    joint("sheet_joint", "ball", "sheet", "0.2 0 0.1", kind="planar"),
    joint("tip_joint", "sheet", "tip", "0 0.3 0"),
)


@pytest.fixture(scope="module")
def tree() -> rm.Model:
    return rm.load(TREE)


@pytest.fixture(scope="module")
def crank() -> rm.Model:
    return rm.robots.load("crank_rocker")


# ---- noise ---------------------------------------------------------------------------------------


def test_noise_whitens() -> None:
    rng = np.random.default_rng(0)
    root = np.tril(rng.standard_normal((3, 3))) + 3 * np.eye(3)
    x = rng.standard_normal((5, 3, 2))
    sigma = root @ root.T
    dense = gaussian(sigma).whiten(x)
    expected = np.einsum("kia,ij,kjb->kab", x, np.linalg.inv(sigma), x)
    assert np.einsum("kia,kib->kab", dense, dense) == pytest.approx(expected, rel=1e-12)
    mixed = diagonal([0.5, 0.0, 2.0])
    assert mixed.whiten(x) == pytest.approx(x * np.array([[2.0], [1.0], [0.5]]))
    assert list(mixed.hard) == [False, True, False]
    assert as_noise(0.1, 2).covariance == pytest.approx(0.01 * np.eye(2))


def test_noise_samples_have_its_covariance() -> None:
    rng = np.random.default_rng(1)
    sigma = np.array([[2.0, 0.6], [0.6, 0.5]])
    for noise, wanted in ((gaussian(sigma), sigma), (diagonal([0.0, 3.0]), np.diag([0.0, 9.0]))):
        found = np.cov(noise.sample(rng, 40000).T)
        assert found == pytest.approx(wanted, abs=0.05 * np.max(wanted))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gaussian([[1.0, 0.0], [0.0, 0.0]]), "positive definite"),
        (lambda: gaussian([[1.0, 0.5], [0.0, 1.0]]), "symmetric"),
        (lambda: gaussian([1.0, 2.0]), "square"),
        (lambda: diagonal([1.0, -1.0]), "zero up"),
        (lambda: diagonal([1.0, math.nan]), "finite"),
        (lambda: as_noise(exact(2), 3), "3 rows"),
    ],
)
def test_noise_refuses(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


# ---- spaces --------------------------------------------------------------------------------------


def states(space: Space, count: int, rng: np.random.Generator, near: Array | None = None) -> Array:
    if isinstance(space, Configurations):
        if near is not None:
            return space.retract(near, 0.05 * rng.standard_normal((count, space.dim)))
        start = space.model.neutral()  # far from change points, which differences do not resolve
        return np.array([space.model.random_configuration(rng, near=start) for _ in range(count)])
    return rng.standard_normal((count, space.size))


def differentiated(function: Any, space: Space, x: Array) -> Array:
    """Derivative (K, rows, dim) by motions of x: central differences, extrapolated once."""
    columns = []
    for d in np.eye(space.dim):

        def change(h: float, d: Array = d) -> Array:
            up, down = (space.retract(x, np.tile(s * h * d, (len(x), 1))) for s in (1, -1))
            return (function(up) - function(down)) / (2 * h)

        columns.append((4 * change(5e-4) - change(1e-3)) / 3)
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("name", ["tree", "crank_rocker", "mini_cheetah", "vectors"])
def test_local_and_its_derivatives(name: str, tree: rm.Model) -> None:
    rng = np.random.default_rng(2)
    space: Space = (
        Vectors(4)
        if name == "vectors"
        else Configurations(tree if name == "tree" else rm.robots.load(name))
    )
    x0 = states(space, 4, rng)
    step = (0.6 if name == "tree" else 0.05) * rng.standard_normal((4, space.dim))
    x1 = space.retract(x0, step)
    assert space.local(x0, x1) == pytest.approx(step, abs=1e-12)
    first, second = space.local_jacobians(x0, x1)
    by_first = differentiated(lambda x: space.local(x, x1), space, x0)
    by_second = differentiated(lambda x: space.local(x0, x), space, x1)
    assert first == pytest.approx(by_first, abs=3e-10)
    assert second == pytest.approx(by_second, abs=3e-10)


def test_small_motions_of_loops_are_those_of_integrate() -> None:
    model = rm.robots.load("planar_leg_linkage")
    rng = np.random.default_rng(3)
    q = np.array([model.random_configuration(rng) for _ in range(20)])
    dq = 0.03 * rng.standard_normal((20, model.nv))
    moved = Configurations(model).retract(q, dq)
    assert moved == pytest.approx(model.integrate(q, dq), abs=1e-12)
    assert np.abs(model.residual(moved)).max() < 1e-13


# ---- factors: Jacobians --------------------------------------------------------------------------


def cases(model: rm.Model) -> list[tuple[Factor, dict[str, Space]]]:
    """Every factor of a model, with the spaces of its variables."""
    own = {**spaces(model, forces=True), "b": Vectors(3)}
    last = model.bodies[-1].name
    one = tuple(x.name for x in model.joints if x.nv == 1)
    made: Sequence[Factor] = [
        Prior("q", own["q"]),
        Equal("q", own["q"]),
        Euler("q", "v", 0.02, own["q"]),
        Trapezoid("q", "v", 0.02, own["q"]),
        Trapezoid("v", "a", 0.02, own["v"]),
        Dynamics(model),
        Dynamics(model, tau="tau"),
        Dynamics(model, form="acceleration"),
        Dynamics(model, form="acceleration", tau="tau"),
        Reading("tau", (0,), model.nv),
        Encoders(model, one),
        Gyroscope(model, last),
        Gyroscope(model, (last, (0.1, 0.2, 0.3)), bias="b"),
        Accelerometer(model, (last, (0.1, 0.2, 0.3))),
        Accelerometer(model, last, bias="b"),
        Marker(model, (last, (0.1, 0.2, 0.3))),
        ConstantVelocity("q", "v", 0.02, own["q"]),
    ]
    return [(factor, own) for factor in made]


def check_jacobians(factor: Factor, own: dict[str, Space], with_data: bool) -> None:
    rng = np.random.default_rng(4)
    x: list[Array] = []
    for name, offset in factor.variables:
        near = x[0] if offset else None  # neighbouring configurations are near each other
        x.append(states(own[name], 3, rng, near))
    e, slopes = factor.evaluate(x, None)
    data = None
    if with_data and isinstance(factor, Prior):
        data = states(own["q"], 3, rng, x[0])
    elif with_data and not isinstance(factor, planar.PlanarDynamics | planar._Independent):
        data = rng.standard_normal((3, e.shape[1]))
    e, slopes = factor.evaluate(x, data)
    assert e.shape == (3, factor.rows)
    assert len(slopes) == len(factor.variables)
    for i, (name, _) in enumerate(factor.variables):

        def of(value: Array, i: int = i) -> Array:
            return factor.evaluate([*x[:i], value, *x[i + 1 :]], data)[0]

        expected = differentiated(of, own[name], x[i])
        size = max(1.0, float(np.abs(expected).max()))
        assert slopes[i] == pytest.approx(expected, abs=2e-8 * size), name


@pytest.mark.parametrize("index", range(17))
def test_jacobians_on_a_linkage(index: int, crank: rm.Model) -> None:
    check_jacobians(*cases(crank)[index], with_data=True)


@pytest.mark.slow_cases("16", "5", "2", "6", "3")
@pytest.mark.parametrize(
    "index", [pytest.param(i, marks=pytest.mark.slow) if i in (7, 8) else i for i in range(1, 17)]
)
def test_jacobians_on_joints_of_many_freedoms(index: int, tree: rm.Model) -> None:
    check_jacobians(*cases(tree)[index], with_data=False)


def test_gaussian_processes_are_those_of_their_kernels() -> None:
    """Twice integrated white noise has the kernel m³/3 + |s - t| m²/2, m = min(s, t)."""
    step, count, density = 0.3, 5, np.array([0.7, 2.0])
    vectors = Vectors(2)
    process = ConstantVelocity("q", "v", step, vectors)
    graph = Graph({"q": vectors, "v": vectors}, count)
    for name in ("q", "v"):
        graph = graph.add(Prior(name, vectors), 0.0, times=[0])
    graph = graph.add(process, process.noise(density))
    zeros = np.zeros((count, 2))
    times = step * np.arange(count)
    covariances = solve(graph, {"q": zeros, "v": zeros}).covariances
    for t, sigma in zip(times, covariances, strict=True):
        own = np.array([[t**3 / 3, t**2 / 2], [t**2 / 2, t]])
        assert sigma == pytest.approx(np.kron(own, np.diag(density**2)), abs=1e-10)

    def kernel(s: float, t: float) -> Array:
        """Of position and velocity at s with those at t."""
        m = min(s, t)
        return np.array(
            [[m**3 / 3 + abs(s - t) * m**2 / 2, m**2 / 2 if s <= t else s * t - t**2 / 2],
             [s * t - s**2 / 2 if s <= t else m**2 / 2, m]]
        )  # fmt: skip

    ends = np.block([[kernel(s, t) for t in (0.6, 0.9)] for s in (0.6, 0.9)])
    known = np.array([0.4, -1.0, 0.1, 2.0])  # position and velocity at both ends
    at = np.concatenate([kernel(0.8, 0.6), kernel(0.8, 0.9)], axis=1)
    expected = at @ np.linalg.solve(ends, known)
    one = ConstantVelocity("q", "v", step, Vectors(1))
    x = [np.array([[known[i]]]) for i in (0, 2, 1, 3)]
    assert np.ravel(one.between(2 / 3, *x)) == pytest.approx(expected, abs=1e-10)


@pytest.mark.slow
@pytest.mark.tables_cases("mini_cheetah")
@pytest.mark.parametrize("robot_name", ["tello", "mini_cheetah", "planar_leg_linkage"])
def test_jacobians_on_robots(robot_name: str) -> None:
    for factor, own in cases(rm.robots.load(robot_name)):
        if not isinstance(factor, Prior):
            check_jacobians(factor, own, with_data=False)


@pytest.mark.parametrize(("factor", "own"), PLANAR_FACTORS)
def test_jacobians_in_natural_coordinates(factor: Factor, own: dict[str, Space]) -> None:
    check_jacobians(factor, own, with_data=False)


def test_a_sensors_error_is_what_it_measures(tree: rm.Model) -> None:
    rng = np.random.default_rng(5)
    q = np.array([tree.random_configuration(rng)])
    v, a = rng.standard_normal((2, 1, tree.nv))
    at = ("tip", (0.1, 0.2, 0.3))
    omega = Gyroscope(tree, at).evaluate([q, v], None)[0]
    assert omega == pytest.approx(rm.frame_velocity(tree, q, v, at)[:, :3], abs=1e-13)

    def position(t: float) -> Array:
        moved = tree.integrate(q, v * t + a * t * t / 2)
        return rm.frame_pose(tree, moved, at)[0, :3, 3]

    h = 2e-3  # a floating base's a is the derivative of v, so of what integrate follows, at t = 0
    second = (
        -position(2 * h)
        + 16 * position(h)
        - 30 * position(0)
        + 16 * position(-h)
        - position(-2 * h)
    ) / (12 * h * h)
    turned = rm.frame_pose(tree, q, at)[0, :3, :3].T @ (second - np.array(tree.gravity))
    force = Accelerometer(tree, at).evaluate([q, v, a], None)[0][0]
    assert force == pytest.approx(turned, abs=1e-7)


def test_factors_refuse(crank: rm.Model) -> None:
    with pytest.raises(KeyError, match="coupler_joint"):
        Encoders(crank, ("coupler_join",))
    with pytest.raises(KeyError, match="crank_joint"):
        readings(crank, "v", ["crank_join"])
    with pytest.raises(ValueError, match="force"):
        Dynamics(crank, form="torque")
    graph = Graph({"x": Vectors(2)}, 3)
    prior = Prior("x", Vectors(2))
    with pytest.raises(ValueError, match="no variable 'y'"):
        graph.add(Prior("y", Vectors(2)), 1.0)
    with pytest.raises(ValueError, match="outside"):
        graph.add(Equal("x", Vectors(2)), 1.0, times=[2])
    with pytest.raises(ValueError, match="ascending"):
        graph.add(prior, 1.0, times=[1, 0])
    with pytest.raises(ValueError, match="no start"):
        solve(graph.add(prior, 1.0), {})
    with pytest.raises(ValueError, match="shape"):
        solve(graph.add(prior, 1.0), {"x": np.zeros((2, 2))})


# ---- solvers -------------------------------------------------------------------------------------


class Affine:
    """A x_t + B x_t+1 - data."""

    def __init__(self, a: Array, b: Array | None = None) -> None:
        self.matrices = [a] if b is None else [a, b]
        self.variables = tuple(("x", i) for i in range(len(self.matrices)))
        self.rows = len(a)

    def evaluate(self, x: Sequence[Array], data: Array | None) -> tuple[Array, Sequence[Array]]:
        e = sum(y @ m.T for y, m in zip(x, self.matrices, strict=True)) - data
        return e, [np.broadcast_to(m, (len(e), *m.shape)) for m in self.matrices]


def chain(count: int, n: int, rng: np.random.Generator, hard: bool) -> Graph:
    """A random linear graph, with exact rows that leave freedom if ``hard``."""
    graph = Graph({"x": Vectors(n)}, count)
    sigma = 10.0 ** rng.uniform(-2, 2, n)
    graph = graph.add(
        Affine(rng.standard_normal((n, n)), rng.standard_normal((n, n))),
        diagonal(sigma),
        data=rng.standard_normal((count - 1, n)),
    )
    root = rng.standard_normal((n, n)) + 2 * np.eye(n)
    graph = graph.add(
        Affine(rng.standard_normal((n, n))),
        gaussian(root @ root.T),
        data=rng.standard_normal((count, n)),
    )
    if hard:
        a, b = rng.standard_normal((2, 1, n))
        graph = graph.add(Affine(a, b), 0.0, data=rng.standard_normal((count - 1, 1)))
        a = rng.standard_normal((1, n))
        twice = np.concatenate([a, -2 * a])  # a condition, and its repetition
        data = rng.standard_normal((count, 1)) @ np.array([[1.0, -2.0]])
        graph = graph.add(Affine(twice), 0.0, data=data)
    return graph


def dense(graph: Graph) -> tuple[Array, Array]:
    """Solution and covariance (blocks) by the multipliers' system, dense."""
    start = {name: np.zeros((graph.count, s.size)) for name, s in graph.spaces.items()}
    linear = graph.linearize(start)
    n, size = linear.n, linear.n * linear.count
    rows: list[list[Array]] = [[], []]
    for kind, parts in enumerate((linear.hard, linear.soft)):
        for t, block in enumerate(parts):
            full = np.zeros((len(block), size + n + 1))
            full[:, t * n : t * n + 2 * n] = block[:, :-1]
            full[:, -1] = block[:, -1]
            rows[kind].append(full)
    hard, soft = (np.delete(np.concatenate(x), np.s_[size : size + n], axis=1) for x in rows)
    c, d, j, b = hard[:, :-1], hard[:, -1], soft[:, :-1], soft[:, -1]
    if len(c):
        _, s, vt = np.linalg.svd(c)
        null = vt[int(np.sum(s > 1e-10 * s[0])) :].T
        base = np.linalg.lstsq(c, d, rcond=1e-12)[0]
    else:
        null, base = np.eye(size), np.zeros(size)
    reduced = j @ null
    x = base + null @ np.linalg.lstsq(reduced, b - j @ base, rcond=None)[0]
    triangle = np.linalg.inv(np.linalg.qr(reduced, mode="r"))
    sigma = null @ triangle @ triangle.T @ null.T
    blocks = [sigma[i : i + n, i : i + n] for i in range(0, size, n)]
    return x.reshape(linear.count, n), np.array(blocks)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("n", [3, 6])
def test_elimination_solves_and_gives_covariances(hard: bool, n: int) -> None:
    rng = np.random.default_rng(6)
    graph = chain(9, n, rng, hard)
    x, sigma = dense(graph)
    found = solve(graph, {"x": np.zeros((9, n))})
    assert found.converged
    assert found["x"] == pytest.approx(x, abs=1e-10 * np.abs(x).max())
    assert found.covariances == pytest.approx(sigma, abs=1e-10 * np.abs(sigma).max())
    assert found.violation < 1e-12 * max(1.0, np.abs(x).max())


def test_the_sparse_system_of_multipliers_agrees() -> None:
    rng = np.random.default_rng(7)
    graph = chain(12, 4, rng, False)
    graph = graph.add(Affine(np.ones((1, 4)), -np.ones((1, 4))), 0.0, data=[0.3])
    start = {"x": np.zeros((12, 4))}
    one, other = solve(graph, start), solve(graph, start, linear_solver="augmented")
    assert other["x"] == pytest.approx(one["x"], abs=1e-9 * np.abs(one["x"]).max())


def test_weights_far_apart_keep_their_digits() -> None:
    """Normal equations lose what QR keeps: 1e8 between weights is 1e16 between their squares."""
    rng = np.random.default_rng(8)
    n, count = 3, 8
    graph = Graph({"x": Vectors(n)}, count)
    truth = rng.standard_normal((count, n))
    heavy = rng.standard_normal((n - 1, n))
    a, b = rng.standard_normal((2, n, n))
    graph = graph.add(Affine(heavy), 1e-8, data=truth @ heavy.T)
    graph = graph.add(Affine(a, b), 1.0, data=truth[:-1] @ a.T + truth[1:] @ b.T)
    graph = graph.add(Affine(np.eye(n)), 1.0, data=truth)
    linear = graph.linearize({"x": np.zeros((count, n))})
    found = solve(graph, {"x": np.zeros((count, n))}, max_iterations=2, method="gauss-newton")
    assert np.abs(found["x"] - truth).max() < 1e-11
    size = n * count
    j, right = [], []
    for t, block in enumerate(linear.soft):
        full = np.zeros((len(block), size + n))
        full[:, t * n : t * n + 2 * n] = block[:, :-1]
        j.append(full[:, :size])
        right.append(block[:, -1])
    matrix, wanted = np.concatenate(j), np.concatenate(right)
    normal = np.linalg.solve(matrix.T @ matrix, matrix.T @ wanted).reshape(count, n)
    assert np.abs(normal - truth).max() > 3e-7


def test_what_is_undetermined_is_named() -> None:
    graph = Graph({"x": Vectors(2), "y": Vectors(1)}, 4)
    graph = graph.add(Prior("x", Vectors(2)), 1.0)
    graph = graph.add(Equal("y", Vectors(1)), 1.0)
    start = {"x": np.ones((4, 2)), "y": np.arange(4.0)[:, np.newaxis]}
    with pytest.raises(UndeterminedError, match=r"'y\[0\]' at time 3") as caught:
        solve(graph, start, method="gauss-newton")
    assert (caught.value.time, caught.value.label) == (3, "y[0]")
    found = solve(graph, start)  # damping chooses among equals
    assert found["y"] == pytest.approx(np.full((4, 1), found["y"][0, 0]), abs=1e-8)
    with pytest.raises(UndeterminedError):
        _ = found.covariances


class Rosenbrock:
    """(1 - x, 10 (y - x²))."""

    variables = (("x", 0),)
    rows = 2

    def evaluate(self, x: Sequence[Array], data: Array | None) -> tuple[Array, Sequence[Array]]:
        a, b = x[0].T
        slope = np.zeros((len(a), 2, 2))
        slope[:, 0, 0], slope[:, 1, 0], slope[:, 1, 1] = -1.0, -20.0 * a, 10.0
        return np.stack([1.0 - a, 10.0 * (b - a * a)], axis=-1), [slope]


class Circle:
    """x² + y² - 1."""

    variables = (("x", 0),)
    rows = 1

    def evaluate(self, x: Sequence[Array], data: Array | None) -> tuple[Array, Sequence[Array]]:
        return np.sum(x[0] ** 2, axis=1, keepdims=True) - 1.0, [2.0 * x[0][:, np.newaxis]]


def test_nonlinear_problems() -> None:
    graph = Graph({"x": Vectors(2)}, 1)
    valley = graph.add(Rosenbrock(), 1.0)
    found = solve(valley, {"x": np.array([[-1.2, 1.0]])})
    assert found.converged
    assert found["x"] == pytest.approx(np.ones((1, 2)), abs=1e-9)
    # the point of a circle nearest to (3, 4), from afar
    graph = graph.add(Prior("x", Vectors(2)), 1.0, data=[3.0, 4.0]).add(Circle(), 0.0)
    found = solve(graph, {"x": np.array([[5.0, 0.1]])}, max_iterations=200)
    assert found.converged
    assert found["x"] == pytest.approx(np.array([[0.6, 0.8]]), abs=1e-6)
    assert found.violation < 1e-12


@pytest.mark.slow
def test_from_rest_past_dead_points() -> None:
    """Two seconds of the paper's four-bar in independent coordinates, started at rest."""
    mechanism, count, step = paper.four_bar(angle=True), 101, 0.02
    q, zero = paper.start(mechanism), np.zeros(5)
    graph = planar.forward_independent(mechanism, ["theta"], count, step, q=q, v=zero)
    rest = {"q": q, "v": zero, "a": zero, "z": q[4:], "zd": zero[4:], "zdd": zero[4:]}
    start = {name: np.tile(x, (count, 1)) for name, x in rest.items()}
    found = solve(graph, start)
    assert found.converged
    assert found.cost < 1e-12
    assert found.violation < 1e-10
    begun = fixed_lag(graph, rest, 3).newest["q"]
    assert found["q"] == pytest.approx(begun, abs=1e-6)


def test_fixed_lag_of_a_linear_graph_is_exact() -> None:
    """A marginal is exact there: the newest is the batch of what is known so far."""
    rng = np.random.default_rng(9)
    graph = chain(8, 3, rng, True)
    lagged = fixed_lag(graph, {"x": np.zeros(3)}, 3, covariances=True)
    assert lagged.covariances is not None
    for t in (0, 1, 4, 7):
        so_far = solve(graph.window(0, t + 1), {"x": np.zeros((t + 1, 3))})
        size = np.abs(so_far["x"]).max()
        assert lagged.newest["x"][t] == pytest.approx(so_far["x"][t], abs=1e-9 * size)
        sigma = so_far.covariances[t]
        assert lagged.covariances[t] == pytest.approx(sigma, abs=1e-9 * np.abs(sigma).max())
    to_five = solve(graph.window(0, 6), {"x": np.zeros((6, 3))})
    assert lagged.smoothed["x"][3] == pytest.approx(to_five["x"][3], abs=1e-8)
    with pytest.raises(ValueError, match="two times"):
        fixed_lag(graph, {"x": np.zeros(3)}, 1)
    with pytest.raises(ValueError, match=r"variable 'x' needs shape \(3,\), got \("):
        fixed_lag(graph, {"x": np.zeros((graph.count, 3))}, 3)
    with pytest.raises(ValueError, match="no start is given for variable 'x'"):
        fixed_lag(graph, {}, 3)


def solve_small_systems() -> None:
    """With no more of this process's time than of this thread's, in the best of some rounds."""
    rng = np.random.default_rng(0)
    for count, n in ((12, 3), (6, 54)):
        graph = chain(count, n, rng, True)
        start = {"x": np.zeros(n)}
        fixed_lag(graph, start, 3)
        shares = []
        for _ in range(10):
            time.sleep(0.05)  # threads that have worked before spin for a while
            everyone, own = time.process_time(), time.thread_time()
            fixed_lag(graph, start, 3)
            everyone, own = time.process_time() - everyone, time.thread_time() - own
            shares.append(everyone / own)
        assert min(shares) < 1.25


@pytest.mark.slow
def test_no_threads_for_small_systems() -> None:
    """BLAS shares none of it among threads, which would wait for one another on a busy machine."""
    program = "import test_trajectory; test_trajectory.solve_small_systems()"
    subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        cwd=Path(__file__).parent,
        env={
            **os.environ,
            "OPENBLAS_NUM_THREADS": "2",  # the tests' own processes have one
            "PYTHONPATH": str(Path(__file__).parent.parent),  # benchmarks, which the tests import
        },
    )


@pytest.mark.parametrize(
    "shape", [(0, 5), (1, 5), (5, 5), (27, 19), (40, 16), (40, 17), (17, 40), (162, 109)]
)
def test_a_triangle_by_panels_is_that_of_householder(shape: tuple[int, int]) -> None:
    rows = np.random.default_rng(0).standard_normal(shape)
    found = elimination.triangle_of(rows)
    assert found.shape == (min(shape), shape[1])
    assert np.all(np.tril(found, -1) == 0.0)
    wanted = np.linalg.qr(rows, mode="r") if len(rows) else rows
    signs = np.sign(np.diagonal(found)) * np.sign(np.diagonal(wanted))
    assert found == pytest.approx(signs[:, np.newaxis] * wanted, abs=1e-13 * shape[1])
