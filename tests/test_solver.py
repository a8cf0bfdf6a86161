"""Compiled solvers of problems, against the recursions and dense weighted least squares."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from agreement import close
from mechanisms import random_mechanism

import robomodel as rm
from benchmarks.shared.chains import chain
from robomodel.estimation.elimination import SingularError
from robomodel.instants import compiled as module
from robomodel.instants import elimination
from robomodel.instants.equations import LinearFactor, System, Variable, pieces
from robomodel.instants.problem import Problem
from robomodel.instants.sensors import (
    accelerometer,
    contact,
    force_torque,
    gyroscope,
    joint_acceleration,
    torque,
)
from robomodel.papers.elimination_orders import named_order

SLOW = pytest.mark.slow


def states(model: rm.Model, *batch: int):
    rng = np.random.default_rng(7)
    count = int(np.prod(batch))
    q = np.array([model.random_configuration(rng) for _ in range(count)]).reshape(*batch, -1)
    return q, *rng.normal(size=(2, *batch, model.nv))


def by_joint(model: rm.Model, kind: str, values) -> dict[str, np.ndarray]:
    return {f"{kind}[{p.name}]": values[..., list(p.dofs)] for p in pieces(model) if p.dofs}


def agrees(model: rm.Model, found, expected, kind: str) -> None:
    scale = np.abs(expected).max()
    for name, x in by_joint(model, kind, expected).items():
        np.testing.assert_allclose(found[name], x, rtol=0, atol=1e-12 * scale)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "view"),
    [
        ("puma560", "tree"),
        pytest.param("five_bar", "tree", marks=SLOW),
        pytest.param("five_bar", "cluster", marks=SLOW),
        pytest.param("mini_cheetah", "cluster", marks=SLOW),
        pytest.param("mini_cheetah", "tree", marks=SLOW),
        pytest.param("tello", "cluster", marks=SLOW),
    ],
)
def test_forward_and_inverse_dynamics(name: str, view: str) -> None:
    model = rm.robots.load(name)
    q, v, tau = states(model, 2, 3)
    a = rm.aba(model, q, v, tau, backend="numpy")
    unknown = list(by_joint(model, "qdd", a))
    solver = Problem.forward(model, view=view).compile(unknown, refine=1)
    agrees(model, solver(q, v, by_joint(model, "tau", tau)), a, "qdd")
    assert solver.backward_error < 1e-12
    unknown = list(by_joint(model, "tau", a))
    solver = Problem.inverse(model, view=view).compile(unknown)
    found = solver(q, v, by_joint(model, "qdd", a))
    assert list(found) == unknown
    agrees(model, found, tau, "tau")
    again = pickle.loads(pickle.dumps(solver))(q, v, by_joint(model, "qdd", a))
    for key, x in found.items():
        np.testing.assert_array_equal(again[key], x)
    with pytest.raises(TypeError, match="values maps names to numbers, not ndarray"):
        solver(q, v, a)


@pytest.mark.slow
def test_an_inverse_problem_costs_little_more_than_rnea() -> None:
    model = rm.robots.load("puma560")
    problem = Problem.inverse(model)
    solver = problem.compile([name for name in problem.sizes if name[:3] == "tau"])
    assert solver.program.flops < 1.35 * rm.compile(model, "rnea").program.flops


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize("seed", [3, *(pytest.param(n, marks=SLOW) for n in range(5) if n != 3)])
def test_all_unknowns_of_any_mechanism_are_those_of_solve(seed: int) -> None:
    mechanism = random_mechanism(np.random.default_rng(seed), n_joints=4)
    model = rm.load(mechanism.text, floating_base=mechanism.floating_base)
    q, v, tau = states(model, 2)
    problem = Problem.forward(model)
    link = model.nodes[-1].name
    values = by_joint(model, "tau", tau)
    values[f"fx[{link}]"] = np.arange(6.0)
    expected = problem.solve(q, v, values)
    found = problem.compile()(q, v, values)
    scale = max(np.abs(expected[name]).max() for name in expected)
    assert set(found) == set(expected)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-11 * scale)


# ---- measurements -------------------------------------------------------------------------------


def sensed(model: rm.Model, links, *more) -> Problem:
    """Everything measured: torques, joint accelerations, inertial and force sensors on links."""
    base = model.floating_base
    joints = [p.name for p in pieces(model) if p.dofs and p.name != base]
    size = {p.name: len(p.dofs) for p in pieces(model)}
    problem = Problem.forward(model).unknown(*(f"tau[{joint}]" for joint in joints))
    full = np.random.default_rng(1).normal(size=(3, 3))
    return problem.having(
        *(torque(joint, covariance=0.25, size=size[joint]) for joint in joints),
        *(joint_acceleration(joint, covariance=4.0, size=size[joint]) for joint in joints),
        *(accelerometer((n, (0.1, 0.0, 0.2)), covariance=full @ full.T + np.eye(3)) for n in links),
        *(gyroscope(link, covariance=[0.1, 0.2, 0.3]) for link in links),
        *(force_torque(link, covariance=0.5) for link in links),
        *more,
    )


def dense(problem: Problem, q, v, readings, left_out=()):
    """Σ, d of constrained weighted least squares by the null space, in internal axes."""
    system = problem.system(
        q.tolist(), v.tolist(), {}, {name: list(x) for name, x in readings.items()}
    )
    rows, constant = system.matrix()
    matrix, right = np.array(rows, dtype=float), -np.array(constant, dtype=float)
    scale = np.array([s for f in system.factors for s in f.deviation or (0.0,) * f.rows])
    there = np.array([f.name not in left_out for f in system.factors for _ in range(f.rows)])
    exact, soft = scale == 0.0, (scale > 0.0) & there
    start = np.linalg.lstsq(matrix[exact], right[exact], rcond=None)[0]
    rank = np.linalg.matrix_rank(matrix[exact])
    null = np.linalg.svd(matrix[exact])[2][rank:].T
    weighted = matrix[soft] / scale[soft, None]
    rest = right[soft] / scale[soft] - weighted @ start
    z = np.linalg.lstsq(weighted @ null, rest, rcond=None)[0]
    half = np.linalg.solve(np.linalg.qr(weighted @ null)[1].T, null.T)
    return system.columns, start + null @ z, half.T @ half


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "links"),
    [
        pytest.param("puma560", ("link2", "link6"), marks=SLOW),
        ("five_bar", ("link2",)),
        pytest.param("tello", ("Floating Base",), marks=SLOW),
    ],
)
def test_estimates_and_covariances_are_the_dense_ones(name: str, links) -> None:
    model = rm.robots.load(name)
    links = links if name != "tello" else (model.nodes[0].name,)
    problem = sensed(model, links)
    wanted = [n for n in problem.sizes if n[:3] in ("tau", "qdd")]
    # pivots are chosen in advance at other states: some of Tello's lose digits
    q, v, _ = (x[2:] for x in states(model, 5))
    rng = np.random.default_rng(2)
    readings = {s.name: rng.normal(size=(3, s.size)) for s in problem.sensors}
    found = problem.compile(wanted, covariances=wanted)(q, v, {}, readings)
    for n in range(3):
        one = {name: x[n] for name, x in readings.items()}
        columns, d, covariance = dense(problem, q[n], v[n], one)
        scale = max(np.abs(d[list(columns[name])]).max() for name in wanted)
        for unknown in wanted:
            at = list(columns[unknown])
            np.testing.assert_allclose(found[unknown][n], d[at], rtol=0, atol=1e-11 * scale)
            close(found.covariances[unknown][n], covariance[np.ix_(at, at)], 1e-10)


@pytest.mark.slow
def test_contacts_of_a_floating_base_and_a_ball_joint() -> None:
    """A trunk with a leg on a ball joint: the wrench at the foot, and how surely it is known."""
    text = """<robot name="hopper">
      <link name="world"/><link name="trunk"><inertial><mass value="3"/>
        <inertia ixx="0.2" iyy="0.3" izz="0.4" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <link name="leg"><inertial><origin xyz="0 0.1 -0.2"/><mass value="1"/>
        <inertia ixx="0.02" iyy="0.03" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="base" type="floating"><parent link="world"/><child link="trunk"/></joint>
      <joint name="hip" type="spherical"><parent link="trunk"/><child link="leg"/>
        <origin xyz="0.1 0 -0.1"/></joint></robot>"""
    model = rm.load(text)
    load = contact(("leg", (0.0, 0.0, -0.4)), components=(3, 4, 5), covariance=0.5)
    problem = sensed(model, ("trunk",), load).unknown("fx[leg]")
    q, v, _ = states(model, 2)
    rng = np.random.default_rng(4)
    readings = {s.name: rng.normal(size=(2, s.size)) for s in problem.sensors}
    solver = problem.compile(["fx[leg]", "a[leg]"], covariances=["fx[leg]"])
    found = solver(q, v, {}, readings)
    expected = problem.solve(q, v, {}, readings)
    for name in found:
        close(found[name], expected[name])
    for n in range(2):
        columns, _, covariance = dense(
            problem, q[n], v[n], {name: x[n] for name, x in readings.items()}
        )
        at = list(columns["fx[leg]"])
        close(found.covariances["fx[leg]"][n], covariance[np.ix_(at, at)], 1e-10)


@pytest.mark.slow
def test_missing_measurements_are_as_if_never_made() -> None:
    model = rm.robots.load("puma560")
    problem = sensed(model, ("link6",))
    q, v, _ = states(model, 2)
    rng = np.random.default_rng(3)
    readings = {s.name: rng.normal(size=(2, s.size)) for s in problem.sensors}
    wanted = [f"tau[{joint}]" for joint in model.joint_names]
    solver = problem.compile(wanted, covariances=wanted, masked=True)
    gone = ("gyroscope on link6", "torque of joint2")
    broken = readings | {gone[0]: np.full((2, 3), np.nan)}
    masked = solver(q, v, {}, broken, mask={gone[0]: [False, False], gone[1]: False})
    unread = solver(q, v, {}, {n: x for n, x in readings.items() if n not in gone})
    part = solver(q, v, {}, readings, mask={name: [True, False] for name in gone})
    whole = solver(q, v, {}, readings)
    for n in range(2):
        one = {name: x[n] for name, x in readings.items()}
        columns, d, covariance = dense(problem, q[n], v[n], one, gone)
        for name in wanted:
            at = list(columns[name])
            close(masked[name][n], d[at], 1e-10)
            close(masked.covariances[name][n], covariance[np.ix_(at, at)], 1e-10)
    for name in wanted:
        np.testing.assert_array_equal(masked[name], unread[name])
        np.testing.assert_array_equal(part[name][0], whole[name][0])
        np.testing.assert_array_equal(part[name][1], masked[name][1])
    nothing = solver(q, v, {}, {})
    assert np.isnan(nothing["tau[joint1]"]).all()
    assert np.isnan(nothing.covariances["tau[joint1]"]).all()
    with pytest.raises(ValueError, match=r"'torque of joint9'.*did you mean"):
        solver(q, v, {}, readings, mask={"torque of joint9": False})
    with pytest.raises(ValueError, match="true or false, or a weight"):
        solver(q, v, {}, readings, mask={"torque of joint2": -1.0})


# ---- refusals -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_not_determined_is_named_when_it_is_compiled() -> None:
    model = rm.robots.load("puma560")
    problem = Problem.forward(model)
    with pytest.raises(SingularError, match="not determined"):
        problem.unknown("tau[joint3]").compile()
    unsure = problem.unknown("tau[joint3]", "tau[joint4]").having(torque("joint4", covariance=1.0))
    with pytest.raises(SingularError, match="not determined"):
        unsure.compile()


def test_contradictions_and_wrong_arguments_are_refused() -> None:
    model = rm.robots.load("four_bar")
    joint = next(p.name for p in pieces(model) if p.dofs)
    problem = Problem.inverse(model).having(torque(joint))
    solver = problem.compile([f"tau[{joint}]"])
    q, v, a = states(model)
    values = by_joint(model, "qdd", a)
    label = f"torque of {joint}"
    tau = rm.rnea(model, q, v, a)
    close(solver(q, v, values, {label: tau})[f"tau[{joint}]"], tau)
    with pytest.raises(ValueError, match="contradict each other"):
        solver(q, v, values, {label: tau + 1e3})
    with pytest.raises(ValueError, match=f"the value of the known 'qdd\\[{joint}\\]' is missing"):
        solver(q, v, {}, {label: tau})
    with pytest.raises(ValueError, match=f"the reading of '{label}' is missing"):
        solver(q, v, values)
    with pytest.raises(ValueError, match="its size = 1"):
        solver(q, v, values, {label: [1.0, 2.0]})
    with pytest.raises(ValueError, match="cannot be missing: compile"):
        solver(q, v, values, {label: tau}, mask={label: True})
    with pytest.raises(ValueError, match="no unknown 'tau\\[nothing\\]'"):
        problem.compile(["tau[nothing]"])
    with pytest.raises(ValueError, match="covariances need sensors with covariances"):
        problem.compile(covariances=[f"tau[{joint}]"])
    with pytest.raises(ValueError, match="missing measurements need sensors"):
        problem.compile(masked=True)
    with pytest.raises(KeyError, match="was not asked for"):
        solver(q, v, values, {label: tau})["a[nothing]"]


@pytest.mark.slow
def test_unsafe_sequences_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = rm.robots.load("puma560")
    monkeypatch.setattr(module, "SAFE", 0.0)
    with pytest.raises(ValueError, match="no fixed sequence of pivots is safe"):
        Problem.forward(model).compile(["qdd[joint1]"])


@pytest.mark.parametrize("order", ["markowitz", "colamd", "minimum degree"])
def test_orders_of_scalars_are_counted_and_compiled(order: str) -> None:
    model = chain("plain", 4)
    problem = Problem.forward(model)
    done = problem.factorize(named_order(problem, f"scalar {order}"))
    matrix, constant = problem.structure.matrix()
    dense = np.array(matrix, dtype=float)
    rows, columns = zip(*done.plan.pivots, strict=True)
    assert sorted(rows) == sorted(columns) == list(range(len(dense)))
    # L U of the permuted matrix, from the definition: fill is what D does not have
    work = dense[np.ix_(rows, columns)]
    lower = np.eye(len(work))
    for k in range(len(work)):
        lower[k + 1 :, k] = work[k + 1 :, k] / work[k, k]
        work[k + 1 :] -= np.outer(lower[k + 1 :, k], work[k])
    size = sum(np.count_nonzero(np.abs(x) > 1e-13) for x in (np.tril(lower, -1), np.triu(work)))
    assert size <= done.fill + len(problem.structure.pattern()) <= size + 12  # but cancellation
    right = [-x for x in constant]
    found, left = done.solve(right)
    assert not left
    d = np.array([x for name in problem.structure.columns for x in found[name]], dtype=float)
    np.testing.assert_allclose(dense @ d, right, atol=1e-11)
    unknown = [f"qdd[{joint}]" for joint in model.joint_names]
    solver = problem.compile(unknown, order=named_order(problem, f"scalar {order}"))
    q, v, tau = states(model, 3)
    agrees(model, solver(q, v, by_joint(model, "tau", tau)), rm.aba(model, q, v, tau), "qdd")


@pytest.mark.parametrize(("rows", "count"), [([[2, 1], [1, 3]], 7), ([[2, 3], [5, 7]], 9)])
def test_operations_of_a_small_elimination_are_counted(rows, count: int) -> None:
    """An update (2), substitutions (2 + 2), divisions by pivots and of factors; 1 is free."""
    factors = tuple(
        LinearFactor(f"row{i}", "row", {"x": [[float(x)]], "y": [[float(y)]]}, [1.0])
        for i, (x, y) in enumerate(rows)
    )
    variables = tuple(Variable(name, "number", name, 1) for name in "xy")
    done = elimination.eliminate_scalars(System(variables, factors), ("x", "y"))
    assert (done.fill, done.operations) == (0, count)
    with pytest.raises(ValueError, match="each must be there once"):
        done.system.checked([(0,), (0,)])


def test_load_cells_fill_less_by_scalars_than_by_variables() -> None:
    """Two feet, five components measured of each wrench: document 003, figure 2."""
    model = rm.robots.load("mini_cheetah")
    feet = ("FR_knee_link", "FL_knee_link")
    problem = Problem.inverse(model, view="cluster").knowing(f"tau[{model.floating_base}]")
    problem = problem.unknown(*(f"fx[{foot}]" for foot in feet))
    problem = problem.having(*(contact(foot, components=(0, 1, 3, 4, 5)) for foot in feet))
    scalar, block = (
        problem.factorize(named_order(problem, name)) for name in ("scalar markowitz", "colamd")
    )
    assert scalar.fill < block.fill
    assert scalar.operations < block.operations


def test_scalar_orders_are_checked() -> None:
    problem = Problem.forward(rm.robots.load("puma560"))
    with pytest.raises(ValueError, match=r"'markowits' is not known.*did you mean 'markowitz'"):
        named_order(problem, "scalar markowits")
    with pytest.raises(ValueError, match="the order has 1 of"):
        problem.factorize([(0,)])


@pytest.mark.slow
def test_orders_of_ones_own_and_threads() -> None:
    model = rm.robots.load("puma560")
    problem = sensed(model, ("link6",))
    q, v, _ = states(model, 70)
    rng = np.random.default_rng(5)
    readings = {s.name: rng.normal(size=(70, s.size)) for s in problem.sensors}
    wanted = ["qdd[joint1]", "f[link3]"]
    first = problem.compile(wanted)(q, v, {}, readings)
    again = problem.compile(wanted, order=named_order(problem, "colamd"))(
        q, v, {}, readings, threads=2
    )
    for name in wanted:
        close(first[name], again[name], 1e-11)
