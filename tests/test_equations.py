"""The equations as one sparse system: any choice of knowns and sensors, against the recursions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from agreement import close
from cases import few
from mechanisms import random_mechanism

import robomodel as rm
from robomodel.dynamics.baselines import spanning_tree
from robomodel.estimation.elimination import SingularError
from robomodel.instants.equations import equations, pieces
from robomodel.instants.problem import Problem
from robomodel.instants.sensors import (
    accelerometer,
    contact,
    force_torque,
    gyroscope,
    joint_acceleration,
    minimum_torque,
    planar,
    torque,
)
from robomodel.papers.elimination_orders import ldlt, named_order

ROBOTS = ("puma560", "five_bar", "mini_cheetah", pytest.param("tello", marks=pytest.mark.slow))
HOW = [(view, split) for view in ("tree", "cluster") for split in ("none", "joint", "steps")]


def state(model: rm.Model, seed: int = 0):
    """A random state with the torques that belong to its accelerations."""
    rng = np.random.default_rng(seed)
    q = model.random_configuration(rng)
    v, a = rng.normal(size=model.nv), rng.normal(size=model.nv)
    return q, v, a, rm.rnea(model, q, v, a, backend="numpy")


def by_joint(model: rm.Model, kind: str, values) -> dict[str, np.ndarray]:
    """Values of the independent joints as known variables."""
    return {f"{kind}[{p.name}]": values[list(p.dofs)] for p in pieces(model) if p.dofs}


# ---- the system ---------------------------------------------------------------------------------


def test_sizes_and_names_are_the_papers():
    """Twenty unknowns a body with a joint of one degree of freedom (003, III)."""
    model = rm.robots.load("puma560")
    system = equations(model, [0.3] * 6, [0.1] * 6)
    assert system.unknowns == 20 * len(model.bodies)
    assert system.rows == 13 * len(model.bodies)
    names = [
        variable.name for variable in system.variables if variable.owner in ("link2", "joint2")
    ]
    assert names == ["a[link2]", "f[link2]", "fx[link2]", "tau[joint2]", "qdd[joint2]"]


@pytest.mark.slow_cases("tello")
@pytest.mark.parametrize("name", ["puma560", "five_bar", "tello"])
def test_rows_mirror_columns(name):
    """Wrench and a, acceleration and f, torque and q̈, loop and multiplier: a symmetric matrix."""
    model = rm.robots.load(name)
    for view in ("tree", "cluster"):
        system = Problem.forward(model, view=view).structure
        matrix = np.array(system.matrix()[0], dtype=float)
        twins = [c for factor in system.factors for c in system.columns[factor.twin]]
        np.testing.assert_allclose(matrix[:, twins], matrix[:, twins].T, rtol=0, atol=1e-14)


def test_the_pattern_is_the_worst_case():
    """No state has an entry outside it, the neutral one with its many zeros has fewer."""
    model = rm.robots.load("five_bar")
    problem = Problem.forward(model)
    for seed in range(3):
        q, v, _, _ = state(model, seed)
        system = problem.system(q.tolist(), v.tolist(), {}, {}, zero=True)
        assert system.pattern() <= problem.structure.pattern()
    rows, _ = problem.structure.matrix()
    count = sum(x != 0.0 for row in rows for x in row)
    assert len(problem.structure.pattern()) == count


@pytest.mark.parametrize("view", ["tree", "cluster"])
def test_rnea_order_makes_inverse_dynamics_triangular(view):
    """Document 003, equations 10 to 12: base outwards, then inwards, no fill at all."""
    model = rm.robots.load("puma560")
    problem = Problem.inverse(model, view=view)
    system = problem.structure
    back = problem.order("rnea")[::-1]
    twin = {"a": "acceleration", "f": "wrench", "tau": "torque"}
    kind = {f.name: f for f in system.factors}
    rows, first = [], {}
    at = 0
    for factor in system.factors:
        first[factor.name] = at
        at += factor.rows
    for name in back:
        factor = kind[f"{twin[name.partition('[')[0]]}[{name.partition('[')[2]}"]
        rows += range(first[factor.name], first[factor.name] + factor.rows)
    columns = [c for name in back for c in system.columns[name]]
    matrix = np.array(system.matrix()[0], dtype=float)[np.ix_(rows, columns)]
    assert np.count_nonzero(np.triu(matrix, 1)) == 0
    np.testing.assert_array_equal(np.abs(np.diag(matrix)), 1.0)


# ---- inverse, forward, hybrid -------------------------------------------------------------------


@pytest.mark.slow_cases("puma560", "mini_cheetah", "five_bar")
@pytest.mark.parametrize("name", ROBOTS)
def test_inverse_forward_and_hybrid_agree_with_the_recursions(name):
    model = rm.robots.load(name)
    q, v, a, tau = state(model)
    forces, rates = by_joint(model, "tau", tau), by_joint(model, "qdd", a)
    halves = [p.name for p in pieces(model) if p.dofs][::2]
    for view, split in HOW if name in ("puma560", "five_bar") else HOW[::3]:
        how = {"view": view, "split": split}
        forward = Problem.forward(model, **how).solve(q, v, forces)
        close(forward.acceleration, a), (view, split)
        inverse = Problem.inverse(model, **how).solve(q, v, rates)
        close(inverse.tau, tau)
        problem = Problem.hybrid(model, halves, **how)
        mixed = problem.solve(q, v, {k: x for k, x in (forces | rates).items()
                                     if k in problem.known})  # fmt: skip
        close(mixed.tau, tau)
        close(mixed.acceleration, a)
        assert max(s.backward_error for s in (forward, inverse, mixed)) < 1e-14


def test_external_wrenches_accelerations_and_batches():
    """Wrenches in link axes, on links with axes of their own; accelerations by differentiation."""
    model = rm.robots.load("teleop_arm")
    rng = np.random.default_rng(5)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    v, a = rng.normal(size=(2, 3, model.nv))
    links = [model.bodies[-1].name, model.bodies[2].name]
    f_ext = {link: rng.normal(size=(3, 6)) for link in links}
    tau = rm.rnea(model, q, v, a, f_ext=f_ext, backend="numpy")
    values = {f"qdd[{p.name}]": a[:, list(p.dofs)] for p in pieces(model) if p.dofs}
    values |= {f"fx[{link}]": wrench for link, wrench in f_ext.items()}
    solution = Problem.inverse(model).solve(q, v, values)
    close(solution.tau, tau)
    h, link = 1e-4, links[0]
    ahead, behind = (model.integrate(q, s * h * v + h * h / 2 * a) for s in (1.0, -1.0))
    poses = [rm.frame_pose(model, x, link, backend="numpy") for x in (behind, q, ahead)]
    second = (poses[0][..., :3, 3] - 2 * poses[1][..., :3, 3] + poses[2][..., :3, 3]) / h**2
    proper = np.einsum("...ji,...j->...i", poses[1][..., :3, :3], second - model.gravity)
    np.testing.assert_allclose(solution[f"a[{link}]"][..., 3:], proper, atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", few(range(20), *range(1, 5)))
def test_any_mechanism(seed):
    """Trees, gears, belts, rods, loops on loops and on the base, clusters on several bodies."""
    mechanism = random_mechanism(np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)  # axes of any length, on purpose
        model = rm.load(mechanism.text, floating_base=mechanism.floating_base)
    rng = np.random.default_rng(seed)
    q = model.random_configuration(rng)
    v, tau = rng.normal(size=(2, model.nv))
    link, wrench = model.bodies[-1].name, rng.normal(size=6)
    true = rm.aba(model, q, v, tau, f_ext={link: wrench}, backend="numpy")
    values = {**by_joint(model, "tau", tau), f"fx[{link}]": wrench}
    for view in ("tree", "cluster"):
        problem = Problem.forward(model, view=view)
        solution = problem.solve(q, v, values, order=named_order(problem, "colamd"))
        close(solution.acceleration, true)
        for order in ("aba", named_order(problem, "nested dissection")):
            close(ldlt(problem, q, v, values, order=order).acceleration, true)


def test_net_forces_are_resultants():
    model = rm.robots.load("puma560")
    q, v, a, _ = state(model)
    rates = by_joint(model, "qdd", a)
    solution = Problem.inverse(model, net_forces=True).solve(q, v, rates)
    plain = Problem.inverse(model).solve(q, v, rates)
    np.testing.assert_allclose(solution["net[link6]"], plain["f[link6]"], rtol=1e-12, atol=1e-14)
    close(solution.tau, plain.tau)


def test_loop_multipliers_are_the_loops_wrenches():
    """The cut tree with the loop joint's force on both links needs no torque at passive joints."""
    model = rm.robots.load("five_bar")
    q, v, a, tau = state(model)
    solution = Problem.forward(model).solve(q, v, by_joint(model, "tau", tau))
    force = np.append(solution["lambda[J5]"], 0.0)  # on link4 at J5, in world axes
    wrenches = {}
    for link, sign, x in (("link2", -1.0, 0.38), ("link4", 1.0, 0.42)):
        own = sign * rm.frame_pose(model, q, link)[:3, :3].T @ force
        wrenches[link] = np.concatenate([np.cross([x, 0.0, 0.0], own), own])
    accelerations = model.joint_accelerations(q, v, a)
    qdd = np.array([accelerations[name] for name in model.joint_names])
    rates = np.array([model.joint_velocities(q, v)[name] for name in model.joint_names])
    cut = spanning_tree(model)
    torques = rm.rnea(cut, q, rates, qdd, f_ext=wrenches, backend="numpy")
    expected = {"J1": tau[0], "J2": tau[1], "J3": 0.0, "J4": 0.0}
    for name, x in zip(model.joint_names, torques, strict=True):
        assert x == pytest.approx(expected[name], abs=1e-12)


# ---- well-posedness -----------------------------------------------------------------------------


def test_what_is_not_determined_is_named():
    model = rm.robots.load("puma560")
    problem = Problem.inverse(model).unknown("fx[link3]")
    found = problem.determinacy()
    assert (found.nullity, found.well_posed) == (6, False)
    wrenches = {"fx[link3]", "f[link1]", "f[link2]", "f[link3]"}
    assert set(found.undetermined) == {*wrenches, "tau[joint1]", "tau[joint2]", "tau[joint3]"}
    measured = problem.having(force_torque("link2"))
    assert measured.determinacy().well_posed
    partial = problem.having(force_torque("link2", components=(0, 1, 3)))
    assert partial.determinacy().nullity == 3
    q, v, a, _ = state(model)
    with pytest.raises(SingularError, match="is not determined"):
        problem.solve(q, v, by_joint(model, "qdd", a))


FEET = ("FR_knee_link", "FL_knee_link")


def two_feet(model: rm.Model, components) -> Problem:
    """A floating robot whose motion is known, two feet with some components measured."""
    base = f"tau[{model.floating_base}]"
    problem = Problem.inverse(model, view="cluster").knowing(base)
    problem = problem.unknown(*(f"fx[{foot}]" for foot in FEET))
    sole = [(foot, (0.0, 0.0, -0.2)) for foot in FEET]
    return problem.having(*(contact(at, components=components) for at in sole))


@pytest.mark.slow
def test_two_feet_with_three_and_five_measured_components():
    """Document 003, section VI, corrected: three are never enough, five only with tilted soles."""
    model = rm.robots.load("mini_cheetah")
    level, tilted = model.neutral(), model.random_configuration(3)
    three = two_feet(model, (5, 0, 1))  # load cells: normal force, moments in the plane
    found = three.determinacy(level)
    assert found.nullity == 3
    assert all(f"fx[{foot}]" in found.undetermined for foot in FEET)
    assert three.determinacy(tilted).nullity >= 1
    five = two_feet(model, (0, 1, 3, 4, 5))
    assert five.determinacy(level).nullity == 1
    assert five.determinacy(tilted).well_posed


def test_five_components_give_the_torques():
    """The case that no classical algorithm solves: contacts that are partly measured."""
    model = rm.robots.load("mini_cheetah")
    problem = two_feet(model, (0, 1, 3, 4, 5))
    rng = np.random.default_rng(1)
    q = model.random_configuration(3)
    v, a = rng.normal(size=(2, model.nv))
    f_ext = {foot: rng.normal(size=6) for foot in FEET}
    bias = rm.rnea(model, q, v, a, f_ext=f_ext, backend="numpy")
    j = [rm.jacobian(model, q, foot, backend="numpy") for foot in FEET]
    # wrenches that leave the base unforced, whatever else they do
    push = np.vstack(j)[:, :6].T
    change = np.linalg.lstsq(push, bias[:6], rcond=None)[0]
    f_ext = {f: f_ext[f] + change[6 * i : 6 * i + 6] for i, f in enumerate(FEET)}
    tau = rm.rnea(model, q, v, a, f_ext=f_ext, backend="numpy")
    readings = {}
    for sensor in problem.sensors:
        wrench = f_ext[sensor.at[0]]
        moment = wrench[:3] - np.cross(sensor.at[1], wrench[3:])
        readings[sensor.name] = np.concatenate([moment, wrench[3:]])[list(sensor.components)]
    solution = problem.solve(q, v, by_joint(model, "qdd", a), readings)
    np.testing.assert_allclose(solution.tau[6:], tau[6:], rtol=0, atol=1e-10)
    for foot in FEET:
        np.testing.assert_allclose(solution[f"fx[{foot}]"], f_ext[foot], rtol=0, atol=1e-9)


# ---- sensors and least squares ------------------------------------------------------------------


def test_exact_sensors_stand_in_for_knowns():
    """Accelerometers and gyroscopes instead of joint accelerations, wrenches instead of torques."""
    model = rm.robots.load("puma560")
    q, v, a, tau = state(model)
    truth = Problem.inverse(model).solve(q, v, by_joint(model, "qdd", a))
    tip = ("link6", (0.05, 0.02, 0.3))
    problem = Problem.hybrid(model).unknown(*(f"tau[{j}]" for j in model.joint_names))
    problem = problem.having(accelerometer(tip), gyroscope(tip))
    assert problem.determinacy().well_posed
    h = 1e-4
    motion = [
        rm.frame_velocity(model, model.integrate(q, s * h * v + h * h / 2 * a), v + s * h * a, tip,
                          backend="numpy")
        for s in (-1.0, 1.0)
    ]  # fmt: skip
    pose = rm.frame_pose(model, q, tip, backend="numpy")[:3, :3]
    twist = rm.frame_velocity(model, q, v, tip, backend="numpy")
    rate = (motion[1] - motion[0]) / (2 * h)
    linear = rate[3:] + np.cross(twist[:3], twist[3:]) - pose.T @ model.gravity
    readings = {"accelerometer on link6": linear, "gyroscope on link6": rate[:3]}
    found = problem.solve(q, v, {}, readings)
    np.testing.assert_allclose(found.acceleration, a, atol=1e-5)
    wrench = {"force-torque sensor of link1": truth["f[link1]"]}
    sensed = Problem.hybrid(model, model.joint_names[1:]).unknown("tau[joint1]")
    sensed = sensed.having(force_torque("link1", components=(2,)))
    values = {k: x for k, x in by_joint(model, "qdd", a).items() if k in sensed.known}
    solution = sensed.solve(q, v, values, {k: x[2:3] for k, x in wrench.items()})
    close(solution.acceleration, a)
    close(solution.tau, tau)


@pytest.mark.parametrize(
    "order", few(["aba", "rnea", "colamd", "nested dissection"], "aba", "rnea")
)
def test_measurements_are_weighted(order):
    """More readings than unknowns: the closed form of constrained weighted least squares."""
    model = rm.robots.load("puma560")
    q, v, _, _ = state(model)
    rng = np.random.default_rng(8)
    full = rng.normal(size=(3, 3))
    sensors = [
        *(torque(j, covariance=0.01) for j in model.joint_names),
        *(joint_acceleration(j, covariance=0.04) for j in model.joint_names),
        accelerometer("link4", covariance=full @ full.T + np.eye(3)),
        force_torque("link1", covariance=[0.1, 0.1, 0.1, 1.0, 2.0, 3.0]),
    ]
    problem = Problem.hybrid(model).unknown(*(f"tau[{j}]" for j in model.joint_names))
    problem = problem.having(*sensors)
    readings = {s.name: rng.normal(size=s.size) for s in sensors}
    solution = problem.solve(q, v, {}, readings, order=named_order(problem, order))
    system = problem.system(
        q.tolist(), v.tolist(), {}, {k: x.tolist() for k, x in readings.items()}
    )
    rows, constant = system.matrix()
    matrix, right = np.array(rows, dtype=float), -np.array(constant, dtype=float)
    soft = np.array([f.deviation is not None for f in system.factors for _ in range(f.rows)])
    scale = np.array([s for f in system.factors for s in (f.deviation or (1.0,) * f.rows)])
    matrix, right = matrix / scale[:, None], right / scale
    exact, w = matrix[~soft], matrix[soft]
    # eliminate the constraints by their null space
    start = np.linalg.lstsq(exact, right[~soft], rcond=None)[0]
    null = np.linalg.svd(exact)[2][len(exact) :].T
    z = np.linalg.lstsq(w @ null, right[soft] - w @ start, rcond=None)[0]
    expected = start + null @ z
    for name, columns in system.columns.items():
        np.testing.assert_allclose(
            solution.raw[name], expected[list(columns)], rtol=0, atol=1e-10 * np.abs(expected).max()
        )


def test_contradicting_exact_sensors_are_refused():
    model = rm.robots.load("puma560")
    q, v, a, _ = state(model)
    problem = Problem.inverse(model).having(torque("joint2"))
    values = by_joint(model, "qdd", a)
    for method in ("gauss", "qr"):
        with pytest.raises(ValueError, match="contradict each other"):
            problem.solve(q, v, values, {"torque of joint2": [1e3]}, method=method)


# ---- over-constrained and redundantly actuated loops ---------------------------------------------


@pytest.fixture(params=["urdf", "sdf"])
def five_bar(request, tmp_path):
    """The five-bar manipulator, from URDF+ and from SDF."""
    model = rm.robots.load("five_bar")
    if request.param == "urdf":
        return model
    rm.write_sdf(model, tmp_path / "five_bar.sdf")
    return rm.load(tmp_path / "five_bar.sdf", gravity=model.gravity)


@pytest.mark.slow_cases("sdf")
def test_a_planar_factor_makes_the_five_bars_loop_determined(five_bar):
    """All five rows of J5: three multipliers are open, closed by the planar factor (001, VII)."""
    q, v, a, tau = state(five_bar)
    forces = by_joint(five_bar, "tau", tau)
    problem = Problem.forward(five_bar, loops="all")
    found = problem.determinacy()
    assert (found.nullity, found.redundant) == (3, 3)
    assert "lambda[J5]" in found.undetermined
    assert not any(n.startswith(("qdd", "a[")) for n in found.undetermined)
    solved = problem.having(planar("J5"))
    assert solved.determinacy().well_posed
    minimal = Problem.forward(five_bar).solve(q, v, forces)
    for method in ("gauss", "qr"):
        solution = solved.solve(q, v, forces, method=method)
        close(solution.acceleration, a)
        both = minimal["lambda[J5]"], solution["lambda[J5]"]
        np.testing.assert_allclose(both[1], [*both[0], 0.0, 0.0, 0.0], rtol=0, atol=1e-12)


def test_minimum_torques_weigh_alike_by_default():
    assert minimum_torque("J1") == minimum_torque("J1", deviation=1.0)


@pytest.mark.slow_cases("sdf")
def test_minimum_torques_share_redundant_actuation(five_bar):
    """Three motors on two freedoms: the shares of least norm, Sᵀ (S Sᵀ)⁻¹ tau with S rows of G."""
    q, v, a, tau = state(five_bar)
    problem = Problem.inverse(five_bar).unknown("tau[J3]")
    assert problem.determinacy().nullity == 1
    motors = ("J1", "J2", "J3")
    solved = problem.having(*(minimum_torque(joint) for joint in motors))
    assert solved.determinacy().well_posed
    solution = solved.solve(q, v, by_joint(five_bar, "qdd", a))
    rows = [five_bar.joint_names.index(joint) for joint in motors]
    g = five_bar.constraint_jacobian(q)[rows]
    expected = np.linalg.lstsq(g.T, tau, rcond=None)[0]
    found = [solution[f"tau[{joint}]"][0] for joint in motors]
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    dear = problem.having(
        *(minimum_torque(joint, deviation=1e-6 if joint == "J3" else 1.0) for joint in motors)
    )
    assert abs(dear.solve(q, v, by_joint(five_bar, "qdd", a))["tau[J3]"][0]) < 1e-9


def test_unclear_problems_are_refused():
    model = rm.robots.load("five_bar")
    with pytest.raises(ValueError, match=r"no variable 'tau\[J9\]'; did you mean"):
        Problem(model, frozenset({"tau[J9]"}))
    with pytest.raises(ValueError, match="cannot be known outright"):
        Problem(model, frozenset({"a[link1]"}))
    with pytest.raises(ValueError, match="no independent joint 'J3'"):
        Problem.hybrid(model, a=["J3"])
    for option in ("view", "split", "loops"):
        with pytest.raises(ValueError, match=f"{option} 'trees' is not known; known are '"):
            Problem.forward(model, **{option: "trees"})
    with pytest.raises(ValueError, match=r"'tau\[J9\]' is not known anyway"):
        Problem.forward(model).unknown("tau[J9]")
    with pytest.raises(ValueError, match="is missing"):
        Problem.forward(model).solve(model.neutral(), [0.0, 0.0])
    with pytest.raises(ValueError, match="no loop 'J6'"):
        Problem.forward(model, loops="all").having(planar("J6")).determinacy()
    with pytest.raises(ValueError, match=r"planar J5: .* write it with loops='all'"):
        Problem.forward(model).having(planar("J5"))
    with pytest.raises(ValueError, match="not positive definite"):
        torque("J1", covariance=0.0)
    with pytest.raises(ValueError, match="components are some of 0 to 5"):
        force_torque("link1", components=(0, 0))
    with pytest.raises(ValueError, match="two sensors are named"):
        Problem.forward(model).having(torque("J1"), torque("J1"))
    with pytest.raises(ValueError, match="reads 1 numbers"):
        Problem.inverse(model).having(torque("J1")).solve(
            model.neutral(), [0.0, 0.0], {"qdd[J1]": [0.0], "qdd[J2]": [0.0]},
            {"torque of J1": [0.0, 1.0]},
        )  # fmt: skip
    with pytest.raises(ValueError, match="need method='qr'"):
        Problem.inverse(model).having(torque("J1", covariance=1.0)).solve(
            model.neutral(), [0.0, 0.0], {"qdd[J1]": [0.0], "qdd[J2]": [0.0]},
            {"torque of J1": [0.0]}, method="gauss",
        )  # fmt: skip
    with pytest.raises(ValueError, match="measures only what is known"):
        Problem.forward(model).having(torque("J3")).determinacy()
