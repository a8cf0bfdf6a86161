"""Where a foot gets to, and the curves on which it is singular."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.dynamics import frame_pose, jacobian
from robomodel.dynamics.actuators.envelopes import (
    JointEnvelope,
    joint_envelopes,
    tree_rates,
    tree_rows,
)
from robomodel.dynamics.kinematics.frames import FrameLike
from robomodel.errors import as_names, did_you_mean
from robomodel.model import Model
from robomodel.model.configurations.curves import grid
from robomodel.model.joints import Array

GRID = 25  # configurations along each of two coordinates
TURN = 3.0  # radians, or metres, either way of coordinates without limits
MOVES = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Workspace:
    """Where a link's origin gets to while two coordinates (or one) move, all others at neutral.

    In the plane that its ways span best: ``points`` (n, m, 2) [m] by the coordinates' positions,
    not-a-number where loops do not close or limits are left. The plane's origin is the point of it
    nearest to the base's: ``origin`` + ``points`` @ ``axes`` (2, 3) are in the base's coordinates.
    ``singular`` (k, 2, 2): segments of the curves where the foot can move in one direction only.
    """

    foot: str
    coordinates: tuple[str, ...]
    points: Array
    origin: Array
    axes: Array
    singular: Array

    @property
    def axis_names(self) -> tuple[str, str]:
        """Which of the base's axes the plane's are: ``z``, ``-x``, or a direction in them."""
        first, second = (_axis_name(axis) for axis in self.axes)
        return first, second

    @property
    def extent(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The least and greatest of both plane coordinates [m]."""
        flat = self.points.reshape(-1, 2)
        flat = flat[np.all(np.isfinite(flat), axis=1)]
        (a, b), (c, d) = np.min(flat, axis=0).tolist(), np.max(flat, axis=0).tolist()
        return (a, c), (b, d)


def _axis_name(axis: Array) -> str:
    k = int(np.argmax(np.abs(axis)))
    if abs(axis[k]) > 1.0 - 1e-9:
        return f"{'-' if axis[k] < 0.0 else ''}{'xyz'[k]}"
    return f"along ({', '.join(f'{x:g}' for x in (np.round(axis, 2) + 0.0).tolist())})"


def workspace(model: Model, foot: FrameLike, joints: Sequence[str] = ()) -> Workspace:
    """Of a link's origin, or of (link, offset); UnknownNameError for unknown ones.

    ``joints``: one or two of the joints that move in the open tree, or of linkages of one freedom;
    by default the last two that move the foot. ValueError where there are none.
    """
    envelopes = {each.joint: each for each in joint_envelopes(model)}
    link = foot if isinstance(foot, str) else foot[0]
    model.frame(link)  # an UnknownNameError with a hint for unknown ones
    chosen = as_names(joints, "joints") or _movers(model, foot, list(envelopes.values()))
    for name in chosen:
        if name not in envelopes:
            raise ValueError(
                f"'{name}' is no joint of one freedom that moves in the open tree of "
                f"'{model.name}'{did_you_mean(name, envelopes)}"
            )
    if not 1 <= len(chosen) <= 2 or len(set(chosen)) < len(chosen):
        if not chosen:
            raise ValueError(f"no joint of one freedom moves '{link}'; name one or two others")
        raise ValueError(f"joints are one or two, each once, got {list(chosen)}")
    poses = grid(model, chosen, [_positions(envelopes[name]) for name in chosen])
    lost = ~np.all(np.isfinite(poses), axis=-1)
    if np.all(lost):
        raise ValueError(f"'{model.name}' is nowhere within its limits")
    safe = np.where(lost[..., None], model.neutral(), poses)
    pose = frame_pose(model, safe, foot, backend="numpy")
    places = np.where(lost[..., None], np.nan, pose[..., :3, 3])
    flat = places[~lost]
    middle = np.mean(flat, axis=0)
    plane = _upright(np.linalg.svd(flat - middle, full_matrices=True)[2][:2])
    origin = middle - (middle @ plane.T) @ plane
    points = (places - origin) @ plane.T
    singular = np.zeros((0, 2, 2))
    if len(chosen) == 2:
        moving = pose[..., :3, :3] @ _ways(model, safe, foot, chosen)
        with np.errstate(invalid="ignore"):
            sign = np.linalg.det(plane @ moving)
        singular = _zeros(points, np.where(lost, np.nan, sign))
    return Workspace(link, chosen, points, origin, plane, singular)


def _ways(model: Model, q: Array, foot: FrameLike, joints: Sequence[str]) -> Array:
    """The foot's velocities (..., 3, len(joints)) for unit rates of joints, all others standing."""
    names = list(model.joint_names)
    bodies = [names.index(name) for name in joints]
    rows = tree_rows(model, bodies)
    v = tree_rates(model, q, rows)[..., [rows.index(model.nodes[b].v) for b in bodies]]
    linear = np.array(jacobian(model, q, foot, backend="numpy"))[..., 3:, :]
    return np.asarray(linear @ v)


def _upright(plane: Array) -> Array:
    """Axes of the same plane, the second one as nearly along z as there is one, else along y."""
    z, y = (plane.T @ plane[:, k] for k in (2, 1))
    up = z if np.linalg.norm(z) > 1e-6 else y
    second = up / np.linalg.norm(up)
    normal = np.cross(plane[0], plane[1])
    first = np.cross(second, normal)
    if first[int(np.argmax(np.abs(first)))] < 0.0:
        first = -first
    return np.array([first, second])


def _movers(model: Model, foot: FrameLike, envelopes: Sequence[JointEnvelope]) -> tuple[str, ...]:
    """The last two joints of the open tree that move a foot, its base held."""
    q = model.neutral()
    names = [each.joint for each in envelopes if each.tree]
    moves = [name for name in names if np.max(np.abs(_ways(model, q, foot, [name]))) > MOVES]
    return tuple(moves[-2:])


def _positions(reach: JointEnvelope) -> Array:
    """Positions of a coordinate within its range."""
    low, high = reach.lower, reach.upper
    start = float(reach.positions[0])
    first = low if np.isfinite(low) else (high if np.isfinite(high) else start) - TURN
    last = high if np.isfinite(high) else (low if np.isfinite(low) else start) + TURN
    return np.linspace(first, last, GRID)


def _zeros(points: Array, values: Array) -> Array:
    """Segments (k, 2, 2) where a function on a grid of points is zero, cell by cell."""
    segments = []
    for i in range(values.shape[0] - 1):
        for j in range(values.shape[1] - 1):
            corners = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)]
            f = [float(values[c]) for c in corners]
            if not np.all(np.isfinite(f)):
                continue
            crossed = []
            for k in range(4):
                a, b = f[k], f[(k + 1) % 4]
                if (a < 0.0) != (b < 0.0):
                    p, q = points[corners[k]], points[corners[(k + 1) % 4]]
                    crossed.append(p + (q - p) * (a / (a - b)))
            segments += [crossed[k : k + 2] for k in range(0, len(crossed) - 1, 2)]
    return np.array(segments).reshape(-1, 2, 2)
