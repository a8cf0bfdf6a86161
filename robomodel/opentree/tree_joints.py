"""The joints of an open tree: those that carry the limb, and those that follow them.

Which joints move is the choice of :mod:`robomodel.reach.limb`. Joints whose ratios to these are
constant follow them, and a locked joint may follow one by a polynomial. docs/approximate.md gives
the reasons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.dynamics.lumped import Follower, geared_followers
from robomodel.errors import UnknownNameError, check_names, few
from robomodel.mechanism.constraints import LinearConstraint
from robomodel.model.actuators import LEVER
from robomodel.model.derived import cached_on_model, neutral_positions
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.reach.displacements import PAYLOAD, Displacements, places_carried, poses
from robomodel.reach.groups import split
from robomodel.reach.limb import FREE, LIMB_SEED, THIRD_OFF, Choice, chosen
from robomodel.reach.ranges import limb_ranges
from robomodel.reach.reachable import Reachable, reachable
from robomodel.reach.windings import windings
from robomodel.scalars import stack, unstack
from robomodel.tolerances import MOVES, NOTHING, SAME, WITHIN

if TYPE_CHECKING:
    from numpy.polynomial import Chebyshev

# configurations on the sheet of the joints, for a fit, and for its errors: few where closing n of
# linkages, which takes 20 joints³ operations, is more work
DRAWN, TOLD = (400, 600), (400, 800)
WORK = 4e8  # operations to which numbers of states are kept
LEAST_DISPLACED = 4.5e-3  # sizes, of displacement, below which nothing needs to follow
CHANGE, NEAR = 0.2, 0.5  # of the least singular value beside: at, and next to, a change point
BESIDE, OPPOSITE = 200, -0.9  # of several freedoms: so many beside, and cosine of those opposite
# of a follower's rates, rms: inertia goes with their square, and 10 % are worth having; over the
# whole range, a third: a locked joint's are off by all
OFF = (0.05, 1 / 3)
NEARER, NEAREST = 0.9, 0.2  # steps of the range of what is followed, and the least share of it


@dataclass(frozen=True, eq=False)
class ClusterTree:
    """A cluster's part of the open tree: the ``bodies`` whose joints move, and the range.

    Attributes:
        cluster: The cluster.
        bodies: The bodies whose joints move.
        positions: Spanning positions (n, nq) at which these joints determine the cluster, neutral
            first.
        others: More of them, drawn independently.
        independent: How many of these are independent of each other, at least.
        displacement: Error of position of the links and what they carry [m], root mean square by
            mass.
        farthest: The link with the largest error, that [m], and its largest turn [rad].
        followers: Joints that follow.
        whole: Whether they follow over the whole range.
        constant: Whether all that is not locked as a rotor moves, or follows exactly.
        change_points: Where it is next to change points, in words; there are no ``positions`` there
            but neutral.
        without: The same tree without its followers.
        bend: Gives the tree its ``with_followers``, some bodies not among them.
    """

    cluster: Cluster
    bodies: tuple[int, ...]
    positions: Array
    others: Array
    independent: int
    displacement: float = 0.0
    farthest: tuple[str, float, float] = ("", 0.0, 0.0)
    followers: tuple[Follower, ...] = ()
    whole: bool = False
    constant: bool = False
    change_points: tuple[str, ...] = ()
    without: ClusterTree | None = None
    bend: Callable[[ClusterTree, Collection[int]], Iterator[ClusterTree]] | None = None

    def has_range_of(self, other: ClusterTree) -> bool:
        """True if the same joints move over the same range, as with other followers."""
        return (
            self.bodies == other.bodies
            and self.positions is other.positions
            and self.others is other.others
        )

    @cached_property
    def with_followers(self) -> ClusterTree | None:
        """The first tree with more followers; None if they do not help."""
        return next(iter(self.led(())), None)

    def led(self, left_out: Collection[int], n: int = 0) -> list[ClusterTree]:
        """The same tree with more followers, these bodies not among them: n + 1 ways, or fewer.

        First over the whole range; then where they are right, if that is less.
        """
        found, more = self._led.setdefault(
            frozenset(left_out), ([], self.bend(self, left_out) if self.bend else iter(()))
        )
        found += islice(more, max(0, n + 1 - len(found)))
        return found[: n + 1]

    @cached_property
    def _led(self) -> dict[frozenset[int], tuple[list[ClusterTree], Iterator[ClusterTree]]]:
        return {}

    @property
    def bent(self) -> bool:
        """True if joints of a linkage can follow by polynomials."""
        return self.cluster.kind == "loops" and self.with_followers is not None

    @property
    def geared(self) -> bool:
        """True if constant ratios are all that ties its joints."""
        return isinstance(self.cluster.constraint, LinearConstraint)

    def ends(self, model: Model, follower: Follower) -> dict[int, tuple[float, float]]:
        """The positions of its drivers between which it is right; none: wherever these are."""
        found = {}
        for body in () if follower.exact else follower.drivers:
            if self.whole and not goes_free(model, body):
                continue
            at = self.positions[:, self.cluster.geometry.links[self.cluster.bodies.index(body)].q]
            found[body] = float(np.min(at)), float(np.max(at))
        return found


class _Terms(NamedTuple):
    """Ratios, coefficients and ``along`` of a :class:`Follower`."""

    ratios: tuple[float, ...] = ()
    coefficients: tuple[float, ...] = ()
    along: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Following:
    """Which joints may follow: polynomials to a degree, and how many drivers they may have."""

    degree: int = 4
    drivers: int = 6

    def allows(self, each: Follower) -> bool:
        """True if it is such a follower."""
        return len(each.drivers) <= self.drivers and len(each.coefficients) <= self.degree + 1


def tree_joints(
    model: Model,
    joints: Sequence[str] = (),
    following: Following | None = None,
    seed: int = LIMB_SEED,
) -> list[ClusterTree]:
    """The trees of all clusters, in their order; joints named by ``joints`` move.

    Without ``following`` no joints follow others. ``seed``: of the positions that are drawn.

    Raises:
        UnknownNameError: A name that is no joint's.
        ValueError: The named joints, or no whole joints, determine a cluster.
    """
    check_names(joints, model.joint_names, "joints: no joint ", error=UnknownNameError)
    choices, moving = list[_ClusterTree](), list[tuple[int, ...]]()
    for cluster in model.clusters:
        wanted = tuple(b for b in cluster.bodies if model.joints[b].name in joints)
        choices.append(_ClusterTree(model, cluster, wanted, following))
        moving.append(chosen(model, cluster.index, wanted))
    reached = sheet(model, tuple(b for choice, bodies in zip(choices, moving, strict=True)
                                if choice.cluster.kind == "loops" for b in bodies))  # fmt: skip
    sizes = [states_within(closing(model), some) for some in (DRAWN, TOLD)]
    draws = [reached.draw(np.random.default_rng(seed + n), size, known=n == 0)
             for n, size in enumerate(sizes)]  # fmt: skip
    ways = [_spanning(model, np.concatenate([model.neutral()[None], q])) for q in draws]
    return [
        choice.tree(
            bodies,
            [at[:, choice.cluster.spanning_q] for at in ways],
            reached.independent(sizes[1], choice.cluster),
        )
        for choice, bodies in zip(choices, moving, strict=True)
    ]


def closing(model: Model) -> float:
    """How many operations it takes, about, to close a robot's linkages."""
    return sum(20.0 * len(c.bodies) ** 3 for c in model.clusters if c.kind == "loops")


def states_within(work: float, limits: tuple[int, int]) -> int:
    """How many states are looked at, between these limits, if each takes so many operations."""
    return int(np.clip(WORK / max(work, 1.0), *limits))


def goes_free(model: Model, body: int) -> bool:
    """True if no limits end a joint's way, or its own leave a full turn: it goes :data:`FREE` far.

    In a linkage of one freedom limits of others end it, too, as those of a cylinder.
    """
    return model.joints[body].nv == 1 and _turns(model, body) and _led_to(model, body) is None


def _led_to(model: Model, body: int) -> tuple[float, float] | None:
    """The range of a joint without limits that those of others end on its one path; else None."""
    joint, cluster = model.joints[body], model.clusters[model.nodes[body].cluster]
    if cluster.kind != "loops" or all(_turns(model, other) for other in cluster.bodies):
        return None
    columns = set(cluster.geometry.links[cluster.bodies.index(body)].freedoms)
    if all(each.freedoms != 1 or not columns & set(each.columns)
           for each in split(model, cluster.index).groups):  # fmt: skip
        return None
    (reach,) = limb_ranges(model, [joint.name])
    ended = {reach.lower_by, reach.upper_by} & set(cluster.joints) - {joint.name}
    return (reach.lower, reach.upper) if ended else None


def _turns(model: Model, body: int) -> bool:
    """True if a joint's own limits end nothing, or leave a full turn, after which it is back.

    Screws, and hinges that undo their turns, are not.
    """
    joint = model.joints[body]
    back = joint.type not in ("prismatic", "screw") and _winding(model, body) == 1.0
    turn = 2.0 * math.pi if back else math.inf
    return joint.nv != 1 or joint.upper - joint.lower >= turn


def _winding(model: Model, body: int) -> float:
    """How far a joint turns with a fine screw, as of :func:`robomodel.reach.windings.windings`."""
    cluster = model.clusters[model.nodes[body].cluster]
    columns = cluster.geometry.links[cluster.bodies.index(body)].freedoms
    return float(np.max(windings(cluster)[list(columns)], initial=1.0))


@cached_on_model
def sheet(model: Model, bodies: tuple[int, ...]) -> Reachable:
    """The sheet of the joints of linkages that move, as far as they go."""
    at = neutral_positions(model)
    ends = {}
    for body in bodies:
        joint, cluster = model.joints[body], model.clusters[model.nodes[body].cluster]
        if joint.nv != 1 or not _turns(model, body):
            continue
        if (led := _led_to(model, body)) is not None:
            ends[joint.name] = led
        else:
            unit = cluster.geometry.scale if joint.type == "prismatic" else _winding(model, body)
            reach = FREE * unit
            ends[joint.name] = (float(at[joint.name]) - reach, float(at[joint.name]) + reach)
    return reachable(model).narrowed(ends).on_sheet([model.joints[body].name for body in bodies])


def _dips(x: Array, sizes: Array) -> list[tuple[float, float]]:
    """Where sizes (n,) have a minimum, over positions (n,) of a joint, and are beside it.

    They are less than :data:`CHANGE` of what they are on both sides, up to :data:`NEAR` of it, and
    there within what the minimum is such a share of: a distance x beside it they are
    √(least² + (k x)²), and rates have changed beyond.
    """
    order = np.argsort(x)
    x, sizes = x[order], sizes[order]
    left, right = np.maximum.accumulate(sizes), np.maximum.accumulate(sizes[::-1])[::-1]
    shares = sizes / np.minimum(left, right)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (shares < NEAR).astype(int), [0]])))
    found = []
    for i, j in zip(edges[::2], edges[1::2], strict=True):
        if (least := np.min(shares[i:j])) < CHANGE:
            near = x[i:j][shares[i:j] * CHANGE <= least]
            found.append((float(near[0]), float(near[-1])))
    return found


def _pits(x: Array, sizes: Array) -> Mask:
    """At which positions (n, k) of joints sizes (n,) are less than :data:`CHANGE` of those beside.

    These are some of the others that are opposite each other, but for :data:`OPPOSITE`.
    """
    found = np.zeros(len(x), dtype=bool)
    at = (x - np.min(x, axis=0)) / np.maximum(np.ptp(x, axis=0), NOTHING)
    for n in np.flatnonzero(sizes < CHANGE * np.max(sizes)).tolist():
        larger = np.flatnonzero(sizes * CHANGE > sizes[n])
        away = at[larger[:: 1 + len(larger) // BESIDE]] - at[n]
        away /= np.maximum(np.linalg.norm(away, axis=1, keepdims=True), NOTHING)
        found[n] = bool(np.min(away @ away.T, initial=1.0) < OPPOSITE)
    return found


def _outside(x: Array, ends: Sequence[tuple[float, float]]) -> Mask:
    """Which positions are between none of these ends."""
    result = np.ones(len(x), dtype=bool)
    for low, high in ends:
        result &= (x < low) | (x > high)
    return result


def _spanning(model: Model, q: Array) -> Array:
    """Spanning positions (n, ·) at configurations (n, nq)."""
    return stack(model.spanning_positions(unstack(q)), (len(q),))


@dataclass(frozen=True, eq=False)
class _ClusterTree(Choice):
    """The tree of a cluster; joints of ``wanted`` bodies move."""

    following: Following | None = None

    def _off_change_points(self, tree: ClusterTree) -> ClusterTree:
        """The tree without positions next to change points, of each group of joints by itself.

        There its conditions are nearly dependent, and rates change at once.
        """
        ways, words = [tree.positions, tree.others], list[str]()
        groups = (
            split(self.model, self.cluster.index).groups if self.cluster.kind == "loops" else ()
        )
        for group in groups:
            places = {
                link.q: name
                for name, body, link in zip(self.cluster.joints, self.cluster.bodies,
                                            self.cluster.geometry.links, strict=True)
                if body in tree.bodies and link.v in group.columns and link.joint.nv == 1
            }  # fmt: skip
            if not group.along.rank or len(places) != group.freedoms:
                continue
            at, sizes = [q[:, list(places)] for q in ways], [group.conditioning(q) for q in ways]
            names = few(list(places.values()))
            if group.freedoms == 1:
                ends = _dips(at[0][:, 0], sizes[0])
                words += [f"{names} from {low:.3g} to {high:.3g}" for low, high in ends]
                far = [_outside(x[:, 0], ends) for x in at]
            else:
                far = [~_pits(x, size) for x, size in zip(at, sizes, strict=True)]
                lost = 1.0 - float(np.mean(far[0][1:]))
                words += [f"{100.0 * lost:.2g} % of the range of {names}"] if lost else []
            ways = [q[np.concatenate([[True], on[1:]])] for q, on in zip(ways, far, strict=True)]
        return replace(tree, positions=ways[0], others=ways[1], change_points=tuple(words))

    def tree(self, bodies: tuple[int, ...], ways: Sequence[Array], independent: int) -> ClusterTree:
        """The part of the tree in which these joints move, over spanning positions (n, nq)."""
        cluster = self.cluster
        positions, others = (self._good(x, bodies, 0.0) for x in ways)
        made = ClusterTree(cluster, bodies, positions, others, independent)
        if cluster.kind == "joint":
            return made
        displacements = Displacements.of(self.model, cluster, self.start)
        tree = self._with_exact(made, displacements)
        if not tree.constant:
            tree = self._off_change_points(tree)
        return replace(tree, bend=partial(self._with_followers, displacements=displacements))

    def _good(self, positions: Array, bodies: Sequence[int], level: float) -> Array:
        """The positions with a relative regularity of these joints above ``level``."""
        sizes = self.regularity(self.frames(positions), bodies, relative=True)
        if sizes[0] <= 0.0:
            raise self.refusal()
        good: Mask = sizes > level
        return np.asarray(positions[good])

    # ---- followers

    def _with_exact(self, tree: ClusterTree, displacements: Displacements) -> ClusterTree:
        """The tree with its exact followers, and its displacement.

        These are all that may follow exactly, if all that is no rotor does; else those that take a
        third off the displacement. In linkages only where a link follows that is no light rod.
        """
        found, free = list[Follower](), [b for b in self.cluster.bodies if b not in tree.bodies]
        if self.following:
            found = list(geared_followers(self.model, self.cluster, tree.bodies))
            found = found or list(self._exact(tree.positions, tree.bodies))
            found = [each for each in found if self.following.allows(each)]
        follow = {each.body for each in found}
        constant = all(body in follow or body in self.rotors for body in free)
        if self.cluster.kind == "loops" and not self._heavy(follow):
            found, constant = [], False
        at = displacements.locked(tree.positions, tree.bodies)
        size, farthest = displacements.of_links(tree.positions, at)
        without = replace(tree, displacement=size, farthest=farthest)
        if found and not constant and self.cluster.kind == "loops":
            exact = poses(self.cluster, tree.positions)
            found, _ = self._worth(found, exact, at, displacements)
        size, farthest = displacements.of_links(tree.positions, self._following(found, at))
        return replace(tree, followers=tuple(found), constant=constant, displacement=size,
                       farthest=farthest, without=without if found else None)  # fmt: skip

    def _heavy(self, bodies: Collection[int]) -> bool:
        """True if one of the bodies has a tenth of the cluster's mass, which rods lack."""
        masses = {b: self.model.bodies[b].mass for b in self.cluster.bodies}
        return any(masses[b] >= PAYLOAD * sum(masses.values()) > 0.0 for b in bodies)

    def _exact(self, positions: Array, bodies: Sequence[int]) -> Iterator[Follower]:
        """Joints that follow exactly: linearly, or one driver by a polynomial."""
        if self.following is None or any(self.model.nodes[b].joint.nv != 1 for b in bodies):
            return
        columns = {b: self.cluster.geometry.links[n].q for n, b in enumerate(self.cluster.bodies)}
        at = positions[:, [columns[b] for b in bodies]]
        for body in self.cluster.bodies:
            single = self.model.nodes[body].joint.nv == 1
            if body in bodies or body in self.rotors or not single:
                continue
            y = positions[:, columns[body]]
            rows = np.column_stack([np.ones(len(at)), at])
            line = np.linalg.lstsq(rows, y)[0]
            ratios = np.where(np.abs(line[1:]) > SAME, line[1:], 0.0)
            ratios = np.where(np.abs(ratios - np.round(ratios)) <= SAME, np.round(ratios), ratios)
            constant = float(np.mean(y - at @ ratios))
            if np.max(np.abs(y - at @ ratios - constant)) <= SAME:
                on = np.flatnonzero(ratios).tolist()
                if on:
                    drivers, terms = (tuple(x[i] for i in on) for x in (bodies, ratios.tolist()))
                    yield Follower(body, drivers, terms, (constant,))
                continue
            for n, driver in enumerate(bodies):
                coefficients, error = polynomial(at[:, n], y, self.following.degree)
                if error <= SAME:
                    yield Follower(body, (driver,), (0.0,), coefficients, (1.0,))
                    break

    def _worth(
        self,
        found: Sequence[Follower],
        exact: Array,
        at: Array,
        displacements: Displacements,
    ) -> tuple[list[Follower], Array]:
        """The followers, if together they take a third off the displacement.

        One alone may take nothing off, as a rod whose crank is locked. Left out are those that
        together take no third off what is left. ``exact``: the right poses; ``at`` (n, nq): where
        the tree is. The second result: with them.
        """
        moved, bodies = self._following(found, at), self.cluster.bodies
        here, before = (poses(self.cluster, x) for x in (moved, at))
        squares, old = (displacements.squares(exact, x) for x in (here, before))
        now, size = displacements.size(squares), displacements.size(old)
        least = LEAST_DISPLACED * self.cluster.geometry.scale
        if size <= least or now >= THIRD_OFF * size:
            return [], at

        def without(each: Follower) -> tuple[Array, Array, Array]:
            """Positions, poses and squares where this one does not follow."""
            still, column = moved.copy(), self.cluster.geometry.links[bodies.index(each.body)].q
            still[:, column] = at[:, column]
            there, some = poses(self.cluster, still, here, [each.body]), squares.copy()
            new = places_carried(self.cluster, [each.body])
            some[new] = displacements.squares(exact[new], there[new], new)
            return still, there, some

        kept, limit = list(found), max(least, now / THIRD_OFF)
        sizes = {each.body: displacements.size(without(each)[2]) for each in found}
        for each in sorted(found, key=lambda x: sizes[x.body]):
            still, there, some = without(each)
            size = displacements.size(some)
            if size <= limit:
                kept.remove(each)
                moved, here, squares = still, there, some
        return kept, moved

    def _following(self, followers: Sequence[Follower], at: Array) -> Array:
        """The positions with followers where they follow."""
        columns = {b: self.cluster.geometry.links[n].q for n, b in enumerate(self.cluster.bodies)}
        moved = at.copy()
        for each in followers:
            moved[:, columns[each.body]] = each.at(at[:, [columns[b] for b in each.drivers]])
        return moved

    def _with_followers(
        self, tree: ClusterTree, left_out: Collection[int], *, displacements: Displacements
    ) -> Iterator[ClusterTree]:
        """The tree with followers over the whole range; then where rates are right to ``OFF``.

        At a dead point of the tree's joints a follower's position has the slope of a square root,
        which no polynomial has: the range ends before that.
        """
        bodies = tree.bodies
        if self.following is None or any(self.model.nodes[b].joint.nv != 1 for b in bodies):
            return
        if tree.displacement <= LEAST_DISPLACED * self.cluster.geometry.scale:
            return
        exact, rates = poses(self.cluster, tree.positions), self._rates_by_joints(tree)
        shares = NEARER ** np.arange(math.log(NEAREST) / math.log(NEARER))
        inside = [self._near(tree.positions, bodies, share) for share in shares.tolist()]
        told = 3 * (self.following.degree + len(bodies))  # of positions: that tell a curve
        inside = [near for near in inside if np.count_nonzero(near) > told]

        def candidates(n: int, out: Collection[int]) -> list[Follower]:
            near = inside[n]
            found = self._candidates(tree.positions[near], rates[near], tree)
            return [each for each in found if each.body not in out]

        def off(n: int, followers: Sequence[Follower]) -> float:
            near = inside[n]
            return self._rate_error(tree.positions[near], rates[near], bodies, followers)

        def led(n: int, out: Collection[int]) -> tuple[float, ClusterTree]:
            """The largest error of rates in a share of the range, and the tree there."""
            near, others = inside[n], self._near(tree.others, bodies, float(shares[n]))
            every = near.all() and others.all()
            positions = tree.positions if every else tree.positions[near]
            at = self._following(tree.followers, displacements.locked(positions, bodies))
            chosen, at = self._worth(candidates(n, out), exact[:, near], at, displacements)
            size, farthest = displacements.of_links(positions, at)
            made = replace(tree, positions=positions,
                           others=tree.others if every else tree.others[others],
                           displacement=size, farthest=farthest,
                           followers=(*tree.followers, *chosen), whole=n == 0,
                           bend=None)  # fmt: skip
            return off(n, chosen) if chosen else math.inf, made

        if not inside:
            return
        error, whole = led(0, left_out)
        if error <= OFF[1]:
            yield whole
        if error <= OFF[0]:
            return
        last = len(inside) - 1  # what is right not even there does not follow
        never = {each.body for each in candidates(last, left_out) if off(last, [each]) > OFF[0]}
        out, wrong, right = {*left_out, *never}, 0, last
        error, found = led(0, out) if never else (error, whole)
        if error > OFF[0]:
            error, found = led(last, out)
            while error <= OFF[0] and right > wrong + 1:  # the widest range
                middle = (wrong + right) // 2
                here, shorter = led(middle, out)
                if here <= OFF[0]:
                    right, found = middle, shorter
                else:
                    wrong = middle
        if error <= OFF[0]:
            yield found

    def _near(self, positions: Array, bodies: Sequence[int], share: float) -> Mask:
        """At which positions these joints are within a share of their ranges from neutral."""
        columns = [self.cluster.geometry.links[self.cluster.bodies.index(b)].q for b in bodies]
        away = positions[:, columns] - positions[0, columns]
        far = np.stack([np.min(away, axis=0), np.max(away, axis=0)]) * share
        inside = (away >= far[0] - WITHIN) & (away <= far[1] + WITHIN)
        return np.asarray(np.all(inside, axis=1))

    def _candidates(self, positions: Array, rates: Array, tree: ClusterTree) -> list[Follower]:
        """How each joint that neither moves nor follows may follow those that move.

        By a polynomial of one of them, or by a curve of those that its rates depend on.
        """
        assert self.following is not None
        columns = {b: self.cluster.geometry.links[n].q for n, b in enumerate(self.cluster.bodies)}
        taken = {*tree.bodies, *self.rotors, *(each.body for each in tree.followers)}
        found, terms = list[Follower](), _Terms()
        free = [body for body in self.cluster.bodies
                if body not in taken and self.model.nodes[body].joint.nv == 1]  # fmt: skip
        x, y = (positions[:, [columns[b] for b in some]] for some in (tree.bodies, free))
        slopes = rates[:, [row for (row,) in map(self.columns, free)]]
        moved = np.linalg.norm(slopes * np.ptp(x, axis=0), axis=0)
        alone = [polynomials(x[:, d], y, self.following.degree, slopes[..., d])
                 for d in range(len(tree.bodies))]  # fmt: skip
        for n, body in enumerate(free):
            of = np.flatnonzero(moved[n] > MOVES * np.linalg.norm(moved[n])).tolist()
            if 1 < len(of) <= self.following.drivers:
                drivers = tuple(tree.bodies[d] for d in of)
                terms, error = curve(x[:, of], y[:, n], self.following.degree, slopes[:, n, of])
                each = Follower(body, drivers, *terms, error)
            else:
                of = [min(range(len(alone)), key=lambda d: alone[d][1][n])]
                constant, *powers = in_powers(alone[of[0]][0][n])
                if not powers:
                    continue  # it does not move
                terms = _Terms((0.0,), (constant, *powers), (1.0,))
                if len(powers) == 1:
                    terms = _Terms(tuple(powers), (constant,))
                each = Follower(body, (tree.bodies[of[0]],), *terms, float(alone[of[0]][1][n]))
            units = self.motion.unit[
                [row for b in (body, *each.drivers) for row in self.columns(b)]
            ]
            if np.max(np.abs(each.slopes(x[:, of]) * units[1:])) <= LEVER * units[0]:
                found.append(each)
        return found

    def _rates_by_joints(self, tree: ClusterTree) -> Array:
        """Rates of the cluster's joints by those of the tree's (n, spanning velocities, nv)."""
        columns = [c for body in tree.bodies for c in self.columns(body)]
        motions = self.motion.null(tree.positions) * self.motion.unit[:, None]
        return np.asarray(motions @ np.linalg.inv(motions[:, columns]))

    def _rate_error(
        self, positions: Array, g: Array, bodies: Sequence[int], followers: Sequence[Follower]
    ) -> float:
        """The largest relative error (rms) of a follower's rates, by ``g`` of the tree's joints."""
        columns = {b: self.cluster.geometry.links[n].q for n, b in enumerate(self.cluster.bodies)}
        size = np.ptp(positions[:, [columns[b] for b in bodies]], axis=0)
        worst = 0.0
        for each in followers:
            (row,), of = self.columns(each.body), [bodies.index(b) for b in each.drivers]
            error = g[:, row].copy()
            error[:, of] -= each.slopes(positions[:, [columns[b] for b in each.drivers]])
            rates = float(np.linalg.norm(g[:, row] * size)) or 1.0
            worst = max(worst, float(np.linalg.norm(error * size)) / rates)
        return worst


def curve(x: Array, y: Array, degree: int, slopes: Array) -> tuple[_Terms, float]:
    """The terms of a follower near y(x), and the largest error.

    x (n, d) are the drivers, y (n,), and ``slopes`` (n, d) dy/dx. With t = x over half its range,
    dy/dt = k + P'(c·t) c differ from their mean by multiples of c: it is the first right singular
    vector of these differences, and all else is of least squares of y and dy/dt.
    """
    from numpy.polynomial import Chebyshev
    from numpy.polynomial.chebyshev import chebder, chebvander

    low, high = np.min(x, axis=0) - WITHIN, np.max(x, axis=0) + WITHIN
    half, middle = 0.5 * (high - low), 0.5 * (high + low)
    t, bends = (x - middle) / half, slopes * half
    along = np.linalg.svd(bends - np.mean(bends, axis=0), full_matrices=False)[2][0]
    along /= np.sum(np.abs(along))
    u, powers = t @ along, np.eye(degree + 1)[:, 2:]
    curved, turning = chebvander(u, degree)[:, 2:], chebvander(u, degree - 1) @ chebder(powers)
    rows = [np.column_stack([np.ones(len(x)), t, curved])]
    for d, c in enumerate(along.tolist()):
        rows.append(np.zeros_like(rows[0]))
        rows[-1][:, 1 + d], rows[-1][:, 1 + len(along) :] = 1.0, c * turning
    right = np.concatenate([y, *bends.T])
    constant, *found = np.linalg.lstsq(np.vstack(rows), right)[0].tolist()
    ratios, error = np.array(found[: len(along)]) / half, rows[0] @ [constant, *found] - y
    along /= half
    at = float(middle @ along)
    fit = Chebyshev([constant, 0.0, *found[len(along) :]], domain=[at - 1.0, at + 1.0])
    first, *more = in_powers(fit)
    powers_of_u = (first - float(middle @ ratios), *more)
    terms = _Terms(tuple(ratios.tolist()), powers_of_u, tuple(along.tolist()))
    return terms, float(np.max(np.abs(error)))


def polynomial(x: Array, y: Array, degree: int) -> tuple[tuple[float, ...], float]:
    """Coefficients (from the constant on) of the least-squares polynomial y(x); its largest error.

    Of the lowest degree that is exact, else of the highest.
    """
    (fit,), (error,) = polynomials(x, y[:, None], degree)
    return in_powers(fit), float(error)


def polynomials(
    x: Array, y: Array, degree: int, slopes: Array | None = None
) -> tuple[list[Chebyshev], Array]:
    """Such polynomials of several y (n, k) in Chebyshev's basis, and their largest errors (k,).

    With ``slopes`` (n, k), dy/dx is fitted, too, in units of half the range of x.
    """
    from numpy.polynomial import Chebyshev
    from numpy.polynomial.chebyshev import chebder, chebvander

    low, high = float(np.min(x)) - WITHIN, float(np.max(x)) + WITHIN
    half, most = 0.5 * (high - low), min(degree, len(x) - 1)
    t = (x - 0.5 * (low + high)) / half
    values = rows = chebvander(t, most)
    right = y
    if slopes is not None and most:
        bends = chebvander(t, most - 1) @ chebder(np.eye(most + 1))
        rows, right = np.vstack([rows, bends]), np.concatenate([y, half * slopes])
    turn, triangle = np.linalg.qr(rows)  # its first columns are those of lower degrees
    right = turn.T @ right
    best, errors = [np.zeros(1)] * y.shape[1], np.full(y.shape[1], np.inf)
    for n in range(1, most + 2):
        left = np.flatnonzero(errors > SAME)
        found = np.linalg.lstsq(triangle[:n, :n], right[:n, left])[0]
        errors[left] = np.max(np.abs(values[:, :n] @ found - y[:, left]), axis=0)
        for i, each in zip(left.tolist(), found.T, strict=True):
            best[i] = each
    return [Chebyshev(each, domain=[low, high]) for each in best], errors


def in_powers(fit: Chebyshev) -> tuple[float, ...]:
    """The coefficients of a polynomial, from the constant on."""
    from numpy.polynomial import Polynomial

    return tuple(float(c) for c in fit.convert(kind=Polynomial).coef)
