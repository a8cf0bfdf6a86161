"""Range, torque and speed that motors give joints behind gears and linkages.

A row is for a joint, by default of a limb (:mod:`robomodel.reach.limb`). It is moved along its path
(:mod:`robomodel.reach.paths`) while the other joints of the limb rest, at neutral; and it is looked
at wherever the limb's joints reach together (:mod:`robomodel.reach.box`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.description import Limits
from robomodel.dynamics.actuators import efforts
from robomodel.dynamics.actuators import maps as actuation
from robomodel.dynamics.actuators.limbs import (
    RANKLESS,
    TiedSpeeds,
    beside,
    columns_of,
    condition,
    file_efforts,
    is_driven,
    loose,
    motions,
    motor_rows,
    rowed,
    singular_places,
    tied_speeds,
    torque_map,
    unit_rates,
)
from robomodel.dynamics.actuators.reflection import inertia_along
from robomodel.mechanism.roots import last_before
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster, joint_slices, spanning_start
from robomodel.model.model import Model
from robomodel.reach.box import FREE, boxes
from robomodel.reach.limb import limb_bodies
from robomodel.reach.motions import ClusterMotion
from robomodel.reach.paths import Half, Path, joined, walk
from robomodel.reach.ranges import (
    FreeRanges,
    JointRange,
    halves_along,
    limb_ranges,
    path_along,
    ranges_from,
)
from robomodel.tolerances import NOTHING, SAME, SINGULAR

OTHERS = 3  # most freedoms of clusters whose other joints are also held at their ends
DEAD_TORQUE = 1e-3  # of the torque or speed at neutral: less is a dead point's
BENT_CURVE = 0.01  # of the usual size: how far curves may be from straight lines between points
# of adding points, the most points that a round adds, and those on each side of least values
ROUNDS, MOST_ADDED, AROUND = 4, 200, 4
STEEPEST = 30.0  # times the usual size: beyond it, near dead points, no points are added


Quantity = Literal["alone", "alone, back", "whatever others take", "speed", ""]
"""Kinds of values of a joint: torques, alone, or back, or whatever others take, speeds, others."""


class DeadPoint(NamedTuple):
    """A position [rad, m] of a joint on its path at which the limb's map to its motors is singular.

    "motors rest" while it moves, so that they can neither hold nor move it; "it rests" while motors
    move, and turns back; "both rest", as a joint with a motor of its own, while others move; "not
    alone": motors move with it, but give it no torque without torque on other joints of limbs.
    ``alone``: all motors rest while it moves alone, too. ``torque``: the sizes of the least and of
    the greatest that motors give it alone where it rests, which are infinite if it does in all
    motions of its limb. ``resting``: names of motors that rest with it.
    """

    position: float
    kind: Literal["motors rest", "it rests", "both rest", "not alone"]
    alone: bool = False
    torque: tuple[float, float] = (math.inf, math.inf)
    resting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class JointLimits:
    """The range, effort and velocity of a joint behind its motors, others of its limb at rest.

    Attributes:
        joint: Its name.
        cluster: Its cluster's.
        actuators: Motors that turn with it.
        reach: Its range with the others free, up to dead points of limbs' joints, and what ends it.
        effort: The least of the greatest torques on its line, on which the others are at neutral.
            If the line has dead points, where it vanishes, that at the neutral configuration.
        effort_back: The same of the size of the least torque.
        velocity: The same of its speed.
        velocity_back: The same of the size of the least speed.
        file_limits: The file's.
        constant: Torque and speed are the same along the line.
        passive: Motors are too few to give it torque alone, so torques are whatever others take.
        tied: See :func:`robomodel.dynamics.actuators.limbs.tied_speeds`.
        file_efforts: See :func:`robomodel.dynamics.actuators.limbs.file_efforts`.
    """

    joint: str
    cluster: str
    actuators: tuple[str, ...]
    reach: JointRange
    effort: float
    effort_back: float
    velocity: float
    velocity_back: float
    file_limits: Limits
    constant: bool
    passive: bool
    tied: TiedSpeeds
    file_efforts: tuple[float, float]

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
        velocity = _tighter(min(self.velocity, self.tied.ahead), file.velocity)
        none = not self.actuators
        effort_back, effort = map(_tighter, (self.effort_back, self.effort), self.file_efforts,
                                  (none, none), self.file_efforts[::-1])  # fmt: skip
        back = (
            _tighter(min(self.velocity_back, self.tied.back), -file.least_velocity),
            effort_back,
        )
        return Limits(
            *(ends if ends[0] <= ends[1] else (file.lower, file.upper)),
            velocity,
            effort,
            None if _same(back[0], velocity) else 0.0 - back[0],
            None if _same(back[1], effort) else 0.0 - back[1],
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class JointEnvelope(JointLimits):
    """The range, torque and speed of a joint behind its motors, other joints of its limb at rest.

    Attributes:
        tree: Whether it is a joint of a limb, as of :func:`robomodel.limb_joints`.
        rest: Joints of its cluster that are at rest while it moves.
        q: Configurations (n, nq).
        positions: Of the joint there (n,).
        line: The configurations that have the joints of ``rest`` at neutral, in order. The others
            are wherever the limb's joints reach together.
        ratios: The motors' rates (n, actuators) at its unit velocity.
        torque: The greatest (n,) that motors give it alone, without torque on other joints of
            limbs; infinite where nothing limits it; if it is ``passive``, ``torque_any``.
        torque_back: The size of the least, which is the same unless drives are not symmetric.
        torque_any: The greatest whatever the others take, the smaller of both ways.
        speed: The greatest (n,).
        speed_back: The size of the least.
        inertia: See :func:`robomodel.dynamics.actuators.reflection.reflected_inertia` (n,).
        condition: See :func:`~robomodel.dynamics.actuators.limbs.condition` (n,); 1 for joints that
            share no motors.
        at_rest: Its range while these rest at neutral.
        dead_points: Where on the line its limb is at a dead point.
        slides: Units are metres and newtons, not radians.
        varies: Its numbers change with the pose; if not, there is one configuration.
    """

    tree: bool
    rest: tuple[str, ...]
    q: Array
    positions: Array
    line: Indices
    ratios: Array
    torque: Array
    torque_back: Array
    torque_any: Array
    speed: Array
    speed_back: Array
    inertia: Array
    condition: Array
    at_rest: tuple[float, float]
    dead_points: tuple[DeadPoint, ...]
    slides: bool
    varies: bool

    def span(
        self, values: Array, of: Quantity = "", *, motor: str = "", anywhere: bool = False
    ) -> tuple[float, float] | None:
        """The least and the greatest of values (n,) on its line; None if none is finite.

        At dead points where it turns back, speeds vanish and all others are infinite, but for what
        is one number all along, for torques and speeds where motors rest with it, and for torques
        alone where others share what it rests by. Where motors rest while it moves alone, torques
        vanish, and speeds are infinite; if joints at ``rest`` would move, too, or motors are not
        able to push it alone, the torque alone vanishes.
        ``motor``: whose ratios they are, which are finite where it rests with the joint.
        ``anywhere``: also beside the line.
        """
        alone = of in ("alone", "alone, back") and not self.passive
        on = values[self.line]
        finite = np.isfinite(on)
        if not np.any(finite):
            return None
        among = values[np.isfinite(values)] if anywhere else on[finite]
        among = np.where(np.abs(among) <= NOTHING * np.max(np.abs(among)), 0.0, among)  # rounding
        ends = [float(np.min(among)), float(np.max(among))]
        for each in self.dead_points:
            stuck = each.kind in ("motors rest", "not alone")
            if each.kind == "it rests" and alone:
                ends.append(each.torque[of == "alone"])
                continue
            if not stuck and (
                _one(on) or motor in each.resting or (of and each.kind == "both rest")
            ):
                continue
            vanishes = each.alone or alone
            if stuck and not (of and vanishes):
                continue
            if (of != "speed") == stuck:
                ends.append(0.0)
                continue
            away = np.abs(self.positions[self.line] - each.position)
            beside = on[np.argsort(np.where(finite, away, np.inf), kind="stable")[:2]]
            ends += [math.copysign(math.inf, x) for x in beside if np.isfinite(x) and x]
        return min(ends), max(ends)

    @property
    def hidden(self) -> bool:
        """True if another joint's limit, or the linkage, ends its range."""
        return any(by not in ("", self.joint) for by in (self.lower_by, self.upper_by))


def _same(one: float, other: float) -> bool:
    """True if limits both ways are one; those of symmetric drives differ by rounding."""
    return one == other or abs(one - other) <= SAME * max(one, other)


def _tighter(computed: float, filed: float, idle: bool = True, back: float = 0.0) -> float:
    """The smaller limit; the file's if they differ by rounding alone.

    The file's limit 0, which joints without a motor (``idle``) have, limits nothing that motors do,
    if it is zero ``back``, too.
    """
    if filed == back == 0.0 and computed > 0.0 and not (idle and math.isinf(computed)):
        return computed
    return filed if computed >= filed * (1.0 - SAME) else computed


def carrying(model: Model) -> list[int]:
    """The bodies whose joints have one freedom and carry something, which rotors do not."""
    limbs = {body for bodies in limb_bodies(model) for body in bodies}
    return [
        body
        for body, node in enumerate(model.nodes)
        if node.joint.nv == 1 and (body in limbs or not node.axisymmetric)
    ]


@cached_on_model
def joint_envelopes(model: Model) -> tuple[JointEnvelope, ...]:
    """The envelopes of joints of limbs, and of joints with motors of their own beside these."""
    return envelopes_of(model, rowed(model))


def envelopes_of(model: Model, bodies: Sequence[int]) -> tuple[JointEnvelope, ...]:
    """The envelopes of joints of one freedom, by bodies."""
    follow(model, bodies)
    return tuple(joint_envelope(model, body) for body in bodies)


@dataclass(frozen=True, slots=True, eq=False)
class _Given:
    """The torques and speeds of a joint by its motors, at spanning positions (n, nq).

    ``rates`` (n, spanning velocities, k): of the cluster by the joint and those beside it, of
    which it is number ``place``; ``turns`` (n, motors, k): of motors. Torques and speeds (n,): see
    :class:`JointEnvelope`. ``path``: if the positions are on it, at ``along`` (n,).
    """

    spanning: Array
    rates: Array
    turns: Array
    place: int
    torque: Array
    torque_back: Array
    torque_any: Array
    speed: Array
    speed_back: Array
    passive: bool
    path: Path | None = None
    along: Array | None = None

    @classmethod
    def at(cls, model: Model, body: int, spanning: Array, passive: bool | None = None) -> _Given:
        """There; ``passive``: motors are known to be too few, or enough."""
        return cls.by(model, body, spanning, _rates_at(model, body, spanning), passive)

    @classmethod
    def by(
        cls, model: Model, body: int, spanning: Array, rates: Array, passive: bool | None = None
    ) -> _Given:
        """The same where rates are known."""
        cluster = model.clusters[model.nodes[body].cluster]
        place = beside(model, body).index(body)
        turns = motor_rows(model)[:, cluster.spanning_v] @ rates
        sizes = np.abs(turns)
        turns[sizes <= NOTHING * np.max(sizes, axis=-2, keepdims=True, initial=0.0)] = 0.0
        b = torque_map(model, rates, cluster)
        (torque_back, torque), most, passive = _torques(model, b, place, passive)
        speed_back, speed = _greatest_speeds(model, turns[..., place])
        return cls(spanning, rates, turns, place, torque, torque_back, most, speed, speed_back,
                   passive)  # fmt: skip

    def joined(self, other: _Given, order: Indices) -> _Given:
        """These and others, in this order of both."""
        names = ("spanning", "rates", "turns", "torque", "torque_back", "torque_any", "speed",
                 "speed_back")  # fmt: skip
        both: dict[str, Any] = {x: np.concatenate([getattr(self, x), getattr(other, x)])[order]
                                for x in names}  # fmt: skip
        return replace(self, **both)

    @property
    def ratios(self) -> Array:
        """The motors' rates (n, motors) at the joint's unit velocity."""
        return self.turns[..., self.place]


def _rates_at(model: Model, body: int, spanning: Array) -> Array:
    """:func:`unit_rates` of the joints beside a joint at spanning positions."""
    cluster = model.clusters[model.nodes[body].cluster]
    return unit_rates(model, cluster, spanning, columns_of(model, cluster, beside(model, body)))


@cached_on_model
def _lines(model: Model) -> dict[int, Path | None]:
    """Paths of joints with the others beside them at neutral, by bodies, of those followed."""
    return {}


def follow(model: Model, bodies: Sequence[int]) -> None:
    """Follow lines of joints, and paths to the ends of their ranges, side by side.

    So what several of them go along is walked once.
    """
    lines, pairs = _lines(model), dict[int, tuple[Half, Half]]()
    for body in bodies:
        cluster = model.clusters[model.nodes[body].cluster]
        if body not in lines and cluster.varies:
            columns = columns_of(model, cluster, beside(model, body))
            (own,) = columns_of(model, cluster, [body])
            start = spanning_start(cluster, model.neutral()[cluster.q])
            held = [c for c in columns if c != own]
            if pair := halves_along(model, cluster, own, held, start):
                pairs[body] = pair
        lines.setdefault(body, None)
    ranges = FreeRanges(model, [model.joints[body].name for body in bodies], sheet=True)
    walk([*ranges.halves, *(half for pair in pairs.values() for half in pair)])
    ranges.found()
    lines |= {body: joined(*pair) for body, pair in pairs.items()}


@cached_on_model
def _on_line(model: Model, body: int) -> _Given:
    """The same while the others beside it are at neutral."""
    cluster = model.clusters[model.nodes[body].cluster]
    if body not in _lines(model):
        follow(model, [body])
    if (path := _lines(model)[body]) is None:
        return _Given.at(model, body, spanning_start(cluster, model.neutral()[cluster.q])[None])
    at, spanning, rates = _refined(model, body, path)
    return _with_least(model, body, path, at, _Given.by(model, body, spanning, rates))


def _with_least(model: Model, body: int, path: Path, at: Array, given: _Given) -> _Given:
    """Values at points of a path, and at more of them around the least torques and speeds.

    A motor whose ratio changes its sign pushes with another effort beyond, so that curves may have
    kinks there. ``at``: the points' places.
    """
    for _ in range(ROUNDS):
        todo = set[float]()
        for x in (given.torque, given.torque_back, given.speed, given.speed_back):
            finite = np.where(np.isfinite(x), x, np.inf)
            least, median = float(np.min(finite)), float(np.median(finite))
            if DEAD_TORQUE * median < least < (1.0 - SAME) * median:
                n = int(np.argmin(finite))
                for a, b in pairwise(at[max(n - 1, 0) : n + 2]):
                    todo |= set(np.linspace(a, b, 2 + AROUND)[1:-1].tolist())
        if not todo:
            break
        more = np.array(sorted(todo))
        order = np.argsort(np.concatenate([at, more]), kind="stable")
        at = np.concatenate([at, more])[order]
        given = given.joined(_Given.at(model, body, path.among(more), given.passive), order)
    return replace(given, path=path, along=at)


@cached_on_model
def joint_limits(model: Model, body: int) -> JointLimits:
    """The limits of a joint of one freedom behind its motors, by its body."""
    joint, cluster = model.joints[body], model.clusters[model.nodes[body].cluster]
    line = _on_line(model, body)
    q = whole(model, cluster, line.spanning)
    start = int(np.argmin(np.linalg.norm(q - model.neutral(), axis=1)))
    finite = (x[np.isfinite(x)] for x in (line.torque, line.speed))
    dead = _dead_points(model, body)
    stuck = [q for each, q in dead if each.kind in ("motors rest", "not alone")]
    resting = [each.torque for each, _ in dead if each.kind == "it rests"]
    # with the start, without which nothing moves the joint where motors rest
    spanning = np.array([line.spanning[start], *stuck])
    weakest = _Given.at(model, body, spanning, line.passive)
    turning = 0.0 if any(each.kind == "it rests" for each, _ in dead) else math.inf
    return JointLimits(
        joint=joint.name,
        cluster=cluster.name,
        actuators=_names(model, _driven(line.ratios)),
        reach=limb_ranges(model, [joint.name])[0],
        effort=_least(
            np.append(line.torque, [x for _, x in resting]), start,
            float(np.nanmin(weakest.torque)),
        ),
        effort_back=_least(
            np.append(line.torque_back, [x for x, _ in resting]), start,
            float(np.nanmin(weakest.torque_back)),
        ),
        velocity=_least(line.speed, start, turning),
        velocity_back=_least(line.speed_back, start, turning),
        file_limits=Limits(
            joint.lower, joint.upper, joint.velocity_limit, joint.effort_limit,
            joint.velocity_lower, joint.effort_lower,
        ),
        constant=all(bool(np.ptp(x) <= SAME * np.max(x)) if len(x) else True for x in finite),
        passive=line.passive,
        tied=tied_speeds(model, body),
        file_efforts=file_efforts(model, body),
    )  # fmt: skip


def _driven(ratios: Array) -> Mask:
    """The motors that turn at any of their rates (n, motors)."""
    driven: Mask = np.any(np.abs(np.nan_to_num(ratios)) > NOTHING, axis=0)
    return driven


def _names(model: Model, driven: Mask) -> tuple[str, ...]:
    """The names of these motors (motors,)."""
    return tuple(each.name for each, on in zip(model.actuators, driven, strict=True) if on)


@cached_on_model
def joint_envelope(model: Model, body: int) -> JointEnvelope:
    """The envelope of a joint of one freedom, by its body."""
    joint, cluster = model.joints[body], model.clusters[model.nodes[body].cluster]
    bodies, limits, line = beside(model, body), joint_limits(model, body), _on_line(model, body)
    path = line.path
    (own,) = columns_of(model, cluster, [body])
    given = [line]
    if path is not None:
        beyond = [spanning_start(cluster, q) for box in boxes(model) if box.cluster == cluster.name
                  for q in box.q[:, cluster.q]]  # fmt: skip
        given += [_Given.at(model, body, np.array(beyond), line.passive)] if beyond else []

    def everywhere(pick: Callable[[_Given], Array]) -> Array:
        return np.concatenate([pick(each) for each in given])

    turns = everywhere(lambda each: each.turns)
    ratios = turns[..., line.place]
    driven = _driven(ratios)
    shared = np.any(np.abs(np.nan_to_num(turns[:, driven])) > NOTHING, axis=(0, 1))
    rates = _of_all(model, cluster, everywhere(lambda each: each.rates[..., each.place]))
    q = whole(model, cluster, everywhere(lambda each: each.spanning))
    known = {each.name: getattr(limits, each.name) for each in fields(limits)}
    return JointEnvelope(
        **known | {"actuators": _names(model, driven)},
        tree=body in limb_bodies(model)[cluster.index],
        rest=_rest(model, cluster, body, bodies),
        q=q,
        positions=np.asarray(model.joint_positions(q)[joint.name]),
        line=np.arange(len(line.spanning)),
        ratios=ratios[:, driven],
        torque=everywhere(lambda each: each.torque),
        torque_back=everywhere(lambda each: each.torque_back),
        torque_any=everywhere(lambda each: each.torque_any),
        speed=everywhere(lambda each: each.speed),
        speed_back=everywhere(lambda each: each.speed_back),
        inertia=inertia_along(model, q, body, rates),
        condition=condition(turns[:, _moved(turns)][..., shared])
        if np.count_nonzero(shared) > 1 else np.ones(len(q)),
        at_rest=_at_rest(model, joint.name, path, own, columns_of(model, cluster, bodies)),
        dead_points=tuple(each for each, _ in _dead_points(model, body)),
        slides=joint.type == "prismatic",
        varies=cluster.varies,
    )  # fmt: skip


def efforts_at(model: Model, bodies: Sequence[int], q: Array) -> dict[int, Array]:
    """The efforts (n,) of joints, by bodies, at q (n, nq): what motors give, or less by limits.

    That of the smaller of both ways while others get none; infinite where it is not limited, at
    dead points, of joints without a motor, and, but for its limit, where motors are too few to push
    the joint alone.
    """
    maps, result = dict[tuple[int, ...], Array](), dict[int, Array]()
    for body in bodies:
        cluster, around = model.clusters[model.nodes[body].cluster], beside(model, body)
        if not is_driven(model, body):
            result[body] = np.full(len(q), np.inf)
            continue
        if around not in maps:
            some = q if cluster.varies else q[:1]
            spanning = np.array([spanning_start(cluster, x) for x in some[:, cluster.q]])
            rates = unit_rates(model, cluster, spanning, columns_of(model, cluster, around))
            maps[around] = torque_map(model, rates, cluster)
        sides, _, passive = _torques(model, maps[around], around.index(body))
        most = np.full(len(maps[around]), np.inf) if passive else np.minimum(*sides)
        filed = file_efforts(model, body)
        efforts = [_tighter(float(x), min(filed)) for x in np.where(np.isnan(most), np.inf, most)]
        result[body] = np.broadcast_to(np.array(efforts), (len(q),)).copy()
    return result


def _rest(model: Model, cluster: Cluster, body: int, bodies: Sequence[int]) -> tuple[str, ...]:
    """Joints of these bodies but one that are at rest while its joint moves, if that matters."""
    if cluster.kind == "joint":
        return ()
    return tuple(model.joints[b].name for b in bodies if b != body)


def _moved(ratios: Array) -> Mask:
    """The motors that turn with any of the joints (n, motors, k)."""
    moved: Mask = np.any(np.abs(np.nan_to_num(ratios)) > NOTHING, axis=(0, 2))
    return moved


def _of_all(model: Model, cluster: Cluster, rates: Array) -> Array:
    """Rates (n, spanning velocities) of all joints, by those of a cluster; the others rest."""
    result = np.zeros((len(rates), model.n_joint_velocities))
    result[:, cluster.spanning_v] = rates
    return result


def _at_rest(
    model: Model, name: str, path: Path | None, column: int, columns: Sequence[int]
) -> tuple[float, float]:
    """The range of a joint on its path, while others of these columns rest."""
    if path is None:
        held = [c for c in columns if c != column]
        (reach,) = ranges_from(model, name, model.neutral()[None], held)
        return reach.lower, reach.upper
    low, high = path.range(column)
    return low.position, high.position


def _torques(
    model: Model, b: Array, place: int, passive: bool | None = None
) -> tuple[tuple[Array, Array], Array, bool]:
    """A coordinate's torques by B (n, coordinates, nu): alone, and whatever others do.

    Alone the sizes of the least and of the greatest (n,) each, whatever others do the smaller of
    the two. Also whether motors are too few for it to get torque alone, if that is not known; then
    these are that.
    """
    row = b[:, place]
    if not np.any(np.abs(np.nan_to_num(row)) > NOTHING):
        free = np.full(len(b), np.inf)
        return (free, free), free, False
    b, low, high = efforts.joined(model, b, *efforts.efforts(model))
    row = b[:, place]
    with np.errstate(all="ignore"):
        pushes = np.where(row == 0.0, 0.0, np.stack([low * row, high * row]))
    pushed = -np.sum(np.min(pushes, axis=0), axis=-1), np.sum(np.max(pushes, axis=0), axis=-1)
    most = np.minimum(*pushed)
    lost = ~np.all(np.isfinite(b), axis=(1, 2))
    safe = np.where(lost[:, None, None], 0.0, b)
    safe = np.where(np.abs(safe) > NOTHING * np.max(np.abs(safe)), safe, 0.0)
    least, greatest = actuation.limits(safe, low, high)
    alone = -least[:, place], greatest[:, place]
    if passive is None:
        passive = not np.any(np.maximum(*alone) > 0.0) and bool(np.any(np.maximum(*pushed) > 0.0))
    if np.array_equal(low, -high):  # the same but for rounding
        alone, pushed = (np.minimum(*alone),) * 2, (most,) * 2
    back, ahead = (np.where(lost, np.nan, x) for x in (pushed if passive else alone))
    return (back, ahead), most, passive


def torque_at_speeds(model: Model, joint: JointEnvelope, at: Sequence[int], speeds: Array) -> Array:
    """The greatest torque (k, n) along speeds (k, n) of a joint at some of its configurations.

    Along negative speeds it is the least. Alone, as ``torque``; or whatever the others take, where
    motors are too few for that.
    """
    body = model.joint_names.index(joint.joint)
    cluster = model.clusters[model.nodes[body].cluster]
    bodies = beside(model, body)
    place = bodies.index(body)
    spanning = np.array([spanning_start(cluster, q) for q in joint.q[at][:, cluster.q]])
    rates = unit_rates(model, cluster, spanning, columns_of(model, cluster, bodies))
    b = np.nan_to_num(torque_map(model, rates, cluster))
    own = (motor_rows(model)[:, cluster.spanning_v] @ rates)[..., place]
    lower, upper = efforts.bounds(model, speeds[..., None] * np.nan_to_num(own)[:, None])
    wide = np.broadcast_to(b[:, None], (*speeds.shape, *b.shape[1:]))
    wide, lower, upper = efforts.joined(model, wide, lower, upper)
    back = speeds < 0.0
    if not joint.passive:
        least, greatest = actuation.limits(wide, lower, upper)
        return np.asarray(np.where(back, least[..., place], greatest[..., place]))
    row = wide[..., place, :]
    with np.errstate(invalid="ignore"):
        ends = [np.where(row == 0.0, 0.0, x * row) for x in (lower, upper)]
    least, greatest = (np.sum(pick(*ends), axis=-1) for pick in (np.minimum, np.maximum))
    return np.asarray(np.where(back, least, greatest))


def _greatest_speeds(model: Model, ratios: Array) -> tuple[Array, Array]:
    """The greatest speeds backwards and ahead (n,) by the motors' ratios (n, motors)."""
    driven = _driven(ratios)
    ratios = ratios[:, driven]
    if not np.any(driven):
        return np.full(len(ratios), np.inf), np.full(len(ratios), np.inf)
    ahead, back = (
        np.array([
            x.velocity_limit if x.no_load_speed is None else min(x.velocity_limit, x.no_load_speed)
            for x in motors
        ])[driven]
        for motors in (model.actuators, [each.backwards for each in model.actuators])
    )  # fmt: skip
    turns = np.where(ratios < 0.0, back, ahead), np.where(ratios < 0.0, ahead, back)
    with np.errstate(all="ignore"):
        greatest, least = (np.min(x / np.abs(ratios), axis=-1) for x in turns)
    return np.asarray(least), np.asarray(greatest)


def inverses(matrices: Array) -> Array:
    """Inverts square matrices (..., n, n); not-a-number where these are singular."""
    with np.errstate(all="ignore"):
        singular = np.linalg.svd(np.where(np.isfinite(matrices), matrices, 0.0), compute_uv=False)
        regular: Mask = singular[..., -1] > SINGULAR * singular[..., 0]
        regular &= np.isfinite(matrices).all(axis=(-2, -1))
        safe = np.where(regular[..., None, None], matrices, np.eye(matrices.shape[-1]))
        return np.where(regular[..., None, None], np.linalg.inv(safe), np.nan)


def _least(values: Array, start: int, dead: float) -> float:
    """The least value; if some vanish, as that at a ``dead`` point may, that at the start.

    Where the start is a dead point itself, at which it vanishes or has no end, the median.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return math.inf
    usual, at_start = float(np.median(finite)), float(values[start])
    if DEAD_TORQUE * usual < at_start < usual / DEAD_TORQUE:
        usual = at_start
    least = float(np.min(finite))
    return usual if min(least, dead) <= DEAD_TORQUE * usual else least


# ---- configurations ------------------------------------------------------------------------------


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


def _refined(model: Model, body: int, path: Path) -> tuple[Array, Array, Array]:
    """Places on a path, denser where ratios bend; the points there, and rates."""
    place = beside(model, body).index(body)
    at = np.arange(len(path.q), dtype=float)
    points, rates = path.q, _rates_at(model, body, path.q)
    with np.errstate(all="ignore"):
        usual = np.nan_to_num(np.nanmedian(np.abs(rates[..., place]), axis=0))
    todo = 0.5 * (at[1:] + at[:-1])
    for _ in range(ROUNDS):
        if not 0 < len(todo) <= MOST_ADDED:
            break
        between = path.among(todo)
        rates_between = _rates_at(model, body, between)
        left = np.searchsorted(at, todo) - 1
        straight = 0.5 * (rates[left, :, place] + rates[left + 1, :, place])
        off = np.abs(rates_between[..., place] - straight)
        near = np.abs(rates_between[..., place]) < STEEPEST * usual
        bent = np.any((off > BENT_CURVE * np.maximum(usual, NOTHING)) & near, axis=1)
        gap = at[left + 1] - at[left]
        order = np.argsort(np.concatenate([at, todo]), kind="stable")
        at = np.concatenate([at, todo])[order]
        rates = np.concatenate([rates, rates_between])[order]
        points = np.concatenate([points, between])[order]
        todo = np.concatenate([todo[bent] - 0.25 * gap[bent], todo[bent] + 0.25 * gap[bent]])
        todo.sort()
    return at, points, rates


# ---- dead points ---------------------------------------------------------------------------------


@cached_on_model
def _dead_points(model: Model, body: int) -> tuple[tuple[DeadPoint, Array], ...]:
    """Dead points of a limb along the line of a joint, each with its spanning positions."""
    cluster, line = model.clusters[model.nodes[body].cluster], _on_line(model, body)
    if (path := line.path) is None:
        return ()
    (own,) = columns_of(model, cluster, [body])
    driven = _driven(line.ratios)
    on = np.flatnonzero(driven)
    constant = np.array([_one(line.ratios[:, n]) for n in on], dtype=bool)
    geared = len(on) > 0 and bool(np.all(constant))
    turning_back = [*(end.q for end in path.ends if end.kind == "dead point"), *path.turns(own)]
    found = dict[DeadPoint, Array]()
    for at, q in {_rounded(path.part.position(q, own)): q for q in turning_back}.items():
        rates = np.abs(motor_rows(model)[on][:, cluster.spanning_v] @ loose(model, body, q))
        resting = constant | (rates <= RANKLESS * np.nanmedian(np.abs(line.ratios[:, on]), axis=0))
        names = tuple(model.actuators[n].name for n in on[resting])
        torque = _resting(model, cluster, q, own, line.passive)
        both = len(on) > 0 and bool(np.all(resting))
        at_rest = DeadPoint(at, "it rests", torque=torque, resting=names)
        found[DeadPoint(at, "both rest", resting=names) if both else at_rest] = q
    moved = _moved(line.turns)
    rows = motor_rows(model)[moved][:, cluster.spanning_v]
    # joints of the limb that turn motors; others are passive
    turning = np.any(np.abs(np.nan_to_num(line.turns)) > NOTHING, axis=(0, 1))
    limb = np.eye(cluster.geometry.nv)[columns_of(model, cluster, beside(model, body))][turning]
    with np.errstate(invalid="ignore"):
        usual = float(np.nanmax(np.nanmedian(np.abs(line.turns[:, moved]), axis=0), initial=0.0))
    mine = int(np.sum(turning[: line.place]))  # its number among these
    never = not turning[line.place] or (geared and len(limb) == 1)  # its motors turn with it
    for place in () if never else singular_places(model, cluster, path, rows, limb):
        q = path.at(place)
        there = _Given.at(model, body, q[None], line.passive)
        turns = there.turns[0][np.ix_(moved, turning)]
        if not np.isfinite(turns).all():
            continue  # the limb rests, and not its motors
        if abs(np.linalg.svd(turns)[2][-1, mine]) <= RANKLESS:
            continue  # others of the limb move alone, if they are not held
        alone = bool(np.max(np.abs(turns[:, mine])) <= RANKLESS * usual)
        found[DeadPoint(_rounded(path.part.position(q, own)), "motors rest", alone)] = q
    near = [each.position for each in found]
    for q in () if line.passive else _powerless(model, body, line):
        at = _rounded(path.part.position(q, own))
        if all(abs(at - x) > RANKLESS for x in near):
            found[DeadPoint(at, "not alone")] = q
    return tuple(sorted(found.items(), key=lambda each: each[0]))


def _resting(
    model: Model, cluster: Cluster, q: Array, column: int, passive: bool
) -> tuple[float, float]:
    """The sizes of the least and the greatest torque that motors give a joint where it turns back.

    With it turn, by all motions of its cluster, joints whose torques are zero: coordinates are a
    motion in line with its rates, and those at right angles to it, in which it rests.
    """
    basis = motions(model, cluster, q[None])[0]
    rate = float(np.linalg.norm(basis[column]))
    unit = float(ClusterMotion.of(model, cluster).unit[column])
    if passive or not rate > RANKLESS * unit:
        return math.inf, math.inf
    along = np.linalg.qr(basis[column][:, None], mode="complete")[0]
    along[:, 0] /= basis[column] @ along[:, 0]
    (back, ahead), _, _ = _torques(model, torque_map(model, (basis @ along)[None], cluster), 0)
    return float(back[0]), float(ahead[0])


def _powerless(model: Model, body: int, line: _Given) -> Iterator[Array]:
    """Spanning positions of a line at which the torque of a joint alone passes zero.

    One combination of motors' forces alone then leaves the other joints without torque.
    """
    place, cluster = line.place, model.clusters[model.nodes[body].cluster]
    path, along = line.path, line.along
    if path is None or along is None:
        return

    def pushed(b: Array, like: Array | None) -> tuple[Array, float] | None:
        """The combination, and the joint's torque by it, of the greatest torque for unit forces."""
        size = np.max(np.abs(b), initial=0.0)
        if not 0.0 < size < math.inf:
            return None
        used = np.max(np.abs(b), axis=0) > NOTHING * size
        singular, ways = np.linalg.svd(np.delete(b[:, used], place, axis=0))[1:]
        if len(ways) - np.sum(singular > RANKLESS * size) != 1:
            return None
        force = np.zeros(b.shape[1])
        force[used] = ways[-1]
        force *= -1.0 if like is not None and force @ like < 0.0 else 1.0
        return force, float(b[place] @ force) / float(size)

    before: tuple[Array, float] | None = None
    of_path = line.rates[along == np.round(along)]
    for n, b in enumerate(torque_map(model, of_path, cluster)):
        here = pushed(b, before[0] if before else None)
        if before and here and before[1] * here[1] < 0.0:

            def torque(at: float, last: tuple[Array, float] = before) -> float:
                rates = _rates_at(model, body, path.at(at)[None])
                return (pushed(torque_map(model, rates, cluster)[0], last[0]) or last)[1]

            at = last_before(torque, (n - 1.0, n), (before[1], here[1]), NOTHING)
            if abs(torque(at)) <= RANKLESS:  # else it jumps, where the joint turns back
                yield path.at(at)
        before = here


def _one(values: Array) -> bool:
    """True if values (n,) along a line are one number, as ratios of a gear between both are."""
    some = values[np.isfinite(values)]
    return bool(len(some)) and bool(np.ptp(some) <= SAME * np.max(np.abs(some)))


def _rounded(x: float) -> float:
    return round(x, 9) + 0.0
