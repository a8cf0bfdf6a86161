"""Open trees that approximate a robot: the coordinates that they share, and forces on them.

A tree has whole joints of the robot, with their exact positions and velocities q̇_k = G_k v and
q̈_k = G_k a + g_k.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from robomodel.description.poses import compose, inverse
from robomodel.dynamics.kinematics.frames import FramePlacement
from robomodel.dynamics.kinematics.state import Configuration, Forces, State
from robomodel.mechanism.graph import WORLD
from robomodel.model.elements import independent_rates, joint_slices
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, dot, gram, solve, transposed
from robomodel.spatial import NO_WRENCH, ZERO, Transform, Wrench, factor


@dataclass(frozen=True, slots=True)
class TreeMap:
    """An open tree that stands for a robot.

    ``positions`` and ``velocities`` are indices into the robot's spanning coordinates, in the
    tree's order; ``parts`` are the tree's velocities by the robot's clusters. ``places`` has the
    placement in the tree of each of the robot's bodies that the tree does not leave out.
    """

    model: Model
    positions: Sequence[int]
    velocities: Sequence[int]
    parts: tuple[tuple[int, ...], ...]
    places: Mapping[int, FramePlacement]
    method: str

    def place(self, model: Model, body: int) -> FramePlacement:
        """The placement of a body of the robot; raises ValueError if the tree leaves it out."""
        if body == WORLD:
            return FramePlacement(WORLD, Transform((), ZERO))
        if body not in self.places:
            raise ValueError(
                f"method '{self.method}' leaves out the body '{model.bodies[body].name}' of "
                f"'{model.name}', so nothing can act on it; use an exact method"
            )
        return self.places[body]

    def frames(self, model: Model, places: Sequence[FramePlacement]) -> list[FramePlacement]:
        """Frames of the robot as frames of the tree."""
        frames = []
        for frame in places:
            place = self.place(model, frame.body)
            rotations = (*frame.pose.rotations, *place.pose.rotations)
            pose = Transform(rotations, place.pose.point(frame.pose.offset))
            frames.append(FramePlacement(place.body, pose))
        return frames

    def wrenches(self, model: Model, f_ext: Forces) -> dict[int, Wrench]:
        """Wrenches on the robot's bodies as wrenches on the tree's."""
        result: dict[int, Wrench] = {}
        for body, wrench in f_ext.items():
            place = self.place(model, body)
            if place.body != WORLD:
                total = result.get(place.body, NO_WRENCH)
                result[place.body] = total + place.pose.to_parent(wrench)
        return result

    def motion(self, state: State) -> tuple[list[Scalar], list[Scalar]]:
        """Positions and velocities of the tree's joints, q_k and G_k v."""
        q, v = state.positions, state.velocities
        return [q[i] for i in self.positions], [v[r] for r in self.velocities]

    def forces(self, state: Configuration, tau: Vector) -> list[Scalar]:
        """Forces G_k⁻ᵀ tau on the tree's joints; those nearest to it where spins are locked."""
        forces: list[Scalar] = [0.0] * len(self.velocities)
        for cluster, part in zip(state.model.clusters, self.parts, strict=True):
            rows = [state.rows[self.velocities[i]] for i in part]
            matrix, right = transposed(rows), tau[cluster.v]
            if len(part) < cluster.nv:
                matrix, right = gram(rows, rows), [dot(row, right) for row in rows]
            for i, force in zip(part, solved(matrix, right), strict=True):
                forces[i] = force
        return forces


def mapped(model: Model, tree: Model, method: str, dropped: Collection[int]) -> TreeMap:
    """The open tree ``tree``, whose joints are joints of the model.

    Its independent joints count, if it has loops in part. ``dropped``: bodies that it leaves out.
    """
    body_of = {joint.name: body for body, joint in enumerate(model.joints)}
    bodies: dict[int, int] = {}
    columns: dict[int, int] = {}  # of the robot's spanning velocities, by the tree's independent
    for cluster in tree.clusters:
        for n, _, along in joint_slices(tree, cluster):
            bodies[n] = body_of[tree.joints[n].name]
            rates = independent_rates(cluster, along)
            pairs = zip(rates, model.nodes[bodies[n]].freedoms, strict=True)
            columns |= {i: v for i, v in pairs if i is not None}
    velocities = [columns[i] for i in range(tree.nv)]
    nodes = [model.nodes[body] for body in bodies.values()]
    positions = [node.q + i for node in nodes for i in range(node.joint.nq)]
    parts = []
    for c in model.clusters:
        part = [i for i, v in enumerate(velocities) if c.spanning_v.start <= v < c.spanning_v.stop]
        parts.append(tuple(sorted(part, key=velocities.__getitem__)))
    places = {
        body: _place(model, body, tree)  # links of locked bodies are fixed to others
        for body in set(range(len(model.nodes))) - set(dropped)
    }
    return TreeMap(tree, positions, velocities, tuple(parts), places, method)


def _place(model: Model, body: int, tree: Model) -> FramePlacement:
    """The placement of a body's internal frame in a tree that has its link."""
    name = model.nodes[body].name
    in_tree, in_robot = tree.frame(name), model.frame(name).placement
    if in_tree.placement == in_robot:
        return FramePlacement(in_tree.body, Transform((), ZERO))
    pose = compose(in_tree.placement, inverse(in_robot))
    return FramePlacement(in_tree.body, Transform(factor(pose.rotation), pose.xyz))


def solved(matrix: Sequence[Vector], right: Vector) -> list[Scalar]:
    """Matrix⁻¹ right; ``right`` itself where the matrix is structurally 1."""
    if all(
        type(x) is float and x == (1.0 if i == j else 0.0)
        for i, row in enumerate(matrix)
        for j, x in enumerate(row)
    ):
        return list(right)
    return [x for (x,) in solve(matrix, [[r] for r in right])]
