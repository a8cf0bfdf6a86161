"""Readings of sensors on many robots at once: encoders of joints and motors, IMUs, poses."""

from __future__ import annotations

from typing import Any

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics import actuator_positions, actuator_velocities, frame_pose, frame_velocity
from robomodel.model.model import Model
from robomodel.model.parameters import of_geometry
from robomodel.motion.integrator_functions import joint_rates, joint_velocities
from robomodel.motion.steps import FixedStep
from robomodel.motion.tangent import in_tangents
from robomodel.scalars import stack, unstack


class Sensors:
    """Robots of one model side by side, whose states sensors read."""

    model: Model
    n: int
    parameters: dict[str, Array]
    _step: FixedStep
    _h: float
    _p: Array
    _states: Array
    _before: Array
    _q: Array
    _v: Array

    def _geometry(self, numbers: Any) -> dict[str, Array]:
        """Values of the parameters of geometry."""
        names = of_geometry(self.model, self.parameters)
        return {name: self.parameters[name][numbers] for name in names}

    def joints(self) -> tuple[Array, Array]:
        """Positions and velocities of all joints, dependent ones too, also at dead points.

        Returns:
            positions: Spanning positions (n, numbers), the base first.
            velocities: (n, n_joint_velocities) in ``joint_names`` order, the base first.
        """
        model, layout, states = self.model, self._step.layout, self._states
        z = states[:, layout.columns.z] if layout.checks else self._v
        bases = states[:, layout.columns.bases]
        if not self._geometry(slice(None)):
            positions = stack(model.spanning_positions(unstack(self._q)), (self.n,))
            x = np.concatenate([self._q, z, bases], axis=1)
            return positions, np.asarray(joint_rates(model)(x))
        robots = self._step.family.robots(self._p)
        here = in_tangents(robots, unstack(bases), refined=True)
        with np.errstate(all="ignore"):
            rates = joint_velocities(here, unstack(self._q), unstack(z))
            positions = stack(robots.spanning_positions(unstack(self._q)), (self.n,))
        return positions, stack(rates, (self.n,))

    def motors(self) -> tuple[Array, Array]:
        """Positions and rates of the actuators, as encoders at the motors measure them.

        Returns:
            positions: (n, nu).
            velocities: (n, nu).
        """
        given = self._geometry(slice(None)) or None
        return (
            actuator_positions(self.model, self._q, parameters=given),
            actuator_velocities(self.model, self._q, self._v, parameters=given),
        )

    def frame(self, name: str) -> Array:
        """The pose of a link or another frame.

        Args:
            name: Its name.

        Returns:
            pose: (n, 4, 4) in the world.
        """
        given = self._geometry(slice(None)) or None
        pose: Array = frame_pose(self.model, self._q, name, parameters=given)
        return pose

    def imu(self, link: str) -> tuple[Array, Array]:
        """Readings of an inertial sensor at a link's origin, in the link's axes.

        Args:
            link: The link's name.

        Returns:
            gyroscope: Angular velocity (n, 3) [rad/s].
            accelerometer: Mean specific force (n, 3) over the last substep [m/s²]: acceleration
                less gravity; after a reset that of rest.
        """
        nq = self.model.nq
        pose, speed = self.frame(link), self._frame_speed(self._q, self._v, link)
        turn = np.swapaxes(pose[:, :3, :3], 1, 2)
        before = self._frame_speed(self._before[:, :nq], self._before[:, nq:], link)
        gravity = np.tile(np.asarray(self.model.gravity), (self.n, 1))
        for i, axis in enumerate("xyz"):
            gravity[:, i] = self.parameters.get(f"gravity.{axis}", gravity[:, i])
        change = (speed[:, 3:] - before[:, 3:]) / self._h - gravity
        gyroscope, accelerometer = (
            np.einsum("nij,nj->ni", turn, x) for x in (speed[:, :3], change)
        )
        return gyroscope, accelerometer

    def _frame_speed(self, q: Array, v: Array, link: str) -> Array:
        given = self._geometry(slice(None)) or None
        speed = frame_velocity(
            self.model, q, v, link, reference="local_world_aligned", parameters=given
        )
        return np.asarray(speed, float)
