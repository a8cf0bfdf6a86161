"""Steps adapted to tolerances, and the states between them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robomodel.model.joints import Array
from robomodel.motion.change_points import (
    BLURRED,
    Care,
    NearError,
    StepError,
    closed_by_least_squares,
    distance,
    may_meet,
    settle,
)
from robomodel.motion.charts import View
from robomodel.motion.integrators import Motion
from robomodel.motion.runs import Run, count_steps
from robomodel.running import Progress

WEIGHTS = np.array([1.0, -6.0, 15.0, 15.0, -6.0, 1.0]) / 20.0  # of states around, in between
FINEST = 1e-9  # steps as a share of the time that is left, below which no shorter are tried
# steps that keep their stages away from a change point: by how far, and how long
LEAST = (3e-3, 1e-3, 3e-4, 1e-4)
SHARES = (1.0, 0.85, 0.7, 0.55, 0.4, 0.25)
LONGER = tuple(32.0 * 0.9**n for n in range(34))  # steps of DOP853 beside Radau's


@dataclass(frozen=True)
class Piece:
    """A step's interpolant, in the chart of ``view``; called, the state in own coordinates."""

    view: View
    dense: Callable[[float], Array]
    span: tuple[float, float]

    def __call__(self, t: float) -> Array:
        """(q, v), loops closed."""
        x, rates = self.at(float(t))
        own = self.view.state(x)
        if rates is not None:
            clusters = self.view.own.clusters
            own[self.view.own.nq :] = rates[
                [c.spanning_v.start + i for c in clusters for i in c.columns]
            ]
        return own

    def at(self, t: float) -> tuple[Array, Array | None]:
        """(q, v) in the chart, loops closed, and the joints' velocities where v do not say them."""
        model, x = self.view.model, self.dense(t)
        nq = model.nq
        direct: Array | None = None
        near = 0.0
        try:
            q, found = settle(model, x[:nq])
            direct, near = np.concatenate([q, x[nq:]]), distance(model, found)
        except StepError:
            pass
        if direct is not None and near >= BLURRED:
            return direct, None
        span = self.span[1] - self.span[0]
        for least in (BLURRED, 0.1 * BLURRED, 0.01 * BLURRED):
            if direct is not None and near >= least:
                return direct, None
            for n in range(12):
                told = self._between(t, 2e-4 * 1.6**n * span, least)
                if told is not None:
                    return told
        raise StepError("the state is too near to a change point")

    def _between(self, t: float, apart: float, least: float) -> tuple[Array, Array] | None:
        """The state at t by a polynomial through six around, if these keep the distance."""
        model = self.view.model
        nq, size = model.nq, model.nq + model.nv
        states = []
        for n in (-3, -2, -1, 1, 2, 3):
            y = self.dense(t + n * apart)
            try:
                q, found = settle(model, y[:nq])
            except StepError:
                return None
            if distance(model, found) < least:
                return None
            states.append(np.concatenate([q, y[nq:], model.constraint_jacobian(q) @ y[nq:]]))
        told = WEIGHTS @ np.array(states)
        q = closed_by_least_squares(model, told[:nq])
        return np.concatenate([q, told[nq:size]]), told[size:]


def adaptive(
    run: Run,
    x: Array,
    duration: float,
    step: float | None,
    tolerances: tuple[float, float],
    bar: Progress,
) -> None:
    """DOP853 or Radau, step by step, each followed by a return to the manifold."""
    x = run.begin(x)
    motion = run.inputs.during(0, 0.0, x, run.view)
    run.keep(0.0, x, motion)
    if duration == 0.0:
        return
    if not np.all(np.isfinite(motion.rate(0.0, x))):
        raise run.failed(0.0, x, "accelerations are not finite")
    run.knots.append(0.0)
    count = 1 if step is None or not run.inputs.stepwise else count_steps(duration, step)
    length: float | None = None
    for k in range(count):
        t = 0.0 if step is None else k * step
        end = duration if step is None or k == count - 1 else (k + 1) * step
        if k:
            motion = run.inputs.during(k, t, x, run.view)
            run.keep(t, x, motion)
        segment = _Segment(run, motion, (t, end), step, tolerances)
        x, length = segment.run_through(x, length, bar)
        if run.stop is not None:
            return
    run.keep(duration, x, replace(motion, view=run.view))


@dataclass
class _Segment:
    """A time in which inputs are smooth."""

    run: Run
    motion: Motion
    span: tuple[float, float]
    every: float | None
    tolerances: tuple[float, float]
    longest: float = 0.0

    def _solver(
        self, t: float, x: Array, length: float | None, care: Care | None, method: str | None = None
    ) -> Any:
        """A solver that steps from t on, with a first step of this length."""
        from scipy.integrate import DOP853, Radau

        end = self.span[1]
        first = None if length is None else min(length, end - t)
        rtol, atol = self.tolerances
        motion = replace(self.motion, care=care)
        made = Radau if (method or self.run.method) == "radau" else DOP853
        solver = made(motion.rate, t, x, end, rtol=rtol, atol=atol, first_step=first)
        if not (math.isfinite(solver.h_abs) and solver.h_abs > 0.0):
            raise self.run.failed(
                t, x, f"no first step is short enough for rtol {rtol:g}, atol {atol:g}"
            )
        return solver

    def run_through(self, x: Array, length: float | None, bar: Progress) -> tuple[Array, float]:
        """Integrate; the state at the end, and the length of steps there."""
        run, (t, end) = self.run, self.span
        solver = self._solver(t, x, length, None)
        while solver.status == "running":
            x, t = solver.y, solver.t
            try:
                solver, dense, after = self._step(solver)
            except StepError as error:
                raise run.failed(t, x, error) from None
            now = solver.t
            self.longest = max(self.longest, now - t)
            piece = Piece(run.view, dense, (t, now))
            motion = self.motion

            def at(share: float, t: float = t, now: float = now, piece: Piece = piece) -> Array:
                return piece.at(t + share * (now - t))[0]

            met = run.limits.first(t, now - t, x, after, at)
            if met is not None:
                _, after, run.stop = met
                now = run.stop.time
            seen = run.view
            after = run.accept(now, after)
            if now > run.knots[-1]:
                run.knots.append(now)
                run.pieces.append(piece)
            if self.every is not None:  # the end of a segment is its caller's to keep
                self._keep_between(t, min(now, end - 2e-9 * self.every), piece)
            self.motion = motion = replace(motion, view=run.view)
            if met is not None:
                run.keep(now, after, motion)
                return after, self.longest
            if self.every is None and now < end:
                run.keep(now, after, motion)
            if seen != run.view and solver.status == "running":
                solver = self._solver(now, after, solver.h_abs, None)
            else:
                solver.y, solver.f = after, motion.rate(now, after)
            bar.at(now)
        return solver.y, max(self.longest, solver.h_abs)

    def _step(self, solver: Any) -> tuple[Any, Any, Array]:
        """One step: the solver after it, its interpolant, and the state on the manifold.

        Radau's steps, of order five, may be shorter than the neighbourhood of a change point that
        stages have to keep out of: steps of DOP853, where stiffness leaves them longer, lead over.
        """
        run, t, x, h = self.run, solver.t, solver.y, solver.h_abs
        if run.systems is None or not may_meet(run.view.model, x, h, run.systems):
            dense = self._advanced(solver)
            return solver, dense, self.motion.settled(solver.y)
        error: StepError | None = None
        ways = [(run.method, share) for share in SHARES]
        if run.method == "radau":
            ways = [("dop853", share) for share in LONGER] + ways
        for least in LEAST:
            for method, share in ways:
                care = Care(run.view.model, least)
                try:
                    solver = self._solver(t, x, share * h, care, method)
                    dense = self._advanced(solver)
                    after = replace(self.motion, care=care).settled(solver.y)
                except NearError as found:
                    error = found
                    continue
                if method != run.method and solver.t - t < h:
                    continue
                if solver.status == "running":
                    length = max(solver.h_abs, 0.5 * h) if method == run.method else h
                    solver = self._solver(solver.t, after, length, None)
                return solver, dense, after
        assert error is not None
        raise error

    def _advanced(self, solver: Any) -> Any:
        t, x = solver.t, solver.y
        solver.step()
        if solver.status == "failed":
            raise self.run.failed(t, x, "steps have become too short")
        return solver.dense_output()

    def _keep_between(self, t: float, now: float, piece: Piece) -> None:
        """Record the states that are asked for in a step, its beginning left out."""
        every = self.every
        assert every is not None
        k = math.floor(t / every + 1e-9) + 1
        while k * every <= now + 1e-9 * every:
            x, rates = piece.at(k * every)
            self.run.keep(k * every, x, self.motion, rates)
            k += 1
