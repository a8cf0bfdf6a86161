"""Mobility of constrained clusters: rank, redundancy, independent coordinates, a closed start.

Clusters with loops are analysed at random closed configurations: the generic rank of K there gives
the mobility, and rows that are constant combinations of others are dropped. Where loops leave no
motion, messages suggest axes that would. Clusters of couplings alone (gears, belts, mimics,
polynomials) stay explicit: Gauss–Jordan elimination keeps them exact.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from robomodel.arrays import Array, median
from robomodel.description import Loop, Vec3
from robomodel.description.poses import sine
from robomodel.errors import DescriptionError, Issue, Source, few
from robomodel.mechanism.blocks import blocks
from robomodel.mechanism.closure import COUNTS, Geometry, LinearCoupling, close
from robomodel.mechanism.constraints import (
    Constraint,
    LinearConstraint,
    Link,
    LoopConstraint,
    Polynomial,
    PolynomialConstraint,
)
from robomodel.mechanism.couplings import (
    Chosen,
    EliminatedCouplings,
    Pivots,
    eliminate,
    expansion,
    linear_constraint,
    position_starts,
)
from robomodel.mechanism.tree_constraints import loop_frame
from robomodel.mobility import (
    ClosureTolerance,
    ClusterError,
    ClusterProblem,
    ClusterSolution,
    ReducedProblem,
    check_counts,
    condition_names,
    first_source,
    largest,
    outside_limits,
)
from robomodel.mobility.exploration import (
    ROUNDED_CONDITION,
    ClosedConfigurations,
    NamelessProblem,
    at_most,
    branch_rotation,
    choose_independent,
    common_axis,
    conditioning,
    describe_gaps,
    distances_from_start,
    explore,
    regularity,
    sample,
    singular_everywhere,
    tolerance_advice,
)
from robomodel.scalars import Scalar, held, value_of
from robomodel.spatial import UNIT
from robomodel.tolerances import (
    CLOSED,
    NO_LIMIT,
    NOTHING,
    PARALLEL,
    SAME,
    SINGULAR,
    WITHIN,
    WRITTEN,
)

if TYPE_CHECKING:
    from numpy.polynomial import Polynomial as Power

    from robomodel.mobility.decision import Decided, Decision


def mobility_of(problem: ClusterProblem) -> int:
    """The mobility of a cluster. Raises DescriptionError if its loops do not close."""
    reduced = ReducedProblem.of(problem).problem
    return len(reduced.columns) - sample(reduced).rank


@dataclass(frozen=True)
class Analysed:
    """Results on a robot's clusters: the analysis of their copies starts from these."""

    explored: dict[NamelessProblem, ClosedConfigurations] = field(default_factory=dict)
    decided: list[Decided] = field(default_factory=list)


def decided(whole: ClusterProblem, before: Analysed, *, mend: bool) -> Decision | None:
    """The decision on a cluster whose rank is in doubt; None where its conditions agree."""
    problem = ReducedProblem.of(whole).problem
    if _agree(problem, before):
        return None
    from robomodel.mobility.decision import Decided, decided_as, decision_on

    nameless = NamelessProblem.of(problem)
    for each in before.decided:
        if (copied := decided_as(each, nameless.compiled, mend=mend)) is not None:
            return copied
    decision = decision_on(nameless, mend=mend)
    if decision is not None:
        before.decided.append(Decided(problem, decision))
    return decision


def agrees(whole: ClusterProblem, before: Analysed) -> bool:
    """True if the rank of a cluster's conditions is beyond doubt."""
    return _agree(ReducedProblem.of(whole).problem, before)


def _agree(problem: ClusterProblem, before: Analysed) -> bool:
    """True if conditions agree: the rank is the same wherever the loops close, and less than full.

    Redundant conditions are exactly redundant, and the others have clear singular values.
    """
    with suppress(ClusterError):  # a rounded file's loops may close nowhere exactly
        explored = explore(problem, before.explored)
        agree = (
            explored.exact
            and explored.apart
            and explored.uniform
            and explored.kept > ROUNDED_CONDITION
        )
        return agree and explored.rank < len(problem.columns)
    return False


def analyse_loops(whole: ClusterProblem, before: Analysed) -> ClusterSolution:
    """The solution of a cluster with loops: its core is analysed, and followers added again."""
    reduced = ReducedProblem.of(whole)
    problem, explored, mobility, remark = _generic(reduced.problem, before)
    samples, jacobian, exact = explored.samples, explored.jacobian, explored.exact
    nearest = samples[int(np.argmin(distances_from_start(problem, samples)))]
    advice = "" if mobility else remark or tolerance_advice(explored.weakest)
    check_counts(whole, mobility, len(whole.columns) - mobility, reduced.positions(nearest), advice)
    independent, notes = _independent(reduced, explored, mobility)
    ranks, repeated = added_ranks(problem, jacobian)
    keep = rows_to_keep(problem, jacobian, ranks)

    # what closing meets: all rows, or, where redundant ones contradict each other, those that count
    loop_rows = range(problem.geometry.rows - len(problem.geometry.linear))
    met = tuple(loop_rows) if exact else tuple(keep)
    closing = (*met, *range(len(loop_rows), problem.geometry.rows))
    closing_rows = (*met, *range(len(loop_rows), whole.geometry.rows))

    suspicions: list[Issue] = []
    if not exact:
        nearly = _nearly_closed(problem, explored, nearest)
        if problem.tolerance.stated:
            notes.append(f"cluster '{problem.name}': {nearly}; taken as exact within its tolerance")
        else:
            remedy = (
                "taken as exact, but check the anchors and write angles with all digits, or say "
                "how exact it is (tolerance)"
            )
            suspicions.append(Issue(f"{nearly}; {remedy}", first_source(problem)))
    suspicions += _adds_nothing(problem, [rank == 0 for rank in ranks], problem.loop_sources)
    suspicions += _adds_nothing(whole, reduced.redundant(repeated), whole.linear_sources)
    if not exact:
        suspicions += rows_that_open(problem, samples, explored.null, closing)

    neutral = _loop_neutral(reduced, problem, explored, independent, closing, exact)
    suspicions += _several_ways_on(problem, explored)
    if not problem.closed:
        suspicions += _beyond_limits(problem, neutral)
    columns = tuple(reduced.among[i] for i in independent)
    kept = reduced.jacobian(jacobian[:, keep] / problem.unit)
    constraint, pivots = _constraint(whole, kept, columns, keep)
    return ClusterSolution(
        constraint,
        columns,
        reduced.positions(neutral),
        tuple(ranks),
        reduced.redundant(repeated),
        closing_rows,
        tuple(notes),
        tuple(suspicions),
        0.0 if exact else max(1e-6, 3.0 * problem.tolerance.gap),
        pivots=pivots,
    )


def _generic(
    problem: ClusterProblem, before: Analysed
) -> tuple[ClusterProblem, ClosedConfigurations, int, str]:
    """The problem, its closed configurations, its mobility, and a remark if that is 0."""
    if problem.tolerance.stated:  # of a file that needs none it changes nothing
        exact = replace(problem, tolerance=ClosureTolerance.of((), problem.scale))
        problem = exact if _agree(exact, before) else problem
    explored, columns = explore(problem, before.explored), len(problem.columns)
    locked = problem.rank is None and _threads_lock(problem, explored)
    if problem.rank is not None or (problem.tolerance.stated and not locked):
        return problem, explored, columns - explored.rank, ""
    remark = "; the threads of its screws, however fine, lock it" if locked else ""
    if not explored.exact or locked:
        # no decision has found motion: samples near a configuration that is mobile to first order
        # lack rank by rounding, and the rank of exact numbers counts
        remark = remark or _at_first_order(problem, explored)
        problem = replace(problem, tolerance=replace(problem.tolerance, rank=SINGULAR))
        explored = explore(problem)
    if not explored.apart:  # all samples are one configuration: it is mobile to first order only
        remark = remark or _at_first_order(problem, explored)
        return problem, explored, 0, remark or "; it moves to first order only"
    return problem, explored, columns - explored.rank, remark


def _threads_lock(problem: ClusterProblem, explored: ClosedConfigurations) -> bool:
    """True if a motion that a tolerance leaves, or the next one, opens threads of screws alone."""
    if not problem.geometry.pitches:
        return False
    from robomodel.mobility.decision import threads_open
    from robomodel.mobility.points import Points

    rank = min(explored.rank, len(problem.columns) - 1)
    nearest = int(np.argmin(distances_from_start(problem, explored.samples)))
    return threads_open(problem, Points.at(problem, explored.samples[[nearest]]), rank)


def _nearly_closed(problem: ClusterProblem, explored: ClosedConfigurations, q: Array) -> str:
    """By how much the conditions of a cluster contradict each other, in words."""
    text = (
        f"closes only nearly (conditions {condition_names(problem)}: gap {explored.gap:.2g}, axes "
        f"off by {explored.off:.2g}"
    )
    if explored.gap > CLOSED:
        text += "; " + at_most(describe_gaps(problem, q, 0.5 * explored.gap))
    return f"{text})"


def _several_ways_on(problem: ClusterProblem, explored: ClosedConfigurations) -> list[Issue]:
    """The suspicion of a cluster that is drawn at a change point: the ways on within limits."""
    ways = [each for each in explored.branches if each.ahead is not None]
    if len(ways) < 2:
        return []
    geometry, columns = problem.geometry, problem.columns
    texts = []
    for way in ways[:4]:  # a message names no more
        assert way.ahead is not None
        singles = [c for c in columns if geometry.links[c.link].joint.nq == 1]
        at = [f"'{c.label}' {way.ahead[geometry.links[c.link].q]:.3g}" for c in singles]
        texts.append(", ".join(at[:8]) + (", …" if len(at) > 8 else ""))
    still = [c.joint for c in columns if c.link in ways[0].still and not c.part]
    why = f", on which the link of {few(still)} does not turn" if len(still) == 1 else ""
    return [
        Issue(
            f"the file draws cluster '{problem.name}' at a change point, from which its loops can "
            f"go on in {len(ways)} ways: to {'; or '.join(texts)}. The first is taken{why}; if "
            'another is meant, say so by positions (in URDF <initial position="…"/> on these '
            "joints), or by limits that leave it alone",
            first_source(problem),
        )
    ]


def _beyond_limits(problem: ClusterProblem, neutral: Array) -> list[Issue]:
    """The suspicion of a cluster whose neutral configuration (nq,) is outside of limits."""
    at = problem.geometry.difference(problem.geometry.zero(), neutral)
    low, high = problem.limits
    off = np.maximum(low - at, at - high)
    beyond = [int(i) for i in np.argsort(-off, kind="stable") if off[i] > WRITTEN]
    if not beyond:
        return []
    texts = [
        f"'{problem.columns[i].label}' at {at[i]:.4g}, {off[i]:.3g} "
        + ("below its lower" if at[i] < low[i] else "above its upper")
        + " limit"
        for i in beyond
    ]
    return [
        Issue(
            f"no closed configuration of cluster '{problem.name}' was found within the joint "
            f"limits; the neutral one has {at_most(texts)}; check the limits and initial "
            "positions of its joints",
            first_source(problem),
            "beyond limits",
        )
    ]


def _adds_nothing(
    problem: ClusterProblem, redundant: Sequence[bool], sources: Sequence[Source]
) -> list[Issue]:
    """Suspicions of loops or couplings that add no condition."""
    return [
        Issue(
            "adds nothing: the loops and couplings before it already say all of it "
            f"(of {condition_names(problem)}); remove it",
            source,
        )
        for repeats, source in zip(redundant, sources, strict=True)
        if repeats
    ]


def _constraint(
    problem: ClusterProblem, jacobian: Array, independent: tuple[int, ...], keep: list[int]
) -> tuple[LoopConstraint, Chosen]:
    """The constraint: couplings eliminated, dependent velocities in blocks; and the pivots.

    ``jacobian`` is K of the rows ``keep`` at samples (samples, rows, columns).
    """
    geometry = problem.geometry
    prefer = [0 if c.chosen is False else 1 if c.follower else 2 for c in problem.columns]
    solved = eliminate_couplings(problem, frozenset(independent), prefer)
    z, rows = expansion(geometry, solved.pivots)
    expand = tuple(tuple(map(held, row)) for row in rows)
    columns = jacobian @ np.array(expand)
    pattern = np.max(np.abs(columns) * _regularity(columns)[:, None, None], axis=0) > NOTHING
    lengths = np.linalg.norm(columns / problem.row_unit[keep, None], axis=1)
    units = np.sqrt(np.mean(lengths**2, axis=0))
    pairs = [(a, b) for a, loop in enumerate(geometry.loops) for b in range(len(loop.rows))]
    constraint = LoopConstraint(
        geometry.links,
        geometry.loops,
        frozenset(pairs[row] for row in keep),
        expand,
        tuple(z.index(i) for i in independent),
        blocks(pattern, [i for i, column in enumerate(z) if column not in independent]),
        tuple(units.tolist()),
    )
    return constraint, solved.chosen


def _regularity(columns: Array) -> Array:
    """How regular samples (n,) are, the most 1: near singular ones loops close less exactly.

    There entries that vanish where loops are closed are above :data:`NOTHING`.
    """
    size = np.linalg.svd(columns, compute_uv=False)
    least = size[:, -1:].max(axis=1, initial=0.0)
    most = np.max(least, initial=0.0)
    return least / most if most else np.ones(len(columns))


def _independent(
    reduced: ReducedProblem, explored: ClosedConfigurations, mobility: int
) -> tuple[tuple[int, ...], list[str]]:
    """The independent columns of candidates, the file's or the best ones, and notes."""
    problem = reduced.candidates
    columns, around = problem.columns, reduced.motions(explored.around[1])
    forced = [i for i, c in enumerate(columns) if c.chosen]
    open_ = [i for i, c in enumerate(columns) if c.chosen is None]
    if len(forced) == mobility:
        choice = tuple(forced)
    elif len(forced) + len(open_) == mobility:
        choice = tuple(sorted(forced + open_))
    else:
        choice = choose_independent(problem, around, forced, open_, mobility)
        picked = few([columns[i].label for i in choice if i in open_], 8)
        note = (
            f"cluster '{problem.name}': {picked} chosen as independent by conditioning, "
            "as the file does not say"
        )
        return choice, [note]
    singular = singular_everywhere(reduced.motions(explored.null), choice)
    if singular is not None:
        others = choose_independent(problem, around, [], range(len(columns)), mobility)
        raise DescriptionError(
            f"{few([columns[i].label for i in choice], 8)} cannot be the independent coordinates: "
            "at every configuration tried, motions of the cluster leave them at rest "
            f"(singular value {singular:.1g}); take "
            f"{few([columns[i].label for i in others], 8)}",
            first_source(problem),
        )
    return choice, []


def _loop_neutral(
    reduced: ReducedProblem,
    problem: ClusterProblem,
    explored: ClosedConfigurations,
    independent: tuple[int, ...],
    closing: tuple[int, ...],
    exact: bool,
) -> Array:
    """A closed, regular configuration near the start, and within the limits if there is one.

    Candidates are the configuration to which the start closes, then those reached from it, then the
    samples, then these led into the limits. A start that is closed is kept.
    """
    geometry = explored.problem.geometry  # compiled, if it is large
    if problem.closed:
        kept: Array = close(geometry, problem.start[None], rows=closing)[0][0]
        return kept
    typical = conditioning(reduced.motions(explored.null), independent)
    if float(np.max(typical)) < 1e-6:  # all of another branch
        typical = conditioning(reduced.motions(explored.around[1]), independent)
    regular = typical[typical >= 1e-6]
    good = median(regular) if regular.size else 0.0  # 0: none counts as irregular

    def best(candidates: Array) -> tuple[tuple[bool, bool], Array]:
        """The best of the candidates, after its faults: (outside the limits, irregular)."""
        if not exact:
            candidates = close(geometry, candidates, rows=closing)[0]
        each = regularity(geometry, candidates, problem.unit, independent, reduced.motions)
        irregular = each < 0.1 * good
        outside, away = (
            outside_limits(problem, candidates),
            distances_from_start(problem, candidates),
        )
        faults = list(zip(outside.tolist(), irregular.tolist(), strict=True))
        fewest = min(faults)
        among = [i for i, fault in enumerate(faults) if fault == fewest]
        nearest = float(np.min(away[among]))
        first = next(i for i in among if away[i] <= nearest / AS_LARGE + 1e-9)
        return fewest, candidates[first]

    candidates = explored.closed
    fault, q = best(candidates)
    if any(fault):
        candidates = np.concatenate([candidates, explored.around[0]])
        fault, q = best(candidates)
    if any(fault):
        candidates = np.concatenate([candidates, explored.samples])
        fault, q = best(candidates)
    if fault[0]:
        candidates = np.concatenate([candidates, explored.led_within_limits(candidates)])
        fault, q = best(candidates)
    polished: Array = close(geometry, q[None], rows=closing)[0][0]  # what is written starts there
    return polished


# ---- redundant rows, blocks ---------------------------------------------------------------------


AS_LARGE = 1.0 - 1e-6  # what is at least this share of the largest is as large
PERTURBATION = 0.2  # radians, or cluster sizes: how far from closure loops are watched


def rows_that_open(
    problem: ClusterProblem, q: Array, null: Array, closing: tuple[int, ...]
) -> list[Issue]:
    """Suspicions of loops with conditions outside of ``closing`` that open when the cluster moves.

    Such conditions hold to first order only, at the closed configurations (for example two links
    that turn together, at the largest distance that they can have). Exactly, the cluster is rigid.
    """
    open_ = _opened(problem, q, null, closing)
    suspicions = []
    of_loops, _ = _row_numbers(problem)
    for rows, source in zip(of_loops, problem.loop_sources, strict=True):
        worst = max((float(open_[row]) for row in rows if row not in closing), default=0.0)
        if worst > problem.tolerance.gap / problem.scale:
            suspicions.append(
                Issue(
                    "holds to first order only: taken exactly, it leaves its cluster no motion "
                    "at all. Its conditions that prevent motion are left out; they open by "
                    f"{worst:.2g} of the cluster's size ({problem.scale:.2g} m) when it moves by "
                    f"{PERTURBATION:g}; say what the joint leaves free with a loop of another type",
                    source,
                )
            )
    return suspicions


def _opened(problem: ClusterProblem, q: Array, null: Array, closing: tuple[int, ...]) -> Array:
    """The gap of each condition (rows,), in comparable units, where only ``closing`` are met.

    The largest at configurations moved by :data:`PERTURBATION`; zero if none of them closes.
    """
    rng = np.random.default_rng(20240608)
    step = rng.uniform(-PERTURBATION, PERTURBATION, (len(q), null.shape[2]))
    moved = problem.geometry.integrate(q, np.einsum("snm,sm->sn", null, step) * problem.unit)
    there, gaps = close(problem.geometry, moved, rows=closing)
    there = there[gaps <= CLOSED * max(1.0, problem.scale)]
    values = np.abs(problem.geometry.evaluate(there)[0]) * problem.row_unit
    worst: Array = np.max(values, axis=0, initial=0.0)
    return worst


def _at_first_order(problem: ClusterProblem, explored: ClosedConfigurations) -> str:
    """A remark on a cluster that moves to first order only; "" for one that is rigid."""
    ranks, _ = added_ranks(problem, explored.jacobian)
    keep = rows_to_keep(problem, explored.jacobian, ranks)
    first = problem.geometry.rows - len(problem.geometry.linear)
    closing = (*keep, *range(first, problem.geometry.rows))
    open_ = _opened(problem, explored.samples, explored.null, closing)
    if not explored.null.shape[2] or not np.any(open_ > problem.tolerance.gap / problem.scale):
        return ""
    return (
        f"; it moves to first order only: moved by {PERTURBATION:g} rad, it opens by "
        f"{float(np.max(open_)):.2g} of its size ({problem.scale:.2g} m)"
    )


def added_ranks(problem: ClusterProblem, jacobian: Array) -> tuple[list[int], list[bool]]:
    """The rank that each loop adds to all couplings and the loops before it; redundant couplings.

    Ranks are generic: the largest over the samples.
    """
    size = largest(np.linalg.norm(jacobian, axis=(1, 2))[:, None])

    basis, counts = np.zeros((len(jacobian), jacobian.shape[2], 0)), np.zeros(len(jacobian), int)
    last = 0

    def added(rows: list[int]) -> int:
        """The rank that rows add to those before: of what is left of them beside these."""
        nonlocal basis, counts, last
        left = jacobian[:, rows]
        for _ in range(2):  # once more for what rounding leaves
            left = left - (left @ basis) @ np.swapaxes(basis, 1, 2)
        _, singular, right = np.linalg.svd(left, full_matrices=False)
        counts_ = singular > problem.tolerance.rank * size
        basis = np.concatenate([basis, np.swapaxes(right * counts_[:, :, None], 1, 2)], axis=2)
        counts = counts + np.sum(counts_, axis=1)
        before, last = last, int(np.max(counts, initial=0))
        return last - before

    of_loops, couplings = _row_numbers(problem)
    repeated = [added([row]) == 0 for row in couplings]
    return [added(rows) for rows in of_loops], repeated


def _row_numbers(problem: ClusterProblem) -> tuple[list[list[int]], list[int]]:
    """The rows of each loop, and those of the couplings, among all conditions."""
    of_loops, at = [], 0
    for loop in problem.geometry.loops:
        of_loops.append(list(range(at, at + len(loop.rows))))
        at += len(loop.rows)
    return of_loops, list(range(at, problem.geometry.rows))


def rows_to_keep(problem: ClusterProblem, jacobian: Array, ranks: list[int]) -> list[int]:
    """Loop rows that are not the same combination of other rows at all configurations.

    With the samples side by side, a row that is always the same combination of others is linearly
    dependent on them; pivoting picks the best conditioned rows. Rows whose combination varies with
    the configuration are kept, and solved by least squares. Couplings are eliminated first, in each
    sample.
    """
    of_loops, couplings = _row_numbers(problem)
    reduced = jacobian
    if couplings:
        right = np.linalg.pinv(jacobian[:, couplings]) @ jacobian[:, couplings]
        reduced = jacobian - jacobian @ right
    stacked = np.concatenate(list(reduced), axis=1)
    lengths = np.linalg.norm(np.concatenate(list(jacobian), axis=1), axis=1)
    reference = float(np.max(lengths, initial=COUNTS))
    candidates = [row for rows, rank in zip(of_loops, ranks, strict=True) if rank for row in rows]
    keep: list[int] = []
    while candidates:
        size = {row: float(np.linalg.norm(stacked[row])) for row in candidates}
        largest = max(size.values())
        pick = next(row for row in candidates if size[row] >= AS_LARGE * largest)
        if size[pick] <= 3 * problem.tolerance.rank * reference:
            break
        keep.append(pick)
        candidates.remove(pick)
        direction = stacked[pick] / size[pick]
        stacked = stacked - np.outer(stacked @ direction, direction)
    return sorted(keep)


# ---- advice -------------------------------------------------------------------------------------


X: Vec3 = (1.0, 0.0, 0.0)
HINGES = ("revolute", "continuous", "planar")  # loops that have the axis of a planar linkage


def suggest_axes(
    problem: ClusterProblem,
    loops: Sequence[Loop],
    posed: Callable[[Sequence[Loop]], ClusterProblem],
) -> str:
    """Axes of loops with which a rigid cluster would move, in words; "" if none are found.

    ``posed`` poses the problem with other loops in place of ``loops``. Loops of hinges are tried
    with the axis that the joints between their ends share; if all have it, sliding loops are tried
    with the coordinate axes of their frames.
    """
    cures = []
    for trial in _trials(problem, loops):
        try:
            mobility = mobility_of(posed(trial))
        except DescriptionError:
            continue
        if mobility:
            changed = [
                f"loop '{new.name}' {_element(new.axis)} ({_whose(problem, n, old)})"
                for n, (old, new) in enumerate(zip(loops, trial, strict=True))
                if new is not old
            ]
            cures.append(f"{' and '.join(changed)}, which leaves mobility {mobility}")
    return f"give {'; or '.join(cures)}" if cures else ""


def _element(axis: Vec3) -> str:
    return f'<axis xyz="{" ".join(f"{x:.9g}" for x in axis)}"/>'


def _whose(problem: ClusterProblem, n: int, loop: Loop) -> str:
    """In words: the joints whose axis a loop should have, and the axis that it has."""
    default = ", as where none is written" if loop.axis == X else ""
    has = f"it has {' '.join(f'{x:.6g}' for x in loop.axis)}{default}"
    shared = common_axis(problem, problem.geometry.loop_joints[n])
    of_joints = shared is not None and loop.type in HINGES
    return f"the axis of {few(shared[1], 8)}; {has}" if of_joints and shared else has


def _trials(problem: ClusterProblem, loops: Sequence[Loop]) -> Iterator[list[Loop]]:
    """Lists of the loops in which some have other axes than in the file."""
    trial = []
    for n, loop in enumerate(loops):
        axis = (_shared(problem, n, loop) if loop.type in HINGES else None) or loop.axis
        trial.append(loop if sine(axis, loop.axis) < PARALLEL else replace(loop, axis=axis))
    if any(new is not old for old, new in zip(loops, trial, strict=True)):
        yield trial
        return
    for n, loop in enumerate(loops):
        if loop.type == "prismatic":
            for axis in UNIT:
                if sine(axis, loop.axis) >= PARALLEL:
                    yield [*loops[:n], replace(loop, axis=axis), *loops[n + 1 :]]


def _shared(problem: ClusterProblem, n: int, loop: Loop) -> Vec3 | None:
    """The axis that the joints between a loop's ends share, in the loop's frame."""
    shared = common_axis(problem, problem.geometry.loop_joints[n])
    if shared is None:
        return None
    joint = problem.geometry.loop_joints[n]
    axis = (
        np.array(joint.predecessor.axes) @ branch_rotation(problem, joint.branches[0]).T @ shared[0]
    )
    written: Array = np.array(loop_frame(loop.axis, loop.source)) @ axis
    largest = written[int(np.argmax(np.abs(written)))]
    x, y, z = (np.round(written * np.sign(largest), 9) + 0.0).tolist()
    return x, y, z


# ---- couplings alone -----------------------------------------------------------------------------


EQUALLY_LARGE = 1.0 - 1e-9  # coefficients that differ by less are equally large


def eliminate_couplings(
    problem: ClusterProblem, never: frozenset[int], prefer: Sequence[int]
) -> EliminatedCouplings:
    """The couplings eliminated, each for one column. Raises DescriptionError if they contradict.

    Pivots are never among ``never``. Of the others a coupling takes one with the lowest number in
    ``prefer`` (one a column), and of these the one with the largest coefficient.
    """

    def choose(n: int, row: Mapping[int, Scalar], left: Scalar) -> int | None:
        source, offset = problem.linear_sources[n], value_of(left)
        sizes = {c: abs(value_of(x)) for c, x in row.items()}
        if not row:
            if abs(offset) > SAME * max(1.0, abs(problem.geometry.linear[n].offset)):
                raise DescriptionError(
                    f"contradicts the couplings before it: it leaves 0 = {offset:.6g} "
                    f"(of {condition_names(problem)}); remove one of them or mend its offset",
                    source,
                )
            return None
        candidates = [c for c in row if c not in never]
        if not candidates:
            labels = few([problem.columns[c].label for c in sorted(row)], 8)
            raise DescriptionError(
                f"relates {labels}, all of which are marked independent; "
                'mark one of them independent="false"',
                source,
            )
        lowest = min(prefer[c] for c in candidates)
        candidates = [c for c in candidates if prefer[c] == lowest]
        largest = max(sizes[c] for c in candidates)
        return max(c for c in candidates if sizes[c] >= EQUALLY_LARGE * largest)

    return eliminate(problem.geometry, choose)


def analyse_couplings(problem: ClusterProblem) -> ClusterSolution | None:
    """The solution of a cluster of gears, belts, mimics and polynomials: explicit.

    None if the polynomials cannot be evaluated one after the other: they determine a joint that the
    file marks independent, or one that another coupling determines, or form a circle.
    """
    columns, geometry = problem.columns, problem.geometry
    never = frozenset(i for i, column in enumerate(columns) if column.chosen)
    prefer = [0 if column.chosen is False else 1 if column.follower else 2 for column in columns]
    powers = {geometry.links[each.joint].v: each for each in geometry.polynomials}
    evaluated = frozenset(powers)
    if len(powers) < len(geometry.polynomials) or never & evaluated:
        return None
    try:
        free = eliminate_couplings(problem, evaluated, prefer)
    except DescriptionError:
        if not powers:
            raise
        return None
    order = _in_order(geometry, free.pivots, powers)
    if order is None:
        return None
    mobility = len(columns) - len(free.pivots) - len(powers)
    check_counts(problem, mobility, len(columns) - mobility)
    if never & set(free.pivots):
        reduced = eliminate_couplings(problem, never | evaluated, prefer)
        order = _in_order(geometry, reduced.pivots, powers)
        if order is None:
            return None
    else:
        reduced = free
    dependent = reduced.pivots.keys() | evaluated
    undetermined = [i for i, c in enumerate(columns) if c.chosen is False and i not in dependent]
    if undetermined:
        raise DescriptionError(
            f"the couplings {condition_names(problem)} cannot determine "
            f'{few([columns[i].label for i in undetermined], 8)}, marked independent="false" '
            f"(mobility {mobility}); mark another joint of the cluster instead",
            first_source(problem),
        )
    independent = tuple(i for i in range(len(columns)) if i not in dependent)
    linear = linear_constraint(geometry, reduced.pivots, (*independent, *order))
    polynomials = tuple(powers[i] for i in order)
    constraint = (
        PolynomialConstraint(geometry.links, linear, polynomials) if polynomials else linear
    )
    notes = []
    if not any(column.chosen is not None for column in columns):
        labels = few([columns[i].label for i in independent], 8)
        notes.append(
            f"cluster '{problem.name}': {labels} taken as independent, as the file does not say"
        )
    return ClusterSolution(
        constraint,
        independent,
        _explicit_neutral(problem, constraint, independent),
        (1,) * len(polynomials),
        reduced.redundant,
        (),
        tuple(notes),
        tuple(_adds_nothing(problem, reduced.redundant, problem.linear_sources)),
        pivots=reduced.chosen,
    )


def _in_order(
    geometry: Geometry, pivots: Pivots, powers: Mapping[int, Polynomial]
) -> list[int] | None:
    """The columns that polynomials determine, each after its arguments'; None in a circle."""
    order: list[int] = []
    while len(order) < len(powers):
        for column, each in powers.items():
            of = geometry.links[each.of].v
            needs = (pivots[of][0].keys() if of in pivots else {of}) & powers.keys()
            if column not in order and needs <= set(order):
                order.append(column)
                break
        else:
            return None
    return order


def _explicit_neutral(
    problem: ClusterProblem, constraint: Constraint, independent: Sequence[int]
) -> Array:
    """The cluster's q at the start, within the limits.

    Those of a dependent joint count if it follows one independent joint alone. With several
    freedoms joints that one coupling alone ties lead nothing, whichever are independent.
    """
    geometry = problem.geometry
    start, nq = position_starts(geometry, independent)
    if nq > 1 and (led := _led_start(problem)) is not None:
        return np.concatenate([led[geometry.links[link].positions] for link in start])
    q = np.zeros(nq)
    for link, at in start.items():
        joint = geometry.links[link].joint
        q[at : at + joint.nq] = problem.start[geometry.links[link].q :][: joint.nq]
    curves = follower_curves(geometry.links, constraint, nq)
    for link, at in start.items():
        if geometry.links[link].joint.nq == 1:
            q[at] = _within_limits(float(q[at]), curves[at], problem)
    return _within_all_limits(q, problem, constraint) if nq > 1 else q


def _within_all_limits(q: Array, problem: ClusterProblem, constraint: Constraint) -> Array:
    """The nearest q (nq,), in radians and sizes, at which constant ratios pass no joint's limits.

    The same if it is one, or if there is none.
    """
    if not isinstance(constraint, LinearConstraint):
        return q
    links = [link for link in problem.geometry.links if link.joint.nq == 1 == link.joint.nv]
    places = [link.q for link in links]
    matrix = np.array(constraint.position_matrix)[places]
    offset = np.array(constraint.offset)[places]
    low, high = np.array([problem.columns[link.v].limits for link in links]).T - offset
    at = matrix @ q
    if np.all((at >= low - WITHIN) & (at <= high + WITHIN)):
        return q
    import daqp

    rates = matrix / problem.unit[[link.v for link in links], None]
    hessian, ends = rates.T @ rates, np.clip([high, low], -NO_LIMIT, NO_LIMIT)
    found, _, flag, _ = daqp.solve(hessian, -hessian @ q, matrix, *ends)
    return np.asarray(found) if flag == 1 else q


def _led_start(problem: ClusterProblem) -> Array | None:
    """Positions (nq,) where joints that one coupling alone ties follow the others at their starts.

    Of a coupling's joints the fastest follows. None where couplings do not end so, a follower has a
    start of its own, or limits of followers are passed.
    """
    geometry, columns, result = problem.geometry, problem.columns, problem.start.copy()
    left, led = list(geometry.linear), list[tuple[int, LinearCoupling]]()
    while left:
        used = Counter(n for each in left for n, _ in each.terms)
        ends = [(abs(k), not columns[geometry.links[n].v].follower, n, each)
                for each in left for n, k in each.terms if used[n] == 1]  # fmt: skip
        if not ends:
            return None
        _, _, n, each = min(ends, key=lambda end: (end[1], end[0], end[2]))
        left.remove(each)
        led.append((n, each))
    followers = {n for n, _ in led}
    curved = geometry.loop_joints or geometry.polynomials
    if curved or any(result[geometry.links[n].q] for n in followers):
        return None
    for n, link in enumerate(geometry.links):
        if n not in followers and link.joint.nq == 1:
            low, high = columns[link.v].limits
            result[link.q] = min(max(result[link.q], low), high)
    for n, each in reversed(led):
        terms = dict(each.terms)
        factor, place = terms.pop(n), geometry.links[n].q
        others = sum(k * result[geometry.links[i].q] for i, k in terms.items())
        result[place] = (each.offset - others) / factor
        low, high = columns[geometry.links[n].v].limits
        if not low - WITHIN <= result[place] <= high + WITHIN:
            return None
    return result


def _within_limits(q: float, curves: Mapping[int, Power], problem: ClusterProblem) -> float:
    """The position nearest to q at which links that follow it by these curves are within limits.

    q itself if there is no such position.
    """
    bounded = [
        (curve, problem.columns[problem.geometry.links[n].v].limits) for n, curve in curves.items()
    ]

    def fits(x: float) -> bool:
        values = [(float(curve(x)), *limits) for curve, limits in bounded]
        return all(
            low - NOTHING * (1.0 + abs(low)) <= y <= high + NOTHING * (1.0 + abs(high))
            for y, low, high in values
        )

    if fits(q):
        return q
    ends: list[float] = []
    for curve, limits in bounded:
        for limit in filter(math.isfinite, limits):
            roots = np.atleast_1d((curve - limit).roots())
            ends += roots[np.abs(roots.imag) <= SAME].real.tolist()
    return min(filter(fits, ends), key=lambda x: abs(x - q), default=q)


def follower_curves(
    links: Sequence[Link], constraint: Constraint, nq: int
) -> list[dict[int, Power]]:
    """For each of the nq positions of an explicit cluster, the links that depend on it alone.

    Each link with its position as a polynomial, which results as the constraint is evaluated on
    one.
    """
    from numpy.polynomial import Polynomial as Power

    variable = Power([0.0, 1.0])
    curves: list[dict[int, Power]] = []
    for at in range(nq):
        positions = constraint.positions([variable if i == at else 0.0 for i in range(nq)])
        single = {n: positions[link.q] for n, link in enumerate(links) if link.joint.nq == 1}
        curves.append({n: x for n, x in single.items() if isinstance(x, Power) and x.degree()})
    moved = Counter(n for each in curves for n in each)
    return [{n: x for n, x in each.items() if moved[n] == 1} for each in curves]
