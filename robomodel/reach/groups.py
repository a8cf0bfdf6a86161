"""The reachable set of joints that conditions relate: a path of one freedom, or points of several.

A cluster's conditions relate its joints in groups, each a mechanism of its own (:func:`split`), so
that what a cluster reaches is a product. Joints that only couplings move, and that no limit stops,
as most rotors are, are in no group: they follow (:class:`Followers`). From a start, closed paths
within limits reach a group's set. With one freedom it is followed once, both ways; with several,
random geodesics spread points over it (:mod:`robomodel.mechanism.walks`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from robomodel.arrays import Array, Indices, Mask, median
from robomodel.mechanism.closure import Geometry, extreme_singular
from robomodel.mechanism.compiled import CompiledGeometry, compiled
from robomodel.mechanism.constraints import (
    LinearConstraint,
    LoopConstraint,
)
from robomodel.mechanism.continuation import (
    CROSSING,
    FINE,
    Continuation,
    Limits,
    Points,
    joined,
)
from robomodel.mechanism.copies import Image, as_written, images
from robomodel.mechanism.joints import Revolute
from robomodel.mechanism.strides import TURNED, Chart
from robomodel.mechanism.walks import (
    LONGEST_LEAD,
    WALK_ALONG,
    WALK_STRIDE,
    Path,
    Positions,
    Turning,
    lead,
    path,
    wander,
)
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster, columns_of, spanning_start
from robomodel.model.model import Model
from robomodel.model.spins import find_spins
from robomodel.reach.barriers import Barriers
from robomodel.reach.targets import Box, Explored
from robomodel.reach.windings import undone, windings
from robomodel.tolerances import CLOSED, MOVES, NOTHING, RANK, TINY, WITHIN

if TYPE_CHECKING:
    from numpy.random import Generator

WALKERS, BEGIN, ROUNDS, STRIDES = 96, 60, 8, 10  # walks that spread points; strides before, between
MANY_DRAWS = 32  # draws at once, which show how many points these are, and may walk on from them
FEW_STRIDES, MANY_STRIDES = 4, 24  # from such a point to a configuration that is drawn
# nearest points to which straight ways are looked for, and more where none led there; strides
TRIED, MANY_TRIED = 12, (48, 100)
# walks from a configuration, nearest points to which ways lead from their ends, strides of these
WALKED, BY_WALKS, ROUNDS_OF_WALKS = 16, (2, 40), (1, 5)
SAME_POINT = 1e-7  # [rad, sizes] between a configuration and where a stride along a path leads
CHAIN = 30.0  # frames that are off by e each miss each other by up to so many e
GROUP_SEED = 20250117


# ---- conditions ----------------------------------------------------------------------------------


@cached_on_model
def compiled_geometry(model: Model, index: int) -> CompiledGeometry:
    """The geometry of a cluster, with a program that clusters share which differ in numbers."""
    return compiled(model.clusters[index].geometry)


def kept_rows(cluster: Cluster) -> Iterator[int]:
    """The rows of a cluster's loops without those that always repeat others."""
    keep = cluster.constraint.keep if isinstance(cluster.constraint, LoopConstraint) else None
    n = 0
    for number, loop in enumerate(cluster.geometry.loops):
        for r in range(len(loop.rows)):
            if keep is None or (number, r) in keep:
                yield n
            n += 1


@dataclass(frozen=True, eq=False)
class GroupMechanism:
    """A group as a mechanism for continuation: q are its cluster's positions.

    ``geometry``: the cluster's, with the group's conditions alone.
    ``basis`` (columns, n): its joints' motions, which meet couplings, in units of its cluster's
    velocities; an isometry in those units for joints in loops.
    """

    geometry: CompiledGeometry
    columns: Indices
    basis: Array
    inverse: Array
    row_unit: Array

    @cached_property
    def _whole(self) -> Array:
        """The basis in all of the cluster's velocities."""
        rows = np.zeros((self.geometry.nv, self.basis.shape[1]))
        rows[self.columns] = self.basis
        return rows

    @cached_property
    def _units(self) -> Array | None:
        """The basis' diagonal, if it has nothing else: where all joints move, without couplings."""
        units = np.diagonal(self._whole)
        return units if np.array_equal(self._whole, np.diag(units)) else None

    @cached_property
    def pattern(self) -> Mask:
        """As of :class:`robomodel.mechanism.continuation.Mechanism`."""
        entries = np.zeros((self.geometry.rows, self.geometry.nv), dtype=bool)
        entries[self.geometry.entries] = True
        return np.asarray(entries @ (self._whole != 0.0))

    @property
    def chart(self) -> Chart | None:
        """As of :class:`robomodel.mechanism.continuation.Mechanism`."""
        units = np.diagonal(self.basis)
        if self.geometry.linear or not np.array_equal(self.basis, np.diag(units)):
            return None
        return Chart(self.geometry, tuple(self.columns.tolist()), units, self.row_unit)

    def spread(self, columns: Array, case: Indices) -> Array:
        """As of :class:`robomodel.mechanism.continuation.Mechanism`."""
        return columns

    gathered = spread

    def step(self, q: Array, d: Array, case: Indices | None = None) -> tuple[Array, Array, Array]:
        """As of :class:`robomodel.mechanism.continuation.Mechanism`."""
        units, row_unit = self._units, self.row_unit[:, None]
        if units is not None:
            there, values, k = self.geometry.step(q, d * units, row_unit * units)
        else:
            there, values, k = self.geometry.step(q, d @ self._whole.T)
            k = (k.reshape(-1, k.shape[2]) @ self._whole).reshape(*k.shape[:2], d.shape[1])
            k *= row_unit
        return there.copy(), values * self.row_unit, k

    def away(self, q0: Array, q1: Array, case: Indices | None = None) -> Array:
        """As of :class:`robomodel.mechanism.continuation.Mechanism`."""
        return np.asarray(self.geometry.difference(q0, q1)[..., self.columns] @ self.inverse.T)


# ---- the set of a group --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Group:
    """Joints that conditions relate, and what they reach from a start.

    Attributes:
        along: Strides of theirs.
        start: The cluster's spanning positions (nq,).
        columns: Their spanning velocities in the cluster.
        joints: Those of one freedom that do not only turn a rod.
        turning: Hinges that may turn fully.
        whole: Places in q of hinges that turn fully by themselves.
        places: Places of the group's positions in q.
        own: Rows (columns, n) of its velocities by its motions, in comparable units.
        rates: The same (nv, n) of its cluster's independent velocities.
        barriers: Its limits from another start.
        telling: Joints that tell where it is, of its sheet; balls have no places.
        original: The group of a linkage before it of which it is a copy, and the map from there.
    """

    along: Continuation
    start: Array
    columns: tuple[int, ...]
    joints: Positions
    turning: Turning
    whole: Indices
    places: Indices
    own: Array
    rates: Array
    barriers: Callable[[Array], Limits]
    telling: Positions | None = None
    original: tuple[Group, Image] | None = None

    @property
    def freedoms(self) -> int:
        """Its number of freedoms."""
        return self.along.freedoms

    def starting(self, q: Array) -> Group:
        """The group from another start: joints that are beyond limits there go no further."""
        if np.array_equal(q, self.start):
            return self
        along = replace(self.along, limits=self.barriers(q), crossed=[])
        return replace(self, start=q, along=along, original=None)

    def on_sheet(self, telling: Positions, *, uniform: bool = True) -> Group:
        """Its part up to dead points of joints; draws are uniform in these, or by volume."""
        along = replace(self.along, sheet=units(telling.rows), crossed=[])
        return replace(self, along=along, telling=telling if uniform else None, original=None)

    def narrowed(self, ends: Mapping[int, tuple[float, float]]) -> Group:
        """Its part between these ends too, by places in q."""
        mine = [n for n, place in enumerate(self.joints.places.tolist()) if place in ends]
        if not mine:
            return self
        old, places = self.along.limits, self.joints.places[mine]
        low, high = np.array([ends[place] for place in places.tolist()]).T
        limits = Limits(
            np.concatenate([old.rows, self.joints.rows[mine]]),
            np.concatenate([old.places, places]),
            np.concatenate([old.low, low]),
            np.concatenate([old.high, high]),
        )
        joints = self.turning.joints
        still = ~np.isin(joints.places, places)
        turning = Turning(
            Positions(joints.rows[still], joints.places[still]), self.turning.ways[still]
        )
        whole = self.whole[~np.isin(self.whole, places)]
        along = replace(self.along, limits=limits, crossed=[])
        return replace(self, along=along, turning=turning, whole=whole, original=None)

    def copying(self, original: Group, image: Image) -> Group:
        """The group as a copy of another, if it has the like sheet and limits; else as it is."""
        mine, others = self.along, original.along
        alike = image.takes(others.limits, mine.limits, CHAIN)
        if alike and mine.sheet is not None and others.sheet is not None:
            ways = image.ways[np.ix_(self.columns, original.columns)] @ original.own
            rows = np.abs(mine.sheet @ np.linalg.pinv(self.own) @ ways)
            alike = len(rows) == len(others.sheet) and all(
                any(as_written(row, each) for each in rows) for row in np.abs(others.sheet)
            )
        elif mine.sheet is not others.sheet:
            alike = False
        return replace(self, original=(original, image)) if alike else self

    @cached_property
    def origin(self) -> Points:
        """The start as a point."""
        return self.along.at(self.start[None])

    @cached_property
    def path(self) -> Path:
        """All of it, with one freedom."""
        return path(self.along, self.origin, self.turning)

    @cached_property
    def pool(self) -> Points:
        """Points spread over it, uniform by volume, or all of the path."""
        if self.freedoms == 1:
            return self.path.points
        if not self.freedoms:
            return self.origin
        if self._image_of_pool is not None:
            return self._image_of_pool
        rng = np.random.default_rng(GROUP_SEED)
        p, d = wander(self.along, self.origin[np.zeros(WALKERS, dtype=np.intp)], rng, BEGIN)
        found = [p]
        for _ in range(ROUNDS):
            # every other round of walks begins with new directions
            p, d = wander(self.along, p, rng, STRIDES, d if rng.random() > 0.5 else None)
            found.append(p)
        return joined(found)

    @cached_property
    def _image_of_pool(self) -> Points | None:
        """The original's pool as of :meth:`_imaged`; None without an original."""
        return None if self.original is None else self._imaged(self.original[0].pool.q)

    def _imaged(self, q: Array) -> Points | None:
        """Images of the original at q (n, nq), closed again, within the own limits.

        None if a point is not closed, not regular, or not in the chart of where the map puts it, or
        if no stride leads from the start to the original's.
        """
        assert self.original is not None
        points, fine = self._images(np.concatenate([self.original[0].origin.q, q]))
        if not np.all(fine):
            return None
        if self.along.led(self.origin, points.q[:1])[1][0] != FINE:
            return None
        within = np.all(self.along.limits.beyond(points.q) <= WITHIN, axis=1)
        return points[1 + np.flatnonzero(within[1:])]

    def _images(self, q: Array) -> tuple[Points, Mask]:
        """The original's q (n, nq) on the copy, closed again, and which are in the charts there."""
        assert self.original is not None
        mapped = np.tile(self.start, (len(q), 1))
        mapped[:, self.places] = self.original[1].positions(q)[:, self.places]
        there = self.along.at(mapped)
        points, closed, turn = self.along.moved(there, np.zeros((len(q), self.along.columns)))
        return points, closed & (turn.cosine >= TURNED) & (turn.signs > 0.0)

    @cached_property
    def explored(self) -> Explored | None:
        """Its sheet between limits of its ``telling`` joints; None without these."""
        limits, joints = self.along.limits, self.telling
        if joints is None or not 1 < self.freedoms == len(joints.places):
            return None
        turns = joints.places < 0
        mine = [limits.places == place for place in joints.places.tolist()]
        low = np.array([np.max(limits.low[at], initial=-np.inf) for at in mine])
        high = np.array([np.min(limits.high[at], initial=np.inf) for at in mine])
        start = self.start[joints.places]
        low, high = np.where(turns, -math.pi, low - start), np.where(turns, math.pi, high - start)
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            return None
        box = Box(self.start, low, high, turns)
        if self.original is not None and (other := self.original[0].explored) is not None:
            image = self._imaged(other.found.q)
            if image is not None:
                return Explored.at(self.along, image.q, joints.rows, box)
        return Explored.of(self.along, self.origin, joints.rows, box)

    def draw(
        self, rng: Generator, count: int, thinned: Array | None = None, *, known: bool = False
    ) -> Points:
        """Points of it, uniform by volume; ``thinned``: uniform in joints with these rows.

        ``known``: of these what its exploration has found, if others are no better.
        """
        if not self.freedoms:
            return self.origin[np.zeros(count, dtype=np.intp)]
        if thinned is None:
            return self._on_path(rng, count) if self.freedoms == 1 else self._walked(rng, count)
        if self.explored is not None:
            return (self.explored.known if known else self.explored.draw)(rng, count)
        shares, found, left = share(thinned, self.pool), list[Points](), count
        most, kept = float(np.max(shares)), float(np.mean(shares))
        while left > 0:
            some = self.draw(rng, 8 + math.ceil(left * most / kept))
            keep = rng.random(len(some.q)) * most < share(thinned, some)
            found.append(some[np.flatnonzero(keep)[:left]])
            left -= len(found[-1].q)
        return joined(found)

    def known(self, rng: Generator, count: int) -> Points:
        """Points of it, nearly uniform by volume: some of the pool, which :meth:`draw` walks on."""
        if self.freedoms <= 1:
            return self.draw(rng, count)
        size = len(self.pool.q)
        return self.pool[rng.permutation(size)[:count] if count <= size
                         else rng.integers(size, size=count)]  # fmt: skip

    def _on_path(self, rng: Generator, count: int) -> Points:
        """By arc length, a stride from the point before."""
        lengths, points = self.path.lengths, self.path.points
        s = rng.uniform(lengths[0], lengths[-1], count)
        at = np.clip(np.searchsorted(lengths, s, side="right") - 1, 0, max(0, len(lengths) - 2))
        p = points[at]
        there, _, _ = self.along.moved(p, (s - lengths[at])[:, None] * p.n[:, :, 0])
        beyond = np.flatnonzero(np.any(self.along.limits.beyond(there.q) > WITHIN, axis=1))
        return there.put(beyond, p[beyond])

    def _walked(self, rng: Generator, count: int) -> Points:
        """Some strides from points of the pool."""
        p = self.pool[rng.integers(len(self.pool.q), size=count)]
        strides = FEW_STRIDES if count < MANY_DRAWS else MANY_STRIDES
        return wander(self.along, p, rng, strides)[0]

    def around(self, rng: Generator, count: int, reach: float) -> Points:
        """Points to which short ways lead from the start: no joint goes further than ``reach``."""
        p = self.origin[np.zeros(count, dtype=np.intp)]
        d = rng.standard_normal((count, self.freedoms))
        d /= np.linalg.norm(d, axis=1, keepdims=True)
        speeds = np.concatenate([self.rates, self.own])
        fastest = np.max(np.abs(np.einsum("kc,ncm,nm->nk", speeds, p.n, d)), axis=1)
        way = reach * rng.random(count) ** (1.0 / self.freedoms) / fastest
        strides = math.ceil(float(np.max(way)) / WALK_STRIDE)
        return wander(self.along, p, rng, strides, d, way / strides)[0]

    # ---- membership

    def contains(self, q: Array, *, quick: bool = False) -> Mask:
        """Which closed configurations (n, nq) within limits a path leads to, as far as is known.

        Straight ways join them to the nearest points of the set, at first from where they are, then
        from where random walks get; ``quick``: no walks.
        """
        if not self.freedoms:
            return np.asarray(np.max(np.abs(self._away(self.start[None], q)), axis=1) < SAME_POINT)
        if self.freedoms == 1:
            return np.array([self._on(x) for x in q], dtype=bool)
        found = self._led(self.along.at(q), TRIED)
        if not (quick or found.all()):
            left = np.flatnonzero(~found)
            found[left] = self._sought(q[left])
        return found

    def leads_to(self, q: Array) -> bool:
        """:meth:`contains` of one q (nq,); what the original has missed is not sought again."""
        if self.contains(q[None], quick=True)[0]:
            return True
        if self.freedoms <= 1 or self._missed_by_original(q):
            return False
        found = bool(self._sought(q[None])[0])
        if not found and len(self.missed) < WALKED:
            self.missed.append(q)
        return found

    def _sought(self, q: Array) -> Mask:
        """To which configurations (n, nq) ways lead that are looked for far and wide."""
        limits, found = self.along.limits, np.zeros(len(q), dtype=bool)
        # from others no stride leads back within limits
        near = np.all(limits.beyond(q) <= limits.farthest(WALK_STRIDE), axis=1)
        for search in (self._led_far, self._met):
            if len(left := np.flatnonzero(near & ~found)):
                found[left] = search(q[left])
        return found

    @cached_property
    def missed(self) -> list[Array]:
        """Configurations (nq,) to which :meth:`leads_to` found no path, the first few."""
        return []

    def _missed_by_original(self, q: Array) -> bool:
        """True if a stride leads to q (nq,) from the image of what the original has missed."""
        if self.original is None or not self.original[0].missed or self._image_of_pool is None:
            return False
        there, fine = self._images(np.array(self.original[0].missed))
        goals = np.tile(q, (len(there.q), 1))
        near = np.linalg.norm(self.along.mechanism.away(there.q, goals), axis=1) <= WALK_STRIDE
        return bool(np.any(fine & near & (self.along.led(there, goals)[1] == FINE)))

    def _away(self, q0: Array, q1: Array) -> Array:
        """The way between configurations but for full turns."""
        return self.turning.apart(self.along.mechanism.away(q0, q1))

    def _on(self, q: Array) -> bool:
        """True if strides from the nearest points of the path lead there."""
        p = self.path.points
        away = self._away(p.q, np.broadcast_to(q, p.q.shape))
        far = np.linalg.norm(away, axis=1)
        # all that are a stride away: of both branches, where these miss each other
        beside = int(np.sum(far < 1.5 * WALK_ALONG))
        near = np.argsort(far)[: max(TRIED, beside)]
        d = (np.swapaxes(p.n[near], 1, 2) @ away[near][:, :, None])[:, :, 0]
        # judged as strides are: beyond a near miss of branches the other one is straight ahead
        there, ends = self.along.stride(p[near], d)
        off = np.linalg.norm(self._away(there.q, np.broadcast_to(q, there.q.shape)), axis=1)
        near_by = np.linalg.norm(d, axis=1) < 1.5 * WALK_ALONG
        return bool(np.any((ends == FINE) & near_by & (off < SAME_POINT)))

    def _led(
        self, p: Points, tried: int, strides: int = LONGEST_LEAD, of: Indices | None = None
    ) -> Mask:
        """From which points one of the nearest ``tried`` of the pool is reached straight.

        ``of``: numbers of what each point stands for, for which one of them is enough.
        """
        pool, joints, tried = self.pool, self.joints, min(tried, len(self.pool.q))
        ways = np.empty((len(p.q), tried, pool.n.shape[1]))
        for x, mine in zip(p.q, ways, strict=True):
            away = self._away(np.broadcast_to(x, pool.q.shape), pool.q)
            mine[:] = away[np.argsort(np.linalg.norm(away, axis=1))[:tried]]
        start = p[np.repeat(np.arange(len(p.q)), tried)]
        goal = start.q[:, joints.places] + ways.reshape(-1, ways.shape[2]) @ joints.rows.T
        alike = np.repeat(np.arange(len(p.q)) if of is None else of, tried)
        found, nearest = (
            np.zeros(np.max(alike, initial=-1) + 1, bool),
            np.arange(len(alike)) % tried < 2,
        )
        for some in (nearest, ~nearest):  # most are found from the nearest
            rows = np.flatnonzero(some & ~found[alike])
            led = lead(
                self.along, start[rows], joints, goal[rows], alike=alike[rows], strides=strides
            )
            found[alike[rows[led[1] == FINE]]] = True
        return found

    def _led_far(self, q: Array) -> Mask:
        """From which configurations one of many points of the pool is reached straight."""
        return self._led(self.along.at(q), *MANY_TRIED)

    def _met(self, q: Array) -> Mask:
        """From which configurations walks, the same ones, get to where points are led from."""
        rng, found = np.random.default_rng(GROUP_SEED), np.zeros(len(q), dtype=bool)
        for rounds in ROUNDS_OF_WALKS:
            left, ends = np.flatnonzero(~found), list[Points]()
            p = self.along.at(np.repeat(q[left], WALKED, axis=0))
            for _ in range(rounds):
                d = np.tile(rng.standard_normal((WALKED, self.freedoms)), (len(left), 1))
                p, _ = wander(self.along, p, rng, MANY_STRIDES, d, np.full(len(d), WALK_STRIDE))
                ends.append(p)
            of = np.tile(np.repeat(np.arange(len(left)), WALKED), rounds)
            found[left] = self._led(joined(ends), *BY_WALKS, of)
            if found.all():
                break
        return found

    # ---- positions

    def wrapped(self, q: Array) -> Array:
        """Hinges that turn fully by themselves, in (-π, π]."""
        if len(self.whole):
            q[:, self.whole] = math.pi - np.mod(math.pi - q[:, self.whole], 2.0 * math.pi)
        return q

    @cached_property
    def typical(self) -> float:
        """The median of :meth:`regularity` over the set, as far as it is known."""
        known = self.pool if self.explored is None else self.explored.points
        return median(self.regularity(known))

    def conditioning(self, q: Array) -> Array:
        """The least singular value (n,) of its conditions at positions (n, nq).

        It is zero at change points.
        """
        k = self.along.mechanism.step(q, np.zeros((len(q), self.along.columns)))[2]
        return extreme_singular(k, self.along.rank)[0]

    def regularity(self, p: Points) -> Array:
        """How well the independent velocities tell the motion at points: 0 at their dead points."""
        return share(units(self.rates), p)


def share(rows: Array, p: Points) -> Array:
    """The volume that joints' velocities span for unit motions: |det N_y|."""
    at = rows @ p.n
    across = np.swapaxes(at, 1, 2)
    square = at @ across if at.shape[1] < at.shape[2] else across @ at
    return np.asarray(np.sqrt(np.maximum(np.linalg.det(square), 0.0)))


def units(rows: Array) -> Array:
    """Rows of length 1, without those of length 0."""
    size = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray((rows / np.maximum(size, TINY))[size[:, 0] > NOTHING])


# ---- groups of a cluster -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Followers:
    """Joints of a cluster that only couplings move, without limits: rotors, mostly.

    Their positions are ``matrix`` · those at ``of`` + ``offset``.
    """

    places: Indices
    of: Indices
    matrix: Array
    offset: Array

    def completed(self, q: Array) -> Array:
        """Spanning positions (n, nq) with theirs."""
        q = q.copy()
        q[:, self.places] = q[:, self.of] @ self.matrix.T + self.offset
        return q


@dataclass(frozen=True, eq=False)
class Split:
    """A cluster's groups from its neutral configuration, and what follows them.

    ``velocities`` (nv, n) of all joints by the motions of all groups, one after the other.
    """

    groups: tuple[Group, ...]
    followers: Followers
    velocities: Array

    def rows(self, group: Group, columns: Sequence[int]) -> Array:
        """Rows (k, n) of joints' velocities by a group's motions."""
        first = 0
        for each in self.groups:
            count = each.along.columns
            if each.columns == group.columns:
                return np.asarray(self.velocities[list(columns), first : first + count])
            first += count
        raise KeyError(group.columns)


@cached_on_model
def split(model: Model, index: int) -> Split:
    """The groups of a cluster, from the neutral configuration."""
    splitting = _Splitting(model, model.clusters[index])
    found = splitting.result()
    for other in model.clusters[:index]:
        image = splitting.copied(other) if other.kind == splitting.cluster.kind else None
        if image is None:
            continue
        originals = {image.taken(group.columns): group
                     for group in split(model, other.index).groups}  # fmt: skip
        groups = tuple(
            replace(group, original=(originals[group.columns], image))
            if group.columns in originals
            and originals[group.columns].freedoms == group.freedoms > 1
            else group
            for group in found.groups
        )
        return replace(found, groups=groups)
    return found


class _Splitting:
    """Takes a cluster apart into groups of joints that conditions relate."""

    def __init__(self, model: Model, cluster: Cluster) -> None:
        self.model, self.cluster, self.geometry = model, cluster, cluster.geometry
        geometry, columns = cluster.geometry, columns_of(model, cluster)
        self.low, self.high = np.transpose([column.limits for column in columns])
        self.unit = cluster.geometry.unit * windings(cluster)
        self.place = {link.v: link.q for link in geometry.links if link.joint.nv == 1}
        self.hinges = {link.v for link in geometry.links if isinstance(link.joint, Revolute)}
        self.start = spanning_start(cluster, np.array(cluster.start))
        self.rows = geometry.row_columns[: geometry.rows - len(geometry.linear)]
        self.looped = sorted({c for mine in self.rows for c in mine})
        chosen = [n for n, _ in enumerate(geometry.linear)
                  if n >= len(cluster.pivots) or cluster.pivots[n] is not None]  # fmt: skip
        self.couplings = np.zeros((len(chosen), geometry.nv))
        self.offsets = np.array([geometry.linear[n].offset for n in chosen])
        for row, n in zip(self.couplings, chosen, strict=True):
            for body, x in geometry.linear[n].terms:
                row[geometry.links[body].v] += x

    def copied(self, other: Cluster) -> Image | None:
        """The map from a cluster of which this is a copy, with like limits and units."""
        if isinstance(other.constraint, LinearConstraint):
            return None
        low, high = np.transpose([column.limits for column in columns_of(self.model, other)])
        alike = set(other.geometry.unit * windings(other)) == set(self.unit)
        for image in images(other.geometry, self.geometry) if alike else ():
            keeps = image.keeps((low, high), (self.low, self.high))
            if keeps and image.taken(other.columns) == tuple(sorted(self.cluster.columns)):
                return image
        return None

    def result(self) -> Split:
        """The groups and followers."""
        following, solved = self._following()
        free = [c for c in range(self.geometry.nv) if c not in following]
        left = left_null(self.couplings[:, following]).T @ self.couplings
        left[:, following] = 0.0
        left = _echelon(left)
        groups, blocks = [], list[Array]()
        found = self._related(free, left)
        ranks = self._ranks([self._basis(mine, left) for mine in found], found)
        for mine, rank in zip(found, ranks, strict=True):
            basis = self._basis(mine, left)
            whole = np.zeros((self.geometry.nv, basis.shape[1]))
            whole[mine] = basis
            whole[following] = solved @ basis_of(solved, free, mine, basis)
            blocks.append(whole)
            groups.append(self._group(mine, basis, rank, whole[list(self.cluster.columns)], left))
        of = np.array([self.place[c] for c in free if c in self.place], dtype=np.intp)
        single = [n for n, c in enumerate(free) if c in self.place]
        places = np.array([self.place[c] for c in following], dtype=np.intp)
        right = np.linalg.pinv(self.couplings[:, following]) @ self.offsets
        return Split(
            tuple(groups),
            Followers(places, of, solved[:, single], right),
            np.concatenate([*blocks, np.zeros((self.geometry.nv, 0))], axis=1),
        )

    def _following(self) -> tuple[list[int], Array]:
        """Columns that couplings alone move, without limits; their rates by those of the others.

        As many as couplings determine, the fastest first.
        """
        limited = np.flatnonzero(np.isfinite(self.low) | np.isfinite(self.high))
        hinders = {*self.looped, *limited.tolist()}
        size = np.max(np.abs(self.couplings), axis=1, initial=0.0)

        def slowness(c: int) -> float:
            mine = np.abs(self.couplings[:, c])
            return float(np.min(mine[mine > 0.0] / size[mine > 0.0], initial=math.inf))

        candidates = [c for c in self.place if c not in hinders and slowness(c) < math.inf]
        candidates.sort(key=slowness)
        chosen: list[int] = []
        for c in candidates:
            block = self.couplings[:, [*chosen, c]]
            if np.linalg.matrix_rank(block, tol=RANK * np.max(np.abs(block))) > len(chosen):
                chosen.append(c)
        free = [c for c in range(self.geometry.nv) if c not in chosen]
        solved = -np.linalg.pinv(self.couplings[:, chosen]) @ self.couplings[:, free]
        solved[np.abs(solved) < NOTHING * np.max(np.abs(solved), initial=0.0)] = 0.0
        return sorted(chosen), solved[np.argsort(chosen)] if chosen else solved

    def _related(self, free: Sequence[int], left: Array) -> list[list[int]]:
        """Groups of columns that loops, joints of several freedoms, and couplings relate."""
        related = [set(mine) for mine in self.rows] + [set(np.flatnonzero(row)) for row in left]
        related += [set(link.freedoms) for link in self.geometry.links]
        return sorted(map(sorted, merged({int(c) for c in each if c in free} for each in related)))

    def _basis(self, mine: Sequence[int], left: Array) -> Array:
        """Motions (columns, n) of a group that meet its couplings, in units of velocities.

        Orthonormal as far as joints in loops go, if these tell the motion: rotors do not count.
        """
        unit = self.unit[list(mine)]
        rows = left[:, mine] * unit
        rows = rows[np.any(rows != 0.0, axis=1)]
        if not len(rows):
            return np.asarray(np.diag(unit))
        kernel = left_null(rows.T)
        counts = [n for n, c in enumerate(mine) if c in self.looped]
        for some in (counts, list(range(len(mine)))):
            _, sizes, right = np.linalg.svd(kernel[some], full_matrices=False)
            if len(sizes) == kernel.shape[1] and sizes[-1] > MOVES * sizes[0]:
                return np.asarray(unit[:, None] * (kernel @ right.T / sizes @ right))
        raise AssertionError("orthonormal motions tell themselves")

    def _ranks(self, bases: Sequence[Array], found: Sequence[Sequence[int]]) -> list[int]:
        """Each group's number of independent conditions: of all singular values the greatest."""
        geometry, total = self.geometry, sum(b.shape[1] for b in bases) - self.cluster.nv
        k = geometry.evaluate(self.start)[1][: len(self.rows)]
        k = k * geometry.row_unit[: len(self.rows), None]
        values = [(float(s), n) for n, (mine, basis) in enumerate(zip(found, bases, strict=True))
                  for s in np.linalg.svd(k[:, mine] @ basis, compute_uv=False)]  # fmt: skip
        values.sort(reverse=True)
        ranks = [0] * len(found)
        for _, n in values[:total]:
            ranks[n] += 1
        return ranks

    def _group(
        self, mine: Sequence[int], basis: Array, rank: int, rates: Array, left: Array
    ) -> Group:
        geometry, cluster, start = self.geometry, self.cluster, self.start
        solved, others = self._conditions(mine)
        place = {c: n for n, c in enumerate(mine)}
        row_unit = geometry.row_unit[list(solved)]
        mechanism = GroupMechanism(
            compiled_geometry(self.model, cluster.index).only(solved),
            np.array(mine),
            basis,
            np.asarray(np.linalg.pinv(basis)),
            row_unit,
        )
        coupled = {int(c) for c in np.flatnonzero(np.any(left != 0.0, axis=0))}
        coupled |= {geometry.links[body].v for each in geometry.polynomials
                    for body in (each.joint, each.of)}  # fmt: skip
        freedoms = basis.shape[1] - rank
        columns = columns_of(self.model, cluster)
        barriers = Barriers(cluster, columns, mine, basis, coupled, freedoms)
        single = [c for c in mine if c in self.place]
        free = np.isinf(self.low) & np.isinf(self.high)
        turning = [c for c in single if free[c] and c in self.hinges]
        spinning = self._spinning()
        interest = [c for c in single if c not in spinning]
        along = Continuation(
            mechanism,
            basis.shape[1],
            rank,
            barriers(start),
            crossing(cluster),
            _left_open(cluster, start) * row_unit if len(solved) > rank else 0.0,
            also=_met(self.model, cluster, others),
        )
        if freedoms > 1 and (endless := barriers.endless(along, start)):
            barriers = Barriers(cluster, columns, mine, basis, coupled | endless, freedoms)
            along = replace(along, limits=barriers(start), crossed=[])
        return Group(
            along,
            start,
            tuple(mine),
            self._positions(interest, place, basis),
            Turning(
                self._turns(turning, place, basis),
                mechanism.inverse[:, [place[c] for c in turning]].T,
            ),
            np.array([self.place[c] for c in turning if c not in coupled], dtype=np.intp),
            np.array([x for link in geometry.links if link.v in place
                      for x in range(link.q, link.q + link.joint.nq)], dtype=np.intp),
            basis / self.unit[list(mine), None],
            rates / self.unit[list(cluster.columns), None],
            barriers,
        )  # fmt: skip

    def _positions(self, some: Sequence[int], place: dict[int, int], basis: Array) -> Positions:
        rows = basis[[place[c] for c in some]].reshape(len(some), basis.shape[1])
        return Positions(rows, np.array([self.place[c] for c in some], dtype=np.intp))

    def _turns(self, some: Sequence[int], place: dict[int, int], basis: Array) -> Positions:
        """Their positions, by rows of what they turn beside screws that they undo."""
        found, screws = self._positions(some, place, basis), undone(self.cluster)
        rows = [row - sum(sense * basis[place[x]] for x, sense in screws.get(c, {}).items())
                for c, row in zip(some, found.rows, strict=True)]  # fmt: skip
        return Positions(np.reshape(rows, found.rows.shape), found.places)

    def _spinning(self) -> set[int]:
        """Columns of joints that turn with spins of rods."""
        turning = {name for spin in find_spins(self.model) for name in spin.joints}
        pairs = zip(self.cluster.joints, self.geometry.links, strict=True)
        return {c for name, link in pairs if name in turning for c in link.freedoms}

    def _conditions(self, mine: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Rows of loops that a group's strides solve, and others that must hold, too.

        Rows that repeat others are left out, if they hold everywhere, as those out of the plane of
        a planar linkage do, or if a rounded file contradicts itself in them; else all are solved.
        """
        rows = {n for n, some in enumerate(self.rows) if set(some) & set(mine)}
        kept = tuple(sorted(set(kept_rows(self.cluster)) & rows))
        others = tuple(sorted(rows - set(kept)))
        if not others or hold_everywhere(self.geometry, self.start, self.geometry.unit, others):
            return kept, ()
        closing = set(self.cluster.closing_rows) if self.cluster.implicit else rows
        solved = tuple(sorted((closing | set(kept)) & rows))
        return solved, tuple(sorted(rows - set(solved)))


def hold_everywhere(geometry: Geometry, start: Array, unit: Array, rows: Sequence[int]) -> bool:
    """True if rows of loops hold at spanning positions (nq,) and around, where others do not."""
    away = np.random.default_rng(GROUP_SEED).uniform(-1.0, 1.0, (4, geometry.nv)) * unit
    values = geometry.evaluate(geometry.integrate(np.tile(start, (4, 1)), away))[0]
    return bool(np.max(np.abs(values[:, list(rows)])) <= NOTHING)


def merged(sets: Iterable[set[int]]) -> list[set[int]]:
    """Groups of what sets have in common, directly or not."""
    groups: list[set[int]] = []
    for each in filter(None, sets):
        touched = [group for group in groups if group & each]
        groups = [group for group in groups if not group & each]
        groups.append(each.union(*touched))
    return groups


def basis_of(solved: Array, free: Sequence[int], mine: Sequence[int], basis: Array) -> Array:
    """A group's motions as rows of all free columns, which ``solved`` has as its columns."""
    whole = np.zeros((solved.shape[1], basis.shape[1]))
    whole[[free.index(c) for c in mine]] = basis
    return whole


def crossing(cluster: Cluster) -> float:
    """The gap at which branches of a cluster cross, as its file is rounded."""
    return max(CROSSING, CHAIN * cluster.rounding, cluster.slack)


def _left_open(cluster: Cluster, q: Array) -> float:
    """The gap up to which conditions hold that contradict each other by rounding, from q (nq,)."""
    return max(CLOSED, cluster.slack, 2.0 * float(cluster.geometry.gap(q)))


def _met(model: Model, cluster: Cluster, rows: tuple[int, ...]) -> Callable[[Array], Mask] | None:
    """Which positions (n, nq) meet rows of loops to what the file leaves open."""
    if not rows:
        return None
    geometry = compiled_geometry(model, cluster.index).only(rows)
    slack = _left_open(cluster, spanning_start(cluster, np.array(cluster.start)))

    def met(q: Array) -> Mask:
        return np.asarray(geometry.gap(q) <= slack)

    return met


def left_null(matrix: Array) -> Array:
    """Orthonormal columns y with yᵀ matrix = 0."""
    if not matrix.size:
        return np.eye(len(matrix))
    left, sizes, _ = np.linalg.svd(matrix)
    return np.asarray(left[:, int(np.sum(sizes > RANK * sizes[0])) :])


def _echelon(rows: Array) -> Array:
    """Rows of the same span, with as few entries as elimination leaves."""
    rows, done = rows.copy(), 0
    size = np.max(np.abs(rows), initial=0.0)
    for c in range(rows.shape[1]):
        if done == len(rows):
            break
        pivot = done + int(np.argmax(np.abs(rows[done:, c])))
        if abs(rows[pivot, c]) <= RANK * size:
            continue
        rows[[done, pivot]] = rows[[pivot, done]]
        rows[done] /= rows[done, c]
        others = [n for n in range(len(rows)) if n != done]
        rows[others] -= np.outer(rows[others, c], rows[done])
        done += 1
    rows[np.abs(rows) < NOTHING] = 0.0
    return rows[:done]
