"""Straight-line programs from algorithms over scalars, and machine code from them.

Knows no robotics. LLVM (llvmlite) is imported when the first program is compiled.
"""

from robomodel.kernels.compile import Compiled, compile_program, lanes, obstacle
from robomodel.kernels.emit import Iteration
from robomodel.kernels.trace import Program, Trace, Traced

__all__ = [
    "Compiled",
    "Iteration",
    "Program",
    "Trace",
    "Traced",
    "compile_program",
    "lanes",
    "obstacle",
]
