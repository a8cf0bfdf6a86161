"""What tests take from motions: their states, and whether their energy stays."""

from __future__ import annotations

import numpy as np

from robomodel.motion import Rollout, Trajectory

Array = np.ndarray


def q_and_v(motions: Rollout) -> tuple[Array, Array]:
    """Configurations and velocities over time."""
    return motions.q, motions.v


def drift(trajectory: Trajectory, more: Array | float = 0.0) -> float:
    """Largest change of energy, and of ``more``, relative to the largest kinetic energy."""
    energy = trajectory.energy + more
    return float(np.max(np.abs(energy - energy[0])) / np.max(trajectory.kinetic))
