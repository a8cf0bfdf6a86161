"""Rollouts with contact: a time step with all of its contacts as one program without branches.

The step of :mod:`.simulation.stepping` over scalars of any kind, so that it runs inside a
kernel, lanes across motions: all contact points, stops and friction rows take part in every step,
those too far to touch held open by a select; the complementarity problem has a fixed number of
sweeps, started from the impulses of the step before, and what is left of it is a result. Positions
are corrected once a step, with the step's own Jacobians.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from robomodel.dynamics.contact.gauss_seidel import Rows, Sweeps, wedged
from robomodel.dynamics.kinematics import frames
from robomodel.model.configurations.traced import rates, settled
from robomodel.model.constraints import Rows as MatrixRows
from robomodel.model.joints import Floating, Planar
from robomodel.model.model import Model
from robomodel.motion.ground import Placed
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    add,
    added,
    div,
    dot,
    maximum,
    minimum,
    moved,
    mul,
    neg,
    select,
    sincos,
    sqrt,
    sub,
    subtracted,
)
from robomodel.spatial import from_quaternion
from robomodel.trajectory.simulation.linkage_energy import kept, linkage_columns
from robomodel.trajectory.simulation.step_terms import Assembly, Forces, Touching, assemble, groups
from robomodel.trajectory.simulation.stepping import NEAR, SLOP

OPEN = 1e9  # m/s: the velocity of a contact that is none
CORRECTIONS = 6  # sweeps of the positions' correction


@dataclass(frozen=True)
class Contacts:
    """What a rollout's motions may touch, and how it is solved for."""

    points: tuple[Placed, ...]
    friction: tuple[float, ...]
    restitution: tuple[float, ...]
    height: float
    forces: Forces
    sweeps: int

    def rows(self, model: Model) -> Rows:
        """The rows of a step: every stop has one of each limit."""
        return Rows(len(self.points), len(self.forces.bounds(model)),
                    len(self.forces.rubbing(model)))  # fmt: skip

    def memory(self, model: Model) -> int:
        """Numbers that a step hands to the next one: impulses, slips, and the change of v."""
        return self.rows(model).size + len(self.points) + model.nv


@dataclass(frozen=True, slots=True)
class Step:
    """After a step: q, v, the memory, the residual, the points' impulses, and loops' systems."""

    q: list[Scalar]
    v: list[Scalar]
    memory: list[Scalar]
    residual: Scalar
    impulses: list[Scalar]
    systems: list[MatrixRows]


def step(
    model: Model,
    state: tuple[Vector, Vector, Vector],
    h: Scalar,
    memory: Vector,
    contacts: Contacts,
    closing: int,
) -> Step:
    """One time step from ``state`` = (q, v, tau), over scalars of any kind."""
    q, v, tau = state
    weight = math.hypot(*model.gravity) or 9.81
    rows = contacts.rows(model)
    known, change = memory[: rows.size + rows.contacts], memory[rows.size + rows.contacts :]
    middle = moved(v, 0.5, change)
    first = assemble(model, (q, v, middle, tau), h, contacts.points, contacts.forces)
    factors = Factorization(first.matrix)
    free = factors.solve(first.right)
    matrix, shift, distances = _rows(model, first, contacts)
    reduced = [factors.reduce(row) for row in matrix]
    weighted = [factors.weighted(row) for row in reduced]
    delassus = _symmetric(reduced, weighted)
    size: Scalar = 1e-12
    b: list[Scalar] = []
    friction: list[Scalar] = list(contacts.friction)
    for n, row in enumerate(matrix):
        ahead = dot(row, free)
        if shift[n] is None:
            b.append(ahead)
            size = maximum(_magnitude(ahead), size)
            continue
        gap, restitution = distances[n], shift[n]
        before = dot(row, v)
        closes = add(gap, mul(h, ahead))
        beta = div(maximum(gap, 0.0), h)
        if restitution:
            fast = add(mul(restitution, before), mul(2.0 * weight, h))  # negative: it rebounds
            back = sub(mul(restitution, before), minimum(sub(ahead, before), 0.0))
            beta = select(closes, select(fast, back, beta), beta)
            if n < 3 * rows.contacts:
                own = slice(n - 2, n + 1)
                mu = contacts.friction[n // 3]
                slick = select(wedged([line[own] for line in delassus[own]], mu), 0.0, mu)
                friction[n // 3] = select(closes, select(fast, slick, mu), mu)
        far = sub(NEAR, closes)  # negative: no contact in this step
        size = maximum(select(far, 0.0, _magnitude(add(ahead, beta))), size)
        b.append(select(far, OPEN, add(ahead, beta)))
    rub = [mul(h, f) for f in contacts.forces.rubbing(model)]
    sweeps = Sweeps(rows, delassus, b, friction, rub)
    x, slips = list(known[: rows.size]), list(known[rows.size :])
    for _ in range(contacts.sweeps):
        x, slips = sweeps.sweep(x, slips)
    residual = div(sweeps.residual(x), size)  # what is held open has none
    jump = factors.back(_weighted(weighted, x, model.nv))
    after = added(free, jump)
    changed, mean = _changed(first.matrix, v, free, jump)
    reached, _, systems = settled(model, moved(q, h, rates(model, q, after)), closing)
    ahead_q = reached
    corrected = _corrected(model, ahead_q, contacts, factors, weighted, delassus)
    if corrected is not None:
        ahead_q, _, systems = settled(model, corrected, closing)
    after = _in_turned_axes(model, after, h)
    if linkage_columns(model):
        turned = _in_turned_axes(model, mean, h)
        after = kept(model, (q, middle), (reached, after), turned, h)
    return Step(
        list(ahead_q), after, [*x, *slips, *changed], residual,
        x[: 3 * rows.contacts], list(systems),
    )  # fmt: skip


def _rows(
    model: Model, found: Assembly, contacts: Contacts
) -> tuple[list[list[Scalar]], list[float | None], list[Scalar]]:
    """The rows of all contacts, stops and friction; restitution and gap where they keep a distance.

    Restitution is None for the rows that keep none.
    """
    rows: list[list[Scalar]] = []
    restitution: list[float | None] = []
    gaps: list[Scalar] = []
    for at, point, back in zip(found.touching, contacts.points, contacts.restitution, strict=True):
        rows += _surface(at, point.radius)
        restitution += [None, None, back]
        gaps += [0.0, 0.0, sub(at.origin[2], contacts.height + point.radius)]
    for n, side, bound in contacts.forces.bounds(model):
        rows.append([mul(side, x) for x in found.stops[n]])
        restitution.append(0.0)
        gaps.append(mul(side, sub(found.positions[n], bound)))
    rows += found.rubbing
    restitution += [None] * len(found.rubbing)
    gaps += [0.0] * len(found.rubbing)
    return rows, restitution, gaps


def _surface(at: Touching, radius: float) -> list[list[Scalar]]:
    """The rows of a point, or of the lowest point of a sphere about it, in world axes."""
    if not radius:
        return [list(row) for row in at.linear]
    x, y, z = at.linear
    about_x, about_y, _ = at.turning  # ω x (0, 0, -r) = (-r ω_y, r ω_x, 0)
    return [
        [sub(a, mul(radius, b)) for a, b in zip(x, about_y, strict=True)],
        moved(y, radius, about_x),
        list(z),
    ]


def _changed(
    matrix: list[list[Scalar]], v: Vector, free: Vector, jump: Vector
) -> tuple[list[Scalar], list[Scalar]]:
    """The change of v in this step, none after an impact, which tells nothing of the next step.

    And the mean velocity of the step, which is that after an impact, as that comes first.
    """
    by_forces = subtracted(free, v)

    def square(x: Vector) -> Scalar:
        return dot([dot(row, x) for row in matrix], x)

    standing = sub(square(jump), mul(4.0, square(by_forces)))
    change = [select(standing, add(f, j), 0.0) for f, j in zip(by_forces, jump, strict=True)]
    mean = [
        add(a, add(mul(0.5, f), mul(select(standing, 0.5, 1.0), j)))
        for a, f, j in zip(v, by_forces, jump, strict=True)
    ]
    return change, mean


def _symmetric(reduced: list[list[Scalar]], weighted: list[list[Scalar]]) -> list[list[Scalar]]:
    """R M̂⁻¹ Rᵀ from L⁻ᵀ Rᵀ and Λ⁻¹ of it."""
    n = len(reduced)
    result: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            result[i][j] = result[j][i] = dot(reduced[i], weighted[j])
    return result


def _weighted(rows: list[list[Scalar]], x: Vector, size: int) -> list[Scalar]:
    """Σ x · row."""
    total: list[Scalar] = [0.0] * size
    for weight, row in zip(x, rows, strict=True):
        total = moved(total, weight, row)
    return total


def _magnitude(x: Scalar) -> Scalar:
    return select(x, neg(x), x)


def _corrected(
    model: Model,
    q: Vector,
    contacts: Contacts,
    factors: Factorization,
    weighted: list[list[Scalar]],
    delassus: list[list[Scalar]],
) -> list[Scalar] | None:
    """q with penetration taken out by the least motion in M̂'s norm, by the step's own rows."""
    normal = [3 * i + 2 for i in range(len(contacts.points))]
    gaps = []
    for at in contacts.points:
        _, origin = frames.pose(model, q, frames.place(model, (at.link, at.offset)))
        gaps.append(sub(origin[2], contacts.height + at.radius))
    stopped = contacts.forces.stopped(model)
    positions = model.spanning_positions(q)
    first = 3 * len(contacts.points)
    for k, (n, side, bound) in enumerate(contacts.forces.bounds(model)):
        gaps.append(mul(side, sub(positions[model.nodes[stopped[n]].q], bound)))
        normal.append(first + k)
    if not gaps:
        return None
    y: list[Scalar] = [0.0] * len(gaps)
    for _ in range(CORRECTIONS):
        for i, gap in enumerate(gaps):
            left = add(gap, dot([delassus[normal[i]][m] for m in normal], y))
            y[i] = maximum(sub(y[i], div(left, delassus[normal[i]][normal[i]])), 0.0)
            y[i] = select(sub(SLOP, gap), 0.0, y[i])
    spread = [weighted[n] for n in normal]
    change = factors.back(_weighted(spread, y, model.nv))
    return added(q, rates(model, q, change))


def _in_turned_axes(model: Model, v: Vector, h: Scalar) -> list[Scalar]:
    """Velocities in the axes of free and planar joints after the step's turn.

    That of a free joint is by the quaternion (h ω/2, 1), as its positions' is.
    """
    result = list(v)
    for joint, _, own in groups(model):
        part = v[own]
        if isinstance(joint, Floating):
            x, y, z = (mul(mul(0.5, h), c) for c in part[:3])
            square = add(add(mul(x, x), mul(y, y)), add(mul(z, z), 1.0))
            inverse = div(1.0, sqrt(square))
            x, y, z = (mul(inverse, c) for c in (x, y, z))
            turn = from_quaternion(x, y, z, inverse)
            result[own.start + 3 : own.stop] = turn.unrotate((part[3], part[4], part[5]))
        elif isinstance(joint, Planar):
            s, c = sincos(mul(h, part[2]))
            result[own.start : own.stop] = [
                add(mul(c, part[0]), mul(s, part[1])),
                sub(mul(c, part[1]), mul(s, part[0])),
                part[2],
            ]
    return result
