"""Derivatives: of traces against calculus, of the dynamics against differences along integrate."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from agreement import relative
from cases import few
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanisms import KINDS, random_mechanism
from numpy.typing import NDArray
from random_models import load
from shipped_robots import SMALL
from texts import coupling, fan, four_bar, joint, link, loop, robot

import robomodel as rm
from benchmarks.shared.chains import chain
from robomodel.dynamics.algorithm import AlgorithmSpec, traced_algorithm
from robomodel.dynamics.kinematics.state import position_directions
from robomodel.dynamics.recursions.aba import aba
from robomodel.dynamics.recursions.derivatives import aba_derivatives, rnea_derivatives
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.kernels import Program, Trace
from robomodel.kernels.differentiate import differentiate
from robomodel.scalars import div, sincos, sqrt
from robomodel.spatial import Wrench

Array = NDArray[np.float64]

# ---- differentiate -------------------------------------------------------------------------------


def gradient(f: Callable, *at: float) -> list[float]:
    """∂f by each argument, through a trace."""
    trace = Trace()
    x = trace.inputs(len(at))
    columns = differentiate(trace, [f(*x)], [{x_i: 1.0} for x_i in x])
    return trace.program([column[0] for column in columns])(list(at))


@pytest.mark.parametrize(
    ("f", "at", "expected"),
    [
        (lambda x, y: x + y, (0.3, 0.7), (1.0, 1.0)),
        (lambda x, y: x - y, (0.3, 0.7), (1.0, -1.0)),
        (lambda x, y: y - 2.0 * x, (0.3, 0.7), (-2.0, 1.0)),
        (lambda x, y: x * y, (0.3, 0.7), (0.7, 0.3)),
        (lambda x, y: -(x * y), (0.3, 0.7), (-0.7, -0.3)),
        (lambda x, y: x / y, (0.3, 0.7), (1 / 0.7, -0.3 / 0.49)),
        (lambda x: 1.0 / x, (0.3,), (-1 / 0.09,)),
        (lambda x: 3.0 / x, (0.3,), (-3 / 0.09,)),
        (lambda x: x / 4.0, (0.3,), (0.25,)),
        (lambda x: x * x, (0.3,), (0.6,)),
        (lambda x: x * x * x, (0.3,), (0.27,)),
        (lambda x: x + 5.0, (0.3,), (1.0,)),
        (lambda x: 5.0 - x, (0.3,), (-1.0,)),
        (lambda x: x.sqrt(), (0.3,), (0.5 / math.sqrt(0.3),)),
        (lambda x: x.sin(), (0.3,), (math.cos(0.3),)),
        (lambda x: x.cos(), (0.3,), (-math.sin(0.3),)),
        (lambda x, y: (x - 0.5).select(x * y, y), (0.3, 0.7), (0.7, 0.3)),
        (lambda x, y: (x - 0.5).select(x * y, y), (0.8, 0.7), (0.0, 1.0)),
        (lambda x: (-2.0 * x).sin(), (0.3,), (-2 * math.cos(0.6),)),
        (
            lambda x, y: ((x * y).sin() + x * x).sqrt(),
            (0.8, 0.9),
            tuple(
                (d * math.cos(0.72) + own) / (2 * math.sqrt(math.sin(0.72) + 0.64))
                for d, own in ((0.9, 1.6), (0.8, 0.0))
            ),
        ),
    ],
)
def test_known_derivatives(f: Callable, at: tuple, expected: tuple) -> None:
    assert gradient(f, *at) == pytest.approx(expected, rel=1e-14)


def test_structural_zeros_vanish() -> None:
    trace = Trace()
    x, y, z = trace.inputs(3)
    columns = differentiate(trace, [x * y, x - 1.0, 2.5, z], [{x: 1.0}, {z: 1.0}, {}])
    assert columns == [[y, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0] * 4]
    # what cancels is zero, and what no output needs is not visited
    before = len(trace.values)
    assert differentiate(trace, [(x + y) - x], [{x: 1.0}]) == [[0.0]]
    assert len(trace.values) == before + 2


def test_equal_derivatives_are_one_value() -> None:
    trace = Trace()
    (x,) = trace.inputs(1)
    ((first, second, third),) = differentiate(trace, [x.sin(), -x.cos(), 2.0 * x.sin()], [{x: 1.0}])
    assert first is x.cos()
    assert second is x.sin()
    assert third is 2.0 * x.cos()


def test_directions_may_be_any_and_say_how_intermediate_values_change() -> None:
    trace = Trace()
    x, y, rate = trace.inputs(3)
    s = x.sin()
    along = {x: rate, y: 2.0}
    ((found,),) = differentiate(trace, [s * y], [along])
    assert trace.program([found])([0.3, 0.7, 5.0]) == pytest.approx(
        [5 * 0.7 * math.cos(0.3) + 2 * math.sin(0.3)]
    )
    # along the first direction s is said to change by rate, along the second it does as it must
    both = differentiate(trace, [s * y + x], [{x: 1.0, s: rate}, {x: 1.0}, {x: 1.0, s: 0.0}])
    assert trace.program([row[0] for row in both])([0.3, 0.7, 5.0]) == pytest.approx(
        [1 + 5 * 0.7, 1 + 0.7 * math.cos(0.3), 1.0]
    )


def test_what_is_held_is_constant_and_opaque() -> None:
    trace = Trace()
    x, y = trace.inputs(2)
    held = trace.stop_gradient(-x)
    assert trace.stop_gradient(-x) is held
    assert trace.stop_gradient(2.0) == 2.0
    product = held * y
    assert product.operands == (y, held)  # the sign is not taken out
    assert differentiate(trace, [product], [{x: 1.0}, {y: 1.0}]) == [[0.0], [held]]
    program = trace.program([product, held, trace.stop_gradient(x)])
    assert program.counts == {"neg": 1, "mul": 1}
    assert program([2.0, 3.0]) == [-6.0, -2.0, 2.0]


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 40), st.integers(0, 40)), max_size=30),
    st.lists(st.floats(0.3, 2.0), min_size=3, max_size=3),
)
def test_random_programs(recipe: list[tuple[int, int, int]], inputs: list[float]) -> None:
    """Against dual numbers in one direction."""
    trace = Trace()
    traced: list = [*trace.inputs(3), 1.0, -0.5]
    duals: list = [*((np.float64(x), i + 1.0) for i, x in enumerate(inputs)), (1.0, 0), (-0.5, 0)]
    rules: list[Callable] = [
        lambda x, y: (x + y, lambda a, b, da, db: (a + b, da + db)),
        lambda x, y: (x - y, lambda a, b, da, db: (a - b, da - db)),
        lambda x, y: (x * y, lambda a, b, da, db: (a * b, da * b + a * db)),
        lambda x, y: (
            div(x, 2.5 + y * y),
            lambda a, b, da, db: (
                a / (2.5 + b * b),
                da / (2.5 + b * b) - 2 * a * b * db / (2.5 + b * b) ** 2,
            ),
        ),
        lambda x, _: (-x, lambda a, _b, da, _db: (-a, -da)),
        lambda x, _: (
            sqrt(1.0 + x * x),
            lambda a, _b, da, _db: (math.sqrt(1 + a * a), a * da / math.sqrt(1 + a * a)),
        ),
        lambda x, _: (
            sincos(x)[0],
            lambda a, _b, da, _db: (math.sin(a), math.cos(a) * da),
        ),
        lambda x, _: (
            sincos(x)[1],
            lambda a, _b, da, _db: (math.cos(a), -math.sin(a) * da),
        ),
    ]
    for operation, first, second in recipe:
        i, j = first % len(traced), second % len(traced)
        value, rule = rules[operation](traced[i], traced[j])
        dual = rule(duals[i][0], duals[j][0], duals[i][1], duals[j][1])
        if max(abs(x) for x in dual) < 1e3:
            traced.append(value)
            duals.append(dual)
    (found,) = differentiate(trace, traced, [{traced[i]: i + 1.0 for i in range(3)}])
    results = trace.program(found)(inputs)
    assert results == pytest.approx([d for _, d in duals], rel=1e-9, abs=1e-9)


# ---- dynamics ------------------------------------------------------------------------------------

STEP = 1e-4  # of the fastest joint, so that differences are off by STEP⁴ and rounding / STEP
DIFFERENCING = 1e-7
EXACT = 1e-11


def by_state(found: Array, expected: Array, *also: Array) -> float:
    """The worst of :func:`relative`, state by state."""
    return max((relative(*one) for one in zip(found, expected, *also, strict=True)), default=0.0)


def difference(f: Callable[[float], Array], h: float) -> Array:
    """f' at zero by central differences of the fourth order."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def step(model: rm.Model, q: Array) -> float:
    fastest = np.max(np.abs(model.constraint_jacobian(q)), initial=1.0)
    return STEP / float(fastest)


def differences(model: rm.Model, algorithm: Callable, q: Array, v: Array, x: Array) -> list[Array]:
    """∂/∂q along integrate and ∂/∂v of rnea or aba, by differencing."""

    def run(q: Array, v: Array) -> Array:
        return algorithm(model, q, v, x, backend="numpy")

    h = step(model, q)
    columns: list[list[Array]] = [[], []]
    for e in np.eye(model.nv):
        columns[0].append(difference(lambda t, e=e: run(model.integrate(q, t * e), v), h))
        columns[1].append(difference(lambda t, e=e: run(q, v + t * e), h))
    return [np.stack(c, axis=-1) for c in columns]


def program_of(algorithm: str, model: rm.Model) -> Program:
    return traced_algorithm(model, AlgorithmSpec(algorithm)).program


def evaluate(program: Program, model: rm.Model, q: Array, v: Array, x: Array) -> Array:
    """The program's three matrices at every state: (states, 3, nv, nv)."""
    found = program([*q.T, *v.T, *x.T])
    flat = np.array([np.broadcast_to(f, len(q)) for f in found])
    return flat.T.reshape(len(q), 3, model.nv, model.nv)


def check(model: rm.Model, q: Array) -> None:
    """Both programs at these configurations, against differences and each other."""
    rng = np.random.default_rng(5)
    v, a, tau = rng.standard_normal((3, len(q), model.nv))
    mass = rm.crba(model, q, backend="numpy")
    inverse_dynamics = evaluate(program_of("rnea_derivatives", model), model, q, v, a)
    for found, expected in zip(
        np.moveaxis(inverse_dynamics[:, :2], 1, 0),
        differences(model, rm.rnea, q, v, a),
        strict=True,
    ):
        forces = rm.rnea(model, q, v, a, backend="numpy")
        assert by_state(found, expected, forces) < DIFFERENCING
    np.testing.assert_array_equal(inverse_dynamics[:, 2], inverse_dynamics[:, 2].swapaxes(1, 2))
    assert by_state(inverse_dynamics[:, 2], mass) < EXACT

    forward = evaluate(program_of("aba_derivatives", model), model, q, v, tau)
    accelerations = rm.aba(model, q, v, tau, backend="numpy")
    for found, expected in zip(
        np.moveaxis(forward[:, :2], 1, 0), differences(model, rm.aba, q, v, tau), strict=True
    ):
        assert by_state(found, expected, accelerations) < DIFFERENCING
    inverse = forward[:, 2]
    np.testing.assert_array_equal(inverse, inverse.swapaxes(1, 2))
    identity = np.broadcast_to(np.eye(model.nv), mass.shape)
    assert by_state(inverse @ mass, identity, mass, inverse) < EXACT

    # ∂a = -M⁻¹ ∂tau at the a that tau makes
    at_a = evaluate(program_of("rnea_derivatives", model), model, q, v, accelerations)
    for k in range(2):
        terms = np.abs(inverse) @ np.abs(at_a[:, k])
        assert by_state(forward[:, k], -inverse @ at_a[:, k], terms) < EXACT


def random_states(model: rm.Model, count: int = 3) -> Array:
    rng = np.random.default_rng(3)
    return np.array([model.random_configuration(rng, base_pose="random") for _ in range(count)])


@pytest.mark.parametrize("name", SMALL)
def test_shipped_robots(name: str) -> None:
    model = rm.robots.load(name)
    check(model, random_states(model))


HINGE = "0.3 -0.1 0.2"
TILT = "0.4 -0.3 0.7"


def between(*middle: str, **kwargs: str) -> str:
    """A hinge, the joint in question, tilted, and a hinge that it carries."""
    return robot(
        *(link(n) for n in "abc"),
        joint("first", "base", "a", axis="0.6 0 0.8"),
        joint("middle", "a", "b", HINGE, rpy=TILT, **kwargs),
        joint("last", "b", "c", HINGE, axis="1 0 0"),
        *middle,
    )


MIMIC = '<mimic joint="first" multiplier="-1.5" offset="0.2"/>'
ROD = loop("rod", "rod", "base", "c", "1 0.5 0.2", "0.1 0.4 0", more="")
TEXTS = {
    "planar": between(kind="planar", axis="0 1 0"),
    "spherical": between(kind="spherical"),
    "floating": between(kind="floating"),
    "screw": between(kind="screw", axis="0.36 -0.48 0.8", more='<pitch value="0.05"/>'),
    "prismatic": between(
        kind="prismatic",
        axis="0 0.6 0.8",
        more='<limit effort="1" velocity="1" lower="-1" upper="1"/>',
    ),
    "mimic": between(more=MIMIC),
    "coupling": fan(coupling("sum", {"a": 1.0, "b": -2.0, "c": 0.5}, 0.3)),
    "four_bar": four_bar(),
    "rocker driven": four_bar(marks=(False, False, True)),
    "rod": between(ROD),
    "rod over a ball": between(ROD, kind="spherical"),
    "rod over a plane": between(ROD, kind="planar"),
    "rod to a free body": between(ROD, kind="floating"),
    "two free bodies": robot(
        link("a"),
        link("b"),
        link("c"),
        joint("free_a", "base", "a", rpy=TILT, kind="floating"),
        joint("free_b", "base", "b", HINGE, kind="floating"),
        joint("hinge", "b", "c", HINGE),
    ),
}


@pytest.mark.slow_cases("two free bodies", "planar", "screw", "rocker driven", "floating", "mimic")
@pytest.mark.parametrize("name", few(TEXTS, *(key for key in TEXTS if not key.startswith("rod"))))
def test_joints_and_constraints(name: str) -> None:
    model = rm.load(TEXTS[name])
    check(model, random_states(model))


@pytest.mark.slow_cases("spherical", "four_bar")
@pytest.mark.parametrize(
    "name",
    few(["planar", "spherical", "mimic", "four_bar", "rod over a ball"], "spherical", "four_bar"),
)
def test_joints_and_constraints_on_a_floating_base(name: str) -> None:
    text = TEXTS[name].replace('<link name="base"/>', link("base"))
    model = rm.load(text, floating_base=True, gravity=(1.0, -2.0, 3.0))
    check(model, random_states(model, 2))


def test_both_branches_of_a_four_bar() -> None:
    model = rm.load(four_bar())
    guesses = ([0.8, 0.0, 1.5], [0.8, -2.0, -2.0])
    q = np.array([model.configuration({"j_crank": 0.8}, guess=guess) for guess in guesses])
    assert np.sin(q[0, 2]) > 0.5 > -0.5 > np.sin(q[1, 2])
    check(model, q)


def test_nothing_moves() -> None:
    model = rm.load(robot())
    for algorithm in ("rnea_derivatives", "aba_derivatives"):
        assert program_of(algorithm, model) == Program(0, (), ())


@pytest.mark.slow_cases("rod to a free body", "rod over a ball")
@pytest.mark.parametrize("name", ["floating", "rod over a ball", "rod to a free body", "planar"])
def test_directions_are_tangents(name: str) -> None:
    """They say how q moves along integrate, and agree with themselves on what depends on q."""
    model = rm.load(TEXTS[name])
    q = random_states(model)
    trace = Trace()
    inputs = trace.inputs(model.nq)
    for e, direction in zip(np.eye(model.nv), position_directions(model, inputs), strict=True):
        own = {x: direction[x] for x in inputs if x in direction}
        found = trace.program([own.get(x, 0.0) for x in inputs])(list(q.T))
        rates = np.array([np.broadcast_to(f, len(q)) for f in found]).T
        expected = difference(lambda t, e=e: model.integrate(q, t * e), step(model, q))
        assert by_state(rates, expected) < DIFFERENCING
        functions = [x for x in direction if x not in own]
        (derived,) = differentiate(trace, functions, [own])
        said = [direction[x] for x in functions]
        for a, b in zip(*(trace.program(x)(list(q.T)) for x in (said, derived)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


@pytest.mark.slow
def test_external_forces_stay_in_their_bodies_axes() -> None:
    model = rm.load(
        TEXTS["four_bar"].replace('<link name="base"/>', link("base")), floating_base=True
    )
    rng = np.random.default_rng(1)
    forces = {
        body: Wrench(tuple(x[:3]), tuple(x[3:]))
        for body, x in enumerate(rng.standard_normal((len(model.nodes), 6)).tolist())
    }
    q = random_states(model)
    v, x = rng.standard_normal((2, len(q), model.nv))
    for plain, derivatives in ((rnea, rnea_derivatives), (aba, aba_derivatives)):

        def run(model: rm.Model, q: Array, v: Array, x: Array, backend: str, f=plain) -> Array:
            assert backend == "numpy"
            return np.array(f(model, list(q.T), list(v.T), list(x.T), forces)).T

        trace = Trace()
        inputs = [trace.inputs(n) for n in (model.nq, model.nv, model.nv)]
        matrices = derivatives(model, *inputs, forces)
        program = trace.program([y for matrix in matrices for row in matrix for y in row])
        found = evaluate(program, model, q, v, x)
        for k, expected in enumerate(differences(model, run, q, v, x)):
            assert by_state(found[:, k], expected, run(model, q, v, x, "numpy")) < DIFFERENCING


@pytest.mark.slow
def test_structure_keeps_the_derivatives_small() -> None:
    """Counts that sparsity must not lose (flops of whole programs), in the frames of the file."""
    model = rm.robots.load("mini_cheetah")
    assert program_of("rnea_derivatives", model).flops <= 5243
    assert program_of("aba_derivatives", model).flops <= 16509
    arm = chain("plain", 12, rng=np.random.default_rng(1))
    assert program_of("rnea_derivatives", arm).flops <= 20811


@pytest.mark.slow_cases("gear")
@pytest.mark.parametrize("kind", few([*KINDS, "tether"], "gear"))
def test_every_kind_of_mechanism(kind: str) -> None:
    checked = 0
    for seed in range(10):
        rng = np.random.default_rng([seed, KINDS.index(kind) if kind in KINDS else 99])
        loaded = load(random_mechanism(rng, [kind], n_joints=3))
        if loaded is not None:
            check(loaded[0], loaded[1][None])
            checked += 1
        if checked == 2:
            return
    pytest.fail(f"only {checked} mechanisms of this kind move")
