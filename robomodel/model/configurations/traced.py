"""Configurations over scalars of any kind: rates, and loops closed by fixed steps of Newton's.

Positions are taken here as plain numbers: q̇ of a quaternion is q ω / 2, all joints of a cluster
with loops move with G v, and what a step's truncation and rounding leave (a quaternion's length,
gaps in loops) :func:`settled` takes away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from robomodel.model.configurations.coordinates import joint_slices
from robomodel.model.constraints import LoopConstraint, Rows
from robomodel.model.elements import Cluster
from robomodel.scalars import Scalar, Vector, add, added, div, dot, mul, sqrt

if TYPE_CHECKING:
    from robomodel.model.model import Model

CLOSE_STEPS = 4  # of Newton's, by which loops close from 0.1 rad or m away to rounding
INTEGRATE_STEPS = 3  # after a motion along G v, which ends nearer


def rates(model: Model, q: Vector, v: Vector) -> list[Scalar]:
    """q̇ (nq) at velocities v."""
    result: list[Scalar] = [0.0] * model.nq
    for cluster in model.clusters:
        at = q[cluster.q]
        result[cluster.q] = _moved(model, cluster, at, speeds(cluster, at, v[cluster.v]))
    return result


def speeds(cluster: Cluster, q: Vector, v: Vector) -> list[Scalar]:
    """Velocities of the joints whose positions the cluster's q holds."""
    if not cluster.implicit:
        return list(v)
    rows = cluster.constraint.jacobian(cluster.constraint.positions(q))
    return [dot(row, v) for row in rows]


def _moved(model: Model, cluster: Cluster, q: Vector, speeds: Vector) -> list[Scalar]:
    """q̇ of a cluster's part of q at the velocities of the joints that it holds."""
    result: list[Scalar] = [0.0] * len(q)
    at = 0
    for body, part, _ in joint_slices(model, cluster):
        joint = model.nodes[body].joint
        result[part] = joint.rates(q[part], speeds[at : at + joint.nv])
        at += joint.nv
    return result


def stepped(model: Model, cluster: Cluster, q: Vector, step: Vector) -> list[Scalar]:
    """A cluster's joints moved along a small step of their velocities, quaternions normalised."""
    return normalized(model, cluster, added(q, _moved(model, cluster, q, step)))


def settled(model: Model, q: Vector, times: int) -> tuple[list[Scalar], Scalar, list[Rows]]:
    """Quaternions of unit length, couplings met, and loops closed by so many steps of Newton's.

    Independent joints stay where they are. Also Σ of the squares of the gaps that there were, and
    the systems of the dependent velocities, from where the last of these steps set out.
    """
    q = list(q)
    gaps: list[Scalar] = []
    systems: list[Rows] = []
    for cluster in model.clusters:
        at = normalized(model, cluster, q[cluster.q])
        constraint = cluster.constraint
        if isinstance(constraint, LoopConstraint):
            linear = couplings(cluster, constraint)
            for n in range(times):
                at = coupled(linear, at)
                newton = constraint.closing(at)
                gaps += newton.gaps if n == 0 else []
                systems += [m for m, _ in newton.systems] if n == times - 1 else []
                at = stepped(model, cluster, at, newton.step)
            at = coupled(linear, at)
        q[cluster.q] = at
    return q, dot(gaps, gaps), systems


def normalized(model: Model, cluster: Cluster, q: Vector) -> list[Scalar]:
    """A cluster's part of q with its quaternions divided by their lengths."""
    result = list(q)
    for body, part, _ in joint_slices(model, cluster):
        joint = model.nodes[body].joint
        if joint.nq != joint.nv:
            turn = slice(part.stop - 4, part.stop)
            inverse = div(1.0, sqrt(dot(result[turn], result[turn])))
            result[turn] = [mul(inverse, x) for x in result[turn]]
    return result


Coupled = tuple[int, tuple[tuple[float, int], ...], float]


def couplings(cluster: Cluster, constraint: LoopConstraint) -> list[Coupled]:
    """Positions that couplings give in a cluster with loops: which, Σ coefficient · other, offset.

    Set outright they hold to the last digit, where sums over many steps would gather rounding.
    """
    geometry = cluster.geometry
    matrix = np.array(constraint.expand)
    first = [
        next(i for i, row in enumerate(matrix) if row[c] == 1.0 and np.count_nonzero(row) == 1)
        for c in range(matrix.shape[1])
    ]
    given = [i for i in range(len(matrix)) if i not in first]
    if not given:
        return []
    position = {link.v: link.q for link in geometry.links if link.joint.nv == 1}
    conditions = np.zeros((len(geometry.linear), len(matrix)))
    for n, coupling in enumerate(geometry.linear):
        for link, coefficient in coupling.terms:
            conditions[n, geometry.links[link].v] += coefficient
    wanted = np.array([coupling.offset for coupling in geometry.linear])
    offsets = np.linalg.lstsq(conditions[:, given], wanted, rcond=None)[0]
    return [
        (
            position[i],
            tuple((float(matrix[i, c]), position[first[c]]) for c in np.flatnonzero(matrix[i])),
            float(offset),
        )
        for i, offset in zip(given, offsets, strict=True)
    ]


def coupled(linear: Sequence[Coupled], q: Vector) -> list[Scalar]:
    """A cluster's part of q with what couplings give set outright."""
    result = list(q)
    for at, terms, offset in linear:
        result[at] = add(dot([c for c, _ in terms], [q[i] for _, i in terms]), offset)
    return result


def left_open(model: Model, q: Vector) -> Scalar:
    """Σ of the squares of what loops and couplings fail by at q; see :func:`openness`."""
    values: list[Scalar] = [0.0]
    for cluster in model.clusters:
        if cluster.implicit:
            values += loop_gaps(cluster, q[cluster.q])
    return dot(values, values)


def integrated(model: Model, q: Vector, v_dt: Vector, steps: int = INTEGRATE_STEPS) -> list[Scalar]:
    """q moved along v_dt: joints by their exponentials, loops closed as :func:`settled` does."""
    result = predicted(model, q, v_dt)
    if any(cluster.implicit for cluster in model.clusters):
        result = settled(model, result, steps)[0]
    return result


def predicted(model: Model, q: Vector, v_dt: Vector) -> list[Scalar]:
    """q with all joints moved along G v_dt by their exponentials; loops are left open."""
    result: list[Scalar] = list(q)
    for cluster in model.clusters:
        moved = list(q[cluster.q])
        at, motion = 0, speeds(cluster, moved, v_dt[cluster.v])
        for body, part, _ in joint_slices(model, cluster):
            joint = model.nodes[body].joint
            moved[part] = joint.moved(moved[part], motion[at : at + joint.nv])
            at += joint.nv
        result[cluster.q] = moved
    return result


def loop_gaps(cluster: Cluster, q: Vector) -> list[Scalar]:
    """What loops and couplings of a cluster fail by at its positions, redundant rows too."""
    values, _, _ = cluster.geometry.conditions(q)
    return [values[row] for row in cluster.closing_rows]
