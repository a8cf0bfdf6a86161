"""Rotors behind lossy gears: the rows of their rates and of their momenta.

A rotor is a leaf of the spanning tree that one coupling holds. So its own row of the equations of
motion, with the row of its momentum about its axis, tells what its mesh transmits.
"""

from __future__ import annotations

from dataclasses import dataclass

from robomodel.dynamics.actuators.maps import rate_row
from robomodel.dynamics.kinematics.frames import joint_forces
from robomodel.dynamics.kinematics.state import Configuration
from robomodel.dynamics.recursions.passive import is_absent
from robomodel.model.actuators import Actuator
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, advanced, dot
from robomodel.spatial import Motion, Wrench


@dataclass(frozen=True)
class MeshRows:
    """A mesh's rows over the independent velocities: ``rate``, and ``momentum`` about the axis.

    ``factor``: the actuator's turns for one of the rate. ``at``: spanning velocities of which the
    rate is made, with coefficients. ``body``: the rotor, with ``wrench`` its momentum for a unit
    rate; None without a rotor, whose inertia is the joint's armature before the reduction.
    """

    rate: list[Scalar]
    momentum: list[Scalar]
    factor: float
    at: tuple[tuple[int, float], ...]
    body: int | None
    wrench: Wrench | None
    armature: Scalar

    @staticmethod
    def of(model: Model, state: Configuration, actuator: Actuator) -> MeshRows:
        """The rows of an actuator's mesh; ``state`` may be in tangent coordinates of the model."""
        here, body = state.model, model.joint_names.index(actuator.joint)
        node, at, factor = here.nodes[body], actuator.rows, 1.0
        if actuator.turns_rotor:
            ((v, factor),) = actuator.rows
            at = ((v, 1.0),)
        rate = rate_row(model, state, at)
        if actuator.turns_rotor:
            (motion,) = node.joint.subspace
            wrench = node.inertia * motion
            momentum = joint_forces(model, state, body, wrench)
            if not is_absent(node.armature):
                momentum = advanced(momentum, node.armature, rate)
            return MeshRows(rate, momentum, factor, at, body, wrench, node.armature)
        inertia: Scalar = node.armature / at[0][1] ** 2 if len(at) == 1 else 0.0
        return MeshRows(rate, [inertia * x for x in rate], factor, at, None, None, inertia)

    def moving(self, twists: list[Motion], speeds: Vector) -> Scalar:
        """The momentum at velocities of all joints and bodies."""
        spin = dot([k for _, k in self.at], [speeds[v] for v, _ in self.at])
        carried = 0.0 if self.wrench is None else self.wrench.dot(twists[self.body or 0])
        return carried + self.armature * spin
