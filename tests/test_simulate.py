"""Simulation: energies kept, loops closed, orders of convergence, inputs, stops, and refusals."""

from __future__ import annotations

import contextlib
import csv
import io
import math
import pickle
import sys
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mechanisms import KINDS, Mechanism, random_mechanism
from texts import coupling, fan, four_bar, joint, link, loop, robot

import robomodel as rm
from robomodel.model.joints import Floating, Planar, Spherical
from robomodel.trajectory.simulation import integrators

Array = np.ndarray
State = tuple[rm.Model, Array, Array]


def crank_rocker(branch: str = "open") -> State:
    """The paper's four-bar, at rest with its crank along x, in one of its two assemblies."""
    model = rm.robots.load("crank_rocker")
    q = model.neutral()
    if branch == "crossed":
        q = model.configuration({"crank_joint": 0.0}, guess=model.close([0.0, -1.57, -2.55]))
        assert q[1] < 0.0 < model.neutral()[1]
    return model, q, np.zeros(1)


def six_bar() -> State:
    """The six-bar standing in a vertical plane."""
    model = rm.load(rm.robots.path("six_bar"), gravity=(0.0, -9.81, 0.0))
    return model, model.neutral(), np.array([2.0, -1.0, 1.0])


def spring(q0: Array) -> tuple[Callable[..., Array], Callable[[Array], Array]]:
    """A controller that holds the six-bar by springs, and their energy."""
    stiffness = 60.0

    def tau(_t: float, q: Array, _v: Array) -> Array:
        return -stiffness * (q[:3] - q0[:3])

    return tau, lambda q: 0.5 * stiffness * np.sum((q[:, :3] - q0[:3]) ** 2, axis=-1)


def cheetah() -> State:
    """Mini Cheetah thrown up, turning, its legs going."""
    model = rm.robots.load("mini_cheetah")
    v = np.random.default_rng(1).standard_normal(model.nv)
    v[:6] = [0.5, -0.3, 0.8, 0.2, -0.1, 20.0]
    return model, model.neutral(), v


def tello_leg() -> State:
    """Tello's left leg, with its two differentials and three rods, on a fixed torso."""
    root = ET.parse(rm.robots.path("tello")).getroot()
    for element in list(root):
        if element.get("name", "").startswith(("right", "torso-to-right")):
            root.remove(element)
        elif element.get("name") == "torso-to-ground":
            element.set("type", "fixed")
    model = rm.load(ET.tostring(root))
    assert len(model.loops) == 3
    return model, model.neutral(), np.array([2.0, 10.0, -10.0, 5.0, 5.0])


def drift(trajectory: rm.Trajectory, more: Array | float = 0.0) -> float:
    """Largest change of energy, relative to the largest kinetic energy."""
    energy = trajectory.energy + more
    return float(np.max(np.abs(energy - energy[0])) / np.max(trajectory.kinetic))


ACCURATE = {
    "dop853": {"method": "dop853", "step": 0.01, "rtol": 1e-12, "atol": 1e-13},
    "rk4": {"method": "rk4", "step": 5e-4},
}
CASES = {
    "four-bar": lambda: crank_rocker("open"),
    "four-bar crossed": lambda: crank_rocker("crossed"),
    "six-bar": six_bar,
    "mini cheetah": cheetah,
    "tello leg": tello_leg,
}


# ---- energy and loops ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("method", ACCURATE)
@pytest.mark.parametrize("case", CASES)
def test_ten_seconds_without_drift(case: str, method: str) -> None:
    """Loops to 1e-12, energy to 1e-9; springs that make the six-bar stiff want shorter steps."""
    model, q, v = CASES[case]()
    options = dict(ACCURATE[method])
    tau, stored = spring(q) if case == "six-bar" else (None, lambda q: np.zeros(len(q)))
    if case == "six-bar" and method == "rk4":
        options["step"] = 2e-4
    found = rm.simulate(model, q, v, tau=tau, duration=10.0, **options)
    assert found.times[-1] == 10.0
    assert np.max(found.residual) <= 1e-12
    assert drift(found, stored(found.q)) <= 1e-9
    assert np.max(np.ptp(found.q, axis=0)) > 0.5  # it did move


@pytest.mark.parametrize("case", CASES)
def test_energy_is_kept_and_loops_stay_closed(case: str) -> None:
    model, q, v = CASES[case]()
    tau, stored = spring(q) if case == "six-bar" else (None, lambda q: np.zeros(len(q)))
    found = rm.simulate(model, q, v, tau=tau, duration=0.5, step=0.05, rtol=1e-12, atol=1e-13)
    assert len(found) == 11
    assert np.max(found.residual) <= 1e-14
    assert drift(found, stored(found.q)) <= 1e-10


@pytest.mark.parametrize("method", ["dop853", "rk4", "variational", "semi_implicit_euler"])
def test_loops_stay_closed_by_every_method(method: str) -> None:
    for model, q, v in (crank_rocker("crossed"), tello_leg()):
        found = rm.simulate(model, q, v, duration=0.1, step=0.01, method=method)
        assert np.max(found.residual) <= 5e-15


def test_both_branches_stay_theirs() -> None:
    """A linkage keeps its assembly: the sine of the transmission angle keeps its sign."""
    for branch, sign in (("open", 1.0), ("crossed", -1.0)):
        model, q, v = crank_rocker(branch)
        found = rm.simulate(model, q, v + 5.0, duration=2.0, step=0.01)
        assert np.ptp(found.q[:, 0]) > 2 * np.pi  # all the way round
        angle = found.q[:, 0] + found.q[:, 1] - found.q[:, 2]
        assert np.all(sign * np.sin(angle) < -0.3) or np.all(sign * np.sin(angle) > 0.3)


# ---- orders --------------------------------------------------------------------------------------


def errors(state: State, method: str, steps: list[float], duration: float) -> Array:
    """Errors of positions and velocities at the end, for each step."""
    model, q, v = state
    exact = rm.simulate(model, q, v, duration=duration, rtol=1e-13, atol=1e-15)
    result = []
    for step in steps:
        found = rm.simulate(model, q, v, duration=duration, step=step, method=method)
        away = np.concatenate([found.q[-1] - exact.q[-1], found.v[-1] - exact.v[-1]])
        result.append(np.max(np.abs(away)))
    return np.array(result)


ORDERS = {"rk4": (4, 0.02), "variational": (2, 0.01), "semi_implicit_euler": (1, 0.002)}


@pytest.mark.parametrize("method", ORDERS)
def test_orders_of_convergence_with_loops(method: str) -> None:
    order, step = ORDERS[method]
    model, q, v = crank_rocker()
    found = errors((model, q, v + 2.0), method, [step, step / 2, step / 4], 0.4)
    slopes = np.log2(found[:-1] / found[1:])
    assert slopes == pytest.approx(order, abs=0.15)


def tumbling(gravity: float = -9.81) -> State:
    """A floating body with a ball joint, a planar joint and a geared joint on it."""
    text = robot(
        *(link(name) for name in ("torso", "arm", "plate", "wheel", "rotor")),
        joint("j_torso", "base", "torso", kind="floating"),
        joint("j_arm", "torso", "arm", "0.3 0.1 0", kind="spherical"),
        joint("j_plate", "torso", "plate", "0 0 0.4", kind="planar", rpy="0.3 0.2 0"),
        joint("j_wheel", "arm", "wheel", "0.2 0 0.1", axis="0.6 0.8 0"),
        joint("j_rotor", "arm", "rotor", "0.1 0 0.1", axis="0 1 0", mark=False),
        coupling("gear", {"j_rotor": 1.0, "j_wheel": -6.0}),
    )
    model = rm.load(text.encode(), gravity=(0.0, 0.0, gravity))
    return model, model.random_configuration(3), np.random.default_rng(4).standard_normal(model.nv)


@pytest.mark.parametrize("method", ORDERS)
def test_orders_of_convergence_on_groups(method: str) -> None:
    order, step = ORDERS[method]
    found = errors(tumbling(), method, [step, step / 2, step / 4], 0.2)
    slopes = np.log2(found[:-1] / found[1:])
    assert slopes == pytest.approx(order, abs=0.15)


def test_tolerances_govern_the_adaptive_method() -> None:
    """Errors follow rtol, also across the projections; the count of steps tells the order."""
    model, q, v = crank_rocker()
    exact = rm.simulate(model, q, v, duration=1.0, rtol=1e-13, atol=1e-15).q[-1]
    found, counts = [], []
    for rtol in (1e-6, 1e-8, 1e-10):
        run = rm.simulate(model, q, v, duration=1.0, rtol=rtol, atol=rtol * 1e-2)
        found.append(np.max(np.abs(run.q[-1] - exact)))
        counts.append(len(run))
    assert found[0] < 1e-5
    assert found[1] < 1e-7
    assert found[2] < 1e-9
    assert counts[2] < 4 * counts[0]  # 1e-4 in tolerance: a factor of 3.2 at eighth order


def test_between_the_steps() -> None:
    model, q, v = crank_rocker()
    found = rm.simulate(model, q, v, duration=1.0, rtol=1e-11, atol=1e-13)
    assert len(found) < 60
    times = np.linspace(0.0, 1.0, 41)
    q_at, v_at = found.at(times)
    assert q_at.shape == (41, 3)
    assert np.max(np.abs(model.residual(q_at))) <= 5e-15
    often = rm.simulate(model, q, v, duration=1.0, step=0.025, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(often.times, times, rtol=0, atol=1e-15)
    np.testing.assert_allclose(q_at, often.q, rtol=0, atol=1e-8)
    np.testing.assert_allclose(v_at, often.v, rtol=0, atol=1e-8)
    with pytest.raises(ValueError, match="between 0 and 1 s"):
        found.at(1.1)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.at(0.37)[0], found.at(0.37)[0])


# ---- the variational method ----------------------------------------------------------------------


@pytest.mark.slow
def test_variational_energy_does_not_drift() -> None:
    """Its error swings within a band of second order; the explicit method of that cost drifts."""
    model, q, v = crank_rocker()
    mean = []
    for method in ("variational", "semi_implicit_euler"):
        found = rm.simulate(model, q, v, duration=12.0, step=0.01, method=method)
        thirds = np.split((found.energy - found.energy[0])[1:], 3)
        mean.append([np.mean(third) for third in thirds])
        if method == "variational":
            band = np.ptp(thirds[0])
            assert np.ptp(thirds[2]) < 1.5 * band
            assert abs(mean[0][2] - mean[0][0]) < 0.15 * band
            assert band < 0.05 * np.max(found.kinetic)


def momentum(found: rm.Trajectory) -> Array:
    """Momentum about the world's origin, angular first."""
    h = rm.centroidal_momentum(found.model, found.q, found.v)
    com = rm.center_of_mass(found.model, found.q)
    return np.concatenate([h[:, :3] + np.cross(com, h[:, 3:]), h[:, 3:]], axis=1)


@pytest.mark.slow
def test_variational_keeps_momentum() -> None:
    """No gravity: momentum of the whole is kept to rounding, however coarse the step."""
    still, q, v = tumbling(gravity=0.0)
    found = rm.simulate(still, q, v, duration=0.5, step=0.02, method="variational")
    h = momentum(found)
    np.testing.assert_allclose(h, np.broadcast_to(h[0], h.shape), rtol=0, atol=1e-12)
    coarse = rm.simulate(still, q, v, duration=0.5, step=0.02, method="rk4")
    rough = momentum(coarse)
    assert np.max(np.abs(rough - rough[0])) > 1e-9


@pytest.mark.parametrize("joint_model", [Planar(2), Spherical(), Floating()])
def test_inverse_of_the_derivative_of_the_exponential(joint_model: object) -> None:
    """d/dt difference(q, q(t)) along a velocity w is dexp⁻¹(-ξ) w at ξ."""
    rng = np.random.default_rng(0)
    q = np.array(joint_model.neutral())
    for size in (0.01, 0.3, 1.0):
        xi = rng.standard_normal(joint_model.nv)
        xi *= size / np.linalg.norm(xi)
        w, h = rng.standard_normal(joint_model.nv), 1e-3
        at = joint_model.integrate(q, xi)
        ends = [
            joint_model.difference(q, joint_model.integrate(at, s * h * w)) for s in (1, -1, 2, -2)
        ]
        slope = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * h)
        found = integrators.inverse_dexp(integrators.adjoint(joint_model, -xi)) @ w
        np.testing.assert_allclose(found, slope, rtol=0, atol=2e-11)


def test_variational_with_forces_of_velocity() -> None:
    """Damping and wrenches, of which it asks at both ends: second order too."""
    model, q, v = crank_rocker()

    def run(method: str, step: float | None) -> Array:
        found = rm.simulate(
            model, q, v, duration=0.4, step=step, method=method, rtol=1e-13, atol=1e-15,
            tau=lambda t, _q, v: -3.0 * v + math.sin(5 * t),
            f_ext=lambda t, _q, _v: {"rocker": [0.0, 0.0, math.cos(3 * t), 1.0, 2.0, 0.0]},
        )  # fmt: skip
        return np.concatenate([found.q[-1], found.v[-1]])

    exact = run("dop853", None)
    found = [np.max(np.abs(run("variational", h) - exact)) for h in (0.01, 0.005, 0.0025)]
    assert np.log2(found[0] / found[1]) == pytest.approx(2.0, abs=0.15)
    assert np.log2(found[1] / found[2]) == pytest.approx(2.0, abs=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(("linear", "angular"), [(20.0, 20.0), (100.0, 5.0)])
def test_variational_in_fast_flight(linear: float, angular: float) -> None:
    """Momenta that no chord's iteration bears, at steps of 2 ms: solved, and second order."""
    model = rm.robots.load("mini_cheetah")
    rng = np.random.default_rng(1)
    q, v = model.neutral(), rng.standard_normal(model.nv)
    v *= np.repeat([angular, linear, 20.0], [3, 3, 12])
    found = errors((model, q, v), "variational", [0.0005, 0.00025], 0.02)
    assert np.log2(found[0] / found[1]) == pytest.approx(2.0, abs=0.15)
    run = rm.simulate(model, q, v, duration=0.1, step=0.002, method="variational")
    assert drift(run) < 1e-4


def test_variational_under_stiff_damping() -> None:
    """Forces at a step's end that a fixed-point iteration would blow up."""
    model, q, v = crank_rocker()
    for damping in (30.0, 3000.0):
        options = {"duration": 0.1, "tau": lambda _t, _q, v, c=damping: -c * v}
        found = rm.simulate(model, q, v + 5.0, step=0.002, method="variational", **options)
        exact = rm.simulate(model, q, v + 5.0, rtol=1e-9, **options)
        np.testing.assert_allclose(found.v[-1], exact.v[-1], rtol=2e-3)


def tethered(kind: str = "spherical") -> rm.Model:
    """A body on a ball joint, or afloat, held by a rod; the freedoms are some of the joint's."""
    return rm.load(
        robot(
            link("body"),
            joint("hold", "base", "body", kind=kind),
            loop("tether", "rod", "base", "body", "0.2 0.3 0.9", "0.4 0.1 0.2", "", 'length="0.8"'),
        )
    )


@pytest.mark.parametrize("kind", ["spherical", "floating"])
def test_parts_of_a_joint(kind: str) -> None:
    """One condition leaves some velocities of a joint independent: no chart, but all else works."""
    model = tethered(kind)
    assert model.nv == {"spherical": 2, "floating": 5}[kind]
    q = model.random_configuration(1)
    v = np.random.default_rng(2).standard_normal(model.nv)
    with pytest.raises(ValueError, match="needs all velocities of joint 'hold'"):
        rm.simulate(model, q, v, duration=0.1, method="variational")
    exact = rm.simulate(model, q, v, duration=0.08, rtol=1e-12, atol=1e-14)
    assert np.max(exact.residual) <= 1e-14
    assert drift(exact) <= 1e-10
    found = errors((model, q, v), "rk4", [0.008, 0.004, 0.002], 0.08)
    assert np.log2(found[:-1] / found[1:]) == pytest.approx(4, abs=0.3)


def loaded(mechanism: Mechanism) -> rm.Model:
    """The model of a random mechanism, whose axes are of any length."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        return rm.load(mechanism.text, floating_base=mechanism.floating_base)


# ---- any mechanism -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_random_mechanisms(kind: str) -> None:
    """All methods reach the same state, with closed loops, on mechanisms of every kind."""
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(3):
        mechanism = random_mechanism(rng, [kind], n_joints=4)
        model = loaded(mechanism)
        q = model.random_configuration(rng)
        v = 0.1 * rng.standard_normal(model.nv)
        try:
            exact = rm.simulate(
                model, q, v, duration=0.02, rtol=1e-12, atol=1e-14, passive=False, friction=False
            )
        except rm.SimulationError:
            continue  # light links fall into a singular position at once
        assert np.max(exact.residual) <= 1e-12
        assert drift(exact) <= 1e-8
        far = max(1.0, float(np.max(np.abs(exact.v))))
        found = rm.simulate(
            model, q, v, duration=0.02, step=1e-4, method="rk4", passive=False, friction=False
        )
        assert np.max(found.residual) <= 1e-12
        np.testing.assert_allclose(found.q[-1], exact.q[-1], rtol=0, atol=1e-6 * far**4)


# ---- inputs --------------------------------------------------------------------------------------


def test_constant_rows_and_controllers_agree() -> None:
    model, q, v = six_bar()
    force = np.array([3.0, -1.0, 2.0])
    constant = rm.simulate(model, q, v, tau=force, duration=0.1, step=0.01)
    rows = rm.simulate(model, q, v, tau=np.tile(force, (10, 1)), step=0.01)
    asked = rm.simulate(model, q, v, tau=lambda t, q, v: force, duration=0.1, step=0.01)
    assert len(constant) == len(rows) == len(asked) == 11
    np.testing.assert_allclose(rows.q, constant.q, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(asked.q, constant.q)
    np.testing.assert_array_equal(asked.tau, np.tile(force, (11, 1)))


@pytest.mark.parametrize("method", ["dop853", "rk4", "variational", "semi_implicit_euler"])
def test_rows_are_held_over_their_steps(method: str) -> None:
    """Two steps under two forces are one simulation after the other."""
    model, q, v = crank_rocker()
    rows = np.array([[5.0], [-7.0]])
    options = {"step": 0.02, "method": method}
    whole = rm.simulate(model, q, v, tau=rows, **options)
    first = rm.simulate(model, q, v, tau=rows[0], duration=0.02, **options)
    second = rm.simulate(model, first.q[-1], first.v[-1], tau=rows[1], duration=0.02, **options)
    np.testing.assert_allclose(whole.q[1], first.q[-1], rtol=0, atol=1e-13)
    np.testing.assert_allclose(whole.q[2], second.q[-1], rtol=0, atol=1e-11)
    np.testing.assert_allclose(whole.v[2], second.v[-1], rtol=0, atol=1e-10)
    np.testing.assert_array_equal(whole.tau[:2], rows)


@pytest.mark.parametrize("method", ["dop853", "rk4"])
def test_a_digital_controller_is_asked_once_a_step(method: str) -> None:
    model, q, v = crank_rocker()
    asked: list[float] = []

    def tau(t: float, _q: Array, v: Array) -> list[float]:
        asked.append(t)
        return [-2.0 * float(v[0])]

    found = rm.simulate(
        model, q, v + 1.0, tau=tau, duration=0.1, step=0.01, method=method, hold=True
    )
    np.testing.assert_allclose(asked, 0.01 * np.arange(10), rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.tau[:-1], -2.0 * found.v[:-1], rtol=0, atol=1e-15)
    replayed = rm.simulate(model, q, v + 1.0, tau=found.tau[:-1], step=0.01, method=method)
    np.testing.assert_array_equal(replayed.q, found.q)


def test_work_of_forces_is_the_change_of_energy() -> None:
    """A controller and a wrench, given as numbers and by a function: power integrated."""
    model, q, v = crank_rocker()
    push = np.array([0.0, 0.0, 0.7, 2.0, -1.0, 0.0])

    def power(found: rm.Trajectory) -> Array:
        twist = rm.frame_velocity(model, found.q, found.v, "rocker")
        return np.sum(found.tau * found.v, axis=1) + twist @ push

    options = {
        "tau": lambda t, _q, v: 4.0 * math.cos(3.0 * t) - 0.5 * v, "duration": 0.5,
        "step": 0.002, "rtol": 1e-12, "atol": 1e-14,
    }  # fmt: skip
    found = rm.simulate(model, q, v, f_ext={"rocker": push}, **options)
    same = rm.simulate(model, q, v, f_ext=lambda *_: {"rocker": push}, **options)
    rows = rm.simulate(model, q, v, f_ext={"rocker": np.tile(push, (250, 1))}, **options)
    np.testing.assert_array_equal(same.q, found.q)
    np.testing.assert_allclose(rows.q, found.q, rtol=0, atol=1e-10)
    from scipy.integrate import simpson

    work = simpson(power(found), x=found.times)
    assert found.energy[-1] - found.energy[0] == pytest.approx(work, abs=1e-7)
    assert abs(work) > 0.1


METHODS = ("dop853", "rk4", "variational", "semi_implicit_euler")


@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_wrenches_that_begin_later(method: str, hold: bool) -> None:
    """Links not named feel nothing; named at touch-down, in any order, they are heard."""
    model = tumbling()[0]
    q = model.neutral()
    names = ["torso", "wheel", "plate"]
    push = dict(zip(names, np.random.default_rng(2).standard_normal((3, 6)), strict=True))

    def now(t: float) -> dict[str, Array]:
        """One link after the other, later the first again, alone."""
        if t < 0.01:
            return {}
        some = ["plate"] if t < 0.02 else ["wheel", "plate", "torso"] if t < 0.03 else ["torso"]
        return {name: push[name] for name in some}

    def everywhere(t: float, _q: Array, _v: Array) -> dict[str, Array]:
        given = now(t)
        return {name: given.get(name, np.zeros(6)) for name in names}

    options = {"duration": 0.04, "step": 0.005, "method": method, "hold": hold}
    found = rm.simulate(model, q, f_ext=lambda t, *_: now(t), **options)
    same = rm.simulate(model, q, f_ext=everywhere, **options)
    free = rm.simulate(model, q, **options)
    np.testing.assert_allclose(found.v, same.v, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.q, same.q, rtol=0, atol=1e-12)
    assert np.max(np.abs(found.v[-1] - free.v[-1])) > 1e-3


def test_a_fall_ends_on_the_ground() -> None:
    """A spring that is there from touch-down on only, without a link named at the start."""
    model = rm.load(robot(link("ball"), joint("free", "base", "ball", kind="floating")))
    com = np.array(model.bodies[0].com)
    mass = model.mass

    def ground(_t: float, q: Array, v: Array) -> dict[str, Array]:
        pose = rm.frame_pose(model, q, ("ball", com), backend="numpy")
        low = 0.1 - pose[2, 3]
        if low <= 0.0:
            return {}
        up = pose[:3, :3].T @ [0.0, 0.0, 4e3 * mass * low - 30.0 * mass * v[5]]
        return {"ball": np.concatenate([np.cross(com, up), up])}

    q = np.array([0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0])
    found = rm.simulate(model, q, duration=1.0, step=1e-3, method="rk4", f_ext=ground)
    height = rm.frame_pose(model, found.q, ("ball", com))[:, 2, 3]
    assert np.min(height) > 0.0
    assert height[-1] == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_controllers_cannot_write_on_the_motion(method: str, hold: bool) -> None:
    """They see the state; what they keep of it, and what they gave, stays theirs."""
    model, q, v = crank_rocker()
    given = {"duration": 0.05, "step": 0.01, "method": method, "hold": hold}
    kept: list[tuple[float, Array, Array]] = []
    force = np.zeros(1)

    def tau(t: float, q: Array, v: Array) -> Array:
        kept.append((t, q, v))
        force[0] = math.sin(40.0 * t)  # one array, written anew at every call
        return force

    found = rm.simulate(model, q, v, tau=tau, **given)
    same = rm.simulate(model, q, v, tau=lambda t, *_: [math.sin(40.0 * t)], **given)
    np.testing.assert_array_equal(found.q, same.q)
    np.testing.assert_array_equal(found.tau, same.tau)
    starts = {t: q for t, q, _ in kept}
    for t, at in zip(found.times[:-1], found.q, strict=False):
        if t in starts:
            np.testing.assert_allclose(starts[t], at, rtol=0, atol=1e-6)

    def scribble(_t: float, q: Array, v: Array) -> dict[str, Array]:
        for x in (q, v):
            with pytest.raises(ValueError, match="read-only"):
                x[0] = 7.0
        return {}

    def wild(t: float, q: Array, v: Array) -> Array:
        scribble(t, q, v)
        return force

    force[0] = 0.0
    free = rm.simulate(model, q, v, **given)
    for options in ({"tau": wild}, {"f_ext": scribble}):
        found = rm.simulate(model, q, v, **given, **options)
        np.testing.assert_allclose(found.q, free.q, rtol=0, atol=1e-9)
    for frozen in (q, v):
        frozen.flags.writeable = False
    np.testing.assert_array_equal(rm.simulate(model, q, v, **given).q, free.q)


def test_tolerances_at_their_ends() -> None:
    """No relative tolerance, or one below rounding, is the finest there is; tiny ones end too."""
    model, q, v = crank_rocker()
    exact = rm.simulate(model, q, v, duration=0.1, rtol=1e-13)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rtol in (0.0, 1e-300, 1e-16):
            found = rm.simulate(model, q, v, duration=0.1, rtol=rtol)
            np.testing.assert_allclose(found.q[-1], exact.q[-1], rtol=0, atol=1e-10)
        for atol in (5e-324, 1e-300, 1e-200, 1e-100):
            found = None
            with contextlib.suppress(rm.SimulationError):
                found = rm.simulate(model, q, v, duration=0.01, rtol=1e-6, atol=atol)
            assert found is None or found.times[-1] == 0.01


def test_a_last_step_that_is_shorter() -> None:
    model, q, v = crank_rocker()
    for method in ("rk4", "dop853"):
        found = rm.simulate(model, q, v, duration=0.025, step=0.01, method=method)
        np.testing.assert_allclose(found.times, [0.0, 0.01, 0.02, 0.025], rtol=0, atol=1e-15)
    nothing = rm.simulate(model, q, v, duration=0.0)
    assert len(nothing) == 1
    np.testing.assert_array_equal(nothing.q[0], q)


# ---- stops and refusals --------------------------------------------------------------------------


def pendulum() -> rm.Model:
    """Three pendulums; a within limits, b that follows a (a mimic), c without limits."""
    text = robot(
        *(link(name) for name in ("one", "two", "three")),
        joint("a", "base", "one", kind="revolute", axis="0 1 0",
              more='<limit lower="-0.5" upper="0.8"/>'),
        joint("b", "base", "two", kind="revolute", axis="0 1 0",
              more='<limit lower="-3" upper="0.9"/><mimic joint="a" multiplier="2"/>'),
        joint("c", "base", "three", axis="0 1 0"),
    )  # fmt: skip
    return rm.load(text)


@pytest.mark.parametrize("method", ["dop853", "rk4", "variational", "semi_implicit_euler"])
def test_stop_at_a_limit(method: str) -> None:
    """Of a dependent joint too; the last state is at the limit, whichever the method."""
    model = pendulum()
    q, v = np.zeros(2), np.array([3.0, 0.0])
    options = {"duration": 1.0, "step": 0.01, "method": method}
    found = rm.simulate(model, q, v, stop_at_limits=True, **options)
    assert found.stop is not None
    assert (found.stop.joint, found.stop.limit, found.stop.position) == ("b", "upper", 0.9)
    assert found.times[-1] == found.stop.time < 1.0
    assert found.q[-1, 0] == pytest.approx(0.45, abs=1e-12)
    chosen = rm.simulate(model, q, v, stop_at_limits=["a"], **options)
    assert chosen.stop is not None
    assert chosen.stop.joint == "a"
    assert chosen.q[-1, 0] == pytest.approx(0.8, abs=1e-12)
    back = rm.simulate(model, found.q[-1], -3.0 * found.v[-1], stop_at_limits=True, **options)
    assert back.stop is not None
    assert back.stop.limit == "lower"
    again = rm.simulate(model, found.q[-1], found.v[-1], stop_at_limits=True, **options)
    assert again.stop is not None
    assert again.stop.time == 0.0
    assert rm.simulate(model, q, v, **options).stop is None
    with pytest.raises(ValueError, match="beyond its upper limit"):
        rm.simulate(model, [0.85, 0.0], v, stop_at_limits=["a"], **options)
    with pytest.raises(KeyError, match="no joint 'd'"):
        rm.simulate(model, q, v, stop_at_limits=["d"], **options)


def test_states_that_are_not_finite() -> None:
    model, q, v = crank_rocker()
    with pytest.raises(rm.SimulationError, match="not finite"):
        rm.simulate(model, q, v, tau=lambda t, _q, _v: [math.nan], duration=0.1)
    for method in ("rk4", "variational", "dop853"):
        with pytest.raises(rm.SimulationError) as caught:
            rm.simulate(
                model, q, v, tau=lambda t, _q, _v: [0.0 if t < 0.05 else math.inf], duration=0.1,
                step=1e-3, method=method,
            )  # fmt: skip
        assert caught.value.time == pytest.approx(0.05, abs=2e-3)


def test_refusals() -> None:
    model, q, v = crank_rocker()
    for arguments, options, message in (
        ((q, v), {"method": "euler"}, "method 'euler' is not known"),
        ((q, v), {"step": -1.0}, "step must be a positive number"),
        ((q, v), {"duration": -1.0}, "duration must be"),
        ((q, v), {"duration": None}, "duration must be"),
        ((q[:2], v), {}, "q needs nq = 3"),
        ((np.tile(q, (2, 1)), v), {}, "rollout takes batches"),
        ((q + 0.1, v), {}, "open at q"),
        ((q, [math.nan]), {}, "finite"),
        ((q, v), {"tau": [1.0, 2.0]}, "tau needs nv = 1"),
        ((q, v), {"tau": np.zeros((2, 2, 1))}, r"tau must be \(nv,\) or"),
        ((q, v), {"tau": np.zeros((7, 1)), "step": 0.01}, "7 rows of tau"),
        ((q, v), {"tau": lambda *_: [1.0, 2.0]}, "must give nv = 1 forces"),
        ((q, v), {"f_ext": {"rocker": np.zeros(5)}}, "needs 6"),
        ((q, v), {"f_ext": {"rocker": np.zeros((2, 3, 6))}}, "wrenches must be"),
        (
            (q, v),
            {"tau": np.zeros((10, 1)), "f_ext": {"rocker": np.zeros((9, 6))}, "step": 0.01},
            "different numbers of rows",
        ),
        ((q, v), {"f_ext": lambda *_: {"rocker": np.zeros(5)}}, "six numbers, gave 'rocker'"),
        ((q, v), {"atol": 0.0}, "atol must be a positive number"),
        ((q, v), {"atol": 0.0, "rtol": 0.0}, "atol must be a positive number"),
        ((q, v), {"atol": -1e-9}, "atol must be a positive number"),
        ((q, v), {"atol": math.nan}, "atol must be a positive number"),
        ((q, v), {"rtol": -1e-9}, "rtol must be a number from 0 on"),
        ((q, v), {"rtol": math.inf}, "rtol must be a number from 0 on"),
        ((q, v), {"step": 1e-300, "method": "rk4"}, "too short for a duration of"),
        ((q, v), {"step": 5e-324, "method": "rk4"}, "too short for a duration of"),
    ):
        with pytest.raises(ValueError, match=message):
            rm.simulate(model, *arguments, **{"duration": 0.1, **options})
    for f_ext in ({"rocke": np.zeros(6)}, lambda t, *_: {} if t == 0.0 else {"rocke": np.ones(6)}):
        with pytest.raises(KeyError, match="did you mean 'rocker'"):
            rm.simulate(model, q, v, duration=0.1, f_ext=f_ext)
    with pytest.raises(TypeError, match="must give a mapping of links to wrenches, gave None"):
        rm.simulate(model, q, v, duration=0.1, f_ext=lambda *_: None)
    with pytest.raises(TypeError, match="f_ext maps links to wrenches, not list"):
        rm.simulate(model, q, v, duration=0.1, f_ext=[np.zeros(6)])


# ---- what comes out ------------------------------------------------------------------------------


def test_a_trajectory_as_numbers(tmp_path: Path) -> None:
    model, q, v = tumbling()
    found = rm.simulate(model, q, v, duration=0.1, step=0.02)
    table = found.to_dict()
    assert list(table) == list(found.columns)
    assert len(set(found.columns)) == len(found.columns)
    np.testing.assert_array_equal(table["q:j_torso.qw"], found.q[:, 6])
    plate = model.joint_positions(found.q)["j_plate"]
    np.testing.assert_array_equal(table["q:j_plate.angle"], plate[:, 2])
    np.testing.assert_array_equal(table["v:j_wheel"], found.v[:, model.dof_names.index("j_wheel")])
    np.testing.assert_array_equal(table["kinetic"] + table["potential"], found.energy)
    assert found.to_numpy().shape == (6, len(found.columns))
    found.to_csv(tmp_path / "out.csv")
    with open(tmp_path / "out.csv", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == list(found.columns)
    np.testing.assert_array_equal(np.array(rows, dtype=float), found.to_numpy())
    assert repr(found) == "<Trajectory of 'test' by dop853: 6 states, 0 to 0.1 s>"


def test_a_trajectory_as_a_data_frame() -> None:
    pytest.importorskip("pandas")
    model, q, v = crank_rocker()
    frame = rm.simulate(model, q, v, duration=0.1, step=0.02).to_pandas()
    assert frame.index.name == "time"
    assert frame.shape == (6, 8)
    assert frame["v:crank_joint"].iloc[0] == 0.0


def test_a_trajectory_as_a_plot() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    model, q, v = crank_rocker()
    found = rm.simulate(model, q, v, duration=0.1, step=0.02)
    figure = found.plot()
    drawn = figure.axes[1].lines[0].get_ydata()
    np.testing.assert_array_equal(drawn, found.v[:, 0])
    pyplot.close(figure)


def test_a_bar_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    from robomodel import progress

    clock = iter(range(10**9))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    model, q, v = crank_rocker()
    for stream, wanted, shown in (
        (Terminal(), True, True),
        (Terminal(), False, False),
        (io.StringIO(), True, False),
    ):
        monkeypatch.setattr(sys, "stderr", stream)
        rm.simulate(model, q, v, duration=0.05, progress=wanted)
        assert bool(stream.getvalue()) is shown


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy gives the same motion."""
    from robomodel.kernels import NoCompilerError
    from robomodel.trajectory.simulation import integrator_functions as functions

    model, q, v = crank_rocker()
    found = rm.simulate(model, q, v, duration=0.05, step=0.01, method="rk4")

    def refuse(*_args: object, **_options: object) -> None:
        raise NoCompilerError("none wanted")

    monkeypatch.setattr(functions, "compile_program", refuse)
    slow = rm.simulate(rm.robots.load("crank_rocker"), q, v, duration=0.05, step=0.01, method="rk4")
    np.testing.assert_allclose(slow.q, found.q, rtol=0, atol=1e-14)


@pytest.mark.slow
def test_couplings_within_loops_hold_to_the_last_digit() -> None:
    """A geared rotor on a four-bar's crank, many turns on: no sum of rounding errors."""
    text = four_bar(
        link("rotor"),
        joint("j_rotor", "base", "rotor", mark=False),
        coupling("gear", {"j_rotor": 1.0, "j_crank": -9.7}, offset=0.3),
        marks=(True, False, False),
    )
    model = rm.load(text)
    q = model.configuration({"j_crank": 0.3})
    found = rm.simulate(model, q, [40.0], duration=1.0, step=1e-3, method="rk4")
    turned = found.q[-1, model.joint_names.index("j_rotor")]
    assert abs(turned) > 100.0
    assert np.max(found.residual) <= 1e-13


def test_trees_have_no_loops_to_close() -> None:
    model = rm.load(fan())
    found = rm.simulate(model, np.zeros(3), np.ones(3), duration=0.1, step=0.05)
    assert found.residual.tolist() == [0.0] * 3
