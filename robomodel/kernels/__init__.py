"""Straight-line programs from algorithms over scalars. Knows no robotics."""

from robomodel.kernels.trace import Program, Trace, Traced

__all__ = ["Program", "Trace", "Traced"]
