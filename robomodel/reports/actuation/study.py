"""What motors do through gears and linkages: ratios, torque, speed, range, polygons."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robomodel.dynamics import actuator_map, armature
from robomodel.dynamics.actuators import maps as motors
from robomodel.dynamics.actuators.envelopes import (
    JointEnvelope,
    joint_envelopes,
    tree_rates,
    tree_rows,
)
from robomodel.dynamics.kinematics.frames import FrameLike
from robomodel.errors import ClosureError
from robomodel.model import Model
from robomodel.model.elements import units_of
from robomodel.model.joints import Array
from robomodel.reports.actuation import document as actuation_document
from robomodel.reports.actuation.four_bars import FourBar, four_bars
from robomodel.reports.actuation.workspace import Workspace, workspace
from robomodel.reports.document import Document, HasDocument

SHARES = (0.1, 0.9)  # of a joint's range, where its polygon is drawn
PAIRS = 3  # of the coordinates that motors share, whose polygons are drawn
FREE = 0.5  # rad or m, either way: of coordinates without limits
SAME = 1e-9  # relative
INFINITE = 1e6  # rates for unit velocity of a joint that is at a dead point
SPEEDS = 41  # of a joint, from rest to its greatest


@dataclass(frozen=True, slots=True)
class Ratio:
    """A motor's rate for unit velocity of a joint, all others standing: over the joint's range."""

    joint: str
    low: float
    high: float

    @property
    def constant(self) -> bool:
        """Whether it is one number."""
        return self.high - self.low <= SAME * max(abs(self.high), abs(self.low))


@dataclass(frozen=True, slots=True)
class Drive:
    """An actuator, with its ratios to the joints that it moves.

    ``slides``: its joint is prismatic, limits are in newtons and metres a second.
    """

    name: str
    joint: str
    effort_limit: float
    velocity_limit: float
    stall_torque: float | None
    no_load_speed: float | None
    slides: bool
    ratios: tuple[Ratio, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Polygon:
    """What two joints can get together, all others nothing, as it turns with the pose.

    ``positions``: of both joints; ``corners``: for each pose an array (m, 2), counterclockwise.
    ``unit``: of motors that give 1, as not all have limits; else they are in ``force_units``.
    """

    joints: tuple[str, str]
    positions: tuple[tuple[float, float], ...]
    corners: tuple[Array, ...]
    unit: bool
    force_units: tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class SpeedTorque:
    """The greatest torque of a joint over its speed, at the ends of its range and at neutral.

    ``positions`` (k,) of the joint, ``speeds`` and ``torques`` (k, n), all other joints of the open
    tree standing, and getting nothing.
    """

    joint: str
    positions: Array
    speeds: Array
    torques: Array
    slides: bool


@dataclass(frozen=True)
class Actuation(HasDocument):
    """The result of :func:`robomodel.actuation`; ``str()`` is text, :meth:`html` a page.

    Attributes:
        robot: The robot's name.
        file: Its file.
        drives: Each actuator, with its ratios to the joints that it moves.
        joints: What reaches each joint of the open tree, and of linkages of one freedom each other
            joint but rotors, see :class:`robomodel.dynamics.actuators.envelopes.JointEnvelope`.
        four_bars: The four-bars.
        polygons: What joints that share motors get together.
        workspaces: The workspace of a foot, with its singular curves.
        speed_torque: The torque of each driven joint over its speed.
        reflected: Of each of ``joints`` the reflected inertia (n,) at its configurations, all other
            joints of the open tree standing [kg m² or kg].
    """

    robot: str
    file: str
    drives: tuple[Drive, ...]
    joints: tuple[JointEnvelope, ...]
    four_bars: tuple[FourBar, ...]
    polygons: tuple[Polygon, ...]
    workspaces: tuple[Workspace, ...]
    speed_torque: tuple[SpeedTorque, ...]
    reflected: dict[str, Array]

    @property
    def hidden(self) -> tuple[JointEnvelope, ...]:
        """Joints that another joint's limit or a linkage stops."""
        return tuple(each for each in self.joints if each.hidden)

    @cached_property
    def document(self) -> Document:
        """The study as text, JSON and a page."""
        return actuation_document.document(self)


def actuation(
    model: Model, *, foot: FrameLike | None = None, joints: Sequence[str] = ()
) -> Actuation:
    """What motors can do through gears and linkages, over the range of the joints.

    The ratio of every actuator; torque, speed and range that reach each joint, with the limits that
    hide behind gears and linkages, and those that a file of the open tree should have (``robomodel
    convert --approximate`` writes them); class and transmission angle of four-bars; the polygons of
    what joints that share motors get together. docs/actuation.md explains the numbers.

    Args:
        model: The robot.
        foot: A link, or (link, offset), whose workspace is found, with its singular curves, while
            two ``joints`` move.
        joints: These two, by default the last two that move it.

    Returns:
        actuation: The numbers.

    Raises:
        UnknownNameError: An unknown link.
        ValueError: Joints that cannot be moved so.
    """
    envelopes = joint_envelopes(model)
    at = {each.cluster: each.q for each in envelopes}
    bars = [
        bar
        for cluster in model.clusters
        if cluster.name in at
        for bar in four_bars(model, cluster, at[cluster.name])
    ]
    return Actuation(
        model.name,
        model.description.source.file,
        _drives(model, envelopes),
        envelopes,
        tuple(bars),
        tuple(_polygons(model, envelopes)),
        () if foot is None else (workspace(model, foot, joints),),
        tuple(each for joint in envelopes for each in _speed_torque(model, joint)),
        {each.joint: _reflected(model, each) for each in envelopes},
    )


def _drives(model: Model, envelopes: Sequence[JointEnvelope]) -> tuple[Drive, ...]:
    sliding = {joint.name for joint in model.joints if joint.type == "prismatic"}
    ratios: dict[str, list[Ratio]] = {each.name: [] for each in model.actuators}
    for each in envelopes:
        for name, values in zip(each.actuators, each.ratios.T, strict=True):
            finite = values[np.isfinite(values)]
            if len(finite):
                ratios[name].append(Ratio(each.joint, float(np.min(finite)), float(np.max(finite))))
    return tuple(
        Drive(
            each.name, each.joint, each.effort_limit, each.velocity_limit, each.stall_torque,
            each.no_load_speed, each.joint in sliding, tuple(ratios[each.name]),
        )
        for each in model.actuators
    )  # fmt: skip


# ---- one joint ---------------------------------------------------------------------------------


def _alone(model: Model, joint: JointEnvelope, q: Array) -> tuple[list[int], int]:
    """Velocities that determine the open tree's, this joint's among them, and its place there."""
    body = model.joint_names.index(joint.joint)
    rows = tree_rows(model, [body])
    return rows, rows.index(model.nodes[body].v)


def _reflected(model: Model, joint: JointEnvelope) -> Array:
    rows, place = _alone(model, joint, joint.q)
    moved = tree_rates(model, joint.q, rows)[..., place]
    dense = np.asarray(armature(model, joint.q, kind="dense", backend="numpy"))
    with np.errstate(all="ignore"):
        inertia: Array = np.einsum("...i,...ij,...j->...", moved, dense, moved)
        fastest = np.max(np.abs(moved), axis=-1)
    return np.where(fastest < INFINITE, inertia, np.nan)


def _speed_torque(model: Model, joint: JointEnvelope) -> Iterator[SpeedTorque]:
    """Of a driven joint whose torque and speed are limited."""
    neutral = float(model.joint_positions(model.neutral())[joint.joint])
    middle = int(np.argmin(np.abs(joint.positions - neutral)))
    ends = [int(np.argmin(joint.positions)), middle, int(np.argmax(joint.positions))]
    at = [middle] if joint.constant else list(dict.fromkeys(ends))
    at = [n for n in at if np.isfinite(joint.torque[n]) and np.isfinite(joint.speed[n])]
    if not joint.actuators or not at:
        return
    rows, place = _alone(model, joint, joint.q)
    maps = _tree_map(model, joint.q[at], rows)
    speeds = np.linspace(0.0, joint.speed[at], SPEEDS).T
    rates = speeds[..., None] * maps[:, None, place]
    lower, upper = motors.bounds(model, rates)
    most = motors.limits(maps[:, None], lower, upper)[1][..., place]
    yield SpeedTorque(joint.joint, joint.positions[at], speeds, most, joint.slides)


# ---- polygons ------------------------------------------------------------------------------------


def _polygons(model: Model, envelopes: Sequence[JointEnvelope]) -> list[Polygon]:
    """Of the pairs of joints of the open tree that motors share."""
    if not model.actuators:
        return []
    rows = tree_rows(model)
    by_row = {
        rows.index(model.nodes[model.joint_names.index(each.joint)].v): each
        for each in envelopes
        if each.tree
    }
    spread = _tree_map(model, np.concatenate([each.q for each in by_row.values()][:1] or []), rows)
    polygons = []
    for group, columns in motors.blocks(np.any(np.nan_to_num(spread) != 0.0, axis=0)):
        if len(group) < 2 or any(i not in by_row for i in group):
            continue
        for i, j in list(itertools.combinations(group, 2))[:PAIRS]:
            polygons.append(_polygon(model, rows, (i, j), (by_row[i], by_row[j]), columns))
    return polygons


def _tree_map(model: Model, q: Array, rows: Sequence[int]) -> Array:
    """B (n, nv, nu) over the joints of the open tree."""
    b = np.array(actuator_map(model, q, backend="numpy"))
    return np.swapaxes(tree_rates(model, q, rows), -1, -2) @ b


def _polygon(
    model: Model,
    rows: Sequence[int],
    pair: tuple[int, int],
    joints: tuple[JointEnvelope, JointEnvelope],
    columns: Sequence[int],
) -> Polygon:
    lower, upper = motors.bounds(model, None)
    unit = not np.all(np.isfinite(upper[columns]))
    if unit:
        lower, upper = -np.ones_like(upper), np.ones_like(upper)
    poses = _turned(model, joints)
    maps = _tree_map(model, poses, rows)
    regular = np.flatnonzero(np.all(np.isfinite(maps), axis=(1, 2)))
    if len(regular) and np.ptp(maps[regular], axis=0).max() <= SAME * np.abs(maps[regular]).max():
        regular = regular[:1]
    shapes = [motors.polytope(maps[n], pair, lower, upper) for n in regular]
    at = model.joint_positions(poses[regular])
    one, two = (each.joint for each in joints)
    positions = zip(at[one].tolist(), at[two].tolist(), strict=True)
    units = [units_of(each.slides).force for each in joints]
    return Polygon((one, two), tuple(positions), tuple(shapes), unit, (units[0], units[1]))


def _turned(model: Model, joints: tuple[JointEnvelope, JointEnvelope]) -> Array:
    """The neutral configuration, then each of two joints towards the ends of its range."""
    neutral = model.neutral()
    poses = [neutral]
    for joint in joints:
        start = float(model.joint_positions(neutral)[joint.joint])
        low = joint.lower if math.isfinite(joint.lower) else start - FREE
        high = joint.upper if math.isfinite(joint.upper) else start + FREE
        for share in SHARES:
            with suppress(ClosureError):
                position = low + share * (high - low)
                poses.append(model.configuration({joint.joint: position}))
    return np.array(poses)
