"""Fixed steps in time, each written once over scalars of any kind: the steps of rollouts.

Time stepping (:mod:`robomodel.motion.time_stepping`) is one compiled function with a fixed number
of sweeps. If they do not solve its contact problem,
:func:`robomodel.dynamics.contact.complementarity.solve` does, and the step is finished with its
impulses.

A state is one row of numbers: q, v, and the data for the next step: z and the bases of the linkages
(:mod:`robomodel.motion.tangent`), and the memory of time stepping. v is that of the model's
independent joints; linkages move by z.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.actuators.maps import saturated
from robomodel.dynamics.contact.complementarity import ArrayProblem, solve_each
from robomodel.dynamics.contact.gauss_seidel import Sweeps
from robomodel.dynamics.contact.problem import RowKinds, without_gain
from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.state import Configuration, Forces, State
from robomodel.dynamics.recursions.aba import aba
from robomodel.dynamics.recursions.passive import is_absent, passive_force
from robomodel.dynamics.recursions.reduced import reduced
from robomodel.kernels import Iteration
from robomodel.kernels.function import TracedFunction
from robomodel.kernels.program import Dtype
from robomodel.mechanism.graph import WORLD
from robomodel.model.configurations.closing import rates_of_joints
from robomodel.model.configurations.functions import rates
from robomodel.model.derived import cached_on_model
from robomodel.model.model import Model
from robomodel.model.parameters import counted, of_geometry, parameterized
from robomodel.motion import servo as servos
from robomodel.motion import tangent
from robomodel.motion.ground import Ground, GroundPoint, Pair
from robomodel.motion.halves import StepShare
from robomodel.motion.implicit import acceleration, is_sprung
from robomodel.motion.integrator_functions import (
    function,
    independent_columns,
    joint_rates,
)
from robomodel.motion.limits import SINGLE_GAP
from robomodel.motion.servo import Servo
from robomodel.motion.tangent import in_tangents, linkages
from robomodel.motion.time_stepping import (
    CAREFUL,
    TAKES_PART,
    Assembly,
    Memory,
    Moving,
    Setting,
    StepInputs,
    assemble,
    between,
    finish,
    mean_velocity,
)
from robomodel.scalars import Scalar, Vector, added, advanced, div, dot, select, sqrt
from robomodel.spatial import ZERO, inner
from robomodel.tolerances import CLOSED

SWEEPS = 4  # of Gauss-Seidel on a contact problem, starting from the last step's impulses
POLISH = 2  # Newton steps after them: 4 + 2 solve what 8 sweeps leave at 1e-10
FEW_ROWS = 16  # rows (of five points) above which two Newton steps cost more than the rest
SOLVED = 1e-11  # wanted residual of contact problems, relative to their velocities

# growth of ‖G‖² that a step is too long for: tangents turn by 0.6, of which rk4 misses 0.6⁵/120
TORN = 1.0 / math.cos(0.6) ** 2
BENT = 0.3  # share of a way by which its curve is followed: tangents turn by 0.6 then
NONE = np.zeros(0)
Length: TypeAlias = float | Array
LEAST = float(np.finfo(float).tiny)
ABSENT = 1e3  # m: the gap that stands for no contact

LOST = {"float64": CLOSED, "float32": SINGLE_GAP}  # gap of loops above which a step is lost
IRREGULAR = {
    "float64": 1e-10,  # six digits are left
    "float32": 5e-7,
}  # least regularity of K (a square) at which steps end

# a step of time stepping is halved where loops stay open and above these: distance of contacts at
# the end from that of their rows [m], and growth of ‖G‖² (tangents turn by 0.1). Of 400 landings of
# a leg with a four-bar at up to 8 m/s, with steps of 1 ms, energy rises by 3.6e-4 of itself then,
# without halves by 1.9e-2
MISS = 2e-4
TURNED = 1.0 / math.cos(0.1) ** 2

# for each stage: its share of the step, its weight, whether it is the first, whether the last
RUNGE_KUTTA = (
    (0.0, 1 / 6, 1.0, 0.0),
    (0.5, 1 / 3, 0.0, 0.0),
    (0.5, 1 / 3, 0.0, 0.0),
    (1.0, 1 / 6, 0.0, 1.0),
)


def on_ground(
    acting: Any, grounds: Sequence[Ground], points: Sequence[GroundPoint], **options: Any
) -> Setting:
    """The setting of steps on grounds: a contact for each plane that a point may touch."""
    if not grounds:
        return Setting(acting, **options)
    planes = [ground for ground in grounds for _ in range(ground.planes)]
    level = len(planes) == 1 and planes[0].is_level
    return Setting(
        acting,
        tuple(point for point in points for _ in planes),
        tuple(ground.law(point) for point in points for ground in planes),
        float(np.asarray(planes[0].height)) if level else None,
        **options,
    )


@dataclass(frozen=True)
class FixedStep:
    """One step of a method on one robot: (state, tau, step) → state, checks.

    ``servo``: gains and targets of PD loops (:mod:`robomodel.motion.servo`) follow tau.
    ``careful``: loops are closed at each stage, as is necessary near change points.
    ``parameters``: names of those whose values are the last argument of a step.

    With linkages the state is followed by Σ of the squared gaps of loops, the growth of ‖G‖² within
    the step (1: none), and the regularity of K (0 at change points). After time stepping follow the
    distance of contacts at the end from that of their rows, the residual of the contact equations,
    and the impulses of the contacts in world axes.
    """

    model: Model
    method: str
    closing: int = 2
    careful: bool = False
    setting: Setting | None = None
    links: tuple[str, ...] = ()
    sweeps: int = SWEEPS
    passive: bool = True
    saturate: bool = False
    servo: Servo | None = None
    dtype: Dtype = "float64"
    backend: str = "compiled"
    grounds: tuple[Ground, ...] = ()
    parameters: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """All that identifies it on this robot."""
        options = (
            self.closing,
            self.careful,
            self.setting,
            self.links,
            self.sweeps,
            self.newton_steps,
            self.passive,
            self.saturate,
            self.servo,
            self.parameters,
        )
        return f"step {self.method} {options!r}"

    # ---- parameters

    def at(self, values: Vector) -> FixedStep:
        """The step with these values of its parameters, scalars of any kind.

        Zero friction becomes the least positive number, so that its row in states and problems
        stays.
        """
        given = {
            name: LEAST if name.endswith(".friction") and is_absent(value) else value
            for name, value in zip(self.parameters, values, strict=True)
        }
        at = replace(parameterized(self.model, given), _nominal=self.model)
        return replace(self, model=at, parameters=())

    def robots(self, p: Array) -> Model:
        """The model with values (..., count) of its geometry, whose numbers are arrays (...)."""
        names = of_geometry(self.model, self.parameters)
        given = {name: p[..., self.parameters.index(name)] for name in names}
        return parameterized(self.model, given) if given else self.model

    def of_each(self, p: Array, batch: tuple[int, ...]) -> tuple[Array, ...]:
        """The last argument of a batch's steps, if there are parameters p (..., count)."""
        if not self.parameters:
            return ()
        count = len(self.parameters)
        return (np.broadcast_to(p.astype(self.dtype), (*batch, count)).reshape(-1, count),)

    @cached_property
    def sized(self) -> Model:
        """The model on which all parameters count, also friction that the file lacks."""
        return counted(self.model, self.parameters)

    def _program(
        self, name: str, sizes: Sequence[int], build: Callable[..., list[Scalar]], behind: int = 0,
        **options: Any,
    ) -> TracedFunction:  # fmt: skip
        """The program of ``build``; ``behind``: number of arguments that follow the parameters."""

        def by_values(*inputs: Vector) -> list[Scalar]:
            if not self.parameters:
                return build(self, *inputs)
            p = len(inputs) - 1 - behind
            return build(self.at(inputs[p]), *inputs[:p], *inputs[p + 1 :])

        return function(self.model, name, sizes, by_values, backend=self.backend, **options)

    # ---- states

    @cached_property
    def columns(self) -> tuple[slice, ...]:
        """Slices of q, v, z (with linkages), their bases and the memory in a state."""
        model = self.model
        ends = [0]
        memory = 0 if self.setting is None else self.setting.memory(self.sized)
        z = model.nv if linkages(model) else 0
        for size in (model.nq, model.nv, z, tangent.numbers(model), memory):
            ends.append(ends[-1] + size)
        return tuple(slice(a, b) for a, b in itertools.pairwise(ends))

    @cached_property
    def size(self) -> int:
        """Numbers of a state."""
        return int(self.columns[-1].stop)

    @cached_property
    def checks(self) -> int:
        """Number of checks of linkages: three if there are any."""
        return 3 if linkages(self.model) else 0

    @cached_property
    def results(self) -> int:
        """Numbers of a result."""
        touching = 0 if self.setting is None else 2 + 3 * self.setting.contacts
        return self.size + self.checks + touching

    @cached_property
    def miss(self) -> int:
        """Index in a result of the distance of contacts from that of their rows."""
        return self.size + self.checks

    @cached_property
    def residual(self) -> int:
        """Index in a result of the residual of the contact problem; impulses follow."""
        return self.miss + 1

    def start(self, q: Array, v: Array, p: Array = NONE) -> tuple[Array, tangent.Start]:
        """States (..., size) at the start, with parameters p (..., count), and their regularity."""
        at = tangent.start(self.robots(p), q, v)
        states = np.zeros((*at.z.shape[:-1], self.size), self.dtype)
        for part, numbers in zip(self.columns, (q, v, at.z, at.bases), strict=False):
            if part.stop > part.start:
                states[..., part] = numbers
        return states, at

    def from_independent(self, numbers: Vector) -> list[Scalar]:
        """A state from q and v, away from dead points; scalars of any kind."""
        model = self.model
        q, v = list(numbers[: model.nq]), list(numbers[model.nq :])
        z, bases = list(v), list[Sequence[Vector]]()
        for each in linkages(model):
            cluster = model.clusters[each.index]
            columns = list(zip(*each.loop.jacobian(q[cluster.q]), strict=True))
            motions = [[dot(row, column) for row in each.reduce] for column in columns]
            basis = tangent.transported(motions)
            y = [dot(row, v[cluster.v]) for row in zip(*motions, strict=True)]
            z[cluster.v] = [dot(column, y) for column in basis]
            bases.append(basis)
        return self.state_row(Moving(q, z, tangent.flat(bases)), v)

    def moving(self, state: Vector) -> Moving:
        """The tangent coordinates of a state."""
        q, v, z, bases, _ = (list(state[part]) for part in self.columns)
        return Moving(q, z or v, bases)

    def tangent_row(self, state: Array) -> Array:
        """q, z and the bases (:mod:`robomodel.motion.integrator_functions`) of a state."""
        q, v, z, bases, _ = (state[part] for part in self.columns)
        return np.concatenate([q, z if self.checks else v, bases])

    def independent(self, x: Array) -> tuple[Array, Array]:
        """q and v from q, z and bases."""
        model = self.model
        q = x[: model.nq]
        if not self.checks:
            return q, x[model.nq : model.nq + model.nv]
        return q, np.asarray(joint_rates(model)(x))[independent_columns(model)]

    def joint_velocities(self, state: Array) -> Array:
        """Velocities (n_joint_velocities,) of all joints of a state, at dead points too."""
        return np.asarray(joint_rates(self.model)(self.tangent_row(state)))

    def state_row(self, at: Moving, v: Vector, memory: Vector = ()) -> list[Scalar]:
        """A state from its parts."""
        return [*at.q, *v, *(at.z if self.checks else ()), *at.bases, *memory]

    @cached_property
    def stage(self) -> TracedFunction:
        """(state, step, carried numbers, row) → q and v at a stage of "rk4"."""

        def build(state: Vector, step: Vector, carried: Vector, row: Vector) -> list[Scalar]:
            start = self.moving(state)
            here, part, n = in_tangents(self.model, start.bases), row[0] * step[0], len(start.q)
            q = advanced(start.q, part, carried[:n])
            z = advanced(start.z, part, carried[n : n + len(start.z)])
            return [*q, *self._velocities(here, q, z)]

        model = self.model
        sizes = (self.size, 1, self.iteration.carried, len(RUNGE_KUTTA[0]), model.nq + model.nv)
        return function(model, f"stage of {self.name}", sizes, build, backend=self.backend)

    # ---- steps

    @property
    def closings(self) -> int:
        """Steps of Newton's method that close loops."""
        return CAREFUL if self.careful else self.closing

    @property
    def iteration(self) -> Iteration:
        """How the step is run over time."""
        if self.method != "rk4":
            return Iteration((1,))
        carried = 2 * (self.model.nq + self.model.nv)
        return Iteration((1,), RUNGE_KUTTA, carried)

    @property
    def commands(self) -> int:
        """Length of tau, with gains and targets."""
        return self.model.nv + 3 * servos.size(self.model, self.servo)

    def demanded(self, q: Vector, v: Vector, tau: Vector) -> Vector:
        """Forces on the independent joints: tau and those of PD loops, within motors' limits."""
        if self.servo is not None:
            tau = servos.servo_forces(self.model, self.servo, q, v, tau)
        return saturated(self.model, q, v, tau)[0] if self.saturate else tau

    @property
    def more(self) -> tuple[int, ...]:
        """Sizes of the further arguments that a step has, besides (state, tau, step)."""
        others = (6 * len(self.links),) if self.setting is None else self.setting.arguments
        return tuple(filter(None, (*others, len(self.parameters))))

    def build(self, state: Vector, tau: Vector, step: Vector, *more: Vector) -> list[Scalar]:
        """The step; for "rk4" one stage of it."""
        if self.method == "rk4":
            return self._runge_kutta(state, tau, step[0], *more)
        if self.method == "semi_implicit_euler":
            return self._semi_implicit_euler(state, tau, step[0], *more)
        return self._time_stepping(state, self.inputs(tau, step[0], more))

    @cached_property
    def over_time(self) -> TracedFunction:
        """(states at the start, tau at each instant, step) → results at each instant."""
        sizes = (self.size, self.commands, 1, *self.more, self.results)
        behind = 2 if self.iteration.carried else 0
        return self._program(f"{self.name} over time", sizes, FixedStep.build, behind,
                             iteration=self.iteration, dtype=self.dtype)  # fmt: skip

    @cached_property
    def after_stage(self) -> TracedFunction:
        """For "rk4": (state, tau, step, …, carried numbers, row) → result and carried numbers."""
        carried = self.iteration.carried
        sizes = (self.size, self.commands, 1, *self.more, carried, len(RUNGE_KUTTA[0]),
                 self.results + carried)  # fmt: skip
        return self._program(self.name, sizes, FixedStep.build, 2, dtype=self.dtype)

    def _acting(self, here: Model, q: Vector, v: Vector, tau: Vector) -> list[Scalar]:
        """Forces in tangent coordinates, from those on the independent joints."""
        return tangent.tangent_forces(self.model, Configuration(here, q), self.demanded(q, v, tau))

    def wrenches(self, numbers: Vector) -> Forces:
        """Wrenches on bodies, from numbers of the wrenches on links."""
        by_link = {link: numbers[6 * n : 6 * n + 6] for n, link in enumerate(self.links)}
        return frames.body_wrenches(self.model, by_link)

    def accelerations(
        self, here: Model, q: Vector, v: Vector, z: Vector, tau: Vector, wrenches: Vector
    ) -> list[Scalar]:
        """ż under forces on the independent joints, whose velocities limit motors."""
        acting = self._acting(here, q, v, tau)
        if self.passive:
            acting = added(acting, passive_force(here, q, z))
        return aba(here, q, z, acting, self.wrenches(wrenches))

    def here(self, bases: Vector, *, refined: bool = False) -> Model:
        """The model in tangent coordinates with the fewest operations of forward dynamics."""
        return in_tangents(reduced(self.model, "aba"), bases, refined=refined)

    def _velocities(self, here: Model, q: Vector, z: Vector) -> list[Scalar]:
        """v of the independent joints within a step."""
        v = list(z)
        state = Configuration(here, q)
        for each in linkages(self.model):
            cluster = self.model.clusters[each.index]
            speeds = state.spanning(cluster, z[cluster.v])
            v[cluster.v] = [speeds[c] for c in cluster.columns]
        return v

    def _closed(self, here: Model, q: Vector) -> list[Scalar]:
        return tangent.closed(here, q, self.closings, careful=self.careful)

    def _ended(self, here: Model, q: Vector, z: Vector) -> list[Scalar]:
        """The state at closed positions q, with velocities z in the chart of ``here``."""
        bases, after, checks = tangent.renewed(self.model, here, q, z)
        v = tangent.independent_velocities(self.model, q, after, bases)
        return [*self.state_row(Moving(q, after, bases), v), *checks]

    def _runge_kutta(self, state: Vector, tau: Vector, h: Scalar, *more: Vector) -> list[Scalar]:
        """One of four stages; the last one moves the state."""
        *arguments, carried, row = more
        share, weight, first, last = row
        start = self.moving(state)
        n = len(start.q)
        here = self.here(start.bases)
        slope, total = carried[: n + len(start.z)], carried[n + len(start.z) :]
        part = share * h
        at, speed = advanced(start.q, part, slope[:n]), advanced(start.z, part, slope[n:])
        if self.careful:
            at = tangent.closed(here, at, self.closings, careful=True)
        v = self._velocities(here, at, speed) if self.saturate or self.servo else []
        wrenches = arguments[0] if arguments else ()
        slope = [*rates(here, at, speed),
                 *self.accelerations(here, at, v, speed, tau, wrenches)]  # fmt: skip
        total = advanced([(1.0 - first) * x for x in total], weight, slope)
        end = last * h
        q = self._closed(here, advanced(start.q, end, total[:n]))
        return [*self._ended(here, q, advanced(start.z, end, total[n:])), *slope, *total]

    def _semi_implicit_euler(
        self, state: Vector, tau: Vector, h: Scalar, wrenches: Vector = ()
    ) -> list[Scalar]:
        """v first, then q with the new v; implicit in springs and dampers."""
        start = self.moving(state)
        here, v = self.here(start.bases), list(state[self.columns[1]])
        if self.passive and is_sprung(self.model):
            acting = self._acting(here, start.q, v, tau)
            a = acceleration(here, start.q, start.z, acting, h, self.wrenches(wrenches))
        else:
            a = self.accelerations(here, start.q, v, start.z, tau, wrenches)
        z = advanced(start.z, h, a)
        along = rates(here, start.q, z)
        q, bias = advanced(start.q, h, along), State(here, start.q, (), start.z).bias
        for each in linkages(self.model):  # along their curves: z stays, and gaps are of order h³
            at, cluster = start.q, here.clusters[each.index]
            bend = rates_of_joints(here, cluster, at[cluster.q], bias[cluster.spanning_v])
            way, half = along[cluster.q], 0.5 * h
            turned = half * half * dot(bend, bend) - BENT**2 * dot(way, way)
            q[cluster.q] = advanced(q[cluster.q], select(turned, half * h, 0.0), bend)
        q = self._closed(here, q)
        return self._ended(here, q, z)

    # ---- time stepping: the whole, and its two halves for contact problems solved elsewhere

    @property
    def passes(self) -> int:
        """Computations of a step: if G varies, a second one about a better middle."""
        return 2 if linkages(self.model) else 1

    def _time_stepping(self, state: Vector, inputs: StepInputs) -> list[Scalar]:
        rows, memory = self.rows, self._memory(state)
        x, slips = list(memory.impulses), list(memory.slips)
        residual: Scalar = 0.0
        mean: list[Scalar] | None = None
        for n in range(self.passes):
            terms = self.terms(state, inputs, mean)
            if rows.size:
                start = x
                goal = SOLVED * terms.size
                x, slips = self._swept(terms.problem(rows), start, slips, goal)
                residual = div(terms.problem(rows).residual(x), terms.size)
                if self.contact.rebounds:
                    rest, _ = self._swept(terms.without_restitution(rows), start, slips, goal)
                    x = without_gain(terms.delassus, terms.work, x, rest)
            if n + 1 < self.passes:
                mean = mean_velocity(self.model, terms, x)
        return self._outcome(terms, x, slips, residual, inputs)

    def _swept(
        self, problem: Sweeps, x: Vector, slips: Vector, goal: Scalar
    ) -> tuple[list[Scalar], list[Scalar]]:
        """Impulses and slips after the step's sweeps and Newton steps."""
        x, slips = list(x), list(slips)
        for _ in range(self.sweeps):
            x, slips = problem.sweep(x, slips)
        count = self.newton_steps
        return (problem.newton(x, count, goal) if count else x), slips

    @property
    def newton_steps(self) -> int:
        """Newton steps after the sweeps."""
        return POLISH if self.setting is not None and self.rows.size <= FEW_ROWS else 0

    @cached_property
    def rows(self) -> RowKinds:
        """The rows of the contact problem."""
        return self.contact.rows(self.sized)

    @cached_property
    def contact_problem(self) -> TracedFunction:
        """(state, tau, step, mean velocity, …) → matrix, b, friction, bounds, scale of velocities.

        For problems that the step's sweeps have not solved.
        """

        def build(
            one: FixedStep, state: Vector, tau: Vector, step: Vector, mean: Vector, *more: Vector
        ) -> list[Scalar]:
            terms = one.terms(state, one.inputs(tau, step[0], more), mean)
            matrix = [x for row in terms.delassus for x in row]
            return [*matrix, *terms.b, *terms.friction, *terms.bounds, *terms.plain, *terms.work,
                    terms.size]  # fmt: skip

        rows, nv = self.rows, self.model.nv
        size = rows.size * rows.size + 3 * rows.size + rows.contacts + rows.boxes + 1
        sizes = (self.size, self.commands, 1, nv, *self.more, size)
        return self._program(f"contact problem of {self.name}", sizes, build)

    @cached_property
    def with_impulses(self) -> TracedFunction:
        """(state, tau, step, mean velocity, impulses and slips, …) → result and mean velocity."""

        def build(
            one: FixedStep, state: Vector, tau: Vector, step: Vector, mean: Vector,
            impulses: Vector, *more: Vector,
        ) -> list[Scalar]:  # fmt: skip
            inputs = one.inputs(tau, step[0], more)
            terms = one.terms(state, inputs, mean)
            n, k = one.rows.size, one.rows.contacts
            x, slips, residual = impulses[:n], impulses[n : n + k], impulses[n + k]
            return [
                *one._outcome(terms, x, slips, residual, inputs),
                *mean_velocity(one.model, terms, x),
            ]

        nv = self.model.nv
        impulses = self.rows.size + self.rows.contacts + 1
        sizes = (self.size, self.commands, 1, nv, impulses, *self.more, self.results + nv)
        return self._program(f"with impulses {self.name}", sizes, build)

    def inputs(self, tau: Vector, h: Scalar, more: Sequence[Vector]) -> StepInputs:
        """The inputs of a step, from its arguments."""
        rest = list(more)
        return StepInputs(tau, h, *[rest.pop(0) if size else () for size in self.contact.arguments])

    def terms(self, state: Vector, inputs: StepInputs, mean: Vector | None) -> Assembly:
        """The terms of a step of time stepping."""
        start = self.moving(state)
        tau = self.demanded(state[self.columns[0]], state[self.columns[1]], inputs.tau)
        inputs = replace(inputs, tau=tau)
        return assemble(self.model, start, inputs, self._memory(state), self.contact, mean)

    def _outcome(
        self, terms: Assembly, x: Vector, slips: Vector, residual: Scalar, inputs: StepInputs
    ) -> list[Scalar]:
        outcome = finish(self.model, terms, x, slips, residual, inputs, self.contact)
        row = self.state_row(outcome.state, outcome.v, outcome.memory.numbers())
        forces = terms.in_world(x[: 3 * self.rows.contacts])
        return [*row, *outcome.checks, outcome.miss, outcome.residual, *forces]

    def touching(self, state: Array) -> Array:
        """Impulses and velocities of each contact (2, k, 3) along its axes, after a step."""
        first, rows = self.columns[4].start, self.rows
        rates = first + rows.size + rows.contacts
        parts = [state[at : at + 3 * rows.contacts] for at in (first, rates)]
        return np.array(parts).reshape(2, -1, 3)

    @cached_property
    def contact(self) -> Setting:
        """The setting of steps of time stepping."""
        assert self.setting is not None
        return replace(self.setting, careful=self.careful)

    def _memory(self, state: Vector) -> Memory:
        return Memory.of(self.contact, self.model, state[self.columns[4]])

    # ---- planes

    @property
    def points(self) -> tuple[GroundPoint, ...]:
        """The points that may touch the ground, each once."""
        return self.contact.points[:: self.stride or 1]

    @property
    def stride(self) -> int:
        """Number of planes that each point may touch."""
        return sum(ground.planes for ground in self.grounds)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Contacts of spheres and capsules of links with each other."""
        return tuple(
            Pair(pair.first.link, pair.second.link, (n, m))
            for n, pair in enumerate(self.contact.rounds)
            for m in range(pair.count)
        )

    @cached_property
    def _places(self) -> TracedFunction:
        """q → positions of the contacts in the world, each point's once."""
        rounds = self.contact.rounds
        points = self.points
        links = {p.link for p in points}.union(*(pair.links for pair in rounds))

        def build(one: FixedStep, q: Vector) -> list[Scalar]:
            model = one.model
            state = Configuration(model, q, {model.frame(link).body for link in links})
            places = [
                frames.pose_of(state, frames.place(model, (p.link, p.offset)))[1] for p in points
            ]
            for pair in rounds:
                places += [each[2] for each in between(model, state, pair)]
            return [x for place in places for x in place]

        of = [(point.link, point.offset) for point in points]
        size = 3 * (len(points) + len(self.pairs))
        name = f"places of {of!r}, {rounds!r}, {self.parameters!r}"
        given = tuple(filter(None, (len(self.parameters),)))
        return self._program(name, (self.model.nq, *given, size), build)

    def places(self, q: Array, *more: Array) -> Array:
        """Positions (..., k, 3) of the contacts, each point's once; ``more``: parameters."""
        if not self.points and not self.pairs:
            return np.zeros((*q.shape[:-1], 0, 3))
        return np.asarray(self._places(q, *more)).reshape(*q.shape[:-1], -1, 3)

    @cached_property
    def _spheres(self) -> TracedFunction:
        """(q, v, z and bases) → centre and speed of each point."""
        points = self.points

        def build(one: FixedStep, numbers: Vector) -> list[Scalar]:
            start, result = one.moving(numbers), list[Scalar]()
            bodies = {one.model.frame(point.link).body for point in points}
            state = State(in_tangents(one.model, start.bases), start.q, bodies, start.z)
            for point in points:
                place = frames.place(one.model, (point.link, point.offset))
                result += frames.pose_of(state, place)[1]
                on = place.body
                speed = place.pose.to_child(state.twists[on]).linear if on != WORLD else ZERO
                result.append(sqrt(inner(speed, speed)))
            return result

        name = f"spheres of {[(x.link, x.offset) for x in points]!r}, {self.parameters!r}"
        given = [len(self.parameters)] if self.parameters else []
        return self._program(name, (self.columns[3].stop, *given, 4 * len(points)), build)

    def planes_of(self, states: Array, h: Length, *more: Array) -> tuple[Array, ...]:
        """The planes that a step from states (..., size) takes, if it takes some."""
        if self.setting is None or not self.setting.arguments[0]:
            return ()
        return (self.planes(states, h, *more).astype(self.dtype),)

    def planes(self, states: Array, h: Length, *more: Array) -> Array:
        """Planes (..., 4 k) that points may touch in a step, of all grounds; ``more``: parameters.

        Those within twice the point's way in a step plus twice the distance that counts as near.
        """
        spheres = np.asarray(self._spheres(states[..., : self.columns[3].stop], *more))
        centres, speeds = np.split(spheres.reshape(*states.shape[:-1], -1, 4), [3], axis=-1)
        reach = np.nan_to_num(speeds[..., 0], posinf=0.0) * np.asarray(h)[..., None]
        radii = np.array([p.radius for p in self.points])
        near = [
            ground.surfaces(centres, radii, reach=2.0 * (TAKES_PART + reach), count=ground.planes)
            for ground in self.grounds
        ]
        gaps = np.concatenate([each for each, _ in near], axis=-1)
        normals = np.concatenate([each for _, each in near], axis=-2)
        far = ~np.isfinite(gaps)
        normals = np.where(far[..., None], [0.0, 0.0, 1.0], normals)
        heights = np.einsum("...ki,...kci->...kc", centres, normals) - radii[:, None]
        offsets = heights - np.where(far, ABSENT, gaps)
        planes = np.concatenate([normals, offsets[..., None]], axis=-1)
        return planes.reshape(*states.shape[:-1], -1)

    def forces(self, impulses: Array, h: float) -> Array:
        """Forces (..., k, 3) from the impulses of a step, each point's once."""
        forces = impulses.reshape(*impulses.shape[:-1], -1, 3) / h
        points = len(self.contact.points)
        if points == len(self.points):
            return forces
        planes = forces[..., :points, :].reshape(*forces.shape[:-2], -1, self.stride, 3)
        return np.concatenate([planes.sum(axis=-2), forces[..., points:, :]], axis=-2)

    def impulses(self, forces: Array, h: float) -> Array:
        """Impulses (T, 3 k) of steps, from the forces (T, k, 3), at a point's first plane."""
        count, setting = len(self.points), self.contact
        impulses = np.zeros((len(forces), setting.contacts, 3))
        impulses[:, : len(setting.points) : self.stride or 1] = h * forces[:, :count]
        impulses[:, len(setting.points) :] = h * forces[:, count:]
        return impulses.reshape(len(forces), 3 * setting.contacts)

    # ---- whole steps

    def too_long(self, result: Array) -> Any:
        """Whether steps (..., results) of time stepping turn linkages or contacts by too much.

        Or leave loops open, or are not finite.
        """
        if self.setting is None:
            return np.zeros(result.shape[:-1], dtype=bool)
        short = result[..., self.miss] <= MISS
        if self.checks:
            gap, growth = result[..., self.size], result[..., self.size + 1]
            short = short & (growth <= TURNED) & (gap <= LOST[self.dtype] ** 2)
        return ~short

    def lost(self, results: Array) -> Any:
        """Which results (..., results) have open loops, or end at change points; nan ones too."""
        if not self.checks:
            return np.zeros(results.shape[:-1], dtype=bool)
        first = self.size
        gap, growth, regularity = (results[..., first + k] for k in (0, 1, 2))
        closed = (gap <= LOST[self.dtype] ** 2) & (growth < TORN)
        return ~(closed & (regularity > IRREGULAR[self.dtype]))

    def unfinished(self, results: Array) -> Any:
        """Whether compiled steps with results (..., results) have to be taken again.

        They have to if they are too long or, in double precision, contact problems are not solved.
        """
        left = self.too_long(results)
        if self.setting is not None and self.dtype == "float64":
            left |= ~(results[..., self.residual] <= SOLVED)
        return left

    def parts(self, results: Array, shares: Sequence[float]) -> list[StepShare]:
        """Results (n, results) of shares of steps as parts of them."""
        lost = self.lost(results) | ~np.all(np.isfinite(results), axis=-1)
        faults = ["is lost" if each else "" for each in lost.tolist()]
        return [
            StepShare(row[: self.size], share, too_long, fault, row)
            for row, share, too_long, fault in zip(
                results, shares, self.too_long(results).tolist(), faults, strict=True
            )
        ]

    def joined(self, parts: Sequence[StepShare]) -> Array:
        """The result of a step in parts."""
        whole: Array = parts[-1].record.copy()
        if len(parts) == 1:
            return whole
        rows = np.array([part.record for part in parts])
        checks, impulses = slice(self.size, self.residual + 1), slice(self.residual + 1, None)
        whole[checks] = np.max(rows[:, checks], axis=0)
        whole[impulses] = np.sum(rows[:, impulses], axis=0)
        if self.checks:
            whole[self.size + 2] = np.min(rows[:, self.size + 2])
        return whole

    def whole(self, states: Array, tau: Array, h: Length, *more: Array) -> Array:
        """Results (..., results) of an undivided step from states (..., size)."""
        result = self._once(states, tau, h, more)
        if self.setting is None or self.dtype != "float64":
            return result
        self.finish(states, tau, h, more, result)
        return result

    def _once(self, states: Array, tau: Array, h: Length, more: Sequence[Array]) -> Array:
        """Results of the compiled step."""
        length = np.asarray(h, states.dtype)[..., None]
        return np.asarray(self.over_time(states, tau[..., None, :], length, *more))[..., 0, :]

    def finish(
        self, states: Array, tau: Array, h: Length, more: Sequence[Array], result: Array
    ) -> None:
        """Replace results whose contact problems are not solved."""
        if result.ndim == 1:
            states, result = states[None], result[None]
        residual = result[..., self.residual]
        left = ~(residual <= SOLVED) & np.all(np.isfinite(states), axis=-1)
        at = np.nonzero(left)
        if not len(at[0]):
            return
        batch, length = residual.shape, np.asarray(h, float)[..., None]
        arguments = (np.broadcast_to(x, (*batch, x.shape[-1]))[at] for x in (tau, length, *more))
        better = self._solved(states[at].astype(float), *(x.astype(float) for x in arguments))
        now, before = better[:, self.residual], residual[at]
        taken = (now < before) | ~np.isfinite(before)
        result[at] = np.where(taken[:, None], better, result[at])

    def _solved(self, states: Array, tau: Array, length: Array, *more: Array) -> Array:
        """Results (n, results) of steps whose contact problems are solved by the full method."""
        rows = self.rows
        n, k = rows.size, rows.contacts
        memory = states[:, self.columns[4]]
        x, z = memory[:, :n], states[:, self.columns[2 if self.checks else 1]]
        mean = z + 0.5 * length * memory[:, -1 - self.model.nv : -1]
        result = np.full((len(states), self.results), np.nan)
        for _ in range(self.passes):
            numbers = np.asarray(self.contact_problem(states, tau, length, mean, *more))
            impulses = np.full((len(states), n + k + 1), np.nan)
            impulses[:, n : n + k] = 0.0
            fine = np.all(np.isfinite(numbers), axis=1)
            impulses[fine, :n], impulses[fine, -1] = self._impulses(numbers[fine], x[fine])
            row = np.asarray(self.with_impulses(states, tau, length, mean, impulses, *more))
            x, result, mean = impulses[:, :n], row[:, : self.results], row[:, self.results :]
        return result

    def _impulses(self, numbers: Array, starts: Array) -> tuple[Array, Array]:
        """Impulses (m, n) and residuals (m,) of contact problems from :attr:`contact_problem`."""
        rows = self.rows
        n, k = rows.size, rows.contacts
        parts = np.split(numbers, np.cumsum([n * n, n, k, rows.boxes, n, n]), axis=1)
        problems = ArrayProblem(rows, parts[0].reshape(-1, n, n), *parts[1:4])
        x, residuals = solve_each(problems, starts, 0.1 * SOLVED)
        if self.contact.rebounds:
            rest, _ = solve_each(replace(problems, b=parts[4]), starts, 0.1 * SOLVED)
            for i, (work, other) in enumerate(zip(parts[5], rest, strict=True)):
                x[i] = problems.nth(i).without_gain(work, x[i], other)
        return x, residuals


# ---- equations of motion, for adaptive methods ---------------------------------------------------


@cached_on_model
def flow(model: Model, links: tuple[str, ...] = (), *, passive: bool = True) -> TracedFunction:
    """(q, z and bases; tau; wrenches on the links) → q̇ and ż."""
    step = FixedStep(model, "rk4", links=links, passive=passive)
    nq, nv = model.nq, model.nv

    def build(x: Vector, tau: Vector, wrenches: Vector = ()) -> list[Scalar]:
        here, q, z = step.here(x[nq + nv :], refined=True), x[:nq], x[nq : nq + nv]
        return [*rates(here, q, z), *step.accelerations(here, q, (), z, tau, wrenches)]

    sizes = (nq + nv + tangent.numbers(model), nv, *step.more, nq + nv)
    return function(model, f"flow {links!r} {passive}", sizes, build)
