"""A simulation under way: steps, charts, change points, and what is kept of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.model.variants.charts import linkages
from robomodel.motion.change_points import (
    Care,
    CrossedError,
    NearError,
    StepError,
    closed_by_least_squares,
    condition,
    distance,
    may_meet,
    passes,
    settle,
    turned,
)
from robomodel.motion.charts import GOOD, UNSAID, Look, View, look
from robomodel.motion.inputs import Inputs, Saturated
from robomodel.motion.integrator_functions import position_rates
from robomodel.motion.integrators import STEPS, Motion
from robomodel.motion.limits import Limits
from robomodel.motion.singular import advice
from robomodel.motion.trajectory import (
    Independent,
    SimulationError,
    Stop,
    Trajectory,
)
from robomodel.running import Progress

ADAPTIVE = ("dop853", "radau")
MOST = 2**53  # steps, beyond which their times are not told apart
SINGULAR = 1e6  # condition of loops beyond which a start counts as singular
NEARLY = 30.0  # condition of loops from which on a step that fails may fail for them
# steps that keep their stages away from a change point: by how far, and in which parts
FIXED_LEAST = (3e-4, 1e-4, 3e-5)
PARTS = ((1.0,), (0.6, 0.4), (0.45, 0.55), (0.75, 0.25), (0.3, 0.7))
STRAIGHT = 0.88  # cosine of the angle by which a linkage's motions may turn in a fixed step
FINER = (1, 4, 16, 64)  # parts of steps in which they do, or that reach another way to close loops
BEYOND = (0.5, 0.3, 0.7)  # shares of the next step, where a step would end too near


@dataclass(frozen=True)
class Row:
    """A state in the chart of ``view``, the forces on the model's own joints, joints' velocities
    where the chart's v do not say them.
    """

    time: float
    x: Array
    tau: Array
    view: View
    rates: Array | None = None


@dataclass(frozen=True)
class Mark:
    """Chart, systems of the loops and the q where they are these, and what is told of charts."""

    view: View
    systems: Array | None
    closed: Array | None
    charts: tuple[Independent, ...]


@dataclass
class Run:
    """A simulation under way."""

    model: Model
    method: str
    inputs: Inputs
    limits: Limits
    rows: list[Row] = field(default_factory=list)
    saturated: list[Array] = field(default_factory=list)
    stop: Stop | None = None
    knots: list[float] = field(default_factory=list)
    pieces: list[Any] = field(default_factory=list)
    charts: list[Independent] = field(default_factory=list)
    systems: Array | None = None
    closed: Array | None = None  # the q of these systems
    looks: list[Look] = field(default_factory=list)  # and its linkages
    ahead: tuple[Array, list[Look]] | None = None  # a q that steps have led to, looked at

    def __post_init__(self) -> None:
        self.view = View.of(self.model)

    # ---- what is kept

    def trajectory(self) -> Trajectory:
        """What there is up to now."""
        nq, nv, count = self.model.nq, self.model.nv, len(self.rows)
        times = np.array([row.time for row in self.rows])
        states = np.array([row.x for row in self.rows]).reshape(count, nq + nv)
        tau = np.array([row.tau for row in self.rows]).reshape(count, nv)
        q, v = states[:, :nq], states[:, nq:].copy()
        rates = None
        if any(not row.view.is_own or row.rates is not None for row in self.rows):
            rates = np.empty((count, self.model.n_joint_velocities))
            for view in dict.fromkeys(row.view for row in self.rows):
                here = [n for n, row in enumerate(self.rows) if row.view == view]
                jacobian = view.model.constraint_jacobian(q[here])
                rates[here] = np.einsum("...ij,...j->...i", jacobian, v[here])
                v[here] = view.velocities(q[here], v[here])
            own = [c.spanning_v.start + i for c in self.model.clusters for i in c.columns]
            for n, row in enumerate(self.rows):
                if row.rates is not None:
                    rates[n], v[n] = row.rates, row.rates[own]
        dense = None
        if self.pieces:
            from scipy.integrate import OdeSolution

            dense = OdeSolution(self.knots, self.pieces)
        return Trajectory(
            self.model, self.method, times, q, v, tau, self.stop, dense,
            None, None, np.array(self.saturated) if self.saturated else None,
            tuple(self.charts), rates,
        )  # fmt: skip

    def keep(self, t: float, x: Array, motion: Motion, rates: Array | None = None) -> None:
        """Record a state, under the forces of the step that it begins or ends."""
        own = motion.view.state(x)
        nq = self.model.nq
        tau = np.array(motion.tau(t, own[:nq], own[nq:]))
        self.rows.append(Row(t, x, tau, motion.view, rates))
        if isinstance(motion.tau, Saturated):
            self.saturated.append(motion.tau.at_limits(t, own[:nq], own[nq:]))

    # ---- charts

    def begin(self, x: Array) -> Array:
        """The start, in the chart to begin with; ValueError where v does not say the motion."""
        self.charts.append(Independent(0.0, self.view.model.dof_names))
        q, v = x[: self.model.nq], x[self.model.nq :]
        if not linkages(self.model):
            return x
        for linkage, seen in zip(linkages(self.model), look(self.view, q), strict=True):
            cluster = self.model.clusters[linkage.index]
            if seen.kept < 1.0 / SINGULAR:
                worst = 1.0 / seen.kept if seen.kept else math.inf
                raise self.error(0.0, "it starts at a singular position", linkage.index, worst, x)
            if seen.goodness <= UNSAID and np.any(v[cluster.v]):
                names = ", ".join(f"'{name}'" for name in cluster.independent)
                raise ValueError(
                    f"v does not say how the linkage moves: at q, {names} rest while other joints "
                    "move; start from rest or a little later, or load the robot with other "
                    "independent joints"
                )
        return self._charted(0.0, x)

    def accept(self, t: float, x: Array) -> Array:
        """X in the chart to go on in; refuses what is not finite."""
        if not np.all(np.isfinite(x)):
            raise self.error(t, "the state is not finite")
        return x if self.systems is None else self._charted(t, x)

    def crosses(self, q: Array) -> int | None:
        """A cluster that a step to q has led over to another way to close its loops."""
        if self.systems is None or not np.all(np.isfinite(q)):
            return None
        assert self.closed is not None
        model = self.view.model
        crossed = turned(model, self.systems, settle(model, q)[1])
        if crossed is None or passes(model, self.closed, q):
            return None
        return crossed

    def _bends(self, q: Array) -> bool:
        """Whether the directions in which a linkage may move have turned by much since the last q.

        Where many motions are possible: the one that has turned by most.
        """
        if not (self.looks and np.all(np.isfinite(q))):
            return False
        self.ahead = q, look(self.view, q)
        for now, then in zip(self.ahead[1], self.looks, strict=True):
            common = np.linalg.svd(now.motions.T @ then.motions, compute_uv=False)
            if common[-1] < STRAIGHT:
                return True
        return False

    def _charted(self, t: float, x: Array, good: float = GOOD) -> Array:
        """X in the best chart, or the present one if it is good enough."""
        q = x[: self.model.nq]
        whole = self.method not in ADAPTIVE
        known = self.ahead is not None and np.array_equal(self.ahead[0], q)
        self.looks = self.ahead[1] if self.ahead and known else look(self.view, q)
        view, x = self.view.changed(self.looks, x, whole=whole, good=good)
        if view != self.view:
            self._enter(view)
            if t <= self.charts[-1].time:
                self.charts.pop()
            self.charts.append(Independent(float(t), view.model.dof_names))
        self.systems, self.closed = settle(view.model, q)[1], q
        return x

    def best(self, t: float, x: Array) -> Array:
        """X in the best chart there is."""
        return self._charted(t, x, math.inf)

    def mark(self) -> Mark:
        """Where a step begins, for another try."""
        return Mark(self.view, self.systems, self.closed, tuple(self.charts))

    def back_to(self, mark: Mark) -> None:
        """The chart of the beginning of a step."""
        self._enter(mark.view)
        self.systems, self.closed, self.charts = mark.systems, mark.closed, list(mark.charts)

    def _enter(self, view: View) -> None:
        self.ahead = None  # goodness is that of a chart
        self.view = view

    # ---- steps of given lengths

    def reach(self, motion: Motion, t: float, h: float, x: Array) -> Array:
        """The state after a step, in the chart of ``self.view``.

        A step that leads over to another way to close the loops, or in which the directions in
        which a linkage may move turn by much, is taken anew in the best joints at its beginning,
        and in parts. Raises :class:`StepError`.
        """
        after = self.advance(motion, t, h, x)
        crossed = self.crosses(after[: self.model.nq])
        if crossed is None and not self._bends(after[: self.model.nq]):
            return after
        mark = self.mark()
        for parts in FINER:
            y = self._charted(t, x, math.inf)
            try:
                for n in range(parts):
                    if n:
                        y = self._charted(t + n * h / parts, y, math.inf)
                    now = replace(motion, view=self.view)
                    y = self.advance(now, t + n * h / parts, h / parts, y)
                    again = self.crosses(y[: self.model.nq])
                    if again is not None:
                        raise CrossedError(again)
                    if parts < FINER[-1] and self._bends(y[: self.model.nq]):
                        raise StepError("the motions of a linkage turn by too much")
            except StepError:
                self.back_to(mark)
                continue
            return y
        if crossed is None:
            return after
        raise CrossedError(crossed)

    def advance(self, motion: Motion, t: float, h: float, x: Array) -> Array:
        """A step; in parts, where its stages would come too near to a change point.

        Raises :class:`NearError` where its end does.
        """
        step = STEPS[self.method]
        if self.systems is None or not may_meet(motion.model, x, h, self.systems):
            return step(motion, t, h, x)
        error: StepError | None = None
        for least in FIXED_LEAST:
            careful = replace(motion, care=Care(motion.model, least))
            for parts in PARTS:
                try:
                    at, now = x, t
                    for share in parts:
                        at = step(careful, now, share * h, at)
                        now += share * h
                        careful.settled(at)
                except StepError as found:
                    error = found
                    continue
                return at
        raise NearError(str(error))

    # ---- what goes wrong

    def failed(self, t: float, x: Array, why: StepError | str) -> SimulationError:
        """The error of a step from x that came to nothing; loops are blamed where they may be."""
        if isinstance(why, CrossedError):
            what = (
                "the step from there leads beyond a singular position, over to another way to "
                "close the loops; take shorter ones"
            )
            worst = 1.0 / distance(self.view.model, settle(self.view.model, x[: self.model.nq])[1])
            return self.error(t, what, why.cluster, worst)
        what = f"the step from there fails ({why})" if isinstance(why, StepError) else why
        try:
            model = self.view.model
            worst, cluster = condition(model, settle(model, x[: self.model.nq])[1])
        except StepError:
            worst, cluster = math.inf, -1
        return self.error(t, what, cluster, worst, x if worst > NEARLY else None)

    def error(
        self,
        t: float,
        what: str,
        cluster: int = -1,
        worst: float | None = None,
        singular: Array | None = None,
    ) -> SimulationError:
        """What is told of a motion that cannot be continued, ``singular`` at or near a state."""
        head = f"the motion of '{self.model.name}' cannot be continued at {t:.6g} s: {what}"
        if cluster < 0:
            return SimulationError(head, t, trajectory=self.trajectory())
        found = self.view.model.clusters[cluster]
        loops = tuple(loop.name for loop in found.geometry.loops)
        names = ", ".join(f"'{name}'" for name in loops)
        message = (
            f"{head}; loops {names} are at condition {worst:.3g} as seen from "
            f"{', '.join(found.independent)}"
        )
        if singular is not None:
            message += f": {advice(self.view.model, found, singular[: self.model.nq])}"
        return SimulationError(
            message, t, loops=loops, condition=worst, trajectory=self.trajectory()
        )


def count_steps(duration: float, step: float) -> int:
    """Steps in a duration, the last one perhaps shorter."""
    steps = duration / step
    if not steps < MOST:
        raise ValueError(f"a step of {step:g} s is too short for a duration of {duration:g} s")
    nearest = round(steps)
    return nearest if abs(steps - nearest) <= 1e-9 * max(1.0, steps) else math.ceil(steps)


def fixed(run: Run, x: Array, duration: float, step: float, bar: Progress) -> None:
    """Steps of one length; the last one is shorter where the duration asks for it."""
    count = count_steps(duration, step)
    x = run.begin(x)
    motion = run.inputs.during(0, 0.0, x, run.view)
    run.keep(0.0, x, motion)
    k = 0
    while k < count:
        t = k * step
        end = duration if k == count - 1 else (k + 1) * step
        if k:
            motion = run.inputs.during(k, t, x, run.view)
            run.keep(t, x, motion)

        def at(
            share: float,
            mark: Mark = run.mark(),  # noqa: B008 - of this step
            motion: Motion = motion,
            t: float = t,
            h: float = end - t,
            x: Array = x,
        ) -> Array:
            run.back_to(mark)
            return run.reach(motion, t, share * h, x)

        try:
            after = at(1.0)
        except NearError:
            try:
                after, k, end = _over(run, motion, (k, count, step, duration), x)
            except StepError as error:
                raise run.failed(t, x, error) from None
            if k == count:
                return
        except StepError as error:
            raise run.failed(t, x, error) from None
        met = run.limits.first(t, end - t, x, after, at)
        if met is not None:
            _, x, run.stop = met
            x = run.accept(run.stop.time, x)
            run.keep(run.stop.time, x, replace(motion, view=run.view))
            return
        x = run.accept(end, after)
        k += 1
        bar.at(end)
    if count:
        run.keep(duration, x, replace(motion, view=run.view))


def _over(
    run: Run, motion: Motion, grid: tuple[int, int, float, float], x: Array
) -> tuple[Array, int, float]:
    """Step k, which would end at a change point, and the one after it, by a longer and a shorter.

    Keeps the state in between, told from those around. Returns the state after both with the number
    of the second and the time of its end; where k is the last one, with the number of all.
    """
    k, count, step, duration = grid
    t, between = k * step, duration if k == count - 1 else (k + 1) * step
    end = duration if k >= count - 2 else (k + 2) * step
    last = k == count - 1
    length = between - t if last else end - between
    error: StepError | None = None
    for share in BEYOND:
        try:
            beyond = run.advance(motion, t, between - t + share * length, x)
            now = between + share * length
            state, rates = _told(motion, (t, x), (now, beyond), between)
            if last:
                run.keep(duration, state, motion, rates)
                return beyond, count, duration
            later = run.inputs.during(k + 1, between, state, run.view)
            after = run.advance(later, now, (1.0 - share) * length, beyond)
        except StepError as found:
            error = found
            continue
        run.keep(between, state, later, rates)
        return after, k + 1, end
    assert error is not None
    raise error


def _told(
    motion: Motion, first: tuple[float, Array], last: tuple[float, Array], t: float
) -> tuple[Array, Array]:
    """(q, v) and joints' velocities at t, where K has lost rank, by cubics between two states."""
    from scipy.interpolate import CubicHermiteSpline

    model = motion.model
    nq = model.nq
    values, slopes = [], []
    for time, x in (first, last):
        q, v = x[:nq], x[nq:]
        a = motion.rate(time, x)[nq:]
        g = model.constraint_jacobian(q)
        values.append(np.concatenate([x, g @ v]))
        slopes.append(
            np.concatenate([position_rates(model)(q, v), a, g @ a + model.constraint_bias(q, v)])
        )
    found = CubicHermiteSpline([first[0], last[0]], values, slopes)(t)
    q = closed_by_least_squares(model, found[:nq])
    size = nq + model.nv
    return np.concatenate([q, found[nq:size]]), found[size:]
