"""What the checks look at: a model, where its parts stand in the file and in space."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robomodel.description import Joint as SaidJoint
from robomodel.description import Link, Loop, Vec3
from robomodel.errors import NOWHERE, Source
from robomodel.model import Model
from robomodel.model.approximate import select_in
from robomodel.model.elements import Cluster, Node
from robomodel.model.graph import WORLD
from robomodel.model.joints import Array
from robomodel.reports.validation import loop_mechanism
from robomodel.reports.validation.carried import Places
from robomodel.reports.validation.linkage import Linkage

BALANCED = 1e-3  # m: a centre of mass so near to the axis is on it
LEVER = 2.0  # the most that a lever turns for the joint that it mimics
POSES = 8  # besides neutral


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
class CheckContext:
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
    def anchors(self) -> dict[str, list[Vec3]]:
        """Where joints and loops hold on to each link, in its frame."""
        points: dict[str, list[Vec3]] = {name: [] for name in self.links}
        for joint in self.model.description.joints:
            points[joint.parent].append(joint.origin.xyz)
        for loop in self.model.description.loops:
            for end in (loop.predecessor, loop.successor):
                points[end.link].append(end.origin.xyz)
        return points

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

    def is_mimic(self, joint: str) -> bool:
        """Whether the file has a joint mimic another."""
        return joint in self.said and self.said[joint].mimic is not None

    @cached_property
    def linkages(self) -> dict[str, Linkage]:
        """The study of each cluster with loops, by its name."""
        return {
            cluster.name: loop_mechanism.study(self.model, cluster)
            for cluster in self.model.clusters
            if cluster.kind == "loops"
        }

    # ---- space

    @cached_property
    def places(self) -> Places:
        """All bodies at neutral."""
        return Places.at(self.model, self.spanning)

    @cached_property
    def spanning(self) -> Array:
        """All joints' positions at neutral."""
        neutral = [float(x) for x in self.model.neutral()]
        return np.array([float(x) for x in self.model.spanning_positions(neutral)])

    def axis(self, body: int) -> Array:
        """The direction of a one-freedom joint in the world, at neutral."""
        direction: Array = self.places.turns[body] @ self._direction(body)
        return direction

    def _direction(self, body: int) -> Array:
        """That of its joint in the body's internal axes."""
        motion = self.model.nodes[body].joint.subspace[0]
        return np.array(motion.angular if any(motion.angular) else motion.linear, dtype=float)

    def slides(self, body: int) -> bool:
        """Whether a joint of one freedom is prismatic."""
        return not any(self.model.nodes[body].joint.subspace[0].angular)

    @cached_property
    def size(self) -> float:
        """The longest distance from a body's joint to its parent's or its mass [m]; 1 without any.

        The middle one of the longest three, so that one wrong number does not set the scale.
        """
        nodes = self.model.nodes
        links = [math.hypot(*(float(x) for x in node.offset)) for node in nodes]
        masses = [math.hypot(*(float(h) for h in node.inertia.h)) / float(node.inertia.mass)
                  for node in nodes if node.inertia.mass]  # fmt: skip
        return max(_middle(links), _middle(masses)) if any(links) else 1.0

    # ---- masses

    @cached_property
    def mass(self) -> float:
        """That of all bodies that move."""
        return sum(body.mass for body in self.model.bodies)

    @cached_property
    def beyond(self) -> list[list[int]]:
        """For each body itself and what hangs on it, without rotors."""
        rotors = {rotor.body for rotor in self.rotors}
        found: list[list[int]] = [[] for _ in self.model.nodes]
        for body in range(len(self.model.nodes)):
            if body not in rotors:
                above = body
                while above != WORLD:
                    found[above].append(body)
                    above = self.model.nodes[above].parent
        return found

    @cached_property
    def turning(self) -> list[bool]:
        """Whether each body can turn: only then its moments of inertia have a say."""
        found: list[bool] = []
        for node in self.model.nodes:
            own = any(any(motion.angular) for motion in node.joint.subspace)
            found.append(own or (node.parent != WORLD and found[node.parent]))
        return found

    def carried(self, body: int) -> tuple[float, float]:
        """What the joint of a body moves without rotors [kg m² or kg]: the least and the most.

        That is at neutral and at some other positions of the joints, loops not closed.
        """
        own = self.beyond[body]
        found = []
        for places in self._poses:
            if self.slides(body):
                found.append(float(np.sum(places.mass[own])))
            else:
                axis = places.turns[body] @ self._direction(body)
                found.append(places.about(places.origins[body], axis, own))
        return min(found), max(found)

    @cached_property
    def _poses(self) -> list[Places]:
        rng = np.random.default_rng(0)
        result = [self.places]
        for _ in range(POSES):
            spanning = self.spanning.copy()
            for body, node in enumerate(self.model.nodes):
                if node.joint.nv == 1 and not self.slides(body):
                    spanning[node.q] = rng.uniform(-math.pi, math.pi)
            result.append(Places.at(self.model, spanning))
        return result

    # ---- transmissions

    @cached_property
    def rotors(self) -> list[Rotor]:
        """The rotors of clusters without loops: balanced bodies that carry nothing.

        What turns no farther than twice the joint that it mimics is a finger or a lever, and so it
        is in formats of simulators, which have one word for all that follows a joint.
        """
        model = self.model
        g = model.constraint_jacobian(model.neutral())
        carriers = {node.parent for node in model.nodes}
        found = []
        for cluster in model.clusters:
            if cluster.kind != "couplings":
                continue
            try:
                moving = select_in(model, cluster, g[cluster.spanning_v, cluster.v])
            except ValueError:  # parts of joints lead, which no gear does
                continue
            kept = [body for body in cluster.bodies if body in moving]
            rows = [v for body in kept for v in model.nodes[body].freedoms]
            inverse = np.linalg.inv(g[rows, cluster.v])
            for body in cluster.bodies:
                node = model.nodes[body]
                if body in moving or body in carriers or not _balanced(node):
                    continue
                ratios = g[node.v, cluster.v] @ inverse
                follows = model.description.simulated or self.is_mimic(model.joints[body].name)
                if follows and np.max(np.abs(ratios)) <= LEVER:
                    continue
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


def _middle(lengths: list[float]) -> float:
    longest = [length for length in sorted(lengths)[-3:] if length > 0.0]
    return longest[(len(longest) - 1) // 2] if longest else 0.0


def _balanced(node: Node) -> bool:
    """Whether a body turns about an axis through its centre of mass."""
    turning = [k for k, x in enumerate(node.joint.subspace[0].angular) if x]
    if node.joint.nv != 1 or len(turning) != 1:
        return False
    off = [float(h) for k, h in enumerate(node.inertia.h) if k != turning[0]]
    return math.hypot(*off) <= BALANCED * float(node.inertia.mass)
