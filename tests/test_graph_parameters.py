"""Parameters as unknowns of graphs over time."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

import robomodel as rm
from robomodel.estimation.factors import Dynamics, Encoders, Prior, readings
from robomodel.estimation.graph import Graph
from robomodel.estimation.parameters import (
    ParametricDynamics,
    estimated,
    with_unknown_parameters,
)
from robomodel.estimation.problems import motion, rolled_out, spaces, undisturbed
from robomodel.estimation.solve import fixed_lag, solve

Array = NDArray[np.float64]


def states(model: rm.Model, count: int, seed: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng, base_pose="random") for _ in range(count)])
    v, a = rng.standard_normal((2, count, model.nv))
    return q, v, a


def some(model: rm.Model, every: int = 3) -> tuple[str, ...]:
    """Some of a model's parameters, damping and friction among them."""
    names = [x for x in rm.parameters(model).names if not x.endswith("friction")]
    return tuple(names[::every]) + tuple(
        x for x in rm.parameters(model).names if x.endswith("friction")
    )


@pytest.mark.slow_cases("crank_rocker-False", "crank_rocker-True")
@pytest.mark.parametrize("passive", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        "crank_rocker",
        pytest.param("tello", marks=pytest.mark.slow),
        pytest.param("mini_cheetah", marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_errors_are_those_of_a_model_with_the_parameters(name: str, passive: bool) -> None:
    model = rm.robots.load(name)
    names = some(model, 3 if name == "crank_rocker" else 37)[:12]
    if passive:  # rnea leaves dry friction out
        names = tuple(x for x in names if not x.endswith("friction"))
    q, v, a = states(model, 3, 0)
    before = np.array([rm.parameters(model)[x] for x in names])
    p = before + 0.1 * np.random.default_rng(1).uniform(0, 1, len(names))
    factor = ParametricDynamics(model, names, passive=passive)
    e, slopes = factor.evaluate([q, v, a, np.tile(p, (3, 1))], None)
    changed = rm.with_parameters(model, dict(zip(names, p, strict=True)))
    if passive:
        wanted = rm.rnea(changed, q, v, a, passive=True)
        derivatives = rm.rnea_derivatives(changed, q, v, a, passive=True)
    else:
        y = rm.regressor(model, q, v, a)
        known = list(rm.parameters(model).names)
        forces = [i for i, x in enumerate(names) if x.rpartition(".")[2] in ("damping", "friction")]
        at = [known.index(names[i]) for i in forces]
        wanted = rm.rnea(changed, q, v, a) + y[..., at] @ p[forces]
        derivatives = None
    size = np.abs(wanted).max()
    assert e == pytest.approx(wanted, abs=1e-10 * size)
    if derivatives is not None:
        for found, exact in zip(slopes, derivatives, strict=False):
            assert found == pytest.approx(exact, abs=1e-9 * np.abs(exact).max())
    columns = [list(rm.parameters(model).names).index(x) for x in names]
    assert slopes[3] == pytest.approx(rm.regressor(model, q, v, a)[..., columns], abs=1e-10 * size)


def test_known_motions_give_weighted_least_squares() -> None:
    """With q, v, a and tau known but for noise in tau, as a regression with a prior."""
    model = rm.robots.load("crank_rocker")
    names = ("crank.mx", "coupler.mass", "rocker.Izz", "crank_joint.damping")
    q, v, a = states(model, 12, 2)
    noise, believed = 0.3, np.array([0.2, 0.5, 0.4, 0.1])
    tau = rm.rnea(model, q, v, a) + 0.4 * v
    tau = tau + noise * np.random.default_rng(3).standard_normal((12, 1))
    graph = Graph(spaces(model), 12)
    for name, x in (("q", q), ("v", v), ("a", a)):
        graph = graph.add(Prior(name, graph.spaces[name]), 0.0, data=x)
    graph = graph.add(Dynamics(model), noise, data=tau)
    graph = with_unknown_parameters(graph, names, believed)
    before = np.array([rm.parameters(model)[x] for x in names])
    found = estimated(solve(graph, {"q": q, "v": v, "a": a, "p": np.tile(before, (12, 1))}))
    columns = [list(rm.parameters(model).names).index(x) for x in names]
    y = rm.regressor(model, q, v, a)[:, 0, columns]
    information = y.T @ y / noise**2 + np.diag(1 / believed**2)
    left = tau[:, 0] - rm.rnea(model, q, v, a)[:, 0] + y @ np.append(before[:3], 0.0)
    wanted = before + np.linalg.solve(information, y.T @ (left - y @ before) / noise**2)
    assert found.values == pytest.approx(wanted, abs=1e-10)
    assert found.covariance == pytest.approx(np.linalg.inv(information), rel=1e-9)
    with pytest.warns(rm.DescriptionWarning, match="cannot exist"):  # noise has made it so
        after = rm.parameters(found.applied())
    assert [after[x] for x in names] == pytest.approx(found.values.tolist(), rel=1e-12)
    assert found["rocker.Izz"] == found.values[2]
    assert found.sigmas["rocker.Izz"] == pytest.approx(np.sqrt(found.covariance[2, 2]))


def hidden(runs: int, count: int, seed: int) -> tuple[Array, Array]:
    """Parameters of a four-bar drawn from what is believed, and estimates: errors, NEES by run."""
    model = rm.robots.load("crank_rocker")
    names = ("rocker.mx", "coupler.mass", "crank_joint.damping")
    believed = np.array([0.4, 0.3, 0.5])
    before = np.array([rm.parameters(model)[x] for x in names])
    rng = np.random.default_rng(seed)
    step, q0, v0 = 0.02, model.neutral(), np.array([1.0])
    times = np.arange(count)[:, np.newaxis] * step
    tau = 60.0 * np.sin(4.0 * times)
    encoders = Encoders(model, ("crank_joint",))
    speed = readings(model, "v", model.dof_names)
    errors, nees = [], []
    for _ in range(runs):
        p = before + believed * rng.standard_normal(3)
        pushes = 0.5 * rng.standard_normal((count, 1))
        truth = forward(model, names, p, count, step, q0, v0, tau + pushes)
        seen = encoders.evaluate([truth["q"]], None)[0] + 1e-3 * rng.standard_normal((count, 1))
        rate = truth["v"] + 1e-2 * rng.standard_normal((count, 1))
        graph = motion(model, count, step, q=q0, v=v0, tau=tau, q_noise=1e-3, v_noise=1e-2,
                       force_noise=0.5)  # fmt: skip
        graph = graph.add(encoders, 1e-3, data=seen).add(speed, 1e-2, data=rate)
        graph = with_unknown_parameters(graph, names, believed)
        start = undisturbed(model, count, step, q0, v0, tau)
        start["q"] = model.integrate(np.tile(q0, (count, 1)), seen - seen[:1])
        start["v"], start["p"] = rate, np.tile(before, (count, 1))
        found = solve(graph, start)
        assert found.converged
        assert np.ptp(found["p"], axis=0) == pytest.approx(np.zeros(3), abs=1e-12)
        result = estimated(found)
        off = result.values - p
        errors.append(off / np.sqrt(np.diag(result.covariance)))
        nees.append(off @ np.linalg.solve(result.covariance, off))
        assert np.all(np.diag(result.covariance) < believed**2)
    return np.array(errors), np.array(nees)


def forward(
    model: rm.Model, names: tuple[str, ...], p: Array, count: int, step: float, q: Array, v: Array,
    tau: Array,
) -> dict[str, Array]:  # fmt: skip
    """The motion by the trapezoidal rule of the model that has these parameters."""
    graph = motion(model, count, step, q=q, v=v, tau=tau)
    graph = with_unknown_parameters(graph, names, 0.0)
    terms = [
        term
        if not (isinstance(term.factor, Prior) and term.factor.name == "p")
        else Graph(graph.spaces, count).add(term.factor, 0.0, times=[0], data=p).terms[0]
        for term in graph.terms
    ]
    start = {"q": q, "v": v, "a": rm.aba(model, q, v, tau[0]), "p": p}
    predict = rolled_out(step, graph.spaces["q"])
    return fixed_lag(Graph(graph.spaces, count, tuple(terms)), start, 2, predict=predict).newest


def test_hidden_parameters_are_found() -> None:
    errors, _ = hidden(1, 20, 5)
    assert np.abs(errors).max() < 4.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_it_predicts_as_identify_does() -> None:
    """All parameters of a four-bar that is heavier than its file says, from noisy torques."""
    model = rm.robots.load("crank_rocker")
    known = rm.parameters(model)
    names = tuple(x for x in known.names if not x.endswith("friction"))
    chosen = [known.names.index(x) for x in names]
    truth = rm.with_parameters(
        model, {x: 1.3 * known[x] for x in known.names if x.startswith("rocker.")}
    )
    q, v, a = states(model, 200, 7)
    tau = rm.rnea(truth, q, v, a)
    noisy = tau + 0.01 * tau.std() * np.random.default_rng(8).standard_normal(tau.shape)
    graph = Graph(spaces(model), 200)
    for name, x in (("q", q), ("v", v), ("a", a)):
        graph = graph.add(Prior(name, graph.spaces[name]), 0.0, data=x)
    graph = graph.add(Dynamics(model), 0.01 * tau.std(), data=noisy)
    graph = with_unknown_parameters(graph, names, 1.0)
    begin = np.tile(known.values[chosen], (200, 1))
    mine = estimated(solve(graph, {"q": q, "v": v, "a": a, "p": begin}))
    theirs = rm.identify(model, q, v, a, noisy).model
    q, v, a = states(model, 50, 9)
    wanted = rm.rnea(truth, q, v, a)
    first = rm.regressor(model, q, v, a)[..., chosen] @ mine.values
    second = rm.rnea(theirs, q, v, a, passive=True)
    for found in (first, second):
        assert np.sqrt(np.mean((found - wanted) ** 2)) < 0.02 * np.sqrt(np.mean(wanted**2))


@pytest.mark.tables
def test_errors_are_as_large_as_their_covariances_say() -> None:
    _, nees = hidden(30, 25, 6)
    low, high = chi2.ppf([1e-3, 1 - 1e-3], 3 * len(nees))
    assert low < nees.sum() < high


def test_it_refuses() -> None:
    model = rm.robots.load("crank_rocker")
    with pytest.raises(KeyError, match=r"crank\.mass"):
        ParametricDynamics(model, ("crank.mas",))
    for wrong in ((), ("crank.mass", "crank.mass")):
        with pytest.raises(ValueError, match="each once"):
            ParametricDynamics(model, wrong)
    with pytest.raises(ValueError, match="equations of motion"):
        with_unknown_parameters(Graph(spaces(model), 3), ("crank.mass",), 1.0)
    graph = motion(model, 3, 0.1, q=model.neutral(), v=[0.0], form="acceleration")
    with pytest.raises(ValueError, match="'force'"):
        with_unknown_parameters(graph, ("crank.mass",), 1.0)
    still = undisturbed(model, 1, 0.1, model.neutral(), [0.0])
    found = solve(motion(model, 1, 0.1, q=model.neutral(), v=[0.0]), still)
    with pytest.raises(ValueError, match="no parameters"):
        estimated(found)
