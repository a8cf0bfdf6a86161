"""Approximate and unconstrained dynamics: open-tree algorithms on an open tree (002, II-C).

The tree, :func:`robomodel.model.approximate.approximate` or
:func:`~robomodel.model.approximate.unconstrained` of the robot, takes the exact positions and
velocities of the joints that it keeps, q̇_k = G_k v and q̈_k = G_k a + g_k, at the state. Where it
keeps the independent joints, as with geared rotors, G_k is 1 and nothing of this remains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from robomodel.description import ONE_DOF, Description, Joint, JointSpring, Spring
from robomodel.description.poses import compose, inverse
from robomodel.dynamics.baselines.projection import projected
from robomodel.dynamics.kinematics.frames import Place
from robomodel.dynamics.kinematics.state import NO_FORCES, Configuration, Forces, Matrix, State
from robomodel.dynamics.recursions.aba import aba as forward
from robomodel.dynamics.recursions.efpa import efpa as inverse_inertia
from robomodel.dynamics.recursions.impulse import contact as contact_of
from robomodel.dynamics.recursions.passive import (
    Arguments,
    Element,
    Inner,
    elements,
    passive_force,
)
from robomodel.dynamics.recursions.reduced import reduced
from robomodel.dynamics.recursions.rnea import rnea as inverse_dynamics
from robomodel.errors import warn_at
from robomodel.model.approximate import (
    approximate,
    approximate_one,
    select,
    unconstrained,
    with_tendons,
)
from robomodel.model.build import build
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster, independent_rates, joint_slices
from robomodel.model.graph import WORLD, path
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, added, dot, solve, sub, subtracted
from robomodel.spatial import NO_WRENCH, ZERO, Transform, Wrench, factor


@dataclass(frozen=True, slots=True)
class OpenTree:
    """An open tree that stands for a robot.

    ``positions`` and ``velocities`` are the robot's spanning coordinates that are the tree's, in
    its order; ``parts`` the tree's velocities by the robot's clusters. ``places``: where the axes
    of each of the robot's bodies stand in the tree, those apart that it leaves out.
    """

    model: Model
    positions: tuple[int, ...]
    velocities: tuple[int, ...]
    parts: tuple[tuple[int, ...], ...]
    places: Mapping[int, Place]
    method: str

    def place(self, model: Model, body: int) -> Place:
        """Where a body of the robot stands; ValueError for one that the tree leaves out."""
        if body == WORLD:
            return Place(WORLD, Transform((), ZERO))
        if body not in self.places:
            raise ValueError(
                f"method '{self.method}' leaves out the body '{model.bodies[body].name}' of "
                f"'{model.name}', so nothing can act on it; use an exact method"
            )
        return self.places[body]

    def wrenches(self, model: Model, f_ext: Forces) -> dict[int, Wrench]:
        """Wrenches on the robot's bodies as wrenches on the tree's."""
        result: dict[int, Wrench] = {}
        for body, wrench in f_ext.items():
            place = self.place(model, body)
            if place.body != WORLD:
                known = result.get(place.body, NO_WRENCH)
                result[place.body] = known + place.pose.to_parent(wrench)
        return result


@cached_on_model
def open_tree(model: Model, method: str) -> OpenTree:
    """The tree of a method, made once and kept with the robot's model."""
    return mapped(model, build(MAKERS[method](model)), method)


def mapped(model: Model, tree: Model, method: str) -> OpenTree:
    """A tree, or a robot that is one in part, of joints of the model."""
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
        own = [i for i, v in enumerate(velocities) if c.spanning_v.start <= v < c.spanning_v.stop]
        parts.append(tuple(sorted(own, key=velocities.__getitem__)))
    places = {
        body: _stand(model, body, tree)  # locked bodies' links stand on others
        for body in set(range(len(model.nodes))) - select(model).dropped
    }
    return OpenTree(tree, tuple(positions), tuple(velocities), tuple(parts), places, method)


def approximated_in_part(model: Model, cluster: Cluster) -> Model:
    """The robot; its method "approximate" has this cluster alone as an open tree."""
    result = replace(model)
    tree = build(approximate_one(model, cluster))
    result.derived[open_tree, "approximate"] = mapped(model, tree, "approximate")
    return result


def reduced_tree(model: Model, method: str, algorithm: str) -> Model:
    """The robot, the inertias of its open tree regrouped where that takes fewer operations."""
    tree, result = open_tree(model, method), replace(model)
    result.derived[open_tree, method] = replace(tree, model=reduced(tree.model, algorithm))
    return result


def _stand(model: Model, body: int, tree: Model) -> Place:
    """Where a body's internal frame stands in a tree that has its link."""
    name = model.nodes[body].name
    frame, here = tree.frame(name), model.frame(name).placement
    if frame.placement == here:
        return Place(frame.body, Transform((), ZERO))
    pose = compose(frame.placement, inverse(here))
    return Place(frame.body, Transform(factor(pose.rotation), pose.xyz))


def rnea(
    method: str, model: Model, q: Vector, v: Vector, a: Vector, f_ext: Forces = NO_FORCES
) -> list[Scalar]:
    """Tau = G_kᵀ ID(q_k, G_k v, G_k a + g_k), with ID the inverse dynamics of the open tree."""
    tree, state = open_tree(model, method), State(model, q, (), v)
    at, rates = _kept(tree, state)
    qdd = state.accelerations(a)
    wrenches = tree.wrenches(model, f_ext)
    found = inverse_dynamics(tree.model, at, rates, [qdd[r] for r in tree.velocities], wrenches)
    forces: list[Scalar] = [0.0] * model.n_joint_velocities
    for r, force in zip(tree.velocities, found, strict=True):
        forces[r] = force
    return projected(state, forces)


def aba(
    method: str, model: Model, q: Vector, v: Vector, tau: Vector, f_ext: Forces = NO_FORCES
) -> list[Scalar]:
    """The a = G_k⁻¹ (FD(q_k, G_k v, G_k⁻ᵀ tau) - g_k), FD the forward dynamics of the open tree."""
    tree, state = open_tree(model, method), State(model, q, (), v)
    at, rates = _kept(tree, state)
    forces = _forces(tree, state, tau)
    qdd = forward(tree.model, at, rates, forces, tree.wrenches(model, f_ext))
    a: list[Scalar] = []
    for part in tree.parts:
        rows = [state.rows[tree.velocities[i]] for i in part]
        a += _solved(rows, [sub(qdd[i], state.bias[tree.velocities[i]]) for i in part])
    return a


def _forces(tree: OpenTree, state: Configuration, tau: Vector) -> list[Scalar]:
    """G_k⁻ᵀ tau, in the order of the tree."""
    forces: list[Scalar] = [0.0] * len(tree.velocities)
    for cluster, part in zip(state.model.clusters, tree.parts, strict=True):
        rows = [state.rows[tree.velocities[i]] for i in part]
        solved = _solved(list(zip(*rows, strict=True)), tau[cluster.v])
        for i, force in zip(part, solved, strict=True):
            forces[i] = force
    return forces


def correction_force(model: Model, q: Vector, v: Vector, tau: Vector) -> list[Scalar]:
    """ID(q_k, G_k v, G_k a + g_k) - G_k⁻ᵀ tau, with the a of the robot: what the tree lacks."""
    tree, state = open_tree(model, "tendons"), State(model, q, (), v)
    qdd = state.accelerations(forward(model, q, v, tau))
    needed = inverse_dynamics(tree.model, *_kept(tree, state), [qdd[r] for r in tree.velocities])
    return subtracted(needed, _forces(tree, state, tau))


def correction_passive(m: Model, x: Arguments, _: object, run: Inner) -> list[Scalar]:
    """The correction where springs and damping act on the robot, and the tree's own on the tree."""
    tree, state = open_tree(m, "tendons"), State(m, x["q"], (), x["v"])
    passive = passive_force(m, x["q"], x["v"])
    correction = run({**x, "tau": added(x["tau"], passive)})
    exact_less_tree = subtracted(
        _forces(tree, state, passive), passive_force(tree.model, *_kept(tree, state))
    )
    return added(correction, exact_less_tree)


def efpa(method: str, model: Model, q: Vector, places: Sequence[Place]) -> Matrix:
    """Λ⁻¹ (6k by 6k) of the open tree at these frames; it knows nothing of coordinates."""
    tree = open_tree(model, method)
    positions = model.spanning_positions(q)
    moved = _moved(tree, model, places)
    return inverse_inertia(tree.model, [positions[i] for i in tree.positions], moved)


def contact(
    method: str, model: Model, q: Vector, places: Sequence[Place]
) -> tuple[Matrix, Matrix, Matrix]:
    """Λ⁻¹, J G_k and G_kᵀ M G_k, with the tree's of :func:`.recursions.impulse.contact`."""
    tree, state = open_tree(model, method), Configuration(model, q)
    at = [state.positions[i] for i in tree.positions]
    inverse_of_tree, jacobian, mass = contact_of(tree.model, at, _moved(tree, model, places))

    def onto(rows: Sequence[Vector]) -> Matrix:  # times G_k
        blocks = [
            (part, list(zip(*(state.rows[tree.velocities[i]] for i in part), strict=True)))
            for part in tree.parts
        ]
        return [
            [dot([row[i] for i in part], column) for part, columns in blocks for column in columns]
            for row in rows
        ]

    return inverse_of_tree, onto(jacobian), onto(list(zip(*onto(mass), strict=True)))


def _moved(tree: OpenTree, model: Model, places: Sequence[Place]) -> list[Place]:
    """Frames of the robot as frames of the tree."""
    moved = []
    for at in places:
        place = tree.place(model, at.body)
        rotations = (*at.pose.rotations, *place.pose.rotations)
        pose = Transform(rotations, place.pose.point(at.pose.offset))
        moved.append(Place(place.body, pose))
    return moved


def _kept(tree: OpenTree, state: State) -> tuple[list[Scalar], list[Scalar]]:
    """Positions and velocities of the tree's joints."""
    at = [state.positions[i] for i in tree.positions]
    return at, [state.velocities[r] for r in tree.velocities]


def _solved(matrix: Sequence[Vector], right: Vector) -> list[Scalar]:
    """Matrix⁻¹ right; ``right`` itself where the matrix is structurally 1."""
    if all(
        type(x) is float and x == (1.0 if i == j else 0.0)
        for i, row in enumerate(matrix)
        for j, x in enumerate(row)
    ):
        return list(right)
    return [x for (x,) in solve(matrix, [[r] for r in right])]


# ---- springs, dampers and friction ---------------------------------------------------------------

# The tree locks the dependent joints of every cluster, rotors too. What acts there, a coordinate x
# with its row J at the neutral configuration, is linear in the joints that move: damping d JᵀJ,
# friction at most f |J|, and a spring about the position at which x is at rest. For gears that is
# exact; for linkages it is right near neutral, as armature is.

NOTHING = 1e-12  # of the largest entry of a row


def with_reflected(model: Model, opened: Description) -> Description:
    """The open tree of a model with what its locked joints and cut loops have of such forces.

    A coordinate that one joint moves becomes that joint's damping, friction and spring; one that
    several move, a spring over them. What moves a ball, planar or floating joint is warned of: no
    word says it.
    """
    moving = sorted(select(model).moving)
    neutral = [float(x) for x in model.neutral()]
    positions = model.spanning_positions(neutral)
    labels: list[tuple[str, float] | None] = []  # of each velocity that moves
    for body in moving:
        node = model.nodes[body]
        simple = model.joints[body].type in ONE_DOF
        at = (model.joints[body].name, float(positions[node.q])) if simple else None
        labels += [at] * node.joint.nv
    rows = [v for body in moving for v in model.nodes[body].freedoms]
    back = np.linalg.inv(model.constraint_jacobian(model.neutral())[rows])
    joints = {joint.name: joint for joint in opened.joints}
    springs = {spring.name: spring for spring in opened.springs if _remains(model, spring, moving)}
    own = {model.joints[body].name for body in moving}
    sources = {joint.name: joint.source for joint in model.description.joints}
    sources |= {each.name: each.source for each in (*model.description.loops,
                                                    *model.description.springs)}  # fmt: skip
    kinds = {spring.name: spring for spring in model.springs}
    for element in elements(Configuration(model, neutral)):
        if element.name in springs or (element.name in own and element.name not in kinds):
            continue
        row = np.zeros(model.nv)
        row[list(element.row)] = [float(x) for x in element.row.values()]
        row = row @ back
        used = np.flatnonzero(np.abs(row) > NOTHING * np.abs(row).max(initial=0.0))
        if not len(used):
            continue
        if any(labels[i] is None for i in used):
            warn_at(
                "its spring, damping and friction are not in the open tree: they act on a joint of "
                "several freedoms, for which no word says it",
                sources[element.name],
                strict=False,
            )
            continue
        terms = {label: float(row[i]) for i in used if (label := labels[i]) is not None}
        sprung = joints[next(iter(terms))[0]] if len(terms) == 1 else None
        shared = sprung is None or (sprung.stiffness and element.stiffness)
        if shared and (element.deadband or (sprung and sprung.deadband)):
            warn_at(
                "the play of its spring is not in the open tree: it acts on several joints, or "
                "beside another spring of one, for which no word says it",
                sources[element.name],
                strict=False,
            )
        if len(terms) == 1:
            (((moved, place), ratio),) = terms.items()
            joints[moved] = _folded(joints[moved], element, place, ratio)
        else:
            name = element.name
            while name in springs or name in kinds:
                name += "_"
            springs[name] = replace(_linear(name, element, terms), source=sources[element.name])
    kept = [joints[joint.name] for joint in opened.joints]
    return replace(opened, joints=tuple(kept), springs=tuple(springs.values()))


def _remains(model: Model, spring: Spring | JointSpring, moving: list[int]) -> bool:
    """Whether a spring is in the open tree what it is in the robot."""
    if isinstance(spring, JointSpring):
        return True  # over joints that move, or it is none of the open tree's
    bodies = {link: n for n, body in enumerate(model.bodies) for link in body.links}
    ends = (bodies.get(end.link, WORLD) for end in (spring.predecessor, spring.successor))
    one, other = (set(path(model.parents, body)) for body in ends)
    return one ^ other <= set(moving)


def _folded(joint: Joint, element: Element, at: float, ratio: float) -> Joint:
    """A joint with an element of which only it moves the coordinate."""
    added = element.stiffness * ratio * ratio
    stiffness = joint.stiffness + added
    rest, play = joint.reference, joint.deadband
    if added:
        here = at - (float(element.x) - element.reference) / ratio
        rest = (joint.stiffness * joint.reference + added * here) / stiffness
        play = 0.0 if joint.stiffness else element.deadband / abs(ratio)
    return replace(
        joint,
        damping=joint.damping + element.damping * ratio * ratio,
        friction=joint.friction + element.friction * abs(ratio),
        stiffness=stiffness,
        reference=rest,
        deadband=play,
    )


def _linear(name: str, element: Element, terms: Mapping[tuple[str, float], float]) -> JointSpring:
    """An element as one over several joints."""
    here = sum(ratio * at for (_, at), ratio in terms.items())
    rest = here - (float(element.x) - element.reference) if element.stiffness else 0.0
    ratios = tuple((joint, ratio) for (joint, _), ratio in terms.items())
    return JointSpring(name, ratios, element.stiffness, rest, element.damping, element.friction)


MAKERS: dict[str, Callable[[Model], Description]] = {
    "approximate": approximate,
    "unconstrained": unconstrained,
    "independent": partial(approximate, lump=False),  # as 002, II-C: the rotors' mass is left out
    "tendons": lambda model: with_reflected(model, with_tendons(model)),
}
