"""Efficiencies of gears from logs, with friction on both sides: through belts and loops."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from texts import joint, link, robot

import robomodel as rm
from robomodel.description import LinkCoupling
from robomodel.identification import Identified, Log
from robomodel.identification.gears import Gears
from robomodel.identification.sensors import sensors
from robomodel.model.build import build
from robomodel.model.efficiencies import with_efficiencies
from robomodel.model.model import Model
from robomodel.reports.identification import page

Array = NDArray[Any]
LEG = rm.robots.load("belt_leg")
Truth = dict[str, tuple[float, float]]
TRUTH: Truth = {"hip_ry_link_joint": (0.8, 0.65), "knee_link_joint": (0.7, 0.5),
         "ankle_link_joint": (0.75, 0.6)}  # fmt: skip
STEP = 0.01


def losing(model: Model, truth: dict[str, tuple[float, float]], size: float) -> Model:
    """With these efficiencies, and friction of joints and rotors."""
    rotors = {each.joint for each in model.actuators}
    values = dict[str, float]()
    for name in rm.parameters(model).names:
        owner, _, kind = name.rpartition(".")
        if kind in ("friction", "damping") and owner in (*rotors, *model.dof_names):
            part = 0.02 if owner in rotors else 1.0
            values[name] = part * size * {"friction": 0.3, "damping": 0.15}[kind]
    return build(with_efficiencies(rm.with_parameters(model, values), truth).description)


@dataclass(frozen=True)
class Recorded:
    """A motion of the leg with a load that swings, and the motors' forces in independent joints."""

    q: Array
    v: Array
    a: Array
    tau: Array


def recorded(
    model: Model, seconds: float, noise: float, seed: int, truth: Truth = TRUTH
) -> Recorded:
    """A log of the belt leg: motors' forces by both efficiencies, of what the joints need."""
    rng, time = np.random.default_rng(seed), STEP * np.arange(int(seconds / STEP))
    rates = 2.0 * np.pi * np.array([[0.31, 0.73, 1.3], [0.43, 0.91, 1.5], [0.57, 1.13, 1.7]])
    angles = time[:, None, None] * rates + rng.uniform(0.0, 6.0, rates.shape)
    sizes = np.array([0.6, 0.3, 0.2])
    q = np.sum(sizes * np.sin(angles), -1) + np.array([0.0, -0.9, 0.6])
    v = np.sum(sizes * rates * np.cos(angles), -1)
    a = -np.sum(sizes * rates**2 * np.sin(angles), -1)
    gears = Gears.of(model, range(3), q, v, a)
    needed = rm.regressor(model, q, v, a) @ rm.parameters(model).values
    reaching = gears.through(needed) - gears.resisting
    forward, back = np.array(list(truth.values())).T
    force = np.where(reaching * gears.rates > 0.0, reaching / forward, reaching * back)
    tau = np.einsum("tij,tj->ti", gears.matrix, force + gears.own + gears.resisting)
    tau += noise * np.sqrt(np.mean(tau**2, axis=0)) * rng.normal(size=tau.shape)
    return Recorded(q, v, a, tau)


def misses(fit: Identified, truth: dict[str, tuple[float, float]]) -> tuple[Array, Array]:
    """Errors of all efficiencies, relative to the truth and to their deviations."""
    found = [x for x in fit.sensors if x.kind in ("efficiency", "backdrive")]
    assert len(found) == 2 * len(truth)
    right = np.array([truth[x.name][x.kind == "backdrive"] for x in found])
    off = np.array([x.value for x in found]) - right
    return off / right, off / np.array([x.deviation for x in found])


@pytest.mark.slow
def test_efficiencies_both_ways_through_belts(tmp_path: Path) -> None:
    """With dry and viscous friction before and behind the gears; then from the written file."""
    log = recorded(losing(LEG, TRUTH, 0.5), 5.0, 0.01, 0)
    free = ["damping", "friction"]
    fit = rm.identify(LEG, log.q, log.v, log.a, log.tau, losses=True, free=free)
    share, sure = misses(fit, TRUTH)
    assert np.abs(share).max() < 0.03
    assert np.abs(sure).max() < 4.0
    assert np.all(fit.residual < 0.02 * fit.forces)
    assert not [note for note in fit.notes if "product" in note or "phase" in note]
    rm.write_urdf(fit.model, tmp_path / "fit.urdf")
    again = rm.load(tmp_path / "fit.urdf")
    for actuator in again.actuators:
        assert actuator.turns_rotor
        both = actuator.efficiency, actuator.backdrive
        assert both == pytest.approx(TRUTH[actuator.name], rel=0.03)
    other = recorded(losing(LEG, TRUTH, 0.5), 2.0, 0.01, 1)
    columns: dict[str, Array] = {"time": np.asarray(STEP * np.arange(len(other.q)))}
    for i, name in enumerate(LEG.dof_names):
        columns |= {f"{kind}.{name}": getattr(other, kind)[:, i] for kind in ("q", "v", "a", "tau")}
    seen = rm.identification.predicted(again, rm.identification.read_log(again, columns))
    assert np.all(seen.residual < 0.03 * seen.forces)
    with pytest.raises(rm.errors.UnknownNameError, match="losses: no actuator 'hip'"):
        rm.identify(LEG, log.q, log.v, log.a, log.tau, losses="hip")


@pytest.mark.tables
def test_deviations_hold_in_both_phases() -> None:
    """Errors of forces pass gears, so that they are larger behind driven ones.

    The ankle is driven in 0.02 % of the squares of its force.
    """
    model, off = losing(LEG, TRUTH, 0.5), []
    for seed in range(12):
        log = recorded(model, 5.0, 0.01, seed)
        fit = rm.identify(
            LEG, log.q, log.v, log.a, log.tau, losses=True, free=["damping", "friction"]
        )
        off.append(misses(fit, TRUTH)[1])
    forward, back = np.array(off).reshape(12, 3, 2).transpose(2, 0, 1)
    assert np.sqrt(np.mean(forward**2)) < 1.5  # 1.1 in 164 logs
    assert 0.75 < np.sqrt(np.mean(back**2)) < 1.2  # 1.5 if errors are taken for equal


def swing(noise: float, seed: int) -> tuple[Model, Recorded]:
    """A pendulum that a motor without inertia turns, by both efficiencies, and its log."""
    model = rm.load(
        """<robot name="swing"><link name="base"/><link name="arm"><inertial>
        <origin xyz="0.3 0 0"/><mass value="2"/>
        <inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="j" type="continuous"><parent link="base"/><child link="arm"/>
        <axis xyz="0 1 0"/></joint>
        <transmission name="t"><type>transmission_interface/SimpleTransmission</type>
        <joint name="j"><hardwareInterface>E</hardwareInterface></joint><actuator name="m">
        <mechanicalReduction>20</mechanicalReduction></actuator></transmission></robot>"""
    )
    rng, time = np.random.default_rng(seed), STEP * np.arange(600)
    rates = 2.0 * np.pi * np.array([0.4, 0.9, 1.3])
    angles, sizes = time[:, None] * rates + rng.uniform(0.0, 6.0, 3), np.array([1.2, 0.4, 0.2])
    q = np.sum(sizes * np.sin(angles), -1)[:, None]
    v = np.sum(sizes * rates * np.cos(angles), -1)[:, None]
    a = -np.sum(sizes * rates**2 * np.sin(angles), -1)[:, None]
    needed = rm.rnea(model, q, v, a) + 0.2 * v + 0.3 * np.sign(v)
    tau = np.where(needed * v > 0.0, needed / 0.8, needed * 0.6)
    tau += noise * np.std(tau) * rng.normal(size=tau.shape)
    return model, Recorded(q, v, a, tau)


@pytest.mark.slow
def test_friction_that_grows_with_the_load_is_chosen(tmp_path: Path) -> None:
    """Of motors with losses, and none where there are none; it is said, and stays in the file."""
    log = recorded(losing(LEG, TRUTH, 0.5), 5.0, 0.01, 0)
    fit = rm.identify(LEG, log.q, log.v, log.a, log.tau, friction="auto")
    (chosen,) = (x for x in fit.forms if x.chosen)
    assert (chosen.form, chosen.gears) == ("growing with the load", tuple(TRUTH))
    assert chosen.share < 0.4 * fit.forms[0].share
    _, sure = misses(fit, TRUTH)
    assert np.abs(sure).max() < 3.0
    (note,) = [x for x in fit.notes if "form was chosen" in x]
    assert "growing with the load; efficiencies 'hip_ry_link_joint (0." in note
    assert note.count("while it drives, 0.") == 3
    html = page(fit, LEG, "log.csv")
    assert "losses of" in html
    assert "efficiency while it drives" in html
    rm.write_urdf(fit.model, tmp_path / "fit.urdf")
    again = rm.load(tmp_path / "fit.urdf")
    found = {(x.name, x.kind): x.value for x in fit.sensors}
    for each in again.actuators:
        assert each.efficiency == pytest.approx(found[each.name, "efficiency"])
        assert each.backdrive == pytest.approx(found[each.name, "backdrive"])
    none = dict.fromkeys(TRUTH, (1.0, 1.0))
    log = recorded(losing(LEG, none, 0.5), 5.0, 0.01, 0, none)
    fit = rm.identify(LEG, log.q, log.v, log.a, log.tau, friction="auto")
    assert len(fit.forms) == 6
    assert not any(x.gears for x in fit.forms)
    assert not any(x.kind == "efficiency" for x in fit.sensors)


@pytest.mark.slow
def test_what_a_log_tells_of_efficiencies() -> None:
    """Both, if masses are known."""
    model, log = swing(0.01, 0)
    losses = ["damping", "friction"]
    fit = rm.identify(model, log.q, log.v, log.a, log.tau, losses=True, free=losses)
    share, sure = misses(fit, {"m": (0.8, 0.6)})
    assert np.abs(share).max() < 0.02
    assert np.abs(sure).max() < 4.0
    (end,) = fit.model.description.transmissions[0].actuators
    assert (end.efficiency, end.backdrive) == pytest.approx((0.8, 0.6), rel=0.02)
    with pytest.raises(rm.errors.UnknownNameError, match="losses: no actuator 'j'"):
        rm.identify(model, log.q, log.v, log.a, log.tau, losses="j")


@pytest.mark.slow
def test_what_a_log_does_not_tell_of_efficiencies() -> None:
    """Both, without a known mass; the way back, if it does not occur.

    An armature in a rotor's place is before the gear.
    """
    model, log = swing(0.0, 0)
    exact = rm.identify(model, log.q, log.v, log.a, log.tau, losses=True, prior=3.0)
    found = [x.value for x in exact.sensors if x.kind in ("efficiency", "backdrive")]
    assert np.prod(found) == pytest.approx(0.48, rel=1e-5)
    assert exact.residual[0] < 1e-5 * exact.forces[0]
    model, log = swing(0.01, 0)
    losses = ["damping", "friction"]
    some = [x[::3] for x in (log.q, log.v, log.a, log.tau)]
    free = rm.identify(model, *some, losses=True, prior=3.0)
    (note,) = [note for note in free.notes if "only the product" in note]
    product, deviation = map(float, note.split("m (")[1].split(")")[0].split(" ± "))
    assert product == pytest.approx(0.48, abs=0.03)
    assert abs(product - 0.48) < 3.0 * deviation + 0.005
    _, sure = misses(free, {"m": (0.8, 0.6)})
    assert np.abs(sure).max() < 2.0
    driving = Gears.of(model, [0], log.q, log.v, log.a).driving(log.tau)
    loaded = np.abs(log.tau) > 0.1 * np.abs(log.tau).max()
    tau = np.where(driving & loaded, log.tau, np.nan)
    fit = rm.identify(model, log.q, log.v, log.a, tau, losses="m", free=losses)
    (note,) = [note for note in fit.notes if "no phase" in note]
    assert "gear is driven, so that its efficiency there is not told: 'm'" in note


@pytest.mark.slow
def test_efficiencies_of_a_simulated_two_rod_ankle() -> None:
    """From a simulation with friction in the meshes' contact problem, through loops."""
    model = rm.robots.load("parallel_ankle")
    truth = {"left_motor": (0.8, 0.65), "right_motor": (0.77, 0.7)}
    robot, step = losing(model, truth, 0.05), 1e-3
    start = model.neutral()
    rates = 2.0 * np.pi * np.array([[0.31, 0.73], [0.43, 0.91]])
    phases = np.random.default_rng(0).uniform(0.0, 6.0, rates.shape)
    zero = np.array([float(model.joint_positions(start)[n]) for n in model.dof_names])
    stiff, sizes = 400.0 * np.diag(rm.crba(model, start)), np.array([0.35, 0.15])
    taken = list[Array]()

    def follow(t: float, q: Array, v: Array) -> Array:
        x = np.array([float(model.joint_positions(q)[n]) for n in model.dof_names]) - zero
        to = np.sum(sizes * (np.sin(rates * t + phases) - np.sin(phases)), -1)
        rate = np.sum(sizes * rates * np.cos(rates * t + phases), -1)
        taken.append(stiff * (to - x) + 0.1 * stiff * (rate - v) + rm.gravity_force(model, q))
        return taken[-1]

    motion = rm.simulate(
        robot, start, tau=follow, hold=True, duration=2.5, step=step, progress=False
    )
    q, v, tau = model.close(0.5 * (motion.q[1:] + motion.q[:-1])), motion.v, np.array(taken)[:2500]
    v, a = 0.5 * (v[1:] + v[:-1]), np.diff(v, axis=0) / step
    q, v, a, tau = (x[100::5] for x in (q, v, a, tau))
    tau = tau + 0.003 * np.std(tau, axis=0) * np.random.default_rng(0).normal(size=tau.shape)
    speeds = np.abs(Gears.of(robot, [0, 1], q, v, a).rates)
    tau[np.any(speeds < 0.05 * speeds.max(axis=0), axis=1)] = np.nan  # where a gear may stick
    fit = rm.identify(model, q, v, a, tau, losses=True, free=["damping", "friction"])
    share, _ = misses(fit, truth)
    assert np.abs(share).max() < 0.03


def test_loads_are_without_friction_and_encoders_may_be_at_rotors() -> None:
    """A bias of friction counts once; accelerations are those of the joints; the same twice."""
    model, log = swing(0.0, 0)
    text = model.description
    joints = tuple(replace(each, bias=1.5) for each in text.joints)
    biased = build(replace(text, joints=joints))
    at = log.q[:50], log.v[:50], log.a[:50]
    gears = Gears.of(biased, [0], *at, predicted=True)
    assert gears.needed == pytest.approx(rm.rnea(model, *at) + 1.5)
    lossy = with_efficiencies(model, {"m": (0.8, 0.7)})
    assert with_efficiencies(lossy, {"m": (0.8, 0.7)}).actuators == lossy.actuators
    rotors = tuple(each.joint for each in LEG.actuators)
    leg = recorded(LEG, 1.0, 0.0, 0)
    rows = [LEG.nodes[LEG.joint_names.index(name)].freedoms[0] for name in rotors]
    g = LEG.constraint_jacobian(leg.q)[:, rows]
    v, a = (np.einsum("tij,tj->ti", g, x) for x in (leg.v, leg.a))
    a = a + LEG.constraint_bias(leg.q, leg.v)[:, rows]
    place = LEG.joint_positions(leg.q)
    turned = np.stack([place[name] for name in rotors], axis=-1)
    logs = Log(leg.q, leg.v, leg.a, leg.tau), Log(turned, v, a, leg.tau, encoders=rotors)
    direct, behind = (sensors(LEG, each, losses=True).phases() for each in logs)
    assert behind == {name: pytest.approx(shares) for name, shares in direct.items()}


def test_a_rotor_may_be_the_first_joint_of_the_file() -> None:
    """Efficiencies stand at its coupling wherever the file has it."""
    text = robot(
        link("rotor") + link("arm"),
        joint("motor", "base", "rotor", more='<motor effort="2"/>'),
        joint("shoulder", "base", "arm", mark=True),
        '<coupling name="gear"><predecessor link="arm"/><successor link="rotor"/>'
        '<ratio value="9"/></coupling>',
    )
    model = rm.load(text)
    assert model.joint_names[0] == model.actuators[0].joint == "motor"
    again = with_efficiencies(model, {"motor": (0.8, 0.7)})
    (gear,) = again.description.couplings
    assert isinstance(gear, LinkCoupling)
    assert gear.efficiency == 0.8
    assert again.actuators[0].turns_rotor
