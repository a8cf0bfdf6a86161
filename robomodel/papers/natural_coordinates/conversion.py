"""Planar robots in natural coordinates: their points, bodies, joints and loops, and dynamics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics.kinematics.state import State
from robomodel.errors import NOWHERE, DescriptionError, Source
from robomodel.mechanism import constraints as rows
from robomodel.mechanism.graph import WORLD
from robomodel.mechanism.joints import JointModel
from robomodel.model.arguments import as_array
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.papers.matrices import from_rows, times, transposed
from robomodel.papers.natural_coordinates.constraints import (
    Angle,
    Constraint,
    Distance,
    FixedAngle,
    Linear,
    Travel,
)
from robomodel.papers.natural_coordinates.mechanism import Body, Mechanism, Point
from robomodel.scalars import Scalar, stack, unstack, value_of
from robomodel.tolerances import PARALLEL

GROUND = ("world", "world'")  # points fixed at the origin, and one metre along x
PINS = ("revolute", "continuous", "spherical", "universal", "fixed")
"""Loops whose two ends share a point."""


@dataclass(frozen=True, eq=False)
class NaturalRobot:
    """A planar robot as a :class:`Mechanism`, and the correspondence of both.

    ``axes`` (2, 3) are the plane's axes in the world. ``points``: free point → (body, position in
    its internal axes). ``joints``: coordinate of a joint → index of the spanning position.
    """

    model: Model
    mechanism: Mechanism
    axes: Array
    points: dict[str, tuple[int, Array]]
    joints: dict[str, int]

    def coordinates(self, q: ArrayLike) -> Array:
        """Natural coordinates (..., n) at q (..., nq)."""
        return self._state(q, None)[0]

    def rates(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Their rates (..., n) at q (..., nq) and v (..., nv)."""
        return self._state(q, v)[1]

    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
        """a (..., nv) under joint forces tau (..., nv), by the KKT system."""
        at, rates, b, b_rate = self._moving(q, v)
        forces = times(transposed(b), as_array(tau, self.model.nv, "tau", "nv"))
        accelerations, _ = self.mechanism.accelerations(at, rates, forces)
        return times(b, accelerations) + b_rate

    def null_space_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
        """As :meth:`forward_dynamics`, in null-space form."""
        at, rates, b, b_rate = self._moving(q, v)
        forces = times(transposed(b), as_array(tau, self.model.nv, "tau", "nv"))
        return self.mechanism.independent_accelerations(at, rates, forces, b, b_rate)

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """The tau (..., nv) that produces a (..., nv)."""
        at, rates, b, b_rate = self._moving(q, v)
        a = as_array(a, self.model.nv, "a", "nv")
        return self.mechanism.independent_forces(at, rates, a, b, b_rate)

    def mass_matrix(self, q: ArrayLike) -> Array:
        """M (..., nv, nv) of the robot's velocities v: RᵀM R."""
        at = self.coordinates(q)
        b, _ = self._basis(at, np.zeros(self.mechanism.n))
        return self.mechanism.independent_mass_matrix(at, b)

    def _moving(self, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array, Array, Array]:
        """Coordinates and rates, B and Ḃ q̇."""
        at, rates = self._state(q, v)
        return at, rates, *self._basis(at, rates)

    def _state(self, q: ArrayLike, v: ArrayLike | None) -> tuple[Array, Array]:
        """Coordinates and rates: points by the robot's kinematics, joints directly."""
        at = as_array(q, self.model.nq, "q", "nq")
        speed = np.zeros(self.model.nv) if v is None else as_array(v, self.model.nv, "v", "nv")
        batch = np.broadcast_shapes(at.shape[:-1], speed.shape[:-1])
        with np.errstate(all="ignore"):
            everything = range(len(self.model.nodes))
            state = State(self.model, unstack(at), everything, unstack(speed))
            rotations, origins = poses(state, batch)
            positions: list[Scalar] = []
            rates: list[Scalar] = []
            for body, place in self.points.values():
                positions += unstack(times(self.axes, origins[body] + rotations[body] @ place))
                twist = stack(state.twists[body].entries(), batch)
                velocity = twist[..., 3:] + np.cross(twist[..., :3], place)
                rates += unstack(times(self.axes @ rotations[body], velocity))
            spanning = stack(state.positions, batch)
            joint_rates = stack(
                [
                    x
                    for node in self.model.nodes
                    for x in node.joint.rates(
                        state.positions[node.q : node.q + node.joint.nq],
                        state.velocities[node.v : node.v + node.joint.nv],
                    )
                ],
                batch,
            )
        positions += [spanning[..., i] for i in self.joints.values()]
        rates += [joint_rates[..., i] for i in self.joints.values()]
        return stack(positions, batch), stack(rates, batch)

    @cached_property
    def _columns(self) -> list[tuple[int, int]]:
        """For each entry of v: the body of its joint, and the index of the joint's velocity."""
        owner = {r: body for body, node in enumerate(self.model.nodes) for r in node.freedoms}
        return [
            (owner[column], column - self.model.nodes[owner[column]].v)
            for cluster in self.model.clusters
            for column in (cluster.spanning_v.start + c for c in cluster.columns)
        ]

    def _basis(self, at: Array, rates: Array) -> tuple[Array, Array]:
        """B and Ḃ q̇ of v = B q̇: unit rows for joints of one freedom, rotated for planar ones."""
        names = {position: name for name, position in self.joints.items()}
        number = {name: i for i, name in enumerate(self.mechanism.coordinates)}
        b = np.zeros((*at.shape[:-1], self.model.nv, self.mechanism.n))
        b_rate = np.zeros((*np.broadcast_shapes(at.shape, rates.shape)[:-1], self.model.nv))
        for row, (body, which) in enumerate(self._columns):
            node = self.model.nodes[body]
            columns = [number[names[node.q + i]] for i in range(node.joint.nq)]
            if node.joint.nv == 1 or which == 2:
                b[..., row, columns[which]] = 1.0
                continue
            angle = at[..., columns[2]]  # v = (c ẋ + s ẏ, c ẏ - s ẋ, θ̇)
            cosine, sine = np.cos(angle), np.sin(angle)
            along, aside = (cosine, sine) if which == 0 else (-sine, cosine)
            b[..., row, columns[0]], b[..., row, columns[1]] = along, aside
            slope = along * rates[..., columns[1]] - aside * rates[..., columns[0]]
            b_rate[..., row] = slope * rates[..., columns[2]]
        return b, b_rate


def poses(state: State, batch: tuple[int, ...]) -> tuple[list[Array], list[Array]]:
    """Rotations (..., 3, 3) and origins (..., 3) of all bodies in the world."""
    rotations: list[Array] = []
    origins: list[Array] = []
    for node, x in zip(state.model.nodes, state.transforms, strict=True):
        rotation = from_rows(x.matrix(), (3, 3), batch)
        origin = stack(x.offset, batch)
        if node.parent != WORLD:
            above = rotations[node.parent]
            origin = origins[node.parent] + times(above, origin)
            rotation = above @ rotation
        rotations.append(rotation)
        origins.append(origin)
    return rotations, origins


# ---- conversion ---------------------------------------------------------------------------------


def natural(model: Model) -> NaturalRobot:
    """A planar robot in natural coordinates.

    Each body has two points: its joint's pivot and, if it has others, its farthest other pivot,
    which it shares with the body that turns there; further pivots are fixed to it. Coordinates are
    those of the free points, and the positions of joints that are independent, coupled, or have an
    armature. Raises :class:`robomodel.DescriptionError` for robots that are not planar, naming the
    joint or loop: axes of rotation must be parallel, and directions of sliding normal to them.
    """
    return _Conversion(model).result()


@dataclass(frozen=True)
class _Loop:
    """A loop: its type, its ends' bodies (or WORLD), positions on them, and world axes."""

    name: str
    type: str
    bodies: tuple[int, int]
    places: tuple[Array, Array]
    axes: tuple[Array, Array]
    length: float
    source: Source


class _Conversion:
    """The conversion of a robot, at its neutral configuration."""

    def __init__(self, model: Model) -> None:
        self.model = model
        state = State(model, model.neutral().tolist(), range(len(model.nodes)), [0.0] * model.nv)
        self.positions = np.array(state.positions)
        self.rotations, self.origins = poses(state, ())
        self.loops = [m for c in model.clusters for m in self._loops_of(c)]
        self.axes = self._plane()
        self.normal = np.cross(*self.axes)
        self.pivots = [self.flat(origin) for origin in self.origins]
        self.seconds: list[tuple[str, Array]] = []  # name and position of each body's second point
        self.fixed = {GROUND[0]: np.zeros(2), GROUND[1]: np.array([1.0, 0.0])}

    def result(self) -> NaturalRobot:
        for body in range(len(self.model.nodes)):
            self._check_joint(body)
        for loop in self.loops:
            self._check_loop(loop)
        self._choose_points()
        constraints: list[Constraint] = []
        joints: dict[str, int] = {}
        armatures: dict[str, float] = {}
        for body in range(len(self.model.nodes)):
            names = self._coordinates_of(body)
            node = self.model.nodes[body]
            constraints += self._joint(body, names)
            joints |= {name: node.q + i for i, name in enumerate(names)}
            if node.armature:
                armatures |= dict.fromkeys(names, node.armature)
        for loop in self.loops:
            constraints += self._loop(loop)
        for c in self.model.couplings:
            if c.coefficients:
                sources = {each.name: each.source for each in self.model.description.couplings}
                raise DescriptionError(
                    "is a polynomial, which natural coordinates here do not have; use a graph in "
                    "joint coordinates",
                    sources[c.name],
                )
            constraints.append(Linear(f"coupling {c.name}", c.terms, c.offset))
        free = self._free_points()
        points: dict[str, Point | None] = {name: _pair(at) for name, at in self.fixed.items()}
        points |= dict.fromkeys(free)
        order = {name: i for i, name in enumerate(added for c in constraints for added in c.added)}
        mechanism = Mechanism(
            points,
            tuple(self._body(body) for body in range(len(self.model.nodes))),
            tuple(constraints),
            _pair(self.axes @ self.model.gravity),
            armatures,
        )
        robot = NaturalRobot(
            self.model,
            mechanism,
            self.axes,
            free,
            {name: joints[name] for name in sorted(joints, key=order.__getitem__)},
        )
        at = robot.coordinates(self.model.neutral())
        return replace(robot, mechanism=mechanism.regular(at))

    # ---- the plane

    def flat(self, place: Array) -> Array:
        """A position in the world, in the plane's axes."""
        return self.axes @ place

    def _motion(self, body: int) -> tuple[list[Array], list[Array]]:
        """Axes of rotation and directions of sliding of a body's joint, in the world."""
        r = self.rotations[body]
        motions = self.model.nodes[body].joint.subspace
        return (
            [r @ np.array(m.angular) for m in motions if any(m.angular)],
            [r @ np.array(m.linear) for m in motions if any(m.linear)],
        )

    def _plane(self) -> Array:
        """The plane's axes, near the world's: (x, y), (x, z) or (y, z)."""
        every = [self._motion(body) for body in range(len(self.model.nodes))]
        turns = [axis for turning, _ in every for axis in turning]
        slides = [way for _, sliding in every for way in sliding]
        normal = np.array([0.0, 0.0, 1.0])
        if turns:
            normal = turns[0]
        elif slides:
            ways = [*slides[1:], np.array(self.model.gravity), *np.eye(3)]
            others = [np.cross(slides[0], way) for way in ways]
            normal = next(n for n in others if np.linalg.norm(n) > PARALLEL)
        normal = normal / np.linalg.norm(normal)
        k = int(np.argmax(np.abs(normal)))
        normal = normal * np.sign(normal[k]) * (-1.0 if k == 1 else 1.0)
        x = np.eye(3)[1 if k == 0 else 0]
        x = x - (x @ normal) * normal
        x = x / np.linalg.norm(x)
        return np.array([x, np.cross(normal, x)])

    def _along_normal(self, axis: Array) -> bool:
        return bool(np.linalg.norm(np.cross(axis, self.normal)) < PARALLEL)

    def _in_plane(self, axis: Array) -> bool:
        return bool(abs(axis @ self.normal) < PARALLEL)

    def _check_joint(self, body: int) -> None:
        node = self.model.nodes[body]
        joint = node.joint
        turning, sliding = self._motion(body)
        name = self.model.joints[body].name
        source = next((j.source for j in self.model.description.joints if j.name == name), NOWHERE)
        if not (
            _is_planar(joint)
            and all(self._along_normal(axis) for axis in turning)
            and all(self._in_plane(way) for way in sliding)
        ):
            raise DescriptionError(
                f"natural coordinates are for planar robots, and joint '{name}' "
                f"({self.model.joints[body].type}) leaves the plane of the others, whose normal is "
                f"{_rounded(self.normal)} at the neutral configuration",
                source,
            )

    # ---- loops

    def _loops_of(self, cluster: Cluster) -> list[_Loop]:
        types = {loop.name: loop.type for loop in self.model.loops}
        sources = {loop.name: loop.source for loop in self.model.description.loops}
        loops = []
        for loop in cluster.geometry.loop_joints:
            branch = loop.branches[0] or loop.branches[1]
            ancestor = self.model.nodes[cluster.bodies[branch[0]]].parent
            ends = (loop.predecessor, loop.successor)
            lengths = [row.length for row in loop.rows if isinstance(row, rows.Distance)]
            first, second = (
                ancestor if end.body == rows.OUTSIDE else cluster.bodies[end.body] for end in ends
            )
            loops.append(
                _Loop(
                    loop.name,
                    types[loop.name],
                    (first, second),
                    (np.array(ends[0].point), np.array(ends[1].point)),
                    (
                        self._turned(first, np.array(ends[0].axes)),
                        self._turned(second, np.array(ends[1].axes)),
                    ),
                    lengths[0] if lengths else 0.0,
                    sources.get(loop.name, NOWHERE),
                )
            )
        return loops

    def _turned(self, body: int, axes: Array) -> Array:
        """Axes (rows) fixed to a body, in the world."""
        return axes if body == WORLD else axes @ self.rotations[body].T

    def _world(self, body: int, place: Array) -> Array:
        if body == WORLD:
            return place
        return self.origins[body] + self.rotations[body] @ place

    def _check_loop(self, m: _Loop) -> None:
        axis, other = m.axes[0][0], m.axes[1][1]
        planar = {
            "revolute": self._along_normal(axis),
            "continuous": self._along_normal(axis),
            "prismatic": self._in_plane(axis),
            "planar": self._along_normal(axis) or self._in_plane(axis),
            "universal": self._along_normal(axis)
            or self._along_normal(other)
            or (self._in_plane(axis) and self._in_plane(other)),
        }
        if not planar.get(m.type, True):
            raise DescriptionError(
                f"natural coordinates are for planar robots, and loop '{m.name}' ({m.type}) does "
                f"not lie in the plane, whose normal is {_rounded(self.normal)}",
                m.source,
            )

    def _locks(self, m: _Loop) -> bool:
        """True if the loop keeps the angle between its two ends."""
        axis, other = m.axes[0][0], m.axes[1][1]
        return (
            m.type in ("fixed", "prismatic")
            or (m.type == "planar" and self._in_plane(axis))
            or (m.type == "universal" and self._in_plane(axis) and self._in_plane(other))
        )

    def _loop(self, m: _Loop) -> list[Constraint]:
        """The constraints of a loop in addition to a shared point."""
        constraints: list[Constraint] = []
        (first, second), axis = m.bodies, m.axes[0][0]
        if self._locks(m):
            constraints.append(self._fixed_angle(second, first))
        if m.type == "prismatic" or (m.type == "planar" and self._in_plane(axis)):
            along = np.arctan2(*(self.flat(axis)[::-1]))
            across = along + math.pi / 2 if m.type == "prismatic" else along
            constraints.append(self._guide(first, self._pivot_of(m, 1), m, across))
        if m.type == "rod":
            apart = self._world(second, m.places[1]) - self._world(first, m.places[0])
            length = math.sqrt(m.length**2 - float(apart @ self.normal) ** 2)
            constraints.append(Distance(self._pivot_of(m, 0), self._pivot_of(m, 1), length))
        return constraints

    def _pivot_of(self, m: _Loop, end: int) -> str:
        """The name of a loop's end as a point; the same for both ends if the loop pins them."""
        return m.name if m.type in PINS or end == 0 else f"{m.name}'"

    def _guide(self, first: int, point: str, m: _Loop, across: float) -> Travel:
        """The successor's point lies on the guide through the predecessor's."""
        origin, far, length, angle = self._line(first)
        start = self.flat(self._world(first, m.places[0])) - self._place(first)
        direction = np.array([math.cos(across), math.sin(across)])
        return Travel(point, origin, far, length, across - angle, float(start @ direction))

    # ---- points

    def _choose_points(self) -> None:
        for body in range(len(self.model.nodes)):
            here = self.pivots[body]
            candidates = [(name, at) for name, at, _ in self._shared_points(body)]
            name, at = max(
                candidates, key=lambda c: float(np.linalg.norm(c[1] - here)), default=("", here)
            )
            radius = self._radius_of_gyration(body)
            if np.linalg.norm(at - here) < 0.1 * radius:
                name, at = f"{self.model.nodes[body].name}'", here + np.array([radius, 0.0])
            self.seconds.append((name, at))
        for body, node in enumerate(self.model.nodes):
            if node.parent == WORLD and node.joint.nv == 1 and any(node.joint.subspace[0].angular):
                self.fixed[self.model.joints[body].name] = self.pivots[body]
        for m in self.loops:
            for end, body in enumerate(m.bodies):
                if body == WORLD:
                    name = self._pivot_of(m, end)
                    self.fixed[name] = self.flat(m.places[end])

    def _radius_of_gyration(self, body: int) -> float:
        """About the body's pivot [m]; 1 without mass or inertia."""
        inertia = self.model.nodes[body].inertia
        axis = self.rotations[body].T @ self.normal
        about = float(axis @ np.array(inertia.inertia) @ axis)
        mass = value_of(inertia.mass)
        return math.sqrt(about / mass) if mass > 0 and about > 0 else 1.0

    def _shared_points(self, body: int) -> list[tuple[str, Array, Array]]:
        """Pivots of joints and loops on a body: names, positions in the plane and on the body."""
        shared = []
        for child, node in enumerate(self.model.nodes):
            if node.parent == body and any(node.joint.subspace[0].angular) and node.joint.nv == 1:
                place = self.rotations[body].T @ (self.origins[child] - self.origins[body])
                shared.append((self.model.joints[child].name, self.pivots[child], place))
        for m in self.loops:
            for end, at in enumerate(m.bodies):
                if at == body and m.type in (*PINS, "rod", "prismatic", "planar"):
                    flat = self.flat(self._world(body, m.places[end]))
                    shared.append((self._pivot_of(m, end), flat, m.places[end]))
        return shared

    def _free_points(self) -> dict[str, tuple[int, Array]]:
        """Points that are coordinates: second points, and first points of sliding joints."""
        free: dict[str, tuple[int, Array]] = {}
        for body, node in enumerate(self.model.nodes):
            name = self.model.joints[body].name
            if node.joint.nv > 1 or not any(node.joint.subspace[0].angular):
                free[name] = (body, np.zeros(3))
            name, at = self.seconds[body]
            if name not in self.fixed:
                apart = np.append(at - self.pivots[body], 0.0)
                back = self.rotations[body].T @ np.column_stack([*self.axes, self.normal])
                free.setdefault(name, (body, back @ apart))
        return free

    def _body(self, body: int) -> Body:
        node = self.model.nodes[body]
        first, (second, _) = self.model.joints[body].name, self.seconds[body]
        turn, length = self._body_axes(body)
        inertia = node.inertia
        com = np.zeros(3) if value_of(inertia.mass) == 0.0 else np.array(inertia.h) / inertia.mass
        flat = turn @ self.flat(self.rotations[body] @ com)
        axis = self.rotations[body].T @ self.normal
        about = float(axis @ np.array(inertia.inertia) @ axis) - inertia.mass * float(flat @ flat)
        return Body(
            node.name,
            first,
            second,
            length,
            value_of(inertia.mass),
            _pair(flat),
            value_of(about),
            {
                name: _pair(turn @ (place - self.pivots[body]))
                for name, place, _ in self._shared_points(body)
                if name != second
            },
        )

    def _body_axes(self, body: int) -> tuple[Array, float]:
        """The matrix from the plane's axes to the body's, and its length."""
        along = self.seconds[body][1] - self.pivots[body]
        length = float(np.linalg.norm(along))
        x, y = along / length
        return np.array([[x, y], [-y, x]]), length

    def _line(self, body: int) -> tuple[str, str, float, float]:
        """A body's two points, their distance, and their direction at the neutral configuration."""
        if body == WORLD:
            return (*GROUND, 1.0, 0.0)
        second, at = self.seconds[body]
        x, y = at - self.pivots[body]
        return self.model.joints[body].name, second, math.hypot(x, y), math.atan2(y, x)

    def _place(self, body: int) -> Array:
        """The position of a body's first point at the neutral configuration."""
        return np.zeros(2) if body == WORLD else self.pivots[body]

    # ---- joints

    def _coordinates_of(self, body: int) -> tuple[str, ...]:
        """A joint's coordinates; empty unless it is independent, coupled, or has an armature."""
        node, joint = self.model.nodes[body], self.model.joints[body]
        cluster = self.model.clusters[node.cluster]
        independent = {cluster.spanning_v.start + c for c in cluster.columns}
        coupled = any(joint.name == name for c in self.model.couplings for name, _ in c.terms)
        if not (coupled or node.armature or independent & set(node.freedoms)):
            return ()
        if node.joint.nv == 1:
            return (joint.name,)
        return tuple(f"{joint.name}.{i}" for i in range(node.joint.nv))

    def _joint(self, body: int, names: Sequence[str]) -> list[Constraint]:
        """The constraints of a joint besides a shared pivot, and those of its coordinates."""
        node = self.model.nodes[body]
        joint, parent = node.joint, node.parent
        turning, sliding = self._motion(body)
        name, start = self.model.joints[body].name, self.positions[node.q : node.q + joint.nq]
        if joint.nv == 1 and turning:
            return [self._angle(names[0], body, turning[0], start[0])] if names else []
        origin, far, length, base = self._line(parent)
        apart = self.pivots[body] - self._place(parent)

        def travel(way: Array, coordinate: str | None, at: float) -> Travel:
            direction = math.atan2(way[1], way[0])
            offset = float(apart @ way) - at
            return Travel(name, origin, far, length, direction - base, offset, coordinate)

        if joint.nv == 1:
            way = self.flat(sliding[0])
            constraints: list[Constraint] = [
                self._fixed_angle(body, parent),
                travel(np.array([-way[1], way[0]]), None, 0.0),
            ]
            if names:
                constraints.append(travel(way, names[0], start[0]))
            return constraints
        if not names:
            return []
        c, s = math.cos(start[2]), math.sin(start[2])  # sliding is along the child's axes
        x, y = (self.flat(way) for way in sliding)
        return [
            travel(c * x - s * y, names[0], start[0]),
            travel(s * x + c * y, names[1], start[1]),
            self._angle(names[2], body, turning[0], start[2]),
        ]

    def _angle(self, coordinate: str, body: int, axis: Array, start: float) -> Angle:
        """A joint's angle as a coordinate, turning about the plane's normal or against it."""
        parent = self.model.nodes[body].parent
        first, second, length, angle = self._line(body)
        origin, far, to_length, base = self._line(parent)
        rate = 1.0 if axis @ self.normal > 0 else -1.0
        return Angle(
            coordinate,
            (first, second),
            length,
            None if parent == WORLD else (origin, far),
            to_length,
            rate,
            angle - base - rate * start,
        )

    def _fixed_angle(self, body: int, other: int) -> FixedAngle:
        """Two bodies keep their angle at the neutral configuration."""
        first, second, _, angle = self._line(body)
        origin, far, _, base = self._line(other)
        return FixedAngle((first, second), (origin, far), angle - base)


def _is_planar(joint: JointModel) -> bool:
    """A revolute, prismatic or planar joint: no screw, ball, or floating base."""
    motions = joint.subspace
    if len(motions) == 1:
        return any(motions[0].angular) != any(motions[0].linear)
    return len(motions) == 3 and any(motions[0].linear)


def _rounded(normal: Array) -> str:
    return "(" + ", ".join(f"{x + 0.0:.4g}" for x in normal) + ")"


def _pair(place: Array) -> Point:
    return float(place[0]), float(place[1])
