"""Singular states: a cluster's independent joints do not say, or hardly say, how it moves.

At a *dead point* the independent joints rest while others of the cluster move. At a *change point*
the loops' conditions lose a rank, and branches meet. In both, the conditions of the dependent
velocities, K_d, are singular; G and all that depends on it are not-a-number where they are to
rounding (:class:`robomodel.mechanism.constraints.LoopConstraint`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from robomodel.arrays import Array
from robomodel.mechanism.constraints import LoopConstraint
from robomodel.model.violations import NEAR_SINGULAR, Singularity
from robomodel.scalars import array_of, unstack
from robomodel.tolerances import NOTHING, TINY

if TYPE_CHECKING:
    from robomodel.model.model import Model

CHANGE = 1e3  # at a change point all of K is singular, too: so much less than sines at dead points


def singularities(model: Model, q: Array, below: float = NEAR_SINGULAR) -> Iterator[Singularity]:
    """The clusters whose K_d has a sine that is not above a bound at q (..., nq)."""
    for cluster in model.clusters:
        constraint = cluster.constraint
        if not isinstance(constraint, LoopConstraint):
            continue
        at = q[..., cluster.q].reshape(-1, cluster.q.stop - cluster.q.start)
        at = at[np.all(np.isfinite(at), axis=-1)]
        with np.errstate(all="ignore"):
            sines = np.sqrt(
                np.broadcast_to(array_of(constraint.regularity(unstack(at))), at.shape[:1])
            )
        bad = ~(sines > below)
        if np.any(bad):
            worst = int(np.argmin(np.where(np.isnan(sines), 0.0, sines)))
            sine = float(np.nan_to_num(sines[worst]))
            change = _least_singular_value(constraint, at[worst]) <= CHANGE * max(sine, NOTHING)
            yield Singularity(
                cluster.name,
                "change point" if change else "dead point",
                cluster.independent,
                tuple(cluster.geometry.names),
                sine,
                int(np.count_nonzero(bad)),
            )


def _least_singular_value(constraint: LoopConstraint, q: Array) -> float:
    """The least one of K over all of z, columns in their units."""
    rows = np.array(constraint.rows(q.tolist())[1], dtype=float) @ np.array(constraint.expand)
    values = np.linalg.svd(rows / np.maximum(constraint.units, TINY), compute_uv=False)
    rank = sum(len(block.columns) for block in constraint.blocks)
    return float(values[rank - 1]) if rank else 1.0


def explanation(
    model: Model, arguments: Iterable[str] = ("q",)
) -> Callable[[Sequence[Array]], str] | None:
    """A function that says, of a function's arguments, why its results are not-a-number.

    ``arguments`` are their names, "q" among them. None for a model without loops.
    """
    if not any(isinstance(cluster.constraint, LoopConstraint) for cluster in model.clusters):
        return None
    return partial(_explained, weakref.ref(model), list(arguments).index("q"))


def _explained(of: Callable[[], Model | None], place: int, arguments: Sequence[Array]) -> str:
    """Empty where the model is gone: a kernel does not keep it."""
    if (model := of()) is None:
        return ""
    q = np.asarray(arguments[place], dtype=float)
    found = "; ".join(str(each) for each in singularities(model, q, NOTHING))
    return found and f"{found}: what depends on its velocities is not-a-number"
