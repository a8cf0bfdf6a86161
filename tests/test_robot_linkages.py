"""The shipped linkages and differentials: geometry, branches, published constraints."""

import math

import numpy as np
import pytest
from robot_facts import (
    DIFFERENTIALS,
    FACTS,
    HIP,
    INERTIA,
    TELLOS,
    dependent,
    end,
    independent,
    numbers,
    placement,
    pose,
    read,
)

import robomodel as rm
from robomodel import robots

PLANAR = {
    "crank_rocker": {"crank_joint"},
    "five_bar": {"J1", "J2"},
    "four_bar": {"joint1"},
    "planar_leg_linkage": {"thigh_joint", "shank_driver_joint"},
    "six_bar": {"joint1", "joint2", "joint3"},
}

# ---- A reader of these files only: elements by name, numbers as floats ---------------------------


def initial(robot):
    return {
        name: float(joint.find("initial").get("position"))
        for name, joint in robot.joints.items()
        if joint.find("initial") is not None
    }


def anchors(robot, loop, q):
    """The poses of a loop's two constraint frames."""
    sides = (loop.find("predecessor"), loop.find("successor"))
    return [pose(robot, side.get("link"), q) @ placement(side) for side in sides]


def gap(robot, q):
    """Predecessor's minus successor's anchor position, of all loops after one another."""
    ends = [anchors(robot, loop, q) for loop in robot.loops.values()]
    return np.concatenate([(A - B)[:3, 3] for A, B in ends])


# ---- The published robots ------------------------------------------------------------------------


def test_leg_loop_is_the_published_constraint():
    robot = read("planar_leg_linkage")
    a, b = (FACTS["planar_leg_linkage"]["parallelogram"][key] for key in "ab")
    rng = np.random.default_rng(0)
    for thigh, q1, q2, q3 in rng.uniform(-np.pi, np.pi, (100, 4)):
        q = {
            "thigh_joint": thigh,
            "shank_driver_joint": q1,
            "shank_support_joint": q2,
            "foot_joint": q3,
        }
        phi = [
            a * np.cos(q1) + b * np.cos(q1 + q3) - b - a * np.cos(q2),
            a * np.sin(q1) + b * np.sin(q1 + q3) - a * np.sin(q2),
            0.0,
        ]
        in_thigh = pose(robot, "thigh", q)[:3, :3].T @ gap(robot, q)
        np.testing.assert_allclose(in_thigh, phi, rtol=0, atol=1e-15)


# ---- The linkages --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["four_bar", "six_bar"])
def test_linkage_geometry(name):
    robot = read(name)
    expected = {
        "four_bar": {1: ("base", 0), 2: ("link1", 0.5), 3: ("base", 1)},
        "six_bar": {
            1: ("base", 0),
            2: ("link1", 0.1),
            3: ("link2", 0.2),
            4: ("base", 0),
            5: ("link4", 0.4),
        },
    }[name]
    assert set(robot.joints) == {f"joint{i}" for i in expected}
    assert set(robot.links) == {"base"} | {f"link{i}" for i in expected}
    for i, (parent, x) in expected.items():
        joint, inertial = robot.joints[f"joint{i}"], robot.links[f"link{i}"].find("inertial")
        assert (end(joint, "parent"), end(joint, "child")) == (parent, f"link{i}")
        assert numbers(joint.find("origin"), "xyz") == [x, 0, 0]
        assert numbers(joint.find("origin"), "rpy") == [0, 0, 0]
        assert numbers(joint.find("axis"), "xyz") == [0, 0, 1]
        assert inertial.find("origin") is None
        assert float(inertial.find("mass").get("value")) == 3.3
        inertia = [float(inertial.find("inertia").get(key)) for key in INERTIA]
        assert inertia == [0.011253, 0, 0, 0.036203, 0, 0.042673]
    sides = [
        (side.get("link"), numbers(side.find("origin"), "xyz"))
        for side in robot.loops["loop"]
        if side.tag != "axis"
    ]
    assert (
        sides
        == {
            "four_bar": [("link2", [1, 0, 0]), ("link3", [0.5, 0, 0])],
            "six_bar": [("link3", [0.3, 0, 0]), ("link5", [0.5, 0, 0])],
        }[name]
    )


@pytest.mark.parametrize("name", PLANAR)
def test_linkage_starts_closed_and_regular(name):
    robot = read(name)
    assert independent(robot) == PLANAR[name]
    q = initial(robot)
    assert set(q) == independent(robot) | dependent(robot)
    (loop,) = robot.loops.values()
    assert loop.get("type") == "revolute"
    predecessor, successor = anchors(robot, loop, q)
    axis = numbers(loop.find("axis"), "xyz")
    assert axis == [0, 0, 1]
    np.testing.assert_allclose(predecessor[:3, 3], successor[:3, 3], rtol=0, atol=1e-15)
    np.testing.assert_array_equal(predecessor[:3, :3] @ axis, successor[:3, :3] @ axis)

    # The dependent joints move the ends of the loop apart in every direction of the plane.
    step = 1e-6
    K_d = np.transpose(
        [
            (gap(robot, q | {j: q[j] + step}) - gap(robot, q | {j: q[j] - step}))[:2] / (2 * step)
            for j in sorted(dependent(robot))
        ]
    )
    assert K_d.shape == (2, 2)
    assert np.linalg.cond(K_d) < 10


@pytest.mark.parametrize("name", ["four_bar", "planar_leg_linkage"])
def test_parallelogram_stays_on_its_branch(name):
    robot = read(name)
    crank, coupler, rocker = {
        "four_bar": ("joint1", "joint2", "joint3"),
        "planar_leg_linkage": ("shank_driver_joint", "foot_joint", "shank_support_joint"),
    }[name]
    start = initial(robot)
    assert start[crank] == start[rocker] == -start[coupler] == np.pi / 4
    for angle in np.linspace(0, 2 * np.pi, 25):
        q = start | {crank: angle, rocker: angle, coupler: -angle}
        np.testing.assert_allclose(gap(robot, q), 0, rtol=0, atol=1e-15)


def test_five_bar_geometry():
    robot, facts = read("five_bar"), FACTS["five_bar"]
    lengths = facts["link_lengths"]
    expected = {
        "J1": ("base", "link1", [*facts["A"], 0]),
        "J2": ("base", "link3", [*facts["B"], 0]),
        "J3": ("link1", "link2", [lengths[0], 0, 0]),
        "J4": ("link3", "link4", [lengths[2], 0, 0]),
    }
    assert set(robot.joints) == set(expected)
    for name, (parent, child, xyz) in expected.items():
        joint = robot.joints[name]
        assert (end(joint, "parent"), end(joint, "child")) == (parent, child)
        assert numbers(joint.find("origin"), "xyz") == xyz
        assert numbers(joint.find("axis"), "xyz") == [0, 0, 1]
    for i in range(4):
        inertial = robot.links[f"link{i + 1}"].find("inertial")
        assert float(inertial.find("mass").get("value")) == facts["mass"][i]
        assert numbers(inertial.find("origin"), "xyz") == [*facts["com"][i], 0]
        inertia = [float(inertial.find("inertia").get(key)) for key in INERTIA]
        x, y, z = facts["inertia_diagonal"][i]
        assert inertia == [x, 0, 0, y, 0, z]
    loop = robot.loops["J5"]
    assert (end(loop, "predecessor"), end(loop, "successor")) == ("link2", "link4")
    ends = [numbers(side.find("origin"), "xyz") for side in loop if side.tag != "axis"]
    assert ends == [[lengths[1], 0, 0], [lengths[3], 0, 0]]


def test_five_bar_has_two_branches():
    model = robots.load("five_bar")
    lengths = FACTS["five_bar"]["link_lengths"]

    def points(q):
        """C, D and E in the plane."""
        at = [rm.frame_pose(model, q, (f"link{i + 1}", (lengths[i], 0, 0))) for i in (0, 2, 1)]
        return [each[:2, 3] for each in at]

    def side(q):
        c, d, e = points(q)
        return (d - c)[0] * (e - c)[1] - (d - c)[1] * (e - c)[0]

    left = model.neutral()
    drives = {"J1": 2.0, "J2": 1.0}
    np.testing.assert_allclose(left, model.configuration(drives), rtol=0, atol=1e-15)
    c, d, e = points(left)
    assert side(left) > 0.1  # E to the left of the line from C to D
    mirrored = c + 2 * (d - c) * ((e - c) @ (d - c)) / ((d - c) @ (d - c)) - (e - c)
    turned = [math.atan2(*(mirrored - x)[::-1]) for x in (c, d)]
    guess = np.array([2.0, turned[0] - 1.9, 1.0, turned[1] - 1.1])
    right = model.configuration(drives, guess=guess)
    assert side(right) == pytest.approx(-side(left), rel=1e-12)
    np.testing.assert_allclose(points(right)[2], mirrored, rtol=0, atol=1e-14)
    for q in (left, right):
        assert np.max(np.abs(model.residual(q))) < 1e-15
    np.testing.assert_array_equal(model.gravity, (0, -9.81, 0))


def test_crank_rocker():
    model = robots.load("crank_rocker")
    q = model.neutral()
    ends = {"crank": (1, 0, 0), "coupler": (2, 0, 0), "rocker": (math.sqrt(13), 0, 0)}
    at = {name: rm.frame_pose(model, q, (name, end))[:2, 3] for name, end in ends.items()}
    np.testing.assert_allclose(at["crank"], (1, 0), rtol=0, atol=1e-15)
    np.testing.assert_allclose(at["coupler"], (1, 2), rtol=0, atol=2e-15)
    np.testing.assert_allclose(at["rocker"], (1, 2), rtol=0, atol=2e-15)
    assert rm.frame_pose(model, q, "rocker")[0, 3] == 4
    for body, mass in zip(model.bodies, (1, 2, 4), strict=True):
        length = ends[body.name][0]
        assert (body.mass, body.com) == (mass, (length / 2, 0, 0))
        assert body.inertia[2][2] == pytest.approx(mass * length**2 / 12, rel=1e-15)
    np.testing.assert_array_equal(model.gravity, (0, -9.81, 0))
    turns = [model.configuration({"crank_joint": angle}) for angle in np.linspace(0, 2 * np.pi, 9)]
    assert np.max(np.abs(model.residual(np.array(turns)))) < 1e-14  # the crank goes round


# ---- Tello's differentials -----------------------------------------------------------------------


@pytest.mark.slow_cases("tello_with_arms")
@pytest.mark.parametrize("name", TELLOS)
def test_differentials_are_the_published_constraints(name):
    """φ = 0 and K G = 0 on closed configurations, of whatever branch; K by complex steps."""
    model = robots.load(name)
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(10)])
    positions, jacobian = model.joint_positions(q), model.constraint_jacobian(q)
    first = sum(joint.nv - 1 for joint in model.joints[:1])
    for side, joints, phi, _ in DIFFERENTIALS:
        names = [f"{side}-{joint}" for joint in joints]
        at = [positions[joint] for joint in names]
        far = max(1.0, *(float(np.max(np.abs(x))) for x in at))  # turns of rotors
        np.testing.assert_allclose(phi(*at), 0, rtol=0, atol=1e-15 * far)
        moved = [[x + 1e-30j * (i == j) for j, x in enumerate(at)] for i in range(4)]
        K = np.imag([phi(*each) for each in moved]) / 1e-30  # (4 joints, 2 conditions, states)
        G = jacobian[:, [first + model.joint_names.index(joint) for joint in names]]
        KG = np.einsum("jcn,njv->ncv", K, G)
        assert np.max(np.abs(KG)) < 1e-12 * max(1, np.max(np.abs(G)))
        (cluster,) = (each for each in model.clusters if names[0] in each.joints)
        assert cluster.joints[:4] == tuple(names)
        assert cluster.independent == tuple(names[:2])


@pytest.mark.slow_cases("tello_with_arms")
@pytest.mark.parametrize("name", TELLOS)
def test_differentials_stay_on_the_branch_of_the_robot(name):
    """About the initial position the closed inverses give the rotors, and closing the links."""
    model = robots.load(name)
    start = model.joint_positions(model.neutral())
    for _, joints, _, rotors in DIFFERENTIALS[:2]:
        np.testing.assert_allclose([start[f"left-{joint}"] for joint in joints[2:]], 0, atol=1e-15)
        np.testing.assert_allclose(
            [start[f"left-{joint}"] for joint in joints[:2]], rotors(0, 0), rtol=0, atol=1e-14
        )
    assert start["left-hip-clamp-to-hip-rotor-1"] == pytest.approx(0.94112097, abs=5e-9)
    assert start["left-thigh-to-knee-ankle-rotor-1"] == pytest.approx(2.75e-4, abs=5e-8)
    rng = np.random.default_rng(1)
    for _ in range(4):
        wanted = {}
        for side, joints, _, rotors in DIFFERENTIALS:
            ql = rng.uniform(-0.4, 0.4, 2)
            wanted |= {
                f"{side}-{joint}": x for joint, x in zip(joints, (*rotors(*ql), *ql), strict=True)
            }
        driven = {joint: x for joint, x in wanted.items() if "rotor" in joint}
        found = model.joint_positions(model.configuration(driven))
        for joint, x in wanted.items():
            assert found[joint] == pytest.approx(x, abs=1e-11)
    # a reduction: a turn of a rotor is about a tenth of one of the links
    G = model.constraint_jacobian(model.neutral())
    links = [5 + model.joint_names.index(f"left-{joint}") for joint in HIP[2:]]
    gears = np.abs(G[links][:, [7, 8]])
    assert np.all((gears > 0.08) & (gears < 0.1))
