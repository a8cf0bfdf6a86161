"""A leg whose shank hangs on a four-bar hops on a rail: thrust while it stands, PD while it flies.

The loop is closed to rounding in every step, through each landing.

    python examples/hopping.py hopping.html
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

import robomodel as rm

Array = NDArray[np.float64]
FOOT = "end-effector"
CROUCHED = {"thigh_joint": -0.6, "shank_driver_joint": 1.2}  # [rad]
THRUST = 5.0  # [N], upward, beside what the leg bears
# the shipped leg moves in its x-y plane: x is turned down, and its ground slides up and down
RAIL = """<robot name="hopper"><link name="world"/>
<link name="ground"><inertial><mass value="1"/>
  <inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="rail" type="prismatic" independent="true">
  <parent link="world"/><child link="ground"/>
  <origin rpy="0 1.5707963267948966 0"/><axis xyz="-1 0 0"/>
  <limit lower="-5" upper="5" effort="1" velocity="10"/></joint></robot>"""


def hopping(duration: float = 2.0, step: float = 1e-3) -> rm.motion.Trajectory:
    """The motion from a crouch on the ground."""
    model = rm.load(rm.robots.path("planar_leg_linkage"), extend=RAIL)
    q = model.configuration(CROUCHED)
    q[0] -= rm.frame_pose(model, q, FOOT)[2, 3]
    crouched = q.copy()
    inertia = np.diagonal(rm.crba(model, q))
    long = -rm.frame_pose(model, model.configuration({**CROUCHED, "rail": 0.0}), FOOT)[2, 3]

    def control(t: float, at: Array, v: Array) -> Array:
        pose = rm.frame_pose(model, at, FOOT)
        rows = pose[:3, :3] @ rm.jacobian(model, at, FOOT)[3:]
        reach = at[0] - pose[2, 3]
        stands, rises = pose[2, 3] < 1e-3, v[0] > -0.05
        if stands and rises and reach < 1.15 * long:
            tau = -(9.81 * model.mass + THRUST) * rows[2]
        else:  # softly back into the crouch
            tau = -inertia * (900.0 * model.difference(crouched, at) + 30.0 * v)
        return np.concatenate([[0.0], tau[1:]])

    return rm.simulate(
        model, q, tau=control, hold=True, duration=duration, step=step,
        ground=rm.Ground(friction=0.9), contacts=[FOOT],
    )  # fmt: skip


def hops(motion: rm.motion.Trajectory) -> list[float]:
    """The foot's greatest height in each flight [m]."""
    height = rm.frame_pose(motion.model, motion.q, FOOT)[:, 2, 3]
    flies = np.concatenate([[False], height > 2e-3, [False]])
    ends = np.flatnonzero(np.diff(flies.astype(int)))
    return [float(height[a:b].max()) for a, b in ends.reshape(-1, 2)]


def main() -> None:
    """Hop, and tell of it."""
    motion = hopping()
    assert motion.contact_residual is not None
    heights = hops(motion)
    print(f"{len(heights)} hops of {min(heights) * 1e3:.0f} to {max(heights) * 1e3:.0f} mm")
    print(f"loop closed to {motion.residual.max():.0e}, contacts solved to "
          f"{motion.contact_residual.max():.0e}")  # fmt: skip
    if len(sys.argv) > 1:
        rm.views.play(motion, sys.argv[1])


if __name__ == "__main__":
    main()
