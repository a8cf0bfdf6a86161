"""Armatures of a robot's open tree, its errors with links as they are and fitted, and files.

The errors and verdicts are those of :class:`robomodel.opentree.tree.OpenTree`. Armatures are
written into MJCF (the attribute) and URDF (Drake's tags), text in, text out: nothing else in the
text changes (:class:`Markup`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from robomodel import dynamics
from robomodel.arrays import Array
from robomodel.dynamics.kinematics.state import on_arrays
from robomodel.dynamics.lumped import joint_inertias, reflected
from robomodel.model import Model
from robomodel.opentree.armatures import Armature, armatures
from robomodel.opentree.errors import FAIR, percent
from robomodel.opentree.tree import OpenTree, advised_tree
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
from robomodel.reports.simulators import tree_data, tree_sections
from robomodel.reports.validation.context import CheckContext
from robomodel.tolerances import NOTHING, SAME, TINY
from robomodel.vocabulary.markup import Markup, Tag
from robomodel.vocabulary.motors import EFFORT_INTERFACE, SIMPLE_TYPE
from robomodel.vocabulary.schema import number
from robomodel.vocabulary.xml import DRAKE, quoted


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
    """The open tree of a robot with links as they are, and fitted; docs/armature.md.

    Attributes:
        robot: The robot's name.
        tolerance: The median error above which a joint should not be approximated.
        armatures: The range of each joint's armature.
        judged: The tree, with the file's limits and without motors.
        spins: Rotors on moving carriers, whose effect no armature describes.
        dof_names: Names of the robot's independent velocities.
        dense: The reflected inertia between them at the neutral configuration (nv, nv).
        file: The robot's file.
    """

    robot: str
    tolerance: float
    armatures: tuple[Armature, ...]
    judged: OpenTree
    spins: tuple[CarriedRotor, ...]
    dof_names: tuple[str, ...]
    dense: Array
    file: str

    @property
    def tree(self) -> OpenTree:
        """The tree of :func:`robomodel.approximate_tree`."""
        return self.judged.limited

    @property
    def lumped(self) -> OpenTree:
        """The same with links as they are, beside which the armatures stand."""
        return self.tree.lumped or self.tree

    @property
    def keep_exact(self) -> tuple[str, ...]:
        """Joints whose median error with armature and links as they are is above the tolerance."""
        return tuple(
            name
            for name, error in _beside(self.judged).errors.items()
            if error.median > self.tolerance
        )

    @property
    def verdict(self) -> str:
        """The sentence on the tree's use, with links as they are and as it is written."""
        if self.judged.lumped is None:
            return self.judged.said
        return (
            f"with armature beside links as they are, {self.judged.lumped.said}. As `convert "
            f"--approximate` writes it, {self.judged.said}"
        )

    @cached_property
    def document(self) -> Document:
        """The report as text, JSON and a page."""
        return _document(self)

    def as_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, numbers and strings; None stands for not finite."""
        result: dict[str, Any] = plain(_data(self))
        return result


def _beside(tree: OpenTree) -> OpenTree:
    """The tree with links as they are."""
    return tree.lumped or tree


def _data(errors: ApproximationErrors) -> dict[str, Any]:
    joints = {name: {"lumped": error, "tree": errors.judged.errors.get(name)}
              for name, error in _beside(errors.judged).errors.items()}  # fmt: skip
    return {**picked(errors, "tolerance", "keep_exact", "verdict"), "joints": joints}


def _document(errors: ApproximationErrors) -> Document:
    """Armatures, both trees' errors, inertia between joints, and the verdicts."""
    armatures: list[list[Cell]] = [
        [each.joint, each.value, None, None, None, each.unit]
        if each.constant
        else [
            each.joint,
            each.value,
            each.low,
            "no end" if math.isinf(each.high) else each.high,
            each.best if math.isfinite(each.best) else "none",
            each.unit,
        ]
        for each in errors.armatures
    ]
    turning = [
        f"{each.joint}: {each.words} {each.unit}, the ratio turns with it"
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
            "Armature: reflected inertia of the joints that move in the open tree, beside links as "
            "they are",
            [Table(["joint", "armature", "least", "most", "best constant", "unit"], armatures)],
        ),
        *tree_sections(errors.judged),
        Section(
            "Between joints, where only tendons with armature say it (dense matrix, kg m²)",
            [Bullets(list(_between(errors.judged.basis.view)))],
        ),
        Section("What no armature can say", [Bullets([*spinning, *turning])]),
        Section(
            f"With links as they are off by more than {percent(errors.tolerance)} in the median",
            [Bullets(errors.keep_exact)],
        ),
    ]
    data = picked(errors, "robot", "file", "dof_names", "dense", "spins", armature="armatures")
    data["approximation_errors"] = _data(errors)
    data["tree"] = tree_data(errors.judged)
    return Document(errors.robot, errors.verdict, sections, data, errors.file, "armature")


def _between(view: Model) -> Iterator[str]:
    """The reflected inertia at neutral between joints of one freedom that move in the tree."""
    for each in joint_inertias(view):
        size = NOTHING * np.max(np.abs(each.matrix), initial=TINY)
        for i, j in np.argwhere(np.triu(np.abs(each.matrix) > size, 1)).tolist():
            (one, single), (other, alone) = each.joints[i], each.joints[j]
            if single and alone:
                yield f"{one}, {other}: {each.matrix[i, j]:.6g}"


def csv_of(errors: ApproximationErrors) -> str:
    """The armatures as CSV: joint, armature, low, high, best, unit."""
    lines = ["joint,armature,low,high,best,unit"]
    for each in errors.armatures:
        numbers = ",".join(repr(x) for x in (each.value, each.low, each.high, each.best))
        lines.append(f"{each.joint},{numbers},{each.unit}")
    return "\n".join(lines)


def approximation_errors(
    model: Model, *, samples: int = 200, seed: int = 0, tolerance: float = FAIR
) -> ApproximationErrors:
    """Errors of a robot's open tree with armature beside links as they are, and as it is written.

    Both trees have the same joints and states, and one measure: that of ``tree.errors``, see
    :func:`robomodel.approximate_tree`. Each joint's armature comes with its range on the sheet of
    the joints that carry the limbs.

    Args:
        model: The robot.
        samples: Number of configurations for the range of armatures.
        seed: Their seed.
        tolerance: Joints with a larger median error should not be approximated by armature.

    Returns:
        errors: Both trees with their errors and verdicts, armatures, and which joints should stay
            exact.

    Raises:
        ValueError: No open tree stands for the robot.

    Examples:
        >>> errors = rm.approximation_errors(rm.robots.load("belt_leg"))
        >>> errors.lumped.verdict.startswith("with care"), errors.tree.verdict.startswith("will do")
        (True, True)
    """
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples}")
    tree = advised_tree(model)
    lumped = _beside(tree)
    view = tree.basis.view
    return ApproximationErrors(
        model.name,
        tolerance,
        armatures(lumped, samples=samples, seed=seed),
        tree,
        tuple(spins(view)) if lumped.kind != "exact" else (),
        view.dof_names,
        on_arrays(reflected, view, view.neutral()[None])[0],
        model.description.source.file,
    )


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


# ---- MuJoCo's soft constraints -------------------------------------------------------------------
#
# MuJoCo enforces loops and couplings by soft constraints, similar to springs and dampers. So its
# accelerations at closed states differ from those of the mechanism; this measures by how much.

SIMPLE = ("revolute", "continuous", "prismatic", "spherical", "floating")
"""Types of joints that MuJoCo has as one joint, as this package does."""


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
    """True if a joint is a body's: joints of defaults, equalities and sensors are references."""
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
        f"    <hardwareInterface>{EFFORT_INTERFACE}</hardwareInterface>\n"
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
