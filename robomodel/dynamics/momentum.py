"""Whole-robot quantities: energy, centre of mass, centroidal momentum. Scalars of any kind."""

from __future__ import annotations

from robomodel.dynamics.kinematics import Configuration, State
from robomodel.dynamics.passive import spring_energy
from robomodel.model.model import WORLD, Model
from robomodel.scalars import Scalar, Vector, add, dot, mul, neg
from robomodel.spatial import NO_WRENCH, ZERO, Vec, cross, minus, plus, scale


def _first_moment(model: Model, at: Configuration) -> Vec:
    """Σ mass · position of the centres of mass, in world axes."""
    moments: list[Vec] = [inertia.h for inertia in at.inertia]
    masses = [node.inertia.mass for node in model.nodes]
    total: Vec = ZERO
    for body in reversed(range(len(model.nodes))):
        x, parent = at.transforms[body], model.nodes[body].parent
        carried = plus(x.rotate(moments[body]), scale(masses[body], x.offset))
        if parent == WORLD:
            total = plus(total, carried)
        else:
            moments[parent] = plus(moments[parent], carried)
            masses[parent] += masses[body]
    return total


def center_of_mass(model: Model, q: Vector) -> Vec:
    """Centre of mass of all that moves, in the world."""
    mass = model.mass
    if mass == 0.0:
        return ZERO
    x, y, z = _first_moment(model, Configuration(model, q))
    return mul(1.0 / mass, x), mul(1.0 / mass, y), mul(1.0 / mass, z)


def energy(model: Model, q: Vector, v: Vector) -> tuple[Scalar, Scalar]:
    """(kinetic, potential); the potential is zero with all mass at the world's origin.

    The springs' energy is part of the potential, zero where they are slack.
    """
    state = State(model, q, (), v)
    kinetic: Scalar = 0.0
    for node, inertia, twist in zip(model.nodes, state.inertia, state.twists, strict=True):
        kinetic = add(kinetic, (inertia * twist).dot(twist))
        rates = [state.velocities[r] for r in node.freedoms]
        kinetic = add(kinetic, mul(node.armature, dot(rates, rates)))
    weight = neg(dot(model.gravity, _first_moment(model, state)))
    return mul(0.5, kinetic), add(weight, spring_energy(state))


def centroidal_momentum(model: Model, q: Vector, v: Vector) -> tuple[Scalar, ...]:
    """Angular momentum about the centre of mass, then linear momentum, both in world axes."""
    state = State(model, q, (), v)
    momenta = [inertia * twist for inertia, twist in zip(state.inertia, state.twists, strict=True)]
    total = NO_WRENCH
    for body in reversed(range(len(model.nodes))):
        parent = model.nodes[body].parent
        carried = state.transforms[body].to_parent(momenta[body])
        if parent == WORLD:
            total = total + carried
        else:
            momenta[parent] = momenta[parent] + carried
    if model.mass == 0.0:
        return total.entries()
    center = scale(1.0 / model.mass, _first_moment(model, state))
    return (*minus(total.moment, cross(center, total.force)), *total.force)
