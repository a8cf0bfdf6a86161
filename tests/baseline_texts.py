"""Robots whose dynamics several methods compute."""

from __future__ import annotations

import re

import numpy as np
from documentation_pages import URDF_PAGES, robot_files
from numpy.typing import NDArray

import robomodel as rm

Array = NDArray[np.float64]

OPEN = ("approximate", "unconstrained")

TIGHT = 1e-10


def states(model: rm.Model, count: int, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    q = np.array(
        [model.random_configuration(rng, branch="any", base_pose="random") for _ in range(count)]
    )
    v, x = rng.standard_normal((2, count, model.nv))
    return q, v, x


EXAMPLES = {
    name: text
    for text in robot_files(*URDF_PAGES)
    for name in re.findall(r'<robot name="(\w+)">', text)
}
