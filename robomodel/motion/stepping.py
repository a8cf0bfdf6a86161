"""A running motion: the loop over instants at which inputs change, and fixed steps in it.

From the loop to a scheme: :meth:`Run.run` → :meth:`Steps.advance`, past change points and up to
limits → :meth:`Steps.parts`, in parts where a step is too long → :meth:`Steps.taken`, one step
under the forces at its beginning → :meth:`~robomodel.motion.steps.FixedStep.whole`, the program
that :meth:`~robomodel.motion.steps.FixedStep.build` writes from a function of
:mod:`robomodel.motion.schemes`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics import saturate
from robomodel.dynamics.contact.points import UNSOLVED
from robomodel.kernels.program import Dtype
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.motion.change_points import AT_CHANGE_POINT, BEYOND, Lead, Way
from robomodel.motion.checks import LOST
from robomodel.motion.contact_data import DataStep, GivenContacts
from robomodel.motion.contact_records import ContactLog, Record, joined, of_data, of_program
from robomodel.motion.halves import Halves, StepShare
from robomodel.motion.inputs import Inputs, Saturated, Signals, stacked
from robomodel.motion.integrator_functions import independent_columns, joint_accelerations
from robomodel.motion.limits import LimitMargins
from robomodel.motion.plant import flow
from robomodel.motion.schemes import RUNGE_KUTTA
from robomodel.motion.steps import FixedStep
from robomodel.motion.tangent import (
    NEARLY,
    START_CONDITION,
    UNDETERMINED_MOTION,
    StepError,
    advice,
    condition,
)
from robomodel.motion.trajectory import SimulationError, Stop, Trajectory
from robomodel.running import Progress
from robomodel.tolerances import SAME

MOST_STEPS = 2**53  # more steps cannot be told apart in time


def count_steps(duration: float, step: float) -> int:
    """Number of steps in a duration, the last one perhaps shorter."""
    steps = duration / step
    if not steps < MOST_STEPS:
        raise ValueError(f"a step of {step:g} s is too short for a duration of {duration:g} s")
    nearest = round(steps)
    return nearest if abs(steps - nearest) <= SAME * max(1.0, steps) else math.ceil(steps)


@dataclass(frozen=True)
class Grid:
    """The instants at which steps of one length begin; the last one may be shorter."""

    step: float
    duration: float
    count: int

    @staticmethod
    def of(step: float, duration: float) -> Grid:
        """The grid of steps of this length."""
        return Grid(step, duration, count_steps(duration, step) if duration else 0)

    def at(self, k: int) -> float:
        """Start time of step k."""
        return self.duration if k >= self.count else k * self.step

    def length(self, k: int) -> float:
        """Length of step k: the same number for all but a shorter last one."""
        rest = self.duration - k * self.step
        return rest if rest < (1.0 - SAME) * self.step else self.step


@dataclass
class Run(ABC):
    """A running simulation, on states of ``step``; :meth:`advance` takes the steps."""

    inputs: Inputs
    limits: LimitMargins
    step: FixedStep
    bar: Progress | None = None
    stop: Stop | None = field(default=None, init=False)
    _times: list[float] = field(default_factory=list, init=False)
    _rows: list[Array] = field(default_factory=list, init=False)
    _tau: list[Array] = field(default_factory=list, init=False)
    _rates: list[Array] = field(default_factory=list, init=False)
    _saturated: list[Array] = field(default_factory=list, init=False)

    @property
    def model(self) -> Model:
        """The robot."""
        return self.step.model

    def run(self, x: Array, grid: Grid) -> Trajectory:
        """The motion from x = (q, v)."""
        state = self._begin(x)
        signals = self._signals(0, 0.0, state)
        for k in range(grid.count):
            if k:
                signals = self._signals(k, grid.at(k), state)
            self._keep(grid.at(k), state, signals)
            try:
                state = self.advance(signals, k, grid, state)
            except StepError as error:
                what = f"the step from there {error}"
                raise self._failed(grid.at(k), state, what) from None
            if self.stop is not None:
                break
            self.progress(grid.at(k + 1))
        last = grid.duration if self.stop is None else self.stop.time
        self._keep(last, state, signals)
        return self._trajectory()

    def progress(self, t: float) -> None:
        """Update the progress bar."""
        if self.bar is not None:
            self.bar.at(t)

    @abstractmethod
    def advance(self, signals: Signals, k: int, grid: Grid, state: Array) -> Array:
        """The state after step k of the grid, or where a limit has ended the motion.

        Raises :class:`StepError` where a step fails.
        """

    def _begin(self, x: Array) -> Array:
        nq = self.model.nq
        state, start = self.step.start(x[:nq], x[nq:])
        if not start.regularity >= 1.0 / START_CONDITION:
            raise self._error(
                0.0, "it starts at a singular position", *condition(self.model, x[:nq]), x
            )
        if start.determined <= UNDETERMINED_MOTION and np.any(x[nq:]):
            raise ValueError(
                "v does not say how the linkage moves: at q, its independent joints rest while "
                "others move; start from rest or a little later, or load the robot with other "
                "independent joints"
            )
        return state

    def _signals(self, k: int, t: float, state: Array) -> Signals:
        q, v = self._independent(state)
        return self.inputs.during(k, t, q, v)

    def _independent(self, state: Array) -> tuple[Array, Array]:
        nq = self.model.nq
        return state[:nq], state[nq : nq + self.model.nv]

    def _speeds(self, state: Array) -> Array:
        """Velocities of all joints."""
        return self.step.layout.joint_velocities(state)

    # ---- records

    def _keep(self, t: float, state: Array, signals: Signals) -> None:
        """Record a state."""
        q, v = self._independent(state)
        self._times.append(t)
        self._rows.append(np.concatenate([q, v]))
        self._tau.append(np.array(signals.tau(t, q, v)))
        if isinstance(signals.tau, Saturated):
            self._saturated.append(signals.tau.at_limits(t, q, v))
        if self.step.layout.checks:
            self._rates.append(self._speeds(state))

    def _trajectory(self, **more: Any) -> Trajectory:
        model, count = self.model, len(self._rows)
        rows = np.array(self._rows).reshape(count, model.nq + model.nv)
        return Trajectory(
            model, self.step.method, np.array(self._times), rows[:, : model.nq],
            rows[:, model.nq :], np.array(self._tau).reshape(count, model.nv), self.stop,
            saturated=np.array(self._saturated) if self._saturated else None,
            _rates=np.array(self._rates) if self._rates else None, **more,
        )  # fmt: skip

    def _failed(self, t: float, state: Array, what: str) -> SimulationError:
        """The error of a motion that cannot continue, with the loops that may be why."""
        worst, cluster = condition(self.model, state[: self.model.nq])
        return self._error(t, what, worst, cluster, state if worst > NEARLY else None)

    def _error(
        self, t: float, what: str, worst: float = 1.0, cluster: Cluster | None = None,
        singular: Array | None = None,
    ) -> SimulationError:  # fmt: skip
        """The error of a motion that cannot continue; ``singular``: a state near the fault."""
        message = f"the motion of '{self.model.name}' cannot be continued at {t:.6g} s: {what}"
        if cluster is None:
            return SimulationError(message, t, trajectory=self._trajectory())
        loops = tuple(loop.name for loop in cluster.geometry.loops)
        message += f"; loops {', '.join(map(repr, loops))} are at condition {worst:.3g}"
        if singular is not None:
            message += f": {advice(cluster, singular)}"
        return SimulationError(
            message, t, loops=loops, condition=worst, trajectory=self._trajectory()
        )


# ---- fixed steps ---------------------------------------------------------------------------------

STAGES = tuple(map(np.array, RUNGE_KUTTA))
PARTS = (1, 2, 3, 5, 7, 11, 13)  # equal parts of a step: primes, which share no ends


@dataclass
class Steps(Run):
    """Fixed steps of one motion, with records of contacts.

    ``given`` are contacts of pairs of links from a function. ``dtype``: of the states between
    steps, which are taken in double precision. ``lead``: set if the motion is beyond the end of the
    last step; ``record``: of the last step.
    """

    given: GivenContacts | None = None
    dtype: Dtype = "float64"
    lead: Lead | None = None
    record: Record | None = None
    _records: list[Record] = field(default_factory=list)

    def advance(self, signals: Signals, k: int, grid: Grid, state: Array) -> Array:
        """The state after step k of the grid, or where a limit has ended the motion.

        A step that would end at a change point ends beyond it, within the following step, which
        continues from there, or later if the motion is slow. States at the ends of steps are then
        interpolated.
        """
        t, h, lead = grid.at(k), grid.length(k), self.lead
        if lead is not None:
            lead = self._pushed_on(lead, signals, t, min(h, lead.by))
        if lead is not None and lead.by >= h:
            after = self._between(lead, signals, t, h)
        else:
            first, start = (0.0, state) if lead is None else (lead.by, lead.state)
            try:
                after, self.record = self.parts(signals, t + first, h - first, start)
                self.lead = None
            except StepError as error:
                following = grid.length(k + 1) if k + 1 < grid.count else h
                after = self._led_over(signals, t, h, (first, start), following, error)
        if lead is None and self.lead is None:
            met = self.limits.first(
                t, h, state, after, lambda share: self.parts(signals, t, share * h, state)[0]
            )
            if met is not None:
                share, after, self.stop = met
                self.record = self.parts(signals, t, share * h, state)[1] if share else None
        if self.record:
            self._records.append(self.record)
        return after

    # ---- a step

    def parts(
        self, signals: Signals, t: float, h: float, state: Array
    ) -> tuple[Array, Record | None]:
        """The state after a step, and its record; raises :class:`StepError`.

        A step that is too long is halved. One that leaves loops open, or leads to another way of
        closing them, is taken in equal parts: it is too long, or a change point is in the way,
        which other parts do not end at.
        """
        fault = ""
        for count in PARTS:
            self.step = self.step.carefully(count > 1)
            shares: list[StepShare] = []
            for n in range(count):
                halves = Halves(shares[-1].state if shares else state, n / count, 1.0 / count)
                while halves.wanted is not None:
                    x, first, share = halves.wanted
                    try:
                        result, record = self.taken(signals, t + first * h, share * h, x)
                    except StepError as error:
                        halves.give(StepShare(x, share, False, f"fails ({error})", None))
                    else:
                        halves.give(self._share(share, result, record))
                shares += halves.parts
                if shares[-1].fault:
                    break
            self.step = self.step.carefully(False)
            fault = shares[-1].fault
            if not fault:
                return shares[-1].state, joined(shares)
            if fault == AT_CHANGE_POINT:  # other parts would end there, too
                break
        raise StepError(fault)

    def taken(
        self, signals: Signals, t: float, h: float, state: Array
    ) -> tuple[Array, Record | None]:
        """The result of an undivided step under the forces at its beginning, and its record.

        By "rk4" forces are those at its stages.
        """
        if self.step.method == "rk4":
            return self._runge_kutta(signals, t, h, state), None
        q, v = self._independent(state)
        tau, pushes = signals.at(t, q, v)
        self.step = step = self.step.with_wrenches(tuple(pushes))
        if step.setting is None:
            return step.whole(state, tau, h, *stacked(pushes)), None
        if step.setting.bodies is None:
            result = step.whole(state, tau, h, *step.planes(state, h), *stacked(pushes))
            return result, of_program(step, q, result, h)
        one = DataStep(step, self.given, state, tau, h, stacked(pushes))
        taken = one.take()
        self.step = one.step
        pairs = len(self.given.pairs) if self.given else 0
        return taken.result, of_data(self.step, q, taken, pairs, h)

    def _runge_kutta(self, signals: Signals, t: float, h: float, state: Array) -> Array:
        nq, length, layout = self.model.nq, np.array([h]), self.step.layout
        carried, result = np.zeros(self.step.iteration.carried), state
        for row in STAGES:
            at = np.asarray(self.step.stage(state, length, carried, row))
            tau, pushes = signals.at(t + row[0] * h, at[:nq], at[nq:])
            self.step = self.step.with_wrenches(tuple(pushes))
            numbers = np.asarray(
                self.step.after_stage(state, tau, length, *stacked(pushes), carried, row)
            )
            result, carried = numbers[: layout.results], numbers[layout.results :]
            state = result[: layout.size]
        return result

    def _share(self, share: float, result: Array, record: Record | None) -> StepShare:
        """A part of a step from its result."""
        layout, checks = self.step.layout, self.step.checks
        after = result[: layout.size]
        if len(result) > layout.results:  # the data of contacts
            after = np.concatenate([after, result[layout.results :]])
        too_long = bool(checks.too_long(result))
        return StepShare(after, share, too_long, self._failure(result), record)

    def _failure(self, result: Array) -> str:
        """The fault of a step's result, in words; empty if there is none."""
        layout, checks = self.step.layout, self.step.checks
        if not np.all(np.isfinite(result[: layout.size])):
            return "fails: the state is not finite"
        if checks.at_change_point(result, self.dtype):
            return AT_CHANGE_POINT
        if checks.lost(result):
            return (
                "leaves loops open, or leads beyond a singular position, over to another way to "
                "close them; take shorter ones"
            )
        if self.step.setting is not None:
            residual = float(result[layout.residual])
            if residual > UNSOLVED:
                return f"fails ({self._story(residual)})"
        return ""

    def _story(self, residual: float) -> str:
        setting, model = self.step.contact.setting, self.model
        pairs = len(self.given.pairs) if self.given else 0
        contacts = len(setting.points) + len(setting.pairs) + pairs
        return (
            f"impulses are solved for to {residual:.1g} of the velocities only, of "
            f"{contacts} contacts, {len(setting.acting.bounds(model))} stops and "
            f"{len(setting.acting.rubbing(model))} dry frictions: fewer points on one body, less "
            "friction, a shorter step, or masses less far apart may help"
        )

    # ---- past change points

    def _led_over(
        self, signals: Signals, t: float, h: float, begin: tuple[float, Array], following: float,
        error: StepError,
    ) -> Array:  # fmt: skip
        """The state at t + h of a motion that leads over a change point, from a later beginning."""
        first, start = begin
        for share in BEYOND:
            by = share * following
            try:
                beyond, record = self.parts(signals, t + first, h - first + by, start)
                acting = signals.at(t + first, *self._independent(start))
                lead = Lead(start, -first, beyond, h + by, acting, record, np.zeros(0))
                return self._between(lead, signals, t, h)
            except StepError:
                continue
        raise error

    def _between(self, lead: Lead, signals: Signals, t: float, h: float) -> Array:
        """The state at t + h of a motion that is led over it, by cubics.

        Impulses may have changed velocities anywhere in between: these are interpolated linearly.
        """
        model, layout = self.model, self.step.layout
        nq = model.nq
        times = -lead.since, lead.by
        values, slopes = [], []
        for time, state in zip(times, (lead.start, lead.state), strict=True):
            x = layout.tangent_row(state)
            rates = self._flow(x, signals.at(t + time, *layout.independent(x)))
            accelerations = joint_accelerations(model)(x, rates[nq:])
            values.append(np.concatenate([x[:nq], layout.joint_velocities(state)]))
            slopes.append(np.concatenate([rates[:nq], accelerations]))
        q, speeds = Way(model, times, values, slopes).at(h, LOST[self.dtype])
        if self.step.setting is not None:
            share = (h + lead.since) / (lead.by + lead.since)
            speeds = (1.0 - share) * values[0][nq:] + share * values[1][nq:]
        self.lead = lead._replace(since=lead.since + h, by=lead.by - h, speeds=speeds)
        self.record = lead.record
        shown = lead.state.copy()
        shown[:nq], shown[layout.columns.v] = q, speeds[independent_columns(model)]
        return shown

    def _pushed_on(self, lead: Lead, signals: Signals, t: float, h: float) -> Lead:
        """A lead after a time h of this step; the difference of forces acts on the state led to."""
        step, layout, nq = self.step, self.step.layout, self.model.nq
        if step.method == "rk4" and callable(self.inputs.tau) and not self.inputs.hold:
            return lead  # whose stages have asked for them
        x = layout.tangent_row(lead.state)
        acting = signals.at(t, *layout.independent(x))
        change = self._flow(x, acting) - self._flow(x, lead.acting)
        x[nq : nq + self.model.nv] += h * change[nq:]
        state = lead.state.copy()
        state[layout.columns.v] = layout.independent(x)[1]
        state[layout.columns.z] = x[nq : nq + self.model.nv]
        return lead._replace(state=state)

    def _flow(self, x: Array, acting: tuple[Array, Mapping[str, Array]]) -> Array:
        """q̇ and ż at q, z and bases under forces and wrenches."""
        (tau, pushes), plant = acting, self.step.plant
        if plant.saturate:
            tau = saturate(self.model, *self.step.layout.independent(x), tau)[0]
        derivative = flow(self.model, tuple(pushes), passive=plant.passive)
        return np.asarray(derivative(x, tau, *stacked(pushes)))

    # ---- records

    def _speeds(self, state: Array) -> Array:
        return super()._speeds(state) if self.lead is None else self.lead.speeds

    def _trajectory(self, **more: Any) -> Trajectory:
        if self.step.setting is not None:
            pairs = self.given.pairs if self.given else []
            more |= ContactLog(self.step.places, pairs, self._records).shown()
        return super()._trajectory(**more)
