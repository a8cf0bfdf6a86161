"""From a program to a NumPy ufunc, by LLVM (llvmlite) and without a C compiler."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from robomodel.kernels import cache, machine
from robomodel.kernels.emit import emit
from robomodel.kernels.machine import obstacle
from robomodel.kernels.plan import Iteration
from robomodel.kernels.program import Program
from robomodel.locks import Turn

_ALONE = Turn()  # two threads that want the same program shall not both compile it


class NoCompilerError(RuntimeError):
    """Kernels cannot be made here; what is not on disk is not to be had."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A ufunc and what must live as long as it does."""

    ufunc: np.ufunc
    signature: str
    _alive: tuple[object, ...]


def compile_program(
    program: Program | Callable[[], Program],
    sizes: Sequence[int],
    *,
    name: str | None = None,
    iteration: Iteration | None = None,
) -> Compiled:
    """A generalized ufunc: one argument for each of ``sizes`` but the last, which is the result's.

    Sizes are the lengths of last axes, and part of the ufunc's signature. The program's inputs are
    the arguments one after the other, its outputs the result. ``name`` says all that makes the
    program what it is: then the program may be a function, called where the cache does not help.

    With an ``iteration`` the program is run over time: some arguments, and the result, then have
    one row for each instant, (..., T, size).
    """
    result = len(sizes) - 1
    rows: set[int] = set()
    if iteration is not None:
        rows = {*iteration.timed, result}
        inputs = set(iteration.timed) & set(range(1, result))
        if not inputs or len(inputs) < len(iteration.timed) or sizes[0] > sizes[-1]:
            raise ValueError(f"sizes {tuple(sizes)} cannot be iterated over {iteration}")
    with _ALONE:
        alive, addresses = machine.load(_machine_code(program, sizes, name, iteration))
    *shapes, output = (f"(t,{n})" if k in rows else f"({n})" for k, n in enumerate(sizes))
    return _ufunc(addresses["loop"], len(shapes), ",".join(shapes) + f"->{output}", (alive,))


def _machine_code(
    program: Program | Callable[[], Program],
    sizes: Sequence[int],
    name: str | None,
    iteration: Iteration | None,
) -> bytes:
    """The program's object code, from the cache, where LLVM is not needed, or from LLVM."""
    if name is None:
        program = _fitting(program, sizes, iteration)
        name = f"{program.steps!r}{program.outputs!r}"
    try:
        circumstances = (*_compiler(), *machine.processor())
    except (ImportError, OSError, RuntimeError):
        raise NoCompilerError(_cannot()) from None
    key = cache.digest((*circumstances, repr((tuple(sizes), iteration)), name))
    code = cache.load(key)
    if code is None:
        if obstacle() is not None:
            raise NoCompilerError(_cannot())
        program = _fitting(program, sizes, iteration)
        code = machine.object_code(emit(program, sizes, machine.lanes(), iteration))
        cache.store(key, code)
    return code


def _cannot() -> str:
    return f"kernels cannot be compiled here ({obstacle()})"


def _fitting(
    program: Program | Callable[[], Program], sizes: Sequence[int], iteration: Iteration | None
) -> Program:
    made = program if isinstance(program, Program) else program()
    carried, columns = (iteration.carried, iteration.columns) if iteration else (0, 0)
    if (made.inputs, len(made.outputs)) != (
        sum(sizes[:-1]) + carried + columns,
        sizes[-1] + carried,
    ):
        raise ValueError(f"sizes {tuple(sizes)} do not fit the program")
    return made


@functools.cache
def _compiler() -> tuple[str, ...]:
    """What compiles: llvmlite's release, which is told without importing it, and this package."""
    found = find_spec("llvmlite")
    origin = found.origin if found is not None else None
    try:
        release = Path(origin or "").with_name("_version.py").read_text(encoding="utf-8")
    except (OSError, ValueError):
        import llvmlite

        release = llvmlite.__version__
    texts = [
        file.read_text(encoding="utf-8") for file in sorted(Path(__file__).parent.glob("*.py"))
    ]
    return release, *texts


def _ufunc(address: int, inputs: int, signature: str, alive: tuple[object, ...]) -> Compiled:
    """NumPy's PyUFunc_FromFuncAndDataAndSignature on a loop in memory.

    It is entry 31 of the ufunc API table, whose order is part of NumPy's stable ABI.
    """
    capsule = np._core._multiarray_umath._UFUNC_API  # type: ignore[attr-defined]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    text, number = ctypes.c_char_p, ctypes.c_int
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, text, number, number, number, number,
        text, text, number, text,
    )(table[31])  # fmt: skip
    loops, data = (ctypes.c_void_p * 1)(address), (ctypes.c_void_p * 1)(None)
    double = np.dtype(np.float64).num
    types = ctypes.create_string_buffer(bytes([double] * (inputs + 1)))
    name, doc, signs = b"kernel", b"A compiled kernel.", signature.encode()
    ufunc = make(
        ctypes.addressof(loops), ctypes.addressof(data), ctypes.cast(types, text), 1, inputs, 1, -1,
        name, doc, 0, signs,
    )  # fmt: skip
    return Compiled(ufunc, signature, (*alive, loops, data, types, name, doc, signs))
