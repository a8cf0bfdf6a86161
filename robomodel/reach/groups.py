"""The reachable set of joints that conditions relate: a path of one freedom, or points of several.

A cluster's conditions relate its joints in groups (:func:`groups`), of which each is a mechanism of
its own. From a start, closed paths within limits reach its set. With one freedom it is followed
once, both ways; with several, random geodesics spread points over it (:mod:`..continuation`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.kernels.function import TracedFunction
from robomodel.mechanism.closure import Geometry
from robomodel.mechanism.constraints import LoopConstraint, LoopJoint, Perpendicular, evaluate_loops
from robomodel.mechanism.continuation import CROSSING, Continuation, Limits, Points, joined
from robomodel.mechanism.walks import ALONG, STRIDE, Path, Positions, Turning, lead, path, wander
from robomodel.model.derived import cached_on_model, traced
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.reach.paths import Part
from robomodel.reach.ranges import parts_of, spanning_start
from robomodel.scalars import Scalar, Vector, dot
from robomodel.tolerances import TINY, WITHIN

if TYPE_CHECKING:
    from numpy.random import Generator

WALKERS, BEGIN, ROUNDS, STRIDES = 96, 60, 8, 10  # walks that spread points; strides before, between
MANY = 32  # draws at once, which show how many points these are, and may walk on from them
FEW_STRIDES, MANY_STRIDES = 4, 24  # from such a point to a configuration that is drawn
TRIED = 12  # points to which a path is looked for
SAME_POINT = 1e-7  # [rad, sizes] between a configuration and where a stride along a path leads
RESTART = 0.5  # share of walks' rounds that begin with new directions
SEED = 20250117


# ---- mechanisms ----------------------------------------------------------------------------------


def kept_rows(cluster: Cluster) -> tuple[int, ...]:
    """The rows of a cluster's conditions without those that repeat others."""
    geometry, rows, n = cluster.geometry, list[int](), 0
    keep = cluster.constraint.keep if isinstance(cluster.constraint, LoopConstraint) else None
    for number, loop in enumerate(geometry.loops):
        for r in range(len(loop.rows)):
            if keep is None or (number, r) in keep:
                rows.append(n)
            n += 1
    for each in range(len(geometry.linear)):
        if each >= len(cluster.pivots) or cluster.pivots[each] is not None:
            rows.append(n + each)
    return tuple(rows)


@dataclass(frozen=True)
class _Entries:
    """Rows of conditions: (loop, row) pairs, couplings, and columns that are not zero."""

    pairs: tuple[tuple[int, int], ...]
    couplings: tuple[int, ...]
    columns: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(geometry: Geometry, rows: Sequence[int]) -> _Entries:
        """Those of some rows of a geometry's conditions."""
        links, pairs, columns, n = geometry.links, [], list[tuple[int, ...]](), 0
        wanted = set(rows)
        for number, loop in enumerate(geometry.loops):
            bodies = {body for branch in loop.branches for body in branch}
            moving = tuple(sorted(c for body in bodies for c in links[body].freedoms))
            for r in range(len(loop.rows)):
                if n in wanted:
                    pairs.append((number, r))
                    columns.append(moving)
                n += 1
        couplings = tuple(k for k in range(len(geometry.linear)) if n + k in wanted)
        for k in couplings:
            columns.append(tuple(sorted({links[i].v for i, _ in geometry.linear[k].terms})))
        return _Entries(tuple(pairs), couplings, tuple(columns))


@traced
def _conditions(model: Model, index: int, rows: tuple[int, ...]) -> TracedFunction:
    """A cluster's spanning positions after a motion, these rows of φ there, and K where it is."""
    geometry = model.clusters[index].geometry
    entries = _Entries.of(geometry, rows)

    def build(q: Vector, dq: Vector) -> list[Scalar]:
        moved: list[Scalar] = []
        for link in geometry.links:
            moved += link.joint.moved(q[link.positions], [dq[c] for c in link.freedoms])
        loops = evaluate_loops(geometry.links, geometry.loops, moved, keep=frozenset(entries.pairs))
        values, jacobian = list(loops.values), list(loops.jacobian)
        for k in entries.couplings:
            terms = geometry.linear[k].terms
            at = [moved[geometry.links[i].q] for i, _ in terms]
            values.append(dot([x for _, x in terms], at) - geometry.linear[k].offset)
            row: list[Scalar] = [0.0] * geometry.nv
            for i, x in terms:
                row[geometry.links[i].v] += x
            jacobian.append(row)
        flat = [row[c] for row, columns in zip(jacobian, entries.columns, strict=True)
                for c in columns]  # fmt: skip
        return [*moved, *values, *flat]

    size = geometry.nq + len(rows) + sum(map(len, entries.columns))
    arguments = {"q": geometry.nq, "dq": geometry.nv}
    return TracedFunction("conditions", arguments, {"y": (size,)}, build)


@dataclass(frozen=True, eq=False)
class PartMechanism:
    """A part's columns and rows as a mechanism for continuation: q are its cluster's positions."""

    geometry: Geometry
    program: TracedFunction
    columns: Indices
    unit: Array
    row_unit: Array
    entries: tuple[Indices, Indices]

    @staticmethod
    def of(model: Model, cluster: Cluster, part: Part) -> PartMechanism:
        """That of a part of a cluster."""
        geometry, columns = cluster.geometry, np.array(part.columns)
        kept, mine = set(kept_rows(cluster)), {r for _, rows in part.conditions for r in rows}
        rows = tuple(sorted(kept & mine))
        found = _Entries.of(geometry, rows).columns
        place = {c: n for n, c in enumerate(part.columns)}
        at = np.array([(r, place[c]) for r, some in enumerate(found) for c in some], dtype=np.intp)
        return PartMechanism(
            geometry,
            _conditions(model, cluster.index, rows),
            columns,
            part.unit[columns],
            _row_units(geometry, part)[list(rows)],
            (at[:, 0], at[:, 1]),
        )

    def step(self, q: Array, d: Array) -> tuple[Array, Array, Array]:
        """As of :class:`robomodel.mechanism.continuation.Mechanism`."""
        geometry, count, rows = self.geometry, len(d), len(self.row_unit)
        motion = np.zeros((count, geometry.nv))
        motion[:, self.columns] = d * self.unit
        y = self.program(q, motion)
        nq = geometry.nq
        k = np.zeros((count, rows, len(self.columns)))
        r, c = self.entries
        k[:, r, c] = y[:, nq + rows :] * (self.row_unit[r] * self.unit[c])
        return y[:, :nq], y[:, nq : nq + rows] * self.row_unit, k

    def away(self, q0: Array, q1: Array) -> Array:
        """As of :class:`robomodel.mechanism.continuation.Mechanism`."""
        return np.asarray(self.geometry.difference(q0, q1)[..., self.columns] / self.unit)


def _row_units(geometry: Geometry, part: Part) -> Array:
    """Factors of rows: gaps become shares of the cluster's size, sines stay."""
    units: list[float] = []
    for loop in geometry.loops:
        for row in loop.rows:
            length = not isinstance(row, Perpendicular)
            if not isinstance(loop, LoopJoint):
                length = part.lengths[geometry.links[loop.joint].v]
            units.append(1.0 / geometry.scale if length else 1.0)
    for each in geometry.linear:
        weights = [x * part.unit[geometry.links[i].v] for i, x in each.terms]
        units.append(1.0 / max(math.hypot(*weights), TINY))
    return np.array(units)


# ---- the set of a group --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Group:
    """Joints that conditions relate, and what they reach from a start.

    Attributes:
        part: The joints.
        along: Strides of theirs.
        start: The cluster's spanning positions (nq,).
        turning: Hinges that may turn fully.
        whole: Places in q of hinges that turn fully by themselves.
        places: Places of the group's positions in q.
        rates: Rows (m, columns) of the model's independent velocities by the group's motions.
        independent: The same as rows of length 1.
    """

    part: Part
    along: Continuation
    start: Array
    turning: Turning
    whole: Indices
    places: Indices
    rates: Array
    independent: Array

    @property
    def freedoms(self) -> int:
        """Its number of freedoms."""
        return self.along.freedoms

    def on_sheet(self, rows: Array) -> Group:
        """Its part up to dead points of joints with these rows (k, columns) of velocities."""
        return replace(self, along=replace(self.along, sheet=rows, crossed=[]))

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
        rng = np.random.default_rng(SEED)
        p, d = wander(self.along, self.origin[np.zeros(WALKERS, dtype=np.intp)], rng, BEGIN)
        found = [p]
        for _ in range(ROUNDS):
            p, d = wander(self.along, p, rng, STRIDES, d if rng.random() > RESTART else None)
            found.append(p)
        return joined(found)

    def draw(self, rng: Generator, count: int, thinned: Array | None = None) -> Points:
        """Points of it, uniform by volume; ``thinned``: uniform in joints with these rows."""
        if not self.freedoms:
            return self.origin[np.zeros(count, dtype=np.intp)]
        if thinned is None:
            return self._on_path(rng, count) if self.freedoms == 1 else self._walked(rng, count)
        most, found, left = float(np.max(_share(thinned, self.pool))), list[Points](), count
        while left > 0:
            some = self.draw(rng, max(8, 2 * left))
            keep = rng.random(len(some.q)) * most < _share(thinned, some)
            found.append(some[np.flatnonzero(keep)[:left]])
            left -= len(found[-1].q)
        return joined(found)

    def _on_path(self, rng: Generator, count: int) -> Points:
        """By arc length, a stride from the point before."""
        path, lengths = self.path, self.path.lengths
        s = rng.uniform(lengths[0], lengths[-1], count)
        at = np.clip(np.searchsorted(lengths, s, side="right") - 1, 0, max(0, len(lengths) - 2))
        p = path.points[at]
        q, k, closed = self.along.corrected(p, (s - lengths[at])[:, None] * p.n[:, :, 0])
        closed &= np.all(self.along.limits.beyond(q) <= WITHIN, axis=1)
        if not closed.all():
            q = np.where(closed[:, None], q, p.q)
            return self.along.at(q)
        return self.along.point(q, k)

    def _walked(self, rng: Generator, count: int) -> Points:
        """Some strides from points of the pool."""
        p = self.pool[rng.integers(len(self.pool.q), size=count)]
        strides = FEW_STRIDES if count < MANY else MANY_STRIDES
        return wander(self.along, p, rng, strides)[0]

    def around(self, rng: Generator, count: int, reach: float) -> Points:
        """Points to which short ways lead from the start.

        Neither the motion nor an independent velocity (which gears may multiply) exceeds ``reach``.
        """
        strides = math.ceil(reach / STRIDE)
        p = self.origin[np.zeros(count, dtype=np.intp)]
        d = rng.standard_normal((count, self.freedoms))
        d /= np.linalg.norm(d, axis=1, keepdims=True)
        fastest = np.max(
            np.abs(np.einsum("kc,ncm,nm->nk", self.rates, p.n, d)), axis=1, initial=1.0
        )
        share = rng.random(count) ** (1.0 / self.freedoms) / fastest
        return wander(self.along, p, rng, strides, d, share * reach / strides)[0]

    # ---- membership

    def contains(self, q: Array) -> Mask:
        """Which closed configurations (n, nq) within limits a path leads to, as far as is known."""
        if not self.freedoms:
            return np.asarray(np.max(np.abs(self._away(self.start[None], q)), axis=1) < SAME_POINT)
        one = self.freedoms == 1
        return np.array([self._on(x) if one else self._led(x) for x in q], dtype=bool)

    def _away(self, q0: Array, q1: Array) -> Array:
        """The way between configurations but for full turns."""
        away = self.along.mechanism.away(q0, q1)
        away[:, self.turning.columns] -= self.turning.turns(away) * self.turning.radian
        return away

    def _on(self, q: Array) -> bool:
        """Whether strides from the nearest points of the path lead there."""
        p = self.path.points
        away = self._away(p.q, np.broadcast_to(q, p.q.shape))
        near = np.argsort(np.linalg.norm(away, axis=1))[:TRIED]
        way = (p.n[near] @ (np.swapaxes(p.n[near], 1, 2) @ away[near][:, :, None]))[:, :, 0]
        size = np.linalg.norm(way, axis=1)
        there, _, closed = self.along.corrected(p[near], way)
        off = np.linalg.norm(self._away(there, np.broadcast_to(q, there.shape)), axis=1)
        return bool(np.any(closed & (size < 1.5 * ALONG) & (off < SAME_POINT)))

    def _led(self, q: Array) -> bool:
        """Whether one of the nearest points of the pool is reached straight from there."""
        pool = self.pool
        away = self._away(np.broadcast_to(q, pool.q.shape), pool.q)
        near = np.argsort(np.linalg.norm(away, axis=1))[:TRIED]
        joints, start = self.positions, self.along.at(np.tile(q, (len(near), 1)))
        goal = start.q[:, joints.places] + away[near][:, joints.columns] * joints.unit
        return bool(np.any(lead(self.along, start, joints, goal)[1] == 0))

    @cached_property
    def positions(self) -> Positions:
        """The joints of one freedom that do not only turn a rod."""
        part, place = self.part, {c: n for n, c in enumerate(self.part.columns)}
        interest = list(part.interest)
        columns, places = [place[c] for c in interest], [part.place[c] for c in interest]
        return Positions(
            np.array(columns, dtype=np.intp), np.array(places, dtype=np.intp), part.unit[interest]
        )

    # ---- positions

    def wrapped(self, q: Array) -> Array:
        """Hinges that turn fully by themselves, in (-π, π]."""
        if len(self.whole):
            q[:, self.whole] = math.pi - np.mod(math.pi - q[:, self.whole], 2.0 * math.pi)
        return q

    @cached_property
    def typical(self) -> float:
        """The median of :meth:`regularity` over the set."""
        return float(np.median(self.regularity(self.pool)))

    def regularity(self, p: Points) -> Array:
        """How well the independent velocities tell the motion at points: 0 at their dead points."""
        return _share(self.independent, p)


def _share(rows: Array, p: Points) -> Array:
    """The volume that joints' velocities span for unit motions: |det N_y|."""
    at = rows @ p.n
    return np.asarray(np.sqrt(np.maximum(np.linalg.det(at @ np.swapaxes(at, 1, 2)), 0.0)))


# ---- groups of a cluster -------------------------------------------------------------------------


def groups(model: Model, cluster: Cluster, q: Array) -> tuple[Group, ...]:
    """The groups of a cluster, from its spanning positions q (nq,), which are closed."""
    return tuple(_group(model, cluster, part, q) for part in parts_of(model, cluster.index))


def _group(model: Model, cluster: Cluster, part: Part, start: Array) -> Group:
    columns, place = list(part.columns), {c: n for n, c in enumerate(part.columns)}
    geometry = cluster.geometry
    low, high = part.low[columns].copy(), part.high[columns].copy()
    free = np.isinf(low) & np.isinf(high)
    coupled = _coupled(geometry, part)
    single = np.array([c in part.place for c in columns])
    length = np.array([part.lengths[c] for c in columns])
    several = len(columns) - part.rank > 1
    for n, c in enumerate(columns):
        if single[n] and free[n]:  # what slides without limits, and what winds up
            reach = part.unit[c] if length[n] else 2.0 * math.pi
            if length[n] or (several and c in coupled) or not cluster.implicit:
                x = start[part.place[c]]
                low[n], high[n] = x - reach, x + reach
    bounded = np.flatnonzero(single & (np.isfinite(low) | np.isfinite(high)))
    places = np.array([part.place[columns[n]] for n in bounded], dtype=np.intp)
    here = start[places]
    limits = Limits(
        bounded, places, np.minimum(low[bounded], here), np.maximum(high[bounded], here)
    )
    turns = [n for n, c in enumerate(columns) if single[n] and free[n] and not length[n]]
    turning = Turning(
        np.array(turns, dtype=np.intp),
        np.array([part.place[columns[n]] for n in turns], dtype=np.intp),
        np.array([1.0 / part.unit[columns[n]] for n in turns]),
    )
    rows = part.chart[:, columns] * part.unit[columns]
    along = Continuation(
        PartMechanism.of(model, cluster, part),
        len(columns),
        part.rank,
        limits,
        max(CROSSING, cluster.slack),
        cluster.slack if cluster.loose else 0.0,
        also=_within_slack(cluster) if cluster.slack else None,
    )
    mine = [x for link in geometry.links if link.v in place
            for x in range(link.q, link.q + link.joint.nq)]  # fmt: skip
    return Group(
        part,
        along,
        start,
        turning,
        np.array([part.place[columns[n]] for n in turns if columns[n] not in coupled], np.intp),
        np.array(mine, dtype=np.intp),
        rows,
        units(rows),
    )


def units(rows: Array) -> Array:
    """Rows of length 1."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY))


def _coupled(geometry: Geometry, part: Part) -> frozenset[int]:
    """Columns of a part that couplings relate: full turns of these alone lead elsewhere."""
    bodies = {body for each in part.linear for body, _ in each.terms}
    bodies |= {body for each in geometry.polynomials for body in (each.joint, each.of)}
    return frozenset(c for body in bodies for c in geometry.links[body].freedoms)


def _within_slack(cluster: Cluster) -> Callable[[Array], Mask]:
    """Which positions leave conditions open by no more than the file does."""
    geometry, slack = cluster.geometry, cluster.slack
    return lambda q: np.asarray(geometry.gap(q) <= slack)


@cached_on_model
def groups_from_neutral(model: Model, index: int) -> tuple[Group, ...]:
    """The groups of a cluster from the neutral configuration."""
    cluster = model.clusters[index]
    return groups(model, cluster, spanning_start(cluster, np.array(cluster.start)))
