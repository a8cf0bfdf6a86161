"""Environments over processes and machines: each worker of Dask has robots of its own.

    pip install 'dask[distributed]' jax
    python examples/learning/on_dask.py mini_cheetah --processes 2 [--learn 20]

An actor in each process keeps its robots between calls; the policy, 60 kB, goes there, and what was
seen, tried and rewarded comes back. Without ``--learn`` steps a second are printed for one process,
two, and so on.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import dask
import jax
import numpy as np
import ppo
import walking
from dask.distributed import Client, LocalCluster


def robots(name: str, n: int, seed: int) -> ppo.Robots:
    """What one process has."""
    return ppo.Robots(walking.Scaled(walking.Walking(name), n), seed)


class Spread:
    """Robots of all workers as one: their tables side by side."""

    def __init__(self, client: Client, name: str, n: int) -> None:
        workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
        made = [
            client.submit(robots, name, n, seed, workers=[worker], actor=True, pure=False)
            for seed, worker in enumerate(workers)
        ]
        self.actors: list[Any] = [each.result() for each in made]
        self.sizes: tuple[int, int] = self.actors[0].sizes

    def collect(self, policy: ppo.Policy) -> ppo.Table:
        """HORIZON steps everywhere at once."""
        calls = [actor.collect(policy) for actor in self.actors]
        tables = [call.result() for call in calls]
        return {name: np.concatenate([table[name] for table in tables], axis=1)
                for name in tables[0]}  # fmt: skip


def main() -> None:
    """Print the speed for each number of processes, or learn."""
    parser = argparse.ArgumentParser(description="Environments on Dask.")
    parser.add_argument("robot", choices=walking.ROBOTS)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--robots", type=int, default=512, help="in each process")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--learn", type=int, metavar="ITERATIONS")
    options = parser.parse_args()
    dask.config.set({"distributed.logging.distributed": "error"})
    first = 0.0
    for processes in range(options.processes if options.learn else 1, options.processes + 1):
        with (
            LocalCluster(processes, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            client.wait_for_workers(processes)
            spread = Spread(client, options.robot, options.robots)
            if options.learn:
                ppo.learn(spread.collect, spread.sizes, options.learn, tell=True)
                return
            policy = ppo.Policy.new(*spread.sizes, seed=0)
            policy.tree = jax.tree.map(np.asarray, policy.tree)
            spread.collect(policy)  # kernels are there
            seconds = []
            for _ in range(options.rounds):
                begin = time.perf_counter()
                spread.collect(policy)
                seconds.append(time.perf_counter() - begin)
            steps = processes * options.robots * ppo.HORIZON / min(seconds)
            first = first or steps
            print(f"{processes} processes: {steps:.0f} actions a second, "
                  f"{walking.SUBSTEPS * steps:.3g} steps; {steps / first:.2f} times the first",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
