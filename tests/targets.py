"""Programs on every target, as functions of rows: NumPy's kernels, C, and cards' code here."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from robomodel.kernels import Program, compile_program, machine, ptx
from robomodel.kernels.c import CFunction, preamble
from robomodel.kernels.slices import Slice, sliced

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror")

Run = Callable[[Sequence[np.ndarray]], np.ndarray]
"""Arguments (count, size) → results (count, size)."""


def library(source: Path, compiler: str, *flags: str) -> ctypes.CDLL:
    """The source as a library, without a word from the compiler."""
    made = source.with_name(f"{source.stem}_{compiler}_{len(list(source.parent.iterdir()))}.so")
    flags = flags or ("-O1",)
    command = [compiler, *WARNINGS, *flags, "-shared", "-fPIC", source, "-o", made, "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(made))


def pointers(arrays: Sequence[np.ndarray]) -> list[ctypes.c_void_p]:
    return [x.ctypes.data_as(ctypes.c_void_p) for x in arrays]


def called(
    function: object, arguments: Sequence[np.ndarray], sizes: Sequence[int], dtype: str
) -> np.ndarray:
    """A function of one state on rows of arguments: its results side by side."""
    rows = []
    for row in zip(*arguments, strict=True):
        given = [np.ascontiguousarray(x, dtype) for x in row]
        results = [np.full(n + 1, 7.0, dtype) for n in sizes]
        function(*pointers([*given, *results]))
        assert all(result[-1] == 7.0 for result in results)  # nothing beyond the end
        rows.append(np.concatenate([result[:-1] for result in results]))
    return np.array(rows)


def numpy_kernel(program: Program, sizes: Sequence[int], dtype: str, folder: Path) -> Run:
    compiled = compile_program(program, sizes, dtype=dtype)  # which its ufunc does not keep
    return lambda arrays: compiled.ufunc(*arrays)


def in_c(compiler: str) -> Callable[..., Run]:
    def target(program: Program, sizes: Sequence[int], dtype: str, folder: Path) -> Run:
        *given, size = sizes
        parts = [size] if size < 6 else [5, size - 5]
        arguments = {f"x{i}": n for i, n in enumerate(given)}
        f = CFunction("f", program, arguments, {f"y{i}": n for i, n in enumerate(parts)}, dtype)
        source = folder / "f.c"
        source.write_text("\n".join([f"{f.declaration};", *preamble(dtype), *f.definition(), ""]))
        made = library(source, compiler, "-O0" if f.in_parts else "-O1")
        return lambda arrays: called(made.f, arrays, parts, dtype)

    return target


def threads(
    text: str, pointers: int, integers: int, *others: type, slices: int = 1
) -> Callable[..., None]:
    """A card's kernel here: its arguments, how many states; blocks of threads, phase by phase."""
    alive, address = machine.load(machine.object_codes([text], lambda _: None), "f")
    kinds = [*[ctypes.c_void_p] * pointers, *[ctypes.c_int64] * integers, *others]
    kinds += [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32]
    function = ctypes.CFUNCTYPE(None, *kinds)(address)
    memory = np.full(ptx.STAGED // 4 + 8, np.nan, np.float32)
    staged = -(-memory.ctypes.data // 16) * 16

    def run(*given: float, count: int) -> None:
        memory[:] = np.nan
        for block in range(0, slices * -(-count // ptx.THREADS) * ptx.THREADS, ptx.THREADS):
            for phase in (ptx.LOAD, ptx.WORK, ptx.STORE):
                for thread in range(block, block + ptx.THREADS):  # also those beyond the end
                    function(*given, staged, thread, phase)

    run.alive = alive, memory
    return run


def on_card(
    program: Program, sizes: Sequence[int], dtype: str, folder: Path | None = None,
    slices: Sequence[Slice] | None = None,
) -> Run:  # fmt: skip
    slices = slices or sliced(program, dtype, ptx.gathered(dtype))
    text = ptx.emit(program, "f", sizes, dtype, ptx.ON_HOST, slices)
    launch = threads(text, len(sizes), len(sizes), slices=len(slices))

    def run(arrays: Sequence[np.ndarray]) -> np.ndarray:
        arrays = [np.ascontiguousarray(x, dtype) for x in arrays]
        count = len(arrays[0])
        result = np.full((count + 1, sizes[-1]), 7.0, dtype)
        launch(*(x.ctypes.data for x in (*arrays, result)), *sizes[:-1], count, count=count)
        assert np.all(result[-1] == 7.0)
        return result[:-1]

    return run


TARGETS = {
    "numpy": numpy_kernel,
    "card": on_card,
    **{compiler: in_c(compiler) for compiler in COMPILERS},
}


def exact_turns(angles: np.ndarray) -> np.ndarray:
    """Sine and cosine side by side, in more digits where the machine has them."""
    exact = angles.astype(np.longdouble)
    with np.errstate(invalid="ignore"):
        return np.stack([np.sin(exact), np.cos(exact)], axis=1)
