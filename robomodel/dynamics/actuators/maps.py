"""Motors' work through gears and linkages: the map B, forces, limits, torque polytopes."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics.actuators.efforts import (
    BAND,
    LARGE_FORCE,
    UNLIMITED,
    Column,
    Pooled,
    bounded,
    broadcast,
    by_joints,
    driving,
    pooled,
    unlimited,
    whole,
    within,
)
from robomodel.dynamics.actuators.simplex import greatest_alone
from robomodel.dynamics.kinematics.state import Configuration
from robomodel.errors import UnknownNameError, check_names
from robomodel.mechanism.joints import Revolute
from robomodel.model.actuators import Actuator
from robomodel.model.arguments import as_array
from robomodel.model.derived import cached_on_model, nominal
from robomodel.model.model import Model
from robomodel.scalars import (
    Scalar,
    Vector,
    as_number,
    div,
    dot,
    is_number,
    is_zero,
    maximum,
    minimum,
    regularity,
    select,
    solve,
    transposed,
)
from robomodel.tolerances import NOTHING, RANK, ROUNDING, SAME, SINGULAR, TINY

Losses: TypeAlias = Literal["forward", "back"]
"""The way of power through lossy gears: motors drive joints, or joints motors."""


def actuator_map(model: Model, q: Vector) -> list[list[Scalar]]:
    """B (nv by nu) with tau = B u: its columns are the actuators' rates Σ k G_row, transposed."""
    return _map_at(model, Configuration(model, q))


def _map_at(model: Model, state: Configuration) -> list[list[Scalar]]:
    columns = [rate_row(model, state, actuator.rows) for actuator in model.actuators]
    return [[column[i] for column in columns] for i in range(model.nv)]


def rate_row(model: Model, state: Configuration, rows: Sequence[tuple[int, float]]) -> list[Scalar]:
    """The rate Σ k q̇ of spanning velocities, over the independent ones (nv).

    ``state``: of the model, or of the model in tangent coordinates, over which the row then is.
    """
    first = [
        c.v.start for c in model.clusters for _ in range(c.spanning_v.start, c.spanning_v.stop)
    ]
    result: list[Scalar] = [0.0] * model.nv
    for row, k in rows:
        for i, g in enumerate(state.rows[row], first[row]):
            result[i] = result[i] + k * g
    return result


def positions(model: Model, q: Vector) -> list[Scalar]:
    """The actuators' positions (nu): Σ k q of the joints that each moves."""
    at = {node.v: node.q for node in model.nodes}
    spanning = model.spanning_positions(q)
    return [
        sum((k * spanning[at[row]] for row, k in actuator.rows), 0.0)
        for actuator in model.actuators
    ]


def velocities(model: Model, q: Vector, v: Vector) -> list[Scalar]:
    """The actuators' rates (nu): Bᵀ v."""
    columns = zip(*actuator_map(model, q), strict=True)
    return [dot(column, v) for column in columns]


def gains(
    model: Model, q: Vector, kp: Vector, kd: Vector
) -> tuple[list[list[Scalar]], list[list[Scalar]]]:
    """B diag(kp) Bᵀ and B diag(kd) Bᵀ (nv by nv)."""
    b = actuator_map(model, q)
    stiffness, damping = (
        [
            [sum((x * k * y for x, k, y in zip(one, gain, other, strict=True)), 0.0) for other in b]
            for one in b
        ]
        for gain in (kp, kd)
    )
    return stiffness, damping


class Reflected(NamedTuple):
    """Inertia that actuators' shafts add at each independent velocity, (..., nv, nu) each."""

    inertia: Array
    damping: Array
    friction: Array


def reflected(model: Model, q: Vector) -> list[list[list[Scalar]]]:
    """Inertia I b², viscous damping d b² and dry friction f |b| of each actuator's shaft."""
    matrix = actuator_map(model, q)
    shafts = [_shaft(model, actuator) for actuator in model.actuators]
    squares = [[b * b for b in row] for row in matrix]
    sizes = [[select(b, -b, b) for b in row] for row in matrix]
    return [
        [[shaft[k] * x for shaft, x in zip(shafts, row, strict=True)] for row in rows]
        for k, rows in enumerate((squares, squares, sizes))
    ]


def _shaft(model: Model, actuator: Actuator) -> tuple[Scalar, Scalar, Scalar]:
    """Moment of inertia, damping and friction at an actuator's shaft.

    From its rotor; without a rotor from its joint's armature, damping and friction, before the
    reduction. An actuator of several joints has none.
    """
    driven = dict(actuator.terms)
    if len(actuator.rows) > 1:
        return 0.0, 0.0, 0.0
    ((_, factor),) = actuator.rows
    body = model.joint_names.index(actuator.joint)
    node, joint = model.nodes[body], model.joints[body]
    inertia = node.armature
    tied = model.clusters[node.cluster].kind != "joint"
    if (
        isinstance(node.joint, Revolute)
        and nominal(model).nodes[body].axisymmetric
        and (actuator.joint not in driven or tied)
    ):
        inertia = inertia + as_number(node.inertia.inertia[node.joint.k][node.joint.k])
    return inertia / factor**2, joint.damping / factor**2, joint.friction / abs(factor)


def forces(matrix: Array, tau: Array) -> Array:
    """The u (..., nu) of least norm with B u = tau; not-a-number where no u gives it."""
    regular = np.asarray(np.isfinite(matrix).all(axis=(-1, -2), keepdims=True))
    inverse = np.linalg.pinv(np.where(regular, matrix, 0.0), rcond=NOTHING)
    u: Array = (inverse @ tau[..., None])[..., 0]
    error, size = (
        np.max(np.abs(x), axis=-1, keepdims=True, initial=0.0)
        for x in ((matrix @ u[..., None])[..., 0] - tau, tau)
    )
    fits = regular[..., 0] & (error <= SAME * size)
    return np.where(fits, u, np.nan)


def motors(
    model: Model, q: Vector, v: Vector
) -> tuple[list[list[Scalar]], list[Scalar], list[Scalar], list[Scalar]]:
    """B, the least and the greatest force of each actuator at the rates Bᵀ v, and its gear.

    That is its turns for one of the first joint that it drives. A force beyond :data:`UNLIMITED` is
    no limit.
    """
    matrix = actuator_map(model, q)
    low: list[Scalar] = []
    high: list[Scalar] = []
    for each, column in zip(model.actuators, zip(*matrix, strict=True), strict=True):
        rate = dot(column, v)
        back, ahead = driving(each.backwards, -rate), driving(each, rate)
        low.append(-LARGE_FORCE if unlimited(back) else -minimum(back, LARGE_FORCE))
        high.append(LARGE_FORCE if unlimited(ahead) else minimum(ahead, LARGE_FORCE))
    return matrix, low, high, [each.terms[0][1] for each in model.actuators]


def efficiencies(
    model: Model, losses: Losses, given: Mapping[str, ArrayLike] | None = None
) -> Array:
    """The efficiency (..., nu) of each actuator's gear this way, ``given`` parameters (...) or its.

    Raises ValueError for other words.
    """
    kinds = {"forward": "efficiency", "back": "backdrive"}
    if losses not in kinds:
        raise ValueError(f"losses are 'forward' or 'back' (or None), got {losses!r}")
    kind, values = kinds[losses], given or {}
    every = [values.get(f"{x.name}.{kind}", getattr(x, kind)) for x in model.actuators]
    numbers = [np.asarray(x, dtype=float) for x in every]
    return np.stack(np.broadcast_arrays(*numbers), axis=-1) if numbers else np.zeros(0)


def shares(model: Model, losses: Losses, given: Mapping[str, ArrayLike] | None = None) -> Array:
    """Force (..., nu) on the joint's side of each actuator's gear for unit force of the motor.

    At constant rate: the efficiency of those that drive; of those that are driven 1/``backdrive``,
    infinite if the gear locks itself. Raises ValueError for other words.
    """
    numbers = efficiencies(model, losses, given)
    if losses == "forward":
        return numbers
    with np.errstate(divide="ignore"):
        return np.where(numbers > 0.0, 1.0 / numbers, math.inf)


def limits(
    matrix: Array, lower: Array, upper: Array, model: Model | None = None
) -> tuple[Array, Array]:
    """(least, greatest) force (..., nv) of each coordinate while those of all others are zero.

    ``model``: that whose coordinates these are, whose :func:`whole` limits are kept.
    """
    shape, wide, low, high = broadcast(matrix, lower, upper)
    nv, nu = matrix.shape[-2:]
    count = math.prod(shape)
    wide = wide.reshape(count, nv, nu)
    low, high = (x.reshape(count, nu) for x in (low, high))
    least, most = np.zeros((count, nv)), np.zeros((count, nv))
    for rows, columns in blocks(np.any(wide != 0.0, axis=0)):
        ends = low[:, columns], high[:, columns]
        least[:, rows], most[:, rows] = _limits(wide[:, rows][:, :, columns], *ends)
    if model is not None:
        for i in whole(model):
            for x in (least, most):
                x[:, i] = as_number(bounded(model, i, x[:, i]))
    return least.reshape(*shape, nv), most.reshape(*shape, nv)


def blocks(pattern: ArrayLike) -> Iterator[tuple[list[int], list[int]]]:
    """Groups of coordinates and actuators that are coupled, in the order of the coordinates."""
    columns_of = (np.flatnonzero(row).tolist() for row in np.asarray(pattern))
    unassigned = {i: set[int](columns) for i, columns in enumerate(columns_of) if columns}
    while unassigned:
        first = next(iter(unassigned))
        rows, columns = {first}, unassigned.pop(first)
        while tied := {i for i, others in unassigned.items() if others & columns}:
            rows |= tied
            columns = columns.union(*(unassigned.pop(i) for i in tied))
        yield sorted(rows), sorted(columns)


def _limits(b: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """The limits of one block: b (n, rows, columns), limits (n, columns)."""
    finite = np.all(np.isfinite(b), axis=(1, 2))
    b = np.where(finite[:, None, None], b, 0.0)
    inverse = np.linalg.pinv(b, rcond=NOTHING)
    size = np.abs(b).max(axis=(1, 2))
    unique = np.linalg.matrix_rank(b, tol=RANK * np.maximum(1.0, size)) == b.shape[2]
    alone = np.abs(b @ inverse - np.eye(b.shape[1])).max(axis=1) <= SAME
    share = np.swapaxes(inverse, 1, 2)  # (n, rows, columns): forces for a unit of each coordinate
    used = np.abs(share) > NOTHING * np.abs(share).max(axis=2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.sort(np.stack([lower[:, None] / share, upper[:, None] / share]), axis=0)
    least = np.max(np.where(used, ends[0], -np.inf), axis=2)
    most = np.min(np.where(used, ends[1], np.inf), axis=2)
    pushed = np.any(~used & ((lower > 0.0) | (upper < 0.0))[:, None], axis=2)
    lost = ~alone | pushed  # no motor forces push it alone
    least, most = np.where(lost, 0.0, least), np.where(lost, 0.0, most)
    n, i = np.nonzero(alone & ~unique[:, None])
    least[n, i] = -greatest_alone(b[n], i, -upper[n], -lower[n])
    most[n, i] = greatest_alone(b[n], i, lower[n], upper[n])
    return np.where(finite[:, None], least, np.nan), np.where(finite[:, None], most, np.nan)


def polytope(
    b: Array,
    chosen: Sequence[int],
    lower: Array,
    upper: Array,
    together: Mapping[int, Pooled],
) -> Array:
    """Vertices (m, len(chosen)) of the torques that these coordinates can have, all others zero.

    In the plane counterclockwise. The set is {B_c u : lower <= u <= upper, B_o u = 0}, with c the
    chosen coordinates and o the others. ``together``: limits of coordinates.
    """
    if np.isnan(b).any() or np.isnan(lower).any():
        return np.full((1, len(chosen)), np.nan)
    others = [i for i in range(len(b)) if i not in chosen]
    null = _null(b[others])
    reach = b[list(chosen)] @ null
    held = [i for i in chosen if i in together]
    ends = np.array([(together[i].least, together[i].most) for i in held]).reshape(-1, 2)
    corners = _box_in(np.concatenate([null, b[held] @ null]),
                      np.concatenate([lower, ends[:, 0]]),
                      np.concatenate([upper, ends[:, 1]]))  # fmt: skip
    return _hull(corners @ reach.T)


def _null(rows: Array) -> Array:
    """An orthonormal basis of the null space of these rows, as columns."""
    if not rows.size:
        return np.eye(rows.shape[1])
    _, values, vectors = np.linalg.svd(rows)
    rank = int(np.sum(values > RANK * max(values.max(initial=0.0), TINY)))
    return np.asarray(vectors[rank:].T)


def _box_in(null: Array, lower: Array, upper: Array) -> Array:
    """The vertices z of {lower <= N z <= upper}."""
    size = null.shape[1]
    if size == 0:
        return np.zeros((1, 0))
    used = np.abs(null).max(axis=1) > NOTHING
    n, low, high = null[used], lower[used], upper[used]
    if size == 1:
        ends = np.sort(np.stack([low / n[:, 0], high / n[:, 0]]), axis=0)
        return np.array([[ends[0].max()], [ends[1].min()]])
    from scipy.optimize import linprog
    from scipy.spatial import HalfspaceIntersection

    planes = np.concatenate([np.c_[n, -high], np.c_[-n, low]])
    norms = np.linalg.norm(planes[:, :-1], axis=1, keepdims=True)
    interior = linprog(
        np.r_[np.zeros(size), -1.0], A_ub=np.c_[planes[:, :-1], norms], b_ub=-planes[:, -1],
        bounds=[(None, None)] * size + [(0.0, None)], method="highs",
    )  # fmt: skip
    if interior.status != 0:
        return np.zeros((0, size))
    if interior.x[-1] <= NOTHING * np.abs(high).max():
        return _flat_box(n, low, high, interior.x[:-1])
    corners = HalfspaceIntersection(planes, interior.x[:-1])
    return np.asarray(corners.intersections)


def _flat_box(null: Array, lower: Array, upper: Array, at: Array) -> Array:
    """The vertices of such a set without an interior, in which ``at`` is.

    Some of N z are the same everywhere; the vertices are those of the rest in the null space.
    """
    from scipy.optimize import linprog

    free = [(None, None)] * null.shape[1]
    rows, bounds = np.concatenate([null, -null]), np.concatenate([upper, -lower])
    found = [linprog(-row, A_ub=rows, b_ub=bounds, bounds=free, method="highs") for row in rows]
    most = np.array([-each.fun if each.status == 0 else math.inf for each in found])
    width = most[: len(null)] + most[len(null) :]
    sizes = np.maximum(np.abs(lower), np.abs(upper))
    rest = _null(null[width <= RANK * sizes.max()])
    if rest.shape[1] == len(at):
        return at[None]
    here = null @ at
    return np.asarray(at + _box_in(null @ rest, lower - here, upper - here) @ rest.T)


def _hull(points: Array) -> Array:
    """The vertices of the convex hull of points, counterclockwise in the plane."""
    if len(points) <= 1:
        return points
    if points.shape[1] == 1:
        return np.array([points.min(axis=0), points.max(axis=0)])
    from scipy.spatial import ConvexHull, QhullError

    centre = points.mean(axis=0)
    spread = points - centre
    _, values, axes = np.linalg.svd(spread, full_matrices=False)
    rank = int(np.sum(values > SINGULAR * max(values[0], TINY))) if values[0] > 0.0 else 0
    if rank == 0:
        return points[:1]
    if rank < points.shape[1]:  # points on a line or plane: the hull in its coordinates
        return np.asarray(centre + _hull(spread @ axes[:rank].T) @ axes[:rank])
    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except QhullError:
        return points


def selected(model: Model, joints: Sequence[str] | str) -> list[int]:
    """Indices into v of coordinates by name: a joint of one freedom, or one of its freedoms."""
    names = [joints] if isinstance(joints, str) else list(joints)
    what = f" is no independent coordinate of '{model.name}'"
    check_names(names, model.dof_names, after=what, error=UnknownNameError)
    if len(set(names)) < len(names) or not names:
        raise ValueError(f"joints are one or more coordinates, each once, got {names}")
    return [model.dof_names.index(name) for name in names]


def needs_limits(model: Model, lower: Array, upper: Array) -> None:
    """Raises ValueError, naming an actuator without an effort limit: torques are unbounded."""
    endless = np.isinf(lower) | np.isinf(upper)
    for n, each in enumerate(model.actuators):
        if np.any(endless[..., n]):
            why = "has no effort limit"
            if math.isfinite(each.effort_limit) or each.stall_torque is not None:
                why = "has a gear that locks itself and holds any load"
            raise ValueError(f"the actuator '{each.name}' {why}, so that torques have no limit")


def copper_loss(model: Model, u: ArrayLike) -> Array:
    """Heat in the windings at motor forces u: R (u/k)².

    Needs each motor's torque constant and resistance (``<motor torque_constant resistance>``).

    Args:
        model: The robot.
        u: Motor forces (..., nu), in the order of ``model.actuators``.

    Returns:
        power: Heat (..., nu) [W]; not-a-number without constant and resistance.

    Raises:
        ValueError: Arrays that do not fit.

    Examples:
        >>> model = rm.robots.load("belt_leg")
        >>> rm.dynamics.copper_loss(model, np.ones(3)).shape
        (3,)
    """
    force = as_array(u, len(model.actuators), "u", "nu")
    constants = [
        each.resistance / each.torque_constant**2
        if each.resistance and each.torque_constant
        else np.nan
        for each in model.actuators
    ]
    return np.asarray(np.array(constants) * force * force)


# ---- torques within the motors' limits ----------------------------------------------------------

# Motor forces u of least norm with B u = tau are clipped to what each motor can do at its rate. The
# result is tau + B (clipped u - u): torques that no motor gives (a push on a floating base, a joint
# without an actuator) stay.


def saturated(
    model: Model, q: Vector, v: Vector, tau: Vector
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """(torques that act (nv), motor forces u (nu), the part of required u that is lost (nu)).

    Driving force falls to zero over the last hundredth before a velocity limit, so that a motor
    held there by its load has a force that integrators can follow.
    """
    matrix = actuator_map(model, q)
    result = list(tau)
    nothing: list[Scalar] = [0.0] * len(model.actuators)
    required, low, high, forces = (list(nothing) for _ in range(4))
    groups = list(blocks([[not is_zero(x) for x in row] for row in matrix]))
    for rows, columns in groups:
        for n, u in zip(columns, _required(model, matrix, rows, columns, tau), strict=True):
            rate = dot([matrix[i][n] for i in rows], [v[i] for i in rows])
            actuator = model.actuators[n]
            braking = driving(actuator.backwards, -rate, BAND)
            ahead = driving(actuator, rate, BAND)
            low[n] = -LARGE_FORCE if unlimited(braking) else -braking
            high[n] = LARGE_FORCE if unlimited(ahead) else ahead
            required[n], forces[n] = u, within(u, -braking, ahead)
    lost = [u - force for u, force in zip(required, forces, strict=True)]
    gears = [each.terms[0][1] for each in model.actuators]
    between = by_joints(model, matrix, gears, low, high)
    given = by_joints(model, matrix, gears, forces, forces)
    bound = {each.motors[0] for each in pooled(model) if each.coordinate is None}

    def excess(each: Column) -> Scalar:
        """The part of the required force along a column that clipping takes."""
        n = each.motors[0]
        if n not in bound:
            return lost[n]
        return sum((gears[m] * required[m] for m in each.motors), 0.0) - each.low

    for rows, columns in groups:
        its = [k for k, each in enumerate(between) if each.motors[0] in columns]
        if len(rows) == len(its) == 1:  # no division by an entry that vanishes at dead points
            (i,), ends = rows, between[its[0]]
            if not (_endless(-ends.low) and _endless(ends.high)):
                a, b = ends.column[i] * ends.low, ends.column[i] * ends.high
                result[i] = within(tau[i], minimum(a, b), maximum(a, b))
        else:
            for i in rows:
                result[i] = tau[i] - dot([given[k].column[i] for k in its],
                                         [excess(given[k]) for k in its])  # fmt: skip
        for i in rows:  # nothing else drives coordinates with bounds
            result[i] = bounded(model, i, result[i])
    return result, forces, lost


def _endless(force: Scalar) -> bool:
    """True if a force is no limit at every state."""
    return is_number(force) and force >= UNLIMITED


def required(model: Model, state: Configuration, tau: Vector) -> list[Scalar]:
    """Motor forces u (nu) of least norm and least error in B u = tau; any scalars.

    ``state`` and ``tau``: of the model, or both in tangent coordinates.
    """
    matrix = _map_at(model, state)
    result: list[Scalar] = [0.0] * len(model.actuators)
    for rows, columns in blocks([[not is_zero(x) for x in row] for row in matrix]):
        for n, u in zip(columns, _required(model, matrix, rows, columns, tau), strict=True):
            result[n] = u
    return result


def _required(
    model: Model,
    matrix: Sequence[Sequence[Scalar]],
    rows: Sequence[int],
    columns: Sequence[int],
    tau: Vector,
) -> list[Scalar]:
    """Forces u of least norm and least error in B u = tau, for one block.

    By factors of full rank, B = C X with C some columns of B: u = Xᵀ (X Xᵀ)⁻¹ C⁺ tau.
    """
    if len(rows) == len(columns) == 1:
        return [div(tau[rows[0]], matrix[rows[0]][columns[0]])]
    basis = _basis(model, rows, columns)
    chosen = [[matrix[i][n] for n in basis] for i in rows]
    if len(basis) == len(columns):
        return [x for (x,) in solve(chosen, [[tau[i]] for i in rows])]
    factors = solve(chosen, [[*(matrix[i][n] for n in columns), tau[i]] for i in rows])
    spread, along = [row[:-1] for row in factors], [row[-1:] for row in factors]
    gram = [[dot(x, y) for y in spread] for x in spread]
    weights = [x for (x,) in solve(gram, along)]
    return [dot(weights, column) for column in zip(*spread, strict=True)]


def _basis(model: Model, rows: Sequence[int], columns: Sequence[int]) -> list[int]:
    """Actuators whose columns span the range of a block of B, where the block is regular."""
    from scipy.linalg import qr

    best: list[int] = []
    worst = 0.0
    for block in _sampled(nominal(model)):
        part = block[np.ix_(rows, columns)]
        _, r, order = qr(part, mode="economic", pivoting=True)
        pivots = np.abs(np.diag(r))
        rank = int(np.count_nonzero(pivots > SINGULAR * pivots[0]))
        least = float(pivots[rank - 1] / pivots[0])
        if (rank, least) > (len(best), worst):
            best, worst = sorted(columns[n] for n in order[:rank].tolist()), least
    return best


@cached_on_model
def _sampled(model: Model) -> list[Array]:
    """B at a few random configurations."""
    rng = np.random.default_rng(0)
    # one may be singular, where ranks are smaller
    states = [model.random_configuration(rng).tolist() for _ in range(3)]
    return [np.array(actuator_map(model, q)) for q in states]


def limits_alone(
    model: Model, q: Vector, v: Vector
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """Least and greatest force (nv) of each coordinate while all others are zero, and a doubt.

    The doubt is 0 if each block of B is regular, so that motor forces are B⁻¹ tau, or has a single
    coordinate, else 1:
    :func:`~robomodel.dynamics.actuators.maps.limits` is for these states, by singular values.
    """
    matrix, low, high, gears = motors(model, q, v)
    least: list[Scalar] = [0.0] * model.nv
    most: list[Scalar] = [0.0] * model.nv
    doubt: Scalar = select(dot(v, v) - LARGE_FORCE, 0.0, 1.0)  # 1 where a rate is not finite
    given = by_joints(model, matrix, gears, low, high)
    pattern = [[not is_zero(each.column[i]) for each in given] for i in range(model.nv)]
    for rows, columns in blocks(pattern):
        if len(rows) not in (1, len(columns)):
            return least, most, [1.0]
        block = [[given[k].column[i] for k in columns] for i in rows]
        ends = [(-given[k].low, given[k].high) for k in columns]
        if len(rows) < len(columns) or rows[0] in whole(model):
            (i,) = rows
            parts = [_ends(b, *x) for b, x in zip(block[0], ends, strict=True)]
            least[i], most[i] = (
                bounded(model, i, functools.reduce(operator.add, x)) for x in transposed(parts)
            )
            continue
        unit = [[1.0 if i == j else 0.0 for j in range(len(rows))] for i in range(len(rows))]
        inverse = solve(block, unit)
        for j, i in enumerate(rows):
            least[i], most[i] = _ends_alone([row[j] for row in inverse], ends)
        # not B B⁻¹ - 1, which single precision leaves open in any state
        doubt = select(ROUNDING - regularity(block), doubt, 1.0)
    least = [select(x + UNLIMITED, -math.inf, x) for x in least]
    most = [select(UNLIMITED - x, math.inf, x) for x in most]
    return least, most, [doubt]


def _ends(b: Scalar, back: Scalar, ahead: Scalar) -> tuple[Scalar, Scalar]:
    """Least and greatest force that a motor gives a coordinate, by its column of B."""
    size = select(b, -b, b)
    return -size * select(b, ahead, back), size * select(b, back, ahead)


def _ends_alone(share: Vector, ends: Sequence[Vector]) -> tuple[Scalar, Scalar]:
    """Least and greatest force of a coordinate, by its motors' shares of it and their limits."""
    low: Scalar = -LARGE_FORCE
    high: Scalar = LARGE_FORCE
    sizes = [select(s, -s, s) for s in share]
    largest: Scalar = 0.0
    for size in sizes:
        largest = maximum(size, largest)
    for s, size, (back, ahead) in zip(share, sizes, ends, strict=True):
        unused = size - NOTHING * largest  # negative where it is
        down = div(select(s, ahead, back), size)
        up = div(select(s, back, ahead), size)
        low = select(unused, low, maximum(low, -down))
        high = select(unused, high, minimum(high, up))
    return low, high
