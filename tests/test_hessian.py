"""Second derivatives of inverse dynamics: against CasADi, first ones, and second differences."""

from __future__ import annotations

import casadi
import numpy as np
import pytest
from cases import few
from mechanisms import KINDS, random_mechanism
from numpy.typing import NDArray
from random_models import load
from shipped_robots import SMALL
from test_derivatives import DIFFERENCING, TEXTS, random_states, relative, step
from texts import four_bar, link

import robomodel as rm
from benchmarks.shared.chains import chain
from robomodel.dynamics.algorithm import AlgorithmSpec, traced_algorithm
from robomodel.kernels import Program, Trace
from robomodel.kernels.differentiate import differentiate, gradient

Array = NDArray[np.float64]


def evaluate(program: Program, arguments: list[Array], count: int) -> list[Array]:
    """So many matrices (states, nv, nv)."""
    states, nv = arguments[1].shape
    found = program([x for argument in arguments for x in argument.T])
    flat = np.array([np.broadcast_to(f, states) for f in found]).T
    return list(np.moveaxis(flat.reshape(states, count, nv, nv), 1, 0))


def check(model: rm.Model, q: Array) -> None:
    """Against differences of the first derivatives along integrate."""
    rng = np.random.default_rng(6)
    v, a, w = rng.standard_normal((3, len(q), model.nv))
    qq, vv, qv, aq = evaluate(
        traced_algorithm(model, AlgorithmSpec("rnea_hessian_product")).program, [q, v, a, w], 4
    )
    first = traced_algorithm(model, AlgorithmSpec("rnea_derivatives")).program
    # by differences of the fourth order, all of them in one batch
    h = 0.1 * step(model, q)
    moves = h * np.array([-2.0, -1.0, 1.0, 2.0])[:, None, None] * np.eye(model.nv)
    moves = np.repeat(moves[:, :, None], len(q), axis=2)  # (4, nv, states, nv)
    q_there = model.integrate(np.broadcast_to(q, (*moves.shape[:-1], model.nq)), moves)
    at_q, at_v = np.broadcast_to(q, q_there.shape), np.broadcast_to(v, moves.shape)

    def slopes(q: Array, v: Array) -> Array:
        """How those of φ by q, v and a change: (states, 3, nv, along)."""
        parts = [np.broadcast_to(x, moves.shape) for x in (v, a, w)]
        flat = [x.reshape(-1, x.shape[-1]) for x in (q, *parts)]
        matrices = evaluate(first, flat[:3], 3)
        found = np.stack([np.einsum("ni,nij->nj", flat[3], m) for m in matrices], axis=1)
        found = found.reshape(*moves.shape[:3], 3, model.nv)
        return np.einsum("p,pensj->nsje", np.array([1, -8, 8, -1]) / (12 * h), found)

    along_q, along_v = slopes(q_there, at_v), slopes(at_q, v + moves)
    size = [np.abs(w)[..., None] * np.abs(m) for m in evaluate(first, [q, v, a], 3)]
    twice = along_q[:, 0]
    for found, expected in (
        (qq, (twice + twice.swapaxes(1, 2)) / 2),
        (vv, along_v[:, 1]),
        (qv, along_v[:, 0]),
        (qv.swapaxes(1, 2), along_q[:, 1]),
        (aq, along_q[:, 2]),
    ):
        assert relative(found, expected, *size) < DIFFERENCING
    np.testing.assert_array_equal(qq, qq.swapaxes(1, 2))
    np.testing.assert_array_equal(vv, vv.swapaxes(1, 2))


@pytest.mark.parametrize("name", SMALL)
def test_shipped_robots(name: str) -> None:
    model = rm.robots.load(name)
    check(model, random_states(model, 2))


@pytest.mark.slow_cases("rod", "spherical")
@pytest.mark.parametrize("name", few(TEXTS, "planar", "spherical", "screw", "coupling", "rod"))
def test_joints_and_constraints(name: str) -> None:
    model = rm.load(TEXTS[name], gravity=(1.0, -2.0, 3.0))
    check(model, random_states(model, 2))


@pytest.mark.slow_cases("planar")
@pytest.mark.parametrize(
    "name", few(["planar", "spherical", "mimic", "four_bar", "rod over a ball"], "planar", "mimic")
)
def test_joints_and_constraints_on_a_floating_base(name: str) -> None:
    text = TEXTS[name].replace('<link name="base"/>', link("base"))
    model = rm.load(text, floating_base=True)
    check(model, random_states(model, 1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "tether"])
def test_every_kind_of_mechanism(kind: str) -> None:
    for seed in range(20):
        loaded = load(random_mechanism(np.random.default_rng([seed, 9]), [kind], n_joints=2))
        if loaded is not None:
            check(loaded[0], loaded[1][None])
            return
    pytest.fail("no mechanism of this kind moves")


@pytest.mark.parametrize("kind", few(["geared", "plain"], "plain"))
def test_exactly_what_casadi_differentiates(kind: str) -> None:
    model = chain(kind, 4, rng=np.random.default_rng(2))
    n = model.nv
    function = rm.to_casadi(model, "rnea")
    q, v, a, w = (casadi.SX.sym(name, n) for name in "qvaw")
    whole = casadi.vertcat(q, v, a)
    hessian, _ = casadi.hessian(casadi.dot(w, function(q, v, a)), whole)
    rng = np.random.default_rng(3)
    numbers = rng.standard_normal((4, n))
    exact = np.array(casadi.Function("h", [q, v, a, w], [hessian])(*numbers))
    qq, vv, qv, aq = rm.dynamics.rnea_hessian_product(model, *numbers)
    zero = np.zeros((n, n))
    found = np.block([[qq, qv, aq.T], [qv.T, vv, zero], [aq, zero, zero]])
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12 * np.abs(exact).max())


@pytest.mark.slow
def test_along_q_it_is_that_of_integrate() -> None:
    """Where motions do not commute, too: a quadratic model of φ along one integrate."""
    text = TEXTS["spherical"].replace('<link name="base"/>', link("base"))
    model = rm.load(text, floating_base=True)
    q = model.random_configuration(1)
    rng = np.random.default_rng(2)
    v, a, w, delta = rng.standard_normal((4, model.nv))

    def phi(t: float) -> float:
        return float(w @ rm.rnea(model, model.integrate(q, t * delta), v, a))

    h = 1e-2
    weights = (-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)
    expected = sum(c * phi(n * h) for n, c in enumerate(weights, -4)) / h**2
    qq = rm.dynamics.rnea_hessian_product(model, q, v, a, w)[0]
    assert delta @ qq @ delta == pytest.approx(expected, rel=1e-8)


@pytest.mark.slow
def test_the_public_function() -> None:
    """Batches, both backends, wrenches, and wrong arguments."""
    model = rm.load(four_bar().replace('<link name="base"/>', link("base")), floating_base=True)
    rng = np.random.default_rng(4)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    v, a = rng.standard_normal((2, 5, 1, model.nv))
    w, f_ext = rng.standard_normal(model.nv), {"crank": rng.standard_normal((3, 6))}
    found = rm.dynamics.rnea_hessian_product(model, q, v, a, w, f_ext=f_ext)
    for x, y in zip(
        found,
        rm.dynamics.rnea_hessian_product(model, q, v, a, w, f_ext=f_ext, backend="numpy"),
        strict=True,
    ):
        assert x.shape == (5, 3, model.nv, model.nv)
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11 * np.abs(y).max())
    # linear in w
    parts = [
        rm.dynamics.rnea_hessian_product(model, q[0], v[0, 0], a[0, 0], e) for e in np.eye(model.nv)
    ]
    whole = rm.dynamics.rnea_hessian_product(model, q[0], v[0, 0], a[0, 0], w)
    for k in range(4):
        summed = sum(x * part[k] for x, part in zip(w, parts, strict=True))
        np.testing.assert_allclose(whole[k], summed, atol=1e-11 * np.abs(summed).max())
    kernel = rm.compile(model, "rnea_hessian_product")
    np.testing.assert_array_equal(kernel(q[0], v[0, 0], a[0, 0], w)[1], whole[1])
    with pytest.raises(ValueError, match="w needs nv = 7 numbers"):
        rm.dynamics.rnea_hessian_product(model, q, v, a, w[:3])
    with pytest.raises(KeyError, match="no link 'crnk'"):
        rm.dynamics.rnea_hessian_product(model, q, v, a, w, f_ext={"crnk": np.zeros(6)})
    symbolic = rm.to_casadi(model, "rnea_hessian_product")(q[0], v[0, 0], a[0, 0], w)
    np.testing.assert_allclose(np.array(symbolic[1]), whole[1], rtol=1e-11, atol=1e-11)


def test_nothing_moves() -> None:
    model = rm.load('<robot name="still"><link name="base"/></robot>')
    empty = np.zeros(0)
    for matrix in rm.dynamics.rnea_hessian_product(model, empty, empty, empty, empty):
        assert matrix.shape == (0, 0)


@pytest.mark.slow
def test_structure_keeps_it_small() -> None:
    model = rm.robots.load("mini_cheetah")
    assert traced_algorithm(model, AlgorithmSpec("rnea_hessian_product")).program.flops <= 12273


# ---- backwards through a trace -------------------------------------------------------------------


def test_gradient_is_what_going_forward_finds() -> None:
    traced = Trace()
    x, y, z, u = traced.inputs(4)
    shared = (x * y).sin() - 2.0 * z
    output = shared * shared / (1.5 + x.cos()) + (shared * shared + 1.0).sqrt() - (-y) * x
    backwards = gradient(output, [x, y, z, u])
    forwards = [
        column[0] for column in differentiate(traced, [output], [{i: 1.0} for i in (x, y, z, u)])
    ]
    assert backwards[3] == 0.0
    at = [0.3, -0.7, 1.1, 5.0]
    found, expected = (traced.program(g)(at) for g in (backwards, forwards))
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert gradient(3.0, [x]) == [0.0]
    assert gradient(x, [x, y]) == [1.0, 0.0]
    assert gradient(traced.stop_gradient(x) * y, [x, y])[0] == 0.0
    made = x * y  # an input by what is asked, though it is made of another
    found = traced.program(gradient(made * x, [x, made]))(at)
    np.testing.assert_allclose(found, [0.3 * -0.7, 0.3], rtol=1e-14)
