"""Configurations of a whole model: closing, solving for joint positions, drawing, integrating."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from robomodel.errors import ClosureError, did_you_mean, warn
from robomodel.model import closure as newton
from robomodel.model.closure import CLOSED, Geometry
from robomodel.model.continuation import MOST, STEP, all_finite, is_closed, move
from robomodel.model.joints import Array, Mask
from robomodel.model.model import Cluster, Model, common_batch
from robomodel.model.question import Column
from robomodel.model.sampling import random_positions, regularity

if TYPE_CHECKING:
    from numpy.random import Generator

REGULAR = 5e-2  # random configurations keep 1/‖G‖ above this share of what is typical
NEAR = 0.3


def _names(cluster: Cluster) -> tuple[str, ...]:
    assert cluster.geometry is not None
    return tuple(loop.name for loop in cluster.geometry.loops)


def _refuse(cluster: Cluster, gap: float, what: str) -> ClosureError:
    loops = ", ".join(f"'{name}'" for name in _names(cluster))
    return ClosureError(
        f"loops of cluster '{cluster.name}' ({loops}) do not close {what}: residual {gap:.3g}",
        gap,
        _names(cluster),
    )


@dataclass
class _Failures:
    """The configurations of a batch that cannot be had, and why the first of them cannot.

    ``known`` are those that were not finite to begin with: their failing is no news.
    """

    known: Mask
    failed: Mask = field(init=False)
    first: ValueError | None = None

    def __post_init__(self) -> None:
        self.failed = np.zeros_like(self.known)

    def note(self, bad: Mask, why: Callable[[Mask], ValueError]) -> None:
        """Take down the bad ones; ``why`` tells of those that are news, or of all there are."""
        news = bad & ~self.known
        if self.first is None and np.any(bad) and (np.any(news) or not bad.ndim):
            self.first = why(news if np.any(news) else bad)
        self.failed |= bad

    def told(self, q: Array, *, whole: bool) -> Array:
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


def held(model: Model, cluster: Cluster) -> Iterator[tuple[int, slice, slice]]:
    """The bodies whose joint positions the cluster's q holds: body, where in it, and where in v.

    All bodies of a cluster with loops (whose part of v is then of no use), else the independent.
    """
    q, v = 0, cluster.v.start
    for body in cluster.bodies:
        joint = model.nodes[body].joint
        if cluster.implicit or model.joints[body].independent:
            yield body, slice(q, q + joint.nq), slice(v, v + joint.nv)
            q, v = q + joint.nq, v + joint.nv


def _normalize(model: Model, q: Array, failures: _Failures) -> Array:
    """Unit quaternions, wherever q holds some."""
    q = q.copy()
    for cluster in model.clusters:
        for body, part, _ in held(model, cluster):
            joint = model.nodes[body].joint
            if joint.nq == joint.nv:
                continue
            last = cluster.q.start + part.stop
            norm = np.asarray(np.linalg.norm(q[..., last - 4 : last], axis=-1))
            failures.note(norm == 0.0, partial(_zero_quaternion, model.joints[body].name))
            q[..., last - 4 : last] /= np.where(norm == 0.0, 1.0, norm)[..., None]
    return q


def _zero_quaternion(joint: str, _: Mask) -> ValueError:
    return ValueError(f"the quaternion of joint '{joint}' is zero")


def close(model: Model, q: Array) -> Array:
    """The nearest closed configuration; rows of a batch that have none are not-a-number."""
    failures = _Failures(~all_finite(q))
    with np.errstate(all="ignore"):
        q = _normalize(model, q, failures)
        for cluster in model.clusters:
            if not cluster.implicit:
                continue
            assert cluster.geometry is not None
            own = q[..., cluster.q]
            closed, gap = newton.close(
                cluster.geometry, own, rows=cluster.closing_rows, nearest=True
            )
            bad = ~is_closed(cluster.geometry, closed, gap)
            if np.any(bad):
                closed[bad], gap[bad] = newton.close(
                    cluster.geometry, own[bad], rows=cluster.closing_rows
                )
                bad = ~is_closed(cluster.geometry, closed, gap)
            failures.note(bad, partial(_left_open, cluster, gap, "from there"))
            q[..., cluster.q] = closed
    return failures.told(q, whole=False)


def _left_open(cluster: Cluster, gap: Array, what: str, bad: Mask) -> ClosureError:
    worst = float(np.max(gap[bad]))
    return _refuse(cluster, worst, what if math.isfinite(worst) else "where q is not finite")


def integrate(model: Model, q: Array, dv: Array, *, whole: bool = False) -> Array:
    """Move along dv, loops closed; rows of a batch that cannot are not-a-number.

    ``whole``: raise the error of any row instead.
    """
    batch = common_batch(q=q, v_dt=dv)
    q = np.broadcast_to(q, (*batch, model.nq)).copy()
    dv = np.broadcast_to(dv, (*batch, model.nv))
    failures = _Failures(~(all_finite(q) & all_finite(dv)))
    with np.errstate(all="ignore"):
        for cluster in model.clusters:
            own = q[..., cluster.q]
            if cluster.implicit:
                assert cluster.geometry is not None
                moved, gap = move(cluster, own, dv[..., cluster.v])
                bad = ~is_closed(cluster.geometry, moved, gap)
                failures.note(bad, partial(_not_followed, cluster, gap, dv[..., cluster.v]))
                q[..., cluster.q] = moved
                continue
            for body, at, along in held(model, cluster):
                own[..., at] = model.nodes[body].joint.integrate(own[..., at], dv[..., along])
            q[..., cluster.q] = own
    return failures.told(q, whole=whole)


def _not_followed(cluster: Cluster, gap: Array, dv: Array, bad: Mask) -> ClosureError:
    """Why a motion was not followed to its end."""
    worst = float(np.max(gap[bad]))
    if worst < np.inf:
        return _refuse(cluster, worst, "after this motion")
    far, most = float(np.max(np.abs(dv[bad]))), MOST * STEP
    why = (
        f"a motion by {far:.3g} (rad or m) is too long to be followed at once; go {most:g} at a "
        "time, or less"
        if most < far < math.inf
        else "q or the motion is not finite"
    )
    loops = ", ".join(f"'{name}'" for name in _names(cluster))
    return ClosureError(
        f"loops of cluster '{cluster.name}' ({loops}) cannot follow: {why}", worst, _names(cluster)
    )


def difference(model: Model, q0: Array, q1: Array) -> Array:
    """What integrate would need to lead from q0 to q1."""
    batch = common_batch(q0=q0, q1=q1)
    q0, q1 = (np.broadcast_to(q, (*batch, model.nq)) for q in (q0, q1))
    result = np.empty((*batch, model.nv))
    with np.errstate(all="ignore"):
        for cluster in model.clusters:
            a, b = q0[..., cluster.q], q1[..., cluster.q]
            if cluster.implicit:
                assert cluster.geometry is not None
                result[..., cluster.v] = cluster.geometry.difference(a, b)[
                    ..., list(cluster.columns)
                ]
                continue
            for body, at, along in held(model, cluster):
                result[..., along] = model.nodes[body].joint.difference(a[..., at], b[..., at])
    return result


# ---- solving for given joint positions -----------------------------------------------------------


def solve(
    model: Model,
    positions: Mapping[str, float | Sequence[float]],
    guess: Array,
    base_pose: Sequence[float] | None,
) -> Array:
    """The configuration with these joint positions, near the guess."""
    if guess.ndim != 1 or not np.all(np.isfinite(guess)):
        told = f"got shape {guess.shape}" if guess.ndim != 1 else "and finite"
        raise ValueError(f"guess must be one configuration, {told}")
    index = {joint.name: i for i, joint in enumerate(model.joints)}
    given: dict[int, Array] = {}
    for name, value in positions.items():
        if name not in index:
            raise KeyError(f"no joint '{name}' in '{model.name}'{did_you_mean(name, index)}")
        body = index[name]
        joint = model.nodes[body].joint
        entry = np.atleast_1d(np.asarray(value))
        real = entry.shape == (joint.nq,) and entry.dtype.kind in "fiub"
        if not (real and np.all(np.isfinite(entry))):
            raise ValueError(f"joint '{name}' needs {joint.nq} finite number(s), got {value!r}")
        given[body] = entry.astype(float)
    if base_pose is not None:
        if model.floating_base is None:
            raise ValueError(f"'{model.name}' has no floating base, so base_pose means nothing")
        pose = np.asarray(base_pose)
        real = pose.shape == (7,) and pose.dtype.kind in "fiub"
        if not (real and np.all(np.isfinite(pose))):
            raise ValueError("base_pose needs seven finite numbers: x y z qx qy qz qw")
        given[0] = pose.astype(float)
    q = guess.copy()
    for cluster in model.clusters:
        here = {body: given[body] for body in cluster.bodies if body in given}
        if cluster.implicit:
            q[cluster.q] = _solve_loops(model, cluster, here, q[cluster.q])
        elif here:
            q[cluster.q] = _solve_explicit(model, cluster, here, q[cluster.q])
    failures = _Failures(np.zeros((), dtype=bool))
    return failures.told(_normalize(model, q, failures), whole=True)


def _solve_explicit(model: Model, cluster: Cluster, given: Mapping[int, Array], q: Array) -> Array:
    """Positions linear in the independent ones: least change that gives the named joints theirs."""
    first = model.nodes[cluster.bodies[0]].q
    names = [model.joints[body].name for body in given]
    if cluster.kind == "joint":
        return next(iter(given.values()))
    offset = np.array(cluster.constraint.positions([0.0] * len(q)))
    matrix = np.array(
        [
            np.array(cluster.constraint.positions([float(i == j) for j in range(len(q))])) - offset
            for i in range(len(q))
        ]
    ).T
    rows: list[int] = []
    wanted: list[float] = []
    for body, value in given.items():
        at = model.nodes[body].q - first
        rows += range(at, at + len(value))
        wanted += list(value)
    a, b = matrix[rows], np.array(wanted) - offset[rows]
    step, _, _, _ = np.linalg.lstsq(a, b - a @ q, rcond=1e-12)
    solved: Array = q + step
    off = float(np.max(np.abs(a @ solved - b), initial=0.0))
    if off > 1e-9 * max(1.0, float(np.max(np.abs(wanted)))):
        raise ValueError(f"the positions of {names} contradict their couplings by {off:.3g}")
    return solved


def _solve_loops(model: Model, cluster: Cluster, given: Mapping[int, Array], start: Array) -> Array:
    """Close the loops with the named joints where they shall be.

    From a closed guess the named joints are moved there step by step, so that the branch is kept;
    where that way is barred, and from a guess that is not closed, Newton starts at the target, and
    at last from configurations around it.
    """
    geometry = cluster.geometry
    assert geometry is not None
    nodes = [model.nodes[body] for body in cluster.bodies]
    first_q, first_v = nodes[0].q, nodes[0].v
    target = start.copy()
    held: list[int] = []
    for body, value in given.items():
        node = model.nodes[body]
        target[node.q - first_q : node.q - first_q + node.joint.nq] = value
        held += [v - first_v for v in node.freedoms]
    # the other independent joints stay, unless a dependent one is named in their place
    own = [c for c in cluster.columns if c not in held]
    room = geometry.nv - len(held) - len(own)
    rank = geometry.nv - cluster.nv
    stay = held + own if room >= rank else held
    rows = cluster.closing_rows

    def good(q: Array, gap: Array) -> bool:
        return bool(is_closed(geometry, q, gap))

    guess_gap = float(geometry.gap(start))
    best = np.inf
    if guess_gap <= 1e3 * CLOSED:
        way = geometry.difference(start, target)[held] if held else np.zeros(0)
        steps = max(1, int(np.ceil(np.max(np.abs(way), initial=0.0) / STEP)))
        at, gap, done = start, np.zeros(()), True
        for step in range(1, steps + 1):
            if steps > 2000:
                done = False
                break
            move = np.zeros(geometry.nv)
            move[held] = way / steps
            ahead = geometry.integrate(at, _lead(geometry, at, move, stay, rows))
            here = (
                target
                if step == steps
                else geometry.integrate(start, _only(geometry.nv, held, way * (step / steps)))
            )
            for node in (model.nodes[body] for body in given):
                part = slice(node.q - first_q, node.q - first_q + node.joint.nq)
                ahead[part] = here[part]
            at, gap = newton.close(geometry, ahead, held=stay, rows=rows)
            if not good(at, gap):
                done = False
                break
        best = min(best, float(gap))
        if done:
            return at
    at, gap = newton.close(geometry, target, held=stay, rows=rows)
    if good(at, gap):
        return at
    best = min(best, float(gap))
    rng = np.random.default_rng(0)
    free = [c for c in range(geometry.nv) if c not in stay]
    for reach in (0.5, 1.5, 3.0):
        scatter = np.zeros((16, geometry.nv))
        scatter[:, free] = rng.uniform(-reach, reach, (16, len(free)))
        tries, gaps = newton.close(
            geometry,
            geometry.integrate(np.broadcast_to(target, (16, geometry.nq)), scatter),
            held=stay,
            rows=rows,
        )
        fine = is_closed(geometry, tries, gaps)
        if np.any(fine):
            away = np.linalg.norm(
                geometry.difference(np.broadcast_to(target, tries.shape), tries), axis=1
            )
            chosen: Array = tries[int(np.argmin(np.where(fine, away, np.inf)))]
            return chosen
        best = min(best, float(np.min(gaps)))
    named = ", ".join(
        f"{model.joints[body].name} = {value.item() if value.size == 1 else value.tolist()}"
        for body, value in given.items()
    )
    raise _refuse(cluster, best, f"with {named}" if named else "from the guess")


def _only(size: int, columns: Sequence[int], values: Array) -> Array:
    result = np.zeros(size)
    result[list(columns)] = values
    return result


def _lead(
    geometry: Geometry, q: Array, move: Array, stay: Sequence[int], rows: Sequence[int]
) -> Array:
    """The first-order motion of the other joints that keeps the loops closed under ``move``."""
    jacobian = geometry.evaluate(q)[1][list(rows)]
    free = [c for c in range(geometry.nv) if c not in set(stay)]
    follow = move.copy()
    step = -np.linalg.pinv(jacobian[:, free], rcond=1e-6) @ (jacobian @ move)
    largest = float(np.max(np.abs(step), initial=0.0))
    follow[free] += step * min(1.0, 0.5 / largest if largest else 1.0)
    return follow


# ---- random configurations -----------------------------------------------------------------------


def random(model: Model, rng: Generator, near: Array | None) -> Array:
    """A closed configuration, away from singularities and within the limits where that can be."""
    if near is not None and (near.ndim != 1 or not np.all(np.isfinite(near))):
        told = f"got shape {near.shape}" if near.ndim != 1 else "and finite"
        raise ValueError(f"near must be one configuration, {told}")
    q = np.empty(model.nq)
    for cluster in model.clusters:
        at = None if near is None else near[cluster.q]
        q[cluster.q] = random_cluster(model, cluster, rng, at)
    return q


def columns_of(model: Model, cluster: Cluster) -> list[Column]:
    """The spanning velocities of a cluster, with their limits and units."""
    columns = []
    for i, body in enumerate(cluster.bodies):
        joint, node = model.joints[body], model.nodes[body]
        bounded = joint.type != "continuous" and joint.nv == 1
        limits = (joint.lower, joint.upper) if bounded else (-np.inf, np.inf)
        for motion in node.joint.subspace:
            length = any(motion.linear) and not any(motion.angular)
            columns.append(Column(joint.name, joint.name, i, None, False, False, length, limits))
    return columns


def random_cluster(model: Model, cluster: Cluster, rng: Generator, near: Array | None) -> Array:
    """A cluster's part of q, drawn; within the limits of all its joints where that can be."""
    columns = columns_of(model, cluster)
    if cluster.implicit:
        return _random_loops(model, cluster, columns, rng, near)
    geometry = cluster.geometry or Geometry(cluster.links, (), ())
    low, high = np.array([column.limits for column in columns]).T
    q = np.empty(cluster.q.stop - cluster.q.start)
    for _ in range(100):
        drawn = random_positions(geometry, columns, rng, 1, 1.0)[0]
        for body, at, _along in held(model, cluster):
            link = cluster.links[body - cluster.bodies[0]]
            if near is None:
                q[at] = drawn[link.q : link.q + link.joint.nq]
            else:
                q[at] = link.joint.integrate(near[at], rng.uniform(-NEAR, NEAR, link.joint.nv))
        spanning = np.array(cluster.constraint.positions(list(q)))
        reached = geometry.difference(geometry.zero(), spanning)
        if np.all((reached >= low) & (reached <= high)):
            break
    return q


def _random_loops(
    model: Model,
    cluster: Cluster,
    columns: list[Column],
    rng: Generator,
    near: Array | None,
) -> Array:
    geometry = cluster.geometry
    assert geometry is not None
    start = np.array(cluster.start)
    scale = geometry.scale
    unit = np.array([scale if column.length else 1.0 for column in columns])
    low = np.array([column.limits[0] for column in columns])
    high = np.array([column.limits[1] for column in columns])
    independent = list(cluster.columns)
    typical = float(regularity(geometry, start[None], unit, independent)[0])
    fallback = start if near is None else near
    # a few first, of which one soon closes (the common case), then larger batches with patience
    for count, iterations in ((8, 10), (32, 60), (128, 60)):
        if near is None:
            guesses = random_positions(geometry, columns, rng, count, scale)
            q, gap = newton.close(
                geometry, guesses, held=independent, rows=cluster.closing_rows,
                iterations=iterations,
            )  # fmt: skip
            loose = ~is_closed(geometry, q, gap)
            if np.all(loose):
                q, gap = newton.close(
                    geometry, guesses, rows=cluster.closing_rows, iterations=iterations
                )
        else:
            moves = rng.uniform(-NEAR, NEAR, (count, cluster.nv)) * unit[independent]
            q, gap = move(cluster, np.broadcast_to(near, (count, len(near))).copy(), moves)
        fine = is_closed(geometry, q, gap)
        fine &= regularity(geometry, q, unit, independent) >= REGULAR * max(typical, 0.05)
        if not np.any(fine):
            continue
        at = geometry.difference(np.broadcast_to(geometry.zero(), q.shape), q)
        inside = fine & np.all((at >= low - 1e-12) & (at <= high + 1e-12), axis=1)
        fallback = q[int(np.argmax(fine))]
        if np.any(inside):
            fallback = q[int(np.argmax(inside))]
            break
    polished, _ = newton.close(geometry, fallback[None], rows=cluster.closing_rows, iterations=3)
    result: Array = polished[0]
    return result
