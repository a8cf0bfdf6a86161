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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.errors import UnknownNameError, check_names, few
from robomodel.mechanism.constraints import LinearConstraint
from robomodel.mechanism.continuation import Ends
from robomodel.mechanism.walks import Positions
from robomodel.mobility.exploration import column_ranges
from robomodel.model.configurations.following import integrate_open
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster, columns_of, joint_slices, spanning_start
from robomodel.model.model import Model
from robomodel.reach.crossings import crossings
from robomodel.reach.groups import Group, Split, split, units
from robomodel.tolerances import CLOSED, MOVES, NOTHING, WITHIN

if TYPE_CHECKING:
    from numpy.random import Generator

# of the median over the set: draws keep as far away from singular configurations
REGULAR_DRAW = 0.05
POOL, CHORDS = 256, 16  # points in a polytope, and chords a freedom on the way there
REACHABLE_SEED = 20250118


@dataclass(frozen=True, eq=False)
class Linkage:
    """A cluster that continuation follows: its groups, and ``own`` places of its q in positions."""

    cluster: Cluster
    groups: tuple[Group, ...]
    split: Split
    own: Indices

    def completed(self, q: Array) -> Array:
        """The cluster's part of q (n, nq) from its groups' positions (n, spanning)."""
        return np.asarray(self.split.followers.completed(q)[:, self.own])

    def positions(self, q: Array) -> Array:
        """All positions (n, spanning) from its part of q (n, nq)."""
        return np.array([spanning_start(self.cluster, x) for x in q])

    def leads_to(self, q: Array, *, quick: bool = False) -> bool:
        """True if a path leads to where a closed part of q is; see :meth:`Group.contains`."""
        at = self.positions(q[None])
        return all(group.contains(at, quick=True)[0] if quick else group.leads_to(at[0])
                   for group in self.groups)  # fmt: skip

    def told(self, joints: Sequence[str]) -> list[Positions]:
        """The velocities of joints by the motions of each group, without those that rest in it.

        Those of balls have places -1.
        """
        links = [link for name, link in zip(self.cluster.joints, self.cluster.geometry.links,
                                            strict=True) if name in joints]  # fmt: skip
        columns = [c for link in links for c in link.freedoms]
        places = np.array([link.q if link.joint.nv == 1 else -1
                           for link in links for _ in link.freedoms], dtype=np.intp)  # fmt: skip
        found = []
        for group in self.groups:
            rows = self.split.rows(group, columns)
            moved = np.linalg.norm(rows, axis=1) > NOTHING
            found.append(Positions(rows[moved], places[moved]))
        return found


@dataclass(frozen=True, eq=False)
class Polytope:
    """A gear train: independent positions x, at ``places`` in q, with low ≤ P x ≤ high.

    ``limits`` (2, rows): the part of these ends that are limits of joints, else infinite. The
    others end draws alone.
    """

    places: Indices
    matrix: Array
    low: Array
    high: Array
    start: Array
    limits: Array

    def draw(self, rng: Generator, count: int) -> Array:
        """Points of it, uniform: a few chords on from points of the pool."""
        x = self._pool[rng.integers(len(self._pool), size=count)]
        return self._hit(rng, x, self.matrix.shape[1])

    @cached_property
    def _pool(self) -> Array:
        x = np.tile(self.start, (POOL, 1))
        return self._hit(np.random.default_rng(REACHABLE_SEED), x, CHORDS * self.matrix.shape[1])

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
        within = (at >= self.limits[0] - WITHIN) & (at <= self.limits[1] + WITHIN)
        return np.asarray(np.all(within, axis=1))

    def interval(self, ends: Array) -> tuple[float, float]:
        """The x that ends (2, rows) leave a train of one freedom."""
        both = np.sort(ends / self.matrix[:, 0], axis=0)
        return float(np.max(both[0])), float(np.min(both[1]))


@dataclass(frozen=True, eq=False)
class Reachable:
    """The set that a robot reaches from a closed configuration, ``start`` (nq,): a product of sets.

    ``linkages`` are followed; ``trains`` are gear trains of several freedoms; ``alone`` (places in
    q, low, high) are joints with limits only, and gear trains of one freedom, ``limits`` (2, ·)
    their ends that are limits of joints; ``turning`` are the places in q of joints with quaternions
    but for a floating base. ``thinned``: of each linkage's groups the rows of joints in which draws
    are uniform.
    """

    model: Model
    start: Array
    linkages: tuple[Linkage, ...]
    trains: tuple[Polytope, ...]
    alone: tuple[Indices, Array, Array]
    limits: Array
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
        only: Sequence[Cluster] | None = None,
        known: bool = False,
    ) -> Array:
        """Configurations (count, nq): closed, within limits, reachable.

        ``base_pose`` (7,) or (count, 7) of a floating base: by default that of the start.
        ``regular``: not next to where the independent coordinates are singular. ``only``: no
        linkages but these are drawn; the others are where they start. ``known``: as of
        :meth:`Group.draw`.
        """
        q = np.tile(self.start, (count, 1))
        places, low, high = self.alone
        if len(places):
            q[:, places] = rng.uniform(low, high, (count, len(places)))
        for train in self.trains:
            q[:, train.places] = train.draw(rng, count)
        for part in self.turning:
            q[:, part] = random_poses(rng, count)[:, part.start - part.stop :]
        for n, linkage in enumerate(self.linkages):
            if only is None or linkage.cluster in only:
                q[:, linkage.cluster.q] = self._drawn(rng, count, n, regular, known)
        if base_pose is not None:
            q[:, :7] = base_pose
        return q

    def _drawn(self, rng: Generator, count: int, n: int, regular: bool, known: bool) -> Array:
        """A linkage's part of q (count, ·)."""
        linkage = self.linkages[n]
        thinned = self.thinned[n] if self.thinned else (None,) * len(linkage.groups)
        q = np.tile(linkage.groups[0].start, (count, 1))
        for group, rows in zip(linkage.groups, thinned, strict=True):
            p = group.draw(rng, count, rows, known=known)
            for _ in range(20 if regular and group.freedoms else 0):  # draws what is not anew
                bad = np.flatnonzero(group.regularity(p) < REGULAR_DRAW * group.typical)
                if not len(bad):
                    break
                p = p.put(bad, group.draw(rng, len(bad), rows))
            q[:, group.places] = group.wrapped(p.q)[:, group.places]
        return linkage.completed(q)

    def independent(self, count: int, cluster: Cluster) -> int:
        """How many of so many draws of a linkage are independent of each other, at least."""
        numbers = (
            explored.independent(count)
            for linkage, thinned in zip(self.linkages, self.thinned, strict=False)
            for group, rows in zip(linkage.groups, thinned, strict=True)
            if linkage.cluster is cluster and rows is not None and group.freedoms
            for explored in (group.explored,)
            if explored is not None
        )
        return min(numbers, default=count)

    def known(self, rng: Generator, count: int, cluster: Cluster) -> Array:
        """A linkage's part of q (count, ·), next to dead points too, as :meth:`Group.known`."""
        linkage = next(each for each in self.linkages if each.cluster is cluster)
        q = np.tile(linkage.groups[0].start, (count, 1))
        for group in linkage.groups:
            points = group.known(rng, count).q
            q[:, group.places] = group.wrapped(points)[:, group.places]
        return linkage.completed(q)

    def around(self, rng: Generator, count: int, reach: float) -> tuple[Array, list[str]]:
        """Configurations (count, nq) to which ways of up to ``reach`` lead from the start.

        In radians, or sizes of clusters: neither joints nor independent velocities go further. A
        floating base moves, too. Also the names of linkages that could not move in any of them.
        """
        model, stuck = self.model, list[str]()
        followed = {each.cluster.index for each in self.linkages}
        moves = np.zeros((count, model.nv))
        for cluster in model.clusters:
            if cluster.index not in followed:
                moves[:, cluster.v] = rng.uniform(-reach, reach, (count, cluster.nv))
        q = integrate_open(model, np.tile(self.start, (count, 1)), moves)
        places = self.alone[0]
        q[:, places] = np.clip(q[:, places], *self.limits)
        for train in self.trains:
            out = np.flatnonzero(~train.within(q[:, train.places]))
            q[np.ix_(out, train.places)] = self.start[train.places]
        for linkage in self.linkages:
            spanning = np.tile(linkage.groups[0].start, (count, 1))
            moved = np.array([np.any(group.rates != 0.0, axis=1) for group in linkage.groups])
            for group, mine in zip(linkage.groups, moved, strict=True):
                if group.freedoms:
                    several = int(np.max(np.sum(moved[:, mine], axis=0), initial=1))
                    there = group.around(rng, count, reach / several).q
                    spanning[:, group.places] = there[:, group.places]
                    if np.array_equal(there, np.tile(group.start, (count, 1))):
                        stuck.append(linkage.cluster.name)
            q[:, linkage.cluster.q] = linkage.completed(spanning)
        return q, stuck

    # ---- membership

    def contains(self, q: Array) -> Mask:
        """Which configurations (n, nq) are reachable: closed, within limits, a path leads there.

        With several freedoms of a group as far as paths were found.
        """
        inside = np.asarray(np.isfinite(q).all(axis=1))
        low, high = self.limits
        at = q[:, self.alone[0]]
        inside &= np.all((at >= low - WITHIN) & (at <= high + WITHIN), axis=1)
        for train in self.trains:
            inside &= train.within(q[:, train.places])
        for linkage in self.linkages:
            rows = np.flatnonzero(inside)
            if not len(rows):
                break
            spanning = linkage.positions(q[rows][:, linkage.cluster.q])
            closed = linkage.cluster.geometry.gap(spanning) <= max(CLOSED, linkage.cluster.slack)
            for group in linkage.groups:
                good = np.flatnonzero(closed)
                closed[good] = np.all(group.along.limits.beyond(spanning[good]) <= WITHIN, axis=1)
                good = np.flatnonzero(closed)
                closed[good] = group.contains(spanning[good])
            inside[rows] = closed
        return inside

    def connected(self, q: Array) -> Mask:
        """Which closed configurations (n, nq) have linkages to which ways lead, limits aside.

        With several freedoms straight ways from points that are known, alone.
        """
        found = np.ones(len(q), dtype=bool)
        for linkage in self.linkages:
            for group in linkage.groups:
                left = np.flatnonzero(found)
                at = linkage.positions(q[left][:, linkage.cluster.q])
                found[left] = group.contains(at, quick=True)
        return found

    def elsewhere(self, q: Array, only: Sequence[Cluster] | None = None) -> list[str]:
        """The names of linkages that no path leads to where a closed q (nq,) has them.

        ``only``: no other linkages are looked at.
        """
        return [
            linkage.cluster.name
            for linkage in self.linkages
            if (only is None or linkage.cluster in only)
            and not linkage.leads_to(q[linkage.cluster.q])
        ]

    # ---- parts of it

    def narrowed(self, ends: Mapping[str, tuple[float, float]]) -> Reachable:
        """Its part in which joints of linkages are between these ends, by name."""
        groups = list[list[Group]]()
        for linkage in self.linkages:
            links = linkage.cluster.geometry.links
            mine = {links[n].q: ends[name] for n, name in enumerate(linkage.cluster.joints)
                    if name in ends}  # fmt: skip
            groups.append([each.narrowed(mine) for each in linkage.groups])
        return replace(self, linkages=self._with(groups))

    def _with(self, groups: Sequence[Sequence[Group]]) -> tuple[Linkage, ...]:
        """The linkages with parts of their groups, which are copies as before where they can be."""
        parts = {each: part for linkage, mine in zip(self.linkages, groups, strict=True)
                 for each, part in zip(linkage.groups, mine, strict=True)}  # fmt: skip
        for each, part in parts.items():
            if each.original is not None and (original := parts.get(each.original[0])) is not None:
                parts[each] = part.copying(original, each.original[1])
        return tuple(
            replace(linkage, groups=tuple(parts[each] for each in linkage.groups))
            for linkage in self.linkages
        )

    def spread(self, rng: Generator, count: int) -> Array:
        """Known draws, and the limits at which linkages of one freedom end (n, nq)."""
        q = [self.draw(rng, count, known=True)]
        for linkage in self.linkages:
            if len(linkage.groups) == 1 and linkage.groups[0].freedoms == 1:
                path = linkage.groups[0].path
                at = [n for n, end in zip((0, -1), path.ends, strict=True) if end.why == Ends.LIMIT]
                ends = np.tile(self.start, (len(at), 1))
                ends[:, linkage.cluster.q] = linkage.completed(path.points.q[at])
                q.append(ends)
        return np.concatenate(q)

    def along(self, cluster: Cluster) -> Array:
        """Configurations (n, nq) all along what a cluster's groups of one freedom reach.

        One group after the other; whatever else is where it starts.
        """
        found = [self.start[None]]
        for linkage in self.linkages:
            for group in linkage.groups if linkage.cluster is cluster else ():
                if group.freedoms == 1:
                    points = group.path.points.q
                    spanning = np.tile(group.start, (len(points), 1))
                    spanning[:, group.places] = points[:, group.places]
                    q = np.tile(self.start, (len(points), 1))
                    q[:, cluster.q] = linkage.completed(spanning)
                    found.append(q)
        return np.concatenate(found)

    def on_sheet(self, joints: Sequence[str], *, uniform: bool = True) -> Reachable:
        """Its part up to dead points of joints, by name; draws are uniform in them, or by volume.

        In each group of joints that conditions relate, either none of these are, or as many as the
        group has freedoms (but for spins of rods).
        """
        check_names(
            joints, self.model.joint_names, "no joint ", f" in '{self.model.name}'",
            error=UnknownNameError,
        )  # fmt: skip
        groups, thinned = list[list[Group]](), list[tuple[Array | None, ...]]()
        for linkage in self.linkages:
            told = linkage.told(joints)
            rows = [units(each.rows) for each in told]
            if any(map(len, rows)):
                _check_sheet(linkage, rows, joints)
            groups.append([group.on_sheet(mine, uniform=uniform) if len(mine.rows) else group
                           for group, mine in zip(linkage.groups, told, strict=True)])  # fmt: skip
            thinned.append(tuple(mine if len(mine) and uniform else None for mine in rows))
        return replace(self, linkages=self._with(groups), thinned=tuple(thinned))


def _check_sheet(linkage: Linkage, rows: Sequence[Array], joints: Sequence[str]) -> None:
    """Raise an error for joints that do not tell the motion of a linkage where it starts."""
    for group, mine in zip(linkage.groups, rows, strict=True):
        n = group.origin.n[0]
        sizes = np.linalg.svd(group.joints.rows @ n, compute_uv=False)
        moving = int(np.sum(sizes > MOVES))
        rank = int(np.linalg.matrix_rank(mine @ n, tol=MOVES)) if len(mine) else moving
        if rank < moving:
            names = [name for name in joints if name in linkage.cluster.joints]
            of = [name for name, link in zip(linkage.cluster.joints,
                                             linkage.cluster.geometry.links, strict=True)
                  if link.v in group.columns]  # fmt: skip
            raise ValueError(
                f"{few(names)} cannot tell where {few(of)} are: {moving} joint"
                f"{'' if moving == 1 else 's'} must, and {rank} of these move independently"
            )


class Branches:
    """Where rows of configurations (n, nq) are, to tell steps that leave their assembly mode."""

    def __init__(self, model: Model, q: Array) -> None:
        self._groups = [
            (linkage.cluster.q, group)
            for linkage in reachable(model).linkages
            for group in linkage.groups
            if linkage.cluster.implicit and group.freedoms
        ]
        self._points = [group.along.at(q[:, part]) for part, group in self._groups]

    def follow(self, rows: Indices, q: Array) -> Mask:
        """Which of these rows follow to closed q (m, nq), by steps that leave no assembly mode."""
        fine, ahead = np.ones(len(rows), dtype=bool), []
        for (part, group), points in zip(self._groups, self._points, strict=True):
            there, ends = group.along.led(points[rows], q[:, part])
            ahead.append(there)
            fine &= ends == Ends.FINE
        on = np.flatnonzero(fine)
        for n, there in enumerate(ahead):
            self._points[n] = self._points[n].put(rows[on], there[on])
        return fine

    def put(self, rows: Indices, q: Array) -> None:
        """These rows are at q (m, nq) now."""
        for n, (part, group) in enumerate(self._groups):
            self._points[n] = self._points[n].put(rows, group.along.at(q[:, part]))


def random_poses(rng: Generator, count: int) -> Array:
    """Poses (count, 7) of any orientation, within a metre along each axis."""
    shift, turn = rng.uniform(-1.0, 1.0, (count, 3)), rng.standard_normal((count, 4))
    return np.hstack([shift, turn / np.linalg.norm(turn, axis=1, keepdims=True)])


# ---- the set from a configuration ----------------------------------------------------------------


def from_configuration(model: Model, q: Array) -> Reachable:
    """The set reachable from a closed configuration q (nq,); limits that it passes go up to it."""
    linkages, trains, turning = list[Linkage](), list[Polytope](), list[slice]()
    places, ends = list[int](), list[tuple[float, float]]()
    limits = list[tuple[float, float]]()
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
            places += train.places.tolist()
            ends.append(train.interval(np.stack([train.low, train.high])))
            limits.append(train.interval(train.limits))
    low, high = np.array(ends).reshape(-1, 2).T
    alone = np.array(places, dtype=np.intp), low, np.maximum(low, high) + 0.0  # no -0.0
    bounds = np.array(limits).reshape(-1, 2).T
    return Reachable(model, q, tuple(linkages), tuple(trains), alone, bounds, tuple(turning))


@cached_on_model
def reachable(model: Model) -> Reachable:
    """The set that a robot reaches from its neutral configuration."""
    return from_configuration(model, model.neutral())


def leads_to(model: Model, cluster: Cluster, start: Array, q: Array) -> bool:
    """True if a path was found between a linkage's closed parts of q, start and end.

    Within limits, but for those that the end passes.
    """
    neutral = next(each for each in reachable(model).linkages if each.cluster is cluster)
    if neutral.leads_to(q, quick=True) and neutral.leads_to(start, quick=True):
        return True
    return _linkage(model, cluster, q).leads_to(start, quick=True)


def mode_notes(model: Model) -> tuple[str, ...]:
    """Where linkages of one freedom pass change points, at which other assembly modes begin."""
    notes = []
    for linkage in reachable(model).linkages:
        for group in linkage.groups:
            crossed = crossings(group) if group.freedoms == 1 else []
            if not crossed:
                continue
            links = linkage.cluster.geometry.links
            at = min(crossed, key=lambda q: float(np.max(np.abs(q - group.start))))
            single = [f"'{name}' = {round(float(at[link.q]), 6) + 0.0:.4g}"
                      for name, link in zip(linkage.cluster.joints, links, strict=True)
                      if link.v in group.columns and link.joint.nv == 1]  # fmt: skip
            notes.append(
                f"cluster '{linkage.cluster.name}' passes change points, as with "
                f"{', '.join(single[:4])}: other assembly modes begin there, which draws and "
                "reports leave out"
            )
    return tuple(notes)


def _linkage(model: Model, cluster: Cluster, q: Array) -> Linkage:
    start, found = spanning_start(cluster, q), split(model, cluster.index)
    links, first = cluster.geometry.links, cluster.bodies[0]
    held = [links[body - first] for body, _, _ in joint_slices(model, cluster)]
    own = [x for link in held for x in range(link.q, link.q + link.joint.nq)]
    groups = tuple(group.starting(start) for group in found.groups)
    return Linkage(cluster, groups, found, np.array(own, dtype=np.intp))


def _train(model: Model, cluster: Cluster, q: Array) -> Polytope:
    """Limits of an explicit cluster, or of one joint, by its independent positions."""
    constraint, links, first = cluster.constraint, cluster.geometry.links, cluster.bodies[0]
    matrix, offset = np.eye(len(q)), np.zeros(len(q))
    if isinstance(constraint, LinearConstraint):
        matrix, offset = np.array(constraint.position_matrix), np.array(constraint.offset)
    own = [x for body, part, _ in joint_slices(model, cluster)
           if links[body - first].joint.nq == links[body - first].joint.nv
           for x in range(part.start, part.stop)]  # fmt: skip
    columns, scalar = columns_of(model, cluster), [x for x in links if x.joint.nq == x.joint.nv]
    places = [place for link in scalar for place in range(link.q, link.q + link.joint.nq)]
    mine = [column for link in scalar for column in link.freedoms]
    moved = np.any(matrix[np.ix_(places, own)], axis=1)
    rows, at = matrix[np.ix_(places, own)][moved], (matrix[places] @ q)[moved]
    shift = offset[places][moved]
    limits = np.array([columns[c].limits for c in mine]).reshape(-1, 2)[moved].T - shift
    pitches = cluster.geometry.pitches
    threads = {n: pitches[c] for n, c in enumerate(mine) if c in pitches}
    ranges = np.stack(column_ranges([columns[c] for c in mine], 1.0, threads))[:, moved] - shift
    ranges = np.where(np.isfinite(limits).all(axis=0), limits, ranges)
    limits = np.stack([np.minimum(limits[0], at), np.maximum(limits[1], at)])
    ranges = np.stack([np.minimum(ranges[0], at), np.maximum(ranges[1], at)])
    turn = np.array([1.0 if columns[c].length else max(math.pi, 1.0 / pitches.get(c, math.inf))
                     for c in mine])[moved]  # fmt: skip
    ends = np.where(_bounding(rows / turn[:, None], np.all(ranges == limits, axis=0)), ranges,
                    limits)  # fmt: skip
    needed = np.any(np.isfinite(ends), axis=0)
    places_in_q = cluster.q.start + np.array(own, dtype=np.intp)
    low, high = ends[:, needed]
    return Polytope(places_in_q, rows[needed], low, high, q[own], limits[:, needed])


def _bounding(rows: Array, narrow: Mask) -> Mask:
    """True for joints of a gear train whose ranges end draws, whichever joints are independent.

    These are the joints whose limits are their ranges (``narrow``), and of the others, slowest
    first, as many as it takes to bound draws. ``rows``: their rates.
    """
    rates = np.linalg.svd(rows, full_matrices=False)[0] if rows.size else rows
    speed = np.round(np.linalg.norm(rates, axis=1), 9)
    chosen = narrow.copy()
    rank = int(np.linalg.matrix_rank(rates[chosen])) if np.any(chosen) else 0
    for n in np.argsort(np.where(narrow, np.inf, speed), kind="stable")[: int(np.sum(~narrow))]:
        chosen[n] = True
        more = int(np.linalg.matrix_rank(rates[chosen]))
        chosen[n], rank = more > rank, max(rank, more)
    return chosen
