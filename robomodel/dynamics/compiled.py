"""Kernels: an algorithm traced on one robot and compiled for this machine."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from robomodel.dynamics.algorithms import Method, Task, split
from robomodel.dynamics.kinematics.frames import FrameLike, Reference, frame_keys
from robomodel.dynamics.order import OrderLike
from robomodel.dynamics.table import Name
from robomodel.dynamics.tracing import content, trace
from robomodel.errors import as_names
from robomodel.kernels.cache import spelled
from robomodel.kernels.compile import Compiled, compile_program
from robomodel.kernels.precision import Dtype
from robomodel.kernels.program import Program
from robomodel.kernels.threads import run_ufunc
from robomodel.model.joints import Array
from robomodel.model.model import Model

if TYPE_CHECKING:
    from robomodel.dynamics.card import CudaKernel


Target: TypeAlias = Literal["cpu", "cuda"]


TARGETS: tuple[Target, ...] = get_args(Target)


DTYPES: tuple[Dtype, Dtype] = ("float64", "float32")


class Kernel:
    """A compiled algorithm of one robot: call it on arrays with the algorithm's arguments.

    Arguments broadcast over leading batch axes like any NumPy ufunc's; nothing but their last axis
    is checked. It releases the GIL but for a single state, may be called from several threads,
    survives a fork, and pickles (the other process compiles it again).

    One of ``dtype`` float32 computes in single precision where NumPy would: as soon as an argument
    cannot become float32 without loss, results are float64, by a kernel of that type.

    A ``packed`` one gives the distinct numbers of its results, (..., n), each once: zeros and other
    constants, repetitions and mirrored halves are left out, for those who go on in compiled code,
    or keep many. :meth:`expand` makes the results of them. Results of constants alone are packed as
    one number, zero, which stands nowhere.

    Attributes:
        model: The robot.
        dtype: "float64" or "float32".
        packed: Whether it gives the distinct numbers only.
        sizes: Length of each argument's last axis, by name.
        shapes: Shape of each result, without batch axes.
        backward_error: With an ``order``, what that cost at random states; None without.
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
        if not self.size:
            raise ValueError(
                f"{task.name} of '{model.name}' has no numbers that a kernel could give"
            )
        if empty := [name for name, size in self.sizes.items() if not size]:
            raise ValueError(
                f"{task.name} of '{model.name}' has no kernel: {empty[0]} has no numbers"
            )
        self._compiled: Compiled = compile_program(
            lambda: self.program,
            [*self.sizes.values(), self.size],
            name=content(model, f"{packed}{spelled(task)}"),
            shapes=self.shapes,
            label=f"compiling {task.name} of '{model.name}'",
            dtype=dtype,
        )
        self._ufunc: Callable[..., Array] = self._compiled.ufunc
        self._results = _Results(self._compiled.ufunc, task.name, tuple(self.sizes), self.shapes)
        self._one = self._compiled.one(self._results)
        self._onto = self._compiled.onto(self._results.onto)
        self._expansions: dict[Dtype, Compiled] = {}
        self.backward_error: float | None = None  # measured where pivots are not the recursion's

    @cached_property
    def program(self) -> Program:
        """What is compiled; traced when asked for: code from the cache needs no trace."""
        return self._whole.packed() if self.packed else self._whole

    @cached_property
    def _whole(self) -> Program:
        return trace(self.model, self.task)

    @property
    def fast(self) -> Callable[..., Any]:
        """The kernel for calls without options; it does not count its arguments."""
        return self._one

    def __reduce__(self) -> tuple[Callable[..., Kernel], tuple[object, ...]]:
        return partial(Kernel, packed=self.packed), (self.model, self.task, self.dtype)

    def __repr__(self) -> str:
        task = self.task
        name = task.name if task.method == "cluster" else f"{task.name}:{task.method}"
        return f"<Kernel {name} of '{self.model.name}': {self.program.flops} flops>"

    def __call__(self, *arguments: ArrayLike, out: Array | None = None, threads: int = 1) -> Any:
        """The result (..., *shape), or a tuple of them where the algorithm has several.

        ``out``: where to put it (several results: one array (..., all their numbers)); it may take
        the place of an argument. ``threads``: spread a batch over so many (0: one a processor).
        """
        if threads == 1:
            try:
                return self._one(*arguments) if out is None else self._onto(arguments, out)
            except TypeError:
                if not self._lossy(arguments):
                    raise
        self._results.count(arguments)
        if self._lossy(arguments):
            wide = kernel(self.model, self.task, packed=self.packed)
            return wide(*arguments, out=out, threads=threads)
        flat = None if out is None else _flattened(out, self.shapes)
        numbers = self._spread(arguments, flat, threads)
        return out if out is not None and len(self.shapes) == 1 else split(numbers, self.shapes)

    @cached_property
    def index(self) -> Any:
        """Which of the packed numbers each entry of the results is; -1: a constant.

        An array of the result's shape, or a tuple of them where the algorithm has several.
        """
        return split(np.array(self._whole.packing.index), self._dense)

    @cached_property
    def constants(self) -> Any:
        """The entries of the results that are constant; 0 elsewhere."""
        return split(np.array(self._whole.packing.constants), self._dense)

    def expand(self, numbers: ArrayLike, out: Array | None = None) -> Any:
        """The results of packed numbers.

        Args:
            numbers: Packed numbers (..., n), of float32 or float64.
            out: As of a kernel that is not packed.

        Returns:
            results: The results (..., *shape).
        """
        dtype = DTYPES[np.can_cast(np.asarray(numbers).dtype, np.float32)]
        if dtype not in self._expansions:
            program = self._whole.packing.expansion()
            sizes = [program.inputs, len(program.outputs)]
            self._expansions[dtype] = compile_program(program, sizes, dtype=dtype)
        ufunc = self._expansions[dtype].ufunc
        results = _Results(ufunc, "expand", ("numbers",), self._dense)
        return results(numbers) if out is None else results.onto((numbers,), out)

    def _lossy(self, arguments: Sequence[ArrayLike]) -> bool:
        """Whether some of these would lose digits in single precision."""
        return self.dtype == "float32" and any(
            not np.can_cast(np.asarray(x).dtype, np.float32) for x in arguments
        )

    def _spread(self, arguments: Sequence[ArrayLike], out: Array | None, threads: int) -> Array:
        arrays = [np.asarray(x) for x in arguments]
        batch = arrays[0].shape[:-1]
        if any(x.shape[:-1] != batch for x in arrays[1:]):
            batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
        if out is not None and out.shape[:-1] != batch:
            if np.broadcast_shapes(batch, out.shape[:-1]) != out.shape[:-1]:
                raise ValueError(f"out has a batch {out.shape[:-1]}, the arguments have {batch}")
            batch = out.shape[:-1]
        overlaps = out is not None and any(np.may_share_memory(out, x) for x in arrays)
        fresh = out is None or overlaps
        result = np.empty((*batch, self.size), self.dtype) if out is None or fresh else out
        if not batch or any(x.ndim == 0 for x in arrays):
            self._ufunc(*arrays, out=result)
        else:
            run_ufunc(self._compiled.ufunc, arrays, result, threads)
        if out is not None and overlaps:
            out[...] = result
            return out
        return result


@dataclass(frozen=True, slots=True)
class _Results:
    """A ufunc's numbers as results of their shapes."""

    ufunc: np.ufunc
    name: str
    arguments: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    def __call__(self, *arguments: ArrayLike) -> Any:
        self.count(arguments)
        numbers = self.ufunc(*arguments)
        masks = sys.modules.get("numpy.ma")  # imported where masked arrays come from
        masked = masks is not None and isinstance(numbers, masks.MaskedArray)
        if masked or not isinstance(numbers, np.ndarray):
            raise TypeError(f"{self.name} takes plain arrays, not such as give a "
                            f"{type(numbers).__name__}")  # fmt: skip
        plain = len(self.shapes) == 1 and len(self.shapes[0]) == 1
        return numbers if plain else split(numbers, self.shapes)

    def count(self, arguments: Sequence[ArrayLike]) -> None:
        """Refuse too few, and too many: the ufunc would take one more for the result's place."""
        if len(arguments) != len(self.arguments):
            hint = "; out= is a keyword" if len(arguments) > len(self.arguments) else ""
            raise TypeError(
                f"{self.name} takes the arguments ({', '.join(self.arguments)}), got "
                f"{len(arguments)}{hint}"
            )

    def onto(self, arguments: Sequence[ArrayLike], out: Array) -> Any:
        """The results in an array."""
        self.count(arguments)
        numbers = self.ufunc(*arguments, out=_flattened(out, self.shapes))
        return out if len(self.shapes) == 1 else split(numbers, self.shapes)


def _flattened(out: Array, shapes: Sequence[tuple[int, ...]]) -> Array:
    """A view of ``out`` with the result's axes made one."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be a NumPy array, got {type(out).__name__}")
    size = sum(math.prod(shape) for shape in shapes)
    shape = shapes[0] if len(shapes) == 1 else (size,)
    batch = out.shape[: out.ndim - len(shape)]
    if out.ndim < len(shape) or out.shape[len(batch) :] != shape:
        wanted = ", ".join(["...", *map(str, shape)])
        raise ValueError(f"out must have the shape ({wanted}), got {out.shape}")
    view = out.reshape(*batch, size)
    if view.size and not np.may_share_memory(view, out):
        raise ValueError("out must be contiguous in the axes of the result")
    return view


def kernel(model: Model, task: Task, dtype: Dtype = "float64", *, packed: bool = False) -> Kernel:
    """The kernel of a task, compiled once a model."""
    key = (task, dtype, packed)
    known = model.derived.get(key)
    if not isinstance(known, Kernel):
        known = Kernel(model, task, dtype, packed=packed)
        model.derived[key] = known
    return known


@overload
def compile(
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
    reference: Reference = "local",
    dtype: DTypeLike = "float64",
    packed: bool = False,
    target: Literal["cpu"] = "cpu",
) -> Kernel: ...
@overload
def compile(
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
    reference: Reference = "local",
    dtype: DTypeLike = "float64",
    packed: bool = False,
    target: Literal["cuda"],
) -> CudaKernel: ...
def compile(
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
    reference: Reference = "local",
    dtype: DTypeLike = "float64",
    packed: bool = False,
    target: Target = "cpu",
) -> Kernel | CudaKernel:
    """A kernel of an algorithm: "rnea", "aba", "crba", "bias_force", "jacobian" and so on.

    The same as the function of that name, without the checks of arguments: ``kernel(q, v, tau)``.

    Args:
        model: The robot.
        algorithm: The function's name.
        frame: The link, or (link, offset), of those that are about one.
        frames: Those of "efpa".
        f_ext: The links on which wrenches act, which are then further arguments (..., 6) in this
            order.
        method: As of :func:`robomodel.rnea` and :func:`robomodel.aba`.
        known: Of "hybrid", the joints, or freedoms of ``model.dof_names``, whose accelerations are
            given; ``kernel(q, v, given)`` takes nv numbers, accelerations of these and forces of
            the others, and returns (tau, a).
        order: Of "aba", an elimination order, by name ("crba", "nested dissection", "searched" …),
            as a list of all variables, or an :class:`~robomodel.dynamics.elimination.Order`. Pivots
            stay where the order has them; the kernel's ``backward_error`` says what that cost at
            random states.
        passive: With the file's springs and damping among the forces.
        reference: As of :func:`robomodel.jacobian`.
        dtype: "float64", or "float32", of which vectors hold twice as many (what it loses stands in
            docs/algorithms/kernels.md; "aba" loses less by method "orthonormal").
        packed: The distinct numbers of results only, see :class:`Kernel`.
        target: "cpu", or "cuda" for NVIDIA's cards, see
            :class:`~robomodel.dynamics.card.CudaKernel`.

    Returns:
        kernel: The compiled algorithm.

    Raises:
        ValueError: Other types and targets; an order that loses more than 1e-12.
    """
    number = known_dtype(dtype)
    if target not in TARGETS:
        raise ValueError(f"target {target!r} is not known; 'cpu' and 'cuda' are")
    task = as_task(
        model, algorithm, frame=frame, frames=frames, f_ext=f_ext, method=method, known=known,
        passive=passive, reference=reference,
    )  # fmt: skip
    if order is None:
        return _made_for(target, model, task, number, packed)
    from robomodel.dynamics.elimination.programs import as_order, checked

    found = as_order(model, order)
    task = replace(task, order=found)
    error = checked(model, found, kernel(model, task))
    made = _made_for(target, model, task, number, packed)
    made.backward_error = error
    return made


def _made_for(
    target: Target, model: Model, task: Task, dtype: Dtype, packed: bool
) -> Kernel | CudaKernel:
    if target == "cpu":
        return kernel(model, task, dtype, packed=packed)
    from robomodel.dynamics.card import card_kernel

    return card_kernel(model, task, dtype, packed=packed)


def as_task(
    model: Model,
    algorithm: Name,
    *,
    frame: FrameLike | None = None,
    frames: FrameLike | Sequence[FrameLike] = (),
    f_ext: str | Iterable[str] = (),
    method: Method = "cluster",
    known: str | Iterable[str] = (),
    passive: bool = False,
    reference: Reference = "local",
) -> Task:
    """The task that :func:`compile` makes a kernel of, by the same options."""
    keys = frame_keys(frames if frame is None else frame)
    links, known = as_names(f_ext, "f_ext"), as_names(known, "known")
    task = Task(algorithm, keys, links, method, known, passive=passive, reference=reference)
    if task.known:
        from robomodel.dynamics.recursions.hybrid_dynamics import prescribed

        task = replace(task, known=prescribed(model, task.known))
    return task


def known_dtype(dtype: DTypeLike) -> Dtype:
    """The name of a dtype that kernels compute with; ValueError for others."""
    with suppress(TypeError):
        for name in DTYPES:
            if dtype is not None and np.dtype(dtype) == np.dtype(name):
                return name
    raise ValueError(f"dtype {dtype!r} is not known; 'float64' and 'float32' are")
