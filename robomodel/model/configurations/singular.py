"""Singular states: a cluster's independent joints do not say, or hardly say, how it moves.

At a *dead point* the independent joints rest while others of the cluster move. At a *change point*
the loops' conditions lose a rank, and branches meet. In both, the conditions of the dependent
velocities, K_d, are singular; G and all that depends on it are not-a-number where they are to
rounding (:class:`robomodel.mechanism.constraints.LoopConstraint`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from robomodel.arrays import Array
from robomodel.errors import few
from robomodel.mechanism.constraints import LoopConstraint
from robomodel.scalars import unstack
from robomodel.tolerances import NOTHING, TINY

if TYPE_CHECKING:
    from robomodel.model.model import Model

NEAR = 1e-6  # sine from which on results have ten digits: those lost are as many as its own zeros
CHANGE = 1e3  # at a change point all of K is singular, too: so much less than sines at dead points


@dataclass(frozen=True, slots=True)
class Singularity:
    """A cluster at, or ``near``, a singular state, in ``states`` of the batch.

    Attributes:
        cluster: Its name.
        kind: "dead point" of its independent ``joints``, or "change point" of its loops.
        joints: Labels of its independent velocities.
        loops: Names of its loops.
        sine: The least sine between a column of K_d and those before it.
        states: In how many states of the batch.
    """

    cluster: str
    kind: Literal["dead point", "change point"]
    joints: tuple[str, ...]
    loops: tuple[str, ...]
    sine: float
    states: int = 1

    @property
    def near(self) -> bool:
        """Whether results are numbers, though of fewer digits."""
        return self.sine > NOTHING

    @property
    def quantity(self) -> Literal["sine"]:
        """What is below a limit."""
        return "sine"

    @property
    def joint(self) -> str:
        """The first of ``joints``."""
        return self.joints[0]

    @property
    def value(self) -> float:
        """The sine."""
        return self.sine

    @property
    def limit(self) -> float:
        """The sine below which states are named."""
        return NEAR

    def __str__(self) -> str:
        more = f" ({self.states} states)" if self.states > 1 else ""
        place = "near" if self.near else "at"
        if self.kind == "change point":
            what = f"{place} a change point, where branches of {few(self.loops)} meet"
        else:
            verb = "rests" if len(self.joints) == 1 else "rest"
            joints = f"{few(self.joints)} {verb}" if self.joints else "none moves"
            what = f"{place} a dead point, where {joints} while others of it move"
        effect = f"sine {self.sine:.1g}: digits are lost" if self.near else "singular to rounding"
        return f"cluster '{self.cluster}' is {what} ({effect}){more}"


def singularities(model: Model, q: Array, below: float = NEAR) -> Iterator[Singularity]:
    """The clusters whose K_d has a sine that is not above a bound at q (..., nq)."""
    for cluster in model.clusters:
        constraint = cluster.constraint
        if not isinstance(constraint, LoopConstraint):
            continue
        at = q[..., cluster.q].reshape(-1, cluster.q.stop - cluster.q.start)
        at = at[np.all(np.isfinite(at), axis=-1)]
        with np.errstate(all="ignore"):
            sines = np.sqrt(np.broadcast_to(constraint.regularity(unstack(at)), at.shape[:1]))
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
    return partial(_explained, model, list(arguments).index("q"))


def _explained(model: Model, place: int, arguments: Sequence[Array]) -> str:
    q = np.asarray(arguments[place], dtype=float)
    found = "; ".join(str(each) for each in singularities(model, q, NOTHING))
    return found and f"{found}: what depends on its velocities is not-a-number"
