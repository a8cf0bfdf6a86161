"""Kernels for graphics cards, as far as they can be tried without one.

PTX runs by an interpreter, and its numbers are held against those of the processor's kernels; it is
assembled where NVIDIA's assembler is; calls go to a driver that runs the interpreter."""

from __future__ import annotations

import math
import pickle
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import few
from compiled_targets import on_card
from cuda_driver import Card, OnCard, arguments_of
from ptx_interpreter import Launch, Module
from rollouts import q_and_v
from shipped_robots import DISTINCT, LARGE

import robomodel as rm
from robomodel.cuda import launch, ptx
from robomodel.cuda.rollout import CudaRollout
from robomodel.cuda.slices import divided
from robomodel.kernels import Program, Trace
from robomodel.kernels.function import CudaKernel
from robomodel.kernels.program import PRECISIONS
from robomodel.scalars import sincos

PTXAS = shutil.which("ptxas")

needs_ptxas = pytest.mark.skipif(PTXAS is None, reason="NVIDIA's assembler ptxas is not installed")

each_dtype = pytest.mark.parametrize("dtype", ["float64", "float32"])

# ---- angles --------------------------------------------------------------------------------------


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
        ptx.ptx(Program(1, (), (0,)), "a b", [1, 1])


# ---- robots --------------------------------------------------------------------------------------


def card_agrees(robot: str, algorithm: str, dtype: str, **options: Any) -> None:
    """To the last bit, but where the processor takes the smallest numbers for zero."""
    model = rm.robots.load(robot)
    kernel = CudaKernel(rm.compile(model, algorithm, **options).function, dtype)
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
    card_agrees(robot, algorithm, dtype, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("robot", "dtype"),
    [(x, dtype) for x in DISTINCT for dtype in PRECISIONS if x not in LARGE or dtype == "float64"],
)
def test_all_robots(robot: str, dtype: str) -> None:
    for algorithm in ("rnea", "aba", "crba"):
        card_agrees(robot, algorithm, dtype)
    if rm.robots.load(robot).nv <= 12:  # others take half a minute of the interpreter's time each
        card_agrees(robot, "rnea_derivatives", dtype)
        card_agrees(robot, "aba_derivatives", dtype)


@pytest.mark.parametrize("cached", [0, 8192])
def test_derivatives_in_slices_of_each_result(cached: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a small robot fit into registers; here each number is a slice of its own.

    Slices of 32 states run together, or all blocks of a slice before those of the next.
    """
    monkeypatch.setattr(ptx, "CACHED_STEPS", cached)
    model = rm.robots.load("four_bar")
    kernel = CudaKernel(rm.compile(model, "aba_derivatives").function)
    program, given = kernel.program, arguments_of(kernel, 40)
    made = divided(program, [[x] for x in program.distinct])
    assert len(made) == 3
    found = on_card(program, [*kernel.sizes.values(), 3], "float64", slices=made)(given)
    expected = rm.compile(model, "aba_derivatives")(*given)
    np.testing.assert_array_equal(found, np.concatenate([x[..., 0] for x in expected], axis=1))


# ---- over time -----------------------------------------------------------------------------------


def motions(model: rm.Model, count: int, times: int, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    v, tau = rng.normal(size=(count, model.nv)), rng.normal(size=(count, times, model.nv))
    return [x.astype(dtype) for x in (q, 0.1 * v, 0.1 * tau)]


@pytest.mark.slow_cases("four_bar-rk4-float64")
@pytest.mark.parametrize(
    ("robot", "method", "dtype"),
    [
        ("four_bar", "rk4", "float64"),
        ("puma560", "semi_implicit_euler", "float32"),
        pytest.param("mini_cheetah", "rk4", "float64", marks=pytest.mark.tables),
        pytest.param("mini_cheetah", "semi_implicit_euler", "float64", marks=pytest.mark.slow),
        pytest.param("tello", "rk4", "float64", marks=pytest.mark.tables),
    ],
)
def test_rollouts_are_those_of_the_processor(robot: str, method: str, dtype: str) -> None:
    model = rm.robots.load(robot)
    kernel = rm.cuda.rollout_kernel(model, method, dtype=dtype)
    q, v, tau = motions(model, 3, 6, dtype)
    result = np.full((4, 7, kernel.sizes[-1]), 7.0, dtype)
    pointers = [x.ctypes.data for x in (q, v, tau, result)]
    step = int(np.array(1e-3, dtype).view(f"u{result.itemsize}"))
    parameters = [*pointers, model.nq, model.nv, 6 * model.nv, 3, 6, step]
    Launch(kernel.ptx, f"rollout_{dtype}", parameters, 1, ptx.THREADS, [q, v, tau, result[:3]])
    expected = q_and_v(
        rm.rollout(model, q, v, tau, 1e-3, method=method, dtype=dtype, friction=False)
    )
    together = np.concatenate(expected, axis=-1)
    # linkages begin in another basis of their motions there
    linked = 1e-13 if robot in ("four_bar", "tello") else 0
    np.testing.assert_allclose(result[:3], together, rtol=linked,
                               atol=1e-35 if dtype == "float32" else linked)  # fmt: skip
    assert np.all(result[3] == 7.0)


@pytest.mark.slow
def test_rollouts_are_called_with_an_axis_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model = rm.robots.load("four_bar")
    kernel = rm.cuda.rollout_kernel(model, "semi_implicit_euler")
    card = Card(kernel.ptx)
    monkeypatch.setattr(launch, "driver", lambda: launch.Driver(card))
    q, v, tau = motions(model, 4, 5, "float64")
    expected = q_and_v(
        rm.rollout(model, q, v, tau, 2e-3, method="semi_implicit_euler", friction=False)
    )
    for a, b in zip(kernel(*map(OnCard, (q, v, tau)), 2e-3, stream=7), expected, strict=True):
        np.testing.assert_allclose(a.array, b, rtol=0, atol=1e-13)
    found = kernel(OnCard(q), OnCard(v[0]), OnCard(tau[0]), 2e-3)[0].array
    shared = rm.rollout(
        model, q, v[0], tau[0], 2e-3, method="semi_implicit_euler", friction=False
    ).q
    np.testing.assert_allclose(found, shared, rtol=0, atol=1e-13)
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
        rm.cuda.rollout_kernel(model, "time_stepping")
    with pytest.raises(ValueError, match="at least one"):
        rm.cuda.rollout_kernel(model, closing=0)


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
    # rows of one number are moved by a thread each; those of four, q's, by four threads, eight
    # rows of which each has four: together, or one by one in a block that is not full
    many = {"st.global": 1, "ld.global.nc": 5 + 1 + 1, "ld.shared": kernel.program.inputs + 1}
    for what, count in many.items():  # older LLVM writes .f64
        assert len(re.findall(rf"{what}\.[bf]{PRECISIONS[dtype].bits}\b", text)) == count
    assert text.count("bar.sync") == 2


@each_dtype
def test_blocks_and_their_memory(dtype: str) -> None:
    trace = Trace()
    xs = trace.inputs(500)
    program = trace.program([x * x for x in xs])
    together = divided(program, [program.distinct])
    text = ptx.in_slices("f", [500, 500], dtype, together)
    assert ptx.gathered(dtype) % 2 == 1  # so that rows begin in different banks
    assert 0.9 * ptx.STAGED < Module(text).shared <= ptx.STAGED
    kernel = rm.cuda.rollout_kernel(rm.robots.load("four_bar"), "semi_implicit_euler", dtype=dtype)
    assert [ptx.grid_blocks(kernel.ptx, n) for n in (0, 1, 32, 33)] == [0, 1, 1, 2]


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
                ("mini_cheetah", "rnea_derivatives", "float64", 200),
                ("mit_humanoid", "rnea_derivatives", "float32", 0),
            ]
        ],
        *[
            pytest.param("mini_cheetah", "aba_derivatives", *case, marks=pytest.mark.tables)
            for case in [("float32", 2500), ("float64", 30000)]
        ],
    ],
)
def test_nvidias_assembler_takes_it(
    robot: str, algorithm: str, dtype: str, spilled: int, tmp_path: Path
) -> None:
    model = rm.robots.load(robot)
    if algorithm == "rollout":
        kernel = rm.cuda.rollout_kernel(model, "semi_implicit_euler", dtype=dtype)
    else:
        kernel = rm.compile(model, algorithm, dtype=dtype, target="cuda")
    registers, spills = assembled(kernel, tmp_path)
    assert registers <= 255
    assert spills <= spilled
