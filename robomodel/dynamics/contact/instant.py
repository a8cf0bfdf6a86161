"""Contact forces at an instant over scalars of any kind, with a residual that certifies them.

Points that stick obey Signorini's and Coulomb's laws on accelerations. Points that slide have the
force f = (n - μ ĉ) f_n, points that move away none; velocities decide which is which. A few sweeps
of block Gauss–Seidel and Newton steps on Alart and Curnier's equations solve this for nearly all
states. The residual tells for which they do not: :mod:`robomodel.dynamics.contact.points` solves
those. Of forces with the same effect, as at redundant points, the least are returned.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from robomodel.dynamics.contact.gauss_seidel import Sweeps, basis
from robomodel.dynamics.contact.least import largest, least_traced
from robomodel.dynamics.contact.problem import SLIDING, TINY_SINGLE, RowKinds, Slope
from robomodel.dynamics.kinematics.state import Matrix
from robomodel.kernels.cache import digest
from robomodel.kernels.function import TracedFunction
from robomodel.model.derived import sources
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    div,
    dot,
    maximum,
    select,
    sqrt,
    subtracted,
)
from robomodel.tolerances import SINGULAR

AT_REST = 1e-7  # m/s: slower points touch (along the normal) and stick (across it)
SWEEPS, NEWTON = 8, 4
COLLISION = 1e300  # as the residual: a point approaches what it touches


# ---- of k points, whatever the robot -------------------------------------------------------------


@dataclass(frozen=True)
class Kinds(Sweeps):
    """Contacts that part, slide in a given direction, or may stick, as their velocities decide.

    ``leaves`` and ``slides`` are negative where they do; ``pushes`` are the forces of sliding
    contacts at unit normal force.
    """

    leaves: Vector = ()
    slides: Vector = ()
    pushes: Sequence[Vector] = ()

    def _of_kind(self, i: int, stick: Scalar, slide: Scalar, part: Scalar) -> Scalar:
        return select(self.leaves[i], part, select(self.slides[i], slide, stick))

    def sweep(self, x: Vector, slips: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """Solve each contact in turn, with the latest values of the others."""
        x, slips = list(x), list(slips)
        for i, (block, contact) in enumerate(self._contacts):
            at = self.rows.blocks[i]
            y = self.y(x, range(at.start, at.stop))
            others = [e - dot(row, x[at]) for e, row in zip(y, block, strict=True)]
            sticking, slips[i] = contact.solve(others, slips[i])
            push = self.pushes[i]
            normal = maximum(-div(others[2], dot(block[2], push)), 0.0)
            x[at] = [self._of_kind(i, s, p * normal, 0.0)
                     for s, p in zip(sticking, push, strict=True)]  # fmt: skip
        return x, slips

    def law(self, i: int, a: Vector) -> tuple[list[Scalar], Slope]:
        """P of a contact's a in Alart and Curnier's equations, and its slope."""
        (sticking, slope), push = super().law(i, a), self.pushes[i]
        force, presses = maximum(a[2], 0.0), -a[2]
        point = [self._of_kind(i, s, p * force, 0.0) for s, p in zip(sticking, push, strict=True)]
        for row, p in zip(slope, push, strict=True):
            sliding = {2: select(presses, p, 0.0)}
            for c in {*row, 2}:
                row[c] = self._of_kind(i, row.get(c, 0.0), sliding.get(c, 0.0), 0.0)
        return point, slope

    def residual(self, x: Vector) -> Scalar:
        """The largest residual of a block of Alart and Curnier's equations: an acceleration."""
        return self.error(x)


def _certified(x: Vector, residual: Scalar) -> Scalar:
    """The residual of x; 1 where x is not-a-number, which comparisons miss."""
    return select(dot(x, x) - 1e200, residual, 1.0)  # also where the square overflows


def _back(bases: Sequence[Matrix], x: Vector) -> list[Scalar]:
    return [
        dot([row[c] for row in axes], x[3 * i : 3 * i + 3])
        for i, axes in enumerate(bases)
        for c in range(3)
    ]


def unilateral_forces(
    k: int, inverse: Vector, rates: Vector, accelerations: Vector, normals: Vector, friction: Vector
) -> list[Scalar]:
    """Unilateral contacts: forces (3k) in world axes, and the residual.

    The residual is :data:`COLLISION` where a point approaches what it touches.
    """
    axes = [basis((normals[3 * i], normals[3 * i + 1], normals[3 * i + 2])) for i in range(k)]
    bases = [[list(axis) for axis in each] for each in axes]
    rows = [_projected(bases, inverse[3 * k * i : 3 * k * (i + 1)]) for i in range(3 * k)]
    matrix = [list(row) for row in zip(*(_projected(bases, c) for c in zip(*rows, strict=True)),
                                       strict=True)]  # fmt: skip
    b, speeds = _projected(bases, accelerations), _projected(bases, rates)
    leaves, slides, pushes, nearest = [], [], [], speeds[2]
    for i, mu in enumerate(friction):
        u, w, n = speeds[3 * i : 3 * i + 3]
        slip = sqrt(u * u + w * w)
        leaves.append(AT_REST - n)
        slides.append(AT_REST - slip)
        per = div(mu, maximum(slip, TINY_SINGLE))
        pushes.append([-(per * u), -(per * w), 1.0])
        nearest = select(n - nearest, n, nearest)
    problem = Kinds(RowKinds(k), matrix, b, friction, (), leaves, slides, pushes)
    x: list[Scalar] = [0.0] * (3 * k)
    slips: list[Scalar] = [0.0] * k
    for _ in range(SWEEPS):
        x, slips = problem.sweep(x, slips)
    x = problem.newton(x, NEWTON)
    size = largest(b) + TINY_SINGLE
    y, blocks = problem.y(x), []
    for i in range(k):
        at = slice(3 * i, 3 * i + 3)
        stuck = sqrt(dot(y[at][:2], y[at][:2])) - SLIDING * size
        per = div(1.0, dot(x[at], x[at]) + TINY_SINGLE)
        ray = [[per * (p * r) for p in x[at]] for r in x[at]]
        blocks.append([
            [select(-x[at][2], select(stuck, 1.0 if r == c else 0.0, ray[r][c]), 0.0)
             for c in range(3)] for r in range(3)
        ])  # fmt: skip
    shared, change = least_traced(matrix, blocks, subtracted(y, b))
    moved = div(largest(subtracted(shared, x)), largest(x) + TINY_SINGLE)
    residual = maximum(div(problem.residual(shared), size), 0.1 * change)
    doubtful = _doubtful(problem, moved)
    residual = _certified(shared, select(doubtful, 1.0, residual))
    finite = residual - COLLISION  # negative where it is
    residual = select(nearest + AT_REST, select(finite, COLLISION, residual), residual)
    return [*_back(bases, shared), residual]


def _doubtful(problem: Kinds, moved: Scalar) -> Scalar:
    """Negative where points slide and the solution may not be the only one.

    For sliding points the inverse inertia A between normal forces and accelerations is not
    symmetric. With A + Aᵀ positive definite there is one solution for all accelerations.
    """
    k = problem.rows.contacts
    sliding = [select(p, 1.0, s) for p, s in zip(problem.leaves, problem.slides, strict=True)]
    some: Scalar = 1.0
    for each in sliding:
        some = select(each, -1.0, some)
    a: Matrix = [[dot(problem.matrix[3 * i + 2][3 * j : 3 * j + 3], problem.pushes[j])
                  for j in range(k)] for i in range(k)]  # fmt: skip
    both: Matrix = []
    for i in range(k):
        both.append([])
        for j in range(k):
            pair = select(sliding[i], select(sliding[j], a[i][j] + a[j][i], 0.0), 0.0)
            both[i].append(select(sliding[i], pair, 1.0) if i == j else pair)
    worst: Scalar = 1.0
    for i, pivot in enumerate(Factorization(both).inverse_pivots):
        worst = select(div(1.0, pivot) - SINGULAR * both[i][i], -1.0, worst)
    return select(some, select(1e-6 - moved, -1.0, worst), 1.0)


@functools.cache
def solver(k: int) -> TracedFunction:
    """:func:`unilateral_forces` of k points, for any robot."""
    n = 3 * k
    sizes = {"inverse": n * n, "rates": n, "accelerations": n, "normals": n, "friction": k}
    key = digest(("contact forces", str(k), sources()))
    return TracedFunction(
        "contact_forces", sizes, {"solution": (n + 1,)},
        functools.partial(unilateral_forces, k), key=key,
    )  # fmt: skip


# ---- bilateral contacts --------------------------------------------------------------------------


def sharing(
    k: int, sticking: bool, inverse: Vector, rates: Vector, normals: Vector, restitution: Vector
) -> list[Scalar]:
    """The least impulses (3k) with which points leave by Newton's law, and a doubt about them.

    With ``sticking`` points stop across the normal; otherwise impulses are along it. The doubt is
    the larger of the last refinement's change and the equations' residual, both relative.
    """
    matrix = [list(inverse[3 * k * i : 3 * k * (i + 1)]) for i in range(3 * k)]
    blocks: list[Matrix] = []
    right: list[Scalar] = []
    for i in range(k):
        normal, rate = normals[3 * i : 3 * i + 3], rates[3 * i : 3 * i + 3]
        approach = dot(normal, rate)
        along = (restitution[i] if sticking else 1.0 + restitution[i]) * approach
        wanted = [-(along * e) for e in normal]
        right += subtracted(wanted, rate) if sticking else wanted
        blocks.append([[1.0 if r == c else 0.0 for c in range(3)] if sticking
                       else [normal[r] * e for e in normal] for r in range(3)])  # fmt: skip
    if not sticking:  # only components along the normals matter
        matrix = [list(row) for row in zip(*(_projected(blocks, c)
                  for c in zip(*matrix, strict=True)), strict=True)]  # fmt: skip
    x, change = least_traced(matrix, blocks, right)
    left = subtracted(right, [dot(row, x) for row in matrix])
    doubt = maximum(change, div(largest(left), largest(right) + TINY_SINGLE))
    return [*x, _certified(x, doubt)]


def _projected(blocks: Sequence[Matrix], x: Vector) -> list[Scalar]:
    return [dot(row, x[3 * i : 3 * i + 3]) for i, block in enumerate(blocks) for row in block]


@functools.cache
def sharer(k: int, sticking: bool) -> TracedFunction:
    """:func:`sharing` of k points, for any robot."""
    n = 3 * k
    sizes = {"inverse": n * n, "rates": n, "normals": n, "restitution": k}
    key = digest(("contact impulses", str(k), str(sticking), sources()))
    return TracedFunction(
        "contact_impulses", sizes, {"solution": (n + 1,)},
        functools.partial(sharing, k, sticking), key=key,
    )  # fmt: skip
