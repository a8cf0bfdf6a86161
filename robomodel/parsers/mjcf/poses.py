"""How MJCF spells poses: no number where it says nothing."""

from __future__ import annotations

from robomodel.description import IDENTITY, Pose, Rows3
from robomodel.poses import quaternion_of_rotation
from robomodel.text import numbers


def pose_words(pose: Pose) -> dict[str, str]:
    """The attributes ``pos`` and ``quat`` of a pose, as far as it needs them."""
    words = {"pos": numbers(pose.xyz)} if any(pose.xyz) else {}
    return words | turn_words(pose.rotation)


def turn_words(rotation: Rows3) -> dict[str, str]:
    """The attribute ``quat`` of a rotation, if it needs one."""
    return {} if rotation == IDENTITY else {"quat": numbers(quaternion_of_rotation(rotation))}
