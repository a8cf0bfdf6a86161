"""Published facts of the shipped robots, and their files read by lxml alone."""

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from lxml import etree

from robomodel import robots

FACTS = json.loads((Path(__file__).parent / "data" / "facts.json").read_text(encoding="utf-8"))

FLOATING = ["jvrc1", "mini_cheetah", "mit_humanoid", "tello", "tello_with_arms"]

GROUNDED = ["belt_leg", "mit_humanoid_leg", "planar_leg_linkage", "teleop_arm"]

ON_A_BASE = ["crank_rocker", "five_bar", "four_bar", "puma560", "six_bar"]

ROOTS = (
    dict.fromkeys(FLOATING, "world")
    | dict.fromkeys(GROUNDED, "ground")
    | dict.fromkeys(ON_A_BASE, "base")
    | {"parallel_ankle": "shank"}
)

ROBOTS = sorted(ROOTS)

TELLOS = ["tello", "tello_with_arms"]

PUBLISHED = [*FLOATING, "mit_humanoid_leg", "planar_leg_linkage", "teleop_arm"]

INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


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
