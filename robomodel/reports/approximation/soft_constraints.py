"""MuJoCo beside the exact model: how far its soft equality constraints are from rigid ones.

MuJoCo keeps loops and couplings by springs and dampers in all but name. At closed states its
accelerations therefore miss those of the mechanism, and that can be measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robomodel import dynamics
from robomodel.model import Model
from robomodel.model.joints import Array

SIMPLE = ("revolute", "continuous", "prismatic", "spherical", "floating")
"""The joints that are one and the same in both."""


@dataclass(frozen=True, slots=True)
class SoftConstraintErrors:
    """Errors of MuJoCo's accelerations, ‖error‖ / ‖exact‖ over all joints, at closed states."""

    samples: int
    median: float
    worst: float


def soft_constraint_errors(
    model: Model, path: str, *, samples: int = 20, seed: int = 0
) -> SoftConstraintErrors | None:
    """Of the MJCF file at ``path``, written of ``model``; None where it cannot be measured.

    That is without MuJoCo, and for robots with joints that are several of MuJoCo's. Without
    contacts, limits, friction and damping, as the exact model has none.
    """
    sliding = any(loop.type in ("prismatic", "planar") for loop in model.description.loops)
    if sliding or any(joint.type not in SIMPLE for joint in model.joints):
        return None  # a sliding loop is a body of its own there
    try:
        import mujoco
    except ImportError:
        return None
    its = mujoco.MjModel.from_xml_path(path)
    for flag in ("CONTACT", "LIMIT", "FRICTIONLOSS", "ACTUATION", "PASSIVE", "SPRING", "DAMPER"):
        its.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}", 0))
    data = mujoco.MjData(its)
    rng = np.random.default_rng(seed)
    off = []
    for _ in range(samples):
        q = model.random_configuration(rng)
        v, tau = rng.standard_normal((2, model.nv))
        a = dynamics.aba(model, q, v, tau, backend="numpy")
        g = model.constraint_jacobian(q)
        qdd = g @ a + model.constraint_bias(q, v)
        spanning = np.array([float(x) for x in model.spanning_positions([float(x) for x in q])])
        exact = _place(model, mujoco, its, data, spanning, g @ v, qdd)
        data.qfrc_applied[:] = 0.0
        _push(model, its, data, spanning, tau)
        mujoco.mj_forward(its, data)
        off.append(float(np.linalg.norm(data.qacc - exact) / np.linalg.norm(exact)))
    return SoftConstraintErrors(samples, float(np.median(off)), float(np.max(off)))


def _place(
    model: Model, mujoco: Any, its: Any, data: Any, q: Array, qd: Array, qdd: Array
) -> Array:
    """Put MuJoCo at this state of all joints; the accelerations in its coordinates."""
    from scipy.spatial.transform import Rotation

    result = np.zeros(its.nv)
    for joint, node in zip(model.joints, model.nodes, strict=True):
        there = its.joint(joint.name)
        at, dof = int(its.jnt_qposadr[there.id]), int(its.jnt_dofadr[there.id])
        own = q[node.q : node.q + joint.nq]
        v, a = (x[node.v : node.v + joint.nv] for x in (qd, qdd))
        if joint.nv == 6:
            turn = Rotation.from_quat(own[3:]).as_matrix()
            own = np.concatenate([own[:3], own[6:], own[3:6]])
            a = np.concatenate([turn @ (a[3:] + np.cross(v[:3], v[3:])), a[:3]])
            v = np.concatenate([turn @ v[3:], v[:3]])
        elif joint.nv == 3:
            own = np.concatenate([own[3:], own[:3]])
        data.qpos[at : at + len(own)] = own
        data.qvel[dof : dof + len(v)] = v
        result[dof : dof + len(a)] = a
    return result


def _push(model: Model, its: Any, data: Any, q: Array, tau: Array) -> None:
    """Forces tau at the independent velocities, as MuJoCo's generalized forces."""
    from scipy.spatial.transform import Rotation

    at = 0
    for cluster in model.clusters:
        for column in cluster.columns:
            spanning = cluster.spanning_v.start + column
            body = max(b for b in cluster.bodies if model.nodes[b].v <= spanning)
            joint, node = model.joints[body], model.nodes[body]
            first = int(its.jnt_dofadr[its.joint(joint.name).id])
            k = spanning - node.v
            if joint.nv == 6 and k >= 3:  # linear: along the world's axes there
                axis = Rotation.from_quat(q[node.q + 3 : node.q + 7]).as_matrix()[:, k - 3]
                data.qfrc_applied[first : first + 3] += axis * tau[at]
            elif joint.nv == 6:
                data.qfrc_applied[first + 3 + k] += tau[at]
            else:
                data.qfrc_applied[first + k] += tau[at]
            at += 1
