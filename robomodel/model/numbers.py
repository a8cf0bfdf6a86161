"""The numbers of a model, computed from those of a description: inertias, offsets, anchors, gears.

:mod:`robomodel.model.build` takes decisions once, with a file's numbers: the order of bodies, their
internal frames (a model's :class:`Structure`), independent coordinates, the conditions that count,
pivots (in its clusters). :class:`Numbers` computes the rest, from numbers that may be scalars of
any kind: a model with other parameters has the same decisions and other numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from robomodel.description import Description, Rows3
from robomodel.description import Joint as JointElement
from robomodel.description import inertias as masses
from robomodel.description.poses import align, inverse
from robomodel.errors import DescriptionError
from robomodel.mechanism import graph
from robomodel.mechanism.closure import Geometry, LinearCoupling
from robomodel.mechanism.constraints import OUTSIDE, Link, Polynomial
from robomodel.mechanism.couplings import with_geometry
from robomodel.mechanism.graph import WORLD, SpanningTree
from robomodel.mechanism.internal_frames import factored, in_frames
from robomodel.mechanism.joints import (
    Floating,
    JointModel,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    axisymmetric,
)
from robomodel.mechanism.springs import find_springs
from robomodel.mechanism.tree_constraints import (
    TreeConstraint,
    find_tree_constraints,
    loop_joint,
    unit,
)
from robomodel.model.actuators import with_couplings
from robomodel.model.elements import (
    Body,
    Cluster,
    Coupling,
    Frame,
    FrictionLaw,
    Joint,
    Node,
    Structure,
)
from robomodel.model.options import labels
from robomodel.scalars import Scalar, as_number, held, is_number, is_zero
from robomodel.spatial import (
    NO_INERTIA,
    UNIT,
    AxisRotation,
    RigidInertia,
    Rotation,
    Transform,
    factor,
)

if TYPE_CHECKING:
    from robomodel.model.model import Model


def joint_model(joint: JointElement) -> tuple[JointModel, Rows3]:
    """The joint's model and its body's internal axes (rows: internal to link coordinates)."""
    if joint.type == "floating":
        return Floating(), UNIT
    if joint.type == "spherical":
        return Spherical(), UNIT
    k, axes = align(unit(joint.axis, joint.source))
    if joint.type == "prismatic":
        return Prismatic(k), axes
    if joint.type == "planar":
        return Planar(k), axes
    if joint.type == "screw":
        return Screw(k, joint.pitch), axes
    return Revolute(k), axes


@dataclass(frozen=True)
class Numbers:
    """The numbers of a model, from a description and a structure.

    ``tree`` is numbered as the model's bodies are. ``given`` replaces inertias of bodies (about
    their links' origins, in their links' axes). ``offsets`` are added to the angles of revolute
    joints.
    """

    description: Description
    tree: SpanningTree
    structure: Structure
    given: Mapping[int, RigidInertia] = field(default_factory=dict)
    offsets: Mapping[str, Scalar] = field(default_factory=dict)

    @cached_property
    def moves(self) -> list[tuple[JointModel, Rows3]]:
        """Each body's joint, and axes in which it moves along coordinate axes."""
        return [joint_model(joint) for joint in self.tree.joints]

    @cached_property
    def internal(self) -> SpanningTree:
        """The tree in internal frames."""
        return in_frames(self.tree, self.structure.frames, self.structure.rounding)

    @cached_property
    def links_of(self) -> list[list[str]]:
        """The links in every body."""
        links: list[list[str]] = [[] for _ in self.tree.joints]
        for link in self.description.links:
            body = self.tree.places[link.name].body
            if body != WORLD:
                links[body].append(link.name)
        return links

    @cached_property
    def inertias(self) -> list[RigidInertia]:
        """Every body's inertia about its origin, in its link's axes."""
        inertias = [NO_INERTIA] * len(self.tree.joints)
        for link in self.description.links:
            place = self.tree.places[link.name]
            if place.body not in (WORLD, *self.given) and link.inertial is not None:
                inertias[place.body] += masses.placed(link.inertial, place.pose)
        for body, inertia in self.given.items():
            inertias[body] = inertia
        return inertias

    @cached_property
    def joints(self) -> list[tuple[JointModel, tuple[Rotation, ...]]]:
        """Each body's joint, and the rotation of the joint on the parent.

        A constant rotation about a revolute joint's axis becomes an offset of its angle, where this
        leaves fewer rotations.
        """
        result: list[tuple[JointModel, tuple[Rotation, ...]]] = []
        for (model, _), element in zip(self.moves, self.internal.joints, strict=True):
            rotation, joint = element.origin.rotation, model
            rotations = factor(rotation)
            constant = all(is_number(x) for row in rotation for x in row)
            if isinstance(model, Revolute):
                if constant and any(isinstance(x, AxisRotation) for x in rotations):
                    fewer, angle = factored(rotation, model.k)
                    if len(fewer) < len(rotations):
                        joint, rotations = Revolute(model.k, angle), fewer
                if (offset := self.offsets.get(element.name)) is not None:
                    joint = Revolute(model.k, held(getattr(joint, "offset", 0.0) + offset))
            result.append((joint, rotations))
        return result

    # ---- clusters

    def links(self, bodies: range) -> tuple[Link, ...]:
        """The bodies of a cluster, for the kinematics of its constraint."""
        links: list[Link] = []
        nq = nv = 0
        for body in bodies:
            parent = self.tree.parents[body]
            joint, rotations = self.joints[body]
            offset = self.internal.joints[body].origin.xyz
            inside = parent - bodies.start if parent in bodies else OUTSIDE
            links.append(Link(joint, rotations, offset, inside, nq, nv))
            nq, nv = nq + joint.nq, nv + joint.nv
        return tuple(links)

    def geometry(self, bodies: range, constraints: Sequence[TreeConstraint]) -> Geometry:
        """The conditions on a cluster: loops and polynomials, then linear couplings."""
        local = {body: i for i, body in enumerate(bodies)}
        loops = [loop_joint(each.loop, self.internal, local) for each in constraints if each.loop]
        tied = [constraint for constraint in constraints if not constraint.loop]
        linear = []
        for constraint in tied:
            if constraint.coefficients:
                continue
            merged: dict[int, Scalar] = {}
            for body, coefficient in constraint.terms:
                merged[local[body]] = merged.get(local[body], 0.0) + coefficient
            terms = tuple((at, held(k)) for at, k in merged.items() if not is_zero(k))
            if not terms:
                raise DescriptionError(
                    "its terms cancel, so it relates nothing; remove it", constraint.source
                )
            linear.append(LinearCoupling(constraint.name, terms, constraint.offset))
        powers = [
            Polynomial(each.name, local[each.bodies[0]], local[each.bodies[1]], each.coefficients)
            for each in tied
            if each.coefficients
        ]
        return Geometry(self.links(bodies), (*loops, *powers), tuple(linear))

    # ---- the model's parts

    def node(self, body: int, cluster: Cluster) -> Node:
        """A body as the recursions see it."""
        link = cluster.geometry.links[body - cluster.bodies[0]]
        inertia = masses.in_outer_frame(self.inertias[body], inverse(self.structure.frames[body]))
        free = body not in self.structure.loaded
        return Node(
            name=self.tree.joints[body].child,
            parent=self.tree.parents[body],
            cluster=cluster.index,
            joint=link.joint,
            rotations=link.rotations,
            offset=link.offset,
            inertia=inertia,
            armature=as_number(self.tree.joints[body].armature),
            axisymmetric=free and axisymmetric(link.joint, inertia),
            q=cluster.spanning_q.start + link.q,
            v=cluster.spanning_v.start + link.v,
        )

    def body(self, body: int, cluster: Cluster) -> Body:
        """The public record of a body."""
        joint, parent = self.tree.joints[body], self.tree.parents[body]
        com, inertia = masses.centred(self.inertias[body])
        return Body(
            name=joint.child,
            parent="world" if parent == WORLD else self.tree.joints[parent].child,
            joint=joint.name,
            cluster=cluster.name,
            mass=as_number(self.inertias[body].mass),
            com=com,
            inertia=inertia,
            links=tuple(self.links_of[body]),
        )

    def joint(self, body: int, cluster: Cluster, independent: set[str]) -> Joint:
        """The public record of a joint."""
        joint, model = self.tree.joints[body], self.moves[body][0]
        velocity, slowest = joint.limits.speeds
        return Joint(
            name=joint.name,
            type=joint.type,
            parent=joint.parent or "world",
            child=joint.child,
            axis=joint.axis,
            lower=joint.limits.lower,
            upper=joint.limits.upper,
            velocity_limit=velocity,
            effort_limit=joint.limits.effort,
            damping=as_number(joint.damping),
            friction=as_number(joint.friction),
            armature=as_number(joint.armature),
            independent=all(label in independent for label in labels(joint)),
            nq=model.nq,
            nv=model.nv,
            cluster=cluster.name,
            stiffness=as_number(joint.stiffness),
            reference=as_number(joint.reference),
            deadband=as_number(joint.deadband),
            law=law_of(joint),
            delay=as_number(joint.delay),
            velocity_lower=slowest,
            effort_lower=joint.limits.effort_lower,
        )

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The links of the file, each with its pose on its body (in internal axes)."""
        frames = []
        for link in self.description.links:
            place = self.internal.places[link.name]
            pose = Transform(factor(place.pose.rotation), place.pose.xyz)
            frames.append(Frame(link.name, place.body, pose))
        return tuple(frames)


def law_of(joint: JointElement) -> FrictionLaw:
    """A joint's friction beside its damping and dry friction."""

    def more(value: float | None, usual: float) -> float:
        return 0.0 if value is None else as_number(value) - as_number(usual)

    return FrictionLaw(
        more(joint.damping_reverse, joint.damping),
        more(joint.friction_reverse, joint.friction),
        more(joint.static_friction, joint.friction),
        as_number(joint.stribeck_velocity),
        as_number(joint.bias),
    )


def with_numbers(
    model: Model,
    description: Description,
    offsets: Mapping[str, Scalar],
    given: Mapping[int, RigidInertia] = MappingProxyType({}),
    *,
    moved: bool = True,
) -> Model:
    """The model with the numbers of another description, which differs in numbers only.

    Coordinates and all decisions are those of ``model``. ``offsets`` and ``given`` are those of
    :class:`Numbers`. Where nothing has ``moved`` only inertias and joints' losses are others.
    """
    tree = graph.spanning_tree(description)
    at = {joint.child: body for body, joint in enumerate(tree.joints)}
    tree = tree.renumbered([at[node.name] for node in model.nodes])
    assert model._structure is not None
    numbers = Numbers(description, tree, model._structure, given, offsets)
    if moved:
        model = _moved(model, numbers)
    placed = [(body, cluster) for cluster in model.clusters for body in cluster.bodies]
    independent = {label for cluster in model.clusters for label in cluster.independent}
    return replace(
        model,
        bodies=tuple(numbers.body(*each) for each in placed),
        joints=tuple(numbers.joint(*each, independent) for each in placed),
        nodes=tuple(numbers.node(*each) for each in placed),
        description=description,
    )


def _moved(model: Model, numbers: Numbers) -> Model:
    """The model with the geometry, couplings and springs of numbers."""
    description, tree = numbers.description, numbers.tree
    constraints: dict[int, list[TreeConstraint]] = {}
    for each in find_tree_constraints(description, tree):
        constraints.setdefault(model.nodes[each.bodies[0]].cluster, []).append(each)
    clusters = []
    for cluster in model.clusters:
        bodies = range(cluster.bodies[0], cluster.bodies[-1] + 1)
        geometry = numbers.geometry(bodies, constraints.get(cluster.index, ()))
        constraint = with_geometry(cluster.constraint, geometry, cluster.pivots, cluster.columns)
        clusters.append(replace(cluster, geometry=geometry, constraint=constraint))
    terms: dict[tuple[str, str], TreeConstraint] = {
        (each.kind, each.name): each for every in constraints.values() for each in every
    }
    couplings = tuple(
        _coupling(each, terms[each.kind, each.name], tree) for each in model.couplings
    )
    actuators = model.actuators
    ratios = [k for x in couplings for k in (*(k for _, k in x.terms), *x.coefficients)]
    if not all(map(is_number, ratios)) or couplings != model.couplings:
        actuators = tuple(with_couplings(each, couplings) for each in actuators)
    return replace(
        model,
        gravity=model.gravity if description.gravity is None else description.gravity,
        couplings=couplings,
        clusters=tuple(clusters),
        frames=numbers.frames,
        springs=find_springs(description, numbers.internal),
        actuators=actuators,
    )


def _coupling(coupling: Coupling, constraint: TreeConstraint, tree: SpanningTree) -> Coupling:
    """The public record of a coupling, with the numbers of ``constraint``."""
    terms = tuple((tree.joints[body].name, k) for body, k in constraint.terms)
    return replace(
        coupling, terms=terms, offset=constraint.offset, coefficients=constraint.coefficients
    )
