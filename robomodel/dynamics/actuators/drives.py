"""Motor forces that give a motion, through gears that lose power and with dry friction.

Forward dynamics has corners where power or a rate turns round. Given the motion all directions are
known, so that each force is one of two smooth functions, which are equal where power turns round.
"""

from __future__ import annotations

from robomodel.dynamics.actuators.maps import rate_row, required
from robomodel.dynamics.baselines import projected, spanning_tree
from robomodel.dynamics.contact.problem import Meshes
from robomodel.dynamics.kinematics.state import NO_FORCES, Forces, State
from robomodel.dynamics.recursions.passive import Element, elements
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.model.actuators import Actuator
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, div, dot, select, subtracted


def motor_forces(
    model: Model,
    q: Vector,
    v: Vector,
    a: Vector,
    direction: Vector,
    f_ext: Forces = NO_FORCES,
    passive: bool = False,
) -> list[Scalar]:
    """The motors' forces u (nu) of an acceleration, with losses of gears and dry friction.

    u = ρ + φ(λ): ρ is what the motor's own rotor and bearing take (its row of inverse dynamics on
    the spanning tree), λ what its mesh hands on to the joints, φ the law of the mesh by the way in
    which it turns. ``direction``: velocities whose signs count where those of v are zero.
    """
    state = State(model, q, f_ext, v)
    pulls = state.accelerations(a)
    forces = rnea(spanning_tree(model), state.positions, state.velocities, pulls, f_ext)
    tau = projected(state, forces)
    lossy = {n: each for n, each in enumerate(model.actuators) if each.lossy}
    turned = {each.joint: n for n, each in lossy.items() if each.turns_rotor}
    bearings: dict[int, Element] = {}
    for each in elements(state):
        if each.of_joint and each.name in turned:
            bearings[turned[each.name]] = each
            continue
        sign = way(each.rate(v), each.rate(direction), each.rate(a))
        resists = _resistance(each, v, sign, passive=passive)
        for i, x in each.row.items():
            tau[i] = tau[i] + x * resists
    rows = {n: rate_row(model, state, each.rows) for n, each in lossy.items()}
    own = {n: _taken(model, each, forces, pulls) for n, each in lossy.items()}
    for n, row in rows.items():
        tau = subtracted(tau, [x * own[n] for x in row])
    u = required(model, state, tau)
    for n, actuator in lossy.items():
        pull = dot([k for _, k in actuator.rows], [pulls[at] for at, _ in actuator.rows])
        sign = way(dot(rows[n], v), dot(rows[n], direction), pull)
        u[n] = own[n] + _before(actuator, u[n], sign)
        if n in bearings:
            ((_, factor),) = actuator.rows
            turning = sign if factor > 0.0 else -sign
            u[n] = u[n] + div(_resistance(bearings[n], v, turning, passive=passive), factor)
    return u


def way(rate: Scalar, direction: Scalar, pull: Scalar) -> Scalar:
    """1 or -1: the sign of a rate; where it is zero of ``direction``, then of ``pull``; or 0."""
    result: Scalar = 0.0
    for x in (pull, direction, rate):
        result = select(x, -1.0, select(-x, 1.0, result))
    return result


def _taken(model: Model, actuator: Actuator, forces: Vector, pulls: Vector) -> Scalar:
    """ρ: the actuator's force that its rotor takes, of those of all joints; without its bearing.

    Without a rotor that is its joint's armature's.
    """
    (at, factor), *others = actuator.rows
    if actuator.turns_rotor:
        return div(forces[at], factor)
    armature = model.nodes[model.joint_names.index(actuator.joint)].armature
    return 0.0 if others else div(armature * pulls[at], factor)


def _before(actuator: Actuator, load: Scalar, sign: Scalar) -> Scalar:
    """φ: the force before a mesh that hands on ``load``; of equal size if it rests."""
    mesh = Meshes(
        [], [], [div(1.0, actuator.efficiency) - 1.0], [1.0 - actuator.backdrive], [0.0]
    )  # fmt: skip
    low, high = mesh.bounds(0, load)
    return load - select(sign, high, select(-sign, low, 0.0))


def _resistance(element: Element, v: Vector, sign: Scalar, *, passive: bool) -> Scalar:
    """The force against dry friction, springs and dampers of an element that moves this way."""
    result: Scalar = -element.force(v) if passive else 0.0
    if element.dry:
        bound = element.dry.bound(element.rate(v), 0.0)
        result = result + sign * (bound - sign * element.dry.shift)
    return result
