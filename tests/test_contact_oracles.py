"""The reference motions against themselves: halved steps, energy, laws at chosen instants."""

from __future__ import annotations

import math

import numpy as np
import pytest
from contact_oracles import (
    G,
    Leg,
    Motion,
    block_on_belt,
    bouncing_ball,
    collapsing_leg,
    compliant_ball,
    dry_friction_spring,
    linkage_motion,
    pulled_block,
    sphere_over_ridges,
    stick_slip,
)
from oracle import Oracle

import robomodel as rm

RIDGE = [(-1.0, 0.0), (0.0, 0.2), (0.5, 0.2), (2.0, -0.3)]


def rates_match(motion: Motion, tolerance: float) -> None:
    """Velocities are what positions change by, by Simpson's rule over two steps."""
    h = motion.times[1] - motion.times[0]
    v = motion.velocities
    mean = (v[:-2:2] + 4 * v[1:-1:2] + v[2::2]) / 3
    np.testing.assert_allclose(np.diff(motion.positions[::2], axis=0), h * mean, atol=tolerance)


@pytest.mark.parametrize("rolls", [True, False])
def test_a_sphere_over_ridges(rolls: bool) -> None:
    speed = 1.48 if rolls else 1.66

    def made(steps: int) -> Motion:
        return sphere_over_ridges(RIDGE, 0.25, -0.5, speed, 1.5, rolls=rolls, steps=steps)

    coarse, middle, fine = (made(steps) for steps in (1000, 2000, 4000))
    apart = [np.abs(a.positions[-1] - fine.positions[-1]).max() for a in (coarse, middle)]
    assert apart[0] < 1e-5
    assert apart[1] < apart[0]
    assert np.ptp(fine.energy) < 1e-6 * fine.energy[0]
    assert fine.positions[-1, 0] > 0.6  # over both ridges
    rates_match(fine, 1e-7)
    with pytest.raises(ValueError, match="leaves the profile"):
        sphere_over_ridges(RIDGE, 0.25, -0.5, 4.0, 0.9, rolls=rolls)
    with pytest.raises(ValueError, match="slopes fall"):
        sphere_over_ridges([(-1, 0), (0, 0), (1, 0.1)], 0.25, -0.5, 2.0, 0.9)


def test_a_bouncing_ball() -> None:
    times = np.linspace(0, 10, 20001)
    motion = bouncing_ball(0.5, times)
    np.testing.assert_allclose(motion.energy, 0.5 * G, rtol=1e-12)
    assert motion.positions.min() >= -1e-12
    fall = math.sqrt(1.0 / G)
    np.testing.assert_allclose(bouncing_ball(0.5, fall * np.array([2.0, 4.0])).positions, 0.5)
    lossy = bouncing_ball(0.5, np.linspace(0, 3, 3001), restitution=0.5)
    assert lossy.energy[-1] == 0.0  # at rest after 3 falls' times
    assert np.all(np.diff(lossy.energy) <= 1e-12)
    assert lossy.energy[1000 * round(2 * fall) :].max() < 0.25 * 0.5 * G + 1e-12


def test_a_spring_with_dry_friction() -> None:
    """It rests at 0.02 m, obeys its equation, and friction takes what the energy loses."""
    times = np.linspace(0, 2.5, 25001)
    motion = dry_friction_spring(times)
    assert motion.positions[-1] == pytest.approx(0.02, abs=1e-12)
    assert motion.velocities[times > 6 * math.pi / 10].any() == 0
    rates_match(motion, 1e-8)
    path = np.abs(np.diff(motion.positions)).sum()
    assert motion.energy[0] - motion.energy[-1] == pytest.approx(4.0 * path, rel=1e-7)
    assert dry_friction_spring(times, start=0.04).positions.tolist() == [0.04] * len(times)


@pytest.mark.slow
def test_a_leg_collapses() -> None:
    """Through its toggle; energy stays, and the URDF is the same robot."""
    leg = Leg()
    coarse, _ = collapsing_leg(leg, 0.3, -0.6, 0.44, steps=2000)
    fine, forces = collapsing_leg(leg, 0.3, -0.6, 0.44, steps=4000)
    np.testing.assert_allclose(coarse.positions, fine.positions[::2], atol=1e-5)
    assert np.ptp(fine.energy) < 1e-6 * fine.energy[0]
    assert forces.min() > 1.0
    assert forces.max() > 500.0  # as it is thrown round
    assert np.abs(fine.velocities[:, 2]).max() > 20.0
    rates_match(fine, 1e-6)
    model = rm.load(leg.text)
    assert model.dof_names == ("slider", "hip", "knee")
    chosen = slice(None, None, 250)
    q, v = fine.positions[chosen], fine.velocities[chosen]
    np.testing.assert_allclose(sum(rm.energy(model, q, v)), fine.energy[chosen], rtol=1e-12)
    heights = rm.frame_pose(model, q, leg.foot)[:, 2, 3]
    np.testing.assert_allclose(heights, 0.0, atol=1e-12)
    # accelerations with the foot pushed by these forces
    jacobian = rm.jacobian(model, q, leg.foot)[:, 3:]
    turn = rm.frame_pose(model, q, leg.foot)[:, :3, :3]
    rows = np.einsum("ni,nij->nj", turn[:, 2], jacobian)
    a = rm.aba(model, q, v, forces[chosen, None] * rows)
    h = fine.times[1]
    numeric = (fine.velocities[501:-1:250] - fine.velocities[499:-2:250]) / (2 * h)
    np.testing.assert_allclose(numeric, a[2:-1], rtol=1e-3, atol=1e-2)
    with pytest.raises(ValueError, match="lifts off"):
        collapsing_leg(leg, 0.3, -0.6, 0.6, steps=1000)


@pytest.mark.slow_cases("-20.0", "-12.0", "-5.0")
@pytest.mark.parametrize("speed", [-5.0, -12.0, -20.0])
def test_a_linkage(speed: float) -> None:
    """Energy stays, tolerances change nothing, and simulate's adaptive method agrees."""
    name = "planar_leg_linkage"
    text = rm.robots.path(name).read_bytes()
    model = rm.robots.load(name)
    at = model.joint_positions(model.configuration({"thigh_joint": 0.3, "shank_driver_joint": 1.3}))
    start = {joint: float(x) for joint, x in at.items()}
    rates = {"thigh_joint": speed, "shank_driver_joint": 0.0}
    motion, loose = (
        linkage_motion(
            text,
            start,
            {"thigh_joint": speed, "shank_driver_joint": 0.0},
            0.05,
            tolerance=tolerance,
        )
        for tolerance in (1e-12, 1e-10)
    )
    np.testing.assert_allclose(motion.positions, loose.positions, atol=1e-7)
    np.testing.assert_allclose(motion.energy, motion.energy[0], rtol=1e-9)
    q = model.configuration({"thigh_joint": 0.3, "shank_driver_joint": 1.3})
    other = rm.simulate(model, q, [speed, 0.0], duration=0.05, step=0.05 / 100, method="dop853")
    joints = model.joint_positions(other.q)
    robot = Oracle(text)
    for n, joint in enumerate(robot.unstack(np.zeros(robot.nv))):
        np.testing.assert_allclose(motion.positions[:, n], joints[joint], atol=1e-7)
    pushed = linkage_motion(
        text, start, rates, 0.05,
        forces={"shank_driver_joint": 0.1}, times=np.array([0.0, 0.05]),
    )  # fmt: skip
    turned = pushed.positions[-1, 1] - pushed.positions[0, 1]
    assert pushed.energy[-1] - pushed.energy[0] == pytest.approx(0.1 * turned, rel=1e-7)


def test_a_pulled_block() -> None:
    """It sticks until the pull is μs m g, then slides under μk m g."""
    times = np.linspace(0, 2.5, 25001)
    motion = pulled_block(times)
    begins = 0.6 * 2.0 * G / 10.0
    assert not motion.velocities[times <= begins].any()
    rates_match(motion, 1e-12)
    moving = times[:-1] > begins + 1e-3
    a = np.diff(motion.velocities)[moving] / 1e-4
    middle = times[:-1][moving] + 0.5e-4
    np.testing.assert_allclose(2.0 * a, 10.0 * middle - 0.4 * 2.0 * G, rtol=1e-7)


def test_a_block_on_a_belt() -> None:
    times = np.linspace(0, 1, 10001)
    for speed in (0.0, -0.5, 3.0):
        motion = block_on_belt(times, speed=speed)
        sticks = abs(1.5 - speed) / (0.4 * G)
        np.testing.assert_allclose(motion.velocities[times > sticks], 1.5, rtol=1e-12)
        slides = np.diff(motion.velocities)[times[1:] < sticks] / 1e-4
        np.testing.assert_allclose(np.abs(slides), 0.4 * G, rtol=1e-8)
        rates_match(motion, 1e-8)


def test_stick_and_slip() -> None:
    """It rides with the belt or obeys its equation with the kinetic friction."""
    h = 1e-4
    times = h * np.arange(100001)
    motion = stick_slip(times)
    rides = np.abs(motion.velocities - 0.1) < 1e-12
    assert 0.2 < rides.mean() < 0.9
    assert 100 * motion.positions.max() == pytest.approx(0.6 * G, rel=0.05)  # it still moves on
    assert 100 * motion.positions[rides].max() <= 0.6 * G * (1 + 1e-12)
    rates_match(motion, 1e-8)
    slips = ~rides[:-2] & ~rides[1:-1] & ~rides[2:]
    a = (motion.velocities[2:] - motion.velocities[:-2])[slips] / (2 * h)
    pull = 0.4 * G - 100.0 * motion.positions[1:-1][slips]
    np.testing.assert_allclose(a, pull, atol=1e-4)


@pytest.mark.slow
def test_a_compliant_ball() -> None:
    """Without damping it comes back to its height; with it it rests at m g / k, losing energy."""
    motion = compliant_ball(0.2, 1.0, steps=2000)
    np.testing.assert_allclose(motion.energy, 0.2 * G, rtol=1e-9)
    half, whole = compliant_ball(0.2, 1.0, steps=1000), motion
    np.testing.assert_allclose(half.positions, whole.positions[::2], atol=1e-8)
    deepest = -motion.positions.min()  # k p² / 2 = m g (h + p)
    assert 0.5e4 * deepest**2 == pytest.approx(G * (0.2 + deepest), rel=1e-3)
    damped = compliant_ball(0.02, 1.5, damping=100.0, steps=2000)
    assert damped.positions[-1] == pytest.approx(-G / 1e4, rel=1e-6)
    assert np.all(np.diff(damped.energy) < 1e-9)
