"""Functions in PyTorch: the kernels' numbers, mapped, compiled and differentiated, no copies."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from texts import joint, link

import robomodel as rm

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import robomodel.torch  # noqa: E402

BALL = (
    '<robot name="ball">' + link("a") + link("b")
    + joint("shoulder", "a", "b", "0.1 0.2 0.3", kind="spherical") + "</robot>"
)  # fmt: skip


def states(model: rm.Model, count: int) -> list[torch.Tensor]:
    rng = np.random.default_rng(2)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    return [torch.from_numpy(x) for x in (q, *rng.normal(size=(2, count, model.nv)))]


def four_bar() -> rm.Model:
    return rm.robots.load("four_bar")


def test_results_are_the_kernels() -> None:
    model = four_bar()
    q, v, x = states(model, 7)
    f = robomodel.torch.function(model, "aba")
    expected = rm.aba(model, q.numpy(), v.numpy(), x.numpy())
    np.testing.assert_allclose(f(q, v, x), expected, rtol=1e-12)
    np.testing.assert_allclose(f(q[0], v[0], x[0]), expected[0], rtol=1e-12)
    np.testing.assert_allclose(torch.vmap(f)(q, v, x), expected, rtol=1e-12)
    grid = f(q[:, None], v[None], x[0])
    np.testing.assert_allclose(
        grid, rm.aba(model, q.numpy()[:, None], v.numpy(), x.numpy()[0]), rtol=1e-12
    )
    both = torch.vmap(torch.vmap(f, (None, 0, None)), (0, None, None))(q, v, x[0])
    np.testing.assert_allclose(both, grid, rtol=1e-15)
    strided = torch.stack([v, v], dim=-1)[..., 0]
    np.testing.assert_allclose(f(q, strided, x), expected, rtol=1e-12)


def test_functions_travel() -> None:
    """To other processes, and as parts of modules that are copied."""
    model = rm.robots.load("four_bar")
    f = robomodel.torch.function(model, "aba")
    q, v, x = (a[0] for a in states(model, 1))
    there = pickle.loads(pickle.dumps(f))
    assert torch.equal(there(q, v, x), f(q, v, x))
    assert copy.deepcopy(f) is f


def test_several_results_and_single_precision() -> None:
    model = four_bar()
    q, v, _ = states(model, 3)
    kinetic, potential = robomodel.torch.function(model, "energy")(q, v)
    for one, other in zip((kinetic, potential), rm.energy(model, q, v), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    pose = robomodel.torch.function(model, "frame_pose", frame=model.bodies[-1].name)
    assert pose(q.float()).dtype == torch.float32
    assert pose(q.float()).shape == (3, 4, 4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rnea", "aba"])
@pytest.mark.parametrize("kind", ["loop", "ball"])
def test_derivatives_in_both_modes(name: str, kind: str) -> None:
    model = four_bar() if kind == "loop" else rm.load(BALL, floating_base=True)
    at = [x.requires_grad_() for x in states(model, 2)]
    f = robomodel.torch.function(model, name)
    assert torch.autograd.gradcheck(
        f, at, eps=1e-6, atol=1e-5, rtol=1e-5, check_forward_ad=True, check_batched_grad=True
    )
    one = [x[0].detach() for x in at]
    forward = torch.func.jacfwd(f, (0, 1, 2))(*one)
    backward = torch.func.jacrev(f, (0, 1, 2))(*one)
    algorithm = rm.rnea_derivatives if name == "rnea" else rm.aba_derivatives
    expected = algorithm(model, *(x.numpy() for x in one))
    for a, b in zip(forward, backward, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12 * float(b.abs().max()))
    for a, b in zip(forward[1:], expected[1:], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11 * np.abs(b).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rnea", "aba"])
@pytest.mark.parametrize("kind", ["loop", "ball"])
def test_second_derivatives(name: str, kind: str) -> None:
    model = four_bar() if kind == "loop" else rm.load(BALL, floating_base=True)
    at = [x.requires_grad_() for x in states(model, 1)]
    f = robomodel.torch.function(model, name)
    assert torch.autograd.gradgradcheck(f, at, atol=1e-5, rtol=1e-4, check_fwd_over_rev=True)


def test_arguments_that_are_broadcast_have_gradients_of_their_shape() -> None:
    model = four_bar()
    q, v, x = states(model, 4)
    one = q[0].clone().requires_grad_()
    robomodel.torch.function(model, "aba")(one, v, x).sum().backward()
    assert one.grad is not None
    assert one.grad.shape == one.shape


def test_a_step_in_time_is_differentiated() -> None:
    model = four_bar()
    q = states(model, 1)[0][0].requires_grad_()
    move = torch.full((1,), 0.01, dtype=torch.float64, requires_grad=True)
    step = robomodel.torch.function(model, "integrate")
    assert torch.autograd.gradcheck(step, (q, move), atol=1e-5, rtol=1e-5, check_forward_ad=True)


@pytest.mark.slow
def test_compiled_by_torch() -> None:
    model = four_bar()
    at = states(model, 3)
    f = robomodel.torch.function(model, "aba")
    compiled = torch.compile(lambda *x: (f(*x) ** 2).sum(), backend="aot_eager", fullgraph=True)
    mine, other = ([x.clone().requires_grad_() for x in at] for _ in range(2))
    compiled(*mine).backward()
    (f(*other) ** 2).sum().backward()
    for a, b in zip(mine, other, strict=True):
        torch.testing.assert_close(a.grad, b.grad)


def test_what_cannot_be_had_is_said() -> None:
    model = four_bar()
    q, v, x = (y[0] for y in states(model, 1))
    with pytest.raises(ValueError, match="'rollout' cannot be had"):
        robomodel.torch.function(model, "rollout")
    f = robomodel.torch.function(model, "aba")
    with pytest.raises(TypeError, match=r"arguments \(q, v, tau\), got 2"):
        f(q, v)
    with pytest.raises(TypeError, match="float32 or float64"):
        f(q, v, torch.ones(1, dtype=torch.int64))
    with pytest.raises(ValueError, match="v must have the shape"):
        f(q, q, x)
    with pytest.raises(ValueError, match="do not broadcast"):
        f(q.expand(2, 3), v.expand(3, 1), x)
    with pytest.raises(ValueError, match="tau is on meta"):
        f(q, v, x.to("meta"))
    slopes = robomodel.torch.function(model, "aba_derivatives")
    with pytest.raises(NotImplementedError, match="made of derivatives"):
        slopes(q, v, x.requires_grad_())[0].sum().backward()


def test_the_page_shows_what_runs() -> None:
    page = Path(__file__).parent.parent / "docs" / "other-machines.md"
    snippet, _ = re.findall(r"```py\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(snippet, str(page), "exec"), {"model": four_bar()})
