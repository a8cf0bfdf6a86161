"""``robomodel benchmark``: how long the dynamics of a robot takes on this machine."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer

from robomodel.cli.common import UserError
from robomodel.cli.robot import Robot
from robomodel.dynamics.algorithm import AlgorithmSpec
from robomodel.dynamics.algorithm import kernel as kernel_of
from robomodel.errors import did_you_mean
from robomodel.kernels import obstacle
from robomodel.model import Model
from robomodel.reports.document import Document, Section, Table, count
from robomodel.running import track

ALGORITHMS = ("rnea", "aba", "crba", "bias_force", "rnea_derivatives", "aba_derivatives")
USUAL = ALGORITHMS[:4]
ROUNDS, SLICE = 15, 5e-3  # rounds, and seconds of each

EXAMPLES = (
    "robomodel benchmark four_bar --algorithm aba",
    "robomodel benchmark mini_cheetah --states 512 --threads 2",
)


def command(
    robot: Robot,
    algorithm: list[str] | None = None,
    states: Annotated[int, typer.Option(help="States in a batch.", min=1)] = 2048,
    threads: Annotated[int, typer.Option(help="Threads for the batch.", min=1)] = 1,
) -> Document:
    """Time the dynamics of a robot: a batch, a single call, and making the kernel.

    Medians. Keys of the JSON document: robot, file, machine, states, threads, algorithms (a list:
    name, ns_per_state, ns_per_call, flops, seconds_to_make, which is little where it was in the
    cache), warnings.

    Options:
        --algorithm: One of rnea, aba, crba, bias_force, rnea_derivatives, aba_derivatives; may be
            given several times. [default: rnea, aba, crba, bias_force]
    """
    for each in algorithm or ():
        if each not in ALGORITHMS:
            raise UserError(
                f"no algorithm '{each}' to time; there are {', '.join(ALGORITHMS)}"
                f"{did_you_mean(each, ALGORITHMS)}"
            )
    if (why := obstacle()) is not None:
        raise UserError(f"kernels cannot be compiled here ({why})", status=1)
    model = robot.load()
    if not model.nv:
        raise UserError(f"{robot.file}: '{model.name}' has nothing that moves; nothing to time")
    names = algorithm or USUAL
    rows = [
        _measure(model, each, states, threads) for each in track("benchmark", names, len(names))
    ]
    machine = f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}"
    data = {
        "robot": model.name,
        "machine": machine,
        "states": states,
        "threads": threads,
        "algorithms": rows,
    }
    summary = (
        f"{count(model.nv, 'freedom')}; batches of {count(states, 'state')}, "
        f"{count(threads, 'thread')}; {machine}"
    )
    shown = [
        [row["name"], f"{row['ns_per_state']:.1f}", f"{row['ns_per_call']:.0f}", row["flops"],
         f"{row['seconds_to_make']:.3f}"]
        for row in rows
    ]  # fmt: skip
    columns = ["algorithm", "ns a state", "ns a call", "flops", "s to make"]
    return Document(model.name, summary, [Section("", [Table(columns, shown)])], data)


def _measure(model: Model, algorithm: str, states: int, threads: int) -> dict[str, Any]:
    start = time.perf_counter()
    kernel = kernel_of(model, AlgorithmSpec(algorithm))
    seconds = time.perf_counter() - start
    rng = np.random.default_rng(0)
    some = np.array([model.random_configuration(rng) for _ in range(min(states, 16))])
    every = {
        name: np.resize(some, (states, size)) if name == "q" else rng.normal(size=(states, size))
        for name, size in kernel.sizes.items()
    }
    out = np.empty((states, kernel.size))
    batch, one = list(every.values()), [x[0] for x in every.values()]
    flat = out.reshape(states, *kernel.shapes[0]) if len(kernel.shapes) == 1 else out
    return {
        "name": algorithm,
        "ns_per_state": 1e9 / states * _median(lambda: kernel(*batch, out=flat, threads=threads)),
        "ns_per_call": 1e9 * _median(lambda: kernel(*one)),
        "flops": kernel.program.flops,
        "seconds_to_make": seconds,
    }


def _median(action: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    action()
    start = time.perf_counter()
    action()
    repeats = max(1, int(SLICE / max(time.perf_counter() - start, 1e-9)))
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _turn in range(repeats):
            action()
        times.append((time.perf_counter() - start) / repeats)
    return statistics.median(times)
