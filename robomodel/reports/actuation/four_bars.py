"""Planar four-bars in a model's geometry: their class after Grashof, and their transmission angle.

A loop of four parallel hinges is one, in whatever words the file says it: hinges of the tree from
the ends of a loop up to where its branches meet, and the closing joint where that leaves a turn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.description.poses import unit
from robomodel.dynamics import frame_pose
from robomodel.model import Model
from robomodel.model.constraints import LoopJoint
from robomodel.model.elements import Cluster
from robomodel.model.joints import Array, Revolute

PARALLEL = 1e-6  # sine of the angle between axes
ALIKE = 1e-6  # relative: lengths, or sums of them, that count as equal
LOW = math.radians(40.0)  # transmission angles below are told of: forces get large
TURNING = ("revolute", "continuous", "spherical", "universal")  # loops that leave a turn


@dataclass(frozen=True, slots=True)
class Extreme:
    """An angle [rad] and the position of the input at which it is that."""

    angle: float
    at: float


@dataclass(frozen=True, slots=True, eq=False)
class FourBar:
    """Four hinges in a loop.

    ``joints`` go round, from the ``input`` on; the closing one is called by its loop. ``lengths``
    [m] are those of the bars between them: ``lengths[i]`` from ``joints[i]`` to the next. ``frame``
    is the number of the bar that carries the others. ``kind`` is the class: crank-rocker,
    double-crank, double-rocker, triple-rocker, parallelogram, or kite; the last two can fold flat.
    ``margin`` [m]: by how much the longest and the shortest together are less than the others
    (Grashof's condition; negative where no bar can turn all round).
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
    """Those of a cluster with loops, measured at closed configurations q (n, nq)."""
    kinds = {loop.name: loop.type for loop in model.loops}
    bars = []
    for loop in cluster.geometry.loop_joints:
        hinges = _hinges(cluster, loop, kinds.get(loop.name, ""))
        if hinges is not None:
            bar = _measured(model, cluster, loop.name, hinges, q)
            if bar is not None:
                bars.append(bar)
    return bars


def _hinges(cluster: Cluster, loop: LoopJoint, kind: str) -> tuple[int, ...] | None:
    """Those of a loop: of the first branch downwards, the closing one (-1), upwards again."""
    down, up = loop.branches
    hinges = (*down, *((-1,) if kind in TURNING else ()), *reversed(up))
    if len(hinges) != 4 or (kind not in TURNING and kind != "fixed"):
        return None
    revolute = (isinstance(cluster.geometry.links[i].joint, Revolute) for i in hinges if i >= 0)
    return hinges if all(revolute) else None


def _measured(
    model: Model, cluster: Cluster, loop: str, hinges: tuple[int, ...], q: Array
) -> FourBar | None:
    names = [loop if i < 0 else cluster.joints[i] for i in hinges]
    places, axes = _places(model, names, q)
    normal = axes[:, 0]
    bent = max(float(np.max(np.linalg.norm(np.cross(normal, axes[:, i]), axis=-1)))
               for i in range(axes.shape[1]))  # fmt: skip
    if bent > PARALLEL:
        return None
    bars = np.roll(places, -1, axis=1) - places
    bars -= np.sum(bars * normal[:, None], axis=-1, keepdims=True) * normal[:, None]
    sizes = np.linalg.norm(bars, axis=-1)
    length = np.median(sizes, axis=0)
    if np.min(length) <= ALIKE * np.max(length):
        return None
    if float(np.max(np.abs(sizes - length))) > ALIKE * float(np.max(length)):
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
    sampled = [Extreme(float(x), float(y)) for x, y in zip(angles, at, strict=True)]
    if cluster.nv == 1:
        turn = _turn(bars[:, order[0]], -bars[:, order[3]], normal)
        sampled += _between(_four(lengths), turn, at)
    one, two, three, four = (names[i] for i in order)
    return FourBar(
        cluster.name, loop, (one, two, three, four), _four(lengths), frame, kind, margin,
        at[along], angles[along], min(sampled, key=lambda each: each.angle),
        max(sampled, key=lambda each: each.angle),
    )  # fmt: skip


def _turn(one: Array, other: Array, normal: Array) -> Array:
    """The angle (n,) about a normal from one bar to another, without jumps."""
    sine = np.sum(np.cross(one, other) * normal, axis=-1)
    return np.unwrap(np.arctan2(sine, np.sum(one * other, axis=-1)))


def _between(lengths: tuple[float, ...], turn: Array, at: Array) -> list[Extreme]:
    """Where the transmission angle has its extremes between samples of the input's ``turn``.

    With the input's bar in line with the one before it, and where the angle is right.
    """
    a, b, c, d = lengths

    def cosine(input_cosine: Array) -> Array:
        return (b * b + c * c - a * a - d * d + 2.0 * a * d * input_cosine) / (2.0 * b * c)

    low, high = float(np.min(turn)), float(np.max(turn))
    order = np.argsort(turn, kind="stable")
    extremes = []
    for k in range(math.ceil(low / math.pi), math.floor(high / math.pi) + 1):
        size = min(abs(float(cosine(np.array(math.cos(k * math.pi))))), 1.0)
        where = float(np.interp(k * math.pi, turn[order], at[order]))
        extremes.append(Extreme(math.acos(size), where))
    signs = cosine(np.cos(turn))
    for n in np.flatnonzero(signs[1:] * signs[:-1] < 0.0).tolist():
        share = float(signs[n] / (signs[n] - signs[n + 1]))
        extremes.append(Extreme(math.pi / 2, float(at[n] + share * (at[n + 1] - at[n]))))
    return extremes


def _four(x: tuple[float, ...]) -> tuple[float, float, float, float]:
    a, b, c, d = x
    return a, b, c, d


def _places(model: Model, names: Sequence[str], q: Array) -> tuple[Array, Array]:
    """Points (n, 4, 3) on hinges, by the joints' names and the loop's, and axes of the joints."""
    joints = {joint.name: joint for joint in model.description.joints}
    anchors = {loop.name: loop.predecessor for loop in model.description.loops}
    places, axes = [], []
    for name in names:
        if name in joints:
            pose = frame_pose(model, q, joints[name].child, backend="numpy")
            axes.append(pose[:, :3, :3] @ unit(joints[name].axis))
        else:
            anchor = anchors[name]
            pose = frame_pose(model, q, (anchor.link, anchor.origin.xyz), backend="numpy")
        places.append(pose[:, :3, 3])
    return np.stack(places, axis=1), np.stack(axes, axis=1)


def _input(model: Model, names: list[str]) -> int:
    """Which joint drives: an actuator's, else an independent one, else the first."""
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
    tolerance = ALIKE * longest
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
