"""Units in which a robot's motions, forces and parameters are comparable, whatever its size."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robomodel.arrays import Array
from robomodel.model.elements import columns_of
from robomodel.model.model import Model
from robomodel.model.parameters import of_joints
from robomodel.model.sizes import length_of
from robomodel.scalars import value_of


@dataclass(frozen=True, eq=False)
class Units:
    """Units of a robot.

    ``length`` [m] is that of :func:`length_of`, ``rate`` [1/s] that of a pendulum of this length.
    ``velocities`` (nv,) are radians and lengths. ``parameters`` (p,): torques of one of each at
    such velocities and rates.
    """

    length: float
    rate: float
    velocities: Array
    parameters: Array

    @classmethod
    def of(cls, model: Model) -> Units:
        """The units of a robot; without gravity its rate is 1/s."""
        length, pull = length_of(model), math.hypot(*map(value_of, model.gravity))
        slides = np.ones(len(model.joints), dtype=np.intp)
        velocities = np.ones(model.nv)
        for cluster in model.clusters:
            columns = columns_of(model, cluster)
            for column in columns:
                slides[cluster.bodies[column.link]] &= column.length
            velocities[cluster.v] = [length if columns[c].length else 1.0 for c in cluster.columns]
        rate = math.sqrt(pull / length) or 1.0
        body = [rate**2 * size for size in (length**2, *[length] * 3, *[1.0] * 6)]
        turning = {"friction": 1.0, "damping": rate, "armature": rate**2}
        sliding = {"friction": 1, "damping": 2, "armature": 2}
        joints = [
            turning[kind] * length ** int(slides[index] * sliding[kind])
            for index, kind in of_joints(model)
        ]
        return cls(length, rate, velocities, np.array([*body * len(model.nodes), *joints]))
