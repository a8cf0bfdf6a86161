"""Many robots at once: beside rollouts, to the bit; resets, saved states, loops, sensors."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from cases import few
from rollouts import q_and_v
from simulation_mechanisms import tumbling
from test_rollout import crossing
from texts import joint, link, robot

import robomodel as rm
from robomodel.kernels.program import Dtype
from robomodel.motion.rollout import Method

Array = np.ndarray
BOB = (
    '<inertial><origin xyz="0 0 -0.4"/><mass value="1"/>'
    '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>'
)


def standing() -> tuple[rm.Model, dict[str, Any]]:
    """Mini Cheetah above the ground, on the ends of its shanks."""
    model = rm.robots.load("mini_cheetah")
    feet = [(name, (0.0, 0.0, -0.18)) for name in model.frame_index if "knee_link" in name]
    return model, {"ground": rm.Ground(height=-0.33), "contacts": feet}


def ball() -> rm.Model:
    """A body on a ball joint."""
    return rm.load(robot(link("bob", BOB),
                         joint("hold", "base", "bob", kind="spherical")))  # fmt: skip


CASES: dict[str, Any] = {
    "floating": (lambda: (tumbling()[0], {}), "rk4"),
    "loops": (lambda: (rm.robots.load("parallel_ankle"), {}), "time_stepping"),
    "ball": (lambda: (ball(), {}), "semi_implicit_euler"),
    "feet": (standing, "time_stepping"),
}


def states(model: rm.Model, n: int) -> tuple[Array, Array]:
    """Seeded states of n robots."""
    rng = np.random.default_rng(3)
    v = 0.3 * rng.standard_normal((n, model.nv))
    moved = np.array([model.integrate(model.neutral(), 0.05 * x) for x in v])
    return moved, v


@pytest.mark.slow_cases("loops-11")
@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.slow), 11])
@pytest.mark.parametrize("case", few(list(CASES), "loops", "ball"))
def test_steps_are_those_of_a_rollout(case: str, n: int) -> None:
    make, method = CASES[case]
    model, options = make()
    q, v = states(model, n)
    tau = np.random.default_rng(1).standard_normal((n, 12, model.nv))
    options |= {"method": method, "friction": method == "time_stepping"}
    sim = rm.Simulation(model, n, step=2e-3, substeps=3, threads=2, **options)
    first = sim.q, sim.v, sim.time, sim.contact_forces
    sim.reset(q=q, v=v)
    held = np.repeat(tau[:, ::3], 3, axis=1)
    expected = rm.rollout(model, q, v, held, 2e-3, **options)
    for k in range(4):
        sim.step(tau[:, 3 * k])
        np.testing.assert_array_equal(sim.q, expected.q[:, 3 * k + 3])
        np.testing.assert_array_equal(sim.v, expected.v[:, 3 * k + 3])
        mean = np.mean(expected.contact_forces[:, 3 * k : 3 * k + 3], axis=1)
        np.testing.assert_allclose(sim.contact_forces, mean, rtol=1e-12, atol=1e-12)
    assert all(
        x is y for x, y in zip((sim.q, sim.v, sim.time, sim.contact_forces), first, strict=True)
    )
    np.testing.assert_allclose(sim.time, 24e-3, rtol=1e-15)
    alone = rm.simulate(model, q[0], v[0], tau=held[0], step=2e-3, **options)
    np.testing.assert_array_equal(sim.q[0], alone.q[-1])


@pytest.mark.parametrize("method", ["rk4", "time_stepping"])
def test_single_steps_past_a_change_point(method: str) -> None:
    """One step a call, slowly: as one call of all of them, and saved while it is led over."""
    model, q, v = crossing()
    tau = 1e-3 * np.random.default_rng(1).standard_normal((60, 2))
    options: dict[str, Any] = {"method": method, "friction": False}
    expected_q, expected_v = q_and_v(rm.rollout(model, q, 0.2 * v, tau, 1e-3, **options))
    sim = rm.Simulation(model, 2, **options)
    sim.reset(1, q=q, v=0.2 * v)
    other = rm.Simulation(model, 2, **options)
    for k, force in enumerate(tau):
        if k == 24:
            other.restore(pickle.loads(pickle.dumps(sim.save())))
        for each in (sim, other)[: 1 + (k >= 24)]:
            each.step(np.array([[0.0, 0.0], force]))
            np.testing.assert_array_equal(each.q[1], expected_q[k + 1])
            np.testing.assert_array_equal(each.v[1], expected_v[k + 1])


@pytest.mark.slow
def test_resets() -> None:
    model, options = standing()
    sim = rm.Simulation(model, 4, **options)
    np.testing.assert_array_equal(sim.q, np.tile(model.neutral(), (4, 1)))
    q, v = states(model, 4)
    sim.reset(q=q, v=v)
    for _ in range(3):
        sim.step()
    before = sim.save()
    kept = sim.q.copy(), sim.v.copy(), sim.time.copy()
    for arguments, message in (
        ({"q": q[:3]}, "one row for each of 4"),
        ({"q": q[0] * 1.01}, "length 1.01"),
        ({"rows": [0, 1], "v": np.full(model.nv, np.nan)}, "finite"),
        ({"rows": [4]}, "from 0 to 3"),
        ({"rows": [0.5]}, "numbers, a mask"),
        ({"rows": [True, False]}, "mask"),
        ({"q": q[0, :-1]}, "nq"),
    ):
        with pytest.raises(ValueError, match=message):
            sim.reset(**arguments)
    for x, y in zip(kept, (sim.q, sim.v, sim.time), strict=True):
        np.testing.assert_array_equal(x, y)
    sim.reset([False, True, False, True], q=q[2], v=v[[0, 1]])
    np.testing.assert_array_equal(sim.q[[1, 3]], q[[2, 2]])
    np.testing.assert_array_equal(sim.v[[1, 3]], v[:2])
    np.testing.assert_array_equal(sim.q[[0, 2]], kept[0][[0, 2]])
    np.testing.assert_array_equal(sim.time, [kept[2][0], 0.0, kept[2][2], 0.0])
    sim.step()
    moved = sim.q.copy()
    sim.restore(before)
    np.testing.assert_array_equal(sim.q, kept[0])
    sim.reset(slice(0, 0))
    sim.reset([1, -1], q=q[2], v=v[[0, 1]])
    sim.step()
    np.testing.assert_array_equal(sim.q, moved)
    with pytest.raises(ValueError, match="not of such a simulation"):
        rm.Simulation(model, 5, **options).restore(before)


def test_open_loops_are_refused() -> None:
    model = rm.robots.load("parallel_ankle")
    sim = rm.Simulation(model, 2)
    q = model.neutral()
    q[-1] += 0.1
    with pytest.raises(ValueError, match="loops"):
        sim.reset(q=q)
    np.testing.assert_array_equal(sim.q[0], model.neutral())


def test_robots_that_fail_are_told_once_and_can_be_reset() -> None:
    model = ball()
    sim = rm.Simulation(model, 3, method="rk4")
    force = np.zeros((3, 3))
    force[1] = np.inf
    with pytest.warns(RuntimeWarning, match="1 of 3 robots.*rows 1;"):
        sim.step(force)
    assert np.isnan([*sim.q[1], *sim.v[1]]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.step()
        sim.reset(1)
        sim.step()
    assert np.all(np.isfinite(sim.q))
    np.testing.assert_allclose(sim.time, [3e-3, 1e-3, 3e-3])


@pytest.mark.slow_cases("motors-semi_implicit_euler", "joints-semi_implicit_euler")
@pytest.mark.parametrize(
    "method", few(["rk4", "semi_implicit_euler", "time_stepping"], "semi_implicit_euler")
)
@pytest.mark.parametrize("where", ["joints", "motors"])
def test_loops_inside_the_kernel(method: str, where: str) -> None:
    """As a controller of simulate does; motors' limits hold."""
    model, rng = rm.robots.load("mini_cheetah"), np.random.default_rng(0)
    size = model.nv if where == "joints" else len(model.actuators)
    q, v = states(model, 2)
    target = 0.1 * rng.standard_normal((2, size))
    tau = rng.standard_normal(model.nv)
    free = 6 if where == "joints" else 0
    kp, kd = (np.full(size, x if where == "joints" else x / 36.0) for x in (40.0, 1.0))
    kp[:free] = kd[:free] = 0.0
    options: dict[str, Any] = {"saturate": True, "method": method, "friction": False}
    pd = (kp, kd, target, where)
    sim = rm.Simulation(model, 2, substeps=20, pd=pd, **options)
    sim.reset(q=q, v=v)
    assert sim.targets.shape == (2, size)
    sim.targets[:] = target
    sim.step(tau)

    def control(_t: float, at: Array, rates: Array) -> Array:
        if where == "joints":
            position = np.concatenate([np.zeros(6), at[7:]])
            return tau + kp * (target[1] - position) - kd * rates
        wanted = kp * (target[1] - rm.actuator_positions(model, at))
        wanted = wanted - kd * rm.actuator_velocities(model, at, rates)
        return np.asarray(tau + rm.actuator_map(model, at) @ wanted)

    alone = rm.simulate(model, q[1], v[1], tau=control, duration=0.02, step=1e-3, **options)
    np.testing.assert_allclose(sim.q[1], alone.q[-1], rtol=0, atol=1e-11)
    np.testing.assert_allclose(sim.v[1], alone.v[-1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler", "time_stepping"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_motors_follow_their_curves_in_every_substep(method: Method, dtype: Dtype) -> None:
    """I ω' = stall (1 - ω/ω₀) with T = I ω₀/stall: ω = ω₀ (1 - exp(-t/T)), in x = h/T by steps."""
    curve = '<motor stall_torque="3" no_load_speed="20"/>'
    wheel = BOB.replace("0 0 -0.4", "0 0 0")
    model = rm.load(robot(link("wheel", wheel), joint("j", "base", "wheel", more=curve)))
    step, inertia = 2e-3, 0.1
    x = step * 3.0 / (20.0 * inertia)
    left = 1.0 - x if method != "rk4" else 1.0 - x + x**2 / 2 - x**3 / 6 + x**4 / 24
    options: dict[str, Any] = {"method": method, "saturate": True, "dtype": dtype}
    calls, single = (rm.Simulation(model, 2, step=step, substeps=n, **options) for n in (50, 1))
    for k in range(1, 5):
        calls.step([50.0])
        for _ in range(50):
            single.step([50.0])
        np.testing.assert_array_equal(calls.q, single.q)
        np.testing.assert_array_equal(calls.v, single.v)
        steps = 20.0 * (1.0 - left ** (50 * k))
        np.testing.assert_allclose(calls.v, steps, rtol=1e-12 if dtype == "float64" else 1e-5)
        exact = 20.0 * (1.0 - np.exp(-calls.time * 3.0 / (20.0 * inertia)))
        away = 1e-5 if method == "rk4" else 0.02
        np.testing.assert_allclose(calls.v[:, 0], exact, rtol=away)
    assert calls.v[0, 0] > 0.4 * 20.0


@pytest.mark.slow
def test_single_precision() -> None:
    model, options = standing()
    q, v = states(model, 8)
    double, single = (rm.Simulation(model, 8, substeps=10, dtype=x, **options)
                      for x in ("float64", "float32"))  # fmt: skip
    for sim in (double, single):
        sim.reset(q=q, v=v)
        sim.step()
    assert single.q.dtype == single.v.dtype == np.float32
    np.testing.assert_allclose(single.q, double.q, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_contacts_that_slide_in_single_precision() -> None:
    """The sweeps solve them as in double precision: no contact stays where it stood before."""
    model, options = standing()
    rng = np.random.default_rng(0)
    kp = np.where(np.arange(model.nv) < 6, 0.0, 40.0)
    pd = kp, 0.02 * kp, np.zeros(model.nv)
    sim = rm.Simulation(model, 64, substeps=10, pd=pd, dtype="float32", **options)
    for _ in range(15):
        sim.targets[:, 6:] = 0.3 * rng.standard_normal((64, 12))
        sim.step()
        assert np.all(sim.contact_residual < 1e-5)
    assert np.count_nonzero(sim.contact_forces[:, :, 2] > 1.0) > 32


@pytest.mark.filterwarnings("ignore:contacts of")
@pytest.mark.parametrize("dtype", few(["float64", "float32"]))
def test_heights(dtype: str) -> None:
    """On heights that are level, as on a plane; float32 has sweeps alone for two planes a point."""
    model, options = standing()
    pd = 1.0, 0.1, np.zeros(model.nv)
    level = rm.Ground(height=np.full((3, 3), -0.33), spacing=1.0, origin=(-1.0, -1.0))
    q, v = states(model, 4)
    sims = []
    for ground in (options["ground"], level):
        sim = rm.Simulation(
            model, 4, substeps=8, pd=pd, dtype=dtype, ground=ground, contacts=options["contacts"]
        )
        sim.reset(q=q, v=v)
        sim.step()
        sims.append(sim)
    away = 1e-9 if dtype == "float64" else 5e-3
    np.testing.assert_allclose(sims[1].q, sims[0].q, rtol=0, atol=away)
    assert sims[1].contact_forces[:, :, 2].max() > 1.0


def test_other_libraries_share_the_arrays() -> None:
    """By DLPack, without copies: at lines of the cache, where JAX asks for them."""
    model, options = standing()
    sim = rm.Simulation(model, 3, dtype="float32", **options)
    for array in (sim.q, sim.v, sim.time, sim.contact_forces, sim.contact_residual):
        assert array.ctypes.data % 64 == 0
        assert array.flags.c_contiguous
        assert np.shares_memory(np.from_dlpack(array), array)
    jax = pytest.importorskip("jax")
    assert jax.numpy.from_dlpack(sim.q).unsafe_buffer_pointer() == sim.q.ctypes.data


@pytest.mark.slow
def test_states_are_read_only() -> None:
    """What would be lost at the next step is refused; results of them are plain arrays."""
    model, options = standing()
    sim = rm.Simulation(model, 3, **options)
    kept = sim.q
    for array in (sim.q, sim.v, sim.time, sim.contact_forces, sim.contact_residual):
        assert not array.flags.writeable
        with pytest.raises(ValueError, match=r"read-only; reset\(rows, q=, v=\)"):
            array[0] = 0.0
        with pytest.raises(ValueError, match="read-only"):
            np.copyto(array, 1.0)
        array.copy()[0] = 0.0
        assert type(array + 1.0) is np.ndarray
        assert type(array.max()) is np.float64
    with pytest.raises(ValueError, match="read-only"):
        sim.q[1][2] = np.nan
    sim.step()
    assert sim.q is kept
    sim.reset([1], q=model.neutral())
    np.testing.assert_array_equal(sim.q[1], model.neutral())


def test_a_step_makes_no_large_arrays() -> None:
    model = rm.robots.load("planar_leg_linkage")
    sim = rm.Simulation(model, 2048)
    sim.step()
    tracemalloc.start()
    sim.step()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    sim.step()
    most = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert most < 0.6 * sim.q.nbytes


def test_sensors() -> None:
    """Joints, motors, frames, an accelerometer at rest and in free fall."""
    model, options = standing()
    sim = rm.Simulation(model, 2, substeps=2, **options)
    base = "Floating Base"
    _, accelerometer = sim.imu(base)
    np.testing.assert_allclose(accelerometer, [[0.0, 0.0, 9.81]] * 2, atol=1e-12)
    q, v = states(model, 2)
    sim.reset(q=q + np.eye(19)[2], v=v)
    sim.step()
    gyroscope, _ = sim.imu(base)
    np.testing.assert_allclose(gyroscope, sim.v[:, :3], rtol=1e-12, atol=1e-12)
    positions, rates = sim.joints()
    spanning = np.einsum("nij,nj->ni", model.constraint_jacobian(sim.q), sim.v)
    np.testing.assert_allclose(rates, spanning, rtol=1e-12, atol=1e-12)
    assert positions.shape == (2, model.n_joint_velocities + 1)
    np.testing.assert_array_equal(sim.motors()[0], rm.actuator_positions(model, sim.q))
    np.testing.assert_array_equal(sim.frame(base), rm.frame_pose(model, sim.q, base))
    falling = ball()  # its centre of mass below the joint: at the joint it feels its weight
    still = rm.Simulation(falling, 1)
    for _ in range(5):
        still.step()
    np.testing.assert_allclose(still.imu("bob")[1], [[0.0, 0.0, 9.81]], atol=1e-9)


@pytest.mark.slow
def test_stops_and_standing_forces() -> None:
    """Mini Cheetah held by its loops comes to rest on its feet, which bear its weight."""
    model, options = standing()
    kp, kd = np.full(model.nv, 60.0), np.full(model.nv, 2.0)
    kp[:6] = kd[:6] = 0.0
    sim = rm.Simulation(model, 2, substeps=50, pd=(kp, kd, np.zeros(model.nv)), **options)
    for _ in range(30):
        sim.step()
    total = np.sum(sim.contact_forces, axis=1)
    mass = float(rm.crba(model, model.neutral())[5, 5])
    np.testing.assert_allclose(total, [[0.0, 0.0, 9.81 * mass]] * 2, rtol=0, atol=0.02 * mass)


def test_refused_forces_move_nothing() -> None:
    sim = rm.Simulation(ball(), 2)
    with pytest.raises(ValueError, match=r"tau must be \(nv,\)"):
        sim.step(np.zeros((3, 3)))
    assert np.all(sim.time == 0.0)
