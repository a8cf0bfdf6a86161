"""Armatures of an open tree's joints with links as they are, and their range on the sheet."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.actuators.envelopes import inverses
from robomodel.dynamics.kinematics.state import Configuration, on_arrays
from robomodel.dynamics.lumped import joint_inertias, reflected
from robomodel.mechanism.continuation import Ends
from robomodel.opentree.errors import jacobian_of
from robomodel.opentree.tree import OpenTree
from robomodel.opentree.tree_joints import sheet
from robomodel.reach.reachable import Reachable
from robomodel.scalars import unstack
from robomodel.tolerances import NOTHING, SAME


@dataclass(frozen=True, slots=True)
class Armature:
    """The reflected inertia at a joint that moves in the open tree [kg m², or kg where it slides].

    ``value`` is that of the tree with links as they are: at the neutral configuration, and not
    below zero. ``low``, ``high`` and ``best``, the constant of least mean square error, are over
    the range; ``constant`` if they are one number. Next to a dead point at which the joint turns
    back it has no end: ``high`` is infinite there, and ``best`` not-a-number.
    """

    joint: str
    value: float
    low: float
    high: float
    best: float
    constant: bool
    unit: str

    @property
    def words(self) -> str:
        """The range of its numbers."""
        if math.isinf(self.high):
            return f"{self.low:.6g} and up to its dead point,"
        return f"{self.low:.6g} to {self.high:.6g}"


def armatures(lumped: OpenTree, *, samples: int = 200, seed: int = 0) -> tuple[Armature, ...]:
    """The armature of every joint of a tree with links as they are.

    Over draws on the sheet of its joints, and the limits at which linkages of one freedom end;
    beside tendons, where the tree has these.
    """
    view, parts = lumped.basis.view, lumped.basis.parts
    reached = sheet(lumped.basis.robot, tuple(b for part in parts if part.cluster.kind == "loops"
                                              for b in part.bodies))  # fmt: skip
    q = reached.spread(np.random.default_rng(seed), samples)
    dense = on_arrays(reflected, view, q)
    g = jacobian_of(Configuration(view, unstack(q)), range(view.n_joint_velocities), len(q))
    tied, result = joint_inertias(view), []
    for part in parts:
        cluster, bodies = part.cluster, sorted(part.bodies)
        rows = [v for body in bodies for v in view.nodes[body].freedoms]
        block, map_to_tree = dense[:, cluster.v, cluster.v], g[:, rows, cluster.v]
        if not np.array_equal(map_to_tree, np.broadcast_to(np.eye(len(rows)), map_to_tree.shape)):
            inverse = inverses(map_to_tree)
            block = np.swapaxes(inverse, 1, 2) @ block @ inverse
            block = block[np.isfinite(block).all(axis=(1, 2))]
        if lumped.basis.tendons:
            block = tied[cluster.index].without_tendons(block)
        turning = _turning(reached, cluster.name)
        at = 0
        for body in bodies:
            joint = view.joints[body]
            if joint.nv == 1 or joint.type == "spherical":
                values = np.mean(
                    np.diagonal(block, axis1=1, axis2=2)[:, at : at + joint.nv], axis=1
                )
                value = lumped.armature[joint.name]
                size = 1.0 if joint.type == "prismatic" else cluster.geometry.scale**2
                rounding = NOTHING * view.mass * size
                found = _armature(joint.name, value, values, joint.units.inertia, rounding)
                if body - cluster.bodies[0] in turning and not found.constant:
                    found = replace(found, high=math.inf, best=math.nan)
                result.append(found)
            at += joint.nv
    return tuple(result)


def _turning(reached: Reachable, cluster: str) -> set[int]:
    """Places of bodies in a cluster in groups of one freedom whose sheet ends at a dead point."""
    found = set[int]()
    for linkage in reached.linkages:
        if linkage.cluster.name == cluster:
            for group in linkage.groups:
                if group.freedoms == 1 and Ends.SHEET in {end.why for end in group.path.ends}:
                    links = linkage.cluster.geometry.links
                    found |= {n for n, link in enumerate(links) if link.v in group.columns}
    return found


def _armature(joint: str, value: float, values: Array, unit: str, rounding: float) -> Armature:
    if not len(values):
        return Armature(joint, value, math.nan, math.nan, math.nan, False, unit)
    low, high = float(np.min(values)), float(np.max(values))
    if high - low <= max(SAME * max(abs(high), abs(low)), rounding):  # where it is one number
        return Armature(joint, value, value, value, value, True, unit)
    best = max(0.0, float(np.mean(values)))
    return Armature(joint, value, low, high, best, False, unit)
