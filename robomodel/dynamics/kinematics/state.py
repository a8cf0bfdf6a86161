"""Positions and velocities of all bodies, from which recursions start. Scalars of any kind.

Also the tangents of the configuration space, on traced scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from robomodel.arrays import Array
from robomodel.kernels.trace import Traced, handles
from robomodel.mechanism.graph import WORLD
from robomodel.mechanism.joints import JointModel, relative_motion
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster, joint_slices
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, added, dot, stack, unstack, value_of
from robomodel.spatial import (
    NO_MOTION,
    ZERO,
    Mat,
    Motion,
    RigidInertia,
    Transform,
    Vec,
    Wrench,
    apply,
    combine,
    cross,
    from_quaternion,
    minus,
    plus,
    skew,
    skew_squared,
    sum_matrices,
)

STILL: Mat = (ZERO, ZERO, ZERO)
Matrix: TypeAlias = list[list[Scalar]]
Forces: TypeAlias = Mapping[int, Wrench]  # on bodies, about their origins in internal axes
NO_FORCES: Forces = MappingProxyType({})


@dataclass(frozen=True)
class Configuration:
    """Transforms of all bodies and G of all clusters at a configuration.

    ``transforms[i]`` places body i in its parent. ``rows[r]`` is row r of G (a spanning velocity)
    over the cluster's own independent velocities. ``inertia[i]`` is body i's.

    Results for bodies are in their internal axes, which turn with them. Axisymmetric bodies, whose
    dynamics does not depend on how far they have turned, have axes that do not turn with the
    joint, unless they are ``turned``.
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
            Transform(node.rotations, node.offset)
            if node.axisymmetric and body not in self.turned
            else node.transform(self.positions)
            for body, node in enumerate(self.model.nodes)
        ]

    @property
    def inertia(self) -> list[RigidInertia]:
        """Each body's inertia."""
        return [node.inertia for node in self.model.nodes]

    @cached_property
    def rows(self) -> list[list[Scalar]]:
        """G, row by row, over each cluster's own independent velocities."""
        return self.jacobian()

    def jacobian(self) -> Matrix:
        """G, computed."""
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
        return [dot(row, independent) for row in self.rows[cluster.spanning_v]]

    def armature(self, cluster: Cluster, columns: Sequence[Vector] | None = None) -> Matrix:
        """Gᵀ diag(armature) X of a cluster: X its spanning ``columns``, G's columns by default."""
        rows = self.rows[cluster.spanning_v]
        g = list(zip(*rows, strict=True))
        weights = [
            node.armature
            for node in (self.model.nodes[body] for body in cluster.bodies)
            for _ in node.freedoms
        ]
        weighted = [[w * x for w, x in zip(weights, column, strict=True)] for column in g]
        return [[dot(row, column) for column in columns or g] for row in weighted]


@cached_on_model
def neutral_jacobian(model: Model) -> Array:
    """G at neutral: :meth:`Model.constraint_jacobian`, without compiling anything."""
    rows = Configuration(model, model.neutral().tolist()).rows
    result = np.zeros((len(rows), model.nv))
    for cluster in model.clusters:
        block = rows[cluster.spanning_v]
        result[cluster.spanning_v, cluster.v] = np.reshape(
            [value_of(x) for row in block for x in row], (len(block), cluster.nv)
        )
    return result


@dataclass(frozen=True, slots=True)
class AccelerationField:
    """Conventional accelerations of a body's points r, less gravity: ``linear`` + U r.

    ``around`` is U = [α]x + [ω]x², ``alpha`` is α, all in its own axes. ``parent_motion``: α of the
    parent and the acceleration of the parent's point at the body's origin.
    """

    parent_motion: Motion
    alpha: Vec
    linear: Vec
    around: Mat

    def at(self, pose: Transform) -> Vec:
        """The acceleration of a frame's origin placed by ``pose`` on the body, in its axes."""
        return pose.unrotate(plus(self.linear, apply(self.around, pose.offset)))


@dataclass(frozen=True)
class State(Configuration):
    """A configuration in motion.

    ``omega[i]`` is body i's angular velocity, ``parent_omega[i]`` its parent's, ``centripetal[i]``
    is [ω]x², all in its own axes; ``velocity_products[i]`` is the part of its acceleration relative
    to its parent that velocities alone make (conventional accelerations, the parent's centripetal
    term at the joint left out).
    """

    v: Vector = ()

    def moving(self, v: Vector) -> State:
        """The same configuration in another motion; what it determines alone is not done anew."""
        state = replace(self, v=v)
        known = ("positions", "transforms", "rows")
        vars(state).update({name: getattr(self, name) for name in known})
        return state

    def of(self, model: Model) -> State:
        """The same state of a model that differs in inertias alone; what moves is not done anew."""
        state = replace(self, model=model)
        known = ("positions", "transforms", "rows", "velocities", "bias", "relative", "_turning",
                 "velocity_products", "centripetal")  # fmt: skip
        vars(state).update({name: getattr(self, name) for name in known})
        return state

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
        return added(linear, self.bias)

    @cached_property
    def relative(self) -> list[Motion]:
        """Each body's velocity relative to its parent, in its own axes."""
        return [
            relative_motion(node.joint, self.velocities[node.velocities])
            for node in self.model.nodes
        ]

    @cached_property
    def _turning(self) -> tuple[list[Vec], list[Vec]]:
        parent_omega: list[Vec] = []
        omega: list[Vec] = []
        for node, x, relative in zip(self.model.nodes, self.transforms, self.relative, strict=True):
            parent_omega.append(ZERO if node.parent == WORLD else x.unrotate(omega[node.parent]))
            omega.append(plus(parent_omega[-1], relative.angular))
        return parent_omega, omega

    @property
    def parent_omega(self) -> list[Vec]:
        """The parents' angular velocities."""
        return self._turning[0]

    @property
    def omega(self) -> list[Vec]:
        """Angular velocities."""
        return self._turning[1]

    @cached_property
    def velocity_products(self) -> list[Motion]:
        """Velocity products of the joints."""
        return [
            Motion(cross(above, relative.angular), cross(plus(above, omega), relative.linear))
            for above, omega, relative in zip(
                self.parent_omega, self.omega, self.relative, strict=True
            )
        ]

    @cached_property
    def centripetal(self) -> list[Mat]:
        """[ω]x² of each body."""
        return [skew_squared(omega) for omega in self.omega]

    def points(
        self, accelerations: Vector, *, with_gravity: bool = True
    ) -> Iterator[AccelerationField]:
        """Accelerations of each body's points at these spanning accelerations, body by body.

        Less gravity; without ``with_gravity``, in the world.
        """
        up = minus(ZERO, self.model.gravity) if with_gravity else ZERO
        base = AccelerationField(NO_MOTION, ZERO, up, STILL)
        result: list[AccelerationField] = []
        for body, (node, x) in enumerate(zip(self.model.nodes, self.transforms, strict=True)):
            parent = base if node.parent == WORLD else result[node.parent]
            swung = plus(parent.linear, apply(parent.around, x.offset))
            inherited = Motion(x.unrotate(parent.alpha), x.unrotate(swung))
            rates = [accelerations[r] for r in node.freedoms]
            moved = inherited + (self.velocity_products[body] + combine(rates, node.joint.subspace))
            around = sum_matrices(self.centripetal[body], skew(moved.angular))
            result.append(AccelerationField(inherited, moved.angular, moved.linear, around))
            yield result[body]

    def bias_acceleration(self, body: int) -> Motion:
        """A body's acceleration relative to its parent's at zero independent acceleration.

        The joint's velocity products, S g, and the parent's centripetal acceleration at the joint.
        """
        node = self.model.nodes[body]
        local = self.velocity_products[body] + combine(
            [self.bias[r] for r in node.freedoms], node.joint.subspace
        )
        if node.parent == WORLD:
            return local
        x = self.transforms[body]
        swung = x.unrotate(apply(self.centripetal[node.parent], x.offset))
        return Motion(local.angular, plus(local.linear, swung))

    @cached_property
    def twists(self) -> list[Motion]:
        """Spatial velocities of all bodies at their origins, in their axes."""
        result: list[Motion] = []
        for body, (node, relative) in enumerate(zip(self.model.nodes, self.relative, strict=True)):
            parent = NO_MOTION if node.parent == WORLD else result[node.parent]
            result.append(self.transforms[body].to_child(parent) + relative)
        return result


# ---- tangents of the configuration space ---------------------------------------------------------

# How positions change along each independent velocity: direction j is the motion along
# ``integrate(q, ε e_j)``, in which loops stay closed and quaternions of unit length.

Direction: TypeAlias = dict[Traced, Scalar]


def position_directions(model: Model, q: Sequence[Traced]) -> list[Direction]:
    """For every independent velocity the rates of q along it, and of recorded functions of q."""
    directions: list[Direction] = [{} for _ in range(model.nv)]
    for cluster in model.clusters:
        positions = q[cluster.q]
        rows = cluster.constraint.jacobian(cluster.constraint.positions(positions))
        for body, part, _ in joint_slices(model, cluster):
            node = model.nodes[body]
            first = node.v - cluster.spanning_v.start
            columns = zip(*rows[first : first + node.joint.nv], strict=True)
            for direction, rates in zip(directions[cluster.v], columns, strict=True):
                direction.update(_position_rates(node.joint, positions[part], rates))
    return directions


def moving(model: Model, cluster: Cluster, q: Sequence[Traced], rates: Vector) -> Direction:
    """Rates of a cluster's positions at the robot's spanning velocities ``rates``."""
    direction: Direction = {}
    for body, part, _ in joint_slices(model, cluster):
        node = model.nodes[body]
        joint_rates = [rates[r] for r in node.freedoms]
        direction.update(_position_rates(node.joint, q[cluster.q][part], joint_rates))
    return direction


def _position_rates(joint: JointModel, q: Sequence[Traced], rates: Vector) -> Direction:
    """Rates of a joint's positions at these velocities.

    With a quaternion also those of its rotation matrix, R [ω]x, which are cheaper.
    """
    changes: Direction = dict(zip(q, joint.rates(q, rates), strict=True))
    if joint.nq != joint.nv:
        x, y, z, w = q[-4:]
        omega: Vec = (rates[0], rates[1], rates[2])
        for row in from_quaternion(x, y, z, w).rows:
            changes |= dict(zip(handles(row), cross(row, omega), strict=True))
    return changes


def on_arrays(recursion: Callable[..., Any], model: Model, *arrays: Array) -> Array:
    """A recursion on a batch: vectors (n, …) or matrices (n, …, …)."""
    return as_array(recursion(model, *map(unstack, arrays)), len(arrays[0]))


def as_array(result: Sequence[Any], n: int) -> Array:
    """A vector (n, …) or a matrix (n, …, …) of scalars of a batch."""
    if result and isinstance(result[0], list):
        return np.stack([stack(row, (n,)) for row in result], axis=1)
    return stack(result, (n,))
