"""Rows of arrays into tiles and back: every length, place, stride and number of states."""

from __future__ import annotations

import numpy as np
import pytest

from robomodel.kernels import Iteration, Program, Trace, compile_program, lanes
from robomodel.kernels.llvm.emit import CACHED, STEPS_PER_RESULT, STREAMED_BYTES, emit
from robomodel.kernels.program import Dtype


def placed(count: int, size: int, offset: int, gap: int = 0) -> np.ndarray:
    """Rows that begin ``offset`` numbers after a cache line does, ``gap`` numbers apart."""
    numbers = np.full(8 * (count + 1) * (size + gap) + 64, np.nan)
    first = (-numbers.ctypes.data // 8) % 8 + offset
    rows = numbers[first : first + count * (size + gap)].reshape(count, size + gap)
    return rows[:, :size]


@pytest.mark.parametrize("size", [*range(1, 20), 31, 32, 33, 40, 64, 100])
def test_rows_of_any_length_go_where_they_shall(size: int) -> None:
    """Results are the arguments backwards, with constants and repetitions in between."""
    outputs = [(size - 1 - i) if i % 3 or i == 0 else 0 if i % 2 else 0.25 * i for i in range(size)]
    program = Program(size, (), tuple(outputs))
    compiled = compile_program(program, [size, size])
    rng = np.random.default_rng(size)
    for count in (1, 2, lanes() - 1, lanes(), lanes() + 1, 3 * lanes() + 3):
        x = rng.normal(size=(count, size))
        expected = np.stack([np.broadcast_to(y, count) for y in program(list(x.T))], axis=1)
        np.testing.assert_array_equal(compiled.ufunc(x), expected)
        for offset in range(8):
            for gap in (0, 1, 5):
                out = placed(count, size, offset, gap)
                around = out.base
                compiled.ufunc(x, out=out)
                np.testing.assert_array_equal(out, expected)
                assert np.isfinite(around).sum() == out.size  # and nothing else is touched
        source = placed(count, size, size % 8, 3)
        source[:] = x
        np.testing.assert_array_equal(compiled.ufunc(source), expected)
        np.testing.assert_array_equal(compiled.ufunc(x[::-1]), expected[::-1])
        np.testing.assert_array_equal(compiled.ufunc(np.asfortranarray(x)), expected)
        backwards = np.empty((count, size))
        compiled.ufunc(x, out=backwards[::-1, ::-1])
        np.testing.assert_array_equal(backwards[::-1, ::-1], expected)
        same = x.copy()
        compiled.ufunc(same, out=same)
        np.testing.assert_array_equal(same, expected)


def test_large_results_are_the_same_as_small_ones() -> None:
    """From a megabyte on the next tile's lines are fetched ahead, past the array's end too."""
    size, count = 130, 1 << 11
    program = Program(size, (), tuple(reversed(range(size))))
    x = np.random.default_rng(0).normal(size=(count, size))
    compiled = compile_program(program, [size, size])
    np.testing.assert_array_equal(compiled.ufunc(x), x[:, ::-1])


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_results_beyond_caches_are_the_same_as_small_ones(dtype: Dtype) -> None:
    """They are written past the caches, in whole lines; blocks of one constant are not turned."""
    size = 200
    outputs = [*range(50), *[0.0] * 70, *[2.5] * 21, -1.0, *range(58, -1, -1)]
    compiled = compile_program(Program(size, (), tuple(outputs)), [size, len(outputs)], dtype=dtype)
    count = STREAMED_BYTES // (np.dtype(dtype).itemsize * len(outputs)) + 9
    x = np.random.default_rng(0).normal(size=(count, size)).astype(dtype)
    expected = np.stack([x[:, y] if isinstance(y, int) else np.full(count, y, dtype)
                         for y in outputs], axis=1)  # fmt: skip
    np.testing.assert_array_equal(compiled.ufunc(x), expected)
    np.testing.assert_array_equal(compiled.ufunc(x[:37]), expected[:37])
    out = np.zeros((count, len(outputs) + 3), dtype)
    compiled.ufunc(x, out=out[:, 2:-1])
    np.testing.assert_array_equal(out[:, 2:-1], expected)
    assert not out[:, :2].any()
    assert not out[:, -1].any()
    apart = np.zeros((len(outputs), count), dtype).T  # rows are staged
    compiled.ufunc(x, out=apart)
    np.testing.assert_array_equal(apart, expected)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (2, 3), (7, 9)])
def test_matrices_go_where_they_shall(shape: tuple[int, int]) -> None:
    """Into arrays of any strides, as their batches lie in any order."""
    size = shape[0] * shape[1]
    compiled = compile_program(
        Program(size, (), tuple(range(size - 1, -1, -1))), [size, size], shape=shape
    )
    rng = np.random.default_rng(size)
    for batch in ((), (1,), (11,), (3, 5)):
        x = rng.normal(size=(*batch, size))
        expected = x[..., ::-1].reshape(*batch, *shape)
        for given in (x, np.asfortranarray(x), x[..., ::-1][..., ::-1]):
            numbers = compiled.shaped(given)
            np.testing.assert_array_equal(numbers, expected)
            assert numbers[(0,) * len(batch)].flags.c_contiguous
        wide = np.zeros((*batch, shape[0] + 1, 2 * shape[1]))
        outs = [np.asfortranarray(expected * 0.0), wide[..., 1:, ::2], wide[..., :0:-1, ::-2],
                np.zeros((*batch, *shape[::-1])).swapaxes(-1, -2)]  # fmt: skip
        for out in outs:
            assert compiled.shaped(x, out) is out
            np.testing.assert_array_equal(out, expected)
        with pytest.raises(ValueError, match="mismatch"):
            compiled.shaped(x, np.zeros((*batch, size + 1, 1)))


def test_constants_keep_their_signs_and_unused_arguments_are_not_read() -> None:
    outputs = [0.0, -0.0, float("nan"), float("inf"), 2, 2, -0.0]
    compiled = compile_program(Program(3, (), tuple(outputs)), [1, 2, 7])
    numbers = compiled.ufunc(np.full((9, 1), np.nan), np.ones((9, 2)))
    for row in numbers:
        np.testing.assert_array_equal(row, [0, 0, np.nan, np.inf, 1, 1, 0])
        np.testing.assert_array_equal(np.signbit(row[[0, 1, 6]]), [False, True, True])


def test_programs_that_outgrow_the_instruction_cache_are_cut() -> None:
    """Unless they have many results, or run over time; the numbers are the same."""

    def polynomials(results: int) -> Program:
        trace = Trace()
        (x, y), outputs = trace.inputs(2), []
        for k in range(results):
            outputs.append(y * (1.0 + k))
            for _ in range((CACHED + 2) // results):
                outputs[-1] = outputs[-1] * x + 0.25
        return trace.program(outputs).fused()

    def pieces(program: Program, iteration: Iteration | None = None) -> int:
        sizes = [1, 1, len(program.outputs)] if iteration else [2, len(program.outputs)]
        return emit(program, sizes, lanes(), iteration).count("define internal void @piece")

    few, many = 4, CACHED // STEPS_PER_RESULT + 1
    program = polynomials(few)
    assert len(program.steps) > CACHED
    assert pieces(program) > 2
    assert pieces(polynomials(many)) == pieces(program, Iteration((1,))) == 1
    x = np.random.default_rng(0).uniform(-0.9, 0.9, (5 * lanes() + 3, 2))
    compiled = compile_program(program, [2, few])
    numbers = compiled.ufunc(x)
    np.testing.assert_allclose(numbers, np.stack(program([*x.T]), axis=-1), rtol=1e-13, atol=0)
    for row, each in zip(numbers, x, strict=True):
        np.testing.assert_array_equal(compiled.ufunc(each), row)  # without a second tile
