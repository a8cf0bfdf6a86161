"""Kernels: an algorithm traced on one robot and compiled for this machine."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import robomodel
from robomodel.dynamics.algorithms import Method, Name, Task
from robomodel.dynamics.frames import FrameLike, frame_keys
from robomodel.dynamics.order import OrderLike
from robomodel.errors import as_names
from robomodel.kernels.compile import Compiled, compile_program
from robomodel.kernels.trace import Program, Trace
from robomodel.model.joints import Array
from robomodel.model.model import Model

PROGRAMS = ("model", "dynamics", "kernels", "trajectory")  # packages that programs come from


def trace(model: Model, task: Task) -> Program:
    """The algorithm as a straight-line program on this robot; inputs and outputs in order."""
    traced = Trace()
    arguments = {name: traced.inputs(size) for name, size in task.sizes(model).items()}
    return traced.program(task.run(task.tree(model), arguments)).fused()


class Kernel:
    """A compiled algorithm of one robot: call it on arrays with the algorithm's arguments.

    Arguments broadcast over leading batch axes like any NumPy ufunc's; nothing but their last axis
    is checked. It releases the GIL, may be called from several threads, survives a fork, and
    pickles (the other process compiles it again).
    """

    def __init__(self, model: Model, task: Task) -> None:
        self.model = model
        self.task = task
        self.sizes = task.sizes(model)
        self.shapes = tuple(task.results(model).values())
        self.size = sum(math.prod(shape) for shape in self.shapes)
        self._compiled: Compiled = compile_program(
            lambda: self.program, [*self.sizes.values(), self.size], name=_content(model, task)
        )
        self._ufunc: Callable[..., Array] = self._compiled.ufunc
        self.backward_error: float | None = None  # measured where pivots are not the recursion's
        self._plain = len(self.shapes) == 1 and len(self.shapes[0]) == 1

    @cached_property
    def program(self) -> Program:
        """What is compiled; traced when asked for: code from the cache needs no trace."""
        return trace(self.model, self.task)

    @property
    def fast(self) -> Callable[..., Any]:
        """The kernel for calls without options: the ufunc itself where its result needs no shape.

        To be kept beside the kernel, which keeps the machine code.
        """
        return self._ufunc if self._plain else self

    def __reduce__(self) -> tuple[type[Kernel], tuple[Model, Task]]:
        return type(self), (self.model, self.task)

    def __repr__(self) -> str:
        task = self.task
        name = task.name if task.method == "cluster" else f"{task.name}:{task.method}"
        return f"<Kernel {name} of '{self.model.name}': {self.program.flops} flops>"

    def __call__(self, *arguments: ArrayLike, out: Array | None = None, threads: int = 1) -> Any:
        """The result (..., *shape), or a tuple of them where the algorithm has several.

        ``out``: where to put it (several results: one array (..., all their numbers)).
        ``threads``: spread a batch's first axis over so many.
        """
        if out is None and threads == 1:
            numbers = self._ufunc(*arguments)
            return numbers if self._plain else self.task.split(self.model, numbers)
        flat = None if out is None else _flattened(out, self.shapes)
        if threads > 1:
            numbers = self._spread(arguments, flat, threads)
        else:
            numbers = self._ufunc(*arguments, out=flat)
        if out is not None and len(self.shapes) == 1:
            return out
        return self.task.split(self.model, numbers)

    def _spread(self, arguments: Sequence[ArrayLike], out: Array | None, threads: int) -> Array:
        arrays = [np.asarray(x) for x in arguments]
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
        result = np.empty((*batch, self.size)) if out is None else out
        if not batch:
            return self._ufunc(*arrays, out=result)
        spread = [np.broadcast_to(x, (*batch, x.shape[-1])) for x in arrays]
        edges = np.linspace(0, batch[0], min(threads, max(1, batch[0])) + 1).astype(int)

        def part(ends: tuple[int, int]) -> None:
            piece = slice(*ends)
            self._ufunc(*(x[piece] for x in spread), out=result[piece])

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(part, zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)))
        return result


def _content(model: Model, task: Task) -> str:
    """All that makes a kernel's program: the robot, the algorithm, and the text of this package."""
    return f"{model.description!r}{task!r}{sources()}"


@functools.cache
def sources() -> str:
    """A digest of the modules that programs come from."""
    package = Path(robomodel.__file__).parent
    within = [file for name in PROGRAMS for file in (package / name).rglob("*.py")]
    result = hashlib.sha256()
    for file in sorted([*package.glob("*.py"), *within]):
        result.update(file.read_bytes())
    return result.hexdigest()


def _flattened(out: Array, shapes: Sequence[tuple[int, ...]]) -> Array:
    """A view of ``out`` with the result's axes made one."""
    view = out.view()
    if len(shapes) > 1:
        return view
    (shape,) = shapes
    try:
        view.shape = (*out.shape[: out.ndim - len(shape)], math.prod(shape))
    except AttributeError:
        raise ValueError("out must be contiguous in the axes of the result") from None
    return view


def kernel(model: Model, task: Task) -> Kernel:
    """The kernel of a task, compiled once a model."""
    known = model.derived.get(task)
    if not isinstance(known, Kernel):
        known = Kernel(model, task)
        model.derived[task] = known
    return known


def compile(  # noqa: A001 - the interface's name
    model: Model,
    algorithm: Name,
    *,
    frame: FrameLike | None = None,
    frames: FrameLike | Sequence[FrameLike] = (),
    f_ext: str | Iterable[str] = (),
    method: Method = "cluster",
    known: str | Iterable[str] = (),
    order: OrderLike | None = None,
    passive: bool = False,
) -> Kernel:
    """A kernel of an algorithm: "rnea", "aba", "crba", "bias_force", "jacobian" and so on.

    The same as the function of that name, without the checks of arguments: ``kernel(q, v, tau)``.
    ``frame`` is the link, or (link, offset), of those that are about one, ``frames`` those of
    "efpa"; ``f_ext`` are the links on which wrenches act, which are then further arguments
    (..., 6) in this order. ``method`` as of :func:`robomodel.rnea` and :func:`robomodel.aba`.
    ``known``: of "hybrid", the joints, or freedoms of ``model.dof_names``, whose accelerations are
    given; ``kernel(q, v, given)`` takes nv numbers, accelerations of these and forces of the
    others, and returns (tau, a).
    ``passive``: with the file's springs and damping among the forces.
    ``order``: of "aba", an elimination order, by name ("crba", "nested dissection", "searched" …),
    as a list of all variables, or an :class:`~robomodel.dynamics.elimination.Order`. Pivots stay
    where the order has them; the kernel's ``backward_error`` says what that cost at random states,
    and an order that loses more than 1e-12 is refused (ValueError).
    """
    keys = frame_keys(frames if frame is None else frame)
    links, known = as_names(f_ext, "f_ext"), as_names(known, "known")
    task = Task(algorithm, keys, links, method, known, passive=passive)
    if task.known:
        from robomodel.dynamics.hybrid import prescribed

        task = replace(task, known=prescribed(model, task.known))
    if order is None:
        return kernel(model, task)
    from robomodel.dynamics.elimination.programs import as_order, checked

    made = kernel(model, replace(task, order=as_order(model, order)))
    assert made.task.order is not None
    made.backward_error = checked(model, made.task.order, made)
    return made
