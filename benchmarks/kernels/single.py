"""What single precision loses and gains, robot by robot: ``python -m benchmarks.kernels.single``.

Errors are of each state's result, by its norm, against double precision on the same (exactly
representable) states: the median and the worst of random ones. Times are of one core, batches of
2048 states, thread CPU time, medians of interleaved rounds.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

import robomodel as rm
from benchmarks.shared.race import Array
from benchmarks.shared.states import States

ALGORITHMS = ("aba", "rnea", "crba")


def losses(narrow: rm.kernels.Kernel, wide: rm.kernels.Kernel, arguments: list[Array]) -> Array:
    """Of each state."""
    count = len(arguments[0])
    narrowed = narrow(*arguments).reshape(count, -1)
    expected = wide(*(x.astype(np.float64) for x in arguments)).reshape(count, -1)
    size: Array = np.linalg.norm(narrowed - expected, axis=1) / np.linalg.norm(expected, axis=1)
    return size


def times(
    kernels: list[rm.kernels.Kernel], arguments: list[list[Array]], rounds: int
) -> list[float]:
    """Nanoseconds a state of each, in turns."""
    count = len(arguments[0][0])
    outs = [np.empty((count, *k.shapes[0]), k.dtype) for k in kernels]
    samples: list[list[float]] = [[] for _ in kernels]
    for _ in range(rounds):
        for k, states, out, durations in zip(kernels, arguments, outs, samples, strict=True):
            k(*states, out=out)  # others were here since
            start = time.thread_time_ns()
            for _turn in range(4):
                k(*states, out=out)
            durations.append((time.thread_time_ns() - start) / 4 / count)
    return [statistics.median(durations) for durations in samples]


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("robots", nargs="*", default=rm.robots.names())
    parser.add_argument("--states", type=int, default=4096, help="states of which errors are told")
    parser.add_argument("--rounds", type=int, default=21)
    wish = parser.parse_args()
    print(f"{'':26s} error: median    worst | ns, double  single  ratio")
    for robot in wish.robots:
        model = rm.robots.load(robot)
        many = States.of(model, wish.states)
        for algorithm in ALGORITHMS:
            wide = rm.compile(model, algorithm)
            narrow = rm.compile(model, algorithm, dtype="float32")
            taken = (many.q, many.v, many.x)[: len(wide.sizes)]
            single = [x.astype(np.float32) for x in taken]
            double = [x.astype(np.float64) for x in single]
            error = losses(narrow, wide, single)
            a, b = times(
                [wide, narrow], [[x[:2048] for x in y] for y in (double, single)], wish.rounds
            )
            print(
                f"{robot + ' ' + algorithm:26s} {np.median(error):13.1e} {error.max():8.1e}"
                f" | {a:10.1f} {b:7.1f} {a / b:6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
