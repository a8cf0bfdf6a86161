"""Where a robot can be: its reachable configurations, draws from them, and what is one of them.

*Reachable* are the configurations to which closed paths within limits lead from a start, the
neutral one for :func:`reachable`, straight on at change points: no assembly mode for which the
robot would have to be taken apart. The *sheet* of some joints (:meth:`Reachable.on_sheet`) is the
part of it up to their dead points, where these joints tell where the robot is.

The set is a product: of the groups of joints that conditions relate
(:class:`robomodel.reach.groups.Group`), of joints and gear trains with limits alone, which are
boxes and polytopes, and of the base, which is not drawn. Its points are drawn by volume in
comparable units (radians, sizes of clusters), which needs no choice of coordinates; on a sheet,
uniformly in the joints that it is of. What is drawn has a path to the start, and the same generator
gives the same draws, whatever was drawn before. With several freedoms the set is known as far as
walks have found it: what they miss is not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.errors import UnknownNameError, check_names, few
from robomodel.mechanism.constraints import LinearConstraint
from robomodel.mobility.exploration import column_ranges
from robomodel.model.configurations.following import integrate_open
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster, columns_of, joint_slices
from robomodel.model.model import Model
from robomodel.reach.groups import Group, groups, units
from robomodel.reach.ranges import spanning_start
from robomodel.tolerances import CLOSED, MOVES, NOTHING, WITHIN

if TYPE_CHECKING:
    from numpy.random import Generator

REGULAR = 0.05  # of the median over the set: draws keep as far away from singular configurations
REDRAWS = 20  # of what is not
POOL, CHORDS = 256, 16  # points in a polytope, and chords a freedom on the way there
SEED = 20250118


@dataclass(frozen=True, eq=False)
class Linkage:
    """The groups of a cluster that continuation follows, and where its part of q is.

    ``beside``: joints that are in no group, but move others together with these (places in the
    spanning positions, low, high), and ``limits`` (low, high) of all positions.
    """

    cluster: Cluster
    groups: tuple[Group, ...]
    own: Indices  # places in the spanning positions of what the cluster's part of q holds
    beside: tuple[Indices, Array, Array]
    limits: tuple[Array, Array]

    def completed(self, q: Array) -> Array:
        """The cluster's part of q (n, nq) from its groups' positions (n, spanning)."""
        return self.whole(q)[:, self.own]

    def whole(self, q: Array) -> Array:
        """All positions (n, spanning) from those of its groups."""
        for group in self.groups[:1]:
            q = group.part.completed(q)
        return q

    def drawn_beside(self, rng: Generator, q: Array) -> Array:
        """Positions (n, spanning) with the joints beside its groups anywhere within limits."""
        places, low, high = self.beside
        for _ in range(REDRAWS if len(places) else 0):
            at = self.whole(q)
            out = np.any((at < self.limits[0] - WITHIN) | (at > self.limits[1] + WITHIN), axis=1)
            if _ and not out.any():
                break
            rows = np.flatnonzero(out) if _ else np.arange(len(q))
            q[np.ix_(rows, places)] = rng.uniform(low, high, (len(rows), len(places)))
        return q

    def positions(self, q: Array) -> Array:
        """All positions (n, spanning) from its part of q (n, nq)."""
        return np.array([spanning_start(self.cluster, x) for x in q])


@dataclass(frozen=True, eq=False)
class Polytope:
    """A gear train: independent positions x, at ``places`` in q, with low ≤ P x ≤ high."""

    places: Indices
    matrix: Array
    low: Array
    high: Array
    start: Array

    def draw(self, rng: Generator, count: int) -> Array:
        """Points of it, uniform: a few chords on from points of the pool."""
        x = self._pool[rng.integers(len(self._pool), size=count)]
        return self._hit(rng, x, self.matrix.shape[1])

    @cached_property
    def _pool(self) -> Array:
        x = np.tile(self.start, (POOL, 1))
        return self._hit(np.random.default_rng(SEED), x, CHORDS * self.matrix.shape[1])

    def _hit(self, rng: Generator, x: Array, times: int) -> Array:
        """Hit and run (Smith, 1984): uniform on the chord through x in a random direction."""
        x = x.copy()
        for d in rng.standard_normal((times, *x.shape)) * self._widths:
            rates, at = d @ self.matrix.T, x @ self.matrix.T
            moving = np.abs(rates) > NOTHING * np.max(np.abs(rates), axis=1, keepdims=True)
            rates = np.where(moving, rates, NOTHING)
            ends = np.stack([(self.low - at) / rates, (self.high - at) / rates])
            first = np.max(np.where(moving, np.min(ends, axis=0), -np.inf), axis=1)
            last = np.min(np.where(moving, np.max(ends, axis=0), np.inf), axis=1)
            x += (first + rng.random(len(x)) * np.maximum(last - first, 0.0))[:, None] * d
        return x

    @cached_property
    def _widths(self) -> Array:
        """How far each position goes alone, about: a scale of directions."""
        rates = np.abs(self.matrix)
        with np.errstate(divide="ignore", invalid="ignore"):
            spans = np.where(rates > NOTHING, (self.high - self.low)[:, None] / rates, np.inf)
        return np.asarray(np.min(spans, axis=0))

    def within(self, x: Array) -> Mask:
        """Which x (n, nq) are within."""
        at = x @ self.matrix.T
        within = (at >= self.low - WITHIN) & (at <= self.high + WITHIN)
        return np.asarray(np.all(within, axis=1))


@dataclass(frozen=True, eq=False)
class Reachable:
    """What a robot reaches from a closed configuration, ``start`` (nq,): a product of sets.

    ``linkages`` are followed; ``trains`` are gear trains of several freedoms; ``alone`` (places in
    q, low, high) are joints with limits only, and gear trains of one freedom; ``turning`` are the
    places in q of joints with quaternions but for a floating base. ``thinned``: of each linkage's
    groups the rows of joints in which draws are uniform.
    """

    model: Model
    start: Array
    linkages: tuple[Linkage, ...]
    trains: tuple[Polytope, ...]
    alone: tuple[Indices, Array, Array]
    turning: tuple[slice, ...]
    thinned: tuple[tuple[Array | None, ...], ...] = ()

    # ---- draws

    def draw(
        self,
        rng: Generator,
        count: int,
        *,
        base_pose: Array | None = None,
        regular: bool = True,
    ) -> Array:
        """Configurations (count, nq): closed, within limits, reachable.

        ``base_pose`` (7,) or (count, 7) of a floating base: by default that of the start.
        ``regular``: not next to where the independent coordinates are singular.
        """
        q = np.tile(self.start, (count, 1))
        places, low, high = self.alone
        if len(places):
            q[:, places] = rng.uniform(low, high, (count, len(places)))
        for train in self.trains:
            q[:, train.places] = train.draw(rng, count)
        for part in self.turning:
            ball = slice(part.stop - 4, part.stop)
            shift, turn = rng.uniform(-1.0, 1.0, (count, 3)), rng.standard_normal((count, 4))
            q[:, part.start : ball.start] = shift[:, : ball.start - part.start]
            q[:, ball] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
        for n, linkage in enumerate(self.linkages):
            q[:, linkage.cluster.q] = self._drawn(rng, count, n, regular)
        if base_pose is not None:
            q[:, :7] = base_pose
        return q

    def _drawn(self, rng: Generator, count: int, n: int, regular: bool) -> Array:
        """A linkage's part of q (count, ·)."""
        linkage = self.linkages[n]
        thinned = self.thinned[n] if self.thinned else (None,) * len(linkage.groups)
        q = np.tile(linkage.groups[0].start, (count, 1))
        for group, rows in zip(linkage.groups, thinned, strict=True):
            p = group.draw(rng, count, rows)
            for _ in range(REDRAWS if regular and group.freedoms else 0):
                bad = np.flatnonzero(group.regularity(p) < REGULAR * group.typical)
                if not len(bad):
                    break
                p = p.put(bad, group.draw(rng, len(bad), rows))
            q[:, group.places] = group.wrapped(p.q)[:, group.places]
        return linkage.completed(linkage.drawn_beside(rng, q))

    def around(self, rng: Generator, count: int, reach: float) -> Array:
        """Configurations (count, nq) to which ways of up to ``reach`` lead from the start.

        In radians, or sizes of clusters: neither joints nor independent velocities go further. A
        floating base and all other joints move, too.
        """
        model = self.model
        q = np.tile(self.start, (count, 1))
        followed = {each.cluster.index for each in self.linkages}
        moves = np.zeros((count, model.nv))
        for cluster in model.clusters:
            if cluster.index not in followed:
                moves[:, cluster.v] = rng.uniform(-reach, reach, (count, cluster.nv))
        if model.nv:
            q = integrate_open(model, q, moves)
        places, low, high = self.alone
        q[:, places] = np.clip(q[:, places], low, high)
        for train in self.trains:
            left = np.flatnonzero(~train.within(q[:, train.places]))
            q[np.ix_(left, train.places)] = self.start[train.places]
        for linkage in self.linkages:
            spanning = np.tile(linkage.groups[0].start, (count, 1))
            for group in linkage.groups:
                if group.freedoms:
                    spanning[:, group.places] = group.around(rng, count, reach).q[:, group.places]
            q[:, linkage.cluster.q] = linkage.completed(spanning)
        return q

    # ---- membership

    def contains(self, q: Array) -> Mask:
        """Which configurations (n, nq) are reachable: closed, within limits, a path leads there.

        With several freedoms of a group as far as paths were found.
        """
        inside = np.asarray(np.isfinite(q).all(axis=1))
        places, low, high = self.alone
        at = q[:, places]
        inside &= np.all((at >= low - WITHIN) & (at <= high + WITHIN), axis=1)
        for train in self.trains:
            inside &= train.within(q[:, train.places])
        for linkage in self.linkages:
            rows = np.flatnonzero(inside)
            spanning = linkage.positions(q[rows][:, linkage.cluster.q])
            closed = linkage.cluster.geometry.gap(spanning) <= max(CLOSED, linkage.cluster.slack)
            for group in linkage.groups:
                good = np.flatnonzero(closed)
                closed[good] = np.all(group.along.limits.beyond(spanning[good]) <= WITHIN, axis=1)
                good = np.flatnonzero(closed)
                closed[good] = group.contains(spanning[good])
            inside[rows] = closed
        return inside

    # ---- sheets

    def on_sheet(self, joints: Sequence[str], *, uniform: bool = True) -> Reachable:
        """Its part up to dead points of joints, by name; draws are uniform in them, or by volume.

        In each group of joints that conditions relate, either none of these are, or as many as the
        group has freedoms (but for spins of rods).
        """
        check_names(
            joints, self.model.joint_names, "no joint ", f" in '{self.model.name}'",
            error=UnknownNameError,
        )  # fmt: skip
        linkages, thinned = [], []
        for linkage in self.linkages:
            mine, rows_of = [], []
            for group in linkage.groups:
                rows = _rows(linkage.cluster, group, joints)
                if len(rows):
                    _check_sheet(linkage.cluster, group, rows, joints)
                mine.append(group.on_sheet(rows) if len(rows) else group)
                rows_of.append(rows if len(rows) and uniform else None)
            linkages.append(replace(linkage, groups=tuple(mine)))
            thinned.append(tuple(rows_of))
        return replace(self, linkages=tuple(linkages), thinned=tuple(thinned))


def _rows(cluster: Cluster, group: Group, joints: Sequence[str]) -> Array:
    """Rows (k, columns) of the velocities of those joints that a group moves."""
    part, links = group.part, cluster.geometry.links
    column = {links[n].q: i for i, c in enumerate(part.columns)
              for n in range(len(links)) if links[n].v == c}  # fmt: skip
    unit = part.unit[list(part.columns)]
    rates: dict[int, Array] = {}
    for place, i in column.items():
        rates[place] = np.eye(len(unit))[i] * unit
    for place, terms, _ in part.followers:
        known = [ratio * rates[other] for other, ratio in terms if other in rates]
        if known:
            rates[place] = np.sum(known, axis=0)
    rows = [rates[links[n].q] for n, name in enumerate(cluster.joints)
            if name in joints and links[n].joint.nv == 1 and links[n].q in rates]  # fmt: skip
    return units(np.array(rows).reshape(-1, len(unit)))


def _check_sheet(cluster: Cluster, group: Group, rows: Array, joints: Sequence[str]) -> None:
    """Raise an error for joints that do not tell the motion of a group where it starts."""
    n = group.origin.n[0]
    interest = [group.part.columns.index(c) for c in group.part.interest]
    moving = int(np.sum(np.linalg.svd(n[interest], compute_uv=False) > MOVES))
    rank = int(np.linalg.matrix_rank(rows @ n, tol=MOVES))
    if rank < len(rows) or len(rows) != moving:
        mine = [name for name in joints if name in cluster.joints]
        raise ValueError(
            f"{few(mine)} cannot tell where cluster '{cluster.name}' is: {moving} joint"
            f"{'' if moving == 1 else 's'} must, and {rank} of these move independently"
        )


# ---- the set from a configuration ----------------------------------------------------------------


def from_configuration(model: Model, q: Array) -> Reachable:
    """What is reachable from a closed configuration q (nq,); limits that it passes go up to it."""
    linkages, trains, turning = list[Linkage](), list[Polytope](), list[slice]()
    places, ends = list[int](), list[tuple[float, float]]()
    for cluster in model.clusters:
        if cluster.kind != "joint" and not isinstance(cluster.constraint, LinearConstraint):
            linkages.append(_linkage(model, cluster, q[cluster.q]))
            continue
        if not cluster.nv or model.joints[cluster.bodies[0]].name == model.floating_base:
            continue
        for body, part, _ in joint_slices(model, cluster):
            if model.nodes[body].joint.nq != model.nodes[body].joint.nv:
                first = cluster.q.start
                turning.append(slice(first + part.start, first + part.stop))
        train = _train(model, cluster, q[cluster.q])
        if len(train.places) > 1:
            trains.append(train)
        elif len(train.places):
            rates = train.matrix[:, 0]
            both = np.stack([train.low / rates, train.high / rates])
            places += train.places.tolist()
            ends.append((float(np.max(np.min(both, axis=0))), float(np.min(np.max(both, axis=0)))))
    low, high = np.array(ends).reshape(-1, 2).T
    alone = np.array(places, dtype=np.intp), low, np.maximum(low, high)
    return Reachable(model, q, tuple(linkages), tuple(trains), alone, tuple(turning))


@cached_on_model
def reachable(model: Model) -> Reachable:
    """What a robot reaches from its neutral configuration."""
    return from_configuration(model, model.neutral())


def _linkage(model: Model, cluster: Cluster, q: Array) -> Linkage:
    spanning = spanning_start(cluster, q)
    links, first = cluster.geometry.links, cluster.bodies[0]
    held = [links[body - first] for body, _, _ in joint_slices(model, cluster)]
    own = [x for link in held for x in range(link.q, link.q + link.joint.nq)]
    found, columns = groups(model, cluster, spanning), columns_of(model, cluster)
    low, high = np.full(len(spanning), -np.inf), np.full(len(spanning), np.inf)
    for link in links:
        if link.joint.nv == 1:
            low[link.q], high[link.q] = columns[link.v].limits
    low, high = np.minimum(low, spanning), np.maximum(high, spanning)
    linkage = Linkage(cluster, found, np.array(own, dtype=np.intp), _nothing_beside(), (low, high))
    taken = {x for group in found for x in group.places}
    taken |= {place for group in found[:1] for place, _, _ in group.part.followers}
    places = [link.q for link in links if link.joint.nv == 1 and link.q not in taken]
    if not places or not found:
        return linkage
    still = linkage.whole(spanning[None])[0]
    moved = linkage.whole(spanning + np.eye(len(spanning))[places]) - still
    slow = [link.q for body, link in zip(cluster.bodies, links, strict=True)
            if not model.nodes[body].axisymmetric]  # fmt: skip
    turns = np.maximum(np.max(np.abs(moved[:, slow]), axis=1, initial=0.0), NOTHING)
    span = np.where(turns > NOTHING, math.pi / turns, math.pi)
    at = spanning[places]
    bounds = np.maximum(low[places], at - span), np.minimum(high[places], at + span)
    return replace(linkage, beside=(np.array(places, dtype=np.intp), *bounds))


def _nothing_beside() -> tuple[Indices, Array, Array]:
    return np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros(0)


def _train(model: Model, cluster: Cluster, q: Array) -> Polytope:
    """Limits of an explicit cluster, or of one joint, by its independent positions."""
    constraint, links, first = cluster.constraint, cluster.geometry.links, cluster.bodies[0]
    matrix, offset = np.eye(len(q)), np.zeros(len(q))
    if isinstance(constraint, LinearConstraint):
        matrix, offset = np.array(constraint.position_matrix), np.array(constraint.offset)
    columns = columns_of(model, cluster)
    ranges = np.transpose(column_ranges(columns, 1.0))
    own = [x for body, part, _ in joint_slices(model, cluster)
           if links[body - first].joint.nq == links[body - first].joint.nv
           for x in range(part.start, part.stop)]  # fmt: skip
    rows, ends = list[Array](), list[tuple[float, float]]()
    for body, link in zip(cluster.bodies, links, strict=True):
        if link.joint.nq != link.joint.nv:
            continue
        for place, c in zip(range(link.q, link.q + link.joint.nq), link.freedoms, strict=True):
            low, high = ranges[c] if model.joints[body].independent else columns[c].limits
            x = float(matrix[place] @ q)
            if (math.isfinite(low) or math.isfinite(high)) and np.any(matrix[place, own]):
                rows.append(matrix[place, own])
                ends.append((min(low - offset[place], x), max(high - offset[place], x)))
    low, high = np.array(ends).reshape(-1, 2).T
    places = cluster.q.start + np.array(own, dtype=np.intp)
    return Polytope(places, np.array(rows).reshape(len(rows), len(own)), low, high, q[own])
