"""Poses of links and joints at their initial positions, and how MJCF spells poses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from robomodel.description import AT_ORIGIN, IDENTITY, ONE_DOF, Joint, Pose, Rows3, Vec3
from robomodel.model.graph import compose
from robomodel.spatial import apply, plus
from robomodel.writers.text import numbers


def unit(axis: Vec3) -> Vec3:
    """The axis with length 1."""
    size = math.hypot(*axis)
    x, y, z = (a / size for a in axis)
    return x, y, z


def along(pose: Pose, axis: Vec3, distance: float) -> Pose:
    """The point so far along an axis of the frame."""
    x, y, z = axis
    shift = (distance * x, distance * y, distance * z)
    return Pose(plus(pose.xyz, apply(pose.rotation, shift)))


def placement(row: Sequence[Joint], *, initial: bool = True) -> Pose:
    """The last child's frame in the first parent's; joints at their initial positions, or at 0."""
    pose = AT_ORIGIN
    for joint in row:
        pose = compose(pose, joint.origin)
        if initial and joint.initial and joint.type in ONE_DOF:
            pose = compose(pose, _displacement(joint, joint.initial))
    return pose


def link_pose(moved_by: Mapping[str, Joint], link: str, *, initial: bool = True) -> Pose:
    """The pose of a link in the root's frame, joints as of :func:`placement`."""
    row: list[Joint] = []
    while (joint := moved_by.get(link)) is not None:
        row.append(joint)
        link = joint.parent
    return placement(row[::-1], initial=initial)


def _displacement(joint: Joint, by: float) -> Pose:
    x, y, z = unit(joint.axis)
    along = {"prismatic": by, "screw": joint.pitch * by}.get(joint.type, 0.0)
    shift = (along * x, along * y, along * z)
    if joint.type == "prismatic":
        return Pose(shift)
    s, c = math.sin(by), math.cos(by)
    v = 2.0 * math.sin(by / 2.0) ** 2
    cosines: Rows3 = (
        (c + v * x * x, v * x * y - s * z, v * x * z + s * y),
        (v * x * y + s * z, c + v * y * y, v * y * z - s * x),
        (v * x * z - s * y, v * y * z + s * x, c + v * z * z),
    )
    return Pose(shift, cosines)


def pose_words(pose: Pose) -> dict[str, str]:
    """The attributes ``pos`` and ``quat`` of a pose, as far as it needs them."""
    words = {}
    if pose.xyz != (0.0, 0.0, 0.0):
        words["pos"] = numbers(pose.xyz)
    return words | turn_words(pose.rotation)


def turn_words(rotation: Rows3) -> dict[str, str]:
    """The attribute ``quat`` of a rotation, if it needs one."""
    return {} if rotation == IDENTITY else {"quat": numbers(_quaternion(rotation))}


def _quaternion(rotation: Rows3) -> tuple[float, float, float, float]:
    """The quaternion w, x, y, z of a rotation (rows), from its largest component."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = rotation
    w2, x2, y2, z2 = 1 + xx + yy + zz, 1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz
    largest = max(w2, x2, y2, z2)
    if largest == w2:
        found = (w2, zy - yz, xz - zx, yx - xy)
    elif largest == x2:
        found = (zy - yz, x2, xy + yx, xz + zx)
    elif largest == y2:
        found = (xz - zx, xy + yx, y2, yz + zy)
    else:
        found = (yx - xy, xz + zx, yz + zy, z2)
    size = math.hypot(*found)
    w, x, y, z = (component / size + 0.0 for component in found)
    return w, x, y, z
