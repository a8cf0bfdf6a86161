"""MuJoCo moves an open tree as the robot with its rotors and linkages moves, by a correction.

The tree is written by ``write_mjcf(approximate=True)``. In MuJoCo's control callback the state of
its joints is brought to the robot's coordinates, loops solved, and ``rm.correction_force`` added to
the joint forces. Without it, the tree drifts away from the robot. Free motions, no contact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import mujoco
import numpy as np
from numpy.typing import NDArray

import robomodel as rm

Array = NDArray[np.float64]


@dataclass
class Corrected:
    """A robot's open tree in MuJoCo, and forces tau(t) on the robot's independent joints."""

    robot: rm.Model
    amplitude: Array
    correct: bool
    tree: rm.Model = field(init=False)
    q: Array = field(init=False)  # the robot's configuration, where its loops closed last

    def __post_init__(self) -> None:
        self.tree, self.q = rm.approximate_tree(self.robot), self.robot.neutral()
        with TemporaryDirectory() as folder:
            path = Path(folder) / "tree.xml"
            rm.write_mjcf(self.robot, path, approximate=True, meshes="drop")
            self.mujoco = mujoco.MjModel.from_xml_path(str(path))
        self.mujoco.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
        for flag in ("CONTACT", "LIMIT"):
            self.mujoco.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
        sizes = np.cumsum([0, *(joint.nv for joint in self.robot.joints)])
        rows = dict(zip(self.robot.joint_names, map(range, sizes, sizes[1:]), strict=False))
        self.names = [joint.name for joint in self.tree.joints if joint.name in rows]
        self.rows = [row for name in self.names for row in rows[name]]

    def torque(self, t: float) -> Array:
        """What motors do to the independent joints of the robot."""
        return self.amplitude * np.cos(8.0 * np.pi * t)

    def control(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """MuJoCo's callback, once for each stage of its integrator."""
        q_tree, v_tree = self.tree.from_order("mujoco", data.qpos, v=data.qvel, joints=model)
        positions = {
            name: x for name, x in self.tree.joint_positions(q_tree).items() if name in self.names
        }
        base = q_tree[:7] if self.robot.floating_base else None
        self.q = self.robot.configuration(positions, guess=self.q, base_pose=base)
        g = self.robot.constraint_jacobian(self.q)[self.rows]
        v, tau = np.linalg.solve(g, v_tree), self.torque(data.time)
        forces = np.linalg.solve(g.T, tau)
        if self.correct:
            forces += rm.correction_force(self.robot, self.q, v, tau, passive=True)
        data.qfrc_applied[:] = self.tree.to_order(
            "mujoco", q_tree, v_tree, tau=forces, joints=model
        )[-1]

    def run(self, duration: float, step: float) -> Array:
        """Positions of the tree's joints after every step, from neutral at rest."""
        self.mujoco.opt.timestep = step
        data = mujoco.MjData(self.mujoco)
        positions = self.robot.joint_positions(self.robot.neutral())
        base = self.robot.neutral()[:7] if self.robot.floating_base else None
        start = self.tree.configuration(
            {name: positions[name] for name in self.names if name in positions}, base_pose=base
        )
        data.qpos[:] = self.tree.to_order("mujoco", start, joints=self.mujoco)
        rows = [self.joints(self.tree, start)]
        mujoco.set_mjcb_control(self.control)
        try:
            for _ in range(round(duration / step)):
                mujoco.mj_step(self.mujoco, data)
                q = self.tree.from_order("mujoco", data.qpos, joints=self.mujoco)
                rows.append(self.joints(self.tree, q))
        finally:
            mujoco.set_mjcb_control(None)
        return np.array(rows)

    def joints(self, model: rm.Model, q: Array) -> Array:
        """Positions of the tree's joints but the base, in one or several configurations."""
        named = model.joint_positions(q)
        return np.stack([named[name] for name in self.names if name in named], axis=-1)


def errors(robot: rm.Model, amplitude: Array, duration: float, step: float) -> tuple[float, float]:
    """The largest deviation of a joint [rad] from rm.simulate, without and with the correction."""
    plain, corrected = (Corrected(robot, amplitude, correct) for correct in (False, True))
    exact = rm.simulate(
        robot, robot.neutral(), tau=lambda t, q, v: plain.torque(t), duration=duration, step=step
    )
    expected = plain.joints(robot, exact.q)
    plain_error, corrected_error = (
        float(np.max(np.abs(each.run(duration, step) - expected))) for each in (plain, corrected)
    )
    return plain_error, corrected_error


def main() -> None:
    """Print the deviations of Tello and of a leg with a four-bar knee, over 0.2 s."""
    tello = rm.robots.load("tello")
    legs = np.where(np.arange(tello.nv) < 6, 0.0, 0.2)
    knee = rm.robots.load("planar_leg_linkage")
    for robot, amplitude in ((tello, legs), (knee, np.array([0.1, 0.05]))):
        plain, corrected = errors(robot, amplitude, duration=0.2, step=1e-3)
        print(f"{robot.name:20} {plain:9.2e} rad without, {corrected:9.2e} rad with the correction")


if __name__ == "__main__":
    main()
