"""Clusters with loop joints: rank, redundancy, independent coordinates, a closed start.

They are studied at random closed configurations: the generic rank of K there gives the mobility,
and rows that are constant combinations of others are dropped. Joints that only follow the others
through a coupling (rotors, mimics) are left out of this, so that they change nothing of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from robomodel.errors import NOWHERE, DescriptionError, Source
from robomodel.model.closure import CLOSED, Geometry, close
from robomodel.model.clusters.couplings import eliminate
from robomodel.model.clusters.followers import ReducedProblem
from robomodel.model.clusters.open_loops import at_most, describe_gaps, tolerance_above
from robomodel.model.clusters.partitioning import (
    choose_independent,
    configurations_around,
    singular_everywhere,
)
from robomodel.model.clusters.problem import (
    ClosureTolerance,
    ClusterError,
    ClusterProblem,
    ClusterSolution,
    Column,
    check_counts,
    condition_names,
    first_source,
    names,
)
from robomodel.model.clusters.sampling import conditioning, random_positions, regularity
from robomodel.model.constraints.implicit import Block, LoopConstraint
from robomodel.model.joints import Array, Mask

SAMPLES = 24
PERTURBATION = 0.2  # radians, or cluster sizes: how far from closure loops are watched
ROUNDING = 0.02  # of the cluster's size: a gap that may be put down to rounding
NEARLY_CLOSED = 0.01  # of the cluster's size: a start as near to closing says where to close
SAME = 1.0 - 1e-6  # what is at least this share of the largest is as large


@dataclass(frozen=True, slots=True)
class _Samples:
    """Closed configurations, the conditions' Jacobians there in comparable units, their ranks."""

    q: Array
    jacobian: Array
    ranks: Array
    gap: float


def _sample(problem: ClusterProblem) -> _Samples:
    """Closed configurations: near the start, and anywhere."""
    geometry = problem.geometry
    rng = np.random.default_rng(20240607)
    exact = CLOSED * max(1.0, problem.scale)
    smallest, best = math.inf, problem.start
    found: list[tuple[Array, Array]] = []
    for attempt in range(6):
        anywhere = random_positions(geometry, problem.columns, rng, SAMPLES, problem.scale)
        near = geometry.integrate(
            np.broadcast_to(problem.start, (SAMPLES, geometry.nq)),
            rng.uniform(-0.6, 0.6, (SAMPLES, geometry.nv)) * problem.unit,
        )
        guesses = np.concatenate([problem.start[None], near, anywhere])
        if attempt == 0:
            guesses = guesses[: SAMPLES + 1 + SAMPLES // 2]
        q, gaps = close(geometry, guesses, iterations=30, rank=problem.tolerance.rank)
        if float(np.min(gaps)) < smallest:
            smallest, best = float(np.min(gaps)), q[int(np.argmin(gaps))]
        # where loops close only nearly, how nearly may depend on the configuration
        enough = exact if smallest <= exact else problem.tolerance.gap
        good = ~geometry.flipped(q)
        found.append((q[good], gaps[good]))
        if sum(np.count_nonzero(left <= enough) for _, left in found) >= SAMPLES // 2:
            break
    q, gaps = (np.concatenate(parts) for parts in zip(*found, strict=True))
    q = q[gaps <= enough]
    if not len(q):
        raise _open(problem, best, smallest, exact)
    jacobian = problem.conditions(q)[1]
    singular = np.linalg.svd(jacobian, compute_uv=False)
    ranks = np.sum(singular > problem.tolerance.rank * singular[:, :1], axis=1)
    return _Samples(q, jacobian, ranks, smallest)


def _exploration(problem: ClusterProblem) -> tuple[_Samples, _Explored]:
    """Closed configurations and motions, found once for clusters that differ in names only."""
    geometry = problem.geometry
    nameless = Geometry(
        geometry.links,
        tuple(replace(loop, name="") for loop in geometry.loops),
        tuple(replace(coupling, name="") for coupling in geometry.linear),
    )
    columns = tuple(replace(column, label="", joint="") for column in problem.columns)
    try:
        return _explored(nameless, columns, tuple(problem.start.tolist()), problem.tolerance)
    except ClusterError:
        _sample(problem)  # which says it with names and places
        raise


@lru_cache(maxsize=64)
def _explored(
    geometry: Geometry,
    columns: tuple[Column, ...],
    start: tuple[float, ...],
    tolerance: ClosureTolerance,
) -> tuple[_Samples, _Explored]:
    problem = ClusterProblem("", geometry, columns, (NOWHERE,), (), np.array(start), tolerance)
    samples = _sample(problem)
    rank = int(np.max(samples.ranks))
    generic = samples.ranks == rank
    _, _, right = np.linalg.svd(samples.jacobian[generic])
    null = np.swapaxes(right[:, rank:, :], 1, 2)  # (samples, n, mobility), orthonormal
    return samples, _Explored(problem, rank, samples.q[generic], null)


def _open(problem: ClusterProblem, best: Array, smallest: float, exact: float) -> ClusterError:
    """What is said of loops that close nowhere; ``best`` is where they are least open."""
    start = float(problem.geometry.gap(problem.start))
    of = f"(at the start it is {start:.3g}; conditions {condition_names(problem)})"
    remedy = "check the anchors, the lengths and axes"
    source = first_source(problem)
    if smallest <= exact:
        summary = f"cannot close: it closes only with an axis the wrong way round {of}"
        return ClusterError(summary, remedy, source)
    remedy += _more_tolerance(smallest, problem.scale)
    what = at_most(describe_gaps(problem, best, 0.5 * smallest))
    summary = f"cannot close: the smallest gap found is {smallest:.3g} {of}: {what}"
    return ClusterError(summary, remedy, source)


def _more_tolerance(off: float, scale: float = 1.0) -> str:
    """Advice to take loops for exact that are off by as little as rounding may be."""
    if off > ROUNDING * scale:
        return ""
    enough = tolerance_above(off)
    return f"; if the file is no more exact than {off:.1g}, load it with tolerance={enough:g}"


def mobility_of(problem: ClusterProblem) -> int:
    """In how many ways a cluster may move; DescriptionError where its loops do not close."""
    reduced = ReducedProblem.of(problem).problem
    return len(reduced.columns) - int(np.max(_sample(reduced).ranks))


def analyse_loops(whole: ClusterProblem) -> ClusterSolution:
    """Loop joints: rank at random closed configurations, the best coordinates, the rows to keep."""
    reduced = ReducedProblem.of(whole)
    problem = reduced.problem
    geometry, n = problem.geometry, len(problem.columns)
    samples, explored = _exploration(problem)
    rank = explored.rank
    q, jacobian = explored.samples, samples.jacobian[samples.ranks == rank]
    mobility = n - rank
    nearest = q[int(np.argmin(_away(problem, q)))]
    singular = np.linalg.svd(jacobian, compute_uv=False)
    weakest = float(np.max(singular[:, -1] / np.maximum(singular[:, 0], 1e-300)))
    advice = _more_tolerance(weakest) if not mobility else ""
    check_counts(whole, mobility, len(whole.columns) - mobility, reduced.positions(nearest), advice)
    null = explored.null
    suspicions: list[tuple[str, Source]] = []
    dropped = singular[:, rank:] / np.maximum(singular[:, :1], 1e-300)
    off = float(np.max(dropped, initial=0.0))
    nearly = (
        f"closes only nearly (conditions {condition_names(problem)}: gap {samples.gap:.2g}, axes "
        f"off by {off:.2g}"
    )
    if samples.gap > CLOSED:
        nearly += "; " + at_most(describe_gaps(problem, nearest, 0.5 * samples.gap))
    exact = samples.gap <= CLOSED and off <= 1e-9
    if not exact and not problem.tolerance.given:
        suspicions.append(
            (
                f"{nearly}); taken as exact, but check the anchors and write angles with all "
                "digits, or say how exact it is (tolerance)",
                first_source(problem),
            )
        )
    independent, notes = _independent(problem, explored, mobility)
    if not exact and problem.tolerance.given:
        notes.append(f"cluster '{problem.name}': {nearly}); taken as exact within its tolerance")
    ranks, repeated = _added_ranks(problem, jacobian)
    suspicions += [
        (
            "adds nothing: the loops and couplings before it already say all of it "
            f"(of {condition_names(problem)}); remove it",
            source,
        )
        for rank_, source in zip(ranks, problem.loop_sources, strict=True)
        if rank_ == 0
    ]
    keep = _rows_to_keep(problem, jacobian, ranks)
    loop_rows = range(geometry.rows - len(geometry.linear))
    couplings = range(len(loop_rows), geometry.rows)
    closing = tuple(range(geometry.rows)) if exact else (*keep, *couplings)
    if not exact:
        suspicions += _opening(problem, q, null, closing)
    neutral = _loop_neutral(problem, explored, independent, closing, exact)
    chosen = tuple(reduced.columns[i] for i in independent)
    all_couplings = range(len(loop_rows), whole.geometry.rows)
    return ClusterSolution(
        _constraint(whole, reduced.jacobian(jacobian[:, keep] / problem.unit), chosen, keep),
        chosen,
        reduced.positions(neutral),
        tuple(ranks),
        reduced.redundant(repeated),
        (*(loop_rows if exact else keep), *all_couplings),
        tuple(notes),
        tuple(suspicions),
    )


class _Explored:
    """Closed configurations and their motions: anywhere, and around the one the file closes in."""

    def __init__(self, problem: ClusterProblem, rank: int, samples: Array, null: Array) -> None:
        self.problem, self.rank = problem, rank
        self.samples, self.null = samples, null

    @cached_property
    def closed(self) -> Array:
        """The configuration (1, nq) that the file closes in: the nearest to its start.

        From a start that is open, it is one in which as many joints as can be may move: some ways
        to close a linkage lock joints that others leave free.
        """
        problem, geometry = self.problem, self.problem.geometry
        rank = problem.tolerance.rank
        q, gap = close(geometry, problem.start[None], nearest=True, rank=rank)
        exact = CLOSED * max(1.0, problem.scale)
        largest = 2.0 * max(exact, float(np.max(geometry.gap(self.samples))))
        candidates, moving = self.samples, _moving(self.null)
        if float(gap[0]) <= largest and not bool(geometry.flipped(q)[0]):
            if float(geometry.gap(problem.start)) <= NEARLY_CLOSED * problem.scale:
                return q
            _, singular, right = np.linalg.svd(problem.conditions(q)[1])
            moves = int(np.sum(singular > rank * singular[:, :1]))
            candidates = np.concatenate([q, candidates])
            moving = np.concatenate([_moving(np.swapaxes(right[:, moves:], 1, 2)), moving])
        return _most_mobile(problem, candidates, moving)

    @cached_property
    def around(self) -> tuple[Array, Array]:
        """Configurations reached from there, and orthonormal motions there; never none.

        From within the limits, where they are met.
        """
        problem, samples = self.problem, self.samples
        q, null = configurations_around(problem, self.closed[0], self.rank)
        if bool(_outside(problem, self.closed)[0]):
            reached = np.concatenate([q, samples])
            moving = np.concatenate([_moving(null), _moving(self.null)])
            inside = ~_outside(problem, reached)
            if np.any(inside):
                start = _most_mobile(problem, reached[inside], moving[inside])
                q, null = configurations_around(problem, start[0], self.rank)
        return (q, null) if len(q) else (samples, self.null)


def _most_mobile(problem: ClusterProblem, q: Array, moving: Array) -> Array:
    """Of the configurations in which most columns move the one (1, nq) nearest to the start."""
    q = q[moving == np.max(moving)]
    nearest: Array = q[int(np.argmin(_away(problem, q)))][None]
    return nearest


def _moving(null: Array) -> Array:
    """How many columns move at each configuration."""
    moving: Array = np.sum(np.linalg.norm(null, axis=2) > 1e-6, axis=1)
    return moving


def _away(problem: ClusterProblem, q: Array) -> Array:
    """How far configurations (n, nq) are from the start, in comparable units."""
    start = np.broadcast_to(problem.start, q.shape)
    away: Array = np.linalg.norm(problem.geometry.difference(start, q) / problem.unit, axis=1)
    return away


def _outside(problem: ClusterProblem, q: Array) -> Mask:
    """Which configurations (n, nq) are beyond a joint limit."""
    geometry, (low, high) = problem.geometry, problem.limits
    at = geometry.difference(np.broadcast_to(geometry.zero(), q.shape), q)
    outside: Mask = np.any((at < low - 1e-9) | (at > high + 1e-9), axis=1)
    return outside


def _opening(
    problem: ClusterProblem, q: Array, null: Array, closing: tuple[int, ...]
) -> list[tuple[str, Source]]:
    """Loops of which conditions that were left out open as soon as the cluster moves.

    They hold at the closed configurations only to first order (two links that may turn only
    together, at a distance that is the largest they can have): to the letter, the robot is stuck.
    """
    geometry = problem.geometry
    rng = np.random.default_rng(20240608)
    step = rng.uniform(-PERTURBATION, PERTURBATION, (len(q), null.shape[2]))
    moved = geometry.integrate(q, np.einsum("snm,sm->sn", null, step) * problem.unit)
    there, gaps = close(geometry, moved, rows=closing)
    there = there[gaps <= CLOSED * max(1.0, problem.scale)]
    if not len(there):
        return []
    open_ = np.max(np.abs(geometry.evaluate(there)[0]) * problem.row_unit, axis=0)
    found = []
    of_loops, _ = _row_numbers(problem)
    for rows, source in zip(of_loops, problem.loop_sources, strict=True):
        worst = max((float(open_[row]) for row in rows if row not in closing), default=0.0)
        if worst > problem.tolerance.gap / problem.scale:
            found.append(
                (
                    "holds to first order only: taken to the letter, it leaves its cluster stuck "
                    "where it is. Its conditions that say so are left out; they open by "
                    f"{worst:.2g} of the cluster's size ({problem.scale:.2g} m) when it moves by "
                    f"{PERTURBATION:g}; say what the joint leaves free with a loop of another type",
                    source,
                )
            )
    return found


def _constraint(
    problem: ClusterProblem, jacobian: Array, independent: tuple[int, ...], keep: list[int]
) -> LoopConstraint:
    """How G and g are found: what couplings leave, and in which blocks loops determine the rest.

    ``jacobian`` (samples, kept rows, columns).
    """
    geometry = problem.geometry
    prefer = [0 if c.chosen is False else 1 if c.follower else 2 for c in problem.columns]
    pivots = eliminate(problem, frozenset(independent), prefer).pivots
    z = [i for i in range(geometry.nv) if i not in pivots]
    expand = tuple(
        tuple((pivots[i][0] if i in pivots else {i: 1.0}).get(c, 0.0) for c in z)
        for i in range(geometry.nv)
    )
    pattern = np.max(np.abs(jacobian @ np.array(expand)), axis=0) > 1e-11
    pairs = [(a, b) for a, loop in enumerate(geometry.loops) for b in range(len(loop.rows))]
    return LoopConstraint(
        geometry.links,
        geometry.loops,
        frozenset(pairs[row] for row in keep),
        expand,
        tuple(z.index(i) for i in independent),
        blocks(pattern, [i for i, column in enumerate(z) if column not in independent]),
    )


def _independent(
    problem: ClusterProblem, explored: _Explored, mobility: int
) -> tuple[tuple[int, ...], list[str]]:
    """The independent columns: the file's where it decides, else the best conditioned."""
    columns = problem.columns
    forced = [i for i, c in enumerate(columns) if c.chosen]
    open_ = [i for i, c in enumerate(columns) if c.chosen is None]
    if len(forced) == mobility:
        choice = tuple(forced)
    elif len(forced) + len(open_) == mobility:
        choice = tuple(sorted(forced + open_))
    else:
        choice = choose_independent(problem, explored.around[1], forced, open_, mobility)
        picked = names([columns[i].label for i in choice if i in open_])
        note = (
            f"cluster '{problem.name}': {picked} chosen as independent by conditioning, "
            "as the file does not say"
        )
        return choice, [note]
    singular = singular_everywhere(explored.null, choice)
    if singular is not None:
        others = choose_independent(problem, explored.around[1], [], range(len(columns)), mobility)
        raise DescriptionError(
            f"{names([columns[i].label for i in choice])} cannot be the independent coordinates: "
            "at every configuration tried, motions of the cluster leave them at rest "
            f"(singular value {singular:.1g}); take "
            f"{names([columns[i].label for i in others])}",
            first_source(problem),
        )
    return choice, []


def _added_ranks(problem: ClusterProblem, jacobian: Array) -> tuple[list[int], list[bool]]:
    """The rank that each loop adds to all couplings and the loops before; couplings that add none.

    Ranks are generic: the largest over the samples.
    """
    geometry = problem.geometry
    size = np.linalg.norm(jacobian, axis=(1, 2))

    def rank(rows: list[int]) -> int:
        singular = np.linalg.svd(jacobian[:, rows], compute_uv=False)
        return int(
            np.max(np.sum(singular > problem.tolerance.rank * size[:, None], axis=1), initial=0)
        )

    of_loops, couplings = _row_numbers(problem)
    repeated = [rank(couplings[: n + 1]) == rank(couplings[:n]) for n in range(len(couplings))]
    seen, ranks = list(couplings), [rank(couplings)]
    for rows in of_loops:
        seen += rows
        ranks.append(rank(seen))
    return [ranks[n + 1] - ranks[n] for n in range(len(geometry.loops))], repeated


def _row_numbers(problem: ClusterProblem) -> tuple[list[list[int]], list[int]]:
    """The rows of each loop, and those of the couplings, among all conditions."""
    of_loops, at = [], 0
    for loop in problem.geometry.loops:
        of_loops.append(list(range(at, at + len(loop.rows))))
        at += len(loop.rows)
    return of_loops, list(range(at, problem.geometry.rows))


def _rows_to_keep(problem: ClusterProblem, jacobian: Array, ranks: list[int]) -> list[int]:
    """Loop rows that are no constant combination of the others.

    Stacking the samples side by side makes a row that is *always* the same combination of others
    linearly dependent; pivoting picks the best conditioned rows. What redundancy is left varies
    with the configuration, and is dealt with by least squares. Couplings are eliminated first, so
    rows are judged by what those leave of them, sample by sample.
    """
    of_loops, couplings = _row_numbers(problem)
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
        largest = max(size.values())
        pick = next(row for row in candidates if size[row] >= SAME * largest)
        if size[pick] <= 3 * problem.tolerance.rank * reference:
            break
        keep.append(pick)
        candidates.remove(pick)
        direction = stacked[pick] / size[pick]
        stacked = stacked - np.outer(stacked @ direction, direction)
    return sorted(keep)


def blocks(pattern: Mask, dependent: list[int]) -> tuple[Block, ...]:
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
    problem: ClusterProblem,
    explored: _Explored,
    independent: tuple[int, ...],
    closing: tuple[int, ...],
    exact: bool,
) -> Array:
    """A closed, regular configuration near the start, within the limits where there is one.

    The one that the file's closes in, else one that is reached from there, else any.
    """
    geometry = problem.geometry
    typical = conditioning(explored.null, independent)
    if float(np.max(typical)) < 1e-6:  # all of another branch
        typical = conditioning(explored.around[1], independent)
    good = float(np.median(typical[typical >= 1e-6]))

    def best(candidates: Array) -> tuple[tuple[bool, bool], Array]:
        """What is wrong with the best of the candidates, and that one."""
        if not exact:
            candidates = close(geometry, candidates, rows=closing)[0]
        irregular = regularity(geometry, candidates, problem.unit, independent) < 0.1 * good
        outside, away = _outside(problem, candidates), _away(problem, candidates)
        faults = list(zip(outside.tolist(), irregular.tolist(), strict=True))
        fewest = min(faults)
        among = [i for i, fault in enumerate(faults) if fault == fewest]
        nearest = float(np.min(away[among]))
        first = next(i for i in among if away[i] <= nearest / SAME + 1e-9)
        return fewest, candidates[first]

    candidates = explored.closed
    fault, q = best(candidates)
    if any(fault):
        candidates = np.concatenate([candidates, explored.around[0]])
        fault, q = best(candidates)
    if any(fault):
        candidates = np.concatenate([candidates, explored.samples])
        fault, q = best(candidates)
    polished: Array = close(geometry, q[None], rows=closing)[0][0]  # what is written starts there
    return polished
