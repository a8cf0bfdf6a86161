"""Points that touch something rigid: how they move, and what holds them, at an instant.

Accelerations c̈ = J a + J̇ v of the points in world axes, gravity not in them; forces f on them with
M a + bias = tau + Jᵀ f. Bilateral contacts keep c̈ = 0, with the f of least norm. Unilateral ones
obey Signorini's law on accelerations and Coulomb's: those at rest stick or begin to slip
(:mod:`.contact.complementarity`), those that slide feel f = (n - μ ĉ) f_n with ĉ the
direction of their slip, where the law has one solution, several, or none (Painlevé).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics.contact.complementarity import Problem, solve
from robomodel.dynamics.contact.gauss_seidel import Rows
from robomodel.dynamics.kinematics.frames import Place, joint_forces, pose
from robomodel.dynamics.kinematics.state import State
from robomodel.dynamics.kinematics.tangents import position_directions
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.impulse import Touch, checked, least, point_forces, solved
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.errors import warn
from robomodel.kernels.differentiate import along
from robomodel.kernels.trace import Traced
from robomodel.model.arguments import as_numbers
from robomodel.model.graph import WORLD
from robomodel.model.joints import Array, Mask
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, dot, subtracted, transposed
from robomodel.spatial import apply, plus

STILL = 1e-7  # m/s: what moves slower along the normal touches, across it sticks
TIGHT = 1e-13  # residual that is sought where it costs little
ENUMERATED = 10  # sliding contacts of which all sets are tried
UNSOLVED = 1e-6  # residual from which on a problem counts as not solved
WEDGED = 1e4  # as many times the impulses without rebounds tell that there are none with them


def touching(
    model: Model, q: Vector, v: Vector, a: Vector, places: Sequence[Place]
) -> tuple[list[Scalar], list[Scalar]]:
    """(ċ, c̈), each (3k,): velocities and accelerations of points in world axes."""
    state = State(model, q, {at.body for at in places}, v)
    points = list(state.points(state.accelerations(a)))
    rates: list[Scalar] = []
    accelerations: list[Scalar] = []
    for at in places:
        if at.body == WORLD:
            rates += [0.0] * 3
            accelerations += [0.0] * 3
            continue
        world, _ = pose(model, q, at)
        rates += apply(world, at.pose.to_child(state.twists[at.body]).linear)
        accelerations += plus(apply(world, points[at.body].at(at.pose)), model.gravity)
    return rates, accelerations


def touch_derivatives(
    model: Model,
    q: Sequence[Traced],
    v: Sequence[Traced],
    a: Vector,
    forces: Vector,
    places: Sequence[Place],
) -> list[list[list[Scalar]]]:
    """What the derivatives of held contacts are made of, at traced q and v; a and forces constant.

    ∂/∂q and ∂/∂v, q in the tangent space, of rnea(q, v, a) - Jᵀ f (nv by nv each) and of the
    points' accelerations (3k by nv each); then J (3k by nv) and M.
    """
    nv = model.nv
    still = [q[0].trace.stop_gradient(x) for x in a] if q else list(a)
    push = [q[0].trace.stop_gradient(x) for x in forces] if q else list(forces)
    state = State(model, q, {at.body for at in places}, v)
    jacobian = points_jacobian(model, state, q, places)
    torque = [dot(column, push) for column in zip(*jacobian, strict=True)]
    left = subtracted(rnea(model, q, v, still), torque)
    _, right = touching(model, q, v, still, places)
    directions = position_directions(model, q) + [{x: 1.0} for x in v]
    rows = transposed(along(q[0].trace, [*left, *right], directions))
    return [
        [row[:nv] for row in rows[:nv]],
        [row[nv:] for row in rows[:nv]],
        [row[:nv] for row in rows[nv:]],
        [row[nv:] for row in rows[nv:]],
        jacobian,
        crba(model, q),
    ]


def points_jacobian(
    model: Model, state: State, q: Vector, places: Sequence[Place]
) -> list[list[Scalar]]:
    """J (3k by nv) of points in world axes."""
    forces = point_forces(model, q, places)
    return [joint_forces(model, state, body, wrench) for body, wrench in forces]


# ---- on arrays: one state after the other --------------------------------------------------------


def held(
    touch: Touch,
    free: Array,
    accelerations: Array,
    tolerance: float,
) -> tuple[Array, Array]:
    """Bilateral: (a, forces (..., 3k)) from what the points do under ``free``, a without contact.

    Where contacts contradict each other (points of one body that turns) they are met in the
    least-squares sense, with a RuntimeWarning.
    """
    inverse, jacobian, mass = touch
    forces = least(inverse, -accelerations, tolerance)
    change = solved(mass, np.einsum("...ij,...i->...j", jacobian, forces)[..., None])
    left = accelerations + np.einsum("...ij,...j->...i", inverse, forces)
    size = np.max(np.abs(accelerations), axis=-1, initial=0.0)
    if np.any(np.max(np.abs(left), axis=-1, initial=0.0) > 1e-6 * size + 1e-9):
        warn(
            RuntimeWarning(
                "contacts contradict each other: no forces keep all of these points from "
                "accelerating (points of one body that turns cannot all be at rest); they are "
                "met in the least-squares sense"
            )
        )
    return free + change[..., 0], forces


def unilateral(
    touch: Touch,
    free: Array,
    rates: Array,
    accelerations: Array,
    normals: Array,
    friction: Array,
) -> tuple[Array, Array, str]:
    """One state's (a, forces (k, 3)), and what is to be told of it, "" where nothing is.

    Arrays as :func:`held`'s, of one state; ``normals`` (k, 3), ``friction`` (k,).
    """
    (inverse, jacobian, mass), k = touch, len(normals)
    bases = np.array([basis(normal) for normal in normals])
    speeds = np.einsum("kij,kj->ki", bases, rates.reshape(k, 3))
    if not np.all(np.isfinite(inverse)) or not np.all(np.isfinite(accelerations)):
        return np.full_like(free, np.nan), np.full((k, 3), np.nan), ""
    if np.any(speeds[:, 2] < -STILL):
        return (
            np.full_like(free, np.nan),
            np.full((k, 3), np.nan),
            "points run into what they touch: an impact comes first (rm.impulse)",
        )
    slip = np.hypot(speeds[:, 0], speeds[:, 1])
    active = [i for i in range(k) if speeds[i, 2] <= STILL]
    sticking = [i for i in active if slip[i] <= STILL]
    sliding = [i for i in active if slip[i] > STILL]
    rows = [bases[i] for i in sticking] + [bases[i][2:] for i in sliding]
    pushes = [bases[i] for i in sticking]
    for i in sliding:
        direction = (speeds[i, 0] * bases[i][0] + speeds[i, 1] * bases[i][1]) / slip[i]
        pushes.append((normals[i] - friction[i] * direction)[None])
    spread = _placed(rows, [*sticking, *sliding], k)
    push = _placed(pushes, [*sticking, *sliding], k)
    matrix, b = spread @ inverse @ push.T, spread @ accelerations
    told = ""
    if not len(b):
        x = np.zeros(0)
    elif sliding and not sticking:
        x, told = _slid(matrix, b, inverse @ push.T, np.linalg.norm(push, axis=1))
    else:
        problem = Problem(
            matrix, b, Rows(len(sticking), len(sliding)), friction[sticking], np.empty(0)
        )
        x, residual = solve(problem, np.zeros(len(b)), TIGHT)
        if residual > 1e-7:
            x = np.full(len(b), np.nan)
            told = f"no finite forces were found (residual {residual:.1g}); an impulse comes next"
    flat = push.T @ x
    forces = flat.reshape(k, 3)
    return free + solved(mass, (jacobian.T @ flat)[:, None])[:, 0], forces, told


def _slid(matrix: Array, b: Array, effects: Array, lengths: Array) -> tuple[Array, str]:
    """0 <= x ⟂ A x + b >= 0 with A not symmetric: its solution, the one nearest to none of several.

    A + Aᵀ positive definite has one solution for every b. Else all sets of contacts are tried.
    ``effects`` @ x (3k,) is what x does to the points, ``lengths`` are the forces' for unit x. Sets
    that do the same, as those of redundant points, are one solution, with the least forces.
    """
    n = len(b)
    if n > ENUMERATED or np.linalg.eigvalsh(matrix + matrix.T)[0] > 0.0:
        line = Problem(matrix, b, Rows(0, n), np.empty(0), np.empty(0))
        x, residual = solve(line, np.zeros(n), TIGHT)
        if residual <= 1e-8:
            return x, ""
        return np.full(n, np.nan), "no finite forces were found; an impulse comes next"
    size, found = np.abs(b).max(), []
    for pushing in itertools.product((False, True), repeat=n):
        on = np.array(pushing)
        x = np.zeros(n)
        if on.any():
            block = matrix[np.ix_(on, on)]
            if abs(np.linalg.det(block)) <= 1e-13 * np.prod(np.abs(np.diagonal(block))):
                continue
            x[on] = np.linalg.solve(block, -b[on])
        y = matrix @ x + b
        if np.all(x >= -1e-12 * np.abs(x).max(initial=0.0)) and np.all(y[~on] >= -1e-12 * size):
            found.append(x)
    if not found:
        return np.full(n, np.nan), (
            "no finite forces obey Coulomb's law here (Painlevé): an impulse without collision"
        )
    apart: list[Array] = []
    for x in sorted(found, key=lambda x: float(np.linalg.norm(lengths * x))):
        done = [effects @ (x - other) for other in apart]
        if all(np.abs(change).max() > 1e-9 * np.abs(effects @ x).max() for change in done):
            apart.append(x)
    best = _shared(matrix @ apart[0] + b <= 1e-9 * size, apart[0], effects, lengths)
    if len(apart) > 1:
        return best, (
            f"{len(apart)} sets of forces obey Coulomb's law here (Painlevé); the smallest is given"
        )
    return best, ""


def _shared(on: Mask, x: Array, effects: Array, lengths: Array) -> Array:
    """The least forces of the contacts ``on`` that do what x does; x itself where these pull."""
    _, sizes, turned = np.linalg.svd(effects[:, on] / lengths[on])
    kept = int(np.count_nonzero(sizes > 1e-9 * sizes.max(initial=0.0)))
    unfelt, result = turned[kept:], np.zeros_like(x)
    force = (lengths * x)[on]
    result[on] = (force - unfelt.T @ (unfelt @ force)) / lengths[on]
    return result if np.all(result >= 0.0) else x


def _placed(blocks: Sequence[Array], at: Sequence[int], k: int) -> Array:
    """Rows (n, 3k) of contacts' own rows."""
    rows = np.zeros((sum(len(block) for block in blocks), 3 * k))
    first = 0
    for block, i in zip(blocks, at, strict=True):
        rows[first : first + len(block), 3 * i : 3 * i + 3] = block
        first += len(block)
    return rows


def basis(normal: Array) -> Array:
    """Two tangents and the normal, as rows; world axes where the normal is z."""
    if normal[2] == 1.0:
        return np.eye(3)
    first = np.cross((0.0, 1.0, 0.0) if abs(normal[1]) < 0.9 else (1.0, 0.0, 0.0), normal)
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(normal, first), normal])


def rebound(
    touch: Touch,
    v: Array,
    restitution: Array,
    normals: Array,
    friction: Array,
) -> tuple[Array, Array, float]:
    """One state's (v⁺, impulses (k, 3), residual) of an impact that pushes and never pulls.

    Newton's law along the normals of points that approach, Coulomb's across; where friction would
    make several rebounds win energy, they are drawn back until none is won.
    """
    (inverse, jacobian, mass), k = touch, len(normals)
    turn = np.zeros((3 * k, 3 * k))
    for i in range(k):
        turn[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = basis(normals[i])
    if not np.all(np.isfinite(inverse)):
        return np.full_like(v, np.nan), np.full((k, 3), np.nan), 0.0
    plain = turn @ (jacobian @ v)
    shift = np.zeros(3 * k)
    shift[2::3] = restitution * np.minimum(plain[2::3], 0.0)
    problem = Problem(turn @ inverse @ turn.T, plain + shift, Rows(k), friction, np.empty(0))
    x, residual = without_gain(problem, plain, np.zeros(3 * k), TIGHT)
    flat = turn.T @ x
    return v + solved(mass, (jacobian.T @ flat)[:, None])[:, 0], flat.reshape(k, 3), residual


def without_gain(
    problem: Problem,
    plain: Array,
    start: Array,
    tolerance: float = 1e-10,
    before: Array | None = None,
) -> tuple[Array, float]:
    """The solution of a problem with rebounds, drawn back until no energy is won, and its residual.

    ``plain`` is y without impulses; ``problem.b`` has the rebounds (negative) and gaps (positive)
    beside it. Newton's law of restitution can win energy where friction couples several contacts.
    W(x) = beforeᵀ x + ½ xᵀ G x is the energy that impulses add to a motion that comes with the
    velocities ``before`` (where forces act beside impulses, ``plain`` has their part already); all
    of the sets being convex, between the solution without rebounds and that with them there is one
    of W = 0.

    Where a robot cannot stick and rebound at once (a pendulum's end moves along one line, aslant to
    the ground) there is no solution: those rebounds are without friction then.
    """
    g, shift = problem.matrix, problem.b - plain
    coming = plain if before is None else before
    x, residual = solve(problem, start, tolerance)
    if not np.any(shift < 0.0):
        return x, residual
    still, left = solve(replace(problem, b=plain + np.maximum(shift, 0.0)), start, tolerance)

    def lost(x: Array, residual: float) -> bool:
        most = float(np.max(np.abs(still), initial=0.0))
        return residual > UNSOLVED or float(np.max(np.abs(x))) > WEDGED * most > 0.0

    def work(x: Array) -> float:
        return float(coming @ x + 0.5 * x @ g @ x)

    if lost(x, residual):
        back = shift[2 : 3 * problem.rows.contacts : 3] < 0.0
        smooth = replace(problem, friction=np.where(back, 0.0, problem.friction))
        x, residual = solve(smooth, still, tolerance)
        if lost(x, residual):
            return still, left
    if work(x) <= 0.0:
        return x, residual
    apart = x - still
    a, slope = 0.5 * float(apart @ g @ apart), float(apart @ (coming + g @ still))
    rest = work(still)
    if a <= 0.0 or rest > 0.0:
        return still, left
    share = (-slope + np.sqrt(slope * slope - 4.0 * a * rest)) / (2.0 * a)
    return np.asarray(still + min(max(share, 0.0), 1.0) * apart), left


# ---- batches -------------------------------------------------------------------------------------


def strike(
    touch: Touch,
    v: Array,
    restitution: ArrayLike,
    friction: ArrayLike,
    normals: ArrayLike,
) -> tuple[Array, Array]:
    """:func:`rebound` of a batch: (v⁺, impulses (..., k, 3))."""
    k = touch.points
    normal, bounce = checked(normals, restitution, k)
    rub = _frictions(friction, k)
    given = (*((x, 2) for x in touch), (v, 1), (bounce, 1), (normal, 2), (rub, 1))
    after, impulses, worst = [], [], 0.0
    batch, states = _states(given)
    for state in states:
        speed, impulse, residual = rebound(Touch(*state[:3]), *state[3:])
        after.append(speed)
        impulses.append(impulse)
        worst = max(worst, residual)
    if worst > 1e-7:
        _tell(f"an impact was solved to {worst:.1g} of its velocities only")
    return (
        np.array(after).reshape(*batch, v.shape[-1]),
        np.array(impulses).reshape(*batch, k, 3),
    )


def pushed(
    touch: Touch,
    free: Array,
    rates: Array,
    accelerations: Array,
    friction: ArrayLike,
    normals: ArrayLike,
) -> tuple[Array, Array]:
    """:func:`unilateral` of a batch: (a, forces (..., k, 3))."""
    k = touch.points
    normal, _ = checked(normals, 0.0, k)
    rub = _frictions(friction, k)
    given = (*((x, 2) for x in touch), (free, 1), (rates, 1), (accelerations, 1),
             (normal, 2), (rub, 1))  # fmt: skip
    found, forces = [], []
    warned: dict[str, int] = {}
    batch, states = _states(given)
    for state in states:
        a, force, told = unilateral(Touch(*state[:3]), *state[3:])
        found.append(a)
        forces.append(force)
        if told:
            warned[told] = warned.get(told, 0) + 1
    for told, count in warned.items():
        _tell(told + (f" ({count} of {len(found)} states)" if len(found) > 1 else ""))
    return np.array(found).reshape(*batch, free.shape[-1]), np.array(forces).reshape(*batch, k, 3)


def _states(given: Sequence[tuple[Array, int]]) -> tuple[tuple[int, ...], Iterator[list[Array]]]:
    """The batch's shape, and the arrays of one state after the other; (array, axes of its own)."""
    batches = [x.shape[: x.ndim - own] for x, own in given]
    try:
        batch = np.broadcast_shapes(*batches)
    except ValueError:
        raise ValueError(
            "batch axes of the states, normals, friction and restitution do not broadcast: "
            + ", ".join(map(str, dict.fromkeys(batches)))
        ) from None
    wide = [np.broadcast_to(x, (*batch, *x.shape[x.ndim - own :])) for x, own in given]
    return batch, ([x[index] for x in wide] for index in np.ndindex(*batch))


def _frictions(friction: ArrayLike, k: int) -> Array:
    """Coefficients (..., k), finite and not negative."""
    found = as_numbers(friction, "friction")
    if not np.all((found >= 0.0) & np.isfinite(found)):
        raise ValueError(
            "friction is a finite coefficient, not negative: sticking without pulling has no "
            "solution or several; with unilateral=False contacts hold whatever it takes"
        )
    if found.ndim and found.shape[-1] not in (1, k):
        raise ValueError(f"friction needs shape () or (..., {k}), got {found.shape}")
    return np.broadcast_to(found, (*found.shape[:-1], k))


def _tell(what: str) -> None:
    warn(RuntimeWarning(what))


def slopes(
    parts: tuple[Array, ...], tolerance: float
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """(∂a/∂q, ∂a/∂v, ∂a/∂tau, ∂f/∂q, ∂f/∂v, ∂f/∂tau) from :func:`touch_derivatives`."""
    left_q, left_v, right_q, right_v, jacobian, mass = parts
    transposed = np.swapaxes(jacobian, -1, -2)
    inverse = jacobian @ solved(mass, transposed)
    unit = np.broadcast_to(np.eye(mass.shape[-1]), mass.shape)
    changes, forces = [], []
    for left, right in ((left_q, right_q), (left_v, right_v), (-unit, np.zeros_like(jacobian))):
        free = solved(mass, left)
        wanted = np.swapaxes(jacobian @ free - right, -1, -2)
        force = np.swapaxes(least(inverse[..., None, :, :], wanted, tolerance), -1, -2)
        forces.append(force)
        changes.append(solved(mass, transposed @ force) - free)
    (a_q, a_v, a_tau), (f_q, f_v, f_tau) = changes, forces
    return a_q, a_v, a_tau, f_q, f_v, f_tau
