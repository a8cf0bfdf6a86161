"""Contact, joint stops and dry friction as one complementarity problem, and what solves it.

With G the inverse inertia that the rows' impulses x meet and y = G x + b what they then do,

* a contact's three rows (two tangents, normal) obey Signorini's and Coulomb's laws: x is in the
  cone K = {|x_t| <= μ x_n}, and -(y + Γ(y)) in its normal cone at x, with De Saxcé's shift
  Γ(y) = (0, 0, μ |y_t|), which makes Coulomb's law of a convex cone's;
* a stop's row 0 <= x ⟂ y >= 0;
* a dry-friction row |x| <= bound, x opposing y at its bound where y is not zero.

The residual of x, a velocity free of units and mass ratios, is max |x - P(x - d (y + Γ))| / d with
P the projection on each block's set and d = 1 / trace of its block of G (Acary and Brogliato;
Le Lidec and others, *Contact models in robotics*, 2024). :func:`sweep` is block Gauss–Seidel with
the exact solution at each contact, over scalars of any kind, so that it runs inside kernels;
:func:`solve` follows it with Newton's method on Alart and Curnier's equations and, where that
fails, with ADMM (Carpentier and others, 2024), and keeps the best point of all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.dynamics.sources import sources
from robomodel.kernels import Compiled, Iteration, Program, Trace, compile_program, obstacle
from robomodel.model.joints import Array
from robomodel.scalars import Scalar, Vector, add, div, dot, maximum, minimum, mul, neg, select, sub
from robomodel.scalars import sqrt as root_of

PROXIMAL = 1e-9  # of a block's trace, on its diagonal in both places: planar robots' are singular
FASTENED = 1e6  # so far apart are G's trace and the normal's inertia where tangents stick
TINY = 1e-300
SLIPS = 3  # steps of Newton's on the slip of a sliding contact, a sweep


@dataclass(frozen=True, slots=True)
class Rows:
    """The kinds of rows, in this order: contacts (three rows each), stops, dry friction."""

    contacts: int
    stops: int = 0
    boxes: int = 0

    @property
    def size(self) -> int:
        """Number of rows."""
        return 3 * self.contacts + self.stops + self.boxes

    @property
    def blocks(self) -> list[slice]:
        """The rows of each block."""
        first = 3 * self.contacts
        return [
            *(slice(3 * i, 3 * i + 3) for i in range(self.contacts)),
            *(slice(i, i + 1) for i in range(first, self.size)),
        ]


# ---- one contact, over scalars of any kind -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Contact:
    """Signorini's and Coulomb's laws at one contact, solved exactly for its own three impulses.

    ``inverse`` is of its block of G; S = G_tt - w wᵀ/g, with g = G_nn and w = G_tn, has the
    eigenvalues ``mean`` ± ``spread`` in axes turned by (``cosine``, ``sine``), in which w is
    ``gamma``. While it slides with the ratio ρ of slip speed to friction, x_t = -(S + ρ)⁻¹ (b_t - w
    b_n/g); σ = mean/(mean + ρ) is in (0, 1], 1 where it sticks.
    """

    friction: Scalar
    inverse: list[list[Scalar]]
    normal: Scalar
    cross: tuple[Scalar, Scalar]
    mean: Scalar
    spread: Scalar
    cosine: Scalar
    sine: Scalar
    gamma: tuple[Scalar, Scalar]

    @staticmethod
    def of(block: Sequence[Vector], friction: Scalar) -> Contact:
        """From the contact's block of G."""
        (a, b, c), (_, d, e), (_, _, g) = block
        per = div(1.0, g)
        s00, s01, s11 = (
            sub(x, mul(per, mul(w, z))) for x, w, z in ((a, c, c), (b, c, e), (d, e, e))
        )
        # the inverse by blocks: with t = S⁻¹, [[t, -t w/g], [., 1/g + wᵀ t w/g²]]
        per_area = div(1.0, sub(mul(s00, s11), mul(s01, s01)))
        t00, t01, t11 = mul(per_area, s11), neg(mul(per_area, s01)), mul(per_area, s00)
        u0, u1 = mul(per, c), mul(per, e)
        n0 = neg(add(mul(t00, u0), mul(t01, u1)))
        n1 = neg(add(mul(t01, u0), mul(t11, u1)))
        inverse = [
            [t00, t01, n0],
            [t01, t11, n1],
            [n0, n1, sub(per, add(mul(u0, n0), mul(u1, n1)))],
        ]
        half = mul(0.5, sub(s00, s11))
        spread = root_of(add(mul(half, half), mul(s01, s01)))
        per_spread = div(1.0, maximum(spread, TINY))
        size = mul(per_spread, select(half, neg(half), half))  # |cos 2θ|
        size = select(sub(spread, TINY), 1.0, size)
        long = root_of(mul(0.5, add(1.0, size)))
        short = div(mul(0.5, mul(s01, per_spread)), long)
        cosine, sine = select(half, short, long), select(half, long, short)
        return Contact(
            friction, inverse, g, (c, e), mul(0.5, add(s00, s11)), spread, cosine, sine,
            (add(mul(cosine, c), mul(sine, e)), sub(mul(cosine, e), mul(sine, c))),
        )  # fmt: skip

    def solve(self, b: Vector, slip: Scalar) -> tuple[list[Scalar], Scalar]:
        """x, and σ, from which the next sweep starts; ``b`` is y without the contact's own x."""
        x0, x1, x2 = (neg(dot(row, b)) for row in self.inverse)
        sticks = sub(_length(x0, x1), mul(self.friction, x2))
        per = div(1.0, self.normal)
        down = mul(per, b[2])
        t0, t1 = sub(b[0], mul(self.cross[0], down)), sub(b[1], mul(self.cross[1], down))
        turned = (
            add(mul(self.cosine, t0), mul(self.sine, t1)),
            sub(mul(self.cosine, t1), mul(self.sine, t0)),
        )
        low: Scalar = 0.0
        high: Scalar = 1.0
        s = self._start(turned, down, per, slip)
        for _ in range(SLIPS):
            f, slope = self._excess(turned, down, per, s)
            low, high = select(f, s, low), select(f, high, s)
            ahead = sub(s, div(f, slope))
            inside = minimum(sub(ahead, low), sub(high, ahead))
            s = select(inside, mul(0.5, add(low, high)), ahead)
        slide = self._slide(turned, down, per, s)
        x = [
            select(b[2], select(sticks, stick, slip_), 0.0)
            for stick, slip_ in zip((x0, x1, x2), slide, strict=True)
        ]
        return x, s

    def _start(
        self, turned: tuple[Scalar, Scalar], down: Scalar, per: Scalar, slip: Scalar
    ) -> Scalar:
        """The σ of the sweep before; of one at its ends, that of an isotropic S, f being linear."""
        at_zero = mul(self.friction, down)
        y = [neg(div(t, self.mean)) for t in turned]
        at_one = add(_length(*y), add(at_zero, mul(mul(self.friction, per), dot(self.gamma, y))))
        linear = minimum(maximum(div(neg(at_zero), sub(at_one, at_zero)), 0.0), 1.0)
        inside = minimum(slip, sub(1.0, slip))
        return select(neg(inside), slip, linear)

    def _excess(
        self, turned: tuple[Scalar, Scalar], down: Scalar, per: Scalar, s: Scalar
    ) -> tuple[Scalar, Scalar]:
        """f(σ) = |x_t| - μ x_n, and its slope."""
        y, dy = self._tangent(turned, s)
        size = add(_length(*y), TINY)
        f = add(size, mul(self.friction, add(down, mul(per, dot(self.gamma, y)))))
        slope = add(div(dot(y, dy), size), mul(mul(self.friction, per), dot(self.gamma, dy)))
        return f, slope

    def _tangent(
        self, turned: tuple[Scalar, Scalar], s: Scalar
    ) -> tuple[list[Scalar], list[Scalar]]:
        """x_t in the turned axes, -B σ/(mean ± σ spread), and its derivative by σ."""
        y, dy = [], []
        for t, e in zip(turned, (self.spread, neg(self.spread)), strict=True):
            q = div(1.0, add(self.mean, mul(e, s)))
            y.append(neg(mul(mul(t, s), q)))
            dy.append(neg(mul(mul(t, self.mean), mul(q, q))))
        return y, dy

    def _slide(
        self, turned: tuple[Scalar, Scalar], down: Scalar, per: Scalar, s: Scalar
    ) -> tuple[Scalar, Scalar, Scalar]:
        """The impulse of a sliding contact, brought onto the cone."""
        y, _ = self._tangent(turned, s)
        n = maximum(neg(add(down, mul(per, dot(self.gamma, y)))), 0.0)
        x0 = sub(mul(self.cosine, y[0]), mul(self.sine, y[1]))
        x1 = add(mul(self.cosine, y[1]), mul(self.sine, y[0]))
        share = minimum(div(mul(self.friction, n), maximum(_length(x0, x1), TINY)), 1.0)
        return mul(share, x0), mul(share, x1), n


def _length(x: Scalar, y: Scalar) -> Scalar:
    return root_of(add(mul(x, x), mul(y, y)))


def _project(x: Vector, friction: Scalar) -> list[Scalar]:
    """On the cone |x_t| <= μ x_n."""
    r, n = _length(x[0], x[1]), x[2]
    height = div(add(mul(friction, r), n), add(1.0, mul(friction, friction)))
    height = maximum(height, 0.0)
    outside = sub(mul(friction, n), r)  # negative out of the cone
    share = div(mul(friction, height), maximum(r, TINY))
    return [
        select(outside, mul(share, x[0]), x[0]),
        select(outside, mul(share, x[1]), x[1]),
        select(outside, height, n),
    ]


def wedged(block: Sequence[Vector], friction: Scalar) -> Scalar:
    """Negative where a contact cannot stick and rebound at once, from its block of G.

    Its point moves along a line, or in a plane, so steep that friction holds it there whatever
    pushes: impulses that do not move it are inside of the cone.
    """
    trace = add(add(block[0][0], block[1][1]), block[2][2])
    at_one = [row[2] for row in Contact.of(_proximal(block), friction).inverse]
    outside = maximum(sub(_length(at_one[0], at_one[1]), mul(friction, at_one[2])), 0.0)
    return add(sub(FASTENED, mul(trace, at_one[2])), mul(1e12, mul(trace, outside)))


def _proximal(block: Sequence[Vector]) -> list[list[Scalar]]:
    """A contact's block of G with the proximal term."""
    more = mul(PROXIMAL, add(add(block[0][0], block[1][1]), block[2][2]))
    return [[add(x, more) if i == j else x for j, x in enumerate(row)]
            for i, row in enumerate(block)]  # fmt: skip


# ---- sweeps over scalars of any kind -------------------------------------------------------------


@dataclass(frozen=True)
class Sweeps:
    """Block Gauss–Seidel on one problem; what does not change from sweep to sweep is kept."""

    rows: Rows
    matrix: Sequence[Vector]
    b: Vector
    friction: Vector
    bounds: Vector

    @functools.cached_property
    def _contacts(self) -> list[tuple[list[list[Scalar]], Contact]]:
        """Each contact's block of G with the proximal term, and its laws."""
        made = []
        for at, mu in zip(self.rows.blocks[: self.rows.contacts], self.friction, strict=True):
            block = _proximal([row[at] for row in self.matrix[at]])
            made.append((block, Contact.of(block, mu)))
        return made

    def y(self, x: Vector, rows: range | None = None) -> list[Scalar]:
        """G x + b, of some rows."""
        return [add(dot(self.matrix[i], x), self.b[i]) for i in rows or range(self.rows.size)]

    def sweep(self, x: Vector, slips: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """Every block's own solution in turn, with the others as they are by then."""
        x, slips = list(x), list(slips)
        for i, (block, contact) in enumerate(self._contacts):
            at = self.rows.blocks[i]
            own = x[at]
            without = [
                sub(y, dot(row, own))
                for y, row in zip(self.y(x, range(at.start, at.stop)), block, strict=True)
            ]
            x[at], slips[i] = contact.solve(without, slips[i])
        first = 3 * self.rows.contacts
        for j in range(first, self.rows.size):
            (y,) = self.y(x, range(j, j + 1))
            free = sub(x[j], div(y, self.matrix[j][j]))
            if j < first + self.rows.stops:
                x[j] = maximum(free, 0.0)
            else:
                bound = self.bounds[j - first - self.rows.stops]
                x[j] = minimum(maximum(free, neg(bound)), bound)
        return x, slips

    def residual(self, x: Vector) -> Scalar:
        """The largest residual of a block: a velocity."""
        worst: Scalar = 0.0
        y, first = self.y(x), 3 * self.rows.contacts
        for i, mu in enumerate(self.friction):
            at = self.rows.blocks[i]
            trace = add(add(*(self.matrix[n][n] for n in range(at.start, at.start + 2))),
                        self.matrix[at.stop - 1][at.stop - 1])  # fmt: skip
            c = [*y[at.start : at.stop - 1], add(y[at.stop - 1], mul(mu, _length(*y[at][:2])))]
            moved = [sub(a, div(e, trace)) for a, e in zip(x[at], c, strict=True)]
            for a, p in zip(x[at], _project(moved, mu), strict=True):
                worst = maximum(_size(mul(trace, sub(a, p))), worst)
        for j in range(first, self.rows.size):
            free = sub(x[j], div(y[j], self.matrix[j][j]))
            if j < first + self.rows.stops:
                held = maximum(free, 0.0)
            else:
                bound = self.bounds[j - first - self.rows.stops]
                held = minimum(maximum(free, neg(bound)), bound)
            worst = maximum(_size(mul(self.matrix[j][j], sub(x[j], held))), worst)
        return worst


def _size(x: Scalar) -> Scalar:
    return select(x, neg(x), x)


# ---- one problem, to rounding --------------------------------------------------------------------

LANES = (1, 2, 4, 6, 8, 12, 16, 24, 32)  # numbers of contacts, and of other rows, compiled for
TURNS = 6  # of sweeps (or ADMM) and Newton
NEWTON = 12


@dataclass(frozen=True)
class Problem:
    """y = G x + b: G (n, n), b (n,), ``friction`` of the contacts, ``bounds`` of the boxes."""

    matrix: Array
    b: Array
    rows: Rows
    friction: Array
    bounds: Array

    @functools.cached_property
    def traces(self) -> Array:
        """The trace of each row's own block (n,); 1 where it is zero."""
        diagonal = np.diagonal(self.matrix).copy()
        k = self.rows.contacts
        diagonal[: 3 * k] = np.repeat(diagonal[: 3 * k].reshape(k, 3).sum(axis=1), 3)
        diagonal[diagonal <= 0.0] = 1.0
        return diagonal

    def shifted(self, y: Array) -> Array:
        """y + Γ(y)."""
        result, k = y.copy(), self.rows.contacts
        result[2 : 3 * k : 3] += self.friction * np.hypot(y[0 : 3 * k : 3], y[1 : 3 * k : 3])
        return result

    def projected(self, x: Array) -> Array:
        """On the blocks' sets."""
        result, k = x.copy(), self.rows.contacts
        free = 3 * k + self.rows.stops
        result[3 * k : free] = np.maximum(x[3 * k : free], 0.0)
        result[free:] = np.clip(x[free:], -self.bounds, self.bounds)
        if k:
            cone = x[: 3 * k].reshape(k, 3)
            r, n, mu = np.hypot(cone[:, 0], cone[:, 1]), cone[:, 2], self.friction
            outside = r > mu * n
            height = np.maximum((mu * r + n) / (1.0 + mu * mu), 0.0)
            share = np.where(outside, mu * height / np.maximum(r, TINY), 1.0)
            result[: 3 * k] = np.stack(
                [share * cone[:, 0], share * cone[:, 1], np.where(outside, height, n)], axis=1
            ).ravel()
        return result

    def residuals(self, x: Array) -> Array:
        """Of each row: a velocity."""
        step = x - self.projected(x - self.shifted(self.matrix @ x + self.b) / self.traces)
        return np.abs(step * self.traces)

    def residual(self, x: Array) -> float:
        """Of the whole problem: a velocity."""
        return float(np.max(self.residuals(x), initial=0.0))


def solve(problem: Problem, start: Array, tolerance: float = 1e-10) -> tuple[Array, float]:
    """x (n,) and its residual, relative to max |b|: at most ``tolerance`` where all went well.

    ``start``: the impulses of the step before, or zeros. A problem of the shape G = J M⁻¹ Jᵀ, b = J
    v + β with β zero always has a solution; the residual tells where it was not found.
    """
    size = float(np.max(np.abs(problem.b), initial=0.0))
    if size == 0.0:
        return np.zeros_like(start), 0.0
    best, top = start, problem.residual(start)
    goal = tolerance * size

    def better(x: Array) -> bool:
        nonlocal best, top
        r = problem.residual(x)
        if r < top:
            best, top = x, r
        return top <= goal

    x, slips = start, np.zeros(problem.rows.contacts)
    for turn in range(TURNS):
        if turn < 2 and _padded(problem.rows) is not None:
            x, slips = _swept(problem, x, slips, (8, 24)[turn])
            if better(x):
                break
        else:
            x = _admm(problem, x, int(100 * 1.5**turn), goal)
            if better(x):
                break
        x = _newton(problem, x, NEWTON, goal)
        if better(x):
            break
        x = best
    return best, top / size


def _padded(rows: Rows) -> Rows | None:
    """Compiled sizes that hold these rows; None where there are too many."""

    def up(n: int) -> int | None:
        return 0 if n == 0 else next((lanes for lanes in LANES if lanes >= n), None)

    sizes = up(rows.contacts), up(rows.stops), up(rows.boxes)
    return None if None in sizes else Rows(*(n for n in sizes if n is not None))


def _swept(problem: Problem, x: Array, slips: Array, count: int) -> tuple[Array, Array]:
    """Sweeps by the compiled program; what pads the rows is held open."""
    rows = problem.rows
    wide = _padded(rows)
    assert wide is not None
    at = np.r_[
        0 : 3 * rows.contacts,
        3 * wide.contacts : 3 * wide.contacts + rows.stops,
        3 * wide.contacts + wide.stops : 3 * wide.contacts + wide.stops + rows.boxes,
    ]
    n, k = wide.size, wide.contacts
    matrix, b, state = np.zeros((n, n)), np.ones(n), np.zeros(n + k)
    matrix[np.ix_(at, at)] = problem.matrix
    b[at], state[at], state[n : n + rows.contacts] = problem.b, x, slips
    friction, bounds = np.zeros(k), np.zeros(wide.boxes)
    friction[: rows.contacts], bounds[: rows.boxes] = problem.friction, problem.bounds
    numbers = np.concatenate([matrix.ravel(), b, friction, bounds])
    with np.errstate(all="ignore"):
        after = _sweeper(wide).ufunc(state, np.zeros((count, 1)), numbers)[-1]
    return after[at], after[n : n + rows.contacts]


@functools.cache
def _sweeper(rows: Rows) -> Compiled | Plain:
    """The compiled sweep: (x and slips, one row a sweep, numbers) → x and slips, each sweep's."""
    n, k = rows.size, rows.contacts
    sizes = (n + k, 1, n * n + n + k + rows.boxes, n + k)

    def build(state: Vector, numbers: Vector) -> list[Scalar]:
        at = n * n
        matrix = [numbers[i * n : (i + 1) * n] for i in range(n)]
        problem = Sweeps(rows, matrix, numbers[at : at + n], numbers[at + n : at + n + k],
                         numbers[at + n + k :])  # fmt: skip
        x, slips = problem.sweep(state[:n], state[n:])
        return [*x, *slips]

    def program() -> Program:
        trace = Trace()
        state, _, numbers = (trace.inputs(size) for size in sizes[:-1])
        return trace.program(build(state, numbers)).fused()

    if obstacle() is None:
        name = f"sweeps {rows!r} {SLIPS} {sources()}"
        return compile_program(program, sizes, name=name, iteration=Iteration((1,)))

    def run(state: Array, times: Array, numbers: Array) -> Array:
        result = []
        for _ in times:
            state = np.array(build(list(state), list(numbers)), dtype=float)
            result.append(state)
        return np.stack(result)

    return Plain(run)


@dataclass(frozen=True, slots=True)
class Plain:
    """The same without a kernel."""

    ufunc: Callable[[Array, Array, Array], Array]


def _newton(problem: Problem, x: Array, steps: int, goal: float) -> Array:
    """Newton's method on x = P(x - d y) with discs of radius μ n (Alart and Curnier).

    Its Jacobian takes G + ε, so that redundant contacts do no harm: only the rate feels it.
    """
    rows, d = problem.rows, 1.0 / problem.traces
    n, k = rows.size, rows.contacts
    free = 3 * k + rows.stops
    regular = problem.matrix + 1e-6 * np.trace(problem.matrix) / n * np.eye(n)
    x, best = x.copy(), x
    value = _alart_curnier(problem, x)
    low = problem.residual(x)
    for _ in range(steps):
        f, a, inside = value
        slope = np.zeros((n, n))
        slope[range(free), range(free)] = np.where(a[:free] > 0.0, 1.0, 0.0)
        slope[range(free, n), range(free, n)] = inside[free:]
        for i in range(k):
            at = 3 * i
            slope[at : at + 2, at : at + 3] = 0.0
            if a[at + 2] <= 0.0:
                slope[at + 2, at + 2] = 0.0
            elif inside[at]:
                slope[at, at] = slope[at + 1, at + 1] = 1.0
            else:
                u = a[at : at + 2] / np.hypot(a[at], a[at + 1])
                share = problem.friction[i] * a[at + 2] / np.hypot(a[at], a[at + 1])
                slope[at : at + 2, at : at + 2] = share * (np.eye(2) - np.outer(u, u))
                slope[at : at + 2, at + 2] = problem.friction[i] * u
        system = np.eye(n) - slope + slope @ (d[:, None] * regular) + 1e-14 * np.eye(n)
        try:
            step = np.linalg.solve(system, -f)
        except np.linalg.LinAlgError:
            break
        if not np.all(np.isfinite(step)):
            break
        now = np.max(np.abs(f / d))
        for share in (1.0, 0.5, 0.25):
            value = _alart_curnier(problem, x + share * step)
            if np.max(np.abs(value[0] / d)) < now:
                break
        x = x + share * step
        if (r := problem.residual(x)) < low:
            best, low = x, r
        if low <= goal:
            break
    return best


def _alart_curnier(problem: Problem, x: Array) -> tuple[Array, Array, Array]:
    """F = x - P(a), a = x - d y, and which tangents and boxes are inside of their bounds."""
    rows = problem.rows
    k, free = rows.contacts, 3 * rows.contacts + rows.stops
    a = x - (problem.matrix @ x + problem.b) / problem.traces
    p, inside = np.maximum(a, 0.0), np.ones(len(a), dtype=bool)
    p[free:] = np.clip(a[free:], -problem.bounds, problem.bounds)
    inside[free:] = p[free:] == a[free:]
    if k:
        t = a[: 3 * k].reshape(k, 3)[:, :2]
        r = np.hypot(t[:, 0], t[:, 1])
        radius = problem.friction * p[2 : 3 * k : 3]
        within = r <= radius
        share = np.where(within, 1.0, radius / np.maximum(r, TINY))
        p[: 3 * k].reshape(k, 3)[:, :2] = share[:, None] * t
        inside[: 3 * k] = np.repeat(within, 3)
    return x - p, a, inside


def _admm(problem: Problem, x: Array, steps: int, goal: float) -> Array:
    """ADMM with a proximal term and a penalty that follows its residuals; one factorisation."""
    values, vectors = np.linalg.eigh(problem.matrix)
    largest = float(values[-1])
    if not largest > 0.0:
        return x
    near, power = 1e-6 * largest, 0.2
    y = x.copy()
    z = problem.shifted(problem.matrix @ x + problem.b)
    rho = np.sqrt(largest * near) * (largest / near) ** power
    for step in range(1, steps + 1):
        shift = problem.shifted(z) - z
        right = vectors.T @ (rho * y + near * x + z - problem.b - shift)
        x = vectors @ (right / (values + (near + rho)))
        before, y = y, problem.projected(x - z / rho)
        z = z - rho * (x - y)
        if step % 10 == 0:
            primal, dual = np.max(np.abs(x - y)), rho * np.max(np.abs(y - before))
            power += 0.05 * (float(primal > 10 * dual) - float(dual > 10 * primal))
            rho = np.sqrt(largest * near) * (largest / near) ** power
            if step % 50 == 0 and problem.residual(y) <= goal:
                break
    return y
