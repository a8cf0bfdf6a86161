"""Studies of a model: what is wrong with it, what its motors can, what approximating it costs.

Nothing of a study is imported before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robomodel.dynamics.kinematics.frames import FrameLike
    from robomodel.model import Model
    from robomodel.studies.actuators.study import Actuation
    from robomodel.studies.approximation.errors import ApproximationErrors
    from robomodel.studies.validation.report import Report

__all__ = ["actuation", "price", "validate"]


def validate(model: object, **options: Any) -> Report:
    """Look for what is wrong or odd in a robot.

    Checked are structure, closing of loops, singularities within the joint limits, the choice of
    independent coordinates, transmissions, inertias, limits and units; docs/validate.md lists the
    checks. Findings are errors, warnings or notes, each with its place in the file, its number and
    a remedy.

    Args:
        model: A :class:`~robomodel.model.Model`, or its file, which is loaded; its warnings are
            findings, and a file that does not load makes a report of that one error.
        **options: Those of :func:`robomodel.load`, for what is not a model.

    Returns:
        report: The findings.
    """
    from robomodel.studies.validation.study import study

    return study(model, **options)


def actuation(
    model: Model, *, foot: FrameLike | None = None, joints: Sequence[str] = ()
) -> Actuation:
    """What motors can do through gears and linkages, over the range of the joints.

    The ratio of every actuator; torque, speed and range that reach each joint, with the limits that
    hide behind gears and linkages, and those that a file of the open tree should have (``robomodel
    convert --approximate`` writes them); class and transmission angle of four-bars; the polygons of
    what joints that share motors get together. docs/actuation.md explains the numbers.

    Args:
        model: The robot.
        foot: A link, or (link, offset), whose workspace is found, with its singular curves, while
            two ``joints`` move.
        joints: These two, by default the last two that move it.

    Returns:
        actuation: The numbers.

    Raises:
        UnknownNameError: An unknown link.
        ValueError: Joints that cannot be moved so.
    """
    from robomodel.studies.actuators.study import study

    return study(model, foot=foot, joints=joints)


def price(
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
    from robomodel.studies.approximation.errors import study

    return study(model, samples=samples, seed=seed, tolerance=tolerance, progress=progress)
