"""Kernels for graphics cards, as far as they can be tried without one.

The per-state functions run on the processor, on whose kernels' numbers theirs are held; the PTX is
read, and assembled where NVIDIA's assembler is; calls go to a driver that runs the former.
"""

from __future__ import annotations

import ctypes
import math
import pickle
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import few
from shipped import ROBOTS
from targets import on_card, threads

import robomodel as rm
from robomodel.dynamics.card import CudaKernel
from robomodel.kernels import (
    NoCompilerError,
    Program,
    Trace,
    cuda,
    cuda_arrays,
    machine,
    ptx,
    ptx_loop,
)
from robomodel.kernels.precision import PRECISIONS
from robomodel.kernels.slices import divided, sliced
from robomodel.scalars import sincos
from robomodel.trajectory.rollouts.card import CudaRollout

PTXAS = shutil.which("ptxas")
needs_ptxas = pytest.mark.skipif(PTXAS is None, reason="NVIDIA's assembler ptxas is not installed")
each_dtype = pytest.mark.parametrize("dtype", ["float64", "float32"])


# ---- angles ------------------------------------------------------------------------------------


def test_sine_of_the_double_that_comes_closest_to_quarter_turns() -> None:
    """Its cosine is Muller's, Elementary Functions, 11.2; C libraries lose three bits of it."""
    trace = Trace()
    program = trace.program(list(sincos(trace.inputs(1)[0])))
    x = math.ldexp(6381956970095103.0, 797)
    found = on_card(program, [1, 2], "float64")([np.array([[x], [-x]])])
    cosine = -4.68716592425462761112e-19
    np.testing.assert_allclose(found, [[1.0, cosine], [-1.0, cosine]], rtol=3e-16, atol=0)


def test_names_of_entries() -> None:
    with pytest.raises(ValueError, match="'a b'"):
        ptx.emit(Program(1, (), (0,)), "a b", [1, 1])


# ---- robots --------------------------------------------------------------------------------------


def arguments_of(kernel: CudaKernel, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    q = np.array([kernel.model.random_configuration(rng) for _ in range(count)])
    found = [q if name == "q" else rng.normal(size=(count, n)) for name, n in kernel.sizes.items()]
    return [x.astype(kernel.dtype) for x in found]


def agree(robot: str, algorithm: str, dtype: str, **options: Any) -> None:
    """To the last bit, but where the processor takes the smallest numbers for zero."""
    model = rm.robots.load(robot)
    kernel = CudaKernel(model, rm.compile(model, algorithm, **options).task, dtype)
    given = arguments_of(kernel, 5)
    found = on_card(kernel.program, [*kernel.sizes.values(), kernel.size], dtype)(given)
    expected = rm.compile(model, algorithm, dtype=dtype, **options)(*given)
    results = expected if isinstance(expected, tuple) else (expected,)
    flat = np.concatenate([x.reshape(5, -1) for x in results], axis=1)
    np.testing.assert_allclose(found, flat, rtol=0, atol=1e-35 if dtype == "float32" else 0)


@each_dtype
@pytest.mark.parametrize(
    ("robot", "algorithm"),
    few(
        [
            ("four_bar", "aba"),
            ("mini_cheetah", "rnea"),
            ("mini_cheetah", "rnea_derivatives"),
            ("tello", "energy"),
            ("puma560", "frame_pose"),
        ],
        ("four_bar", "aba"),
        ("puma560", "frame_pose"),
    ),
)
def test_robots_numbers_are_those_of_the_processors_kernels(
    robot: str, algorithm: str, dtype: str
) -> None:
    options = {"frame": "link6"} if algorithm == "frame_pose" else {}
    agree(robot, algorithm, dtype, **options)


@pytest.mark.slow
@each_dtype
@pytest.mark.parametrize("robot", ROBOTS)
def test_all_robots(robot: str, dtype: str) -> None:
    for algorithm in ("rnea", "aba", "crba", "rnea_derivatives", "aba_derivatives"):
        agree(robot, algorithm, dtype)


def test_derivatives_in_slices_of_each_result() -> None:
    """Those of a small robot fit into registers; here each number is a slice of its own."""
    model = rm.robots.load("four_bar")
    kernel = CudaKernel(model, rm.compile(model, "aba_derivatives").task)
    program, given = kernel.program, arguments_of(kernel, 40)
    made = divided(program, [[x] for x in program.packing.values])
    assert len(made) == 3
    found = on_card(program, [*kernel.sizes.values(), 3], "float64", slices=made)(given)
    expected = rm.compile(model, "aba_derivatives")(*given)
    np.testing.assert_array_equal(found, np.concatenate([x[..., 0] for x in expected], axis=1))


# ---- over time -----------------------------------------------------------------------------------


def loop_on_host(kernel: CudaRollout) -> Callable[..., None]:
    """The kernel of rollouts here; its step is a number of the kernel's type."""
    made = kernel._steps
    text = ptx_loop.emit(kernel.program, "f", kernel.sizes, [*kernel.parts.values()],
                         made.iteration, kernel.dtype, ptx.ON_HOST)  # fmt: skip
    number = ctypes.c_float if kernel.dtype == "float32" else ctypes.c_double
    return threads(text, 4, 5, number)


def motions(model: rm.Model, count: int, times: int, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    v, tau = rng.normal(size=(count, model.nv)), rng.normal(size=(count, times, model.nv))
    return [x.astype(dtype) for x in (q, 0.1 * v, 0.1 * tau)]


@pytest.mark.parametrize(
    ("robot", "method", "dtype"),
    [
        ("four_bar", "rk4", "float64"),
        ("puma560", "semi_implicit_euler", "float32"),
        pytest.param("mini_cheetah", "rk4", "float64", marks=pytest.mark.slow),
        pytest.param("mini_cheetah", "semi_implicit_euler", "float64", marks=pytest.mark.slow),
        pytest.param("tello", "rk4", "float64", marks=pytest.mark.slow),
    ],
)
def test_rollouts_are_those_of_the_processor(robot: str, method: str, dtype: str) -> None:
    model = rm.robots.load(robot)
    kernel = rm.rollout_kernel(model, method, dtype=dtype)
    q, v, tau = motions(model, 3, 6, dtype)
    result = np.full((4, 7, kernel.sizes[-1]), 7.0, dtype)
    pointers = [x.ctypes.data for x in (q, v, tau, result)]
    loop_on_host(kernel)(*pointers, model.nq, model.nv, 6 * model.nv, 3, 6, 1e-3, count=3)
    expected = rm.rollout(model, q, v, tau, 1e-3, method, dtype=dtype, friction=False)
    together = np.concatenate(expected, axis=-1)
    np.testing.assert_allclose(result[:3], together, rtol=0,
                               atol=1e-35 if dtype == "float32" else 0)  # fmt: skip
    assert np.all(result[3] == 7.0)


def test_rollouts_are_called_with_an_axis_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model = rm.robots.load("four_bar")
    kernel = rm.rollout_kernel(model, "semi_implicit_euler")
    card = Card(None, loop_on_host(kernel), numbers=(9,))
    monkeypatch.setattr(cuda, "driver", lambda: cuda.Driver(card))
    q, v, tau = motions(model, 4, 5, "float64")
    expected = rm.rollout(model, q, v, tau, 2e-3, "semi_implicit_euler", friction=False)
    for a, b in zip(kernel(*map(OnCard, (q, v, tau)), 2e-3, stream=7), expected, strict=True):
        np.testing.assert_array_equal(a.array, b)
    found = kernel(OnCard(q), OnCard(v[0]), OnCard(tau[0]), 2e-3)[0].array
    shared = rm.rollout(model, q, v[0], tau[0], 2e-3, "semi_implicit_euler", friction=False)[0]
    np.testing.assert_array_equal(found, shared)
    lost = q + np.array([0.0, 0.1, 0.0])  # open loops: no numbers from the first step on
    found = kernel(OnCard(lost), OnCard(v), OnCard(tau), 2e-3)[0].array
    np.testing.assert_array_equal(found[:, 0], lost)
    assert np.isnan(found[:, 1:]).all()
    for wrong, error, message in (
        ((OnCard(q), OnCard(v), OnCard(tau[..., 0]), 1e-3), ValueError, r"\(\.\.\., T, 1\)"),
        ((OnCard(q), OnCard(v), OnCard(tau[:, ::2]), 1e-3), ValueError, "rows of tau"),
        ((OnCard(q), OnCard(v), OnCard(tau), math.nan), ValueError, "number of seconds"),
        ((OnCard(q), OnCard(v), OnCard(tau), "1 ms"), TypeError, "step"),
    ):
        with pytest.raises(error, match=message):
            kernel(*wrong)
    assert pickle.loads(pickle.dumps(kernel)).ptx == kernel.ptx
    with pytest.raises(ValueError, match="'time_stepping' cannot be had on cards"):
        rm.rollout_kernel(model, "time_stepping")
    with pytest.raises(ValueError, match="at least one"):
        rm.rollout_kernel(model, closing=0)


# ---- PTX -----------------------------------------------------------------------------------------


@each_dtype
def test_ptx_has_one_entry_with_its_parameters(dtype: str) -> None:
    kernel = rm.compile(rm.robots.load("four_bar"), "aba", dtype=dtype, target="cuda")
    text = kernel.ptx
    assert re.search(r"^\.target sm_\d+", text, re.MULTILINE)
    assert re.search(r"^\.version \d+\.\d+", text, re.MULTILINE)
    assert ".address_size 64" in text
    assert re.findall(r"\.visible \.entry (\w+)\(", text) == [f"aba_{dtype}"]
    (parameters,) = re.findall(r"\.visible \.entry \w+\((.*?)\)", text, re.DOTALL)
    assert parameters.count(".param .u64") == 4 + 3 + 1  # q, v, tau, a; steps; how many
    assert f".maxntid {ptx.THREADS}" in text
    assert ".extern" not in text  # nothing that somebody else would have to bring
    assert text.count(f"st.global.b{PRECISIONS[dtype].bits}") == 1
    assert text.count(f"ld.global.nc.b{PRECISIONS[dtype].bits}") == 3  # for all threads in turn
    assert text.count(f"ld.shared.b{PRECISIONS[dtype].bits}") == kernel.program.inputs + 1
    assert text.count("bar.sync") == 2


def assembled(kernel: CudaKernel | CudaRollout, folder: Path) -> tuple[int, int]:
    """What NVIDIA's assembler says: registers, and bytes of spill stores."""
    (folder / "k.ptx").write_text(kernel.ptx)
    command = [PTXAS, "-v", "-arch=sm_90", folder / "k.ptx", "-o", folder / "k.cubin"]
    said = subprocess.run(command, check=True, capture_output=True, text=True)
    text = said.stdout + said.stderr
    spills = [int(x) for x in re.findall(r"(\d+) bytes spill stores", text)]
    return int(re.findall(r"Used (\d+) registers", text)[0]), sum(spills)


@needs_ptxas
@pytest.mark.parametrize(
    ("robot", "algorithm", "dtype", "spilled"),
    [
        ("four_bar", "aba", "float64", 0),
        ("mini_cheetah", "rnea", "float32", 0),
        ("four_bar", "rollout", "float64", 0),
        *[
            pytest.param(*case, marks=pytest.mark.slow)
            for case in [
                ("mini_cheetah", "aba", "float32", 50),
                ("mini_cheetah", "rnea", "float64", 200),
                ("mini_cheetah", "aba", "float64", 2500),
                ("mit_humanoid", "rnea", "float32", 0),
                ("mit_humanoid", "aba", "float32", 600),
                ("mit_humanoid", "rnea", "float64", 1000),
                ("mit_humanoid", "aba", "float64", 6000),
                ("mini_cheetah", "rnea_derivatives", "float32", 0),
                ("mini_cheetah", "rnea_derivatives", "float64", 0),
                ("mit_humanoid", "rnea_derivatives", "float32", 0),
                ("mini_cheetah", "aba_derivatives", "float32", 2500),
                ("mini_cheetah", "aba_derivatives", "float64", 30000),
            ]
        ],
    ],
)
def test_nvidias_assembler_takes_it(
    robot: str, algorithm: str, dtype: str, spilled: int, tmp_path: Path
) -> None:
    model = rm.robots.load(robot)
    if algorithm == "rollout":
        kernel = rm.rollout_kernel(model, "semi_implicit_euler", dtype=dtype)
    else:
        kernel = rm.compile(model, algorithm, dtype=dtype, target="cuda")
    registers, spills = assembled(kernel, tmp_path)
    assert registers <= 255
    assert spills <= spilled


# ---- calls ---------------------------------------------------------------------------------------


class Card:
    """Stands for the driver's library: what is launched runs here, at once."""

    def __init__(
        self, kernel: CudaKernel | None, run: Any = None, numbers: Sequence[int] = (),
        pointers: int = 4,
    ) -> None:  # fmt: skip
        """``run``: a function of which these arguments are numbers, not pointers or integers."""
        self.numbers, self.pointers, self.run, self.slices = numbers, pointers, run, 1
        if kernel is not None:
            sizes = [*kernel.sizes.values(), kernel.size]
            slices = sliced(kernel.program, kernel.dtype, ptx.gathered(kernel.dtype))
            text = ptx.emit(kernel.program, "f", sizes, kernel.dtype, ptx.ON_HOST, slices)
            self.slices, self.pointers = len(slices), len(sizes)
            self.run = threads(text, len(sizes), len(sizes), slices=self.slices)
        self.log: list[str] = []
        self.memory: dict[int, np.ndarray] = {}
        self.fails: dict[str, int] = {}
        self.streams: list[int] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        assert name.startswith("cu")

        def function(*arguments: Any) -> int:
            self.log.append(name)
            code = self.fails.get(name, 0)
            if name == "cuLaunchKernel" and not code:
                _, *grid, shared, stream, given, extra = arguments
                assert (shared.value, extra) == (0, None)
                blocks, *others, size = [x.value for x in grid][0:4]
                assert others == [1, 1]
                kinds = dict.fromkeys(self.numbers, ctypes.c_double)
                values = [kinds.get(i, ctypes.c_int64).from_address(x).value
                          for i, x in enumerate(given)]  # fmt: skip
                count = values[2 * self.pointers - 1]
                assert blocks % self.slices == 0
                assert (blocks // self.slices - 1) * size < count <= blocks // self.slices * size
                self.streams.append(stream.value)
                self.run(*values, count=count)
            if name == "cuMemAlloc_v2":
                made = np.full(64, 7.0)
                assert arguments[1].value <= made.nbytes
                self.memory[made.ctypes.data] = made
                ctypes.cast(arguments[0], ctypes.POINTER(ctypes.c_uint64))[0] = made.ctypes.data
            if name == "cuMemFree_v2":
                del self.memory[arguments[0].value]
            if name == "cuGetErrorString":
                ctypes.cast(arguments[1], ctypes.POINTER(ctypes.c_char_p))[0] = b"out of memory"
            return code

        return function


class OnCard:
    """Stands for an array on a card, as PyTorch's are."""

    def __init__(self, array: np.ndarray, stream: int | None = None) -> None:
        self.array, self.stream = array, stream

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        told = self.array.__array_interface__
        keys = ("shape", "typestr", "data", "strides")
        return {**{key: told[key] for key in keys}, "version": 3, "stream": self.stream}

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def new_empty(self, shape: tuple[int, ...]) -> OnCard:
        return OnCard(np.full(shape, 7.0, self.array.dtype))

    def __getitem__(self, where: Any) -> OnCard:
        return OnCard(self.array[where])

    def reshape(self, shape: tuple[int, ...]) -> OnCard:
        return OnCard(self.array.reshape(shape))


class ByDLPack:
    """The same without the interface."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.streams = array, []

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, stream: int) -> Any:
        self.streams.append(stream)
        return self.array.__dlpack__()


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> tuple[CudaKernel, Card]:
    model = rm.robots.load("planar_leg_linkage")
    kernel = CudaKernel(model, rm.compile(model, "aba").task)
    card = Card(kernel)
    driver = cuda.Driver(card)
    monkeypatch.setattr(cuda, "driver", lambda: driver)
    return kernel, card


def test_calls(launched: tuple[CudaKernel, Card]) -> None:
    kernel, card = launched
    on_cpu = rm.compile(kernel.model, "aba")
    given = arguments_of(kernel, 6)
    arrays = [OnCard(x) for x in given]
    result = kernel(*arrays)
    assert isinstance(result, OnCard)
    np.testing.assert_array_equal(result.array, on_cpu(*given))
    assert card.log.count("cuModuleLoadData") == 1
    assert card.log[-1] == "cuCtxPopCurrent_v2"
    # batches of several axes, of one state, of none; arguments that all states share; other rows
    q, v, tau = given
    for shape in ((2, 3), (3, 1, 2)):
        found = kernel(*(OnCard(x.reshape(*shape, -1)) for x in given)).array
        np.testing.assert_array_equal(found.reshape(6, -1), on_cpu(*given))
    np.testing.assert_array_equal(kernel(*(x[2] for x in arrays)).array, on_cpu(q, v, tau)[2])
    shared = kernel(OnCard(q), OnCard(v[0]), OnCard(tau[:1])).array
    np.testing.assert_array_equal(shared, on_cpu(q, v[0], tau[:1]))
    np.testing.assert_array_equal(kernel(*(x[::-2] for x in arrays)).array, on_cpu(*given)[::-2])
    assert kernel(*(x[:0] for x in arrays)).array.shape == (0, kernel.model.nv)
    assert card.log.count("cuModuleLoadData") == 1
    assert card.log.count("cuDevicePrimaryCtxRetain") == 1
    wide = [OnCard(x.reshape(2, 3, -1)[:, :2]) for x in given]
    with pytest.raises(ValueError, match="rows of q do not stand evenly"):
        kernel(*wide)
    out = OnCard(np.zeros((6, kernel.model.nv)))
    assert kernel(*arrays, out=out, stream=11) is out
    np.testing.assert_array_equal(out.array, result.array)
    assert card.streams[0] == 1
    assert card.streams[-1] == 11


def test_streams_and_dlpack(launched: tuple[CudaKernel, Card]) -> None:
    kernel, card = launched
    given = arguments_of(kernel, 4)
    packs = [ByDLPack(x) for x in given[1:]]

    class Stream:
        cuda_stream = 23

    class Protocol:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, 29

    expected = rm.compile(kernel.model, "aba")(*given)
    np.testing.assert_array_equal(kernel(OnCard(given[0], 5), *packs).array, expected)
    assert card.log.count("cuStreamSynchronize") == 1  # of the stream on which q is made
    kernel(OnCard(given[0]), *packs, stream=Stream())
    kernel(OnCard(given[0]), *packs, stream=Protocol())
    kernel(OnCard(given[0]), *packs, stream=0)
    assert card.streams == [1, 23, 29, 1]
    assert packs[0].streams == card.streams
    with pytest.raises(TypeError, match="stream must be"):
        kernel(OnCard(given[0]), *packs, stream="first")


def test_new_arrays_of_other_libraries_are_handed_over(
    launched: tuple[CudaKernel, Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By DLPack or the interface, with their memory, which lives as long as anybody has it."""
    kernel, card = launched
    given = arguments_of(kernel, 4)
    expected = rm.compile(kernel.model, "aba")(*given)
    packs = [ByDLPack(x) for x in given]
    found = kernel(*packs, stream=17)
    assert found.__dlpack_device__() == (2, 0)
    np.testing.assert_array_equal(on_this(found.__dlpack__(stream=17)), expected)
    told = found.__cuda_array_interface__
    assert (told["shape"], told["typestr"], told["stream"]) == ((4, 2), "<f8", 17)
    part = found[..., 1:2].reshape((4, 1, 1))
    np.testing.assert_array_equal(on_this(part.__dlpack__(stream=-1)), expected[:, 1:, None])
    assert "cuStreamSynchronize" not in card.log
    capsule = found.__dlpack__()
    assert card.log.count("cuStreamSynchronize") == 1  # for whom it does not say
    del found, part, told
    assert len(card.memory) == 1
    np.testing.assert_array_equal(on_this(capsule), expected)
    del capsule
    assert not card.memory

    class OfJax(ByDLPack):
        """Stands for JAX's arrays."""

    OfJax.__module__ = "jaxlib._jax"
    taken = types.SimpleNamespace(numpy=types.SimpleNamespace(from_dlpack=lambda x: [x.shape]))
    monkeypatch.setitem(sys.modules, "jax", taken)
    assert kernel(OfJax(given[0]), *packs[1:]) == [(4, 2)]


def on_this(capsule: Any) -> np.ndarray:
    """A capsule's numbers, copied."""
    x = cuda_arrays.tensor(capsule)
    numbers = (ctypes.c_double * 64).from_address(x.address)
    strides = [8 * s for s in x.strides]
    return np.lib.stride_tricks.as_strided(np.frombuffer(numbers), x.shape, strides).copy()


def test_several_results_are_views_of_one_array(monkeypatch: pytest.MonkeyPatch) -> None:
    model = rm.robots.load("four_bar")
    kernel = rm.compile(model, "aba_derivatives", target="cuda", dtype="float32")
    monkeypatch.setattr(cuda, "driver", lambda: cuda.Driver(Card(kernel)))
    given = arguments_of(kernel, 3)
    expected = rm.compile(model, "aba_derivatives", dtype="float32")(*given)
    found = kernel(*map(OnCard, given))
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a.array, b)


def test_packed_numbers_and_what_they_expand_to(monkeypatch: pytest.MonkeyPatch) -> None:
    model = rm.robots.load("planar_leg_linkage")
    for algorithm in ("crba", "rnea_derivatives"):
        kernel = rm.compile(model, algorithm, target="cuda", packed=True)
        assert kernel is rm.compile(model, algorithm, target="cuda", packed=True)
        on_cpu = rm.compile(model, algorithm, packed=True)
        given = arguments_of(kernel, 3)
        card = Card(kernel)
        monkeypatch.setattr(cuda, "driver", lambda library=card: cuda.Driver(library))
        numbers = kernel(*map(OnCard, given))
        np.testing.assert_array_equal(numbers.array, on_cpu(*given))
        program = kernel._whole.packing.expansion()
        sizes = [program.inputs, len(program.outputs)]
        slices = sliced(program, "float64", ptx.gathered("float64"))
        text = ptx.emit(program, "f", sizes, "float64", ptx.ON_HOST, slices)
        card = Card(None, threads(text, 2, 2), pointers=2)
        monkeypatch.setattr(cuda, "driver", lambda library=card: cuda.Driver(library))
        found, expected = kernel.expand(numbers), rm.compile(model, algorithm)(*given)
        assert ".entry expand_float64(" in kernel._expansion.ptx
        for a, b, i, c in zip(*(x if isinstance(x, tuple) else (x,) for x in (
            found, expected, kernel.index, kernel.constants
        )), strict=True):  # fmt: skip
            np.testing.assert_array_equal(a.array, b)
            np.testing.assert_array_equal(np.where(i < 0, c, numbers.array[:, i]), b)
        again = pickle.loads(pickle.dumps(kernel))
        assert again.packed
        assert again.ptx == kernel.ptx


def test_robots_without_joints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results without numbers have their shape, and nothing is launched; others are computed."""
    model = rm.load(
        """<robot name="stone"><link name="stone"><inertial><origin xyz="1 2 3"/><mass value="2"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""
    )
    for algorithm, shapes, options in (
        ("aba", [(0,)], {}),
        ("aba_derivatives", [(0, 0)] * 3, {}),
        ("energy", [(), ()], {}),
        ("frame_pose", [(4, 4)], {"frame": ("stone", (0.0, 0.0, 3.0))}),
    ):
        kernel = rm.compile(model, algorithm, target="cuda", **options)
        card = Card(kernel)
        monkeypatch.setattr(cuda, "driver", lambda library=card: cuda.Driver(library))
        found = kernel(*[OnCard(np.zeros((3, 0))) for _ in kernel.sizes])
        results = found if isinstance(found, tuple) else (found,)
        assert [x.shape for x in results] == [(3, *shape) for shape in shapes]
        assert card.log.count("cuLaunchKernel") == (math.prod(shapes[0]) > 0)
        pose = np.eye(4)
        pose[2, 3] = 3.0
        for x in results:
            np.testing.assert_array_equal(
                x.array, np.broadcast_to(pose if options else 0.0, x.shape)
            )


def test_what_does_not_fit_is_refused_before_anything_runs(
    launched: tuple[CudaKernel, Card],
) -> None:
    kernel, card = launched
    q, v, tau = map(OnCard, arguments_of(kernel, 4))
    with pytest.raises(TypeError, match="q, v, tau"):
        kernel(q, v)
    with pytest.raises(TypeError, match=r"tau must be an array on the card.*ndarray"):
        kernel(q, v, tau.array)
    with pytest.raises(TypeError, match=r"v must be of float64 .* got float32"):
        kernel(q, OnCard(v.array.astype("f4")), tau)
    with pytest.raises(TypeError, match=r"v must be of float64 .* got DLPack's"):
        kernel(q, ByDLPack(v.array.astype(int)), tau)
    with pytest.raises(ValueError, match=r"v must have the shape \(..., 2\)"):
        kernel(q, q, tau)
    with pytest.raises(ValueError, match=r"v has the batch \(3,\)"):
        kernel(q, v[:3], tau)
    with pytest.raises(ValueError, match="share memory with tau"):
        kernel(q, v, tau, out=tau)
    with pytest.raises(ValueError, match=r"shape \(4, 2\), got \(3, 2\)"):
        kernel(q, v, tau, out=OnCard(np.zeros((3, 2))))
    with pytest.raises(ValueError, match="contiguous"):
        kernel(q, v, tau, out=OnCard(np.zeros((8, 2))[::2]))
    locked = np.zeros((4, 2))
    locked.flags.writeable = False
    with pytest.raises(TypeError, match="writable"):
        kernel(q, v, tau, out=OnCard(locked))
    assert "cuLaunchKernel" not in card.log
    card.fails["cuModuleLoadData"] = 2
    with pytest.raises(cuda.NoCardError, match=r"cuModuleLoadData: out of memory \(2\)"):
        kernel(q, v, tau)
    assert card.log[-1] == "cuCtxPopCurrent_v2"


def test_tensors_of_processors_are_told_apart(launched: tuple[CudaKernel, Card]) -> None:
    torch = pytest.importorskip("torch")
    kernel, _ = launched
    with pytest.raises(TypeError, match=r"q must be an array on the card.*torch\.Tensor"):
        kernel(*(torch.as_tensor(x) for x in arguments_of(kernel, 2)))


def test_without_a_driver_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    kernel = rm.compile(model := rm.robots.load("four_bar"), "aba", target="cuda")
    monkeypatch.setattr(cuda.ctypes, "CDLL", none)
    cuda.driver.cache_clear()
    with pytest.raises(RuntimeError, match=r"NVIDIA's cards, and their driver .* not installed"):
        kernel(model.neutral(), np.zeros(1), np.zeros(1))
    assert rm.compile(model, "aba", target="cuda") is kernel


def test_targets_by_name() -> None:
    model = rm.robots.load("four_bar")
    assert isinstance(rm.compile(model, "aba", target="cpu"), rm.Kernel)
    with pytest.raises(ValueError, match="target 'tpu' is not known; 'cpu' and 'cuda' are"):
        rm.compile(model, "aba", target="tpu")
    with pytest.raises(ValueError, match="dtype 'float16'"):
        rm.compile(model, "aba", target="cuda", dtype="float16")
    with pytest.raises(ValueError, match="algorithm 'rollout' is not known"):
        rm.compile(model, "rollout", target="cuda")
    kernel = rm.compile(model, "aba", target="cuda", order="crba")
    assert kernel.backward_error is not None
    again = pickle.loads(pickle.dumps(kernel))
    assert again.ptx == kernel.ptx
    assert repr(again).startswith("<CudaKernel aba of 'four_bar'")


def test_without_llvm_for_cards_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **settings: str) -> str:
        raise RuntimeError(f"no target for {settings['triple']}")

    model = rm.robots.load("four_bar", gravity=(0.0, 0.0, -3.7))
    monkeypatch.setattr(machine, "assembly", unknown)
    monkeypatch.setenv("ROBOMODEL_CACHE", "off")
    with pytest.raises(NoCompilerError, match=r"PTX cannot be written here .*nvptx64"):
        rm.compile(model, "aba", target="cuda")
