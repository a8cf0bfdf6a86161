"""MuJoCo as an oracle.

MuJoCo's velocities differ from ours in a free joint alone: linear first, and in world axes. Ours of
a planar or floating joint are in the child's axes; where MJCF has slides for them, in the parent's.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

import mujoco
import numpy as np
from agreement import State, in_world, rotation, spanning

import robomodel as rm
from robomodel.model import Model

mujoco.set_mju_user_warning(lambda message: None)  # else a log file is left where tests are run


def full_mass_matrix(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """MuJoCo's M: the function's arguments are others since the matrix is sparse."""
    matrix = np.zeros((model.nv, model.nv))
    if hasattr(data, "qM"):
        mujoco.mj_fullM(model, matrix, data.qM)
    else:
        mujoco.mj_fullM(model, data, matrix)
    return matrix


@dataclass
class MujocoSide:
    """MuJoCo's model of an MJCF text or path, its joints by name."""

    model: mujoco.MjModel

    @staticmethod
    def of(source: str) -> MujocoSide:
        text = source.lstrip().startswith("<")
        load = mujoco.MjModel.from_xml_string if text else mujoco.MjModel.from_xml_path
        return MujocoSide(load(source))

    def __post_init__(self):
        self.data = mujoco.MjData(self.model)
        names = [self.model.joint(j).name for j in range(self.model.njnt)]
        self.joints = {name: j for j, name in enumerate(names)}

    def columns(self, name):
        """The joint's type and where its positions and velocities are."""
        j = self.joints[name]
        kind = int(self.model.jnt_type[j])
        at, dof = int(self.model.jnt_qposadr[j]), int(self.model.jnt_dofadr[j])
        return kind, slice(at, at + (7, 4, 1, 1)[kind]), slice(dof, dof + (6, 3, 1, 1)[kind])

    def place(self, state: State):
        """Set positions (of free joints :func:`in_world`), velocities and accelerations."""
        for name in self.joints:
            q, v, a = state[name]
            kind, at, dofs = self.columns(name)
            if kind == 0:
                turn = rotation(*q[3:])
                q = np.concatenate([q[:3], q[[6, 3, 4, 5]]])
                a = np.concatenate([turn @ (a[3:] + np.cross(v[:3], v[3:])), a[:3]])
                v = np.concatenate([turn @ v[3:], v[:3]])
            elif kind == 1:
                q = q[[3, 0, 1, 2]]
            self.data.qpos[at], self.data.qvel[dofs], self.data.qacc[dofs] = q, v, a

    def velocities(self, state: State):
        """The velocity of ours that is ``state``'s in MuJoCo's numbers."""
        self.place(state)
        return self.data.qvel.copy()

    @contextmanager
    def without_forces(self):
        """For a while without constraints, springs and dampers."""
        flags = mujoco.mjtDisableBit
        off = flags.mjDSBL_CONSTRAINT
        for name in ("mjDSBL_PASSIVE", "mjDSBL_SPRING", "mjDSBL_DAMPER"):
            off |= getattr(flags, name, 0)
        before = int(self.model.opt.disableflags)
        self.model.opt.disableflags = before | int(off)
        yield
        self.model.opt.disableflags = before

    def inverse(self, state: State):
        """M q̈ + bias, without constraints, springs and dampers."""
        self.place(state)
        with self.without_forces():
            mujoco.mj_inverse(self.model, self.data)
        return self.data.qfrc_inverse.copy()

    def equalities(self, state: State):
        """The gaps of the equality constraints and their Jacobian, dense."""
        self.model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        self.place(state)
        mujoco.mj_fwdPosition(self.model, self.data)
        rows = self.data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        jacobian = self.data.efc_J.reshape(-1, self.model.nv)
        return self.data.efc_pos[rows].copy(), jacobian[rows].copy()


def assert_smooth_dynamics(
    model: Model, side: MujocoSide, *, method="cluster", states=3, tolerance=1e-10, seed=0
):
    """Inverse dynamics agree with MuJoCo's, on the whole spanning tree or what is left of it."""
    rng = np.random.default_rng(seed)
    for _ in range(states):
        q = model.random_configuration(rng, base_pose="random")
        v, a = rng.normal(size=(2, model.nv))
        T = motions(model, side, q)
        its = T.T @ side.inverse(in_world(model, spanning(model, q, v, a)))
        mine = rm.rnea(model, q, v, a, backend="numpy", method=method)
        size = np.max(np.abs(mine)) + np.max(np.abs(rm.crba(model, q, backend="numpy")))
        np.testing.assert_allclose(mine, its, rtol=0, atol=tolerance * size)


def motions(model: Model, side: MujocoSide, q):
    """MuJoCo's velocities (columns) of each of our independent ones."""
    zero = np.zeros(model.nv)
    states = [in_world(model, spanning(model, q, unit, zero)) for unit in np.eye(model.nv)]
    units = [side.velocities(state) for state in states]
    return np.array(units).reshape(model.nv, side.model.nv).T


def assert_forward_dynamics(
    model: Model, side: MujocoSide, *, method="cluster", states=3, tolerance=1e-10, seed=0
):
    """Forward dynamics of an open tree agree with MuJoCo's, its constraints and forces aside."""
    rng = np.random.default_rng(seed)
    for _ in range(states):
        q = model.random_configuration(rng, base_pose="random")
        v, tau = rng.normal(size=(2, model.nv))
        a = rm.aba(model, q, v, tau, backend="numpy", method=method)
        T = motions(model, side, q)
        side.place(in_world(model, spanning(model, q, v, a)))
        mine = side.data.qacc.copy()
        side.data.qfrc_applied[:] = np.linalg.lstsq(T.T, tau, rcond=None)[0]
        with side.without_forces():
            mujoco.mj_forward(side.model, side.data)
        its = side.data.qacc_smooth
        size = np.max(np.abs(mine))
        np.testing.assert_allclose(mine, its, rtol=0, atol=tolerance * size)
