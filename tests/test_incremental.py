"""The incremental smoother: against the batch solution, and what it leaves alone."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

import robomodel as rm
from robomodel.estimation.elimination import UndeterminedError
from robomodel.estimation.factors import Encoders, Equal, Gyroscope, Prior
from robomodel.estimation.graph import Graph, Values, gaussian
from robomodel.estimation.incremental import Incremental, follow
from robomodel.estimation.problems import motion, rolled_out, undisturbed
from robomodel.estimation.solve import Solution, solve
from robomodel.estimation.spaces import Vectors
from robomodel.papers.natural_coordinates.gtsam_solver import smooth_with_isam2

Array = NDArray[np.float64]


class Affine:
    """A x_t + B x_t+1 - data."""

    affine = ("x",)

    def __init__(self, *matrices: Array) -> None:
        self.matrices = matrices
        self.variables = tuple(("x", i) for i in range(len(matrices)))
        self.rows = len(matrices[0])

    def evaluate(self, x: Sequence[Array], data: Array | None) -> tuple[Array, Sequence[Array]]:
        e = sum(y @ m.T for y, m in zip(x, self.matrices, strict=True)) - data
        return e, [np.broadcast_to(m, (len(e), *m.shape)) for m in self.matrices]


def chain(count: int, n: int, rng: np.random.Generator) -> Graph:
    """A random linear graph with conditions."""
    graph = Graph({"x": Vectors(n)}, count)
    a, b, c = rng.standard_normal((3, n, n))
    graph = graph.add(Affine(a, b), 0.3, data=rng.standard_normal((count - 1, n)))
    noise = gaussian(c @ c.T + np.eye(n))
    graph = graph.add(Affine(rng.standard_normal((n, n))), noise, data=rng.standard_normal(n))
    a, b = rng.standard_normal((2, 1, n))
    return graph.add(Affine(a, b), 0.0, data=rng.standard_normal((count - 1, 1)))


def estimation(
    name: str, count: int, step: float, link: str, force: float = 1.0
) -> tuple[Graph, dict[str, Array]]:
    """A robot disturbed by forces, seen by encoders and a gyroscope whose bias drifts; a start."""
    model = rm.robots.load(name)
    rng = np.random.default_rng(0)
    q, v = model.neutral(), np.full(model.nv, 0.5)
    pushes = force * rng.standard_normal((count, model.nv))
    truth = undisturbed(model, count, step, q, v, pushes)
    gyroscope = Gyroscope(model, link, bias="bias")
    encoders = Encoders(model, tuple(x.name for x in model.joints if x.independent and x.nv == 1))
    bias = np.cumsum(0.01 * rng.standard_normal((count, 3)), axis=0)
    turning = gyroscope.evaluate([truth["q"], truth["v"], bias], None)[0]
    angles = encoders.evaluate([truth["q"]], None)[0]
    plain = motion(model, count, step, q=q, v=v + 0.2, q_noise=0.1, v_noise=0.3, force_noise=force)
    vectors = Vectors(3)
    graph = Graph({**plain.spaces, "bias": vectors}, count, plain.terms)
    graph = graph.add(Prior("bias", vectors), 0.1, times=[0]).add(Equal("bias", vectors), 0.01)
    graph = graph.add(gyroscope, 0.02, data=turning + 0.02 * rng.standard_normal(turning.shape))
    graph = graph.add(encoders, 2e-3, data=angles + 2e-3 * rng.standard_normal(angles.shape))
    rest = np.zeros(model.nv)
    return graph, {"q": q, "v": v, "a": rm.aba(model, q, v, rest), "bias": np.zeros(3)}


def fed(graph: Graph, start: Values, threshold: float | dict[str, float]) -> Incremental:
    """A smoother that has gone through a graph."""
    smoother = Incremental(graph.spaces, threshold=threshold)
    last = {name: np.asarray(x)[np.newaxis] for name, x in start.items()}
    predict = rolled_out(0.01, graph.spaces["q"])
    for t in range(graph.count):
        smoother.advance(predict(last) if t else last)
        for term in graph.terms:
            at = t - max(offset for _, offset in term.factor.variables)
            for k in np.flatnonzero(term.times == at).tolist():
                data = None if term.data is None else term.data[k]
                smoother.add(term.factor, term.noise, data, time=at)
        smoother.update()
        last = {name: x[np.newaxis] for name, x in smoother.newest.items()}
    return smoother


def distance(smoother: Incremental, batch: Solution) -> float:
    return max(
        float(np.abs(space.local(batch[name], smoother[name])).max())
        for name, space in smoother.spaces.items()
    )


def test_linear_graphs_are_solved_as_they_grow() -> None:
    graph = chain(8, 3, np.random.default_rng(1))
    found = follow(graph, {"x": np.zeros(3)}, covariances=True)
    assert found.covariances is not None
    for t in (0, 1, 4, 7):
        so_far = solve(graph.window(0, t + 1), {"x": np.zeros((t + 1, 3))})
        size = np.abs(so_far["x"]).max()
        assert found.newest["x"][t] == pytest.approx(so_far["x"][t], abs=1e-9 * size)
        assert found.covariances[t] == pytest.approx(so_far.covariances[t], abs=1e-9)
    assert found.smoothed["x"] == pytest.approx(so_far["x"], abs=1e-9 * size)
    assert not found.iterations.any()  # what is linear is linearised once


@pytest.mark.parametrize(
    ("name", "force"),
    [
        ("crank_rocker", 1.0),
        pytest.param("mini_cheetah", 0.1, marks=pytest.mark.slow),
        pytest.param("tello", 1e-3, marks=pytest.mark.slow),
    ],
)
def test_settled_it_is_the_batch_solution(name: str, force: float) -> None:
    link = rm.robots.load(name).bodies[0].name
    graph, start = estimation(name, 8, 0.01, link, force)
    smoother = fed(graph, start, {"q": 0.01, "v": 0.1})
    assert smoother.settle(tolerance=1e-10)
    batch = solve(graph, smoother.values, tolerance=1e-12)
    size = max(1.0, float(np.abs(batch["a"]).max()))
    assert distance(smoother, batch) < 1e-9 * size
    sigma = batch.covariances
    assert smoother.covariances == pytest.approx(sigma, abs=1e-9 * float(np.abs(sigma).max()))
    same = solve(smoother.graph, smoother.values)
    assert same.cost == pytest.approx(batch.cost, rel=1e-9)


def test_a_late_measurement_reaches_every_time() -> None:
    graph, start = estimation("crank_rocker", 10, 0.01, "coupler")
    smoother = fed(graph, start, 1e-2)
    before = smoother["q"]
    late = Prior("v", Vectors(1))
    smoother.add(late, 0.01, [0.3], time=2)
    smoother.update()
    assert np.abs(smoother["q"] - before)[[0, 9]].max() > 1e-5
    assert smoother.settle(tolerance=1e-11)
    batch = solve(graph.add(late, 0.01, times=[2], data=[0.3]), smoother.values)
    assert distance(smoother, batch) < 1e-8


def test_only_what_moved_is_done_again() -> None:
    graph, start = estimation("crank_rocker", 20, 0.01, "coupler")
    found = follow(
        graph, start, predict=rolled_out(0.01, graph.spaces["q"]), threshold={"q": 0.02, "v": 0.3}
    )
    assert found.iterations.mean() < 1.0
    batch = solve(graph, found.smoothed)
    assert found.smoothed["q"] == pytest.approx(batch["q"], abs=1e-4)
    bounded = follow(
        graph, start, predict=rolled_out(0.01, graph.spaces["q"]), threshold=0.0, lag=3
    )
    assert bounded.iterations.max() == 3
    assert bounded.smoothed["q"] == pytest.approx(batch["q"], abs=1e-4)


def test_factors_alone_ask_for_little() -> None:
    """One more measurement of the newest time: one elimination, and no new linearisation."""
    graph, start = estimation("crank_rocker", 10, 0.01, "coupler")
    smoother = fed(graph, start, 1.0)
    smoother.add(Prior("v", Vectors(1)), 1.0, [0.5])
    done = smoother.update()
    assert (done.relinearized, done.eliminated) == (0, 1)
    assert smoother.update().eliminated == 0


def test_no_threads_for_a_step() -> None:
    graph, start = estimation("crank_rocker", 20, 0.01, "coupler")
    predict = rolled_out(0.01, graph.spaces["q"])
    follow(graph, start, predict=predict)
    time.sleep(0.05)  # threads that have worked before spin for a while
    everyone, own = time.process_time(), time.thread_time()
    follow(graph, start, predict=predict)
    everyone, own = time.process_time() - everyone, time.thread_time() - own
    assert everyone < 1.25 * own + 0.01


def test_it_refuses() -> None:
    vectors = Vectors(2)
    smoother = Incremental({"x": vectors})
    with pytest.raises(ValueError, match="outside"):
        smoother.add(Prior("x", vectors), 1.0)
    with pytest.raises(ValueError, match="no start"):
        smoother.advance({})
    with pytest.raises(ValueError, match="shape"):
        smoother.advance({"x": np.zeros(3)})
    smoother.advance({"x": np.zeros(2)})
    with pytest.raises(ValueError, match="no variable 'y'"):
        smoother.add(Prior("y", vectors), 1.0)
    with pytest.raises(ValueError, match="outside"):
        smoother.add(Equal("x", vectors), 1.0)
    with pytest.raises(UndeterminedError, match="time 0"):
        smoother.update()
    smoother.add(Prior("x", vectors), 0.5, [1.0, 2.0])  # and goes on afterwards
    smoother.update()
    assert smoother["x"] == pytest.approx(np.array([[1.0, 2.0]]))
    assert smoother.covariance("x") == pytest.approx(0.25 * np.eye(2)[np.newaxis])
    with pytest.raises(ValueError, match="zero or more"):
        Incremental({"x": vectors}, threshold=-1.0)
    with pytest.raises(ValueError, match="one time or more"):
        Incremental({"x": vectors}, lag=0)


@pytest.mark.slow
def test_isam2_finds_the_same() -> None:
    pytest.importorskip("gtsam")
    graph, start = estimation("crank_rocker", 8, 0.01, "coupler")
    smoother = fed(graph, start, 1e-2)
    begin = smoother.values
    assert smoother.settle(tolerance=1e-11)
    theirs = smooth_with_isam2(graph, begin, threshold=1e-9, settle=5)
    for name, x in theirs.items():
        assert x == pytest.approx(smoother[name], abs=1e-7 * (1.0 + np.abs(x).max())), name
