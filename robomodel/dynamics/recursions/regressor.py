"""Regressors: the dynamics as matrices on the parameters of a model. Scalars of any kind.

The wrench on a body is linear in its mass m, first moment h and inertia I about its origin: for
points that accelerate with a + U r, U = [α]x + [ω]x²,

    [ 0   -a x   L(α) + ω x L(ω) ]
    [ a    U          0          ]      with L(x) I = I x.

With velocities u of a reference in place of the second v in C(v) v, U = [α]x + [υ]x [ω]x with the
reference's angular velocity υ, and the last block is L(α) + ω x (L(υ) - υ tr / 2).

Columns are in the axes of the body's link, see :mod:`robomodel.model.parameters`; each goes inwards
like a wrench through all clusters that carry the body, and is projected on their motions S G there.
Axisymmetric bodies turn here: parameters may be those of inertias that are not axisymmetric.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from robomodel.dynamics.kinematics.state import Matrix, State
from robomodel.dynamics.recursions.coriolis import changes, origin_rate, rows_rates
from robomodel.kernels.trace import Traced
from robomodel.mechanism.graph import WORLD
from robomodel.model.model import Model
from robomodel.model.parameters import ENTRIES, INERTIAL, count, of_joints
from robomodel.scalars import Scalar, Vector, dot, select
from robomodel.spatial import (
    UNIT,
    ZERO,
    Motion,
    Vec,
    Wrench,
    combine,
    cross,
    inner,
    minus,
    plus,
    scale,
)
from robomodel.tolerances import NOTHING


def block(omega: Vec, alpha: Vec, a: Vec, reference: Vec | None = None) -> list[Wrench]:
    """The wrench on a body by each of its ten parameters, all in its link's axes.

    ``reference``: the body's angular velocity by the reference's velocities, if there is one.
    """
    other = omega if reference is None else reference
    columns = [Wrench(ZERO, a)]
    for e in UNIT:
        turned = plus(cross(alpha, e), cross(other, cross(omega, e)))
        columns.append(Wrench(cross(e, a), turned))
    for i, j in ENTRIES:
        by_alpha, by_omega = _entry(i, j, alpha), _entry(i, j, other)
        if i == j and reference is not None:
            by_omega = minus(by_omega, scale(0.5, reference))
        columns.append(Wrench(plus(by_alpha, cross(omega, by_omega)), ZERO))
    return columns


def _entry(i: int, j: int, x: Vec) -> Vec:
    """E x with E the symmetric matrix that is one at (i, j)."""
    product: list[Scalar] = [0.0, 0.0, 0.0]
    product[i] = x[j]
    product[j] = x[i]
    return product[0], product[1], product[2]


def regressor(model: Model, q: Vector, v: Vector, a: Vector) -> Matrix:
    """Y (nv by p): Y π = rnea + damping + dry friction."""
    state = _turned(model, q, v)
    rates = state.accelerations(a)
    points = list(state.points(rates))
    matrix = _zeros(model)
    for body in range(len(model.nodes)):
        moved = points[body]
        columns = _in_link(state, body, state.omega[body], moved.alpha, moved.linear)
        _project(state, matrix, body, columns)
    _add_joints(state, matrix, rates, state.velocities)
    return matrix


def reference_regressor(
    model: Model,
    q: Sequence[Traced],
    v: Sequence[Traced],
    a: Sequence[Traced],
    reference: Sequence[Traced],
) -> Matrix:
    """Y (nv by p): Y π = M a + C(q, v) u + gravity + damping of u + dry friction of v.

    u is the reference's velocity, C that of :mod:`.recursions.coriolis`: points' velocities
    Σ w_j u_j change by Σ w_j a_j + ẇ_j u_j as the robot moves with v.
    """
    state = _turned(model, q, v)
    reference_state = _turned(model, q, reference)
    slopes = rows_rates(state, q)
    rates: list[Scalar] = []
    for cluster in model.clusters:
        cluster_reference = reference[cluster.v]
        linear = state.spanning(cluster, a[cluster.v])
        rates += [
            x + dot(row, cluster_reference)
            for x, row in zip(linear, slopes[cluster.spanning_v], strict=True)
        ]
    matrix = _zeros(model)
    base = Motion(ZERO, minus(ZERO, model.gravity))
    moved: list[Motion] = []
    for body, node in enumerate(model.nodes):
        x, omega, turning = (
            state.transforms[body],
            state.omega[body],
            reference_state.relative[body],
        )
        above = base if node.parent == WORLD else moved[node.parent]
        swung = plus(above.linear, cross(above.angular, x.offset))
        if node.parent != WORLD:
            swung = plus(swung, cross(reference_state.omega[node.parent], origin_rate(state, body)))
        before = Motion(x.unrotate(above.angular), x.unrotate(swung))
        joint_rates = combine([rates[r] for r in node.freedoms], node.joint.subspace)
        turned = Motion(cross(omega, turning.angular), cross(omega, turning.linear))
        moved.append(before + (joint_rates + turned))
        now = moved[body]
        columns = _in_link(state, body, omega, now.angular, now.linear, reference_state.omega[body])
        _project(state, matrix, body, columns)
    _add_joints(state, matrix, rates, reference_state.velocities)
    return matrix


def _add_joints(state: State, matrix: Matrix, rates: Vector, velocities: Vector) -> None:
    """Add columns of armature, damping at ``velocities``, dry friction at the state's."""
    for at, (joint, kind) in enumerate(
        of_joints(state.model), len(INERTIAL) * len(state.model.nodes)
    ):
        for r in state.model.nodes[joint].freedoms:
            if kind == "armature":
                force = rates[r]
            elif kind == "damping":
                force = velocities[r]
            else:
                force = _sign(state, joint, r)
            _add_joint(state, matrix, at, joint, state.rows[r], force)


def momentum_regressor(
    model: Model, q: Sequence[Traced], v: Sequence[Traced]
) -> tuple[Matrix, Matrix]:
    """P and R (nv by p): P π = M v, and d(P π)/dt + R π = Y π.

    With the momentum (n, f) of all that a body carries and the velocity u of its origin, (Cᵀ v)_k =
    Σ s' · (n, f) + s_ω · (f x u) over the bodies of cluster k; R = gravity + damping + friction -
    Cᵀ v.
    """
    state = _turned(model, q, v)
    rates = rows_rates(state, q)
    momentum, remainder = _zeros(model), _zeros(model)
    down: list[Vec] = [ZERO] * len(model.nodes)
    motions = [state.subspace(body) for body in range(len(model.nodes))]
    moved = [changes(state, rates, body, motions[body]) for body in range(len(model.nodes))]
    for first, node in enumerate(model.nodes):
        above: Vec = model.gravity if node.parent == WORLD else down[node.parent]
        down[first] = state.transforms[first].unrotate(above)
        twist = state.twists[first]
        columns = _in_link(state, first, ZERO, twist.angular, twist.linear)
        up: Vec = (-down[first][0], -down[first][1], -down[first][2])
        weight = _in_link(state, first, ZERO, ZERO, up)
        _project(state, momentum, first, columns)
        _project(state, remainder, first, weight)
        for body, row, wrenches in _carriers(state, first, columns):
            linear = state.twists[body].linear
            for i, (s, ds) in enumerate(zip(motions[body], moved[body], strict=True), row):
                for c, wrench in enumerate(wrenches, len(INERTIAL) * first):
                    power = wrench.dot(ds) + inner(s.angular, cross(wrench.force, linear))
                    remainder[i][c] = remainder[i][c] - power
    for at, (joint, kind) in enumerate(of_joints(model), len(INERTIAL) * len(model.nodes)):
        for r in model.nodes[joint].freedoms:
            rate = state.velocities[r]
            if kind == "armature":
                _add_joint(state, momentum, at, joint, state.rows[r], rate)
                _add_joint(state, remainder, at, joint, [-x for x in rates[r]], rate)
            else:
                force = rate if kind == "damping" else _sign(state, joint, r)
                _add_joint(state, remainder, at, joint, state.rows[r], force)
    return momentum, remainder


def _turned(model: Model, q: Vector, v: Vector) -> State:
    return State(model, q, range(len(model.nodes)), v)


def _zeros(model: Model) -> Matrix:
    columns = count(model)
    return [[0.0] * columns for _ in range(model.nv)]


def _in_link(
    state: State, body: int, omega: Vec, alpha: Vec, a: Vec, reference: Vec | None = None
) -> list[Wrench]:
    """A body's columns for parameters in its link's axes, in the body's axes.

    ``a`` is the acceleration of the body's origin.
    """
    model = state.model
    link = model.frame(model.nodes[body].name).pose
    if link.offset != ZERO:
        before = omega if reference is None else reference
        swung = plus(cross(alpha, link.offset), cross(before, cross(omega, link.offset)))
        a = plus(a, swung)
    other = None if reference is None else link.unrotate(reference)
    columns = block(link.unrotate(omega), link.unrotate(alpha), link.unrotate(a), other)
    return [link.to_parent(wrench) for wrench in columns]


def _carriers(
    state: State, body: int, columns: list[Wrench]
) -> Iterator[tuple[int, int, list[Wrench]]]:
    """The bodies that carry a body, it first: each with its first row, and the columns there."""
    while body != WORLD:
        node = state.model.nodes[body]
        yield body, state.model.clusters[node.cluster].v.start, columns
        columns = [state.transforms[body].to_parent(wrench) for wrench in columns]
        body = node.parent


def _project(state: State, matrix: Matrix, first: int, columns: list[Wrench]) -> None:
    """Add the generalised forces of a body's columns on all clusters that carry it."""
    for body, row, wrenches in _carriers(state, first, columns):
        for i, motion in enumerate(state.subspace(body), row):
            for c, wrench in enumerate(wrenches, len(INERTIAL) * first):
                matrix[i][c] = matrix[i][c] + wrench.dot(motion)


def _add_joint(
    state: State, matrix: Matrix, column: int, joint: int, row: Vector, force: Scalar
) -> None:
    """Add a row of G, transposed, times a force on its joint to a column."""
    first = state.model.clusters[state.model.nodes[joint].cluster].v.start
    for i, g in enumerate(row, first):
        matrix[i][column] = matrix[i][column] + g * force


def _sign(state: State, joint: int, r: int) -> Scalar:
    """The sign of a joint's velocity; 0 where it may be rounding."""
    cluster = state.model.clusters[state.model.nodes[joint].cluster]
    least: Scalar = 0.0
    for g, rate in zip(state.rows[r], state.v[cluster.v], strict=True):
        least = least + (1.0 + _magnitude(g)) * _magnitude(rate)
    least = NOTHING * least
    x = state.velocities[r]
    return select(x + least, -1.0, select(least - x, 1.0, 0.0))


def _magnitude(x: Scalar) -> Scalar:
    return select(x, -x, x)
