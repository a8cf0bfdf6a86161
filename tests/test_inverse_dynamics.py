"""Whole-body control beside an independent spanning tree and programme; limits, cones, errors."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases import few
from oracle import Oracle
from test_dynamics import named
from texts import joint, link, robot

import robomodel as rm
from robomodel.control import (
    AccelerationLimit,
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
)

Array = np.ndarray
ALIGNED = "local_world_aligned"
FEET = ["FR_foot_contact", "FL_foot_contact", "HR_foot_contact", "HL_foot_contact"]
SOLES = [f"{side}-{end}_contact" for side in ("left", "right") for end in ("heel", "toe")]


def with_motors(model: rm.Model, effort: float) -> rm.Model:
    """The model with a limit of each motor's force."""
    motors = tuple(replace(each, effort_limit=effort) for each in model.actuators)
    return replace(model, actuators=motors)


def cheetah() -> tuple[rm.Model, Array]:
    model = rm.robots.load("mini_cheetah")
    q = model.neutral()
    q[7:] = 4 * [0.05, 0.8, -1.6]
    return model, q


def left_over(oracle: Oracle, control: InverseDynamics, q: Array, v: Array, result: Any) -> float:
    """What the spanning tree's equations of motion lack beside loop forces; relative.

    M q̈ + b = Σ forces + Kᵀ λ with the oracle's M, b and K at the joints' positions.
    """
    model, (a, u, forces) = control.model, result
    oracle.names = list(model.joint_names)
    at = oracle.state(named(model, q))
    g_matrix = model.constraint_jacobian(q)
    qd, qdd = g_matrix @ v, g_matrix @ a + model.constraint_bias(q, v)
    wrenches: dict[str, Array] = {}
    for contact, force in zip(control.contacts, forces, strict=True):
        turn = rm.frame_pose(model, q, contact.link)[:3, :3]
        local = turn.T @ force
        wrench = np.concatenate([np.cross(contact.offset, local), local])
        wrenches[contact.link] = wrenches.get(contact.link, 0.0) + wrench
    right = np.zeros(len(qd))
    for actuator, x in zip(model.actuators, u, strict=True):
        for row, k in actuator.rows:
            right[row] += k * x
    inertial = oracle.mass_matrix(at) @ qdd
    lacking = inertial + oracle.bias(at, qd, wrenches) - right
    _, k_matrix, k = oracle.constraint(at, qd)
    assert np.max(np.abs(k_matrix @ qdd - k), initial=0.0) <= 1e-8 * max(1.0, np.abs(qdd).max())
    if len(k_matrix):
        lacking = lacking - k_matrix.T @ np.linalg.lstsq(k_matrix.T, lacking, rcond=None)[0]
    size = max(np.abs(inertial).max(), np.abs(right).max(initial=0.0), 1.0)
    return float(np.abs(lacking).max() / size)


def beyond_cones(forces: Array, friction: float) -> float:
    across = np.linalg.norm(forces[:, :2], axis=1) - friction * forces[:, 2]
    return float(np.max(across, initial=0.0))


@pytest.mark.slow_cases("parallel_ankle")
@pytest.mark.parametrize(
    "name",
    few(["mini_cheetah", "tello", "parallel_ankle", "belt_leg"], "parallel_ankle", "belt_leg"),
)
def test_equations_cones_and_limits_hold(name: str) -> None:
    """Floating robots that stand, with rotors and differentials; rods with ball joints; belts."""
    rng = np.random.default_rng(0)
    if name == "mini_cheetah":
        model, q = cheetah()
        contacts: list[str] = FEET
        tasks: list[Any] = [FrameTask("Floating Base", gain=400.0), CenterOfMassTask(gain=100.0)]
    elif name == "tello":
        model = rm.robots.load(name)
        q, contacts = model.neutral(), SOLES
        tasks = [FrameTask("torso", gain=100.0), PostureTask(0.1, gain=100.0)]
    else:
        model = rm.robots.load(name)
        q, contacts = model.random_configuration(rng, near=model.neutral()), []
        tasks = [PostureTask(gain=100.0)]
    model = with_motors(model, {"mini_cheetah": 1.5, "tello": 8.0}.get(name, 1e-3))
    control = InverseDynamics(model, tasks, contacts=contacts, friction=0.6)
    oracle = Oracle(rm.robots.path(name).read_text())
    bounded = 0
    for scale in (0.01, 0.1, 0.3):
        v = 0.3 * scale * rng.normal(size=model.nv)
        if contacts:  # points of one link stand together
            rows = [rm.jacobian(model, q, c, reference=ALIGNED)[3:] for c in contacts]
            v = v - np.linalg.pinv(np.concatenate(rows)) @ np.concatenate(rows) @ v
        goal = model.integrate(q, scale * rng.normal(size=model.nv))
        targets = {
            "Floating Base": rm.frame_pose(model, goal, model.bodies[0].name),
            "torso": rm.frame_pose(model, goal, model.bodies[0].name),
            "center_of_mass": rm.center_of_mass(model, goal),
            "posture": goal,
        }
        targets = {task.name: targets[task.name] for task in tasks}
        a, u, forces = control(q, v, targets)
        assert left_over(oracle, control, q, v, (a, u, forces)) <= 1e-8
        assert beyond_cones(forces, 0.6) <= 1e-8
        most = np.array([each.effort_limit for each in model.actuators])
        assert np.all(np.abs(u) <= most + 1e-8)
        bounded += bool(np.any(np.abs(u) > most - 1e-7) or np.any(np.abs(forces[:, 2]) < 1e-6))
        for contact in contacts:
            moved = rm.frame_acceleration(model, q, v, a, contact, reference=ALIGNED)
            np.testing.assert_allclose(moved[3:], 0.0, atol=1e-8)
    assert bounded


@pytest.mark.slow
def test_costs_are_those_of_an_independent_programme() -> None:
    """Beside quadprog with a, u and f as unknowns and the equations of motion as rows."""
    quadprog = pytest.importorskip("quadprog")
    rng = np.random.default_rng(1)
    model, q = cheetah()
    model = with_motors(model, 1.2)
    v = 0.1 * rng.normal(size=model.nv)
    point = rm.frame_pose(model, q, "FR_foot_contact")[:3, 3] + [0.05, 0.0, 0.05]
    tasks = [
        CenterOfMassTask([1.0, 2.0, 3.0], gain=100.0),
        PointTask("FR_foot_contact", 0.5, gain=400.0),
        PostureTask(0.05, gain=50.0),
    ]
    center = rm.center_of_mass(model, q) + np.array([0.05, -0.1, 0.2])
    control = InverseDynamics(model, tasks, contacts=FEET, friction=0.5, damping=1e-6)
    targets = {"center_of_mass": center, "FR_foot_contact": point, "posture": model.neutral()}
    standing = [False, True, True, True]
    a, u, forces = control(q, v, targets, standing=standing)
    np.testing.assert_array_equal(forces[0], 0.0)

    still = np.zeros(model.nv)
    rows, wanted = [], []

    def add(cost: Array, jacobian: Array, error: Array, gain: float, bias: Array) -> None:
        rows.append(cost[:, None] * jacobian)
        wanted.append(cost * (gain * error - 2 * np.sqrt(gain) * jacobian @ v - bias))

    jacobian = rm.center_of_mass_jacobian(model, q)
    bias = rm.dynamics.center_of_mass_acceleration(model, q, v, still)
    add(np.array([1.0, 2, 3]), jacobian, center - rm.center_of_mass(model, q), 100.0, bias)
    jacobian = rm.jacobian(model, q, "FR_foot_contact", reference=ALIGNED)[3:]
    bias = rm.dynamics.frame_bias(model, q, v, "FR_foot_contact", reference=ALIGNED)[3:]
    error = point - rm.frame_pose(model, q, "FR_foot_contact")[:3, 3]
    add(np.full(3, 0.5), jacobian, error, 400.0, bias)
    posture = model.difference(q, model.neutral())[6:]
    add(np.full(12, 0.05), np.eye(18)[6:], posture, 50.0, np.zeros(12))
    n, nu, k = model.nv, 12, 9
    full = np.concatenate(rows)
    weight = model.mass * 9.81
    hessian = np.zeros((n + nu + k, n + nu + k))
    hessian[:n, :n] = full.T @ full + 1e-12 * np.eye(n)
    hessian[n:, n:] = np.diag([*[1e-6 / 1.2**2] * nu, *[1e-6 / weight**2] * k])
    linear = np.zeros(n + nu + k)
    linear[:n] = full.T @ np.concatenate(wanted)
    stand = [rm.jacobian(model, q, foot, reference=ALIGNED)[3:] for foot in FEET[1:]]
    drift = [rm.dynamics.frame_bias(model, q, v, foot, reference=ALIGNED)[3:] for foot in FEET[1:]]
    contact = np.concatenate(stand)
    motion = np.c_[rm.crba(model, q), -rm.actuator_map(model, q), -contact.T]
    held = np.c_[contact, np.zeros((k, nu + k))]
    equal = np.concatenate([motion, held])
    right = np.concatenate([-rm.bias_force(model, q, v, passive=True), -np.concatenate(drift)])
    more = [sign * np.eye(n + nu + k)[n + i] for i in range(nu) for sign in (1.0, -1.0)]
    ends = [-1.2] * len(more)
    for i in range(3):
        x, y, z = (np.eye(n + nu + k)[n + nu + 3 * i + j] for j in range(3))
        more += [z, *(0.5 / np.sqrt(2.0) * z + s * t for t in (x, y) for s in (1.0, -1.0))]
        ends += [0.0] * 5
    matrix = np.concatenate([equal, np.array(more)])
    best = quadprog.solve_qp(hessian, linear, matrix.T, np.concatenate([right, ends]), len(equal))[
        0
    ]

    def cost(x: Array) -> float:
        return float(0.5 * x @ hessian @ x - linear @ x)

    found = np.concatenate([a, u, forces[1:].ravel()])
    assert cost(found) <= cost(best) + 1e-9 * abs(cost(best))
    np.testing.assert_allclose(forces[1:].ravel(), best[n + nu :], rtol=0, atol=1e-3)
    np.testing.assert_allclose(u, best[n : n + nu], rtol=0, atol=1e-4)


@pytest.mark.slow
def test_hard_tasks_go_first_and_accelerate_as_told() -> None:
    """ẍ = gain e - 2 √gain ẋ of a frame in its axes, of its origin as a point; of relative ones."""
    rng = np.random.default_rng(2)
    model, q = cheetah()
    v = 0.5 * rng.normal(size=model.nv)
    goal = model.integrate(q, 0.05 * rng.normal(size=model.nv))
    base, leg = "Floating Base", "FR_knee_link"
    other = "HL_hip_link"
    between = np.linalg.inv(rm.frame_pose(model, goal, other)) @ rm.frame_pose(model, goal, leg)
    tasks = [
        FrameTask(base, gain=30.0, hard=True),
        RelativeFrameTask(leg, other, 1.0, 0.0, gain=20.0, hard=True, name="between"),
        PostureTask(1.0, gain=10.0),
    ]
    control = InverseDynamics(model, tasks, contacts=["FL_foot_contact", "HR_foot_contact"])
    targets = {base: rm.frame_pose(model, goal, base), "between": between, "posture": q}
    a, _, _ = control(q, v, targets)
    pin = pytest.importorskip("pinocchio")
    X = rm.frame_pose(model, q, base)
    way = pin.log6(pin.SE3(np.linalg.inv(X) @ targets[base])).vector[[3, 4, 5, 0, 1, 2]]
    wanted = 30.0 * way - 2 * np.sqrt(30.0) * rm.frame_velocity(model, q, v, base)
    np.testing.assert_allclose(rm.frame_acceleration(model, q, v, a, base), wanted, atol=1e-9)

    def relative(h: float) -> Array:
        """Position of the leg's origin in the other link after h."""
        at = model.integrate(q, h * v + 0.5 * h * h * a)
        pose = np.linalg.inv(rm.frame_pose(model, at, other)) @ rm.frame_pose(model, at, leg)
        return pose

    h = 1e-5
    before, now, after = relative(-h), relative(0.0), relative(h)
    speed = now[:3, :3].T @ (after - before)[:3, 3] / (2 * h)
    second = now[:3, :3].T @ (after - 2 * now + before)[:3, 3] / h**2
    error = pin.log6(pin.SE3(np.linalg.inv(now) @ between)).vector[:3]
    wanted = 20.0 * error - 2 * np.sqrt(20.0) * speed
    np.testing.assert_allclose(second, wanted, rtol=0, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.slow
def test_barriers_keep_dependent_joints_and_planes() -> None:
    model = rm.robots.load("parallel_ankle")
    rng = np.random.default_rng(3)
    q = model.neutral()
    dependent = next(joint for joint in model.joints if joint.nv == 1 and not joint.independent)
    now = float(model.joint_positions(q)[dependent.name])
    joints = tuple(
        replace(j, type="revolute", lower=now - 0.02, upper=now + 0.02, velocity_limit=0.4)
        if j is dependent
        else j
        for j in model.joints
    )
    model = replace(model, joints=joints)
    control = InverseDynamics(model, PostureTask(gain=400.0), limits=("position", "velocity"))
    ends = []
    for _ in range(6):
        v = 0.1 * rng.normal(size=model.nv)
        goal = q + 0.5 * rng.normal(size=model.nq)
        a, _, _ = control(q, v, {"posture": model.close(goal)})
        x = float(model.joint_velocities(q, v)[dependent.name])
        acceleration = float(model.joint_accelerations(q, v, a)[dependent.name])
        high = min(400.0 * 0.02 - 40.0 * x, 20.0 * (0.4 - x))
        low = max(-400.0 * 0.02 - 40.0 * x, 20.0 * (-0.4 - x))
        assert low - 1e-8 <= acceleration <= high + 1e-8
        ends.append(min(high - acceleration, acceleration - low))
    assert min(ends) < 1e-8 < max(ends)

    control = InverseDynamics(
        model, PostureTask(gain=400.0), limits=AccelerationLimit(0.5, dependent.name)
    )
    a, _, _ = control(q, v, {"posture": model.close(q + 0.3)})
    acceleration = float(model.joint_accelerations(q, v, a)[dependent.name])
    np.testing.assert_allclose(abs(acceleration), 0.5, rtol=1e-6)

    model, q = cheetah()
    top = float(rm.frame_pose(model, q, "Floating Base")[2, 3])
    plane = HalfSpace("Floating Base", (0.0, 0.0, 1.0), top + 1e-3)
    control = InverseDynamics(
        model, FrameTask("Floating Base", gain=100.0), contacts=FEET, limits=("actuator", plane)
    )
    target = rm.frame_pose(model, q, "Floating Base")
    target[2, 3] += 1.0
    a, _, _ = control(q, np.zeros(model.nv), {"Floating Base": target})
    rise = rm.frame_acceleration(model, q, 0 * a, a, "Floating Base", reference=ALIGNED)[5]
    np.testing.assert_allclose(rise, 400.0 * 1e-3, rtol=1e-6)


PLATE = """
<robot name="plate"><link name="plate"><inertial><origin xyz="0.02 0.01 0.1"/><mass value="2"/>
  <inertia ixx="0.1" iyy="0.1" izz="0.2" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>
"""


def test_points_that_repeat_each_other_stand() -> None:
    """Four corners of a rigid plate: twelve conditions of which six say something."""
    model = rm.load(PLATE, floating_base=True)
    corners = [("plate", (x, y, 0.0)) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    control = InverseDynamics(model, CenterOfMassTask(), contacts=corners)
    q, target = model.neutral(), {"center_of_mass": np.zeros(3)}
    a, u, forces = control(q, np.zeros(6), target)
    np.testing.assert_allclose(a, 0.0, atol=1e-9)
    assert u.shape == (0,)
    np.testing.assert_allclose(forces.sum(axis=0), [0.0, 0.0, 2 * 9.81], atol=1e-8)
    pressed = np.cross([corner for _, corner in corners], forces).sum(axis=0)
    np.testing.assert_allclose(pressed, np.cross([0.02, 0.01, 0.1], [0, 0, 2 * 9.81]), atol=1e-8)
    assert beyond_cones(forces, 0.7) <= 1e-8
    turning = np.array([0.0, 0.0, 0.3, 0.0, 0.0, 0.0])  # so that not all of them can keep still
    assert np.isfinite(control(q, turning, target)[0]).all()


@pytest.mark.slow
def test_ground_says_what_stands_and_spheres_roll() -> None:
    model, q = cheetah()
    q[7::3] = 0.0
    ground = rm.Ground(friction=0.4)
    lowest = min(rm.frame_pose(model, q, foot)[2, 3] for foot in FEET)
    q[2] += 0.02 - lowest
    spheres = [(foot, (0.0, 0.0, 0.0), 0.02) for foot in FEET]
    control = InverseDynamics(
        model, FrameTask("Floating Base", gain=50.0), contacts=spheres, ground=ground
    )
    target = {"Floating Base": rm.frame_pose(model, q, "Floating Base")}
    rng = np.random.default_rng(4)
    v = 0.1 * rng.normal(size=model.nv)
    a, _, forces = control(q, v, target)
    assert np.all(forces[:, 2] > 1.0)
    assert beyond_cones(forces, 0.4) <= 1e-8
    for foot in FEET:
        moved = rm.frame_acceleration(model, q, v, a, foot, reference=ALIGNED)
        np.testing.assert_allclose(
            moved[3:], np.cross(moved[:3], [0.0, 0.0, 0.02]), rtol=0, atol=1e-8
        )
    q[2] += 0.1
    assert not np.any(control(q, v, target)[2])


@pytest.mark.slow
def test_dead_points_are_no_obstacle() -> None:
    """A crank-rocker near its rocker's dead point, which is independent: as by the crank."""
    path = rm.robots.path("crank_rocker")
    text = path.read_text().replace(
        "</robot>",
        '<transmission name="t" type="transmission_interface/SimpleTransmission"><joint '
        'name="crank_joint"/><actuator name="motor"/></transmission></robot>',
    )
    by_crank = rm.load(text, independent=["crank_joint"])
    by_rocker = rm.load(text, independent=["rocker_joint"])
    task = JointTask("crank_joint", gain=50.0)
    q = by_crank.neutral()
    x = float(by_crank.joint_positions(q)["crank_joint"])
    rates = []
    for angle in x + np.linspace(0.0, 6.2, 2000):
        q = by_crank.configuration({"crank_joint": float(angle)}, guess=q)
        rates.append((abs(by_crank.constraint_jacobian(q)[-1, 0]), angle))
    at = min(rates)[1]
    from scipy.optimize import brentq

    def rate(angle: float) -> float:
        return float(
            by_crank.constraint_jacobian(by_crank.configuration({"crank_joint": angle}, guess=q))[
                -1, 0
            ]
        )

    q = by_crank.configuration({"crank_joint": float(at)}, guess=q)
    dead = by_crank.configuration(
        {"crank_joint": brentq(rate, at - 0.01, at + 0.01, xtol=1e-15)}, guess=q
    )
    targets = {"crank_joint": float(by_crank.joint_positions(dead)["crank_joint"]) + 0.1}
    expected = InverseDynamics(by_crank, task)(dead, np.zeros(1), targets)
    names = by_rocker.joint_names
    order = [by_crank.joint_names.index(name) for name in names]
    found = InverseDynamics(by_rocker, task)(dead[order], np.zeros(1), targets)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-8)
    assert np.isfinite(found[0]).all()


def test_change_points_are_told_and_controllers_pickle() -> None:
    """A flat parallelogram may go on in two ways."""
    model = rm.robots.load("four_bar")
    control = pickle.loads(pickle.dumps(InverseDynamics(model, JointTask("joint1", gain=10.0))))
    with pytest.warns(RuntimeWarning, match="change point"):
        a, _, _ = control(np.zeros(3), np.zeros(1), {"joint1": 0.5})
    assert np.isnan(a).all()
    ik = pickle.loads(pickle.dumps(InverseKinematics(model, JointTask("joint1"), limits=())))
    q = model.configuration({"joint1": -0.35})
    for x in np.arange(-0.3, 0.4, 0.1):
        q = ik.step(q, 0.01, {"joint1": x})
        assert np.max(np.abs(model.residual(q))) <= 1e-12
    np.testing.assert_allclose(q, [x, -x, x], rtol=0, atol=1e-6)
    assert np.isfinite(ik(np.zeros(3), 0.01, {"joint1": 0.5})).all()


@pytest.mark.slow_cases("parallel_ankle-False", "parallel_ankle-True")
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("name", ["parallel_ankle", pytest.param("tello", marks=pytest.mark.slow)])
def test_limits_of_all_joints_at_once_contradict_nothing(name: str, hard: bool) -> None:
    """Every joint at an end of its range: it stands there, a hard task or not."""
    model = rm.robots.load(name)
    for seed in range(3):
        q = model.random_configuration(seed, near=model.neutral())
        at = model.joint_positions(q)
        joints = tuple(
            replace(j, type="revolute", lower=float(at[j.name]) - 1.0, upper=float(at[j.name]))
            if j.nv == 1
            else j
            for j in model.joints
        )
        held = replace(model, joints=joints)
        task = PostureTask(gain=100.0, hard=hard)
        still = np.zeros(model.nv)
        a, _, _ = InverseDynamics(held, task, limits="position")(q, still, {"posture": q})
        each = held.joint_accelerations(q, still, a)
        assert all(np.all(np.asarray(x) <= 1e-7) for n, x in each.items() if n != "torso-to-ground")
        v = InverseKinematics(held, task, limits="position")(q, 0.01, {"posture": q})
        np.testing.assert_allclose(v, 0.0, atol=1e-9)


@pytest.mark.slow
def test_contradictions_are_named_and_batches_go_on() -> None:
    model, q = cheetah()
    model = with_motors(model, 0.5)
    tasks = [FrameTask("Floating Base", gain=100.0, hard=True), PostureTask(1e-2, gain=10.0)]
    control = InverseDynamics(model, tasks, contacts=FEET)
    still = np.zeros(model.nv)
    here = rm.frame_pose(model, q, "Floating Base")
    away = here.copy()
    away[2, 3] += 3.0
    with pytest.raises(InfeasibleError, match="hard task 'Floating Base'") as caught:
        control(q, still, {"Floating Base": away, "posture": q})
    assert any("force of actuator" in each for each in caught.value.limits)
    assert "hard task 'Floating Base'" in caught.value.limits
    poses = np.array([here, away, here])
    v = 0.05 * np.random.default_rng(5).normal(size=(3, model.nv))
    with pytest.warns(RuntimeWarning, match="1 of 3 states: no motion of 'mini_cheetah'"):
        a, u, forces = control(q, v, {"Floating Base": poses, "posture": q})
    assert np.isnan(a[1]).all()
    assert np.isnan(u[1]).all()
    for i in (0, 2):
        one = control(q, v[i], {"Floating Base": here, "posture": q})
        for part, whole in zip(one, (a, u, forces), strict=True):
            np.testing.assert_allclose(whole[i], part, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("ahead", "back"),
    [('effort="0" effort_lower="-5"', 'effort="5" effort_lower="0"'),
     ('effort="3" effort_lower="-5"', 'effort="5" effort_lower="-3"')],
)  # fmt: skip
def test_damping_does_not_ask_which_way_an_axis_points(ahead: str, back: str) -> None:
    """A pair of motors that push less one way, and the same arm with its axes turned about."""

    def forces(limits: str, sign: int) -> Array:
        more = f'<limit lower="-3" upper="3" velocity="9" {limits}/>'
        model = rm.load(robot(
            link("upper"), link("lower"),
            joint("a", "base", "upper", kind="revolute", axis=f"0 {sign} 0", more=more),
            joint("b", "upper", "lower", kind="revolute", axis=f"0 {sign} 0", more=more),
        ))  # fmt: skip
        task = JointTask(["a", "b"])
        control = InverseDynamics(model, task, limits="actuator", damping=0.01)
        _, u, _ = control(model.neutral(), np.zeros(2), {task: sign * np.array([1.0, 0.5])})
        return sign * u

    np.testing.assert_allclose(forces(ahead, 1), forces(back, -1), rtol=1e-9)
