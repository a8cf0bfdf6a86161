"""Which coordinates of a cluster with loops are independent, where the file leaves it open.

Two things are wanted: a well conditioned G wherever the cluster goes from the configuration that
the file closes in, and the same answer for the same mechanism, whatever its joints are called, in
which order they stand and whether it is the mirror image. So nothing here is drawn by lot: the
configurations on which choices are judged are reached from the file's own by driving each joint to
and fro (:func:`configurations_around`), which leads a mirror image through the mirror images. And
what is equal but for rounding counts as equal.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from robomodel.model.clusters.problem import ClusterProblem
from robomodel.model.clusters.sampling import conditioning
from robomodel.model.joints import Array

STRIDE, STRIDES = 0.3, 12  # radians, or cluster sizes; about half a turn to either side
WALKERS = 400  # configurations, about, in which a choice is judged; fewer of more freedoms
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)  # of the configurations, in which a choice may be worse
POOR = 1e-3  # a worse conditioned choice is none, if there is another
AS_GOOD = 2.0  # choices conditioned within this factor of the best are good; a part costs as much
EQUAL = 1.05  # and of these, those within this factor of each other are equally good
ATTEMPTS = 40_000  # choices times configurations up to which all choices are tried


def configurations_around(problem: ClusterProblem, at: Array, rank: int) -> tuple[Array, Array]:
    """Closed configurations around ``at`` (n, nq), and what moves there (n, columns, mobility).

    From there every joint is driven, to and fro, as far as the loops let it; the motion then goes
    straight on, as a geodesic of the closed configurations in comparable units. A way ends at a
    joint limit, and where the loops do not follow. Configurations of another rank are left out; the
    first one is ``at`` itself, if it is not.
    """
    geometry, unit = problem.geometry, problem.unit
    _, singular, right = np.linalg.svd(problem.conditions(at[None])[1])
    own_rank = int(np.sum(singular > problem.tolerance.rank * singular[:, :1]))
    free = right[0, own_rank:]
    ahead = _directions(free.T @ free)
    count = WALKERS // (len(ahead) * max(1, (geometry.nv - rank) // 3) + 1)
    strides = max(2, min(STRIDES, count))
    q = np.broadcast_to(at, (len(ahead), len(at)))
    generic = np.array([own_rank == rank])
    found_q, found_null = [at[None][generic]], [np.swapaxes(right[generic, rank:], 1, 2)]
    closed = max(1e-8 * max(1.0, problem.scale), 2.0 * float(geometry.gap(at)))
    for _ in range(strides):
        before = q
        q = geometry.integrate(q, STRIDE * ahead * unit)
        for _ in range(3):
            values, scaled = problem.conditions(q)
            inverse = np.linalg.pinv(scaled, rcond=problem.tolerance.rank)
            q = geometry.integrate(q, -np.einsum("nij,nj->ni", inverse, values) * unit)
        values, scaled = problem.conditions(q)
        way = np.linalg.norm(geometry.difference(before, q) / unit, axis=1)
        gap = np.max(np.abs(values / problem.row_unit), axis=1, initial=0.0)
        good = (gap <= closed) & (way < 2 * STRIDE) & ~geometry.flipped(q)
        good &= _within(problem, at, q)
        if not np.any(good):
            break
        _, singular, right = np.linalg.svd(scaled[good])
        generic = np.sum(singular > problem.tolerance.rank * singular[:, :1], axis=1) == rank
        q, ahead = q[good][generic], ahead[good][generic]
        null = np.swapaxes(right[generic, rank:], 1, 2)
        found_q.append(q)
        found_null.append(null)
        ahead = np.einsum("nij,nkj,nk->ni", null, null, ahead)
        ahead /= np.maximum(np.linalg.norm(ahead, axis=1, keepdims=True), 1e-12)
    return np.concatenate(found_q), np.concatenate(found_null)


def _directions(projection: Array) -> Array:
    """The columns of a projection as unit vectors, to and fro, each once."""
    found: list[Array] = []
    for column in projection.T:
        size = float(np.linalg.norm(column))
        if size < 1e-3:
            continue
        direction = column / size
        if all(abs(float(direction @ other)) < 1.0 - 1e-6 for other in found):
            found.append(direction)
    ways = np.array(found).reshape(-1, len(projection))
    return np.concatenate([ways, -ways])


def _within(problem: ClusterProblem, at: Array, q: Array) -> Array:
    """Which configurations are no further out of the joint limits than ``at`` is."""
    geometry = problem.geometry
    low, high = problem.limits
    zero = geometry.zero()
    here = geometry.difference(zero, at)
    there = geometry.difference(np.broadcast_to(zero, q.shape), q)
    low, high = np.minimum(low, here) - 1e-6, np.maximum(high, here) + 1e-6
    inside: Array = np.all((there >= low) & (there <= high), axis=1)
    return inside


def choose_independent(
    problem: ClusterProblem, null: Array, forced: Sequence[int], pool: Sequence[int], mobility: int
) -> tuple[int, ...]:
    """``forced`` and the best of ``pool``, sorted, for ``mobility`` independent columns.

    ``null`` (samples, columns, mobility) are orthonormal motions at configurations. Choices are
    judged by how they are conditioned in all but a tenth of the configurations; where that is
    nothing for any choice, as where the configurations are of several kinds, in all but a quarter,
    and so on. Of those within twice the best the one nearest the base is taken, and among equals
    the best. Followers of mimics and couplings are chosen only if they must be.
    """
    first = [i for i in pool if not problem.columns[i].follower]
    options = [each for each in (first, list(pool)) if len(forced) + len(each) >= mobility]
    found: tuple[int, ...] = ()
    for option, share in itertools.product(options, SHARES):
        judged = _judged(null, sorted(forced), option, mobility, share)
        found = _simplest(problem, judged)
        if max(judged.values()) > POOR:
            break
    return found


Judged = dict[tuple[int, ...], float]


def _scores(null: Array, choices: Sequence[tuple[int, ...]], share: float) -> Judged:
    """How choices are conditioned in all but this share of the configurations."""
    picked = null[:, np.array(choices), :]
    measure = np.linalg.svd(picked, compute_uv=False)[..., -1]
    return dict(zip(choices, np.quantile(measure, share, axis=0).tolist(), strict=True))


def _judged(null: Array, forced: list[int], pool: list[int], mobility: int, share: float) -> Judged:
    """Choices and their scores: all of them, or those around the best that is found by exchange."""
    missing = mobility - len(forced)
    if math.comb(len(pool), missing) * len(null) <= ATTEMPTS:
        extras = itertools.combinations(pool, missing)
        return _scores(null, [tuple(sorted([*forced, *extra])) for extra in extras], share)
    choice = _pivoted(null, forced, pool, mobility, share)
    gain = _gain(null, choice, forced, pool, share)
    for _ in range(2 * mobility):  # each exchange makes the columns span more
        out, new = max(gain, key=lambda pair: gain[pair])
        if gain[out, new] <= EQUAL:
            break
        choice = _exchanged(choice, out, new)
        gain = _gain(null, choice, forced, pool, share)
    near = [pair for pair, factor in gain.items() if factor * AS_GOOD**2 >= 1.0]
    return _scores(null, [choice, *(_exchanged(choice, *pair) for pair in near)], share)


def _gain(
    null: Array, choice: tuple[int, ...], forced: Sequence[int], pool: Sequence[int], share: float
) -> dict[tuple[int, int], float]:
    """By what the volume that a choice spans is multiplied as one column gives way to another."""
    g = null @ np.linalg.pinv(null[:, list(choice), :])
    factors = np.quantile(np.abs(g), share, axis=0)
    return {
        (out, new): float(factors[new, choice.index(out)])
        for out in choice
        if out not in forced
        for new in pool
        if new not in choice
    }


def _exchanged(choice: Sequence[int], out: int, new: int) -> tuple[int, ...]:
    return tuple(sorted([*(i for i in choice if i != out), new]))


def _pivoted(
    null: Array, forced: Sequence[int], pool: Sequence[int], mobility: int, share: float
) -> tuple[int, ...]:
    """A choice by pivoted Gram-Schmidt on the rows of the motions, all samples at once."""
    rows = np.swapaxes(null, 1, 2).copy()  # (samples, mobility, columns)
    choice: list[int] = []
    for step in range(mobility):
        size = np.quantile(np.linalg.norm(rows, axis=1), share, axis=0)
        options = [i for i in (forced if step < len(forced) else pool) if i not in choice]
        largest = max(size[i] for i in options)
        pick = next(i for i in options if size[i] * EQUAL >= largest)
        choice.append(pick)
        direction = rows[:, :, pick]
        direction = direction / np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
        rows -= direction[:, :, None] * np.einsum("sm,smn->sn", direction, rows)[:, None, :]
    return tuple(sorted(choice))


def best_columns(motions: Array) -> tuple[int, ...]:
    """The columns that say best how a cluster moves (columns, mobility) at one configuration."""
    columns, mobility = motions.shape
    return _pivoted(motions[None], [], range(columns), mobility, 0.0)


def _simplest(problem: ClusterProblem, judged: Judged) -> tuple[int, ...]:
    """Of the good choices the one of most whole joints, nearest the base, that carry most.

    Of several such the best, and of equals the first.
    """
    columns, links = problem.columns, problem.geometry.links
    depth: list[int] = []
    for link in links:
        depth.append(0 if link.parent is None else depth[link.parent] + 1)
    carried = [1] * len(links)
    for i in reversed(range(len(links))):
        parent = links[i].parent
        if parent is not None:
            carried[parent] += carried[i]

    def cost(choice: tuple[int, ...]) -> tuple[int, int, int]:
        at = [columns[i].link for i in choice]
        parts = sum(columns[i].part for i in choice)
        return parts, sum(depth[i] for i in at), -sum(carried[i] for i in at)

    worth = {choice: score / AS_GOOD ** cost(choice)[0] for choice, score in judged.items()}
    best = max(worth.values())
    good = [choice for choice in judged if worth[choice] * AS_GOOD >= best]
    least = min(map(cost, good))
    good = [choice for choice in good if cost(choice) == least]
    best = max(judged[choice] for choice in good)
    return min(choice for choice in good if judged[choice] * EQUAL >= best)


def singular_everywhere(null: Array, choice: Sequence[int]) -> float | None:
    """The largest conditioning of a choice that is independent nowhere; None if it is somewhere."""
    worst = float(np.max(conditioning(null, choice), initial=0.0))
    return worst if worst < 1e-6 else None
