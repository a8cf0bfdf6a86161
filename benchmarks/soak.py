"""A long run of many robots: ``python -m benchmarks.soak [--steps 1e8]``.

Mini Cheetahs in single precision are driven by targets drawn at random, fall, and start anew: those
that lie, a few at random, and those that have failed. Told are steps, resets, the growth of memory
after the first tenth, and robots that became not-a-number; each of these is explained by the state
and targets before it, which are printed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

import robomodel as rm
from benchmarks.rollout import FEET

STEP, SUBSTEPS = 2e-3, 10


def resident() -> float:
    """Memory of this process [MB]."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 1e6


def robots(n: int, dtype: str, threads: int) -> tuple[rm.Simulation, np.ndarray]:
    """The simulation, and where robots start."""
    model = rm.robots.load("mini_cheetah")
    legs = {"hip": -0.8, "knee": 1.6}
    bent = {f"{foot[0][:2]}_{name}_link_joint": x for foot in FEET for name, x in legs.items()}
    q = model.configuration(bent)
    q[2] -= min(rm.frame_pose(model, q, link)[2, 3] - radius for link, _, radius in FEET)
    kp = np.where(np.arange(model.nv) < 6, 0.0, 30.0)
    rest = np.concatenate([np.zeros(6), q[7:]])
    return rm.Simulation(
        model, n, step=STEP, substeps=SUBSTEPS, ground=rm.Ground(0.7), contacts=FEET,
        pd=(kp, kp / 40.0, rest), dtype=dtype, threads=threads,
    ), q  # fmt: skip


def main() -> None:
    """Run, and say what was reached."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--steps", type=float, default=1e8, help="of robots")
    parser.add_argument("--robots", type=int, default=1024)
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    sim, q = robots(options.robots, options.dtype, options.threads)
    sim.reset(q=q)
    rest, rng = sim.targets.copy(), np.random.default_rng(0)
    calls = round(options.steps / (SUBSTEPS * sim.n))
    resets = lost = 0
    worst, before, begin, clock = 0.0, 0.0, time.process_time(), time.time()
    for call in range(calls):
        sim.targets[:, 6:] = rest[:, 6:] + 0.4 * rng.standard_normal((sim.n, sim.model.nv - 6))
        state = sim.save() if call % 50 == 0 else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            sim.step()
        failed = ~np.isfinite(sim.q).all(axis=1)
        for row in np.flatnonzero(failed):
            print(f"call {call}, robot {row}: {sim.targets[row, 6:].tolist()}")
        if state is not None:  # the same from a saved state, to the bit
            after = sim.q.copy()
            sim.restore(state)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                sim.step()
            assert np.array_equal(after, sim.q, equal_nan=True)
        worst = max(worst, float(np.max(sim.contact_residual, initial=0.0, where=~failed)))
        low = failed | (sim.q[:, 2] < 0.12) | (rng.random(sim.n) < 0.002)
        lost, resets = lost + int(failed.sum()), resets + int(low.sum())
        sim.reset(low, q=q)
        if call == calls // 10:
            before = resident()
        if call % max(1, calls // 20) == 0:
            print(f"{(call + 1) * SUBSTEPS * sim.n:.3g} steps, {resets} resets, {lost} failed, "
                  f"{resident():.1f} MB", flush=True)  # fmt: skip
    steps = calls * SUBSTEPS * sim.n
    spent = time.process_time() - begin
    print(f"{steps:.3g} steps of {STEP * 1e3:g} ms in {spent:.0f} s of processor time "
          f"({time.time() - clock:.0f} s): {spent / steps * 1e9:.0f} ns each; {resets} resets, "
          f"{lost} robots failed, worst residual {worst:.1e}, memory grew by "
          f"{resident() - before:.2f} MB")  # fmt: skip


if __name__ == "__main__":
    main()
