"""The joints that carry a robot's limbs: in which reports and open trees speak of it.

In each cluster as many joints as it has freedoms, but for spins of rods, and none at whose balls
these spin if others determine it. Of the sets of whole joints that do over most of its range, it is
the one with the least displacement of links while the other joints are locked. So a knee is chosen,
not its crank; pitch and roll of an ankle, not its two motors, whose cranks and rods are light and
carry nothing. docs/approximate.md gives the reasons.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product
from typing import NamedTuple, TypeAlias

import numpy as np

from robomodel.arrays import Array, Mask, median
from robomodel.description import PolynomialCoupling
from robomodel.errors import few
from robomodel.mechanism import closure as newton
from robomodel.mechanism.copies import Image, as_written, images
from robomodel.mechanism.graph import WORLD
from robomodel.model.build import with_spins_locked
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.model.spins import find_spins, joints_of_balls
from robomodel.reach.displacements import Displacements, States
from robomodel.reach.motions import ClusterMotion
from robomodel.reach.rotors import rotors
from robomodel.scalars import value_of
from robomodel.tolerances import CLOSED, MOVES, NOTHING, SINGULAR, TINY, WITHIN

REGULAR_TREE = 0.003  # least singular value of the joints at neutral: 0 at a dead point
DETERMINED = 0.15  # of that: what counts as determined
IN_RANGE = 0.6  # share of the configurations in which a set of joints must determine the cluster
SETS = 3000  # of joints that are tried
EVERY = 6  # where there are very many sets: steps after which exchanges are compared
EQUALLY_FAR = 1.15  # displacements within this factor are the same; the better conditioned set wins
SERIAL = 1.5  # of the least displacement: so much the joints in series to the heaviest may have
FREE, AT_MOST = 0.6, 1.2  # rad, or cluster sizes, from neutral: without limits, and at most
FINALISTS, DISPLACES = 4, 3.0  # sets whose ranges are compared, and displace at most so much more
# most cells of a box of positions, and most ways along all joints at once; most along a joint
CELLS, ALONG = 64, 16
HOPS = 7  # steps on a way
LIMB_NEWTON = 12  # of Newton's method for a step; what needs more is beyond the range
# of the displacement with all locked: what joints that carry move links at least; what is left if
# joints take a third off, or a tenth; what counts as nothing
CARRIES, THIRD_OFF, TENTH_OFF, LED = 0.15, 0.67, 0.9, 0.02
LIMB_SEED = 20260301


class UndeterminedError(ValueError):
    """A cluster that the wanted joints, or no whole joints, determine."""


def limb_joints(model: Model) -> tuple[str, ...]:
    """The joints that carry the limbs: those of the open tree (:func:`robomodel.approximate_tree`).

    Of a cluster that no whole joints determine, the independent ones. A floating base is not among
    them.

    Args:
        model: The robot.

    Returns:
        joints: Their names, in the order of ``model.joint_names``.

    Examples:
        >>> rm.limb_joints(rm.robots.load("parallel_ankle"))
        ('pitch', 'roll')
    """
    bodies = sorted(body for each in limb_bodies(model) for body in each)
    names = [model.joints[body].name for body in bodies]
    return tuple(name for name in names if name != model.floating_base)


@cached_on_model
def limb_bodies(model: Model) -> tuple[tuple[int, ...], ...]:
    """The bodies of :func:`limb_joints`, and a floating base, by clusters."""
    view = without_spins(model)
    places = {joint.name: body for body, joint in enumerate(model.joints)}
    result = []
    for cluster in model.clusters:
        mine = next(c for c in view.clusters if set(c.joints) & set(cluster.joints))
        try:
            names = [view.joints[body].name for body in chosen(view, mine.index, ())]
        except UndeterminedError:
            names = [model.joints[b].name for b in cluster.bodies if model.joints[b].independent]
        result.append(tuple(sorted(places[name] for name in names)))
    return tuple(result)


@cached_on_model
def without_spins(model: Model) -> Model:
    """The robot with the spins of its rods locked, which no joint carries."""
    spins = find_spins(model)
    return with_spins_locked(model, spins) if spins else model


def chosen(model: Model, index: int, wanted: tuple[int, ...]) -> tuple[int, ...]:
    """The bodies whose joints carry a cluster, those of ``wanted`` bodies among them.

    Raises ValueError if the wanted joints, or no whole joints, determine the cluster.
    """
    return finalists(model, index, wanted)[0]


@cached_on_model
def finalists(model: Model, index: int, wanted: tuple[int, ...]) -> Sequence[tuple[int, ...]]:
    """The same, and sets that come next, as far as they are compared: of copies none."""
    choice = Choice(model, model.clusters[index], wanted)
    if (copied := choice.of_copy()) is not None:
        return [copied]
    sets = list(choice.sets())
    if len(sets) > 1:  # the best are compared again, over the ranges of all of them
        displacements = Displacements.of(model, choice.cluster, choice.start)
        positions = choice.paths(EVERY if choice.many else 1)
        paths = Ranges.of(choice, displacements, [(positions, choice.frames(positions))])
        if choice.many:
            series = choice.series(displacements.inertias[:, 3, 3])
            if series and {*wanted} <= {*series}:
                sets += {choice.telling(series)} - {*sets}
        sets = choice.ranked(sets, paths)
        best = None
        while choice.many and sets[0] != best:  # one joint after the other is exchanged
            best = sets[0]
            sets = choice.ranked([best, *choice.beside(best)], paths)
        sets = sets[:FINALISTS]
    if len(sets) > 1:
        ways = [choice.driven(bodies) for bodies in sets]
        sets = choice.ranked(sets, Ranges.of(choice, displacements, ways))
    if not sets:
        raise choice.refusal()
    return sets


_Ranked: TypeAlias = tuple[float, tuple[float, ...], tuple[int, ...]]
"""A share that a set displaces, the order of like ones, its bodies."""


_Fine: TypeAlias = tuple[float, float, tuple[int, ...]]
"""A share that a set displaces, its median regularity, its bodies."""


class Frames(NamedTuple):
    """A cluster's motions (n, spanning velocities, nv) by a basis that is orthonormal for links.

    ``side`` (n,): the sign that makes one of det of rows of them that changes at dead points alone.
    ``good`` (n,): where the links tell the motion.
    """

    motions: Array
    side: Array
    good: Mask

    def at(self, rows: slice | Mask) -> Frames:
        """Some of them."""
        return Frames(self.motions[rows], self.side[rows], self.good[rows])

    @staticmethod
    def joined(some: Sequence[Frames]) -> Frames:
        """All of them, one after the other."""
        motions, side, good = zip(*some, strict=True)
        return Frames(np.concatenate(motions), np.concatenate(side), np.concatenate(good))


@dataclass(frozen=True, eq=False)
class Choice:
    """Sets of a cluster's joints, and how well they determine it; ``wanted`` are among them."""

    model: Model
    cluster: Cluster
    wanted: Sequence[int] = ()

    @cached_property
    def motion(self) -> ClusterMotion:
        """The cluster in comparable units."""
        return ClusterMotion.of(self.model, self.cluster)

    @cached_property
    def start(self) -> Array:
        """Its spanning positions at neutral."""
        neutral = self.model.spanning_positions(self.model.neutral().tolist())
        return np.array([value_of(x) for x in neutral[self.cluster.spanning_q]])

    @cached_property
    def rotors(self) -> Mapping[int, float]:
        """Its rotors, as of :func:`rotors`."""
        return rotors(self.model, self.cluster)

    def sets(self) -> Iterator[tuple[int, ...]]:
        """Sets of whole joints with as many freedoms as the cluster, without rotors if possible.

        For gears and belts, only the set of :func:`select_in`. Where there are very many, a set
        that tells the motion well, and those in which one joint is another.
        """
        model, cluster = self.model, self.cluster
        if cluster.kind != "loops" and not self.wanted:
            yield tuple(sorted(select_in(model, cluster, self.motion.rates(self.start))))
            return
        freedoms, missing, pool = self.freedoms, self.missing, self.pool
        if missing < 0:
            raise self.refusal()
        if self.many:
            told = self.telling(self.wanted)
            yield from (told, *self.beside(told))
            return
        count = 0
        for size in range(len(pool) + 1):
            for more in combinations(pool, size):
                if sum(freedoms[b] for b in more) == missing:
                    yield tuple(sorted((*self.wanted, *more)))
                    count += 1
            if count > SETS or size > missing:
                return

    def of_copy(self) -> tuple[int, ...] | None:
        """The choice in a cluster before it of which it is a copy, or a mirror image.

        With like limits, independent joints and inertias, its own weighing would be of like
        numbers. None without such a cluster, or where its joints do not tell the copy at neutral.
        """
        model, cluster = self.model, self.cluster
        before = [] if self.wanted or cluster.kind != "loops" else model.clusters[: cluster.index]
        for other in before:
            if other.kind == "loops" and (image := self._image_of(other)) is not None:
                try:
                    found = chosen(model, other.index, ())
                except UndeterminedError:
                    return None
                links = sorted(image.links[other.bodies.index(body)] for body in found)
                bodies = tuple(cluster.bodies[n] for n in links)
                frames = self.frames(self.start[None])
                return bodies if self.regularity(frames, bodies)[0] > REGULAR_TREE else None
        return None

    def _image_of(self, other: Cluster) -> Image | None:
        """The map from a cluster of which this is a copy, with like limits and inertias."""
        motion, original = self.motion, Choice(self.model, other)
        for image in images(other.geometry, self.cluster.geometry):
            limits = (original.motion.low, original.motion.high)
            independent = image.taken(other.columns) == tuple(sorted(self.cluster.columns))
            if not (independent and image.keeps(limits, (motion.low, motion.high))):
                continue
            mine, others = (
                Displacements.of(self.model, each.cluster, each.start).inertias
                for each in (self, original)
            )
            turned = image.bodies @ others @ np.swapaxes(image.bodies, 1, 2)
            if as_written(turned, mine[[*image.links]], float(np.max(np.abs(mine), initial=0.0))):
                return image
        return None

    @cached_property
    def freedoms(self) -> dict[int, int]:
        """The number of freedoms of each body's joint."""
        return {body: self.model.nodes[body].joint.nv for body in self.cluster.bodies}

    @cached_property
    def missing(self) -> int:
        """The number of freedoms beside those of the wanted joints."""
        return self.cluster.nv - sum(self.freedoms[b] for b in self.wanted)

    @cached_property
    def pool(self) -> list[int]:
        """The bodies whose joints may give these: no rotors, and no balls of rods, if possible."""
        others = [b for b in self.cluster.bodies if b not in self.wanted]
        limbs = [b for b in others if b not in self.rotors]
        balls = joints_of_balls(self.model)
        apart = [b for b in limbs if self.model.joints[b].name not in balls]
        if len(apart) < len(limbs):
            columns = [c for b in (*self.wanted, *apart) for c in self.columns(b)]
            told = np.linalg.svd(self.motion.null(self.start)[columns], compute_uv=False)
            if np.sum(told > REGULAR_TREE) == self.cluster.nv:
                return apart
        return limbs if sum(self.freedoms[b] for b in limbs) >= self.missing else others

    @cached_property
    def many(self) -> bool:
        """True if there are too many sets to try them all."""
        if self.missing < 0 or (self.cluster.kind != "loops" and not self.wanted):
            return False
        return _combinations([self.freedoms[b] for b in self.pool], self.missing) > SETS

    def telling(self, first: Sequence[int]) -> tuple[int, ...]:
        """A set with these joints, chosen joint by joint, each the one that others tell least."""
        motions = self.motion.null(self.start)
        chosen, missing = list(first), self.cluster.nv - sum(self.freedoms[b] for b in first)
        while missing > 0:
            rows = motions[[c for b in chosen for c in self.columns(b)]]
            rest = motions - motions @ np.linalg.pinv(rows, rcond=SINGULAR) @ rows
            left = [b for b in self.pool if b not in chosen and self.freedoms[b] <= missing]
            sizes = {b: round(float(np.linalg.norm(rest[self.columns(b)], -2)), 9) for b in left}
            if max(sizes.values(), default=0.0) <= MOVES:
                raise self.refusal()
            chosen.append(max(sizes, key=lambda b: sizes[b]))
            missing -= self.freedoms[chosen[-1]]
        return tuple(sorted(chosen))

    def beside(self, bodies: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """The sets in which one joint is another of as many freedoms."""
        for out in bodies:
            for more in self.pool if out not in self.wanted else ():
                if more not in bodies and self.freedoms[more] == self.freedoms[out]:
                    yield tuple(sorted({*bodies} - {out} | {more}))

    def ranked(self, sets: Sequence[tuple[int, ...]], ranges: Ranges) -> list[tuple[int, ...]]:
        """The sets with small displacement, the least first; of like ones, the best conditioned.

        The displacement is a share of that with all locked, and each of the ranges counts as much.
        Sets whose motion alone hardly moves links from where they are if all is locked carry
        nothing, as rods. Where others carry, these are left out, however far links then are off.
        Where no set takes a tenth off, as of a gripper's parallelograms, joints that follow do, and
        sets are compared with these; of like ones those on what carries the cluster are first, then
        joints that the file gives motors, then those next to that.
        """
        start = ranges.frames.at(slice(1))
        sizes = self.regularities(start, sets)[:, 0].tolist() if sets else []
        regular = dict(zip(sets, sizes, strict=True))
        series = self.series(ranges.states[0].displacements.inertias[:, 3, 3])
        firm = [bodies for bodies in sets if regular[bodies] > REGULAR_TREE]
        weak = [bodies for bodies in sets if regular[bodies] > 0.0]
        fine = self._fine(firm, ranges, IN_RANGE, series) or self._fine(weak, ranges, TINY, series)
        if not fine:
            raise self.refusal()
        ranked, described = list[_Ranked](), self.model.description
        driven = {joint.name for joint in described.joints if joint.motor}
        driven |= {each.joints[0].name for each in described.transmissions if each.joints}
        depths = dict[int, int]()  # of bodies, from what carries the cluster
        for body in self.cluster.bodies:
            depths[body] = 1 + depths.get(self.model.nodes[body].parent, 0)
        for moved, size, bodies in fine:
            resting = sum(self.model.joints[body].name not in driven for body in bodies)
            like = (-round(size, 2), resting, sum(depths[body] for body in bodies))
            ranked.append((moved, like, bodies))
        least = min(moved for moved, *_ in ranked)
        if least > TENTH_OFF and not self.many:
            within, nodes = {*self.cluster.bodies}, self.model.nodes
            led = [(math.sqrt(np.mean([x.led(bodies) for x in ranges.states])),
                    (sum(nodes[body].parent in within for body in bodies), *order), bodies)
                   for _, order, bodies in ranked]  # fmt: skip
            if min(led)[0] <= TENTH_OFF:
                ranked, least = led, min(led)[0] + LED
        ranked.sort(
            key=lambda each: (
                each[2] != series or each[0] > SERIAL * least,
                max(each[0], EQUALLY_FAR * least + 1e-9),
                *each[1:],
            )
        )
        return [bodies for moved, _, bodies in ranked if moved <= DISPLACES * least + 1e-9]

    def _fine(
        self, sets: Sequence[tuple[int, ...]], ranges: Ranges, share: float, series: tuple[int, ...]
    ) -> list[_Fine]:
        """Sets that determine the cluster in this share of the states, by what they displace.

        The least first; those that carry, if any do. Sets that displace too much to be among the
        finalists are left out, but for the joints in ``series``.
        """
        far = [(*ranges.displaced(bodies), bodies) for bodies in sets]
        far.sort(key=lambda each: each[0])

        def fine(some: Sequence[tuple[float, float, tuple[int, ...]]]) -> list[_Fine]:
            found = list[_Fine]()
            for moved, _, bodies in some:
                if len(found) >= FINALISTS and bodies != series:
                    least = found[0][0]
                    most = max(found[FINALISTS - 1][0], EQUALLY_FAR * least + 1e-9)
                    if moved > most and (self.many or least <= TENTH_OFF):
                        continue
                told, size = ranges.determined(bodies)
                if told >= share:
                    found.append((moved, size, bodies))
            return found

        return fine([each for each in far if each[1] > CARRIES]) or fine(far)

    def series(self, masses: Array) -> tuple[int, ...]:
        """The bodies in series from what carries the cluster to the heaviest, by few joints.

        Of a leg these are its links, beside which rods and cranks hang. Empty if no link is the
        heaviest, if a closed loop's joint is among them, or if they have more than the cluster's
        freedoms. ``masses`` (bodies,) are with what hangs on each.
        """
        model, bodies = self.model, self.cluster.bodies
        tree = {frozenset((b, self._inside(model.nodes[b].parent))): b for b in bodies}
        ends = [
            frozenset(self._inside(model.frame(end.link).body)
                      for end in (loop.predecessor, loop.successor))
            for loop in model.description.loops
        ]  # fmt: skip
        ways: dict[int, tuple[int | None, ...]] = {WORLD: ()}  # joints; None: one that closes
        queue = [WORLD]
        for at in queue:
            for edge in (*tree, *ends):
                for to in edge - {at} if at in edge and len(edge) == 2 else ():
                    if to not in ways:
                        ways[to] = (*ways[at], tree.get(edge))
                        queue.append(to)
        heaviest = np.flatnonzero(EQUALLY_FAR * masses > np.max(masses)).tolist()
        way = ways.get(bodies[heaviest[0]], ()) if len(heaviest) == 1 else ()
        found = tuple(sorted(body for body in way if body is not None))
        freedoms = sum(model.nodes[body].joint.nv for body in found)
        return found if len(found) == len(way) and freedoms <= self.cluster.nv else ()

    def _inside(self, body: int) -> int:
        """A body of the cluster; the world for all others."""
        return body if body in self.cluster.bodies else WORLD

    def regularity(self, frames: Frames, bodies: Sequence[int], *, relative: bool = False) -> Array:
        """The regularity (n,) of these joints: 0 from a dead point on.

        The least singular value of the joints' rows of the frames, in comparable units. The first
        frame is that at the start; ``relative`` gives the least ratio to there over all directions,
        on the sheet of these joints, which has no dead point of theirs between.
        """
        return np.asarray(self.regularities(frames, [bodies], relative=relative)[0])

    def regularities(
        self, frames: Frames, sets: Sequence[Sequence[int]], *, relative: bool = False
    ) -> Array:
        """The same (sets, n) of several sets."""
        if self.cluster.kind == "joint":
            return np.ones((len(sets), len(frames.motions)))
        columns = [[c for b in bodies for c in self.columns(b)] for bodies in sets]
        square = np.moveaxis(frames.motions[:, columns], 0, 1)
        side = np.sign(np.linalg.det(square)) * frames.side
        if relative and frames.good[0]:
            with np.errstate(all="ignore"):
                square = np.asarray(np.linalg.solve(square[:, :1], square))
        same: Mask = frames.good & (relative | (side == side[:, :1]))
        sizes = np.zeros(same.shape)
        sizes[same] = newton.extreme_singular(square[same], square.shape[2])[0]
        return np.where(sizes > SINGULAR, sizes, 0.0)

    def frames(self, positions: Array) -> Frames:
        """Frames at closed positions (n, nq), the first at the start.

        Rotors, hinges that form a ball, and turns of fine screws do not count in them.
        """
        null, side = self.motion.oriented(positions)
        shown = [c for b in self.cluster.bodies if self._shown(b) for c in self.columns(b)]
        basis = null[:, shown]
        if len(shown) < null.shape[2] or np.linalg.matrix_rank(basis[0]) < null.shape[2]:
            return Frames(null, side, np.ones(len(null), dtype=bool))
        triangle = np.linalg.qr(basis, mode="r")
        diagonal = np.diagonal(triangle, axis1=1, axis2=2)
        good: Mask = np.min(np.abs(diagonal), axis=1, initial=1.0) > NOTHING
        safe = np.where(good[:, None, None], triangle, np.eye(null.shape[2]))
        motions = np.linalg.solve(np.swapaxes(safe, 1, 2), np.swapaxes(null, 1, 2))
        side = side * np.prod(np.sign(diagonal), axis=1)
        return Frames(np.swapaxes(motions, 1, 2), side, good)

    def _shown(self, body: int) -> bool:
        """True if a body is no rotor, no part of a ball made of hinges, and winds on no screw."""
        bodies, nodes = self.model.bodies, self.model.nodes
        parts = [body, nodes[body].parent] if nodes[body].parent in self.cluster.bodies else [body]
        winds = body in self.rotors or np.any(self.motion.winding[self.columns(body)] > 1.0)
        return not winds and all(bodies[b].mass > 0.0 for b in parts)

    def columns(self, body: int) -> list[int]:
        """A body's spanning velocities, within the cluster's."""
        first = self.cluster.spanning_v.start
        return [v - first for v in self.model.nodes[body].freedoms]

    def refusal(self) -> UndeterminedError:
        """The error for a cluster that the wanted joints, or no joints, determine."""
        model, cluster = self.model, self.cluster
        if self.wanted:
            freedoms = ", ".join(f"'{label}'" for label in cluster.independent)
            named = few([model.joints[body].name for body in self.wanted])
            return UndeterminedError(
                f"joints: {named} cannot be the tree's, or be among them: their velocities depend "
                f"on each other at neutral, or are more than the {cluster.nv} freedoms of cluster "
                f"'{cluster.name}' ({freedoms})"
            )
        return no_tree(model, cluster)

    # ---- configurations

    def _closed(self, guesses: Array, keep: newton.Kept = newton.FREE) -> tuple[Array, Mask]:
        """The guesses closed, and which of them close within the joints' limits."""
        geometry, rows = self.motion.geometry, self.cluster.closing_rows or None
        positions, gap = guesses, np.zeros(len(guesses))
        if geometry.rows:
            some = self.motion.telling or rows
            positions, gap = newton.close(
                geometry, guesses, keep, rows=some, iterations=LIMB_NEWTON
            )
            if rows is None or len(rows) > len(some or ()):  # on another branch others are open
                gap = np.maximum(gap, (geometry.only(rows) if rows else geometry).gap(positions))
        room = np.min(self.motion.rooms(positions) - np.minimum(self.motion.rooms(self.start), 0.0),
                      axis=-1)  # fmt: skip
        return positions, (gap <= CLOSED) & ~geometry.flipped(positions) & (room >= -WITHIN)

    def paths(self, every: int = 1) -> Array:
        """The start, and configurations on paths from there, after each ``every`` steps.

        Along the motions nearest to those of each joint alone, or of two: the order of joints in
        the file changes nothing.
        """
        geometry, turns = self.motion.geometry, self.motion.winding.copy()
        for body, times in self.rotors.items():  # a direction of the limb's joints, not of rotors
            turns[self.columns(body)] = times

        def along(q: Array, ways: Array) -> Array:
            """Unit motions nearest to these ways."""
            null = np.linalg.qr(self.motion.null(q) / turns[:, None])[0]
            step = (null @ (np.swapaxes(null, 1, 2) @ ways[:, :, None]))[:, :, 0]
            return np.asarray(
                step / np.maximum(np.linalg.norm(step, axis=1, keepdims=True), NOTHING)
            )

        unit = self.motion.unit * turns
        only = self.motion.null(self.start)[:, 0] / turns  # of one freedom all ways are the same
        ways = _ways(len(unit)) if self.cluster.nv > 1 else np.array([only, -only])
        q, result = np.tile(self.start, (len(ways), 1)), [self.start[None]]
        for hop in range(1, HOPS + 1):
            ways = along(q, ways)
            moved, good = self._closed(
                geometry.integrate(q, 0.15 * ways * turns * self.motion.unit)
            )
            q, ways = moved[good], ways[good]
            if hop % every == 0:
                result.append(q)
        return np.concatenate(result)

    def driven(self, bodies: Sequence[int]) -> tuple[Array, Frames]:
        """Configurations on paths on which these joints move from the start, one or two at once.

        They move to their limits, or :data:`FREE` from the start for joints without limits, fine
        screws as far as slides. A path ends where loops do not close, a joint meets its limit, or
        the joints no longer determine the cluster. Also the frames there.
        """
        geometry, motion = self.motion.geometry, self.motion
        columns = [c for body in bodies for c in self.columns(body)]
        at = motion.positions(self.start)[columns]
        unit = (motion.unit * motion.winding)[columns]
        low, high = motion.low[columns], motion.high[columns]
        low = np.where(np.isfinite(low), np.maximum(low, at - AT_MOST * unit), at - FREE * unit)
        high = np.where(np.isfinite(high), np.minimum(high, at + AT_MOST * unit), at + FREE * unit)
        low, high = np.minimum(low, at), np.maximum(high, at)
        goals = 0.5 * (low + high + _middles(len(at)) * (high - low)) - at
        q = np.tile(self.start, (len(goals), 1))
        going = np.arange(len(goals))
        result, frames = [self.start[None]], [self.frames(self.start[None])]
        for share in np.linspace(0.0, 1.0, HOPS + 1)[1:]:
            if geometry.rows:
                way = newton.Joints(columns, self.start, share * goals[going])
                moved, good = self._closed(q[going], way)
            else:
                step = np.zeros((len(going), geometry.nv))
                step[:, columns] = share * goals[going]
                moved, good = self._closed(
                    geometry.integrate(np.tile(self.start, (len(going), 1)), step)
                )
            going, moved = going[good], moved[good]
            both = self.frames(np.concatenate([self.start[None], moved]))
            good = self.regularity(both, bodies)[1:] > 0.0
            going = going[good]
            q[going] = moved[good]
            result.append(q[going])
            frames.append(both.at(slice(1, None)).at(good))
        return np.concatenate(result), Frames.joined(frames)


def _ways(count: int) -> Array:
    """Ways (n, count) along each of so many axes, and, of few, along all at once; both ways."""
    every = list(product((1.0, -1.0), repeat=count)) if 2**count <= CELLS else []
    return np.concatenate([np.eye(count), -np.eye(count), np.reshape(every, (-1, count))])


def _middles(count: int) -> Array:
    """The middles (n, count) of equal cells of a box with sides from -1 to 1; of many, ways."""
    cells = min(int(CELLS ** (1.0 / count)), ALONG)
    middles = (2.0 * np.arange(cells) + 1.0) / cells - 1.0
    return np.array(list(product(middles, repeat=count))) if cells > 1 else _ways(count)


def _combinations(sizes: Sequence[int], total: int) -> int:
    """How many subsets of numbers have this total."""
    counts = [1] + [0] * total
    for size in sizes:
        for n in range(total, size - 1, -1):
            counts[n] += counts[n - size]
    return counts[total]


def select_in(model: Model, cluster: Cluster, g: Array, first: Collection[int] = ()) -> list[int]:
    """Bodies whose whole joints determine a cluster; ``g`` is its G at the neutral configuration.

    Those of ``first`` are taken before others; then those that carry other clusters, are no
    rotors, follow no other by a mimic or a polynomial, carry more mass, and of equals those that
    move less, as behind gears. A mimic between a hinge and a slide does not tell which carries: a
    rack moves with its pinion, whichever of them a format makes the follower.
    """
    if cluster.kind == "joint":
        return list(cluster.bodies)
    turning = rotors(model, cluster)
    kinds = {joint.name: joint.type == "prismatic" for joint in model.description.joints}
    followers = {x.name for x in model.description.joints
                 if x.mimic and kinds[x.name] == kinds.get(x.mimic.joint)}  # fmt: skip
    followers |= {x.joint for x in model.description.couplings if isinstance(x, PolynomialCoupling)}
    leads: dict[int, bool] = dict.fromkeys(cluster.bodies, False)
    mass = {body: value_of(model.nodes[body].inertia.mass) for body in cluster.bodies}
    for body in reversed(range(cluster.bodies[0], len(model.nodes))):
        parent = model.nodes[body].parent
        if parent in leads:
            leads[parent] |= leads.get(body, True)
            mass[parent] += mass.get(body, 0.0)
    basis = np.linalg.qr(g / cluster.geometry.unit[:, None])[0]  # whichever are independent
    first_row, most = cluster.spanning_v.start, max(mass.values()) or 1.0
    moves = {
        body: np.linalg.norm(basis[[v - first_row for v in model.nodes[body].freedoms]])
        for body in cluster.bodies
    }
    order = sorted(
        cluster.bodies,
        key=lambda body: (
            body not in first,
            not leads[body],
            body in turning,
            model.joints[body].name in followers,
            -round(mass[body] / most, 9),
            round(float(moves[body]), 9),
            body,
        ),
    )
    chosen: list[int] = []
    rows = np.zeros((0, cluster.nv))
    for body in order:
        if moves[body] <= MOVES:  # what the cluster's couplings lock tells nothing
            continue
        rows_of = [v - cluster.spanning_v.start for v in model.nodes[body].freedoms]
        size = np.linalg.norm(g[rows_of], axis=1, keepdims=True)
        more = np.vstack([rows, g[rows_of] / np.maximum(size, TINY)])
        if len(more) <= cluster.nv and np.linalg.svd(more, compute_uv=False)[-1] > MOVES:
            chosen.append(body)
            rows = more
    if len(rows) < cluster.nv:
        raise no_tree(model, cluster)
    return chosen


def no_tree(model: Model, cluster: Cluster) -> UndeterminedError:
    """The error for a cluster that no set of whole joints determines."""
    freedoms = ", ".join(f"'{label}'" for label in cluster.independent)
    return UndeterminedError(
        f"cluster '{cluster.name}' of '{model.name}' moves in {cluster.nv} freedoms "
        f"({freedoms}) that no whole joints of it have, so no open tree stands for it; "
        "use an exact method"
    )


@dataclass(frozen=True, eq=False)
class Ranges:
    """States over which sets of joints are compared; what is known of a set is kept."""

    choice: Choice
    states: Sequence[States]
    frames: Frames
    _told: dict[tuple[int, ...], tuple[float, float]] = field(default_factory=dict)
    _far: dict[tuple[int, ...], tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, choice: Choice, displacements: Displacements, ways: Sequence[tuple[Array, Frames]]
    ) -> Ranges:
        """States at spanning positions (n, nq) on ways, each with the frames there."""
        states = [States.of(displacements, positions) for positions, _ in ways]
        return cls(choice, states, Frames.joined([frames for _, frames in ways]))

    def determined(self, bodies: tuple[int, ...]) -> tuple[float, float]:
        """The share of the states in which a set determines the cluster; its median regularity."""
        if bodies not in self._told:
            sizes = self.choice.regularity(self.frames, bodies)
            self._told[bodies] = float(np.mean(sizes > DETERMINED * sizes[0])), median(sizes)
        return self._told[bodies]

    def displaced(self, bodies: tuple[int, ...]) -> tuple[float, float]:
        """The distances of :meth:`States.displaced`, over all states."""
        if bodies not in self._far:
            squares = np.mean([each.displaced(bodies) for each in self.states], axis=0)
            far, carried = np.sqrt(squares).tolist()
            self._far[bodies] = far, carried
        return self._far[bodies]
