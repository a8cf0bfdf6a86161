"""Configurations of a whole model: closed, integrated, at named positions; differences.

Each by fixed steps of compiled code where these do, then in strides, then damped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from robomodel import showing
from robomodel.arrays import Array, Mask
from robomodel.errors import ClosureError, UnknownNameError, did_you_mean, few, warn
from robomodel.mechanism import closure as newton
from robomodel.mechanism.closure import Geometry, Held, Joints, ToNearest
from robomodel.model.arguments import check_one_configuration, common_batch
from robomodel.model.configurations import functions
from robomodel.model.configurations.closing import long_ways, partly_independent
from robomodel.model.configurations.following import (
    CLOSELY,
    FOLLOWED,
    MOST_STRIDES,
    Failures,
    all_finite,
    damped,
    dead_point,
    follow,
    is_closed,
    not_closed,
    read,
    walk,
    widest,
)
from robomodel.model.configurations.functions import CLOSED_EVERY
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import (
    Cluster,
    columns_of,
    independent_rates,
    joint_slices,
    quaternions,
)
from robomodel.model.registry import method, method_named
from robomodel.tolerances import CLOSED, CONVERGED, NEARLY_CLOSED, NOTHING, SAME, SINGULAR, WITHIN

if TYPE_CHECKING:
    from robomodel.model.model import Model


# Newton steps that mostly suffice, and [rad, m] of the last if so
AT_ONCE, MOSTLY_CONVERGED = 3, 1e-12
MOST_MODES = 4  # ways to close that paths are looked for to
OTHER_MODE = "a guess in that mode gives it without this warning"
POLYNOMIAL_NEWTON = 50  # of joints that polynomials give: quadratic near a solution


@method
def close(model: Model, q: Array) -> Array:
    """The nearest closed configuration; rows of a batch that have none are not-a-number.

    By fixed steps where these do, else by the damped method.
    """
    nearest = functions.nearest(model)
    states = nearest(q, np.zeros((AT_ONCE, 1)), q)[..., -1, :]
    rows = ~(states[..., -1] < MOSTLY_CONVERGED)
    if np.any(rows):
        more = np.zeros((functions.NEAREST_ITERATIONS - AT_ONCE, 1))
        states[rows] = nearest(states[rows][..., : model.nq], more, q[rows])[..., -1, :]
    closed: Array = states[..., : model.nq].copy()
    bad = ~((states[..., -2] <= CLOSED) & (states[..., -1] < CONVERGED))
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
            closed, gap = newton.close(cluster.geometry, at, ToNearest(), rows=cluster.closing_rows)
            bad = ~is_closed(cluster, closed, gap)
            if np.any(bad):
                closed[bad], gap[bad] = newton.close(
                    cluster.geometry, at[bad], rows=cluster.closing_rows
                )
                bad = ~is_closed(cluster, closed, gap)
            failures.record(bad, partial(_left_open, cluster, closed, gap))
            q[..., cluster.q] = closed
    return failures.result(q, whole=False)


def _left_open(cluster: Cluster, q: Array, gap: Array, bad: Mask) -> ClosureError:
    worst = float(np.max(gap[bad]))
    if not math.isfinite(worst):
        return not_closed(cluster, worst, "where q is not finite")
    at = q[bad].reshape(-1, q.shape[-1])[int(np.argmax(gap[bad]))]
    several = len(cluster.geometry.names) > 1
    why = f"'{widest(cluster, at)}' is open widest" if several else ""
    return not_closed(cluster, worst, "from there", why)


@method
def integrate(model: Model, q: Array, dv: Array, *, whole: bool = False) -> Array:
    """Move along dv, loops closed; rows of a batch that cannot are not-a-number.

    ``whole``: raise the error of any row instead.
    """
    batch = common_batch(q=q, v_dt=dv)
    result: Array
    result, gap = functions.moved(model, FOLLOWED)(q, dv)
    met = gap <= CLOSED
    if not met.all():
        bad = ~met
        rows = bad if batch else ...
        q = np.broadcast_to(q, (*batch, model.nq))[rows]
        dv = np.broadcast_to(dv, (*batch, model.nv))[rows]
        ahead, gap = follow(model, q, dv)
        bad = ~(gap <= CLOSED)
        if np.any(bad):
            some = bad if batch else ...
            reached, failures = damped(model, q[some], dv[some], bad.size)
            ahead[some] = failures.result(reached, whole=whole)
        result[rows] = ahead
    return result


@method
def difference(model: Model, q0: Array, q1: Array) -> Array:
    """The argument with which integrate leads from q0 to q1."""
    common_batch(q0=q0, q1=q1)
    result: Array = functions.difference(model)(q0, q1)
    return result


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


@method_named("configuration")
def solve(
    model: Model,
    positions: Mapping[str, float | Sequence[float]],
    guess: Array,
    base_pose: Sequence[float] | None,
    *,
    other_modes: bool = True,
) -> Array:
    """The configuration with these joint positions, near the guess.

    ``other_modes``: linkages close in another assembly mode, with a warning, where they were found
    to in no other way; else that is an error.
    """
    check_one_configuration(guess, "guess")
    if base_pose is None and (known := _known(model, positions, guess)) is not None:
        return known
    named = _named_positions(model, positions, base_pose)
    q = guess.copy()
    for cluster in model.clusters:
        here = {body: named[body] for body in cluster.bodies if body in named}
        if here and not cluster.implicit:
            q[cluster.q] = _solve_explicit(model, cluster, here, q[cluster.q])
    linkages = [cluster for cluster in model.clusters if cluster.implicit]
    led = _led(model, linkages, named, q) if linkages else None
    for cluster in linkages:
        if led is None:
            here = {body: named[body] for body in cluster.bodies if body in named}
            q[cluster.q] = _solve_loops(model, cluster, here, q[cluster.q], other_modes)
        else:
            q[cluster.q] = led[cluster.q]
    failures = Failures(np.zeros((), dtype=bool))
    return failures.result(normalized(model, q, failures), whole=True)


@dataclass(frozen=True, eq=False)
class _Places:
    """Where joints of one freedom are: by name in the positions of all joints, and in q.

    ``held``: the place in q of each that q holds, ``of`` its place among all positions.
    """

    joints: dict[str, int]
    held: NDArray[np.intp]
    of: NDArray[np.intp]


@cached_on_model
def _places(model: Model) -> _Places:
    joints = {
        joint.name: node.q
        for joint, node in zip(model.joints, model.nodes, strict=True)
        if joint.nq == 1
    }
    held, of = [], []
    for cluster in model.clusters:
        for body, part, _ in joint_slices(model, cluster):
            if model.nodes[body].joint.nq == 1:
                held.append(cluster.q.start + part.start)
                of.append(model.nodes[body].q)
    return _Places(joints, np.array(held, dtype=np.intp), np.array(of, dtype=np.intp))


def _known(
    model: Model, positions: Mapping[str, float | Sequence[float]], guess: Array
) -> Array | None:
    """The configuration where all joints of one freedom that q holds have numbers that agree.

    None where some have not, where loops are open then, and for all that is to be refused.
    """
    places = _places(model)
    if len(positions) < len(places.held):
        return None
    given = np.full(model.n_joint_positions, np.nan)
    for name, value in positions.items():
        at = places.joints.get(name)
        number = isinstance(value, float | int) or (
            isinstance(value, np.ndarray) and not value.ndim and value.dtype.kind in "fiu"
        )
        if at is None or not number:
            return None
        given[at] = value
    q = guess.copy()
    q[places.held] = given[places.of]
    if np.isnan(q).any():
        return None
    found = functions.joint_positions(model)(q)
    off = np.abs(found - given)  # of joints that are not named not a number
    if np.any(off > SAME * np.maximum(1.0, np.abs(given))):
        return None
    closed: bool = functions.check(model, moving=False)(q)[0] <= CLOSED
    return q if closed else None


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


@dataclass(frozen=True)
class _Named:
    """Positions of joints in linkages as what shall be read: where in q, body, and position."""

    model: Model
    linkages: Sequence[Cluster]
    places: Sequence[tuple[slice, int, Array]]

    def lack(self, q: Array, rows: NDArray[np.intp]) -> Array:
        """The displacements (m, ·) that are missing."""
        parts = []
        for at, body, there in self.places:
            joint = self.model.nodes[body].joint
            parts.append(joint.difference(q[:, at], np.broadcast_to(there, (len(q), joint.nq))))
        return np.concatenate(parts, axis=1)

    def way(self, q: Array, lack: Array) -> Array:
        """The velocities (m, nv) of least norm, over all joints of the linkages."""
        model = self.model
        g = functions.constraint_jacobian(model)(q)
        v = [i for c in self.linkages for i in range(c.v.start, c.v.stop)]
        joints = [i for c in self.linkages for i in range(c.spanning_v.start, c.spanning_v.stop)]
        unit = np.concatenate([c.geometry.unit for c in self.linkages])
        wanted = [i for _, body, _ in self.places for i in model.nodes[body].freedoms]
        result = np.full((len(q), model.nv), np.nan)
        regular = np.isfinite(g).all(axis=(1, 2))
        g = g[regular]
        rates, rows = g[:, joints][..., v] / unit[:, None], g[:, wanted][..., v]
        factors = np.linalg.cholesky(np.swapaxes(rates, 1, 2) @ rates)  # over v, where G has ones
        rows = np.swapaxes(np.linalg.solve(factors, np.swapaxes(rows, 1, 2)), 1, 2)
        least = np.linalg.pinv(rows, rcond=SINGULAR) @ lack[regular][..., None]
        way = np.zeros((len(rows), model.nv))
        way[:, v] = np.linalg.solve(np.swapaxes(factors, 1, 2), least)[..., 0]
        result[regular] = way
        return result


def _led(
    model: Model, linkages: Sequence[Cluster], named: Mapping[int, Array], q: Array
) -> Array | None:
    """From a closed q by compiled strides to where the named joints of linkages shall be."""
    dv, straight = np.zeros(model.nv), True  # independent ones go straight there
    places: list[tuple[slice, int, Array]] = []
    for cluster in linkages:
        for body, part, along in joint_slices(model, cluster):
            if body not in named:
                continue
            at = slice(cluster.q.start + part.start, cluster.q.start + part.stop)
            places.append((at, body, named[body]))
            displacement = model.nodes[body].joint.difference(q[at], named[body])
            for column, x in zip(independent_rates(cluster, along), displacement, strict=True):
                if column is None:
                    straight = False
                else:
                    dv[column] = x
    if not functions.check(model, moving=False)(q)[0] <= NEARLY_CLOSED:
        return None
    if straight:
        reached, off = follow(model, q, dv)
    else:
        (reached,), (off,) = read(model, q[None], _Named(model, linkages, places), rescue=False)
    for at, _, there in places:
        reached[at] = there
    return reached if off <= CLOSED else None


def _solve_explicit(model: Model, cluster: Cluster, named: Mapping[int, Array], q: Array) -> Array:
    """The least change of independent positions that gives the named joints theirs.

    Independent ones that are named are as named. The others take one step of Newton's where
    couplings are linear; with polynomials several, from the guess.
    """
    first = model.nodes[cluster.bodies[0]].q
    names = [model.joints[body].name for body in named]
    if cluster.kind == "joint":
        return next(iter(named.values()))
    rows = [model.nodes[body].q - first + i for body, x in named.items() for i in range(len(x))]
    target = np.concatenate([*named.values()])
    solved: Array = q.copy()
    free = np.ones(len(q), dtype=bool)
    for body, part, _ in joint_slices(model, cluster):
        if body in named:
            solved[part], free[part] = named[body], False
    for _ in range(POLYNOMIAL_NEWTON if cluster.varies else 1):
        if not free.any():
            break
        values, slopes = _explicit_positions(cluster, solved)
        step = np.linalg.lstsq(slopes[rows][:, free], target - values[rows], rcond=NOTHING)[0]
        if cluster.varies:
            step /= max(1.0, float(np.max(np.abs(step))) / functions.LONGEST_STRIDE)
        solved[free] += step
    values, _ = _explicit_positions(cluster, solved)
    off = float(np.max(np.abs(values[rows] - target), initial=0.0))
    if not off <= SAME * max(1.0, float(np.max(np.abs(target)))):
        raise ValueError(f"the positions of {names} contradict their couplings by {off:.3g}")
    return solved


def _explicit_positions(cluster: Cluster, q: Array) -> tuple[Array, Array]:
    """Positions of an explicit cluster's joints, and their derivatives by its q.

    Each derivative is the linear coefficient of the positions as polynomials of an increment.
    """
    from numpy.polynomial import Polynomial

    at = q.tolist()
    values = np.array(cluster.constraint.positions(at))
    slopes = np.zeros((len(values), len(q)))
    for i, x in enumerate(at):
        moved = cluster.constraint.positions([*at[:i], Polynomial([x, 1.0]), *at[i + 1 :]])
        for row, y in zip(slopes, moved, strict=True):
            row[i] = y.coef[1] if isinstance(y, Polynomial) and len(y.coef) > 1 else 0.0
    return values, slopes


def _solve_loops(
    model: Model, cluster: Cluster, named: Mapping[int, Array], start: Array, other_modes: bool
) -> Array:
    """Close the loops with the named joints where they shall be, by the damped method.

    From a closed guess the named joints are moved there step by step, on its branch;
    where a loop opens before, and from a guess that is not closed, Newton starts at the target, and
    at last from configurations around it. Of what is found so, that counts first to which a path
    leads from a closed guess; another assembly mode is warned of.
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
    elsewhere: Array | None = None
    displacement = geometry.difference(start, target)
    displacement[others] = 0.0
    long = long_ways(cluster)
    longest = np.max(np.abs(displacement / long)[held], initial=0.0)
    strides = max(1, math.ceil(longest / CLOSED_EVERY))
    goals = [Joints(stay, start[None], displacement[None, stay])]
    # spins of rods, of which angles far from the start say little, go along where they cannot stay
    spins = {c for *_, own in partly_independent(model, cluster) for c in own if c not in held}
    if spins.intersection(stay):
        kept = [c for c in stay if c not in spins]
        goals.append(Joints(kept, start[None], displacement[None, kept]))
    closed = float(geometry.gap(start)) <= max(NEARLY_CLOSED, cluster.slack)
    for goal in goals if closed and strides <= MOST_STRIDES else ():
        walked = walk(cluster, goal.origin, goal, goal.way, strides)
        best, at = min(best, float(walked.gap[0])), walked.q
        opens = walked.share[0] < 1.0
        if not opens and is_closed(cluster, at, walked.gap)[0]:
            for body, value in named.items():
                link = geometry.links[body - cluster.bodies[0]]
                at[0, link.positions] = value
            at, gaps = newton.close(geometry, at, Held(goal.columns), rows=rows)
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
        tries, gaps = newton.close(geometry, guesses, Held(stay), rows=rows)
        fine = is_closed(cluster, tries, gaps)
        if np.any(fine):
            away = np.linalg.norm(geometry.difference(targets, tries), axis=1)
            order = np.argsort(np.where(fine, away, np.inf))[: np.count_nonzero(fine)]
            elsewhere = tries[order[0]] if elsewhere is None else elsewhere
            for q in _distinct(geometry, tries[order]) if opens else tries[order[:1]]:
                if not opens or showing.call("leads_to", model, cluster, start, q):
                    return np.asarray(q)
        best = min(best, float(np.min(gaps)))
    values = ", ".join(
        f"{model.joints[body].name} = {value.item() if value.size == 1 else value.tolist()}"
        for body, value in named.items()
    )
    if elsewhere is not None and other_modes:
        text = f"with {values} linkage '{cluster.name}' was found to close in another assembly mode"
        warn(RuntimeWarning(f"{text} alone, to which no path leads from the guess; {OTHER_MODE}"))
        return elsewhere
    why = _out_of_reach(model, cluster, named, goals[0], strides) if opens else ""
    if elsewhere is not None:
        why += f"{'; ' if why else ''}another assembly mode has what is wanted"
    raise not_closed(cluster, best, f"with {values}" if values else "from the guess", why)


def _distinct(geometry: Geometry, q: Array) -> Array:
    """Configurations (n, nq) without those that repeat one before, :data:`MOST_MODES` at most."""
    some: list[Array] = []
    for each in q:
        if all(np.max(np.abs(geometry.difference(x, each))) > NEARLY_CLOSED for x in some):
            some.append(each)
    return np.array(some[:MOST_MODES])


def _out_of_reach(
    model: Model, cluster: Cluster, named: Mapping[int, Array], goal: Joints, strides: int
) -> str:
    """How near named joints come on the straight way that opens the loops, and what ends it there.

    That is the first limit of any joint on the way, if the guess is within all, or else a dead
    point. Nothing is said where several positions contradict each other from the start.
    """
    geometry, limited = cluster.geometry, not _limit_met(model, cluster, goal.origin[0])

    def within(q: Array) -> Mask:
        return np.array([not (limited and _limit_met(model, cluster, x)) for x in q])

    walked = walk(cluster, goal.origin, goal, goal.way, strides, halvings=CLOSELY, within=within)
    if walked.share[0] == 1.0 or (not walked.share[0] and len(named) > 1):
        return ""
    end = limited and _limit_met(model, cluster, walked.beyond[0])
    end = end or dead_point(cluster, walked)
    wanted, reached = [], []
    for body, value in named.items():
        x = walked.q[0, geometry.links[body - cluster.bodies[0]].positions]
        wanted.append(f"'{model.joints[body].name}' = {_number(value)}")
        reached.append(_number(x))
    verb = "is" if len(wanted) == 1 else "are"
    text = (
        f"{', '.join(wanted)} {verb} out of reach: {', '.join(reached)} at the nearest on the way "
        f"from the guess, {end}"
    )
    columns = columns_of(model, cluster)
    names = {model.joints[body].name for body in named}
    held = [columns[i] for i in goal.columns if columns[i].joint not in names]
    if held:
        stay = f"{few([each.label for each in held])} {'stays' if len(held) == 1 else 'stay'}"
        text += f" while {stay}; rm.inverse_kinematics also moves what is not named"
    return text


def _limit_met(model: Model, cluster: Cluster, q: Array) -> str:
    """Which joint's limit is left at a cluster's q, in words; empty where none is."""
    for body, link in zip(cluster.bodies, cluster.geometry.links, strict=True):
        joint = model.joints[body]
        if joint.nv != 1 or joint.type == "continuous":
            continue
        x = float(q[link.q])
        if x < joint.lower - WITHIN or x > joint.upper + WITHIN:
            limit = joint.lower if x < joint.lower else joint.upper
            return f"where joint '{joint.name}' meets its limit {limit:.4g}"
    return ""


def _number(x: Array) -> str:
    """A position in words, to four digits."""
    digits = [f"{each:.4g}" for each in x.tolist()]
    return digits[0] if len(digits) == 1 else f"[{', '.join(digits)}]"
