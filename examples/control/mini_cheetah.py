"""Mini Cheetah stands, then trots in place, by whole-body control of its geared motors.

Diagonal pairs of legs stand in turn; the other two feet follow an arc. The controller computes
motor and contact forces a thousand times a second, the simulation has its own contacts.

    python examples/control/mini_cheetah.py trot.html
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

import robomodel as rm
from robomodel.control import FrameTask, InverseDynamics, PointTask, PostureTask

Array = NDArray[np.float64]
FEET = ("FR_foot_contact", "FL_foot_contact", "HR_foot_contact", "HL_foot_contact")
PAIRS = np.array([[True, False, False, True], [False, True, True, False]])
STAND, STEP, LIFT = 0.3, 0.18, 0.06  # [s], [s] of a step, [m] of a foot's arc


def crouch(model: rm.Model) -> Array:
    """Feet below the hips, on the ground."""
    q = model.neutral()
    q[7:] = 4 * [0.0, 0.8, -1.6]
    q[2] -= min(rm.frame_pose(model, q, foot)[2, 3] for foot in FEET)
    return q


def trot(duration: float = 1.4) -> rm.motion.Trajectory:
    """The motion from a crouch."""
    model = rm.robots.load("mini_cheetah")
    start = crouch(model)
    base = rm.frame_pose(model, start, "Floating Base")
    places = [rm.frame_pose(model, start, foot)[:3, 3] for foot in FEET]
    tasks = [
        FrameTask("Floating Base", 1.0, 1.0, gain=200.0),
        *(PointTask(foot, 1.0, gain=900.0) for foot in FEET),
        PostureTask(1e-2, gain=100.0),
    ]
    control = InverseDynamics(model, tasks, contacts=FEET, friction=0.6)

    def tau(t: float, q: Array, v: Array) -> Array:
        phase, count = np.modf(max(t - STAND, 0.0) / STEP)
        standing = PAIRS[int(count) % 2] if t >= STAND else np.ones(4, bool)
        rise = np.array([0.0, 0.0, LIFT * np.sin(np.pi * phase)])
        targets = {"Floating Base": base, "posture": start}
        for foot, place, stands in zip(FEET, places, standing, strict=True):
            targets[foot] = place if stands else place + rise
        _, u, _ = control(q, v, targets, standing=standing)
        return rm.actuator_map(model, q) @ u

    return rm.simulate(
        model, start, tau=tau, hold=True, duration=duration, step=1e-3,
        ground=rm.Ground(friction=0.8), contacts=FEET,
    )  # fmt: skip


def lifts(motion: rm.motion.Trajectory) -> list[int]:
    """How often each foot has left the ground by a centimetre and more."""
    heights = [rm.frame_pose(motion.model, motion.q, foot)[:, 2, 3] > 0.01 for foot in FEET]
    return [int(np.sum(np.diff(high.astype(int)) == 1)) for high in heights]


def main() -> None:
    """Trot, and say how."""
    motion = trot()
    away = np.linalg.norm(motion.q[:, :3] - motion.q[0, :3], axis=1)
    print(f"steps of the feet: {lifts(motion)}")
    print(f"the base stays within {1e3 * away.max():.0f} mm")
    if len(sys.argv) > 1:
        rm.views.play(motion, sys.argv[1])


if __name__ == "__main__":
    main()
