"""Robots in Crocoddyl: derivatives beside differences, problems solved; needs crocoddyl."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import robomodel as rm
from robomodel.control import PointTask, PostureTask

crocoddyl = pytest.importorskip("crocoddyl")
bridge = pytest.importorskip("robomodel.crocoddyl")

Array = np.ndarray


def slopes(f: Callable[[Array], Array], state: Any, x: Array, h: float = 1e-5) -> Array:
    """Central differences along the tangents at x."""
    unit = np.eye(state.ndx)
    columns = [(f(state.integrate(x, h * e)) - f(state.integrate(x, -h * e))) / (2 * h)
               for e in unit]  # fmt: skip
    return np.array(columns).T


def one(model: rm.Model, rng: np.random.Generator) -> tuple[Any, Array, Array]:
    state = bridge.State(model)
    q = model.random_configuration(rng, near=model.neutral())
    return state, np.concatenate([q, rng.normal(size=model.nv)]), rng.normal(size=state.ndx)


@pytest.mark.parametrize("name", ["mini_cheetah", "parallel_ankle", "planar_leg_linkage"])
def test_states(name: str) -> None:
    """Integration and differences undo each other; their derivatives are theirs."""
    state, x, dx = one(rm.robots.load(name), np.random.default_rng(0))
    dx *= 0.1
    there = state.integrate(x, dx)
    np.testing.assert_allclose(state.diff(x, there), dx, rtol=0, atol=1e-12)
    first, second = state.Jdiff(x, there)
    np.testing.assert_allclose(
        first, slopes(lambda y: state.diff(y, there), state, x), rtol=0, atol=1e-8
    )
    np.testing.assert_allclose(
        second, slopes(lambda y: state.diff(x, y), state, there), rtol=0, atol=1e-8
    )
    first, second = state.Jintegrate(x, dx)
    moved = slopes(lambda y: state.diff(there, state.integrate(y, dx)), state, x)
    np.testing.assert_allclose(first, moved, rtol=0, atol=1e-8)
    h, unit = 1e-5, np.eye(state.ndx)
    columns = [
        state.diff(state.integrate(x, dx - h * e), state.integrate(x, dx + h * e)) / (2 * h)
        for e in unit
    ]
    np.testing.assert_allclose(second, np.array(columns).T, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(
        state.Jdiff(x, there, crocoddyl.Jcomponent.second), state.Jdiff(x, there)[1]
    )
    assert state.rand().shape == state.zero().shape == (state.nx,)


@pytest.mark.parametrize(
    ("name", "frame", "contacts"),
    [
        pytest.param("tello", "left-foot", (), marks=pytest.mark.slow),
        pytest.param(
            "mini_cheetah",
            "Floating Base",
            ("HR_foot_contact", "FL_foot_contact"),
            marks=pytest.mark.slow,
        ),
        ("parallel_ankle", "foot", ()),
    ],
)
def test_actions(name: str, frame: str, contacts: tuple[str, ...]) -> None:
    """Accelerations are those of aba under B u; derivatives of them and of costs."""
    rng, model = np.random.default_rng(1), rm.robots.load(name)
    state, x, _ = one(model, rng)
    nu, n = len(model.actuators), model.nq
    costs = crocoddyl.CostModelSum(state, nu)
    near = crocoddyl.CostModelResidual(state, bridge.StateResidual(state, state.zero(), nu))
    costs.addCost("x", near, 0.1)
    push = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, nu))
    costs.addCost("u", push, 0.01)
    tasks = {PointTask(frame, 0.7): [0.1, 0.2, -0.5], PostureTask(0.1): model.neutral()}
    action = bridge.DifferentialActionModel(state, costs, tasks=tasks, contacts=contacts)
    u, data = rng.normal(size=nu), action.createData()

    def of(y: Array, w: Array = u) -> Array:
        action.calc(data, y, w)
        return np.append(data.xout, data.cost)

    action.calc(data, x, u)
    tau = rm.actuator_map(model, x[:n]) @ u + rm.passive_force(model, x[:n], x[n:])
    if contacts:
        expected = rm.contact_aba(model, x[:n], x[n:], tau, contacts, unilateral=False)[0]
    else:
        expected = rm.aba(model, x[:n], x[n:], tau)
    np.testing.assert_allclose(data.xout, expected, rtol=1e-10, atol=1e-10)
    by_x = slopes(of, state, x)
    by_u = np.array([(of(x, u + 1e-5 * e) - of(x, u - 1e-5 * e)) / 2e-5 for e in np.eye(nu)]).T
    action.calc(data, x, u)
    action.calcDiff(data, x, u)
    size = np.abs(by_x).max()
    np.testing.assert_allclose(data.Fx, by_x[:-1], rtol=0, atol=1e-7 * size)
    np.testing.assert_allclose(data.Fu, by_u[:-1], rtol=0, atol=1e-7 * np.abs(by_u).max())
    np.testing.assert_allclose(data.Lx, by_x[-1], rtol=0, atol=1e-7)
    np.testing.assert_allclose(data.Lu, by_u[-1], rtol=0, atol=1e-7)
    action.calc(data, x)
    action.calcDiff(data, x)
    assert np.linalg.eigvalsh(np.array(data.Lxx)).min() > -1e-12


@pytest.mark.parametrize(
    ("name", "contacts"),
    [
        ("planar_leg_linkage", ()),
        pytest.param("mini_cheetah", (), marks=pytest.mark.slow),
        pytest.param("mini_cheetah", ("HR_foot_contact",), marks=pytest.mark.slow),
    ],
)
def test_steps_are_crocoddyls(name: str, contacts: tuple[str, ...]) -> None:
    """Of several knots, whose derivatives are computed at once; with further costs; at the end."""
    rng, model = np.random.default_rng(2), rm.robots.load(name)
    state, _, _ = one(model, rng)
    nu, frame = len(model.actuators), model.bodies[-1].name

    def action(target: float) -> Any:
        costs = crocoddyl.CostModelSum(state, nu)
        near = crocoddyl.CostModelResidual(state, bridge.StateResidual(state, state.zero(), nu))
        costs.addCost("x", near, 0.1)
        tasks = {PointTask(frame, 0.7): [0.1, 0.2, target]}
        return bridge.DifferentialActionModel(
            state, costs, tasks=tasks, contacts=contacts, state_cost=0.3, control_cost=0.2
        )

    actions = [action(target) for target in (-0.5, 0.5)]
    models = [bridge.IntegratedActionModelEuler(each, dt) for each in actions for dt in (0.02, 0.0)]
    theirs = [
        crocoddyl.IntegratedActionModelEuler(each, dt) for each in actions for dt in (0.02, 0)
    ]
    xs = [one(model, rng)[1] for _ in models]
    us = [*rng.normal(size=(3, nu)), None]
    datas, others = ([each.createData() for each in every] for every in (models, theirs))
    for every, parts in ((models, datas), (theirs, others)):
        for method in ("calc", "calcDiff"):
            for each, data, x, u in zip(every, parts, xs, us, strict=True):
                getattr(each, method)(data, x, *(() if u is None else (u,)))
    for data, other, u in zip(datas, others, us, strict=True):
        np.testing.assert_allclose(data.xnext, other.xnext, rtol=0, atol=1e-11)
        np.testing.assert_allclose(data.cost, other.cost, rtol=1e-11)
        for part in ("Fx", "Fu", "Lx", "Lu", "Lxx", "Lxu", "Luu")[
            slice(7) if u is not None else slice(2, 5, 2)
        ]:
            mine, its = getattr(data, part), getattr(other, part)
            np.testing.assert_allclose(mine, its, rtol=0, atol=1e-10 * np.abs(its).max(initial=1.0))


@pytest.mark.slow
def test_a_leg_with_a_linkage_reaches_its_goal() -> None:
    """50 knots; loops closed at each of them."""
    motors = '<robot name="planar_leg_linkage">' + "".join(
        f'<joint name="{name}"><limit effort="5" velocity="50"/></joint>'
        for name in ("thigh_joint", "shank_driver_joint")
    )
    model = rm.load(rm.robots.path("planar_leg_linkage"), extend=motors + "</robot>")
    state, nu = bridge.State(model), len(model.actuators)
    goal = rm.frame_pose(model, model.configuration({"thigh_joint": 0.5}), "end-effector")[:3, 3]

    def action(weight: float, dt: float) -> Any:
        tasks = {PointTask("end-effector", weight): goal}
        moves = bridge.DifferentialActionModel(state, tasks=tasks, control_cost=0.03)
        return bridge.IntegratedActionModelEuler(moves, dt)

    problem = crocoddyl.ShootingProblem(state.zero(), [action(0.1, 0.01)] * 50, action(100.0, 0.0))
    solver = crocoddyl.SolverFDDP(problem)
    assert solver.solve([state.zero()] * 51, [np.zeros(nu)] * 50, 100)
    q = np.array(solver.xs.tolist())[:, : model.nq]
    assert np.abs(model.residual(q)).max() < 1e-10
    reached = rm.frame_pose(model, q[-1], "end-effector")[:3, 3]
    np.testing.assert_allclose(reached, goal, rtol=0, atol=2e-3)


@pytest.mark.parametrize(("joints", "motors"), [(1, 1), (2, 1), (1, 0)])
def test_one_freedom_and_one_motor(joints: int, motors: int) -> None:
    """Matrices with one row or one column: derivatives, and a problem solved."""
    link = (
        '<link name="l{0}"><inertial><origin xyz="0 0 -0.3"/><mass value="1"/><inertia ixx="0.01" '
        'iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j{0}" '
        'type="continuous"><parent link="{1}"/><child link="l{0}"/><origin xyz="0 0 -0.5"/>'
        '<axis xyz="0 1 0"/></joint>'
    )
    motor = (
        '<transmission name="t{0}"><type>transmission_interface/SimpleTransmission</type>'
        '<joint name="j{0}"/><actuator name="m{0}"/></transmission>'
    )
    text = "".join(link.format(n, f"l{n - 1}" if n else "base") for n in range(joints))
    text += "".join(motor.format(n) for n in range(motors))
    model = rm.load(f'<robot name="r"><link name="base"/>{text}</robot>')
    state, x, _ = one(model, np.random.default_rng(0))
    u, costs = np.ones(motors), None
    if motors:
        costs = crocoddyl.CostModelSum(state, motors)
        near = bridge.StateResidual(state, state.zero(), motors)
        costs.addCost("x", crocoddyl.CostModelResidual(state, near), 1.0)
        push = crocoddyl.ResidualModelControl(state, motors)
        costs.addCost("u", crocoddyl.CostModelResidual(state, push), 0.1)
    action = bridge.DifferentialActionModel(state, costs, state_cost=0.5, control_cost=0.2)
    steps = [bridge.IntegratedActionModelEuler(action, 0.02)]
    if motors:
        steps.append(crocoddyl.IntegratedActionModelEuler(action, 0.02))
    for step in steps:

        def moved(x: Array, u: Array, step: Any = step) -> Array:
            data = step.createData()
            step.calc(data, x, u)
            return np.append(data.xnext, data.cost)

        data = step.createData()
        step.calc(data, x, u)
        step.calcDiff(data, x, u)
        by_x = slopes(lambda y, moved=moved: moved(y, u), state, x)
        np.testing.assert_allclose(np.reshape(data.Fx, by_x[:-1].shape), by_x[:-1], atol=1e-7)
        np.testing.assert_allclose(data.Lx, by_x[-1], atol=1e-7)
        if motors:
            by_u = (moved(x, u + 1e-5) - moved(x, u - 1e-5)) / 2e-5
            np.testing.assert_allclose(np.ravel(data.Fu), by_u[:-1], atol=1e-7)
            np.testing.assert_allclose(np.ravel(data.Lu), by_u[-1:], atol=1e-7)
            problem = crocoddyl.ShootingProblem(x, [step] * 20, step)
            assert crocoddyl.SolverFDDP(problem).solve([], [], 50)
