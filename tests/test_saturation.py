"""Motors that give what they can: ``saturate``, and motions under it against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import few
from numpy.typing import NDArray
from rollouts import q_and_v
from scipy.optimize import brentq
from texts import four_bar, joint, link, robot

import robomodel as rm

Array = NDArray[np.float64]
CURVE = '<motor stall_torque="0.3" no_load_speed="200"/>'
ROTOR = '<rotor inertia="1e-4" ratio="10"/>'
LIMITED = '<limit lower="-9" upper="9" effort="{}" velocity="{}"/>'
WHEEL = (
    '<link name="wheel"><inertial><mass value="1"/><inertia ixx="0.02" iyy="0.02" izz="0.03" '
    'ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
METHODS = ("dop853", "rk4", "semi_implicit_euler", "time_stepping")


def wheel(more: str) -> rm.Model:
    kind = "revolute" if "<limit" in more else "continuous"
    return rm.load(robot(WHEEL, joint("j", "base", "wheel", kind=kind, more=more)))


def motors(model: rm.Model, *, effort: float = 2.0, velocity: float = 5.0) -> str:
    """A file that gives each actuator's joint a motor."""
    names = [actuator.name for actuator in model.actuators]
    inner = f'<motor effort="{effort}" velocity="{velocity}"/>'
    return (
        '<robot name="m">' + "".join(f'<joint name="{n}">{inner}</joint>' for n in names)
    ) + "</robot>"


def least_norm(model: rm.Model, q: Array, v: Array, tau: Array) -> Array:
    """The definition: by pseudoinverse, clipped, put back."""
    b = rm.actuator_map(model, q)
    u = np.linalg.pinv(b, rcond=1e-10) @ tau
    given = []
    for actuator, force, rate in zip(model.actuators, u, b.T @ v, strict=True):
        most = actuator.effort_limit
        if actuator.stall_torque is not None and actuator.no_load_speed is not None:
            most = min(most, actuator.stall_torque * max(1 - abs(rate) / actuator.no_load_speed, 0))
        if abs(rate) >= actuator.velocity_limit:
            most = 0.0
        braking = min(actuator.effort_limit, math.inf)
        if actuator.stall_torque is not None:
            braking = min(braking, actuator.stall_torque)
        limit = most if force * rate > 0.0 else braking
        given.append(float(np.clip(force, -limit, limit)))
    result: Array = tau + b @ (np.array(given) - u)
    return result


@pytest.mark.parametrize(
    "name",
    few(["tello", "mini_cheetah", "belt_leg", "mit_humanoid_leg"], "mini_cheetah", "belt_leg"),
)
def test_every_motor_is_clipped_by_itself(name: str) -> None:
    plain = rm.robots.load(name)
    model = rm.load(rm.robots.path(name), extend=motors(plain, effort=1.5, velocity=6.0))
    rng = np.random.default_rng(3)
    q = np.array([model.random_configuration(rng) for _ in range(6)])
    v = rng.standard_normal((6, model.nv))
    tau = 15.0 * rng.standard_normal((6, model.nv))
    given, u, lost = rm.dynamics.saturate(model, q, v, tau)
    b = rm.actuator_map(model, q)
    for n in range(6):
        rates = np.abs(b[n].T @ v[n])
        if np.all((rates < 0.98 * 6.0) | (rates > 6.0)):
            np.testing.assert_allclose(
                given[n], least_norm(model, q[n], v[n], tau[n]), rtol=1e-9, atol=1e-12
            )
    np.testing.assert_allclose(given, tau - np.einsum("bij,bj->bi", b, lost), atol=1e-11)
    assert np.all(np.abs(u) <= 1.5)
    assert np.any(lost != 0.0)
    within, _, none = rm.dynamics.saturate(model, q, np.zeros(model.nv), 1e-3 * tau)
    np.testing.assert_allclose(within, 1e-3 * tau, rtol=1e-12)
    np.testing.assert_array_equal(none, 0.0)
    numpy = rm.dynamics.saturate(model, q, v, tau, backend="numpy")
    for one, other in zip((given, u, lost), numpy, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)
    single = rm.dynamics.saturate(model, q[2], v[2], tau[2])[0]
    np.testing.assert_allclose(single, given[2], rtol=1e-13, atol=1e-13)


def transmitted(*actuators: tuple[str, float]) -> str:
    """Transmissions of one actuator each."""
    return "".join(
        f'<transmission name="t{n}"><type>transmission_interface/SimpleTransmission</type>'
        f'<joint name="{name}"/><actuator name="m{n}"><mechanicalReduction>{k}'
        f'</mechanicalReduction><motor effort="2"/></actuator></transmission>'
        for n, (name, k) in enumerate(actuators)
    )


def test_two_motors_on_one_joint_share_by_least_norm() -> None:
    model = rm.load(
        robot(link("a"), link("b"), joint("j", "base", "a"), joint("free", "a", "b"),
              transmitted(("j", 3.0), ("j", 1.0)))
    )  # fmt: skip
    assert len(model.actuators) == 2
    q = v = np.zeros(2)
    tau = np.array([[4.0, 7.0], [7.0, 7.0], [90.0, 7.0]])
    given, _, _ = rm.dynamics.saturate(model, q, v, tau)
    for row, wanted in zip(given, tau, strict=True):
        np.testing.assert_allclose(row, least_norm(model, q, v, wanted), rtol=1e-12)
    assert given[2, 0] == pytest.approx(8.0)  # 3 · 2 + 1 · 2
    np.testing.assert_array_equal(given[:, 1], 7.0)  # no motor there: it stays


def test_what_no_motor_gives_stays() -> None:
    """A floating base that is pushed, a ball joint with forces of its own."""
    text = robot(
        link("trunk"), link("head"), link("arm"),
        joint("free", "base", "trunk", kind="floating"),
        joint("neck", "trunk", "head", "0.1 0 0.3", kind="spherical"),
        joint("shoulder", "head", "arm", "0 0.2 0", kind="revolute", more=LIMITED.format(3, 5)),
    )  # fmt: skip
    model = rm.load(text)
    tau = np.arange(10.0) + 40.0
    given, u, lost = rm.dynamics.saturate(model, model.neutral(), np.zeros(model.nv), tau)
    np.testing.assert_array_equal(given[:-1], tau[:-1])
    assert (given[-1], u[0], lost[0]) == (3.0, 3.0, tau[-1] - 3.0)
    run = rm.simulate(model, model.neutral(), tau=tau, duration=0.02, step=0.01, saturate=True)
    np.testing.assert_array_equal(run.tau[:, :-1], np.broadcast_to(tau[:-1], (3, 9)))
    np.testing.assert_array_equal(run.tau[:, -1], 3.0)
    assert run.saturated is not None
    np.testing.assert_array_equal(run.saturated, True)


@pytest.mark.parametrize("method", METHODS)
def test_a_motor_reaches_its_no_load_speed_with_its_time_constant(method: str) -> None:
    """I ω' = stall N (1 - N ω / ω₀): ω = ω₀/N (1 - exp(-t/T)), T = I ω₀ / (stall N²)."""
    model = wheel(CURVE + ROTOR)
    inertia = 0.03 + 1e-4 * 100
    constant = inertia * 200 / (0.3 * 100)
    run = rm.simulate(
        model, [0.0], tau=[50.0], duration=3 * constant, step=constant / 250, method=method,
        saturate=True,
    )  # fmt: skip
    exact = 20.0 * (1.0 - np.exp(-run.times / constant))
    error = np.max(np.abs(run.v[:, 0] - exact))
    assert error < {"dop853": 1e-8, "rk4": 1e-8}.get(method, 0.05)
    np.testing.assert_allclose(run.tau[:, 0], 3.0 * (1.0 - run.v[:, 0] / 20.0), atol=1e-10)
    assert run.saturated is not None
    assert run.saturated.shape == (len(run), 1)
    assert np.all(run.saturated)
    power = run.tau[:, 0] * run.v[:, 0]
    work = np.sum(0.5 * (power[1:] + power[:-1]) * np.diff(run.times))
    assert work == pytest.approx(run.kinetic[-1], rel=0.01)


def limited_leg() -> rm.Model:
    limits = motors(rm.robots.load("mit_humanoid_leg"), effort=0.05, velocity=30.0)
    return rm.load(rm.robots.path("mit_humanoid_leg"), extend=limits)


@pytest.mark.slow_cases("rk4")
@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler"])
def test_rollouts_saturate_as_simulations_do(method: str) -> None:
    model, rng = limited_leg(), np.random.default_rng(1)
    q, v = model.random_configuration(rng), 0.3 * rng.standard_normal(model.nv)
    tau = rng.standard_normal((3, 12, model.nv))
    qs, vs = q_and_v(rm.rollout(model, q, v, tau, 1e-3, method=method, saturate=True))
    for n in range(3):
        run = rm.simulate(model, q, v, tau=tau[n], step=1e-3, method=method, saturate=True)
        np.testing.assert_allclose(qs[n], run.q, atol=1e-9)
        np.testing.assert_allclose(vs[n], run.v, rtol=1e-8, atol=1e-8)
        acting = rm.dynamics.saturate(model, run.q[:-1], run.v[:-1], tau[n])[0]
        np.testing.assert_allclose(run.tau[:-1], acting, atol=1e-12)
        assert run.saturated is not None
        assert np.any(run.saturated)


@pytest.mark.parametrize("method", ["semi_implicit_euler", "time_stepping"])
def test_rollouts_move_under_what_motors_give(method: str) -> None:
    """Of methods that look at the beginning of a step only: the same as under these torques."""
    model, rng = limited_leg(), np.random.default_rng(1)
    q, v = model.random_configuration(rng), 0.3 * rng.standard_normal(model.nv)
    tau = rng.standard_normal((3, 12, model.nv))
    qs, vs = q_and_v(rm.rollout(model, q, v, tau, 1e-3, method=method, saturate=True))
    given = rm.dynamics.saturate(model, qs[:, :-1], vs[:, :-1], tau)[0]
    again = rm.rollout(model, q, v, given, 1e-3, method=method)
    np.testing.assert_allclose(again.q, qs, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(again.v, vs, rtol=1e-10, atol=1e-11)
    assert np.max(np.abs(given - tau)) > 0.1


@pytest.mark.parametrize("method", METHODS)
def test_nothing_drives_beyond_the_velocity_limit(method: str) -> None:
    """Without a curve: full force, then held at the limit, against a load that brakes it too."""
    model = wheel(LIMITED.format(2.0, 3.0) + '<dynamics damping="0.2"/>')
    run = rm.simulate(
        model, [-8.0], tau=[9.0], duration=0.2, step=5e-4, method=method, saturate=True
    )
    at_limit = float(brentq(lambda t: 10.0 * (1 - math.exp(-t * 0.2 / 0.03)) - 3.0 * 0.99, 0, 1))
    assert at_limit < 0.06
    early = run.times < at_limit - 1e-3
    np.testing.assert_allclose(run.tau[early, 0], 2.0)
    assert np.max(run.v) <= 3.0
    assert run.v[-1, 0] == pytest.approx(3.0, rel=0.01)
    assert run.tau[-1, 0] == pytest.approx(0.6, rel=0.02)  # what the load takes, 0.2 · 3


def test_braking_stays() -> None:
    model = wheel(LIMITED.format(2.0, 3.0))
    given, _, _ = rm.dynamics.saturate(
        model, [[0.0]] * 3, [[5.0], [5.0], [-5.0]], [[9.0], [-9.0], [9.0]]
    )
    np.testing.assert_array_equal(given[:, 0], [0.0, -2.0, 2.0])
    run = rm.simulate(model, [0.0], [6.0], tau=[-9.0], duration=0.03, step=0.01, saturate=True)
    assert run.v[-1, 0] == pytest.approx(6.0 - 0.03 * 2.0 / 0.03)


@pytest.mark.slow
def test_a_motor_at_a_dead_point_gives_nothing() -> None:
    """Where the crank and the coupler are in line the rocker's motor has no lever on the crank."""
    motor = '<robot name="m"><joint name="j_rocker"><motor effort="2"/></joint></robot>'
    model = rm.load(four_bar(marks=(True, None, None)), extend=motor)
    (actuator,) = model.actuators
    assert actuator.joint == "j_rocker"

    def lever(angle: float) -> float:
        return float(rm.actuator_map(model, model.configuration({"j_crank": angle}))[0, 0])

    turns = np.linspace(0.0, 2 * math.pi, 13)
    levers = [lever(x) for x in turns]
    n = next(i for i in range(12) if levers[i] * levers[i + 1] < 0.0)
    dead = float(brentq(lever, turns[n], turns[n + 1], xtol=1e-14))
    q = model.configuration({"j_crank": dead})
    given, u, lost = rm.dynamics.saturate(model, q, [0.0], [[100.0], [0.0]])
    np.testing.assert_allclose(given, 0.0, atol=1e-9)
    assert abs(u[0, 0]) == 2.0
    assert abs(lost[0, 0]) > 1e6
    q = model.configuration({"j_crank": dead + 0.3})
    given, u, _ = rm.dynamics.saturate(model, q, [0.0], [100.0])
    assert given[0] == pytest.approx(2.0 * abs(lever(dead + 0.3)))
    assert math.isnan(rm.dynamics.saturate(model, q, [0.0], [math.nan], backend="numpy")[0][0])


def test_linkages_saturate_at_their_cranks() -> None:
    model = rm.load(
        four_bar(marks=(True, None, None)).replace(
            '<joint name="j_crank" type="continuous" independent="true">',
            '<joint name="j_crank" type="continuous" independent="true">'
            '<motor stall_torque="4" no_load_speed="30"/>',
        )
    )
    q = model.neutral()
    run = rm.simulate(model, q, tau=[50.0], duration=0.2, step=0.01, saturate=True)
    rate = run.v[:, 0]
    np.testing.assert_allclose(run.tau[:, 0], 4.0 * (1.0 - np.maximum(rate, 0.0) / 30.0))
    assert np.all(run.tau[:, 0] <= 4.0)


def test_without_motors_nothing_is_lost() -> None:
    bare = rm.load(four_bar())
    given, u, lost = rm.dynamics.saturate(bare, bare.neutral(), [1.0], [5.0])
    assert (given[0], u.shape, lost.shape) == (5.0, (0,), (0,))


def test_unless_asked_nothing_saturates() -> None:
    plain = rm.simulate(wheel(CURVE), [0.0], tau=[1.0], duration=0.01)
    assert plain.saturated is None
