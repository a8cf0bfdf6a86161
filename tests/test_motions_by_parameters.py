"""Motions by parameters: each robot of a batch beside a model that has its own numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import few
from rollouts import q_and_v
from simulation_mechanisms import tumbling
from test_rollout import crossing
from test_simulation import ball

import robomodel as rm

Array = np.ndarray
CASES: dict[str, tuple[Any, str, list[str]]] = {
    "rotors": (lambda: rm.robots.load("mini_cheetah"), "semi_implicit_euler", [
        "Floating Base.mass", "FR_knee_rotor_joint.armature", "FR_hip_link_joint.damping",
        "gravity.z",
    ]),
    "loops": (lambda: rm.robots.load("five_bar"), "rk4", [
        "link2.mass", "link2.mx", "J1.damping", "gravity.y",
    ]),
    "loops stepped": (lambda: rm.robots.load("five_bar"), "time_stepping", [
        "link2.mass", "J1.friction", "J2.damping",
    ]),
    "lengths": (lambda: rm.robots.load("four_bar"), "rk4", ["joint2.x", "loop.successor.x",
        "joint3.y", "link2.mass"]),
    "ratios": (lambda: rm.robots.load("parallel_ankle"), "time_stepping", [
        "left_rod.length", "left_gear.left_motor", "right_rod.predecessor.x",
    ]),
    "ball": (ball, "rk4", ["bob.mass", "bob.mz", "gravity.x"]),
}  # fmt: skip


def values(model: rm.Model, names: list[str], n: int = 3) -> dict[str, Array]:
    """Values for n robots, about the model's; joints have what they lack, but the first."""
    listed, rng = rm.parameters(model, geometry=True), np.random.default_rng(5)
    inertial, result = rm.parameters(model).names, {}
    for name in names:
        spread = (0.8, 1.3) if name in inertial else (0.98, 1.03)
        step = 0.1 if name in inertial else 0.01
        value = listed[name]
        result[name] = value * rng.uniform(*spread, n) if value else step * np.arange(n)
    return result


def one_by_one(model: rm.Model, given: dict[str, Array], *states: Array, **options: Any) -> Any:
    """Motions of models with these parameters, one after the other."""
    motions = [
        q_and_v(rm.rollout(rm.with_parameters(model, {name: x[i] for name, x in given.items()}),
                   *(x[i] for x in states), 1e-3, **options))
        for i in range(len(states[0]))
    ]  # fmt: skip
    return tuple(np.array(each) for each in zip(*motions, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("case", few(CASES, "loops", "loops stepped", "lengths", "ratios", "ball"))
def test_every_robot_has_its_own_parameters(case: str) -> None:
    make, method, names = CASES[case]
    model, rng = make(), np.random.default_rng(2)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    v, tau = rng.normal(size=(3, model.nv)), rng.normal(size=(3, 10, model.nv))
    given = values(model, names)
    geometry = case in ("lengths", "ratios")
    if geometry:
        near = model.neutral()
        q = np.array([model.random_configuration(rng, near=near) for _ in range(3)])
        q, v = model.close(q, parameters=given), 0.1 * v
    got = rm.rollout(model, q, v, tau, 1e-3, method=method, parameters=given)
    want = one_by_one(model, given, q, v, tau, method=method)
    for a, b in zip(q_and_v(got), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
    if geometry:
        return
    file = q_and_v(rm.rollout(model, q, v, tau, 1e-3, method=method))
    assert np.all(np.max(np.abs(file[1] - got.v), axis=(1, 2)) > 1e-4)


@pytest.mark.slow
def test_on_the_ground_and_in_simulations() -> None:
    model, start, _ = tumbling()
    q, v = np.tile(start, (3, 1)), np.zeros((3, model.nv))
    height = float(rm.frame_pose(model, start, "torso")[2, 3]) - 2e-4
    ground: dict[str, Any] = {
        "ground": rm.Ground(height=height),
        "contacts": [("torso", (0, 0, 0))],
    }
    tau = np.zeros((3, 40, model.nv))
    names = ["torso.mass", "j_rotor.friction", "gravity.z"]
    given = values(model, names)
    got = rm.rollout(model, q, v, tau, 1e-3, parameters=given, **ground)
    want = one_by_one(model, given, q, v, tau, method="time_stepping",
                      backend="numpy", **ground)  # fmt: skip
    assert np.max(got.contact_forces[..., 2]) > 10.0
    np.testing.assert_allclose(got.q, want[0], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(got.v, want[1], rtol=1e-10, atol=1e-9)

    sim = rm.Simulation(model, 3, substeps=4, parameters=given, **ground)
    sim.reset(q=q, v=v)
    for k in range(1, 6):
        sim.step()
        np.testing.assert_array_equal(sim.q, got.q[:, 4 * k])
    saved = sim.save()
    sim.step()
    after = sim.v.copy()
    sim.parameters["gravity.z"][1] = -3.0  # in place, for what follows
    sim.restore(saved)
    np.testing.assert_allclose(sim.parameters["gravity.z"], given["gravity.z"])
    sim.step()
    np.testing.assert_array_equal(sim.v, after)
    sim.parameters["gravity.z"][1] = -3.0
    sim.step()
    np.testing.assert_array_equal(sim.q[[0, 2]], got.q[[0, 2], 28])
    assert np.any(sim.q[1] != got.q[1, 28])


def test_imu_and_one_number_for_all() -> None:
    sim = rm.Simulation(ball(), 2, parameters={"gravity.z": [-9.81, -1.62], "bob.mass": 1.5})
    assert sim.parameters["bob.mass"].tolist() == [1.5, 1.5]
    np.testing.assert_allclose(sim.imu("bob")[1][:, 2], [9.81, 1.62])


@pytest.mark.slow
def test_simulations_of_robots_of_other_geometry() -> None:
    model = rm.robots.load("parallel_ankle")
    given = values(model, ["left_rod.length", "left_gear.left_motor", "right_crank.mass"], 2)
    sim = rm.Simulation(model, 2, method="rk4", parameters=given)
    others = [rm.with_parameters(model, {k: x[i] for k, x in given.items()}) for i in range(2)]
    np.testing.assert_allclose(sim.q, [one.neutral() for one in others], atol=1e-12)
    sim.reset(v=0.1 * np.ones(model.nv))
    tau = 0.1 * np.ones(model.nv)
    for _ in range(5):
        sim.step(tau)
    link = model.bodies[-1].name
    positions, rates = sim.joints()
    for i, one in enumerate(others):
        alone = rm.Simulation(one, 1, method="rk4")
        alone.reset(v=0.1 * np.ones(model.nv))
        for _ in range(5):
            alone.step(tau)
        at, speeds = alone.joints()
        for a, b in (
            (sim.q, alone.q), (positions, at), (rates, speeds),
            (sim.frame(link), alone.frame(link)), (sim.motors()[1], alone.motors()[1]),
            (sim.imu(link)[1], alone.imu(link)[1]),
        ):  # fmt: skip
            np.testing.assert_allclose(a[i], b[0], rtol=1e-9, atol=1e-9)
    sim.parameters["left_rod.length"][1] += 1e-3
    sim.reset([1])
    one = rm.with_parameters(others[1], {"left_rod.length": sim.parameters["left_rod.length"][1]})
    np.testing.assert_allclose(sim.q[1], one.neutral(), atol=1e-12)


def test_one_motion_by_parameters() -> None:
    model = rm.robots.load("four_bar")
    given = {"joint2.x": 0.51, "link2.mass": 2.0}
    q = model.close(model.neutral(), parameters=given)
    motion = rm.simulate(model, q, duration=0.05, step=0.01, parameters=given)
    want = rm.simulate(rm.with_parameters(model, given), q, duration=0.05, step=0.01)
    np.testing.assert_array_equal(motion.q, want.q)
    with pytest.raises(rm.errors.UnknownNameError, match=r"link2\.mass"):
        rm.simulate(model, q, duration=0.1, parameters={"link2.mas": 1.0})


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rk4", "time_stepping"])
def test_over_change_points(method: str) -> None:
    model, q, v = crossing()
    joint, kind = model.dof_names[0], "friction" if method == "time_stepping" else "damping"
    given = {f"{joint}.armature": np.array([0.1, 0.2]), f"{joint}.{kind}": np.array([0.0, 0.01])}
    states = np.tile(q, (2, 1)), np.tile(v, (2, 1)), np.zeros((2, 20, model.nv))
    got = rm.rollout(model, *states, 1e-3, method=method, parameters=given)
    want = one_by_one(model, given, *states, method=method)
    assert np.all(np.isfinite(got.q))
    np.testing.assert_allclose(got.v, want[1], rtol=1e-8, atol=1e-8)


def test_without_parameters_a_simulation_has_none() -> None:
    assert rm.Simulation(rm.robots.load("five_bar"), 4).parameters == {}
