"""Springs and dampers too stiff for explicit steps: accelerations implicit in them, and how stiff.

With D = Σ d JᵀJ and K = Σ k JᵀJ over the elements of :mod:`robomodel.dynamics.recursions.passive`,
semi-implicit Euler computes

    (M + h D + h² K / 4) (v₁ - v) = h (τ - c + p),

p being the forces of springs and dampers at the beginning. Dampers act by their velocities at the
end. Of a linear spring alone this is Newmark's method with β = 1/4, which is stable at every step
and loses no energy: undamped oscillations keep their amplitude.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from robomodel.dynamics.kinematics.state import NO_FORCES, Configuration, Forces
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.passive import elements
from robomodel.dynamics.recursions.rnea import bias_force
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.scalars import Factorization, Scalar, Vector, add, mul, subtracted

RK4_REACH = 2.0
"""Step times rate up to which "rk4" is taken: it is stable up to 2.78."""

MANY = 1e5
"""Duration times rate from which on explicit steps, however adapted, would be ten thousands."""


def is_sprung(model: Model) -> bool:
    """Whether springs or dampers act on it."""
    return any(joint.stiffness or joint.damping for joint in model.joints) or any(
        spring.stiffness or spring.damping for spring in model.springs
    )


def acceleration(
    model: Model, q: Vector, v: Vector, tau: Vector, h: Scalar, f_ext: Forces = NO_FORCES
) -> list[Scalar]:
    """(v₁ - v)/h of a step of length h under tau, springs and dampers; scalars of any kind."""
    matrix = [list(row) for row in crba(model, q)]
    force = subtracted(tau, bias_force(model, q, v, f_ext))
    for element in elements(Configuration(model, q)):
        row = element.row
        if not (element.stiffness or element.damping):
            continue
        weight = mul(h, add(element.damping, mul(0.25 * element.stiffness, h)))
        press(matrix, force, row, weight, element.force(v))
    return list(Factorization(matrix).solve(force))


def press(
    matrix: list[list[Scalar]], force: list[Scalar], row: Mapping[int, Scalar], weight: Scalar,
    pull: Scalar,
) -> None:  # fmt: skip
    """Add to a matrix weight · rowᵀ row, and to forces pull · row."""
    for i, a in row.items():
        force[i] = add(force[i], mul(a, pull))
        for j, b in row.items():
            matrix[i][j] = add(matrix[i][j], mul(weight, mul(a, b)))


def too_stiff(model: Model, states: Array, step: float) -> bool:
    """Whether at one of these q (..., nq), of which some are looked at, "rk4" would blow up."""
    if step <= 0.0 or not is_sprung(model):
        return False
    every = states.reshape(-1, model.nq)
    looked_at = every[:: max(1, len(every) // 4)][:5]
    return any(step * max(rates(model, q)) > RK4_REACH for q in looked_at)


def rates(model: Model, q: Array) -> tuple[float, float]:
    """The fastest decay that dampers, and the fastest swing that springs, give at q [1/s]."""
    if not is_sprung(model):
        return 0.0, 0.0
    at = [float(x) for x in q]
    mass = np.array(crba(model, at), dtype=float)
    drag, pull = np.zeros_like(mass), np.zeros_like(mass)
    for element in elements(Configuration(model, at)):
        row = np.zeros(model.nv)
        row[list(element.row)] = [float(x) for x in element.row.values()]
        drag += element.damping * np.outer(row, row)
        pull += element.stiffness * np.outer(row, row)
    with np.errstate(all="ignore"):
        try:
            lower = np.linalg.inv(np.linalg.cholesky(mass))
            decay, square = (
                float(np.linalg.eigvalsh(lower @ x @ lower.T)[-1]) for x in (drag, pull)
            )
        except np.linalg.LinAlgError:  # something massless moves
            return math.inf, math.inf
    return decay, math.sqrt(max(square, 0.0))
