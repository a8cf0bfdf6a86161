"""Simulation: one motion, on the configuration manifold, under controllers and external forces.

Adaptive steps: SciPy's solvers move x = (q, z) in tangent coordinates of linkages, whose bases are
renewed when linkages have turned by much; loops are closed after each step.

A step over a change point (:mod:`robomodel.motion.tangent`) has a length that puts the point into
the middle of the widest gap between the times at which the method evaluates rates. States within
this gap are interpolated by a polynomial through states of the same step outside of it. If the
motion ends, or forces change, within the gap, the step leads beyond, and the state is interpolated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.errors import as_real
from robomodel.model.arguments import as_array
from robomodel.model.model import Model
from robomodel.model.parameters import with_parameters
from robomodel.motion import implicit
from robomodel.motion.inputs import Controller, Inputs, Pusher, Signals, Wrenches, stacked
from robomodel.motion.integrator_functions import (
    Coordinates,
    independent_columns,
    joint_rates,
)
from robomodel.motion.limits import (
    LimitMargins,
    closed_start,
    in_single_precision,
    warn_of_starts_beyond,
)
from robomodel.motion.options import (
    ADAPTIVE,
    DEFAULTS,
    METHODS,
    MotionOptions,
    MotionSetup,
    completed,
)
from robomodel.motion.stepping import Grid, Run, Steps, count_steps
from robomodel.motion.steps import FixedStep, flow
from robomodel.motion.tangent import StepError, closed_by_least_squares
from robomodel.motion.trajectory import Trajectory
from robomodel.running import Progress
from robomodel.tolerances import CLOSED, SAME

FINEST = 100.0 * float(np.finfo(float).eps)  # relative tolerance, as SciPy has it
RENEWED = 1.2  # growth of ‖G‖² above which bases are renewed
TOO_LONG = 4.0  # growth of ‖G‖² for which a step is too long
REACH = 3.0  # K turns by at most this multiple of the joints' motion
PLACED = 0.01  # share of a step to which its end is placed; stages stay a tenth from change points
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
    None: any. ``start``: a time and x at a change point, and the rate there.
    """

    step: FixedStep
    signals: Signals
    coordinates: Coordinates
    end: float
    least: float | None = None
    start: tuple[float, Array, Array] | None = None

    def rate(self, t: float, x: Array) -> Array:
        """ẋ."""
        if self.start is not None and t == self.start[0] and np.array_equal(x, self.start[1]):
            return self.start[2]
        if self.least is not None:
            x = self.closed(x)[0]
        row = self.coordinates.row(x)
        tau, pushes = self.signals.at(min(t, self.end), *self.step.independent(row))
        derivative = flow(self.step.model, tuple(pushes), passive=self.step.passive)
        return np.asarray(derivative(row, tau, *stacked(pushes)))

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
            q, speeds = np.split(self._polynomial(t, around), [nq])
            x = np.append(closed_by_least_squares(self.coordinates.model, q, CLOSED), x[nq:])
        return np.append(self.coordinates.row(x), speeds)

    def hides(self, t: float) -> bool:
        """Whether a change point may be so near that the equations are singular."""
        return self.hidden is not None and self.hidden[0] < t < self.hidden[1]

    def rate(self, equations: Equations, t: float) -> Array:
        """ẋ under other forces, at a time at which a change point may be."""
        return self._polynomial(t, [equations.rate(equations.end, x) for x in self._around[1]])

    @cached_property
    def _around(self) -> tuple[Array, list[Array]]:
        assert self.hidden is not None
        (first, last), (low, high) = self.span, self.hidden
        before = AROUND if low > first else 0
        after = np.linspace(high, last, 2 * AROUND - before)
        times = np.append(np.linspace(first, low, before), after)
        return times, [self.coordinates.closed(self.dense(t))[0] for t in times.tolist()]

    def _polynomial(self, t: float, values: list[Array]) -> Array:
        from scipy.interpolate import BarycentricInterpolator

        return np.asarray(BarycentricInterpolator(self._around[0], values)(t))


@dataclass
class Adaptive(Run):
    """DOP853 or Radau, step by step.

    States are q, z, the bases and the velocities of all joints, in one array. ``every``: the time
    between states that are recorded; None: at the method's own steps.
    """

    every: float | None = None
    tolerances: tuple[float, float] = (FINEST, FINEST)
    knots: list[float] = field(default_factory=list, init=False)
    pieces: list[Interpolant] = field(default_factory=list, init=False)
    _length: float | None = field(default=None, init=False)
    _distance: float = field(default=1.0, init=False)
    _leading: float = field(default=0.0, init=False)  # length of DOP853's steps beside Radau's

    def _begin(self, x: Array) -> Array:
        row = self.step.tangent_row(super()._begin(x))
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

    def _through(self, signals: Signals, k: int, grid: Grid, state: Array) -> Array:
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
        self._distance = coordinates.distance(x)
        solver = self._solver(equations, (t, end), x, self._length)
        if self._length is None:
            self._length = solver.h_abs
        while True:
            try:
                solver, piece = self._step(solver, equations)
                now = min(piece.span[1], end)
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
                now = self.stop.time
            if not np.all(np.isfinite(ends)):
                raise self._error(now, "the state is not finite")
            if now > self.knots[-1]:
                self.knots.append(now)
                self.pieces.append(piece)
            if self.every is not None:  # the end of a segment is its caller's to keep
                self._keep_between(signals, t, min(now, end - 2e-9 * self.every), piece)
            t, state = now, ends
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
            else:
                solver.y, solver.f = x, equations.rate(now, x)
            self.progress(now)
        return state

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
        elif method == "radau" and self.step.checks:
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
                length, over, least = self._placed(x, rate, h, equations, (low, high))
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

    def _placed(
        self, x: Array, rate: Array, h: float, equations: Equations, gap: tuple[float, float]
    ) -> tuple[float, bool, float]:
        """A step of length h or less from x: length, whether it crosses a change point, distance.

        ``gap``: the widest between the method's stages. The motion is predicted along its tangent.
        A step that does not cross a change point ends where the next one of length h crosses it.
        """
        from scipy.optimize import minimize_scalar

        def distance(time: float) -> float:
            return equations.coordinates.distance(x + time * rate)

        low, high = gap
        middle, exact = 0.5 * (low + high), PLACED * h
        longest = (1.0 + middle) * h
        ahead = float(minimize_scalar(distance, bounds=(0.0, longest), method="bounded",
                                      options={"xatol": exact}).x)  # fmt: skip
        if ahead < 2.0 * exact:
            return h, False, 0.5 * distance(0.0)
        if ahead > middle * h + exact:
            length = min(h, ahead - middle * h)
            return length, False, 0.5 * distance(length)
        length = ahead / middle
        return length, True, 0.5 * min(distance(low * length), distance(high * length))

    def _may_meet(self, x: Array, h: float, equations: Equations) -> bool:
        """Whether a step of length h from x may come near to a change point."""
        if not self.step.checks:
            return False
        return self._distance < REACH * h * self._speed(x, equations)

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


# ---- simulate ------------------------------------------------------------------------------------

DEFAULT_STEP = 1e-3
OWN = (
    "tau", "duration", "step", "f_ext", "hold", "stop_at_limits", "rtol", "atol", "progress",
)  # fmt: skip


def simulate(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    tau: ArrayLike | Controller | None = None,
    duration: float | None = None,
    step: float | None = None,
    f_ext: Wrenches | Pusher | None = None,
    hold: bool = False,
    stop_at_limits: bool | Iterable[str] = False,
    rtol: float = 1e-10,
    atol: float = 1e-12,
    progress: bool = True,
    **options: Unpack[MotionOptions],
) -> Trajectory:
    """The motion from q and v over ``duration``.

    By default the method is "dop853", with steps adapted to ``rtol`` and ``atol``; "radau" if
    dampers are very stiff; "time_stepping" with dry friction, contact or stops. Fixed steps are
    those of :func:`robomodel.rollout`, and 1 ms by default. All methods leave loops closed to
    rounding.

    Linkages move in tangent coordinates, which pass dead points of independent joints; tau and v
    are always those of the model's independent joints. At a change point, where branches of a
    linkage's motion cross, the motion stays on its branch.

    Args:
        model: The robot.
        q: Configuration (nq,) at the start.
        v: Velocities (nv,) at the start; default at rest.
        tau: Forces (nv,), constant; a row for each step (T, nv), held over it, where ``duration``
            may be left out; or a controller, ``tau(t, q, v)``. Default none. Controllers cannot
            write on q and v. They are called several times a step, at the method's stages, where
            quaternions and loops are exact to the step's truncation only.
        duration: How long the motion lasts [s].
        step: Time between states [s]. Adaptive methods record states at their own steps without it;
            :meth:`Trajectory.at` returns any others.
        f_ext: Link name → wrench (6,) or (T, 6) on that link, moment first, in its own axes; or a
            function of t, q, v that returns such a mapping, in which links may be left out.
        hold: Call controllers once a step, at its beginning, as a digital one is.
        stop_at_limits: End where a joint (any of the tree, or those named) meets its position
            limit; :attr:`Trajectory.stop` names it.
        rtol: Relative tolerance of numbers in q and v, for adaptive methods; at least 2e-14, where
            rounding begins.
        atol: Absolute tolerance.
        progress: Show a bar, on a terminal, if it takes more than a second.
        **options: What all motions share, :class:`robomodel.motion.MotionOptions`: ``method``,
            ``passive``, ``friction``, ``ground``, ``contacts``, ``collisions``, ``stops``,
            ``stop_restitution``, ``saturate``, ``parameters``, ``closing``, ``sweeps``. The
            trajectory has the torques that saturated motors give, and the robot with other
            ``parameters`` (:func:`robomodel.with_parameters`), for which q is closed.

    Returns:
        trajectory: The states over time; after time stepping with contact forces and the residuals
            of their equations.

    Raises:
        UnknownNameError: A name that is no parameter's.
        ValueError: Arguments that do not fit; open loops at q, quaternions that are not of unit
            length; at a dead point, a v that does not determine the linkage's motion.
        SimulationError: The motion cannot be continued: a start at a change point, numbers that are
            not finite, a step that does not converge or leads to another way of closing the loops.
            It has the time, the loops and their condition, and the trajectory up to there.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> motion = rm.simulate(model, q, [1.0], duration=0.1)
        >>> bool(motion.residual.max() < 1e-12)
        True
    """
    given = completed("simulate", options, DEFAULTS, OWN)
    if given["parameters"] is not None:
        model = with_parameters(model, given["parameters"])
    setup = MotionSetup.of(model, METHODS, given, compiled=False)
    chosen, passive = setup.method, setup.acting.passive
    if chosen is None and not model.nv:
        chosen = "rk4"  # adaptive steps have no error to adapt to
    step = None if step is None else as_real(step, "step")
    if step is not None and not (math.isfinite(step) and step > 0.0):
        raise ValueError(f"step must be a positive number of seconds, got {step!r}")
    start = _start(model, q, v)
    warn_of_starts_beyond(model, setup.acting.stops, start[: model.nq])
    inputs = Inputs.of(model, tau, f_ext, hold, setup.saturate)
    tolerances = _tolerances(as_real(rtol, "rtol"), as_real(atol, "atol"))
    if step is None and (chosen not in (None, *ADAPTIVE) or inputs.stepwise):
        step = DEFAULT_STEP
    duration = None if duration is None else as_real(duration, "duration")
    duration = _duration(duration, step, inputs.rows)
    if chosen is None:
        decay, _ = implicit.rates(model, start[: model.nq]) if passive else (0.0, 0.0)
        chosen = "radau" if duration * decay > implicit.STIFF else "dop853"
    if chosen == "rk4" and passive and step is not None:
        implicit.warn_of_instability(model, [implicit.rates(model, start[: model.nq])], step)
    limits = LimitMargins.of(model, stop_at_limits, start)
    run: Run
    if chosen in ADAPTIVE:
        one = FixedStep(model, chosen, passive=passive)
        run = Adaptive(inputs, limits, one, every=step, tolerances=tolerances)
        grid = Grid.of((duration if step is None or not inputs.stepwise else step) or 1.0, duration)
    else:
        assert step is not None
        run = Steps(inputs, limits, setup.fixed_step(chosen), touching=setup.touching)
        grid = Grid.of(step, duration)
    with Progress("simulate", duration, progress) as bar, np.errstate(all="ignore"):
        run.bar = bar
        return run.run(start, grid)


def _start(model: Model, q: ArrayLike, v: ArrayLike | None) -> Array:
    at = as_array(q, model.nq, "q", "nq")
    speed = np.zeros(model.nv) if v is None else as_array(v, model.nv, "v", "nv")
    if at.ndim != 1 or speed.ndim != 1:
        raise ValueError(
            f"simulate takes one state, got q {at.shape} and v {speed.shape}; rollout takes batches"
        )
    if not (np.all(np.isfinite(at)) and np.all(np.isfinite(speed))):
        raise ValueError("q and v must be finite")
    at = closed_start(model, at, in_single_precision(q))
    return np.concatenate([at, speed])


def _tolerances(rtol: float, atol: float) -> tuple[float, float]:
    """Tolerances that the adaptive method can keep: no relative error below rounding."""
    if not (math.isfinite(atol) and atol > 0.0):
        raise ValueError(
            f"atol must be a positive number, got {atol!r}: numbers that are zero have no other "
            "tolerance"
        )
    if not (math.isfinite(rtol) and rtol >= 0.0):
        raise ValueError(f"rtol must be a number from 0 on, got {rtol!r}")
    return max(rtol, FINEST), atol


def _duration(duration: float | None, step: float | None, rows: int | None) -> float:
    """The duration; raises ValueError if it disagrees with the number of rows of inputs."""
    if rows is None:
        if duration is None or not (math.isfinite(duration) and duration >= 0.0):
            raise ValueError(f"duration must be a number of seconds, got {duration!r}")
        return float(duration)
    assert step is not None
    if duration is not None and count_steps(duration, step) != rows:
        raise ValueError(
            f"{rows} rows of tau or f_ext are not for the {count_steps(duration, step)} steps of "
            f"{step:g} s in {duration:g} s"
        )
    return rows * step if duration is None else float(duration)
