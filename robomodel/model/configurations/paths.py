"""Paths of closed configurations of one freedom: followed to the first limit or dead point.

A part of a cluster is what its conditions relate. With joints held so that one freedom is left
(but for freedoms that move no joint of one freedom, as spins of rods), its closed configurations
are a curve. It is followed along its tangent both ways, to where a joint meets a limit, where the
independent velocities of the cluster vanish though it moves (a dead point, beyond which the loops
are on another branch), or round to where it began.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from robomodel.kernels.function import TracedFunction
from robomodel.model.closure import Geometry, LinearCoupling
from robomodel.model.configurations.following import enough
from robomodel.model.derived import traced
from robomodel.model.elements import Cluster
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector
from robomodel.tolerances import MOVES, NOTHING, SINGULAR, WITHIN

STEP = 0.08  # radians, or cluster sizes, along a path or curve
SHORTEST = 1e-5  # of these steps
HALF_PATH = 60.0  # of each half of a path
TURNS = 8  # of a joint without limits in a part where couplings turn joints with limits
AHEAD = 0.95  # cosine of the angle between tangents of neighbours
CLOSINGS = 20  # steps that close the loops after a stride
CLOSE = 1e-15  # m, sines: a gap of rounding alone
GAINED = 0.1  # of the gap: what more than is left after a step asks for another K⁺
VARIED = 1e-5  # rad, sizes: of central differences, at the cube root of rounding

Kind = Literal["limit", "dead point", ""]


@dataclass(frozen=True, slots=True)
class RangeEnd:
    """What ends a joint's range, and at which position of it.

    ``kind``: "limit" of the joint ``by``, "dead point" of the loop or coupling ``by``, or "" where
    nothing ends it.
    """

    position: float
    kind: Kind
    by: str

    def __str__(self) -> str:
        words = {
            "limit": f"limit of '{self.by}'",
            "dead point": f"dead point of '{self.by}'",
            "": "nothing ends it",
        }
        return words[self.kind]


@dataclass(frozen=True)
class _Compiled(Geometry):
    """A geometry whose conditions are a compiled program."""

    program: TracedFunction

    def evaluate(self, q: Array, qd: Array | None = None) -> tuple[Array, Array, Array]:
        """Values φ, Jacobian K and bias, as :meth:`Geometry.evaluate`."""
        if qd is not None:
            return Geometry.evaluate(self, q, qd)
        y = self.program(q)
        values = y[..., : self.rows]
        jacobian = y[..., self.rows :].reshape(*q.shape[:-1], self.rows, self.nv)
        return values, jacobian, np.zeros_like(values)


@traced
def _conditions(model: Model, index: int) -> TracedFunction:
    """A cluster's conditions and their Jacobian at its spanning positions."""
    geometry = model.clusters[index].geometry

    def build(q: Vector) -> list[Scalar]:
        values, jacobian, _ = geometry.conditions(q)
        return [*values, *(x for row in jacobian for x in row)]

    size = geometry.rows * (1 + geometry.nv)
    return TracedFunction("conditions", {"q": geometry.nq}, {"y": (size,)}, build)


def compiled_geometry(model: Model, cluster: Cluster) -> Geometry:
    """The geometry of a cluster, which evaluates its conditions by a compiled program."""
    links, loops, linear = cluster.geometry.links, cluster.geometry.loops, cluster.geometry.linear
    return _Compiled(links, loops, linear, _conditions(model, cluster.index))


@dataclass(frozen=True, eq=False)
class Part:
    """Joints of a cluster that conditions relate to each other.

    ``geometry`` is the cluster's, of which ``rows`` close the part. ``conditions`` are the names
    and rows of the part's loops, then of its couplings, ``linear`` the latter; ``columns`` are its
    spanning velocities, ``rank`` the number of its independent conditions. ``names``, ``unit``,
    ``low``, ``high`` and ``lengths`` (in metres) are of all columns of the cluster, ``chart`` (n,
    columns) are its independent velocities, as rows; ``place`` is where in q the joints of one
    freedom are, by their columns. ``followers`` are
    joints that are left out: where they are in q, Σ (where, ratio) and an offset that give it.
    """

    geometry: Geometry
    rows: tuple[int, ...]
    conditions: tuple[tuple[str, range], ...]
    linear: tuple[LinearCoupling, ...]
    columns: tuple[int, ...]
    rank: int
    names: tuple[str, ...]
    unit: Array
    low: Array
    high: Array
    chart: Array
    lengths: tuple[bool, ...]
    place: dict[int, int]
    followers: tuple[tuple[int, tuple[tuple[int, float], ...], float], ...]

    @property
    def mobility(self) -> int:
        """The number of freedoms."""
        return len(self.columns) - self.rank

    @cached_property
    def limited(self) -> tuple[int, ...]:
        """The columns with limits."""
        bounded = np.isfinite(self.low) | np.isfinite(self.high)
        return tuple(c for c in self.columns if bounded[c])

    def endless(self, column: int) -> float:
        """From which travel on [rad, m] a joint without limits counts as one without ends.

        Joints with limits that couplings turn with others may meet these after more than a turn.
        """
        if self.lengths[column]:
            return 10.0 * float(self.unit[column])
        coupled = {c for each in self.linear for body, _ in each.terms
                   for c in self.geometry.links[body].freedoms}  # fmt: skip
        return TURNS * 2.0 * math.pi if coupled & {*self.limited} else 2.0 * math.pi

    def tangents(self, q: Array, held: Sequence[int] = ()) -> tuple[Array, Array]:
        """Orthonormal motions (..., columns, n) while ``held`` rest, and K⁺ (..., columns, rows).

        In comparable units, the columns are all of the cluster, the rows those of the part.
        """
        free = [c for c in self.columns if c not in set(held)]
        matrix = (self.geometry.evaluate(q)[1][..., list(self.rows), :] * self.unit)[..., free]
        left, singular, right = np.linalg.svd(matrix)
        count = max(0, self.mobility - len(held))
        rank = min(len(free) - count, singular.shape[-1])
        regular = singular[..., :rank] > SINGULAR * singular[..., :1]
        scaled = np.where(regular, 1.0 / np.where(regular, singular[..., :rank], 1.0), 0.0)
        motions = np.zeros((*q.shape[:-1], len(self.unit), count))
        inverse = np.zeros((*q.shape[:-1], len(self.unit), len(self.rows)))
        if count:
            motions[..., free, :] = np.swapaxes(right[..., -count:, :], -1, -2)
        inverse[..., free, :] = np.swapaxes(scaled[..., None] * right[..., :rank, :], -1, -2) @ (
            np.swapaxes(left[..., :rank], -1, -2)
        )
        return motions, inverse

    def null(self, q: Array, held: Sequence[int] = ()) -> Array:
        """The motions of :meth:`tangents` alone."""
        return self.tangents(q, held)[0]

    def variation(self, q: Array, motions: Array) -> Array:
        """How K's rows of this part change along motions (columns, n): (n, rows, columns).

        All in comparable units; by central differences.
        """
        ways = VARIED * motions.T * self.unit
        around = self.geometry.integrate(q, np.stack([ways, -ways]))
        ahead, behind = self.geometry.evaluate(around)[1][..., list(self.rows), :] * self.unit
        result: Array = (ahead - behind) / (2.0 * VARIED)
        return result

    def moved(self, q: Array, motion: Array, held: Sequence[int] = ()) -> Array | None:
        """q moved along a motion in comparable units and closed again; None where it cannot be.

        By Newton's method with least steps, K⁺ of which is computed anew where they gain little.
        """
        q = self.geometry.integrate(q, motion * self.unit)
        if not self.rows:
            return q
        gap, inverse = math.inf, np.zeros(0)
        for _ in range(CLOSINGS):
            values = self.geometry.evaluate(q)[0][list(self.rows)]
            before, gap = gap, float(np.max(np.abs(values)))
            if not gap > CLOSE:
                return q
            if gap > GAINED * before or not len(inverse):
                if not gap < before:
                    break
                inverse = self.tangents(q, held)[1]
            step = inverse @ values
            q = self.geometry.integrate(q, -step * self.unit)
        return q if gap <= float(enough(q)) else None

    def completed(self, q: Array) -> Array:
        """Spanning positions with the joints that are left out where couplings turn them."""
        q = q.copy()
        for place, terms, offset in self.followers:
            q[..., place] = offset + sum(ratio * q[..., other] for other, ratio in terms)
        return q

    def position(self, q: Array, column: int) -> float:
        """The position of the joint with one freedom in this column."""
        return float(q[..., self.place[column]])

    def loop_of(self, motion: Array, q: Array, column: int | None = None) -> str:
        """The loop, or the coupling, whose conditions relate what moves; first one of ``column``.

        ``motion`` in comparable units.
        """
        weights = np.abs(self.geometry.evaluate(q)[1] * self.unit)
        best = (-1.0, "")
        for name, rows in self.conditions:
            block = weights[list(rows)]
            mine = column is not None and bool(np.any(block[:, column] > 0.0))
            best = max(best, (float(np.sum(block @ np.abs(motion))) + 1e6 * mine, name))
        return best[1]


class End(NamedTuple):
    """Where a half of a path ends, and why."""

    q: Array
    kind: Kind
    by: str


@dataclass(frozen=True, eq=False)
class Path:
    """A curve of closed configurations of a part of a cluster.

    ``q`` (n, nq of the cluster's spanning positions), ``tangents`` (n, columns of the cluster, in
    comparable units) along it, ``start`` the index where it starts, ``ends`` what ends it.
    ``ring``: it comes back to where it began.
    """

    part: Part
    q: Array
    tangents: Array
    start: int
    ends: tuple[End, End]
    ring: bool
    held: tuple[int, ...]

    def range(self, column: int) -> tuple[RangeEnd, RangeEnd]:
        """How far a joint with one freedom goes along it."""
        part, place = self.part, self.part.place[column]
        at = self.q[:, place]
        net = float(at[-1] - at[0])
        if self.ring and abs(net) > math.pi:
            return RangeEnd(-math.inf, "", ""), RangeEnd(math.inf, "", "")
        result = []
        for sign in (-1.0, 1.0):
            n = int(np.argmax(sign * at))
            x, kind, by = float(at[n]), *self._end(n)
            turned = self._turn(column, n)
            if turned is not None and sign * (turned[0] - x) >= -WITHIN:
                x, kind, by = turned[0], "dead point", turned[1]
            if (
                not kind
                and not self.ring
                and self._unlimited(column, sign * float(at[n] - at[self.start]))
            ):
                x = sign * math.inf
            own = part.high[column] if sign > 0.0 else part.low[column]
            mine = (
                by == part.names[column]
                if kind == "limit"
                else math.isfinite(x) and abs(x - own) <= WITHIN
            )
            if mine and math.isfinite(own):
                x, kind, by = float(own), "limit", part.names[column]
            result.append(RangeEnd(x, kind, by))
        return result[0], result[1]

    def _end(self, n: int) -> tuple[Kind, str]:
        """What ends the path at a point of it: nothing within."""
        if self.ring or 0 < n < len(self.q) - 1:
            return "", ""
        end = self.ends[0] if n == 0 else self.ends[1]
        return end.kind, end.by

    def _unlimited(self, column: int, travel: float) -> bool:
        """Whether a joint has gone so far without meeting anything that it goes on for ever."""
        return travel > self.part.endless(column)

    def _turn(self, column: int, n: int) -> tuple[float, str] | None:
        """Where a joint turns back beside a point of the path: its position, and which loop's."""
        count = len(self.q)
        pairs = [(n - 1, n), (n, n + 1)]
        if self.ring:  # the last point is the first one
            pairs = [((a if a >= 0 else count - 2), b if b < count else 1) for a, b in pairs]
        rates = self.tangents[:, column]
        for a, b in pairs:
            if a >= 0 and b < count and rates[a] * rates[b] < 0.0:
                q, tangent = self._located(a, column)
                return self.part.position(q, column), self.part.loop_of(tangent, q, column)
        return None

    def at(self, place: float) -> Array:
        """The spanning positions at a fractional index."""
        a = min(int(place), len(self.q) - 2)
        share = place - a
        if share in (0.0, 1.0):
            known: Array = self.q[a + round(share)]
            return known
        step = self._step(a)
        return self.part.completed(step.at(share * step.stride)[0])

    def turns(self, column: int) -> list[Array]:
        """Where a joint turns back."""
        rates = self.tangents[:, column]
        return [self._located(int(a), column)[0]
                for a in np.flatnonzero(rates[1:] * rates[:-1] < 0.0)]  # fmt: skip

    def within(self, column: int, free: float) -> list[Array]:
        """The points at which a joint is farthest; without ends up to ``free`` from the start."""
        at = self.q[:, self.part.place[column]]
        low, high = self.range(column)
        here = float(at[self.start])
        least = here - free if math.isinf(low.position) else low.position
        most = here + free if math.isinf(high.position) else high.position
        inside = (at >= least - WITHIN) & (at <= most + WITHIN)
        ends = (np.argmin(np.where(inside, at, np.inf)), np.argmax(np.where(inside, at, -np.inf)))
        return [self.q[n] for n in ends if n != self.start]

    def _step(self, a: int) -> _Step:
        """From a point to the next."""
        q, moved = self.q[a], self.q[a + 1]
        away = self.part.geometry.difference(q, moved) / self.part.unit * _mine(self.part)
        reach = float(np.linalg.norm(away))
        follower = _Follower(self.part, self.held)
        return _Step(follower, q, self.tangents[a], reach, moved, self.tangents[a + 1])

    def _located(self, a: int, column: int) -> tuple[Array, Array]:
        """The configuration between point a and the next at which a joint rests; its tangent."""
        step = self._step(a)
        return step.at(step.root(1.5 * step.stride, lambda _, t: float(t[column])))


def _mine(part: Part) -> Array:
    """1 for the columns of a part, 0 for others."""
    mask = np.zeros(len(part.unit))
    mask[list(part.columns)] = 1.0
    return mask


def follow(part: Part, q: Array, held: Sequence[int], column: int) -> Path | None:
    """The path from q on which ``held`` columns rest and a joint of ``column`` moves.

    None where more than one freedom is left beside spins of rods, or the joint rests. Joints that q
    has beyond a limit may go back, but no further.
    """
    follower = _Follower(part, held)
    motions = follower.effective(q)
    if motions.shape[1] != 1 or abs(float(motions[column, 0])) < MOVES:
        return None
    ahead = motions[:, 0] * (1.0 if motions[column, 0] > 0.0 else -1.0)
    forth = follower.half(q, ahead)
    if forth.ring:
        points, tangents = np.array(forth.q), np.array(forth.tangents)
        end = End(q, "", "")
        return Path(part, part.completed(points), tangents, 0, (end, end), True, tuple(held))
    back = follower.half(q, -ahead)
    points = part.completed(np.array(back.q[:0:-1] + forth.q))
    tangents = np.concatenate([-np.array(back.tangents)[:0:-1], np.array(forth.tangents)])
    return Path(
        part, points, tangents, len(back.q) - 1, (back.end, forth.end), False, tuple(held)
    )  # fmt: skip


@dataclass
class _Half:
    """One half of a path."""

    q: list[Array]
    tangents: list[Array]
    end: End
    ring: bool = False


class _Follower:
    """Follows a part's closed configurations of one freedom."""

    def __init__(self, part: Part, held: Sequence[int]) -> None:
        self.part, self.held = part, tuple(held)
        self.limited = list(part.limited)
        self.low, self.high = part.low[self.limited], part.high[self.limited]
        self.interest = [c for c in part.columns if c in part.place]
        self.turning = [
            c for c in part.columns
            if c in part.place and c not in self.limited and not part.lengths[c]
        ]  # fmt: skip

    def effective(self, q: Array) -> Array:
        """Orthonormal motions that joints of one freedom take part in; not those of spins."""
        return without_idle(self.part.null(q, self.held), self.interest)

    def tangent(self, q: Array, before: Array) -> Array:
        """The unit tangent, ahead as ``before``."""
        motions = self.part.null(q, self.held)
        if motions.shape[1] > 1:
            motions = without_idle(motions, self.interest, 1)
        tangent: Array = motions[:, 0]
        return -tangent if float(tangent @ before) < 0.0 else tangent

    def half(self, start: Array, ahead: Array) -> _Half:
        """From the start on, to the first end."""
        part, here = self.part, start[[self.part.place[c] for c in self.limited]]
        self.low = np.minimum(part.low[self.limited], here)
        self.high = np.maximum(part.high[self.limited], here)
        chart = Chart.at(part, start)
        half = _Half([start], [ahead], End(start, "", ""))
        length, stride = 0.0, STEP
        while length < HALF_PATH:
            q, tangent = half.q[-1], half.tangents[-1]
            moved = part.moved(q, tangent * stride, self.held)
            along = None if moved is None else self.tangent(moved, tangent)
            if moved is None or along is None or float(along @ tangent) < AHEAD:
                stride *= 0.5
                if stride < SHORTEST * STEP:
                    half.end = End(q, "dead point", part.loop_of(tangent, q))
                    return half
                continue
            there = chart.turned(moved) if chart else None
            step = _Step(self, q, tangent, stride, moved, along)
            event = step.first_end(chart, there)
            if event is not None:
                half.end, direction = event
                if np.any(half.end.q != q):
                    half.q.append(half.end.q)
                    half.tangents.append(direction)
                return half
            chart = there
            half.q.append(moved)
            half.tangents.append(along)
            length += stride
            if self._round(start, half, length):
                half.ring = True
                return half
            stride = min(STEP, 2.0 * stride)
        return half

    def _round(self, start: Array, half: _Half, length: float) -> bool:
        """Whether a path is back where it began, but for turns of joints without limits."""
        part = self.part
        if length < 10.0 * STEP:
            return False
        away = part.geometry.difference(start, half.q[-1]) * _mine(part)
        turns = np.zeros(len(away))
        turns[self.turning] = np.round(away[self.turning] / (2.0 * math.pi))
        away = (away - 2.0 * math.pi * turns) / part.unit
        first, last = half.tangents[0], half.tangents[-1]
        if np.linalg.norm(away) > 1.1 * STEP or float(away @ first) > 0.0 or first @ last < 0.9:
            return False
        q = start.copy()  # the start itself, so many turns on
        for c in self.turning:
            q[part.place[c]] += 2.0 * math.pi * turns[c]
        half.q.append(q)
        half.tangents.append(first)
        return True


@dataclass(frozen=True, eq=False)
class Chart:
    """The orientation of a part's independent velocities among its motions, along a path.

    It is the determinant of ``rows`` (n, columns) on an orthonormal ``basis`` (columns, n) of the
    motions, turned along with them, positive where it begins; where it vanishes the part moves
    while they rest.
    """

    part: Part
    q: Array
    interest: tuple[int, ...]
    rows: Array
    basis: Array

    @staticmethod
    def at(part: Part, q: Array) -> Chart | None:
        """That at q; None where the independent velocities do not tell the motion there."""
        motions = part.null(q)
        interest = tuple(c for c in part.columns if c in part.place)
        if not interest or not motions.shape[1]:
            return None
        rows = part.chart * part.unit
        idle = _idle(motions, interest)
        rows = rows[np.max(np.abs(rows @ idle), axis=1, initial=0.0) < MOVES]  # not those of spins
        basis = without_idle(motions, interest)
        chosen: list[Array] = []
        for row in rows:
            if np.linalg.matrix_rank(np.array([*chosen, row]) @ basis, tol=MOVES) > len(chosen):
                chosen.append(row)
        if len(chosen) != basis.shape[1]:
            return None
        basis[:, 0] *= np.sign(np.linalg.det(np.array(chosen) @ basis))
        return Chart(part, q, interest, np.array(chosen), basis)

    @cached_property
    def values(self) -> Array:
        """The determinant (...)."""
        return np.asarray(np.linalg.det(self.rows @ self.basis))

    @property
    def value(self) -> float:
        """That of one configuration."""
        return float(self.values)

    def turned(self, q: Array) -> Chart:
        """The chart at a neighbour (..., nq)."""
        motions = without_idle(self.part.null(q), self.interest, self.basis.shape[-1])
        left, _, right = np.linalg.svd(np.swapaxes(motions, -1, -2) @ self.basis)
        return Chart(self.part, q, self.interest, self.rows, motions @ (left @ right))

    @property
    def slope(self) -> Array:
        """The derivatives of the determinant by the motions of the basis.

        The basis changes by -K⁺ dK basis, and a determinant by the trace of its adjugate times what
        its matrix changes by.
        """
        part = self.part
        left, singular, right = np.linalg.svd(self.rows @ self.basis)
        others = [np.prod(np.delete(singular, n)) for n in range(len(singular))]
        orientation = np.linalg.det(left) * np.linalg.det(right)
        adjugate = orientation * (right.T * others) @ left.T
        weights = self.basis @ adjugate @ self.rows @ part.tangents(self.q)[1]
        slope: Array = -np.einsum("cr,nrc->n", weights, part.variation(self.q, self.basis))
        return slope

    @property
    def loose(self) -> Array:
        """The motion (columns) at which the independent velocities rest, where they can."""
        right = np.linalg.svd(self.rows @ self.basis)[2]
        motion: Array = self.basis @ right[-1]
        return motion


@dataclass(frozen=True, eq=False)
class _Step:
    """From one point of a path to the next."""

    follower: _Follower
    q: Array
    tangent: Array
    stride: float
    moved: Array
    along: Array

    def first_end(self, chart: Chart | None, there: Chart | None) -> tuple[End, Array] | None:
        """What ends the path on the way, and the tangent there."""
        first, by, kind = math.inf, "", ""
        follower, part = self.follower, self.follower.part
        for k, c in enumerate(follower.limited):
            for side, limit in ((-1.0, follower.low[k]), (1.0, follower.high[k])):
                at = self._meets(c, side, float(limit))
                if at < first - WITHIN:
                    first, by, kind = at, part.names[c], "limit"
        if chart is not None and there is not None and there.value < 0.0:

            def orientation(p: Array, _: Array) -> float:
                return chart.turned(p).value

            at = self.root(self.stride, orientation)
            if at < first:
                first, kind = at, "dead point"
                point = self.at(at)[0]
                by = part.loop_of(chart.turned(point).loose, point)
        if math.isinf(first):
            return None
        q, tangent = self.at(first)
        return End(q, "limit" if kind == "limit" else "dead point", by), tangent

    def _meets(self, c: int, side: float, limit: float) -> float:
        """The length at which a joint meets its limit; infinite where it does not on the way."""
        part, place = self.follower.part, self.follower.part.place[c]
        x, ahead = side * self.q[place], side * self.moved[place]
        before, after = (side * float(t[c] * part.unit[c]) for t in (self.tangent, self.along))
        until = self.stride
        if ahead <= side * limit + WITHIN:
            bulge = 0.25 * self.stride * max(before, -after)
            if before <= 0.0 or after >= 0.0 or max(x, ahead) + bulge <= side * limit:
                return math.inf
            until = self.root(self.stride, lambda _, t: float(t[c]))
            if side * self.at(until)[0][place] <= side * limit + WITHIN:
                return math.inf
        return self.root(until, lambda p, _: float(p[place]) - limit)

    def at(self, length: float) -> tuple[Array, Array]:
        """A point of the way, and the tangent there."""
        if not length:
            return self.q, self.tangent
        follower = self.follower
        moved = follower.part.moved(self.q, self.tangent * length, follower.held)
        point = self.q if moved is None else moved
        return point, follower.tangent(point, self.tangent)

    def root(self, until: float, value: Callable[[Array, Array], float]) -> float:
        """The length up to ``until`` at which a function changes its sign; 0 where it does not."""
        from scipy.optimize import brentq

        def along(length: float) -> float:
            return value(*self.at(length))

        first = along(0.0)
        if abs(first) <= NOTHING or first * along(until) > 0.0:
            return 0.0
        return float(brentq(along, 0.0, until, xtol=NOTHING, rtol=1e-14, disp=False))


def _idle(motions: Array, interest: Sequence[int]) -> Array:
    """Those orthonormal motions (columns, n) in which the columns of interest rest."""
    _, singular, right = np.linalg.svd(motions[list(interest)], full_matrices=True)
    moving = int(np.sum(singular > MOVES))
    idle: Array = motions @ right[moving:].T
    return idle


def without_idle(motions: Array, interest: Sequence[int], count: int | None = None) -> Array:
    """Those orthonormal motions (..., columns, n) in which the columns of interest move.

    ``count``: how many these are; a batch needs it.
    """
    if not motions.shape[-1] or motions.shape[-1] == count:
        return motions
    _, singular, right = np.linalg.svd(motions[..., list(interest), :], full_matrices=True)
    moving = int(np.sum(singular > MOVES)) if count is None else count
    result: Array = motions @ np.swapaxes(right[..., :moving, :], -1, -2)
    return result
