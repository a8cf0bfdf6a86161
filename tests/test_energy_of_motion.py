"""Time stepping by physics: landings, toggles, springs and rebounds win no energy."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any

import contact_oracles as oracles
import numpy as np
import pytest
from cases import few
from numpy.typing import NDArray
from rollouts import q_and_v

import robomodel as rm
from robomodel.motion.contact_rows import Setting
from robomodel.motion.ground import as_points
from robomodel.motion.limits import Acting
from robomodel.motion.plant import Plant
from robomodel.motion.steps import FixedStep

Array = NDArray[np.float64]
FOOT = ("shank", (0.0, 0.0, -0.3))


def body(name: str, mass: float, x: float, z: float, inertia: float) -> str:
    return (
        f'<link name="{name}"><inertial><origin xyz="{x} 0 {z}"/><mass value="{mass}"/>'
        f'<inertia ixx="{inertia}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/>'
        "</inertial></link>"
    )


def hinge(name: str, parent: str, child: str, origin: str, own: str, start: float) -> str:
    return (
        f'<joint name="{name}" type="continuous" independent="{own}"><parent link="{parent}"/>'
        f'<child link="{child}"/><origin xyz="{origin}"/><axis xyz="0 1 0"/>'
        f'<initial position="{start}"/></joint>'
    )


def slide(name: str, parent: str, child: str, axis: str) -> str:
    return (
        f'<joint name="{name}" type="prismatic"><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="{axis}"/><limit lower="-10" upper="10" effort="1e3" velocity="1e3"/></joint>'
    )


LEG = (
    '<robot name="leg"><link name="ground"/>'
    + body("cart", 1e-4, 0.0, 0.0, 1e-4) + slide("up", "ground", "cart", "0 0 1")
    + body("trunk", 4.0, 0.0, 0.0, 0.02) + slide("along", "cart", "trunk", "1 0 0")
    + body("thigh", 0.8, 0.0, -0.12, 0.008)
    + hinge("hip", "trunk", "thigh", "0 0 0", "true", 0.6)
    + body("shank", 0.4, 0.0, -0.1, 0.004)
    + hinge("knee", "thigh", "shank", "0 0 -0.3", "false", -1.2)
    + body("crank", 0.15, 0.02, 0.0, 0.0004)
    + hinge("drive", "thigh", "crank", "0 0 -0.05", "true", -1.0)
    + body("rod", 0.1, 0.0, -0.12, 0.001)
    + hinge("pin", "crank", "rod", "0.05 0 0", "false", 1.0)
    + '<loop name="end" type="revolute"><predecessor link="rod"><origin xyz="0 0 -0.26"/>'
    '</predecessor><successor link="shank"><origin xyz="0.04 0 0.01"/></successor>'
    '<axis xyz="0 1 0"/></loop></robot>'
)  # fmt: skip


@pytest.fixture(scope="module")
def leg() -> rm.Model:
    """A body on a slider over a leg whose knee is a four-bar."""
    return rm.load(LEG)


def risen(energy: Array) -> float:
    """The largest rise of energy above what it was before."""
    return float(np.max(energy - np.minimum.accumulate(energy)))


def above(leg: rm.Model, hip: float, drive: float, height: float) -> Array:
    q = leg.configuration({"hip": hip, "drive": drive})
    q[0] -= rm.frame_pose(leg, q, FOOT)[2, 3] - height
    return q


def landing(leg: rm.Model, speed: float, step: float) -> rm.motion.Trajectory:
    v = np.array([-speed, 0.0, 0.0, 0.0])
    q = above(leg, 0.6, -1.0, 0.02)
    return rm.simulate(leg, q, v, duration=0.1, step=step, ground=rm.Ground(), contacts=[FOOT])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("speed", "most"), few([(3.0, 1e-5), (5.0, 1e-4), (10.0, 1e-2)], (5.0, 1e-4))
)
def test_landings_of_linkages_win_no_energy(leg: rm.Model, speed: float, most: float) -> None:
    """Of 53, 96 and 301 J; in finer steps less."""
    coarse, fine = (landing(leg, speed, step) for step in (1e-3, 2.5e-4))
    assert risen(coarse.energy) <= most
    assert risen(fine.energy) <= max(most / 20.0, 1e-5)
    assert coarse.energy[-1] < 0.7 * coarse.energy[0]
    assert coarse.residual.max() <= 1e-9
    assert coarse.contact_residual is not None
    assert coarse.contact_residual.max() <= 1e-10


HARD = [(0.6, -1.0, 5.0), (-0.3, -0.6, 8.0), (-0.3, -1.0, 3.0)]  # hip, drive, speed


@pytest.mark.parametrize(("hip", "drive", "speed"), few(HARD))
def test_steps_too_long_for_linkages_are_halved(
    leg: rm.Model, hip: float, drive: float, speed: float
) -> None:
    """Cranks at up to 200 rad/s: whole steps of 1 ms win 14.7 J, or end 23 mm in the ground."""
    q, v = above(leg, hip, drive, 0.05), np.array([-speed, 0.0, 0.0, 0.0])
    options = {"ground": rm.Ground(friction=0.7), "contacts": [FOOT]}
    motion = rm.simulate(leg, q, v, duration=0.05, step=1e-3, **options)
    assert risen(motion.energy) <= 1e-5 * motion.energy[0]
    assert rm.frame_pose(leg, motion.q, FOOT)[:, 2, 3].min() >= -2e-4
    made = rm.rollout(leg, np.tile(q, (2, 1)), v, np.zeros((50, 4)), 1e-3, **options)
    np.testing.assert_allclose(made.q[1], motion.q, rtol=0, atol=1e-9)
    forces = motion.contact_forces
    np.testing.assert_allclose(made.contact_forces[0], forces, rtol=1e-6, atol=1e-4)
    single = rm.rollout(leg, q, v, np.zeros((50, 4)), 1e-3, **options, dtype="float32")
    np.testing.assert_allclose(single.q, motion.q, rtol=0, atol=5e-3)
    ramp = rm.Ground(friction=0.7, normal=(0.0, 0.0, 1.0), height=0.0), rm.Ground(height=-1.0)
    made = rm.rollout(leg, q, v, np.zeros((50, 4)), 1e-3, ground=ramp, contacts=[FOOT])
    np.testing.assert_allclose(made.q, motion.q, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_contact_problems_solved_elsewhere_give_the_same_step(leg: rm.Model) -> None:
    """A step's two halves about its problem: rebound, stops and dry friction, of a linkage."""
    text = LEG.replace('<axis xyz="1 0 0"/>', '<axis xyz="1 0 0"/><dynamics friction="0.5"/>')
    model = rm.load(text.replace('lower="-10"', 'lower="0.55"', 1))
    ground, points = rm.Ground(0.6, restitution=0.3), as_points(model, [FOOT])
    acting = Acting(stops=frozenset({"up"}))
    setting = Setting.on(acting, [ground], points, stop_restitution=0.1)
    step = FixedStep(Plant(model), "time_stepping", setting, (ground,))
    layout = step.layout
    q = above(model, 0.6, -1.0, 0.004)
    q[0] += max(0.55 - q[0] + 0.003, 0.0)
    states = step.start(q, np.array([-5.0, 0.3, 0.0, 0.0]))[0][None]
    tau, seen = np.array([[0.0, 0.2, 0.3, -0.1]]), []
    for _ in range(8):
        result = step.whole(states, tau, 1e-3)
        again = result.copy()
        again[..., layout.residual] = 1.0
        step.solving.finish(states, tau, 1e-3, (), again)
        assert again[0, layout.residual] <= 1e-11
        np.testing.assert_allclose(again[0, :10], result[0, :10], rtol=1e-9, atol=1e-9)
        forces = layout.impulses
        np.testing.assert_allclose(again[0, forces], result[0, forces], rtol=1e-7, atol=1e-9)
        seen.append(result[0, layout.residual + 3])
        states = result[:, : layout.size]
    assert max(seen) > 0.1


@pytest.mark.slow
@pytest.mark.skipif(find_spec("coal") is None, reason="coal is not installed")
def test_contacts_as_data_move_linkages_alike() -> None:
    """A shape that touches nothing makes contacts data: with stops, dry friction and a wrench."""
    box = '<collision><origin xyz="0 0 {}"/><geometry><box size="1 1 1"/></geometry></collision>'
    text = LEG.replace('<link name="ground"/>', f'<link name="ground">{box.format(-9)}</link>')
    trunk = body("trunk", 4.0, 0.0, 0.0, 0.02)
    text = text.replace(trunk, trunk.replace("</link>", box.format(5) + "</link>"))
    text = text.replace('<axis xyz="1 0 0"/>', '<axis xyz="1 0 0"/><dynamics friction="0.5"/>')
    model = rm.load(text.replace('lower="-10"', 'lower="0.55"', 1))
    q, v = above(model, 0.6, -1.0, 0.02), np.array([-5.0, 0.3, 0.0, 0.0])
    options = {
        "duration": 0.03, "ground": [rm.Ground(0.6, restitution=0.2), rm.Ground(height=-1.0)],
        "contacts": [FOOT], "stops": ["up"], "f_ext": {"trunk": [0.0, 1.0, 0.0, 5.0, 0.0, -3.0]},
    }  # fmt: skip
    program = rm.simulate(model, q, v, **options)
    data = rm.simulate(model, q, v, collisions=[("trunk", "ground")], **options)
    assert program.q[:, 0].min() == pytest.approx(0.55, abs=1e-6)
    assert program.contact_forces[:, 0, 2].max() > 1e3
    np.testing.assert_allclose(data.q, program.q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(data.v, program.v, rtol=0, atol=1e-6)
    np.testing.assert_allclose(data.contact_forces, program.contact_forces, rtol=1e-6, atol=1e-4)
    assert [event[1:] for event in data.events] == [event[1:] for event in program.events]


@pytest.mark.tables
@pytest.mark.skipif(find_spec("coal") is None, reason="coal is not installed")
def test_contacts_as_data_move_ball_joints_alike() -> None:
    """On a floating base: rigid, compliant, moving ground and heights; the same events."""
    box = '<collision><origin xyz="0 0 {}"/><geometry><box size="1 1 1"/></geometry></collision>'
    trunk = body("trunk", 3.0, 0.02, 0.0, 0.08).replace("</link>", box.format(40) + "</link>")
    model = rm.load(
        f'<robot name="r"><link name="world">{box.format(-50)}</link>{trunk}'
        + '<joint name="free" type="floating"><parent link="world"/><child link="trunk"/></joint>'
        + body("arm", 1.0, 0.0, -0.2, 0.02)
        + '<joint name="s" type="spherical"><parent link="trunk"/><child link="arm"/>'
        '<origin xyz="0.1 0 -0.1"/></joint></robot>'
    )
    q, v = model.neutral(), np.random.default_rng(1).standard_normal(model.nv)
    q[2] = 0.62
    points = [
        ("arm", (0, 0, -0.4)),
        ("trunk", (-0.3, 0.2, -0.5)),
        ("trunk", (-0.3, -0.2, -0.5), 0.05),
    ]
    for ground in (
        rm.Ground(0.6, restitution=0.4),
        rm.Ground(0.6, stiffness=2e4, damping=20.0),
        rm.Ground(0.4, static_friction=0.6, velocity=(0.5, 0.0, 0.0)),
        rm.Ground(height=np.zeros((3, 3)), spacing=2.0, origin=(-2.0, -2.0)),
    ):
        options = {"duration": 0.4, "ground": ground, "contacts": points}
        program = rm.simulate(model, q, v, **options)
        data = rm.simulate(model, q, v, collisions=[("trunk", "world")], **options)
        np.testing.assert_allclose(data.q, program.q, rtol=0, atol=1e-10)
        np.testing.assert_allclose(data.contact_forces, program.contact_forces, atol=1e-5)
        assert len(program.events) >= 5
        assert data.events == program.events


@pytest.mark.slow_cases("-5.0--0.2", "-12.0--1.0")
@pytest.mark.parametrize(("hip", "drive"), [(-5.0, -0.2), (-12.0, -1.0), (-20.0, -1.0)])
def test_drives_of_linkages_start_from_rest(leg: rm.Model, hip: float, drive: float) -> None:
    """What else moves does not hold a linkage; of second order."""
    q = leg.configuration({"hip": 0.6, "drive": -1.0})
    v, tau = np.array([0.0, 0.0, hip, 0.0]), np.array([0.0, 0.0, 0.0, drive])
    exact = rm.simulate(leg, q, v, tau=tau, duration=0.02, method="dop853").q[-1]
    off = []
    for step in (1e-3, 5e-4):
        motion = rm.simulate(leg, q, v, tau=tau, duration=0.02, step=step, method="time_stepping")
        off.append(np.abs(motion.q[-1] - exact).max())
    assert off[0] <= 2e-3
    assert off[1] <= 0.3 * off[0]


@pytest.mark.slow
def test_steps_of_simulations_are_those_of_rollouts(leg: rm.Model) -> None:
    motion = landing(leg, 3.0, 1e-3)
    options = {"ground": rm.Ground(), "contacts": [FOOT]}
    q, v = q_and_v(rm.rollout(leg, motion.q[0], motion.v[0], np.zeros((100, 4)), 1e-3, **options))
    np.testing.assert_allclose(q, motion.q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(v, motion.v, rtol=0, atol=1e-7)
    for method in ("rk4", "semi_implicit_euler"):
        q, v = q_and_v(
            rm.rollout(leg, motion.q[0], motion.v[0], np.zeros((50, 4)), 1e-3, method=method)
        )
        same = rm.simulate(leg, motion.q[0], motion.v[0], duration=0.05, step=1e-3, method=method)
        np.testing.assert_allclose(q, same.q, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_a_toggle_keeps_its_energy() -> None:
    """A leg that collapses without friction, against minimal coordinates; of second order."""
    leg = oracles.Leg()
    model = rm.load(leg.text)
    exact, _ = oracles.collapsing_leg(leg, 0.3, -0.6, 0.25, steps=4000)
    off, energy = [], []
    for step in (1e-3, 5e-4):
        motion = rm.simulate(
            model, exact.positions[0], duration=0.25, step=step, ground=rm.Ground(friction=0.0),
            contacts=[leg.foot],
        )  # fmt: skip
        off.append(np.abs(motion.q[-1] - exact.positions[-1]).max())
        energy.append(abs(motion.energy[-1] / motion.energy[0] - 1.0))
    assert off[0] <= 1e-4
    assert off[1] <= 0.3 * off[0]
    assert energy[0] <= 1e-5


def spring(stiffness: float, friction: float) -> rm.Model:
    return rm.load(
        '<robot name="s"><link name="ground"/>' + body("mass", 1.0, 0.0, 0.0, 0.01)
        + '<joint name="x" type="prismatic"><parent link="ground"/><child link="mass"/>'
        '<axis xyz="1 0 0"/><limit lower="-9" upper="9" effort="1" velocity="99"/>'
        f'<dynamics spring_stiffness="{stiffness}" friction="{friction}"/></joint></robot>'
    )  # fmt: skip


@pytest.mark.slow_cases("0.001", "0.01")
@pytest.mark.parametrize("step", [1e-3, 1e-2])
def test_springs_keep_their_energy(step: float) -> None:
    model = spring(100.0, 0.0)
    motion = rm.simulate(model, [0.1], duration=10.0, step=step, method="time_stepping")
    np.testing.assert_allclose(motion.energy, 0.5, rtol=1e-11)
    euler = rm.simulate(model, [0.1], duration=10.0, step=1e-3, method="semi_implicit_euler")
    assert np.abs(euler.energy / 0.5 - 1.0).max() <= 0.01  # it oscillates, without drift


@pytest.mark.slow
def test_dry_friction_holds_where_it_should() -> None:
    times = np.array([5.0])
    rest = float(oracles.dry_friction_spring(times).positions[-1])
    model = spring(100.0, 4.0)
    off = [
        abs(float(rm.simulate(model, [0.5], duration=5.0, step=step).q[-1, 0]) - rest)
        for step in (1e-3, 2.5e-4)
    ]
    assert off[0] <= 1e-4
    assert off[1] <= 1e-5


@pytest.mark.slow
def test_rebounds_keep_their_energy() -> None:
    ball = rm.load(
        f'<robot name="b">{body("ball", 1.0, 0.0, 0.0, 0.01)}</robot>', floating_base=True
    )
    q = ball.neutral()
    q[2] = 0.5
    ground = rm.Ground(friction=0.0, restitution=1.0)
    motion = rm.simulate(ball, q, duration=10.0, step=1e-3, ground=ground, contacts=["ball"])
    assert risen(motion.energy) <= 1e-12
    assert motion.energy[-1] >= (1.0 - 2e-4) * motion.energy[0]


@pytest.mark.slow
@pytest.mark.parametrize("gap", few([1e-4, 2e-3], 1e-4))
def test_collisions_follow_each_other(gap: float) -> None:
    """A row of balls hands its velocity on within a step; simulations and rollouts alike."""
    ball = body("ball{0}", 1.0, 0.0, 0.0, 1e-3).replace(
        "</link>", '<collision><geometry><sphere radius="0.05"/></geometry>'
        '<surface friction="0" restitution="1"/></collision></link>'
    ) + slide("x{0}", "ground", "ball{0}", "1 0 0")  # fmt: skip
    text = '<robot name="row"><link name="ground"/>' + "".join(ball.format(n) for n in range(3))
    model = rm.load(text + "</robot>", gravity=(0.0, 0.0, 0.0))
    q, v = np.array([-0.01003, 0.1 + gap, 0.2 + 2.0 * gap]), np.array([1.0, 0.0, 0.0])
    motion = rm.simulate(model, q, v, duration=0.05, step=1e-3, collisions=True)
    np.testing.assert_allclose(motion.v[-1], v[::-1], rtol=0, atol=1e-12)
    made = rm.rollout(model, q, v, np.zeros((50, 3)), 1e-3, collisions=True)
    np.testing.assert_allclose(made.q, motion.q, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_compliant_ground_without_damping_keeps_energy() -> None:
    """Bounces win nothing, and lose what is of second order in the step."""
    ball = rm.load(
        f'<robot name="b">{body("ball", 1.0, 0.0, 0.0, 0.01)}</robot>', floating_base=True
    )
    q, lost = ball.neutral(), []
    q[2] = 0.1
    for step in (2e-3, 1e-3):
        ground = rm.Ground(friction=0.0, stiffness=1e3)
        motion = rm.simulate(ball, q, duration=3.0, step=step, ground=ground, contacts=["ball"])
        energy = motion.energy + 0.5e3 * np.minimum(motion.q[:, 2], 0.0) ** 2
        assert risen(energy) <= 1e-13
        lost.append(1.0 - energy[-1] / energy[0])
    assert 0.0 < lost[1] <= 0.4 * lost[0] <= 0.02


@pytest.mark.slow
def test_points_that_cannot_move_feel_nothing() -> None:
    """On a pivot, on a link that is fixed to the world; beside one that lands."""
    text = '<robot name="r"><link name="world"/>' + body("post", 1.0, 0.0, 0.0, 1.0)
    text += '<joint name="f" type="fixed"><parent link="world"/><child link="post"/>'
    text += '<origin rpy="0.3 0.2 0.1"/></joint>' + body("rod", 1.0, 0.0, -0.5, 0.1)
    model = rm.load(text + hinge("j", "post", "rod", "0 0 0", "true", 0.0) + "</robot>")
    fixed, tip = ["rod", "post", ("rod", (0.0, 1.0, 0.0))], ("rod", (0.0, 0.0, -1.0))

    def motion(**options: Any) -> rm.motion.Trajectory:
        return rm.simulate(model, [1.2], duration=0.4, method="time_stepping", **options)

    deep = motion(ground=rm.Ground(height=0.1), contacts=fixed)
    np.testing.assert_allclose(deep.q, motion().q, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(deep.contact_forces, 0.0)
    ground = rm.Ground(height=-0.6)
    one, more = (motion(ground=ground, contacts=[*some, tip]) for some in ([], fixed))
    np.testing.assert_allclose(more.q, one.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(more.contact_forces[:, 3, 2], one.contact_forces[:, 0, 2], atol=1e-6)
    np.testing.assert_array_equal(more.contact_forces[:, :3], 0.0)
    assert one.contact_forces.max() > 1.0


@pytest.mark.slow
def test_limp_robots_are_solved() -> None:
    """Eight sweeps leave most steps on straight legs unsolved: these are solved on."""
    model = rm.robots.load("mini_cheetah")
    feet = [f"{leg}_foot_contact" for leg in ("HR", "HL", "FR", "FL")]
    q = model.neutral()
    q[2] += 0.005 - min(rm.frame_pose(model, q, foot)[2, 3] for foot in feet)
    v = 0.05 * np.random.default_rng(0).standard_normal((4, model.nv))
    made = rm.rollout(
        model, q, v, np.zeros((100, model.nv)), 1e-3, ground=rm.Ground(), contacts=feet,
    )  # fmt: skip
    assert made.contact_residual.max() <= 1e-10
    assert made.contact_forces[..., 2].sum(axis=-1).max() > 9.0 * model.mass


@pytest.mark.slow
def test_belts_static_friction_and_compliance() -> None:
    text = f'<robot name="b">{body("box", 2.0, 0.0, 0.0, 0.01)}</robot>'
    box = rm.load(text, floating_base=True)
    corners = [("box", (x, y, 0.0)) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    belt = rm.Ground(friction=0.4, velocity=(1.5, 0.0, 0.0))
    motion = rm.simulate(box, box.neutral(), duration=0.6, ground=belt, contacts=corners)
    late = 1.5 / (0.4 * 9.81)
    expected = np.minimum(0.4 * 9.81 * motion.times, 1.5)
    np.testing.assert_allclose(motion.v[:, 3], expected, rtol=0, atol=1e-6 + 4e-3 * 1.5)
    assert motion.v[motion.times > late + 2e-3, 3] == pytest.approx(1.5, abs=1e-9)
    rough = rm.Ground(friction=0.3, static_friction=0.6)
    for force, moves in ((0.55, False), (0.65, True)):
        tau = np.array([0.0, 0.0, 0.0, force * 2.0 * 9.81, 0.0, 0.0])
        motion = rm.simulate(
            box, box.neutral(), tau=tau, duration=0.2, ground=rough, contacts=corners
        )
        a = (force - 0.3) * 9.81 if moves else 0.0
        assert motion.v[-1, 3] == pytest.approx(0.2 * a, abs=2e-2 * (1.0 if moves else 1e-8))
    soft = rm.Ground(stiffness=2e3, damping=50.0)
    motion = rm.simulate(box, box.neutral(), duration=3.0, ground=soft, contacts=corners)
    assert motion.q[-1, 2] == pytest.approx(-2.0 * 9.81 / (4 * 2e3), rel=1e-6)
    assert math.isclose(motion.contact_forces[-1, :, 2].sum(), 2.0 * 9.81, rel_tol=1e-6)


@pytest.mark.slow_cases("planar_leg_linkage", "four_bar")
@pytest.mark.parametrize("name", ["four_bar", "planar_leg_linkage"])
def test_rollouts_pass_change_points_at_any_speed(name: str) -> None:
    """Parallelograms that swing through their flat positions: none is lost, energy stays."""
    model = rm.robots.load(name)
    rng = np.random.default_rng(11)
    q = np.array([model.random_configuration(rng) for _ in range(100)])
    tau = np.zeros((150, model.nv))
    for speed in (3.0, 10.0, 25.0):
        v = speed * rng.standard_normal((len(q), model.nv))
        states = q_and_v(
            rm.rollout(
                model, q, v, tau, 1e-3, method="time_stepping", friction=False, passive=False
            )
        )
        kinetic, potential = rm.energy(model, *states)
        total = kinetic + potential
        assert np.all(np.isfinite(total))
        off = np.abs(total - total[:, :1]).max(axis=1) / kinetic.max(axis=1)
        assert np.quantile(off, 0.9) <= (5e-6 if speed < 5.0 else 1e-3)
