"""Errors of an open tree with constant armature, and its armatures written into files.

Errors are measured in the robot's independent velocities, over random states, against the exact
model: in the mass matrix, the torques of inverse dynamics, the accelerations of forward dynamics.
Armatures are written into MJCF (the attribute) and URDF (Drake's tags), text in, text out: nothing
else in the text changes (:class:`Markup`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from robomodel import dynamics
from robomodel.arrays import Array
from robomodel.dynamics.actuators.envelopes import inverses
from robomodel.dynamics.baselines import approximated_in_part
from robomodel.dynamics.lumped import approximate, joint_inertias, select
from robomodel.errors import DescriptionWarning
from robomodel.model import Model
from robomodel.opentree.tree import WrittenTree, written_tree
from robomodel.parsers.markup import Markup, Tag
from robomodel.parsers.schema import number
from robomodel.parsers.shared.motors import SIMPLE_TYPE
from robomodel.parsers.xml import DRAKE, quoted
from robomodel.reports.document import (
    Bullets,
    Cell,
    Document,
    HasDocument,
    Section,
    Table,
    picked,
    plain,
)
from robomodel.reports.simulators import tree_sections
from robomodel.reports.validation.context import CheckContext
from robomodel.running import track
from robomodel.tolerances import NOTHING, SAME, TINY

Quantity = Literal["mass_matrix", "torque", "acceleration"]

QUANTITIES: tuple[Quantity, ...] = ("mass_matrix", "torque", "acceleration")

_NAMED = 4  # joints that a sentence names
WORST = 10.0  # times the tolerance: limit of the RARE quantile of errors of mass matrix and torque
RARE = 0.99  # share of the states with smaller errors
CONFIDENCE = 2.6  # standard deviations: 99 % of samples have the quantile within them
REFINED, ROUNDS = 4, 3  # factor of the states and most rounds, while an error is at its limit
WORST_SHARE = 0.85  # of the worst cluster's error: clusters with more may be the cause, too
CAUSE_STATES = 256  # states at which errors are attributed to clusters


@dataclass(frozen=True, slots=True)
class Error:
    """Relative error of a quantity at a joint: median and worst over the states."""

    median: float
    worst: float


@dataclass(frozen=True, slots=True)
class Armature:
    """The reflected inertia at a joint that moves in the open tree [kg m², or kg where it slides].

    ``value`` is that of the open tree: at the neutral configuration, and not below zero. ``low``,
    ``high`` and ``best``, the constant of least mean square error, are over the states within the
    limits; ``constant`` if they are one number.
    """

    joint: str
    value: float
    low: float
    high: float
    best: float
    constant: bool
    unit: str


@dataclass(frozen=True, slots=True)
class DofErrors:
    """The errors at an independent velocity, and their cause.

    ``cause``: if one of them is above its limit, the cluster that alone makes most of it, by the
    names of its independent velocities. ``keep_exact``: this velocity is of a cluster that is the
    cause here or elsewhere. ``uncertain``: the states do not decide whether an error is above.
    """

    dof: str
    mass_matrix: Error
    torque: Error
    acceleration: Error
    keep_exact: bool
    cause: tuple[str, ...] = ()
    uncertain: bool = False


@dataclass(frozen=True, slots=True)
class CarriedRotor:
    """A rotor on a moving carrier, whose effect armature leaves out.

    ``inertia`` [kg m²] about its axis, ``ratio`` of its fastest joint, and their product
    ``coupling``, the entry of the mass matrix between that joint and the carrier's rotation about
    the axis.
    """

    rotor: str
    carrier: str
    joint: str
    inertia: float
    ratio: float
    coupling: float


@dataclass(frozen=True, eq=False)
class ApproximationErrors(HasDocument):
    """Errors of the open tree; docs/armature.md defines the relative errors.

    Attributes:
        robot: The robot's name.
        samples: Number of states; more than requested if errors are at the tolerance.
        seed: Seed of the states.
        tolerance: The median error above which a joint should not be approximated.
        armatures: The range of each joint's armature.
        rows: The errors at each independent velocity.
        torque: Error of the whole vector, ‖error‖ / ‖exact‖.
        acceleration: Error of accelerations, likewise.
        tendons: Error of accelerations by method="tendons", on the tree that is written.
        spins: Rotors on moving carriers, whose effect no armature describes.
        model: The robot itself.
        dof_names: Names of the independent velocities.
        dense: The reflected inertia between them at the neutral configuration (nv, nv).
        file: The robot's file.
    """

    robot: str
    samples: int
    seed: int
    tolerance: float
    armatures: tuple[Armature, ...]
    rows: tuple[DofErrors, ...]
    torque: Error
    acceleration: Error
    dof_names: tuple[str, ...]
    dense: Array
    file: str
    tendons: Error
    spins: tuple[CarriedRotor, ...]
    model: Model

    @property
    def tree(self) -> WrittenTree | None:
        """The tree that is written, with its errors; None if no whole joints make one."""
        try:
            return written_tree(self.model)
        except ValueError:
            return None

    @property
    def keep_exact(self) -> tuple[str, ...]:
        """The independent velocities that should not be approximated."""
        return tuple(row.dof for row in self.rows if row.keep_exact)

    @property
    def verdict(self) -> str:
        """One sentence: whether a tree with armature will do, and how large its errors are."""
        worst = max(self.torque.worst, self.acceleration.worst)
        if worst == 0.0:
            return "Armature is exact: nothing of the robot is approximated"
        summary = (
            f"torques are off by {_percent(self.torque.median)} in the median "
            f"({_percent(self.torque.worst)} at worst), accelerations by "
            f"{_percent(self.acceleration.median)} ({_percent(self.acceleration.worst)})"
        )
        if self.tendons.median < 0.99 * self.acceleration.median:
            summary += f"; on the tree that is written by {_percent(self.tendons.median)}"
        wrong = self.keep_exact
        if not wrong:
            return f"Armature will do: {summary}"
        more = f" and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
        names = ", ".join(wrong[:_NAMED]) + more
        return (
            f"Armature will not do for {len(wrong)} of {len(self.rows)} freedoms, which should "
            f"stay exact ({names}): {summary}"
        )

    @cached_property
    def document(self) -> Document:
        """The report as text, JSON and a page."""
        return _document(self)

    def as_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, numbers and strings; None stands for not finite."""
        result: dict[str, Any] = plain(_data(self))
        return result


def _data(errors: ApproximationErrors) -> dict[str, Any]:
    names = ("samples", "seed", "tolerance", "torque", "acceleration", "tendons", "keep_exact",
             "verdict")  # fmt: skip
    return picked(errors, *names, joints="rows")


def _document(errors: ApproximationErrors) -> Document:
    """Armatures, errors of each freedom, inertia between joints, and the verdict."""
    armatures: list[list[Cell]] = [
        [each.joint, each.value, None, None, None, each.unit]
        if each.constant
        else [each.joint, each.value, each.low, each.high, each.best, each.unit]
        for each in errors.armatures
    ]
    rows: list[list[Cell]] = [
        [row.dof, *map(_pair, (row.mass_matrix, row.torque, row.acceleration)),
         _remark(row)]
        for row in errors.rows
    ]  # fmt: skip
    rows.append(["all", "", _pair(errors.torque), _pair(errors.acceleration), ""])
    if errors.tendons != errors.acceleration:
        rows.append(["all, tree as written", "", "", _pair(errors.tendons), ""])
    dense, names = errors.dense, errors.dof_names
    pairs = np.argwhere(np.triu(np.abs(dense) > NOTHING * np.max(np.abs(dense), initial=TINY), 1))
    keep_exact_title = (
        f"Should not be approximated (median error above {errors.tolerance:g}, or ten times "
        "that in one of a hundred states)"
    )
    turning = [
        f"{each.joint}: {each.low:.6g} to {each.high:.6g} {each.unit}, the ratio turns with it"
        for each in errors.armatures
        if not each.constant
    ]
    spinning = [
        f"{each.rotor} on {each.carrier}: {each.coupling:.6g} kg m² ({each.ratio:.6g} times "
        f"{each.inertia:.6g}) between {each.joint} and the carrier's rotation"
        for each in errors.spins
    ]
    sections = [
        Section(
            "Armature: reflected inertia of the joints that move in the open tree",
            [Table(["joint", "armature", "least", "most", "best constant", "unit"], armatures)],
        ),
        Section(
            f"Approximation errors of the open tree: relative over {errors.samples} random states, "
            "median / worst",
            [Table(["dof", "mass matrix", "torque", "acceleration", ""], rows)],
        ),
        Section(
            "Between joints, where only tendons with armature say it (dense matrix, kg m²)",
            [Bullets([f"{names[i]}, {names[j]}: {dense[i, j]:.6g}" for i, j in pairs.tolist()])],
        ),
        Section("What no armature can say", [Bullets([*spinning, *turning])]),
        Section(keep_exact_title, [Bullets(errors.keep_exact)]),
        *(tree_sections(errors.tree) if errors.tree else ()),
    ]  # fmt: skip
    data = picked(errors, "robot", "file", "dof_names", "dense", "spins", armature="armatures")
    data["approximation_errors"] = _data(errors)
    if errors.tree:
        data["tree"] = picked(errors.tree, "kind", "verdict", "notes", "range", "errors", "lumped")
    return Document(errors.robot, errors.verdict, sections, data, errors.file, "armature")


def csv_of(errors: ApproximationErrors) -> str:
    """The armatures as CSV: joint, armature, low, high, best, unit."""
    lines = ["joint,armature,low,high,best,unit"]
    for each in errors.armatures:
        numbers = ",".join(repr(x) for x in (each.value, each.low, each.high, each.best))
        lines.append(f"{each.joint},{numbers},{each.unit}")
    return "\n".join(lines)


def _remark(row: DofErrors) -> str:
    if row.keep_exact:
        return "keep exact" + (", error at the tolerance" if row.uncertain else "")
    return f"by {', '.join(row.cause)}" if row.cause else ""


def _pair(error: Error) -> str:
    return f"{error.median:.2g} / {error.worst:.2g}"


def _percent(error: float) -> str:
    return f"{float(f'{100.0 * error:.2g}'):g} %" if math.isfinite(error) else "all bounds"


def approximation_errors(
    model: Model,
    *,
    samples: int = 200,
    seed: int = 0,
    tolerance: float = 0.1,
    progress: bool = True,
) -> ApproximationErrors:
    """Errors of approximating a robot by an open tree with constant armature.

    Errors of mass matrix, inverse and forward dynamics (``method="approximate"``) over random
    states, joint by joint, and the range of each joint's armature. If the states do not decide
    whether an error is above its limit, 4 and then 16 times as many are drawn. If one may be, each
    cluster is approximated alone to locate the cause. See docs/armature.md.

    Args:
        model: The robot.
        samples: Number of states at the start.
        seed: Seed of the states.
        tolerance: Joints with a median error above it, or ten times that in one of a hundred
            states, should not be approximated, or other joints that cause the error.
        progress: Show a bar on a terminal if it takes long.

    Returns:
        errors: The errors and armatures, and which joints should stay exact.

    Raises:
        ValueError: No open tree stands for the robot.

    Examples:
        >>> errors = rm.approximation_errors(rm.robots.load("belt_leg"), samples=20)
        >>> errors.keep_exact
        ('knee_link_joint', 'ankle_link_joint')
    """
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples}")
    for count in (samples * REFINED**n for n in range(ROUNDS)):
        q, v, a = states(model, count, seed, progress=progress)
        per_joint = errors(model, q, v, a)
        limits = [list(_limits([per_joint[quantity][:, i] for quantity in QUANTITIES], tolerance))
                  for i in range(model.nv)]  # fmt: skip
        if not any(_uncertain(each) for each in limits):
            break
    causes = _causes(model, [_exceeds(each) for each in limits], q, v, a)
    guilty = {dof for dofs in causes.values() for dof in dofs}
    rows = []
    for i, name in enumerate(model.dof_names):
        mass, torque, acceleration = (_error(per_joint[quantity][:, i]) for quantity in QUANTITIES)
        cause, uncertain = causes.get(name, ()), _uncertain(limits[i])
        rows.append(DofErrors(name, mass, torque, acceleration, name in guilty, cause, uncertain))
    whole = {quantity: per_joint[f"{quantity} as a whole"] for quantity in QUANTITIES[1:]}
    tau = dynamics.rnea(model, q, v, a, backend="numpy")
    with_tendons = dynamics.aba(model, q, v, tau, method="tendons", backend="numpy")
    exact = dynamics.aba(model, q, v, tau, backend="numpy")
    return ApproximationErrors(
        model.name,
        count,
        seed,
        tolerance,
        armatures(model, q),
        tuple(rows),
        _error(whole["torque"]),
        _error(whole["acceleration"]),
        model.dof_names,
        np.asarray(dynamics.armature(model, kind="dense", backend="numpy")),
        model.description.source.file,
        _error(_relative(with_tendons - exact, exact)),
        tuple(spins(model)),
        model,
    )


def states(
    model: Model, samples: int, seed: int, *, progress: bool = False
) -> tuple[Array, Array, Array]:
    """Random configurations within the limits, standard normal velocities and accelerations."""
    rng = np.random.default_rng(seed)
    draws = track("random states", range(samples), samples, progress)
    q = np.array([model.random_configuration(rng, base_pose="random") for _ in draws])
    v, a = rng.standard_normal((2, samples, model.nv))
    return q, v, a


# ---- verdicts ------------------------------------------------------------------------------------


def _limits(
    values: Sequence[Array], tolerance: float
) -> Iterator[tuple[Quantity, float, float, float]]:
    """The criteria of a joint: a quantity, bounds of a quantile of its error, its limit.

    Rare errors of accelerations are no criterion: singular states of other joints cause them.
    """
    for quantity, each in zip(QUANTITIES, values, strict=True):
        yield quantity, *_bounds(each, 0.5), tolerance
        if quantity != "acceleration":
            yield quantity, *_bounds(each, RARE), WORST * tolerance


def _bounds(values: Array, share: float) -> tuple[float, float]:
    """Confidence bounds of a quantile of the distribution of values, by the binomial's width."""
    ordered, n = np.sort(np.where(np.isnan(values), np.inf, values)), len(values)
    width = CONFIDENCE * math.sqrt(n * share * (1.0 - share))
    first, last = math.floor(n * share - width), math.ceil(n * share + width)
    return float(ordered[max(first, 0)]), float(ordered[min(last, n - 1)])


def _exceeds(limits: Sequence[tuple[Quantity, float, float, float]]) -> Quantity | None:
    """The quantity that is, or may be, farthest above its limit, relative to the limit."""
    shares = [(high / limit, quantity) for quantity, _, high, limit in limits if high > limit]
    return max(shares)[1] if shares else None


def _uncertain(limits: Sequence[tuple[Quantity, float, float, float]]) -> bool:
    """Whether all quantities that may exceed their limits may also be below."""
    above = [low > limit for _, low, high, limit in limits if high > limit]
    return bool(above) and not any(above)


def _causes(
    model: Model, exceeded: Sequence[Quantity | None], q: Array, v: Array, a: Array
) -> dict[str, tuple[str, ...]]:
    """For joints with an error above its limit, the cluster that alone makes most of it.

    Of several with nearly the same share, the one that makes most at other joints.
    """
    if not any(exceeded):
        return {}
    q, v, a = (x[:CAUSE_STATES] for x in (q, v, a))
    alone: dict[tuple[str, ...], dict[str, Array]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        for cluster in model.clusters:
            if cluster.kind != "joint":
                part = approximated_in_part(model, cluster)
                alone[model.dof_names[cluster.v]] = errors(part, q, v, a)
    sizes = {
        name: {each: _error(alone[each][quantity][:, i]).median for each in alone}
        for i, (name, quantity) in enumerate(zip(model.dof_names, exceeded, strict=True))
        if quantity is not None
    }
    most = {each: max(by[each] for by in sizes.values()) for each in alone}
    return {
        name: max(
            (each for each in by if by[each] >= WORST_SHARE * max(by.values())),
            key=most.__getitem__,
        )
        for name, by in sizes.items()
    }


def spins(model: Model) -> Iterator[CarriedRotor]:
    """The rotors of a robot on bodies that move."""
    for each in joint_inertias(model):
        for rotor, inertia, ratios in each.rotors:
            body = next(body for body in model.bodies if body.name == rotor)
            if body.parent in {other.name for other in model.bodies} and inertia > 0.0:
                fastest = int(np.argmax(np.abs(ratios)))
                ratio = float(ratios[fastest])
                joint = each.joints[fastest][0]
                yield CarriedRotor(rotor, body.parent, joint, inertia, ratio, inertia * ratio)


# ---- errors --------------------------------------------------------------------------------------


def errors(model: Model, q: Array, v: Array, a: Array) -> dict[str, Array]:
    """Relative errors at each state: (states, nv) by quantity, and (states,) of whole vectors.

    Of the mass matrix, at joint i: the largest |error of M_ij| / √(M_ii M_jj) over j. Of torques
    for the exact accelerations, and of accelerations under the exact torques: |error| over the
    root mean square of the exact value over the states.
    """
    # a few hundred states are not worth compiling for: backend="numpy" throughout
    exact = dynamics.crba(model, q, backend="numpy")
    zero = np.zeros((1, 1, model.nv))
    units = np.eye(model.nv)[None]
    at_rest = dynamics.rnea(model, q[:, None], zero, zero, method="approximate", backend="numpy")
    pushed = dynamics.rnea(model, q[:, None], zero, units, method="approximate", backend="numpy")
    error = np.abs(np.swapaxes(pushed - at_rest, 1, 2) - exact)
    root = np.sqrt(np.diagonal(exact, axis1=1, axis2=2))
    tau = dynamics.rnea(model, q, v, a, backend="numpy")
    torque = dynamics.rnea(model, q, v, a, method="approximate", backend="numpy") - tau
    push = dynamics.aba(model, q, v, tau, backend="numpy")
    acceleration = dynamics.aba(model, q, v, tau, method="approximate", backend="numpy") - push
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "mass_matrix": np.max(
                error / (root[:, :, None] * root[:, None, :]), axis=2, initial=0.0
            ),
            "torque": np.abs(torque) / _usual(tau),
            "acceleration": np.abs(acceleration) / _usual(push),
            "torque as a whole": _relative(torque, tau),
            "acceleration as a whole": _relative(acceleration, push),
        }


def _usual(values: Array) -> Array:
    """Root mean square over the states; 1 where a value is always zero."""
    size: Array = np.sqrt(np.mean(values * values, axis=0))
    return np.where(size > 0.0, size, 1.0)


def _relative(error: Array, exact: Array) -> Array:
    """Relative errors of whole vectors; zero where both vectors are equal."""
    size = np.asarray(np.linalg.norm(error, axis=1))
    of = np.linalg.norm(exact, axis=1)
    shares: Array = np.divide(size, of, out=np.zeros_like(size), where=size != 0.0)
    return shares


def _error(values: Array) -> Error:
    """Median and worst; singular states, not-a-number, count as infinite errors."""
    values = np.where(np.isnan(values), np.inf, values)
    return Error(float(np.median(values)), float(np.max(values)))


# ---- armature over the joint limits --------------------------------------------------------------


def armatures(model: Model, q: Array) -> tuple[Armature, ...]:
    """The armature of every joint of the open tree over the configurations q (states, nq)."""
    values_in_file = {joint.name: joint.armature for joint in approximate(model).joints}
    dense = dynamics.armature(model, q, kind="dense", backend="numpy")
    g = model.constraint_jacobian(q)
    result = []
    for cluster in model.clusters:
        bodies = [body for body in cluster.bodies if body in select(model).moving]
        rows = [v for body in bodies for v in model.nodes[body].freedoms]
        block, map_to_tree = dense[:, cluster.v, cluster.v], g[:, rows, cluster.v]
        if not np.array_equal(map_to_tree, np.broadcast_to(np.eye(len(rows)), map_to_tree.shape)):
            inverse = inverses(map_to_tree)
            block = np.swapaxes(inverse, 1, 2) @ block @ inverse
            block = block[np.isfinite(block).all(axis=(1, 2))]
        at = 0
        for body in bodies:
            joint = model.joints[body]
            if joint.nv == 1 or joint.type == "spherical":
                values = np.mean(
                    np.diagonal(block, axis1=1, axis2=2)[:, at : at + joint.nv], axis=1
                )
                value = values_in_file[joint.name]
                result.append(_armature(joint.name, value, values, joint.units.inertia))
            at += joint.nv
    return tuple(result)


def _armature(joint: str, value: float, values: Array, unit: str) -> Armature:
    if not len(values):
        return Armature(joint, value, math.nan, math.nan, math.nan, False, unit)
    low, high = float(np.min(values)), float(np.max(values))
    if high - low <= NOTHING * max(
        abs(high), abs(low)
    ):  # to the last digit, where it is one number
        return Armature(joint, value, value, value, value, True, unit)
    best = max(0.0, float(np.mean(values)))
    return Armature(joint, value, low, high, best, False, unit)


# ---- MuJoCo's soft constraints -------------------------------------------------------------------
#
# MuJoCo enforces loops and couplings by soft constraints, similar to springs and dampers. So its
# accelerations at closed states differ from those of the mechanism; this measures by how much.

SIMPLE = ("revolute", "continuous", "prismatic", "spherical", "floating")
"""The types of joints that are the same in both."""


@dataclass(frozen=True, slots=True)
class SoftConstraintErrors:
    """Errors of MuJoCo's accelerations, ‖error‖ / ‖exact‖ over all joints, at closed states."""

    samples: int
    median: float
    worst: float


def soft_constraint_errors(
    model: Model, path: str, *, samples: int = 20, seed: int = 0
) -> SoftConstraintErrors | None:
    """Errors of the MJCF file at ``path``, written from ``model``; None if they cannot be measured.

    None without MuJoCo, and for robots with joints that MuJoCo has as several. Measured without
    contacts, limits, friction and damping, which the exact model does not have.
    """
    if any(loop.type in ("prismatic", "planar") for loop in model.description.loops):
        return None  # MuJoCo's file has an additional body for a sliding loop
    if any(joint.type not in SIMPLE for joint in model.joints):
        return None
    try:
        import mujoco
    except ImportError:
        return None
    written = mujoco.MjModel.from_xml_path(path)
    for flag in ("CONTACT", "LIMIT", "FRICTIONLOSS", "ACTUATION", "PASSIVE", "SPRING", "DAMPER"):
        written.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}", 0))
    data = mujoco.MjData(written)
    rng = np.random.default_rng(seed)
    errors = []
    for _ in range(samples):
        q = model.random_configuration(rng, base_pose="random")
        v, tau = rng.standard_normal((2, model.nv))
        a = dynamics.aba(model, q, v, tau, backend="numpy")
        data.qpos[:], data.qvel[:], exact, data.qfrc_applied[:] = model.to_order(
            "mujoco", q, v, a=a, tau=tau, joints=written
        )
        mujoco.mj_forward(written, data)
        errors.append(float(np.linalg.norm(data.qacc - exact) / np.linalg.norm(exact)))
    return SoftConstraintErrors(samples, float(np.median(errors)), float(np.max(errors)))


# ---- armatures written into files ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DrakeRotor:
    """A rotor's inertia about its axis, and its ratio to its joint."""

    inertia: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Annotated:
    """The new text of a file, the joints that were written, and those that the file lacks."""

    text: str
    written: tuple[str, ...]
    missing: tuple[str, ...]


def annotate_mjcf(text: str, file: str, armature: Mapping[str, float]) -> Annotated:
    """An MJCF file with ``armature=`` on its joints of these names."""
    markup = Markup(text, file, "mujoco")
    written = []
    for tag in markup.root.walk():
        name = tag.attributes.get("name", "")
        if tag.name == "joint" and name in armature and _in_a_body(tag):
            markup.set(tag, "armature", number(armature[name]))
            written.append(name)
    return _annotated(markup, written, armature)


def _in_a_body(tag: Tag) -> bool:
    """Whether a joint is a body's: joints of defaults, equalities and sensors are references."""
    return tag.parent is not None and tag.parent.name in ("body", "frame", "replicate")


def annotate_drake(text: str, file: str, rotors: Mapping[str, DrakeRotor]) -> Annotated:
    """A URDF file with Drake's rotor_inertia and gear_ratio in the actuators of these joints.

    Joints without a simple transmission get one.
    """
    markup = Markup(text, file, "robot")
    root = markup.root
    joints = {joint.attributes.get("name") for joint in root.all("joint")}
    names = {each.attributes.get("name") for each in root.all("transmission")}
    written = [joint for joint in rotors if joint in joints]
    if written and "xmlns:drake" not in root.attributes:
        markup.set(root, "xmlns:drake", DRAKE)
    for joint in written:
        rotor = rotors[joint]
        tags = {"rotor_inertia": number(rotor.inertia), "gear_ratio": number(abs(rotor.ratio))}
        actuator = _actuator(root, joint)
        if actuator is None:
            markup.append(root, _transmission(joint, tags, names))
            continue
        missing = []
        for tag, value in tags.items():
            elements = actuator.all(f"drake:{tag}")
            if elements:
                markup.set(elements[0], "value", value)
            else:
                missing.append(f'<drake:{tag} value="{value}"/>')
        if missing:
            markup.append(actuator, *missing)
    return _annotated(markup, written, rotors)


def _actuator(root: Tag, joint: str) -> Tag | None:
    """The actuator of the joint's simple transmission, if there is one."""
    for transmission in root.all("transmission"):
        ends, actuators = transmission.all("joint"), transmission.all("actuator")
        kinds = [each.text for each in transmission.all("type")]
        kind = (kinds[0] if kinds else transmission.attributes.get("type", SIMPLE_TYPE)).strip()
        simple = kind.endswith("SimpleTransmission") and len(actuators) == 1
        if simple and [end.attributes.get("name") for end in ends] == [joint]:
            return actuators[0]
    return None


def _transmission(joint: str, tags: Mapping[str, str], names: set[str | None]) -> str:
    """The text of a simple transmission of a joint; its name is added to ``names``."""
    name = f"{joint}_transmission"
    while name in names:
        name += "_"
    names.add(name)
    parts = "".join(f'\n    <drake:{tag} value="{value}"/>' for tag, value in tags.items())
    return (
        f"<transmission name={quoted(name)}>\n"
        f"  <type>{SIMPLE_TYPE}</type>\n"
        f"  <joint name={quoted(joint)}>\n"
        "    <hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface>\n"
        "  </joint>\n"
        f"  <actuator name={quoted(f'{joint}_actuator')}>{parts}\n"
        "  </actuator>\n"
        "</transmission>"
    )


def drake_rotors(model: Model, armature: Mapping[str, float]) -> dict[str, DrakeRotor]:
    """The rotor and gear with these armatures; ratio 1 for joints without a rotor of their own."""
    of_joint: dict[str, list[DrakeRotor]] = {}
    for rotor in CheckContext(model).rotors:
        for joint, ratio in rotor.ratios.items():
            of_joint.setdefault(joint, []).append(DrakeRotor(rotor.inertia, ratio))
    result = {}
    for joint, value in armature.items():
        rotors = of_joint.get(joint, [])
        geared = len(rotors) == 1 and math.isclose(
            rotors[0].ratio ** 2 * rotors[0].inertia, value, rel_tol=SAME
        )
        result[joint] = rotors[0] if geared else DrakeRotor(value, 1.0)
    return result


def _annotated(markup: Markup, written: list[str], names: Mapping[str, object]) -> Annotated:
    missing = tuple(name for name in names if name not in written)
    return Annotated(markup.text(), tuple(written), missing)
