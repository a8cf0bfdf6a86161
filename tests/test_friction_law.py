"""Friction's law in motions: static and Stribeck's friction, two directions, a bias."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from lxml import etree

import robomodel as rm
from robomodel.dynamics.contact.dry_friction import DryFriction, decay
from robomodel.model.build import build
from robomodel.model.elements import FrictionLaw
from robomodel.model.model import Model

MASS = 2.0
METHODS: list[tuple[Literal["rk4", "semi_implicit_euler", "dop853"], float]] = [
    ("rk4", 1e-9), ("semi_implicit_euler", 2e-3), ("dop853", 1e-9),
]  # fmt: skip


def slider(dynamics: str, climb: float = 0.0) -> Model:
    """A block on a rail along x, which climbs by an angle [rad]."""
    return rm.load(
        f"""<robot name="block"><link name="base"/>
        <link name="block"><inertial><mass value="{MASS}"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="x" type="prismatic"><parent link="base"/><child link="block"/>
        <origin rpy="0 {-climb} 0"/><axis xyz="1 0 0"/>
        <limit lower="-9" upper="9" effort="99" velocity="99"/>
        <dynamics {dynamics}/></joint></robot>"""
    )


def end(model: Model, v: float, duration: float, *, tau: float = 0.0) -> tuple[float, float]:
    """x and its velocity after a motion from x = 0."""
    step = 1e-3
    motion = rm.simulate(model, [0.0], [v], tau=[tau], duration=duration, step=step, progress=False)
    return float(motion.q[-1, 0]), float(motion.v[-1, 0])


def test_sticks_to_the_static_limit_and_drops_to_coulombs() -> None:
    """At once without a Stribeck velocity; the loads are 1e-6 below and above the limit."""
    model = slider('friction="4" friction_reverse="3" static_friction="6" bias="0.5"')
    for load in (6.5 - 1e-6, -(5.0 - 0.5) + 1e-6):
        assert np.abs(end(model, 0.0, 0.1, tau=load)).max() < 1e-17
    for load, left in ((6.5 + 1e-6, 2.0), (-(5.0 - 0.5) - 1e-6, -2.0)):
        x, v = end(model, 0.0, 0.1, tau=load)
        assert v == pytest.approx(left / MASS * 0.1, rel=0.02)  # the first step is static
        assert x == pytest.approx(0.5 * left / MASS * 0.1**2, rel=0.03)


def test_sticks_where_it_comes_to_rest() -> None:
    """A load between Coulomb's and static friction does not turn it back, in any step."""
    model = slider('friction="4" static_friction="6"')
    for load in (0.0, 5.0, 5.99):
        x, v = end(model, -1.0, 1.0, tau=load)
        assert x == pytest.approx(-0.5 * MASS / (4.0 + load), abs=1e-6)
        assert abs(v) < 1e-15
    x, _ = end(model, -1.0, 1.0, tau=6.5)
    rest = MASS / 10.5  # then back with Coulomb's friction
    assert x == pytest.approx(-0.5 * rest + 0.25 * (2.5 / MASS) * 2.0 * (1.0 - rest) ** 2, abs=0.01)


def test_stopping_distance_with_stribecks_law() -> None:
    """M w dw/dx = -f - e exp(-(w/s)²), in closed form, with errors of second order."""
    f, e, s = 4.0, 2.0, 0.3
    model = slider(f'friction="{f}" static_friction="{f + e}" stribeck_velocity="{s}"')
    share = 1.0 / s**2
    expected = MASS * s**2 / (2.0 * f) * math.log((f * math.exp(share) + e) / (f + e))
    misses = []
    for step in (4e-3, 2e-3, 1e-3):
        motion = rm.simulate(model, [0.0], [1.0], duration=0.6, step=step, progress=False)
        assert motion.v[-1, 0] == 0.0
        misses.append(abs(motion.q[-1, 0] - expected))
    assert misses[-1] < 1e-6
    assert misses[0] / misses[1] > 3.0
    assert misses[1] / misses[2] > 3.0


@pytest.mark.slow
def test_slopes_up_and_down() -> None:
    """Of a block on a slope with friction that is stronger upwards, and damping likewise."""
    climb, weight = 0.3, MASS * 9.81 * math.sin(0.3)
    model = slider('friction="3" friction_reverse="2" damping="0" damping_reverse="0"', climb)
    up = end(model, 1.0, 0.1)[1]
    assert up == pytest.approx(1.0 - (weight + 3.0) / MASS * 0.1, rel=1e-12)
    down = end(model, -1.0, 0.1)[1]
    assert down == pytest.approx(-1.0 - (weight - 2.0) / MASS * 0.1, rel=1e-12)
    top = 0.5 * MASS / (weight + 3.0)
    there = end(model, 1.0, 1.0)[1]  # it turns round at the top
    assert there == pytest.approx(-(weight - 2.0) / MASS * (1.0 - 2.0 * top), rel=1e-5)
    held = slider('friction="0" friction_reverse="6"', climb)
    assert np.abs(end(held, 0.0, 1.0)).max() < 1e-15
    drag = slider('damping="1" damping_reverse="4" bias="0.5"')
    for v, d in ((1.0, 1.0), (-1.0, 4.0)):
        ends = -0.5 / d
        expected = ends + (v - ends) * math.exp(-d / MASS * 0.05)
        for method, error in METHODS:
            step = None if method == "dop853" else 1e-3
            motion = rm.simulate(
                drag, [0.0], [v], duration=0.05, step=step, method=method, progress=False
            )
            assert motion.v[-1, 0] == pytest.approx(expected, abs=error)


def lawful(name: str, **words: Any) -> Model:
    """A shipped robot whose joints with one freedom, and rotors, have a law of friction."""
    description = rm.robots.load(name).description
    kinds = ("revolute", "continuous", "prismatic")
    joints = tuple(
        replace(each, **words) if each.type in kinds else each for each in description.joints
    )
    return build(replace(description, joints=joints, gravity=(0.0, 0.0, 0.0)))


LAW = {
    "damping": 0.02, "damping_reverse": 0.05, "friction": 0.2, "friction_reverse": 0.3,
    "static_friction": 0.5, "stribeck_velocity": 0.4,
}  # fmt: skip


@pytest.mark.slow_cases("four_bar")
@pytest.mark.parametrize("name", ["four_bar", pytest.param("mini_cheetah", marks=pytest.mark.slow)])
def test_friction_only_takes_energy(name: str) -> None:
    """A batch on linkages and on a floating base: the energy falls, and all joints stop."""
    model = lawful(name, **LAW)
    rng = np.random.default_rng(1)
    q = np.stack([model.random_configuration(rng) for _ in range(3)])
    v = rng.normal(size=(3, model.nv))
    steps = 300
    motion = rm.rollout(model, q, v, tau=np.zeros((steps, model.nv)), step=2e-3)
    energies = rm.energy(model, motion.q, motion.v)[0]
    assert np.all(np.diff(energies, axis=-1) <= 1e-9 * energies[..., :1])
    one = rm.simulate(model, q[0], v[0], duration=steps * 2e-3, step=2e-3, progress=False)
    assert motion.q[0][-1] == pytest.approx(one.q[-1], abs=1e-8)


def test_passive_forces_have_damping_by_direction_and_the_bias() -> None:
    """Also of the joints that a loop moves, with derivatives."""
    model = lawful("four_bar", damping=0.1, damping_reverse=0.4, bias=0.3)
    q = model.random_configuration(np.random.default_rng(2))
    for v in ([0.7], [-0.7]):
        rows = model.constraint_jacobian(q)
        w = rows @ v
        force = np.where(w > 0.0, 0.1, 0.4) * w + 0.3
        assert rm.passive_force(model, q, v) == pytest.approx(-rows.T @ force)
        a = rm.aba(model, q, v, [0.2], passive=True)
        assert rm.rnea(model, q, v, a, passive=True) == pytest.approx(np.array([0.2]))
        slope = rm.aba_derivatives(model, q, v, [0.2], passive=True)[1]
        near = [rm.aba(model, q, [v[0] + d], [0.2], passive=True) for d in (1e-5, -1e-5)]
        assert slope[..., 0] == pytest.approx((near[0] - near[1]) / 2e-5, rel=1e-6)


def test_bearing_of_a_lossy_gear() -> None:
    """A rotor's friction by direction, behind a gear with losses: the limits of the motor."""
    text = """<robot name="lift"><link name="base"/>
    <link name="arm"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
    <rotor ratio="10" inertia="1e-3" friction="0.2" efficiency="0.8"/></joint></robot>"""
    description = rm.load(text).description
    joints = tuple(
        replace(each, friction_reverse=0.3, static_friction=0.5, bias=0.1)
        if each.friction else each
        for each in description.joints
    )  # fmt: skip
    model = build(replace(description, joints=joints))
    motor = 10.0  # of the motor's torque on the arm
    for load, moves in ((0.599, 0), (0.601, 1), (-0.499, 0), (-0.501, -1)):
        motion = rm.simulate(
            model, model.neutral(), np.zeros(1), tau=[load * motor], duration=0.05, step=1e-3,
            progress=False,
        )  # fmt: skip
        assert np.sign(np.round(motion.v[-1, 0], 9)) == moves


def test_law_of_a_traced_friction() -> None:
    """Dry friction as an argument of each motion: static friction stays as it is."""
    model = slider('friction="4" static_friction="6" stribeck_velocity="0.3"')
    values = np.array([2.0, 4.0, 5.0])
    motion = rm.rollout(
        model, np.zeros((3, 1)), np.ones((3, 1)), tau=np.zeros((100, 1)), step=1e-3,
        parameters={"x.friction": values},
    )  # fmt: skip
    for n, value in enumerate(values):
        text = f'friction="{value}" static_friction="6" stribeck_velocity="0.3"'
        assert motion.v[n][-1, 0] == pytest.approx(end(slider(text), 1.0, 0.1)[1], abs=1e-12)


def test_bounds_never_drive() -> None:
    """Where friction at rest is less than the other one by more than a direction has."""
    assert DryFriction(2.0, FrictionLaw(friction=-1.5, excess=-1.0)).bound(0.0, 0.0) == 0.75
    x = np.linspace(0.0, 80.0, 50)
    assert decay(x) == pytest.approx(np.exp(-np.minimum(x, 64.0)), rel=1e-13)


def test_mjcf_has_the_means_of_both_directions(tmp_path: Path) -> None:
    """MuJoCo's words have no direction; what is lost is named."""
    model = slider('damping="1" damping_reverse="2" friction="4" friction_reverse="3" bias="0.5"')
    with pytest.raises(rm.DescriptionError, match="means of both directions"):
        rm.write_mjcf(model, tmp_path / "block.xml")
    (lost,) = rm.write_mjcf(model, tmp_path / "block.xml", drop=True)
    assert "bias of the joint 'x', whose means of both directions" in lost
    (joint,) = etree.parse(tmp_path / "block.xml").iter("joint")
    assert (joint.get("damping"), joint.get("frictionloss")) == ("1.5", "3.5")
