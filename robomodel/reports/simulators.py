"""Settings of a robot's open tree for users of a simulator: armature, limits, gains, motor maps.

They are for the tree with links as they are, which keeps masses and inertias of the file; the
verdict beside them is this tree's.

Names are those of MuJoCo's MJCF, mjlab 1.6, Isaac Lab (actuator_cfg at commit 0229321), Genesis
0.3.3, Pinocchio 4.1 and Drake's URDF. The armatures are constants of single joints, for links that
include the bodies locked to them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from robomodel import dynamics
from robomodel.arrays import Array, Mask
from robomodel.dynamics.actuators.efforts import alone
from robomodel.dynamics.actuators.limbs import is_driven
from robomodel.dynamics.kinematics.state import Configuration, on_arrays
from robomodel.dynamics.lumped import reflected
from robomodel.errors import UnknownNameError, check_names, few
from robomodel.model import Model
from robomodel.model.elements import Cluster, joint_slices
from robomodel.opentree.armatures import armatures
from robomodel.opentree.errors import jacobian_of, percent
from robomodel.opentree.tree import OpenTree, TreeOptions, written_tree
from robomodel.opentree.tree_joints import ClusterTree, polynomial
from robomodel.reports.document import Bullets, Cell, Section, Table
from robomodel.reports.plots import Line, Plot, bounded
from robomodel.scalars import unstack
from robomodel.tolerances import NOTHING

Simulator = Literal["mujoco", "mjlab", "isaaclab", "genesis", "pinocchio", "drake"]

ROWS = 9  # of a table over a joint's range
STEP, TIME = 1e-3, 1.0  # s, of the compared motion
JUMP = 0.35  # rad or m: largest step of a joint's target in it

DRIVES = ("mjlab", "isaaclab", "drake")  # what is entered is motors, not joints

Gains = Mapping[str, tuple[float, float]]
"""kp and kd by joint."""


@dataclass(frozen=True, slots=True)
class JointFields:
    """Settings of a joint of the tree; ``gains``: kp and kd if a rate was asked for.

    ``low`` and ``high`` are the least and the greatest reflected inertia over the range, see
    :class:`robomodel.opentree.armatures.Armature`. ``effort`` and ``velocity`` are what motors give
    both ways, or the way that they push if that is one; ``efforts`` the least and the greatest.
    ``driven`` is False for a joint without a motor, whose efforts are zero.
    """

    joint: str
    armature: float
    low: float
    high: float
    effort: float
    velocity: float
    efforts: tuple[float, float]
    gains: tuple[float, float] | None = None
    driven: bool = True


def joint_fields(made: OpenTree, gains: Gains | None = None) -> list[JointFields]:
    """Settings of each joint of one freedom that moves in a tree with links as they are.

    Then those of joints that follow and have an armature of their own in the file.
    """
    single = {joint.name for joint in made.basis.view.joints if joint.nv == 1}
    idle = _undriven(made)
    fields = []
    for each in armatures(made):
        if each.joint in single:
            limit, pair = made.limits[each.joint], (gains or {}).get(each.joint)
            if each.joint in idle:
                limit = replace(limit, effort=0.0, effort_lower=None)
            fields.append(JointFields(
                each.joint, made.armature[each.joint], each.low, each.high,
                _both_ways(limit.least_effort, limit.effort),
                _both_ways(limit.least_velocity, limit.velocity),
                (limit.least_effort + 0.0, limit.effort), pair, each.joint not in idle,
            ))  # fmt: skip
    follow = (made.basis.view.joints[each.body].name for each in made.basis.followers)
    for name in follow:
        if armature := made.armature.get(name):
            limit = made.limits[name]
            speed = _both_ways(limit.least_velocity, limit.velocity)
            fields.append(JointFields(name, armature, armature, armature, 0.0, speed, (0.0, 0.0),
                                      driven=False))  # fmt: skip
    return fields


def _undriven(made: OpenTree) -> frozenset[str]:
    """Joints of the tree that no motor drives, as transmissions or limits of effort of zero say."""
    view = made.basis.view
    return frozenset(
        joint.name
        for body, joint in enumerate(view.joints)
        if joint.name in made.limits
        and (
            not is_driven(view, body)
            or (
                joint.effort_limit == joint.least_effort == 0.0
                and made.limits[joint.name].effort == made.limits[joint.name].least_effort == 0.0
            )
        )
    )


def _both_ways(least: float, most: float) -> float:
    """The smaller of both sizes that is not zero; zero if both are."""
    return min((x for x in (-least, most) if x > 0.0), default=0.0)


def _positions(model: Model, cluster: Cluster, positions: Array) -> Array:
    """Configurations (n, nq) with a cluster at spanning positions, all others at neutral."""
    q = np.tile(model.neutral(), (len(positions), 1))
    links = dict(zip(cluster.bodies, cluster.geometry.links, strict=True))
    for body, part, _ in joint_slices(model, cluster):
        first = cluster.q.start
        q[:, first + part.start : first + part.stop] = positions[:, links[body].positions]
    return q


def _joint_inertia(model: Model, made: OpenTree) -> dict[str, float]:
    """The robot's inertia at each joint of the tree at neutral, the others at rest."""
    q = model.neutral()
    names, rows = _rows(model, made)
    back = np.linalg.inv(model.constraint_jacobian(q)[rows])
    mass = back.T @ dynamics.crba(model, q, backend="numpy") @ back
    return {name: float(mass[i, i]) for i, name in enumerate(names)}


def _rows(model: Model, made: OpenTree) -> tuple[list[str], list[int]]:
    """The joints' names of the tree's velocities, and the robot's rows of these."""
    bodies = sorted(body for each in made.basis.parts for body in each.bodies)
    names = [model.joints[body].name for body in bodies for _ in model.nodes[body].freedoms]
    return names, [v for body in bodies for v in model.nodes[body].freedoms]


# ---- maps from motors to joints ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MotorMap:
    """The ratio of a motor to a joint of the tree over its range, the other joints at neutral.

    ``rows``: the joint's position, the motor's rate at unit rate of the joint, and the greatest
    torque that it gives the joint either way; ``coefficients``: the ratio as a polynomial of the
    position, c0 first, with its worst ``error``.
    """

    motor: str
    joint: str
    rows: tuple[tuple[float, float, float], ...]
    coefficients: tuple[float, ...]
    error: float


def motor_maps(made: OpenTree) -> list[MotorMap]:
    """Maps of the motors of linkages in which one joint moves."""
    view, maps = made.basis.view, []
    least, most = alone(view, None)
    for each in made.basis.parts:
        if each.cluster.kind != "loops" or len(each.bodies) != 1 or each.cluster.nv != 1:
            continue
        (body,) = each.bodies
        links = dict(zip(each.cluster.bodies, each.cluster.geometry.links, strict=True))
        x = each.positions[:, links[body].q]
        order = np.argsort(x)
        q = _positions(view, each.cluster, each.positions[order])
        rates = view.constraint_jacobian(q)
        along = rates[:, view.nodes[body].v, each.cluster.v.start]
        for n, actuator in enumerate(view.actuators):
            rows = [(r, k) for r, k in actuator.rows if np.any(rates[:, r, each.cluster.v.start])]
            if not rows:
                continue
            ratio = sum((k * rates[:, r, each.cluster.v.start] for r, k in rows), 0.0 * along)
            ratio = ratio / along
            both = _both_ways(float(least[n]), float(most[n]))
            maps.append(_motor_map(actuator.name, view.joints[body].name, x[order], ratio, both))
    return maps


def _motor_map(motor: str, joint: str, x: Array, ratio: Array, effort: float) -> MotorMap:
    at = np.linspace(x[0], x[-1], ROWS)
    values = np.interp(at, x, ratio)
    coefficients, error = polynomial(x, ratio, 4)
    rows = tuple((float(a), float(r), abs(float(r)) * effort)
                 for a, r in zip(at, values, strict=True))  # fmt: skip
    return MotorMap(motor, joint, rows, coefficients, error)


# ---- a compared motion ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PdMotion:
    """A second of PD motion: time, and positions of the tree's joints in the robot and the tree.

    ``robot`` and ``tree`` (steps, joints), of ``joints`` of one freedom.
    """

    joints: tuple[str, ...]
    time: Array
    robot: Array
    tree: Array

    @property
    def errors(self) -> dict[str, float]:
        """Largest distance of each of the tree's joints from the robot's [rad or m]."""
        worst = np.max(np.abs(self.tree - self.robot), axis=0)
        return dict(zip(self.joints, worst.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class PdLaw:
    """Forces hold + kp (goal - x) - kd ẋ on the joints of one freedom of a robot's tree.

    ``single``: their indices among the tree's velocities; other joints are free. ``hold`` is the
    force that holds the robot at neutral. The goal is the configuration in the tree's range that is
    farthest from neutral with each joint within ``JUMP``.
    """

    names: tuple[str, ...]
    rows: tuple[int, ...]
    single: Mask
    hold: Array
    kp: Array
    kd: Array
    goal: Array

    @classmethod
    def of(cls, made: OpenTree, gains: Gains) -> PdLaw:
        """The law with these gains by joint."""
        view = made.basis.view
        names, rows = _rows(view, made)
        start = view.neutral()
        placed = view.joint_positions(start)
        inverse = np.linalg.inv(view.constraint_jacobian(start)[rows])
        zero = np.zeros(view.nv)
        hold = inverse.T @ dynamics.rnea(view, start, zero, zero, backend="numpy")
        single = np.array([view.joints[view.joint_names.index(n)].nv == 1 for n in names])
        goals: dict[str, float] = {}
        for each in made.basis.parts:
            goals |= _goals(view, each)
        pairs = [gains.get(n, (0.0, 0.0)) for n in names]
        at = [goals.get(n, float(placed[n]) if one else 0.0)
              for n, one in zip(names, single, strict=True)]  # fmt: skip
        kp, kd = np.array(pairs).T * single
        return cls(tuple(names), tuple(rows), single, hold * single, kp, kd, np.array(at))

    def force(self, x: Array, dx: Array) -> Array:
        """Forces on the tree's velocities, from positions and rates."""
        return self.hold + self.kp * (self.goal - x) - self.kd * dx

    def in_robot(self, made: OpenTree, step: float = STEP) -> tuple[Array, Array]:
        """Time (n,) and positions (n, velocities) of the robot, by semi-implicit steps."""
        view, on = made.basis.view, np.flatnonzero(self.single).tolist()
        q, v = view.neutral(), np.zeros(view.nv)
        time: Array = step * np.arange(round(TIME / step), dtype=float)
        path: list[Array] = []
        for _ in time:
            x = np.zeros(len(self.names))
            x[on] = _at(view, q, self.names, on)
            path.append(x)
            g = view.constraint_jacobian(q)[list(self.rows)]
            v = v + step * dynamics.aba(view, q, v, g.T @ self.force(x, g @ v))
            q = view.integrate(q, step * v)
        return time, np.array(path)


def motion_errors(made: OpenTree, gains: Gains) -> dict[str, float]:
    """Largest distance of each joint of the tree from the robot's in the motion [rad or m]."""
    return pd_motion(made, gains).errors


def pd_motion(made: OpenTree, gains: Gains) -> PdMotion:
    """A second of :class:`PdLaw` on the robot and on its tree, by the same steps."""
    view, tree, law = made.basis.view, made, PdLaw.of(made, gains)
    time, robot = law.in_robot(made)
    on = np.flatnonzero(law.single).tolist()
    to_tree = [tree.dof_names.index(law.names[i]) for i in on]
    start = view.neutral()
    base = {n: x for n, x in view.joint_positions(start).items() if n in tree.joint_names}
    t = tree.configuration(
        {name: float(x) for name, x in base.items() if np.ndim(x) == 0},
        base_pose=start[:7].tolist() if view.floating_base else None,
    )
    dt, path = np.zeros(tree.nv), []
    for _ in time:
        x, dx = np.zeros((2, len(law.names)))
        x[on], dx[on] = _at(tree, t, law.names, on), dt[to_tree]
        path.append(x)
        push = np.zeros(tree.nv)
        push[to_tree] = law.force(x, dx)[on]
        dt = dt + STEP * dynamics.aba(tree, t, dt, push)
        t = tree.integrate(t, STEP * dt)
    names = tuple(law.names[i] for i in on)
    return PdMotion(names, time, robot[:, on], np.array(path)[:, on])


def _goals(model: Model, each: ClusterTree) -> dict[str, float]:
    """Goals of a cluster's joints of one freedom."""
    links = dict(zip(each.cluster.bodies, each.cluster.geometry.links, strict=True))
    bodies = [b for b in each.bodies if links[b].joint.nq == 1]
    at = each.positions[:, [links[b].q for b in bodies]]
    far = np.abs(at - at[0])
    within = np.all(far <= JUMP, axis=1)
    best = int(np.argmax(np.where(within, np.sum(far, axis=1), -1.0)))
    return {model.joints[b].name: float(x) for b, x in zip(bodies, at[best], strict=True)}


def _at(model: Model, q: Array, names: Sequence[str], on: Sequence[int]) -> Array:
    positions = model.joint_positions(q)
    return np.array([float(positions[names[i]]) for i in on])


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


def natural_gains(made: OpenTree, rate: float, ratio: float) -> Gains:
    """kp = ω² M and kd = 2 ζ ω M of driven joints with the robot's inertia M there at neutral."""
    idle = _undriven(made)
    return {name: (rate**2 * m, 2.0 * ratio * rate * m)
            for name, m in _joint_inertia(made.basis.view, made).items()
            if name not in idle}  # fmt: skip


def parse_pd(made: OpenTree, kp: str, kd: str) -> Gains:
    """Gains of joints: "40", or "hip=60,knee=40" (joints that are not named have none)."""
    names = [made.basis.view.joints[b].name for c in made.basis.parts for b in c.bodies
             if made.basis.view.joints[b].nv == 1]  # fmt: skip
    values = []
    for word, text in (("kp", kp), ("kd", kd)):
        try:
            if "=" in text:
                pairs = (each.split("=") for each in text.split(","))
                each_joint = {name.strip(): float(x) for name, x in pairs}
            else:
                each_joint = dict.fromkeys(names, float(text))
        except ValueError:
            raise ValueError(
                f"{word} is a number, or one by joint, as hip=60,knee=40: {text!r}"
            ) from None
        check_names(each_joint, names, f"{word}: no joint of the tree ", error=UnknownNameError)
        if not all(0.0 <= x < math.inf for x in each_joint.values()):
            raise ValueError(f"{word} is finite and not negative: {text!r}")
        values.append(each_joint)
    return {name: (values[0].get(name, 0.0), values[1].get(name, 0.0)) for name in names}


def for_simulator(
    model: Model,
    simulator: Simulator,
    *,
    joints: Sequence[str] = (),
    gains: tuple[float, float] | None = None,
    pd: tuple[str, str] | None = None,
) -> tuple[list[Section], dict[str, Any]]:
    """The settings that a simulator's user enters, as sections and as data.

    Args:
        model: The robot.
        simulator: "mujoco", "mjlab", "isaaclab", "genesis", "pinocchio" or "drake".
        joints: Joints that move in the tree before all others.
        gains: A natural frequency [rad/s] and a damping ratio, from which gains are computed; a
            second of motion is compared.
        pd: kp and kd instead, read by :func:`parse_pd`.

    Returns:
        sections: Sections of a document; the first has the settings.
        data: Data of a JSON document: simulator, text, fields, maps, motion, notes.

    Raises:
        ValueError: Another simulator, or no open tree stands for the robot.
    """
    if simulator not in get_args(Simulator):
        raise ValueError(f"simulators are {', '.join(get_args(Simulator))}, not {simulator!r}")
    made = written_tree(model, TreeOptions(tuple(joints), tendons=simulator == "mujoco"))
    lumped = made.lumped or made
    pairs = parse_pd(made, *pd) if pd else natural_gains(made, *gains) if gains else None
    fields = joint_fields(lumped, pairs)
    lines = _TEXTS[simulator](fields, lumped)
    maps = motor_maps(made)
    motion = motion_errors(made, pairs) if pairs else None
    ends = [
        f"reflected inertia of {each.joint}: {each.low:.4g} "
        + ("and up to its dead point" if math.isinf(each.high) else f"to {each.high:.4g}")
        + f", in the tree {each.armature:.4g}"
        for each in fields
        if each.high > each.low
    ]
    ends += [
        f"motors give {each.joint} {each.efforts[0]:.4g} to {each.efforts[1]:.4g}; as one limit of "
        f"both ways {each.effort:.4g}"
        for each in fields
        if -each.efforts[0] != each.efforts[1]
    ]
    if simulator in DRIVES and (idle := [each for each in fields if not each.driven]):
        kept = [f"that of {x.joint} is {_number(x.armature)}" for x in idle if x.armature > 0.0]
        more = f"; they have armatures, too: {', '.join(kept)}" if kept else ""
        names = few([each.joint for each in idle])
        ends.append(f"left out, as no motor drives them: {names}{more}")
    sections = [
        Section("", ["\n".join(lines)]),
        Section("For your own file, in which what is locked is part of what carries it",
                [Bullets([*ends, *lumped.notes, *_pasted_followers(lumped)])]),
        *(tree_sections(made) if made is not lumped else ()),
        *(_map_section(each) for each in maps),
    ]  # fmt: skip
    if motion is not None:
        law = f"kp {pd[0]}, kd {pd[1]}" if pd else ""
        law = f"{gains[0]:g} rad/s, damping {gains[1]:g}" if gains else law
        title = f"A second of PD motion, {law}: largest error of the tree that is written"
        rows: list[list[Cell]] = [[name, 1e3 * error] for name, error in motion.items()]
        sections.append(Section(title, [Table(["joint", "error [mrad, mm]"], rows, 3)]))
    data = {"simulator": simulator, "text": "\n".join(lines), "fields": fields, "maps": maps,
            "motion": motion, "verdict": lumped.verdict, "notes": list(lumped.notes),
            "tree": tree_data(made)}  # fmt: skip
    return sections, data


def _pasted_followers(lumped: OpenTree) -> list[str]:
    """Equations of joints that follow others, which armatures do not describe."""
    ties = [each for each in lumped.couplings if each.terms[0][0] in lumped.basis.view.joint_names]
    return [
        f"{each.terms[0][0]} = "
        + " + ".join(
            [
                f"{0.0 if abs(each.offset) <= NOTHING else each.offset:.6g}",
                *(f"{-k / each.terms[0][1]:.6g} {n}" for n, k in each.terms[1:]),
            ]
        )
        for each in ties
        if not each.coefficients[2:]
    ]


def tree_sections(made: OpenTree) -> list[Section]:
    """Both trees in columns with a verdict each, reflected inertia over the range, notes."""
    lumped = made.lumped or made
    if not made.errors:
        return [Section("The open tree", [Bullets(made.notes)])]
    ranges, rows = made.range, list[list[Cell]]()
    for name, error in made.errors.items():
        low, high = ranges.get(name, (None, None))
        beside = lumped.errors.get(name, error)
        rows.append([name, low, high, *map(percent, (beside.median, beside.worst, error.median,
                                                     error.worst))])  # fmt: skip
    table = Table(["joint", "from", "to", "links as they are, median", "worst",
                   "written tree, median", "worst"], rows, 3)  # fmt: skip
    curves = [each for each in made.basis.parts if each.cluster.kind == "loops"]
    plots = [plot for each in curves for plot in _inertia_plots(lumped, each)]
    verdicts = [f"Links as they are: {lumped.said}."]
    if made is not lumped:
        verdicts.append(f"As `convert --approximate` writes it: {made.said}.")
    return [
        Section("The open tree: errors of accelerations over its range", [table, *verdicts]),
        Section("What the tree is", [Bullets(made.notes[:-1])]),
        Section("Reflected inertia over the range of the tree", plots, on_page=True),
    ]


def tree_data(made: OpenTree) -> dict[str, Any]:
    """Data of a JSON document: the tree that is written, and that with links as they are."""
    lumped = made.lumped or made
    return {
        "kind": made.kind,
        "verdict": made.verdict,
        "errors": dict(made.errors),
        "armature": dict(made.armature),
        "range": made.range,
        "notes": list(made.notes),
        "lumped": {"verdict": lumped.verdict, "errors": dict(lumped.errors),
                   "armature": dict(lumped.armature)},
    }  # fmt: skip


def _inertia_plots(made: OpenTree, each: ClusterTree) -> Iterator[Plot]:
    """Plots of a linkage of one freedom: its joint's reflected inertia, and the constant."""
    view = made.basis.view
    (body, *others) = each.bodies
    if others or each.cluster.nv != 1:
        return
    name, units = view.joints[body].name, view.joints[body].units
    links = dict(zip(each.cluster.bodies, each.cluster.geometry.links, strict=True))
    order = np.argsort(each.positions[:, links[body].q])
    x = each.positions[order][:, links[body].q]
    values = _reflected(made, each)[order, 0]
    best = made.armature[name]
    yield Plot(
        f"{name}: reflected inertia", f"position [{units.position}]", f"[{units.inertia}]",
        [Line("robot", x, bounded(values)), Line("constant", x, np.full(len(x), best))],
        f"reflected_{name}",
    )  # fmt: skip


def _reflected(made: OpenTree, each: ClusterTree) -> Array:
    """Reflected inertia (n, velocities) of a cluster's joints in the tree over its range."""
    view = made.basis.view
    q = _positions(view, each.cluster, each.positions)
    dense = on_arrays(reflected, view, q)[:, each.cluster.v, each.cluster.v]
    rows = [v for body in each.bodies for v in view.nodes[body].freedoms]
    g = jacobian_of(Configuration(view, unstack(q)), rows, len(q))
    back = np.linalg.inv(g[:, :, each.cluster.v])
    return np.asarray(np.diagonal(np.swapaxes(back, 1, 2) @ dense @ back, axis1=1, axis2=2))


def _map_section(each: MotorMap) -> Section:
    rows: list[list[Cell]] = [list(row) for row in each.rows]
    terms = " + ".join(f"{c:.6g} x^{n}" for n, c in enumerate(each.coefficients))
    return Section(
        f"{each.motor} for {each.joint} = x: ratio {terms}, within {each.error:.2g}",
        [Table(["position", "ratio", "torque at most, both ways"], rows, 5)],
    )


def _finite(fields: Sequence[JointFields], name: str) -> dict[str, float]:
    values = {each.joint: float(getattr(each, name)) for each in fields}
    return {joint: x for joint, x in values.items() if math.isfinite(x) and x > 0.0}


def _number(value: float) -> str:
    return f"{value:.12g}"


def _mujoco(fields: Sequence[JointFields], lumped: Model) -> list[str]:
    filed = {joint.name: joint.armature for joint in lumped.joints}
    moving = {each.joint for each in fields}
    lines = [f'<joint name="{each.joint}" armature="{_number(each.armature)}"/>' for each in fields]
    for each in fields:
        if each.gains:
            kp, kd = each.gains
            lines.append(f'<position joint="{each.joint}" kp="{kp:.6g}" kv="{kd:.6g}"/>')
    for tendon in lumped.couplings:
        (rotor, own), *others = tendon.terms
        if not filed[rotor] or not {name for name, _ in others} <= moving or len(others) < 2:
            continue  # a follower
        inner = "".join(f'<joint joint="{n}" coef="{-k / own:.9g}"/>' for n, k in others)
        lines.append(f'<fixed name="{rotor}" armature="{_number(filed[rotor])}">{inner}</fixed>')
    return lines


def _groups(fields: Sequence[JointFields]) -> dict[tuple[Any, ...], list[JointFields]]:
    """Joints grouped by equal numbers."""
    groups: dict[tuple[Any, ...], list[JointFields]] = {}
    for each in fields:
        groups.setdefault((each.armature, each.effort, each.gains), []).append(each)
    return groups


def _mjlab(fields: Sequence[JointFields], lumped: Model) -> list[str]:
    lines = []
    for group in _groups([each for each in fields if each.driven]).values():
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

    fields = [each for each in fields if each.driven]
    if not fields:
        return []
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
    if any(each.gains for each in fields):
        for n, word in enumerate(("kp", "kv")):
            values[word] = [float(f"{(each.gains or (0, 0))[n]:.6g}") for each in fields]
    lines = [f"dofs = [entity.get_joint(name).dofs_idx_local[0] for name in [{names}]]"]
    lines += [
        f"entity.set_dofs_{word}([{', '.join(map(_number, numbers))}], dofs)"
        for word, numbers in values.items()
    ]
    limited = [
        n
        for n, x in enumerate(fields)
        if math.isfinite(x.effort) and (x.effort > 0.0 or not x.driven)
    ]
    if limited:
        lower, upper = (", ".join(_number(fields[n].efforts[k]) for n in limited) for k in (0, 1))
        on = "dofs" if len(limited) == len(fields) else f"[dofs[i] for i in {limited}]"
        lines.append(f"entity.set_dofs_force_range([{lower}], [{upper}], {on})")
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
        if each.driven
    ]


_TEXTS = {
    "mujoco": _mujoco,
    "mjlab": _mjlab,
    "isaaclab": _isaaclab,
    "genesis": _genesis,
    "pinocchio": _pinocchio,
    "drake": _drake,
}
