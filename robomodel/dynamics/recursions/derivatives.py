"""Derivatives of inverse and forward dynamics, along the tangents of the configurations.

Independent v, a and tau are held while positions move. Forward dynamics follows from inverse
dynamics, ID(q, v, a) = tau: differentiated at the a that solves it, M ∂a = -∂ID (Carpentier and
Mansard, Analytical derivatives of rigid body dynamics algorithms, RSS 2018).

Inverse dynamics is differentiated by recursion, over clusters, in O(n · depth) operations: for open
trees after Singh, Russell and Wensing (Efficient analytical derivatives of rigid-body dynamics
using spatial vector algebra, RA-L 2022) and Carpentier and Mansard; here on conventional
accelerations in the bodies' own axes, and for clusters.

*One joint.* The joint of body l moves by its motion s (s_a angular, s_l linear, fixed to the
parent's axes while v stays). At the body's origin, seen by an observer who moves with the parent's
point there: the parent turns with ω, [α]x + [ω]x² = U, and its point accelerates with a; the body
slides with σ and turns with ω'. Then a point r, whose velocity is v(r), changes its acceleration by

    z(r) = m_l + m_a x r + 2 t x v(r):     (m, t) = ((U s_a, U s_l + a x s_a), ω x s_a)    by q,
                                         (((ω + ω') x s_a, (ω + ω') x s_l + σ x s_a), s_a)  by q̇,
                                                                                 (s, 0)    by q̈,

in the body's axes, and the same in all bodies that it carries. What gives them this acceleration is
the wrench I m + 2 (B t, t x p), with the inertia I, the momentum p = Σ m v and B = tr(Q) 1 - Q,
Q = Σ m v rᵀ, of the body and all that it carries (:class:`MomentumMoments`). Seen from bodies
further inwards the carried wrench f, external ones included, also turns: s x* f.

*Rows and columns.* That wrench, carried inwards, meets the motions of all joints on its way: the
rows of a column of the derivatives. The other way round, the change of joint i's force by a joint
that carries it is linear in the carrier's (m, t) at i: it is f_i · m + t_i · t with f_i = I s_i and
t_i = 2 (Bᵀ s_a + p x s_l), and these two are carried inwards as well (:class:`ForceColumn`).

*Clusters.* q̇ = G v and q̈ = G a + g, so that along the independent direction j the joints of a
cluster move by G_j, and q̇, q̈ change by ∂_j(G v) and ∂_j(G a + g); by v_j they change by G_j and
∂g/∂v_j. The columns of a cluster's joints, so weighted, are those of its directions, and the rows
are weighted with G; what the joints' forces τ = Sᵀ f + armature · q̈ do with G's own change is
∂_j(Gᵀ) τ. These derivatives of G and g, functions of the cluster's own coordinates, are taken on
their trace; linear couplings have none, as their G is constant.

*Second derivatives* of inverse dynamics are contracted with a vector, for exact Hessians. φ =
wᵀ rnea(q, v, a) is one number. Its first derivatives, by one backward pass over the trace, take
twice the operations of φ itself. They are then differentiated forward. Only two joints of which one
carries the other contribute; the derivative by the inner one is differentiated by the outer one, so
that only the outer one's subtree varies, with its share of the composite quantities further
inwards.

Along q the second derivative is that of φ(integrate(q, δ)) at δ = 0. Joints whose motions do not
commute (balls, floating and planar ones) have the mean of both orders there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from robomodel.dynamics.kinematics.state import (
    NO_FORCES,
    AccelerationField,
    Direction,
    Forces,
    Matrix,
    State,
    position_directions,
)
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.rnea import bias_force, rnea
from robomodel.kernels.differentiate import differentiate, gradient
from robomodel.kernels.trace import Trace, Traced
from robomodel.mechanism.graph import WORLD
from robomodel.mechanism.joints import Floating
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    dot,
    is_zero,
    subtracted,
    transposed,
)
from robomodel.spatial import (
    NO_MOTION,
    NO_WRENCH,
    UNIT,
    ZERO,
    Mat,
    Motion,
    RigidInertia,
    Transform,
    Vec,
    Wrench,
    apply,
    cross,
    inner,
    matmul,
    plus,
    scale,
    skew,
    skew_squared,
    sum_matrices,
)


@dataclass(frozen=True, slots=True)
class Variation:
    """A change of accelerations: z(r) = ``motion`` at r + 2 ``turning`` x v(r)."""

    motion: Motion
    turning: Vec

    def __add__(self, other: Variation) -> Variation:
        return Variation(self.motion + other.motion, plus(self.turning, other.turning))

    def scaled(self, k: Scalar) -> Variation:
        """``k`` times this variation."""
        return Variation(self.motion.scaled(k), scale(k, self.turning))

    def entries(self) -> tuple[Scalar, ...]:
        """Its nine numbers."""
        return (*self.motion.entries(), *self.turning)


NO_VARIATION = Variation(NO_MOTION, ZERO)


@dataclass(frozen=True, slots=True)
class MomentumMoments:
    """``moment`` 2 Σ m v rᵀ and ``momentum`` 2 Σ m v of points r that move with velocities v."""

    moment: Mat
    momentum: Vec

    @classmethod
    def of(cls, inertia: RigidInertia, omega: Vec, slide: Vec) -> MomentumMoments:
        """The moments of a rigid body that turns with ω and slides."""
        turn, along = scale(2.0, omega), scale(2.0, slide)
        moment = matmul(skew(turn), inertia.second_moments)
        return cls(
            sum_matrices(moment, _dyad(along, inertia.h)),
            plus(cross(turn, inertia.h), scale(inertia.mass, along)),
        )

    def __add__(self, other: MomentumMoments) -> MomentumMoments:
        return MomentumMoments(
            sum_matrices(self.moment, other.moment), plus(self.momentum, other.momentum)
        )

    def in_parent(self, x: Transform, drift: Vec, inertia: RigidInertia) -> MomentumMoments:
        """The moments for an observer in the parent, whose origin moves away with ``drift`` / 2.

        ``inertia`` is that of the same points, in the parent.
        """
        moment = self.moment
        for rotation in x.rotations:
            moment = rotation.conjugate(moment)
        momentum = x.rotate(self.momentum)
        shifted = sum_matrices(_dyad(momentum, x.offset), _dyad(drift, inertia.h))
        return MomentumMoments(
            sum_matrices(moment, shifted), plus(momentum, scale(inertia.mass, drift))
        )

    def wrench(self, turning: Vec) -> Wrench:
        """2 (B t, t x p)."""
        return Wrench(self._about(turning, self.moment), cross(turning, self.momentum))

    def transposed(self, motion: Motion) -> Vec:
        """2 (Bᵀ s_a + p x s_l), so that this · t is the power of :meth:`wrench` on the motion."""
        columns = tuple(zip(*self.moment, strict=True))
        return plus(self._about(motion.angular, columns), cross(self.momentum, motion.linear))

    def _about(self, t: Vec, m: Sequence[Vec]) -> Vec:
        """(tr(m) 1 - m) t, without what cancels on the diagonal."""
        result = []
        for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            along = (self.moment[j][j] + self.moment[k][k]) * t[i]
            result.append(along - (m[i][j] * t[j] + m[i][k] * t[k]))
        return result[0], result[1], result[2]


def _dyad(a: Vec, b: Vec) -> Mat:
    """a bᵀ."""
    return scale(a[0], b), scale(a[1], b), scale(a[2], b)


@dataclass(frozen=True, slots=True)
class ForceColumn:
    """The effect of one direction on a body that it moves, and of the body's carriers on its row.

    ``by_q`` and ``by_v`` are changes of the wrench on the body. Under a carrier's variation (m, t)
    the direction's own force changes by ``force`` · m + ``turn`` · t.
    """

    by_q: Wrench
    by_v: Wrench
    force: Wrench
    turn: Vec

    def __add__(self, other: ForceColumn) -> ForceColumn:
        return ForceColumn(
            self.by_q + other.by_q,
            self.by_v + other.by_v,
            self.force + other.force,
            plus(self.turn, other.turn),
        )

    def in_parent(self, x: Transform, drift: Vec) -> ForceColumn:
        """The column in the parent, from whose origin the body's moves away with ``drift`` / 2."""
        force = x.to_parent(self.force)
        turn = plus(x.rotate(self.turn), cross(drift, force.force))
        return ForceColumn(x.to_parent(self.by_q), x.to_parent(self.by_v), force, turn)

    def force_change(self, variation: Variation) -> Scalar:
        """The change of the row's force under a carrier's variation."""
        return self.force.dot(variation.motion) + inner(self.turn, variation.turning)


def tau_derivatives(
    model: Model, q: Sequence[Traced], v: Sequence[Traced], a: Vector, f_ext: Forces = NO_FORCES
) -> tuple[Matrix, Matrix]:
    """∂tau/∂q and ∂tau/∂v (nv by nv) at traced q and v; ``a`` and ``f_ext`` count as constant.

    ``f_ext``: body → wrench on it, in its internal axes, in which it stays the same.
    """
    state = State(model, q, f_ext, v)
    rates = state.accelerations(a)
    points = list(state.points(rates))
    inertia = list(state.inertia)
    moments, wrench = [], []
    for body in range(len(model.nodes)):
        moments.append(
            MomentumMoments.of(inertia[body], state.omega[body], state.relative[body].linear)
        )
        moved = inertia[body].newton_euler(points[body].linear, points[body].around)
        wrench.append(moved - f_ext.get(body, NO_WRENCH))
    by_q: Matrix = [[0.0] * model.nv for _ in range(model.nv)]
    by_v: Matrix = [[0.0] * model.nv for _ in range(model.nv)]
    hanging: list[dict[int, ForceColumn]] = [{} for _ in model.nodes]
    directions = position_directions(model, q)
    for cluster in reversed(model.clusters):
        along = range(cluster.v.start, cluster.v.stop)
        changes = _Changes.of(state, cluster, rates, directions[cluster.v], v[cluster.v])
        forces: dict[int, Scalar] = {}
        for body in reversed(cluster.bodies):
            node, x, columns = model.nodes[body], state.transforms[body], hanging[body]
            still = node.axisymmetric and body not in f_ext  # its position has no effect
            variations = _variations(state, changes, body, points[body], still=still)
            for j, column in columns.items():
                for i, (q_i, v_i, _) in zip(along, variations, strict=True):
                    by_q[j][i] = by_q[j][i] + column.force_change(q_i)
                    by_v[j][i] = by_v[j][i] + column.force_change(v_i)
            for i, (q_i, v_i, motion) in zip(along, variations, strict=True):
                if all(is_zero(n) for n in (*q_i.entries(), *v_i.entries(), *motion.entries())):
                    continue
                column = ForceColumn(
                    inertia[body] * q_i.motion + moments[body].wrench(q_i.turning),
                    inertia[body] * v_i.motion + moments[body].wrench(v_i.turning),
                    inertia[body] * motion,
                    moments[body].transposed(motion),
                )
                columns[i] = columns[i] + column if i in columns else column
            for r, s in zip(node.freedoms, node.joint.subspace, strict=True):
                forces[r] = wrench[body].dot(s) + node.armature * rates[r]
                for j, column in columns.items():
                    at_q, at_v = column.by_q.dot(s), column.by_v.dot(s)
                    if j in along:
                        k = j - along.start
                        at_q = at_q + node.armature * changes.accelerations[r][k]
                        at_v = at_v + node.armature * changes.bias[r][k]
                    for i, weight in zip(along, state.rows[r], strict=True):
                        by_q[i][j] = by_q[i][j] + weight * at_q
                        by_v[i][j] = by_v[i][j] + weight * at_v
            if (parent := node.parent) == WORLD:
                continue
            if not still:
                for i, (_, _, motion) in zip(along, variations, strict=True):
                    if i in columns:
                        turned = columns[i].by_q + wrench[body].turned(motion)
                        columns[i] = replace(columns[i], by_q=turned)
            drift = plus(state.relative[parent].linear, cross(state.omega[parent], x.offset))
            drift = scale(2.0, drift)
            for j, column in columns.items():
                moved_column, parent_columns = column.in_parent(x, drift), hanging[parent]
                parent_columns[j] = (
                    parent_columns[j] + moved_column if j in parent_columns else moved_column
                )
            carried = inertia[body].in_parent(x)
            inertia[parent] += carried
            moments[parent] += moments[body].in_parent(x, drift, carried)
            wrench[parent] += x.to_parent(wrench[body])
        for i, row in zip(along, changes.weights(state, forces), strict=True):
            for j, change in zip(along, row, strict=True):
                by_q[i][j] = by_q[i][j] + change
    return by_q, by_v


def _variations(
    state: State, changes: _Changes, body: int, points: AccelerationField, *, still: bool
) -> list[tuple[Variation, Variation, Motion]]:
    """The cluster's directions through this joint: variations by q and by v, and the motion.

    ``still``: the joint's position has no effect.
    """
    node, omega, origin = (
        state.model.nodes[body],
        state.parent_omega[body],
        points.parent_motion.linear,
    )
    slide = state.relative[body].linear
    around = sum_matrices(skew_squared(omega), skew(points.parent_motion.angular))
    both = plus(omega, state.omega[body])
    result = [(NO_VARIATION, NO_VARIATION, NO_MOTION)] * len(changes.directions)
    for r, s in zip(node.freedoms, node.joint.subspace, strict=True):
        swung = plus(apply(around, s.linear), cross(origin, s.angular))
        at_q = Variation(Motion(apply(around, s.angular), swung), cross(omega, s.angular))
        swung = plus(cross(both, s.linear), cross(slide, s.angular))
        at_v = Variation(Motion(cross(both, s.angular), swung), s.angular)
        at_a = Variation(s, ZERO)
        for k, (by_q, by_v, motion) in enumerate(result):
            weight = state.rows[r][k]
            more = at_v.scaled(changes.velocities[r][k]) + at_a.scaled(changes.accelerations[r][k])
            result[k] = (
                by_q + (NO_VARIATION if still else at_q.scaled(weight)) + more,
                by_v + at_v.scaled(weight) + at_a.scaled(changes.bias[r][k]),
                motion + s.scaled(weight),
            )
    return result


@dataclass(frozen=True, slots=True)
class _Changes:
    """Derivatives of a cluster's spanning velocities and accelerations, by rows of G.

    Along each of its directions at held v and a; ``bias``: of accelerations, by its own v.
    """

    cluster: Cluster
    directions: Sequence[Mapping[Traced, Scalar]]
    velocities: Mapping[int, list[Scalar]]
    accelerations: Mapping[int, list[Scalar]]
    bias: Mapping[int, list[Scalar]]

    @classmethod
    def of(
        cls,
        state: State,
        cluster: Cluster,
        rates: Vector,
        directions: Sequence[Mapping[Traced, Scalar]],
        v: Sequence[Traced],
    ) -> _Changes:
        """By differentiating G v, G a + g and g."""
        part = range(cluster.spanning_v.start, cluster.spanning_v.stop)
        velocities, accelerations, bias = (
            _slopes(cluster, [values[r] for r in part], along)
            for values, along in (
                (state.velocities, directions),
                (rates, directions),
                (state.bias, [{x: 1.0} for x in v]),
            )
        )
        return cls(
            cluster,
            directions,
            dict(zip(part, velocities, strict=True)),
            dict(zip(part, accelerations, strict=True)),
            dict(zip(part, bias, strict=True)),
        )

    def weights(self, state: State, forces: Mapping[int, Scalar]) -> list[list[Scalar]]:
        """∂_j(Gᵀ) τ."""
        part = range(self.cluster.spanning_v.start, self.cluster.spanning_v.stop)
        held = [
            x.trace.stop_gradient(x) if isinstance(x, Traced) else x for x in map(forces.get, part)
        ]
        columns = zip(*(state.rows[r] for r in part), strict=True)
        values = [dot(column, held) for column in columns]
        return _slopes(self.cluster, values, self.directions)


def _slopes(
    cluster: Cluster, values: Sequence[Scalar], directions: Sequence[Mapping[Traced, Scalar]]
) -> list[list[Scalar]]:
    """Derivatives of a cluster's values along its directions; zero where G is constant."""
    if not cluster.varies:
        return [[0.0] * len(directions) for _ in values]
    (trace,) = {x.trace for direction in directions for x in direction}
    return transposed(differentiate(trace, values, directions))


# ---- of inverse and forward dynamics -------------------------------------------------------------


def rnea_derivatives(
    model: Model, q: Sequence[Traced], v: Sequence[Traced], a: Vector, f_ext: Forces = NO_FORCES
) -> tuple[Matrix, Matrix, Matrix]:
    """∂tau/∂q, ∂tau/∂v and M (nv by nv) at traced q and v; ``a`` and ``f_ext`` count as constant.

    ``f_ext``: body → wrench on it, in its internal axes, in which it stays the same.
    """
    mass = crba(model, q)
    shifts = _shifts(model, q, v)
    columns = _columns(model, q, v, a, f_ext)
    for n, shift in shifts.items():
        columns[n] = [-dot(row, shift) for row in mass]
    return transposed(columns[: model.nv]), transposed(columns[model.nv :]), mass


def aba_derivatives(
    model: Model, q: Sequence[Traced], v: Sequence[Traced], tau: Vector, f_ext: Forces = NO_FORCES
) -> tuple[Matrix, Matrix, Matrix]:
    """∂a/∂q, ∂a/∂v and M⁻¹ (nv by nv) at traced q and v; ``tau`` and ``f_ext`` count as constant.

    ``f_ext`` as in :func:`rnea_derivatives`. M is factored once, sparse as the tree's branches make
    it, for the accelerations, their derivatives, and M⁻¹.
    """
    nv, trace = model.nv, q[0].trace if q else Trace()
    factors = Factorization(crba(model, q))
    bias = bias_force(model, q, v, f_ext)
    a = factors.solve(subtracted(tau, bias))
    shifts = _shifts(model, q, v)
    constant_a = [trace.stop_gradient(x) for x in a]
    columns = _columns(model, q, v, constant_a, f_ext)
    lower = factors.unlower()
    # constants to the trace, so that signs stay with them
    negative = [trace.stop_gradient(-p) for p in factors.inverse_pivots]
    solved = []
    for n, column in enumerate(columns):
        scaled = [p * y for p, y in zip(negative, factors.reduce(column), strict=True)]
        solved.append(shifts[n] if n in shifts else [dot(row, scaled) for row in lower])
    return transposed(solved[:nv]), transposed(solved[nv:]), factors.inverse()


def _columns(
    model: Model, q: Sequence[Traced], v: Sequence[Traced], a: Vector, f_ext: Forces
) -> Matrix:
    """Change of tau along each direction, those of q and then those of v."""
    matrices = tau_derivatives(model, q, v, a, f_ext)
    return [column for matrix in matrices for column in transposed(matrix)]


def _shifts(model: Model, q: Sequence[Traced], v: Vector) -> dict[int, list[Scalar]]:
    """Directions (of q, then of v) that merely shift a at given tau, with the shift.

    Where a body floats freely, its orientation and linear velocity act through the acceleration
    v̇ + ω x v - Rᵀ gravity of its origin alone, and its position not at all.
    """
    shifts: dict[int, list[Scalar]] = {}
    for cluster in model.clusters:
        node = model.nodes[cluster.bodies[0]]
        free = cluster.kind == "joint" and cluster.parent == WORLD
        if not (free and isinstance(node.joint, Floating)):
            continue
        down = node.transform(model.spanning_positions(q)).unrotate(model.gravity)
        first, linear = cluster.v.start, slice(cluster.v.start + 3, cluster.v.stop)
        wx, wy, wz = v[first : first + 3]
        for k in range(3):
            for n, change in (
                (first + k, cross(down, UNIT[k])),
                (first + 3 + k, ZERO),
                (model.nv + first + 3 + k, cross(UNIT[k], (wx, wy, wz))),
            ):
                shifts[n] = [0.0] * model.nv
                shifts[n][linear] = change
    return shifts


def rnea_hessian_product(
    model: Model,
    q: Sequence[Traced],
    v: Sequence[Traced],
    a: Sequence[Traced],
    w: Vector,
    f_ext: Forces = NO_FORCES,
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """∂²φ/∂q∂q, ∂²φ/∂v∂v, ∂²φ/∂q∂v and ∂²φ/∂a∂q (nv by nv); φ is linear in a.

    ``f_ext``: body → wrench on it, in its internal axes, in which it stays the same.
    """
    nv = model.nv
    matrices: list[Matrix] = [[[0.0] * nv for _ in range(nv)] for _ in range(4)]
    qq, vv, qv, aq = matrices
    if not q:
        return qq, vv, qv, aq
    directions = position_directions(model, q)
    slopes = gradient(dot(w, rnea(model, q, v, a, f_ext)), [*q, *v, *a])
    by_v, by_a = slopes[model.nq : model.nq + nv], slopes[model.nq + nv :]
    by_q = [_along(direction, q, slopes[: model.nq]) for direction in directions]
    inwards: list[list[int]] = []  # of each cluster, its own freedoms and those that carry it
    for cluster in model.clusters:
        carriers = [] if cluster.parent == WORLD else inwards[cluster.parent]
        inwards.append(meet := [*carriers, *range(cluster.v.start, cluster.v.stop)])
        for k in range(cluster.v.start, cluster.v.stop):
            values = [column[j] for column in (by_q, by_v, by_a) for j in meet]
            first, second, third = (
                differentiate(q[0].trace, values[: n * len(meet)], [direction])[0]
                for n, direction in ((3, directions[k]), (2, {v[k]: 1.0}), (1, {a[k]: 1.0}))
            )
            for n, j in enumerate(meet):
                qq[j][k] = first[n]
                qv[k][j], qv[j][k] = first[n + len(meet)], second[n]
                aq[j][k], aq[k][j] = first[n + 2 * len(meet)], third[n]
                vv[j][k] = vv[k][j] = second[n + len(meet)]
        freedoms = range(cluster.v.start, cluster.v.stop)
        for j in carriers:
            for k in freedoms:
                qq[k][j] = qq[j][k]
        commute = all(model.nodes[body].joint.nv == 1 for body in cluster.bodies)
        for j in freedoms:
            for k in range(j, cluster.v.stop):
                both = qq[j][k] if commute or j == k else 0.5 * (qq[j][k] + qq[k][j])
                qq[j][k] = qq[k][j] = both
    return qq, vv, qv, aq


def _along(direction: Direction, q: Sequence[Traced], slopes: Vector) -> Scalar:
    """The derivative along a direction, from the slopes by q."""
    return dot([direction.get(x, 0.0) for x in q], slopes)
