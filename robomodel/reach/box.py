"""How much of the box of their limits the joints of a limb reach together.

Joints that conditions relate, as pitch and roll of an ankle, do not reach all that the limits of
each allow: other joints' limits and dead points cut off corners, or more. A grid over the box is
led to, straight from the neutral configuration or from grid points beside, on the sheet of these
joints, where they tell where the robot is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.mechanism.continuation import Ends, Points
from robomodel.mechanism.walks import Positions, lead
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.reach.groups import Group
from robomodel.reach.limb import limb_joints
from robomodel.reach.reachable import Linkage, reachable
from robomodel.reach.windings import windings

FREE = 0.5  # rad or sizes, either way from neutral: ranges of joints without limits
STEPS = {2: 11, 3: 5, 4: 3}  # grid points along each joint, by the number of joints


@dataclass(frozen=True, eq=False)
class Box:
    """A grid over the box between limits of joints, and which of it is reached.

    Attributes:
        joints: Names of the joints, which move a group of one cluster.
        cluster: The cluster's name.
        low: Lower ends (k,) [rad, m].
        high: Upper ends (k,).
        limited: Whether all ends are limits of the file; else some are :data:`FREE` from neutral.
        targets: The grid's positions (n, k), the corners among them.
        reached: Which of these are reached (n,).
        ends: What ends the way to each that is not: a joint whose limit it is, or "loop", where
            the loops close no further.
        q: Configurations (m, nq) where it is reached, all else at neutral.
    """

    joints: tuple[str, ...]
    cluster: str
    low: Array
    high: Array
    limited: bool
    targets: Array
    reached: Mask
    ends: tuple[str, ...]
    q: Array

    @property
    def share(self) -> float:
        """The share of the box that is reached."""
        return float(np.mean(self.reached))

    @property
    def lost_corners(self) -> list[tuple[Array, str]]:
        """The corners (k,) that are not reached, and what ends the way to each."""
        corner = np.all((self.targets == self.low) | (self.targets == self.high), axis=1)
        lost = np.flatnonzero(corner & ~self.reached).tolist()
        return [(self.targets[n], self.ends[n]) for n in lost]


@cached_on_model
def boxes(model: Model) -> tuple[Box, ...]:
    """The boxes of all groups of two joints or more that carry a limb together."""
    return tuple(_boxes(model))


def _boxes(model: Model) -> Iterator[Box]:
    names = limb_joints(model)
    one = {joint.name for joint in model.joints if joint.nv == 1}
    for n, linkage in enumerate(reachable(model).linkages):
        cluster = linkage.cluster
        places = dict(zip(cluster.joints, cluster.geometry.links, strict=True))
        for k, group in enumerate(linkage.groups):
            mine = [x for x in names if x in places and places[x].v in group.columns]
            if len(mine) not in STEPS or not all(each in one for each in mine):
                continue
            try:
                there = reachable(model).on_sheet(limb_in(model, cluster)).linkages[n]
            except ValueError:  # these joints do not tell where the group is
                continue
            if box := _box(model, there, there.groups[k], mine):
                yield box


def limb_in(model: Model, cluster: Cluster) -> list[str]:
    """The joints of limbs in a cluster."""
    return [name for name in limb_joints(model) if name in cluster.joints]


def _box(model: Model, linkage: Linkage, group: Group, names: list[str]) -> Box | None:
    cluster = linkage.cluster
    links = [cluster.geometry.links[cluster.joints.index(name)] for name in names]
    known = group.joints.places.tolist()
    if any(link.q not in known for link in links):
        return None
    rows = [known.index(link.q) for link in links]
    joints = Positions(group.joints.rows[rows], group.joints.places[rows])
    described = [model.joints[model.joint_names.index(name)] for name in names]
    ends = [(x.lower, x.upper) if x.type != "continuous" else (-math.inf, math.inf)
            for x in described]  # fmt: skip
    low, high = np.array(ends).T
    at = group.start[joints.places]
    limited = bool(np.all(np.isfinite(low) & np.isfinite(high)))
    slides = np.array([x.type == "prismatic" for x in described])
    freedoms = [freedom for link in links for freedom in link.freedoms]
    free = FREE * np.where(slides, cluster.geometry.scale, windings(cluster)[freedoms])
    low = np.minimum(np.where(np.isfinite(low), low, at - free), at)
    high = np.maximum(np.where(np.isfinite(high), high, at + free), at)
    count = STEPS[len(names)]
    ticks = [np.linspace(a, b, count) for a, b in zip(low, high, strict=True)]
    targets = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, len(names))
    places = np.array(list(itertools.product(range(count), repeat=len(names))))
    at_targets, reached, why = _led(cluster, group, joints, targets, places)
    q = np.tile(model.neutral(), (len(at_targets.q), 1))
    q[:, cluster.q] = linkage.completed(at_targets.q)
    return Box(tuple(names), cluster.name, low, high, limited, targets, reached, why, q)


def _led(
    cluster: Cluster, group: Group, joints: Positions, targets: Array, places: Array
) -> tuple[Points, Mask, tuple[str, ...]]:
    """Points at the targets that are reached; which these are; what ends the ways to the others."""
    origin = group.origin[np.zeros(len(targets), dtype=np.intp)]
    p, why, over = lead(group.along, origin, joints, targets)
    reached, spans = why == Ends.FINE, np.ptp(targets, axis=0)
    for _ in range(4):  # each leads to points from those beside that were reached before
        left, found = np.flatnonzero(~reached), np.flatnonzero(reached)
        if not len(left) or not len(found):
            break
        apart = np.max(np.abs(places[left][:, None] - places[found][None]), axis=2)
        near = np.min(apart, axis=1) == 1
        rows, beside = left[near], found[np.argmin(apart, axis=1)][near]
        there, ends, passed = lead(group.along, p[beside], joints, targets[rows])
        ways = [np.linalg.norm((targets[rows] - x.q[:, joints.places]) / spans, axis=1)
                for x in (there, p[rows])]  # fmt: skip
        nearer = np.flatnonzero(ways[0] < ways[1])  # what ends the way that comes nearest is told
        p = p.put(rows[nearer], there[nearer])
        why[rows[nearer]], over[rows[nearer]] = ends[nearer], passed[nearer]
        if not np.any(ends == Ends.FINE):
            break
        reached = why == Ends.FINE
    places_of = zip(cluster.geometry.links, cluster.joints, strict=True)
    joint_at = {link.q: name for link, name in places_of}
    names = [joint_at[place] for place in group.along.limits.places.tolist()]
    told = tuple(
        names[int(np.argmax(each))] if end == Ends.LIMIT and names else "loop"
        for end, each in zip(why, over, strict=True)
    )
    return p[np.flatnonzero(reached)], reached, told
