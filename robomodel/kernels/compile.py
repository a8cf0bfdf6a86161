"""From a program to a NumPy ufunc, by LLVM (llvmlite) and without a C compiler."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robomodel.kernels import cache
from robomodel.kernels.emit import Iteration, emit
from robomodel.kernels.trace import Program

_LOCK = threading.Lock()  # LLVM's context is shared by the process


@dataclass(frozen=True, slots=True)
class Compiled:
    """A ufunc and what must live as long as it does."""

    ufunc: np.ufunc
    signature: str
    _alive: tuple[object, ...]


@functools.cache
def _features() -> tuple[str, int]:
    """The machine's instruction sets, as LLVM writes them, and how many doubles a vector holds."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        features["prefer-256-bit"] = False
    width = 8 if features.get("avx512f") else 4 if features.get("avx2") else 2
    return features.flatten(), width


@functools.cache
def obstacle() -> str | None:
    """Why nothing can be compiled here; None where all is well."""
    try:
        _features()
    except (ImportError, OSError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def lanes() -> int:
    """How many states a kernel works on at a time on this machine."""
    return _features()[1]


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
    if (why := obstacle()) is not None:
        raise RuntimeError(f"kernels cannot be compiled here ({why})")
    with _LOCK:
        engine, address = _load(_machine_code(program, sizes, name, iteration))
    *shapes, output = (f"(t,{n})" if k in rows else f"({n})" for k, n in enumerate(sizes))
    return _ufunc(address, len(shapes), ",".join(shapes) + f"->{output}", (engine,))


def _machine(features: str) -> Any:
    import llvmlite.binding as llvm

    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=1, jit=True
    )


def _machine_code(
    program: Program | Callable[[], Program],
    sizes: Sequence[int],
    name: str | None,
    iteration: Iteration | None,
) -> bytes:
    """The program's object code, from the cache or from LLVM."""
    import llvmlite
    import llvmlite.binding as llvm

    features, width = _features()
    processor = (llvm.get_default_triple(), llvm.get_host_cpu_name(), features)
    if name is None:
        program = _fitting(program, sizes, iteration)
        name = f"{program.steps!r}{program.outputs!r}"
    content = (repr((tuple(sizes), iteration)), name)
    key = cache.digest((*_versions(llvmlite.__version__), *processor, *content))
    code = cache.load(key)
    if code is None:
        program = _fitting(program, sizes, iteration)
        machine = _machine(features)
        module = llvm.parse_assembly(emit(program, sizes, width, iteration))
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        code = machine.emit_object(module)
        cache.store(key, code)
    return code


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
def _versions(llvmlite: str) -> tuple[str, ...]:
    """What compiles: the releases, and the text of the emitter itself."""
    from importlib import metadata

    from robomodel.kernels import emit as emitter

    try:
        version = metadata.version("robomodel")
    except metadata.PackageNotFoundError:  # run from a checkout
        version = ""
    with open(emitter.__file__, encoding="utf-8") as file:
        return version, llvmlite, file.read()


def _load(code: bytes) -> tuple[object, int]:
    """Object code in memory: what keeps it there, and the address of its loop."""
    import llvmlite.binding as llvm

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(_features()[0]))
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine, engine.get_function_address("loop")


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
