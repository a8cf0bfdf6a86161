"""How many operations the algorithms need: ``python -m benchmarks.shared.counts``.

As traced (equal expressions merged, zeros and ones gone), and with multiplications fused into
additions; those by clusters next to those of the projection method, which takes mass matrix and
bias of the spanning tree and projects them, on the same scalars.
"""

from __future__ import annotations

import robomodel as rm
from robomodel.dynamics.algorithm import AlgorithmSpec
from robomodel.kernels import Program, Trace

ROBOTS = ("mini_cheetah", "mit_humanoid", "jvrc1", "tello", "four_bar", "six_bar",
          "planar_leg_linkage")  # fmt: skip
TASKS = {
    "aba": AlgorithmSpec("aba"),
    "aba by projection": AlgorithmSpec("aba", method="projection"),
    "rnea": AlgorithmSpec("rnea"),
    "rnea by projection": AlgorithmSpec("rnea", method="projection"),
    "crba": AlgorithmSpec("crba"),
    "bias_force": AlgorithmSpec("bias_force"),
}


def traced(model: rm.Model, task: AlgorithmSpec) -> Program:
    """The program as traced, before anything is fused."""
    trace = Trace()
    inputs = {name: trace.inputs(size) for name, size in task.sizes(model).items()}
    return trace.program(task.run(task.tree(model), inputs))


def counts(program: Program) -> dict[str, int]:
    """Additions and subtractions together, fused ones of all signs together."""
    n = program.counts
    return {
        "mul": n["mul"],
        "add": n["add"] + n["sub"],
        "fma": n["fma"] + n["fms"] + n["fnma"],
        "div": n["div"] + n["sqrt"],
        "trig": n["sin"] + n["cos"],
    }


def print_counts() -> list[dict[str, object]]:
    """The table."""
    print(f"{'':36s}          as traced         |           fused")
    print(f"{'operations':36s}    mul    add  div trig |    mul    add    fma  div |  flops")
    rows: list[dict[str, object]] = []
    for robot in ROBOTS:
        model = rm.robots.load(robot)
        for name, task in TASKS.items():
            before = traced(model, task)
            after = before.fused()
            a, b = counts(before), counts(after)
            print(
                f"{robot + ' ' + name:36s} {a['mul']:6d} {a['add']:6d} {a['div']:4d}"
                f" {a['trig']:4d} | {b['mul']:6d} {b['add']:6d} {b['fma']:6d} {b['div']:4d}"
                f" | {after.flops:6d}"
            )
            rows.append(
                {"robot": robot, "algorithm": name, "before": a, "after": b, "flops": after.flops}
            )
    return rows


if __name__ == "__main__":
    print_counts()
