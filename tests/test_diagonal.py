"""Diagonalised equations of motion against the recursions."""

from __future__ import annotations

import numpy as np
import pytest

import robomodel as rm
from robomodel.papers.spatial_operators import diagonal_equations

ROBOTS = ["four_bar", "tello", "mini_cheetah", "puma560"]


@pytest.mark.slow_cases("tello")
@pytest.mark.parametrize("name", ROBOTS)
def test_forward_dynamics_energy_and_power(name: str) -> None:
    model = rm.robots.load(name)
    rng = np.random.default_rng(2)
    q = np.array([model.random_configuration(n) for n in range(2)])
    v, tau = 5 * rng.normal(size=(2, 2, model.nv))
    equations = diagonal_equations(model, q, v)
    nu = equations.velocities
    kinetic = rm.energy(model, q, v, backend="numpy")[0]
    np.testing.assert_allclose(0.5 * (nu**2).sum(-1), kinetic, rtol=1e-12)
    np.testing.assert_allclose(
        (nu * equations.forces(tau)).sum(-1), (v * tau).sum(-1), rtol=1e-10, atol=1e-10
    )
    found = equations.joint_accelerations(equations.accelerations(tau))
    expected = rm.aba(model, q, v, tau, backend="numpy")
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.slow
def test_bias_without_gravity_does_no_work() -> None:
    model = rm.load(rm.robots.path("tello"), gravity=(0, 0, 0))
    q, v = model.random_configuration(3), np.linspace(-1, 1, model.nv)
    equations = diagonal_equations(model, q, v)
    nu, bias = equations.velocities, equations.bias
    assert np.linalg.norm(bias) > 1e-3
    assert abs(nu @ bias) < 1e-11 * np.linalg.norm(nu) * np.linalg.norm(bias)


def test_the_rate_is_the_derivative_along_the_motion() -> None:
    """ν̇ = ε - C, by differences of ν along an integrated motion."""
    model = rm.robots.load("five_bar")
    q, v, tau = model.random_configuration(1), np.array([0.3, -0.2]), np.array([1.0, 2.0])
    a = rm.aba(model, q, v, tau, backend="numpy")
    h = 1e-3

    def velocities(t: float) -> np.ndarray:
        # any motion with this velocity and acceleration at t = 0
        there = model.integrate(q, t * v + t**2 / 2 * a)
        return diagonal_equations(model, there, v + t * a).velocities

    rate = (8 * (velocities(h) - velocities(-h)) - velocities(2 * h) + velocities(-2 * h)) / (
        12 * h
    )
    expected = diagonal_equations(model, q, v).accelerations(tau)
    np.testing.assert_allclose(rate, expected, rtol=1e-7)


def test_wrenches_and_wrong_arguments() -> None:
    model = rm.robots.load("mini_cheetah")
    q, v, tau = model.random_configuration(0), np.ones(model.nv), np.zeros(model.nv)
    f_ext = {"FR_foot_contact": np.array([1.0, 2, 3, 40, 50, 60])}
    equations = diagonal_equations(model, q, v, f_ext=f_ext)
    found = equations.joint_accelerations(equations.accelerations(tau))
    expected = rm.aba(model, q, v, tau, f_ext=f_ext, backend="numpy")
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    with pytest.raises(ValueError, match=r"v .*nv"):
        diagonal_equations(model, q, np.ones(3))
