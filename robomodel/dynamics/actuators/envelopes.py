"""Range, torque and speed that motors give joints behind gears and linkages.

Every joint of one freedom that carries something has an envelope, in any cluster. It is moved along
its path (:mod:`robomodel.reach.paths`) while the other joints that move in the open
tree (:mod:`robomodel.dynamics.lumped`) are held: at neutral, and at the ends of their ranges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.description import Limits
from robomodel.dynamics.actuators import maps as actuation
from robomodel.dynamics.lumped import select
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster, joint_slices
from robomodel.model.model import Model
from robomodel.model.spins import find_spins
from robomodel.reach.paths import Path
from robomodel.reach.ranges import (
    JointRange,
    column_of,
    joint_range,
    path_along,
    spanning_start,
)
from robomodel.scalars import Scalar, Vector, stack, unstack
from robomodel.spatial import ZERO, Motion, scale
from robomodel.tolerances import NOTHING, SAME, SINGULAR

FREE = 0.5  # rad or m, either way: where other joints without limits are held

OTHERS = 3  # most freedoms of clusters whose other joints are also held at their ends
DEAD = 1e-3  # of the greatest torque or speed: less is a dead point's
BENT = 0.01  # of the usual size: how far curves may be from straight lines between points
ROUNDS, MOST_ADDED = 4, 200  # of adding points, and the most points that a round adds
INFINITE = 1e6  # rates of a joint that is at a dead point
STEEPEST = 30.0  # times the usual size: beyond it, near dead points, no points are added


@dataclass(frozen=True, slots=True, eq=False)
class JointEnvelope:
    """The range, torque and speed of a joint behind its motors.

    ``tree``: it moves in the open tree.
    ``positions`` (n,) of the joint at the configurations ``q`` (n, nq); ``ratios`` (n, actuators):
    the motors' rates at unit velocity of the joint, all other joints of the open tree at rest;
    ``torque`` and ``speed`` (n,): the greatest there; infinite where nothing limits them.
    ``inertia`` (n,): see :func:`reflected_inertia`.
    ``reach``: its range with the others free, and what ends it: see :func:`robomodel.joint_range`.
    ``effort`` and ``velocity``: the least ``torque`` and ``speed``, available everywhere. If the
    range has dead points, where they vanish, those at the neutral configuration.
    ``line``: the configurations that have all other joints of the tree at neutral, in order.
    ``dead_points``: positions of the joint on that line at which it, or a motor's joint,
    turns back.
    ``file_limits``: the file's. ``slides``: units are metres and newtons, not radians. ``varies``:
    its numbers change with the pose; if not, there is one configuration.
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
    inertia: Array
    reach: JointRange
    effort: float
    velocity: float
    line: Indices
    dead_points: tuple[float, ...]
    file_limits: Limits
    slides: bool = False
    varies: bool = True

    @property
    def lower(self) -> float:
        """The least position."""
        return self.reach.lower

    @property
    def upper(self) -> float:
        """The greatest position."""
        return self.reach.upper

    @property
    def lower_by(self) -> str:
        """The joint whose limit ends its range below; "loop" for a dead point; empty for none."""
        return "loop" if self.reach.lower_end.kind == "dead point" else self.reach.lower_by

    @property
    def upper_by(self) -> str:
        """The joint whose limit ends its range above; "loop" for a dead point; empty for none."""
        return "loop" if self.reach.upper_end.kind == "dead point" else self.reach.upper_by

    @property
    def limits(self) -> Limits:
        """The limits of the open tree: the tighter of these and the file's.

        The file's, if the joint cannot move between them.
        """
        file = self.file_limits
        ends = max(self.lower, file.lower), min(self.upper, file.upper)
        return Limits(
            *(ends if ends[0] <= ends[1] else (file.lower, file.upper)),
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
        finite = (x[np.isfinite(x)] for x in (self.torque, self.speed))
        return all(bool(np.ptp(x) <= SAME * np.max(x)) if len(x) else True for x in finite)


def _tighter(computed: float, filed: float) -> float:
    """The smaller limit; the file's if they differ by rounding alone.

    The file's limit 0, which joints without a motor have, does not limit what motors give.
    """
    if filed == 0.0 and 0.0 < computed < math.inf:
        return computed
    return filed if computed >= filed * (1.0 - SAME) else computed


@cached_on_model
def joint_envelopes(model: Model) -> tuple[JointEnvelope, ...]:
    """The envelopes of all joints of one freedom that carry something.

    Rotors do not. Hinges of balls between which rods spin are left out.
    """
    balls = {name for spin in find_spins(model) for name in spin.joints}
    bodies = [body for body in carrying(model) if model.joints[body].name not in balls]
    return tuple(joint_envelope(model, body) for body in bodies)


def carrying(model: Model) -> list[int]:
    """The bodies whose joints have one freedom and carry something, which rotors do not."""
    return [
        body
        for cluster in model.clusters
        for body in cluster.bodies
        if model.nodes[body].joint.nv == 1
        and (body in moving_bodies(model) or not model.nodes[body].axisymmetric)
    ]


@cached_on_model
def moving_bodies(model: Model) -> frozenset[int]:
    """Bodies whose joints move in the open tree; independent joints where there is none."""
    try:
        return select(model).moving
    except ValueError:
        return frozenset(n for n, joint in enumerate(model.joints) if joint.independent)


def alone(model: Model, body: int) -> list[int]:
    """Spanning velocities, the joint of this body's among them, that determine the open tree's.

    They are of the joints that move in the open tree, or of independent joints where these do not
    determine the cluster's motion. A joint that does not move in the tree replaces the one that
    moves it most at neutral.
    """
    cluster = model.clusters[model.nodes[body].cluster]
    rows, g = _of_tree(model, cluster), model.constraint_jacobian(model.neutral())[:, cluster.v]
    inverse = inverses(g[rows])
    if not np.isfinite(inverse).all():
        rows = [cluster.spanning_v.start + c for c in cluster.columns]
        inverse = np.eye(cluster.nv)
    v = model.nodes[body].v
    if v not in rows:
        rates = np.abs(np.nan_to_num(g[v] @ inverse))
        rows[int(np.argmax(rates))] = v
    return rows


def _of_tree(model: Model, cluster: Cluster) -> list[int]:
    """Spanning velocities of the open tree's joints; independent ones if these are too few."""
    rows = [v for b in cluster.bodies if b in moving_bodies(model) for v in model.nodes[b].freedoms]
    if len(rows) == cluster.nv:
        return rows
    return [cluster.spanning_v.start + c for c in cluster.columns]


@cached_on_model
def joint_envelope(model: Model, body: int) -> JointEnvelope:
    """The envelope of a joint of one freedom, by its body."""
    joint, node = model.joints[body], model.nodes[body]
    cluster = model.clusters[node.cluster]
    rows = alone(model, body)
    place = rows.index(node.v)
    q, line, path = _poses(model, cluster, body, rows)
    b, rates = _maps(model, q, cluster, rows)
    ratios = b[:, cluster.v.start + place]
    driven = np.any(np.abs(np.nan_to_num(ratios)) > NOTHING, axis=0)
    driven |= np.all(np.isnan(ratios), axis=0)
    torque, speed = _greatest(model, ratios[:, driven], driven)
    start = int(line[np.argmin(np.linalg.norm(q[line] - model.neutral(), axis=1))])
    return JointEnvelope(
        joint=joint.name,
        cluster=cluster.name,
        tree=body in moving_bodies(model),
        actuators=tuple(a.name for a, on in zip(model.actuators, driven, strict=True) if on),
        q=q,
        positions=np.asarray(model.joint_positions(q)[joint.name]),
        ratios=ratios[:, driven],
        torque=torque,
        speed=speed,
        inertia=reflected_inertia(model, q, body, rates[..., place]),
        reach=joint_range(model, joint.name),
        effort=_least(torque, start),
        velocity=_least(speed, start),
        line=line,
        dead_points=() if path is None else tuple(_dead_points(model, cluster, body, path, driven)),
        file_limits=Limits(joint.lower, joint.upper, joint.velocity_limit, joint.effort_limit),
        slides=joint.type == "prismatic",
        varies=cluster.varies,
    )


def _greatest(model: Model, ratios: Array, driven: Mask) -> tuple[Array, Array]:
    """The greatest torque and speed (n,) by the motors' ratios (n, driven)."""
    if not np.any(driven):
        return np.full(len(ratios), np.inf), np.full(len(ratios), np.inf)
    low, high = (x[driven] for x in actuation.bounds(model, None))
    fastest = np.array([
        a.velocity_limit if a.no_load_speed is None else min(a.velocity_limit, a.no_load_speed)
        for a in model.actuators
    ])[driven]  # fmt: skip
    with np.errstate(all="ignore"):
        speed = np.min(fastest / np.abs(ratios), axis=-1)
        pushes = np.stack([low * ratios, high * ratios])
        pushes = np.where(ratios == 0.0, 0.0, pushes)
        torque = np.minimum(np.sum(np.max(pushes, axis=0), axis=-1),
                            -np.sum(np.min(pushes, axis=0), axis=-1))  # fmt: skip
    return torque, speed


def _maps(model: Model, q: Array, cluster: Cluster, rows: Sequence[int]) -> tuple[Array, Array]:
    """B (n, nv, nu) with these velocities in the cluster's place, and v (n, nv, rows) for each."""
    with np.errstate(all="ignore"):  # at dead points
        entries = [x for row in actuation.actuator_map(model, unstack(q)) for x in row]
    b = stack(entries, q.shape[:-1]).reshape(len(q), model.nv, len(model.actuators))
    rates = np.zeros((len(q), model.nv, len(rows)))
    g = model.constraint_jacobian(q)[:, rows, cluster.v]
    one = np.eye(len(rows))
    inverse = np.broadcast_to(one, g.shape) if np.array_equal(g, one + 0.0 * g) else inverses(g)
    rates[:, cluster.v] = inverse
    if b.shape[-1] and inverse.strides[0]:
        b[:, cluster.v] = np.swapaxes(inverse, 1, 2) @ b[:, cluster.v]
    return b, rates


def reflected_inertia(model: Model, q: Array, body: int, v: Array) -> Array:
    """Reflected inertia (n,) [kg m² or kg] of a joint at q (n, nq), moved at unit rate by v (n,
    nv).

    Not-a-number where v is.
    """
    positions = model.spanning_positions(unstack(q))
    speeds = np.einsum("nij,nj->ni", model.constraint_jacobian(q), v)
    rests = np.all(speeds == 0.0, axis=0)
    rates = [0.0 if rest else rate for rest, rate in zip(rests, unstack(speeds), strict=True)]
    with np.errstate(all="ignore"):  # at dead points
        total = reflected(model, positions, rates, body)
    result: Array = np.broadcast_to(np.asarray(total, dtype=float), (len(q),)).copy()
    result[~(np.max(np.abs(v), axis=-1, initial=0.0) < INFINITE)] = np.nan
    return result


def reflected(model: Model, positions: Vector, rates: Vector, body: int) -> Scalar:
    """Reflected inertia of a joint that moves at unit rate; scalars of any kind.

    It is the sum of twistᵀ · inertia · twist over all moving bodies except those that the joint
    carries, plus armatures; of carried rotors only the spin counts. No term is negative. ``rates``
    are of all joints; a rate that is the float 0 marks a joint at rest.
    """
    total: Scalar = 0.0
    twists: dict[int, Motion] = {}
    carried: set[int] = set()
    for k, node in enumerate(model.nodes):
        if k == body or node.parent in carried:
            carried.add(k)
        moves = any(not isinstance(rates[r], float) or rates[r] != 0.0 for r in node.freedoms)
        if node.parent not in twists and not moves:
            continue
        turning = Motion(ZERO, ZERO)
        for r, motion in zip(node.freedoms, node.joint.subspace, strict=True):
            turning = turning + Motion(
                scale(rates[r], motion.angular), scale(rates[r], motion.linear)
            )
            total = total + node.armature * rates[r] * rates[r]
        twists[k] = turning
        if node.parent in twists:
            twists[k] = node.transform(positions).to_child(twists[node.parent]) + turning
        if k not in carried:
            total = total + (node.inertia * twists[k]).dot(twists[k])
        elif node.axisymmetric and k != body:
            total = total + (node.inertia * turning).dot(turning)
    return total


def inverses(matrices: Array) -> Array:
    """Inverts square matrices (..., n, n); not-a-number where these are singular."""
    with np.errstate(all="ignore"):
        singular = np.linalg.svd(np.where(np.isfinite(matrices), matrices, 0.0), compute_uv=False)
        regular: Mask = singular[..., -1] > SINGULAR * singular[..., 0]
        regular &= np.isfinite(matrices).all(axis=(-2, -1))
        safe = np.where(regular[..., None, None], matrices, np.eye(matrices.shape[-1]))
        return np.where(regular[..., None, None], np.linalg.inv(safe), np.nan)


def _least(values: Array, start: int) -> float:
    """The least value; if some vanish, that at the start."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return math.inf
    least, at_start = float(np.min(finite)), float(values[start])
    return at_start if least <= DEAD * np.max(finite) and math.isfinite(at_start) else least


def tree_rows(model: Model, instead: Sequence[int] = ()) -> list[int]:
    """Spanning velocities of the joints that move in the open tree, which determine all others.

    ``instead``: bodies whose joints replace some of these, see :func:`alone`.
    """
    moving, rows = moving_bodies(model), []
    for cluster in model.clusters:
        chosen = [b for b in instead if b in cluster.bodies and b not in moving]
        rows += alone(model, chosen[0]) if chosen else _of_tree(model, cluster)
    return rows


def tree_rates(model: Model, q: Array, rows: Sequence[int]) -> Array:
    """The independent velocities (..., nv, nv) for unit rates of these joints, one each column.

    Not-a-number where these rates do not determine them.
    """
    return inverses(model.constraint_jacobian(q)[..., rows, :])


# ---- configurations ------------------------------------------------------------------------------


def _poses(
    model: Model, cluster: Cluster, body: int, rows: Sequence[int]
) -> tuple[Array, Indices, Path | None]:
    """Configurations (n, nq) of a joint's cluster, those on the line, and the path along the line.

    On the line all other joints are at neutral; elsewhere one of the cluster is at an end.
    """
    neutral = model.neutral()
    if not cluster.varies:
        return neutral[None], np.zeros(1, dtype=np.intp), None
    column = column_of(cluster, model.joints[body].name)
    held = [v - cluster.spanning_v.start for v in rows if v != model.nodes[body].v]
    start = spanning_start(cluster, neutral[cluster.q])
    path = path_along(model, cluster, column, held, start)
    if path is None:
        return neutral[None], np.zeros(1, dtype=np.intp), None
    points = [_refined(model, cluster, body, rows, path)]
    if 1 < cluster.nv <= OTHERS:
        columns = [v - cluster.spanning_v.start for v in rows]
        for other in at_ends(model, cluster, held, columns, start):
            beside = path_along(model, cluster, column, held, other)
            if beside is not None:
                points.append(beside.q)
    q = np.concatenate([whole(model, cluster, each) for each in points])
    return q, np.arange(len(points[0])), path


def at_ends(
    model: Model, cluster: Cluster, held: Sequence[int], columns: Sequence[int], start: Array
) -> Iterator[Array]:
    """Spanning positions with one of the held joints at an end of its range, the others held.

    ``columns`` are those of the joint and of all held joints in the cluster.
    """
    for column in held:
        rest = [c for c in columns if c != column]
        path = path_along(model, cluster, column, rest, start)
        if path is not None:
            yield from path.within(column, FREE)


def whole(model: Model, cluster: Cluster, spanning: Array) -> Array:
    """q (n, nq) with a cluster at these spanning positions (n, …), the others at neutral."""
    q = np.tile(model.neutral(), (len(spanning), 1))
    if cluster.implicit:
        q[:, cluster.q] = spanning
        return q
    for body, part, _ in joint_slices(model, cluster):
        link = cluster.geometry.links[body - cluster.bodies[0]]
        q[:, cluster.q][:, part] = spanning[:, link.positions]
    return q


def _refined(model: Model, cluster: Cluster, body: int, rows: Sequence[int], path: Path) -> Array:
    """Points of a path, denser where ratios bend."""
    place = rows.index(model.nodes[body].v)

    def values(spanning: Array) -> Array:
        q = whole(model, cluster, spanning)
        b, rates = _maps(model, q, cluster, rows)
        speeds = np.einsum("nij,nj->ni", model.constraint_jacobian(q)[:, cluster.spanning_v],
                           rates[..., place])  # fmt: skip
        return np.concatenate([b[:, cluster.v.start + place], speeds], axis=1)

    at = np.arange(len(path.q), dtype=float)
    at_points = values(path.q)
    with np.errstate(all="ignore"):
        usual = np.nan_to_num(np.nanmedian(np.abs(at_points), axis=0))
    points = path.q
    todo = 0.5 * (at[1:] + at[:-1])
    for _ in range(ROUNDS):
        if not 0 < len(todo) <= MOST_ADDED:
            break
        between = np.array([path.at(s) for s in todo])
        at_between = values(between)
        left = np.searchsorted(at, todo) - 1
        straight = 0.5 * (at_points[left] + at_points[left + 1])
        off = np.abs(at_between - straight)
        near = np.abs(at_between) < STEEPEST * usual
        bent = np.any((off > BENT * np.maximum(usual, NOTHING)) & near, axis=1)
        gap = at[left + 1] - at[left]
        order = np.argsort(np.concatenate([at, todo]), kind="stable")
        at = np.concatenate([at, todo])[order]
        at_points = np.concatenate([at_points, at_between])[order]
        points = np.concatenate([points, between])[order]
        todo = np.concatenate([todo[bent] - 0.25 * gap[bent], todo[bent] + 0.25 * gap[bent]])
        todo.sort()
    return points


def _dead_points(
    model: Model, cluster: Cluster, body: int, path: Path, driven: Mask
) -> Iterator[float]:
    """Positions at which a joint, or a joint that its motors turn, turns back; and dead ends."""
    column = column_of(cluster, model.joints[body].name)
    columns = {column} | {
        row - cluster.spanning_v.start
        for actuator, on in zip(model.actuators, driven, strict=True)
        for row, _ in actuator.rows
        if on and cluster.spanning_v.start <= row < cluster.spanning_v.stop
    }
    found = [path.part.position(q, column) for each in sorted(columns) for q in path.turns(each)]
    found += [path.part.position(end.q, column) for end in path.ends if end.kind == "dead point"]
    yield from sorted({round(x, 9) + 0.0 for x in found})
