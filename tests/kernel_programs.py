"""Programs for kernels, and how close results are."""

from __future__ import annotations

import numpy as np

import robomodel as rm


def states(model: rm.Model, count: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    q = np.array(
        [model.random_configuration(rng, branch="any", base_pose="random") for _ in range(count)]
    )
    return q, *rng.standard_normal((2, count, model.nv))
