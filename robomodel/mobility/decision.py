"""The mobility of a linkage that a file rounds, and the exact mechanism next to it.

With rounded numbers an overconstrained linkage cannot move exactly. Its rank is decided on paths of
finite length (*walks*, by numerical continuation): with the rank r of the linkage that was meant,
the other conditions stay open by no more than the rounding along a whole walk, and frames that move
by as little make them hold exactly. The rank at one configuration does not decide, since the
linkage may be singular there, or mobile to first order only; nor does the rank at configurations
far away, which may belong to other components.

Strides of :mod:`robomodel.mechanism.continuation` take the rank as known, keep all conditions to a
slack, and answer where a mechanism gets to. These walks take a rank on trial, keep the r
combinations U₁ᵀφ that are chosen anew at each point, and answer by how much the others open. They
come first: the rank of the former is their result.

All is in comparable units: lengths in the cluster's size, angles in radians. K = U diag(s) Vᵀ, and
U₁, U₂ are the first r columns of U and the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from robomodel.arrays import Array
from robomodel.mechanism.closure import Geometry
from robomodel.mechanism.compiled import CompiledGeometry, compiled
from robomodel.mechanism.constraints import OUTSIDE, BodyAnchor, Link, LoopCondition, Polynomial
from robomodel.mechanism.copies import images
from robomodel.mechanism.joints import Floating, Screw
from robomodel.mobility import ClusterProblem, largest, outside_limits
from robomodel.mobility.exploration import ROUNDED_CONDITION, NamelessProblem
from robomodel.mobility.points import Points, away, moved, onto_conditions
from robomodel.scalars import value_of
from robomodel.spatial import (
    ZERO,
    Mat,
    Transform,
    Vec,
    apply,
    factor,
    from_quaternion,
    matmul,
    plus,
)
from robomodel.tolerances import CLOSED, NOTHING, ROUNDING, TINY

LARGEST_ROUNDING = 3e-3  # [rad, sizes] what is more is no rounding: 0.2 degrees, 0.3 % of the size
CHAIN_ALONG = 30.0  # a chain of frames that are off by e each stays open by up to 10 e along a walk
BESIDE_THREADS = 0.1  # of an opening by threads of screws: what other numbers of the file may add
FIRST_ORDER, STRIDE = 0.3, 0.06  # [rad, sizes] far enough to show what holds to first order only
# of the search for the exact mechanism, which ends after rounds that gain nothing, too
MOST_POINTS, ROUNDS, STILL = 60, 60, 15
# [rad, sizes] how far walks that check it go, and the share of the least singular value that counts
# at which they end: assembly modes meet where there is none
FAR, REGULAR = 4.0, 0.2
# of the greatest singular value: less is what gaps change by at second order; gaps of rounding; and
# steps in such motions, in roots of the gap: smaller ones stay nearer to the file
WEAK, LEAST, ROOTS = 1e-4, 3e-15, 0.5


@dataclass(frozen=True, slots=True)
class Decision:
    """The rank of a cluster's conditions around the closed configuration next to the file's.

    Attributes:
        rank: The rank.
        q: That configuration (nq,).
        rounding: The file's rounding, as it shows there.
        gap: The largest gap of the conditions along the walks.
        frames: Small motions (frames, 7) [m, quaternion] of the frames of :class:`RoundedFrames`
            with which the conditions agree; None if none are needed or none were found.
        opens: The gap with one freedom more, if a condition with a small singular value takes it.
        letter: The rank with the file's numbers as they are, if a condition was left out whose
            singular value is as small as the rounding.
        kept: The least singular value of the conditions that count, along the walks.
    """

    rank: int
    q: Array
    rounding: float
    gap: float
    frames: Array | None = None
    opens: float | None = None
    letter: int | None = None
    kept: float = math.inf

    def slack(self, size: float) -> float:
        """The gap [m, or sine of an angle] that a cluster of this size may have.

        Zero if its conditions agree, or do so with the frames moved.
        """
        if self.frames is not None or self.gap <= CLOSED:
            return 0.0
        return max(1e-6, 3.0 * self.gap * max(1.0, size))


# ---- the frames of a mechanism -------------------------------------------------------------------


@dataclass(frozen=True)
class RoundedFrames:
    """The frames that a file rounds: of each joint on its parent, then of both ends of each loop.

    The derivatives P = dφ/dp by motions of a frame are the columns of a joint with six freedoms
    that is added in the frame, before the joint itself.
    """

    problem: ClusterProblem

    @cached_property
    def _freed(self) -> tuple[Geometry, list[int]]:
        """The geometry with these joints added, and the places of the others among its links."""
        geometry = self.problem.geometry
        links: list[Link] = []

        def add(link: Link) -> int:
            q, v = sum(x.joint.nq for x in links), sum(x.joint.nv for x in links)
            links.append(replace(link, q=q, v=v))
            return len(links) - 1

        number: list[int] = []

        def on(body: int) -> int:
            return OUTSIDE if body == OUTSIDE else number[body]

        for link in geometry.links:
            frame = add(replace(link, joint=Floating(), parent=on(link.parent)))
            number.append(add(Link(link.joint, (), ZERO, frame, 0, 0)))
        loops: list[LoopCondition] = []
        for loop in geometry.loop_joints:
            ends, branches = [], []
            for anchor, bodies in zip(
                (loop.predecessor, loop.successor), loop.branches, strict=True
            ):
                end = add(Link(Floating(), (), anchor.point, on(anchor.body), 0, 0))
                ends.append(BodyAnchor(end, ZERO, anchor.axes))
                passed = [i for body in bodies for i in (number[body] - 1, number[body])]
                branches.append((*passed, end))
            loops.append(replace(loop, predecessor=ends[0], successor=ends[1],
                                 branches=(branches[0], branches[1])))  # fmt: skip
        loops += [replace(x, joint=number[x.joint], of=number[x.of]) for x in geometry.polynomials]
        linear = [
            replace(x, terms=tuple((number[i], k) for i, k in x.terms)) for x in geometry.linear
        ]
        return Geometry(tuple(links), tuple(loops), tuple(linear)), number

    @cached_property
    def _places(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Places of the joints' positions and velocities, then of the added joints'."""
        geometry, number = self._freed
        joints = set(number)
        result: tuple[list[int], ...] = ([], [], [], [])
        for i, link in enumerate(geometry.links):
            at = 0 if i in joints else 2
            result[at].extend(range(link.q, link.q + link.joint.nq))
            result[at + 1].extend(link.freedoms)
        return result[0], result[1], result[2], result[3]

    @cached_property
    def unit(self) -> Array:
        """Units of the six motions of a frame."""
        return np.array([1.0, 1.0, 1.0] + [self.problem.scale] * 3)

    @property
    def still(self) -> Array:
        """The motions (frames, 7) of frames that do not move."""
        return np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (len(self._places[2]) // 7, 1))

    def derivatives(self, q: Array, frames: Array) -> Array:
        """P (..., rows, 6 frames) at positions (..., nq) of the joints, in comparable units."""
        positions, _, moved, columns = self._places
        full = np.empty((*q.shape[:-1], len(positions) + len(moved)))
        full[..., positions], full[..., moved] = q, frames.ravel()
        jacobian = self._freed[0].evaluate(full)[1][..., columns]
        units = np.tile(self.unit, len(frames))
        result: Array = jacobian * units * self.problem.row_unit[:, None]
        return result

    def after(self, frames: Array, step: Array) -> Array:
        """The frames moved by small motions (6 frames,), in comparable units."""
        return Floating().integrate(frames, step.reshape(-1, 6) * self.unit)

    def size(self, frames: Array) -> float:
        """The largest entry of the frames' motions, in comparable units."""
        return float(
            np.max(np.abs(Floating().difference(self.still, frames) / self.unit), initial=0.0)
        )

    def problem_at(self, frames: Array) -> ClusterProblem:
        """The problem with its frames moved."""
        geometry = self.problem.geometry
        links = []
        for link, frame in zip(geometry.links, frames, strict=False):
            turn, shift = pose_of(frame)
            old = Transform(link.rotations, link.offset)
            links.append(
                replace(link, rotations=factor(matmul(old.matrix(), turn)), offset=old.point(shift))
            )
        loops: list[LoopCondition] = []
        ends = iter(frames[len(links) :])
        for loop in geometry.loops:
            if isinstance(loop, Polynomial):
                loops.append(loop)
                continue
            moved = []
            for anchor in (loop.predecessor, loop.successor):
                turn, shift = pose_of(next(ends))
                axes = (
                    apply(turn, anchor.axes[0]),
                    apply(turn, anchor.axes[1]),
                    apply(turn, anchor.axes[2]),
                )
                moved.append(BodyAnchor(anchor.body, plus(anchor.point, shift), axes))
            loops.append(replace(loop, predecessor=moved[0], successor=moved[1]))
        exact = Geometry(tuple(links), tuple(loops), geometry.linear)
        is_compiled = isinstance(geometry, CompiledGeometry)
        return replace(self.problem, geometry=compiled(exact) if is_compiled else exact)


def pose_of(frame: Array) -> tuple[Mat, Vec]:
    """Rotation (rows) and translation of a frame's motion."""
    x, y, z, *quaternion = frame.tolist()
    return Transform((from_quaternion(*quaternion),), ZERO).matrix(), (x, y, z)


# ---- walks: continuation along the solutions -----------------------------------------------------


def least_open(problem: ClusterProblem, q: Array, steps: int = 60) -> tuple[Array, Array]:
    """Levenberg–Marquardt with μ = |φ| to least |φ|: configurations, and the largest gap of each.

    The method needs no full rank, and hardly moves in directions whose singular values are as small
    as φ (Yamashita and Fukushima, 2001; Fan and Yuan, 2005).
    """
    values, jacobian = problem.conditions(q)
    size, scale = np.linalg.norm(values, axis=1), np.ones(len(q))
    going = np.ones(len(q), dtype=bool)
    for _ in range(steps):
        norm = np.maximum(1.0, np.linalg.norm(jacobian, 2, axis=(1, 2)))
        matrix = np.swapaxes(jacobian, 1, 2) @ jacobian
        mu = scale * size * norm + 1e-15
        right = np.einsum("nij,ni->nj", jacobian, values)
        step = -np.linalg.solve(
            matrix + mu[:, None, None] * np.eye(matrix.shape[1]), right[..., None]
        )[..., 0]
        length = np.linalg.norm(step, axis=1)
        going &= (size >= 1e-15) & (length >= 1e-13) & (scale <= 1e12)
        if not np.any(going):
            break
        step *= np.minimum(1.0, 0.3 / np.maximum(length, TINY))[:, None]
        trial = moved(problem, q, step)
        trial_values, trial_jacobian = problem.conditions(trial)
        trial_size = np.linalg.norm(trial_values, axis=1)
        better = going & (trial_size < size)
        slow = better & (trial_size > 0.9 * size) & (length < 1e-4)
        q = np.where(better[:, None], trial, q)
        values = np.where(better[:, None], trial_values, values)
        jacobian = np.where(better[:, None, None], trial_jacobian, jacobian)
        size = np.where(better, trial_size, size)
        scale = np.where(better, np.maximum(scale / 4, 1e-6), scale * 8)
        going &= ~slow
    return q, np.max(np.abs(values), axis=1, initial=0.0)


@dataclass(frozen=True, slots=True)
class Walks:
    """Walks from one configuration.

    ``points`` (n, nq) are those of all walks. ``gaps`` and ``distance`` are the largest gap and the
    way at each point, walk by walk. ``kept``: the least singular value of the conditions that
    count. ``first``: each walk's first step.
    """

    points: Array
    gaps: tuple[Array, ...]
    distance: tuple[Array, ...]
    kept: float
    first: Array

    @property
    def largest(self) -> float:
        """The largest gap."""
        return max((float(np.max(x)) for x in self.gaps), default=0.0)

    @property
    def reached(self) -> float:
        """The length of the shortest walk."""
        return min((float(x[-1]) for x in self.distance), default=0.0)

    @property
    def worst(self) -> int:
        """The walk with the largest gap at its end."""
        return max(range(len(self.gaps)), key=lambda i: float(self.gaps[i][-1]))


def walks(
    problem: ClusterProblem,
    q: Array,
    rank: int,
    ahead: Array,
    far: float,
    stop: float = LARGEST_ROUNDING,
    regular: float = 0.0,
    long: float = STRIDE,
) -> Walks:
    """Walks from q (nq,) straight on in each direction (n, columns), on {U₁ᵀφ = 0} of this rank.

    A walk ends at the way ``far``, at a gap above ``stop``, where its steps do not converge, and
    where the least singular value that counts is below a ``regular`` share of that at q. Its
    strides are so ``long``, and shorter where they do not converge.
    """
    at, _ = onto_conditions(problem, np.tile(q, (len(ahead), 1)), rank)
    d = ahead / np.maximum(np.linalg.norm(ahead, axis=1, keepdims=True), TINY)
    n = len(ahead)
    gone, stride = np.zeros(n), np.full(n, long)
    points, gaps, distance = [at.q[:1]], [[x] for x in at.open], [[0.0] for _ in range(n)]
    kept = before = float(np.min(at.singular[:, rank - 1])) if rank else math.inf
    first = np.zeros_like(d)
    going = at.open <= stop
    while np.any(going):
        on = np.flatnonzero(going)
        null = at.null(rank)[on]
        along = np.einsum("nij,nkj,nk->ni", null, null, d[on])
        length = np.linalg.norm(along, axis=1)
        lost = length < 1e-3
        going[on[lost]] = False
        on, along, length = on[~lost], along[~lost], length[~lost]
        if not len(on):
            break
        along /= length[:, None]
        start = at.q[on]
        there, size = onto_conditions(
            problem, moved(problem, start, stride[on, None] * along), rank
        )
        step = away(problem, start, there.q)
        good = size < 1e-7
        good &= np.linalg.norm(step - stride[on, None] * along, axis=1) < 0.7 * stride[on]
        stride[on[~good]] /= 2
        going[on[stride[on] < long / 15]] = False
        for k in np.flatnonzero(good):
            i = int(on[k])
            if not first[i].any():
                first[i] = step[k]
            gone[i] += float(np.linalg.norm(step[k]))
            d[i], stride[i] = along[k], long
            for whole, part in (
                (at.q, there.q), (at.values, there.values), (at.left, there.left),
                (at.singular, there.singular), (at.right, there.right),
            ):  # fmt: skip
                whole[i] = part[k]
            points.append(there.q[k : k + 1])
            gaps[i].append(float(there.open[k]))
            distance[i].append(gone[i])
            kept = min(kept, float(there.singular[k, rank - 1])) if rank else kept
            weak = rank and there.singular[k, rank - 1] < regular * before
            if gone[i] >= far - 1e-9 or gaps[i][-1] > stop or weak:
                going[i] = False
    return Walks(
        np.concatenate(points),
        tuple(map(np.array, gaps)),
        tuple(map(np.array, distance)),
        kept,
        first,
    )


def directions(null: Array, rng: np.random.Generator, extra: int = 2) -> Array:
    """Sparse and random motions (n, columns) in the span of ``null``, each to and fro."""
    count = null.shape[1]
    projection = null @ null.T
    ways: list[Array] = []
    for i in np.argsort(-np.diag(projection)):
        size = math.sqrt(max(float(projection[i, i]), 0.0))
        if len(ways) < count and size > 0.03:
            way = projection[i] / size
            if all(abs(float(way @ other)) < 0.95 for other in ways):
                ways.append(way)
    for _ in range(max(extra, count - len(ways))):
        way = null @ rng.standard_normal(count)
        ways.append(way / np.linalg.norm(way))
    return np.array([side * way for way in ways for side in (1.0, -1.0)])


# ---- the decision --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of walks with one rank: the largest gap, the least singular value that counts."""

    accepted: bool
    gap: float
    kept: float
    frames: Array | None = None


def try_rank(
    problem: ClusterProblem,
    q: Array,
    rank: int,
    rounding: float,
    rng: np.random.Generator,
    *,
    mend: bool,
) -> Trial:
    """Walks of this rank from q (nq,), and, with ``mend``, the exact mechanism next to them."""
    start, _ = onto_conditions(problem, q[None], rank)
    ahead = directions(start.null(rank)[0], rng)
    seen = walks(problem, start.q[0], rank, ahead, FIRST_ORDER)
    gap, order = seen.largest, _growth(seen)
    limit = min(LARGEST_ROUNDING, max(100 * NOTHING, CHAIN_ALONG * rounding))
    if gap > limit or seen.reached < 0.3 * FIRST_ORDER or threads_open(problem, start, rank):
        return Trial(False, gap, seen.kept)
    if gap > 3 * rounding and order > 1.4:  # does it go on growing?
        further = walks(problem, start.q[0], rank, seen.first[seen.worst][None], 2 * FIRST_ORDER,
                        10 * LARGEST_ROUNDING)  # fmt: skip
        if further.gaps[0][-1] > 2.2 * gap or further.distance[0][-1] < 1.9 * FIRST_ORDER:
            return Trial(False, max(gap, further.largest), seen.kept)
    if not mend or gap <= NOTHING:
        return Trial(True, gap, seen.kept)
    frames, size, after = mended(problem, rank, seen, rng)
    if after <= CLOSED and size <= LARGEST_ROUNDING:
        return Trial(True, gap, seen.kept, frames)
    return Trial(gap <= 3 * rounding and order <= 1.2, gap, seen.kept)


def threads_open(problem: ClusterProblem, start: Points, rank: int) -> bool:
    """True if the threads of screws alone open a condition beyond this rank along a motion.

    Threads are no rounding, however fine: a hinge and a screw about one axis lock each other.
    """
    geometry = problem.geometry
    if not geometry.pitches:
        return False
    frames = RoundedFrames(problem)
    along = frames.derivatives(start.q[0], frames.still).reshape(geometry.rows, -1, 6)
    threads = np.zeros((geometry.rows, geometry.nv))
    for n, link in enumerate(geometry.links):
        if isinstance(link.joint, Screw):
            advance = value_of(link.joint.pitch) / problem.scale * problem.unit[link.v]
            threads[:, link.v] = advance * along[:, n, 3 + link.joint.k]
    null, left = start.null(rank)[0], start.left[0][:, rank:].T
    opening = left @ problem.conditions(start.q)[1][0] @ null
    others = opening - left @ threads @ null
    size = np.linalg.norm(opening)
    return bool(size > ROUNDING and np.linalg.norm(others) <= BESIDE_THREADS * size)


def _growth(seen: Walks) -> float:
    """The exponent with which gaps grow along the worst walk; 0 if they are too small to tell."""
    far, gaps = seen.distance[seen.worst], seen.gaps[seen.worst]
    shown = (far > 0.0) & (gaps > ROUNDING)
    if np.count_nonzero(shown) < 3:
        return 0.0
    return float(np.polyfit(np.log(far[shown]), np.log(gaps[shown]), 1)[0])


@lru_cache(maxsize=64)
def decision_on(nameless: NamelessProblem, *, mend: bool) -> Decision | None:
    """As :func:`decide`, kept for clusters that differ in names only, and for files read twice."""
    return decide(nameless.compiled, mend=mend)


def decide(problem: ClusterProblem, *, mend: bool = True) -> Decision | None:
    """The rank that the file means; None if no rank leaves motion, or the loops close nowhere.

    Ranks are tried from the least that singular values allow, that is, from the greatest mobility.
    The first counts whose walks stay as closed as the rounding explains. Then the condition with
    the least singular value is tried: it may come of rounding. Without it the mobility is one more,
    if the walks stay open by less than :data:`LARGEST_ROUNDING`. It is taken if the singular value
    is as small as the rounding.
    """
    rng = np.random.default_rng(20240609)
    decision = _first_rank(problem, rng, mend=mend)
    if decision is None or not decision.rank or decision.kept >= ROUNDED_CONDITION:
        return decision
    starts = decision.q, least_open(problem, problem.start[None])[0][0]
    for q in starts:
        loose = try_rank(problem, q, decision.rank - 1, LARGEST_ROUNDING, rng, mend=False)
        if not loose.accepted:
            continue
        least = problem.tolerance.rank * Points.at(problem, decision.q[None]).singular[0, 0]
        if decision.kept > max(CHAIN_ALONG * decision.rounding, float(least)):
            return replace(decision, opens=loose.gap)
        rank = decision.rank
        return Decision(rank - 1, q, decision.rounding, loose.gap, letter=rank, kept=loose.kept)
    return decision


class Decided(NamedTuple):
    """A problem with the decision on it."""

    problem: ClusterProblem
    decision: Decision


def decided_as(before: Decided, problem: ClusterProblem, *, mend: bool) -> Decision | None:
    """The decision on a copy of a problem's linkage: the same rank, if it passes the same trial.

    None if it is no copy, if the trial fails, or if a condition that counts may be rounding: then
    all ranks are to be tried. Frames are moved by what the copy's own numbers need.
    """
    rank, rng = before.decision.rank, np.random.default_rng(20261201)
    image = next(images(before.problem.geometry, problem.geometry), None)
    if image is None or before.decision.kept < ROUNDED_CONDITION:
        return None
    (q,), (gap,) = least_open(problem, image.positions(before.decision.q)[None])
    if gap > _most_open(problem):
        return None
    at = Points.at(problem, q[None]).singular[0]
    shown = max(_gap_at_start(problem, gap), float(gap), float(at[rank]), NOTHING)
    rounding = min(shown, LARGEST_ROUNDING)
    trial = try_rank(problem, q, rank, rounding, rng, mend=mend)
    if not trial.accepted or trial.kept < ROUNDED_CONDITION:
        return None
    return Decision(rank, q, rounding, trial.gap, trial.frames, kept=trial.kept)


def _most_open(problem: ClusterProblem) -> float:
    """The largest gap that may be a file's rounding, or that it states."""
    stated = problem.tolerance.gap / problem.scale if problem.tolerance.stated else math.inf
    return min(LARGEST_ROUNDING, stated)


def _next_to_start(problem: ClusterProblem, rng: np.random.Generator) -> tuple[Array, float] | None:
    """The closed configuration next to the start, and its gap; None if loops close nowhere.

    If it is outside the limits, the best closed one of those around that are within, if any is.
    """
    q, gaps = least_open(problem, problem.start[None])
    start, most = problem.start, _most_open(problem)
    if gaps[0] > most or outside_limits(problem, q, start)[0]:
        steps = rng.uniform(-1, 1, (30, len(problem.columns)))
        others, more = least_open(problem, moved(problem, np.tile(start, (30, 1)), steps))
        q, gaps = np.concatenate([q, others]), np.concatenate([gaps, more])
    outside = outside_limits(problem, q, start)
    best = min(range(len(q)), key=lambda i: (gaps[i] > most, outside[i], i > 0, gaps[i]))
    return None if gaps[best] > most else (q[best], float(gaps[best]))


def _gap_at_start(problem: ClusterProblem, closed: float) -> float:
    """The gap at the start; where that is no rounding, the one of the configuration next to it."""
    at_start = float(Points.at(problem, problem.start[None]).open[0])
    return at_start if at_start < LARGEST_ROUNDING else float(closed)


def _first_rank(
    problem: ClusterProblem, rng: np.random.Generator, *, mend: bool
) -> Decision | None:
    """The first rank that is accepted at the closed configuration next to the start."""
    columns = len(problem.columns)
    if (next_to_start := _next_to_start(problem, rng)) is None:
        return None
    q, gap = next_to_start
    before = _gap_at_start(problem, gap)
    singular = Points.at(problem, q[None]).singular[0]
    # singular values of 3 % of the largest are not rounding's
    low = int(np.sum(singular > 0.03 * largest(singular)))
    high = int(np.sum(singular > ROUNDING * largest(singular)))
    for rank in range(low, min(high, columns - 1) + 1):
        dropped = float(singular[rank])  # more than rounding is a condition, or a singular start
        shown = max(before, float(gap), dropped if dropped <= LARGEST_ROUNDING else 0.0, NOTHING)
        rounding = min(shown, LARGEST_ROUNDING)
        trial = try_rank(problem, q, rank, rounding, rng, mend=mend)
        if trial.accepted:
            return Decision(rank, q, rounding, trial.gap, trial.frames, kept=trial.kept)
        if rank == low and (found := _beside(problem, q, low, before, rng, mend=mend)):
            return found
    return None


def _beside(
    problem: ClusterProblem,
    q: Array,
    low: int,
    before: float,
    rng: np.random.Generator,
    *,
    mend: bool,
) -> Decision | None:
    """The decision at closed configurations beside a start that may be singular."""
    singular = Points.at(problem, q[None]).singular[0]
    last = min(problem.geometry.rows, len(problem.columns)) - 1
    seen = max(before, NOTHING, float(singular[last]))
    allowed = min(LARGEST_ROUNDING, max(100 * NOTHING, CHAIN_ALONG * seen))
    null = Points.at(problem, q[None]).null(low)[0]
    steps = np.array([null @ rng.standard_normal(null.shape[1]) for _ in range(6)])
    sizes = np.array([0.15 + 0.1 * (n % 3) for n in range(6)])
    steps *= (sizes / np.maximum(np.linalg.norm(steps, axis=1), TINY))[:, None]
    bases, gaps = least_open(problem, moved(problem, np.tile(q, (6, 1)), steps))
    far = np.linalg.norm(away(problem, np.tile(q, (6, 1)), bases), axis=1) > 0.05
    best: Decision | None = None
    for base, gap in zip(bases[far], gaps[far], strict=True):
        if gap > allowed:
            continue
        there = Points.at(problem, base[None]).singular[0]
        for rank in range(low, min(problem.geometry.rows + 1, len(problem.columns))):
            if there[rank] > allowed or (best is not None and rank >= best.rank):
                continue
            rounding = min(LARGEST_ROUNDING, max(before, float(gap), float(there[rank]), NOTHING))
            trial = try_rank(problem, base, rank, rounding, rng, mend=False)
            if trial.accepted:
                best = Decision(rank, base, rounding, trial.gap, kept=trial.kept)
                break
    if best is None or not mend:
        return best
    trial = try_rank(problem, best.q, best.rank, best.rounding, rng, mend=True)
    return replace(best, frames=trial.frames) if trial.accepted else None


# ---- the nearest exact mechanism -----------------------------------------------------------------


def mended(
    problem: ClusterProblem, rank: int, seen: Walks, rng: np.random.Generator
) -> tuple[Array, float, float]:
    """Motions of frames with which U₂ᵀφ = 0 along the walks; their size; the gap that is left.

    Gauss–Newton on the frames' motions δp: U₂ᵀ(φ + P δp) = 0 at all points, from which the joints'
    motions are eliminated by left null vectors; steps are those of least norm. Motions with small
    singular values change gaps at second order alone, as axes do that lean alike: they take part
    where the others have nothing left to close, by steps of the order of the gap's root
    (Levenberg–Marquardt). Further walks, through the range, check the result.
    """
    frames = RoundedFrames(problem)
    points, poses, before = seen.points, frames.still, math.inf
    for _ in range(10):
        chosen = np.linspace(0, len(points) - 1, min(MOST_POINTS, len(points))).astype(int)
        poses, left, points = _newton(frames, poses, rank, points[chosen])
        if left > 1e-6:
            break
        current = frames.problem_at(poses)
        start, _ = onto_conditions(current, points[-1:], rank)
        null = start.null(rank)[0]
        ahead = directions(null, rng, 1 if null.shape[1] > 1 else 0)[:6]
        long = STRIDE * len(ahead) / 2.0  # as many points, however many walks
        further = walks(current, start.q[0], rank, ahead, FAR, regular=REGULAR, long=long)
        left = max(left, further.largest)
        if left < ROUNDING or left > 0.8 * before:
            break
        before = left
        points = np.concatenate([points, further.points])
    return poses, frames.size(poses), left


def _triangle(rows: Array) -> Array:
    """R of the QR factors of a tall matrix: small, with the same singular values.

    It is computed part by part. Parts are so small that linear algebra does not spread them over
    threads, which would wait for each other on a busy processor.
    """
    triangle: Array = np.zeros((0, rows.shape[1]))
    # 40 rows at a time
    for part in np.array_split(rows, max(1, len(rows) // 40)):
        triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, part]), mode="r"))
    return triangle


def _newton(
    frames: RoundedFrames, poses: Array, rank: int, points: Array
) -> tuple[Array, float, Array]:
    """Motions of frames that close the conditions at all points; the gap left; the moved points."""
    best, last = (poses, math.inf), 0
    for n in range(ROUNDS):
        current = frames.problem_at(poses)
        at, _ = onto_conditions(current, points, rank, 6 if n else 2)
        points = at.q
        unmet = np.swapaxes(at.left[:, :, rank:], 1, 2)
        right = np.einsum("nij,nj->ni", unmet, at.values).ravel()
        left = float(np.max(np.abs(right), initial=0.0))
        last = n if left < 0.5 * best[1] else last
        if left < best[1]:
            best = poses, left
        if left < LEAST or n - last > STILL:
            break
        rows = (unmet @ frames.derivatives(points, poses)).reshape(len(right), -1)
        triangle = _triangle(np.column_stack([rows, right]))
        u, s, vt = np.linalg.svd(triangle[:, :-1], full_matrices=False)
        c = u.T @ triangle[:, -1]
        weak = s < WEAK * s[0]
        if np.linalg.norm(c[~weak]) > np.linalg.norm(c[weak]):
            step = -vt[~weak].T @ (c[~weak] / s[~weak])
        else:
            radius = ROOTS * math.sqrt(left)
            mu = (LEAST / radius) ** 2
            while True:
                step = -vt.T @ (s / (s**2 + mu) * c)
                if np.max(np.abs(step)) <= radius or mu >= s[0] ** 2:
                    break
                mu *= 4.0
        poses = frames.after(poses, step)
        if frames.size(poses) > 3 * LARGEST_ROUNDING:
            break
    return best[0], best[1], points
