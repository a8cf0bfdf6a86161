"""Published robots with loops: ``python -m benchmarks.real_robots FOLDER [NAME ...]``.

The files are not in this package. FOLDER holds the repositories of ``ROBOTS`` as OWNER/NAME, each
at its commit, as ``git clone https://github.com/OWNER/NAME`` and ``git checkout COMMIT`` leave
them; robots that are not there are left out. ``--list`` prints the repositories. Each robot is
worked on in a process of its own: loaded, drawn, written in four formats and read back, compared
with MuJoCo, validated. Prints the rows of ``docs/real-robots.md``; ``--json`` all numbers.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FORMATS = {"URDF+": ".urdf", "MJCF": ".xml", "SDF": ".sdf", "USD": ".usda"}
STATES = 3  # random ones, for each comparison

COMMITS = {
    "Adriaeik/fusion2URDF": "2044690f",
    "Aastha0311/Five_bar_monoped_optimization": "ee72057f",
    "Gepetto/example-parallel-robots": "52e64b31",
    "Gepetto/example-robot-data": "5.0.0",
    "Rhoban/placo-examples": "3edf600f",
    "andrei-herdt/mujoco_menagerie": "4dbf2392",
    "feidedao/Parallel_Ankle_Joint": "1305e884",
    "hshi74/toddlerbot": "62cee1b2",
    "jeh15/digit_assets": "b5d04f2a",
    "jurmy24/delta-simulation": "0f8b393e",
    "osudrl/cassie-mujoco-sim": "188d3d7f",
    "pal-robotics/pal_mjlab": "a28f7a0f",
    "pollen-robotics/AmazingHand": "4c5cb2f2",
    "pollen-robotics/reachy_mini": "70a7c0b1",
    "rdeits/StrandbeestRobot.jl": "2137db3a",
    "s-ritwik/Gazebo_stewart_platform": "e1d61ef5",
}


@dataclass(frozen=True)
class Robot:
    """A file of a repository, the file beside it that closes its loops, and MuJoCo's if another."""

    name: str
    repository: str
    path: str
    extend: str = ""
    scene: str = ""


def _placo(name: str, path: str) -> Robot:
    return Robot(name, "Rhoban/placo-examples", f"models/{path}")


def _parallel(name: str, file: str = "robot.urdf") -> Robot:
    folder = f"robots/{name}"
    return Robot(
        name, "Gepetto/example-parallel-robots", f"{folder}/{file}", f"{folder}/robot.yaml"
    )


def _toddlerbot(name: str, path: str) -> Robot:
    folder = f"toddlerbot/descriptions/{path}"
    return Robot(name, "hshi74/toddlerbot", f"{folder}.xml", scene=f"{folder}_scene.xml")


def _kangaroo(name: str, path: str) -> Robot:
    return Robot(name, "pal-robotics/pal_mjlab", f"src/pal_mjlab/robots/pal_kangaroo/xmls/{path}")


_MENAGERIE = "andrei-herdt/mujoco_menagerie"
_CASSIE = "robots/cassie_description/robots/"
_REACHY = "src/reachy_mini/descriptions/reachy_mini/"
_FUSION = "examples/Assem1_description/"

ROBOTS = (
    _placo("spherical platform, URDF", "spm/robot.urdf"),
    _placo("spherical platform, MJCF", "spm/robot.xml"),
    _placo("Orbita", "orbita/robot.urdf"),
    _placo("planar five-bar", "planar-2dof/robot.urdf"),
    _toddlerbot("ToddlerBot", "toddlerbot/toddlerbot"),
    _toddlerbot("ToddlerBot, grippers", "toddlerbot_gripper/toddlerbot_gripper"),
    Robot("Reachy Mini, MJCF", "pollen-robotics/reachy_mini", f"{_REACHY}mjcf/reachy_mini.xml"),
    Robot("Reachy Mini, URDF", "pollen-robotics/reachy_mini", f"{_REACHY}urdf/robot.urdf"),
    Robot("Cassie, OSU", "osudrl/cassie-mujoco-sim", "model/cassie.xml"),
    Robot("Cassie, Menagerie", _MENAGERIE, "agility_cassie/cassie.xml"),
    Robot("Cassie, SDF", "Gepetto/example-robot-data", f"{_CASSIE}cassie.sdf"),
    Robot("Cassie v2, SDF", "Gepetto/example-robot-data", f"{_CASSIE}cassie_v2.sdf"),
    Robot("Digit v3", "jeh15/digit_assets", "digit-v3.xml"),
    _kangaroo("Kangaroo", "kangaroo.xml"),
    _kangaroo("Kangaroo, lower body", "kangaroo_lower_body.xml"),
    Robot("G1's ankle", "feidedao/Parallel_Ankle_Joint", "2_g1_ankle/urdf/23urdf311.xml"),
    Robot("Tiangong's ankle", "feidedao/Parallel_Ankle_Joint", "5_tiangong/urdf/TG10-00.xml"),
    Robot("Robotiq 2F-85", _MENAGERIE, "robotiq_2f85/2f85.xml"),
    Robot("xArm 7 with gripper", _MENAGERIE, "ufactory_xarm7/xarm7.xml"),
    Robot("delta robot", "jurmy24/delta-simulation", "simulation/delta-robot/robot.xml"),
    Robot("five-bar monoped", "Aastha0311/Five_bar_monoped_optimization", "xmls/5bar_base.xml"),
    Robot("AmazingHand", "pollen-robotics/AmazingHand",
          "Demo/AHSimulation/AHSimulation/AH_Right/mjcf/robot.xml"),
    Robot("Strandbeest", "rdeits/StrandbeestRobot.jl", "data/Strandbeest.urdf"),
    Robot("arm with four-bar gripper", "Adriaeik/fusion2URDF", f"{_FUSION}urdf/Assem1.urdf",
          f"{_FUSION}robot_data.yaml"),
    _parallel("5bar_linkage"),
    _parallel("5bar_linkage_iso3d"),
    _parallel("5bar_linkage_iso6d"),
    _parallel("battobot_6d"),
    _parallel("cassie_like"),
    _parallel("digit_like"),
    _parallel("digit_like_2legs"),
    _parallel("disney_like"),
    _parallel("disney_robot"),
    _parallel("robot_delta"),
    _parallel("talos_like"),
    _parallel("true_talos_2_legs", "talos_full_v2.urdf"),
    _parallel("kangaroo_like"),
    _parallel("kangaroo_like_2legs"),
    _parallel("wl16_like"),
    Robot("Stewart platform, SDF", "s-ritwik/Gazebo_stewart_platform",
          "models/stewart/stewart_sdf.sdf"),
)  # fmt: skip


# ---- comparisons ---------------------------------------------------------------------------------


def spanning(model: Any, q: Any, v: Any) -> dict[str, tuple[Any, Any, Any]]:
    """Positions, velocities and accelerations of all joints under gravity and no other force."""
    import robomodel as rm

    a = rm.aba(model, q, v, np.zeros(model.nv), backend="numpy")
    G = model.constraint_jacobian(q)
    positions, rates = np.array(model.spanning_positions(q.tolist())), G @ v
    turned = G @ a + model.constraint_bias(q, v)
    return {
        joint.name: (positions[node.positions], rates[node.velocities], turned[node.velocities])
        for joint, node in zip(model.joints, model.nodes, strict=True)
    }


def state_of(model: Any, joints: dict[str, tuple[Any, Any, Any]]) -> tuple[Any, Any]:
    """The q and v at which the joints of a model move as those of another of the same names."""
    q, v = np.zeros(model.nq), np.zeros(model.nv)
    for cluster in model.clusters:
        names = [model.joints[body].name for body in cluster.bodies]
        placed = np.concatenate([joints[_named(name, joints)][0] for name in names])
        rates = np.concatenate([joints[_named(name, joints)][1] for name in names])
        if cluster.kind == "couplings":
            matrix = np.array(cluster.constraint.position_matrix)
            placed = np.linalg.lstsq(matrix, placed - np.array(cluster.constraint.offset))[0]
        q[cluster.q] = placed
        v[cluster.v] = rates[list(cluster.columns)]
    return q, v


def _named(name: str, joints: dict[str, tuple[Any, Any, Any]]) -> str:
    """A joint's name, of a floating base the one that it has there."""
    if name in joints:
        return name
    return next(name for name, (position, _, _) in joints.items() if len(position) == 7)


def round_trip_error(model: Any, other: Any) -> float:
    """How far accelerations of equal states differ, over the largest."""
    if len(other.joints) > len(model.joints):  # loops that became joints and welds
        model, other = other, model
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(STATES):
        mine = spanning(model, model.random_configuration(rng), rng.normal(size=model.nv))
        theirs = spanning(other, *state_of(other, mine))
        size = max(float(np.max(np.abs(a), initial=0.0)) for _, _, a in mine.values())
        for name, (_, _, its) in theirs.items():
            a = mine[_named(name, mine)][2]
            worst = max(worst, float(np.max(np.abs(a - its), initial=0.0)) / size)
    return worst


def mujoco_jacobian(path: Path) -> tuple[Any, Any, Any]:
    """MuJoCo's model of a file and its data; a function of qpos: its equality Jacobian, dense.

    MuJoCo takes frames of bodies, of their inertia and of sites within a micrometre of each other
    for the same, which opens loops by as much: here they stay what the file says.
    """
    import mujoco

    mujoco.set_mju_user_warning(lambda message: None)
    simulated = mujoco.MjModel.from_xml_path(str(path))
    simulated.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    simulated.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    for each in (simulated.body_sameframe, simulated.site_sameframe, simulated.geom_sameframe):
        each[:] = 0
    data = mujoco.MjData(simulated)

    def jacobian(qpos: Any) -> Any:
        data.qpos[:] = qpos
        mujoco.mj_fwdPosition(simulated, data)
        rows = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        return data.efc_J.reshape(-1, simulated.nv)[rows].copy()

    return simulated, data, jacobian


def rates_error(model: Any, path: Path) -> float:
    """How far G is off the null space of MuJoCo's equality Jacobian, over its largest entry."""
    simulated, _, jacobian = mujoco_jacobian(path)
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(STATES):
        q = model.random_configuration(rng)
        columns = [model.to_order("mujoco", q, v, joints=simulated) for v in np.eye(model.nv)]
        G = np.array([qvel for _, qvel, *_ in columns]).T
        J = jacobian(columns[0][0])
        Z = np.linalg.svd(J)[2][simulated.nv - model.nv :].T if J.size else np.eye(simulated.nv)
        worst = max(worst, float(np.max(np.abs(G - Z @ (Z.T @ G))) / np.max(np.abs(G))))
    return worst


def mujoco_error(model: Any, path: Path) -> float:
    """How far accelerations differ from those by MuJoCo's M, bias and equality Jacobian.

    Constraints are exact: the rows that the mobility leaves, with J̇ v by differences of fourth
    order along the motion; solved on the null space of J.
    """
    import mujoco

    import robomodel as rm

    simulated, data, jacobian = mujoco_jacobian(path)
    rng, worst, h = np.random.default_rng(0), 0.0, 1e-3
    for _ in range(STATES):
        q, v = model.random_configuration(rng), 0.3 * rng.normal(size=model.nv)
        a = rm.aba(model, q, v, np.zeros(model.nv), backend="numpy")
        qpos, qvel, mine = model.to_order("mujoco", q, v, a=a, joints=simulated)
        change = np.zeros((0, simulated.nv))
        if (J := jacobian(qpos)).size:
            moved = []
            for step in (-2, -1, 1, 2):
                near = qpos.copy()
                mujoco.mj_integratePos(simulated, near, qvel, step * h)
                moved.append(jacobian(near))
            change = (moved[0] - 8 * moved[1] + 8 * moved[2] - moved[3]) / (12 * h)
        data.qpos[:], data.qvel[:] = qpos, qvel
        mujoco.mj_forward(simulated, data)
        M = np.zeros((simulated.nv, simulated.nv))
        mujoco.mj_fullM(simulated, data, M)
        rank = simulated.nv - model.nv
        U, S, Vt = np.linalg.svd(J) if J.size else (np.eye(0), np.zeros(0), np.eye(simulated.nv))
        along = -(U[:, :rank].T @ (change @ qvel)) / S[:rank]
        particular = Vt[:rank].T @ along
        Z = Vt[rank:].T
        free = np.linalg.solve(Z.T @ M @ Z, -Z.T @ (data.qfrc_bias + M @ particular))
        its = particular + Z @ free
        worst = max(worst, float(np.max(np.abs(mine - its)) / np.max(np.abs(its))))
    return worst


# ---- one robot -----------------------------------------------------------------------------------


def examine(robot: Robot, folder: Path) -> dict[str, Any]:
    """All numbers of a robot."""
    import robomodel as rm

    path = folder / robot.repository / robot.path
    extend = folder / robot.repository / robot.extend if robot.extend else None
    result: dict[str, Any] = {"robot": robot.name, "repository": robot.repository}
    result["path"] = robot.path
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = rm.load(path, extend=extend)
        except rm.DescriptionError as error:
            return result | {"refused": str(error).replace(str(folder), "")}
    result["load_s"] = time.process_time() - start
    result["warnings"] = [str(each.message).replace(str(folder), "") for each in caught]
    result["notes"] = list(model.notes)
    base = 6 if model.floating_base else 0
    spins = len(rm.load(path, extend=extend, spins="locked").dof_names)
    result |= {
        "motors": len(model.actuators),
        "freedoms": model.nv - base,
        "base": base,
        "spins": model.nv - spins,
        "joints": len(model.joints),
    }
    rng = np.random.default_rng(1)
    drawn = [model.random_configuration(rng) for _ in range(8)]
    result["open"] = max(float(np.max(np.abs(model.residual(q)), initial=0.0)) for q in drawn)
    with tempfile.TemporaryDirectory() as place:
        for name, ending in FORMATS.items():
            result[name] = _tried(_round_trip, model, Path(place) / f"robot{ending}")
        result["MuJoCo, its file"] = "no file"
        if path.suffix == ".xml":
            scene = folder / robot.repository / robot.scene if robot.scene else path
            result["MuJoCo, its file"] = _tried(mujoco_error, model, scene)
            result["G"] = _tried(rates_error, model, scene)
        result["MuJoCo"] = result["MuJoCo, its file"]
        result["mended"] = any("is rounded" in each for each in result["warnings"])
        if result["mended"] or not isinstance(result["MuJoCo"], float):  # or meshes are missing
            written = Path(place) / "robot.xml"
            result["MuJoCo"] = _tried(lambda: mujoco_error(rm.load(written), written))
            result["G"] = _tried(lambda: rates_error(rm.load(written), written))
    start = time.process_time()
    report = rm.validate(model)
    result["validate_s"] = time.process_time() - start
    result["findings"] = [
        f"{each.severity} {each.check}: {each.source.element}: {each.message}"
        for each in report.findings
    ]
    counts = Counter(f"{each.severity} {each.check}" for each in report.findings)
    result["counts"] = dict(counts)
    return result


def _round_trip(model: Any, path: Path) -> float:
    import robomodel as rm

    writers = {".urdf": rm.write_urdf, ".xml": rm.write_mjcf, ".sdf": rm.write_sdf,
               ".usda": rm.write_usd}  # fmt: skip
    writers[path.suffix](model, path, meshes="drop")
    return round_trip_error(model, rm.load(path))


def _tried(work: Any, *arguments: Any) -> float | str:
    """A number, or why there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return float(work(*arguments))
        except Exception as error:
            if "--trace" in sys.argv:
                traceback.print_exc()
            return f"{type(error).__name__}: {error}"[:300]


def _work(robot: Robot, folder: Path, pipe: Any) -> None:
    with tempfile.TemporaryDirectory() as cache:
        os.environ["ROBOMODEL_CACHE"] = cache
        try:
            pipe.send(examine(robot, folder))
        except Exception as error:
            traceback.print_exc()
            pipe.send({"robot": robot.name, "crashed": f"{type(error).__name__}: {error}"})


def examined(robot: Robot, folder: Path, limit: float) -> dict[str, Any]:
    """All numbers of a robot, from a process of its own."""
    context = multiprocessing.get_context("spawn")
    mine, its = context.Pipe()
    process = context.Process(target=_work, args=(robot, folder, its), daemon=True)
    process.start()
    its.close()
    try:
        result: dict[str, Any] = (
            mine.recv() if mine.poll(limit) else {"robot": robot.name, "crashed": "took too long"}
        )
    except EOFError:
        result = {"robot": robot.name, "crashed": "the process ended"}
    process.kill()
    process.join()
    return result


# ---- the page's rows -----------------------------------------------------------------------------


def row(result: dict[str, Any]) -> str:
    """A row of the page's table."""
    if why := result.get("refused") or result.get("crashed"):
        return f"| {result['robot']} | refused: {why} |"

    def number(value: object) -> str:
        if not isinstance(value, float):
            return "—"
        return f"{value:.0e}".replace("e-0", "e-") if value else "0"

    base = " + base" if result["base"] else ""
    spins = f", {result['spins']} spins" if result["spins"] else ""
    trips = [result[name] for name in FORMATS]
    source = f"{result['repository']} {COMMITS[result['repository']]} `{result['path']}`"
    words = [
        str(result["robot"]), source,
        f"{result['motors'] or '—'} / {result['freedoms']}{base}{spins}",
        number(result["open"]),
        *map(number, trips),
        number(result["MuJoCo"]) + (" (mended)" if result["mended"] else ""),
        f"{result['validate_s']:.1f} s",
        ", ".join(f"{n} {name.split()[1]}" for name, n in result["counts"].items()
                  if not name.startswith("note")),
    ]  # fmt: skip
    return f"| {' | '.join(words)} |"


def main() -> None:
    """Examine the robots and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the repositories are, as OWNER/NAME")
    parser.add_argument("names", nargs="*", help="robots whose names have these words; else all")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for a robot")
    parser.add_argument("--list", action="store_true", help="print repositories and commits")
    parser.add_argument("--json", type=Path, help="a file for all numbers")
    parser.add_argument("--trace", action="store_true", help="print tracebacks of what fails")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"https://github.com/{name} {commit}" for name, commit in COMMITS.items()))
        return
    results = []
    for robot in ROBOTS:
        there = (options.folder / robot.repository / robot.path).exists()
        if there and (not options.names or any(name in robot.name for name in options.names)):
            results.append(examined(robot, options.folder.resolve(), options.limit))
            print(row(results[-1]), flush=True)
            if options.json:
                options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
