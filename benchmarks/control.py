"""Inverse kinematics and whole-body control beside pink, mink and Crocoddyl with Pinocchio.

    python -m benchmarks.control [--cassie mujoco_menagerie/agility_cassie/cassie.xml]

Least times of several rounds, the packages in turn within each. mink runs on what ``rm.write_mjcf``
writes of the same robot, with its loops and gears as equality constraints, which are a task there.
Needs pin-pink, mink, daqp and crocoddyl; what is missing is left out.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import robomodel as rm
from benchmarks.shared.race import Array
from robomodel.control import (
    CenterOfMassTask,
    FrameTask,
    InverseDynamics,
    InverseKinematics,
    PointTask,
    PostureTask,
)

DT = 0.01
ROUNDS = 7
STEPS = 100


def raced(runs: dict[str, Callable[[], object]], calls: int) -> dict[str, float]:
    """Microseconds a call, the least of the rounds."""
    best = dict.fromkeys(runs, np.inf)
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start = time.perf_counter()
            for _ in range(calls):
                run()
            best[name] = min(best[name], (time.perf_counter() - start) / calls * 1e6)
    return best


# ---- steps ---------------------------------------------------------------------------------------


def way(model: rm.Model, frame: str, reach: float) -> Array:
    """Where a link's origin is while the independent joints swing by so much, there and back."""
    rng = np.random.default_rng(0)
    swing = rng.uniform(-1.0, 1.0, model.nv) * reach
    if model.floating_base:
        swing[:6] = 0.0
    times = np.sin(np.linspace(0.0, np.pi, STEPS))
    q = model.integrate(model.neutral(), times[:, None] * swing)
    points: Array = rm.frame_pose(model, q, frame)[:, :3, 3]
    return points


def beside_pink() -> dict[str, float]:
    """An open tree: a pose and a posture."""
    import pink
    import pinocchio as pin

    path = rm.robots.path("puma560")
    model, its = rm.load(path), pin.buildModelFromUrdf(str(path))
    goal = model.random_configuration(0)
    pose = rm.frame_pose(model, goal, "link6")
    ik = InverseKinematics(model, [FrameTask("link6"), PostureTask(1e-2)])
    q, targets = model.neutral(), {"link6": pose, "posture": model.neutral()}
    tasks = [pink.FrameTask("link6", 1.0, 1.0), pink.PostureTask(1e-2)]
    tasks[0].set_target(pin.SE3(pose))
    at, data = np.array(model.to_order("pinocchio", q, joints=its)), its.createData()
    tasks[1].set_target(at)

    def theirs() -> object:
        configuration = pink.Configuration(its, data, at, copy_data=False)
        return pink.solve_ik(configuration, tasks, DT, solver="daqp")

    ik(q, DT, targets)
    return raced({"robomodel": lambda: ik(q, DT, targets), "pink": theirs}, 300)


def beside_mink(name: str, frame: str, reach: float) -> tuple[dict[str, float], float, float]:
    """A point on its way; times of a step, and the largest gaps of loops on the way [m]."""
    import mink
    import mujoco

    model = rm.robots.load(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.xml"
        rm.write_mjcf(model, path, drop=True)  # what has no mass moves all the same
        its = mujoco.MjModel.from_xml_path(str(path))
    its.opt.jacobian = (
        mujoco.mjtJacobian.mjJAC_SPARSE
    )  # MuJoCo 4 pads dense ones, mink 1.3 does not
    points = way(model, frame, reach)
    start = model.neutral()
    ik = InverseKinematics(model, [PointTask(frame), PostureTask(1e-3)])
    follow = mink.FrameTask(frame, "body", position_cost=1.0, orientation_cost=0.0)
    posture = mink.PostureTask(its, 1e-3)
    tasks: list[Any] = [follow, posture]
    if its.neq:
        tasks.append(mink.EqualityConstraintTask(its, cost=100.0))
    at = np.array(model.to_order("mujoco", start, joints=its))
    configuration = mink.Configuration(its, q=at)
    posture.set_target(at)
    limits = [mink.ConfigurationLimit(its)]

    def aim(point: Array) -> None:
        follow.set_target(mink.SE3.from_rotation_and_translation(mink.SO3.identity(), point))

    q, gaps, data = start, 0.0, mujoco.MjData(its)
    for point in points:
        aim(point)
        velocity = mink.solve_ik(configuration, tasks, DT, solver="daqp", limits=limits)
        configuration.integrate_inplace(velocity, DT)
        data.qpos[:] = configuration.q
        mujoco.mj_forward(its, data)
        gaps = max(gaps, float(np.abs(data.efc_pos[: data.ne]).max(initial=0.0)))
        q = model.integrate(q, ik(q, DT, {frame: point, "posture": start}) * DT)
    aim(points[STEPS // 2])
    targets = {frame: points[STEPS // 2], "posture": start}

    def theirs() -> object:
        configuration.update()
        return mink.solve_ik(configuration, tasks, DT, solver="daqp", limits=limits)

    times = raced({"robomodel": lambda: ik(q, DT, targets), "mink": theirs}, 200)
    return times, float(np.abs(model.residual(q)).max(initial=0.0)), gaps


def on_cassie(path: str, *, hard: bool) -> tuple[dict[str, float], float, float]:
    """Cassie sways: pelvis, feet, centre of mass and posture; times, and the gaps of loops [m].

    ``hard``: feet's poses are hard tasks; mink's loops are a task in any case.
    """
    import mink
    import mujoco

    model, its = rm.load(path), mujoco.MjModel.from_xml_path(path)
    its.opt.jacobian = mujoco.mjtJacobian.mjJAC_SPARSE
    start, feet = model.neutral(), ("left-foot", "right-foot")
    trunk = model.bodies[0].name
    ik = InverseKinematics(
        model,
        [
            FrameTask(trunk),
            *(FrameTask(foot, hard=True) if hard else PointTask(foot) for foot in feet),
            CenterOfMassTask(0.5),
            PostureTask(1e-3),
        ],
    )
    at = np.array(model.to_order("mujoco", start, joints=its))
    configuration, data = mink.Configuration(its, q=at), mujoco.MjData(its)
    pelvis, center = mink.FrameTask(trunk, "body", 1.0, 1.0), mink.ComTask(0.5)
    points = [mink.FrameTask(foot, "body", 1.0, 0.0) for foot in feet]
    posture = mink.PostureTask(its, 1e-3)
    posture.set_target(at)
    tasks = [pelvis, center, posture, mink.EqualityConstraintTask(its, cost=100.0)]
    tasks += [] if hard else points
    firm = points if hard else None
    limits = [mink.ConfigurationLimit(its)]
    poses = {foot: rm.frame_pose(model, start, foot) for foot in feet}
    targets: dict[Any, Array] = {f: x if hard else x[:3, 3] for f, x in poses.items()}
    for task, pose in zip(points, poses.values(), strict=True):
        task.set_target(mink.SE3.from_matrix(pose))
    upright, middle = rm.frame_pose(model, start, trunk), rm.center_of_mass(model, start)
    q, gaps, others = start, 0.0, 0.0

    def theirs() -> Any:
        configuration.update()
        return mink.solve_ik(
            configuration, tasks, DT, solver="daqp", limits=limits, constraints=firm
        )

    for sway in 0.04 * np.sin(np.linspace(0.0, 4.0 * np.pi, 2 * STEPS)):
        way = np.array([0.0, 0.5 * sway, -abs(sway)])
        pose = upright.copy()
        pose[:3, 3] += way
        targets |= {trunk: pose, "center_of_mass": middle + way, "posture": start}
        pelvis.set_target(mink.SE3.from_matrix(pose))
        center.set_target(middle + way)
        configuration.integrate_inplace(theirs(), DT)
        data.qpos[:] = configuration.q
        mujoco.mj_forward(its, data)
        others = max(others, float(np.abs(data.efc_pos[: data.ne]).max()))
        q = model.integrate(q, ik(q, DT, targets) * DT)
        gaps = max(gaps, float(np.abs(model.residual(q)).max()))
    return raced({"robomodel": lambda: ik(q, DT, targets), "mink": theirs}, 100), gaps, others


# ---- a thousand times a second -------------------------------------------------------------------


def controllers() -> dict[str, Callable[[], object]]:
    """Calls of controllers on robots that stand."""
    feet = [f"{leg}_foot_contact" for leg in ("FR", "FL", "HR", "HL")]
    cheetah = rm.robots.load("mini_cheetah")
    q = cheetah.neutral()
    q[7:] = 4 * [0.0, 0.8, -1.6]
    tasks = [FrameTask("Floating Base"), *(PointTask(f) for f in feet), PostureTask(1e-3)]
    targets: dict[Any, Array] = {f: rm.frame_pose(cheetah, q, f)[:3, 3] for f in feet}
    targets |= {"Floating Base": rm.frame_pose(cheetah, q, "Floating Base"), "posture": q}
    targets["Floating Base"][2, 3] += 0.01
    ik = InverseKinematics(cheetah, tasks)
    stays = [PointTask(f, hard=True) for f in feet]
    hard = InverseKinematics(cheetah, [*stays, FrameTask("Floating Base"), PostureTask(1e-3)])
    whole = InverseDynamics(
        cheetah, [FrameTask("Floating Base", gain=100.0), PostureTask(1e-2)], contacts=feet
    )
    base = {x: targets[x] for x in ("Floating Base", "posture")}
    still = np.zeros(cheetah.nv)
    tello = rm.robots.load("tello")
    at = tello.neutral()
    sides = ("left-foot", "right-foot")
    walker = InverseKinematics(tello, [*(PointTask(s) for s in sides), PostureTask(1e-3)])
    soles: dict[Any, Array] = {s: rm.frame_pose(tello, at, s)[:3, 3] + 0.01 for s in sides}
    return {
        "Mini Cheetah, base and feet": lambda: ik(q, 1e-3, targets),
        "Mini Cheetah, feet hard": lambda: hard(q, 1e-3, targets),
        "Mini Cheetah, forces on four feet": lambda: whole(q, still, base),
        "Tello, both feet": lambda: walker(at, 1e-3, soles | {"posture": at}),
    }


def percentiles(run: Callable[[], object], calls: int) -> Array:
    """The middle, 99.9 % and the largest of so many calls' times [µs]; of the processor, too.

    Calls begin a millisecond apart, as in a loop at 1 kHz.
    """
    times, begin = np.empty((calls, 2)), time.perf_counter()
    for n, row in enumerate(times):
        time.sleep(max(0.0, begin + 1e-3 * n - time.perf_counter()))
        before = time.process_time()
        start = time.perf_counter()
        run()
        row[0] = time.perf_counter() - start
        row[1] = time.process_time() - before
    result: Array = 1e6 * np.percentile(times, [50.0, 99.9, 100.0], axis=0).T
    return result


# ---- optimal control -----------------------------------------------------------------------------

MOTORS = '<robot name="planar_leg_linkage">' + "".join(
    f'<joint name="{name}"><limit effort="5" velocity="50"/></joint>'
    for name in ("thigh_joint", "shank_driver_joint")
) + "</robot>"  # fmt: skip


def beside_pinocchio(name: str, knots: int = 50) -> dict[str, float]:
    """Milliseconds of an iteration of FDDP: a leg with a linkage knee swings, Tello jumps."""
    import crocoddyl

    from benchmarks.shared import constrained_pinocchio
    from robomodel.crocoddyl import DifferentialActionModel, IntegratedActionModelEuler, State

    if name == "tello":
        model = rm.robots.load(name)
        theirs, goal = constrained_pinocchio.tello(0.05), model.neutral()
        goal[2] += 0.05
    else:
        model = rm.load(rm.robots.path(name), extend=MOTORS)
        goal = model.configuration({"thigh_joint": 0.5, "shank_driver_joint": 1.2})
        theirs = constrained_pinocchio.leg(model, goal)
    state, nu = State(model), len(model.actuators)
    iterations = 1 if name == "tello" else 3  # in which both take whole steps

    def ours(weight: float, dt: float) -> Any:
        action = DifferentialActionModel(
            state, state_cost=np.sqrt(weight), control_cost=0.1,
            reference=np.concatenate([goal, np.zeros(model.nv)]),
        )  # fmt: skip
        return IntegratedActionModelEuler(action, dt)

    def beside(weight: float, dt: float) -> Any:
        costs = crocoddyl.CostModelSum(theirs.state, nu)
        costs.addCost("x", crocoddyl.CostModelResidual(theirs.state, theirs.near), weight)
        push = crocoddyl.ResidualModelControl(theirs.state, nu)
        costs.addCost("u", crocoddyl.CostModelResidual(theirs.state, push), 1e-2)
        return crocoddyl.IntegratedActionModelEuler(theirs.action(costs), dt)

    problems = {
        who: crocoddyl.ShootingProblem(start, [of(0.1, 0.01)] * knots, of(10.0, 0.0))
        for who, start, of in (
            ("robomodel", state.zero(), ours), ("pinocchio", theirs.start, beside)
        )
    }  # fmt: skip
    times = dict.fromkeys(problems, np.inf)
    for _ in range(ROUNDS):
        for who, each in problems.items():
            solver = crocoddyl.SolverFDDP(each)
            solver.th_stop = 1e-30
            start = time.perf_counter()
            solver.solve([each.x0] * (knots + 1), [np.zeros(nu)] * knots, iterations)
            times[who] = min(times[who], (time.perf_counter() - start) / (solver.iter + 1) * 1e3)
    return times


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--cassie", help="MuJoCo Menagerie's file, which is not shipped")
    options = parser.parse_args()
    if find_spec("pink"):
        times = beside_pink()
        print(f"puma560, pose and posture: {times['robomodel']:.1f} µs, "
              f"pink {times['pink'] / times['robomodel']:.1f} times as long")  # fmt: skip
    if find_spec("mink"):
        for name, frame, reach in (
            ("puma560", "link6", 0.5),
            ("planar_leg_linkage", "foot", 0.5),
            ("tello", "left-foot", 0.3),
        ):
            times, gap, theirs = beside_mink(name, frame, reach)
            print(f"{name}, a point: {times['robomodel']:.1f} µs and gaps of {gap:.0e}, "
                  f"mink {times['mink'] / times['robomodel']:.1f} times as long and "
                  f"{theirs:.0e}")  # fmt: skip
    if options.cassie and find_spec("mink"):
        for hard in (False, True):
            times, gap, theirs = on_cassie(options.cassie, hard=hard)
            kind = "hard" if hard else "soft"
            print(f"Cassie, pelvis, {kind} feet and centre of mass: {times['robomodel']:.1f} µs "
                  f"and gaps of {gap:.0e}, mink {times['mink'] / times['robomodel']:.1f} times as "
                  f"long and {theirs:.0e}")  # fmt: skip
    for name, run in controllers().items():
        run()
        (middle, late, worst), (_, busy, most) = percentiles(run, options.calls)
        print(f"{name}: {middle:.0f} µs, 99.9 % below {late:.0f}, all below {worst:.0f}; of the "
              f"processor {busy:.0f} and {most:.0f}")  # fmt: skip
    if find_spec("crocoddyl"):
        for name in ("planar_leg_linkage", "tello"):
            times = beside_pinocchio(name)
            ratio = times["pinocchio"] / times["robomodel"]
            print(f"FDDP, {name}: {times['robomodel']:.1f} ms an iteration, "
                  f"Pinocchio {ratio:.1f} times as long")  # fmt: skip


if __name__ == "__main__":
    main()
