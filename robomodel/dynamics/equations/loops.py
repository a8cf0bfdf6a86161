"""The loops' and couplings' rows of the equations of motion, and their wrenches on bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from robomodel.dynamics.kinematics.state import State
from robomodel.model.constraints import (
    Anchor,
    LoopConstraint,
    LoopJoint,
    Unconstrained,
    evaluate_loops,
)
from robomodel.model.constraints.loops import End
from robomodel.model.elements import Cluster
from robomodel.model.graph import WORLD
from robomodel.scalars import Scalar, dot, is_zero, neg
from robomodel.spatial import (
    NO_WRENCH,
    UNIT,
    ZERO,
    Mat,
    Vec,
    Wrench,
    apply,
    cross,
    minus,
    plus,
    scale,
    transpose,
)

LoopRowsKept: TypeAlias = Literal["independent", "all"]


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions of a cluster, with their multipliers: Σ W a + k = 0 on bodies, or on joints.

    ``wrenches[r]`` are row r's on each body; ``joints[r]`` are row r's on the spanning velocities.
    """

    name: str
    wrenches: list[dict[int, Wrench]]
    joints: list[dict[int, Scalar]]
    bias: list[Scalar]


def loop_conditions(state: State, kept: LoopRowsKept) -> list[Conditions]:
    """The loops as wrenches on bodies, couplings as torques at joints.

    ``kept`` "independent": as many rows as say something new. "all": each loop's rows, redundant
    ones included; their multipliers are then not determined.
    """
    found: list[Conditions] = []
    for cluster in state.model.clusters:
        constraint = cluster.constraint
        if isinstance(constraint, Unconstrained):
            continue
        at, rates = state.positions[cluster.spanning_q], state.velocities[cluster.spanning_v]
        if isinstance(constraint, LoopConstraint):
            found += _loops(state, cluster, constraint, kept)
            couplings = len(constraint.expand) - len(constraint.expand[0])
        else:
            couplings = cluster.spanning_v.stop - cluster.spanning_v.start - cluster.nv
        if couplings:
            rows, right = constraint.conditions(at, rates)
            first = cluster.spanning_v.start
            joints = [
                {first + i: x for i, x in enumerate(row) if not is_zero(x)}
                for row in rows[-couplings:]
            ]
            bias = [neg(k) for k in right[-couplings:]]
            found.append(Conditions(cluster.name, [{} for _ in joints], joints, bias))
    return found


def _loops(
    state: State, cluster: Cluster, constraint: LoopConstraint, kept: LoopRowsKept
) -> list[Conditions]:
    found = []
    for n, loop in enumerate(constraint.loops):
        rows = [r for r in range(len(loop.rows)) if kept == "all" or (n, r) in constraint.keep]
        if rows:
            wrenches, bias = loop_wrenches(state, cluster, loop, rows)
            found.append(Conditions(loop.name, wrenches, [{} for _ in rows], bias))
    dependent = [c for c in range(len(constraint.expand[0])) if c not in constraint.independent]
    if kept == "all" or len(constraint.keep) == len(dependent):
        return found
    # redundant in general position: the combinations K_dᵀ of all rows, as constraint.conditions
    jacobian = evaluate_loops(
        constraint.links, constraint.loops, state.positions[cluster.spanning_q],
        keep=constraint.keep,
    ).jacobian  # fmt: skip
    columns = list(zip(*constraint.expand, strict=True))
    single = [w for c in found for w in c.wrenches]
    bias = [b for c in found for b in c.bias]
    combined: list[dict[int, Wrench]] = []
    biases: list[Scalar] = []
    for c in dependent:
        weights = [dot(row, columns[c]) for row in jacobian]
        total: dict[int, Wrench] = {}
        for weight, row in zip(weights, single, strict=True):
            for body, wrench in row.items():
                total[body] = total.get(body, NO_WRENCH) + wrench.scaled(weight)
        combined.append(total)
        biases.append(dot(weights, bias))
    return [Conditions(f"{cluster.name} loops", combined, [{} for _ in combined], biases)]


def loop_wrenches(
    state: State, cluster: Cluster, loop: LoopJoint, rows: Sequence[int]
) -> tuple[list[dict[int, Wrench]], list[Scalar]]:
    """For each row φ: the W of φ̈ = Σ W a + k on the ends' bodies, in their axes, and k.

    The same wrenches, times a multiplier, are what the loop joint exerts. At closed loops, where
    the rows' derivatives are those of absolute motions.
    """
    top = next(branch[0] for branch in loop.branches if branch)
    ancestor = state.model.nodes[cluster.bodies[top]].parent
    ends = [
        _end(state, ancestor, anchor, [cluster.bodies[i] for i in branch])
        for anchor, branch in zip((loop.predecessor, loop.successor), loop.branches, strict=True)
    ]
    found: list[dict[int, Wrench]] = []
    biases: list[Scalar] = []
    for r in rows:
        row = loop.rows[r].evaluate(ends[0][0], ends[1][0])
        total: dict[int, Wrench] = {}
        for (end, body, rotation, origin), force, moment in (
            (ends[0], scale(-1.0, row.force), row.moment_predecessor),
            (ends[1], row.force, row.moment_successor),
        ):
            about = plus(cross(minus(end.x, origin), force), moment)
            back = transpose(rotation)
            wrench = Wrench(apply(back, about), apply(back, force))
            total[body] = total.get(body, NO_WRENCH) + wrench
        found.append(total)
        biases.append(row.bias)
    return found, biases


def _end(
    state: State, ancestor: int, anchor: Anchor, bodies: Sequence[int]
) -> tuple[End, int, Mat, Vec]:
    """An end in motion, in the common ancestor's axes; its body with rotation and origin there.

    Velocities are absolute, accelerations those of the body's rotation alone.
    """
    body = bodies[-1] if bodies else ancestor

    def turn(v: Vec) -> Vec:
        for b in reversed(bodies):
            v = state.transforms[b].rotate(v)
        return v

    origin = ZERO
    for b in reversed(bodies):
        origin = state.transforms[b].point(origin)
    rotation = transpose((turn(UNIT[0]), turn(UNIT[1]), turn(UNIT[2])))
    arm = apply(rotation, anchor.point)
    axes = (turn(anchor.axes[0]), turn(anchor.axes[1]), turn(anchor.axes[2]))
    x = plus(origin, arm)
    if body == WORLD:
        still = (ZERO, ZERO, ZERO)
        return End(x, axes, ZERO, ZERO, ZERO, still), body, rotation, origin
    twist, around = state.twists[body], state.centripetal[body]
    velocity = apply(rotation, plus(twist.linear, cross(twist.angular, anchor.point)))
    centripetal = apply(rotation, apply(around, anchor.point))
    half = tuple(apply(rotation, column) for column in transpose(around))
    turning = tuple(apply(rotation, row) for row in transpose((half[0], half[1], half[2])))
    omega = apply(rotation, state.omega[body])
    turned = (turning[0], turning[1], turning[2])
    return End(x, axes, velocity, omega, centripetal, turned), body, rotation, origin
