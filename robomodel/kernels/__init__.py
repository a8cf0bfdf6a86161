"""Straight-line programs from algorithms over scalars, and machine code from them.

Nothing here knows robotics. LLVM (llvmlite) is imported only for a program that the cache lacks.
"""

from robomodel.kernels.compile import CompiledUfunc, NoCompilerError, compile_program
from robomodel.kernels.function import Kernel
from robomodel.kernels.llvm.machine import lanes, obstacle
from robomodel.kernels.plan import Iteration
from robomodel.kernels.program import Program
from robomodel.kernels.trace import Trace, Traced

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
