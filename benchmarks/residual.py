"""Residual torque beside a step of MuJoCo's: the table of docs/residual.md.

    python -m benchmarks.residual [ROBOT…]

Robots are shipped ones by name, or files (a URDF with the loops of a robot.yaml beside it, too). Of
each are printed how far its open tree is from the exact model's motion after a second of PD motion
in MuJoCo, by semi-implicit Euler, without and with the correction; and for a batch of 4096 states
on one core, by processor time per state: a step of MuJoCo's, and of mujoco-warp's on the processor
where it is installed, the kernel of ``correction_force``, and all of the recipe (states to the
robot's order, loops closed, the correction, forces back).
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from mujoco import rollout

import robomodel as rm
from robomodel.arrays import Array

ROBOTS = ("belt_leg", "mini_cheetah", "parallel_ankle", "planar_leg_linkage", "tello")
BATCH, STEP, SECONDS = 4096, 1e-3, 1.0
OFF = ("CONTACT", "LIMIT", "FRICTIONLOSS", "SPRING", "DAMPER", "EULERDAMP")
RATE, DAMPING = 12.0, 0.7  # of the PD motion [rad/s], and its damping ratio


@dataclass(eq=False)
class InMujoco:
    """A robot's open tree in MuJoCo, and PD control about neutral."""

    robot: rm.Model

    def __post_init__(self) -> None:
        self.tree = rm.approximate_tree(self.robot, followers=False)
        stream = io.StringIO()
        rm.write_mjcf(self.tree, stream, meshes="drop", drop=True)
        self.model = mujoco.MjModel.from_xml_string(stream.getvalue())
        self.model.opt.timestep = STEP
        for flag in OFF:
            self.model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
        self.names = [self.model.joint(i).name for i in range(self.model.njnt)]
        self.start = self.robot.neutral()
        self.base = 6 if self.robot.floating_base else 0
        self.inertia = np.diag(rm.crba(self.robot, self.start))
        self.goal = np.random.default_rng(0).uniform(-0.1, 0.1, self.robot.nv)

    def torque(self, q: Array, v: Array, t: float) -> Array:
        """PD towards positions that swing by up to a tenth of a radian."""
        away = self.robot.difference(q, self.start) + self.goal * np.sin(2.0 * np.pi * t)
        tau = self.inertia * (RATE**2 * away - 2.0 * DAMPING * RATE * v)
        tau[..., : self.base] = 0.0
        return np.asarray(tau)

    def begin(self) -> tuple[Array, Array]:
        """The robot's configuration, and the tree's."""
        named = self.robot.joint_positions(self.start)
        named = {name: x for name, x in named.items() if name in self.tree.joint_names}
        pose = self.start[:7] if self.base else None
        return self.start, self.tree.configuration(named, base_pose=pose)

    def forces(
        self, qpos: Array, qvel: Array, t: float, last: tuple[Array, Array], *, correct: bool = True
    ) -> tuple[Array, tuple[Array, Array]]:
        """As in docs/residual.md."""
        at, v = self.tree.from_order("mujoco", qpos, qvel, joints=self.names)
        q = self.robot.integrate(last[0], self.tree.difference(last[1], at))
        tau = self.torque(q, v, t)
        if correct:
            tau = tau + rm.correction_force(self.robot, q, v, tau, tree=self.tree)
        return self.tree.to_order("mujoco", at, tau=tau, joints=self.names)[1], (q, at)

    def off(self, *, correct: bool) -> float:
        """The largest error of a joint [rad, m] in a second."""
        data, last, worst = mujoco.MjData(self.model), self.begin(), 0.0
        data.qpos[:] = self.tree.to_order("mujoco", last[1], joints=self.names)
        q, v = self.start, np.zeros(self.robot.nv)
        for k in range(round(SECONDS / STEP)):
            data.qfrc_applied[:], last = self.forces(
                data.qpos, data.qvel, k * STEP, last, correct=correct
            )
            worst = max(
                worst, float(np.max(np.abs(self.robot.difference(q, last[0])[self.base :])))
            )
            mujoco.mj_step(self.model, data)
            v = v + STEP * rm.aba(self.robot, q, v, self.torque(q, v, k * STEP))
            q = self.robot.integrate(q, STEP * v)
        return worst

    def warp_step(self) -> float:
        """Of a step of mujoco-warp's on the processor [ns for a state]; nan where it is absent."""
        if importlib.util.find_spec("mujoco_warp") is None:
            return np.nan
        import mujoco_warp
        import warp

        data = mujoco.MjData(self.model)
        data.qpos[:] = self.tree.to_order("mujoco", self.begin()[1], joints=self.names)
        with warp.ScopedDevice("cpu"):
            model = mujoco_warp.put_model(self.model)
            worlds = mujoco_warp.put_data(self.model, data, nworld=BATCH)
            mujoco_warp.step(model, worlds)
            return taken(lambda: mujoco_warp.step(model, worlds))

    def times(self) -> tuple[float, float, float]:
        """Of MuJoCo's step, the kernel, and the recipe less the torque [ns for a state]."""
        spec, data = mujoco.mjtState.mjSTATE_FULLPHYSICS, mujoco.MjData(self.model)
        last = tuple(np.tile(x, (BATCH, 1)) for x in self.begin())
        data.qpos[:] = self.tree.to_order("mujoco", last[1][0], joints=self.names)
        state = np.zeros(mujoco.mj_stateSize(self.model, spec))
        mujoco.mj_getState(self.model, data, state, spec)
        states = np.tile(state, (BATCH, 1))
        qpos = states[:, 1 : 1 + self.model.nq]
        qvel = np.random.default_rng(1).standard_normal((BATCH, self.model.nv))
        states[:, 1 + self.model.nq : 1 + self.model.nq + self.model.nv] = qvel
        tau = np.ones((BATCH, self.robot.nv))
        step = taken(lambda: rollout.rollout(self.model, data, states, nstep=1))
        kernel = taken(lambda: rm.correction_force(self.robot, last[0], qvel, tau, tree=self.tree))
        all_of_it = taken(lambda: self.forces(qpos, qvel, 0.0, (last[0], last[1])))
        control = taken(lambda: self.torque(last[0], qvel, 0.0))
        return step, kernel, all_of_it - control


def taken(work: Callable[[], object]) -> float:
    """The least processor time of thirty runs for a state [ns]."""
    best = np.inf
    for _ in range(30):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return 1e9 * best / BATCH


def load(name: str) -> rm.Model:
    """A robot in the coordinates of its tree."""
    path = rm.robots.path(name) if name in rm.robots.names() else Path(name)
    extend = path.with_suffix(".yaml")
    options = {"extend": str(extend)} if extend.exists() else {}
    return rm.load(path, independent=rm.limb_joints(rm.load(path, **options)), **options)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("robots", nargs="*", default=ROBOTS)
    warnings.simplefilter("ignore")
    print("| robot | off without | with | steps, ns | the correction | recipe |")
    print("|---|---|---|---|---|---|")
    for name in parser.parse_args().robots:
        at = InMujoco(load(name))
        off = [f"{at.off(correct=each):.1e}" for each in (False, True)]
        step, kernel, everything = at.times()
        warp_step = at.warp_step()
        shares = [
            f"{x:.0f}, {100.0 * x / step:.1f}, {100.0 * x / warp_step:.1f} %"
            for x in (kernel, everything)
        ]
        cells = [*off, f"{step:.0f}, {warp_step:.0f}", *shares]
        print(f"| `{Path(name).name}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
