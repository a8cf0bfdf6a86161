"""What motors give of the torques asked of them. Scalars of any kind.

Motor forces u of least norm with B u = tau are clipped one by one to what each motor can do at its
rate, and come back as tau + B (clipped u - u): what no motor gives (a push on a floating base, a
joint without an actuator) stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robomodel.dynamics.actuators.maps import HUGE, actuator_map, blocks, driving, unlimited
from robomodel.model.actuators import Actuator
from robomodel.model.derived import cached_on_model
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.scalars import (
    Scalar,
    Vector,
    add,
    div,
    dot,
    is_zero,
    maximum,
    minimum,
    mul,
    neg,
    select,
    solve,
    sub,
)

BAND = 0.01  # of a velocity limit without a curve: where driving force falls to zero, below it
REGULAR = 1e-12  # of B B⁻¹ - 1
UNFELT = 1e-12  # share of a motor in a coordinate that counts as none
UNLIMITED = 1e100
SAMPLES = 3  # configurations at which ranks are counted


def saturated(
    model: Model, q: Vector, v: Vector, tau: Vector
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """(tau that acts (nv), motor forces u (nu), what of those wanted is lost (nu)).

    Driving force at a velocity limit falls from all to nothing within its last hundredth, so that
    a motor held at it by its load has a force that integrators can follow.
    """
    matrix = actuator_map(model, q)
    result = list(tau)
    forces: list[Scalar] = [0.0] * len(model.actuators)
    lost: list[Scalar] = [0.0] * len(model.actuators)
    for rows, columns in blocks([[not is_zero(x) for x in row] for row in matrix]):
        ends = []
        for n in columns:
            rate = dot([matrix[i][n] for i in rows], [v[i] for i in rows])
            ends.append(_ends(model.actuators[n], rate))
        wanted = _wanted(model, matrix, rows, columns, tau)
        cut = []
        for n, (low, high), u in zip(columns, ends, wanted, strict=True):
            forces[n] = _within(u, low, high)
            lost[n] = sub(u, forces[n])
            cut.append(lost[n])
        if len(rows) == len(columns) == 1:  # without a division, as at dead points none is needed
            (i,), (n,), ((low, high),) = rows, columns, ends
            if not (unlimited(low) and unlimited(high)):
                a, b = mul(matrix[i][n], low), mul(matrix[i][n], high)
                result[i] = _within(tau[i], minimum(a, b), maximum(a, b))
        else:
            for i in rows:
                result[i] = sub(tau[i], dot([matrix[i][n] for n in columns], cut))
    return result, forces, lost


def _ends(actuator: Actuator, rate: Scalar) -> tuple[Scalar, Scalar]:
    """The least and the greatest force at this rate; infinite floats where nothing limits it."""
    back = sub(0.0, rate)
    return mul(-1.0, driving(actuator, back, BAND)), driving(actuator, rate, BAND)


def _within(x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """X, or the end that it is beyond; not-a-number stays that."""
    if not unlimited(low):
        x = select(sub(x, low), low, x)
    return x if unlimited(high) else select(sub(high, x), high, x)


def _wanted(
    model: Model,
    matrix: Sequence[Sequence[Scalar]],
    rows: Sequence[int],
    columns: Sequence[int],
    tau: Vector,
) -> list[Scalar]:
    """U of least norm with the least error in B u = tau, of one block.

    By factors of full rank, B = C X with C some columns of B: u = Xᵀ (X Xᵀ)⁻¹ C⁺ tau.
    """
    if len(rows) == len(columns) == 1:
        return [div(tau[rows[0]], matrix[rows[0]][columns[0]])]
    kept = _basis(model, rows, columns)
    chosen = [[matrix[i][n] for n in kept] for i in rows]
    if len(kept) == len(columns):
        return [x for (x,) in solve(chosen, [[tau[i]] for i in rows])]
    found = solve(chosen, [[*(matrix[i][n] for n in columns), tau[i]] for i in rows])
    spread, along = [row[:-1] for row in found], [row[-1:] for row in found]
    gram = [[dot(x, y) for y in spread] for x in spread]
    weights = [x for (x,) in solve(gram, along)]
    return [dot(weights, column) for column in zip(*spread, strict=True)]


def _basis(model: Model, rows: Sequence[int], columns: Sequence[int]) -> list[int]:
    """Actuators of a block of which all others' effects are made, wherever it is regular."""
    from scipy.linalg import qr

    best: list[int] = []
    worst = 0.0
    for block in _sampled(model):
        own = block[np.ix_(rows, columns)]
        _, r, order = qr(own, mode="economic", pivoting=True)
        pivots = np.abs(np.diag(r))
        rank = int(np.count_nonzero(pivots > 1e-9 * pivots[0]))
        least = float(pivots[rank - 1] / pivots[0])
        if (rank, least) > (len(best), worst):
            best, worst = sorted(columns[n] for n in order[:rank].tolist()), least
    return best


@cached_on_model
def _sampled(model: Model) -> list[Array]:
    """B at some configurations."""
    rng = np.random.default_rng(0)
    states = [model.random_configuration(rng).tolist() for _ in range(SAMPLES)]
    return [np.array(actuator_map(model, q)) for q in states]


def limits_alone(
    model: Model, q: Vector, v: Vector
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """Least and greatest tau (nv) of each coordinate while the others get nothing, and a doubt.

    The doubt is 0 where each block of B is regular, so that motor forces are B⁻¹ tau, and 1
    elsewhere: :func:`~robomodel.dynamics.actuators.maps.limits` has singular values for these.
    Beyond :data:`UNLIMITED` nothing limits.
    """
    matrix = actuator_map(model, q)
    least: list[Scalar] = [0.0] * model.nv
    most: list[Scalar] = [0.0] * model.nv
    error = dot(v, v)  # not a number where a rate is none
    error = select(sub(error, HUGE), 0.0, 1.0)
    for rows, columns in blocks([[not is_zero(x) for x in row] for row in matrix]):
        if len(rows) != len(columns):
            return least, most, [1.0]
        block = [[matrix[i][n] for n in columns] for i in rows]
        ends = []
        for n, column in zip(columns, zip(*block, strict=True), strict=True):
            rate, each = dot(column, [v[i] for i in rows]), model.actuators[n]
            back, ahead = driving(each, neg(rate)), driving(each, rate)
            ends.append([HUGE if unlimited(x) else minimum(x, HUGE) for x in (back, ahead)])
        unit = [[1.0 if i == j else 0.0 for j in range(len(rows))] for i in range(len(rows))]
        inverse = solve(block, unit)
        for j, i in enumerate(rows):
            least[i], most[i] = _reach([row[j] for row in inverse], ends)
        for x, target in zip(block, unit, strict=True):
            for y, wanted in zip(zip(*inverse, strict=True), target, strict=True):
                left = sub(dot(x, y), wanted)
                error = add(error, mul(left, left))
    return least, most, [select(sub(error, REGULAR * REGULAR), 0.0, 1.0)]


def _reach(share: Vector, ends: Sequence[Vector]) -> tuple[Scalar, Scalar]:
    """How far a coordinate gets, from its motors' forces for a unit of it and their limits."""
    low: Scalar = -HUGE
    high: Scalar = HUGE
    sizes = [select(s, neg(s), s) for s in share]
    largest: Scalar = 0.0
    for size in sizes:
        largest = maximum(size, largest)
    for s, size, (back, ahead) in zip(share, sizes, ends, strict=True):
        unused = sub(size, mul(UNFELT, largest))  # negative where it is
        down = div(select(s, ahead, back), size)
        up = div(select(s, back, ahead), size)
        low = select(unused, low, maximum(low, neg(down)))
        high = select(unused, high, minimum(high, up))
    return low, high
