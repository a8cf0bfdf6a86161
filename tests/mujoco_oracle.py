"""MuJoCo as an oracle, and the joint-by-joint map between two models of one robot.

MuJoCo's velocities differ from ours in a free joint alone: linear first, and in world axes. Ours of
a planar or floating joint are in the child's axes; where MJCF has slides for them, in the parent's.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

import mujoco
import numpy as np

import robomodel as rm
from robomodel.description.poses import align
from robomodel.model import Model

State = dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]  # joint → position, rates

mujoco.set_mju_user_warning(lambda message: None)  # else a log file is left where tests are run


def full_mass_matrix(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """MuJoCo's M: the function's arguments are others since the matrix is sparse."""
    matrix = np.zeros((model.nv, model.nv))
    if hasattr(data, "qM"):
        mujoco.mj_fullM(model, matrix, data.qM)
    else:
        mujoco.mj_fullM(model, data, matrix)
    return matrix


def rotation(x, y, z, w):
    """The matrix of a quaternion."""
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, np.array([w, x, y, z]))
    return matrix.reshape(3, 3)


def spanning(model: Model, q, v, a) -> State:
    """Position, velocity and acceleration of every joint of the spanning tree."""
    positions, state = [], {}
    for cluster in model.clusters:
        positions.extend(float(x) for x in cluster.constraint.positions(list(q[cluster.q])))
    G, g = model.constraint_jacobian(q), model.constraint_bias(q, v)
    qd, qdd = G @ v, G @ a + g
    positions = np.array(positions)
    for joint, node in zip(model.joints, model.nodes, strict=True):
        at, dofs = slice(node.q, node.q + joint.nq), slice(node.v, node.v + joint.nv)
        state[joint.name] = positions[at], qd[dofs], qdd[dofs]
    return state


def gathered(model: Model, state: State):
    """The q, v and a at which the joints of the spanning tree are in this state."""
    nq = sum(joint.nq for joint in model.joints)
    nv = sum(joint.nv for joint in model.joints)
    Q, V, A = np.zeros(nq), np.zeros(nv), np.zeros(nv)
    for joint, node in zip(model.joints, model.nodes, strict=True):
        at, dofs = slice(node.q, node.q + joint.nq), slice(node.v, node.v + joint.nv)
        Q[at], V[dofs], A[dofs] = state[joint.name]
    q, v, a = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
    for cluster in model.clusters:
        own = Q[cluster.spanning_q]
        if cluster.kind == "couplings":
            matrix = np.array(cluster.constraint.position_matrix)
            offset = np.array(cluster.constraint.offset)
            own = np.linalg.lstsq(matrix, own - offset, rcond=None)[0]
        q[cluster.q] = own
        v[cluster.v] = V[cluster.spanning_v][list(cluster.columns)]
        a[cluster.v] = A[cluster.spanning_v][list(cluster.columns)]
    return q, v, a


def in_world(model: Model, state: State) -> State:
    """The state with free joints' positions counted from the world, as MuJoCo counts them."""
    result = dict(state)
    moved_by = {joint.child: joint for joint in model.description.joints}
    for joint in moved_by.values():
        if joint.type == "floating":
            q, v, a = state[joint.name]
            turn, point = rotation(*q[3:]), q[:3]
            above = joint
            while above is joint or (above is not None and above.type == "fixed"):
                frame = np.array(above.origin.rotation)
                turn, point = frame @ turn, frame @ point + np.array(above.origin.xyz)
                above = moved_by.get(above.parent)
            whole = np.zeros(4)
            mujoco.mju_mat2Quat(whole, turn.ravel())
            result[joint.name] = np.concatenate([point, whole[[1, 2, 3, 0]]]), v, a
    return result


def sliders(model: Model, q, other: Model) -> State:
    """Where the joints are that stand for prismatic and planar loops; they are dependent ones."""
    result: State = {}
    parents = {joint.child: joint.parent for joint in other.description.joints}
    for loop in model.description.loops:
        if loop.type in ("prismatic", "planar"):
            poses = []
            ends = [loop.predecessor, loop.successor]
            carrier = parents[loop.name]
            while carrier not in (ends[0].link, ends[1].link):
                carrier = parents[carrier]
            for end in ends if carrier == ends[0].link else ends[::-1]:
                pose = np.eye(4)
                pose[:3, :3], pose[:3, 3] = end.origin.rotation, end.origin.xyz
                poses.append(rm.frame_pose(model, q, end.link) @ pose)
            apart = np.linalg.inv(poses[0]) @ poses[1]
            way = apart[:3, 3]
            axis = np.array(loop.axis) / np.linalg.norm(loop.axis)
            if loop.type == "prismatic":
                result[loop.name] = np.array([axis @ way]), np.zeros(1), np.zeros(1)
                continue
            k, images = align(tuple(axis))
            axes = np.array(images).T
            x, y = axes[(k + 1) % 3], axes[(k + 2) % 3]
            angle = np.arctan2(y @ apart[:3, :3] @ x, x @ apart[:3, :3] @ x)
            for name, value in ((".x", x @ way), (".y", y @ way), ("", angle)):
                result[loop.name + name] = np.array([value]), np.zeros(1), np.zeros(1)
    return result


def split(state: State, model: Model, other: Model) -> State:
    """The state of ``other``, in which slides and more stand for some of ``model``'s joints."""
    names = {joint.name for joint in other.joints}
    result: State = {}
    in_its_world = in_world(model, state)
    for joint in model.joints:
        q, v, a = state[joint.name]
        if joint.name not in names:
            continue
        if joint.type == "floating" and f"{joint.name}.x" not in names:
            result[joint.name] = in_its_world[joint.name]
        elif f"{joint.name}.x" not in names:
            result[joint.name] = q, v, a
            if f"{joint.name}.advance" in names:
                pitch = next(j.pitch for j in model.description.joints if j.name == joint.name)
                result[f"{joint.name}.advance"] = pitch * q, pitch * v, pitch * a
        elif joint.type == "planar":
            turn = np.array([[np.cos(q[2]), -np.sin(q[2])], [np.sin(q[2]), np.cos(q[2])]])
            rate = turn @ v[:2]
            push = turn @ (a[:2] + v[2] * np.array([-v[1], v[0]]))
            for i, axis in enumerate("xy"):
                result[f"{joint.name}.{axis}"] = q[i : i + 1], rate[i : i + 1], push[i : i + 1]
            result[joint.name] = q[2:], v[2:], a[2:]
        else:
            turn = rotation(*q[3:])
            rate = turn @ v[3:]
            push = turn @ (a[3:] + np.cross(v[:3], v[3:]))
            for i, axis in enumerate("xyz"):
                result[f"{joint.name}.{axis}"] = q[i : i + 1], rate[i : i + 1], push[i : i + 1]
            result[joint.name] = q[3:], v[:3], a[:3]
    return result


def assert_same_dynamics(model: Model, other: Model, *, states=3, tolerance=1e-12, seed=0):
    """Inverse dynamics of the two agree at random states, forces being mapped as power is."""
    rng = np.random.default_rng(seed)
    assert model.nv == other.nv
    for _ in range(states):
        q = model.random_configuration(rng)
        v, a = rng.normal(size=(2, model.nv))

        def mapped(v, a, q=q):
            state = split(spanning(model, q, v, a), model, other) | sliders(model, q, other)
            return gathered(other, state)

        q2, v2, a2 = mapped(v, a)
        assert np.max(np.abs(other.residual(q2)), initial=0.0) < 1e-10
        zero = np.zeros(model.nv)
        T = np.array([mapped(unit, zero)[1] for unit in np.eye(model.nv)]).T
        np.testing.assert_allclose(T @ v, v2, rtol=0, atol=1e-9 * np.max(np.abs(v2)))
        mine = rm.rnea(model, q, v, a, backend="numpy")
        its = T.T @ rm.rnea(other, q2, v2, a2, backend="numpy")
        size = np.max(np.abs(mine)) + np.max(np.abs(rm.crba(model, q, backend="numpy")))
        np.testing.assert_allclose(its, mine, rtol=0, atol=tolerance * size)


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
        q = model.random_configuration(rng)
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
        q = model.random_configuration(rng)
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
