"""Studies of a model: what is wrong with it, and what approximating it costs.

Nothing of a study is imported before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robomodel.model import Model
    from robomodel.studies.pricing import Price
    from robomodel.studies.report import Report

__all__ = ["price", "validate"]


def validate(model: object, **options: Any) -> Report:
    """Look for what is wrong or odd in a robot: a :class:`~robomodel.model.Model` or its file.

    Checked are structure, closing of loops, singularities within the joint limits, the choice of
    independent coordinates, transmissions, inertias, limits and units; docs/validate.md lists the
    checks. Findings are errors, warnings or notes, each with its place in the file, its number and
    a remedy. What is not a model is loaded with ``options`` (those of :func:`robomodel.load`); its
    warnings are findings, and a file that does not load makes a report of that one error.
    """
    from robomodel.studies.checks import study

    return study(model, **options)


def price(
    model: Model,
    *,
    samples: int = 200,
    seed: int = 0,
    tolerance: float = 0.1,
    progress: bool = True,
) -> Price:
    """What it costs to approximate a robot by an open tree with constant armature.

    Errors of mass matrix, inverse and forward dynamics (``method="approximate"``) over ``samples``
    random states, joint by joint, and the range of each joint's armature there. Joints with a
    median error above ``tolerance``, or ten times that at worst, should not be approximated. See
    docs/armature.md. ``progress`` shows a bar on a terminal when it takes long. Raises
    ValueError where no open tree stands for the robot.
    """
    from robomodel.studies.pricing import study

    return study(model, samples=samples, seed=seed, tolerance=tolerance, progress=progress)
