"""Internal frames of bodies: joint axes are coordinate axes, offsets lie on common normals.

A body that turns about or slides along an axis may have its origin anywhere on that axis, and its
axes turned about it: its joint moves the same. Where an axis is oblique to the parent's, the origin
goes to the foot of their common normal, and the parent's axes are turned towards that (Denavit and
Hartenberg, 1955): the transform then has one constant rotation and two numbers of offset.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from robomodel.description import AT_ORIGIN, IDENTITY, Pose, Rows3, Vec3
from robomodel.description.poses import about, compose, inverse, rows3, scaled, snapped, vec
from robomodel.mechanism.graph import WORLD, Place, SpanningTree
from robomodel.mechanism.joints import JointModel, Prismatic, Revolute, Screw
from robomodel.spatial import (
    UNIT,
    Rotation,
    about_axis,
    apply,
    cross,
    factor,
    inner,
    matmul,
    minus,
    transpose,
)
from robomodel.tolerances import ROUNDING

_STEEP = 0.1  # the sine of an angle between axes below which the foot of their normal is far away


def internal_frames(
    tree: SpanningTree, moves: Sequence[tuple[JointModel, Rows3]], fixed: Collection[int]
) -> list[Pose]:
    """The internal frame of each body, in the frame of its link.

    ``moves`` are the joints, each with axes in which it moves along a coordinate axis. Bodies in
    ``fixed``, and those whose joints are not oblique to others, get these axes and the origins of
    their links.
    """
    frames = [AT_ORIGIN if axes == IDENTITY else Pose(rotation=axes) for _, axes in moves]
    poses = [_standing(tree, frames, body) for body in range(len(frames))]
    ks = [x.k if isinstance(x, Revolute | Prismatic | Screw) else None for x, _ in moves]
    carried: dict[int, list[Vec3]] = {}  # axes of joints on each body, all of those without one
    oblique = []
    for body, (parent, k) in enumerate(zip(tree.parents, ks, strict=True)):
        axes = transpose(poses[body].rotation)
        carried.setdefault(parent, []).extend(axes if k is None else axes[k : k + 1])
        if k is not None and parent != WORLD and _nonzeros(axes[k]) > 1:
            oblique.append((body, k, axes[k]))
    for body, k, axis in oblique:
        shift = _foot(poses[body].xyz, axis, ks[tree.parents[body]])
        if body not in fixed and abs(shift) > rounding(tree):
            frames[body] = compose(frames[body], Pose(scaled(UNIT[k], shift)))
    for body in {tree.parents[body] for body, _, _ in oblique}.difference(fixed):
        if (k := ks[body]) is not None and (angle := _turn(k, carried[body])):
            frames[body] = compose(frames[body], Pose(rotation=about(UNIT[k], angle)))
    return frames


def in_frames(tree: SpanningTree, frames: Sequence[Pose], small: float) -> SpanningTree:
    """The tree whose bodies have these frames instead of their links'.

    Offsets up to ``small`` [m] become zero. Joints' origins may hold scalars of any kind.
    """
    places = dict(tree.places)
    for link, place in places.items():
        if place.body != WORLD and frames[place.body] is not AT_ORIGIN:
            pose = compose(inverse(frames[place.body]), place.pose)
            places[link] = Place(place.body, pose)
    joints = [*tree.joints]
    for body, joint in enumerate(tree.joints):
        pose = _standing(tree, frames, body)
        if pose is not joint.origin:
            xyz = vec(snapped(x, small) for x in pose.xyz)
            joints[body] = replace(joint, origin=Pose(xyz, _snapped(pose.rotation)))
    return replace(tree, joints=tuple(joints), places=places)


def rounding(tree: SpanningTree) -> float:
    """The offset [m] below which a coordinate of a joint's origin counts as zero."""
    return ROUNDING * max((abs(x) for each in tree.joints for x in each.origin.xyz), default=0.0)


def _standing(tree: SpanningTree, frames: Sequence[Pose], body: int) -> Pose:
    """The pose of a body's joint in its parent, where bodies have these frames."""
    pose, parent = tree.joints[body].origin, tree.parents[body]
    if parent != WORLD and frames[parent] is not AT_ORIGIN:
        pose = compose(inverse(frames[parent]), pose)
    return pose if frames[body] is AT_ORIGIN else compose(pose, frames[body])


def _turn(k: int, axes: Sequence[Vec3]) -> float:
    """The angle about axis k of the frame in which these axes have the fewest nonzero entries."""
    angles = [0.0, *(_to_axis(cross(UNIT[k], axis), k) for axis in axes)]

    def nonzeros(angle: float) -> int:
        return sum(_nonzeros(apply(about(UNIT[k], -angle), axis)) for axis in axes)

    return min((a for a in angles if a == 0.0 or abs(a) > ROUNDING), key=nonzeros)


def _foot(point: Vec3, along: Vec3, k: int | None) -> float:
    """The way along a line, from a point of it, to the foot of its common normal with axis k.

    With ``k`` None, to its point nearest to the origin. 0 where the line is nearly parallel to the
    axis, as the foot is far away then.
    """
    axis = (0.0, 0.0, 0.0) if k is None else UNIT[k]
    cosine = float(inner(along, axis))
    square = 1.0 - cosine * cosine
    across = minus(along, scaled(axis, cosine))
    return 0.0 if square < _STEEP**2 else -float(inner(point, across)) / square


def factored(rotation: Rows3, k: int) -> tuple[tuple[Rotation, ...], float]:
    """F and the angle of R = F · (a rotation about axis k), with F of few elementary rotations.

    The rotations of F have the order of a :class:`robomodel.spatial.Transform`, the child's first.
    """
    i, j = (k + 1) % 3, (k + 2) % 3
    remainder, steps = _snapped(rotation), list[Rotation]()
    while _nonzeros(axis := transpose(remainder)[k]) > 1:
        flat = min(range(3), key=lambda m: abs(axis[m]))
        angle = _to_axis(axis, flat)
        steps.append(about_axis(flat, angle))
        remainder = _snapped(matmul(about(UNIT[flat], -angle), remainder))
    column = transpose(remainder)[i]
    largest = max(range(3), key=lambda m: abs(column[m]))
    columns = [axis] * 3
    columns[i] = scaled(UNIT[largest], math.copysign(1.0, column[largest]))
    columns[j] = cross(axis, columns[i])
    nearest_axes = rows3(columns)  # transposed
    about_k = matmul(nearest_axes, remainder)
    angle = math.atan2(about_k[j][i], about_k[i][i])
    rotations = (*factor(rows3(transpose(nearest_axes))), *reversed(steps))
    return rotations, angle if abs(angle) > ROUNDING else 0.0


def _to_axis(x: Vec3, k: int) -> float:
    """The least angle about axis k by which a coordinate axis comes to lie along a vector."""
    angle = math.atan2(x[(k + 2) % 3], x[(k + 1) % 3])
    return angle - math.pi / 2 * round(angle / (math.pi / 2))


def _snapped(rotation: Rows3) -> Rows3:
    return rows3([snapped(x, ROUNDING) for x in row] for row in rotation)


def _nonzeros(x: Vec3) -> int:
    return sum(abs(each) > ROUNDING for each in x)
