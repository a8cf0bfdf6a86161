"""Robots' functions in PyTorch; see :mod:`robomodel.interop.torch`."""

from robomodel.interop.torch import function

__all__ = ["function"]
