"""Genesis: URDF and MJCF as its morphs read them, on the CPU in double precision."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

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


class GenesisModel:
    """An entity alone in a scene, without collisions and joint stops."""

    precision = 1e-4  # of a step of 10 µs

    def __init__(self, source: Source):
        import genesis

        self.version = version("genesis-world")
        if not getattr(genesis, "_initialized", False):
            genesis.init(backend=genesis.cpu, precision="64", logging_level="error")
        self.scene = genesis.Scene(
            show_viewer=False,
            sim_options=genesis.options.SimOptions(dt=STEP, gravity=source.gravity),
            rigid_options=genesis.options.RigidOptions(
                enable_collision=False,
                enable_joint_limit=False,
                integrator=genesis.integrator.Euler,
            ),
        )
        words: dict[str, Any] = {"default_armature": 0.0} if source.advised else {}
        morph = (
            genesis.morphs.MJCF(file=source.path, **words)
            if source.format == "mjcf"
            else genesis.morphs.URDF(file=source.path, fixed=not source.floating, **words)
        )
        self.entity = self.scene.add_entity(morph)
        self.scene.build()
        self.nv = int(self.entity.n_dofs)
        if self.nv:  # without dry friction and limits of effort
            unbounded = np.full(self.nv, HUGE)
            self.entity.set_dofs_frictionloss(np.zeros(self.nv))
            self.entity.set_dofs_force_range(-unbounded, unbounded)
        self.places, self.limits = [], {}
        lower, upper = (np.asarray(each).reshape(-1) for each in self.entity.get_dofs_limit())
        self.positions: dict[str, tuple[int, int]] = {}
        for joint in self.entity.joints:
            nv = int(joint.n_dofs)
            if not nv:
                continue
            at = int(joint.dofs_idx_local[0])
            self.positions[joint.name] = int(joint.qs_idx_local[0]), int(joint.n_qs)
            self.places.append(Place(joint.name, kind_of(nv), at, nv))
            if nv == 1:
                self.limits[joint.name] = float(lower[at]), float(upper[at])

    def numbers(self, state: State) -> Numbers:
        """At a state, by get_mass_mat, the bias force and accelerations of steps of 10 µs."""
        q = np.asarray(self.entity.get_qpos()).reshape(-1).copy()
        for name, (at, size) in self.positions.items():
            if name in state.positions:
                x = state.positions[name]
                q[at : at + size] = np.roll(x, 1) if size == 4 else x
        rest = np.zeros(self.nv)
        still = self._accelerated(q, rest, rest)
        mass = np.asarray(self.entity.get_mass_mat()).reshape(self.nv, self.nv)
        bias = self._field("qf_bias")
        rows = np.zeros((0, self.nv))
        if self.entity.n_equalities:
            units = np.eye(self.nv)
            response = [self._accelerated(q, rest, each) - still for each in units]
            rows = held_rows(mass, np.array(response).T)
        v = spread(self.places, self.nv, state.velocities)
        moved = self._accelerated(q, v, spread(self.places, self.nv, state.forces))
        return Numbers(mass, bias, moved, rows)

    def _accelerated(self, q: Array, v: Array, forces: Array) -> Array:
        """Accelerations in a step from a state, with these joint forces."""
        self.entity.set_qpos(q)
        self.entity.set_dofs_velocity(v)
        self.entity.control_dofs_force(forces)
        self.scene.step()
        after: Any = self.entity.get_dofs_velocity()
        return (np.asarray(after).reshape(-1) - v) / STEP

    def _field(self, name: str) -> Array:
        """A field of the solver's freedoms."""
        solver = self.scene.sim.rigid_solver
        return np.asarray(getattr(solver.dyn_state.dofs, name).to_numpy()).reshape(-1).copy()


def load(source: Source) -> GenesisModel:
    """The robot of a URDF or MJCF file."""
    return GenesisModel(source)
