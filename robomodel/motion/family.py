"""Robots of one model that differ in the values of some parameters, arguments of their programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Concatenate

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.recursions.passive import is_absent
from robomodel.kernels.function import TracedFunction
from robomodel.kernels.program import Dtype
from robomodel.model.model import Model
from robomodel.model.parameters import counted, of_geometry, parameterized
from robomodel.motion.integrator_functions import function
from robomodel.scalars import Scalar, Vector

LEAST = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Family:
    """A model, and the names of parameters of which each robot of a batch has its own values."""

    model: Model
    parameters: tuple[str, ...] = ()
    backend: str = "compiled"

    def at(self, values: Vector) -> Model:
        """The robot with these values, scalars of any kind.

        Zero friction becomes the least positive number, so that its row in states and problems
        stays.
        """
        given = {
            name: LEAST if name.endswith(".friction") and is_absent(value) else value
            for name, value in zip(self.parameters, values, strict=True)
        }
        return replace(parameterized(self.model, given), _nominal=self.model)

    def robots(self, p: Array) -> Model:
        """The model with values (..., count) of its geometry, whose numbers are arrays (...)."""
        names = of_geometry(self.model, self.parameters)
        given = {name: p[..., self.parameters.index(name)] for name in names}
        return parameterized(self.model, given) if given else self.model

    @cached_property
    def counted(self) -> Model:
        """The model on which all parameters count, also friction that the file lacks."""
        return counted(self.model, self.parameters)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of the argument that programs have for the values, if there are some."""
        return (len(self.parameters),) if self.parameters else ()

    def rows(self, p: Array, batch: tuple[int, ...], dtype: Dtype) -> tuple[Array, ...]:
        """The argument for a batch of programs, from values (..., count)."""
        if not self.parameters:
            return ()
        count = len(self.parameters)
        return (np.broadcast_to(p.astype(dtype), (*batch, count)).reshape(-1, count),)

    def program(
        self, name: str, sizes: Sequence[int],
        build: Callable[Concatenate[Model, ...], Sequence[Scalar]], behind: int = 0,
        **options: Any,
    ) -> TracedFunction:  # fmt: skip
        """The program that ``build`` writes on a robot and arguments.

        Args:
            name: Identifies it on this model, together with the parameters.
            sizes: Lengths of the arguments, values of parameters included, and of the result.
            build: Takes the robot and the other arguments.
            behind: Number of arguments that follow the values of parameters.
            options: Of the function.
        """

        def by_values(*inputs: Vector) -> Sequence[Scalar]:
            if not self.parameters:
                return build(self.model, *inputs)
            p = len(inputs) - 1 - behind
            return build(self.at(inputs[p]), *inputs[:p], *inputs[p + 1 :])

        name = f"{name} {self.parameters!r}" if self.parameters else name
        return function(self.model, name, sizes, by_values, backend=self.backend, **options)
