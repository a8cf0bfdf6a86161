"""Dynamics against an independent oracle: Pinocchio's spanning tree, projected or in a KKT."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import relative
from cases import few
from hypothesis import assume, given, settings
from mechanisms import KINDS, Mechanism, mechanisms, random_mechanism
from numpy.typing import NDArray
from oracle import Oracle
from random_models import load
from shipped_robots import LARGE, ROBOTS

import robomodel as rm

Array = NDArray[np.float64]
TIGHT = 1e-11
STATES = 100


def named(model: rm.Model, q: Array) -> dict[str, Array]:
    """All joint positions, a floating base's included."""
    positions = dict(model.joint_positions(q))
    if model.floating_base is not None:
        positions[model.floating_base] = q[:7]
    return positions


def compare(
    model: rm.Model, oracle: Oracle, q: Array, rng: np.random.Generator, f_ext: dict | None = None
) -> None:
    """tau, M and a of one closed state; K G = 0, K g = k with the oracle's K and k."""
    oracle.names = list(model.joint_names)
    v, a = rng.standard_normal((2, model.nv))
    tau = rng.standard_normal(model.nv)
    at = oracle.state(named(model, q))
    g_matrix, g = model.constraint_jacobian(q), model.constraint_bias(q, v)
    qd = g_matrix @ v
    phi, k_matrix, k = oracle.constraint(at, qd)
    assert np.max(np.abs(phi), initial=0.0) < 1e-10
    assert relative(k_matrix @ g_matrix, 0 * k_matrix @ g_matrix, k_matrix, g_matrix) < TIGHT
    assert relative(k_matrix @ g, k, g, np.ones(1)) < TIGHT

    inertia = oracle.mass_matrix(at)
    bias = oracle.bias(at, qd, f_ext)
    forces = np.append(bias, inertia @ g)  # what tau is made of, should it cancel
    forces = np.append(forces, np.max(inertia))
    mass = g_matrix.T @ inertia @ g_matrix
    expected = g_matrix.T @ (inertia @ (g_matrix @ a + g) + bias)
    found = rm.rnea(model, q, v, a, f_ext=f_ext, backend="numpy")
    assert relative(found, expected, forces) < TIGHT
    assert relative(rm.crba(model, q, backend="numpy"), mass) < TIGHT
    assert (
        relative(
            rm.bias_force(model, q, v, f_ext=f_ext, backend="numpy"),
            g_matrix.T @ (inertia @ g + bias),
            forces,
        )
        < TIGHT
    )

    # forward dynamics: the accelerations, up to what the mass matrix does to rounding, and the
    # forces that they leave unbalanced, which no conditioning excuses
    moved = rm.aba(model, q, v, tau, f_ext=f_ext, backend="numpy")
    projected = np.linalg.solve(mass, tau - g_matrix.T @ (inertia @ g + bias))
    condition = float(np.linalg.cond(mass))
    assert relative(moved, projected) < max(TIGHT, 1e-15 * condition)
    left = mass @ (moved - projected)
    assert relative(left, 0 * left, mass * np.abs(moved), forces) < TIGHT
    with_multipliers = oracle.forward(at, qd, np.linalg.pinv(g_matrix.T) @ tau, f_ext)
    assert relative(g_matrix @ moved + g, with_multipliers) < max(TIGHT, 1e-14 * condition)
    assert relative(rm.aba(model, q, v, found, f_ext=f_ext, backend="numpy"), a, projected) < max(
        TIGHT, 1e-15 * condition
    )


def against_the_oracle(name: str, count: int) -> None:
    model = rm.robots.load(name)
    oracle = Oracle(rm.robots.path(name).read_text())
    rng = np.random.default_rng(7)
    for _ in range(count):
        compare(model, oracle, model.random_configuration(rng), rng)


@pytest.mark.parametrize("name", few(rm.robots.names(), *(set(rm.robots.names()) - {*LARGE})))
def test_shipped_robots_agree_with_the_oracle(name: str) -> None:
    against_the_oracle(name, 4)


@pytest.mark.slow
@pytest.mark.parametrize("name", rm.robots.names())
def test_many_states_agree_with_the_oracle(name: str) -> None:
    against_the_oracle(name, STATES // 10 if name in LARGE else STATES)


def check(mechanism: Mechanism, rng: np.random.Generator) -> bool:
    """Compare at the known configuration, a random one and one near by; False if nothing moves."""
    loaded = load(mechanism)
    if loaded is None:
        return False
    model, q = loaded
    assert model.nv == mechanism.mobility
    oracle = mechanism.oracle(list(model.joint_names))
    compare(model, oracle, q, rng, mechanism.f_ext)
    compare(model, oracle, model.random_configuration(rng), rng, mechanism.f_ext)
    compare(model, oracle, model.random_configuration(rng, near=q), rng)
    return True


@pytest.mark.slow_cases("rod")
@pytest.mark.parametrize("kind", few([*KINDS, "tether"], "belt", "rod"))
def test_every_kind_of_mechanism(kind: str) -> None:
    checked = 0
    for seed in range(10):
        rng = np.random.default_rng([seed, KINDS.index(kind) if kind in KINDS else 99])
        checked += check(random_mechanism(rng, [kind]), rng)
        if checked == 3:
            return
    pytest.fail(f"only {checked} mechanisms of this kind move")


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(mechanisms())
def test_random_mechanisms(mechanism: Mechanism) -> None:
    assume(check(mechanism, np.random.default_rng(1)))


@pytest.mark.tables
@settings(max_examples=25, deadline=None)
@given(mechanisms())
def test_many_random_mechanisms(mechanism: Mechanism) -> None:
    assume(check(mechanism, np.random.default_rng(2)))


@pytest.fixture(params=ROBOTS, scope="module")
def robot(request: pytest.FixtureRequest) -> rm.Model:
    return rm.robots.load(request.param)


def states(model: rm.Model, count: int = 6) -> tuple[Array, Array]:
    rng = np.random.default_rng(11)
    q = np.array([model.random_configuration(rng, base_pose="random") for _ in range(count)])
    return q, rng.standard_normal((count, model.nv))


def test_forward_inverts_inverse(robot: rm.Model) -> None:
    q, v = states(robot)
    a = np.random.default_rng(3).standard_normal(v.shape)
    tau = rm.rnea(robot, q, v, a)
    assert relative(rm.aba(robot, q, v, tau), a) < 1e-10
    assert (
        relative(np.einsum("nij,nj->ni", rm.crba(robot, q), a) + rm.bias_force(robot, q, v), tau)
        < TIGHT
    )


def test_power_balance(robot: rm.Model) -> None:
    """Power in = rate of energy, by differencing the energy along the motion that aba predicts."""
    q, v = states(robot, 3)
    tau = np.random.default_rng(4).standard_normal(v.shape)
    a = rm.aba(robot, q, v, tau)
    h = 1e-4

    def energy(t: float) -> Array:
        kinetic, potential = rm.energy(robot, robot.integrate(q, v * t + a * t * t / 2), v + a * t)
        return kinetic + potential

    rate = (8 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12 * h)
    assert relative(rate, np.sum(tau * v, axis=1), np.abs(rm.energy(robot, q, v)[0])) < 1e-7


def test_kinetic_energy_is_of_the_mass_matrix(robot: rm.Model) -> None:
    q, v = states(robot)
    kinetic = np.einsum("ni,nij,nj->n", v, rm.crba(robot, q), v) / 2
    assert relative(rm.energy(robot, q, v)[0], kinetic) < 1e-13


@pytest.mark.slow_cases("mini_cheetah")
@pytest.mark.parametrize("name", ROBOTS)
def test_frames_energy_and_momentum_agree_with_the_oracle(name: str) -> None:
    model = rm.robots.load(name)
    oracle = Oracle(rm.robots.path(name).read_text(), names=list(model.joint_names))
    q, v = states(model, 3)
    for q_i, v_i in zip(q, v, strict=True):
        at = oracle.state(named(model, q_i))
        g_matrix = model.constraint_jacobian(q_i)
        qd = g_matrix @ v_i
        for frame in model.frames:
            for place in (frame.name, (frame.name, (0.1, -0.2, 0.3))):
                j = rm.jacobian(model, q_i, place, backend="numpy")
                assert relative(j, oracle.frame_jacobian(at, place) @ g_matrix, np.ones(1)) < 1e-12
                speed = rm.frame_velocity(model, q_i, v_i, place, backend="numpy")
                assert relative(speed, j @ v_i, np.ones(1)) < 1e-12
                pose = rm.frame_pose(model, q_i, place, backend="numpy")
                assert relative(pose, oracle.frame_pose(at, place)) < 1e-12
        kinetic, potential = rm.energy(model, q_i, v_i)
        expected = oracle.energy(at, qd, with_root=False)
        assert kinetic == pytest.approx(expected[0], rel=1e-12)
        assert potential == pytest.approx(expected[1], rel=1e-12, abs=1e-12)
        com = oracle.center_of_mass(at, with_root=False)
        assert relative(rm.center_of_mass(model, q_i), com, np.ones(1)) < 1e-13
        momentum = oracle.centroidal_momentum(at, qd, with_root=False)
        assert (
            relative(rm.dynamics.centroidal_momentum(model, q_i, v_i), momentum, np.ones(1)) < 1e-12
        )
    assert model.mass == pytest.approx(oracle.mass(with_root=False), rel=1e-14)


def test_a_batch_is_its_states_one_by_one(robot: rm.Model) -> None:
    q, v = states(robot, 4)
    a = v[::-1].copy()
    q2, v2, a2 = q.reshape(2, 2, -1), v.reshape(2, 2, -1), a.reshape(2, 2, -1)
    together = rm.rnea(robot, q2, v2, a2)
    assert together.shape == (2, 2, robot.nv)
    for i in range(4):
        alone = rm.rnea(robot, q[i], v[i], a[i])
        assert alone.shape == (robot.nv,)
        np.testing.assert_allclose(together.reshape(4, -1)[i], alone, rtol=1e-13, atol=1e-13)
    # one configuration with many velocities broadcasts
    spread = rm.aba(robot, q[0], v, a)
    np.testing.assert_allclose(spread[2], rm.aba(robot, q[0], v[2], a[2]), rtol=1e-12, atol=1e-12)
    assert rm.crba(robot, q2).shape == (2, 2, robot.nv, robot.nv)
    assert rm.energy(robot, q2, v2)[0].shape == (2, 2)


@pytest.mark.slow_cases("mini_cheetah-9")
@pytest.mark.parametrize("every", few([1, 9], 9))
def test_external_forces_act_through_jacobians(robot: rm.Model, every: int) -> None:
    """f_ext on links, spinning rotors and fixed links included, is Jᵀ f."""
    q, v = states(robot, 2)
    rng = np.random.default_rng(5)
    f_ext = {frame.name: rng.standard_normal((2, 6)) for frame in robot.frames[-1::-every]}
    zero = np.zeros_like(v)
    work = sum(np.einsum("nij,ni->nj", rm.jacobian(robot, q, name), f) for name, f in f_ext.items())
    without = rm.rnea(robot, q, v, zero)
    assert relative(rm.rnea(robot, q, v, zero, f_ext=f_ext), without - work) < TIGHT
    assert relative(rm.aba(robot, q, v, without - work, f_ext=f_ext), zero, np.ones(1)) < 1e-9


@pytest.mark.slow
def test_gravity_is_settable() -> None:
    model = rm.load(rm.robots.path("mini_cheetah"), gravity=(1.0, -2.0, 3.0))
    other = rm.robots.load("mini_cheetah")
    q, v = states(other, 2)
    lifted = rm.bias_force(model, q, v) - rm.bias_force(other, q, v)
    base = rm.jacobian(other, q, "Floating Base")
    turned = rm.frame_pose(other, q, "Floating Base")[:, :3, :3]
    change = np.array([1.0, -2.0, 3.0]) - np.array([0.0, 0.0, -9.81])
    com = rm.center_of_mass(other, q) - q[:, :3]
    force = -model.mass * change
    expected = np.concatenate([np.cross(com, force), np.tile(force, (2, 1))], axis=1)
    local = np.concatenate(
        [np.einsum("nji,nj->ni", turned, expected[:, k : k + 3]) for k in (0, 3)], axis=1
    )
    assert base.shape == (2, 6, 18)
    assert relative(lifted[:, :6], local) < 1e-12
    assert model.gravity == (1.0, -2.0, 3.0)


def test_a_singular_state_is_not_a_number_for_itself_alone() -> None:
    model = rm.robots.load("four_bar")
    q = model.random_configuration(0)
    states_ = np.stack([q, np.zeros(3), q])  # the parallelogram folds flat at zero
    with np.errstate(all="ignore"):
        a = rm.aba(model, states_, np.ones((3, 1)), np.ones((3, 1)))
    assert np.isfinite(a[[0, 2]]).all()
    assert not np.isfinite(a[1]).any()


def test_unknown_algorithms_are_told() -> None:
    from typing import get_args

    from robomodel.dynamics.algorithm import ALGORITHMS, Method

    assert {m for entry in ALGORITHMS.values() for m in entry.methods} <= set(get_args(Method))
    with pytest.raises(ValueError, match="algorithm 'abba' is not known; did you mean 'aba'"):
        rm.compile(rm.robots.load("puma560"), "abba")
    with pytest.raises(KeyError, match="no link 'link9'"):
        rm.compile(rm.robots.load("puma560"), "aba", f_ext="link9")
