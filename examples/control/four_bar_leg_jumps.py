"""A leg whose shank hangs on a four-bar jumps on a rail, its motors within their limits.

While it stands the hip is pulled up; in flight the leg folds for the landing. The controller knows
the loop by its coordinates, and closes it to rounding in the simulation.

    python examples/control/four_bar_leg_jumps.py jumps.html
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

import robomodel as rm
from robomodel.control import InverseDynamics, PointTask, PostureTask

Array = NDArray[np.float64]
FOOT, HIP = "end-effector", "hip"
CROUCHED = {"thigh_joint": -0.6, "shank_driver_joint": 1.2}  # [rad]
PULL, TALL = 2.0, 0.213  # weights; [m] of the hip above the foot at which that is lifted
MOST = 2.5  # [N m]
# the shipped leg moves in its x-y plane: x is turned down, and its ground slides up and down
RAIL = f"""<robot name="jumper"><link name="world"/><link name="{HIP}"><inertial><mass value="1"/>
  <inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="rail" type="prismatic" independent="true"><parent link="world"/><child link="{HIP}"/>
  <axis xyz="0 0 1"/><limit lower="-5" upper="5" velocity="10"/></joint>
<link name="ground"/><joint name="turn" type="fixed"><parent link="{HIP}"/><child link="ground"/>
  <origin rpy="0 1.5707963267948966 0"/></joint>
<joint name="thigh_joint"><limit effort="{MOST}" velocity="100"/></joint>
<joint name="shank_driver_joint"><limit effort="{MOST}" velocity="100"/></joint></robot>"""


def robot() -> rm.Model:
    """The leg on its rail, with limits of its motors."""
    return rm.load(rm.robots.path("planar_leg_linkage"), extend=RAIL)


def jump(duration: float = 1.0) -> rm.motion.Trajectory:
    """The motion from a crouch on the ground."""
    model = robot()
    crouched = model.configuration(CROUCHED)
    crouched[0] -= rm.frame_pose(model, crouched, FOOT)[2, 3]
    height = crouched[0]
    tasks = [PointTask(HIP, [0.0, 0.0, 1.0], gain=100.0), PostureTask(1e-2, gain=900.0)]
    folds = PostureTask([0.0, 1.0, 1.0], gain=900.0)
    stance = InverseDynamics(model, tasks, contacts=[FOOT], friction=0.8, limits="actuator")
    flight = InverseDynamics(model, folds, limits="actuator")

    def tau(t: float, q: Array, v: Array) -> Array:
        foot = rm.frame_pose(model, q, FOOT)[2, 3]
        if foot > 1e-3 or q[0] - foot > TALL:
            _, u, _ = flight(q, v, {"posture": crouched})
        else:
            sinks = v[0] < -0.05
            rate = 0.0 if sinks else 2.0 * v[0] / 10.0 + PULL * 9.81 / 100.0
            goal = np.array([0.0, 0.0, height if sinks else q[0] + rate])
            _, u, _ = stance(q, v, {HIP: goal, "posture": crouched})
        return rm.actuator_map(model, q) @ u

    return rm.simulate(
        model, crouched, tau=tau, hold=True, duration=duration, step=1e-3,
        ground=rm.Ground(friction=0.9), contacts=[FOOT],
    )  # fmt: skip


def jumps(motion: rm.motion.Trajectory) -> list[float]:
    """The foot's greatest height in each flight [m]."""
    height = rm.frame_pose(motion.model, motion.q, FOOT)[:, 2, 3]
    flies = np.concatenate([[False], height > 2e-3, [False]])
    ends = np.flatnonzero(np.diff(flies.astype(int)))
    return [float(height[a:b].max()) for a, b in ends.reshape(-1, 2)]


def main() -> None:
    """Jump, and say how high."""
    motion = jump()
    heights = ", ".join(f"{1e3 * h:.0f}" for h in jumps(motion))
    print(f"jumps of {heights} mm; the loop is closed to {motion.residual.max():.0e}")
    if len(sys.argv) > 1:
        rm.views.play(motion, sys.argv[1])


if __name__ == "__main__":
    main()
