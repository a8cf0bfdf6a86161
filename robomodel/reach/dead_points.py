"""Dead points of joints in what a robot reaches: where these rest while others move.

Joints y tell where a group is while N_y, their rows of its motions N, is regular. σ, the least
singular value of N_y, is the least of their motion by a unit motion of all that count, and 0 at
dead points. With one freedom it is known all along the path. With several it is lowered from
configurations of the group: by Newton's method towards σ = 0, along limits that are met (Rosen, The
gradient projection method for nonlinear programming, 1961), to zero or to where no way leads down.
Such ends are exact as dead points, and as least σ around them; what no start leads to is missed.
Where a file's rounding leaves σ below 1e-3, that is a dead point, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.mechanism.continuation import FINE, Continuation, Points, joined
from robomodel.mechanism.roots import root
from robomodel.mechanism.walks import WALK_STRIDE, wander
from robomodel.reach.crossings import unwound
from robomodel.reach.groups import Group
from robomodel.reach.parts import VARIED
from robomodel.reach.paths import WEAK
from robomodel.reach.uphill import projected
from robomodel.tolerances import MOVES, NOTHING, SINGULAR, TINY, WITHIN, WRITTEN

STARTS, APART = 4, 0.5  # configurations from which σ is lowered, and how far these are apart
# configurations times freedoms, about, from which Newton's steps lead to dead points, how many
# steps, and how many dead points slide on
MANY, LANDING, LANDED = 2000, 10, 16
EQUALLY_NEAR = 1.0002  # times the least way: ends of searches that differ by less are equal
WAYS, WIDE = (3, 4), 20  # points on each way from the start, strides between; least pairs too many
STEPS, SHORTEST = 60, 1e-4  # of a search; share of a stride below which it goes no further
FINER, GRID = 4, 10_000  # points of a path, for each that it has; of a product of paths


@dataclass(frozen=True, eq=False)
class Lowest:
    """Configurations (n, nq) to which searches lead, and σ of joints there: 0 at dead points."""

    points: Points
    sigma: Array


def orthonormal(rows: Array, p: Points) -> Array:
    """Orthonormal motions (n, k, m) of joints with these rows (k, columns) at points."""
    return np.asarray(np.linalg.qr(rows @ p.n)[0])


def sigma(basis: Array, choices: Indices) -> Array:
    """σ (n,) of joints: of a choice (n, m) of rows of orthonormal motions (n, k, m) each."""
    square = np.take_along_axis(basis, choices[:, :, None], axis=1)
    return np.asarray(np.linalg.svd(square, compute_uv=False)[:, -1])


# ---- one freedom ---------------------------------------------------------------------------------


def uniform(group: Group, count: int) -> Points:
    """So many points along the path of a group of one freedom, equally far apart, within it."""
    lengths, points, along = group.path.lengths, group.path.points, group.along
    s = np.linspace(lengths[0], lengths[-1], count)
    at = np.clip(np.searchsorted(lengths, s, side="right") - 1, 0, max(0, len(lengths) - 2))
    p = points[at]
    there, closed, _ = along.moved(p, (s - lengths[at])[:, None] * p.n[:, :, 0])
    return there[np.flatnonzero(closed)]


def along_path(group: Group, rows: Array) -> Array:
    """σ (n, k) with its sign of each of these rows, along the path of a group of one freedom."""
    there = uniform(group, FINER * len(group.path.lengths))
    rates = (rows @ there.n)[:, :, 0]
    return np.asarray(rates / np.maximum(np.linalg.norm(rates, axis=1, keepdims=True), TINY))


def of_product(
    groups: Sequence[Group], rows: Sequence[Array], choice: Sequence[int]
) -> tuple[Array, Array | None, float]:
    """σ (n,) of joints that paths of one freedom move together, over a grid of their product.

    ``rows``: of each group. Also the dead point nearest to the start, as far as the grid tells, by
    all positions (nq,), and the way there; nothing if det N_y has one sign everywhere.
    """
    points = [uniform(group, int(GRID ** (1.0 / len(groups)))) for group in groups]
    rates = [(mine @ p.n)[:, :, 0] for mine, p in zip(rows, points, strict=True)]
    ways = [
        np.linalg.norm(_away(group, p.q), axis=1) for group, p in zip(groups, points, strict=True)
    ]
    shape = tuple(len(p.q) for p in points)
    grid = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1).reshape(
        -1, len(shape)
    )
    moving = np.stack([x[grid[:, g]] for g, x in enumerate(rates)], axis=2)
    of = list(choice)
    values = sigma(np.linalg.qr(moving)[0], np.tile(of, (len(grid), 1)))
    signs = np.linalg.slogdet(moving[:, of])[0].reshape(shape)
    far = np.linalg.norm([x[grid[:, g]] for g, x in enumerate(ways)], axis=0).reshape(shape)
    found = []
    for g in range(len(shape)):
        ahead, behind = np.moveaxis(signs, g, 0)[1:], np.moveaxis(signs, g, 0)[:-1]
        near = np.where(ahead * behind <= 0.0, np.moveaxis(far, g, 0)[:-1], np.inf)
        at = np.unravel_index(int(np.argmin(near)), near.shape)
        found.append((float(near[at]), g, (*at[1 : g + 1], at[0], *at[g + 1 :])))
    away, g, cell = min(found)
    if math.isinf(away):
        return values, None, away
    q, group, here = groups[0].start.copy(), groups[g], points[g][np.array([cell[g]])]
    for other, p, n in zip(groups, points, cell, strict=True):
        q[other.places] = p.q[n, other.places]
    others = np.stack([x[n] for x, n in zip(rates, cell, strict=True)], axis=1)[of]
    step = group.along.mechanism.away(here.q, points[g].q[[cell[g] + 1]])

    def there(share: float) -> tuple[float, Array]:
        at = group.along.moved(here, share * here.n[:, :, 0] * np.linalg.norm(step))[0]
        others[:, g] = (rows[g][of] @ at.n[0])[:, 0]
        return float(np.linalg.det(others)), at.q[0]

    ends = there(0.0)[0], there(1.0)[0]
    share = root(lambda x: there(x)[0], (0.0, 1.0), ends, NOTHING)
    q[group.places] = there(share)[1][group.places]
    away = math.hypot(*(float(np.linalg.norm(_away(each, q[None]))) for each in groups))
    return values, q, away


def least(values: Array) -> Array:
    """The least σ of each column (n, k) along a path: 0 where the sign changes.

    Between points by parabolas.
    """
    low = np.min(np.abs(values), axis=0)
    low[np.any(values[1:] * values[:-1] <= 0.0, axis=0)] = 0.0
    if len(values) > 2:
        before, at, after = values[:-2], values[1:-1], values[2:]
        bend = after - 2.0 * at + before
        dips = (np.abs(at) <= np.abs(before)) & (np.abs(at) <= np.abs(after)) & (bend != 0.0)
        vertex = at - (after - before) ** 2 / (8.0 * np.where(dips, bend, 1.0))
        vertex = np.where(dips, np.maximum(vertex * np.sign(at), 0.0), np.inf)
        low = np.minimum(low, np.min(vertex, axis=0))
    return np.where(low > WEAK, low, 0.0)


# ---- several freedoms ----------------------------------------------------------------------------


def fan(group: Group, rows: Array) -> Points:
    """Points on straight ways from the start, reflected at limits.

    Both ways along each joint of the group, and along each of these rows (k, columns), and two of
    a few, alone.
    """
    along, n = group.along, group.origin.n[0]
    alone = np.linalg.pinv(rows @ n).T
    pairs = [alone[a] + sign * alone[b] for a in range(len(alone)) for b in range(a)
             for sign in (-1.0, 1.0)]  # fmt: skip
    d = np.concatenate([group.joints.rows @ n, alone, *([pairs] if 0 < len(pairs) < WIDE else [])])
    d = d[np.linalg.norm(d, axis=1) > MOVES]
    d, found = np.concatenate([d, -d]), [group.origin]
    p, lengths = group.origin[np.zeros(len(d), dtype=np.intp)], np.full(len(d), WALK_STRIDE)
    for _ in range(WAYS[0]):
        p, d = wander(along, p, np.random.default_rng(0), WAYS[1], d, lengths)
        found.append(p)
    return joined(found)


def lowest(group: Group, known: Points, values: Array) -> Points:
    """The points of known ones with the least σ, which these values are; apart from each other."""
    return known[_spread(_away(group, known.q), np.argsort(values, kind="stable"))]


def _spread(away: Array, order: Indices, most: int = STARTS) -> list[int]:
    """The first few of points in their order that are apart."""
    chosen: list[int] = []
    for n in order.tolist():
        if all(float(np.linalg.norm(away[n] - away[m])) > APART for m in chosen):
            chosen.append(n)
            if len(chosen) == most:
                break
    return chosen


def _away(group: Group, q: Array) -> Array:
    """Ways (n, columns) from the start to q (n, nq), but for full turns."""
    start = np.broadcast_to(group.start, q.shape)
    return group.turning.apart(group.along.mechanism.away(start, q))


def lowered(
    group: Group,
    rows: Array,
    p: Points,
    choices: Indices,
    steps: int = STEPS,
    *,
    along: bool = True,
) -> Lowest:
    """Where σ of joints, a choice (n, m) of rows for each point, is as small as ways down lead.

    ``along``: also along limits; else a way ends there.
    """
    search = _Search(group.along, rows, choices, p)
    for _ in range(steps):
        going = np.flatnonzero(search.going)
        if not len(going):
            break
        ways, sizes = search.down(going)
        search.going[going] = (search.values[going] > SINGULAR) & (sizes > MOVES)
        on = search.going[going]
        going, ways = going[on], ways[on]
        there, values, fine = search.moved(going, ways, back=along)
        search.take(going, there, values, fine & (values < search.values[going]))
    return Lowest(search.points, np.where(search.values > WEAK, search.values, 0.0))


def landed(group: Group, rows: Array, choice: Sequence[int], known: Points) -> Points:
    """Dead points to which Newton's steps lead from known points: those nearest to the start."""
    known = known[np.arange(0, len(known.q), 1 + len(known.q) * group.freedoms // MANY)]
    choices = np.tile(np.array(choice, dtype=np.intp), (len(known.q), 1))
    low = lowered(group, rows, known, choices, LANDING, along=False)
    dead = low.points[np.flatnonzero(low.sigma == 0.0)]
    away = _away(group, dead.q)
    return dead[_spread(away, np.argsort(np.linalg.norm(away, axis=1), kind="stable"), LANDED)]


def nearest(group: Group, rows: Array, choice: Sequence[int], p: Points) -> tuple[Array, float]:
    """The dead point q (nq,) of joints that is nearest to the start, from points at dead points.

    And how far it is from there [rad, sizes]. Hinges that turn fully are within half a turn of
    their start. The points slide to where what is nearer is none, or beyond limits; of ends that
    are equally near the one counts whose joints' positions are the least, one after the other.
    """
    q = unwound(p.q, group.start, group.whole)
    p = replace(p, q=q)
    choices = np.tile(np.array(choice, dtype=np.intp), (len(q), 1))
    search, along = _Search(group.along, rows, choices, p), group.along
    start = np.broadcast_to(group.start, q.shape)

    def ways_from(at: Array) -> Array:
        return along.mechanism.away(start[: len(at)], at)

    for _ in range(STEPS // 2):
        going = np.flatnonzero(search.going)
        if not len(going):
            break
        slopes, here = search.slopes(going), search.points[going]
        downs, sizes = search.down(going, slopes)
        away = ways_from(here.q)
        back = -np.einsum("ncm,nc->nm", here.n, away)
        steep = slopes / np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), TINY)
        ways = back - np.einsum("nm,nm->n", back, steep)[:, None] * steep
        for row in np.flatnonzero(search.meeting(going)).tolist():
            normals = search.normals(int(going[row]))
            rest = normals - np.outer(normals @ steep[row], steep[row])
            ways[row] = projected(ways[row], rest)[1]
        lengths = np.linalg.norm(ways, axis=1)
        search.going[going] = (lengths > WRITTEN) | (search.values[going] > SINGULAR)
        ways *= np.minimum(1.0, search.longest[going] / np.maximum(lengths, TINY))[:, None]
        ways += downs
        prices = 2.0 * np.linalg.norm(back, axis=1) / np.maximum(sizes, MOVES)
        on = search.going[going]
        going, ways, away, prices = going[on], ways[on], away[on], prices[on]
        there, values, fine = search.moved(going, ways)
        before = _half_squares(away) + prices * search.values[going]
        after = _half_squares(ways_from(there.q)) + prices * values
        search.take(going, there, values, fine & (after < before - SINGULAR))
    far = np.linalg.norm(ways_from(search.points.q), axis=1)
    far[search.values > WEAK] = np.inf
    order, q = np.argsort(far, kind="stable"), search.points.q
    alike = order[far[order] <= EQUALLY_NEAR * far[order[0]]]
    places = _spread(ways_from(q), alike, len(alike))
    n = min(places, key=lambda n: np.round(q[n], 1).tolist())
    return q[n], float(far[n])


def _half_squares(ways: Array) -> Array:
    return np.asarray(0.5 * np.einsum("nc,nc->n", ways, ways))


class _Search:
    """Points that are moved side by side, each with σ of its choice of joints."""

    def __init__(self, along: Continuation, rows: Array, choices: Indices, p: Points) -> None:
        self.along, self.rows, self.choices = along, rows, choices
        self.points, self.values = p[np.arange(len(p.q))], self.sigma(p, choices)
        self.longest = np.full(len(p.q), WALK_STRIDE)
        self.going = np.ones(len(p.q), dtype=bool)

    def sigma(self, p: Points, choices: Indices) -> Array:
        """σ of choices at points."""
        return sigma(orthonormal(self.rows, p), choices)

    def slopes(self, some: Indices) -> Array:
        """Derivatives (n, m) of σ by motions.

        N has the derivative -K⁺ (dK) N; dK by central differences.
        """
        along, m, p, choices = (
            self.along,
            self.along.freedoms,
            self.points[some],
            self.choices[some],
        )
        basis = orthonormal(self.rows, p)
        square = np.take_along_axis(basis, choices[:, :, None], axis=1)
        left, sizes, right = np.linalg.svd(square)
        u, v = left[:, :, -1], right[:, -1]
        weights = -sizes[:, -1:] * np.einsum("nkm,nm->nk", basis, v)
        weights[np.arange(len(some))[:, None], choices] += u
        triangle = np.swapaxes(basis, 1, 2) @ self.rows @ p.n
        moving = (p.n @ np.linalg.solve(triangle, v[:, :, None]))[:, :, 0]
        forces = along.through(p, (weights @ self.rows)[:, None])[:, 0]
        of = np.repeat(np.arange(len(some)), 2 * m)
        ways = VARIED * np.concatenate([p.n, -p.n], axis=2)
        d = np.swapaxes(ways, 1, 2).reshape(len(of), -1)
        k = along.mechanism.step(p.q[of], d, p.case[of])[2]
        pushed = np.einsum("nr,nrc,nc->n", forces[of], k, moving[of]).reshape(-1, 2, m)
        return np.asarray((pushed[:, 1] - pushed[:, 0]) / (2.0 * VARIED))

    def down(self, some: Indices, slopes: Array | None = None) -> tuple[Array, Array]:
        """Newton's steps (n, m) towards σ = 0, along limits that are met, and the slopes there.

        No longer than strides of the search.
        """
        ways = -(self.slopes(some) if slopes is None else slopes)
        for row in np.flatnonzero(self.meeting(some)).tolist():
            ways[row] = projected(ways[row], self.normals(int(some[row])))[1]
        sizes = np.linalg.norm(ways, axis=1)
        lengths = np.minimum(self.values[some] / np.maximum(sizes, MOVES), self.longest[some])
        return ways * (lengths / np.maximum(sizes, MOVES))[:, None], sizes

    def meeting(self, some: Indices) -> Mask:
        """Which points meet limits."""
        limits = self.along.limits
        at = self.points.q[some][:, limits.places]
        met = (at >= limits.high - WRITTEN) | (at <= limits.low + WRITTEN)
        return np.asarray(np.any(met, axis=1))

    def normals(self, n: int) -> Array:
        """Rows (k, m) of the limits that a point meets, outwards."""
        limits, at = self.along.limits, self.points.q[n, self.along.limits.places]
        up, down = at >= limits.high - WRITTEN, at <= limits.low + WRITTEN
        rows = np.concatenate([limits.rows[up], -limits.rows[down]])
        return np.asarray(rows @ self.points.n[n])

    def moved(self, some: Indices, ways: Array, *, back: bool = True) -> tuple[Points, Array, Mask]:
        """Points that strides lead to, back to limits that are passed; σ, and which are fine."""
        along, start, ways = self.along, self.points[some], ways.copy()
        there, ends = along.stride(start, ways)
        for _ in range(4):
            over = along.limits.beyond(there.q)
            passed = np.flatnonzero(np.any(over > WITHIN, axis=1) & (ends == FINE))
            if not (back and len(passed)):
                break
            for n in passed.tolist():
                beyond = over[n] > WITHIN
                above = there.q[n, along.limits.places] > along.limits.high
                normals = np.where(above, 1.0, -1.0)[beyond, None] * along.limits.rows[beyond]
                ways[n] -= np.linalg.pinv(normals @ start.n[n]) @ over[n, beyond]
            again, ends[passed] = along.stride(start[passed], ways[passed])
            there = there.put(passed, again)
        within = np.all(along.limits.beyond(there.q) <= WITHIN, axis=1)
        values = self.sigma(there, self.choices[some])
        return there, values, within & (ends == FINE)

    def take(self, some: Indices, there: Points, values: Array, fine: Mask) -> None:
        """Strides that are fine; the others are to be shorter, and end where they are too short."""
        on = some[fine]
        self.points = self.points.put(on, there[np.flatnonzero(fine)])
        self.values[on] = values[fine]
        self.longest[on] = np.minimum(2.0 * self.longest[on], WALK_STRIDE)
        self.longest[some[~fine]] *= 0.5
        self.going &= self.longest > SHORTEST * WALK_STRIDE
