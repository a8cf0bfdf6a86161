"""Open trees in MuJoCo beside the exact robot: accelerations by method, and a second of PD motion.

    python -m benchmarks.open_trees [ROBOT…]

Robots are shipped ones by name, or files. States are random within the range of the tree that is
written; errors are ‖â - a‖ / ‖a‖ of the tree's hinges, median and worst.
"""

from __future__ import annotations

import io
import sys
import warnings

import mujoco
import numpy as np

import robomodel as rm
from robomodel.dynamics.approximation import Fit, WrittenTree, written_tree
from robomodel.dynamics.open_trees import mapped
from robomodel.dynamics.tree_fit import exact_states
from robomodel.reports.simulators import motion_errors

ROBOTS = ("planar_leg_linkage", "parallel_ankle", "belt_leg", "mit_humanoid_leg", "six_bar",
          "crank_rocker", "teleop_arm")  # fmt: skip
GAINS = (12.0, 0.7)


def in_mujoco(model: rm.Model, fit: Fit) -> tuple[mujoco.MjModel, rm.Model]:
    """A tree without followers as MuJoCo reads it, without contacts and passive forces."""
    stream = io.StringIO()
    rm.write_mjcf(model, stream, approximate=True, fit=fit, followers=False, meshes="drop")
    compiled = mujoco.MjModel.from_xml_string(stream.getvalue())
    for flag in ("CONTACT", "LIMIT", "FRICTIONLOSS", "SPRING", "DAMPER"):
        compiled.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
    return compiled, rm.approximate_tree(model, fit=fit, followers=False)


def errors(model: rm.Model, made: WrittenTree, fit: Fit, *, correct: bool) -> np.ndarray:
    """Of MuJoCo's accelerations at states of the tree's range."""
    compiled, tree = in_mujoco(model, fit)
    mapping = mapped(made.view, tree, "tendons", ())
    states = exact_states(made.view, mapping, made.clusters, check=True)
    exact = states.on(mapping)
    ids = [mujoco.mj_name2id(compiled, mujoco.mjtObj.mjOBJ_JOINT, n) for n in tree.dof_names]
    at, dofs = compiled.jnt_qposadr[ids], compiled.jnt_dofadr[ids]
    data, result = mujoco.MjData(compiled), []
    corrections = rm.correction_force(made.view, states.q, states.v, states.tau, tree=tree,
                                      backend="numpy")  # fmt: skip
    for n in range(len(exact.t)):
        data.qpos[at], data.qvel[dofs] = exact.t[n], exact.dt[n]
        data.qfrc_applied[dofs] = exact.tau[n] + (corrections[n] if correct else 0.0)
        mujoco.mj_forward(compiled, data)
        wrong = np.linalg.norm(data.qacc[dofs] - exact.ddt[n])
        result.append(wrong / np.linalg.norm(exact.ddt[n]))
    return np.array(result)


def main(names: list[str]) -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print("| robot | lumped | written | with the correction | a second of PD motion |")
    print("|---|---|---|---|---|")
    for name in names or ROBOTS:
        model = rm.robots.load(name) if name in rm.robots.names() else rm.load(name)
        made = written_tree(model)
        cells = []
        methods: tuple[tuple[Fit, bool], ...] = (
            ("lumped", False),
            ("range", False),
            ("range", True),
        )
        for fit, correct in methods:
            e = errors(model, made, fit, correct=correct)
            cells.append(f"{100 * np.median(e):.2g} % / {100 * np.max(e):.2g} %")
        moved = max(motion_errors(made, GAINS).values())
        print(f"| `{name}` | {' | '.join(cells)} | {1e3 * moved:.2g} mrad |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
