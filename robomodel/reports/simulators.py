"""What users of a simulator enter for a robot's open tree: armature, limits, gains, maps to motors.

Words are those of MuJoCo's MJCF, mjlab 1.6, Isaac Lab (actuator_cfg at commit 0229321), Genesis
0.3.3, Pinocchio 4.1 and Drake's URDF. All of these armatures are constants of single joints, beside
the links as they are when what is locked is part of what carries it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from robomodel import dynamics
from robomodel.dynamics.approximation import TreeOptions, WrittenTree, percent, written_tree
from robomodel.dynamics.tree_fit import on_arrays
from robomodel.model import Model
from robomodel.model.approximate import reflected
from robomodel.model.elements import Cluster, joint_slices
from robomodel.model.joints import Array
from robomodel.reports.document import Bullets, Cell, Section, Table

Simulator = Literal["mujoco", "mjlab", "isaaclab", "genesis", "pinocchio", "drake"]

ROWS = 9  # of a table over a joint's range
STEP, TIME = 1e-3, 1.0  # s, of a motion that is compared
JUMP = 0.35  # rad or m: the most that a joint is asked to move in it


@dataclass(frozen=True, slots=True)
class JointFields:
    """What is entered for a joint of the tree; ``gains``: kp and kd where a rate was asked for.

    ``low`` and ``high`` are the least and most of the reflected inertia over the range.
    """

    joint: str
    armature: float
    low: float
    high: float
    effort: float
    velocity: float
    gains: tuple[float, float] | None = None


def joint_fields(made: WrittenTree, gains: tuple[float, float] | None = None) -> list[JointFields]:
    """Of each joint of one freedom of a robot's tree.

    The armature is that of least mean square error over the range, not below zero. ``gains``: the
    natural frequency [rad/s] and the damping ratio of a joint alone, with the robot's inertia at
    neutral.
    """
    view, fields = made.view, []
    limits = {joint.name: joint for joint in made.model.joints}
    inertia = _joint_inertia(view, made) if gains else {}
    for each in made.clusters:
        q = _positions(view, each.cluster, each.positions)
        dense = on_arrays(reflected, view, q)[:, each.cluster.v, each.cluster.v]
        rows = [v for body in each.bodies for v in view.nodes[body].freedoms]
        g = view.constraint_jacobian(q)[:, rows, each.cluster.v]
        back = np.linalg.inv(g)
        values = np.diagonal(np.swapaxes(back, 1, 2) @ dense @ back, axis1=1, axis2=2)
        at = 0
        for body in each.bodies:
            joint = view.joints[body]
            if joint.nv == 1:
                low, high = float(np.min(values[:, at])), float(np.max(values[:, at]))
                same = high - low <= 1e-12 * max(abs(high), abs(low))
                best = high if same else max(0.0, float(np.mean(values[:, at])))
                limit = limits[joint.name]
                pair = None
                if gains:
                    rate, ratio = gains
                    m = inertia[joint.name]
                    pair = rate**2 * m, 2.0 * ratio * rate * m
                fields.append(
                    JointFields(joint.name, best, low, high, limit.effort_limit,
                                limit.velocity_limit, pair)
                )  # fmt: skip
            at += joint.nv
    return fields


def _positions(model: Model, cluster: Cluster, positions: Array) -> Array:
    """Configurations (n, nq) with a cluster at spanning positions, all others at neutral."""
    q = np.tile(model.neutral(), (len(positions), 1))
    links = dict(zip(cluster.bodies, cluster.geometry.links, strict=True))
    for body, part, _ in joint_slices(model, cluster):
        first = cluster.q.start
        q[:, first + part.start : first + part.stop] = positions[:, links[body].positions]
    return q


def _joint_inertia(model: Model, made: WrittenTree) -> dict[str, float]:
    """The robot's inertia at each joint of the tree at neutral, the others at rest."""
    q = model.neutral()
    names, rows = _rows(model, made)
    back = np.linalg.inv(model.constraint_jacobian(q)[rows])
    mass = back.T @ dynamics.crba(model, q, backend="numpy") @ back
    return {name: float(mass[i, i]) for i, name in enumerate(names)}


def _rows(model: Model, made: WrittenTree) -> tuple[list[str], list[int]]:
    """The tree's velocities by their joints' names, and the robot's rows of them."""
    bodies = sorted(body for each in made.clusters for body in each.bodies)
    names = [model.joints[body].name for body in bodies for _ in model.nodes[body].freedoms]
    return names, [v for body in bodies for v in model.nodes[body].freedoms]


# ---- maps from motors to joints ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MotorMap:
    """How far a motor turns for a joint of the tree over its range, the other joints at neutral.

    ``rows``: the joint's position, the motor's rate for the joint's, and the greatest torque that
    it gives the joint; ``coefficients``: the rate as a polynomial of the position, c0 first, with
    its worst ``error``.
    """

    motor: str
    joint: str
    rows: tuple[tuple[float, float, float], ...]
    coefficients: tuple[float, ...]
    error: float


def motor_maps(made: WrittenTree) -> list[MotorMap]:
    """Of motors of linkages of which one joint moves."""
    view, maps = made.view, []
    for each in made.clusters:
        if each.cluster.kind != "loops" or len(each.bodies) != 1 or each.cluster.nv != 1:
            continue
        (body,) = each.bodies
        links = dict(zip(each.cluster.bodies, each.cluster.geometry.links, strict=True))
        x = each.positions[:, links[body].q]
        order = np.argsort(x)
        q = _positions(view, each.cluster, each.positions[order])
        rates = view.constraint_jacobian(q)
        along = rates[:, view.nodes[body].v, each.cluster.v.start]
        for actuator in view.actuators:
            rows = [(r, k) for r, k in actuator.rows if np.any(rates[:, r, each.cluster.v.start])]
            if not rows:
                continue
            ratio = sum((k * rates[:, r, each.cluster.v.start] for r, k in rows), 0.0 * along)
            ratio = ratio / along
            maps.append(_motor_map(actuator.name, view.joints[body].name, x[order], ratio,
                                   actuator.effort_limit))  # fmt: skip
    return maps


def _motor_map(motor: str, joint: str, x: Array, ratio: Array, effort: float) -> MotorMap:
    from robomodel.model.tree_joints import polynomial

    at = np.linspace(x[0], x[-1], ROWS)
    values = np.interp(at, x, ratio)
    coefficients, error = polynomial(x, ratio, 4)
    rows = tuple((float(a), float(r), abs(float(r)) * effort)
                 for a, r in zip(at, values, strict=True))  # fmt: skip
    return MotorMap(motor, joint, rows, coefficients, error)


# ---- a motion ------------------------------------------------------------------------------------


def motion_errors(made: WrittenTree, gains: tuple[float, float]) -> dict[str, float]:
    """How far joints of the tree get from the robot's in a second of PD motion [rad or m].

    Each joint is asked to go ``JUMP``, or 0.6 of the way to the end of its range, by the law of
    :func:`joint_fields` and gravity's forces at neutral; the robot and its tree by the same steps.
    """
    view, tree = made.view, made.model
    names, rows = _rows(view, made)
    start = view.neutral()
    placed = view.joint_positions(start)
    inverse = np.linalg.inv(view.constraint_jacobian(start)[rows])
    mass = np.diag(inverse.T @ dynamics.crba(view, start, backend="numpy") @ inverse)
    zero = np.zeros(view.nv)
    hold = inverse.T @ dynamics.rnea(view, start, zero, zero, backend="numpy")
    single = np.array([made.view.joints[view.joint_names.index(n)].nv == 1 for n in names])
    ends = {view.joints[b].name: x for each in made.clusters for b, x in _ends(view, each).items()}
    rate, ratio = gains
    kp, kd = rate**2 * mass * single, 2.0 * ratio * rate * mass * single
    goals = np.zeros(len(names))
    for i, name in enumerate(names):
        if single[i]:
            at = float(placed[name])
            low, high = ends[name]
            up, down = 0.6 * (high - at), 0.6 * (at - low)
            goals[i] = at + (min(JUMP, up) if up >= down else -min(JUMP, down))
    order = [tree.dof_names.index(n) if s else -1 for n, s in zip(names, single, strict=True)]
    q, v = start, zero
    base = {n: placed[n] for n in tree.joint_names if n in placed}
    t = tree.configuration(
        {name: float(x) for name, x in base.items() if np.ndim(x) == 0},
        base_pose=start[:7].tolist() if view.floating_base else None,
    )
    dt = np.zeros(tree.nv)
    worst = np.zeros(len(names))
    on: list[int] = np.flatnonzero(single).tolist()
    to_tree = [order[i] for i in on]
    for _ in range(round(TIME / STEP)):
        x, y = (_at(m, c, names, on) for m, c in ((view, q), (tree, t)))
        worst[on] = np.maximum(worst[on], np.abs(x - y))
        g = view.constraint_jacobian(q)[rows]
        force = np.where(single, hold, 0.0)
        force[on] += kp[on] * (goals[on] - x)
        force -= kd * (g @ v)
        v = v + STEP * dynamics.aba(view, q, v, g.T @ force)
        q = view.integrate(q, STEP * v)
        push = np.zeros(tree.nv)
        push[to_tree] = hold[on] + kp[on] * (goals[on] - y) - kd[on] * dt[to_tree]
        dt = dt + STEP * dynamics.aba(tree, t, dt, push)
        t = tree.integrate(t, STEP * dt)
    return {names[i]: float(worst[i]) for i in on}


def _at(model: Model, q: Array, names: Sequence[str], on: Sequence[int]) -> Array:
    positions = model.joint_positions(q)
    return np.array([float(positions[names[i]]) for i in on])


def _ends(model: Model, tree: Any) -> dict[int, tuple[float, float]]:
    """The ends of the range of a cluster's joints of one freedom."""
    links = dict(zip(tree.cluster.bodies, tree.cluster.geometry.links, strict=True))
    columns = {b: tree.positions[:, links[b].q] for b in tree.bodies if links[b].joint.nq == 1}
    return {b: (float(np.min(x)), float(np.max(x))) for b, x in columns.items()}


# ---- texts ---------------------------------------------------------------------------------------


def parse_gains(text: str | None) -> tuple[float, float] | None:
    """A natural frequency [rad/s] and a damping ratio, "12,0.7"."""
    if text is None:
        return None
    try:
        rate, ratio = (float(each) for each in text.split(","))
    except ValueError:
        rate = ratio = math.nan
    if not (rate > 0.0 and ratio >= 0.0 and math.isfinite(rate + ratio)):
        raise ValueError(f"gains are a frequency [rad/s] and a damping ratio, as 12,0.7: {text!r}")
    return rate, ratio


def for_simulator(
    model: Model,
    simulator: Simulator,
    *,
    joints: Sequence[str] = (),
    gains: tuple[float, float] | None = None,
) -> tuple[list[Section], dict[str, Any]]:
    """What a simulator's user enters, and the same as data.

    Args:
        model: The robot.
        simulator: "mujoco", "mjlab", "isaaclab", "genesis", "pinocchio" or "drake".
        joints: Joints that move in the tree before all others.
        gains: A natural frequency [rad/s] and a damping ratio, for which gains are given and a
            second of motion is compared.

    Returns:
        sections: Of a document; the first is what is entered.
        data: Of a JSON document: simulator, text, fields, maps, motion, notes.

    Raises:
        ValueError: Another simulator, or no open tree stands for the robot.
    """
    if simulator not in get_args(Simulator):
        raise ValueError(f"simulators are {', '.join(get_args(Simulator))}, not {simulator!r}")
    made = written_tree(model, TreeOptions(tuple(joints)))
    fields = joint_fields(made, gains)
    lumped = written_tree(model, TreeOptions(tuple(joints), "lumped"))
    lines = _TEXTS[simulator](fields, lumped.model)
    maps = motor_maps(made)
    motion = motion_errors(made, gains) if gains else None
    ends = [
        f"reflected inertia of {each.joint}: {each.low:.4g} to {each.high:.4g}, "
        f"constant {each.armature:.4g}"
        for each in fields
        if each.high - each.low > 1e-9 * max(abs(each.high), abs(each.low))
    ]
    sections = [
        Section("", ["\n".join(lines)]),
        Section("Beside links as they are with what is locked; files by `convert --approximate` "
                "have inertias of links with which the tree is nearer to the robot",
                [Bullets([*ends, *made.notes])]),
        *(_map_section(each) for each in maps),
    ]  # fmt: skip
    if motion is not None and gains is not None:
        title = f"A second of PD motion at {gains[0]:g} rad/s, damping {gains[1]:g}: largest error"
        rows: list[list[Cell]] = [[name, 1e3 * error] for name, error in motion.items()]
        sections.append(Section(title, [Table(["joint", "error [mrad, mm]"], rows, 3)]))
    data = {"simulator": simulator, "text": "\n".join(lines), "fields": fields, "maps": maps,
            "motion": motion, "notes": list(made.notes)}  # fmt: skip
    return sections, data


def _map_section(each: MotorMap) -> Section:
    rows: list[list[Cell]] = [list(row) for row in each.rows]
    terms = " + ".join(f"{c:.6g} x^{n}" for n, c in enumerate(each.coefficients))
    return Section(
        f"{each.motor} for {each.joint} = x: ratio {terms}, within {percent(each.error)} of 1",
        [Table(["position", "ratio", "torque at most"], rows, 5)],
    )


def _finite(fields: Sequence[JointFields], name: str) -> dict[str, float]:
    values = {each.joint: float(getattr(each, name)) for each in fields}
    return {joint: x for joint, x in values.items() if math.isfinite(x) and x > 0.0}


def _number(value: float) -> str:
    return f"{value:.12g}"


def _mujoco(fields: Sequence[JointFields], lumped: Model) -> list[str]:
    shared = {name for each in lumped.couplings for name, _ in each.terms[1:]}
    filed = {joint.name: joint.armature for joint in lumped.joints}
    armature = {
        each.joint: filed[each.joint] if each.joint in shared else each.armature for each in fields
    }
    lines = [f'<joint name="{name}" armature="{_number(x)}"/>' for name, x in armature.items()]
    for each in fields:
        if each.gains:
            kp, kd = each.gains
            lines.append(f'<position joint="{each.joint}" kp="{kp:.6g}" kv="{kd:.6g}"/>')
    for tendon in lumped.couplings:
        (rotor, own), *others = tendon.terms
        inner = "".join(f'<joint joint="{n}" coef="{-k / own:.9g}"/>' for n, k in others)
        lines.append(f'<fixed name="{rotor}" armature="{_number(filed[rotor])}">{inner}</fixed>')
    return lines


def _groups(fields: Sequence[JointFields]) -> dict[tuple[Any, ...], list[JointFields]]:
    """Joints with the same numbers."""
    groups: dict[tuple[Any, ...], list[JointFields]] = {}
    for each in fields:
        groups.setdefault((each.armature, each.effort, each.gains), []).append(each)
    return groups


def _mjlab(fields: Sequence[JointFields], lumped: Model) -> list[str]:
    lines = []
    for group in _groups(fields).values():
        first = group[0]
        names = ", ".join(json.dumps(f"^{re.escape(each.joint)}$") for each in group)
        words = [f"target_names_expr=({names},)", f"armature={_number(first.armature)}"]
        if math.isfinite(first.effort) and first.effort > 0.0:
            words.append(f"effort_limit={first.effort:.6g}")
        if first.gains:
            words += [f"stiffness={first.gains[0]:.6g}", f"damping={first.gains[1]:.6g}"]
        kind = "BuiltinPositionActuatorCfg" if first.gains else "BuiltinMotorActuatorCfg"
        lines.append(f"{kind}({', '.join(words)}),")
    return lines


def _isaaclab(fields: Sequence[JointFields], lumped: Model) -> list[str]:
    def mapping(values: Mapping[str, float]) -> str:
        inner = ", ".join(f"{json.dumps(name)}: {_number(value)}" for name, value in values.items())
        return "{" + inner + "}"

    names = ", ".join(json.dumps(each.joint) for each in fields)
    lines = ["ImplicitActuatorCfg(", f"    joint_names_expr=[{names}],"]
    lines.append(f"    armature={mapping({each.joint: each.armature for each in fields})},")
    for word, name in (("effort_limit_sim", "effort"), ("velocity_limit_sim", "velocity")):
        if values := _finite(fields, name):
            lines.append(f"    {word}={mapping(values)},")
    if all(each.gains for each in fields):
        for n, word in enumerate(("stiffness", "damping")):
            gains = {each.joint: float(f"{each.gains[n]:.6g}") for each in fields if each.gains}
            lines.append(f"    {word}={mapping(gains)},")
    return [*lines, ")"]


def _genesis(fields: Sequence[JointFields], lumped: Model) -> list[str]:
    names = ", ".join(json.dumps(each.joint) for each in fields)
    values = {"armature": [each.armature for each in fields]}
    if all(each.gains for each in fields):
        for n, word in enumerate(("kp", "kv")):
            values[word] = [float(f"{each.gains[n]:.6g}") for each in fields if each.gains]
    lines = [f"dofs = [entity.get_joint(name).dofs_idx_local[0] for name in [{names}]]"]
    lines += [
        f"entity.set_dofs_{word}([{', '.join(map(_number, numbers))}], dofs)"
        for word, numbers in values.items()
    ]
    efforts = [each.effort for each in fields]
    if all(math.isfinite(x) and x > 0.0 for x in efforts):
        lines.append(f"entity.set_dofs_force_range({[-x for x in efforts]}, {efforts}, dofs)")
    return lines


def _pinocchio(fields: Sequence[JointFields], lumped: Model) -> list[str]:
    lines = []
    for each in fields:
        at = f"model.joints[model.getJointId({json.dumps(each.joint)})].idx_v"
        lines.append(f"model.armature[{at}] = {_number(each.armature)}")
    return lines


def _drake(fields: Sequence[JointFields], lumped: Model) -> list[str]:
    return [
        f'<transmission name="{each.joint}_transmission">'
        "<type>transmission_interface/SimpleTransmission</type>"
        f'<joint name="{each.joint}"/><actuator name="{each.joint}_actuator">'
        f'<drake:rotor_inertia value="{_number(each.armature)}"/><drake:gear_ratio value="1"/>'
        "</actuator></transmission>"
        for each in fields
    ]


_TEXTS = {
    "mujoco": _mujoco,
    "mjlab": _mjlab,
    "isaaclab": _isaaclab,
    "genesis": _genesis,
    "pinocchio": _pinocchio,
    "drake": _drake,
}
