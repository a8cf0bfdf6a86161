"""Branches of assembly as a discrete variable C: enumerated, then compared (000, figure 1(b))."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robomodel.errors import ClosureError
from robomodel.estimation.graph import Graph, Values
from robomodel.estimation.solve import Solution, solve
from robomodel.model.arguments import as_numbers
from robomodel.model.joints import Array
from robomodel.papers.natural_coordinates.mechanism import Mechanism

SAME = 1e-6  # of the longest body: points nearer to each other are one


@dataclass(frozen=True, eq=False)
class BranchEstimate:
    """What data say of the branch: p(C | o) (k,), and the solution on each branch."""

    probabilities: Array
    solutions: tuple[Solution, ...]

    @property
    def best(self) -> Solution:
        """The solution on the most likely branch."""
        return self.solutions[int(np.argmax(self.probabilities))]


def branches(
    mechanism: Mechanism, q: ArrayLike, held: Sequence[str], *, tries: int = 100, seed: int = 0
) -> Array:
    """Closed configurations (k, n) with the coordinates ``held`` as in q (n,), nearest to q first.

    Newton's method from q and from random places about it; a branch that none of the ``tries``
    leads to is missing. Raises ClosureError where none closes, ValueError where the held
    coordinates leave a freedom.
    """
    at, rng = as_numbers(q, "q"), np.random.default_rng(seed)
    size = max(body.length for body in mechanism.bodies)
    free = np.array([name not in held for name in mechanism.coordinates])
    shapes: list[Array] = []
    result: list[Array] = []
    gaps: list[float] = []
    for n in range(tries):
        try:
            closed = mechanism.close(at + (n > 0) * size * free * rng.normal(size=len(at)), held)
        except ClosureError as error:
            gaps.append(error.residual)
            continue
        if not mechanism.conditions.angles_hold(closed):
            continue
        points = np.concatenate([mechanism.point(name, closed) for name in mechanism.points])
        if all(np.max(np.abs(points - other)) > SAME * size for other in shapes):
            shapes.append(points)
            result.append(closed)
    if not result:
        raise ClosureError(f"it does not close with {list(held)} held", min(gaps, default=np.inf))
    if np.linalg.matrix_rank(mechanism.jacobian(result[0])[:, free]) < np.count_nonzero(free):
        raise ValueError(f"with {list(held)} held the mechanism still moves: hold every freedom")
    return np.array(sorted(result, key=lambda x: float(np.linalg.norm(x - at))))


def compare_branches(
    graph: Graph, starts: Sequence[Values], *, prior: ArrayLike = 1.0
) -> BranchEstimate:
    """p(C | o) of the branches that ``starts`` are on, one each, by the evidence of the data.

    Every branch is solved from its start; its evidence is
    :attr:`~robomodel.estimation.solve.Solution.log_evidence`. ``prior``: p(C) (k,), up to a factor.
    """
    solutions = tuple(solve(graph, start) for start in starts)
    logs = np.array([solution.log_evidence for solution in solutions])
    weights = np.exp(logs - np.max(logs)) * as_numbers(prior, "prior")
    return BranchEstimate(weights / np.sum(weights), solutions)
