"""Ten million states of Mini Cheetah on Dask: which torques hold it still, wherever it is?

The states are a Dask array that is never whole in memory: each piece is drawn, evaluated by the
compiled kernel and reduced where it lies, by a process of its own. The machine code is in
the cache by every process, so only one compiles. With `--scaling` the same work is done with one
process, two, and so on to the number of cores, and the speeds are printed side by side.

    pip install 'dask[distributed]'
    python examples/ten_million_states.py --scaling
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

import dask
import numpy as np
from dask.distributed import Client, LocalCluster
from numpy.typing import NDArray

import robomodel as rm

Array = NDArray[np.float64]
STATES, PIECE = 10_000_000, 250_000
BATCH = 4096  # states at a time: they stay in the processor's cache
REACH = 1.2  # joints within ± this, in radians


@dataclass(frozen=True)
class Summary:
    """Of many states: their number, and per coordinate the sum and the largest size of torques."""

    count: int
    total: Array
    largest: Array

    def __add__(self, other: Summary) -> Summary:
        return Summary(
            self.count + other.count,
            self.total + other.total,
            np.maximum(self.largest, other.largest),
        )


def piece(model: rm.Model, seed: int, count: int) -> Summary:
    """Torques that hold ``count`` random states: legs anywhere, trunk level; one random stream."""
    kernel = rm.compile(model, "rnea")
    rng = np.random.default_rng([2026, seed])
    neutral, still = model.neutral(), np.zeros(model.nv)
    out = np.empty((BATCH, model.nv))
    total, largest = np.zeros(model.nv), np.zeros(model.nv)
    for start in range(0, count, BATCH):
        n = min(BATCH, count - start)
        q = np.tile(neutral, (n, 1))
        q[:, 7:] += rng.uniform(-REACH, REACH, size=(n, model.nq - 7))
        tau = kernel(q, still, still, out=out[:n])
        total += tau.sum(axis=0)
        largest = np.maximum(largest, np.abs(tau).max(axis=0))
    return Summary(count, total, largest)


def evaluate(client: Client, model: rm.Model, states: int = STATES, size: int = PIECE) -> Summary:
    """The summary of all states, pieces spread over the client's workers."""
    counts = [min(size, states - start) for start in range(0, states, size)]
    shared = client.scatter(model, broadcast=True)
    futures = client.map(piece, [shared] * len(counts), range(len(counts)), counts, pure=False)
    return client.submit(add_up, futures, pure=False).result()


def add_up(parts: Iterable[Summary]) -> Summary:
    """Their sum, in order."""
    first, *others = parts
    return sum(others, start=first)


def timed(processes: int, states: int) -> tuple[Summary, float]:
    """The summary by so many processes, and the seconds it took once they were up and warm."""
    model = rm.robots.load("mini_cheetah")
    with (
        LocalCluster(n_workers=processes, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(processes)
        client.run(piece, model, 0, 1)  # every process has its kernel
        start = time.perf_counter()
        moments = evaluate(client, model, states)
        return moments, time.perf_counter() - start


def main() -> None:
    """Print the torques, and the speed for each number of processes."""
    parser = argparse.ArgumentParser(description="Ten million states on Dask.")
    parser.add_argument("--states", type=int, default=STATES)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--scaling", action="store_true", help="one process, two, … as well")
    arguments = parser.parse_args()
    dask.config.set({"distributed.logging.distributed": "error"})
    first = 0.0
    for processes in range(
        1 if arguments.scaling else arguments.processes, arguments.processes + 1
    ):
        moments, seconds = timed(processes, arguments.states)
        first = first or seconds
        print(
            f"{processes} processes: {moments.count} states in {seconds:.2f} s,"
            f" {1e9 * seconds / moments.count:.0f} ns a state; "
            f"{first / seconds:.2f} times the first"
        )
    names = rm.robots.load("mini_cheetah").dof_names
    print(f"\n{'torque to stay still':24}{'mean':>10}{'largest':>10}    N m, N")
    for name, mean, most in zip(names, moments.total / moments.count, moments.largest, strict=True):
        print(f"{name:24}{mean:10.4f}{most:10.3f}")


if __name__ == "__main__":
    main()
