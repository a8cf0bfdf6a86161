"""Kernels on an NVIDIA GPU: ``python -m benchmarks.cards``. Needs a GPU and PyTorch.

Times per state of functions and rollouts on the GPU, by its own events, beside the processor's
kernels on all its cores, in one process; the driver's compilation at the first call; registers and
local memory of a thread as the driver reports them. ``memory_ns`` is what a copy by the GPU of as
many bytes as must be read and written takes, the least that memory allows.
``--slices`` times other divisions of derivatives into slices beside the one that is chosen.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch

import robomodel as rm
from robomodel.cuda import ptx, slices
from robomodel.cuda.launch import CompiledPtx, driver
from robomodel.kernels.function import CudaKernel, TracedFunction

ROBOTS = ["four_bar", "parallel_ankle", "tello", "mini_cheetah", "mit_humanoid"]
ALGORITHMS = ["rnea", "aba", "crba", "rnea_derivatives", "aba_derivatives"]
DTYPES = ["float32", "float64"]
METHODS = ["semi_implicit_euler", "rk4"]
ROLLOUTS = ["mini_cheetah", "tello", "planar_leg_linkage"]
SLICED = [("mini_cheetah", "rnea_derivatives"), ("mini_cheetah", "aba_derivatives"),
          ("mit_humanoid", "rnea_derivatives"), ("mit_humanoid", "aba_derivatives")]  # fmt: skip
REPEATS = 15
STATES = 1 << 19
TIMES = 100  # of a rollout


@dataclass(frozen=True)
class Row:
    """A kernel's times: nanoseconds a state (of rollouts: a step)."""

    robot: str
    function: str
    dtype: str
    slices: int
    registers: int
    local_bytes: int
    driver_s: float
    states: int
    gpu_ns: float
    cpu_ns: float
    memory_ns: float
    call_us: float


def attribute(compiled: CompiledPtx, number: int) -> int:
    """An attribute of the loaded function (4: registers, 3: local memory)."""
    (function,) = compiled._functions.values()
    card, value = driver(), ctypes.c_int()
    with card.on(0):
        card.call("cuFuncGetAttribute", ctypes.byref(value), ctypes.c_int(number), function)
    return value.value


def least(action: Callable[[], object], repeats: int = REPEATS) -> float:
    """Least time of a launch [s], by the GPU's events, as a graph replays it."""
    action()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        action()
    graph.replay()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(0.5e-3 * start.elapsed_time(end))
    return min(times)


def calling(action: Callable[[], object], calls: int = 300) -> float:
    """Seconds that a call takes the processor."""
    action()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        action()
    elapsed = time.perf_counter() - start
    torch.cuda.synchronize()
    return elapsed / calls


def copying() -> float:
    """Seconds for each byte read or written, of a large copy."""
    source = torch.zeros(1 << 28, device="cuda")
    target = torch.empty_like(source)
    return least(lambda: target.copy_(source)) / (2 * source.nbytes)


def states(sizes: Sequence[tuple[str, int]], model: rm.Model, count: int, dtype: str) -> list[Any]:
    """Arguments of random states around the neutral one."""
    rng = np.random.default_rng(5)
    few = np.array([model.random_configuration(rng, near=model.neutral()) for _ in range(256)])
    given = [
        few[rng.integers(256, size=count)] if name == "q" else rng.normal(size=(count, n))
        for name, n in sizes
    ]
    return [x.astype(dtype) for x in given]


def on_card(arrays: Sequence[np.ndarray]) -> list[Any]:
    """The arrays on the GPU."""
    return [torch.from_numpy(x).cuda() for x in arrays]


def fitting(results: int, dtype: str) -> int:
    """States whose results take at most 4 GB, at most :data:`STATES`."""
    size = 4 if dtype == "float32" else 8
    return min(STATES, 1 << int(math.log2(4e9 / (size * max(results, 1)))))


def timed(
    compiled: CompiledPtx, model: rm.Model, function: TracedFunction, dtype: str
) -> tuple[float, int]:
    """Seconds a state of a kernel of derivatives, and how many states were computed."""
    count = fitting(function.size, dtype)
    arrays = on_card(states([*function.arguments.items()], model, count, dtype))
    out = torch.empty((count, function.size), dtype=arrays[0].dtype, device="cuda")
    return least(lambda: compiled(arrays, (function.size,), out)) / count, count


def kernel_row(robot: str, algorithm: str, dtype: Any, driver_s: float, per_byte: float) -> Row:
    """The row of a function."""
    model = rm.robots.load(robot)
    function = rm.compile(model, algorithm).function
    kernel = CudaKernel(function, dtype)
    count = fitting(kernel.size, dtype)
    given = states([*kernel.sizes.items()], model, count, dtype)
    arrays = on_card(given)
    out = torch.empty((count, kernel.size), dtype=arrays[0].dtype, device="cuda")
    launch = kernel._compiled
    gpu = least(lambda: launch(arrays, (kernel.size,), out)) / count
    little = [x[:1024] for x in arrays]
    call = calling(lambda: launch(little, (kernel.size,)))
    on_cpu = function.kernel(dtype)
    some = [x[: 1 << 17] for x in given]
    threads = os.cpu_count() or 1
    on_cpu(*some, threads=threads)
    cpu = []
    for _ in range(5):
        start = time.perf_counter()
        on_cpu(*some, threads=threads)
        cpu.append((time.perf_counter() - start) / len(some[0]))
    numbers = kernel.size + sum(kernel.sizes.values())
    memory = numbers * arrays[0].element_size() * per_byte
    blocks = int(kernel.ptx.split(":", 1)[1].split()[0])
    registers, local = attribute(launch, 4), attribute(launch, 3)
    return Row(robot, algorithm, dtype, blocks, registers, local, driver_s, count,
               1e9 * gpu, 1e9 * min(cpu), 1e9 * memory, 1e6 * call)  # fmt: skip


def rollout_row(robot: str, method: str, dtype: Any, driver_s: float, per_byte: float) -> Row:
    """The row of a rollout, by steps."""
    model = rm.robots.load(robot)
    kernel = rm.cuda.rollout_kernel(model, method, dtype=dtype)
    count = 1 << 16
    sizes = [("q", model.nq), ("v", model.nv)]
    given = states(sizes, model, count, dtype)
    rng = np.random.default_rng(6)
    given[1] *= 0.1
    tau = 0.1 * rng.normal(size=(1 << 10, TIMES, model.nv)).astype(dtype)
    given.append(np.tile(tau, (count >> 10, 1, 1)))
    arrays = on_card(given)
    n = model.nq + model.nv
    out = torch.empty((count, TIMES + 1, n), dtype=arrays[0].dtype, device="cuda")
    gpu = least(lambda: kernel(*arrays, 1e-3, out=out), 5) / (count * TIMES)
    lost = float(torch.isnan(out[:, -1, 0]).double().mean())
    few = [x[:1024] for x in given]
    rm.rollout(model, *[x[:64] for x in few], 1e-3, method=method, dtype=dtype, friction=False)
    start = time.perf_counter()
    rm.rollout(model, *few, 1e-3, method=method, dtype=dtype, friction=False)
    cpu = (time.perf_counter() - start) / (1024 * TIMES)
    memory = (n + model.nv) * arrays[0].element_size() * per_byte
    launch = kernel._compiled
    registers, local, name = attribute(launch, 4), attribute(launch, 3), f"{method}, nan {lost:.1%}"
    return Row(robot, name, dtype, 1, registers, local, driver_s, count, 1e9 * gpu, 1e9 * cpu,
               1e9 * memory, 0.0)  # fmt: skip


# ---- divisions into slices -----------------------------------------------------------------------


def divisions(robot: str, algorithm: str, dtype: Any) -> list[tuple[float, list[slices.Slice]]]:
    """The whole program and its partitions, with their estimated costs."""
    kernel = rm.compile(rm.robots.load(robot), algorithm).function
    program, room = kernel.program, ptx.gathered(dtype)
    found = []
    for groups in slices._partitions(program, room):
        parts = [*slices.divided(program, [x for _, x in groups])]
        found.append((sum(slices._cost(x, dtype, room) for x in parts), parts))
    whole = slices._slice(program, range(len(program.outputs)))
    found.append((slices._cost(whole, dtype, room), [whole]))
    return found


def division_rows(case: tuple[str, str, Any]) -> list[tuple[float, int, str]]:
    """The estimated cost, the number of slices and the PTX of each division."""
    robot, algorithm, dtype = case
    function = rm.compile(rm.robots.load(robot), algorithm).function
    found = []
    for cost, parts in divisions(robot, algorithm, dtype):
        text = ptx.in_slices(f"{algorithm}_{dtype}", function.sizes, dtype, parts)
        found.append((cost, len(parts), text))
    return [*{text: (cost, n, text) for cost, n, text in found}.values()]


# ---- all -----------------------------------------------------------------------------------------


def made(case: tuple[str, str, Any]) -> float:
    """Write a kernel and let the driver compile it, which both keep on disk; the driver's time."""
    robot, algorithm, dtype = case
    model = rm.robots.load(robot)
    if algorithm in METHODS:
        compiled = rm.cuda.rollout_kernel(model, algorithm, dtype=dtype)._compiled
    else:
        compiled = CudaKernel(rm.compile(model, algorithm).function, dtype)._compiled
    return load(compiled)


def load(compiled: CompiledPtx) -> float:
    """Let the driver compile; its time [s]."""
    card = driver()
    torch.zeros(1, device="cuda")
    start = time.perf_counter()
    with card.on(0):
        compiled._function(card, 0)
    return time.perf_counter() - start


def load_text(text: str, entry: str) -> float:
    """The same of PTX."""
    return load(CompiledPtx(text, entry, {}, "float64"))


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slices", action="store_true", help="divisions into slices")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    per_byte = copying()
    print(torch.cuda.get_device_name(), f"copies {1e-12 / per_byte:.2f} TB/s", flush=True)
    pool = ProcessPoolExecutor(os.cpu_count(), get_context("spawn"))
    rows: list[dict[str, Any]] = []

    def add(**row: Any) -> None:
        rows.append(row)
        cells = (f"{x:.4g}" if isinstance(x, float) else str(x) for x in row.values())
        print(" | ".join(cells), flush=True)

    with pool:
        if options.slices:
            cases = [(*x, dtype) for x in SLICED for dtype in DTYPES]
            for case, found in zip(cases, pool.map(division_rows, cases), strict=True):
                model = rm.robots.load(case[0])
                function = rm.compile(model, case[1]).function
                entry = f"{case[1]}_{case[2]}"
                texts = [text for *_, text in found]
                times = [*pool.map(load_text, texts, [entry] * len(texts))]
                for (cost, number, text), took in zip(found, times, strict=True):
                    compiled = CompiledPtx(text, entry, function.arguments, case[2])
                    gpu, count = timed(compiled, model, function, case[2])
                    add(robot=case[0], function=case[1], dtype=case[2], slices=number, cost=cost,
                        registers=attribute(compiled, 4), local=attribute(compiled, 3),
                        driver_s=took, states=count, ns=1e9 * gpu)  # fmt: skip
        else:
            kernels = [(r, a, d) for r in ROBOTS for a in ALGORITHMS for d in DTYPES]
            rollouts = [(r, m, d) for r in ROLLOUTS for m in METHODS for d in DTYPES]
            times = [*pool.map(made, kernels + rollouts)]
            for n, case in enumerate(kernels):
                add(**asdict(kernel_row(*case, times[n], per_byte)))
            for n, case in enumerate(rollouts):
                add(**asdict(rollout_row(*case, times[len(kernels) + n], per_byte)))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
