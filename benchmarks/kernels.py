"""Compiled dynamics against Pinocchio, and against the machine: ``python benchmarks/kernels.py``.

One core, all in one run: every round times every competitor once, so that a drift of the clock
meets all alike; medians over the rounds. Results are compared with Pinocchio's and with the NumPy
path before anything is timed. Pinocchio runs in C++ (``rivals.py`` builds it) where a compiler is
found, and from Python. It gets the tree *without rotors*, which is all that it can express;
robomodel carries every rotor, exactly.

Tables: batches beside Pinocchio, derivatives included; what limits every kernel (``limits.py``);
large batches beside the memory's bandwidth; time an operation, for gears, four-bars and rods;
single calls from Python; the goals, met or missed (``verdict.py``). ``--counts`` prints how many
operations the algorithms need (``counts.py``). The first run spends minutes on compiling Pinocchio.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from counts import print_counts
from limits import Bounds, Work, large, path, rows, runner, traffic, unhindered
from machine import Machine, join_memory, processor, restrict_to_avx2, versions
from race import Array, Race, Timing, agree
from rivals import VARIANTS, Library, Rival, build, pin, without_rotors
from states import States
from verdict import Row, print_verdict

import robomodel as rm

GEARED, HUMANOID = "mini_cheetah", "mit_humanoid"
LINKAGES = ("four_bar", "six_bar", "planar_leg_linkage")
RODS = "tello"
LINKS = 12  # of the chains that are compared by operation
CHAINS = {
    f"{LINKS} {name} joints": partial(rm.robots.chain, kind, LINKS)
    for name, kind in (("geared", "geared"), ("four-bar", "four_bar"))
}
DERIVATIVES = ("aba_derivatives", "rnea_derivatives")
LARGE = 131072  # states in a large batch
FEWER = 8  # so much smaller are batches of derivatives, whose results are large
UNHINDERED = 20_000  # steps up to which a program is compiled a second time, unhindered
BARE = ", no rotors"


@dataclass(frozen=True)
class Entry:
    """A kernel on its batch; seconds of its first use, and of that from the cache."""

    robot: str
    algorithm: str
    kernel: rm.Kernel
    states: States
    first_use: float
    again: float

    @property
    def key(self) -> str:
        """Its name in the race."""
        return f"{self.robot} {self.algorithm}"


def maker(robot: str) -> Callable[[], rm.Model]:
    """What makes a new model of a robot of this benchmark."""
    if robot in CHAINS:
        return CHAINS[robot]
    path = rm.robots.path(robot.removesuffix(BARE))
    if not robot.endswith(BARE):
        return partial(rm.load, path)
    return lambda: without_rotors(rm.load(path))


def wanted() -> Iterator[tuple[str, str]]:
    """Robots and algorithms."""
    for robot in (GEARED, GEARED + BARE, HUMANOID, HUMANOID + BARE):
        yield from ((robot, algorithm) for algorithm in ("aba", "rnea", *DERIVATIVES))
    for robot in (*LINKAGES, RODS, *CHAINS):
        yield from ((robot, algorithm) for algorithm in ("aba", "rnea"))


def entry(robot: str, algorithm: str, count: int) -> Entry:
    """Compile with an empty cache and with a filled one, and compare with the NumPy path."""
    make = maker(robot)

    def timed() -> tuple[rm.Kernel, float]:
        model = make()
        one = States.of(model, 1)
        start = time.perf_counter()
        kernel = rm.compile(model, algorithm)
        kernel(one.q, one.v, one.x)
        return kernel, time.perf_counter() - start

    kernel, first = timed()
    _, again = timed()
    states = States.of(kernel.model, count // FEWER if algorithm in DERIVATIVES else count)
    few = states.first(64)
    agree(
        f"{robot} {algorithm}, compiled and NumPy", run(kernel, few), by_numpy(kernel, few), 1e-10
    )
    return Entry(robot, algorithm, kernel, states, first, again)


def run(kernel: rm.Kernel, states: States) -> Array:
    """The results, flat."""
    out = np.empty((len(states.q), kernel.size))
    kernel(states.q, states.v, states.x, out=out)
    return out


def by_numpy(kernel: rm.Kernel, states: States) -> Array:
    """The results without compilation, flat: from the source, or where it needs it from a trace."""
    if not kernel.task.by_trace:
        function = getattr(rm, kernel.task.name)
        result: Array = function(kernel.model, states.q, states.v, states.x, backend="numpy")
        return result
    columns = np.concatenate([states.q, states.v, states.x], axis=1).T
    numbers = kernel.program(list(columns))
    return np.stack([np.broadcast_to(x, len(states.q)) for x in numbers], axis=1)


# ---- competitors ---------------------------------------------------------------------------------


def join_pinocchio(race: Race, items: Sequence[Entry], libraries: Sequence[Library]) -> None:
    """Pinocchio's competitors for a robot's kernels without rotors, once results agree."""
    model, robot = items[0].kernel.model, items[0].robot.removesuffix(BARE)
    rival = Rival(model)
    robots = [(library, library.robot(rival)) for library in libraries]
    for item in items:
        name = f"{robot} {item.algorithm} pin"
        theirs = rival.states(item.states)
        expected = rival.ordered(item.algorithm, by_numpy(item.kernel, item.states.first(64)))
        if item.algorithm not in DERIVATIVES:
            race.add(f"{name} one", rival.single(item.algorithm, theirs))
        if not libraries:
            action = partial(rival.results, item.algorithm, theirs.first(64))
            agree(f"{name} from Python and NumPy", action(), expected, 1e-9)
            race.add(f"{name} from Python", action, 64)
        for library, handle in robots:
            for variant, number in VARIANTS[item.algorithm].items():
                out = np.zeros((len(theirs.q), expected.shape[1]))
                action = library.batch(handle, number, theirs, out)
                action()
                full = " ".join(x for x in (name, library.name, variant) if x)
                agree(f"{full} and NumPy", out[:64], expected, 1e-9)
                race.add(full, action, len(theirs.q))


def join_kernel(race: Race, item: Entry) -> None:
    """A kernel on its batch, what it is held against, and single calls."""
    kernel, states = item.kernel, item.states
    q, v, x = states.q, states.v, states.x
    out = np.empty((len(q), kernel.size))
    race.add(item.key, lambda: kernel(q, v, x, out=out), len(q))
    copying = rows(kernel.program)
    race.add(f"{item.key} rows", runner(copying, kernel, (q, v, x), out), len(q))
    if len(kernel.program.steps) <= UNHINDERED:
        ones = [np.ones_like(y) for y in (q, v, x)]  # on which all chains stay tame
        easy = runner(unhindered(kernel.program), kernel, ones, out)
        race.add(f"{item.key} unhindered", easy, len(q))
    if item.robot in (GEARED, HUMANOID) and item.algorithm not in DERIVATIVES:
        one, model = (q[0].copy(), v[0].copy(), x[0].copy()), kernel.model
        function = {"aba": rm.aba, "rnea": rm.rnea}[item.algorithm]
        race.add(f"{item.key} one", lambda: kernel(*one))
        race.add(f"{item.key} one checked", lambda: function(model, *one))
        race.add(f"{item.key} one rows", runner(copying, kernel, one, out[0]))


def measure_large(item: Entry) -> dict[str, float]:
    """A batch far larger than the caches, beside the bandwidth measured at the same time."""
    count, arguments, out = large(item.kernel, item.states, LARGE)
    race = Race(5)
    race.add("kernel", lambda: item.kernel(*arguments, out=out), count)
    race.add("rows", runner(rows(item.kernel.program), item.kernel, arguments, out), count)
    join_memory(race)
    times, size = race.run(), traffic(item.kernel)
    return {
        "states": count,
        "ns": times["kernel"].median,
        "rows ns": times["rows"].median,
        "bytes": size,
        "memory ns": size * times["machine memory"].median,
    }


# ---- the run -------------------------------------------------------------------------------------


def measure(arguments: argparse.Namespace) -> dict[str, object]:
    """Everything but the counts; prints as it goes."""
    if arguments.avx2:
        restrict_to_avx2()
    where = {"processor": processor(), "platform": platform.platform(), **versions()}
    print(", ".join(f"{name} {value}" for name, value in where.items()))
    libraries, said = ([], ["not wanted"]) if arguments.no_cpp else build(arguments.cxx or ())
    for line in said:
        print(f"Pinocchio in C++: {line}")
    if not libraries:
        print("Batches are compared with Pinocchio called from Python.")
    machine, race = Machine(), Race(7 if arguments.quick else 31)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ROBOMODEL_CACHE"] = str(Path(folder) / "cache")
        entries = [entry(*names, arguments.states) for names in wanted()]
        for robot in (GEARED, HUMANOID) if pin is not None else ():
            join_pinocchio(race, [x for x in entries if x.robot == robot + BARE], libraries)
        for item in entries:
            join_kernel(race, item)
        machine.join(race)
        times = race.run()
    rates = machine.rates(times)
    print(
        f"One core, {machine.width} doubles a vector, {rates['GHz']:.2f} GHz,"
        f" FMA peak {rates['GFLOP/s']:.1f} GFLOP/s; cycles a vector operation: fused multiply-add"
        f" {rates['fma']:.2f} (latency {rates['fma latency']:.1f}), half of them additions"
        f" {rates['fma and add']:.2f}, division {rates['div']:.1f} (latency"
        f" {rates['div latency']:.1f})\nBatches of {arguments.states} states,"
        f" {arguments.states // FEWER} for derivatives; {race.rounds} rounds\n"
    )
    found = {item.key: report(item, times, rates, machine.width) for item in entries}
    robots = (GEARED, HUMANOID)
    big = {x.key: measure_large(x) for x in entries if x.robot in robots}
    for name, numbers in big.items():
        found[name]["large"] = numbers
    print_tables(list(found.values()), big, times)
    print_verdict(found, machine.width)
    return {
        "machine": where | {"width": machine.width} | rates,
        "pinocchio": said,
        "states": arguments.states,
        "rounds": race.rounds,
        "kernels": list(found.values()),
        "times ns": {name: asdict(timing) for name, timing in times.items()},
    }


def report(item: Entry, times: Mapping[str, Timing], rates: Mapping[str, float], width: int) -> Row:
    """One kernel's numbers. What limits it is told from the least disturbed rounds."""
    own, program = times[item.key], item.kernel.program
    work, tile = Work.of(program), rates["GHz"] * width
    easy = times.get(f"{item.key} unhindered")
    bounds = Bounds(
        measured=own.minimum * tile,
        rows=times[f"{item.key} rows"].minimum * tile,
        unhindered=easy.minimum * tile if easy else None,
        multiplier=work.multiplied * rates["fma"],
        divider=work.divided * rates["div"],
        path=path(program, rates),
    )
    start = f"{item.robot.removesuffix(BARE)} {item.algorithm} pin "
    rivals = {
        name.removeprefix(start): timing.median
        for name, timing in times.items()
        if name.startswith(start) and not name.endswith(" one")
    }
    row: Row = {
        "robot": item.robot,
        "algorithm": item.algorithm,
        "ns": own.median,
        "ns minimum": own.minimum,
        "flops": program.flops,
        "steps": len(program.steps),
        "share of peak": program.flops / own.median / rates["GFLOP/s"],
        "ceiling": work.ceiling,
        "operations": work.operations(rates),
        "ps an operation": 1e3 * own.median / work.operations(rates),
        "bounds": asdict(bounds),
        "limit": bounds.limit,
        "first use s": item.first_use,
        "cached s": item.again,
        "rivals ns": rivals,
    }
    if rivals:
        row["rival"] = min(rivals, key=lambda name: rivals[name])
        row["rival ns"] = min(rivals.values())
        row["ratio"] = row["rival ns"] / own.median
    for name in ("one", "one checked", "one rows", "pin one"):
        if (timing := times.get(f"{item.key} {name}")) is not None:
            row[f"{name} ns"] = timing.median
    return row


# ---- tables --------------------------------------------------------------------------------------


def print_tables(
    found: Sequence[Row], big: Mapping[str, Mapping[str, float]], times: Mapping[str, Timing]
) -> None:
    """All but the verdict."""
    print(f"{'batch, a state':42s}      ns    (min)  Pinocchio  ratio  its best")
    for row in found:
        line = f"{name_of(row):42s} {row['ns']:7.1f} {row['ns minimum']:8.1f}"
        if "ratio" in row:
            line += f"  {row['rival ns']:9.0f} {row['ratio']:6.1f}  {row['rival']}"
        print(line)
    print(
        "\nLimits, in cycles a tile (all lanes); what they mean stands in limits.py"
        f"\n{'':42s}  flops  of peak ceiling | measured   rows unhindered multiplier divider   path"
    )
    for row in found:
        b = row["bounds"]
        easy = f"{b['unhindered']:10.0f}" if b["unhindered"] is not None else f"{'':10s}"
        print(
            f"{name_of(row):42s} {row['flops']:6d} {row['share of peak']:8.0%}"
            f" {row['ceiling']:7.0%} | {b['measured']:8.0f} {b['rows']:6.0f} {easy}"
            f" {b['multiplier']:10.0f} {b['divider']:7.0f} {b['path']:6.0f}"
            f"\n{'':10s}{row['limit']}"
        )
    print(
        f"\n{'large batches, a state':42s}  states  bytes       ns  rows alone  memory alone"
        "\n(memory: so many bytes at the bandwidth of np.add over arrays of 64 MB)"
    )
    for name, numbers in big.items():
        print(
            f"{name:42s} {numbers['states']:7.0f} {numbers['bytes']:6.0f} {numbers['ns']:8.1f}"
            f" {numbers['rows ns']:11.1f} {numbers['memory ns']:13.1f}"
        )
    print(f"\n{'an operation (divisions weighed)':42s} operations      ps")
    for row in found:
        if row["algorithm"] not in DERIVATIVES:
            print(f"{name_of(row):42s} {row['operations']:10.0f} {row['ps an operation']:7.1f}")
    print(f"\n{'one state a call, from Python, ns':42s} kernel  rm.…     pin.…  kernel/pin  rm/pin")
    for row in found:
        if "one ns" not in row:
            continue
        own, checked = row["one ns"], row["one checked ns"]
        line = f"{name_of(row):42s} {own:6.0f} {checked:6.0f}"
        if "pin one ns" in row:
            pins = row["pin one ns"]
            line += f" {pins:9.0f} {own / pins:11.2f} {checked / pins:7.2f}"
        print(line)
    print(f"\n{'making a kernel, s':42s} first use  from the cache")
    for row in found:
        print(f"{name_of(row):42s} {row['first use s']:9.2f} {row['cached s']:15.3f}")


def name_of(row: Row) -> str:
    """Robot and algorithm."""
    return f"{row['robot']} {row['algorithm']}"


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description="Compiled dynamics against Pinocchio.")
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--counts", action="store_true", help="the table of operations only")
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
    arguments = parser.parse_args()
    numbers = {"counts": print_counts()} if arguments.counts else measure(arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
