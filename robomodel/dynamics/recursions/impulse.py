"""Contact: what points of a robot feel and do when they touch something rigid."""

from __future__ import annotations

from collections.abc import Sequence

from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.state import Configuration, Forces, Matrix, State
from robomodel.dynamics.recursions.aba import aba
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.efpa import mobility, mobility_factors
from robomodel.model.graph import WORLD
from robomodel.model.model import Model
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    dot,
    gram,
    mul,
    neg,
    select,
    sub,
    transposed,
)
from robomodel.spatial import ZERO, Wrench, apply, plus

IMMOBILE = 1e-13  # of a point's Jacobian [m or 1], where it cannot move


def contact(
    model: Model, q: Vector, places: Sequence[frames.Place]
) -> tuple[Matrix, Matrix, Matrix]:
    """Λ⁻¹ (3k by 3k) and J (3k by nv) of k points' velocities in world axes, and M (nv by nv).

    Scalars of any kind.
    """
    state, forces, jacobian = _touched(model, q, places)
    return mobility(model, state, forces), jacobian, crba(model, q)


def contact_factors(
    model: Model, q: Vector, places: Sequence[frames.Place]
) -> tuple[Matrix, list[Scalar], Matrix, Matrix]:
    """R and p with Λ⁻¹ = R diag(p) Rᵀ, J and M, as of :func:`contact`."""
    state, forces, jacobian = _touched(model, q, places)
    return *mobility_factors(model, state, forces), jacobian, crba(model, q)


def _touched(
    model: Model, q: Vector, places: Sequence[frames.Place]
) -> tuple[Configuration, list[tuple[int, Wrench]], Matrix]:
    """Unit forces along the world's axes at each point, and what they do to the freedoms."""
    state = Configuration(model, q, {at.body for at in places})
    forces = point_forces(model, q, places)
    return state, forces, [frames.joint_forces(model, state, body, x) for body, x in forces]


def point_forces(
    model: Model, q: Vector, places: Sequence[frames.Place]
) -> list[tuple[int, Wrench]]:
    """Unit forces along the world's axes at each point, on its body."""
    return [
        (at.body, at.pose.to_parent(Wrench(ZERO, axis)))
        for at in places
        for axis in frames.pose(model, q, at)[0]
    ]


def response(
    model: Model, q: Vector, places: Sequence[frames.Place]
) -> tuple[Matrix, Matrix, Matrix]:
    """J M⁻¹ Jᵀ and J (3k by nv) of points' velocities in world axes, and M⁻¹ Jᵀ (nv by 3k).

    Rows of points that no motion moves are zero: what rounding leaves there would be divided by.
    """
    state = Configuration(model, q, {at.body for at in places})
    forces = point_forces(model, q, places)
    jacobian = _moving([frames.joint_forces(model, state, body, x) for body, x in forces])
    mass = Factorization(crba(model, q))
    reduced = [mass.reduce(row) for row in jacobian]
    scaled = [mass.weighted(row) for row in reduced]
    columns = [mass.back(row) for row in scaled]
    return gram(scaled, reduced), jacobian, transposed(columns)


def _moving(jacobian: Matrix) -> Matrix:
    """The Jacobian, zero where its point cannot move."""
    result: Matrix = []
    for i in range(0, len(jacobian), 3):
        point = jacobian[i : i + 3]
        square = dot([x for row in point for x in row], [x for row in point for x in row])
        moves = select(sub(IMMOBILE * IMMOBILE, square), 1.0, 0.0)
        result += [[mul(moves, x) for x in row] for row in point]
    return result


def free_motion(
    model: Model, q: Vector, v: Vector, tau: Vector, f_ext: Forces, places: Sequence[frames.Place]
) -> tuple[list[Scalar], Matrix, Matrix, list[Scalar], list[Scalar]]:
    """a without contact, J M⁻¹ Jᵀ and M⁻¹ Jᵀ, and the points' velocities and accelerations."""
    a = aba(model, q, v, tau, f_ext)
    inverse, jacobian, columns = response(model, q, places)
    rates, accelerations = touching(model, q, v, a, places)
    # of points that no motion moves rounding alone is left
    felt = [select(neg(dot(row, row)), 1.0, 0.0) for row in _by_points(jacobian)]
    felt = [x for x in felt for _ in range(3)]
    rates = [mul(s, x) for s, x in zip(felt, rates, strict=True)]
    accelerations = [mul(s, x) for s, x in zip(felt, accelerations, strict=True)]
    return a, inverse, columns, rates, accelerations


def _by_points(jacobian: Matrix) -> Matrix:
    return [[x for row in jacobian[i : i + 3] for x in row] for i in range(0, len(jacobian), 3)]


def touching(
    model: Model, q: Vector, v: Vector, a: Vector, places: Sequence[frames.Place]
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
        world, _ = frames.pose(model, q, at)
        rates += apply(world, at.pose.to_child(state.twists[at.body]).linear)
        accelerations += plus(apply(world, points[at.body].at(at.pose)), model.gravity)
    return rates, accelerations
