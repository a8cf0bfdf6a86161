"""What stands around the dynamics, as multiples of one ``rm.aba`` call.

    python -m benchmarks.kernels.around [robot …]

Single calls, and batches of 512 states, each the best of several rounds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import robomodel as rm

ROBOTS = ("mini_cheetah", "tello", "planar_leg_linkage")
BATCH = 512
ROUNDS = 5
SECONDS = 0.02  # of a round, at least


def duration(call: Callable[[], object]) -> float:
    """Seconds that a call takes, the best of several rounds."""
    call()
    start = time.perf_counter()
    call()
    count = max(1, int(SECONDS / max(time.perf_counter() - start, 1e-7)))
    best = np.inf
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - start) / count)
    return float(best)


def calls(model: rm.Model, batch: int | None) -> dict[str, Callable[[], object]]:
    """The functions at random states near each other, one or a batch of them."""
    rng = np.random.default_rng(1)
    some = np.array([model.random_configuration(rng) for _ in range(4)])
    q = some[0] if batch is None else np.resize(some, (batch, model.nq))
    v, tau = rng.normal(size=(2, *q.shape[:-1], model.nv))
    step = 0.01 * v
    other = model.integrate(q, step)
    name = model.frames[-1].name
    feet = rm.contact_points(model)[:4] or [(name, (0.0, 0.0, 0.0))]
    joint = next(j.name for j in model.joints if j.independent and j.nv == 1)
    calls_of: dict[str, Callable[[], object]] = {
        "aba": lambda: rm.aba(model, q, v, tau),
        "residual": lambda: model.residual(q),
        "constraint_jacobian": lambda: model.constraint_jacobian(q),
        "constraint_bias": lambda: model.constraint_bias(q, v),
        "joint_velocities": lambda: model.joint_velocities(q, v),
        "difference": lambda: model.difference(q, other),
        "integrate": lambda: model.integrate(q, step),
        "close": lambda: model.close(q),
        "check": lambda: model.check(q, v),
        "contact_aba": lambda: rm.contact_aba(model, q, v, tau, feet),
        "impulse": lambda: rm.impulse(model, q, v, feet),
        "torque_limits": lambda: rm.torque_limits(model, q),
    }
    if batch is None:
        calls_of |= {
            "configuration": lambda: model.configuration({joint: 0.1}),
            "random_configuration": lambda: model.random_configuration(1),
        }
    return calls_of


def main(names: list[str]) -> None:
    """Print a table for each robot."""
    for name in names or ROBOTS:
        model = rm.robots.load(name)
        print(f"{name}: times of one rm.aba call; in batches of {BATCH}")
        tables = []
        for batch in (None, BATCH):
            times = {}
            for label, call in calls(model, batch).items():
                try:
                    times[label] = duration(call)
                except (rm.errors.ClosureError, ValueError) as error:
                    print(f"  {label}: {error}")
            tables.append(times)
        one, many = tables
        print(f"  aba takes {one['aba'] * 1e6:.2f} µs, {many['aba'] / BATCH * 1e9:.0f} ns a state")
        for label in one:
            if label != "aba":
                batched = f"{many[label] / many['aba']:9.1f}" if label in many else ""
                print(f"  {label:22}{one[label] / one['aba']:9.1f}{batched}")


if __name__ == "__main__":
    main(sys.argv[1:])
