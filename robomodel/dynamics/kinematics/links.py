"""Where every link of a robot stands, for pictures."""

from __future__ import annotations

import numpy as np

from robomodel.dynamics.kinematics.state import Configuration
from robomodel.model import Model
from robomodel.model.joints import Array
from robomodel.spatial import Transform


def link_poses(model: Model, q: Array) -> dict[str, Array]:
    """Homogeneous poses (4, 4) of all links in the world at one configuration (nq,)."""
    state = Configuration(model, [float(x) for x in q], range(len(model.nodes)))
    bodies: list[Array] = []
    for node, transform in zip(model.nodes, state.transforms, strict=True):
        above = np.eye(4) if node.parent < 0 else bodies[node.parent]
        bodies.append(above @ _homogeneous(transform))
    return {
        frame.name: (np.eye(4) if frame.body < 0 else bodies[frame.body]) @ _homogeneous(frame.pose)
        for frame in model.frames
    }


def _homogeneous(transform: Transform) -> Array:
    result = np.eye(4)
    result[:3, :3] = np.array(transform.matrix(), dtype=float)
    result[:3, 3] = np.array(transform.offset, dtype=float)
    return result
