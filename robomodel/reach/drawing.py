"""Random configurations: reachable ones, ones near another, and ones of any assembly mode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.errors import did_you_mean, few, warn
from robomodel.mechanism import closure as newton
from robomodel.mobility.exploration import column_ranges, random_positions
from robomodel.model.arguments import as_array, check_one_configuration
from robomodel.model.configurations import functions
from robomodel.model.configurations.following import is_closed
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster, columns_of
from robomodel.reach.motions import ClusterMotion
from robomodel.reach.reachable import Reachable, from_configuration, random_poses, reachable
from robomodel.tolerances import CLOSED, NEARLY_CLOSED, NOTHING

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import ArrayLike

    from robomodel.model.model import Model

BRANCHES = ("reachable", "any")
DEPARTURE = 0.3  # [rad, cluster sizes] of what is near
TYPICALLY_REGULAR = 5e-2  # of any mode: 1/‖G‖ stays above this share of what is typical
FILLINGS = 4  # rounds of guesses, of which as many are kept as a round has
GUESSES = (8, 32, 128)  # of any mode, a round's


def random_configuration(
    model: Model,
    rng: Generator,
    near: Array | None,
    branch: str,
    base_pose: ArrayLike | Literal["random"] | None,
) -> Array:
    """As :meth:`robomodel.Model.random_configuration`."""
    if branch not in BRANCHES:
        raise ValueError(f"no branch '{branch}'{did_you_mean(branch, BRANCHES)}")
    pose = _pose(model, rng, base_pose)
    if near is not None:
        q = _near(model, rng, near)
    elif branch == "reachable":
        q = reachable(model).draw(rng, 1)[0]
    else:
        q = _of_any_mode(model, rng)
    if pose is not None:
        q[:7] = pose
    return q


def reachable_from(model: Model, start: Array) -> Reachable:
    """The set that is reachable from a closed configuration (nq,)."""
    at_neutral = np.array_equal(start, model.neutral())
    return reachable(model) if at_neutral else from_configuration(model, start)


def drawn(model: Model, rng: Generator, count: int, start: Array) -> Array:
    """Configurations (count, nq) that are reachable from a closed one, a free base anywhere."""
    reach = reachable_from(model, start)
    pose = random_poses(rng, count) if _base_is_free(model) else None
    return reach.draw(rng, count, base_pose=pose)


def is_reachable(model: Model, q: Array) -> bool | Mask:
    """As :meth:`robomodel.Model.is_reachable`."""
    rows = q.reshape(math.prod(q.shape[:-1]), model.nq)  # also of a robot without joints
    found = reachable(model).contains(rows)
    return found.reshape(q.shape[:-1]) if q.ndim > 1 else bool(found[0])


def _pose(
    model: Model, rng: Generator, base_pose: ArrayLike | Literal["random"] | None
) -> Array | None:
    """The pose (7,) of a floating base; None where it is not asked for."""
    if base_pose is None:
        return None
    if isinstance(base_pose, str):
        if base_pose != "random":
            raise ValueError(f"base_pose is seven numbers, or 'random', not '{base_pose}'")
        return random_poses(rng, 1)[0] if _base_is_free(model) else None
    if model.floating_base is None:
        raise ValueError(f"'{model.name}' has no floating base, so base_pose means nothing")
    if not _base_is_free(model):
        raise ValueError(
            f"the floating base of '{model.name}' is tied to the world, so its pose is drawn with "
            "what ties it: leave base_pose out"
        )
    pose = as_array(base_pose, 7, "base_pose", "7")
    size = float(np.linalg.norm(pose[..., 3:]))
    if pose.shape != (7,) or not np.all(np.isfinite(pose)) or not size:
        raise ValueError("base_pose needs seven finite numbers: x y z qx qy qz qw")
    return np.concatenate([pose[:3], pose[3:] / size])


def _base_is_free(model: Model) -> bool:
    """There is a floating base, and no loop or coupling ties it to the world."""
    return model.floating_base is not None and model.clusters[0].kind == "joint"


# ---- near a configuration ------------------------------------------------------------------------


def _near(model: Model, rng: Generator, near: Array) -> Array:
    """Ways of up to :data:`DEPARTURE` from a configuration, which is closed first."""
    check_one_configuration(near, "near")
    q = near
    if np.max(np.abs(model.residual(near)), initial=0.0) > NEARLY_CLOSED:
        q = model.close(near)
    there, stuck = from_configuration(model, q).around(rng, 1, DEPARTURE)
    if stuck:
        warn(RuntimeWarning(
            f"nothing that is closed and regular was drawn of {few(stuck)}: a random configuration "
            f"of '{model.name}' has it where it was"
        ))  # fmt: skip
    return np.asarray(there[0])


# ---- any assembly mode ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _SamplingRanges:
    """Ranges of each cluster's columns; least 1/‖G‖ (clusters), squared."""

    ranges: tuple[tuple[Array, Array], ...]
    regular: Array


@cached_on_model
def _sampling(model: Model) -> _SamplingRanges:
    ranges = [
        column_ranges(
            columns_of(model, c), c.geometry.scale if c.implicit else 1.0, c.geometry.pitches
        )
        for c in model.clusters
    ]
    with np.errstate(all="ignore"):
        typical = 1.0 / _checked(model, model.neutral(), 1)[1][:, 2]
    typical = np.where(np.isfinite(typical), typical, 0.0)
    implicit = np.array([cluster.implicit for cluster in model.clusters])
    regular = np.where(implicit, TYPICALLY_REGULAR**2 * np.maximum(typical, 0.05**2), 0.0)
    return _SamplingRanges(tuple(ranges), regular)


def _checked(model: Model, q: Array, steps: int) -> tuple[Array, Array]:
    """Closed by so many steps; and the checks (..., clusters, 3) of :func:`functions.closing`."""
    states = functions.closing(model)(q, np.zeros((steps, 1)))[..., -1, :]
    checks = states[..., model.nq :]
    return states[..., : model.nq], checks.reshape(*checks.shape[:-1], len(model.clusters), 3)


def _of_any_mode(model: Model, rng: Generator) -> Array:
    """Linkages closed from random positions, and within limits; else as they are reachable."""
    q = reachable(model).draw(rng, 1, only=())[0]
    pending = [cluster for cluster in model.clusters if cluster.implicit and cluster.nv]
    for count in GUESSES if pending else ():
        guesses = np.tile(q, (count, 1))
        for cluster in pending:
            ranges = _sampling(model).ranges[cluster.index]
            guesses[:, cluster.q] = random_positions(cluster.geometry, ranges, rng, count)
        with np.errstate(all="ignore"):
            closed, checks = _closed(model, pending, guesses)
            fine = checks[..., 0] <= CLOSED
            fine &= 1.0 / checks[..., 2] >= _sampling(model).regular
            fine &= checks[..., 1] <= NOTHING
        left = []
        for cluster in pending:
            rows = (closed[row] for row in np.flatnonzero(fine[:, cluster.index]))
            found = next((x for x in rows if not _at_change_point(model, cluster, x)), None)
            if found is None:
                left.append(cluster)
            else:
                q[cluster.q] = found[cluster.q]
        pending = left
        if not pending:
            return np.asarray(q)
    known = reachable(model).draw(rng, 1)[0] if pending else q
    for cluster in pending:
        q[cluster.q] = known[cluster.q]
    return np.asarray(q)


@cached_on_model
def assembled(model: Model) -> Array:
    """Configurations (n, nq) of all assembly modes, whichever joints are independent.

    Linkages are closed from random positions of all of their joints, within limits.
    """
    rng = np.random.default_rng(20261129)
    q = reachable(model).draw(rng, GUESSES[-1], only=())
    for cluster in model.clusters:
        if not (cluster.implicit and cluster.nv):
            continue
        motion = ClusterMotion.of(model, cluster)
        ranges = _sampling(model).ranges[cluster.index]
        found = np.zeros((0, cluster.geometry.nq))
        for _ in range(FILLINGS):
            guesses = random_positions(cluster.geometry, ranges, rng, len(q))
            at, gap = newton.close(motion.geometry, guesses, rows=cluster.closing_rows)
            found = np.concatenate([found, at[is_closed(cluster, at, gap) & motion.within(at)]])
            if len(found) >= len(q):
                break
        if len(found):  # each as often as the others
            order = rng.permutation(len(q)) % len(found)
            q[:, cluster.q] = found[: len(q)][order]
    return q


@cached_on_model
def in_other_modes(model: Model) -> Array:
    """Configurations (n, nq) to which no path from the neutral one was found, of all modes."""
    return elsewhere(reachable(model))


def elsewhere(reach: Reachable) -> Array:
    """Configurations (n, nq) of all assembly modes to which no path was found in a set."""
    q = assembled(reach.model)
    return q[~reach.connected(q)]


def _closed(model: Model, linkages: Sequence[Cluster], guesses: Array) -> tuple[Array, Array]:
    """Guesses (n, nq) with linkages closed, and their checks.

    With independent joints where they are drawn, if any of a linkage's close so.
    """
    closed, checks = _checked(model, guesses, 12)  # Newton steps, the last of which only polishes
    open_ = [c for c in linkages if not (checks[:, c.index, 0] <= CLOSED).any()]
    for cluster in open_:
        at, gap = newton.close(cluster.geometry, guesses[:, cluster.q], rows=cluster.closing_rows)
        at[~is_closed(cluster, at, gap)] = np.nan
        closed[:, cluster.q] = at
    return _checked(model, closed, 1) if open_ else (closed, checks)


def _at_change_point(model: Model, cluster: Cluster, q: Array) -> bool:
    """True if a cluster's constraints lose rank at q (nq,): there G is not unique."""
    rank = cluster.geometry.nv - cluster.nv
    if not rank:
        return False
    block = model.constraint_matrix(q)[:, cluster.spanning_v]
    values = np.linalg.svd(block, compute_uv=False)
    # away from change points K's least singular value is a larger share of its greatest
    return bool(values[rank - 1] < 1e-4 * values[0])
