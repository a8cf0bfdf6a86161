"""The joints of an open tree: those that carry the limb, and those that follow them.

Which joints move is the choice of :mod:`robomodel.reach.limb`. A locked joint may follow one of
them by a polynomial. docs/approximate.md gives the reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.errors import UnknownNameError, check_names
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.reach.limb import LEVER, SEED, Choice, Displacements, chosen
from robomodel.tolerances import SAME, WITHIN

GOOD = 0.4  # of the singular value at neutral: the range of the tree ends there
LEAST_DISPLACED = 1e-3  # m, of displacement, below which nothing needs to follow
WORTH = 0.67  # of the displacement may be left with one that follows
OFF = 0.05  # of a follower's rates, rms: inertia goes with their square, and 10 % are worth having
NEARER, NEAREST = 0.05, 0.8  # steps of that end, and how near to neutral, as GOOD is


@dataclass(frozen=True, slots=True)
class Follower:
    """A locked joint that follows one of the tree's: q = Σ coefficients[i] · q(driver)ⁱ.

    ``error`` [rad or m] is the largest over the range.
    """

    body: int
    driver: int
    coefficients: tuple[float, ...]
    error: float


@dataclass(frozen=True, slots=True, eq=False)
class ClusterTree:
    """A cluster's part of the open tree: the ``bodies`` whose joints move, and the range.

    Attributes:
        cluster: The cluster.
        bodies: The bodies whose joints move.
        positions: Spanning positions (n, nq) at which these joints determine the cluster, neutral
            first.
        others: More of them, drawn independently.
        displacement: Error of position of the links and what they carry [m], root mean square by
            mass.
        farthest: The link with the largest error, and that [m].
        followers: Locked joints that follow.
        with_followers: The same tree with followers, if they help, in the range in which their
            polynomials hold.
    """

    cluster: Cluster
    bodies: tuple[int, ...]
    positions: Array
    others: Array
    displacement: float = 0.0
    farthest: tuple[str, float] = ("", 0.0)
    followers: tuple[Follower, ...] = ()
    with_followers: ClusterTree | None = None


def tree_joints(model: Model, joints: Sequence[str] = (), degree: int = 4) -> list[ClusterTree]:
    """The trees of all clusters, in their order; joints named by ``joints`` move.

    ``degree`` is that of followers' polynomials.

    Raises:
        UnknownNameError: A name that is no joint's.
        ValueError: The named joints, or no whole joints, determine a cluster.
    """
    check_names(joints, model.joint_names, "joints: no joint ", error=UnknownNameError)
    trees = []
    for cluster in model.clusters:
        bodies = [b for b in cluster.bodies if model.joints[b].name in joints]
        trees.append(_ClusterTree(model, cluster, bodies).tree(degree))
    return trees


class _ClusterTree(Choice):
    """The tree of a cluster; joints of ``wanted`` bodies move."""

    def tree(self, degree: int) -> ClusterTree:
        """The joints, their range, and their followers."""
        cluster, rng = self.cluster, np.random.default_rng(SEED + 1)
        bodies, on_the_way = chosen(self.model, cluster.index, tuple(self.wanted))
        ways = on_the_way, self.driven(bodies, rng)
        positions, others = (self._good(x, bodies, GOOD) for x in ways)
        if cluster.kind == "joint":
            return ClusterTree(cluster, bodies, positions, others)
        displacements = Displacements.of(self.model, cluster, self.start)
        locked = displacements.locked(positions, bodies)
        tree = ClusterTree(cluster, bodies, positions, others,
                           *displacements.of_links(positions, locked))  # fmt: skip
        return replace(tree, with_followers=self._with_followers(tree, ways, displacements, degree))

    def _good(self, positions: Array, bodies: Sequence[int], level: float) -> Array:
        """The positions with a relative regularity of these joints above ``level``."""
        sizes = self.regularity(self.rates(positions), bodies, relative=True)
        if sizes[0] <= 0.0:
            raise self.refusal()
        good: Mask = sizes > level
        return np.asarray(positions[good])

    # ---- followers

    def _with_followers(
        self, tree: ClusterTree, ways: Sequence[Array], displacements: Displacements, degree: int
    ) -> ClusterTree | None:
        """The tree with followers, in the range in which their rates are right to ``OFF``.

        At a dead point of the tree's joints a follower's position has the slope of a square root,
        which no polynomial has: the range ends before that.
        """
        bodies, level = tree.bodies, GOOD
        while level < NEAREST and tree.displacement > LEAST_DISPLACED:
            positions = self._good(ways[0], bodies, level)
            followers, left = self._followers(
                positions, bodies, displacements, tree.displacement, degree
            )
            if followers and self._rate_error(positions, bodies, followers) <= OFF:
                others = self._good(ways[1], bodies, level)
                return replace(tree, positions=positions, others=others, displacement=left,
                               followers=followers)  # fmt: skip
            level += NEARER
        return None

    def _rates_by_joints(self, positions: Array, bodies: Sequence[int]) -> Array:
        """Rates of the cluster's joints by those of the tree's (n, spanning velocities, nv)."""
        columns = [c for body in bodies for c in self.columns(body)]
        g = self.rates(positions) * self.motion.unit[:, None]
        return np.asarray(g @ np.linalg.inv(g[:, columns]))

    def _rate_error(
        self, positions: Array, bodies: Sequence[int], followers: Sequence[Follower]
    ) -> float:
        """The largest relative error (rms) of a follower's rates by those of the tree's joints."""
        local = {body: n for n, body in enumerate(self.cluster.bodies)}
        columns = [c for body in bodies for c in self.columns(body)]
        g, worst = self._rates_by_joints(positions, bodies), 0.0
        for each in followers:
            (row,), (driver,) = self.columns(each.body), self.columns(each.driver)
            slopes = np.polynomial.polynomial.polyder(np.array(each.coefficients))
            at = positions[:, self.cluster.geometry.links[local[each.driver]].q]
            error = g[:, row].copy()
            error[:, columns.index(driver)] -= np.polynomial.polynomial.polyval(at, slopes)
            size = float(np.linalg.norm(g[:, row])) or 1.0
            worst = max(worst, float(np.linalg.norm(error)) / size)
        return worst

    def _followers(
        self,
        positions: Array,
        bodies: Sequence[int],
        displacements: Displacements,
        now: float,
        degree: int,
    ) -> tuple[tuple[Follower, ...], float]:
        """Followers, each of which takes off a third of ``now``, the displacement; the rest."""
        local = {body: n for n, body in enumerate(self.cluster.bodies)}
        nodes = self.model.nodes
        scalar = [b for b in self.cluster.bodies if nodes[b].joint.nv == 1 and b not in self.rotors]
        drivers, free = [b for b in scalar if b in bodies], [b for b in scalar if b not in bodies]
        columns = {b: self.cluster.geometry.links[local[b]].q for b in scalar}
        chosen: list[Follower] = []
        rates = self._rates_by_joints(positions, bodies)
        order = [c for body in bodies for c in self.columns(body)]
        at = displacements.locked(positions, bodies)
        while now > LEAST_DISPLACED and drivers:
            best: tuple[float, Follower, Array] | None = None
            for body in free:
                (row,) = self.columns(body)
                fits = [
                    polynomial(positions[:, columns[d]], positions[:, columns[body]], degree,
                               rates[:, row, order.index(*self.columns(d))])
                    for d in drivers
                ]  # fmt: skip
                which = min(range(len(fits)), key=lambda n: fits[n][1])
                coefficients, error = fits[which]
                if len(coefficients) < 2:
                    continue  # it does not move
                slopes = np.polynomial.polynomial.polyder(np.array(coefficients))
                x = positions[:, columns[drivers[which]]]
                if np.max(np.abs(np.polynomial.polynomial.polyval(x, slopes))) > LEVER:
                    continue
                trial = at.copy()
                trial[:, columns[body]] = np.polynomial.polynomial.polyval(x, coefficients)
                size = displacements.size(positions, trial)
                if size < (best[0] if best else WORTH * now):
                    follower = Follower(body, drivers[which], coefficients, error)
                    best = size, follower, trial
            if best is None:
                break
            now, follower, at = best
            chosen.append(follower)
            free.remove(follower.body)
        return tuple(chosen), now


def polynomial(
    x: Array, y: Array, degree: int, slopes: Array | None = None
) -> tuple[tuple[float, ...], float]:
    """Coefficients (from the constant on) of the least-squares polynomial y(x); its largest error.

    With ``slopes``, dy/dx is fitted, too, in units of half the range of x. The basis is
    Chebyshev's.
    """
    from numpy.polynomial import Chebyshev, Polynomial
    from numpy.polynomial.chebyshev import chebder, chebvander

    low, high = float(np.min(x)) - WITHIN, float(np.max(x)) + WITHIN
    half = 0.5 * (high - low)
    t = (x - 0.5 * (low + high)) / half
    for n in range(min(degree, len(x) - 1) + 1):  # the lowest that is exact, else the highest
        rows, right = chebvander(t, n), y
        if slopes is not None and n:
            bends = chebvander(t, n - 1) @ chebder(np.eye(n + 1))
            rows, right = np.vstack([rows, bends]), np.concatenate([y, half * slopes])
        fit = Chebyshev(np.linalg.lstsq(rows, right)[0], domain=[low, high])
        error = float(np.max(np.abs(fit(x) - y)))
        if error <= SAME:
            break
    coefficients = fit.convert(kind=Polynomial).coef
    return tuple(float(c) for c in coefficients), error
