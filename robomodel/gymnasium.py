"""Robots as environments of gymnasium; see :mod:`robomodel.interop.gymnasium`."""

from robomodel.interop.gymnasium import VectorEnv

__all__ = ["VectorEnv"]
