"""Open trees in MuJoCo: accelerations of the written file beside the errors that the tree tells.

    python -m benchmarks.open_trees [ROBOT…]

Robots are shipped ones by name, or files (a URDF with the loops of a robot.yaml beside it, too). At
40 states that no fit has seen the file that ``write_mjcf`` writes gets the exact torques, once
alone and once with ``correction_force``. Printed are each tree's verdict, its worst joint's median
as told and as MuJoCo has it, the largest ratio of both over the joints, and the largest error with
the correction, of trees of hinges and slides that nothing follows (MuJoCo holds these softly).
"""

from __future__ import annotations

import io
import sys
import time
import warnings
from pathlib import Path

import mujoco
import numpy as np

import robomodel as rm
from robomodel.opentree.errors import percent, worst_joint
from robomodel.opentree.tree import OpenTree, written_tree

STATES = 40
LEAST = 1e-4  # of errors that are compared


def in_mujoco(tree: rm.Model) -> mujoco.MjModel:
    """A tree as MuJoCo reads it, without contacts, limits and passive forces."""
    stream = io.StringIO()
    rm.write_mjcf(tree, stream, meshes="drop", drop=True)
    compiled = mujoco.MjModel.from_xml_string(stream.getvalue())
    for flag in ("CONTACT", "LIMIT", "FRICTIONLOSS", "SPRING", "DAMPER", "EULERDAMP"):
        compiled.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
    return compiled


def measured(tree: OpenTree) -> tuple[dict[str, float], float]:
    """Medians of MuJoCo's errors by joint, and the largest relative one with the correction."""
    compiled, measure = in_mujoco(tree), tree.basis.measures[1]
    mapping, states = tree.basis.on(tree), measure.states
    exact = states.on(mapping)
    names = list(tree.dof_names)
    ids = [mujoco.mj_name2id(compiled, mujoco.mjtObj.mjOBJ_JOINT, n) for n in names]
    if min(ids) < 0 or compiled.neq:
        return {}, np.nan
    at, dofs = compiled.jnt_qposadr[ids], compiled.jnt_dofadr[ids]
    picks = np.linspace(0, len(states.q) - 1, STATES).astype(int)
    correction = rm.correction_force(
        tree.basis.view, states.q[picks], states.v[picks], states.tau[picks], tree=tree,
        backend="numpy",
    )  # fmt: skip
    scale = measure.scales(mapping)[picks]
    data, off, left = mujoco.MjData(compiled), [], 0.0
    for n, pick in enumerate(picks):
        for more in (0.0, correction[n]):
            data.qpos[at], data.qvel[dofs] = exact.t[pick], exact.dt[pick]
            data.qfrc_applied[dofs] = exact.tau[pick] + more
            mujoco.mj_forward(compiled, data)
            wrong = np.abs(data.qacc[dofs] - exact.ddt[pick])
            if np.ndim(more):
                left = max(left, float(np.max(wrong) / np.max(np.abs(exact.ddt[pick]))))
            else:
                off.append(wrong / scale[n])
    medians = np.median(np.array(off), axis=0)
    return dict(zip(names, medians.tolist(), strict=True)), left


def load(name: str) -> rm.Model:
    """A shipped robot, or a file."""
    if name in rm.robots.names():
        return rm.robots.load(name)
    extend = Path(name).with_suffix(".yaml")
    return rm.load(name, extend=str(extend)) if extend.exists() else rm.load(name)


def row(name: str) -> str:
    """A robot's line of the table."""
    model, start = load(name), time.process_time()
    tree = written_tree(model)
    took = time.process_time() - start
    stem = f"| `{Path(name).stem}` | {tree.kind} | {tree.verdict.split(':')[0]} "
    if not tree.errors or tree.kind == "open":
        return f"{stem}|||||{took:.1f} s |"
    joint, error = worst_joint(tree.errors)
    found, left = measured(tree)
    told = f"{stem}| {joint} {percent(error.median)} "
    if not found:
        return f"{told}|||| {took:.1f} s |"
    ratios = [max(found[n] / tree.errors[n].median, tree.errors[n].median / found[n])
              for n in found if min(found[n], tree.errors[n].median) > LEAST]  # fmt: skip
    most = f"{max(ratios):.2f}" if ratios else "–"
    return f"{told}| {percent(max(found.values()))} | {most} | {left:.0e} | {took:.1f} s |"


def main(words: list[str]) -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    heads = "robot", "tree", "verdict", "worst joint", "in MuJoCo", "ratio", "corrected", "time"
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for name in words or [n for n in rm.robots.names() if rm.robots.load(n).loops
                          or rm.robots.load(n).couplings]:  # fmt: skip
        print(row(name), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
