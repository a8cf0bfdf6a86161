"""Contact as a user would check it: rebounds, standing, balances of momentum and energy, rest."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence

import numpy as np
import pinocchio as pin
import pytest
from cases import few
from mechanisms import MechanismError, random_mechanism
from numpy.typing import NDArray
from scipy.spatial import ConvexHull
from test_contact import BOTTOM, G, at_rest, block
from test_contact_rollouts import FEET, standing
from texts import joint, link, robot

import robomodel as rm
from robomodel.dynamics.contact.complementarity import ArrayProblem

Array = NDArray[np.float64]
SOLES = [
    (f"{side}-{end}_contact", (0.0, y, 0.0))
    for side in ("left", "right")
    for end in ("toe", "heel")
    for y in (-0.02, 0.02)
]
RAIL = """<robot name="hopper"><link name="world"/>
<link name="ground"><inertial><mass value="1"/><inertia ixx="0.001" iyy="0.001" izz="0.001"
 ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="rail" type="prismatic" independent="true"><parent link="world"/><child link="ground"/>
<origin rpy="0 1.5707963267948966 0"/><axis xyz="-1 0 0"/>
<limit lower="-5" upper="5" effort="1" velocity="10"/></joint></robot>"""


def held(
    model: rm.Model, q: Array, stiffness: float, damping: float, first: int = 6, alike: bool = False
):
    """PD on all joints but those of the first velocities, per inertia that they move, or alike."""
    inertia = 1.0 if alike else np.diagonal(rm.crba(model, q))

    def tau(t: float, at: Array, v: Array) -> Array:
        away = inertia * (-stiffness * model.difference(q, at) - damping * v)
        return np.concatenate([np.zeros(first), away[first:]])

    return tau


def centre_of_pressure(model: rm.Model, q: Array, points: Sequence, forces: Array) -> Array:
    places = np.array([rm.frame_pose(model, q, point)[:2, 3] for point in points])
    return np.asarray(forces[:, 2] @ places / forces[:, 2].sum())


# ---- what textbooks say --------------------------------------------------------------------------


@pytest.mark.slow
def test_all_rebounds_of_a_ball() -> None:
    """Each takes e times as long as the one before, and reaches e² as high."""
    ball = rm.load(
        '<robot name="ball"><link name="ball"><inertial><mass value="1"/><inertia ixx="0.004" '
        'iyy="0.004" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>',
        floating_base=True,
    )
    e, drop = 0.7, 0.5
    motion = rm.simulate(
        ball, at_rest(ball, drop + 0.1), duration=1.15,
        ground=rm.Ground(restitution=e), contacts=[("ball", (0, 0, 0), 0.1)],
    )  # fmt: skip
    hits = motion.times[:-1][motion.contact_forces[:, 0, 2] > 0.0]
    fall = math.sqrt(2 * drop / G)
    expected = [fall]
    while len(expected) < 3:
        expected.append(expected[-1] + 2 * fall * e ** len(expected))
    np.testing.assert_allclose(hits[:3], expected, atol=8e-3)  # a step early each
    height = motion.q[:, 2] - 0.1
    for n, (start, end) in enumerate(itertools.pairwise(hits[:3])):
        between = (motion.times > start) & (motion.times < end)
        assert height[between].max() == pytest.approx(drop * e ** (2 * n + 2), rel=2e-2)


@pytest.mark.slow
def test_a_sliding_rod_jams() -> None:
    """Painlevé's rod, where no finite force obeys Coulomb: its end sticks within one step."""
    rod = rm.load(
        '<robot name="rod"><link name="rod"><inertial><mass value="1"/><inertia '
        f'ixx="{1 / 3}" iyy="{1 / 3}" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        "</robot>",
        floating_base=True,
    )
    angle, end = math.pi / 2 - 1.0, ("rod", (0.0, 0.0, -1.0))
    q = rod.neutral()
    q[3:] = 0.0, math.sin(angle / 2), 0.0, math.cos(angle / 2)
    q[2] = math.cos(angle)
    for way in (1.0, -1.0):
        v = np.zeros(6)
        v[3:] = rm.frame_pose(rod, q, "rod")[:3, :3].T @ [way, 0.0, 0.0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            a, _ = rm.contact_aba(rod, q, v, np.zeros(6), [end], friction=2.0)
        rises = []
        for step in (5e-4, 1e-3):
            motion = rm.simulate(
                rod, q, v, duration=8 * step, step=step, ground=rm.Ground(friction=2.0),
                contacts=[end],
            )  # fmt: skip
            assert motion.contact_residual.max() <= 1e-10
            rises.append(np.diff(motion.energy).max())
        assert rises[1] <= 1e-6  # of 9 J, in the step after it has jammed
        assert rises[0] <= max(0.3 * rises[1], 0.0)  # of second order in the step; none in sliding
        pose = rm.frame_pose(rod, motion.q[1], end)[:3, :3]
        slip = pose @ rm.frame_velocity(rod, motion.q[1], motion.v[1], end)[3:]
        jammed = bool(np.isnan(a).all())
        assert jammed == (abs(slip[0]) < 1e-2)  # an impact without a collision
        assert jammed == (motion.contact_forces[0, 0, 2] > 100.0)
        if jammed:
            break
    else:
        pytest.fail("one of both ways jams")


@pytest.mark.parametrize("friction", few([0.4, 2.0], 0.4))
def test_a_pendulum_rebounds_from_the_ground(friction: float) -> None:
    """Its end moves along one line: where friction would hold it, it rebounds without."""
    model = rm.load(robot(link("rod"), joint("j", "base", "rod", kind="continuous", axis="0 1 0")))
    end = [("rod", (0.5, 0.0, 0.0))]
    ground = rm.Ground(friction=friction, restitution=0.5, height=-0.3)
    motion = rm.simulate(model, [0.0], duration=0.7, ground=ground, contacts=end)
    hit = int(np.argmax(np.diff(motion.v[:, 0]) < -1.0))
    assert motion.v[hit + 1, 0] == pytest.approx(-0.5 * motion.v[hit, 0], rel=2e-2)
    assert motion.contact_residual.max() <= 1e-10
    assert np.abs(motion.contact_forces).max() < 5e3
    assert np.all(np.diff(motion.energy) < 1e-5 * motion.kinetic.max())
    q = rm.rollout(model, [0.0], [0.0], np.zeros((700, 1)), 1e-3, ground=ground, contacts=end).q
    np.testing.assert_allclose(q, motion.q, atol=1e-9)


# ---- robots that stand ---------------------------------------------------------------------------


@pytest.mark.slow
def test_tello_stands() -> None:
    """On eight points, through its differentials: weight and moments balance, no foot is pulled."""
    model = rm.robots.load("tello")
    q = model.neutral()
    q[2] -= min(rm.frame_pose(model, q, point)[2, 3] for point in SOLES)
    motion = rm.simulate(
        model, q, tau=held(model, q, 4e3, 1e2), hold=True, duration=0.4,
        ground=rm.Ground(), contacts=SOLES,
    )  # fmt: skip
    late = motion.contact_forces[-20:]
    weight = np.array([0, 0, model.mass * G])
    np.testing.assert_allclose(late.sum(axis=1).mean(axis=0), weight, atol=0.1 * weight[2])
    momentum = rm.dynamics.centroidal_momentum(model, motion.q, motion.v)[:, 3:]
    gained = 1e-3 * (motion.contact_forces.sum(axis=1) - weight)
    np.testing.assert_allclose(np.diff(momentum, axis=0)[200:], gained[200:], atol=1e-5)
    assert np.all(motion.contact_forces[..., 2] >= -1e-9)
    slip = np.hypot(*np.moveaxis(motion.contact_forces[..., :2], -1, 0))
    assert np.all(slip <= 0.8 * motion.contact_forces[..., 2] + 1e-6)
    assert motion.contact_residual.max() <= 1e-10
    assert motion.residual.max() <= 1e-12
    at = motion.q[-1]
    hull = ConvexHull([rm.frame_pose(model, at, point)[:2, 3] for point in SOLES])
    centre = centre_of_pressure(model, at, SOLES, late[-1])
    assert np.all(hull.equations[:, :2] @ centre + hull.equations[:, 2] <= 1e-9)


@pytest.mark.slow
def test_a_four_bar_leg_stands() -> None:
    """On a rail, under PD: it comes to rest, and the ground bears it."""
    model = rm.load(rm.robots.path("planar_leg_linkage"), extend=RAIL)
    q = model.configuration({"thigh_joint": -0.5, "shank_driver_joint": 1.0})
    foot = "end-effector"
    q[0] -= rm.frame_pose(model, q, foot)[2, 3]
    motion = rm.simulate(
        model, q, tau=held(model, q, 1e4, 2e2, first=1), hold=True, duration=1.5,
        ground=rm.Ground(), contacts=[foot], step=2e-3,
    )  # fmt: skip
    np.testing.assert_allclose(motion.v[-1], 0.0, atol=1e-9)
    assert motion.contact_forces[-1, 0, 2] == pytest.approx(model.mass * G, rel=1e-9)
    assert motion.contact_residual.max() <= 1e-10
    assert motion.residual.max() <= 1e-12


# ---- balances ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_momentum_by_an_independent_library() -> None:
    """Pinocchio's momentum of a landing changes by weight and contact forces."""
    text = "<robot name='two'>" + "".join(
        f'<link name="{name}"><inertial><origin xyz="0.02 0.01 {z}"/><mass value="{m}"/><inertia '
        f'ixx="0.03" iyy="0.02" izz="0.025" ixy="0.001" ixz="0" iyz="0"/></inertial></link>'
        for name, m, z in (("body", 3.0, 0.0), ("arm", 1.0, -0.2), ("hand", 0.5, -0.1))
    )
    for name, parent, child, axis in (("a", "body", "arm", "0 1 0"), ("b", "arm", "hand", "1 0 0")):
        text += (
            f'<joint name="{name}" type="continuous"><parent link="{parent}"/><child '
            f'link="{child}"/><origin xyz="0.05 0 -0.2"/><axis xyz="{axis}"/></joint>'
        )
    text += "</robot>"
    model = rm.load(text, floating_base=True)
    other = pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
    data = other.createData()
    points = [("body", (x, y, -0.1)) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    points.append(("hand", (0.0, 0.0, -0.2), 0.05))
    errors = []
    for step in (1e-3, 5e-4):
        motion = rm.simulate(
            model, at_rest(model, 0.7), np.array([0.5, 1.0, -0.3, 0.4, 0.0, -1.0, 2.0, -1.0]),
            duration=0.3, step=step, ground=rm.Ground(friction=0.6), contacts=points,
        )  # fmt: skip
        linear = []
        for q, v in zip(motion.q, motion.v, strict=True):
            turns = np.ravel([[math.cos(a), math.sin(a)] for a in q[7:]])
            speed = np.concatenate([v[3:6], v[:3], v[6:]])
            momentum = pin.computeCentroidalMomentum(
                other, data, np.concatenate([q[:7], turns]), speed
            )
            linear.append(np.array(momentum.linear))
        pushes = motion.contact_forces.sum(axis=1) - [0, 0, 4.5 * G]
        off = np.abs(np.diff(linear, axis=0) - step * pushes).max(axis=1)
        collides = np.abs(np.diff(motion.v, axis=0)).max(axis=1) > 0.5
        assert 1 <= np.count_nonzero(collides) <= 3
        assert motion.contact_forces[..., 2].max() > 100.0
        errors.append((off[collides].max(), off[~collides].max()))
    (first, smooth), (finer, smoother) = errors
    assert first < 2e-3
    assert finer < 0.65 * first  # of first order: bias and J are those of before the collision
    assert smooth < 5e-6
    assert smoother < 0.3 * smooth  # of second order


@pytest.mark.slow
def test_a_block_keeps_the_balance_to_rounding() -> None:
    model = block()
    v = np.random.default_rng(0).standard_normal(6)
    ground = rm.Ground(friction=0.6, restitution=0.8)
    motion = rm.simulate(model, at_rest(model, 0.3), v, duration=0.6, ground=ground)
    turn = np.array([rm.frame_pose(model, at, "block")[:3, :3] for at in motion.q])
    momentum = 2.0 * np.einsum("tij,tj->ti", turn, motion.v[:, 3:])
    pushes = motion.contact_forces.sum(axis=1) - [0, 0, 2.0 * G]
    np.testing.assert_allclose(np.diff(momentum, axis=0), 1e-3 * pushes, atol=1e-12)
    assert np.all(np.diff(motion.energy) <= 1e-9)


def drop(seed: int) -> tuple[rm.Model, Array, Array, rm.Ground, list]:
    """A random robot, with loops or without, just above a ground; None where there is none."""
    rng = np.random.default_rng(seed)
    found = random_mechanism(
        rng, n_joints=int(rng.integers(1, 7)), floating_base=bool(rng.random() < 0.8)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        model = rm.load(found.text, floating_base=found.floating_base)
    q = model.random_configuration(rng, near=model.neutral())
    links = [
        each.name
        for each in model.description.links
        if each.inertial is not None and model.frame(each.name).body >= 0
    ]
    points = [
        (
            links[rng.integers(len(links))],
            tuple(0.1 * rng.standard_normal(3)),
            float(rng.choice([0.0, 0.05])),
        )
        for _ in range(int(rng.integers(1, 9)))
    ]
    low = min(rm.frame_pose(model, q, (at, x))[2, 3] - r for at, x, r in points)
    ground = rm.Ground(
        friction=float(rng.uniform(0.1, 1.5)),
        restitution=float(rng.choice([0, 0.5, 1.0])),
        height=low - 0.002,
    )
    rng.random()
    v = rng.standard_normal(model.nv)
    if model.floating_base:
        v[:6] *= 2.0
        v[5] -= 1.0
    return model, q, v, ground, points


@pytest.mark.slow
def test_rebounds_in_steps_win_no_energy() -> None:
    """A robot that bounces without loss: what is won is of second order in the step."""
    model, q, v, ground, points = drop(81)
    assert ground.restitution == 1.0
    rises = []
    for step in (1e-3, 2.5e-4):
        motion = rm.simulate(model, q, v, duration=0.3, step=step, ground=ground, contacts=points)
        assert motion.contact_forces.max() > 100.0
        rises.append(np.diff(motion.energy).max() / motion.kinetic.max())
    assert rises[0] < 5e-5  # 6e-4 where energy is not counted from before the rebound
    assert rises[1] < 1e-5


@pytest.mark.slow
def test_linkages_that_turn_win_no_energy() -> None:
    """Without forces, 0.08 rad a step: kinetic energy wavers no more than that of open chains."""
    model = rm.robots.load("crank_rocker", gravity=(0.0, 0.0, 0.0))
    motion = rm.simulate(
        model, model.configuration(), [20.0], duration=0.2, step=2e-3, method="time_stepping"
    )
    assert np.ptp(motion.kinetic) < 0.07 * motion.kinetic[0]  # 0.15 with a G that stands still


@pytest.mark.slow
@pytest.mark.parametrize("rolled", [False, True])
def test_a_six_bar_that_rushes_through_dead_points_wins_no_energy(rolled: bool) -> None:
    """Joints at 40 rad/s, ten changes of the independent ones; 54 % with a G that stands still."""
    model = rm.robots.load("six_bar", gravity=(0.0, -9.81, 0.0))
    q, v = model.configuration(), np.zeros(model.nv)
    if rolled:
        tau = np.zeros((3000, model.nv))
        made = rm.rollout(model, q, v, tau, 1e-3, method="time_stepping")
        kinetic, potential = rm.energy(model, made.q, made.v)
    else:
        motion = rm.simulate(model, q, v, duration=3.0, method="time_stepping")
        kinetic, potential = rm.energy(model, motion.q, motion.v)
    total = kinetic + potential
    assert np.max(total - np.minimum.accumulate(total)) < 1e-4 * kinetic.max()
    assert np.ptp(total) < 1e-3 * kinetic.max()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(8), 63])
def test_random_robots_win_no_energy(seed: int) -> None:
    """Loops, gears and trees that fall on points and spheres, with friction and restitution."""
    try:
        model, q, v, ground, points = drop(seed)
    except (MechanismError, rm.DescriptionError):
        pytest.skip("no robot")
    options = {"step": 5e-4, "ground": ground, "contacts": points}
    try:
        motion = rm.simulate(model, q, v, duration=0.1, **options)
    except rm.motion.SimulationError as error:
        motion = rm.simulate(model, q, v, duration=0.5 * error.time, **options)
    assert motion.contact_residual.max() <= 1e-10
    assert motion.residual.max() < 1e-10
    energy, most = motion.energy, motion.kinetic.max() + 1e-9
    assert np.diff(energy).max() <= 1e-3 * most
    assert energy.max() - energy[0] <= 3e-3 * most


@pytest.mark.slow
def test_batches_of_drops_win_no_energy() -> None:
    """Cheetahs in rollouts, all at random, limp."""
    model = rm.robots.load("mini_cheetah")
    rng = np.random.default_rng(0)
    q = model.integrate(standing(model, 0.05), 0.2 * rng.standard_normal((64, model.nv)))
    lowest = np.min([rm.frame_pose(model, q, foot)[:, 2, 3] for foot in FEET], axis=0)
    q[:, 2] += 0.02 - lowest
    v = rng.standard_normal((64, model.nv))
    made = rm.rollout(
        model, q, v, np.zeros((300, model.nv)), 1e-3, ground=rm.Ground(friction=0.7),
        contacts=FEET, friction=False, passive=False,
    )  # fmt: skip
    assert made.contact_residual.max() <= 1e-10
    kinetic, potential = rm.energy(model, made.q, made.v)
    total = kinetic + potential
    assert np.diff(total, axis=1).max() <= 1e-3 * kinetic.max()
    lands = made.contact_forces.any(axis=(1, 2, 3))
    assert 50 < np.count_nonzero(lands) < 64
    assert np.all(total[lands, -1] < total[lands, 0])
    # the others are still in flight after 0.3 s: of second order in the step
    off = np.abs(total[~lands, -1] - total[~lands, 0])
    fine = rm.rollout(
        model, q[~lands], v[~lands], np.zeros((600, model.nv)), 5e-4, method="time_stepping",
        friction=False, passive=False,
    )  # fmt: skip
    kinetic, potential = rm.energy(model, *(x[:, [0, -1]] for x in (fine.q, fine.v)))
    assert off.max() <= 1e-7 * kinetic.max()
    assert np.abs(np.diff(kinetic + potential)).max() <= 0.3 * off.max()


# ---- rest ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_block_at_rest_stays() -> None:
    """On an incline, below the angle of friction: nothing creeps."""
    t = math.radians(20.0)
    model = block(gravity=(G * math.sin(t), 0.0, -G * math.cos(t)))
    motion = rm.simulate(
        model, at_rest(model, 0.1), duration=6.0, step=1e-2, ground=rm.Ground(friction=0.5),
        contacts=BOTTOM,
    )  # fmt: skip
    assert np.abs(motion.v).max() < 1e-11
    assert np.abs(motion.q - motion.q[0]).max() < 1e-11


@pytest.mark.tables
def test_a_robot_at_rest_for_a_minute() -> None:
    """Mini Cheetah under PD: after it has settled there is neither jitter nor creep."""
    model = rm.robots.load("mini_cheetah")
    q = standing(model, 0.0)
    motion = rm.simulate(
        model, q, tau=held(model, q, 60.0, 4.0, alike=True), hold=True, duration=60.0, step=2e-3,
        ground=rm.Ground(), contacts=FEET,
    )  # fmt: skip
    late = motion.times > 20.0
    assert np.abs(motion.v[late]).max() < 1e-7
    assert np.abs(motion.q[late] - motion.q[-1]).max() < 1e-7
    forces = motion.contact_forces[late[1:]]
    assert np.ptp(forces, axis=0).max() < 1e-4
    np.testing.assert_allclose(forces.sum(axis=1)[-1], [0, 0, model.mass * G], atol=1e-4)
    assert motion.contact_residual.max() <= 1e-10


def biped() -> rm.Model:
    """Two legs with box feet; springs and dampers hold their joints bent."""
    parts = [
        link("torso", solid(20.0, (0.2, 0.3, 0.5), "0 0 0.25")),
        joint("free", "base", "torso", kind="floating"),
    ]
    bent = {"hip": -0.4, "knee": 0.8, "ankle": -0.4}
    for side, y in (("left", 0.1), ("right", -0.1)):
        names = ["torso", *(f"{side}_{part}" for part in ("thigh", "shank", "foot"))]
        parts += [
            link(names[1], solid(4.0, (0.1, 0.1, 0.4), "0 0 -0.2")),
            link(names[2], solid(3.0, (0.1, 0.1, 0.4), "0 0 -0.2")),
            link(names[3], solid(1.0, (0.2, 0.1, 0.04), "0.03 0 -0.05")),
        ]
        for n, (kind, angle) in enumerate(bent.items()):
            more = f'<dynamics damping="400" spring_stiffness="20000" spring_reference="{angle}"/>'
            place = f"0 {y} 0" if n == 0 else "0 0 -0.4"
            parts.append(joint(f"{side}_{kind}", names[n], names[n + 1], place, axis="0 1 0",
                               mark=True, more=more))  # fmt: skip
    return rm.load(robot(*parts).encode())


def solid(mass: float, size: tuple[float, float, float], centre: str) -> str:
    x, y, z = (mass / 12 * (sum(a * a for a in size) - a * a) for a in size)
    return (
        f'<inertial><origin xyz="{centre}"/><mass value="{mass}"/><inertia ixx="{x}" iyy="{y}" '
        f'izz="{z}" ixy="0" ixz="0" iyz="0"/></inertial>'
    )


@pytest.mark.slow
def test_a_biped_stands_on_two_box_feet() -> None:
    """Eight corners whose G has a rank of 10 or so of 24: still, and without a gain of energy."""
    model = biped()
    bent = dict.fromkeys(("left_hip", "right_hip", "left_ankle", "right_ankle"), -0.4)
    q = model.configuration({**bent, "left_knee": 0.8, "right_knee": 0.8})
    corners = [
        (f"{side}_foot", (0.03 + x, y, -0.07))
        for side in ("left", "right") for x in (-0.1, 0.1) for y in (-0.05, 0.05)
    ]  # fmt: skip
    q[2] -= min(rm.frame_pose(model, q, corner)[2, 3] for corner in corners)
    options = {"ground": rm.Ground(), "contacts": corners}
    motion = rm.simulate(model, q, duration=2.0, step=1e-3, **options)
    assert motion.contact_residual.max() <= 1e-10
    np.testing.assert_allclose(motion.v[-1], 0.0, atol=1e-9)
    np.testing.assert_allclose(
        motion.contact_forces[-1].sum(axis=0), [0.0, 0.0, model.mass * G], atol=1e-7
    )
    energy = np.sum(rm.energy(model, motion.q, motion.v), axis=0)
    assert np.diff(energy).max() <= 1e-9 * energy[0]
    rolled = rm.rollout(model, q, np.zeros(model.nv), np.zeros((200, model.nv)), 1e-3, **options)
    np.testing.assert_allclose(rolled.q, motion.q[:201], rtol=0, atol=1e-10)


# ---- what is not solved --------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_not_solved_ends_with_a_story(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time, residual, the worst contact, what may help, and the motion up to there."""
    from robomodel.dynamics.contact.gauss_seidel import Sweeps
    from robomodel.motion import contact_solving

    def give_up(_problems: ArrayProblem, starts: Array, *_more: object) -> tuple[Array, Array]:
        return starts, np.ones(len(starts))

    monkeypatch.setattr(contact_solving, "solve_each", give_up)
    monkeypatch.setattr(Sweeps, "sweep", lambda _self, x, slips: (list(x), list(slips)))
    monkeypatch.setattr(Sweeps, "newton", lambda _self, x, *_more: list(x))
    model = block()
    with pytest.raises(
        rm.motion.SimulationError, match=r"solved for to 1 of the velocities"
    ) as told:
        rm.simulate(
            model, at_rest(model, 0.4), duration=0.5, ground=rm.Ground(friction=0.7),
            contacts=BOTTOM,
        )  # fmt: skip
    story = str(told.value)
    assert "4 contacts" in story
    assert "a shorter step" in story
    assert told.value.time == pytest.approx(math.sqrt(2 * 0.3 / G), abs=1e-2)
    assert told.value.trajectory.q[-1, 2] == pytest.approx(0.1, abs=3e-2)
    assert len(told.value.trajectory.contact_forces) == len(told.value.trajectory) - 1


@pytest.mark.slow
@pytest.mark.parametrize("number", [int, np.float32, np.int64, np.float64])
def test_coefficients_are_numbers_of_any_type(number: type) -> None:
    """A block slides alike whether friction is 1 or 1.0, and so with a compliant ground."""
    model, points = block(), BOTTOM
    q, v = at_rest(model, 0.1), np.zeros(6)
    v[3] = 1.0
    for given, meant in (
        ({"friction": number(1)}, {"friction": 1.0}),
        ({"friction": number(1), "static_friction": number(2)},
         {"friction": 1.0, "static_friction": 2.0}),
        ({"stiffness": number(5000), "damping": number(10), "height": number(0)},
         {"stiffness": 5000.0, "damping": 10.0, "height": 0.0}),
        ({"restitution": number(1), "velocity": [number(1), 0, 0]},
         {"restitution": 1.0, "velocity": [1.0, 0.0, 0.0]}),
    ):  # fmt: skip
        one, other = (
            rm.simulate(model, q, v, duration=0.02, ground=rm.Ground(**options), contacts=points).q[
                -1
            ]
            for options in (given, meant)
        )
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["function", "box"])
def test_a_ball_rolls_on_at_its_speed(how: str) -> None:
    """On contacts of a function, and on a box: the point of contact does not turn with the ball."""
    floor = (
        '<link name="world"><collision><origin xyz="0 0 -0.5"/><geometry><box size="99 99 1"/>'
        "</geometry></collision></link>"
    )
    inertia = 'ixx="1.6e-5" iyy="1.6e-5" izz="1.6e-5" ixy="0" ixz="0" iyz="0"'
    model = rm.load(
        f'<robot name="r">{floor}<link name="ball"><inertial><mass value="0.1"/>'
        f'<inertia {inertia}/></inertial><collision><geometry><sphere radius="0.02"/></geometry>'
        '</collision></link><joint name="free" type="floating"><parent link="world"/>'
        '<child link="ball"/></joint></robot>'
    )
    q, v = model.neutral(), np.array([0.0, 50.0, 0.0, 1.0, 0.0, 0.0])
    q[2] = 0.02

    def touch(q: Array, v: Array) -> list[rm.motion.Contact]:
        return [rm.motion.Contact("ball", (q[0], q[1], 0.0), (0.0, 0.0, 1.0), q[2] - 0.02)]

    options = {"collisions": True} if how == "box" else {"contacts": touch}
    kinetic = rm.energy(model, q, v)[0]
    run = rm.simulate(model, q, v, duration=1.0, step=5e-3, method="time_stepping", **options)
    assert rm.energy(model, run.q[-1], run.v[-1])[0] == pytest.approx(kinetic, rel=1e-12)
    np.testing.assert_allclose(run.q[-1, :3], [1.0, 0.0, 0.02], rtol=0, atol=1e-12)
