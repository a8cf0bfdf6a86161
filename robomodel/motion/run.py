"""One motion under way: the loop over the instants at which inputs change, and what is recorded."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robomodel.model.elements import Cluster
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.motion.change_points import NEARLY, START_CONDITION, advice, condition
from robomodel.motion.inputs import Inputs, Saturated, Signals
from robomodel.motion.integrator_functions import independent_columns
from robomodel.motion.limits import Limits
from robomodel.motion.steps import FixedStep
from robomodel.motion.tangent import UNDETERMINED
from robomodel.motion.trajectory import SimulationError, Stop, Trajectory
from robomodel.running import Progress

MOST = 2**53  # steps, beyond which their times are not told apart


def count_steps(duration: float, step: float) -> int:
    """Steps in a duration, the last one perhaps shorter."""
    steps = duration / step
    if not steps < MOST:
        raise ValueError(f"a step of {step:g} s is too short for a duration of {duration:g} s")
    nearest = round(steps)
    return nearest if abs(steps - nearest) <= 1e-9 * max(1.0, steps) else math.ceil(steps)


@dataclass(frozen=True)
class Grid:
    """The instants at which steps of one length begin; the last one may be shorter."""

    step: float
    duration: float
    count: int

    @staticmethod
    def of(step: float, duration: float) -> Grid:
        """Of steps of this length."""
        return Grid(step, duration, count_steps(duration, step) if duration else 0)

    def at(self, k: int) -> float:
        """When step k begins."""
        return self.duration if k >= self.count else k * self.step


@dataclass
class Run(ABC):
    """A simulation under way, in states of ``step``, by a method that :meth:`_through` has."""

    inputs: Inputs
    limits: Limits
    step: FixedStep
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

    def run(self, x: Array, grid: Grid, bar: Progress) -> Trajectory:
        """The motion from x = (q, v)."""
        state = self._begin(x)
        signals = self._signals(0, 0.0, state)
        k = 0
        while k < grid.count and self.stop is None:
            if k:
                signals = self._signals(k, grid.at(k), state)
            self._keep(grid.at(k), state, signals)
            k, state = self._through(signals, k, grid, state, bar)
        if k <= grid.count:
            last = grid.duration if self.stop is None else self.stop.time
            self._keep(last, state, signals)
        return self._trajectory()

    @abstractmethod
    def _through(
        self, signals: Signals, k: int, grid: Grid, state: Array, bar: Progress
    ) -> tuple[int, Array]:
        """The state after step k of the grid, and the number of the next one."""

    def _begin(self, x: Array) -> Array:
        nq = self.model.nq
        state, start = self.step.start(x[:nq], x[nq:])
        if not start.regularity >= 1.0 / START_CONDITION:
            raise self._error(
                0.0, "it starts at a singular position", *condition(self.model, x[:nq]), x
            )
        if start.determined <= UNDETERMINED and np.any(x[nq:]):
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

    # ---- records

    def _keep(self, t: float, state: Array, signals: Signals, speeds: Array | None = None) -> None:
        """Record a state, with the velocities of all joints where ``speeds`` has them."""
        q, v = self._independent(state)
        if speeds is not None:
            v = speeds[independent_columns(self.model)]
        self._times.append(t)
        self._rows.append(np.concatenate([q, v]))
        self._tau.append(np.array(signals.tau(t, q, v)))
        if isinstance(signals.tau, Saturated):
            self._saturated.append(signals.tau.at_limits(t, q, v))
        if self.step.checks:
            self._rates.append(self.step.joint_velocities(state) if speeds is None else speeds)

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
        """The error of a motion that cannot go on from a state, with loops that may be why."""
        worst, cluster = condition(self.model, state[: self.model.nq])
        return self._error(t, what, worst, cluster, state if worst > NEARLY else None)

    def _error(
        self, t: float, what: str, worst: float = 1.0, cluster: Cluster | None = None,
        singular: Array | None = None,
    ) -> SimulationError:  # fmt: skip
        """The error of a motion that cannot be continued, ``singular`` at or near a state."""
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
