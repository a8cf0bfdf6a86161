"""A description's loops, couplings and mimics as constraints on the joints of its spanning tree.

Loop joints become rows between anchors, which are in the bodies' internal axes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from robomodel.description import (
    ONE_DOF,
    Anchor,
    Description,
    LinkCoupling,
    PolynomialCoupling,
    Rows3,
    Vec3,
)
from robomodel.description import Loop as LoopElement
from robomodel.description.poses import align, compose, second_axis
from robomodel.errors import DescriptionError, Source, did_you_mean
from robomodel.mechanism.constraints import OUTSIDE, ROWS, BodyAnchor, Distance, LoopJoint, LoopRow
from robomodel.mechanism.graph import WORLD, SpanningTree, clusters, spanning_tree
from robomodel.scalars import Scalar, dot, held, is_number, sqrt
from robomodel.spatial import apply, matmul, minus, plus, transpose
from robomodel.tolerances import NOTHING


@dataclass(frozen=True, slots=True)
class TreeConstraint:
    """A constraint on the tree: the bodies whose joints it relates, and how.

    Couplings and mimics demand Σ coefficient · q(body's joint) = offset over ``terms``. Where there
    is a choice, they determine the joint of ``follower``. A polynomial has ``coefficients`` beside
    its linear part, which is ``terms`` and ``offset``, the dependent joint first.
    """

    name: str
    source: Source
    bodies: tuple[int, ...]
    kind: Literal["loop", "coupling", "mimic", "polynomial"]
    loop: LoopElement | None = None
    terms: tuple[tuple[int, float], ...] = ()
    offset: float = 0.0
    follower: int | None = None
    coefficients: tuple[float, ...] = ()


def find_tree_constraints(description: Description, tree: SpanningTree) -> list[TreeConstraint]:
    """Loops, couplings and mimics, in this order, each in the file's order."""
    constraints = [_loop_constraint(loop, tree) for loop in description.loops]
    moved_by = {joint.name: body for body, joint in enumerate(tree.joints)}

    def find(name: str, source: Source) -> int:
        if name not in moved_by:
            raise DescriptionError(
                f"there is no moving joint '{name}'{did_you_mean(name, moved_by)}", source
            )
        return _one_dof(tree, moved_by[name], source)

    for coupling in description.couplings:
        if isinstance(coupling, LinkCoupling):
            constraints.append(_link_coupling(coupling, tree))
            continue
        terms = tuple((find(name, coupling.source), k) for name, k in coupling.terms)
        polynomial = coupling.coefficients if isinstance(coupling, PolynomialCoupling) else ()
        curved = isinstance(coupling, PolynomialCoupling) and coupling.curved
        if not curved:
            terms = tuple((body, k) for body, k in terms if not (is_number(k) and k == 0.0))
        if not terms:
            raise DescriptionError("relates no joint; give it joints and ratios", coupling.source)
        constraints.append(
            TreeConstraint(
                coupling.name,
                coupling.source,
                tuple(body for body, _ in terms),
                kind="polynomial" if curved else "coupling",
                terms=terms,
                offset=coupling.offset,
                follower=terms[0][0] if polynomial else None,
                coefficients=polynomial if curved else (),
            )
        )
    for body, joint in enumerate(tree.joints):
        if joint.mimic is None:
            continue
        _one_dof(tree, body, joint.source)
        leader = find(joint.mimic.joint, joint.source)
        terms = ((body, 1.0), (leader, -joint.mimic.multiplier))
        constraints.append(
            TreeConstraint(
                joint.name,
                joint.source,
                (body, leader),
                kind="mimic",
                terms=terms,
                offset=joint.mimic.offset,
                follower=body,
            )
        )
    return constraints


def unmarked(description: Description, gone: set[str]) -> Description:
    """The description with no joint marked in clusters of which a joint, loop or coupling is gone.

    Without it, the marks that the cluster has are too few or too many.
    """
    tree = spanning_tree(description)
    ties = find_tree_constraints(description, tree)
    freed: set[str] = set()
    for group in clusters(tree, [tie.bodies for tie in ties]):
        joints = {tree.joints[body].name for body in group}
        if not gone.isdisjoint(joints | {tie.name for tie in ties if tie.bodies[0] in group}):
            freed |= joints
    return replace(
        description,
        joints=tuple(
            replace(joint, independent=None) if joint.name in freed else joint
            for joint in description.joints
        ),
    )


def _loop_constraint(loop: LoopElement, tree: SpanningTree) -> TreeConstraint:
    """A loop: it relates the joints on both ways from its ends to their common ancestor."""
    ends = [tree.places[loop.predecessor.link].body, tree.places[loop.successor.link].body]
    ancestor = tree.common_ancestor(ends)
    bodies = (*tree.path(ends[0], ancestor), *tree.path(ends[1], ancestor))
    if not bodies:
        raise DescriptionError(
            f"joins '{loop.predecessor.link}' and '{loop.successor.link}', which no moving joint "
            "separates; remove it, or free a joint between them",
            loop.source,
        )
    return TreeConstraint(loop.name, loop.source, bodies, kind="loop", loop=loop)


def _one_dof(tree: SpanningTree, body: int, source: Source) -> int:
    """The body. Raises DescriptionError if its joint has several degrees of freedom."""
    joint = tree.joints[body]
    if joint.type not in ONE_DOF:
        raise DescriptionError(
            f"cannot relate joint '{joint.name}', which is {joint.type}; couplings are between "
            "revolute, continuous, prismatic and screw joints",
            source,
        )
    return body


def _link_coupling(coupling: LinkCoupling, tree: SpanningTree) -> TreeConstraint:
    """A gear between two links: their angles in the common ancestor, each a sum over joints."""
    ends = [tree.places[coupling.predecessor].body, tree.places[coupling.successor].body]
    ancestor = tree.common_ancestor(ends)
    paths = [tree.path(end, ancestor) for end in ends]
    for path, link in zip(paths, (coupling.predecessor, coupling.successor), strict=True):
        for body in path:
            _one_dof(tree, body, coupling.source)
        if not path:
            raise DescriptionError(
                f"no moving joint stands between '{link}' and the common ancestor of "
                f"'{coupling.predecessor}' and '{coupling.successor}', so there is nothing to "
                "couple; name links on two branches",
                coupling.source,
            )
    terms = (
        *((body, 1.0) for body in paths[1]),
        *((body, -coupling.ratio) for body in paths[0]),
    )
    return TreeConstraint(
        coupling.name,
        coupling.source,
        (*paths[0], *paths[1]),
        kind="coupling",
        terms=terms,
        offset=coupling.offset,
        follower=paths[1][-1],
    )


# ---- loop joints between bodies of a tree -------------------------------------------------------


def unit(axis: Vec3, source: Source) -> Vec3:
    """The axis as a unit vector. Raises DescriptionError if it has no direction."""
    size = math.hypot(*axis)
    if size == 0.0 or not math.isfinite(size):
        raise DescriptionError(f"axis {axis} has no direction; give it a nonzero axis", source)
    x, y, z = (a / size for a in axis)
    return x, y, z


def loop_rows(loop: LoopElement, tree: SpanningTree) -> tuple[LoopRow, ...]:
    """The conditions of a loop's type."""
    if loop.type == "rod":
        return (Distance(held(_rod_length(loop, tree))),)
    return ROWS["revolute" if loop.type == "continuous" else loop.type]


def loop_joint(loop: LoopElement, tree: SpanningTree, local: Mapping[int, int]) -> LoopJoint:
    """A loop's rows and anchors. ``local`` maps bodies of the tree to indices in the cluster."""
    ends = (loop.predecessor, loop.successor)
    ancestor = tree.common_ancestor([tree.places[end.link].body for end in ends])
    frame = loop_frame(loop.axis, loop.source)
    frames = (frame, universal_frame(loop) if loop.type == "universal" else frame)
    anchors, branches = [], []
    for end, columns in zip(ends, frames, strict=True):
        anchor = anchored(end, columns, tree)
        branches.append(tuple(local[b] for b in tree.path(anchor.body, ancestor)))
        body = OUTSIDE if anchor.body == ancestor else local[anchor.body]
        anchors.append(replace(anchor, body=body))
    return LoopJoint(
        loop.name, loop_rows(loop, tree), anchors[0], anchors[1], (branches[0], branches[1])
    )


def anchored(end: Anchor, columns: Rows3, tree: SpanningTree) -> BodyAnchor:
    """An end of a loop or spring on its body; ``columns``: the constraint's axes in its frame."""
    place = tree.places[end.link]
    pose = compose(place.pose, end.origin)
    return BodyAnchor(place.body, pose.xyz, transpose(matmul(pose.rotation, columns)))


def _rod_length(loop: LoopElement, tree: SpanningTree) -> Scalar:
    """The rod's length; by default the distance of its ends at the zero configuration."""
    if loop.length is not None:
        return loop.length
    length = distance_at_zero(loop.predecessor, loop.successor, tree)
    if is_number(length) and length <= NOTHING:
        raise DescriptionError(
            "its ends coincide at the zero configuration, so its length would be zero; give "
            'length="…", or make it a spherical loop',
            loop.source,
        )
    return length


def distance_at_zero(predecessor: Anchor, successor: Anchor, tree: SpanningTree) -> Scalar:
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
    apart = minus(ends[1], ends[0])
    return math.hypot(*apart) if all(map(is_number, apart)) else sqrt(dot(apart, apart))


def loop_frame(axis: Vec3, source: Source) -> Rows3:
    """A right-handed frame of a constraint, as columns: the loop's axis is the first."""
    k, aligned = align(unit(axis, source))
    columns = transpose(aligned)  # the images of the coordinate axes; the k-th is the axis
    return transpose((columns[k], columns[(k + 1) % 3], columns[(k + 2) % 3]))


def universal_frame(loop: LoopElement) -> Rows3:
    """The successor's axes of a universal loop, as columns: column 1 is the joint's second axis."""
    second = second_axis(loop)
    columns = transpose(loop_frame(second, loop.source))
    return transpose((columns[2], columns[0], columns[1]))
