"""Functions of a configuration, traced on the model: what its methods call, and other languages.

Each takes flat arguments with leading batch axes. Those that move or close q say beside it by how
much loops fail, so that the caller can use the damped Newton method where they do.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from robomodel.kernels.function import TracedFunction
from robomodel.kernels.plan import Iteration
from robomodel.mechanism.constraints import LoopConstraint
from robomodel.model.configurations.closing import (
    INDEPENDENT,
    Along,
    Nearest,
    left_open,
    normalized,
    of_loops,
    rates_of_joints,
    relative_gap,
    settled,
    stepped,
    straightened,
    travel,
)
from robomodel.model.configurations.singular import explanation
from robomodel.model.derived import cached_on_model, nominal, traced
from robomodel.model.elements import Cluster, Joint, joint_slices
from robomodel.model.registry import method
from robomodel.scalars import (
    Scalar,
    Vector,
    div,
    dot,
    maximum,
    minimum,
    select,
    sqrt,
    subtracted,
)
from robomodel.tolerances import HUGE

if TYPE_CHECKING:
    from robomodel.model.model import Model

CLOSE_STEPS = 4  # Newton steps that close loops from 0.1 rad or m away to rounding
INTEGRATE_STEPS = 3  # Newton steps after a motion along G v, which ends nearer
CLOSED_EVERY = 0.2  # [rad, m] largest motion of an independent joint between two closings
NEAREST_BRANCH = 0.3  # [rad, m] that closing may move q; the damped method is safer beyond
LONGEST_STRIDE = 0.5  # [rad, m] of a step along the tangent, or of Newton's where q may be far
# of closing to the nearest configuration: quadratic, or by the share that it is off
NEAREST_ITERATIONS = 8


# ---- over scalars of any kind --------------------------------------------------------------------


def rates(model: Model, q: Vector, v: Vector) -> list[Scalar]:
    """q̇ (nq) at velocities v."""
    result: list[Scalar] = [0.0] * model.nq
    for cluster in model.clusters:
        at = q[cluster.q]
        result[cluster.q] = rates_of_joints(model, cluster, at, speeds(cluster, at, v[cluster.v]))
    return result


def speeds(cluster: Cluster, q: Vector, v: Vector) -> list[Scalar]:
    """Velocities of the joints whose positions the cluster's q holds."""
    if not cluster.implicit:
        return list(v)
    rows = cluster.constraint.jacobian(cluster.constraint.positions(q))
    return [dot(row, v) for row in rows]


def integrated(model: Model, q: Vector, v_dt: Vector, steps: int = INTEGRATE_STEPS) -> list[Scalar]:
    """q moved along v_dt: joints by their exponentials, loops closed as :func:`settled` does."""
    result = predicted(model, q, v_dt)
    if any(cluster.implicit for cluster in model.clusters):
        result = settled(model, result, steps, Along(q, v_dt))[0]
    return result


def predicted(model: Model, q: Vector, v_dt: Vector) -> list[Scalar]:
    """q with all joints moved along G v_dt by their exponentials; loops are left open."""
    result: list[Scalar] = list(q)
    for cluster in model.clusters:
        at = q[cluster.q]
        result[cluster.q] = _along(model, cluster, at, speeds(cluster, at, v_dt[cluster.v]))
    return result


def _along(model: Model, cluster: Cluster, q: Vector, motion: Vector) -> list[Scalar]:
    """A cluster's part of q with the joints that it holds moved by their exponentials."""
    result = list(q)
    for body, part, along in joint_slices(model, cluster):
        result[part] = model.nodes[body].joint.moved(q[part], motion[along])
    return result


# ---- kinematics ----------------------------------------------------------------------------------


@method
@traced
def joint_positions(model: Model, first: int = 0) -> TracedFunction:
    """Positions of all joints of the spanning tree, from the ``first`` on."""
    count = model.n_joint_positions - first
    return TracedFunction(
        "joint_positions", {"q": model.nq}, {"positions": (count,)},
        lambda q: model.spanning_positions(q)[first:],
    )  # fmt: skip


@method
@traced
def joint_velocities(model: Model, first: int = 0) -> TracedFunction:
    """G v: velocities of all joints of the spanning tree, from the ``first`` on."""
    count = model.n_joint_velocities - first
    return TracedFunction(
        "joint_velocities", {"q": model.nq, "v": model.nv}, {"velocities": (count,)},
        lambda q, v: _velocities(model, q, v)[first:], explain=explanation(model),
    )  # fmt: skip


@method
@traced
def constraint_jacobian(model: Model) -> TracedFunction:
    """G, by which all joints' velocities are G v."""

    def build(q: Vector) -> list[Scalar]:
        result: list[Scalar] = [0.0] * (model.n_joint_velocities * model.nv)
        positions = model.spanning_positions(q)
        for c in model.clusters:
            rows = c.constraint.jacobian(positions[c.spanning_q])
            for r, row in enumerate(rows, c.spanning_v.start):
                result[r * model.nv + c.v.start : r * model.nv + c.v.stop] = row
        return result

    shape = (model.n_joint_velocities, model.nv)
    return TracedFunction(
        "constraint_jacobian", {"q": model.nq}, {"G": shape}, build, explain=explanation(model)
    )


@method
@traced
def constraint_bias(model: Model) -> TracedFunction:
    """g: all joints' accelerations are G a + g."""

    def build(q: Vector, v: Vector) -> list[Scalar]:
        positions, velocities = model.spanning_positions(q), _velocities(model, q, v)
        return [
            x
            for c in model.clusters
            for x in c.constraint.bias(positions[c.spanning_q], velocities[c.spanning_v])
        ]

    sizes, results = {"q": model.nq, "v": model.nv}, {"g": (model.n_joint_velocities,)}
    return TracedFunction("constraint_bias", sizes, results, build, explain=explanation(model))


@method
@traced
def residual(model: Model) -> TracedFunction:
    """The gap of every loop row, then of every coupling, at positions of all joints."""
    count = _count(model)
    return TracedFunction(
        "residual", {"positions": model.n_joint_positions}, {"residual": (count,)},
        lambda positions: _conditions(model, positions)[0],
    )  # fmt: skip


@method
@traced
def constraint_matrix(model: Model) -> TracedFunction:
    """K, the derivative of the residual by all joints' positions."""
    return TracedFunction(
        "constraint_matrix", {"q": model.nq},
        {"K": (_count(model), model.n_joint_velocities)},
        lambda q: [
            x for row in _conditions(model, model.spanning_positions(q))[1] for x in row
        ],
    )  # fmt: skip


@method
@traced
def constraint_matrix_bias(model: Model, *, spanning: bool = False) -> TracedFunction:
    """k = -K̇ q̇, of the independent velocities, or of all joints' (``spanning``)."""

    def build(q: Vector, v: Vector) -> list[Scalar]:
        rates = v if spanning else _velocities(model, q, v)
        return _conditions(model, model.spanning_positions(q), rates)[2]

    sizes = {"q": model.nq, "v": model.n_joint_velocities if spanning else model.nv}
    results = {"k": (_count(model),)}
    return TracedFunction("constraint_matrix_bias", sizes, results, build)


def _velocities(model: Model, q: Vector, v: Vector) -> list[Scalar]:
    positions = model.spanning_positions(q)
    return [
        dot(row, v[c.v])
        for c in model.clusters
        for row in c.constraint.jacobian(positions[c.spanning_q])
    ]


def _conditions(
    model: Model, positions: Vector, rates: Vector | None = None
) -> tuple[list[Scalar], list[list[Scalar]], list[Scalar]]:
    """Residual, K and k over the whole robot, in the order of loops and couplings."""
    order, n, count = condition_order(model), model.n_joint_velocities, _count(model)
    values: list[Scalar] = [0.0] * count
    bias: list[Scalar] = [0.0] * count
    matrix: list[list[Scalar]] = [[0.0] * n for _ in range(count)]
    for c in model.clusters:
        velocities = None if rates is None else rates[c.spanning_v]
        conditions = c.geometry.conditions(positions[c.spanning_q], velocities)
        for row, value, entries, k in zip(order[c.index], *conditions, strict=True):
            values[row], matrix[row][c.spanning_v], bias[row] = value, entries, k
    return values, matrix, bias


def _count(model: Model) -> int:
    return sum(len(rows) for rows in condition_order(model).values())


@method
@cached_on_model
def condition_order(model: Model) -> dict[int, list[int]]:
    """For each cluster, the robot's row of each of its conditions."""
    loop_at: dict[str, range] = {}
    coupling_at: dict[tuple[str, str], list[int]] = {}
    count = 0
    for loop in model.loops:
        loop_at[loop.name] = range(count, count + loop.rows)
        count += loop.rows
    for i, coupling in enumerate(model.couplings):
        coupling_at.setdefault((coupling.cluster, coupling.name), []).append(count + i)
    order: dict[int, list[int]] = {}
    for cluster in model.clusters:
        geometry = cluster.geometry
        rows = [row for loop in geometry.loop_joints for row in loop_at[loop.name]]
        couplings = geometry.names[len(geometry.loop_joints) :]
        rows += [coupling_at[cluster.name, name].pop(0) for name in couplings]
        order[cluster.index] = rows
    return order


# ---- motions and closing -------------------------------------------------------------------------


@traced
def difference(model: Model) -> TracedFunction:
    """The v that leads from q0 to q1 in unit time."""

    def build(q0: Vector, q1: Vector) -> list[Scalar]:
        result: list[Scalar] = [0.0] * model.nv
        for cluster in model.clusters:
            along: list[Scalar] = []
            for body, part, _ in joint_slices(model, cluster):
                at = slice(cluster.q.start + part.start, cluster.q.start + part.stop)
                along += model.nodes[body].joint.displacement(q0[at], q1[at])
            result[cluster.v] = [along[c] for c in cluster.columns] if cluster.implicit else along
        return result

    sizes = {"q0": model.nq, "q1": model.nq}
    return TracedFunction("difference", sizes, {"v": (model.nv,)}, build)


@traced
def integrate(model: Model, times: int) -> TracedFunction:
    """q moved along v_dt, loops closed by so many steps of Newton's, independent joints held."""
    return TracedFunction(
        "integrate", {"q": model.nq, "v_dt": model.nv}, {"next": (model.nq,)},
        lambda q, v_dt: integrated(model, q, v_dt, times),
    )  # fmt: skip


@traced
def moved(model: Model, times: int) -> TracedFunction:
    """The same, and the worst gap relative to q: infinite where another method is needed.

    That is where a motion of joints in loops, or what closing adds to it, is so long that branches
    may be lost, and where numbers are not finite.
    """

    def build(q: Vector, v_dt: Vector) -> list[Scalar]:
        guess = predicted(model, q, v_dt)
        implicit = any(c.implicit for c in model.clusters)
        result = settled(model, guess, times, Along(q, v_dt))[0] if implicit else guess
        worst: Scalar = 0.0
        for cluster in model.clusters:
            if cluster.implicit:
                worst = maximum(worst, relative_gap(cluster, result[cluster.q]))
                units = travel(nominal(model).clusters[cluster.index]).tolist()
                along = [unit * x for unit, x in zip(units, v_dt[cluster.v], strict=True)]
                start, ahead, at = (of_loops(cluster, x[cluster.q]) for x in (q, guess, result))
                step, correction = subtracted(ahead, start), subtracted(at, ahead)
                worst = _within(dot(along, along), CLOSED_EVERY**2, worst)
                worst = _within(dot(step, step), LONGEST_STRIDE**2, worst)
                worst = _within(dot(correction, correction), NEAREST_BRANCH**2, worst)
        return [*result, _within(dot(result, result), HUGE, worst)]

    sizes = {"q": model.nq, "v_dt": model.nv}
    return TracedFunction("moved", sizes, {"next": (model.nq,), "gap": ()}, build)


@traced
def close(model: Model, steps: int) -> TracedFunction:
    """Quaternions of unit length, and loops closed by Newton's steps, independent joints held."""

    def build(q: Vector) -> list[Scalar]:
        closed = settled(model, q, steps)[0]
        return [*closed, _root(left_open(model, closed))]

    results: dict[str, tuple[int, ...]] = {"closed": (model.nq,), "residual": ()}
    return TracedFunction("close", {"q": model.nq}, results, build)


@traced
def held(model: Model, steps: int) -> TracedFunction:
    """The same, and the worst gap relative to q: infinite where a branch may be lost."""

    def build(q: Vector) -> list[Scalar]:
        closed = settled(model, q, steps)[0]
        worst: Scalar = 0.0
        for cluster in model.clusters:
            if cluster.implicit:
                at, start = closed[cluster.q], q[cluster.q]
                worst = maximum(worst, relative_gap(cluster, at))
                correction = subtracted(of_loops(cluster, at), of_loops(cluster, start))
                worst = _within(dot(correction, correction), NEAREST_BRANCH**2, worst)
        return [*closed, _within(dot(closed, closed), HUGE, worst)]

    return TracedFunction("held", {"q": model.nq}, {"closed": (model.nq,), "gap": ()}, build)


@traced
def closing(model: Model) -> TracedFunction:
    """A step of Newton's method that holds the independent joints, run over ``times``.

    It moves joints in loops by half a unit (radian or metre) at most. Beside q, for each cluster
    before the step: its gap (as of :func:`moved`), how far joints are beyond their limits, and the
    mean square of G's columns in comparable units (1 where G is an isometry).
    """

    def build(q: Vector, _: Vector) -> list[Scalar]:
        start, checks = straightened(model, q), list[Scalar]()
        steps, result = INDEPENDENT.steps(model, start, 0), list(start)
        for cluster in model.clusters:
            constraint, at = cluster.constraint, start[cluster.q]
            gap: Scalar = 0.0
            if cluster.index in steps:
                gap = relative_gap(cluster, at)
                step = steps[cluster.index].joints
                longest: Scalar = LONGEST_STRIDE
                for link in cluster.geometry.looped:
                    for x in step[link.velocities]:
                        longest = maximum(longest, maximum(x, -x))
                share = div(LONGEST_STRIDE, longest)
                result[cluster.q] = stepped(model, cluster, at, [share * x for x in step])
            positions = constraint.positions(at)
            beyond: Scalar = -math.inf
            for body, link in zip(cluster.bodies, cluster.geometry.links, strict=True):
                beyond = _beyond(model.joints[body], positions[link.q], beyond)
            unit = cluster.geometry.unit.tolist()
            scaled = [
                unit[c] / unit[r] * x
                for r, row in enumerate(constraint.jacobian(positions))
                for c, x in zip(cluster.columns, row, strict=True)
            ]
            checks += [gap, beyond, 1.0 / cluster.nv * dot(scaled, scaled)]
        return [*result, *checks]

    results = {"q": (model.nq,), "checks": (len(model.clusters), 3)}
    return TracedFunction(
        "closing", {"q": model.nq, "times": 1}, results, build, Iteration((1,)),
        compiles=any(cluster.implicit for cluster in model.clusters),  # else there is little to do
    )  # fmt: skip


def _beyond(joint: Joint, x: Scalar, worst: Scalar) -> Scalar:
    """How far a joint of one freedom is beyond its position limits, or the worst of others."""
    if joint.nv == 1 and joint.type != "continuous":
        if math.isfinite(joint.lower):
            worst = maximum(worst, joint.lower - x)
        if math.isfinite(joint.upper):
            worst = maximum(worst, x - joint.upper)
    return worst


@traced
def nearest(model: Model) -> TracedFunction:
    """A step towards the closed configuration nearest to ``origin``, run over ``times``.

    Of q, gap (as of :func:`moved`) and the step's largest component.
    """

    def build(q: Vector, _: Vector, origin: Vector) -> list[Scalar]:
        start, result = list(origin), straightened(model, q)
        for cluster in model.clusters:
            start[cluster.q] = normalized(model, cluster, origin[cluster.q])
        gap: Scalar = 0.0
        largest: Scalar = 0.0
        for index, step in Nearest(start).steps(model, result, 0).items():
            cluster = model.clusters[index]
            at = stepped(model, cluster, result[cluster.q], step.joints)
            gap = maximum(gap, relative_gap(cluster, at))
            off = subtracted(of_loops(cluster, at), of_loops(cluster, start[cluster.q]))
            gap = _within(dot(off, off), NEAREST_BRANCH**2, gap)
            for x in step.joints:
                largest = maximum(largest, maximum(x, -x))
            result[cluster.q] = at
        return [*result, _within(dot(result, result), HUGE, gap), largest]

    sizes = {"q": model.nq, "times": 1, "origin": model.nq}
    return TracedFunction("nearest", sizes, {"y": (model.nq + 2,)}, build, Iteration((1,)))


def _within(x: Scalar, limit: float, worst: Scalar) -> Scalar:
    """``worst`` where x is below a limit; infinity elsewhere, and where x is not a number."""
    return select(x - limit, worst, math.inf)


def _root(x: Scalar) -> Scalar:
    """√x, whose derivatives are zero where x is zero with its slope, as those of a norm may be."""
    below = -x
    return select(below, sqrt(select(below, x, 1.0)), x)


# ---- checks --------------------------------------------------------------------------------------


@traced
def check(model: Model, *, moving: bool) -> TracedFunction:
    """(q[, v]) → the residual of q, the largest excess over any joint's limits, the least sin².

    The residual is the largest gap, as in :func:`moved`, or deviation of a quaternion's length
    from 1. The sine is that of clusters' regularity (:mod:`.singular`).
    """
    speeds_too = {"v": model.nv} if moving else {}

    def build(q: Vector, v: Vector = ()) -> list[Scalar]:
        fault: Scalar = 0.0
        least: Scalar = 1.0
        for cluster in model.clusters:
            if cluster.implicit:
                fault = maximum(fault, relative_gap(cluster, q[cluster.q]))
            if isinstance(cluster.constraint, LoopConstraint):
                least = minimum(cluster.constraint.regularity(q[cluster.q]), least)
            for body, part, _ in joint_slices(model, cluster):
                joint = model.nodes[body].joint
                if joint.nq != joint.nv:
                    quaternion = q[cluster.q][part][-4:]
                    off = sqrt(dot(quaternion, quaternion)) - 1.0
                    fault = maximum(fault, maximum(off, -off))
        beyond: Scalar = -math.inf
        positions = model.spanning_positions(q)
        velocities = _velocities(model, q, v) if moving else []
        for joint_, node in zip(model.joints, model.nodes, strict=True):
            beyond = _beyond(joint_, positions[node.q], beyond)
            if moving and joint_.nv == 1:
                x = velocities[node.v]
                if math.isfinite(joint_.velocity_limit):
                    beyond = maximum(beyond, x - joint_.velocity_limit)
                if math.isfinite(joint_.least_velocity):
                    beyond = maximum(beyond, joint_.least_velocity - x)
        squares = dot([*q, *v], [*q, *v])
        return [_within(squares, HUGE, fault), beyond, least]

    return TracedFunction("check", {"q": model.nq, **speeds_too}, {"y": (3,)}, build)
