"""From a program to a NumPy ufunc, by LLVM (llvmlite) and without a C compiler."""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np

from robomodel.kernels import cache
from robomodel.kernels.llvm import driver, machine
from robomodel.kernels.llvm.assembly import X86, LaneVectors
from robomodel.kernels.llvm.emit import assembled, planned, written
from robomodel.kernels.llvm.emit import driver as driving
from robomodel.kernels.llvm.machine import cut, obstacle
from robomodel.kernels.plan import Iteration, KernelPlan, ordered
from robomodel.kernels.program import PRECISIONS, Dtype, Program
from robomodel.running import Lock, Progress, uncollected

INTERFACES = (1, 2)  # of NumPy 1 and NumPy 2
PATIENCE = 2.0  # seconds after which progress is shown
_LOCK = Lock()  # two threads shall not both compile the same program


class NoCompilerError(RuntimeError):
    """Kernels cannot be compiled here, and the cache has no code for this one."""


@dataclass(frozen=True, slots=True)
class CompiledUfunc:
    """A ufunc, and the objects that own its memory.

    ``shaped`` gives matrices as matrices, ``quiet`` gives no warnings of NumPy, ``watched`` does
    both. The number in ``raised`` is not zero if results of these two may not be finite, since it
    was last set to zero; where processors do not tell, it never is zero.
    """

    ufunc: np.ufunc
    shaped: np.ufunc
    quiet: Callable[..., Any]
    watched: Callable[..., Any]
    raised: memoryview
    signature: str
    alive: tuple[object, ...]
    loop: int  # address of the ufunc's inner loop


def compile_program(
    program: Program | Callable[[], Program],
    sizes: Sequence[int],
    *,
    name: str | None = None,
    iteration: Iteration | None = None,
    shape: tuple[int, ...] = (),
    shared: Sequence[int] = (),
    label: str = "compiling",
    dtype: Dtype = "float64",
) -> CompiledUfunc:
    """Compile a generalized ufunc with these ``sizes``: of its arguments, the last of its result.

    Sizes are the lengths of last axes, and part of the ufunc's signature. The program's inputs are
    those of the arguments one after the other, its outputs the result. ``name`` identifies the
    program, which may then be a function; it is called only if the cache has no code.

    With an ``iteration`` the program runs over time: some arguments, and the result, have one row
    for each instant, (..., T, size). ``shape``: of a result that is a matrix. ``shared``: numbers
    of arguments that often have one row for all states; what depends on them alone is then computed
    once. ``label``: the text of a progress bar. ``dtype``: of all numbers.
    """
    result = len(sizes) - 1
    rows: set[int] = set()
    if iteration is not None:
        rows = {*iteration.timed, result}
        inputs = set(iteration.timed) & set(range(1, result))
        if not inputs or len(inputs) < len(iteration.timed) or sizes[0] > sizes[-1]:
            raise ValueError(f"sizes {tuple(sizes)} cannot be iterated over {iteration}")
    with _LOCK:
        codes = _machine_code(program, sizes, name, iteration, tuple(shared), label, dtype)
    engine, loop = machine.load(codes, "loop")
    *arguments, output = (f"(t,{n})" if k in rows else f"({n})" for k, n in enumerate(sizes))
    signature = ",".join(arguments) + f"->{output}"
    raised = (ctypes.c_int64 * 1)(not X86)
    ufunc, memory = _ufunc(loop, len(arguments), signature, dtype)
    shaped, quiet = ufunc, cast("Callable[..., Any]", partial(_quiet, ufunc))
    matrix = len(shape) == 2 and iteration is None
    form = f"{','.join(arguments)}->({shape[0]},{shape[1]})" if matrix else signature
    columns = shape[1] if matrix else 0
    if matrix:
        shaped, more = _ufunc(loop, len(arguments), form, dtype, columns)
        memory += more
    watched = cast("Callable[..., Any]", partial(_quiet, shaped))
    if X86:
        quiet, more = _ufunc(loop, len(arguments), signature, dtype, 0, raised)
        memory += more
        watched = quiet
        if matrix:
            watched, more = _ufunc(loop, len(arguments), form, dtype, columns, raised)
            memory += more
    seen = memoryview(raised).cast("B").cast("q")
    return CompiledUfunc(ufunc, shaped, quiet, watched, seen, signature, (engine, *memory), loop)


@uncollected()
def compile_briefly(
    program: Callable[[], Program], sizes: Sequence[int], iteration: Iteration | None = None
) -> CompiledUfunc | None:
    """As :func:`compile_program`, in a small part of the time, for some thousand runs.

    The loop is one that all such programs share (:mod:`~robomodel.kernels.llvm.driver`); with an
    ``iteration``, which has no timed arguments, it runs through the stages of one instant. None
    where there is no such loop: for large programs, and without AVX-512.
    """
    try:
        if not machine.direct():
            return None
        circumstances = (*_compiler(), *machine.processor())
    except (ImportError, OSError, RuntimeError):
        raise NoCompilerError(_cannot()) from None
    plan = KernelPlan(_fitting(program, sizes, iteration), tuple(sizes), iteration=iteration)
    if not driver.fits(plan):
        return None
    steps = ordered(plan.program)
    plan = replace(plan, program=steps)
    what = "piece", repr((tuple(sizes), iteration)), f"{steps.steps!r}{steps.outputs!r}"
    with _LOCK:
        codes: list[bytes] = []
        for parts in (("driver",), what):
            key = cache.digest((*circumstances, *parts))
            code = cache.load(key)
            if code is None:
                if obstacle() is not None:
                    raise NoCompilerError(_cannot())
                vectors = LaneVectors(PRECISIONS[plan.dtype], machine.lanes())
                if not vectors.turnable:
                    return None
                if codes:
                    code = assembled(plan, vectors, writing=False)
                else:
                    (code,) = machine.object_codes([driving(vectors)], lambda _: None)
                cache.store(key, code)
            codes.append(code)
    engine, loop = machine.load(codes, "loop")
    *arguments, output = (f"({n})" for n in sizes)
    signature = ",".join(arguments) + f"->{output}"
    raised, facts = (ctypes.c_int64 * 1)(0), driver.Facts.of(plan)
    quiet, memory = _ufunc(loop, len(arguments), signature, "float64", 0, raised, facts.numbers)
    seen = memoryview(raised).cast("B").cast("q")
    alive = (engine, facts, *memory)
    return CompiledUfunc(quiet, quiet, quiet, quiet, seen, signature, alive, loop)


def _quiet(ufunc: np.ufunc, *arguments: Any, out: Any = None) -> Any:
    with np.errstate(all="ignore"):
        return ufunc(*arguments, out=out)


def _ufunc(
    loop: int,
    inputs: int,
    signature: str,
    dtype: Dtype,
    columns: int = 0,
    raised: ctypes.Array[ctypes.c_int64] | None = None,
    facts: ctypes.Array[ctypes.c_int64] | None = None,
) -> tuple[np.ufunc, tuple[object, ...]]:
    """A ufunc (PyUFunc_FromFuncAndDataAndSignature) from a loop, and the memory that it uses.

    ``columns`` of a result that is a matrix. ``raised`` gets floating-point exceptions, of which
    NumPy then does not warn. ``facts``: those of a plan, for a loop that runs any.
    """
    text, number = ctypes.c_char_p, ctypes.c_int
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, text, number, number, number, number,
        text, text, number, text,
    )(numpy_functions("_UFUNC_API")[31])  # fmt: skip
    told = 0 if raised is None else ctypes.addressof(raised)
    plan = 0 if facts is None else ctypes.addressof(facts)
    options = (ctypes.c_int64 * 4)(columns, raised is not None, told, plan)
    loops = (ctypes.c_void_p * 1)(loop)
    data = (ctypes.c_void_p * 1)(ctypes.addressof(options))
    types = ctypes.create_string_buffer(bytes([np.dtype(dtype).num] * (inputs + 1)))
    name, doc, signs = b"kernel", b"A compiled kernel.", signature.encode()
    ufunc = make(
        ctypes.addressof(loops), ctypes.addressof(data), ctypes.cast(types, text), 1, inputs, 1, -1,
        name, doc, 0, signs,
    )  # fmt: skip
    return ufunc, (loops, data, options, raised, types, name, doc, signs)


@functools.cache
def numpy_functions(name: str) -> Any:
    """A table of NumPy's C functions, read as import_array() and import_ufunc() read it.

    Releases with one major number of the binary interface have the same entries. Raises
    NoCompilerError for others, as import_array() does.
    """
    try:
        core = importlib.import_module("numpy._core._multiarray_umath")
    except ModuleNotFoundError:  # NumPy 1
        core = importlib.import_module("numpy.core._multiarray_umath")
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)

    def table(name: str) -> Any:
        return ctypes.cast(pointer(getattr(core, name), None), ctypes.POINTER(ctypes.c_void_p))

    version = ctypes.PYFUNCTYPE(ctypes.c_uint)(table("_ARRAY_API")[0])()
    if version >> 24 not in INTERFACES:
        raise NoCompilerError(f"NumPy's binary interface {version:#x} is not supported")
    return table(name)


def compile_ptx(
    program: Callable[[], Program],
    entry: str,
    sizes: Sequence[int],
    *,
    name: str,
    dtype: Dtype = "float64",
    label: str = "compiling",
    iteration: Iteration | None = None,
    parts: Sequence[int] = (),
) -> str:
    """PTX of a program (:func:`robomodel.cuda.ptx.ptx`), from the cache or from LLVM.

    With an ``iteration``, and the ``parts`` of the state, by
    :func:`robomodel.cuda.ptx.ptx_over_time`. ``name`` identifies the program. Raises
    NoCompilerError if the cache has no PTX and LLVM is missing, or has no target for NVIDIA's
    cards.
    """
    try:
        circumstances = _compiler()
    except ImportError:
        raise NoCompilerError(_cannot()) from None
    what = ("ptx", entry, tuple(sizes), dtype, iteration, tuple(parts))
    key = cache.digest((*circumstances, repr(what), name))
    content = cache.load(key)
    if content is None:
        with Progress(label, 1.0, after=PATIENCE):
            steps, ptx = program(), importlib.import_module("robomodel.cuda.ptx")
            try:
                text = (
                    ptx.ptx(steps, entry, sizes, dtype)
                    if iteration is None
                    else ptx.ptx_over_time(steps, entry, sizes, parts, iteration, dtype)
                )
            except (ImportError, OSError, RuntimeError) as error:
                raise NoCompilerError(f"PTX cannot be written here ({error})") from None
            content = text.encode()
        cache.store(key, content)
    return content.decode()


def _machine_code(
    program: Program | Callable[[], Program],
    sizes: Sequence[int],
    name: str | None,
    iteration: Iteration | None,
    shared: tuple[int, ...],
    label: str,
    dtype: Dtype,
) -> list[bytes]:
    """The program's object code: from the cache, which does not need LLVM, or by LLVM."""
    if name is None:
        program = _fitting(program, sizes, iteration)
        name = f"{program.steps!r}{program.outputs!r}"
    try:
        circumstances = (*_compiler(), *machine.processor())
    except (ImportError, OSError, RuntimeError):
        raise NoCompilerError(_cannot()) from None
    key = cache.digest((*circumstances, repr((tuple(sizes), iteration, shared, dtype)), name))
    content = cache.load(key)
    if content is not None:
        return cache.parted(content)
    if obstacle() is not None:
        raise NoCompilerError(_cannot())
    with uncollected(), Progress(label, 1.0, after=PATIENCE) as bar:
        program = _fitting(program, sizes, iteration)
        bar.at(0.0)
        vectors = LaneVectors(PRECISIONS[dtype], machine.lanes(dtype))
        plan = planned(program, tuple(sizes), dtype, iteration, shared, vectors)
        bar.at(0.0)
        direct = machine.LINKED and vectors.turnable  # AVX-512: pieces without a compiler
        codes = [assembled(plan, vectors)] if direct else []
        bar.at(0.0)
        codes += machine.object_codes(cut(written(plan, vectors, pieces=not direct)), bar.at)
    cache.store(key, cache.joined(codes))
    return codes


def _cannot() -> str:
    return f"kernels cannot be compiled here ({obstacle()})"


def _fitting(
    program: Program | Callable[[], Program], sizes: Sequence[int], iteration: Iteration | None
) -> Program:
    program = program if isinstance(program, Program) else program()
    carried, columns = (iteration.carried, iteration.columns) if iteration else (0, 0)
    fitting = sum(sizes[:-1]) + carried + columns, sizes[-1] + carried
    if (program.inputs, len(program.outputs)) != fitting:
        raise ValueError(f"sizes {tuple(sizes)} do not fit the program")
    return program


@functools.cache
def _compiler() -> tuple[str, ...]:
    """The compiler: llvmlite's release, read without importing it, and this package's sources."""
    llvmlite_spec = find_spec("llvmlite")
    origin = llvmlite_spec.origin if llvmlite_spec is not None else None
    try:
        release = Path(origin or "").with_name("_version.py").read_text(encoding="utf-8")
    except (OSError, ValueError):
        import llvmlite

        release = llvmlite.__version__
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return release, *(file.read_text(encoding="utf-8") for file in files)
