"""How far a joint goes within all limits and as loops and couplings let it: :func:`joint_range`.

All that the robot reaches counts, or, for open trees and rows of reports, its part up to dead
points of limbs' joints (:func:`limb_ranges`). Neither depends on which joints are independent.
Joints without limits that one coupling alone ties to a cluster, as most rotors are, hinder nothing,
and are left out; what conditions relate then is looked at part by part. Couplings alone are a
linear program. A part of one freedom is a path (:mod:`robomodel.reach.paths`); of
one with several the ends are where no way leads up (:mod:`robomodel.reach.uphill`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.errors import UnknownNameError, check_names
from robomodel.mechanism.closure import Geometry, LinearCoupling
from robomodel.mechanism.constraints import LoopCondition
from robomodel.mobility import column_limits
from robomodel.model.arguments import as_array, check_one_configuration
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import (
    Cluster,
    Joint,
    columns_of,
    spanning_start,
    units_of,
)
from robomodel.model.model import Model
from robomodel.model.spins import find_spins
from robomodel.reach.groups import (
    compiled_geometry,
    crossing,
    hold_everywhere,
    kept_rows,
    merged,
)
from robomodel.reach.limb import limb_bodies
from robomodel.reach.limb import without_spins as spins_locked
from robomodel.reach.motions import ClusterMotion
from robomodel.reach.parts import Part
from robomodel.reach.paths import Half, Path, RangeEnd, halves_from, joined, walk
from robomodel.reach.reachable import Reachable, reachable
from robomodel.reach.uphill import extremes
from robomodel.tolerances import HUGE, NOTHING, RANK, SINGULAR, WITHIN

FURTHER = 2000  # configurations from which a climb may begin again


@dataclass(frozen=True, slots=True)
class JointRange:
    """How far a joint goes; ``str()`` says it in words.

    Attributes:
        joint: Its name.
        lower_end: What ends it below.
        upper_end: What ends it above.
        held: Other joints' positions, where these are held [rad, m].
        slides: Whether its position is in metres.
    """

    joint: str
    lower_end: RangeEnd
    upper_end: RangeEnd
    held: tuple[tuple[str, float], ...] = ()
    slides: bool = False

    @property
    def lower(self) -> float:
        """The least position [rad, m]; -inf where nothing ends it."""
        return self.lower_end.position

    @property
    def upper(self) -> float:
        """The greatest position [rad, m]; inf where nothing ends it."""
        return self.upper_end.position

    @property
    def lower_by(self) -> str:
        """The joint whose limit, or the loop whose dead point, ends it below; empty: none."""
        return self.lower_end.by

    @property
    def upper_by(self) -> str:
        """The joint whose limit, or the loop whose dead point, ends it above; empty: none."""
        return self.upper_end.by

    @property
    def turns_fully(self) -> bool:
        """True if the joint turns round without end."""
        return not self.slides and math.isinf(self.lower) and math.isinf(self.upper)

    @property
    def words(self) -> str:
        """How far it goes and what ends it, as one would say it."""
        if self.turns_fully:
            return f"{self.joint} turns fully"
        unit = units_of(self.slides).position
        ends = (self.lower_end, self.upper_end)
        low, high = (f"{x.position:.4g}" for x in ends)
        if math.isinf(self.lower) or math.isinf(self.upper):
            known = [f"{way} to {end.position:.4g} {unit}" for way, end in
                     zip(("down", "up"), ends, strict=True)
                     if math.isfinite(end.position)]  # fmt: skip
            text = f"{self.joint} reaches {known[0] if known else 'any position'}"
        else:
            text = f"{self.joint} reaches {low} to {high} {unit}"
        causes = [self._cause(end) for end in ends]
        if causes[0] == causes[1]:
            return f"{text}; {causes[0]} ends it on both sides" if causes[0] else text
        told = [f"{cause} ends it {side}" for cause, side in
                zip(causes, ("below", "above"), strict=True) if cause]  # fmt: skip
        return "; ".join([text, ", ".join(told)]) if told else text

    def _cause(self, end: RangeEnd) -> str:
        """The cause that ends it there, in words."""
        if end.kind == "dead point":
            return f"a dead point of '{end.by}'"
        if end.kind == "limit":
            return "its own limit" if end.by == self.joint else f"the limit of '{end.by}'"
        return ""

    def __str__(self) -> str:
        held = ", ".join(f"'{name}' = {value:.4g}" for name, value in self.held)
        held = f", with {held}" if held else ""
        if self.turns_fully:
            return f"'{self.joint}' turns fully{held}"
        unit = units_of(self.slides).position
        ends = [
            f"{end.position:.4g} {unit}{beyond if end.searched else ''} ({end})"
            if math.isfinite(end.position) else "no end"
            for end, beyond in ((self.lower_end, " or less"), (self.upper_end, " or more"))
        ]  # fmt: skip
        return f"'{self.joint}' goes from {ends[0]} to {ends[1]}{held}"


def joint_range(model: Model, joint: str, q: ArrayLike | None = None) -> JointRange:
    """How far a joint goes within the limits of all joints, loops closed, and what ends it.

    A limit ends it, or a dead point at which the joint turns back. Dead points of other joints do
    not, whichever joints are independent: with the others free, all counts that closed paths within
    limits get to from :meth:`Model.neutral <robomodel.Model.neutral>`.
    Joints, dependent and rotor joints too, are looked at with the limits of their cluster, from
    where a limit is exceeded already no further. With several freedoms, the ends are the farthest
    tops of climbs from neutral and from where random walks lead; they are exact as such, but other
    ways may lead farther: ``str()`` says "or more" (``searched`` of an end).

    Args:
        model: The robot.
        joint: The joint's name; it has one freedom.
        q: A closed configuration (nq,) at which the other independent joints of its cluster are
            held, and from which the joint goes to where it first turns back; without it they may
            move. A dependent joint takes the place of the independent one that moves it most.

    Returns:
        range: Its ends ``lower`` and ``upper`` [rad, m], infinite where nothing ends it
            (``turns_fully``), and which joint's limit or which loop's dead point they are
            (``lower_by``, ``upper_by``, and ``kind`` and ``by`` of ``lower_end`` and
            ``upper_end``).

    Raises:
        UnknownNameError: No joint has this name.
        ValueError: The joint has several freedoms, or none, or q is not one configuration.

    Examples:
        >>> model = rm.robots.load("crank_rocker")
        >>> rm.joint_range(model, "crank_joint").turns_fully
        True
    """
    joints = {each.name: each for each in model.joints}
    check_names([joint], joints, "no joint ", f" in '{model.name}'", error=UnknownNameError)
    if joints[joint].nv != 1:
        raise ValueError(
            f"joint '{joint}' has {joints[joint].nv} freedoms and no range: ask for joints of one"
        )
    if q is None:
        return _free(model, [joint], sheet=False)[0]
    at = as_array(q, model.nq, "q", "nq")
    check_one_configuration(at, "q")
    return ranges_from(model, joint, at[None])[0]


def limb_ranges(model: Model, joints: Sequence[str]) -> list[JointRange]:
    """:func:`joint_range` up to dead points of the joints of limbs, which tell where the robot is.

    On this sheet of what it reaches the others are functions of them, as in an open tree. Ranges of
    several are sought side by side.
    """
    return _free(model, joints, sheet=True)


def _free(model: Model, names: Sequence[str], *, sheet: bool) -> list[JointRange]:
    """From the neutral configuration, with the others free."""
    ranges = FreeRanges(model, names, sheet=sheet)
    walk(ranges.halves)
    return ranges.found()


@cached_on_model
def _known(model: Model, sheet: bool) -> dict[str, JointRange]:
    """Ranges that are known, by joints."""
    return {}


class FreeRanges:
    """Ranges from neutral, others free, with the halves of paths that are to be followed.

    ``sheet``: up to dead points of limbs' joints (:func:`limb_ranges`). ``also``: joints that count
    where their range follows from couplings or from one path, which joints share.
    """

    def __init__(
        self, model: Model, names: Sequence[str], *, sheet: bool = False, also: Sequence[str] = ()
    ) -> None:
        self.model, self.sheet = model, sheet
        self.known = _known(model, sheet)
        self.pairs: dict[str, tuple[Half, Half]] = {}
        self.climbing: dict[Part, list[str]] = {}
        for name in names:
            if name not in self.known:
                self._prepare(name)
        paths = {pair[0].part: pair for pair in self.pairs.values()}
        more = [name for name in also if name not in names and self._follows(name, paths)]
        self.names = [*names, *more]

    @property
    def halves(self) -> list[Half]:
        """All of their halves."""
        return list({id(half): half for pair in self.pairs.values() for half in pair}.values())

    def found(self) -> list[JointRange]:
        """Once these are followed: the ranges."""
        for name, pair in self.pairs.items():
            self._note(name, joined(*pair).range(column_of(self._cluster(name), name)))
        for part, names in self.climbing.items():
            cluster = self._cluster(names[0])
            start = spanning_start(cluster, np.array(cluster.start))
            columns = [column_of(cluster, name) for name in names]
            further = partial(_reached, self.model, cluster.index, self.sheet)
            ends = extremes(part, columns, start, self._telling(cluster), further)
            for name, each in zip(names, ends, strict=True):
                self._note(name, each)
        return [self.known[name] for name in self.names]

    def _prepare(self, name: str) -> None:
        model, cluster = self.model, self._cluster(name)
        joint = next(each for each in model.joints if each.name == name)
        column = column_of(cluster, name)
        part = part_of(model, cluster, column)
        start = spanning_start(cluster, np.array(cluster.start))
        if (sums := _driven(model, cluster, joint, part, sheet=self.sheet)) is not None:
            self._note(name, sums)
        elif not part.rows:
            self._note(name, _own_limits(part, column))
        elif len(part.linear) == len(part.conditions):
            self._note(name, _linear(part, column, start))
        else:
            pair = halves_from(part, start, (), column, self._telling(cluster))
            if pair:
                self.pairs[name] = pair
            else:
                self.climbing.setdefault(part, []).append(name)

    def _follows(self, name: str, paths: dict[Part, tuple[Half, Half]]) -> bool:
        """True if no climb is needed for a joint's range; ``paths`` are shared by joints."""
        if name in self.known:
            reach = self.known[name]
            return not (reach.lower_end.searched or reach.upper_end.searched)
        cluster = self._cluster(name)
        column = column_of(cluster, name)
        part = part_of(self.model, cluster, column)
        if len(part.linear) == len(part.conditions):
            self._prepare(name)
            return True
        start = spanning_start(cluster, np.array(cluster.start))
        pair = paths.get(part) or halves_from(part, start, (), column, self._telling(cluster))
        if pair:
            self.pairs[name] = paths[part] = pair
        return bool(pair)

    def _telling(self, cluster: Cluster) -> list[int]:
        """The columns at whose dead points ranges end."""
        bodies = limb_bodies(self.model)[cluster.index] if self.sheet else ()
        links = (cluster.geometry.links[cluster.bodies.index(body)] for body in bodies)
        return [c for link in links for c in link.freedoms]

    def _cluster(self, name: str) -> Cluster:
        return next(c for c in self.model.clusters if name in c.joints)

    def _note(self, name: str, ends: tuple[RangeEnd, RangeEnd]) -> None:
        """The range with these ends."""
        joint, cluster = next(x for x in self.model.joints if x.name == name), self._cluster(name)
        place = _places(cluster)[column_of(cluster, name)]
        start = float(spanning_start(cluster, np.array(cluster.start))[place])
        self.known[name] = _named(joint, start, ends)


def ranges_from(
    model: Model, name: str, q: Array, held: Sequence[int] | None = None
) -> list[JointRange]:
    """:func:`joint_range` from closed configurations (n, nq), followed side by side.

    ``held``: columns of the cluster that are; by default those of independent joints, as the first
    configuration tells.
    """
    ranges = RangesFrom(model, name, q, held)
    walk(ranges.halves)
    return ranges.found()


class RangesFrom:
    """:func:`ranges_from`, with the halves of paths that are to be followed."""

    def __init__(
        self, model: Model, name: str, q: Array, held: Sequence[int] | None = None
    ) -> None:
        self.joint = next(each for each in model.joints if each.name == name)
        cluster = self.cluster = next(c for c in model.clusters if name in c.joints)
        column = column_of(cluster, name)
        held = held_columns(model, cluster, column, q[0]) if held is None else tuple(held)
        self.labels = [column.label for column in columns_of(model, cluster)]
        held = without_spins(model, cluster, column, held)
        part = part_of(model, cluster, column, held)
        resting = [c for c in held if c in part.columns]
        self.spanning = [spanning_start(cluster, x[cluster.q]) for x in q]
        looped = self.looped = part.rows and len(part.linear) < len(part.conditions)
        self.pairs = [halves_from(part, x, resting, column, [column, *held]) if looped else ()
                      for x in self.spanning]  # fmt: skip
        self.column, self.held, self.part = column, held, part

    @property
    def halves(self) -> list[Half]:
        """All of their halves."""
        return [half for pair in self.pairs for half in pair]

    def found(self) -> list[JointRange]:
        """Once these are followed: the ranges."""
        part, column, held, place = self.part, self.column, self.held, _places(self.cluster)
        ranges = []
        for x, pair in zip(self.spanning, self.pairs, strict=True):
            start = float(x[place[column]])
            if not part.rows:
                ends = _own_limits(part, column)
            elif not self.looped:
                ends = _linear(part, column, x, held)
            elif pair:
                ends = joined(*pair).range(column)
            else:
                ends = RangeEnd(start, "", ""), RangeEnd(start, "", "")
            at = tuple((self.labels[c], float(x[place[c]])) for c in held if c in place)
            ranges.append(_named(self.joint, start, ends, at))
        return ranges


def _named(
    joint: Joint,
    start: float,
    ends: tuple[RangeEnd, RangeEnd],
    held: tuple[tuple[str, float], ...] = (),
) -> JointRange:
    low, high = ends
    own = (joint.lower, joint.upper) if joint.type != "continuous" else (-math.inf, math.inf)
    if low.position < own[0]:  # it began beyond its limit
        low = RangeEnd(own[0], "limit", joint.name)
    if high.position > own[1]:
        high = RangeEnd(own[1], "limit", joint.name)
    if low.position > high.position:  # others' limits keep it beyond its own
        low, high = (replace(end, position=start) for end in (low, high))
    return JointRange(joint.name, low, high, held, joint.type == "prismatic")


# ---- paths ---------------------------------------------------------------------------------------


def held_columns(model: Model, cluster: Cluster, column: int, q: Array) -> tuple[int, ...]:
    """The independent columns of a cluster to hold while the joint of one moves."""
    if column in cluster.columns:
        return tuple(c for c in cluster.columns if c != column)
    g = ClusterMotion.of(model, cluster).rates(spanning_start(cluster, q[cluster.q]))[column]
    units = cluster.geometry.unit[list(cluster.columns)]
    instead = cluster.columns[int(np.argmax(np.abs(np.nan_to_num(g, posinf=HUGE) * units)))]
    return tuple(c for c in cluster.columns if c != instead)


def path_along(
    model: Model,
    cluster: Cluster,
    column: int,
    held: Sequence[int],
    spanning: Array,
) -> Path | None:
    """The path of a cluster from there on which a joint moves while ``held`` columns rest.

    It ends where the joint turns back. None where nothing moves with it, or more than one freedom
    is left.
    """
    halves = halves_along(model, cluster, column, held, spanning)
    walk(halves)
    return joined(*halves) if halves else None


def halves_along(
    model: Model,
    cluster: Cluster,
    column: int,
    held: Sequence[int],
    spanning: Array,
) -> tuple[Half, Half] | tuple[()]:
    """The halves of :func:`path_along`, to be followed; none where it gives None."""
    part = part_of(model, cluster, column, held)
    resting = [c for c in without_spins(model, cluster, column, held) if c in part.columns]
    return halves_from(part, spanning, resting, column, [column, *held]) if part.rows else ()


def without_spins(
    model: Model, cluster: Cluster, column: int, held: Sequence[int]
) -> tuple[int, ...]:
    """Columns to hold while a joint moves, less hinges of balls that only turn rods.

    Held, such a hinge makes its ball a universal joint, with dead points that the rod has not.
    """
    joint_of = _joints_by_column(cluster)
    names = [joint_of[c] for c in held]
    free = {spin.coordinate(names) for spin in find_spins(model)
            if joint_of[column] not in spin.joints}  # fmt: skip
    return tuple(c for c in held if joint_of[c] not in free)


def column_of(cluster: Cluster, joint: str) -> int:
    """Where in a cluster's spanning velocities a joint's first one is."""
    return cluster.geometry.links[cluster.joints.index(joint)].v


def _joints_by_column(cluster: Cluster) -> dict[int, str]:
    """The joint of each of a cluster's spanning velocities."""
    pairs = zip(cluster.joints, cluster.geometry.links, strict=True)
    return {c: name for name, link in pairs for c in link.freedoms}


def _places(cluster: Cluster) -> dict[int, int]:
    """Where in the spanning positions joints of one freedom are, by their columns."""
    return {link.v: link.q for link in cluster.geometry.links if link.joint.nv == 1}


# ---- parts of clusters ---------------------------------------------------------------------------


class _Condition(NamedTuple):
    """A loop or coupling, the links that it relates, and its rows among the cluster's."""

    what: LoopCondition | LinearCoupling
    links: frozenset[int]
    rows: range


def _conditions(geometry: Geometry) -> Iterator[_Condition]:
    first = 0
    for loop in geometry.loops:
        links = frozenset(body for branch in loop.branches for body in branch)
        yield _Condition(loop, links, range(first, first + len(loop.rows)))
        first += len(loop.rows)
    for n, coupling in enumerate(geometry.linear, first):
        yield _Condition(coupling, frozenset(body for body, _ in coupling.terms), range(n, n + 1))


def part_of(model: Model, cluster: Cluster, column: int, kept: Sequence[int] = ()) -> Part:
    """The joints to which conditions relate a joint, without joints that hinder nothing.

    These are joints without limits that one coupling alone relates to others, but not ``kept``.
    """
    links = cluster.geometry.links
    wanted = frozenset(i for i, link in enumerate(links) if {column, *kept} & {*link.freedoms})
    reduced = _reduced(model, cluster.index, frozenset())
    if reduced.left_out & wanted:
        reduced = _reduced(model, cluster.index, wanted)
    at = next(i for i, link in enumerate(links) if column in link.freedoms)
    group = next((group for group in reduced.groups if at in group), frozenset({at}))
    return _part(model, cluster.index, reduced, group, _spinning(model, cluster, column))


def _spinning(model: Model, cluster: Cluster, column: int) -> frozenset[int]:
    """Columns that spins of rods turn, but for spins that the joint of one column turns with."""
    joint_of = _joints_by_column(cluster)
    turning = {name for spin in find_spins(model) for name in spin.joints
               if joint_of[column] not in spin.joints}  # fmt: skip
    return frozenset(c for c, name in joint_of.items() if name in turning)


def whole_part(model: Model, cluster: Cluster, column: int) -> Part:
    """A cluster as one part, with all of its joints and conditions; spins are free beside one."""
    links = frozenset(range(len(cluster.bodies)))
    reduced = _reduced(model, cluster.index, frozenset())
    reduced = _reduced(model, cluster.index, links) if reduced.left_out else reduced
    return _part(model, cluster.index, reduced, links, _spinning(model, cluster, column))


@dataclass(frozen=True, eq=False)
class _Reduced:
    """A cluster's conditions and the groups of links that they relate, without ``left_out`` links.

    ``velocities`` and ``followers`` as of :class:`Part`.
    """

    conditions: tuple[_Condition, ...]
    groups: tuple[frozenset[int], ...]
    left_out: frozenset[int]
    velocities: Array
    followers: tuple[tuple[int, tuple[tuple[int, float], ...], float], ...]


@cached_on_model
def _reduced(model: Model, index: int, wanted: frozenset[int]) -> _Reduced:
    """A cluster without links that hinder nothing and are not wanted."""
    cluster = model.clusters[index]
    geometry, columns = cluster.geometry, columns_of(model, cluster)
    low, high = column_limits(columns)
    velocities = np.eye(len(columns))
    conditions = list(_conditions(geometry))
    bounded = np.isfinite(low) | np.isfinite(high)
    needed = wanted | {
        i for i, link in enumerate(geometry.links) if np.any(bounded[list(link.freedoms)])
    }
    followers: list[tuple[int, tuple[tuple[int, float], ...], float]] = []
    left_out: set[int] = set()
    while leaf := next(_leaves(conditions, needed), None):
        body, condition = leaf
        conditions.remove(condition)
        left_out.add(body)
        c, ratios = geometry.links[body].v, _ratios(body, condition)
        terms = tuple((geometry.links[other].q, ratio) for other, ratio in ratios.items())
        followers.insert(0, (geometry.links[body].q, terms, _offset(body, condition)))
        for other, ratio in ratios.items():  # it stands for what moves it
            velocities[:, geometry.links[other].v] += ratio * velocities[:, c]
        velocities[:, c] = 0.0
    groups = tuple(frozenset(group) for group in _groups(conditions))
    return _Reduced(tuple(conditions), groups, frozenset(left_out), velocities, tuple(followers))


@cached_on_model
def _part(
    model: Model,
    index: int,
    reduced: _Reduced,
    group: frozenset[int],
    spinning: frozenset[int] = frozenset(),
) -> Part:
    """The part of a cluster that is a group of links; ``spinning`` as of :class:`Part`."""
    cluster = model.clusters[index]
    geometry, columns = cluster.geometry, columns_of(model, cluster)
    low, high = column_limits(columns)
    mine = [each for each in reduced.conditions if each.links & group]
    rank = _rank(cluster, reduced, mine)
    part_columns = tuple(c for i in sorted(group) for c in geometry.links[i].freedoms)
    return Part(
        compiled_geometry(model, cluster.index),
        _closing(cluster, mine, rank),
        tuple((each.what.name, each.rows) for each in mine),
        tuple(each.what for each in mine if isinstance(each.what, LinearCoupling)),
        part_columns,
        rank,
        tuple(each.joint for each in columns),
        cluster.geometry.unit * _gearing(model, cluster) * ClusterMotion.of(model, cluster).winding,
        low,
        high,
        reduced.velocities,
        tuple(each.length for each in columns),
        _places(cluster),
        reduced.followers,
        spinning,
        crossing(cluster),
    )


def _closing(cluster: Cluster, mine: Sequence[_Condition], rank: int) -> tuple[int, ...]:
    """The rows of conditions that close a part; without those that hold everywhere, if that can be.

    So do those out of the plane of a planar linkage.
    """
    geometry = cluster.geometry
    closing = set(cluster.closing_rows) if cluster.implicit else set(range(geometry.rows))
    rows = tuple(row for each in mine for row in each.rows if row in closing)
    needed = {*kept_rows(cluster), *range(geometry.rows - len(geometry.linear), geometry.rows)}
    told, others = tuple(r for r in rows if r in needed), [r for r in rows if r not in needed]
    if not others or len(told) != rank:
        return rows
    start = spanning_start(cluster, np.array(cluster.start))
    unit = cluster.geometry.unit
    return told if hold_everywhere(geometry, start, unit, others) else rows


def _gearing(model: Model, cluster: Cluster) -> Array:
    """How far couplings turn joints that are in no loop (rotors) for unit motion of those that are.

    Not less than 1; in these units they do not shorten a path's steps.
    """
    geometry = cluster.geometry
    looped = sorted(c for body in geometry.looped_bodies for c in geometry.links[body].freedoms)
    factors = np.ones(geometry.nv)
    others = [c for c in range(geometry.nv) if c not in looped]
    if looped and others:
        g = ClusterMotion.of(model, cluster).rates(spanning_start(cluster, np.array(cluster.start)))
        shares = g[others] @ np.linalg.pinv(np.nan_to_num(g[looped]), rcond=SINGULAR)
        factors[others] = np.maximum(1.0, np.linalg.norm(np.nan_to_num(shares), axis=1))
    return factors


def _leaves(
    conditions: Sequence[_Condition], needed: frozenset[int]
) -> Iterator[tuple[int, _Condition]]:
    """Links, but for the needed, that one condition alone relates to others; it is a coupling."""
    counts = Counter(body for each in conditions for body in each.links)
    for each in conditions:
        if isinstance(each.what, LinearCoupling) and len(each.links) > 1:
            for body in sorted(each.links - needed, reverse=True):
                if counts[body] == 1:
                    yield body, each


def _ratios(body: int, condition: _Condition) -> dict[int, float]:
    """How far a coupling turns one of its links by each other."""
    assert isinstance(condition.what, LinearCoupling)
    terms = dict(condition.what.terms)
    own = terms.pop(body)
    return {other: -x / own for other, x in terms.items()}


def _offset(body: int, condition: _Condition) -> float:
    """Where a coupling puts one of its links with the others at zero."""
    assert isinstance(condition.what, LinearCoupling)
    return condition.what.offset / dict(condition.what.terms)[body]


def _groups(conditions: Sequence[_Condition]) -> list[set[int]]:
    """Links that conditions relate, directly or not."""
    return merged(set(each.links) for each in conditions)


def _rank(cluster: Cluster, reduced: _Reduced, mine: Sequence[_Condition]) -> int:
    """The number of independent conditions of a part.

    Those of all parts together are the cluster's: the greatest singular values count.
    """
    total = cluster.geometry.nv - cluster.nv - len(reduced.left_out)
    spanning = spanning_start(cluster, np.array(cluster.start))
    geometry = cluster.geometry
    jacobian = geometry.evaluate(spanning)[1] * geometry.row_unit[:, None] * geometry.unit
    closing = set(cluster.closing_rows) if cluster.implicit else set(range(len(jacobian)))
    values: list[tuple[float, bool]] = []
    for group in reduced.groups:
        rows = [row for each in reduced.conditions if each.links & group for row in each.rows]
        rows = [row for row in rows if row in closing]
        own = any(each.links & group for each in mine)
        values += [(float(x), own) for x in np.linalg.svd(jacobian[rows], compute_uv=False)]
    values.sort(reverse=True)
    return sum(own for _, own in values[:total])


# ---- ends ----------------------------------------------------------------------------------------


@cached_on_model
def _up_to_dead_points(model: Model, index: int | None) -> Reachable | None:
    """The part of the range up to dead points of joints of limbs, of one cluster or of all.

    None where these do not tell where it is. Of all at once, copies have what was found of the
    first.
    """
    limbs = limb_bodies(model)
    bodies = [body for limb in limbs for body in limb] if index is None else limbs[index]
    names = [model.joints[body].name for body in bodies]
    with suppress(ValueError):
        return reachable(model).on_sheet([name for name in names if name != model.floating_base])
    return None


@cached_on_model
def _reached(model: Model, index: int, sheet: bool) -> Array:
    """Configurations of a cluster to which paths lead from neutral.

    ``sheet``: up to dead points of limbs' joints, if these tell where it is. Spins of rods are
    locked, where the cluster stays one: in fewer freedoms walks lead the other joints farther.
    """
    cluster, still = model.clusters[index], spins_locked(model)
    same = [each for each in still.clusters if each.joints == cluster.joints]
    if still is not model and same:
        return _reached(still, same[0].index, sheet)
    reach = reachable(model)
    if sheet:
        reach = _up_to_dead_points(model, None) or _up_to_dead_points(model, index) or reach
    linkage = next(each for each in reach.linkages if each.cluster is cluster)
    q = np.tile(spanning_start(cluster, np.array(cluster.start)), (FURTHER, 1))
    for group in linkage.groups:
        pool = group.pool.q
        chosen = np.linspace(0, len(pool) - 1, FURTHER).astype(int)
        q[:, group.places] = pool[np.ix_(chosen, group.places)]
    return linkage.split.followers.completed(q)


def _driven(
    model: Model, cluster: Cluster, joint: Joint, part: Part, *, sheet: bool
) -> tuple[RangeEnd, RangeEnd] | None:
    """The ends of a joint that one coupling alone relates to others: sums of the others' ends."""
    if math.isfinite(joint.lower) or math.isfinite(joint.upper):
        return None  # its limits would be the others', too
    names = {rows for _, rows in part.conditions}
    conditions = [each for each in _conditions(part.geometry) if each.rows in names]
    body = cluster.joints.index(joint.name)
    mine = [each for each in conditions if body in each.links]
    if len(mine) != 1 or not isinstance(mine[0].what, LinearCoupling):
        return None
    conditions.remove(mine[0])
    ratios = _ratios(body, mine[0])
    groups = _groups(conditions)
    if any(len(group & ratios.keys()) > 1 for group in groups):
        return None
    ends = []
    for sides in ((0, 1), (1, 0)):
        parts = []
        for other, ratio in ratios.items():
            (reach,) = _free(model, [cluster.joints[other]], sheet=sheet)
            end = (reach.lower_end, reach.upper_end)[sides[ratio < 0.0]]
            parts.append((abs(ratio), ratio * end.position, end))
        total = _offset(body, mine[0]) + sum(x for _, x, _ in parts)
        largest = max(parts, key=lambda each: (math.isinf(each[1]), each[0]))[2]
        searched = any(end.searched for _, _, end in parts)
        ends.append(RangeEnd(total, largest.kind, largest.by, searched))
    return ends[0], ends[1]


def _own_limits(part: Part, column: int) -> tuple[RangeEnd, RangeEnd]:
    """The limits of a joint that nothing is related to."""
    low, high = (
        RangeEnd(limit, "limit" if math.isfinite(limit) else "",
                 part.names[column] if math.isfinite(limit) else "")
        for limit in (float(part.low[column]), float(part.high[column]))
    )  # fmt: skip
    return low, high


def _linear(
    part: Part, column: int, start: Array, held: Sequence[int] = ()
) -> tuple[RangeEnd, RangeEnd]:
    """Where couplings alone relate joints, in steps from the start.

    Along the one motion that they leave, or else a linear program.
    """
    columns = list(part.columns)
    at = start[[part.place[c] for c in columns]]
    low, high = np.minimum(part.low[columns] - at, 0.0), np.maximum(part.high[columns] - at, 0.0)
    rest = [n for n, c in enumerate(columns) if c in held]
    low[rest] = high[rest] = 0.0
    matrix = part.geometry.evaluate(start)[1][list(part.rows)][:, columns]
    matrix /= np.max(np.abs(matrix), axis=1, keepdims=True)
    mine = columns.index(column)
    way = _only_motion(matrix, [n for n, _ in enumerate(columns) if n not in rest], mine)
    ends = []
    for sign in (-1.0, 1.0):
        found = (
            _programmed(matrix, low, high, mine, sign)
            if way is None
            else _followed(sign * way, low, high)
        )
        if found is None:  # unbounded
            ends.append(RangeEnd(sign * math.inf, "", ""))
            continue
        x, force = found
        met = (np.abs(x - low) <= WITHIN) | (np.abs(x - high) <= WITHIN)
        met[mine] = abs(x[mine] - (low if sign < 0.0 else high)[mine]) <= WITHIN
        met[rest] = False
        position = float(at[mine] + x[mine])
        if not np.any(met):  # nothing moves it
            ends.append(RangeEnd(position, "", ""))
            continue
        worst = mine if met[mine] else int(np.argmax(np.where(met, force, -1.0)))
        if worst == mine:
            position = float((part.low if sign < 0.0 else part.high)[column])
        ends.append(RangeEnd(position, "limit", part.names[columns[worst]]))
    return ends[0], ends[1]


def _only_motion(matrix: Array, free: Sequence[int], mine: int) -> Array | None:
    """Velocities (n,) with ``matrix`` @ v = 0 and none but free ones, at 1 of ``mine``.

    None if there are several such motions, or it rests in the one.
    """
    _, sizes, right = np.linalg.svd(matrix[:, free])
    if len(free) - int(np.sum(sizes > RANK * np.max(sizes, initial=0.0))) != 1:
        return None
    way = np.zeros(matrix.shape[1])
    way[free] = np.where(np.abs(right[-1]) > NOTHING, right[-1], 0.0)
    return way / way[mine] if way[mine] else None


def _followed(way: Array, low: Array, high: Array) -> tuple[Array, Array] | None:
    """How far steps (n,) along a way get between limits, and which limits stop them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(way == 0.0, np.inf, np.where(way > 0.0, high, low) / way)
    most = float(np.min(reach))
    return None if math.isinf(most) else (most * way, (reach == most).astype(float))


def _programmed(
    matrix: Array, low: Array, high: Array, mine: int, sign: float
) -> tuple[Array, Array] | None:
    """The steps (n,) with ``matrix`` @ x = 0 between limits in which one goes furthest.

    With the forces by which limits stop it.
    """
    from scipy.optimize import linprog  # importing it takes 0.4 s

    cost = np.zeros(len(low))
    cost[mine] = -sign
    bounds = np.stack([low, high], axis=1)
    found = linprog(cost, A_eq=matrix, b_eq=np.zeros(len(matrix)), bounds=bounds)
    if found.x is None:
        return None
    return found.x, np.abs(found.lower.marginals) + np.abs(found.upper.marginals)
