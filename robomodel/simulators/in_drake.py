"""Drake: URDF, SDF and MJCF as ``Parser.AddModels`` reads them, in a discrete plant.

Couplers, welds and balls are constraints of discrete plants alone. The plant lists no Jacobians of
them: they are told from what it does not accelerate by any force.
"""

from __future__ import annotations

import logging
import math
from importlib.metadata import version
from pathlib import Path

import numpy as np

from robomodel.arrays import Array
from robomodel.simulators.loaded import (
    STEP,
    Numbers,
    Place,
    Source,
    State,
    held_rows,
    kind_of,
    spread,
)
from robomodel.tolerances import HUGE


class DrakeModel:
    """A finalized plant, its joints by name."""

    precision = 1e-3  # of a step of 10 µs, in which SAP's constraints are nearly rigid

    def __init__(self, source: Source):
        from pydrake.multibody.parsing import Parser
        from pydrake.multibody.plant import DiscreteContactApproximation, MultibodyPlant

        logging.getLogger("drake").setLevel(logging.CRITICAL)  # it names each element left out
        self.version = version("drake")
        self.plant = MultibodyPlant(STEP)
        self.plant.set_discrete_contact_approximation(DiscreteContactApproximation.kSap)
        Parser(self.plant).AddModels(source.path)
        if not source.floating:
            self._weld()
        self.plant.mutable_gravity_field().set_gravity_vector(np.array(source.gravity))
        self.plant.Finalize()
        self.context = self.plant.CreateDefaultContext()
        self.nv = int(self.plant.num_velocities())
        self.closes_loops = "ball_constraint" in Path(source.path).read_text("utf-8")
        self.places, self.limits = [], {}
        for index in self.plant.GetJointIndices():
            joint = self.plant.get_joint(index)
            name, nv = joint.name(), int(joint.num_velocities())
            if nv == 1:
                ends = joint.position_lower_limits()[0], joint.position_upper_limits()[0]
                lower, upper = (x if abs(x) < HUGE else math.copysign(math.inf, x) for x in ends)
                self.limits[name] = float(lower), float(upper)
            if nv:
                at = int(joint.velocity_start())
                self.places.append(Place(name, kind_of(nv), at, nv, outside=nv == 3))

    def _weld(self) -> None:
        """Weld a root link to the world that the file leaves free, as users do."""
        children = {self.plant.get_joint(i).child_body().index()
                    for i in self.plant.GetJointIndices()}  # fmt: skip
        parents = {self.plant.get_joint(i).parent_body().index()
                   for i in self.plant.GetJointIndices()}  # fmt: skip
        world = self.plant.world_body()
        for index in parents - children:
            if index != world.index():
                frame = self.plant.get_body(index).body_frame()
                self.plant.WeldFrames(world.body_frame(), frame)

    def numbers(self, state: State) -> Numbers:
        """At a state, by CalcMassMatrix, CalcGravityGeneralizedForces and steps of 10 µs."""
        from pydrake.math import RollPitchYaw, RotationMatrix

        from robomodel.spatial import from_quaternion

        plant, context = self.plant, self.context
        positions = plant.GetPositions(context)
        for place in self.places:
            if place.name not in state.positions:
                continue
            joint, x = plant.GetJointByName(place.name), state.positions[place.name]
            if place.kind == "ball":
                turn = np.asarray(from_quaternion(*x).rows, dtype=float)
                x = RollPitchYaw(RotationMatrix(turn)).vector()
            positions[joint.position_start() : joint.position_start() + len(x)] = x
        plant.SetPositions(context, positions)
        at_rest = np.zeros(self.nv)
        plant.SetVelocities(context, at_rest)
        mass = plant.CalcMassMatrix(context)
        gravity = -plant.CalcGravityGeneralizedForces(context)
        rows = np.zeros((0, self.nv))
        if plant.num_constraints():
            still = self._accelerated(at_rest, at_rest)
            responses = [self._accelerated(at_rest, each) - still for each in np.eye(self.nv)]
            rows = held_rows(mass, np.array(responses).T)
        v = spread(self.places, self.nv, state.velocities)
        forces = spread(self.places, self.nv, state.forces)
        moved = self._accelerated(v, forces)
        for _ in range(8 if self.closes_loops else 0):  # of J̇ v they have 0, 3/4, 7/8, …
            v = v + STEP * moved
            positions = positions + STEP * plant.MapVelocityToQDot(context, v)
            plant.SetPositions(context, positions)
            moved = self._accelerated(v, forces)
        return Numbers(mass, gravity, moved, rows)

    def _accelerated(self, v: Array, forces: Array) -> Array:
        """The change of velocity in a step, by its length."""
        plant, context = self.plant, self.context
        plant.SetVelocities(context, v)
        plant.get_applied_generalized_force_input_port().FixValue(context, forces)
        if plant.num_actuators():
            plant.get_actuation_input_port().FixValue(context, np.zeros(plant.num_actuators()))
        after = plant.AllocateContext()
        plant.CalcForcedUnrestrictedUpdate(context, after.get_mutable_state())
        return np.asarray((plant.GetVelocities(after) - v) / STEP)


def load(source: Source) -> DrakeModel:
    """The robot of a URDF, SDF or MJCF file."""
    return DrakeModel(source)
