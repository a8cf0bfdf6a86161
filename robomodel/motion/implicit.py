"""Springs and dampers too stiff for explicit steps: implicit accelerations, and their rates.

With D = Σ d JᵀJ and K = Σ k JᵀJ over the elements of :mod:`robomodel.dynamics.recursions.passive`,
semi-implicit Euler computes

    (M + h D + h² K / 4) (v₁ - v) = h (τ - c + p),

with p the forces of springs and dampers at the beginning. Dampers act by the velocities at the end.
For a linear spring alone this is Newmark's method with β = 1/4, which is stable for all steps and
loses no energy: undamped oscillations keep their amplitude.

A spring with play acts by its mean force -k D between two stretches, D being the discrete gradient
(Gonzalez, 1996): k D times the change of stretch is the change of the spring's energy. For a linear
spring D is the mean stretch, which is the trapezoidal rule. With play D depends on the end, which
Newton's method computes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.kinematics.state import NO_FORCES, Configuration, Forces
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.passive import Element, elements, is_absent
from robomodel.dynamics.recursions.rnea import bias_force
from robomodel.errors import warn
from robomodel.model.model import Model
from robomodel.model.parameters import counted, parameterized
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    div,
    dot,
    elimination_order,
    maximum,
    select,
    sqrt,
    subtracted,
    value_of,
)

RK4_REACH = 2.0
"""Step times rate up to which "rk4" is used: it is stable up to 2.78."""

RK4_BEYOND = 3.0
"""Magnitude of step times eigenvalue at which "rk4" is unstable at any angle (limit: 2.95)."""

IMPLICIT_NEWTON = 1
"""Steps of Newton's method for springs with play, before the last one."""

NO_WAY = 1e-15
"""[rad, m] A shorter way counts as none."""

Rates: TypeAlias = list[tuple[float, float]]

STIFF = 1e5
"""Duration times rate above which even adaptive explicit steps would be tens of thousands."""


def is_sprung(model: Model) -> bool:
    """True if springs or dampers act on the model."""
    of_joints = (
        (joint.stiffness, joint.damping, joint.law.damping, joint.law.bias)
        for joint in model.joints
    )
    of_springs = ((spring.stiffness, spring.damping) for spring in model.springs)
    return not all(is_absent(x) for each in (*of_joints, *of_springs) for x in each)


def acceleration(
    model: Model, q: Vector, v: Vector, tau: Vector, h: Scalar, f_ext: Forces = NO_FORCES
) -> list[Scalar]:
    """(v₁ - v)/h of a step of length h under tau, springs and dampers; scalars of any kind."""
    matrix = [list(row) for row in crba(model, q)]
    force = subtracted(tau, bias_force(model, q, v, f_ext))
    ways: list[Way] = []
    for element in elements(Configuration(model, q)):
        if element.drags:
            rate = element.rate(v)
            drag = element.drag(rate)
            press(matrix, force, element.row, drag * h, -(drag * rate))
        if not is_absent(element.law.bias):
            push(force, element.row, -element.law.bias)
        if not is_absent(element.stiffness):
            half = 0.5 * h * element.rate(v)
            start, end = element.stretch - half, element.stretch + half
            ways.append(Way(element, start, end, 0.5 * (h * h), end, 1.0))
    return press_springs(matrix, force, ways).solve(force)


@dataclass(frozen=True, slots=True)
class Way:
    """A spring between the stretches ``start`` and ``end`` + ``gain`` · J x, with x unknown.

    ``free`` is the stretch at the end of a motion without forces; ``time`` is the factor of the
    spring's mean force.
    """

    element: Element
    start: Scalar
    end: Scalar
    gain: Scalar
    free: Scalar
    time: Scalar

    def at(self, x: Vector) -> Scalar:
        """The stretch at the end."""
        return self.end + self.gain * self.element.rate(x)

    def guess(self, inertia: Scalar) -> Scalar:
        """The end of a motion of the spring alone, on an inertia that would move to ``free``.

        Towards the side on which the play is left: x = r - κ D with x the way, r that to ``free``.
        From within the play, p before its edge, D is u²/2x with u = x - p beyond it. From b beyond
        it D is b + x/2, and b²/2x, with x negative, if that leads back into the play.
        """
        half = 0.5 * self.element.deadband
        strength = self.time * self.element.stiffness * self.gain
        sum_ = 2.0 * inertia + strength
        both = div(1.0, inertia * sum_)  # one division for κ and 1/(2 + κ)
        kappa, inverse = strength * (sum_ * both), inertia * inertia * both
        side = select(self.start, -1.0, 1.0)
        b = side * self.start - half
        r = side * (self.free - self.start)
        returning = r * r + 2.0 * kappa * (b * b)
        to = select(self.free, -1.0, 1.0)
        p, past = half - to * self.start, to * self.free - half
        apart = past - p
        entering = apart * apart + 2.0 * (2.0 + kappa) * (past * p)
        root = sqrt(select(-b, returning, maximum(entering, 0.0)))
        x = 2.0 * inverse * (r - kappa * b)
        x = select(b + x, 0.5 * (r - root), x)
        outside = self.start + side * x
        entered = to * (half + inverse * (apart + root))
        return select(-b, outside, select(past, self.free, entered))

    def mean(self, end: Scalar) -> tuple[Scalar, Scalar]:
        """D, the mean of what is beyond the play on the way to ``end``, and ∂D/∂end.

        With b beyond and c within the play, D = Δ(b²/2) / Δs = (b₀ + b₁)/2 · (1 - Δc/Δs). Ends in
        the same of the three ranges make it exact, however short the way is.
        """
        if not self.element.deadband:
            return 0.5 * (self.start + end), 0.5
        ends = (self.start, end)
        within = [self.element.within(s) for s in ends]
        between = 0.5 * ((ends[0] - within[0]) + (ends[1] - within[1]))
        length = end - self.start
        length = select(length * length - NO_WAY**2, 1.0, length)
        inverse = div(1.0, length)
        share = (within[1] - within[0]) * inverse
        inside = select(end * end - (0.5 * self.element.deadband) ** 2, 1.0, 0.0)
        beyond = 1.0 - share
        slope = 0.5 * ((1.0 - inside) * beyond) + between * ((share - inside) * inverse)
        return between * beyond, slope

    def press(self, matrix: list[list[Scalar]], force: list[Scalar], end: Scalar) -> None:
        """Add the mean force, linearised about ``end``, to M x = f."""
        mean, slope = self.mean(end)
        strength = self.element.stiffness * self.time
        weight = strength * (slope * self.gain)
        pull = -(strength * (mean + slope * (self.end - end)))
        press(matrix, force, self.element.row, weight, pull)


def press_springs(
    matrix: list[list[Scalar]], force: list[Scalar], ways: Sequence[Way]
) -> Factorization:
    """Add the mean forces of springs to M x = f; returns the factors of the new M.

    Coordinates of springs with play are eliminated last: equal operations are traced once, so the
    steps of Newton's method share the elimination of all others.
    """
    for way in ways:
        if not way.element.deadband:
            way.press(matrix, force, way.free)
    plays = [
        (way, way.guess(_inertia(matrix, way.element.row))) for way in ways if way.element.deadband
    ]
    if not plays:
        return Factorization(matrix)
    order = elimination_order(matrix, {i for way, _ in plays for i in way.element.row})
    for _ in range(IMPLICIT_NEWTON):
        trial, right = [list(row) for row in matrix], list(force)
        for way, end in plays:
            way.press(trial, right, end)
        x = Factorization(trial, order=order).solve(right)
        plays = [(way, way.at(x)) for way, _ in plays]
    for way, end in plays:
        way.press(matrix, force, end)
    return Factorization(matrix, order=order)


def _inertia(matrix: list[list[Scalar]], row: Mapping[int, Scalar]) -> Scalar:
    """J M Jᵀ / (J Jᵀ)²: an upper bound of the inertia that a force on a coordinate moves."""
    square = dot(row.values(), row.values())
    moved = [dot(row.values(), [matrix[i][j] for j in row]) for i in row]
    return div(dot(row.values(), moved), square * square)


def press(
    matrix: list[list[Scalar]], force: list[Scalar], row: Mapping[int, Scalar], weight: Scalar,
    pull: Scalar,
) -> None:  # fmt: skip
    """Add weight · rowᵀ row to a matrix, and pull · row to forces."""
    push(force, row, pull)
    for i, a in row.items():
        for j, b in row.items():
            matrix[i][j] = matrix[i][j] + weight * (a * b)


def push(force: list[Scalar], row: Mapping[int, Scalar], pull: Scalar) -> None:
    """Add pull · row to forces."""
    for i, a in row.items():
        force[i] = force[i] + a * pull


def too_stiff(some: Rates, step: float) -> bool:
    """True if "rk4" is unstable at one of these rates."""
    return any(step * max(each) > RK4_REACH for each in some)


def warn_of_instability(model: Model, some: Rates, step: float) -> None:
    """Warn (RuntimeWarning) if rates of springs or dampers certainly make "rk4" unstable.

    A mode with decay d and frequency ω has an eigenvalue of at least max(d/2, ω).
    """
    worst = max((max(d / 2, w) for d, w in some), default=0.0)
    if abs(step) * worst > RK4_BEYOND:
        warn(
            RuntimeWarning(
                f"'rk4' is unstable with steps of {step:g} s: springs and dampers of "
                f"'{model.name}' have eigenvalues of {worst:.3g}/s; take steps below "
                f"{RK4_REACH / worst:.1g} s, or another method"
            )
        )


def some_rates(model: Model, states: Array, names: tuple[str, ...], p: Array) -> Rates:
    """:func:`rates` at some of these q (..., nq), by their parameters p (..., len(names))."""
    if not is_sprung(counted(model, names)):
        return []
    batch = np.broadcast_shapes(states.shape[:-1], p.shape[:-1])
    count = math.prod(batch)
    q, p = (
        np.broadcast_to(x, (*batch, x.shape[-1])).reshape(count, x.shape[-1]) for x in (states, p)
    )
    return [
        rates(parameterized(model, dict(zip(names, p[n].tolist(), strict=True))), q[n])
        for n in range(0, len(q), max(1, len(q) // 4))[:5]
    ]


def rates(model: Model, q: Array) -> tuple[float, float]:
    """The fastest decay by dampers, and the highest frequency by springs, at q [1/s]."""
    if not is_sprung(model):
        return 0.0, 0.0
    at = [float(x) for x in q]
    mass = np.array(crba(model, at), dtype=float)
    drag, pull = np.zeros_like(mass), np.zeros_like(mass)
    for element in elements(Configuration(model, at)):
        row = np.zeros(model.nv)
        row[list(element.row)] = [value_of(x) for x in element.row.values()]
        faster = max(element.damping, element.damping + element.law.damping)
        drag += faster * np.outer(row, row)
        pull += element.stiffness * np.outer(row, row)
    with np.errstate(all="ignore"):
        try:
            lower = np.linalg.inv(np.linalg.cholesky(mass))
            decay, square = (
                float(np.linalg.eigvalsh(lower @ x @ lower.T)[-1]) for x in (drag, pull)
            )
        except np.linalg.LinAlgError:  # a joint moves no mass
            return math.inf, math.inf
    return decay, math.sqrt(max(square, 0.0))
