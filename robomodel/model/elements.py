"""Elements of a model: bodies, joints, nodes, clusters; the meaning of its coordinates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from robomodel.arrays import Array
from robomodel.description import Pose, Rows3, Vec3, least
from robomodel.description.poses import rows3
from robomodel.errors import few
from robomodel.mechanism.closure import Geometry
from robomodel.mechanism.constraints import Constraint, Link
from robomodel.mechanism.joints import JointModel, Planar
from robomodel.mobility import SpanningColumn
from robomodel.model.options import LABELS
from robomodel.scalars import is_zero, value_of
from robomodel.spatial import RigidInertia, Transform

if TYPE_CHECKING:
    from robomodel.model.model import Model


@dataclass(frozen=True, slots=True)
class Body:
    """A rigid body: a link with what fixed joints attach to it.

    ``com`` [m] and ``inertia`` [kg m²] about it are in the axes of the link of this name, which is
    moved by ``joint``. ``links`` are the file's links in it.
    """

    name: str
    parent: str
    joint: str
    cluster: str
    mass: float
    com: Vec3
    inertia: Rows3
    links: tuple[str, ...]


class Units(NamedTuple):
    """Units of a joint's quantities."""

    position: str
    force: str
    velocity: str
    inertia: str


def units_of(slides: bool) -> Units:
    """The units of a joint that slides, or turns."""
    return Units("m", "N", "m/s", "kg") if slides else Units("rad", "N m", "rad/s", "kg m²")


@dataclass(frozen=True, slots=True)
class FrictionLaw:
    """A joint's friction beside d w + f sign(w), with its damping d and dry friction f.

    Attributes:
        damping: Damping at negative velocity less that at positive [N m s/rad or N s/m].
        friction: Dry friction at negative velocity less that at positive [N m or N].
        excess: Static less dry friction [N m or N].
        velocity: Stribeck velocity [rad/s or m/s].
        bias: A constant force that resists as friction at positive velocity does [N m or N].
    """

    damping: float = 0.0
    friction: float = 0.0
    excess: float = 0.0
    velocity: float = 0.0
    bias: float = 0.0

    def __bool__(self) -> bool:
        return self.dry or self.steady

    @property
    def dry(self) -> bool:
        """True if it changes dry friction."""
        return not (is_zero(self.friction) and is_zero(self.excess))

    @property
    def steady(self) -> bool:
        """True if it changes damping or has a bias: forces that change steadily with velocity."""
        return not (is_zero(self.damping) and is_zero(self.bias))

    def force(self, rate: Array) -> Array:
        """The resisting forces (...) at velocities w (...), zero excess at rest."""
        back = np.minimum(rate, 0.0)
        result = self.bias + self.damping * back + self.friction * np.sign(back)
        if self.excess and self.velocity:
            result = result + self.excess * np.sign(rate) * np.exp(-((rate / self.velocity) ** 2))
        return np.asarray(result)


NO_LAW = FrictionLaw()


@dataclass(frozen=True, slots=True)
class Joint:
    """A joint of the spanning tree; ``independent``: its velocities are coordinates of v.

    Limits are in radians or metres, seconds, newtons or newton metres; infinite by default.
    ``damping``, dry ``friction`` and the spring (``stiffness`` about the position ``reference``,
    without force within half the ``deadband``) act on the joint's positions and velocities: see
    :func:`robomodel.passive_force`.
    ``armature`` [kg m² or kg] is an inertia that resists each of the joint's velocities, and
    nothing else. ``law``: what its friction has beside ``damping`` and ``friction``; ``delay``
    [s]: of measured forces behind the motion. ``velocity_lower`` and ``effort_lower`` are limits
    the other way, zero or negative (None: -``velocity_limit``, -``effort_limit``). A file's limit
    of velocity of zero is a placeholder, and none here.
    """

    name: str
    type: str
    parent: str
    child: str
    axis: Vec3
    lower: float
    upper: float
    velocity_limit: float
    effort_limit: float
    damping: float
    friction: float
    armature: float
    independent: bool
    nq: int
    nv: int
    cluster: str
    stiffness: float = 0.0
    reference: float = 0.0
    deadband: float = 0.0
    law: FrictionLaw = NO_LAW
    delay: float = 0.0
    velocity_lower: float | None = None
    effort_lower: float | None = None

    @property
    def least_velocity(self) -> float:
        """Its least velocity."""
        return least(self.velocity_limit, self.velocity_lower)

    @property
    def least_effort(self) -> float:
        """Its least torque or force."""
        return least(self.effort_limit, self.effort_lower)

    @property
    def units(self) -> Units:
        """The units of its quantities."""
        return units_of(self.type == "prismatic")


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop joint with ``rows`` conditions, which add ``rank`` to those of the loops before it.

    The other rows are ``redundant``, as are three of the five of a planar linkage's hinge: they
    hold when the loop is closed, which is checked, and take no part in G.
    """

    name: str
    type: str
    predecessor: str
    successor: str
    cluster: str
    rows: int
    rank: int
    redundant: int


@dataclass(frozen=True, slots=True)
class Coupling:
    """Σ coefficient · q(joint) = offset, over ``terms``.

    ``kind`` is "coupling", "mimic" or "polynomial". A polynomial has ``coefficients``:
    q(first joint) = Σ coefficients[i] · q(second joint)ⁱ; ``terms`` and ``offset`` are its linear
    part. ``explicit``: the cluster has no loops, so that q holds the independent positions only.
    ``redundant``: it repeats the couplings before it.
    """

    name: str
    kind: str
    terms: tuple[tuple[str, float], ...]
    offset: float
    cluster: str
    explicit: bool
    redundant: bool
    coefficients: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """A link of the file, fixed to a body; ``pose`` is in the body's internal axes."""

    name: str
    body: int
    pose: Transform

    @property
    def placement(self) -> Pose:
        """``pose`` as rows of a rotation matrix and a translation."""
        x, y, z = map(value_of, self.pose.offset)
        return Pose((x, y, z), rows3(self.pose.matrix()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(Link):
    """A body as the recursions see it, in internal axes (see :mod:`robomodel.mechanism.joints`).

    ``parent``, ``q`` and ``v`` count over the whole robot. ``axisymmetric``: a rotation about the
    joint's axis changes neither the inertia nor anything that hangs on the body, so that the
    recursions do not compute it. ``armature`` acts on each spanning velocity of the joint.
    """

    name: str
    cluster: int
    inertia: RigidInertia
    armature: float
    axisymmetric: bool


@dataclass(frozen=True, slots=True)
class Cluster:
    """Bodies whose joints constraints relate; an unconstrained body is a cluster alone.

    Attributes:
        name: That of its first body.
        index: Its place in ``Model.clusters``.
        parent: The parent cluster's index, or ``WORLD``.
        bodies: Its bodies, which follow each other in ``Model.nodes``.
        joints: The names of their joints.
        outputs: The bodies of the parent cluster (or ``WORLD``) on which it hangs.
        independent: Labels of its independent velocities.
        kind: "joint" (one body, no constraint), "couplings" (explicit: q holds the independent
            positions) or "loops" (implicit: q holds all positions).
        q, v: Its parts of q and v.
        spanning_q, spanning_v: Its parts of the spanning positions and velocities.
        constraint: G and g.
        geometry: The bodies and all conditions on them, redundant ones included.
        columns: The independent ones among its spanning velocities.
        closing_rows: The conditions of ``geometry`` that closing meets; empty without loops.
        start: Its part of the neutral configuration.
        slack: How far conditions outside of ``closing_rows`` may be open [m, or sine of an angle],
            where the file's numbers contradict each other; else 0.
        rounding: The file's rounding, as the conditions show it [rad, sizes]; 0 where they agree.
        pivots: The spanning velocity for which each linear coupling is solved; None for a redundant
            coupling.
    """

    name: str
    index: int
    parent: int
    bodies: tuple[int, ...]
    joints: tuple[str, ...]
    outputs: tuple[int, ...]
    independent: tuple[str, ...]
    kind: str
    q: slice
    v: slice
    spanning_q: slice
    spanning_v: slice
    constraint: Constraint
    geometry: Geometry
    columns: tuple[int, ...]
    closing_rows: tuple[int, ...]
    start: tuple[float, ...]
    slack: float = 0.0
    rounding: float = 0.0
    pivots: tuple[int | None, ...] = ()

    def __repr__(self) -> str:
        joints = few(self.joints)
        moved = f", moved by {few(self.independent)}" if self.kind != "joint" else ""
        ties = self.geometry.names
        tied = f" tied by {few(ties)}" if ties else ""
        return f"<Cluster {self.name!r}: joints {joints}{tied}{moved}>"

    @property
    def nv(self) -> int:
        """Number of independent velocities."""
        return int(self.v.stop - self.v.start)

    @property
    def loose(self) -> bool:
        """True if closing rows outnumber dependent velocities: each may be open by the slack."""
        return self.slack > 0.0 and len(self.closing_rows) > self.geometry.nv - self.nv

    @property
    def varies(self) -> bool:
        """True if G depends on q: with loops, and with couplings by polynomials."""
        return bool(self.geometry.loops)

    @property
    def implicit(self) -> bool:
        """True if q holds all positions of the cluster, as loops require."""
        return self.kind == "loops"


@dataclass(frozen=True, slots=True)
class Structure:
    """Decisions on bodies, taken once with a file's numbers; those on constraints are in clusters.

    Attributes:
        frames: Each body's internal frame, in its link's frame.
        rounding: The offset [m] below which a coordinate counts as zero.
        loaded: Bodies on which other bodies, loops or springs hang.
    """

    frames: tuple[Pose, ...]
    rounding: float
    loaded: frozenset[int]


# ---- what coordinates of clusters stand for ------------------------------------------------------


def joint_slices(model: Model, cluster: Cluster) -> Iterator[tuple[int, slice, slice]]:
    """The bodies whose positions a cluster's q holds: (body, places in q, places in the rates).

    With loops these are all bodies, and the rates their spanning velocities; without, they are the
    bodies with independent joints, and the rates the cluster's v.
    """
    q = v = 0
    for body in cluster.bodies:
        joint = model.nodes[body].joint
        if cluster.implicit or model.joints[body].independent:
            yield body, slice(q, q + joint.nq), slice(v, v + joint.nv)
            q, v = q + joint.nq, v + joint.nv


def independent_rates(cluster: Cluster, along: slice) -> list[int | None]:
    """The index in v of each of a joint's rates (of :func:`joint_slices`); None if dependent."""
    first, columns = cluster.v.start, range(along.start, along.stop)
    independent = cluster.columns if cluster.implicit else range(cluster.nv)
    return [first + independent.index(c) if c in independent else None for c in columns]


def quaternions(model: Model) -> Iterator[tuple[str, slice]]:
    """The names of the joints whose positions have a quaternion, each with its place in q."""
    for cluster in model.clusters:
        for body, part, _ in joint_slices(model, cluster):
            if model.nodes[body].joint.nq != model.nodes[body].joint.nv:
                last = cluster.q.start + part.stop
                yield model.joints[body].name, slice(last - 4, last)


def columns_of(model: Model, cluster: Cluster) -> list[SpanningColumn]:
    """The spanning velocities of a cluster, with their limits and units."""
    columns = []
    for i, body in enumerate(cluster.bodies):
        joint, node = model.joints[body], model.nodes[body]
        bounded = joint.type != "continuous" and joint.nv == 1
        limits = (joint.lower, joint.upper) if bounded else (-np.inf, np.inf)
        for motion, suffix in zip(node.joint.subspace, LABELS[joint.nv], strict=True):
            length = any(motion.linear) and not any(motion.angular)
            columns.append(
                SpanningColumn(
                    joint.name + suffix, joint.name, i, None, False, False, length, limits
                )
            )
    return columns


def spanning_start(cluster: Cluster, q: Array) -> Array:
    """All positions of a cluster's joints from its part of q."""
    if cluster.implicit:
        return q.copy()
    return np.array([value_of(x) for x in cluster.constraint.positions(q.tolist())])


def position_labels(name: str, joint: JointModel) -> list[str]:
    """A label for each position of a joint; quaternions are .qx .qy .qz .qw."""
    if joint.nq == 1:
        return [name]
    axes = ["x", "y", "angle"] if isinstance(joint, Planar) else [*map(str, range(joint.nq))]
    if joint.nq != joint.nv:
        axes = ["x", "y", "z", "qx", "qy", "qz", "qw"][-joint.nq :]
    return [f"{name}.{axis}" for axis in axes]


def position_names(model: Model) -> tuple[str, ...]:
    """A label for each of the nq positions."""
    return tuple(
        label
        for cluster in model.clusters
        for body, _, _ in joint_slices(model, cluster)
        for label in position_labels(model.joints[body].name, model.nodes[body].joint)
    )
