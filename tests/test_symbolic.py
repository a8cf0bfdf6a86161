"""The same source on CasADi scalars."""

from __future__ import annotations

import casadi
import numpy as np
import pytest
from cases import few
from texts import four_bar, joint, link

import robomodel as rm


@pytest.mark.slow_cases("five_bar")
@pytest.mark.parametrize("name", few(rm.robots.names(), "belt_leg", "five_bar"))
def test_casadi_functions_equal_numpy(name: str) -> None:
    model = rm.robots.load(name)
    rng = np.random.default_rng(0)
    q = model.random_configuration(rng)
    v, x = rng.standard_normal((2, model.nv))

    def run(algorithm: str, *arguments: np.ndarray) -> np.ndarray:
        return np.array(rm.to_casadi(model, algorithm)(*arguments))

    def same(found: np.ndarray, expected: np.ndarray) -> None:
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)

    same(run("rnea", q, v, x).ravel(), rm.rnea(model, q, v, x))
    same(run("aba", q, v, x).ravel(), rm.aba(model, q, v, x))
    same(run("crba", q), rm.crba(model, q))
    same(run("bias_force", q, v).ravel(), rm.bias_force(model, q, v))
    same(run("center_of_mass", q).ravel(), rm.center_of_mass(model, q))
    same(run("centroidal_momentum", q, v).ravel(), rm.dynamics.centroidal_momentum(model, q, v))
    kinetic, potential = rm.to_casadi(model, "energy")(q, v)
    same(np.array([float(kinetic), float(potential)]), np.array(rm.energy(model, q, v)))


@pytest.mark.slow
@pytest.mark.parametrize("name", few(["four_bar", "belt_leg", "afloat"], "belt_leg", "afloat"))
def test_functions_of_the_configuration_and_derivatives(name: str) -> None:
    model = afloat() if name == "afloat" else rm.robots.load(name)
    rng = np.random.default_rng(1)
    q = model.random_configuration(rng)
    v, x = rng.standard_normal((2, model.nv))
    frame = model.bodies[-1].name

    def same(expected: object, algorithm: str, *arguments: np.ndarray, **options: object) -> None:
        found = rm.to_casadi(model, algorithm, **options)(*arguments)
        several = isinstance(found, tuple)
        for a, b in zip(*((found, expected) if several else ([found], [expected])), strict=True):
            np.testing.assert_allclose(np.array(a).reshape(np.shape(b)), b, rtol=1e-11, atol=1e-10)

    same(model.integrate(q, 0.05 * v), "integrate", q, 0.05 * v)
    same((q, 0.0), "close", model.integrate(q, 0.0 * v))
    same(model.constraint_jacobian(q), "constraint_jacobian", q)
    same(model.constraint_bias(q, v), "constraint_bias", q, v)
    same(np.hstack(list(model.joint_positions(q).values())), "joint_positions", q)
    same(rm.frame_pose(model, q, frame), "frame_pose", q, frame=frame)
    same(rm.jacobian(model, q, frame), "jacobian", q, frame=frame)
    same(rm.rnea_derivatives(model, q, v, x), "rnea_derivatives", q, v, x)
    same(rm.aba_derivatives(model, q, v, x), "aba_derivatives", q, v, x)
    known = model.dof_names[-1]
    same(rm.compile(model, "hybrid", known=known)(q, v, x), "hybrid", q, v, x, known=known)
    wrench = rng.standard_normal(6)
    same(rm.aba(model, q, v, x, f_ext={frame: wrench}), "aba", q, v, x, wrench, f_ext=frame)


def afloat() -> rm.Model:
    """A four-bar on a base afloat, with a pendulum on a ball joint."""
    text = four_bar(link("ball"), joint("hold", "base", "ball", "0.1 0 0.2", kind="spherical"))
    return rm.load(text.replace('<link name="base"/>', link("base")), floating_base=True)


def test_casadi_differentiates_forward_dynamics() -> None:
    model = rm.robots.load("six_bar")
    function = rm.to_casadi(model, "aba")
    assert function.name_in() == ["q", "v", "tau"]
    assert function.name_out() == ["a"]
    v = casadi.SX.sym("v", model.nv)
    q = model.random_configuration(1)
    tau = np.ones(model.nv)
    jacobian = casadi.Function("j", [v], [casadi.jacobian(function(q, v, tau), v)])
    at = np.array([0.3, -0.2, 0.5])
    h = 1e-6
    columns = [
        (rm.aba(model, q, at + h * e, tau) - rm.aba(model, q, at - h * e, tau)) / (2 * h)
        for e in np.eye(3)
    ]
    np.testing.assert_allclose(np.array(jacobian(at)), np.array(columns).T, rtol=1e-6, atol=1e-6)


def test_an_argument_and_a_result_of_one_name() -> None:
    model = rm.load(
        rm.robots.path("four_bar"),
        extend='<robot><joint name="joint1"><limit effort="5" velocity="9"/></joint></robot>',
    )
    q, v, tau = model.neutral(), np.ones(1), np.array([7.0])
    function = rm.to_casadi(model, "saturate")
    assert function.name_in() == ["q", "v", "tau_"]
    assert function.name_out() == ["tau", "u", "lost"]
    for found, expected in zip(
        function(q, v, tau), rm.compile(model, "saturate")(q, v, tau), strict=True
    ):
        np.testing.assert_allclose(np.array(found).ravel(), expected, rtol=1e-12)


def test_unknown_algorithms_are_told() -> None:
    with pytest.raises(ValueError, match=r"'fdyn' is not known; known are .*'rnea', 'aba'"):
        rm.to_casadi(rm.robots.load("four_bar"), "fdyn")
