"""MuJoCo beside the exact model: how far its soft equality constraints are from rigid ones.

MuJoCo keeps loops and couplings by springs and dampers in all but name. At closed states its
accelerations therefore miss those of the mechanism, and that can be measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robomodel import dynamics
from robomodel.model import Model

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
    if any(loop.type in ("prismatic", "planar") for loop in model.description.loops):
        return None  # a sliding loop is a body of its own there
    if any(joint.type not in SIMPLE for joint in model.joints):
        return None
    try:
        import mujoco
    except ImportError:
        return None
    written = mujoco.MjModel.from_xml_path(path)
    for flag in ("CONTACT", "LIMIT", "FRICTIONLOSS", "ACTUATION", "PASSIVE", "SPRING", "DAMPER"):
        written.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}", 0))
    data = mujoco.MjData(written)
    rng = np.random.default_rng(seed)
    off = []
    for _ in range(samples):
        q = model.random_configuration(rng)
        v, tau = rng.standard_normal((2, model.nv))
        a = dynamics.aba(model, q, v, tau, backend="numpy")
        data.qpos[:], data.qvel[:], exact, data.qfrc_applied[:] = model.to_order(
            "mujoco", q, v, a=a, tau=tau, joints=written
        )
        mujoco.mj_forward(written, data)
        off.append(float(np.linalg.norm(data.qacc - exact) / np.linalg.norm(exact)))
    return SoftConstraintErrors(samples, float(np.median(off)), float(np.max(off)))
