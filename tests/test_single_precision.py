"""Single precision: what it loses, NumPy's rules for mixed arguments, angles of any size."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from cases import few

import robomodel as rm
from robomodel.kernels import Program, compile_program, lanes


def states(model: rm.Model, count: int, seed: int = 0) -> list[np.ndarray]:
    """Exactly representable in both precisions."""
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng, branch="any") for _ in range(count)])
    return [x.astype(np.float32) for x in (q, *rng.standard_normal((2, count, model.nv)))]


def compare(name: str, count: int, tolerance: float) -> None:
    """Median over states, relative to the result's norm there, or to a usual norm if larger."""
    model = rm.robots.load(name)
    q, v, x = states(model, count)
    frame = {"frame": model.bodies[-1].name}
    for algorithm, arguments, options in (
        ("rnea", (q, v, x), {}),
        ("aba", (q, v, x), {}),
        ("crba", (q,), {}),
        ("jacobian", (q,), frame),
        ("frame_pose", (q,), frame),
        ("rnea_derivatives", (q, v, x), {}),
    ):
        narrow = rm.compile(model, algorithm, dtype="float32", **options)
        wide = rm.compile(model, algorithm, **options)
        found, expected = narrow(*arguments), wide(*(y.astype(np.float64) for y in arguments))
        several = isinstance(found, tuple)
        for a, b in zip(*((found, expected) if several else ([found], [expected])), strict=True):
            assert a.dtype == np.float32
            assert a.shape == b.shape
            axes = tuple(range(1, a.ndim))
            norm = np.linalg.norm(b.reshape(count, -1), axis=1)
            gap = np.sqrt(np.sum((a - b) ** 2, axis=axes)) / np.maximum(norm, np.median(norm))
            assert np.median(gap) < tolerance, algorithm


QUICK = ("belt_leg", "four_bar", "planar_leg_linkage")


@pytest.mark.slow_cases("four_bar")
@pytest.mark.parametrize("name", few(QUICK, "four_bar"))
def test_usual_states_lose_the_last_digits_only(name: str) -> None:
    compare(name, 41, 2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", [x for x in rm.robots.names() if x not in QUICK])
def test_usual_states_of_larger_robots_lose_the_last_digits_only(name: str) -> None:
    compare(name, 41, 2e-6)


@pytest.mark.parametrize("size", [1, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 50])
def test_rows_of_any_length_go_where_they_shall(size: int) -> None:
    outputs = [size - 1 - i if i % 3 else 0.5 * i for i in range(size)]
    compiled = compile_program(Program(size, (), tuple(outputs)), [size, size], dtype="float32")
    rng = np.random.default_rng(size)
    for count in (1, 2, lanes("float32") - 1, lanes("float32"), 3 * lanes("float32") + 5):
        x = rng.normal(size=(count, size)).astype(np.float32)
        expected = np.stack(
            [x[:, y] if type(y) is int else np.full(count, np.float32(y)) for y in outputs], axis=1
        )
        np.testing.assert_array_equal(compiled.ufunc(x), expected)
        for offset in range(16):
            for gap in (0, 3):
                numbers = np.full(16 * (count + 2) * (size + gap) + 64, np.nan, np.float32)
                first = (-numbers.ctypes.data // 4) % 16 + offset
                rows = numbers[first : first + count * (size + gap)].reshape(count, size + gap)
                compiled.ufunc(x, out=rows[:, :size])
                np.testing.assert_array_equal(rows[:, :size], expected)
                assert np.isfinite(numbers).sum() == expected.size  # and nothing else is touched
        out = np.empty((count, size), np.float32)
        compiled.ufunc(x[:, ::-1][:, ::-1], out=out[::-1, ::-1])
        np.testing.assert_array_equal(out[::-1, ::-1], expected)


# ---- NumPy's rules -------------------------------------------------------------------------------


def test_mixed_arguments_are_promoted_as_by_numpy() -> None:
    model = rm.robots.load("six_bar")
    q, v, tau = states(model, 20)
    kernel = rm.compile(model, "aba", dtype="float32")
    assert kernel.dtype == "float32"
    found = kernel(q, v, tau)
    assert found.dtype == np.float32
    wide = rm.compile(model, "aba")(q, v, tau)
    assert wide.dtype == np.float64
    assert not np.array_equal(found, wide)
    for arguments in (
        (q.astype(np.float64), v, tau),
        (q, v.tolist(), tau),
        (q, v, np.ones(3, np.int64)),
    ):
        given = [np.asarray(x, np.float64) for x in arguments]
        for threads in (1, 2):
            promoted = kernel(*arguments, threads=threads)
            assert promoted.dtype == np.result_type(*map(np.asarray, arguments)) == np.float64
            np.testing.assert_array_equal(promoted, rm.compile(model, "aba")(*given))
    small = kernel(q, v, np.ones(3, np.int8))
    assert small.dtype == np.result_type(q, np.int8) == np.float32
    np.testing.assert_array_equal(small, kernel(q, v, np.ones(3, np.float32)))
    one = kernel(q[0], v[0], tau[0])
    assert one.dtype == np.float32
    np.testing.assert_array_equal(one, found[0])
    assert kernel(q[0].astype(float), v[0], tau[0]).dtype == np.float64
    with pytest.raises(TypeError):
        kernel(q, v, tau + 0j)
    with pytest.raises(ValueError, match="core dimension"):
        kernel(q, v, tau.astype(float)[:, :2])


@pytest.mark.slow
def test_results_go_where_they_shall() -> None:
    model = rm.robots.load("mini_cheetah")
    q, v, tau = states(model, 37)
    kernel = rm.compile(model, "crba", dtype=np.float32)
    assert kernel is rm.compile(model, "crba", dtype="float32")
    expected = kernel(q)
    out = np.empty_like(expected)
    assert kernel(q, out=out) is out
    np.testing.assert_array_equal(out, expected)
    double = np.empty(expected.shape)
    kernel(q, out=double)  # single precision's numbers in a larger array
    np.testing.assert_array_equal(double, expected)
    for threads in (2, 3):
        shared = kernel(q, threads=threads)
        assert shared.dtype == np.float32
        np.testing.assert_array_equal(shared, expected)
    copy = pickle.loads(pickle.dumps(kernel))
    assert copy.dtype == "float32"
    np.testing.assert_array_equal(copy(q), expected)
    over = tau.copy()
    forward = rm.compile(model, "aba", dtype="float32")
    np.testing.assert_array_equal(forward(q, v, over, out=over), forward(q, v, tau))


def test_numbers_below_the_normal_ones_stay_outside() -> None:
    """Kernels may take them for zero, but leave the processor as it was."""
    model = rm.robots.load("four_bar")
    q, v, tau = states(model, 3)
    kernel = rm.compile(model, "aba", dtype="float32")
    tiny = np.array([1e-40, 3e-39], np.float32)
    for arguments in ((q, v, tau), (q[0], v[0], tau[0])):
        kernel(*arguments)
        assert (tiny * np.float32(0.5) > 0).all()


def test_other_types_are_refused() -> None:
    model = rm.robots.load("four_bar")
    for wrong in ("float16", int, "complex128", "double double", None):
        with pytest.raises(ValueError, match="'float64' and 'float32' are"):
            rm.compile(model, "aba", dtype=wrong)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["six_bar", "tello"])
def test_orthonormal_coordinates_lose_less(name: str) -> None:
    """Next to dead points; and it is the same algorithm."""
    model = rm.robots.load(name)
    q, v, tau = states(model, 512)
    expected = rm.aba(model, *(x.astype(np.float64) for x in (q, v, tau)), method="lagrange")
    worst = {}
    for method in ("cluster", "orthonormal"):
        for dtype in ("float32", "float64"):
            kernel = rm.compile(model, "aba", method=method, dtype=dtype)
            found = kernel(*(x.astype(dtype) for x in (q, v, tau)))
            size = np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)
            worst[method, dtype] = np.max(size)
    assert worst["orthonormal", "float64"] < 1e-11
    assert worst["orthonormal", "float32"] < min(1e-4, 0.5 * worst["cluster", "float32"])
