"""Values, Jacobian and bias of loop joints' rows at a cluster's positions and velocities.

Over scalars of any kind: kinematics of the cluster's bodies relative to one ancestor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robomodel.model.constraints.links import Link
from robomodel.model.constraints.rows import Anchor, End, LoopJoint
from robomodel.model.joints import relative_motion
from robomodel.scalars import Scalar, Vector, add
from robomodel.spatial import (
    UNIT,
    ZERO,
    Mat,
    Transform,
    Vec,
    apply,
    cross,
    inner,
    matmul,
    minus,
    plus,
    scale,
    skew,
    skew_squared,
    sum_matrices,
)


@dataclass(frozen=True, slots=True)
class Pose:
    """Where a body stands relative to the ancestor: R (rows) and origin, in ancestor axes."""

    rotation: Mat
    origin: Vec


@dataclass(frozen=True, slots=True)
class Rates:
    """Velocity and, at zero joint acceleration, acceleration of a body relative to the ancestor."""

    omega: Vec
    velocity: Vec
    alpha: Vec
    acceleration: Vec

    def turning(self) -> Mat:
        """U = [α]x + [ω]x²: second derivative of a body-fixed vector r is U r."""
        return sum_matrices(skew(self.alpha), skew_squared(self.omega))


AT_ANCESTOR = Pose(UNIT, ZERO)


AT_REST = Rates(ZERO, ZERO, ZERO, ZERO)


def _after(parent: Pose, x: Transform) -> Pose:
    rotation = parent.rotation
    for step in reversed(x.rotations):
        rotation = matmul(rotation, Transform((step,), ZERO).matrix())
    return Pose(rotation, plus(parent.origin, apply(parent.rotation, x.offset)))


def _rates_after(parent: Rates, at: Pose, pose: Pose, link: Link, qd: Vector) -> Rates:
    relative = relative_motion(link.joint, qd[link.v : link.v + link.joint.nv])
    turn, slide = apply(pose.rotation, relative.angular), apply(pose.rotation, relative.linear)
    arm = minus(pose.origin, at.origin)
    omega = plus(parent.omega, turn)
    return Rates(
        omega,
        plus(plus(parent.velocity, cross(parent.omega, arm)), slide),
        plus(parent.alpha, cross(parent.omega, turn)),
        plus(
            plus(parent.acceleration, apply(parent.turning(), arm)),
            cross(plus(parent.omega, omega), slide),
        ),
    )


@dataclass(frozen=True, slots=True)
class LoopRows:
    """Values φ, Jacobian K and bias (φ̈ at zero joint acceleration) of a set of loop rows."""

    values: list[Scalar]
    jacobian: list[list[Scalar]]
    bias: list[Scalar]


def evaluate_loops(
    links: Sequence[Link],
    loops: Sequence[LoopJoint],
    q: Vector,
    qd: Vector | None = None,
    keep: frozenset[tuple[int, int]] | None = None,
) -> LoopRows:
    """All rows of the loops at a cluster's spanning positions (and velocities).

    ``keep`` limits to these (loop, row) pairs. Bias entries are zero without ``qd``.
    """
    transforms = [link.transform(q) for link in links]
    columns = sum(link.joint.nv for link in links)
    result = LoopRows([], [], [])
    poses: dict[tuple[int | None, int], Pose] = {}
    motions: dict[tuple[int | None, int], Rates] = {}

    def end(anchor: Anchor, branch: tuple[int, ...]) -> End:
        """Walk the branch from the ancestor (poses and rates are shared between loops)."""
        start = links[branch[0]].parent if branch else None
        pose, rates = AT_ANCESTOR, AT_REST
        for body in branch:
            at = pose
            pose = poses.get((start, body)) or _after(at, transforms[body])
            poses[start, body] = pose
            if qd is not None:
                rates = motions.get((start, body)) or _rates_after(rates, at, pose, links[body], qd)
                motions[start, body] = rates
        turn = pose.rotation
        arm = apply(turn, anchor.point)
        axes = (
            apply(turn, anchor.axes[0]),
            apply(turn, anchor.axes[1]),
            apply(turn, anchor.axes[2]),
        )
        x = plus(pose.origin, arm)
        if rates is AT_REST:
            return End(x, axes, ZERO, ZERO, ZERO, (ZERO, ZERO, ZERO))
        turning = rates.turning()
        return End(
            x,
            axes,
            plus(rates.velocity, cross(rates.omega, arm)),
            rates.omega,
            plus(rates.acceleration, apply(turning, arm)),
            turning,
        )

    for n, loop in enumerate(loops):
        p, s = (
            end(anchor, branch)
            for anchor, branch in zip(
                (loop.predecessor, loop.successor), loop.branches, strict=True
            )
        )
        for r, row in enumerate(loop.rows):
            if keep is not None and (n, r) not in keep:
                continue
            row_at = row.evaluate(p, s)
            entries: list[Scalar] = [0.0] * columns
            for branch, x, force, moment in (
                (loop.branches[0], p.x, scale(-1.0, row_at.force), row_at.moment_predecessor),
                (loop.branches[1], s.x, row_at.force, row_at.moment_successor),
            ):
                start = links[branch[0]].parent if branch else None
                for body in branch:
                    link, pose = links[body], poses[start, body]
                    # power of (force at x, moment) on each of the joint's motions
                    about = plus(cross(minus(x, pose.origin), force), moment)
                    for i, motion in enumerate(link.joint.subspace):
                        entries[link.v + i] = add(
                            inner(about, apply(pose.rotation, motion.angular)),
                            inner(force, apply(pose.rotation, motion.linear)),
                        )
            result.values.append(row_at.value)
            result.jacobian.append(entries)
            result.bias.append(row_at.bias if qd is not None else 0.0)
    return result
