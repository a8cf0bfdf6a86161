"""Closing loops over scalars of any kind: steps of Newton's method, and what they keep.

A step solves the loops' linearised conditions. What it keeps makes it one of many: the positions of
the independent joints, or the coordinates z of a chart (:class:`Independent`); their differences to
an origin (:class:`Along`); that the way from an origin is the shortest (:class:`Nearest`); the
readings of encoders (:class:`robomodel.dynamics.actuators.inverse.Readings`). So many steps close
loops from near enough
(:func:`newton`, :func:`settled`), in traced programs as on numbers. Over arrays of configurations
that may be far, :mod:`robomodel.model.configurations.following` takes strides of them, and
:func:`robomodel.mechanism.closure.close` damps them.

Positions are plain numbers: q̇ of a quaternion is q ω / 2, all joints of a cluster with loops move
with G v, and what a step's truncation and rounding leave, in a quaternion's length and in loops,
:func:`settled` removes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np

from robomodel.arrays import Array
from robomodel.kernels.trace import Traced
from robomodel.mechanism.constraints import LoopConstraint
from robomodel.mechanism.couplings import eliminated
from robomodel.mechanism.joints import Revolute
from robomodel.model.elements import Cluster, joint_slices
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    added,
    div,
    dot,
    gram,
    maximum,
    select,
    solve,
    sqrt,
    subtracted,
    transposed,
)
from robomodel.tolerances import CLOSED

if TYPE_CHECKING:
    from robomodel.model.model import Model


# ---- what a step keeps ---------------------------------------------------------------------------


class Step(NamedTuple):
    """A step of a cluster's joints, for unit time.

    ``values``: what its loops fail by before it. ``short``: joints turn by less than 0.3 rad, so
    that their sines follow from those before it.
    """

    joints: list[Scalar]
    values: list[Scalar]
    short: bool = False


class Keep(Protocol):
    """Positions that a step of Newton's method keeps while it closes loops."""

    def steps(self, model: Model, q: Vector, n: int) -> Mapping[int, Step]:
        """The n-th step, by the index of each cluster that it moves."""


@runtime_checkable
class Loops(Protocol):
    """The constraint of a cluster with loops: the step that closes it."""

    def closing(self, positions: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """Newton's step of the joints, its own coordinates held, and what the loops fail by."""


@dataclass(frozen=True)
class Independent:
    """Independent joints stay where they are; of a model in tangent coordinates, z does."""

    def steps(self, model: Model, q: Vector, n: int) -> dict[int, Step]:
        """The steps of all clusters with loops."""
        return {
            cluster.index: Step(*cluster.constraint.closing(q[cluster.q]))
            for cluster in model.clusters
            if isinstance(cluster.constraint, Loops)
        }


@dataclass(frozen=True)
class Nearest:
    """Where the loops close is as near to ``origin`` (nq) as can be, in rad and linkages' sizes."""

    origin: Vector

    def steps(self, model: Model, q: Vector, n: int) -> dict[int, Step]:
        """The steps of all clusters with loops.

        They are of the joints' least norm that takes the way back to the origin,
        J (away - step) = φ, on independent rows.
        """
        result: dict[int, Step] = {}
        for cluster in model.clusters:
            constraint, at = cluster.constraint, q[cluster.q]
            if not isinstance(constraint, LoopConstraint):
                continue
            unit = cluster.geometry.unit[:, None]
            allowed = np.linalg.qr(np.array(constraint.expand) / unit)[0]  # by couplings
            basis, measures = (unit * allowed).T.tolist(), (allowed / unit).T.tolist()
            values, jacobian = constraint.rows(at)
            rows = [[dot(row, direction) for direction in basis] for row in jacobian]
            origin, away = self.origin[cluster.q], list[Scalar]()
            for body, part, _ in joint_slices(model, cluster):
                away += model.nodes[body].joint.displacement(at[part], origin[part])
            along = [dot(measure, away) for measure in measures]
            open_ = added(values, [dot(row, along) for row in rows])
            forces = Factorization(gram(rows, rows)).solve(open_)
            pulled = [dot([row[i] for row in rows], forces) for i in range(len(basis))]
            combined = subtracted(along, pulled)
            step = [dot(column, combined) for column in transposed(basis)]
            result[cluster.index] = Step(step, values)
        return result


INDEPENDENT = Independent()


@dataclass(frozen=True)
class Along:
    """Independent joints are where ``way`` (nv) leads from ``origin`` (nq), as differences say.

    Joints that are independent with all their freedoms stay there. Of a ball that is independent
    with some (a rod's spin), a step that turns its other axes turns these, too.
    """

    origin: Vector
    way: Vector

    def steps(self, model: Model, q: Vector, n: int) -> dict[int, Step]:
        """The steps of all clusters with loops."""
        result = INDEPENDENT.steps(model, q, n)
        for index, step in result.items():
            cluster = model.clusters[index]
            partly = partly_independent(model, cluster)
            if not partly:
                continue
            at, origin, way = q[cluster.q], self.origin[cluster.q], self.way[cluster.v]
            among = [cluster.columns.index(c) for *_, own in partly for c in own]
            motions = cluster.constraint.jacobian(cluster.constraint.positions(at))
            rows, lack = list[list[Scalar]](), list[list[Scalar]]()
            for body, part, along, own in partly:
                joint = model.nodes[body].joint
                turn = joint.displacement(origin[part], at[part])
                slopes = joint.jlog(turn)
                columns = [[row[k] for row in motions[along]] for k in among]
                for c in own:
                    slope, wanted = slopes[c - along.start], way[cluster.columns.index(c)]
                    rows.append([dot(slope, column) for column in columns])
                    lack.append([wanted - turn[c - along.start] - dot(slope, step.joints[along])])
            more = [x for (x,) in solve(rows, lack)]
            joints = [
                x + dot([row[k] for k in among], more)
                for x, row in zip(step.joints, motions, strict=True)
            ]
            result[index] = Step(joints, step.values)
        return result


def newton(
    model: Model, q: Vector, times: int, keep: Keep = INDEPENDENT
) -> tuple[list[Scalar], list[Mapping[int, Step]]]:
    """So many steps from q, whose couplings hold; and the steps."""
    q, taken = list(q), []
    for n in range(times):
        taken.append(keep.steps(model, q, n))
        for index, step in taken[-1].items():
            cluster = model.clusters[index]
            start, q[cluster.q] = q[cluster.q], stepped(model, cluster, q[cluster.q], step.joints)
            for link in cluster.geometry.looped if step.short and cluster.implicit else ():
                x = q[cluster.q][link.q]
                before = start[link.q]
                if isinstance(link.joint, Revolute) and isinstance(x, Traced):
                    assert isinstance(before, Traced)
                    x.trace.turn(x, before, step.joints[link.v])
    return q, taken


def settled(
    model: Model, q: Vector, times: int, keep: Keep = INDEPENDENT
) -> tuple[list[Scalar], Scalar]:
    """Quaternions of unit length, couplings met, and loops closed by so many steps of Newton's.

    Also Σ of the squares of the gaps before.
    """
    q, taken = newton(model, straightened(model, q), times, keep)
    gaps = [x for step in taken[0].values() for x in step.values] if taken else []
    return q, dot(gaps, gaps)


# ---- parts of a step -----------------------------------------------------------------------------


def partly_independent(
    model: Model, cluster: Cluster
) -> list[tuple[int, slice, slice, tuple[int, ...]]]:
    """A linkage's joints that are independent with some freedoms only, as rods' balls may be.

    As of :func:`joint_slices`, and which of the joints' velocities are independent.
    """
    return [
        (body, part, along, own)
        for body, part, along in joint_slices(model, cluster)
        if cluster.implicit
        and len(own := tuple(c for c in cluster.columns if along.start <= c < along.stop))
        not in (0, along.stop - along.start)
    ]


def straightened(model: Model, q: Vector) -> list[Scalar]:
    """Quaternions of unit length, and couplings beside loops met."""
    result = list(q)
    for cluster in model.clusters:
        result[cluster.q] = coupled(cluster, normalized(model, cluster, q[cluster.q]))
    return result


def stepped(model: Model, cluster: Cluster, q: Vector, step: Vector) -> list[Scalar]:
    """A cluster's joints moved along a small step of their velocities, couplings met outright."""
    moved = added(q, rates_of_joints(model, cluster, q, step))
    return coupled(cluster, normalized(model, cluster, moved))


def rates_of_joints(model: Model, cluster: Cluster, q: Vector, speeds: Vector) -> list[Scalar]:
    """q̇ of a cluster's part of q at the velocities of the joints that it holds."""
    result: list[Scalar] = [0.0] * len(q)
    for body, part, along in joint_slices(model, cluster):
        result[part] = model.nodes[body].joint.rates(q[part], speeds[along])
    return result


def normalized(model: Model, cluster: Cluster, q: Vector) -> list[Scalar]:
    """A cluster's part of q with its quaternions divided by their lengths."""
    result = list(q)
    for body, part, _ in joint_slices(model, cluster):
        joint = model.nodes[body].joint
        if joint.nq != joint.nv:
            turn = slice(part.stop - 4, part.stop)
            inverse = div(1.0, sqrt(dot(result[turn], result[turn])))
            result[turn] = [inverse * x for x in result[turn]]
    return result


def coupled(cluster: Cluster, q: Vector) -> list[Scalar]:
    """A cluster's part of q with what couplings beside loops give set outright.

    So they hold to the last digit, where sums over many steps would gather rounding.
    """
    result = list(q)
    if isinstance(cluster.constraint, Loops):
        position = {link.v: link.q for link in cluster.geometry.links}
        pivots = eliminated(cluster.geometry, cluster.pivots).pivots
        for column, (row, offset) in pivots.items():
            others = [q[position[c]] for c in row]
            result[position[column]] = dot(row.values(), others) + offset
    return result


def of_loops(cluster: Cluster, q: Vector) -> list[Scalar]:
    """The positions of a cluster's joints that are in loops; motors geared to them are not.

    Threads are as :func:`_shortened` says.
    """
    q = _shortened(cluster, q)
    return [x for link in cluster.geometry.looped for x in q[link.positions]]


def _shortened(cluster: Cluster, q: Vector) -> Vector:
    """A cluster's positions with the turns of threads as :meth:`Geometry.bending` has them."""
    if not cluster.geometry.threads:
        return q
    places, result = {link.v: link.q for link in cluster.geometry.links}, list(q)
    for each in cluster.geometry.threads:
        turns = result[places[each.column]]
        for column, sense in each.undone:
            result[places[column]] = result[places[column]] - sense * turns
        result[places[each.column]] = turns * (1.0 / each.long)
    return result


def travel(cluster: Cluster) -> Array:
    """How far unit independent velocities (nv) move joints of loops through couplings alone.

    A motor geared to a crank by 25 moves it by 1/25, and so does a thread that goes by a 25th of a
    linkage's size for a radian, or a hinge that undoes its turns. Branches are left by motions of
    loops: steps are bounded in these units.
    """
    constraint = cluster.constraint
    if not isinstance(constraint, LoopConstraint):
        return np.ones(cluster.nv)
    rows = [c for link in cluster.geometry.looped for c in link.freedoms]
    matrix = (np.abs(np.array(constraint.expand)) / long_ways(cluster)[:, None])[rows]
    most: Array = np.max(matrix[:, list(constraint.independent)], axis=0)
    return np.where(most > 0.0, most, 1.0)


def long_ways(cluster: Cluster) -> Array:
    """How far joints (spanning velocities) move for a unit that bends loops: threads farther.

    A joint that undoes the turns of a thread goes as far, unless both are independent.
    """
    result = np.ones(cluster.geometry.nv)
    for each in cluster.geometry.threads:
        result[each.column] = each.long
        for column, _ in each.undone:
            if not {each.column, column} <= set(cluster.columns):
                result[column] = each.long
    return result


# ---- what is left open ---------------------------------------------------------------------------


def loop_gaps(cluster: Cluster, q: Vector) -> list[Scalar]:
    """Gaps of a cluster's loops and couplings at its positions, redundant rows too.

    What a file leaves open counts as closed up to the cluster's slack.
    """
    closing, left = _gaps(cluster, q)
    return [*closing, *left]


def _gaps(cluster: Cluster, q: Vector) -> tuple[list[Scalar], list[Scalar]]:
    """The errors of the rows that close a cluster, and of the others, by the share of its slack."""
    values = cluster.geometry.conditions(q)[0]
    exact = () if cluster.loose else cluster.closing_rows
    closing = [values[row] for row in exact]
    if not cluster.slack:
        return closing, []
    others = set(range(len(values))).difference(exact)
    return closing, [CLOSED / cluster.slack * values[row] for row in sorted(others)]


def left_open(model: Model, q: Vector) -> Scalar:
    """Σ of the squares of what loops and couplings fail by at q; redundant rows too."""
    values: list[Scalar] = [0.0]
    for cluster in model.clusters:
        if cluster.implicit:
            values += loop_gaps(cluster, q[cluster.q])
    return dot(values, values)


def relative_gap(cluster: Cluster, q: Vector) -> Scalar:
    """The worst gap of a cluster relative to its positions (1 at least); infinite when flipped."""
    worst: Scalar = 0.0
    size: Scalar = 1.0
    closing, left = _gaps(cluster, q)
    for x in closing:
        worst = maximum(worst, maximum(x, -x))
    for x in _shortened(cluster, q):
        size = maximum(size, maximum(x, -x))
    for x in cluster.geometry.alignments(q):
        worst = select(x, math.inf, worst)
    worst = div(worst, size)
    for x in left:
        worst = maximum(worst, maximum(x, -x))
    return worst
