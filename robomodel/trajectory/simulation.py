"""Simulation: one motion, on the configuration manifold, under controllers and external forces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from robomodel.errors import as_real
from robomodel.model.joints import Array
from robomodel.model.model import Model, as_array
from robomodel.progress import Progress
from robomodel.trajectory.ground import Contacts, Ground, Point, touching_points
from robomodel.trajectory.inputs import Controller, Inputs, Pusher, Saturated, Wrenches
from robomodel.trajectory.integrators import (
    SINGULAR,
    STEPS,
    Motion,
    StepError,
    chart_of,
    condition,
    settle,
    turned,
)
from robomodel.trajectory.limits import Limits
from robomodel.trajectory.record import SimulationError, Stop, Trajectory
from robomodel.trajectory.rollouts import check_closed
from robomodel.trajectory.singular import advice
from robomodel.trajectory.step_terms import Forces, named, needs_impulses
from robomodel.trajectory.stepping import TimeStepping

Method: TypeAlias = Literal["rk4", "dop853", "semi_implicit_euler", "variational", "time_stepping"]

METHODS = ("dop853", *STEPS, "time_stepping")
STEP = 1e-3
FINEST = 100.0 * float(np.finfo(float).eps)  # relative tolerance, as SciPy has it
MOST = 2**53  # steps, beyond which their times are not told apart
NEARLY = 30.0  # condition of loops from which on a step that fails may fail for them


def simulate(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    tau: ArrayLike | Controller | None = None,
    duration: float | None = None,
    step: float | None = None,
    method: Method | None = None,
    f_ext: Wrenches | Pusher | None = None,
    hold: bool = False,
    passive: bool = True,
    friction: bool = True,
    ground: Ground | None = None,
    contacts: Sequence[Point] | Contacts | None = None,
    stops: bool | Iterable[str] = False,
    stop_restitution: float = 0.0,
    saturate: bool = False,
    stop_at_limits: bool | Iterable[str] = False,
    rtol: float = 1e-10,
    atol: float = 1e-12,
    progress: bool = True,
) -> Trajectory:
    """The motion from q (nq,) and v (nv,; default at rest) over ``duration`` [s].

    ``tau``: forces (nv,), constant; a row for each step (T, nv), held over it, where ``duration``
    may be left out; or a controller, ``tau(t, q, v)``. Default none. ``f_ext``: link name → wrench
    (6,) or (T, 6) on that link, moment first, in its own axes, or a function of t, q, v that gives
    such a mapping; links that it does not name feel nothing. Controllers see q and v and cannot
    write on them. They are asked several times a step, at the method's stages, where quaternions
    and loops are exact to the step's truncation only; with ``hold`` once a step, at its beginning,
    as a digital one is.

    ``passive``: the file's springs and damping act; ``friction``: so does the dry friction of its
    joints. ``ground``: what ``contacts``, points of the robot (links, (link, offset), or (link,
    offset, radius) for spheres; default :func:`robomodel.contact_points`), stand on and push
    against; or ``contacts`` is a function of q and v that gives :class:`robomodel.Contact` pairs.
    ``stops``: joints (True: all) do not leave their position limits, from which they rebound with
    ``stop_restitution``, dependent ones too. Dry friction, contact and stops need the method
    "time_stepping", which is then the default.

    ``saturate``: motors give of tau what their effort limits, torque-speed curves and velocity
    limits leave them, through gears and linkages, see :func:`robomodel.saturate`; the trajectory
    has the torques that act, and which actuators are saturated. Without it limits act only if
    ``tau`` keeps them.

    ``method``:

    * "time_stepping": first order, on velocities and impulses, so that contacts, stops and dry
      friction stick and slip exactly (:mod:`robomodel.trajectory.stepping`); springs and dampers
      are implicit, so that none is too stiff for ``step`` (default 1 ms). Contact forces and what
      their equations fail by are in the trajectory;
    * "dop853": Dormand and Prince's eighth order with steps adapted to ``rtol`` and ``atol`` (of
      numbers in q and v; an rtol below 2e-14 is taken as that, where rounding begins). States are
      kept every ``step`` [s], without it at the method's own steps, and :meth:`Trajectory.at` gives
      any others;
    * "rk4": fourth order, steps of ``step`` [s] (default 1 ms);
    * "variational": second order, implicit, symplectic: the error of energy stays bounded however
      long the motion is;
    * "semi_implicit_euler": first order.

    All of them leave loops closed to rounding. ``stop_at_limits``: end where a joint (any of the
    tree, or those named) meets its position limit; :attr:`Trajectory.stop` says which. ``progress``
    shows a bar, on a terminal, where it takes more than a second.

    Raises ValueError for arguments that do not fit, loops open at q and quaternions that are not of
    unit length included, and :class:`SimulationError` where the motion cannot be continued: a
    singular position of loops as seen from the independent joints, numbers that are not finite, a
    step that does not converge. It names the time, the loops and their condition, and holds the
    trajectory up to there.
    """
    if method not in (None, *METHODS):
        known = ", ".join(f"'{name}'" for name in METHODS)
        raise ValueError(f"method '{method}' is not known; known are {known}")
    forces = Forces(passive, friction, named(model, stops))
    stepping = _stepping(model, ground, contacts, forces, stop_restitution, method)
    if method is None:
        method = "dop853" if stepping is None else "time_stepping"
    step = None if step is None else as_real(step, "step")
    if step is not None and not (math.isfinite(step) and step > 0.0):
        raise ValueError(f"step must be a positive number of seconds, got {step!r}")
    if method == "variational":
        chart_of(model)
    start = _start(model, q, v)
    inputs = Inputs.of(model, tau, f_ext, hold, passive and stepping is None, saturate)
    tolerances = _tolerances(as_real(rtol, "rtol"), as_real(atol, "atol"))
    if step is None and (method != "dop853" or inputs.stepwise):
        step = STEP
    duration = None if duration is None else as_real(duration, "duration")
    duration = _duration(duration, step, inputs.rows)
    run = _Run(model, method, inputs, Limits.of(model, stop_at_limits, start), stepping)
    with Progress("simulate", duration, progress) as bar, np.errstate(all="ignore"):
        if method == "dop853":
            _adaptive(run, start, duration, step, tolerances, bar)
        else:
            assert step is not None
            _fixed(run, start, duration, step, bar)
    return run.trajectory()


def _stepping(
    model: Model,
    ground: Ground | None,
    contacts: Sequence[Point] | Contacts | None,
    forces: Forces,
    restitution: float,
    method: Method | None,
) -> TimeStepping | None:
    """The method with impulses where something needs it; ValueError where another is wanted."""
    why = needs_impulses(model, ground, contacts, forces)
    if why is None and method != "time_stepping":
        return None
    if method not in (None, "time_stepping"):
        raise ValueError(f"{why} needs method='time_stepping', not '{method}'")
    if not 0.0 <= restitution <= 1.0:
        raise ValueError(f"stop_restitution is from 0 to 1, got {restitution!r}")
    if callable(contacts):
        return TimeStepping(model, ground, [], contacts, forces, restitution)
    points = touching_points(model, ground, contacts)
    return TimeStepping(model, ground, points, None, forces, restitution)


def _start(model: Model, q: ArrayLike, v: ArrayLike | None) -> Array:
    at = as_array(q, model.nq, "q", "nq")
    speed = np.zeros(model.nv) if v is None else as_array(v, model.nv, "v", "nv")
    if at.ndim != 1 or speed.ndim != 1:
        raise ValueError(
            f"simulate takes one state, got q {at.shape} and v {speed.shape}; rollout takes batches"
        )
    if not (np.all(np.isfinite(at)) and np.all(np.isfinite(speed))):
        raise ValueError("q and v must be finite")
    check_closed(model, at)
    return np.concatenate([at, speed])


def _tolerances(rtol: float, atol: float) -> tuple[float, float]:
    """What the adaptive method can keep to: no relative error below rounding."""
    if not (math.isfinite(atol) and atol > 0.0):
        raise ValueError(
            f"atol must be a positive number, got {atol!r}: numbers that are zero have no other "
            "tolerance"
        )
    if not (math.isfinite(rtol) and rtol >= 0.0):
        raise ValueError(f"rtol must be a number from 0 on, got {rtol!r}")
    return max(rtol, FINEST), atol


def _duration(duration: float | None, step: float | None, rows: int | None) -> float:
    """How long, agreeing with the number of steps that held inputs are given for."""
    if rows is None:
        if duration is None or not (math.isfinite(duration) and duration >= 0.0):
            raise ValueError(f"duration must be a number of seconds, got {duration!r}")
        return float(duration)
    assert step is not None
    if duration is not None and _count(duration, step) != rows:
        raise ValueError(
            f"{rows} rows of tau or f_ext are not for the {_count(duration, step)} steps of "
            f"{step:g} s in {duration:g} s"
        )
    return rows * step if duration is None else float(duration)


def _count(duration: float, step: float) -> int:
    """Steps in a duration, the last one perhaps shorter."""
    steps = duration / step
    if not steps < MOST:
        raise ValueError(f"a step of {step:g} s is too short for a duration of {duration:g} s")
    nearest = round(steps)
    return nearest if abs(steps - nearest) <= 1e-9 * max(1.0, steps) else math.ceil(steps)


# ---- the runs ------------------------------------------------------------------------------------


@dataclass
class _Run:
    """A simulation under way."""

    model: Model
    method: str
    inputs: Inputs
    limits: Limits
    stepping: TimeStepping | None = None
    rows: list[tuple[float, Array, Array]] = field(default_factory=list)  # time, state, tau
    saturated: list[Array] = field(default_factory=list)
    stop: Stop | None = None
    knots: list[float] = field(default_factory=list)
    pieces: list[Any] = field(default_factory=list)
    systems: Array | None = None

    def trajectory(self) -> Trajectory:
        """What there is up to now."""
        nq = self.model.nq
        times = np.array([t for t, _, _ in self.rows])
        states = np.array([x for _, x, _ in self.rows]).reshape(len(times), nq + self.model.nv)
        tau = np.array([u for _, _, u in self.rows]).reshape(len(times), self.model.nv)
        dense = None
        if self.pieces:
            from scipy.integrate import OdeSolution

            dense = OdeSolution(self.knots, self.pieces)
        forces = residual = None
        if self.stepping is not None:
            forces, residual = self.stepping.forces, self.stepping.residual
        return Trajectory(
            self.model, self.method, times, states[:, :nq], states[:, nq:], tau, self.stop, dense,
            forces, residual, np.array(self.saturated) if self.saturated else None,
        )  # fmt: skip

    def keep(self, t: float, x: Array, motion: Motion) -> None:
        """Record a state, under the forces of the step that it begins or ends."""
        nq = self.model.nq
        q, v = x[:nq], x[nq:]
        self.rows.append((t, x, np.array(motion.tau(t, q, v))))
        if isinstance(motion.tau, Saturated):
            self.saturated.append(motion.tau.at_limits(t, q, v))

    def accept(self, t: float, x: Array) -> None:
        """Refuse a state that is not finite, singular, or beyond a singular position."""
        if not np.all(np.isfinite(x)):
            raise self.error(t, "the state is not finite")
        systems = settle(self.model, x[: self.model.nq])[1]
        if not len(systems):
            return
        worst, cluster = condition(self.model, systems)
        if worst > SINGULAR:
            raise self.error(t, "a singular position", cluster, worst, x)
        if self.systems is not None:
            crossed = turned(self.model, self.systems, systems)
            if crossed is not None:
                raise self.error(t, "beyond a singular position", crossed, worst, x)
        self.systems = systems

    def failed(self, t: float, x: Array, what: str) -> SimulationError:
        """The error of a step from x that came to nothing; loops are blamed where they may be."""
        try:
            worst, cluster = condition(self.model, settle(self.model, x[: self.model.nq])[1])
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
        found = self.model.clusters[cluster]
        assert found.geometry is not None
        loops = tuple(loop.name for loop in found.geometry.loops)
        names = ", ".join(f"'{name}'" for name in loops)
        message = (
            f"{head}; loops {names} are at condition {worst:.3g} as seen from "
            f"{', '.join(found.independent)}"
        )
        if singular is not None:
            message += f": {advice(self.model, found, singular[: self.model.nq])}"
        return SimulationError(
            message, t, loops=loops, condition=worst, trajectory=self.trajectory()
        )


def _fixed(run: _Run, x: Array, duration: float, step: float, bar: Progress) -> None:
    """Steps of one length; the last one is shorter where the duration asks for it."""
    advance = run.stepping or STEPS[run.method]
    count = _count(duration, step)
    motion = run.inputs.during(0, 0.0, x)
    run.accept(0.0, x)
    run.keep(0.0, x, motion)
    for k in range(count):
        t = k * step
        end = duration if k == count - 1 else (k + 1) * step
        if k:
            motion = run.inputs.during(k, t, x)
            run.keep(t, x, motion)

        def at(
            share: float, motion: Motion = motion, t: float = t, h: float = end - t, x: Array = x
        ) -> Array:
            return advance(motion, t, share * h, x)

        try:
            after = at(1.0)
        except StepError as error:
            raise run.failed(t, x, f"the step from there fails ({error})") from None
        met = run.limits.first(t, end - t, x, after, at)
        if met is not None:
            _, x, run.stop = met
            run.accept(run.stop.time, x)
            run.keep(run.stop.time, x, motion)
            return
        run.accept(end, after)
        if run.stepping is not None:
            run.stepping.record()
        x = after
        bar.at(end)
    if count:
        run.keep(duration, x, motion)


def _adaptive(
    run: _Run,
    x: Array,
    duration: float,
    step: float | None,
    tolerances: tuple[float, float],
    bar: Progress,
) -> None:
    """DOP853, step by step, each followed by a return to the manifold."""
    motion = run.inputs.during(0, 0.0, x)
    run.accept(0.0, x)
    run.keep(0.0, x, motion)
    if duration == 0.0:
        return
    if not np.all(np.isfinite(motion.rate(0.0, x))):
        raise run.failed(0.0, x, "accelerations are not finite")
    run.knots.append(0.0)
    count = 1 if step is None or not run.inputs.stepwise else _count(duration, step)
    length: float | None = None
    for k in range(count):
        t = 0.0 if step is None else k * step
        end = duration if step is None or k == count - 1 else (k + 1) * step
        if k:
            motion = run.inputs.during(k, t, x)
            run.keep(t, x, motion)
        x, length = _segment(run, motion, (t, end), x, step, tolerances, length, bar)
        if run.stop is not None:
            return
    run.keep(duration, x, motion)


def _segment(
    run: _Run,
    motion: Motion,
    span: tuple[float, float],
    x: Array,
    every: float | None,
    tolerances: tuple[float, float],
    length: float | None,
    bar: Progress,
) -> tuple[Array, float]:
    """Integrate over a time in which inputs are smooth; the state and the length of steps there."""
    from scipy.integrate import DOP853

    begin, end = span
    first = None if length is None else min(length, end - begin)
    rtol, atol = tolerances
    solver = DOP853(motion.rate, begin, x, end, rtol=rtol, atol=atol, first_step=first)
    if not (math.isfinite(solver.h_abs) and solver.h_abs > 0.0):
        raise run.failed(
            begin, x, f"no first step is short enough for rtol {rtol:g}, atol {atol:g}"
        )
    longest = 0.0
    while solver.status == "running":
        x, t = solver.y, solver.t
        try:
            solver.step()
            if solver.status == "failed":
                raise run.failed(t, x, "steps have become too short")
            dense = solver.dense_output()
            after = motion.settled(solver.y)
        except StepError as error:
            raise run.failed(t, x, f"the step from there fails ({error})") from None
        now = solver.t
        longest = max(longest, now - t)

        def at(share: float, t: float = t, now: float = now, dense: Any = dense) -> Array:
            return motion.settled(dense(t + share * (now - t)))

        met = run.limits.first(t, now - t, x, after, at)
        if met is None:
            run.accept(now, after)
        else:
            _, after, run.stop = met
            now = run.stop.time
            run.accept(now, after)
        if now > run.knots[-1]:
            run.knots.append(now)
            run.pieces.append(dense)
        if every is not None:  # the end of a segment is its caller's to keep
            _keep_between(run, motion, (t, min(now, end - 2e-9 * every)), dense, every)
        if met is not None:
            run.keep(now, after, motion)
            return after, longest
        if every is None and now < end:
            run.keep(now, after, motion)
        solver.y, solver.f = after, motion.rate(now, after)
        bar.at(now)
    return solver.y, max(longest, solver.h_abs)


def _keep_between(
    run: _Run, motion: Motion, span: tuple[float, float], dense: Any, every: float
) -> None:
    """Record the states that are asked for in a step, its beginning left out."""
    t, now = span
    k = math.floor(t / every + 1e-9) + 1
    while k * every <= now + 1e-9 * every:
        run.keep(k * every, motion.settled(dense(k * every)), motion)
        k += 1
