"""A description's loop joints as rows between anchors, in bodies' internal axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from robomodel import description as said
from robomodel.description import Rows3, Vec3
from robomodel.errors import DescriptionError, Source
from robomodel.model.constraints.rows import ROWS, Anchor, Distance, LoopJoint, Row
from robomodel.model.graph import WORLD, Tree
from robomodel.poses import align, compose, second_axis
from robomodel.spatial import UNIT, apply, matmul, minus, plus, transpose


def unit(axis: Vec3, source: Source) -> Vec3:
    """The axis as a unit vector; an error where it has no direction."""
    size = math.hypot(*axis)
    if size == 0.0 or not math.isfinite(size):
        raise DescriptionError(f"axis {axis} has no direction; give it a nonzero axis", source)
    x, y, z = (a / size for a in axis)
    return x, y, z


def loop_rows(loop: said.Loop, tree: Tree) -> tuple[Row, ...]:
    """The conditions of a loop's type."""
    if loop.type == "rod":
        return (Distance(_rod_length(loop, tree)),)
    return ROWS["revolute" if loop.type == "continuous" else loop.type]


def loop_joint(
    loop: said.Loop, tree: Tree, axes: Sequence[Rows3], local: Mapping[int, int]
) -> LoopJoint:
    """A loop's rows and anchors; ``axes`` of all bodies, ``local`` body → index in the cluster."""
    ends = (loop.predecessor, loop.successor)
    places = [tree.places[end.link] for end in ends]
    ancestor = tree.common_ancestor([place.body for place in places])
    frame = loop_frame(loop.axis, loop.source)
    frames = (frame, universal_frame(loop) if loop.type == "universal" else frame)
    anchors, branches = [], []
    for place, end, columns in zip(places, ends, frames, strict=True):
        pose = compose(place.pose, end.origin)
        point, turned = standing(pose, place.body, columns, axes)
        body = None if place.body == ancestor else local[place.body]
        anchors.append(Anchor(body, point, turned))
        branches.append(tuple(local[b] for b in tree.path(place.body, ancestor)))
    return LoopJoint(
        loop.name, loop_rows(loop, tree), anchors[0], anchors[1], (branches[0], branches[1])
    )


def standing(
    pose: said.Pose, body: int, columns: Rows3, axes: Sequence[Rows3]
) -> tuple[Vec3, Rows3]:
    """A point and axes (given as columns in ``pose``; rows here) in a body's internal axes."""
    back = UNIT if body == WORLD else transpose(axes[body])
    return apply(back, pose.xyz), transpose(matmul(matmul(back, pose.rotation), columns))


def _rod_length(loop: said.Loop, tree: Tree) -> float:
    """The rod's length: given, or the distance of its ends at the zero configuration."""
    if loop.length is not None:
        return loop.length
    length = distance_at_zero(loop.predecessor, loop.successor, tree)
    if length <= 1e-12:
        raise DescriptionError(
            "its ends coincide at the zero configuration, so its length would be zero; give "
            'length="…", or make it a spherical loop',
            loop.source,
        )
    return length


def distance_at_zero(predecessor: said.Anchor, successor: said.Anchor, tree: Tree) -> float:
    """The distance of two points on links with all joints at zero."""
    ends = []
    for end in (predecessor, successor):
        place = tree.places[end.link]
        point = compose(place.pose, end.origin).xyz
        body = place.body
        while body != WORLD:
            origin = tree.joints[body].origin
            point = plus(apply(origin.rotation, point), origin.xyz)
            body = tree.parents[body]
        ends.append(point)
    return math.hypot(*minus(ends[1], ends[0]))


def loop_frame(axis: Vec3, source: Source) -> Rows3:
    """Constraint axes as columns: the loop's axis, then two that complete a right-handed frame."""
    k, aligned = align(unit(axis, source))
    columns = transpose(aligned)  # the images of the coordinate axes; the k-th is the axis
    return transpose((columns[k], columns[(k + 1) % 3], columns[(k + 2) % 3]))


def universal_frame(loop: said.Loop) -> Rows3:
    """The successor's axes of a universal loop, as columns: axis 1 is the second axis."""
    second = second_axis(loop)
    columns = transpose(loop_frame(second, loop.source))
    return transpose((columns[2], columns[0], columns[1]))
