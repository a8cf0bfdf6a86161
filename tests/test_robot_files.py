"""The shipped robot files, read by lxml alone, against the published facts and their own loops."""

import json
import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from lxml import etree

from robomodel import robots

ROBOTS = ["four_bar", "mini_cheetah", "planar_leg_linkage", "six_bar"]
LINKAGES = ["four_bar", "planar_leg_linkage", "six_bar"]
FACTS = json.loads((Path(__file__).parent / "data" / "facts.json").read_text(encoding="utf-8"))
PUBLISHED = ["mini_cheetah", "planar_leg_linkage"]
ROOTS = {
    "four_bar": "base",
    "mini_cheetah": "world",
    "planar_leg_linkage": "ground",
    "six_bar": "base",
}
INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


# -- A reader of these files only: elements by name, numbers as floats ------------------------


def numbers(element, attribute, default="0 0 0"):
    text = default if element is None else element.get(attribute, default)
    return [float(word) for word in text.split()]


def placement(element):
    """The 4×4 matrix of the ``<origin>`` below ``element``; identity without one."""
    origin = element.find("origin")
    (roll, pitch, yaw), xyz = numbers(origin, "rpy"), numbers(origin, "xyz")
    T = turn((0, 0, 1), yaw) @ turn((0, 1, 0), pitch) @ turn((1, 0, 0), roll)
    T[:3, 3] = xyz
    return T


def turn(axis, angle):
    """The 4×4 matrix of a rotation about a unit axis (Rodrigues)."""
    x, y, z = axis
    W = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    T = np.eye(4)
    T[:3, :3] += np.sin(angle) * W + (1 - np.cos(angle)) * W @ W
    return T


@cache
def read(name):
    root = etree.parse(str(robots.path(name))).getroot()
    by_name = {tag: {} for tag in ("link", "joint", "loop", "coupling")}
    for element in root.iterchildren(*by_name):
        assert element.get("name") not in by_name[element.tag], "a name given twice"
        by_name[element.tag][element.get("name")] = element
    joints = by_name["joint"]
    return SimpleNamespace(
        name=root.get("name"),
        links=by_name["link"],
        joints=joints,
        loops=by_name["loop"],
        couplings=by_name["coupling"],
        joint_of={end(joint, "child"): joint_name for joint_name, joint in joints.items()},
    )


def end(element, tag):
    return element.find(tag).get("link")


def independent(robot):
    return {name for name, joint in robot.joints.items() if joint.get("independent") == "true"}


def dependent(robot):
    return {name for name, joint in robot.joints.items() if joint.get("independent") == "false"}


def initial(robot):
    return {
        name: float(joint.find("initial").get("position"))
        for name, joint in robot.joints.items()
        if joint.find("initial") is not None
    }


def pose(robot, link, q):
    """The 4×4 pose of ``link`` in the root at the joint positions ``q``."""
    if link not in robot.joint_of:
        return np.eye(4)
    name = robot.joint_of[link]
    joint = robot.joints[name]
    T = pose(robot, end(joint, "parent"), q) @ placement(joint)
    if joint.get("type") == "continuous":
        T = T @ turn(numbers(joint.find("axis"), "xyz"), q[name])
    return T


def anchors(robot, loop, q):
    """The poses of a loop's two constraint frames."""
    sides = (loop.find("predecessor"), loop.find("successor"))
    return [pose(robot, side.get("link"), q) @ placement(side) for side in sides]


def gap(robot, q):
    """Predecessor's minus successor's anchor position, of all loops after one another."""
    ends = [anchors(robot, loop, q) for loop in robot.loops.values()]
    return np.concatenate([(A - B)[:3, 3] for A, B in ends])


# -- Every file -------------------------------------------------------------------------------


def test_names_and_paths():
    assert robots.names() == ROBOTS
    for name in ROBOTS:
        assert robots.path(name).is_file()
        assert read(name).name == name


def test_unknown_name():
    message = "no shipped robot is called 'mini_cheeta'; did you mean 'mini_cheetah'?"
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        robots.path("mini_cheeta")
    assert ", ".join(ROBOTS) in str(error.value)
    with pytest.raises(ValueError, match="no shipped robot"):
        robots.path("../robots/four_bar")


@pytest.mark.parametrize("name", ROBOTS)
def test_is_one_tree(name):
    robot = read(name)
    parents = {end(joint, "parent") for joint in robot.joints.values()}
    assert len(robot.joint_of) == len(robot.joints)
    assert parents | set(robot.joint_of) == set(robot.links)
    assert set(robot.links) - set(robot.joint_of) == {ROOTS[name]}
    for element in [*robot.loops.values(), *robot.couplings.values()]:
        assert {end(element, "predecessor"), end(element, "successor")} <= set(robot.links)
    for joint in robot.joints.values():
        assert joint.get("type") in {"floating", "continuous", "fixed"}
        assert joint.find("limit") is None


# -- The published robots ---------------------------------------------------------------------


@pytest.mark.parametrize("name", PUBLISHED)
def test_bodies_are_as_published(name):
    robot, facts = read(name), FACTS[name]
    for body in facts["bodies"]:
        inertial = robot.links[body["name"]].find("inertial")
        assert float(inertial.find("mass").get("value")) == body["mass"]
        assert numbers(inertial.find("origin"), "xyz") == body["com"]
        assert numbers(inertial.find("origin"), "rpy") == [0, 0, 0]
        assert [float(inertial.find("inertia").get(key)) for key in INERTIA] == body["inertia"]
    masses = [
        float(mass.get("value")) for link in robot.links.values() for mass in link.iter("mass")
    ]
    assert len(masses) == len(facts["bodies"])
    assert sum(masses) == pytest.approx(facts["total_mass"], rel=1e-14)


@pytest.mark.parametrize("name", PUBLISHED)
def test_joints_are_as_published(name):
    robot, facts = read(name), FACTS[name]
    for body in facts["bodies"]:
        joint = robot.joints[body["joint"]]
        parent = ROOTS[name] if body["parent"] == "ground" else body["parent"]
        assert (end(joint, "parent"), end(joint, "child")) == (parent, body["name"])
        assert numbers(joint.find("origin"), "xyz") == body["xyz"]
        rotation = placement(joint)[:3, :3]
        np.testing.assert_allclose(rotation, body.get("rotation", np.eye(3)), rtol=0, atol=2e-16)
        if body["axis"] is None:
            assert joint.get("type") == "floating"
        else:
            assert joint.get("type") == "continuous"
            assert numbers(joint.find("axis"), "xyz") == body["axis"]
    moving = [joint for joint in robot.joints.values() if joint.get("type") != "fixed"]
    assert len(moving) == len(facts["bodies"])
    floating = sum(joint.get("type") == "floating" for joint in moving)
    assert len(moving) + 5 * floating == facts["spanning_dof"]
    assert len(independent(robot)) + 6 * floating == facts["dof"]
    assert len(independent(robot) | dependent(robot)) + floating == len(moving)


@pytest.mark.parametrize("name", PUBLISHED)
def test_points_are_as_published(name):
    robot, facts = read(name), FACTS[name]
    for point in facts["points"]:
        joint = robot.joints[robot.joint_of[point["name"]]]
        assert joint.get("type") == "fixed"
        assert joint.get("name") == point["name"] + "_joint"
        assert end(joint, "parent") == point["body"]
        assert numbers(joint.find("origin"), "xyz") == point["offset"]
        assert numbers(joint.find("origin"), "rpy") == [0, 0, 0]
        assert len(robot.links[point["name"]]) == 0
    assert len(robot.links) == 1 + len(facts["bodies"]) + len(facts["points"])


def test_gears_are_as_published():
    robot = read("mini_cheetah")
    gears = {
        (robot.joint_of[end(gear, "predecessor")], robot.joint_of[end(gear, "successor")]): float(
            gear.find("ratio").get("value")
        )
        for gear in robot.couplings.values()
    }
    expected = {
        (link_joint, body["joint"]): ratio
        for body in FACTS["mini_cheetah"]["bodies"]
        for link_joint, ratio in body.get("coupled_to", {}).items()
    }
    assert len(robot.couplings) == 12
    assert gears == expected
    assert independent(robot) == {link_joint for link_joint, _ in gears}
    assert dependent(robot) == {rotor_joint for _, rotor_joint in gears}


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


# -- The linkages -----------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("name", "joints"),
    [
        ("four_bar", {"joint1"}),
        ("planar_leg_linkage", {"thigh_joint", "shank_driver_joint"}),
        ("six_bar", {"joint1", "joint2", "joint3"}),
    ],
)
def test_linkage_starts_closed_and_regular(name, joints):
    robot = read(name)
    assert independent(robot) == joints
    q = initial(robot)
    assert set(q) == independent(robot) | dependent(robot)
    (loop,) = robot.loops.values()
    assert loop.get("type") == "revolute"
    predecessor, successor = anchors(robot, loop, q)
    axis = numbers(loop.find("axis"), "xyz")
    assert axis == [0, 0, 1]
    np.testing.assert_allclose(predecessor[:3, 3], successor[:3, 3], rtol=0, atol=5e-16)
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
