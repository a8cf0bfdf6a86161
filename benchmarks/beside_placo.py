"""Inverse kinematics beside PlaCo, on its examples with loops, gears and a differential.

    python -m benchmarks.beside_placo placo-examples/models

The models are those of github.com/Rhoban/placo-examples; PlaCo (``pip install placo``) needs a
Pinocchio of its own version. Tasks, weights and targets are those of its examples: closures are
hard tasks there and coordinates here. Printed are the time of a solution and, beside it, of the
motion along it, which PlaCo's solver makes itself. Meshes are left out.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import placo

import robomodel as rm
from benchmarks.shared.race import Array
from robomodel.control import FrameTask, InverseKinematics, JointTask, PointTask

DT = 0.01
STEPS = 400
ROUNDS = 5


@dataclass(frozen=True)
class Side:
    """One package: a solution at a time, the motion along it, and by how much closures are open."""

    solve: Callable[[float], None]
    move: Callable[[], None]
    gap: Callable[[], float]
    reset: Callable[[], None]


def text_of(folder: Path) -> str:
    """The robot's file without shapes."""
    text = (folder / "robot.urdf").read_text()
    return re.sub(r"<(visual|collision)>.*?</\1>", "", text, flags=re.DOTALL)


def theirs(text: str) -> tuple[Any, Any]:
    """PlaCo's robot, and a solver."""
    with tempfile.TemporaryDirectory() as folder:
        robot = placo.RobotWrapper(folder, placo.Flags.ignore_collisions, text)
    return robot, placo.KinematicsSolver(robot)


def closed(solver: Any, a: str, b: str, axes: str) -> None:
    """A closure as a hard task."""
    task = solver.add_relative_position_task(a, b, np.zeros(3))
    task.configure(a, "hard", 1.0)
    task.mask.set_axises(axes)


def beside(robot: Any, solver: Any, aim: Callable[[float], None], gap: Callable[[], float]) -> Side:
    """PlaCo's side of a race."""
    start = np.array(robot.state.q)

    def solve(t: float) -> None:
        aim(t)
        solver.solve(True)
        robot.update_kinematics()

    def reset() -> None:
        robot.state.q = start
        robot.update_kinematics()

    return Side(solve, lambda: None, gap, reset)


def here(ik: InverseKinematics, q: Array, targets: Callable[[float], dict[Any, Any]]) -> Side:
    """The side of robomodel."""
    model, at = ik.model, {"q": q}

    def solve(t: float) -> None:
        at["way"] = ik(at["q"], DT, targets(t)) * DT

    def move() -> None:
        at["q"] = model.integrate(at["q"], at["way"])

    return Side(
        solve, move, lambda: float(np.abs(model.residual(at["q"])).max(initial=0.0)),
        lambda: at.update(q=q),
    )  # fmt: skip


def apart(robot: Any, pairs: list[tuple[str, str]], axes: list[int]) -> Callable[[], float]:
    """By how much closures are open along axes of the first frame [m]."""

    def gap() -> float:
        worst = 0.0
        for a, b in pairs:
            between = robot.get_T_a_b(a, b)[:3, 3]
            worst = max(worst, float(np.abs(between[axes]).max()))
        return worst

    return gap


# ---- the examples --------------------------------------------------------------------------------


def megabot(folder: Path) -> tuple[Side, Side]:
    """Four legs with four closures each stand; the base goes round."""
    text = text_of(folder)
    pairs = [(f"l{i}_cl{k}_1", f"l{i}_cl{k}_2") for i in range(1, 5) for k in range(1, 5)]
    motors = [f"l{i}_c{k}" for i in range(1, 5) for k in range(1, 4)]
    loops = "".join(
        f'<loop name="{a}" type="revolute"><predecessor link="{a}"/><successor link="{b}"/>'
        '<axis xyz="0 1 0"/></loop>'
        for a, b in pairs
    )
    model = rm.load(
        text, extend=f'<robot name="megabot">{loops}</robot>', floating_base=True,
        independent=["floating_base", *motors],
    )  # fmt: skip
    far = 1.1
    feet: dict[Any, Array] = {
        "leg_1": np.array([far, -far, 0.0]), "leg_2": np.array([-far, -far, 0.0]),
        "leg_3": np.array([-far, far, 0.0]), "leg_4": np.array([far, far, 0.0]),
    }  # fmt: skip

    robot, solver = theirs(text)
    for i in range(1, 5):
        for k in range(1, 9):
            robot.set_joint_limits(f"l{i}_r{k}", -2 * np.pi, 2 * np.pi)
            robot.set_velocity_limit(f"l{i}_r{k}", 1e8)
    for a, b in pairs:
        closed(solver, a, b, "xz")
    pose = np.eye(4)
    pose[2, 3] = 0.45
    robot.set_T_world_frame("base", pose)
    robot.update_kinematics()
    base = solver.add_frame_task("base", pose)
    base.configure("base", "soft", 1.0, 10.0)
    for name, point in feet.items():
        solver.add_position_task(name, point).configure(name, "hard", 1.0)

    def way(t: float) -> Array:
        there = pose.copy()
        there[:2, 3] = 0.15 * np.cos(2 * t), 0.15 * np.sin(2 * t)
        return there

    base.T_world_frame = way(0.0)

    def aim(t: float) -> None:
        base.T_world_frame = way(t)

    tasks = [FrameTask("base", 1.0, np.sqrt(10.0)), *(PointTask(f, hard=True) for f in feet)]
    ik = InverseKinematics(model, tasks, limits=())
    q = model.neutral()
    lift = rm.frame_pose(model, q, "base")
    q[:3] += pose[:3, 3] - lift[:3, 3]
    q = ik.solve(q, {**feet, "base": way(0.0)})
    for _ in range(200):
        solver.solve(True)
        robot.update_kinematics()
    return here(ik, q, lambda t: {**feet, "base": way(t)}), beside(
        robot, solver, aim, apart(robot, pairs, [0, 2])
    )


def planar(folder: Path) -> tuple[Side, Side]:
    """The five-bar's effector goes round in its plane."""
    text = text_of(folder)
    model = rm.load(text)
    robot, solver = theirs(text)
    solver.mask_fbase(True)
    closed(solver, "closing_effector_1", "closing_effector_2", "xy")
    robot.update_kinematics()
    outside = robot.get_T_world_frame("effector")[:3, 3]
    middle = outside - [0.0, 0.0, 0.075]
    effector = solver.add_position_task("effector", outside)
    effector.configure("effector", "soft", 1.0)
    effector.mask.set_axises("yz")

    def way(t: float) -> Array:
        round_ = np.array([0.0, np.cos(2 * t), np.sin(2 * t)])
        result: Array = middle + 0.05 * round_
        return result

    def aim(t: float) -> None:
        effector.target_world = way(t)

    for share in np.linspace(0.0, 1.0, 100):  # slowly, from where it is stretched
        effector.target_world = (1.0 - share) * outside + share * way(0.0)
        solver.solve(True)
        robot.update_kinematics()
    ik = InverseKinematics(model, PointTask("effector", (0.0, 1.0, 1.0)))
    q = ik.solve(model.neutral(), {"effector": way(0.0)})
    pairs = [("closing_effector_1", "closing_effector_2")]
    return here(ik, q, lambda t: {"effector": way(t)}), beside(
        robot, solver, aim, apart(robot, pairs, [0, 1])
    )


def orbita(folder: Path) -> tuple[Side, Side]:
    """A spherical neck turns: an orientation."""
    text = text_of(folder)
    model = rm.load(text)
    robot, solver = theirs(text)
    solver.mask_fbase(True)
    solver.enable_joint_limits(False)
    pairs = [(f"closing_ring{i}_br2_1", f"closing_ring{i}_br2_2") for i in (2, 3)]
    for a, b in pairs:
        closed(solver, a, b, "xy")
    robot.update_kinematics()
    start = robot.get_T_world_frame("effector")
    task = solver.add_orientation_task("effector", start[:3, :3])

    def way(t: float) -> Array:
        a, b = 0.2 * np.sin(2 * t), 0.2 * np.sin(3 * t)
        x: Array = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
        y = np.array([[np.cos(b), 0, np.sin(b)], [0, 1, 0], [-np.sin(b), 0, np.cos(b)]])
        pose: Array = start.copy()
        pose[:3, :3] = x @ y @ start[:3, :3]
        return pose

    def aim(t: float) -> None:
        task.R_world_frame = way(t)[:3, :3]

    ik = InverseKinematics(model, FrameTask("effector", 0.0, 1.0), limits="velocity")
    return here(ik, model.neutral(), lambda t: {"effector": way(t)}), beside(
        robot, solver, aim, apart(robot, pairs, [0, 1])
    )


def differential(folder: Path) -> tuple[Side, Side]:
    """Two rings turn the two axes of a differential."""
    text = text_of(folder)
    gears = (
        '<robot name="differential"><coupling name="mean"><joint name="upper"/>'
        '<joint name="lower"/>'
        '<joint name="alpha" ratio="-2"/></coupling>'
        '<coupling name="difference"><joint name="upper"/>'
        '<joint name="lower" ratio="-1"/><joint name="beta" ratio="-1"/></coupling>'
        "</robot>"
    )
    model = rm.load(text, extend=gears, independent=["upper", "lower"])
    robot, solver = theirs(text)
    solver.mask_fbase(True)
    task = solver.add_gear_task()
    for of, by, ratio in (("alpha", "upper", 0.5), ("alpha", "lower", 0.5),
                          ("beta", "upper", 1.0), ("beta", "lower", -1.0)):  # fmt: skip
        task.add_gear(of, by, ratio)
    task.configure("gears", "hard")
    joints = solver.add_joints_task()
    joints.set_joints({"lower": 0.0, "upper": 0.0})

    def way(t: float) -> Array:
        return np.array([np.sin(t), np.sin(1.5 * t)])

    def aim(t: float) -> None:
        joints.set_joint("upper", way(t)[0])
        joints.set_joint("lower", way(t)[1])

    def gap() -> float:
        upper, lower, alpha, beta = (
            float(robot.get_joint(name)) for name in ("upper", "lower", "alpha", "beta")
        )
        return max(abs(0.5 * (upper + lower) - alpha), abs(upper - lower - beta))

    ik = InverseKinematics(model, JointTask(["upper", "lower"], name="rings"))
    return here(ik, model.neutral(), lambda t: {"rings": way(t)}), beside(robot, solver, aim, gap)


EXAMPLES = {
    "megabot": megabot, "planar-2dof": planar, "orbita": orbita, "differential": differential,
}  # fmt: skip


def main() -> None:
    """Print a line for each example."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=Path, help="the folder models of placo-examples")
    options = parser.parse_args()
    for name, example in EXAMPLES.items():
        sides = example(options.models / name)
        best, gaps = np.full((2, 2), np.inf), [0.0, 0.0]
        for _ in range(ROUNDS):
            for k, side in enumerate(sides):
                side.reset()
                taken = np.zeros(2)
                for t in DT * np.arange(STEPS):
                    times = [time.process_time()]
                    side.solve(float(t))
                    times.append(time.process_time())
                    side.move()
                    taken += np.diff([*times, time.process_time()])
                    gaps[k] = max(gaps[k], side.gap())
                best[k] = np.minimum(best[k], taken / STEPS * 1e6)
        (solution, motion), (whole, _) = best
        print(f"{name}: {solution:.1f} + {motion:.1f} µs and gaps of {gaps[0]:.0e} m; PlaCo "
              f"{whole:.0f} µs, {whole / solution:.1f} times as long as the solution, "
              f"{whole / (solution + motion):.1f} as both, and {gaps[1]:.0e} m")  # fmt: skip


if __name__ == "__main__":
    main()
