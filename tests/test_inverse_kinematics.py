"""Inverse kinematics beside pink, independent programmes, closed forms."""

from __future__ import annotations

import gc
import math
import re
import tracemalloc
import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest
import texts
from cases import few
from scipy.optimize import lsq_linear, minimize
from texts import joint, link, loop, robot

import robomodel as rm
from robomodel.control import (
    AccelerationLimit,
    ActuatorTask,
    CenterOfMassTask,
    FrameTask,
    HalfSpace,
    InfeasibleError,
    InverseDynamics,
    InverseKinematics,
    JointTask,
    PointTask,
    PostureTask,
    RelativeFrameTask,
    Task,
)

Array = np.ndarray

TREE = """
<robot name="arm_on_base">
  <link name="base"><inertial><mass value="3"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"
    iyz="0"/></inertial></link>
  {links}
</robot>
"""


def tree(joints: int = 7) -> str:
    """An arm on a base, with limits of positions and velocities."""
    rng = np.random.default_rng(3)
    parts, parent = [], "base"
    for i in range(joints):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        parts.append(
            f'<link name="l{i}"><inertial><mass value="1"/><origin xyz="0 0 0.1"/><inertia '
            'ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="j{i}" type="revolute"><parent link="{parent}"/><child link="l{i}"/>'
            f'<origin xyz="0.05 0 0.3"/><axis xyz="{axis[0]} {axis[1]} {axis[2]}"/>'
            '<limit lower="-1.2" upper="1.5" velocity="2" effort="10"/></joint>'
        )
        parent = f"l{i}"
    return TREE.format(links="\n".join(parts))


# ---- beside others -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("floating", [False, True])
def test_steps_are_pinks(floating: bool) -> None:
    """On an open tree: tasks of all kinds, gains, dampings, with limits and without any active."""
    pink = pytest.importorskip("pink")
    pin = pytest.importorskip("pinocchio")
    text = tree()
    model = rm.load(text, floating_base=floating)
    root = [pin.JointModelFreeFlyer()] if floating else []
    its = pin.buildModelFromXML(text, *root)
    rng = np.random.default_rng(0)
    tasks = [
        FrameTask("l6", [1.0, 2.0, 0.5], 0.7, gain=0.8, lm_damping=0.1),
        FrameTask("l3", 0.4, 0.0),
        CenterOfMassTask([0.3, 0.2, 0.1], gain=0.5),
        PostureTask(0.02),
        RelativeFrameTask("l5", "l1", 0.3, 0.1, name="between"),
    ]
    theirs = [
        pink.FrameTask("l6", [1.0, 2.0, 0.5], 0.7, gain=0.8, lm_damping=0.1),
        pink.FrameTask("l3", 0.4, 0.0),
        pink.tasks.ComTask([0.3, 0.2, 0.1], gain=0.5),
        pink.PostureTask(0.02),
        pink.tasks.RelativeFrameTask("l5", "l1", 0.3, 0.1),
    ]
    ik = InverseKinematics(model, tasks)
    limited = 0
    for scale in (0.02, 0.3, 0.8):
        q = model.random_configuration(rng)
        goal = model.integrate(q, scale * rng.normal(size=model.nv))
        pose = {name: rm.frame_pose(model, goal, name) for name in ("l1", "l3", "l5", "l6")}
        between = np.linalg.inv(pose["l1"]) @ pose["l5"]
        targets = {
            "l6": pose["l6"],
            "l3": pose["l3"],
            "center_of_mass": rm.center_of_mass(model, goal),
            "posture": goal,
            "between": between,
        }
        for task, name in zip(theirs, ("l6", "l3", "", "", "between"), strict=True):
            if name:
                task.set_target(pin.SE3(targets[name]))
        theirs[2].set_target(targets["center_of_mass"])
        theirs[3].set_target(model.to_order("pinocchio", goal, joints=its))
        at = model.to_order("pinocchio", q, joints=its)
        configuration = pink.Configuration(its, its.createData(), at)
        expected = pink.solve_ik(configuration, theirs, 0.05, solver="daqp")
        v = ik(q, 0.05, targets)
        found = model.to_order("pinocchio", q, v, joints=its)[1]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
        limited += bool(np.max(np.abs(v[-7:])) > 2.0 - 1e-6)
    assert limited


def programme_of(
    model: rm.Model, tasks: list[Task], q: Array, targets: dict[str, Array], damping: float
) -> tuple[Array, Array]:
    """Weighted rows and errors of points and frames by differences of poses, damping below."""
    rows, right = [], []
    for task in tasks:
        if isinstance(task, PointTask):
            jacobian = rm.jacobian(model, q, task.frame, reference="local_world_aligned")[3:]
            error = targets[task.name] - rm.frame_pose(model, q, task.frame)[:3, 3]
        else:
            assert isinstance(task, JointTask)
            assert isinstance(task.names, tuple)
            full = model.constraint_jacobian(q)
            jacobian = full[[model.nodes[model.joint_names.index(n)].v for n in task.names]]
            at = model.joint_positions(q)
            error = targets[task.name] - np.array([at[n] for n in task.names])
        rows.append(task.cost * jacobian)
        right.append(task.cost * task.gain * error)
    rows.append(np.sqrt(damping) * np.eye(model.nv))
    right.append(np.zeros(model.nv))
    return np.concatenate(rows), np.concatenate(right)


LEGS = {
    "mini_cheetah": ["HR_foot_contact", "FL_foot_contact", "Floating Base"],
    "tello": ["left-foot", "right-toe_contact"],
    "planar_leg_linkage": ["end-effector"],
    "parallel_ankle": [("foot", (0.1, 0.0, 0.0))],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=pytest.mark.slow) if each == "tello" else each for each in LEGS],
)
def test_costs_are_those_of_an_independent_programme(name: str) -> None:
    """Points of floating robots, of differentials, linkages and rods; with bounds on v alone."""
    model, rng = rm.robots.load(name), np.random.default_rng(1)
    points = [PointTask(frame, 0.7, gain=0.9, name=str(frame)) for frame in LEGS[name]]
    joint = model.joint_names[-1]
    tasks: list[Task] = [*points, JointTask([joint], 0.3)]
    q = model.random_configuration(rng)
    goal = model.integrate(q, 0.1 * rng.normal(size=model.nv))
    targets: dict[Any, Array] = {
        str(frame): rm.frame_pose(model, goal, frame)[:3, 3] for frame in LEGS[name]
    }
    targets[joint] = np.array([model.joint_positions(goal)[joint]])
    step = InverseKinematics(model, tasks, limits=(), damping=1e-6)(q, 1.0, targets)
    rows, right = programme_of(model, tasks, q, targets, 1e-6)
    best = np.linalg.lstsq(rows, right, rcond=None)[0]

    def cost(x: Array) -> float:
        return 0.5 * float(np.sum((rows @ x - right) ** 2))

    assert cost(step) - cost(best) <= 1e-9
    # the same with the middle of the joints' way as a limit
    limit = 0.5 * float(np.max(np.abs(best)))
    ends = dict.fromkeys(model.dof_names, limit)
    slow = limited(model, ends)
    ik = InverseKinematics(slow, tasks, limits="velocity", damping=1e-6)
    step = ik(q, 1.0, targets)
    several = ik(np.array([q, q]), 1.0, targets)  # in the kernel, where bounds alone are active
    np.testing.assert_allclose(several, [step, step], rtol=0, atol=1e-8)
    bounded = [i for i, n in enumerate(model.dof_names) if n in slow.joint_names]
    low, high = np.full(model.nv, -np.inf), np.full(model.nv, np.inf)
    low[bounded], high[bounded] = -limit, limit
    best = lsq_linear(rows, right, (low, high), method="bvls", tol=1e-15).x
    assert cost(step) - cost(best) <= 1e-9
    assert np.all(step <= high + 1e-9)
    assert np.all(step >= low - 1e-9)


def limited(model: rm.Model, ends: dict[str, float]) -> rm.Model:
    """The model with these velocity limits, and no others."""
    from dataclasses import replace

    joints = tuple(
        replace(joint, velocity_limit=ends.get(joint.name, np.inf)) for joint in model.joints
    )
    return replace(model, joints=joints)


@pytest.mark.slow
def test_dependent_joints_and_rotors_keep_their_limits() -> None:
    """A step goes half the way to a limit, of a knee's rotor and of a linkage's dependent joint."""
    text = rm.robots.path("mini_cheetah").read_text()
    assert "HR_knee_rotor_joint" in text
    from dataclasses import replace

    model = rm.robots.load("mini_cheetah")
    q = model.neutral()
    at = model.joint_positions(q)
    joints = tuple(
        replace(j, type="revolute", upper=float(at[j.name]) + 0.3)
        if j.name == "HR_knee_rotor_joint"
        else j
        for j in model.joints
    )
    model = replace(model, joints=joints)
    ik = InverseKinematics(model, PostureTask(), limits="position")
    ratio = model.constraint_jacobian(q)[
        model.nodes[model.joint_names.index("HR_knee_rotor_joint")].v
    ]
    far = q.copy()
    far[7:] += np.where(ratio[6:] > 0.0, 1.0, -1.0)
    v = ik(q, 1.0, {"posture": far})
    np.testing.assert_allclose(ratio @ v, 0.15, rtol=1e-9)

    leg = rm.robots.load("four_bar")
    dependent = next(j for j in leg.joints if not j.independent)
    now = float(leg.joint_positions(leg.neutral())[dependent.name])
    joints = tuple(
        replace(j, type="revolute", lower=now - 0.2, upper=now + 0.2) if j is dependent else j
        for j in leg.joints
    )
    leg = replace(leg, joints=joints)
    ik = InverseKinematics(leg, JointTask(dependent.name), limits="position")
    v = ik(leg.neutral(), 1.0, {dependent.name: now + 3.0})
    rate = leg.joint_velocities(leg.neutral(), v)[dependent.name]
    np.testing.assert_allclose(rate, 0.1, rtol=1e-9)
    with pytest.warns(RuntimeWarning, match=re.escape(f"position of joint '{dependent.name}' at")):
        q = rm.inverse_kinematics(leg, {dependent.name: now + 3.0})
    np.testing.assert_allclose(leg.joint_positions(q)[dependent.name], now + 0.2, atol=1e-8)


@pytest.mark.slow
def test_dependent_joints_and_rotors_keep_their_accelerations() -> None:
    """|v⁺ - v| <= dt · limit of a rotor and of a dependent joint, in batches, at dead points."""
    rng, dt = np.random.default_rng(8), 0.01
    for name in ("mini_cheetah", "parallel_ankle"):
        model = rm.robots.load(name)
        joint = [j.name for j in model.joints if j.nv == 1 and not j.independent][-1]
        limit = AccelerationLimit(5.0, joint)
        ik = InverseKinematics(model, PostureTask(), limits=["position", limit])
        q = model.neutral()
        goals = np.array([model.random_configuration(rng, near=q) for _ in range(3)])
        before = 0.1 * rng.normal(size=(3, model.nv))
        after = ik(q, dt, {"posture": goals}, v=before)
        changes = model.joint_velocities(q, after - before)[joint]
        assert np.all(np.abs(changes) <= 5.0 * dt + 1e-9)
        np.testing.assert_allclose(np.abs(changes).max(), 5.0 * dt, rtol=1e-6)
        one = ik(q, dt, {"posture": goals[0]}, v=before[0])
        np.testing.assert_allclose(one, after[0], rtol=0, atol=1e-9)
        with pytest.raises(ValueError, match="need v=, the velocity before"):
            ik(q, dt, {"posture": q})
        with pytest.raises(rm.errors.UnknownNameError, match=f"did you mean '{joint}'"):
            InverseKinematics(model, PostureTask(), limits=AccelerationLimit(1.0, joint[:-1]))
    crank = rm.load(rm.robots.path("crank_rocker"), independent=["rocker_joint"])
    ik = InverseKinematics(
        crank, JointTask("crank_joint"), limits=AccelerationLimit(2.0, "crank_joint")
    )
    dead = next(s for s in _singularities(crank) if np.isfinite(s).all())
    x = float(crank.joint_positions(dead)["crank_joint"])
    q = ik.step(dead, 0.1, {"crank_joint": x + 1.0}, v=np.zeros(1))
    np.testing.assert_allclose(crank.joint_positions(q)["crank_joint"], x + 0.02, atol=1e-3)
    with pytest.raises(ValueError, match="most is a positive number"):
        AccelerationLimit(0.0, "crank_joint")


# ---- hard tasks, planes, what contradicts --------------------------------------------------------


@pytest.mark.slow
def test_hard_tasks_hold_exactly_and_planes_are_kept() -> None:
    model, rng = rm.robots.load("mini_cheetah"), np.random.default_rng(2)
    q = model.random_configuration(rng)
    goal = model.integrate(q, 0.1 * rng.normal(size=model.nv))
    feet = ("HR_foot_contact", "FL_foot_contact")
    knee = rm.frame_pose(model, q, "HL_knee_link")[:3, 3]
    plane = HalfSpace("HL_knee_link", (0.0, 0.0, 2.0), float(knee[2]) + 1e-3)
    tasks = [
        *(FrameTask(foot, 1.0, 0.0, gain=0.6, hard=True) for foot in feet),
        FrameTask("Floating Base"),
        PostureTask(1e-2),
    ]
    ik = InverseKinematics(model, tasks, limits=("velocity", plane))
    targets = {name: rm.frame_pose(model, goal, name) for name in (*feet, "Floating Base")}
    targets["Floating Base"][2, 3] += 0.3
    v = ik(q, 1.0, targets | {"posture": q})
    for foot in feet:
        X = rm.frame_pose(model, q, foot)
        error = 0.6 * log6(np.linalg.inv(X) @ targets[foot])
        rows = jlog6(np.linalg.inv(targets[foot]) @ X) @ rm.jacobian(model, q, foot)
        np.testing.assert_allclose((rows @ v)[3:], error[3:], rtol=0, atol=1e-11)
    rise = rm.jacobian(model, q, "HL_knee_link", reference="local_world_aligned")[5] @ v
    np.testing.assert_allclose(rise, 0.5e-3, rtol=1e-6)  # half of what is left


def log6(pose: Array) -> Array:
    pin = pytest.importorskip("pinocchio")
    return np.asarray(pin.log6(pin.SE3(pose)).vector[[3, 4, 5, 0, 1, 2]])


def jlog6(pose: Array) -> Array:
    pin = pytest.importorskip("pinocchio")
    order = [3, 4, 5, 0, 1, 2]
    return np.asarray(pin.Jlog6(pin.SE3(pose))[np.ix_(order, order)])


def test_contradictions_are_named() -> None:
    model, rng = rm.robots.load("mini_cheetah"), np.random.default_rng(2)
    q = model.random_configuration(rng)
    at = rm.frame_pose(model, q, "HR_foot_contact")[:3, 3]
    twice = [PointTask("HR_foot_contact", hard=True, name=name) for name in "ab"]
    ik = InverseKinematics(model, twice)
    np.testing.assert_allclose(ik(q, 1.0, {"a": at, "b": at}), 0.0, atol=1e-12)
    with pytest.raises(InfeasibleError, match="hard task 'a', hard task 'b'") as caught:
        ik(q, 1.0, {"a": at, "b": at + 0.1})
    assert caught.value.limits == ("hard task 'a'", "hard task 'b'")
    states = np.array([q, model.neutral()])
    targets = {"a": np.array([at, at]), "b": np.array([at + 0.1, at])}
    with pytest.warns(RuntimeWarning, match=r"1 of 2 states: no step of 1 s"):
        v = ik(states, 1.0, targets)
    assert np.isnan(v[0]).all()
    np.testing.assert_allclose(v[1], ik(states[1], 1.0, {"a": at, "b": at}), rtol=0, atol=1e-9)

    arm = rm.load(tree(1), floating_base=False)
    ik = InverseKinematics(arm, JointTask("j0"))
    with pytest.raises(InfeasibleError, match="position of joint 'j0'") as caught:
        ik([3.0], 0.01, {"j0": 0.0})  # 1.5 beyond, and at most 0.02 in a step
    assert set(caught.value.limits) == {"position of joint 'j0'", "velocity of joint 'j0'"}


@pytest.mark.slow
def test_other_solvers() -> None:
    model = rm.load(tree(), floating_base=True)
    rng = np.random.default_rng(5)
    q = model.random_configuration(rng)
    goal = model.integrate(q, 0.5 * rng.normal(size=model.nv))
    targets = {"l6": rm.frame_pose(model, goal, "l6"), "l2": rm.frame_pose(model, goal, "l2")}
    tasks = [FrameTask("l6"), FrameTask("l2", 1.0, 0.0, hard=True)]
    v = InverseKinematics(model, tasks, damping=1e-3)(q, 0.1, targets)
    pytest.importorskip("quadprog")
    other = InverseKinematics(model, tasks, damping=1e-3, solver="quadprog")
    np.testing.assert_allclose(other(q, 0.1, targets), v, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="solver 'simplex' is not there; "):
        InverseKinematics(model, tasks, solver="simplex")


@pytest.mark.slow
@pytest.mark.tables_cases("mini_cheetah")
@pytest.mark.parametrize("name", ["mini_cheetah", "crank_rocker"])
def test_loops_compile_nothing_and_keep_no_memory(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps and forces, with hard tasks and limits that are met, and at a dead point."""
    if name == "crank_rocker":
        model = rm.load(rm.robots.path(name), independent=["rocker_joint"])
        tasks: list[Task] = [JointTask("crank_joint")]
        q, targets = _singularities(model)[0], {"crank_joint": 1.0}
    else:
        model = rm.robots.load(name)
        q = model.neutral()
        tasks = [PointTask("HR_foot_contact", hard=True), PostureTask()]
        far = model.random_configuration(0, near=q)
        targets = {"HR_foot_contact": rm.frame_pose(model, q, "HR_foot_contact")[:3, 3] + 0.1,
                   "posture": far}  # fmt: skip
    controls = InverseKinematics(model, tasks), InverseDynamics(model, tasks)
    for control in controls:
        control.compile()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("compiled in a loop")

    still, sizes = np.zeros(model.nv), []
    controls[0](q, 1e-3, targets)
    controls[1](q, still, targets)
    monkeypatch.setattr("robomodel.kernels.compile.compile_program", refuse)
    tracemalloc.start()
    for _ in range(2):
        for _ in range(50):
            controls[0](q, 1e-3, targets)
            controls[1](q, still, targets)
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert sizes[1] - sizes[0] < 2_000


# ---- configurations ------------------------------------------------------------------------------


@pytest.mark.slow_cases("parallel_ankle")
@pytest.mark.parametrize(
    "name", few([*LEGS, "four_bar", "six_bar"], "four_bar", "mini_cheetah", "parallel_ankle")
)
def test_reachable_targets_are_reached(name: str) -> None:
    """From neutral, loops closed to 1e-12, within limits; a batch gives what its states give."""
    model, rng = rm.robots.load(name), np.random.default_rng(3)
    frame = LEGS.get(name, [model.bodies[-1].name])[0]
    goals = np.array([model.random_configuration(rng, near=model.neutral()) for _ in range(4)])
    poses = rm.frame_pose(model, goals, frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = rm.inverse_kinematics(model, {frame: poses})
        one = rm.inverse_kinematics(model, {frame: poses[1]}, guess=model.neutral())
    np.testing.assert_allclose(rm.frame_pose(model, q, frame), poses, rtol=0, atol=1e-9)
    np.testing.assert_allclose(one, q[1], rtol=0, atol=1e-9)
    assert np.max(np.abs(model.residual(q)), initial=0.0) <= 1e-12
    assert model.check(q, tolerance=1e-12) == ()


@pytest.mark.slow
def test_postures_choose_between_solutions() -> None:
    """A redundant arm: the point is reached to 1e-10, and the posture is as near as it can be."""
    model, rng = rm.load(tree(), floating_base=False), np.random.default_rng(4)
    goal, rest = rng.uniform(-0.5, 0.5, size=(2, model.nq))
    point = rm.frame_pose(model, goal, "l6")[:3, 3]
    ik = InverseKinematics(model, [PointTask("l6"), PostureTask(1e-3)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = ik.solve(rest, {"l6": point, "posture": rest})
    np.testing.assert_allclose(rm.frame_pose(model, q, "l6")[:3, 3], point, rtol=0, atol=1e-10)
    null = np.linalg.svd(rm.jacobian(model, q, "l6", reference="local_world_aligned")[3:])[2][3:]
    inside = (q > model.lower + 1e-3) & (q < model.upper - 1e-3)
    assert inside.all()
    np.testing.assert_allclose(null @ (rest - q), 0.0, atol=1e-4)


def test_unreachable_targets_give_the_nearest() -> None:
    model = rm.robots.load("puma560")
    point = np.array([2.0, 1.0, 0.3])
    with pytest.warns(RuntimeWarning, match=r"returns the nearest: it misses 'link6' by 1\.2"):
        q = rm.inverse_kinematics(model, {"link6": point})

    def distance(x: Array) -> float:
        return float(np.sum((rm.frame_pose(model, x, "link6")[:3, 3] - point) ** 2))

    least = min(minimize(distance, x, tol=1e-14).fun for x in (q, np.ones(6), np.zeros(6)))
    assert distance(q) <= least + 1e-8
    assert distance(q) <= (1 + 1e-9) * least


@pytest.mark.slow
def test_hard_tasks_of_a_search() -> None:
    """A foot stays to 1e-10 while the base goes where it can."""
    model, rng = rm.robots.load("mini_cheetah"), np.random.default_rng(6)
    q = model.neutral()
    q[7:] = 4 * [0.1, 0.8, -1.6] + 0.05 * rng.normal(size=12)
    feet = ["HR_foot_contact", "HL_foot_contact", "FR_foot_contact", "FL_foot_contact"]
    tasks = [*(PointTask(f, hard=True) for f in feet), FrameTask("Floating Base")]
    targets = {f: rm.frame_pose(model, q, f)[:3, 3] for f in feet}
    base = rm.frame_pose(model, q, "Floating Base")
    base[2, 3] += 0.05
    ik = InverseKinematics(model, tasks)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ik.solve(q, targets | {"Floating Base": base})
    np.testing.assert_allclose(
        rm.frame_pose(model, found, "Floating Base"), base, rtol=0, atol=1e-9
    )
    base[2, 3] += 5.0
    with pytest.warns(RuntimeWarning, match="misses 'Floating Base' by"):
        found = ik.solve(q, targets | {"Floating Base": base}, restarts=0)
    for foot in feet:
        np.testing.assert_allclose(
            rm.frame_pose(model, found, foot)[:3, 3], targets[foot], rtol=0, atol=1e-8
        )


@pytest.mark.slow
def test_steps_pass_dead_points() -> None:
    """A crank goes round while the rocker, which comes to rest twice a turn, is independent."""
    model = rm.load(rm.robots.path("crank_rocker"), independent=["rocker_joint"])
    ik = InverseKinematics(model, JointTask("crank_joint"))
    q = model.neutral()
    x = float(model.joint_positions(q)["crank_joint"])
    rest: list[float] = []
    for _ in range(70):
        x += 0.1
        q = ik.step(q, 0.01, {"crank_joint": x})
        assert abs(float(model.joint_positions(q)["crank_joint"]) - x) < 1e-2
        assert np.max(np.abs(model.residual(q))) <= 1e-12
        rest.append(float(np.linalg.norm(model.constraint_jacobian(q))))
    assert max(rest) > 10.0
    # where the rocker rests, velocities of it are no help, and no error
    dead = next(s for s in _singularities(model) if np.isfinite(s).all())
    v = ik(dead, 0.01, {"crank_joint": x})
    assert np.isfinite(v).all()


def _singularities(model: rm.Model) -> list[Array]:
    """Configurations at which the crank and the coupler are in line."""
    from scipy.optimize import brentq

    crank = rm.load(rm.robots.path("crank_rocker"), independent=["crank_joint"])

    def at(x: float) -> Array:
        return crank.configuration({"crank_joint": x})

    def rate(x: float) -> float:
        return float(crank.constraint_jacobian(at(x))[2, 0])

    xs = np.linspace(0.1, 6.2, 40)
    rates = [rate(x) for x in xs]
    ends = [(a, b) for a, b, f, g in zip(xs, xs[1:], rates, rates[1:], strict=False) if f * g < 0]
    return [at(brentq(rate, a, b, xtol=1e-15)) for a, b in ends]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(("name", "joint_name"), [("crank_rocker", "crank_joint"),
                                                  ("four_bar", "joint3")])  # fmt: skip
@pytest.mark.parametrize("wanted", [50.0, -400.0, 1.0])
def test_turns_of_targets_count(name: str, joint_name: str, wanted: float) -> None:
    """Of joints that turn fully, with their loops closed as at the target less whole turns."""
    model = rm.robots.load(name)
    q = InverseKinematics(model, JointTask(joint_name)).solve(model.neutral(), {joint_name: wanted})
    assert model.joint_positions(q)[joint_name] == pytest.approx(wanted, abs=1e-9)
    assert np.max(np.abs(model.residual(q))) < 1e-12
    assert model.is_reachable(q)
    once = model.configuration({joint_name: np.remainder(wanted, 2.0 * np.pi)})
    link_name = model.bodies[1].name
    np.testing.assert_allclose(
        rm.frame_pose(model, q, link_name), rm.frame_pose(model, once, link_name), atol=1e-9
    )


@pytest.mark.slow
def test_actuators_are_followed() -> None:
    model, rng = rm.robots.load("tello"), np.random.default_rng(7)
    goal = model.random_configuration(rng, near=model.neutral())
    u = rm.actuator_positions(model, goal)
    q = InverseKinematics(model, ActuatorTask()).solve(model.neutral(), {"actuators": u})
    np.testing.assert_allclose(rm.actuator_positions(model, q), u, rtol=0, atol=1e-9)


def test_no_states_have_no_velocities() -> None:
    model = rm.robots.load("mini_cheetah")
    ik = InverseKinematics(model, FrameTask("Floating Base"))
    none = ik(model.neutral(), 0.1, {"Floating Base": np.zeros((0, 4, 4))})
    assert none.shape == (0, model.nv)


@pytest.mark.parametrize(
    ("ratio", "wanted", "end"),
    [(-0.5, 1.0, 0.1), (0.5, -1.0, 0.1), (-0.5, -1.0, 0.7), (0.5, 1.0, 0.7)],
)
def test_the_limit_that_a_follower_meets_is_named(ratio: float, wanted: float, end: float) -> None:
    """q = 0.4 + ratio · lead, within 0.1 and 0.7."""
    ends = '<limit lower="0.1" upper="0.7" effort="1" velocity="1"/>'
    mimic = f'<mimic joint="lead" multiplier="{ratio}" offset="0.4"/>'
    model = rm.load(
        robot(
            link("a"),
            link("b"),
            joint("lead", "base", "a"),
            joint("other", "a", "b", kind="revolute", more=ends + mimic),
        )
    )
    with pytest.warns(RuntimeWarning, match=f"position of joint 'other' at {end}$"):
        q = rm.inverse_kinematics(model, {"lead": wanted})
    assert model.joint_positions(q)["other"] == pytest.approx(end, abs=1e-6)


def test_a_search_whose_last_step_reaches_the_target_says_so() -> None:
    """A step of less than 1e-10 rad moves the end of a leg of 100 m by as much as is tolerated."""
    axes, parts, parent = ("0 1 0", "1 0 0", "0 1 0"), [link("base")], "base"
    for n, (axis, low, high) in enumerate(
        zip(axes, (-0.2, -0.8, -1.0), (2.0, 0.6, 1.0), strict=True)
    ):
        ends = f'<limit lower="{low}" upper="{high}"/>'
        parts += [link(f"l{n}"), joint(f"j{n}", parent, f"l{n}", "0 0 -30", kind="revolute",
                                       axis=axis, more=ends)]  # fmt: skip
        parent = f"l{n}"
    model = rm.load(f'<robot name="crane">{"".join(parts)}</robot>', floating_base=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for seed in (24, 55, 95, 99, 115):
            q = model.random_configuration(seed, base_pose="random")
            poses = {name: rm.frame_pose(model, q, name) for name in ("l2", "base")}
            found = rm.inverse_kinematics(model, poses)
            for name, pose in poses.items():
                np.testing.assert_allclose(rm.frame_pose(model, found, name), pose, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1.0, 1e-3])
def test_poses_are_reached_in_any_size(size: float) -> None:
    """Poses of a platform on three cranks that its joints have, in metres and in millimetres."""

    def at(*x: float) -> str:
        return " ".join(repr(size * each) for each in (*x, 0.0))

    base, pins = [(0.0, 0.0), (2.0, 0.0), (1.0, 1.7)], [(0.7, 0.45), (1.3, 0.5), (1.02, 0.95)]
    knees = [(0.2, 0.6), (1.9, 0.7), (1.7, 1.4)]
    parts = [texts.link("plate")]
    for n in range(3):
        knee = np.subtract(knees[n], base[n])
        parts += [texts.link(f"crank{n}"), texts.link(f"rod{n}")]
        parts += [texts.joint(f"m{n}", "base", f"crank{n}", at(*base[n]))]
        parts += [texts.joint(f"e{n}", f"crank{n}", f"rod{n}", at(*knee.tolist()))]
    ends = [np.subtract(pins[n], knees[n]).tolist() for n in range(3)]
    parts += [texts.joint("pin", "rod0", "plate", at(*ends[0]))]
    for n in (1, 2):
        on = np.subtract(pins[n], pins[0]).tolist()
        parts += [texts.loop(f"l{n}", "revolute", f"rod{n}", "plate", at(*ends[n]), at(*on))]
    model = rm.load(texts.robot(*parts))
    rng = np.random.default_rng(4)
    for _ in range(6):
        pose = rm.frame_pose(model, model.random_configuration(rng), "plate")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            q = rm.inverse_kinematics(model, {"plate": pose})
        off = np.abs(rm.frame_pose(model, q, "plate") - pose)
        assert np.max(off[:3, :3]) < 1e-9
        assert np.max(off[:3, 3]) < 1e-9 * size + 1e-10


@pytest.mark.parametrize("thread", [0.3, 0.002, -0.001])
@pytest.mark.parametrize("ends", [math.inf, 0.2])
def test_fine_screws_are_turned_to_targets(thread: float, ends: float) -> None:
    """A screw that carries an arm, whose height alone tells how far it turns."""
    pitch = thread / math.tau
    most = ends / abs(pitch)
    more = "" if math.isinf(ends) else f'<limit lower="{-most!r}" upper="{most!r}"/>'
    model = rm.load(robot(
        *map(link, "sab"),
        joint("s", "base", "s", kind="screw", axis="0 0 1",
              more=f'{more}<pitch value="{pitch!r}"/>'),
        joint("a", "s", "a", "0.3 0 0", axis="0 0 1"),
        joint("b", "a", "b", "0.2 0 0", axis="0 0 1"),
    ))  # fmt: skip
    tip = ("b", (0.1, 0.0, 0.0))
    rng = np.random.default_rng(0)
    q = np.c_[rng.uniform(-0.15, 0.15, 6) / pitch, rng.uniform(-2.0, 2.0, (6, 2))]
    wanted = rm.frame_pose(model, q, tip)[:, :3, 3]
    for target in (wanted, *wanted):
        found = rm.inverse_kinematics(model, {tip: target})
        np.testing.assert_allclose(rm.frame_pose(model, found, tip)[..., :3, 3], target, atol=1e-7)
        assert np.all(np.abs(pitch * found[..., 0]) <= ends + 1e-9)


@pytest.mark.parametrize("thread", [0.001, -0.002])
def test_cylinders_with_fine_screws_are_led_to_targets(thread: float) -> None:
    pitch = thread / math.tau
    model = rm.load(robot(
        *map(link, ("barrel", "rod", "eye", "arm")), joint("pivot", "base", "barrel"),
        joint("screw", "barrel", "rod", "0.25 0 0", kind="screw", axis="1 0 0",
              more=f'<pitch value="{pitch!r}"/>'),
        joint("bearing", "rod", "eye", axis="1 0 0"), joint("knee", "base", "arm", "0.3 0 0"),
        loop("pin", "revolute", "eye", "arm", "0 0 0", "0 0.2 0"),
    ))  # fmt: skip
    knee = np.array([1.1, -0.2, 0.3, 0.8])
    target = np.stack([0.3 - 0.35 * np.sin(knee), 0.35 * np.cos(knee), 0.0 * knee], axis=1)
    q = rm.inverse_kinematics(model, {("arm", (0.0, 0.35, 0.0)): target})
    length = np.hypot(0.3 - 0.2 * np.sin(knee), 0.2 * np.cos(knee))
    found = model.joint_positions(q)
    np.testing.assert_allclose(found["knee"], knee, atol=1e-6)
    np.testing.assert_allclose(pitch * found["screw"], length - 0.25, atol=1e-6)
    q = rm.inverse_kinematics(model, {"knee": 0.3})
    assert float(model.joint_positions(q)["knee"]) == pytest.approx(0.3, abs=1e-6)


@pytest.mark.slow
def test_other_modes_of_jansens_leg_are_named() -> None:
    """Jansen's eight bars by their lengths: the foot's pose in each of seven other modes.

    The configurations of a mode follow from intersections of circles.
    """
    a, b, c, d, e, f, g, j, k, low, m = (
        x / 100.0 for x in (38, 41.5, 39.3, 40.1, 55.8, 39.4, 36.7, 50, 61.9, 7.8, 15)
    )
    fixed = complex(-a, -low)

    def meet(p: complex, one: float, q: complex, other: float, side: float) -> complex:
        away = abs(q - p)
        x = (one**2 - other**2 + away**2) / (2.0 * away)
        return p + (q - p) / away * complex(x, side * math.sqrt(one**2 - x**2))

    def points(crank: float, sides: tuple[float, ...]) -> tuple[complex, ...]:
        pin = m * complex(math.cos(crank), math.sin(crank))
        top, low_pin = meet(pin, j, fixed, b, sides[0]), meet(pin, k, fixed, c, sides[1])
        back = meet(fixed, d, top, e, 1.0)
        return pin, top, back, low_pin, meet(back, f, low_pin, g, sides[2])

    def at(x: complex) -> str:
        return f"{x.real!r} {x.imag!r} 0"

    pin, top, back, knee, heel = points(0.4, (-1.0, 1.0, -1.0))
    axis = '<axis xyz="0 0 1"/>'
    model = rm.load(robot(
        *map(link, ("crank", "upper", "lower", "j", "k", "f", "foot")),
        *(joint(name, above, name, at(x), axis="0 0 1") for name, above, x in (
            ("crank", "base", 0j), ("upper", "base", fixed), ("lower", "base", fixed),
            ("j", "crank", pin), ("k", "crank", pin), ("f", "upper", back - fixed),
            ("foot", "lower", knee - fixed))),
        loop("top", "revolute", "j", "upper", at(top - pin), at(top - fixed), more=axis),
        loop("knee", "revolute", "k", "lower", at(knee - pin), at(knee - fixed), more=axis),
        loop("heel", "revolute", "f", "foot", at(heel - back), at(heel - knee), more=axis),
    ))  # fmt: skip
    count = 0
    for sides in product((1.0, -1.0), repeat=3):
        for crank in (0.6, 1.3):
            try:
                *_, there, end = points(crank, sides)
            except ValueError:  # no such configuration
                continue
            turn = (end - there) / (heel - knee)
            pose = np.eye(4)
            pose[:2, :2] = [[turn.real, -turn.imag], [turn.imag, turn.real]]
            pose[:2, 3] = there.real, there.imag
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                q = rm.inverse_kinematics(model, {"foot": pose})
            met = np.allclose(rm.frame_pose(model, q, "foot"), pose, atol=1e-6)
            assert met == (sides == (-1.0, 1.0, -1.0))
            assert met or any("another assembly mode" in str(x.message) for x in caught)
            count += not met
    assert count > 10
