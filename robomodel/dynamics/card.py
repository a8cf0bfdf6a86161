"""Kernels on graphics cards: an algorithm traced on one robot, a state in each thread."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

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
    memory. Results are new arrays of the first argument's library. A ``packed`` one gives the
    distinct numbers of its results (..., n), as :class:`robomodel.Kernel` says. Pickles, and may be
    called from several threads.

    Attributes:
        model: The robot.
        dtype: "float64" or "float32".
        packed: Whether it gives the distinct numbers only.
        sizes: Length of each argument's last axis, by name.
        shapes: Shape of each result, without batch axes.
        backward_error: As of :class:`robomodel.Kernel`.
        ptx: The code as text; it needs neither card nor driver.
    """

    def __init__(
        self, model: Model, task: Task, dtype: Dtype = "float64", *, packed: bool = False
    ) -> None:
        self.model = model
        self.task = task
        self.dtype = dtype
        self.packed = packed
        self.sizes = task.sizes(model)
        self._dense = tuple(task.results(model).values())
        self.shapes = ((len(self.program.outputs),),) if packed else self._dense
        self.size = sum(math.prod(shape) for shape in self.shapes)
        entry = f"{task.name}_{dtype}"
        text = compile_ptx(
            lambda: self.program,
            entry,
            [*self.sizes.values(), self.size],
            name=content(model, f"{packed}{spelled(task)}"),
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
        return self._whole.packed() if self.packed else self._whole

    @cached_property
    def _whole(self) -> Program:
        return trace(self.model, self.task)

    def __reduce__(self) -> tuple[Callable[..., CudaKernel], tuple[object, ...]]:
        return partial(CudaKernel, packed=self.packed), (self.model, self.task, self.dtype)

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
        return _called(self._compiled, arguments, self.shapes, out, stream)

    @cached_property
    def index(self) -> Any:
        """Which of the packed numbers each entry of the results is; -1: a constant.

        A NumPy array of the result's shape, or a tuple of them where the algorithm has several.
        """
        return split(np.array(self._whole.packing.index), self._dense)

    @cached_property
    def constants(self) -> Any:
        """The entries of the results that are constant; 0 elsewhere."""
        return split(np.array(self._whole.packing.constants), self._dense)

    @cached_property
    def _expansion(self) -> Compiled:
        program, entry = self._whole.packing.expansion(), f"expand_{self.dtype}"
        sizes = [program.inputs, len(program.outputs)]
        text = compile_ptx(
            lambda: program, entry, sizes, name=repr(program.outputs), dtype=self.dtype
        )
        return Compiled(text, entry, {"numbers": program.inputs}, self.dtype)

    def expand(self, numbers: Any, *, out: Any = None, stream: Any = None) -> Any:
        """The results (..., *shape) of packed numbers (..., n) on a card, as a call gives them."""
        return _called(self._expansion, [numbers], self._dense, out, stream)


def _called(
    compiled: Compiled, arguments: Sequence[Any], shapes: Sequence[tuple[int, ...]], out: Any,
    stream: Any,
) -> Any:  # fmt: skip
    """The result, or several as views of one array."""
    if len(shapes) == 1:
        return compiled(arguments, shapes[0], out, stream)
    return split(compiled(arguments, (sum(map(math.prod, shapes)),), out, stream), shapes)


def card_kernel(
    model: Model, task: Task, dtype: Dtype = "float64", *, packed: bool = False
) -> CudaKernel:
    """The kernel of a task, compiled once a model."""
    key = (task, dtype, packed, "cuda")
    known = model.derived.get(key)
    if not isinstance(known, CudaKernel):
        known = CudaKernel(model, task, dtype, packed=packed)
        model.derived[key] = known
    return known
