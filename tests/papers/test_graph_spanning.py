"""Graphs over time in all joints' coordinates, loops as factors, beside the independent ones."""

from __future__ import annotations

import numpy as np
import pytest
from cases import few
from lxml import etree
from mechanisms import random_mechanism
from numpy.typing import NDArray
from test_clusters_as_printed import ball

import robomodel as rm
from robomodel.estimation.factors import Gyroscope
from robomodel.estimation.graph import Factor
from robomodel.estimation.problems import rolled_out, undisturbed
from robomodel.estimation.solve import fixed_lag
from robomodel.estimation.spaces import Configurations
from robomodel.mechanism.constraints import LinearConstraint
from robomodel.papers.natural_coordinates.spatial import (
    LoopAccelerations,
    LoopPositions,
    LoopVelocities,
    SpanningDynamics,
    forward,
    joint_positions,
)

Array = NDArray[np.float64]


def leg() -> rm.Model:
    """Tello's left leg on a fixed torso."""
    tree = etree.parse(rm.robots.path("tello"), etree.XMLParser(remove_comments=True))
    root = tree.getroot()
    for element in [e for e in root if "right" in e.get("name", "")]:
        root.remove(element)
    return rm.load(etree.tostring(root, encoding="unicode"), floating_base=False)


def robot(name: str) -> rm.Model:
    if name in ("balls", "floating"):
        return ball(floating=name == "floating")
    return leg() if name == "leg" else rm.robots.load(name)


ROBOTS = few(["crank_rocker", "balls", "floating", "leg"], "crank_rocker")


@pytest.mark.slow_cases("crank_rocker")
@pytest.mark.parametrize("name", ROBOTS)
def test_errors_and_jacobians(name: str) -> None:
    model = robot(name)
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(2)])
    v, a = rng.standard_normal((2, 2, model.nv))
    g = model.constraint_jacobian(q)
    s = joint_positions(model, q)
    sd = np.einsum("kij,kj->ki", g, v)
    sdd = np.einsum("kij,kj->ki", g, a) + model.constraint_bias(q, v)
    closed = {"q": s, "v": sd, "a": sdd}
    factors: list[Factor] = [
        LoopPositions(model),
        LoopVelocities(model),
        LoopAccelerations(model),
        SpanningDynamics(model),
    ]
    for factor in factors[:3]:
        e = factor.evaluate([closed[x] for x, _ in factor.variables], None)[0]
        assert np.abs(e).max() < 1e-10 * max(1.0, np.abs(sdd).max())
    tau = rm.rnea(model, q, v, a)
    e = factors[3].evaluate([s, sd, sdd], tau)[0]
    assert np.abs(e).max() < 1e-10 * max(1.0, np.abs(tau).max())
    space = LoopPositions(model).space
    assert (space.size, space.dim) == (s.shape[1], sd.shape[1])

    def moved(x: list[Array], i: int, step: Array) -> list[Array]:
        there = space.retract(x[i], np.broadcast_to(step, sd.shape)) if i == 0 else x[i] + step
        return [*x[:i], there, *x[i + 1 :]]

    for factor in factors:
        x = [closed[y] for y, _ in factor.variables]
        for i in range(len(x)):
            x = moved(x, i, 0.01 * rng.standard_normal(sd.shape))
        slopes = factor.evaluate(x, None)[1]
        for i, slope in enumerate(slopes):
            for j in range(sd.shape[1]):
                step = np.zeros(sd.shape[1])
                step[j] = 1e-3
                near, far = (
                    factor.evaluate(moved(x, i, k * step), None)[0]
                    - factor.evaluate(moved(x, i, -k * step), None)[0]
                    for k in (1, 2)
                )
                wanted = (8 * near - far) / 12e-3
                size = max(1.0, float(np.abs(wanted).max()))
                assert slope[..., j] == pytest.approx(wanted, abs=1e-7 * size)


@pytest.mark.slow_cases("floating", "balls")
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize("name", ["coupling", "balls", "floating"])
def test_derivatives_of_differences(name: str) -> None:
    """Of configurations with joints of several freedoms: alone, in loops, and in couplings."""
    if name == "coupling":
        generator = np.random.default_rng(33)
        model = rm.load(random_mechanism(generator, ["coupling"], n_joints=5).text)
        curved = [c for c in model.clusters if any(model.nodes[b].joint.nv > 1 for b in c.bodies)]
        assert any(isinstance(c.constraint, LinearConstraint) for c in curved)
    else:
        model = robot(name)
    rng = np.random.default_rng(1)
    space, step = Configurations(model), 1e-6
    q0 = model.random_configuration(rng)
    q1 = space.retract(q0, 0.05 * rng.standard_normal(model.nv))
    for k, jacobian in enumerate(space.local_jacobians(q0, q1)):
        ahead, behind = (
            np.array([
                space.local(space.retract(q0, h * e), q1) if k == 0
                else space.local(q0, space.retract(q1, h * e))
                for e in np.eye(model.nv)
            ])
            for h in (step, -step)
        )  # fmt: skip
        np.testing.assert_allclose(jacobian, (ahead - behind).T / (2 * step), atol=2e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_motions_are_those_of_independent_coordinates(name: str) -> None:
    model = robot(name)
    count, step = 8, 2e-3
    q0, v0 = model.random_configuration(1), np.full(model.nv, 0.5)
    tau = 0.01 * np.random.default_rng(2).standard_normal((count, model.nv))
    wanted = undisturbed(model, count, step, q0, v0, tau)
    a0 = rm.aba(model, q0, v0, tau[0])
    g = model.constraint_jacobian(q0)
    begin = {
        "q": joint_positions(model, q0),
        "v": g @ v0,
        "a": g @ a0 + model.constraint_bias(q0, v0),
    }
    graph = forward(model, count, step, q=begin["q"], v=begin["v"], tau=tau)
    found = fixed_lag(graph, begin, 2, predict=rolled_out(step, graph.spaces["q"])).newest
    assert found["q"] == pytest.approx(joint_positions(model, wanted["q"]), abs=1e-9)
    v = np.einsum("kij,kj->ki", model.constraint_jacobian(wanted["q"]), wanted["v"])
    assert found["v"] == pytest.approx(v, abs=1e-8 * max(1.0, np.abs(v).max()))


def test_sensors_are_those_of_the_tree() -> None:
    """Instruments on the robot without its loops, at positions that close them, read the same."""
    model = rm.robots.load("crank_rocker")
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(2)])
    v = rng.standard_normal((2, model.nv))
    rates = np.einsum("kij,kj->ki", model.constraint_jacobian(q), v)
    own = Gyroscope(model, "coupler").evaluate([q, v], None)[0]
    tree = LoopPositions(model).tree
    found = Gyroscope(tree, "coupler").evaluate([joint_positions(model, q), rates], None)[0]
    assert np.abs(found - own).max() < 1e-12
