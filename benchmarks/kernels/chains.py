"""Serial chains of 2 to 1000 links: ``python -m benchmarks.kernels.chains [--plot FILE]``.

Times to load a chain's text, to trace forward dynamics, to compile it, and to run it on a batch,
one core, with the slope of each in a log-log plot: 1 is linear. Small chains carry constant costs,
so the slope is fitted from ``FROM`` links on.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import robomodel as rm
from robomodel.dynamics.algorithm import AlgorithmSpec, traced_algorithm
from robomodel.kernels import compile_program
from robomodel.reports.palette import CURVES

LINKS = (2, 5, 10, 20, 50, 100, 200, 500, 1000)
FROM = 50  # links from which slopes are fitted
CHECKED = 100  # links up to which results are compared with the NumPy path
STATES = 256
TIMES = ("load", "trace", "compile", "run")


def chain(count: int) -> str:
    """A serial chain of revolute joints, geometry, axes and inertias random."""
    rng = np.random.default_rng(count)

    def text(values: Sequence[float]) -> str:
        return " ".join(f"{x:.17g}" for x in values)

    def inertial() -> str:
        a, b, c = rng.uniform(0.02, 0.03, 3)
        d, e, f = rng.uniform(-0.003, 0.003, 3)
        return (
            f'<inertial><origin xyz="{text(rng.uniform(-0.1, 0.1, 3))}"/>'
            f'<mass value="{rng.uniform(0.5, 1.5):.17g}"/><inertia ixx="{a:.17g}" iyy="{b:.17g}" '
            f'izz="{c:.17g}" ixy="{d:.17g}" ixz="{e:.17g}" iyz="{f:.17g}"/></inertial>'
        )

    parts = ['<link name="l0"/>']
    for i in range(1, count + 1):
        axis = rng.normal(size=3)
        parts.append(
            f'<link name="l{i}">{inertial()}</link><joint name="j{i}" type="continuous">'
            f'<parent link="l{i - 1}"/><child link="l{i}"/>'
            f'<origin xyz="{text(rng.uniform(-0.2, 0.2, 3))}" rpy="{text(rng.uniform(-3, 3, 3))}"/>'
            f'<axis xyz="{text(axis / np.linalg.norm(axis))}"/></joint>'
        )
    return f'<robot name="chain">{"".join(parts)}</robot>'


def measure(count: int, repeats: int) -> dict[str, float]:
    """Medians for one chain, seconds; and the operations."""
    text, task, rng = chain(count), AlgorithmSpec("aba"), np.random.default_rng(0)
    times: dict[str, list[float]] = {name: [] for name in TIMES}
    for _ in range(repeats):
        clock = [time.perf_counter()]
        model = rm.load(text)
        clock.append(time.perf_counter())
        program = traced_algorithm(model, task).program
        clock.append(time.perf_counter())
        compiled = compile_program(program, [model.nq, model.nv, model.nv, model.nv])
        clock.append(time.perf_counter())
        for name, start, end in zip(times, clock, clock[1:], strict=False):
            times[name].append(end - start)
    q = rng.uniform(-np.pi, np.pi, (STATES, model.nq))
    v, tau = rng.normal(size=(2, STATES, model.nv))
    kernel = compiled.ufunc
    out = kernel(q, v, tau)
    if count <= CHECKED:
        expected = rm.aba(model, q, v, tau, backend="numpy")
        error = np.abs(out - expected).max() / np.abs(expected).max()
        assert error < 1e-9, f"{count} links: compiled and NumPy differ by {error:.1e}"
    turns = max(1, round(2e5 / (count * STATES)))
    for _ in range(9):
        start = time.perf_counter()
        for _turn in range(turns):
            kernel(q, v, tau, out=out)
        times["run"].append((time.perf_counter() - start) / (turns * STATES))
    medians = {name: statistics.median(x) for name, x in times.items()}
    return medians | {"links": count, "steps": len(program.steps), "flops": program.flops}


def slope(rows: Sequence[Mapping[str, float]], name: str) -> float:
    """Of log(time) over log(links), by least squares."""
    large = [row for row in rows if row["links"] >= FROM]
    x = np.log([row["links"] for row in large])
    return float(np.polyfit(x, np.log([row[name] for row in large]), 1)[0])


def plot(rows: Sequence[Mapping[str, float]], file: Path) -> None:
    """All times over the number of links, log-log."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    links = [row["links"] for row in rows]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for axes in (left, right):
        axes.set_prop_cycle(color=CURVES)
    for name in ("load", "trace", "compile"):
        label = f"{name}, slope {slope(rows, name):.2f}"
        left.loglog(links, [row[name] for row in rows], "o-", label=label)
    left.set(xlabel="links", ylabel="seconds", title="once a robot")
    label = f"slope {slope(rows, 'run'):.2f}"
    right.loglog(links, [1e9 * row["run"] for row in rows], "o-", label=label)
    right.set(xlabel="links", ylabel="nanoseconds", title="forward dynamics, a state, one core")
    for axes in (left, right):
        axes.grid(visible=True, alpha=0.3)
        axes.legend()
    figure.savefig(file, dpi=150)
    plt.close(figure)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Times over the length of a serial chain.")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw them (needs matplotlib)")
    parser.add_argument("--quick", action="store_true", help="up to 200 links")
    arguments = parser.parse_args()
    os.environ["ROBOMODEL_CACHE"] = "off"
    measure(2, 1)  # imports
    print("  links   steps    flops   load s  trace s  compile s  run ns/state  ns/link")
    rows = []
    for count in LINKS:
        if arguments.quick and count > 200:
            break
        row = measure(count, 3 if count <= 20 else 1)
        rows.append(row)
        print(
            f"{count:7d} {row['steps']:7.0f} {row['flops']:8.0f} {row['load']:8.4f}"
            f" {row['trace']:8.4f} {row['compile']:10.4f} {1e9 * row['run']:13.1f}"
            f" {1e9 * row['run'] / count:8.2f}",
            flush=True,
        )
    slopes = ", ".join(f"{name} {slope(rows, name):.2f}" for name in TIMES)
    print(f"slopes from {FROM} links on: {slopes} (1 is linear)")
    if arguments.plot:
        plot(rows, arguments.plot)


if __name__ == "__main__":
    main()
