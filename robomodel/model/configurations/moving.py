"""Configurations of a whole model: closed, integrated, with given positions; their differences.

Motions of loops are followed by numerical continuation: steps along the tangent that are small
enough to stay on the branch, each closed by Newton's method with the independent joints where they
shall be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from robomodel.errors import ClosureError, UnknownNameError, did_you_mean, warn
from robomodel.model import closure as newton
from robomodel.model.arguments import check_one_configuration, common_batch
from robomodel.model.closure import CLOSED, Geometry
from robomodel.model.configurations import functions
from robomodel.model.configurations.coordinates import joint_slices, quaternions
from robomodel.model.configurations.functions import STEP
from robomodel.model.elements import Cluster
from robomodel.model.joints import Array, Mask, Revolute
from robomodel.scalars import stack, unstack

if TYPE_CHECKING:
    from robomodel.model.model import Model

FOLLOWED = 4  # steps of Newton's that close the loops after a motion that is not long
STILL = 1e-10  # [rad, m] of the last step of those that come to the nearest configuration


def close(model: Model, q: Array) -> Array:
    """The nearest closed configuration; rows of a batch that have none are not-a-number.

    By fixed steps where these do, else by the damped method.
    """
    states = functions.nearest(model)(q, np.zeros((functions.ITERATIONS, 1)), q)[..., -1, :]
    closed: Array = states[..., : model.nq].copy()
    bad = ~((states[..., -2] <= newton.CLOSED) & (states[..., -1] < STILL))
    if np.any(bad):
        if not q.ndim > 1:
            return _close(model, q, 1)
        closed[bad] = _close(model, q[bad], bad.size)
    return closed


def _close(model: Model, q: Array, total: int) -> Array:
    """The same by the damped method."""
    failures = Failures(~all_finite(q), total)
    with np.errstate(all="ignore"):
        q = normalized(model, q, failures)
        for cluster in model.clusters:
            if not cluster.implicit:
                continue
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
            failures.record(bad, partial(_left_open, cluster, gap, "from there"))
            q[..., cluster.q] = closed
    return failures.result(q, whole=False)


def _left_open(cluster: Cluster, gap: Array, what: str, bad: Mask) -> ClosureError:
    worst = float(np.max(gap[bad]))
    return not_closed(cluster, worst, what if math.isfinite(worst) else "where q is not finite")


def integrate(model: Model, q: Array, dv: Array, *, whole: bool = False) -> Array:
    """Move along dv, loops closed; rows of a batch that cannot are not-a-number.

    ``whole``: raise the error of any row instead.
    """
    batch = common_batch(q=q, v_dt=dv)
    result: Array
    result, gap = functions.moved(model, FOLLOWED)(q, dv)
    bad = ~(gap <= newton.CLOSED)
    if np.any(bad):
        q = np.broadcast_to(q, (*batch, model.nq))
        dv = np.broadcast_to(dv, (*batch, model.nv))
        if not batch:
            return _integrate(model, q, dv, 1, whole=whole)
        result[bad] = _integrate(model, q[bad], dv[bad], bad.size, whole=whole)
    return result


def _integrate(model: Model, q: Array, dv: Array, total: int, *, whole: bool) -> Array:
    """The same in as many steps as it takes, each closed by the damped method."""
    q = q.copy()
    failures = Failures(~(all_finite(q) & all_finite(dv)), total)
    with np.errstate(all="ignore"):
        for cluster in model.clusters:
            own = q[..., cluster.q]
            if cluster.implicit:
                moved, gap = move(cluster, own, dv[..., cluster.v])
                bad = ~is_closed(cluster.geometry, moved, gap)
                failures.record(bad, partial(_not_followed, cluster, gap, dv[..., cluster.v]))
                q[..., cluster.q] = moved
                continue
            for body, at, along in joint_slices(model, cluster):
                own[..., at] = model.nodes[body].joint.integrate(own[..., at], dv[..., along])
            q[..., cluster.q] = own
    return failures.result(q, whole=whole)


def integrate_open(model: Model, q: Array, dv: Array) -> Array:
    """q (nq,) with its independent joints moved along dv, and the others of loops left behind.

    For what looks at independent joints alone, as :func:`difference` does: no loop is solved for.
    """
    q = q.copy()
    for cluster in model.clusters:
        own, along = q[cluster.q], dv[cluster.v]
        if cluster.implicit:
            motion = np.zeros(cluster.geometry.nv)
            motion[list(cluster.columns)] = along
            q[cluster.q] = cluster.geometry.integrate(own, motion)
            continue
        for body, at, part in joint_slices(model, cluster):
            q[cluster.q][at] = model.nodes[body].joint.integrate(own[at], dv[part])
    return q


def _not_followed(cluster: Cluster, gap: Array, dv: Array, bad: Mask) -> ClosureError:
    """Why a motion was not followed to its end."""
    worst = float(np.max(gap[bad]))
    if worst < np.inf:
        return not_closed(cluster, worst, "after this motion")
    far, most = float(np.max(np.abs(dv[bad]))), MOST * STEP
    why = (
        f"a motion by {far:.3g} (rad or m) is too long to be followed at once; go {most:g} at a "
        "time, or less"
        if most < far < math.inf
        else "q or the motion is not finite"
    )
    loops = ", ".join(f"'{name}'" for name in loop_names(cluster))
    return ClosureError(
        f"loops of cluster '{cluster.name}' ({loops}) cannot follow: {why}",
        worst,
        loop_names(cluster),
    )


def difference(model: Model, q0: Array, q1: Array) -> Array:
    """What integrate would need to lead from q0 to q1."""
    common_batch(q0=q0, q1=q1)
    result: Array = functions.difference(model)(q0, q1)
    return result


# ---- following a motion -------------------------------------------------------------------------


MOST = 2000  # closings on one way
FAR = 2 * math.pi  # whole turns are looked for in what is twice as long
PERIODIC = 1e-6  # gap that rounding may make of many turns, to be closed again


def is_closed(geometry: Geometry, q: Array, gap: Array) -> Mask:
    """Which configurations are closed, and not with an axis the wrong way round."""
    return (gap <= enough(q)) & np.isfinite(gap) & ~geometry.flipped(q)


def enough(q: Array, tolerance: float = CLOSED) -> Array:
    """The gap up to which configurations count as closed; it grows as their numbers' rounding."""
    return np.asarray(tolerance * np.maximum(1.0, np.max(np.abs(q), axis=-1, initial=0.0)))


def all_finite(x: Array) -> Mask:
    """Which rows hold nothing but numbers."""
    return np.asarray(np.isfinite(x).all(axis=-1))


def move(cluster: Cluster, q: Array, dv: Array) -> tuple[Array, Array]:
    """Move the independent columns by dv with the loops closed; the result and its largest gap.

    In steps small enough to stay on the branch; a gap on the way is a barrier, whatever is beyond.
    Rows that are not finite, or of which the way is too long to follow, have an infinite gap. Where
    one joint alone turns, and a turn of it comes back to where it began, whole turns are taken out.
    """
    batch = q.shape[:-1]
    at, dv = q.reshape(-1, q.shape[-1]).copy(), dv.reshape(-1, dv.shape[-1])
    origin, rest, gap = at.copy(), dv.copy(), np.full(len(at), np.inf)
    finite = all_finite(at) & all_finite(dv)
    _take_out_turns(cluster, at, rest, finite)
    steps = np.ceil(np.max(np.abs(rest), axis=1, initial=0.0) / STEP)
    rows = np.flatnonzero(finite & (steps <= MOST))
    if len(rows):
        begun = dv[rows] - rest[rows]
        count = max(1, int(np.max(steps[rows])))
        at[rows], gap[rows] = _follow(cluster, at[rows], origin[rows], begun, rest[rows], count)
    return at.reshape(*batch, at.shape[-1]), gap.reshape(batch)


def _follow(
    cluster: Cluster, q: Array, origin: Array, begun: Array, dv: Array, steps: int
) -> tuple[Array, Array]:
    """Rows moved by dv in so many steps; ``begun`` is how far q is from the origin already.

    A row that opens on its way stays where it does.
    """
    geometry = cluster.geometry
    q, gap, rows = q.copy(), np.zeros(len(q)), np.arange(len(q))
    for step in range(1, steps + 1):
        at = q[rows]
        scalars = unstack(at)
        g = cluster.constraint.jacobian(scalars)
        rate = stack([x for row in g for x in row], at.shape[:-1])
        rate = rate.reshape(*at.shape[:-1], len(g), cluster.nv)
        guess = np.einsum("...ij,...j->...i", rate, dv[rows] / steps)
        guess = np.where(np.abs(guess) < 1.0, guess, 0.0)  # at a singular start: let Newton find it
        q[rows], left = newton.close(
            geometry,
            geometry.integrate(at, guess),
            rows=cluster.closing_rows,
            wanted=(cluster.columns, origin[rows], begun[rows] + dv[rows] * (step / steps)),
        )
        gap[rows] = np.maximum(gap[rows], left)
        rows = rows[left <= enough(q[rows])]
        if not len(rows):
            break
    return q, gap


def _take_out_turns(cluster: Cluster, q: Array, dv: Array, finite: Mask) -> None:
    """Turn q on by the whole turns of dv, leaving the rest of it, in rows where that can be had.

    Where one turn leads back to a configuration that differs by turns of other joints only, so does
    each further one. The shifted configuration is closed then, but for what rounding has grown to.
    """
    geometry = cluster.geometry
    for n, column in enumerate(cluster.columns):
        if not _turns(geometry, column):
            continue
        others = np.delete(dv, n, axis=1)
        far = finite & (np.abs(dv[:, n]) > 2.0 * FAR) & np.all(others == 0.0, axis=1)
        rows = np.flatnonzero(far)
        if not len(rows):
            continue
        turn = np.zeros((len(rows), cluster.nv))
        turn[:, n] = np.copysign(2.0 * math.pi, dv[rows, n])
        count = int(np.ceil(2.0 * math.pi / STEP))
        start = q[rows]
        once, gap = _follow(cluster, start, start, np.zeros_like(turn), turn, count)
        turns = np.trunc(dv[rows, n] / turn[:, n])
        shifted = geometry.integrate(start, turns[:, None] * geometry.difference(start, once))
        fine = is_closed(geometry, once, gap) & (geometry.gap(shifted) <= PERIODIC)
        q[rows[fine]] = shifted[fine]
        dv[rows[fine]] -= (turns[:, None] * turn)[fine]


def _turns(geometry: Geometry, column: int) -> bool:
    """Whether a spanning velocity is that of a joint which turns about an axis."""
    joint = next(link.joint for link in geometry.links if link.v <= column < link.v + link.joint.nv)
    return isinstance(joint, Revolute)


# ---- configurations that cannot be had ----------------------------------------------------------


def loop_names(cluster: Cluster) -> tuple[str, ...]:
    """The names of a cluster's loops."""
    return tuple(loop.name for loop in cluster.geometry.loops)


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

    ``known`` are those that were not finite to begin with: their failing is no news. ``total``:
    how many configurations the batch has, where these are some of them.
    """

    known: Mask
    total: int | None = None
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
                f"{count} of {self.total or self.failed.size} configurations cannot be had and are "
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


# ---- given positions ----------------------------------------------------------------------------


def solve(
    model: Model,
    positions: Mapping[str, float | Sequence[float]],
    guess: Array,
    base_pose: Sequence[float] | None,
) -> Array:
    """The configuration with these joint positions, near the guess."""
    check_one_configuration(guess, "guess")
    index = {joint.name: i for i, joint in enumerate(model.joints)}
    given: dict[int, Array] = {}
    for name, value in positions.items():
        if name not in index:
            raise UnknownNameError(
                f"no joint '{name}' in '{model.name}'{did_you_mean(name, index)}"
            )
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
    failures = Failures(np.zeros((), dtype=bool))
    return failures.result(normalized(model, q, failures), whole=True)


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
            ahead = geometry.integrate(at, _tangent_motion(geometry, at, move, stay, rows))
            onwards = np.zeros(geometry.nv)
            onwards[held] = way * (step / steps)
            here = target if step == steps else geometry.integrate(start, onwards)
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
    raise not_closed(cluster, best, f"with {named}" if named else "from the guess")


def _tangent_motion(
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
