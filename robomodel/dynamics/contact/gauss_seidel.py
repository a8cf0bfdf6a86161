"""Block Gauss–Seidel on contacts, stops and dry friction, exact at each contact, and Newton's
method.

Over scalars of any kind, so that both run inside kernels. The laws are those of
:mod:`robomodel.dynamics.contact.problem`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from robomodel.dynamics.contact.problem import (
    TINY_SINGLE,
    ContactProblem,
    half_line,
    interval,
    length,
    magnitude,
    without_gain,
)
from robomodel.scalars import (
    Scalar,
    Vector,
    advanced,
    div,
    dot,
    maximum,
    minimum,
    select,
    subtracted,
)
from robomodel.scalars import sqrt as root_of
from robomodel.spatial import Vec, cross, inner, scale

# Motions with a third of these numbers and with three times them agree to 1e-12 m.
PROXIMAL = 1e-9  # of a block's trace, added to its diagonal: those of planar robots are singular


FASTENED = 1e6  # G's trace times the normal's inertia: a contact with more cannot rebound


SLIPS = 3  # Newton steps on the slip of a sliding contact in a sweep
REGULARIZED = 1e-6  # share of the mean of G's diagonal on it in the slope of Newton's method
END = 1e-6  # least distance of σ from 0 and 1: squares of smaller ones vanish in single precision


@dataclass(frozen=True, slots=True)
class CoulombContact:
    """Signorini's and Coulomb's laws at one contact, solved exactly for its own three impulses.

    ``inverse`` is of its block of G; S = G_tt - w wᵀ/g, with g = G_nn and w = G_tn, has the
    ``eigenvalues``, whose mean is ``mean``, in axes turned by (``cosine``, ``sine``), in which w is
    ``gamma``. While it slides with the ratio ρ of slip speed to friction, x_t = -(S + ρ)⁻¹ (b_t - w
    b_n/g); σ = mean/(mean + ρ) is in (0, 1], 1 where it sticks.
    """

    friction: Scalar
    inverse: list[list[Scalar]]
    normal: Scalar
    cross: tuple[Scalar, Scalar]
    mean: Scalar
    eigenvalues: tuple[Scalar, Scalar]
    cosine: Scalar
    sine: Scalar
    gamma: tuple[Scalar, Scalar]

    @staticmethod
    def of(block: Sequence[Vector], friction: Scalar) -> CoulombContact:
        """A contact from its block of G, which has the proximal term."""
        (a, b, c), (_, d, e), (_, _, g) = block
        per = div(1.0, g)
        s00, s01, s11 = (x - per * (w * z) for x, w, z in ((a, c, c), (b, c, e), (d, e, e)))
        half = 0.5 * (s00 - s11)
        spread = root_of(half * half + s01 * s01)
        mean = 0.5 * (s00 + s11)
        large = mean + spread
        # no eigenvalue of S is below the proximal term, which single precision would round away
        small = maximum(div(s00 * s11 - s01 * s01, large), PROXIMAL * (a + d + g))
        # the inverse by blocks: with t = S⁻¹, [[t, -t w/g], [., 1/g + wᵀ t w/g²]]
        per_area = div(1.0, large * small)
        t00, t01, t11 = per_area * s11, -(per_area * s01), per_area * s00
        u0, u1 = per * c, per * e
        n0 = -(t00 * u0 + t01 * u1)
        n1 = -(t01 * u0 + t11 * u1)
        inverse = [
            [t00, t01, n0],
            [t01, t11, n1],
            [n0, n1, per - (u0 * n0 + u1 * n1)],
        ]
        per_spread = div(1.0, maximum(spread, TINY_SINGLE))
        size = per_spread * select(half, -half, half)  # |cos 2θ|
        size = select(spread - TINY_SINGLE, 1.0, size)
        long = root_of(0.5 * (1.0 + size))
        short = div(0.5 * (s01 * per_spread), long)
        cosine, sine = select(half, short, long), select(half, long, short)
        return CoulombContact(
            friction, inverse, g, (c, e), mean, (large, small), cosine, sine,
            (cosine * c + sine * e, cosine * e - sine * c),
        )  # fmt: skip

    def solve(self, b: Vector, slip: Scalar) -> tuple[list[Scalar], Scalar]:
        """x, and σ for the next sweep's start; ``b`` is y without the contact's own x."""
        x0, x1, x2 = (-dot(row, b) for row in self.inverse)
        sticks = length(x0, x1) - self.friction * x2
        per = div(1.0, self.normal)
        down = per * b[2]
        t0, t1 = b[0] - self.cross[0] * down, b[1] - self.cross[1] * down
        turned = (
            self.cosine * t0 + self.sine * t1,
            self.cosine * t1 - self.sine * t0,
        )
        low: Scalar = 0.0
        high: Scalar = 1.0
        s = self._start(turned, down, per, slip)
        for _ in range(SLIPS):
            f, slope = self._excess(turned, down, per, s)
            low, high = select(f, s, low), select(f, high, s)
            ahead = s - div(f, slope)
            inside = minimum(ahead - low, high - ahead)
            s = select(inside, 0.5 * (low + high), ahead)
        slide = self._slide(turned, down, per, s)
        x = [
            select(b[2], select(sticks, stick, slip_), 0.0)
            for stick, slip_ in zip((x0, x1, x2), slide, strict=True)
        ]
        return x, s

    def _start(
        self, turned: tuple[Scalar, Scalar], down: Scalar, per: Scalar, slip: Scalar
    ) -> Scalar:
        """σ of the sweep before; if that is at an end, the root for an isotropic S."""
        at_zero = self.friction * down
        y = [-div(t, self.mean) for t in turned]
        at_one = length(*y) + (at_zero + self.friction * per * dot(self.gamma, y))
        linear = minimum(maximum(div(-at_zero, at_one - at_zero), END), 1.0)
        inside = minimum(slip, 1.0 - slip)
        return select(END - inside, slip, linear)

    def _excess(
        self, turned: tuple[Scalar, Scalar], down: Scalar, per: Scalar, s: Scalar
    ) -> tuple[Scalar, Scalar]:
        """f(σ) = |x_t| - μ x_n, zero where the contact slides, and its slope."""
        y, dy = self._tangent(turned, s)
        size = length(*y) + TINY_SINGLE
        f = size + self.friction * (down + per * dot(self.gamma, y))
        slope = div(dot(y, dy), size) + self.friction * per * dot(self.gamma, dy)
        return f, slope

    def _tangent(
        self, turned: tuple[Scalar, Scalar], s: Scalar
    ) -> tuple[list[Scalar], list[Scalar]]:
        """x_t in the turned axes, -B σ/(mean (1 - σ) + λ σ), and its derivative by σ."""
        y, dy, rest = [], [], self.mean * (1.0 - s)
        for t, eigenvalue in zip(turned, self.eigenvalues, strict=True):
            q = div(1.0, rest + eigenvalue * s)
            y.append(-(t * s * q))
            dy.append(-(t * self.mean * (q * q)))
        return y, dy

    def _slide(
        self, turned: tuple[Scalar, Scalar], down: Scalar, per: Scalar, s: Scalar
    ) -> tuple[Scalar, Scalar, Scalar]:
        """The impulse of a sliding contact, projected onto the cone."""
        y, _ = self._tangent(turned, s)
        n = maximum(-(down + per * dot(self.gamma, y)), 0.0)
        x0 = self.cosine * y[0] - self.sine * y[1]
        x1 = self.cosine * y[1] + self.sine * y[0]
        share = minimum(div(self.friction * n, maximum(length(x0, x1), TINY_SINGLE)), 1.0)
        return share * x0, share * x1, n


def basis(normal: Vec) -> tuple[Vec, Vec, Vec]:
    """Two tangents and the normal; for the normal z the world's axes."""
    x, y, z = normal
    steep = y * y - 0.81  # negative where y is far enough from the normal, else x is taken
    first: Vec = (select(steep, z, 0.0), select(steep, 0.0, -z), select(steep, -x, y))
    first = scale(div(1.0, root_of(inner(first, first))), first)
    return first, cross(normal, first), normal


def wedged(block: Sequence[Vector], friction: Scalar) -> Scalar:
    """Negative where a contact cannot stick and rebound at once, from its block of G.

    Its point can move along a line or in a plane only, so steep that friction holds it there under
    any push: impulses that do not move it are inside the cone.
    """
    trace = block[0][0] + block[1][1] + block[2][2]
    at_one = [row[2] for row in CoulombContact.of(_proximal(block), friction).inverse]
    outside = maximum(length(at_one[0], at_one[1]) - friction * at_one[2], 0.0)
    return FASTENED - trace * at_one[2] + 1e12 * (trace * outside)


def within_reach(block: Sequence[Vector], velocity: Vector) -> list[Scalar]:
    """The part of a velocity that a contact's impulses can change: in the range of its block."""
    inverse, more = CoulombContact.of(_proximal(block), 0.0).inverse, _proximal_term(block)
    return [x - more * dot(row, velocity) for x, row in zip(velocity, inverse, strict=True)]


def _proximal_term(block: Sequence[Vector]) -> Scalar:
    return PROXIMAL * (block[0][0] + block[1][1] + block[2][2])


def _proximal(block: Sequence[Vector]) -> list[list[Scalar]]:
    """A contact's block of G with the proximal term."""
    more = _proximal_term(block)
    return [[x + more if i == j else x for j, x in enumerate(row)]
            for i, row in enumerate(block)]  # fmt: skip


@dataclass(frozen=True)
class Sweeps(ContactProblem):
    """Block Gauss–Seidel on one problem; keeps what all sweeps share."""

    @functools.cached_property
    def _contacts(self) -> list[tuple[list[list[Scalar]], CoulombContact]]:
        """Each contact's block of G with the proximal term, and its laws."""
        blocks = [
            _proximal([row[at] for row in self.matrix[at]])
            for at in self.rows.blocks[: self.rows.contacts]
        ]
        return [
            (block, CoulombContact.of(block, mu))
            for block, mu in zip(blocks, self.friction, strict=True)
        ]

    def sweep(self, x: Vector, slips: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """Solve each block in turn, with the latest values of the others."""
        x, slips = list(x), list(slips)
        for i, (block, contact) in enumerate(self._contacts):
            at = self.rows.blocks[i]
            before = x[at]
            without = [
                y - dot(row, before)
                for y, row in zip(self.y(x, range(at.start, at.stop)), block, strict=True)
            ]
            x[at], slips[i] = contact.solve(without, slips[i])
        first = 3 * self.rows.contacts
        for j in range(first, self.rows.unmeshed):
            (y,) = self.y(x, range(j, j + 1))
            free, n = x[j] - div(y, self.matrix[j][j]), j - first - self.rows.stops
            x[j] = (half_line(free) if n < 0 else interval(free, self.bounds[n]))[0]
        return self.mesh_sweep(x), slips

    def without_gain(self, work: Vector, x: Vector, x0: Vector) -> list[Scalar]:
        """See :func:`.problem.without_gain`; then meshes are solved, whose sets are not convex."""
        return self.mesh_sweep(without_gain(self.matrix, work, x, x0))

    def mesh_sweep(self, x: Vector) -> list[Scalar]:
        """Solve each mesh in turn."""
        x = list(x)
        for i, j in enumerate(range(self.rows.unmeshed, self.rows.size)):
            assert self.meshes is not None
            (y,) = self.y(x, range(j, j + 1))
            low, high = self.meshes.alone(i, j, x)
            x[j] = minimum(maximum(x[j] - div(y, self.matrix[j][j]), low), high)
        return x

    def newton(self, x: Vector, steps: int, goal: Scalar = 0.0) -> list[Scalar]:
        """Newton steps on Alart and Curnier's equations; x itself where they do not improve it.

        Also x itself if its residual is at most ``goal``.
        """
        before, x = list(x), list(x)
        for _ in range(steps):
            x = self.newton_step(x)
        left = self.residual(before)
        better = select(goal - left, self.residual(x) - left, 1.0)
        return [select(better, a, b) for a, b in zip(x, before, strict=True)]

    def newton_step(self, x: Vector) -> list[Scalar]:
        """A Newton step, halved up to twice while F does not decrease.

        The slope of F is regularised for redundant contacts, by a share of the mean of G's
        diagonal, which changes the rate of convergence only.
        """
        n = self.rows.size
        total = dot([self.matrix[i][i] for i in range(n)], [1.0] * n)
        more = REGULARIZED / n * total
        d = self.scales
        f, slope = self._equations(x)
        a = [u - s * v for u, s, v in zip(x, d, self.y(x), strict=True)] if self.meshes else []
        bends = {self.rows.unmeshed + i: each for i, (_, _, each) in enumerate(self.meshed(a, x))}
        system = []
        for i, row in enumerate(slope):
            line = []
            for j in range(n):
                moved = dot(
                    [s * d[k] for k, s in row.items()],
                    [self.matrix[k][j] + more if k == j else self.matrix[k][j] for k in row],
                )
                line.append((1.0 if i == j else 0.0) - row.get(j, 0.0) + moved)
            if self.meshes is not None and i in bends:  # its bounds follow all x
                moves = self.meshes.slopes[i - self.rows.unmeshed]
                line = advanced(line, -bends[i], moves)
            line[i] = line[i] + 1e-14
            system.append(line)
        change = _eliminated(system, [-each for each in f])
        ways = [[a + share * b for a, b in zip(x, change, strict=True)]
                for share in (1.0, 0.5, 0.25)]  # fmt: skip
        sizes = [self.error(way) for way in ways]
        now = self.error(x)
        best, size = ways[2], sizes[2]
        for way, other in ((ways[1], sizes[1]), (ways[0], sizes[0])):
            take = other - minimum(size, now)
            best = [select(take, a, b) for a, b in zip(way, best, strict=True)]
            size = select(take, other, size)
        return best

    def _equations(self, x: Vector) -> tuple[list[Scalar], list[dict[int, Scalar]]]:
        """F = x - P(x - d y), and the slope of P by rows."""
        a = [u - s * v for u, s, v in zip(x, self.scales, self.y(x), strict=True)]
        contacts, single = self.projections(a)
        points, slope = list[Scalar](), list[dict[int, Scalar]]()
        for i, (point, rows) in enumerate(contacts):
            points += point
            slope += [{3 * i + c: value for c, value in row.items()} for row in rows]
        for component, inside in single:
            slope.append({len(points): inside})
            points.append(component)
        for component, inside, _ in self.meshed(a, x):
            slope.append({len(points): inside})
            points.append(component)
        return subtracted(x, points), slope

    def error(self, x: Vector) -> Scalar:
        """The largest entry of F / d in magnitude."""
        f, _ = self._equations(x)
        worst: Scalar = 0.0
        for each, trace in zip(f, self.traces, strict=True):
            worst = maximum(magnitude(trace * each), worst)
        return worst


def _eliminated(matrix: list[list[Scalar]], right: Vector) -> list[Scalar]:
    """Gaussian elimination in the order of the rows, without pivoting."""
    n = len(right)
    work, x = [list(row) for row in matrix], list(right)
    for k in range(n):
        inverse = div(1.0, work[k][k])
        for i in range(k + 1, n):
            factor = work[i][k] * inverse
            for j in range(k + 1, n):
                work[i][j] = work[i][j] - factor * work[k][j]
            x[i] = x[i] - factor * x[k]
        work[k][k] = inverse
    for k in reversed(range(n)):
        x[k] = work[k][k] * (x[k] - dot(work[k][k + 1 :], x[k + 1 :]))
    return x
