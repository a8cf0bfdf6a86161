"""Steps adapted to tolerances, and the states between them.

SciPy's solvers move x = (q, z) in tangent coordinates of linkages, whose bases are renewed where
the linkages have turned on by much; each step is followed by a return to closed loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.motion.change_points import (
    NearError,
    StepError,
    closed_by_least_squares,
    settle,
)
from robomodel.motion.inputs import Signals, stacked
from robomodel.motion.integrator_functions import independent_columns, joint_rates, renewal
from robomodel.motion.run import Grid, Run
from robomodel.motion.steps import FixedStep, flow
from robomodel.motion.trajectory import Trajectory
from robomodel.running import Progress

METHODS = ("dop853", "radau")
RENEWED = 1.2  # growth of ‖G‖² from which on bases are renewed
TURNED = 4.0  # growth of ‖G‖² that steps are too long for
REACH = 3.0  # K turns by no more than this much of what the joints do
BLURRED = 3e-3  # distance from change points below which states are told from neighbours
WEIGHTS = np.array([1.0, -6.0, 15.0, 15.0, -6.0, 1.0]) / 20.0  # of states around, in between
# steps that keep their stages away from a change point: by how far, and how long
LEAST = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
SHARES = (1.0, 0.93, 0.85, 0.78, 0.7, 0.62, 0.55, 0.47, 0.4, 0.32, 0.25, 0.18)
LONGER = tuple(32.0 * 0.9**n for n in range(34))  # steps of DOP853 beside Radau's


@dataclass(frozen=True)
class Equations:
    """The equations of motion in tangent coordinates of these bases.

    ``least``: the distance from change points that stages must keep; loops are closed at each then.
    """

    step: FixedStep
    signals: Signals
    bases: Array
    least: float = 0.0

    def rate(self, t: float, x: Array) -> Array:
        """ẋ."""
        model = self.step.model
        if self.least:
            x = self.settled(x)[0]
        row = np.concatenate([x, self.bases])
        tau, pushes = self.signals.at(t, *self.step.independent(row))
        made = flow(model, tuple(pushes), passive=self.step.passive)
        return np.asarray(made(row, tau, *stacked(pushes)))

    def settled(self, x: Array) -> tuple[Array, float]:
        """x with closed loops, and its distance from change points."""
        nq = self.step.model.nq
        try:
            q, distance = settle(self.step.model, x[:nq], self.bases)
        except StepError as error:
            if self.least:
                raise NearError(str(error)) from None
            raise
        if distance < self.least:
            raise NearError("it comes too near to a change point")
        return np.concatenate([q, x[nq:]]), distance


@dataclass(frozen=True)
class Piece:
    """A step's interpolant, in tangent coordinates of ``bases``; called, (q, v)."""

    model: Model
    bases: Array
    dense: Callable[[float], Array]
    span: tuple[float, float]

    def __call__(self, t: float) -> Array:
        """(q, v), loops closed."""
        x, speeds = self.at(float(t))
        v = speeds[independent_columns(self.model)]
        return np.concatenate([x[: self.model.nq], v])

    def at(self, t: float) -> tuple[Array, Array]:
        """(q, z), loops closed, and the velocities of all joints."""
        x = self.dense(t)
        span = self.span[1] - self.span[0]
        for least in (BLURRED, 0.1 * BLURRED, 0.01 * BLURRED):
            here = self._regular(x, least)
            for n in range(12):
                if here is not None:
                    return here
                here = self._between(x, t, 2e-4 * 1.6**n * span, least)
        raise StepError("the state is too near to a change point")

    def _regular(self, x: Array, least: float) -> tuple[Array, Array] | None:
        """x with closed loops, and joint velocities, if it keeps the distance."""
        nq = self.model.nq
        try:
            q, distance = settle(self.model, x[:nq], self.bases)
        except StepError:
            return None
        if distance < least:
            return None
        x = np.concatenate([q, x[nq:]])
        return x, np.asarray(joint_rates(self.model)(np.concatenate([x, self.bases])))

    def _between(
        self, x: Array, t: float, apart: float, least: float
    ) -> tuple[Array, Array] | None:
        """The state at t by a polynomial through six around, if these keep the distance."""
        nq = self.model.nq
        states = []
        for n in (-3, -2, -1, 1, 2, 3):
            state = self._regular(self.dense(t + n * apart), least)
            if state is None:
                return None
            states.append(np.concatenate([state[0][:nq], state[1]]))
        told = WEIGHTS @ np.array(states)
        q = closed_by_least_squares(self.model, told[:nq])
        return np.concatenate([q, x[nq:]]), told[nq:]


@dataclass
class Adaptive(Run):
    """DOP853 or Radau, step by step. States are q, z and the bases, one after the other.

    ``every``: the time between states that are kept; None: at the method's own steps.
    """

    layout: FixedStep
    every: float | None
    tolerances: tuple[float, float]
    knots: list[float] = field(default_factory=list, init=False)
    pieces: list[Piece] = field(default_factory=list, init=False)
    _length: float | None = field(default=None, init=False)
    _distance: float = field(default=1.0, init=False)

    @property
    def step(self) -> FixedStep:
        """What states are those of."""
        return self.layout

    def _begin(self, x: Array) -> Array:
        return self.step.tangent_row(super()._begin(x))

    def _independent(self, state: Array) -> tuple[Array, Array]:
        return self.step.independent(state)

    def _keep(self, t: float, state: Array, signals: Signals, speeds: Array | None = None) -> None:
        if speeds is None and self.step.checks:
            speeds = np.asarray(joint_rates(self.model)(state))
        super()._keep(t, state, signals, speeds)

    def _trajectory(self, **more: Any) -> Trajectory:
        if self.pieces:
            from scipy.integrate import OdeSolution

            more["dense"] = OdeSolution(self.knots, self.pieces)
        return super()._trajectory(**more)

    def _through(
        self, signals: Signals, k: int, grid: Grid, state: Array, bar: Progress
    ) -> tuple[int, Array]:
        t, end, longest = grid.at(k), grid.at(k + 1), 0.0
        size = self.model.nq + self.model.nv
        if not self.knots:
            self.knots.append(t)
        equations = Equations(self.step, signals, state[size:])
        if not k and not np.all(np.isfinite(equations.rate(t, state[:size]))):
            raise self._failed(t, state, "accelerations are not finite")
        self._distance = equations.settled(state[:size])[1]
        solver = self._solver(equations, (t, end), state[:size], self._length)
        while solver.status == "running":
            t, state = solver.t, np.concatenate([solver.y, equations.bases])
            try:
                solver, dense, after = self._step(solver, equations)
            except StepError as error:
                what = f"the step from there fails ({error})"
                raise self._failed(t, state, what) from None
            now = solver.t
            longest = max(longest, now - t)
            piece = Piece(self.model, equations.bases, dense, (t, now))
            ends = np.concatenate([after, equations.bases])

            def at(share: float, t: float = t, now: float = now, piece: Piece = piece) -> Array:
                x = piece.at(t + share * (now - t))[0]
                return np.concatenate([x, piece.bases])

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
            state, renewed = self._renewed(ends)
            if self.stop is not None:
                return k + 1, state
            if self.every is None and now < end:
                self._keep(now, state, signals)
            if now >= end:
                break
            if renewed:
                equations = replace(equations, bases=state[size:])
                solver = self._solver(equations, (now, end), state[:size], solver.h_abs)
            else:
                solver.y, solver.f = state[:size], equations.rate(now, state[:size])
            bar.at(now)
        self._length = max(longest, solver.h_abs)
        return k + 1, state

    def _renewed(self, state: Array) -> tuple[Array, bool]:
        """The state in bases of its own, where linkages have turned on by much."""
        if not self.step.checks:
            return state, False
        first = self.model.nq
        after = np.asarray(renewal(self.model)(state))
        if not after[-2] > RENEWED:
            return state, False
        bases, z, _ = np.split(after, [len(state) - first - self.model.nv, len(state) - first])
        return np.concatenate([state[:first], z, bases]), True

    def _solver(
        self, equations: Equations, span: tuple[float, float], x: Array, length: float | None,
        method: str | None = None,
    ) -> Any:  # fmt: skip
        """A solver over a span of time, with a first step of this length."""
        from scipy.integrate import DOP853, Radau

        (t, end), (rtol, atol) = span, self.tolerances
        if equations.least and length is not None:  # below that all errors are rounding's
            turned = length * self._speed(x, equations) ** 2 / equations.least**2
            atol = max(atol, float(np.finfo(float).eps) * turned)
        first = None if length is None or t == end else min(length, end - t)
        made = Radau if (method or self.step.method) == "radau" else DOP853
        solver = made(equations.rate, t, x, end, rtol=rtol, atol=atol, first_step=first)
        if not (math.isfinite(solver.h_abs) and solver.h_abs > 0.0):
            what = f"no first step is short enough for rtol {rtol:g}, atol {atol:g}"
            raise self._failed(t, x, what)
        return solver

    def _step(self, solver: Any, equations: Equations) -> tuple[Any, Any, Array]:
        """One step: the solver after it, its interpolant, and (q, z) with closed loops.

        Steps in which linkages turn by too much are shortened. Near change points Radau's steps, of
        order five, may be shorter than the neighbourhood that stages have to keep out of: steps of
        DOP853, where stiffness leaves them longer, lead over.
        """
        t, end, x, h = solver.t, solver.t_bound, solver.y, solver.h_abs
        if not self._may_meet(x, h, equations):
            for share in (1.0, 0.5, 0.2, 0.05):
                if share < 1.0:
                    solver = self._solver(equations, (t, end), x, share * h)
                dense = self._advanced(solver)
                after, distance = equations.settled(solver.y)
                if self._keeps(after, equations.bases):
                    self._distance = distance
                    return solver, dense, after
            raise StepError("a linkage turns by too much")
        error = StepError("it comes too near to a change point")
        ways = [(self.step.method, share) for share in SHARES]
        if self.step.method == "radau":
            ways = [("dop853", share) for share in LONGER] + ways
        for least in LEAST:
            careful = replace(equations, least=least)
            for method, share in ways:
                try:
                    solver = self._solver(careful, (t, end), x, share * h, method)
                    dense = self._advanced(solver)
                    after, distance = careful.settled(solver.y)
                except NearError as near:
                    error = near
                    continue
                if method != self.step.method and solver.t - t < h:
                    continue
                if not self._keeps(after, equations.bases):
                    continue
                if solver.status == "running":
                    length = max(solver.h_abs, 0.5 * h) if method == self.step.method else h
                    solver = self._solver(equations, (solver.t, end), after, length)
                self._distance = distance
                return solver, dense, after
        raise error

    def _may_meet(self, x: Array, h: float, equations: Equations) -> bool:
        """Whether a step of length h from x may come near to a change point."""
        if not self.step.checks:
            return False
        return self._distance < REACH * h * self._speed(x, equations)

    def _speed(self, x: Array, equations: Equations) -> float:
        """The largest velocity of a joint."""
        rates = joint_rates(self.model)(np.concatenate([x, equations.bases]))
        return float(np.max(np.abs(rates), initial=0.0))

    def _keeps(self, x: Array, bases: Array) -> bool:
        """Whether linkages have not turned away from bases by too much."""
        if not self.step.checks:
            return True
        checks = np.asarray(renewal(self.model)(np.concatenate([x, bases])))[-3:]
        return bool(checks[1] < TURNED)

    def _advanced(self, solver: Any) -> Any:
        t, x = solver.t, solver.y
        solver.step()
        if solver.status == "failed":
            raise self._failed(t, x, "steps have become too short")
        return solver.dense_output()

    def _keep_between(self, signals: Signals, t: float, now: float, piece: Piece) -> None:
        """Record the states that are asked for in a step, its beginning left out."""
        every = self.every
        assert every is not None
        k = math.floor(t / every + 1e-9) + 1
        while k * every <= now + 1e-9 * every:
            x, speeds = piece.at(k * every)
            state = np.concatenate([x, piece.bases])
            self._keep(k * every, state, signals, speeds if self.step.checks else None)
            k += 1
