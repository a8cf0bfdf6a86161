"""Adaptive steps: SciPy's solvers move x = (q, z) in tangent coordinates of linkages.

Their bases are renewed when linkages have turned by much; loops are closed after each step. A step
over a change point (:mod:`robomodel.motion.change_points`) has a length that puts the point into
the middle of the widest gap between the times at which the method evaluates rates. States within
this gap are interpolated by a polynomial through states of the same step outside of it. If the
motion ends, or forces change, within the gap, the step leads beyond, and the state is interpolated.

Dry friction and losses in gears are smooth in phases (:mod:`robomodel.motion.phases`). A step in
which one ends is cut to its end, which the interpolant has located; the motion goes on from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from robomodel.arrays import Array
from robomodel.mechanism.roots import root
from robomodel.motion.change_points import Way, interpolated, placed
from robomodel.motion.inputs import Signals, stacked
from robomodel.motion.integrator_functions import (
    Coordinates,
    independent_columns,
    joint_rates,
)
from robomodel.motion.phases import Instant, Phase, PhaseEnd, Rubbing
from robomodel.motion.plant import flow
from robomodel.motion.stepping import Grid, Run
from robomodel.motion.steps import FixedStep
from robomodel.motion.tangent import StepError
from robomodel.motion.trajectory import Trajectory
from robomodel.tolerances import CLOSED, NOTHING, ROUNDING, SAME

FINEST = 100.0 * float(np.finfo(float).eps)  # relative tolerance, as SciPy has it
RENEWED = 1.2  # growth of ‖G‖² above which bases are renewed
TOO_LONG = 4.0  # growth of ‖G‖² for which a step is too long
MOST_TURN = 3.0  # K turns by at most this multiple of the joints' motion
AROUND = 4  # states on each side of a gap: their polynomial has the order of DOP853's interpolant


@cache
def stages(method: str) -> Array:
    """Times of a method's evaluations of rates, as shares of a step; also for its interpolant."""
    from scipy.integrate import DOP853

    root = math.sqrt(6.0)
    radau = (0.0, (4.0 - root) / 10.0, (4.0 + root) / 10.0, 1.0)
    return np.sort(radau if method == "radau" else [*DOP853.C, *DOP853.C_EXTRA])


class NearError(StepError):
    """A stage is too near to a change point."""


@dataclass(frozen=True)
class Equations:
    """The equations of motion in tangent coordinates, under forces that hold up to ``end``.

    ``least``: the distance from change points that stages must keep, with loops closed at each;
    None: any. ``start``: a time and x at a change point, and the rate there. ``rubbing``: dry
    friction and losses, if there are some, which are in a ``phase``.
    """

    step: FixedStep
    signals: Signals
    coordinates: Coordinates
    end: float
    least: float | None = None
    start: tuple[float, Array, Array] | None = None
    rubbing: Rubbing | None = None
    phase: Phase | None = None

    def rate(self, t: float, x: Array) -> Array:
        """ẋ."""
        if self.start is not None and t == self.start[0] and np.array_equal(x, self.start[1]):
            return self.start[2]
        if self.least is not None:
            x = self.closed(x)[0]
        if self.phase is not None:
            return self.instant(t, x).moved(self.phase)
        row, tau, pushes = self._acting(t, x)
        derivative = flow(self.step.model, tuple(pushes), passive=self.step.plant.passive)
        return np.asarray(derivative(row, tau, *stacked(pushes)))

    def instant(self, t: float, x: Array) -> Instant:
        """Dry friction and losses."""
        assert self.rubbing is not None
        return self.rubbing.at(*self._acting(t, x))

    def _acting(self, t: float, x: Array) -> tuple[Array, Array, Mapping[str, Array]]:
        """q, z and bases, forces and wrenches."""
        row = self.coordinates.row(x)
        at = self.step.layout.independent(row)
        return row, *self.signals.at(min(t, self.end), *at)

    def closed(self, x: Array) -> tuple[Array, float]:
        """x with closed loops, and its distance from change points."""
        if self.least is None:
            return self.coordinates.closed(x)
        try:
            x, distance = self.coordinates.closed(x)
        except StepError as error:
            raise NearError(str(error)) from None
        if not distance >= self.least:
            raise NearError("it comes too near to a change point")
        return x, distance


@dataclass(frozen=True)
class Interpolant:
    """A step's interpolant; a call returns (q, v).

    ``hidden``: the times between which a change point may be.
    """

    coordinates: Coordinates
    dense: Callable[[float], Array]
    span: tuple[float, float]
    hidden: tuple[float, float] | None = None

    def __call__(self, t: float) -> Array:
        """(q, v), loops closed."""
        model = self.coordinates.model
        state = self.at(float(t))
        speeds = state[len(state) - model.n_joint_velocities :]
        return np.concatenate([state[: model.nq], speeds[independent_columns(model)]])

    def at(self, t: float) -> Array:
        """q, with loops closed; z, the bases and the velocities of all joints."""
        x, nq = self.dense(t), self.coordinates.model.nq
        if not self.hides(t):
            x, _ = self.coordinates.closed(x)
            speeds = self.coordinates.joint_rates(x)
        else:
            around = [np.append(y[:nq], self.coordinates.joint_rates(y)) for y in self._around[1]]
            way = Way(self.coordinates.model, self._around[0], around)
            q, speeds = way.at(t, CLOSED)
            x = np.append(q, x[nq:])
        return np.append(self.coordinates.row(x), speeds)

    def hides(self, t: float) -> bool:
        """True if a change point may be so near that the equations are singular."""
        return self.hidden is not None and self.hidden[0] < t < self.hidden[1]

    def rate(self, equations: Equations, t: float) -> Array:
        """ẋ under other forces, at a time at which a change point may be."""
        rates = [equations.rate(equations.end, x) for x in self._around[1]]
        return interpolated(t, self._around[0], rates)

    @cached_property
    def _around(self) -> tuple[Array, list[Array]]:
        assert self.hidden is not None
        (first, last), (low, high) = self.span, self.hidden
        before = AROUND if low > first else 0
        after = np.linspace(high, last, 2 * AROUND - before)
        times = np.append(np.linspace(first, low, before), after)
        return times, [self.coordinates.closed(self.dense(t))[0] for t in times.tolist()]


@dataclass
class Adaptive(Run):
    """DOP853 or Radau, step by step.

    States are q, z, the bases and the velocities of all joints, in one array. ``every``: the time
    between states that are recorded; None: at the method's own steps.
    """

    every: float | None = None
    tolerances: tuple[float, float] = (FINEST, FINEST)
    rubbing: Rubbing | None = None
    knots: list[float] = field(default_factory=list, init=False)
    pieces: list[Interpolant] = field(default_factory=list, init=False)
    _length: float | None = field(default=None, init=False)
    _distance: float = field(default=1.0, init=False)
    _leading: float = field(default=0.0, init=False)  # length of DOP853's steps beside Radau's
    _phase: Phase | None = field(default=None, init=False)
    _ends: tuple[float, int] = field(default=(-math.inf, 0), init=False)  # last end of a phase

    def _begin(self, x: Array) -> Array:
        row = self.step.layout.tangent_row(super()._begin(x))
        return np.concatenate([row, np.asarray(joint_rates(self.model)(row))])

    def _independent(self, state: Array) -> tuple[Array, Array]:
        return state[: self.model.nq], self._speeds(state)[independent_columns(self.model)]

    def _speeds(self, state: Array) -> Array:
        return state[len(state) - self.model.n_joint_velocities :]

    def _trajectory(self, **more: Any) -> Trajectory:
        if self.pieces:
            from scipy.integrate import OdeSolution

            more["dense"] = OdeSolution(self.knots, self.pieces)
        return super()._trajectory(**more)

    def advance(self, signals: Signals, k: int, grid: Grid, state: Array) -> Array:
        """The state after the method's own steps through step k of the grid."""
        t, end = grid.at(k), grid.at(k + 1)
        size = self.model.nq + self.model.nv
        x, bases = state[:size], state[size : len(state) - self.model.n_joint_velocities]
        coordinates = Coordinates(self.model, bases)
        equations = Equations(self.step, signals, coordinates, end)
        if not self.knots:
            self.knots.append(t)
        if self.pieces and self.pieces[-1].hides(t):
            rate = self.pieces[-1].rate(equations, t)
            equations = replace(equations, start=(t, x, rate))
        elif not k and not np.all(np.isfinite(equations.rate(t, x))):
            raise self._failed(t, state, "accelerations are not finite")
        if self.rubbing is not None:
            equations, state = self._entered(replace(equations, rubbing=self.rubbing), t, state)
            x = state[:size]
        self._distance = coordinates.distance(x)
        solver = self._solver(equations, (t, end), x, self._length)
        if self._length is None:
            self._length = solver.h_abs
        while True:
            try:
                solver, piece = self._step(solver, equations)
                now, over = self._lasting(equations, piece, t, min(piece.span[1], end))
                ends = piece.at(now)
            except StepError as error:
                what = f"the step from there fails ({error})"
                raise self._failed(t, state, what) from None

            def at(
                share: float, t: float = t, h: float = now - t, piece: Interpolant = piece
            ) -> Array:
                return piece.at(t + share * h)

            met = self.limits.first(t, now - t, state, ends, at)
            if met is not None:
                _, ends, self.stop = met
                now, over = self.stop.time, None
            if not np.all(np.isfinite(ends)):
                raise self._error(now, "the state is not finite")
            if now > self.knots[-1]:
                self.knots.append(now)
                self.pieces.append(piece)
            if self.every is not None:  # the end of a segment is its caller's to keep
                self._keep_between(signals, t, min(now, end - 2e-9 * self.every), piece)
            t, state = now, ends
            if over is not None:
                equations, state = self._entered(replace(equations, start=None), t, state, over)
            if self.stop is not None or now >= end:
                break
            if self.every is None:
                self._keep(now, state, signals)
            x = state[:size]
            coordinates, renewed, checks = equations.coordinates.renewed(x)
            if len(checks) and checks[1] > RENEWED:
                equations = replace(equations, coordinates=coordinates, start=None)
                state = np.concatenate([coordinates.row(renewed), self._speeds(state)])
                solver = self._solver(equations, (now, end), renewed, self._length)
            elif over is not None:
                solver = self._solver(equations, (now, end), x, self._length)
            else:
                solver.y, solver.f = x, equations.rate(now, x)
            self.progress(now)
        return state

    # ---- phases of dry friction and losses

    def _entered(
        self, equations: Equations, t: float, state: Array, over: PhaseEnd | None = None
    ) -> tuple[Equations, Array]:
        """The equations in the phase from t on, and the state: rows that stick are at rest.

        ``over``: what has ended the phase before; None: inputs may have changed. Meshes that jam
        have stopped.
        """
        size, last = self.model.nq + self.model.nv, self._phase
        x, at = state[:size].copy(), equations.instant(t, state[:size])
        rows, meshes = len(at.b), len(at.load)
        still, kept = at.is_still(), np.zeros(meshes, dtype=bool)
        way, flank = np.sign(at.speeds), np.ones(meshes)
        if last is not None:
            still |= last.sticks
            flank = last.flank.copy()
        if last is not None and over is not None:
            loose = over.rows & last.sticks
            still = (still | over.rows) & ~loose
            way[loose] = over.way[loose]
            kept = over.flanks
            flank[kept] *= -1.0
        for _ in range(meshes + 1):
            x[self.model.nq :] = at.rested(x[self.model.nq :], still)
            at = equations.instant(t, x)
            self._phase, jammed = at.next(way, flank, still, kept)
            if not np.any(jammed):
                break
            x[self.model.nq :] += at.stopped(jammed)
            at = equations.instant(t, x)
            still = at.is_still() | still
            still[rows - meshes :] |= jammed
            way, kept = np.where(still, 0.0, np.sign(at.speeds)), np.zeros(meshes, dtype=bool)
        speeds = equations.coordinates.joint_rates(x)
        bases = state[size : len(state) - len(speeds)]
        return replace(equations, phase=self._phase), np.concatenate([x, bases, speeds])

    def _lasting(
        self, equations: Equations, piece: Interpolant, t: float, now: float
    ) -> tuple[float, PhaseEnd | None]:
        """The time within a step up to which its phase lasts, and what ends it there."""
        phase = equations.phase
        if phase is None:
            return now, None

        def instant(time: float) -> Instant:
            return equations.instant(time, piece.at(time)[: self.model.nq + self.model.nv])

        first = t
        before, _ = instant(t).margins(phase)
        for time in (t + (now - t) * np.unique(stages("dop853"))[1:]).tolist():
            beyond = instant(time)
            after, sizes = beyond.margins(phase)
            ended = after < -NOTHING * sizes
            if np.any(ended):
                break
            first, before = time, after
        else:
            return now, None
        roots = np.full(len(after), np.inf)
        for i in np.flatnonzero(ended).tolist():

            def margin(time: float, i: int = i) -> float:
                return float(instant(time).margins(phase)[0][i])

            ends = float(before[i]), float(after[i])
            roots[i] = root(margin, (first, time), ends, 0.0)
        until = float(np.min(roots))
        self._check_progress(until, len(roots))
        over = ended & (np.abs(instant(until).margins(phase)[0]) <= SAME * sizes)
        rows, flanks = np.split(over | (roots == until), [len(beyond.b)])
        return until, PhaseEnd(rows, flanks, beyond.leaving(phase))

    def _check_progress(self, t: float, most: int) -> None:
        """Raise :class:`StepError` if phases end at one time again and again."""
        last, count = self._ends
        same = t - last <= ROUNDING * max(1.0, t)
        self._ends = (last, count + 1) if same else (t, 0)
        if self._ends[1] > 2 * most:
            raise StepError("finds no phase of dry friction that lasts")

    def _solver(
        self, equations: Equations, span: tuple[float, float], x: Array, length: float | None,
        method: str | None = None,
    ) -> Any:  # fmt: skip
        """A solver over a span of time, whose first step has this length."""
        from scipy.integrate import DOP853, Radau

        (t, end), (rtol, atol) = span, self.tolerances
        if equations.least and length is not None:  # in shorter steps errors are rounding
            turned = length * self._speed(x, equations) ** 2 / equations.least**2
            atol = max(atol, float(np.finfo(float).eps) * turned)
        first = None if length is None or t == end else min(length, end - t)
        method_class = Radau if (method or self.step.method) == "radau" else DOP853
        solver = method_class(equations.rate, t, x, end, rtol=rtol, atol=atol, first_step=first)
        if not (math.isfinite(solver.h_abs) and solver.h_abs > 0.0):
            what = f"no first step is short enough for rtol {rtol:g}, atol {atol:g}"
            raise self._failed(t, x, what)
        return solver

    def _step(self, solver: Any, equations: Equations) -> tuple[Any, Interpolant]:
        """One step: the solver after it, and its interpolant.

        Steps in which linkages turn by too much, or come nearer to change points than predicted,
        are repeated with half their length. Near change points Radau's steps, of order five, may
        be shorter than the distance that stages must keep; if DOP853's are longer, they lead over
        it.
        """
        t, x, rate = float(solver.t), solver.y, solver.f
        h, method = self._length, self.step.method
        assert h is not None
        starts = equations.start is not None and equations.start[0] == t
        if starts:  # where DOP853 alone needs no derivatives of rates
            begin, last = self.pieces[-1].span
            h, method = last - begin, "dop853"
        elif method == "radau" and self.step.layout.checks:
            guess = self._solver(equations, (t, math.inf), x, None, "dop853").h_abs
            other = max(guess, self._leading)  # near change points guesses become shorter
            if other > h and self._may_meet(x, other, equations):
                h, method = other, "dop853"
        error = StepError("a linkage turns by too much")
        while t + h > t:
            near = self._may_meet(x, h, equations)
            careful, over, end, length = equations, False, equations.end, h
            if starts:
                near, over, low, high = True, True, 0.0, float(stages(method)[1])
                least = 0.5 * equations.coordinates.distance(x + high * h * rate)
            elif near:
                n = int(np.argmax(np.diff(stages(method))))
                low, high = stages(method)[n : n + 2].tolist()

                def distance(
                    time: float, x: Array = x, rate: Array = rate, at: Equations = equations
                ) -> float:
                    """The distance from change points along the tangent of the motion."""
                    return at.coordinates.distance(x + time * rate)

                length, over, least = placed(distance, h, (low, high))
            if near:
                careful = replace(equations, least=least)
                end = t + length if over else min(t + length, end)
            try:
                if near or h != self._length:
                    solver = self._solver(careful, (t, end), x, length, method)
                solver.step()
                if solver.status == "failed":
                    raise StepError("steps have become too short")
                dense, now = solver.dense_output(), float(solver.t)
                if over and now < end:
                    raise NearError("it comes too near to a change point")
                after, self._distance = careful.closed(solver.y)
            except NearError as reason:
                error, h = reason, 0.5 * (length if over else h)
                continue
            checks = equations.coordinates.renewed(after)[2]
            if not len(checks) or checks[1] < TOO_LONG:
                break
            h *= 0.5
        else:
            raise error
        hidden = (t + low * (now - t), t + high * (now - t)) if over else None
        self._leading = 0.0 if method == self.step.method else h
        if method == self.step.method:
            # the length that errors allow; a step cut to an end says nothing about longer ones
            self._length = solver.h_abs if now < end else max(h, solver.h_abs)
        if near and now < equations.end:
            equations = replace(equations, start=None)
            solver = self._solver(equations, (now, equations.end), after, self._length)
        return solver, Interpolant(equations.coordinates, dense, (t, now), hidden)

    def _may_meet(self, x: Array, h: float, equations: Equations) -> bool:
        """True if a step of length h from x may come near to a change point."""
        if not self.step.layout.checks:
            return False
        return self._distance < MOST_TURN * h * self._speed(x, equations)

    def _speed(self, x: Array, equations: Equations) -> float:
        """The largest velocity of a joint."""
        return float(np.max(np.abs(equations.coordinates.joint_rates(x)), initial=0.0))

    def _keep_between(self, signals: Signals, t: float, now: float, piece: Interpolant) -> None:
        """Record the states of a step at the times asked for, its start excepted."""
        every = self.every
        assert every is not None
        k = math.floor(t / every + SAME) + 1
        while k * every <= now + SAME * every:
            self._keep(k * every, piece.at(k * every), signals)
            k += 1
