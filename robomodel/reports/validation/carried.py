"""Where a robot's masses are: what hangs on a body, and what a joint carries."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from robomodel.model import Model
from robomodel.model.graph import WORLD
from robomodel.model.joints import Array
from robomodel.scalars import Scalar


@dataclass(frozen=True, eq=False)
class Places:
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
    def at(cls, model: Model, spanning: Array) -> Places:
        """At these positions of all joints, whether loops close or not."""
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
            mass[k] = float(node.inertia.mass)
            local = np.array(node.inertia.h, dtype=float) / (mass[k] or 1.0)
            about = np.array(node.inertia.inertia, dtype=float) - _steiner(mass[k], local)
            com[k] = offset + turn @ local
            inertia[k] = turn @ about @ turn.T
        return cls(turns, origins, mass, com, inertia)

    def together(self, bodies: Collection[int]) -> tuple[float, Array]:
        """Mass and inertia of bodies as one, about their common centre of mass."""
        at = list(bodies)
        mass = float(np.sum(self.mass[at]))
        com = self.mass[at] @ self.com[at] / (mass or 1.0)
        inertia = sum(
            (self.inertia[k] + _steiner(self.mass[k], self.com[k] - com) for k in at),
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


def _steiner(mass: float, offset: Array) -> Array:
    """The inertia of a point mass about the origin."""
    result: Array = mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
    return result
