"""What the checks look at: a model, where its parts stand in the file and in space."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robomodel.description import Joint as SaidJoint
from robomodel.description import Link, Loop
from robomodel.errors import NOWHERE, Source
from robomodel.model import Model
from robomodel.model.approximate import select
from robomodel.model.joints import Array
from robomodel.model.model import WORLD, Cluster, Node
from robomodel.scalars import Scalar
from robomodel.studies import linkage
from robomodel.studies.linkage import Linkage

BALANCED = 1e-3  # m: a centre of mass so near to the axis is on it


@dataclass(frozen=True)
class Rotor:
    """A body on its own axis that a gear or belt turns, and how far for each joint that it drives.

    ``ratios``: joint that moves in the open tree → how far the rotor turns for it.
    """

    body: int
    ratios: dict[str, float]
    inertia: float
    mass: float
    source: Source


@dataclass(frozen=True)
class Subject:
    """A model, with what several checks need."""

    model: Model

    @cached_property
    def links(self) -> dict[str, Link]:
        """The file's links by name."""
        return {link.name: link for link in self.model.description.links}

    @cached_property
    def said(self) -> dict[str, SaidJoint]:
        """The file's joints by name."""
        return {joint.name: joint for joint in self.model.description.joints}

    @cached_property
    def loops(self) -> dict[str, Loop]:
        """The file's loops by name."""
        return {loop.name: loop for loop in self.model.description.loops}

    @cached_property
    def couplings(self) -> dict[str, Source]:
        """Where couplings and mimics stand, by name."""
        said = {each.name: each.source for each in self.model.description.couplings}
        return {each.name: self.joint_source(each.name) for each in self.model.couplings} | said

    def joint_source(self, joint: str) -> Source:
        """Where a joint, or the joint of a freedom's label, stands."""
        name = joint if joint in self.said else joint.rpartition(".")[0]
        return self.said[name].source if name in self.said else NOWHERE

    def cluster_source(self, cluster: Cluster) -> Source:
        """Where the first loop or coupling of a cluster stands."""
        for loop in self.model.loops:
            if loop.cluster == cluster.name:
                return self.loops[loop.name].source
        for coupling in self.model.couplings:
            if coupling.cluster == cluster.name:
                return self.couplings[coupling.name]
        return self.joint_source(cluster.joints[0])

    @cached_property
    def linkages(self) -> dict[str, Linkage]:
        """The study of each cluster with loops, by its name."""
        return {
            cluster.name: linkage.study(self.model, cluster)
            for cluster in self.model.clusters
            if cluster.kind == "loops"
        }

    # ---- space

    @cached_property
    def frames(self) -> tuple[list[Array], list[Array]]:
        """Rotation and place in the world of every body's internal axes, at neutral."""
        positions: list[Scalar] = [float(x) for x in self.spanning]
        turns: list[Array] = []
        places: list[Array] = []
        for node in self.model.nodes:
            above = np.eye(3) if node.parent == WORLD else turns[node.parent]
            at = np.zeros(3) if node.parent == WORLD else places[node.parent]
            x = node.transform(positions)
            turns.append(above @ np.array(x.matrix(), dtype=float))
            places.append(at + above @ np.array(x.offset, dtype=float))
        return turns, places

    @cached_property
    def spanning(self) -> Array:
        """All joints' positions at neutral."""
        neutral = [float(x) for x in self.model.neutral()]
        return np.array([float(x) for x in self.model.spanning_positions(neutral)])

    def axis(self, body: int) -> Array:
        """The direction of a one-freedom joint in the world, at neutral."""
        motion = self.model.nodes[body].joint.subspace[0]
        local = motion.angular if any(motion.angular) else motion.linear
        direction: Array = self.frames[0][body] @ np.array(local, dtype=float)
        return direction

    @cached_property
    def size(self) -> float:
        """The longest distance between a body's joint and its parent's [m]; 1 where there is none.

        The middle one of the longest three, so that one wrong number does not set the scale.
        """
        lengths = sorted(
            (math.hypot(*(float(x) for x in node.offset)) for node in self.model.nodes),
            reverse=True,
        )
        longest = [length for length in lengths[:3] if length > 0.0]
        return longest[len(longest) // 2] if longest else 1.0

    # ---- transmissions

    @cached_property
    def rotors(self) -> list[Rotor]:
        """The rotors of clusters without loops: balanced bodies that carry nothing."""
        model, moving = self.model, select(self.model).moving
        g = model.constraint_jacobian(model.neutral())
        carriers = {node.parent for node in model.nodes}
        found = []
        for cluster in model.clusters:
            if cluster.kind != "couplings":
                continue
            kept = [body for body in cluster.bodies if body in moving]
            rows = [v for body in kept for v in model.nodes[body].freedoms]
            inverse = np.linalg.inv(g[rows, cluster.v])
            for body in cluster.bodies:
                node = model.nodes[body]
                if body in moving or body in carriers or not _balanced(node):
                    continue
                ratios = g[node.v, cluster.v] @ inverse
                names = [model.joints[other].name for other in kept]
                k = next(i for i, x in enumerate(node.joint.subspace[0].angular) if x)
                found.append(
                    Rotor(
                        body,
                        {n: float(x) for n, x in zip(names, ratios, strict=True) if abs(x) > 1e-9},
                        float(node.inertia.inertia[k][k]),
                        model.bodies[body].mass,
                        self.links[model.bodies[body].name].source,
                    )
                )
        return found


def _balanced(node: Node) -> bool:
    """Whether a body turns about an axis through its centre of mass."""
    turning = [k for k, x in enumerate(node.joint.subspace[0].angular) if x]
    if node.joint.nv != 1 or len(turning) != 1:
        return False
    off = [float(h) for k, h in enumerate(node.inertia.h) if k != turning[0]]
    return math.hypot(*off) <= BALANCED * float(node.inertia.mass)
