"""Planar robots in natural coordinates: from joint coordinates to points and back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics.kinematics.state import State
from robomodel.model.arguments import as_array
from robomodel.model.graph import WORLD
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.papers.natural_coordinates.mechanism import Mechanism
from robomodel.scalars import stack, unstack


@dataclass(frozen=True, eq=False)
class NaturalRobot:
    """A planar robot as a :class:`Mechanism`, and how the two correspond.

    ``axes`` (2, 3) are the plane's axes in the world. ``points``: free point → (body, place in its
    internal axes). ``joints``: coordinates of joints → number of the spanning position.
    """

    model: Model
    mechanism: Mechanism
    axes: Array
    points: dict[str, tuple[int, Array]]
    joints: dict[str, int]

    def coordinates(self, q: ArrayLike) -> Array:
        """Natural coordinates (..., n) at q (..., nq)."""
        return self._state(q, None)[0]

    def rates(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Their rates (..., n) at q (..., nq) and v (..., nv)."""
        return self._state(q, v)[1]

    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
        """a (..., nv) under joint forces tau (..., nv), by the KKT system."""
        at, rates, b, b_rate = self._moving(q, v)
        forces = np.einsum("...ij,...i->...j", b, as_array(tau, self.model.nv, "tau", "nv"))
        accelerations, _ = self.mechanism.accelerations(at, rates, forces)
        own: Array = np.einsum("...ij,...j->...i", b, accelerations)
        return own + b_rate

    def null_space_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
        """The same in null-space form."""
        at, rates, b, b_rate = self._moving(q, v)
        forces = np.einsum("...ij,...i->...j", b, as_array(tau, self.model.nv, "tau", "nv"))
        return self.mechanism.independent_accelerations(at, rates, forces, b, b_rate)

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """The tau (..., nv) that produces a (..., nv)."""
        at, rates, b, b_rate = self._moving(q, v)
        a = as_array(a, self.model.nv, "a", "nv")
        return self.mechanism.independent_forces(at, rates, a, b, b_rate)

    def mass_matrix(self, q: ArrayLike) -> Array:
        """M (..., nv, nv) of the robot's own coordinates: RᵀM R."""
        at = self.coordinates(q)
        b, _ = self._basis(at, np.zeros(self.mechanism.n))
        return self.mechanism.independent_mass_matrix(at, b)

    def _moving(self, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array, Array, Array]:
        """Coordinates and rates, B and Ḃ q̇."""
        at, rates = self._state(q, v)
        return at, rates, *self._basis(at, rates)

    def _state(self, q: ArrayLike, v: ArrayLike | None) -> tuple[Array, Array]:
        """Coordinates and rates: points by the robot's kinematics, joints as they are."""
        at = as_array(q, self.model.nq, "q", "nq")
        speed = np.zeros(self.model.nv) if v is None else as_array(v, self.model.nv, "v", "nv")
        batch = np.broadcast_shapes(at.shape[:-1], speed.shape[:-1])
        with np.errstate(all="ignore"):
            everything = range(len(self.model.nodes))
            state = State(self.model, unstack(at), everything, unstack(speed))
            rotations, origins = poses(state, batch)
            positions: list[Array] = []
            rates: list[Array] = []
            for body, place in self.points.values():
                turned = rotations[body] @ place
                positions += _pair(self.axes @ (origins[body] + turned)[..., None])
                twist = stack(state.twists[body].entries(), batch)
                moving = twist[..., 3:] + np.cross(twist[..., :3], place)
                rates += _pair(self.axes @ (rotations[body] @ moving[..., None]))
            spanning = stack(state.positions, batch)
            joint_rates = stack(
                [
                    x
                    for node in self.model.nodes
                    for x in node.joint.rates(
                        state.positions[node.q : node.q + node.joint.nq],
                        state.velocities[node.v : node.v + node.joint.nv],
                    )
                ],
                batch,
            )
        positions += [spanning[..., i] for i in self.joints.values()]
        rates += [joint_rates[..., i] for i in self.joints.values()]
        return stack(positions, batch), stack(rates, batch)

    @cached_property
    def _columns(self) -> list[tuple[int, int]]:
        """For each of v: the body whose joint it belongs to, and which of its velocities."""
        owner = {r: body for body, node in enumerate(self.model.nodes) for r in node.freedoms}
        return [
            (owner[column], column - self.model.nodes[owner[column]].v)
            for cluster in self.model.clusters
            for column in (cluster.spanning_v.start + c for c in cluster.columns)
        ]

    def _basis(self, at: Array, rates: Array) -> tuple[Array, Array]:
        """B and Ḃ q̇, v = B q̇: a unit row for a joint of one freedom; planar joints turn theirs."""
        names = {position: name for name, position in self.joints.items()}
        number = {name: i for i, name in enumerate(self.mechanism.coordinates)}
        b = np.zeros((*at.shape[:-1], self.model.nv, self.mechanism.n))
        b_rate = np.zeros((*np.broadcast_shapes(at.shape, rates.shape)[:-1], self.model.nv))
        for row, (body, which) in enumerate(self._columns):
            node = self.model.nodes[body]
            own = [number[names[node.q + i]] for i in range(node.joint.nq)]
            if node.joint.nv == 1 or which == 2:
                b[..., row, own[which]] = 1.0
                continue
            angle = at[..., own[2]]  # v = (c ẋ + s ẏ, c ẏ - s ẋ, θ̇)
            cosine, sine = np.cos(angle), np.sin(angle)
            along, aside = (cosine, sine) if which == 0 else (-sine, cosine)
            b[..., row, own[0]], b[..., row, own[1]] = along, aside
            moved = along * rates[..., own[1]] - aside * rates[..., own[0]]
            b_rate[..., row] = moved * rates[..., own[2]]
        return b, b_rate


def _pair(column: Array) -> list[Array]:
    return [column[..., 0, 0], column[..., 1, 0]]


def poses(state: State, batch: tuple[int, ...]) -> tuple[list[Array], list[Array]]:
    """Rotations (..., 3, 3) and origins (..., 3) of all bodies in the world."""
    rotations: list[Array] = []
    origins: list[Array] = []
    for node, x in zip(state.model.nodes, state.transforms, strict=True):
        own = stack([e for row in x.matrix() for e in row], batch).reshape(*batch, 3, 3)
        offset = stack(x.offset, batch)
        if node.parent != WORLD:
            above = rotations[node.parent]
            offset = origins[node.parent] + (above @ offset[..., None])[..., 0]
            own = above @ own
        rotations.append(own)
        origins.append(offset)
    return rotations, origins
