"""One set of programs on every target: NumPy's kernels, C, PTX, JavaScript."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from compiled_targets import TARGETS, exact_turns

from robomodel.kernels import Program, Trace
from robomodel.kernels.plan import CHUNK
from robomodel.scalars import maximum, minimum, select, sincos, sqrt

on_each = pytest.mark.parametrize("target", TARGETS)
COMBINED = [
    (target, dtype)
    for target in TARGETS
    for dtype in ("float64", "float32")
    if (target, dtype) != ("javascript", "float32")  # which has no such numbers
]
on_each_dtype = pytest.mark.parametrize(("target", "dtype"), COMBINED)


def every_operation() -> Program:
    trace = Trace()
    x, y, z = trace.inputs(3)
    s, c = sincos(x)
    outputs = [
        x + y, x - y, x * y, x / y, -x, sqrt(x), s, c, select(x, y, z), select(x, 2.5, -0.0),
        x * y + z, x * y - z, z - x * y, minimum(x, y), maximum(x, y), 1.0 / y, 0.1 * x, x,
        sincos(x * y)[0], sincos(2.0)[0] * x, 3.25, -0.0, math.inf, -math.inf, math.nan, s,
        select(x - y, s, y), x * y + s, x + y, y,
    ]  # fmt: skip
    return trace.program(outputs).fused()


NUMBERS = [0.0, -0.0, 1.0, -1.5, 3.0, 1e9, -1e9, 1e-30, math.inf, -math.inf, math.nan, 0.7, -2e4]


@on_each_dtype
def test_every_operation_means_what_it_means_to_numpy(
    target: str, dtype: str, tmp_path: Path
) -> None:
    """Division by zero, infinities, signs of zero and what is no number included."""
    program = every_operation()
    count = len(program.outputs)
    grid = np.array(np.meshgrid(NUMBERS, NUMBERS, [0.25, math.nan])).reshape(3, -1).T
    more = np.random.default_rng(0).normal(size=(40, 3))
    columns = np.concatenate([grid, more]).astype(dtype).T
    given = [np.ascontiguousarray(x) for x in (columns[:1].T, columns[1:].T)]
    with np.errstate(all="ignore"):
        found = TARGETS[target](program, [1, 2, count], dtype, tmp_path)(given)
    assert found.dtype == dtype
    with np.errstate(all="ignore"):
        parts = np.broadcast_arrays(*program([*columns.astype(np.longdouble)]))
        product = (columns[0] * columns[1]).astype(np.longdouble)  # rounded before its sine
        once = np.sin(product)
        expected = np.stack(parts, axis=-1)
        expected[:, 18] = once
        summed = np.where(np.isin(np.arange(count), SUMS), np.abs(product)[:, None], 0.0)
        size = np.abs(expected) + summed
        sizes = np.where(np.isfinite(size), size, 0.0)
        smallest = np.finfo(dtype).tiny
        fits = np.abs(found - expected) <= 4 * np.finfo(dtype).eps * sizes + smallest
        fits |= (found == expected) | (np.isnan(found) & np.isnan(expected))
        large = np.abs(expected) > np.finfo(dtype).max
        fits |= large & (found == np.copysign(np.inf, expected.astype(float)))
    assert np.all(fits), np.argwhere(~fits)[:9]
    zeros = (expected == 0.0) & np.isin(np.arange(count), SIGNED)
    np.testing.assert_array_equal(np.signbit(found)[zeros], np.signbit(expected)[zeros])


SUMS = [10, 11, 12, 27]
"""Sums of products, which some machines round before they are summed."""
SIGNED = [0, 1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 20, 21, 29]
"""Results whose sign counts where they are zero; minima and sines of zeros are either."""


@on_each_dtype
def test_angles_of_any_size(target: str, dtype: str, tmp_path: Path) -> None:
    trace = Trace()
    x, y = trace.inputs(2)  # the sum is no input, so that its size is tested in place
    program = trace.program([*sincos(x), *sincos(x + y), y])
    rng = np.random.default_rng(0)
    eps, most = np.finfo(dtype).eps, np.finfo(dtype).max
    sizes = [1.0, 10.0, 1e3, 1e5, 1.1e5, 1e7, 1e8, 1e9, 1.1e9, 1e12, 1e20, most]
    angles = np.concatenate(
        [np.arange(-64, 65) * (np.pi / 4), *(s * rng.uniform(-1, 1, 300) for s in sizes),
         [0.0, -0.0, np.finfo(dtype).smallest_subnormal, 1e-30, -1e-8, most, -most]]
    ).astype(dtype)  # fmt: skip
    run = TARGETS[target](program, [2, 5], dtype, tmp_path)
    found = run([np.stack([angles, 0 * angles], axis=1)])
    expected = exact_turns(angles)
    assert np.max(np.abs(found[:, 2:4] - expected)) < 1.2 * eps
    assert np.max(np.abs(found[:, :2] - expected)) < 2.5 * eps  # may be brought to one turn first
    size = np.abs(expected[:, 0])  # the relative accuracy stays near multiples of π
    small = (size < 0.1) & (size > np.finfo(dtype).tiny) & (np.abs(angles) < 1e5)
    off = np.abs(found[:, 2] - expected[:, 0]) / np.where(small, size, 1.0)
    if target in ("numpy", "card"):  # where quarter turns are taken off by fused steps
        assert np.max(np.where(small, off, 0.0)) < 1.5 * eps
    tiny = np.array([1e-8, -3e-38], dtype)
    np.testing.assert_array_equal(run([np.stack([tiny, 0 * tiny], axis=1)])[:, 0], tiny)
    with np.errstate(invalid="ignore"):
        lost = run([np.array([[np.nan, 0], [np.inf, 0], [-np.inf, 0]], dtype)])
    assert np.isnan(lost[:, :4]).all()


def long_program() -> Program:
    """Of more steps than one function takes, whose values live long."""
    trace = Trace()
    x, y, z = trace.inputs(3)
    values = [x, y]
    for i in range(CHUNK // 2):
        values.append(0.5 * values[-1] + values[-2] * (0.3 + 1e-5 * i) - 0.1 * y)
    return trace.program([values[-1], values[40], z, 1.5, values[-1], *values[5::90]]).fused()


LONG = [
    pytest.param(target, dtype, marks=[pytest.mark.slow] * (target != "card" or dtype == "float32"))
    for target, dtype in COMBINED
]


@pytest.mark.slow
@pytest.mark.parametrize(("target", "dtype"), LONG)
def test_long_programs_are_cut_and_keep_their_meaning(
    target: str, dtype: str, tmp_path: Path
) -> None:
    program = long_program()
    assert len(program.steps) > CHUNK
    states = np.random.default_rng(1).normal(size=(5, 3)).astype(dtype)
    given = [np.ascontiguousarray(x) for x in (states[:, :1], states[:, 1:])]
    found = TARGETS[target](program, [1, 2, len(program.outputs)], dtype, tmp_path)(given)
    expected = np.array(np.broadcast_arrays(*program(states.astype(float).T))).T
    eps = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(found, expected, rtol=2e3 * eps, atol=20 * eps)


@on_each
def test_programs_without_steps(target: str, tmp_path: Path) -> None:
    x, _ = range(2)
    run = TARGETS[target](Program(2, (), (3.0, x, x)), [2, 3], "float64", tmp_path)
    found = run([np.array([[5.0, 9.0], [6.0, 9.0]])])
    np.testing.assert_array_equal(found, [[3, 5, 5], [3, 6, 6]])
