"""Parameters as arguments in JAX, PyTorch, CasADi and C: values and derivatives."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from agreement import close
from cases import few
from numpy.typing import NDArray

import robomodel as rm

Array = NDArray[np.float64]
NAMES = ("joint2.x", "link2.mass", "loop.successor.x", "gravity.y", "joint3.rz")


def states() -> tuple[rm.Model, list[Array], Array]:
    """A four-bar in closed states of other geometry."""
    model = rm.robots.load("four_bar")
    listed = rm.parameters(model, geometry=True)
    rng = np.random.default_rng(5)
    p = np.array([listed[name] for name in NAMES]) + 0.01 * rng.normal(size=(3, len(NAMES)))
    q = np.array([model.configuration({"joint1": x}) for x in (0.7, 1.1, 1.6)])
    q = model.close(q, parameters=dict(zip(NAMES, p.T, strict=True)))
    v, tau = rng.normal(size=(2, 3, model.nv))
    return model, [q, v, tau], p


def by_name(p: Array) -> dict[str, Array]:
    return dict(zip(NAMES, p.T, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", few(["aba", "energy"], "aba"))
def test_jax_differentiates_by_parameters(name: str) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    import robomodel.jax

    jax.config.update("jax_enable_x64", True)
    model, arguments, p = states()
    arguments = arguments[: 3 if name == "aba" else 2]
    f = robomodel.jax.function(model, name, parameters=NAMES)
    found = f(*arguments, p)
    expected = getattr(rm, name)(model, *arguments, parameters=by_name(p))
    slopes = rm.sensitivity(model, name, tuple(arguments), NAMES, parameters=by_name(p))
    for of in (jax.jacfwd, jax.jacrev):
        by_p = jax.vmap(of(f, argnums=len(arguments)))(*arguments, p)
        pairs = [(by_p, slopes)] if name == "aba" else zip(by_p, slopes, strict=True)
        for one, two in pairs:
            close(np.asarray(one), two, 1e-9)
    pairs = [(found, expected)] if name == "aba" else zip(found, expected, strict=True)
    for one, two in pairs:
        close(np.asarray(one), two, 1e-12)


@pytest.mark.slow
def test_jax_differentiates_closing_and_steps_by_parameters() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    import robomodel.jax

    jax.config.update("jax_enable_x64", True)
    model, (q, v, tau), p = states()
    shut = robomodel.jax.function(model, "close", parameters=NAMES)
    by_p = jax.vmap(jax.jacfwd(lambda q, p: shut(q, p)[0], argnums=1))(q, p)
    expected = rm.sensitivity(model, "close", q, NAMES, parameters=by_name(p))
    close(np.asarray(by_p), expected, 1e-9)
    step = robomodel.jax.function(model, "integrate", parameters=NAMES)
    aba = robomodel.jax.function(model, "aba", parameters=NAMES)

    def moved(p: Array) -> Array:
        """A joint after three steps, from a state that is closed for the parameters."""
        at, speed = shut(q[0], p)[0], v[0]
        for _ in range(3):
            speed = speed + 0.01 * aba(at, speed, tau[0], p)
            at = step(at, 0.01 * speed, p)
        return at[1]

    found = jax.grad(moved)(p[0])
    h = 1e-5 * np.eye(len(NAMES))
    differences = [(moved(p[0] + d) - moved(p[0] - d)) / 2e-5 for d in h]
    close(np.asarray(found), np.array(differences), 1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("robot", "names"),
    [
        ("four_bar", ("joint2.x", "loop.successor.x", "joint1.armature")),
        (
            "mini_cheetah",
            ("FL_knee_link_joint.z", "FL_knee_rotor.Iyy", "HR_hip_link_joint.armature"),
        ),
    ],
)
def test_jax_differentiates_a_rollout_by_parameters(robot: str, names: tuple[str, ...]) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    import robomodel.jax

    jax.config.update("jax_enable_x64", True)
    model = rm.robots.load(robot)
    listed = rm.parameters(model, geometry=True)
    p = np.array([listed[name] for name in names]) + 0.001
    rng = np.random.default_rng(8)
    tau, h, count = rng.normal(size=model.nv), 1e-3, 10
    q = model.close(model.random_configuration(rng), parameters=dict(zip(names, p, strict=True)))
    v = rng.normal(size=model.nv)
    shut, step, aba, energy = (
        robomodel.jax.function(model, name, parameters=names)
        for name in ("close", "integrate", "aba", "energy")
    )
    weights = rng.normal(size=model.nv)

    def moved(p: Array) -> Array:
        """Velocities after ten steps from a closed state, weighed, and the energy then."""

        def one(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
            at, speed = state
            speed = speed + h * aba(at, speed, tau, p)
            return (step(at, h * speed, p), speed), None

        (at, speed), _ = jax.lax.scan(one, (shut(q, p)[0], v), None, length=count)
        return weights @ speed + sum(energy(at, speed, p))

    found = jax.jit(jax.grad(moved))(p)
    value = jax.jit(moved)
    for i, d in enumerate(1e-6 * np.eye(len(p))):
        near, far = ((value(p + k * d) - value(p - k * d)) / (2e-6 * k) for k in (1, 2))
        close(np.asarray(found[i]), np.asarray((4.0 * near - far) / 3.0), 1e-8, least=1.0)


def test_torch_differentiates_by_parameters() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import robomodel.torch

    model, arguments, p = states()
    f = robomodel.torch.function(model, "aba", parameters=NAMES)
    numbers = torch.tensor(p, requires_grad=True)
    result = f(*map(torch.tensor, arguments), numbers)
    (found,) = torch.autograd.grad(result.sum(), numbers)
    slopes = rm.sensitivity(model, "aba", tuple(arguments), NAMES, parameters=by_name(p))
    close(found.numpy(), slopes.sum(axis=-2), 1e-9)


def test_casadi_takes_parameters() -> None:
    pytest.importorskip("casadi", reason="CasADi is not installed")
    model, arguments, p = states()
    f = rm.to_casadi(model, "aba", parameters=NAMES)
    assert f.name_in() == ["q", "v", "tau", "p"]
    found = np.array(f(*(x[0] for x in arguments), p[0])).ravel()
    close(found, rm.aba(model, *arguments, parameters=by_name(p))[0], 1e-12)
    shut = rm.to_casadi(model, "close", parameters=NAMES)
    closed = np.array(shut(arguments[0][0], p[0])[0]).ravel()
    close(closed, arguments[0][0], 1e-9)


def test_c_takes_parameters(tmp_path: Path) -> None:
    model, _, _ = states()
    options = {"parameters": NAMES}
    functions = {"aba": ("aba", options), "close": ("close", options)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, header = rm.write_c(model, tmp_path / "bar.c", functions=functions)
    text = header.read_text("utf-8")
    assert (
        "bar_aba(const double q[3], const double v[1], const double tau[1], const double p[5]"
        in text
    )
    assert "bar_close(const double q[3], const double p[5]" in text
