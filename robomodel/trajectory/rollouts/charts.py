"""Rollouts through singular positions: motions regrouped by chart, and led over change points.

All motions run first in the model's own independent joints, in one kernel. Those that come to a
singular position are taken back to where these were still good, those that only come near one to
where they are so no longer, and go on from there in the best joints, grouped by their charts, each
group in the kernel of its chart, some steps at a time. Where that does not help it is a change
point: the steps around it are those of :func:`robomodel.simulate`, which lays their stages around
it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robomodel.errors import warn
from robomodel.model.joints import Array, Mask
from robomodel.model.model import Model
from robomodel.motion.integrator_functions import Function, position_rates
from robomodel.trajectory.simulation.charts import GOOD, UNSAID, View, are_surpassed, look
from robomodel.trajectory.simulation.passing import StepError, distance, settle
from robomodel.trajectory.simulation.trajectory import SimulationError, Trajectory

STRETCH = 128  # steps that a group goes before its charts are looked at again
PATIENCE = 8  # steps after which joints that no others surpass are looked at again
TURN = 1.5  # times that ‖G‖ may change by in a step; motions in which it does by more are told of
CLEAR = 5.0  # a change point is left behind at so many times what a step turns

Run = Callable[[Function, Array, Array], None]  # on states (n, T+1, size) under forces, in place


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of the loops in states (..., T+1).

    ``opened``: they are open, or come from beyond a singular position. ``long``: some linkage's
    independent joints are not good any longer. ``turned``: ‖G‖ changes by much in the next step.
    """

    opened: Mask
    long: Mask
    turned: Mask

    def of_motions(self, *batch: int) -> Told:
        """With these axes of motions."""
        masks = self.opened, self.long, self.turned
        return Told(*(mask.reshape(*batch, mask.shape[-1]) for mask in masks))


@dataclass(frozen=True)
class Motions:
    """How motions are made: a program for each chart, how it runs, and what it tells of states.

    ``led``: the motion from a state in the model's own coordinates under rows of forces, by single
    steps; None where there is none. ``kept``: how many numbers a step hands to the next one that
    are the same in every chart; ``tail``: how many at the end of each state belong to its step.
    """

    model: Model
    step: float
    program: Callable[[View], Function]
    run: Run
    told: Callable[[Model, Array, int], Told]
    led: Callable[[Array, Array, Array], Trajectory] | None
    kept: int
    tail: int

    def go_on(self, states: Array, force: Array, told: Told) -> Told:
        """Complete motions (n, T+1, size) that are opened from somewhere on, and those in which G
        is long where others are better; what is to be told of them now. ``force`` (n, T, nv).
        """
        times = force.shape[-2]
        opened, long = told.opened, told.long
        now = Told(opened.copy(), long.copy(), told.turned.copy())
        waiting = []
        view = View.of(self.model)
        for n in np.flatnonzero((opened | long).any(axis=-1)).tolist():
            first = _first(opened[n])
            at = self._surpassed(view, states[n], long[n, :first])
            if at is None:
                if first in (0, len(opened[n])):
                    continue  # it was no state to start from, or there is nothing to go on with
                at = self._back(view, states[n], first - 1)
                reached = first - 1
            else:
                reached = at
            now.turned[n, at:] = False
            waiting.append(_Waiting(n, at, view, states[n, at, : self.size].copy(), reached))
        while waiting:
            groups: dict[View, list[_Waiting]] = {}
            for each in waiting:
                each.enter_best(self.model, self.kept)
                groups.setdefault(each.view, []).append(each)
            waiting = []
            for view, group in groups.items():
                waiting += self._stretch(view, group, states, force, now, times)
        return now

    @property
    def size(self) -> int:
        """Numbers that a step hands to the next."""
        return self.program(View.of(self.model)).sizes[0]

    def _stretch(
        self,
        view: View,
        group: list[_Waiting],
        states: Array,
        force: Array,
        now: Told,
        times: int,
    ) -> list[_Waiting]:
        """Some steps of motions in one chart; those that go on."""
        length = min(STRETCH, max(times - each.at for each in group))
        forces = np.zeros((len(group), length, self.model.nv), states.dtype)
        for n, each in enumerate(group):
            part = force[each.number, each.at : each.at + length]
            forces[n, : len(part)] = part
        program = self.program(view)
        made = np.zeros((len(group), length + 1, program.sizes[-1]), states.dtype)
        made[:, 0, : self.size] = [each.state for each in group]
        self.run(program, made, forces)
        told = self.told(view.model, made, program.sizes[0])
        left = []
        for n, each in enumerate(group):
            count = min(length, times - each.at)
            broken = told.opened[n, : count + 1]
            reached = good = min(count, max(_first(broken) - 1, 0))
            at = self._surpassed(view, made[n], told.long[n, : reached + 1])
            if at is not None:
                reached = good = at
            elif good < count:
                good = self._back(view, made[n], good)
            self._write(view, each, made[n, 1 : reached + 1], states, now)
            now.turned[each.number, each.at : each.at + reached] = told.turned[n, :reached]
            moved = each.after(good, made[n, good, : self.size], view, each.at + reached)
            if good == count:
                left += [moved] if moved.at < times else []
            elif good > 0:
                left.append(moved)
            else:
                left += self._lead(moved, states, force, now)
        return left

    def _write(self, view: View, each: _Waiting, made: Array, states: Array, now: Told) -> None:
        """States of a chart in the model's own coordinates; right up to there."""
        nq, nv = self.model.nq, self.model.nv
        rows = slice(each.at + 1, each.at + 1 + len(made))
        states[each.number, rows, :nq] = made[:, :nq]
        own = view.velocities(made[:, :nq], made[:, nq : nq + nv]) if len(made) else made[:, :nv]
        states[each.number, rows, nq : nq + nv] = own
        if self.tail:
            states[each.number, rows, -self.tail :] = made[:, -self.tail :]
        now.opened[each.number, rows] = False

    def _lead(self, each: _Waiting, states: Array, force: Array, now: Told) -> list[_Waiting]:
        """A motion that stands before a change point, led over it; none if that cannot be."""
        now.opened[each.number, each.reached + 1 :] = True
        if self.led is None:
            return []
        nq, nv = self.model.nq, self.model.nv
        own = each.view.state(each.state[: nq + nv])
        count = min(force.shape[-2] - each.at, max(8, 2 * (each.reached - each.at) + 8))
        try:
            found = self.led(own[:nq], own[nq:], force[each.number, each.at : each.at + count])
        except (SimulationError, ValueError):
            return []
        rows = slice(each.at + 1, each.at + 1 + count)
        states[each.number, rows, :nq] = found.q[1:]
        states[each.number, rows, nq : nq + nv] = found.v[1:]
        if found.contact_residual is not None and found.contact_forces is not None:
            impulses = self.step * found.contact_forces.reshape(count, -1)
            states[each.number, rows, -self.tail] = found.contact_residual
            states[each.number, rows, states.shape[-1] - self.tail + 1 :] = impulses
        now.opened[each.number, rows] = False
        if each.at + count == force.shape[-2]:
            return []
        state = np.concatenate([found.q[-1], found.v[-1], each.state[nq + nv :]])
        moved = each.after(count, state, View.of(self.model), each.at + count)
        moved.rates = found.joint_velocities[-1]
        return [moved]

    def _surpassed(self, view: View, made: Array, long: Mask) -> int | None:
        """The first state in which G is long and others are better to go on in, if there is one."""
        after = 0
        for n in np.flatnonzero(long).tolist():
            if n >= after:
                if are_surpassed(view, look(view, made[n, : self.model.nq].astype(float))):
                    return int(n)
                after = n + PATIENCE
        return None

    def _back(self, view: View, made: Array, at: int) -> int:
        """The last state up to ``at`` where the chart is good and no change point is near."""
        model, nq, nv = view.model, self.model.nq, self.model.nv
        for n in range(at, 0, -1):
            q, v = made[n, :nq].astype(float), made[n, nq : nq + nv].astype(float)
            looks = look(view, q)
            if min((each.goodness for each in looks), default=1.0) < GOOD:
                continue
            try:
                found = settle(model, q)[1]
            except StepError:
                continue
            speed = float(np.max(np.abs(position_rates(model)(q, v)), initial=0.0))
            if distance(model, found) >= CLEAR * abs(self.step) * speed:
                return n
        return 0


def _first(mask: Mask) -> int:
    """The first that holds; the length if none does."""
    return int(np.argmax(mask)) if mask.any() else len(mask)


@dataclass
class _Waiting:
    """A motion that is to go on from step ``at``, in a chart; ``rates``: of all joints, if known.

    ``reached``: the step up to which it had come.
    """

    number: int
    at: int
    view: View
    state: Array
    reached: int
    rates: Array | None = None

    def after(self, count: int, state: Array, view: View, reached: int) -> _Waiting:
        """So many steps later."""
        return _Waiting(self.number, self.at + count, view, state.copy(), reached)

    def enter_best(self, model: Model, kept: int) -> None:
        """Into the best chart where it stands."""
        nq, nv = model.nq, model.nv
        x = self.state[: nq + nv].astype(float)
        looks = look(self.view, x[:nq])
        good = min((each.goodness for each in looks), default=1.0) >= 2.0 * GOOD
        if good and not are_surpassed(self.view, looks):
            return
        if self.rates is not None or min(each.goodness for each in looks) > UNSAID:
            view, x = self.view.changed(looks, x, whole=True, good=np.inf)
            if self.rates is not None:
                columns = [c.spanning_v.start + i for c in view.model.clusters for i in c.columns]
                x[nq:] = self.rates[columns]
            if view != self.view:
                self.state[nq + nv + kept :] = 0.0
            self.view = view
            self.state[: nq + nv] = x


# ---- what is told of motions ---------------------------------------------------------------------


def drop_open(model: Model, states: Array, times: int, opened: Mask) -> None:
    """Make motions not-a-number from where their loops were left open."""
    after = np.logical_or.accumulate(opened, axis=-1)
    states[after] = np.nan
    when = _firsts(after)
    warn(
        RuntimeWarning(
            f"{len(when)} of {opened[..., 0].size} motions of '{model.name}' come to a singular "
            f"position of its loops, or take steps that are too long for them, from step "
            f"{min(when)} of {times} on; they are not-a-number from there"
        )
    )


def tell_of_turns(model: Model, times: int, told: Told) -> None:
    """Warn of motions in which G changes by much in a step, in the joints that they ended up in."""
    when = _firsts(told.turned & ~np.logical_or.accumulate(told.opened, axis=-1))
    if when:
        warn(
            RuntimeWarning(
                f"{len(when)} of {told.turned[..., 0].size} motions of '{model.name}' rush past "
                f"singular positions of its loops, from step {min(when)} of {times} on: the ratios "
                f"of its joints' velocities change there by more than {TURN:g} times in a step, "
                "which is too long; take shorter ones, or rm.simulate with 'dop853'"
            )
        )


def _firsts(mask: Mask) -> list[int]:
    """Of each motion that has such a state the first."""
    found: list[int] = np.argmax(mask, axis=-1)[np.any(mask, axis=-1)].tolist()
    return found
