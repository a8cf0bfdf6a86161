"""Correspondence of joints, loops and bodies of two robots, and displacements between them.

Robots are compared with all joints at zero, so that formats may place their frames differently.
Joints are matched by name, or by place if names differ.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import TypeAlias

import numpy as np

from robomodel.arrays import Array
from robomodel.description import ONE_DOF, Anchor, Description, Pose
from robomodel.description import Loop as LoopElement
from robomodel.description.poses import rows3, vec
from robomodel.mechanism.graph import WORLD, SpanningTree, spanning_tree
from robomodel.model import Model
from robomodel.tolerances import SAME

SAME_PLACE = 1e-2  # of the robot's size: largest distance of joints that are matched by place


# ---- the two robots ------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlacedJoint:
    """A joint or a loop at zero: its point and axis, in the axes of the root link."""

    name: str
    type: str
    point: Array
    axis: Array
    parent: int
    child: int
    com: Array | None = None  # of the bodies that a joint moves


Pairs: TypeAlias = list[tuple[PlacedJoint, PlacedJoint]]


@dataclass(frozen=True)
class RobotAtZero:
    """A robot with all its joints at zero; bodies by number, ``WORLD`` among them.

    ``model`` may be the open tree of a ``description`` whose loops make no mechanism.
    """

    model: Model
    description: Description

    @classmethod
    def of(cls, model: Model) -> RobotAtZero:
        """A model that moves as in its file."""
        return cls(model, model.description)

    @property
    def moves(self) -> bool:
        """True if the model has the whole description, loops included."""
        return self.model.description is self.description

    @cached_property
    def tree(self) -> SpanningTree:
        """The spanning tree, bodies numbered as in the model."""
        tree = spanning_tree(self.model.description)
        number = {joint.name: body for body, joint in enumerate(tree.joints)}
        return tree.renumbered([number[name] for name in self.model.joint_names])

    @cached_property
    def poses(self) -> dict[int, Array]:
        """The pose (4, 4) of each body's link."""
        poses = {WORLD: np.eye(4)}
        for body, joint in enumerate(self.tree.joints):
            poses[body] = poses[self.tree.parents[body]] @ matrix_of(joint.origin)
        return poses

    @cached_property
    def base(self) -> int:
        """The body of the base: that of a floating joint, or the world."""
        return WORLD if self.model.floating_base is None else 0

    @cached_property
    def joints(self) -> list[PlacedJoint]:
        """The joints that move, except a floating base's."""
        return [
            PlacedJoint(each.name, kind_of(each.type), self.poses[body][:3, 3],
                   direction(self.poses[body], each.axis), self.tree.parents[body], body,
                   self.com(body))
            for body, each in enumerate(self.tree.joints)
            if body != self.base
        ]  # fmt: skip

    @cached_property
    def loops(self) -> list[PlacedJoint]:
        """The loops, at the end of each on its predecessor."""
        places = []
        for loop in self.description.loops:
            one, other = loop.predecessor, loop.successor
            pose = self.anchor(one)
            places.append(
                PlacedJoint(loop.name, kind_of(loop.type), pose[:3, 3], direction(pose, loop.axis),
                       self.tree.places[one.link].body, self.tree.places[other.link].body)
            )  # fmt: skip
        return places

    def anchor(self, anchor: Anchor) -> Array:
        """The pose of a loop's end."""
        place = self.tree.places[anchor.link]
        return self.poses[place.body] @ matrix_of(place.pose) @ matrix_of(anchor.origin)

    def rod(self, loop: LoopElement) -> float:
        """The length of a rod [m]."""
        ends = (self.anchor(end)[:3, 3] for end in (loop.predecessor, loop.successor))
        return (
            float(np.linalg.norm(next(ends) - next(ends))) if loop.length is None else loop.length
        )

    def com(self, body: int) -> Array:
        """A body's centre of mass."""
        return moved_point(self.poses[body], np.array(self.model.bodies[body].com))

    def inertia(self, body: int) -> Array:
        """A body's inertia (3, 3) about it, in the root's axes."""
        turn = self.poses[body][:3, :3]
        inertia: Array = turn @ np.array(self.model.bodies[body].inertia) @ turn.T
        return inertia

    @cached_property
    def size(self) -> float:
        """The largest distance of a joint or a centre of mass from the base [m]."""
        base = self.poses[self.base][:3, 3]
        points = [place.point for place in (*self.joints, *self.loops)]
        points += [self.com(body) for body in range(len(self.model.bodies))]
        return max((float(np.linalg.norm(point - base)) for point in points), default=0.0) or 1.0

    def label(self, body: int) -> str:
        """The name of a body's link."""
        return self.tree.root if body == WORLD else self.model.bodies[body].name


def kind_of(joint_type: str) -> str:
    """The type of a joint, continuous ones being revolute ones without limits."""
    return "revolute" if joint_type == "continuous" else joint_type


def matrix_of(pose: Pose) -> Array:
    """A pose as a matrix (4, 4)."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = pose.rotation, pose.xyz
    return matrix


def pose_of(matrix: Array) -> Pose:
    """A matrix (4, 4) as a pose."""
    return Pose(vec(matrix[:3, 3].tolist()), rows3(matrix[:3, :3].tolist()))


def inverse(matrix: Array) -> Array:
    """The inverse of a motion (4, 4)."""
    inverse = np.eye(4)
    inverse[:3, :3] = matrix[:3, :3].T
    inverse[:3, 3] = -matrix[:3, :3].T @ matrix[:3, 3]
    return inverse


def moved_point(pose: Array, point: Array) -> Array:
    """A point moved by a motion (4, 4)."""
    return np.asarray(pose[:3, :3] @ point + pose[:3, 3])


def direction(pose: Array, axis: Sequence[float] | Array) -> Array:
    """A direction turned by a motion (4, 4), of length 1."""
    return np.asarray(pose[:3, :3] @ np.array(axis) / np.linalg.norm(axis))


# ---- correspondence ------------------------------------------------------------------------------


def _pairs(a: Sequence[PlacedJoint], b: Sequence[PlacedJoint], shift: Array, size: float) -> Pairs:
    """The pairs of the same name, and of the others those of one kind that are near."""
    by_name = {place.name: place for place in b}
    pairs = [(place, by_name[place.name]) for place in a if place.name in by_name]
    names = {place.name for place, _ in pairs}
    left = [place for place in a if place.name not in names]
    right = [place for place in b if place.name not in names]
    if not left or not right:
        return pairs
    far = np.array([[_apart(one, other, shift, size) for other in right] for one in left])
    near = assigned(np.where(far < SAME_PLACE, far, 1.0))
    return pairs + [(left[i], right[j]) for i, j in near if far[i, j] < SAME_PLACE]


def assigned(costs: Array) -> list[tuple[int, int]]:
    """Pairs of a row and a column (rows, columns) whose costs are least in all, by rows."""
    if len(costs) > len(costs.T):
        return sorted((i, j) for j, i in assigned(costs.T))
    columns, (n, m) = np.argmin(costs, axis=1), costs.shape
    if len({*columns.tolist()}) == n:
        return list(enumerate(columns.tolist()))
    # rows are nearest to the same column: if there are few ways to pair them, all are compared
    if math.perm(m, n) <= 120:
        ways = np.array([*permutations(range(m), n)])
        columns = ways[np.argmin(costs[np.arange(n), ways].sum(axis=1))]
    else:
        from scipy.optimize import linear_sum_assignment  # importing it takes 0.2 s

        _, columns = linear_sum_assignment(costs)
    return list(enumerate(columns.tolist()))


def _apart(one: PlacedJoint, other: PlacedJoint, shift: Array, size: float) -> float:
    """Distance of two joints relative to the size; between their axes if they turn or slide."""
    if one.type != other.type:
        return math.inf
    gap = beside_axis(one.type, other.axis, other.point - moved_point(shift, one.point))
    centres = np.zeros(3) if one.com is None or other.com is None else (
        other.com - moved_point(shift, one.com)
    )  # fmt: skip
    tilt = 0.0
    if one.type in ONE_DOF:
        tilt = float(np.linalg.norm(np.cross(other.axis, shift[:3, :3] @ one.axis)))
    return float(np.linalg.norm(gap) + np.linalg.norm(centres)) / size + tilt


def beside_axis(joint_type: str, axis: Array, gap: Array) -> Array:
    """The part of a joint's displacement that matters: not along its motion, or its axis."""
    if joint_type in ("prismatic", "floating"):
        return np.zeros(3)
    return np.asarray(gap - axis * (axis @ gap) if joint_type in ONE_DOF else gap)


@dataclass(frozen=True)
class Match:
    """The joints, loops and bodies that correspond.

    ``shift[body]`` is the motion (4, 4) that takes a body of ``a`` to the same body of ``b``, both
    at zero. A joint differs by its child's shift relative to its parent's, so that a difference
    counts where it is, and not for all bodies that the joint carries.
    """

    a: RobotAtZero
    b: RobotAtZero

    @cached_property
    def size(self) -> float:
        """The size of the larger robot [m]."""
        return max(self.a.size, self.b.size)

    @cached_property
    def joints(self) -> Pairs:
        """Joints of both trees."""
        return _pairs(self.a.joints, self.b.joints, self._base_shift, self.size)

    @cached_property
    def loops(self) -> Pairs:
        """Loops, and joints that close loops in the other file."""
        matched = [{pair[side].name for pair in self.joints} for side in (0, 1)]
        unmatched = [
            [*side.loops, *(place for place in side.joints if place.name not in names)]
            for side, names in zip((self.a, self.b), matched, strict=True)
        ]
        return _pairs(unmatched[0], unmatched[1], self._base_shift, self.size)

    @cached_property
    def bodies(self) -> dict[int, int]:
        """Bodies of ``a`` → those of ``b``, matched by their joints, else by names of links."""
        pairs = {self.a.base: self.b.base} | {one.child: other.child for one, other in self.joints}
        if self.a.base == self.b.base:
            pairs[WORLD] = WORLD
        for body, element in enumerate(self.a.model.bodies):
            place = self.b.tree.places.get(element.name)
            if body not in pairs and place is not None and place.body not in pairs.values():
                pairs[body] = place.body
        return pairs

    @cached_property
    def renamed_links(self) -> list[tuple[str, str]]:
        """Pairs of links of different names: those that bodies are named after, and those at them.

        Of the links that are fixed to others, those at one place of bodies that correspond.
        """
        names = [set(side.tree.places) for side in (self.a, self.b)]
        labels = [(self.a.label(one), self.b.label(other)) for one, other in self.bodies.items()]
        pairs = [
            (one, other)
            for one, other in labels
            if one not in names[1] and other not in names[0] and "world" not in (one, other)
        ]
        used = {"world", *(name for pair in pairs for name in pair)}
        left, right = (sorted(names[n] - names[1 - n] - used) for n in (0, 1))
        if not left or not right:
            return pairs
        far = np.array([[self._links_apart(one, other) for other in right] for one in left])
        near = assigned(np.where(far < SAME_PLACE, far, 1.0))
        return pairs + [(left[i], right[j]) for i, j in near if far[i, j] < SAME_PLACE]

    def _links_apart(self, one: str, other: str) -> float:
        """Distance and turn of two links' frames; infinite on bodies that do not correspond."""
        place, there = self.a.tree.places[one], self.b.tree.places[other]
        if self.bodies.get(place.body) != there.body:
            return math.inf
        pose = self.shift[place.body] @ self.a.poses[place.body] @ matrix_of(place.pose)
        between = inverse(pose) @ self.b.poses[there.body] @ matrix_of(there.pose)
        turn = float(np.linalg.norm(between[:3, :3] - np.eye(3)))
        return float(np.linalg.norm(between[:3, 3])) / self.size + turn

    def in_axes_of_a(self, body: int) -> tuple[float, Array, Array]:
        """Mass, centre of mass (3,) and inertia (3, 3) in ``b``, in the axes of the link of ``a``.

        ``body`` is that of ``a``.
        """
        other = self.bodies[body]
        to_link = inverse(self.shift[body] @ self.a.poses[body])
        inertia = to_link[:3, :3] @ self.b.inertia(other) @ to_link[:3, :3].T
        return self.b.model.bodies[other].mass, moved_point(to_link, self.b.com(other)), inertia

    @cached_property
    def _base_shift(self) -> Array:
        return _shift(self.a, self.b, self.a.base, self.b.base)

    @cached_property
    def shift(self) -> dict[int, Array]:
        """The motion of each body: its parent's, unless that of the links' frames fits better."""
        shifts = {self.a.base: self._base_shift}
        if WORLD in self.bodies:
            shifts[WORLD] = self._base_shift if self.a.base == WORLD else np.eye(4)
        attached: dict[int, list[tuple[PlacedJoint, PlacedJoint]]] = defaultdict(list)
        for one, other in self.joints:
            attached[one.parent].append((one, other))
        for body in sorted(self.bodies.keys() - shifts.keys()):
            options = [_shift(self.a, self.b, body, self.bodies[body])]
            if (parent := shifts.get(self.a.tree.parents[body])) is not None:
                options.insert(0, parent)

            def misfit(shift: Array, body: int = body) -> float:
                gaps = [self.b.com(self.bodies[body]) - moved_point(shift, self.a.com(body))]
                gaps += [
                    beside_axis(other.type, other.axis, other.point - moved_point(shift, one.point))
                    for one, other in attached[body]
                ]
                turn = shift[:3, :3] @ self.a.inertia(body) @ shift[:3, :3].T
                inertia = self.b.inertia(self.bodies[body])
                bent = np.linalg.norm(inertia - turn) / (np.linalg.norm(inertia) or 1.0)
                return float(sum(map(np.linalg.norm, gaps)) / self.size + bent)

            fits = [misfit(shift) for shift in options]
            shifts[body] = options[-1] if fits[-1] < fits[0] - SAME else options[0]
        return shifts


def _shift(a: RobotAtZero, b: RobotAtZero, body: int, other: int) -> Array:
    """The motion between the frames of two links."""
    shift: Array = b.poses[other] @ inverse(a.poses[body])
    return shift
