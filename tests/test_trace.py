"""Tracing: folding, merging, fusing, and the algorithms as programs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shipped_robots import ROBOTS

import robomodel as rm
from robomodel.dynamics.recursions.aba import aba
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.kernels import Program, Trace, Traced
from robomodel.scalars import div, select, sincos, sqrt


def trace_of(algorithm: str, model: rm.Model) -> Program:
    trace = Trace()
    q = trace.inputs(model.nq)
    if algorithm == "crba":
        return trace.program([x for row in crba(model, q) for x in row])
    v, x = trace.inputs(model.nv), trace.inputs(model.nv)
    return trace.program({"aba": aba, "rnea": rnea}[algorithm](model, q, v, x))


def test_zeros_and_ones_vanish() -> None:
    trace = Trace()
    (x,) = trace.inputs(1)
    assert x + 0.0 is x
    assert x - 0.0 is x
    assert x * 1.0 is x
    assert x * 0.0 == 0.0
    assert x - x == 0.0
    negative = -x
    assert -negative is x
    assert 0.0 + x is x
    assert 1.0 * x is x
    assert div(x, 1.0) is x
    assert len(trace.values) == 2  # the input and its negation


def test_equal_expressions_are_one_value() -> None:
    trace = Trace()
    x, y = trace.inputs(2)
    assert x * y is y * x
    assert x + y is y + x
    assert 2.0 * (3.0 * x) is x * 6.0
    assert 2.0 + (3.0 + x) is x + 5.0
    assert x + (-y) is x - y
    assert x - (-y) is x + y
    assert (-x) * (-y) is x * y
    assert -(2.0 * x) is -2.0 * x
    assert (-x).cos() is x.cos()
    assert sincos(x)[0] is x.sin()


def test_sines_of_an_angle_that_has_turned_follow_from_those_before() -> None:
    trace = Trace()
    x, by = trace.inputs(2)
    y = x + by
    trace.turn(y, x, by)
    z = y + by  # from what follows itself
    trace.turn(z, y, by)
    angles = (y, -y, 0.7 + y, z, z + (-2.0))
    program = trace.program([f for a in angles for f in (a.sin(), a.cos())])
    assert program.counts["sin"] == program.counts["cos"] == 3  # of x, x + 0.7 and x - 2
    x_, by_ = np.random.default_rng(0).uniform(-1, 1, (2, 1000)) * np.array([[40.0], [0.3]])
    values = np.array(program([x_, by_]))
    expected = [x_ + by_, -x_ - by_, x_ + by_ + 0.7, x_ + 2 * by_, x_ + 2 * by_ - 2.0]
    np.testing.assert_allclose(values[::2], np.sin(expected), atol=2e-14)  # 40 rad: of x + by
    np.testing.assert_allclose(values[1::2], np.cos(expected), atol=2e-14)
    near = np.array(program([0.0 * x_, by_]))
    np.testing.assert_allclose(near[6:8], [np.sin(2 * by_), np.cos(2 * by_)], atol=4e-16)


def test_signs_cost_nothing_where_the_opposite_is_known() -> None:
    trace = Trace()
    x, y = trace.inputs(2)
    difference = x - y
    assert -(y - x) is difference or -difference is y - x
    product = 3.0 * x
    opposite = -3.0 * x
    assert isinstance(opposite, Traced)
    assert opposite.operands == (product,)


def test_programs_cannot_branch() -> None:
    (x,) = Trace().inputs(1)
    with pytest.raises(TypeError, match="no truth"):
        bool(x)


def test_what_no_output_needs_is_dropped() -> None:
    trace = Trace()
    x, y = trace.inputs(2)
    unused = x.sin() * y
    program = trace.program([x + y, 2.5])
    assert unused.index < len(trace.values)
    assert program.counts == {"add": 1}
    assert program([1.0, 2.0]) == [3.0, 2.5]


def test_products_are_fused_into_the_only_addition_that_uses_them() -> None:
    trace = Trace()
    x, y, z = trace.inputs(3)
    twice = x * z
    program = trace.program([x * y + z, z - y * z, 2.0 * y - x, twice + y, twice - y]).fused()
    assert program.counts == {"fma": 1, "fnma": 1, "fms": 1, "mul": 1, "add": 1, "sub": 1}
    assert program.flops == 9
    x_, y_, z_ = 1.5, -0.3, 2.0
    assert program([x_, y_, z_]) == [
        x_ * y_ + z_, z_ - y_ * z_, 2 * y_ - x_, x_ * z_ + y_, x_ * z_ - y_
    ]  # fmt: skip


def test_programs_print_readably() -> None:
    trace = Trace()
    x, y = trace.inputs(2)
    text = str(trace.program([x * y + 1.0, x.sin()]))
    assert text.splitlines() == ["v2 = x0 * x1", "v3 = 1.0 + v2", "v4 = sin(x0)", "return v3, v4"]


OPERATIONS = st.sampled_from(["add", "sub", "mul", "div", "neg", "sin", "cos", "sqrt", "select"])
CONSTANTS = st.sampled_from([0.0, 1.0, -1.0, 2.0, -0.5, 3.25])


@pytest.mark.slow
@settings(max_examples=300)
@given(
    st.lists(st.tuples(OPERATIONS, st.integers(0, 40), st.integers(0, 40)), max_size=40),
    st.lists(CONSTANTS, min_size=3, max_size=3),
    st.lists(st.floats(0.3, 2.0), min_size=3, max_size=3),
)
def test_random_programs_keep_their_meaning(
    recipe: list[tuple[str, int, int]], constants: list[float], inputs: list[float]
) -> None:
    trace = Trace()
    traced: list = [*trace.inputs(3), *constants]
    plain: list = [*np.array(inputs), *constants]

    def apply(operation: str, x: object, y: object) -> object:
        match operation:
            case "add":
                return x + y
            case "sub":
                return x - y
            case "mul":
                return x * y
            case "div":
                return div(x, 2.5 + y * y)
            case "neg":
                return -x
            case "sqrt":
                return sqrt(1.0 + x * x)
            case "select":
                return select(x - 0.377, y, -x)
        s, c = sincos(x)
        return s if operation == "sin" else c

    for operation, first, second in recipe:
        i, j = first % len(traced), second % len(traced)
        value = apply(operation, plain[i], plain[j])
        if abs(value) > 1e3 or (operation == "select" and abs(plain[i] - 0.377) < 1e-6):
            continue
        traced.append(apply(operation, traced[i], traced[j]))
        plain.append(value)
    program = trace.program(traced)
    for version in (program, program.fused()):
        for found, expected in zip(version(np.array(inputs)), plain, strict=True):
            assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)
    assert program.fused().flops == program.flops


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("algorithm", ["rnea", "aba", "crba"])
def test_the_algorithms_trace(name: str, algorithm: str) -> None:
    """The very source of the dynamics, run on traced scalars, gives the same numbers."""
    model = rm.robots.load(name)
    program = trace_of(algorithm, model).fused()
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(5)])
    v, x = rng.standard_normal((2, 5, model.nv))
    if algorithm == "crba":
        found, expected = program(list(q.T)), rm.crba(model, q).reshape(5, -1)
    else:
        found = program([*q.T, *v.T, *x.T])
        expected = getattr(rm, algorithm)(model, q, v, x)
    result = np.array([np.broadcast_to(f, 5) for f in found]).T
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


def test_structure_keeps_the_algorithms_small() -> None:
    """Counts that the structure of spatial algebra must not lose (flops of whole programs)."""
    model = rm.robots.load("mini_cheetah")
    assert trace_of("aba", model).flops <= 3482
    assert trace_of("rnea", model).flops <= 1891
    assert trace_of("crba", model).flops <= 590
    # a planar linkage is computed in the plane, though its file is spatial; 3 tell a dead point
    assert trace_of("aba", rm.robots.load("four_bar")).flops <= 80


@pytest.mark.parametrize("number", [2, True, np.int64(3), 1 + 2j])
def test_a_trace_takes_no_numbers_but_floats(number: object) -> None:
    """A program would take them for indices of values."""
    trace = Trace()
    (x,) = trace.inputs(1)
    with pytest.raises(TypeError, match="a trace takes floats"):
        trace.add(x, number)
    with pytest.raises(TypeError, match="a trace takes floats"):
        trace.program([number])
    program = trace.program([x * np.float64(3.0) + np.float32(0.5).item()])
    assert all(type(y) in (int, float) for step in program.steps for y in step.operands)
    assert program([2.0]) == [6.5]
