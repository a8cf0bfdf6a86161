"""Search over the orders of any problem, of variables or of scalars, within a budget.

What is minimised are the operations of Gaussian elimination in general position, products with ±1
free (:attr:`gauss.Elimination.operations`). The result is never worse than orders known by name.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from robomodel.dynamics.elimination.counting import Counter
from robomodel.dynamics.elimination.gauss import Elimination, Group, SingularError
from robomodel.dynamics.elimination.orders import NAMES
from robomodel.dynamics.elimination.scalars import SCALAR_ORDERS

if TYPE_CHECKING:
    from robomodel.dynamics.problem.problem import Problem

NEAR = 6  # places that every other move goes at most


@dataclass(frozen=True, slots=True)
class Searched:
    """The best order found, for :meth:`Problem.compile`, and its ``operations``.

    ``start`` and ``start_operations``: the best order known by name; ``nodes``: orders counted.
    """

    order: tuple[Group, ...]
    operations: int
    start: str
    start_operations: int
    nodes: int


def search_problem(
    problem: Problem,
    *,
    scalars: bool = False,
    nodes: int = 500,
    seconds: float | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Searched:
    """See :meth:`robomodel.dynamics.problem.problem.Problem.search`."""
    if nodes < 1:
        raise ValueError("a search counts one order or more")
    until = math.inf if seconds is None else time.monotonic() + seconds
    known = list(_known(problem, scalars, until))
    if not known:
        raise SingularError("every variable", "is not determined in any order known by name")
    operations, name, done = min(known, key=lambda found: found[0])
    best, fewest = done.plan.order, operations
    at: list[Group] = [(c,) for _, c in done.plan.pivots] if scalars else list(best)
    value: float = operations
    rng, counted = random.Random(seed), len(known)
    first, counter = counted, Counter(problem.structure)
    while counted < nodes and len(at) > 1 and time.monotonic() < until:
        left = 1.0 - (counted - first) / max(nodes - first, 1)
        temperature = 0.01 * fewest * left * left + 1e-9
        trial = list(at)
        place = rng.randrange(len(trial))
        moved = trial.pop(place)
        if counted % 2:
            place = min(max(place + rng.randint(-NEAR, NEAR), 0), len(trial))
        else:
            place = rng.randrange(len(trial) + 1)
        trial.insert(place, moved)
        counted += 1
        try:
            found = float(counter.operations(trial))
        except SingularError:
            continue
        if found <= value or rng.random() < math.exp((value - found) / temperature):
            at, value = trial, found
            if value < fewest:
                best, fewest = tuple(at), int(value)
        if progress is not None:
            progress(counted, fewest)
    return Searched(tuple(best), fewest, name, operations, counted)


def _known(problem: Problem, scalars: bool, until: float) -> Iterator[tuple[int, str, Elimination]]:
    """Operations, name and elimination of the orders known by name; one at least is tried."""
    names = [name for name in NAMES if name != "searched"]
    if scalars:
        names += [f"scalar {name}" for name in SCALAR_ORDERS]
    for n, name in enumerate(names):
        if n and time.monotonic() > until:
            return
        try:
            done = problem.factorize(name)
        except SingularError:
            continue
        yield done.operations, name, done
