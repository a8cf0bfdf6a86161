"""The shipped robots: files, read by lxml alone, against the published facts; models; chains."""

import io
import json
import math
import re
import time
from collections import Counter
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from lxml import etree
from oracle import Oracle

import robomodel as rm
from robomodel import robots

FACTS = json.loads((Path(__file__).parent / "data" / "facts.json").read_text(encoding="utf-8"))
FLOATING = ["jvrc1", "mini_cheetah", "mit_humanoid", "tello", "tello_with_arms"]
GROUNDED = ["belt_leg", "mit_humanoid_leg", "planar_leg_linkage", "teleop_arm"]
ON_A_BASE = ["crank_rocker", "five_bar", "four_bar", "puma560", "six_bar"]
ROOTS = (
    dict.fromkeys(FLOATING, "world")
    | dict.fromkeys(GROUNDED, "ground")
    | dict.fromkeys(ON_A_BASE, "base")
)
ROBOTS = sorted(ROOTS)
TELLOS = ["tello", "tello_with_arms"]
PUBLISHED = [*FLOATING, "mit_humanoid_leg", "planar_leg_linkage", "teleop_arm"]
CRANKS = dict.fromkeys(TELLOS, 6)  # massless, so that the differentials can be said with rods
PLANAR = {
    "crank_rocker": {"crank_joint"},
    "five_bar": {"J1", "J2"},
    "four_bar": {"joint1"},
    "planar_leg_linkage": {"thigh_joint", "shank_driver_joint"},
    "six_bar": {"joint1", "joint2", "joint3"},
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
        if element.find("joint") is None:
            assert {end(element, "predecessor"), end(element, "successor")} <= set(robot.links)
        else:
            assert {term.get("name") for term in element} <= set(robot.joints)
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
        assert numbers(inertial.find("origin"), "xyz") == (body["com"] or [0, 0, 0])
        assert numbers(inertial.find("origin"), "rpy") == [0, 0, 0]
        assert [float(inertial.find("inertia").get(key)) for key in INERTIA] == body["inertia"]
    masses = [
        float(mass.get("value")) for link in robot.links.values() for mass in link.iter("mass")
    ]
    assert len(masses) == len(facts["bodies"])
    assert sum(masses) == pytest.approx(facts["total_mass"], rel=1e-14)
    assert len(robot.links) == (
        1 + len(facts["bodies"]) + len(facts["points"]) + CRANKS.get(name, 0)
    )


@pytest.mark.parametrize("name", PUBLISHED)
def test_joints_are_as_published(name):
    robot, facts = read(name), FACTS[name]
    for body in facts["bodies"]:
        joint = robot.joints[body["joint"]]
        parent = ROOTS[name] if body["parent"] == "ground" else body["parent"]
        assert (end(joint, "parent"), end(joint, "child")) == (parent, body["name"])
        assert numbers(joint.find("origin"), "xyz") == body["xyz"]
        rotation, found = np.array(body.get("rotation", np.eye(3))), placement(joint)[:3, :3]
        digits = 2e-16 if np.all(rotation == np.round(rotation)) else 5e-13
        np.testing.assert_allclose(found, rotation, rtol=0, atol=digits)
        if body["axis"] is None:
            assert joint.get("type") == "floating"
        else:
            assert joint.get("type") == "continuous"
            assert numbers(joint.find("axis"), "xyz") == body["axis"]
    moving = [joint for joint in robot.joints.values() if joint.get("type") != "fixed"]
    cranks = CRANKS.get(name, 0)
    assert len(moving) == len(facts["bodies"]) + cranks
    floating = sum(joint.get("type") == "floating" for joint in moving)
    assert len(moving) + 5 * floating == facts["spanning_dof"] + cranks
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


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name != "planar_leg_linkage"])
def test_gears_and_belts_are_as_published(name):
    """Every coupling, solved for the rotor's joint, gives the published coefficients."""
    robot = read(name)
    expected = {
        body["joint"]: body["coupled_to"] for body in FACTS[name]["bodies"] if "coupled_to" in body
    }
    gears = {}
    for coupling_name, coupling in robot.couplings.items():
        equation = terms(robot, coupling)
        rotors = [joint for joint in equation if joint in expected]
        if not rotors:
            assert name in TELLOS, coupling_name  # those of the differentials
            continue
        (rotor,) = rotors
        factor = equation.pop(rotor)
        gears[rotor] = {joint: -x / factor for joint, x in equation.items()}
    assert gears == expected
    drivers = {joint for gear in expected.values() for joint in gear}
    differential = {joint for joint in independent(robot) if "rotor" in joint}
    assert independent(robot) == drivers | differential
    assert len(differential) == (8 if name in TELLOS else 0)
    assert set(expected) <= dependent(robot)


def terms(robot, coupling):
    """A coupling as joint → factor, their sum being zero (or a constant, which none has)."""
    assert coupling.find("offset") is None
    if coupling.find("joint") is not None:
        return {term.get("name"): float(term.get("ratio", "1")) for term in coupling}
    ratio = float(coupling.find("ratio").get("value"))
    equation = Counter()
    for link, factor in ((end(coupling, "predecessor"), -ratio), (end(coupling, "successor"), 1.0)):
        for joint in joints_above(robot, link):
            equation[joint] += factor
    shared = set(joints_above(robot, end(coupling, "predecessor"))) & set(
        joints_above(robot, end(coupling, "successor"))
    )
    return {joint: factor for joint, factor in equation.items() if joint not in shared}


def joints_above(robot, link):
    while link in robot.joint_of:
        yield robot.joint_of[link]
        link = end(robot.joints[robot.joint_of[link]], "parent")


def test_the_belt_leg_is_one_of_the_humanoid():
    """Its links, rotors and belts from the thigh down; the hip's joint stands on the ground."""
    leg, whole = read("belt_leg"), read("mit_humanoid")
    facts = {body["name"]: body for body in FACTS["mit_humanoid"]["bodies"]}
    bodies = [link for link in leg.links if leg.links[link].find("inertial") is not None]
    assert bodies == ["hip_ry_link", "hip_ry_rotor", *(
        f"{joint}_{kind}" for joint in ("knee", "ankle") for kind in ("link", "rotor")
    )]  # fmt: skip
    for body in bodies:
        assert etree.tostring(leg.links[body][0]).split() == (
            etree.tostring(whole.links[f"left_{body}"][0]).split()
        )
        joint, there = (
            robot.joints[robot.joint_of[prefix + body]]
            for robot, prefix in ((leg, ""), (whole, "left_"))
        )
        assert numbers(joint.find("axis"), "xyz") == [0, 1, 0]
        assert joint.get("independent") == there.get("independent")
        if not body.startswith("hip"):
            assert end(there, "parent") == "left_" + end(joint, "parent")
            assert numbers(joint.find("origin"), "xyz") == facts[f"left_{body}"]["xyz"]
            assert numbers(joint.find("origin"), "rpy") == [0, 0, 0]
    side = [
        numbers(leg.joints[f"hip_ry_{kind}_joint"].find("origin"), "xyz")
        for kind in ("link", "rotor")
    ]
    there = [facts[f"left_hip_ry_{kind}"]["xyz"] for kind in ("link", "rotor")]
    np.testing.assert_allclose(np.diff(side, axis=0), np.diff(there, axis=0), rtol=0, atol=1e-17)
    assert len(leg.couplings) == 3
    for name, coupling in leg.couplings.items():
        equation = {f"left_{joint}": x for joint, x in terms(leg, coupling).items()}
        assert equation == terms(whole, whole.couplings[f"left_{name}"])


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


# -- Tello's differentials --------------------------------------------------------------------

HIP = (
    "hip-clamp-to-hip-rotor-1",
    "hip-clamp-to-hip-rotor-2",
    "hip-clamp-to-gimbal",
    "gimbal-to-thigh",
)
KNEE = (
    "thigh-to-knee-ankle-rotor-1",
    "thigh-to-knee-ankle-rotor-2",
    "thigh-to-shin",
    "shin-to-foot",
)


def hip_differential(qr1, qr2, ql1, ql2):
    """The published constraint, with its constant and with rotors and links in their roles."""
    sin, cos = np.sin, np.cos
    return [
        57 / 2500 * sin(y)
        - 49 / 5000 * cos(ql1)
        - s * 399 / 20000 * sin(ql1)
        - 8 / 625 * cos(y) * cos(ql2)
        - 57 / 2500 * cos(ql1) * sin(ql2)
        - s * 7 / 625 * sin(y) * sin(ql1)
        + s * 7 / 625 * sin(ql1) * sin(ql2)
        - 8 / 625 * cos(ql1) * sin(y) * sin(ql2)
        + 3021 / 160000
        for y, s in ((qr1 / 6, 1), (qr2 / 6, -1))
    ]


def knee_ankle_differential(qr1, qr2, ql1, ql2):
    """The published constraint, with its constant, pi, and rotors and links in their roles."""
    sin, cos, pi = np.sin, np.cos, np.pi
    y1, y2 = qr1 / 6, qr2 / 6
    return [
        21 / 6250 * cos((y1 - y2) / 2 + 1979 * pi / 4500)
        - 13 / 625 * cos((y1 - y2) / 2 + 493 * pi / 1500)
        - 273 / 12500 * cos(pi / 9)
        - 7 / 2500 * sin((y1 - y2) / 2 + ql2 + 231 * pi / 500)
        + 91 / 5000 * sin(ql2 + 2 * pi / 15)
        - 147 / 50000 * sin(ql2 + pi / 45)
        + 163349 / 6250000,
        ql1 - (y1 + y2) / 2,
    ]


def hip_rotors(ql1, ql2):
    """The published inverse: the rotors' angles from those of gimbal and thigh."""
    result = []
    for s in (1, -1):
        a = 57 / 2500 - 8 / 625 * np.cos(ql1) * np.sin(ql2) - s * 7 / 625 * np.sin(ql1)
        b = -8 / 625 * np.cos(ql2)
        c = (
            49 / 5000 * np.cos(ql1)
            + s * 399 / 20000 * np.sin(ql1)
            + 57 / 2500 * np.cos(ql1) * np.sin(ql2)
            - s * 7 / 625 * np.sin(ql1) * np.sin(ql2)
            - 3021 / 160000
        )
        d = np.sqrt(a**2 + b**2 - c**2)
        result.append(6 * np.arctan2(-b * d + a * c, b * c + a * d))
    return result


def knee_ankle_rotors(ql1, ql2):
    """The published inverse: the rotors' angles from those of shin and foot."""
    alpha0, beta = np.radians(120.84), ql2 + np.radians(114)
    a = -21 / 6250 * np.sin(np.pi / 9) - 7 / 2500 * np.sin(beta)
    b = 13 / 625 - 7 / 2500 * np.cos(beta) - 21 / 6250 * np.cos(np.pi / 9)
    c = (
        273 / 12500 * np.cos(np.pi / 9)
        + 91 / 5000 * np.cos(beta)
        - 147 / 50000 * np.cos(np.pi / 9 - beta)
        - 163349 / 6250000
    )
    d = np.sqrt(a**2 + b**2 - c**2)
    turn = np.arctan2(b * d + a * c, b * c - a * d) - alpha0
    return [6 * (ql1 - turn), 6 * (ql1 + turn)]


DIFFERENTIALS = [
    (side, joints, phi, rotors)
    for side in ("left", "right")
    for joints, phi, rotors in (
        (HIP, hip_differential, hip_rotors),
        (KNEE, knee_ankle_differential, knee_ankle_rotors),
    )
]


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
        np.testing.assert_allclose(phi(*at), 0, rtol=0, atol=1e-15)
        moved = [[x + 1e-30j * (i == j) for j, x in enumerate(at)] for i in range(4)]
        K = np.imag([phi(*each) for each in moved]) / 1e-30  # (4 joints, 2 conditions, states)
        G = jacobian[:, [first + model.joint_names.index(joint) for joint in names]]
        KG = np.einsum("jcn,njv->ncv", K, G)
        assert np.max(np.abs(KG)) < 1e-12 * max(1, np.max(np.abs(G)))
        (cluster,) = (each for each in model.clusters if names[0] in each.joints)
        assert cluster.joints[:4] == tuple(names)
        assert cluster.independent == tuple(names[:2])


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


# -- PUMA 560 ---------------------------------------------------------------------------------


def denavit_hartenberg(q):
    """Frames 0 to 6 of the standard Denavit-Hartenberg parameters."""
    frames = [np.eye(4)]
    for link, theta in zip(FACTS["puma560"]["dh"], q, strict=True):
        along = np.eye(4)
        along[:3, 3] = link["a"], 0, link["d"]
        T = turn((0, 0, 1), theta) @ along @ turn((1, 0, 0), link["alpha"])
        frames.append(frames[-1] @ T)
    return frames


def test_puma_is_as_published():
    robot = read("puma560")
    for i, body in enumerate(FACTS["puma560"]["bodies"]):
        link, joint = robot.links[f"link{i + 1}"], robot.joints[f"joint{i + 1}"]
        parent = f"link{i}" if i else "base"
        assert (end(joint, "parent"), end(joint, "child")) == (parent, body["name"])
        assert numbers(joint.find("origin"), "xyz") == body["xyz"]
        np.testing.assert_allclose(placement(joint)[:3, :3], body["rotation"], rtol=0, atol=2e-16)
        assert numbers(joint.find("axis"), "xyz") == body["axis"]
        inertial = link.find("inertial")
        assert float(inertial.find("mass").get("value")) == body["mass"]
        assert numbers(inertial.find("origin"), "xyz") == body["com"]
        assert [float(inertial.find("inertia").get(key)) for key in INERTIA] == body["inertia"]


def test_puma_has_its_denavit_hartenberg_parameters():
    """Poses, mass matrix and gravity's torques from the table, by kinematics written out here."""
    model = robots.load("puma560")
    rng = np.random.default_rng(0)
    for q in rng.uniform(-np.pi, np.pi, (5, 6)):
        frames = denavit_hartenberg(q)
        M, gravity = np.zeros((6, 6)), np.zeros(6)
        for i, link in enumerate(FACTS["puma560"]["dh"]):
            # link i's frame at position zero of its joint is the next link's, and the other way
            pose = rm.frame_pose(model, q, f"link{i + 1}")
            np.testing.assert_allclose(pose, frames[i] @ turn((0, 0, 1), q[i]), rtol=0, atol=1e-14)
            R = frames[i + 1][:3, :3]
            com = (frames[i + 1] @ [*link["com"], 1])[:3]
            J = np.zeros((6, 6))
            for j in range(i + 1):
                axis, origin = frames[j][:3, 2], frames[j][:3, 3]
                J[:3, j], J[3:, j] = axis, np.cross(axis, com - origin)
            M += J[:3].T @ R @ np.diag(link["inertia_diagonal"]) @ R.T @ J[:3]
            M += link["mass"] * J[3:].T @ J[3:]
            gravity += 9.81 * link["mass"] * J[5]
        np.testing.assert_allclose(rm.crba(model, q), M, rtol=0, atol=1e-13)
        np.testing.assert_allclose(rm.bias_force(model, q, 0 * q), gravity, rtol=0, atol=1e-12)


def test_puma_at_the_textbook_pose():
    """Corke, Robotics, Vision and Control: gravity's torques, and M with the motors' inertia."""
    model, motor = robots.load("puma560"), FACTS["puma560"]["motor"]
    nominal = np.array([0, np.pi / 4, np.pi, 0, np.pi / 4, 0])
    np.testing.assert_allclose(
        rm.bias_force(model, nominal, np.zeros(6)), [0, 31.6399, 6.0351, 0, 0.0283, 0], atol=5.1e-5
    )
    M = rm.crba(model, nominal) + np.diag(np.square(motor["G"]) * motor["Jm"])
    expected = [
        [3.6594, -0.4044, 0.1006, -0.0025, 0, 0],
        [-0.4044, 4.4137, 0.3509, 0, 0.0024, 0],
        [0.1006, 0.3509, 0.9378, 0, 0.0015, 0],
        [-0.0025, 0, 0, 0.1925, 0, 0],
        [0, 0.0024, 0.0015, 0, 0.1713, 0],
        [0, 0, 0, 0, 0, 0.1941],
    ]
    np.testing.assert_allclose(M, expected, atol=5.1e-5)


# -- The models -------------------------------------------------------------------------------

DOF = {
    "belt_leg": 3,
    "crank_rocker": 1,
    "five_bar": 2,
    "four_bar": 1,
    "jvrc1": 38,
    "mini_cheetah": 18,
    "mit_humanoid": 24,
    "mit_humanoid_leg": 5,
    "planar_leg_linkage": 2,
    "puma560": 6,
    "six_bar": 3,
    "teleop_arm": 7,
    "tello": 16,
    "tello_with_arms": 24,
}


@pytest.mark.parametrize("name", ROBOTS)
def test_model(name):
    """Freedoms, mass and clusters; closed and consistent at random configurations."""
    model = rm.load(robots.path(name), strict=True)
    assert (model.name, model.nv) == (name, DOF[name])
    assert (model.floating_base is not None) == (name in FLOATING)
    if name in PUBLISHED:
        facts = FACTS[name]
        assert model.nv == facts["dof"]
        assert model.mass == pytest.approx(facts["total_mass"], rel=1e-14)
        clusters = {
            frozenset(
                model.bodies[i].name for i in cluster.bodies if "crank" not in model.bodies[i].name
            )
            for cluster in model.clusters
        }
        assert clusters == {frozenset(cluster) for cluster in facts["clusters"]}
    assert np.max(np.abs(model.residual(model.neutral())), initial=0) < 1e-15
    rng = np.random.default_rng(2)
    q = np.array([model.random_configuration(rng) for _ in range(5)])
    v, a = rng.standard_normal((2, 5, model.nv))
    assert np.max(np.abs(model.residual(q)), initial=0) < 1e-12
    tau = rm.rnea(model, q, v, a, backend="numpy")
    M, bias = rm.crba(model, q, backend="numpy"), rm.bias_force(model, q, v, backend="numpy")
    np.testing.assert_allclose(
        np.einsum("nij,nj->ni", M, a) + bias, tau, rtol=0, atol=1e-12 * np.max(np.abs(tau))
    )
    back = rm.aba(model, q, v, tau, backend="numpy")
    np.testing.assert_allclose(back, a, rtol=0, atol=1e-15 * np.max(np.linalg.cond(M)) + 1e-12)
    assert np.all(np.linalg.eigvalsh(M) > 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mit_humanoid", "tello"])
def test_compiled_equals_numpy(name):
    model = robots.load(name)
    rng = np.random.default_rng(4)
    q = np.array([model.random_configuration(rng) for _ in range(8)])
    v, x = rng.standard_normal((2, 8, model.nv))
    for function in (rm.rnea, rm.aba):
        expected = function(model, q, v, x, backend="numpy")
        np.testing.assert_allclose(
            function(model, q, v, x), expected, rtol=0, atol=1e-11 * np.max(np.abs(expected))
        )


def test_all_robots_load_quickly():
    start = time.process_time()
    for name in ROBOTS:
        robots.load(name)
    assert time.process_time() - start < 2


# -- Chains -----------------------------------------------------------------------------------


def planar_mass_matrix(n, rotors=()):
    """M of n links of 1 m and 1 kg, izz = 1, by their angles; rotors are rows of joint factors."""
    to_angles = np.tril(np.ones((n, n)))  # link i's angle is the sum of joints 1 to i

    def mass_matrix(q):
        angle = to_angles @ q
        M = to_angles.T @ to_angles
        for i in range(n):
            arm = np.where(np.arange(n) < i, 1.0, 0.5) * (np.arange(n) <= i)
            J = np.array([-np.sin(angle), np.cos(angle)]) * arm @ to_angles
            M += J.T @ J
        return M + sum(1e-4 * np.outer(row, row) for row in rotors)

    return mass_matrix


@pytest.mark.parametrize("kind", ["plain", "geared", "belt"])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_planar_chains(kind, n):
    """Inertia and gravity by hand: a rotor turns with the links before it, and by its ratios."""
    rotors = []
    for i in range(n):
        first = i - i % 2 if kind == "belt" else i
        row = np.where(np.arange(n) < first, 1.0, 0.0)
        row[first : i + 1] = {"plain": 0, "geared": 6, "belt": 18}[kind]
        rotors.append(row)
    model = robots.chain(kind, n)
    assert model.nv == model.nq == n
    assert len(model.bodies) == (n if kind == "plain" else 2 * n)
    assert len(model.clusters) == ((n + 1) // 2 if kind == "belt" else n)
    assert model.mass == n
    by_hand = planar_mass_matrix(n, [] if kind == "plain" else rotors)
    for q in np.random.default_rng(n).uniform(-np.pi, np.pi, (3, n)):
        M = rm.crba(model, q, backend="numpy")
        np.testing.assert_allclose(M, by_hand(q), rtol=0, atol=1e-13 * np.max(M))
        tip = rm.frame_pose(model, q, "tip")[:3, 3]
        angle = np.cumsum(q)
        np.testing.assert_allclose(tip, [np.cos(angle).sum(), np.sin(angle).sum(), 0], atol=1e-14)
    rest = rm.bias_force(model, np.zeros(n), np.zeros(n), backend="numpy")
    np.testing.assert_allclose(rest, 0, atol=1e-13)  # gravity along the chain
    lever = 9.81 * np.sum(np.arange(n) + 0.5)
    side = rm.bias_force(model, np.eye(n)[0] * np.pi / 2, np.zeros(n), backend="numpy")
    assert side[0] == pytest.approx(lever, rel=1e-14)


@pytest.mark.parametrize("kind", ["plain", "geared", "belt", "four_bar"])
@pytest.mark.parametrize("n", [1, 4, 5])
def test_random_chains_agree_with_the_oracle(kind, n):
    model = robots.chain(kind, n, rng=np.random.default_rng(n))
    assert model.nv == n
    text = io.StringIO()
    rm.write_urdf(model, text)
    oracle = Oracle(text.getvalue(), names=list(model.joint_names))
    rng = np.random.default_rng(1)
    q, (v, a) = model.random_configuration(rng), rng.standard_normal((2, n))
    at = oracle.state(model.joint_positions(q))
    G, g = model.constraint_jacobian(q), model.constraint_bias(q, v)
    phi, K, k = oracle.constraint(at, G @ v)
    np.testing.assert_allclose(phi, 0, atol=1e-13)
    np.testing.assert_allclose(K @ G, 0, atol=1e-11)
    np.testing.assert_allclose(K @ g, k, atol=1e-9)
    tau = oracle.project_inverse(at, G @ v, G, g, a)
    scale = np.max(np.abs(tau))
    found = rm.rnea(model, q, v, a, backend="numpy")
    np.testing.assert_allclose(found, tau, rtol=0, atol=1e-11 * scale)
    same = robots.chain(kind, n, rng=np.random.default_rng(n))
    np.testing.assert_array_equal(rm.rnea(same, q, v, a, backend="numpy"), found)


def test_chains_of_four_bars_go_round():
    model = robots.chain("four_bar", 2)
    assert (model.nv, len(model.bodies), len(model.clusters)) == (2, 6, 2)
    for angle in np.linspace(0, 2 * np.pi, 8):
        q = model.configuration({"crank_joint1": angle, "crank_joint2": -angle})
        assert np.max(np.abs(model.residual(q))) < 1e-14
        assert np.max(np.abs(model.constraint_jacobian(q))) < 3  # no dead point


@pytest.mark.slow
def test_long_chains_load():
    start = time.process_time()
    models = [robots.chain(kind, 1000) for kind in ("plain", "geared", "belt")]
    assert time.process_time() - start < 5
    assert [model.nv for model in models] == [1000, 1000, 1000]
    tau = rm.rnea(models[2], *np.zeros((3, 1000)), backend="numpy")
    np.testing.assert_allclose(tau, 0, atol=1e-9)


def test_chains_that_are_not():
    with pytest.raises(ValueError, match="no chain is of the kind 'belts'; did you mean 'belt'"):
        robots.chain("belts", 3)
    with pytest.raises(ValueError, match="at least one joint, not 0"):
        robots.chain("plain", 0)
    model = robots.chain("geared", 2, gravity=(0, 0, -1), floating_base=True)
    assert (model.nv, model.gravity) == (8, (0, 0, -1))
