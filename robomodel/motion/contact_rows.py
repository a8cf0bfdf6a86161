"""The rows of contacts and stops in a step of time stepping: where they are, and how they move.

A contact is a :class:`Touch`: where two sides touch at the middle of the step. Touches come from
points on planes and from pairs of links, within a program or as data; whatever they come from,
:func:`gap_rows` writes their rows, from the placements and Jacobians of :class:`Bodies`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from robomodel.dynamics.contact.gauss_seidel import basis
from robomodel.dynamics.contact.problem import RowKinds
from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.frames import FramePlacement, joint_forces
from robomodel.dynamics.kinematics.state import Configuration, State
from robomodel.mechanism.graph import WORLD
from robomodel.model.model import Model
from robomodel.motion.collision import Proximity, RoundPair, round_contacts
from robomodel.motion.ground import ContactLaw, Ground, GroundPoint, Pair
from robomodel.motion.limits import Acting, rotors_of_meshes
from robomodel.scalars import Scalar, Vector, advanced, dot, held
from robomodel.spatial import ZERO, Mat, Vec, Wrench, apply, inner, minus, scale, transpose

Pose: TypeAlias = tuple[Mat, Vec]

PLANE = 4  # numbers of a plane: normal, offset


@dataclass(frozen=True)
class Setting:
    """Parts of steps of time stepping: contacts, stops and dry friction.

    ``points`` touch a horizontal plane at ``height`` (None: each has its own plane, an argument),
    by ``laws``. ``rounds`` are spheres and capsules of links that touch each other. ``bodies``:
    bodies whose contacts, those of points included, are not in the step's program, but data
    (:mod:`robomodel.motion.contact_data`); None: the program has all contacts.
    """

    acting: Acting
    points: tuple[GroundPoint, ...] = ()
    laws: tuple[ContactLaw, ...] = ()
    height: float | None = 0.0
    rounds: tuple[RoundPair, ...] = ()
    bodies: tuple[int, ...] | None = None
    stop_restitution: float = 0.0

    @staticmethod
    def on(
        acting: Acting,
        grounds: Sequence[Ground],
        points: Sequence[GroundPoint],
        rounds: tuple[RoundPair, ...] = (),
        bodies: tuple[int, ...] | None = None,
        stop_restitution: float = 0.0,
    ) -> Setting:
        """The setting of steps on grounds: a contact for each plane that a point may touch."""
        planes = [ground for ground in grounds for _ in range(ground.planes)]
        height: float | None = 0.0
        if planes:
            level = len(planes) == 1 and planes[0].is_level
            height = float(np.asarray(planes[0].height)) if level else None
        return Setting(
            acting,
            tuple(point for point in points for _ in planes),
            tuple(ground.law(point) for point in points for ground in planes),
            height,
            rounds,
            bodies,
            stop_restitution,
        )

    @property
    def contacts(self) -> int:
        """Number of contacts in the step's program."""
        if self.bodies is not None:
            return 0
        return len(self.points) + sum(pair.count for pair in self.rounds)

    @property
    def rebounds(self) -> bool:
        """True if contacts or stops may rebound at once."""
        rebounds = any(law.rebounds for law in self.laws)
        return rebounds or any(x.restitution for x in self.rounds) or self.stop_restitution > 0.0

    @property
    def planes(self) -> int:
        """Numbers of the planes that points touch, if these are an argument of steps."""
        return PLANE * len(self.points) if self.height is None and self.contacts else 0

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Contacts of spheres and capsules of links with each other."""
        return tuple(
            Pair(pair.first.link, pair.second.link, (n, m))
            for n, pair in enumerate(self.rounds)
            for m in range(pair.count)
        )

    def rows(self, model: Model) -> RowKinds:
        """The rows of a step: each stopped joint has one for each limit."""
        acting = self.acting
        rubbing, meshes = len(acting.rubbing(model)), len(acting.lossy(model))
        return RowKinds(self.contacts, len(acting.bounds(model)), rubbing, meshes)

    def touched(self, model: Model) -> set[int]:
        """The bodies that may touch something.

        Raises ValueError for the rotor of a lossy gear: what touches it is none of its mesh's load.
        """
        bodies = {model.frame(p.link).body for p in self.points} | {*(self.bodies or ())}
        bodies |= {model.frame(link).body for pair in self.rounds for link in pair.links}
        meshed = rotors_of_meshes(model) if self.acting.friction else ()
        if at := [n for n in bodies if n >= 0 and model.joints[n].name in meshed]:
            raise ValueError(
                f"'{model.bodies[at[0]].name}' is the rotor of a gear with losses and cannot touch "
                "anything; leave it out of contacts and collisions, or take friction=False"
            )
        return bodies


@dataclass(frozen=True, slots=True)
class Touch:
    """A contact at the middle of a step: links at offsets in their axes, which it pushes apart.

    The first is pushed along ``normal``. ``by``: the mean velocity by which the ``gap`` there was
    predicted. ``jumps``: it may jump from one place to another, so that its row in the step before
    is not used.
    """

    sides: Sequence[tuple[str, Vec]]
    normal: Vec
    gap: Scalar
    law: ContactLaw
    by: Vector
    jumps: bool = False


@dataclass(frozen=True, slots=True)
class GapRows:
    """Rows that keep a distance: two tangents and the normal of a contact, one row of a stop.

    ``leaving``: their velocities by w; ``surface``: those of the touched surface. ``gap`` is that
    at the beginning of the step. ``axes``: tangents and normal of a contact; stops have none, and
    no friction. ``jumps``: see :class:`Touch`.
    """

    rows: list[list[Scalar]]
    leaving: list[Scalar]
    surface: list[Scalar]
    gap: Scalar
    law: ContactLaw
    axes: tuple[Vec, Vec, Vec] | tuple[()] = ()
    jumps: bool = False


@dataclass(frozen=True, slots=True)
class Memory:
    """Data of a step for the next one, besides its state.

    ``rates``: velocities of all rows; ``ends``: those of dry friction and meshes that their laws
    hold for, zero where they stick; ``acceleration``: the mean ż; ``length``: the step's.
    """

    impulses: list[Scalar]
    slips: list[Scalar]
    rates: list[Scalar]
    ends: list[Scalar]
    acceleration: list[Scalar]
    length: list[Scalar]

    @staticmethod
    def sizes(rows: RowKinds, nv: int) -> tuple[int, ...]:
        """How many numbers each of its parts has."""
        return rows.size, rows.contacts, rows.size, rows.rubbing, nv, 1

    @staticmethod
    def of(rows: RowKinds, nv: int, numbers: Vector) -> Memory:
        """The memory with these :meth:`numbers`."""
        ends = itertools.accumulate(Memory.sizes(rows, nv), initial=0)
        return Memory(*(list(numbers[a:b]) for a, b in itertools.pairwise(ends)))

    def numbers(self) -> list[Scalar]:
        """All numbers, one after the other."""
        parts = self.impulses, self.slips, self.rates, self.ends, self.acceleration, self.length
        return [x for part in parts for x in part]


class Bodies(Protocol):
    """Bodies at the middle of a step, as rows of contacts are written from them."""

    @property
    def model(self) -> Model:
        """The robot."""

    def pose(self, place: FramePlacement) -> Pose:
        """Rotation (rows) and origin of a frame in the world."""

    def forces(self, body: int, wrench: Wrench) -> list[Scalar]:
        """Generalised forces (nv) of a wrench on a body, in its internal axes."""

    def leaving(self, place: FramePlacement) -> Vec | None:
        """Linear velocity of a frame by w, in its axes; None if it has none."""


@dataclass(frozen=True)
class StateBodies:
    """Bodies of a state within a program; ``moving``: motion of all joints by w, if any."""

    model: Model
    state: State
    moving: State | None

    def pose(self, place: FramePlacement) -> Pose:
        """Rotation (rows) and origin of a frame in the world."""
        return frames.pose_of(self.state, place)

    def forces(self, body: int, wrench: Wrench) -> list[Scalar]:
        """Generalised forces (nv) of a wrench on a body, in its internal axes."""
        return joint_forces(self.model, self.state, body, wrench)

    def leaving(self, place: FramePlacement) -> Vec | None:
        """Linear velocity of a frame by w, in its axes; None if it has none."""
        if self.moving is None or place.body == WORLD:
            return None
        return place.pose.to_child(self.moving.twists[place.body]).linear


# ---- touches -------------------------------------------------------------------------------------


def on_planes(setting: Setting, bodies: Bodies, planes: Vector, by: Vector) -> Iterator[Touch]:
    """Points and spheres on their planes."""
    model = bodies.model
    for n, (at, law) in enumerate(zip(setting.points, setting.laws, strict=True)):
        rotation, origin = bodies.pose(frames.place(model, (at.link, at.offset)))
        normal, height = _plane(setting, planes, n, origin)
        lowest = minus(at.offset, scale(at.radius, apply(transpose(rotation), normal)))
        yield Touch([(at.link, lowest)], normal, height - at.radius, law, by)


def between_rounds(
    setting: Setting, bodies: Bodies, state: Configuration, by: Vector
) -> Iterator[Touch]:
    """Spheres and capsules of links that touch each other."""
    for pair in setting.rounds:
        law = ContactLaw(pair.friction, pair.friction, pair.restitution)
        for n, (gap, normal, point) in enumerate(between(bodies.model, state, pair)):
            sides = [(link, offset(bodies, link, point)) for link in pair.links]
            # the nearest points of two capsules may jump
            yield Touch(sides, normal, gap, law, by, pair.count > 1 and n == 0)


def between(model: Model, state: Configuration, pair: RoundPair) -> list[Proximity]:
    """Gaps, normals and points of contact of two spheres or capsules."""
    poses = (frames.pose_of(state, frames.place(model, link)) for link in pair.links)
    return round_contacts(pair.first, pair.second, *poses)


def offset(bodies: Bodies, link: str, point: Vec) -> Vec:
    """A place in the world, in the axes of a link."""
    rotation, origin = bodies.pose(frames.place(bodies.model, link))
    return apply(transpose(rotation), minus(point, origin))


def gaps_of_points(
    setting: Setting, model: Model, pose: Callable[[FramePlacement], Pose], planes: Vector
) -> Iterator[Scalar]:
    """The gaps of points and spheres to their planes, by other poses of frames."""
    for n, at in enumerate(setting.points):
        _, origin = pose(frames.place(model, (at.link, at.offset)))
        yield _plane(setting, planes, n, origin)[1] - at.radius


def _plane(setting: Setting, planes: Vector, n: int, origin: Vec) -> tuple[Vec, Scalar]:
    """The normal of the plane that a point touches, and the height of a place above it."""
    plane: Vector = planes[PLANE * n : PLANE * n + PLANE]
    if setting.height is not None:
        plane = (0.0, 0.0, 1.0, setting.height)
    normal = plane[0], plane[1], plane[2]
    return normal, inner(normal, origin) - plane[3]


# ---- rows ----------------------------------------------------------------------------------------


def gap_rows(bodies: Bodies, touch: Touch, h: Scalar) -> GapRows:
    """The rows of a contact, with its gap at the beginning of a step of length h."""
    model, axes = bodies.model, basis(touch.normal)
    rows: list[list[Scalar]] = [[0.0] * model.nv for _ in axes]
    slow: list[Scalar] = [0.0] * len(axes)
    for side, sign in zip(touch.sides, (1.0, -1.0), strict=False):
        link, (x, y, z) = side
        place = frames.place(model, (link, (held(x), held(y), held(z))))
        turn = transpose(bodies.pose(place)[0])
        for n, axis in enumerate(axes):
            along = apply(turn, axis)
            wrench = place.pose.to_parent(Wrench(ZERO, along))
            rows[n] = advanced(rows[n], sign, bodies.forces(place.body, wrench))
            linear = bodies.leaving(place)
            if linear is not None:
                slow[n] = slow[n] + sign * inner(along, linear)
    gap = touch.gap - 0.5 * h * dot(rows[2], touch.by)
    surface = [*(inner(axis, touch.law.velocity) for axis in axes[:2]), 0.0]
    return GapRows(rows, slow, surface, gap, touch.law, axes, touch.jumps)


def stop_rows(
    model: Model, state: State, h: Scalar, setting: Setting, leaving: Vector, expected: Vector
) -> list[GapRows]:
    """Rows of joint limits that stop joints."""
    result = []
    stopped = setting.acting.stopped(model)
    for n, side, bound in setting.acting.bounds(model):
        node = model.nodes[stopped[n]]
        row: list[Scalar] = [0.0] * model.nv
        for i, x in enumerate(state.rows[node.v], model.clusters[node.cluster].v.start):
            row[i] = side * x
        gap = side * (state.positions[node.q] - bound)
        gap = gap - 0.5 * h * dot(row, expected)
        slow = side * leaving[node.v] if leaving else 0.0
        law = ContactLaw(0.0, 0.0, setting.stop_restitution)
        result.append(GapRows([row], [slow], [0.0], gap, law))
    return result


def gaps_of_stops(model: Model, state: Configuration, setting: Setting) -> list[Scalar]:
    """The distances of stopped joints from their limits."""
    stopped = setting.acting.stopped(model)
    return [
        side * (state.positions[model.nodes[stopped[n]].q] - bound)
        for n, side, bound in setting.acting.bounds(model)
    ]
