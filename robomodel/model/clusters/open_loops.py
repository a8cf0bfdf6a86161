"""What stays open of loops, in words: which loop, by how much, and along what."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from robomodel.model.clusters.problem import ClusterProblem, names
from robomodel.model.constraints.rows import Distance, LoopJoint, Perpendicular
from robomodel.model.joints import Array, Prismatic, Revolute

PARALLEL = 1e-3  # sine of an angle up to which axes count as parallel
ROUND = (1.0, 2.0, 5.0, 10.0)


def common_axis(problem: ClusterProblem, loop: LoopJoint) -> tuple[Array, tuple[str, ...]] | None:
    """The direction that the axes of a loop's revolute joints share, and these joints' names.

    A unit vector in the axes of the loop's common ancestor, with the joints at their start. None
    where there is no such joint, or no such direction, or a joint of several freedoms.
    """
    geometry = problem.geometry
    joint_of = {column.link: column.joint for column in problem.columns}
    found: list[Array] = []
    joints: list[str] = []
    for branch in loop.branches:
        for at, n in enumerate(branch):
            joint = geometry.links[n].joint
            if isinstance(joint, Prismatic):
                continue
            if not isinstance(joint, Revolute):
                return None
            found.append(branch_rotation(problem, branch[: at + 1])[:, joint.k])
            joints.append(joint_of[n])
    if not found or any(np.linalg.norm(np.cross(found[0], axis)) > PARALLEL for axis in found):
        return None
    return found[0], tuple(joints)


def branch_rotation(problem: ClusterProblem, branch: Sequence[int]) -> Array:
    """The rotation matrix of a branch's last body in what the branch hangs on, at the start."""
    result: Array = np.eye(3)
    for n in branch:
        step = problem.geometry.links[n].transform(problem.start.tolist())
        result = result @ np.array(step.matrix())
    return result


def describe_gaps(problem: ClusterProblem, q: Array, closed: float) -> list[str]:
    """What stays open at q (nq,) by more than ``closed`` [m, sine], loop by loop."""
    values = problem.geometry.evaluate(q)[0]
    found, at = [], 0
    for loop in problem.geometry.loops:
        texts = _describe_gap(problem, loop, values[at : at + len(loop.rows)], closed)
        at += len(loop.rows)
        if texts:
            found.append(f"'{loop.name}' stays open by {texts}")
    return found


def _describe_gap(problem: ClusterProblem, loop: LoopJoint, values: Array, closed: float) -> str:
    apart = np.array(
        [x for row, x in zip(loop.rows, values, strict=True) if not isinstance(row, Perpendicular)]
    )
    turned = [x for row, x in zip(loop.rows, values, strict=True) if isinstance(row, Perpendicular)]
    texts = []
    if np.max(np.abs(apart), initial=0.0) > closed:
        if isinstance(loop.rows[0], Distance):
            length = loop.rows[0].length
            apart = np.array([math.sqrt(max(0.0, length**2 + 2 * length * apart[0])) - length])
        texts.append(length_text(float(np.linalg.norm(apart))) + _along(problem, loop, apart))
    if max(map(abs, turned), default=0.0) > closed:
        angle = math.degrees(math.asin(min(1.0, math.hypot(*turned))))
        texts.append(f"{angle:.3g}° between its frames")
    return " and ".join(texts)


def _along(problem: ClusterProblem, loop: LoopJoint, apart: Array) -> str:
    """What of a gap between two points is along the axis that the joints share."""
    shared = common_axis(problem, loop)
    if len(apart) != 3 or shared is None:
        return ""
    axis, joints = shared
    size, along = float(np.linalg.norm(apart)), abs(float(apart @ axis))
    if along < 0.01 * size:
        return ""
    part = "" if along > 0.999 * size else f", of which {length_text(along)} are"
    return f"{part} along the axis of {names(joints)}, which they cannot close"


def length_text(length: float) -> str:
    """A length with a unit fit for it."""
    return f"{1e3 * length:.3g} mm" if length < 0.1 else f"{length:.3g} m"


def tolerance_above(gap: float) -> float:
    """A round number twice as large as a gap, or more: 1, 2 or 5 times a power of ten."""
    enough = 1.99 * gap
    power = 10.0 ** math.floor(math.log10(enough))
    return float(f"{next(x * power for x in ROUND if x * power >= enough):.0e}")


def at_most(items: Sequence[str], count: int = 3) -> str:
    """The first few of several texts."""
    more = f"; and {len(items) - count} more" if len(items) > count else ""
    return "; ".join(items[:count]) + more
