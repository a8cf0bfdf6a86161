"""Armature of joints: an inertia that resists the joint's own velocity, and nothing else."""

from __future__ import annotations

import dataclasses
import math
import warnings

import numpy as np
import pytest
from cases import few
from hypothesis import assume, given, reject, settings
from mechanisms import Mechanism, mechanisms
from mujoco_open_tree import Simulator
from numpy.typing import NDArray
from shipped_robots import ROBOTS
from test_dynamics import compare, relative
from texts import coupling, fan, four_bar, joint, link, robot

import robomodel as rm
from robomodel.description import ONE_DOF, Description
from robomodel.dynamics.algorithm import AlgorithmSpec, traced_algorithm
from robomodel.model import build
from robomodel.parsers import read

Array = NDArray[np.float64]
TIGHT = 1e-12


def armed(description: Description, seed: int = 0) -> Description:
    """The robot with an armature on every joint that can have one."""
    rng = np.random.default_rng(seed)
    joints = tuple(
        dataclasses.replace(each, armature=float(rng.uniform(0.05, 1.0)))
        if each.type in ONE_DOF or each.type == "spherical"
        else each
        for each in description.joints
    )
    return dataclasses.replace(description, joints=joints)


def weights(model: rm.Model) -> Array:
    """The armature on each spanning velocity."""
    return np.array([each.armature for each in model.joints for _ in range(each.nv)])


def inertias_agree(plain: rm.Model, model: rm.Model, q: Array, rng: np.random.Generator) -> None:
    """M, tau, a and energy are those without armature, and Gᵀ diag(armature) (G a + g)."""
    v, a = rng.standard_normal((2, model.nv))
    g_matrix, g, w = model.constraint_jacobian(q), model.constraint_bias(q, v), weights(model)
    assert np.max(w) > 0.0
    mass = rm.crba(plain, q, backend="numpy") + g_matrix.T @ (w[:, None] * g_matrix)
    assert relative(rm.crba(model, q, backend="numpy"), mass) < TIGHT
    more = g_matrix.T @ (w * (g_matrix @ a + g))
    without = rm.rnea(plain, q, v, a, backend="numpy")
    tau = rm.rnea(model, q, v, a, backend="numpy")
    assert relative(tau, without + more, without, more) < TIGHT
    found = rm.aba(model, q, v, tau, backend="numpy")
    condition = float(np.linalg.cond(mass))
    assert relative(found, a, np.linalg.solve(mass, tau)) < max(1e-11, 1e-15 * condition)
    qd = g_matrix @ v
    kinetic, potential = rm.energy(plain, q, v, backend="numpy")
    both = rm.energy(model, q, v, backend="numpy")
    assert both[0] == pytest.approx(kinetic + 0.5 * qd @ (w * qd), rel=TIGHT)
    assert both[1] == potential


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_shipped_robots_with_armature(name: str) -> None:
    plain = rm.robots.load(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        model = build(armed(plain.description))
    rng = np.random.default_rng(1)
    for _ in range(5):
        inertias_agree(plain, model, model.random_configuration(rng), rng)


@pytest.mark.tables
@settings(max_examples=15, deadline=None)
@given(mechanisms(floating_base=False))
def test_random_mechanisms_agree_with_the_oracle(mechanism: Mechanism) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        try:
            model = build(armed(read(mechanism.text)))
        except rm.DescriptionError as error:
            if "mobility 0" not in str(error):
                raise
            reject()
    assume(model.nv > 0)
    oracle = mechanism.oracle(list(model.joint_names))
    oracle.armature = {each.name: each.armature for each in model.joints}
    rng = np.random.default_rng(2)
    compare(model, oracle, model.random_configuration(rng), rng, mechanism.f_ext)


def chain() -> Description:
    """Hinges, slides, a screw-less ball, and an aligned hinge: a chain that MuJoCo can have too."""
    text = robot(
        *(link(name) for name in "abcdefg"),
        joint("yaw", "base", "a"),
        joint("slide", "a", "b", "0.2 0 0.1", kind="prismatic", axis="0.6 0 0.8", more=LIMIT),
        joint("ball", "b", "c", "0 0.3 0", kind="spherical", rpy="0.3 -0.2 0.5"),
        joint("tilt", "c", "d", "0.1 0.2 -0.3", axis="0.36 0.48 0.8"),
        joint("back", "d", "e", "0 0 0.4", axis="-1 0 0"),
        joint("side", "a", "f", "0 -0.2 0", axis="0 1 0"),
        joint("shaft", "f", "g", "0 0 0.2", axis="0 1 0"),
    )
    return read(text)


LIMIT = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'


@pytest.mark.slow_cases("True")
@pytest.mark.parametrize("floating_base", few([False, True], True))
def test_open_chain_agrees_with_mujoco(floating_base: bool) -> None:
    description = chain()
    if floating_base:
        massive = tuple(
            dataclasses.replace(each, inertial=description.links[1].inertial)
            if each.name == "base"
            else each
            for each in description.links
        )
        description = dataclasses.replace(description, links=massive)
    model = build(armed(description), floating_base=floating_base or None)
    simulator = Simulator(model)
    rng = np.random.default_rng(3)
    for _ in range(20):
        q = model.random_configuration(rng)
        v, a = rng.standard_normal((2, model.nv))
        assert relative(rm.crba(model, q), simulator.mass_matrix(q)) < 1e-13
        tau = simulator.inverse(q, v, a)
        assert relative(rm.rnea(model, q, v, a), tau) < TIGHT
        assert relative(rm.aba(model, q, v, tau), a) < 1e-10


@pytest.mark.parametrize(
    "text",
    [four_bar(marks=(True, False, False)), fan(coupling("sum", {"a": 1.0, "b": -2.0, "c": 0.5}))],
    ids=["four_bar", "coupling"],
)
def test_power_balance_with_armature_on_dependent_joints(text: str) -> None:
    model = build(armed(read(text)))
    assert any(each.armature and not each.independent for each in model.joints)
    rng = np.random.default_rng(4)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    v, tau = rng.standard_normal((2, 3, model.nv))
    a = rm.aba(model, q, v, tau)
    h = 1e-4

    def energy(t: float) -> Array:
        kinetic, potential = rm.energy(model, model.integrate(q, v * t + a * t * t / 2), v + a * t)
        return kinetic + potential

    rate = (8 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12 * h)
    assert relative(rate, np.sum(tau * v, axis=1), rm.energy(model, q, v)[0]) < 1e-7


def test_derivatives_know_armature() -> None:
    model = build(armed(read(four_bar())))
    rng = np.random.default_rng(5)
    q = model.random_configuration(rng)
    v, tau = rng.standard_normal((2, model.nv))
    da_dq, da_dv, inverse = rm.aba_derivatives(model, q, v, tau)
    assert relative(inverse, np.linalg.inv(rm.crba(model, q))) < TIGHT
    h = 1e-5
    for j, e in enumerate(np.eye(model.nv)):
        ahead, behind = (
            rm.aba(model, model.integrate(q, s * h * e), v, tau, backend="numpy") for s in (1, -1)
        )
        assert relative(da_dq[:, j], (ahead - behind) / (2 * h)) < 1e-7
        ahead, behind = (rm.aba(model, q, v + s * h * e, tau, backend="numpy") for s in (1, -1))
        assert relative(da_dv[:, j], (ahead - behind) / (2 * h)) < 1e-7


def test_armature_is_no_momentum() -> None:
    plain, model = build(chain()), build(armed(chain()))
    rng = np.random.default_rng(6)
    q, v = model.random_configuration(rng), rng.standard_normal(model.nv)
    np.testing.assert_array_equal(
        rm.dynamics.centroidal_momentum(model, q, v), rm.dynamics.centroidal_momentum(plain, q, v)
    )


@pytest.mark.slow
def test_armature_costs_nothing_where_there_is_none() -> None:
    """One joint of a quadruped with armature: the additions of that joint alone."""
    plain = rm.robots.load("mini_cheetah")
    name = plain.joint_names[1]
    joints = tuple(
        dataclasses.replace(each, armature=0.01) if each.name == name else each
        for each in plain.description.joints
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        model = build(dataclasses.replace(plain.description, joints=joints))
    for algorithm in ("rnea", "aba", "crba"):
        more = (
            traced_algorithm(model, AlgorithmSpec(algorithm)).program.flops
            - traced_algorithm(plain, AlgorithmSpec(algorithm)).program.flops
        )
        assert 0 <= more <= 2


def test_a_joint_shows_its_armature() -> None:
    model = build(armed(chain()))
    said = {each.name: each.armature for each in model.description.joints}
    assert {each.name: each.armature for each in model.joints} == said


@pytest.mark.parametrize(
    ("kind", "armature", "message"),
    [
        ("continuous", -0.1, "armature is -0.1; give it a finite inertia, not negative"),
        ("continuous", math.nan, "armature is nan"),
        ("continuous", math.inf, "armature is inf"),
        ("planar", 0.1, "cannot have an armature, being planar: one number is no inertia"),
        ("floating", 0.1, "cannot have an armature, being floating"),
    ],
)
def test_what_is_no_armature_is_refused(kind: str, armature: float, message: str) -> None:
    description = read(robot(link("a"), joint("j", "base", "a", kind=kind)))
    joints = (dataclasses.replace(description.joints[0], armature=armature),)
    with pytest.raises(rm.DescriptionError, match=message) as caught:
        build(dataclasses.replace(description, joints=joints))
    assert caught.value.element == "joint 'j'"


def test_an_armature_on_a_fixed_joint_is_warned_of() -> None:
    description = read(robot(link("a"), joint("j", "base", "a", kind="fixed")))
    description = dataclasses.replace(
        description, joints=(dataclasses.replace(description.joints[0], armature=0.1),)
    )
    with pytest.warns(rm.DescriptionWarning, match="armature has no effect"):
        build(description)


def test_a_massless_body_with_armature_can_move() -> None:
    description = read(robot('<link name="a"/>', joint("j", "base", "a")))
    with pytest.warns(rm.DescriptionWarning, match="moves no mass"):
        build(description)
    joints = (dataclasses.replace(description.joints[0], armature=0.5),)
    model = build(dataclasses.replace(description, joints=joints))
    assert rm.aba(model, [0.3], [1.0], [2.0]) == pytest.approx([4.0], rel=1e-15)
