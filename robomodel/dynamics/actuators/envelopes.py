"""How far, how hard and how fast motors move the joints of the open tree behind their linkages.

The joints that move in the open tree (:mod:`robomodel.model.approximate`) are what simulators
without loops know. What reaches them is followed along the range of a cluster of one freedom, and
looked at on a grid where there are several.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robomodel.description import Limits
from robomodel.dynamics.actuators import maps as actuation
from robomodel.model.approximate import select
from robomodel.model.configurations.curves import FREE_LENGTH, Curve, curve, grid, sweep
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster
from robomodel.model.joints import Array, Mask
from robomodel.model.model import Model
from robomodel.scalars import stack, unstack

GRIDS = ((3, 3), (5, 1), (math.inf, 0))
"""Of clusters of so many joints: how many positions are looked at on either side of neutral."""
FREE = 0.5  # rad or m, either way: of joints without limits in such clusters
Places = NDArray[np.intp]

NONE: Places = np.empty(0, dtype=np.intp)
POINTS = 30  # along each half of a linkage's range
INSIDE = 1e-9
ROUNDED = 0.01  # of a range, by which limits may miss the ends of curves that bend
SINGULAR = 1e-8  # of the largest singular value
ALIKE = 1e-9  # relative: values that differ by less are one
NOTHING = 1e-3  # of the greatest: what counts as a dead point's


@dataclass(frozen=True, slots=True, eq=False)
class JointEnvelope:
    """The torque, speed and range of a joint behind its motors.

    ``tree``: it moves in the open tree; linkages of one freedom have envelopes of all other joints
    but rotors, too.
    ``positions`` (n,) of the joint at the configurations ``q`` (n, nq); ``ratios`` (n, actuators):
    the motors' rates for unit velocity of the joint, all others standing; ``torque`` and ``speed``
    (n,): the greatest there while all other joints of the open tree have no torque, or stand;
    infinite where nothing limits them.
    ``lower`` and ``upper``: as far as all limits of its cluster let it go; ``lower_by`` and
    ``upper_by`` name the joint whose limit that is, or say "loop" where the linkage, or the curve
    that the joint follows, ends it.
    ``effort`` and ``velocity``: available everywhere, the least of ``torque`` and ``speed`` (at the
    neutral configuration where the range has dead points, at which they vanish).
    ``line``: which of the configurations have all other joints of the tree at neutral, in order.
    ``file_limits``: the file's. ``slides``: in metres and newtons, not radians.
    """

    joint: str
    cluster: str
    tree: bool
    actuators: tuple[str, ...]
    q: Array
    positions: Array
    ratios: Array
    torque: Array
    speed: Array
    lower: float
    upper: float
    lower_by: str
    upper_by: str
    effort: float
    velocity: float
    line: Places
    file_limits: Limits
    slides: bool = False

    @property
    def limits(self) -> Limits:
        """The limits of the open tree: the tighter of these and the file's."""
        file = self.file_limits
        return Limits(
            max(self.lower, file.lower),
            min(self.upper, file.upper),
            _tighter(self.velocity, file.velocity),
            _tighter(self.effort, file.effort),
        )

    @property
    def hidden(self) -> bool:
        """Whether another joint's limit, or the linkage, ends its range."""
        return any(by not in ("", self.joint) for by in (self.lower_by, self.upper_by))

    @property
    def constant(self) -> bool:
        """Whether torque and speed are the same all over its range."""
        return all(bool(np.ptp(x) <= ALIKE * np.max(x)) if np.all(np.isfinite(x)) else True
                   for x in (self.torque, self.speed))  # fmt: skip


def _tighter(computed: float, filed: float) -> float:
    """The smaller limit; the file's where it differs by rounding alone.

    Zero, as of joints without a motor of their own, is no limit of the torque there.
    """
    if filed == 0.0 and 0.0 < computed < math.inf:
        return computed
    return filed if computed >= filed * (1.0 - ALIKE) else computed


@cached_on_model
def joint_envelopes(model: Model) -> tuple[JointEnvelope, ...]:
    """The envelopes of every joint of one freedom that moves in the open tree."""
    moving = _moving(model)
    return tuple(each for cluster in model.clusters for each in _of_cluster(model, cluster, moving))


def _moving(model: Model) -> frozenset[int]:
    """Bodies whose joints move in the open tree; independent joints where there is none."""
    try:
        return select(model).moving
    except ValueError:
        return frozenset(n for n, joint in enumerate(model.joints) if joint.independent)


def _of_cluster(model: Model, cluster: Cluster, moving: frozenset[int]) -> list[JointEnvelope]:
    tree = [b for b in cluster.bodies if b in moving]
    rows = [v for b in tree for v in model.nodes[b].freedoms]
    bodies = (
        tree
        if cluster.nv != 1
        else [  # not those of rotors
            b for b in cluster.bodies if b in tree or not model.nodes[b].axisymmetric
        ]
    )
    bodies = [b for b in bodies if model.nodes[b].joint.nv == 1]
    if not bodies or len(rows) != cluster.nv:
        return []
    q, start, ranges, lines = _poses(model, cluster, bodies)
    return [
        _envelope(model, cluster, body, (q, start), rows if body in tree else None,
               ranges[model.joints[body].name], lines.get(model.joints[body].name, NONE))
        for body in bodies
    ]  # fmt: skip


def _envelope(
    model: Model,
    cluster: Cluster,
    body: int,
    poses: tuple[Array, int],
    rows: Sequence[int] | None,
    ends: Range,
    line: Places,
) -> JointEnvelope:
    """Of one joint; ``rows``: spanning velocities of the joints that move with it, None: alone."""
    joint, node, (q, start) = model.joints[body], model.nodes[body], poses
    rates = [node.v] if rows is None else rows
    b = _tree_maps(model, q, cluster, rates)
    v = cluster.v.start + rates.index(node.v)
    driven = np.any(b[:, v] != 0.0, axis=0)
    speed = np.full(len(q), np.inf)
    torque = speed.copy()
    if np.any(driven):
        with np.errstate(all="ignore"):
            low, high = actuation.limits(b, *actuation.bounds(model, None))
            fastest = np.array([
                a.velocity_limit if a.no_load_speed is None
                else min(a.velocity_limit, a.no_load_speed) for a in model.actuators
            ])  # fmt: skip
            speed = np.min(fastest[driven] / np.abs(b[:, v][:, driven]), axis=-1)
        torque = np.minimum(high[:, v], -low[:, v])
    (lower, lower_by), (upper, upper_by) = ends
    return JointEnvelope(
        joint=joint.name,
        cluster=cluster.name,
        tree=rows is not None,
        actuators=tuple(a.name for a, on in zip(model.actuators, driven, strict=True) if on),
        q=q,
        positions=np.asarray(model.joint_positions(q)[joint.name]),
        ratios=b[:, v][:, driven],
        torque=torque,
        speed=speed,
        lower=lower,
        upper=upper,
        lower_by=lower_by,
        upper_by=upper_by,
        effort=_least(torque, start),
        velocity=_least(speed, start),
        line=line,
        file_limits=Limits(joint.lower, joint.upper, joint.velocity_limit, joint.effort_limit),
        slides=joint.type == "prismatic",
    )


def _tree_maps(model: Model, q: Array, cluster: Cluster, rows: Sequence[int]) -> Array:
    """B (n, nv, nu) over the velocities of the joints that move, in this cluster's place."""
    entries = [x for row in actuation.actuator_map(model, unstack(q)) for x in row]
    b = stack(entries, q.shape[:-1]).reshape(len(q), model.nv, len(model.actuators))
    if cluster.kind == "joint" or not b.shape[-1]:
        return b
    rates = model.constraint_jacobian(q)[:, rows, cluster.v]
    if np.array_equal(rates, np.broadcast_to(np.eye(len(rows)), rates.shape)):
        return b
    b[:, cluster.v] = np.swapaxes(inverses(rates), 1, 2) @ b[:, cluster.v]
    return b


def inverses(matrices: Array) -> Array:
    """Of square matrices (..., n, n); not-a-number where these are singular."""
    with np.errstate(all="ignore"):
        singular = np.linalg.svd(np.where(np.isfinite(matrices), matrices, 0.0), compute_uv=False)
        regular: Mask = singular[..., -1] > SINGULAR * singular[..., 0]
        regular &= np.isfinite(matrices).all(axis=(-2, -1))
        safe = np.where(regular[..., None, None], matrices, np.eye(matrices.shape[-1]))
        return np.where(regular[..., None, None], np.linalg.inv(safe), np.nan)


def _least(values: Array, start: int) -> float:
    """The least; where some vanish, that of the start."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return math.inf
    least, at_start = float(np.min(finite)), float(values[start])
    return at_start if least <= NOTHING * np.max(finite) and math.isfinite(at_start) else least


def tree_rows(model: Model, instead: Sequence[int] = ()) -> list[int]:
    """Spanning velocities of the joints that move in the open tree, which determine all others.

    ``instead``: bodies of clusters of one freedom whose joints stand for these.
    """
    moving, rows = _moving(model), []
    for cluster in model.clusters:
        chosen = [b for b in instead if b in cluster.bodies] if cluster.nv == 1 else []
        bodies = chosen[:1] or [b for b in cluster.bodies if b in moving]
        rows += [v for b in bodies for v in model.nodes[b].freedoms]
    return rows


def tree_rates(model: Model, q: Array, rows: Sequence[int]) -> Array:
    """The independent velocities (..., nv, nv) for unit rates of such joints, one each column.

    Not-a-number where they do not determine each other.
    """
    return inverses(model.constraint_jacobian(q)[..., rows, :])


# ---- ranges --------------------------------------------------------------------------------------

Range = tuple[tuple[float, str], tuple[float, str]]


def _poses(
    model: Model, cluster: Cluster, bodies: Sequence[int]
) -> tuple[Array, int, dict[str, Range], dict[str, Places]]:
    """Configurations (n, nq) to look at, which of them is the start, and the joints' ranges.

    Also which of them are those where this joint moves alone.
    """
    neutral = model.neutral()
    ranges = {model.joints[b].name: _limits(model, b) for b in bodies}
    if cluster.kind == "joint":
        return neutral[None], 0, ranges, {}
    if cluster.kind == "couplings":
        if cluster.varies and cluster.nv == 1 and cluster.independent[0] in model.joint_names:
            q, start, ranges = _along_polynomials(model, cluster, bodies)
            return q, start, ranges, {name: np.arange(len(q)) for name in ranges}
        if cluster.nv == 1:
            ranges = {model.joints[b].name: _geared(model, cluster, b) for b in bodies}
        return neutral[None], 0, ranges, {}
    (first, *_) = cluster.independent
    if cluster.nv == 1 and first in model.joint_names:
        path = curve(model, cluster, first)
        q, start, ends = _along(model, cluster, path)
        if len(q) == 1:  # neutral is out of its limits
            return q, 0, ranges, {}
        ranges = {model.joints[b].name: _spanned(model, b, path, q, ends) for b in bodies}
        return q, start, ranges, {name: np.arange(len(q)) for name in ranges}
    names, at = list(ranges), model.joint_positions(neutral)
    count = next(n for most, n in GRIDS if len(names) <= most)
    axes = [_spread(ranges[name], float(at[name]), count) for name in names]
    poses = grid(model, names, axes).reshape(-1, model.nq)
    there: Mask = np.all(np.isfinite(poses), axis=1)
    if not np.any(there):  # neutral is out of its limits
        return neutral[None], 0, ranges, {}
    shape = tuple(len(axis) for axis in axes)
    number = np.where(there, np.cumsum(there) - 1, -1).reshape(shape)
    middle = tuple(len(axis) // 2 for axis in axes)
    lines = {}
    for n, name in enumerate(names):
        row = np.moveaxis(number, n, -1)[(*middle[:n], *middle[n + 1 :])]
        lines[name] = row[row >= 0]
    return poses[there], max(int(number[middle]), 0), ranges, lines


def _spread(ends: Range, at: float, count: int) -> Array:
    """Positions of a joint: where it is in the middle, as many on either side up to its limits."""
    (low, _), (high, _) = ends
    if not count:
        return np.array([at])
    low = low if math.isfinite(low) else at - FREE
    high = high if math.isfinite(high) else at + FREE
    return np.concatenate(
        [np.linspace(min(low, at), at, count + 1), np.linspace(at, max(high, at), count + 1)[1:]]
    )


def _limits(model: Model, body: int) -> Range:
    joint = model.joints[body]
    lower, upper = joint.lower, joint.upper
    return (
        (lower, joint.name if math.isfinite(lower) else ""),
        (upper, joint.name if math.isfinite(upper) else ""),
    )


def _geared(model: Model, cluster: Cluster, body: int) -> Range:
    """The range of a joint of a cluster of gears, by the limits of all of its joints."""
    neutral = model.neutral()
    at, rates = model.joint_positions(neutral), model.constraint_jacobian(neutral)
    name, column = model.joints[body].name, cluster.v.start
    rate = float(rates[model.nodes[body].v, column])
    if not rate:  # it mimics another joint zero times
        return (float(at[name]), ""), (float(at[name]), "")
    lower, upper = (-math.inf, ""), (math.inf, "")
    for other in sorted(cluster.bodies, key=lambda b: b != body):
        joint = model.joints[other]
        slope = float(rates[model.nodes[other].v, column]) / rate
        if joint.nv != 1 or not slope:
            continue
        ends = [float(at[name] + (x - at[joint.name]) / slope) for x in (joint.lower, joint.upper)]
        low, high = ends if slope > 0.0 else ends[::-1]
        if low > lower[0] + INSIDE or lower[0] == -math.inf < low:
            lower = low, joint.name
        if high < upper[0] - INSIDE or upper[0] == math.inf > high:
            upper = high, joint.name
    return lower, upper


def _along_polynomials(
    model: Model, cluster: Cluster, bodies: Sequence[int]
) -> tuple[Array, int, dict[str, Range]]:
    """The range of a cluster of one freedom with polynomials: all joints within their limits.

    Limits of files that are a hundredth of the range short of the curves count as their ends.
    """
    motion = sweep(model, cluster.independent[0], steps=2 * POINTS)
    at = model.joint_positions(motion.q)
    neutral = float(model.joint_positions(model.neutral())[motion.joint])
    start = int(np.argmin(np.abs(motion.positions - neutral)))
    joints = [model.joints[body] for body in cluster.bodies if model.joints[body].nv == 1]
    joints = [joint for joint in joints if joint.type != "continuous"]
    stops = np.full(len(motion.q), "", dtype=object)
    for joint in joints:
        slack = ROUNDED * float(np.ptp(at[joint.name])) + INSIDE
        out = (at[joint.name] < joint.lower - slack) | (at[joint.name] > joint.upper + slack)
        stops[out & (stops == "")] = joint.name
    outside = np.flatnonzero(stops != "")
    first = int(np.max(outside[outside < start], initial=-1)) + 1
    last = int(np.min(outside[outside > start], initial=len(stops))) - 1
    leader = model.joints[model.joint_names.index(motion.joint)]
    by = [
        stops[n] if 0 <= n < len(stops) else motion.joint if math.isfinite(limit) else ""
        for n, limit in ((first - 1, leader.lower), (last + 1, leader.upper))
    ]
    ranges: dict[str, Range] = {}
    for body in bodies:
        name = model.joints[body].name
        values = at[name][first : last + 1]
        ends = []
        for n in (int(np.argmin(values)), int(np.argmax(values))):
            turns = 0 < n < len(values) - 1
            ends.append((float(values[n]), "loop" if turns else by[0] if n == 0 else by[1]))
        ranges[name] = ends[0], ends[1]
    return motion.q[first : last + 1], start - first, ranges


def _along(model: Model, cluster: Cluster, path: Curve) -> tuple[Array, int, tuple[str, str]]:
    """The range of a linkage of one freedom, to its ends, and what ends it on either side."""
    joint = next(each for each in model.joints if each.name == path.joint)
    free = FREE_LENGTH if joint.type == "prismatic" else math.pi
    sides, names = [], []
    for end, limit, way in zip(path.ends, (joint.lower, joint.upper), (-free, free), strict=True):
        position, by = end.position, end.by
        if not by:  # half a turn meets no limit; the joint's may be farther
            position, by = (limit, joint.name) if math.isfinite(limit) else (path.start + way, "")
        side = path.at(np.linspace(path.start, position, POINTS + 1)[1:])
        if end.by:
            side[-1] = end.q
        fine = np.isfinite(side).all(axis=1) & (abs(position - path.start) > INSIDE)
        sides.append(side[fine])
        names.append(by)
    q = np.tile(model.neutral(), (len(sides[0]) + 1 + len(sides[1]), 1))
    q[: len(sides[0]), cluster.q] = sides[0][::-1]
    q[len(sides[0]) + 1 :, cluster.q] = sides[1]
    return q, len(sides[0]), (names[0], names[1])


def _spanned(model: Model, body: int, path: Curve, q: Array, ends: tuple[str, str]) -> Range:
    """The range of a joint along a linkage's: where it turns back, it is the linkage's doing."""
    from scipy.optimize import brentq

    joint, cluster = model.joints[body], path.cluster
    at = np.asarray(model.joint_positions(q)[joint.name])
    along = np.asarray(model.joint_positions(q)[path.joint])

    def there(position: float) -> Array:
        whole = model.neutral()
        whole[cluster.q] = path.at(np.array([position]))[0]
        return whole

    def rate(position: float) -> float:
        return float(model.constraint_jacobian(there(position))[model.nodes[body].v, cluster.v][0])

    ranges = []
    steps = np.pad(along, 1, mode="reflect", reflect_type="odd")
    for pick, limit in ((np.argmin, joint.lower), (np.argmax, joint.upper)):
        n = int(pick(at))
        value = float(at[n])
        by = ends[0] if n == 0 else ends[1] if n == len(at) - 1 else "loop"
        if by in ("", "loop") and rate(steps[n]) * rate(steps[n + 2]) < 0.0:
            turn = brentq(rate, steps[n], steps[n + 2], xtol=1e-12)
            value, by = float(model.joint_positions(there(turn))[joint.name]), "loop"
        if abs(value - limit) <= 1e-7:
            value, by = limit, joint.name
        if not by:  # a whole turn
            value = limit
        ranges.append((value, by))
    return ranges[0], ranges[1]
