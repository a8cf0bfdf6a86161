"""Tello squats: its hips and its knees and ankles hang on differentials of two motors each.

Whole-body control keeps the centre of mass over the feet and moves it up and down; forces are those
of the motors, within their limits.

    python examples/control/tello_squats.py squats.html
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

import robomodel as rm
from robomodel.control import (
    CenterOfMassTask,
    FrameTask,
    InverseDynamics,
    InverseKinematics,
    PostureTask,
)

Array = NDArray[np.float64]
SOLES = tuple(  # the published point of the right toe lies behind the ankle
    (f"{side}-foot", (x, 0.0, -0.041)) for side in ("left", "right") for x in (-0.05, 0.1)
)
KNEES = 0.4  # [rad] half of their angle
DEPTH, PERIOD = 0.1, 0.8  # [m], [s]
MOST = 20.0  # [N m] of each motor at its rotor's joint


def robot() -> rm.Model:
    """Tello with limits of its motors."""
    model = rm.robots.load("tello")
    joints = dict.fromkeys(each.joint for each in model.actuators)
    limits = "".join(
        f'<joint name="{name}"><limit effort="{MOST}" velocity="100"/></joint>' for name in joints
    )
    return rm.load(rm.robots.path("tello"), extend=f'<robot name="tello">{limits}</robot>')


def squat(duration: float = 1.2) -> rm.motion.Trajectory:
    """The motion from a stand with bent knees."""
    model = robot()
    start = bent(model)
    center = rm.center_of_mass(model, start)
    upright = rm.frame_pose(model, start, "torso")
    tasks = [
        CenterOfMassTask(gain=100.0),
        FrameTask("torso", 0.0, 0.5, gain=100.0),
        PostureTask(1e-3, gain=20.0),
    ]
    control = InverseDynamics(model, tasks, contacts=SOLES, friction=0.6)

    def tau(t: float, q: Array, v: Array) -> Array:
        down = 0.5 * DEPTH * (1.0 - np.cos(2.0 * np.pi * t / PERIOD))
        targets = {
            "center_of_mass": center - [0.0, 0.0, down],
            "torso": upright,
            "posture": start,
        }
        return rm.actuator_map(model, q) @ control(q, v, targets)[1]

    return rm.simulate(
        model, start, tau=tau, hold=True, duration=duration, step=1e-3,
        ground=rm.Ground(friction=0.8), contacts=SOLES,
    )  # fmt: skip


def bent(model: rm.Model) -> Array:
    """Knees bent, soles level on the ground, the centre of mass above their middle."""
    bend = {"gimbal-to-thigh": -KNEES, "thigh-to-shin": 2.0 * KNEES, "shin-to-foot": -KNEES}
    q = model.configuration(
        {f"{side}-{joint}": x for side in ("left", "right") for joint, x in bend.items()}
    )
    feet = {side: rm.frame_pose(model, q, f"{side}-foot") for side in ("left", "right")}
    places = [rm.frame_pose(model, q, sole)[:3, 3] for sole in SOLES]
    ik = InverseKinematics(
        model,
        [
            *(FrameTask(f"{side}-foot", 1.0, [0.0, 1.0, 1.0], hard=True) for side in feet),
            CenterOfMassTask([1.0, 1.0, 0.0]),
            FrameTask("torso", 0.0, 1.0),
            PostureTask(1e-3),
        ],
    )
    targets = {f"{side}-foot": pose for side, pose in feet.items()}
    targets |= {"center_of_mass": np.mean(places, axis=0), "torso": np.eye(4), "posture": q}
    q = ik.solve(q, targets, restarts=0)
    q[2] -= rm.frame_pose(model, q, SOLES[0])[2, 3]
    return q


def main() -> None:
    """Squat, and say how."""
    motion = squat()
    height = rm.center_of_mass(motion.model, motion.q)[:, 2]
    print(f"the centre of mass moves by {1e3 * np.ptp(height):.0f} mm")
    print(f"loops closed to {motion.residual.max():.0e}")
    if len(sys.argv) > 1:
        rm.views.play(motion, sys.argv[1])


if __name__ == "__main__":
    main()
