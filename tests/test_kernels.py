"""Compiled kernels: the same numbers as NumPy's, NumPy's ufunc semantics, processes and threads."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import pickle
import re
import sys
import threading
import time
import tracemalloc
import warnings
import weakref
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from cases import few
from llvmlite.binding import ffi
from mechanisms import KINDS, Mechanism, random_mechanism
from texts import INERTIAL, joint, link, robot

import robomodel as rm
from robomodel.kernels import Iteration, Trace, compile_program, lanes, loop, plan, python
from robomodel.kernels import compile as compiling
from robomodel.kernels.emit import emit
from robomodel.kernels.plan import CHUNK
from robomodel.kernels.threads import share
from robomodel.scalars import add, mul, sincos


def close(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-13) -> None:
    assert found.shape == expected.shape
    assert np.max(np.abs(found - expected), initial=0.0) <= tolerance * max(
        1e-3, float(np.max(np.abs(expected), initial=0.0))
    )


def states(model: rm.Model, count: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    return q, *rng.standard_normal((2, count, model.nv))


# ---- the same numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", few(rm.robots.names(), "belt_leg", "four_bar", "mini_cheetah"))
def test_every_function_compiled_equals_numpy(name: str) -> None:
    model = rm.robots.load(name)
    q, v, x = states(model, 11)
    link_name = model.bodies[-1].name
    frame = (link_name, (0.1, -0.2, 0.3))
    f_ext = {model.frames[-1].name: np.arange(6.0), link_name: np.ones((11, 6))}
    calls = [
        (rm.rnea, (q, v, x), {}),
        (rm.rnea, (q, v, x), {"f_ext": f_ext}),
        (rm.aba, (q, v, x), {}),
        (rm.aba, (q, v, x), {"f_ext": f_ext}),
        (rm.crba, (q,), {}),
        (rm.bias_force, (q, v), {"f_ext": f_ext}),
        (rm.jacobian, (q, frame), {}),
        (rm.frame_pose, (q, link_name), {}),
        (rm.frame_velocity, (q, v, frame), {}),
        (rm.center_of_mass, (q,), {}),
        (rm.centroidal_momentum, (q, v), {}),
    ]
    for function, arguments, options in calls:
        expected = function(model, *arguments, **options, backend="numpy")
        close(function(model, *arguments, **options, backend="compiled"), expected)
    both = rm.energy(model, q, v, backend="compiled")
    for found, expected in zip(both, rm.energy(model, q, v, backend="numpy"), strict=True):
        close(found, expected)


def compare_with_numpy(mechanism: Mechanism) -> None:
    """Forces and inertias to 1e-13; accelerations by the forces they leave over.

    Where dependent joints move faster than independent ones, by |G|, rounding grows as much; an
    acceleration itself may differ by 1e-16 times the condition of the mass matrix.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        model = rm.load(mechanism.text, floating_base=mechanism.floating_base or None)
    q, v, x = states(model, 9)
    tau = rm.rnea(model, q, v, x, backend="numpy")
    together = rm.rnea(model, q, v, x)
    for i, state in enumerate(zip(q, v, x, strict=True)):
        gain = max(1.0, float(np.abs(model.constraint_jacobian(q[i])).max()))
        close(rm.rnea(model, *state), tau[i], 1e-13 * gain)
        close(together[i], tau[i], 1e-13 * gain)
    mass = rm.crba(model, q, backend="numpy")
    close(rm.crba(model, q), mass)
    a = rm.aba(model, q, v, x)
    size = np.einsum("...ij,...j->...i", np.abs(mass), np.abs(a)).max(axis=-1) + np.abs(tau).max()
    unbalanced = rm.rnea(model, q, v, a, backend="numpy") - x
    assert (np.abs(unbalanced).max(axis=-1) <= 1e-12 * size).all()


@pytest.mark.parametrize("kind", few([*KINDS, "tether"], "gear", "spatial_loop", "rod"))
def test_random_mechanisms_compiled_equal_numpy(kind: str) -> None:
    compare_with_numpy(random_mechanism(np.random.default_rng([5, len(kind)]), [kind], n_joints=6))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_more_random_mechanisms_compiled_equal_numpy(seed: int) -> None:
    rng = np.random.default_rng([7, seed])
    kinds = rng.choice([*KINDS, "tether"], size=2, replace=False).tolist()
    compare_with_numpy(random_mechanism(rng, kinds, n_joints=int(rng.integers(3, 9))))


@pytest.mark.parametrize("name", ["mini_cheetah", "planar_leg_linkage"])
def test_right_angles_large_angles_and_odd_numbers(name: str) -> None:
    model = rm.robots.load(name)
    q, v, x = states(model, 8)
    first = 7 if model.floating_base else 0
    if first:
        q[0, 7:] = np.pi / 2
    q[1, first:] += 2e6 * np.pi
    q[2, first:] += 2e12 * np.pi
    v[3] *= 1e-310
    v[4], x[4] = 5e-324, -5e-324
    x[5] *= 1e150
    v[6] *= 1e140
    x[7] *= 1e300
    for function in (rm.rnea, rm.aba):
        expected = function(model, q, v, x, backend="numpy")
        found = function(model, q, v, x)
        for i in range(8):
            # 2e6 π is a double only to 1e-10, which takes a linkage that much off closure
            ill = 1e-12 if function is rm.aba or i in (1, 2) else 1e-13
            close(found[i], expected[i], ill)


def test_a_singular_state_is_not_a_number_for_itself_alone() -> None:
    model = rm.robots.load("four_bar")
    q = np.stack([model.random_configuration(0)] * 3)
    q[1] = 0.0
    with pytest.warns(RuntimeWarning, match="encountered in kernel"):
        a = rm.aba(model, q, np.ones((3, 1)), np.ones((3, 1)), backend="compiled")
    assert np.isfinite(a[[0, 2]]).all()
    assert not np.isfinite(a[1]).any()


@pytest.mark.slow
def test_long_programs_are_cut_and_keep_their_meaning() -> None:
    parts = [link("l0", INERTIAL)]
    for i in range(80):
        axis = ("1 0 0", "0 1 0", "0 0 1")[i % 3]
        parts += [link(f"l{i + 1}"), joint(f"j{i}", f"l{i}", f"l{i + 1}", "0.1 0 0.05", axis=axis)]
    model = rm.load(robot(*parts, joint("bolt", "base", "l0", kind="fixed")))
    q, v, x = states(model, 10)
    kernel = rm.compile(model, "aba")
    assert len(kernel.program.steps) > CHUNK
    close(kernel(q, v, x), rm.aba(model, q, v, x, backend="numpy"), 1e-9)
    close(rm.compile(model, "rnea")(q, v, x), rm.rnea(model, q, v, x, backend="numpy"))


# ---- ufunc semantics -----------------------------------------------------------------------------


def test_selections_choose_lane_by_lane() -> None:
    trace = Trace()
    x, y = trace.inputs(2)
    program = trace.program([x.select(y, 3.0), (x - y).select(x, y * y)])
    compiled = compile_program(lambda: program, [1, 1, 2], name="selections")
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 37, 1))
    a[5], a[11] = 0.0, np.nan
    np.testing.assert_array_equal(
        compiled.ufunc(a, b), np.stack(program([a[:, 0], b[:, 0]]), axis=-1)
    )


def test_any_number_of_states_and_any_strides() -> None:
    model = rm.robots.load("six_bar")
    kernel = rm.compile(model, "aba")
    q, v, tau = states(model, 3 * lanes() + 1)
    expected = rm.aba(model, q, v, tau, backend="numpy")
    for count in range(len(q) + 1):
        found = kernel(q[:count], v[:count], tau[:count])
        assert found.shape == (count, 3)
        close(found, expected[:count])
    close(kernel(q[0], v[0], tau[0]), expected[0])
    close(kernel(q[::-2], v[::-2], tau[::-2]), expected[::-2])
    close(kernel(np.asfortranarray(q), np.repeat(v, 2, axis=1)[:, ::2], tau), expected)
    close(kernel(q[:24].reshape(2, 3, 4, 5), v[0], tau[0]),
          rm.aba(model, q[:24].reshape(2, 3, 4, 5), v[0], tau[0], backend="numpy"))  # fmt: skip
    single = q.astype(np.float32)
    close(kernel(single, v, tau), rm.aba(model, single, v, tau, backend="numpy"))


def test_results_go_where_they_shall() -> None:
    model = rm.robots.load("six_bar")
    q, v, tau = states(model, 20)
    kernel = rm.compile(model, "aba")
    expected = kernel(q, v, tau)
    out = np.full((20, 3), np.nan)
    assert kernel(q, v, tau, out=out) is out
    np.testing.assert_array_equal(out, expected)
    wide = np.full((20, 6), -1.0)
    kernel(q, v, tau, out=wide[:, ::2])
    np.testing.assert_array_equal(wide[:, ::2], expected)
    assert (wide[:, 1::2] == -1.0).all()
    over = tau.copy()  # the result may take the place of an argument
    np.testing.assert_array_equal(kernel(q, v, over, out=over), expected)
    matrix = np.empty((20, 3, 3))
    assert rm.compile(model, "crba")(q, out=matrix) is matrix
    np.testing.assert_array_equal(matrix, rm.crba(model, q, backend="compiled"))
    with pytest.raises(ValueError, match="contiguous in the axes of the result"):
        rm.compile(model, "crba")(q, out=matrix.transpose(0, 2, 1))


def test_threads_share_a_batch() -> None:
    model = rm.robots.load("mini_cheetah")
    q, v, tau = states(model, 37)
    for name, arguments in (("aba", (q, v, tau)), ("crba", (q,)), ("aba", (q, v[0], tau[0]))):
        kernel = rm.compile(model, name)
        for threads in (2, 3, 50):
            np.testing.assert_array_equal(kernel(*arguments, threads=threads), kernel(*arguments))
    single = rm.compile(model, "aba")
    np.testing.assert_array_equal(single(q[0], v[0], tau[0], threads=2), single(q[0], v[0], tau[0]))
    for threads in (0, 2, 5):
        for count in (0, 1, 8, 37):
            found = single(q[None, :count], v[:count], tau[:count], threads=threads)
            assert found.shape == (1, count, model.nv)
            np.testing.assert_array_equal(found[0], single(q[:count], v[:count], tau[:count]))
    with pytest.raises(ValueError, match="threads must be 0"):
        single(q, v, tau, threads=-1)
    with pytest.raises(ValueError, match="core dimension"):
        single(q, v[:, 1:], tau, threads=2)
    with pytest.raises(ValueError, match="enough dimensions"):
        single(q, 1.0, tau, threads=2)


def test_threads_write_where_they_shall_and_nowhere_else() -> None:
    model = rm.robots.load("mini_cheetah")
    q, v, tau = states(model, 40)
    kernel = rm.compile(model, "aba")
    expected = kernel(q, v, tau)
    for threads in (1, 2):
        over = tau.copy()  # the result may take the place of an argument, or lie across it
        assert kernel(q, v, over, out=over, threads=threads) is over
        np.testing.assert_array_equal(over, expected)
        memory = np.empty((41, model.nv))
        memory[:40] = tau
        kernel(q, v, memory[:40], out=memory[1:], threads=threads)
        np.testing.assert_array_equal(memory[1:], expected)
        wide = np.full((3, 40, model.nv), np.nan)  # NumPy fills a larger result
        kernel(q, v, tau, out=wide, threads=threads)
        np.testing.assert_array_equal(wide, np.broadcast_to(expected, wide.shape))
        for shape in ((39, model.nv), (1, model.nv), (model.nv,), (40, 1)):
            with pytest.raises(ValueError, match=r"out|core dimension|broadcast"):
                kernel(q, v, tau, out=np.empty(shape), threads=threads)
    matrix = rm.compile(model, "crba")
    for shape in ((40, 9, 36), (40, 324), (18,), (20, 18, 18), (41, 18, 18)):
        for threads in (1, 2):
            with pytest.raises(ValueError, match=r"out|broadcast"):
                matrix(q, out=np.empty(shape), threads=threads)
    with pytest.raises(TypeError, match="NumPy array"):
        kernel(q, v, tau, out=[0.0] * model.nv)


def test_arguments_are_counted() -> None:
    """A fourth argument is not taken for the place of the result."""
    model = rm.robots.load("six_bar")
    q, v, tau = states(model, 2)
    kernel = rm.compile(model, "aba")
    before = tau.copy()
    for extra in ({}, {"threads": 2}):
        with pytest.raises(TypeError, match=r"takes the arguments \(q, v, tau\), got 4; out="):
            kernel(q, v, tau, before, **extra)
        with pytest.raises(TypeError, match=r"takes the arguments \(q, v, tau\), got 2"):
            kernel(q, v, **extra)
    np.testing.assert_array_equal(before, tau)


def test_threads_heed_errstate_and_pass_errors_on() -> None:
    model = rm.robots.load("four_bar")
    q = np.stack([model.random_configuration(0)] * 64)
    q[60] = 0.0  # singular
    kernel, one = rm.compile(model, "aba"), np.ones((64, 1))
    for threads in (1, 4):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not np.isfinite(kernel(q, one, one, threads=threads)[60]).any()
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            kernel(q, one, one, threads=threads)
    work, count = [], itertools.count()

    def nested(piece: slice) -> None:
        if next(count) == 1:
            raise KeyError("some piece")
        share(work.append, 30, 3)

    with pytest.raises(KeyError, match="some piece"):
        share(nested, 30, 3)  # calls within calls do not wait for each other
    assert sum(x.stop - x.start for x in work) == 60


def test_wrong_shapes_never_reach_the_kernel() -> None:
    model = rm.robots.load("six_bar")
    q, v, tau = states(model, 2)
    with pytest.raises(ValueError, match="q needs nq = 5"):
        rm.aba(model, v, v, tau, backend="compiled")
    with pytest.raises(ValueError, match="core dimension"):
        rm.compile(model, "aba")(v, v, tau)
    with pytest.raises(ValueError, match="backend 'fast' is not known"):
        rm.aba(model, q, v, tau, backend="fast")
    with pytest.raises(ValueError, match="algorithm 'fdyn' is not known"):
        rm.compile(model, "fdyn")
    with pytest.raises(ValueError, match="'jacobian' needs one frame"):
        rm.compile(model, "jacobian")
    with pytest.raises(ValueError, match="'crba' takes no external forces"):
        rm.compile(model, "crba", f_ext=["link1"])


def test_external_forces_are_further_arguments() -> None:
    model = rm.robots.load("planar_leg_linkage")
    q, v, tau = states(model, 4)
    force = np.arange(24.0).reshape(4, 6)
    kernel = rm.compile(model, "aba", f_ext=["foot"])
    expected = rm.aba(model, q, v, tau, f_ext={"foot": force}, backend="numpy")
    close(kernel(q, v, tau, force), expected)


# ---- one state -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", few(rm.robots.names(), "belt_leg", "four_bar"))
def test_one_state_is_a_row_of_many(name: str) -> None:
    """Single states take a way of their own: the same numbers, shapes, errors and warnings."""
    model = rm.robots.load(name)
    q, v, x = states(model, 3)
    frame = model.bodies[-1].name
    for algorithm, arguments, options in (
        ("aba", (q, v, x), {}),
        ("crba", (q,), {}),
        ("energy", (q, v), {}),
        ("frame_pose", (q,), {"frame": frame}),
        ("rnea_derivatives", (q, v, x), {}),
        ("efpa", (q,), {"frames": [frame] * 3}),
    ):
        kernel = rm.compile(model, algorithm, **options)
        whole = np.empty(kernel.size) if len(kernel.shapes) > 1 else np.empty(kernel.shapes[0])
        with np.errstate(all="ignore"):
            rows = kernel(*arguments)
            far = [arguments[0] * 1e10, *arguments[1:]]  # angles beyond the first turns
            lone, row = kernel(*(x[0] for x in far)), kernel(*(x[:1] for x in far))
            for part, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (lone, row)),
                                   strict=True):  # fmt: skip
                np.testing.assert_array_equal(part, other[0])
            for i in range(3):
                state = [argument[i] for argument in arguments]
                for found in (kernel(*state), kernel(*state, out=whole)):
                    parts = found if isinstance(found, tuple) else (found,)
                    expected = rows if isinstance(rows, tuple) else (rows,)
                    for part, row in zip(parts, expected, strict=True):
                        assert type(part) is np.ndarray
                        assert part.flags.writeable
                        np.testing.assert_array_equal(part, row[i])


def test_other_arguments_take_the_usual_way() -> None:
    model = rm.robots.load("six_bar")
    kernel = rm.compile(model, "crba")
    (q, *_), _, _ = states(model, 1)
    expected = kernel(q)
    wide = np.repeat(q, 2)
    frozen = q.copy()
    frozen.flags.writeable = False

    class Own(np.ndarray):
        pass

    swapped, copied = q.astype(">f8"), pickle.loads(pickle.dumps(q))
    for other in ([*q], tuple(q), wide[::2], swapped, frozen, q.view(Own), copied):
        np.testing.assert_array_equal(kernel(other), expected)
    close(kernel(q.astype(np.float32)), expected, 1e-6)
    assert kernel(q[None]).shape == (1, 3, 3)
    for wrong in (q[:-1], np.append(q, 1.0), 1.0, None, "q", {}):
        with pytest.raises((TypeError, ValueError)):
            kernel(wrong)
    out = np.full((3, 6), np.nan)
    kernel(q, out=out[:, ::2])
    np.testing.assert_array_equal(out[:, ::2], expected)
    assert np.isnan(out[:, 1::2]).all()
    with pytest.raises(ValueError, match="contiguous in the axes of the result"):
        kernel(q, out=out[:, :3].T)
    still = np.zeros((3, 3))
    still.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        kernel(q, out=still)
    for shape in ((9,), (3, 2), (1, 3, 4), ()):
        with pytest.raises(ValueError, match="out must have the shape"):
            kernel(q, out=np.empty(shape))
    assert kernel(q, out=np.empty((1, 3, 3))).shape == (1, 3, 3)
    rounded = np.empty((3, 3), np.float32)
    assert kernel(q, out=rounded) is rounded
    np.testing.assert_array_equal(rounded, expected.astype(np.float32))


def test_a_result_may_lie_across_an_argument() -> None:
    model = rm.robots.load("six_bar")
    q, v, tau = (x[0] for x in states(model, 1))
    kernel = rm.compile(model, "aba")
    expected = kernel(q, v, tau)
    memory = np.zeros(6)
    for start in range(4):
        memory[:3] = tau
        out = memory[start : start + 3]
        assert kernel(q, v, memory[:3], out=out) is out
        np.testing.assert_array_equal(out, expected)
    bar = rm.robots.load("four_bar")
    over = np.zeros(bar.nq)  # singular: the argument is gone when this is found
    with pytest.warns(RuntimeWarning, match="encountered in kernel"):
        rm.compile(bar, "aba")(over, np.ones(1), np.ones(1), out=over[:1])
    assert not np.isfinite(over[0])


def test_one_singular_state_warns_as_numpy_is_told() -> None:
    model = rm.robots.load("four_bar")
    kernel = rm.compile(model, "aba")
    state, out = (np.zeros(model.nq), np.ones(1), np.ones(1)), np.empty(1)
    for options in ({}, {"out": out}):
        with pytest.warns(RuntimeWarning, match="encountered in kernel"):
            assert not np.isfinite(kernel(*state, **options)).any()
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            kernel(*state, **options)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not np.isfinite(kernel(*state, **options)).any()


def test_nothing_is_left_behind_by_calls() -> None:
    """Neither references to arguments and results, nor kernels, nor memory."""
    model = rm.robots.load("six_bar")
    q, v, x = (x[0] for x in states(model, 1))
    lone = np.zeros(model.nq)
    for algorithm, arguments in (
        ("aba", (q, v, x)), ("crba", (q,)), ("energy", (q, v)), ("aba_derivatives", (lone, v, x))
    ):  # fmt: skip
        kernel = rm.compile(model, algorithm)
        several = len(kernel.shapes) > 1
        out = np.empty(kernel.size if several else kernel.shapes[0])
        objects = [*arguments, out, kernel]
        with np.errstate(all="ignore"):
            for call in (
                lambda k=kernel, a=arguments: k(*a),
                lambda k=kernel, a=arguments, o=out: k(*a, out=o),
                lambda k=kernel, a=arguments: k(*[[*each] for each in a]),
            ):
                call()
                before = [sys.getrefcount(each) for each in objects]
                tracemalloc.start()
                for _ in range(300):
                    result = call()
                grown, _ = tracemalloc.get_traced_memory()
                tracemalloc.stop()
                del result
                assert grown < 20_000
                assert [sys.getrefcount(each) for each in objects] == before
    parts = rm.compile(model, "energy")(q, v)
    count = sys.getrefcount(parts[0].base)
    assert count == 3  # of two parts, and of the question
    del kernel, objects, call
    function = rm.compile(model, "aba").fast
    gone = weakref.ref(model)
    expected = function(q, v, x)
    del model
    gc.collect()
    assert gone() is None
    np.testing.assert_array_equal(function(q, v, x), expected)  # the code is still there
    np.testing.assert_array_equal(function([*q], v, x), expected)


def test_pythons_that_are_built_otherwise_are_served_by_the_ufunc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert sys.implementation.name != "cpython" or python.usual()
    expected = rm.compile(model := rm.robots.load("six_bar"), "crba")(model.neutral())
    monkeypatch.setattr(python, "usual", lambda: False)
    kernel = rm.compile(rm.robots.load("six_bar"), "crba")
    np.testing.assert_array_equal(kernel(model.neutral()), expected)
    out = np.empty((3, 3))
    assert kernel(model.neutral(), out=out) is out
    with pytest.raises(TypeError, match="takes the arguments"):
        kernel(model.neutral(), out)


# ---- processes and threads -----------------------------------------------------------------------


def test_kernels_are_made_once_a_model() -> None:
    model = rm.robots.load("four_bar")
    assert rm.compile(model, "aba") is rm.compile(model, "aba")
    assert rm.compile(model, "aba") is not rm.compile(rm.robots.load("four_bar"), "aba")
    assert "four_bar" in repr(rm.compile(model, "aba"))


def test_kernels_pickle() -> None:
    model = rm.robots.load("six_bar")
    q, v, tau = states(model, 5)
    kernel = rm.compile(model, "aba")
    copy = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(copy(q, v, tau), kernel(q, v, tau))
    assert pickle.loads(pickle.dumps(model)).derived == {}


def test_kernels_run_in_many_threads_at_once() -> None:
    model = rm.robots.load("mini_cheetah")
    kernel = rm.compile(model, "aba")
    q, v, tau = states(model, 50)
    expected = kernel(q, v, tau)
    wrong: list[int] = []

    def work() -> None:
        wrong.extend(1 for _ in range(50) if not np.array_equal(kernel(q, v, tau), expected))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def _in_worker(arguments: tuple) -> np.ndarray:
    kernel, *arrays = arguments
    return kernel(*arrays)


@pytest.mark.parametrize("method", ["fork", "spawn"] if sys.platform == "linux" else ["spawn"])
def test_kernels_work_in_other_processes(method: str) -> None:
    model = rm.robots.load("six_bar")
    q, v, tau = states(model, 5)
    kernel = rm.compile(model, "aba")
    with (
        warnings.catch_warnings(),
        multiprocessing.get_context(method).Pool(1) as pool,
    ):
        warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads
        found = pool.map(_in_worker, [(kernel, q, v, tau)])[0]
    np.testing.assert_array_equal(found, kernel(q, v, tau))


def _compiled_here(answer: Any) -> None:
    trace = Trace()
    x, y = trace.inputs(2)
    compiled = compile_program(trace.program([x * y + 7.0]), [2, 1])
    answer.put(float(compiled.ufunc([2.0, 3.0])[0]))


@pytest.mark.skipif(sys.platform != "linux", reason="fork")
def test_a_fork_amid_a_compilation_does_not_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither for a thread that compiles, and is not in the child, nor for llvmlite's own lock."""
    monkeypatch.setenv("ROBOMODEL_CACHE", "off")
    model = rm.robots.load("four_bar")
    context = multiprocessing.get_context("fork")
    amid, forked = threading.Event(), threading.Event()
    write = compiling.emit

    def slow(*arguments: Any, **options: Any) -> str:
        amid.set()
        assert forked.wait(60.0)
        return write(*arguments, **options)

    def child() -> None:
        answer = context.Queue()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads
            process = context.Process(target=_compiled_here, args=(answer,), daemon=True)
            process.start()
        assert answer.get(timeout=60.0) == 13.0
        process.join(60.0)
        assert process.exitcode == 0

    monkeypatch.setattr(compiling, "emit", slow)
    thread = threading.Thread(target=lambda: rm.compile(model, "aba"))
    thread.start()
    assert amid.wait(60.0)
    monkeypatch.setattr(compiling, "emit", write)
    child()
    forked.set()
    thread.join()

    def hold() -> None:  # as who uses llvmlite beside us may
        with ffi.lib._lock:
            amid.set()
            time.sleep(0.3)

    amid.clear()
    thread = threading.Thread(target=hold)
    thread.start()
    assert amid.wait(60.0)
    child()
    thread.join()


@pytest.mark.skipif(sys.platform != "linux", reason="fork")
def test_threads_that_a_fork_left_behind_are_not_waited_for() -> None:
    model = rm.robots.load("mini_cheetah")
    kernel = rm.compile(model, "aba")
    q, v, tau = states(model, 40)
    expected = kernel(q, v, tau, threads=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with multiprocessing.get_context("fork").Pool(1) as pool:
            found = pool.apply_async(_with_threads, (kernel, q, v, tau)).get(60.0)
    np.testing.assert_array_equal(found, expected)


def _with_threads(kernel: rm.Kernel, *arrays: np.ndarray) -> np.ndarray:
    return kernel(*arrays, threads=2)


def test_programs_and_sizes_must_fit() -> None:
    trace = Trace()
    x, y = trace.inputs(2)
    with pytest.raises(ValueError, match="do not fit the program"):
        compile_program(trace.program([x * y]), [1, 1])
    constant = compile_program(trace.program([2.5, y, x - y]), [2, 3])
    np.testing.assert_array_equal(constant.ufunc([[1.0, 4.0]]), [[2.5, 4.0, -3.0]])


SYSTEMS = ("x86_64-pc-windows-msvc-elf", "arm64-apple-macosx14", "x86_64-apple-macosx14",
           "aarch64-unknown-linux-gnu", "x86_64-unknown-linux-gnu")  # fmt: skip


@pytest.mark.parametrize("triple", SYSTEMS)
def test_kernels_call_what_every_c_library_has(
    triple: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels of all kinds, written for other systems: what do they call?"""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(
        features="+fma" if triple.startswith("x86") else "",
        opt=1,
        reloc="pic",
        codemodel="small",  # calls by name, rather than through a register
    )
    trace = Trace()
    x, y, z = trace.inputs(3)
    angles, moved = [*sincos(x), sincos(y * z)[0]], [x + y * z, x]
    stages = Iteration((1,), ((1.0,), (0.5,)))  # z is the stages' constant
    called: set[str] = set()
    for outputs, sizes, iteration, stack in (
        (angles, [1, 2, 3], None, 1 << 16), (moved, [1, 1, 2], stages, 0)
    ):  # fmt: skip
        monkeypatch.setattr(loop, "STACK", stack)
        text = emit(trace.program(outputs), sizes, 4, iteration)
        assert ("malloc(i64 " in text) == (stack == 0)
        module = llvm.parse_assembly(text)
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        own = set(re.findall(r"define \w*\s*[^@]*@(\w+)", text))
        lines = machine.emit_assembly(module).splitlines()
        calls = (re.match(r"\s+(?:callq?|bl|jmp|b)\s+_?((?!L?BB)\w+)", line) for line in lines)
        called |= {call[1] for call in calls if call} - own
    assert called - {"memcpy", "memset"} - ({"_chkstk"} if "windows" in triple else set()) == {
        "sin", "cos", "atan2", "malloc", "free", "abort"
    }  # fmt: skip


# ---- several results -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", few(rm.robots.names(), "belt_leg", "five_bar", "four_bar"))
def test_derivatives_are_functions_too(name: str) -> None:
    model = rm.robots.load(name)
    q, v, x = states(model, 3)
    link_name = model.bodies[-1].name
    for function, options in (
        (rm.rnea_derivatives, {}),
        (rm.aba_derivatives, {}),
        (rm.rnea_derivatives, {"f_ext": {link_name: np.arange(6.0)}}),
    ):
        found = function(model, q, v, x, **options)
        expected = function(model, q, v, x, **options, backend="numpy")
        assert len(found) == 3
        for a, b in zip(found, expected, strict=True):
            assert a.shape == (3, model.nv, model.nv)
            close(a, b, 1e-11)
    mass = rm.crba(model, q, backend="numpy")
    close(rm.rnea_derivatives(model, q, v, x)[2], mass)
    inverse = rm.aba_derivatives(model, q, v, x)[2]
    close(inverse @ mass, np.broadcast_to(np.eye(model.nv), mass.shape), 1e-10)


def test_several_results_share_one_out() -> None:
    model = rm.robots.load("six_bar")
    q, v, tau = states(model, 20)
    kernel = rm.compile(model, "aba_derivatives")
    out = np.empty((20, 27))
    parts = kernel(q, v, tau, out=out)
    for part, expected in zip(parts, kernel(q, v, tau), strict=True):
        np.testing.assert_array_equal(part, expected)
        assert np.shares_memory(part, out)
    for part, expected in zip(kernel(q, v, tau, threads=3), kernel(q, v, tau), strict=True):
        np.testing.assert_array_equal(part, expected)
    kinetic, potential = rm.compile(model, "energy")(q, v)
    close(kinetic, rm.energy(model, q, v)[0])
    assert potential.shape == (20,)


@pytest.mark.parametrize("count", [1, 9, 16, 37])
def test_tiles_that_take_turns_keep_apart(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "CHUNK", 2)
    monkeypatch.setattr(plan, "PIECE", 1)
    trace = Trace()
    x, y, t = trace.inputs(3)
    both = mul(x, y)
    chain = [both]
    for k in range(6):
        chain.append(add(mul(chain[-1], t), float(k)))
    program = trace.program([chain[-1], both, 0.0, 4.0, x])
    compiled = compile_program(program, [2, 1, 5])
    rng = np.random.default_rng(count)
    q, v = rng.normal(size=(count, 2)), rng.normal(size=(2 * count, 3))[::2, 1:2]
    expected = np.stack([np.broadcast_to(z, count) for z in program([*q.T, *v.T])], axis=1)
    for out in (np.empty((count, 5)), np.empty((count, 11))[:, ::2][:, :5], np.empty((5, count)).T):
        out[...] = np.nan
        compiled.ufunc(q, v, out=out)
        np.testing.assert_allclose(out, expected, rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("threads", [2, 3, 16])
@pytest.mark.parametrize("count", [1, 8, 9, 1000, 100_003])
def test_pieces_cover_a_batch_once_and_begin_with_tiles(count: int, threads: int) -> None:
    pieces: list[slice] = []
    share(pieces.append, count, threads)
    pieces.sort(key=lambda piece: piece.start)
    assert [pieces[0].start, pieces[-1].stop] == [0, count]
    assert all(a.stop == b.start and b.start % 8 == 0 for a, b in itertools.pairwise(pieces))
    assert len(pieces) >= min(threads, -(-count // 8))
