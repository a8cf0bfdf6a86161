"""Kernels called as ufuncs: one state, several results, processes and threads."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import pickle
import re
import subprocess
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
from agreement import close
from cases import few
from kernel_programs import states
from llvmlite.binding import ffi
from shipped_robots import DISTINCT

import robomodel as rm
from robomodel.kernels import Iteration, NoCompilerError, Trace, compile_program, plan
from robomodel.kernels import compile as compiling
from robomodel.kernels.llvm.emit import emit
from robomodel.kernels.program import Dtype
from robomodel.kernels.threads import share
from robomodel.scalars import div, sincos

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
    with pytest.warns(RuntimeWarning, match="aba: a result is not finite"):
        rm.compile(bar, "aba")(over, np.ones(1), np.ones(1), out=over[:1])
    assert not np.isfinite(over[0])


def test_one_singular_state_warns_as_numpy_is_told() -> None:
    model = rm.robots.load("four_bar")
    kernel = rm.compile(model, "aba")
    state, out = (np.zeros(model.nq), np.ones(1), np.ones(1)), np.empty(1)
    for options in ({}, {"out": out}):
        with pytest.warns(RuntimeWarning, match="aba: cluster 'link1' is at a change point"):
            assert not np.isfinite(kernel(*state, **options)).any()
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            kernel(*state, **options)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not np.isfinite(kernel(*state, **options)).any()


@pytest.mark.slow
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


def test_another_binary_interface_of_numpy_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its table of functions may be another; then kernels are not made, and NumPy computes."""
    monkeypatch.setattr(compiling, "INTERFACES", (3,))
    compiling.numpy_functions.cache_clear()
    model = rm.robots.load("six_bar")
    with pytest.raises(NoCompilerError, match="binary interface 0x"):
        rm.compile(model, "crba")
    with pytest.warns(RuntimeWarning, match="NumPy serves instead"):
        mass = rm.crba(model, model.neutral())
    monkeypatch.undo()
    compiling.numpy_functions.cache_clear()
    close(mass, rm.compile(model, "crba")(model.neutral()), 1e-13)


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
    assert pickle.loads(pickle.dumps(model))._derived == {}


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


def ignore_forks() -> None:
    """Python's own warning of forks beside threads, and JAX's, whose threads are such."""
    warnings.simplefilter("ignore", DeprecationWarning)
    warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)


def _in_worker(arguments: tuple) -> np.ndarray:
    kernel, *arrays = arguments
    return kernel(*arrays)


@pytest.mark.slow_cases("spawn")
@pytest.mark.parametrize("method", ["fork", "spawn"] if sys.platform == "linux" else ["spawn"])
def test_kernels_work_in_other_processes(method: str) -> None:
    model = rm.robots.load("six_bar")
    q, v, tau = states(model, 5)
    kernel = rm.compile(model, "aba")
    with warnings.catch_warnings():
        ignore_forks()
        with multiprocessing.get_context(method).Pool(1) as pool:
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
    write = compiling.written

    def slow(*arguments: Any, **options: Any) -> str:
        amid.set()
        assert forked.wait(60.0)
        return write(*arguments, **options)

    def child() -> None:
        answer = context.Queue()
        with warnings.catch_warnings():
            ignore_forks()
            process = context.Process(target=_compiled_here, args=(answer,), daemon=True)
            process.start()
        assert answer.get(timeout=60.0) == 13.0
        process.join(60.0)
        assert process.exitcode == 0

    monkeypatch.setattr(compiling, "written", slow)
    thread = threading.Thread(target=lambda: rm.compile(model, "aba"))
    thread.start()
    assert amid.wait(60.0)
    monkeypatch.setattr(compiling, "written", write)
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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="fork")
def test_forks_at_ten_moments_of_a_first_call() -> None:
    """While another thread loads a robot, traces and compiles: each child computes."""
    script = """
import os, signal, threading, time, warnings
import numpy as np, robomodel as rm
warnings.simplefilter("ignore")
def first_calls(name):
    model = rm.robots.load(name)
    q, zero = model.neutral(), np.zeros(model.nv)
    rm.rnea_derivatives(model, q, zero, zero)
    return rm.aba(model, q, zero, zero)
first_calls("four_bar")  # Python itself keeps locks of imports that other threads are at
thread = threading.Thread(target=first_calls, args=("tello",))
thread.start()
children = []
for _ in range(10):
    time.sleep(0.12)
    child = os.fork()
    if not child:
        signal.alarm(60)
        os._exit(0 if np.all(np.isfinite(first_calls("six_bar"))) else 1)
    children.append(child)
thread.join()
print(*(os.waitpid(child, 0)[1] for child in children))
"""
    made = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "ROBOMODEL_CACHE": "off"},
        capture_output=True, text=True, timeout=200, check=True,
    )  # fmt: skip
    assert made.stdout.split() == ["0"] * 10


@pytest.mark.skipif(sys.platform != "linux", reason="fork")
def test_threads_that_a_fork_left_behind_are_not_waited_for() -> None:
    model = rm.robots.load("mini_cheetah")
    kernel = rm.compile(model, "aba")
    q, v, tau = states(model, 40)
    expected = kernel(q, v, tau, threads=2)
    with warnings.catch_warnings():
        ignore_forks()
        with multiprocessing.get_context("fork").Pool(1) as pool:
            found = pool.apply_async(_with_threads, (kernel, q, v, tau)).get(60.0)
    np.testing.assert_array_equal(found, expected)


def _with_threads(kernel: rm.kernels.Kernel, *arrays: np.ndarray) -> np.ndarray:
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
    monkeypatch.setattr("robomodel.kernels.llvm.emit.X86", triple.startswith("x86"))
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
        monkeypatch.setattr("robomodel.kernels.llvm.emit.STACK_BYTES", stack)
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


@pytest.mark.slow_cases("five_bar")
@pytest.mark.parametrize("name", few(DISTINCT, "belt_leg", "five_bar", "four_bar"))
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
    close(rm.rnea_derivatives(model, q, v, x)[2], mass, 1e-13)
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
    close(kinetic, rm.energy(model, q, v)[0], 1e-13)
    assert potential.shape == (20,)


@pytest.mark.parametrize("count", [1, 9, 16, 37])
def test_tiles_that_take_turns_keep_apart(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "CHUNK", 2)
    monkeypatch.setattr(plan, "FUNCTION_STEPS", 1)
    trace = Trace()
    x, y, t = trace.inputs(3)
    both = x * y
    chain = [both]
    for k in range(6):
        chain.append(chain[-1] * t + float(k))
    program = trace.program([chain[-1], both, 0.0, 4.0, x])
    compiled = compile_program(program, [2, 1, 5])
    rng = np.random.default_rng(count)
    q, v = rng.normal(size=(count, 2)), rng.normal(size=(2 * count, 3))[::2, 1:2]
    expected = np.stack([np.broadcast_to(z, count) for z in program([*q.T, *v.T])], axis=1)
    for out in (np.empty((count, 5)), np.empty((count, 11))[:, ::2][:, :5], np.empty((5, count)).T):
        out[...] = np.nan
        compiled.ufunc(q, v, out=out)
        np.testing.assert_allclose(out, expected, rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_quiet_calls_do_not_warn(dtype: Dtype) -> None:
    trace = Trace()
    (x,) = trace.inputs(1)
    compiled = compile_program(trace.program([div(1.0, x)]), [1, 1], dtype=dtype)
    zeros = np.zeros((20, 1), dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for numbers in (compiled.quiet(zeros), compiled.quiet(zeros, out=np.ones_like(zeros))):
            assert np.isposinf(numbers).all()
        assert compiled.ufunc(zeros + 1).all()
        np.testing.assert_array_equal(np.float32(1e-30) * np.float32(1e-12), np.float32(1e-42))
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            compiled.ufunc(zeros)


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("count", [1, 9, 37])
def test_shared_arguments_are_used_once_or_row_by_row(
    count: int, cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if cut:  # two tiles take turns
        monkeypatch.setattr(plan, "CHUNK", 2)
        monkeypatch.setattr(plan, "FUNCTION_STEPS", 1)
    trace = Trace()
    x, y, p, r = trace.inputs(4)
    s, c = sincos(p)
    other, _ = sincos(r)
    size = s * c + other
    chain = size * x + c
    for k in range(5):
        chain = chain * y + size * float(k + 1)
    program = trace.program([chain, size, p, s * 2.0 + y, 3.0, x])
    compiled = compile_program(program, [2, 2, 6], shared=[1])
    steps, first = plan.hoist(program, [2, 3])
    assert first > 3
    assert len(steps.steps) == len(program.steps)
    rng = np.random.default_rng(count)
    q = rng.normal(size=(count, 2))
    for parameters in (rng.normal(size=2) * 1e7, rng.normal(size=(1, 2)),
                       rng.normal(size=(count, 2))):  # fmt: skip
        rows = np.broadcast_to(parameters, (count, 2))
        expected = np.stack([np.broadcast_to(z, count) for z in program([*q.T, *rows.T])], axis=1)
        np.testing.assert_allclose(compiled.ufunc(q, parameters), expected, rtol=1e-13, atol=1e-14)
    forward = trace.program([x + size * y, chain])  # over time all but y is shared
    sizes, timed = [1, 1, 2, 2], Iteration((1,))
    over = compile_program(forward, sizes, iteration=timed)
    ys, parameters = rng.normal(size=(count, 4, 1)), rng.normal(size=(count, 2)) * 1e7
    numbers, at = over.ufunc(q[:, :1], ys, parameters), q[:, 0]
    for t in range(4):
        expected = np.stack(forward([at, ys[:, t, 0], *parameters.T]), axis=1)
        np.testing.assert_allclose(numbers[:, t], expected, rtol=1e-12, atol=1e-13)
        at = expected[:, 0]


@pytest.mark.parametrize("threads", [2, 3, 16])
@pytest.mark.parametrize("count", [1, 8, 9, 1000, 100_003])
def test_pieces_cover_a_batch_once_and_begin_with_tiles(count: int, threads: int) -> None:
    pieces: list[slice] = []
    share(pieces.append, count, threads)
    pieces.sort(key=lambda piece: piece.start)
    assert [pieces[0].start, pieces[-1].stop] == [0, count]
    assert all(a.stop == b.start and b.start % 8 == 0 for a, b in itertools.pairwise(pieces))
    assert len(pieces) >= min(threads, -(-count // 8))
    short: list[slice] = []
    share(short.append, count, threads, most=96)
    short.sort(key=lambda piece: piece.start)
    assert [short[0].start, short[-1].stop] == [0, count]
    assert all(a.stop == b.start for a, b in itertools.pairwise(short))
    assert max(piece.stop - piece.start for piece in short) <= 96


@pytest.mark.tables_cases("rollout-1", "call-1")
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "call",
    [
        "rm.rollout(model, q[:64], q[:64, 1:], np.zeros((n, model.nv)), 1e-3, threads={}).q[:, -1]",
        "rm.compile(model, 'aba')(q[:20 * n], q[:20 * n, 1:], q[:20 * n, 1:], threads={})[-64:]",
    ],
    ids=["rollout", "call"],
)
def test_ctrl_c_ends_long_calls(call: str, threads: int) -> None:
    """Within a second, on all threads; the next call is served."""
    script = f"""
import os, signal, threading, time
import numpy as np, robomodel as rm
model = rm.robots.load("mini_cheetah")
q = np.broadcast_to(model.neutral(), (2_000_000, model.nq))
def run(n):
    return {call.format(threads)}
before = run(3)
pressed = []
def press():
    pressed.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(0.05, press).start()
try:
    run(100_000)
except KeyboardInterrupt:
    print(time.monotonic() - pressed[0])
assert np.array_equal(run(3), before)
"""
    made = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=True
    )
    assert float(made.stdout) < 1.0
