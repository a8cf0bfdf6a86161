"""Points that touch something rigid: their motion and the forces on them, at an instant.

Accelerations c̈ = J a + J̇ v of the points are in world axes, without gravity; the forces f on them
obey M a + bias = tau + Jᵀ f. Bilateral contacts keep c̈ = 0, with the f of least norm. Unilateral
ones obey Signorini's law on accelerations and Coulomb's: those at rest stick or begin to slip
(:mod:`.contact.complementarity`), those that slide have f = (n - μ ĉ) f_n with ĉ the direction of
their slip; the law then has one solution, several, or none (Painlevé).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, ParamSpec

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array, Mask
from robomodel.dynamics.contact.complementarity import ArrayProblem, solve
from robomodel.dynamics.contact.gauss_seidel import basis
from robomodel.dynamics.contact.instant import AT_REST, COLLISION, sharer, solver
from robomodel.dynamics.contact.least import check_tolerance, least, least_alike
from robomodel.dynamics.contact.problem import RowKinds
from robomodel.dynamics.kinematics.frames import FramePlacement, joint_forces
from robomodel.dynamics.kinematics.state import State, position_directions
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.efpa import point_forces, touching
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.errors import warn
from robomodel.kernels.differentiate import differentiate
from robomodel.kernels.function import TracedFunction
from robomodel.kernels.trace import Traced
from robomodel.model.arguments import as_numbers
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, dot, subtracted, transposed, value_of
from robomodel.tolerances import NOTHING, RANK, ROUNDING, SAME, SINGULAR

ENUMERATED = 10  # most sliding contacts of which all 2^n sets are tried
UNSOLVED = 1e-6  # residual above which a problem counts as not solved
P = ParamSpec("P")
UP = (0.0, 0.0, 1.0)
FEW_POINTS = 4  # most points whose forces are compiled: the program grows with their cube
COLLIDES = "points run into what they touch: an impact comes first (rm.impulse)"
# Impulses of points that cannot stick and rebound at once exceed those without rebounds by the
# inverse of rounding: 1e3 and 1e5 give the same.
WEDGED = 1e4


class Touch(NamedTuple):
    """Points in contact as arrays: J M⁻¹ Jᵀ (..., 3k, 3k), and M⁻¹ Jᵀ (..., nv, 3k)."""

    inverse: Array
    columns: Array

    @property
    def points(self) -> int:
        """The number k of points."""
        return int(self.inverse.shape[-1] // 3)

    def changes(self, forces: Array) -> Array:
        """M⁻¹ Jᵀ times forces (..., 3k)."""
        return np.asarray(np.matmul(self.columns, forces[..., None])[..., 0])


def touch_derivatives(
    model: Model,
    q: Sequence[Traced],
    v: Sequence[Traced],
    a: Vector,
    forces: Vector,
    places: Sequence[FramePlacement],
) -> list[list[list[Scalar]]]:
    """The parts of the derivatives of held contacts, at traced q and v; a and forces constant.

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
    rows = transposed(differentiate(q[0].trace, [*left, *right], directions))
    return [
        [row[:nv] for row in rows[:nv]],
        [row[nv:] for row in rows[:nv]],
        [row[:nv] for row in rows[nv:]],
        [row[nv:] for row in rows[nv:]],
        jacobian,
        crba(model, q),
    ]


def points_jacobian(
    model: Model, state: State, q: Vector, places: Sequence[FramePlacement]
) -> list[list[Scalar]]:
    """J (3k by nv) of points in world axes."""
    forces = point_forces(model, q, places)
    return [joint_forces(model, state, body, wrench) for body, wrench in forces]


# ---- on arrays: one state after the other --------------------------------------------------------


def collide(
    touch: Touch,
    v: Array,
    rates: Array,
    restitution: ArrayLike,
    normals: ArrayLike,
    sticking: bool,
    tolerance: float,
    quick: bool,
) -> tuple[Array, Array]:
    """(v⁺, impulses (..., k, 3)) of points with velocities ``rates``; others as ``rm.impulse``.

    Newton's law for the points' velocities c: c⁺ = -e c⁻ along the normals, zero across.
    """
    impulse = bilateral(touch.inverse, rates, normals, restitution, sticking, tolerance, quick)
    return v + touch.changes(impulse), impulse.reshape(*impulse.shape[:-1], touch.points, 3)


def bilateral(
    inverse: Array,
    rates: Array,
    normals: ArrayLike,
    restitution: ArrayLike,
    sticking: bool,
    tolerance: float,
    quick: bool,
) -> Array:
    """The least impulses (..., 3k) with which points leave by Newton's law; they may pull.

    ``quick``: by the compiled program, except for states where its result is doubtful.
    """
    check_tolerance(tolerance)
    k = rates.shape[-1] // 3
    normal, bounce = _directions(normals, k), _coefficients(restitution, k, "restitution")
    arrays = ((inverse, 2), (rates, 1), (normal, 1), (bounce, 1))
    if not quick or k > FEW_POINTS or tolerance != RANK:
        _states(arrays)
        return _bilateral(inverse, rates, normal, bounce, sticking, tolerance)
    solution = _run(sharer(k, sticking), arrays)
    impulse, doubt = solution[..., : 3 * k], solution[..., 3 * k]
    left = ~(doubt <= 1e-11)  # relative error above which impulses are computed by eigenvalues
    if left.any():
        impulse[left] = _bilateral(inverse, rates, normal, bounce, sticking, tolerance)[left]
    return impulse


def _bilateral(
    inverse: Array, rates: Array, normal: Array, bounce: Array, sticking: bool, tolerance: float
) -> Array:
    """:func:`bilateral` by eigenvalues."""
    k = rates.shape[-1] // 3
    normal = normal.reshape(*normal.shape[:-1], k, 3)
    before = rates.reshape(*rates.shape[:-1], k, 3)
    approach = np.sum(normal * before, axis=-1)
    if sticking:
        change = -before - (bounce * approach)[..., None] * normal
        return least(inverse, change.reshape(*change.shape[:-2], 3 * k), tolerance)
    across = np.eye(k)[:, :, None] * normal[..., None, :]  # (..., k, k, 3)
    across = across.reshape(*across.shape[:-2], 3 * k)
    along = across @ inverse @ np.swapaxes(across, -1, -2)
    impulse = least(along, -(1.0 + bounce) * approach, tolerance)[..., None] * normal
    return np.asarray(impulse.reshape(*impulse.shape[:-2], 3 * k))


def held(
    touch: Touch, free: Array, accelerations: Array, tolerance: float, quick: bool
) -> tuple[Array, Array]:
    """Bilateral contacts: (a, forces (..., 3k)) from the points' accelerations at ``free``.

    ``free`` is a without contact. Contacts that contradict each other (points of one body that
    turns) are met in the least-squares sense, with a RuntimeWarning.
    """
    forces = bilateral(touch.inverse, accelerations, UP, 0.0, True, tolerance, quick)
    left = accelerations + np.einsum("...ij,...j->...i", touch.inverse, forces)
    size = np.max(np.abs(accelerations), axis=-1, initial=0.0)
    if np.any(np.max(np.abs(left), axis=-1, initial=0.0) > 1e-6 * size + 1e-9):
        warn(
            RuntimeWarning(
                "contacts contradict each other: no forces keep all of these points from "
                "accelerating (points of one body that turns cannot all be at rest); they are "
                "met in the least-squares sense"
            )
        )
    return free + touch.changes(forces), forces


def unilateral(
    touch: Touch,
    free: Array,
    rates: Array,
    accelerations: Array,
    normals: Array,
    friction: Array,
) -> tuple[Array, Array, str]:
    """(a, forces (k, 3)) of one state, and the text of a warning or "".

    Arrays as in :func:`held`, of one state; ``normals`` (3k,), ``friction`` (k,).
    """
    inverse, k = touch.inverse, touch.points
    normals = normals.reshape(k, 3)
    bases = np.array([basis(tuple(normal)) for normal in normals])
    speeds = np.einsum("kij,kj->ki", bases, rates.reshape(k, 3))
    if not np.all(np.isfinite(inverse)) or not np.all(np.isfinite(accelerations)):
        return np.full_like(free, np.nan), np.full((k, 3), np.nan), ""
    if np.any(speeds[:, 2] < -AT_REST):
        return (
            np.full_like(free, np.nan),
            np.full((k, 3), np.nan),
            COLLIDES,
        )
    slip = np.hypot(speeds[:, 0], speeds[:, 1])
    active = [i for i in range(k) if speeds[i, 2] <= AT_REST]
    sticking = [i for i in active if slip[i] <= AT_REST]
    sliding = [i for i in active if slip[i] > AT_REST]
    rows = [bases[i] for i in sticking] + [bases[i][2:] for i in sliding]
    pushes = [bases[i] for i in sticking]
    for i in sliding:
        direction = (speeds[i, 0] * bases[i][0] + speeds[i, 1] * bases[i][1]) / slip[i]
        pushes.append((normals[i] - friction[i] * direction)[None])
    spread = _placed(rows, [*sticking, *sliding], k)
    push = _placed(pushes, [*sticking, *sliding], k)
    matrix, b = spread @ inverse @ push.T, spread @ accelerations
    issue = ""
    if not len(b):
        x = np.zeros(0)
    elif sliding and not sticking:
        x, issue = _slid(matrix, b, inverse @ push.T, np.linalg.norm(push, axis=1))
    else:
        kinds = RowKinds(len(sticking), len(sliding))
        problem = ArrayProblem(kinds, matrix, b, friction[sticking], np.empty(0))
        x, residual = solve(problem, np.zeros(len(b)), ROUNDING)
        if residual > 1e-7:
            x = np.full(len(b), np.nan)
            issue = f"no finite forces were found (residual {residual:.1g}); an impulse comes next"
    flat = push.T @ x
    return free + touch.changes(flat), flat.reshape(k, 3), issue


def _slid(matrix: Array, b: Array, effects: Array, lengths: Array) -> tuple[Array, str]:
    """0 <= x ⟂ A x + b >= 0 with A not symmetric: its solution, or the least of several.

    A + Aᵀ positive definite has one solution for every b. Else all sets of contacts are tried.
    ``effects`` @ x (3k,) is the effect of x on the points, ``lengths`` are those of the forces at
    unit x. Sets with the same effect, as of redundant points, are one solution, of least forces.
    """
    n = len(b)
    if n > ENUMERATED or np.linalg.eigvalsh(matrix + matrix.T)[0] > 0.0:
        line = ArrayProblem(RowKinds(0, n), matrix, b, np.empty(0), np.empty(0))
        x, residual = solve(line, np.zeros(n), ROUNDING)
        if residual <= 1e-8:
            return x, ""
        return np.full(n, np.nan), "no finite forces were found; an impulse comes next"
    size, solutions = np.abs(b).max(), []
    for pushing in itertools.product((False, True), repeat=n):
        on = np.array(pushing)
        x = np.zeros(n)
        if on.any():
            block = matrix[np.ix_(on, on)]
            if abs(np.linalg.det(block)) <= ROUNDING * np.prod(np.abs(np.diagonal(block))):
                continue
            x[on] = np.linalg.solve(block, -b[on])
        y = matrix @ x + b
        if np.all(x >= -NOTHING * np.abs(x).max(initial=0.0)) and np.all(y[~on] >= -NOTHING * size):
            solutions.append(x)
    if not solutions:
        return np.full(n, np.nan), (
            "no finite forces obey Coulomb's law here (Painlevé): an impulse without collision"
        )
    apart: list[Array] = []
    for x in sorted(solutions, key=lambda x: float(np.linalg.norm(lengths * x))):
        done = [effects @ (x - other) for other in apart]
        if all(np.abs(change).max() > SAME * np.abs(effects @ x).max() for change in done):
            apart.append(x)
    best = _shared(matrix @ apart[0] + b <= SAME * size, apart[0], effects, lengths)
    if len(apart) > 1:
        return best, (
            f"{len(apart)} sets of forces obey Coulomb's law here (Painlevé); the smallest is given"
        )
    return best, ""


def _shared(on: Mask, x: Array, effects: Array, lengths: Array) -> Array:
    """The least forces of the contacts ``on`` with the effect of x; x itself where these pull."""
    result = np.zeros_like(x)
    size = lengths[on]
    result[on] = least_alike(effects[:, on] / size, size * x[on], SINGULAR) / size
    return result if np.all(result >= 0.0) else x


def _placed(blocks: Sequence[Array], at: Sequence[int], k: int) -> Array:
    """Rows (n, 3k) from blocks of rows of single contacts."""
    rows = np.zeros((sum(len(block) for block in blocks), 3 * k))
    first = 0
    for block, i in zip(blocks, at, strict=True):
        rows[first : first + len(block), 3 * i : 3 * i + 3] = block
        first += len(block)
    return rows


def rebound(
    touch: Touch,
    v: Array,
    rates: Array,
    restitution: Array,
    normals: Array,
    friction: Array,
) -> tuple[Array, Array, float]:
    """(v⁺, impulses (k, 3), residual) of an impact of one state, which pushes and never pulls.

    Newton's law holds along the normals of points that approach, Coulomb's across. Where friction
    would make rebounds gain energy, they are reduced until none is gained.
    """
    inverse, k = touch.inverse, touch.points
    normals = normals.reshape(k, 3)
    turn = np.zeros((3 * k, 3 * k))
    for i in range(k):
        turn[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = [
            [value_of(x) for x in axis] for axis in basis(tuple(normals[i].tolist()))
        ]
    if not np.all(np.isfinite(inverse)):
        return np.full_like(v, np.nan), np.full((k, 3), np.nan), 0.0
    plain = turn @ rates
    shift = np.zeros(3 * k)
    shift[2::3] = restitution * np.minimum(plain[2::3], 0.0)
    problem = ArrayProblem(
        RowKinds(k), turn @ inverse @ turn.T, plain + shift, friction, np.empty(0)
    )
    x, residual = rebounding(problem, plain, np.zeros(3 * k), ROUNDING)
    flat = turn.T @ x
    return v + touch.changes(flat), flat.reshape(k, 3), residual


def rebounding(
    problem: ArrayProblem, plain: Array, start: Array, tolerance: float = 1e-10
) -> tuple[Array, float]:
    """The solution of a problem with rebounds, reduced until no energy is gained; its residual.

    ``plain`` is y without impulses; ``problem.b`` also has the rebounds (negative) and gaps
    (positive); see :func:`.problem.without_gain`.

    Where a robot cannot stick and rebound at once (a pendulum's end moves along one line, oblique
    to the ground) there is no solution; these contacts then rebound without friction.
    """
    shift = problem.b - plain
    x, residual = solve(problem, start, tolerance)
    if not np.any(shift < 0.0):
        return x, residual
    still, left = solve(replace(problem, b=plain + np.maximum(shift, 0.0)), start, tolerance)

    def lost(x: Array, residual: float) -> bool:
        most = float(np.max(np.abs(still), initial=0.0))
        return residual > UNSOLVED or float(np.max(np.abs(x))) > WEDGED * most > 0.0

    if lost(x, residual):
        back = shift[2 : 3 * problem.rows.contacts : 3] < 0.0
        smooth = replace(problem, friction=np.where(back, 0.0, problem.friction))
        x, residual = solve(smooth, still, tolerance)
        if lost(x, residual):
            return still, left
    less = problem.without_gain(plain, x, still)
    return less, residual if np.array_equal(less, x) else left


# ---- batches -------------------------------------------------------------------------------------


def strike(
    touch: Touch,
    v: Array,
    rates: Array,
    restitution: ArrayLike,
    friction: ArrayLike,
    normals: ArrayLike,
) -> tuple[Array, Array]:
    """:func:`rebound` of a batch: (v⁺, impulses (..., k, 3))."""
    k = touch.points
    normal, bounce = _directions(normals, k), _coefficients(restitution, k, "restitution")
    rub = _coefficients(friction, k, "friction")
    arrays = (*((x, 2) for x in touch), (v, 1), (rates, 1), (bounce, 1), (normal, 1), (rub, 1))
    after, impulses, worst = [], [], 0.0
    batch, states = _states(arrays)
    for state in states:
        speed, impulse, residual = rebound(Touch(*state[:2]), *state[2:])
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
    quick: bool,
) -> tuple[Array, Array]:
    """:func:`unilateral` of a batch: (a, forces (..., k, 3)).

    ``quick``: by the compiled program, except for states that it does not solve.
    """
    k = touch.points
    normal, rub = _directions(normals, k), _coefficients(friction, k, "friction")
    law = (rates, 1), (accelerations, 1), (normal, 1), (rub, 1)
    arrays = (*((x, 2) for x in touch), (free, 1), *law)
    warned: dict[str, int] = {}
    if quick and k <= FEW_POINTS:
        solution = _run(solver(k), ((touch.inverse, 2), *law))
        forces, residual = solution[..., : 3 * k], solution[..., 3 * k]
        a = free + touch.changes(forces)
        if (residual <= NOTHING).all():
            return a, forces.reshape(*forces.shape[:-1], k, 3)
        collides = np.asarray(residual == COLLISION)
        left = np.asarray(~((residual <= NOTHING) | collides))
        if collides.any():
            a[collides], forces[collides] = np.nan, np.nan
            warned[COLLIDES] = int(np.count_nonzero(collides))
    else:
        batch, _ = _states(arrays)
        a, forces = np.empty((*batch, free.shape[-1])), np.empty((*batch, 3 * k))
        left = np.ones(batch, dtype=bool)
    if left.any():
        for index, state in zip(np.ndindex(left.shape), _states(arrays)[1], strict=True):
            if left[index]:
                a[index], force, issue = unilateral(Touch(*state[:2]), *state[2:])
                forces[index] = force.ravel()
                if issue:
                    warned[issue] = warned.get(issue, 0) + 1
    for issue, count in warned.items():
        _tell(issue + (f" ({count} of {left.size} states)" if left.size > 1 else ""))
    return a, forces.reshape(*forces.shape[:-1], k, 3)


def _states(arrays: Sequence[tuple[Array, int]]) -> tuple[tuple[int, ...], Iterator[list[Array]]]:
    """The batch's shape, and an iterator over states; from pairs (array, number of core axes)."""
    batches = [x.shape[: x.ndim - axes] for x, axes in arrays]
    try:
        batch = np.broadcast_shapes(*batches)
    except ValueError:
        raise ValueError(
            "batch axes of the states, normals, friction and restitution do not broadcast: "
            + ", ".join(map(str, dict.fromkeys(batches)))
        ) from None
    wide = [np.broadcast_to(x, (*batch, *x.shape[x.ndim - axes :])) for x, axes in arrays]
    return batch, ([x[index] for x in wide] for index in np.ndindex(*batch))


def _tell(what: str) -> None:
    warn(RuntimeWarning(what))


def _run(function: TracedFunction, arrays: Sequence[tuple[Array, int]]) -> Array:
    """A compiled program on (array, number of core axes) pairs; two core axes are flattened."""
    try:
        solution: Array = function(
            *(
                x if axes == 1 else x.reshape(*x.shape[:-2], math.prod(x.shape[-2:]))
                for x, axes in arrays
            )
        )
    except ValueError:
        _states(arrays)  # says which batch axes do not fit
        raise
    return solution


def _kept(make: Callable[P, Array]) -> Callable[P, Array]:
    """Cache the results for plain numbers, whose checks take longer than the dynamics."""
    kept: Callable[..., Array] = functools.lru_cache(maxsize=256)(make)

    def call(*args: P.args, **options: P.kwargs) -> Array:
        try:
            return kept(*args, **options)
        except TypeError:  # arrays and lists, which have no hash
            return make(*args, **options)

    return call


@_kept
def _directions(normals: ArrayLike, k: int) -> Array:
    """Unit normals (..., 3k)."""
    normal = as_numbers(normals, "normals")
    if normal.shape[-1:] != (3,) or (normal.ndim > 1 and normal.shape[-2] not in (1, k)):
        raise ValueError(f"normals need shape (3,) or (..., {k}, 3), got {normal.shape}")
    length = np.linalg.norm(normal, axis=-1, keepdims=True)
    if not np.all((length > 0.0) & np.isfinite(length)):
        raise ValueError("normals need a direction; one is zero, or not a finite number")
    wide = np.broadcast_to(normal / length, (*normal.shape[:-2], k, 3))
    return wide.reshape(*wide.shape[:-2], 3 * k)


LIMITS = {
    "friction": "friction is a finite coefficient, not negative: sticking without pulling has no "
    "solution or several; with unilateral=False contacts hold whatever it takes",
    "restitution": "restitution is from 0 (no rebound) to 1 (no loss)",
}


def as_friction(values: ArrayLike) -> Array:
    """Coefficients of friction, not negative; infinite ones are for contacts that hold."""
    numbers = as_numbers(values, "friction")
    if not np.all(numbers >= 0.0):
        raise ValueError(LIMITS["friction"])
    return numbers


@_kept
def _coefficients(values: ArrayLike, k: int, what: Literal["friction", "restitution"]) -> Array:
    """Coefficients (..., k) within their limits."""
    numbers = as_numbers(values, what)
    most = 1.0 if what == "restitution" else np.finfo(float).max
    if not np.all((numbers >= 0.0) & (numbers <= most)):
        raise ValueError(LIMITS[what])
    if numbers.ndim and numbers.shape[-1] not in (1, k):
        raise ValueError(f"{what} needs shape () or (..., {k}), got {numbers.shape}")
    return np.broadcast_to(numbers, (*numbers.shape[:-1], k))


def solved(mass: Array, right: Array) -> Array:
    """M⁻¹ (..., n, m) right; not-a-number where M is singular or not finite, as in aba."""
    unit = np.eye(mass.shape[-1])
    regular = np.asarray(np.isfinite(mass).all(axis=(-1, -2), keepdims=True))
    try:
        result = np.linalg.solve(np.where(regular, mass, unit), right)
    except np.linalg.LinAlgError:  # of the whole batch, where one matrix is singular
        regular &= np.linalg.slogdet(np.where(regular, mass, 0.0))[0][..., None, None] != 0.0
        result = np.linalg.solve(np.where(regular, mass, unit), right)
    return np.where(regular, result, np.nan)


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
