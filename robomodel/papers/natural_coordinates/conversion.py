"""Conversion of planar robots to natural coordinates: points, bodies, joints and loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.dynamics.kinematics.state import State
from robomodel.errors import NOWHERE, DescriptionError, Source
from robomodel.model import constraints as rows
from robomodel.model.elements import Cluster
from robomodel.model.graph import WORLD
from robomodel.model.joints import Array, JointModel
from robomodel.model.model import Model
from robomodel.papers.natural_coordinates.constraints import (
    Angle,
    Constraint,
    Distance,
    FixedAngle,
    Linear,
    Travel,
)
from robomodel.papers.natural_coordinates.mechanism import Body, Mechanism
from robomodel.papers.natural_coordinates.robot import NaturalRobot, poses

PARALLEL = 1e-7  # sine of an angle below which directions are parallel


GROUND = ("world", "world'")  # fixed at the origin, and one metre along x


def natural(model: Model) -> NaturalRobot:
    """A planar robot in natural coordinates.

    Each body has two points: its joint's pivot and, if it has any, its farthest other pivot, which
    it shares with the body that turns there; pivots beside these are fixed to it. Coordinates are
    those of the free points, and the positions of joints that are independent, coupled, or have an
    armature. Raises :class:`robomodel.DescriptionError` for robots that are not planar, naming the
    joint or loop: axes of rotation must be parallel, and directions of sliding normal to them.
    """
    return _Conversion(model).result()


@dataclass(frozen=True)
class _Meeting:
    """A loop, as its type and its two ends: bodies (or WORLD) with places and axes (rows) there."""

    name: str
    type: str
    bodies: tuple[int, int]
    places: tuple[Array, Array]
    axes: tuple[Array, Array]
    length: float
    source: Source


class _Conversion:
    """What converting needs to know of the robot at its neutral configuration."""

    def __init__(self, model: Model) -> None:
        self.model = model
        state = State(model, model.neutral().tolist(), range(len(model.nodes)), [0.0] * model.nv)
        self.positions = np.array(state.positions)
        self.rotations, self.origins = poses(state, ())
        self.meetings = [m for c in model.clusters for m in self._meetings(c)]
        self.axes = self._plane()
        self.normal = np.cross(*self.axes)
        self.pivots = [self.flat(origin) for origin in self.origins]
        self.seconds: list[tuple[str, Array]] = []  # name and place of each body's second point
        self.fixed = {GROUND[0]: np.zeros(2), GROUND[1]: np.array([1.0, 0.0])}

    def result(self) -> NaturalRobot:
        for body in range(len(self.model.nodes)):
            self._check_joint(body)
        for meeting in self.meetings:
            self._check_loop(meeting)
        self._choose_points()
        found: list[Constraint] = []
        joints: dict[str, int] = {}
        armatures: dict[str, float] = {}
        for body in range(len(self.model.nodes)):
            names = self._coordinates_of(body)
            node = self.model.nodes[body]
            found += self._joint(body, names)
            joints |= {name: node.q + i for i, name in enumerate(names)}
            if node.armature:
                armatures |= dict.fromkeys(names, node.armature)
        for meeting in self.meetings:
            found += self._loop(meeting)
        for c in self.model.couplings:
            if c.coefficients:
                sources = {each.name: each.source for each in self.model.description.couplings}
                raise DescriptionError(
                    "is a polynomial, which natural coordinates here do not have; use a graph in "
                    "joint coordinates",
                    sources[c.name],
                )
            found.append(Linear(f"coupling {c.name}", c.terms, c.offset))
        points: dict[str, tuple[float, float] | None] = {}
        for name, at in self.fixed.items():
            points[name] = (float(at[0]), float(at[1]))
        free = self._free_points()
        points |= dict.fromkeys(free)
        gravity = self.axes @ self.model.gravity
        order = {name: i for i, name in enumerate(added for c in found for added in c.added)}
        mechanism = Mechanism(
            points,
            tuple(self._body(body) for body in range(len(self.model.nodes))),
            tuple(found),
            (float(gravity[0]), float(gravity[1])),
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
        return NaturalRobot(
            self.model, mechanism.regular(at), self.axes, robot.points, robot.joints
        )

    # ---- the plane

    def flat(self, place: Array) -> Array:
        """A place in the world, in the plane's axes."""
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
        """The plane's axes, as near to the world's as can be: (x, y), (x, z) or (y, z)."""
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
                f"{_told(self.normal)} at the neutral configuration",
                source,
            )

    # ---- loops

    def _meetings(self, cluster: Cluster) -> list[_Meeting]:
        types = {loop.name: loop.type for loop in self.model.loops}
        sources = {loop.name: loop.source for loop in self.model.description.loops}
        found = []
        for loop in cluster.geometry.loop_joints:
            branch = loop.branches[0] or loop.branches[1]
            ancestor = self.model.nodes[cluster.bodies[branch[0]]].parent
            ends = (loop.predecessor, loop.successor)
            lengths = [row.length for row in loop.rows if isinstance(row, rows.Distance)]
            first, second = (
                ancestor if end.body == rows.OUTSIDE else cluster.bodies[end.body] for end in ends
            )
            found.append(
                _Meeting(
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
        return found

    def _turned(self, body: int, axes: Array) -> Array:
        """Axes (rows) fixed to a body, in the world."""
        return axes if body == WORLD else axes @ self.rotations[body].T

    def _world(self, body: int, place: Array) -> Array:
        if body == WORLD:
            return place
        return self.origins[body] + self.rotations[body] @ place

    def _check_loop(self, m: _Meeting) -> None:
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
                f"not lie in the plane, whose normal is {_told(self.normal)}",
                m.source,
            )

    def _pins(self, m: _Meeting) -> bool:
        """Whether the loop makes one point of its two ends."""
        return m.type in _PINS

    def _locks(self, m: _Meeting) -> bool:
        """Whether the loop keeps the angle between its two ends."""
        axis, other = m.axes[0][0], m.axes[1][1]
        return (
            m.type in ("fixed", "prismatic")
            or (m.type == "planar" and self._in_plane(axis))
            or (m.type == "universal" and self._in_plane(axis) and self._in_plane(other))
        )

    def _loop(self, m: _Meeting) -> list[Constraint]:
        """What beside a shared point the loop asks for."""
        found: list[Constraint] = []
        (first, second), axis = m.bodies, m.axes[0][0]
        if self._locks(m):
            found.append(self._fixed_angle(second, first))
        if m.type == "prismatic" or (m.type == "planar" and self._in_plane(axis)):
            along = np.arctan2(*(self.flat(axis)[::-1]))
            across = along + math.pi / 2 if m.type == "prismatic" else along
            found.append(self._guide(first, second, self._pivot_of(m, 1), m, across))
        if m.type == "rod":
            apart = self._world(second, m.places[1]) - self._world(first, m.places[0])
            length = math.sqrt(m.length**2 - float(apart @ self.normal) ** 2)
            found.append(Distance(self._pivot_of(m, 0), self._pivot_of(m, 1), length))
        return found

    def _pivot_of(self, m: _Meeting, end: int) -> str:
        """The name of a loop's end as a point; one name where the loop pins them."""
        return m.name if self._pins(m) or end == 0 else f"{m.name}'"

    def _guide(self, first: int, second: int, point: str, m: _Meeting, across: float) -> Travel:
        """The successor's point has no travel across the guide through the predecessor's."""
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
            own = self._radius(body)
            if np.linalg.norm(at - here) < 0.1 * own:
                name, at = f"{self.model.nodes[body].name}'", here + np.array([own, 0.0])
            self.seconds.append((name, at))
        for body, node in enumerate(self.model.nodes):
            if node.parent == WORLD and node.joint.nv == 1 and any(node.joint.subspace[0].angular):
                self.fixed[self.model.joints[body].name] = self.pivots[body]
        for m in self.meetings:
            for end, body in enumerate(m.bodies):
                if body == WORLD:
                    name = self._pivot_of(m, end)
                    self.fixed[name] = self.flat(m.places[end])

    def _radius(self, body: int) -> float:
        """A body's radius of gyration about its pivot, as a length of its own."""
        inertia = self.model.nodes[body].inertia
        axis = self.rotations[body].T @ self.normal
        about = float(axis @ np.array(inertia.inertia) @ axis)
        return math.sqrt(about / inertia.mass) if inertia.mass > 0 and about > 0 else 1.0

    def _shared_points(self, body: int) -> list[tuple[str, Array, Array]]:
        """Pivots of what turns on a body, loops' included: names, places flat, places on it."""
        found = []
        for child, node in enumerate(self.model.nodes):
            if node.parent == body and any(node.joint.subspace[0].angular) and node.joint.nv == 1:
                place = self.rotations[body].T @ (self.origins[child] - self.origins[body])
                found.append((self.model.joints[child].name, self.pivots[child], place))
        for m in self.meetings:
            for end, at in enumerate(m.bodies):
                if at == body and m.type in (*_PINS, "rod", "prismatic", "planar"):
                    flat = self.flat(self._world(body, m.places[end]))
                    found.append((self._pivot_of(m, end), flat, m.places[end]))
        return found

    def _free_points(self) -> dict[str, tuple[int, Array]]:
        """Points that are coordinates: second ones, and first ones of joints that slide."""
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
        turn, length = self._own_axes(body)
        inertia = node.inertia
        com = np.zeros(3) if inertia.mass == 0 else np.array(inertia.h) / inertia.mass
        flat = turn @ self.flat(self.rotations[body] @ com)
        axis = self.rotations[body].T @ self.normal
        about = float(axis @ np.array(inertia.inertia) @ axis) - inertia.mass * float(flat @ flat)
        return Body(
            node.name,
            first,
            second,
            length,
            float(inertia.mass),
            (float(flat[0]), float(flat[1])),
            about,
            {
                name: (float(at[0]), float(at[1]))
                for name, place, _ in self._shared_points(body)
                if name != second
                for at in [turn @ (place - self.pivots[body])]
            },
        )

    def _own_axes(self, body: int) -> tuple[Array, float]:
        """The matrix from the plane's axes to the body's own, and its length."""
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
        """Where a body's first point is at the neutral configuration."""
        return np.zeros(2) if body == WORLD else self.pivots[body]

    # ---- joints

    def _coordinates_of(self, body: int) -> tuple[str, ...]:
        """The coordinates that a joint has: none where nobody asks for its position."""
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
        """What a joint asks for beside a shared pivot, and its coordinates."""
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
            found: list[Constraint] = [
                self._fixed_angle(body, parent),
                travel(np.array([-way[1], way[0]]), None, 0.0),
            ]
            if names:
                found.append(travel(way, names[0], start[0]))
            return found
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
        """Two bodies keep the angle that they have at the neutral configuration."""
        first, second, _, angle = self._line(body)
        origin, far, _, base = self._line(other)
        return FixedAngle((first, second), (origin, far), angle - base)


_PINS = ("revolute", "continuous", "spherical", "universal", "fixed")


def _is_planar(joint: JointModel) -> bool:
    """A revolute, prismatic or planar joint: no screw, ball, or floating base."""
    motions = joint.subspace
    if len(motions) == 1:
        return any(motions[0].angular) != any(motions[0].linear)
    return len(motions) == 3 and any(motions[0].linear)


def _told(normal: Array) -> str:
    return "(" + ", ".join(f"{x + 0.0:.4g}" for x in normal) + ")"
