"""What tests take from rollouts."""

from __future__ import annotations

import numpy as np

from robomodel.motion import Rollout

Array = np.ndarray


def q_and_v(motions: Rollout) -> tuple[Array, Array]:
    """Configurations and velocities over time."""
    return motions.q, motions.v
