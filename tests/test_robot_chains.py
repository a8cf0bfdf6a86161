"""Chains of the random and planar kinds, and what is asked of all shipped robots."""

import io
import time

import numpy as np
import pytest
from cases import few
from oracle import Oracle
from robot_facts import (
    FACTS,
    FLOATING,
    PUBLISHED,
    ROBOTS,
)

import robomodel as rm
from benchmarks.shared.chains import chain
from robomodel import robots

# ---- The models ----------------------------------------------------------------------------------

DOF = {
    "belt_leg": 3,
    "crank_rocker": 1,
    "five_bar": 2,
    "four_bar": 1,
    "jvrc1": 38,
    "mini_cheetah": 18,
    "mit_humanoid": 24,
    "mit_humanoid_leg": 5,
    "parallel_ankle": 2,
    "planar_leg_linkage": 2,
    "puma560": 6,
    "six_bar": 3,
    "teleop_arm": 7,
    "tello": 16,
    "tello_with_arms": 24,
}


@pytest.mark.slow_cases("tello")
@pytest.mark.parametrize("name", few(ROBOTS, "mini_cheetah", "six_bar", "tello"))
def test_model(name):
    """Freedoms, mass and clusters; closed and consistent at random configurations."""
    model = rm.load(robots.path(name), strict=True)
    assert (model.name, model.nv) == (name, DOF[name])
    assert (model.floating_base is not None) == (name in FLOATING)
    if name in PUBLISHED:
        facts = FACTS[name]
        assert model.nv == facts["dof"]
        assert model.mass == pytest.approx(facts["total_mass"], rel=1e-14)
        clusters = {
            frozenset(
                model.bodies[i].name for i in cluster.bodies if "crank" not in model.bodies[i].name
            )
            for cluster in model.clusters
        }
        assert clusters == {frozenset(cluster) for cluster in facts["clusters"]}
    assert np.max(np.abs(model.residual(model.neutral())), initial=0) < 1e-15
    rng = np.random.default_rng(2)
    q = np.array([model.random_configuration(rng) for _ in range(5)])
    v, a = rng.standard_normal((2, 5, model.nv))
    assert np.max(np.abs(model.residual(q)), initial=0) < 1e-12
    tau = rm.rnea(model, q, v, a, backend="numpy")
    M, bias = rm.crba(model, q, backend="numpy"), rm.bias_force(model, q, v, backend="numpy")
    np.testing.assert_allclose(
        np.einsum("nij,nj->ni", M, a) + bias, tau, rtol=0, atol=1e-12 * np.max(np.abs(tau))
    )
    back = rm.aba(model, q, v, tau, backend="numpy")
    np.testing.assert_allclose(back, a, rtol=0, atol=1e-15 * np.max(np.linalg.cond(M)) + 1e-12)
    assert np.all(np.linalg.eigvalsh(M) > 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mit_humanoid", "tello"])
def test_compiled_equals_numpy(name):
    model = robots.load(name)
    rng = np.random.default_rng(4)
    q = np.array([model.random_configuration(rng) for _ in range(8)])
    v, x = rng.standard_normal((2, 8, model.nv))
    for function in (rm.rnea, rm.aba):
        expected = function(model, q, v, x, backend="numpy")
        np.testing.assert_allclose(
            function(model, q, v, x), expected, rtol=0, atol=1e-11 * np.max(np.abs(expected))
        )


def test_all_robots_load_quickly():
    start = time.process_time()
    for name in ROBOTS:
        robots.load(name)
    assert time.process_time() - start < 2


# ---- Chains --------------------------------------------------------------------------------------


def planar_mass_matrix(n, rotors=()):
    """M of n links of 1 m and 1 kg, izz = 1, by their angles; rotors are rows of joint factors."""
    to_angles = np.tril(np.ones((n, n)))  # link i's angle is the sum of joints 1 to i

    def mass_matrix(q):
        angle = to_angles @ q
        M = to_angles.T @ to_angles
        for i in range(n):
            arm = np.where(np.arange(n) < i, 1.0, 0.5) * (np.arange(n) <= i)
            J = np.array([-np.sin(angle), np.cos(angle)]) * arm @ to_angles
            M += J.T @ J
        return M + sum(1e-4 * np.outer(row, row) for row in rotors)

    return mass_matrix


@pytest.mark.parametrize("kind", ["plain", "geared", "belt"])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_planar_chains(kind, n):
    """Inertia and gravity by hand: a rotor turns with the links before it, and by its ratios."""
    rotors = []
    for i in range(n):
        first = i - i % 2 if kind == "belt" else i
        row = np.where(np.arange(n) < first, 1.0, 0.0)
        row[first : i + 1] = {"plain": 0, "geared": 6, "belt": 18}[kind]
        rotors.append(row)
    model = chain(kind, n)
    assert model.nv == model.nq == n
    assert len(model.bodies) == (n if kind == "plain" else 2 * n)
    assert len(model.clusters) == ((n + 1) // 2 if kind == "belt" else n)
    assert model.mass == n
    by_hand = planar_mass_matrix(n, [] if kind == "plain" else rotors)
    for q in np.random.default_rng(n).uniform(-np.pi, np.pi, (3, n)):
        M = rm.crba(model, q, backend="numpy")
        np.testing.assert_allclose(M, by_hand(q), rtol=0, atol=1e-13 * np.max(M))
        tip = rm.frame_pose(model, q, "tip")[:3, 3]
        angle = np.cumsum(q)
        np.testing.assert_allclose(tip, [np.cos(angle).sum(), np.sin(angle).sum(), 0], atol=1e-14)
    rest = rm.bias_force(model, np.zeros(n), np.zeros(n), backend="numpy")
    np.testing.assert_allclose(rest, 0, atol=1e-13)  # gravity along the chain
    lever = 9.81 * np.sum(np.arange(n) + 0.5)
    side = rm.bias_force(model, np.eye(n)[0] * np.pi / 2, np.zeros(n), backend="numpy")
    assert side[0] == pytest.approx(lever, rel=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "geared", "belt", "four_bar"])
@pytest.mark.parametrize("n", few([1, 4, 5], 4))
def test_random_chains_agree_with_the_oracle(kind, n):
    model = chain(kind, n, rng=np.random.default_rng(n))
    assert model.nv == n
    text = io.StringIO()
    rm.write_urdf(model, text)
    oracle = Oracle(text.getvalue(), names=list(model.joint_names))
    rng = np.random.default_rng(1)
    q, (v, a) = model.random_configuration(rng), rng.standard_normal((2, n))
    at = oracle.state(model.joint_positions(q))
    G, g = model.constraint_jacobian(q), model.constraint_bias(q, v)
    phi, K, k = oracle.constraint(at, G @ v)
    np.testing.assert_allclose(phi, 0, atol=1e-13)
    np.testing.assert_allclose(K @ G, 0, atol=1e-11)
    np.testing.assert_allclose(K @ g, k, atol=1e-9)
    tau = oracle.project_inverse(at, G @ v, G, g, a)
    scale = np.max(np.abs(tau))
    found = rm.rnea(model, q, v, a, backend="numpy")
    np.testing.assert_allclose(found, tau, rtol=0, atol=1e-11 * scale)
    same = chain(kind, n, rng=np.random.default_rng(n))
    np.testing.assert_array_equal(rm.rnea(same, q, v, a, backend="numpy"), found)


def test_chains_of_four_bars_go_round():
    model = chain("four_bar", 2)
    assert (model.nv, len(model.bodies), len(model.clusters)) == (2, 6, 2)
    for angle in np.linspace(0, 2 * np.pi, 8):
        q = model.configuration({"crank_joint1": angle, "crank_joint2": -angle})
        assert np.max(np.abs(model.residual(q))) < 1e-14
        assert np.max(np.abs(model.constraint_jacobian(q))) < 3  # no dead point


@pytest.mark.slow
def test_long_chains_load():
    start = time.process_time()
    models = [chain(kind, 1000) for kind in ("plain", "geared", "belt")]
    assert time.process_time() - start < 5
    assert [model.nv for model in models] == [1000, 1000, 1000]
    tau = rm.rnea(models[2], *np.zeros((3, 1000)), backend="numpy")
    np.testing.assert_allclose(tau, 0, atol=1e-9)


def test_chains_that_are_not():
    with pytest.raises(ValueError, match="no chain is of the kind 'belts'; did you mean 'belt'"):
        chain("belts", 3)
    with pytest.raises(ValueError, match="at least one joint, not 0"):
        chain("plain", 0)
    model = chain("geared", 2, gravity=(0, 0, -1), floating_base=True)
    assert (model.nv, model.gravity) == (8, (0, 0, -1))
