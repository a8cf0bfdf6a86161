"""Steps of time stepping with contacts as data: one program for any number of contacts.

The program of a step then has no rows of contacts. It returns M̂, the forces, and the Jacobians of
the bodies at the middle of the step, on which the rows of contacts that are near are written and
solved as within a program. Contacts are numbered: points on their planes first, then pairs of
links that a function gives. For the next step the state is followed by the number, impulses and
velocities of each near contact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics.baselines import spanning_tree
from robomodel.dynamics.contact.complementarity import ArrayProblem, solve
from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.frames import FramePlacement, joint_forces
from robomodel.dynamics.kinematics.state import Configuration, State
from robomodel.errors import as_real
from robomodel.kernels.function import TracedFunction
from robomodel.mechanism.graph import WORLD
from robomodel.model.arguments import as_numbers
from robomodel.model.model import Model
from robomodel.motion.contact_laws import TAKES_PART
from robomodel.motion.contact_programs import SOLVED, ContactProgram, StateMiddle, mesh_terms
from robomodel.motion.contact_rows import (
    GapRows,
    Memory,
    Pose,
    Touch,
    gap_rows,
    gaps_of_points,
    offset,
    on_planes,
)
from robomodel.motion.contact_solving import in_parts
from robomodel.motion.ground import Contact, ContactLaw, Contacts, Pair
from robomodel.motion.integrator_functions import function
from robomodel.motion.schemes import time_step
from robomodel.motion.steps import FixedStep
from robomodel.motion.tangent import linkages
from robomodel.motion.time_stepping import (
    Assembly,
    Landing,
    MeshTerms,
    Middle,
    Solved,
    assemble,
)
from robomodel.scalars import Scalar, Vector, value_of
from robomodel.spatial import UNIT_WRENCHES, ZERO, Motion, Transform, Vec, Wrench, matmul, plus
from robomodel.spatial import apply as rotated
from robomodel.tolerances import WRITTEN

KEPT = 7  # numbers per contact behind the state


# ---- contacts that a function gives --------------------------------------------------------------


@dataclass
class GivenContacts:
    """Contacts of pairs of links from a function, which are numbered as they first come."""

    model: Model
    function: Contacts
    pairs: list[Pair] = field(default_factory=list)

    def at(self, q: Array, v: Array) -> list[tuple[int, Contact]]:
        """The contacts at a state, each with the number of its pair."""
        touches = self.function(q, v)
        if not isinstance(touches, Iterable):
            raise TypeError(f"contacts gives a list of robomodel.motion.Contact, got {touches!r}")
        checked = [_checked(self.model, contact) for contact in touches]
        names = named(checked)
        self.pairs += [pair for pair in dict.fromkeys(names) if pair not in self.pairs]
        return [(self.pairs.index(pair), each) for pair, each in zip(names, checked, strict=True)]


def named(touches: Sequence[Contact]) -> list[Pair]:
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


# ---- the terms of a step, on numbers -------------------------------------------------------------


@dataclass(frozen=True)
class ArrayEffects:
    """:class:`~robomodel.motion.time_stepping.Effects` on arrays: rows, and M̂⁻¹ Rᵀ."""

    rows: Array
    weighted: Array

    @property
    def delassus(self) -> list[list[Scalar]]:
        """G = R M̂⁻¹ Rᵀ."""
        matrix: list[list[Scalar]] = (self.rows @ self.weighted).tolist()
        return matrix

    def of(self, impulses: Vector, among: Sequence[int] | None = None) -> list[Scalar]:
        """The change of z by impulses."""
        columns = self.weighted if among is None else self.weighted[:, among]
        change: list[Scalar] = (columns @ np.array(impulses, dtype=float)).tolist()
        return change

    def felt(self, row: Vector) -> list[Scalar]:
        """Another row's velocity by a unit impulse on each row."""
        rates: list[Scalar] = (np.array(row, dtype=float) @ self.weighted).tolist()
        return rates


@dataclass(frozen=True)
class ArrayInverse:
    """:class:`~robomodel.motion.time_stepping.Inverse` of M̂ on arrays."""

    mass: Array

    def solve(self, right: Vector) -> list[Scalar]:
        """M̂⁻¹ right."""
        solved: list[Scalar] = np.linalg.solve(self.mass, np.array(right)).tolist()
        return solved

    def effects(self, rows: Sequence[Vector]) -> ArrayEffects:
        """The effects of impulses on rows."""
        matrix = np.array(rows, dtype=float).reshape(-1, len(self.mass))
        return ArrayEffects(matrix, np.linalg.solve(self.mass, matrix.T))


@dataclass(frozen=True)
class DataBodies:
    """Bodies at the middle of a step (:class:`~robomodel.motion.contact_rows.Bodies`) on numbers.

    By body: placements in the world, Jacobians (6, nv) and twists by w (6,), if there is any, in
    the bodies' axes.
    """

    model: Model
    poses: Mapping[int, Pose]
    jacobians: Mapping[int, Array]
    twists: Mapping[int, Array] | None

    def pose(self, place: FramePlacement) -> Pose:
        """Rotation (rows) and origin of a frame in the world."""
        return placed(self.poses, place)

    def forces(self, body: int, wrench: Wrench) -> list[Scalar]:
        """Generalised forces (nv) of a wrench on a body, in its internal axes."""
        if body == WORLD:
            return [0.0] * self.model.nv
        row: list[Scalar] = (np.array(wrench.entries()) @ self.jacobians[body]).tolist()
        return row

    def leaving(self, place: FramePlacement) -> Vec | None:
        """Linear velocity of a frame by w, in its axes; None if it has none."""
        if self.twists is None or place.body == WORLD:
            return None
        return place.pose.to_child(Motion.of(self.twists[place.body].tolist())).linear


def placed(poses: Mapping[int, Pose], place: FramePlacement) -> Pose:
    """Rotation (rows) and origin in the world of a frame on one of these bodies."""
    if place.body == WORLD:
        return place.pose.matrix(), place.pose.offset
    rotation, origin = poses[place.body]
    return matmul(rotation, place.pose.matrix()), plus(rotated(rotation, place.pose.offset), origin)


@dataclass(frozen=True)
class DataMiddle(Middle):
    """A step at its middle, on numbers: q there, the bodies, and the rows of stops."""

    q: Array
    mean: Array
    bodies: DataBodies
    stops: list[GapRows]


@dataclass(frozen=True)
class DataPrograms:
    """The programs of steps whose contacts are data."""

    name: str
    contact: ContactProgram

    @property
    def model(self) -> Model:
        """The robot."""
        return self.contact.plant.model

    @property
    def bodies(self) -> tuple[int, ...]:
        """Bodies that may touch something."""
        assert self.contact.setting.bodies is not None
        return self.contact.setting.bodies

    @property
    def _wrenches(self) -> tuple[int, ...]:
        """The size of the argument of wrenches, if there are some."""
        links = len(self.contact.plant.links)
        return (6 * links,) if links else ()

    def _at_middle(
        self, state: Vector, tau: Vector, length: Vector, mean: Vector, more: Sequence[Vector]
    ) -> Assembly[StateMiddle]:
        return self.contact.step(state, tau, length, more).assembled(mean)

    @cached_property
    def _middle(self) -> TracedFunction:
        """(state, tau, step, mean velocity, wrenches) → numbers of :class:`DataMiddle`."""
        model, bodies = self.model, self.bodies

        def build(
            state: Vector, tau: Vector, length: Vector, mean: Vector, *more: Vector
        ) -> list[Scalar]:
            terms = self._at_middle(state, tau, length, mean, more)
            middle = terms.middle
            numbers = [x for row in middle.mass for x in row]
            numbers += [*middle.right, *middle.a, *middle.expected, *middle.displacement]
            numbers += middle.state.q
            numbers += _of_bodies(model, middle, bodies)
            numbers += [x for row in terms.rows for x in row]
            numbers += [x for gap in terms.gaps for x in (*gap.leaving, gap.gap)]
            for each in middle.meshes:
                numbers += [*each.momentum, each.free]
            return numbers

        nv = model.nv
        sizes = (self.contact.layout.size, nv, 1, nv, *self._wrenches, sum(self._sizes))
        return function(model, f"middle of {self.name}", sizes, build)

    @property
    def _sizes(self) -> list[int]:
        """Numbers of the parts of the result of :attr:`_middle`."""
        nv, rows = self.model.nv, self.contact.rows
        return [nv * nv, *[nv] * 4, self.model.nq, len(self.bodies) * (18 + 6 * nv),
                nv * rows.size, 2 * rows.stops, (nv + 1) * rows.meshes]  # fmt: skip

    def middle(
        self, state: Array, tau: Array, h: float, mean: Array, wrenches: Sequence[Array]
    ) -> DataMiddle | None:
        """The middle of a step; None if its numbers are not finite."""
        nv, layout, setting = self.model.nv, self.contact.layout, self.contact.setting
        numbers = np.asarray(self._middle(state, tau, np.array([h]), mean, *wrenches))
        parts = np.split(numbers, np.cumsum(self._sizes)[:-1])
        mass, right, a, expected, displacement, q, of_bodies, lines, gaps, felt = parts
        if not (np.all(np.isfinite(mass)) and np.all(np.isfinite(right))):
            return None
        table = dict(zip(self.bodies, of_bodies.reshape(-1, 18 + 6 * nv), strict=True))
        bodies = DataBodies(
            self.model, {body: _as_pose(row[:12]) for body, row in table.items()},
            {body: row[18:].reshape(6, nv) for body, row in table.items()},
            {body: row[12:18] for body, row in table.items()} if linkages(self.model) else None,
        )  # fmt: skip
        rows, law = lines.reshape(-1, nv).tolist(), ContactLaw(0.0, 0.0, setting.stop_restitution)
        stops = [
            GapRows([row], [leaving], [0.0], gap, law)
            for row, (leaving, gap) in zip(rows, gaps.reshape(-1, 2).tolist(), strict=False)
        ]
        return DataMiddle(
            self.model, h, layout.moving(state.tolist()).z, displacement.tolist(),
            expected.tolist(), a.tolist(), right.tolist(), ArrayInverse(mass.reshape(nv, nv)),
            rows[len(stops) : len(stops) + self.contact.rows.boxes], q, mean, bodies, stops,
            meshes=tuple(self._meshes(rows, felt.reshape(-1, nv + 1).tolist())),
        )  # fmt: skip

    def _meshes(self, rows: list[list[float]], felt: list[list[float]]) -> Iterator[MeshTerms]:
        """The lossy meshes, whose rows are the last; ``felt``: momenta and free impulses."""
        model, acting = self.model, self.contact.setting.acting
        lossy = acting.lossy(model)
        for n, row, (*momentum, free) in zip(
            lossy, rows[len(rows) - len(lossy) :], felt, strict=True
        ):
            yield mesh_terms(model, acting, n, row, momentum, free)

    @cached_property
    def _moved(self) -> TracedFunction:
        """(state, step, mean velocity, displacement) → placements of bodies there, gaps of
        stops.
        """
        contact, bodies = self.contact, self.bodies

        def build(state: Vector, length: Vector, mean: Vector, travel: Vector) -> list[Scalar]:
            step = contact.step(state, self._still, length, self._nothing)
            there = step.moved(step.middle(mean), travel)
            return [*(x for body in bodies for x in _place(there.state, body)), *there.stops()]

        nv = self.model.nv
        sizes = (contact.layout.size, 1, nv, nv, 12 * len(bodies) + contact.rows.stops)
        return function(self.model, f"displaced {self.name}", sizes, build)

    @cached_property
    def _ended(self) -> TracedFunction:
        """(state, step, mean velocity, displacement, z⁺, correction) → q, v, z, bases, checks."""
        contact, layout = self.contact, self.contact.layout

        def build(
            state: Vector, length: Vector, mean: Vector, travel: Vector, after: Vector,
            correction: Vector,
        ) -> list[Scalar]:  # fmt: skip
            step = contact.step(state, self._still, length, self._nothing)
            end = step.moved(step.middle(mean), travel).ended(after, correction)
            return [*layout.row(end.state, end.v), *end.checks]

        nv = self.model.nv
        size = layout.columns.memory.start + layout.checks
        sizes = (layout.size, 1, nv, nv, nv, nv, size)
        return function(self.model, f"end of {self.name}", sizes, build)

    @property
    def _still(self) -> list[Scalar]:
        """No forces: the end of a step depends on them by z⁺ only."""
        return [0.0] * self.model.nv

    @property
    def _nothing(self) -> list[Vector]:
        """No wrenches."""
        return [[0.0] * size for size in self._wrenches]

    def moved(self, state: Array, middle: DataMiddle, travel: Vector) -> DataDisplaced:
        """The end of a displacement."""
        arguments = state, np.array([middle.h]), middle.mean, np.array(travel)
        numbers = np.asarray(self._moved(*arguments))
        count = 12 * len(self.bodies)
        rows = numbers[:count].reshape(-1, 12)
        poses = {body: _as_pose(row) for body, row in zip(self.bodies, rows, strict=True)}
        return DataDisplaced(self, arguments, poses, numbers[count:].tolist())

    def ended(self, arguments: tuple[Array, ...], after: Vector, correction: Vector) -> Landing:
        """The end of a step."""
        layout, first = self.contact.layout, self.contact.layout.columns.memory.start
        still = correction or [0.0] * self.model.nv
        numbers = np.asarray(self._ended(*arguments, np.array(after), np.array(still))).tolist()
        state = numbers[:first]
        return Landing(layout.moving(state), state[layout.columns.v], numbers[first:])


@dataclass(frozen=True)
class DataDisplaced:
    """The end of the displacement of a step: placements of bodies there, and gaps of stops."""

    programs: DataPrograms
    arguments: tuple[Array, ...]
    poses: Mapping[int, Pose]
    stopped: list[float]
    planes: Vector = ()
    numbers: Sequence[int] = ()

    def gaps(self) -> Iterator[Scalar | None]:
        """The gap of each near contact there; None for pairs of links, whose row says it."""
        setting = self.programs.contact.setting

        def pose(place: FramePlacement) -> Pose:
            return placed(self.poses, place)

        points = list(gaps_of_points(setting, self.programs.model, pose, self.planes))
        for number in self.numbers:
            yield points[number] if number < len(points) else None

    def stops(self) -> list[Scalar]:
        """The distances of stopped joints from their limits there."""
        return list(self.stopped)

    def ended(self, after: Vector, correction: Vector) -> Landing:
        """The end of a step with velocities ``after``, moved by a correction if there is one."""
        return self.programs.ended(self.arguments, after, correction)


def _as_pose(row: Array) -> Pose:
    """Rotation by rows and origin from twelve numbers."""
    a, b, c, d, e, f, g, h, i, x, y, z = row.tolist()
    return ((a, b, c), (d, e, f), (g, h, i)), (x, y, z)


def _place(state: Configuration, body: int) -> list[Scalar]:
    """Rotation by rows and origin of a body's internal axes."""
    rotation, origin = frames.pose_of(state, FramePlacement(body, Transform((), ZERO)))
    return [*(x for row in rotation for x in row), *origin]


def _of_bodies(model: Model, middle: StateMiddle, bodies: Iterable[int]) -> list[Scalar]:
    """Placements, velocities by w and Jacobians of bodies at the middle of a step."""
    state, numbers, moving = middle.state, list[Scalar](), None
    if middle.leaving:
        moving = State(spanning_tree(model), state.positions, state.turned, middle.leaving)
    for body in bodies:
        twist = [0.0] * 6 if moving is None else moving.twists[body].entries()
        rows = [joint_forces(model, state, body, wrench) for wrench in UNIT_WRENCHES]
        numbers += [*_place(state, body), *twist, *(x for row in rows for x in row)]
    return numbers


# ---- a step --------------------------------------------------------------------------------------


class NotFiniteError(ArithmeticError):
    """Terms of a step that are not finite."""


class Taken(NamedTuple):
    """The result of a step, followed by the data of its contacts.

    ``contacts``: those that the function has given, with their numbers. ``impulses`` (k, 3) in
    world axes, and ``along`` (2, k, 3) impulses and velocities along their axes, of the contacts
    that are near, by ``numbers``; ``far``: velocities of the others along theirs.
    """

    result: Array
    contacts: list[tuple[int, Contact]]
    numbers: list[int]
    impulses: Array
    along: Array
    far: Mapping[int, Array]


class DataStep:
    """The terms of a step whose contacts are data.

    :class:`~robomodel.motion.time_stepping.StepTerms` on numbers. ``step`` may get more bodies, by
    contacts that the function has not given before.
    """

    def __init__(
        self, step: FixedStep, given: GivenContacts | None, state: Array, tau: Array, h: float,
        wrenches: Sequence[Array],
    ) -> None:  # fmt: skip
        layout = step.layout
        self.step, self.given = step, given
        self.state, self.known = state[: layout.size], _kept(state[layout.size :])
        self.inputs = tau, h, wrenches
        self.memory = Memory.of(
            step.rows, step.model.nv, self.state[layout.columns.memory].tolist()
        )
        self.passes = 2 if linkages(step.model) else 1
        points = bool(step.contact.setting.points)
        self.planes: list[float] = step.places.planes(self.state, h).tolist() if points else []
        self.contacts: list[tuple[int, Contact]] | None = None
        self.by: Vector = ()
        self.near: list[int] = []
        self.far: dict[int, GapRows] = {}
        self._before = self.memory

    @property
    def programs(self) -> DataPrograms:
        """The programs."""
        return DataPrograms(self.step.name, self.step.contact)

    def take(self) -> Taken:
        """The step."""
        layout = self.step.layout
        try:
            outcome = time_step(self)
        except NotFiniteError:
            none = np.zeros((0, 3))
            lost = np.full(layout.results, np.nan)
            return Taken(lost, self.contacts or [], [], none, np.stack([none, none]), {})
        terms, memory, k = outcome.terms, outcome.memory, 3 * len(self.near)
        kept = replace(memory, impulses=memory.impulses[k:], rates=memory.rates[k:])
        along = np.array([memory.impulses[:k], memory.rates[:k]], float).reshape(2, -1, 3)
        row = layout.row(outcome.end.state, outcome.end.v, kept.numbers())
        tail = [
            [number, *impulse, *rate]
            for number, impulse, rate in zip(self.near, *along.tolist(), strict=True)
        ]
        result = [*row, *outcome.end.checks, outcome.miss, outcome.residual, *np.ravel(tail)]
        world = np.array(terms.in_world(memory.impulses[:k]), float).reshape(-1, 3)
        after = np.array(terms.after(outcome.impulses))
        far = {
            number: _numbers(gap.rows) @ after - _numbers(gap.leaving) - _numbers(gap.surface)
            for number, gap in self.far.items()
        }
        return Taken(np.array(result, float), self.contacts or [], self.near, world, along, far)

    def assembled(self, mean: Vector | None) -> Assembly[DataMiddle]:
        """The contact problem at the middle that a mean velocity predicts, of near contacts."""
        middle = self._middle(mean)
        free = np.array(middle.inverse.solve(middle.right))
        self.near, self.far, gaps = [], {}, []
        for number, touch in self._touches(middle):
            gap = gap_rows(middle.bodies, touch, middle.h)
            ahead = _numbers(gap.rows[2]) @ free - value_of(gap.leaving[2])
            closes = value_of(gap.gap + middle.h * ahead)
            if closes < TAKES_PART and np.any(_numbers(gap.rows)):
                self.near.append(number)
                gaps.append(gap)
            else:
                self.far[number] = gap
        kept = [self.known.get(number, np.zeros((2, 3))).tolist() for number in self.near]
        self._before = Memory(
            [x for pair in kept for x in pair[0]] + self.memory.impulses, [],
            [x for pair in kept for x in pair[1]] + self.memory.rates, self.memory.ends, [],
            self.memory.length,
        )  # fmt: skip
        rubbing = self.step.contact.setting.acting.rubbing(self.step.model)
        return assemble(middle, gaps + middle.stops, self._before, rubbing)

    def _middle(self, mean: Vector | None) -> DataMiddle:
        """The middle of the step; at the first one the function is asked for contacts."""
        layout, (tau, h, wrenches) = self.step.layout, self.inputs
        if mean is None:
            z, follows = np.array(layout.moving(self.state.tolist()).z), self.memory.acceleration
            at = z + 0.5 * h * np.array(follows)
        else:
            at = np.array(mean)
        middle = self.programs.middle(self.state, tau, h, at, wrenches)
        if middle is None:
            raise NotFiniteError
        if self.contacts is None:
            v, first = self.state[layout.columns.v], len(self.step.contact.setting.points)
            found = [] if self.given is None else self.given.at(middle.q, v)
            self.contacts, self.by = [(first + n, each) for n, each in found], middle.expected
            links = {x for _, each in found for x in (each.link, each.other) if x is not None}
            wider = self.step.touching(links)
            if wider is not self.step:
                self.step = wider
                return self._middle(mean)
        return middle

    def _touches(self, middle: DataMiddle) -> Iterator[tuple[int, Touch]]:
        """Points on their planes, and the contacts of the function, by their numbers."""
        setting, bodies = self.step.contact.setting, middle.bodies
        yield from enumerate(on_planes(setting, bodies, self.planes, middle.expected))
        for number, each in self.contacts or []:
            point, normal = _vec(each.point), _vec(each.normal)
            links = each.link, each.other
            sides = [(link, offset(bodies, link, point)) for link in links if link is not None]
            law = ContactLaw(float(each.friction), float(each.friction), float(each.restitution))
            yield number, Touch(sides, normal, float(each.gap), law, self.by)

    def solved(
        self, terms: Assembly[DataMiddle], impulses: list[Scalar], slips: list[Scalar], last: bool
    ) -> Solved:
        """Impulses by the full method, from those of the step before; no slips."""
        kinds, start = terms.kinds, np.array(self._before.impulses, dtype=float)
        b, plain, work = (np.array(x, dtype=float) for x in (terms.b, terms.plain, terms.work))
        problem = ArrayProblem(
            kinds, np.array(terms.delassus).reshape(kinds.size, kinds.size), b,
            np.array(terms.friction, dtype=float), np.array(terms.bounds, dtype=float),
            meshes=None if terms.meshes is None else terms.meshes.as_arrays(),
        )  # fmt: skip
        x, residual = solve(problem, start, SOLVED)
        if any(gap.law.rebounds for gap in terms.gaps):
            rest = solve(replace(problem, b=plain), start, SOLVED)[0]
            x = problem.without_gain(work, x, rest)
        early, impulses = np.zeros(0), list[Scalar]()
        if last and terms.before:
            before, collides = _numbers(terms.before), _numbers(terms.collides)
            size = np.array([value_of(terms.size)])
            found = in_parts(
                problem.alone, before[None], collides[None], x[None], np.array([residual]), size
            )
            x, residual, early = found[0][0], float(found[1][0]), found[2][0]
        impulses += x.tolist()
        return Solved(impulses, [], residual, list[Scalar](early.tolist()))

    def moved(self, middle: DataMiddle, travel: Vector) -> DataDisplaced:
        """The end of a displacement."""
        there = self.programs.moved(self.state, middle, travel)
        return replace(there, planes=self.planes, numbers=self.near)


def _numbers(scalars: Any) -> Array:
    return np.array(scalars, dtype=float)


def _vec(numbers: ArrayLike) -> Vec:
    x, y, z = np.asarray(numbers, dtype=float).tolist()
    return x, y, z


def _kept(tail: Array) -> dict[int, Array]:
    """Impulses and velocities (2, 3) of contacts by number, from the data behind a state."""
    return {int(row[0]): row[1:].reshape(2, 3) for row in tail.reshape(-1, KEPT)}
