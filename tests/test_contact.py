"""Contact, joint stops and dry friction over time: what mechanics says of simple cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import few
from contact_oracles import compliant_ball
from numpy.typing import NDArray
from texts import INERTIAL, joint, link, robot

import robomodel as rm
from robomodel.motion.ground import GroundPoint, as_points

Array = NDArray[np.float64]
G = 9.81


def block(a: float = 0.1, mass: float = 2.0, gravity: tuple[float, float, float] = (0, 0, -G)):
    inertia = mass * (2 * a) ** 2 / 6
    return rm.load(
        f'<robot name="block"><link name="block"><inertial><mass value="{mass}"/><inertia '
        f'ixx="{inertia}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/></inertial>'
        f'<collision><geometry><box size="{2 * a} {2 * a} {2 * a}"/></geometry></collision></link>'
        "</robot>",
        floating_base=True,
        gravity=gravity,
    )


BOTTOM = [("block", (x, y, -0.1)) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]


def at_rest(model: rm.Model, height: float) -> Array:
    q = model.neutral()
    q[2] = height
    return q


# ---- contact -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("slope", "slides"), [(26.0, False), (27.5, True)])
def test_a_block_on_an_incline(slope: float, slides: bool) -> None:
    """At friction 0.5 it sticks up to 26.57 degrees and slides with g (sin - μ cos) above."""
    t = math.radians(slope)
    model = block(gravity=(G * math.sin(t), 0.0, -G * math.cos(t)))
    motion = rm.simulate(
        model, at_rest(model, 0.1), duration=0.5, ground=rm.Ground(friction=0.5), contacts=BOTTOM
    )
    a = G * (math.sin(t) - 0.5 * math.cos(t)) if slides else 0.0
    np.testing.assert_allclose(motion.v[:, 3], a * motion.times, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(motion.q[:, 2], 0.1, atol=1e-10)
    assert motion.method == "time_stepping"
    assert motion.contact_residual.max() <= 1e-10
    total = motion.contact_forces.sum(axis=1)
    np.testing.assert_allclose(total[:, 2], 2.0 * G * math.cos(t), rtol=1e-9)


@pytest.mark.slow
def test_a_block_slides_to_rest() -> None:
    model = block()
    v = np.array([0, 0, 0, 1.0, 0, 0])
    motion = rm.simulate(
        model, at_rest(model, 0.1), v, duration=0.4, ground=rm.Ground(friction=0.5), contacts=BOTTOM
    )
    assert motion.q[-1, 0] == pytest.approx(1 / (2 * 0.5 * G), abs=2e-6)
    assert np.abs(motion.v[-1]).max() < 1e-12
    assert np.all(np.diff(motion.energy) <= 1e-12)


@pytest.mark.slow_cases("0.6")
@pytest.mark.parametrize("restitution", few([0.0, 0.6, 1.0], 0.6))
def test_a_dropped_ball(restitution: float) -> None:
    """Rebounds lose 1 - e² of the height; the sphere touches with its lowest point."""
    model = rm.load(
        '<robot name="ball"><link name="ball"><inertial><mass value="1"/><inertia ixx="0.004" '
        'iyy="0.004" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial><collision><geometry><sphere '
        'radius="0.1"/></geometry></collision></link></robot>',
        floating_base=True,
    )
    assert rm.contact_points(model) == [("ball", (0.0, 0.0, 0.0), 0.1)]
    ground = rm.Ground(restitution=restitution)
    motion = rm.simulate(model, at_rest(model, 0.5), duration=0.75, step=5e-4, ground=ground)
    landed = np.argmax(motion.q[:, 2] < 0.1 + 1e-3)
    top = motion.q[landed:, 2].max()
    assert top == pytest.approx(0.1 + restitution**2 * 0.4, abs=3e-3)
    assert motion.q[:, 2].min() >= 0.1 - 1e-9
    assert np.all(np.diff(motion.energy) <= 1e-9)


BALL = (
    '<robot name="ball"><link name="ball"><inertial><mass value="2"/><inertia ixx="0.008" '
    'iyy="0.008" izz="0.008" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'
)


def dropped(stiffness: float, damping: float, duration: float) -> rm.motion.Trajectory:
    """A ball of 2 kg dropped by 0.0713 m onto compliant ground, in steps of 1 ms."""
    ball, ground = (
        rm.load(BALL, floating_base=True),
        rm.Ground(stiffness=stiffness, damping=damping),
    )
    return rm.simulate(
        ball, at_rest(ball, 0.0713), duration=duration, step=1e-3, ground=ground, contacts=["ball"]
    )


@pytest.mark.slow_cases("20.0-0.3")
@pytest.mark.parametrize(
    ("swing", "z"),
    few([(1.0, 0.5), (20.0, 0.0), (20.0, 0.3), (20.0, 1.0), (600.0, 1.0)],
        (20.0, 0.3), (600.0, 1.0)),
)  # fmt: skip
def test_ground_that_a_step_is_too_long_for(swing: float, z: float) -> None:
    """A ball rebounds as it leaves a spring and a damper, and comes to rest on them.

    ``swing``: by which the spring turns in a step, in radians; ``z``: the damping ratio.
    """
    mass, h, height = 2.0, 1e-3, 0.0713
    stiffness = mass * (swing / h) ** 2
    motion = dropped(stiffness, 2.0 * z * math.sqrt(stiffness * mass), 0.5)
    share = math.exp(-2.0 * z * math.acos(z) / math.sqrt(1.0 - z * z)) if z < 1.0 else math.exp(-2)
    arrives = math.sqrt(2.0 * G * height)
    assert motion.v[:, 5].max() == pytest.approx(arrives * share, abs=2.5 * G * h)
    assert motion.q[:, 2].min() >= -0.05 * h * arrives
    if z == 1.0:
        assert motion.q[-1, 2] == pytest.approx(-mass * G / stiffness, rel=1e-4)
        np.testing.assert_allclose(motion.contact_forces[-1, 0], [0.0, 0.0, mass * G], atol=1e-9)


@pytest.mark.slow_cases("200.0")
@pytest.mark.parametrize("damping", few([0.0, 40.0, 200.0], 200.0))
def test_damped_ground_does_not_act_at_a_distance(damping: float) -> None:
    """A ball is at most two steps' way off one whose force sets in at the surface; critically
    damped (200 N s/m), too."""
    exact = compliant_ball(0.0713, 0.3, mass=2.0, stiffness=5000.0, damping=damping, steps=300)
    motion = dropped(5000.0, damping, 0.3)
    np.testing.assert_allclose(motion.q[:, 2], exact.positions, rtol=0, atol=2e-4)
    away = exact.positions[:-1] > 1.2e-3
    assert np.any(away)
    assert not np.any(motion.contact_forces[away])


def test_a_rolling_ball_keeps_rolling() -> None:
    model = rm.load(
        '<robot name="ball"><link name="ball"><inertial><mass value="1"/><inertia ixx="0.004" '
        'iyy="0.004" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>',
        floating_base=True,
    )
    v = np.array([0, 5.0, 0, 0.5, 0, 0])
    motion = rm.simulate(
        model, at_rest(model, 0.1), v, duration=0.3, ground=rm.Ground(),
        contacts=[("ball", (0, 0, 0), 0.1)],
    )  # fmt: skip
    np.testing.assert_allclose(motion.q[:, 0], 0.5 * motion.times, atol=1e-9)
    np.testing.assert_allclose(motion.energy, motion.energy[0], rtol=1e-10)


def test_a_slipping_ball_comes_to_roll() -> None:
    """It has 5/7 of its speed when it does (a solid sphere)."""
    model = rm.load(
        '<robot name="ball"><link name="ball"><inertial><mass value="1"/><inertia ixx="0.004" '
        'iyy="0.004" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>',
        floating_base=True,
    )
    v = np.array([0, 0, 0, 1.0, 0, 0])
    motion = rm.simulate(
        model, at_rest(model, 0.1), v, duration=0.3, ground=rm.Ground(friction=0.4),
        contacts=[("ball", (0, 0, 0), 0.1)],
    )  # fmt: skip
    pose = motion.q[-1, 3:]
    speed = rm.frame_velocity(model, motion.q[-1], motion.v[-1], "ball")
    assert pose[1] != 0.0
    assert math.hypot(*speed[3:]) == pytest.approx(5 / 7, rel=1e-6)


@pytest.mark.slow
def test_momentum_is_what_forces_make_of_it() -> None:
    """A tumbling block: the change of centroidal momentum is weight and contact forces."""
    model = block()
    rng = np.random.default_rng(0)
    q = at_rest(model, 0.3)
    v = rng.standard_normal(6)
    rises = []
    for step in (1e-3, 5e-4):
        motion = rm.simulate(
            model, q, v, duration=0.6, step=step, ground=rm.Ground(friction=0.6, restitution=0.3)
        )
        rotation = np.array([rm.frame_pose(model, at, "block")[:3, :3] for at in motion.q])
        momentum = 2.0 * np.einsum("tij,tj->ti", rotation, motion.v[:, 3:])
        pushes = motion.contact_forces.sum(axis=1) - np.array([0, 0, 2.0 * G])
        np.testing.assert_allclose(np.diff(momentum, axis=0), step * pushes, rtol=0, atol=1e-12)
        touches = np.any(motion.contact_forces[:, :, 2] > 0.0, axis=1)
        assert np.diff(motion.energy)[~touches].max() <= 1e-13
        rises.append(np.diff(motion.energy).max())
    assert rises[0] <= 1e-7  # of 6 J, while it turns about an edge
    assert rises[1] <= 0.15 * rises[0]  # of third order in the step


@pytest.mark.slow
def test_deep_starts_are_lifted_without_momentum() -> None:
    model = block()
    motion = rm.simulate(
        model, at_rest(model, 0.095), duration=0.05, ground=rm.Ground(), contacts=BOTTOM
    )
    np.testing.assert_allclose(motion.q[-1, 2], 0.1, atol=1e-9)
    assert motion.kinetic.max() < 1e-9


@pytest.mark.slow
def test_slopes_of_a_grid() -> None:
    """A plane at 20 degrees, given as heights: the block stays on it, or slides down along it."""
    t = math.radians(20)
    x = np.linspace(-5, 5, 11)
    height = np.repeat(-math.tan(t) * x[:, None], 11, axis=1)
    model = block()
    q = at_rest(model, 0.0)
    q[:3] = 0.1 * math.sin(t), 0.0, 0.1 * math.cos(t)
    q[3:] = 0.0, math.sin(t / 2), 0.0, math.cos(t / 2)
    for friction, a in ((0.5, 0.0), (0.2, G * (math.sin(t) - 0.2 * math.cos(t)))):
        ground = rm.Ground(friction=friction, height=height, origin=(-5.0, -5.0))
        motion = rm.simulate(model, q, duration=0.3, ground=ground, contacts=BOTTOM)
        speed = np.linalg.norm(motion.v[:, 3:], axis=1)
        np.testing.assert_allclose(speed, a * motion.times, rtol=1e-7, atol=1e-9)


@pytest.mark.slow
def test_a_quadruped_stands() -> None:
    """Under PD: the ground carries its weight, the feet stay where they are."""
    model = rm.robots.load("mini_cheetah")
    feet = [f"{leg}_foot_contact" for leg in ("FR", "FL", "HR", "HL")]
    bent = {"abad": 0.0, "hip": -0.8, "knee": 1.6}
    legs = {n: bent[n.split("_")[1]] for n in model.dof_names if n[:2] in ("FR", "FL", "HR", "HL")}
    q = model.configuration(legs)
    q[2] -= min(rm.frame_pose(model, q, foot)[2, 3] for foot in feet)

    def hold(t: float, at: Array, v: Array) -> Array:
        return np.concatenate([np.zeros(6), -60 * (at[7:] - q[7:]) - 4 * v[6:]])

    motion = rm.simulate(
        model, q, tau=hold, hold=True, duration=0.8, ground=rm.Ground(), contacts=feet
    )
    weight = motion.contact_forces[-50:].sum(axis=1).mean(axis=0)
    np.testing.assert_allclose(weight, [0, 0, model.mass * G], atol=0.02 * model.mass * G)
    assert motion.contact_residual.max() <= 1e-10
    assert np.all(motion.contact_forces[..., 2] >= -1e-9)
    places = np.array([rm.frame_pose(model, motion.q[-1], foot)[:3, 3] for foot in feet])
    np.testing.assert_allclose(places[:, 2], 0.0, atol=1e-8)


@pytest.mark.slow
def test_contacts_that_a_function_gives() -> None:
    """A floor by a callable is the floor; a pair of links pushes both ways."""
    model = block()

    def floor(q: Array, v: Array) -> list[rm.motion.Contact]:
        pose = rm.frame_pose(model, q, "block")
        found = []
        for _, offset in BOTTOM:
            point = pose[:3, 3] + pose[:3, :3] @ offset
            found.append(rm.motion.Contact("block", point, (0, 0, 1), point[2], friction=0.5))
        return found

    v = np.array([0, 0, 0, 1.0, 0.3, 0])
    motion = rm.simulate(model, at_rest(model, 0.1), v, duration=0.2, contacts=floor)
    same = rm.simulate(
        model, at_rest(model, 0.1), v, duration=0.2, ground=rm.Ground(friction=0.5), contacts=BOTTOM
    )
    np.testing.assert_allclose(motion.v, same.v, atol=1e-9)
    assert motion.contact_points == ()
    assert [(at.link, at.other, at.name) for at in motion.contact_pairs] == [
        ("block", None, n) for n in range(4)
    ]
    middles = (same.contact_places[1:] + same.contact_places[:-1]) / 2.0
    np.testing.assert_allclose(motion.contact_places[:-1], middles, atol=0.5 * 9.81 * 1e-6)
    shared = (run.contact_forces.sum(axis=1) for run in (motion, same))  # by corners in many ways
    np.testing.assert_allclose(*shared, atol=1e-9)
    assert motion.contact_residual.max() <= 1e-10


# ---- joint stops and dry friction ----------------------------------------------------------------

PENDULUM = robot(
    link("rod"),
    joint("j", "base", "rod", kind="revolute", axis="0 1 0",
          more='<limit lower="-0.4" upper="0.9" effort="9" velocity="9"/>'),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_two_bodies_collide_without_friction(restitution: float) -> None:
    """Momentum is kept, and the bodies part as Newton says; nothing happens before they meet."""
    slides = (joint(f"{name}_joint", "base", name, at, kind="prismatic", axis="1 0 0")
              for name, at in (("a", "0 0 0"), ("b", "1 0 0")))  # fmt: skip
    heavy = INERTIAL.replace('mass value="1"', 'mass value="3"')
    model = rm.load(robot(link("a"), link("b", heavy), *slides))

    def met(q: Array, v: Array) -> list[rm.motion.Contact]:
        gap = 0.8 + q[1] - q[0]
        at = (q[0] + 0.1, 0.0, 0.0)
        return [
            rm.motion.Contact("b", at, (1, 0, 0), gap, "a", friction=0.0, restitution=restitution)
        ]

    motion = rm.simulate(model, [0, 0], [1, 0], duration=1.5, step=1e-3, contacts=met)
    m_a, m_b = np.diag(rm.crba(model, [0, 0]))
    common = m_a / (m_a + m_b)
    parting = restitution * np.array([-m_b, m_a]) / (m_a + m_b)
    np.testing.assert_allclose(motion.v[-1], common + parting, rtol=1e-9)
    before = motion.times < 0.799
    np.testing.assert_allclose(motion.v[before], [[1.0, 0.0]] * np.sum(before), atol=1e-12)
    assert np.all(motion.contact_forces[..., 0] >= 0.0)


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_stops(restitution: float) -> None:
    model = rm.load(PENDULUM)
    motion = rm.simulate(model, [0.2], duration=1.0, stops=True, stop_restitution=restitution)
    assert motion.q.max() <= 0.9 + 1e-9
    first = int(np.argmax(motion.q[:, 0] > 0.9 - 1e-2))
    hit = first + int(np.argmin(np.diff(motion.v[first : first + 40, 0])))
    if restitution:
        assert motion.v[hit + 1, 0] == pytest.approx(-0.5 * motion.v[hit, 0], rel=1e-2)
    else:
        assert motion.q[-1, 0] == pytest.approx(0.9, abs=1e-9)
        assert abs(motion.v[-1, 0]) < 1e-12
    assert np.all(np.diff(motion.energy) <= 1e-5)  # the method's own, of second order in the step


def test_a_start_beyond_a_stop_is_told() -> None:
    model = rm.load(PENDULUM)
    with pytest.warns(RuntimeWarning, match=r"beyond stops.* 'j' by 0\.3 \(upper limit 0\.9\)"):
        motion = rm.simulate(model, [1.2], duration=0.002, stops=True)
    assert motion.q[1:, 0] == pytest.approx(0.9, abs=1e-9)
    tau = np.zeros((1, 1))
    with pytest.warns(RuntimeWarning, match=r"'j' by 0\.1 \(lower limit -0\.4\)"):
        rm.rollout(model, [[0.2], [-0.5], [np.nan]], [0.0], tau, 1e-3, stops=["j"])
    rm.simulate(model, [0.9], duration=0.001, stops=True)  # at it, there is nothing to be told


@pytest.mark.slow
def test_stops_of_dependent_joints() -> None:
    text = rm.robots.path("four_bar").read_text()
    at = text.index('<joint name="joint2"')
    limited = text[at:].replace("continuous", "revolute", 1)
    limited = limited.replace("<initial", '<limit lower="-9" upper="-0.3"/><initial', 1)
    model = rm.load(text[:at] + limited, gravity=(0.0, -G, 0.0))
    motion = rm.simulate(model, model.neutral(), duration=1.5, stops=["joint2"])
    reached = model.joint_positions(motion.q)["joint2"]
    assert reached.max() <= -0.3 + 1e-6
    assert reached[-1] == pytest.approx(-0.3, abs=1e-6)
    assert motion.residual.max() < 1e-10


RUBBING = '<dynamics friction="1.5" damping="0.2"/>'
SLED = robot(
    link("sled", '<inertial><mass value="3"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" '
         'iyz="0"/></inertial>'),
    joint("rail", "base", "sled", kind="prismatic", axis="1 0 0", more=RUBBING),
)  # fmt: skip


def test_below_break_away_nothing_creeps() -> None:
    model = rm.load(SLED)
    motion = rm.simulate(model, [0.0], tau=[1.4999], duration=0.3)
    assert motion.method == "time_stepping"
    np.testing.assert_allclose(motion.q, 0.0, rtol=0, atol=1e-18)
    motion = rm.simulate(model, [0.0], tau=[-1.8], duration=0.1, step=1e-4)
    expected = -0.3 / 0.2 * (1 - math.exp(-0.2 / 3 * 0.1))
    assert motion.v[-1, 0] == pytest.approx(expected, rel=1e-4)


def test_sliding_stops_and_stays() -> None:
    model = rm.load(SLED)
    motion = rm.simulate(model, [0.0], [0.5], duration=2.0)
    assert abs(motion.v[-1, 0]) < 1e-15
    moving = motion.v[:, 0] > 1e-12
    assert np.all(np.diff(motion.v[moving, 0]) < 0.0)
    frozen = rm.simulate(model, [0.0], [0.5], duration=1.0, friction=False, passive=False)
    assert frozen.method == "dop853"
    np.testing.assert_allclose(frozen.v, 0.5)


@pytest.mark.parametrize("stiffness", few([1e2, 1e6, 1e10], 1e10))
def test_stiff_springs_hold(stiffness: float) -> None:
    """A dependent joint's spring of any stiffness in steps of 10 ms swings and wins nothing.

    A damper d that acts by the velocity v at the end of a step of length h exchanges h d v²/4 with
    the motion where a spring turns it round within the step: that sum falls at every step.
    """
    step, damping = 0.01, 0.01
    path = rm.robots.path("four_bar")
    model = rm.load(
        path,
        extend=f'<robot name="x"><joint name="joint2"><dynamics spring_stiffness="{stiffness}" '
        f'spring_reference="-0.7" damping="{damping}"/></joint></robot>',
    )
    motion = rm.simulate(model, model.neutral(), method="time_stepping", step=step, duration=2.0)
    assert np.all(np.isfinite(motion.q))
    speed = motion.joint_velocities[:, model.joint_names.index("joint2")]
    energy = motion.energy + step * damping * speed**2 / 4.0
    assert np.all(np.diff(energy) < 0.0)
    assert np.all(motion.energy <= motion.energy[0])
    if stiffness > 1e5:
        away = np.abs(model.joint_positions(motion.q)["joint2"] + 0.7)
        assert np.all(away <= away[0] + 1e-4)


@pytest.mark.slow
def test_springs_and_dampers_act_in_every_method() -> None:
    """An oscillator: x = exp(-d t/2m) cos, by all methods and not when they shall not."""
    model = rm.load(SLED.replace(RUBBING, '<dynamics damping="0.6" spring_stiffness="75"/>'))
    t = 0.7
    rate, decay = math.sqrt(75 / 3 - 0.1**2), math.exp(-0.1 * t)
    expected = 0.1 * decay * (math.cos(rate * t) + 0.1 / rate * math.sin(rate * t))
    for method, off in (("dop853", 1e-9), ("rk4", 1e-8),
                        ("semi_implicit_euler", 2e-3), ("time_stepping", 3e-3)):  # fmt: skip
        motion = rm.simulate(model, [0.1], duration=t, method=method)
        assert motion.q[-1, 0] == pytest.approx(expected, abs=off), method
        still = rm.simulate(model, [0.1], duration=t, method=method, passive=False)
        np.testing.assert_allclose(still.q, 0.1, atol=1e-15)


# ---- arguments -----------------------------------------------------------------------------------


def test_points_come_from_collision_shapes() -> None:
    shapes = (
        '<collision><origin xyz="0 0 1"/><geometry><box size="2 4 6"/></geometry></collision>'
        '<collision><geometry><cylinder radius="1" length="2"/></geometry></collision>'
        '<visual><geometry><sphere radius="1"/></geometry></visual>'
    )
    model = rm.load(robot(link("a", INERTIAL + shapes), joint("j", "base", "a")))
    points = rm.contact_points(model)
    assert len(points) == 8 + 16
    assert ("a", (-1.0, -2.0, -2.0)) in points
    assert max(math.hypot(*p[1][:2]) for p in points[8:]) == pytest.approx(1.0)


@pytest.mark.slow
def test_one_point_needs_no_list() -> None:
    model = block()
    q = at_rest(model, 0.1)
    for points in ("block", ("block", (0.0, 0.0, 0.1)), ("block", np.zeros(3), 0.02)):
        found = rm.simulate(model, q, duration=0.002, ground=rm.Ground(), contacts=points)
        assert found.contact_forces is not None
        assert found.contact_forces.shape == (2, 1, 3)
    two = rm.simulate(model, q, duration=0.002, ground=rm.Ground(), contacts=("block", "block"))
    assert len(two.contact_points) == 2


def test_a_robot_without_joints_stands() -> None:
    still = rm.load(robot())
    assert rm.simulate(still, [], duration=0.1).q.shape[1] == 0


def test_a_link_alone_is_its_origin() -> None:
    assert as_points(block(), ["block"]) == [GroundPoint("block", (0.0, 0.0, 0.0))]
