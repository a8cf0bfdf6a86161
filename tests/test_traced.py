"""Traced functions: calls, kernels, pickles; those of configurations and the damped method."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

import robomodel as rm
from robomodel.kernels import Iteration
from robomodel.kernels.function import TracedFunction
from robomodel.model.configurations import following, functions, moving

LINKAGES = ("four_bar", "five_bar", "six_bar", "planar_leg_linkage", "tello")


def doubled() -> TracedFunction:
    """(x, y) → x + 2 y and the sum of x - y's entries."""

    def build(x, y):
        left = [a + 2.0 * b for a, b in zip(x, y, strict=True)]
        return [*left, x[0] - y[0]]

    return TracedFunction("doubled", {"x": 2, "y": 2}, {"sum": (2,), "off": ()}, build)


def test_calls_broadcast_and_give_results_of_their_shapes() -> None:
    f, rng = doubled(), np.random.default_rng(0)
    x, y = rng.normal(size=(3, 1, 2)), rng.normal(size=(4, 2))
    for total, off in (f(x, y), f.on_arrays(x, y), f.kernel()(x, y)):
        np.testing.assert_array_equal(total, x + 2 * y)
        np.testing.assert_array_equal(off, (x - y)[..., 0])
    out = np.empty((3, 4, 3))
    f(x, y, out=out)
    np.testing.assert_array_equal(out[..., :2], x + 2 * y)
    assert f(np.array([np.nan, 0.0]), y[0])[0].shape == (2,)  # without a warning
    with pytest.raises(TypeError, match="nothing says what made it"):
        pickle.dumps(f)


def test_iterations_by_machine_code_and_by_numpy() -> None:
    def build(x, u):
        return [x[0] + u[0], 0.5 * x[1]]

    f = TracedFunction("steps", {"x": 2, "u": 1}, {"y": (2,)}, build, Iteration((1,)))
    u = np.arange(6.0).reshape(2, 3, 1)
    start = np.array([1.0, 8.0])
    found = f(start, u)
    assert found.shape == (2, 3, 2)
    np.testing.assert_array_equal(found, f.on_arrays(start, u))
    np.testing.assert_array_equal(found[..., 0], 1.0 + np.cumsum(u[..., 0], axis=-1))
    np.testing.assert_array_equal(found[0, :, 1], [4.0, 2.0, 1.0])


def test_functions_of_a_model_are_made_once_and_pickle() -> None:
    model = rm.robots.load("four_bar")
    f = functions.integrate(model, 3)
    assert f is functions.integrate(model, 3)
    assert f is not functions.integrate(model, 4)
    q, v = model.neutral(), np.array([0.05])
    copy = pickle.loads(pickle.dumps(f))
    assert copy.owner is not model
    np.testing.assert_array_equal(copy(q, v), f(q, v))


@pytest.mark.slow_cases("tello")
@pytest.mark.parametrize("name", LINKAGES)
def test_fixed_steps_end_where_the_damped_method_does(name: str) -> None:
    model, rng = rm.robots.load(name), np.random.default_rng(3)
    q = np.array([model.random_configuration(rng) for _ in range(8)])
    steps = 0.03 * rng.normal(size=(8, model.nv))
    np.testing.assert_allclose(
        model.integrate(q, steps), following.damped(model, q, steps, 8)[0], atol=1e-11
    )
    off = q + 1e-3 * rng.normal(size=q.shape)
    np.testing.assert_allclose(model.close(off), moving._close(model, off, 8), atol=1e-9)
    assert np.max(np.abs(model.residual(model.close(off)))) < 1e-10
    one = model.integrate(q[0], steps[0])
    np.testing.assert_allclose(one, model.integrate(q, steps)[0], rtol=0, atol=1e-14)
    np.testing.assert_allclose(model.difference(q, model.integrate(q, steps)), steps, atol=1e-12)


def test_long_motions_go_to_the_damped_method() -> None:
    model = rm.robots.load("four_bar")
    q, far = model.neutral(), np.array([1.5])
    _, gap = functions.moved(model, following.FOLLOWED)(q, far)
    assert gap == np.inf
    np.testing.assert_allclose(model.difference(q, model.integrate(q, far)), far, atol=1e-10)


def test_declared_algorithms_show_their_options() -> None:
    shown = inspect.signature(rm.aba).parameters
    options = ["f_ext", "passive", "method", "parameters", "backend", "check"]
    assert [*shown] == ["model", "q", "v", "tau", *options]
    assert shown["check"].default is False
    for option in options:
        assert f"    {option}: " in (inspect.getdoc(rm.aba) or "")
    model = rm.robots.load("four_bar")
    q, one = model.neutral(), np.ones(1)
    np.testing.assert_array_equal(rm.rnea(model, q, a=one, v=one), rm.rnea(model, q, one, one))
    for arguments, options, message in (
        ((q, one), {}, r"aba\(\) missing 1 required positional argument: 'tau'"),
        ((q, one, one, one), {}, r"aba\(\) takes 4 positional arguments but 5 were given"),
        ((q, one, one), {"tauu": one}, r"aba\(\) got an unexpected keyword argument 'tauu'"),
    ):
        with pytest.raises(TypeError, match=message):
            rm.aba(model, *arguments, **options)
