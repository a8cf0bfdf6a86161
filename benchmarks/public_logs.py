"""Held-out prediction on logs of real arms, beside FIGAROH and the published model.

    python -m benchmarks.public_logs [--folder FOLDER]

fetches a log of a Stäubli TX40 with a coupled wrist (figaroh-examples) and one of a Franka Panda
(Gaz et al., Dynamic identification of the Franka Emika Panda robot, RA-L 2019) into the folder, by
default a temporary one. Motions and forces are filtered without lag and sampled at 200 Hz; the
first two thirds are fitted, the last third is predicted, and compared but for a quarter of a second
at both ends, where forces that come late are not known. FIGAROH's rows appear if it can be
imported (``pip install figaroh pandas``), the one of MuJoCo's toolbox (``pip install
"mujoco[sysid]"``) with ``--sysid ROUNDS``, of which each takes a minute.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from math import pi
from pathlib import Path
from typing import Any

import numpy as np
from scipy import signal

import robomodel as rm
from robomodel.arrays import Array
from robomodel.identification import Log, predicted, read_log

RAW = "https://raw.githubusercontent.com"
FIGAROH = f"{RAW}/thanhndv212/figaroh-examples/c0b5c7f0fda10078be55104f9ee76ac106b7a5ee"
GAZ = f"{RAW}/marcocognetti/FrankaEmikaPandaDynModel/24d85ce4e648e2e894c832bfeee9b16711eb1a1a"
FILES = {
    "curr_data.csv": f"{FIGAROH}/examples/staubli_TX40/data",
    "pos_read_data.csv": f"{FIGAROH}/examples/staubli_TX40/data",
    "tx40_mdh_modified.urdf": f"{FIGAROH}/examples/staubli_TX40/urdf",
    **{
        f"exciting_traj_{name}.txt": f"{GAZ}/matlab/data/Exciting_Traj/Trajectory_1/rbt_log"
        for name in ("positions", "torques", "time")
    },
    "franka_model.h": f"{GAZ}/cpp/panda_dyn_model_example/include",
}
RATE = 200  # Hz of the samples that are fitted
INNER = slice(RATE // 4, -RATE // 4)  # samples that are compared

WINDOW = 100  # samples of a motion that MuJoCo's toolbox compares
SYSID_LOSSES = (("damping", 0.5, 20.0), ("frictionloss", 0.5, 20.0), ("armature", 0.05, 2.0))
"""What MuJoCo's toolbox fits of each joint: first value and largest one."""

TX40_RATIOS = (32.0, 32.0, 45.0, -48.0, 45.0, 32.0)
TX40_INERTIAS = (0.362, 0.362, 0.0988, 0.0313, 0.0468)  # of motors at their joints [kg m²]
TX40_MOVES = 7.8  # s: after that the arm stands still
TX40_WRIST = """
  <link name="rotor_6"><inertial><mass value="0.1"/>
    <inertia ixx="1e-5" iyy="1e-5" izz="1e-5" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="motor_6" type="continuous"><parent link="link_4"/><child link="rotor_6"/>
    <axis xyz="0 0 1"/><dynamics damping="6e-4" friction="0.06"/></joint>
  <coupling name="wrist"><predecessor link="link_6"/><successor link="rotor_6"/>
    <ratio value="32"/></coupling>
"""
"""The motor of joint 6 stands in the forearm: joint 5 turns it, too."""

PANDA_DH = (  # a [m], d [m], alpha [rad]: modified Denavit-Hartenberg parameters
    (0.0, 0.333, 0.0), (0.0, 0.0, -pi / 2), (0.0, 0.316, pi / 2), (0.0825, 0.0, pi / 2),
    (-0.0825, 0.384, -pi / 2), (0.0, 0.0, pi / 2), (0.088, 0.0, pi / 2),
)  # fmt: skip
PANDA_LINKS = (  # published: mass [kg], centre of mass [m], Ixx Iyy Izz Ixy Ixz Iyz there [kg m²]
    (4.970684, (3.875e-3, 2.081e-3, -4.762e-2),
     (7.0337e-1, 7.0661e-1, 9.117e-3, -1.39e-4, 6.772e-3, 1.9169e-2)),
    (0.646926, (-3.141e-3, -2.872e-2, 3.495e-3),
     (7.962e-3, 2.811e-2, 2.5995e-2, -3.925e-3, 1.0254e-2, 7.04e-4)),
    (3.228604, (2.7518e-2, 3.9252e-2, -6.6502e-2),
     (3.7242e-2, 3.6155e-2, 1.083e-2, -4.761e-3, -1.1396e-2, -1.2805e-2)),
    (3.587895, (-5.317e-2, 1.04419e-1, 2.7454e-2),
     (2.5853e-2, 1.9552e-2, 2.8323e-2, 7.796e-3, -1.332e-3, 8.641e-3)),
    (1.225946, (-1.1953e-2, 4.1065e-2, -3.8437e-2),
     (3.5549e-2, 2.9474e-2, 8.627e-3, -2.117e-3, -4.037e-3, 2.29e-4)),
    (1.666555, (6.0149e-2, -1.4117e-2, -1.0517e-2),
     (1.964e-3, 4.354e-3, 5.433e-3, 1.09e-4, -1.158e-3, 3.41e-4)),
    (0.735522, (1.0517e-2, -4.252e-3, 6.1597e-2),
     (1.2516e-2, 1.0027e-2, 4.815e-3, -4.28e-4, -1.196e-3, -7.41e-4)),
)  # fmt: skip


@dataclass(frozen=True)
class Arm:
    """A robot with its log: q, v, a and tau (T, n) at ``RATE``, to fit and to predict."""

    name: str
    text: str
    extensions: tuple[str, ...]
    fit: dict[str, Array]
    held: dict[str, Array]
    wrist: bool

    @property
    def model(self) -> rm.Model:
        """The robot."""
        return rm.load(self.text, extend=list(self.extensions))

    def log(self, part: dict[str, Array]) -> Log:
        """The samples as a log."""
        columns = {"time": np.arange(len(part["q"])) / RATE}
        for i, name in enumerate(self.model.dof_names):
            columns |= {f"{kind}.{name}": x[:, i] for kind, x in part.items()}
        return read_log(self.model, columns)


def fetched(folder: Path) -> Path:
    """The folder, with all files in it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, place in FILES.items():
        if not (folder / name).exists():
            urllib.request.urlretrieve(f"{place}/{name}", folder / name)
    return folder


def sampled(q: Array, tau: Array, step: float, cutoff: float) -> Iterator[dict[str, Array]]:
    """Filtered q, v, a and tau at ``RATE``: two thirds of the samples, then the last third."""
    sections = signal.butter(4, cutoff, fs=1.0 / step, output="sos")
    smooth = signal.sosfiltfilt(sections, q, axis=0)
    v = np.gradient(smooth, step, axis=0)
    signals = (smooth, v, np.gradient(v, step, axis=0), signal.sosfiltfilt(sections, tau, axis=0))
    every = round(1.0 / (RATE * step))
    x = dict(zip(("q", "v", "a", "tau"), (y[every:-every:every] for y in signals), strict=True))
    last = 2 * len(x["q"]) // 3
    for part in (slice(0, last), slice(last, None)):
        yield {kind: y[part] for kind, y in x.items()}


def tx40(folder: Path) -> Arm:
    """The Stäubli TX40: motors' positions and torques at 5 kHz."""
    motors, forces = (
        np.loadtxt(folder / name, delimiter=",", skiprows=1)
        for name in ("pos_read_data.csv", "curr_data.csv")
    )
    gears = np.diag(TX40_RATIOS)
    gears[5, 4] = TX40_RATIOS[5]
    q = motors @ np.linalg.inv(gears).T + [0.0, -pi / 2, pi / 2, 0.0, 0.0, 0.0]
    moving = slice(0, round(TX40_MOVES / 2e-4))
    fit, held = sampled(q[moving], (forces @ gears)[moving], 2e-4, 30.0)
    losses = '<dynamics damping="1" friction="1"/>'
    rotors = "".join(
        f'<joint name="joint_{i}"><rotor inertia="{inertia / ratio**2}" ratio="{ratio}"/>'
        f"{losses}</joint>"
        for i, (inertia, ratio) in enumerate(zip(TX40_INERTIAS, TX40_RATIOS, strict=False), 1)
    )
    drives = f'<robot name="d">{rotors}<joint name="joint_6">{losses}</joint>{TX40_WRIST}</robot>'
    text = (folder / "tx40_mdh_modified.urdf").read_text("utf-8")
    text = re.sub(r"<(visual|collision)>.*?</\1>", "", text, flags=re.DOTALL)  # no meshes here
    return Arm("Stäubli TX40", text, (drives,), fit, held, wrist=True)


def panda(folder: Path) -> Arm:
    """The Franka Panda: positions and torques at the links, at about 1 kHz."""
    q, tau, times = (
        np.loadtxt(folder / f"exciting_traj_{name}.txt")
        for name in ("positions", "torques", "time")
    )
    even = np.arange(0.0, times[-1], 1e-3)
    q, tau = (
        np.array([np.interp(even, times, column) for column in x.reshape(-1, 7).T]).T
        for x in (q, tau)
    )
    text = '<robot name="panda"><link name="link0"/>'
    for i, ((a, d, turn), (mass, at, tensor)) in enumerate(
        zip(PANDA_DH, PANDA_LINKS, strict=True), 1
    ):
        moments = " ".join(
            f'{n}="{x}"'
            for n, x in zip(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), tensor, strict=True)
        )
        text += (
            f'<link name="link{i}"><inertial><origin xyz="{at[0]} {at[1]} {at[2]}"/>'
            f'<mass value="{mass}"/><inertia {moments}/></inertial></link>'
            f'<joint name="joint{i}" type="revolute">'
            f'<origin xyz="{a} {-np.sin(turn) * d:.9g} {np.cos(turn) * d:.9g}" rpy="{turn} 0 0"/>'
            f'<parent link="link{i - 1}"/><child link="link{i}"/><axis xyz="0 0 1"/>'
            '<limit lower="-6" upper="6" effort="100" velocity="3"/>'
            '<dynamics damping="0.5" friction="0.5"/></joint>'
        )
    fit, held = sampled(q, tau, 1e-3, 15.0)
    return Arm("Franka Panda", f"{text}</robot>", (), fit, held, wrist=False)


def published(arm: Arm, folder: Path) -> Array:
    """Errors of the Panda's published model, friction included (T, 7)."""
    header = (folder / "franka_model.h").read_text("utf-8")
    given = dict(re.findall(r"FI_(\d\d)\s*=\s*([-\d.e]+)", header))
    one, two, three = (
        np.array([float(given[f"{k}{joint}"]) for joint in range(1, 8)]) for k in (1, 2, 3)
    )
    q, v, a, tau = (arm.held[kind] for kind in ("q", "v", "a", "tau"))
    friction = one / (1.0 + np.exp(-two * (v + three))) - one / (1.0 + np.exp(-two * three))
    return np.asarray(rm.rnea(arm.model, q, v, a) + friction - tau)


def figaroh(arm: Arm, folder: Path, weighted: bool) -> tuple[Array, float]:
    """Errors (T, n) of FIGAROH's base parameters, and the smallest inertia of a motor among them.

    Friction, inertias of motors and offsets of all joints; ``weighted``: coordinates by their
    residuals, three times.
    """
    pin = import_module("pinocchio")
    tools, base_of = (
        import_module("figaroh.tools.regressor"),
        import_module("figaroh.tools.qrdecomposition"),
    )
    path = folder / "arm.urdf"
    path.write_text(arm.text, "utf-8")
    robot = type("Robot", (), {})()
    robot.model = pin.buildModelFromUrdf(str(path))
    robot.data = robot.model.createData()
    n = robot.model.nv
    options = {
        "has_friction": True, "has_actuator_inertia": True, "has_joint_offset": True,
        "is_joint_torques": True, "is_external_wrench": False, "force_torque": None,
        "act_idxv": list(range(n)),
    }  # fmt: skip

    def regressor(part: dict[str, Array]) -> Array:
        q, v, a = (part[kind] for kind in ("q", "v", "a"))
        rows = np.asarray(tools.build_regressor_basic(robot, q, v, a, options))
        if not arm.wrist:
            return rows
        both = np.zeros((n, len(q), 3))  # the motor of joint 6, turned by joints 5 and 6
        for i, other in ((4, 5), (5, 4)):
            both[i] = np.stack([a[:, other], v[:, other], np.sign(v[:, 4] + v[:, 5])], axis=1)
        return np.hstack([rows, both.reshape(-1, 3)])

    known, new = regressor(arm.fit), regressor(arm.held)
    names = {str(i): 0.0 for i in range(known.shape[1])}
    gone, kept = tools.get_index_eliminate(known, names, 1e-3)
    base = np.array([int(x) for x in kept])[
        list(base_of.get_baseIndex(np.delete(known, gone, 1), kept))
    ]
    forces = arm.fit["tau"].T.ravel()
    found = np.linalg.lstsq(known[:, base], forces, rcond=None)[0]
    for _ in range(3 if weighted else 0):
        error = (forces - known[:, base] @ found).reshape(n, -1)
        weight = np.repeat(1.0 / np.sqrt(np.mean(error**2, axis=1)), error.shape[1])
        rows = known[:, base] * weight[:, None]
        found = np.linalg.lstsq(rows, forces * weight, rcond=None)[0]
    motors = (base >= 12 * n) & (base < 13 * n)
    error = arm.held["tau"] - (new[:, base] @ found).reshape(n, -1).T
    return error, float(np.min(found[motors], initial=np.inf))


def sysid(arm: Arm, folder: Path, rounds: int) -> Array:
    """Errors (T, n) of a fit by mujoco.sysid.

    Inertias, armature, damping and dry friction, found by what motions of ``WINDOW`` samples from
    measured states under measured forces say of positions and velocities.
    """
    mujoco, toolbox = import_module("mujoco"), import_module("mujoco.sysid")
    path = folder / "arm.xml"
    rm.write_mjcf(arm.model, path)
    spec, names = mujoco.MjSpec.from_file(str(path)), arm.model.dof_names
    spec.option.timestep = 1.0 / RATE
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    for each in list(spec.actuators):
        spec.delete(each)
    for joint in spec.joints:
        joint.actfrclimited = False
    motor, hinge = mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtObj.mjOBJ_JOINT
    for name in names:
        spec.add_actuator(name=name, target=name, trntype=motor)
    sensors = mujoco.mjtSensor.mjSENS_JOINTPOS, mujoco.mjtSensor.mjSENS_JOINTVEL
    for kind, sensor in zip("qv", sensors, strict=True):
        for name in names:
            spec.add_sensor(name=f"{kind}.{name}", type=sensor, objtype=hinge, objname=name)
    model = spec.compile()

    def inertia(spec: Any, parameter: Any) -> None:
        body = parameter.name.removesuffix("_inertia")
        toolbox.apply_body_inertia(spec, body, parameter)
        spec.body(body).iquat = (1.0, 0.0, 0.0, 0.0)  # NaN is refused by MuJoCo 4.0.0

    def loss(spec: Any, parameter: Any) -> None:
        kind, name = parameter.name.split(".")
        joint = spec.joint(name)
        value = parameter.value[0]
        setattr(joint, kind, [value, 0.0, 0.0] if np.size(getattr(joint, kind)) > 1 else value)

    unknown = toolbox.ParameterDict()
    for joint in spec.joints:
        body, pseudo = joint.parent.name, toolbox.InertiaType.Pseudo
        unknown.add(toolbox.body_inertia_param(spec, model, body, pseudo, modifier=inertia))
        for kind, start, most in SYSID_LOSSES:
            name = f"{kind}.{joint.name}"
            unknown.add(toolbox.Parameter(name, start, 0.0, most, modifier=loss))
    measured = np.hstack([arm.fit["q"], arm.fit["v"]])
    starts = range(0, len(measured) - WINDOW, WINDOW)
    parts = [slice(start, start + WINDOW) for start in starts]
    time, series = np.arange(WINDOW) / RATE, toolbox.TimeSeries
    sequences = toolbox.ModelSequences(
        arm.name, spec, [str(start) for start in starts],
        [toolbox.create_initial_state(model, arm.fit["q"][i], arm.fit["v"][i]) for i in starts],
        [series.from_control_names(time, arm.fit["tau"][part], model, names) for part in parts],
        [series.from_names(time, measured[part], model) for part in parts],
    )  # fmt: skip
    sensed = [sensor.name for sensor in spec.sensors]
    weights = dict(zip(sensed, 1.0 / np.std(measured, axis=0), strict=True))
    residual = toolbox.build_residual_fn(models_sequences=[sequences], sensor_weights=weights)
    found, _ = toolbox.optimize(unknown, residual, verbose=False, max_iters=rounds, x_scale="jac")
    fitted = toolbox.apply_param_modifiers(found, spec)
    data, errors = mujoco.MjData(fitted), []
    for q, v, a, tau in zip(*(arm.held[kind] for kind in ("q", "v", "a", "tau")), strict=True):
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
        mujoco.mj_inverse(fitted, data)
        errors.append(data.qfrc_inverse - tau)
    return np.array(errors)


def root_mean(x: Array) -> Array:
    """Root mean squares of columns, of the samples that are compared."""
    return np.asarray(np.sqrt(np.mean(x[INNER] ** 2, axis=0)))


def rows(arm: Arm, folder: Path, rounds: int) -> Iterator[tuple[str, Array]]:
    """Names of methods, and root mean squares of what each leaves of the held-out forces."""
    known, new = arm.log(arm.fit), arm.log(arm.held)
    forms: tuple[tuple[str, dict[str, Any]], ...] = (
        ("robomodel", {}),
        ('robomodel, friction="auto"', {"friction": "auto"}),
        ('robomodel, friction="auto", delays=True', {"friction": "auto", "delays": True}),
    )
    for said, options in forms:
        seen = predicted(rm.identify(arm.model, known, **options).model, new)
        yield said, root_mean(seen.predicted - seen.measured)
    if not arm.wrist:
        yield "published model", root_mean(published(arm, folder))
    if rounds and not arm.wrist:
        yield f"mujoco.sysid, {rounds} rounds", root_mean(sysid(arm, folder, rounds))
    if find_spec("figaroh") is not None:
        for said, weighted in (("FIGAROH", False), ("FIGAROH, weighted", True)):
            error, least = figaroh(arm, folder, weighted)
            yield f"{said} (least inertia of a motor {least:.2g} kg m²)", root_mean(error)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each arm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the logs are, or are put")
    parser.add_argument("--sysid", type=int, default=0, help="rounds of MuJoCo's toolbox")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        folder = fetched(options.folder or Path(temporary))
        arms: tuple[Callable[[Path], Arm], ...] = (tx40, panda)
        for make in arms:
            arm = make(folder)
            forces = root_mean(arm.held["tau"])
            print(f"{arm.name}: % of the held-out forces that are left, all joints together | each")
            for said, left in rows(arm, folder, options.sysid):
                each = " ".join(f"{x:5.1f}" for x in 100.0 * left / forces)
                share = 100.0 * np.linalg.norm(left) / np.linalg.norm(forces)
                print(f"  {share:5.2f} | {each}  {said}")


if __name__ == "__main__":
    main()
