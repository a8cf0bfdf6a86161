"""The greatest positions of a joint among closed configurations of several freedoms, within limits.

From a start the joint's position is raised along the projection of its gradient on the motions that
loops and met limits leave (Rosen, The gradient projection method for nonlinear programming, 1961),
then by Newton's method on the Lagrangian, until no slope is left: the end of a range, which a limit
or a dead point is. Tops are local: the climb begins again from configurations that random walks
reach, and a top behind a passage that none of them takes is missed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.mechanism.continuation import FINE, Continuation, Limits, Points, joined
from robomodel.mechanism.roots import bracketing
from robomodel.mechanism.walks import Positions, lead
from robomodel.reach.charts import Chart, slopes, turned_charts
from robomodel.reach.parts import VARIED, Part
from robomodel.reach.paths import Kind, RangeEnd
from robomodel.tolerances import CONVERGED, NOTHING, SINGULAR, TINY, WITHIN

CLIMB_STRIDE = 0.1  # radians, or cluster sizes: loops bend a stride by its square half, 5 mrad
RETURNING = 16  # configurations from which a turn is completed to where it began
CURVED = 1e-6  # curvatures below are none: of differences by VARIED rounding leaves 1e-10


def extremes(
    part: Part,
    columns: Sequence[int],
    start: Array,
    telling: Sequence[int],
    further: Callable[[], Array],
) -> list[tuple[RangeEnd, RangeEnd]]:
    """The ends of the ranges of joints with one freedom, by their columns, and what they are.

    Uphill from the start, and from ``further`` configurations, which paths lead to, up to dead
    points of the columns ``telling``, if there are any. Joints that the start has beyond a limit go
    no further. Of joints without limits further configurations may tell that they turn fully; else
    ways from there are gone beside those from the start.
    """
    climbs = [_Climb(part, column, sign, start) for column in columns for sign in (-1.0, 1.0)]
    rows = part.rows_of(telling)

    def charted(q: Array) -> Chart:
        return Chart.at(part, q, rows) or Chart.without_rows(part, q)

    chart = charted(start)

    def beyond(climb: _Climb) -> list[_Way]:
        return [_Way(climb, q, charted(q)) for q in climb.farther(further())]

    free = [climb.column not in part.limited for climb in climbs]
    known = _without_end(climbs, chart.rows) if any(free) else [list[_Top]() for _ in climbs]
    if any(on and not tops for on, tops in zip(free, known, strict=True)):
        turning = _turning_fully(climbs, further(), chart.rows)
        known = [tops or more for tops, more in zip(known, turning, strict=True)]
    first = [
        [] if tops else [_Way(climb, start, chart), *(beyond(climb) if on else [])]
        for climb, tops, on in zip(climbs, known, free, strict=True)
    ]
    best = _highest(part, climbs, known, first)
    others = [
        [] if on or climb.farthest(top) else beyond(climb)
        for climb, top, on in zip(climbs, best, free, strict=True)
    ]
    highest = _highest(part, climbs, [[top] for top in best], others)
    ends = [climb.end(top) for climb, top in zip(climbs, highest, strict=True)]
    return [*zip(ends[::2], ends[1::2], strict=True)]


def _without_end(climbs: Sequence[_Climb], rows: Array) -> list[list[_Top]]:
    """The tops of joints without limits that go on without end straight from the start."""
    part, start, tops = climbs[0].part, climbs[0].start, list[_Top | None]([None] * len(climbs))
    some = [n for n, climb in enumerate(climbs) if climb.column not in part.limited]
    columns = [climbs[n].column for n in some]
    places = np.array([[part.place[c]] for c in columns])
    ways = np.array([[1.01 * climbs[n].sign * climbs[n].endless] for n in some])
    along, joints = climbs[0].along(rows), Positions(part.rates()[columns][:, None], places)
    begun = along.at(start[None])[np.zeros(len(some), dtype=np.intp)]
    there, ends, _ = lead(along, begun, joints, start[places] + ways)
    far = [k for k, end in enumerate(ends.tolist()) if end == FINE]
    asked = [_Round(climbs[some[k]], there.q[k], start, rows) for k in far]
    for each, k, goes_on in zip(asked, far, _rounds(part, asked), strict=True):
        if goes_on:
            tops[some[k]] = _Top(each.q, math.inf, "", "")
    return [[top] if top else [] for top in _both_ways(part, climbs, tops)]


def _turning_fully(climbs: Sequence[_Climb], reached: Array, rows: Array) -> list[list[_Top]]:
    """The tops, down and up, of hinges that turn fully, as configurations (n, nq) tell.

    From one of these a path leads back to the start, but for whole turns, of which the hinge has
    some.
    """
    part, start = climbs[0].part, climbs[0].start
    free = next(climb for climb in climbs if not climb.own)
    goal = free.turns(reached, start)
    away = part.geometry.difference(goal, reached) / part.unit
    nearest = np.argsort(np.linalg.norm(away[:, list(part.columns)], axis=1), kind="stable")
    some, alike = list[int](), list[int]()
    for n, climb in enumerate(climbs[::2]):
        if climb.column in part.turning:
            at = part.place[climb.column]
            mine = nearest[goal[nearest, at] != start[at]][:RETURNING].tolist()
            some += mine
            alike += [n] * len(mine)
    arrived = free.rounds(reached[some], start, rows, np.array(alike, dtype=np.intp))
    tops = [list[_Top]() for _ in climbs[::2]]
    for n, k in zip(
        np.array(alike)[arrived].tolist(), np.array(some)[arrived].tolist(), strict=True
    ):
        tops[n] = [_Top(reached[k], math.inf, "", "")]
    return [each for each in tops for _ in range(2)]


def _highest(
    part: Part,
    climbs: Sequence[_Climb],
    known: Sequence[list[_Top]],
    ways: Sequence[Sequence[_Way]],
) -> list[_Top]:
    """The highest tops of climbs, of known ones and of those of ways: of equals the first."""
    found, highest = iter(_tops([way for some in ways for way in some])), list[_Top | None]()
    for tops, some in zip(known, ways, strict=True):
        mine = [each for each in (*tops, *(next(found) for _ in some)) if each is not None]
        height = max((each.height for each in mine), default=0.0)
        highest.append(next((each for each in mine if each.height >= height - WITHIN), None))
    return [top for top in _both_ways(part, climbs, highest) if top is not None]


def _both_ways(
    part: Part, climbs: Sequence[_Climb], tops: Sequence[_Top | None]
) -> list[_Top | None]:
    """The tops of climbs down and up: a hinge that turns fully one way does the other way, too."""
    result = list(tops)
    for n in range(0, len(tops), 2):
        endless = [top for top in tops[n : n + 2] if top and math.isinf(top.height)]
        if endless and climbs[n].column in part.turning:
            result[n : n + 2] = endless[:1] * 2
    return result


@dataclass(frozen=True, eq=False)
class _Top:
    """A configuration from which no way leads up, and what forbids it; nothing if one is left."""

    q: Array
    height: float
    kind: Kind
    by: str


class _Step(NamedTuple):
    """Where a step ends, the chart there, and whether it is a dead point."""

    q: Array
    chart: Chart
    dead: bool


class _Place(NamedTuple):
    """Asks for the point at q while columns are held."""

    q: Array
    held: tuple[int, ...]


class _Move(NamedTuple):
    """Asks where a motion leads from a point while columns are held; nothing if no stride does."""

    start: Points
    held: tuple[int, ...]
    motion: Array


class _Turn(NamedTuple):
    """Asks for charts at neighbours q (n, nq)."""

    charts: Sequence[Chart]
    q: Array


class _Slope(NamedTuple):
    """Asks for charts' slopes."""

    charts: Sequence[Chart]


class _Round(NamedTuple):
    """Asks whether a joint that has turned to q from ``before`` can turn so for ever."""

    climb: _Climb
    q: Array
    before: Array
    rows: Array


_Asking: TypeAlias = Generator[_Place | _Move | _Turn | _Slope | _Round, Any, Any]


class _Climb:
    """Raises a joint, or lowers it, as far as from a start."""

    def __init__(self, part: Part, column: int, sign: float, start: Array) -> None:
        self.part, self.column, self.sign, self.start = part, column, sign, start
        self.limited = list(part.limited)
        self.place = [part.place[c] for c in self.limited]
        here = start[self.place]
        self.low = np.minimum(part.low[self.limited], here)
        self.high = np.maximum(part.high[self.limited], here)
        self.endless = part.endless(column)
        self.own = tuple(c for c in (column,) if c in part.hinges and c in part.limited)

    def height(self, q: Array) -> float:
        """How far up the joint is."""
        return self.sign * self.part.position(q, self.column)

    def end(self, best: _Top) -> RangeEnd:
        """The end of the range, where its highest top is known."""
        searched = not self.farthest(best)
        return RangeEnd(self.sign * best.height, best.kind, best.by, searched=searched)

    def farthest(self, top: _Top) -> bool:
        """True if nothing ends it, or the joint's own limit: no other way leads farther."""
        own = top.kind == "limit" and top.by == self.part.names[self.column]
        return math.isinf(top.height) or own

    def turns(self, q: Array, before: Array) -> Array:
        """Configurations near q (n, nq) that are whole turns from ``before``, one or (n, nq).

        Of hinges without limits, and of its own.
        """
        goal = np.array(np.broadcast_to(before, q.shape))
        turning = [self.part.place[c] for c in {*self.part.turning, *self.own}]
        goal[:, turning] += math.tau * np.round((q - before)[:, turning] / math.tau)
        return goal

    def rounds(self, q: Array, before: Array, rows: Array, alike: Indices | None = None) -> Mask:
        """From which of q (n, nq) a path leads back to ``before`` but for whole turns.

        Without dead points of a chart's rows. ``before`` is one, or (n, nq). Of those with one
        number ``alike`` the first is enough.
        """
        part, along = self.part, self.along(rows)
        places = np.array([part.place[c] for c in part.interest])
        joints, goal = Positions(part.rates()[list(part.interest)], places), self.turns(q, before)
        return np.asarray(lead(along, along.at(q), joints, goal[:, places], alike)[1] == FINE)

    def along(self, rows: Array) -> Continuation:
        """Strides within limits, up to dead points of a chart's rows."""
        rates = self.part.rates()[self.limited]
        limits = Limits(rates, np.array(self.place, np.intp), self.low, self.high)
        sheet = self.part.among(rows) if len(rows) else None
        return replace(self.part.strides(), limits=limits, sheet=sheet)

    def met(self, q: Array) -> list[tuple[int, float]]:
        """Which limits are met, and on which side."""
        at = q[self.place]
        below = np.flatnonzero(at <= self.low + WITHIN).tolist()
        above = np.flatnonzero(at >= self.high - WITHIN).tolist()
        return [(k, -1.0) for k in below] + [(k, 1.0) for k in above]

    def slopes(
        self, motions: Array, met: Sequence[tuple[int, float]], dead: Array | None
    ) -> tuple[Array, list[int | None]]:
        """The height's derivatives by motions (..., columns, n), those of limits outwards and of
        a dead point's.

        (..., rows, n). The names are of all but the height: which limit, or None of the dead
        point, whose chart has the slope ``dead``.
        """
        rows = [self.sign * motions[..., self.column, :]]
        rows += [side * motions[..., self.limited[k], :] for k, side in met]
        names: list[int | None] = [k for k, _ in met]
        if dead is not None:
            rows.append(-dead)
            names.append(None)
        return np.stack(rows, axis=-2), names

    def newton(self, chart: Chart, force: Array, direction: Array, dead: Array | None) -> _Asking:
        """The way to where what pushes leaves no slope; None where that is no top.

        It is Newton's step for the Lagrangian on what pushing limits and dead points leave.
        """
        part, met = self.part, self.met(chart.q)
        dead = dead if dead is not None and force[-1] > 0.0 else None
        pushing = [each for each, f in zip(met, force, strict=False) if f > 0.0]
        weights = np.array([1.0, *(-force[force > 0.0])])
        rows = self.slopes(chart.basis, pushing, dead)[0][1:]
        left = np.eye(chart.basis.shape[1])
        if len(rows):
            _, singular, right = np.linalg.svd(rows)
            left = right[int(np.sum(singular > SINGULAR)) :].T
        if not left.shape[1]:
            return None
        ways = VARIED * (chart.basis @ left).T * part.unit
        around = part.geometry.integrate(chart.q, np.concatenate([ways, -ways]))
        turned = yield _Turn([chart] * len(around), around)
        dead = dead if dead is None else np.array((yield _Slope(turned)))
        slopes, _ = self.slopes(np.array([each.basis for each in turned]), pushing, dead)
        ahead, behind = np.split(weights @ slopes, 2)
        curvature = left.T @ (ahead - behind).T / (2.0 * VARIED)
        values, axes = np.linalg.eigh(0.5 * (curvature + curvature.T))
        along = axes.T @ left.T @ direction
        flat = np.abs(values) <= CURVED
        if np.any(values > CURVED) or np.any(np.abs(along[flat]) > CURVED):
            return None
        return -left @ axes @ np.where(flat, 0.0, along / np.where(flat, 1.0, values))

    def met_on(self, q: Array, moved: Array, held: Sequence[int]) -> float | None:
        """The share of a way from q to where a limit is met, about; 1 within, None at once."""
        at, before = moved[self.place], q[self.place]
        over = np.maximum(at - self.high, self.low - at)
        over[[self.limited.index(c) for c in held]] = 0.0
        if not len(over) or np.max(over) <= NOTHING:
            return 1.0
        k = int(np.argmax(over))
        if abs(at[k] - before[k]) <= NOTHING:
            return None
        limit = self.high[k] if at[k] > self.high[k] else self.low[k]
        return float(np.clip((limit - before[k]) / (at[k] - before[k]), 0.0, 1.0))

    def named(self, q: Array, chart: Chart, force: Array, names: Sequence[int | None]) -> _Top:
        """The top at q: of limits that push alike the first joint's, whatever rounding says."""
        part, height = self.part, self.height(q)
        pushed = [k for k, f in zip(names, force, strict=True) if f > 1e-6]
        own = [k for k in pushed if k is not None and self.limited[k] == self.column]
        if not pushed:
            motion = np.abs(part.null(q)).sum(axis=1)
            return _Top(q, height, "dead point", part.loop_of(motion, q, [self.column]))
        most = [k for k, f in zip(names, force, strict=True) if f > np.max(force) - 1e-6]
        k = own[0] if own else min((k for k in most if k is not None), default=None)
        if k is None:
            return _Top(q, height, "dead point", chart.loop)
        if own:
            height = float(max(self.sign * self.low[k], self.sign * self.high[k]))
        return _Top(q, height, "limit", part.names[self.limited[k]])

    # ---- further starts

    def farther(self, reached: Array) -> list[Array]:
        """The farthest that is reached, the farthest away from it, and so on."""
        heights = self.sign * reached[:, self.part.place[self.column]]
        chosen: list[Array] = []
        for _ in range(4):  # further starts of a climb
            if not np.any(heights > -math.inf):
                break
            chosen.append(reached[int(np.argmax(heights))])
            away = self.part.geometry.difference(chosen[-1], reached) / self.part.unit
            # starts are half a radian, or half a cluster's size, apart
            near = np.linalg.norm(away[:, list(self.part.columns)], axis=1) < 0.5
            heights = np.where(near, -math.inf, heights)
        return chosen


class _Way:
    """One way uphill: along the gradient, then by Newton's method, step by step to its top.

    What takes time it asks for, so that many ways are answered at once.
    """

    def __init__(self, climb: _Climb, q: Array, chart: Chart) -> None:
        self.climb, self.q, self.chart, self.dead = climb, q, chart, False
        self.stride, self.left = CLIMB_STRIDE, 300  # 30 radians of the longest strides
        self.held, self.turned = tuple[int, ...](), climb.start

    def go(self) -> _Asking:
        """To the top, from which no way leads up."""
        climb = self.climb
        while True:
            motion = yield from self._turn()
            if isinstance(motion, _Top):
                return motion
            step = yield from self._step(motion)
            if step is None or climb.height(step.q) < climb.height(self.q) - NOTHING:
                self.stride *= 0.5
            else:
                self.q, self.chart, self.dead = step
                self.stride = min(CLIMB_STRIDE, 1.5 * self.stride)

    def _turn(self) -> _Asking:
        """The motion to step along next; or the top."""
        climb, q, chart, stride = self.climb, self.q, self.chart, self.stride
        if not self.left:
            return _Top(q, climb.height(q), "", "")
        self.left -= 1
        if climb.height(q) - climb.height(self.turned) > climb.endless:
            if (yield _Round(climb, q, self.turned, chart.rows)):
                return _Top(q, math.inf, "", "")
            self.turned = q
        dead = (yield _Slope([chart]))[0] if self.dead else None
        slopes, names = climb.slopes(chart.basis, climb.met(q), dead)
        force, direction = projected(slopes[0], slopes[1:])
        self.held = tuple(sorted({climb.limited[k] for k, f in zip(names, force, strict=True)
                                  if k is not None and f > 0.0}))  # fmt: skip
        size = float(np.linalg.norm(direction))
        way = direction * (stride / max(size, stride * TINY))
        newton = None
        if stride < CLIMB_STRIDE:  # the gradient overshoots
            newton = yield from climb.newton(chart, force, direction, dead)
        if newton is not None and np.linalg.norm(newton) <= stride:
            way, size = newton, float(np.linalg.norm(newton))
        # what is left of the height is the square of so short a stride
        if size <= CONVERGED or stride < 1e-5:
            return climb.named(q, chart, force, names)
        return chart.basis @ way

    def _step(self, motion: Array) -> _Asking:
        """A step along a motion, up to where a limit or a dead point is met; None: none is fine."""
        climb, q, chart, held, share = self.climb, self.q, self.chart, self.held, 1.0
        start = yield from self._place(chart, q)
        for _ in range(60):
            moved = yield _Move(start, held, share * motion)
            part = None if moved is None else climb.met_on(q, moved.q[0], held)
            if part == 1.0:
                break
            share *= part or 0.0
            if part is None or share < 1e-11:
                return None
        else:
            return None
        there = yield from self._turned(chart, moved)
        if there.value > SINGULAR:
            return _Step(there.q, there, False)
        if there.value > -SINGULAR or chart.value < SINGULAR:  # along dead points: back to them
            return (yield from self._back(there))
        at = yield from self._crossing(chart, there, start, share * motion)
        return None if at is None else (yield from self._back(at))

    def _place(self, chart: Chart, q: Array) -> _Asking:
        """The point at q, which the chart there has if nothing is held."""
        if not self.held:
            return chart.placed
        return (yield _Place(q, self.held))

    def _turned(self, chart: Chart, moved: Points) -> _Asking:
        """A point's chart where a stride has led to, which has its motions if nothing is held."""
        if not self.held and (there := chart.carried(moved)) is not None:
            return there
        return (yield _Turn([chart], moved.q))[0]

    def _crossing(self, chart: Chart, last: Chart, start: Points, motion: Array) -> _Asking:
        """The chart at a dead point on a step, about."""

        def there(share: float) -> _Asking:
            moved = yield _Move(start, self.held, share * motion)
            return None if moved is None else (yield from self._turned(chart, moved))

        ends = bracketing((0.0, 1.0), (chart.value, last.value), 1e-6)
        try:
            share = next(ends)
            while True:
                at = yield from there(share)
                share = ends.send(-1.0 if at is None else at.value)
        except StopIteration as end:
            return (yield from there(end.value))

    def _back(self, chart: Chart) -> _Asking:
        """To the nearest dead point, by Newton's method."""
        held = list(self.held)
        for _ in range(8):
            if abs(chart.value) < NOTHING:
                break
            (slope,), resting = (yield _Slope([chart])), chart.basis[held]
            slope = slope - np.linalg.pinv(resting) @ (resting @ slope)
            size = float(slope @ slope)
            if not size:
                return None
            way = chart.basis @ slope * (-chart.value / size)
            start = yield from self._place(chart, chart.q)
            moved = yield _Move(start, self.held, way)
            if moved is None:
                return None
            chart = yield from self._turned(chart, moved)
        return _Step(chart.q, chart, True) if abs(chart.value) < SINGULAR else None


def _tops(ways: Sequence[_Way]) -> list[_Top | None]:
    """The tops of ways of one part, which are gone side by side.

    Of a climb that has gone as far as can be there is none of other ways. Ways of a hinge that
    turns fully end there, up and down.
    """
    tops: list[_Top | None] = [None] * len(ways)
    going = {n: way.go() for n, way in enumerate(ways)}
    asked: dict[int, Any] = {}

    def resume(n: int, answer: Any) -> None:
        try:
            asked[n] = going[n].send(answer)
        except StopIteration as end:
            climb, tops[n] = ways[n].climb, end.value
            if climb.farthest(end.value):
                endless = math.isinf(end.value.height) and climb.column in climb.part.turning
                for m, way in enumerate(ways):
                    if way.climb is climb or (endless and way.climb.column == climb.column):
                        tops[m] = end.value if endless else tops[m]
                        going.pop(m, None)
                        asked.pop(m, None)

    for n in range(len(ways)):
        if n in going:
            resume(n, None)
    while asked:
        for kind, answers in _ANSWERS:
            mine = {n: each for n, each in asked.items() if isinstance(each, kind)}
            if not mine:
                continue
            for n in mine:
                del asked[n]
            for n, answer in zip(mine, answers(ways[0].climb.part, [*mine.values()]), strict=True):
                if n in going:
                    resume(n, answer)
    return tops


def _by_held(asked: Sequence[_Place | _Move]) -> list[list[int]]:
    """Which of these hold as many columns."""
    alike: dict[int, list[int]] = {}
    for n, each in enumerate(asked):
        alike.setdefault(len(each.held), []).append(n)
    return [*alike.values()]


def _placed(part: Part, asked: Sequence[_Place]) -> list[Points]:
    """The points that are asked for."""
    found: dict[int, Points] = {}
    for some in _by_held(asked):
        points = part.points(np.array([asked[n].q for n in some]), [asked[n].held for n in some])
        points = replace(points, case=np.zeros(len(some), dtype=np.intp))
        found |= {n: points[[k]] for k, n in enumerate(some)}
    return [found[n] for n in range(len(asked))]


def _moved(part: Part, asked: Sequence[_Move]) -> list[Points | None]:
    """The points to which motions lead."""
    found: dict[int, Points | None] = {}
    for some in _by_held(asked):
        helds = [*dict.fromkeys(asked[n].held for n in some)]
        case = np.array([helds.index(asked[n].held) for n in some], dtype=np.intp)
        starts = replace(joined([asked[n].start for n in some]), case=case)
        motions = np.array([part.among(asked[n].motion, asked[n].held) for n in some])
        ways = np.einsum("ncm,nc->nm", starts.n, motions)
        there, ends = part.strides(*helds).stride(starts, ways)
        found |= {n: there[[k]] if ends[k] == FINE else None for k, n in enumerate(some)}
    return [found[n] for n in range(len(asked))]


def _turned(_: Part, asked: Sequence[_Turn]) -> list[list[Chart]]:
    """Charts at neighbours."""
    q = np.concatenate([each.q for each in asked])
    turned = turned_charts([chart for each in asked for chart in each.charts], q)
    left = iter(turned[n] for n in range(len(q)))
    return [[next(left) for _ in each.charts] for each in asked]


def _sloped(_: Part, asked: Sequence[_Slope]) -> list[list[Array]]:
    """Charts' slopes."""
    left = iter(slopes([chart for each in asked for chart in each.charts]))
    return [[next(left) for _ in each.charts] for each in asked]


def _rounds(_: Part, asked: Sequence[_Round]) -> list[bool]:
    """Which joints can turn for ever, but for their own limits.

    Those that couplings turn, or that slide, go far enough.
    """
    found, alike = [True] * len(asked), dict[tuple[bytes, tuple[int, ...]], list[int]]()
    for n, each in enumerate(asked):
        if each.climb.column in each.climb.part.hinges:
            alike.setdefault((each.rows.tobytes(), each.climb.own), []).append(n)
    for some in alike.values():
        q, before = (np.array([getattr(asked[n], x) for n in some]) for x in ("q", "before"))
        for n, fine in zip(
            some, asked[some[0]].climb.rounds(q, before, asked[some[0]].rows), strict=True
        ):
            found[n] = bool(fine)
    return found


_ANSWERS: tuple[tuple[type, Callable[[Part, Sequence[Any]], Sequence[Any]]], ...] = (
    (_Place, _placed),
    (_Move, _moved),
    (_Turn, _turned),
    (_Slope, _sloped),
    (_Round, _rounds),
)


def projected(gradient: Array, rows: Array) -> tuple[Array, Array]:
    """Forces of one-sided rows against a gradient, and what they leave of it.

    Least squares with forces that only push (Lawson and Hanson, Solving least squares problems,
    1974).
    """
    force, pushing = np.zeros(len(rows)), list[int]()
    left, slopes = gradient, rows @ gradient
    least = NOTHING * np.linalg.norm(gradient)
    for _ in range(3 * len(rows)):
        slopes[pushing] = 0.0
        if not np.any(slopes > least):
            break
        pushing.append(int(np.argmax(slopes)))
        while True:
            wanted = np.linalg.lstsq(rows[pushing].T, gradient)[0]
            if np.all(wanted > 0.0):
                break
            now = force[pushing]
            shares = np.where(wanted > 0.0, 1.0, now / np.maximum(now - wanted, TINY))
            force[pushing] = now + np.min(shares) * (wanted - now)
            force[pushing.pop(int(np.argmin(shares)))] = 0.0
        force[:] = 0.0
        force[pushing] = wanted
        left = gradient - rows.T @ force
        slopes = rows @ left
    return force, left
