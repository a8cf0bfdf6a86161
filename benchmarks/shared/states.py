"""Random states of a robot, for kernels and rivals alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import robomodel as rm
from benchmarks.shared.race import Array


@dataclass(frozen=True)
class States:
    """Positions, velocities, and a third vector (forces or accelerations), (n, …) each."""

    q: Array
    v: Array
    x: Array

    @classmethod
    def of(cls, model: rm.Model, count: int) -> States:
        """``count`` of them; a few dozen configurations take turns."""
        rng = np.random.default_rng(2)
        some = np.array(
            [model.random_configuration(rng, base_pose="random") for _ in range(min(count, 64))]
        )
        v, x = rng.normal(size=(2, count, model.nv))
        return cls(np.resize(some, (count, model.nq)), v, x)

    def arguments(self, kernel: rm.kernels.Kernel) -> tuple[Array, ...]:
        """As many of the three as the kernel takes."""
        return (self.q, self.v, self.x)[: len(kernel.sizes)]

    def first(self, count: int) -> States:
        """The first ``count``."""
        return States(self.q[:count], self.v[:count], self.x[:count])
