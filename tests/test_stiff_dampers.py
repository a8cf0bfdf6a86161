"""Stiff dampers and springs hold at any step, and energy goes where dampers take it."""

from __future__ import annotations

import numpy as np
import pytest
from cases import few
from test_passive import ROBOTS, spring, sprung, states
from texts import joint, link, robot

import robomodel as rm
from robomodel.motion import implicit


def damped(damping: float, stiffness: float = 3.0) -> rm.Model:
    """A double pendulum, damped at its first joint."""
    return rm.load(
        robot(
            link("a"), link("b"),
            joint("j", "base", "a", axis="0 1 0", more=sprung(damping, stiffness)),
            joint("k", "a", "b", "0.3 0 0", axis="0 1 0"),
        )
    )  # fmt: skip


@pytest.mark.parametrize(("attributes", "faster"), [('damping="2"', 0), ('stiffness="30"', 1)])
def test_a_spring_or_a_damper_alone_acts(attributes: str, faster: int) -> None:
    """Dampers give a rate of decay, springs one of swinging."""
    cord = spring("cord", ("base", "0.2 0 -1"), ("a", "0.3 0 0"), attributes)
    model = rm.load(robot(link("a"), joint("j", "base", "a", axis="0 1 0"), cord))
    rates = implicit.rates(model, np.array([0.4]))
    assert rates[faster] > 0.0
    assert rates[1 - faster] == 0.0


START, SPEED = np.array([0.3, 0.2]), np.array([0.0, 1.0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damping", "stiffness"), few([(1e3, 3.0), (1e6, 3.0), (1e4, 1e9)], (1e3, 3.0), (1e6, 3.0))
)
@pytest.mark.parametrize("method", [None, "semi_implicit_euler", "time_stepping", "radau"])
def test_stiff_in_long_steps(method, damping: float, stiffness: float) -> None:
    model = damped(damping, stiffness)
    start = START if stiffness < 1e3 else np.array([0.0, 0.2])
    fine = rm.simulate(model, start, SPEED, duration=0.3, method="radau", rtol=1e-9)
    options = {} if method in (None, "radau") else {"step": 5e-3}
    motion = rm.simulate(model, start, SPEED, duration=0.3, method=method, **options)
    np.testing.assert_allclose(motion.q[-1], fine.q[-1], atol=0.02)
    if method != "radau":
        q = rm.rollout(model, start, SPEED, np.zeros((60, 2)), 5e-3, method=method).q
        np.testing.assert_allclose(q[-1], fine.q[-1], atol=0.02)


@pytest.mark.slow
def test_the_default_of_a_rollout() -> None:
    """Runge and Kutta's where that holds, else what does; a given method is kept to."""
    tau = np.zeros((20, 2))
    for damping, taken in ((0.1, "rk4"), (1e3, "semi_implicit_euler")):
        model = damped(damping)
        usual = rm.rollout(model, START, SPEED, tau, 5e-3).q
        np.testing.assert_array_equal(
            usual, rm.rollout(model, START, SPEED, tau, 5e-3, method=taken).q
        )
        loose = rm.rollout(model, START, SPEED, tau, 5e-3, passive=False).q
        bare = rm.rollout(damped(0.0, 0.0), START, SPEED, tau, 5e-3, method="rk4").q
        np.testing.assert_array_equal(loose, bare)
    model = damped(1e3)
    with pytest.warns(RuntimeWarning, match="'rk4' is unstable with steps of 0.005 s"):
        q = rm.rollout(model, START, SPEED, np.zeros((100, 2)), 5e-3, method="rk4").q
    assert not np.isfinite(q[-1]).all()
    with (
        pytest.raises(rm.motion.SimulationError),
        pytest.warns(RuntimeWarning, match="'rk4' is unstable"),
    ):
        rm.simulate(model, START, SPEED, duration=0.5, method="rk4", step=5e-3)


def test_rates() -> None:
    """The largest eigenvalues of M⁻¹ D and M⁻¹ K."""
    model = damped(7.0, 90.0)
    inverse = rm.mass_inverse(model, START)
    decay, swing = implicit.rates(model, START)
    assert decay == pytest.approx(7.0 * inverse[0, 0])
    assert swing == pytest.approx(np.sqrt(90.0 * inverse[0, 0]))
    assert implicit.rates(damped(0.0, 0.0), START) == (0.0, 0.0)


@pytest.mark.parametrize("name", list(ROBOTS))
def test_semi_implicit_euler_solves_its_equations(name: str) -> None:
    """(M + h D + h² K) a = tau - c + p - h K v, D and K from the forces themselves."""
    model = rm.load(ROBOTS[name])
    q, v = (x[0] for x in states(model, 1))
    h, tau = 0.01, np.ones(model.nv)
    drag = -np.array(
        [
            rm.passive_force(model, q, e) - rm.passive_force(model, q, 0 * v)
            for e in np.eye(model.nv)
        ]
    )

    def acceleration(step: float) -> np.ndarray:
        arguments = (x.tolist() for x in (q, v, tau))
        return np.array(implicit.acceleration(model, *arguments, step))

    a = acceleration(h)
    force = rm.passive_force(model, q, v) + tau - rm.bias_force(model, q, v)
    left = rm.crba(model, q) @ a + h * drag @ a - force
    # what is left is -h² K a / 4
    b = acceleration(1e-9)
    np.testing.assert_allclose(rm.aba(model, q, v, tau, passive=True), b, rtol=1e-5, atol=1e-5)
    assert left @ a <= 1e-9 * np.abs(force @ a)  # springs resist it


ORDERS = {"rk4": 4, "semi_implicit_euler": 1, "time_stepping": 1}


@pytest.mark.slow_cases("radau", "dop853")
@pytest.mark.parametrize("method", [*ORDERS, "dop853", "radau"])
def test_energy_goes_into_dampers(method: str) -> None:
    """E(T) - E(0) = -∫ v' D v dt, to the method's order."""
    model = rm.load(ROBOTS["linkage"])
    q = model.neutral()

    def lost(**options: float) -> float:
        motion = rm.simulate(model, q, [2.0], duration=0.4, method=method, **options)
        times = np.linspace(0.0, 0.4, 4001)
        if method in ORDERS:
            times = motion.times
            at, v = motion.q, motion.v
        else:
            at, v = (np.array(x) for x in zip(*map(motion.at, times), strict=True))
        drag = rm.passive_force(model, at, 0.0 * v) - rm.passive_force(model, at, v)
        power = np.sum(drag * v, axis=-1)
        h = times[1] - times[0]
        taken = h / 3 * (power[0] + power[-1] + 4 * power[1:-1:2].sum() + 2 * power[2:-1:2].sum())
        return abs(motion.energy[-1] - motion.energy[0] + taken)

    if method not in ORDERS:
        assert lost(rtol=1e-11) < 1e-9
        return
    errors = [lost(step=0.4 / n) for n in (100, 200)]
    assert errors[1] < errors[0]
    order = np.log2(errors[0] / errors[1])
    assert order > ORDERS[method] - 0.3, errors


@pytest.mark.slow
def test_explicit_methods_follow_dampers_as_the_page_says() -> None:
    """docs/simulation.md: 2.8 for "rk4", six time constants a step for "dop853", the defaults."""

    def wheel(rate: float) -> rm.Model:
        more = f'<dynamics damping="{rate}" friction="0"/>'
        return rm.load(robot(link("w"), joint("j", "base", "w", more=more)))

    inertia = float(rm.crba(wheel(1.0), [0.0])[0, 0])
    for product, held in ((2.7, True), (2.85, False)):
        model = wheel(product / 0.01 * inertia)
        fixed = rm.simulate(model, [0.0], [1.0], duration=2.0, method="rk4", step=0.01)
        assert (abs(float(fixed.v[-1, 0])) < 1.0) == held
    model = wheel(100.0 * inertia)
    adapted = rm.simulate(model, [0.0], [1.0], tau=[1.0], duration=20.0, method="dop853")
    assert 5.5 < 100.0 * 20.0 / len(adapted.times) < 6.5
    for rate, method in ((1e3, "dop853"), (1.01 * implicit.STIFF, "radau")):
        assert rm.simulate(wheel(rate * inertia), [0.0], [1.0], duration=1.0).method == method
    assert implicit.STIFF == 1e5
    for step, same in ((0.0199, True), (0.0201, False)):
        start = [0.0], [1.0], np.zeros((20, 1)), step
        usual, rk4 = rm.rollout(model, *start).v, rm.rollout(model, *start, method="rk4").v
        assert np.array_equal(usual, rk4) == same
