"""Algorithms traced on one robot: the program, and its key among kernels."""

from __future__ import annotations

from dataclasses import fields

from robomodel.dynamics.algorithms import Task
from robomodel.dynamics.sources import sources
from robomodel.kernels.cache import spelled
from robomodel.kernels.program import Program
from robomodel.kernels.trace import Trace
from robomodel.model.derived import cached_on_model
from robomodel.model.model import Model


def trace(model: Model, task: Task) -> Program:
    """The algorithm as a straight-line program on this robot; inputs and outputs in order."""
    traced = Trace()
    arguments = {name: traced.inputs(size) for name, size in task.sizes(model).items()}
    return traced.program(task.run(task.tree(model), arguments)).fused()


def content(model: Model, what: str) -> str:
    """All that makes a program: the robot, what is asked of it, and the text of this package.

    The robot as it was built, not only as it was described: which of a loop's joints are
    independent is a decision by rank, which other releases of NumPy may take otherwise.
    """
    return f"{_spelled(model)}{what}{sources()}"


@cached_on_model
def _spelled(model: Model) -> str:
    names = [each.name for each in fields(model) if each.name != "notes"]
    return spelled([getattr(model, name) for name in names])
