"""Many robots at once beside MuJoCo's: ``python -m benchmarks.many_robots``. Extra ``mujoco``.

``rm.Simulation``, ten steps of 1 ms a call, and MuJoCo's ``rollout`` of the same motions, all in
turns on one thread; nanoseconds of its processor time a robot and step, the least of the rounds,
which other jobs on the machine disturb least. Mini Cheetah stamps on four feet, by MuJoCo with
armature in place of its rotors; Tello, whose differentials MuJoCo has no exact form of, is in the
air.

``--kangaroo FILE``: PAL's Kangaroo, with the loops of its legs, too: ``kangaroo.xml`` of the public
repository pal-robotics/pal_mjlab, which is not part of this package (Apache 2.0); MuJoCo's loops
are its soft constraints. Each foot stands on two spheres, at the ends of the file's capsules.
``--threads``: the time that one thread takes by the time of two, on the clock.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import robomodel as rm
from benchmarks.rollout import (
    DURATION,
    FEET,
    FRICTION,
    Foot,
    Motions,
    Theirs,
    gap_of,
    on_feet,
    spanning,
    stamping,
)

Array = NDArray[np.float64]
STEP, SUBSTEPS = 1e-3, 10
FREE: dict[str, Any] = {"friction": False, "passive": False}  # as MuJoCo's models are
GAINS = {  # of Kangaroo's joints on the ground, by the ends of their names
    "length_joint": (2e4, 400.0), "4_joint": (150.0, 0.3), "5_joint": (150.0, 0.3),
    "arm": (20.0, 0.3), "other": (400.0, 10.0),
}  # fmt: skip
SOLES: list[Foot] = [
    (f"leg_{side}_foot_link", (x, 0.0, 0.0), 0.01)
    for side in ("left", "right")
    for x in (-0.0985, 0.122)
]


class Ours:
    """A simulation of a batch of motions."""

    def __init__(self, batch: Motions, **options: Any) -> None:
        self.sim = rm.Simulation(
            batch.model, len(batch.q), step=STEP, substeps=SUBSTEPS, **FREE, **options
        )
        self.sim.reset(q=batch.q, v=batch.v)
        self.start = self.sim.save()
        self.tau = np.ascontiguousarray(np.swapaxes(batch.tau[:, ::SUBSTEPS], 0, 1))

    def run(self) -> None:
        """All motions, from their start on."""
        self.sim.restore(self.start)
        for tau in self.tau:
            self.sim.step(tau)

    def gap(self) -> float:
        """The largest gap of loops and couplings at the end."""
        return gap_of(self.sim.model, spanning(self.sim.model, self.sim.q))


def in_the_air(model: rm.Model, q: Array, count: int, force: float) -> Motions:
    """Motions near q under forces that change every ten steps."""
    rng, calls = np.random.default_rng(0), round(DURATION / STEP / SUBSTEPS)
    v = 0.2 * rng.standard_normal((count, model.nv))
    tau = np.repeat(force * rng.standard_normal((count, calls, model.nv)), SUBSTEPS, axis=1)
    tau[..., :6] = 0.0
    return Motions(model, np.repeat(q[None], count, axis=0), v, tau, STEP, np.zeros((count, 0)))


def kind(joint: str) -> str:
    """The entry of GAINS of one of Kangaroo's joints."""
    if joint.startswith("arm"):
        return "arm"
    return next((end for end in GAINS if joint.endswith(end)), "other")


def entries(count: int, kangaroo: str | None) -> Iterator[tuple[str, Any]]:
    """Names, and what is timed: MuJoCo's before those of ours that are compared with it."""
    feet = {"ground": rm.Ground(FRICTION), "contacts": FEET}
    batch = stamping(count, STEP)
    yield "Mini Cheetah, four feet, MuJoCo Euler, armature", Theirs(batch, "Euler", True, FEET)
    for dtype in ("float64", "float32"):
        yield f"Mini Cheetah, four feet, {dtype}", Ours(batch, dtype=dtype, **feet)
    tello = rm.robots.load("tello")
    batch = in_the_air(tello, tello.neutral(), count, 0.05)
    for dtype in ("float64", "float32"):
        yield (
            f"Tello, semi-implicit Euler, {dtype}",
            Ours(batch, method="semi_implicit_euler", dtype=dtype),
        )
    heels = [(f"{side}-{end}_contact", (0.0, 0.0, 0.0), 0.0)
             for side in ("left", "right") for end in ("heel", "toe")]  # fmt: skip
    batch = on_feet(tello, tello.neutral(), heels, (2.0, 0.05), count, STEP)
    for dtype in ("float64", "float32"):
        stands = Ours(batch, dtype=dtype, ground=rm.Ground(FRICTION), contacts=heels)
        yield f"Tello, two feet of two points, {dtype}", stands
    if kangaroo is None:
        return
    model = rm.load(kangaroo)
    bent = {f"leg_{side}_length_joint": 0.5 for side in ("left", "right")}
    q = model.configuration(bent)
    batch = in_the_air(model, q, count, 1.0)
    yield "Kangaroo, MuJoCo Euler, soft loops", Theirs(batch, "Euler", False)
    for dtype in ("float64", "float32"):
        yield (
            f"Kangaroo, semi-implicit Euler, {dtype}",
            Ours(batch, method="semi_implicit_euler", dtype=dtype),
        )
    yield "Kangaroo, default method", Ours(batch)
    gains = [GAINS[kind(name)] for name in model.dof_names]
    batch = on_feet(model, q, SOLES, gains, count, STEP)
    yield "Kangaroo, two feet, MuJoCo Euler, soft loops", Theirs(batch, "Euler", False, SOLES)
    ground = {"ground": rm.Ground(FRICTION), "contacts": SOLES}
    for dtype in ("float64", "float32"):
        yield f"Kangaroo, two feet, {dtype}", Ours(batch, dtype=dtype, **ground)


def least(
    runs: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], int]
) -> dict[str, float]:
    """Nanoseconds of each, in turns: the least of so many."""
    times = dict.fromkeys(runs, np.inf)
    for _ in range(rounds + 1):
        for name, run in runs.items():
            start = clock()
            run()
            times[name] = min(times[name], clock() - start)
    return times


def measure(count: int, rounds: int, kangaroo: str | None) -> None:
    """Print the table."""
    every = dict(entries(count, kangaroo))
    times = least({name: each.run for name, each in every.items()}, rounds, time.thread_time_ns)
    print(f"{count} robots, {DURATION:g} s in steps of {STEP * 1e3:g} ms, one thread")
    print(f"{'':52}{'ns a step':>10}{'MuJoCo takes':>15}{'gap':>10}")
    theirs = np.nan
    for name, each in every.items():
        ns = times[name] / (count * round(DURATION / STEP))
        if isinstance(each, Theirs):
            theirs, robot = ns, name.partition(",")[0]
            print(f"{name:52}{ns:10.0f}")
            continue
        ratio = f"{theirs / ns:9.1f} times" if name.startswith(robot) else ""
        print(f"{name:52}{ns:10.0f}{ratio:>15}{each.gap():10.1e}")


def measure_threads(counts: list[int], rounds: int) -> None:
    """Print how much faster two threads are than one."""
    for count in counts:
        batch = stamping(count, STEP)
        feet = {"ground": rm.Ground(FRICTION), "contacts": FEET}
        for dtype in ("float64", "float32"):
            one, two = (Ours(batch, threads=n, dtype=dtype, **feet).run for n in (1, 2))
            times = least({"one": one, "two": two}, rounds, time.perf_counter_ns)
            print(f"{count} robots, {dtype}: two threads {times['one'] / times['two']:.2f} times "
                  "as fast as one")  # fmt: skip


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, nargs="+", default=[64, 1024], help="robots")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--kangaroo", metavar="FILE")
    parser.add_argument("--threads", action="store_true", help="two threads beside one")
    options = parser.parse_args()
    if options.threads:
        measure_threads(options.count, options.rounds)
        return
    for count in options.count:
        measure(count, options.rounds, options.kangaroo)


if __name__ == "__main__":
    main()
