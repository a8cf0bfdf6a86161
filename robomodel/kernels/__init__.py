"""Straight-line programs from algorithms over scalars, and machine code from them.

Nothing here knows robotics. What makes machine code is imported for the first program that needs
it, LLVM (llvmlite) only for one that the cache lacks.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from robomodel.kernels.function import Kernel
from robomodel.kernels.plan import Iteration
from robomodel.kernels.program import Program
from robomodel.kernels.trace import Trace, Traced

if TYPE_CHECKING:
    from robomodel.kernels.compile import CompiledUfunc, NoCompilerError, compile_program
    from robomodel.kernels.llvm.machine import lanes, obstacle

__all__ = [
    "CompiledUfunc",
    "Iteration",
    "Kernel",
    "NoCompilerError",
    "Program",
    "Trace",
    "Traced",
    "compile_program",
    "lanes",
    "obstacle",
]

_HOMES = {
    **dict.fromkeys(("CompiledUfunc", "NoCompilerError", "compile_program"), "compile"),
    **dict.fromkeys(("lanes", "obstacle"), "llvm.machine"),
}
"""The modules of names that are imported when one is first asked for."""

_ROOMS = "compile llvm x86"
"""Subpackages and modules that need no further import to be used."""


def __getattr__(name: str) -> object:
    if name in _HOMES:
        found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return globals().setdefault(name, found)
    if name in _ROOMS.split():
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
