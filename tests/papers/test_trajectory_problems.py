"""Forward dynamics, inverse dynamics and estimation as factor graphs over time."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.stats import chi2
from trajectory_graphs import (
    BARE,
    PLANAR,
    THETA,
    Array,
)

import robomodel as rm
from robomodel.estimation.factors import (
    Accelerometer,
    Dynamics,
    Encoders,
    Equal,
    Gyroscope,
    Marker,
    Prior,
    readings,
)
from robomodel.estimation.graph import Graph, gaussian
from robomodel.estimation.incremental import Incremental
from robomodel.estimation.problems import (
    Measurement,
    estimate,
    inverse_dynamics,
    motion,
    rolled_out,
    undisturbed,
)
from robomodel.estimation.solve import fixed_lag, solve
from robomodel.estimation.spaces import Vectors
from robomodel.papers.natural_coordinates import Mechanism, planar
from robomodel.papers.natural_coordinates.gtsam_solver import solve_with_gtsam


@pytest.fixture(scope="module")
def crank() -> rm.Model:
    return rm.robots.load("crank_rocker")


# ---- forward dynamics ----------------------------------------------------------------------------


def reference(model: rm.Model, q: Array, v: Array, times: Array) -> tuple[Array, Array]:
    """Motion of independent coordinates under gravity from q, integrated to 1e-12."""

    def flow(_: float, x: Array) -> Array:
        at = model.integrate(q, x[: model.nv])
        rate = x[model.nv :]
        return np.concatenate([rate, rm.aba(model, at, rate, np.zeros(model.nv))])

    start = np.concatenate([np.zeros(model.nv), v])
    found = solve_ivp(
        flow, (0, times[-1]), start, method="DOP853", rtol=1e-11, atol=1e-11, t_eval=times
    )
    return found.y[: model.nv].T, found.y[model.nv :].T


@pytest.mark.slow
def test_forward_dynamics_is_of_second_order(crank: rm.Model) -> None:
    errors = []
    for count, step in ((11, 0.02), (21, 0.01)):
        times = np.arange(count) * step
        moved, v = reference(crank, crank.neutral(), np.array([1.0]), times)
        found = undisturbed(crank, count, step, crank.neutral(), [1.0])
        off = crank.difference(np.tile(crank.neutral(), (count, 1)), found["q"]) - moved
        errors.append([np.abs(off).max(), np.abs(found["v"] - v).max()])
        assert np.abs(crank.residual(found["q"])).max() < 1e-12
    ratio = np.array(errors[0]) / np.array(errors[1])
    assert ratio == pytest.approx([4.0, 4.0], rel=0.1)


@pytest.mark.slow
def test_batch_and_fixed_lag_agree(crank: rm.Model) -> None:
    graph = motion(crank, 15, 5e-3, q=crank.neutral(), v=[0.5])
    found = undisturbed(crank, 15, 5e-3, crank.neutral(), [0.5])
    batch = solve(graph, {name: np.repeat(x[:1], 15, axis=0) for name, x in found.items()})
    assert batch.converged
    for name in found:
        assert batch[name] == pytest.approx(found[name], abs=1e-9)
    form = motion(crank, 15, 5e-3, q=crank.neutral(), v=[0.5], form="acceleration")
    again = fixed_lag(
        form,
        {name: x[0] for name, x in found.items()},
        4,
        predict=rolled_out(5e-3, graph.spaces["q"]),
    )
    assert again.newest["q"] == pytest.approx(found["q"], abs=1e-9)


@pytest.mark.slow
def test_natural_coordinates_follow_the_exact_motion(crank: rm.Model) -> None:
    count, step = 31, 1e-3
    moved, _ = reference(crank, crank.neutral(), np.zeros(1), np.arange(count) * step)
    exact_q = np.stack([np.cos(moved[:, 0]), np.sin(moved[:, 0])], axis=-1)  # of P1
    for mechanism, chosen in ((BARE, ()), (PLANAR, THETA)):
        q, v = np.array([1.0, 0.0, 1.0, 2.0, 0.0])[: mechanism.n], np.zeros(mechanism.n)
        a = mechanism.accelerations(q, v, v)[0]
        begin = {"q": q, "v": v, "a": a}
        if chosen:
            graph = planar.forward_independent(mechanism, chosen, count, step, q=q, v=v)
            begin |= {"z": q[4:], "zd": v[4:], "zdd": a[4:]}
        else:
            graph = planar.forward(mechanism, count, step, q=q, v=v)
        found = fixed_lag(graph, begin, 3)
        assert np.abs(found.newest["q"][:, :2] - exact_q).max() < 1e-7
        gap = mechanism.residual(found.newest["q"])
        assert np.abs(gap).max() < 1e-12
        dragged = graph.add(Equal("q", Vectors(mechanism.n)), planar.EQUAL)
        if chosen:  # the paper's soft equality costs more than the scheme
            found = fixed_lag(dragged, begin, 3)
            assert np.abs(found.newest["q"][:, :2] - exact_q).max() > 3e-7


STEP = 1e-3


@functools.cache
def exact_fall(count: int) -> tuple[Array, Array]:
    """Positions and velocities (count, 4) of P1 and P2 from rest, to 1e-12."""

    def flow(_: float, x: Array) -> Array:
        return np.concatenate([x[4:], BARE.accelerations(x[:4], x[4:], np.zeros(4))[0]])

    begin, times = np.array([1.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0]), STEP * np.arange(count)
    x = solve_ivp(
        flow, (0.0, times[-1]), begin, method="DOP853", rtol=1e-12, atol=1e-12, t_eval=times
    ).y.T
    return x[:, :4], x[:, 4:]


def exact_states(mechanism: Mechanism, count: int) -> tuple[Array, Array]:
    """The same of all coordinates (count, n), the crank's angle included where there is one."""
    q, v = exact_fall(count)
    theta = np.unwrap(np.arctan2(q[:, 1], q[:, 0]))
    rate = q[:, 0] * v[:, 1] - q[:, 1] * v[:, 0]
    return tuple(np.column_stack(x)[:, : mechanism.n] for x in ([q, theta], [v, rate]))


def falling(chosen: tuple[str, ...], count: int, first: int = 0) -> tuple[Graph, dict[str, Array]]:
    """The paper's four-bar ``first`` steps after its rest under gravity, and its state there."""
    mechanism = PLANAR if chosen else BARE
    q, v = (x[first] for x in exact_states(mechanism, first + 2))
    a = mechanism.accelerations(q, v, np.zeros_like(v))[0]
    begin = {"q": q, "v": v, "a": a}
    if not chosen:
        return planar.forward(mechanism, count, STEP, q=q, v=v), begin
    graph = planar.forward_independent(mechanism, chosen, count, STEP, q=q, v=v)
    return graph, begin | {"z": q[4:], "zd": v[4:], "zdd": a[4:]}


@pytest.mark.slow_cases("1001")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("count", [201, 401, 1001])
def test_solutions_from_the_exact_motion_converge(count: int) -> None:
    """Curved constraints do not turn good steps down: the cost is that of Gauss and Newton."""
    q, v = exact_fall(count)
    a = BARE.accelerations(q, v, np.zeros_like(q))[0]
    graph, _ = falling((), count)
    found = solve(graph, {"q": q, "v": v, "a": a})
    least = solve(graph, {"q": q, "v": v, "a": a}, method="gauss-newton")
    assert found.converged
    assert found.iterations <= 6
    assert found.cost == pytest.approx(least.cost, rel=1e-6)
    assert found.violation < 1e-12


@pytest.mark.slow_cases("chosen0-2-31-475")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("chosen", "window", "count", "first"),
    [
        (THETA, 2, 31, 475),
        pytest.param((), 2, 5001, 0, marks=pytest.mark.tables),
        pytest.param((), 10, 1001, 0, marks=pytest.mark.tables),
        pytest.param(THETA, 5, 1001, 0, marks=pytest.mark.slow),
    ],
)
def test_fixed_lag_converges_without_prediction(
    chosen: tuple[str, ...], window: int, count: int, first: int
) -> None:
    """Every window, from the last time's values; the paper's four-bar, in one case for 5 s."""
    graph, begin = falling(chosen, count, first)
    result = fixed_lag(graph, begin, window)
    assert result.iterations.mean() <= 6.0
    q, _ = exact_fall(first + count)
    assert np.sqrt(np.mean((result.newest["q"][:, :4] - q[first:]) ** 2)) < 3e-5


@pytest.mark.slow_cases("chosen0-0.3-301")
@pytest.mark.parametrize(
    ("chosen", "noise", "count"),
    [
        (THETA, 0.3, 301),
        *(
            pytest.param(chosen, noise, count, marks=pytest.mark.slow)
            for chosen, noise, count in ((THETA, 0.5, 301), ((), 0.3, 301))
        ),
        pytest.param((), None, 1001, marks=pytest.mark.tables),
    ],
)
@pytest.mark.filterwarnings("error")
def test_batches_converge_from_far(
    chosen: tuple[str, ...], noise: float | None, count: int
) -> None:
    """From states 30 and 50 % off, some on the other branch; and from rest (None)."""
    graph, begin = falling(chosen, count)
    start = {name: np.tile(x, (count, 1)) for name, x in begin.items()}
    if noise is not None:
        mechanism = PLANAR if chosen else BARE
        q, v = exact_states(mechanism, count)
        a = mechanism.accelerations(q, v, np.zeros_like(v))[0]
        rng = np.random.default_rng(0)
        q, v, a = (x * (1.0 + noise * rng.standard_normal(x.shape)) for x in (q, v, a))
        start = {"q": q, "v": v, "a": a}
        if chosen:
            start |= {"z": q[:, 4:], "zd": v[:, 4:], "zdd": a[:, 4:]}
    result = solve(graph, start)
    assert result.converged
    assert result.violation < 1e-11
    assert result.cost < 1e-11 * count


def test_no_window_is_eliminated_before_it_converges() -> None:
    """With one iteration a time the window grows until the motion rests: nothing is lost."""
    graph, begin = falling((), 12)
    with pytest.warns(RuntimeWarning, match="windows did not converge"):
        result = fixed_lag(graph, begin, 2, max_iterations=2)
    assert fixed_lag(graph, begin, 2).newest["q"] == pytest.approx(result.newest["q"], abs=1e-6)


def test_solvers_warn_where_they_do_not_converge(crank: rm.Model) -> None:
    begin = undisturbed(crank, 8, 5e-3, crank.neutral(), [0.5])
    graph = motion(crank, 8, 5e-3, q=crank.neutral(), v=[0.5])
    far = {name: np.repeat(x[:1] + 0.1, 8, axis=0) for name, x in begin.items()}
    far["q"] = np.tile(crank.neutral(), (8, 1))
    with pytest.warns(RuntimeWarning, match="did not converge in 1 iterations"):
        assert not solve(graph, far, method="gauss-newton", max_iterations=1).converged
    first = {name: x[0] for name, x in far.items()}
    with pytest.warns(RuntimeWarning, match=r"windows did not converge .* at time"):
        fixed_lag(graph, first, 3, max_iterations=1)
    smoother = Incremental(graph.spaces)
    smoother.advance(first)
    smoother.add(Prior("q", graph.spaces["q"]), 0.0, crank.neutral())
    smoother.add(Prior("v", graph.spaces["v"]), 0.0, [0.5])
    smoother.add(Dynamics(crank), 0.0, [0.0])
    with pytest.warns(RuntimeWarning, match="did not settle in 1 iterations"):
        assert not smoother.settle(max_iterations=1)
    assert smoother.settle()


def test_gtsam_finds_the_same(crank: rm.Model) -> None:
    pytest.importorskip("gtsam")
    q, v = np.array([1.0, 0.0, 1.0, 2.0]), np.zeros(4)
    natural = planar.forward(BARE, 6, 5e-3, q=q, v=v)
    gyroscope = Gyroscope(crank, "coupler")
    sigma = {"q_noise": 0.02, "v_noise": 0.2, "force_noise": 1.0}
    noisy = motion(crank, 5, 0.01, q=crank.neutral(), v=[0.5], **sigma)
    begin = undisturbed(crank, 5, 0.01, crank.neutral(), [0.5])
    measured = gyroscope.evaluate([begin["q"], begin["v"]], None)[0]
    measured = measured + 0.05 * np.random.default_rng(13).standard_normal(measured.shape)
    noisy = noisy.add(gyroscope, gaussian(0.0025 * np.eye(3) + 0.0005), data=measured)
    still = {name: np.tile(x, (6, 1)) for name, x in (("q", q), ("v", v), ("a", v))}
    for graph, start in ((natural, still), (noisy, begin)):
        ours = solve(graph, start)
        theirs = solve_with_gtsam(graph, start, max_iterations=20)
        for name, x in theirs.items():
            assert x == pytest.approx(ours[name], abs=1e-8 * (1.0 + np.abs(x).max())), name
    with pytest.warns(RuntimeWarning, match="GTSAM did not converge in 1 iterations"):
        solve_with_gtsam(natural, still, max_iterations=1)


# ---- inverse dynamics ----------------------------------------------------------------------------


def test_inverse_dynamics_in_independent_coordinates(crank: rm.Model) -> None:
    errors = []
    for count, step in ((41, 0.02), (81, 0.01)):
        times = np.arange(count)[:, np.newaxis] * step
        start = np.tile(crank.neutral(), (count, 1))
        q = crank.integrate(start, 1.2 * (1 - np.cos(2 * times)))
        wanted = rm.rnea(crank, q, 2.4 * np.sin(2 * times), 4.8 * np.cos(2 * times))
        found = inverse_dynamics(crank, q, step)
        assert found.violation < 1e-9
        errors.append(np.sqrt(np.mean((found["tau"] - wanted) ** 2)))
    assert errors[1] < 3e-3
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.25)


@pytest.mark.slow
def test_rounding_of_many_conditions_is_no_reason_to_go_on() -> None:
    """Conditions to 4e-15 once asked for a penalty of 4e5, by which no further step was taken."""
    model = rm.robots.load("four_bar")
    swing = 0.3 * (1.0 - np.cos(2e-3 * np.arange(1000)))[:, np.newaxis]
    q = model.integrate(np.tile(model.neutral(), (1000, 1)), swing)
    result = inverse_dynamics(model, q, 1e-3)
    assert result.converged
    assert result.iterations <= 4
    assert result.violation < 1e-13


@pytest.mark.slow
def test_inverse_dynamics_in_four_stages(crank: rm.Model) -> None:
    step, count = 5e-3, 81
    times = np.arange(count)[:, np.newaxis] * step
    theta = 1.2 * (1 - np.cos(2 * times))
    q = crank.integrate(np.tile(crank.neutral(), (count, 1)), theta)
    wanted = rm.rnea(crank, q, 2.4 * np.sin(2 * times), 4.8 * np.cos(2 * times))[:, 0]
    found = planar.inverse(
        PLANAR, THETA, theta, step, q=np.array([1.0, 0.0, 1.0, 2.0, 0.0]), v=np.zeros(5)
    )
    assert found.converged
    assert found.violation < 1e-10
    assert np.abs(found["Q"][:, :4]).max() < 1e-12
    assert np.sqrt(np.mean((found["Q"][:, 4] - wanted) ** 2)) < 1e-4 * np.abs(wanted).max()


# ---- estimation ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_perfect_sensors_are_believed() -> None:
    """From sensors without noise, and a start that is off, the true motion comes out."""
    model = rm.robots.load("five_bar")
    count, step = 12, 0.01
    q0 = model.neutral()
    truth = undisturbed(model, count, step, model.integrate(q0, [0.05, -0.04]), [0.3, -0.2])
    link_name = model.bodies[-1].name
    encoders = Encoders(model, (model.joints[0].name, model.joints[-1].name))
    gyroscope = Gyroscope(model, link_name)
    accelerometer = Accelerometer(model, (link_name, (0.05, 0.0, 0.0)))
    marker = Marker(model, (link_name, (0.05, 0.0, 0.0)))
    speed = readings(model, "v", model.dof_names[:1])
    measurements = [
        Measurement(encoders, 1e-4, encoders.evaluate([truth["q"]], None)[0]),
        Measurement(gyroscope, 1e-4, gyroscope.evaluate([truth["q"], truth["v"]], None)[0]),
        Measurement(
            accelerometer,
            1e-4,
            accelerometer.evaluate([truth["q"], truth["v"], truth["a"]], None)[0],
        ),
        Measurement(marker, 1e-4, marker.evaluate([truth["q"]], None)[0]),
        Measurement(speed, 1e-4, truth["v"][[2, 5]][:, :1], times=[2, 5]),
    ]
    found = estimate(
        model,
        measurements,
        count,
        step,
        q=truth["q"][0],
        v=truth["v"][0],
        q_noise=1.0,
        v_noise=1.0,
        force_noise=1.0,
        start=undisturbed(model, count, step, q0, [0.0, 0.0]),
    )
    assert found.converged
    for name, x in truth.items():
        assert found[name] == pytest.approx(x, abs=1e-7)


def consistency(model: rm.Model, runs: int, count: int, seed: int) -> tuple[Array, Array]:
    """Normalised squared errors of (q, v) at the first, middle and last time, and costs, by run.

    The truth is drawn from the very model that the estimator has: a random start, forces
    disturbed at random, and a gyroscope on the coupler with noise and an unknown bias.
    """
    rng = np.random.default_rng(seed)
    step, q0, v0 = 0.02, model.neutral(), np.array([0.5])
    sigma = {"q_noise": 0.1, "v_noise": 0.2, "force_noise": 2.0}
    drift, seen, biased = 0.01, 0.05, 0.1
    gyroscope = Gyroscope(model, "coupler", bias="bias")
    errors, costs = [], []
    for _ in range(runs):
        q = model.integrate(q0, sigma["q_noise"] * rng.standard_normal(1))
        v = v0 + sigma["v_noise"] * rng.standard_normal(1)
        truth = undisturbed(
            model, count, step, q, v, sigma["force_noise"] * rng.standard_normal((count, 1))
        )
        bias = biased * rng.standard_normal((1, 3)) + np.concatenate(
            [np.zeros((1, 3)), np.cumsum(drift * rng.standard_normal((count - 1, 3)), axis=0)]
        )
        measured = gyroscope.evaluate([truth["q"], truth["v"], bias], None)[0]
        measured = measured + seen * rng.standard_normal((count, 3))
        plain = motion(model, count, step, q=q0, v=v0, **sigma)
        graph = Graph({**plain.spaces, "bias": Vectors(3)}, count, plain.terms)
        graph = graph.add(Prior("bias", Vectors(3)), biased, times=[0])
        graph = graph.add(Equal("bias", Vectors(3)), drift).add(gyroscope, seen, data=measured)
        start = undisturbed(model, count, step, q0, v0)
        found = solve(graph, {**start, "bias": np.zeros((count, 3))}, tolerance=1e-7)
        assert found.converged
        off = np.concatenate(
            [
                model.difference(found["q"], truth["q"]),
                truth["v"] - found["v"],
                bias - found["bias"],
            ],
            axis=1,
        )
        rows = np.r_[0:2, 3:6]  # q, v and the bias of q, v, a, bias
        row = []
        for t in (0, count // 2, count - 1):
            inverse = np.linalg.inv(found.covariances[t][np.ix_(rows, rows)])
            row.append(off[t] @ inverse @ off[t])
        errors.append(row)
        costs.append(2 * found.cost)
    return np.array(errors), np.array(costs)


def check_consistency(errors: Array, costs: Array, count: int) -> None:
    """Sums over independent runs are χ², here within their 0.1 % and 99.9 % points.

    Five numbers are estimated at each time. 2 · cost has as many degrees of freedom as there are
    measurements, for every unknown has a prior or a disturbance of its own.
    """
    runs = len(errors)
    low, high = chi2.ppf([1e-3, 1 - 1e-3], 5 * runs)
    assert np.all(errors.sum(axis=0) > low)
    assert np.all(errors.sum(axis=0) < high)
    low, high = chi2.ppf([1e-3, 1 - 1e-3], 3 * count * runs)
    assert low < costs.sum() < high


@pytest.mark.slow
def test_errors_are_as_large_as_their_covariances_say(crank: rm.Model) -> None:
    check_consistency(*consistency(crank, 6, 12, seed=10), 12)


@pytest.mark.tables
def test_errors_are_as_large_as_their_covariances_say_many_runs(crank: rm.Model) -> None:
    check_consistency(*consistency(crank, 75, 40, seed=11), 40)


@pytest.mark.slow
def test_the_newest_of_a_fixed_lag_is_as_good_as_it_says(crank: rm.Model) -> None:
    rng = np.random.default_rng(12)
    count, step, q0 = 20, 0.02, crank.neutral()
    truth = undisturbed(crank, count, step, q0, [0.5], 2.0 * rng.standard_normal((count, 1)))
    gyroscope = Gyroscope(crank, "rocker")
    measured = gyroscope.evaluate([truth["q"], truth["v"]], None)[0]
    measured = measured + 0.02 * rng.standard_normal(measured.shape)
    noise = {"q_noise": 0.05, "v_noise": 0.1, "force_noise": 2.0}
    graph = motion(crank, count, step, q=q0, v=[0.5], **noise)
    graph = graph.add(gyroscope, 0.02, data=measured)
    start = {name: x[0] for name, x in truth.items()}
    found = fixed_lag(
        graph, start, 5, predict=rolled_out(step, graph.spaces["q"]), covariances=True
    )
    assert found.covariances is not None
    off = crank.difference(found.newest["q"], truth["q"])[:, 0]
    sigma = np.sqrt(found.covariances[:, 0, 0])
    assert np.abs(off / sigma).max() < 4.0
    batch = solve(graph, found.smoothed)
    late = found.covariances[-1]
    assert late == pytest.approx(batch.covariances[-1], rel=0.02, abs=1e-6)
    assert np.all(
        np.diagonal(batch.covariances[:-4], axis1=1, axis2=2)[:, 0] <= sigma[:-4] ** 2 * 1.01
    )
