"""Programs on every target, as functions of rows: NumPy, C, JavaScript, and cards' code here."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import node
import numpy as np
from ptx_interpreter import Launch

from robomodel.cuda import ptx
from robomodel.cuda.slices import Slice
from robomodel.kernels import Program, compile_program
from robomodel.kernels.c import CFunction, preamble
from robomodel.kernels.javascript import PREAMBLE, JavaScriptFunction

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


def on_card(
    program: Program, sizes: Sequence[int], dtype: str, folder: Path | None = None,
    slices: Sequence[Slice] | None = None,
) -> Run:  # fmt: skip
    """The card's code, by an interpreter; ``slices``: others than it would have."""
    text = ptx.ptx(program, "f", sizes, dtype) if slices is None else ptx.in_slices(
        "f", sizes, dtype, slices
    )  # fmt: skip

    def run(arrays: Sequence[np.ndarray]) -> np.ndarray:
        arrays = [np.ascontiguousarray(x, dtype) for x in arrays]
        count = len(arrays[0])
        result = np.full((count, sizes[-1]), 7.0, dtype)
        pointers = [x.ctypes.data for x in (*arrays, result)]
        blocks = ptx.grid_blocks(text, count)
        Launch(text, "f", [*pointers, *sizes[:-1], count], blocks, ptx.THREADS, [*arrays, result])
        return result

    return run


def in_javascript(program: Program, sizes: Sequence[int], dtype: str, folder: Path) -> Run:
    *given, size = sizes
    parts = [size] if size < 6 else [5, size - 5]
    arguments = {f"x{i}": n for i, n in enumerate(given)}
    f = JavaScriptFunction("f", program, arguments, {f"y{i}": n for i, n in enumerate(parts)})
    module = folder / "f.mjs"
    module.write_text("\n".join([PREAMBLE, *f.definition(), ""]))
    return lambda arrays: node.run([node.Job(module, "f", arrays, size)], folder)[0]


TARGETS = {
    "numpy": numpy_kernel,
    "card": on_card,
    "javascript": in_javascript,
    **{compiler: in_c(compiler) for compiler in COMPILERS},
}


def exact_turns(angles: np.ndarray) -> np.ndarray:
    """Sine and cosine side by side, in more digits where the machine has them."""
    exact = angles.astype(np.longdouble)
    with np.errstate(invalid="ignore"):
        return np.stack([np.sin(exact), np.cos(exact)], axis=1)
