"""Positions along steps, over scalars of any kind: displacements, closed loops, turned axes."""

from __future__ import annotations

from collections.abc import Sequence

from robomodel.model.configurations.coordinates import joint_slices
from robomodel.model.configurations.functions import coupled, couplings, normalized, stepped
from robomodel.model.elements import Cluster
from robomodel.model.joints import Floating, JointModel, Planar, Spherical
from robomodel.model.model import Model
from robomodel.motion.tangent import TangentConstraint
from robomodel.scalars import Scalar, Vector, add, added, div, dot, mul, neg, sincos, sqrt, sub
from robomodel.spatial import Rotation, Vec, from_quaternion, inner


def displaced(model: Model, q: Vector, displacement: Vector) -> list[Scalar]:
    """q moved by the velocities ``displacement`` of a model in tangent coordinates in unit time.

    Linkages move along their bases, which leaves their loops open to second order. Linear
    velocities of free and planar joints stand in the axes of the beginning. Quaternions are turned
    by the exponential to seventh order and not normalised.
    """
    result = list(q)
    for cluster in model.clusters:
        speeds = _joint_speeds(cluster, displacement[cluster.v])
        part, at = list(q[cluster.q]), 0
        for body, place, _ in joint_slices(model, cluster):
            joint = model.nodes[body].joint
            own = speeds[at : at + joint.nv]
            at += joint.nv
            part[place] = added(part[place], joint.rates(part[place], _exponential(joint, own)))
        result[cluster.q] = part
    return result


def _joint_speeds(cluster: Cluster, z: Vector) -> list[Scalar]:
    """Velocities of the joints whose positions q holds, where linkages move along their bases."""
    constraint = cluster.constraint
    if isinstance(constraint, TangentConstraint):
        y = [dot(row, z) for row in zip(*constraint.basis, strict=True)]
        return constraint.linkage.spanning(y)
    if cluster.implicit:
        return [0.0] * (cluster.spanning_v.stop - cluster.spanning_v.start)
    return list(z)


def _exponential(joint: JointModel, motion: Vector) -> Vector:
    """The motion whose q̇ leads a quaternion, once normalised, to the exponential's end."""
    if not isinstance(joint, Spherical | Floating):
        return motion
    square = dot(motion[:3], motion[:3])
    # tan(θ/2) / (θ/2) = 1 + θ²/12 + θ⁴/120 + 17 θ⁶/20160
    factor = add(1.0, mul(square, add(1 / 12, mul(square, add(1 / 120, mul(17 / 20160, square))))))
    return [*(mul(factor, x) for x in motion[:3]), *motion[3:]]


def settled(model: Model, q: Vector, times: int) -> tuple[list[Scalar], Scalar]:
    """Unit quaternions, couplings met, loops closed by so many steps of Newton's method at z = 0.

    Also Σ of the squares of the gaps before.
    """
    q = list(q)
    gaps: list[Scalar] = []
    for cluster in model.clusters:
        q[cluster.q] = normalized(model, cluster, q[cluster.q])
    for cluster in model.clusters:
        constraint = cluster.constraint
        if not isinstance(constraint, TangentConstraint):
            continue
        own, linear = q[cluster.q], couplings(cluster, constraint.linkage.loop)
        for n in range(times):
            own = coupled(linear, own)
            step, values = constraint.closing(own)
            gaps += values if n == 0 else []
            own = stepped(model, cluster, own, step)
        q[cluster.q] = coupled(linear, own)
    return q, dot(gaps, gaps)


def free_joints(model: Model) -> list[tuple[JointModel, slice]]:
    """Free and planar joints that are clusters of their own, with their places in v."""
    return [
        (model.nodes[cluster.bodies[0]].joint, cluster.v)
        for cluster in model.clusters
        if cluster.kind == "joint"
        and isinstance(model.nodes[cluster.bodies[0]].joint, Floating | Planar)
    ]


def in_turned_axes(
    model: Model, v: Vector, displacement: Vector, *, back: bool = False
) -> list[Scalar]:
    """Velocities in the axes of free and planar joints as they stand after a displacement.

    ``back``: of velocities after it in the axes before.
    """
    result = list(v)
    for joint, at in free_joints(model):
        part, turn = v[at], displacement[at]
        if isinstance(joint, Floating):
            rotation = _turn(turn[:3])
            linear: Vec = (part[3], part[4], part[5])
            turned = rotation.rotate(linear) if back else rotation.unrotate(linear)
            result[at.start + 3 : at.stop] = turned
        else:
            s, c = sincos(neg(turn[2]) if back else turn[2])
            x, y = part[0], part[1]
            result[at.start : at.start + 2] = [
                add(mul(c, x), mul(s, y)),
                sub(mul(c, y), mul(s, x)),
            ]
    return result


def _turn(rotation_vector: Sequence[Scalar]) -> Rotation:
    """The rotation by which :func:`displaced` turns a quaternion."""
    x, y, z = (mul(0.5, each) for each in _exponential(Spherical(), rotation_vector))
    inverse = div(1.0, sqrt(add(1.0, inner((x, y, z), (x, y, z)))))
    return from_quaternion(mul(inverse, x), mul(inverse, y), mul(inverse, z), inverse)


def axes_rates(model: Model, v: Vector) -> list[Scalar]:
    """ω x v of free and planar joints: by how much the rates of v's components in moving axes are
    less than those in axes that do not turn.
    """
    rates: list[Scalar] = [0.0] * model.nv
    for joint, at in free_joints(model):
        part = v[at]
        if isinstance(joint, Floating):
            (a, b, c), (x, y, z) = part[:3], part[3:]
            rates[at.start + 3 : at.stop] = [
                sub(mul(b, z), mul(c, y)),
                sub(mul(c, x), mul(a, z)),
                sub(mul(a, y), mul(b, x)),
            ]
        else:
            rates[at.start : at.start + 2] = neg(mul(part[2], part[1])), mul(part[2], part[0])
    return rates
