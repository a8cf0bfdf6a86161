"""The size of a robot."""

from __future__ import annotations

import math

from robomodel.mechanism.graph import WORLD
from robomodel.model.model import Model
from robomodel.scalars import value_of


def length_of(model: Model) -> float:
    """A characteristic length [m]: the longest from a link's origin to a joint on it, or 1."""
    offsets = [(node.parent, math.hypot(*map(value_of, node.offset))) for node in model.nodes]
    anchors = [
        math.hypot(*map(value_of, end.point))
        for cluster in model.clusters
        for loop in cluster.geometry.loop_joints
        for end in (loop.predecessor, loop.successor)
    ]
    within = [*anchors, *(far for parent, far in offsets if parent != WORLD)]
    # where a robot stands in the world is no length of it, unless there is no other
    return max(within, default=0.0) or max((far for _, far in offsets), default=0.0) or 1.0
