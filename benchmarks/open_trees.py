"""Open trees in MuJoCo: accelerations of the written file beside the errors that the tree tells.

    python -m benchmarks.open_trees [--folder FOLDER] [ROBOT…]

Robots are shipped ones by name, or files (a URDF with the loops of a robot.yaml beside it, too);
without any, all shipped ones with loops or couplings, and those of ``PUBLIC`` that FOLDER has, as
OWNER/NAME (or OWNER+NAME) at their commits. At fresh states, of other positions and motions than
those of ``tree.errors``, the file that ``write_mjcf`` writes gets the exact torques, and, at some
of them, ``correction_force`` besides. Followers are exact conditions of MuJoCo's equality Jacobian,
as MuJoCo holds them softly. Printed are each tree's verdict; its worst joint's median with its 95 %
interval; that joint's median at fresh states in MuJoCo; the largest ratio of medians told and found
there over all joints with more than 1e-4, at all fresh states and at 40 of them; of how many of
these joints the median that is told is in the interval of the 40; what is left with the correction,
of a tree without followers; and the processor time of the tree. A verdict that a joint's median at
the fresh states does not bear out is named.
"""

from __future__ import annotations

import argparse
import io
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import mujoco
import numpy as np

import robomodel as rm
from robomodel.arrays import Array
from robomodel.opentree.errors import (
    FAIR,
    GOOD,
    STATES_SEED,
    Error,
    Measure,
    exact_states,
    percent,
    worst_joint,
)
from robomodel.opentree.tree import USUAL, OpenTree, TreeOptions, written_tree
from robomodel.opentree.tree_joints import tree_joints
from robomodel.reach.limb import LIMB_SEED
from robomodel.tolerances import SAME

FEW = 40  # states
LEAST = 1e-4  # of errors that are compared
FRESH = 7000  # seeds: so far from those that trees are made with
STEP = 1e-4  # s, of differences of the equality Jacobian along a motion

PUBLIC = {  # repository: its commit, and its files
    "berkeleyopenarms/blue_core a1e72bdb": ["blue_descriptions/robots/blue_left_v2.urdf.xacro"],
    "bulletphysics/bullet3 (pybullet_data 3.2.7)": ["xarm/xarm6_with_gripper.urdf"],
    "feidedao/Parallel_Ankle_Joint 1305e884": [
        "2_g1_ankle/urdf/23urdf311.xml", "5_tiangong/urdf/TG10-00.xml"],
    "assadollahi/kayra 14f4ab73": ["mujoco/kayraLowerBody.xml"],
    "pollen-robotics/AmazingHand 4c5cb2f2": [
        "Demo/AHSimulation/AHSimulation/AH_Right/mjcf/robot.xml"],
    "psyonicinc/ability-hand-api 34c9a932": ["URDF/ability_hand_right_large.urdf"],
    "TetherIA/aero-hand-open 8807a3c6": [
        "ros2/src/aero_hand_open_description/urdf/aero_hand_open_right.urdf"],
    "jhu-lcsr-attic/bhand_model 937f4186": ["robots/bhand_model.URDF"],
    "andrei-herdt/mujoco_menagerie 4dbf2392": [
        "robotiq_2f85/2f85.xml", "ufactory_xarm7/xarm7.xml", "agility_cassie/cassie.xml"],
    "Rhoban/placo-examples 3edf600f": ["models/orbita/robot.urdf", "models/planar-2dof/robot.urdf"],
    "Gepetto/example-parallel-robots 52e64b31": [
        f"robots/{name}/robot.urdf"
        for name in ("digit_like", "cassie_like", "robot_delta", "disney_like", "talos_like")],
}  # fmt: skip


@dataclass(eq=False)
class InMujoco:
    """A tree as MuJoCo reads it, without contacts, limits and passive forces."""

    tree: rm.Model

    def __post_init__(self) -> None:
        stream = io.StringIO()
        rm.write_mjcf(self.tree, stream, meshes="drop", drop=True)
        self.compiled = mujoco.MjModel.from_xml_string(stream.getvalue())
        for flag in ("CONTACT", "LIMIT", "FRICTIONLOSS", "SPRING", "DAMPER", "EULERDAMP"):
            self.compiled.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
        self.compiled.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        self.data = mujoco.MjData(self.compiled)

    def accelerations(self, t: Array, dt: Array, tau: Array) -> Array:
        """The tree's accelerations (n, tree.nv) under tau, its followers held exactly."""
        found = np.zeros_like(dt)
        qpos, qvel, forces = self.tree.to_order("mujoco", t, dt, tau=tau, joints=self.compiled)
        for n, (q, v, force) in enumerate(zip(qpos, qvel, forces, strict=True)):
            qacc = self._exactly(q, v, force)
            _, _, found[n] = self.tree.from_order("mujoco", q, v, a=qacc, joints=self.compiled)
        return found

    def _exactly(self, q: Array, v: Array, force: Array) -> Array:
        rows = self._equalities(q)
        change = np.zeros(len(rows))
        if len(rows):
            ahead, behind = (self._equalities(self._moved(q, v, h)) for h in (STEP, -STEP))
            change = (ahead - behind) @ v / (2.0 * STEP)
        self.data.qpos[:], self.data.qvel[:] = q, v
        mujoco.mj_fwdPosition(self.compiled, self.data)
        mujoco.mj_fwdVelocity(self.compiled, self.data)
        mass = np.zeros((self.compiled.nv, self.compiled.nv))
        mujoco.mj_fullM(self.compiled, self.data, mass)
        zero = np.zeros((len(rows), len(rows)))
        matrix = np.block([[mass, rows.T], [rows, zero]])
        right = np.concatenate([force - self.data.qfrc_bias, -change])
        return np.asarray(np.linalg.solve(matrix, right)[: len(v)])

    def _equalities(self, q: Array) -> Array:
        self.data.qpos[:] = q
        mujoco.mj_fwdPosition(self.compiled, self.data)
        rows = self.data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        return np.array(self.data.efc_J.reshape(-1, self.compiled.nv)[rows])

    def _moved(self, q: Array, v: Array, step: float) -> Array:
        near = q.copy()
        mujoco.mj_integratePos(self.compiled, near, v, step)
        return near


@dataclass(frozen=True)
class Proof:
    """The errors of each joint that are told, and those at fresh states, and at some of these."""

    told: Mapping[str, Error]
    found: Mapping[str, Error]
    few: Mapping[str, Error]

    @property
    def within(self) -> str:
        """How many of the medians that are told are in the intervals of some states."""
        some = [(low, self.told[name].median, high)
                for name, (low, high) in ((name, x.interval) for name, x in self.few.items())
                if max(self.told[name].median, high) > LEAST]  # fmt: skip
        return f"{sum(low <= told <= high for low, told, high in some)} of {len(some)}"

    def ratio(self, found: Mapping[str, Error]) -> float:
        """The largest ratio of medians told and found; 1 if all are small."""
        pairs = [sorted((self.told[name].median, x.median)) for name, x in found.items()]
        return max((high / max(low, LEAST) for low, high in pairs if high > LEAST), default=1.0)

    @property
    def broken(self) -> str:
        """The joint whose median the verdict should have told, if there is one."""
        words = worst_joint(self.told)[1].median
        most = GOOD if words <= GOOD else FAIR if words <= FAIR else np.inf
        name, error = worst_joint(self.found)
        return f", but '{name}' {percent(error.median)}" if error.median > most else ""


def fresh(tree: OpenTree, options: TreeOptions = USUAL) -> Measure:
    """The measure of a tree at states of other positions and motions, of the same range."""
    basis = tree.basis
    moving = [basis.robot.joints[body].name for part in basis.parts for body in part.bodies]
    drawn = tree_joints(basis.robot, moving, options.following, LIMB_SEED + FRESH)
    parts = []
    for part, new in zip(basis.parts, drawn, strict=True):
        others, links = new.others, part.cluster.geometry.links
        if any(part.ends(tree.basis.view, each) for each in part.followers):  # as polynomials do
            at = [links[part.cluster.bodies.index(body)].q for body in part.bodies]
            ends = [np.min(part.positions[:, at], axis=0), np.max(part.positions[:, at], axis=0)]
            inside = (others[:, at] >= ends[0]) & (others[:, at] <= ends[1])
            others = others[np.all(inside, axis=1)]
        parts.append(replace(part, others=others))
    states = exact_states(basis.view, basis.on(tree), parts, check=True, seed=STATES_SEED + FRESH)
    return Measure.of(states, basis.joints, basis.efforts(states.q))


def proof(tree: OpenTree) -> Proof:
    """The errors of a tree, told and by MuJoCo."""
    measure, mapping = fresh(tree), tree.basis.on(tree)
    states = measure.states.on(mapping)
    found = InMujoco(tree).accelerations(states.t, states.dt, states.tau)
    off = measure.relative(mapping.model, states, found)
    picks = np.linspace(0, len(states.t) - 1, FEW).astype(int)
    every = {name: Error.of(x, measure.states) for name, x in off.items()}
    return Proof(tree.errors, every, {name: Error.of(x[picks]) for name, x in off.items()})


def corrected(tree: OpenTree) -> float:
    """The largest error with the correction at some states, over the largest acceleration."""
    measure, mapping = tree.basis.measure, tree.basis.on(tree)
    exact = measure.states.on(mapping)
    picks = np.linspace(0, len(exact.t) - 1, FEW).astype(int)
    s = measure.states
    more = rm.correction_force(
        tree.basis.view, s.q[picks], s.v[picks], s.tau[picks], tree=tree, backend="numpy"
    )
    found = InMujoco(tree).accelerations(exact.t[picks], exact.dt[picks], exact.tau[picks] + more)
    size = np.max(np.abs(exact.ddt[picks]), axis=1, keepdims=True)
    return float(np.max(np.abs(found - exact.ddt[picks]) / size))


def load(name: str) -> rm.Model:
    """A shipped robot, or a file."""
    if name in rm.robots.names():
        return rm.robots.load(name)
    extend = Path(name).with_suffix(".yaml")
    return rm.load(name, extend=str(extend)) if extend.exists() else rm.load(name)


def row(label: str, name: str) -> str:
    """A robot's line of the table."""
    start = time.process_time()
    model = load(name)
    loaded = time.process_time() - start
    tree = written_tree(model)
    took = time.process_time() - start - loaded
    stem = f"| {label} | {tree.kind} | {tree.verdict.split(':')[0]}"
    if not tree.errors or tree.kind == "open":
        return f"{stem} |||||||| {took:.1f} s |"
    joint, error = worst_joint(tree.errors)
    checked = proof(tree)
    alone = tree
    if tree.basis.followers:
        alone = written_tree(model, TreeOptions(followers=False))
    ratios = [f"{checked.ratio(x):.3g}" for x in (checked.found, checked.few)]
    numbers = [f"{joint} {_said(error.median)}", " to ".join(map(_said, error.interval)),
               _said(worst_joint(checked.found)[1].median), *ratios, checked.within,
               f"{corrected(alone):.0e}"]  # fmt: skip
    return f"{stem}{checked.broken} | {' | '.join(numbers)} | {took:.1f} s |"


def _said(error: float) -> str:
    return percent(error) if error > SAME else "0"


def public(folder: Path) -> Iterator[tuple[str, str]]:
    """Names and paths of the public files that are in a folder."""
    for source, files in PUBLIC.items():
        repository = source.split()[0]
        for place in (repository, repository.replace("/", "+")):
            for file in files:
                if (path := folder / place / file).exists():
                    yield f"{repository} `{path.parent.name}/{path.name}`", str(path)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where the public repositories are")
    parser.add_argument("robots", nargs="*", help="names and files; else all")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = ("robot", "tree", "verdict", "worst joint", "interval", "at fresh states", "ratio",
             f"at {FEW}", "within", "corrected", "time")  # fmt: skip
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    wanted = [(f"`{Path(name).name}`", name) for name in options.robots]
    if not wanted:
        shipped = [n for n in rm.robots.names()
                   if rm.robots.load(n).loops or rm.robots.load(n).couplings]  # fmt: skip
        wanted = [(f"`{name}`", name) for name in shipped]
        wanted += public(options.folder) if options.folder else ()
    for label, name in wanted:
        try:
            print(row(label, name), flush=True)
        except (ValueError, rm.DescriptionError, mujoco.FatalError) as error:
            print(f"| {label} | {type(error).__name__}: {str(error)[:200]} |", flush=True)


if __name__ == "__main__":
    main()
