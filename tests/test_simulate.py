"""Simulation: energies kept, loops closed, orders of convergence, inputs, stops, and refusals."""

from __future__ import annotations

import pickle
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np
import pytest
from mechanisms import KINDS, Mechanism, random_mechanism
from rollouts import drift
from simulation_mechanisms import Array, State, crank_rocker, six_bar, tumbling
from texts import joint, link, loop, robot

import robomodel as rm


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
@pytest.mark.tables_cases("six-bar-rk4")
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


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_energy_is_kept_and_loops_stay_closed(case: str) -> None:
    model, q, v = CASES[case]()
    tau, stored = spring(q) if case == "six-bar" else (None, lambda q: np.zeros(len(q)))
    found = rm.simulate(model, q, v, tau=tau, duration=0.5, step=0.05, rtol=1e-12, atol=1e-13)
    assert len(found) == 11
    assert np.max(found.residual) <= 1e-14
    assert drift(found, stored(found.q)) <= 1e-10


@pytest.mark.slow_cases("dop853", "rk4", "semi_implicit_euler")
@pytest.mark.parametrize("method", ["dop853", "rk4", "semi_implicit_euler"])
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


ORDERS = {"rk4": (4, 0.02), "semi_implicit_euler": (1, 0.002)}


@pytest.mark.parametrize("method", ORDERS)
def test_orders_of_convergence_with_loops(method: str) -> None:
    order, step = ORDERS[method]
    model, q, v = crank_rocker()
    found = errors((model, q, v + 2.0), method, [step, step / 2, step / 4], 0.4)
    slopes = np.log2(found[:-1] / found[1:])
    assert slopes == pytest.approx(order, abs=0.15)


@pytest.mark.slow_cases("rk4", "semi_implicit_euler")
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


def tethered(kind: str = "spherical") -> rm.Model:
    """A body on a ball joint, or afloat, held by a rod; the freedoms are some of the joint's."""
    return rm.load(
        robot(
            link("body"),
            joint("hold", "base", "body", kind=kind),
            loop("tether", "rod", "base", "body", "0.2 0.3 0.9", "0.4 0.1 0.2", "", 'length="0.8"'),
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["spherical", "floating"])
def test_parts_of_a_joint(kind: str) -> None:
    """One condition leaves some velocities of a joint independent."""
    model = tethered(kind)
    assert model.nv == {"spherical": 2, "floating": 5}[kind]
    q = model.random_configuration(1)
    v = np.random.default_rng(2).standard_normal(model.nv)
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
    for _ in range(2):
        mechanism = random_mechanism(rng, [kind], n_joints=3)
        model = loaded(mechanism)
        q = model.random_configuration(rng)
        v = 0.1 * rng.standard_normal(model.nv)
        try:
            exact = rm.simulate(
                model, q, v, duration=0.02, rtol=1e-12, atol=1e-14, passive=False, friction=False
            )
        except rm.motion.SimulationError:
            continue  # light links fall into a singular position at once
        assert np.max(exact.residual) <= 1e-12
        assert drift(exact) <= 1e-8
        far = max(1.0, float(np.max(np.abs(exact.v))))
        found = rm.simulate(
            model, q, v, duration=0.02, step=1e-4, method="rk4", passive=False, friction=False
        )
        assert np.max(found.residual) <= 1e-12
        np.testing.assert_allclose(found.q[-1], exact.q[-1], rtol=0, atol=1e-6 * far**4)
