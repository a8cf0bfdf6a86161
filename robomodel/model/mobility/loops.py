"""Clusters with loop joints: rank, redundancy, independent coordinates, a closed start.

They are studied at random closed configurations: the generic rank of K there gives the mobility,
and rows that are constant combinations of others are dropped. Joints that only follow the others
through a coupling (rotors, mimics) are left out of this, so that they change nothing of it. Where
loops leave no motion or do not close, messages advise on axes that would free them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robomodel.description import Loop, Vec3
from robomodel.errors import DescriptionError, Source, few
from robomodel.model.closure import CLOSED, Geometry, close
from robomodel.model.constraints.loops import OUTSIDE, Anchor, Link
from robomodel.model.constraints.tree import loop_frame
from robomodel.model.constraints.velocities import Block, LoopConstraint
from robomodel.model.joints import Array, Mask
from robomodel.model.mobility.couplings import eliminate
from robomodel.model.mobility.exploration import (
    ClosedConfigurations,
    at_most,
    branch_rotation,
    choose_independent,
    common_axis,
    conditioning,
    describe_gaps,
    distances_from_start,
    explore,
    outside_limits,
    regularity,
    sample,
    singular_everywhere,
    tolerance_advice,
)
from robomodel.model.mobility.problem import (
    ClusterProblem,
    ClusterSolution,
    Column,
    check_counts,
    condition_names,
    first_source,
)


def mobility_of(problem: ClusterProblem) -> int:
    """In how many ways a cluster may move; DescriptionError where its loops do not close."""
    reduced = ReducedProblem.of(problem).problem
    return len(reduced.columns) - sample(reduced).rank


def analyse_loops(whole: ClusterProblem) -> ClusterSolution:
    """Loop joints: rank at random closed configurations, the best coordinates, the rows to keep."""
    reduced = ReducedProblem.of(whole)
    problem = reduced.problem
    geometry, n = problem.geometry, len(problem.columns)
    explored = explore(problem)
    rank, q, jacobian = explored.rank, explored.samples, explored.jacobian
    mobility = n - rank
    nearest = q[int(np.argmin(distances_from_start(problem, q)))]
    singular = explored.singular
    weakest = float(np.max(singular[:, -1] / np.maximum(singular[:, 0], 1e-300)))
    advice = tolerance_advice(weakest) if not mobility else ""
    check_counts(whole, mobility, len(whole.columns) - mobility, reduced.positions(nearest), advice)
    null = explored.null
    suspicions: list[tuple[str, Source]] = []
    dropped = singular[:, rank:] / np.maximum(singular[:, :1], 1e-300)
    off = float(np.max(dropped, initial=0.0))
    nearly = (
        f"closes only nearly (conditions {condition_names(problem)}: gap {explored.gap:.2g}, axes "
        f"off by {off:.2g}"
    )
    if explored.gap > CLOSED:
        nearly += "; " + at_most(describe_gaps(problem, nearest, 0.5 * explored.gap))
    exact = explored.gap <= CLOSED and off <= 1e-9
    if not exact and not problem.tolerance.stated:
        suspicions.append(
            (
                f"{nearly}); taken as exact, but check the anchors and write angles with all "
                "digits, or say how exact it is (tolerance)",
                first_source(problem),
            )
        )
    independent, notes = _independent(problem, explored, mobility)
    if not exact and problem.tolerance.stated:
        notes.append(f"cluster '{problem.name}': {nearly}); taken as exact within its tolerance")
    ranks, repeated = added_ranks(problem, jacobian)
    suspicions += [
        (
            "adds nothing: the loops and couplings before it already say all of it "
            f"(of {condition_names(problem)}); remove it",
            source,
        )
        for rank_, source in zip(ranks, problem.loop_sources, strict=True)
        if rank_ == 0
    ]
    keep = rows_to_keep(problem, jacobian, ranks)
    loop_rows = range(geometry.rows - len(geometry.linear))
    couplings = range(len(loop_rows), geometry.rows)
    closing = tuple(range(geometry.rows)) if exact else (*keep, *couplings)
    if not exact:
        suspicions += rows_that_open(problem, q, null, closing)
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
    problem: ClusterProblem, explored: ClosedConfigurations, mobility: int
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
        picked = few([columns[i].label for i in choice if i in open_], 8)
        note = (
            f"cluster '{problem.name}': {picked} chosen as independent by conditioning, "
            "as the file does not say"
        )
        return choice, [note]
    singular = singular_everywhere(explored.null, choice)
    if singular is not None:
        others = choose_independent(problem, explored.around[1], [], range(len(columns)), mobility)
        raise DescriptionError(
            f"{few([columns[i].label for i in choice], 8)} cannot be the independent coordinates: "
            "at every configuration tried, motions of the cluster leave them at rest "
            f"(singular value {singular:.1g}); take "
            f"{few([columns[i].label for i in others], 8)}",
            first_source(problem),
        )
    return choice, []


def _loop_neutral(
    problem: ClusterProblem,
    explored: ClosedConfigurations,
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
        outside, away = (
            outside_limits(problem, candidates),
            distances_from_start(problem, candidates),
        )
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


# ---- redundant rows, blocks ---------------------------------------------------------------------


SAME = 1.0 - 1e-6  # what is at least this share of the largest is as large
PERTURBATION = 0.2  # radians, or cluster sizes: how far from closure loops are watched


def rows_that_open(
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
    suspicions = []
    of_loops, _ = _row_numbers(problem)
    for rows, source in zip(of_loops, problem.loop_sources, strict=True):
        worst = max((float(open_[row]) for row in rows if row not in closing), default=0.0)
        if worst > problem.tolerance.gap / problem.scale:
            suspicions.append(
                (
                    "holds to first order only: taken to the letter, it leaves its cluster stuck "
                    "where it is. Its conditions that say so are left out; they open by "
                    f"{worst:.2g} of the cluster's size ({problem.scale:.2g} m) when it moves by "
                    f"{PERTURBATION:g}; say what the joint leaves free with a loop of another type",
                    source,
                )
            )
    return suspicions


def added_ranks(problem: ClusterProblem, jacobian: Array) -> tuple[list[int], list[bool]]:
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


def rows_to_keep(problem: ClusterProblem, jacobian: Array, ranks: list[int]) -> list[int]:
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


# ---- joints that couplings alone determine ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReducedProblem:
    """A cluster with loops, without the joints that only follow the others through a coupling.

    Those take part in no loop, and each in one coupling, which gives their positions: the rotors on
    a linkage's joints, for instance. ``columns`` are the core's among the whole's; ``followers``
    (link, coupling) of the whole, each after those that it follows.
    """

    whole: ClusterProblem
    problem: ClusterProblem
    columns: tuple[int, ...]
    followers: tuple[tuple[int, int], ...]

    @staticmethod
    def of(problem: ClusterProblem) -> ReducedProblem:
        """The core; a follower's limits count as limits of the joint that it follows."""
        geometry, columns = problem.geometry, list(problem.columns)
        at = [link.v for link in geometry.links]
        looped = {i for loop in geometry.loops for branch in loop.branches for i in branch}
        couplings = list(range(len(geometry.linear)))
        followers: list[tuple[int, int]] = []

        def follows(link: int, coupling: int) -> bool:
            """Marked so, or by preference; but none is preferred to one that may not lead."""
            column = columns[at[link]]
            led = all(
                columns[at[i]].chosen is not False for i, _ in geometry.linear[coupling].terms
            )
            return column.chosen is False or (column.chosen is None and column.follower and led)

        while True:
            used = Counter(link for c in couplings for link, _ in geometry.linear[c].terms)
            follower = next(
                (
                    (link, c)
                    for c in couplings
                    for link, _ in geometry.linear[c].terms
                    if used[link] == 1 and link not in looped and follows(link, c)
                ),
                None,
            )
            if follower is None:
                break
            link, coupling = follower
            couplings.remove(coupling)
            followers.append(follower)
            terms = dict(geometry.linear[coupling].terms)
            factor_of = terms.pop(link)
            if len(terms) == 1:
                ((leader, factor),) = terms.items()
                offset, low, high = geometry.linear[coupling].offset, *columns[at[leader]].limits
                ends = [(offset - factor_of * x) / factor for x in columns[at[link]].limits]
                low, high = max(low, min(ends)), min(high, max(ends))
                if low <= high:
                    columns[at[leader]] = replace(columns[at[leader]], limits=(low, high))
        gone = {link for link, _ in followers}
        kept = [i for i in range(len(geometry.links)) if i not in gone]
        return ReducedProblem(
            problem,
            _part(problem, columns, kept, couplings),
            tuple(i for i, column in enumerate(columns) if column.link not in gone),
            tuple(reversed(followers)),
        )

    def positions(self, q: Array) -> Array:
        """The whole's spanning positions (nq,) from the core's."""
        geometry = self.whole.geometry
        gone = {link for link, _ in self.followers}
        result = np.zeros(geometry.nq)
        at = 0
        for n, link in enumerate(geometry.links):
            if n not in gone:
                result[link.q : link.q + link.joint.nq] = q[at : at + link.joint.nq]
                at += link.joint.nq
        for n, coupling in self.followers:
            terms = dict(geometry.linear[coupling].terms)
            factor = terms.pop(n)
            others = sum(k * result[geometry.links[i].q] for i, k in terms.items())
            result[geometry.links[n].q] = (geometry.linear[coupling].offset - others) / factor
        return result

    def jacobian(self, inner: Array) -> Array:
        """Of conditions on the core (..., its columns): over all columns."""
        result = np.zeros((*inner.shape[:-1], len(self.whole.columns)))
        result[..., list(self.columns)] = inner
        return result

    def redundant(self, inner: Sequence[bool]) -> tuple[bool, ...]:
        """Which of all couplings are redundant, from which of the core's are."""
        gone, rest = {coupling for _, coupling in self.followers}, iter(inner)
        return tuple(c not in gone and next(rest) for c in range(len(self.whole.geometry.linear)))


def _part(
    problem: ClusterProblem,
    columns: Sequence[Column],
    kept: Sequence[int],
    couplings: Sequence[int],
) -> ClusterProblem:
    """The problem of some links only, with some of the couplings."""
    geometry = problem.geometry
    number = {link: n for n, link in enumerate(kept)}
    links: list[Link] = []
    nq = nv = 0
    for i in kept:
        link = geometry.links[i]
        links.append(replace(link, parent=number.get(link.parent, OUTSIDE), q=nq, v=nv))
        nq, nv = nq + link.joint.nq, nv + link.joint.nv

    def anchored(anchor: Anchor) -> Anchor:
        return replace(anchor, body=number.get(anchor.body, OUTSIDE))

    def renumbered(branch: Sequence[int]) -> tuple[int, ...]:
        return tuple(number[i] for i in branch)

    loops = tuple(
        replace(
            loop,
            predecessor=anchored(loop.predecessor),
            successor=anchored(loop.successor),
            branches=(renumbered(loop.branches[0]), renumbered(loop.branches[1])),
        )
        for loop in geometry.loop_joints
    )
    polynomials = tuple(
        replace(each, joint=number[each.joint], of=number[each.of]) for each in geometry.polynomials
    )
    linear = tuple(
        replace(each, terms=tuple((number[i], k) for i, k in each.terms))
        for each in (geometry.linear[c] for c in couplings)
    )
    parts = [
        problem.start[link.q : link.q + link.joint.nq]
        for link in map(geometry.links.__getitem__, kept)
    ]
    return replace(
        problem,
        geometry=Geometry(tuple(links), (*loops, *polynomials), linear),
        columns=tuple(replace(c, link=number[c.link]) for c in columns if c.link in number),
        linear_sources=tuple(problem.linear_sources[c] for c in couplings),
        start=np.concatenate(parts),
    )


# ---- advice -------------------------------------------------------------------------------------


X: Vec3 = (1.0, 0.0, 0.0)
HINGES = ("revolute", "continuous", "planar")  # loops that have the axis of a planar linkage


def suggest_axes(
    problem: ClusterProblem,
    loops: Sequence[Loop],
    posed: Callable[[Sequence[Loop]], ClusterProblem],
) -> str:
    """The axes that would leave a stuck cluster motion, as words for a message; "" if none is seen.

    ``loops`` are the problem's, and ``posed`` poses it with others. Loops of hinges get the axis
    that the joints between their ends share; if that is no cure, a sliding one each coordinate axis
    of its frame.
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
    """Whose axis a loop is given, and what it has instead."""
    default = ", as where none is written" if loop.axis == X else ""
    has = f"it has {' '.join(f'{x:.6g}' for x in loop.axis)}{default}"
    shared = common_axis(problem, problem.geometry.loop_joints[n])
    of_joints = shared is not None and loop.type in HINGES
    return f"the axis of {few(shared[1], 8)}; {has}" if of_joints and shared else has


def _trials(problem: ClusterProblem, loops: Sequence[Loop]) -> Iterator[list[Loop]]:
    """The loops with other axes, where they differ from what they have."""
    trial = []
    for n, loop in enumerate(loops):
        axis = _shared(problem, n, loop) if loop.type in HINGES else None
        trial.append(loop if axis is None or _along(axis, loop.axis) else replace(loop, axis=axis))
    if any(new is not old for old, new in zip(loops, trial, strict=True)):
        yield trial
        return
    for n, loop in enumerate(loops):
        if loop.type == "prismatic":
            for axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)):
                if not _along(axis, loop.axis):
                    yield [*loops[:n], replace(loop, axis=axis), *loops[n + 1 :]]


def _along(one: Vec3, other: Vec3) -> bool:
    return bool(np.linalg.norm(np.cross(one, other)) < 1e-6 * np.linalg.norm(other))


def _shared(problem: ClusterProblem, n: int, loop: Loop) -> Vec3 | None:
    """The axis that the joints between a loop's ends share, in its frame as it is written."""
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
