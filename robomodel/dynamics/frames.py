"""Frames: poses, Jacobians and velocities of points fixed to bodies. Scalars of any kind."""

from __future__ import annotations

from dataclasses import dataclass

from robomodel.dynamics.kinematics import Configuration, State
from robomodel.model.model import WORLD, Model
from robomodel.scalars import Scalar, Vector, add
from robomodel.spatial import NO_MOTION, UNIT, ZERO, Mat, Transform, Vec, Wrench, matmul


@dataclass(frozen=True, slots=True)
class Place:
    """A frame fixed to a body (``WORLD`` for the fixed base), placed in its internal axes."""

    body: int
    pose: Transform


def place(model: Model, frame: str | tuple[str, Vec]) -> Place:
    """The place of a frame: a link's name, or (link, offset) with the link's own axes."""
    name, offset = (frame, ZERO) if isinstance(frame, str) else frame
    found = model.frame(name)
    x, y, z = (float(t) for t in offset)
    pose = Transform(found.pose.rotations, found.pose.point((x, y, z)))
    return Place(found.body, pose)


def pose(model: Model, q: Vector, at: Place) -> tuple[Mat, Vec]:
    """Rotation (rows) and origin of a frame in the world."""
    state = Configuration(model, q, (at.body,))
    rotation, origin, body = at.pose.matrix(), at.pose.offset, at.body
    while body != WORLD:
        x = state.transforms[body]
        for step in x.rotations:
            rows = tuple(step.rotate(e) for e in UNIT)
            matrix: Mat = (
                (rows[0][0], rows[1][0], rows[2][0]),
                (rows[0][1], rows[1][1], rows[2][1]),
                (rows[0][2], rows[1][2], rows[2][2]),
            )
            rotation = matmul(matrix, rotation)
        origin = x.point(origin)
        body = model.nodes[body].parent
    return rotation, origin


def jacobian(model: Model, q: Vector, at: Place) -> list[list[Scalar]]:
    """J (6 by nv): the frame's velocity, angular first, in its own axes, is J v.

    Row r is the unit wrench r at the frame, carried to the base: what it does to each joint passed.
    """
    state = Configuration(model, q, (at.body,))
    result = []
    for r in range(6):
        row: list[Scalar] = [0.0] * model.nv
        wrench = Wrench(UNIT[r], ZERO) if r < 3 else Wrench(ZERO, UNIT[r - 3])
        wrench = at.pose.to_parent(wrench)
        body = at.body
        while body != WORLD:
            node = model.nodes[body]
            first = model.clusters[node.cluster].v.start
            for i, motion in enumerate(state.subspace(body)):
                row[first + i] = add(row[first + i], wrench.dot(motion))
            wrench = state.transforms[body].to_parent(wrench)
            body = node.parent
        result.append(row)
    return result


def velocity(model: Model, q: Vector, v: Vector, at: Place) -> tuple[Scalar, ...]:
    """The frame's velocity, angular first, in its own axes."""
    state = State(model, q, (at.body,), v)
    twist = NO_MOTION if at.body == WORLD else state.twists[at.body]
    return at.pose.to_child(twist).entries()
