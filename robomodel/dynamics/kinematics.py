"""Positions and velocities of all bodies: what every recursion starts from. Scalars of any kind."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from robomodel.model.constraints import placement
from robomodel.model.joints import relative_motion
from robomodel.model.model import WORLD, Cluster, Model
from robomodel.scalars import Scalar, Vector, add, dot, mul
from robomodel.spatial import (
    NO_MOTION,
    ZERO,
    Mat,
    Motion,
    Transform,
    Vec,
    apply,
    combine,
    cross,
    plus,
    skew_squared,
)

STILL: Mat = (ZERO, ZERO, ZERO)
Matrix: TypeAlias = list[list[Scalar]]


@dataclass(frozen=True)
class Configuration:
    """Transforms of all bodies and G of all clusters at a configuration.

    ``transforms[i]`` places body i in its parent. ``rows[r]`` is row r of G (a spanning velocity)
    over the cluster's own independent velocities. Bodies that spin (``Node.spins``) are left
    unturned unless they are ``turned``: their dynamics is the same in axes that do not turn.
    """

    model: Model
    q: Vector
    turned: Container[int] = ()

    @cached_property
    def positions(self) -> list[Scalar]:
        """Spanning positions."""
        return self.model.spanning_positions(self.q)

    @cached_property
    def transforms(self) -> list[Transform]:
        """Each body's placement in its parent."""
        return [
            placement(node.joint, node.rotations, node.offset, (0.0,))
            if node.spins and body not in self.turned
            else node.transform(self.positions)
            for body, node in enumerate(self.model.nodes)
        ]

    @cached_property
    def rows(self) -> list[list[Scalar]]:
        """G, row by row, over each cluster's own independent velocities."""
        return [
            row
            for cluster in self.model.clusters
            for row in cluster.constraint.jacobian(self.positions[cluster.spanning_q])
        ]

    def subspace(self, body: int) -> list[Motion]:
        """S G of a body: its motion relative to its parent per independent velocity."""
        node = self.model.nodes[body]
        rows = [self.rows[r] for r in node.freedoms]
        return [combine(column, node.joint.subspace) for column in zip(*rows, strict=True)]

    def spanning(self, cluster: Cluster, independent: Vector) -> list[Scalar]:
        """G times independent velocities (or accelerations) of a cluster."""
        return [dot(self.rows[r], independent) for r in _range(cluster.spanning_v)]

    def armature(self, cluster: Cluster, columns: Sequence[Vector] | None = None) -> Matrix:
        """Gᵀ diag(armature) X of a cluster: X its spanning ``columns``, G's own where not given."""
        rows = self.rows[cluster.spanning_v]
        own = list(zip(*rows, strict=True))
        weights = [
            node.armature
            for node in (self.model.nodes[body] for body in cluster.bodies)
            for _ in node.freedoms
        ]
        weighted = [[mul(w, x) for w, x in zip(weights, column, strict=True)] for column in own]
        return [[dot(row, column) for column in columns or own] for row in weighted]


@dataclass(frozen=True)
class State(Configuration):
    """A configuration in motion.

    ``omega[i]`` is body i's angular velocity, ``centripetal[i]`` = [ω]x², both in its own axes;
    ``products[i]`` is the part of its acceleration relative to its parent that velocities alone
    make (conventional accelerations, the parent's centripetal term at the joint left out).
    """

    v: Vector = ()

    @cached_property
    def velocities(self) -> list[Scalar]:
        """Spanning velocities G v."""
        return [x for c in self.model.clusters for x in self.spanning(c, self.v[c.v])]

    @cached_property
    def bias(self) -> list[Scalar]:
        """g: spanning accelerations at zero independent acceleration."""
        return [
            x
            for c in self.model.clusters
            for x in c.constraint.bias(self.positions[c.spanning_q], self.velocities[c.spanning_v])
        ]

    def accelerations(self, a: Vector) -> list[Scalar]:
        """Spanning accelerations G a + g."""
        linear = [x for c in self.model.clusters for x in self.spanning(c, a[c.v])]
        return [add(x, g) for x, g in zip(linear, self.bias, strict=True)]

    @cached_property
    def _motions(self) -> tuple[list[Vec], list[Motion]]:
        omega: list[Vec] = []
        products: list[Motion] = []
        for body, node in enumerate(self.model.nodes):
            at = node.v
            relative = relative_motion(node.joint, self.velocities[at : at + node.joint.nv])
            carried = (
                ZERO if node.parent == WORLD else self.transforms[body].unrotate(omega[node.parent])
            )
            turning = plus(carried, relative.angular)
            omega.append(turning)
            products.append(
                Motion(
                    cross(carried, relative.angular),
                    cross(plus(carried, turning), relative.linear),
                )
            )
        return omega, products

    @property
    def omega(self) -> list[Vec]:
        """Angular velocities."""
        return self._motions[0]

    @property
    def products(self) -> list[Motion]:
        """Velocity products of the joints."""
        return self._motions[1]

    @cached_property
    def centripetal(self) -> list[Mat]:
        """[ω]x² of each body."""
        return [skew_squared(omega) for omega in self.omega]

    def drift(self, body: int) -> Motion:
        """A body's acceleration relative to its parent's at zero independent acceleration.

        The joint's velocity products, S g, and the parent's centripetal acceleration at the joint.
        """
        node = self.model.nodes[body]
        own = self.products[body] + combine(
            [self.bias[r] for r in node.freedoms], node.joint.subspace
        )
        if node.parent == WORLD:
            return own
        x = self.transforms[body]
        swung = x.unrotate(apply(self.centripetal[node.parent], x.offset))
        return Motion(own.angular, plus(own.linear, swung))

    @cached_property
    def twists(self) -> list[Motion]:
        """Velocities of all bodies' origins, with their linear parts."""
        result: list[Motion] = []
        for body, node in enumerate(self.model.nodes):
            relative = relative_motion(node.joint, self.velocities[node.v : node.v + node.joint.nv])
            parent = NO_MOTION if node.parent == WORLD else result[node.parent]
            result.append(self.transforms[body].to_child(parent) + relative)
        return result


def _range(part: slice) -> range:
    return range(part.start, part.stop)
