"""Clusters with loop joints: rank, redundancy, independent coordinates, a closed start.

They are studied at random closed configurations: the generic rank of K there gives the mobility,
and rows that are constant combinations of others are dropped. Joints that only follow the others
through a coupling (rotors, mimics) are left out of this, so that they change nothing of it.
"""

from __future__ import annotations

import numpy as np

from robomodel.errors import DescriptionError, Source
from robomodel.model.closure import CLOSED, close
from robomodel.model.clusters.couplings import eliminate
from robomodel.model.clusters.exploration import (
    ClosedConfigurations,
    distances_from_start,
    explore,
    outside_limits,
    sample,
    tolerance_advice,
)
from robomodel.model.clusters.followers import ReducedProblem
from robomodel.model.clusters.open_loops import at_most, describe_gaps
from robomodel.model.clusters.partitioning import choose_independent, singular_everywhere
from robomodel.model.clusters.problem import (
    ClusterProblem,
    ClusterSolution,
    check_counts,
    condition_names,
    first_source,
    names,
)
from robomodel.model.clusters.redundancy import (
    SAME,
    added_ranks,
    blocks,
    rows_that_open,
    rows_to_keep,
)
from robomodel.model.clusters.sampling import conditioning, regularity
from robomodel.model.constraints.implicit import LoopConstraint
from robomodel.model.joints import Array


def mobility_of(problem: ClusterProblem) -> int:
    """In how many ways a cluster may move; DescriptionError where its loops do not close."""
    reduced = ReducedProblem.of(problem).problem
    return len(reduced.columns) - int(np.max(sample(reduced).ranks))


def analyse_loops(whole: ClusterProblem) -> ClusterSolution:
    """Loop joints: rank at random closed configurations, the best coordinates, the rows to keep."""
    reduced = ReducedProblem.of(whole)
    problem = reduced.problem
    geometry, n = problem.geometry, len(problem.columns)
    samples, explored = explore(problem)
    rank = explored.rank
    q, jacobian = explored.samples, samples.jacobian[samples.ranks == rank]
    mobility = n - rank
    nearest = q[int(np.argmin(distances_from_start(problem, q)))]
    singular = np.linalg.svd(jacobian, compute_uv=False)
    weakest = float(np.max(singular[:, -1] / np.maximum(singular[:, 0], 1e-300)))
    advice = tolerance_advice(weakest) if not mobility else ""
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
