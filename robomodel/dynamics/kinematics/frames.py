"""Frames: poses, Jacobians and velocities of points fixed to bodies. Scalars of any kind."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeGuard, cast

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.kinematics.state import Configuration, Direction, State, position_directions
from robomodel.kernels.differentiate import differentiate
from robomodel.kernels.function import TracedFunction
from robomodel.kernels.trace import Traced
from robomodel.mechanism.graph import WORLD
from robomodel.model.derived import traced
from robomodel.model.elements import Frame
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, stack, transposed, unstack
from robomodel.spatial import (
    NO_MOTION,
    NO_WRENCH,
    UNIT_WRENCHES,
    ZERO,
    Mat,
    Motion,
    Transform,
    Vec,
    Wrench,
    apply,
    cross,
    matmul,
    minus,
    plus,
)

FrameLike: TypeAlias = str | tuple[str, Sequence[float]]
FrameKey: TypeAlias = str | tuple[str, tuple[float, float, float]]
Reference: TypeAlias = Literal["local", "world", "local_world_aligned"]
REFERENCES: tuple[Reference, ...] = ("local", "world", "local_world_aligned")


def frame_key(frame: FrameLike) -> FrameKey:
    """A frame as a key: a link's name, or (link, offset) with the offset's three numbers.

    Raises TypeError for anything else, ValueError if the offset is not three finite numbers.
    """
    if isinstance(frame, str):
        return frame
    if not _is_point(frame):
        raise TypeError(f"a frame is a link's name, or (link, offset), not {frame!r}")
    link, offset = frame
    try:
        x, y, z = (float(t) for t in offset)
    except (TypeError, ValueError):
        x = y = z = math.nan
    if not math.isfinite(x + y + z):
        raise ValueError(
            f"the offset of a frame on '{link}' is three finite numbers, not {offset!r}"
        )
    return link, (x, y, z)


def frame_keys(frames: FrameLike | Sequence[FrameLike]) -> tuple[FrameKey, ...]:
    """Frames as keys; a link's name, or one (link, offset), is one frame."""
    try:
        return _hashed_keys(tuple(frames) if isinstance(frames, list) else frames)
    except TypeError:  # an offset that cannot be hashed, or no frame
        return _frame_keys(frames)


def _frame_keys(frames: FrameLike | Sequence[FrameLike]) -> tuple[FrameKey, ...]:
    if isinstance(frames, str) or _is_point(frames):
        return (frame_key(frames),)
    if not isinstance(frames, Iterable):
        raise TypeError(f"frames are links' names, or (link, offset), not {frames!r}")
    return tuple(frame_key(cast(FrameLike, frame)) for frame in frames)


_hashed_keys: Callable[..., tuple[FrameKey, ...]] = functools.lru_cache(maxsize=256)(_frame_keys)


def _is_point(frame: object) -> TypeGuard[tuple[str, Sequence[float]]]:
    """True if it is (link, offset), rather than two frames."""
    return (
        isinstance(frame, Sequence)
        and len(frame) == 2
        and isinstance(frame[0], str)
        and isinstance(frame[1], Sequence | np.ndarray)
        and not isinstance(frame[1], str)
        and not any(isinstance(x, str) for x in frame[1])
    )


@dataclass(frozen=True, slots=True)
class FramePlacement:
    """A frame fixed to a body (``WORLD`` for the fixed base), placed in its internal axes.

    ``reference``: the axes of its motions: "local", at its origin in its own axes;
    "local_world_aligned", at its origin in world axes; "world", at the point of its body that is at
    the world's origin, in world axes.
    """

    body: int
    pose: Transform
    reference: Reference = "local"


def place(model: Model, frame: FrameKey, reference: Reference = "local") -> FramePlacement:
    """The place of a frame: a link's name, or (link, offset) with the link's own axes."""
    name, offset = (frame, ZERO) if isinstance(frame, str) else frame
    link_frame = model.frame(name)
    pose = Transform(link_frame.pose.rotations, link_frame.pose.point(offset))
    return FramePlacement(link_frame.body, pose, reference)


def body_wrenches(model: Model, by_link: Mapping[str, Vector]) -> dict[int, Wrench]:
    """Wrenches on links (six numbers each, in the link's axes) as wrenches on bodies.

    Wrenches on links fixed to the world have no effect.
    """
    wrenches: dict[int, Wrench] = {}
    for link, x in by_link.items():
        frame = model.frame(link)
        if frame.body == WORLD:
            continue
        wrench = frame.pose.to_parent(Wrench.of(x))
        wrenches[frame.body] = wrenches.get(frame.body, NO_WRENCH) + wrench
    return wrenches


def pose(model: Model, q: Vector, at: FramePlacement) -> tuple[Mat, Vec]:
    """Rotation (rows) and origin of a frame in the world."""
    return pose_of(Configuration(model, q, (at.body,)), at)


def pose_of(state: Configuration, at: FramePlacement) -> tuple[Mat, Vec]:
    """Rotation (rows) and origin in the world of a frame, whose body is among those ``turned``."""
    rotation, origin, body = at.pose.matrix(), at.pose.offset, at.body
    while body != WORLD:
        x = state.transforms[body]
        for step in x.rotations:
            rotation = matmul(Transform((step,), ZERO).matrix(), rotation)
        origin = x.point(origin)
        body = state.model.nodes[body].parent
    return rotation, origin


def jacobian(model: Model, q: Vector, at: FramePlacement) -> list[list[Scalar]]:
    """J (6 by nv): the frame's velocity, angular first, in its reference, is J v.

    Row r has the generalised forces of the unit wrench r at the frame, carried to the base.
    """
    state = Configuration(model, q, (at.body,))
    rows = [joint_forces(model, state, at.body, at.pose.to_parent(f)) for f in UNIT_WRENCHES]
    if at.reference == "local":
        return rows
    placed = pose_of(state, at)
    columns = [_referred(placed, at, Motion.of(column)) for column in transposed(rows)]
    return transposed(column.entries() for column in columns)


def joint_forces(model: Model, state: Configuration, body: int, wrench: Wrench) -> list[Scalar]:
    """Generalised forces (nv) of a wrench on a body, given in its internal axes."""
    row: list[Scalar] = [0.0] * model.nv
    while body != WORLD:
        node = model.nodes[body]
        first = model.clusters[node.cluster].v.start
        for i, motion in enumerate(state.subspace(body)):
            row[first + i] = row[first + i] + wrench.dot(motion)
        wrench = state.transforms[body].to_parent(wrench)
        body = node.parent
    return row


def velocity(model: Model, q: Vector, v: Vector, at: FramePlacement) -> tuple[Scalar, ...]:
    """The frame's velocity, angular first, in its reference."""
    state = State(model, q, (at.body,), v)
    twist = at.pose.to_child(NO_MOTION if at.body == WORLD else state.twists[at.body])
    if at.reference != "local":
        twist = _referred(pose_of(state, at), at, twist)
    return twist.entries()


def acceleration(
    model: Model, q: Vector, v: Vector, a: Vector, at: FramePlacement, *, with_gravity: bool = False
) -> tuple[Scalar, ...]:
    """Angular acceleration of a frame and acceleration of its origin, in its reference.

    ``with_gravity``: less gravity, as accelerometers measure it.
    """
    if at.body == WORLD:
        up = at.pose.unrotate(minus(ZERO, model.gravity)) if with_gravity else ZERO
        return Motion(ZERO, up).entries()
    state = State(model, q, (at.body,), v)
    points = list(state.points(state.accelerations(a), with_gravity=with_gravity))[at.body]
    local = Motion(at.pose.unrotate(points.alpha), points.at(at.pose))
    if at.reference == "local":
        return local.entries()
    rotation, origin = pose_of(state, at)
    alpha, linear = apply(rotation, local.angular), apply(rotation, local.linear)
    if at.reference == "world":
        omega = apply(rotation, at.pose.unrotate(state.omega[at.body]))
        swung = plus(cross(alpha, origin), cross(omega, cross(omega, origin)))
        linear = minus(linear, swung)
    return Motion(alpha, linear).entries()


def _referred(placed: tuple[Mat, Vec], at: FramePlacement, motion: Motion) -> Motion:
    """A velocity at the frame's origin, given in its axes, in its reference."""
    rotation, origin = placed
    angular, linear = apply(rotation, motion.angular), apply(rotation, motion.linear)
    if at.reference == "world":
        linear = plus(linear, cross(origin, angular))
    return Motion(angular, linear)


def link_poses(model: Model, q: Array) -> dict[str, Array]:
    """Homogeneous poses (..., 4, 4) of all links in the world at configurations (..., nq)."""
    positions = q.tolist() if q.ndim == 1 else unstack(q)  # floats are quicker than arrays of one
    numbers, batch = _poses(model, positions), q.shape[:-1]
    poses = stack(numbers, batch).reshape(*batch, len(model.frames), 4, 4)
    return {frame.name: poses[..., i, :, :] for i, frame in enumerate(model.frames)}


@traced
def link_poses_function(model: Model) -> TracedFunction:
    """Poses of all links, in the order of ``model.frames``."""
    results = {"poses": (len(model.frames), 4, 4)}
    return TracedFunction("link_poses", {"q": model.nq}, results, lambda q: _poses(model, q))


def _poses(model: Model, q: Vector) -> list[Scalar]:
    """Homogeneous matrices of all frames, one after the other, by rows."""
    return [x for placed in placements(model, q, model.frames) for x in homogeneous(*placed)]


def placements(model: Model, q: Vector, links: Iterable[Frame]) -> list[tuple[Mat, Vec]]:
    """Rotations (rows) and origins of links in the world."""
    placed: list[tuple[Mat, Vec]] = []

    def of(body: int, within: Transform) -> tuple[Mat, Vec]:
        if body == WORLD:
            return within.matrix(), within.offset
        rotation, origin = placed[body]
        return matmul(rotation, within.matrix()), plus(origin, apply(rotation, within.offset))

    transforms = Configuration(model, q, range(len(model.nodes))).transforms
    for node, transform in zip(model.nodes, transforms, strict=True):
        placed.append(of(node.parent, transform))
    return [of(link.body, link.pose) for link in links]


def homogeneous(rotation: Mat, origin: Vec) -> list[Scalar]:
    """The entries of a homogeneous matrix, by rows."""
    top = [x for row, o in zip(rotation, origin, strict=True) for x in (*row, o)]
    return [*top, 0.0, 0.0, 0.0, 1.0]


# ---- readings of sensors on a frame --------------------------------------------------------------


def gyroscope_derivatives(
    model: Model, q: Sequence[Traced], v: Sequence[Traced], at: FramePlacement
) -> list[list[Scalar]]:
    """The angular velocity (3) of a frame in its axes [rad/s], then its derivatives by q and v.

    Rows of each; q varies in the tangent space.
    """
    directions = position_directions(model, q)
    directions += [{x: 1.0} for x in v]
    return _with_slopes(model.nv, velocity(model, q, v, at)[:3], directions, q)


def accelerometer_derivatives(
    model: Model, q: Sequence[Traced], v: Sequence[Traced], a: Sequence[Traced], at: FramePlacement
) -> list[list[Scalar]]:
    """The specific force (3) at a frame in its axes [m/s²], then its derivatives by q, v and a."""
    directions = position_directions(model, q)
    directions += [{x: 1.0} for x in (*v, *a)]
    force = acceleration(model, q, v, a, at, with_gravity=True)[3:]
    return _with_slopes(model.nv, force, directions, q)


def _with_slopes(
    nv: int, measured: Sequence[Scalar], directions: Sequence[Direction], q: Sequence[Traced]
) -> list[list[Scalar]]:
    columns = differentiate(q[0].trace, measured, directions)
    parts = [row[i : i + nv] for i in range(0, len(directions), nv) for row in transposed(columns)]
    return [list(measured), *parts]
