"""Robots as other programs write them, and how far two models differ."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation
from texts import four_bar, joint, link, robot

import robomodel as rm

NUMPY = {"backend": "numpy"}


def gap(one, other, seeds=3, **options):
    """How much two models differ in mass matrix and bias at closed configurations of the first."""
    worst = 0.0
    for seed in range(seeds):
        q = one.random_configuration(seed, base_pose="random")
        v = np.random.default_rng(seed).normal(size=one.nv)
        for function, arguments in ((rm.crba, (q,)), (rm.bias_force, (q, v))):
            ours, theirs = (function(m, *arguments, **NUMPY, **options) for m in (one, other))
            worst = max(worst, np.abs(ours - theirs).max() / (1 + np.abs(theirs).max()))
    return worst


def said(caught):
    return "\n".join(str(each.message) for each in caught)


def frame(name, parent, xyz, mass="1e-9"):
    weight = (
        f'<inertial><mass value="{mass}"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" '
        'izz="0"/></inertial>'
    )
    return link(name, weight) + joint(f"{name}_frame", parent, name, xyz, kind="fixed")


def drake(*elements):
    return four_bar(*elements, closing="").replace("<robot", '<robot xmlns:drake="urn:drake"', 1)


SPRUNG = "".join(
    f'<drake:linear_spring_damper_{word} value="{value}"/>'
    for word, value in (("free_length", 0.4), ("stiffness", 30), ("damping", 2))
)


def placed(rotation):
    return " ".join(map(repr, map(float, rotation.as_euler("xyz"))))


def chain(*more):
    """Two arms on a base whose tips meet at position zero, with links turned anyhow."""
    turns = Rotation.random(3, random_state=1)
    # the links' frames: turned by A, B, C in the base; the hinges' axes are z of the base
    a, b, c = turns
    axes = [" ".join(map(repr, map(float, each.inv().apply([0, 0, 1])))) for each in turns]
    elbow = a.inv().apply([0.5, 0.3, 0.0])
    return robot(
        link("one"),
        link("two"),
        link("three"),
        joint("j_one", "base", "one", rpy=placed(a), axis=axes[0]),
        joint(
            "j_two",
            "one",
            "two",
            " ".join(map(repr, map(float, elbow))),
            rpy=placed(a.inv() * b),
            axis=axes[1],
        ),
        joint("j_three", "base", "three", "1 0 0", rpy=placed(c), axis=axes[2]),
        *more,
    ), turns


def plugin(
    leader="j_one", follower="j_three", more="<multiplier>-2</multiplier><offset>0.3</offset>"
):
    return (
        '\n<gazebo><plugin name="m" filename="libroboticsgroup_gazebo_mimic_joint_plugin.so">'
        f"<joint>{leader}</joint><mimicJoint>{follower}</mimicJoint>{more}</plugin></gazebo>"
    )
