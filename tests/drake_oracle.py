"""Drake as an oracle: the mass matrix that it computes of a file, in our velocities.

Drake's velocities differ from ours in free joints, linear and angular in world axes, and in ball
joints, in the parent's axes.
"""

from __future__ import annotations

import logging

import numpy as np
import pytest
from agreement import State, in_world, rotation, spanning
from lxml import etree

import robomodel as rm
from robomodel.model import Model

parsing = pytest.importorskip("pydrake.multibody.parsing", reason="Drake is not installed")
math = pytest.importorskip("pydrake.math")
plants = pytest.importorskip("pydrake.multibody.plant")
framework = pytest.importorskip("pydrake.systems.framework")


logging.getLogger("drake").setLevel(logging.CRITICAL)  # it warns of every element it passes over


class DrakeSide:
    """Drake's model of a file, its joints by name; ``shapes``: with all that it shows and hits."""

    def __init__(self, path, *, shapes: bool = False):
        self.names = dict(_names(etree.parse(path).getroot()))
        if shapes:
            self.plant, self.scene = plants.AddMultibodyPlantSceneGraph(
                framework.DiagramBuilder(), 0.0
            )
        else:
            self.plant = plants.MultibodyPlant(0.0)
        parsing.Parser(self.plant).AddModels(str(path))
        self.plant.Finalize()
        self.context = self.plant.CreateDefaultContext()
        joints = [self.plant.get_joint(index) for index in self.plant.GetJointIndices()]
        self.joints = {self._inside(joint): joint for joint in joints}
        bodies = [self.plant.get_body(index) for index in self.plant.GetFloatingBaseBodies()]
        self.free = {self._inside(body): body for body in bodies}

    def _inside(self, part):
        """What the description calls it; in the file its name may be another one."""
        scope = self.plant.GetModelInstanceName(part.model_instance())
        name = f"{scope}::{part.name()}".partition("::")[2]
        return self.names.get(("joint" if hasattr(part, "velocity_start") else "link", name), name)

    def place(self, joint, q):
        """Put one of our joints at a position; what its velocity is in Drake's, and where."""
        if joint.type == "floating":
            body = self.free[joint.child]
            turn = rotation(*q[3:])
            self.plant.SetFreeBodyPose(
                self.context, body, math.RigidTransform(math.RotationMatrix(turn), q[:3])
            )
            at = body.floating_velocities_start_in_v()
            return at, np.block([[turn, np.zeros((3, 3))], [np.zeros((3, 3)), turn]])
        its = self.joints[joint.name]
        at, here = its.velocity_start(), np.eye(1)
        if joint.type == "spherical":
            here = rotation(*q)
            q = math.RollPitchYaw(math.RotationMatrix(here)).vector()
        positions = self.plant.GetPositions(self.context)
        positions[its.position_start() : its.position_start() + len(q)] = q
        self.plant.SetPositions(self.context, positions)
        return at, here

    def mass_matrix(self, model: Model, state: State):
        """M of an open tree whose joints are in this state, in our velocities."""
        parts = {joint.name: joint for joint in model.description.joints}
        T = np.zeros((self.plant.num_velocities(), model.nv))
        for joint, node in zip(model.joints, model.nodes, strict=True):
            at, here = self.place(parts[joint.name], state[joint.name][0])
            T[at : at + joint.nv, node.v : node.v + joint.nv] = here
        return T.T @ self.plant.CalcMassMatrix(self.context) @ T


def _names(element, within=""):
    """What was called otherwise: its tag and its name in the file, and its own name."""
    for child in element:
        name = within + child.get("name", "")
        if own := child.get("{urn:robomodel}name"):
            yield (child.tag, name), own
        if child.tag in ("model", "world"):
            outer = element.tag in ("sdf", "world")
            yield from _names(child, "" if outer else f"{name}::")


def assert_same_mass_matrix(tree: Model, side: DrakeSide, *, tolerance=1e-12, seed=0):
    """Drake's mass matrix of an open tree is ours, at a random configuration."""
    q = tree.random_configuration(seed, base_pose="random")
    zero = np.zeros(tree.nv)
    its = side.mass_matrix(tree, in_world(tree, spanning(tree, q, zero, zero)))
    mine = rm.crba(tree, q, backend="numpy")
    size = np.max(np.abs(mine), initial=0.0)
    np.testing.assert_allclose(its, mine, rtol=0, atol=tolerance * size)
