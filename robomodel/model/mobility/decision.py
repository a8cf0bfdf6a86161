"""The mobility that a rounded file means, and the exact mechanism next to it.

A file that rounds the numbers of an overconstrained linkage cannot move to the letter. Its rank is
decided on walks of finite length: with the rank r of the linkage that was meant, the conditions
that are left over stay open by no more than the rounding all along, and frames that move by as
little make them hold exactly. Rank at one configuration decides nothing, since linkages may be
singular, or mobile to first order only, where the file has them; nor does rank at configurations
far away, which may be other components.

In comparable units: lengths by the cluster's size, angles in radians. K = U diag(s) Vᵀ, and
U₁, U₂ are U's first r columns and the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robomodel.model.closure import Geometry
from robomodel.model.constraints import OUTSIDE, BodyAnchor, Link, LoopCondition, Polynomial
from robomodel.model.joints import Array, Floating, Mask
from robomodel.model.mobility import ClusterProblem
from robomodel.model.mobility.exploration import outside_limits
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
from robomodel.tolerances import CLOSED, NOTHING

LARGEST = 3e-3  # [rad, sizes] what is more is no rounding: 0.2 degrees, 0.3 % of the size
ALONG = 30.0  # a chain of frames that are off by e each stays open by up to 10 e along a walk
FAR, STRIDE = 0.3, 0.06  # [rad, sizes] far enough to show what holds to first order only
CLEAR = 0.03  # singular values above this share of the largest are not rounding's
WEAK = 1e-3  # singular value of a condition that may be rounding's
EXACT = 1e-10  # [rad, sizes] that a mended mechanism may leave open along its walks
MOST_POINTS, ROUNDS = 60, 40  # of the search for the exact mechanism
PART = 40  # rows of a matrix that are factored at a time
SEED = 20240609


@dataclass(frozen=True, slots=True)
class Decision:
    """The rank of a cluster's conditions around the configuration q (nq,) that its file means.

    ``rounding``: of the file, as it shows there; ``left``: what stays open along the walks.
    ``frames`` (frames, 7): small motions [m, quaternion] of the frames of :class:`Frames` that make
    the conditions agree; None where none are needed or none were seen. ``opens``: what one more
    freedom would leave open, where a condition that takes it hardly counts. ``letter``: the rank to
    the letter, where such a condition is as small as the file's rounding and was left out.
    ``kept``: the least singular value of what is kept, along the walks.
    """

    rank: int
    q: Array
    rounding: float
    left: float
    frames: Array | None = None
    opens: float | None = None
    letter: int | None = None
    kept: float = math.inf

    def slack(self, size: float) -> float:
        """How far [m, or sine of an angle] configurations of a cluster of this size may be open.

        Zero where its conditions agree, or do so with the frames moved.
        """
        if self.frames is not None or self.left <= CLOSED:
            return 0.0
        return max(1e-6, 3.0 * self.left * max(1.0, size))


# ---- the frames of a mechanism -------------------------------------------------------------------


@dataclass(frozen=True)
class Frames:
    """The frames that a file rounds: of each joint on its parent, then of both ends of each loop.

    A frame's columns of P = dφ/dp are those of a joint with six freedoms that stands in it, before
    the joint itself.
    """

    problem: ClusterProblem

    @cached_property
    def _freed(self) -> tuple[Geometry, list[int]]:
        """The geometry with those joints, and the numbers of the joints of old among its links."""
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
        """Positions and velocities of the joints, then those of the frames, when all are freed."""
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
        """Scaling of the columns of one frame."""
        return np.array([1.0, 1.0, 1.0] + [self.problem.scale] * 3)

    @property
    def still(self) -> Array:
        """Frames where the file has them (frames, 7)."""
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
        """By how much the frames moved at most, in comparable units."""
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
        return replace(
            self.problem, geometry=replace(geometry, links=tuple(links), loops=tuple(loops))
        )


def pose_of(frame: Array) -> tuple[Mat, Vec]:
    """Rotation (rows) and translation of a frame's motion."""
    x, y, z, *quaternion = frame.tolist()
    return Transform((from_quaternion(*quaternion),), ZERO).matrix(), (x, y, z)


# ---- walks on the valley -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Points:
    """Configurations (n, nq) with their conditions: values, U, s and Vᵀ."""

    q: Array
    values: Array
    left: Array
    singular: Array
    right: Array

    @staticmethod
    def at(problem: ClusterProblem, q: Array) -> Points:
        """The conditions there; singular values are filled up with zeros to one a column."""
        values, jacobian = problem.conditions(q)
        left, s, right = np.linalg.svd(jacobian, full_matrices=True)
        singular = np.zeros((len(q), jacobian.shape[2]))
        singular[:, : s.shape[1]] = s
        return Points(q, values, left, singular, right)

    def __getitem__(self, rows: Mask | Sequence[int]) -> Points:
        return Points(
            self.q[rows], self.values[rows], self.left[rows], self.singular[rows], self.right[rows]
        )

    @property
    def open(self) -> Array:
        """The largest value of each."""
        largest: Array = np.max(np.abs(self.values), axis=1, initial=0.0)
        return largest

    def null(self, rank: int) -> Array:
        """V₂ (n, columns, mobility)."""
        return np.swapaxes(self.right[:, rank:], 1, 2)


def moved(problem: ClusterProblem, q: Array, step: Array) -> Array:
    """Configurations after steps in comparable units."""
    there: Array = problem.geometry.integrate(q, step * problem.unit)
    return there


def away(problem: ClusterProblem, q0: Array, q1: Array) -> Array:
    """The steps from one to the other, in comparable units."""
    steps: Array = problem.geometry.difference(q0, q1) / problem.unit
    return steps


def onto_conditions(
    problem: ClusterProblem, q: Array, rank: int, steps: int = 25
) -> tuple[Points, Array]:
    """Gauss–Newton of this rank onto {U₁ᵀφ = 0}, and the size of the last steps."""
    for n in range(steps + 1):
        at = Points.at(problem, q)
        c = np.einsum("nij,ni->nj", at.left[:, :, :rank], at.values)
        s = at.singular[:, :rank]
        damping = (1e-3 * np.linalg.norm(c, axis=1, keepdims=True)) ** 2 + 1e-28
        step = -np.einsum("nij,ni->nj", at.right[:, :rank], c * s / (s**2 + damping))
        size = np.linalg.norm(step, axis=1)
        if n == steps or np.all(size < 1e-14) or (n > 4 and np.all(size < 1e-9)):
            break
        q = moved(problem, q, step * np.minimum(1.0, 0.25 / np.maximum(size, 1e-300))[:, None])
    return at, size


def valley(problem: ClusterProblem, q: Array, steps: int = 60) -> tuple[Array, Array]:
    """Levenberg–Marquardt with μ = |φ| to where the conditions are least open; q, the largest left.

    It needs no full rank, and hardly moves along directions whose singular values are as small as
    what is open, so that it does not creep along the valley (Yamashita and Fukushima, 2001; Fan and
    Yuan, 2005).
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
        step *= np.minimum(1.0, 0.3 / np.maximum(length, 1e-300))[:, None]
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
    """Walks from one configuration: all points, what is open and how far away, walk by walk."""

    points: Array
    left: tuple[Array, ...]
    distance: tuple[Array, ...]
    kept: float
    first: Array

    @property
    def largest(self) -> float:
        """What is open at most."""
        return max((float(np.max(x)) for x in self.left), default=0.0)

    @property
    def reached(self) -> float:
        """How far all of them went."""
        return min((float(x[-1]) for x in self.distance), default=0.0)


def walks(
    problem: ClusterProblem, q: Array, rank: int, ahead: Array, far: float, stop: float = LARGEST
) -> Walks:
    """From q (nq,) straight on along each direction (n, columns) on the valley of this rank."""
    at, _ = onto_conditions(problem, np.tile(q, (len(ahead), 1)), rank)
    d = ahead / np.maximum(np.linalg.norm(ahead, axis=1, keepdims=True), 1e-300)
    n = len(ahead)
    gone, stride = np.zeros(n), np.full(n, STRIDE)
    points, left, distance = [at.q[:1]], [[x] for x in at.open], [[0.0] for _ in range(n)]
    kept = float(np.min(at.singular[:, rank - 1])) if rank else math.inf
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
        going[on[stride[on] < STRIDE / 15]] = False
        for k in np.flatnonzero(good):
            i = int(on[k])
            if not first[i].any():
                first[i] = step[k]
            gone[i] += float(np.linalg.norm(step[k]))
            d[i], stride[i] = along[k], STRIDE
            for whole, part in (
                (at.q, there.q), (at.values, there.values), (at.left, there.left),
                (at.singular, there.singular), (at.right, there.right),
            ):  # fmt: skip
                whole[i] = part[k]
            points.append(there.q[k : k + 1])
            left[i].append(float(there.open[k]))
            distance[i].append(gone[i])
            kept = min(kept, float(there.singular[k, rank - 1])) if rank else kept
            if gone[i] >= far - 1e-9 or left[i][-1] > stop:
                going[i] = False
    return Walks(
        np.concatenate(points),
        tuple(map(np.array, left)),
        tuple(map(np.array, distance)),
        kept,
        first,
    )


def directions(null: Array, rng: np.random.Generator, extra: int = 2) -> Array:
    """Motions (n, columns), to and fro, in the span of these columns: sparse and random ones."""
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
    """What walks with one rank showed."""

    accepted: bool
    left: float
    kept: float
    frames: Array | None = None


def tried(
    problem: ClusterProblem,
    q: Array,
    rank: int,
    rounding: float,
    rng: np.random.Generator,
    *,
    mend: bool,
) -> Trial:
    """Walks of this rank from q (nq,), and the exact mechanism next to them."""
    start, _ = onto_conditions(problem, q[None], rank)
    ahead = directions(start.null(rank)[0], rng)
    seen = walks(problem, start.q[0], rank, ahead, FAR)
    left, order = seen.largest, _growth(seen)
    limit = min(LARGEST, max(100 * NOTHING, ALONG * rounding))
    if left > limit or seen.reached < 0.3 * FAR:
        return Trial(False, left, seen.kept)
    if left > 3 * rounding and order > 1.4:  # does it go on growing?
        worst = max(range(len(seen.left)), key=lambda i: float(seen.left[i][-1]))
        further = walks(problem, start.q[0], rank, seen.first[worst][None], 2 * FAR, 10 * LARGEST)
        if further.left[0][-1] > 2.2 * left or further.distance[0][-1] < 1.9 * FAR:
            return Trial(False, max(left, further.largest), seen.kept)
    if not mend or left <= NOTHING:
        return Trial(True, left, seen.kept)
    frames, size, after = mended(problem, rank, seen, rng)
    if after <= EXACT and size <= LARGEST:
        return Trial(True, left, seen.kept, frames)
    return Trial(left <= 3 * rounding and order <= 1.2, left, seen.kept)


def _growth(seen: Walks) -> float:
    """The exponent with which what is open grows along the worst walk; 0 where it does not show."""
    worst = max(range(len(seen.left)), key=lambda i: float(seen.left[i][-1]))
    far, left = seen.distance[worst], seen.left[worst]
    shown = (far > 0.0) & (left > 1e-13)
    if np.count_nonzero(shown) < 3:
        return 0.0
    return float(np.polyfit(np.log(far[shown]), np.log(left[shown]), 1)[0])


def decide(problem: ClusterProblem, *, mend: bool = True) -> Decision | None:
    """The rank that the file means; None where none leaves motion, or the loops close nowhere.

    Ranks are tried from the least that singular values allow: the first whose walks stay open by no
    more than rounding explains counts, that is, the greatest mobility. A condition that hardly
    counts may be rounding's. Without it the mobility is one more, if its walks stay open by less
    than :data:`LARGEST`: that is taken where its singular value is as small as rounding.
    """
    rng = np.random.default_rng(SEED)
    decision = _first_rank(problem, rng, mend=mend)
    if decision is None or not decision.rank or decision.kept >= WEAK:
        return decision
    starts = decision.q, valley(problem, problem.start[None])[0][0]
    for q in starts:
        loose = tried(problem, q, decision.rank - 1, LARGEST, rng, mend=False)
        if not loose.accepted:
            continue
        if decision.kept > max(ALONG * decision.rounding, problem.tolerance.rank):
            return replace(decision, opens=loose.left)
        rank = decision.rank
        return Decision(rank - 1, q, decision.rounding, loose.left, letter=rank, kept=loose.kept)
    return decision


def _first_rank(
    problem: ClusterProblem, rng: np.random.Generator, *, mend: bool
) -> Decision | None:
    columns = len(problem.columns)
    (q, *_), (left, *_) = valley(problem, problem.start[None])
    if left > LARGEST:
        guesses = moved(problem, np.tile(problem.start, (30, 1)), rng.uniform(-1, 1, (30, columns)))
        others, open_ = valley(problem, guesses)
        best = int(np.argmin(open_))
        if open_[best] > LARGEST:
            return None
        q, left = others[best], open_[best]
    if bool(outside_limits(problem, q[None], problem.start)[0]):
        return None  # it closes where its joints may not be
    if problem.tolerance.stated and left > problem.tolerance.gap / problem.scale:
        return None
    at_start = float(Points.at(problem, problem.start[None]).open[0])
    before = at_start if at_start < LARGEST else float(left)
    singular = Points.at(problem, q[None]).singular[0]
    low = int(np.sum(singular > CLEAR * singular[0]))
    high = int(np.sum(singular > 1e-13 * singular[0]))
    for rank in range(low, min(high, columns - 1) + 1):
        dropped = float(singular[rank])  # more than rounding is a condition, or a singular start
        shown = max(before, float(left), dropped if dropped <= LARGEST else 0.0, NOTHING)
        rounding = min(shown, LARGEST)
        trial = tried(problem, q, rank, rounding, rng, mend=mend)
        if trial.accepted:
            return Decision(rank, q, rounding, trial.left, trial.frames, kept=trial.kept)
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
    """The decision at closed configurations next to a start that may be singular."""
    singular = Points.at(problem, q[None]).singular[0]
    last = min(problem.geometry.rows, len(problem.columns)) - 1
    seen = max(before, NOTHING, float(singular[last]))
    allowed = min(LARGEST, max(100 * NOTHING, ALONG * seen))
    null = Points.at(problem, q[None]).null(low)[0]
    steps = np.array([null @ rng.standard_normal(null.shape[1]) for _ in range(6)])
    sizes = np.array([0.15 + 0.1 * (n % 3) for n in range(6)])
    steps *= (sizes / np.maximum(np.linalg.norm(steps, axis=1), 1e-300))[:, None]
    bases, left = valley(problem, moved(problem, np.tile(q, (6, 1)), steps))
    far = np.linalg.norm(away(problem, np.tile(q, (6, 1)), bases), axis=1) > 0.05
    best: Decision | None = None
    for base, open_ in zip(bases[far], left[far], strict=True):
        if open_ > allowed:
            continue
        there = Points.at(problem, base[None]).singular[0]
        for rank in range(low, min(problem.geometry.rows + 1, len(problem.columns))):
            if there[rank] > allowed or (best is not None and rank >= best.rank):
                continue
            rounding = min(LARGEST, max(before, float(open_), float(there[rank]), NOTHING))
            trial = tried(problem, base, rank, rounding, rng, mend=False)
            if trial.accepted:
                best = Decision(rank, base, rounding, trial.left, kept=trial.kept)
                break
    if best is None or not mend:
        return best
    trial = tried(problem, best.q, best.rank, best.rounding, rng, mend=True)
    return replace(best, frames=trial.frames) if trial.accepted else None


# ---- the nearest exact mechanism -----------------------------------------------------------------


def mended(
    problem: ClusterProblem, rank: int, seen: Walks, rng: np.random.Generator
) -> tuple[Array, float, float]:
    """Frames for which U₂ᵀφ vanishes all along the walks; how far they move; what is left open.

    Gauss–Newton on the frames' motions δp with the joints' eliminated by left null vectors:
    U₂ᵀ(φ + P δp) = 0 at all points. The step of least norm is kept within a radius as large as what
    is open (Levenberg–Marquardt), which grows only if it must: small singular values, which
    rounding makes too, are used last. New walks, further away, tell whether that is all.
    """
    frames = Frames(problem)
    points, poses, before = seen.points, frames.still, math.inf
    for _ in range(6):
        chosen = np.linspace(0, len(points) - 1, min(MOST_POINTS, len(points))).astype(int)
        poses, left, points = _newton(frames, poses, rank, points[chosen])
        if left > 1e-6:
            break
        current = frames.problem_at(poses)
        start, _ = onto_conditions(current, points[-1:], rank)
        ahead = directions(start.null(rank)[0], rng, 1)[:6]
        further = walks(current, start.q[0], rank, ahead, 2.5 * FAR)
        left = max(left, further.largest)
        if left < 1e-13 or left > 0.8 * before:
            break
        before = left
        points = np.concatenate([points, further.points])
    return poses, frames.size(poses), left


def _triangle(rows: Array) -> Array:
    """R of a tall matrix, part by part: small, with the same singular values.

    Parts are so small that linear algebra does not spread them over threads, which wait for each
    other where the processor is busy.
    """
    triangle: Array = np.zeros((0, rows.shape[1]))
    for part in np.array_split(rows, max(1, len(rows) // PART)):
        triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, part]), mode="r"))
    return triangle


def _newton(frames: Frames, poses: Array, rank: int, points: Array) -> tuple[Array, float, Array]:
    """Frames at which all points are closed; what is left open; the points."""
    best, last, factor_ = (poses, math.inf), math.inf, 2.0
    for n in range(ROUNDS):
        current = frames.problem_at(poses)
        at, _ = onto_conditions(current, points, rank, 6 if n else 2)
        points = at.q
        unmet = np.swapaxes(at.left[:, :, rank:], 1, 2)
        right = np.einsum("nij,nj->ni", unmet, at.values).ravel()
        left = float(np.max(np.abs(right), initial=0.0))
        if left < best[1]:
            best = poses, left
        if left < 2e-15:
            break
        if left > 0.5 * last:
            factor_ *= 8.0
            if factor_ * left > 3 * LARGEST or left < 1e-14:
                break
        last = left
        rows = (unmet @ frames.derivatives(points, poses)).reshape(len(right), -1)
        triangle = _triangle(np.column_stack([rows, right]))
        u, s, vt = np.linalg.svd(triangle[:, :-1], full_matrices=False)
        c = u.T @ triangle[:, -1]
        mu = 1e-26 * s[0] ** 2
        while True:
            step = -vt.T @ (s / (s**2 + mu) * c)
            if np.max(np.abs(step)) <= factor_ * left or mu >= s[0] ** 2:
                break
            mu *= 4.0
        poses = frames.after(poses, step)
        if frames.size(poses) > 3 * LARGEST:
            break
    return best[0], best[1], points
