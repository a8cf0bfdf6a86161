"""MuJoCo's model of an open tree, made of the numbers of a ``Model``: a reference of its own."""

from __future__ import annotations

import mujoco
import numpy as np
from mujoco_oracle import full_mass_matrix
from numpy.typing import NDArray

import robomodel as rm
from robomodel.spatial import Transform

Array = NDArray[np.float64]
KINDS = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "spherical": "ball"}


def _numbers(values: object) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(values))


class Simulator:
    """Smooth dynamics of MuJoCo, in the conventions and the order of an open-tree model."""

    @staticmethod
    def knows(model: rm.Model) -> bool:
        """Whether MuJoCo has all of its joints: none planar, and floating ones on the world."""
        return all(
            joint.type in KINDS or (joint.type == "floating" and node.parent < 0)
            for joint, node in zip(model.joints, model.nodes, strict=True)
        )

    def __init__(self, model: rm.Model) -> None:
        self.robot = model
        children: dict[int, list[int]] = {}
        for body, node in enumerate(model.nodes):
            children.setdefault(node.parent, []).append(body)

        def pose(x: Transform) -> Array:
            upper = np.column_stack([np.array(x.matrix()), np.array(x.offset)])
            return np.vstack([upper, [0.0, 0.0, 0.0, 1.0]])

        def link(body: int) -> Array:
            return pose(model.frame(model.bodies[body].name).pose)

        def written(body: int) -> str:
            node, joint = model.nodes[body], model.joints[body]
            above = np.eye(4) if node.parent < 0 else link(node.parent)
            still = node.joint.placement(node.joint.neutral())[0]  # the links', not internal frames
            place = np.linalg.inv(above) @ pose(Transform((*still, *node.rotations), node.offset))
            place = place @ link(body)
            quaternion = np.zeros(4)
            mujoco.mju_mat2Quat(quaternion, place[:3, :3].ravel())
            kind = "free" if joint.type == "floating" else KINDS[joint.type]
            axis = "" if kind in ("free", "ball") else f'axis="{_numbers(joint.axis)}"'
            inner = "".join(written(child) for child in children.get(body, []))
            return (
                f'<body name="b{body}" pos="{_numbers(place[:3, 3])}" '
                f'quat="{_numbers(quaternion)}">'
                f'<joint name="j{body}" type="{kind}" {axis} armature="{joint.armature!r}"/>'
                # numbers to be replaced, such that nothing is taken to be simple
                f'<inertial pos="1 2 3" quat="1 2 3 4" mass="1" diaginertia="1 2 2"/>{inner}</body>'
            )

        bodies = "".join(written(body) for body in children.get(-1, []))
        self.model = mujoco.MjModel.from_xml_string(
            f'<mujoco><option gravity="{_numbers(model.gravity)}"><flag contact="disable"/>'
            f"</option><worldbody>{bodies}</worldbody></mujoco>"
        )
        for body, said in enumerate(model.bodies):
            there = self.model.body(f"b{body}").id
            principal, axes = np.linalg.eigh(np.array(said.inertia))
            axes[:, 2] *= np.sign(np.linalg.det(axes))
            self.model.body_mass[there] = said.mass
            self.model.body_inertia[there] = principal
            self.model.body_ipos[there] = said.com
            mujoco.mju_mat2Quat(self.model.body_iquat[there], axes.ravel())
        self.data = mujoco.MjData(self.model)
        mujoco.mj_setConst(self.model, self.data)
        self.order: list[int] = []  # MuJoCo's velocity of each of the model's
        for body, joint in enumerate(model.joints):
            first = int(self.model.jnt_dofadr[self.model.joint(f"j{body}").id])
            swap = (3, 4, 5, 0, 1, 2) if joint.nv == 6 else range(joint.nv)
            self.order += [first + i for i in swap]

    def at(self, q: Array, v: Array) -> None:
        """Take this state."""
        for body, node in enumerate(self.robot.nodes):
            there = int(self.model.jnt_qposadr[self.model.joint(f"j{body}").id])
            own = q[node.q : node.q + node.joint.nq]
            if node.joint.nq == 4:
                own = np.concatenate([own[3:], own[:3]])
            if node.joint.nq == 7:  # in the world, wherever the joint stands there
                quaternion = np.zeros(4)
                mujoco.mju_mat2Quat(quaternion, self._turn(body, q).ravel())
                place = node.transform([float(x) for x in q])
                own = np.concatenate([place.offset, quaternion])
            self.data.qpos[there : there + len(own)] = own
        self.data.qvel[self.order] = v
        for body, node in enumerate(self.robot.nodes):
            if node.joint.nv == 6:  # MuJoCo's linear velocity is in the world's axes
                first = int(self.model.jnt_dofadr[self.model.joint(f"j{body}").id])
                self.data.qvel[first : first + 3] = self._turn(body, q) @ v[node.v + 3 : node.v + 6]
        mujoco.mj_forward(self.model, self.data)

    def _turn(self, body: int, q: Array) -> Array:
        node = self.robot.nodes[body]
        positions = [float(x) for x in q]
        return np.array(node.transform(positions).matrix())

    def _map(self, q: Array) -> Array:
        """E with MuJoCo's velocities = E v."""
        e = np.eye(self.robot.nv)
        for body, node in enumerate(self.robot.nodes):
            if node.joint.nv == 6:
                e[node.v + 3 : node.v + 6, node.v + 3 : node.v + 6] = self._turn(body, q)
        return e

    def mass_matrix(self, q: Array) -> Array:
        """M, armature included."""
        self.at(q, np.zeros(self.robot.nv))
        full = full_mass_matrix(self.model, self.data)
        e = self._map(q)
        return e.T @ full[np.ix_(self.order, self.order)] @ e

    def inverse(self, q: Array, v: Array, a: Array) -> Array:
        """Forces of these accelerations."""
        self.at(q, v)
        e = self._map(q)
        acceleration = e @ a
        for body, node in enumerate(self.robot.nodes):
            if node.joint.nv == 6:  # d/dt (R v) = R (v̇ + ω x v)
                part = slice(node.v + 3, node.v + 6)
                spin = np.cross(v[node.v : node.v + 3], v[part])
                acceleration[part] += self._turn(body, q) @ spin
        self.data.qacc[self.order] = acceleration
        mujoco.mj_inverse(self.model, self.data)
        return e.T @ self.data.qfrc_inverse[self.order]
