"""The model for the checks: places of elements in the file and in space."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robomodel.arrays import Array
from robomodel.description import Joint as FileJoint
from robomodel.description import Link, Loop, Vec3
from robomodel.dynamics.kinematics.state import Configuration, on_arrays
from robomodel.dynamics.recursions.crba import crba
from robomodel.errors import NOWHERE, ClosureError, Source
from robomodel.mechanism.graph import WORLD
from robomodel.model import Model
from robomodel.model.elements import Cluster, Node
from robomodel.reach.limb import select_in
from robomodel.reports.validation.bounds import BOUNDS
from robomodel.reports.validation.linkage import Known, LinkageStudy, study
from robomodel.scalars import Scalar, stack, unstack, value_of
from robomodel.tolerances import SAME

POSES = 8  # besides neutral


@dataclass(frozen=True, eq=False)
class BodyPlacements:
    """All bodies in the world at one configuration, in the model's order.

    ``turns`` (n, 3, 3) and ``origins`` (n, 3): their internal axes; ``mass`` (n,), ``com`` (n, 3),
    ``inertia`` (n, 3, 3) about it, in the world's axes.
    """

    turns: Array
    origins: Array
    mass: Array
    com: Array
    inertia: Array

    @classmethod
    def at(cls, model: Model, spanning: Array) -> BodyPlacements:
        """Placements at these positions of all joints, whether loops close or not."""
        positions: list[Scalar] = [float(x) for x in spanning]
        n = len(model.nodes)
        turns, origins = np.zeros((n, 3, 3)), np.zeros((n, 3))
        mass, com, inertia = np.zeros(n), np.zeros((n, 3)), np.zeros((n, 3, 3))
        for k, node in enumerate(model.nodes):
            x = node.transform(positions)
            turn, offset = np.array(x.matrix(), dtype=float), np.array(x.offset, dtype=float)
            if node.parent != WORLD:
                offset = origins[node.parent] + turns[node.parent] @ offset
                turn = turns[node.parent] @ turn
            turns[k], origins[k] = turn, offset
            mass[k] = value_of(node.inertia.mass)
            local = np.array(node.inertia.h, dtype=float) / (mass[k] or 1.0)
            about = np.array(node.inertia.inertia, dtype=float) - steiner(mass[k], local)
            com[k] = offset + turn @ local
            inertia[k] = turn @ about @ turn.T
        return cls(turns, origins, mass, com, inertia)

    def together(self, bodies: Collection[int]) -> tuple[float, Array]:
        """Mass and inertia of bodies as one, about their common centre of mass."""
        at = list(bodies)
        mass = float(np.sum(self.mass[at]))
        com = self.mass[at] @ self.com[at] / (mass or 1.0)
        inertia = sum(
            (self.inertia[k] + steiner(self.mass[k], self.com[k] - com) for k in at),
            start=np.zeros((3, 3)),
        )
        return mass, inertia

    def about(self, origin: Array, axis: Array, bodies: Collection[int]) -> float:
        """The moment of inertia of bodies about an axis [kg m²]."""
        return float(
            sum(
                axis @ self.inertia[k] @ axis
                + self.mass[k] * np.sum(np.cross(axis, self.com[k] - origin) ** 2)
                for k in bodies
            )
        )


def steiner(mass: float, offset: Array) -> Array:
    """The inertia (3, 3) of a point mass about the origin: the parallel-axis term."""
    result: Array = mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
    return result


@dataclass(frozen=True)
class GearedRotor:
    """A body that a gear or belt turns about its axis, and its ratio to each joint that it drives.

    ``ratios``: joint that moves in the open tree → the rotor's ratio to it.
    """

    body: int
    ratios: dict[str, float]
    inertia: float
    mass: float
    source: Source


@dataclass(frozen=True)
class CheckContext:
    """A model, with properties that several checks use."""

    model: Model

    @cached_property
    def links(self) -> dict[str, Link]:
        """The file's links by name."""
        return {link.name: link for link in self.model.description.links}

    @cached_property
    def file_joints(self) -> dict[str, FileJoint]:
        """The file's joints by name."""
        return {joint.name: joint for joint in self.model.description.joints}

    @cached_property
    def loops(self) -> dict[str, Loop]:
        """The file's loops by name."""
        return {loop.name: loop for loop in self.model.description.loops}

    @cached_property
    def anchors(self) -> dict[str, list[Vec3]]:
        """Points of each link at which joints and loops are attached, in its frame."""
        points: dict[str, list[Vec3]] = {name: [] for name in self.links}
        for joint in self.model.description.joints:
            points[joint.parent].append(joint.origin.xyz)
        for loop in self.model.description.loops:
            for end in (loop.predecessor, loop.successor):
                points[end.link].append(end.origin.xyz)
        return points

    @cached_property
    def couplings(self) -> dict[str, Source]:
        """The places of couplings and mimics in the file, by name."""
        sources = {each.name: each.source for each in self.model.description.couplings}
        return {each.name: self.joint_source(each.name) for each in self.model.couplings} | sources

    def joint_source(self, joint: str) -> Source:
        """The place in the file of a joint, or of the joint of a freedom's label."""
        name = joint if joint in self.file_joints else joint.rpartition(".")[0]
        return self.file_joints[name].source if name in self.file_joints else NOWHERE

    def cluster_source(self, cluster: Cluster) -> Source:
        """The place in the file of a cluster's first loop or coupling."""
        for loop in self.model.loops:
            if loop.cluster == cluster.name:
                return self.loops[loop.name].source
        for coupling in self.model.couplings:
            if coupling.cluster == cluster.name:
                return self.couplings[coupling.name]
        return self.joint_source(cluster.joints[0])

    def is_mimic(self, joint: str) -> bool:
        """True if the file has a joint mimic another."""
        return joint in self.file_joints and self.file_joints[joint].mimic is not None

    @cached_property
    def linkages(self) -> dict[str, LinkageStudy]:
        """The study of each cluster with loops, by its name."""
        turned = {self.model.joints[rotor.body].name: rotor.ratios for rotor in self.rotors}
        before: Known = {}
        return {
            cluster.name: study(self.model, cluster, turned, before)
            for cluster in self.model.clusters
            if cluster.kind == "loops"
        }

    # ---- space

    @cached_property
    def placements(self) -> BodyPlacements:
        """All bodies at neutral."""
        return BodyPlacements.at(self.model, self.spanning)

    @cached_property
    def spanning(self) -> Array:
        """All joints' positions at neutral."""
        neutral = [float(x) for x in self.model.neutral()]
        return np.array([value_of(x) for x in self.model.spanning_positions(neutral)])

    def axis(self, body: int) -> Array:
        """The direction of a one-freedom joint in the world, at neutral."""
        direction: Array = self.placements.turns[body] @ self._direction(body)
        return direction

    def _direction(self, body: int) -> Array:
        """The direction of a one-freedom joint in the body's internal axes."""
        motion = self.model.nodes[body].joint.subspace[0]
        return np.array(motion.angular if any(motion.angular) else motion.linear, dtype=float)

    def slides(self, body: int) -> bool:
        """True if a joint of one freedom is prismatic."""
        return not any(self.model.nodes[body].joint.subspace[0].angular)

    @cached_property
    def size(self) -> float:
        """The longest distance from a body's joint to its parent's or its mass [m]; 1 without any.

        The third longest, so that one wrong number does not set the scale.
        """
        nodes = self.model.nodes
        links = [math.hypot(*(value_of(x) for x in node.offset)) for node in nodes]
        masses = [math.hypot(*(value_of(h) for h in node.inertia.h)) / value_of(node.inertia.mass)
                  for node in nodes if node.inertia.mass]  # fmt: skip
        return max(_middle(links), _middle(masses)) if any(links) else 1.0

    # ---- masses

    @cached_property
    def mass(self) -> float:
        """The mass of all bodies that move."""
        return sum(body.mass for body in self.model.bodies)

    @cached_property
    def beyond(self) -> list[list[int]]:
        """For each body the bodies that it carries, itself included, without rotors."""
        rotors = {rotor.body for rotor in self.rotors}
        bodies: list[list[int]] = [[] for _ in self.model.nodes]
        for body in range(len(self.model.nodes)):
            if body not in rotors:
                above = body
                while above != WORLD:
                    bodies[above].append(body)
                    above = self.model.nodes[above].parent
        return bodies

    @cached_property
    def turning(self) -> list[bool]:
        """True for each body that can turn: otherwise its moments of inertia do not matter."""
        turns: list[bool] = []
        for node in self.model.nodes:
            turns_itself = any(any(motion.angular) for motion in node.joint.subspace)
            turns.append(turns_itself or (node.parent != WORLD and turns[node.parent]))
        return turns

    def carried(self, body: int) -> tuple[float, float]:
        """Inertia [kg m² or kg] that a body's joint moves, without rotors: the least and the
        greatest.

        At neutral and at some other positions of the joints with loops open; in a linkage at closed
        ones, as the inertia that resists a torque on the joint.
        """
        if self.model.clusters[self.model.nodes[body].cluster].kind == "loops":
            inertias = self._effective_inertias[:, self.model.nodes[body].v]
            inertias = inertias[np.isfinite(inertias)]
            return (
                (float(inertias.min()), float(inertias.max())) if len(inertias) else (0.0, math.inf)
            )
        bodies = self.beyond[body]
        moments = []
        for placements in self._poses:
            if self.slides(body):
                moments.append(float(np.sum(placements.mass[bodies])))
            else:
                axis = placements.turns[body] @ self._direction(body)
                moments.append(placements.about(placements.origins[body], axis, bodies))
        return min(moments), max(moments)

    @cached_property
    def mass_matrix(self) -> Array:
        """That at neutral, not finite where it is singular."""
        with np.errstate(all="ignore"):  # one configuration is worth no program
            return np.asarray(on_arrays(crba, self.model, self.model.neutral()[None])[0])

    @cached_property
    def _effective_inertias(self) -> Array:
        """1 / (G M⁻¹ Gᵀ) of each spanning velocity at closed configurations, without rotors."""
        rng = np.random.default_rng(0)
        poses = [self.model.neutral()]
        with suppress(ClosureError):
            poses += [self.model.random_configuration(rng) for _ in range(POSES)]
        model, q, n = self.model, np.array(poses), len(poses)
        g = np.zeros((n, model.n_joint_velocities, model.nv))
        with np.errstate(all="ignore"):  # a few configurations are worth no program
            rows = Configuration(model, unstack(q)).rows
            mass = on_arrays(crba, model, q)
        for cluster in model.clusters:
            for r in range(cluster.spanning_v.start, cluster.spanning_v.stop):
                g[:, r, cluster.v] = stack(rows[r], (n,))
        for rotor in self.rotors:
            spin = g[:, self.model.nodes[rotor.body].v]
            mass -= rotor.inertia * spin[:, :, None] * spin[:, None, :]
        regular = np.isfinite(g).all(axis=(1, 2)) & np.isfinite(mass).all(axis=(1, 2))
        g, mass = g[regular], mass[regular]
        with np.errstate(all="ignore"):
            inverse = np.linalg.pinv(mass, hermitian=True)
            return np.asarray(1.0 / np.einsum("nsi,nij,nsj->ns", g, inverse, g))

    @cached_property
    def _poses(self) -> list[BodyPlacements]:
        rng = np.random.default_rng(0)
        result = [self.placements]
        for _ in range(POSES):
            spanning = self.spanning.copy()
            for body, node in enumerate(self.model.nodes):
                if node.joint.nv == 1 and not self.slides(body):
                    spanning[node.q] = rng.uniform(-math.pi, math.pi)
            result.append(BodyPlacements.at(self.model, spanning))
        return result

    # ---- transmissions

    @cached_property
    def rotors(self) -> list[GearedRotor]:
        """Balanced bodies that carry nothing, and that gears or belts turn.

        A body that turns at most twice as far as the joint that it mimics is a finger or a lever,
        and with a slide that it mimics a pinion; so it is in formats of simulators, which have one
        element for all that follows a joint.
        """
        model = self.model
        carriers = {node.parent for node in model.nodes}
        carriers |= {body for loop in model.loops for body in self._ends(loop.name)}
        rotors = []
        for cluster in model.clusters:
            for body, ratios in self._geared(cluster):
                node = model.nodes[body]
                if body in carriers or not _balanced(node):
                    continue
                follows = model.description.simulated or self.is_mimic(model.joints[body].name)
                pinion = any(joint.type == "prismatic" for joint in model.joints
                             if joint.name in ratios)  # fmt: skip
                most = max(map(abs, ratios.values()), default=0.0)
                if follows and (pinion or most <= BOUNDS.mimic_lever):
                    continue
                k = next(i for i, x in enumerate(node.joint.subspace[0].angular) if x)
                inertia = value_of(node.inertia.inertia[k][k])
                link = self.links[model.bodies[body].name]
                rotors.append(
                    GearedRotor(body, ratios, inertia, model.bodies[body].mass, link.source)
                )
        return rotors

    def _ends(self, loop: str) -> tuple[int, int]:
        """The bodies that a loop connects."""
        ends = self.loops[loop]
        first, second = (self.model.frame(end.link).body
                         for end in (ends.predecessor, ends.successor))  # fmt: skip
        return first, second

    def _geared(self, cluster: Cluster) -> Iterator[tuple[int, dict[str, float]]]:
        """Bodies whose joints follow others of the cluster, with their ratios to these.

        With couplings these are all that do not move in the open tree; in a linkage those that one
        coupling relates to the body, the ratios being constant.
        """
        model = self.model
        if cluster.kind == "couplings":
            g = model.constraint_jacobian(model.neutral())
            try:
                moving = select_in(model, cluster, g[cluster.spanning_v, cluster.v])
            except ValueError:  # parts of joints are independent, which no gear has
                return
            leading = [body for body in cluster.bodies if body in moving]
            rows = [(v, model.joints[body].name)
                    for body in leading for v in model.nodes[body].freedoms]  # fmt: skip
            inverse = np.linalg.inv(g[[v for v, _ in rows], cluster.v])
            names = [name for _, name in rows]
            for body in cluster.bodies:
                if body not in moving:
                    ratios = (g[model.nodes[body].v, cluster.v] @ inverse).tolist()
                    yield body, {n: x for n, x in zip(names, ratios, strict=True) if abs(x) > SAME}
        elif cluster.kind == "loops":
            for body in cluster.bodies:
                name = model.joints[body].name
                tied = [dict(each.terms) for each in model.couplings
                        if name in dict(each.terms) and not each.coefficients]  # fmt: skip
                if len(tied) == 1:
                    coefficient = tied[0].pop(name)
                    yield body, {joint: -k / coefficient for joint, k in tied[0].items() if k}


def _middle(lengths: list[float]) -> float:
    longest = [length for length in sorted(lengths)[-3:] if length > 0.0]
    return longest[(len(longest) - 1) // 2] if longest else 0.0


def _balanced(node: Node) -> bool:
    """True if a body turns about an axis through its centre of mass."""
    turning = [k for k, x in enumerate(node.joint.subspace[0].angular) if x]
    if node.joint.nv != 1 or len(turning) != 1:
        return False
    off = [value_of(h) for k, h in enumerate(node.inertia.h) if k != turning[0]]
    return math.hypot(*off) <= BOUNDS.balanced_centre * value_of(node.inertia.mass)
