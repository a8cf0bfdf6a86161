"""Steps of time stepping whose contacts are all in the step's program, written over scalars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from robomodel.dynamics.actuators.maps import required
from robomodel.dynamics.actuators.meshes import MeshRows
from robomodel.dynamics.baselines import projected, spanning_tree
from robomodel.dynamics.contact.dry_friction import DryFriction
from robomodel.dynamics.contact.gauss_seidel import Sweeps
from robomodel.dynamics.contact.problem import RowKinds
from robomodel.dynamics.contact.reversal import Reversal
from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.state import Configuration, State
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.passive import Element, elements, is_absent
from robomodel.dynamics.recursions.rnea import bias_force, rnea
from robomodel.model.model import Model
from robomodel.motion import tangent
from robomodel.motion.contact_rows import (
    GapRows,
    Memory,
    Setting,
    StateBodies,
    between,
    between_rounds,
    gap_rows,
    gaps_of_points,
    gaps_of_stops,
    on_planes,
    stop_rows,
)
from robomodel.motion.implicit import Way, press, press_springs, push
from robomodel.motion.layout import StateLayout
from robomodel.motion.limits import Acting, rotors_of_meshes
from robomodel.motion.plant import Moving, Plant
from robomodel.motion.tangent import (
    axes_rates,
    constraint_of,
    displaced,
    in_tangents,
    in_turned_axes,
    linkages,
)
from robomodel.motion.time_stepping import (
    Assembly,
    FactorsInverse,
    Landing,
    MeshTerms,
    Middle,
    Outcome,
    Solved,
    StepInputs,
    assemble,
    strikes,
)
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    advanced,
    div,
    dot,
    minimum,
    select,
    subtracted,
)

SWEEPS = 4  # of Gauss-Seidel on a contact problem, starting from the last step's impulses
REST = 1  # sweeps after a reversal of dry friction, before Newton steps
UNPOLISHED = 8  # the same without Newton steps: 12 in all solve 19 of 20 steps of a quadruped
# whose joints and meshes rub on the ground
POLISH = 2  # Newton steps after them: 4 + 2 solve what 8 sweeps leave at 1e-10
MESHED = 3  # the same with meshes, which sweeps seldom solve: 2 leave 4.7, 3 leave 2.2 of 100 steps
# of a quadruped on its feet
FEW_ROWS = 16  # rows (of five points) above which two Newton steps cost more than the rest
SOLVED = 1e-11  # wanted residual of contact problems, relative to their velocities


@dataclass(frozen=True)
class StateMiddle(Middle):
    """A step at its middle, with the robot's state there.

    ``begin``: the state at the beginning; ``mass``: M̂; ``leaving``: velocities w of all joints;
    ``rest``: w over independent joints outside of linkages.
    """

    begin: Moving
    state: State
    mass: list[list[Scalar]]
    leaving: list[Scalar]
    rest: list[Scalar]


def at_middle(
    plant: Plant, setting: Setting, begin: Moving, inputs: StepInputs, memory: Memory,
    mean: Vector | None = None,
) -> StateMiddle:  # fmt: skip
    """A step at its middle.

    ``mean``: the mean velocity that predicts the middle, in the axes of the beginning; by default
    from the acceleration in the step before.
    """
    model, h, nv = plant.model, inputs.h, plant.model.nv
    here = in_tangents(model, begin.bases)
    expected = list(mean) if mean is not None else advanced(begin.z, 0.5 * h, memory.acceleration)
    middle = [0.5 * h * x for x in expected]
    q = plant.closed(here, displaced(here, begin.q, middle))
    z, expected = (in_turned_axes(model, x, middle) for x in (begin.z, expected))
    state = State(here, q, setting.touched(model), expected)
    mass = [list(row) for row in crba(here, q)]
    acting = tangent.tangent_forces(model, state, inputs.tau)
    acting = subtracted(acting, _bias(plant, state, expected, inputs.wrenches))
    momentum, a = [dot(row, z) for row in mass], list(z)
    rest: list[Scalar] = [0.0] * nv
    leaving: list[Scalar] = []
    factors = None
    linked = linkages(model)
    if linked:
        speeds = _joint_velocities(model, state, z)
        momentum = projected(state, _momenta(model, state, speeds))
        factors = Factorization(mass)
        a = factors.solve(momentum)
        leaving = subtracted(speeds, _spanning(state, a))
        inside = {i for x in linked for i in range(*model.clusters[x.index].v.indices(nv))}
        rest = [0.0 if i in inside else z[i] - a[i] for i in range(nv)]
    turning = axes_rates(model, expected)
    right = [
        p + h * (f + dot(row, turning)) for p, f, row in zip(momentum, acting, mass, strict=True)
    ]
    lossy = setting.acting.lossy(model)
    swing = _swing(model, state, factors, h) if lossy and factors else []
    passives = list(elements(state))
    for each in passives if setting.acting.friction else ():
        if not is_absent(each.law.friction):
            push(right, each.row, h * each.dry.shift)
    if plant.passive:
        factors = _with_passive(passives, h, a, expected, mass, right) or factors
    meshed = rotors_of_meshes(model)
    rubbing = [
        [each.row.get(i, 0.0) for i in range(nv)]
        for each in passives
        if setting.acting.friction and each.dry and not (each.of_joint and each.name in meshed)
    ]
    inverse = FactorsInverse(factors or Factorization(mass))
    meshes: tuple[MeshTerms, ...] = ()
    if lossy:
        rotors = {each.name: each for each in passives if each.of_joint and each.name in meshed}
        start = advanced(a, h, turning)
        meshes = _mesh_terms(plant, setting, state, inputs, swing, start, rotors, expected)
    return StateMiddle(
        model, h, begin.z, middle, expected, a, right, inverse, rubbing, begin, state, mass,
        leaving, rest, meshes=meshes,
    )  # fmt: skip


def _mesh_terms(
    plant: Plant, setting: Setting, state: State, inputs: StepInputs, swing: Vector, start: Vector,
    bearings: Mapping[str, Element], expected: Vector,
) -> tuple[MeshTerms, ...]:  # fmt: skip
    """The lossy meshes at the middle; ``start``: a, with what the turning of axes adds to it.

    ``swing``: of :func:`_swing`, if there are linkages. ``bearings``: passive elements of rotors,
    ``expected``: the mean velocity.

    A rotor is a leaf of the spanning tree, so its row of the equations of motion says what its
    mesh transmits: the motor's impulse less what changes its momentum, and what its bearing takes.
    """
    model, h = plant.model, inputs.h
    forces = required(model, state, tangent.tangent_forces(model, state, inputs.tau))
    bias = _spanning_bias(plant, state, inputs.wrenches)
    moving = None
    if swing:
        moving = State(spanning_tree(model), state.positions, state.turned, swing)
    result = []
    for n in setting.acting.lossy(model):
        rows = MeshRows.of(model, state, model.actuators[n])
        momentum, free = rows.momentum, h * (rows.factor * forces[n]) + dot(rows.momentum, start)
        if moving is not None:
            free = free - rows.moving(moving.twists, swing)
        if rows.body is not None:
            free = free - h * bias[rows.at[0][0]]
            if bearing := bearings.get(model.joints[rows.body].name):
                if not is_absent(bearing.law.friction):
                    free = free + h * bearing.dry.shift
                if plant.passive and bearing.drags:
                    drag = bearing.drag(bearing.rate(expected))
                    momentum = advanced(momentum, h * drag, rows.rate)
                if plant.passive and not is_absent(bearing.law.bias):
                    free = free - h * bearing.law.bias
        result.append(mesh_terms(model, setting.acting, n, rows.rate, momentum, free))
    return tuple(result)


def mesh_terms(
    model: Model, acting: Acting, n: int, row: Vector, momentum: Vector, free: Scalar
) -> MeshTerms:
    """The mesh of the nth actuator, with these rows."""
    actuator, bearing = model.actuators[n], DryFriction(0.0)
    stops: list[tuple[int, float]] = []
    if actuator.turns_rotor:
        body = model.joint_names.index(actuator.joint)
        joint, stopped = model.joints[body], acting.stopped(model)
        bearing = DryFriction(joint.friction, joint.law)
        ends = enumerate(acting.bounds(model))
        stops = [(i, side) for i, (at, side, _) in ends if stopped[at] == body]
    forward, back = div(1.0, actuator.efficiency) - 1.0, 1.0 - actuator.backdrive
    return MeshTerms(list(row), list(momentum), free, forward, back, bearing, tuple(stops))


def _swing(model: Model, state: State, factors: Factorization, h: Scalar) -> list[Scalar]:
    """The velocities that the turning of linkages' G adds to all joints within the step.

    h γ without its motion of the linkages, to which it is H-orthogonal: z⁺ - a has that.
    """
    turns: list[Scalar] = [0.0] * len(state.velocities)
    for each in linkages(model):
        at = model.clusters[each.index].spanning_v
        turns[at] = [h * x for x in state.bias[at]]
    along = factors.solve(projected(state, _momenta(model, state, turns)))
    return subtracted(turns, _spanning(state, along))


def _with_passive(
    acting: Sequence[Element], h: Scalar, a: Vector, expected: Vector, mass: list[list[Scalar]],
    right: list[Scalar],
) -> Factorization | None:  # fmt: skip
    """The factors of M̂ with springs and dampers, whose forces are added to the right-hand side."""
    half, ways = 0.5 * h, list[Way]()
    dampers = [each for each in acting if each.drags]
    for each in dampers:
        press(mass, right, each.row, h * each.drag(each.rate(expected)), 0.0)
    for each in acting:
        if not is_absent(each.law.bias):
            push(right, each.row, -(h * each.law.bias))
        if not is_absent(each.stiffness):
            first = each.stretch - half * each.rate(expected)
            way = half * each.rate(a)
            middle = first + way
            ways.append(Way(each, first, middle, half, middle + way, h))
    if ways:
        return press_springs(mass, right, ways)
    return Factorization(mass) if dampers else None


def _spanning(state: Configuration, z: Vector) -> list[Scalar]:
    """G z."""
    return [x for cluster in state.model.clusters for x in state.spanning(cluster, z[cluster.v])]


def _joint_velocities(model: Model, state: State, z: Vector) -> list[Scalar]:
    """u at the beginning; linkages move along their bases."""
    result = _spanning(state, z)
    for each in linkages(model):
        cluster = model.clusters[each.index]
        basis = constraint_of(state.model, each).basis
        y = [dot(row, z[cluster.v]) for row in zip(*basis, strict=True)]
        result[cluster.spanning_v] = each.spanning(y)
    return result


def _bias(plant: Plant, state: State, v: Vector, wrenches: Vector) -> list[Scalar]:
    """Gᵀ c: bias forces of all joints at G v, without the terms of the turning of linkages' G."""
    model, f_ext = plant.model, plant.wrenches(wrenches)
    if not linkages(model):
        return bias_force(state.model, state.q, v, f_ext)
    return projected(state, _spanning_bias(plant, state, wrenches))


def _spanning_bias(plant: Plant, state: State, wrenches: Vector) -> list[Scalar]:
    """c: bias forces of all joints at the velocities of ``state``, as of :func:`_bias`."""
    model, f_ext = plant.model, plant.wrenches(wrenches)
    rest: list[Scalar] = [0.0] * len(state.velocities)
    for cluster in model.clusters:
        if cluster.varies and not cluster.implicit:
            part, at = cluster.spanning_v, state.positions[cluster.spanning_q]
            rest[part] = cluster.constraint.bias(at, state.velocities[part])
    return rnea(spanning_tree(model), state.positions, state.velocities, rest, f_ext)


def _momenta(model: Model, state: Configuration, speeds: Vector) -> list[Scalar]:
    """H times joint velocities."""
    tree = replace(spanning_tree(model), gravity=(0.0, 0.0, 0.0))
    return rnea(tree, state.positions, [0.0] * len(speeds), speeds)


# ---- the end of a step ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Displaced:
    """The end q of the displacement ``travel`` of a step."""

    plant: Plant
    setting: Setting
    planes: Vector
    middle: StateMiddle
    travel: Vector
    q: list[Scalar]

    @staticmethod
    def of(
        plant: Plant, setting: Setting, planes: Vector, middle: StateMiddle, travel: Vector
    ) -> Displaced:
        """The end of a displacement, in the axes of the beginning."""
        here = middle.state.model
        q = plant.closed(here, displaced(here, middle.begin.q, travel), 1)
        return Displaced(plant, setting, planes, middle, travel, q)

    @cached_property
    def state(self) -> Configuration:
        """The configuration there."""
        return Configuration(self.middle.state.model, self.q, self.middle.state.turned)

    def gaps(self) -> Iterator[Scalar]:
        """The gap of each contact there."""
        model, setting, state = self.plant.model, self.setting, self.state
        now = [each[0] for pair in setting.rounds for each in between(model, state, pair)]
        pose = partial(frames.pose_of, state)
        yield from gaps_of_points(setting, model, pose, self.planes)
        yield from now

    def stops(self) -> list[Scalar]:
        """The distances of stopped joints from their limits there."""
        return gaps_of_stops(self.plant.model, self.state, self.setting)

    def ended(self, after: Vector, correction: Vector) -> Landing:
        """The end of a step with velocities ``after``, moved by a correction if there is one."""
        middle, model, q = self.middle, self.plant.model, self.q
        here = middle.state.model
        end = middle.axes_of_beginning(subtracted(after, middle.rest))
        end = in_turned_axes(model, end, self.travel)
        if correction:
            q = self.plant.closed(here, displaced(here, q, correction), 1)
            end = in_turned_axes(model, end, correction)
        state, checks = _at_end(model, middle, q, end)
        v = tangent.independent_velocities(model, q, state.z, state.bases)
        return Landing(state, v, checks)


def _at_end(
    model: Model, middle: StateMiddle, q: list[Scalar], z: list[Scalar]
) -> tuple[Moving, list[Scalar]]:
    """Bases of the linkages at q, and u⁺ = G z - w brought to motions there, H-orthogonally.

    z: outside of linkages u⁺ itself, in the axes at the end.
    """
    linked = linkages(model)
    if not linked:
        return Moving(q, z, []), []
    bases, _, checks = tangent.renewed(model, middle.state.model, q, z)
    least = tangent.regularity(model, middle.state.model, middle.state.q)
    checks[-1] = minimum(checks[-1], least)
    there = in_tangents(model, bases)
    state = Configuration(there, q)
    speeds, before = _spanning(state, z), _spanning(middle.state, z)
    for each in linked:
        at = model.clusters[each.index].spanning_v
        speeds[at] = subtracted(before[at], middle.leaving[at])
    momenta = projected(state, _momenta(model, state, speeds))
    return Moving(q, Factorization(crba(there, q)).solve(momenta), bases), checks


# ---- terms ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProgramStep:
    """The terms of a step within a program (:class:`~robomodel.motion.time_stepping.StepTerms`).

    ``inputs``: with the forces that motors give. ``sweeps`` over the contact problem are followed
    by ``newton`` steps of Newton's method.
    """

    plant: Plant
    setting: Setting
    begin: Moving
    inputs: StepInputs
    memory: Memory
    sweeps: int = SWEEPS
    newton: int = 0

    @property
    def passes(self) -> int:
        """Computations of a step: if G varies, a second one about a better middle."""
        return 2 if linkages(self.plant.model) else 1

    def middle(self, mean: Vector | None) -> StateMiddle:
        """The middle that a mean velocity predicts."""
        return at_middle(self.plant, self.setting, self.begin, self.inputs, self.memory, mean)

    def assembled(self, mean: Vector | None) -> Assembly[StateMiddle]:
        """The contact problem at the middle that a mean velocity predicts."""
        middle, rubbing = self.middle(mean), self.setting.acting.rubbing(self.plant.model)
        return assemble(middle, self._gaps(middle), self.memory, rubbing)

    def _gaps(self, middle: StateMiddle) -> list[GapRows]:
        """The rows of contacts and stops."""
        setting, model, state = self.setting, self.plant.model, middle.state
        h, by = middle.h, middle.expected
        rows: list[GapRows] = []
        if setting.contacts:
            moving = None
            if middle.leaving:
                tree = spanning_tree(model)
                moving = State(tree, state.positions, state.turned, middle.leaving)
            bodies = StateBodies(model, state, moving)
            touches = on_planes(setting, bodies, self.inputs.planes, by)
            rows += [gap_rows(bodies, each, h) for each in touches]
            rows += [gap_rows(bodies, x, h) for x in between_rounds(setting, bodies, state, by)]
        return rows + stop_rows(model, state, h, setting, middle.leaving, by)

    def solved(
        self, terms: Assembly[StateMiddle], impulses: list[Scalar], slips: list[Scalar], last: bool
    ) -> Solved:
        """Impulses, slips and the residual after sweeps and steps of Newton's method.

        With dry friction these steps are those of the part after a reversal: if there is none, they
        go on with the same problem.
        """
        if not terms.rows:
            return Solved(impulses, slips, 0.0, [])
        kinds, goal, rebounds = terms.kinds, SOLVED * terms.size, self.setting.rebounds
        problem = Sweeps(
            kinds, terms.delassus, terms.b, terms.friction, terms.bounds, meshes=terms.meshes
        )
        parts = last and bool(terms.before)
        newton = self.newton if rebounds or not parts else 0
        x, slips = self._swept(problem, impulses, slips, goal, self.sweeps, newton)
        residual = div(problem.residual(x), terms.size)
        if rebounds:
            plain = replace(problem, b=terms.plain)
            rest, _ = self._swept(plain, impulses, slips, goal, self.sweeps, newton)
            x = problem.without_gain(terms.work, x, rest)
        if not parts:
            return Solved(x, slips, residual, [])
        struck = strikes([x[n] for n in terms.normals], terms.collides)
        first = Reversal.first(problem, terms.before, x, terms.size, struck)
        other = first.rest(problem)
        sweeps = REST if self.newton else UNPOLISHED
        rest, ends = self._swept(other, first.start(x), slips, goal, sweeps, self.newton)
        after = div(other.residual(rest), terms.size)
        joined, early = first.joined(rest)
        if rebounds:  # a collision is solved already
            joined = [select(struck, a, b) for a, b in zip(x, joined, strict=True)]
            ends = [select(struck, a, b) for a, b in zip(slips, ends, strict=True)]
            after = select(struck, residual, after)
        return Solved(joined, ends, after, early)

    def _swept(
        self, problem: Sweeps, x: Vector, slips: Vector, goal: Scalar, sweeps: int, newton: int
    ) -> tuple[list[Scalar], list[Scalar]]:
        """Impulses and slips after sweeps and Newton steps."""
        x, slips = list(x), list(slips)
        for _ in range(sweeps):
            x, slips = problem.sweep(x, slips)
        return (problem.newton(x, newton, goal) if newton else x), slips

    def moved(self, middle: StateMiddle, travel: Vector) -> Displaced:
        """The end of a displacement, which is in the axes of the beginning."""
        return Displaced.of(self.plant, self.setting, self.inputs.planes, middle, travel)


@dataclass(frozen=True)
class SolvedStep:
    """A step whose impulses, slips and residual are known, about the middle by ``mean``."""

    step: ProgramStep
    mean: Vector
    known: Solved
    passes = 1

    @property
    def memory(self) -> Memory:
        """The data of the step before."""
        return self.step.memory

    def assembled(self, mean: Vector | None) -> Assembly[StateMiddle]:
        """The contact problem at the middle."""
        return self.step.assembled(self.mean)

    def solved(
        self, terms: Assembly[StateMiddle], impulses: list[Scalar], slips: list[Scalar], last: bool
    ) -> Solved:
        """The known numbers."""
        return self.known

    def moved(self, middle: StateMiddle, travel: Vector) -> Displaced:
        """The end of a displacement, which is in the axes of the beginning."""
        return self.step.moved(middle, travel)


@dataclass(frozen=True)
class ContactProgram:
    """Steps of time stepping of a robot, on the arguments of their programs; ``rows`` in them."""

    plant: Plant
    setting: Setting
    layout: StateLayout
    rows: RowKinds
    sweeps: int = SWEEPS

    def of(self, model: Model) -> ContactProgram:
        """The same of a robot with other numbers."""
        if model is self.plant.model:
            return self
        plant, layout = replace(self.plant, model=model), replace(self.layout, model=model)
        return replace(self, plant=plant, layout=layout)

    @property
    def arguments(self) -> tuple[int, int]:
        """Sizes of the arguments besides state, tau and length: planes, wrenches."""
        return self.setting.planes, 6 * len(self.plant.links)

    @property
    def newton(self) -> int:
        """Newton steps after the sweeps."""
        if self.rows.unmeshed > FEW_ROWS:
            return 0
        return MESHED if self.rows.meshes else POLISH

    def step(
        self, state: Vector, tau: Vector, length: Vector, more: Sequence[Vector]
    ) -> ProgramStep:
        """The terms of a step."""
        plant, columns, rest = self.plant, self.layout.columns, list(more)
        planes, wrenches = (rest.pop(0) if size else () for size in self.arguments)
        tau = plant.demanded(state[columns.q], state[columns.v], tau)
        memory = Memory.of(self.rows, plant.model.nv, state[columns.memory])
        return ProgramStep(
            plant, self.setting, self.layout.moving(state),
            StepInputs(tau, length[0], planes, wrenches), memory, self.sweeps, self.newton,
        )  # fmt: skip

    def result(self, outcome: Outcome[StateMiddle]) -> list[Scalar]:
        """The numbers of a step's result."""
        end, contacts = outcome.end, self.rows.contacts
        row = self.layout.row(end.state, end.v, outcome.memory.numbers())
        impulses = outcome.terms.in_world(outcome.impulses[: 3 * contacts])
        return [*row, *end.checks, outcome.miss, outcome.residual, *impulses]
