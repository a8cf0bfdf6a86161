"""Where contacts are, and the planes of the grounds that points touch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.state import Configuration, State
from robomodel.kernels.function import TracedFunction
from robomodel.mechanism.graph import WORLD
from robomodel.model.model import Model
from robomodel.motion.contact_laws import TAKES_PART
from robomodel.motion.contact_rows import Setting, between
from robomodel.motion.family import Family
from robomodel.motion.ground import Ground, GroundPoint, Pair
from robomodel.motion.layout import StateLayout
from robomodel.motion.tangent import in_tangents
from robomodel.scalars import Scalar, Vector, sqrt
from robomodel.spatial import ZERO, inner

ABSENT = 1e3  # m: the gap that stands for no contact
Length: TypeAlias = float | Array


@dataclass(frozen=True)
class ContactPlaces:
    """The contacts of a robot's steps: points on planes of grounds, then pairs of links.

    A point has a contact for each plane that it may touch, of all grounds; it counts as one place.
    """

    family: Family
    layout: StateLayout
    setting: Setting
    grounds: tuple[Ground, ...]

    @property
    def stride(self) -> int:
        """Number of planes that each point may touch."""
        return sum(ground.planes for ground in self.grounds)

    @property
    def points(self) -> tuple[GroundPoint, ...]:
        """The points that may touch the ground, each once."""
        return self.setting.points[:: self.stride or 1]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Contacts of spheres and capsules of links with each other."""
        return self.setting.pairs

    @property
    def count(self) -> int:
        """Number of places."""
        return len(self.points) + len(self.pairs)

    # ---- places

    @cached_property
    def _places(self) -> TracedFunction:
        """q → positions of the contacts in the world, each point's once."""
        points, rounds = self.points, self.setting.rounds
        links = {p.link for p in points}.union(*(pair.links for pair in rounds))

        def build(model: Model, q: Vector) -> list[Scalar]:
            state = Configuration(model, q, {model.frame(link).body for link in links})
            places = [
                frames.pose_of(state, frames.place(model, (p.link, p.offset)))[1] for p in points
            ]
            for pair in rounds:
                places += [each[2] for each in between(model, state, pair)]
            return [x for place in places for x in place]

        of = [(point.link, point.offset) for point in points]
        name, nq = f"places of {of!r}, {rounds!r}", self.family.model.nq
        return self.family.program(name, (nq, *self.family.sizes, 3 * self.count), build)

    def places(self, q: Array, *more: Array) -> Array:
        """Positions (..., k, 3) of the contacts, each point's once; ``more``: parameters."""
        if not self.count:
            return np.zeros((*q.shape[:-1], 0, 3))
        return np.asarray(self._places(q, *more)).reshape(*q.shape[:-1], -1, 3)

    # ---- planes

    @cached_property
    def _spheres(self) -> TracedFunction:
        """(q, v, z and bases) → centre and speed of each point."""
        points, layout = self.points, self.layout

        def build(model: Model, numbers: Vector) -> list[Scalar]:
            start, result = layout.moving(numbers), list[Scalar]()
            bodies = {model.frame(point.link).body for point in points}
            state = State(in_tangents(model, start.bases), start.q, bodies, start.z)
            for point in points:
                place = frames.place(model, (point.link, point.offset))
                result += frames.pose_of(state, place)[1]
                on = place.body
                speed = place.pose.to_child(state.twists[on]).linear if on != WORLD else ZERO
                result.append(sqrt(inner(speed, speed)))
            return result

        name = f"spheres of {[(x.link, x.offset) for x in points]!r}"
        sizes = (layout.columns.bases.stop, *self.family.sizes, 4 * len(points))
        return self.family.program(name, sizes, build)

    def argument(self, states: Array, h: Length, *more: Array) -> tuple[Array, ...]:
        """The planes that a step from states (..., size) takes, if it takes some."""
        return (self.planes(states, h, *more).astype(states.dtype),) if self.setting.planes else ()

    def planes(self, states: Array, h: Length, *more: Array) -> Array:
        """Planes (..., 4 k) that points may touch in a step, of all grounds; ``more``: parameters.

        Those within twice the point's way in a step plus twice the distance that counts as near.
        """
        spheres = np.asarray(self._spheres(states[..., : self.layout.columns.bases.stop], *more))
        centres, speeds = np.split(spheres.reshape(*states.shape[:-1], -1, 4), [3], axis=-1)
        reach = np.nan_to_num(speeds[..., 0], posinf=0.0) * np.asarray(h)[..., None]
        radii = np.array([p.radius for p in self.points])
        near = [
            ground.surfaces(centres, radii, reach=2.0 * (TAKES_PART + reach), count=ground.planes)
            for ground in self.grounds
        ]
        gaps = np.concatenate([each for each, _ in near], axis=-1)
        normals = np.concatenate([each for _, each in near], axis=-2)
        far = ~np.isfinite(gaps)
        normals = np.where(far[..., None], [0.0, 0.0, 1.0], normals)
        heights = np.einsum("...ki,...kci->...kc", centres, normals) - radii[:, None]
        offsets = heights - np.where(far, ABSENT, gaps)
        planes = np.concatenate([normals, offsets[..., None]], axis=-1)
        return planes.reshape(*states.shape[:-1], -1)

    # ---- impulses and forces

    def forces(self, impulses: Array, h: float) -> Array:
        """Forces (..., k, 3) on places from the impulses of a step on contacts."""
        forces = impulses.reshape(*impulses.shape[:-1], -1, 3) / h
        points = len(self.setting.points)
        if points == len(self.points):
            return forces
        planes = forces[..., :points, :].reshape(*forces.shape[:-2], -1, self.stride, 3)
        return np.concatenate([planes.sum(axis=-2), forces[..., points:, :]], axis=-2)

    def impulses(self, forces: Array, h: float) -> Array:
        """Impulses (T, 3 k) of steps, from the forces (T, k, 3), at a point's first plane."""
        count, setting = len(self.points), self.setting
        impulses = np.zeros((len(forces), setting.contacts, 3))
        impulses[:, : len(setting.points) : self.stride or 1] = h * forces[:, :count]
        impulses[:, len(setting.points) :] = h * forces[:, count:]
        return impulses.reshape(len(forces), 3 * setting.contacts)
