"""Motors behind gears and linkages: ratios, torque, speed, range, torque polygons, four-bars.

Four-bars have a class after Grashof and a transmission angle. Any loop of four parallel hinges is
one: the hinges of the tree from both ends of a loop up to where its branches meet, and the closing
joint if it can turn. Other rods have transmission angles, too
(:mod:`robomodel.reports.actuation.transmission`). A foot's workspace is the set of its positions
while two joints move, with the curves on which it is singular.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robomodel.arrays import Array
from robomodel.description.poses import unit
from robomodel.dynamics import actuator_map, frame_pose, jacobian
from robomodel.dynamics.actuators import maps as actuator_maps
from robomodel.dynamics.actuators.envelopes import (
    FREE,
    JointEnvelope,
    joint_envelopes,
    tree_rates,
    tree_rows,
)
from robomodel.dynamics.kinematics.frames import FrameLike
from robomodel.errors import ClosureError, as_names, did_you_mean
from robomodel.mechanism.constraints import LoopJoint
from robomodel.mechanism.joints import Revolute
from robomodel.model import Model
from robomodel.model.elements import Cluster, units_of
from robomodel.reach.curves import grid
from robomodel.reach.ranges import JointRange, joint_range
from robomodel.reports.actuation import document as actuation_document
from robomodel.reports.actuation.transmission import Extreme, Transmission, transmissions
from robomodel.reports.document import Document, HasDocument
from robomodel.tolerances import MOVES, NOTHING, PARALLEL, SAME, WRITTEN

SHARES = (0.1, 0.9)  # of a joint's range, at which its polygon is drawn
PAIRS = 3  # most pairs of the coordinates that motors share with a polygon
SPEEDS = 41  # points from rest to the greatest speed of a joint


@dataclass(frozen=True, slots=True)
class Ratio:
    """A motor's rate at unit velocity of a joint, all others at rest, over the joint's range."""

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
    """The torques that two joints can have together, all others zero, in several poses.

    ``positions``: of both joints; ``corners``: for each pose an array (m, 2), counterclockwise.
    ``unit``: for motors of unit effort, if not all have limits; else in ``force_units``.
    """

    joints: tuple[str, str]
    positions: tuple[tuple[float, float], ...]
    corners: tuple[Array, ...]
    unit: bool
    force_units: tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class SpeedTorque:
    """The greatest torque of a joint over its speed, at the ends of its range and at neutral.

    ``positions`` (k,) of the joint, ``speeds`` and ``torques`` (k, n), with all other joints of the
    open tree at rest and without torque.
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
        joints: Envelopes of all joints of one freedom except rotors', see
            :class:`robomodel.dynamics.actuators.envelopes.JointEnvelope`.
        four_bars: The four-bars.
        transmissions: Transmission angles of rods that are no four-bar's, see
            :class:`robomodel.reports.actuation.transmission.Transmission`.
        polygons: Torques of joints that share motors.
        workspaces: The workspace of a foot, with its singular curves.
        speed_torque: The torque of each driven joint over its speed.
    """

    robot: str
    file: str
    drives: tuple[Drive, ...]
    joints: tuple[JointEnvelope, ...]
    four_bars: tuple[FourBar, ...]
    transmissions: tuple[Transmission, ...]
    polygons: tuple[Polygon, ...]
    workspaces: tuple[Workspace, ...]
    speed_torque: tuple[SpeedTorque, ...]

    @property
    def reflected(self) -> dict[str, Array]:
        """The reflected inertia (n,) of each of ``joints`` at its configurations [kg m² or kg]."""
        return {each.joint: each.inertia for each in self.joints}

    @property
    def hidden(self) -> tuple[JointEnvelope, ...]:
        """Joints that another joint's limit or a linkage stops."""
        return tuple(each for each in self.joints if each.hidden)

    @cached_property
    def document(self) -> Document:
        """The study as text, JSON and a page."""
        return actuation_document.document(self)

    def beside(self, other: Actuation) -> Document:
        """The report on this design and another, joint by joint, with their curves in the same
        plots.

        Args:
            other: The study of the other design.

        Returns:
            document: Its ``text()``, ``html()`` and ``as_dict()``; data are this study's, and the
                other's below ``other``.
        """
        return actuation_document.beside(self, other)


def actuation(
    model: Model, *, foot: FrameLike | None = None, joints: Sequence[str] = ()
) -> Actuation:
    """Ratios, torques, speeds and ranges of motors behind gears and linkages.

    The ratio of every actuator; torque, speed and range of each joint, limited by gears and
    linkages, and the limits that a file of the open tree should have (``robomodel convert
    --approximate`` writes them); class of four-bars; transmission angles of their rods and others;
    torque polygons of joints that share motors. docs/actuation.md explains the numbers.

    Args:
        model: The robot.
        foot: A link, or (link, offset), whose workspace is computed, with its singular curves,
            while two ``joints`` move.
        joints: These two, by default the last two that move it.

    Returns:
        actuation: The results.

    Raises:
        UnknownNameError: An unknown link.
        ValueError: Joints that cannot be moved so.

    Examples:
        >>> study = rm.actuation(rm.robots.load("crank_rocker"))
        >>> study.four_bars[0].kind
        'crank-rocker'
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
        tuple(_other_rods(model, bars)),
        tuple(_polygons(model, envelopes)),
        () if foot is None else (workspace(model, foot, joints),),
        tuple(each for joint in envelopes for each in _speed_torque(model, joint)),
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


def _speed_torque(model: Model, joint: JointEnvelope) -> Iterator[SpeedTorque]:
    """The speed-torque curves of a driven joint whose torque and speed are limited."""
    line = joint.line
    along = joint.positions[line]
    neutral = float(model.joint_positions(model.neutral())[joint.joint])
    middle = int(line[np.argmin(np.abs(along - neutral))])
    ends = [int(line[np.argmin(along)]), middle, int(line[np.argmax(along)])]
    at = [middle] if joint.constant else list(dict.fromkeys(ends))
    at = [n for n in at if np.isfinite(joint.torque[n]) and np.isfinite(joint.speed[n])]
    if not joint.actuators or not at:
        return
    speeds = np.linspace(0.0, joint.speed[at], SPEEDS).T
    driven = np.array([each.name in joint.actuators for each in model.actuators])
    rates = np.zeros((len(at), SPEEDS, len(driven)))
    rates[..., driven] = speeds[..., None] * joint.ratios[at, None]
    lower, upper = actuator_maps.bounds(model, rates)
    pushes = joint.ratios[at, None] * np.stack([lower, upper])[..., driven]
    most = np.sum(np.max(pushes, axis=0), axis=-1)
    yield SpeedTorque(joint.joint, joint.positions[at], speeds, most, joint.slides)


# ---- polygons ------------------------------------------------------------------------------------


def _polygons(model: Model, envelopes: Sequence[JointEnvelope]) -> list[Polygon]:
    """Polygons of the pairs of joints of the open tree that share motors."""
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
    shared = np.any(np.abs(np.nan_to_num(spread)) > NOTHING, axis=0)
    for group, columns in actuator_maps.blocks(shared):
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
    lower, upper = actuator_maps.bounds(model, None)
    unit = not np.all(np.isfinite(upper[columns]))
    if unit:
        lower, upper = -np.ones_like(upper), np.ones_like(upper)
    poses = _turned(model, joints)
    maps = _tree_map(model, poses, rows)
    regular = np.flatnonzero(np.all(np.isfinite(maps), axis=(1, 2)))
    if len(regular) and np.ptp(maps[regular], axis=0).max() <= SAME * np.abs(maps[regular]).max():
        regular = regular[:1]
    shapes = [actuator_maps.polytope(maps[n], pair, lower, upper) for n in regular]
    at = model.joint_positions(poses[regular])
    one, two = (each.joint for each in joints)
    positions = zip(at[one].tolist(), at[two].tolist(), strict=True)
    units = [units_of(each.slides).force for each in joints]
    return Polygon((one, two), tuple(positions), tuple(shapes), unit, (units[0], units[1]))


def _turned(model: Model, joints: tuple[JointEnvelope, JointEnvelope]) -> Array:
    """The neutral configuration, then each of two joints near the ends of its range."""
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


# ---- four-bars -----------------------------------------------------------------------------------


TURNING = ("revolute", "continuous", "spherical", "universal")  # of closing joints


@dataclass(frozen=True, slots=True, eq=False)
class FourBar:
    """Four hinges in a loop.

    ``joints`` go round, from the ``input`` on; the closing one is called by its loop. ``lengths``
    [m] are those of the bars between them: ``lengths[i]`` from ``joints[i]`` to the next. ``frame``
    is the number of the bar that carries the others. ``kind`` is the class: crank-rocker,
    double-crank, double-rocker, triple-rocker, parallelogram, or kite; the last two can fold flat.
    ``margin`` [m]: the sum of the two other bars less that of the longest and the shortest
    (Grashof's condition; negative if no bar can turn fully).
    ``positions`` and ``angles`` (n,): the input's, and the transmission angle, at the joint
    opposite the input between the bars that meet there, 0 to π/2; ``least``, ``most`` of it.
    """

    cluster: str
    loop: str
    joints: tuple[str, str, str, str]
    lengths: tuple[float, float, float, float]
    frame: int
    kind: str
    margin: float
    positions: Array
    angles: Array
    least: Extreme
    most: Extreme

    @property
    def input(self) -> str:
        """The joint that drives it: an actuator's, else an independent one."""
        return self.joints[0]


def four_bars(model: Model, cluster: Cluster, q: Array) -> list[FourBar]:
    """The four-bars of a cluster, measured at closed configurations q (n, nq)."""
    kinds = {loop.name: loop.type for loop in model.loops}
    bars = []
    for loop in cluster.geometry.loop_joints:
        hinges = _hinges(cluster, loop, kinds.get(loop.name, ""))
        if hinges is not None:
            bar = _four_bar(model, cluster, loop.name, hinges, q)
            if bar is not None:
                bars.append(bar)
    return bars


def _other_rods(model: Model, bars: Sequence[FourBar]) -> Iterator[Transmission]:
    """Transmission angles at joints where no four-bar with this input has one."""
    known = {(bar.input, bar.joints[2]) for bar in bars}
    for cluster in model.clusters:
        if cluster.geometry.loop_joints:
            for each in transmissions(model, cluster):
                if (each.input, each.joint) not in known:
                    yield each


def _hinges(cluster: Cluster, loop: LoopJoint, kind: str) -> tuple[int, ...] | None:
    """The hinges of a loop: down the first branch, the closing one (-1), up the second branch."""
    down, up = loop.branches
    hinges = (*down, *((-1,) if kind in TURNING else ()), *reversed(up))
    if len(hinges) != 4 or (kind not in TURNING and kind != "fixed"):
        return None
    revolute = (isinstance(cluster.geometry.links[i].joint, Revolute) for i in hinges if i >= 0)
    return hinges if all(revolute) else None


def _four_bar(
    model: Model, cluster: Cluster, loop: str, hinges: tuple[int, ...], q: Array
) -> FourBar | None:
    names = [loop if i < 0 else cluster.joints[i] for i in hinges]
    points, axes = _hinge_lines(model, names, q)
    normal = axes[:, 0]
    bent = max(float(np.max(np.linalg.norm(np.cross(normal, axes[:, i]), axis=-1)))
               for i in range(axes.shape[1]))  # fmt: skip
    if bent > PARALLEL:
        return None
    bars = np.roll(points, -1, axis=1) - points
    bars -= np.sum(bars * normal[:, None], axis=-1, keepdims=True) * normal[:, None]
    sizes = np.linalg.norm(bars, axis=-1)
    length = np.median(sizes, axis=0)
    if np.min(length) <= WRITTEN * np.max(length):
        return None
    if float(np.max(np.abs(sizes - length))) > WRITTEN * float(np.max(length)):
        return None  # not in one plane
    first = _input(model, names)
    order = [(first + i) % 4 for i in range(4)]
    frame = order.index(3)  # the bar from the last joint of one branch to the first of the other
    lengths = tuple(float(length[i]) for i in order)
    kind, margin = grashof(lengths, frame)
    opposite = order[2]
    a, b = -bars[:, order[1]], bars[:, opposite]
    cosine = np.abs(np.sum(a * b, axis=-1)) / (sizes[:, order[1]] * sizes[:, opposite])
    angles = np.arccos(np.minimum(cosine, 1.0))
    joint = names[first] if names[first] in model.joint_names else cluster.independent[0]
    at = np.asarray(model.joint_positions(q).get(joint, np.arange(len(q), dtype=float)))
    along = np.argsort(at, kind="stable") if cluster.nv > 1 else np.arange(len(q))
    extremes = [Extreme(float(x), float(y)) for x, y in zip(angles, at, strict=True)]
    if names[first] in model.joint_names:
        order_at = np.argsort(at, kind="stable")
        turn = _turn(bars[:, order[0]], -bars[:, order[3]], normal)[order_at]
        extremes += _extremes(_four(lengths), np.unwrap(turn), at[order_at],
                              joint_range(model, joint))  # fmt: skip
    one, two, three, four = (names[i] for i in order)
    return FourBar(
        cluster.name, loop, (one, two, three, four), _four(lengths), frame, kind, margin,
        at[along], angles[along],
        min(extremes, key=lambda each: (round(each.angle, 9), abs(each.at))),
        max(extremes, key=lambda each: (round(each.angle, 9), -abs(each.at))),
    )  # fmt: skip


def _turn(one: Array, other: Array, normal: Array) -> Array:
    """The angle (n,) about a normal from one bar to another."""
    sine = np.sum(np.cross(one, other) * normal, axis=-1)
    angle: Array = np.arctan2(sine, np.sum(one * other, axis=-1))
    return angle


def _extremes(
    lengths: tuple[float, ...], turn: Array, at: Array, reach: JointRange
) -> list[Extreme]:
    """Extremes of the transmission angle over an input's range, by the cosine law.

    They are at the ends, where the input's bar is in line with the one before it, and where the
    angle is right. ``turn``: the angle between these bars, at ordered positions ``at``.
    """
    a, b, c, d = lengths
    if not at[-1] - at[0] > MOVES:
        return []
    sign = math.copysign(1.0, turn[-1] - turn[0])
    offset = float(np.median(turn - sign * at))
    low, high = reach.lower, reach.upper
    if not high - low < 2.0 * math.pi:
        low = at[0] if math.isinf(low) else low
        high = low + 2.0 * math.pi
    right = (a * a + d * d - b * b - c * c) / (2.0 * a * d)
    places = [low, high]
    for angle in (0.0, math.pi, *((math.acos(right), -math.acos(right)) if abs(right) < 1 else ())):
        place = sign * (angle - offset)
        turns = range(math.ceil((low - place) / (2.0 * math.pi)),
                      math.floor((high - place) / (2.0 * math.pi)) + 1)  # fmt: skip
        places += [place + 2.0 * math.pi * n for n in turns]
    cosines = [
        (b * b + c * c - a * a - d * d + 2.0 * a * d * math.cos(sign * x + offset)) / (2.0 * b * c)
        for x in places
    ]
    return [Extreme(math.acos(min(abs(y), 1.0)), x) for x, y in zip(places, cosines, strict=True)]


def _four(x: tuple[float, ...]) -> tuple[float, float, float, float]:
    a, b, c, d = x
    return a, b, c, d


def _hinge_lines(model: Model, names: Sequence[str], q: Array) -> tuple[Array, Array]:
    """Points (n, 4, 3) on hinges, by the joints' names and the loop's, and axes of the joints."""
    joints = {joint.name: joint for joint in model.description.joints}
    anchors = {loop.name: loop.predecessor for loop in model.description.loops}
    points, axes = [], []
    for name in names:
        if name in joints:
            pose = frame_pose(model, q, joints[name].child, backend="numpy")
            axes.append(pose[:, :3, :3] @ unit(joints[name].axis))
        else:
            anchor = anchors[name]
            pose = frame_pose(model, q, (anchor.link, anchor.origin.xyz), backend="numpy")
        points.append(pose[:, :3, 3])
    return np.stack(points, axis=1), np.stack(axes, axis=1)


def _input(model: Model, names: list[str]) -> int:
    """The index of the input: an actuator's joint, else an independent one, else the first."""
    pushed = {actuator.joint for actuator in model.actuators}
    pushed |= {name for actuator in model.actuators for name, _ in actuator.terms}
    independent = {joint.name for joint in model.joints if joint.independent}
    for preferred in (pushed, independent):
        for n, name in enumerate(names):
            if name in preferred:
                return n
    return 0


def grashof(lengths: tuple[float, ...], frame: int) -> tuple[str, float]:
    """The class of a four-bar by its lengths, in order round it, and Grashof's margin [m]."""
    shortest, _, _, longest = sorted(lengths)
    margin = sum(lengths) - 2.0 * (shortest + longest)
    tolerance = WRITTEN * longest
    if abs(margin) <= tolerance:
        a, b, c, d = lengths
        if abs(a - c) <= tolerance and abs(b - d) <= tolerance:
            return "parallelogram", 0.0
        beside = (abs(a - b) <= tolerance and abs(c - d) <= tolerance) or (
            abs(b - c) <= tolerance and abs(d - a) <= tolerance
        )
        return ("kite" if beside else "change point"), 0.0
    if margin < 0.0:
        return "triple-rocker", margin
    place = min(range(4), key=lambda i: lengths[i])
    if place == frame:
        return "double-crank", margin
    return ("double-rocker" if (place - frame) % 4 == 2 else "crank-rocker"), margin


# ---- the workspace of a foot ---------------------------------------------------------------------


GRID = 25  # configurations along each of two coordinates
TURN = 3.0  # radians or metres either way, of coordinates without limits


@dataclass(frozen=True, slots=True, eq=False)
class Workspace:
    """The positions of a link's origin while two coordinates (or one) move, others at neutral.

    They are in the plane that fits them best: ``points`` (n, m, 2) [m] by the coordinates'
    positions, not-a-number where loops do not close or limits are exceeded. The plane's origin is
    its point nearest to the base's: ``origin`` + ``points`` @ ``axes`` (2, 3) are in the base's
    coordinates. ``singular`` (k, 2, 2): segments of the curves on which the foot can move in one
    direction only.
    """

    foot: str
    coordinates: tuple[str, ...]
    points: Array
    origin: Array
    axes: Array
    singular: Array

    @property
    def axis_names(self) -> tuple[str, str]:
        """Names of the plane's axes among the base's: ``z``, ``-x``, or a direction in them."""
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
    if abs(axis[k]) > 1.0 - SAME:
        return f"{'-' if axis[k] < 0.0 else ''}{'xyz'[k]}"
    return f"along ({', '.join(f'{x:g}' for x in (np.round(axis, 2) + 0.0).tolist())})"


def workspace(model: Model, foot: FrameLike, joints: Sequence[str] = ()) -> Workspace:
    """The workspace of a link's origin, or of (link, offset).

    ``joints``: one or two of the joints that move in the open tree, or of linkages of one freedom;
    default the last two that move the foot. Raises UnknownNameError for unknown links, ValueError
    if no joint moves it.
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
    configurations = grid(model, chosen, [_positions(envelopes[name]) for name in chosen])
    invalid = ~np.all(np.isfinite(configurations), axis=-1)
    if np.all(invalid):
        raise ValueError(f"'{model.name}' is nowhere within its limits")
    safe = np.where(invalid[..., None], model.neutral(), configurations)
    pose = frame_pose(model, safe, foot, backend="numpy")
    positions = np.where(invalid[..., None], np.nan, pose[..., :3, 3])
    flat = positions[~invalid]
    middle = np.mean(flat, axis=0)
    plane = _upright(np.linalg.svd(flat - middle, full_matrices=True)[2][:2])
    origin = middle - (middle @ plane.T) @ plane
    points = (positions - origin) @ plane.T
    singular = np.zeros((0, 2, 2))
    if len(chosen) == 2:
        moving = pose[..., :3, :3] @ _foot_velocities(model, safe, foot, chosen)
        with np.errstate(invalid="ignore"):
            sign = np.linalg.det(plane @ moving)
        singular = _zeros(points, np.where(invalid, np.nan, sign))
    return Workspace(link, chosen, points, origin, plane, singular)


def _foot_velocities(model: Model, q: Array, foot: FrameLike, joints: Sequence[str]) -> Array:
    """The foot's velocities (..., 3, len(joints)) for unit rates of joints, all others standing."""
    names = list(model.joint_names)
    bodies = [names.index(name) for name in joints]
    rows = tree_rows(model, bodies)
    v = tree_rates(model, q, rows)[..., [rows.index(model.nodes[b].v) for b in bodies]]
    linear = np.array(jacobian(model, q, foot, backend="numpy"))[..., 3:, :]
    return np.asarray(linear @ v)


def _upright(plane: Array) -> Array:
    """Axes of the same plane, the second as nearly along z as possible, else along y."""
    z, y = (plane.T @ plane[:, k] for k in (2, 1))
    up = z if np.linalg.norm(z) > PARALLEL else y
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
    v = _foot_velocities(model, q, foot, names)
    return tuple([name for n, name in enumerate(names) if np.max(np.abs(v[:, n])) > MOVES][-2:])


def _positions(joint: JointEnvelope) -> Array:
    """Positions of a coordinate within its range."""
    low, high = joint.lower, joint.upper
    start = float(joint.positions[0])
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
