"""Open trees in MuJoCo beside the exact robot: accelerations, torques, a second of PD motion.

    python -m benchmarks.open_trees [ROBOT…] [--page PAGE.html]

Robots are shipped ones by name, or files (a URDF with the loops of a robot.yaml beside it, too).
Methods, on the same joints:

- armature: links as they are, with what is locked part of what carries it, and armature of joints;
- tendons: the same with the reflected inertia between joints of a chain;
- tree: what ``write_mjcf(approximate=True)`` writes, and with ``correction_force``.

States are random within the range of the tree that is written. Errors of accelerations are
‖â - a‖ of the tree's joints in the norm of the robot's inertia, of torques ‖τ̂ - τ‖, over the root
mean square of the exact value, median and worst. Motions are MuJoCo's with steps of 0.5 ms, of the
law of :class:`robomodel.reports.simulators.PdLaw` at 12 rad/s and damping 0.7.
"""

from __future__ import annotations

import io
import sys
import warnings
from pathlib import Path

import mujoco
import numpy as np

import robomodel as rm
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.dynamics.tree_map import mapped
from robomodel.opentree.fit import exact_states, on_arrays
from robomodel.opentree.tree import TreeOptions, WrittenTree, written_tree
from robomodel.reports.document import Document, Section
from robomodel.reports.plots import Line, Plot
from robomodel.reports.simulators import PdLaw, natural_gains, tree_sections

ROBOTS = ("planar_leg_linkage", "parallel_ankle", "four_bar", "crank_rocker", "six_bar", "five_bar",
          "belt_leg", "mit_humanoid_leg", "teleop_arm", "mini_cheetah", "tello")  # fmt: skip
METHODS = {
    "armature": TreeOptions(fit="lumped", tendons=False),
    "tendons": TreeOptions(fit="lumped"),
    "tree": TreeOptions(),
}
GAINS = (12.0, 0.7)
STEP = 5e-4


def in_mujoco(tree: rm.Model) -> mujoco.MjModel:
    """A tree as MuJoCo reads it, without contacts, limits and passive forces."""
    stream = io.StringIO()
    rm.write_mjcf(tree, stream, meshes="drop", drop=True)
    compiled = mujoco.MjModel.from_xml_string(stream.getvalue())
    for flag in ("CONTACT", "LIMIT", "FRICTIONLOSS", "SPRING", "DAMPER", "EULERDAMP"):
        compiled.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
    compiled.opt.timestep = STEP
    compiled.eq_solref[:] = (4 * STEP, 1.0)  # followers: as stiff as the step allows
    compiled.eq_solimp[:, :2] = 0.9999
    return compiled


def placed(made: WrittenTree, compiled: mujoco.MjModel) -> mujoco.MjData:
    """Data with the robot at neutral."""
    data, view = mujoco.MjData(compiled), made.view
    start = view.neutral()
    for name, x in view.joint_positions(start).items():
        joint = mujoco.mj_name2id(compiled, mujoco.mjtObj.mjOBJ_JOINT, name)
        if joint >= 0 and np.ndim(x) == 0:
            data.qpos[compiled.jnt_qposadr[joint]] = x
    if view.floating_base:
        data.qpos[:7] = start[[0, 1, 2, 6, 3, 4, 5]]
    return data


def motion(made: WrittenTree, law: PdLaw) -> np.ndarray:
    """Positions (steps, joints of one freedom) of the law's joints in MuJoCo."""
    compiled = in_mujoco(made.model)
    data, on = placed(made, compiled), np.flatnonzero(law.single)
    ids = [mujoco.mj_name2id(compiled, mujoco.mjtObj.mjOBJ_JOINT, law.names[i]) for i in on]
    at, dofs = compiled.jnt_qposadr[ids], compiled.jnt_dofadr[ids]
    path = []
    for _ in range(round(1.0 / STEP)):
        x, dx = np.zeros((2, len(law.names)))
        x[on], dx[on] = data.qpos[at], data.qvel[dofs]
        path.append(x[on])
        data.qfrc_applied[dofs] = law.force(x, dx)[on]
        mujoco.mj_step(compiled, data)
    return np.array(path)


def corrected(made: WrittenTree) -> np.ndarray:
    """Errors of MuJoCo's accelerations with the correction, of trees of hinges and slides."""
    compiled, tree = in_mujoco(made.model), made.model
    mapping = mapped(made.view, tree, "tendons", ())
    states = exact_states(made.view, mapping, made.clusters, check=True)
    exact = states.on(mapping)
    ids = [mujoco.mj_name2id(compiled, mujoco.mjtObj.mjOBJ_JOINT, n) for n in tree.dof_names]
    if min(ids) < 0 or compiled.neq:
        return np.array([np.nan])
    at, dofs = compiled.jnt_qposadr[ids], compiled.jnt_dofadr[ids]
    data, result = mujoco.MjData(compiled), []
    force = rm.correction_force(made.view, states.q, states.v, states.tau, tree=tree,
                                backend="numpy")  # fmt: skip
    for n in range(len(exact.t)):
        data.qpos[at], data.qvel[dofs] = exact.t[n], exact.dt[n]
        data.qfrc_applied[dofs] = exact.tau[n] + force[n]
        mujoco.mj_forward(compiled, data)
        wrong = np.linalg.norm(data.qacc[dofs] - exact.ddt[n])
        result.append(wrong / np.linalg.norm(exact.ddt[n]))
    return np.array(result)


def torques(made: WrittenTree, clusters: WrittenTree) -> np.ndarray:
    """Errors of inverse dynamics over the range of the tree that is written."""
    mapping = mapped(made.view, made.model, "tendons", ())
    exact = exact_states(made.view, mapping, clusters.clusters, check=True).on(mapping)
    tau = on_arrays(rnea, made.model, exact.t, exact.dt, exact.ddt)
    size = np.sqrt(np.mean(np.sum(exact.tau**2, axis=1)))
    return np.linalg.norm(tau - exact.tau, axis=1) / size


def accelerations(made: WrittenTree, clusters: WrittenTree) -> tuple[float, float]:
    """Median and worst error over the range of the tree that is written."""
    from robomodel.opentree.fit import tree_errors

    mapping = mapped(made.view, made.model, "tendons", ())
    states = exact_states(made.view, mapping, clusters.clusters, check=True)
    error = tree_errors(made.model, states.on(mapping)).acceleration
    return error.median, error.worst


def load(name: str) -> rm.Model:
    """A shipped robot, or a file."""
    if name in rm.robots.names():
        return rm.robots.load(name)
    extend = Path(name).with_suffix(".yaml")
    return rm.load(name, extend=str(extend)) if extend.exists() else rm.load(name)


def pair(median: float, worst: float) -> str:
    """In percent."""
    return f"{100 * median:.2g} / {100 * worst:.2g}"


def row(name: str) -> tuple[str, list[Section]]:
    """A robot's line of the table, and its part of the page."""
    model = load(name)
    made = {method: written_tree(model, options) for method, options in METHODS.items()}
    tree = made["tree"]
    if tree.errors is None:
        return f"| `{Path(name).stem}` | a tree |" + " |" * 8, []
    gains = natural_gains(tree, *GAINS)
    law = PdLaw.of(tree, gains)
    time, robot = law.in_robot(tree, STEP)
    robot = robot[:, law.single]
    paths = {method: motion(each, law) for method, each in made.items()}
    cells = [pair(*accelerations(each, tree)) for each in made.values()]
    fixed = corrected(tree)
    cells.append("–" if np.isnan(fixed).any() else f"{np.max(fixed):.0e}")
    cells += [pair(np.median(e), np.max(e)) for e in (torques(x, tree) for x in made.values())]
    moved = [f"{1e3 * np.max(np.abs(path - robot)):.2g}" for path in paths.values()]
    cells.append(" / ".join(moved) + f" of {1e3 * np.max(np.abs(robot - robot[0])):.0f}")
    names = [n for n, one in zip(law.names, law.single, strict=True) if one]
    plots = [
        Plot(f"{name}: {joint}", "time [s]", "position [rad or m]",
             [Line("robot", time, robot[:, i]),
              *(Line(method, time, path[:, i]) for method, path in paths.items())],
             f"{Path(name).stem}_{joint}")
        for i, joint in enumerate(names)
    ]  # fmt: skip
    stem = Path(name).stem
    sections = [
        Section(f"{stem}: a second of PD motion", plots, on_page=True),
        *tree_sections(tree),
    ]
    return f"| `{stem}` | {' | '.join(cells)} |", sections


def main(words: list[str]) -> None:
    """Print the table; write the page."""
    warnings.simplefilter("ignore")
    page = words.pop(words.index("--page") + 1) if "--page" in words else None
    names = [word for word in words if word != "--page"] or list(ROBOTS)
    heads = [f"accelerations: {method}" for method in (*METHODS, "tree, corrected")]
    heads += [f"torques: {method}" for method in METHODS] + ["PD motion [mrad, mm]"]
    print(f"| robot | {' | '.join(heads)} |")
    print("|---" * (len(heads) + 1) + "|")
    sections = []
    for name in names:
        line, parts = row(name)
        print(line, flush=True)
        sections += parts
    if page:
        summary = "open trees beside the exact robots"
        document = Document("Open trees", summary, sections, {}, "", "open_trees")
        Path(page).write_text(document.html(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
