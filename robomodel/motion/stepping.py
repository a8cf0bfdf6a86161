"""Time stepping of motions: contact problems solved to the end, heights and pairs of links.

The step of :mod:`robomodel.motion.time_stepping` as one compiled function with a fixed number of
sweeps; where they have not solved its contact problem, that goes on to
:func:`robomodel.dynamics.contact.complementarity.solve` and the step is finished with its impulses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from robomodel.dynamics.contact.complementarity import Problem, solve
from robomodel.dynamics.contact.points import UNSOLVED
from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.state import Configuration
from robomodel.kernels.function import TracedFunction
from robomodel.model.arguments import as_numbers
from robomodel.model.closure import CLOSED
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.motion.change_points import StepError, closed_by_least_squares
from robomodel.motion.events import ContactRecord
from robomodel.motion.ground import Contact, Contacts, Ground, Pair, Placed
from robomodel.motion.inputs import Signals, stacked
from robomodel.motion.integrator_functions import function, independent_columns, joint_accelerations
from robomodel.motion.run import Grid, Run
from robomodel.motion.steps import FEW, RUNGE_KUTTA, SOLVED, FixedStep, flow
from robomodel.motion.time_stepping import NEAR, TOUCH, Setting, between
from robomodel.motion.trajectory import SimulationError, Trajectory
from robomodel.motion.variational import VariationalStep
from robomodel.running import Progress
from robomodel.scalars import Scalar, Vector

NEWTON = 8  # steps of Newton's method where sweeps have not solved a contact problem
PLANES = 2  # planes at once of a point on heights
TORN = (
    1.0 / math.cos(0.6) ** 2
)  # growth of ‖G‖²: tangents turn by 0.6, of which rk4 misses 0.6⁵/120
AT_CHANGE_POINT = "ends too near to a change point"
CAREFUL = 8  # steps of Newton's method that close loops near change points
SINGULAR = 1e-10  # regularity, a square, of K below which steps do not end: six digits are left
BEYOND = (1 / 2, 1 / 3, 2 / 3)  # of the next step: far from both its ends, where others may end too
PARTS = (1, 2, 3, 5, 7, 11, 13)  # of a step, equal ones: primes, which have no ends in common
ABSENT = 1e3  # m: the gap of a contact that is not there


def on_ground(
    acting: Any, ground: Ground | None, points: Sequence[Placed], **options: Any
) -> Setting:
    """The setting of steps with points on a ground."""
    if ground is None:
        return Setting(acting, **options)
    height: float | None = None
    if ground.is_level:
        height = float(np.asarray(ground.height))
    else:
        points = [point for point in points for _ in range(PLANES)]
    x, y, z = np.asarray(ground.velocity, dtype=float).tolist()
    laws = tuple(ground.law(point) for point in points)
    return Setting(acting, tuple(points), laws, height, (x, y, z), **options)


@dataclass(frozen=True)
class Stepper:
    """Time steps of one robot in one setting."""

    step: FixedStep
    ground: Ground | None = None

    @property
    def model(self) -> Model:
        """The robot."""
        return self.step.model

    @property
    def setting(self) -> Setting:
        """What its steps depend on."""
        assert self.step.setting is not None
        return self.step.setting

    @cached_property
    def harder(self) -> FixedStep:
        """Steps with more done for their contact problems."""
        return replace(self.step, newton=NEWTON)

    @cached_property
    def careful(self) -> Stepper:
        """Steps near change points."""
        setting = self.step.setting
        if setting is not None:
            setting = replace(setting, closing=CAREFUL)
        step = replace(self.step, closing=CAREFUL, careful=True, setting=setting)
        return Stepper(step, self.ground)

    def like(self, usual: FixedStep) -> Stepper:
        """Steps as careful as others, with the pairs and wrenches of these."""
        setting = self.step.setting
        if setting is not None and usual.setting is not None:
            setting = replace(setting, closing=usual.setting.closing)
        step = replace(self.step, closing=usual.closing, careful=usual.careful, setting=setting)
        return Stepper(step, self.ground)

    # ---- planes

    @property
    def points(self) -> tuple[Placed, ...]:
        """What may touch the ground, each point once."""
        setting = self.setting
        return setting.points if setting.height is not None else setting.points[::PLANES]

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Contacts of spheres and capsules of links with each other."""
        return tuple(
            Pair(pair.first.link, pair.second.link, (n, m))
            for n, pair in enumerate(self.setting.rounds)
            for m in range(pair.count)
        )

    @cached_property
    def _places(self) -> TracedFunction:
        """q → places of the contacts in the world, each point's once."""
        model, rounds = self.model, self.setting.rounds
        points = self.points
        links = {p.link for p in points}.union(*(pair.links for pair in rounds))

        def build(q: Vector) -> list[Scalar]:
            state = Configuration(model, q, {model.frame(link).body for link in links})
            places = [
                frames.pose_of(state, frames.place(model, (p.link, p.offset)))[1] for p in points
            ]
            for pair in rounds:
                places += [each[2] for each in between(model, state, pair)]
            return [x for place in places for x in place]

        of = [(point.link, point.offset) for point in points]
        size = 3 * (len(points) + len(self.pairs))
        return function(model, f"places of {of!r}, {rounds!r}", (model.nq, size), build,
                        backend=self.step.backend)  # fmt: skip

    def places(self, q: Array) -> Array:
        """Places (..., k, 3) of the contacts, each point's once."""
        if not self.points and not self.pairs:
            return np.zeros((*q.shape[:-1], 0, 3))
        return np.asarray(self._places(q)).reshape(*q.shape[:-1], -1, 3)

    def planes(self, q: Array) -> Array:
        """Planes (..., 4 k) at the points where the ground has heights."""
        assert self.ground is not None
        centres = self.places(q)[..., : len(self.points), :]
        radii = np.array([p.radius for p in self.points])
        gaps, normals = self.ground.surfaces(centres, radii, reach=10.0 * NEAR, count=PLANES)
        far = ~np.isfinite(gaps)
        normals = np.where(far[..., None], [0.0, 0.0, 1.0], normals)
        heights = np.einsum("...ki,...kci->...kc", centres, normals) - radii[:, None]
        offsets = heights - np.where(far, ABSENT, gaps)
        planes = np.concatenate([normals, offsets[..., None]], axis=-1)
        return planes.reshape(*q.shape[:-1], -1)

    def forces(self, impulses: Array, h: float) -> Array:
        """Forces (..., k, 3) from the impulses of a step, each point's once."""
        forces = impulses.reshape(*impulses.shape[:-1], -1, 3) / h
        points = len(self.setting.points)
        if points == len(self.points):
            return forces
        planes = forces[..., :points, :].reshape(*forces.shape[:-2], -1, PLANES, 3)
        return np.concatenate([planes.sum(axis=-2), forces[..., points:, :]], axis=-2)

    def impulses(self, forces: Array, h: float) -> Array:
        """Impulses (T, 3 k) of steps, from the forces (T, k, 3), at a point's first plane."""
        count, setting = len(self.points), self.setting
        impulses = np.zeros((len(forces), setting.contacts, 3))
        stride = len(setting.points) // max(count, 1) or 1
        impulses[:, : len(setting.points) : stride] = h * forces[:, :count]
        impulses[:, len(setting.points) :] = h * forces[:, count:]
        return impulses.reshape(len(forces), 3 * setting.contacts)

    # ---- steps

    def advance(self, states: Array, tau: Array, h: float, *more: Array) -> Array:
        """Results (..., results) of a step from states (..., size)."""
        length = np.array([h], states.dtype)
        result: Array = np.asarray(self.step.once(states, tau, length, *more))
        at = self.step.size + self.step.checks
        if not np.all(result[..., at] <= SOLVED):
            if self.step.rows.size <= FEW:  # of more, the program would take long to compile
                again = np.asarray(self.harder.once(states, tau, length, *more))
                result = np.where((again[..., at] < result[..., at])[..., None], again, result)
            self.finish(states, tau, h, more, result)
        return result

    def finish(
        self, states: Array, tau: Array, h: float, more: Sequence[Array], result: Array
    ) -> None:
        """Replace results whose contact problems are not solved."""
        residual = result[..., self.step.size + self.step.checks]
        for at in (
            zip(*np.nonzero(~(residual <= SOLVED)), strict=True)
            if residual.ndim
            else ([()] if not residual <= SOLVED else [])
        ):
            if np.all(np.isfinite(states[at])):
                arguments = [np.broadcast_to(x, (*states.shape[:-1], x.shape[-1]))[at]
                             for x in (tau, *more)]  # fmt: skip
                better = self._solved(states[at], arguments[0], h, arguments[1:])
                own = better[self.step.size + self.step.checks]
                if own < residual[at] or not np.isfinite(residual[at]):
                    result[at] = better

    def _solved(self, state: Array, tau: Array, h: float, more: Sequence[Array]) -> Array:
        """A step whose contact problems are solved to the end."""
        step, rows = self.step, self.step.rows
        n, k = rows.size, rows.contacts
        state, tau, length = (np.asarray(x, float) for x in (state, tau, np.array([h])))
        memory = state[step.columns[4]]
        x = memory[:n]
        z = np.array(step.moving(state.tolist()).z)
        mean = z + 0.5 * memory[len(memory) - self.model.nv :]
        result = np.full(step.results, np.nan)
        for _ in range(step.passes):
            numbers = np.asarray(step.contact_problem(state, tau, length, mean, *more))
            if not np.all(np.isfinite(numbers)):
                return result
            at = np.cumsum([n * n, n, k, rows.boxes, n, n])
            parts = np.split(numbers, at)
            matrix = parts[0].reshape(n, n)
            problem = Problem(matrix, parts[1], rows, parts[2], parts[3])
            start = x
            x, residual = _scaled(problem, start)
            if self.setting.rebounds:
                rest, _ = _scaled(replace(problem, b=parts[4]), start)
                x = problem.without_gain(parts[5], x, rest)
            given = np.concatenate([x, np.zeros(k), [residual]])
            found = np.asarray(step.with_impulses(state, tau, length, mean, given, *more))
            result, mean = found[: step.results], found[step.results :]
        return result


def _scaled(problem: Problem, start: Array) -> tuple[Array, float]:
    """The solution of the rows that may act; those held open have no impulse."""
    rows = problem.rows
    open_ = problem.b > 0.5e9
    contacts = [i for i in range(rows.contacts) if not open_[3 * i + 2]]
    first = 3 * rows.contacts
    stops = [j for j in range(first, first + rows.stops) if not open_[j]]
    boxes = list(range(first + rows.stops, rows.size))
    at = np.array([3 * i + c for i in contacts for c in range(3)] + stops + boxes, dtype=int)
    x = np.zeros(rows.size)
    if not len(at):
        return x, 0.0
    part = replace(
        problem,
        matrix=problem.matrix[np.ix_(at, at)],
        b=problem.b[at],
        rows=replace(rows, contacts=len(contacts), stops=len(stops)),
        friction=problem.friction[contacts],
    )
    best, residual = solve(part, start[at], 0.1 * SOLVED)
    if residual > SOLVED and np.any(start[at]):
        other, less = solve(part, np.zeros(len(at)), 0.1 * SOLVED)
        if less < residual:
            best, residual = other, less
    x[at] = best
    return x, residual


# ---- one motion, with records --------------------------------------------------------------------


@dataclass
class Steps(Run):
    """Fixed steps of one motion, with what is recorded of contacts.

    ``touching`` gives contacts of pairs of links at a state.
    """

    stepper: Stepper
    touching: Contacts | None = None
    pairs: list[Pair] = field(default_factory=list)
    _forces: list[Array] = field(default_factory=list)
    _places: list[Array] = field(default_factory=list)
    _touching: list[Array] = field(default_factory=list)
    _given: list[dict[Pair, tuple[Array, Array]]] = field(default_factory=list)
    _residual: list[float] = field(default_factory=list)

    @property
    def step(self) -> FixedStep:
        """What states are those of."""
        return self.stepper.step

    def _through(
        self, signals: Signals, k: int, grid: Grid, state: Array, bar: Progress
    ) -> tuple[int, Array]:
        t, end = grid.at(k), grid.at(k + 1)

        def at(share: float) -> Array:
            return self._advance(signals, t, share * (end - t), state)[0]

        try:
            after, record = self._advance(signals, t, end - t, state)
        except SimulationError:
            over = self._over(k, grid, state, signals)
            if over is None:
                raise
            return k + 2, over
        met = self.limits.first(t, end - t, state, after, at)
        if met is not None:
            share, after, self.stop = met
            record = self._advance(signals, t, share * (end - t), state)[1] if share else ()
        if record:
            self._record(record)
        bar.at(end)
        return k + 1, after

    # ---- a step

    def _over(self, k: int, grid: Grid, state: Array, signals: Signals) -> Array | None:
        """The state after two steps, of which the first would end at a change point; None: no.

        One ends beyond it; the state in between is recorded, interpolated from those around.
        """
        t, end, last = (grid.at(n) for n in (k, k + 1, k + 2))
        length = last - end if last > end else end - t
        for share in BEYOND:
            try:
                ahead, record = self._advance(signals, t, end - t + share * length, state)
                speeds, between = self._between(
                    signals, (t, state), (end + share * length, ahead), end
                )
                after, records = ahead, [record]
                if last > end:
                    signals = self._signals(k + 1, end, between)
                    rest = (1.0 - share) * length
                    after, later = self._advance(signals, end + share * length, rest, ahead)
                    records.append(later)
            except (SimulationError, StepError):
                continue
            self._keep(end, between, signals, speeds)
            for each in filter(None, records):
                self._record(each)
            return after
        return None

    def _between(
        self, signals: Signals, first: tuple[float, Array], last: tuple[float, Array], t: float
    ) -> tuple[Array, Array]:
        """Velocities of all joints, and (q, v), at t, by cubics between two states.

        Impulses may have changed velocities anywhere in between: these are told by a line then.
        """
        from scipy.interpolate import CubicHermiteSpline

        model, step = self.model, self.step
        nq = model.nq
        values, slopes = [], []
        for time, state in (first, last):
            x = step.tangent_row(state)
            tau, pushes = signals.at(time, *step.independent(x))
            rates = flow(model, tuple(pushes), passive=step.passive)(x, tau, *stacked(pushes))
            accelerations = joint_accelerations(model)(x, rates[nq:])
            values.append(np.concatenate([x[:nq], step.joint_velocities(state)]))
            slopes.append(np.concatenate([rates[:nq], accelerations]))
        told = CubicHermiteSpline([first[0], last[0]], values, slopes)(t)
        q, speeds = closed_by_least_squares(model, told[:nq]), told[nq:]
        if step.setting is not None:
            share = (t - first[0]) / (last[0] - first[0])
            speeds = (1.0 - share) * values[0][nq:] + share * values[1][nq:]
        return speeds, np.concatenate([q, speeds[independent_columns(model)]])

    def _advance(
        self, signals: Signals, t: float, h: float, state: Array
    ) -> tuple[Array, tuple[Any, ...]]:
        """The state after a step, and what is recorded of it.

        A step that leaves loops open, or leads over to another way to close them, is taken in
        parts, of which others end elsewhere: a change point is in the way, or it is too long.
        """
        failed = ""
        for parts in PARTS:
            usual = self.stepper.step
            if parts > 1:
                self.stepper = self.stepper.careful
            x = state
            records = []
            for n in range(parts):
                try:
                    result, record = self._step(signals, t + n * h / parts, h / parts, x)
                except StepError as error:
                    failed = f"fails ({error})"
                    break
                records.append(record)
                failed = self._failure(result)
                if failed:
                    break
                x = result[: self.stepper.step.size]
            if parts > 1:
                self.stepper = self.stepper.like(usual)
            if not failed:
                return x, _joined(records)
            if failed == AT_CHANGE_POINT:  # where others would end, too
                break
        raise self._failed(t, state, f"the step from there {failed}")

    def _failure(self, result: Array) -> str:
        """What is wrong with the result of a step; nothing where all is well."""
        step = self.stepper.step
        if not np.all(np.isfinite(result[: step.size])):
            return "fails: the state is not finite"
        if step.checks and not result[step.size + 2] > SINGULAR:
            return AT_CHANGE_POINT
        if step.checks and not (result[step.size] <= CLOSED**2 and result[step.size + 1] < TORN):
            return (
                "leaves loops open, or leads beyond a singular position, over to another way to "
                "close them; take shorter ones"
            )
        if step.setting is not None:
            residual = float(result[step.size + step.checks])
            if residual > UNSOLVED:
                return f"fails ({self._story(residual)})"
        return ""

    def _step(
        self, signals: Signals, t: float, h: float, state: Array
    ) -> tuple[Array, tuple[Any, ...]]:
        match self.step.method:
            case "rk4":
                return self._runge_kutta(signals, t, h, state), ()
            case "semi_implicit_euler":
                return self._euler(signals, t, h, state), ()
            case "variational":
                return VariationalStep(self.step, signals, t, h).result(state), ()
        q, v = self._independent(state)
        tau, pushes = signals.at(t, q, v)
        touches = self._contacts(q, v)
        state = self._adapted(state, touches, tuple(pushes))
        stepper, more = self.stepper, []
        if stepper.setting.height is None:
            more.append(stepper.planes(q))
        if stepper.setting.pairs:
            more.append(self._touches(touches))
        if pushes:
            more.append(np.concatenate(list(pushes.values())))
        result = stepper.advance(state, tau, h, *more)
        first = stepper.step.size + stepper.step.checks
        forces = stepper.forces(result[first + 1 :], h)
        along = stepper.step.touching(result)
        return result, (q, touches, forces, along, float(result[first]))

    def _euler(self, signals: Signals, t: float, h: float, state: Array) -> Array:
        model = self.model
        q, v = state[: model.nq], state[model.nq : model.nq + model.nv]
        tau, pushes = signals.at(t, q, v)
        self._pushed(tuple(pushes))
        return np.asarray(self.stepper.step.once(state, tau, np.array([h]), *stacked(pushes)))

    def _runge_kutta(self, signals: Signals, t: float, h: float, state: Array) -> Array:
        nq, length = self.model.nq, np.array([h])
        step = self.stepper.step
        carried, result = np.zeros(step.iteration.carried), state
        for row in RUNGE_KUTTA:
            at = np.asarray(step.stage(state, length, carried, np.array(row)))
            tau, pushes = signals.at(t + row[0] * h, at[:nq], at[nq:])
            self._pushed(tuple(pushes))
            step = self.stepper.step
            numbers = np.asarray(
                step.once(state, tau, length, *stacked(pushes), carried, np.array(row))
            )
            result, carried = numbers[: step.results], numbers[step.results :]
            state = result[: step.size]
        return result

    def _pushed(self, links: tuple[str, ...]) -> None:
        """Steps with wrenches on these links."""
        if links != self.stepper.step.links:
            self.stepper = Stepper(replace(self.stepper.step, links=links), self.stepper.ground)

    def _adapted(self, state: Array, touches: Sequence[Contact], links: tuple[str, ...]) -> Array:
        """The state for steps with all pairs and wrenches that there have been."""
        old = self.stepper
        known = list(self.pairs)
        known += [pair for pair in _named(touches) if pair not in known]
        if len(known) == len(self.pairs) and links == old.setting.links:
            return state
        self.pairs[:] = known
        pairs = tuple((pair.link, pair.other) for pair in known)
        setting = replace(old.setting, pairs=pairs, links=links)
        self.stepper = Stepper(replace(old.step, setting=setting), old.ground)
        return _carried(old.step, self.stepper.step, state)

    def _contacts(self, q: Array, v: Array) -> list[Contact]:
        if self.touching is None:
            return []
        found = self.touching(q, v)
        if not isinstance(found, Iterable):
            raise TypeError(f"contacts gives a list of robomodel.Contact, got {found!r}")
        return [_checked(self.model, contact) for contact in found]

    def _touches(self, touches: Sequence[Contact]) -> Array:
        """The argument of a step; pairs that do not touch are far apart."""
        rows = np.zeros((len(self.pairs), TOUCH))
        rows[:, 5], rows[:, 6] = 1.0, ABSENT
        for contact, pair in zip(touches, _named(touches), strict=True):
            law = (contact.gap, contact.friction, contact.restitution)
            rows[self.pairs.index(pair)] = np.concatenate([contact.point, contact.normal, law])
        return rows.ravel()

    # ---- records

    def _record(self, record: tuple[Any, ...]) -> None:
        q, touches, forces, along, residual = record
        stepper = self.stepper
        self._touching.append(along)
        static = self._static
        self._forces.append(forces[:static])
        self._places.append(stepper.places(q))
        given: dict[Pair, tuple[Array, Array]] = {}
        for contact, pair in zip(touches, _named(touches), strict=True):
            force = forces[static + self.pairs.index(pair)]
            given[pair] = force, np.asarray(contact.point, float)
        self._given.append(given)
        self._residual.append(residual)

    def _trajectory(self, **more: Any) -> Trajectory:
        if self.step.setting is None:
            return super()._trajectory(**more)
        points, pairs = self.stepper.points, [*self.stepper.pairs, *self.pairs]
        static, touching = self._static, self._contact_record(points, pairs)
        shape = len(self._forces), static + len(self.pairs), 3
        forces, places = np.zeros(shape), np.full(shape, np.nan)
        for t, (force, place, given) in enumerate(
            zip(self._forces, self._places, self._given, strict=True)
        ):
            forces[t, :static], places[t, :static] = force, place
            for pair, (push, where) in given.items():
                n = static + self.pairs.index(pair)
                forces[t, n], places[t, n] = push, where
        return super()._trajectory(
            contact_forces=forces, contact_residual=np.array(self._residual, dtype=float),
            contact_points=points, contact_pairs=tuple(pairs), contact_places=places,
            _touching=touching, **more,
        )  # fmt: skip

    @property
    def _static(self) -> int:
        """Number of contacts that no callable gives, those of a point counted once."""
        return len(self.stepper.points) + len(self.stepper.pairs)

    def _contact_record(self, points: Sequence[Placed], pairs: Sequence[Pair]) -> ContactRecord:
        """What events are read from; contacts that came later had no force before.

        Of a point's planes the one that bears most counts, where none does the nearest.
        """
        count = len(self.stepper.setting.points)
        record = np.zeros((2, len(self._touching), count + len(pairs), 3))
        for t, each in enumerate(self._touching):
            record[:, t, : each.shape[1]] = each
        if count > len(points):
            planes = record[:, :, :count].reshape(*record.shape[:2], -1, PLANES, 3)
            most = np.argmax(planes[:1, ..., 2], axis=3)[..., None, None]
            bearing = np.take_along_axis(planes, most, axis=3)[:, :, :, 0]
            record = np.concatenate([bearing, record[:, :, count:]], axis=2)
        names = [(pair.link, pair.other) if pair.other else pair.link for pair in pairs]
        return ContactRecord(record[0], record[1], (*(point.link for point in points), *names))

    def _story(self, residual: float) -> str:
        setting, model = self.stepper.setting, self.model
        return (
            f"impulses are solved for to {residual:.1g} of the velocities only, of "
            f"{setting.contacts} contacts, {len(setting.acting.bounds(model))} stops and "
            f"{len(setting.acting.rubbing(model))} dry frictions: fewer points on one body, less "
            "friction, a shorter step, or masses less far apart may help"
        )


def _joined(records: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """What is recorded of a step in equal parts: mean forces, the worst residual."""
    if not records[0] or len(records) == 1:
        return records[0]
    q, touches, *_ = records[0]
    forces = sum(each[2] for each in records) / len(records)
    return q, touches, forces, records[-1][3], max(each[4] for each in records)


def _named(touches: Sequence[Contact]) -> list[Pair]:
    """The pairs of contacts; their numbers name those without names."""
    return [
        Pair(each.link, each.other, n if each.name is None else each.name)
        for n, each in enumerate(touches)
    ]


def _carried(old: FixedStep, new: FixedStep, state: Array) -> Array:
    """A state for steps with more pairs: contacts that are new have no memory."""
    before, after = old.rows, new.rows
    head = state[: old.columns[4].start]
    memory = state[old.columns[4]]
    k0, k1 = before.contacts, after.contacts
    tail = before.size - 3 * k0
    parts = np.split(memory, np.cumsum([3 * k0, tail, k0, 3 * k0, before.stops]))
    grown = [np.zeros(3 * (k1 - k0)), None, np.zeros(k1 - k0), np.zeros(3 * (k1 - k0)), None, None]
    pieces = [head]
    for part, more in zip(parts, grown, strict=True):
        pieces.append(part)
        if more is not None:
            pieces.append(more)
    return np.concatenate(pieces)


def _checked(model: Model, contact: Contact) -> Contact:
    """A contact that a callable gives, with numbers in its places."""
    if not isinstance(contact, Contact):
        raise TypeError(f"contacts gives robomodel.Contact pairs, got {contact!r}")
    normal = as_numbers(contact.normal, "normal")
    point = as_numbers(contact.point, "point")
    if normal.shape != (3,) or not abs(np.linalg.norm(normal) - 1.0) <= 1e-6:
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
