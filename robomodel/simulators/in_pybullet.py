"""PyBullet: URDF as ``loadURDF`` reads it, with ``URDF_USE_INERTIA_FROM_FILE``."""

from __future__ import annotations

import contextlib
from importlib.metadata import version

import numpy as np

from robomodel.arrays import Array
from robomodel.simulators.loaded import Numbers, Place, Source, State, spread

MICROSECOND = 1e-6  # s: the step from which accelerations are told


class PybulletModel:
    """A robot in clients of its own; motors are off, and no joint is slowed down.

    A floating robot is there twice: mass matrix and gravity are those of the robot with its base
    held, the only ones that are compared; ``calculateMassMatrix`` of a floating base has six rows
    more, which come first.
    """

    precision = 1e-4  # of velocities after a step of 1 µs

    def __init__(self, source: Source):
        import pybullet

        self.bullet, self.version = pybullet, version("pybullet")
        self.clients = list[int]()
        self.held = self._loaded(source, fixed=True)
        self.free = self._loaded(source, fixed=False) if source.floating else self.held
        self.places: list[Place] = []
        self.numbered, self.limits = list[int](), dict[str, tuple[float, float]]()
        body, client = self.held
        for i in range(pybullet.getNumJoints(body, physicsClientId=client)):
            info = pybullet.getJointInfo(body, i, physicsClientId=client)
            if info[2] not in (pybullet.JOINT_REVOLUTE, pybullet.JOINT_PRISMATIC):
                if info[2] != pybullet.JOINT_FIXED:
                    raise ValueError(f"joint '{info[1].decode()}' has several freedoms")
                continue
            name = info[1].decode()
            self.places.append(Place(name, "joint", len(self.numbered), 1))
            self.numbered.append(i)
            free = info[8] > info[9]
            self.limits[name] = (-np.inf, np.inf) if free else (float(info[8]), float(info[9]))
        self.nv = len(self.numbered)

    def _loaded(self, source: Source, *, fixed: bool) -> tuple[int, int]:
        """The body, and its client."""
        bullet = self.bullet
        client = bullet.connect(bullet.DIRECT)
        self.clients.append(client)
        bullet.setGravity(*source.gravity, physicsClientId=client)
        bullet.setTimeStep(MICROSECOND, physicsClientId=client)
        body = bullet.loadURDF(
            source.path, useFixedBase=fixed, flags=bullet.URDF_USE_INERTIA_FROM_FILE,
            physicsClientId=client,
        )  # fmt: skip
        self.start = bullet.getBasePositionAndOrientation(body, physicsClientId=client)
        return body, client

    def numbers(self, state: State) -> Numbers:
        """At a state, by calculateMassMatrix and calculateInverseDynamics; a step of 1 µs."""
        q = [float(state.positions[each.name][0]) for each in self.places]
        body, client = self.held
        zero = [0.0] * self.nv
        mass = self.bullet.calculateMassMatrix(body, q, physicsClientId=client)
        gravity = self.bullet.calculateInverseDynamics(body, q, zero, zero, physicsClientId=client)
        v = spread(self.places, self.nv, state.velocities)
        moved = self._accelerated(q, v, spread(self.places, self.nv, state.forces))
        return Numbers(np.array(mass), np.array(gravity), moved, np.zeros((0, self.nv)))

    def _accelerated(self, q: list[float], v: Array, forces: Array) -> Array:
        """The change of velocities in a step, by its length, with the base at rest."""
        bullet, (body, client) = self.bullet, self.free
        if self.free != self.held:
            bullet.resetBasePositionAndOrientation(body, *self.start, physicsClientId=client)
            bullet.resetBaseVelocity(body, [0] * 3, [0] * 3, physicsClientId=client)
        for i in range(-1, bullet.getNumJoints(body, physicsClientId=client)):
            bullet.changeDynamics(
                body, i, linearDamping=0, angularDamping=0, maxJointVelocity=1e9,
                physicsClientId=client,
            )  # fmt: skip
        for i, at, rate, force in zip(self.numbered, q, v, forces, strict=True):
            bullet.resetJointState(body, i, at, float(rate), physicsClientId=client)
            control = {"bodyUniqueId": body, "jointIndex": i, "physicsClientId": client}
            bullet.setJointMotorControl2(controlMode=bullet.VELOCITY_CONTROL, force=0, **control)
            bullet.setJointMotorControl2(
                controlMode=bullet.TORQUE_CONTROL, force=float(force), **control
            )
        bullet.stepSimulation(physicsClientId=client)
        after = [bullet.getJointState(body, i, physicsClientId=client)[1] for i in self.numbered]
        return np.asarray((np.array(after) - v) / MICROSECOND)

    def __del__(self) -> None:
        """Close the clients."""
        for client in self.clients:
            with contextlib.suppress(Exception):  # the interpreter may be going down
                self.bullet.disconnect(client)


def load(source: Source) -> PybulletModel:
    """The robot of a URDF file."""
    return PybulletModel(source)
