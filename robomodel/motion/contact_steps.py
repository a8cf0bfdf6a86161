"""Steps of time stepping with contacts as data: one program for any number of contacts.

The program of a step (:mod:`robomodel.motion.time_stepping`) then has no rows of contacts. It
returns M̂, the forces, and the Jacobians of the bodies at the middle of the step. The rows of
contacts that are near, their laws and their impulses are computed on numbers, by the same
functions. Contacts are numbered: points on their planes first, then pairs of links. For the next
step the state is followed by the number, impulses and velocities of each near contact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.baselines import spanning_tree
from robomodel.dynamics.contact.complementarity import ArrayProblem, solve
from robomodel.dynamics.contact.gauss_seidel import basis
from robomodel.dynamics.contact.problem import RowKinds
from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.frames import FramePlacement, joint_forces
from robomodel.dynamics.kinematics.state import Configuration, State
from robomodel.kernels.function import TracedFunction
from robomodel.mechanism.graph import WORLD
from robomodel.model.model import Model
from robomodel.motion.ground import Contact, ContactLaw, GroundPoint
from robomodel.motion.integrator_functions import function
from robomodel.motion.steps import ABSENT, SOLVED, FixedStep
from robomodel.motion.tangent import displaced, in_tangents, in_turned_axes
from robomodel.motion.time_stepping import (
    PLANE,
    TAKES_PART,
    Assembly,
    GapRows,
    Memory,
    Setting,
    along_surface,
    corrections,
    ended,
    in_sequence,
    laws,
    moved_on,
    strikes,
)
from robomodel.scalars import Scalar, Vector
from robomodel.spatial import UNIT_WRENCHES, ZERO, Transform

KEPT = 7  # numbers per contact behind the state


@dataclass(frozen=True)
class Side:
    """A point of a body in the world at a step's middle; ``sign`` of its share of the gap."""

    body: int
    place: Array
    sign: float


@dataclass(frozen=True)
class Near:
    """A contact at the middle of a step: its number, sides, normal, law, and the gap there.

    ``by``: the velocities that lead from the beginning to the place where the gap was measured.
    """

    number: int
    sides: tuple[Side, ...]
    normal: Array
    gap: float
    law: ContactLaw
    by: Array


@dataclass(frozen=True)
class Middle:
    """Terms at the middle of a step from the program: see :class:`.time_stepping.Assembly`.

    Of the bodies, the world last: rotations (n, 3, 3), origins (n, 3), Jacobians (n, 6, nv) and
    twists by w (n, 6), in the bodies' axes. Of stops: rows, velocities by w, gaps at the beginning.
    """

    mass: Array
    right: Array
    a: Array
    z: Array
    expected: Array
    middle: Array
    rotations: Array
    origins: Array
    jacobians: Array
    twists: Array
    stops: Array
    leaving: Array
    gaps: Array
    rubbing: Array


@dataclass(frozen=True)
class Taken:
    """The result of a step (see :class:`.steps.FixedStep`), followed by the data of its contacts.

    ``numbers`` of the contacts that are near; ``along``: their impulses and velocities (2, k, 3)
    along their axes; ``impulses`` (k, 3) in world axes; ``far``: velocities of the other contacts.
    """

    result: Array
    numbers: list[int]
    along: Array
    impulses: Array
    far: Mapping[int, Array]


@dataclass(frozen=True)
class ContactStep:
    """Steps of time stepping of one robot with contacts as data."""

    step: FixedStep

    @property
    def model(self) -> Model:
        """The robot."""
        return self.step.model

    @property
    def setting(self) -> Setting:
        """What steps depend on."""
        return self.step.contact

    @property
    def bodies(self) -> tuple[int, ...]:
        """Bodies that may touch something."""
        assert self.setting.bodies is not None
        return self.setting.bodies

    # ---- programs

    @cached_property
    def _middle(self) -> TracedFunction:
        """(state, tau, step, mean velocity, wrenches) → the arrays of :class:`Middle`."""
        step, model = self.step, self.model

        def build(
            state: Vector, tau: Vector, length: Vector, mean: Vector, *more: Vector
        ) -> list[Scalar]:
            terms = step.terms(state, step.inputs(tau, length[0], more), mean)
            numbers = [x for row in terms.mass for x in row]
            numbers += [*terms.right, *terms.a, *terms.z, *terms.expected, *terms.middle]
            numbers += _of_bodies(model, terms, self.bodies)
            numbers += [x for row in terms.rows for x in row]
            numbers += [x for gap in terms.gaps for x in (*gap.leaving, gap.gap)]
            return numbers

        size = sum(self._sizes)
        sizes = (step.size, model.nv, 1, model.nv, *step.more, size)
        return function(model, f"middle of {step.name}", sizes, build)

    @property
    def _sizes(self) -> list[int]:
        """Numbers of the parts of the program's result."""
        nv, rows = self.model.nv, self.step.rows
        return [nv * nv, *[nv] * 5, len(self.bodies) * (18 + 6 * nv), nv * rows.size,
                2 * rows.stops]  # fmt: skip

    def middle(
        self, state: Array, tau: Array, h: float, mean: Array, wrenches: Sequence[Array]
    ) -> Middle:
        """The middle of a step."""
        nv, rows = self.model.nv, self.step.rows
        numbers = np.asarray(self._middle(state, tau, np.array([h]), mean, *wrenches))
        parts = np.split(numbers, np.cumsum(self._sizes)[:-1])
        mass, right, a, z, expected, middle, of_bodies, lines, gaps = parts
        table = np.zeros((len(self.bodies) + 1, 18 + 6 * nv))
        table[:-1] = of_bodies.reshape(-1, 18 + 6 * nv)
        lines, gaps = lines.reshape(-1, nv), gaps.reshape(-1, 2)
        return Middle(
            mass.reshape(nv, nv), right, a, z, expected, middle,
            rotations=table[:, :9].reshape(-1, 3, 3), origins=table[:, 9:12],
            twists=table[:, 12:18], jacobians=table[:, 18:].reshape(-1, 6, nv),
            stops=lines[: rows.stops], leaving=gaps[:, 0], gaps=gaps[:, 1],
            rubbing=lines[rows.stops :],
        )  # fmt: skip

    @cached_property
    def _end(self) -> TracedFunction:
        """(state, step, mean velocity, z⁺, displacement, correction) → end, placements of bodies
        there.

        The end: q, v, z, bases, checks. Placements, and gaps of stops, are those after the
        displacement without the correction.
        """
        step, model = self.step, self.model
        links = self.setting.links

        def build(
            state: Vector, length: Vector, mean: Vector, after: Vector, travel: Vector, more: Vector
        ) -> list[Scalar]:
            still: list[Scalar] = [0.0] * model.nv
            none = [[0.0] * 6 * len(links)] if links else []
            terms = step.terms(state, step.inputs(still, length[0], none), mean)
            q = moved_on(terms, travel, self.setting)
            there = Configuration(terms.state.model, q, terms.state.turned)
            places = [x for body in self.bodies for x in _place(there, body)]
            stopped = self.setting.acting.stopped(model)
            for n, side, bound in self.setting.acting.bounds(model):
                places.append(side * (there.positions[model.nodes[stopped[n]].q] - bound))
            at, v, checks = ended(model, terms, q, after, travel, more, self.setting)
            return [*step.state_row(at, v), *checks, *places]

        nv = model.nv
        size = step.columns[4].start + step.checks + 12 * len(self.bodies) + step.rows.stops
        sizes = (step.size, 1, nv, nv, nv, nv, size)
        return function(model, f"end of {step.name}", sizes, build)

    @cached_property
    def _predicted(self) -> TracedFunction:
        """(q, v, z, bases; displacement) → q displaced, loops closed as at the middle."""
        step, setting, model = self.step, self.setting, self.model

        def build(numbers: Vector, way: Vector) -> list[Scalar]:
            start = step.moving(numbers)
            here = in_tangents(model, start.bases)
            return setting.closed(here, displaced(here, start.q, way))

        sizes = (step.columns[3].stop, model.nv, model.nq)
        return function(model, f"predicted middle, careful {setting.careful}", sizes, build)

    # ---- a step

    def _following(self, state: Array, h: float) -> tuple[Array, Array, Memory]:
        """z, the mean velocity that follows from the step before, and the memory of it."""
        memory = Memory.of(self.setting, self.model, state[self.step.columns[4]].tolist())
        z = np.array(self.step.moving(state.tolist()).z)
        return z, z + 0.5 * h * np.array(memory.acceleration), memory

    def predicted(self, state: Array, h: float) -> Array:
        """q at the middle of a step, where its first pass has its rows."""
        state = state[: self.step.size]
        mean = self._following(state, h)[1]
        return np.asarray(self._predicted(state[: self.step.columns[3].stop], 0.5 * h * mean))

    def take(
        self,
        state: Array,
        tau: Array,
        h: float,
        touches: Mapping[int, Contact],
        wrenches: Sequence[Array] = (),
    ) -> Taken:
        """A step; ``touches``: contacts of pairs of links at the middle :meth:`predicted`."""
        model, step = self.model, self.step
        state, known = state[: step.size], _kept(state[step.size :])
        z, following, memory = self._following(state, h)
        first: Array | None = None
        planes = np.zeros((0, PLANE))
        if self.setting.points:
            planes = step.planes(state, h).reshape(-1, PLANE)
        for _ in range(step.passes):
            mean = following
            at = self.middle(state, tau, h, mean, wrenches)
            if not (np.all(np.isfinite(at.mass)) and np.all(np.isfinite(at.right))):
                none = np.zeros((0, 3))
                return Taken(np.full(step.results, np.nan), [], np.stack([none, none]), none, {})
            first = at.expected if first is None else first
            near = [*self._on_planes(at, planes), *self._of_links(first, touches)]
            solved = self._solved(at, h, memory, known, near)
            following = self._turned((0.5 * (at.a + solved.after)).tolist(), at, back=True)
        beyond = h * self._turned(solved.after.tolist(), at, back=True)
        travel = beyond if solved.struck < 0.0 else h * following
        arguments = (state, np.array([h]), mean, solved.after, travel)
        end = np.asarray(self._end(*arguments, np.zeros(model.nv)))
        first = step.columns[4].start
        gaps, miss = self._missed(solved, end[first + step.checks :], self._turned(travel, at))
        closing = solved.impulses[solved.normals].tolist()
        miss = max(miss, float(in_sequence(closing, solved.gaps, solved.collides)))
        y = np.array(corrections(solved.normal_block, gaps))
        if np.any(y):
            change = solved.weighted[:, solved.normals] @ y
            end = np.asarray(self._end(*arguments, self._turned(change, at, back=True)))
        acceleration = (0.0 if solved.struck < 0.0 else 2.0 / h) * (following - z)
        k = 3 * len(solved.near)
        kept = Memory(
            solved.impulses[k:].tolist(), [], solved.rates[k:].tolist(), acceleration.tolist(), [h]
        )
        checks = end[first : first + step.checks]
        along = np.stack([solved.impulses[:k], solved.rates[:k]]).reshape(2, -1, 3)
        numbers = [each.number for each in solved.near]
        tail = np.concatenate([np.array(numbers)[:, None], *along], axis=1) if numbers else ()
        result = np.array([*end[:first], *kept.numbers(), *checks, miss, solved.residual,
                           *np.ravel(tail)])  # fmt: skip
        axes = np.array([gap.axes for gap in solved.gaps[: len(numbers)]]).reshape(-1, 3, 3)
        world = np.einsum("ki,kij->kj", along[0], axes)
        return Taken(result, numbers, along, world, solved.far)

    def _turned(self, v: Sequence[Scalar] | Array, at: Middle, *, back: bool = False) -> Array:
        """Velocities in the axes of the middle, or ``back`` in those of the beginning."""
        numbers = [float(x) for x in v]
        return np.array(in_turned_axes(self.model, numbers, at.middle.tolist(), back=back))

    def _on_planes(self, at: Middle, planes: Array) -> Iterator[Near]:
        """Points and spheres on their planes."""
        points = zip(self.setting.points, self.setting.laws, planes, strict=True)
        for n, (point, law, (*normal, height)) in enumerate(points):
            body, offset = _in_body(self.model, point)
            if body == WORLD:
                continue
            b, axis = self.bodies.index(body), np.array(normal)
            centre = at.rotations[b] @ offset + at.origins[b]
            side = Side(b, centre - point.radius * axis, 1.0)
            gap = float(axis @ centre - height - point.radius)
            yield Near(n, (side,), axis, gap, law, at.expected)

    def _of_links(self, by: Array, touches: Mapping[int, Contact]) -> Iterator[Near]:
        """Pairs of links that touch at the middle that velocities ``by`` lead to."""
        for number, each in touches.items():
            sides = []
            for link, sign in ((each.link, 1.0), (each.other, -1.0)):
                body = WORLD if link is None else self.model.frame(link).body
                if body != WORLD:
                    place = np.asarray(each.point, dtype=float)
                    sides.append(Side(self.bodies.index(body), place, sign))
            law = ContactLaw(float(each.friction), float(each.friction), float(each.restitution))
            normal = np.asarray(each.normal, dtype=float)
            yield Near(number, tuple(sides), normal, float(each.gap), law, by)

    def _solved(
        self, at: Middle, h: float, memory: Memory, known: Mapping[int, Array],
        contacts: Iterable[Near],
    ) -> _Solved:  # fmt: skip
        """The contact problem of a step, solved."""
        setting = self.setting
        free = np.linalg.solve(at.mass, at.right)
        near, far, gaps = list[Near](), dict[int, GapRows](), list[GapRows]()
        for each in contacts:
            gap = _gap(at, each, h)
            closes = gap.gap + h * float(np.dot(gap.rows[2], free) - gap.leaving[2])
            if closes < TAKES_PART and np.any(gap.rows):
                near.append(each)
                gaps.append(gap)
            else:
                far[each.number] = gap
        law = ContactLaw(0.0, 0.0, setting.stop_restitution)
        for row, leaving, distance in zip(at.stops, at.leaving, at.gaps, strict=True):
            gaps.append(GapRows([row.tolist()], [float(leaving)], [0.0], float(distance), law))
        rows = np.array([row for gap in gaps for row in gap.rows] + at.rubbing.tolist())
        rows = rows.reshape(-1, self.model.nv)
        weighted = np.linalg.solve(at.mass, rows.T)
        kept = [known.get(each.number, np.zeros((2, 3))) for each in near]
        before = Memory(
            [x for pair in kept for x in pair[0].tolist()] + memory.impulses, [],
            [x for pair in kept for x in pair[1].tolist()] + memory.rates, [], memory.length,
        )  # fmt: skip
        delassus = (rows @ weighted).tolist()
        slow, collides, b, plain, friction, _ = laws(
            self.model, h, at.a.tolist(), free.tolist(), before, gaps, delassus
        )
        rubs = (at.rubbing @ free).tolist()
        problem = ArrayProblem(
            RowKinds(len(near), len(at.stops), len(rubs)),
            np.array(delassus).reshape(len(rows), len(rows)), np.array([*b, *rubs], dtype=float),
            np.array(friction, dtype=float), h * np.array(setting.acting.rubbing(self.model)),
        )  # fmt: skip
        start = np.array(before.impulses, dtype=float)
        x, residual = solve(problem, start, SOLVED)
        if any(gap.law.rebounds for gap in gaps):
            other = replace(problem, b=np.array([*plain, *rubs], dtype=float))
            x = problem.without_gain(rows @ at.a, x, solve(other, start, SOLVED)[0])
        after = free + weighted @ x
        rates = rows[: len(slow)] @ after + np.array(slow, dtype=float)
        leave = {
            number: np.array(gap.rows) @ after - np.add(gap.leaving, gap.surface)
            for number, gap in far.items()
        }
        return _Solved(
            near, leave, gaps, problem.matrix, weighted, x, residual, rates, after, collides
        )

    def _missed(self, solved: _Solved, there: Array, moved: Array) -> tuple[list[float], float]:
        """Gaps at the end, and by how much contacts that act or end in the ground miss their rows.

        ``there``: placements of bodies and gaps of stops; ``moved``: the displacement in the axes
        of the middle.
        """
        count = 12 * len(self.bodies)
        places, gaps, miss = there[:count].reshape(-1, 12), list[float](), 0.0
        for n, (each, gap) in enumerate(zip(solved.near, solved.gaps, strict=False)):
            expected = now = gap.gap + float(np.dot(gap.rows[2], moved))
            if each.number < len(self.setting.points):
                point = self.setting.points[each.number]
                turn, origin = np.split(places[each.sides[0].body], [9])
                centre = turn.reshape(3, 3) @ _in_body(self.model, point)[1] + origin
                away = centre - point.radius * each.normal - each.sides[0].place
                now = each.gap + float(each.normal @ away)
            if now < 0.0 or solved.impulses[3 * n + 2] > 0.0:
                miss = max(miss, abs(expected - now))
            gaps.append(max(now, -TAKES_PART) if gap.law.stiffness is None else ABSENT)
        return gaps + there[count:].tolist(), miss


@dataclass(frozen=True)
class _Solved:
    """The solved contact problem of a step, and z⁺; ``rates``: of the rows that keep distances.

    ``far``: velocities along their axes of contacts that do not take part.
    """

    near: Sequence[Near]
    far: Mapping[int, Array]
    gaps: Sequence[GapRows]
    matrix: Array
    weighted: Array
    impulses: Array
    residual: float
    rates: Array
    after: Array
    collides: list[Scalar]

    @cached_property
    def normals(self) -> list[int]:
        """The rows that keep distances along normals."""
        k = len(self.near)
        return [3 * n + 2 for n in range(k)] + list(range(3 * k, len(self.rates)))

    @property
    def normal_block(self) -> list[list[float]]:
        """The block of G of these rows."""
        block: list[list[float]] = self.matrix[np.ix_(self.normals, self.normals)].tolist()
        return block

    @cached_property
    def struck(self) -> float:
        """Negative where a row collides."""
        return float(strikes(self.impulses[self.normals].tolist(), self.collides))


def _kept(tail: Array) -> dict[int, Array]:
    """Impulses and velocities (2, 3) of contacts by number, from the data behind a state."""
    return {int(row[0]): row[1:].reshape(2, 3) for row in tail.reshape(-1, KEPT)}


def _gap(at: Middle, each: Near, h: float) -> GapRows:
    """The rows of a contact, with its gap at the beginning of the step."""
    x, y, z = each.normal.tolist()
    axes = basis((x, y, z))
    rows, slow = np.zeros((3, at.a.size)), np.zeros(3)
    for side in each.sides:
        turn = at.rotations[side.body]
        arm, along = (side.place - at.origins[side.body]) @ turn, np.array(axes) @ turn
        x, y, z = arm
        moments = along @ np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])
        wrenches = side.sign * np.concatenate([moments, along], axis=1)
        rows += wrenches @ at.jacobians[side.body]
        slow += wrenches @ at.twists[side.body]
    gap = each.gap - 0.5 * h * float(rows[2] @ each.by)
    surface = along_surface(axes, each.law)
    return GapRows(rows.tolist(), slow.tolist(), surface, gap, each.law, axes)


def _in_body(model: Model, point: GroundPoint) -> tuple[int, Array]:
    """A point's body, and its position in the body's axes."""
    placed = frames.place(model, (point.link, point.offset))
    return placed.body, np.array(placed.pose.offset, dtype=float)


def _place(state: Configuration, body: int) -> list[Scalar]:
    """Rotation by rows and origin of a body's internal axes."""
    rotation, origin = frames.pose_of(state, FramePlacement(body, Transform((), ZERO)))
    return [*(x for row in rotation for x in row), *origin]


def _of_bodies(model: Model, terms: Assembly, bodies: Iterable[int]) -> list[Scalar]:
    """Placements, velocities by w and Jacobians of bodies at the middle of a step."""
    state, numbers, moving = terms.state, list[Scalar](), None
    if terms.leaving:
        moving = State(spanning_tree(model), state.positions, state.turned, terms.leaving)
    for body in bodies:
        twist = [0.0] * 6 if moving is None else moving.twists[body].entries()
        rows = [joint_forces(model, state, body, wrench) for wrench in UNIT_WRENCHES]
        numbers += [*_place(state, body), *twist, *(x for row in rows for x in row)]
    return numbers
