"""The base of controllers: robot, tasks, damping, solver, and checks of arguments."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from robomodel.arrays import Array
from robomodel.control.quadratic import solver_of
from robomodel.control.tasks import Task, TaskSet
from robomodel.dynamics.algorithm import CommonDocumentation, completed
from robomodel.errors import as_real, no_model
from robomodel.kernels.compile import NoCompilerError
from robomodel.kernels.function import TracedFunction
from robomodel.model.configurations.states import check_finite
from robomodel.model.elements import position_names
from robomodel.model.model import Model

MISFIT = 1e-10  # squared error of a target's axes up to which they count as orthonormal
UNDETERMINED_GROWTH = 1e8
"""Σ G² above which programmes are in tangent coordinates: near a dead point independent coordinates
do not determine a linkage's motion, and amplify rounding by that factor."""
COMMON = CommonDocumentation(
    {},
    """
    model: The robot.
    tasks: The tasks to follow.
    solver: "daqp", or a solver of the package qpsolvers.
""",
    raises="""Raises:
    UnknownNameError: A link, joint or actuator that the model does not have.
    MissingPackageError: The solver is one of qpsolvers', which is not installed.
""",
)


class Controller:
    """Tasks of a robot; each call makes and solves a quadratic programme."""

    def __init_subclass__(cls) -> None:
        """Add the documentation of common arguments and errors."""
        cls.__doc__ = completed(cls.__doc__ or "", inspect.signature(cls), COMMON)

    def __init__(
        self,
        model: Model,
        tasks: Task | Iterable[Task],
        damping: float,
        solver: str,
        **options: Any,
    ) -> None:
        if not isinstance(model, Model):
            raise no_model(model)
        self.model = model
        self.damping = as_real(damping, "damping")
        if not 0.0 < self.damping < math.inf:
            raise ValueError(f"damping is a positive number, got {damping!r}")
        self._options = {**options, "damping": damping, "solver": solver}
        self._tasks = TaskSet(model, tasks)
        self._solver = solver_of(solver)

    def compile(self) -> None:
        """Compile all functions of calls, those for dead points too: before a loop in real time."""
        for function in self._functions():
            with suppress(NoCompilerError):
                function.kernel()

    def _functions(self) -> list[TracedFunction]:
        """The functions that calls evaluate."""
        return []

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Its tasks."""
        return self._tasks.tasks

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **self._options), (self.model, self.tasks)

    def __repr__(self) -> str:
        names = ", ".join(f"'{task.name}'" for task in self.tasks)
        return f"<{type(self).__name__} of '{self.model.name}': {names}>"

    def _refuse(self, q: Array, targets: Array, v: Array | None = None) -> None:
        """Raises ValueError for numbers that are not finite, and for targets that are no poses."""
        check_finite(q, "q", position_names(self.model))
        if v is not None:
            check_finite(v, "v", self.model.dof_names)
        self._tasks.refuse(targets)
