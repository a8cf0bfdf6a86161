"""The shipped robots: files, read by lxml alone, against the published facts; models; chains."""

import re
from collections import Counter

import numpy as np
import pytest
from lxml import etree
from robot_facts import (
    FACTS,
    INERTIA,
    PUBLISHED,
    ROBOTS,
    ROOTS,
    TELLOS,
    dependent,
    end,
    independent,
    numbers,
    placement,
    read,
    turn,
)

import robomodel as rm
from robomodel import robots

CRANKS = dict.fromkeys(TELLOS, 6)  # massless, so that the differentials can be said with rods

# ---- Every file ----------------------------------------------------------------------------------


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
        limited = joint.find("limit") is not None
        assert joint.get("type") in (
            {"revolute"} if limited else {"floating", "continuous", "fixed"}
        )
        assert not limited or name == "parallel_ankle"  # the publications give none


# ---- The published robots ------------------------------------------------------------------------


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


# ---- PUMA 560 ------------------------------------------------------------------------------------


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
        np.testing.assert_allclose(rm.crba(model, q, backend="numpy"), M, rtol=0, atol=1e-13)
        np.testing.assert_allclose(rm.bias_force(model, q, 0 * q), gravity, rtol=0, atol=1e-12)


def test_puma_at_the_textbook_pose():
    """Corke, Robotics, Vision and Control: gravity's torques, and M with the motors' inertia."""
    model, motor = robots.load("puma560"), FACTS["puma560"]["motor"]
    nominal = np.array([0, np.pi / 4, np.pi, 0, np.pi / 4, 0])
    np.testing.assert_allclose(
        rm.bias_force(model, nominal, np.zeros(6)), [0, 31.6399, 6.0351, 0, 0.0283, 0], atol=5.1e-5
    )
    M = rm.crba(model, nominal, backend="numpy") + np.diag(np.square(motor["G"]) * motor["Jm"])
    expected = [
        [3.6594, -0.4044, 0.1006, -0.0025, 0, 0],
        [-0.4044, 4.4137, 0.3509, 0, 0.0024, 0],
        [0.1006, 0.3509, 0.9378, 0, 0.0015, 0],
        [-0.0025, 0, 0, 0.1925, 0, 0],
        [0, 0.0024, 0.0015, 0, 0.1713, 0],
        [0, 0, 0, 0, 0, 0.1941],
    ]
    np.testing.assert_allclose(M, expected, atol=5.1e-5)
