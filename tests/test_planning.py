"""Planned motions: limits kept, goals reached, equations of motion obeyed, simulations follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import robomodel as rm
from robomodel.arrays import Array
from robomodel.estimation import Goal, Obstacle, Plan, Stance, plan
from robomodel.estimation.factors import Marker
from robomodel.estimation.planning import (
    Clearance,
    ConeMargins,
    ContactDynamics,
    fixed_points,
    joint_margins,
    point_velocity,
)
from robomodel.estimation.spaces import Configurations

FEET = tuple(f"{leg}_foot_contact" for leg in ("FR", "FL", "HR", "HL"))


def swing(count: int = 21, **limits: Any) -> Plan:
    """The five-bar's move in 0.8 s."""
    model = rm.robots.load("five_bar")
    start = model.neutral()
    stop = model.integrate(start, np.array([-0.5, 0.4]))
    goal = Goal(-1, q=stop, v=np.zeros(2))
    return plan(model, count, 0.8 / (count - 1), start, goals=[goal], **limits)


def obeys(found: Plan) -> None:
    """The equations of motion, by the core and not by what the plan says of itself."""
    assert found.converged
    tau = rm.rnea(found.model, found.q, found.v, found.a)
    for point, forces in zip(found.points, np.moveaxis(found.forces, 1, 0), strict=True):
        rotation = rm.frame_pose(found.model, found.q, point)[..., :3, :3]
        jacobian = rotation @ rm.jacobian(found.model, found.q, point)[..., 3:, :]
        tau = tau - np.einsum("tij,ti->tj", jacobian, forces)
    assert np.abs(tau - found.tau).max() < 1e-8
    h = found.times[1]
    assert np.allclose(np.diff(found.v, axis=0), h / 2 * (found.a[1:] + found.a[:-1]), atol=1e-8)
    assert np.abs(found.model.residual(found.q)).max(initial=0.0) < 1e-9


@pytest.mark.slow
def test_dependent_joints_keep_their_limits() -> None:
    free = swing()
    limits: dict[str, Any] = {
        "velocities": {"J1": 1.0, "J3": 1.7},
        "torques": {"J1": 3.25},
        "positions": {"J4": (0.55, 2.0)},
    }
    kept = swing(**limits)
    for found in (free, kept):
        obeys(found)
    at, rates = kept.model.joint_positions(kept.q), kept.model.joint_velocities(kept.q, kept.v)
    assert at["J4"].min() >= 0.55 > free.model.joint_positions(free.q)["J4"].min()
    assert np.abs(rates["J1"]).max() <= 1.0
    assert np.abs(rates["J3"]).max() <= 1.7
    assert np.abs(kept.tau[:, 0]).max() <= 3.25
    assert 0.0 <= kept.margin < 1e-3  # at one of them
    assert kept.cost > free.cost
    power = np.sum(kept.tau**2, axis=1)
    assert np.isclose(kept.cost, 0.5 * np.trapezoid(power, kept.times))


@pytest.mark.slow
def test_less_torque_there_is_not() -> None:
    """Torques moved along any other motion between the same ends cost more."""
    found = swing()
    model, h = found.model, found.times[1]
    rng = np.random.default_rng(0)
    count = len(found.a)
    summed = h / 2 * (np.tril(np.ones((count, count)), -1) + np.tril(np.ones((count, count))))
    summed[:, 0] -= h / 2  # the trapezoidal rule from the first time to each
    summed[0] = 0.0
    ends = np.stack([summed[-1], (summed @ summed)[-1]])  # of v, of q
    for _ in range(3):
        a = 0.3 * rng.normal(size=found.a.shape)
        a -= np.linalg.pinv(ends) @ (ends @ a)  # neither end moves
        v = summed @ a
        q = summed @ v
        assert np.abs(q[-1]).max() < 1e-12
        tau = rm.rnea(model, model.integrate(found.q, q), found.v + v, found.a + a)
        cost = 0.5 * np.trapezoid(np.sum(tau**2, axis=1), dx=h)
        assert cost > found.cost


@pytest.mark.slow
def test_light_wrists_cost_in_proportion_to_their_inertia() -> None:
    """With equal weights a wrist without limits is spun to move the arm: that is said."""
    model = rm.robots.load("puma560")
    start = model.neutral()
    goal = Goal(-1, q=model.integrate(start, np.full(6, 0.4)), v=np.zeros(6))
    found = plan(model, 21, 0.06, start, goals=[goal], weights="inertia")
    obeys(found)
    assert np.abs(found.v).max() < 10.0
    inertia = np.diagonal(rm.crba(model, start))
    weighed = np.sum((found.tau / (inertia / inertia.max())) ** 2, axis=1)
    assert np.isclose(found.cost, 0.5 * np.trapezoid(weighed, found.times))
    with pytest.warns(RuntimeWarning) as said:
        plan(model, 21, 0.06, start, goals=[goal], max_iterations=40)
    assert any("Give weights='inertia'" in str(each.message) for each in said)
    with pytest.raises(ValueError, match="or 'inertia', got 'mass'"):
        plan(model, 21, 0.06, start, goals=[goal], weights="mass")  # type: ignore[arg-type]


@pytest.mark.slow
def test_simulations_follow_to_second_order() -> None:
    off = []
    for count in (41, 81):
        found = swing(count)
        moved = rm.simulate(
            found.model, found.q[0], found.v[0], tau=found.controller(), duration=0.4,
            step=found.times[1], progress=False,
        )  # fmt: skip
        half = len(moved.q)
        off.append(np.abs(moved.q - found.q[:half]).max())
    assert off[0] < 0.02
    assert 3.0 < off[0] / off[1] < 5.0


@pytest.mark.slow
def test_feedback_is_towards_the_plan() -> None:
    """Between the times too, with the plan's own motion closed there."""
    found = swing()
    model, h = found.model, found.times[1]
    wanted = model.integrate(found.q[3], h * (0.4 * found.v[3] + 0.08 * (found.v[4] - found.v[3])))
    q, v = model.integrate(wanted, [0.01, -0.02]), np.array([0.3, 0.1])
    stiff, plain = found.controller(20.0, 2.0), found.controller()
    back = 20.0 * np.array([-0.01, 0.02]) + 2.0 * (0.6 * found.v[3] + 0.4 * found.v[4] - v)
    at = 3.4 * h
    np.testing.assert_allclose(stiff(at, q, v) - plain(at, q, v), back, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_limits_that_no_motion_keeps() -> None:
    """The plan says that it is none, without stories of singular matrices."""
    with pytest.warns(RuntimeWarning, match="interior point method did not converge"):
        found = swing(velocities={"J1": 1e-3})
    assert not found.converged
    assert found.violation > 1e-3


@pytest.mark.slow
def test_an_arm_behind_gears_and_belts() -> None:
    model = rm.robots.load("teleop_arm")
    start = model.integrate(model.neutral(), np.array([0, 0.4, -0.5, 0.6, 0.2, 0.1, 0]))
    wanted = model.integrate(model.neutral(), np.array([1.2, -0.4, 0.7, -0.9, 0.5, 0.3, 0]))
    goal = rm.frame_pose(model, wanted, "gripper")[:3, 3]
    found = plan(
        model, 31, 1.0 / 30, start,
        goals=[Goal(-1, v=np.zeros(7), points={"gripper": goal})],
        weights={"wrist-pitch-link_joint": 0.2, "wrist-roll-link_joint": 0.05,
                 "gripper_joint": 0.05},
        velocities=dict.fromkeys(model.dof_names, 4.0) | {"elbow-rotor_joint": 20.0},
        torques={"shoulder_rx_link_joint": 5.0},
    )  # fmt: skip
    obeys(found)
    assert np.allclose(rm.frame_pose(model, found.q[-1], "gripper")[:3, 3], goal, atol=1e-8)
    rates = model.joint_velocities(found.q, found.v)
    assert np.abs(rates["elbow-rotor_joint"]).max() <= 20.0
    moved = rm.simulate(
        model, found.q[0], found.v[0], tau=found.controller(20.0, 1.0), duration=1.0,
        step=found.times[1], progress=False,
    )  # fmt: skip
    assert np.abs(moved.q - found.q).max() < 2e-3


@pytest.mark.slow
def test_a_quadruped_jumps() -> None:
    model = rm.robots.load("mini_cheetah")
    bent = {"abad": 0.0, "hip": -0.8, "knee": 1.6}
    legs = {n: bent[n.split("_")[1]] for n in model.dof_names[6:]}
    start = model.configuration(legs)
    start[2] -= min(rm.frame_pose(model, start, foot)[2, 3] for foot in FEET)
    high = start.copy()
    high[2] += 0.1
    found = plan(
        model, 18, 0.025, start, goals=[Goal(-1, q=high)],
        stances=[Stance(FEET, 0, 12, friction=0.6)],
        velocities=dict.fromkeys(model.dof_names[6:], 30.0) | {"HR_knee_rotor_joint": 250.0},
        torques=dict.fromkeys(model.dof_names[6:], 3.0), parameter=10.0,
    )  # fmt: skip
    obeys(found)
    assert np.all(found.tau[:, :6] == 0.0) or np.abs(found.tau[:, :6]).max() < 1e-8
    assert np.abs(found.forces[12:]).max() < 1e-8
    push, side = found.forces[:12, :, 2], np.hypot(found.forces[:12, :, 0], found.forces[:12, :, 1])
    assert push.min() > 0.0
    assert np.all(side <= 0.6 * push)
    for foot in FEET:
        at = rm.frame_pose(model, found.q[:12], foot)[:, :3, 3]
        assert np.abs(at - at[0]).max() < 2e-3
    rates = model.joint_velocities(found.q, found.v)
    assert np.abs(rates["HR_knee_rotor_joint"]).max() <= 250.0


# ---- factors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dynamics", "held", "velocity", "joints", "clearance", "cone"])
def test_jacobians_are_differences(kind: str) -> None:
    name = "five_bar" if kind == "joints" else "planar_leg_linkage"
    model = rm.robots.load(name)
    frames = tuple(body.name for body in model.bodies[-2:])
    rng = np.random.default_rng(3)
    q = np.array([model.random_configuration(rng) for _ in range(2)])
    v, a, tau = rng.normal(size=(3, 2, model.nv))
    f = rng.normal(size=(2, 6))
    f[:, [2, 5]] += 4.0
    make: dict[str, Any] = {
        "dynamics": lambda: ContactDynamics(model, frames),
        "held": lambda: fixed_points(model, frames, (1,), 7.0),
        "velocity": lambda: point_velocity(model, frames),
        "joints": lambda: joint_margins(
            model, {"J4": (-1.0, 2.0)}, {"J3": (-1.0, 1.0), "J1": (-2.0, 3.0)}
        ),
        "clearance": lambda: Clearance(Marker(model, frames[0]), 0.3),
        "cone": lambda: ConeMargins(2, (0, 1), 0.7, (0.0, 0.6, 0.8)),
    }
    factor = make[kind]()
    values = {"q": q, "v": v, "a": a, "tau": tau, "f": f}
    x = [values[name] for name, _ in factor.variables]
    data = np.zeros(factor.rows) if kind == "held" else None
    _, slopes = factor.evaluate(x, data)
    for i, (variable, _) in enumerate(factor.variables):

        def moved(d: Array, i: int = i, variable: str = variable) -> Array:
            y = list(x)
            y[i] = Configurations(model).retract(x[i], d) if variable == "q" else x[i] + d
            result: Array = factor.evaluate(y, data)[0]
            return result

        for j in range(slopes[i].shape[-1]):
            d = np.zeros((2, slopes[i].shape[-1]))
            d[:, j] = h = 1e-4
            change = (8 * (moved(d) - moved(-d)) - moved(2 * d) + moved(-2 * d)) / (12 * h)
            assert np.allclose(slopes[i][..., j], change, rtol=1e-7, atol=1e-7)


@pytest.mark.slow
def test_obstacles_are_passed_and_priors_make_motions_smooth() -> None:
    tip = ("link2", (0.4, 0.0, 0.0))
    free = swing()
    model = free.model
    way = rm.frame_pose(model, free.q, tip)[:, :3, 3]
    center, radius = way[5] + [0.005, 0.0, 0.0], 0.02
    around = swing(obstacles=[Obstacle(center, radius, [tip])])
    smooth = swing(obstacles=[Obstacle(center, radius, [tip])], prior=1.0)
    for found in (around, smooth):
        obeys(found)
        away = np.linalg.norm(rm.frame_pose(model, found.q, tip)[:, :3, 3] - center, axis=1)
        assert away.min() > radius - 1e-6
    assert np.linalg.norm(way - center, axis=1).min() < 0.006
    assert np.sum(np.diff(smooth.v, axis=0) ** 2) < 0.2 * np.sum(np.diff(around.v, axis=0) ** 2)


def test_plans_refuse_what_is_not_there() -> None:
    model = rm.robots.load("five_bar")
    q = model.neutral()
    for words, how in (
        ("outside of 0", {"goals": [Goal(9)]}),
        ("outside of 0", {"stances": [Stance(["link2"], 0, 9)]}),
        ("positive number", {"stances": [Stance(["link2"], 0, 2, friction=0.0)]}),
        ("radius must be positive", {"obstacles": [Obstacle((0, 0, 0), 0.0, ["link2"])]}),
        ("no joint of one freedom 'J9'", {"positions": {"J9": (0.0, 1.0)}}),
        ("no coordinate or actuator 'J3'", {"torques": {"J3": 1.0}}),
        ("no coordinate 'J7'", {"weights": {"J7": 1.0}}),
        ("says where its points stand", {"stances": [Stance(["link2"], 1, 2)]}),
    ):
        with pytest.raises(ValueError, match=words):
            plan(model, 4, 0.1, q, **how)
    with pytest.raises(ValueError, match="two times or more"):
        plan(model, 1, 0.1, q)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"frames": ()}, "one point or more"),
        ({"friction": -1.0}, "friction is a positive number"),
        ({"normal": (0.0, 0.0, 0.0)}, "normal is a direction"),
        ({"normal": (0.0, 1.0)}, "normal needs 3 numbers"),
        ({"at": np.zeros((2, 3))}, r"come to rest has shape \(4, 3\), got \(2, 3\)"),
    ],
)
def test_plans_refuse_stances_that_are_none(wrong: dict[str, Any], message: str) -> None:
    model = rm.robots.load("mini_cheetah")
    stance = Stance(**{"frames": FEET, "first": 0, "stop": 3} | wrong)
    with pytest.raises(ValueError, match=message):
        plan(model, 4, 0.05, model.neutral(), stances=[stance])


def test_points_of_planar_robots_are_goals() -> None:
    """Of whose three conditions one says nothing: no linkage here leaves its plane."""
    robot = rm.robots.load("five_bar")
    start = robot.neutral()
    wanted = rm.frame_pose(robot, robot.integrate(start, [-0.3, 0.2]), "link2")[:3, 3]
    found = plan(robot, 3, 0.2, start, goals=[Goal(-1, points={"link2": wanted})])
    obeys(found)
    np.testing.assert_allclose(
        rm.frame_pose(robot, found.q[-1], "link2")[:3, 3], wanted, atol=1e-12
    )


@pytest.mark.parametrize(
    ("goal", "more", "why"),
    [
        (Goal(-1, q=np.full(4, np.nan)), {}, "not finite"),
        (Goal(-1, v=[0.0, np.nan]), {}, "not finite"),
        (Goal(-1, q=[2.1, -1.1, 1.1, 1.3]), {}, "is open by"),
        (Goal(-1, points={"link2": [0.0, np.inf, 0.0]}), {}, "finite"),
        (Goal(0, v=[0.0, 0.0]), {}, "time 0"),
        (Goal(-1), {"velocities": {"J1": -1.0}}, "velocity limit of 'J1'"),
        (Goal(-1), {"torques": {"J1": np.nan}}, "torque limit of 'J1'"),
        (Goal(-1), {"positions": {"J1": (3.0, 2.0)}}, "positions of 'J1'"),
        (Goal(-1), {"weights": {"J1": 0.0}}, "weight of 'J1'"),
        (Goal(-1), {"linear_solver": "lu"}, "'lu' is not known"),
    ],
)
def test_plans_refuse_goals_and_limits_that_none_can_keep(
    goal: Goal, more: dict[str, Any], why: str
) -> None:
    robot = rm.robots.load("five_bar")
    with pytest.raises(ValueError, match=why):
        plan(robot, 5, 0.1, robot.neutral(), goals=[goal], **more)
    with pytest.raises(TypeError, match="a Model is needed"):
        plan(None, 5, 0.1, robot.neutral())
