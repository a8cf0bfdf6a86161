"""The same robot with its bodies' axes where transforms between them are cheap: common normals.

A body that turns about, or slides along, an axis may have its internal origin anywhere on that axis
and its internal axes turned about it: its joint moves the same. So origins go to the feet of the
common normals of neighbouring joints' axes, and a body's axes turn towards the normal that leads on
to what it carries (Denavit and Hartenberg, 1955), where that makes fewer elementary rotations and
fewer numbers of offsets and inertias. What remains of a rotation about a child's own axis goes into
its joint's angle.

Bodies of clusters with loops, and those that carry them, stay as they are, with their loops'
geometry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from robomodel.model.elements import Frame, Node
from robomodel.model.graph import WORLD
from robomodel.model.joints import Array, Prismatic, Revolute, Screw
from robomodel.model.model import Model
from robomodel.model.springs import End
from robomodel.model.variants.regroup import regrouped
from robomodel.spatial import ZERO, Mat, RigidInertia, Rotation, Transform, Vec, about_axis, factor

ROUNDING = 1e-13  # beside the robot's offsets, an inertia's largest number, or 1, in sines
TURN = 3  # what an elementary rotation costs beside a number of an offset or an inertia


def on_common_normals(model: Model) -> Model:
    """A model of the same robot with other internal axes; the model itself where none are better.

    Bodies, joints, coordinates and links keep their numbers and meaning.
    """
    frames = _Frames(model)
    for body in (WORLD, *range(len(model.nodes))):
        for child in frames.children[body]:
            frames.shift(child)
        frames.turn(body)
    return frames.model_in_them()


@dataclass
class _Frames:
    """Where joints stand, while the frames of bodies are moved one by one, parents first.

    ``rotation`` and ``offset`` place each joint on its parent; ``shifts`` and ``turns`` are how far
    a body's frame has moved along its joint's axis, and then turned about it. ``rest`` are the
    inertias that regrouping leaves, in the frames that the model has.
    """

    model: Model
    rotation: list[Array] = field(init=False)
    offset: list[Array] = field(init=False)
    rest: list[RigidInertia] = field(init=False)
    shifts: list[float] = field(init=False)
    turns: list[float] = field(init=False)
    movable: list[bool] = field(init=False)
    children: dict[int, list[int]] = field(init=False)
    size: list[int] = field(init=False)
    tiny: float = field(init=False)

    def __post_init__(self) -> None:
        nodes = self.model.nodes
        self.rotation = [np.array(Transform(node.rotations, ZERO).matrix()) for node in nodes]
        self.offset = [np.array(node.offset) for node in nodes]
        self.tiny = ROUNDING * max((abs(x) for node in nodes for x in node.offset), default=0.0)
        self.rest = [node.inertia for node in regrouped(self.model, spread=True).nodes]
        self.shifts, self.turns = [0.0] * len(nodes), [0.0] * len(nodes)
        fixed = {
            body
            for cluster in self.model.clusters
            if cluster.implicit
            for body in (*cluster.bodies, *cluster.outputs)
        }
        self.movable = [
            body not in fixed and self._axis(body) is not None for body in range(len(nodes))
        ]
        self.children = {body: [] for body in (WORLD, *range(len(nodes)))}
        for body, node in enumerate(nodes):
            self.children[node.parent].append(body)
        self.size = [2] * len(nodes)
        for body in reversed(range(len(nodes))):
            if (parent := nodes[body].parent) != WORLD:
                self.size[parent] += self.size[body]

    def _axis(self, body: int) -> int | None:
        """The axis of a joint that has but one."""
        if body == WORLD:
            return None
        joint = self.model.nodes[body].joint
        return joint.k if isinstance(joint, Revolute | Prismatic | Screw) else None

    def _direction(self, body: int) -> Array:
        """The joint's axis in the parent."""
        axis = self._axis(body)
        assert axis is not None
        return self.rotation[body][:, axis]

    def shift(self, body: int) -> None:
        """Move a body's origin along its axis, towards its neighbours' axes."""
        node = self.model.nodes[body]
        if not self.movable[body] or node.spins:
            return
        along, at = self._direction(body), self.offset[body]
        above = self._axis(node.parent)
        choices = [0.0, -float(along @ at)]
        basis: Array = np.eye(3)
        if above is not None:
            axis = basis[above]
            choices.append(_foot(at, along, axis))
            if _steps(along)[1] and not _parallel(along, axis):  # the parent's axes may turn
                normal = np.cross(axis, along) / np.linalg.norm(np.cross(axis, along))
                basis = np.array([normal, np.cross(axis, normal), axis])
        own = np.eye(3)[self._axis(body)]
        carried = [child for child in self.children[body] if self._axis(child) is not None]
        onwards = []  # where normals to the axes of what it carries leave its own
        for child in carried:
            leads, there = self._direction(child), self.offset[child]
            if not _parallel(own, leads):
                foot = float(own @ (there + _foot(there, leads, own) * leads))
                onwards.append((foot, self.size[child]))

        def cost(shift: float) -> int:
            total = _kept(self.rest[body], Transform((), _row(-shift * own)))
            if node.parent != WORLD:
                total += self.size[body] * self._numbers(basis @ (at + shift * along))
            return total + sum(size for x, size in onwards if abs(x - shift) > self.tiny)

        choices += [x for x, _ in onwards]
        self.shifts[body] = shift = min(choices, key=lambda x: (cost(x), abs(x)))
        self.offset[body] = at + shift * along
        for child in self.children[body]:
            self.offset[child] = self.offset[child] - shift * own

    def turn(self, body: int) -> None:
        """Turn a body's axes about its joint's, towards the normals to what it carries."""
        axis = self._axis(body)
        if axis is None or not self.movable[body]:
            return
        if self.model.nodes[body].spins:  # it looks the same from everywhere
            self.turns[body] = -_factored(self.rotation[body], axis)[1]
            return
        own, children = np.eye(3)[axis], self.children[body]
        first, second = np.eye(3)[(axis + 1) % 3], np.eye(3)[(axis + 2) % 3]
        h = np.array(self.rest[body].h)
        towards = [h - (h @ own) * own]
        for child in children:
            if self._axis(child) is not None:
                normal = np.cross(own, self._direction(child))
                if _parallel(own, self._direction(child)):
                    normal = self.offset[child] - (self.offset[child] @ own) * own
                towards.append(normal)
        quarter = math.pi / 2
        choices = [0.0]
        for x in towards:
            if np.any(x):
                angle = math.atan2(float(x @ second), float(x @ first))
                choices.append((angle + quarter / 2) % quarter - quarter / 2)

        def cost(angle: float) -> int:
            back = _about(axis, -angle)
            total = _kept(self.rest[body], self._back(body, angle))
            for child in children:
                k = self._axis(child)
                turned = back @ self.rotation[child]
                steps = factor(_mat(turned)) if k is None else _steps(turned[:, k])[1]
                total += TURN * self.size[child] * len(steps)
                if not self.model.nodes[child].spins:
                    total += self.size[child] * self._numbers(back @ self.offset[child])
            return total + (angle != 0.0)

        self.turns[body] = angle = min(choices, key=lambda x: (cost(x), abs(x)))
        back = _about(axis, -angle)
        for child in children:
            self.rotation[child] = back @ self.rotation[child]
            self.offset[child] = back @ self.offset[child]

    def model_in_them(self) -> Model:
        """The model in these frames."""
        places = [self._place(body) for body in range(len(self.model.nodes))]
        if all(place is None for place in places):
            return self.model

        def moved(frame: Frame) -> Frame:
            back = None if frame.body == WORLD else places[frame.body]
            if back is None:
                return frame
            rotations = (*frame.pose.rotations, *back.rotations)
            return replace(frame, pose=Transform(rotations, back.point(frame.pose.offset)))

        def end(at: End) -> End:
            back = None if at.body == WORLD else places[at.body]
            if back is None:
                return at
            axes = tuple(back.rotate(axis) for axis in at.frame)
            return replace(at, point=back.point(at.point), frame=(axes[0], axes[1], axes[2]))

        return replace(
            self.model,
            nodes=tuple(self._node(body, place) for body, place in enumerate(places)),
            frames=tuple(moved(frame) for frame in self.model.frames),
            springs=tuple(
                spring
                if spring.ends is None
                else replace(spring, ends=(end(spring.ends[0]), end(spring.ends[1])))
                for spring in self.model.springs
            ),
        )

    def _place(self, body: int) -> Transform | None:
        """The body's old frame in its new one; None where they are the same."""
        if self.shifts[body] == 0.0 and self.turns[body] == 0.0:
            return None
        return self._back(body, self.turns[body])

    def _back(self, body: int, turn: float) -> Transform:
        """The body's old frame in the one that is shifted, and turned by an angle."""
        axis = self._axis(body)
        assert axis is not None
        back = (about_axis(axis, -turn),) if turn else ()
        return Transform(back, _row(-self.shifts[body] * np.eye(3)[axis]))

    def _numbers(self, offset: Array) -> int:
        """How many numbers of an offset are not zero."""
        return int(np.count_nonzero(np.abs(offset) > self.tiny))

    def _node(self, body: int, place: Transform | None) -> Node:
        node, axis = self.model.nodes[body], self._axis(body)
        rotation, at = self.rotation[body], self.offset[body]
        offset = _row(np.where(np.abs(at) > self.tiny, at, 0.0))
        if axis is None or not self.movable[body]:
            unmoved = node.parent == WORLD or self._place(node.parent) is None
            rotations = factor(_mat(rotation))
            if unmoved and len(rotations) >= len(node.rotations):
                return node  # what factors say is exact to fewer digits than what the file says
            return replace(node, rotations=rotations, offset=offset)
        rotations, angle = _factored(rotation @ _about(axis, self.turns[body]), axis)
        joint = node.joint
        if angle and isinstance(joint, Revolute) and not node.spins:
            joint = Revolute(axis, angle)
        elif angle:
            rotations = (about_axis(axis, angle), *rotations)
        if place is None:
            return replace(node, joint=joint, rotations=rotations, offset=offset)
        turned = np.array(node.axes) @ _about(axis, self.turns[body])
        return replace(
            node,
            joint=joint,
            rotations=rotations,
            offset=offset,
            axes=_mat(turned),
            inertia=_cleared(node.inertia.in_parent(place)),
        )


def _foot(point: Array, along: Array, axis: Array) -> float:
    """How far along a line through a point its common normal with an axis at the origin is.

    Of a parallel line: the point beside the origin.
    """
    cosine = float(along @ axis)
    if _parallel(along, axis):
        return -float(point @ axis) / cosine
    return -float(point @ (along - cosine * axis)) / (1.0 - cosine * cosine)


def _parallel(a: Array, b: Array) -> bool:
    return bool(np.linalg.norm(np.cross(a, b)) <= 1e-9)


def _about(k: int, angle: float) -> Array:
    return np.array(Transform((about_axis(k, angle),), ZERO).matrix())


def _kept(inertia: RigidInertia, x: Transform) -> int:
    """How many parameters an inertia has in other axes, its mass apart."""
    there = _cleared(inertia.in_parent(x))
    moments: Array = np.triu(np.array(there.second_moments))
    return int(np.count_nonzero(there.h) + np.count_nonzero(moments))


def _cleared(inertia: RigidInertia) -> RigidInertia:
    """The inertia with zeros for what is rounding beside its largest numbers."""

    def clear(x: Array) -> Array:
        return np.where(np.abs(x) <= ROUNDING * np.max(np.abs(x)), 0.0, x)

    a, b, c = clear(np.array(inertia.inertia))
    return RigidInertia(inertia.mass, _row(clear(np.array(inertia.h))), (_row(a), _row(b), _row(c)))


def _row(x: Array) -> Vec:
    """Three floats, no zero with a sign."""
    a, b, c = (x + 0.0).tolist()
    return a, b, c


# ---- rotations -----------------------------------------------------------------------------------


def _factored(rotation: Array, axis: int) -> tuple[tuple[Rotation, ...], float]:
    """A rotation as one about the child's axis, by the angle returned, and then as few as can be.

    Of the others the child's first.
    """
    base, steps = _steps(rotation[:, axis])
    rest = rotation
    for k, angle in reversed(steps):
        rest = _about(k, -angle) @ rest
    # axes onto axes: the way of laying them that leaves the least angle
    sides = [side for side in (*np.eye(3), *-np.eye(3)) if abs(side @ base) < 0.5]
    best = max(sides, key=lambda side: float(side @ rest[:, (axis + 1) % 3]))
    laid = np.empty((3, 3))
    laid[:, axis], laid[:, (axis + 1) % 3] = base, best
    laid[:, (axis + 2) % 3] = np.cross(base, best)
    left = laid.T @ rest
    angle = math.atan2(left[(axis + 2) % 3, (axis + 1) % 3], left[(axis + 1) % 3, (axis + 1) % 3])
    rotations = (*factor(_mat(laid)), *(about_axis(k, angle) for k, angle in steps))
    return rotations, angle if abs(angle) > ROUNDING else 0.0


def _steps(direction: Array) -> tuple[Array, list[tuple[int, float]]]:
    """A coordinate axis, and the fewest rotations about coordinate axes that bring it there."""
    size = np.where(np.abs(direction) > ROUNDING, np.abs(direction), 0.0)
    if np.count_nonzero(size) == 1:
        return np.sign(direction) * (size > 0.0), []
    # about the axis of the smallest part, onto the plane of the other two, or to an axis
    k = int(np.argmin(size))
    i, j = (k + 1) % 3, (k + 2) % 3
    onto = i if size[i] >= size[j] else j
    flat = np.where(np.arange(3) == k, np.where(size > 0.0, direction, 0.0), 0.0)
    flat[onto] = math.copysign(math.hypot(direction[i], direction[j]), direction[onto])
    sine = flat[i] * direction[j] - flat[j] * direction[i]
    cosine = flat[i] * direction[i] + flat[j] * direction[j]
    base, before = _steps(flat)
    return base, [*before, (k, math.atan2(sine, cosine))]


def _mat(x: Array) -> Mat:
    """Rows of a rotation; what is 0 or ±1 but for rounding is exactly that."""
    whole = np.round(x)
    a, b, c = np.where(np.abs(x - whole) <= ROUNDING, whole, x)
    return _row(a), _row(b), _row(c)
