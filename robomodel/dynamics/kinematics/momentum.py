"""Whole-robot quantities: energy, centre of mass, centroidal momentum. Scalars of any kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from robomodel.dynamics.kinematics.state import Configuration, State
from robomodel.dynamics.recursions.passive import spring_energy
from robomodel.mechanism.graph import WORLD
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, div, dot, is_zero, transposed
from robomodel.spatial import (
    NO_INERTIA,
    NO_WRENCH,
    ZERO,
    Transform,
    Vec,
    Wrench,
    cross,
    minus,
    plus,
    scale,
)

T = TypeVar("T")


def _first_moment(state: Configuration) -> Vec:
    """Σ mass · position of the centres of mass, in world axes."""

    def carry(x: Transform, part: tuple[Vec, Scalar]) -> tuple[Vec, Scalar]:
        return plus(x.rotate(part[0]), scale(part[1], x.offset)), part[1]

    def join(a: tuple[Vec, Scalar], b: tuple[Vec, Scalar]) -> tuple[Vec, Scalar]:
        return plus(a[0], b[0]), a[1] + b[1]

    parts = [(inertia.h, inertia.mass) for inertia in state.inertia]
    return _gathered(state, parts, carry, join, (ZERO, 0.0))[0]


def center_of_mass(model: Model, q: Vector) -> Vec:
    """Centre of mass of all that moves, in the world."""
    return _per_mass(model, _first_moment(Configuration(model, q)))


def center_of_mass_velocity(model: Model, q: Vector, v: Vector) -> Vec:
    """Velocity of the centre of mass, in world axes."""
    force = centroidal_momentum(model, q, v)[3:]
    return _per_mass(model, (force[0], force[1], force[2]))


def center_of_mass_acceleration(model: Model, q: Vector, v: Vector, a: Vector) -> Vec:
    """Acceleration of the centre of mass, in world axes: Σ (m a + U h) / Σ m."""
    state = State(model, q, (), v)
    forces = [
        inertia.newton_euler(points.linear, points.around).force
        for inertia, points in zip(
            state.inertia, state.points(state.accelerations(a), with_gravity=False), strict=True
        )
    ]
    return _per_mass(model, _gathered(state, forces, Transform.rotate, plus, ZERO))


def _gathered(
    state: Configuration,
    parts: list[T],
    carry: Callable[[Transform, T], T],
    join: Callable[[T, T], T],
    total: T,
) -> T:
    """The sum of the bodies' ``parts``, carried from the tips to the world."""
    for body in reversed(range(len(parts))):
        parent, carried = state.model.nodes[body].parent, carry(state.transforms[body], parts[body])
        if parent == WORLD:
            total = join(total, carried)
        else:
            parts[parent] = join(parts[parent], carried)
    return total


def _per_mass(model: Model, total: Vec) -> Vec:
    return ZERO if is_zero(model.mass) else scale(div(1.0, model.mass), total)


def center_of_mass_jacobian(model: Model, q: Vector) -> list[list[Scalar]]:
    """J (3 by nv): the centre of mass moves with J v, in world axes."""
    columns = [_per_mass(model, wrench.force) for wrench in _momenta(model, q)[0]]
    return transposed(columns) or [[], [], []]


def centroidal_map(model: Model, q: Vector) -> list[list[Scalar]]:
    """A (6 by nv): A v is the centroidal momentum (Orin and Goswami's matrix)."""
    momenta, first = _momenta(model, q)
    center = _per_mass(model, first)
    columns = [(*minus(w.moment, cross(center, w.force)), *w.force) for w in momenta]
    return transposed(columns) or [[] for _ in range(6)]


def _momenta(model: Model, q: Vector) -> tuple[list[Wrench], Vec]:
    """Momentum about the world's origin of every unit velocity; Σ mass · centre of mass.

    A unit velocity moves the composites of its cluster's bodies, as in ``crba``.
    """
    at = Configuration(model, q)
    inertia, total = list(at.inertia), NO_INERTIA
    carried: list[dict[int, Wrench]] = [{} for _ in model.nodes]
    base: dict[int, Wrench] = {}
    for body in reversed(range(len(model.nodes))):
        node, x, momenta = model.nodes[body], at.transforms[body], carried[body]
        for i, motion in enumerate(at.subspace(body), model.clusters[node.cluster].v.start):
            momenta[i] = momenta.get(i, NO_WRENCH) + inertia[body] * motion
        moved = inertia[body].in_parent(x)
        if node.parent == WORLD:
            total += moved
        else:
            inertia[node.parent] += moved
        above = base if node.parent == WORLD else carried[node.parent]
        for i, wrench in momenta.items():
            above[i] = above.get(i, NO_WRENCH) + x.to_parent(wrench)
    return [base[i] for i in range(model.nv)], total.h


def energy(model: Model, q: Vector, v: Vector) -> tuple[Scalar, Scalar]:
    """(kinetic, potential); the potential is zero with all mass at the world's origin.

    The springs' energy is part of the potential, zero where they are slack.
    """
    state = State(model, q, (), v)
    kinetic: Scalar = 0.0
    for node, inertia, twist in zip(model.nodes, state.inertia, state.twists, strict=True):
        kinetic = kinetic + (inertia * twist).dot(twist)
        rates = [state.velocities[r] for r in node.freedoms]
        kinetic = kinetic + node.armature * dot(rates, rates)
    weight = -dot(model.gravity, _first_moment(state))
    return 0.5 * kinetic, weight + spring_energy(state)


def centroidal_momentum(model: Model, q: Vector, v: Vector) -> tuple[Scalar, ...]:
    """Angular momentum about the centre of mass, then linear momentum, both in world axes."""
    state = State(model, q, (), v)
    momenta = [inertia * twist for inertia, twist in zip(state.inertia, state.twists, strict=True)]
    total = _gathered(state, momenta, Transform.to_parent, Wrench.__add__, NO_WRENCH)
    center = _per_mass(model, _first_moment(state))
    return (*minus(total.moment, cross(center, total.force)), *total.force)
