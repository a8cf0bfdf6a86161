"""A cluster's conditions on batches of configurations, and Newton's method that closes its loops.

The method is damped, and of least norm where K lacks rank: it serves analysis, and is the last
resort where the compiled steps of :mod:`.configurations.closing` fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from robomodel.arrays import Array, Indices, Mask
from robomodel.mechanism.batches import LoopArrays
from robomodel.mechanism.constraints import (
    Aligned,
    Link,
    LoopCondition,
    LoopJoint,
    Perpendicular,
    Polynomial,
    evaluate_loops,
)
from robomodel.mechanism.joints import JointModel, Revolute, Screw, VectorSpace
from robomodel.scalars import Scalar, Vector, stack, unstack, value_of
from robomodel.tolerances import (
    CLOSED,
    CONVERGED,
    EXACTLY_CLOSED,
    NOTHING,
    ROUNDING,
    SINGULAR,
    TINY,
)

MANY_AT_ONCE = 8  # configurations at once, from which on it pays to leave out what holds everywhere
ANYWHERE = 4  # configurations at which conditions without derivatives hold everywhere
FAR_LESS = 0.01  # of the singular values that count as zero: rows that do not count
PLAINLY = 1e-3  # least pivot of the greatest, of rows that are independent without a doubt
MANY_ENTRIES = 150  # of K: of as many, one configuration is quicker as arrays, too
TURNS = 1.0, 2.5  # [rad] of screws whose conditions are looked at for bending
COUNTS = 0.01  # singular value of a condition that some joint opens by its size, or a radian


@dataclass(frozen=True, slots=True)
class LinearCoupling:
    """Σ coefficient · q(joint) = offset, over joints with one degree of freedom of one cluster.

    ``terms`` are (index of the link within the cluster, coefficient).
    """

    name: str
    terms: tuple[tuple[int, float], ...]
    offset: float


@dataclass(frozen=True, slots=True)
class Thread:
    """A fine screw whose turns bend nothing, alone or as long as other joints undo them.

    Attributes:
        column: The screw's.
        long: How far it turns [rad] as it goes, or another screw beside it, by a linkage's size.
        undone: The columns of joints that undo its turns, each with its turn for one of the screw:
            a hinge about the same axis, other screws of one spindle, or these and a hinge.
    """

    column: int
    long: float
    undone: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Geometry:
    """The bodies of a cluster and all conditions on their positions, redundant ones included.

    The conditions are the rows of ``loops`` (loop joints, then polynomial couplings), then the
    ``linear`` couplings. Arrays have leading batch axes: q (..., nq), values (..., rows), Jacobians
    (..., rows, nv).
    """

    links: tuple[Link, ...]
    loops: tuple[LoopCondition, ...]
    linear: tuple[LinearCoupling, ...]

    @cached_property
    def names(self) -> list[str]:
        """The names of its loops, then of its couplings."""
        return [loop.name for loop in self.loops] + [each.name for each in self.linear]

    @cached_property
    def loop_joints(self) -> tuple[LoopJoint, ...]:
        """The loop joints among ``loops``."""
        return tuple(loop for loop in self.loops if isinstance(loop, LoopJoint))

    @cached_property
    def polynomials(self) -> tuple[Polynomial, ...]:
        """The polynomial couplings among ``loops``."""
        return tuple(loop for loop in self.loops if isinstance(loop, Polynomial))

    @cached_property
    def nq(self) -> int:
        """Number of spanning positions."""
        return sum(link.joint.nq for link in self.links)

    @cached_property
    def nv(self) -> int:
        """Number of spanning velocities."""
        return sum(link.joint.nv for link in self.links)

    @cached_property
    def rows(self) -> int:
        """Number of conditions, redundant ones included."""
        return sum(len(loop.rows) for loop in self.loops) + len(self.linear)

    @cached_property
    def row_columns(self) -> tuple[tuple[int, ...], ...]:
        """The columns in which each row of K may differ from zero."""
        columns: list[tuple[int, ...]] = []
        for loop in self.loops:
            bodies = {body for branch in loop.branches for body in branch}
            mine = tuple(sorted(c for body in bodies for c in self.links[body].freedoms))
            columns += [mine] * len(loop.rows)
        columns += [tuple(sorted({self.links[i].v for i, _ in x.terms})) for x in self.linear]
        return tuple(columns)

    @cached_property
    def entries(self) -> tuple[Indices, Indices]:
        """Rows and columns of K's entries that may differ from zero, row by row."""
        pairs = [(r, c) for r, columns in enumerate(self.row_columns) for c in columns]
        rows, columns = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
        return rows, columns

    @cached_property
    def looped(self) -> tuple[Link, ...]:
        """The links on the branches of loops; only linear couplings relate the others."""
        return tuple(self.links[body] for body in sorted(self.looped_bodies))

    @cached_property
    def looped_bodies(self) -> frozenset[int]:
        """The indices of :attr:`looped` within the cluster."""
        return frozenset(body for loop in self.loops for branch in loop.branches for body in branch)

    @cached_property
    def alike(self) -> tuple[tuple[JointModel, Indices, Indices], ...]:
        """Groups of joints with one formula of integration: (a joint, places in q, places in v).

        Joints whose positions are vectors of one length form a group. The places of a group have
        the shapes (links, nq) and (links, nv).
        """
        groups: dict[object, list[Link]] = {}
        for link in self.links:
            vector = isinstance(link.joint, VectorSpace)
            groups.setdefault(link.joint.nq if vector else link.joint, []).append(link)
        return tuple(
            (links[0].joint, np.array([range(x.q, x.q + x.joint.nq) for x in links], dtype=np.intp),
             np.array([x.freedoms for x in links], dtype=np.intp))
            for links in groups.values()
        )  # fmt: skip

    @cached_property
    def scale(self) -> float:
        """A characteristic length [m]: the largest offset within the cluster, or 1."""
        lengths = [
            math.hypot(*map(value_of, link.offset)) for link in self.links if link.parent >= 0
        ]
        for loop in self.loop_joints:
            lengths += [
                math.hypot(*map(value_of, end.point)) for end in (loop.predecessor, loop.successor)
            ]
        return max(lengths, default=0.0) or 1.0

    @cached_property
    def unit(self) -> Array:
        """Units of the columns: 1 rad, and ``scale`` [m], which are comparable."""
        motions = [motion for link in self.links for motion in link.joint.subspace]
        slide = [any(motion.linear) and not any(motion.angular) for motion in motions]
        return np.where(slide, self.scale, 1.0)

    @cached_property
    def row_unit(self) -> Array:
        """Factors of the rows: gaps become shares of ``scale``; couplings have length 1."""
        units: list[float] = []
        for loop in self.loops:
            for row in loop.rows:
                if isinstance(row, Polynomial):
                    units.append(1.0 / self.unit[self.links[row.joint].v])
                else:
                    angular = isinstance(row, Perpendicular | Aligned)
                    units.append(1.0 if angular else 1.0 / self.scale)
        for coupling in self.linear:
            sizes = [k * self.unit[self.links[link].v] for link, k in coupling.terms]
            units.append(1.0 / math.hypot(*sizes))
        return np.array(units)

    def conditions(
        self, q: Vector, qd: Vector | None = None
    ) -> tuple[list[Scalar], list[list[Scalar]], list[Scalar]]:
        """Values φ, Jacobian K and bias k = -K̇ q̇ (zero without q̇), over scalars of any kind."""
        loops = evaluate_loops(self.links, self.loops, q, qd)
        values = list(loops.values)
        jacobian = [list(row) for row in loops.jacobian]
        for coupling in self.linear:
            total, slopes = self._linear(coupling, q)
            values.append(total)
            jacobian.append([slopes.get(c, 0.0) for c in range(self.nv)])
        return values, jacobian, [*(-x for x in loops.bias), *([0.0] * len(self.linear))]

    def evaluate(self, q: Array, qd: Array | None = None) -> tuple[Array, Array, Array]:
        """Values φ, Jacobian K and bias k = -K̇ q̇ (zero without q̇) of every condition."""
        batch = q.shape[:-1] if qd is None else np.broadcast_shapes(q.shape[:-1], qd.shape[:-1])
        # one configuration of few bodies is quicker as plain floats than as arrays; not so one that
        # is not finite, of which sines of floats make an error
        alone = math.prod(batch) == 1 and self.rows * self.nv < MANY_ENTRIES
        alone = alone and bool(np.isfinite(q).all())
        if qd is None and not alone:
            values, jacobian = self._on_arrays(q.reshape(-1, self.nq))
            shape = (*batch, self.rows)
            matrix = jacobian.reshape(*shape, self.nv)
            return values.reshape(shape), matrix, np.zeros(shape)
        at = q.ravel().tolist() if alone else unstack(q)
        rates = None
        if qd is not None:
            rates = qd.ravel().tolist() if alone else unstack(qd)
        listed, rows, bias = self.conditions(at, rates)
        flat = [entry for row in rows for entry in row]
        matrix = stack(flat, batch).reshape(*batch, len(rows), self.nv)
        return stack(listed, batch), matrix, stack(bias, batch)

    @cached_property
    def _arrays(self) -> LoopArrays:
        return LoopArrays(self.links, self.loop_joints)

    @cached_property
    def _rows_of_joints(self) -> Indices:
        """The rows of loop joints."""
        kinds = [isinstance(loop, LoopJoint) for loop in self.loops for _ in loop.rows]
        return np.flatnonzero(kinds)

    def _on_arrays(self, q: Array) -> tuple[Array, Array]:
        """Values φ (n, rows) and Jacobian K (n, rows, nv) at q (n, nq)."""
        if not (self.polynomials or self.linear):
            return self._arrays.evaluate(q)
        values = np.empty((len(q), self.rows))
        jacobian = np.zeros((len(q), self.rows, self.nv))
        if self.loop_joints:
            of_joints = self._rows_of_joints
            values[:, of_joints], jacobian[:, of_joints] = self._arrays.evaluate(q)
        for row, value, slopes in self._couplings(unstack(q)):
            values[:, row] = value
            for column, slope in slopes.items():
                jacobian[:, row, column] = slope
        return values, jacobian

    def _couplings(self, q: Vector) -> Iterator[tuple[int, Any, Mapping[int, Any]]]:
        """The rows of couplings: their numbers, values, and slopes by columns."""
        first = 0
        for loop in self.loops:
            if isinstance(loop, Polynomial):
                value, slopes, _ = loop.evaluate(self.links, q, None)
                yield first, value, slopes
            first += len(loop.rows)
        for row, coupling in enumerate(self.linear, first):
            yield row, *self._linear(coupling, q)

    def _linear(self, coupling: LinearCoupling, q: Vector) -> tuple[Scalar, dict[int, float]]:
        """A coupling's value, and its slopes by columns."""
        total: Scalar = -coupling.offset
        slopes: dict[int, float] = {}
        for link, coefficient in coupling.terms:
            total = total + coefficient * q[self.links[link].q]
            column = self.links[link].v
            slopes[column] = slopes.get(column, 0.0) + coefficient
        return total, slopes

    def integrate(self, q: Array, dq: Array) -> Array:
        """Spanning positions moved along spanning velocities for unit time."""
        result = np.empty((*np.broadcast_shapes(q.shape[:-1], dq.shape[:-1]), self.nq))
        for joint, at, along in self.alike:
            result[..., at] = joint.integrate(q[..., at], dq[..., along])
        return result

    def step(self, q: Array, dq: Array, units: Array | None = None) -> tuple[Array, Array, Array]:
        """q moved along dq, values φ and Jacobian K there, times ``units`` (rows, columns)."""
        moved = self.integrate(q, dq)
        values, jacobian, _ = self.evaluate(moved)
        return moved, values, jacobian if units is None else jacobian * units

    def difference(self, q0: Array, q1: Array, columns: Sequence[int] | None = None) -> Array:
        """The spanning velocities that lead from q0 to q1 in unit time, or these of them alone."""
        result = np.empty((*np.broadcast_shapes(q0.shape[:-1], q1.shape[:-1]), self.nv))
        for joint, at, along in self.alike:
            if columns is None or np.isin(along, columns).any():
                result[..., along] = joint.difference(q0[..., at], q1[..., at])
        return result if columns is None else result[..., list(columns)]

    @cached_property
    def pitches(self) -> dict[int, float]:
        """How far screws go [m/rad], by their columns, without signs."""
        return {link.v: abs(value_of(link.joint.pitch)) for link in self.links
                if isinstance(link.joint, Screw) and link.joint.pitch}  # fmt: skip

    @cached_property
    def threads(self) -> tuple[Thread, ...]:
        """Fine screws whose turns bend nothing.

        All conditions change in proportion to these turns, wherever the bodies are, as to slides:
        at their ends are balls on their axes, or next to them hinges about the same axis; or
        screws of other pitches between one spindle and its nuts turn alike.
        """
        fine = {c: self.scale / x for c, x in self.pitches.items() if 0.0 < x < self.scale}
        if not fine or not self.loop_joints:
            return ()
        rng = np.random.default_rng(0)
        q = Geometry.integrate(
            self, np.tile(self.zero(), (ANYWHERE, 1)), rng.uniform(-1.0, 1.0, (ANYWHERE, self.nv))
        )
        at, turning = Geometry.evaluate(self, q)[0], self._turning(q)
        hinges = [link.v for link in self.links if isinstance(link.joint, Revolute)]
        result: list[Thread] = []
        for column in fine:
            taken = {c for each in result for c in (each.column, *dict(each.undone))}
            if column in taken:
                continue
            screws = [c for c in fine if c not in taken and c != column]
            ways = [[], *([c] for c in hinges), screws, *([*screws, c] for c in hinges)]
            for others in ways:
                undone, *_ = np.linalg.lstsq(turning[:, others], -turning[:, column])
                way = np.zeros(self.nv)
                way[[column, *others]] = [1.0, *np.round(undone)]
                if np.max(np.abs(turning @ way), initial=0.0) > NOTHING:
                    continue
                there = np.array([Geometry.integrate(self, q, t * way) for t in TURNS])
                change = Geometry.evaluate(self, there)[0] - at
                bent = change[1] * TURNS[0] - change[0] * TURNS[1]
                if np.max(np.abs(bent * self.row_unit), initial=0.0) <= NOTHING:
                    sense = tuple((c, float(way[c])) for c in others if way[c])
                    long = min(fine.get(c, math.inf) for c in (column, *dict(sense)))
                    result.append(Thread(column, long, sense))
                    break
        return tuple(result)

    def _turning(self, q: Array) -> Array:
        """Rows of loop joints' K (n rows, nv) at q (n, nq), where screws do not advance."""
        links = (replace(link, joint=replace(link.joint, pitch=0.0))
                 if isinstance(link.joint, Screw) else link for link in self.links)  # fmt: skip
        still = Geometry(tuple(links), self.loop_joints, ())
        return np.concatenate(Geometry.evaluate(still, q)[1] * still.row_unit[:, None])

    def bending(self, step: Array) -> Array:
        """How far steps (..., nv) bend what they move: their turns, without those of threads."""
        if not self.threads:
            return step
        step = step.copy()
        for each in self.threads:
            for column, sense in each.undone:
                step[..., column] -= sense * step[..., each.column]
            step[..., each.column] /= each.long
        return step

    @cached_property
    def opening(self) -> frozenset[int]:
        """The conditions but for those that hold everywhere, as those out of a linkage's plane."""
        rng = np.random.default_rng(0)
        start = np.tile(self.zero(), (ANYWHERE, 1))
        q = Geometry.integrate(self, start, rng.uniform(-1.0, 1.0, (ANYWHERE, self.nv)))
        values, jacobian, _ = Geometry.evaluate(self, q)
        open_ = np.any(jacobian != 0.0, axis=(0, 2)) | np.any(np.abs(values) > ROUNDING, axis=0)
        return frozenset(np.flatnonzero(open_).tolist())

    def only(self, rows: Sequence[int]) -> Geometry:
        """The geometry with these rows of conditions alone, in their order."""
        wanted = set(rows)
        if len(wanted) == self.rows:
            return self
        loops, n = list[LoopCondition](), 0
        for loop in self.loops:
            if isinstance(loop, LoopJoint):
                some = tuple(row for k, row in enumerate(loop.rows, n) if k in wanted)
                loops += [replace(loop, rows=some)] if some else []
            elif n in wanted:
                loops.append(loop)
            n += len(loop.rows)
        linear = tuple(each for k, each in enumerate(self.linear, n) if k in wanted)
        return Geometry(self.links, tuple(loops), linear)

    def gap(self, q: Array) -> Array:
        """The largest residual of each configuration."""
        return np.asarray(np.max(np.abs(self.evaluate(q)[0]), axis=-1, initial=0.0))

    def zero(self) -> Array:
        """Spanning positions of all joints at zero."""
        return np.concatenate([np.array(link.joint.neutral()) for link in self.links])

    def flipped(self, q: Array) -> Mask:
        """Which configurations have a loop flipped: axes opposite that the loop should align.

        Rows of perpendicular axes hold for both, so that Newton's method may end at either.
        """
        cosines = self._aligned.evaluate(q.reshape(-1, self.nq), matrix=False)[0]
        return np.asarray(np.any(cosines < 0.0, axis=1).reshape(q.shape[:-1]))

    def alignments(self, q: Vector) -> list[Scalar]:
        """The cosine of the angle between the axes that a loop aligns, for each such pair."""
        probes = self._aligned.loops
        return evaluate_loops(self.links, probes, q, matrix=False).values if probes else []

    @cached_property
    def _aligned(self) -> LoopArrays:
        """The loops that align axes, with the cosines of :meth:`alignments` as their rows."""
        probes = (
            replace(loop, rows=tuple(Perpendicular(i, i) for i in axes))
            for loop in self.loop_joints
            if (axes := _aligned_axes(loop))
        )
        return LoopArrays(self.links, tuple(probes))

    def oriented(self) -> Geometry:
        """The geometry with a row more for each pair of aligned axes, which flipped loops violate.

        From a start beyond a right angle, steps on the conditions alone end at a flipped loop.
        """
        loops = (
            replace(loop, rows=(*loop.rows, *(Aligned(i) for i in _aligned_axes(loop))))
            if isinstance(loop, LoopJoint)
            else loop
            for loop in self.loops
        )
        return replace(self, loops=tuple(loops))


def _aligned_axes(loop: LoopJoint) -> list[int]:
    """The axes i for which a loop makes axis i of both its frames parallel."""
    pairs = {(row.i, row.j) for row in loop.rows if isinstance(row, Perpendicular)}
    return [0] * ({(1, 0), (2, 0)} <= pairs) + [2] * ((1, 2) in pairs)


# ---- damped steps of Newton's method -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Held:
    """These velocity columns do not move."""

    columns: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Joints:
    """These velocity columns move to ``way`` (..., columns) from ``origin`` (..., nq)."""

    columns: Sequence[int]
    origin: Array
    way: Array


@dataclass(frozen=True, slots=True)
class ToNearest:
    """The steps end at the closed configuration nearest to their start."""


Kept: TypeAlias = Held | Joints | ToNearest
FREE = Held()


def close(
    geometry: Geometry,
    q: Array,
    keep: Kept = FREE,
    *,
    rows: Sequence[int] | None = None,
    iterations: int = 60,
    rank: float = SINGULAR,
) -> tuple[Array, Array]:
    """Damped Newton steps from q (..., nq) to closed configurations, each by itself.

    A step has the least norm and moves joints in loops by at most half a unit; units are radians
    and sizes of the linkage, so that nothing hangs on metres, and of threads what makes them go by
    a size. It is shortened while it does not
    reduce the conditions, so that the loops stay on the branch of the guess where they can.

    Args:
        geometry: The cluster's.
        q: Guesses (..., nq). Those that are not finite are returned as they are.
        keep: What the steps keep.
        rows: The conditions to meet; None for all.
        iterations: Steps at most.
        rank: Singular values below this share of the largest count as zero.

    Returns:
        q, gap: Configurations (..., nq) and the largest residual of each (...).
    """
    batch = q.shape[:-1]
    q = q.reshape(-1, q.shape[-1]).copy()
    start, nearest = q.copy(), isinstance(keep, ToNearest)
    held = set(keep.columns) if isinstance(keep, Held) else set()
    free: Indices | slice = slice(None)
    if held:
        free = np.array([c for c in range(geometry.nv) if c not in held], dtype=np.intp)
    moving = geometry.looped if geometry.loop_joints else geometry.links  # polynomials: all joints
    in_loops = np.zeros(geometry.nv, dtype=bool)
    in_loops[[c for link in moving for c in link.freedoms]] = True
    selected = list(range(geometry.rows) if rows is None else rows)
    if len(q) >= MANY_AT_ONCE:
        selected = [row for row in selected if row in geometry.opening]
    solved = geometry.only(selected)
    unit, row_unit = geometry.unit, geometry.row_unit.copy()
    if not isinstance(keep, Joints):  # beside what joints lack gaps are shares of the size
        row_unit[: geometry.rows - len(geometry.linear)] = 1.0
    row_unit = row_unit[sorted(selected)]
    sizes = 1.0 / row_unit
    if isinstance(keep, Joints):
        sizes = np.concatenate([sizes, unit[list(keep.columns)]])

    units = row_unit[:, None] * unit

    def conditions(
        at: Array, values: Array, jacobian: Array, index: NDArray[np.intp]
    ) -> tuple[Array, Array]:
        values = values * row_unit
        if isinstance(keep, Joints):
            columns = list(keep.columns)
            origin = np.broadcast_to(keep.origin, start.shape)[index]
            target = np.broadcast_to(keep.way, (len(start), len(columns)))[index]
            moved = np.tile(np.eye(geometry.nv)[columns], (len(at), 1, 1))
            missing = (geometry.difference(origin, at, columns) - target) / unit[columns]
            values = np.concatenate([values, missing], axis=1)
            jacobian = np.concatenate([jacobian, moved], axis=1)
        return values, jacobian[:, :, free]

    values, jacobian, _ = solved.evaluate(q)
    values, jacobian = conditions(q, values, jacobian * units, np.arange(len(q)))
    size = np.linalg.norm(values, axis=1)
    worst: Array = _largest(values * sizes)
    damping = np.ones(len(q))
    active = np.flatnonzero(np.isfinite(size) & np.isfinite(jacobian).all(axis=(1, 2)))
    values, jacobian = values[active], jacobian[active]
    for _ in range(iterations):
        if not len(active):
            break
        away = geometry.difference(q[active], start[active]) / unit if nearest else None
        away = None if away is None else away[:, free]
        shares = _shares(geometry, jacobian, rank)
        step = _newton_step(values, jacobian, away, shares, isinstance(keep, Joints))
        move = np.zeros((len(active), geometry.nv))
        move[:, free] = step
        longest = np.maximum(_largest(geometry.bending(move)[:, in_loops]), TINY)
        shorter = (damping[active] * np.minimum(1.0, 0.5 / longest))[:, None]
        step, move = step * shorter, move * shorter
        trial, trial_values, trial_jacobian = solved.step(q[active], move * unit, units)
        trial_values, trial_jacobian = conditions(trial, trial_values, trial_jacobian, active)
        trial_size = np.linalg.norm(trial_values, axis=1)
        better = trial_size < size[active] * (1 - 1e-4 * damping[active])
        better &= np.isfinite(trial_jacobian).all(axis=(1, 2))
        if nearest:
            better |= (trial_size < CLOSED) & ~(_largest(step) < CONVERGED)
        damping[active] = np.where(
            better, np.minimum(1.0, 2 * damping[active]), damping[active] / 4
        )
        accepted = active[better]
        q[accepted] = trial[better]
        size[accepted] = trial_size[better]
        worst[accepted] = _largest(trial_values[better] * sizes)
        values[better], jacobian[better] = trial_values[better], trial_jacobian[better]
        # at the rounding level, or where a step does not help near it, the search ends at once
        goal = CLOSED if nearest else EXACTLY_CLOSED
        going = better & (nearest | (size[active] > ROUNDING))
        going |= (size[active] > goal) & (damping[active] > 1e-4)
        active, values, jacobian = active[going], values[going], jacobian[going]
    return q.reshape(*batch, q.shape[-1]), worst.reshape(batch)


def _shares(geometry: Geometry, jacobian: Array, rank: float) -> Array:
    """For each K (n, rows, columns) the share of the largest singular value that counts as zero.

    It is ``rank``, but where nothing opens the loops: there the largest itself is rounding.
    """
    size = np.linalg.norm(jacobian, axis=(1, 2))
    least = COUNTS * min(1.0, geometry.scale)
    shares: Array = rank * np.maximum(1.0, least / np.maximum(size, TINY))
    return shares


def _newton_step(
    values: Array, jacobian: Array, away: Array | None, rank: Array, determined: bool
) -> Array:
    """The step of least norm that meets the linearised conditions.

    With ``away``, the motion back to the start, it is the step that ends nearest to the start.
    """
    if away is None:
        return -least_norm(jacobian, values, rank, determined=determined)
    along = np.einsum("nij,nj->ni", jacobian, away)
    return np.asarray(away - least_norm(jacobian, values + along, rank))


def least_norm(matrix: Array, right: Array, rank: Array, *, determined: bool = False) -> Array:
    """The x (n, columns) of least norm among those that minimise |matrix x - right|.

    Singular values below a share ``rank`` (n,) of the largest count as zero, and so do rows that
    are much less. Where the other rows are plainly independent, as of most linkages those in their
    plane are, or, of more rows that are said to determine x, the columns, x follows from Cholesky
    factors of their products, which take a tenth of the time of singular values. As many rows as
    columns are solved as they are, where that makes no x much longer than ``right``.
    """
    sizes = np.abs(matrix).max(axis=2, initial=0.0).max(axis=0, initial=0.0)
    share = max(ROUNDING, FAR_LESS * float(np.min(rank, initial=1.0)))
    some = sizes > share * np.max(sizes, initial=0.0)
    matrix, right = matrix[:, some], right[:, some]
    result = np.zeros((len(matrix), matrix.shape[2]))
    plain = np.zeros(len(matrix), dtype=bool)
    tall = matrix.shape[1] > matrix.shape[2]
    if determined and matrix.shape[1] == matrix.shape[2]:
        with suppress(np.linalg.LinAlgError):
            result = np.asarray(np.linalg.solve(matrix, right[:, :, None])[:, :, 0])
            largest = np.max(np.abs(matrix), axis=(1, 2), initial=TINY)
            plain = PLAINLY * largest * _largest(result) < _largest(right)
    elif matrix.shape[1] > 0 and (determined or not tall):
        across = np.swapaxes(matrix, 1, 2)
        products = across @ matrix if tall else matrix @ across
        largest = np.max(np.abs(products), axis=(1, 2), initial=TINY)
        squares = np.diagonal(products, axis1=1, axis2=2)
        lengths = np.sqrt(np.maximum(squares, (ROUNDING * largest)[:, None]))
        cosines = products / (lengths[:, :, None] * lengths[:, None, :])
        factors = np.linalg.cholesky(cosines + ROUNDING * np.eye(products.shape[1]))
        sines = np.diagonal(factors, axis1=1, axis2=2)  # of rows with those before them
        pivots = sines * lengths
        plain = np.min(pivots, axis=1) > PLAINLY * np.max(pivots, axis=1)
        plain &= np.min(sines, axis=1) > PLAINLY
        plain &= largest > TINY
        sides, across = right[plain][:, :, None], across[plain]
        y = np.linalg.solve(products[plain], across @ sides if tall else sides)
        result[plain] = (y if tall else across @ y)[:, :, 0]
    if not plain.all():
        inverse = np.linalg.pinv(matrix[~plain], rcond=rank[~plain])
        result[~plain] = np.einsum("nij,nj->ni", inverse, right[~plain])
    return result


def extreme_singular(matrix: Array, rank: int) -> tuple[Array, Array]:
    """The least and the greatest singular values (n,) of matrices (n, rows, columns) of a rank.

    From eigenvalues of AᵀA or A Aᵀ, whose rounding is about 1e-16 |A|²; where that counts, of A
    itself. Ones for the rank 0, with which nothing can become singular.
    """
    if not rank:
        return np.ones(len(matrix)), np.ones(len(matrix))
    across = np.swapaxes(matrix, 1, 2)
    wide = matrix.shape[1] < matrix.shape[2]
    squares = np.linalg.eigvalsh(matrix @ across if wide else across @ matrix)[:, [-rank, -1]]
    least, greatest = np.sqrt(np.maximum(squares, 0.0)).T
    small = squares[:, 0] <= SINGULAR * squares[:, 1]
    if small.any():
        sizes = np.linalg.svd(matrix[small], compute_uv=False)
        least[small], greatest[small] = sizes[:, rank - 1], sizes[:, 0]
    return least, greatest


def _largest(rows: Array) -> Array:
    """The largest absolute value of each row."""
    largest: Array = np.max(np.abs(rows), axis=1, initial=0.0)
    return largest
