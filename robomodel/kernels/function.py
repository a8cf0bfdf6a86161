"""A function of numbers that is traced once: called on arrays, compiled, written elsewhere.

A :class:`TracedFunction` has a name, arguments and results, and ``build``, which computes the
results from scalars of any kind. Its :class:`Kernel` is machine code for this processor, its
:class:`CudaKernel` code for NVIDIA's cards; C, CasADi, JAX and PyTorch are written from its
``program``. Nothing here knows robotics.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from robomodel.errors import warn
from robomodel.kernels.plan import Iteration
from robomodel.kernels.program import Dtype, Program
from robomodel.kernels.threads import LONGEST_PIECE, run_ufunc
from robomodel.kernels.trace import Trace
from robomodel.scalars import Scalar, stack, unstack

if TYPE_CHECKING:
    from robomodel.kernels.compile import CompiledUfunc

Array: TypeAlias = NDArray[Any]
Build: TypeAlias = Callable[..., Sequence[Scalar]]
Shape: TypeAlias = tuple[int, ...]
_T = TypeVar("_T")
DTYPES: tuple[Dtype, ...] = get_args(Dtype)


def as_dtype(dtype: DTypeLike) -> Dtype:
    """The name of a dtype; raises ValueError for one in which kernels do not compute."""
    with suppress(TypeError):
        for name in DTYPES:
            if dtype is not None and np.dtype(dtype) == np.dtype(name):
                return name
    raise ValueError(f"dtype {dtype!r} is not known; 'float64' and 'float32' are")


def split(flat: Any, shapes: Sequence[Shape]) -> Any:
    """The results of an array (..., all numbers): one array, or a tuple of several."""
    parts, at = [], 0
    for shape in shapes:
        if not shape:
            parts.append(flat[..., at])
            at += 1
            continue
        size = math.prod(shape)
        part = flat[..., at : at + size]
        parts.append(part if len(shape) == 1 else part.reshape((*flat.shape[:-1], *shape)))
        at += size
    return parts[0] if len(parts) == 1 else tuple(parts)


@dataclass(frozen=True, eq=False)
class TracedFunction:
    """A function of fixed sizes, written over scalars of any kind.

    Called on arrays (..., size), whose batch axes broadcast, it returns the result (..., *shape),
    or a tuple of several. The first call compiles it. If that is not possible, or ``compiles`` is
    False, the program runs on NumPy arrays. NumPy's warnings are off: callers check whether results
    are finite.

    Attributes:
        name: Its name in code, and in messages without a ``label``.
        arguments: Length of each argument, by name.
        results: Shape of each result, by name.
        build: Takes a sequence of scalars for each argument; returns the numbers of the results,
            one result after the other, matrices by rows.
        iteration: Makes it run over time (:class:`~robomodel.kernels.plan.Iteration`). Carried
            arguments and a row of the table are then further arguments of ``build``, and carried
            values follow the results.
        shared: Names of arguments that most calls give once for all states: what depends on them
            alone is then computed once. Over time that is so of all that have no row an instant.
        dtype: Type of numbers in calls; :meth:`kernel` makes kernels of the other, too.
        compiles: Whether calls compile it.
        brief: It is run some thousand times, so that compiling it shall take little time.
        owner: The object it belongs to, whose ``name`` is in messages.
        label: Its name in messages.
        key: Identifies the program, which then is traced only if the cache has no code for it;
            None: the program itself does.
        origin: A function that can be pickled, and its arguments, which make it again.
        explain: Says, of arrays of arguments, why results are not finite, or nothing; calls of
            its kernel and of ``telling`` then warn so, in place of NumPy.
    """

    name: str
    arguments: Mapping[str, int]
    results: Mapping[str, Shape]
    build: Build
    iteration: Iteration | None = None
    shared: tuple[str, ...] = ()
    dtype: Dtype = "float64"
    compiles: bool = True
    brief: bool = False
    owner: Any = None
    label: str = ""
    key: str | None = None
    origin: tuple[Callable[..., TracedFunction], tuple[object, ...]] | None = None
    explain: Callable[[Sequence[Array]], str] | None = None
    _kernels: dict[tuple[object, Dtype], Any] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[Callable[..., TracedFunction], tuple[object, ...]]:
        if self.origin is None:
            raise TypeError(f"{self.title} cannot be pickled: nothing says what made it")
        return self.origin

    @property
    def title(self) -> str:
        """Its name, and its owner's, for messages."""
        label = self.label or self.name
        return label if self.owner is None else f"{label} of '{self.owner.name}'"

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """Shapes of the results."""
        return tuple(self.results.values())

    @cached_property
    def size(self) -> int:
        """Number of all numbers in the results."""
        return sum(map(math.prod, self.shapes))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Lengths of the arguments, and of all results together."""
        return (*self.arguments.values(), self.size)

    @cached_property
    def program(self) -> Program:
        """The straight-line program: inputs are the arguments one after the other."""
        trace = Trace()
        inputs = [trace.inputs(n) for n in self.arguments.values()]
        if self.iteration is not None and self.iteration.table:
            inputs += [trace.inputs(n) for n in (self.iteration.carried, self.iteration.columns)]
        results = [x + 0.0 for x in self.build(*inputs)]  # so that no constant is -0.0
        return trace.program(results).fused()

    # ---- calls

    def __call__(self, *arguments: Array, out: Array | None = None) -> Any:
        """The results; with an iteration, or ``out``, an array (..., [T,] all their numbers)."""
        if out is None:
            return self.call(*arguments)
        if self._compiled is not None:
            return self._compiled.quiet(*arguments, out=out)
        with np.errstate(all="ignore"):
            if self.iteration is not None:
                return self._iterated(self.iteration, arguments, out)
            out[...] = self._once(arguments)
            return out

    @cached_property
    def call(self) -> Callable[..., Any]:
        """The callable that runs calls without ``out``."""
        compiled = self._compiled
        if compiled is None:
            return self.on_arrays
        shapes = self.shapes if self.iteration is None else ((self.size,),)
        return Results(compiled, self.name, tuple(self.arguments), shapes, quiet=True)

    @cached_property
    def telling(self) -> Callable[..., Any]:
        """The callable for calls that warn of results that are not finite, as ``explain`` says."""
        compiled = self._compiled
        if compiled is None or self.iteration is not None or self.explain is None:
            return self._telling
        return Results(compiled, self.name, tuple(self.arguments), self.shapes, self.explain)

    def _telling(self, *arguments: Array) -> Any:
        results = self.call(*arguments)
        self.tell(arguments, results)
        return results

    def tell(self, arguments: Sequence[ArrayLike], results: Any) -> None:
        """Warn as ``explain`` says if results are not finite."""
        if self.explain is not None:
            _tell(self.name, self.explain, arguments, results)

    @cached_property
    def _compiled(self) -> CompiledUfunc | None:
        if self.compiles and all(self.sizes):
            from robomodel.kernels.compile import NoCompilerError

            with suppress(NoCompilerError):
                return self.compiled(self.dtype)
        return None

    @property
    def is_brief(self) -> bool:
        """True if it is compiled in little time here."""
        from robomodel.kernels.compile import NoCompilerError

        with suppress(NoCompilerError):
            return self.brief and self._cached(_briefly, "float64") is not None
        return False

    @cached_property
    def fill(self) -> Callable[..., Any]:
        """A call with ``out``: the ufunc itself, if there is one."""
        compiled = self._compiled
        return self if compiled is None else compiled.quiet

    def on_arrays(self, *arguments: ArrayLike) -> Any:
        """Run the program on NumPy arrays, without compiling."""
        arrays = [np.asarray(x) for x in arguments]
        with np.errstate(all="ignore"):
            if self.iteration is not None:
                return self._iterated(self.iteration, arrays, None)
            return split(self._once(arrays), self.shapes)

    def _once(self, arguments: Sequence[Array]) -> Array:
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in arguments))
        inputs = [x for argument in arguments for x in unstack(argument.astype(self.dtype))]
        return stack(self.program(inputs), batch)

    def _iterated(
        self, iteration: Iteration, arguments: Sequence[Array], out: Array | None
    ) -> Array:
        timed = iteration.timed
        times = arguments[timed[0]].shape[-2] if timed else 1
        batches = [x.shape[:-2] if k in timed else x.shape[:-1] for k, x in enumerate(arguments)]
        if out is None:
            out = np.empty((*np.broadcast_shapes(*batches), times, self.size))
        at = list(arguments)
        carried = np.zeros(iteration.carried)
        for t in range(times):
            for k in timed:
                at[k] = arguments[k][..., t, :]
            for row in iteration.table or ((),):
                more = [carried, np.array(row, dtype=float)] if iteration.table else []
                numbers = self._once([*at, *more])
                at[0], carried = numbers[..., : self.sizes[0]], numbers[..., self.size :]
            out[..., t, :] = numbers[..., : self.size]
        return out if timed else out[..., 0, :]

    # ---- machine code

    def kernel(self, dtype: Dtype = "float64") -> Kernel:
        """The kernel for this processor, cached; raises NoCompilerError if there can be none."""
        return self._cached(Kernel, dtype)

    def cuda(self, dtype: Dtype = "float64") -> CudaKernel:
        """The kernel for NVIDIA's cards, cached."""
        return self._cached(CudaKernel, dtype)

    def compiled(self, dtype: Dtype = "float64") -> CompiledUfunc:
        """Machine code for this processor, cached."""
        return self._cached(_compiled, dtype)

    def _cached(self, make: Callable[[TracedFunction, Dtype], _T], dtype: Dtype) -> _T:
        if (make, dtype) not in self._kernels:
            self._kernels[make, dtype] = make(self, dtype)
        result: _T = self._kernels[make, dtype]
        return result

    def ptx(self, dtype: Dtype = "float64", parts: Sequence[int] = ()) -> str:
        """PTX for NVIDIA's cards; ``parts``: of the state, with an iteration."""
        from robomodel.kernels.compile import compile_ptx

        return compile_ptx(
            lambda: self.program,
            f"{self.name}_{dtype}",
            self.sizes,
            name=self.key if self.key is not None else repr(self.program),
            dtype=dtype,
            label=f"compiling {self.title}",
            iteration=self.iteration,
            parts=parts,
        )


def _briefly(function: TracedFunction, _: Dtype) -> CompiledUfunc | None:
    from robomodel.kernels.compile import compile_briefly

    return compile_briefly(lambda: function.program, function.sizes, function.iteration)


def _compiled(function: TracedFunction, dtype: Dtype) -> CompiledUfunc:
    from robomodel.kernels.compile import compile_program

    if function.brief and dtype == "float64":
        found = function._cached(_briefly, dtype)
        if found is not None:
            return found
    return compile_program(
        function.program if function.key is None else lambda: function.program,
        function.sizes,
        name=function.key,
        iteration=function.iteration,
        shape=function.shapes[0] if len(function.shapes) == 1 else (),
        shared=[n for n, name in enumerate(function.arguments) if name in function.shared],
        label=f"compiling {function.title}",
        dtype=dtype,
    )


class _CompiledFunction:
    """A traced function compiled for a type of numbers, on a processor or a card."""

    def __init__(self, function: TracedFunction, dtype: Dtype = "float64") -> None:
        self.function = function
        self.dtype = dtype
        self.sizes = function.arguments
        self.shapes = function.shapes
        self.size = function.size

    @property
    def model(self) -> Any:
        """The robot."""
        return self.function.owner

    @property
    def program(self) -> Program:
        """The compiled program; traced at first access: code from the cache needs no trace."""
        return self.function.program

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.function.title}: {self.program.flops} flops>"


class Kernel(_CompiledFunction):
    """A compiled function: call it on arrays with the function's arguments.

    Arguments broadcast over leading batch axes as those of NumPy's ufuncs; only their last axis is
    checked. It releases the GIL, may be called from several threads, survives a fork, and can be
    pickled (the other process compiles it again).

    With ``dtype`` float32 it computes in single precision where NumPy would: if an argument cannot
    become float32 without loss, results are float64, by a kernel of that type.

    Attributes:
        function: The function that is compiled.
        dtype: "float64" or "float32".
        sizes: Length of each argument's last axis, by name.
        shapes: Shape of each result, without batch axes.
    """

    def __init__(self, function: TracedFunction, dtype: Dtype = "float64") -> None:
        super().__init__(function, dtype)
        if not self.size:
            raise ValueError(f"{function.title} has no numbers that a kernel could give")
        if empty := [name for name, size in self.sizes.items() if not size]:
            raise ValueError(f"{function.title} has no kernel: {empty[0]} has no numbers")
        compiled = function.compiled(dtype)
        self.ufunc: Callable[..., Array] = compiled.ufunc
        self._results = Results(
            compiled, function.name, tuple(self.sizes), self.shapes, function.explain, dtype=dtype
        )
        # looked up once for calls with out=
        self._count, self._shaped = len(self.sizes), self._results.ufunc
        self._flat = compiled.ufunc if function.explain is None else compiled.quiet
        self._whole, self._vector = self._results.whole, self._results.whole == 1
        self._longest = LONGEST_PIECE * sum(map(math.prod, self.shapes))

    @property
    def fast(self) -> Callable[..., Any]:
        """The kernel for calls without options; it does not check the number of arguments."""
        return self._results

    def __reduce__(self) -> tuple[Callable[..., Kernel], tuple[object, ...]]:
        return TracedFunction.kernel, (self.function, self.dtype)

    def __call__(self, *arguments: ArrayLike, out: Array | None = None, threads: int = 1) -> Any:
        """The result (..., *shape), or a tuple of them where the function has several.

        ``out``: an array for the result (of several results, one array (..., all their numbers));
        it may be an argument. ``threads``: number of threads that share a batch (0: one a
        processor).
        """
        if threads == 1:
            try:
                if out is None:
                    return self._results(*arguments)
                if len(arguments) == self._count and getattr(out, "size", 0) <= self._longest:
                    if self._vector or (
                        self._whole and type(out) is np.ndarray and out.flags.c_contiguous
                    ):
                        self._shaped(*arguments, out)
                        self._results.watch(arguments, out)
                        return out
                    shape = self._results.shape
                    self._flat(*arguments, _flattened(out, shape, self.shapes))
                    self._results.watch(arguments, out)
                    return out if shape is not None else split(out, self.shapes)
            except (TypeError, ValueError):  # of ``out`` below, with its shape
                if out is None and not self._lossy(arguments):
                    raise
        self._results.count(arguments)
        if self._lossy(arguments):
            return self.function.kernel()(*arguments, out=out, threads=threads)
        flat = None if out is None else _flattened(out, self._results.shape, self.shapes)
        numbers = self._results.spread(arguments, flat, threads)
        return out if out is not None and len(self.shapes) == 1 else split(numbers, self.shapes)

    def _lossy(self, arguments: Sequence[ArrayLike]) -> bool:
        """True if some arguments would lose digits in single precision."""
        return self.dtype == "float32" and any(
            not np.can_cast(np.asarray(x).dtype, np.float32) for x in arguments
        )


class Results:
    """Calls a ufunc and shapes its numbers into results; ``quiet``: without NumPy's warnings.

    With ``explain`` it warns itself, by what that says of the arguments. With a ``dtype``, that of
    the results, long batches are called in pieces, so that Python hears Ctrl-C. It keeps the
    ufunc's code in memory, and all that a call looks up, so that a call of a small robot's kernel
    takes little longer than the kernel.
    """

    __slots__ = (
        "arguments", "compiled", "dtype", "explain", "name", "raised", "shape", "shapes", "ufunc",
        "whole",
    )  # fmt: skip

    def __init__(
        self,
        compiled: CompiledUfunc,
        name: str,
        arguments: tuple[str, ...],
        shapes: tuple[Shape, ...],
        explain: Callable[[Sequence[Array]], str] | None = None,
        *,
        quiet: bool = False,
        dtype: Dtype | None = None,
    ) -> None:
        self.compiled = compiled
        self.dtype = dtype
        self.explain = explain
        self.raised = None if explain is None else compiled.raised
        ufunc = compiled.shaped if explain is None else compiled.watched
        self.ufunc: Callable[..., Array] = compiled.quiet if quiet else ufunc
        self.name = name
        self.arguments = arguments
        self.shapes = shapes
        self.shape = shapes[0] if len(shapes) == 1 else None  # None: several results
        # axes of the only result if the ufunc gives it as it is
        most = 1 if quiet else 2
        self.whole = len(shapes[0]) if len(shapes) == 1 and len(shapes[0]) <= most else 0

    def __call__(self, *arguments: Any) -> Any:
        """The results: one array, or a tuple of several."""
        if len(arguments) != len(self.arguments):
            self.count(arguments)
        if (
            getattr(arguments[0], "size", 0) > LONGEST_PIECE
            or getattr(arguments[-1], "size", 0) > LONGEST_PIECE
        ) and self._in_pieces(arguments):
            return split(self.spread(arguments, None, 1), self.shapes)
        numbers = self.ufunc(*arguments)
        if type(numbers) is not np.ndarray:  # masked arrays, and arrays of other libraries
            masks = sys.modules.get("numpy.ma")  # imported where masked arrays come from
            masked = masks is not None and isinstance(numbers, masks.MaskedArray)
            if masked or not isinstance(numbers, np.ndarray):
                raise TypeError(f"{self.name} takes plain arrays, not arguments whose "
                                f"result is a {type(numbers).__name__}")  # fmt: skip
        if self.raised is not None and self.raised[0]:
            self.watch(arguments, numbers)
        if self.whole:
            return numbers
        shape = self.shape
        if shape is None:
            return split(numbers, self.shapes)
        return numbers.reshape(shape if numbers.ndim == 1 else (*numbers.shape[:-1], *shape))

    def _in_pieces(self, arguments: Sequence[ArrayLike]) -> bool:
        arrays = [x for x in arguments if type(x) is np.ndarray and x.ndim]
        return (
            self.dtype is not None
            and len(arrays) == len(arguments)
            and any(x.size > LONGEST_PIECE * x.shape[-1] for x in arrays)
        )

    def spread(self, arguments: Sequence[ArrayLike], out: Array | None, threads: int) -> Array:
        """All numbers (..., size), also in ``out``, by calls of pieces of the batch on threads."""
        arrays = [np.asarray(x) for x in arguments]
        batch = arrays[0].shape[:-1]
        if any(x.shape[:-1] != batch for x in arrays[1:]):
            batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
        if out is not None and out.shape[:-1] != batch:
            if np.broadcast_shapes(batch, out.shape[:-1]) != out.shape[:-1]:
                raise ValueError(f"out has a batch {out.shape[:-1]}, the arguments have {batch}")
            batch = out.shape[:-1]
        overlaps = out is not None and any(np.may_share_memory(out, x) for x in arrays)
        if out is None or overlaps:
            result = np.empty((*batch, sum(map(math.prod, self.shapes))), self.dtype)
        else:
            result = out
        flat = self.compiled.ufunc if self.explain is None else self.compiled.quiet
        if not batch or any(x.ndim == 0 for x in arrays):
            flat(*arrays, out=result)
        else:
            run_ufunc(flat, arrays, result, threads)
        self.watch(arguments, result)
        if out is not None and overlaps:
            out[...] = result
            return out
        return result

    def watch(self, arguments: Sequence[ArrayLike], numbers: Any) -> None:
        """Warn if something was raised that left numbers that are not finite."""
        if self.raised is not None and self.raised[0] and self.explain is not None:
            from robomodel.kernels.llvm.assembly import X86

            if X86:
                self.raised[0] = 0
            _tell(self.name, self.explain, arguments, numbers)

    def count(self, arguments: Sequence[ArrayLike]) -> None:
        """Raises TypeError for a wrong number: the ufunc would take one more for its result."""
        if len(arguments) != len(self.arguments):
            hint = "; out= is a keyword" if len(arguments) > len(self.arguments) else ""
            raise TypeError(
                f"{self.name} takes the arguments ({', '.join(self.arguments)}), got "
                f"{len(arguments)}{hint}"
            )


def _tell(
    name: str,
    explain: Callable[[Sequence[Array]], str],
    arguments: Sequence[ArrayLike],
    results: Any,
) -> None:
    """Warn, or raise, as ``np.errstate`` says, if results of finite arguments are not finite.

    Arguments on which results were written are gone.
    """
    wanted, arrays = np.geterr()["invalid"], [np.asarray(x) for x in arguments]
    if wanted == "ignore":
        return
    parts = results if isinstance(results, tuple) else (results,)
    kept = not any(np.may_share_memory(x, part) for x in arrays for part in parts)
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    if 0 in batch:
        return
    lost = np.zeros(batch, dtype=bool)
    for part in parts:
        lost |= ~np.isfinite(part).all(axis=tuple(range(len(batch), np.ndim(part))))
    for x in arrays if kept else ():
        lost &= np.all(np.isfinite(x), axis=-1)
    if not np.any(lost):
        return
    text = f"{name}: {(kept and explain(arrays)) or 'a result is not finite'}"
    if wanted == "raise":
        raise FloatingPointError(text)
    warn(RuntimeWarning(text))


def _flattened(out: Array, shape: Shape | None, shapes: Sequence[Shape]) -> Array:
    """A view of ``out`` whose result axes are one; ``shape``: of the only result, or None."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be a NumPy array, got {type(out).__name__}")
    if out.shape[-1:] == shape:
        return out
    if out.shape == shape and out.flags.c_contiguous:
        return out.reshape(-1)
    size = sum(math.prod(shape) for shape in shapes)
    shape = shapes[0] if len(shapes) == 1 else (size,)
    batch = out.shape[: out.ndim - len(shape)]
    if out.ndim < len(shape) or out.shape[len(batch) :] != shape:
        expected = ", ".join(["...", *map(str, shape)])
        raise ValueError(f"out must have the shape ({expected}), got {out.shape}")
    view = out.reshape(*batch, size)
    if view.size and not np.may_share_memory(view, out):
        raise ValueError("out must be contiguous in the axes of the result")
    return view


class CudaKernel(_CompiledFunction):
    """A function for NVIDIA's cards, a state in each thread: call it on arrays that lie on one.

    Arguments (..., n) are arrays with ``__cuda_array_interface__`` or DLPack (CuPy, PyTorch), all
    of the kernel's ``dtype``; leading batch axes broadcast, if rows are evenly spaced in memory.
    Results are new arrays of the first argument's library. It can be pickled, and called from
    several threads.

    Attributes:
        ptx: The code as text, with one entry; it needs no card and no driver. Other attributes are
            those of :class:`Kernel`.
    """

    def __init__(self, function: TracedFunction, dtype: Dtype = "float64") -> None:
        super().__init__(function, dtype)
        launch = import_module("robomodel.cuda.launch")
        self.ptx = function.ptx(dtype)
        self._compiled = launch.CompiledPtx(self.ptx, f"{function.name}_{dtype}", self.sizes, dtype)

    def __reduce__(self) -> tuple[Callable[..., CudaKernel], tuple[object, ...]]:
        return TracedFunction.cuda, (self.function, self.dtype)

    def __call__(self, *arguments: Any, out: Any = None, stream: Any = None) -> Any:
        """The result (..., *shape), or a tuple of them where the function has several.

        The launch is enqueued on ``stream`` (CuPy's, PyTorch's, or a handle; None: the current
        stream of the arguments' library); the call does not wait for it. ``out``: a contiguous
        array for the result (of several, one array (..., all their numbers)), which must not be an
        argument.

        Raises TypeError for too few arguments, or arguments that are on no card or of another
        dtype; ValueError for shapes; :class:`~robomodel.cuda.launch.NoCardError`, a RuntimeError,
        without a driver, or if it fails.
        """
        if len(arguments) != len(self.sizes):
            raise TypeError(
                f"{self.function.name} takes the arguments ({', '.join(self.sizes)}), got "
                f"{len(arguments)}"
            )
        if len(self.shapes) == 1:
            return self._compiled(arguments, self.shapes[0], out, stream)
        return split(self._compiled(arguments, (self.size,), out, stream), self.shapes)
