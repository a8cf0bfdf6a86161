"""Clusters with loop joints: rank, redundancy, independent coordinates, a closed start.

They are studied at random closed configurations: the generic rank of K there gives the mobility,
rows that are constant combinations of others are dropped, and independent coordinates, where the
file leaves the choice, are those with a well conditioned G over the samples.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from robomodel.errors import DescriptionError, Source
from robomodel.model.closure import CLOSED, close
from robomodel.model.constraints import Block, LoopConstraint, Perpendicular
from robomodel.model.couplings import eliminate
from robomodel.model.joints import Array, Mask
from robomodel.model.question import (
    Finding,
    Question,
    check_counts,
    condition_names,
    first_source,
    names,
)
from robomodel.model.sampling import conditioning, random_positions, regularity

NOT_EXACT = 1e-4  # a gap or a misalignment up to this is put down to rounding in the file
RANK = 1e-5  # singular values below this share of the largest one count as zero
SAMPLES = 24
STRAY = 0.2  # radians, or cluster sizes: how far from closed configurations loops are watched


@dataclass(frozen=True, slots=True)
class _Samples:
    """Closed configurations, the conditions' Jacobians there in comparable units, their ranks."""

    q: Array
    jacobian: Array
    ranks: Array
    gap: float


def _unit(question: Question) -> Array:
    """Column scaling that makes metres and radians comparable."""
    return np.array([question.scale if column.length else 1.0 for column in question.columns])


def _row_unit(question: Question) -> Array:
    """Row scaling: gaps in units of the cluster's length (angles' sines as they are)."""
    units = []
    for loop in question.geometry.loops:
        for row in loop.rows:
            angular = isinstance(row, Perpendicular)
            units.append(1.0 if angular else 1.0 / question.scale)
    units += [1.0 / math.hypot(*(x for _, x in c.terms)) for c in question.geometry.linear]
    return np.array(units)


def _sample(question: Question) -> _Samples:
    """Closed configurations: near the start, and anywhere."""
    geometry = question.geometry
    rng = np.random.default_rng(20240607)
    smallest = math.inf
    found: list[Array] = []
    for attempt in range(6):
        anywhere = random_positions(geometry, question.columns, rng, SAMPLES, question.scale)
        near = geometry.integrate(
            np.broadcast_to(question.start, (SAMPLES, geometry.nq)),
            rng.uniform(-0.6, 0.6, (SAMPLES, geometry.nv)) * _unit(question),
        )
        guesses = np.concatenate([question.start[None], near, anywhere])
        if attempt == 0:
            guesses = guesses[: SAMPLES + 1 + SAMPLES // 2]
        q, gaps = close(geometry, guesses, iterations=30)
        smallest = min(smallest, float(np.min(gaps / max(1.0, question.scale))))
        good = (
            gaps <= max(CLOSED, 1.001 * smallest) * max(1.0, question.scale)
        ) & ~geometry.flipped(q)
        if smallest > NOT_EXACT * min(1.0, question.scale):
            continue
        found.append(q[good])
        if sum(len(batch) for batch in found) >= SAMPLES // 2:
            break
    if not found or not sum(len(batch) for batch in found):
        start_gap = float(geometry.gap(question.start))
        best = (
            f"the smallest gap found is {smallest:.3g}"
            if smallest > CLOSED
            else ("it closes only with an axis the wrong way round")
        )
        raise DescriptionError(
            f"cannot close: {best} (at the start it is {start_gap:.3g}; "
            f"conditions {condition_names(question)}); check the anchors, the lengths and axes",
            first_source(question),
        )
    q = np.concatenate(found)
    jacobian = geometry.evaluate(q)[1] * _unit(question) * _row_unit(question)[:, None]
    singular = np.linalg.svd(jacobian, compute_uv=False)
    ranks = np.sum(singular > RANK * singular[:, :1], axis=1)
    return _Samples(q, jacobian, ranks, smallest)


def analyse_loops(question: Question) -> Finding:
    """Loop joints: rank at random closed configurations, the best coordinates, the rows to keep."""
    geometry, n = question.geometry, len(question.columns)
    samples = _sample(question)
    rank = int(np.max(samples.ranks))
    generic = samples.ranks == rank
    q, jacobian = samples.q[generic], samples.jacobian[generic]
    mobility = n - rank
    first = np.broadcast_to(question.start, q.shape)
    nearest = q[int(np.argmin(np.linalg.norm(geometry.difference(first, q), axis=1)))]
    check_counts(question, mobility, rank, nearest)
    _, singular, right = np.linalg.svd(jacobian)
    null = np.swapaxes(right[:, rank:, :], 1, 2)  # (samples, n, mobility), orthonormal
    suspicions: list[tuple[str, Source]] = []
    dropped = singular[:, rank:] / np.maximum(singular[:, :1], 1e-300)
    off = float(np.max(dropped, initial=0.0))
    if samples.gap > CLOSED or off > 1e-9:
        suspicions.append(
            (
                f"closes only nearly (conditions {condition_names(question)}: gap "
                f"{samples.gap:.2g}, axes off by {off:.2g}); taken as exact, but check the anchors "
                "and write angles with all digits",
                first_source(question),
            )
        )
    independent, notes = _independent(question, null, mobility)
    ranks, repeated = _added_ranks(question, jacobian)
    suspicions += [
        (
            "adds nothing: the loops and couplings before it already say all of it "
            f"(of {condition_names(question)}); remove it",
            source,
        )
        for rank_, source in zip(ranks, question.loop_sources, strict=True)
        if rank_ == 0
    ]
    keep = _rows_to_keep(question, jacobian, ranks)
    constraint = _constraint(question, jacobian / _unit(question), independent, keep)
    exact = samples.gap <= CLOSED and off <= 1e-9
    couplings = _row_numbers(question)[1]
    closing = tuple(range(geometry.rows)) if exact else (*keep, *couplings)
    if not exact:
        suspicions += _opening(question, q, null, closing)
    neutral = _loop_neutral(question, q, null, independent, closing, exact)
    return Finding(
        constraint,
        independent,
        neutral,
        tuple(ranks),
        tuple(repeated),
        closing,
        tuple(notes),
        tuple(suspicions),
    )


def _opening(
    question: Question, q: Array, null: Array, closing: tuple[int, ...]
) -> list[tuple[str, Source]]:
    """Loops of which conditions that were left out open as soon as the cluster moves.

    They hold at the closed configurations only to first order (two links that may turn only
    together, at a distance that is the largest they can have): to the letter, the robot is stuck.
    """
    geometry = question.geometry
    rng = np.random.default_rng(20240608)
    step = rng.uniform(-STRAY, STRAY, (len(q), null.shape[2]))
    moved = geometry.integrate(q, np.einsum("snm,sm->sn", null, step) * _unit(question))
    there, gaps = close(geometry, moved, rows=closing)
    there = there[gaps <= CLOSED * max(1.0, question.scale)]
    if not len(there):
        return []
    open_ = np.max(np.abs(geometry.evaluate(there)[0]) * _row_unit(question), axis=0)
    found = []
    of_loops, _ = _row_numbers(question)
    for rows, source in zip(of_loops, question.loop_sources, strict=True):
        worst = max((float(open_[row]) for row in rows if row not in closing), default=0.0)
        if worst > NOT_EXACT:
            found.append(
                (
                    "holds to first order only: taken to the letter, it leaves its cluster stuck "
                    "where it is. Its conditions that say so are left out; they open by "
                    f"{worst:.2g} of the cluster's size ({question.scale:.2g} m) when it moves by "
                    f"{STRAY:g}; say what the joint leaves free with a loop of another type",
                    source,
                )
            )
    return found


def _constraint(
    question: Question, jacobian: Array, independent: tuple[int, ...], keep: list[int]
) -> LoopConstraint:
    """How G and g are found: what couplings leave, and in which blocks loops determine the rest."""
    geometry = question.geometry
    prefer = [0 if c.chosen is False else 1 if c.follower else 2 for c in question.columns]
    pivots = eliminate(question, frozenset(independent), prefer).pivots
    z = [i for i in range(geometry.nv) if i not in pivots]
    expand = tuple(
        tuple((pivots[i][0] if i in pivots else {i: 1.0}).get(c, 0.0) for c in z)
        for i in range(geometry.nv)
    )
    pattern = np.max(np.abs(jacobian[:, keep] @ np.array(expand)), axis=0) > 1e-11
    pairs = [(a, b) for a, loop in enumerate(geometry.loops) for b in range(len(loop.rows))]
    return LoopConstraint(
        geometry.links,
        geometry.loops,
        frozenset(pairs[row] for row in keep),
        expand,
        tuple(z.index(i) for i in independent),
        _blocks(pattern, [i for i, column in enumerate(z) if column not in independent]),
    )


def _independent(
    question: Question, null: Array, mobility: int
) -> tuple[tuple[int, ...], list[str]]:
    """The independent columns: the file's where it decides, else the best conditioned."""
    columns = question.columns
    forced = [i for i, c in enumerate(columns) if c.chosen]
    open_ = [i for i, c in enumerate(columns) if c.chosen is None]
    notes: list[str] = []
    if len(forced) == mobility:
        choice = tuple(forced)
    elif len(forced) + len(open_) == mobility:
        choice = tuple(sorted(forced + open_))
    else:
        choice = _best(
            null, forced, open_, mobility, [columns[i].follower for i in range(len(columns))]
        )
        picked = names([columns[i].label for i in choice if i in open_])
        notes.append(
            f"cluster '{question.name}': {picked} chosen as independent by conditioning, "
            "as the file does not say"
        )
    measure = conditioning(null, choice)
    if float(np.max(measure)) < 1e-6:
        others = _best(null, [], list(range(len(columns))), mobility, [False] * len(columns))
        raise DescriptionError(
            f"{names([columns[i].label for i in choice])} cannot be the independent coordinates: "
            "at every configuration tried, motions of the cluster leave them at rest "
            f"(singular value {float(np.max(measure)):.1g}); take "
            f"{names([columns[i].label for i in others])}",
            first_source(question),
        )
    return choice, notes


def _best(
    null: Array, forced: list[int], open_: list[int], mobility: int, follower: list[bool]
) -> tuple[int, ...]:
    """The choice of joints nearest the base that is conditioned within twice the best.

    Conditioning is judged over the samples; followers are chosen only if they must be.
    """
    missing = mobility - len(forced)
    pools = [[i for i in open_ if not follower[i]], open_]
    for pool in pools:
        if len(pool) < missing:
            continue
        if math.comb(len(pool), missing) <= 3000:
            best: tuple[float, tuple[int, ...]] = (-1.0, ())
            for extra in itertools.combinations(pool, missing):
                choice = tuple(sorted([*forced, *extra]))
                measure = conditioning(null, choice)
                score = float(np.quantile(measure, 0.1))
                if score > 2.0 * best[0] + 1e-12:  # of the good ones, the one nearest the base
                    best = (score, choice)
        else:
            best = _greedy(null, forced, pool, mobility)
        if best[0] > 1e-3:
            return best[1]
    return best[1]


def _greedy(
    null: Array, forced: list[int], pool: list[int], mobility: int
) -> tuple[float, tuple[int, ...]]:
    """Pivoted Gram–Schmidt on the rows of the null-space bases, all samples at once."""
    rows = np.swapaxes(null, 1, 2).copy()  # (samples, mobility, n)
    choice: list[int] = []
    for step in range(mobility):
        size = np.quantile(np.linalg.norm(rows, axis=1), 0.25, axis=0)
        options = forced if step < len(forced) else [i for i in pool if i not in choice]
        pick = max((i for i in options if i not in choice), key=lambda i: size[i])
        choice.append(pick)
        direction = rows[:, :, pick]
        direction = direction / np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
        rows -= direction[:, :, None] * np.einsum("sm,smn->sn", direction, rows)[:, None, :]
    ordered = tuple(sorted(choice))
    return float(np.quantile(conditioning(null, ordered), 0.25)), ordered


def _added_ranks(question: Question, jacobian: Array) -> tuple[list[int], list[bool]]:
    """The rank that each loop adds to all couplings and the loops before; couplings that add none.

    Ranks are generic: the largest over the samples.
    """
    geometry = question.geometry
    size = np.linalg.norm(jacobian, axis=(1, 2))

    def rank(rows: list[int]) -> int:
        singular = np.linalg.svd(jacobian[:, rows], compute_uv=False)
        return int(np.max(np.sum(singular > RANK * size[:, None], axis=1), initial=0))

    of_loops, couplings = _row_numbers(question)
    repeated = [rank(couplings[: n + 1]) == rank(couplings[:n]) for n in range(len(couplings))]
    seen, ranks = list(couplings), [rank(couplings)]
    for rows in of_loops:
        seen += rows
        ranks.append(rank(seen))
    return [ranks[n + 1] - ranks[n] for n in range(len(geometry.loops))], repeated


def _row_numbers(question: Question) -> tuple[list[list[int]], list[int]]:
    """The rows of each loop, and those of the couplings, among all conditions."""
    of_loops, at = [], 0
    for loop in question.geometry.loops:
        of_loops.append(list(range(at, at + len(loop.rows))))
        at += len(loop.rows)
    return of_loops, list(range(at, question.geometry.rows))


def _rows_to_keep(question: Question, jacobian: Array, ranks: list[int]) -> list[int]:
    """Loop rows that are no constant combination of the others.

    Stacking the samples side by side makes a row that is *always* the same combination of others
    linearly dependent; pivoting picks the best conditioned rows. What redundancy is left varies
    with the configuration, and is dealt with by least squares. Couplings are eliminated first, so
    rows are judged by what those leave of them, sample by sample.
    """
    of_loops, couplings = _row_numbers(question)
    left = jacobian
    if couplings:
        right = np.linalg.pinv(jacobian[:, couplings]) @ jacobian[:, couplings]
        left = jacobian - jacobian @ right
    stacked = np.concatenate(list(left), axis=1)
    reference = float(np.max(np.linalg.norm(np.concatenate(list(jacobian), axis=1), axis=1)))
    candidates = [row for rows, rank in zip(of_loops, ranks, strict=True) if rank for row in rows]
    keep: list[int] = []
    while candidates:
        size = {row: float(np.linalg.norm(stacked[row])) for row in candidates}
        pick = max(candidates, key=lambda row: (round(size[row] / reference, 6), -row))
        if size[pick] <= 3 * RANK * reference:
            break
        keep.append(pick)
        candidates.remove(pick)
        direction = stacked[pick] / size[pick]
        stacked = stacked - np.outer(stacked @ direction, direction)
    return sorted(keep)


def _blocks(pattern: Mask, dependent: list[int]) -> tuple[Block, ...]:
    """Block triangular order of the dependent columns' system, if it is square and sparse."""
    rows = len(pattern)
    if not dependent:
        return ()
    whole = (Block(tuple(range(rows)), tuple(dependent)),)
    if rows != len(dependent) or rows <= 2:
        return whole
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

    square = pattern[:, dependent]
    match = maximum_bipartite_matching(csr_array(square.astype(np.int8)), perm_type="column")
    if np.any(match < 0):
        return whole
    matched = square[:, match]  # row i determines column match[i]
    count, label = connected_components(
        csr_array(matched.astype(np.int8)), directed=True, connection="strong"
    )
    members = [[i for i in range(rows) if label[i] == c] for c in range(count)]
    needs = [
        {int(label[j]) for i in group for j in range(rows) if matched[i, j]} - {c}
        for c, group in enumerate(members)
    ]
    order: list[int] = []
    while len(order) < count:
        order.append(next(c for c in range(count) if c not in order and needs[c] <= set(order)))
    return tuple(
        Block(tuple(members[c]), tuple(dependent[match[i]] for i in members[c])) for c in order
    )


def _loop_neutral(
    question: Question,
    samples: Array,
    null: Array,
    independent: tuple[int, ...],
    closing: tuple[int, ...],
    exact: bool,
) -> Array:
    """A closed, regular configuration near the start, within the limits where there is one."""
    geometry, columns = question.geometry, question.columns
    unit = _unit(question)
    good = float(np.quantile(conditioning(null, independent), 0.5))
    low = np.array([column.limits[0] for column in columns])
    high = np.array([column.limits[1] for column in columns])

    def measure(q: Array) -> tuple[Mask, Array, Array]:
        regular = regularity(geometry, q, unit, independent) >= 0.1 * good
        zero = np.broadcast_to(question.start, q.shape)
        away = geometry.difference(zero, q)
        at = geometry.difference(np.broadcast_to(geometry.zero(), q.shape), q)
        outside = np.sum(np.maximum(0.0, low - at) + np.maximum(0.0, at - high), axis=1)
        return regular, np.linalg.norm(away / unit, axis=1), outside

    first, gap = close(geometry, question.start[None], rows=closing)
    candidates = samples
    if float(gap[0]) <= CLOSED * max(1.0, question.scale) and not bool(geometry.flipped(first)[0]):
        candidates = np.concatenate([first, samples])
    if not exact:
        candidates = close(geometry, candidates, rows=closing)[0]
    regular, away, outside = measure(candidates)
    order = sorted(
        range(len(candidates)),
        key=lambda i: (bool(outside[i] > 1e-9), not regular[i], float(away[i]), i),
    )
    best: Array = candidates[order[0]]
    return best
