"""Configurations of a whole model: closed, integrated, at named positions, random; differences.

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
from numpy.polynomial import Polynomial

from robomodel.errors import ClosureError, UnknownNameError, did_you_mean, warn
from robomodel.model import closure as newton
from robomodel.model.arguments import check_one_configuration, common_batch
from robomodel.model.closure import CLOSED, Geometry
from robomodel.model.configurations import functions
from robomodel.model.configurations.closing import travel
from robomodel.model.configurations.functions import STEP
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster, columns_of, joint_slices, quaternions
from robomodel.model.joints import Array, Mask, Revolute
from robomodel.model.mobility import column_units
from robomodel.model.mobility.exploration import column_ranges, random_positions

if TYPE_CHECKING:
    from numpy.random import Generator

    from robomodel.model.model import Model


STRIDES = 64  # of a motion by fixed steps
FOLLOWED = 4  # Newton steps that close the loops after a short motion
AT_ONCE, SETTLED = 3, 1e-12  # Newton steps that mostly suffice, and [rad, m] of the last if so
NEWTON_STEPS = 50  # of joints that polynomials give: quadratic near a solution
STILL = 1e-10  # [rad, m] of the last step where iterations have converged


def close(model: Model, q: Array) -> Array:
    """The nearest closed configuration; rows of a batch that have none are not-a-number.

    By fixed steps where these do, else by the damped method.
    """
    nearest = functions.nearest(model)
    states = nearest(q, np.zeros((AT_ONCE, 1)), q)[..., -1, :]
    rows = ~(states[..., -1] < SETTLED)
    if np.any(rows):
        more = np.zeros((functions.ITERATIONS - AT_ONCE, 1))
        states[rows] = nearest(states[rows][..., : model.nq], more, q[rows])[..., -1, :]
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
            at = q[..., cluster.q]
            closed, gap = newton.close(
                cluster.geometry, at, rows=cluster.closing_rows, nearest=True
            )
            bad = ~is_closed(cluster, closed, gap)
            if np.any(bad):
                closed[bad], gap[bad] = newton.close(
                    cluster.geometry, at[bad], rows=cluster.closing_rows
                )
                bad = ~is_closed(cluster, closed, gap)
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
        rows = bad if batch else ...
        q = np.broadcast_to(q, (*batch, model.nq))[rows]
        dv = np.broadcast_to(dv, (*batch, model.nv))[rows]
        ahead, gap = follow(model, q, dv)
        bad = ~(gap <= newton.CLOSED)
        if not batch:
            return _integrate(model, q, dv, 1, whole=whole) if bad else ahead
        if np.any(bad):
            ahead[bad] = _integrate(model, q[bad], dv[bad], bad.size, whole=whole)
        result[rows] = ahead
    return result


def follow(model: Model, q: Array, dv: Array) -> tuple[Array, Array]:
    """q moved along dv in strides, and the worst gap: infinite where these do not suffice."""
    longest = np.zeros(q.shape[:-1])
    for cluster in model.clusters:
        if cluster.implicit:
            along = travel(cluster) * dv[..., cluster.v]
            longest = np.maximum(longest, np.linalg.norm(along, axis=-1))
    counts = np.maximum(1.0, np.ceil(1.001 / STEP * longest))
    counts = np.where(counts <= STRIDES, counts, 1.0)
    q, dv, gap = q.copy(), dv / counts[..., None], np.zeros(q.shape[:-1])
    for n in range(int(np.max(counts, initial=1.0))):
        rows = counts > n
        q[rows], opened = functions.moved(model, FOLLOWED)(q[rows], dv[rows])
        gap[rows] = np.maximum(gap[rows], opened)
    return q, gap


def _integrate(model: Model, q: Array, dv: Array, total: int, *, whole: bool) -> Array:
    """The same in as many steps as it takes, each closed by the damped method."""
    failures = Failures(~(all_finite(q) & all_finite(dv)), total)
    with np.errstate(all="ignore"):
        result = integrate_open(model, q, dv)
        for cluster in model.clusters:
            if cluster.implicit:
                motion = dv[..., cluster.v]
                moved, gap = move(cluster, q[..., cluster.q], motion)
                bad = ~is_closed(cluster, moved, gap)
                failures.record(bad, partial(_not_followed, cluster, gap, motion))
                result[..., cluster.q] = moved
    return failures.result(result, whole=whole)


def integrate_open(model: Model, q: Array, dv: Array) -> Array:
    """q (..., nq) with its independent joints moved along dv; the others of loops stay.

    For what looks at independent joints alone, as :func:`difference` does: no loop is solved for.
    """
    q = q.copy()
    for cluster in model.clusters:
        part, motion = q[..., cluster.q], dv[..., cluster.v]  # the former is a view
        if cluster.implicit:
            motion = np.zeros((*dv.shape[:-1], cluster.geometry.nv))
            motion[..., list(cluster.columns)] = dv[..., cluster.v]
        for body, at, along in joint_slices(model, cluster):
            joint = model.nodes[body].joint
            part[..., at] = joint.integrate(part[..., at], motion[..., along])
    return q


def _not_followed(cluster: Cluster, gap: Array, dv: Array, bad: Mask) -> ClosureError:
    worst = float(np.max(gap[bad]))
    if worst < np.inf:
        return not_closed(cluster, worst, "after this motion")
    units = travel(cluster)
    ways = np.max(np.abs(dv[bad]).reshape(-1, cluster.nv), axis=0)
    longest = int(np.argmax(units * ways))
    far, most = float(ways[longest]), float(MOST * STEP / units[longest])
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


MOST = 2000  # closings of one motion
FAR = 2 * math.pi  # whole turns are looked for in what is twice as long
PERIODIC = 1e-6  # gap that rounding may make of many turns, to be closed again


def is_closed(cluster: Cluster, q: Array, gap: Array) -> Mask:
    """Which positions of a cluster are closed, and not with an axis the wrong way round.

    ``gap``: of the conditions that close it; the others may be open by its slack.
    """
    geometry = cluster.geometry
    closed = (gap <= enough(q)) & np.isfinite(gap) & ~geometry.flipped(q)
    return closed & (geometry.gap(q) <= cluster.slack) if cluster.slack else closed


def enough(q: Array, tolerance: float = CLOSED) -> Array:
    """The gap up to which configurations count as closed; it grows as their numbers' rounding."""
    return np.asarray(tolerance * np.maximum(1.0, np.max(np.abs(q), axis=-1, initial=0.0)))


def all_finite(x: Array) -> Mask:
    """Which rows hold nothing but numbers."""
    return np.asarray(np.isfinite(x).all(axis=-1))


def move(cluster: Cluster, q: Array, dv: Array) -> tuple[Array, Array]:
    """Move the independent columns by dv with the loops closed; the result and its largest gap.

    In steps small enough to stay on the branch; a gap before the end counts, whatever is beyond it.
    Rows that are not finite, or whose motion is too long to follow, have an infinite gap. Where
    one joint alone turns, and a turn of it comes back to where it began, whole turns are skipped.
    """
    batch = q.shape[:-1]
    at, dv = q.reshape(-1, q.shape[-1]).copy(), dv.reshape(-1, dv.shape[-1])
    origin, motion, gap = at.copy(), dv.copy(), np.full(len(at), np.inf)
    finite = all_finite(at) & all_finite(dv)
    _skip_turns(cluster, at, motion, finite)
    along = np.abs(travel(cluster) * motion)
    steps = np.ceil(np.max(along, axis=1, initial=0.0) / STEP)
    rows = np.flatnonzero(finite & (steps <= MOST))
    if len(rows):
        begun = dv[rows] - motion[rows]
        count = max(1, int(np.max(steps[rows])))
        at[rows], gap[rows] = _follow(
            cluster, cluster.columns, at[rows], origin[rows], begun, motion[rows], count
        )
    return at.reshape(*batch, at.shape[-1]), gap.reshape(batch)


def _follow(
    cluster: Cluster,
    columns: Sequence[int],
    q: Array,
    origin: Array,
    begun: Array,
    dv: Array,
    steps: int,
) -> tuple[Array, Array]:
    """Rows whose ``columns`` move by dv in so many steps; they are ``begun`` from the origin.

    A row that opens stays where it does.
    """
    geometry, closing = cluster.geometry, list(cluster.closing_rows)
    free = [c for c in range(geometry.nv) if c not in set(columns)]
    looped = [free.index(c) for link in geometry.looped for c in link.freedoms if c in free]
    q, gap, rows = q.copy(), np.zeros(len(q)), np.arange(len(q))
    for step in range(1, steps + 1):
        jacobian = geometry.evaluate(q[rows])[1][:, closing]
        move = np.zeros((len(rows), geometry.nv))
        move[:, columns] = dv[rows] / steps
        inverse = np.linalg.pinv(jacobian[..., free], rcond=1e-6)
        along = -np.einsum("nij,njk,nk->ni", inverse, jacobian, move)
        longest = np.max(np.abs(along[:, looped]), axis=1, initial=0.0)
        move[:, free] = along * np.minimum(1.0, 0.5 / np.maximum(longest, 1e-300))[:, None]
        q[rows], opened = newton.close(
            geometry,
            geometry.integrate(q[rows], move),
            rows=closing,
            driven=(columns, origin[rows], begun[rows] + dv[rows] * (step / steps)),
        )
        gap[rows] = np.maximum(gap[rows], opened)
        rows = rows[opened <= enough(q[rows])]
        if not len(rows):
            break
    return q, gap


def _skip_turns(cluster: Cluster, q: Array, dv: Array, finite: Mask) -> None:
    """Turn q on by the whole turns of dv, and take them off dv, in rows where that is possible.

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
        once, gap = _follow(
            cluster, cluster.columns, start, start, np.zeros_like(turn), turn, count
        )
        turns = np.trunc(dv[rows, n] / turn[:, n])
        shifted = geometry.integrate(start, turns[:, None] * geometry.difference(start, once))
        fine = is_closed(cluster, once, gap) & (geometry.gap(shifted) <= PERIODIC)
        q[rows[fine]] = shifted[fine]
        dv[rows[fine]] -= (turns[:, None] * turn)[fine]


def _turns(geometry: Geometry, column: int) -> bool:
    """Whether a spanning velocity is that of a joint which turns about an axis."""
    joint = next(link.joint for link in geometry.links if link.v <= column < link.v + link.joint.nv)
    return isinstance(joint, Revolute)


# ---- failures ------------------------------------------------------------------------------------


def loop_names(cluster: Cluster) -> tuple[str, ...]:
    """The names of a cluster's loops."""
    return tuple(loop.name for loop in cluster.geometry.loops)


def not_closed(cluster: Cluster, gap: float, what: str, why: str = "") -> ClosureError:
    """The error that a cluster's loops do not close ``what`` (with, from, after …), by ``gap``."""
    loops = ", ".join(f"'{name}'" for name in loop_names(cluster))
    return ClosureError(
        f"loops of cluster '{cluster.name}' ({loops}) do not close {what}: residual {gap:.3g}"
        + (f"; {why}" if why else ""),
        gap,
        loop_names(cluster),
    )


@dataclass
class Failures:
    """The configurations of a batch that cannot be computed, and the error of the first of them.

    ``ignored`` were not finite to begin with and cause no warning. ``total``: how many
    configurations the batch has, where these are some of them.
    """

    ignored: Mask
    total: int | None = None
    failed: Mask = field(init=False)
    first: ValueError | None = None

    def __post_init__(self) -> None:
        self.failed = np.zeros_like(self.ignored)

    def record(self, bad: Mask, why: Callable[[Mask], ValueError]) -> None:
        """Record the bad ones; ``why`` makes the error of those that were finite, or of all."""
        finite = bad & ~self.ignored
        if self.first is None and np.any(bad) and (np.any(finite) or not bad.ndim):
            self.first = why(finite if np.any(finite) else bad)
        self.failed |= bad

    def result(self, q: Array, *, whole: bool) -> Array:
        """q, with failed rows of a batch not-a-number and a RuntimeWarning.

        Raises the error of a single configuration, and with ``whole`` that of any.
        """
        if not np.any(self.failed):
            return q
        if self.first is not None and (whole or not self.failed.ndim):
            raise self.first
        if self.first is not None:
            count = int(np.count_nonzero(self.failed & ~self.ignored))
            warn(RuntimeWarning(
                f"{count} of {self.total or self.failed.size} configurations cannot be closed and "
                f"are not-a-number: {self.first}"
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


# ---- named positions ----------------------------------------------------------------------------


NEARLY = 1e-7  # gap [m, sine of an angle] of guesses that count as closed
HALVINGS = 12  # of the last steps of a way that opens loops, and steps between them
LEFT = 1e-9  # [rad, m] beyond a limit that counts as left


def solve(
    model: Model,
    positions: Mapping[str, float | Sequence[float]],
    guess: Array,
    base_pose: Sequence[float] | None,
) -> Array:
    """The configuration with these joint positions, near the guess."""
    check_one_configuration(guess, "guess")
    named = _named_positions(model, positions, base_pose)
    q = guess.copy()
    for cluster in model.clusters:
        here = {body: named[body] for body in cluster.bodies if body in named}
        if here and not cluster.implicit:
            q[cluster.q] = _solve_explicit(model, cluster, here, q[cluster.q])
    linkages = [cluster for cluster in model.clusters if cluster.implicit]
    driven = _driven(model, linkages, named, q) if linkages else None
    for cluster in linkages:
        if driven is None:
            here = {body: named[body] for body in cluster.bodies if body in named}
            q[cluster.q] = _solve_loops(model, cluster, here, q[cluster.q])
        else:
            q[cluster.q] = driven[cluster.q]
    failures = Failures(np.zeros((), dtype=bool))
    return failures.result(normalized(model, q, failures), whole=True)


def _named_positions(
    model: Model,
    positions: Mapping[str, float | Sequence[float]],
    base_pose: Sequence[float] | None,
) -> dict[int, Array]:
    """Positions by body, checked."""
    index = {name: body for body, name in enumerate(model.joint_names)} if positions else {}
    named: dict[int, Array] = {}
    for name, value in positions.items():
        if name not in index:
            raise UnknownNameError(
                f"no joint '{name}' in '{model.name}'{did_you_mean(name, index)}"
            )
        body = index[name]
        nq = model.nodes[body].joint.nq
        entry = np.atleast_1d(np.asarray(value))
        real = entry.shape == (nq,) and entry.dtype.kind in "fiub"
        if not (real and np.all(np.isfinite(entry))):
            raise ValueError(f"joint '{name}' needs {nq} finite number(s), got {value!r}")
        named[body] = entry.astype(float)
    if base_pose is not None:
        if model.floating_base is None:
            raise ValueError(f"'{model.name}' has no floating base, so base_pose means nothing")
        pose = np.asarray(base_pose)
        real = pose.shape == (7,) and pose.dtype.kind in "fiub"
        if not (real and np.all(np.isfinite(pose))):
            raise ValueError("base_pose needs seven finite numbers: x y z qx qy qz qw")
        named[0] = pose.astype(float)
    return named


def _driven(
    model: Model, linkages: Sequence[Cluster], named: Mapping[int, Array], q: Array
) -> Array | None:
    """From a closed q by fixed steps, where all named joints of the linkages are independent."""
    dv, target = np.zeros(model.nv), q.copy()
    parts: list[slice] = []
    for cluster in linkages:
        for body, part, _ in joint_slices(model, cluster):
            if body not in named:
                continue
            node = model.nodes[body]
            at = slice(cluster.q.start + part.start, cluster.q.start + part.stop)
            target[at] = named[body]
            parts.append(at)
            displacement = node.joint.difference(q[at], named[body])
            for column, x in zip(node.freedoms, displacement, strict=True):
                index = column - cluster.spanning_v.start
                if index not in cluster.columns:
                    return None
                dv[cluster.v.start + cluster.columns.index(index)] = x
    if not functions.check(model, moving=False)(q)[0] <= NEARLY:
        return None
    reached, gap = follow(model, q, dv)
    for at in parts:
        reached[at] = target[at]
    return reached if gap <= CLOSED else None


def _solve_explicit(model: Model, cluster: Cluster, named: Mapping[int, Array], q: Array) -> Array:
    """The least change of independent positions that gives the named joints theirs.

    One step of Newton's where couplings are linear; with polynomials several, from the guess.
    """
    first = model.nodes[cluster.bodies[0]].q
    names = [model.joints[body].name for body in named]
    if cluster.kind == "joint":
        return next(iter(named.values()))
    rows = [model.nodes[body].q - first + i for body, x in named.items() for i in range(len(x))]
    target = np.concatenate([*named.values()])
    solved: Array = q
    for _ in range(NEWTON_STEPS if cluster.varies else 1):
        values, slopes = _explicit_positions(cluster, solved)
        step, _, _, _ = np.linalg.lstsq(slopes[rows], target - values[rows], rcond=1e-12)
        if cluster.varies:
            step /= max(1.0, float(np.max(np.abs(step))) / functions.LONGEST)
        solved = solved + step
    values, _ = _explicit_positions(cluster, solved)
    off = float(np.max(np.abs(values[rows] - target), initial=0.0))
    if not off <= 1e-9 * max(1.0, float(np.max(np.abs(target)))):
        raise ValueError(f"the positions of {names} contradict their couplings by {off:.3g}")
    return solved


def _explicit_positions(cluster: Cluster, q: Array) -> tuple[Array, Array]:
    """Positions of an explicit cluster's joints, and their derivatives by its q.

    Each derivative is the linear coefficient of the positions as polynomials of an increment.
    """
    at = q.tolist()
    values = np.array(cluster.constraint.positions(at))
    slopes = np.zeros((len(values), len(q)))
    for i, x in enumerate(at):
        moved = cluster.constraint.positions([*at[:i], Polynomial([x, 1.0]), *at[i + 1 :]])
        for row, y in zip(slopes, moved, strict=True):
            row[i] = y.coef[1] if isinstance(y, Polynomial) and len(y.coef) > 1 else 0.0
    return values, slopes


def _solve_loops(model: Model, cluster: Cluster, named: Mapping[int, Array], start: Array) -> Array:
    """Close the loops with the named joints where they shall be, by the damped method.

    From a closed guess the named joints are moved there step by step, on its branch;
    where a loop opens before, and from a guess that is not closed, Newton starts at the target, and
    at last from configurations around it.
    """
    geometry, rows = cluster.geometry, cluster.closing_rows
    target = start.copy()
    held: list[int] = []
    for body, value in named.items():
        link = geometry.links[body - cluster.bodies[0]]
        target[link.positions] = value
        held += link.freedoms
    # the other independent joints stay, unless a dependent one is named in their place
    others = [c for c in cluster.columns if c not in held]
    stay = held + others if len(held) + len(others) <= cluster.nv else held
    best, opens = np.inf, False
    displacement = geometry.difference(start, target)
    displacement[others] = 0.0
    steps = max(1, math.ceil(np.max(np.abs(displacement[held]), initial=0.0) / STEP))
    origin, dv = start[None], displacement[None, stay]
    if float(geometry.gap(start)) <= NEARLY and steps <= MOST:
        at, gaps = _follow(cluster, stay, origin, origin, np.zeros_like(dv), dv, steps)
        best = float(gaps[0])
        opens = not best <= enough(at[0])
        if is_closed(cluster, at, gaps)[0]:
            for body, value in named.items():
                link = geometry.links[body - cluster.bodies[0]]
                at[0, link.positions] = value
            at, gaps = newton.close(geometry, at, held=stay, rows=rows)
            if is_closed(cluster, at, gaps)[0]:
                return np.asarray(at[0])
    rng = np.random.default_rng(0)
    free = [c for c in range(geometry.nv) if c not in stay]
    for reach, count in ((0.0, 1), (0.5, 16), (1.5, 16), (3.0, 16)):
        scatter = np.zeros((count, geometry.nv))
        if reach:
            scatter[:, free] = rng.uniform(-reach, reach, (count, len(free)))
        targets = np.tile(target, (count, 1))
        guesses = geometry.integrate(targets, scatter)
        tries, gaps = newton.close(geometry, guesses, held=stay, rows=rows)
        fine = is_closed(cluster, tries, gaps)
        if np.any(fine):
            away = np.linalg.norm(geometry.difference(targets, tries), axis=1)
            return np.asarray(tries[int(np.argmin(np.where(fine, away, np.inf)))])
        best = min(best, float(np.min(gaps)))
    values = ", ".join(
        f"{model.joints[body].name} = {value.item() if value.size == 1 else value.tolist()}"
        for body, value in named.items()
    )
    why = _out_of_reach(model, cluster, named, stay, origin, dv, steps) if opens else ""
    raise not_closed(cluster, best, f"with {values}" if values else "from the guess", why)


def _out_of_reach(
    model: Model,
    cluster: Cluster,
    named: Mapping[int, Array],
    columns: Sequence[int],
    origin: Array,
    dv: Array,
    steps: int,
) -> str:
    """How near named joints come on the straight way that opens the loops, and what ends it there.

    That is the first limit of any joint on the way, if the guess is within all, or else a dead
    point. Nothing is said where several positions contradict each other from the start.
    """
    geometry, at, share, stride, end = cluster.geometry, origin, 0.0, 1.0 / steps, ""
    limited = not _limit_met(model, cluster, origin[0])
    for _ in range(steps + HALVINGS):
        ahead, gap = _follow(cluster, columns, at, origin, share * dv, stride * dv, 1)
        limit = _limit_met(model, cluster, ahead[0]) if limited else ""
        if is_closed(cluster, ahead, gap)[0] and not limit:
            at, share = ahead, share + stride
            continue
        values = np.abs(geometry.evaluate(ahead[0])[0])
        sizes = [len(loop.rows) for loop in geometry.loops] + [1] * len(geometry.linear)
        widest = np.repeat(geometry.names, sizes)[int(np.argmax(values))]
        end, stride = limit or f"a dead point of loop '{widest}'", 0.5 * stride
    if not end or (not share and len(named) > 1):
        return ""
    wanted, reached = [], []
    for body, value in named.items():
        x = at[0, geometry.links[body - cluster.bodies[0]].positions]
        wanted.append(f"'{model.joints[body].name}' = {_number(value)}")
        reached.append(_number(x))
    verb = "is" if len(wanted) == 1 else "are"
    return (
        f"{', '.join(wanted)} {verb} out of reach: {', '.join(reached)} at the nearest on the way "
        f"from the guess, {end}"
    )


def _limit_met(model: Model, cluster: Cluster, q: Array) -> str:
    """Which joint's limit is left at a cluster's q, in words; empty where none is."""
    for body, link in zip(cluster.bodies, cluster.geometry.links, strict=True):
        joint = model.joints[body]
        if joint.nv != 1 or joint.type == "continuous":
            continue
        x = float(q[link.q])
        if x < joint.lower - LEFT or x > joint.upper + LEFT:
            limit = joint.lower if x < joint.lower else joint.upper
            return f"where joint '{joint.name}' meets its limit {limit:.4g}"
    return ""


def _number(x: Array) -> str:
    """A position in words, to four digits."""
    digits = [f"{each:.4g}" for each in x.tolist()]
    return digits[0] if len(digits) == 1 else f"[{', '.join(digits)}]"


# ---- random configurations -----------------------------------------------------------------------


REGULAR = 5e-2  # random configurations keep 1/‖G‖ above this share of what is typical
FULL_RANK = 1e-4  # least singular value of K, of its largest, away from change points
NEAR = 0.3  # [rad, cluster sizes] of a departure
GUESSES = ((8, 1), (32, 32), (128, 128))  # a round's, of linkages and of other clusters
SAMPLE_STEPS = 12  # Newton steps, the last of which only polishes
WITHIN = 1e-12  # [rad, m] beyond a limit that is still within


@dataclass(frozen=True, slots=True)
class _SamplingRanges:
    """Ranges and units of each cluster's columns; least 1/‖G‖ (clusters), squared."""

    ranges: tuple[tuple[Array, Array], ...]
    units: tuple[Array, ...]
    regular: Array


@cached_on_model
def _sampling(model: Model) -> _SamplingRanges:
    ranges, units = [], []
    for cluster in model.clusters:
        columns = columns_of(model, cluster)
        scale = cluster.geometry.scale if cluster.implicit else 1.0
        ranges.append(column_ranges(columns, scale))
        units.append(column_units(columns, scale)[list(cluster.columns)])
    with np.errstate(all="ignore"):
        typical = 1.0 / _checked(model, model.neutral(), 1)[1][:, 2]
    typical = np.where(np.isfinite(typical), typical, 0.0)
    implicit = np.array([cluster.implicit for cluster in model.clusters])
    regular = np.where(implicit, REGULAR**2 * np.maximum(typical, 0.05**2), 0.0)
    return _SamplingRanges(tuple(ranges), tuple(units), regular)


def _checked(model: Model, q: Array, steps: int) -> tuple[Array, Array]:
    """Closed by so many steps; and the checks (..., clusters, 3) of :func:`functions.closing`."""
    states = functions.closing(model)(q, np.zeros((steps, 1)))[..., -1, :]
    checks = states[..., model.nq :]
    return states[..., : model.nq], checks.reshape(*checks.shape[:-1], len(model.clusters), 3)


def random_configuration(
    model: Model,
    rng: Generator,
    near: Array | None,
    clusters: Sequence[Cluster] | None = None,
    *,
    of_loops: bool = False,
) -> Array:
    """A closed configuration, away from singularities and within the limits where that can be.

    ``clusters``: only these are drawn; the others are as near it, or neutral. ``of_loops``: what
    is near counts at joints in loops, which motors geared to them may pass by their ratios.
    """
    if near is not None:
        check_one_configuration(near, "near")
    q = model.neutral() if near is None else near.copy()
    pending = list(model.clusters if clusters is None else clusters)
    with np.errstate(all="ignore"):
        for counts in GUESSES:
            if not pending:
                break
            if near is None:
                closed, checks = _anywhere(model, rng, pending, counts)
            else:
                closed, checks = _around(model, rng, pending, near, counts[0], of_loops)
            fine = (checks[..., 0] <= CLOSED) & (1.0 / checks[..., 2] >= _sampling(model).regular)
            best = fine & (checks[..., 1] <= WITHIN)
            for cluster in pending:
                rows = np.flatnonzero(fine[:, cluster.index])
                rows = rows[np.argsort(~best[rows, cluster.index], kind="stable")]
                for row in rows.tolist():
                    trial = q.copy()
                    trial[cluster.q] = closed[row, cluster.q]
                    if not _at_change_point(model, cluster, trial):
                        q = trial
                        break
                    best[row, cluster.index] = False
            pending = [cluster for cluster in pending if not np.any(best[:, cluster.index])]
    return q


def _at_change_point(model: Model, cluster: Cluster, q: Array) -> bool:
    """Whether a cluster's constraints lose rank at q (nq,): there G is not unique."""
    rank = cluster.geometry.nv - cluster.nv
    if not (cluster.implicit and rank):
        return False
    block = model.constraint_matrix(q)[:, cluster.spanning_v]
    values = np.linalg.svd(block, compute_uv=False)
    return bool(values[rank - 1] < FULL_RANK * values[0])


def _anywhere(
    model: Model, rng: Generator, clusters: Sequence[Cluster], counts: tuple[int, int]
) -> tuple[Array, Array]:
    """Configurations (n, nq) and their checks.

    Closed with independent joints where they are drawn, if any of a linkage's close so.
    """
    guesses = np.empty((counts[0], model.nq))
    guesses[:] = model.neutral()
    for cluster in clusters:
        geometry, count = cluster.geometry, counts[0 if cluster.implicit else 1]
        drawn = random_positions(geometry, _sampling(model).ranges[cluster.index], rng, count)
        if cluster.implicit:
            guesses[:, cluster.q] = drawn
            continue
        for body, part, _ in joint_slices(model, cluster):
            link = geometry.links[body - cluster.bodies[0]]
            guesses[:, cluster.q][:, part] = drawn[:, link.positions]
    linkages = [cluster for cluster in clusters if cluster.implicit]
    closed, checks = _checked(model, guesses, SAMPLE_STEPS if linkages else 1)
    gaps = checks[..., 0]
    open_ = [c for c in linkages if not (gaps[:, c.index] <= CLOSED).any()]
    for cluster in open_:
        at, gap = newton.close(cluster.geometry, guesses[:, cluster.q], rows=cluster.closing_rows)
        at[~is_closed(cluster, at, gap)] = np.nan
        closed[:, cluster.q] = at
    return _checked(model, closed, 1) if open_ else (closed, checks)


def _around(
    model: Model,
    rng: Generator,
    clusters: Sequence[Cluster],
    near: Array,
    count: int,
    of_loops: bool,
) -> tuple[Array, Array]:
    """The same of motions by up to ``NEAR`` from there, on its branch."""
    moves = np.zeros((count, model.nv))
    for cluster in clusters:
        unit = _sampling(model).units[cluster.index]
        way = travel(cluster)
        unit = unit / (way if of_loops else np.maximum(way, 1.0))  # or v moves no further
        moves[:, cluster.v] = rng.uniform(-NEAR, NEAR, (count, cluster.nv)) * unit
    reached, gap = follow(model, np.broadcast_to(near, (count, model.nq)), moves)
    fine = np.repeat((gap <= CLOSED)[:, None], len(model.clusters), axis=1)
    if not fine.any():
        fine[:] = True
        for cluster in clusters:
            if cluster.implicit:
                start = np.tile(near[cluster.q], (count, 1))
                at, opened = move(cluster, start, moves[:, cluster.v])
                reached[:, cluster.q] = at
                fine[:, cluster.index] = is_closed(cluster, at, opened)
    closed, checks = _checked(model, reached, 1)
    checks[~fine] = np.nan
    return closed, checks
