"""A leg with a four-bar swings up: optimal control by CasADi and IPOPT, multiple shooting.

The motors cannot hold the leg out level, so it has to gather speed first. The exact dynamics, with
the loop in it, are CasADi functions of the same source as the kernels; configurations hold all of
the loop's joints, and each step of ``integrate`` closes it.

    python examples/swing_up.py
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import casadi
import numpy as np
from numpy.typing import NDArray

import robomodel as rm

Array = NDArray[np.float64]
STEP = 0.02  # [s]
STEPS = 60
LIMITS = casadi.DM([0.2, 0.1])  # [N m]; level, the leg weighs 0.35
HANGING = {"thigh_joint": -np.pi / 2, "shank_driver_joint": 0.5}
UPRIGHT = {"thigh_joint": np.pi / 2, "shank_driver_joint": 0.5}


@dataclass(frozen=True)
class Motion:
    """The motion: q (T+1, nq), v (T+1, nv), tau (T, nv), and the effort of the solver."""

    q: Array
    v: Array
    tau: Array
    effort: float  # ∫ |tau|² dt
    iterations: int
    solved: bool
    seconds: float


def leg() -> rm.Model:
    """The planar leg, hung up in gravity."""
    path = rm.robots.path("planar_leg_linkage")
    return rm.load(path, gravity=(0.0, -9.81, 0.0))


def one_step(model: rm.Model) -> casadi.Function:
    """(q, v, tau) → (q, v) a step later: semi-implicit Euler's."""
    aba, integrate = (rm.to_casadi(model, name) for name in ("aba", "integrate"))
    q, v, tau = (casadi.SX.sym(n, size) for n, size in
                 (("q", model.nq), ("v", model.nv), ("tau", model.nv)))  # fmt: skip
    after = v + STEP * aba(q, v, tau)
    return casadi.Function("step", [q, v, tau], [integrate(q, STEP * after), after])


def swing_up(model: rm.Model) -> Motion:
    """The motion of least effort from hanging to upright, at rest at both ends."""
    start, goal = model.configuration(HANGING), model.configuration(UPRIGHT)
    began = time.perf_counter()
    step = one_step(model)
    problem = casadi.Opti()
    q = problem.variable(model.nq, STEPS + 1)
    v = problem.variable(model.nv, STEPS + 1)
    tau = problem.variable(model.nv, STEPS)
    for k in range(STEPS):
        moved, after = step(q[:, k], v[:, k], tau[:, k])
        problem.subject_to(q[:, k + 1] == moved)
        problem.subject_to(v[:, k + 1] == after)
        problem.subject_to(problem.bounded(-LIMITS, tau[:, k], LIMITS))
        problem.subject_to(problem.bounded(0.1, q[1, k], 1.4))  # the range of the four-bar
    problem.subject_to(q[:, 0] == start)
    problem.subject_to(v[:, 0] == 0)
    problem.subject_to(q[:2, -1] == goal[:2])  # the loop's other joints follow
    problem.subject_to(v[:, -1] == 0)
    problem.minimize(STEP * casadi.sumsqr(tau))
    problem.set_initial(q, np.linspace(start, goal, STEPS + 1).T)
    options = {"expand": True, "print_time": False}
    problem.solver("ipopt", options, {"print_level": 0, "sb": "yes"})
    solution = problem.solve_limited()
    paths = [solution.value(x).T for x in (q, v, tau)]
    stats = problem.stats()
    return Motion(
        *paths, effort=float(solution.value(problem.f)), iterations=int(stats["iter_count"]),
        solved=bool(stats["success"]), seconds=time.perf_counter() - began,
    )  # fmt: skip


def main() -> None:
    """Solve, and print the motion."""
    model = leg()
    motion = swing_up(model)
    gap = np.abs(model.residual(motion.q)).max()
    print(f"solved: {motion.solved}, {motion.iterations} iterations, {motion.seconds:.1f} s in all")
    print(f"effort {motion.effort:.4f} (N m)² s, loops open by {gap:.0e}")
    for k in range(0, STEPS + 1, 6):
        thigh, shank = motion.q[k, :2]
        at = "" if k == STEPS else "  ".join(f"{x:7.3f}" for x in motion.tau[k])
        print(f"{k * STEP:5.2f} s   thigh {thigh:7.3f}   shank {shank:6.3f} rad   tau {at}")


if __name__ == "__main__":
    main()
