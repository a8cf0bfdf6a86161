"""Where an SDF file shows a robot: at position zero, or where its loops are closed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping

from robomodel.description import (
    IDENTITY,
    ONE_DOF,
    Description,
    LinkCoupling,
    Loop,
    Pose,
)
from robomodel.errors import DescriptionWarning
from robomodel.model.build import build
from robomodel.model.constraints.loop_joints import universal_frame
from robomodel.poses import cosine, link_poses, off_axis, placed, relative
from robomodel.spatial import apply, minus, transpose
from robomodel.text import difference

LOOPS = {
    **{"revolute": "revolute", "continuous": "continuous", "prismatic": "prismatic"},
    **{"fixed": "fixed", "spherical": "ball", "universal": "universal"},
}
"""The loops that SDF can say, and by which joint."""
_CLOSED = 1e-9  # m, or the sine of an angle


def shown_positions(description: Description) -> dict[str, tuple[float, ...]]:
    """The neutral positions of the joints of clusters that are not closed at position zero."""
    gears = {each.name for each in description.couplings if isinstance(each, LinkCoupling)}
    if not description.loops and not any(
        each.offset for each in description.couplings if each.name in gears
    ):
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        model = build(description)
    at_zero = link_poses(description)
    loops = {loop.name: loop for loop in description.loops}
    open_clusters = {
        each.cluster for each in model.loops if not _is_closed(loops[each.name], at_zero)
    }
    open_clusters |= {
        each.cluster for each in model.couplings if each.name in gears and each.offset
    }
    joints = {joint.name: joint for joint in description.joints}
    neutral = model.neutral()
    q = model.joint_positions(neutral)
    if model.joints and model.joints[0].type == "floating":
        q[model.joints[0].name] = neutral[:7]
    return {
        name: tuple(float(x) for x in q[name].reshape(-1))
        for cluster in model.clusters
        if cluster.name in open_clusters
        for name in cluster.joints
        if joints[name].type in ("spherical", "floating", *ONE_DOF)
    }


def _is_closed(loop: Loop, poses: Mapping[str, Pose]) -> bool:
    """Whether a loop that SDF can say is closed where its links stand."""
    between = relative(placed(loop.predecessor, poses), placed(loop.successor, poses))
    turn = difference(between.rotation, IDENTITY)
    if loop.type == "prismatic":
        return off_axis(between.xyz, loop.axis) <= _CLOSED and turn <= _CLOSED
    if math.hypot(*between.xyz) > _CLOSED:
        return loop.type not in LOOPS
    if loop.type == "fixed":
        return turn <= _CLOSED
    if loop.type == "universal":
        second_axis = apply(between.rotation, transpose(universal_frame(loop))[1])
        return abs(cosine(loop.axis, second_axis)) <= _CLOSED
    if loop.type in ("revolute", "continuous"):
        x, y, z = minus(apply(between.rotation, loop.axis), loop.axis)
        return math.hypot(x, y, z) <= _CLOSED * math.hypot(*loop.axis)
    return True
