"""Bodies as the constraints of their cluster see them."""

from __future__ import annotations

from dataclasses import dataclass

from robomodel.model.joints import JointModel
from robomodel.scalars import Vector
from robomodel.spatial import Rotation, Transform, Vec, plus


@dataclass(frozen=True, slots=True)
class Link:
    """A body as a constraint sees it: its joint, where that sits on the parent, and its columns.

    ``parent`` is the index, within the cluster, of the parent body; None outside it. ``q`` and
    ``v`` are the first of the joint's spanning positions and velocities within the cluster.
    """

    joint: JointModel
    rotations: tuple[Rotation, ...]
    offset: Vec
    parent: int | None
    q: int
    v: int

    def transform(self, q: Vector) -> Transform:
        """Placement of the body in its parent at the cluster's spanning positions."""
        return placement(
            self.joint, self.rotations, self.offset, q[self.q : self.q + self.joint.nq]
        )


def placement(
    joint: JointModel, rotations: tuple[Rotation, ...], offset: Vec, q: Vector
) -> Transform:
    """Transform of a child whose joint frame stands at ``rotations``, ``offset`` on the parent."""
    turn, shift = joint.placement(q)
    for rotation in rotations:
        shift = rotation.rotate(shift)
    return Transform((*turn, *rotations), plus(offset, shift))
