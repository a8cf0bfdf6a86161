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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from robomodel.arrays import Array
from robomodel.description.poses import unit
from robomodel.dynamics import frame_pose, jacobian
from robomodel.dynamics.actuators import efforts
from robomodel.dynamics.actuators import maps as actuator_maps
from robomodel.dynamics.actuators.envelopes import (
    JointEnvelope,
    carrying,
    envelopes_of,
    joint_envelopes,
    torque_at_speeds,
)
from robomodel.dynamics.actuators.limbs import (
    beside,
    columns_of,
    condition,
    motor_rows,
    unit_rates,
)
from robomodel.dynamics.kinematics.frames import FrameLike
from robomodel.errors import Interrupted, UnknownNameError, as_names, check_names, did_you_mean
from robomodel.mechanism.constraints import LoopJoint
from robomodel.mechanism.joints import Revolute
from robomodel.model import Model
from robomodel.model.elements import Cluster, spanning_start, units_of
from robomodel.reach.box import boxes
from robomodel.reach.curves import grid
from robomodel.reach.limb import limb_bodies
from robomodel.reach.ranges import JointRange, joint_range
from robomodel.reach.reachable import reachable
from robomodel.reports.actuation import document as actuation_document
from robomodel.reports.actuation.cylinders import Cylinder, cylinders
from robomodel.reports.actuation.losses import LossyJoint, lossy_joints
from robomodel.reports.actuation.transmission import (
    Extreme,
    Linkage,
    Transmission,
    transmissions,
    unpushed_inputs,
)
from robomodel.reports.document import Document, HasDocument
from robomodel.tolerances import MOVES, NOTHING, PARALLEL, SAME, WRITTEN

SHARES = (0.1, 0.9)  # shares of a joint's range at which polygons are drawn


@dataclass(frozen=True, slots=True)
class Ratio:
    """A motor's rate at unit velocity of a joint, the other joints of its limb at rest.

    ``low`` and ``high`` over the joint's range while these are at neutral, infinite where it comes
    to a dead point at which it turns back; ``least`` and ``most`` wherever the limb's joints reach
    together.
    """

    joint: str
    low: float
    high: float
    least: float
    most: float

    @property
    def constant(self) -> bool:
        """True if it is one number."""
        size = max(abs(self.most), abs(self.least))
        return math.isfinite(size) and self.most - self.least <= SAME * size


@dataclass(frozen=True, slots=True, eq=False)
class LimbMap:
    """Motions that related joints ask of their motors: the map A of a limb.

    ``ratios`` (motors, joints) at neutral; ``condition``: of A there, its columns of length 1;
    ``worst`` of it, and the ``worst_at`` positions of the joints, wherever they reach together.
    ``share`` of the box between their ends that they reach, ``lost`` corners of it, each with the
    joint whose limit, or the "loop" whose dead point, is on the way there. ``limited``: the box is
    of limits of the file alone.
    """

    joints: tuple[str, ...]
    motors: tuple[str, ...]
    ratios: Array
    condition: float
    worst: float
    worst_at: tuple[float, ...]
    share: float
    lost: tuple[tuple[tuple[float, ...], str], ...]
    limited: bool


@dataclass(frozen=True, slots=True)
class Drive:
    """An actuator, with its ratios to the joints that it moves.

    ``slides``: its joint is prismatic, limits are in newtons and metres a second. ``effort_lower``
    and ``velocity_lower`` are its limits the other way, negative.
    """

    name: str
    joint: str
    effort_limit: float
    velocity_limit: float
    stall_torque: float | None
    no_load_speed: float | None
    slides: bool
    ratios: tuple[Ratio, ...]
    effort_lower: float
    velocity_lower: float


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

    ``positions`` (k,) of the joint, ``speeds`` and ``torques`` (k, n), with all other joints of
    limbs at rest and without torque.
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
        joints: Envelopes of the joints that have rows, see
            :class:`robomodel.dynamics.actuators.envelopes.JointEnvelope`.
        balls: Joints of limbs that motors move and that have no row, as they have several freedoms.
        limbs: The maps of limbs whose joints conditions relate.
        four_bars: The four-bars.
        transmissions: Transmission angles of rods that are no four-bar's, see
            :class:`robomodel.reports.actuation.transmission.Transmission`.
        cylinders: Driven slides between pins, see
            :class:`robomodel.reports.actuation.cylinders.Cylinder`.
        polygons: Torques of joints that share motors.
        workspaces: The workspace of a foot, with its singular curves.
        speed_torque: The torque of each driven joint over its speed.
        losses: What motors drive and hold through lossy gears, and what turns them, see
            :class:`robomodel.reports.actuation.losses.LossyJoint`.
    """

    robot: str
    file: str
    drives: tuple[Drive, ...] = ()
    joints: tuple[JointEnvelope, ...] = ()
    balls: tuple[str, ...] = ()
    limbs: tuple[LimbMap, ...] = ()
    four_bars: tuple[FourBar, ...] = ()
    transmissions: tuple[Transmission, ...] = ()
    cylinders: tuple[Cylinder, ...] = ()
    polygons: tuple[Polygon, ...] = ()
    workspaces: tuple[Workspace, ...] = ()
    speed_torque: tuple[SpeedTorque, ...] = ()
    losses: tuple[LossyJoint, ...] = ()

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
    model: Model,
    rows: Sequence[str] | str | None = None,
    *,
    foot: FrameLike | None = None,
    joints: Sequence[str] = (),
) -> Actuation:
    """Ratios, torques, speeds and ranges of motors behind gears and linkages.

    The ratio of every actuator; torque, speed and range of joints of limbs, limited by gears and
    linkages, and the limits that a file of the open tree should have (``robomodel convert
    --approximate`` writes them); how much of the box of their limits the joints of a limb reach;
    class of four-bars; transmission angles of their rods and others; torque polygons of joints that
    share motors. docs/actuation.md explains the numbers.

    Args:
        model: The robot.
        rows: Joints of one freedom that have rows, by default those of limbs
            (:func:`robomodel.limb_joints`), and joints with motors of their own beside these.
        foot: A link, or (link, offset), whose workspace is computed, with its singular curves,
            while two ``joints`` move.
        joints: These two, by default the last two that move it.

    Returns:
        actuation: The results.

    Raises:
        UnknownNameError: An unknown link or joint.
        ValueError: Joints that cannot be moved so, or have no row.
        Interrupted: After Ctrl-C, with the parts that were done.

    Examples:
        >>> study = rm.actuation(rm.robots.load("crank_rocker"))
        >>> study.four_bars[0].kind
        'crank-rocker'
    """
    study = Actuation(model.name, model.description.source.file)
    parts: dict[str, Callable[[], Iterable[Any]]] = {
        "joints": lambda: joint_envelopes(model) if rows is None else _named_rows(model, rows),
        "drives": lambda: _drives(model, study.joints),
        "balls": lambda: _balls(model),
        "limbs": lambda: _limbs(model),
        "four_bars": lambda: _four_bars(model),
        "cylinders": lambda: cylinders(model),
        "transmissions": lambda: (
            *_other_rods(model, study.four_bars),
            *(each.transmission for each in study.cylinders),
        ),
        "polygons": lambda: _polygons(model, study.joints),
        "workspaces": lambda: () if foot is None else (workspace(model, foot, joints),),
        "speed_torque": lambda: (
            each for joint in study.joints for each in _speed_torque(model, joint)
        ),
        "losses": lambda: lossy_joints(model, study.joints),
    }
    for done, (name, part) in enumerate(parts.items()):
        try:
            known: Any = tuple(part())
            study = replace(study, **{name: known})
        except KeyboardInterrupt as pressed:
            raise Interrupted(f"{done} of {len(parts)} parts", study) from pressed
    return study


def _four_bars(model: Model) -> Iterator[FourBar]:
    for cluster in model.clusters:
        if cluster.geometry.loop_joints:
            yield from four_bars(model, cluster, _measured(model, cluster))


def _named_rows(model: Model, rows: Sequence[str] | str) -> tuple[JointEnvelope, ...]:
    """The envelopes of joints by name."""
    bodies = {joint.name: body for body, joint in enumerate(model.joints)}
    names = as_names(rows, "rows")
    check_names(names, bodies, "no joint ", f" in '{model.name}'", error=UnknownNameError)
    for name in names:
        if bodies[name] not in carrying(model):
            kind = "has several freedoms" if model.joints[bodies[name]].nv > 1 else "is a rotor's"
            raise ValueError(f"rows are of joints of one freedom that carry something: '{name}' "
                             f"{kind}")  # fmt: skip
    return envelopes_of(model, [bodies[name] for name in dict.fromkeys(names)])


def _measured(model: Model, cluster: Cluster) -> Array:
    """Configurations at which the four-bars of a cluster are measured.

    All that paths of one freedom reach, beyond dead points of the rows' joints, too; with several
    freedoms also those of its rows.
    """
    mine = [each.q[each.line] for each in joint_envelopes(model)
            if each.cluster == cluster.name and cluster.nv > 1]  # fmt: skip
    return np.concatenate([reachable(model).along(cluster), *mine])


def _drives(model: Model, envelopes: Sequence[JointEnvelope]) -> tuple[Drive, ...]:
    sliding = {joint.name for joint in model.joints if joint.type == "prismatic"}
    ratios: dict[str, list[Ratio]] = {each.name: [] for each in model.actuators}
    for each in envelopes:
        for name, values in zip(each.actuators, each.ratios.T, strict=True):
            line = each.span(values, motor=name)
            wide = each.span(values, motor=name, anywhere=True)
            if line is not None and wide is not None:
                ratios[name].append(Ratio(each.joint, *line, *wide))
    return tuple(
        Drive(
            each.name, each.joint, each.effort_limit, each.velocity_limit, each.stall_torque,
            each.no_load_speed, each.joint in sliding, tuple(ratios[each.name]),
            each.least_effort, each.least_velocity,
        )
        for each in model.actuators
    )  # fmt: skip


def _balls(model: Model) -> Iterator[str]:
    """Joints of several freedoms that carry limbs which motors move."""
    rows = motor_rows(model)
    for cluster, bodies in zip(model.clusters, limb_bodies(model), strict=True):
        if cluster.kind != "joint" and np.any(rows[:, cluster.spanning_v]):
            yield from (model.joints[b].name for b in bodies if model.nodes[b].joint.nv > 1)


# ---- limbs ---------------------------------------------------------------------------------------


def _limbs(model: Model) -> Iterator[LimbMap]:
    """The maps of limbs of several joints that conditions relate and motors move together."""
    bodies = {joint.name: body for body, joint in enumerate(model.joints)}
    for box in boxes(model):
        cluster = next(c for c in model.clusters if c.name == box.cluster)
        columns = columns_of(model, cluster, limb_bodies(model)[cluster.index])
        mine = [columns.index(c) for n in box.joints for c in columns_of(model, cluster,
                                                                         [bodies[n]])]  # fmt: skip
        q = np.concatenate([model.neutral()[None], box.q])
        spanning = np.array([spanning_start(cluster, x) for x in q[:, cluster.q]])
        rates = unit_rates(model, cluster, spanning, columns)
        ratios = (motor_rows(model)[:, cluster.spanning_v] @ rates)[..., mine]
        on = np.any(np.abs(np.nan_to_num(ratios)) > NOTHING, axis=(0, 2))
        if np.count_nonzero(on) < 1:
            continue
        conditions = condition(ratios[:, on])
        worst = int(np.nanargmax(conditions))
        at = model.joint_positions(q[worst])
        yield LimbMap(
            box.joints,
            tuple(a.name for a, moves in zip(model.actuators, on, strict=True) if moves),
            ratios[0][on],
            float(conditions[0]),
            float(conditions[worst]),
            tuple(float(at[name]) for name in box.joints),
            box.share,
            tuple((tuple(corner.tolist()), by) for corner, by in box.lost_corners),
            box.limited,
        )


# ---- one joint ---------------------------------------------------------------------------------


def _speed_torque(model: Model, joint: JointEnvelope) -> Iterator[SpeedTorque]:
    """The speed-torque curves of a driven joint whose torque and speed are limited."""
    line = joint.line
    along = joint.positions[line]
    neutral = float(model.joint_positions(model.neutral())[joint.joint])
    middle = int(line[np.argmin(np.abs(along - neutral))])
    ends = [int(line[np.argmin(along)]), middle, int(line[np.argmax(along)])]
    at = [middle] if joint.constant else list(dict.fromkeys(ends))
    curves = joint.torque, joint.speed, joint.speed_back
    at = [n for n in at if all(np.isfinite(x[n]) for x in curves)]
    if not joint.actuators or not at:
        return
    symmetric = joint.limits.effort_lower is joint.limits.velocity_lower is None
    slowest = 0.0 if symmetric else -joint.speed_back[at]
    speeds = np.linspace(slowest, joint.speed[at], 41 if symmetric else 81).T
    past = speeds * (1.0 + NOTHING)  # a motor at its limit may be short of it by rounding
    torques = torque_at_speeds(model, joint, at, past)
    yield SpeedTorque(joint.joint, joint.positions[at], speeds, torques, joint.slides)


# ---- polygons ------------------------------------------------------------------------------------


def _polygons(model: Model, envelopes: Sequence[JointEnvelope]) -> list[Polygon]:
    """Polygons of the pairs of joints of limbs that share motors."""
    if not model.actuators:
        return []
    rows = _limb_rows(model)
    by_row = {
        rows.index(model.nodes[model.joint_names.index(each.joint)].v): each
        for each in envelopes
        if each.tree
    }
    if not by_row:
        return []
    spread = _limb_map(model, np.concatenate([each.q for each in by_row.values()][:1]))
    polygons = []
    shared = np.any(np.abs(np.nan_to_num(spread)) > NOTHING, axis=0)
    for group, columns in actuator_maps.blocks(shared):
        if len(group) < 2 or any(i not in by_row for i in group):
            continue
        # three pairs of coordinates have polygons, however many share motors
        for i, j in list(itertools.combinations(group, 2))[:3]:
            polygons.append(_polygon(model, (i, j), (by_row[i], by_row[j]), columns))
    return polygons


def _limb_rows(model: Model) -> list[int]:
    """The spanning velocities of joints of limbs, cluster by cluster."""
    return [v for each in limb_bodies(model) for body in each for v in model.nodes[body].freedoms]


def _limb_map(model: Model, q: Array) -> Array:
    """Torques (n, limb velocities, nu) at joints of limbs for unit forces of motors."""
    parts = []
    for cluster, bodies in zip(model.clusters, limb_bodies(model), strict=True):
        at = q[:, cluster.q]
        spanning = np.array([spanning_start(cluster, x) for x in at])
        rates = unit_rates(model, cluster, spanning, columns_of(model, cluster, bodies))
        parts.append(np.swapaxes(motor_rows(model)[:, cluster.spanning_v] @ rates, 1, 2))
    matrix = np.concatenate(parts, axis=1)
    most = np.max(np.abs(np.nan_to_num(matrix)), axis=(1, 2), keepdims=True, initial=0.0)
    return np.where(np.abs(matrix) <= NOTHING * most, 0.0, matrix)  # rounding


def _polygon(
    model: Model,
    pair: tuple[int, int],
    joints: tuple[JointEnvelope, JointEnvelope],
    columns: Sequence[int],
) -> Polygon:
    lower, upper = efforts.bounds(model, None)
    unit = not np.all(np.isfinite(upper[columns]))
    if unit:
        lower, upper = -np.ones_like(upper), np.ones_like(upper)
    poses = _turned(model, joints)
    maps = _limb_map(model, poses)
    regular = np.flatnonzero(np.all(np.isfinite(maps), axis=(1, 2)))
    if len(regular) and np.ptp(maps[regular], axis=0).max() <= SAME * np.abs(maps[regular]).max():
        regular = regular[:1]
    places = {model.dof_names.index(x.joint): i for i, x in zip(pair, joints, strict=True)
              if x.joint in model.dof_names}  # fmt: skip
    together = {} if unit else efforts.whole(model)
    held = {places[i]: each for i, each in together.items() if i in places}
    if not unit:
        maps, lower, upper = efforts.joined(model, maps, lower, upper)
    lower, upper = (np.broadcast_to(x, (len(maps), maps.shape[-1])) for x in (lower, upper))
    shapes = [actuator_maps.polytope(maps[n], pair, lower[n], upper[n], held) for n in regular]
    at = model.joint_positions(poses[regular])
    one, two = (each.joint for each in joints)
    positions = zip(at[one].tolist(), at[two].tolist(), strict=True)
    units = [units_of(each.slides).force for each in joints]
    return Polygon((one, two), tuple(positions), tuple(shapes), unit, (units[0], units[1]))


def _turned(model: Model, joints: tuple[JointEnvelope, JointEnvelope]) -> Array:
    """The neutral configuration, then each of two joints near the ends of its range."""
    poses = [model.neutral()]
    for joint in joints:
        along = joint.positions[joint.line]
        start = float(model.joint_positions(poses[0])[joint.joint])
        low, high = (float(x) for x in (np.min(along), np.max(along)))
        if not joint.varies:  # one configuration stands for all
            continue
        for share in SHARES:
            goal = low + share * (high - low)
            near = joint.line[int(np.argmin(np.abs(along - goal)))]
            if abs(float(joint.positions[near]) - start) > WRITTEN:
                poses.append(joint.q[near])
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
    ``input``: the joint that drives it: an actuator's, or between two bars that a cylinder pushes
    apart, else one at which the loop begins. Without one if a cylinder is between two bars that no
    hinge joins, as the coupler of a knee and its thigh: what transmits is the cylinder then.
    ``positions`` and ``angles`` (n,): the input's, and the transmission angle, at the joint
    opposite the input between the bars that meet there, 0 to π/2; ``least``, ``most`` of it;
    not-a-number without an input. ``carried``: the least, over these positions, of the greatest
    angle among it and other four-bars between the same three links, which carry where it cannot.
    """

    cluster: str
    loop: str
    joints: tuple[str, str, str, str]
    lengths: tuple[float, float, float, float]
    frame: int
    kind: str
    margin: float
    input: str
    positions: Array
    angles: Array
    least: Extreme
    most: Extreme
    carried: float


def four_bars(model: Model, cluster: Cluster, q: Array) -> list[FourBar]:
    """The four-bars of a cluster, measured at closed configurations q (n, nq)."""
    kinds = {loop.name: loop.type for loop in model.loops}
    found = list[tuple[FourBar, Array]]()
    for loop in cluster.geometry.loop_joints:
        hinges = _hinges(cluster, loop, kinds.get(loop.name, ""))
        if hinges is not None:
            measured = _four_bar(model, cluster, loop.name, hinges, q)
            if measured is not None:
                found.append(measured)
    result = []
    for bar, _ in found:
        alike = [angles for other, angles in found if _share_links(bar, other)]
        carried = np.min(np.max(alike, axis=0)) if len(alike) > 1 else bar.least.angle
        result.append(replace(bar, carried=float(carried)))
    return result


def _share_links(one: FourBar, other: FourBar) -> bool:
    """True if two four-bars have two hinges next to each other in common, so three links."""
    pairs = [{frozenset((a, b)) for a, b in zip(bar.joints, (*bar.joints[1:], bar.joints[0]),
                                                strict=True)} for bar in (one, other)]  # fmt: skip
    return bool(pairs[0] & pairs[1])


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
) -> tuple[FourBar, Array] | None:
    """A four-bar, and its transmission angles at configurations q (n, nq)."""
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
    driven = _input(model, cluster, names)
    first = 0 if driven is None else driven
    order = [(first + i) % 4 for i in range(4)]
    frame = order.index(3)  # the bar from the last joint of one branch to the first of the other
    lengths = tuple(float(length[i]) for i in order)
    kind, margin = grashof(lengths, frame)
    opposite = order[2]
    a, b = -bars[:, order[1]], bars[:, opposite]
    cosine = np.abs(np.sum(a * b, axis=-1)) / (sizes[:, order[1]] * sizes[:, opposite])
    angles = np.arccos(np.minimum(cosine, 1.0)) if driven is not None else np.full(len(q), np.nan)
    joint = next(each for each in (names[first], *names) if each in model.joint_names)
    at = np.asarray(model.joint_positions(q).get(joint, np.arange(len(q), dtype=float)))
    along = np.argsort(at, kind="stable")
    extremes = [Extreme(float(x), float(y)) for x, y in zip(angles, at, strict=True)]
    if driven is not None and names[first] in model.joint_names:
        turn = _turn(bars[:, order[0]], -bars[:, order[3]], normal)[along]
        extremes += _extremes(_four(lengths), np.unwrap(turn), at[along],
                              joint_range(model, joint))  # fmt: skip
    one, two, three, four = (names[i] for i in order)
    least = min(extremes, key=lambda each: (round(each.angle, 9), abs(each.at)))
    most = max(extremes, key=lambda each: (round(each.angle, 9), -abs(each.at)))
    return FourBar(
        cluster.name, loop, (one, two, three, four), _four(lengths), frame, kind, margin,
        "" if driven is None else one, at[along], angles[along], least, most, least.angle,
    ), angles  # fmt: skip


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
    low, high = min(reach.lower, at[0]), max(reach.upper, at[-1])
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


def _input(model: Model, cluster: Cluster, names: list[str]) -> int | None:
    """The index of the input: an actuator's joint, or one between bars that a cylinder pushes.

    Else one of a linkage without motors, or the first; None if a cylinder pushes opposite bars.
    """
    pushed = {actuator.joint for actuator in model.actuators}
    pushed |= {name for actuator in model.actuators for name, _ in actuator.terms}
    for n, name in enumerate(names):
        if name in pushed:
            return n
    linkage = Linkage(model, cluster)
    pins = {pin.name: {*pin.bodies} for pin in linkage.pins}
    bars = [pins[a] & pins[b] for a, b in zip(names, (*names[1:], names[0]), strict=True)]
    for name in linkage.inputs:
        rod = linkage.cylinder(name)
        ends = {end.body for end in rod.ends} if rod else set()
        on = [n for n, bar in enumerate(bars) if bar & ends]
        if len(on) == 2:
            return {1: on[1], 2: None, 3: on[0]}[on[1] - on[0]]
    for n, name in enumerate(names):
        if name in unpushed_inputs(model, cluster):
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
    bodies = {model.joints[body].name: body for body in carrying(model)}
    link = foot if isinstance(foot, str) else foot[0]
    model.frame(link)  # an UnknownNameError with a hint for unknown ones
    chosen = as_names(joints, "joints") or _movers(model, foot)
    for name in chosen:
        if name not in bodies:
            raise ValueError(
                f"'{name}' is no joint of one freedom that moves in the open tree of "
                f"'{model.name}'{did_you_mean(name, bodies)}"
            )
    if not 1 <= len(chosen) <= 2 or len(set(chosen)) < len(chosen):
        if not chosen:
            raise ValueError(f"no joint of one freedom moves '{link}'; name one or two others")
        raise ValueError(f"joints are one or two, each once, got {list(chosen)}")
    moved = envelopes_of(model, [bodies[name] for name in chosen])
    configurations = grid(model, chosen, [_positions(each) for each in moved])
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
    """The foot's velocities (..., 3, len(joints)) for unit rates of joints, all others at rest."""
    flat = q.reshape(-1, model.nq)
    v = np.zeros((len(flat), model.nv, len(joints)))
    for n, name in enumerate(joints):
        body = model.joint_names.index(name)
        cluster = model.clusters[model.nodes[body].cluster]
        mine = [b for b in map(model.joint_names.index, joints) if b in cluster.bodies]
        columns = columns_of(model, cluster, _with(model, beside(model, body), mine))
        spanning = np.array([spanning_start(cluster, x) for x in flat[:, cluster.q]])
        rates = unit_rates(model, cluster, spanning, columns)
        (own,) = columns_of(model, cluster, [body])
        v[:, cluster.v, n] = rates[:, list(cluster.columns), columns.index(own)]
    linear = np.array(jacobian(model, flat, foot, backend="numpy"))[:, 3:, :]
    return np.asarray((linear @ v).reshape(*q.shape[:-1], 3, len(joints)))


def _with(model: Model, bodies: Sequence[int], wanted: Sequence[int]) -> Sequence[int]:
    """Bodies whose joints tell how a cluster moves; the wanted ones, if these are as many."""
    freedoms = (sum(model.nodes[b].joint.nv for b in each) for each in (bodies, wanted))
    return wanted if len(set(freedoms)) == 1 else bodies


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


def _movers(model: Model, foot: FrameLike) -> tuple[str, ...]:
    """The last two joints of limbs that move a foot, its base held."""
    names = [model.joints[b].name for each in limb_bodies(model) for b in each
             if model.nodes[b].joint.nv == 1]  # fmt: skip
    v = _foot_velocities(model, model.neutral(), foot, names)
    return tuple([name for n, name in enumerate(names) if np.max(np.abs(v[:, n])) > MOVES][-2:])


def _positions(joint: JointEnvelope) -> Array:
    """Positions of a coordinate within its range."""
    low, high = joint.lower, joint.upper
    start = float(joint.positions[0])
    first = low if np.isfinite(low) else (high if np.isfinite(high) else start) - TURN
    last = high if np.isfinite(high) else (low if np.isfinite(low) else start) + TURN
    return np.linspace(first, last, 25)  # configurations along each of two coordinates


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
