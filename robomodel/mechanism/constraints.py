"""Constraints inside a cluster: rows of loop joints, and G and g that follow from them.

Rows of four kinds make up every type of loop joint: coincident coordinates, a point in a plane,
perpendicular axes, a distance. Each row is a scalar φ(q) with its exact Jacobian at every q, closed
or not, over scalars of any kind. It is computed from the kinematics of the cluster's bodies
relative to their common ancestor.

A cluster's joints have positions q (its *spanning* positions) and velocities q̇. A constraint gives
q̇ = G v and q̈ = G v̇ + g for the cluster's independent velocities v (002, II-B):

- a single joint: G = 1;
- linear couplings (gears, belts, mimic joints): G is constant;
- polynomial couplings: G is evaluated;
- loop joints: K(q) q̇ = 0 is solved for the dependent velocities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from robomodel.mechanism.joints import JointModel, relative_motion
from robomodel.scalars import (
    Scalar,
    Vector,
    dot,
    is_one,
    is_zero,
    minimum,
    regularity,
    solve,
    sparse_dot,
    transposed,
)
from robomodel.spatial import (
    UNIT,
    ZERO,
    Mat,
    Rotation,
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
from robomodel.tolerances import NOTHING


@dataclass(frozen=True, slots=True)
class LoopEnd:
    """One end of a loop: a point x and axes fixed to a body, and their motion, in ancestor axes.

    ``turning`` U gives the second derivative U r of a vector r that is fixed to the body.
    """

    x: Vec
    axes: Mat  # columns as rows: axes[i] is the i-th axis of the constraint frame
    velocity: Vec
    omega: Vec
    acceleration: Vec
    turning: Mat


@dataclass(frozen=True, slots=True)
class RowEvaluation:
    """A row's value φ and its gradient.

    φ̇ = force · (ẋ_s - ẋ_p) + moment_successor · ω_s + moment_predecessor · ω_p.
    """

    value: Scalar
    force: Vec
    moment_successor: Vec
    moment_predecessor: Vec


class LoopRow(Protocol):
    """One scalar condition between the ends of a loop, over scalars of any kind."""

    def evaluate(self, p: LoopEnd, s: LoopEnd) -> RowEvaluation:
        """The condition and its gradient between predecessor's and successor's ends."""

    def bias(self, p: LoopEnd, s: LoopEnd) -> Scalar:
        """φ̈ at zero joint acceleration."""


@dataclass(frozen=True, slots=True)
class Coincident:
    """The two points coincide along coordinate axis ``k`` of the common ancestor."""

    k: int

    def evaluate(self, p: LoopEnd, s: LoopEnd) -> RowEvaluation:
        """φ = e · (x_s - x_p)."""
        return RowEvaluation(s.x[self.k] - p.x[self.k], UNIT[self.k], ZERO, ZERO)

    def bias(self, p: LoopEnd, s: LoopEnd) -> Scalar:
        """φ̈ at zero joint acceleration."""
        return s.acceleration[self.k] - p.acceleration[self.k]


@dataclass(frozen=True, slots=True)
class InPlane:
    """The successor's point stays in the predecessor's plane normal to its axis ``k``."""

    k: int

    def evaluate(self, p: LoopEnd, s: LoopEnd) -> RowEvaluation:
        """φ = u · (x_s - x_p), u fixed to the predecessor."""
        u, d = p.axes[self.k], minus(s.x, p.x)
        return RowEvaluation(inner(u, d), u, ZERO, cross(u, d))

    def bias(self, p: LoopEnd, s: LoopEnd) -> Scalar:
        """φ̈ at zero joint acceleration."""
        u, d = p.axes[self.k], minus(s.x, p.x)
        return inner(u, minus(s.acceleration, p.acceleration)) + (
            2.0 * inner(cross(p.omega, u), minus(s.velocity, p.velocity))
            + inner(apply(p.turning, u), d)
        )


@dataclass(frozen=True, slots=True)
class Perpendicular:
    """Predecessor's axis ``i`` stays perpendicular to the successor's axis ``j``."""

    i: int
    j: int

    def evaluate(self, p: LoopEnd, s: LoopEnd) -> RowEvaluation:
        """φ = a · b, a fixed to the predecessor and b to the successor."""
        a, b = p.axes[self.i], s.axes[self.j]
        moment = cross(b, a)
        return RowEvaluation(inner(a, b), ZERO, moment, (-moment[0], -moment[1], -moment[2]))

    def bias(self, p: LoopEnd, s: LoopEnd) -> Scalar:
        """φ̈ at zero joint acceleration."""
        a, b = p.axes[self.i], s.axes[self.j]
        return (
            inner(apply(p.turning, a), b)
            + inner(a, apply(s.turning, b))
            + 2.0 * inner(cross(p.omega, a), cross(s.omega, b))
        )


@dataclass(frozen=True, slots=True)
class Aligned:
    """The predecessor's axis ``i`` points the same way as the successor's axis ``i``.

    Beside rows that make the two axes parallel it only tells aligned axes from opposite ones.
    """

    i: int

    def evaluate(self, p: LoopEnd, s: LoopEnd) -> RowEvaluation:
        """φ = a · b - 1."""
        row = Perpendicular(self.i, self.i).evaluate(p, s)
        return replace(row, value=row.value - 1.0)

    def bias(self, p: LoopEnd, s: LoopEnd) -> Scalar:
        """φ̈ at zero joint acceleration."""
        return Perpendicular(self.i, self.i).bias(p, s)


@dataclass(frozen=True, slots=True)
class Distance:
    """The two points keep the distance L: φ = (|x_s - x_p|² - L²) / 2L.

    Near closure φ is the error of the distance [m].
    """

    length: float

    def evaluate(self, p: LoopEnd, s: LoopEnd) -> RowEvaluation:
        """φ and its gradient, which is the rod's direction near closure."""
        d = minus(s.x, p.x)
        inverse = 1.0 / self.length
        value = 0.5 * inverse * (inner(d, d) - self.length * self.length)
        return RowEvaluation(value, scale(inverse, d), ZERO, ZERO)

    def bias(self, p: LoopEnd, s: LoopEnd) -> Scalar:
        """φ̈ at zero joint acceleration."""
        d, rate = minus(s.x, p.x), minus(s.velocity, p.velocity)
        along = inner(d, minus(s.acceleration, p.acceleration)) + inner(rate, rate)
        return (1.0 / self.length) * along


ROWS: Mapping[str, tuple[LoopRow, ...]] = {
    # the constraint frames' axis 0 is the joint's axis; universal: axis 1 of the successor's frame
    "fixed": (
        *(Coincident(k) for k in range(3)),
        Perpendicular(1, 0),
        Perpendicular(2, 0),
        Perpendicular(1, 2),
    ),
    "revolute": (*(Coincident(k) for k in range(3)), Perpendicular(1, 0), Perpendicular(2, 0)),
    "prismatic": (
        InPlane(1),
        InPlane(2),
        Perpendicular(1, 0),
        Perpendicular(2, 0),
        Perpendicular(1, 2),
    ),
    "planar": (InPlane(0), Perpendicular(1, 0), Perpendicular(2, 0)),
    "spherical": tuple(Coincident(k) for k in range(3)),
    "universal": (*(Coincident(k) for k in range(3)), Perpendicular(0, 1)),
}


@dataclass(frozen=True, slots=True)
class BodyAnchor:
    """An end of a loop or spring on a body: a point and axes, in the body's internal axes.

    ``axes[i]`` is the i-th axis of the constraint's frame. For loops ``body`` counts within the
    cluster, and is :data:`OUTSIDE` on the common ancestor; for springs it counts over the robot.
    """

    body: int
    point: Vec
    axes: Mat


@dataclass(frozen=True, slots=True)
class LoopJoint:
    """A loop joint's rows between two anchors.

    ``branches`` are the bodies on the way from the common ancestor, which is left out, to each end;
    they count within the cluster.
    """

    name: str
    rows: tuple[LoopRow, ...]
    predecessor: BodyAnchor
    successor: BodyAnchor
    branches: tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Polynomial:
    """q(joint) = Σ coefficients[i] · q(of)ⁱ, of links within the cluster with one freedom each."""

    name: str
    joint: int
    of: int
    coefficients: tuple[float, ...]

    @property
    def rows(self) -> tuple[Polynomial]:
        """Its one condition."""
        return (self,)

    @property
    def branches(self) -> tuple[tuple[int], tuple[int]]:
        """The links that it relates."""
        return (self.joint,), (self.of,)

    def derivative(self, x: Scalar, order: int = 0) -> Scalar:
        """The polynomial, or a derivative of it, at q(of) = x, by Horner's scheme."""
        total: Scalar = 0.0
        for power, coefficient in reversed(list(enumerate(self.coefficients))[order:]):
            total = total * x + coefficient * float(math.perm(power, order))
        return total

    def evaluate(
        self, links: Sequence[Link], q: Vector, qd: Vector | None
    ) -> tuple[Scalar, Mapping[int, Scalar], Scalar]:
        """φ = q(joint) - p(q(of)), its derivative by each velocity, and φ̈ at zero acceleration."""
        link, other = links[self.joint], links[self.of]
        x = q[other.q]
        bias: Scalar = 0.0
        if qd is not None:
            rate = qd[other.v]
            bias = -(self.derivative(x, 2) * (rate * rate))
        slopes = {link.v: 1.0, other.v: -self.derivative(x, 1)}
        return q[link.q] - self.derivative(x), slopes, bias


LoopCondition: TypeAlias = LoopJoint | Polynomial


# ---- values, Jacobian, bias ---------------------------------------------------------------------


OUTSIDE = -1  # the parent of bodies that hang on other clusters


@dataclass(frozen=True, slots=True)
class BodyPose:
    """Pose of a body in the ancestor: rotation R (rows) and origin."""

    rotation: Mat
    origin: Vec


@dataclass(frozen=True, slots=True)
class BodyRates:
    """Velocity and, at zero joint acceleration, acceleration of a body relative to the ancestor."""

    omega: Vec
    velocity: Vec
    alpha: Vec
    acceleration: Vec

    def turning(self) -> Mat:
        """U = [α]x + [ω]x²: second derivative of a body-fixed vector r is U r."""
        return sum_matrices(skew(self.alpha), skew_squared(self.omega))


AT_ANCESTOR = BodyPose(UNIT, ZERO)


AT_REST = BodyRates(ZERO, ZERO, ZERO, ZERO)


def _after(parent: BodyPose, x: Transform) -> BodyPose:
    rotation = parent.rotation
    for step in reversed(x.rotations):
        rotation = matmul(rotation, Transform((step,), ZERO).matrix())
    return BodyPose(rotation, plus(parent.origin, apply(parent.rotation, x.offset)))


def _rates_after(
    parent: BodyRates, at: BodyPose, pose: BodyPose, link: Link, qd: Vector
) -> BodyRates:
    relative = relative_motion(link.joint, qd[link.velocities])
    turn, slide = apply(pose.rotation, relative.angular), apply(pose.rotation, relative.linear)
    arm = minus(pose.origin, at.origin)
    omega = plus(parent.omega, turn)
    return BodyRates(
        omega,
        plus(plus(parent.velocity, cross(parent.omega, arm)), slide),
        plus(parent.alpha, cross(parent.omega, turn)),
        plus(
            plus(parent.acceleration, apply(parent.turning(), arm)),
            cross(plus(parent.omega, omega), slide),
        ),
    )


def _end(anchor: BodyAnchor, pose: BodyPose, rates: BodyRates) -> LoopEnd:
    """An anchor on a body in the axes of the ancestor."""
    turn = pose.rotation
    arm = apply(turn, anchor.point)
    axes = (
        apply(turn, anchor.axes[0]),
        apply(turn, anchor.axes[1]),
        apply(turn, anchor.axes[2]),
    )
    x = plus(pose.origin, arm)
    if rates is AT_REST:
        return LoopEnd(x, axes, ZERO, ZERO, ZERO, (ZERO, ZERO, ZERO))
    turning = rates.turning()
    return LoopEnd(
        x,
        axes,
        plus(rates.velocity, cross(rates.omega, arm)),
        rates.omega,
        plus(rates.acceleration, apply(turning, arm)),
        turning,
    )


@dataclass(frozen=True, slots=True)
class LoopRows:
    """Values φ, Jacobian K and bias (φ̈ at zero joint acceleration) of a set of loop rows."""

    values: list[Scalar]
    jacobian: list[list[Scalar]]
    bias: list[Scalar]


def evaluate_loops(
    links: Sequence[Link],
    loops: Sequence[LoopCondition],
    q: Vector,
    qd: Vector | None = None,
    keep: frozenset[tuple[int, int]] | None = None,
    *,
    matrix: bool = True,
) -> LoopRows:
    """All rows of loops and polynomials at a cluster's spanning positions (and velocities).

    ``keep`` selects (loop, row) pairs; None takes all. Without ``qd`` biases are zero. Without
    ``matrix`` rows of loop joints have no Jacobian.
    """
    transforms = [link.transform(q) for link in links]
    columns = sum(link.joint.nv for link in links)
    result = LoopRows([], [], [])
    poses: dict[tuple[int, int], BodyPose] = {}
    motions: dict[tuple[int, int], BodyRates] = {}

    def end(anchor: BodyAnchor, branch: tuple[int, ...]) -> LoopEnd:
        """Walk the branch from the ancestor (poses and rates are shared between loops)."""
        start = links[branch[0]].parent if branch else OUTSIDE
        pose, rates = AT_ANCESTOR, AT_REST
        for body in branch:
            at = pose
            pose = poses.get((start, body)) or _after(at, transforms[body])
            poses[start, body] = pose
            if qd is not None:
                rates = motions.get((start, body)) or _rates_after(rates, at, pose, links[body], qd)
                motions[start, body] = rates
        return _end(anchor, pose, rates)

    for n, loop in enumerate(loops):
        if isinstance(loop, Polynomial):
            if keep is None or (n, 0) in keep:
                value, slopes, bias = loop.evaluate(links, q, qd)
                result.values.append(value)
                result.jacobian.append([slopes.get(c, 0.0) for c in range(columns)])
                result.bias.append(bias)
            continue
        p, s = (
            end(anchor, branch)
            for anchor, branch in zip(
                (loop.predecessor, loop.successor), loop.branches, strict=True
            )
        )
        starts = [links[branch[0]].parent if branch else OUTSIDE for branch in loop.branches]
        turned = [
            [_turned(links[body], poses[start, body]) for body in branch]
            for start, branch in zip(starts, loop.branches if matrix else (), strict=matrix)
        ]
        for r, row in enumerate(loop.rows):
            if keep is not None and (n, r) not in keep:
                continue
            row_at = row.evaluate(p, s)
            result.values.append(row_at.value)
            result.bias.append(row.bias(p, s) if qd is not None else 0.0)
            if not matrix:
                continue
            entries: list[Scalar] = [0.0] * columns
            for k, x, force, moment in (
                (0, p.x, scale(-1.0, row_at.force), row_at.moment_predecessor),
                (1, s.x, row_at.force, row_at.moment_successor),
            ):
                for body, axes in zip(loop.branches[k], turned[k], strict=True):
                    arm = minus(x, poses[starts[k], body].origin)
                    about = plus(cross(arm, force), moment)
                    link = links[body]
                    entries[link.v : link.v + link.joint.nv] = [
                        inner(about, angular) + inner(force, linear) for angular, linear in axes
                    ]
            result.jacobian.append(entries)
    return result


def _turned(link: Link, pose: BodyPose) -> list[tuple[Vec, Vec]]:
    """The joint's motions, angular and linear, in the axes of the ancestor."""
    return [
        (apply(pose.rotation, motion.angular), apply(pose.rotation, motion.linear))
        for motion in link.joint.subspace
    ]


@dataclass(frozen=True, slots=True)
class Link:
    """A body of a cluster with its joint, for the kinematics of constraints.

    ``rotations`` and ``offset`` place the joint on the parent. ``parent`` is an index within the
    cluster, or :data:`OUTSIDE`. ``q`` and ``v`` are the indices of the joint's first spanning
    position and velocity within the cluster.
    """

    joint: JointModel
    rotations: tuple[Rotation, ...]
    offset: Vec
    parent: int
    q: int
    v: int

    @property
    def positions(self) -> slice:
        """The places of its spanning positions."""
        return slice(self.q, self.q + self.joint.nq)

    @property
    def velocities(self) -> slice:
        """The places of its spanning velocities."""
        return slice(self.v, self.v + self.joint.nv)

    @property
    def freedoms(self) -> range:
        """The places of its spanning velocities, one by one."""
        return range(self.v, self.v + self.joint.nv)

    def transform(self, q: Vector) -> Transform:
        """Placement of the body in its parent at the cluster's spanning positions."""
        return placement(self.joint, self.rotations, self.offset, q[self.positions])


def placement(
    joint: JointModel, rotations: tuple[Rotation, ...], offset: Vec, q: Vector
) -> Transform:
    """Transform of a child whose joint frame is at ``rotations``, ``offset`` on the parent."""
    turn, shift = joint.placement(q)
    for rotation in rotations:
        shift = rotation.rotate(shift)
    return Transform((*turn, *rotations), plus(offset, shift))


# ---- G and g of clusters -------------------------------------------------------------------------


Conditions: TypeAlias = tuple[list[list[Scalar]], list[Scalar]]
Rows: TypeAlias = Sequence[Sequence[Scalar]]


class Constraint(Protocol):
    """How a cluster's spanning positions and velocities follow from its q and v."""

    def positions(self, q: Vector) -> list[Scalar]:
        """Spanning positions from the cluster's q."""

    def jacobian(self, positions: Vector) -> list[list[Scalar]]:
        """G: spanning velocities by independent velocities."""

    def bias(self, positions: Vector, velocities: Vector) -> list[Scalar]:
        """g: the spanning accelerations at zero independent acceleration."""

    def conditions(self, positions: Vector, velocities: Vector) -> Conditions:
        """K and k of as many conditions as there are dependent velocities: K q̇ = 0, K q̈ = k."""


@dataclass(frozen=True, slots=True)
class Unconstrained:
    """A single joint's cluster: G = 1."""

    nv: int

    def positions(self, q: Vector) -> list[Scalar]:
        """The positions themselves."""
        return list(q)

    def jacobian(self, positions: Vector) -> list[list[Scalar]]:
        """The identity."""
        return [[1.0 if i == j else 0.0 for j in range(self.nv)] for i in range(self.nv)]

    def bias(self, positions: Vector, velocities: Vector) -> list[Scalar]:
        """Zero."""
        return [0.0] * self.nv

    def conditions(self, positions: Vector, velocities: Vector) -> Conditions:
        """None."""
        return [], []


@dataclass(frozen=True, slots=True)
class LinearConstraint:
    """Explicit: a constant G = ``matrix``; positions = ``position_matrix`` · q + ``offset``.

    The two matrices differ only where the cluster also holds a joint whose nq is not its nv.
    """

    matrix: tuple[tuple[float, ...], ...]
    position_matrix: tuple[tuple[float, ...], ...]
    offset: tuple[float, ...]

    def positions(self, q: Vector) -> list[Scalar]:
        """Spanning positions, linear in the independent ones."""
        return [
            dot(row, q) + offset
            for row, offset in zip(self.position_matrix, self.offset, strict=True)
        ]

    def jacobian(self, positions: Vector) -> list[list[Scalar]]:
        """The constant matrix."""
        return [list(row) for row in self.matrix]

    def bias(self, positions: Vector, velocities: Vector) -> list[Scalar]:
        """Zero."""
        return [0.0] * len(self.matrix)

    def conditions(self, positions: Vector, velocities: Vector) -> Conditions:
        """For every dependent velocity, that it is its row of G times the independent ones."""
        rows = dependent_rows(self.matrix)
        return rows, [0.0] * len(rows)


@dataclass(frozen=True, slots=True)
class PolynomialConstraint:
    """Explicit: spanning positions are linear in z, the independent positions and then polynomials.

    z is computed in its order: the argument of each polynomial is linear in the entries of z before
    it. ``linear`` has a column for each entry of z.
    """

    links: tuple[Link, ...]
    linear: LinearConstraint
    polynomials: tuple[Polynomial, ...]

    def positions(self, q: Vector) -> list[Scalar]:
        """Spanning positions: each polynomial's value in turn, then what is linear in them."""
        z = list(q)
        for each in self.polynomials:
            row = self.links[each.of].q
            x = dot(self.linear.position_matrix[row][: len(z)], z) + self.linear.offset[row]
            z.append(each.derivative(x))
        return self.linear.positions(z)

    def jacobian(self, positions: Vector) -> list[list[Scalar]]:
        """G = matrix · ∂z/∂q."""
        count = len(self.linear.matrix[0]) - len(self.polynomials)
        rows = Unconstrained(count).jacobian(())
        for each in self.polynomials:
            link = self.links[each.of]
            slope, weights = each.derivative(positions[link.q], 1), self.linear.matrix[link.v]
            columns = transposed(rows)
            rows.append([slope * dot(weights[: len(rows)], column) for column in columns])
        columns = transposed(rows)
        return [[dot(row, column) for column in columns] for row in self.linear.matrix]

    def bias(self, positions: Vector, velocities: Vector) -> list[Scalar]:
        """g = matrix · z̈ at zero independent acceleration: p'(x) ẍ + p''(x) ẋ² in turn."""
        z: list[Scalar] = [0.0] * (len(self.linear.matrix[0]) - len(self.polynomials))
        for each in self.polynomials:
            link = self.links[each.of]
            x, rate = positions[link.q], velocities[link.v]
            inner = each.derivative(x, 1) * dot(self.linear.matrix[link.v][: len(z)], z)
            z.append(inner + each.derivative(x, 2) * (rate * rate))
        return [dot(row, z) for row in self.linear.matrix]

    def conditions(self, positions: Vector, velocities: Vector) -> Conditions:
        """The rows that are linear in z, then one for each polynomial."""
        powers = evaluate_loops(self.links, self.polynomials, positions, velocities)
        rows, right = self.linear.conditions(positions, velocities)
        return [*rows, *powers.jacobian], [*right, *(-b for b in powers.bias)]


@dataclass(frozen=True, slots=True)
class Block:
    """A diagonal block of the dependent velocities' system: its rows and its columns."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoopConstraint:
    """Implicit: K(q) q̇ = 0 of loop joints, with linear couplings eliminated beforehand.

    Spanning velocities are ``expand`` · z. z holds the independent velocities (its columns
    ``independent``) and those that the loops determine, which are solved for block by block.
    ``keep`` are the (loop, row) pairs that determine them. K_i and K_d are the columns of K ·
    expand of independent and of dependent velocities. ``units`` are the lengths that the columns of
    K · expand usually have. Where K_d is singular to rounding, G and g are nan.
    """

    links: tuple[Link, ...]
    loops: tuple[LoopCondition, ...]
    keep: frozenset[tuple[int, int]]
    expand: tuple[tuple[float, ...], ...]
    independent: tuple[int, ...]
    blocks: tuple[Block, ...]
    units: tuple[float, ...]

    def positions(self, q: Vector) -> list[Scalar]:
        """The positions themselves: an implicit cluster's q holds all of them."""
        return list(q)

    def _dependent(self, jacobian: Rows, right: Rows) -> dict[int, list[Scalar]]:
        """Solve K_d x = right for every dependent column of z."""
        reduced = self.reduced(jacobian)
        solution: dict[int, list[Scalar]] = {}
        for block in self.blocks:
            sides = []
            for r in block.rows:
                side = list(right[r])
                for column, solved in solution.items():
                    if not is_zero(reduced[r][column]):
                        side = [
                            b - reduced[r][column] * x for b, x in zip(side, solved, strict=True)
                        ]
                sides.append(side)
            matrix, units = self._block(reduced, block)
            rates = solve(matrix, sides, floor=NOTHING, units=units)
            solution.update(zip(block.columns, rates, strict=True))
        return solution

    def reduced(self, jacobian: Rows) -> list[list[Scalar]]:
        """K · expand."""
        columns = [[(i, x) for i, x in enumerate(column) if not is_zero(x)]
                   for column in zip(*self.expand, strict=True)]  # fmt: skip
        return [
            [sparse_dot([row[i] for i, _ in column], [x for _, x in column]) for column in columns]
            for row in jacobian
        ]

    def _block(self, reduced: Rows, block: Block) -> tuple[list[list[Scalar]], list[float]]:
        """A diagonal block of K_d, and the units of its columns."""
        matrix = [[reduced[r][c] for c in block.columns] for r in block.rows]
        return matrix, [self.units[c] for c in block.columns]

    def regularity(self, positions: Vector) -> Scalar:
        """The least sin² between a column of K_d and those before it, 0 where it is singular."""
        reduced = self.reduced(self.rows(positions)[1])
        least: Scalar = 1.0
        for block in self.blocks:
            least = minimum(regularity(*self._block(reduced, block)), least)
        return least

    def conditions(self, positions: Vector, velocities: Vector) -> Conditions:
        """The loops' rows, then the couplings'; redundant ones are combined to K_dᵀ K."""
        loops = evaluate_loops(self.links, self.loops, positions, velocities, keep=self.keep)
        rows, right = loops.jacobian, [-b for b in loops.bias]
        columns = list(zip(*self.expand, strict=True))
        dependent = [c for c in range(len(columns)) if c not in self.independent]
        if len(rows) > len(dependent):
            weights = [[dot(row, columns[c]) for row in rows] for c in dependent]
            right = [dot(w, right) for w in weights]
            rows = [[dot(w, entries) for entries in zip(*rows, strict=True)] for w in weights]
        couplings = dependent_rows(self.expand)
        return [*rows, *couplings], [*right, *([0.0] * len(couplings))]

    def _spanning(self, z: Sequence[Scalar]) -> list[Scalar]:
        return [sparse_dot(row, z) for row in self.expand]

    def jacobian(self, positions: Vector) -> list[list[Scalar]]:
        """G = expand · [1; -K_d⁻¹ K_i]."""
        rows = evaluate_loops(self.links, self.loops, positions, keep=self.keep).jacobian
        m = len(self.independent)
        columns = list(zip(*self.expand, strict=True))
        right = [[-sparse_dot(row, columns[i]) for i in self.independent] for row in rows]
        solution = self._dependent(rows, right)
        for n, i in enumerate(self.independent):
            solution[i] = [1.0 if n == j else 0.0 for j in range(m)]
        z = [solution[i] for i in range(len(columns))]
        by_column = [self._spanning([row[j] for row in z]) for j in range(m)]
        return transposed(by_column)

    def bias(self, positions: Vector, velocities: Vector) -> list[Scalar]:
        """g = expand · [0; K_d⁻¹ k]."""
        loops = evaluate_loops(self.links, self.loops, positions, velocities, keep=self.keep)
        return self.held(loops.jacobian, [-b for b in loops.bias])

    def rows(self, positions: Vector) -> tuple[list[Scalar], list[list[Scalar]]]:
        """Values and Jacobian of the independent loop rows."""
        loops = evaluate_loops(self.links, self.loops, positions, keep=self.keep)
        return loops.values, loops.jacobian

    def closing(self, positions: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """Newton's step that closes the loops, as joint motion, and the gaps; v does not move."""
        values, jacobian = self.rows(positions)
        return self.held(jacobian, [-x for x in values]), values

    def held(self, jacobian: Rows, right: Vector) -> list[Scalar]:
        """The joint motion with K x = right and v = 0: expand · [0; K_d⁻¹ right]."""
        solution = self._dependent(jacobian, [[x] for x in right])
        return self._spanning(
            [solution[i][0] if i in solution else 0.0 for i in range(len(self.expand[0]))]
        )


def unit_rows(matrix: Sequence[Sequence[float]]) -> list[int]:
    """For each column, the first row that is 1 in it and 0 elsewhere."""
    alone = [[c for c, x in enumerate(row) if not is_zero(x)] for row in matrix]
    return [
        next(i for i, row in enumerate(matrix) if alone[i] == [c] and is_one(row[c]))
        for c in range(len(matrix[0]))
    ]


def dependent_rows(matrix: Sequence[Sequence[float]]) -> list[list[Scalar]]:
    """x_i = matrix_i · y as rows on x, where y are the entries of x in ``unit_rows``."""
    first = unit_rows(matrix)
    rows: list[list[Scalar]] = []
    for i, row in enumerate(matrix):
        if i not in first:
            condition: list[Scalar] = [0.0] * len(matrix)
            condition[i] = 1.0
            for at, x in zip(first, row, strict=True):
                condition[at] = -x
            rows.append(condition)
    return rows
