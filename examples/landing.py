"""Mini Cheetah falls onto its feet and stands, by PD at its joints; its twelve rotors turn along.

Prints what the ground feels, and writes the motion as a page for any browser.

    python examples/landing.py landing.html
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

import robomodel as rm

Array = NDArray[np.float64]
FEET = [f"{leg}_foot_contact" for leg in ("FR", "FL", "HR", "HL")]
STANCE = {"abad": 0.0, "hip": -0.8, "knee": 1.6}  # [rad]
DROP = 0.15  # [m]
STIFFNESS, DAMPING = 60.0, 3.0  # [N m/rad], [N m s/rad]


def landing(duration: float = 1.2, step: float = 1e-3) -> rm.motion.Trajectory:
    """The motion from rest, ``DROP`` above the ground."""
    model = rm.robots.load("mini_cheetah")
    joints = [name for name in model.dof_names if name.split("_")[0] in ("FR", "FL", "HR", "HL")]
    q = model.configuration({name: STANCE[name.split("_")[1]] for name in joints})
    q[2] += DROP - min(rm.frame_pose(model, q, foot)[2, 3] for foot in FEET)
    stance = q[7:].copy()

    def hold(t: float, at: Array, v: Array) -> Array:
        return np.concatenate([np.zeros(6), STIFFNESS * (stance - at[7:]) - DAMPING * v[6:]])

    return rm.simulate(
        model, q, tau=hold, hold=True, duration=duration, step=step,
        ground=rm.Ground(friction=0.7), contacts=FEET,
    )  # fmt: skip


def main() -> None:
    """Land, and tell of it."""
    motion = landing()
    forces, model = motion.contact_forces, motion.model
    assert forces is not None
    assert motion.contact_residual is not None
    total = forces[..., 2].sum(axis=1)
    touched = motion.times[int(np.argmax(total > 0.0))]
    print(f"touches the ground at {touched:.3f} s with {motion.v[:, 5].min():.2f} m/s")
    print(f"largest force {total.max():.0f} N, at rest {total[-1]:.2f} N; it weighs "
          f"{9.81 * model.mass:.2f} N")  # fmt: skip
    print(f"fastest rotor {6.0 * np.abs(motion.v[:, 6:]).max():.0f} rad/s, "
          f"contacts solved to {motion.contact_residual.max():.0e}")  # fmt: skip
    if len(sys.argv) > 1:
        rm.views.play(motion, sys.argv[1])


if __name__ == "__main__":
    main()
