"""Rollouts beside MuJoCo's: ``python -m benchmarks.rollout``. Needs the extra ``mujoco``.

The same motions in one run: Mini Cheetah in flight with its twelve geared rotors, and a planar leg
whose shank hangs on a four-bar, under forces that change at each step. MuJoCo gets the robots by
``rm.write_mjcf``: loops and gears as its equality constraints, and, as most users have them,
without (``approximate=True``: rotors as armature). Each row is timed on one thread, in CPU time,
all rows taking turns, in several fresh processes; the least counts. Errors are the largest, over
all motions, of the joints' positions at the end against DOP853 at a relative tolerance of 1e-12;
gaps those of loops and gears there.

With ``--contact`` Mini Cheetah stamps on its four feet, spheres of 2 cm: by ``rm.rollout`` with its
rotors and rigid contacts, and by MuJoCo's Euler method with armature in place of the rotors (its
fastest way) and its soft contacts.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TypeAlias

import mujoco
import numpy as np
from mujoco.rollout import Rollout
from numpy.typing import ArrayLike, NDArray

import robomodel as rm
from benchmarks.shared.race import PROCESSES, in_fresh_processes
from robomodel.motion import SimulationError
from robomodel.scalars import stack, unstack

Array = NDArray[np.float64]
Foot: TypeAlias = tuple[str, tuple[float, float, float], float]
ROBOTS = {"Mini Cheetah": "mini_cheetah", "four-bar leg": "planar_leg_linkage"}
STRENGTH = {"Mini Cheetah": 2.0, "four-bar leg": 0.05}  # of the forces [N m]
INTEGRATORS = ("Euler", "RK4", "implicitfast")
DURATION = 0.1
FRICTION, RADIUS = 0.8, 0.02
FEET = [(f"{leg}_foot_contact", (0.0, 0.0, 0.0), RADIUS) for leg in ("FR", "FL", "HR", "HL")]
STEEP = 3.0  # joints that turn so many times as fast as an independent one are left out
FLAT = (
    0.1  # of a loop's conditions the least singular value over the largest: a change point is near
)
mujoco.set_mju_user_warning(lambda message: None)  # else a log file is left behind


@dataclass(frozen=True)
class Motions:
    """Starts and forces of a batch, for a step, and where the motions really end."""

    model: rm.Model
    q: Array
    v: Array
    tau: Array
    step: float
    end: Array  # spanning positions


@dataclass(frozen=True)
class Row:
    """One competitor: nanoseconds of CPU a step, error [rad, m] at the end, gap of loops.

    No gap is told of a model without the joints that loops and gears relate.
    """

    robot: str
    by: str
    step: float
    ns: float
    error: float
    gap: float | None


def motions(name: str, count: int, step: float) -> Motions:
    """Starts near the neutral configuration, and forces held over 10 ms."""
    model = rm.robots.load(ROBOTS[name])
    rng = np.random.default_rng(0)
    stay = model.floating_base is not None
    q, v, tau, end = [], [], [], []
    steps, held = round(DURATION / step), round(0.01 / step)
    while len(q) < count:
        start = model.random_configuration(rng, near=model.neutral() if stay else None)
        speed = 0.3 * rng.standard_normal(model.nv)
        force = STRENGTH[name] * rng.standard_normal((steps // held, model.nv))
        if stay:
            force[:, :6] = 0.0
        try:
            exact = rm.simulate(model, start, speed, tau=force, step=0.01, rtol=1e-12, atol=1e-14)
        except SimulationError:
            continue  # the leg comes to its dead point
        if model.loops:
            path = rm.rollout(model, start, speed, np.repeat(force, 10, axis=0), 1e-3).q
            if near_singular(model, path):
                continue  # or near it
        q.append(start)
        v.append(speed)
        tau.append(np.repeat(force, held, axis=0))
        end.append(spanning(model, exact.q[-1]))
    return Motions(model, np.array(q), np.array(v), np.array(tau), step, np.array(end))


def near_singular(model: rm.Model, q: Array) -> bool:
    """Whether a motion (T, nq) comes near a dead point or a change point."""
    values = np.linalg.svd(model.constraint_matrix(q), compute_uv=False)
    steep = np.max(np.abs(model.constraint_jacobian(q))) > STEEP
    rank = model.n_joint_velocities - model.nv
    return bool(steep or np.min(values[..., rank - 1] / values[..., 0]) < FLAT)


def spanning(model: rm.Model, q: Array) -> Array:
    """Positions of all joints of the tree."""
    return stack(model.spanning_positions(unstack(q)), q.shape[:-1])


def away(model: rm.Model, found: Array, end: Array) -> float:
    """The largest error of a joint's position; a base's attitude as the quaternion's error."""
    error = np.abs(found - end)
    if model.floating_base is not None:
        turn = slice(3, 7)
        error[:, turn] = np.minimum(error[:, turn], np.abs(found[:, turn] + end[:, turn]))
    return float(np.max(error))


# ---- competitors ---------------------------------------------------------------------------------


def ours(batch: Motions, method: str) -> tuple[Callable[[], object], Callable[[], Array]]:
    """What is timed, and the spanning positions at the end."""
    run = partial(rm.rollout, batch.model, batch.q, batch.v, batch.tau, batch.step, method=method)
    return run, lambda: spanning(batch.model, run().q[:, -1])


def on_ground(text: str, model: rm.Model, feet: Sequence[Foot]) -> mujoco.MjSpec:
    """MuJoCo's robot with spheres for feet on a plane; as it is without any."""
    spec = mujoco.MjSpec.from_string(text)
    if not feet:
        return spec
    plane = mujoco.mjtGeom.mjGEOM_PLANE
    spec.worldbody.add_geom(type=plane, size=[0, 0, 1], friction=[FRICTION, 0, 0], condim=3)
    neutral = model.neutral()
    for frame, offset, radius in feet:
        link = model.bodies[model.frame(frame).body].name
        pose = np.linalg.inv(rm.frame_pose(model, neutral, link))
        at = pose @ rm.frame_pose(model, neutral, frame) @ [*offset, 1.0]
        ball = mujoco.mjtGeom.mjGEOM_SPHERE
        spec.body(link).add_geom(
            type=ball, size=[radius, 0, 0], pos=at[:3], friction=[FRICTION, 0, 0], condim=3,
            mass=0.0,
        )  # fmt: skip
    return spec


class Theirs:
    """MuJoCo's model of a robot, joint by joint."""

    def __init__(
        self, batch: Motions, integrator: str, approximate: bool, feet: Sequence[Foot] = ()
    ) -> None:
        text = io.StringIO()
        rm.write_mjcf(batch.model, text, approximate=approximate, drop=True)
        self.batch = batch
        lines = [line for line in text.getvalue().splitlines(True) if "mesh=" not in line]
        lines = [line for line in lines if "<mesh " not in line]  # pictures, of files elsewhere
        self.model = on_ground("".join(lines), batch.model, feet).compile()
        self.model.opt.timestep = batch.step
        self.model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
        if not feet:
            self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
        self.model.dof_damping[:] = 0.0
        self.model.dof_frictionloss[:] = 0.0
        self.data = mujoco.MjData(self.model)
        self.rollout = Rollout(nthread=0)
        self.states, self.forces = self._states(), self._forces()
        kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
        size = mujoco.mj_stateSize(self.model, kind)
        self.out = np.zeros((len(self.states), self.forces.shape[1], size))

    def _known(self) -> Iterator[tuple[int, int, int]]:
        """The joints that it has: the body in ours, address of the position and of the velocity."""
        for body, joint in enumerate(self.batch.model.joints):
            there = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT, joint.name)
            if there >= 0:
                yield body, self.model.jnt_qposadr[there], self.model.jnt_dofadr[there]

    def _states(self) -> Array:
        model, (q, v) = self.batch.model, (self.batch.q, self.batch.v)
        positions = spanning(model, q)
        rates = np.einsum("...ij,...j->...i", model.constraint_jacobian(q), v)
        qpos = np.zeros((len(q), self.model.nq))
        qvel = np.zeros((len(q), self.model.nv))
        for body, at, along in self._known():
            node = model.nodes[body]
            if node.joint.nv == 1:
                qpos[:, at], qvel[:, along] = positions[:, node.q], rates[:, node.v]
                continue
            x, y, z, *turn, w = range(node.q, node.q + 7)
            qpos[:, at : at + 7] = positions[:, [x, y, z, w, *turn]]
            poses = rm.frame_pose(model, q, model.bodies[body].name)[:, :3, :3]
            linear = rates[:, node.v + 3 : node.v + 6]
            qvel[:, along : along + 3] = np.einsum("nij,nj->ni", poses, linear)
            qvel[:, along + 3 : along + 6] = rates[:, node.v : node.v + 3]
        return np.concatenate([np.zeros((len(q), 1)), qpos, qvel], axis=1)

    def _forces(self) -> Array:
        model, tau = self.batch.model, self.batch.tau
        forces = np.zeros((*tau.shape[:2], self.model.nv))
        for body, _, along in self._known():
            name = model.joints[body].name
            if name in model.dof_names:
                forces[..., along] = tau[..., model.dof_names.index(name)]
        return forces

    def run(self) -> None:
        """All motions."""
        self.rollout.rollout(
            self.model, self.data, self.states, self.forces, state=self.out,
            control_spec=int(mujoco.mjtState.mjSTATE_QFRC_APPLIED), skip_checks=False,
        )  # fmt: skip

    def end(self) -> Array:
        """Spanning positions at the end; of joints that it does not have, the true ones."""
        self.run()
        model, states = self.batch.model, self.batch.end.copy()
        for body, address, _ in self._known():
            node, at = model.nodes[body], address + 1  # time comes first
            columns = [at]
            if node.joint.nv == 6:
                columns = [*range(at, at + 3), *range(at + 4, at + 7), at + 3]
            states[:, node.q : node.q + node.joint.nq] = self.out[:, -1][:, columns]
        return states


def competitors(batch: Motions) -> Iterator[tuple[str, Callable[[], object], Callable[[], Array]]]:
    """Name, what is timed, and what gives the positions at the end."""
    for method in ("semi_implicit_euler", "rk4"):
        yield f"robomodel {method}", *ours(batch, method)
    for integrator in INTEGRATORS:
        exact = Theirs(batch, integrator, False)
        yield f"MuJoCo {integrator}", exact.run, exact.end
    if any(not joint.independent for joint in batch.model.joints) and not batch.model.loops:
        for integrator in INTEGRATORS:
            simple = Theirs(batch, integrator, True)
            yield f"MuJoCo {integrator}, armature", simple.run, simple.end


# ---- the run -------------------------------------------------------------------------------------


def gap_of(model: rm.Model, positions: Array) -> float:
    """The largest gap of loops and couplings at spanning positions."""
    worst = 0.0
    for cluster in model.clusters:
        worst = max(worst, float(np.max(cluster.geometry.gap(positions[:, cluster.spanning_q]))))
    return worst


def measure(name: str, count: int, steps: tuple[float, ...], rounds: int) -> list[Row]:
    """All competitors on one robot, in turns, in this process."""
    entries = []
    for step in steps:
        batch = motions(name, count, step)
        entries += [(batch, *entry) for entry in competitors(batch)]
    times: dict[int, list[float]] = {n: [] for n in range(len(entries))}
    for _ in range(rounds + 1):
        for n, (batch, _, run, _) in enumerate(entries):
            start = time.process_time_ns()
            run()
            times[n].append((time.process_time_ns() - start) / batch.tau[..., 0].size)
    rows = []
    for n, (batch, by, _, end) in enumerate(entries):
        end_state = end()
        gap = None if by.endswith("armature") else gap_of(batch.model, end_state)
        error = away(batch.model, end_state, batch.end)
        rows.append(Row(name, by, batch.step, min(times[n][1:]), error, gap))
    return rows


# ---- on the ground -------------------------------------------------------------------------------


def stamping(count: int, step: float) -> Motions:
    """Mini Cheetah on its feet, every joint and the base pushed about, legs holding by torques."""
    model = rm.robots.load("mini_cheetah")
    bent = {"abad": 0.0, "hip": -0.8, "knee": 1.6}
    joints = [name for name in model.dof_names if name.split("_")[0] in ("FR", "FL", "HR", "HL")]
    q = model.configuration({name: bent[name.split("_")[1]] for name in joints})
    return on_feet(model, q, FEET, (60.0, 4.0), count, step)


def on_feet(
    model: rm.Model, q: Array, feet: Sequence[Foot], gains: ArrayLike, count: int, step: float,
) -> Motions:  # fmt: skip
    """Robots that stand, with q or nearly so, all joints and the base pushed about."""
    q = q.copy()
    lowest = [rm.frame_pose(model, q, (link, at))[2, 3] - radius for link, at, radius in feet]
    q[2] -= min(lowest)
    kp, kd = np.broadcast_to(gains, (model.nv, 2)).T

    def hold(t: float, at: Array, v: Array) -> Array:
        return np.concatenate([np.zeros(6), (kp * model.difference(at, q) - kd * v)[6:]])

    stood = rm.simulate(
        model, q, tau=hold, hold=True, duration=1.0, ground=rm.Ground(FRICTION), contacts=feet
    )
    rng, steps = np.random.default_rng(0), round(DURATION / step)
    v = 0.2 * rng.standard_normal((count, model.nv))
    tau = np.repeat(stood.tau[-1] + rng.standard_normal((count, steps // 10, model.nv)), 10, axis=1)
    tau[..., :6] = 0.0
    starts = np.repeat(stood.q[-1:], count, axis=0)
    return Motions(model, starts, v, tau, step, np.zeros((count, 0)))


def measure_contact(count: int, rounds: int, step: float = 1e-3) -> dict[str, float]:
    """Nanoseconds of thread CPU a step of ours and of theirs, and what is left of our equations."""
    batch = stamping(count, step)
    options = {"ground": rm.Ground(FRICTION), "contacts": FEET}
    run = partial(
        rm.rollout, batch.model, batch.q, batch.v, batch.tau, step,
        friction=False, passive=False, **options,
    )  # fmt: skip
    theirs = Theirs(batch, "Euler", True, FEET)
    times: dict[str, list[float]] = {"robomodel": [], "MuJoCo Euler, armature": []}
    for _ in range(rounds + 1):
        for by, each in zip(times, (run, theirs.run), strict=True):
            start = time.thread_time_ns()
            each()
            times[by].append((time.thread_time_ns() - start) / batch.tau[..., 0].size)
    motion = run()
    report = {by: statistics.median(each[1:]) for by, each in times.items()}
    report["times as fast"] = report["MuJoCo Euler, armature"] / report["robomodel"]
    report["residual, largest"] = float(motion.contact_residual.max())
    report["residual, 99 of 100 steps"] = float(np.quantile(motion.contact_residual, 0.99))
    report["share of contacts that push"] = float((motion.contact_forces[..., 2] > 0.0).mean())
    return report


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=64, help="motions in a batch")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--processes", type=int, default=PROCESSES,
                        help="fresh processes whose least times count; 0: this one")  # fmt: skip
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--contact", action="store_true", help="on the ground")
    options = parser.parse_args()
    if options.contact:
        for what, number in measure_contact(options.count, options.rounds).items():
            print(f"{what:40}{number:12.3g}")
        return
    rows = []
    for name in ROBOTS:
        arguments = (name, options.count, (1e-3, 5e-3), options.rounds)
        runs = in_fresh_processes(options.processes, measure, *arguments)
        rows += [min(same, key=lambda row: row.ns) for same in zip(*runs, strict=True)]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    print(f"{options.count} motions of {DURATION:g} s; MuJoCo {mujoco.__version__}")
    print(f"{'robot':14}{'by':34}{'step':>7}{'ns a step':>11}{'error':>10}{'gap':>10}")
    for row in rows:
        print(
            f"{row.robot:14}{row.by:34}{row.step * 1e3:5.0f} ms{row.ns:11.0f}"
            f"{row.error:10.1e}" + ("" if row.gap is None else f"{row.gap:10.1e}")
        )


if __name__ == "__main__":
    main()
