"""Sensors and drifting biases in natural coordinates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

import robomodel as rm
from robomodel.estimation.factors import Equal, Gyroscope, Prior
from robomodel.estimation.graph import Factor, Graph
from robomodel.estimation.solve import fixed_lag, solve
from robomodel.estimation.spaces import Vectors
from robomodel.papers.natural_coordinates import Angle, Body, Mechanism, natural, planar
from robomodel.papers.natural_coordinates.planar import (
    PlanarAccelerometer,
    PlanarGyroscope,
    PlanarMarker,
)

pytestmark = pytest.mark.slow  # the papers' own

Array = NDArray[np.float64]

ROCKER = math.sqrt(13.0)
FOUR_BAR = Mechanism(
    {"A": (0.0, 0.0), "D": (4.0, 0.0), "P1": None, "P2": None},
    (
        Body("crank", "A", "P1", 1.0, 1.0, (0.5, 0.0), 1.0 / 12.0),
        Body("coupler", "P1", "P2", 2.0, 2.0, (1.0, 0.0), 8.0 / 12.0, {"tool": (1.0, 0.5)}),
        Body("rocker", "D", "P2", ROCKER, 4.0, (ROCKER / 2.0, 0.0), 52.0 / 12.0),
    ),
    (Angle("theta", ("A", "P1"), 1.0),),
)
SENSORS: list[Factor] = [
    PlanarMarker(FOUR_BAR, "tool"),
    PlanarGyroscope(FOUR_BAR, "coupler"),
    PlanarGyroscope(FOUR_BAR, "crank", bias="bias"),
    PlanarAccelerometer(FOUR_BAR, "rocker"),
    PlanarAccelerometer(FOUR_BAR, "coupler", bias="bias", at=(0.7, -0.2)),
]


@pytest.mark.parametrize("factor", SENSORS, ids=lambda x: type(x).__name__)
def test_jacobians(factor: Factor) -> None:
    rng = np.random.default_rng(0)
    sizes = {"q": 5, "v": 5, "a": 5, "bias": factor.rows}
    x = [rng.standard_normal((3, sizes[name])) for name, _ in factor.variables]
    e, slopes = factor.evaluate(x, None)
    assert e.shape == (3, factor.rows)
    for i, slope in enumerate(slopes):
        for j in range(x[i].shape[1]):
            step = np.zeros(x[i].shape[1])
            step[j] = 1e-3  # errors are quadratic, so that central differences are exact
            ends = [
                factor.evaluate([*x[:i], x[i] + s * step, *x[i + 1 :]], None)[0] for s in (1, -1)
            ]
            assert slope[..., j] == pytest.approx((ends[0] - ends[1]) / 2e-3, abs=1e-10)
    data = rng.standard_normal((3, factor.rows))
    assert factor.evaluate(x, data)[0] == pytest.approx(e - data)


def closed(seed: int) -> tuple[Array, Array, Array]:
    """A configuration of the four-bar with rates and accelerations that keep it closed."""
    rng = np.random.default_rng(seed)
    start = np.array([1.0, 0.0, 1.0, 2.0, 0.0])
    start[4] = rng.uniform(0.1, 0.6)
    q = FOUR_BAR.close(start, held=("theta",))
    v = FOUR_BAR.split(q, ("theta",))[1][:, 0] * rng.standard_normal()
    return q, v, FOUR_BAR.accelerations(q, v, rng.standard_normal(5))[0]


def test_they_say_how_a_body_turns_and_what_pulls_at_it() -> None:
    q, v, a = closed(1)

    def angle(x: Array) -> float:
        return math.atan2(*(FOUR_BAR.point("P2", x) - FOUR_BAR.point("P1", x))[::-1])

    h = 1e-4
    near, far = (angle(q + k * h * v) - angle(q - k * h * v) for k in (1, 2))
    omega = (8 * near - far) / (12 * h)
    found = PlanarGyroscope(FOUR_BAR, "coupler").evaluate([q[None], v[None]], None)[0]
    assert found[0, 0] == pytest.approx(omega, abs=1e-10)
    c, s = math.cos(angle(q)), math.sin(angle(q))
    pull = FOUR_BAR.point_jacobian("tool") @ a - np.array(FOUR_BAR.gravity)
    factor = PlanarAccelerometer(FOUR_BAR, "coupler", at=(1.0, 0.5))
    wanted = np.array([[c, s], [-s, c]]) @ pull
    assert factor.evaluate([q[None], a[None]], None)[0][0] == pytest.approx(wanted, abs=1e-10)
    at = PlanarMarker(FOUR_BAR, "tool").evaluate([q[None]], None)[0][0]
    assert at == pytest.approx(FOUR_BAR.point("tool", q))


def test_a_robots_gyroscope_measures_the_same() -> None:
    model = rm.robots.load("crank_rocker")
    robot = natural(model)
    q, v = model.random_configuration(2), np.array([0.7])
    x, xd = robot.coordinates(q), robot.rates(q, v)
    for name in ("crank", "coupler", "rocker"):
        planar_one = PlanarGyroscope(robot.mechanism, name).evaluate([x[None], xd[None]], None)[0]
        spatial = Gyroscope(model, name).evaluate([q[None], v[None]], None)[0]
        assert np.abs(planar_one).max() == pytest.approx(np.abs(spatial).max(), rel=1e-9)


def consistency(runs: int, count: int, seed: int) -> Array:
    """Normalised squared errors (runs, 2): of the start, and of the biases at the last time.

    The truth is drawn from what the estimator believes: an uncertain start, an exact motion, a
    gyroscope and an accelerometer with noise and drifting biases.
    """
    rng = np.random.default_rng(seed)
    step, sigma, seen, biased, drift = 0.01, 0.05, 0.02, 0.2, 0.01
    nominal = FOUR_BAR.close(np.array([1.0, 0.0, 1.0, 2.0, 0.3]), held=("theta",))
    gyroscope = PlanarGyroscope(FOUR_BAR, "coupler", bias="wb")
    accelerometer = PlanarAccelerometer(FOUR_BAR, "rocker", bias="ab", at=(1.0, 0.2))
    few = Vectors(1)
    errors = []
    for _ in range(runs):
        at = nominal.copy()
        at[4] += sigma * rng.standard_normal()
        at = FOUR_BAR.close(at, held=("theta",))
        v = FOUR_BAR.split(at, ("theta",))[1][:, 0] * sigma * rng.standard_normal()
        a = FOUR_BAR.accelerations(at, v, np.zeros(5))[0]
        begin = {"q": at, "v": v, "a": a, "z": at[4:], "zd": v[4:], "zdd": a[4:]}
        graph = planar.forward_independent(
            FOUR_BAR, ("theta",), count, step, q=at, v=v, integrator_noise=0.0, dynamics_noise=0.0
        )
        truth = fixed_lag(graph, begin, 2).newest
        for name, size in (("wb", 1), ("ab", 2)):
            walk = drift * rng.standard_normal((count, size))
            walk[0] = biased * rng.standard_normal(size)
            truth[name] = np.cumsum(walk, axis=0)
        graph = Graph({**graph.spaces, "wb": few, "ab": Vectors(2)}, count, graph.terms[2:])
        graph = graph.add(Prior("z", few), sigma, times=[0], data=nominal[4:])
        graph = graph.add(Prior("zd", few), sigma, times=[0], data=[0.0])
        for factor in (gyroscope, accelerometer):
            x = [truth[name] for name, _ in factor.variables]
            data = factor.evaluate(x, None)[0]
            data = data + seen * rng.standard_normal(data.shape)
            space = Vectors(factor.rows)
            assert factor.bias is not None
            graph = graph.add(factor, seen, data=data)
            graph = graph.add(Prior(factor.bias, space), biased, times=[0])
            graph = graph.add(Equal(factor.bias, space), drift)
        start = {name: np.array(truth[name]) for name in graph.spaces}
        start["wb"], start["ab"] = np.zeros((count, 1)), np.zeros((count, 2))
        found = solve(graph, start)
        assert found.converged
        assert np.abs(FOUR_BAR.residual(found["q"])).max() < 1e-9
        row = []
        for t, names in ((0, ("z", "zd")), (count - 1, ("wb", "ab"))):
            off = np.concatenate([truth[name][t] - found[name][t] for name in names])
            parts = np.concatenate([np.arange(graph.n)[graph.slices[name]] for name in names])
            inverse = np.linalg.inv(found.covariances[t][np.ix_(parts, parts)])
            row.append(off @ inverse @ off)
        errors.append(row)
    return np.array(errors)


@pytest.mark.parametrize("runs", [2, pytest.param(40, marks=pytest.mark.slow)])
def test_errors_are_as_large_as_their_covariances_say(runs: int) -> None:
    errors = consistency(runs, 8, seed=3).sum(axis=0)
    for found, freedoms in zip(errors, (2, 3), strict=True):
        low, high = chi2.ppf([1e-3, 1 - 1e-3], freedoms * runs)
        assert low < found < high


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match=r"point 'tol'.*tool"):
        PlanarMarker(FOUR_BAR, "tol").evaluate([np.zeros((1, 5))], None)
    with pytest.raises(ValueError, match=r"body 'couple'.*coupler"):
        PlanarGyroscope(FOUR_BAR, "couple").evaluate([np.zeros((1, 5))] * 2, None)
