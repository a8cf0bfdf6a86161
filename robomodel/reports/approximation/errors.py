"""Approximation errors of an open tree with constant armature, joint by joint.

Errors are measured in the robot's own independent velocities, over random states, against the exact
model: the mass matrix, the torques of inverse dynamics, the accelerations of forward dynamics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from robomodel import dynamics
from robomodel.dynamics.actuators.envelopes import inverses
from robomodel.model import Model
from robomodel.model.approximate import approximate, select
from robomodel.model.joints import Array
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
from robomodel.running import track

Quantity = Literal["mass_matrix", "torque", "acceleration"]

QUANTITIES: tuple[Quantity, ...] = ("mass_matrix", "torque", "acceleration")

_NAMED = 4  # of the joints that a sentence is about
WORST = 10.0  # times the tolerance: what the worst error of mass matrix and torque may be


@dataclass(frozen=True, slots=True)
class Error:
    """Of one quantity at one joint: median and worst over the states, relative."""

    median: float
    worst: float


@dataclass(frozen=True, slots=True)
class Armature:
    """The reflected inertia at a joint that moves in the open tree [kg m², or kg where it slides].

    ``value`` is that of the open tree: at the neutral configuration, and not below zero. ``low``,
    ``high`` and ``best``, the constant of least mean square error, are over the states within the
    limits; ``constant`` where they are one number.
    """

    joint: str
    value: float
    low: float
    high: float
    best: float
    constant: bool
    unit: str


@dataclass(frozen=True, slots=True)
class Row:
    """The errors at an independent velocity, and whether they forbid to approximate it."""

    dof: str
    mass_matrix: Error
    torque: Error
    acceleration: Error
    keep_exact: bool


@dataclass(frozen=True, eq=False)
class ApproximationErrors(HasDocument):
    """Errors of the open tree; see docs/armature.md for how errors are made relative.

    Attributes:
        robot: The robot's name.
        samples: How many states there were.
        seed: Seed of the states.
        tolerance: The median error above which a joint should not be approximated.
        armatures: The range of each joint's armature.
        rows: The errors at each independent velocity.
        torque: Error of the whole vector, ‖error‖ / ‖exact‖.
        acceleration: The same of accelerations.
        dof_names: Names of the independent velocities.
        dense: The reflected inertia between them at the neutral configuration (nv, nv).
        file: The robot's file.
    """

    robot: str
    samples: int
    seed: int
    tolerance: float
    armatures: tuple[Armature, ...]
    rows: tuple[Row, ...]
    torque: Error
    acceleration: Error
    dof_names: tuple[str, ...]
    dense: Array
    file: str

    @property
    def keep_exact(self) -> tuple[str, ...]:
        """The independent velocities that should not be approximated."""
        return tuple(row.dof for row in self.rows if row.keep_exact)

    @property
    def verdict(self) -> str:
        """One sentence: whether a tree with armature will do, and how far it is off."""
        worst = max(self.torque.worst, self.acceleration.worst)
        if worst == 0.0:
            return "Armature is exact: nothing of the robot is approximated"
        off = (
            f"torques are off by {_percent(self.torque.median)} in the median "
            f"({_percent(self.torque.worst)} at worst), accelerations by "
            f"{_percent(self.acceleration.median)} ({_percent(self.acceleration.worst)})"
        )
        wrong = self.keep_exact
        if not wrong:
            return f"Armature will do: {off}"
        more = f" and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
        names = ", ".join(wrong[:_NAMED]) + more
        return (
            f"Armature will not do for {len(wrong)} of {len(self.rows)} freedoms, which should "
            f"stay exact ({names}): {off}"
        )

    @cached_property
    def document(self) -> Document:
        """The report as text, JSON and a page."""
        return _document(self)

    def as_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, numbers and strings; None is not finite."""
        result: dict[str, Any] = plain(_data(self))
        return result


def _data(errors: ApproximationErrors) -> dict[str, Any]:
    names = ("samples", "seed", "tolerance", "torque", "acceleration", "keep_exact", "verdict")
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
         "keep exact" if row.keep_exact else ""]
        for row in errors.rows
    ]  # fmt: skip
    rows.append(["all", "", _pair(errors.torque), _pair(errors.acceleration), ""])
    dense, names = errors.dense, errors.dof_names
    pairs = np.argwhere(np.triu(np.abs(dense) > 1e-12 * np.max(np.abs(dense), initial=1e-300), 1))
    kept = (
        f"Should not be approximated (median error above {errors.tolerance:g}, or ten times "
        "that at worst)"
    )
    sections = [
        Section("Armature", [Table(["joint", "armature", "least", "most", "best constant", "unit"],
                                   armatures)]),
        Section(
            f"Approximation errors of the open tree: relative over {errors.samples} random states, "
            "median / worst",
            [Table(["dof", "mass matrix", "torque", "acceleration", ""], rows)],
        ),
        Section(
            "Between joints, where no armature says it (dense matrix, kg m²)",
            [Bullets([f"{names[i]}, {names[j]}: {dense[i, j]:.6g}" for i, j in pairs.tolist()])],
        ),
        Section(kept, [Bullets(errors.keep_exact)]),
        Section("", ["", errors.verdict]),
    ]  # fmt: skip
    data = picked(errors, "robot", "file", "dof_names", "dense", armature="armatures")
    data["approximation_errors"] = _data(errors)
    summary = "reflected inertia of the joints that move in the open tree"
    return Document(errors.robot, summary, sections, data, errors.file, "approximation")


def csv_of(errors: ApproximationErrors) -> str:
    """The armatures as CSV: joint, armature, low, high, best, unit."""
    lines = ["joint,armature,low,high,best,unit"]
    for each in errors.armatures:
        numbers = ",".join(repr(x) for x in (each.value, each.low, each.high, each.best))
        lines.append(f"{each.joint},{numbers},{each.unit}")
    return "\n".join(lines)


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
    """What it costs to approximate a robot by an open tree with constant armature.

    Errors of mass matrix, inverse and forward dynamics (``method="approximate"``) over random
    states, joint by joint, and the range of each joint's armature there. See docs/armature.md.

    Args:
        model: The robot.
        samples: How many states.
        seed: Of the states.
        tolerance: Joints with a median error above it, or ten times that at worst, should not be
            approximated.
        progress: Show a bar on a terminal when it takes long.

    Returns:
        errors: The errors and armatures, and which joints should stay exact.

    Raises:
        ValueError: No open tree stands for the robot.
    """
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples}")
    rng = np.random.default_rng(seed)
    draws = track("random states", range(samples), samples, progress)
    q = np.array([model.random_configuration(rng) for _ in draws])
    v, a = rng.standard_normal((2, samples, model.nv))
    per_joint = errors(model, q, v, a)
    rows = tuple(
        _row(name, [per_joint[quantity][:, i] for quantity in QUANTITIES], tolerance)
        for i, name in enumerate(model.dof_names)
    )
    whole = {quantity: per_joint[f"{quantity} as a whole"] for quantity in QUANTITIES[1:]}
    return ApproximationErrors(
        model.name,
        samples,
        seed,
        tolerance,
        armatures(model, q),
        rows,
        _error(whole["torque"]),
        _error(whole["acceleration"]),
        model.dof_names,
        np.asarray(dynamics.armature(model, kind="dense", backend="numpy")),
        model.description.source.file,
    )


def errors(model: Model, q: Array, v: Array, a: Array) -> dict[str, Array]:
    """Relative errors at each state: (states, nv) by quantity, and (states,) of whole vectors.

    Mass matrix, of joint i: the largest |error of M_ij| / √(M_ii M_jj) over j. Torque of the exact
    accelerations, and acceleration under the exact torques: |error| over the root mean square of
    the exact value over the states.
    """
    # a few hundred states are not worth compiling for: backend="numpy" throughout
    exact = dynamics.crba(model, q, backend="numpy")
    rest = np.zeros((1, 1, model.nv))
    units = np.eye(model.nv)[None]
    at_rest = dynamics.rnea(model, q[:, None], rest, rest, method="approximate", backend="numpy")
    pushed = dynamics.rnea(model, q[:, None], rest, units, method="approximate", backend="numpy")
    off = np.abs(np.swapaxes(pushed - at_rest, 1, 2) - exact)
    root = np.sqrt(np.diagonal(exact, axis1=1, axis2=2))
    tau = dynamics.rnea(model, q, v, a, backend="numpy")
    torque = dynamics.rnea(model, q, v, a, method="approximate", backend="numpy") - tau
    push = dynamics.aba(model, q, v, tau, backend="numpy")
    acceleration = dynamics.aba(model, q, v, tau, method="approximate", backend="numpy") - push
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "mass_matrix": np.max(off / (root[:, :, None] * root[:, None, :]), axis=2, initial=0.0),
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
    """Of whole vectors; 0 where there is no error, as of a robot without a freedom."""
    size = np.asarray(np.linalg.norm(error, axis=1))
    return np.where(size == 0.0, 0.0, size / np.linalg.norm(exact, axis=1))


def _error(values: Array) -> Error:
    """Singular states, where nothing is a number, count as infinitely wrong."""
    values = np.where(np.isnan(values), np.inf, values)
    return Error(float(np.median(values)), float(np.max(values)))


def _row(name: str, values: Sequence[Array], tolerance: float) -> Row:
    mass, torque, acceleration = (_error(each) for each in values)
    usual = max(mass.median, torque.median, acceleration.median)
    worst = max(mass.worst, torque.worst)  # accelerations suffer from other joints' errors too
    wrong = usual > tolerance or worst > WORST * tolerance
    return Row(name, mass, torque, acceleration, wrong)


# ---- armature over the joint limits --------------------------------------------------------------


def armatures(model: Model, q: Array) -> tuple[Armature, ...]:
    """Of every joint that moves in the open tree, over the configurations q (states, nq)."""
    values_in_file = {joint.name: joint.armature for joint in approximate(model).joints}
    dense = dynamics.armature(model, q, kind="dense", backend="numpy")
    g = model.constraint_jacobian(q)
    result = []
    for cluster in model.clusters:
        bodies = [body for body in cluster.bodies if body in select(model).moving]
        rows = [v for body in bodies for v in model.nodes[body].freedoms]
        block, kept = dense[:, cluster.v, cluster.v], g[:, rows, cluster.v]
        if not np.array_equal(kept, np.broadcast_to(np.eye(len(rows)), kept.shape)):
            inverse = inverses(kept)
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
    if high - low <= 1e-12 * max(abs(high), abs(low)):  # to the last digit, where it is one number
        return Armature(joint, value, value, value, value, True, unit)
    best = max(0.0, float(np.mean(values)))
    return Armature(joint, value, low, high, best, False, unit)
