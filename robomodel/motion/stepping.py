"""A running motion: the loop over instants at which inputs change, fixed steps, records.

Fixed steps pass change points, and take contacts from a callable.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics import saturate
from robomodel.dynamics.contact.points import UNSOLVED
from robomodel.errors import as_real
from robomodel.kernels.program import Dtype
from robomodel.mechanism.graph import WORLD
from robomodel.model.arguments import as_numbers
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.motion.contact_steps import ContactStep
from robomodel.motion.events import ContactRecord
from robomodel.motion.ground import Contact, Contacts, GroundPoint, Pair
from robomodel.motion.halves import StepShare, halved
from robomodel.motion.inputs import Inputs, Saturated, Signals, stacked
from robomodel.motion.integrator_functions import (
    independent_columns,
    joint_accelerations,
)
from robomodel.motion.limits import LimitMargins
from robomodel.motion.steps import (
    ABSENT,
    IRREGULAR,
    LOST,
    RUNGE_KUTTA,
    FixedStep,
    flow,
)
from robomodel.motion.tangent import (
    NEARLY,
    START_CONDITION,
    UNDETERMINED,
    StepError,
    advice,
    closed_by_least_squares,
    condition,
)
from robomodel.motion.trajectory import SimulationError, Stop, Trajectory
from robomodel.running import Progress
from robomodel.tolerances import SAME, WRITTEN

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
    """A running simulation, on states of ``step``, by the method of :meth:`_through`."""

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
            state = self._through(signals, k, grid, state)
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
    def _through(self, signals: Signals, k: int, grid: Grid, state: Array) -> Array:
        """The state after step k of the grid."""

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

    def _speeds(self, state: Array) -> Array:
        """Velocities of all joints."""
        return self.step.joint_velocities(state)

    # ---- records

    def _keep(self, t: float, state: Array, signals: Signals) -> None:
        """Record a state."""
        q, v = self._independent(state)
        self._times.append(t)
        self._rows.append(np.concatenate([q, v]))
        self._tau.append(np.array(signals.tau(t, q, v)))
        if isinstance(signals.tau, Saturated):
            self._saturated.append(signals.tau.at_limits(t, q, v))
        if self.step.checks:
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

AT_CHANGE_POINT = "ends too near to a change point"
# shares of the next step: far from both its ends, where others may end too; or steps further on
BEYOND = (1 / 2, 1 / 3, 2 / 3, 3 / 2, 7 / 2, 15 / 2, 31 / 2, 63 / 2, 127 / 2)
PARTS = (1, 2, 3, 5, 7, 11, 13)  # equal parts of a step: primes, which share no ends


class Record(NamedTuple):
    """The record of a step of time stepping: q at its beginning, contacts from the callable,
    forces on all contacts, impulses and velocities along their axes, the residual of their
    equations.
    """

    q: Array
    contacts: Sequence[Contact]
    forces: Array
    along: Array
    residual: float


class Ahead(NamedTuple):
    """A motion that a step has led beyond its end, over a change point.

    ``start``, ``since``: the state where that step began, and how long ago [s]. ``state``, ``by``:
    the state that it led to, and how much later that is [s]. ``acting``: forces and wrenches of the
    step, ``record`` its record. ``speeds``: velocities of all joints now, between both.
    """

    start: Array
    since: float
    state: Array
    by: float
    acting: tuple[Array, Mapping[str, Array]]
    record: Record | None
    speeds: Array


@dataclass
class Steps(Run):
    """Fixed steps of one motion, with records of contacts.

    ``touching`` returns contacts of pairs of links at a state. ``dtype``: of the states between
    steps, which are taken in double precision. ``ahead``: set if the motion is beyond the end of
    the last step.
    """

    touching: Contacts | None = None
    dtype: Dtype = "float64"
    pairs: list[Pair] = field(default_factory=list)
    ahead: Ahead | None = None
    _records: list[Record] = field(default_factory=list)

    def _through(self, signals: Signals, k: int, grid: Grid, state: Array) -> Array:
        t, h, began = grid.at(k), grid.length(k), self.ahead
        following = grid.length(k + 1) if k + 1 < grid.count else h
        try:
            after, record = self.advance(signals, t, h, state, following)
        except StepError as error:
            raise self._failed(t, state, f"the step from there {error}") from None
        if began is None and self.ahead is None:

            def at(share: float) -> Array:
                return self._parts(signals, t, share * h, state)[0]

            met = self.limits.first(t, h, state, after, at)
            if met is not None:
                share, after, self.stop = met
                record = self._parts(signals, t, share * h, state)[1] if share else None
        if record:
            self._records.append(record)
        return after

    # ---- a step

    def advance(
        self, signals: Signals, t: float, h: float, state: Array, following: float
    ) -> tuple[Array, Record | None]:
        """The state after a step, and its record; raises :class:`StepError`.

        A step that would end at a change point ends beyond it, within the following step (of length
        ``following``), which continues from there, or later if the motion is slow. States at the
        ends of steps are then interpolated.
        """
        first, start, length = 0.0, state, h
        if self.ahead is not None:
            lead = self._pushed_on(self.ahead, signals, t, min(h, self.ahead.by))
            if lead.by >= h:
                return self._between(lead, signals, t, h)
            first, start, length = lead.by, lead.state, h - lead.by
        try:
            after = self._parts(signals, t + first, length, start)
        except StepError as error:
            for share in BEYOND:
                by = share * following
                try:
                    beyond, record = self._parts(signals, t + first, length + by, start)
                    acting = signals.at(t + first, *self._independent(start))
                    lead = Ahead(start, -first, beyond, h + by, acting, record, np.zeros(0))
                    return self._between(lead, signals, t, h)
                except StepError:
                    continue
            raise error
        self.ahead = None
        return after

    def _pushed_on(self, lead: Ahead, signals: Signals, t: float, h: float) -> Ahead:
        """A lead after a time h of this step; the difference of forces acts on the state led to."""
        step, nq = self.step, self.model.nq
        if step.method == "rk4" and callable(self.inputs.tau) and not self.inputs.hold:
            return lead  # whose stages have asked for them
        x = step.tangent_row(lead.state)
        acting = signals.at(t, *step.independent(x))
        change = self._flow(x, acting) - self._flow(x, lead.acting)
        x[nq : nq + self.model.nv] += h * change[nq:]
        state = lead.state.copy()
        state[step.columns[1]] = step.independent(x)[1]
        state[step.columns[2]] = x[nq : nq + self.model.nv]
        return lead._replace(state=state)

    def _flow(self, x: Array, acting: tuple[Array, Mapping[str, Array]]) -> Array:
        """q̇ and ż at q, z and bases under forces and wrenches."""
        tau, pushes = acting
        if self.step.saturate:
            tau = saturate(self.model, *self.step.independent(x), tau)[0]
        derivative = flow(self.model, tuple(pushes), passive=self.step.passive)
        return np.asarray(derivative(x, tau, *stacked(pushes)))

    def _speeds(self, state: Array) -> Array:
        return self.step.joint_velocities(state) if self.ahead is None else self.ahead.speeds

    def _between(
        self, lead: Ahead, signals: Signals, t: float, h: float
    ) -> tuple[Array, Record | None]:
        """The state at t + h of a motion that is led over it, by cubics.

        Impulses may have changed velocities anywhere in between: these are interpolated linearly.
        """
        from scipy.interpolate import CubicHermiteSpline

        model, step = self.model, self.step
        nq = model.nq
        times = -lead.since, lead.by
        values, slopes = [], []
        for time, state in zip(times, (lead.start, lead.state), strict=True):
            x = step.tangent_row(state)
            rates = self._flow(x, signals.at(t + time, *step.independent(x)))
            accelerations = joint_accelerations(model)(x, rates[nq:])
            values.append(np.concatenate([x[:nq], step.joint_velocities(state)]))
            slopes.append(np.concatenate([rates[:nq], accelerations]))
        row = CubicHermiteSpline(times, values, slopes)(h)
        q, speeds = closed_by_least_squares(model, row[:nq], LOST[self.dtype]), row[nq:]
        if step.setting is not None:
            share = (h + lead.since) / (lead.by + lead.since)
            speeds = (1.0 - share) * values[0][nq:] + share * values[1][nq:]
        self.ahead = lead._replace(since=lead.since + h, by=lead.by - h, speeds=speeds)
        shown = lead.state.copy()
        shown[:nq], shown[step.columns[1]] = q, speeds[independent_columns(model)]
        return shown, lead.record

    def _parts(
        self, signals: Signals, t: float, h: float, state: Array
    ) -> tuple[Array, Record | None]:
        """The state after a step, and its record.

        A step that leaves loops open, or leads to another way of closing them, is taken in parts:
        it is too long, or a change point is in the way, which other parts do not end at.
        """
        last = None
        for count in PARTS:
            if count > 1:
                self.step = replace(self.step, careful=True)
            parts = self._in_parts(signals, t, h, state, count)
            if count > 1:
                self.step = replace(self.step, careful=False)
            last = parts[-1]
            if not last.fault:
                return last.state, _joined(parts)
            if last.fault == AT_CHANGE_POINT:  # other parts would end there, too
                break
        assert last is not None
        raise StepError(last.fault)

    def _in_parts(
        self, signals: Signals, t: float, h: float, state: Array, count: int
    ) -> list[StepShare]:
        """A step in equal parts, halved if they are too long, up to the first that fails."""

        def part(x: Array, first: float, share: float) -> StepShare:
            try:
                result, record = self._step(signals, t + first * h, share * h, x)
            except StepError as error:
                return StepShare(x, share, False, f"fails ({error})", None)
            too_long = bool(self.step.too_long(result))
            after = result[: self.step.size]
            if len(result) > self.step.results:  # the data of contacts
                after = np.concatenate([after, result[self.step.results :]])
            return StepShare(after, share, too_long, self._failure(result), record)

        parts: list[StepShare] = []
        for n in range(count):
            parts += halved(part, parts[-1].state if parts else state, n / count, 1.0 / count)
            if parts[-1].fault:
                break
        return parts

    def _failure(self, result: Array) -> str:
        """What is wrong with the result of a step; empty if nothing is."""
        step = self.step
        if not np.all(np.isfinite(result[: step.size])):
            return "fails: the state is not finite"
        if step.checks and not result[step.size + 2] > IRREGULAR[self.dtype]:
            return AT_CHANGE_POINT
        if step.lost(result):
            return (
                "leaves loops open, or leads beyond a singular position, over to another way to "
                "close them; take shorter ones"
            )
        if step.setting is not None:
            residual = float(result[step.residual])
            if residual > UNSOLVED:
                return f"fails ({self._story(residual)})"
        return ""

    def _step(
        self, signals: Signals, t: float, h: float, state: Array
    ) -> tuple[Array, Record | None]:
        if self.step.method == "rk4":
            return self._runge_kutta(signals, t, h, state), None
        q, v = self._independent(state)
        tau, pushes = signals.at(t, q, v)
        if self.step.setting is None:
            self._pushed(tuple(pushes))
            return self.step.whole(state, tau, h, *stacked(pushes)), None
        setting = self.step.contact
        if tuple(pushes) != setting.links:
            self.step = replace(self.step, setting=replace(setting, links=tuple(pushes)))
        if setting.bodies is not None:
            return self._touching(state, tau, h, stacked(pushes))
        step = self.step
        result = step.whole(state, tau, h, *step.planes_of(state, h), *stacked(pushes))
        forces = step.forces(result[step.residual + 1 :], h)
        residual = float(result[step.residual])
        return result, Record(q, (), forces, step.touching(result), residual)

    def _touching(
        self, state: Array, tau: Array, h: float, wrenches: Sequence[Array]
    ) -> tuple[Array, Record]:
        """A step with the callable's contacts, as data."""
        q, v = self._independent(state)
        touches = self._contacts(state, v, h)
        names = _named(touches)
        self.pairs += [pair for pair in dict.fromkeys(names) if pair not in self.pairs]
        self._touch_bodies({link for pair in names for link in (pair.link, pair.other) if link})
        first = len(self.step.contact.points)
        numbers = [first + self.pairs.index(pair) for pair in names]
        given = dict(zip(numbers, touches, strict=True))
        taken = ContactStep(self.step).take(state, tau, h, given, wrenches)
        impulses = np.zeros((first + len(self.pairs), 3))
        along = np.zeros((2, *impulses.shape))
        along[1, :, 2] = ABSENT  # pairs without a contact are apart
        for number, velocity in taken.far.items():
            along[1, number] = velocity
        impulses[taken.numbers], along[:, taken.numbers] = taken.impulses, taken.along
        forces = self.step.forces(impulses.ravel(), h)
        residual = float(taken.result[self.step.residual])
        return taken.result, Record(q, touches, forces, along, residual)

    def _touch_bodies(self, links: set[str]) -> None:
        """Include these links among those that may touch something."""
        setting = self.step.contact
        bodies = {self.model.frame(link).body for link in links} - {WORLD, *(setting.bodies or ())}
        if bodies:
            every = (*(setting.bodies or ()), *sorted(bodies))
            self.step = replace(self.step, setting=replace(setting, bodies=every))

    def _runge_kutta(self, signals: Signals, t: float, h: float, state: Array) -> Array:
        nq, length = self.model.nq, np.array([h])
        step = self.step
        carried, result = np.zeros(step.iteration.carried), state
        for row in RUNGE_KUTTA:
            at = np.asarray(step.stage(state, length, carried, np.array(row)))
            tau, pushes = signals.at(t + row[0] * h, at[:nq], at[nq:])
            self._pushed(tuple(pushes))
            step = self.step
            numbers = np.asarray(
                step.after_stage(state, tau, length, *stacked(pushes), carried, np.array(row))
            )
            result, carried = numbers[: step.results], numbers[step.results :]
            state = result[: step.size]
        return result

    def _pushed(self, links: tuple[str, ...]) -> None:
        """Include wrenches on these links."""
        if links != self.step.links:
            self.step = replace(self.step, links=links)

    def _contacts(self, state: Array, v: Array, h: float) -> list[Contact]:
        """The contacts at the middle of the step, where its rows are taken.

        Those at its beginning lag behind on rolling bodies, which then gain energy.
        """
        if self.touching is None:
            return []
        touches = self.touching(ContactStep(self.step).predicted(state, h), v)
        if not isinstance(touches, Iterable):
            raise TypeError(f"contacts gives a list of robomodel.motion.Contact, got {touches!r}")
        return [_checked(self.model, contact) for contact in touches]

    # ---- records

    def _trajectory(self, **more: Any) -> Trajectory:
        if self.step.setting is None:
            return super()._trajectory(**more)
        points, pairs = self.step.points, [*self.step.pairs, *self.pairs]
        always = len(points) + len(self.step.pairs)
        shape = len(self._records), len(points) + len(pairs), 3
        forces, places = np.zeros(shape), np.full(shape, np.nan)
        for t, record in enumerate(self._records):
            forces[t, :always] = record.forces[:always]
            places[t, :always] = self.step.places(record.q)
            for contact, pair in zip(record.contacts, _named(record.contacts), strict=True):
                n = always + self.pairs.index(pair)
                forces[t, n], places[t, n] = record.forces[n], contact.point
        return super()._trajectory(
            contact_forces=forces,
            contact_residual=np.array([each.residual for each in self._records]),
            contact_points=points, contact_pairs=tuple(pairs), contact_places=places,
            _touching=self._contact_record(points, pairs), **more,
        )  # fmt: skip

    def _contact_record(
        self, points: Sequence[GroundPoint], pairs: Sequence[Pair]
    ) -> ContactRecord:
        """The record that events are computed from; contacts that came later had no force before.

        Of a point's planes the one with the largest force counts, or without forces the nearest.
        """
        count = len(self.step.contact.points)
        record = np.zeros((2, len(self._records), count + len(pairs), 3))
        record[1, ..., 2] = ABSENT
        for t, each in enumerate(self._records):
            record[:, t, : each.along.shape[1]] = each.along
        if count > len(points):
            planes = record[:, :, :count].reshape(*record.shape[:2], -1, self.step.stride, 3)
            most = np.argmax(planes[:1, ..., 2], axis=3)[..., None, None]
            bearing = np.take_along_axis(planes, most, axis=3)[:, :, :, 0]
            record = np.concatenate([bearing, record[:, :, count:]], axis=2)
        names = [(pair.link, pair.other) if pair.other else pair.link for pair in pairs]
        return ContactRecord(record[0], record[1], (*(point.link for point in points), *names))

    def _story(self, residual: float) -> str:
        setting, model = self.step.contact, self.model
        contacts = len(setting.points) + len(self.step.pairs) + len(self.pairs)
        return (
            f"impulses are solved for to {residual:.1g} of the velocities only, of "
            f"{contacts} contacts, {len(setting.acting.bounds(model))} stops and "
            f"{len(setting.acting.rubbing(model))} dry frictions: fewer points on one body, less "
            "friction, a shorter step, or masses less far apart may help"
        )


def _joined(parts: Sequence[StepShare]) -> Record | None:
    """The record of a step in parts: mean forces, the worst residual."""
    records: list[Record] = [part.record for part in parts if part.record is not None]
    if len(parts) < 2 or not records:
        return records[0] if records else None
    forces = np.zeros_like(records[-1].forces)
    for part, each in zip(parts, records, strict=True):
        forces[: len(each.forces)] += part.share * each.forces
    worst = max(each.residual for each in records)
    return records[0]._replace(forces=forces, along=records[-1].along, residual=worst)


def _named(touches: Sequence[Contact]) -> list[Pair]:
    """The pairs of contacts; those without names are named by their index."""
    return [
        Pair(each.link, each.other, n if each.name is None else each.name)
        for n, each in enumerate(touches)
    ]


def _checked(model: Model, contact: Contact) -> Contact:
    """A contact from a callable, with its numbers checked and converted."""
    if not isinstance(contact, Contact):
        raise TypeError(f"contacts gives robomodel.motion.Contact pairs, got {contact!r}")
    normal = as_numbers(contact.normal, "normal")
    point = as_numbers(contact.point, "point")
    where = f"of a contact on '{contact.link}'"
    contact = replace(
        contact,
        gap=as_real(contact.gap, f"gap {where}"),
        friction=as_real(contact.friction, f"friction {where}"),
        restitution=as_real(contact.restitution, f"restitution {where}"),
    )
    if normal.shape != (3,) or not abs(np.linalg.norm(normal) - 1.0) <= WRITTEN:
        raise ValueError(f"the normal of a contact on '{contact.link}' is no unit vector: {normal}")
    if point.shape != (3,) or not np.all(np.isfinite([*point, contact.gap])):
        raise ValueError(f"the point or the gap of a contact on '{contact.link}' is off: {contact}")
    if not (0.0 <= contact.friction < np.inf and 0.0 <= contact.restitution <= 1.0):
        raise ValueError(
            f"a contact on '{contact.link}' needs a finite friction from 0 on and a restitution "
            f"from 0 to 1, got {contact.friction!r} and {contact.restitution!r}"
        )
    for link in (contact.link, contact.other):
        if link is not None:
            model.frame(link)  # an UnknownNameError with a hint for unknown ones
    return contact
