"""Loops that leave no motion, as simulators take them: their links are one body."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robomodel.description import Description, Joint, Limits, Pose, Rows3, Vec3
from robomodel.errors import suspect
from robomodel.model.joints import Array
from robomodel.model.mobility.problem import RigidError
from robomodel.spatial import from_quaternion


def welded(description: Description, error: RigidError, *, strict: bool) -> Description:
    """The description with the joints of a rigid cluster fixed where its loops close.

    Its loops and couplings go. That is warned of, and refused under ``strict``. Raises the error
    itself where couplings alone leave no motion, and for planar and screw joints.
    """
    stand = error.positions
    joints = {joint.name: joint for joint in description.joints}
    if stand is None or any(joints[name].type in ("planar", "screw") for name in stand):
        raise error
    what = error.message.partition(";")[0]
    suspect(
        f"{what}; read as a rigid assembly, its joints fixed where the loops close",
        error.source,
        strict=strict,
    )
    gone = error.conditions
    return replace(
        description,
        joints=tuple(
            _fixed(joint, stand[joint.name]) if joint.name in stand else joint
            for joint in description.joints
        ),
        loops=tuple(loop for loop in description.loops if loop.name not in gone),
        couplings=tuple(each for each in description.couplings if each.name not in gone),
    )


def _fixed(joint: Joint, position: Sequence[float]) -> Joint:
    """A joint held at a position."""
    length = math.hypot(*joint.axis)
    axis = np.array(joint.axis) / length
    rotation, xyz = np.array(joint.origin.rotation), np.array(joint.origin.xyz)
    match joint.type:
        case "prismatic":
            xyz = xyz + rotation @ (position[0] * axis)
        case "revolute" | "continuous":
            half = position[0] / 2
            rotation = rotation @ _turn([*(math.sin(half) * axis), math.cos(half)])
        case "spherical":
            rotation = rotation @ _turn(position)
        case "floating":
            xyz = xyz + rotation @ np.array(position[:3])
            rotation = rotation @ _turn(position[3:])
    return replace(
        joint,
        type="fixed",
        origin=Pose(_vector(xyz), _rows(rotation)),
        axis=(1.0, 0.0, 0.0),
        limits=Limits(),
        mimic=None,
        independent=None,
        initial=None,
        damping=0.0,
        friction=0.0,
        stiffness=0.0,
        reference=0.0,
        armature=0.0,
        rotor=None,
    )


def _turn(quaternion: Sequence[float]) -> Array:
    """The rotation matrix of a unit quaternion x, y, z, w."""
    return np.array(from_quaternion(*quaternion).rows)


def _vector(x: Array) -> Vec3:
    a, b, c = x.tolist()
    return a, b, c


def _rows(x: Array) -> Rows3:
    a, b, c = (_vector(row) for row in x)
    return a, b, c
