"""Compiled dynamics against Pinocchio, and against the machine: ``python -m benchmarks.kernels``.

One core, thread CPU time. Every round times every competitor on one robot once, so that a drift of
the clock meets all alike; all is measured in several fresh processes (``--processes``), and the
least of all rounds counts. Results are compared with
Pinocchio's and with the NumPy path before anything is timed. Pinocchio runs in C++ (``rivals.py``
builds it), by every kind of compiler that is found, and from Python. It gets the tree *without
rotors* and without loops, which is all that it can express; robomodel carries every body and every
loop, exactly.

Tables: batches beside Pinocchio, all shipped robots and all algorithms that both have; what limits
kernels (``limits.py``); large batches beside the memory's bandwidth; time an operation, for gears,
four-bars and rods; single calls from Python; first use; the goals, met or missed (``verdict.py``).
``--docs`` writes the first into docs/benchmarks.md. ``--counts`` prints how many operations the
algorithms need (``counts.py``). The first run spends minutes on compiling Pinocchio.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import robomodel as rm
from benchmarks.kernels import tables as kernels_tables
from benchmarks.kernels.limits import (
    Assembly,
    Bounds,
    Work,
    large,
    path,
    rows,
    runner,
    traffic,
    unhindered,
)
from benchmarks.kernels.verdict import FROM_PYTHON, GEARED, HUMANOID, RANDOM, Row, print_verdict
from benchmarks.shared.chains import chain
from benchmarks.shared.counts import print_counts
from benchmarks.shared.machine import Machine, join_memory, processor, restrict_to_avx2, versions
from benchmarks.shared.race import PROCESSES, Array, Race, Timing, agree, in_fresh_processes
from benchmarks.shared.rivals import VARIANTS, Library, Rival, build, pin, without_rotors
from benchmarks.shared.states import States

LINKS = 12  # of the chains
CHAINS: Mapping[str, Callable[[], rm.Model]] = {
    RANDOM: lambda: chain("geared", LINKS, rng=np.random.default_rng(1)),
    f"{LINKS} geared joints": partial(chain, "geared", LINKS),
    f"{LINKS} four-bar joints": partial(chain, "four_bar", LINKS),
}
PARALLEL = tuple(CHAINS)[1:]  # that are compared by operation
ALGORITHMS = tuple(VARIANTS)
LARGE = 131072  # states in a large batch
UNHINDERED = 20_000  # steps up to which a program is compiled a second time, unhindered
CLOSELY = (GEARED, HUMANOID, "jvrc1", RANDOM)  # whose limits are asked for
BARE = ", no rotors"
DOCS = Path(__file__).parents[2] / "docs" / "benchmarks.md"


@dataclass(frozen=True)
class Entry:
    """A kernel on its batch; seconds of its first use, and of that from the cache."""

    robot: str
    algorithm: str
    kernel: rm.kernels.Kernel
    states: States
    first_use: float
    again: float

    @property
    def key(self) -> str:
        """Its name in the race."""
        return f"{self.robot} {self.algorithm}"

    @property
    def arguments(self) -> tuple[Array, ...]:
        """As many as the algorithm takes."""
        return self.states.arguments(self.kernel)


def maker(robot: str) -> Callable[[], rm.Model]:
    """What makes a new model of a robot of this benchmark."""
    if robot in CHAINS:
        return CHAINS[robot]
    file = rm.robots.path(robot.removesuffix(BARE))
    if not robot.endswith(BARE):
        return partial(rm.load, file)
    return lambda: without_rotors(rm.load(file))


def wanted(robots: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Robots and algorithms."""
    every = dict.fromkeys(robots or [*rm.robots.names(), RANDOM], ALGORITHMS)
    every |= {x + BARE: ("aba", "rnea") for x in (GEARED, HUMANOID) if x in every}
    return every | ({} if robots else dict.fromkeys(PARALLEL, ("aba", "rnea")))


def entry(robot: str, algorithm: str, count: int, frame: str) -> Entry:
    """Compile with an empty cache and with a filled one, and compare with the NumPy path."""
    make = maker(robot)
    of_frame = {"frame": frame} if algorithm == "jacobian" else {}

    def timed() -> tuple[rm.kernels.Kernel, float]:
        model = make()
        one = States.of(model, 1)
        start = time.perf_counter()
        kernel = rm.compile(model, algorithm, **of_frame)
        kernel(*one.arguments(kernel))
        return kernel, time.perf_counter() - start

    kernel, first = timed()
    _, again = timed()
    item = Entry(robot, algorithm, kernel, States.of(kernel.model, count), first, again)
    few = item.states.first(64).arguments(kernel)
    out = result(kernel, 64)
    kernel(*few, out=out)
    agree(f"{item.key}, compiled and NumPy", out.reshape(64, -1), by_numpy(kernel, few), 1e-10)
    return item


def result(kernel: rm.kernels.Kernel, count: int) -> Array:
    """An array for results, as ``out=`` wants it."""
    one = len(kernel.shapes) == 1
    return np.zeros((count, *(kernel.shapes[0] if one else (kernel.size,))))


def by_numpy(kernel: rm.kernels.Kernel, arguments: Sequence[Array]) -> Array:
    """The results without compilation, flat."""
    columns = np.concatenate(arguments, axis=1).T
    numbers = kernel.program(list(columns))
    return np.stack([np.broadcast_to(x, len(arguments[0])) for x in numbers], axis=1)


# ---- competitors ---------------------------------------------------------------------------------


def join_pinocchio(race: Race, items: Sequence[Entry], libraries: Sequence[Library]) -> None:
    """Pinocchio's competitors of a robot's kernels, once results on the open tree agree."""
    robot, count = items[0].robot, len(items[0].states.q)
    tree = without_rotors(maker(robot)())
    rival, states = Rival(tree), States.of(tree, count)
    theirs = rival.states(states)
    robots = [(library, library.robot(rival)) for library in libraries]
    for item in items:
        name, algorithm = f"{item.key} pin", item.algorithm
        options = {"frame": rival.frame} if algorithm == "jacobian" else {}
        kernel = rm.compile(tree, algorithm, **options)
        numbers = by_numpy(kernel, states.first(64).arguments(kernel))
        expected = rival.ordered(algorithm, numbers)
        if robot in (GEARED, HUMANOID) and algorithm in ("aba", "rnea", "crba"):
            race.add(f"{name} one", rival.single(algorithm, theirs))
        if not libraries:
            action = partial(rival.results, algorithm, theirs.first(64))
            agree(f"{name} {FROM_PYTHON} and NumPy", action(), expected, 1e-9)
            race.add(f"{name} {FROM_PYTHON}", action, 64)
        for library, handle in robots:
            for variant, number in VARIANTS[algorithm].items():
                out = np.zeros((count, expected.shape[1]))
                action = library.batch(handle, number, theirs, out)
                action()
                full = " ".join(x for x in (name, library.name, variant) if x)
                agree(f"{full} and NumPy", out[:64], expected, 1e-9)
                race.add(full, action, count)


def join_kernel(race: Race, item: Entry) -> None:
    """A kernel on its batch, what it is held against, and single calls."""
    kernel, arguments = item.kernel, item.arguments
    count = len(arguments[0])
    out = result(kernel, count)
    race.add(item.key, lambda: kernel(*arguments, out=out), count)
    if item.robot in CLOSELY or item.robot in PARALLEL:
        copying = rows(kernel.program)
        flat = out.reshape(count, -1)
        race.add(f"{item.key} rows", runner(copying, kernel, arguments, flat), count)
        race.add(f"{item.key} fill", lambda: out.fill(0.0), count)
        if len(kernel.program.steps) <= UNHINDERED:
            ones = [np.ones_like(y) for y in arguments]  # on which all chains stay tame
            easy = runner(unhindered(kernel.program), kernel, ones, flat)
            race.add(f"{item.key} unhindered", easy, count)
    if item.robot in (GEARED, HUMANOID) and item.algorithm in ("aba", "rnea", "crba"):
        one = [x[0].copy() for x in arguments]
        function, place = getattr(rm, item.algorithm), result(kernel, 1)[0]
        race.add(f"{item.key} one", lambda: kernel(*one))
        race.add(f"{item.key} one out", lambda: kernel(*one, out=place))
        race.add(f"{item.key} one checked", lambda: function(kernel.model, *one))


def measure_large(item: Entry) -> dict[str, float]:
    """A batch far larger than the caches, beside the bandwidth measured at the same time."""
    count, arguments, out = large(item.kernel, item.states, LARGE)
    arguments = arguments[: len(item.kernel.sizes)]
    race = Race(5)
    shaped = out.reshape(count, *item.kernel.shapes[0]) if len(item.kernel.shapes) == 1 else out
    race.add("kernel", lambda: item.kernel(*arguments, out=shaped), count)
    race.add("rows", runner(rows(item.kernel.program), item.kernel, arguments, out), count)
    join_memory(race)
    times, size = race.run(), traffic(item.kernel)
    return {
        "states": count,
        "ns": times["kernel"].minimum,
        "rows ns": times["rows"].minimum,
        "bytes": size,
        "memory ns": size * times["machine memory"].minimum,
    }


# ---- the run -------------------------------------------------------------------------------------


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Everything but the counts; prints as it goes."""
    if arguments.avx2:
        restrict_to_avx2()
    where = {"processor": processor(), "platform": platform.platform(), **versions()}
    print(", ".join(f"{name} {value}" for name, value in where.items()))
    libraries, notes = ([], ["not wanted"]) if arguments.no_cpp else build(arguments.cxx or ())
    for line in notes:
        print(f"Pinocchio in C++: {line}")
    if not libraries:
        print("Batches are compared with Pinocchio called from Python.")
    machine, rows = Machine(), dict[str, Row]()
    rounds = 7 if arguments.quick else 31
    rates: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ROBOMODEL_CACHE"] = str(Path(folder) / "cache")
        for robot, algorithms in wanted(arguments.robots).items():
            race = Race(rounds)
            tree = without_rotors(maker(robot)())
            frame = tree.bodies[-1].name
            items = [entry(robot, x, arguments.states, frame) for x in algorithms]
            if pin is not None and len(algorithms) == len(ALGORITHMS):
                join_pinocchio(race, items, libraries)
            for item in items:
                join_kernel(race, item)
            machine.join(race)
            times = race.run()
            rates = machine.rates(times)
            for item in items:
                row = report(item, times, rates, machine.width)
                row["bodies"] = [len(item.kernel.model.bodies), len(tree.bodies)]
                if item.robot in (GEARED, HUMANOID):
                    row["large"] = measure_large(item)
                rows[item.key] = row
                print(kernels_tables.line(row), flush=True)
    print(
        f"One core, {machine.width} doubles a vector, {rates['GHz']:.2f} GHz,"
        f" FMA peak {rates['GFLOP/s']:.1f} GFLOP/s; cycles a vector operation: fused multiply-add"
        f" {rates['fma']:.2f} (latency {rates['fma latency']:.1f}), half of them additions"
        f" {rates['fma and add']:.2f}, division {rates['div']:.1f} (latency"
        f" {rates['div latency']:.1f})\nBatches of {arguments.states} states; {rounds} rounds\n"
    )
    return {
        "machine": where | {"width": machine.width} | rates,
        "pinocchio": notes,
        "states": arguments.states,
        "rounds": rounds,
        "kernels": list(rows.values()),
    }


def least(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The least times of several processes' numbers.

    What is told of a kernel is of the process in which it took least.
    """
    kernels = []
    for several in zip(*(run["kernels"] for run in runs), strict=True):
        best = min(several, key=lambda row: row["ns"])
        row: Row = dict(best)
        for name in row:
            if name.endswith((" ns", " s")) and name != "rivals ns":
                row[name] = min(each[name] for each in several)
        if "rivals ns" in row:
            rivals = {n: min(x["rivals ns"][n] for x in several) for n in row["rivals ns"]}
            row["rivals ns"] = rivals
            row["rival"] = min(rivals, key=lambda name: rivals[name])
            row["rival ns"] = rivals[row["rival"]]
            row["ratio"] = row["rival ns"] / row["ns"]
        if "large" in row:
            row["large"] = min((x["large"] for x in several), key=lambda x: x["ns"])
        kernels.append(row)
    return runs[0] | {"processes": len(runs), "kernels": kernels}


def report(item: Entry, times: Mapping[str, Timing], rates: Mapping[str, float], width: int) -> Row:
    """One kernel's numbers. What limits it is told from the least disturbed rounds."""
    measured, program = times[item.key], item.kernel.program
    work, tile = Work.of(program), rates["GHz"] * width
    row: Row = {
        "robot": item.robot,
        "algorithm": item.algorithm,
        "ns": measured.minimum,
        "ns median": measured.median,
        "flops": program.flops,
        "steps": len(program.steps),
        "share of peak": program.flops / measured.minimum / rates["GFLOP/s"],
        "ceiling": work.ceiling,
        "operations": work.operations(rates),
        "ps an operation": 1e3 * measured.minimum / max(1.0, work.operations(rates)),
        "first use s": item.first_use,
        "cached s": item.again,
    }
    if f"{item.key} rows" in times:
        easy = times.get(f"{item.key} unhindered")
        bounds = Bounds(
            measured=measured.minimum * tile,
            rows=times[f"{item.key} rows"].minimum * tile,
            fill=times[f"{item.key} fill"].minimum * tile,
            unhindered=easy.minimum * tile if easy else None,
            multiplier=work.multiplied * rates["fma"],
            divider=work.divided * rates["div"],
            path=path(program, rates),
        )
        row |= {"bounds": asdict(bounds), "limit": bounds.limit}
        if item.robot in CLOSELY and len(program.steps) <= UNHINDERED:
            row["assembly"] = asdict(Assembly.of(item.kernel))
    start = f"{item.key} pin "
    rivals = {
        name.removeprefix(start): timing.minimum
        for name, timing in times.items()
        if name.startswith(start) and not name.endswith(" one")
    }
    if rivals:
        row["rivals ns"] = rivals
        row["rival"] = min(rivals, key=lambda name: rivals[name])
        row["rival ns"] = min(rivals.values())
        row["ratio"] = row["rival ns"] / measured.minimum
    for name in ("one", "one out", "one checked", "pin one"):
        if (timing := times.get(f"{item.key} {name}")) is not None:
            row[f"{name} ns"] = timing.minimum
    return row


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """The least times of all processes, printed."""
    numbers = least(in_fresh_processes(arguments.processes, measure, arguments))
    kernels_tables.print_tables(numbers["kernels"])
    print_verdict({f"{row['robot']} {row['algorithm']}": row for row in numbers["kernels"]})
    return numbers


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description="Compiled dynamics against Pinocchio.")
    parser.add_argument("robots", nargs="*", help="shipped robots (default: all, and chains)")
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--counts", action="store_true", help="the table of operations only")
    parser.add_argument("--processes", type=int, default=PROCESSES,
                        help="fresh processes whose least times count; 0: this one")  # fmt: skip
    parser.add_argument("--states", type=int, default=2048, help="states in a batch")
    parser.add_argument("--avx2", action="store_true", help="leave AVX-512 to Pinocchio alone")
    parser.add_argument("--no-cpp", action="store_true", help="Pinocchio from Python only")
    parser.add_argument(
        "--cxx",
        action="append",
        metavar="COMMAND",
        help="C++ compiler, such as 'clang++' or 'python -m ziglang c++'; several may be given",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to FILE")
    parser.add_argument("--docs", action="store_true", help="write tables into docs/benchmarks.md")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE",
                        help="numbers of an earlier run, instead of measuring")  # fmt: skip
    arguments = parser.parse_args()
    if arguments.source:
        numbers = json.loads(arguments.source.read_text("utf-8"))
    else:
        numbers = {"counts": print_counts()} if arguments.counts else measured(arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    if arguments.docs:
        tables = kernels_tables.markdown(numbers)
        DOCS.write_text(kernels_tables.fill(DOCS.read_text("utf-8"), tables), "utf-8")
