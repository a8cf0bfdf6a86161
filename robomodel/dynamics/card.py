"""Kernels on graphics cards: an algorithm traced on one robot, a state in each thread."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

from robomodel.dynamics.algorithms import Task, split
from robomodel.dynamics.tracing import content, trace
from robomodel.kernels.cache import spelled
from robomodel.kernels.compile import compile_ptx
from robomodel.kernels.cuda import Compiled
from robomodel.kernels.precision import Dtype
from robomodel.kernels.program import Program
from robomodel.model.model import Model


class CudaKernel:
    """An algorithm of one robot for NVIDIA's cards: call it on arrays that lie on one.

    Arguments (..., n) are arrays with ``__cuda_array_interface__`` or DLPack (CuPy's, PyTorch's),
    all of the kernel's ``dtype``; leading batch axes broadcast, as long as rows stand evenly in
    memory. Results are new arrays of the first argument's library. Pickles, and may be called from
    several threads.

    Attributes:
        model: The robot.
        dtype: "float64" or "float32".
        sizes: Length of each argument's last axis, by name.
        shapes: Shape of each result, without batch axes.
        backward_error: As of :class:`robomodel.Kernel`.
        ptx: The code as text; it needs neither card nor driver.
    """

    def __init__(self, model: Model, task: Task, dtype: Dtype = "float64") -> None:
        self.model = model
        self.task = task
        self.dtype = dtype
        self.sizes = task.sizes(model)
        self.shapes = tuple(task.results(model).values())
        self.size = sum(math.prod(shape) for shape in self.shapes)
        entry = f"{task.name}_{dtype}"
        text = compile_ptx(
            lambda: self.program,
            entry,
            [*self.sizes.values(), self.size],
            name=content(model, spelled(task)),
            dtype=dtype,
            label=f"compiling {task.name} of '{model.name}'",
        )
        self._compiled = Compiled(text, entry, self.sizes, dtype)
        self.backward_error: float | None = None  # as of kernels for the processor

    @property
    def ptx(self) -> str:
        """The code, with one entry."""
        return self._compiled.ptx

    @cached_property
    def program(self) -> Program:
        """What is compiled."""
        return trace(self.model, self.task)

    def __reduce__(self) -> tuple[Callable[..., CudaKernel], tuple[object, ...]]:
        return CudaKernel, (self.model, self.task, self.dtype)

    def __repr__(self) -> str:
        return f"<CudaKernel {self.task.name} of '{self.model.name}': {self.program.flops} flops>"

    def __call__(self, *arguments: Any, out: Any = None, stream: Any = None) -> Any:
        """The result (..., *shape), or a tuple of them where the algorithm has several.

        The launch is enqueued on ``stream`` (a stream of CuPy's, PyTorch's, or a handle; None: the
        current one of the arguments' library) and not waited for. ``out``: a contiguous array for
        the result (several: one array (..., all their numbers)), none of the arguments.

        Raises TypeError for too few arguments, such as are on no card, and such of another dtype;
        ValueError for shapes; :class:`~robomodel.kernels.cuda.NoCardError`, a RuntimeError, where
        there is no driver or it fails.
        """
        if len(arguments) != len(self.sizes):
            raise TypeError(
                f"{self.task.name} takes the arguments ({', '.join(self.sizes)}), got "
                f"{len(arguments)}"
            )
        single = len(self.shapes) == 1
        shape = self.shapes[0] if single else (self.size,)
        result = self._compiled(arguments, shape, out, stream)
        return result if single else split(result, self.shapes)


def card_kernel(model: Model, task: Task, dtype: Dtype = "float64") -> CudaKernel:
    """The kernel of a task, compiled once a model."""
    key = (task, dtype, "cuda")
    known = model.derived.get(key)
    if not isinstance(known, CudaKernel):
        known = CudaKernel(model, task, dtype)
        model.derived[key] = known
    return known
