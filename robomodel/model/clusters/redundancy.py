"""Which conditions of a cluster's loops say something new, and in which blocks they are solved."""

from __future__ import annotations

import numpy as np

from robomodel.errors import Source
from robomodel.model.closure import CLOSED, close
from robomodel.model.clusters.problem import ClusterProblem
from robomodel.model.constraints.implicit import Block
from robomodel.model.joints import Array, Mask

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
