"""What cannot be had of a batch of configurations, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from robomodel.errors import ClosureError, warn
from robomodel.model.configurations.coordinates import quaternions
from robomodel.model.elements import Cluster
from robomodel.model.joints import Array, Mask

if TYPE_CHECKING:
    from robomodel.model.model import Model


def loop_names(cluster: Cluster) -> tuple[str, ...]:
    """The names of a cluster's loops."""
    return tuple(loop.name for loop in cluster.closure.loops)


def not_closed(cluster: Cluster, gap: float, what: str) -> ClosureError:
    """The error that a cluster's loops do not close ``what`` (with, from, after …), by ``gap``."""
    loops = ", ".join(f"'{name}'" for name in loop_names(cluster))
    return ClosureError(
        f"loops of cluster '{cluster.name}' ({loops}) do not close {what}: residual {gap:.3g}",
        gap,
        loop_names(cluster),
    )


@dataclass
class Failures:
    """The configurations of a batch that cannot be had, and why the first of them cannot.

    ``known`` are those that were not finite to begin with: their failing is no news.
    """

    known: Mask
    failed: Mask = field(init=False)
    first: ValueError | None = None

    def __post_init__(self) -> None:
        self.failed = np.zeros_like(self.known)

    def record(self, bad: Mask, why: Callable[[Mask], ValueError]) -> None:
        """Record the bad ones; ``why`` tells of those that are news, or of all there are."""
        news = bad & ~self.known
        if self.first is None and np.any(bad) and (np.any(news) or not bad.ndim):
            self.first = why(news if np.any(news) else bad)
        self.failed |= bad

    def result(self, q: Array, *, whole: bool) -> Array:
        """q, if there are none; a single failure, or any if it is the ``whole`` that counts, is
        raised; those within a batch are not-a-number, with a RuntimeWarning.
        """
        if not np.any(self.failed):
            return q
        if self.first is not None and (whole or not self.failed.ndim):
            raise self.first
        if self.first is not None:
            count = int(np.count_nonzero(self.failed & ~self.known))
            warn(RuntimeWarning(
                f"{count} of {self.failed.size} configurations cannot be had and are "
                f"not-a-number: {self.first}"
            ))  # fmt: skip
        q[self.failed] = np.nan
        return q


def normalized(model: Model, q: Array, failures: Failures) -> Array:
    """Unit quaternions, wherever q holds some."""
    q = q.copy()
    for name, part in quaternions(model):
        norm = np.asarray(np.linalg.norm(q[..., part], axis=-1))
        failures.record(norm == 0.0, partial(_zero_quaternion, name))
        q[..., part] /= np.where(norm == 0.0, 1.0, norm)[..., None]
    return q


def _zero_quaternion(joint: str, _: Mask) -> ValueError:
    return ValueError(f"the quaternion of joint '{joint}' is zero")
